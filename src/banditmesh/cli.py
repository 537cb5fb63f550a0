"""The command line: thin verbs over the library's own calls.

Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted. An error is one line on standard error. Libraries are
imported inside the verbs, so that `--help` answers at once.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import BanditmeshError, InputError
from .verbs.paper import paper_verb
from .verbs.study import new_verb, plot_verb, run_verb
from .version import __version__

if TYPE_CHECKING:
    from .experiments.compare import Comparison
    from .problem import Problem
    from .protocols import Protocol

PROTOCOLS = ("none", "irs", "gossip", "probabilistic", "fwa", "flooding", "centralised")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        status = cli.main(arguments, prog_name="banditmesh", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "banditmesh"
        message = " ".join(error.format_message().split())
        _fail(f"{command}: {message} (see '{command} --help')", 2)
    except InputError as error:
        _fail(f"banditmesh: {error}", 2)
    except BanditmeshError as error:
        _fail(f"banditmesh: {error}", 1)
    except OSError as error:
        _fail(f"banditmesh: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", 1)
    except MemoryError:
        _fail("banditmesh: not enough memory for this run; take a smaller one", 1)
    except (KeyboardInterrupt, click.Abort):
        _fail("banditmesh: interrupted", 130)


def _fail(message: str, status: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="banditmesh %(version)s")
def cli() -> None:
    r"""Bandit agents that learn together over any network.

    \b
    Example:
      banditmesh compare --network er --horizon 100 --replicates 3
    """


for _verb in (paper_verb, new_verb, run_verb, plot_verb):
    cli.add_command(_verb)


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that describe a problem and how long to simulate it."""
    options = [
        click.option(
            "--network",
            default="er",
            show_default=True,
            help="er, ba, sbm or dynamic-er (the paper's), or a file: edge list, GraphML, GML, adjacency list.",
        ),
        click.option("--arms", "n_arms", default=50, show_default=True, help="How many arms there are."),
        click.option("--per-agent", default=20, show_default=True, help="How many arms each agent has."),
        click.option("--ttl", default=4, show_default=True, help="How many hops a message may travel."),
        click.option("--horizon", default=1000, show_default=True, help="How many rounds."),
        click.option("--replicates", default=10, show_default=True, help="How many repetitions."),
        click.option("--seed", default=0, show_default=True, help="Decides arms, rewards and everything random."),
        click.option(
            "--rules",
            type=click.Choice(["sound", "published"]),
            default="sound",
            show_default=True,
            help="The paper's text and theory, or its author's code and figures.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@cli.command("compare", short_help="Several protocols side by side on one network.")
@problem_options
@click.option(
    "--protocols",
    "names",
    default="none,irs,gossip,probabilistic,fwa,flooding",
    show_default=True,
    help=f"Any of {', '.join(PROTOCOLS)}, separated by commas.",
)
@click.option("--plot", "picture", type=click.Path(dir_okay=False), help="Also draw the curves into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print what a program can read.")
def compare_verb(
    network: str,
    n_arms: int,
    per_agent: int,
    ttl: int,
    horizon: int,
    replicates: int,
    seed: int,
    rules: str,
    names: str,
    picture: str | None,
    as_json: bool,
) -> None:
    r"""Compare protocols by group regret and messages, on the same rewards and networks.

    \b
    Examples:
      banditmesh compare --network ba --horizon 200 --replicates 5
      banditmesh compare --network my-network.graphml --arms 30 --per-agent 5 --protocols irs,fwa
    """
    from .experiments.compare import compare

    protocols = [read_protocol(name.strip(), ttl) for name in names.split(",")]
    problem = read_problem(network, n_arms, per_agent, seed)
    comparison = compare(problem, protocols, horizon=horizon, replicates=replicates, seed=seed, rules=rules)
    if picture:
        _save_figure(comparison, picture)
    if as_json:
        label = network if not Path(network).exists() else Path(network).stem
        click.echo(json.dumps({label: comparison.to_json()}, indent=2))
        return
    click.echo(f"{problem!r}\nhorizon {horizon}, {replicates} replicates, seed {seed}, {rules} rules\n")
    click.echo(_format(comparison))


def read_problem(network: str, n_arms: int, per_agent: int, seed: int) -> Problem:
    """The problem that the options describe: Gaussian arms with uniform means, uniformly drawn arm sets."""
    from . import networks
    from .problem import PAPER_NETWORKS, Problem

    graph = networks.paper(network) if network in PAPER_NETWORKS else networks.read(network)
    return Problem.random(graph, n_arms, per_agent, seed)


def read_protocol(name: str, ttl: int) -> Protocol:
    """The protocol of that short name."""
    from . import protocols

    if name not in PROTOCOLS:
        raise InputError(f"protocols must be among {', '.join(PROTOCOLS)}; got {name!r}")
    with_ttl = {
        "gossip": protocols.Gossip,
        "probabilistic": protocols.ProbabilisticFlooding,
        "fwa": protocols.FwA,
        "flooding": protocols.Flooding,
    }
    without = {"none": protocols.NoCooperation, "irs": protocols.IRS, "centralised": protocols.Centralised}
    protocol: Protocol = with_ttl[name](ttl) if name in with_ttl else without[name]()
    return protocol


def _format(comparison: Comparison) -> str:
    lines = [f"{'protocol':<14} {'group regret':>22} {'messages':>28}"]
    for name, row in comparison.table().iterrows():
        regret = _with_spread(row["regret"], row["regret_sd"])
        messages = _with_spread(row["messages"], row["messages_sd"])
        lines.append(f"{name!s:<14} {regret:>22} {messages:>28}")
    return "\n".join(lines)


def _with_spread(mean: float, sd: float) -> str:
    return f"{mean:,.0f}" if math.isnan(sd) else f"{mean:,.0f} ± {sd:,.0f}"


def _save_figure(comparison: Comparison, path: str) -> None:
    kinds = (".pdf", ".png", ".svg")
    if Path(path).suffix not in kinds:
        raise InputError(f"--plot must name a {', '.join(kinds)} file, got {path}")
    comparison.plot().savefig(path)
