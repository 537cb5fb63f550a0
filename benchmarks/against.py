"""Compare the speed of this code with that of other checkouts, on a machine that may be busy with other things.

    python benchmarks/against.py ../older/src                     every case, 20 turns
    python benchmarks/against.py ../older/src --only fwa --turns 40
    python benchmarks/against.py ../older/src --cold 3            the first run with an empty cache, too

Each checkout has a process of its own, with its own cache, and they take turns at every case: what slows one of them
down slows the others as well. Times are CPU time, and two figures are shown, the least and the lower quartile of all
turns; a difference that does not show in both is chance.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tables import Column, Row, Section

OWN = Path(__file__).resolve().parent.parent / "src"
#: What is simulated, by name: network, protocol, rules. Only what older checkouts have as well.
CASES = {
    "one agent": ("one", "bm.NoCooperation()", "sound"),
    "klucb": ("er", "bm.FwA(4), policy=bm.KLUCB()", "sound"),
    "thompson": ("er", "bm.FwA(4), policy=bm.ThompsonSampling()", "sound"),
    "klucb coins": ("coins", "bm.FwA(4), policy=bm.KLUCB()", "sound"),
    "thompson coins": ("coins", "bm.FwA(4), policy=bm.ThompsonSampling()", "sound"),
    "none": ("er", "bm.NoCooperation()", "sound"),
    "irs": ("er", "bm.IRS()", "sound"),
    "gossip": ("er", "bm.Gossip(4)", "sound"),
    "probabilistic": ("er", "bm.ProbabilisticFlooding(4, 0.5)", "sound"),
    "fwa": ("er", "bm.FwA(4)", "sound"),
    "flooding": ("er", "bm.Flooding(4)", "sound"),
    "growth": ("er", "bm.FwA(4, emission=bm.Growth(0.25))", "sound"),
    "tree": ("er", "bm.TreeAggregation()", "sound"),
    "gossip growth": ("er", "bm.Gossip(4, emission=bm.Growth(0.25))", "sound"),
    "fwa large": ("large", "bm.FwA(4)", "sound"),
    "flooding large": ("large", "bm.Flooding(4)", "sound"),
    "irs dynamic": ("dynamic-er", "bm.IRS()", "sound"),
    "gossip dynamic": ("dynamic-er", "bm.Gossip(4)", "sound"),
    "fwa dynamic": ("dynamic-er", "bm.FwA(4)", "sound"),
    "flooding dynamic": ("dynamic-er", "bm.Flooding(4)", "sound"),
    "fwa published": ("er", "bm.FwA(4)", "published"),
    "flooding published": ("er", "bm.Flooding(4)", "published"),
    "gossip published": ("er", "bm.Gossip(4)", "published"),
    "fwa dynamic published": ("dynamic-er", "bm.FwA(4)", "published"),
}
#: Rounds of each network: about a twentieth of a second, short enough to be left alone. The large one's are so few that
#: making the plan shows.
ROUNDS = {"er": 3000, "coins": 300, "dynamic-er": 300, "one": 100_000, "large": 40}
N_AGENTS = {"er": 100, "coins": 100, "dynamic-er": 100, "one": 1, "large": 10_000}

#: Reads a case, does it, and writes its CPU seconds, until there are no more.
WORKER = """
import sys, time
import banditmesh as bm
problems = {name: bm.Problem.paper(name, seed=0) for name in ("er", "dynamic-er")}
coins = [bm.arms.Bernoulli(0.1 + 0.8 * (arm * 37 % 50) / 50) for arm in range(50)]
problems["coins"] = bm.Problem(bm.networks.er(100, 0.1, seed=1), bm.arms.uniform_sets(100, 50, 20, seed=0), coins)
sparse = bm.networks.sparse_er(10_000, 3.0, seed=0)
problems["large"] = bm.Problem.random(sparse, n_arms=50, per_agent=20, seed=0)
gaussian = [bm.arms.Gaussian(arm / 20, 1.0) for arm in range(20)]
problems["one"] = bm.Problem(bm.networks.er(1, 0.0, seed=0), [list(range(20))], gaussian)

def simulate(problem, protocol, **settings):
    bm.simulate(problem, protocol, seed=0, engine="compiled", threads=1, progress=False, **settings)

for line in sys.stdin:
    network, protocol, rules, horizon = eval(line)
    given = f"simulate(problems[network], {protocol}, horizon=horizon, rules=rules, record_every=horizon)"
    began = time.process_time()
    eval(given)
    print(time.process_time() - began, flush=True)
