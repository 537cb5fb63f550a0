"""All neighbours of a node: who dials, who is let in, and which connection counts.

A neighbour with an address is dialled, one without is waited for. Of two that know each other's address the one with
the smaller name dials. The other cannot know whether its own address is known, so it dials too: once when it starts,
and then only after it has waited in vain for a while. A new connection of a peer replaces the one before, which is
closed unread. If two dial each other at the same moment, the one with the larger name gives up its attempt: so both end
up with the same connection.

A link ends with what it rests on: when a certificate of one of its ends is over, and when the configuration or a notice
of the authority no longer lets the other side in.

Every refusal is counted by its reason on either side, and the last one is shown with its neighbour. A link that does
not come up because nothing answers, or because the other side hangs up, is counted apart, since no one refused
anything: nodes that start one after the other dial in vain at first.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...errors import InputError, RefusedError
from ..logs import note
from ..tasks import Tasks
from .codec import VERSION, Hello
from .conversation import Conversation, Frames, LinkEnded, LinkTurns, answer_greeting, check_hello, greet

if TYPE_CHECKING:
    from ..transport import Connection, Transport
    from ..transport.identity import Identity
    from .exchange import Exchange

LOG = logging.getLogger("banditmesh.live.links")

DIAL_WITHIN: Final = 10.0
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0
#: How long the one with the larger name waits to be dialled again, at least.
COURTESY: Final = 1.0
#: A link that lasted this long did work: what follows it begins with the shortest pause.
LASTING: Final = 5.0
#: How often to look whether a certificate that a link rests on has ended, in seconds.
LOOK_EVERY: Final = 1.0
#: How long nothing more is logged of strangers who are refused for the same reason; all are counted.
QUIET_FOR: Final = 10.0
#: How often the link of a peer may come up in how many seconds.
MAX_UPS: Final = 8
PER_SECONDS: Final = 10.0
#: Why a link may not come up although no one refused it.
NOT_THERE: Final = ("unreachable", "closed", "lost", "timeout")
#: How many connections may be between handshake and hello at a time.
MAX_GREETINGS: Final = 64


class Neighbour:
    """One neighbour, linked or not.

    Attributes
    ----------
    address : str or None
        Where it is dialled; None if it is waited for.
    is_configured : bool
        Whether it stays when its link ends.
    conversation : Conversation or None
        The connection, if there is one.
    identity : Identity or None
        What its certificate says.
    since : float
        When it was linked or lost, by the node's clock.
    hello : Hello or None
        What it said last.
    refusal, refused_at : RefusedError or None, and float
        The last one, and when.
    n_sent, n_received, n_bad : int
        How many statistics went to it and came from it, and how many of its signatures and certificates were bad, over
        all connections.
    """

    def __init__(self, name: str, address: str | None, is_configured: bool, since: float) -> None:
        self.name = name
        self.address = address
        self.is_configured = is_configured
        self.since = since
        self.conversation: Conversation | None = None
        self.identity: Identity | None = None
        self.hello: Hello | None = None
        self.refusal: RefusedError | None = None
        self.refused_at = 0.0
        self.is_refusal_noted = False
        self._earlier = [0, 0, 0]
        self.lasted = 0.0
        self.up, self.down = asyncio.Event(), asyncio.Event()
        self.down.set()
        self.dialling: asyncio.Task[None] | None = None
        self.attempt: asyncio.Task[None] | None = None
        self.talk: asyncio.Task[None] | None = None

    @property
    def n_sent(self) -> int:  # noqa: D102
        return self._earlier[0] + (0 if self.conversation is None else self.conversation.n_sent)

    @property
    def n_received(self) -> int:  # noqa: D102
        return self._earlier[1] + (0 if self.conversation is None else self.conversation.n_received)

    @property
    def n_bad(self) -> int:  # noqa: D102
        return self._earlier[2] + (0 if self.conversation is None else self.conversation.n_bad)

    def hang_up(self) -> None:
        """Forget the connection, but not how much it carried."""
        self._earlier = [self.n_sent, self.n_received, self.n_bad]
        self.conversation = self.talk = None


class NodeLinks:
    """The links of a node.

    Parameters
    ----------
    mesh, node : str
        Who this is.
    host : Exchange
        Takes what comes, gives what is sent, and hears of links.
    transport : Transport
        Makes connections.
    tasks : Tasks
        The owner of all tasks.
    clock : callable
        The time of day, in seconds.
    rng : random.Random
        For jitter.
    accepts_members : bool
        Whether any member may link, or configured neighbours alone.
    most : int
        The most links.
    trusts : callable
        Whether a certificate that was accepted is still one of a trusted authority.

    Attributes
    ----------
    own_ends : float
        When the node's own certificate ends.
    neighbours : dict
        By name: all that are configured, and all that are linked.
    counts : Counter
        What happened, by a name such as `refused_expelled`, `no_link_unreachable` or `ended_silent`.
    """

    def __init__(
        self,
        mesh: str,
        node: str,
        host: Exchange,
        transport: Transport,
        tasks: Tasks,
        *,
        clock: Callable[[], float],
        rng: random.Random,
        accepts_members: bool = False,
        most: int = 256,
        trusts: Callable[[Identity], bool] = lambda identity: True,
    ) -> None:
        self.own_ends = math.inf
        self._trusts = trusts
        self.neighbours: dict[str, Neighbour] = {}
        self.counts: Counter[str] = Counter()
        self.accepts_members = accepts_members
        self.most = most
        self._mesh = mesh
        self._node = node
        self._host = host
        self._transport = transport
        self._tasks = tasks
        self._clock = clock
        self._rng = rng
        self._turns = LinkTurns()
        #: Who has not said hello yet, by name if that is proved.
        self._greetings: dict[object, tuple[Connection, asyncio.Task[None]]] = {}
        #: By name: when the last few links of a peer came up.
        self._ups: dict[str, deque[float]] = {}
        #: By reason: when a refusal of a stranger was last logged.
        self._noted_at: dict[str, float] = {}
        self._is_parting = False

    # --- who is a neighbour

    def add(self, name: str, address: str | None) -> None:
        """Make a neighbour of a name, or give it another address."""
        neighbour = self.neighbours.get(name)
        if neighbour is None:
            neighbour = self.neighbours[name] = Neighbour(name, address, True, self._clock())
        if address != neighbour.address:
            self._stop_dialling(neighbour)
        neighbour.is_configured = True
        neighbour.address = address
        if address is not None and neighbour.dialling is None:
            neighbour.dialling = self._tasks.spawn(self._dial(neighbour), f"dialler of {name}")

    def remove(self, name: str, reason: str) -> None:
        """Part from a neighbour."""
        neighbour = self.neighbours[name]
        neighbour.is_configured = False
        self._stop_dialling(neighbour)
        if neighbour.conversation is None:
            del self.neighbours[name]
        else:
            neighbour.conversation.part(reason)

    def linked(self) -> list[str]:
        """The names of all that are linked."""
        return [name for name, neighbour in self.neighbours.items() if neighbour.conversation is not None]

    def part_from_unwelcome(self) -> None:
        """End the links of all that would not be let in any more."""
        self._part_from(lambda neighbour: self._unwelcome(neighbour.name, neighbour.identity))

    async def watch(self) -> None:
        """Until cancelled, end links when a certificate that they rest on ends; diallers then dial again."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._part_from(lambda neighbour: self._ended(neighbour.identity))

    def _part_from(self, refusal_of: Callable[[Neighbour], RefusedError | None]) -> None:
        for neighbour in list(self.neighbours.values()):
            if neighbour.conversation is not None and (refusal := refusal_of(neighbour)) is not None:
                # Not counted as refused: with a new authority, say, the next attempt is none. If it is, that counts.
                note(LOG, logging.WARNING, "link ends", peer=neighbour.name, reason=refusal.reason, detail=refusal)
                self._end(neighbour, neighbour.conversation, LinkEnded(refusal.reason, str(refusal)))

    def renew(self, reason: str) -> None:
        """Say bye to all that are linked; they are dialled again, and both sides offer all that they have."""
        for connection, task in self._greetings.values():
            task.cancel()
            connection.close()
        for neighbour in self.neighbours.values():
            if neighbour.attempt is not None:
                neighbour.attempt.cancel()
            if neighbour.conversation is not None:
                neighbour.conversation.part(reason)

    def part(self, reason: str) -> None:
        """Say bye to all, and neither dial nor let in any more."""
        self._is_parting = True
        for neighbour in self.neighbours.values():
            self._stop_dialling(neighbour)
            if neighbour.conversation is not None:
                neighbour.conversation.part(reason)

    def refused(self, refusal: RefusedError, name: str | None = None) -> None:
        """Count a refusal, and show it with the neighbour of that name, if there is one."""
        self.counts[f"{'no_link' if refusal.reason in NOT_THERE else 'refused'}_{refusal.reason}"] += 1
        neighbour = self.neighbours.get(name) if name is not None else None
        if neighbour is not None:
            # A neighbour that stays away is news once, not at every attempt.
            is_news = not neighbour.is_refusal_noted or str(neighbour.refusal) != str(refusal)
            neighbour.refusal, neighbour.refused_at = refusal, self._clock()
            neighbour.is_refusal_noted = True
        else:
            # Strangers may knock as often as they like without filling a disk with lines.
            now = asyncio.get_running_loop().time()
            is_news = now - self._noted_at.get(refusal.reason, -QUIET_FOR) >= QUIET_FOR
            if is_news:
                self._noted_at[refusal.reason] = now
        level = logging.WARNING if is_news else logging.DEBUG
        note(LOG, level, "no link", peer=name or "unknown", reason=refusal.reason, detail=refusal)

    # --- dialling

    async def _dial(self, neighbour: Neighbour) -> None:
        """Dial a neighbour whenever there is no link with it."""
        longest, pause = SHORTEST_PAUSE, 0.0
        while True:
            await neighbour.down.wait()
            if not await _happens(neighbour.up, pause):
                neighbour.attempt = self._tasks.spawn(self._reach(neighbour), f"attempt to reach {neighbour.name}")
                try:
                    await asyncio.wait({neighbour.attempt})
                finally:
                    neighbour.attempt.cancel()
                    neighbour.attempt = None
            await neighbour.down.wait()
            longest = SHORTEST_PAUSE if neighbour.lasted > LASTING else min(2 * longest, LONGEST_PAUSE)
            neighbour.lasted = 0.0
            pause = self._rng.uniform(longest / 2, longest)
            if self._node > neighbour.name:
                pause += self._rng.uniform(COURTESY, 2 * COURTESY)

    async def _reach(self, neighbour: Neighbour) -> None:
        """Dial a neighbour once."""
        assert neighbour.address is not None
        connection = None
        try:
            async with asyncio.timeout(DIAL_WITHIN):
                connection = await self._transport.dial(neighbour.address, neighbour.name)
            identity = connection.peer
            frames = Frames(connection)
            hello = await greet(
                frames, self._host.hello(), lambda hello: self._check(hello, identity, meant=neighbour.name)
            )
            self._adopt(frames, hello, identity)
            connection = None
        except RefusedError as refusal:
            self.refused(refusal, neighbour.name)
        except LinkEnded as end:
            self.refused(RefusedError(end.reason, end.detail), neighbour.name)
        except (InputError, UnicodeError) as error:
            self.refused(RefusedError("address", str(error)), neighbour.name)
        except TimeoutError:
            self.refused(RefusedError("unreachable", f"no answer came within {DIAL_WITHIN:g} s"), neighbour.name)
        except OSError as error:
            self.refused(RefusedError("unreachable", str(error)), neighbour.name)
        finally:
            if connection is not None:
                connection.close()

    @staticmethod
    def _stop_dialling(neighbour: Neighbour) -> None:
        if neighbour.dialling is not None:
            neighbour.dialling.cancel()
            neighbour.dialling = None

    # --- letting in

    async def accept(self, connection: Connection) -> None:
        """Talk on a connection that came, if its other end may."""
        name = connection.peer and connection.peer.node
        key = connection if name is None else name
        if key in self._greetings:
            # So a member has one place here, however often it connects and says nothing.
            self.refused(RefusedError("superseded", "it connected again before it said hello"), name)
            earlier, task = self._greetings.pop(key)
            task.cancel()
            earlier.close()
        elif len(self._greetings) >= MAX_GREETINGS:
            self.refused(RefusedError("busy", f"{MAX_GREETINGS} connections have not said hello yet"), name)
            connection.close()
            return
        self._greetings[key] = connection, self._tasks.spawn(self._welcome(connection, key), "welcome")

    async def _welcome(self, connection: Connection, key: object) -> None:
        identity = connection.peer
        name = identity and identity.node
        frames = Frames(connection)
        is_adopted = False
        try:
            hello = await answer_greeting(frames, self._host.hello, lambda hello: self._check(hello, identity))
            self._adopt(frames, hello, identity)
            is_adopted = True
        except RefusedError as refusal:
            self.refused(refusal, name)
        except LinkEnded as end:
            self.refused(RefusedError(end.reason, end.detail), name)
        finally:
            if not is_adopted:
                connection.close()
            if self._greetings.get(key, (None,))[0] is connection:
                del self._greetings[key]

    def _check(self, hello: Hello, identity: Identity | None, meant: str | None = None) -> None:
        """Refuse nodes that this node does not talk to."""
        check_hello(self._mesh, self._node, hello, identity, meant)
        if self._is_parting:
            raise RefusedError("leaving", f"{self._node!r} is leaving")
        if (refusal := self._unwelcome(hello.node, identity)) is not None:
            raise refusal
        neighbour = self.neighbours.get(hello.node)
        is_linked = neighbour is not None and neighbour.conversation is not None
        if not is_linked and len(self.linked()) >= self.most:
            raise RefusedError("too_many_links", f"{self._node!r} has {self.most} links, the most that it may have")
        if self._comes_too_often(hello.node):
            raise RefusedError("too_often", f"a link may come up {MAX_UPS} times in {PER_SECONDS:g} s; wait a while")

    def _unwelcome(self, name: str, identity: Identity | None) -> RefusedError | None:
        """Why there may be no link with a member, by its name and its certificate, if so."""
        if identity is not None and (why := self._host.banned(identity)) is not None:
            return RefusedError("expelled", why)
        if (ended := self._ended(identity)) is not None:
            return ended
        if identity is not None and not self._trusts(identity):
            return RefusedError("wrong_authority", f"no trusted authority issued the certificate of {name!r}")
        neighbour = self.neighbours.get(name)
        is_known = neighbour is not None and neighbour.is_configured
        if not is_known and not self.accepts_members:
            return RefusedError("not_a_neighbour", f"{name!r} is not among the neighbours of {self._node!r}")
        return None

    def _ended(self, identity: Identity | None) -> RefusedError | None:
        """Whether a certificate is over: that of the other side, or the node's own."""
        if identity is None:
            return None
        now = self._clock()
        if now > identity.not_after:
            return RefusedError("expired", f"the certificate of {identity.node!r} has expired")
        if now > self.own_ends:
            return RefusedError("expired", f"the certificate of {self._node!r}, this node, has expired")
        return None

    def _comes_too_often(self, name: str) -> bool:
        """Whether a peer connects again and again: each time it is offered everything, which is work."""
        now = asyncio.get_running_loop().time()
        for peer in [peer for peer, ups in self._ups.items() if now - ups[-1] >= PER_SECONDS]:
            del self._ups[peer]
        ups = self._ups.get(name)
        return ups is not None and len(ups) == MAX_UPS and now - ups[0] < PER_SECONDS

    # --- talking

    def _adopt(self, frames: Frames, hello: Hello, identity: Identity | None) -> None:
        """Talk on a connection from now on; one that was there before is closed unread."""
        self._check(hello, identity)  # once more: much may have changed since the other's hello
        name = hello.node
        neighbour = self.neighbours.get(name)
        if neighbour is None:
            neighbour = self.neighbours[name] = Neighbour(name, None, False, self._clock())
        if neighbour.conversation is not None:
            self._end(neighbour, neighbour.conversation, LinkEnded("replaced", "a newer connection took its place"))
        attempt = neighbour.attempt
        if attempt is not None and attempt is not asyncio.current_task() and self._node > neighbour.name:
            attempt.cancel()
        version = min(hello.version, VERSION)
        conversation = Conversation(frames, neighbour.name, self._host, self._turns, version)
        neighbour.conversation, neighbour.hello, neighbour.identity = conversation, hello, identity
        neighbour.is_refusal_noted = False
        neighbour.since = self._clock()
        neighbour.up.set()
        neighbour.down.clear()
        self.neighbours[name] = neighbour
        self.counts["links"] += 1
        self._ups.setdefault(name, deque(maxlen=MAX_UPS)).append(asyncio.get_running_loop().time())
        self._host.link_up(neighbour.name, version, conversation.wake)
        note(LOG, logging.INFO, "link up", peer=neighbour.name)
        mine = self._host.hello().protocol
        if hello.protocol != mine:
            note(LOG, logging.WARNING, "another protocol", peer=neighbour.name, theirs=hello.protocol, ours=mine)
        for line in self._host.other_memories(hello):
            note(LOG, logging.WARNING, "another memory", peer=neighbour.name, detail=line)
        neighbour.talk = self._tasks.spawn(self._talk(neighbour, conversation), f"link with {neighbour.name}")

    async def _talk(self, neighbour: Neighbour, conversation: Conversation) -> None:
        end = LinkEnded("error", "an error in this node ended it")
        began = asyncio.get_running_loop().time()
        try:
            end = await conversation.run()
        finally:
            if neighbour.conversation is conversation:
                neighbour.lasted = asyncio.get_running_loop().time() - began
                self._end(neighbour, conversation, end)

    def _end(self, neighbour: Neighbour, conversation: Conversation, end: LinkEnded) -> None:
        conversation.close()
        if neighbour.talk is not None and neighbour.talk is not asyncio.current_task():
            neighbour.talk.cancel()
        neighbour.hang_up()
        neighbour.since = self._clock()
        neighbour.up.clear()
        neighbour.down.set()
        self.counts[f"ended_{end.reason}"] += 1
        self._host.link_down(neighbour.name)
        note(LOG, logging.INFO, "link down", peer=neighbour.name, reason=end.reason, detail=end.detail)
        if not neighbour.is_configured and self.neighbours.get(neighbour.name) is neighbour:
            del self.neighbours[neighbour.name]


async def _happens(event: asyncio.Event, within: float) -> bool:
    """Whether an event happens within `within` seconds."""
    try:
        async with asyncio.timeout(within):
            await event.wait()
    except TimeoutError:
        return False
    return True
