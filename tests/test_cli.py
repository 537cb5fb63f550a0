import importlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import networkx as nx
import pytest

import banditmesh as bm
from banditmesh import cli
from banditmesh.cli import main

SMALL = ["--arms", "4", "--per-agent", "2", "--horizon", "6", "--replicates", "2"]


def errors(text):
    """Standard error, without the notices that the engine is compiled once on a machine, and waited for."""
    assert "Traceback" not in text
    notices = ("compiling the engine", "has the engine ready")
    return "".join(line for line in text.splitlines(keepends=True) if not any(one in line for one in notices))


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit status, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, errors(captured.err)

    return call


@pytest.fixture
def ring(tmp_path):
    path = tmp_path / "ring.txt"
    path.write_text("".join(f"{v} {(v + 1) % 6}\n" for v in range(6)))
    return path


def refused(outcome, status, *words):
    """One line on standard error, and nothing on standard output."""
    code, out, err = outcome
    assert code == status
    assert out == ""
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_compare_prints_a_table(run, ring):
    code, out, err = run("compare", "--network", ring, "--ttl", 2, *SMALL)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Problem(6 agents, 6 links, 4 arms, 2 per agent)"
    assert lines[1] == "horizon 6, 2 replicates, seed 0, sound rules; ±: standard deviation over replicates"
    rows = [line.split()[0] for line in lines[4:10]]
    assert rows == ["none", "irs", "gossip", "probabilistic", "fwa", "flooding"]
    assert "72 ± 0  " in lines[5]


def test_json_equals_what_the_library_says(run, ring):
    options = ["--seed", 3, "--rules", "published", "--protocols", "irs, flooding,centralised", "--ttl", 2]
    code, out, err = run("compare", "--network", ring, "--json", *options, *SMALL)
    assert (code, err) == (0, "")
    problem = bm.Problem.random(nx.cycle_graph(6), n_arms=4, per_agent=2, seed=3)
    protocols = [bm.IRS(), bm.Flooding(2), bm.Centralised()]
    expected = bm.compare(problem, protocols, horizon=6, replicates=2, seed=3, rules="published")
    assert json.loads(out) == {"ring": expected.to_json()}


@pytest.mark.parametrize("network", ["er", "dynamic-er"])
def test_paper_networks_are_known_by_name(run, network):
    options = ["--network", network, "--horizon", 2, "--replicates", 1, "--protocols", "irs", "--json"]
    code, out, _ = run("compare", *options)
    assert code == 0
    [(name, values)] = json.loads(out).items()
    assert name == network
    assert values["irs"]["regret"]["sd"] is None
    if network == "er":
        assert values["irs"]["messages"]["mean"] == 612


def test_policy_is_chosen_by_name_and_told(run, ring):
    options = ["--network", ring, "--arms", 6, "--per-agent", 3, "--horizon", 20, "--replicates", 2]
    status, out, _ = run("compare", *options, "--protocols", "irs", "--policy", "moss", "--json")
    assert status == 0
    told = json.loads(out)
    assert told["policy"] == "MOSS(n_observations=None)"
    problem = bm.Problem.random(bm.networks.read(ring), n_arms=6, per_agent=3, seed=0)
    result = bm.simulate(problem, bm.IRS(), policy=bm.MOSS(), horizon=20, replicates=2, seed=0)
    assert told["ring"]["irs"]["regret"]["mean"] == pytest.approx(result.regret[:, -1].mean())


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plot_draws_into_a_file(run, ring, tmp_path, suffix):
    picture = tmp_path / f"picture{suffix}"
    code, _, err = run("compare", "--network", ring, "--plot", picture, *SMALL)
    assert (code, err) == (0, "")
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("name", ["fwa", "fwa(4)"])
def test_compare_prints_the_lines_of_a_node(run, ring, name):
    lines = (
        '[protocol]\nname = "fwa"\nttl = 4\n\n[emission]\nname = "every-pull"\n\n[policy]\nname = "ucb"\nalpha = 3.0\n'
    )
    code, out, _ = run("compare", "--network", ring, "--protocols", "irs,fwa", "--node-toml", name, *SMALL)
    assert code == 0
    assert out.endswith(f"\n{name} in node.toml:\n\n{lines}")
    _, out, _ = run("compare", "--network", ring, "--protocols", "irs,fwa", "--node-toml", name, "--json", *SMALL)
    assert json.loads(out)["node_toml"] == lines


