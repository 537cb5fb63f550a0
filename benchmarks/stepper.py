"""How many pulls the reference engine makes in a second, for a policy that only it runs."""

from __future__ import annotations

from setting import SEED, equal_results
from tables import Column, Row, Section
from timing import cpu_time, wall_time

import banditmesh as bm
from banditmesh.policies import Arms, Chooser

#: Protocols on the paper's ER, and rounds of each: about a third of a second.
CASES = {
    "none": (bm.NoCooperation(), 200),
    "irs": (bm.IRS(), 150),
    "fwa": (bm.FwA(4), 40),
    "flooding": (bm.Flooding(4), 20),
}


class Counting(Chooser):
    """Keeps how often it was told of each arm, and chooses by the policy's index."""

    def __init__(self, policy: bm.Policy, arms: Arms) -> None:
        super().__init__(policy, arms)
        self.counts = [0] * len(arms.names)

    def observe(self, position: int, reward: float) -> None:
        self.counts[position] += 1

    def hear(self, position: int, count: int, total: float) -> None:
        self.counts[position] += count


class CountingUCB(bm.UCB):
    name = "counting-ucb"

    def chooser(self, arms: Arms) -> Chooser:
        return Counting(self, arms)


def measure(quick: bool) -> list[Row]:
    problem = bm.Problem.paper("er", seed=SEED)
    rows: list[Row] = []
    for name, (protocol, rounds) in CASES.items():
        horizon, repeats = (5, 1) if quick else (rounds, 20)

        def simulate(replicates: int = 1, workers: int = 1, horizon: int = horizon, protocol: bm.Protocol = protocol):
            return bm.simulate(
                problem,
                protocol,
                policy=CountingUCB(),
                horizon=horizon,
                replicates=replicates,
                seed=SEED,
                engine="reference",
                workers=workers,
            )

        seconds, result = cpu_time(simulate, repeats)
        pulls = horizon * problem.n_agents
        rows.append(
            {
                "protocol": name,
                "pulls": pulls / seconds,
                "copies": float(result.traffic["sent"][0]) / seconds,
                "ns": 1e9 * seconds / pulls,
            }
        )
    horizon, replicates = (2, 2) if quick else (40, 8)
    one, alone = wall_time(lambda: simulate(replicates, 1, horizon), 1)
    two, beside = wall_time(lambda: simulate(replicates, 2, horizon), 1)
    if not equal_results(alone, beside):
        raise RuntimeError("one process and two must agree, and they do not")
    rows.append({"protocol": f"flooding, {replicates} replicates, two processes by one", "speed_up": one / two})
    return rows


SECTION = Section(
    name="stepper",
    title="The reference engine",
    note=(
        "A policy that keeps something for each agent runs on the reference engine alone. Observations of 100 agents "
        "on the paper's ER, ttl 4, sound rules, one replicate: pulls and transmissions per CPU second, least of many "
        "repeats. The last row runs replicates in two processes, by the clock, starting them included."
    ),
    columns=(
        Column("protocol", "protocol"),
        Column("pulls", "pulls a second", ",.0f"),
        Column("copies", "transmissions a second", ",.0f"),
        Column("ns", "ns/pull", ",.0f"),
        Column("speed_up", "speed-up", ".2f"),
    ),
    measure=measure,
)
