"""Connections between nodes: whom they are with is proved before anybody hears of them.

`TlsTransport` is what nodes use. `PlainTransport` proves nothing, and so connects this machine with itself only. Tests
have a third one, of simulated links. Every connection that one side does not accept is reported once on each side, as a
`Refusal` with one of the reasons of `tls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from ...errors import InputError, RefusedError
from ..addresses import Address
from ..links.codec import encode_bye
from .door import AT_A_TIME, WITHIN, Door, Streams, Turns
from .identity import Contexts, Identity, peer_identity
from .streams import Stream
from .tls import Session, TlsConnection

__all__ = ["Accept", "Connection", "Identity", "Listener", "PlainTransport", "Refusal", "TlsTransport", "Transport"]


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


class Refusal(NamedTuple):
    """Why a connection did not come to be; `node` is who was meant, or who came, as far as that is known."""

    reason: str
    message: str
    address: str
    dialled: bool
    node: str | None


class PlainConnection:
    """A connection that proves nothing."""

    peer = None

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        """See `Connection`."""
        return await self._stream.receive()

    async def write(self, data: bytes) -> None:
        """See `Connection`."""
        self._stream.send(data)
        await self._stream.drain()

    def close(self) -> None:
        """See `Connection`."""
        self._stream.close()


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
        Called with a `Refusal` for each connection that one side does not accept.
    within : float
        How long a handshake may take, in seconds.
    """

    def __init__(
        self,
        contexts: Contexts,
        on_refusal: Callable[[Refusal], None] = lambda refusal: None,
        *,
        within: float = WITHIN,
    ) -> None:
        self.contexts = contexts
        self._on_refusal = on_refusal
        self._within = within
        self._streams = Streams()
        self._turns = Turns(AT_A_TIME)

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
        self._on_refusal(Refusal(error.reason, str(error), str(address), dialled, node))


def _loopback(text: str) -> Address:
    address = Address.parse(text)
    if not address.is_loopback:
        raise InputError(f"plain TCP must stay within this machine, got {address}; use keys, or 127.0.0.1")
    return address
