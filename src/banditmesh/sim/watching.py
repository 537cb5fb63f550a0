"""The curves of a run while it runs, for whoever watches.

Each engine keeps its replicates' curves here from the beginning, so that a look at them costs no more than a copy of
what is known. A look changes nothing: a run that is watched gives the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Called with the recorded rounds, and with cumulative regret and transmissions, both (replicates, records) and NaN
#: where they are not known yet.
WatchCallback: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], None]
#: How often there is something new to see, in seconds.
LOOK_SECONDS: Final = 0.1


class Curve:
    """Cumulative regret and transmissions of one replicate at its recorded rounds, of which `n_known` are known."""

    def __init__(self, n_records: int) -> None:
        self.regret = np.zeros(n_records)
        self.transmissions = np.zeros(n_records, dtype=np.int64)
        #: Raised after the values are there, since another thread may be looking.
        self.n_known = 0

    @classmethod
    def whole(cls, regret: NDArray[np.float64], transmissions: NDArray[np.int64]) -> Curve:
        """A curve that is known from beginning to end."""
        curve = cls(0)
        curve.regret, curve.transmissions, curve.n_known = regret, transmissions, len(regret)
        return curve


class Watch:
    """Shows the curves of a run to a callback.

    Parameters
    ----------
    rounds : int array (records,)
        The recorded rounds.
    replicates : int
        How many there will be.
    callback : callable or None
        Who watches.

    Examples
    --------
    >>> watch = Watch(np.array([1, 2]), 1, lambda rounds, regret, transmissions: print(regret, transmissions))
    >>> curve = Curve(2)
    >>> watch.begin(0, curve)
    >>> curve.regret[0], curve.transmissions[0], curve.n_known = 0.5, 3, 1
    >>> watch.look()
    [[0.5 nan]] [[ 3. nan]]
    """

    def __init__(self, rounds: NDArray[np.int64], replicates: int, callback: WatchCallback | None) -> None:
        self._rounds = rounds
        self._replicates = replicates
        self._callback = callback
        self._curves: dict[int, Curve] = {}
        self._next = 0.0

    def begin(self, replicate: int, curve: Curve) -> None:
        """A replicate begins, and will write here."""
        self._curves[replicate] = curve

    def look(self, *, is_over: bool = False) -> None:
        """Show what is known, unless that was done a moment ago; when all is over, in any case."""
        if self._callback is None or (time.monotonic() < self._next and not is_over):
            return
        regret, transmissions = np.full((2, self._replicates, len(self._rounds)), np.nan)
        for replicate, curve in list(self._curves.items()):
            n = curve.n_known
            regret[replicate, :n] = curve.regret[:n]
            transmissions[replicate, :n] = curve.transmissions[:n]
        self._callback(self._rounds, regret, transmissions)
        self._next = time.monotonic() + LOOK_SECONDS
