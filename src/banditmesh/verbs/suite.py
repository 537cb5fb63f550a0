"""`suite`: protocols and algorithms on a fixed set of problems, and published results run again."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import click

from ..errors import StudyError
from ..text_tables import as_text
from .options import check_folder

_ENTRY_HELP = (
    "Your own entry, as in my_module:MyProtocol or 'my_module:MyProtocol(4), klucb'; may be repeated. One that needs a "
    "ttl and has none gets the diameter."
)

_engine = click.option(
    "--engine",
    type=click.Choice(["auto", "reference", "compiled"]),
    default="auto",
    show_default=True,
    help="Which engine; results do not depend on it.",
)


@click.group("suite", invoke_without_command=True, short_help="Protocols and algorithms on a fixed set of problems.")
@click.option("--size", type=click.Choice(["small", "full"]), default="small", show_default=True, help="Which size.")
@click.option("--problems", metavar="NAME,NAME,...", help="Only these problems; `suite list` has their names.")
@click.option("--rows", metavar="ROW", multiple=True, help="Only this row, as in 'fwa(diameter)'; may be repeated.")
@click.option("--entry", "entries", metavar="ENTRY", multiple=True, help=_ENTRY_HELP)
@click.option("--horizon", type=int, help="Number of rounds, instead of the size's, to try something out.")
@click.option("--replicates", type=int, help="Number of repetitions, instead of the size's.")
@click.option("--estimate", is_flag=True, help="Only say how long it would take, from short runs of all rows.")
@click.option("--workers", type=click.IntRange(min=1), help="Local processes; one per core by default.")
@click.option("--executor", metavar="NAME", help="dask, dask:ADDRESS, ray or ray:ADDRESS instead of local processes.")
@_engine
@click.option(
    "--out", default="suite-output", show_default=True, type=click.Path(file_okay=False), help="The folder to write to."
)
@click.option("--docs", default="docs", show_default=True, help="Where the page's links to the documentation lead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def suite_verb(
    context: click.Context,
    /,
    size: str,
    problems: str | None,
    rows: tuple[str, ...],
    entries: tuple[str, ...],
    estimate: bool,
    out: str,
    docs: str,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Run the suite: tables, fronts, what budgets buy, and a sentence per problem about your own entry.

    The same command again continues where it stopped. Results do not depend on workers or executors.

    \b
    Examples:
      banditmesh suite --out small
      banditmesh suite --size full --estimate
      banditmesh suite --size full --workers 2 --out full
      banditmesh suite --entry my_module:MyProtocol --out mine
      banditmesh suite --problems equal-ring,faults --rows none --rows 'fwa(diameter)' --json
      banditmesh suite check full/results.json --sample 20
    """
    if context.invoked_subcommand is not None:
        return
    from .. import suite

    chosen: dict[str, Any] = {
        "problems": None if problems is None else [name.strip() for name in problems.split(",")],
        "rows": rows or None,
        "entries": entries,
    }
    if estimate:
        chosen |= {name: settings[name] for name in ("horizon", "replicates", "engine")}
        _tell_estimate(suite.estimate(size, **chosen), size, settings["workers"], as_json)
        return
    check_folder("--out", out)
    try:
        result = suite.run(size, out=out, **chosen, **settings)
    except KeyboardInterrupt:
        click.echo(f"banditmesh: interrupted; run the same command again to continue from {out}", err=True)
        raise click.exceptions.Exit(130) from None
    _tell(result, as_json, f"{out}/page.html", docs)
    if not as_json:
        click.echo(f"\n{click.format_filename(out)} has results.json and page.html")


@suite_verb.command("list", short_help="The problems and what they ask.")
def list_verb() -> None:
    r"""Print the problems, what they ask, and their sizes.

    \b
    Example:
      banditmesh suite list
    """
    from ..suite.problems import PROBLEMS, SIZES

    rows = [["problem", "agents", *(f"{size}, rounds x replicates" for size in SIZES), "asks"]]
    for name, one in PROBLEMS.items():
        sizes = ["{:,} x {}".format(*one.size(size)) for size in SIZES]
        rows.append([name, str(one.problem.n_agents), *sizes, one.question])
    click.echo(as_text(rows, left=(0, 4)))


@suite_verb.command("show", short_help="Print a file of results, or make its page.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("--page", type=click.Path(dir_okay=False), help="Also write the page to this file.")
@click.option("--docs", default="docs", show_default=True, help="Where the page's links to the documentation lead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_verb(path: str, page: str | None, docs: str, as_json: bool) -> None:
    r"""Print what a file of results says. Nothing is run.

    \b
    Examples:
      banditmesh suite show full/results.json
      banditmesh suite show published.json --page published.html
    """
    from ..suite.result import SuiteResult

    _tell(SuiteResult.load(path), as_json, page, docs)


@suite_verb.command("check", short_help="Run a sample of published results again.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("--sample", default=10, show_default=True, help="How many replicates of rows to run again.")
@click.option("--rows", help="Only rows whose name contains this.")
@click.option("--seed", type=int, help="Seed of the sample; by default a new sample each time.")
@click.option("--entry", "entries", metavar="ENTRY", multiple=True, help="An entry by the author that may be run.")
@_engine
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_verb(path: str, as_json: bool, **settings: Any) -> None:
    r"""Check the hashes of a file of results, run a sample of it again, and say which rows hold.

    A row holds if the same replicate gives the same numbers. Exit status 1 if any differs.

    \b
    Examples:
      banditmesh suite check full/results.json
      banditmesh suite check theirs.json --rows their_module --entry their_module:Theirs --sample 5
    """
    from dataclasses import asdict

    from .. import suite
    from ..sim.progress import terminal_bar

    with terminal_bar("check", "replicates") as progress:
        found = suite.check(path, progress=progress, **settings)
    counts = Counter(one.verdict for one in found)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        rows = [["verdict", "problem", "row", "replicate", "why"]]
        rows += [[one.verdict, one.problem, one.row, str(one.replicate), one.why] for one in found]
        click.echo(as_text(rows, left=(0, 1, 2, 4)))
        click.echo(f"\n{counts['holds']} of {len(found)} hold, {counts['differs']} differ, {counts['open']} are open")
    if counts["differs"]:
        first = next(one for one in found if one.verdict == "differs")
        raise StudyError(
            f"{path} does not hold: {first.row} on {first.problem}, replicate {first.replicate}: {first.why}; "
            "ask its author, or compare the versions"
        )


def _tell(result: Any, as_json: bool, page: str | None, docs: str) -> None:
    from ..suite.page import write_page

    click.echo(json.dumps(result.to_json(), indent=2) if as_json else str(result))
    if page is not None:
        write_page(result, page, docs)


def _tell_estimate(seconds: dict[str, float], size: str, workers: int | None, as_json: bool) -> None:
    from ..machine.cores import count_cores

    n_workers = workers or count_cores()
    hours = sum(seconds.values()) / n_workers / 3600
    if as_json:
        click.echo(json.dumps({"seconds": seconds, "workers": n_workers, "hours": hours}, indent=2))
        return
    rows = [["problem", "minutes of one core"], *([name, f"{one / 60:,.1f}"] for name, one in seconds.items())]
    click.echo(as_text(rows))
    click.echo(f"\nsize {size} would take about {hours:,.2g} hours with {n_workers} workers, and time to compile")
