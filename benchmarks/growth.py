"""How the cost of a pull grows with ttl, arms per agent and horizon."""

from __future__ import annotations

from setting import SEED, least_stages, make_run
from tables import Column, Row, Section

import banditmesh as bm

TTLS = (1, 2, 3, 4, 5, 6, 7, 8)
PER_AGENT = (5, 10, 20, 40, 80)
HORIZONS = (100, 300, 1_000, 3_000, 10_000)
N_ARMS = 100


def measure(quick: bool) -> list[Row]:
    ttls, sizes, horizons, horizon, repeats = (
        ((1, 3), (5, 10), (30, 60), 40, 1) if quick else (TTLS, PER_AGENT, HORIZONS, 1_000, 10)
    )
    paper = bm.Problem.paper("er", seed=SEED)
    network = bm.networks.paper("er")
    rows = [cost("ttl", ttl, paper, ttl, horizon, repeats) for ttl in ttls]
    for size in sizes:
        problem = bm.Problem.random(network, n_arms=N_ARMS, per_agent=size, seed=SEED)
        rows.append(cost("arms per agent", size, problem, 4, horizon, repeats))
    rows += [cost("horizon", longer, paper, 4, longer, max(1, repeats // (longer // 1000 + 1))) for longer in horizons]
    return rows


def cost(what: str, value: int, problem: bm.Problem, ttl: int, horizon: int, repeats: int) -> Row:
    """The cost of a pull under both protocols that have a plan."""
    row: Row = {"what": what, "value": value}
    for protocol in (bm.FwA(ttl), bm.Flooding(ttl)):
        run = make_run(problem, protocol, horizon)
        least_stages(run, 1)
        stages = least_stages(run, repeats)
        n_pulls = horizon * problem.n_agents
        row[f"{protocol.name}_rounds_ns"] = 1e9 * stages.rounds / n_pulls
        row[f"{protocol.name}_whole_ns"] = 1e9 * stages.whole / n_pulls
    return row


SECTION = Section(
    name="growth",
    title="Growth with ttl, arms and horizon",
    note=(
        "The paper's ER network, sound rules, one replicate, one core, CPU time, least of several repeats. Unless it "
        f"is what varies: ttl 4, 20 of 50 arms per agent, T = 1000; arms per agent vary at {N_ARMS} arms in all. "
        "Rounds: the simulation alone. Whole: with packing, making the plan and counting fates."
    ),
    columns=(
        Column("what", "what varies"),
        Column("value", "value", ",d"),
        Column("fwa_rounds_ns", "FwA rounds, ns/pull", ",.0f"),
        Column("fwa_whole_ns", "FwA whole, ns/pull", ",.0f"),
        Column("flooding_rounds_ns", "Flooding rounds, ns/pull", ",.0f"),
        Column("flooding_whole_ns", "Flooding whole, ns/pull", ",.0f"),
    ),
    measure=measure,
)
