"""What the sidecars of a live mesh say, asked again and again in the background, and how their estimates went.

Nobody waits for a sidecar that does not answer: each is asked by a thread of its own, with a short timeout, and what it
said last stays until it answers again, marked as old. What is kept is bounded: so many moments, nodes and arms. What a
sidecar says is read as what a sidecar may say, and whatever else comes is no answer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from ..errors import BanditmeshError, InputError
from ..live.http.client import Client

#: How often sidecars are asked, and how long one may take to answer, in seconds.
POLL_EVERY: Final = 1.0
TIMEOUT: Final = 0.9
#: The most nodes, moments of history, and arms of a node that are kept.
MOST_NODES: Final = 200
MOST_MOMENTS: Final = 300
MOST_ARMS: Final = 50
#: The most bytes of an answer, and letters of a name or of an error.
MOST_BYTES: Final = 8 * 2**20
MOST_LETTERS: Final = 200
#: Over how many moments the traffic of a link is averaged.
RATE_MOMENTS: Final = 6

#: What browsers can count, and what they can show.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text = Annotated[str, msgspec.Meta(max_length=MOST_LETTERS, pattern="^[^\ud800-\udfff]*$")]


class _Arm(msgspec.Struct):
    name: _Text
    heard_count: _Count
    mean: float | None


class _State(msgspec.Struct):
    node: _Text
    n_choices: _Count
    arms: list[_Arm]
    counters: dict[_Text, _Count]


class _Peer(msgspec.Struct):
    name: _Text
    state: _Text
    sent: _Count
    received: _Count
    waiting: _Count
    behind: float
    last_refusal: str | None


@dataclass
class Seen:
    """What one sidecar said last.

    Attributes
    ----------
    url : str
        Where it is.
    node : str
        Its node's name; the address until it first answers.
    error : str
        Why it does not answer; empty if it does.
    state, peers : dict and list
        What is shown of what it gave, the last time that it answered.
    """

    url: str
    node: str = ""
    error: str = "not asked yet"
    state: dict[str, Any] = field(default_factory=dict)
    peers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is called on the page."""
        return self.node or self.url

    @property
    def refusals(self) -> dict[str, int]:
        """What was refused, by reason."""
        counters = self.state.get("counters", {})
        return {name.removeprefix("refused_"): n for name, n in counters.items() if name.startswith("refused_") and n}


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
    if len(found) > MOST_NODES:
        raise InputError(f"at most {MOST_NODES} sidecars are shown, got {len(found)}; leave some out")
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
    """

    addresses: tuple[str, ...] = ()
    is_any: bool = False

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


class Poller:
    """Asks some sidecars.

    Parameters
    ----------
    addresses : dict
        As `read_addresses` gives them.
    """

    def __init__(self, addresses: dict[str, str | None]) -> None:
        self.seen = [Seen(url) for url in addresses]
        #: By node and arm, what it was estimated to pay: (seconds since the beginning, mean).
        self.history: dict[str, dict[str, deque[tuple[float, float]]]] = {}
        #: The links, as `links_of` gives them, each with its `rate`: statistics per second over the last few.
        self.links: list[dict[str, Any]] = []
        self._carried: dict[str, deque[tuple[float, int]]] = {}
        self._clients = [
            Client(url, token=token, timeout=TIMEOUT, patience=0.0, most_bytes=MOST_BYTES)
            for url, token in addresses.items()
        ]
        self._pool = ThreadPoolExecutor(max_workers=len(self._clients), thread_name_prefix="poll")
        self._asked: dict[str, Future[None]] = {}
        self._began = time.monotonic()

    def poll(self) -> None:
        """Ask all of them once, at the same time; who takes too long, if only to find the address, is left out."""
        for one, client in zip(self.seen, self._clients, strict=True):
            if one.url not in self._asked or self._asked[one.url].done():
                self._asked[one.url] = self._pool.submit(self._ask, one, client)
        wait(self._asked.values(), timeout=2 * TIMEOUT)
        for one in self.seen:
            if not self._asked[one.url].done():
                one.error = "no answer: timed out"
        now = round(time.monotonic() - self._began, 1)
        for one in self.seen:
            if not one.error:
                self._remember(one, now)
        self.links = [{**link, "rate": self._rate(link, now)} for link in links_of(self.seen)]

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    @property
    def arms(self) -> list[str]:
        """All arms that are known, by name."""
        return sorted({arm for arms in self.history.values() for arm in arms})

    @staticmethod
    def _ask(one: Seen, client: Client) -> None:
        try:
            state = msgspec.to_builtins(msgspec.convert(client.state(), _State))
            peers = msgspec.to_builtins(msgspec.convert(client.peers(), list[_Peer]))
        except (BanditmeshError, OSError) as error:
            one.error = _in_short(str(error), one.url)
        except (msgspec.ValidationError, KeyError):
            one.error = "does not answer as a sidecar; is it one?"
        else:
            one.node, one.state, one.peers, one.error = state["node"], state, peers, ""

    def _remember(self, one: Seen, now: float) -> None:
        arms = self.history.setdefault(one.name, {})
        for arm in one.state["arms"][:MOST_ARMS]:
            if arm["mean"] is not None:
                arms.setdefault(arm["name"], deque(maxlen=MOST_MOMENTS)).append((now, arm["mean"]))

    def _rate(self, link: dict[str, Any], now: float) -> float:
        moments = self._carried.setdefault(link["link"], deque(maxlen=RATE_MOMENTS))
        moments.append((now, link["forth"] + link["back"]))
        (then, before), (_, carried) = moments[0], moments[-1]
        # Nodes that start anew count from 0 again.
        return max(0, carried - before) / (now - then) if now > then else 0.0


def _in_short(error: str, url: str) -> str:
    """Why a sidecar does not answer, without saying again where it is.

    Examples
    --------
    >>> _in_short("no answer from http://127.0.0.1:1: Connection refused; does the sidecar run?", "http://127.0.0.1:1")
    'no answer: Connection refused'
    """
    line = error.replace(f" from {url}", "").removeprefix(f"{url} ").removesuffix("; does the sidecar run?")
    # It may be the sidecar's own words.
    return line[:MOST_LETTERS].encode(errors="replace").decode()


def links_of(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """The links that the nodes tell of, each once, with what waits on it and what it carried.

    `forth` counts statistics from the first end to the second, and `back` the others; of the two ends, who counted
    more is believed, since a node that starts anew counts from 0.

    Examples
    --------
    >>> peer = {"name": "bob", "state": "up", "waiting": 2, "behind": 0.5, "sent": 7, "received": 3}
    >>> [link] = links_of([Seen("http://127.0.0.1:1", "ann", "", {}, [{**peer, "last_refusal": None}])])
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
            link["refusal"] = _in_short(peer["last_refusal"] or "", one.url) or link.get("refusal", "")
    return list(found.values())
