"""Connections of those who call the HTTP API: silent, slow and too many of them keep nobody out.

Rules kept here. A connection may wait `HEADERS_WITHIN` for its request to begin and for all of its headers; one that is
kept after an answer has the server's keep-alive time until the next byte. A caller that does not read its answer for
`READS_WITHIN` is cut off. Of `MOST_CALLERS` connections and those kept for probes, the one that has been without a
request for longest goes when another one comes; a request under way is never cut off for that. At most `MOST_CALLERS`
requests are answered at a time, but probes always are. Whatever is refused gets one line of JSON, as everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

import h11
import msgspec
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from .openapi import OPEN, Error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: How many requests are answered at a time, and how many more connections there may be, for probes.
MOST_CALLERS: Final = 256
FOR_PROBES: Final = 16
#: How long a connection may be without a whole request, and how long an answer may go unread, in seconds.
HEADERS_WITHIN: Final = 10.0
READS_WITHIN: Final = 30.0
#: When to ask again, in seconds.
RETRY_AFTER: Final = "1"


class CallerConnection(H11Protocol):
    """One connection, as uvicorn serves it, with an end that always comes."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._since = self.loop.time()
        #: By what happens then: what is waited for.
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is a place."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CALLERS + FOR_PROBES and not self._take_place():
            self._refuse(503, _too_many())
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
        super().data_received(data)
        if self.is_busy or self.transport.is_closing():
            self._cancel(self._give_up)
        else:
            self._expect(HEADERS_WITHIN, self._give_up)

    def on_response_complete(self) -> None:
        """The answer is sent."""
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller does not read."""
        super().pause_writing()
        self._expect(READS_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads."""
        self._cancel(self.transport.abort)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        for then in list(self._timers):
            self._cancel(then)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "a request must be HTTP/1.1, got something else")

    def _expect(self, within: float, then: Callable[[], None]) -> None:
        """Unless it is cancelled, do that after so many seconds; what is waited for already is not put off."""
        if then not in self._timers:
            self._timers[then] = self.loop.call_later(within, then)

    def _cancel(self, then: Callable[[], None]) -> None:
        if then in self._timers:
            self._timers.pop(then).cancel()

    def _give_up(self) -> None:
        has_begun = bool(self.conn.trailing_data[0])
        if has_begun:
            self._refuse(408, f"the headers of a request must come within {HEADERS_WITHIN:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, line: str) -> None:
        """Answer in place of the application, and end."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = msgspec.json.encode(Error(line))
            headers = {"Content-Type": "application/json", "Content-Length": f"{len(body)}", "Connection": "close"}
            if status == 503:
                headers["Retry-After"] = RETRY_AFTER
            answer = h11.Response(status_code=status, headers=list(headers.items()))
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def limited(app: ASGIApp, always: Collection[str] = OPEN) -> ASGIApp:
    """The same application, for `MOST_CALLERS` requests at a time, but for those paths, which are always answered."""
    n_running = 0

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal n_running
        if scope["path"] in always:
            await app(scope, receive, send)
        elif n_running >= MOST_CALLERS:
            answer = JSONResponse({"error": _too_many()}, 503, {"Retry-After": RETRY_AFTER})
            await answer(scope, receive, send)
        else:
            n_running += 1
            try:
                await app(scope, receive, send)
            finally:
                n_running -= 1

    return within


def _too_many() -> str:
    return f"too many callers: {MOST_CALLERS} requests are being answered already; try again"
