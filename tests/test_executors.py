"""Clusters: a Dask scheduler and workers as separate processes over loopback, and Ray where it is installed."""

import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor
from types import ModuleType

import pytest

import banditmesh as bm
from banditmesh.machine.executors import InlineExecutor, RayExecutor, open_executor
from studies import ENVIRONMENT, SPEC, assert_same

MINE = """
import banditmesh as bm


class Shy(bm.Protocol):
    name = "shy"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.STOP
"""
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    return bm.run_study(bm.parse_spec(SPEC), tmp_path_factory.mktemp("serial"), workers=1)


@pytest.fixture
def own(tmp_path):
    """A study of a class of the user's own, whose file is gone, and its table."""
    (tmp_path / "mine.py").write_text(MINE)
    text = SPEC.replace('"gossip"', '"mine:Shy"')
    spec = bm.parse_spec(text, folder=tmp_path)
    (tmp_path / "mine.py").unlink()
    return spec, bm.run_study(spec, tmp_path / "own", workers=1)


@pytest.fixture
def scheduler(tmp_path):
    """The address of a Dask scheduler with two worker processes."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    where = ["--scheduler-file", str(file), *LOOPBACK]
    commands = [[*dask, "scheduler", "--port", "0", *where]]
    commands += [[*dask, "worker", "--nthreads", "1", "--no-nanny", *where]] * 2
    processes = []
    for command in commands:
        processes.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        )
        while not file.exists() or not file.read_text():
            assert processes[0].poll() is None
            time.sleep(0.05)
    yield json.loads(file.read_text())["address"]
    for process in processes:
        process.kill()
        process.wait()


def test_a_dask_cluster_gives_the_same_table(scheduler, serial, own, tmp_path):
    from distributed import Client

    with Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(2)
    for spec, expected in ((bm.parse_spec(SPEC), serial), own):
        study = bm.run_study(spec, tmp_path / f"dask-{spec.digest}", executor=f"dask:{scheduler}")
        assert_same(study, expected)


@pytest.mark.slow
def test_a_scheduler_that_dies_is_one_line(scheduler, serial, tmp_path, capfd):
    from distributed import Client

    with Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(2)
        process = client.run_on_scheduler(os.getpid)

    def die(done, total, failed):
        if done:
            os.kill(process, signal.SIGKILL)

    spec = bm.parse_spec(SPEC)
    with pytest.raises(bm.StudyError, match=r"perhaps because its scheduler is gone.* runs are kept") as caught:
        bm.run_study(spec, tmp_path / "dask", executor=f"dask:{scheduler}", progress=die)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""
    assert_same(bm.run_study(spec, tmp_path / "dask", workers=1), serial)


def test_a_missing_scheduler_is_one_line(tmp_path):
    with pytest.raises(bm.StudyError, match=r"cannot reach a Dask scheduler at tcp://127\.0\.0\.1:9"):
        bm.run_study(bm.parse_spec(SPEC), tmp_path, executor="dask:tcp://127.0.0.1:9")


@pytest.mark.parametrize("address", ["garbage", "tcp://", "tcp://127.0.0.1:port", "foo://127.0.0.1:9", "inproc://x"])
def test_a_wrong_address_is_one_line(tmp_path, capfd, address):
    with pytest.raises(bm.StudyError, match="cannot reach a Dask scheduler at") as caught:
        bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=f"dask:{address}")
    assert "dask:tcp://127.0.0.1:8786" in str(caught.value)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_workers_of_dask_leave_the_script_alone(tmp_path, monkeypatch):
    """So a script needs no `if __name__ == "__main__"`: it is not run again in every worker."""
    script = ModuleType("__main__")
    script.__file__ = str(tmp_path / "script.py")
    (tmp_path / "script.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.setitem(sys.modules, "__main__", script)
    with open_executor("dask", 1) as (executor, n_workers):
        assert n_workers == 1
        assert executor.submit(max, 1, 2).result() == 2
    assert sys.modules["__main__"] is script
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name, module", [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(monkeypatch, tmp_path, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(bm.errors.MissingExtraError, match=rf"pip install 'banditmesh\[{name}\]'"):
        bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=name)


class FakeRay:
    """As much of Ray as the adapter uses, computing on the spot."""

    @staticmethod
    def remote(**options):
        assert options == {"max_retries": 2}

        class Remote:
            def __init__(self, function):
                self.function = function

            def remote(self, *arguments):
                executor = InlineExecutor()
                return type("Reference", (), {"future": lambda _: executor.submit(self.function, *arguments)})()

        return Remote


def test_the_ray_adapter_is_an_executor(monkeypatch, serial, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", FakeRay)
    executor = RayExecutor()
    assert isinstance(executor, Executor)
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=executor), serial)


def test_an_inline_error_comes_out_of_the_future():
    future = InlineExecutor().submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        future.result()


def test_processes_are_one_per_core_unless_told_otherwise():
    with open_executor(workers=3) as (_, n_workers):
        assert n_workers == 3


if importlib.util.find_spec("ray"):

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")
    def test_a_ray_cluster_gives_the_same_table(serial, own, tmp_path):
        for spec, expected in ((bm.parse_spec(SPEC), serial), own):
            study = bm.run_study(spec, tmp_path / f"ray-{spec.digest}", executor="ray", workers=2)
            assert_same(study, expected)


def test_a_client_in_the_place_of_an_executor_is_refused_with_the_remedy(tmp_path):
    class Client:
        def get_executor(self):
            raise AssertionError("nobody asked")

    with pytest.raises(bm.InputError, match=r"an Executor; got .*; give client\.get_executor\(\)$"):
        bm.run_study(bm.parse_spec(SPEC), tmp_path / "study", executor=Client())
    assert not (tmp_path / "study").exists()


def test_a_path_in_the_place_of_a_spec_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(bm.InputError, match=r"spec must be a Spec, got 'study\.toml'; read a file with read_spec"):
        bm.run_study("study.toml", tmp_path / "study")
    for name in ("progress", "notice"):
        with pytest.raises(bm.InputError, match=f"{name} must be a callable or None, got 'yes'"):
            bm.run_study(bm.parse_spec(SPEC), tmp_path / "study", **{name: "yes"})
    assert not (tmp_path / "study").exists()


def test_workers_leave_the_script_that_starts_them_alone(tmp_path, monkeypatch):
    ran, script = tmp_path / "ran", tmp_path / "script.py"
    script.write_text(f"open({str(ran)!r}, 'a').write('again')\n")
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", str(script), raising=False)
    with open_executor(workers=2) as (pool, _):
        assert pool.submit(max, 1, 2).result() == 2
    assert not ran.exists()
    assert sys.modules["__main__"] is main


def test_a_frontier_sends_what_a_script_defines():
    mine = type("Mine", (bm.Flooding,), {"__module__": "__main__", "name": "mine"})
    problem = bm.Problem.random(bm.networks.ring(3), n_arms=2, per_agent=1, seed=0)
    given = {"protocols": [mine(2)], "horizon": 5, "replicates": 2, "seed": 0, "engine": "reference"}
    here = bm.frontier(problem, **given).table()
    with open_executor(workers=2) as (pool, _):
        there = bm.frontier(problem, **given, executor=pool)
    assert there.table().equals(here)
    assert type(there.configurations[0].protocol) is mine
