"""A statistic in a node's memory."""

from __future__ import annotations

from typing import Final

from ..disk import Entry

#: The most bytes of a statistic on the wire, its two names aside.
_OVERHEAD: Final = 40


class Row:
    """The largest statistic known of a key: another life's, or what the node told of its own.

    Rows are told apart by identity, so that a set of them costs no hashing of names.

    Attributes
    ----------
    key : (origin, epoch, arm)
    count, total : int, float
        How many rewards, and their sum.
    ttl : int
        How many hops are left.
    passes : bool
        Whether the node passes it on.
    position : int
        The position of the arm in the node's arm set; -1 if it does not have it.
    stands : bool
        Whether the node stands for it: it is of one of its own lives.
    is_outside : bool
        Whether the arm's `reward_range` does not allow it: it is kept, but neither used nor passed on.
    n_bytes : int
        At most so many bytes on the wire.
    is_dirty : bool
        Whether it has changed since it was last stored.
    """

    __slots__ = (
        "count", "is_dirty", "is_outside", "key", "n_bytes", "passes", "position", "stands", "total", "ttl",
    )  # fmt: skip

    def __init__(self, key: tuple[str, int, str], position: int, stands: bool) -> None:
        self.key = key
        self.count = 0
        self.total = 0.0
        self.ttl = 0
        self.passes = stands
        self.position = position
        self.stands = stands
        self.is_dirty = False
        self.is_outside = False
        self.n_bytes = _OVERHEAD + len(key[0].encode()) + len(key[2].encode())

    def entry(self) -> Entry:
        """As it is stored."""
        return Entry(*self.key, self.count, self.total, self.ttl, self.passes)
