"""Every number of the article: computes them and writes numbers.tex, which article.tex reads.

python docs/theory/paper/make_numbers.py [PART ...]

Without arguments all parts are computed, in about seven minutes on one quiet core; with arguments those alone, and
the others are kept. Parts are the functions of PARTS, each of which gives macros: names, and what they stand for.
The part `hand` takes no time; tests/test_article.py compares it with numbers.tex.
"""

from __future__ import annotations

import math
import re
import string
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import networkx as nx
import numpy as np

import banditmesh as bm
from banditmesh.paper import published
from banditmesh.paper.reproduction import paper_protocols
from banditmesh.theory import concentration
from banditmesh.theory.traffic import traffic_bounds

FILE = Path(__file__).with_name("numbers.tex")
MACRO = re.compile(r"^\\newcommand\{\\(\w+)\}\{(.*)\}$")
NETWORKS = {"er": "ER", "ba": "BA", "sbm": "SBM"}
INSTANCES = 10
DENSITY_INSTANCES = 4
#: Which agents hear each other in the runs of `slopes`: everyone has the same two arms.
HEARING = {
    "one agent": (nx.empty_graph(1), bm.NoCooperation()),
    "cycle $C_5$": (nx.cycle_graph(5), bm.IRS()),
    "cycle $C_6$": (nx.cycle_graph(6), bm.IRS()),
    "cycle $C_7$": (nx.cycle_graph(7), bm.IRS()),
    "cycle $C_7$, $\\gamma=2$": (nx.cycle_graph(7), bm.Flooding(2)),
    "Petersen graph": (nx.petersen_graph(), bm.IRS()),
    "star, 5 leaves": (nx.star_graph(5), bm.IRS()),
}
LEAVES = 5


def whole(value: float) -> str:
    """A whole number, with thin separators of thousands."""
    return f"{value:,.0f}".replace(",", "{,}")


def rows(cells: Iterable[Iterable[str]]) -> str:
    """The rows of a table."""
    return " ".join(" & ".join(row) + r" \\" for row in cells)


def spread(values: np.ndarray) -> str:
    """Mean and standard deviation."""
    return rf"${whole(values.mean())}\pm{whole(values.std(ddof=1))}$"


def gaussian(sigma: float, **means: float) -> dict[str, bm.arms.Gaussian]:
    """Gaussian arms by name."""
    return {name: bm.arms.Gaussian(mean, sigma) for name, mean in means.items()}


def long_path(n_agents: int) -> bm.Problem:
    """Agent 0 has two arms 0.1 apart, every other agent a private arm; sigma is 10."""
    arms = gaussian(10.0, good=0.1, bad=0.0) | {v: bm.arms.Gaussian(0.5, 10.0) for v in range(1, n_agents)}
    return bm.Problem(nx.path_graph(n_agents), [["good", "bad"], *([v] for v in range(1, n_agents))], arms)


def same_arms(network: nx.Graph) -> bm.Problem:
    """The same two arms at gap 1 for everyone, sigma 0.5."""
    return bm.Problem(network, [[0, 1]] * len(network), [bm.arms.Gaussian(mean, 0.5) for mean in (1.0, 0.0)])


def two_agents() -> bm.Problem:
    """Arm a is suboptimal for one agent and the best arm of its neighbour."""
    return bm.Problem(nx.path_graph(2), [["a", "b"], ["a", "c"]], gaussian(1.0, a=0.5, b=1.0, c=0.0))


def run(problem: bm.Problem, protocol: bm.AnyProtocol, **settings: object) -> bm.Result:
    """A simulation on one core, seed 0."""
    return bm.simulate(problem, protocol, seed=0, threads=1, progress=False, **settings)


def slope(result: bm.Result) -> tuple[float, float]:
    """Of regret against log T between the first and the last record: mean and standard error."""
    found = (result.regret[:, -1] - result.regret[:, 0]) / math.log(result.rounds[-1] / result.rounds[0])
    return found.mean(), found.std(ddof=1) / math.sqrt(len(found))


