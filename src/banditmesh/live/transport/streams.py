"""TCP connections as streams of bytes, plain or over TLS, with little memory in both directions, and an end that always
comes.

- Reading stops while 64 KiB wait to be read; the other side then has to wait.
- Writing waits while 64 KiB wait to be sent. The kernel's own buffer is as small: what is sent should be fresh.
- Closing sends all that was written, ends the sending direction, and reads on for a second without looking, so that the
  last words are not lost to a reset. After that second the connection is cut, whatever the other side does.

The TLS handshake is done here step by step, so that both sides can name what they refuse. In TLS 1.3 a client has
finished before the server has looked at its certificate. So a client that is refused learns of it from what it reads
first: `TlsConnection.read` then raises the same `RefusedError` that a handshake raises.

Reasons are few and short words, for counters:

    wrong_authority   another authority issued the certificate, or none that is known
    self_signed       no authority did
    expired           its time is over
    not_yet_valid     its time has not come, by this clock
    no_certificate    there was none
    plaintext         the other side does not speak TLS
    bad_uri           the authority issued it, but not for a member
    wrong_mesh        it is of another mesh
    wrong_name        it is of another member than the one that was meant
    timeout           it took too long
    too_many          newer connections needed the place
    closed            the other side hung up
    other             something else, see the message
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, cast

from ...errors import RefusedError
from ..names import Address
from .identity import Identity

#: The most bytes that wait, in either direction, before the sender of more has to wait.
BUFFER: Final = 64 * 1024
#: For how long a connection that is being closed may take to end.
LINGER: Final = 1.0


#: OpenSSL's X509_V_ERR_* codes.
_VERIFY_CODES: Final = {
    7: "wrong_authority",  # CERT_SIGNATURE_FAILURE
    9: "not_yet_valid",  # CERT_NOT_YET_VALID
    10: "expired",  # CERT_HAS_EXPIRED
    18: "self_signed",  # DEPTH_ZERO_SELF_SIGNED_CERT
    19: "wrong_authority",  # SELF_SIGNED_CERT_IN_CHAIN
    20: "wrong_authority",  # UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    21: "wrong_authority",  # UNABLE_TO_VERIFY_LEAF_SIGNATURE
    30: "wrong_authority",  # AKID_SKID_MISMATCH
}
#: How OpenSSL's other reasons end, most of them alerts of the other side.
_ENDINGS: Final = {
    "ALERT_UNKNOWN_CA": "wrong_authority",
    "ALERT_CERTIFICATE_EXPIRED": "expired",
    "ALERT_CERTIFICATE_REQUIRED": "no_certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no_certificate",
    "HTTP_REQUEST": "plaintext",
    "WRONG_VERSION_NUMBER": "plaintext",
}
_HANDSHAKE, _ALERT = 0x16, 0x15
_RECORD: Final = 16 * 1024


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


class PlainConnection:
    """A connection that proves nothing."""

    peer = None

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        """What came next, at most 64 KiB; b"" at the end."""
        return await self._stream.receive()

    async def write(self, data: bytes) -> None:
        """Send, and wait until there is room for more."""
        self._stream.send(data)
        await self._stream.drain()

    def close(self) -> None:
        """End the connection; what was written still goes out, within a second."""
        self._stream.close()


class Session:
    """The TLS of one stream: bytes through OpenSSL in both directions, and no policy."""

    def __init__(self, stream: Stream, context: ssl.SSLContext, server_side: bool) -> None:
        self._stream = stream
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)

    async def shake_hands(self, turn: Callable[[], Awaitable[None]] | None = None) -> None:
        """Shake hands; `turn` is awaited before each piece of work.

        Raises
        ------
        RefusedError
            One side does not accept the other.
        """
        is_first = True
        while True:
            if turn is not None:
                await turn()
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.flush()
            except ssl.SSLError as error:
                self.flush()  # an alert, for the other side to know
                raise refusal(error) from None
            else:
                self.flush()
                return
            try:
                data = await self._stream.receive()
            except ConnectionError:
                data = b""
            if not data:
                raise RefusedError("closed", "the other side hung up during the handshake")
            if is_first and data[0] not in (_HANDSHAKE, _ALERT):
                raise RefusedError("plaintext", "the other side must speak TLS, got something else")
            is_first = False
            self._incoming.write(data)

    async def read(self) -> bytes:
        """What came next, at most 64 KiB; b"" at the end."""
        while True:
            pieces, size = [], 0
            try:
                while size <= BUFFER - _RECORD:
                    piece = self.tls.read(_RECORD)
                    if not piece:
                        break
                    pieces.append(piece)
                    size += len(piece)
            except ssl.SSLWantReadError:
                if not pieces:
                    data = await self._stream.receive()
                    if not data:
                        return b""
                    self._incoming.write(data)
                    continue
            except ssl.SSLZeroReturnError:
                pass
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]
        self.flush()

    def say_end(self) -> None:
        """Tell the other side that no more will come."""
        with suppress(ssl.SSLError):  # it wants the other side's answer, which is not waited for
            self.tls.unwrap()
        self.flush()

    def flush(self) -> None:
        """Send what OpenSSL wants to be sent."""
        if self._outgoing.pending:
            self._stream.send(self._outgoing.read())


class TlsConnection:
    """A connection whose other end has proved who it is."""

    def __init__(
        self, stream: Stream, session: Session, peer: Identity, refused: Callable[[RefusedError], None]
    ) -> None:
        self.peer = peer
        self._stream = stream
        self._session = session
        self._refused = refused
        self._has_read = False
        self._kept: bytes | None = None

    async def read(self) -> bytes:
        """What came next, at most 64 KiB; b"" at the end.

        Raises
        ------
        RefusedError
            The other side does not accept this one.
        ConnectionError
            The connection was lost, or its bytes were changed on the way.
        """
        if self._kept is not None:
            data, self._kept = self._kept, None
            return data
        try:
            data = await self._session.read()
        except ssl.SSLError as error:
            self._stream.close()
            if self._has_read or "ALERT" not in (error.reason or ""):
                raise ConnectionResetError(f"the connection must carry TLS, got: {error.reason}") from None
            refused = refusal(error)
            self._refused(refused)
            raise refused from None
        self._has_read = True
        if not data:
            self.close()  # there are no connections in one direction only
        return data

    async def write(self, data: bytes) -> None:
        """Send, and wait until there is room for more.

        Raises
        ------
        ConnectionError
            The connection is over.
        """
        try:
            self._session.write(data)
        except ssl.SSLError as error:
            raise ConnectionResetError(f"the connection is over: {error.reason}") from None
        try:
            await self._stream.drain()
        except ConnectionError:
            if not self._has_read:
                # The other side may have said why, and that is worth more than the news that it has gone.
                self._kept = await self.read()
            raise

    def close(self) -> None:
        """End the connection; what was written still goes out, within a second."""
        if not self._stream.is_closing:
            self._session.say_end()
            self._stream.close()


def refusal(error: ssl.SSLError) -> RefusedError:
    """A failed handshake in one of the words above, with OpenSSL's own reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _VERIFY_CODES.get(error.verify_code, "other")
        return RefusedError(reason, f"the other side's certificate was not accepted: {error.verify_message}")
    said = error.reason or "TLS failed"
    reason = next((word for ending, word in _ENDINGS.items() if said.endswith(ending)), "other")
    who = "the other side did not accept this one" if "ALERT" in said else "the handshake failed"
    return RefusedError(reason, f"{who}: {said.lower().replace('_', ' ')}")
