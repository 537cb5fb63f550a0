"""A mesh of real nodes on this machine: real sockets, real mutual TLS, real disks, synthetic arms.

The nodes are spread over a few processes and play the arms of a `Problem` at a constant pace, each with its own
phase: there are no rounds. Rewards are those that `simulate` draws for the first replicate of the same seed.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import BanditmeshError, InputError
from ..live.template import refuse_live
from ..machine.cores import count_cores
from ..networks.csr import Links
from ..policies import UCB, Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import write
from .seats import make_seats
from .worker import Played, Seat, Traffic, run_worker

#: No mesh on one machine has more nodes.
MAX_NODES: Final = 500
#: How long to wait for all links, and for the last statistics to arrive, in seconds.
PATIENCE: Final = 60.0
#: How long to wait before asking again whether everything has arrived, in seconds.
LOOK_AGAIN: Final = 0.1

Listener = Callable[[int, int], None]


class MeshError(BanditmeshError):
    """A local mesh could not be set up, or broke down."""


@dataclass(frozen=True, eq=False)
class MeshRun:
    """What a local mesh did.

    Attributes
    ----------
    problem : Problem
    protocol, policy : str
        As written.
    horizon : int
        How often each node pulled.
    pulls : int array (agents, arms)
        The columns in `problem.arms` order.
    regret : float
        The group's regret: what the pulls cost against each agent's best arm, by the arms' means.
    counters : dict
        What all nodes counted, added up.
    seconds : float
        From the first pull to the last.
    behind : float
        How late the latest node was with its last pull, in seconds: with more than one interval the pace was too high.
    is_quiet : bool
        Whether everything that was on its way at the end arrived.
    """

    problem: Problem
    protocol: str
    policy: str
    horizon: int
    interval: float
    pulls: NDArray[np.int64]
    regret: float
    counters: dict[str, int]
    seconds: float
    behind: float
    is_quiet: bool

    @property
    def n_missing(self) -> int:
        """How many pulls were not made, since a node was down when the others were through."""
        return self.horizon * self.problem.n_agents - int(self.pulls.sum())

    @property
    def transmissions(self) -> int:
        """Statistics sent as the protocol says: of the node's own, and relayed news."""
        return self.counters.get("sent_news", 0)


def run_mesh(
    problem: Problem,
    protocol: AnyProtocol,
    *,
    policy: Policy | None = None,
    horizon: int = 1000,
    seed: int = 0,
    pace: float = 4.0,
    processes: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Listener | None = None,
    opened: Callable[[LocalMesh], None] | None = None,
    keep: Callable[[MeshRun], None] | None = None,
) -> MeshRun:
    """Run a mesh of one real node per agent on this machine, and say what it did.

    Parameters
    ----------
    problem : Problem
        With a static network.
    protocol : AnyProtocol
        One that runs live.
    policy : Policy, optional
        `UCB()` unless given; one that runs live.
    horizon : int
        How often each node pulls.
    seed : int
        Draws the rewards.
    pace : float
        Pulls per second of each node.
    processes : int, optional
        Over how many processes the nodes are spread; one per core unless given.
    folder : path, optional
        Where keys and states are kept; a folder that goes afterwards unless given.
    progress : callable, optional
        Called with the number of pulls done and the number in all.
    opened : callable, optional
        Called, before the first pull, with the mesh that is linked; with it, every node has a sidecar.
    keep : callable, optional
        Called at the end with what the mesh did; the nodes leave when it returns.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.mesh import run_mesh
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=4, per_agent=2, seed=0)
    >>> run = run_mesh(problem, bm.FwA(2), horizon=5, pace=50.0, processes=1)
    >>> int(run.pulls.sum()), run.is_quiet
    (15, True)
    """
    policy = UCB() if policy is None else policy
    refuse_live(protocol, policy)
    horizon = checks.integer("horizon", horizon, at_least=1)
    pace = checks.positive("pace", pace)
    problem.check_fixed("local meshes")
    if not isinstance(problem.network, Links):
        raise InputError("a local mesh needs a static network, got a dynamic one; take one of its rounds")
    if problem.n_agents > MAX_NODES:
        raise InputError(f"a local mesh has at most {MAX_NODES} nodes, got {problem.n_agents} agents")
    processes = min(problem.n_agents, checks.integer("processes", processes or count_cores(), at_least=1))
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="banditmesh-"))
        sidecars = None
        if opened is not None:
            # The path of a socket must be short, and the folder for its user alone.
            sidecars = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="banditmesh-")))
        seats = make_seats(problem, protocol, policy, Path(folder), sidecars)
        shares = [seats[place::processes] for place in range(processes)]
        crew = stack.enter_context(_crew(shares, seed, horizon, 1.0 / pace))
        played, seconds, is_quiet = _direct(crew, horizon * problem.n_agents, progress, opened)
        run = _made(problem, protocol, policy, horizon, pace, played, seconds, is_quiet)
        if keep is not None:
            keep(run)
    return run


