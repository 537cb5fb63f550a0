"""The node.toml that `banditmesh node new` writes, and the lines of one that name a protocol and a policy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from .. import checks
from ..errors import InputError
from ..policies import KLUCB, UCB, Policy
from ..protocols import AnyProtocol, EveryPull, Flooding, Growth, notation
from ..settings import parts
from ..settings.toml_text import value_text as toml
from ..settings.toml_text import write
from .forgetting import memory_by_rounds
from .names import check_name
from .statistics import LAWS
from .transport.identity import KeyFiles

_TEMPLATE: Final = """\
# A node of the mesh {mesh}. Start it with:   banditmesh node --config node.toml
# `banditmesh node check node.toml` says what is wrong with this file. Paths are relative to its folder.
# On SIGHUP neighbours, bandits, arms, protocol, accept, ignore, certificates, signatures, signature_grace,
# renew_command, renew_before and [trust] are read again; the rest when the node starts.

mesh = {mesh}
node = {node}
listen = "0.0.0.0:7700"            # for neighbours; leave it out if this node dials all of them
state = "state"                     # the folder for what it has learned: one node, one folder
accept = "neighbours"               # or "members": any node with a certificate of the mesh may link
# ignore = ["name", ["name", "0123456789abcdef"]]    # nodes, or single lives, to ignore
# max_ttl = 8                       # the most hops allowed to what others send; the protocol's ttl if not given
# ticket_lifetime = 86400.0         # seconds after which a reward for a choice is refused
# open_choices = 100000             # how many of the latest choices can still be rewarded
# explore = 0.05                    # the share of choices that are uniform among the available arms
# patience = 30.0                   # seconds without a reward until a choice counts as silence; measured if not given
# decisions = "decisions.jsonl"     # a log of choices and rewards, for `banditmesh node decisions`
# decisions_bytes = 100000000       # the size of a file of it, and how many full ones are kept
# decisions_files = 5
# renew_command = ["ssh", "authority", "renew"]    # gets the certificate, and prints the one that takes its place
# renew_before = 2592000.0          # seconds before the certificate ends
# signatures = "accepted"           # while some nodes run a version that does not sign; "required" by default
# signature_grace = 31536000.0      # seconds for which what a certificate signed still counts after its end
# max_clock_skew = 60.0             # seconds by which clocks may differ
# plain = true                      # links without keys, only between loopback addresses: for trying things out
# log = "json"                      # or "plain"
# log_level = "info"                # debug, info, warning or error

[keys]                              # made by `banditmesh keys init` and `banditmesh keys issue {node}`
certificate = {certificate}
key = {key}
authorities = {authorities}     # two certificates in it while the authority is being replaced

[api]                               # for programs on this machine
listen = "127.0.0.1:7780"           # or "unix:node.sock"; anywhere else needs a token
# token_file = "token"
# hosts = ["node.internal"]         # other names by which clients call it

# flooding tells all nodes within ttl hops. Where nodes have different arms, fwa does the same with fewer messages: a
# node that has an arm does not pass on what it hears of it. With the same arms everywhere only neighbours would hear.
{protocol}# first_pulls = "unknown"           # do not begin with arms that others have tried; "each" by default

# One table for each arm. law is gaussian, bernoulli, uniform or other; klucb, thompson and moss need a sigma, unless
# the law is bernoulli. Rewards outside reward_range are refused, including those that others report.
# With prior = {{ count = 20, mean = 0.1 }} this node chooses as if it had seen that many more rewards of an arm.
{arms}
# One table for each neighbour; without an address this node waits for it to dial.
# [[neighbours]]
# name = "other"
# address = "10.0.0.8:7700"

# [trust]                           # test what others tell before it counts, as if this many of them lied
# trim = 1                          # each arm needs a sigma or a reward_range then

