"""The compiled engine against a plain C loop over the same plan (plan_loop.c)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from setting import SEED, make_run
from tables import Column, Row, Section
from timing import cpu_time

import banditmesh as bm
from banditmesh.draws import REWARD, Draws
from banditmesh.sim.compiled import plans
from banditmesh.sim.compiled.crew import Stop
from banditmesh.sim.compiled.engine import kernels_of
from banditmesh.sim.compiled.kernels.layout import UNIT, Plan
from banditmesh.sim.compiled.packing import Packed, pack
from banditmesh.sim.compiled.quiet import Quiet
from banditmesh.sim.compiled.replicates import Replicate
from banditmesh.sim.compiled.spreading import Spread

SOURCE = Path(__file__).with_name("plan_loop.c")
# Neither side may fuse products and sums, and neither sets errno: only so are the two held to the same arithmetic.
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno")
# No such bounds, and rewards that cost nothing: its results are others.
FREE_FLAGS = ("-O3", "-march=native", "-ffast-math", "-DNOISE_AHEAD")


def measure(quick: bool) -> list[Row]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return [{"missing": "there is no C compiler on this machine"}]
    horizon, repeats = (60, 2) if quick else (1000, 40)
    problem = bm.Problem.paper("er", seed=SEED)
    with tempfile.TemporaryDirectory() as folder:
        program, free_program = Path(folder) / "plan_loop", Path(folder) / "free_loop"
        for flags, made in ((FLAGS, program), (FREE_FLAGS, free_program)):
            subprocess.run([compiler, *flags, str(SOURCE), "-o", str(made), "-lm"], check=True)
        return [
            compare(problem, protocol, horizon, repeats, program, free_program)
            for protocol in (bm.NoCooperation(), bm.IRS(), bm.FwA(4), bm.Flooding(4))
        ]


def compare(
    problem: bm.Problem, protocol: bm.Protocol, horizon: int, repeats: int, program: Path, free_program: Path
) -> Row:
    """All loops over one plan, and the engine's whole call."""
    run = make_run(problem, protocol, horizon)
    packed = pack(run)
    rule = packed.rule(Draws(SEED, 0))
    stop = Stop()
    outline = plans.outline(packed, rule, 1, stop)
    plan = plans.build(packed, rule, outline, 1, stop) if outline is not None else None
    kernels = kernels_of(run)

    def loop() -> Replicate:
        one = Quiet(packed, kernels, 0, None, stop) if plan is None else Spread(packed, kernels, 0, plan, stop)
        one.advance(horizon + 1)
        return one

    def whole_call() -> bm.Result:
        return bm.simulate(problem, protocol, horizon=horizon, seed=SEED, engine="compiled", threads=1)

    loop()
    engine_seconds, _ = cpu_time(loop, repeats)
    call_seconds, result = cpu_time(whole_call, repeats)
    c_seconds, regret, transmissions, pulls = run_c(program, packed, plan, repeats)
    free_seconds, *_ = run_c(free_program, packed, plan, repeats)
    pulled = result.pulls[0][np.repeat(np.arange(problem.n_agents), np.diff(problem.arm_offsets)), problem.arm_indices]
    agrees = (regret, transmissions, pulls) == (result.regret[0, -1], result.transmissions[0, -1], hash_of(pulled))
    if not agrees:
        raise RuntimeError(f"the C loop and the engine must agree under {protocol.name}, and they do not")
    n_pulls = horizon * problem.n_agents
    return {
        "protocol": protocol.name,
        "c_ns": 1e9 * c_seconds / n_pulls,
        "engine_ns": 1e9 * engine_seconds / n_pulls,
        "ratio": engine_seconds / c_seconds,
        "free_ns": 1e9 * free_seconds / n_pulls,
        "free_ratio": engine_seconds / free_seconds,
        "call_ns": 1e9 * call_seconds / n_pulls,
        "call_ratio": call_seconds / c_seconds,
        "equal": agrees,
    }


def run_c(program: Path, packed: Packed, plan: Plan | None, repeats: int) -> tuple[float, float, int, int]:
    """Seconds, group regret, transmissions and the hash of the pulls, as the C program finds them."""
    path = program.with_name("plan.bin")
    write_plan(path, packed, plan, repeats)
    done = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=True)
    seconds, regret, transmissions, pulls = done.stdout.split()
    return float(seconds), float.fromhex(regret), int(transmissions), int(pulls)


def write_plan(path: Path, packed: Packed, plan: Plan | None, repeats: int) -> None:
    """Problem and plan as the C program reads them: ten numbers, then arrays, each filled up to eight bytes."""
    run, agents = packed.run, packed.agents
    n_agents, n_slots, ttl = run.problem.n_agents, len(agents.arms), packed.traits.reach
    if plan is None:
        plan = plans.make_plan(n_slots, ttl)
    arrays: list[np.ndarray] = [
        agents.offsets.astype(np.int64),
        agents.arms.astype(np.int32),
        run.problem.arm_gaps.astype(np.float64),
        packed.laws.a[0].astype(np.float64),
        packed.laws.b[0].astype(np.float64),
        np.array([bm.UCB.clock(t, run.policies[0].parameter) for t in range(1, run.horizon + 1)]),
        UNIT * plan.records[:, 0].astype(np.int64),
        plan.records[:, 1 : 1 + ttl].astype(np.int32),
        plan.records[:, 1 + ttl :].astype(np.int32),
        plan.learners.astype(np.int32),
    ]
    header = np.array(
        [
            n_agents,
            run.problem.n_arms,
            n_slots,
            plan.learners.size,
            ttl,
            run.horizon,
            packed.most_arms,
            *Draws(run.seed, 0).key(REWARD),
            repeats,
        ],
        dtype=np.int64,
    )
    with path.open("wb") as file:
        for array in [header, *arrays]:
            data = array.tobytes()
            file.write(data + bytes(-len(data) % 8))


def hash_of(pulls: np.ndarray) -> int:
    """The C program's hash of pull counts."""
    value = 0
    for count in pulls.tolist():
        value = (31 * value + count) % 2**64
    return value


SECTION = Section(
    name="c",
    title="The compiled engine against a plain C loop",
    note=(
        "The paper's ER network, sound rules, T = 1000, one replicate, one core, CPU time, least of up to 40 repeats. "
        f"The C program (plan_loop.c, cc {' '.join(FLAGS)}) reads the engine's own plan and does the same work; "
        "regret, transmissions and pulls are equal to the last bit. Free C loop: the same program with fast-math, its "
        "rewards drawn before the clock runs; its results are others. Loop: the rounds alone, on both sides. "
        "Call: all of simulate(), which also makes the plan, counts fates and assembles the result."
    ),
    columns=(
        Column("protocol", "protocol"),
        Column("c_ns", "C loop, ns/pull", ",.0f"),
        Column("engine_ns", "engine loop, ns/pull", ",.0f"),
        Column("ratio", "engine loop / C loop", ".2f"),
        Column("free_ns", "free C loop, ns/pull", ",.0f"),
        Column("free_ratio", "engine loop / free C loop", ".2f"),
        Column("call_ns", "simulate(), ns/pull", ",.0f"),
        Column("call_ratio", "simulate() / C loop", ".2f"),
        Column("equal", "results equal"),
    ),
    measure=measure,
)