def hand() -> dict[str, str]:
    """What takes no time: the counterexamples, bounds of small graphs, and counts that depend on networks alone."""
    horizon, alpha, sigma, ttl, gap = 100_000, 2.0, 10.0, 999, 0.1
    parts = (
        4 * alpha / gap * math.log(horizon),
        concentration.published(alpha, sigma, ttl) * gap,
        gap * min(2 * ttl, 4 * alpha * math.log(horizon) / gap**2),
    )
    sure = bm.Problem(
        nx.path_graph(2),
        [["good", "bad"], [1]],
        gaussian(1e-6, good=1000.0, bad=0.0) | {1: bm.arms.Gaussian(0.0, 1e-6)},
    )
    free = bm.bounds(two_agents(), bm.IRS(), alpha=2.1)
    apart = bm.Problem(nx.path_graph(2), [["a", "c"], ["b", "c"]], gaussian(0.1, a=1.0, b=0.1, c=0.0))
    alone, both = (
        bm.bounds(apart, protocol).per_arm.set_index("arm").loc["c"] for protocol in (bm.NoCooperation(), bm.IRS())
    )
    negative = bm.bounds(
        bm.Problem(nx.path_graph(2), [["a", "b"]] * 2, gaussian(1.0, a=1.0, b=0.0)), bm.IRS(), alpha=1.2
    )
    small = {}
    for letter, (name, (network, protocol)) in zip(string.ascii_uppercase, HEARING.items(), strict=False):
        found = bm.bounds(same_arms(network), protocol, alpha=1.0)
        sizes = found.constant_least, found.constant_sharp, found.constant / 4
        small[f"nSmall{letter}"] = " & ".join((name, f"{sizes[0]:.2f}", f"{sizes[1]:.0f}", f"{sizes[2]:.0f}"))
    floods = {name: traffic_bounds(bm.Problem.paper(name, seed=0), bm.Flooding(4), 1000) for name in NETWORKS}
    return {
        "nPathMain": whole(parts[0]),
        "nPathLuck": whole(parts[1]),
        "nPathDelay": whole(parts[2]),
        "nPathBound": whole(sum(parts)),
        "nPathConstant": whole(4 * alpha / gap),
        "nPathLeast": whole(2 * sigma**2 / gap),
        "nPathPower": f"{1 - alpha / (2 * sigma**2):.2f}",
        "nSureBound": whole(bm.bounds(sure, bm.Flooding(1), alpha=10.0, horizon=2).upper_published),
        "nNegativeBound": whole(negative.upper_published),
        "nFreeStated": f"{free.lower_published:g}",
        "nFreeSharp": f"{free.constant_sharp:g}",
        "nFreeLower": f"{free.lower_corrected:g}",
        "nFreeTightened": f"{free.constant_tightened:g}",
        "nGapsApart": f"{alone['weighted']:g}",
        "nGapsTogether": f"{2 / 0.1 - 1 / 1.0:g}",
        "nGapsIndependent": f"{both['independent']:g}",
        "nTrafficRows": rows(
            (label, whole(floods[name].published), whole(floods[name].corrected), whole(floods[name].within_ttl))
            for name, label in NETWORKS.items()
        ),
        **small,
    }


def counterexamples() -> dict[str, str]:
    """Simulated regret where the published bounds fail."""
    stated = bm.bounds(long_path(1000), bm.Flooding(999), alpha=2.0, horizon=100_000).upper_published
    assert whole(stated) == hand()["nPathBound"]
    settings = {"horizon": 100_000, "record_every": 10_000}
    last = run(long_path(1), bm.NoCooperation(), policy=bm.UCB(2.0), replicates=200, **settings).regret[:, -1]
    mean, error = slope(run(two_agents(), bm.IRS(), policy=bm.UCB(2.1), replicates=100, **settings))
    return {
        "nPathRegret": whole(last.mean()),
        "nPathRegretError": whole(last.std(ddof=1) / math.sqrt(len(last))),
        "nFreeSlope": f"{mean:.1f}",
        "nFreeSlopeError": f"{error:.1f}",
    }


