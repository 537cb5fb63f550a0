"""How long news travels: from `observe` at one of 50 nodes to the last node that it reaches.

The nodes of a local mesh run in two processes, over mutual TLS on loopback, and observe at a constant pace, each at
moments of its own. What was observed has reached a node when that has heard of this count of the arm or of a larger
one. Clocks are the machine's own, the same in both processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tables import Row

import banditmesh as bm
from banditmesh.live import Node
from banditmesh.mesh.seats import make_seats
from banditmesh.mesh.worker import Seat

from .nodes import grounds, percentile

N_PROCESSES = 2
PATIENCE = 120.0
#: (origin, arm)
Key = tuple[str, str]


def measure(quick: bool) -> list[Row]:
    n_nodes, n_observations, pace = (4, 3, 20.0) if quick else (50, 20, 2.0)
    problem = bm.Problem.random(bm.networks.sparse_er(n_nodes, 3.0, seed=0), n_arms=20, per_agent=8, seed=0)
    with grounds() as place:
        seats = make_seats(problem, bm.FwA(4), bm.UCB(), place.folder / "mesh")
        made, heard = run(seats, n_observations, 1.0 / pace)
    to_disk, to_last = [], []
    for (origin, arm), observed in made.items():
        for count, (began, acknowledged) in enumerate(observed, 1):
            to_disk.append(1000 * (acknowledged - began))
            # Whoever has heard of an arm once is in reach of all.
            arrivals = [first_of(at_node[origin, arm], count) for at_node in heard if (origin, arm) in at_node]
            if arrivals:
                to_last.append(1000 * (max(arrivals) - began))
    last = f"from observe to the last of {n_nodes} nodes in reach"
    return [
        {"what": "from observe to its acknowledgement, median", "value": percentile(to_disk, 50), "unit": "ms"},
        {"what": f"{last}, median", "value": percentile(to_last, 50), "unit": "ms"},
        {"what": f"{last}, 99th percentile", "value": percentile(to_last, 99), "unit": "ms"},
    ]


def first_of(arrivals: Sequence[tuple[float, int]], count: int) -> float:
    """When a node first heard of that count or a larger one."""
    for at, heard in arrivals:
        if heard >= count:
            return at
    raise RuntimeError(f"every node in reach must hear of all {count} observations, got one that did not")


def run(seats: list[Seat], n_observations: int, interval: float) -> tuple[dict[Key, Any], list[dict[Key, Any]]]:
    """All observations, and for each node what it heard of each key and when."""
    context = multiprocessing.get_context("spawn")
    crew = []
    for place in range(N_PROCESSES):
        ours, theirs = context.Pipe()
        share = seats[place::N_PROCESSES]
        process = context.Process(target=work, args=(theirs, share, n_observations, interval), daemon=True)
        process.start()
        theirs.close()
        crew.append((process, ours))

    def ask(*question: Any) -> list[Any]:
        for _, pipe in crew:
            pipe.send(question)
        return answers()

    def answers() -> list[Any]:
        for _, pipe in crew:
            if not pipe.poll(PATIENCE):
                raise RuntimeError(f"a process of the mesh must answer within {PATIENCE:g} s, but did not")
        return [pipe.recv() for _, pipe in crew]

    try:
        addresses = {name: address for part in answers() for name, address in part.items()}
        ask("meet", addresses)
        ask("play", time.monotonic() + 0.5)
        time.sleep(1.0)
        told = ask("tell")
    finally:
        for process, pipe in crew:
            pipe.close()
            process.join(20.0)
            if process.is_alive():
                process.kill()
    made = {key: times for part, _ in told for key, times in part.items()}
    return made, [at_node for _, part in told for at_node in part]


def work(pipe: Connection, seats: list[Seat], n_observations: int, interval: float) -> None:
    """What one of the processes does, until the pipe is closed."""
    # While the nodes meet, some dial others that do not know them yet.
    logging.disable(logging.WARNING)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        asyncio.run(Share(pipe, seats, n_observations, interval).run())


class Share:
    """Some nodes of the mesh, in one process."""

    def __init__(self, pipe: Connection, seats: list[Seat], n_observations: int, interval: float) -> None:
        self.pipe = pipe
        self.seats = seats
        self.n_observations = n_observations
        self.interval = interval
        self.nodes: list[Node] = []
        self.made: dict[Key, list[tuple[float, float]]] = defaultdict(list)
        self.heard: list[dict[Key, list[tuple[float, int]]]] = [defaultdict(list) for _ in seats]

    async def run(self) -> None:
        questions: dict[str, Callable[..., Any]] = {"meet": self.meet, "play": self.play, "tell": self.tell}
        async with contextlib.AsyncExitStack() as stack:
            for seat, heard in zip(self.seats, self.heard, strict=True):
                node = await stack.enter_async_context(Node(seat.config))
                note_arrivals(node, heard)
                self.nodes.append(node)
            self.pipe.send({node.config.node: node.address for node in self.nodes})
            while True:
                question, *details = await asyncio.to_thread(self.pipe.recv)
                self.pipe.send(await questions[question](*details))

    async def meet(self, addresses: dict[str, str]) -> None:
        for node, seat in zip(self.nodes, self.seats, strict=True):
            for name in seat.neighbours:
                node.add_peer(name, addresses[name])
        while any(peer.state != "up" for node in self.nodes for peer in node.peers()):
            await asyncio.sleep(0.05)

    async def play(self, begin: float) -> None:
        await asyncio.gather(*(self.observe(place, begin) for place in range(len(self.nodes))))

    async def observe(self, place: int, begin: float) -> None:
        node, phase = self.nodes[place], self.seats[place].agent * 0.618 % 1.0
        for number in range(self.n_observations):
            await asyncio.sleep(max(0.0, begin + (number + phase) * self.interval - time.monotonic()))
            choice = node.choose()
            began = time.monotonic()
            await node.observe(choice, 0.5)
            self.made[node.config.node, choice.arm].append((began, time.monotonic()))

    async def tell(self) -> tuple[dict[Key, Any], list[dict[Key, Any]]]:
        return dict(self.made), [dict(one) for one in self.heard]


def note_arrivals(node: Node, heard: dict[Key, list[tuple[float, int]]]) -> None:
    """Note when a node hears of larger counts."""
    exchange = node._parts.exchange
    hear = exchange.heard

    async def noting(peer: str, statistics: Sequence[Any]) -> int:
        n_bad = await hear(peer, statistics)
        now = time.monotonic()
        for one in statistics:
            if one.origin != node.config.node:
                arrivals = heard[one.origin, one.arm]
                if not arrivals or arrivals[-1][1] < one.count:
                    arrivals.append((now, one.count))
        return n_bad

    exchange.heard = noting  # type: ignore[method-assign]
