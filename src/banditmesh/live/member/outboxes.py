"""What waits to be sent: for each link an ordered set of rows.

Rules kept here. A row that already waits stays where it is. Its values are read when it is sent, so what a neighbour
gets that was slow or away is fresh, and a stalled one costs a set of rows and no more. A row that no longer passes when
its turn comes leaves unsent, but for those whose origin is that very neighbour: its own memory, with a ttl of 1 at
least. When a link comes up it is offered all that passes, and its own memory; nothing is remembered of earlier links.
An offer starts at a random place.

Why a row waits is kept with it, so that what is sent is counted apart: news, the same once more since it may travel
further (extended), an offer, or the memory of its origin.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...errors import InputError
from ..statistics import MORE_BYTES, Known, Statistic

_TWO_POW_52: Final = 2.0**52


NEWS: Final = 0
EXTENDED: Final = 1
OFFER: Final = 2
MEMORY: Final = 3
#: What is sent for each reason is counted under these names.
SENT: Final = ("sent_news", "sent_extended", "sent_offers", "sent_memory")


class LiveChances:
    """Chances, as the core asks for them: draws that do not depend on what they decide.

    Parameters
    ----------
    rng : random.Random

    Examples
    --------
    >>> chances = LiveChances(random.Random(1))
    >>> 0.0 < chances.index() < 1.0, len(chances.targets(None, "a", 1, ["b", "c", "d"], 2))
    (True, 2)
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def index(self, *decided: Any) -> float:
        """A number in (0, 1), of 52 random bits as in the simulator, for a policy that draws."""
        return (self._rng.getrandbits(52) + 0.5) / _TWO_POW_52

    relay = index
    """The same for a relay rule that draws."""

    def targets(self, message: Any, agent: Any, ttl: int, candidates: Sequence[str], n: int) -> Sequence[str]:
        """`n` of the candidates, or all if there are no more."""
        return candidates if n >= len(candidates) else self._rng.sample(candidates, n)

    def place(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self._rng.randrange(n)


class Outboxes:
    """The outboxes of all links.

    Parameters
    ----------
    chances : LiveChances
    most : int
        The most links.
    counters : Counter
        Where what is sent is counted.

    Attributes
    ----------
    links : dict
        By neighbour: the rows that wait, in order, each with its reason.
    """

    def __init__(self, chances: LiveChances, most: int, counters: Counter[str]) -> None:
        self.links: dict[str, dict[Known, int]] = {}
        self._chances = chances
        self._most = most
        self._counters = counters

    def up(self, peer: str, rows: Iterable[Known]) -> None:
        """A link came up: offer what of these rows may go there."""
        if peer not in self.links and len(self.links) >= self._most:
            self._counters["refused_links"] += 1
            raise InputError(f"there may be at most {self._most} links (caps.links), got one more with {peer!r}")
        # As `_ttl_to` says, written out: it is asked of the whole table.
        offer = [row for row in rows if (row.passes and row.ttl) or row.key[0] == peer]
        first = self._chances.place(len(offer)) if offer else 0
        self.links[peer] = dict.fromkeys(offer[first:] + offer[:first], OFFER)

    def down(self, peer: str) -> None:
        """A link went down: what waited for it is gone."""
        self.links.pop(peer, None)

    def put(self, row: Known, why: int, sender: str | None = None, n_targets: int | None = None) -> int:
        """Let a row go to all neighbours but the one that it came from, or to `n_targets` of them, drawn at random.

        Returns
        -------
        int
            How often it waited there already.
        """
        peers = [peer for peer in self.links if peer != sender]
        n_waiting = 0
        for peer in peers if n_targets is None else self._chances.targets(row, sender, row.ttl, peers, n_targets):
            outbox = self.links[peer]
            n_waiting += row in outbox
            # News makes a row that waits for another reason one that waits for news.
            if why == NEWS:
                outbox[row] = NEWS
            else:
                outbox.setdefault(row, why)
        return n_waiting

    def discard(self, row: Known) -> None:
        """A row is gone."""
        for outbox in self.links.values():
            outbox.pop(row, None)

    def waiting(self, peer: str) -> int:
        """How many rows wait for a neighbour."""
        return len(self.links.get(peer, ()))

    def take(self, peer: str, n_bytes: int) -> list[Statistic]:
        """The next rows for a neighbour, as they are now, of at most `n_bytes` (but at least one, if any waits)."""
        outbox = self.links.get(peer)
        if not outbox:
            return []
        batch: list[Statistic] = []
        taken: list[Known] = []
        n_sent = [0] * len(SENT)
        for row, why in outbox.items():
            n_bytes -= row.n_bytes + MORE_BYTES if row.signature or row.stamp else row.n_bytes
            if n_bytes < 0 and batch:
                break
            taken.append(row)
            # What passes goes as it is; to ask for each row costs as much as all the rest.
            ttl = (row.passes and row.ttl) or _ttl_to(peer, row)
            if ttl:
                batch.append(row.statistic(ttl))
                n_sent[why] += 1
        if len(taken) == len(outbox):
            # Unlike one row after the other, all at once give their memory back.
            outbox.clear()
        else:
            for row in taken:
                del outbox[row]
        for name, n in zip(SENT, n_sent, strict=True):
            self._counters[name] += n
        self._counters["left_unsent"] += len(taken) - len(batch)
        return batch


def _ttl_to(peer: str, row: Known) -> int:
    """With which ttl a row may go to a neighbour now; 0 if it may not."""
    ttl = row.ttl if row.passes else 0
    return max(ttl, 1) if row.key[0] == peer else ttl
