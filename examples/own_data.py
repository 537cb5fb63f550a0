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
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])]  # each link once
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
    horizon = 300 if options.full else 40
    # Of a small network, the reference engine is done before the compiled one has been compiled.
    engine = "auto" if options.full else "reference"
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
    # Every agent is asked twice a second, and the network should carry no more than this.
    pace, budget = 2.0, 40.0 * problem.n_agents
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
        replicates=2,
        seed=0,
        engine=engine,
        faults=faults,
        rounds_per_second=pace,
        max_messages_per_second=budget,
    )
    print(f"\n{'configuration':20} {'group regret':>12} {'transmissions/s':>16} {'busiest link/s':>15}")
    for name, row in found.table().iterrows():
        sent, load = row["messages_per_second"], row["link_load_per_second"]
        print(f"{name:20} {row['regret']:12,.2f} {sent:16,.1f} {load:15,.2f}")
    print(f"\nbudget: {budget:,.0f} transmissions a second\n{found.advice}")
    figure = options.figure or folder / "front.png"
    found.plot().savefig(figure)
    print(f"\nfigure: {figure}")

    # What would these very clicks have given? An agent uses each of them at most once, which only this engine can do.
    replay = bm.Problem(folder / "links.txt.gz", catalogue, log.with_law("replay"), unmatched="drop")
    result = bm.simulate(replay, bm.TreeAggregation(), policy=bm.KLUCB(), horizon=40, seed=0, engine="reference")
    print(f"\nreplayed: {bm.replayed(replay, result)}\n{time.perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    main()
