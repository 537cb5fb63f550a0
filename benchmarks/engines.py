"""The compiled engine against the reference engine, which is its definition."""

from __future__ import annotations

from setting import NETWORKS, RULES, SEED, equal_results, protocols
from tables import Column, Row, Section
from timing import cpu_time

import banditmesh as bm

#: Rounds that the reference engine can bear; the first 20 are every agent's first pulls.
SHORT, LONG = 60, 1000


def measure(quick: bool) -> list[Row]:
    networks = ("er",) if quick else NETWORKS
    shown = [bm.FwA(3)] if quick else protocols()
    short, long, repeats = (5, 40, 1) if quick else (SHORT, LONG, 10)
    return [
        compare(name, protocol, rules, short, long, repeats)
        for rules in RULES
        for name in networks
        for protocol in shown
    ]


def compare(name: str, protocol: bm.Protocol, rules: str, short: int, long: int, repeats: int) -> Row:
    """Both engines at the short horizon, and the compiled one at the long one too."""
    problem = bm.Problem.paper(name, seed=SEED)

    def simulate(engine: str, horizon: int) -> bm.Result:
        return bm.simulate(problem, protocol, horizon=horizon, seed=SEED, rules=rules, engine=engine, threads=1)

    simulate("compiled", short)
    compiled_seconds, compiled = cpu_time(lambda: simulate("compiled", short), repeats)
    long_seconds, _ = cpu_time(lambda: simulate("compiled", long), repeats)
    reference_seconds, reference = cpu_time(lambda: simulate("reference", short), 1)
    if not equal_results(compiled, reference):
        raise RuntimeError(f"the engines must agree on {name} under {protocol.name}, {rules} rules, and they do not")
    reference_ns, long_ns = (
        1e9 * seconds / (horizon * problem.n_agents)
        for seconds, horizon in ((reference_seconds, short), (long_seconds, long))
    )
    return {
        "rules": rules,
        "network": name,
        "protocol": protocol.name,
        "horizon": short,
        "reference_ns": reference_ns,
        "compiled_short_ns": 1e9 * compiled_seconds / (short * problem.n_agents),
        "ratio": reference_seconds / compiled_seconds,
        "compiled_ns": long_ns,
        "steady_ratio": reference_ns / long_ns,
        "equal": True,
    }


SECTION = Section(
    name="engines",
    title="The compiled engine against the reference engine",
    note=(
        f"Whole calls of simulate(), one replicate, one core, CPU time. Both engines run T = {SHORT} with the same "
        "seed, the reference once, the compiled one several times after a warm-up, and the least is taken; their "
        "results are equal to the last bit. Speed-up is the ratio of rounds per second at that same horizon, where the "
        f"compiled engine's set-up weighs most. At T = {LONG} only the compiled engine runs; the last ratio takes the "
        f"reference's cost per pull at T = {SHORT}."
    ),
    columns=(
        Column("rules", "rules"),
        Column("network", "network"),
        Column("protocol", "protocol"),
        Column("reference_ns", f"reference, ns/pull at T = {SHORT}", ",.0f"),
        Column("compiled_short_ns", f"compiled, ns/pull at T = {SHORT}", ",.0f"),
        Column("ratio", f"speed-up at T = {SHORT}", ",.0f"),
        Column("compiled_ns", f"compiled, ns/pull at T = {LONG}", ",.0f"),
        Column("steady_ratio", "per pull, against the reference", ",.0f"),
        Column("equal", "equal"),
    ),
    measure=measure,
)
