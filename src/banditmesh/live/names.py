"""Names, addresses and limits: what they may be, and how much a node keeps.

Rules kept here: a name is 1 to 128 bytes of UTF-8, all of it printable. An epoch is 64 random bits; as text it is 16
hexadecimal digits. A member's address in certificates is `banditmesh://mesh/node`, both names percent-encoded; where it
listens is `host:port`, an IPv6 host in brackets. An arm of the bandit "default" without a segment travels under its own
name; any other as `bandit/segment/arm`, with `/` and `%` in the parts percent-encoded. A count is at least 1 and below
2^53; a reward is at most 1e12 in size. Beyond a cap the new thing is refused and counted, and nothing is evicted; from
75 per cent of a cap the node warns.
"""

from __future__ import annotations

import ipaddress
import random
import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from msgspec import Struct

from .. import checks
from ..errors import InputError

MAX_BYTES: Final = 128
#: The bandit of the arms in no `[[bandits]]`.
DEFAULT: Final = "default"
MAX_EPOCH: Final = 2**64 - 1
_EPOCH: Final = re.compile(r"[0-9a-f]{16}")
_URI: Final = re.compile(r"banditmesh://([^/?#]+)/([^/?#]+)")
MAX_COUNT: Final = 2**53 - 1
#: The limit of the wire format (docs/live/wire.md), smaller than that of simulated arms: every node refuses more.
MAX_REWARD: Final = 1e12
#: How many of the last choices can still be settled, unless the configuration says otherwise (`open_choices`).
OPEN_CHOICES: Final = 100_000
MAX_OPEN_CHOICES: Final = 100_000_000
#: How many of the last callers' keys are remembered.
LAST_KEYS: Final = 100_000
#: Tickets of older starts have lapsed, however quickly the starts followed each other.
LAST_STARTS: Final = 1_000
#: What a node's own statistics count against, beside the caps: `caps.entries_per_origin`, which others hold it to.
OWN_ENTRIES: Final = "own_entries"
#: The part of a cap from which on a node warns.
WARN_FROM: Final = 0.75
_ADDRESS: Final = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%\w+)?)\]|(?P<host>[^\s:\[\]/]+)):(?P<port>[0-9]{1,5})"
)


def is_name(value: object) -> bool:
    """Whether a value can be a name."""
    # No character is shorter than a byte, so a long text is not encoded only to be refused.
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_BYTES
        and value.isprintable()
        and len(value.encode()) <= MAX_BYTES
    )


def check_name(what: str, value: object) -> str:
    """`value` if it can be a name.

    Examples
    --------
    >>> check_name("node", "berlin 3")
    'berlin 3'
    """
    if isinstance(value, str) and is_name(value):
        return value
    raise InputError(f"{what} must be 1 to {MAX_BYTES} bytes of printable text, got {checks.shown(value)}")


def agent_name(bandit: str, segment: str = "") -> str:
    """What the agent of a bandit in a segment is called in the names of its arms; empty for the default without one.

    Examples
    --------
    >>> agent_name("default"), agent_name("ads"), agent_name("ads", "de/be")
    ('', 'ads/', 'ads/de%2Fbe')
    """
    return "" if bandit == DEFAULT and not segment else f"{_quoted(bandit)}/{_quoted(segment)}"


def arm_name(agent: str, arm: str) -> str:
    """The name under which the statistics of an agent's arm travel.

    Examples
    --------
    >>> arm_name("", "a/b"), arm_name("ads/de", "a/b"), split_arm("ads/de/a%2Fb")
    ('a/b', 'ads/de/a%2Fb', ('ads/de', 'a/b'))
    """
    return f"{agent}/{_quoted(arm)}" if agent else arm


def split_arm(name: str) -> tuple[str, str]:
    """The agent that a name of statistics is of, and the arm."""
    if name.count("/") != 2:
        return "", name
    agent, _, arm = name.rpartition("/")
    return agent, _unquoted(arm)