@pytest.mark.parametrize(
    ("name", "message"),
    [("flooding", "--node-toml must be one of irs, centralised"), ("centralised", "cannot run live")],
)
def test_compare_refuses_a_node_that_cannot_be(run, ring, name, message):
    code, _, err = run("compare", "--network", ring, "--protocols", "irs,centralised", "--node-toml", name, *SMALL)
    assert code != 0
    assert message in err


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ("magic", "--policy must be one of klucb, "),
        ("ucb(-1)", "--policy: policy.alpha must be a positive number, got -1"),
        ("ucb(first_pulls=never)", "--policy: policy.first_pulls must be one of each, unknown; got 'never'"),
        ("ucb+discount(nan)", "--policy: memory.gamma must be a finite number, got nan"),
        ("ucb+discount(1)", "--policy: gamma must be from 0.5 to 1 - 1e-12, got 1; "),
        ("ucb+window(0)", "--policy: memory.rounds must be an integer of at least 1 "),
    ],
)
def test_an_error_in_a_policys_text_names_the_parameter(run, ring, policy, line):
    code, out, err = run("compare", "--network", ring, "--policy", policy, *SMALL)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"banditmesh: {line}")


def test_compare_says_how_regret_is_shared_and_what_a_second_costs(run, ring):
    options = ["compare", "--network", ring, "--protocols", "irs", "--agents", "--rounds-per-second", "2.5", *SMALL]
    code, out, _ = run(*options)
    assert code == 0
    heading, row = [line.split() for line in out.splitlines() if line.startswith(("protocol", "irs"))][:2]
    assert heading[4:6] == ["first", "pulls"]
    assert heading[6:] == ["transmissions", "per", "second", "agent", "median", "agent", "q90", "agent", "worst"]
    median, q90, worst = map(float, row[-3:])
    assert 0 <= median <= q90 <= worst
    assert float(row[-4]) == 30.0  # 12 messages a round
    _, out, _ = run(*options, "--json")
    found = json.loads(out)["ring"]["irs"]
    assert found["messages_per_second"] == 30.0
    assert f"{found['agent_worst']:.3g}" == f"{worst:g}"
    code, _, err = run("compare", "--network", ring, "--rounds-per-second", "0", *SMALL)
    assert code == 2
    assert "--rounds-per-second must be a positive number" in err


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["compare", "--help"]], ids=" ".join)
def test_help_has_examples(run, arguments):
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "banditmesh compare --network" in out


def all_commands(command):
    names = command.list_commands(None) if isinstance(command, click.Group) else ()
    return [command, *(one for name in names for one in all_commands(command.get_command(None, name)))]


def test_every_option_says_what_it_is_for():
    options = {
        f"{verb.name} {option.opts[0]}": option.help
        for verb in all_commands(cli.cli)
        for option in verb.params
        if isinstance(option, click.Option)
    }
    assert len(options) > 100
    assert [name for name, words in options.items() if not words] == []


