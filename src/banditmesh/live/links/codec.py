"""Frames and the values that they carry: what two nodes say to each other, and nothing of when.

    frame        4 bytes of length, big-endian, then as many bytes: one msgpack array [kind, body, ...]
    hello        [mesh, node, epoch, version, protocol, software, bandits]
    statistics   [[origin, epoch, arm, count, sum, ttl, weight, weighted_sum, stamp, certificate, signature], ...],
                 and behind the body, in the frame, [certificate, ...], those that they are signed by
    notices      [bytes, ...], as the authority signed them
    ping, pong   [number]
    bye          [reason]
    wanted       [[certificate id, ...], [name, ...]]

Since version 2 there are `bandits` in a hello (each a name and its memory), what follows the ttl of a statistic,
certificates, and `wanted`. Of a statistic without a signature what follows the ttl may be missing, and of one without a
memory, too.

Every array may be longer than this: later versions add fields at the end, and nodes that do not know them skip them.
A kind that is not known is skipped, too. Three rules keep a stranger's bytes harmless:

- A frame is at most 256 KiB, and nothing is allocated on the word of a length, only for bytes that have come.
- Bytes that are no such frame are a `FrameError`, whatever they are; the link they came on is closed.
- A statistic of wrong types in a frame that is otherwise sound is left out and counted, `Statistics.n_malformed`: a
  later version's mistake costs that statistic, not the link. A frame with more than 1,000 of them is a `FrameError`:
  looking at each takes time. Types are all that is checked here; whether names, counts and sums are within their ranges
  is for the member to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, NamedTuple

from msgspec import DecodeError, Meta, Raw, Struct, ValidationError, field
from msgspec.msgpack import Decoder, Encoder

from ...errors import FrameError, InputError
from ..statistics import Statistic

#: The wire version that this module speaks. Two nodes speak the smaller of theirs.
VERSION: Final = 2
#: The most bytes in a frame, its length aside.
MAX_FRAME: Final = 256 * 1024

#: The most bandits in a hello.
MAX_BANDITS: Final = 1_000
#: The most ids and names that a frame may ask for.
MAX_WANTED: Final = 1_000
#: The most malformed statistics in a frame that is otherwise sound.
MAX_MALFORMED: Final = 1_000

HELLO: Final = 1
STATISTICS: Final = 2
NOTICES: Final = 3
PING: Final = 4
PONG: Final = 5
BYE: Final = 6
WANTED: Final = 7

_Text = Annotated[str, Meta(max_length=256)]
_Natural = Annotated[int, Meta(ge=0)]


class Hello(Struct, frozen=True, array_like=True):
    """Who a node is: the first frame in each direction.

    Examples
    --------
    >>> hello = Hello("shop", "a", 7, VERSION, "fwa(4)", "banditmesh 1.0")
    >>> decode(encode_hello(hello)[4:]) == hello
    True
    """

    mesh: _Text
    node: _Text
    epoch: _Natural
    version: Annotated[int, Meta(ge=1)]
    protocol: _Text
    software: _Text
    bandits: Annotated[list[tuple[_Text, _Text]], Meta(max_length=MAX_BANDITS)] = []


class Statistics(NamedTuple):
    """Statistics and certificates (DER) as they came, and how many things came in place of a statistic."""

    statistics: list[Statistic]
    n_malformed: int = 0
    certificates: Sequence[bytes] = ()


class Notices(NamedTuple):
    """Notices of the authority as they came; nothing is verified yet."""

    notices: list[bytes]


class Wanted(Struct, frozen=True, array_like=True):
    """What a node lacks: certificates, by their ids, and members that it wants to hear everything of again."""

    certificates: Annotated[list[bytes], Meta(max_length=MAX_WANTED)] = []
    names: Annotated[list[_Text], Meta(max_length=MAX_WANTED)] = []


class Ping(Struct, frozen=True, array_like=True):
    """A question whether the other side is there; it is answered with a pong of the same number."""

    number: _Natural = 0


class Pong(Struct, frozen=True, array_like=True):
    """The answer to a ping."""

    number: _Natural = 0


class Bye(Struct, frozen=True, array_like=True):
    """The last frame of a connection, and why it is the last."""

    reason: _Text = ""


Message = Hello | Statistics | Notices | Ping | Pong | Bye | Wanted


class _Frame(Struct, array_like=True):
    kind: int
    body: Raw = field(default_factory=lambda: Raw(b"\x90"))
    more: Raw = field(default_factory=lambda: Raw(b"\x90"))


_encode = Encoder().encode
_decode_frame = Decoder(_Frame).decode
_decode_statistics = Decoder(list[Statistic]).decode
_decode_one = Decoder(Statistic).decode
_decode_array = Decoder(list[Raw]).decode
_decode_bytes = Decoder(list[bytes]).decode
_decode_certificates = Decoder(tuple[bytes, ...]).decode
_decode_body: dict[int, Any] = {
    kind: Decoder(body).decode
    for kind, body in ((HELLO, Hello), (PING, Ping), (PONG, Pong), (BYE, Bye), (WANTED, Wanted))
}
# What msgspec raises for bytes that do not fit: the last two for text that is not UTF-8, and for deep nesting.
_UNFIT = (DecodeError, UnicodeDecodeError, RecursionError)


def encode_hello(hello: Hello) -> bytes:
    """A hello as a frame, its length included."""
    return _frame(HELLO, hello)


def encode_statistics(
    statistics: Sequence[Statistic], certificates: Sequence[bytes] = (), version: int = VERSION
) -> bytes:
    """Statistics, and certificates that they are signed by, as a frame, its length included.

    To a neighbour of version 1 goes no more than it knows.

    Examples
    --------
    >>> frame = encode_statistics([Statistic("a", 7, "red", 2, 1.5, 4)])
    >>> decode(frame[4:]).statistics
    [Statistic(origin='a', epoch=7, arm='red', count=2, total=1.5, ttl=4)]
    """
    body: Sequence[Any] = statistics
    if version < 2 or not all(one.weight for one in statistics):
        # What says nothing, or what the other side does not know, is left out.
        body = [
            one if one.weight and version > 1 else (one.origin, one.epoch, one.arm, one.count, one.total, one.ttl)
            for one in statistics
        ]
    return _frame(STATISTICS, body, certificates) if certificates and version > 1 else _frame(STATISTICS, body)


def encode_notices(notices: Iterable[bytes]) -> bytes:
    """Notices, as they were signed, as a frame, its length included."""
    return _frame(NOTICES, list(notices))


def encode_ping(number: int = 0) -> bytes:
    """A ping as a frame, its length included."""
    return _frame(PING, (number,))


def encode_pong(number: int = 0) -> bytes:
    """The answer to the ping of the same number as a frame, its length included."""
    return _frame(PONG, (number,))


def encode_wanted(certificates: Iterable[bytes], names: Iterable[str]) -> bytes:
    """What is lacking, as a frame, its length included."""
    return _frame(WANTED, (list(certificates), list(names)))


def encode_bye(reason: str) -> bytes:
    """A bye as a frame, its length included."""
    return _frame(BYE, (reason[:256],))


def decode(frame: bytes) -> Message | None:
    """What a frame says, without its length; None if it is of a kind that is not known here.

    Raises
    ------
    FrameError
        The bytes are no frame of this format.

    Examples
    --------
    >>> decode(encode_bye("leaving")[4:])
    Bye(reason='leaving')
    >>> decode(b"HTTP")
    Traceback (most recent call last):
        ...
    banditmesh.errors.FrameError: a frame must be a msgpack array of kind and body, got 4 bytes that are not one
    """
    try:
        one = _decode_frame(frame)
    except _UNFIT:
        raise FrameError(
            f"a frame must be a msgpack array of kind and body, got {len(frame)} bytes that are not one"
        ) from None
    kind, body = one.kind, one.body
    try:
        if kind == STATISTICS:
            return _statistics(body, one.more)
        if kind == NOTICES:
            return Notices(_decode_bytes(body))
        if kind in _decode_body:
            message: Message = _decode_body[kind](body)
            return message
    except _UNFIT as error:
        raise FrameError(f"a frame of kind {kind} must have the fields of its kind, got: {error}") from None
    return None


def _statistics(body: Raw, more: Raw) -> Statistics:
    certificates = _decode_certificates(more)
    try:
        return Statistics(_decode_statistics(body), 0, certificates)
    except (ValidationError, UnicodeDecodeError):
        pass  # some are malformed: look at each
    found, n_malformed = [], 0
    for raw in _decode_array(body):
        try:
            found.append(_decode_one(raw))
        except (ValidationError, UnicodeDecodeError):
            n_malformed += 1
            if n_malformed > MAX_MALFORMED:
                raise FrameError(f"a frame may have {MAX_MALFORMED} malformed statistics, got one more") from None
    return Statistics(found, n_malformed, certificates)


def _frame(kind: int, *body: Any) -> bytes:
    frame = _encode((kind, *body))
    if len(frame) > MAX_FRAME:
        raise InputError(f"a frame must be at most {MAX_FRAME} bytes, got {len(frame)}; send it in pieces")
    return len(frame).to_bytes(4, "big") + frame


class Splitter:
    r"""Cuts a stream of bytes into frames.

    It holds at most one unfinished frame, and no more of it than has come.

    Examples
    --------
    >>> splitter, stream = Splitter(), encode_ping(1) + encode_bye("leaving")
    >>> splitter.feed(stream[:9])
    [b'\x92\x04\x91\x01']
    >>> [decode(frame) for frame in splitter.feed(stream[9:])]
    [Bye(reason='leaving')]
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take what came, and give the frames that are now complete, without their lengths.

        Raises
        ------
        FrameError
            A length above the limit: whatever follows is not worth waiting for.
        """
        rest = self._rest
        rest += data
        frames, start = [], 0
        with memoryview(rest) as view:
            while len(view) - start >= 4:
                length = int.from_bytes(view[start : start + 4], "big")
                if length > MAX_FRAME:
                    raise FrameError(f"a frame must be at most {MAX_FRAME} bytes, got a length of {length}")
                end = start + 4 + length
                if end > len(view):
                    break
                frames.append(bytes(view[start + 4 : end]))
                start = end
        del rest[:start]
        return frames
