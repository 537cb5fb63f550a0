"""`new`, `run` and `plot`: studies from a spec to pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .. import checks
from ..errors import InputError, StudyError
from ..text_tables import as_text
from .options import command_line, report_option, say


@click.command("new", short_help="Print a commented spec to start from.")
def new_verb() -> None:
    r"""Print a commented spec that runs as it is in a few seconds.

    \b
    Example:
      banditmesh new > study.toml && banditmesh run study.toml --out results
    """
    from ..studies.template import TEMPLATE

    click.echo(TEMPLATE, nl=False)


@click.command("run", short_help="Run an experiment or a sweep from a spec, or continue it.")
@click.argument("spec_path", metavar="SPEC.toml", type=click.Path(dir_okay=False))
@click.option("--out", required=True, type=click.Path(file_okay=False), help="The folder of the study.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of the spec; may be repeated."
)
@click.option("--loss", type=float, help="Probability that a transmission is lost; short for --set faults.loss=...")
@click.option("--workers", type=click.IntRange(min=1), help="Local processes; one per core by default.")
@click.option("--executor", metavar="NAME", help="dask, dask:ADDRESS, ray or ray:ADDRESS instead of local processes.")
@click.option("--max-runs", type=int, show_default="1000000", help="Maximum number of runs of a study.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first run that fails.")
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run_verb(
    spec_path: str,
    out: str,
    overrides: tuple[str, ...],
    loss: float | None,
    max_runs: int | None,
    report: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Run the study of a spec. The same command again continues where it stopped.

    With more replicates or more swept values the study grows: only what is new is run.

    \b
    Examples:
      banditmesh run study.toml --out results --workers 4
      banditmesh run study.toml --out long --set horizon=5000 --set sweep.protocol.ttl=[2,4,6]
      banditmesh run study.toml --out lossy --loss 0.1 --set 'faults.outages={down=0.01, up=0.1}'
      banditmesh run study.toml --out results --executor dask:tcp://127.0.0.1:8786
    """
    from ..studies.reading import MAX_RUNS, read_spec
    from ..studies.runner import run_study

    overrides = overrides if loss is None else (*overrides, f"faults.loss={loss}")
    spec = read_spec(spec_path, overrides, max_runs=MAX_RUNS if max_runs is None else max_runs)
    try:
        with study_progress(spec.settings.name) as progress:
            study = run_study(spec, out, progress=progress, notice=say, **options)
    except KeyboardInterrupt:
        say(_interrupted(out))
        raise click.exceptions.Exit(130) from None
    _tell(study, as_json)
    if report is not None and study.manifest["n_failed"] < study.manifest["n_runs"]:
        study.report(report, command_line(click.get_current_context()))
    if study.manifest["n_failed"]:
        table = study.table()
        error = table["error"].dropna().iloc[0]
        raise StudyError(
            f"{study.manifest['n_failed']} of {study.manifest['n_runs']} runs failed, the first with {error}; "
            "the same command tries them again"
        )


def _interrupted(out: str) -> str:
    from ..studies.store import Study

    try:
        manifest = Study(out).manifest
    except StudyError:
        return f"interrupted before anything ran; run the same command again to begin in {out}"
    kept = f"{manifest['n_done']} of {manifest['n_runs']} runs are kept in {out}"
    return f"interrupted; {kept}, run the same command again to continue"


def _tell(study: Any, as_json: bool) -> None:
    import json

    from ..studies.summary import summary_rows

    manifest = study.manifest
    if as_json:
        keys = ("state", "n_points", "n_runs", "n_done", "n_failed", "seeds", "versions", "digest")
        click.echo(json.dumps({"study": str(study.path), **{key: manifest[key] for key in keys}}, indent=2))
        return
    click.echo(f"{manifest['spec']['name']}: {manifest['n_runs']} runs of {manifest['n_points']} points, complete")
    table = study.table()
    rows, hidden = summary_rows(table)
    click.echo(as_text(rows, left=()))
    if hidden:
        click.echo(f"... and {hidden} more points")
    if "agents_stopped" in table:
        used_up, stopped = table["arms_used_up"].mean(), table["agents_stopped"].mean()
        click.echo(f"{used_up:,.4g} arms of agents used up, {stopped:,.4g} agents stopped, mean of the replayed runs")
    # As text: a folder may have any name, and not every one can be printed.
    file, folder = (click.format_filename(path) for path in (study.path / "table.csv", study.path))
    click.echo(f"\n{file} has every run; banditmesh plot {folder} draws them")


@contextmanager
def study_progress(label: str) -> Iterator[Callable[[int, int, int], None] | None]:
    """Progress of runs as a bar, if there is a terminal."""
    from ..sim.progress import terminal_bar

    with terminal_bar(label, "runs", elapsed=True) as show:
        yield show and (lambda done, total, failed: show(done, total, f"{failed} failed" if failed else ""))


@click.command("plot", short_help="Plot a study.")
@click.argument("study", metavar="STUDY", type=click.Path(file_okay=False))
@click.option("--out", type=click.Path(file_okay=False), help="The folder to write to; by default that of the study.")
@click.option(
    "--x", "axis", metavar="KEY", help="The swept key on the horizontal axis; by default the first numeric one."
)
@click.option(
    "--where",
    "wheres",
    multiple=True,
    metavar="KEY=VALUE",
    help="Plot only runs with this value; may be repeated, also for one key.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="A key that separates lines, instead of all keys that vary; may be repeated.",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(["png", "svg", "pdf"]),
    multiple=True,
    default=("png", "svg"),
    show_default=True,
    help="The format; may be repeated.",
)
@click.option("--log", type=click.Choice(["x", "y", "xy"]), help="Which axes are logarithmic.")
@click.option(
    "--band",
    type=click.Choice(["sd", "ci", "none"]),
    default="sd",
    show_default=True,
    help="Bands and bars: one standard deviation, 95 % confidence intervals, or none.",
)
@report_option
@click.option("--size", type=(float, float), metavar="WIDTH HEIGHT", help="The size of each picture, in inches.")
def plot_verb(
    study: str,
    out: str | None,
    axis: str | None,
    wheres: tuple[str, ...],
    by: tuple[str, ...],
    kinds: tuple[str, ...],
    log: str | None,
    band: str,
    report: str | None,
    size: tuple[float, float] | None,
) -> None:
    r"""Plot regret and transmissions of a study: over time, over a swept key, and against each other.

    \b
    Examples:
      banditmesh plot results --x protocol.ttl --kind pdf
      banditmesh plot results --kind pdf --size 3.3 4 --log y --band ci
      banditmesh plot results --where protocol.ttl=4 --where policy=ucb --where policy=klucb --by policy
    """
    from ..plots import Look
    from ..studies.pictures import draw_study
    from ..studies.store import Study

    for side in size or ():
        checks.positive("--size", side)
    found = Study(study)
    look = Look(figsize=size, log=log or "", band=band)
    where: dict[str, list[str]] = {}
    for one in wheres:
        key, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"--where must be KEY=VALUE, got {checks.shown(one)}")
        where.setdefault(key.strip(), []).append(value)
    paths = draw_study(found, Path(out or study), axis, kinds, look, where=where, by=by or None, notice=say)
    for path in paths:
        click.echo(click.format_filename(path))
    if report is not None:
        found.report(report, command_line(click.get_current_context()))
        click.echo(click.format_filename(report))
