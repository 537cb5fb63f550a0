"""From the paper to your own figure: reproduce, invent, check, compare, draw, keep, sweep.

python examples/student.py                   # small, in seconds once the engine is compiled
python examples/student.py --full            # at the paper's size: 1,000 rounds, ten replicates
python examples/student.py --out thesis      # keep the figures, the results and the study in this folder
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import banditmesh as bm

STUDY = """
name = "how far should messages go?"
protocol = {name = "fwa"}
sweep.protocol = {name = ["none", "fwa", "flooding"], ttl = [1, 2, 4, 6]}
"""


@dataclass(frozen=True)
class Fading(bm.Protocol):
    """As FwA, but an agent without the arm relays a message with the probability `keep` only."""

    keep: float = 0.7

    name = "fading"
    random = True  # so that `u`, a number in (0, 1), is drawn for every receipt

    @property
    def parameter(self):
        return self.keep

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        if has_arm:
            return bm.ABSORB
        return bm.RELAY if u < parameter else bm.STOP


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.full:
        horizon, replicates, problem = 1000, 10, bm.Problem.paper("er", seed=0)
        parts = "network = {name = 'er'}\narms = {n_arms = 50, per_agent = 20}\n"
    else:
        horizon, replicates = 25, 2
        problem = bm.Problem.random(bm.networks.ba(20, 2, seed=1), n_arms=10, per_agent=4, seed=0)
        parts = "network = {name = 'ba', n = 20, m = 2, seed = 1}\narms = {n_arms = 10, per_agent = 4}\n"
    # Of a small problem, the reference engine is done before a new rule has been compiled.
    engine = "auto" if options.full else "reference"
    settings = {"horizon": horizon, "replicates": replicates, "engine": engine}
    folder = Path(options.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    # 1. One published figure again, by the published rules; report.html explains it.
    again = bm.reproduce("5", horizon=horizon, replicates=replicates)
    regret = {name: runs.regret.mean() for name, runs in again.runs["dynamic-er"].items()}
    print("Figure 5, group regret:", ", ".join(f"{name} {value:,.0f}" for name, value in regret.items()))

    # 2. An idea, held to the contract of protocols before anyone believes its numbers.
    print(bm.testing.check_protocol(Fading(ttl=4, keep=0.5), compiled=False))

    # 3. Compared on the same rewards, with intervals of the differences.
    mine = {f"fading, keep {keep}": Fading(ttl=4, keep=keep) for keep in (0.5, 0.8)}
    others = {"irs": bm.IRS(), "fwa": bm.FwA(ttl=4), "flooding": bm.Flooding(ttl=4)}
    comparison = bm.compare(problem, {**others, **mine}, seed=0, **settings)
    print(f"\n{comparison}")
    for name, row in comparison.differences("fwa").iterrows():
        print(f"{name} - fwa: regret {row['regret']:+,.0f} [{row['regret_low']:+,.0f}, {row['regret_high']:+,.0f}]")

    # 4. A figure for one column of a paper, with 95 % confidence intervals and fonts that journals take.
    comparison.plot(figsize=(3.3, 4.2), band="ci").savefig(folder / "comparison.pdf")

    # 5. What was computed is kept, and comes back as it was.
    result = comparison.results["fading, keep 0.5"]
    result.save(folder / "fading.npz")
    assert bm.Result.load(folder / "fading.npz") == result

    # 6. A study that can be stopped and continued, with a sweep, and its figure.
    text = f"horizon = {horizon}\nreplicates = {replicates}\nengine = '{engine}'\n{parts}{STUDY}"
    study = bm.run_study(bm.parse_spec(text), folder / "study", workers=1)
    study.plot("sweep", figsize=(3.3, 4.2), band="ci").savefig(folder / "sweep.pdf")
    print(f"\n{study}: group regret by protocol and ttl, mean over replicates")
    print(study.table().pivot_table("regret", "protocol.ttl", "protocol").round(0).astype(int))
    print(f"\ndone in {time.perf_counter() - began:.0f} s; {len(list(folder.rglob('*.pdf')))} figures")


if __name__ == "__main__":
    main()