def constants() -> dict[str, str]:
    """The paper's networks: what stands in front of alpha log T, and bounds at T = 1000 beside measured regret."""
    found, finite, gains, brackets = [], [], [], []
    for name, label in NETWORKS.items():
        problem = bm.Problem.paper(name, seed=0)
        for told, protocol in (("IRS", bm.IRS()), ("FwA(4)", bm.FwA(4)), ("Flooding(4)", bm.Flooding(4))):
            bounds = bm.bounds(problem, protocol)
            sums = bounds.per_arm[["weighted", "independent", "sharp", "ucb_lower"]].sum()
            found.append((label, told, *map(whole, sums)))
            gains.append(100 * (1 - sums["independent"] / sums["weighted"]))
            brackets.append(sums["sharp"] / sums["ucb_lower"])
            if name == "er":
                finite.append((told, *_at_thousand(problem, protocol, bounds)))
    problem = bm.Problem.paper("er", seed=0)
    finite.append(("Flooding(8)", *_at_thousand(problem, bm.Flooding(8), bm.bounds(problem, bm.Flooding(8)))))
    return {
        "nConstantRows": rows(found),
        "nFiniteRows": rows(finite),
        "nGainLeast": f"{min(gains):.0f}",
        "nGainMost": f"{max(gains):.0f}",
        "nBracketLeast": f"{min(brackets):.1f}",
        "nBracketMost": f"{max(brackets):.1f}",
    }


def _at_thousand(problem: bm.Problem, protocol: bm.AnyProtocol, bounds: bm.Bounds) -> list[str]:
    regret = run(problem, protocol, horizon=1000, replicates=10, record_every=1000).regret[:, -1]
    values = (bounds.upper_published, bounds.upper_corrected, bounds.upper_sharp, bounds.trivial, regret.mean())
    return [*map(whole, values), whole(bounds.upper_gap_free), whole(bounds.lower_gap_free)]


def slopes() -> dict[str, str]:
    """Simulated slopes on small graphs."""
    macros: dict[str, str] = {}
    distances: list[float] = []
    for letter, (network, protocol) in zip(string.ascii_uppercase, HEARING.values(), strict=False):
        settings = {"horizon": 200_000, "record_every": 20_000, "replicates": 20}
        mean, error = slope(run(same_arms(network), protocol, policy=bm.UCB(1.0), **settings))
        macros[f"nSlope{letter}"] = rf"${mean:.2f}\pm{error:.2f}$"
        distances.append(abs(mean - bm.bounds(same_arms(network), protocol, alpha=1.0).constant_sharp) / error)
    return macros | {"nSlopeFarthest": f"{max(distances):.1f}"}


def star() -> dict[str, str]:
    """Leaves that copy the centre's last pull: the slope of the group's regret, as in `slopes`."""
    horizon, replicates, alpha, sigma = 200_000, 100, 1.0, 0.5
    generator = np.random.default_rng(0)
    means, each = np.array([1.0, 0.0]), np.arange(replicates)
    counts, sums = np.zeros((replicates, 2)), np.zeros((replicates, 2))
    regret, first = np.zeros(replicates), np.zeros(replicates)
    before = np.zeros(replicates, dtype=int)  # what leaves pull: at first the first arm
    for t in range(1, horizon + 1):
        if t <= 2:
            chosen = np.full(replicates, t - 1)
        else:
            chosen = (sums / counts + np.sqrt(alpha * math.log(t) / counts)).argmax(axis=1)
        for arms, n in ((chosen, 1), (before, LEAVES)):
            counts[each, arms] += n
            sums[each, arms] += n * means[arms] + sigma * math.sqrt(n) * generator.standard_normal(replicates)
            regret += n * (1.0 - means[arms])
        before = chosen
        if t == horizon // 10:
            first = regret.copy()
    found = (regret - first) / math.log(10)
    error = found.std(ddof=1) / math.sqrt(replicates)
    return {"nStarSlope": f"{found.mean():.2f}", "nStarSlopeError": f"{error:.2f}"}


def messages() -> dict[str, str]:
    """Growth and trees on the paper's ER network, as far as messages reach."""
    problem = bm.Problem.paper("er", seed=0)
    cases = {
        "Flooding(8), every pull": bm.Flooding(8),
        "Flooding(8), growth $f=1/4$": bm.Flooding(8, emission=bm.Growth(0.25)),
        "tree, growth $f=1/20$": bm.TreeAggregation(),
    }
    told = []
    for name, protocol in cases.items():
        bounds = bm.bounds(problem, protocol)
        short, long = (run(problem, protocol, horizon=n, replicates=10, record_every=n) for n in (1000, 10_000))
        counts = [getattr(result, what)[:, -1].mean() for what in ("messages", "regret") for result in (short, long)]
        told.append((name, whole(bounds.constant_sharp), *map(whole, counts)))
    flood = bm.bounds(problem, bm.Flooding(8))
    return {
        "nMessageRows": rows(told),
        "nDiameterConstant": whole(flood.constant_sharp),
        "nDiameterLower": whole(flood.lower_corrected),
        "nDiameterClique": whole(flood.constant),
    }


def reproduction() -> dict[str, str]:
    """Section 6 of the published paper by both rule sets, over arm instances."""
    protocols = {
        name: protocol for name, protocol in paper_protocols().items() if name in ("probabilistic", "fwa", "flooding")
    }
    labels = {"probabilistic": "Prob. Flooding", "fwa": "FwA", "flooding": "Flooding"}
    told, wins, distances = [], [], []
    for network, label in NETWORKS.items():
        problems = [bm.Problem.paper(network, seed=seed) for seed in range(INSTANCES)]
        means: dict[tuple[str, str], np.ndarray] = {}
        for name, protocol in protocols.items():
            cells = [
                label,
                labels[name],
                rf"${whole(published.REGRET[network][name][0])}\pm{published.REGRET[network][name][1]}$",
            ]
            sent = [whole(published.MESSAGES[network][name][0])]
            for rules in ("published", "sound"):
                results = [
                    run(problem, protocol, replicates=10, rules=rules, record_every=1000) for problem in problems
                ]
                means[name, rules] = np.array([result.regret[:, -1].mean() for result in results])
                cells.append(spread(means[name, rules]))
                sent.append(whole(np.mean([result.transmissions[:, -1].mean() for result in results])))
            told.append((*cells, *sent))
            ours = means[name, "published"]
            distances.append(abs(published.REGRET[network][name][0] - ours.mean()) / ours.std(ddof=1))
        excess = [
            means["fwa", rules].mean() / means["probabilistic", rules].mean() - 1 for rules in ("published", "sound")
        ]
        wins.append((label, *(rf"${100 * value:+.0f}\,\%$" for value in excess)))
    return {
        "nInstances": str(INSTANCES),
        "nFarthest": f"{max(distances):.1f}",
        "nReproductionRows": rows(told),
        "nExcessRows": rows(wins),
    }


def densities() -> dict[str, str]:
    """Figure 6: regret against delta, each protocol's regret under its own name and under the other's."""
    protocols = {"flooding": bm.Flooding(4), "fwa": bm.FwA(4)}
    fits: dict[tuple[str, str], list[float]] = {(x, y): [] for x in protocols for y in protocols}
    for seed in range(DENSITY_INSTANCES):
        delta: dict[str, list[float]] = {name: [] for name in protocols}
        regret: dict[str, list[float]] = {name: [] for name in protocols}
        for degree in published.DEGREES:
            network = nx.erdos_renyi_graph(100, degree / 100, seed=published.DENSITY_SEED)
            problem = bm.Problem.random(network, n_arms=50, per_agent=20, seed=seed)
            for name, protocol in protocols.items():
                result = run(problem, protocol, replicates=10, rules="published", record_every=1000)
                delta[name].append(bm.theory.delta(problem, protocol, cover="greedy"))
                regret[name].append(result.regret[:, -1].mean())
        for x, y in fits:
            fits[x, y].append(np.corrcoef(delta[x], regret[y])[0, 1] ** 2)
    names = {"flooding": "Flooding", "fwa": "Fwa"}
    macros = {f"nFit{names[x]}{names[y]}": f"{min(found):.3f}--{max(found):.3f}" for (x, y), found in fits.items()}
    stated = {"nFitStatedFlooding": "flooding", "nFitStatedFwa": "fwa"}
    return (
        macros
        | {key: f"{published.R_SQUARED[name]}" for key, name in stated.items()}
        | {"nFitInstances": str(DENSITY_INSTANCES)}
    )


PARTS: dict[str, Callable[[], dict[str, str]]] = {
    part.__name__: part for part in (hand, counterexamples, constants, slopes, star, messages, reproduction, densities)
}


def read() -> dict[str, str]:
    """What numbers.tex says."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {match[1]: match[2] for match in map(MACRO.match, lines) if match}


def main(names: list[str]) -> None:
    """Compute these parts, or all, and write the file."""
    if unknown := set(names) - set(PARTS):
        sys.exit(f"parts must be of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    macros = read() if names else {}
    for name in names or PARTS:
        start = time.process_time()
        macros |= PARTS[name]()
        print(f"{name}: {time.process_time() - start:.0f} s", flush=True)
        lines = [rf"\newcommand{{\{key}}}{{{value}}}" for key, value in sorted(macros.items())]
        head = "% Written by make_numbers.py: do not edit."
        FILE.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