def test_version(run):
    assert run("--version") == (0, f"banditmesh {bm.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["dance"], ["No such command 'dance'"]),
        (["compare", "--speed", "9"], ["No such option", "--speed", "banditmesh compare --help"]),
        (["compare", "--horizon", "many"], ["--horizon", "many"]),
        (["compare", "--rules", "fair"], ["--rules", "fair", "sound", "published"]),
        (["compare", "--horizon", "0"], ["horizon must be an integer of at least 1", "got 0"]),
        (["compare", "--ttl", "0"], ["ttl must be an integer of at least 1", "got 0"]),
        (["compare", "--replicates", "0"], ["replicates must be an integer of at least 1, got 0"]),
        (["compare", "--seed", "-1"], ["seed must be an integer of at least 0, got -1"]),
        (["compare", "--per-agent", "60"], ["per_agent must be at most n_arms = 50, got 60"]),
        (["compare", "--protocols", "irs,shout"], ["protocols must be among centralised, flooding,", "got 'shout'"]),
        (["compare", "--protocols", ""], ["protocols must be among", "got ''"]),
        (["compare", "--policy", "luck"], ["--policy must be one of", "klucb", "got 'luck'"]),
        (["compare", "--protocols", "irs,irs", "--horizon", "1"], ["protocols must differ"]),
        (
            ["compare", "--network", ""],
            ["--network must be one of er, ba, sbm, dynamic-er, a generator as in ring:12, or a file; got ''"],
        ),
        (["compare", "--network", "nowhere.txt"], ["--network must be", "'nowhere.txt', and there is no such file"]),
        (["compare", "--ttl", "3", "--protocols", "none,irs"], ["has no effect: each of the protocols has its own"]),
        (["compare", "--protocols", "gosine,dducb", "--policy", "klucb"], ["--policy has no effect: all of these alg"]),
        (["compare", "--protocols", "gosine", "--policies", "ucb,klucb"], ["--policies has no effect: all of these a"]),
        (["frontier", "--protocols", "gosine", "--policy", "klucb"], ["--policy has no effect: all of these alg"]),
        (["compare", "--outages", "0.1"], ["--outages", "requires 2 arguments", "banditmesh compare --help"]),
        (["compare", "--network", "ring"], ["must be written ring:N, got 'ring'"]),
        (["plot", "results", "--size", "0", "3"], ["--size must be a positive number, got 0.0"]),
        (["compare", "--network", "rng:12"], ["a generator as in ring:12", "did you mean 'ring'?"]),
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_line_and_status_2(run, arguments, words):
    refused(run(*arguments), 2, *words)


def test_malformed_network_file_is_named_with_its_line(run, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("0 1\n1 1\n")
    refused(run("compare", "--network", path, *SMALL), 2, str(path), "line 2", "self-loops")


def test_picture_of_unknown_kind_is_refused(run, ring, tmp_path):
    refused(run("compare", "--network", ring, "--plot", tmp_path / "x.gif", *SMALL), 2, "--plot", ".png", "x.gif")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ["compare", "--plot", "none/x.png"],
            ["--plot", "must lie in a folder that exists", "none/x.png", "create none"],
        ),
        (["frontier", "--out", "none/x.png"], ["--out", "must lie in a folder that exists", "none/x.png"]),
        (["bounds", "--protocols", "irs", "--plot", "none/x.svg"], ["--plot", "must lie in a folder that exists"]),
        (["bounds", "--plot", "x.svg"], ["--plot draws one protocol, got 4"]),
        (["compare", "--plot", "/dev/null/x.png"], ["must lie in a folder that exists"]),
        (["frontier", "--out", "x.gif"], ["--out must name a .pdf, .png, .svg file"]),
        (["paper", "--out", "/dev/null/report"], ["--out must be a folder that can be written", "/dev/null/report"]),
        (["compare", "--against", "fw"], ["--against must be one of none, irs", "did you mean 'fwa'"]),
        (["frontier", "--protocols", "fw"], ["protocols must be among", "did you mean 'fwa'"]),
    ],
    ids=" ".join,
)
def test_outputs_and_names_are_checked_before_anything_is_simulated(run, monkeypatch, tmp_path, arguments, words):
    def never(*_, **__):
        raise AssertionError("simulated")

    does = {"comparisons.compare": "simulate", "comparisons.measuring": "simulate", "paper.reproduction": "simulate"}
    for module, name in {**does, "theory.bounds": "cover_arms"}.items():
        monkeypatch.setattr(importlib.import_module(f"banditmesh.{module}"), name, never)
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), 2, *words)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["compare", "--protocols", "irs", "--plot", "x.png"], "irs"),
        (["frontier", "--protocols", "irs", "--out", "x.png"], "take irs"),
        (["bounds", "--protocols", "irs", "--cover", "greedy", "--plot", "x.png"], "delta"),
    ],
    ids=" ".join,
)
def test_results_are_printed_before_they_are_drawn(run, ring, monkeypatch, tmp_path, arguments, words):
    monkeypatch.setattr("banditmesh.files.atomic.create", lambda *_: io.FileIO("/dev/full", "wb"))
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*arguments, "--network", ring, *SMALL)
    assert (status, words in out, err.count("cannot write x.png: No space left")) == (2, True, 1)
    assert not Path("x.png").exists()


def test_the_command_alone_prints_its_help(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    for title, names in cli.GROUPS.items():
        assert f"\n{title}:\n" in out
        assert all(f"\n  {name} " in out for name in names)


# As users run it: the installed command, in a process of its own.

COMMAND = Path(sys.executable).with_name("banditmesh")


@pytest.mark.parametrize(
    "arguments, status",
    [
        (["compare", "--horizon", "2", "--replicates", "2", "--protocols", "irs", "--json"], 0),
        (["compare", "--horizon", "none"], 2),
        (["plot", "/proc"], 1),
    ],
    ids=["done", "wrong use", "failed"],
)
def test_installed_command_has_the_three_exit_codes(arguments, status):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=600, env=os.environ)
    assert done.returncode == status
    assert errors(done.stderr).count("\n") == (status != 0)
    if status == 0:
        assert json.loads(done.stdout)["er"]["irs"]["messages"] == {"mean": 612.0, "sd": 0.0}


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "banditmesh", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"banditmesh {bm.__version__}\n")
