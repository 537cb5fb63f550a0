"""Networks from a hundred to a million agents: cost per pull and memory per agent, each in a process of its own."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tables import Column, Row, Section
from timing import in_new_process, wall_time

SIZES = (100, 1_000, 10_000, 100_000)
#: From this size on, threads share a replicate.
SHARED_FROM = 10_000
HORIZON = 100
#: A process repeats its run until about this many pulls are done.
PULLS = 2_000_000
SCRIPT = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import scale; scale.one_size()"


def measure(quick: bool) -> list[Row]:
    if quick:
        return [measure_one("er", 50, 60), measure_one("ba", 200, 20)]
    return [measure_one("er", n, HORIZON) for n in SIZES]


def measure_million() -> list[Row]:
    """The very long part: a million agents, and a network with hubs."""
    return [measure_one("er", 1_000_000, HORIZON), measure_one("ba", 100_000, HORIZON)]


def measure_one(network: str, n_agents: int, horizon: int) -> Row:
    row: Row = in_new_process(SCRIPT, network, n_agents, horizon)
    return row


def one_size() -> None:
    """What the new process does: warm up, make the problem, run it, and print a row."""
    from setting import SEED, least_stages, make_run

    import banditmesh as bm

    network, n_agents, horizon = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    small = bm.Problem.random(bm.networks.sparse_er(60, 3.0, seed=SEED), n_arms=50, per_agent=20, seed=SEED)
    # With and without a plan.
    least_stages(make_run(small, bm.FwA(4), 60), 1)
    least_stages(make_run(small, bm.FwA(4), 10), 1)
    before = peak_bytes()
    if network == "er":
        links = bm.networks.sparse_er(n_agents, 3.0, seed=SEED)
    else:
        links = bm.networks.sparse_ba(n_agents, 2, SEED)
    problem = bm.Problem.random(links, n_arms=50, per_agent=20, seed=SEED)
    n_pulls = n_agents * horizon
    repeats = max(1, min(20, PULLS // n_pulls))
    stages = least_stages(make_run(problem, bm.FwA(4), horizon), repeats)
    peak = peak_bytes()
    speed_up = None
    if SHARED_FROM <= n_agents <= SIZES[-1] and network == "er":
        seconds = [wall_of_rounds(bm, problem, horizon, threads) for threads in (1, 2)]
        speed_up = seconds[0] / seconds[1]
    row = {
        "network": network,
        "n_agents": n_agents,
        "horizon": horizon,
        "planned": stages.planned,
        "setup_ns": 1e9 * stages.setup / n_pulls,
        "rounds_ns": 1e9 * stages.rounds / n_pulls,
        "whole_ns": 1e9 * stages.whole / n_pulls,
        "seconds": stages.whole,
        "speed_up": speed_up,
        "agent_bytes": (peak - before) / n_agents if peak > before else None,
        "peak_gib": peak / 2**30,
    }
    print(json.dumps(row))


def wall_of_rounds(bm: Any, problem: Any, horizon: int, threads: int) -> float:
    """The least seconds by the clock on the wall of a whole replicate on this many threads."""
    settings = {"horizon": horizon, "seed": 0, "engine": "compiled", "threads": threads, "progress": False}
    seconds, _ = wall_time(lambda: bm.simulate(problem, bm.FwA(4), record_every=horizon, **settings), 3)
    return seconds


def peak_bytes() -> int:
    """The most memory that this process has had."""
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


SECTION = Section(
    name="scale",
    title="Scale",
    note=(
        f"FwA, ttl 4, 50 arms, 20 per agent, sound rules, T = {HORIZON}, one replicate, one core, CPU time; each size "
        "in a process of its own. ER networks have mean degree 3, BA newcomers two links. Set-up: packing and making "
        "the plan. Rounds: the simulation alone. Whole: with set-up and counting fates. Two threads: how many times "
        "faster a whole call of simulate() is than with one, by the clock on the wall. Memory per agent: peak less "
        "what the process held before it made the network, empty where it needed no more; peak: the whole process."
    ),
    columns=(
        Column("network", "network"),
        Column("n_agents", "agents", ",d"),
        Column("planned", "by plan"),
        Column("setup_ns", "set-up, ns/pull", ",.0f"),
        Column("rounds_ns", "rounds, ns/pull", ",.0f"),
        Column("whole_ns", "whole, ns/pull", ",.0f"),
        Column("seconds", "whole, seconds", ",.2f"),
        Column("speed_up", "two threads by one", ".2f"),
        Column("agent_bytes", "bytes per agent", ",.0f"),
        Column("peak_gib", "peak, GiB", ".2f"),
    ),
    measure=measure,
)
