"""Replicates of the reference engine side by side: in processes, on an executor, or here if they must."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.lookup import own
from banditmesh.machine.executors import InlineExecutor, open_executor
from banditmesh.policies import Chooser

PROBLEM = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
SETTINGS = {"horizon": 12, "replicates": 4, "seed": 3, "engine": "reference"}
ARRAYS = ("regret", "transmissions", "pulls", "agent_regret", "agent_regret_curve", "link_traffic")


@pytest.fixture(scope="module")
def pool():
    with open_executor(workers=2) as (executor, _):
        yield executor


class Backwards(InlineExecutor):
    """Finishes what it is given last first."""

    def __init__(self):
        self.tasks = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.tasks.append((future, fn, args))
        if len(self.tasks) == SETTINGS["replicates"]:
            for waiting, function, given in reversed(self.tasks):
                waiting.set_result(function(*given))
            self.tasks = []
        return future


@dataclass(frozen=True)
class Locked(bm.UCB):
    """It holds what no process can be sent."""

    lock: object = None
    name = "locked"


class Unready(bm.UCB):
    name = "unready"

    def choose(self, t, estimates, draw):
        raise ZeroDivisionError("of its own making")


def assert_equal(one, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert {name: list(totals) for name, totals in one.traffic.items()} == {
        name: list(totals) for name, totals in other.traffic.items()
    }
    assert one.settings == other.settings


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"replicates": range(2, 6), "policy": bm.ThompsonSampling(), "faults": bm.Faults(loss=0.3, delay=1)},
        {"rewards": np.random.default_rng(0).random((4, 12, 5, 4)), "means": np.full((4, 12, 4), 0.5)},
        {"rules": "published", "rewards": np.random.default_rng(1).random((12, 5, 4)), "means": np.full(4, 0.5)},
    ],
)
def test_processes_and_orders_give_the_same_result(pool, more):
    given = {**SETTINGS, "link_traffic": True, "agents": True, **more}
    alone = bm.simulate(PROBLEM, "flooding(3)", **given)
    for workers in (pool, Backwards(), 1):
        assert_equal(bm.simulate(PROBLEM, "flooding(3)", workers=workers, **given), alone)


def test_changing_arms_and_dynamic_networks_give_the_same_result(pool):
    moving = bm.networks.EdgeMarkovian(bm.networks.ring(5), 0.1, 0.2)
    problem = bm.Problem.random(moving, n_arms=4, per_agent=2, seed=0).with_change("wandering(0.05)")
    # Whoever asks for means keeps a world in the problem.
    problem.means_at(3, seed=3)
    given = {**SETTINGS, "link_traffic": True, "agents": True}
    assert_equal(bm.simulate(problem, "irs", workers=pool, **given), bm.simulate(problem, "irs", **given))


def test_progress_adds_up_and_curves_are_watched(pool):
    seen, watched = [], []
    bm.simulate(
        PROBLEM,
        "irs",
        **SETTINGS,
        workers=pool,
        progress=lambda done, total: seen.append((done, total)),
        watch=lambda rounds, regret, transmissions: watched.append(regret.copy()),
    )
    assert seen == [(12 * k, 48) for k in range(1, 5)]
    assert not np.isnan(watched[-1]).any()


def test_events_are_traced_here_in_order(pool):
    events = []
    bm.simulate(PROBLEM, "irs", **SETTINGS, workers=pool, trace=events.append)
    assert [event.replicate for event in events] == sorted(event.replicate for event in events)
    assert len(events) == 4 * 12 * 10


def test_what_cannot_be_sent_runs_here_and_says_so(pool):
    alone = bm.simulate(PROBLEM, "irs", policy=Locked(lock=None), **SETTINGS)
    with pytest.warns(UserWarning, match="run in this process, one after the other: .*must be picklable") as seen:
        here = bm.simulate(PROBLEM, "irs", policy=Locked(lock=threading.Lock()), **SETTINGS, workers=pool)
    assert np.array_equal(here.regret, alone.regret)
    assert "\n" not in str(seen[0].message)


def test_errors_of_a_replicate_come_as_they_are(pool):
    with pytest.raises(ZeroDivisionError, match="of its own making"):
        bm.simulate(PROBLEM, "irs", policy=Unready(), **SETTINGS, workers=pool)
    with pytest.raises(bm.InputError, match="workers must be an integer of at least 1 and at most 10000, got 0"):
        bm.simulate(PROBLEM, "irs", **SETTINGS, workers=0)


def test_dead_worker_is_one_line():
    class Broken(InlineExecutor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

    class Gone(InlineExecutor):
        def submit(self, fn, /, *args, **kwargs):
            raise BrokenProcessPool("not usable any more")

    for executor in (Broken(), Gone()):
        with pytest.raises(bm.StudyError, match=r"^a worker died, .*ProcessPool.*; run again with fewer workers$"):
            bm.simulate(PROBLEM, "irs", **SETTINGS, workers=executor)


def test_compare_takes_workers():
    with ThreadPoolExecutor(2) as threads:
        for workers in (threads, 1, None):
            table = bm.compare(PROBLEM, ["none", "irs"], **SETTINGS, workers=workers).table()
            assert table["messages"].to_dict() == {"none": 0.0, "irs": 120.0}


def test_packed_value_brings_what_a_script_defines():
    class Mine(bm.Flooding):
        name = "mine"

    class Keeping(Chooser):
        pass

    for value in (Mine(3), Keeping):
        packed = own.Packed(value)
        packed.pack()
        there = packed.unpack()
        assert getattr(there, "ttl", 3) == 3
    assert own.Packed(bm.FwA(2)).unpack() == bm.FwA(2)


SCRIPT = """
import sys, threading, warnings
import banditmesh as bm

class Mine(bm.Flooding):
    name = "mine"

class Refusal(Exception):
    pass

class Stubborn(bm.UCB):
    name = "stubborn"

    def choose(self, t, estimates, draw):
        if t > 5:
            raise Refusal("not any more")
        return 0

problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
given = {"horizon": 12, "replicates": 2, "seed": 3, "engine": "reference"}
one, two = (bm.simulate(problem, Mine(3), workers=workers, **given) for workers in (None, 2))
print("equal", (one.regret == two.regret).all(), one.transmissions[0, -1] == two.transmissions[0, -1])
try:
    bm.simulate(problem, Mine(3), policy=Stubborn(), workers=2, **given)
except bm.InputError as error:
    print("error", error)
print("begun", flush=True)
bm.simulate(problem, Mine(3), **{**given, "horizon": 10_000_000, "record_every": 10_000_000}, workers=2)
"""


def test_script_without_a_guard_keeps_its_classes_and_is_interrupted_at_once(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What runs in a shell's background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        lines = [process.stdout.readline().strip() for _ in range(3)]
        assert lines == ["equal True True", "error a replicate failed with Refusal: not any more", "begun"]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to parent and workers alike
        _, errors = process.communicate(timeout=120)
        assert "KeyboardInterrupt" in errors.splitlines()[-1]
        while is_alive(process.pid):
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def is_alive(group):
    """Whether any process of a session is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
