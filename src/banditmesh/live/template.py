"""The node.toml that `banditmesh node new` writes, and the lines of one that name a protocol and a policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

from ..policies import UCB, Policy
from ..protocols import AnyProtocol, FwA, Growth
from ..settings import parts
from .names import check_name
from .runnable import refuse_live
from .transport.identity import KeyFiles

_TEMPLATE: Final = """\
# A node of the mesh {mesh_comment}. Start it with:   banditmesh node --config node.toml
# `banditmesh node check node.toml` says what is wrong with this file. Paths are meant from its folder.
# Neighbours, arms, ignore and certificates are read again on SIGHUP; the rest when the node starts.

mesh = {mesh}
node = {node}
listen = {listen}            # for neighbours; leave it out if this node dials all of them
state = "state"                     # the folder of what it has learned: one node, one folder
accept = "neighbours"               # or "members": any node with a certificate of the mesh may link
# ignore = ["name", ["name", "0123456789abcdef"]]    # nodes, or single lives, to know nothing of
# max_ttl = 8                       # the most hops granted to what others send; the protocol's ttl if not given
# ticket_lifetime = 86400.0         # seconds after which a reward for a choice is refused
# open_choices = 100000             # how many of the last choices can still be rewarded
# plain = true                      # links without keys, between loopback addresses only: to try things out
# log = "json"                      # or "plain"
# log_level = "info"                # debug, info, warning or error

[keys]                              # made by `banditmesh keys init` and `banditmesh keys issue {node_comment}`
certificate = {certificate}
key = {key}
authorities = {authorities}     # two certificates in it while the authority is being replaced

[api]                               # for programs on this machine
listen = "127.0.0.1:7780"           # or "unix:node.sock"; anywhere else needs a token
# token_file = "token"
# hosts = ["node.internal"]         # further names that clients call it by

{protocol}
# One table for each arm. law is gaussian, bernoulli, uniform or other; klucb, thompson and moss need a sigma, unless
# the law is bernoulli. Rewards outside of reward_range are refused, also those that others report.
{arms}
# One table for each neighbour; without an address this node waits for it to dial.
{neighbours}
# [caps]                            # the most that this node keeps; beyond, what is new is refused and counted
# origins = 10000
# epochs = 64
# arms = 10000
# entries = 200000
# links = 256
# notices = 10000
"""


def template(
    mesh: str = "mesh",
    node: str = "node",
    *,
    listen: str = "0.0.0.0:7700",
    arms: Sequence[str] = ("red", "green", "blue"),
    neighbours: Iterable[tuple[str, str]] = (),
    protocol: AnyProtocol | None = None,
    policy: Policy | None = None,
) -> str:
    """A commented node.toml, right as it is once its keys are there.

    Parameters
    ----------
    mesh, node : str
        Who the node is.
    listen : str
        Where it listens for neighbours.
    arms : sequence of str
        The names of its arms.
    neighbours : iterable of (str, str)
        Names and addresses.
    protocol, policy : optional
        `fwa(4)+growth(0.25)` and `ucb` unless given.

    Examples
    --------
    >>> print(template("shop", "berlin").splitlines()[4])
    mesh = "shop"
    """
    check_name("mesh", mesh)
    check_name("node", node)
    files = KeyFiles.of("keys", node)
    found = "\n".join(
        f"[[neighbours]]\nname = {toml(name)}\naddress = {toml(address)}\n" for name, address in neighbours
    )
    return _TEMPLATE.format(
        mesh=toml(mesh),
        node=toml(node),
        mesh_comment=toml(mesh),
        node_comment=toml(node),
        listen=toml(listen),
        certificate=toml(files.certificate.as_posix()),
        key=toml(files.key.as_posix()),
        authorities=toml(files.authorities.as_posix()),
        protocol=protocol_lines(protocol or FwA(4, emission=Growth(0.25)), policy or UCB()),
        arms="\n".join(f'[[arms]]\nname = {toml(name)}\nlaw = "gaussian"\nsigma = 1.0\n' for name in arms),
        neighbours=found or '# [[neighbours]]\n# name = "other"\n# address = "10.0.0.8:7700"\n',
    )


def protocol_lines(protocol: AnyProtocol, policy: Policy | None = None) -> str:
    """The lines of a node.toml that name a protocol, with its emission, and a policy.

    Raises
    ------
    InputError
        If one of them cannot run live.

    Examples
    --------
    >>> import banditmesh as bm
    >>> print(protocol_lines(bm.FwA(4, emission=bm.Growth(0.25)), bm.UCB()))
    [protocol]
    name = "fwa"
    ttl = 4
    <BLANKLINE>
    [emission]
    name = "growth"
    factor = 0.25
    <BLANKLINE>
    [policy]
    name = "ucb"
    alpha = 3.0
    <BLANKLINE>
    """
    refuse_live(protocol, policy)
    found = [
        _table("protocol", protocol),
        *([_table("emission", protocol.emission)] if protocol.sends_messages else []),
    ]
    return "\n".join([*found, *([] if policy is None else [_table("policy", policy)])])


def toml(value: object) -> str:
    """A string, a number or a truth value as TOML writes it.

    Examples
    --------
    >>> toml("red"), toml(4), toml(True), toml(1e16)
    ('"red"', '4', 'true', '1e+16')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _table(name: str, value: Any) -> str:
    """A table with its first parameter, and with those that are not the default."""
    taken = parts.named(name)[value.name].parameters
    settable = sorted((one for one in fields(value) if one.name in taken), key=lambda one: bool(one.kw_only))
    lines = [
        f"{one.name} = {toml(getattr(value, one.name))}"
        for place, one in enumerate(settable)
        if ((place == 0 and not one.kw_only) or getattr(value, one.name) != one.default)
        and getattr(value, one.name) is not None
    ]
    return "\n".join([f"[{name}]", f"name = {toml(value.name)}", *lines, ""])
