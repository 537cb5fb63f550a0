"""`compare`: several protocols side by side on one network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .. import checks
from ..errors import InputError
from ..text_tables import as_text
from .cases import read_case, read_policies
from .options import (
    ALGORITHMS_HELP,
    check_picture,
    command_line,
    fault_options,
    pace_option,
    policies_option,
    policy_option,
    problem_options,
    refuse_idle,
    report_option,
    spec_option,
    write_picture,
)
from .preset import PRESETS, run_preset

if TYPE_CHECKING:
    from ..comparisons.compare import Comparison
    from ..policies import Policy
    from ..protocols import AnyProtocol
    from ..sim.replay import Replayed
    from ..studies.case import Case


@click.command("compare", short_help="Compare protocols on one network.")
@click.argument("spec_path", metavar="[SPEC.toml]", required=False, type=click.Path(dir_okay=False))
@problem_options
@policy_option
@policies_option
@fault_options
@spec_option(
    "--protocols",
    "names",
    default="none,irs,gossip,probabilistic,fwa,flooding",
    show_default=True,
    help=ALGORITHMS_HELP,
)
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    help="A comparison on the paper's networks: what beats FwA and Flooding, or the cost of losses.",
)
@click.option(
    "--against", metavar="PROTOCOL", help="Show differences from this protocol; by default from the last one."
)
@click.option(
    "--node-toml", "live", metavar="PROTOCOL", help="Also print the node.toml lines that run this protocol live."
)
@click.option(
    "--agents", is_flag=True, help="Add the regret of the median agent, the 90 % quantile and the worst agent."
)
@pace_option
@click.option("--plot", "picture", type=click.Path(dir_okay=False), help="Also plot the curves to this file.")
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare_verb(
    spec_path: str | None,
    preset: str | None,
    against: str | None,
    live: str | None,
    agents: bool,
    rounds_per_second: float | None,
    policies: str | None,
    picture: str | None,
    report: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Compare protocols by group regret and transmissions, on the same rewards and networks.

    Takes a spec file whose sweep goes over protocols or policies, or the options below. --protocols, --ttl and
    --policies can be used with a spec, too.

    \b
    Examples:
      banditmesh compare --network ba --horizon 200 --replicates 5
      banditmesh compare --network my-network.graphml --arms 30 --per-agent 5 --protocols irs,fwa
      banditmesh compare --protocols 'fwa,flooding,flooding(8)+growth(0.25),fwa+contested'
      banditmesh compare --network ring:12 --arms 10 --per-agent 10 --protocols 'gosine,dducb,fwa(4)'
      banditmesh compare --protocols 'flooding,flooding+growth(0.25)' --loss 0.1 --outages 0.01 0.1
      banditmesh compare --network links.txt.gz --catalogue catalogue.csv --laws rates.csv --policy klucb
      banditmesh compare --network powerlaw:3000,3 --horizon 100 --protocols irs,fwa --agents --rounds-per-second 2
      banditmesh compare study.toml --against flooding
      banditmesh compare study.toml --protocols irs,fwa --ttl 6
      banditmesh compare --protocols 'fwa,flooding+growth(0.25)' --node-toml 'flooding(4)+growth(0.25)'
      banditmesh compare --change 'switching(0.002)' --policies 'ucb(0.5),ucb(0.5)+discount(0.995)'
      banditmesh compare --network my-network.graphml --protocols fwa,flooding,tree --report report.html
      banditmesh compare --preset beyond
    """
    from ..comparisons.compare import compare
    from ..comparisons.entries import read_entries
    from ..protocols.notation import labels

    if preset is not None:
        refuse_idle(click.get_current_context(), "report", "a preset prints its own tables")
        run_preset(click.get_current_context(), preset, options["replicates"], options["seed"], as_json)
        return
    if rounds_per_second is not None:
        rounds_per_second = checks.positive("--rounds-per-second", rounds_per_second)
    choosing = read_policies(policies)
    case = read_case(spec_path, **options, chooses=choosing is not None)
    if choosing is not None:
        case = replace(case, policies=tuple(choosing))
    if case.policy is None and live is not None:
        raise InputError("--node-toml needs one policy, got several; give --policy, or one in the spec")
    if picture:
        check_picture("--plot", picture)
    if against is not None:
        _check_against(against, list(read_entries(case.protocols, case.policies if case.policy is None else ())))
    lines = None if live is None else _node_toml(live, labels(case.protocols), case.policy)
    comparison = compare(case.problem, case.protocols, **case.settings)
    _print(case, comparison, against, as_json, live, lines, agents, rounds_per_second)
    # Last: whatever goes wrong with a picture, the results are there.
    if picture:
        write_picture(comparison.plot(), picture)
    if report is not None:
        comparison.report(report, repr(case.problem), command_line(click.get_current_context()))


