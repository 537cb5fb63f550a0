"""One caller's connection, with an end that always comes, by either of two parsers of HTTP.

What uvicorn does for a connection it does here too; beside that, a connection has a place among a limited number, must
bring the headers of a request in time, and must read its answers. httptools parses a request in a fifth of the time of
h11 and is used where it is installed. It has no limit on the size of headers, which `FastConnection` adds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from .openapi import Error

#: How many requests are answered at a time, and how many more connections there may be, for probes.
MAX_CALLERS: Final = 256
FOR_PROBES: Final = 16
#: How long a connection may be without a whole request, and how long an answer may go unread, in seconds.
HEADERS_WITHIN: Final = 10.0
READS_WITHIN: Final = 30.0
#: The most bytes of a request's headers; h11's own limit.
MAX_HEADERS: Final = 2**16
#: When to ask again after a 503, in seconds.
RETRY_AFTER: Final = "1"


class _Ending:
    """What both kinds of connections have beyond uvicorn's, before which it must be among the bases."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    connections: set[Any]
    cycle: Any

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._since = self.loop.time()
        #: By what happens then: what is waited for.
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin, if there is a place."""
        super().connection_made(transport)  # type: ignore[misc]
        if len(self.connections) > MAX_CALLERS + FOR_PROBES and not self._take_place():
            self._refuse(503, too_many())
        else:
            self._expect(HEADERS_WITHIN, self._give_up)

    def _take_place(self) -> bool:
        """Have the place of the connection that has been without a request for longest; whether there is one."""
        others: list[Any] = [one for one in self.connections if one is not self]
        idle = [one for one in others if not one.is_busy]
        if not idle:
            return False
        oldest = min(idle, key=lambda one: one._since)
        self.connections.discard(oldest)  # it is lost only in the loop's next turn
        oldest.transport.close()
        return True

    def data_received(self, data: bytes) -> None:
        """Take what came; all headers must come in time."""
        super().data_received(data)  # type: ignore[misc]
        if self.is_busy or self.transport.is_closing() or self._is_answered():
            self._cancel(self._give_up)
        else:
            self._expect(HEADERS_WITHIN, self._give_up)

    def on_response_complete(self) -> None:
        """The answer is sent."""
        self._since = self.loop.time()
        super().on_response_complete()  # type: ignore[misc]

    def pause_writing(self) -> None:
        """The caller does not read."""
        super().pause_writing()  # type: ignore[misc]
        self._expect(READS_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads."""
        self._cancel(self.transport.abort)
        super().resume_writing()  # type: ignore[misc]

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        for then in list(self._timers):
            self._cancel(then)
        super().connection_lost(exc)  # type: ignore[misc]

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "a request must be HTTP/1.1, got something else")

    def _expect(self, within: float, then: Callable[[], None]) -> None:
        """Unless it is cancelled, call `then` after `within` seconds; a timer that runs already is not put off."""
        if then not in self._timers:
            self._timers[then] = self.loop.call_later(within, then)

    def _cancel(self, then: Callable[[], None]) -> None:
        if then in self._timers:
            self._timers.pop(then).cancel()

    def _give_up(self) -> None:
        if self._has_begun():
            self._refuse(408, f"the headers of a request must come within {HEADERS_WITHIN:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, line: str) -> None:
        """Answer in place of the application, if that is possible, and end."""
        if self._may_answer():
            body = msgspec.json.encode(Error(line))
            headers = {"Content-Type": "application/json", "Content-Length": f"{len(body)}", "Connection": "close"}
            if status == 503:
                headers["Retry-After"] = RETRY_AFTER
            self._write(status, list(headers.items()), body)
        self.transport.close()

    def _has_begun(self) -> bool:
        """Whether a part of a request's headers has come."""
        raise NotImplementedError

    def _is_answered(self) -> bool:
        """Whether what was just taken is answered already, and nothing came after it."""
        return False

    def _may_answer(self) -> bool:
        """Whether an answer would be taken for one to the last request."""
        raise NotImplementedError

    def _write(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send an answer."""
        raise NotImplementedError


def too_many() -> str:
    """What a caller is told when there is no place for it."""
    return f"too many callers: {MAX_CALLERS} requests are being answered already; try again"


def connection_class() -> type[asyncio.Protocol]:
    """The class of connections, by the fastest parser that is installed; the other one stays out of memory."""
    if find_spec("httptools") is None:
        from .plain import PlainConnection

        return PlainConnection
    from .fast import FastConnection

    return FastConnection
