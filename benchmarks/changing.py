"""Which memory for which world, what sharing and growth are worth there, and whether first pulls should be forced.

The tables of docs/changing.md, as Markdown. A cell is the group regret at the horizon, mean over replicates, with the
standard error of that mean; all cells of a table meet the same worlds and rewards.

python benchmarks/changing.py [--quick] [--only memory,sharing,growth,detectors,first] [--replicates 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import banditmesh as bm

SEED = 0
RATES = (0.0, 0.0005, 0.002, 0.008)
GAMMAS = (0.9, 0.98, 0.99, 0.995, 0.998, 0.999)
ALPHAS = (0.5, 1.0, 3.0)
SENDING = ("none", "irs", "fwa(4)", "flooding(4)")
#: On one line each: who sends less than every pull.
GROWING = ("flooding(4)", "flooding(4)+growth(0.1)", "flooding(4)+growth(0.25)", "flooding(4)+growth(1)", "tree")
PROTOCOLS = (
    "none",
    "irs",
    "gossip(4)",
    "probabilistic(4)",
    "fwa(4)",
    "flooding(4)",
    "flooding(4)+growth(0.25)",
    "tree",
    "centralised",
)
POLICIES = ("ucb(3)", "ucb(1)", "thompson", "klucb")
#: What it is called, the protocol, and the policy, of which algorithms need none.
DETECTING = (
    ("ucb(2)", "flooding(3)", "ucb(2)"),
    ("klucb", "flooding(3)", "klucb"),
    ("klucb+discount(0.995)", "flooding(3)", "klucb+discount(0.995)"),
    ("klucb+window(400)", "flooding(3)", "klucb+window(400)"),
    ("glr-klucb(3)", "glr-klucb(3)", None),
    ("cusum-ucb(3)", "cusum-ucb(3)", None),
    ("m-ucb(3)", "m-ucb(3)", None),
)


@dataclass(frozen=True)
class Size:
    """How long and how often: `quick` is for tests."""

    replicates: int
    quick: bool

    def horizon(self, full: int) -> int:
        return 12 if self.quick else full

    def some(self, values: Sequence[Any]) -> Sequence[Any]:
        return values[:2] if self.quick else values


def cell(values: np.ndarray[Any, Any]) -> str:
    """Mean and standard error."""
    error = f" ± {values.std(ddof=1) / len(values) ** 0.5:,.0f}" if len(values) > 1 else ""
    return f"{values.mean():,.0f}{error}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lines of Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def world(rate: float) -> bm.Problem:
    """The paper's ER network, 7 of 20 arms for each agent, that switch so often."""
    change = f"switching({rate})" if rate else None
    return bm.Problem.random(bm.networks.paper("er"), n_arms=20, per_agent=7, seed=SEED, change=change)


def run(problem: bm.Problem, protocol: str, policy: str | None, horizon: int, replicates: int) -> bm.Result:
    settings = {"horizon": horizon, "replicates": replicates, "seed": SEED, "record_every": horizon}
    # Algorithms choose by themselves, and run on the reference engine.
    engine = "auto" if policy else "reference"
    return bm.simulate(problem, protocol, policy=policy, engine=engine, progress=False, **settings)


def regret(*arguments: Any) -> np.ndarray[Any, Any]:
    return run(*arguments).regret[:, -1]


def measure_memory(size: Size) -> Iterator[str]:
    """Which discount: by the rate of change, how many are heard, and the width of the bonus."""
    horizon = size.horizon(3000)
    for alpha in size.some(ALPHAS):
        policies = [f"ucb({alpha:g})", *(f"ucb({alpha:g})+discount({gamma:g})" for gamma in size.some(GAMMAS))]
        rows = []
        for rate in size.some(RATES):
            for protocol in size.some(SENDING):
                found = [regret(world(rate), protocol, policy, horizon, size.replicates) for policy in policies]
                best = min(range(len(found)), key=lambda k: found[k].mean())
                cells = [f"**{cell(one)}**" if k == best else cell(one) for k, one in enumerate(found)]
                rows.append([f"{rate:g}", protocol, *cells])
        yield f"UCB({alpha:g}), T = {horizon}, {size.replicates} replicates\n"
        yield table(["rate", "protocol", "everything", *(f"{gamma:g}" for gamma in size.some(GAMMAS))], rows) + "\n"


def measure_sharing(size: Size) -> Iterator[str]:
    """What sharing is worth: agents on their own against others, still and changing, with and without forgetting."""
    horizon = size.horizon(3000)
    cases = [(0.0, "ucb(0.5)"), (0.002, "ucb(0.5)"), (0.002, "ucb(0.5)+discount(0.995)")]
    rows = []
    for protocol in size.some([*SENDING, "tree", "centralised"]):
        found = [regret(world(rate), protocol, policy, horizon, size.replicates) for rate, policy in cases]
        rows.append([protocol, *map(cell, found)])
    yield f"UCB(0.5), T = {horizon}, {size.replicates} replicates\n"
    yield table(["protocol", "still", "rate 0.002", "rate 0.002, discount(0.995)"], rows) + "\n"


