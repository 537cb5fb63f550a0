"""`frontier`: regret against traffic on your network, and which protocol to use."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import text_tables
from ..errors import InputError
from .cases import ask_no_policy, note_policy, read_case, read_policies
from .options import (
    ALGORITHMS_HELP,
    check_folder,
    check_picture,
    command_line,
    fault_options,
    pace_option,
    policies_option,
    policy_option,
    problem_options,
    refuse_idle,
    refuse_options,
    report_option,
    say,
    spec_option,
    write_picture,
)

if TYPE_CHECKING:
    from ..comparisons.configurations import Frontier

#: The options that are arguments of `frontier` as they are.
_PASSED = (
    *("max_messages_per_round", "max_link_load", "rounds_per_second", "max_messages_per_second"),
    *("max_link_load_per_second", "tolerance", "prune", "keep", "workers", "executor"),
)


@click.command("frontier", short_help="Regret against traffic on your network, and which protocol to use.")
@click.argument("spec_path", metavar="[SPEC.toml]", required=False, type=click.Path(dir_okay=False))
@partial(problem_options, ttl=False)
@policy_option
@policies_option
@fault_options
@spec_option(
    "--protocols",
    "names",
    help=f"{ALGORITHMS_HELP} A plain name is combined with every ttl and emission. All if not given.",
)
@spec_option(
    "--ttl",
    "ttls",
    metavar="T,T,...",
    help="Maximum numbers of hops of a message; by default chosen from the diameter.",
)
@spec_option(
    "--emissions",
    show_default="every-pull,growth(0.1),growth(0.25),growth(1),contested",
    help="When an agent sends, and what; where transmissions are lost, growth(0.25, echoes=1) is a default too.",
)
@click.option("--max-messages-per-round", type=float, help="Budget: transmissions per round in the whole network.")
@click.option(
    "--max-link-load", type=float, help="Budget: transmissions per round on the busiest link, in one direction."
)
@pace_option
@click.option("--max-messages-per-second", type=float, help="The same budget per second; needs --rounds-per-second.")
@click.option("--max-link-load-per-second", type=float, help="The same budget per second; needs --rounds-per-second.")
@click.option(
    "--tolerance",
    default=0.05,
    show_default=True,
    help="Recommend the fewest transmissions among regrets at most this fraction above the least.",
)
@click.option(
    "--live", is_flag=True, help="Consider only what runs live, and print the node.toml lines of the recommendation."
)
@click.option(
    "--deploy",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="With --live: write a node.toml per agent for the recommendation; `mesh up --from DIR` tries them.",
)
@click.option(
    "--hosts",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where the nodes of --deploy run, a line agent,host:port each; by default on ports of loopback.",
)
@click.option(
    "--prune/--no-prune",
    default=None,
    show_default="where there is much to do",
    help="Drop configurations early that are over budget, not worth their cost or beaten; --all says why.",
)
@click.option("--keep", metavar="FOLDER", help="Store results there; the same command reuses them.")
@click.option("--workers", type=click.IntRange(min=1), help="Local processes, instead of threads.")
@click.option("--executor", metavar="NAME", help="dask, dask:ADDRESS, ray or ray:ADDRESS.")
@click.option("--all", "show_all", is_flag=True, help="Print every configuration, not only those on a front.")
@click.option("--out", type=click.Path(dir_okay=False), help="Also plot it to this file: .png, .svg or .pdf.")
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def frontier_verb(
    spec_path: str | None,
    live: bool,
    deploy: str | None,
    hosts: str | None,
    show_all: bool,
    out: str | None,
    report: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Regret against traffic: protocols, ttls and emissions side by side on the same rewards and networks.

    Marks what nothing beats in both (the front), and recommends one under a budget. A spec whose sweep goes over
    protocols, emissions or policies says what is put side by side; any other spec gives only the problem. --protocols,
    --ttl, --emissions and --policies can be used with a spec, too.

    \b
    Examples:
      banditmesh frontier --network my-network.graphml --arms 30 --per-agent 5 --max-messages-per-round 500
      banditmesh frontier --network ba --protocols 'fwa(4),flooding' --ttl 3,5 --emissions 'growth(0.25)' --out ba.png
      banditmesh frontier study.toml --max-link-load 2 --json
      banditmesh frontier --network my-network.graphml --live --max-link-load 2 --report report.html
      banditmesh frontier --network ring:12 --arms 9 --per-agent 4 --live --deploy deploy
      banditmesh frontier --network ba --rounds-per-second 2 --max-messages-per-second 1000 --loss 0.05
      banditmesh frontier --change 'switching(0.002)' --policies 'ucb(0.5),ucb(0.5)+discount(0.995)' --ttl 4
      banditmesh frontier --network powerlaw:3000,3 --arms 500 --per-agent 40 --keep results --workers 2
    """
    from ..comparisons.frontier import frontier
    from ..policies import UCB

    if out is not None:
        check_picture("--out", out)
    passed = {name: options.pop(name) for name in _PASSED}
    network, problem, settings = _read(spec_path, **options)
    if live:
        settings = _live_only(problem, **settings)
    places = _check_deployment(problem, live, deploy, hosts)
    try:
        found = frontier(problem, notice=say, **passed, **settings)
    except KeyboardInterrupt:
        if passed["keep"] is None:
            raise
        say(f"interrupted; run the same command again to continue from {passed['keep']}")
        raise click.exceptions.Exit(130) from None
    policy = None if settings["policy"] in (None, UCB()) else repr(settings["policy"])
    lines = _node_toml(found, settings["policy"]) if live else None
    if as_json:
        values = {network: found.to_json() | ({"node_toml": lines} if live else {})}
        click.echo(json.dumps(values if policy is None else {**values, "policy": policy}, indent=2))
    else:
        _print(found, problem, policy, show_all, lines)
        if not live and (line := live_line(found, settings["policy"])):
            click.echo(line)
    if deploy is not None:
        _deploy(found, problem, settings["policy"], deploy, places)
    # Last: whatever goes wrong with a picture, the results are there.
    if out is not None:
        write_picture(found.plot(), out)
    if report is not None:
        found.report(report, command_line(click.get_current_context()), lines or "")


