"""Three agents driven by hand over a queue, without the simulator: late rewards, slow links, and no rounds anywhere.

A driver asks agents to choose, tells them what a pull paid, and carries what they send. Here everything that takes time
lies in one queue of events: rewards come back some time after the pull, and copies arrive some time after they were
sent. The agents are those of the simulator and of any other driver; what they draw, remember and number is handed in.
"""

import argparse
import heapq
import itertools
import random

import banditmesh as bm
from banditmesh.core import Place
from banditmesh.policies import Arms

MEANS = {"red": 0.2, "green": 0.5, "blue": 0.8}
ARM_SETS = {"ann": ["red", "green"], "bob": ["red"], "cy": ["green", "blue", "red"]}
NEIGHBOURS = {"ann": ["bob"], "bob": ["ann", "cy"], "cy": ["bob"]}


def make_agent(name, protocol):
    """UCB and FwA draw nothing, so there are no chances; ids are numbers, and nothing that was seen is forgotten."""
    return protocol.seat(Place(name, Arms.gaussian(ARM_SETS[name], sigma=1.0), bm.UCB()))


def run(n_pulls, protocol, seed=0):
    """The agents after each has pulled `n_pulls` times, and how many copies were sent."""
    rng, order = random.Random(seed), itertools.count()
    agents = {name: make_agent(name, protocol) for name in NEIGHBOURS}
    events = []
    n_sent = 0

    def at(time, what, *details):
        # The number breaks ties, so that details are never compared.
        heapq.heappush(events, (time, next(order), what, details))

    def send(time, name):
        nonlocal n_sent
        for copy, targets in agents[name].send(NEIGHBOURS[name]):
            for target in targets:
                n_sent += 1
                at(time + rng.uniform(0.1, 5.0), "arrives", target, name, copy)

    for name in agents:
        for number in range(n_pulls):
            at(float(number), "pulls", name, number + 1)
    while events:
        time, _, what, details = heapq.heappop(events)
        if what == "pulls":
            name, clock = details
            choice = agents[name].choose(clock)
            reward = rng.gauss(MEANS[ARM_SETS[name][choice.position]], 1.0)
            # What a pull pays is known later; by then the agent may have pulled again.
            at(time + rng.expovariate(0.5), "pays", name, choice, reward)
        elif what == "pays":
            name, choice, reward = details
            agents[name].observe(choice.position, reward, choice.was_best)
            send(time, name)
        else:
            name, sender, copy = details
            agents[name].receive(copy, sender, degree=len(NEIGHBOURS[name]))
            agents[name].settle()
            send(time, name)
    return agents, n_sent


def main(n_pulls):
    agents, n_sent = run(n_pulls, bm.FwA(ttl=2, emission=bm.Growth(0.25)))
    print(f"{n_sent} copies of counts and sums were sent for {3 * n_pulls} pulls")
    for name, agent in agents.items():
        for position, arm in enumerate(agent.arms.names):
            own, known = agent.own_count[position], agent.estimates.count[position]
            mean = agent.estimates.mean[position]
            print(f"{name:<4}{arm:<6} pulled {own:>4} times, knows of {known:>5} pulls, mean {mean:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Three agents on a path, driven by events instead of rounds.")
    parser.add_argument("--pulls", type=int, default=1000, help="how often each agent pulls")
    main(parser.parse_args().pulls)