def measure_growth(size: Size) -> Iterator[str]:
    """What growth costs: regret and transmissions per round, still and changing."""
    horizon = size.horizon(3000)
    cases = [(0.0, "ucb(0.5)"), (0.002, "ucb(0.5)+discount(0.995)")]
    rows = []
    for protocol in size.some(GROWING):
        cells = [protocol]
        for rate, policy in cases:
            result = run(world(rate), protocol, policy, horizon, size.replicates)
            cells += [cell(result.regret[:, -1]), f"{result.messages[:, -1].mean() / horizon:,.0f}"]
        rows.append(cells)
    yield f"UCB(0.5), T = {horizon}, {size.replicates} replicates\n"
    head = ["protocol", "still", "transmissions/round", "rate 0.002, discount(0.995)", "transmissions/round"]
    yield table(head, rows) + "\n"


def measure_detectors(size: Size) -> Iterator[str]:
    """Detectors with shared restarts beside memories, on twelve agents with four of eight coins each."""
    horizon, rates, rows = size.horizon(1500), size.some((0.0, 0.001, 0.004)), []
    for name, protocol, policy in DETECTING:
        results = [run(coins(rate), protocol, policy, horizon, size.replicates) for rate in rates]
        n_bytes = results[-1].traffic["bytes"].mean() / horizon
        rows.append([name, *(cell(one.regret[:, -1]) for one in results), f"{n_bytes:,.0f}"])
    yield f"T = {horizon}, {size.replicates} replicates\n"
    yield table(["", *(f"rate {rate:g}" if rate else "still" for rate in rates), "bytes/round"], rows) + "\n"


def coins(rate: float) -> bm.Problem:
    """A ring of twelve agents with four of eight coins each, that switch so often."""
    change = f"switching({rate}, low=0, high=1)" if rate else None
    laws = [bm.arms.Bernoulli(0.1 + 0.1 * arm) for arm in range(8)]
    problem = bm.Problem(bm.networks.ring(12), bm.arms.uniform_sets(12, 8, 4, seed=SEED), laws)
    return problem.with_change(change) if change else problem


def catalogue(n_agents: int = 111, per_agent: int = 203, n_arms: int = 1000) -> bm.Problem:
    """A made catalogue of coins, most of them poor, many for each agent, on a network of three links an agent."""
    rng = np.random.default_rng(SEED)
    coins = [bm.arms.Bernoulli(float(p)) for p in rng.beta(2.0, 4.0, n_arms)]
    held = [sorted(rng.choice(n_arms, per_agent, replace=False).tolist()) for _ in range(n_agents)]
    return bm.Problem(bm.networks.sparse_er(n_agents, 6.0, seed=SEED), held, coins)


def measure_first(size: Size) -> Iterator[str]:
    """First pulls of each arm against those of unknown arms alone."""
    er = bm.networks.paper("er")
    cases: list[tuple[str, Callable[[], bm.Problem], int]] = [
        ("ER, 20 of 50 arms", lambda: bm.Problem.random(er, 50, 20, SEED), 400),
        ("ER, 20 of 50 arms", lambda: bm.Problem.random(er, 50, 20, SEED), 2000),
        ("ER, 5 of 50 arms", lambda: bm.Problem.random(er, 50, 5, SEED), 400),
        ("111 agents, 203 of 1,000 coins", catalogue, 300),
    ]
    for title, make, full in size.some(cases):
        problem, horizon = make(), size.horizon(full)
        rows = []
        for protocol in size.some(PROTOCOLS):
            cells = [protocol]
            for policy in size.some(POLICIES):
                both = [regret(problem, protocol, one, horizon, size.replicates) for one in (policy, unknown(policy))]
                change = 100 * (both[1] / both[0] - 1)
                cells.append(f"{both[0].mean():,.0f} → {both[1].mean():,.0f} ({percent(change)})")
            rows.append(cells)
        yield f"{title}, T = {horizon}, {size.replicates} replicates\n"
        yield table(["protocol", *size.some(POLICIES)], rows) + "\n"


def unknown(policy: str) -> str:
    """The same policy, whose first pulls listen."""
    name, _, rest = policy.rstrip(")").partition("(")
    return f"{name}({rest + ', ' if rest else ''}first_pulls=unknown)"


def percent(change: np.ndarray[Any, Any]) -> str:
    """A paired change with its standard error."""
    error = f" ± {change.std(ddof=1) / len(change) ** 0.5:.1f}" if len(change) > 1 else ""
    return f"{change.mean():+.1f}{error} %"


SECTIONS: dict[str, Callable[[Size], Iterator[str]]] = {
    "memory": measure_memory,
    "sharing": measure_sharing,
    "growth": measure_growth,
    "detectors": measure_detectors,
    "first": measure_first,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cells and rounds, to see that it runs")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--replicates", type=int, default=3)
    given = parser.parse_args()
    for name in given.only.split(","):
        if name not in SECTIONS:
            parser.error(f"--only must be some of {', '.join(SECTIONS)}; got {name}")
        for text in SECTIONS[name](Size(given.replicates, given.quick)):
            print(text, flush=True)


if __name__ == "__main__":
    main()
