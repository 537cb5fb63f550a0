"""Leaders and their followers: what follow-your-leader and DPE2 plan before a run.

An agent can follow another only if both have the same arms: otherwise the best arm of one may not be there for the
other, or go unexplored. So there is at least one leader for each arm set that occurs.

Both functions give every agent's leader by number, its own if it leads. They depend on the problem alone, and ties go
to the lowest number.
"""

from __future__ import annotations

from ..networks.csr import Links
from ..problem import Problem


def arm_sets(problem: Problem) -> list[tuple[int, ...]]:
    """Every agent's arms, in the order of its arm set."""
    return [tuple(problem.arm_set(number).tolist()) for number in range(problem.n_agents)]


def dominating_leaders(problem: Problem) -> list[int]:
    """Leaders that are neighbours: a dominating set by the greedy rule, and the star that each agent belongs to.

    As long as some agents have no leader, the agent that could lead most of them, itself included, becomes one, and
    leads these: agents that have its arms, and are itself or its neighbours. This finds at most 1 + log(1 + d) times
    as many leaders as there must be, if no agent has more than d neighbours with the same arms.

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = [bm.arms.Bernoulli(0.5)] * 2
    >>> dominating_leaders(bm.Problem(bm.networks.path(6), [[0, 1]] * 6, coins))
    [1, 1, 1, 4, 4, 4]
    >>> dominating_leaders(bm.Problem(bm.networks.star(4), [[0, 1], [0, 1], [0], [0, 1]], coins))
    [0, 0, 2, 0]
    """
    assert isinstance(problem.network, Links)  # any other is refused by `check_network`
    arms, neighbours = arm_sets(problem), problem.network.neighbour_lists()
    could_lead = [
        {number, *(one for one in neighbours[number] if arms[one] == arms[number])}
        for number in range(problem.n_agents)
    ]
    leaders = [-1] * problem.n_agents
    free = set(range(problem.n_agents))
    while free:
        leader = max(range(problem.n_agents), key=lambda number: (len(could_lead[number] & free), -number))
        # The leader may have followed another until now.
        for number in {leader} | could_lead[leader] & free:
            leaders[number] = leader
        free -= could_lead[leader]
    return leaders


def group_leaders(problem: Problem) -> list[int]:
    """One leader for all agents with the same arms that can reach each other: the one with the most neighbours.

    Of a dynamic network nothing is known beforehand: there it is one for each arm set, the first agent.

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = [bm.arms.Bernoulli(0.5)] * 2
    >>> group_leaders(bm.Problem(bm.networks.path(6), [[0, 1], [0]] * 3, coins))
    [2, 1, 2, 1, 2, 1]
    """
    if isinstance(problem.network, Links):
        neighbours = problem.network.neighbour_lists()
        component = _components(neighbours)
    else:
        neighbours = [[] for _ in range(problem.n_agents)]
        component = [0] * problem.n_agents
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, arms in enumerate(arm_sets(problem)):
        groups.setdefault((component[number], arms), []).append(number)
    leaders = [-1] * problem.n_agents
    for group in groups.values():
        leader = max(group, key=lambda number: (len(neighbours[number]), -number))
        for number in group:
            leaders[number] = leader
    return leaders


def _components(neighbours: list[list[int]]) -> list[int]:
    """The component of each agent: the lowest number in it."""
    component = [-1] * len(neighbours)
    for root in range(len(neighbours)):
        waiting = [root] if component[root] < 0 else []
        while waiting:
            number = waiting.pop()
            component[number] = root
            waiting += [one for one in neighbours[number] if component[one] < 0]
    return component
