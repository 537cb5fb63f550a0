"""A connection whose requests h11 parses; where httptools is not installed."""

from __future__ import annotations

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from . import connections


class PlainConnection(connections._Ending, H11Protocol):  # type: ignore[misc]
    """A connection whose requests h11 parses."""

    def _has_begun(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def _may_answer(self) -> bool:
        return self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    def _write(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        answer = h11.Response(status_code=status, headers=headers)
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