"""
FIRST = "import banditmesh as bm; bm.simulate(bm.Problem.paper('er'), bm.FwA(4), seed=0, engine='compiled')"


class Worker:
    """A process that imports banditmesh from `source` and simulates what it is asked to."""

    def __init__(self, source: Path, cache: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(source, cache),
        )

    def seconds(self, network: str, protocol: str, rules: str) -> float:
        """The CPU seconds of one run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print((network, protocol, rules, ROUNDS[network]), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def environment(source: Path, cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Compare the speed of this code with that of other checkouts.")
    parser.add_argument("sources", nargs="+", type=Path, metavar="SRC", help="the src folders of other checkouts")
    parser.add_argument("--turns", type=int, default=20, help="how often each case is run (default: 20)")
    parser.add_argument("--cold", type=int, default=0, help="how often the first run, which compiles, is measured")
    parser.add_argument("--only", default=",".join(CASES), metavar="A,B", help="run these cases (default: all)")
    options = parser.parse_args(arguments)
    sources = [*(source.resolve() for source in options.sources), OWN]
    for source in sources:
        if not (source / "banditmesh").is_dir():
            parser.error(f"a SRC must be a folder that holds banditmesh, got {source}")
    names = options.only.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"--only takes cases from {', '.join(CASES)}, got {unknown[0]!r}")
    print("least, lower quartile, and their ratios to the first, of", *sources, sep="\n  ", flush=True)
    if options.cold:
        show("first run, s", [[cold(source) for source in sources] for _ in range(options.cold)], 1.0)
    for name, turns in compare(sources, names, options.turns):
        show(f"{name}, ns/pull", turns, 1.0)


def compare(sources: Sequence[Path], names: Sequence[str], n_turns: int) -> Iterator[tuple[str, list[list[float]]]]:
    """Let checkouts take turns at cases, after runs that may compile: of each case ns a pull, by turn and checkout."""
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(source, Path(folder, str(place))) for place, source in enumerate(sources)]
        for name in names:
            for worker in workers:
                worker.seconds(*CASES[name])
            ns = 1e9 / (N_AGENTS[CASES[name][0]] * ROUNDS[CASES[name][0]])
            yield name, [[ns * worker.seconds(*CASES[name]) for worker in workers] for _ in range(n_turns)]
        for worker in workers:
            worker.close()


def rows_before(source: Path) -> list[Row]:
    """What an older checkout takes for each case, and what this one does."""
    rows = []
    for name, turns in compare([source.resolve(), OWN], list(CASES), 12):
        before, now = (min(column) for column in zip(*turns, strict=True))
        rows.append({"case": name, "before": before, "now": now, "by": now / before})
    return rows


def cold(source: Path) -> float:
    """CPU seconds of a process that must compile."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times().children_user + os.times().children_system
        subprocess.run(
            [sys.executable, "-c", FIRST], env=environment(source, Path(folder)), check=True, capture_output=True
        )
        return os.times().children_user + os.times().children_system - before


def show(name: str, turns: list[list[float]], factor: float) -> None:
    """A line: of each checkout the least and the lower quartile of all turns, and their ratios to the first one's."""
    columns = [sorted(column) for column in zip(*turns, strict=True)]
    least = [column[0] for column in columns]
    quartile = [column[len(column) // 4] for column in columns]
    cells = [
        f"{factor * a:7.1f} {factor * q:7.1f} ({a / least[0]:.3f} {q / quartile[0]:.3f})"
        for a, q in zip(least, quartile, strict=True)
    ]
    print(f"{name:32}" + "   ".join(cells), flush=True)


SECTION = Section(
    name="before",
    title="Before and now",
    note=(
        "An older checkout, from before its kernels were made faster, and this one, in turns on this machine: CPU time "
        "of whole calls of simulate() on one core, least of 12. 100 agents on the paper's ER network, static or "
        "dynamic, or with coins; large: 10,000 agents and so few rounds that making the plan shows; one agent alone."
    ),
    columns=(
        Column("case", "case"),
        Column("before", "before, ns/pull", ",.0f"),
        Column("now", "now, ns/pull", ",.0f"),
        Column("by", "now by before", ".2f"),
    ),
    measure=lambda quick: [],
)


if __name__ == "__main__":
    main(sys.argv[1:])
