"""Simulated slopes of regret against log T beside what is proven: the table of docs/theory/sharp.md.

python benchmarks/slopes.py [--horizon 200000] [--replicates 20]
"""

from __future__ import annotations

import argparse
import math

import networkx as nx

import banditmesh as bm


def gaussian(sigma: float, *means: float) -> list[bm.arms.Gaussian]:
    return [bm.arms.Gaussian(mean, sigma) for mean in means]


ALONE = bm.Problem(nx.empty_graph(1), [[0, 1]], gaussian(0.5, 1.0, 0.0))
NEAR = bm.Problem(nx.path_graph(2), [[0, 2], [1, 2]], gaussian(0.5, 2.0, 1.0, 0.0))
FREE = bm.Problem(nx.path_graph(2), [[0, 1], [0, 2]], gaussian(1.0, 0.5, 1.0, 0.0))
SAME = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian(0.5, 1.0, 0.0))
RING = bm.Problem(nx.cycle_graph(6), [[0, 1]] * 6, gaussian(0.5, 1.0, 0.0))

CASES = [
    ("one agent, gap 1", ALONE, bm.NoCooperation(), 0.6, None),
    ("one agent, gap 1", ALONE, bm.NoCooperation(), 1.0, None),
    ("one agent, gap 1", ALONE, bm.NoCooperation(), 3.0, None),
    ("gaps 2 and 1", NEAR, bm.Centralised(), 0.6, None),
    ("gaps 2 and 1", NEAR, bm.Centralised(), 1.0, None),
    ("gaps 2 and 1", NEAR, bm.IRS(), 3.0, None),
    ("a best arm heard of", FREE, bm.IRS(), 2.1, None),
    ("path of 3", SAME, bm.Flooding(2), 1.0, None),
    ("path of 3", SAME, bm.Flooding(2, emission=bm.Growth(0.25)), 1.0, None),
    ("path of 3", SAME, bm.TreeAggregation(), 1.0, None),
    ("path of 3", SAME, bm.Flooding(2), 1.0, bm.Faults(loss=0.3)),
    ("path of 3", SAME, bm.ProbabilisticFlooding(2, stop=0.5), 1.0, None),
    ("path of 3", SAME, bm.Gossip(2), 1.0, None),
    ("ring of 6", RING, bm.IRS(), 1.0, None),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=200_000)
    parser.add_argument("--replicates", type=int, default=20)
    options = parser.parse_args()
    print("| agents | protocol | alpha | lower bound | slope | sharp constant | clique constant |")
    print("|---|---|---|---|---|---|---|")
    for name, problem, protocol, alpha, faults in CASES:
        result = bm.simulate(
            problem,
            protocol,
            policy=bm.UCB(alpha),
            horizon=options.horizon,
            replicates=options.replicates,
            seed=0,
            record_every=options.horizon // 10,
            faults=faults,
            threads=1,
            progress=False,
        )
        slopes = (result.regret[:, -1] - result.regret[:, 0]) / math.log(10)
        error = slopes.std(ddof=1) / math.sqrt(len(slopes))
        bounds = bm.bounds(problem, protocol, alpha=alpha, faults=faults)
        told = f"{protocol.name}, {faults.loss:.0%} lost" if faults else protocol.name
        if protocol.emission != type(protocol)(*([protocol.ttl] if protocol.ttl > 1 else [])).emission:
            told += f"+{protocol.emission.name}"
        clique = f"{bounds.constant:.2f}" if bounds.corrected else ""
        print(
            f"| {name} | {told} | {alpha:g} | {bounds.lower_corrected:.2f} | {slopes.mean():.2f} ± {error:.2f} "
            f"| {bounds.constant_sharp:.2f} | {clique} |",
            flush=True,
        )
    horizon, alone = options.horizon // 10, bm.Problem(nx.empty_graph(1), [[0, 1]], gaussian(1.0, 0.25, 0.0))
    print(
        f"\n| alpha | regret at {horizon:,} | proven at least | exponent, last decade | limit |\n|---|---|---|---|---|"
    )
    for alpha in (0.25, 0.5, 1.0, 1.5, 3.0):
        result = bm.simulate(
            alone,
            bm.NoCooperation(),
            policy=bm.UCB(alpha),
            horizon=horizon,
            replicates=40 * options.replicates,
            seed=0,
            record_every=horizon // 10,
            threads=1,
            progress=False,
        )
        mean, last = result.regret.mean(axis=0), result.regret[:, -1]
        proven = bm.bounds(alone, bm.NoCooperation(), alpha=alpha, horizon=horizon).lower_lonely
        print(
            f"| {alpha:g} | {mean[-1]:.1f} ± {last.std(ddof=1) / math.sqrt(len(last)):.1f} | {proven:.1f} "
            f"| {math.log10(mean[-1] / mean[0]):.2f} | {max(1 - alpha / 2, 0):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
