"""`keys`: the authority of a live mesh, what it issues to nodes, and the notices that it signs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .options import token_option

if TYPE_CHECKING:
    from pathlib import Path


@click.group("keys", no_args_is_help=False, short_help="Certificates and notices of a live mesh.")
def keys_verb() -> None:
    r"""Make the keys of a mesh, and sign notices about members that leave it.

    \b
    Examples:
      banditmesh keys init --mesh shop
      banditmesh keys issue a b c
    """


def _authority(command: Any) -> Any:
    return click.option(
        "--authority",
        default="authority",
        show_default=True,
        type=click.Path(file_okay=False),
        help="The authority's folder. Keep it off the nodes.",
    )(command)


def _certificates(command: Any) -> Any:
    """The options of what makes certificates for nodes."""
    trust = "Certificate of another authority that nodes also trust."
    command = click.option("--trust", multiple=True, type=click.Path(dir_okay=False), help=trust)(command)
    command = click.option("--days", default=365, show_default=True, help="How long certificates are valid.")(command)
    out = click.Path(file_okay=False)
    command = click.option("--out", default="keys", show_default=True, type=out, help="The nodes' folder.")(command)
    return click.argument("names", metavar="NAME...", nargs=-1)(_authority(command))


@keys_verb.command("init", short_help="Make the authority of a mesh.")
@click.option("--mesh", required=True, help="The mesh's name.")
@_authority
@click.option("--days", default=3650, show_default=True, help="How long the authority's certificate is valid.")
@click.option("--force", is_flag=True, help="Replace an existing authority, which locks out all its members.")
def init_verb(mesh: str, authority: str, days: int, force: bool) -> None:
    r"""Make the authority of a mesh: a key that stays where it is, and a certificate.

    \b
    Example:
      banditmesh keys init --mesh shop
    """
    from ..live.transport import keys

    certificate = keys.init(authority, mesh, days=days, force=force)
    click.echo(f"{_shown(certificate)}: the authority of {mesh}; anyone who has {_shown(authority)} can make members")


@keys_verb.command("issue", short_help="Make a key and a certificate for each node.")
@_certificates
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--all",
    "names_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A file of names, one a line; nodes that have a certificate already keep it.",
)
def issue_verb(
    names: tuple[str, ...],
    authority: str,
    out: str,
    days: int,
    trust: tuple[str, ...],
    force: bool,
    names_file: str | None,
) -> None:
    r"""Make a key and a certificate for each node, as node.toml names them.

    \b
    Examples:
      banditmesh keys issue a b c
      banditmesh keys issue a --out a/keys --days 90
      banditmesh keys issue --all nodes.txt
    """
    from ..live.transport import keys
    from ..live.transport.identity import KeyFiles

    if bool(names) == (names_file is not None):
        raise InputError("nodes must be given as NAME... or by --all FILE, got both or neither")
    for name in names if names_file is None else keys.read_names(names_file):
        if names_file is not None and not force and KeyFiles.of(out, name).certificate.exists():
            click.echo(f"{_shown(KeyFiles.of(out, name).certificate)}: already there")
            continue
        files = keys.issue(authority, name, out, days=days, trust=trust, force=force)
        click.echo("\n".join(_shown(path) for path in files))


@keys_verb.command("renew", short_help="Renew the certificates of nodes.")
@_certificates
@click.option(
    "--pipe",
    is_flag=True,
    help="Read the certificate of one node from standard input and print the new one: for a node's renew_command.",
)
def renew_verb(names: tuple[str, ...], authority: str, out: str, days: int, trust: tuple[str, ...], pipe: bool) -> None:
    r"""Renew the certificates of nodes, for the same keys. A node reads them on SIGHUP.

    \b
    Examples:
      banditmesh keys renew a b c
      banditmesh keys renew a --authority new --trust old/authority.crt
      banditmesh keys renew a --pipe < a.pem > renewed.pem
    """
    from ..live.transport import keys

    if not names or (pipe and len(names) > 1):
        raise InputError(f"{'one NAME' if pipe else 'NAME...'} is required, got {len(names) or 'none'}")
    if pipe:
        given = sys.stdin.buffer.read()
        click.echo(keys.renew_pem(authority, names[0], given, days=days, trust=trust), nl=False)
        return
    for name in names:
        files = keys.renew(authority, name, out, days=days, trust=trust)
        click.echo(_shown(files.certificate))


@keys_verb.command("retire", short_help="Sign a notice that a member's data no longer counts.")
@click.argument("name", metavar="NAME")
@_authority
@click.option("--node", "url", metavar="URL", help="Ask the sidecar of this node which lives it knows.")
@token_option("A file with the sidecar's token.")
@click.option("--epoch", "epochs", multiple=True, metavar="HEX", help="The epoch of a life, if known; may be repeated.")
def retire_verb(name: str, authority: str, url: str | None, token: str | None, epochs: tuple[str, ...]) -> None:
    r"""Sign that what a member reported no longer counts, from all its lives or from some.

    \b
    Examples:
      banditmesh keys retire a --node http://127.0.0.1:7780
      banditmesh keys retire a --epoch 00c0ffee00c0ffee
    """
    from ..live.names import check_name, parse_epoch
    from ..live.transport import keys

    check_name("NAME", name)
    if (url is None) == (not epochs):
        raise InputError("lives must be given by --node or by --epoch, got both or neither")
    lives = list(epochs) if url is None else _lives(name, url, token)
    if not lives:
        raise InputError(f"there must be a life of {name!r} to retire, but {url} knows none")
    _hand_in(keys.retire(authority, name, [parse_epoch(life) for life in lives]))


@keys_verb.command("expel", short_help="Sign a notice that a member is no longer accepted.")
@click.argument("name", metavar="NAME")
@_authority
def expel_verb(name: str, authority: str) -> None:
    r"""Sign that a member's present certificates are no longer accepted. What it signed under them leaves, too.

    \b
    Example:
      banditmesh keys expel a
    """
    from ..live.transport import keys

    _hand_in(keys.expel(authority, name))


def _lives(name: str, url: str, token: str | None) -> list[str]:
    from ..live.http.client import Client

    with Client(url, token) as node:
        return node.lives(name)


def _hand_in(notice: Path) -> None:
    path = _shown(notice)
    click.echo(f"{path}\nhand it to any node: banditmesh node notice {path} --url http://127.0.0.1:7780")


def _shown(path: Path | str) -> str:
    # A folder may have any name, and not every one can be printed.
    return str(click.format_filename(path))
