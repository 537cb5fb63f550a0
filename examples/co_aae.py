"""Elimination with silent agents, after CO-AAE (Yang, Chen, Hajiesmaili, Lui and Towsley, INFOCOM 2022), over flooding.

Every agent keeps a *candidate set*, all its arms at first. An arm whose upper confidence bound lies below another's
lower one is no candidate any more, for good. An agent pulls the candidate of which it has the fewest observations, and
once a single one is left it has nothing to tell: it is silent, and only relays. The paper also selects what is worth
sending to whom. A network without addresses cannot do that: here observations are flooded, as those of the other rows
are, and the bounds have the width of UCB's bonus.

The agent is the package's own with two methods changed, driven round by round: all rows meet the same rewards.
"""

import argparse
import math

import networkx as nx

import banditmesh as bm
from banditmesh.agent import Agent
from banditmesh.draws import REWARD, Draws
from banditmesh.rules import SOUND


class Eliminator(Agent):
    """An agent that eliminates arms, and is silent once one is left."""

    alpha = 3.0  # of the bounds' width, as in UCB

    def restart(self):
        super().restart()
        self.candidates = list(range(len(self.arm_set)))

    def choose(self, t):
        if sum(self.pulls) < len(self.arm_set):
            return sum(self.pulls)
        known, width = self.estimates, math.sqrt(self.alpha * math.log(t))
        lower = max(known.mean[one] - width * known.inv_root[one] for one in self.candidates)
        self.candidates = [one for one in self.candidates if known.mean[one] + width * known.inv_root[one] >= lower]
        return min(self.candidates, key=lambda one: known.count[one])

    def take_outbox(self):
        is_silent = len(self.candidates) == 1
        return [message for message in super().take_outbox() if not (is_silent and message.origin == self.number)]


def co_aae(problem, protocol, alpha, horizon, seed, replicate):
    """Group regret, transmissions, and how many agents are silent in the end."""
    draws = Draws(seed, replicate)
    agents = [
        Eliminator(
            number,
            problem.arm_set(number).tolist(),
            problem.sigmas[problem.arm_set(number)].tolist(),
            problem.law_codes[problem.arm_set(number)].tolist(),
            bm.UCB(alpha),
            protocol,
            SOUND,
            draws,
            problem.n_agents,
        )
        for number in range(problem.n_agents)
    ]
    for agent in agents:
        agent.alpha = alpha
    neighbours = problem.network.neighbour_lists()
    regret, sent = 0.0, 0
    for t in range(1, horizon + 1):
        for agent in agents:
            position = agent.choose(t)
            arm = agent.arm_set[position]
            agent.observe(t, position, problem.laws[arm].quantile(draws.uniform(REWARD, agent.number, t)))
            regret += problem.gaps[agent.number, arm]
        for sender, outbox in [(agent, agent.take_outbox()) for agent in agents]:
            for message in outbox:
                for receiver in sender.targets(message, neighbours[sender.number]):
                    agents[receiver].receive(message, sender.number, len(neighbours[receiver]))
                    sent += 1
        for agent in agents:
            agent.settle(t)
    return regret, sent, sum(len(agent.candidates) == 1 for agent in agents)


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
        print(f"{name:<28}{result.regret[0, -1]:>10.0f}{result.messages[0, -1]:>16d}")
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
