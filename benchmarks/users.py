"""Where users wait, beyond a pull of a usual run: logs that are replayed, and a frontier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from setting import SEED
from tables import Column, Row, Section
from timing import cpu_time, cpu_times

import banditmesh as bm

N_AGENTS, N_ARMS, PER_AGENT = 111, 203, 40


def measure(quick: bool) -> list[Row]:
    return [*replay_rows(quick), frontier_row(quick)]


def replay_rows(quick: bool) -> list[Row]:
    """Replayed logs beside coins with the same means."""
    horizon, replicates, repeats = (10, 1, 1) if quick else (300, 10, 3)
    logs, coins = replayed_and_not()
    rows = []
    for protocol in ("none", "irs", "fwa(4)", "flooding(4)")[: 1 if quick else 4]:
        works = {
            problem: _simulation(problem, protocol, horizon, replicates, bm.ThompsonSampling())
            for problem in (logs, coins)
        }
        for work in works.values():
            work()
        seconds = {problem: spent / replicates for problem, spent in cpu_times(works, repeats).items()}
        ratio = seconds[logs] / seconds[coins]
        what = f"replay a log, thompson, {protocol}: a replicate"
        rows.append({"what": what, "seconds": seconds[logs], "before": "65 to 86", "other": "coins", "by": ratio})
    return rows


def replayed_and_not() -> tuple[bm.Problem, bm.Problem]:
    """A log of 400 clicks for each arm, and coins with its means."""
    rng = np.random.default_rng(SEED)
    network = bm.networks.ba(N_AGENTS, 2, seed=SEED)
    sets = [rng.choice(N_ARMS, PER_AGENT, replace=False).tolist() for _ in range(N_AGENTS)]
    logs = [bm.arms.Replay((rng.random(400) < rate).astype(float)) for rate in rng.uniform(0.01, 0.2, N_ARMS)]
    coins = [bm.arms.Bernoulli(float(law.mean)) for law in logs]
    return bm.Problem(network, sets, logs), bm.Problem(network, sets, coins)


def frontier_row(quick: bool) -> Row:
    """All configurations that a frontier tries by default, each to the end, where every agent has all 203 coins."""
    rng = np.random.default_rng(SEED)
    coins = [bm.arms.Bernoulli(rate) for rate in rng.uniform(0.01, 0.2, N_ARMS).tolist()]
    problem = bm.Problem(bm.networks.ba(N_AGENTS, 2, seed=SEED), [list(range(N_ARMS))] * N_AGENTS, coins)
    tried = {"protocols": ["irs", "flooding(3)"]} if quick else {}
    settings = {"replicates": 1 if quick else 10, "seed": SEED, "threads": 1, "progress": False, "policy": bm.UCB()}
    # What compiles is measured elsewhere.
    bm.frontier(problem, horizon=5, **{**settings, "replicates": 1}, **tried)
    horizon = 5 if quick else 1000
    seconds, found = cpu_time(lambda: bm.frontier(problem, horizon=horizon, **settings, **tried), 1)
    what = f"frontier, {len(found.configurations)} configurations, {N_ARMS} coins each"
    return {"what": what, "seconds": seconds, "before": "61, and 169 on another machine"}


def _simulation(
    problem: bm.Problem, protocol: str, horizon: int, replicates: int, policy: bm.Policy
) -> Callable[[], bm.Result]:
    return lambda: bm.simulate(
        problem,
        protocol,
        policy=policy,
        horizon=horizon,
        replicates=replicates,
        seed=SEED,
        engine="compiled",
        threads=1,
        progress=False,
    )


SECTION = Section(
    name="users",
    title="Where users wait",
    note=(
        "CPU time on one core, in turns with what it is compared with. A log of 203 arms, 400 rewards each, replayed "
        "by 111 agents of 40 arms for 300 rounds, beside coins with the same means. The frontier: what it tries by "
        "default on a BA network of 111 agents that have all 203 coins, 1,000 rounds, ten replicates, nothing left out."
    ),
    columns=(
        Column("what", "what"),
        Column("seconds", "s of CPU", ",.3g"),
        Column("before", "before"),
        Column("other", "compared with"),
        Column("by", "times as long", ".2f"),
    ),
    measure=measure,
)
