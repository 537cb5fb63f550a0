"""Generators of arm sets: which agents hold which arms.

Each returns one list of arm ids (0 .. n_arms - 1, ascending) per agent. No agent is left without an arm and no arm
without a holder. The seed decides everything; global generators are left alone. They are available as
`banditmesh.arms.uniform_sets` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import ArmError
from ..machine import memory
from ..networks.csr import as_links

# Random blocks are drawn in parts of about this many numbers, so that memory stays small.
_BLOCK = 2**22
#: Bytes per arm of an agent while a set is drawn.
_SLOT_BYTES: Final = 12.0
#: A row of random numbers for this many arms takes 80 MB.
MAX_ARMS: Final = 10_000_000


def uniform_sets(n_agents: int, n_arms: int, per_agent: int, seed: int) -> list[list[int]]:
    """Give every agent a uniformly drawn set of `per_agent` arms, as in the paper's experiments (Section 6).

    An arm that no agent drew replaces, at a uniformly drawn agent, one of its arms that has at least two holders.

    Parameters
    ----------
    n_agents, n_arms : int
        How many agents and arms there are.
    per_agent : int
        Arms per agent, at most n_arms; n_agents * per_agent must be at least n_arms.
    seed : int
        What the draw depends on.

    Returns
    -------
    list of list of int

    Examples
    --------
    >>> sets = uniform_sets(n_agents=100, n_arms=50, per_agent=20, seed=0)
    >>> len(sets), {len(arms) for arms in sets}, len(set().union(*sets))
    (100, {20}, 50)
    """
    sets: list[list[int]] = uniform_set_array(n_agents, n_arms, per_agent, seed).tolist()
    return sets


def uniform_set_array(n_agents: int, n_arms: int, per_agent: int, seed: int) -> npt.NDArray[np.int32]:
    """What `uniform_sets` gives, as an array (n_agents, per_agent), for networks too large for lists."""
    n_agents = checks.integer("n_agents", n_agents, at_least=1)
    n_arms, per_agent = check_sizes(n_arms, per_agent)
    rng = np.random.default_rng(checks.seed(seed))
    if n_agents * per_agent < n_arms:
        raise ArmError(
            f"n_agents * per_agent must be at least n_arms = {n_arms} so that every arm has a holder, "
            f"got {n_agents} * {per_agent}"
        )
    memory.check(_SLOT_BYTES * n_agents * per_agent, "the arm sets", "use fewer arms per agent")
    sets = np.empty((n_agents, per_agent), dtype=np.int32)
    for first, last in _parts(n_agents, n_arms):
        # The places of the smallest of n_arms uniform numbers are a uniformly drawn set.
        block = rng.random((last - first, n_arms))
        sets[first:last] = np.argpartition(block, per_agent - 1, axis=1)[:, :per_agent]
    n_holders = np.bincount(sets.ravel(), minlength=n_arms)
    for arm in np.flatnonzero(n_holders == 0):
        while n_holders[arm] == 0:
            agent = rng.integers(n_agents)
            spare = np.flatnonzero(n_holders[sets[agent]] >= 2)
            if len(spare):
                place = rng.choice(spare)
                n_holders[sets[agent, place]] -= 1
                n_holders[arm] += 1
                sets[agent, place] = arm
    sets.sort(axis=1)
    return sets


def random_sets(n_agents: int, n_arms: int, probability: float, seed: int) -> list[list[int]]:
    """Give every agent every arm independently with the same probability.

    An agent left without arms gets one uniformly drawn arm; then an arm left without holders goes to one
    uniformly drawn agent.

    Parameters
    ----------
    n_agents, n_arms : int
        How many agents and arms there are.
    probability : float
        How likely an agent holds an arm.
    seed : int
        What the draw depends on.

    Returns
    -------
    list of list of int

    Examples
    --------
    >>> random_sets(n_agents=2, n_arms=3, probability=1.0, seed=0)
    [[0, 1, 2], [0, 1, 2]]
    """
    n_agents = checks.integer("n_agents", n_agents, at_least=1)
    n_arms = _arms(n_arms)
    probability = checks.probability("probability", probability)
    rng = np.random.default_rng(checks.seed(seed))
    sets: list[list[int]] = []
    for first, last in _parts(n_agents, n_arms):
        held = rng.random((last - first, n_arms)) < probability
        sets.extend(np.flatnonzero(row).tolist() for row in held)
    return _repaired(sets, n_arms, rng)


def far_apart_sets(network: Any, n_arms: int, distance: int, seed: int) -> list[list[int]]:
    """Put every arm on agents that are far from one another, as many as fit.

    The holders of an arm are a maximal independent set of the graph power G^distance, found greedily in
    random order: any two of them are more than `distance` hops apart, and every other agent is within
    `distance` hops of one. An agent left without arms then gets one uniformly drawn arm; this repair may
    put two holders of that arm closer together.

    Parameters
    ----------
    network : networkx.Graph, scipy sparse matrix or banditmesh.networks.Links
        Agents in node order.
    n_arms : int
        How many arms there are.
    distance : int
        Hops, from 0 (every agent holds every arm).
    seed : int
        What the draw depends on.

    Returns
    -------
    list of list of int

    Examples
    --------
    >>> import networkx
    >>> far_apart_sets(networkx.complete_graph(3), n_arms=3, distance=0, seed=0)
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    neighbours = as_links(network)[1].neighbour_lists()
    n_arms = _arms(n_arms)
    distance = checks.integer("distance", distance, at_least=0)
    rng = np.random.default_rng(checks.seed(seed))
    sets: list[list[int]] = [[] for _ in neighbours]
    for arm in range(n_arms):
        near_holder = [False] * len(neighbours)
        for agent in rng.permutation(len(neighbours)).tolist():
            if not near_holder[agent]:
                sets[agent].append(arm)
                for other in _within(neighbours, agent, distance):
                    near_holder[other] = True
    return _repaired(sets, n_arms, rng)


def check_sizes(n_arms: int, per_agent: int) -> tuple[int, int]:
    """The number of arms and of arms per agent, if both are valid."""
    n_arms = _arms(n_arms)
    per_agent = checks.integer("per_agent", per_agent, at_least=1)
    if per_agent > n_arms:
        raise ArmError(f"must be at most n_arms = {n_arms}, got {per_agent}", key="per_agent")
    return n_arms, per_agent


def _arms(n_arms: int) -> int:
    n_arms = checks.integer("n_arms", n_arms, at_least=1)
    if n_arms > MAX_ARMS:
        raise ArmError(f"must be at most {MAX_ARMS}, got {n_arms}", key="n_arms")
    return n_arms


def _parts(n_agents: int, n_arms: int) -> Iterator[tuple[int, int]]:
    """Ranges of agents whose blocks of random numbers have about `_BLOCK` entries."""
    step = max(1, _BLOCK // n_arms)
    for first in range(0, n_agents, step):
        yield first, min(first + step, n_agents)


def _repaired(sets: list[list[int]], n_arms: int, rng: np.random.Generator) -> list[list[int]]:
    """The sets, with a drawn arm for every agent without one and a drawn agent for every arm without one."""
    for arms in sets:
        if not arms:
            arms.append(int(rng.integers(n_arms)))
    held = set().union(*sets)
    for arm in range(n_arms):
        if arm not in held:
            agent = int(rng.integers(len(sets)))
            sets[agent] = sorted([*sets[agent], arm])
    return sets


def _within(neighbours: list[list[int]], agent: int, distance: int) -> set[int]:
    """All agents within `distance` hops of one, itself included."""
    reached = {agent}
    frontier = [agent]
    for _ in range(distance):
        frontier = [w for v in frontier for w in neighbours[v] if w not in reached]
        if not frontier:
            break
        reached.update(frontier)
    return reached
