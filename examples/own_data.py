"""From an engineer's files to a protocol: a network, a catalogue and a click log, with losses, outages and a budget.

    python examples/own_data.py                  # small, in seconds
    python examples/own_data.py --full           # 3,000 agents, 200,000 links, a million clicks
    python examples/own_data.py --figure front.png

The files are made up here, as a stand-in for yours; everything after `make_files` is what you would write.
"""

import argparse
import csv
import gzip
import tempfile
import time
from pathlib import Path

import numpy as np

import banditmesh as bm


def make_files(folder, n_agents, n_links, n_arms, per_agent, n_clicks, seed=0):
    """Write links.txt.gz, catalogue.csv and clicks.csv.gz."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(n_agents, size=(n_links, 2))
    pairs = np.concatenate([[(v, (v + 1) % n_agents) for v in range(n_agents)], pairs[pairs[:, 0] != pairs[:, 1]]])
    with gzip.open(folder / "links.txt.gz", "wt") as file:
        file.write("# FromNodeId\tToNodeId\n")
        file.writelines(f"site{i}\tsite{j}\n" for i, j in pairs[:n_links].tolist())
    sets = np.array([rng.permutation(n_arms)[:per_agent] for _ in range(n_agents)])
    with open(folder / "catalogue.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["agent", "arm"])
        table.writerows([f"site{v}", f"ad{arm}"] for v in range(n_agents) for arm in sets[v])
        table.writerow(["site-that-closed", "ad0"])
    rates = rng.uniform(0.01, 0.3, size=n_arms)
    agents = rng.integers(n_agents, size=n_clicks)
    shown = sets[agents, rng.integers(per_agent, size=n_clicks)]
    clicks = (rng.random(n_clicks) < rates[shown]).astype(int)
    with gzip.open(folder / "clicks.csv.gz", "wt", newline="") as file:
        file.write("agent,arm,reward,time\n")
        rows = zip(agents.tolist(), shown.tolist(), clicks.tolist(), strict=True)
        file.writelines(f"site{v},ad{arm},{click},{t}\n" for t, (v, arm, click) in enumerate(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--figure")
    options = parser.parse_args()
    sizes = (3000, 200_000, 500, 40, 1_000_000) if options.full else (40, 100, 12, 4, 400)
    horizon, replicates = (50, 2) if options.full else (60, 2)
    folder = Path(tempfile.mkdtemp())
    make_files(folder, *sizes)

    began = time.perf_counter()
    catalogue = bm.arms.read_catalogue(folder / "catalogue.csv")
    log = bm.arms.read_log(folder / "clicks.csv.gz")
    problem = bm.Problem(folder / "links.txt.gz", catalogue, log, unmatched="drop")
    print(f"{problem} from {log}")
    print(f"left out: {problem.unmatched}")
    print(f"read in {time.perf_counter() - began:.1f} s")

    # One transmission in fifty is lost, and agents go down for some ten rounds now and then.
    faults = bm.Faults(loss=0.02, outages=bm.Outages(down=0.002, up=0.1))
    budget = 20.0 * problem.n_agents
    # Where an agent has a hundred neighbours, one hop is a long way.
    hops = 1 if options.full else 3
    thrifty = bm.Growth(0.25)
    protocols = [bm.NoCooperation(), bm.IRS(), bm.IRS(emission=thrifty)]
    protocols += [bm.FwA(hops, emission=thrifty), bm.TreeAggregation()]
    found = bm.frontier(
        problem,
        protocols=protocols,
        policy=bm.KLUCB(),
        horizon=horizon,
        replicates=replicates,
        seed=0,
        faults=faults,
        max_messages_per_round=budget,
    )
    print(f"\n{'configuration':20} {'group regret':>12} {'transmissions/round':>20}")
    for name, row in found.table().iterrows():
        print(f"{name:20} {row['regret']:12,.2f} {row['messages_per_round']:20,.1f}")
    print(f"\nbudget: {budget:,.0f} transmissions a round\n{found.advice}")
    if options.figure:
        found.plot().savefig(options.figure)

    # What would these very clicks have given? Each is used at most once by an agent.
    replay = bm.Problem(folder / "links.txt.gz", catalogue, log.with_law("replay"), unmatched="drop")
    result = bm.simulate(replay, bm.TreeAggregation(), policy=bm.KLUCB(), horizon=horizon, seed=0, progress=False)
    print(f"\nreplayed: {bm.replayed(replay, result)}")


if __name__ == "__main__":
    main()
