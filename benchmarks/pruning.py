"""What pruning costs and saves: the frontier of small random problems, pruned and in full.

Small problems are the hard ones, since regrets of a few agents scatter. For each problem all configurations run to the
end, and again from coarse to fine. Counted are configurations on a front of the full evaluation that pruning left out.
One is *clearly* on a front if it has less regret than every other that costs no more, by more than the standard error
of their paired difference: of these none may be left out. Also counted: in how many problems pruning recommends
a configuration with more regret, and how many pulls and transmissions are simulated either way.

python benchmarks/pruning.py [--problems 30] [--replicates 10] [--agents 6,16] [--horizon 300]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np

import banditmesh as bm
from banditmesh.comparisons import measuring
from banditmesh.comparisons.configurations import COSTS, Frontier


@dataclass
class Work:
    """What was simulated: pulls, transmissions and seconds."""

    pulls: int = 0
    transmissions: int = 0
    seconds: float = 0.0


@dataclass
class Tally:
    """What all problems gave together."""

    n_problems: int = 0
    n_on_front: int = 0
    left_out: list[str] = field(default_factory=list)
    clearly_left_out: list[str] = field(default_factory=list)
    worse: list[float] = field(default_factory=list)
    n_configurations: int = 0
    n_left_out: int = 0
    full: Work = field(default_factory=Work)
    pruned: Work = field(default_factory=Work)


def problems(n_problems: int, least: int, most: int) -> Iterator[tuple[int, bm.Problem]]:
    """Seeds and random problems of `least` to `most` agents."""
    for seed in range(n_problems):
        rng = np.random.default_rng([seed, 8])
        n_agents = int(rng.integers(least, most + 1))
        graphs: list[nx.Graph] = [
            bm.networks.ring(n_agents),
            bm.networks.complete(n_agents),
            bm.networks.ba(n_agents, 2, seed),
            bm.networks.er(n_agents, min(1.0, 4.0 / n_agents), seed),
            bm.networks.path(n_agents),
        ]
        per_agent = int(rng.integers(2, 5))
        n_arms = int(rng.integers(per_agent, 9))
        yield seed, bm.Problem.random(graphs[seed % len(graphs)], n_arms=n_arms, per_agent=per_agent, seed=seed)


def clearly_on_front(found: Frontier, cost: str) -> set[str]:
    """The configurations on a front by more than the standard error of the paired difference."""

    def is_clear(one: Any) -> bool:
        rivals = [o for o in found.configurations if o is not one and o.mean(cost) <= one.mean(cost)]
        differences = [rival.regret - one.regret for rival in rivals]
        return all(d.mean() > d.std(ddof=1) / len(d) ** 0.5 for d in differences)

    return {name for name in found.fronts[cost] if is_clear(found[name])}


def judge(tally: Tally, seed: int, full: Frontier, pruned: Frontier) -> None:
    """Count what pruning lost on one problem."""
    members = {name for front in full.fronts.values() for name in front}
    clear = {name for cost in COSTS for name in clearly_on_front(full, cost)}
    tally.n_problems += 1
    tally.n_on_front += len(members)
    tally.n_configurations += len(full.configurations)
    tally.n_left_out += len(pruned.left_out)
    tally.left_out += [f"{seed}: {name}" for name in sorted(members & set(pruned.left_out))]
    tally.clearly_left_out += [
        f"{seed}: {name}: {pruned.left_out[name]}" for name in sorted(clear & set(pruned.left_out))
    ]
    ratio = full[str(pruned.recommended)].mean("regret") / full[str(full.recommended)].mean("regret")
    if ratio > 1:
        tally.worse.append(ratio)


@contextmanager
def counted(work: Work) -> Iterator[None]:
    """While this is open, what frontiers simulate is counted."""
    simulate, began = measuring.simulate, time.perf_counter()

    def counting(problem: bm.Problem, *arguments: Any, **settings: Any) -> bm.Result:
        result = simulate(problem, *arguments, **settings)
        work.pulls += int(result.pulls.sum())
        work.transmissions += int(result.transmissions[:, -1].sum())
        return result

    measuring.simulate = counting  # type: ignore[attr-defined]
    try:
        yield
    finally:
        measuring.simulate = simulate  # type: ignore[attr-defined]
        work.seconds += time.perf_counter() - began


def measure(n_problems: int, least: int, most: int, horizon: int, replicates: int, **settings: Any) -> Tally:
    """Evaluate all problems both ways."""
    tally = Tally()
    for seed, problem in problems(n_problems, least, most):
        given = {"horizon": horizon, "replicates": replicates, "seed": seed, "progress": False, **settings}
        with counted(tally.full):
            full = bm.frontier(problem, prune=False, **given)
        with counted(tally.pruned):
            pruned = bm.frontier(problem, prune=True, **given)
        judge(tally, seed, full, pruned)
    return tally


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Frontiers of small random problems, pruned and in full.")
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--agents", default="6,16", help="from, to")
    parser.add_argument("--horizon", type=int, default=300)
    options = parser.parse_args()
    least, most = map(int, options.agents.split(","))
    tally = measure(options.problems, least, most, options.horizon, options.replicates)
    print(f"{tally.n_problems} problems, {tally.n_configurations} configurations, {tally.n_left_out} of them left out")
    print(f"{tally.n_on_front} on a front, left out: {len(tally.left_out)}, clearly: {len(tally.clearly_left_out)}")
    for line in tally.clearly_left_out:
        print("  ", line)
    print(f"recommended with more regret: {len(tally.worse)}, at most {max(tally.worse, default=1.0):.2f} times")
    for what in ("pulls", "transmissions", "seconds"):
        full, pruned = getattr(tally.full, what), getattr(tally.pruned, what)
        print(f"{what}: full {full:,.0f}, pruned {pruned:,.0f}, {pruned / full:.0%}")


if __name__ == "__main__":
    main()
