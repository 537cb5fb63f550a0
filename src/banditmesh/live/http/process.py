"""What a process that serves HTTP is made of: an event loop, uvicorn, and signals that end it.

The page of `banditmesh serve` is such a process too, so this needs uvicorn alone.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import uvicorn


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: `ended_by_signals` has them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextmanager
def ended_by_signals(leave: Callable[[str], object], at_once: Callable[[str], object]) -> Iterator[None]:
    """Within it, SIGTERM and SIGINT call `leave`, or `at_once` if it was called before, with the signal's name."""
    loop = asyncio.get_running_loop()
    calls = iter((leave,))

    def end(name: str) -> None:
        next(calls, at_once)(name)

    numbers = signal.SIGTERM, signal.SIGINT
    for number in numbers:
        loop.add_signal_handler(number, end, number.name)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop: uvloop where it is installed, which takes less time for each request."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop
