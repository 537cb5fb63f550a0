"""What changing arms cost: worlds against one in which nothing changes, per pull."""

from __future__ import annotations

from setting import SEED
from tables import Column, Row, Section
from timing import cpu_time

import banditmesh as bm

HORIZON = 4000
#: The first changes nothing; of the others, all but switching ones change in every round.
CHANGES = (None, "switching(0.002)", "wandering(0.01)", "seasonal(0.3, 500)")
MILLION = 1_000_000


def measure(quick: bool) -> list[Row]:
    protocols = [bm.NoCooperation()] if quick else [bm.NoCooperation(), bm.FwA(4)]
    network, horizon, repeats = bm.networks.paper("er"), 40 if quick else HORIZON, 1 if quick else 10
    return [row for protocol in protocols for row in rows_of(network, protocol, horizon, repeats)]


def measure_million() -> list[Row]:
    """The very long part: a million agents."""
    network = bm.networks.sparse_er(MILLION, 3.0, seed=SEED)
    return rows_of(network, bm.FwA(4), 20, 2, CHANGES[:3])


def rows_of(
    network: object, protocol: bm.Protocol, horizon: int, repeats: int, changes: tuple[str | None, ...] = CHANGES
) -> list[Row]:
    """One protocol in each world."""
    rows: list[Row] = []
    for change in changes:
        problem = bm.Problem.random(network, n_arms=50, per_agent=20, seed=SEED, change=change)
        settings = {"horizon": horizon, "seed": SEED, "engine": "compiled", "threads": 1, "record_every": horizon}
        bm.simulate(problem, protocol, **{**settings, "horizon": min(horizon, 3), "record_every": 1})
        seconds, _ = cpu_time(lambda: bm.simulate(problem, protocol, **settings), repeats)  # noqa: B023
        ns = 1e9 * seconds / (horizon * problem.n_agents)
        row = {"agents": problem.n_agents, "protocol": protocol.name, "world": change or "fixed", "ns": ns}
        rows.append({**row, "ratio": ns / (rows[0]["ns"] if rows else ns)})
    return rows


SECTION = Section(
    name="worlds",
    title="What changing arms cost",
    note=(
        f"Whole calls of simulate() with UCB, 50 arms, 20 per agent, on the paper's ER network with T = {HORIZON}, or "
        "with a million agents and T = 20; one replicate, one core, CPU time, the least of several after a warm-up. "
        "The ratio is to the same run in a fixed world. Wandering and seasonal means change in every round."
    ),
    columns=(
        Column("agents", "agents", ",d"),
        Column("protocol", "protocol"),
        Column("world", "world"),
        Column("ns", "ns/pull", ",.0f"),
        Column("ratio", "ratio", ".2f"),
    ),
    measure=measure,
)
