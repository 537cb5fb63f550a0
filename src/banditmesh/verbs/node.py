"""`node`: a node of a live mesh with its sidecar, its configuration, backups and notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .options import token_option

if TYPE_CHECKING:
    from ..live.http.client import Client


@click.group("node", invoke_without_command=True, short_help="A node of a live mesh, with an HTTP API.")
@click.option(
    "--config",
    metavar="NODE.toml",
    type=click.Path(dir_okay=False),
    help="The node's configuration; `node new` prints one.",
)
@click.option("--new-life", is_flag=True, help="Move the state aside, even a damaged one, and begin a new life.")
@click.pass_context
def node_verb(context: click.Context, config: str | None, new_life: bool) -> None:
    r"""Run a node until SIGTERM; SIGHUP reads the configuration again.

    \b
    Examples:
      banditmesh node new --mesh shop --node a > node.toml
      banditmesh node check node.toml
      banditmesh node --config node.toml
    """
    if context.invoked_subcommand is not None:
        if config is not None or new_life:
            raise click.UsageError("--config and --new-life are for running a node, without a subcommand", context)
        return
    if config is None:
        raise click.UsageError("--config is required to run a node; 'banditmesh node new' writes one", context)
    from ..live.links.notices import need

    need("uvicorn")
    from ..live.http.serving import run

    run(config, new_life=new_life)


@node_verb.command("new", short_help="Print a commented node.toml to start from.")
@click.option("--mesh", default="mesh", show_default=True, help="The mesh's name.")
@click.option("--node", "name", default="a", show_default=True, help="The node's name.")
@click.option(
    "--law",
    default="bernoulli",
    show_default=True,
    type=click.Choice(("bernoulli", "gaussian", "uniform", "other")),
    help="What its arms pay: for coins (bernoulli) the policy is klucb, else ucb.",
)
def new_verb(mesh: str, name: str, law: str) -> None:
    r"""Print a commented node.toml.

    \b
    Examples:
      banditmesh node new --mesh shop --node a > node.toml
      banditmesh node new --mesh shop --node a --law gaussian > node.toml
    """
    from ..live.template import template

    click.echo(template(mesh, name, law), nl=False)


@node_verb.command("check", short_help="Check a node.toml, or several of a mesh.")
@click.argument("paths", metavar="NODE.toml...", nargs=-1, required=True, type=click.Path(dir_okay=False))
def check_verb(paths: tuple[str, ...]) -> None:
    r"""List everything that is wrong with a node.toml, warn about what soon will be, and note what may be overlooked.

    \b
    Examples:
      banditmesh node check node.toml
      banditmesh node check a.toml b.toml c.toml
    """
    from ..live.config import check, load, notes, warnings

    problems = [problem for path in paths for problem in check(path)]
    for problem in problems[:-1]:
        click.echo(problem, err=True)
    if problems:
        raise InputError(problems[-1])
    for path in paths:
        warned = warnings(path)
        for warning in warned:
            click.echo(f"warning: {warning}", err=True)
        click.echo(f"{click.format_filename(path)}: {'a node can start with it' if warned else 'nothing is wrong'}")
    for note in notes([load(path) for path in paths]):
        click.echo(f"note: {note}", err=True)


@node_verb.command("decisions", short_help="Join decision logs into one table.")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--out", metavar="TABLE", required=True, type=click.Path(dir_okay=False), help="The table: .parquet or .csv."
)
@click.option("--bandit", metavar="NAME", help="Take this bandit's lines alone.")
@click.option("--segment", metavar="NAME", help="Take this segment's lines alone.")
def decisions_verb(paths: tuple[str, ...], out: str, bandit: str | None, segment: str | None) -> None:
    r"""Join the choices and rewards of decision logs, and of the full files beside them, into one table.

    A row is a reward with its choice. The table is a reward log: `--log` takes it. An arm is known there by its name:
    where two bandits or segments have arms of the same name, make one table of each.

    \b
    Examples:
      banditmesh node decisions decisions.jsonl --out clicks.parquet
      banditmesh node decisions a/decisions.jsonl b/decisions.jsonl --out clicks.parquet
      banditmesh node decisions decisions.jsonl --bandit offers --segment de --out offers-de.parquet
      banditmesh compare --network complete:2 --log clicks.parquet
    """
    from ..live.disk.decisions import join, mixed_arms, save

    if not out.endswith((".parquet", ".csv")):
        raise InputError(f"--out must end in .parquet or .csv, got {out}")
    columns, counts = join(paths, bandit, segment)
    save(columns, out)
    click.echo(
        f"{click.format_filename(out)}: {counts['rewards']} rewards ({counts['lapsed']} lapsed) of "
        f"{counts['choices']} choices; {counts['withdrawals']} withdrawn, {counts['open']} without a reward"
    )
    for what, lines in (("dropped", "were dropped when the log was written"), ("unreadable", "cannot be read")):
        if counts[what]:
            click.echo(f"warning: {counts[what]} lines {lines}, and are missing here", err=True)
    if mixed := mixed_arms(columns):
        names = ", ".join(mixed[:3]) + (", ..." if len(mixed) > 3 else "")
        click.echo(
            f"warning: several bandits or segments have arms named {names}, which --log would take for the same; "
            "choose one with --bandit and --segment",
            err=True,
        )


def _reach(command: Any) -> Any:
    """The options by which a running node is reached."""
    url = "Where its sidecar listens: http://HOST:PORT or unix:PATH."
    command = token_option("File with the token, if the sidecar needs one.")(command)
    return click.option("--url", default="http://127.0.0.1:7780", show_default=True, help=url)(command)


def _client(url: str, token: str | None) -> Client:
    from ..live.http.client import Client

    return Client(url, token, timeout=60.0)


@node_verb.command("backup", short_help="Copy the state of a running node.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
@_reach
def backup_verb(path: str, url: str, token: str | None) -> None:
    r"""Copy the state of a running node into a file. A node restored from it begins a new life.

    \b
    Example:
      banditmesh node backup a.sqlite3 --url http://127.0.0.1:7780
    """
    from pathlib import Path

    from ..files.atomic import PRIVATE, writing

    with _client(url, token) as node:
        data = node.backup()
    with writing(Path(path), durable=True, mode=PRIVATE) as file:
        file.write(data)
    click.echo(click.format_filename(path))


@node_verb.command("notice", short_help="Give a running node a notice from the authority.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
@_reach
def notice_verb(path: str, url: str, token: str | None) -> None:
    r"""Give a notice to a running node, which passes it on to all others.

    \b
    Example:
      banditmesh node notice retired.notice --url http://127.0.0.1:7780
    """
    from pathlib import Path

    data = Path(path).read_bytes()
    with _client(url, token) as node:
        node.notice(data)
    click.echo(f"{click.format_filename(path)}: accepted")
