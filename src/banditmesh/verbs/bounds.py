"""`bounds`: what theory says of a problem, as published and as it holds."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..text_tables import as_text
from .cases import read_case
from .options import (
    PROTOCOLS_HELP,
    check_picture,
    problem_options,
    refuse_idle,
    say,
    spec_option,
    write_picture,
)

if TYPE_CHECKING:
    from ..studies.case import Case
    from ..theory.bounds import Bounds


@click.command("bounds", short_help="Regret and traffic bounds, published and corrected.")
@click.argument("spec_path", metavar="[SPEC.toml]", required=False, type=click.Path(dir_okay=False))
@problem_options
@spec_option(
    "--protocols",
    "names",
    default="none,irs,fwa,flooding",
    show_default=True,
    help=PROTOCOLS_HELP,
)
@click.option("--alpha", type=float, help="UCB's parameter; the spec's, or 3, by default.")
@click.option(
    "--cover",
    type=click.Choice(["exact", "dsatur", "greedy"]),
    default="exact",
    show_default=True,
    help="How clique covers are found; the paper uses greedy.",
)
@click.option("--time-limit", default=300.0, show_default=True, help="Seconds for the exact covers of a protocol.")
@click.option("--plot", "picture", type=click.Path(dir_okay=False), help="Also simulate, and plot both to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bounds_verb(
    spec_path: str | None,
    alpha: float | None,
    cover: str,
    time_limit: float,
    picture: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Regret and traffic bounds, as the paper states them and as they hold, with what each requires.

    Bounds are for UCB under the sound rules. Where the paper's theorems do not apply, such as to the losses and delays
    of a spec, the delivery theorem does; the last column has its values, and the best constant known.

    \b
    Examples:
      banditmesh bounds --network er --protocols fwa,flooding
      banditmesh bounds --network my-network.graphml --arms 30 --per-agent 5 --cover dsatur --json
      banditmesh bounds --network er --protocols fwa --plot fwa.svg --replicates 5
    """
    from ..protocols.notation import labels
    from ..theory.bounds import bounds

    context = click.get_current_context()
    if picture is None:
        refuse_idle(context, "replicates", "without --plot, nothing is simulated")
    if cover != "exact":
        refuse_idle(context, "time_limit", f"{cover} covers take no time worth limiting")
    case = read_case(spec_path, **options)
    if picture:
        check_picture("--plot", picture)
        if len(case.protocols) > 1:
            raise InputError(f"--plot draws one protocol, got {len(case.protocols)}; name one with --protocols")
    alpha = case.alpha("give --alpha to see them all the same") if alpha is None else alpha
    found: list[Bounds] = []
    for protocol in case.protocols:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            settings: dict[str, Any] = {"faults": case.faults, "time_limit": time_limit}
            found.append(bounds(case.problem, protocol, alpha, case.horizon, cover, **settings))
        for warning in caught:
            say(warning.message)
    if case.rules != "sound":
        say("the bounds are for the sound rules; the published ones break their proofs")
    if as_json:
        named = zip(labels(case.protocols), found, strict=True)
        click.echo(json.dumps({case.network: {name: one.to_json() for name, one in named}}, indent=2))
    else:
        click.echo(f"{case.problem!r}\nUCB with alpha {alpha:g}, horizon {case.horizon}, {cover} covers")
        for one in found:
            click.echo(f"\n{_format(one)}")
    # Last: whatever goes wrong with a simulation or its picture, the bounds are there.
    if picture:
        _draw(case, found[0], alpha, picture)


def _draw(case: Case, found: Bounds, alpha: float, picture: str) -> None:
    from ..policies import UCB
    from ..sim.engine import simulate

    settings = {name: getattr(case, name) for name in ("horizon", "replicates", "seed", "rules", "faults")}
    result = simulate(case.problem, case.protocols[0], policy=UCB(alpha), **settings)
    write_picture(found.plot(result), picture)


def _format(found: Bounds) -> str:
    rows = found.rows()
    lines = [as_text(rows, widths=(40, *[13] * (len(rows[0]) - 1)))]
    return "\n".join([*lines, *(f"  {line}" for line in (*found.notes, *found.conditions))])
