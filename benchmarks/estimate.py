"""How far the estimate of regret is off: the tables of docs/theory/estimate.md.

python benchmarks/estimate.py [--horizon 1000] [--networks er,ba,sbm,dynamic-er] [--replicates 4]
    On the paper's networks; a star where the simulated regret is outside the interval.
python benchmarks/estimate.py --random [--instances 75] [--replicates 16] [--rows FILE]
    On random instances, in four sets. The constants of theory/estimate.py are fitted to three, checked on the fourth.
    Rows are added to FILE as they are measured; what it holds already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import banditmesh as bm
from banditmesh import arms, networks
from banditmesh.theory.estimate import FITTED, FLOOR, first_order, spreads_of

Row = dict[str, Any]

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
NETWORKS = (
    *("er", "ba", "sbm", "watts-strogatz", "grid", "ring", "star", "complete", "regular", "geometric"),
    "edge-markovian",
)
#: The sets of random instances, as seeds.
FITTED_TO, HELD_OUT = (0, 1, 2), (3,)
#: Of the interval that is fitted: each end is left by half of the rest. Wider than what it is to cover elsewhere.
CONFIDENCE = 0.95
HEADING = (
    "| protocol | first order | estimate | size | nine in ten errors | interval | covered | covered, T/4 "
    "| small alpha | covered |"
)


def random_network(kind: str, n: int, rng: np.random.Generator) -> Any:
    """A network of about n agents; where that can be chosen, with 2 to 6 links each."""
    seed, p = int(rng.integers(2**31)), min(1.0, rng.uniform(2.0, 6.0) / (n - 1))
    match kind:
        case "er":
            return networks.er(n, p, seed)
        case "ba":
            return networks.ba(n, 2, seed)
        case "sbm":
            return networks.sbm([n // 2, n - n // 2], min(1.0, 1.8 * p), 0.2 * p, seed)
        case "watts-strogatz":
            return networks.watts_strogatz(n, 4, 0.2, seed)
        case "grid":
            return networks.grid(max(2, n // 5), 5)
        case "regular":
            return networks.random_regular(n + n % 2, 4, seed)
        case "geometric":
            return networks.random_geometric(n, math.sqrt(p / math.pi), seed)
        case "edge-markovian":
            return networks.EdgeMarkovian(networks.er(n, p, seed), 0.2 * p, 0.2 * (1 - p))
    return {"ring": networks.ring, "star": networks.star, "complete": networks.complete}[kind](n)


def random_laws(kind: str, n_arms: int, rng: np.random.Generator) -> list[arms.Law]:
    """Laws with means between 0 and 1."""
    means, sigma = rng.uniform(0.0, 1.0, n_arms).tolist(), math.exp(rng.uniform(math.log(0.2), math.log(2.0)))
    if kind == "bernoulli":
        return [arms.Bernoulli(mean) for mean in means]
    if kind == "uniform":
        return [arms.Uniform(mean - sigma, mean + sigma) for mean in means]
    return [arms.Gaussian(mean, sigma) for mean in means]


def random_instance(part: int, number: int) -> dict[str, Any]:
    """The instance of that number in one of the sets: problem, alpha, horizon and protocols."""
    rng = np.random.default_rng([part, number])
    kind = str(rng.choice(NETWORKS))
    network = random_network(kind, round(math.exp(rng.uniform(math.log(6), math.log(50)))), rng)
    n_arms = int(rng.integers(2, 21))
    per_agent = n_arms if rng.random() < 0.3 else int(rng.integers(2, n_arms + 1))
    law = str(rng.choice(["gaussian", "bernoulli", "uniform"]))
    laws = random_laws(law, n_arms, rng)
    n_agents = len(network.names) if kind == "edge-markovian" else len(network)
    per_agent = max(per_agent, -(-n_arms // n_agents))  # every arm has a holder
    sets = arms.uniform_sets(n_agents, n_arms, per_agent, seed=int(rng.integers(2**31)))
    problem = bm.Problem(network, sets, laws)
    alpha = math.exp(rng.uniform(math.log(0.25), math.log(16.0))) * float(problem.sigmas.max()) ** 2
    ttl, growth = int(rng.integers(2, 9)), bm.Growth(float(rng.choice([0.1, 0.25, 1.0])))
    horizon = round(math.exp(rng.uniform(math.log(200), math.log(4000))))
    relays = bm.IRS(), bm.Gossip(ttl), bm.ProbabilisticFlooding(ttl), bm.FwA(ttl), bm.Flooding(ttl)
    relay = relays[rng.integers(len(relays))]
    protocols = {
        "none": bm.NoCooperation(),
        **{protocol.name: protocol for protocol in relays},
        "contested": replace(relay, emission=bm.Contested()),
        "growth": replace(relay, emission=growth),
        "tree": bm.TreeAggregation(emission=growth),
        "centralised": bm.Centralised(),
    }
    if kind == "edge-markovian":
        del protocols["tree"]
    return {"problem": problem, "alpha": alpha, "horizon": horizon, "protocols": protocols}


def measure(part: int, number: int, replicates: int) -> Iterator[Row]:
    """For each protocol a row: regret at a quarter of the horizon and at its end, simulated and to first order."""
    made = random_instance(part, number)
    problem, alpha, horizon = made["problem"], made["alpha"], made["horizon"]
    rounds = [horizon // 4, horizon]
    variance = float(spreads_of(problem).max()) ** 2
    settings = {"policy": bm.UCB(alpha), "horizon": horizon, "replicates": replicates, "seed": 1 + number}
    for name, protocol in made["protocols"].items():
        result = bm.simulate(problem, protocol, threads=1, progress=False, record_every=rounds[0], **settings)
        yield {
            "part": part,
            "number": number,
            "protocol": name,
            "regret": np.interp(rounds, result.rounds, result.regret.mean(axis=0)).tolist(),
            "first_order": np.interp(rounds, *first_order(problem, protocol, alpha, horizon)).tolist(),
            "first_pulls": float(problem.arm_gaps.sum()),
            "luck": [variance / (alpha * math.log(t)) for t in rounds],
            "small_alpha": alpha < variance,
        }


def measured(path: Path | None, n_instances: int, replicates: int) -> list[Row]:
    """The rows of all sets; those that the file holds are taken from it."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []
    found = {(row["part"], row["number"]) for row in rows}
    for part in (*FITTED_TO, *HELD_OUT):
        for number in range(n_instances):
            if (part, number) not in found:
                new = list(measure(part, number, replicates))
                rows += new
                if path:
                    with path.open("a") as file:
                        file.writelines(json.dumps(row) + "\n" for row in new)
    return [row for row in rows if row["number"] < n_instances]


