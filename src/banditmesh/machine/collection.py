"""Python's garbage collector, kept from looking at objects that live for a round."""

from __future__ import annotations

import gc
import threading
from types import TracebackType
from typing import Final


class RareCollections:
    """Within its block garbage is looked for rarely, and after it as before; blocks may overlap, in any threads.

    The reference engine makes many copies of messages, which are in no cycles and gone after a round. Looking at them
    took up to a third of its time.

    Parameters
    ----------
    threshold : int
        After how many new objects the collector looks at them, unless it waits for more or is off.

    Examples
    --------
    >>> import gc
    >>> rarely, before = RareCollections(), gc.get_threshold()
    >>> with rarely, rarely:
    ...     gc.get_threshold()[0]
    1000000
    >>> gc.get_threshold() == before
    True
    """

    def __init__(self, threshold: int = 1_000_000) -> None:
        self._threshold = threshold
        self._lock = threading.Lock()
        self._n_open = 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            self._n_open += 1
            if self._n_open == 1:
                self._before = first, *others = gc.get_threshold()
                gc.set_threshold(first and max(first, self._threshold), *others)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._n_open -= 1
            if not self._n_open:
                gc.set_threshold(*self._before)


#: One for the process: the collector is, too.
RARELY: Final = RareCollections()
