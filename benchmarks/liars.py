"""What liars cost: the tables of docs/faults.md, as Markdown.

    python benchmarks/liars.py --agents 20 --liars 1,3        blatant lies, by protocol, with and without tested merging
    python benchmarks/liars.py --agents 20 --plausible        lies that are made to be believed
    python benchmarks/liars.py --agents 20 --subtle           lies that shift means a little, from three agents
    python benchmarks/liars.py --distance --horizon 600       one liar of 40, near and far, of arms that few or all have

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
LIES = {"true counts": "worst-is-best", "a million claimed": "worst-is-best(claim=1e6)"}
SHIFTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def problem_of(n_agents: int, seed: int, degree: float = 5.0, per_agent: int = 6) -> bm.Problem:
    """A problem with this many agents."""
    return bm.Problem.random(network_of(n_agents, seed, degree), n_arms=16, per_agent=per_agent, seed=seed)


def network_of(n_agents: int, seed: int, degree: float = 5.0) -> nx.Graph:
    """An Erdős-Rényi network of this mean degree."""
    return nx.gnm_random_graph(n_agents, int(n_agents * degree / 2), seed=seed)


def liars_of(n_agents: int, n_liars: int) -> list[int]:
    """Which agents lie."""
    return [n_agents * (2 * place + 1) // (2 * n_liars) for place in range(n_liars)] if n_liars else []


def regret(problem: bm.Problem, protocol: str, liars: Sequence[int], horizon: int, seed: int, **more: Any) -> float:
    """Mean regret of an honest agent."""
    honest = [agent for agent in range(problem.n_agents) if agent not in liars]
    return float(regrets(problem, protocol, horizon, seed, **more)[honest].mean())


def regrets(problem: bm.Problem, protocol: str, horizon: int, seed: int, **more: Any) -> Any:
    """The regret of each agent."""
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
    return result.agent_regret[0]


def mean_over(n_problems: int, cost: Any) -> str:
    """A cell."""
    found = [cost(seed) for seed in range(n_problems)]
    if n_problems == 1:
        return f"{found[0]:.0f}"
    return f"{np.mean(found):.1f} ± {np.std(found, ddof=1) / n_problems**0.5:.1f}"


def blatant(n_agents: int, counts: Sequence[int], horizon: int, n_problems: int, names: Sequence[str]) -> None:
    """Print the table of blatant lies."""
    columns = [(0, "")] + [(n, lie) for n in counts for lie in LIES.values()]
    heads = ["no liars", *(f"{n}, {words}" for n in counts for words in LIES)]
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


def plausible(n_agents: int, counts: Sequence[int], horizon: int, n_problems: int, names: Sequence[str]) -> None:
    """Print the table of plausible lies."""
    print("| agents | protocol | trim | no liars |", *(f" {n} |" for n in counts), sep="")
    print("|---|---|---|---|" + "---|" * len(counts))
    for protocol in ("fwa(4)+growth(0.25)", "flooding(4)+growth(0.25)"):
        if names and protocol.split("(")[0] not in names:
            continue
        for trim in (0, *counts):
            cells = []
            for n in (0, *counts):
                liars = liars_of(n_agents, n)
                settings = {"trim": trim, "faults": bm.Faults(liars=dict.fromkeys(liars, "plausible"))}

                def cost(seed: int, liars: Sequence[int] = liars, settings: Any = settings) -> float:
                    return regret(problem_of(n_agents, seed), protocol, liars, horizon, seed, **settings)  # noqa: B023

                cells.append(mean_over(n_problems, cost))
            print(
                f"| {n_agents} | `{protocol}` | {trim or '–'} |", *(f" {cell} |" for cell in cells), sep="", flush=True
            )


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


def by_distance(horizon: int, n_problems: int, liar: int = 5) -> None:
    """Print what one liar of 40 on sparse networks adds to the regret of others, near and far."""
    protocols = ("fwa(4)+growth(0.25)", "flooding(4)+growth(0.25)")
    columns = [(lie, trim, one) for lie, trim in ((LIES["a million claimed"], 0), ("plausible", 0), ("plausible", 1))
               for one in protocols]  # fmt: skip
    heads = [f"`{one.split('+')[0]}`, `{lie}`{', `trim=1`' * trim}" for lie, trim, one in columns]
    print("| arms each, of 16 | distance |", *(f" {head} |" for head in heads), sep="")
    print("|---|---|" + "---|" * len(heads))
    for per_agent in (2, 6, 16):
        added: list[tuple[list[float], list[float]]] = [([], []) for _ in columns]
        for seed in range(n_problems):
            problem = problem_of(40, seed, degree=2.5, per_agent=per_agent)
            away = nx.single_source_shortest_path_length(network_of(40, seed, degree=2.5), liar)
            for (lie, trim, protocol), (near, far) in zip(columns, added, strict=True):
                honest = regrets(problem, protocol, horizon, seed, trim=trim)
                faults = bm.Faults(liars={liar: lie})
                more = regrets(problem, protocol, horizon, seed, trim=trim, faults=faults) - honest
                near += [more[agent] for agent, hops in away.items() if hops == 1]
                far += [more[agent] for agent, hops in away.items() if 2 <= hops <= 4]
        for words, place in (("1", 0), ("2 to 4", 1)):
            cells = [f" {np.mean(cell[place]):.0f} |" for cell in added]
            print(f"| {per_agent} | {words} |", *cells, sep="", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--liars", default="1,3")
    parser.add_argument("--horizon", type=int, default=1_200)
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--protocols", default="", help="their first words, such as fwa,tree; all unless given")
    parser.add_argument("--plausible", action="store_true")
    parser.add_argument("--subtle", action="store_true")
    parser.add_argument("--distance", action="store_true")
    given = parser.parse_args()
    began = time.process_time()
    counts = [int(one) for one in given.liars.split(",")]
    if given.distance:
        by_distance(given.horizon, given.problems)
    elif given.subtle:
        subtle(given.agents, max(counts), given.horizon, given.problems)
    else:
        names = [one for one in given.protocols.split(",") if one]
        table = plausible if given.plausible else blatant
        table(given.agents, counts, given.horizon, given.problems, names)
    print(f"\n{given.horizon} rounds, {given.problems} problems, {time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
