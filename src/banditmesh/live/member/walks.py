"""Walks of the table: work on too many rows for a single step of the event loop.

A walk is an iterator that says after each bit of work how many rows that took; between two bits everything is as sound
as before and after. Of each walk a piece is done at once, and what is left in later pieces, one walk after the other.
So for a small table a change is whole when the call returns; for a large one the driver of the member goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

#: How many rows make a piece: some milliseconds of work.
PIECE: Final = 4_000
#: How many rows a walk takes before it says so, at most.
BIT: Final = 1_000


class Walks:
    """The walks of one member.

    Attributes
    ----------
    piece : int or None
        How many rows make a piece; None to do everything at once.

    Examples
    --------
    >>> walks = Walks()
    >>> walks.piece = 2
    >>> walks.begin(iter([1, 1, 1]))
    >>> walks.are_left, walks.go_on(), walks.are_left
    (True, False, False)
    """

    def __init__(self) -> None:
        self.piece: int | None = None
        self._left: deque[Iterator[int]] = deque()

    @property
    def are_left(self) -> bool:
        """Whether something is still to be done."""
        return bool(self._left)

    def begin(self, walk: Iterator[int]) -> None:
        """Do a piece of a walk, and leave the rest for later; what was begun before comes first."""
        self._left.append(walk)
        self.go_on()

    def go_on(self) -> bool:
        """Do one more piece; whether something is left."""
        n = 0
        while self._left and (self.piece is None or n < self.piece):
            if (taken := next(self._left[0], None)) is None:
                self._left.popleft()
            else:
                n += taken
        return self.are_left

    def finish(self) -> None:
        """Do all that is left."""
        while self.go_on():
            pass
