"""A TCP connection as a stream of bytes, with little memory in both directions, and an end that always comes.

- Reading stops while 64 KiB wait to be read; the other side then has to wait.
- Writing waits while 64 KiB wait to be sent. The kernel's own buffer is as small: what is sent should be fresh.
- Closing says all that was written, ends the sending direction, and reads on for a second without looking, so that the
  last words are not lost to a reset. After that second the connection is cut, whatever the other side does.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from ..addresses import Address

#: The most bytes that wait, in either direction, before the one who brings more has to wait.
BUFFER: Final = 64 * 1024
#: For how long a connection that is being closed may take to end.
LINGER: Final = 1.0


class Stream(asyncio.Protocol):
    """One connection.

    Parameters
    ----------
    made, lost : callable
        Called with the stream when it is there, and when it is gone.
    """

    address: Address

    def __init__(self, made: Callable[[Stream], None], lost: Callable[[Stream], None]) -> None:
        self._made = made
        self._lost = lost
        self._transport: asyncio.Transport
        self._chunks: deque[bytes] = deque()
        self._n_waiting = 0
        self._came = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._paused = False
        self._is_over = False
        self.is_closing = False
        self._error: Exception | None = None
        self._cut: asyncio.TimerHandle | None = None

    async def receive(self) -> bytes:
        """What came next, at most 64 KiB; b"" at the end.

        Raises
        ------
        ConnectionError
            The connection was lost.
        """
        await self.wait()
        if not self._chunks:
            if self._error is not None and not self.is_closing:
                raise ConnectionResetError(f"the connection was lost: {self._error}")
            return b""
        chunk = self._chunks.popleft()
        if len(chunk) > BUFFER:
            self._chunks.appendleft(chunk[BUFFER:])
            chunk = chunk[:BUFFER]
        self._n_waiting -= len(chunk)
        if self._paused and self._n_waiting <= BUFFER // 2:
            self._paused = False
            self._transport.resume_reading()
        return chunk

    async def wait(self) -> None:
        """Wait until there is something to receive, or the end."""
        while not (self._chunks or self._is_over or self.is_closing):
            self._came.clear()
            await self._came.wait()

    def send(self, data: bytes) -> None:
        """Send without waiting; nothing happens if the connection is over."""
        if data and not self._is_over and not self.is_closing:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until there is room for more.

        Raises
        ------
        ConnectionError
            There will be none: the connection is over.
        """
        if not self._is_over:
            await self._drained.wait()
        if self._is_over or self.is_closing:
            raise ConnectionResetError("the connection is over; nothing can be sent any more")

    def close(self) -> None:
        """End the connection in good order, within a second; what comes now is not read."""
        if self.is_closing or self._is_over:
            return
        self.is_closing = True
        self._forget()
        with suppress(OSError):  # the other side may have reset it, which asyncio finds out in its next turn
            self._transport.write_eof()
        if self._paused:
            self._transport.resume_reading()
        self._end_soon()

    def abort(self) -> None:
        """End the connection at once."""
        self.is_closing = True
        self._forget()
        self._transport.abort()

    def _forget(self) -> None:
        self._chunks.clear()
        self._n_waiting = 0
        self._came.set()
        self._drained.set()

    def _end_soon(self) -> None:
        if self._cut is None:
            self._cut = asyncio.get_running_loop().call_later(LINGER, self._transport.abort)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=BUFFER)
        # A peer that has gone already has no address any more.
        self.address = Address.of(transport.get_extra_info("peername") or ("unknown", 0))
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self._made(self)

    def data_received(self, data: bytes) -> None:
        """Keep what came for the reader."""
        if self.is_closing:
            return
        self._chunks.append(data)
        self._n_waiting += len(data)
        if self._n_waiting > BUFFER and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._came.set()

    def eof_received(self) -> None:
        """The other side sends no more: asyncio closes the connection when all is sent, or the second is over."""
        self._is_over = True
        self._end_soon()
        self._came.set()
        self._drained.set()

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self._is_over = True
        self._error = error
        self._came.set()
        self._drained.set()
        if self._cut is not None:
            self._cut.cancel()
        self._lost(self)

    def pause_writing(self) -> None:
        """There is no room for more."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """There is room again."""
        self._drained.set()
