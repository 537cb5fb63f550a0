"""What a pull costs: by policy, on dynamic networks, and of a single agent beside plain numpy."""

from __future__ import annotations

from functools import cache

import floor
import numpy as np
from setting import SEED
from tables import Column, Row, Section
from timing import cpu_time

import banditmesh as bm

N_ARMS = 20
POLICIES = (bm.UCB(), bm.KLUCB(), bm.ThompsonSampling())


def measure(quick: bool) -> list[Row]:
    horizon, replicates, repeats = (40, 2, 1) if quick else (1000, 1000, 5)
    rows = []
    for laws, problem in problems().items():
        usual = 0.0
        for policy in POLICIES[:1] if quick else POLICIES:
            ns = ns_a_pull(problem, bm.FwA(4), policy, horizon, 1, repeats)
            usual = usual or ns
            rows.append({"what": f"FwA on ER, {laws}, {policy.name}", "ns": ns, "other": "ucb", "by": ns / usual})
    for protocol in () if quick else (bm.NoCooperation(), bm.IRS(), bm.FwA(3)):
        usual = 0.0
        for policy in POLICIES:
            ns = ns_a_pull(clicks(), protocol, policy, 200, 1, repeats)
            usual = usual or ns
            what = f"{protocol.name}, 3,000 agents, rare coins, {policy.name}"
            rows.append({"what": what, "ns": ns, "other": "ucb", "by": ns / usual})
        if protocol.most_hops < 2:
            least = floor.parts(clicks(), protocol, 200, repeats)
            rows += [{"what": f"{protocol.name}, in a loop: {name}", "ns": value} for name, value in least.items()]
            without_scores = usual - least.pop("scores")
            by_floor = ns / (without_scores + sum(least.values()))
            rows.append({"what": f"{what} by its floor", "ns": ns, "other": "its floor", "by": by_floor})
    dynamic = bm.Problem.paper("dynamic-er", seed=SEED)
    for protocol in (bm.FwA(4), bm.Flooding(4)):
        ns = ns_a_pull(dynamic, protocol, bm.UCB(), min(horizon, 300), 1, repeats)
        rows.append({"what": f"{protocol.name} on dynamic ER", "ns": ns})
    means = np.linspace(0.0, 1.0, N_ARMS)
    alone = bm.Problem(bm.networks.er(1, 0.0, seed=SEED), [range(N_ARMS)], [bm.arms.Gaussian(m, 1.0) for m in means])
    ours = ns_a_pull(alone, bm.NoCooperation(), bm.UCB(), horizon, replicates, repeats)
    numpys = 1e9 * cpu_time(lambda: plain_numpy(means, horizon, replicates), repeats)[0] / (horizon * replicates)
    what = f"one agent, {replicates:,} replicates"
    return [*rows, {"what": what, "ns": ours, "other": "plain numpy", "by": ours / numpys}]


def problems() -> dict[str, bm.Problem]:
    """The paper's ER network with its Gaussian arms, and with coins."""
    gaussian = bm.Problem.paper("er", seed=SEED)
    sets = np.split(gaussian.arm_indices, gaussian.arm_offsets[1:-1])
    means = np.random.default_rng(SEED).uniform(0.1, 0.9, gaussian.n_arms)
    coins = bm.Problem(gaussian.network, [one.tolist() for one in sets], [bm.arms.Bernoulli(mean) for mean in means])
    return {"Gaussian arms": gaussian, "coins": coins}


@cache
def clicks() -> bm.Problem:
    """Click-through rates on a large network: forty arms of five hundred for each agent, few rewards."""
    rng = np.random.default_rng(SEED)
    arms = [bm.arms.Bernoulli(mean) for mean in rng.uniform(0.001, 0.05, 500)]
    sets = [rng.choice(500, 40, replace=False).tolist() for _ in range(3000)]
    return bm.Problem(bm.networks.ba(3000, 3, seed=SEED), sets, arms)


def ns_a_pull(
    problem: bm.Problem, protocol: bm.Protocol, policy: bm.Policy, horizon: int, replicates: int, repeats: int
) -> float:
    """CPU time of all of simulate(), after a run that may compile."""

    def work() -> object:
        return bm.simulate(
            problem,
            protocol,
            policy=policy,
            horizon=horizon,
            replicates=replicates,
            seed=SEED,
            engine="compiled",
            threads=1,
            record_every=horizon,
            progress=False,
        )

    work()
    return 1e9 * cpu_time(work, repeats)[0] / (horizon * replicates * problem.n_agents)


def plain_numpy(means: np.ndarray, horizon: int, replicates: int, alpha: float = 3.0) -> np.ndarray:
    """UCB of one agent, all replicates side by side: what a user without a simulator would write."""
    rng = np.random.default_rng(SEED)
    n_arms, rows = len(means), np.arange(replicates)
    counts, totals = np.zeros((replicates, n_arms)), np.zeros((replicates, n_arms))
    regret = np.zeros(replicates)
    for t in range(1, horizon + 1):
        if t <= n_arms:
            arms = np.full(replicates, t - 1)
        else:
            arms = np.argmax(totals / counts + np.sqrt(alpha * np.log(t) / counts), axis=1)
        counts[rows, arms] += 1.0
        totals[rows, arms] += means[arms] + rng.standard_normal(replicates)
        regret += means.max() - means[arms]
    return regret


SECTION = Section(
    name="choice",
    title="What a pull costs",
    note=(
        "CPU time of all of simulate() on one core, least of several repeats: 100 agents of 20 arms, T = 1000 (300 on "
        "the dynamic network); 3,000 agents of 40 arms on a power-law network, coins that pay with 0.001 to 0.05, T = "
        "200; then one agent beside twenty lines of numpy that step all replicates side by side."
    ),
    columns=(
        Column("what", "what"),
        Column("ns", "ns/pull", ",.0f"),
        Column("other", "compared with"),
        Column("by", "times as long", ".2f"),
    ),
    measure=measure,
)
