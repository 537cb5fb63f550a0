"""A mesh of real nodes in processes of their own, over mutual TLS."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.errors import BanditmeshError, InputError
from banditmesh.live import Client
from banditmesh.mesh import MeshError, Verdict, local, run_mesh, verify_mesh
from banditmesh.mesh.verify import prediction_interval
from banditmesh.mesh.worker import Traffic
from banditmesh.verbs import mesh as verb


def small_problem():
    """A path of four agents: both ends have what the middle has not, so that something is relayed."""
    laws = {"red": bm.arms.Gaussian(0.2, 1.0), "green": bm.arms.Gaussian(0.5, 1.0), "blue": bm.arms.Bernoulli(0.7)}
    sets = {0: ["red", "green"], 1: ["blue"], 2: ["blue", "green"], 3: ["red", "green"]}
    return bm.Problem(nx.path_graph(4), sets, laws)


@pytest.fixture(scope="module")
def mesh_run():
    return run_mesh(small_problem(), bm.FwA(3), horizon=40, pace=40.0, processes=2)


def test_every_node_pulls_to_the_horizon_and_only_its_own_arms(mesh_run):
    problem = small_problem()
    assert mesh_run.pulls.sum(axis=1).tolist() == [40] * 4
    assert not mesh_run.pulls[np.isnan(problem.gaps)].any()


def test_regret_is_that_of_the_pulls(mesh_run):
    assert mesh_run.regret == pytest.approx(np.nansum(mesh_run.pulls * small_problem().gaps))


def test_everything_that_was_sent_was_heard(mesh_run):
    counters = mesh_run.counters
    n_sent = sum(n for name, n in counters.items() if name.startswith("sent_"))
    n_heard = sum(counters.get(name, 0) for name in ("heard_news", "heard_extended", "heard_stale"))
    assert mesh_run.is_quiet
    assert n_sent == n_heard
    assert mesh_run.transmissions == counters["sent_news"] > 0
    assert not counters["failed_tasks"]
    assert not counters["failed_writes"]


def test_every_link_is_one_connection_from_the_beginning_to_the_end(mesh_run):
    assert mesh_run.counters["links"] == 2 * 3
    assert not any(n for name, n in mesh_run.counters.items() if name.startswith(("ended_", "no_link_", "refused_")))


class Crew:
    """Workers that answer, each time they are asked, the next thing."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.n_asked = 0

    def ask(self, question):
        self.n_asked += 1

    def answers(self, patience):
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def traffic(a_sent, b_heard, waits=False, b_sent=0, a_heard=0):
    """What two workers say: one of node a, one of node b."""
    there, back = {("a", "b"): (a_sent, a_heard)}, {("b", "a"): (b_sent, b_heard)}
    return [Traffic(set(), there, set()), Traffic(set(back) if waits else set(), back, set())]


ON_ITS_WAY = traffic(310, 309)
ARRIVED = traffic(310, 310)


@pytest.mark.parametrize(
    "answers",
    [
        [ON_ITS_WAY, ON_ITS_WAY, ON_ITS_WAY, ARRIVED, ARRIVED],
        # What has just arrived is passed on: nothing waited when the first worker was asked.
        [ARRIVED, traffic(310, 310, b_sent=1), traffic(310, 310, b_sent=1), traffic(310, 310, False, 1, 1)],
        [traffic(310, 310, waits=True), traffic(310, 310, waits=True), ARRIVED, ARRIVED],
    ],
)
def test_mesh_is_quiet_when_all_that_was_sent_has_been_heard_and_not_before(monkeypatch, answers):
    monkeypatch.setattr(local, "LOOK_AGAIN", 0.0)
    crew = Crew(*answers)
    assert local._settle(crew)
    assert crew.n_asked >= len(answers)


def test_mesh_whose_last_statistic_never_arrives_is_not_quiet(monkeypatch):
    monkeypatch.setattr(local, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(local, "PATIENCE", 0.05)
    assert not local._settle(Crew(ON_ITS_WAY))


def test_what_is_for_a_dead_node_is_not_waited_for():
    assert local._settle(Crew([Traffic({("a", "b")}, {("a", "b"): (310, 309)}, set()), Traffic(set(), {}, {"b"})]))


def test_prediction_interval_of_known_values():
    # Mean 2, standard deviation 1, t(0.995; 2) = 9.9248: half-width 9.9248 * sqrt(4 / 3).
    low, high = prediction_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 11.460, 2 + 11.460), abs=1e-3)


def test_mesh_agrees_with_the_simulator():
    problem = bm.Problem.random(bm.networks.ring(6), n_arms=6, per_agent=3, seed=1)
    verdict = verify_mesh(problem, bm.Flooding(2), horizon=60, pace=20.0, processes=2)
    assert verdict.regret_agrees
    assert verdict.transmissions_agree


