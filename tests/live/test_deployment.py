"""Node files for every agent: what is written, what is read back, and what is refused."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import banditmesh as bm
from banditmesh.cli import cli
from banditmesh.errors import InputError
from banditmesh.live.config import check, load
from banditmesh.mesh import read_hosts, read_nodes, write_nodes
from banditmesh.mesh.deployment import addresses
from banditmesh.verbs.frontier import live_line


@pytest.fixture
def problem():
    return bm.Problem.random(bm.networks.path(3), n_arms=4, per_agent=2, seed=0)


def run(*words):
    return CliRunner().invoke(cli, words, obj={})


def test_node_files_describe_the_problem_and_read_back(problem, tmp_path):
    protocol, policy = bm.Flooding(3, emission=bm.Growth(0.25)), bm.KLUCB()
    files = write_nodes(problem, protocol, policy, tmp_path)
    middle = load(files[1])
    assert [(one.name, one.address) for one in middle.neighbours] == [("0", "127.0.0.1:7700"), ("2", "127.0.0.1:7702")]
    assert [arm.name for arm in middle.arms] == [str(arm) for arm in problem.arm_set(1)]
    assert len({load(path).api.listen for path in files[:3]}) == 3
    again, *chosen = read_nodes(tmp_path)
    assert chosen == [protocol, policy]
    assert (again.n_agents, again.network.neighbour_lists()) == (3, problem.network.neighbour_lists())
    sets = [{again.arms[arm] for arm in again.arm_set(agent)} for agent in range(3)]
    assert sets == [{str(arm) for arm in problem.arm_set(agent)} for agent in range(3)]


def test_nodes_can_start_once_their_keys_are_made(problem, tmp_path):
    *files, commands = write_nodes(problem, bm.FwA(2), bm.UCB(), tmp_path / "a b")
    assert all(check(path) for path in files)  # no keys yet
    script = commands.read_text().replace("banditmesh keys", f"'{sys.executable}' -m banditmesh keys")
    commands.write_text(script)
    subprocess.run(["sh", str(commands)], check=True, capture_output=True)
    assert [check(path) for path in files] == [[], [], []]


def test_hosts_say_where_nodes_listen(problem, tmp_path):
    file = tmp_path / "hosts.csv"
    file.write_text("# a comment\n0,10.0.0.1:7780\n\n1, 10.0.0.1:7700\n2,node.internal:9000\n")
    files = write_nodes(problem, bm.FwA(2), bm.UCB(), tmp_path / "out", hosts=read_hosts(file))
    first, second, third = map(load, files[:3])
    assert (first.listen, third.listen) == ("0.0.0.0:7780", "0.0.0.0:9000")
    assert {one.address for one in second.neighbours} == {"10.0.0.1:7780", "node.internal:9000"}
    assert [one.api.listen.rpartition(":")[2] for one in (first, second, third)] == ["7781", "7782", "7780"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,10.0.0.1:1\n1,10.0.0.2:1\n", "got none for '2'"),
        ("0,a:1\n1,b:1\n2,c:1\n3,d:1\n", "agents of the network only, got '3'"),
        ("0,a:1\n1,a:1\n2,c:1\n", "got one twice"),
        ("0,a:1\n0,b:1\n", "line 2: every agent must be there once"),
        ("berlin\n", "line 1: must be agent,host:port"),
        ("0,a\n", "line 1: the address must be host:port"),
    ],
)
def test_wrong_hosts_are_refused(problem, tmp_path, text, words):
    file = tmp_path / "hosts.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        addresses(problem, read_hosts(file))


def test_node_files_that_do_not_fit_together_are_refused(problem, tmp_path):
    files = write_nodes(problem, bm.FwA(2), bm.UCB(), tmp_path)
    text = files[2].read_text()
    files[2].write_text(text.replace("ttl = 2", "ttl = 3"))
    with pytest.raises(InputError, match="same protocol, got another one in '2'"):
        read_nodes(tmp_path)
    files[2].write_text(text.partition("[[neighbours]]")[0])
    with pytest.raises(InputError, match="neighbours must name each other"):
        read_nodes(tmp_path)
    with pytest.raises(InputError, match="new or empty folder"):
        write_nodes(problem, bm.FwA(2), bm.UCB(), tmp_path)
    with pytest.raises(InputError, match="got none"):
        read_nodes(tmp_path / "nothing")


def test_the_recommendation_is_deployed_and_tried(tmp_path):
    small = ["--network", "ring:4", "--arms", "4", "--per-agent", "2", "--horizon", "20", "--replicates", "3"]
    folder = str(tmp_path / "deploy")
    asked = ["frontier", *small, "--protocols", "irs,fwa(2)", "--emissions", "every-pull", "--live"]
    done = run(*asked, "--deploy", folder)
    assert done.exit_code == 0, done.output
    assert f"mesh up --from {folder}" in done.stderr
    tried = run("mesh", "up", "--from", folder, "--horizon", "3", "--pace", "50", "--processes", "1")
    assert tried.exit_code == 0, tried.output
    assert "new or empty" in str(run(*asked, "--deploy", folder).exception)
    assert "has no effect: the node files" in str(run("mesh", "up", "--from", folder, "--arms", "9").exception)


def test_deploying_without_live_is_refused_before_anything_runs(tmp_path):
    assert "--deploy needs --live" in str(run("frontier", "--deploy", str(tmp_path / "out")).exception)
    assert "--hosts has no effect" in str(run("frontier", "--hosts", "hosts.csv").exception)
    dynamic = run("frontier", "--network", "dynamic-er", "--live", "--deploy", str(tmp_path / "out"))
    assert "static network" in str(dynamic.exception)


def test_what_cannot_run_live_is_named_with_the_best_that_can():
    problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    found = bm.frontier(problem, protocols=["tree(pause=4)", "fwa(2)"], horizon=30, replicates=2, seed=0, tolerance=9.0)
    assert found.recommended == "tree(pause=4)+growth(0.05)"
    line = live_line(found, bm.UCB())
    assert line.startswith("tree(pause=4)+growth(0.05) cannot run live; the best that can is fwa(2): group regret ")
    alone = bm.frontier(problem, protocols=["tree(pause=4)"], horizon=30, replicates=2, seed=0)
    assert live_line(alone, bm.UCB()).endswith("nothing else here that sends and meets the budget can.")
    able = bm.frontier(problem, protocols=["fwa(2)"], horizon=30, replicates=2, seed=0)
    assert live_line(able, bm.UCB()) == ""
