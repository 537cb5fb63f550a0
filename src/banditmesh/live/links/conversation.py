"""One connection with a neighbour, from hello to its end.

    hello  the dialler's comes first; the listener answers with its own only if it accepts, else with a bye and the
           reason, so that a node that is refused knows why, and both sides can count and name it
    in     frames are decoded and heard in slices; a neighbour that sends a lot waits for its next turn like all others
    out    notices, then statistics in batches of at most 64 KiB; the next one is made when the last has drained, so
           that what is sent is as fresh as can be and a stalled neighbour costs no memory. A certificate goes with the
           first statistic that needs it, and once more if the other side asks for it
    bad    signatures are checked while nothing more is read; the tenth that is wrong ends the connection
    else   a ping after 5 s in which nothing was sent; the end after 15 s in which no byte came

A conversation ends with a reason: a short word that is counted, and a line that is shown. Nothing is remembered of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ...errors import FrameError, RefusedError
from ..statistics import CERTIFICATE_BYTES
from . import codec
from .codec import Hello

if TYPE_CHECKING:
    from ..statistics import Statistic
    from ..transport import Connection
    from ..transport.identity import Identity
    from .exchange import Exchange

PING_AFTER: Final = 5.0
DEAD_AFTER: Final = 15.0
#: How long a bye may take to leave.
BYE_WITHIN: Final = 1.0
#: The most bytes of statistics or notices in a frame.
BATCH: Final = 64 * 1024
#: How many statistics make a turn: as many as a batch has, a few milliseconds of work.
SLICE: Final = 1280
#: The same where they are signed: as many as are checked before other links have their turn.
SIGNED_SLICE: Final = 128
#: How many certificates are read at a time.
CERTIFICATES: Final = 32
#: How many signatures and certificates of a connection may be bad before it ends.
MAX_BAD: Final = 10
#: How many seconds pass before what was asked for is offered again: that is as much work as the table is large.
ANSWER_EVERY: Final = 1.0


class LinkEnded(Exception):
    """A connection cannot go on: `reason` is one of few words, `detail` a line for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class LinkTurns:
    """Turns of a few milliseconds, for all links of a node in the order in which they ask.

    Everything else (timers, callers, other links) runs between two turns.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._done = 0

    async def wait(self, units: int) -> None:
        """Wait for the turn to do `units` of work, counted in statistics."""
        if self._done >= SLICE or self._lock.locked():
            async with self._lock:
                self._done = 0
                await asyncio.sleep(0)
        self._done += units


class Frames:
    """The frames of a connection, in and out."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._splitter = codec.Splitter()
        self._complete: deque[Any] = deque()

    async def next(self) -> Any:
        """The next frame, decoded; None for a kind that is unknown."""
        while not self._complete:
            try:
                async with asyncio.timeout(DEAD_AFTER):
                    data = await self.connection.read()
            except TimeoutError:
                raise LinkEnded("silent", f"no byte came for {DEAD_AFTER:g} s") from None
            except RefusedError:
                raise
            except OSError as error:
                raise LinkEnded("lost", f"the connection was lost: {error}") from None
            if not data:
                raise LinkEnded("closed", "the other side closed the connection")
            try:
                self._complete.extend(self._splitter.feed(data))
            except FrameError as error:
                raise LinkEnded("malformed", str(error)) from None
        try:
            return codec.decode(self._complete.popleft())
        except FrameError as error:
            raise LinkEnded("malformed", str(error)) from None

    async def send(self, data: bytes) -> None:
        """Send a frame; returns when the next one may be made."""
        try:
            await self.connection.write(data)
        except OSError as error:
            raise LinkEnded("lost", f"the connection was lost: {error}") from None

    async def part(self, reason: str) -> None:
        """Send a bye, if it leaves in time, and close."""
        try:
            async with asyncio.timeout(BYE_WITHIN):
                await self.send(codec.encode_bye(reason))
        except (LinkEnded, TimeoutError):
            pass  # the other side will see the end of the connection instead
        finally:
            self.connection.close()


