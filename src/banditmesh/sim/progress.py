"""Progress of one simulation or of many: a callback, a bar, or nothing. Every bar of the package is the one below."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from ..errors import InputError
from .run import ProgressCallback

#: By default a bar appears only when a run has taken this many seconds.
PATIENCE: Final = 2.0
#: Where there is no bar, a line about so often, in seconds.
PAUSE: Final = 60.0
#: Called with the number of simulations done, the number in all, and what comes next.
StepCallback: TypeAlias = Callable[[int, int, str], None]


class Bar:
    """A bar on standard error: what runs, how much of it is done, how long the rest may take, and a remark.

    Parameters
    ----------
    label : str
        What runs.
    unit : str
        What is counted.
    elapsed : bool
        Whether to show the time that has passed as well.
    """

    def __init__(self, label: str, unit: str, elapsed: bool = False) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        times = (TextColumn("elapsed"), TimeElapsedColumn()) if elapsed else ()
        # A bar leaves a terminal without a trace; a log keeps its last state.
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            *times,
            TimeRemainingColumn(),
            TextColumn("{task.fields[remark]}"),
            console=console,
            transient=console.is_terminal,
        )
        self._task = self._bar.add_task(label, total=None, remark="")
        self._bar.start()

    def show(self, done: int, total: int, remark: str = "") -> None:
        """So much is done."""
        self._bar.update(self._task, completed=done, total=total, remark=remark)

    def stop(self) -> None:
        """Nothing more is to come."""
        self._bar.stop()


@contextmanager
def terminal_bar(label: str, unit: str, elapsed: bool = False) -> Iterator[Callable[..., None] | None]:
    """What shows (done, total, remark) on a bar, if there is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Bar(label, unit, elapsed)
    try:
        yield bar.show
    finally:
        bar.stop()


@contextmanager
def patient_bar(label: str, unit: str) -> Iterator[ProgressCallback | None]:
    """What shows (done, total) on a bar once two seconds have passed, if there is a terminal."""
    with Progress(None, 0, label, unit) as progress:
        yield progress.show if progress.may_show else None


def duration(seconds: float) -> str:
    """A time in words, in the largest unit of which there are at least two.

    Examples
    --------
    >>> duration(0.2), duration(100), duration(200), duration(86400)
    ('1 seconds', '100 seconds', '3 minutes', '24 hours')
    """
    units = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
    size, unit = next((pair for pair in units if seconds >= 2 * pair[0]), units[-1])
    return f"{max(1, round(seconds / size))} {unit}"


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
    notice : callable, optional
        If nothing was wished and there is no terminal, called with a line once a minute.

    Attributes
    ----------
    may_show : bool
        Whether there may be a bar.

    Examples
    --------
    >>> with Progress(None, 100, "fwa", notice=print) as progress:
    ...     progress.advance(50)  # no line yet: a minute has not passed
    """

    def __init__(
        self,
        wish: bool | ProgressCallback | None,
        total: int,
        label: str,
        unit: str = "rounds",
        notice: Callable[[str], None] | None = None,
    ) -> None:
        if wish is not None and not isinstance(wish, bool) and not callable(wish):
            raise InputError(f"progress must be True, False or a callable, got {wish!r}")
        self._callback = wish if callable(wish) else None
        self.may_show = wish is True or (wish is None and sys.stderr.isatty())
        self._began = self._said = time.monotonic()
        self._show_from = self._began + (0.0 if wish is True else PATIENCE)
        self._notice = notice if wish is None and not self.may_show else None
        self._total = total
        self._label = label
        self._unit = unit
        self._done = 0
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, rounds: int = 1) -> None:
        """Count more rounds as done."""
        self._done += rounds
        if self._callback is not None:
            self._callback(self._done, self._total)
        if self.may_show:
            self.show(self._done, self._total)
        if self._notice is not None and time.monotonic() - self._said >= PAUSE:
            self._said = time.monotonic()
            self._notice(self._line(self._said - self._began))

    def _line(self, seconds: float) -> str:
        share = self._done / self._total
        left = f", about {duration(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
        return f"{self._label}: {share:.0%} of {self._total:,} {self._unit} done after {duration(seconds)}{left}"

    def show(self, done: int, total: int) -> None:
        """Show so much as done, if it is time for a bar."""
        if self._bar is None and time.monotonic() >= self._show_from:
            self._bar = Bar(self._label, self._unit)
        if self._bar is not None:
            self._bar.show(done, total)

    def part(self) -> ProgressCallback:
        """A callback for one of several runs that are counted together here."""
        before = 0

        def advance(done: int, total: int) -> None:
            nonlocal before
            self.advance(done - before)
            before = done

        return advance


class Steps:
    """Counts simulations for whoever watches.

    Parameters
    ----------
    total : int
        How many there will be.
    callback : callable or None
        Called before each of them, and at the end.

    Examples
    --------
    >>> steps = Steps(1, print)
    >>> steps.begin("fwa on er")
    0 1 fwa on er
    >>> steps.end()
    1 1 done
    """

    def __init__(self, total: int, callback: StepCallback | None) -> None:
        self._total = total
        self._callback = callback or (lambda done, total, label: None)
        self._done = 0

    def begin(self, label: str) -> None:
        """The next simulation begins."""
        self._callback(self._done, self._total, label)
        self._done += 1

    def end(self) -> None:
        """There are no more simulations."""
        self._callback(self._total, self._total, "done")