# [caps]                            # the most that this node keeps; beyond it, anything new is refused and counted
# origins = 10000
# epochs = 64
# arms = 10000
# segments = 200
# entries = 200000
# entries_per_origin = 5000
# links = 256
# notices = 10000
"""


def template(mesh: str = "mesh", node: str = "node", law: str = "bernoulli") -> str:
    """A commented node.toml, right as it is once its keys are there.

    Parameters
    ----------
    mesh, node : str
        Who the node is.
    law : {"bernoulli", "gaussian", "uniform", "other"}
        What kind of rewards its arms pay. For coins the policy is KL-UCB, else UCB.

    Examples
    --------
    >>> next(line for line in template("shop", "berlin").splitlines() if line and not line.startswith("#"))
    'mesh = "shop"'
    """
    check_name("mesh", mesh)
    check_name("node", node)
    files = KeyFiles.of("keys", node)
    checks.choice("law", law, LAWS)
    pays = "reward_range = [0, 1]" if law == "bernoulli" else "sigma = 1.0"
    arms = [f"[[arms]]\nname = {toml(name)}\nlaw = {toml(law)}\n{pays}\n" for name in ("red", "green", "blue")]
    policy = KLUCB() if law == "bernoulli" else UCB()
    return _TEMPLATE.format(
        mesh=toml(mesh),
        node=toml(node),
        certificate=toml(files.certificate.as_posix()),
        key=toml(files.key.as_posix()),
        authorities=toml(files.authorities.as_posix()),
        protocol=protocol_lines(Flooding(4, emission=Growth(0.25)), policy),
        arms="\n".join(arms),
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
        *([_table("emission", protocol.emission)] if protocol.sends_messages and protocol.has_emission() else []),
    ]
    return "\n".join([*found, *([] if policy is None else [_table("policy", policy)])])


def _table(name: str, value: Any) -> str:
    """A table with its first parameter, and with those that are not the default."""
    taken = parts.parts(name)[value.name].parameters
    settable = sorted((one for one in fields(value) if one.name in taken), key=lambda one: bool(one.kw_only))
    given = {one.name: getattr(value, one.name) for one in settable}
    first = {one.name for one in settable[:1] if not one.kw_only}
    changed = first | {one.name for one in settable if given[one.name] != one.default}
    shown = {key: one for key, one in given.items() if key in changed and one is not None}
    return write({name: {"name": value.name, **shown}})


def absorption_note(protocol: AnyProtocol) -> str | None:
    """What a protocol that absorbs does where all nodes have the same arms, and what to take there; None for others.

    Examples
    --------
    >>> import banditmesh as bm
    >>> absorption_note(bm.Flooding(4)) is None
    True
    >>> print(absorption_note(bm.FwA(4)))
    with fwa(4) a node that has an arm does not pass on what it hears of it: where all nodes have the same arms, only
    neighbours hear each other; take flooding(4) there
    """
    facts = protocol.facts
    if facts is None or not facts.absorbs or facts.hops is None or facts.hops < 2:
        return None
    fits = Flooding(facts.hops, emission=protocol.emission)
    return (
        f"with {notation.write(protocol)} a node that has an arm does not pass on what it hears of it: where all nodes "
        f"have the same arms, only neighbours hear each other; take {notation.write(fits)} there"
    )


_INSTEAD = "fwa(4) or flooding(4), with growth(0.25) for fewer messages"


def refuse_live(protocol: AnyProtocol, policy: Policy | None = None) -> None:
    """Refuse a protocol or policy that cannot run live.

    Raises
    ------
    InputError
        What it needs, and what to take instead.

    Examples
    --------
    >>> import banditmesh as bm
    >>> refuse_live(bm.FwA(4, emission=bm.Growth(0.25)), bm.UCB())
    >>> refuse_live(bm.Centralised())
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: protocol 'centralised' cannot run live: no network delivers to all agents at once;
    take fwa(4) or flooding(4), with growth(0.25) for fewer messages
    """
    if isinstance(protocol, AnyProtocol):
        protocol.check_delivery()
    reason = _against_protocol(protocol) or (None if policy is None else _against_policy(policy))
    if reason is not None:
        raise InputError(reason)


def runs_live(protocol: AnyProtocol, policy: Policy | None = None) -> bool:
    """Whether a protocol, and a policy if one is given, can run live.

    Examples
    --------
    >>> import banditmesh as bm
    >>> runs_live(bm.FwA(4)), runs_live(bm.TreeAggregation()), runs_live(bm.IRS(), bm.UCBV())
    (True, False, False)
    """
    return _against_protocol(protocol) is None and (policy is None or _against_policy(policy) is None)


def _against_protocol(protocol: object) -> str | None:
    if not isinstance(protocol, AnyProtocol):
        return f"protocol must be a protocol such as FwA(4), got {checks.shown(protocol)}"
    what = f"protocol {protocol.name!r} cannot run live"
    facts = protocol.facts
    if facts is not None and facts.merges:
        return f"{what}: its tree needs a network that never changes; take {_INSTEAD}"
    if protocol.is_central:
        return f"{what}: no network delivers to all agents at once; take {_INSTEAD}"
    if protocol.sends_messages and not protocol.relays_by_rule:
        return f"{what}: it brings its own courier or agent, and a node relays by relay() alone; take {_INSTEAD}"
    emission = protocol.emission
    what = f"emission {emission.name!r} cannot run live"
    if emission.n_echoes:
        return f"{what} with echoes: links lose nothing that a reconnection does not bring back; set echoes to 0"
    if emission.asks_best or not (emission.cumulative or isinstance(emission, EveryPull)):
        return f"{what}: it leaves out rewards, and a node sends counts and sums; take growth(0.25) or every-pull"
    return None


def _against_policy(policy: object) -> str | None:
    if not isinstance(policy, Policy):
        return f"policy must be a policy such as UCB(), got {checks.shown(policy)}"
    what = f"policy {policy.name!r} cannot run live"
    if not policy.counts_and_sums:
        return f"{what}: it needs the variance of rewards, and a node knows counts and sums; take ucb or klucb"
    if type(policy).chooser is not Policy.chooser:
        return f"{what}: it keeps its own state, which no node stores; take ucb, klucb or thompson"
    if policy.memory.forgets:
        return memory_by_rounds(policy.memory.label)
    return None