def _made(
    problem: Problem,
    protocol: AnyProtocol,
    policy: Policy,
    horizon: int,
    pace: float,
    played: list[Played],
    seconds: float,
    is_quiet: bool,
) -> MeshRun:
    """What a mesh did, from what became of its nodes."""
    pulls = np.zeros((problem.n_agents, problem.n_arms), dtype=np.int64)
    counters: Counter[str] = Counter()
    names = {str(arm): place for place, arm in enumerate(problem.arms)}
    for one in played:
        counters.update(one.counters)
        for arm, count in one.pulls.items():
            pulls[one.agent, names[arm]] = count
    return MeshRun(
        problem=problem,
        protocol=write(protocol),
        policy=repr(policy),
        horizon=horizon,
        interval=1.0 / pace,
        pulls=pulls,
        regret=float(np.nansum(pulls * problem.gaps)),
        counters=dict(sorted(counters.items())),
        seconds=seconds,
        behind=max(one.behind for one in played),
        is_quiet=is_quiet,
    )


def _direct(
    crew: _Crew, total: int, progress: Listener | None, opened: Callable[[LocalMesh], None] | None
) -> tuple[list[Played], float, bool]:
    addresses = {name: address for answer in crew.answers(PATIENCE) for name, address in answer.items()}
    crew.ask("meet", addresses)
    crew.answers(PATIENCE)
    if opened is not None:
        opened(LocalMesh(crew))
    began = time.monotonic()
    crew.ask("play")
    crew.answers(None, total, progress)
    seconds = time.monotonic() - began
    is_quiet = _settle(crew)
    crew.ask("tell")
    played = [one for answer in crew.answers(PATIENCE) for one in answer]
    return sorted(played), seconds, is_quiet


def _settle(crew: _Crew) -> bool:
    """Wait until nothing waits and nothing is on its way; whether that came about.

    Workers are not asked at one moment. But if, twice in a row, nothing waits, every connection has heard what its
    other end has sent, and nothing has been sent in between, then nothing was on its way the first time. What is for a
    node that is down, or comes from one, is left out.
    """
    give_up, before = time.monotonic() + PATIENCE, list[Traffic]()
    while time.monotonic() < give_up:
        crew.ask("ask")
        answers: list[Traffic] = crew.answers(PATIENCE)
        down = {name for answer in answers for name in answer.down}
        waits = [link for answer in answers for link in answer.waits if link[1] not in down]
        carried = {link: n for answer in answers for link, n in answer.carried.items() if link[1] not in down}
        heard = {(peer, node): n_heard for (node, peer), (_, n_heard) in carried.items()}
        has_arrived = all(heard.get(link, 0) == n_sent for link, (n_sent, _) in carried.items())
        if answers == before and has_arrived and not waits:
            return True
        before = answers
        time.sleep(LOOK_AGAIN)
    return False


