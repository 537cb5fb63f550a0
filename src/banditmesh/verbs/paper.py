"""`paper`: the published experiments, compared with the published values."""

from __future__ import annotations

import shlex

import click

from .options import check_folder


@click.command("paper", short_help="The published experiments, compared with the published values.")
@click.option(
    "--figure",
    type=click.Choice(["3", "4", "5", "6", "all"]),
    default="all",
    show_default=True,
    help="Which figure: 3, static networks; 4, one link; 5, a dynamic network; 6, regret against delta; or all.",
)
@click.option(
    "--rules",
    type=click.Choice(["published", "sound", "both"]),
    default="published",
    show_default=True,
    help="The author's code and figures, the paper's text and theory, or both in turn.",
)
@click.option("--replicates", default=10, show_default=True, help="Number of repetitions.")
@click.option("--horizon", default=1000, show_default=True, help="Number of rounds.")
@click.option("--seed", default=0, show_default=True, help="Seed of arms, rewards and everything else that is random.")
@click.option("--instances", default=1, show_default=True, help="Number of arm instances.")
@click.option(
    "--out", default="paper-output", show_default=True, type=click.Path(file_okay=False), help="The folder to write to."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def paper_verb(figure: str, rules: str, out: str, as_json: bool, **options: int) -> None:
    r"""Repeat the paper's experiments, and write tables, pictures and an HTML report.

    \b
    Examples:
      banditmesh paper --figure 3
      banditmesh paper --figure all --rules both --out report
      banditmesh paper --figure 3 --instances 20
    """
    from ..paper.agreement import to_json
    from ..paper.report import write_paper
    from ..paper.reproduction import reproduce
    from ..sim.progress import terminal_bar

    check_folder("--out", out)
    reproductions = []
    for one in ("published", "sound") if rules == "both" else (rules,):
        with terminal_bar("paper", "simulations") as progress:
            reproductions.append(reproduce(figure, rules=one, progress=progress, **options))
    given = {"figure": figure, "rules": rules}
    given |= {name: str(options[name]) for name in ("replicates", "horizon", "seed", "instances")}
    written_out = [word for name, value in given.items() for word in (f"--{name}", value)]
    command = shlex.join(["banditmesh", "paper", *written_out])
    written = write_paper(reproductions, out, command)
    if as_json:
        click.echo(written[1].read_text(), nl=False)
        return
    for each in reproductions:
        _tell(to_json(each))
    click.echo(f"\n{click.format_filename(written[0])} is the report; its folder has {len(written) - 1} other files")


def _tell(values: dict[str, object]) -> None:
    from ..paper.report import summary_lines
    from ..paper.tables import tables
    from ..text_tables import as_text

    click.echo(
        f"\n{values['rules']} rules, horizon {values['horizon']}, {values['replicates']} replicates, "
        f"{values['instances']} arm instance(s) from seed {values['seed']}, ± over {values['sd_over']}"
    )
    if not values["comparable"]:
        click.echo("the published values are for 1000 rounds and cannot be compared with another horizon")
    for title, rows in tables(values).items():
        click.echo(f"\n{title}\n{as_text(rows)}")
    claims: list[dict[str, str]] = values["claims"]  # type: ignore[assignment]
    rows = [["verdict", "figure", "where", "claim", "numbers"]]
    rows += [[claim[key] for key in ("verdict", "figure", "where", "claim", "evidence")] for claim in claims]
    click.echo(f"\nThe paper's claims, by the {values['rules']} rules")
    click.echo(as_text(rows, left=None))
    click.echo("\n" + "\n".join(summary_lines(values)))