def _print(found: Frontier, problem: Any, policy: str | None, show_all: bool, lines: str | None) -> None:
    click.echo(problem)
    click.echo(f"horizon {found.horizon}, {found.replicates} replicates, seed {found.seed}, {found.rules} rules")
    if policy is not None:
        click.echo(policy)
    click.echo(f"{found.faults}\n" if found.faults else "")
    click.echo(as_text(found, show_all))
    if show_all and found.left_out:
        click.echo("\nLeft out early:")
        click.echo(text_tables.as_text([["configuration", "because"], *map(list, found.left_out.items())], left=(0, 1)))
    click.echo(f"\n{found.advice}")
    if lines is not None:
        click.echo(f"\nIn node.toml:\n\n{lines}", nl=False)
        if (note := _same_arms_note(found, problem)) is not None:
            click.echo(f"\n{note}")


def _live_only(
    problem: Any, protocols: Any = None, ttls: Any = None, emissions: Any = None, **settings: Any
) -> dict[str, Any]:
    """The same settings with only those protocols that run live, one by one."""
    from ..comparisons.runnable import combine_live

    for policy in settings.get("policies", [settings["policy"]]):
        protocols = combine_live(problem, protocols, ttls, emissions, policy)
    return {**settings, "protocols": protocols}


def _check_deployment(problem: Any, live: bool, deploy: str | None, hosts: str | None) -> dict[str, str] | None:
    """The hosts of `--hosts`, after everything that could be wrong with a deployment has been checked."""
    if deploy is None:
        refuse_idle(click.get_current_context(), "hosts", "there is no --deploy")
        return None
    if not live:
        raise InputError("--deploy needs --live, got none: only what runs live can be deployed; add --live")
    from ..mesh.deployment import addresses, read_hosts

    check_folder("--deploy", deploy)
    if Path(deploy).exists() and any(Path(deploy).iterdir()):
        raise InputError(f"--deploy must be new or empty, got {deploy}; name another one")
    places = None if hosts is None else read_hosts(hosts)
    addresses(problem, places)
    return places