class Conversation:
    """A connection on which both have said hello.

    Parameters
    ----------
    frames : Frames
        The connection.
    peer : str
        The neighbour's name.
    host : Exchange
        Takes what comes, and gives what is sent.
    turns : LinkTurns
        The turns of all links of the node.
    version : int
        The wire version that both speak.

    Attributes
    ----------
    n_received, n_sent : int
        How many statistics were heard and sent.
    n_bad : int
        How many signatures and certificates were bad.
    empty_at : float
        When nothing waited the last time, by the event loop's clock.
    """

    def __init__(
        self, frames: Frames, peer: str, host: Exchange, turns: LinkTurns, version: int = codec.VERSION
    ) -> None:
        self.peer = peer
        self.version = version
        self.n_received = 0
        self.n_sent = 0
        self.n_bad = 0
        self.empty_at = asyncio.get_running_loop().time()
        self._frames = frames
        self._host = host
        self._turns = turns
        self._wake = asyncio.Event()
        #: The number of the last ping that was not answered.
        self._owes_pong: int | None = None
        self._parting: tuple[str, str] | None = None
        self._is_open = True
        #: The certificates that have been sent; what the other side asked for, and when it may be answered.
        self._sent_certificates: set[bytes] = set()
        self._asked: tuple[set[bytes], set[str]] = set(), set()
        self._answer_at = 0.0

    async def run(self) -> LinkEnded:
        """Talk until the end; why it ended."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(), name=f"reader of {self.peer}")
                tasks.create_task(self._write(), name=f"writer to {self.peer}")
        except* LinkEnded as ends:
            end = ends
        finally:
            self.close()
        first = end.exceptions[0]
        assert isinstance(first, LinkEnded)
        return first

    def wake(self) -> None:
        """Something waits to be sent."""
        self._wake.set()

    def part(self, reason: str, word: str = "parted") -> None:
        """Say bye after what is being sent, and end; at once if that does not leave in time."""
        self._parting = reason, word
        self._wake.set()
        asyncio.get_running_loop().call_later(BYE_WITHIN, self.close)

    def close(self) -> None:
        """End at once: nothing is read or sent any more."""
        self._is_open = False
        self._frames.connection.close()

    async def _read(self) -> None:
        while self._is_open:
            message = await self._frames.next()
            await self._turns.wait(1)
            await self._take(message)
        raise LinkEnded("replaced", "a newer connection took its place")

    async def _take(self, message: Any) -> None:
        if isinstance(message, codec.Statistics):
            statistics = message.statistics
            if message.n_malformed:
                self._host.malformed(self.peer, message.n_malformed)
            for start in range(0, len(message.certificates), CERTIFICATES):
                await self._take_bad(
                    self._host.certified(self.peer, message.certificates[start : start + CERTIFICATES])
                )
            is_signed = self._host.has_keys and any(one.signature for one in statistics)
            size = SIGNED_SLICE if is_signed else SLICE
            for start in range(0, len(statistics), size):
                part = statistics[start : start + size]
                await self._turns.wait(len(part))
                if self._is_open:
                    await self._take_bad(self._host.heard(self.peer, part))
                    self.n_received += len(part)
        elif isinstance(message, codec.Notices):
            for notice in message.notices:
                await self._turns.wait(SLICE // 8)  # a signature may have to be checked
                if self._is_open:
                    self._host.noticed(self.peer, [notice])
        elif isinstance(message, codec.Wanted):
            certificates, names = self._asked
            ids = [one for one in message.certificates if len(one) == CERTIFICATE_BYTES]
            certificates.update(ids[: codec.MAX_WANTED - len(certificates)])
            names.update(message.names[: codec.MAX_WANTED - len(names)])
            self._wake.set()
        elif isinstance(message, codec.Ping):
            self._owes_pong = message.number
            self._wake.set()
        elif isinstance(message, codec.Bye):
            raise LinkEnded("bye", f"{self.peer} said bye: {message.reason}")
        elif isinstance(message, codec.Hello):
            raise LinkEnded("malformed", f"{self.peer} said hello a second time")

    async def _take_bad(self, taking: Awaitable[int]) -> None:
        """Wait until something was taken, and end with the tenth thing in it that was bad."""
        self.n_bad += await taking
        if self.n_bad >= MAX_BAD:
            detail = f"{self.n_bad} signatures or certificates of {self.peer} were wrong"
            self.part(f"bad_signatures: {detail}", "bad_signatures")
            await asyncio.get_running_loop().create_future()  # nothing more is read

    async def _write(self) -> None:
        while self._is_open:
            self._wake.clear()
            if self._parting is not None:
                reason, word = self._parting
                await self._frames.part(reason)
                raise LinkEnded(word, f"said bye: {reason}")
            data = await self._next()
            if data is None:
                pause = PING_AFTER
                if any(self._asked):
                    pause = max(0.0, self._answer_at - asyncio.get_running_loop().time())
                try:
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
                    continue
                except TimeoutError:
                    if any(self._asked):
                        continue
                    data = codec.encode_ping()
            await self._frames.send(data)
        raise LinkEnded("replaced", "a newer connection took its place")

    async def _next(self) -> bytes | None:
        """The next frame that is to be sent, if any."""
        if (number := self._owes_pong) is not None:
            self._owes_pong = None
            return codec.encode_pong(number)
        if notices := self._host.notices_for(self.peer, BATCH):
            return codec.encode_notices(notices)
        if self.version > 1 and (wanted := self._host.wanted_for(self.peer)) is not None:
            return codec.encode_wanted(wanted.certificates, wanted.names)
        self._answer()
        if waiting := self._host.waiting(self.peer):
            await self._turns.wait(min(waiting, SLICE))
            if self._is_open and (statistics := self._host.statistics_for(self.peer, BATCH)):
                self.n_sent += len(statistics)
                return self._encode(statistics)
        self.empty_at = asyncio.get_running_loop().time()
        return None

    def _answer(self) -> None:
        """Let what the other side asked for wait once more, if it is time."""
        now = asyncio.get_running_loop().time()
        if any(self._asked) and now >= self._answer_at:
            certificates, names = self._asked
            self._asked, self._answer_at = (set(), set()), now + ANSWER_EVERY
            self._sent_certificates -= certificates
            self._host.asked_for(self.peer, certificates, names)

    def _encode(self, statistics: list[Statistic]) -> bytes:
        """Statistics, and before or with them the certificates that have not been sent yet."""
        if self.version < 2:
            return codec.encode_statistics(statistics, version=self.version)
        needed = {one.certificate: None for one in statistics if one.signature}
        new = [certificate for certificate in needed if certificate not in self._sent_certificates]
        self._sent_certificates.update(new)
        ders = self._host.certificates(new)
        before = b"".join(
            codec.encode_statistics([], ders[start : start + CERTIFICATES])
            for start in range(0, len(ders) - CERTIFICATES, CERTIFICATES)
        )
        left = len(ders) % CERTIFICATES or CERTIFICATES
        return before + codec.encode_statistics(statistics, ders[-left:] if ders else ())


HELLO_WITHIN: Final = 10.0


def check_hello(mesh: str, node: str, hello: Hello, identity: Identity | None, meant: str | None = None) -> None:
    """Refuse a hello that does not fit: to this node, to the sender's certificate, or to the node it was meant for."""
    if hello.mesh != mesh:
        raise RefusedError("mesh", f"this is a node of mesh {mesh!r}, got a hello of mesh {hello.mesh!r}")
    if hello.version < 1:
        raise RefusedError("version", f"wire versions begin at 1, got {hello.version}")
    if hello.node == node:
        raise RefusedError("own_name", f"this is {node!r} itself, or another node has taken its name")
    if identity is not None and (identity.mesh, identity.node) != (hello.mesh, hello.node):
        raise RefusedError("certificate", f"its certificate is of {identity.node!r} in mesh {identity.mesh!r}")
    if meant is not None and hello.node != meant:
        raise RefusedError("other_name", f"expected {meant!r} at this address, got {hello.node!r}")


