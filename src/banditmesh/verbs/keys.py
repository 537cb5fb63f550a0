"""`keys`: the authority of a live mesh, what it issues to nodes, and the notices that it signs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import InputError
from .options import token_option

if TYPE_CHECKING:
    from pathlib import Path

#: The sidecar that is asked unless another one is named.
_NODE: Final = "http://127.0.0.1:7780"


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


@keys_verb.command("retire", short_help="Sign a notice that members' data no longer counts.")
@click.argument("names", metavar="NAME...", nargs=-1)
@_authority
@click.option("--node", "urls", multiple=True, metavar="URL", help="Ask the sidecar of this node; may be repeated.")
@token_option("A file with the sidecar's token.")
@click.option("--epoch", "epochs", multiple=True, metavar="HEX", help="The epoch of a life, if known; may be repeated.")
@click.option("--all-lives", is_flag=True, help=f"All lives that the nodes know; {_NODE} is asked unless given.")
@click.option(
    "--names", "names_file", metavar="FILE", type=click.Path(dir_okay=False), help="A file of names, one a line."
)
def retire_verb(
    names: tuple[str, ...],
    authority: str,
    urls: tuple[str, ...],
    token: str | None,
    epochs: tuple[str, ...],
    all_lives: bool,
    names_file: str | None,
) -> None:
    r"""Sign, in one notice, that what members reported no longer counts, from all their lives or from some.

    \b
    Examples:
      banditmesh keys retire a --all-lives
      banditmesh keys retire --names gone.txt --all-lives --node http://10.0.0.1:7780 --node http://10.0.0.2:7780
      banditmesh keys retire a --epoch 00c0ffee00c0ffee
    """
    from ..live.names import check_name, parse_epoch
    from ..live.transport import keys

    if bool(names) == (names_file is not None):
        raise InputError("members must be given as NAME... or by --names FILE, got both or neither")
    listed = list(names) if names_file is None else keys.read_names(names_file)
    for name in listed:
        check_name("NAME", name)
    if (all_lives or bool(urls)) == bool(epochs):
        raise InputError("lives must be given by --all-lives, by --node or by --epoch, got both or neither")
    if epochs and len(listed) > 1:
        raise InputError(f"--epoch is of one member, got {len(listed)}; use --all-lives")
    asked = urls or (_NODE,)
    found = {(listed[0], parse_epoch(epoch)) for epoch in epochs}
    if not epochs:
        for url in asked:
            found |= {(name, parse_epoch(life)) for name, lives in _lives(listed, url, token) for life in lives}
        unknown = [name for name in listed if name not in {known for known, _ in found}]
        if len(unknown) == len(listed):
            shown = " or ".join(map(repr, unknown[:3]))
            raise InputError(f"there must be a life of {shown} to retire, but {' and '.join(asked)} knows none")
        for name in unknown:
            click.echo(f"no life of {name!r} is known", err=True)
    _hand_in(keys.retire_lives(authority, sorted(found)))


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


def _lives(names: list[str], url: str, token: str | None) -> list[tuple[str, list[str]]]:
    from ..live.http.client import Client

    with Client(url, token) as node:
        return [(name, node.lives(name)) for name in names]


def _hand_in(notice: Path) -> None:
    path = _shown(notice)
    click.echo(f"{path}\nhand it to any node: banditmesh node notice {path} --url {_NODE}")


def _shown(path: Path | str) -> str:
    # A folder may have any name, and not every one can be printed.
    return str(click.format_filename(path))