class Errors:
    """Rows as arrays (rows, 2), at a quarter of the horizon and at its end."""

    def __init__(self, rows: list[Row]) -> None:
        first_order, regret, self.luck = (
            np.array([row[key] for row in rows]) for key in ("first_order", "regret", "luck")
        )
        self.log_ratio = np.log(regret / first_order)
        pulls = np.array([[row["first_pulls"]] for row in rows])
        self.beyond = np.maximum(1 - pulls / first_order, 0.0)
        self.small_alpha = np.array([row["small_alpha"] for row in rows])

    def residual(self, excess: float) -> Any:
        """What is left of the logarithm of measured over expected regret when luck adds so much."""
        return self.log_ratio - np.log1p(excess * self.luck * self.beyond)

    def fit(self) -> tuple[float, float, float]:
        """What luck adds, least absolute errors where alpha is not small, and both ends of the interval."""
        tried = np.linspace(0.0, 10.0, 201)
        excess = min(tried, key=lambda value: np.abs(self.residual(value)[~self.small_alpha]).sum())
        scaled = np.sort((self.residual(excess) / (self.luck + FLOOR)).ravel())
        out = math.floor((len(scaled) + 1) * (1 - CONFIDENCE) / 2)
        return round(float(excess), 2), round(float(scaled[out - 1]), 2), round(float(scaled[-out]), 2)


def per_cent(value: float) -> str:
    return f"{100 * value:+.0f} %".replace("-", "\u2212").replace("+0 %", "0 %").replace("\u22120 %", "0 %")


def random(path: Path | None, n_instances: int, replicates: int) -> None:
    """Print the fitted constants, and how they do on instances that they were not fitted to."""
    rows = measured(path, n_instances, replicates)
    by_name = {name: [row for row in rows if row["protocol"] == name] for name in FITTED}
    by_name["other"] = [row for row in rows if row["protocol"] not in ("none", "tree", "centralised")]
    fitted = {name: Errors([one for one in some if one["part"] in FITTED_TO]).fit() for name, some in by_name.items()}
    print("FITTED: Final = {", *(f'    "{name}": {values},' for name, values in fitted.items()), "}\n", sep="\n")
    print(HEADING + "\n|" + "---|" * (HEADING.count("|") - 1))
    for name, some in by_name.items():
        cells = check(Errors([one for one in some if one["part"] in HELD_OUT]), *fitted[name])
        print(f"| {name} | " + " | ".join(cells) + " |")


def check(errors: Errors, excess: float, below: float, above: float) -> list[str]:
    """A line of the table: errors and how often the interval holds, first where alpha is not small."""
    residual, scale, small = errors.residual(excess), errors.luck + FLOOR, errors.small_alpha
    inside = (below * scale <= residual) & (residual <= above * scale)
    first, error = (np.expm1(-values[~small, 1]) for values in (errors.log_ratio, residual))
    typical = np.median(scale[~small, 1])
    return [
        per_cent(first.mean()),
        per_cent(error.mean()),
        per_cent(np.abs(error).mean()).lstrip("+"),
        f"{per_cent(np.quantile(error, 0.05))} to {per_cent(np.quantile(error, 0.95))}",
        f"{per_cent(math.expm1(below * typical))} to {per_cent(math.expm1(above * typical))}",
        *(f"{100 * inside[~small, when].mean():.0f} %" for when in (1, 0)),
        per_cent(np.median(np.expm1(-residual[small, 1]))),
        f"{100 * inside[small, 1].mean():.0f} %",
    ]


def paper(names: list[str], horizon: int, replicates: int) -> None:
    """Print simulated regret on the paper's networks, and the error of the estimate."""
    print("| protocol | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for name, protocol in PROTOCOLS.items():
        cells = []
        for network in names:
            if protocol.name == "tree" and network == "dynamic-er":
                cells.append("")
                continue
            problem = bm.Problem.paper(network, seed=0)
            settings = {"horizon": horizon, "replicates": replicates, "record_every": horizon}
            regret = bm.simulate(problem, protocol, seed=0, threads=1, progress=False, **settings).regret[:, -1].mean()
            expected = bm.theory.estimate(problem, protocol, horizon=horizon)
            low, high = expected.interval(horizon)
            outside = "" if low <= regret <= high else " *"
            cells.append(f"{regret:,.0f}, {per_cent(expected.at(horizon) / regret - 1)}{outside}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--networks", default="er,ba,sbm,dynamic-er")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--instances", type=int, default=75)
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    if options.random:
        random(options.rows, options.instances, options.replicates or 16)
    else:
        paper(options.networks.split(","), options.horizon, options.replicates or 4)


if __name__ == "__main__":
    main()
