"""Connections between nodes: who is at the other end is proved before the node hears of them.

`TlsTransport` is what nodes use. `PlainTransport` proves nothing, and so connects this machine with itself only. Tests
have a third one, of simulated links. Every connection that one side does not accept is reported once on each side, as a
`RefusedConnection` with one of the reasons of `streams`.

Connections come in through a `Door`: strangers get a place until they have proved who they are, members are let in.
There are 68 places, each for 10 s. A connection that comes when all are taken gets the place of the stranger who has
been there longest: silent ones cannot keep a member out, who needs a few milliseconds. A stranger who was refused keeps
its place until its connection is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ...errors import InputError, RefusedError
from ..links.codec import encode_bye
from ..names import Address
from .identity import Contexts, Identity, peer_identity
from .streams import PlainConnection, Session, Stream, TlsConnection

__all__ = [
    "Accept",
    "Connection",
    "Identity",
    "Listener",
    "PlainTransport",
    "RefusedConnection",
    "TlsTransport",
    "Transport",
]

#: How many steps of handshakes are made before everything else has its turn.
AT_A_TIME: Final = 4
#: How many strangers may wait beside these.
WAITING: Final = 64
#: How long a stranger may take to prove who it is, and how long dialling may take, in seconds.
WITHIN: Final = 10.0

Proved = TypeVar("Proved")


class Connection(Protocol):
    """A stream of bytes with an authenticated other end."""

    @property
    def peer(self) -> Identity | None:
        """Who the other end is; None where nothing is proved."""

    async def read(self) -> bytes:
        """What came next, at most 64 KiB; b"" at the end. An `OSError` if the connection was lost."""

    async def write(self, data: bytes) -> None:
        """Send, and wait until there is room for more. An `OSError` if the connection is over."""

    def close(self) -> None:
        """End the connection; what was written still goes out, within a second."""


class Listener(Protocol):
    """Takes connections until it is closed."""

    address: str
    """Where it listens, with the port that it got."""

    def close(self) -> None:
        """Take no more; connections that were accepted stay."""


Accept = Callable[[Connection], Awaitable[None]]


class Transport(Protocol):
    """Makes connections and takes them."""

    async def listen(self, address: str, accept: Accept) -> Listener:
        """Take connections at an address; each that is proved is given to `accept`."""

    async def dial(self, address: str, name: str) -> Connection:
        """Connect to the member of that name. An `OSError` if it cannot be, a `RefusedError` if one side refuses."""

    async def close(self) -> None:
        """Cut whatever is still connected, let what is being closed end, and wait until all are gone."""


class RefusedConnection(NamedTuple):
    """Why a connection did not come to be; `node` is who was meant, or who came, as far as that is known."""

    reason: str
    message: str
    address: str
    dialled: bool
    node: str | None


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


class HandshakeTurns:
    """Lets `n` pieces of work run before everything else that waits in the event loop has its turn."""

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
        Called with the error and the stream, once for each stranger that is not let in.
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


class PlainTransport:
    """Connections without TLS, within this machine."""

    def __init__(self) -> None:
        self._streams = Streams()

    async def listen(self, address: str, accept: Accept) -> Listener:
        """See `Transport`."""

        async def prove(stream: Stream) -> Connection:
            return PlainConnection(stream)

        door = Door(self._streams, prove, accept, lambda error, stream: None, WITHIN)
        await door.open(_loopback(address))
        return door

    async def dial(self, address: str, name: str) -> Connection:
        """See `Transport`; `name` cannot be checked."""
        async with asyncio.timeout(WITHIN):
            return PlainConnection(await self._streams.dial(_loopback(address)))

    async def close(self) -> None:
        """See `Transport`."""
        await self._streams.close()


class TlsTransport:
    """Connections over TLS 1.3, both sides with a certificate of the mesh.

    Parameters
    ----------
    contexts : Contexts
        The node's key, certificate and authorities. May be replaced at any time; later handshakes take the new ones.
    on_refusal : callable, optional
        Called with a `RefusedConnection` for each connection that one side does not accept.
    within : float
        How long a handshake may take, in seconds.
    """

    def __init__(
        self,
        contexts: Contexts,
        on_refusal: Callable[[RefusedConnection], None] = lambda refusal: None,
        *,
        within: float = WITHIN,
    ) -> None:
        self.contexts = contexts
        self._on_refusal = on_refusal
        self._within = within
        self._streams = Streams()
        self._turns = HandshakeTurns(AT_A_TIME)

    async def listen(self, address: str, accept: Accept) -> Listener:
        """See `Transport`."""

        async def prove(stream: Stream) -> Connection:
            await stream.wait()  # nothing is made for those who say nothing
            session = Session(stream, self.contexts.server, server_side=True)
            await session.shake_hands(self._turns.take)
            return self._connection(stream, session, None)

        def refused(error: RefusedError, stream: Stream) -> None:
            self._report(error, stream.address, False, None)

        door = Door(self._streams, prove, accept, refused, self._within)
        await door.open(Address.parse(address))
        return door

    async def dial(self, address: str, name: str) -> Connection:
        """See `Transport`."""
        where, stream = Address.parse(address), None
        try:
            async with asyncio.timeout(self._within):
                stream = await self._streams.dial(where)
                session = Session(stream, self.contexts.client, server_side=False)
                await session.shake_hands()
                return self._connection(stream, session, name)
        except TimeoutError:
            refused = RefusedError("timeout", f"{where} must answer within {self._within:g} s")
        except RefusedError as error:
            refused = error
        except asyncio.CancelledError:
            if stream is not None:
                stream.abort()
            raise
        if stream is not None:
            stream.close()
        self._report(refused, where, True, name)
        raise refused

    async def close(self) -> None:
        """See `Transport`."""
        await self._streams.close()

    def _connection(self, stream: Stream, session: Session, name: str | None) -> TlsConnection:
        """The connection, if its other end may be there at all and is who was meant."""
        try:
            peer = peer_identity(session.tls)
            if peer.mesh != self.contexts.own.mesh:
                raise RefusedError("wrong_mesh", f"the mesh must be {self.contexts.own.mesh!r}, got {peer.mesh!r}")
            if name is not None and peer.node != name:
                raise RefusedError("wrong_name", f"the member must be {name!r}, got {peer.node!r}")
        except RefusedError as error:
            session.write(encode_bye(error.reason))
            session.say_end()
            raise

        def refused(error: RefusedError) -> None:
            self._report(error, stream.address, name is not None, peer.node)

        return TlsConnection(stream, session, peer, refused)

    def _report(self, error: RefusedError, address: Address, dialled: bool, node: str | None) -> None:
        self._on_refusal(RefusedConnection(error.reason, str(error), str(address), dialled, node))


def _loopback(text: str) -> Address:
    address = Address.parse(text)
    if not address.is_loopback:
        raise InputError(f"plain TCP must stay within this machine, got {address}; use keys, or 127.0.0.1")
    return address
