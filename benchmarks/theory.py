"""Clique covers on the paper's ER network: greedy, DSATUR and exact, in time and in value.

python benchmarks/theory.py            the paper's 100 agents, and 250
python benchmarks/theory.py --quick    100 agents and few arms
"""

from __future__ import annotations

import sys
import time

import networkx as nx
from tables import Column, Row, Section, show

import banditmesh as bm
from banditmesh import theory
from banditmesh.theory import covers, weighted
from banditmesh.theory.cliques import neighbour_masks
from banditmesh.theory.delivery import Flow

#: Seconds that one exact cover may take; none of those below comes near it.
LIMIT = 300.0


def rows(quick: bool = False) -> list[Row]:
    """For every instance, protocol and way of covering: seconds and values, over all arms."""
    cases = [("ER, 100 agents", bm.Problem.paper("er", seed=0))]
    if quick:
        cases = [("ER, 100 agents", bm.Problem.random(bm.networks.paper("er"), n_arms=5, per_agent=2, seed=0))]
    else:
        larger = nx.erdos_renyi_graph(250, 3 / 250, seed=1)
        cases.append(("ER, 250 agents", bm.Problem.random(larger, n_arms=50, per_agent=20, seed=0)))
    return [
        measure(name, problem, protocol, method)
        for name, problem in cases
        for protocol in (bm.Flooding(4), bm.FwA(4))
        for method in ("greedy", "dsatur", "exact")
    ]


def measure(name: str, problem: bm.Problem, protocol: bm.Protocol, method: str) -> Row:
    """Covers of all arms by one method."""
    flow = Flow.claimed(problem, protocol)
    arms = [arm for arm in theory.arm_gaps(problem) if arm.suboptimal.size]
    start = time.perf_counter()
    graphs = [neighbour_masks(flow.joined(arm.index, arm.suboptimal)) for arm in arms]
    powers = time.perf_counter() - start
    start = time.perf_counter()
    few = [covers.cover_masks(graph, method, time.monotonic() + LIMIT) for graph in graphs]
    thetas = time.perf_counter() - start
    start = time.perf_counter()
    cheap = [
        weighted.cover_masks(graph, arm.gaps.tolist(), method, time.monotonic() + LIMIT, cliques)
        for graph, arm, (cliques, _) in zip(graphs, arms, few, strict=True)
    ]
    costs = time.perf_counter() - start
    return {
        "instance": name,
        "protocol": protocol.name,
        "cover": method,
        "powers_s": powers,
        "theta_s": thetas,
        "weighted_s": costs,
        "theta": sum(len(cliques) for cliques, _ in few),
        "theta_lower": sum(lower for _, lower in few),
        "delta": sum(len(cliques) / arm.gap_min for (cliques, _), arm in zip(few, arms, strict=True)),
        "weighted": sum(found.cost for found in cheap),
        "weighted_lower": sum(found.lower for found in cheap),
    }


SECTION = Section(
    "theory",
    "Theory: clique covers",
    "Clique covers of all 50 arms, which the regret bounds need: the paper's greedy colouring, DSATUR, and exact with "
    "a proof. Theta is the number of cliques and weighted the sum of 1 / Delta_a, each summed over arms beside a lower "
    "bound; delta is the paper's quantity of Figure 6. The paper's way lists all simple paths for FwA's powers.",
    (
        Column("instance", "instance"),
        Column("protocol", "protocol"),
        Column("cover", "cover"),
        Column("powers_s", "powers, s", ".3f"),
        Column("theta_s", "theta, s", ".2f"),
        Column("weighted_s", "weighted, s", ".2f"),
        Column("theta", "theta", ",d"),
        Column("theta_lower", "at least", ",d"),
        Column("delta", "delta", ",.0f"),
        Column("weighted", "weighted", ",.1f"),
        Column("weighted_lower", "at least", ",.1f"),
    ),
    rows,
)

if __name__ == "__main__":
    show(SECTION, rows("--quick" in sys.argv[1:]))
