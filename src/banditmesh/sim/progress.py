"""Progress of a simulation: a callback, a bar, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Final

from ..errors import InputError
from .run import ProgressCallback

#: By default a bar appears only when a run has taken this many seconds.
PATIENCE: Final = 2.0


class Progress:
    """Counts rounds and shows them as the caller wished.

    Parameters
    ----------
    wish : bool, callable or None
        A callable is called with (done, total); True shows a bar at once, None one in a terminal after two seconds.
    total : int
        The number of rounds in all.
    label : str
        What runs.
    unit : str
        What is counted, if not rounds.
    """

    def __init__(self, wish: bool | ProgressCallback | None, total: int, label: str, unit: str = "rounds") -> None:
        if wish is not None and not isinstance(wish, bool) and not callable(wish):
            raise InputError(f"progress must be True, False or a callable, got {wish!r}")
        self._callback = wish if callable(wish) else None
        self._may_show = wish is True or (wish is None and sys.stderr.isatty())
        self._show_from = time.monotonic() + (0.0 if wish is True else PATIENCE)
        self._total = total
        self._label = label
        self._unit = unit
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, rounds: int = 1) -> None:
        """So many more rounds are done."""
        self._done += rounds
        if self._callback is not None:
            self._callback(self._done, self._total)
        if not self._may_show:
            return
        if self._bar is None and time.monotonic() >= self._show_from:
            self._open_bar()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _open_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True)
        # A bar leaves a terminal without a trace; a log keeps its last state.
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self._unit),
            TimeRemainingColumn(),
            console=console,
            transient=console.is_terminal,
        )
        self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.start()
