"""What liars cost: the tables of docs/faults.md, as Markdown.

    python benchmarks/liars.py --agents 20 --liars 1,3        blatant lies, by protocol, with and without tested merging
    python benchmarks/liars.py --agents 20 --subtle           lies that shift means a little, from three agents

A cell is the mean regret of an honest agent at the horizon, over the problems: Erdős-Rényi networks of mean degree 5,
16 Gaussian arms with sigma 1 of which each agent has 6, and UCB(1). Liars are spread over the agents' numbers. A subtle
liar adds a shift to what it got of the worse half of its arms, takes it from what it got of the better half,
and plays along: it believes itself, so a tape of rewards does for it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

import banditmesh as bm

#: The protocols, and whether tested merging can be used with them.
PROTOCOLS = (
    ("none", False),
    ("irs+growth(0.25)", True),
    ("gossip(4)+growth(0.25)", True),
    ("fwa(4)+growth(0.25)", True),
    ("flooding(4)+growth(0.25)", True),
    ("fwa(4)", False),
    ("tree+growth(0.25)", False),
    ("centralised", False),
)
LIES = ("worst-is-best", "worst-is-best(claim=1e6)")
SHIFTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def problem_of(n_agents: int, seed: int) -> bm.Problem:
    """A problem with this many agents."""
    network = nx.gnm_random_graph(n_agents, n_agents * 5 // 2, seed=seed)
    return bm.Problem.random(network, n_arms=16, per_agent=6, seed=seed)


def liars_of(n_agents: int, n_liars: int) -> list[int]:
    """Which agents lie."""
    return [n_agents * (2 * place + 1) // (2 * n_liars) for place in range(n_liars)] if n_liars else []


def regret(problem: bm.Problem, protocol: str, liars: Sequence[int], horizon: int, seed: int, **more: Any) -> float:
    """Mean regret of an honest agent."""
    result = bm.simulate(
        problem,
        protocol,
        policy=bm.UCB(1.0),
        horizon=horizon,
        seed=seed,
        engine="reference",
        progress=False,
        **more,
    )
    honest = [agent for agent in range(problem.n_agents) if agent not in liars]
    return float(result.agent_regret[0, honest].mean())


def mean_over(n_problems: int, cost: Any) -> str:
    """A cell."""
    return f"{np.mean([cost(seed) for seed in range(n_problems)]):.0f}"


def blatant(n_agents: int, counts: Sequence[int], horizon: int, n_problems: int, names: Sequence[str]) -> None:
    """Print the table of blatant lies."""
    columns = [(0, "")] + [(n, lie) for n in counts for lie in LIES]
    heads = [
        "no liars",
        *(f"{n}, {'a million claimed' if 'claim' in lie else 'true counts'}" for n, lie in columns[1:]),
    ]
    print(f"| {n_agents} agents | trim |", *(f" {head} |" for head in heads), sep="")
    print("|---|---|" + "---|" * len(heads))
    for protocol, can_trim in PROTOCOLS:
        if names and protocol.split("(")[0].split("+")[0] not in names:
            continue
        for trim in (0, *counts) if can_trim else (0,):
            cells = []
            for n, lie in columns:
                liars = liars_of(n_agents, n)
                faults = bm.Faults(liars=dict.fromkeys(liars, lie)) if liars else None

                def cost(seed: int, liars: Sequence[int] = liars, faults: Any = faults, trim: int = trim) -> float:
                    settings = {"faults": faults, "trim": trim}
                    return regret(problem_of(n_agents, seed), protocol, liars, horizon, seed, **settings)  # noqa: B023

                cells.append(mean_over(n_problems, cost))
            print(f"| `{protocol}` | {trim or '–'} |", *(f" {cell} |" for cell in cells), sep="", flush=True)


def subtle(n_agents: int, n_liars: int, horizon: int, n_problems: int) -> None:
    """Print the table of subtle lies."""
    rows = [
        ("none", 0),
        *((name, trim) for name in ("fwa(4)+growth(0.25)", "flooding(4)+growth(0.25)") for trim in (0, 3)),
    ]
    print(f"| {n_agents} agents, {n_liars} liars | trim |", *(f" {shift:g} |" for shift in SHIFTS), sep="")
    print("|---|---|" + "---|" * len(SHIFTS))
    liars = liars_of(n_agents, n_liars)
    for protocol, trim in rows:
        cells = []
        for shift in SHIFTS:

            def cost(seed: int, shift: float = shift, protocol: str = protocol, trim: int = trim) -> float:
                problem = problem_of(n_agents, seed)
                noise = np.random.default_rng(seed).normal(size=(horizon, n_agents, problem.n_arms))
                tape = noise * np.asarray(problem.sigmas) + np.asarray(problem.means)
                for liar in liars:
                    held = problem.arm_set(liar)
                    worse = held[np.argsort(problem.means[held])][: len(held) // 2]
                    tape[:, liar, held] -= shift
                    tape[:, liar, worse] += 2 * shift
                return regret(problem, protocol, liars, horizon, seed, rewards=tape, means=problem.means, trim=trim)

            cells.append(mean_over(n_problems, cost))
        print(f"| `{protocol}` | {trim or '–'} |", *(f" {cell} |" for cell in cells), sep="", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--liars", default="1,3")
    parser.add_argument("--horizon", type=int, default=1_200)
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--protocols", default="", help="their first words, such as fwa,tree; all unless given")
    parser.add_argument("--subtle", action="store_true")
    given = parser.parse_args()
    began = time.process_time()
    counts = [int(one) for one in given.liars.split(",")]
    if given.subtle:
        subtle(given.agents, max(counts), given.horizon, given.problems)
    else:
        names = [one for one in given.protocols.split(",") if one]
        blatant(given.agents, counts, given.horizon, given.problems, names)
    print(f"\n{given.horizon} rounds, {given.problems} problems, {time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
