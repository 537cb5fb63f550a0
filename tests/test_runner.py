"""The runner: the same table however it is run, stopped and continued."""

import os
import signal
import subprocess
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.sim import engine
from banditmesh.studies import runner, worker
from studies import COMMAND, ENVIRONMENT, SPEC, assert_same, shards


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The study run in this process, from beginning to end."""
    return bm.run_study(bm.parse_spec(SPEC), tmp_path_factory.mktemp("serial"), workers=1)


def test_the_table_has_every_run_in_order(serial):
    table = serial.table()
    assert table["run"].tolist() == list(range(20))
    assert table["replicate"].tolist() == [0, 1] * 10
    assert table["seed"].tolist() == bm.parse_spec(SPEC).seeds * 10
    assert table["error"].isna().all()
    assert serial.is_complete


def test_any_row_can_be_repeated_by_itself(serial):
    row = serial.table().iloc[-1]
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    result = bm.simulate(
        problem,
        bm.Gossip(int(row["protocol.ttl"])),
        policy=bm.UCB(row["policy.alpha"]),
        horizon=12,
        seed=int(row["seed"]),
        engine="reference",
    )
    assert result.regret[0, -1] == row["regret"]
    assert result.transmissions[0, -1] == row["messages"]
    assert {name: int(values[0]) for name, values in result.traffic.items()} == {
        name: row[name] for name in result.traffic
    }


def test_points_meet_the_same_rewards(serial):
    table = serial.table()
    alone = table[(table["protocol"] == "none") & (table["policy.alpha"] == 3.0)]["regret"].to_numpy()
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    again = [
        bm.simulate(problem, bm.NoCooperation(), horizon=12, seed=seed, engine="reference").regret[0, -1]
        for seed in bm.parse_spec(SPEC).seeds
    ]
    assert alone.tolist() == again


def test_curves_end_where_the_table_does(serial):
    curves = serial.curves()
    assert sorted(curves["round"].unique()) == [5, 10, 12]
    last = curves[curves["round"] == 12]
    assert np.array_equal(last["regret"], serial.table()["regret"])
    assert np.array_equal(last["messages"], serial.table()["messages"])


def test_two_worker_processes_give_the_same_table(serial, tmp_path):
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path / "two", workers=2), serial)


def test_any_executor_will_do(serial, tmp_path):
    with ThreadPoolExecutor(3) as pool:
        assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path / "threads", executor=pool), serial)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path / "processes", executor=pool, workers=1), serial)


class Counting(ThreadPoolExecutor):
    """Counts what is submitted, and how much of it is in work at once."""

    def __init__(self):
        super().__init__(1)
        self.submitted = self.most = self.open = 0

    def submit(self, fn, /, *args):
        self.submitted += 1
        self.open += 1
        self.most = max(self.most, self.open)
        future = Future()
        future.set_result(fn(*args))
        future.result = self._closing(future.result)
        return future

    def _closing(self, result):
        def read(*arguments):
            self.open -= 1
            return result(*arguments)

        return read


def test_the_parent_keeps_few_chunks_in_work(tmp_path):
    with Counting() as pool:
        bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=pool, workers=3)
    assert pool.submitted == 20
    assert pool.most <= 6


def test_a_complete_study_is_not_run_again(serial):
    with Counting() as pool:
        again = bm.run_study(bm.parse_spec(SPEC), serial.path, executor=pool, workers=1)
    assert pool.submitted == 0
    assert again.is_complete


def test_only_what_is_missing_is_run(serial, tmp_path):
    study = bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    for path in shards(tmp_path)[5:8]:
        path.unlink()
    with Counting() as pool:
        assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=pool, workers=1), study)
    assert pool.submitted == 3
    assert_same(study, serial)


def test_killed_and_started_again_the_table_is_the_same(tmp_path):
    (tmp_path / "study.toml").write_text(SPEC.replace("replicates = 2", "replicates = 20"))
    command = [COMMAND, "run", tmp_path / "study.toml", "--workers", "2", "--out"]
    process = subprocess.Popen([*command, tmp_path / "killed"], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    while len(shards(tmp_path / "killed")) < 5:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    spec = bm.read_spec(tmp_path / "study.toml")
    n_kept = len(shards(tmp_path / "killed"))
    assert 5 <= n_kept < 100
    kept = {path: path.stat().st_mtime_ns for path in shards(tmp_path / "killed")}
    continued = bm.run_study(spec, tmp_path / "killed", workers=1)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    assert_same(continued, bm.run_study(spec, tmp_path / "whole", workers=1))


def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "study.toml").write_text(SPEC.replace("replicates = 2", "replicates = 200"))
    command = [COMMAND, "run", tmp_path / "study.toml", "--workers", "2", "--out", tmp_path / "out"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    while not shards(tmp_path / "out"):
        assert process.poll() is None
        time.sleep(0.01)
    children = [int(pid) for pid in _children(process.pid)]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(_is_running(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(children) >= 2


def _children(pid):
    return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True).stdout.split()


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_is_one_line_and_can_be_continued(tmp_path):
    (tmp_path / "study.toml").write_text(SPEC.replace("replicates = 2", "replicates = 30"))
    command = [COMMAND, "run", tmp_path / "study.toml", "--workers", "2", "--out", tmp_path / "out"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
        # Tests may run where interrupts are ignored, as behind nohup; programs inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while len(shards(tmp_path / "out")) < 3:
        assert process.poll() is None
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to parent and workers alike
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.count("\n") == 1
    assert "run the same command again" in err
    assert bm.Study(tmp_path / "out").manifest["state"] == "interrupted"
    assert bm.run_study(bm.read_spec(tmp_path / "study.toml"), tmp_path / "out", workers=1).is_complete


def failing(monkeypatch):
    """Simulations of FwA fail from now on."""
    true = engine.simulate

    def simulate(problem, protocol, **settings):
        if protocol.name == "fwa":
            raise ValueError("this one\nfails")
        return true(problem, protocol, **settings)

    monkeypatch.setattr(engine, "simulate", simulate)


def test_a_failed_run_is_kept_with_its_error_and_the_rest_goes_on(monkeypatch, tmp_path, serial):
    with monkeypatch.context() as patched:
        failing(patched)
        study = bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    table = study.table()
    failed = table["protocol"] == "fwa"
    assert set(table["error"][failed]) == {"ValueError: this one fails"}
    assert table["regret"][failed].isna().all()
    assert table["error"][~failed].isna().all()
    assert study.manifest["n_failed"] == failed.sum() == 8
    assert np.array_equal(table["regret"][~failed], serial.table()["regret"][~failed])
    # Once the cause is gone, the same command makes up for it.
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1), serial)


def test_fail_fast_stops_at_the_first_failure(monkeypatch, tmp_path, serial):
    with monkeypatch.context() as patched:
        failing(patched)
        with pytest.raises(bm.StudyError, match="a run failed: ValueError: this one fails"):
            bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1, fail_fast=True)
    assert bm.Study(tmp_path).manifest["state"] == "stopped"
    assert len(shards(tmp_path)) < 20
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1), serial)


def _die(chunk):
    os._exit(1)


def test_a_worker_that_dies_is_one_clear_line(monkeypatch, tmp_path, serial):
    with monkeypatch.context() as patched:
        patched.setattr(runner, "run_chunk", _die)
        with (
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
            pytest.raises(bm.StudyError, match="a worker died"),
        ):
            bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=pool, workers=1)
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1), serial)


def test_progress_counts_runs_and_failures(tmp_path):
    seen = []
    bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1, progress=lambda *counts: seen.append(counts))
    assert seen[0] == (0, 20, 0)
    assert seen[-1] == (20, 20, 0)
    assert len(seen) == 21


def test_networks_from_files_reach_the_workers(tmp_path):
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 3\n3 4\n4 0\n")
    text = SPEC.replace('{name = "ring", n = 5}', '{name = "file", path = "ring.txt"}')
    (tmp_path / "study.toml").write_text(text)
    spec = bm.read_spec(tmp_path / "study.toml")
    study = bm.run_study(spec, tmp_path / "out", workers=2)
    generated = bm.run_study(bm.parse_spec(SPEC), tmp_path / "ring", workers=1)
    assert study.table()["regret"].equals(generated.table()["regret"])
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 3\n3 4\n")
    with pytest.raises(bm.StudyError, match="the files of networks or arms have changed"):
        bm.run_study(spec, tmp_path / "out", workers=1)


RING = "0 1\n1 2\n2 3\n3 4\n4 0\n"
STAR = "0 1\n0 2\n0 3\n0 4\n"


def from_file(folder, text, network='{name = "file", path = "links.txt"}'):
    """The small study on a network file of this content."""
    folder.mkdir(exist_ok=True)
    (folder / "links.txt").write_text(text)
    return bm.parse_spec(SPEC.replace('{name = "ring", n = 5}', network), folder=folder)


def messages(study):
    return study.table()["messages"].tolist()


def test_a_file_that_changed_is_another_network_in_the_same_process(tmp_path):
    ring = bm.run_study(from_file(tmp_path, RING), tmp_path / "ring", workers=1)
    star = bm.run_study(from_file(tmp_path, STAR), tmp_path / "star", workers=1)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        alone = bm.run_study(from_file(tmp_path, STAR), tmp_path / "alone", executor=pool, workers=1)
    assert_same(star, alone)
    assert messages(star) != messages(ring)


def test_equal_specs_of_two_folders_on_one_executor_have_their_own_networks(tmp_path):
    specs = {text: from_file(tmp_path / name, text) for name, text in (("one", RING), ("two", STAR))}
    assert len({spec.digest for spec in specs.values()}) == 1
    alone = {}
    for place, (text, spec) in enumerate(specs.items()):
        worker._latest = None
        alone[text] = bm.run_study(spec, tmp_path / f"alone{place}", workers=1)
    with ThreadPoolExecutor(1) as pool:
        for place, (text, spec) in enumerate(specs.items()):
            assert_same(bm.run_study(spec, tmp_path / f"pool{place}", executor=pool, workers=1), alone[text])
    assert messages(alone[RING]) != messages(alone[STAR])


def test_a_shard_of_the_same_spec_with_another_network_is_not_taken(tmp_path):
    ring = bm.run_study(from_file(tmp_path, RING), tmp_path / "ring", workers=1)
    star = bm.run_study(from_file(tmp_path, STAR), tmp_path / "star", workers=1)
    before = messages(star)
    for path in shards(star.path):
        path.unlink()
    for path in shards(ring.path):
        (star.path / "shards" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(bm.StudyError, match="of another study"):
        star.table()
    assert messages(bm.run_study(from_file(tmp_path, STAR), star.path, workers=1)) == before


def test_one_file_read_as_two_kinds_is_two_networks(tmp_path):
    """The lines below are three links with the weight 1, and as a trace one contact in each of three rounds."""
    text = "1 2 1\n2 3 1\n3 2 1\n"
    kinds = {kind: f'{{name = "{kind}", path = "links.txt"}}' for kind in ("file", "trace")}

    def run(name, *networks):
        spec = f"""
        horizon = 3
        engine = "reference"
        arms = {{n_arms = 3, per_agent = 3}}
        protocol = {{name = "irs"}}
        sweep.network = [{", ".join(networks)}]
        """
        (tmp_path / "links.txt").write_text(text)
        return messages(bm.run_study(bm.parse_spec(spec, folder=tmp_path), tmp_path / name, workers=1))

    alone = [run(kind, table) for kind, table in kinds.items()]
    assert alone[0] != alone[1]
    assert run("both", *kinds.values()) == alone[0] + alone[1]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    spec, true = from_file(tmp_path, RING), runner.read_files

    def read(files):
        networks = true(files)
        (tmp_path / "links.txt").write_text(STAR)
        return networks

    monkeypatch.setattr(runner, "read_files", read)
    with pytest.raises(bm.StudyError, match="changed while it was read"):
        bm.run_study(spec, tmp_path / "out", workers=1)


@pytest.mark.parametrize("executor", ["slurm", "dasks:tcp://x"])
def test_an_unknown_executor_is_refused(tmp_path, executor):
    with pytest.raises(bm.InputError, match="executor must be"):
        bm.run_study(bm.parse_spec(SPEC), tmp_path, executor=executor)


def test_workers_must_be_a_positive_number(tmp_path):
    with pytest.raises(bm.InputError, match="workers must be"):
        bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=0)