class LocalMesh:
    """A mesh that runs on this machine, for whoever started it: where to ask its nodes, and which of them are up.

    Attributes
    ----------
    sidecars : dict
        By node: the address of its sidecar.
    """

    def __init__(self, crew: _Crew) -> None:
        self._crew = crew
        seats = sorted((seat for share in crew.shares for seat in share), key=lambda seat: seat.agent)
        self.sidecars = {seat.config.node: seat.config.api.listen for seat in seats}

    def kill(self, node: str) -> None:
        """End a node as a crash would; its neighbours and the page find out by themselves."""
        self._crew.order("kill", node)

    def start(self, node: str) -> None:
        """Start a node again from its disk: it links anew, catches up, and goes on pulling where it was."""
        self._crew.order("start", node)

    def end(self) -> None:
        """End all of it at once."""
        self._crew.end()


class _Crew:
    """The worker processes, asked all together."""

    def __init__(self, workers: Sequence[tuple[Any, Connection]], shares: list[list[Seat]]) -> None:
        self._workers = workers
        self.shares = shares
        self._n_done = 0
        # Questions and orders come from different threads.
        self._sending = threading.Lock()

    def ask(self, *question: Any) -> None:
        for place in range(len(self._workers)):
            self._send(place, question)

    def order(self, order: str, node: str) -> None:
        """Have the worker of a node do something with it."""
        for place, seats in enumerate(self.shares):
            if any(seat.config.node == node for seat in seats):
                self._send(place, (order, node))
                return
        raise InputError(f"the node must be one of this mesh, got {checks.shown(node)}")

    def end(self) -> None:
        """End the processes."""
        for process, _ in self._workers:
            process.terminate()

    def _send(self, place: int, message: tuple[Any, ...]) -> None:
        process, pipe = self._workers[place]
        try:
            with self._sending:
                pipe.send(message)
        except OSError:
            raise _lost(process) from None

    def answers(self, patience: float | None, total: int = 0, progress: Listener | None = None) -> list[Any]:
        """One answer of each, in their order; what they tell meanwhile goes to `progress`."""
        give_up = None if patience is None else time.monotonic() + patience
        open_ = {pipe: process for process, pipe in self._workers}
        answers: dict[Connection, Any] = {}
        while open_:
            left = None if give_up is None else max(0.0, give_up - time.monotonic())
            ready = wait(list(open_), left)
            if not ready:
                raise MeshError(
                    f"the nodes must be ready within {patience:g} s, got some that were not; use fewer agents"
                )
            for pipe in ready:
                assert isinstance(pipe, Connection)
                try:
                    kind, value = pipe.recv()
                except (EOFError, OSError):
                    raise _lost(open_[pipe]) from None
                if kind == "failed":
                    raise MeshError(f"a node of the mesh failed: {value}")
                if kind == "answer":
                    answers[pipe] = value
                    del open_[pipe]
                elif progress is not None:
                    self._n_done += value
                    progress(self._n_done, total)
        return [answers[pipe] for _, pipe in self._workers]


def _lost(process: Any) -> MeshError:
    process.join(1.0)
    return MeshError(f"a process of the mesh ended with status {process.exitcode}; memory may have run out")


@contextmanager
def _crew(shares: list[list[Seat]], seed: int, horizon: int, interval: float) -> Iterator[_Crew]:
    """Processes with these shares of the seats; they are gone afterwards."""
    context = multiprocessing.get_context("spawn")
    workers = []
    try:
        for seats in shares:
            ours, theirs = context.Pipe()
            process = context.Process(target=run_worker, args=(theirs, seats, seed, horizon, interval), daemon=True)
            process.start()
            theirs.close()
            workers.append((process, ours))
        yield _Crew(workers, shares)
    finally:
        for _, pipe in workers:
            pipe.close()
        for process, _ in workers:
            process.join(10.0)
            if process.is_alive():
                process.kill()
                process.join()