async def greet(frames: Frames, mine: Hello, accept: Callable[[Hello], None]) -> Hello:
    """Say hello first; the other's hello."""
    await frames.send(codec.encode_hello(mine))
    return await _hello(frames, accept)


async def answer_greeting(frames: Frames, mine: Callable[[], Hello], accept: Callable[[Hello], None]) -> Hello:
    """Wait for the other's hello, and answer it."""
    hello = await _hello(frames, accept)
    await frames.send(codec.encode_hello(mine()))
    return hello


async def _hello(frames: Frames, accept: Callable[[Hello], None]) -> Hello:
    try:
        async with asyncio.timeout(HELLO_WITHIN):
            message = await frames.next()
    except TimeoutError:
        raise RefusedError("no_hello", f"no hello came within {HELLO_WITHIN:g} s") from None
    except LinkEnded as end:
        raise RefusedError("no_hello" if end.reason == "silent" else end.reason, end.detail) from None
    if isinstance(message, codec.Bye):
        raise RefusedError("by_peer", f"the other side refused: {message.reason}")
    if not isinstance(message, Hello):
        raise RefusedError("no_hello", "the first frame must be a hello")
    try:
        accept(message)
    except RefusedError as refusal:
        await frames.part(f"{refusal.reason}: {refusal}")
        raise
    return message
