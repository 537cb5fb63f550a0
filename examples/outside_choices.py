"""An outside program chooses the arms: any bandit code fits behind `Simulation.step(actions=...)`.

`Simulation` plays one round at a time and says what happened in it. Here one agent of ten is run by a program of its
own, a successive elimination that knows nothing of networks: it knows what its own pulls paid, and no more. The other
agents run UCB and share what they see; so the program's agent also passes on what it pulls, and its neighbours learn
from it.
"""

import argparse
import math

import banditmesh as bm


class Elimination:
    """Successive elimination: the arms that may still be best are pulled in turn."""

    def __init__(self, arms):
        self.rewards = {arm: [] for arm in arms}
        self.candidates = list(arms)

    def choose(self):
        return min(self.candidates, key=lambda arm: len(self.rewards[arm]))

    def learn(self, arm, reward, horizon):
        self.rewards[arm].append(reward)
        means = {arm: sum(seen) / len(seen) for arm, seen in self.rewards.items() if seen and arm in self.candidates}
        width = {arm: math.sqrt(2.0 * math.log(horizon) / len(self.rewards[arm])) for arm in means}
        best = max(means[arm] - width[arm] for arm in means)
        self.candidates = [arm for arm in self.candidates if arm not in means or means[arm] + width[arm] >= best]


def main(horizon, outsider=3):
    problem = bm.Problem.random(bm.networks.ring(10), n_arms=8, per_agent=4, seed=1)
    simulation = bm.Simulation(problem, bm.FwA(4), horizon=horizon, seed=0)
    program = Elimination([problem.arms[arm] for arm in problem.arm_set(outsider)])
    while not simulation.is_over:
        played = simulation.step(actions={outsider: program.choose()})
        program.learn(played.choices[outsider], played.rewards[outsider], horizon)
    result = simulation.run()
    plain = bm.simulate(problem, bm.FwA(4), horizon=horizon, seed=0, progress=False)
    print(f"{'':<24}{'agent ' + str(outsider):>10}{'all ten':>10}")
    for name, one in (("an outside program", result), ("UCB, as the others", plain)):
        print(f"{name:<24}{one.agent_regret[0, outsider]:>10.0f}{one.regret[0, -1]:>10.0f}")
    print(f"arms that the program has left: {program.candidates}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One agent of ten is run by a program of its own.")
    parser.add_argument("--horizon", type=int, default=1000, help="how many rounds")
    main(parser.parse_args().horizon)
