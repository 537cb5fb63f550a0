"""Policies of your own: one by its index, one by its choice.

An index policy gives each arm a number and the highest is pulled. Any other policy overrides `choose`.
"""

import math

import numpy as np

import banditmesh as bm


class OptimalUCB(bm.Policy):
    name = "optimal-ucb"

    def check(self, problem):
        if np.isnan(problem.sigmas).any():
            raise bm.InputError("optimal-ucb must know every arm's sigma; give laws that have one")

    @staticmethod
    def clock(t, parameter):
        return math.sqrt(2.0 * math.log(1.0 + t * math.log(t) ** 2))

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + sigma * clock * inv_root


class ExploreFirst(bm.Policy):
    """Until every arm has been seen ten times, the one seen least; then the best so far."""

    name = "explore-first"

    def choose(self, t, estimates, draw):
        positions = range(len(estimates))
        if min(estimates.count) < 10:
            return min(positions, key=lambda position: estimates.count[position])
        return max(positions, key=lambda position: estimates.mean[position])


if __name__ == "__main__":
    problem = bm.Problem.random(bm.networks.ring(10), n_arms=20, per_agent=5, seed=0)
    print(f"{'policy':<16}{'alone':>10}{'FwA':>10}   mean group regret after 200 rounds")
    for policy in (bm.UCB(), OptimalUCB(), ExploreFirst()):
        settings = {"policy": policy, "horizon": 200, "replicates": 2, "seed": 0}
        alone, together = (bm.simulate(problem, protocol, **settings) for protocol in (bm.NoCooperation(), bm.FwA(4)))
        print(f"{policy.name:<16}{alone.regret[:, -1].mean():>10.1f}{together.regret[:, -1].mean():>10.1f}")
