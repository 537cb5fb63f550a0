"""Replicates side by side: two threads against one, and the time of all of the paper's runs together."""

from __future__ import annotations

from setting import NETWORKS, RULES, SEED, equal_results, protocols
from tables import Column, Row, Section
from timing import wall_time

import banditmesh as bm


def measure(quick: bool) -> list[Row]:
    networks = ("er",) if quick else NETWORKS
    horizon, replicates, repeats = (20, 2, 1) if quick else (1000, 10, 3)
    rows = []
    for rules in RULES:
        part = [compare(rules, name, horizon, replicates, repeats) for name in networks]
        total: Row = {"rules": rules, "network": "all", "equal": True}
        for key in ("one_s", "two_s"):
            total[key] = sum(row[key] for row in part)
        rows += [*part, {**total, "speed_up": total["one_s"] / total["two_s"]}]
    return rows


def compare(rules: str, name: str, horizon: int, replicates: int, repeats: int) -> Row:
    """All six protocols on one network, with one thread and with two."""
    problem = bm.Problem.paper(name, seed=SEED)

    def simulate(threads: int) -> list[bm.Result]:
        return [
            bm.simulate(
                problem,
                protocol,
                horizon=horizon,
                replicates=replicates,
                seed=SEED,
                rules=rules,
                engine="compiled",
                threads=threads,
            )
            for protocol in protocols()
        ]

    for protocol in protocols():
        bm.simulate(problem, protocol, horizon=10, seed=SEED, rules=rules, engine="compiled")
    one_seconds, one = wall_time(lambda: simulate(1), repeats)
    two_seconds, two = wall_time(lambda: simulate(2), repeats)
    if not all(map(equal_results, one, two)):
        raise RuntimeError(f"results must not depend on threads, and on {name} by the {rules} rules they do")
    return {
        "rules": rules,
        "network": name,
        "one_s": one_seconds,
        "two_s": two_seconds,
        "speed_up": one_seconds / two_seconds,
        "equal": True,
    }


SECTION = Section(
    name="threads",
    title="Threads",
    note=(
        "All six protocols, ttl 4, T = 1000, ten replicates, wall time of the calls of simulate() after compilation, "
        "least of up to three repeats. Results do not depend on threads."
    ),
    columns=(
        Column("rules", "rules"),
        Column("network", "network"),
        Column("one_s", "one thread, s", ".2f"),
        Column("two_s", "two threads, s", ".2f"),
        Column("speed_up", "speed-up", ".2f"),
        Column("equal", "results equal"),
    ),
    measure=measure,
)
