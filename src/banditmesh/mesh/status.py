"""What the sidecars of a running mesh say of their nodes: asked all at once, and shown as a table.

A sidecar that does not answer holds up none of the others: each is asked by its own thread, with a short timeout, and
what it said last stays until it answers again, marked as old. What a sidecar says is read as what a sidecar may say;
anything else is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from ..errors import BanditmeshError
from ..live.http.client import Client
from ..text_tables import as_text

#: How long a sidecar may take to answer, in seconds.
TIMEOUT: Final = 2.0
#: The most bytes of an answer, and letters of a name or of an error.
MAX_BYTES: Final = 8 * 2**20
MAX_LETTERS: Final = 200
#: The most bandits and segments of a node that have a line.
MAX_AGENTS: Final = 20
HEADINGS: Final = (
    "node", "state", "links", "choices", "arms", "best arm", "sent", "received", "waiting", "refused", "protocol",
)  # fmt: skip

#: What browsers can count, and what they can show.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text = Annotated[str, msgspec.Meta(max_length=MAX_LETTERS, pattern="^[^\ud800-\udfff]*$")]


class _Arm(msgspec.Struct):
    name: _Text
    heard_count: _Count
    mean: float | None
    own_count: _Count = 0


class _Agent(msgspec.Struct):
    bandit: _Text
    segment: _Text | None
    n_choices: _Count
    arms: list[_Arm]


class _Origin(msgspec.Struct):
    name: _Text
    signed: _Count
    unsigned: _Count
    expired: _Count
    left_out: _Count


class _Trust(msgspec.Struct):
    signatures: _Text = "none"
    origins: list[_Origin] = []


class _State(msgspec.Struct):
    node: _Text
    n_choices: _Count
    arms: list[_Arm]
    counters: dict[_Text, _Count]
    protocol: _Text = ""
    warnings: list[str] = []
    agents: list[_Agent] = []
    trust: _Trust = msgspec.field(default_factory=_Trust)


class _Peer(msgspec.Struct):
    name: _Text
    state: _Text
    sent: _Count
    received: _Count
    waiting: _Count
    behind: float
    last_refusal: str | None


@dataclass
class NodeStatus:
    """What one sidecar said last.

    Attributes
    ----------
    url : str
        Where it is.
    node : str
        Its node's name; empty until it first answers.
    error : str
        Why it does not answer; empty if it does.
    state, peers : dict and list
        What is shown of what it gave, the last time that it answered.
    trouble : str or None
        Why the node is not ready, if that was asked.
    """

    url: str
    node: str = ""
    error: str = "not asked yet"
    state: dict[str, Any] = field(default_factory=dict)
    peers: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None

    @property
    def name(self) -> str:
        """What to call it: the address until it first answers."""
        return self.node or self.url

    @property
    def refusals(self) -> dict[str, int]:
        """What was refused, by reason."""
        counters = self.state.get("counters", {})
        return {name.removeprefix("refused_"): n for name, n in counters.items() if name.startswith("refused_") and n}


class Poller:
    """Asks some sidecars.

    Parameters
    ----------
    addresses : mapping
        By address: the token, or None.
    timeout : float
        How long a sidecar may take to answer, in seconds.
    asks_ready : bool
        Whether to ask for readiness, too.

    Attributes
    ----------
    seen : list of NodeStatus
        In the order of the addresses.
    """

    def __init__(
        self, addresses: Mapping[str, str | None], *, timeout: float = TIMEOUT, asks_ready: bool = False
    ) -> None:
        self.seen = [NodeStatus(url) for url in addresses]
        self._timeout = timeout
        self._asks_ready = asks_ready
        self._clients = [
            Client(url, token=token, timeout=timeout, patience=0.0, most_bytes=MAX_BYTES)
            for url, token in addresses.items()
        ]
        self._pool = ThreadPoolExecutor(max_workers=len(self._clients), thread_name_prefix="poll")
        self._asked: dict[str, Future[None]] = {}

    def poll(self) -> None:
        """Ask all of them once, at the same time; one that takes too long, if only to be found, is left out."""
        for one, client in zip(self.seen, self._clients, strict=True):
            if one.url not in self._asked or self._asked[one.url].done():
                self._asked[one.url] = self._pool.submit(self._ask, one, client)
        wait(self._asked.values(), timeout=2 * self._timeout)
        for one in self.seen:
            if not self._asked[one.url].done():
                one.error = "no answer: timed out"

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    def _ask(self, one: NodeStatus, client: Client) -> None:
        try:
            state = msgspec.to_builtins(msgspec.convert(client.state(), _State))
            peers = msgspec.to_builtins(msgspec.convert(client.peers(), list[_Peer]))
            trouble = client.ready() if self._asks_ready else None
        except (BanditmeshError, OSError) as error:
            one.error = shorten(str(error), one.url)
        except (msgspec.ValidationError, KeyError):
            one.error = "does not answer like a sidecar; is it one?"
        else:
            one.node, one.state, one.peers, one.trouble, one.error = state["node"], state, peers, trouble, ""


def shorten(error: str, url: str) -> str:
    """Why a sidecar does not answer, without saying again where it is.

    Examples
    --------
    >>> shorten("no answer from http://127.0.0.1:1: Connection refused; is the sidecar running?", "http://127.0.0.1:1")
    'no answer: Connection refused'
    """
    line = error.replace(f" from {url}", "").removeprefix(f"{url} ").removesuffix("; is the sidecar running?")
    # It may be the sidecar's own words.
    return line[:MAX_LETTERS].encode(errors="replace").decode()


class AgentRow(NamedTuple):
    """A bandit of a node, in a segment or, if that is empty, without one."""

    bandit: str
    segment: str
    choices: int
    arms: int
    best_arm: str


class OriginRow(NamedTuple):
    """An origin of which a node has unsigned statistics, has some by certificates that have ended, or leaves some out.

    `left_out` counts arms; the others count statistics. In a plain mesh nothing is signed, and unsigned is 0.
    """

    origin: str
    signed: int
    unsigned: int
    expired: int
    left_out: int


class StatusRow(NamedTuple):
    """One node, as its sidecar tells of it.

    `state` is "ready", or what is wrong in a few words; the other fields of a node that does not answer are empty.
    `choices` are those of all bandits; `arms` and `best_arm` are of the bandit "default" without a segment, and
    `agents` has the other ones. `sent`, `received` and `waiting` count statistics over all of its links; `warnings`
    are the node's own, and `origins` are those of which something is odd.
    """

    url: str
    node: str = ""
    state: str = ""
    links_up: int = 0
    links: int = 0
    choices: int = 0
    arms: int = 0
    best_arm: str = ""
    sent: int = 0
    received: int = 0
    waiting: int = 0
    refused: int = 0
    protocol: str = ""
    warnings: tuple[str, ...] = ()
    agents: tuple[AgentRow, ...] = ()
    origins: tuple[OriginRow, ...] = ()


def gather(urls: Sequence[str], token: str | None = None) -> list[StatusRow]:
    """One row for each sidecar, in their order, whether it answers or not."""
    poller = Poller(dict.fromkeys(urls, token), asks_ready=True)
    try:
        poller.poll()
        rows = {one.url: _row(one) for one in poller.seen}
        return [rows[url] for url in urls]
    finally:
        poller.close()


def _row(one: NodeStatus) -> StatusRow:
    if one.error:
        return StatusRow(one.url, state=one.error)
    state, peers = one.state, one.peers
    return StatusRow(
        url=one.url,
        node=one.node,
        state=one.trouble or "ready",
        links_up=sum(peer["state"] == "up" for peer in peers),
        links=len(peers),
        choices=state["n_choices"],
        arms=len(state["arms"]),
        best_arm=best_arm(state["arms"]),
        sent=sum(peer["sent"] for peer in peers),
        received=sum(peer["received"] for peer in peers),
        waiting=sum(peer["waiting"] for peer in peers),
        refused=sum(one.refusals.values()),
        protocol=state["protocol"],
        warnings=tuple(state["warnings"]),
        agents=tuple(
            AgentRow(
                agent["bandit"],
                agent["segment"] or "",
                agent["n_choices"],
                len(agent["arms"]),
                best_arm(agent["arms"]),
            )
            for agent in state["agents"]
        ),
        origins=tuple(odd_origins(state)),
    )


def odd_origins(state: Mapping[str, Any]) -> list[OriginRow]:
    """The origins of which a node has unsigned or expired statistics, or leaves some out."""
    trust = state["trust"]
    rows = [
        OriginRow(
            one["name"],
            one["signed"],
            one["unsigned"] if trust["signatures"] != "none" else 0,
            one["expired"],
            one["left_out"],
        )
        for one in trust["origins"]
    ]
    return [row for row in rows if row.unsigned or row.expired or row.left_out]


def best_arm(arms: Sequence[Mapping[str, Any]]) -> str:
    """The arm that seems to pay most; empty if nothing is known of any."""
    known = [arm for arm in arms if arm["mean"] is not None]
    return max(known, key=lambda arm: arm["mean"])["name"] if known else ""


def _agent_lines(row: StatusRow) -> list[tuple[str, ...]]:
    """The bandits and segments of a node, those with the most choices first."""
    agents = sorted(row.agents, key=lambda one: -one.choices)
    empty = [""] * (len(HEADINGS) - 6)
    lines = [
        (f"  {one.bandit}", one.segment, "", str(one.choices), str(one.arms), one.best_arm, *empty)
        for one in agents[:MAX_AGENTS]
    ]
    if len(agents) > MAX_AGENTS:
        lines.append((f"  {len(agents) - MAX_AGENTS} more", *[""] * (len(HEADINGS) - 1)))
    return lines


def as_table(rows: Sequence[StatusRow]) -> str:
    """The rows as a table of text, with lines for bandits and segments; below it warnings and odd origins.

    Examples
    --------
    >>> print(as_table([StatusRow("http://127.0.0.1:8100", "ann", "ready", 1, 2, 40, 3, "red", 9, 7, 0, 0, "fwa(4)")]))
    node  state  links  choices  arms  best arm  sent  received  waiting  refused  protocol
    ann   ready    1/2       40     3       red     9         7        0        0    fwa(4)
    """
    table: list[tuple[str, ...]] = [HEADINGS]
    for row in rows:
        if row.node:
            links = f"{row.links_up}/{row.links}"
            # The rest stands in the order of the fields.
            table.append((row.node, row.state, links, *map(str, row[5:-3])))
            table += _agent_lines(row)
        else:
            table.append((row.url, row.state, *[""] * (len(HEADINGS) - 2)))
    warnings = [f"{row.node} warns: {warning}" for row in rows for warning in row.warnings]
    origins = [_origin_line(row.node, one) for row in rows for one in row.origins]
    return "\n".join([as_text(table, left=(0, 1)), *warnings, *origins])


def _origin_line(node: str, one: OriginRow) -> str:
    """What is odd about an origin.

    Examples
    --------
    >>> _origin_line("ann", OriginRow("eve", signed=3, unsigned=2, expired=0, left_out=1))
    "ann about 'eve': 2 of 5 statistics unsigned, left out of 1 arm (trust.trim)"
    """
    n = one.signed + one.unsigned
    found = [f"{one.unsigned} of {n} statistics unsigned"] if one.unsigned else []
    found += [f"{one.expired} of {n} under a certificate that has ended"] if one.expired else []
    found += [f"left out of {one.left_out} {'arm' if one.left_out == 1 else 'arms'} (trust.trim)"] * bool(one.left_out)
    return f"{node} about {one.origin!r}: {', '.join(found)}"
