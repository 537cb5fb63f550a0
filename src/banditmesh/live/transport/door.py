"""Where connections come in: strangers get a place until they have proved who they are, members are let in.

There are 68 places, each for 10 s. Whoever comes when all are taken gets the place of the stranger who has been there
longest: silent ones cannot keep a member out, who needs a few milliseconds. A stranger who was refused keeps its place
until its connection is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from ...errors import RefusedError
from ..addresses import Address
from .streams import Stream

#: How many steps of handshakes are made before everything else has its turn.
AT_A_TIME: Final = 4
#: How many strangers may wait beside these.
WAITING: Final = 64
#: How long a stranger may take to prove who it is, and how long dialling may take, in seconds.
WITHIN: Final = 10.0

Proved = TypeVar("Proved")


class Streams:
    """All streams of a transport that are not gone yet."""

    def __init__(self) -> None:
        self._open: set[Stream] = set()
        self._gone = asyncio.Event()

    async def dial(self, address: Address) -> Stream:
        """A new connection."""
        loop = asyncio.get_running_loop()
        _, stream = await loop.create_connection(lambda: Stream(self.add, self.remove), *address)
        return stream

    def add(self, stream: Stream) -> None:
        """Remember a stream that is there."""
        self._open.add(stream)

    def remove(self, stream: Stream) -> None:
        """Forget a stream that is gone."""
        self._open.discard(stream)
        self._gone.set()

    async def close(self) -> None:
        """Cut all but those that are being closed, which end by themselves, and wait until all are gone."""
        while self._open:
            for stream in self._open:
                if not stream.is_closing:
                    stream.abort()
            self._gone.clear()
            await self._gone.wait()


class Turns:
    """So many pieces of work before everything else that waits in the event loop has its turn."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._left = n

    async def take(self) -> None:
        """Wait for a turn."""
        while not self._left:
            await asyncio.sleep(0)
        if self._left == self._n:
            asyncio.get_running_loop().call_soon(self._refill)
        self._left -= 1

    def _refill(self) -> None:
        self._left = self._n


class Door(Generic[Proved]):
    """A door, closed at first.

    Parameters
    ----------
    streams : Streams
        Where connections are remembered while they are there.
    prove : coroutine function
        Makes a connection of a stream, or raises a `RefusedError`.
    accept : coroutine function
        What is done with a connection.
    refused : callable
        Called with the error and the stream, once for everybody who is not let in.
    within : float
        How long a stranger may take to prove who it is, in seconds.
    """

    address: str
    """Where it listens, with the port that it got."""

    def __init__(
        self,
        streams: Streams,
        prove: Callable[[Stream], Awaitable[Proved]],
        accept: Callable[[Proved], Awaitable[None]],
        refused: Callable[[RefusedError, Stream], None],
        within: float,
    ) -> None:
        self._streams = streams
        self._prove = prove
        self._accept = accept
        self._refused = refused
        self._within = within
        self._strangers: dict[Stream, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server

    async def open(self, address: Address) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Stream(self._came, self._went), *address)
        self.address = str(Address.of(self._server.sockets[0].getsockname()))

    def close(self) -> None:
        """Take no more, and send strangers away; members stay."""
        self._server.close()
        for stream in list(self._strangers):
            self._send_away(stream)

    def _came(self, stream: Stream) -> None:
        self._streams.add(stream)
        if len(self._strangers) == AT_A_TIME + WAITING:
            oldest = next(iter(self._strangers))
            if not self._strangers[oldest].done():
                self._refused(RefusedError("too_many", "the place was needed for newer connections"), oldest)
            self._send_away(oldest)
        task = asyncio.get_running_loop().create_task(self._welcome(stream))
        self._strangers[stream] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _went(self, stream: Stream) -> None:
        self._strangers.pop(stream, None)
        self._streams.remove(stream)

    def _send_away(self, stream: Stream) -> None:
        self._strangers.pop(stream).cancel()
        stream.abort()

    async def _welcome(self, stream: Stream) -> None:
        try:
            async with asyncio.timeout(self._within):
                connection = await self._prove(stream)
        except TimeoutError:
            self._refuse(RefusedError("timeout", f"the handshake must be over within {self._within:g} s"), stream)
            return
        except RefusedError as error:
            self._refuse(error, stream)
            return
        self._strangers.pop(stream, None)
        try:
            await self._accept(connection)
        except BaseException:
            stream.close()
            raise

    def _refuse(self, error: RefusedError, stream: Stream) -> None:
        stream.close()
        self._refused(error, stream)