def split_agent(agent: str) -> tuple[str, str]:
    """The bandit and the segment of an agent.

    Examples
    --------
    >>> split_agent(""), split_agent("ads/de%2Fbe")
    (('default', ''), ('ads', 'de/be'))
    """
    bandit, _, segment = (agent or f"{DEFAULT}/").partition("/")
    return _unquoted(bandit), _unquoted(segment)


def _quoted(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _unquoted(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


def new_epoch(rng: random.Random) -> int:
    """An epoch that no other life has."""
    return rng.getrandbits(64)


def is_epoch(value: object) -> bool:
    """Whether a value can be an epoch."""
    return type(value) is int and 0 <= value <= MAX_EPOCH


def epoch_text(epoch: int) -> str:
    """An epoch as text.

    Examples
    --------
    >>> epoch_text(255), parse_epoch("00000000000000ff")
    ('00000000000000ff', 255)
    """
    return f"{epoch:016x}"


def parse_epoch(text: object) -> int:
    """The epoch that a text stands for."""
    if isinstance(text, str) and _EPOCH.fullmatch(text):
        return int(text, 16)
    raise InputError(f"an epoch must be 16 hexadecimal digits in lower case, got {checks.shown(text)}")


def uri(mesh: str, node: str) -> str:
    """A member's address in certificates.

    Examples
    --------
    >>> uri("shop", "berlin 3"), parse_uri("banditmesh://shop/berlin%203")
    ('banditmesh://shop/berlin%203', ('shop', 'berlin 3'))
    """
    return f"banditmesh://{quote(mesh, safe='')}/{quote(node, safe='')}"


def parse_uri(text: str) -> tuple[str, str]:
    """The mesh and the node that an address names; only the one way to write it is accepted."""
    match = _URI.fullmatch(text)
    if match:
        mesh, node = (unquote(part, errors="replace") for part in match.groups())
        if is_name(mesh) and is_name(node) and uri(mesh, node) == text:
            return mesh, node
    raise InputError(f"a member's address must be like banditmesh://mesh/node, got {checks.shown(text)}")


class Caps(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that a node keeps of each kind.

    Attributes
    ----------
    origins : int
        Names of other nodes in the table.
    epochs : int
        Lives of one origin.
    arms : int
        Arms of the node itself, each in every segment.
    segments : int
        Segments of one bandit.
    entries : int
        Statistics of others, and of the node's own earlier lives.
    entries_per_origin : int
        Of these, statistics of one origin, over all its lives.
    links : int
        Neighbours that are linked at a time.
    notices : int
        Notices of the authority.

    Examples
    --------
    >>> Caps(entries=1_000).arms
    10000
    """

    origins: int = 10_000
    epochs: int = 64
    arms: int = 10_000
    segments: int = 200
    entries: int = 200_000
    entries_per_origin: int = 5_000
    links: int = 256
    notices: int = 10_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            checks.integer(f"caps.{name}", getattr(self, name), at_least=1)


class Address(NamedTuple):
    """A host and a port.

    Examples
    --------
    >>> Address.parse("[::1]:7000"), str(Address("10.0.0.1", 7000))
    (Address(host='::1', port=7000), '10.0.0.1:7000')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: object, what: str = "address") -> Address:
        """The address that a text stands for; `what` is what an error calls it."""
        match = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            hint = "host:port, an IPv6 host in brackets, or 0.0.0.0 for all of this machine's addresses"
            raise InputError(f"{what} must be {hint}; got {checks.shown(text)}")
        port = int(match["port"])
        if port > 65535:
            raise InputError(f"{what} must have a port of at most 65535, got {port}")
        return cls(match["six"] or match["host"], port)

    @classmethod
    def of(cls, name: Any) -> Address:
        """The address in what a socket says of itself or of its peer."""
        return cls(str(name[0]), int(name[1]))

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine's own, for certain: `localhost`, 127.0.0.0/8 or ::1."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
