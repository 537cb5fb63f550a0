"""What changing arms cost: worlds against one in which nothing changes, per pull."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from scale import peak_bytes
from setting import SEED
from tables import Column, Row, Section, show
from timing import cpu_times

import banditmesh as bm

HORIZON = 4000
#: The first changes nothing; of the others, all but switching ones change in every round.
CHANGES = (None, "switching(0.002)", "wandering(0.01)", "seasonal(0.3, 500)")
MILLION, LARGE_HORIZON = 1_000_000, 20


def measure(quick: bool) -> list[Row]:
    protocols = [bm.NoCooperation()] if quick else [bm.NoCooperation(), bm.FwA(4)]
    network, horizon, repeats = bm.networks.paper("er"), 40 if quick else HORIZON, 1 if quick else 10
    return [row for protocol in protocols for row in rows_of(network, protocol, horizon, repeats)]


def measure_million() -> list[Row]:
    """The very long part: a million agents that forget, in a fixed world and in one that switches."""
    return measure_large(MILLION)


def measure_large(n_agents: int) -> list[Row]:
    """The same with any number of agents; `python benchmarks/worlds.py 100000` prints it."""
    network = bm.networks.sparse_er(n_agents, 3.0, seed=SEED)
    rows = rows_of(network, bm.FwA(4), LARGE_HORIZON, 2, CHANGES[:2], bm.Discount(0.995))
    return [{**row, "peak_gib": peak_bytes() / 2**30} for row in rows]


def rows_of(
    network: object,
    protocol: bm.Protocol,
    horizon: int,
    repeats: int,
    changes: tuple[str | None, ...] = CHANGES,
    memory: bm.Memory = bm.Everything(),  # noqa: B008
) -> list[Row]:
    """One protocol in each world."""
    works: dict[str, Callable[[], object]] = {}
    for change in changes:
        problem = bm.Problem.random(network, n_arms=50, per_agent=20, seed=SEED, change=change)
        settings = {"seed": SEED, "engine": "compiled", "threads": 1, "policy": bm.UCB(memory=memory)}
        work = partial(bm.simulate, problem, protocol, progress=False, **settings)
        work(horizon=min(horizon, 3))
        works[change or "fixed"] = partial(work, horizon=horizon, record_every=horizon)
    seconds = cpu_times(works, repeats)
    return [
        {
            "agents": problem.n_agents,
            "protocol": protocol.name,
            "memory": memory.label,
            "world": world,
            "ns": 1e9 * spent / (horizon * problem.n_agents),
            "ratio": spent / seconds["fixed"],
            "peak_gib": None,
        }
        for world, spent in seconds.items()
    ]


SECTION = Section(
    name="worlds",
    title="What changing arms cost",
    note=(
        f"Whole calls of simulate() with UCB, 50 arms, 20 per agent, on the paper's ER network with T = {HORIZON}, or "
        f"with a million agents and T = {LARGE_HORIZON}; one replicate, one core, CPU time, the least of several, in "
        "turns. The ratio is to the same run in a fixed world. Wandering and seasonal means change in every round. "
        "Peak: the memory of the whole process by the end."
    ),
    columns=(
        Column("agents", "agents", ",d"),
        Column("protocol", "protocol"),
        Column("memory", "memory"),
        Column("world", "world"),
        Column("ns", "ns/pull", ",.0f"),
        Column("ratio", "ratio", ".2f"),
        Column("peak_gib", "peak, GiB", ".2f"),
    ),
    measure=measure,
)

if __name__ == "__main__":
    show(SECTION, measure_large(int(sys.argv[1])))
