"""Another process compiles what makes plans, on a machine's first planned run; see also test_kernel_cache."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import banditmesh as bm
from banditmesh.machine import executors
from banditmesh.sim.arguments import read_run
from banditmesh.sim.compiled import planning_beside, warmup
from banditmesh.sim.compiled.kernels import cache
from banditmesh.sim.compiled.kernels.planned import deliver_part
from banditmesh.sim.compiled.kernels.planning import plan_slots

PROBLEM = bm.Problem(bm.networks.er(4, 1.0, seed=0), [[0, 1]] * 4, [bm.arms.Gaussian(0.1 * k, 1.0) for k in range(2)])


def run_of(protocol, **settings):
    return read_run(PROBLEM, protocol, horizon=30, seed=0, **settings)


def test_both_halves_are_compiled_for_the_types_that_runs_have():
    run = run_of(bm.FwA(2), link_traffic=True)
    small = warmup._small(run)
    planning_beside.compile_planning(small)
    planning_beside.compile_rounds(small)
    kernels = (plan_slots, deliver_part, planning_beside.kernels_of(run).plan_rounds)
    compiled = [list(one.signatures) for one in kernels]
    assert bm.simulate(PROBLEM, bm.FwA(2), horizon=30, seed=0, engine="compiled").engine == "compiled"
    bm.simulate(bm.Problem.paper("er"), bm.Flooding(3), horizon=30, seed=0, rules="published", engine="compiled")
    assert [list(one.signatures) for one in kernels] == compiled
    assert all(len(one) == 1 for one in compiled)


@pytest.mark.parametrize(
    ("protocol", "n_cores", "missing", "is_split"),
    [
        (bm.FwA(2), 2, {"plan_slots", "plan_rounds"}, True),
        (bm.FwA(2), 1, {"plan_slots", "plan_rounds"}, False),
        (bm.FwA(2), 2, {"plan_slots"}, False),
        (bm.FwA(2), 2, {"plan_rounds"}, False),
        (bm.FwA(2), 2, set(), False),
        (bm.Gossip(2), 2, {"plan_slots", "plan_rounds"}, False),
        (bm.NoCooperation(), 2, {"plan_slots", "plan_rounds"}, False),
        (bm.TreeAggregation(), 2, {"plan_slots", "plan_rounds"}, False),
    ],
)
def test_work_is_split_only_where_both_halves_are_to_be_compiled(monkeypatch, protocol, n_cores, missing, is_split):
    happened = []

    @contextmanager
    def beside(task, run):
        happened.append("begun")
        yield
        happened.append("ended")

    monkeypatch.setattr(planning_beside, "beside", beside)
    monkeypatch.setattr(planning_beside, "compile_rounds", lambda run: happened.append("rounds"))
    monkeypatch.setattr(planning_beside, "count_cores", lambda: n_cores)
    monkeypatch.setattr(cache, "is_missing", lambda one: one.py_func.__name__.startswith(tuple(missing)))
    with planning_beside.planning_beside(warmup._small(run_of(protocol))):
        happened.append("open")
    assert happened == (["begun", "rounds", "open", "ended"] if is_split else ["open"])


def test_a_kernel_is_missing_until_a_file_of_these_sources_holds_it(tmp_path, monkeypatch):
    files = cache.KernelFiles(tmp_path / "kernels", "total")
    assert files.is_empty()
    (tmp_path / "kernels").mkdir()
    assert files.is_empty()
    (tmp_path / "kernels" / "total.0123.4567.kernel").touch()
    assert files.is_empty()
    files.save("types", "code")
    assert not files.is_empty()
    assert cache.KernelFiles(tmp_path / "kernels", "tot").is_empty()


def write_and_wait(path):
    with open(path, "w") as stream:
        stream.write(str(os.getpid()))
    time.sleep(600)


def test_a_task_beside_ends_with_the_block(tmp_path):
    with executors.beside(write_and_wait, str(tmp_path / "pid")):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        [process] = multiprocessing.active_children()
        assert int((tmp_path / "pid").read_text()) == process.pid
    assert multiprocessing.active_children() == []
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_task_beside_that_cannot_be_sent_is_left_undone(tmp_path):
    with executors.beside(lambda: None):
        assert multiprocessing.active_children() == []


@pytest.mark.parametrize("executable", ["/usr/sbin/server", "", None])
def test_no_other_program_is_started_in_the_place_of_python(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with executors.beside(time.sleep, 600):
        assert multiprocessing.active_children() == []


def test_a_worker_starts_no_process_beside(monkeypatch):
    monkeypatch.setattr(executors, "parent_process", lambda: object())
    with executors.beside(time.sleep, 600):
        assert multiprocessing.active_children() == []


def write_held_signals(path):
    with open(path, "w") as stream:
        stream.write(" ".join(one.name for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())))


def test_a_process_holds_interrupts_back_from_its_first_moment_on(tmp_path):
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    process = executors._Process(target=write_held_signals, args=(str(tmp_path / "held"),))
    process.start()
    process.join()
    assert (tmp_path / "held").read_text() == "SIGINT"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == held


def interrupt_while_held(passed):
    with executors._interrupts_held():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        passed.append("the end")


def test_an_interrupt_that_another_thread_takes_waits_too():
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # What runs in a shell's background ignores it.
    ends, passed = threading.Event(), []
    other = threading.Thread(target=ends.wait)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt_while_held(passed)
        assert passed == ["the end"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        ends.set()
        other.join()
        signal.signal(signal.SIGINT, usual)
