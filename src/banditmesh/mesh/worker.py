"""One process of a local mesh: some of its nodes, each with a player that chooses, pulls and observes at a pace.

A worker does what its parent asks over a pipe, and answers each question once:

    meet(addresses) -> None       link every node with its neighbours; answered when all links are up
    play()          -> None       all nodes pull until the horizon; meanwhile ("played", n): n more pulls. A node that
                                  is down when the others are through is not waited for
    ask()           -> Traffic    what waits in an outbox, what each link has carried, and which nodes are down
    tell()          -> [Played]   what became of each node

and, at any time after they have met and without an answer, what it is ordered to:

    kill(node)                    end one of its nodes as a crash would, with its sidecar; it pulls no more
    start(node)                   start it again from what is on its disk; it goes on where it was

Before the first question it says where its nodes listen. An answer is ("answer", value), or ("failed", text). When the
pipe closes, the nodes leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import msgspec

from ..arms.base import Law, reward_of
from ..draws import PHASE, REWARD, Draws
from ..errors import BanditmeshError
from ..live.config import NodeConfig
from ..live.node import Node

#: How often a worker tells its parent how far it is, and looks whether its links are up, in seconds.
TELL_EVERY: Final = 0.2
LOOK_EVERY: Final = 0.02


class Seat(NamedTuple):
    """One node of a worker: its number among the agents, its configuration, its neighbours, and what its arms pay.

    With `has_sidecar`, it answers where its configuration says.
    """

    agent: int
    config: NodeConfig
    neighbours: list[str]
    laws: dict[str, Law]
    has_sidecar: bool = False


class Traffic(NamedTuple):
    """By node and neighbour: where anything waits, and what a connection has sent and heard; and who is down."""

    waits: set[tuple[str, str]]
    carried: dict[tuple[str, str], tuple[int, int]]
    down: set[str]


class Played(NamedTuple):
    """What became of one node.

    Attributes
    ----------
    agent : int
        Its number.
    pulls : dict
        How often it pulled each of its arms.
    known : dict
        By arm: how many pulls it knows of, its own and others', and their mean reward.
    counters : dict
        What the node counted: statistics sent, heard and refused, by kind.
    behind : float
        How late it was with its last pull, in seconds.
    """

    agent: int
    pulls: dict[str, int]
    known: dict[str, tuple[int, float]]
    counters: dict[str, int]
    behind: float


def run_worker(pipe: Connection, seats: list[Seat], seed: int, horizon: int, interval: float) -> None:
    """Run the nodes of these seats until the parent closes the pipe; whatever fails is reported to the parent."""
    # Ctrl-C goes to the whole group of processes; the parent decides what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a node says of itself is in its counters; the parent's terminal is for the mesh as a whole.
    logging.getLogger("banditmesh").addHandler(logging.NullHandler())
    with contextlib.suppress(EOFError, OSError):
        try:
            asyncio.run(_Worker(pipe, seats, seed, horizon, interval).run())
        except* BanditmeshError as group:
            pipe.send(("failed", str(group.exceptions[0])))
        except* (EOFError, OSError):
            pass
        except* Exception as group:  # the parent turns it into one line
            pipe.send(("failed", f"{type(group.exceptions[0]).__name__}: {group.exceptions[0]}"))


class _Place:
    """What a worker keeps of one of its nodes, whether it is up or not."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.config = seat.config
        self.node = Node(seat.config)
        self.is_up = False
        self.pulls = dict.fromkeys(seat.laws, 0)
        self.n_played = 0
        self.behind = 0.0
        self.player: asyncio.Task[None] | None = None
        #: A node that was killed has let go of its ports before it is started again.
        self.turn = asyncio.Lock()
        self._ends = asyncio.Event()
        self._sidecar: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the node, and its sidecar if it has one."""
        await self.node.start()
        self.is_up = True
        # Neighbours that dial it find it where it was.
        self.config = msgspec.structs.replace(self.config, listen=self.node.address)
        if self.seat.has_sidecar:
            self._ends = asyncio.Event()
            self._sidecar = asyncio.create_task(self._answer(self.node, self._ends))

    async def _answer(self, node: Node, until: asyncio.Event) -> None:
        from ..live.http.guard import bind
        from ..live.http.serving import serve

        with bind(self.config.api.listen) as listener:
            await serve(node, listener, until=until)

    async def close(self, leaves: bool) -> None:
        """End both: the node leaves, or goes down as in a crash."""
        self.is_up = False
        if self.player is not None:
            self.player.cancel()
        await (self.node.leave() if leaves else self.node.abort())
        self._ends.set()
        if self._sidecar is not None:
            await self._sidecar

    def link(self, addresses: dict[str, str]) -> None:
        """Tell it of its neighbours.

        Of two neighbours one alone dials: if both did, the second connection would replace the first after all were
        linked, and with it what was on its way.
        """
        for name in self.seat.neighbours:
            self.node.add_peer(name, addresses[name] if self.config.node < name else None)


class _Worker:
    def __init__(self, pipe: Connection, seats: list[Seat], seed: int, horizon: int, interval: float) -> None:
        self._pipe = pipe
        self._draws = Draws(seed, 0)
        self._horizon = horizon
        self._interval = interval
        self._places = {seat.config.node: _Place(seat) for seat in seats}
        self._addresses: dict[str, str] = {}
        self._group: asyncio.TaskGroup | None = None
        self._all_played = asyncio.Event()
        self._plays = False
        #: When nodes that keep their pace are through.
        self._due = 0.0

    async def run(self) -> None:
        """Open the nodes, and answer until the parent hangs up."""
        try:
            for place in self._places.values():
                await place.open()
            self._pipe.send(("answer", {name: place.node.address for name, place in self._places.items()}))
            async with asyncio.TaskGroup() as self._group:
                while True:
                    question, *details = await asyncio.to_thread(self._pipe.recv)
                    self._group.create_task(self._do(question, details))
        finally:
            for place in self._places.values():
                if place.is_up:
                    await place.close(leaves=True)

    async def _do(self, question: str, details: list[Any]) -> None:
        if question in ("kill", "start"):
            await getattr(self, question)(*details)
            return
        questions: dict[str, Callable[..., Awaitable[Any]]] = {
            "meet": self.meet,
            "play": self.play,
            "ask": self.ask,
            "tell": self.tell,
        }
        self._pipe.send(("answer", await questions[question](*details)))

    async def kill(self, name: str) -> None:
        """End a node as a crash would."""
        place = self._places[name]
        async with place.turn:
            if place.is_up:
                await place.close(leaves=False)
                self._look_whether_over()

    async def start(self, name: str) -> None:
        """Start a node again."""
        place = self._places[name]
        async with place.turn:
            if place.is_up:
                return
            place.node = Node(place.config)
            await place.open()
            place.link(self._addresses)
            if self._plays:
                self._start_player(place)

    async def meet(self, addresses: dict[str, str]) -> None:
        """Link every node with its neighbours."""
        self._addresses = addresses
        for place in self._places.values():
            place.link(addresses)
        while any(peer.state != "up" for place in self._places.values() for peer in place.node.peers()):
            await asyncio.sleep(LOOK_EVERY)

    async def play(self) -> None:
        """Let all nodes pull until the horizon."""
        teller = asyncio.create_task(self._tell_progress())
        self._plays = True
        loop = asyncio.get_running_loop()
        self._due = loop.time() + (self._horizon + 1) * self._interval
        alarm = loop.call_at(self._due, self._look_whether_over)
        try:
            for place in self._places.values():
                if place.is_up:
                    self._start_player(place)
            await self._all_played.wait()
        finally:
            alarm.cancel()
            teller.cancel()

    def _look_whether_over(self) -> None:
        """Pulls are over if no node that is up has any left; one that is down may come back until they are due."""
        left = [place for place in self._places.values() if place.n_played < self._horizon]
        if not left or (asyncio.get_running_loop().time() >= self._due and not any(place.is_up for place in left)):
            self._all_played.set()

    def _start_player(self, place: _Place) -> None:
        assert self._group is not None
        begin = asyncio.get_running_loop().time() - place.n_played * self._interval
        place.player = self._group.create_task(self._player(place, begin))

    async def _player(self, place: _Place, begin: float) -> None:
        """Choose, pull and observe once an interval, with its own phase; pulls pay what the simulator draws."""
        node, seat, draws = place.node, place.seat, self._draws
        loop = asyncio.get_running_loop()
        phase = draws.uniform(PHASE, seat.agent, 0)
        for t in range(place.n_played + 1, self._horizon + 1):
            due = begin + (t - 1 + phase) * self._interval
            place.behind = max(0.0, loop.time() - due)
            await asyncio.sleep(max(0.0, due - loop.time()))
            choice = node.choose()
            reward = reward_of(seat.laws[choice.arm], draws.uniform(REWARD, seat.agent, t))
            await node.observe(choice, reward)
            place.pulls[choice.arm] += 1
            place.n_played += 1
        self._look_whether_over()

    async def _tell_progress(self) -> None:
        told = 0
        while True:
            await asyncio.sleep(TELL_EVERY)
            n_played = sum(place.n_played for place in self._places.values())
            if n_played > told:
                self._pipe.send(("played", n_played - told))
                told = n_played

    async def ask(self) -> Traffic:
        """What waits in an outbox, what each link has carried, and which nodes are down."""
        nodes = {name: place.node for name, place in self._places.items() if place.is_up}
        waits = {(name, peer.name) for name, node in nodes.items() for peer in node.peers() if peer.waiting}
        carried = {(name, peer): n for name, node in nodes.items() for peer, n in node.carried().items()}
        return Traffic(waits, carried, set(self._places) - set(nodes))

    async def tell(self) -> list[Played]:
        """What became of each node."""
        played = []
        for place in self._places.values():
            state = place.node.state()
            known = {arm.name: (arm.own_count + arm.heard_count, arm.mean or 0.0) for arm in state.arms}
            played.append(Played(place.seat.agent, place.pulls, known, dict(state.counters), place.behind))
        return played
