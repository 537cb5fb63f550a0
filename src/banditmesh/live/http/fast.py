"""A connection whose requests httptools parses; only where that is installed.

A request to which the application may have a quick answer (`Entrance.quick`), and that comes whole in one piece, is
answered here, without the task, events and messages of ASGI: they cost more than most answers. Each piece that is read
may have one; what comes behind it, and all that is out of the ordinary, takes its turn like any other request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ...errors import InputError
from . import connections

if TYPE_CHECKING:
    from .sidecar import Reply


class _Flow(FlowControl):
    """Reads on only when no request waits for its turn: what is read is parsed at once, and would pile up.

    All that wait have come whole, but for the last one, which needs more only when it is the one that is answered.
    """

    def __init__(self, transport: asyncio.Transport, waiting: deque[Any]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class _Cycle:
    """A quick request that is being answered: what uvicorn looks at of any."""

    #: Set when the connection is lost; here nothing waits for it.
    message_event = asyncio.Event()
    #: It has come whole.
    more_body = False

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.response_started = self.response_complete = self.disconnected = False


class _Quick(HttpToolsProtocol):
    """Answers quickly what can be."""

    #: Whether there may be a quick answer to what is being read, and the body of a request that may get it.
    _may_be_quick = False
    _held: bytes | None = None

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that is not whole by then is none to be answered quickly."""
        self._may_be_quick = True
        super().data_received(data)
        if (body := self._held) is not None:
            self._held = None
            if not self.transport.is_closing():
                super().on_headers_complete()
                super().on_body(body)

    def on_headers_complete(self) -> None:
        """Hold a request back that may be quick."""
        parser = self.parser
        if (
            self._may_be_quick
            and (self.cycle is None or self.cycle.response_complete)
            and self.app.is_quick(parser.get_method(), self.url)
            and parser.get_http_version() == "1.1"
            and not (parser.should_upgrade() or self.expect_100_continue or self.flow.write_paused)
        ):
            self._held = b""
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def on_message_complete(self) -> None:
        """Answer a request that was held back."""
        if self._held is not None:
            body, self._held = self._held, None
            reply = self.app.quick(self.url, self.headers, body)
            if reply is not None:
                self._may_be_quick = False
                self._answer(reply)
                return
            super().on_headers_complete()
            super().on_body(body)
        super().on_message_complete()

    def _answer(self, reply: Reply | Awaitable[Reply]) -> None:
        cycle = _Cycle(self.parser.should_keep_alive())
        self.cycle = cycle  # type: ignore[assignment]
        if isinstance(reply, tuple):
            self._send(cycle, *reply)
        else:
            task = self.loop.create_task(self._send_later(cycle, reply))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _send_later(self, cycle: _Cycle, reply: Awaitable[Reply]) -> None:
        try:
            self._send(cycle, *await reply)
        except asyncio.CancelledError:
            self.transport.close()
            raise

    def _send(self, cycle: _Cycle, status: int, body: bytes) -> None:
        # By now, the connection's cycle may be another one, that waits for its turn.
        cycle.response_started = cycle.response_complete = True
        if self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, (b"content-type", b"application/json")]
        if status == 503:
            headers.append((b"retry-after", connections.RETRY_AFTER.encode()))
        if not cycle.keep_alive:
            headers.append((b"connection", b"close"))
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self.transport.write(b"%bcontent-length: %d\r\n%b\r\n%b" % (STATUS_LINE[status], len(body), lines, body))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


class FastConnection(connections._Ending, _Quick):
    """A connection whose requests httptools parses."""

    #: Whether a part of a request's headers has come or perhaps, behind its body, one of trailers; and how many bytes
    #: came after it did.
    _in_headers = _in_trailers = False
    _n_more = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self.flow: FlowControl = _Flow(transport, self.pipeline)

    def data_received(self, data: bytes) -> None:
        """Take what came, of headers and trailers up to a size: the parser has no limit."""
        if self._in_headers or self._in_trailers:
            self._n_more += len(data)
        super().data_received(data)
        if (self._in_headers or self._in_trailers) and self._n_more > connections.MAX_HEADERS:
            self.send_400_response("")
        if self.is_busy:
            # The connection was idle after a quick answer, until what came behind it in the same piece.
            self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; behind a whole request, by ending the connection with its answer."""
        if self.is_busy and not self.cycle.more_body:
            self.flow.pause_reading()
            self.cycle.keep_alive = False
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_headers, self._n_more = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its headers are whole."""
        self._in_headers = False
        n_bytes = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if n_bytes > connections.MAX_HEADERS:
            raise InputError(f"headers must be of at most {connections.MAX_HEADERS} bytes, got {n_bytes}")
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """A part of the body follows or, after all of them, trailers."""
        self._in_trailers, self._n_more = True, 0

    def on_body(self, body: bytes) -> None:
        """A part of the body it is."""
        self._in_trailers = False
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """The part has ended, or the trailers have."""
        self._in_trailers = False

    def _unsupported_upgrade_warning(self) -> None:
        """What comes after a request for another protocol is not parsed; so the connection ends with the answer."""
        self.cycle.keep_alive = False

    def _has_begun(self) -> bool:
        return self._in_headers

    def _is_answered(self) -> bool:
        return not self._may_be_quick and not self._in_headers

    def _may_answer(self) -> bool:
        return not self.pipeline and not (self.is_busy and self.cycle.response_started)

    def _write(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers)]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
