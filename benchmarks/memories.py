"""What forgetting costs: memories against agents that forget nothing, per pull."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from setting import SEED
from tables import Column, Row, Section
from timing import cpu_times

import banditmesh as bm

HORIZON = 4000
MEMORIES = (bm.Everything(), bm.Discount(0.995), bm.Window(200))


def measure(quick: bool) -> list[Row]:
    protocols = [bm.NoCooperation()] if quick else [bm.NoCooperation(), bm.FwA(4), bm.Flooding(4, emission=bm.Growth())]
    kinds = [bm.UCB] if quick else [bm.UCB, bm.KLUCB, bm.ThompsonSampling]
    return [row for kind in kinds for protocol in protocols for row in rows_of(kind, protocol, quick)]


def rows_of(kind: type[bm.Policy], protocol: bm.Protocol, quick: bool) -> list[Row]:
    """One policy under one protocol, with each memory that runs compiled."""
    problem, horizon = bm.Problem.paper("er", seed=SEED), 40 if quick else HORIZON
    works: dict[bm.Memory, Callable[[], object]] = {}
    for memory in MEMORIES[:2] if quick or protocol.emission.cumulative else MEMORIES:
        settings = {"policy": kind(memory=memory), "horizon": horizon, "seed": SEED, "engine": "compiled", "threads": 1}
        works[memory] = partial(bm.simulate, problem, protocol, **settings)
        works[memory]()
    seconds = cpu_times(works, 1 if quick else 15)
    usual = seconds[MEMORIES[0]]
    return [
        {
            "policy": kind.name,
            "protocol": protocol.name + ("+growth" if protocol.emission.cumulative else ""),
            "memory": memory.label,
            "ns": 1e9 * spent / (horizon * problem.n_agents),
            "ratio": spent / usual,
        }
        for memory, spent in seconds.items()
    ]


SECTION = Section(
    name="memories",
    title="What forgetting costs",
    note=(
        f"Whole calls of simulate() on the paper's ER network, T = {HORIZON}, one replicate, one core, CPU time, the "
        "least of several, in turns. The ratio is to the same run of agents that forget nothing. By Window, "
        "messages are spread one by one instead of being looked up."
    ),
    columns=(
        Column("policy", "policy"),
        Column("protocol", "protocol"),
        Column("memory", "memory"),
        Column("ns", "ns/pull", ",.0f"),
        Column("ratio", "ratio", ".2f"),
    ),
    measure=measure,
)
