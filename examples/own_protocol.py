"""A protocol of your own: busy agents relay less.

An agent that has the arm absorbs a message, as under FwA; any other relays it with a probability that falls with its
degree, so that hubs, where copies meet, carry less of the traffic.
"""

import banditmesh as bm


class ShyHubs(bm.Protocol):
    name = "shy-hubs"
    random = True  # so that `u`, a number in (0, 1), is drawn for every receipt

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        if has_arm:
            return bm.ABSORB
        return bm.RELAY if u * degree < 3 else bm.STOP


if __name__ == "__main__":
    problem = bm.Problem.random(bm.networks.ba(25, 2, seed=1), n_arms=20, per_agent=5, seed=0)
    protocols = [bm.IRS(), ShyHubs(ttl=4), bm.FwA(ttl=4), bm.Flooding(ttl=4)]
    print(bm.compare(problem, protocols, horizon=100, replicates=3, seed=0).table().round(1))