def _print(
    case: Case,
    comparison: Comparison,
    against: str | None,
    as_json: bool,
    live: str | None,
    lines: str | None,
    agents: bool,
    pace: float | None,
) -> None:
    from ..comparisons.shown import comparison_rows
    from ..policies import UCB

    if as_json:
        values: dict[str, Any] = {case.network: comparison.to_json(agents=agents, rounds_per_second=pace)}
        if case.policy not in (None, UCB()):
            values["policy"] = repr(case.policy)
        if case.faults is not None:
            values["faults"] = repr(case.faults)
        if used := _replayed(case, comparison):
            values["replay"] = {
                name: {"used_up": one.n_used_up, "stopped": one.n_stopped} for name, one in used.items()
            }
        if against is not None:
            values["differences"] = json.loads(comparison.differences(against).to_json(orient="index"))
        if lines is not None:
            values["node_toml"] = lines
        click.echo(json.dumps(values, indent=2))
        return
    click.echo(repr(case.problem))
    spread = "; ±: standard deviation over replicates" if case.replicates > 1 else ""
    click.echo(f"horizon {case.horizon}, {case.replicates} replicates, seed {case.seed}, {case.rules} rules{spread}")
    if case.policy not in (None, UCB()):
        click.echo(repr(case.policy))
    click.echo(f"{case.faults}\n" if case.faults else "")
    rows = comparison_rows(comparison, agents, pace)
    click.echo("\n".join([as_text(rows, widths=(14, 21, 27)), *comparison.notes]))
    for name, one in _replayed(case, comparison).items():
        click.echo(f"{name}: {one}, mean of the replicates")
    if against is not None or (case.replicates > 1 and len(comparison.results) > 1):
        against = against or list(comparison.results)[-1]
        intervals = ", with 95 % confidence intervals" if case.replicates > 1 else ""
        click.echo(f"\nPaired differences from {against}{intervals}\n")
        click.echo(_format_differences(comparison, against))
    if lines is not None:
        click.echo(f"\n{live} in node.toml:\n\n{lines}", nl=False)


def _node_toml(name: str, protocols: Mapping[str, AnyProtocol], policy: Policy | None) -> str:
    """The lines of a node.toml for one of the protocols, as it is called in the table or written out."""
    from ..live.template import protocol_lines
    from ..protocols.notation import write

    known = {write(protocol): protocol for protocol in protocols.values()} | dict(protocols)
    if name not in known:
        raise InputError(f"--node-toml must be one of {', '.join(protocols)}; got {name!r}")
    return protocol_lines(known[name], policy)


def _replayed(case: Case, comparison: Comparison) -> dict[str, Replayed]:
    """What each protocol used up of a log's rewards; nothing if none are replayed."""
    from ..sim.replay import replayed, replays

    if not replays(case.problem):
        return {}
    return {name: replayed(case.problem, result) for name, result in comparison.results.items()}


def _format_differences(comparison: Comparison, against: str) -> str:
    from ..comparisons.shown import difference_rows

    return as_text(difference_rows(comparison, against), widths=(max(14, *map(len, comparison.results)), 29, 41))


def _check_against(against: str, names: list[str]) -> None:
    if len(names) == 1:
        raise InputError(f"--against has no effect: {names[0]} is the only protocol; leave it out, or name more")
    if against not in names:
        near = checks.meant(against, names)
        raise InputError(f"--against must be one of {', '.join(names)}; got {against!r}{near}")