def _deploy(found: Frontier, problem: Any, policy: Any, folder: str, hosts: dict[str, str] | None) -> None:
    from ..mesh.deployment import KEYS_FILE, write_nodes
    from ..policies import UCB

    if found.recommended is None:
        say(f"nothing is written to {folder}: nothing that sends meets the budget")
        return
    one = found[found.recommended]
    written = write_nodes(problem, one.protocol, one.policy or policy or UCB(), folder, hosts=hosts)
    shown = shlex.quote(folder)
    say(f"{folder} has a node.toml for each of {len(written) - 1} agents with {one.name}")
    say(f"try it with: banditmesh mesh up --from {shown}; keys: sh {shlex.quote(f'{folder}/{KEYS_FILE}')}")


def live_line(found: Frontier, policy: Any) -> str:
    """That the recommendation cannot run live, and what is best among what can; empty if it can."""
    from ..live.template import runs_live

    def can(one: Any) -> bool:
        return runs_live(one.protocol, policy if one.policy is None else one.policy)

    if found.recommended is None or can(found[found.recommended]):
        return ""
    able = replace(found, configurations=tuple(one for one in found.configurations if can(one)), listening=None)
    start = f"{found.recommended} cannot run live"
    if able.recommended is None:
        return f"{start}, and nothing else here that sends and meets the budget can."
    return f"{start}; the best that can is {able.recommended}: {able.in_words(able.recommended)}."


def _node_toml(found: Frontier, policy: Any) -> str | None:
    from ..live.template import protocol_lines

    if found.recommended is None:
        return None
    one = found[found.recommended]
    return protocol_lines(one.protocol, policy if one.policy is None else one.policy)


def _same_arms_note(found: Frontier, problem: Any) -> str | None:
    """What absorption does where all agents have the same arms, if one of the configurations absorbs."""
    from ..live.template import absorption_note

    if any(len(holders) not in (0, problem.n_agents) for holders in problem.holders.values()):
        return None
    noted = (absorption_note(one.protocol) for one in found.configurations)
    note = next((one for one in noted if one is not None), None)
    return None if note is None else f"All agents have the same arms: {note}."


def _read(
    spec_path: str | None,
    *,
    ttls: str | None,
    emissions: str | None,
    names: str | None,
    policies: str | None,
    **options: Any,
) -> tuple[str, Any, dict[str, Any]]:
    """A name for the network, the problem, and what `frontier` is given besides."""
    from ..comparisons.frontier import read_ttls
    from ..protocols import notation
    from ..studies.case import case_of
    from ..studies.reading import read_spec

    compared: dict[str, Any] = {
        "protocols": None if names is None else [notation.protocol_or_class(name) for name in notation.split(names)],
        "ttls": None if ttls is None else read_ttls("--ttl", ttls),
        "emissions": None if emissions is None else [notation.read_emission(one) for one in notation.split(emissions)],
    }
    choosing = read_policies(policies)
    chooses = ask_no_policy(compared["protocols"] or ()) or choosing is not None
    if spec_path is None:
        case = read_case(None, **options, chooses=chooses)
    else:
        refuse_options(click.get_current_context(), but=("names", "ttls", "emissions"))
        spec = read_spec(spec_path)
        case = case_of(spec)
        note_policy(case.problem, spec.chooses_policy or chooses, in_spec=True)
        if names is None and any(key.partition(".")[0] in ("protocol", "emission") for key in spec.grid):
            # What the options combine with ttls and emissions of their own are the spec's protocols, by name alone.
            by_class = ttls is not None or emissions is not None
            compared["protocols"] = list(dict.fromkeys(map(type, case.protocols))) if by_class else case.protocols
    if choosing is not None:
        case = replace(case, policies=tuple(choosing))
    return case.network, case.problem, {**case.settings, **compared}


def as_text(found: Frontier, show_all: bool = False) -> str:
    """The table that is printed: what is on a front, or everything."""
    from ..comparisons.shown import front_note, frontier_rows

    rows = frontier_rows(found, show_all)
    lines = [text_tables.as_text(rows, left=(0, 1, len(rows[0]) - 1)), front_note(found)]
    hidden = len(found.configurations) - len(rows) + 1
    if hidden:
        lines.append(f"{hidden} configuration{' that is' if hidden == 1 else 's that are'} on no front: --all")
    return "\n".join(lines)
