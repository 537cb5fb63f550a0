"""The fixed problems of `suite-1`: networks, arm sets, arms, faults and seeds, and how long each is simulated.

Rules kept here: a problem of a published suite never changes. Its hash covers network, arm sets, laws, faults, when
agents pull, and the policy that rows share; tests hold the hashes of all of them. What ought to be different is a
problem of the next suite, under another name. Both sizes have the same problems, and differ in rounds and replicates.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import networks
from ..arms import Bernoulli, Gaussian
from ..draws import Draws
from ..faults import Faults, Outages
from ..networks.csr import Links
from ..networks.distances import diameter
from ..networks.static import first_connected
from ..problem import Problem

if TYPE_CHECKING:
    import networkx as nx

#: The name of the suite: other problems have another one.
NAME: Final = "suite-1"
SIZES: Final = ("small", "full")
#: Decides all that is random in every simulation.
SEED: Final = 1
#: What rows use as the diameter of a network that changes, which has none: the ttl of the paper.
_DYNAMIC_DIAMETER: Final = 4
#: How many rounds of a dynamic network its hash covers.
_HASHED_ROUNDS: Final = 20


@dataclass(frozen=True)
class SuiteProblem:
    """A problem of the suite.

    Attributes
    ----------
    name : str
        Its short name.
    question : str
        What it asks, in a sentence.
    make : callable
        Makes the `Problem`.
    policy : str
        How agents choose, in rows that do not choose by their own rule.
    rounds : (int, int)
        The horizon of the small and of the full size.
    replicates : (int, int)
        The replicates of the small and of the full size.
    width : float
        The width of confidence bounds, `alpha` of `UCB`, for algorithms that choose by their own rule: as the policy's.
    memory : str
        A policy that forgets, for problems whose arms change: rows run with it too. Empty for others.
    faults : Faults or None
        What goes wrong.
    paces : tuple of int
        Agent v pulls in every n-th round, n being `paces[v % len(paces)]`.
    too_long : tuple of str
        Short names of what would take hours here, and is left out.

    Examples
    --------
    >>> ring = PROBLEMS["equal-ring"]
    >>> ring.problem, ring.diameter, ring.size("full")
    (Problem(36 agents, 36 links, 10 arms, 10 per agent), 18, (1000, 5))
    """

    name: str
    question: str
    make: Callable[[], Problem]
    policy: str = "ucb"
    rounds: tuple[int, int] = (100, 1000)
    replicates: tuple[int, int] = (2, 3)
    width: float = 3.0
    memory: str = ""
    faults: Faults | None = None
    paces: tuple[int, ...] = (1,)
    too_long: tuple[str, ...] = ()

    @cached_property
    def problem(self) -> Problem:
        """Network, arm sets and arms."""
        return self.make()

    @cached_property
    def diameter(self) -> int:
        """The diameter of the network; 4, the paper's ttl, if it changes."""
        network = self.problem.network
        return diameter(network) if isinstance(network, Links) else _DYNAMIC_DIAMETER

    @property
    def settings(self) -> dict[str, Any]:
        """What `simulate` is given besides problem, protocol, horizon and replicates."""
        agents = range(self.problem.n_agents)
        every = None if self.paces == (1,) else [self.paces[agent % len(self.paces)] for agent in agents]
        return {"policy": self.policy, "seed": SEED, "faults": self.faults, "every": every}

    def size(self, size: str) -> tuple[int, int]:
        """Horizon and replicates of a size."""
        place = SIZES.index(size)
        return self.rounds[place], self.replicates[place]

    @cached_property
    def hash(self) -> str:
        """A hash of everything that the problem consists of, the same on every machine."""
        network = self.problem.network
        if isinstance(network, Links):
            links: Any = [network.indptr.tolist(), network.indices.tolist()]
        else:
            rounds = itertools.islice(network.rounds(Draws(SEED, 0)), _HASHED_ROUNDS)
            links = [one.tolist() for one in rounds]
        content = {
            "links": links,
            "arm_sets": [self.problem.arm_offsets.tolist(), self.problem.arm_indices.tolist()],
            "laws": [repr(law) for law in self.problem.laws],
            "settings": {name: repr(value) for name, value in self.settings.items()},
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _paper(name: str) -> Callable[[], Problem]:
    return lambda: Problem.paper(name, seed=0)


def _equal(network: Callable[[], nx.Graph], n_arms: int = 10) -> Callable[[], Problem]:
    """Coins that all agents have, with means uniform on [0, 1]."""

    def make() -> Problem:
        graph = network()
        means = np.random.default_rng([SEED, n_arms]).uniform(size=n_arms)
        return Problem(graph, [list(range(n_arms))] * len(graph), [Bernoulli(float(mean)) for mean in means])

    return make


def _changing(change: str) -> Callable[[], Problem]:
    return lambda: Problem.random(networks.like_paper("er", 60), n_arms=20, per_agent=7, seed=0, change=change)


def _rare_coins() -> Problem:
    """Coins that pay in 0.5 to 5 per cent of the pulls, as clicks do."""
    graph, n_arms = networks.ba(200, 2, seed=0), 20
    draw = np.random.default_rng([SEED, 2])
    sets = [draw.permutation(n_arms)[:8].tolist() for _ in graph]
    return Problem(graph, sets, [Bernoulli(float(p)) for p in draw.uniform(0.005, 0.05, size=n_arms)])


def _communities() -> Problem:
    """Two communities with 20 arms each, of which they share five: what one learns is mostly of no use to the other."""
    graph = first_connected(lambda seed: networks.sbm([30, 30], 0.2, 0.01, seed))[0]
    draw = np.random.default_rng([SEED, 3])
    sets = [(draw.permutation(20)[:8] + (0 if agent < 30 else 15)).tolist() for agent in range(60)]
    return Problem(graph, sets, [Gaussian(float(mean), 1.0) for mean in draw.uniform(size=35)])


def _geometric() -> Problem:
    graph = first_connected(lambda seed: networks.random_geometric(80, 0.2, seed))[0]
    return Problem.random(graph, n_arms=30, per_agent=10, seed=0)


def _few_arms() -> Problem:
    return Problem.random(networks.random_regular(1000, 6, seed=0), n_arms=10, per_agent=5, seed=0)


def _er60() -> Problem:
    return Problem.random(networks.like_paper("er", 60), n_arms=30, per_agent=10, seed=0)


def _er36() -> nx.Graph:
    return first_connected(lambda seed: networks.er(36, 0.12, seed))[0]


_EQUAL: Final[dict[str, Any]] = {"policy": "ucb(0.5)", "width": 0.5, "rounds": (200, 1000), "replicates": (2, 5)}
_CHANGING: Final[dict[str, Any]] = {
    "policy": "ucb(0.5)",
    "width": 0.5,
    "memory": "ucb(0.5)+discount(0.995)",
}
_ALL: Final = (
    SuiteProblem("paper-er", "The paper's sparse random network: who spreads observations cheaply?", _paper("er")),
    SuiteProblem("paper-ba", "The paper's network with hubs: who keeps them from flooding everything?", _paper("ba")),
    SuiteProblem("paper-sbm", "The paper's four dense blocks with few links between: who gets across?", _paper("sbm")),
    SuiteProblem(
        "paper-dynamic",
        "The paper's network whose links come and go: who needs no fixed paths?",
        _paper("dynamic-er"),
        rounds=(100, 500),
    ),
    SuiteProblem(
        "equal-complete",
        "All agents have the same arms and hear each other directly: who says least?",
        _equal(lambda: networks.complete(36)),
        **_EQUAL,
    ),
    SuiteProblem(
        "equal-ring",
        "The same arms on a ring, where news travels far: who copes with late news?",
        _equal(lambda: networks.ring(36)),
        **_EQUAL,
    ),
    SuiteProblem(
        "equal-grid",
        "The same arms on a grid: who uses many short ways well?",
        _equal(lambda: networks.grid(6, 6)),
        **_EQUAL,
    ),
    SuiteProblem(
        "equal-er",
        "The same arms on a random network: the setting of most published algorithms.",
        _equal(_er36),
        **_EQUAL,
    ),
    SuiteProblem(
        "many-arms",
        "Eight agents with the same two hundred arms: who shares out the exploration?",
        _equal(lambda: networks.ring(8), n_arms=200),
        policy="ucb(0.5)",
        width=0.5,
        rounds=(1000, 5000),
        replicates=(2, 5),
    ),
    SuiteProblem(
        "many-agents",
        "A thousand agents with five of ten arms each: whose traffic does not explode?",
        _few_arms,
        rounds=(20, 100),
        too_long=("co-aae", "coop-se", "dpe2"),
    ),
    SuiteProblem(
        "rare-coins",
        "Coins that rarely pay, on a network with hubs: who learns from few successes?",
        _rare_coins,
        policy="klucb",
        width=0.1,  # 2 p (1 - p) of the best coins
        rounds=(100, 500),
        too_long=("co-aae",),
    ),
    SuiteProblem(
        "faults",
        "Radios in the plane, a tenth of the transmissions lost, agents down for a while: who recovers?",
        _geometric,
        faults=Faults(loss=0.1, outages=Outages(down=0.005, up=0.05)),
        rounds=(100, 500),
    ),
    SuiteProblem(
        "delays",
        "Every transmission comes at least five rounds late, ten on average: who does without fresh news?",
        _er60,
        faults=Faults(delay=5, jitter=5.0),
        rounds=(100, 500),
    ),
    SuiteProblem(
        "asynchronous",
        "Agents pull in every, every second, fourth or eighth round: who serves slow agents well?",
        _er60,
        paces=(1, 2, 4, 8),
        rounds=(200, 1000),
    ),
    SuiteProblem(
        "communities",
        "Two communities that share five of their arms: who does not send what others cannot use?",
        _communities,
    ),
    SuiteProblem(
        "switching",
        "Arms jump to new means at random: who notices?",
        _changing("switching(0.002)"),
        rounds=(200, 1000),
        **_CHANGING,
    ),
    SuiteProblem(
        "drifting",
        "The best arms slowly become the worst: who keeps up?",
        _changing("drifting(100, 1900)"),
        rounds=(400, 2000),
        **_CHANGING,
    ),
    SuiteProblem(
        "wandering",
        "All means walk at random: who forgets at the right pace?",
        _changing("wandering(0.01)"),
        rounds=(200, 1000),
        **_CHANGING,
    ),
)
#: The problems of the suite, by name.
PROBLEMS: Final = {one.name: one for one in _ALL}
