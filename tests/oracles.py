"""What the system should do, computed in other ways than the package computes it.

On a static network and by the sound rules nothing needs to be sent to know who learns what and when: an observation
made at distance d is usable d rounds after its pull. Distances, and a simulation without any message, are here.
"""

import math
from collections import deque


def neighbour_lists(problem):
    return problem.network.neighbour_lists()


def has_arm(problem, agent, arm):
    return arm in problem.arm_set(agent).tolist()


def distances(neighbours, origin, expands=lambda agent: True):
    """Hops from the origin to every agent that can be reached through agents that expand."""
    hops = {origin: 0}
    queue = deque([origin])
    while queue:
        agent = queue.popleft()
        if agent == origin or expands(agent):
            for other in neighbours[agent]:
                if other not in hops:
                    hops[other] = hops[agent] + 1
                    queue.append(other)
    return hops


def hops_of(problem, protocol_name, origin, arm):
    """How far every agent is from an origin's messages of an arm; holders of the arm end the search under FwA."""
    if protocol_name == "fwa":
        return distances(neighbour_lists(problem), origin, lambda agent: not has_arm(problem, agent, arm))
    return distances(neighbour_lists(problem), origin)


def naive_ucb(arm_set, observations, n_pulls, t, alpha):
    """The arm that UCB pulls in round t, from (arm, reward) pairs and the textbook formula."""
    if n_pulls < len(arm_set):
        return arm_set[n_pulls]

    def index(arm):
        rewards = [reward for seen, reward in observations if seen == arm]
        return math.fsum(rewards) / len(rewards) + math.sqrt(alpha * math.log(t) / len(rewards))

    return max(arm_set, key=index)


def pulls_without_messages(problem, protocol_name, ttl, tape, horizon, alpha=3.0, every=None):
    """Who pulls what in which round, by the sound rules on a static network: {(round, agent): arm}."""
    agents = range(problem.n_agents)
    every = every or [1] * problem.n_agents
    near = {
        (origin, arm): hops_of(problem, protocol_name, origin, arm)
        for origin in agents
        for arm in problem.arm_set(origin).tolist()
    }
    pulls = {}
    for t in range(1, horizon + 1):
        chosen = {}
        for agent in agents:
            if (t - 1) % every[agent]:
                continue
            seen = [
                (arm, tape[s - 1, origin, arm])
                for (s, origin), arm in pulls.items()
                if 0 <= near[origin, arm].get(agent, math.inf) <= min(ttl, t - s) or origin == agent
            ]
            n_pulls = sum(1 for _, origin in pulls if origin == agent)
            arms = problem.arm_set(agent).tolist()
            chosen[t, agent] = naive_ucb(arms, [pair for pair in seen if pair[0] in arms], n_pulls, t, alpha)
        pulls.update(chosen)
    return pulls
