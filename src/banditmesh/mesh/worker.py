"""One process of a local mesh: some of its nodes, each with a player that chooses, pulls and observes at a pace.

A worker does what its parent asks over a pipe, and answers each question once:

    meet(addresses) -> None       link every node with its neighbours; answered when all links are up
    play()          -> None       all nodes pull until the horizon; meanwhile ("played", n): n more pulls
    ask()           -> Traffic    whether anything waits in an outbox, and what each link has carried
    tell()          -> [Played]   what became of each node

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

from ..arms.base import Law, reward_of
from ..draws import PHASE, REWARD, Draws
from ..errors import BanditmeshError
from ..live.config import NodeConfig
from ..live.node import Node

#: How often a worker tells its parent how far it is, and looks whether its links are up, in seconds.
TELL_EVERY: Final = 0.2
LOOK_EVERY: Final = 0.02


class Seat(NamedTuple):
    """One node of a worker: its number among the agents, its configuration, its neighbours, and what its arms pay."""

    agent: int
    config: NodeConfig
    neighbours: list[str]
    laws: dict[str, Law]


class Traffic(NamedTuple):
    """Whether anything waits to be sent and, by node and neighbour, what their connection has sent and heard."""

    waits: bool
    carried: dict[tuple[str, str], tuple[int, int]]


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


class _Worker:
    def __init__(self, pipe: Connection, seats: list[Seat], seed: int, horizon: int, interval: float) -> None:
        self._pipe = pipe
        self._seats = seats
        self._draws = Draws(seed, 0)
        self._horizon = horizon
        self._interval = interval
        self._nodes: list[Node] = []
        self._n_played = 0
        self._pulls = [dict.fromkeys(seat.laws, 0) for seat in seats]
        self._behind = [0.0] * len(seats)

    async def run(self) -> None:
        """Open the nodes, and answer until the parent hangs up."""
        questions: dict[str, Callable[..., Awaitable[Any]]] = {
            "meet": self.meet,
            "play": self.play,
            "ask": self.ask,
            "tell": self.tell,
        }
        async with contextlib.AsyncExitStack() as stack:
            for seat in self._seats:
                self._nodes.append(await stack.enter_async_context(Node(seat.config)))
            self._pipe.send(("answer", {node.config.node: node.address for node in self._nodes}))
            while True:
                question, *details = await asyncio.to_thread(self._pipe.recv)
                self._pipe.send(("answer", await questions[question](*details)))

    async def meet(self, addresses: dict[str, str]) -> None:
        """Link every node with its neighbours.

        Of two neighbours one alone dials: if both did, the second connection would replace the first after all were
        linked, and with it what was on its way.
        """
        for node, seat in zip(self._nodes, self._seats, strict=True):
            for name in seat.neighbours:
                node.add_peer(name, addresses[name] if node.config.node < name else None)
        while any(peer.state != "up" for node in self._nodes for peer in node.peers()):
            await asyncio.sleep(LOOK_EVERY)

    async def play(self) -> None:
        """Let all nodes pull until the horizon."""
        teller = asyncio.create_task(self._tell_progress())
        begin = asyncio.get_running_loop().time()
        try:
            async with asyncio.TaskGroup() as group:
                for place in range(len(self._nodes)):
                    group.create_task(self._player(place, begin))
        finally:
            teller.cancel()

    async def _player(self, place: int, begin: float) -> None:
        """Choose, pull and observe once an interval, with its own phase; pulls pay what the simulator draws."""
        node, seat, draws = self._nodes[place], self._seats[place], self._draws
        loop = asyncio.get_running_loop()
        phase = draws.uniform(PHASE, seat.agent, 0)
        for t in range(1, self._horizon + 1):
            due = begin + (t - 1 + phase) * self._interval
            self._behind[place] = max(0.0, loop.time() - due)
            await asyncio.sleep(max(0.0, due - loop.time()))
            choice = node.choose()
            reward = reward_of(seat.laws[choice.arm], draws.uniform(REWARD, seat.agent, t))
            await node.observe(choice, reward)
            self._pulls[place][choice.arm] += 1
            self._n_played += 1

    async def _tell_progress(self) -> None:
        told = 0
        while True:
            await asyncio.sleep(TELL_EVERY)
            if self._n_played > told:
                self._pipe.send(("played", self._n_played - told))
                told = self._n_played

    async def ask(self) -> Traffic:
        """Whether anything waits in an outbox, and what each link has carried."""
        waits = any(peer.waiting for node in self._nodes for peer in node.peers())
        carried = {(node.config.node, peer): n for node in self._nodes for peer, n in node.carried().items()}
        return Traffic(waits, carried)

    async def tell(self) -> list[Played]:
        """What became of each node."""
        played = []
        for place, (seat, node) in enumerate(zip(self._seats, self._nodes, strict=True)):
            state = node.state()
            known = {arm.name: (arm.own_count + arm.heard_count, arm.mean or 0.0) for arm in state.arms}
            played.append(Played(seat.agent, self._pulls[place], known, dict(state.counters), self._behind[place]))
        return played
