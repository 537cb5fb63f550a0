"""TLS over a stream, with the handshake done here and by hand, so that both sides can name what they refuse.

In TLS 1.3 a client has finished before the server has looked at its certificate. So a client that is refused learns of
it from what it reads first: `TlsConnection.read` then raises the same `RefusedError` that a handshake raises.

Reasons are few and short words, for counters:

    wrong_authority   another authority issued the certificate, or none that is known
    self_signed       no authority did
    expired           its time is over
    not_yet_valid     its time has not come, by this clock
    no_certificate    there was none
    plaintext         the other side speaks no TLS
    bad_uri           the authority issued it, but not for a member
    wrong_mesh        it is of another mesh
    wrong_name        it is of another member than the one that was meant
    timeout           it took too long
    too_many          newer connections needed the place
    closed            the other side hung up
    other             something else, see the message
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from ...errors import RefusedError
from .identity import Identity
from .streams import BUFFER, Stream

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
        with suppress(ssl.SSLError):  # it wants the other side's answer, for which nobody waits
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