def test_verdict_differs_where_another_protocol_is_simulated(mesh_run):
    problem = small_problem()
    result = bm.simulate(problem, bm.Flooding(3), horizon=40, replicates=3, seed=1)
    verdict = Verdict(mesh_run, 3, (0.0, 1e9), 0.0, float(result.transmissions[:, -1].mean()))
    assert verdict.regret_agrees
    assert not verdict.transmissions_agree
    assert not verdict.agrees
    assert not replace(verdict, regret=(-2.0, -1.0)).regret_agrees
    hurried = replace(mesh_run, counters={**mesh_run.counters, "sent_news": 1, "waited_already": 1_234})
    told = verb._verdict_as_text(replace(verdict, run=hurried, simulated_transmissions=10.0))
    assert "1,234 statistics gave way to newer ones while they waited" in told
    assert f"--pace, such as {0.25 / mesh_run.interval:g}." in told


def test_dynamic_network_is_refused():
    with pytest.raises(InputError, match="static network"):
        run_mesh(bm.Problem.paper("dynamic-er"), bm.FwA(4))


def test_protocol_that_does_not_run_live_is_refused():
    with pytest.raises(InputError, match="cannot run live"):
        run_mesh(small_problem(), bm.Centralised())


def test_names_that_are_written_alike_are_refused(tmp_path):
    problem = bm.Problem(nx.path_graph(2), [[1], ["1"]], {1: bm.arms.Bernoulli(0.5), "1": bm.arms.Bernoulli(0.5)})
    with pytest.raises(InputError, match="written alike"):
        run_mesh(problem, bm.FwA(1), folder=tmp_path)


def test_folder_that_is_taken_is_refused(tmp_path):
    run_mesh(small_problem(), bm.FwA(1), horizon=1, folder=tmp_path, processes=1)
    assert (tmp_path / "state" / "0").is_dir()
    with pytest.raises((InputError, MeshError), match=r"got a file"):
        run_mesh(small_problem(), bm.FwA(1), horizon=1, folder=tmp_path, processes=1)


def cli(*arguments, **options):
    code = "import sys; from banditmesh.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_node_that_is_killed_goes_on_from_its_disk():
    problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    n_known, seen = [], []

    def opened(mesh):
        threading.Thread(target=kill_and_start, args=(mesh,), daemon=True).start()

    def kill_and_start(mesh):
        with Client(mesh.sidecars["1"]) as client:
            wait_until(lambda: client.state()["n_choices"] >= 2)
        mesh.kill("1")
        wait_until(lambda: not answers(mesh.sidecars["1"]))
        with pytest.raises(InputError, match="the node must be one of this mesh, got 'x'"):
            mesh.start("x")
        seen.append("down")
        mesh.start("1")
        wait_until(lambda: answers(mesh.sidecars["1"]))
        seen.append("up")

    def keep(run):
        wait_until(lambda: seen == ["down", "up"])
        n_known.append(int(run.pulls.sum()))

    run = run_mesh(problem, bm.Flooding(2), horizon=12, pace=10.0, processes=1, opened=opened, keep=keep)
    # No pull is left out, and none is counted twice.
    assert run.pulls.sum(axis=1).tolist() == [12, 12, 12]
    assert n_known == [36]
    assert run.is_quiet


def test_run_ends_without_a_node_that_is_left_dead():
    problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    run = run_mesh(problem, bm.Flooding(2), horizon=8, pace=20.0, processes=2, opened=lambda mesh: mesh.kill("1"))
    pulls = run.pulls.sum(axis=1).tolist()
    assert [pulls[0], pulls[2]] == [8, 8]
    assert run.n_missing == 8 - pulls[1] > 0
    assert run.is_quiet


def answers(address):
    try:
        with Client(address, patience=0.0) as client:
            client.state()
    except BanditmeshError:
        return False
    return True


def test_mesh_up_prints_what_a_program_can_read():
    options = ["--agents", "8", "--arms", "4", "--per-agent", "2", "--horizon", "5", "--pace", "20", "--json"]
    out, err = (process := cli("mesh", "up", "--network", "ba", *options)).communicate(timeout=300)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["agents"] == 8
    assert told["counters"]["observations_counted"] == 40
    assert told["is_quiet"]
    assert "With --serve" in err


def test_interrupt_ends_the_whole_mesh(tmp_path):
    options = ["--agents", "8", "--horizon", "100000", "--folder", str(tmp_path)]
    # Tests may run where interrupts are ignored, as behind nohup; programs inherit that.
    hears = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = cli("mesh", "up", *options, start_new_session=True, **hears)
    try:
        # Every node has opened its state: the mesh is about to play, or plays.
        wait_until(lambda: process.poll() is not None or len(list(tmp_path.glob("state/*/*"))) >= 8)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.strip().splitlines()[-1] == "banditmesh: interrupted"
    wait_until(lambda: not is_group(process.pid))


def is_group(number):
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds):
    give_up = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.05)
