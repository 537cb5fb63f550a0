"""What a run costs by its size, what spreads over workers, and what would pass between the parts of a huge network.

Writes the tables of docs/scaling.md between its marks:

    python benchmarks/scaling.py model            cost of runs by a fit, and of runs that were not fitted
    python benchmarks/scaling.py threads          what binds two threads that share a replicate: needs a quiet machine
    python benchmarks/scaling.py workers          Dask and Ray with 1 and 2 workers: needs a quiet machine
    python benchmarks/scaling.py cuts             traffic between parts, see cuts.py
    python benchmarks/scaling.py cuts --print     the same, without changing the document
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cuts
import numba
import numpy as np
from numpy.typing import NDArray
from setting import SEED, make_run, run_stages
from tables import Column, Row, Section, markdown

import banditmesh as bm
from banditmesh.draws import Draws
from banditmesh.machine.executors import open_executor, submit
from banditmesh.protocols.notation import as_protocol
from banditmesh.sim.compiled import plans
from banditmesh.sim.compiled.bitsets import WORD
from banditmesh.sim.compiled.crew import Stop
from banditmesh.sim.compiled.kernels import fate
from banditmesh.sim.compiled.packing import pack, packed_bytes
from banditmesh.sim.compiled.spreading import Spread

DOCUMENT = Path(__file__).parent.parent / "docs" / "scaling.md"


# The cost of a run


@dataclass(frozen=True)
class Size:
    """What a run is measured at; `network` is "er" with mean degree 3 or "ba" with two links a newcomer."""

    network: str
    n_agents: int
    n_arms: int
    per_agent: int
    protocol: str
    horizon: int

    def problem(self) -> bm.Problem:
        links = (
            bm.networks.sparse_er(self.n_agents, 3.0, seed=SEED)
            if self.network == "er"
            else bm.networks.sparse_ba(self.n_agents, 2, SEED)
        )
        return bm.Problem.random(links, n_arms=self.n_arms, per_agent=self.per_agent, seed=SEED)

    def __str__(self) -> str:
        arms = f"{self.per_agent} of {self.n_arms} arms"
        return f"{self.network} {self.n_agents:,}, {arms}, {self.protocol}, T={self.horizon}"


FITTED = (
    Size("er", 100, 50, 20, "fwa(4)", 2000),
    Size("er", 1_000, 50, 20, "fwa(4)", 200),
    Size("er", 10_000, 50, 20, "fwa(4)", 100),
    Size("er", 50_000, 50, 20, "fwa(4)", 60),
    Size("er", 1_000, 200, 100, "fwa(4)", 300),
    Size("er", 1_000, 200, 10, "fwa(6)", 200),
    Size("er", 1_000, 50, 20, "irs", 200),
    Size("er", 10_000, 50, 10, "irs", 100),
    Size("er", 300, 50, 20, "flooding(4)", 500),
    Size("er", 5_000, 50, 20, "flooding(4)", 100),
    Size("ba", 1_000, 50, 20, "fwa(4)", 200),
    Size("ba", 10_000, 50, 20, "fwa(4)", 60),
    Size("ba", 300, 50, 20, "flooding(3)", 500),
)
#: Not fitted: other sizes, ttls and arm sets than above, the last beyond all of them.
HELD_OUT = (
    Size("er", 3_000, 100, 40, "fwa(3)", 150),
    Size("er", 2_000, 50, 20, "flooding(3)", 150),
    Size("ba", 3_000, 100, 20, "fwa(6)", 100),
    Size("er", 20_000, 30, 10, "fwa(4)", 100),
    Size("er", 100_000, 50, 20, "fwa(4)", 60),
)
REPEATS = 3
#: Of what takes this number of bytes, half is far: the rest is in a processor's own caches.
NEAR_BYTES = 2.0**20


def measure_model(quick: bool = False) -> list[Row]:
    """Fit the costs of some runs, and say what the fit gives for others, beside what they took."""
    fitted, held_out = (FITTED[:1] + FITTED[6:8], HELD_OUT[1:2]) if quick else (FITTED, HELD_OUT)
    known = {size: _cost(size, 1 if quick else REPEATS) for size in (*fitted, *held_out)}
    round_fit = _fit([known[size][0] for size in fitted], [known[size][2] for size in fitted])
    setup_fit = _fit([known[size][1] for size in fitted], [known[size][3] for size in fitted])
    rows: list[Row] = []
    for size in (*fitted, *held_out):
        of_rounds, of_setup, rounds, setup, needed = known[size]
        rows.append(
            {
                "run": str(size),
                "fitted": "yes" if size in fitted else "no",
                "rounds": 1e9 * rounds,
                "by_rounds": float(of_rounds @ round_fit / 1e9 / rounds),
                "setup": 1e6 * setup,
                "by_setup": float(of_setup @ setup_fit / 1e9 / setup),
                "bytes": needed,
            }
        )
    formulas = (
        "ns a pull: {:.0f} + {:.2f} p + {:.2f} h + {:.2f} L + ({:.2f} h + {:.2f} L) F".format(*round_fit),
        "set-up, ns an agent: {:,.0f} / N + {:.0f} p + {:.1f} U + {:.1f} U G".format(*setup_fit),
    )
    print(*formulas, sep="\n")
    rows += [{"run": formula} for formula in formulas]
    return rows


def _cost(size: Size, repeats: int) -> tuple[Any, Any, float, float, float]:
    """Features of rounds and set-up; seconds a pull and set-up seconds an agent; planned bytes an agent."""
    run = make_run(size.problem(), as_protocol(size.protocol), size.horizon)
    packed, stop = pack(run), Stop()
    rule = packed.rule(Draws(SEED, 0))
    sampled = plans.sampled_fates(packed, rule, stop)
    learned, sent = float(sampled[fate.HEARD]), float(sampled[fate.SENT])
    outlined = plans.outline(packed, rule, 1, stop)
    assert outlined is not None
    n_bytes = packed_bytes(run) + outlined.n_bytes + Spread.needed_bytes(packed, outlined, stop)
    stages = [run_stages(run) for _ in range(repeats)]
    rounds = min(one.rounds for one in stages) / (size.n_agents * size.horizon)
    setup = min(one.setup for one in stages) / size.n_agents
    p = float(size.per_agent)
    # A search goes over no link twice for any 64 arms.
    assert packed.network is not None
    n_words, n_links = -(-size.n_arms // WORD), len(packed.network.indices)
    searched = min(p * sent, float(n_words * n_links))
    far, far_marks = (n / (n + NEAR_BYTES) for n in (16.0 * len(packed.agents.arms), 32.0 * size.n_agents))
    of_rounds = np.array([1.0, p, rule.reach, learned, rule.reach * far, learned * far])
    of_setup = np.array([1.0 / size.n_agents, p, searched, searched * far_marks])
    return of_rounds, of_setup, rounds, setup, n_bytes / size.n_agents


def _fit(features: Sequence[NDArray[np.float64]], seconds: Sequence[float]) -> NDArray[np.float64]:
    """Costs in ns, none negative, that make the squares of relative errors least."""
    from scipy.optimize import nnls

    wanted = 1e9 * np.array(seconds)
    found, _ = nnls(np.array(features) / wanted[:, None], np.ones(len(wanted)))
    return np.asarray(found, dtype=np.float64)


# What binds two threads


def _stream(first: int, last: int, given: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for i in range(first, last):
        out[i] = 1.5 * given[i]


def _scatter(first: int, last: int, places: NDArray[np.int32], out: NDArray[np.float64]) -> None:
    for i in range(first, last):
        out[places[i], 0] += 1.0
        out[places[i], 1] += 0.5


def _count(first: int, last: int, given: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Arithmetic alone, in registers."""
    total = 0.0
    for i in range(first, last):
        total = total * 0.999 + np.float64(i)
    out[first] = total


