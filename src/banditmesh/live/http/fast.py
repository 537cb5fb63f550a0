"""A connection whose requests httptools parses; only where that is installed."""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...errors import InputError
from . import connections


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


class FastConnection(connections._Ending, HttpToolsProtocol):
    """A connection whose requests httptools parses."""

    #: Whether a part of a request's headers has come, and how many bytes came after it did.
    _in_headers = False
    _n_more = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self.flow: FlowControl = _Flow(transport, self.pipeline)

    def data_received(self, data: bytes) -> None:
        """Take what came, of headers up to a size: the parser has no limit."""
        if self._in_headers:
            self._n_more += len(data)
        super().data_received(data)
        if self._in_headers and self._n_more > connections.MAX_HEADERS:
            self.send_400_response("")

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

    def _unsupported_upgrade_warning(self) -> None:
        """What comes after a request for another protocol is not parsed; so the connection ends with the answer."""
        self.cycle.keep_alive = False

    def _has_begun(self) -> bool:
        return self._in_headers

    def _may_answer(self) -> bool:
        return not self.pipeline and not (self.is_busy and self.cycle.response_started)

    def _write(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers)]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
