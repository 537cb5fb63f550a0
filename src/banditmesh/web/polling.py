"""What the page shows of a live mesh: which sidecars it may ask, and how estimates and traffic went.

The asking itself is `mesh.status.Poller`'s. What is kept is bounded: moments, nodes and arms.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..errors import InputError
from ..live.http.client import Client
from ..mesh import status
from ..mesh.status import NodeStatus, shorten

if TYPE_CHECKING:
    from ..mesh.local import LocalMesh

#: How often sidecars are asked, and how long one may take to answer, in seconds.
POLL_EVERY: Final = 1.0
TIMEOUT: Final = 0.9
#: The most nodes, moments of history, and arms of a node that are kept.
MAX_NODES: Final = 200
MAX_MOMENTS: Final = 300
MAX_ARMS: Final = 50
#: Over how many moments the traffic of a link is averaged.
RATE_MOMENTS: Final = 6


def read_addresses(text: str) -> dict[str, str | None]:
    r"""Addresses, one on a line, and the token of each, which may follow it.

    Examples
    --------
    >>> read_addresses("http://127.0.0.1:8100\nunix:/run/node.sock secret-token")
    {'http://127.0.0.1:8100': None, 'unix:/run/node.sock': 'secret-token'}
    """
    found: dict[str, str | None] = {}
    for line in text.splitlines():
        address, _, token = line.strip().partition(" ")
        if address:
            Client(address)  # refuses what cannot be an address
            found[address] = token.strip() or None
    if not found:
        raise InputError("addresses are required, got none; give one on each line, such as http://127.0.0.1:7780")
    if len(found) > MAX_NODES:
        raise InputError(f"at most {MAX_NODES} sidecars are shown, got {len(found)}; leave some out")
    return found


@dataclass(frozen=True)
class Meshes:
    """Which sidecars the server may ask: those that it was started with, or any.

    Whoever may use the page could otherwise have the server ask whatever it reaches, and read the answers.

    Attributes
    ----------
    addresses : tuple of str
        Those that it was started with.
    is_any : bool
        Whether others may be asked, too.
    local : LocalMesh or None
        The mesh that was started together with the server, whose nodes visitors may kill and start.
    """

    addresses: tuple[str, ...] = ()
    is_any: bool = False
    local: LocalMesh | None = None

    def check(self, wanted: Iterable[str]) -> None:
        """Refuse addresses that may not be asked.

        Examples
        --------
        >>> Meshes(("http://127.0.0.1:7780",)).check(["http://127.0.0.1:7780/"])
        >>> Meshes().check(["http://127.0.0.1:80"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        banditmesh.errors.InputError: http://127.0.0.1:80 may not be asked from this page; start it with ...
        """
        known = {Client(one).address for one in self.addresses}
        for one in wanted:
            address = Client(one).address
            if not self.is_any and address not in known:
                raise InputError(
                    f"{address} may not be asked from this page; start it with banditmesh serve --mesh {address}, "
                    "or with --any-mesh"
                )


class Poller(status.Poller):
    """Asks some sidecars, and remembers what they said.

    Parameters
    ----------
    addresses : dict
        As `read_addresses` gives them.
    names : mapping from str to str
        By address: what a node is called, where that is known before it has answered.
    """

    def __init__(self, addresses: dict[str, str | None], names: Mapping[str, str] | None = None) -> None:
        super().__init__(addresses, timeout=TIMEOUT)
        for one in self.seen:
            one.node = (names or {}).get(one.url, one.node)
        #: By node and arm: (seconds since the beginning, what it was estimated to pay, how many rewards were known);
        #: None for both while the node does not answer.
        self.history: dict[str, dict[str, deque[tuple[float, float | None, int | None]]]] = {}
        #: The links, as `links_of` gives them, each with its `rate`: statistics per second over the last few.
        self.links: list[dict[str, Any]] = []
        self._carried: dict[str, deque[tuple[float, int]]] = {}
        self._began = time.monotonic()

    def poll(self) -> None:
        """Ask all of them once."""
        super().poll()
        now = round(time.monotonic() - self._began, 1)
        for one in self.seen:
            self._remember(one, now)
        self.links = [{**link, "rate": self._rate(link, now)} for link in links_of(self.seen)]

    @property
    def arms(self) -> list[str]:
        """All arms that are known, by name."""
        return sorted({arm for arms in self.history.values() for arm in arms})

    def _remember(self, one: NodeStatus, now: float) -> None:
        if one.error:
            # The lines of a node that does not answer end, instead of leading on to where it comes back.
            for moments in self.history.get(one.name, {}).values():
                moments.append((now, None, None))
            return
        arms = self.history.setdefault(one.name, {})
        for name, arm in islice(arms_of(one.state), MAX_ARMS):
            if arm["mean"] is not None:
                known = arm["own_count"] + arm["heard_count"]
                arms.setdefault(name, deque(maxlen=MAX_MOMENTS)).append((now, arm["mean"], known))

    def _rate(self, link: dict[str, Any], now: float) -> float:
        moments = self._carried.setdefault(link["link"], deque(maxlen=RATE_MOMENTS))
        if not link["up"]:
            # It carries nothing; and when it is up again, both ends may count from 0.
            moments.clear()
            return 0.0
        moments.append((now, link["forth"] + link["back"]))
        (then, before), (_, carried) = moments[0], moments[-1]
        # Nodes that start anew count from 0 again.
        return max(0, carried - before) / (now - then) if now > then else 0.0


def arms_of(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All arms of a node, each with what to call it: those of other bandits and segments by these, too.

    Examples
    --------
    >>> arm = {"name": "red", "mean": 0.5}
    >>> [name for name, _ in arms_of({"arms": [arm], "agents": [{"bandit": "ads", "segment": "de", "arms": [arm]}]})]
    ['red', 'ads, de: red']
    """
    yield from ((arm["name"], arm) for arm in state["arms"])
    for agent in state["agents"]:
        where = agent["bandit"] if agent["segment"] is None else f"{agent['bandit']}, {agent['segment']}"
        yield from ((f"{where}: {arm['name']}", arm) for arm in agent["arms"])


def links_of(seen: Sequence[NodeStatus]) -> list[dict[str, Any]]:
    """The links that the nodes tell of, each once, with what waits on it and what it carried.

    `forth` counts statistics from the first end to the second, and `back` the others; of the two ends, the larger
    count is believed, since a node that starts anew counts from 0. Why an up link was refused is no news.

    Examples
    --------
    >>> peer = {"name": "bob", "state": "up", "waiting": 2, "behind": 0.5, "sent": 7, "received": 3}
    >>> [link] = links_of([NodeStatus("http://127.0.0.1:1", "ann", "", {}, [{**peer, "last_refusal": None}])])
    >>> link["ends"], link["forth"], link["back"], link["waiting"]
    (('ann', 'bob'), 7, 3, 2)
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in seen:
        for peer in one.peers:
            first, second = sorted((one.name, peer["name"]))
            link = found.setdefault(
                (first, second),
                {
                    "link": f"{first} – {second}",
                    "ends": (first, second),
                    "up": True,
                    "waiting": 0,
                    "behind": 0.0,
                    "forth": 0,
                    "back": 0,
                },
            )
            mine, theirs = ("forth", "back") if one.name == first else ("back", "forth")
            link[mine] = max(link[mine], peer["sent"])
            link[theirs] = max(link[theirs], peer["received"])
            link["up"] &= peer["state"] == "up" and not one.error
            link["waiting"] += peer["waiting"]
            link["behind"] = max(link["behind"], peer["behind"])
            link["refusal"] = shorten(peer["last_refusal"] or "", one.url) or link.get("refusal", "")
    return [{**link, "refusal": "" if link["up"] else link["refusal"]} for link in found.values()]