def measure_threads(quick: bool = False) -> list[Row]:
    """Loops in numba on one and two threads, and a replicate that two threads share."""
    n = 2**16 if quick else 2**24
    rng = np.random.default_rng(SEED)
    stream, scatter, count = (numba.njit(nogil=True)(loop) for loop in (_stream, _scatter, _count))
    numbers, out, sums = np.ones(n), np.zeros(n), np.zeros((n // 8, 2))
    # A half of the slots for each thread, as in a run.
    places = rng.integers(0, n // 16, n, dtype=np.int32)
    places[n // 2 :] += n // 16
    loops: dict[str, Callable[[int, int], object]] = {
        "arithmetic alone": lambda first, last: count(first, last, numbers, out),
        "stream through memory": lambda first, last: stream(first, last, numbers, out),
        "add to pairs at random places": lambda first, last: scatter(first, last, places, sums),
    }
    rows = []
    for what, loop in loops.items():
        loop(0, 16)
        rows.append(_row(what, n, partial(_side_by_side, loop, n)))
    n_agents, horizon = (20_000, 5) if quick else (100_000, 50)
    problem = Size("er", n_agents, 50, 20, "fwa(4)", horizon).problem()
    settings = {"horizon": horizon, "seed": SEED, "engine": "compiled", "progress": False, "record_every": horizon}
    simulate = partial(bm.simulate, problem, "fwa(4)", **settings)
    what = f"a replicate of {n_agents:,} agents, {horizon} rounds, a pull"
    return [*rows, _row(what, n_agents * horizon, lambda threads: simulate(threads=threads))]


def _row(what: str, n: int, work: Callable[[int], object]) -> Row:
    """What `n` pieces of work take on one and two threads, which take turns: on the wall, and of CPU time."""
    least = np.full((2, 2), np.inf)
    for _ in range(5):
        for place, n_threads in enumerate((1, 2)):
            began = time.perf_counter(), time.process_time()
            work(n_threads)
            took = time.perf_counter() - began[0], time.process_time() - began[1]
            least[place] = np.minimum(least[place], took)
    (one, one_cpu), (two, two_cpu) = 1e9 * least / n
    return {"what": what, "one": one, "two": two, "speed_up": one / two, "cpu": two_cpu / one_cpu}


def _side_by_side(loop: Callable[[int, int], object], n: int, n_parts: int) -> None:
    bounds = plans.part_bounds(n, n_parts)
    crew = [threading.Thread(target=loop, args=(bounds[part], bounds[part + 1])) for part in range(n_parts)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()


# Workers


def measure_workers(quick: bool = False) -> list[Row]:
    """Equal replicates of the reference engine on one and two workers, and tasks that do nothing."""
    problem = bm.Problem.paper("er", seed=SEED)
    n_tasks, horizon, n_empty = (2, 2, 4) if quick else (8, 100, 200)
    rows = []
    for name in ("processes", "dask", "ray"):
        if name == "ray" and find_spec("ray") is None:
            continue
        took: dict[int, tuple[float, float, float]] = {}
        for workers in (1, 2):
            with open_executor(None if name == "processes" else name, workers) as (executor, _):
                replicates = partial(_replicates, executor, problem)
                # Workers import and compile before anything is timed.
                replicates(2 * workers, 2)
                strong = _timed(partial(replicates, n_tasks, horizon))
                weak = _timed(partial(replicates, n_tasks // 2 * workers, horizon))
                empty = _timed(partial(_do_nothing, executor, n_empty))
                took[workers] = strong, weak, empty / n_empty
        (strong, weak, empty), (strong2, weak2, empty2) = took[1], took[2]
        rows.append(
            {
                "on": name,
                "strong": strong,
                "strong2": strong2,
                "strong_by": strong / strong2,
                "weak_by": weak / weak2,
                "empty": 1e3 * empty,
                "empty2": 1e3 * empty2,
            }
        )
    return rows


def _replicates(executor: Executor, problem: bm.Problem, n_tasks: int, horizon: int) -> None:
    bm.simulate(
        problem,
        "fwa(4)",
        horizon=horizon,
        replicates=n_tasks,
        seed=SEED,
        engine="reference",
        workers=executor,
        progress=False,
    )


def _do_nothing(executor: Executor, n_tasks: int) -> None:
    for future in [submit(executor, os.path.basename, "") for _ in range(n_tasks)]:
        future.result()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


SECTIONS = (
    Section(
        name="model",
        title="The cost of a run",
        note="",
        columns=(
            Column("run", "run"),
            Column("fitted", "fitted"),
            Column("rounds", "ns a pull", ",.0f"),
            Column("by_rounds", "fit by measured", ".2f"),
            Column("setup", "set-up, µs an agent", ",.1f"),
            Column("by_setup", "fit by measured", ".2f"),
            Column("bytes", "bytes an agent", ",.0f"),
        ),
        measure=measure_model,
    ),
    Section(
        name="threads",
        title="Two threads",
        note="",
        columns=(
            Column("what", "what"),
            Column("one", "one thread, ns", ",.2f"),
            Column("two", "two threads, ns", ",.2f"),
            Column("speed_up", "times as fast", ".2f"),
            Column("cpu", "CPU time of both by that of one", ".2f"),
        ),
        measure=measure_threads,
    ),
    Section(
        name="workers",
        title="Workers",
        note="",
        columns=(
            Column("on", "on"),
            Column("strong", "8 replicates, 1 worker, s", ".1f"),
            Column("strong2", "2 workers, s", ".1f"),
            Column("strong_by", "times as fast", ".2f"),
            Column("weak_by", "twice the work on 2, efficiency", ".2f"),
            Column("empty", "an empty task, ms", ".2f"),
            Column("empty2", "on 2 workers, ms", ".2f"),
        ),
        measure=measure_workers,
    ),
    cuts.SECTION,
)


def main() -> None:
    """Measure what the command line asks for, and write it into the document."""
    sections = {section.name: section for section in SECTIONS}
    parser = argparse.ArgumentParser(description="What large runs cost, and what would pass between their parts.")
    parser.add_argument("names", nargs="+", choices=list(sections), help="what to measure")
    parser.add_argument("--print", action="store_true", dest="only_print", help="leave the document as it is")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; only prints")
    options = parser.parse_args()
    for name in options.names:
        table = markdown(sections[name], sections[name].measure(options.quick))
        print(f"{table}\n\nload {os.getloadavg()[0]:.1f}", flush=True)
        if not (options.only_print or options.quick):
            write(name, table)


def write(name: str, table: str) -> None:
    """Put a table between its marks in the document."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = DOCUMENT.read_text().partition(begin)
    _, _, after = rest.partition(end)
    DOCUMENT.write_text(f"{before}{begin}\n{table}\n\n{end}{after}")


if __name__ == "__main__":
    main()
