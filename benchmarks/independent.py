"""Independent sets beside clique covers, and what UCB does: the tables of docs/theory/independent.md.

python benchmarks/independent.py [--part constants|slopes|bounds] [--horizon 200000] [--replicates 20]
"""

from __future__ import annotations

import argparse
import math
import time

import networkx as nx

import banditmesh as bm

GRAPHS = {
    "one agent": (nx.empty_graph(1), bm.NoCooperation()),
    "C5": (nx.cycle_graph(5), bm.IRS()),
    "C6": (nx.cycle_graph(6), bm.IRS()),
    "C7": (nx.cycle_graph(7), bm.IRS()),
    "C7, ttl 2": (nx.cycle_graph(7), bm.Flooding(2)),
    "Petersen": (nx.petersen_graph(), bm.IRS()),
    "star, 5 leaves": (nx.star_graph(5), bm.IRS()),
}


def constants() -> None:
    """On the paper's networks, per unit of alpha log T, and the seconds of processor time of all of it."""
    print("| network | protocol | cheapest cover | independent sets | sharp | UCB at least | s |")
    print("|---|---|---|---|---|---|---|")
    for network in ("er", "ba", "sbm"):
        problem = bm.Problem.paper(network, seed=0)
        for protocol in (bm.IRS(), bm.FwA(4), bm.Flooding(4)):
            start = time.process_time()
            bounds = bm.bounds(problem, protocol)
            spent = time.process_time() - start
            sums = bounds.per_arm[["weighted", "independent", "sharp", "ucb_lower"]].sum()
            told = " | ".join(f"{value:,.0f}" for value in sums)
            print(f"| {network} | {bounds.label} | {told} | {spent:.1f} |", flush=True)


def bounds() -> None:
    """At finite horizons, on the paper's ER network."""
    problem = bm.Problem.paper("er", seed=0)
    print("| protocol | T | sharp | counted by | any arms, at least | any arms, at most |\n|---|---|---|---|---|---|")
    for protocol in (bm.IRS(), bm.FwA(4), bm.Flooding(4), bm.Flooding(8), bm.Centralised()):
        for horizon in (1000, 10_000):
            found = bm.bounds(problem, protocol, horizon=horizon)
            print(
                f"| {found.label} | {horizon:,} | {found.upper_sharp:,.0f} | {found.counted_by} "
                f"| {found.lower_gap_free:,.0f} | {found.upper_gap_free:,.0f} |",
                flush=True,
            )


def slopes(horizon: int, replicates: int) -> None:
    """The slope of mean regret against log T in the last decade: gap 1, sigma 0.5, alpha 1."""
    print("| hearing | UCB at least | independent set | cliques | slope | regret / log T |\n|---|---|---|---|---|---|")
    for name, (network, protocol) in GRAPHS.items():
        problem = bm.Problem(network, [[0, 1]] * len(network), [bm.arms.Gaussian(mean, 0.5) for mean in (1.0, 0.0)])
        settings = {"horizon": horizon, "replicates": replicates, "record_every": horizon // 10}
        result = bm.simulate(problem, protocol, policy=bm.UCB(1.0), seed=0, threads=1, progress=False, **settings)
        found = (result.regret[:, -1] - result.regret[:, 0]) / math.log(10)
        error = found.std(ddof=1) / math.sqrt(len(found))
        proven = bm.bounds(problem, protocol, alpha=1.0)
        print(
            f"| {name} | {proven.constant_least:.2f} | {proven.constant_sharp:.0f} | {proven.constant / 4:.0f} "
            f"| {found.mean():.2f} ± {error:.2f} | {result.regret[:, -1].mean() / math.log(horizon):.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("constants", "bounds", "slopes"), default=None)
    parser.add_argument("--horizon", type=int, default=200_000)
    parser.add_argument("--replicates", type=int, default=20)
    options = parser.parse_args()
    if options.part in (None, "constants"):
        constants()
    if options.part in (None, "bounds"):
        bounds()
    if options.part in (None, "slopes"):
        slopes(options.horizon, options.replicates)


if __name__ == "__main__":
    main()
