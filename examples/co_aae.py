"""Elimination with silent agents, after CO-AAE (Yang, Chen, Hajiesmaili, Lui and Towsley, INFOCOM 2022), over flooding.

Every agent keeps a *candidate set*, all its arms at first. An arm whose upper confidence bound lies below another's
lower one is no candidate any more, for good. An agent pulls the candidate of which it has the fewest observations, and
once a single one is left it has nothing to tell: it is silent, and only relays. The paper also selects what is worth
sending to whom. A network without addresses cannot do that: here observations are flooded, as those of the other rows
are, and the bounds have the width of UCB's bonus.

It is a policy that keeps something for each agent, its candidate set, and says when an agent has made up its mind; the
emission `Contested` then sends nothing. All rows meet the same rewards.
"""

import argparse
import math
from dataclasses import dataclass, replace

import networkx as nx

import banditmesh as bm
from banditmesh.policies import Chooser


class Eliminator(Chooser):
    """Chooses for one agent: keeps its candidate set."""

    def __init__(self, policy, arms):
        super().__init__(policy, arms)
        self.candidates = list(range(len(arms.names)))

    def choose(self, clock, estimates, draw):
        width = math.sqrt(self.policy.alpha * math.log(clock))
        mean, inv_root = estimates.mean, estimates.inv_root
        lower = max(mean[one] - width * inv_root[one] for one in self.candidates)
        self.candidates = [one for one in self.candidates if mean[one] + width * inv_root[one] >= lower]
        return min(self.candidates, key=lambda one: estimates.count[one])

    def is_best(self, position, estimates):
        """Nothing else is left."""
        return self.candidates == [position]

    @property
    def state(self):
        return self.candidates

    @state.setter
    def state(self, value):
        self.candidates = value


@dataclass(frozen=True)
class Elimination(bm.Policy):
    """Pull the candidate of which the least is known."""

    alpha: float = 3.0  # of the bounds' width, as in UCB
    name = "elimination"

    def chooser(self, arms):
        return Eliminator(self, arms)


def co_aae(problem, protocol, alpha, horizon, seed, replicate):
    """Group regret, transmissions, and how many agents are silent in the end."""
    simulation = bm.Simulation(
        problem,
        replace(protocol, emission=bm.Contested()),
        policy=Elimination(alpha),
        horizon=horizon,
        seed=seed,
        replicate=replicate,
        record_every=horizon,
    )
    result = simulation.run(progress=False)
    n_silent = sum(len(agent.chooser.candidates) == 1 for agent in simulation.agents.values())
    return result.regret[0, -1], result.transmissions[0, -1], n_silent


def table(problem, horizon, alpha=3.0, seed=0):
    """Print regret and transmissions of CO-AAE beside protocols with UCB."""
    print(f"{'':<28}{'regret':>10}{'transmissions':>16}{'silent agents':>16}")
    rows = {
        "fwa(4)": bm.FwA(4),
        "flooding(4)": bm.Flooding(4),
        "flooding(8)+growth(0.25)": bm.Flooding(8, emission=bm.Growth(0.25)),
    }
    for name, protocol in rows.items():
        result = bm.simulate(problem, protocol, policy=bm.UCB(alpha), horizon=horizon, seed=seed, progress=False)
        print(f"{name:<28}{result.regret[0, -1]:>10.0f}{result.transmissions[0, -1]:>16d}")
    regret, sent, n_silent = co_aae(problem, bm.Flooding(4), alpha, horizon, seed, replicate=0)
    print(f"{'co-aae':<28}{regret:>10.0f}{sent:>16d}{n_silent:>16d}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="CO-AAE over flooding, beside protocols with UCB.")
    parser.add_argument("--full", action="store_true", help="the paper's three networks and its horizon; takes minutes")
    if parser.parse_args().full:
        for network in ("er", "ba", "sbm"):
            print(f"the paper's {network} network, 1000 rounds")
            table(bm.Problem.paper(network, seed=0), horizon=1000)
    else:
        print("the paper's er network, 40 rounds")
        table(bm.Problem.paper("er", seed=0), horizon=40)
        print("a small network whose arms are easy to tell apart, 200 rounds")
        arms = [bm.arms.Gaussian(0.1 * arm, 0.2) for arm in range(8)]
        network = nx.erdos_renyi_graph(30, 0.1, seed=3)
        # The bounds of rewards with sigma = 0.2 may be as much narrower.
        table(bm.Problem(network, bm.arms.uniform_sets(30, 8, 3, seed=0), arms), horizon=200, alpha=3.0 * 0.2**2)
