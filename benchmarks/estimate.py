"""How far the first-order estimate of regret is off: the tables of docs/theory/estimate.md.

python benchmarks/estimate.py [--horizon 1000] [--networks er,ba,sbm,dynamic-er] [--replicates 4]
"""

from __future__ import annotations

import argparse

import banditmesh as bm

PROTOCOLS = {
    "none": bm.NoCooperation(),
    "irs": bm.IRS(),
    "gossip(4)": bm.Gossip(4),
    "probabilistic(4)": bm.ProbabilisticFlooding(4),
    "fwa(4)": bm.FwA(4),
    "flooding(4)": bm.Flooding(4),
    "fwa(4)+contested": bm.FwA(4, emission=bm.Contested()),
    "flooding(8)+growth": bm.Flooding(8, emission=bm.Growth()),
    "tree": bm.TreeAggregation(),
    "centralised": bm.Centralised(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--networks", default="er,ba,sbm,dynamic-er")
    parser.add_argument("--replicates", type=int, default=4)
    options = parser.parse_args()
    networks = options.networks.split(",")
    print("| protocol | " + " | ".join(networks) + " |\n|---|" + "---|" * len(networks))
    for name, protocol in PROTOCOLS.items():
        cells = []
        for network in networks:
            if protocol.merges and network == "dynamic-er":
                cells.append("")
                continue
            problem = bm.Problem.paper(network, seed=0)
            settings = {"horizon": options.horizon, "replicates": options.replicates, "record_every": options.horizon}
            regret = bm.simulate(problem, protocol, seed=0, threads=1, progress=False, **settings).regret[:, -1].mean()
            expected = bm.theory.estimate(problem, protocol, horizon=options.horizon).at(options.horizon)
            cells.append(f"{regret:,.0f}, {100 * (expected / regret - 1):+.0f} %")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
