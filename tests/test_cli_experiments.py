"""The verbs paper, new, run, plot and compare with a spec: what they print, and how they end."""

import json
import re

import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.sim import engine
from studies import SPEC, shards


@pytest.fixture
def run(capsys):
    """Run the command line: (status, standard output, standard error)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        # Whether the engine has to be compiled first depends on what ran before.
        notices = ("compiling the engine", "has the engine ready")
        err = "".join(line for line in err.splitlines(keepends=True) if not any(one in line for one in notices))
        return ended.value.code, out, err

    return call


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(SPEC)
    return path


def refused(outcome, status, *words):
    code, _, err = outcome
    assert code == status, err
    assert err.count("\n") == 1, err
    for word in words:
        assert word in err


def test_new_prints_a_spec_that_runs(run, tmp_path):
    code, text, err = run("new")
    assert (code, err) == (0, "")
    path = tmp_path / "new.toml"
    path.write_text(text)
    quickly = ["--workers", 1, "--set", "engine=reference", "--set", "horizon=20"]
    code, out, err = run("run", path, "--out", tmp_path / "out", *quickly)
    assert (code, err) == (0, "")
    assert "24 runs of 6 points, complete" in out


def test_run_prints_a_row_for_each_point_and_says_what_next(run, spec, tmp_path):
    code, out, err = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "small: 20 runs of 10 points, complete"
    assert lines[1].split() == [
        "protocol",
        "protocol.ttl",
        "policy.alpha",
        "group",
        "regret",
        "sd",
        "transmissions",
        "sd",
    ]
    assert [line.split()[0] for line in lines[2:12]] == ["none"] * 2 + ["fwa"] * 4 + ["gossip"] * 4
    assert "banditmesh plot" in lines[-1]
    again = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert again == (0, out, "")


def test_run_tells_a_program_as_json(run, spec, tmp_path):
    code, out, _ = run("run", spec, "--out", tmp_path / "out", "--workers", 1, "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["state"], told["n_runs"], told["n_failed"]) == ("complete", 20, 0)
    assert told["seeds"] == bm.parse_spec(SPEC).seeds


def test_set_overrides_the_spec(run, spec, tmp_path):
    code, out, _ = run(
        "run",
        spec,
        "--out",
        tmp_path / "out",
        "--workers",
        1,
        "--set",
        "replicates=1",
        "--set",
        "sweep.policy.alpha=[2]",
    )
    assert code == 0
    assert "5 runs of 5 points" in out


@pytest.mark.parametrize(
    "change, words",
    [
        (("horizon = 12", "horizons = 12"), ["line 3", "horizons is an unknown key"]),
        (("horizon = 12", 'horizon = "x"'), ["line 3", "horizon must be an integer"]),
        (("horizon = 12", "version = 7"), ["line 3", "version must be 1"]),
    ],
)
def test_a_wrong_spec_is_one_line_and_status_2(run, spec, tmp_path, change, words):
    spec.write_text(SPEC.replace(*change))
    refused(run("run", spec, "--out", tmp_path / "out"), 2, "study.toml", *words)
    assert not (tmp_path / "out").exists()


def test_failed_runs_end_with_status_1_and_are_named(monkeypatch, run, spec, tmp_path):
    def fail(*arguments, **settings):
        raise MemoryError("too large")

    monkeypatch.setattr(engine, "simulate", fail)
    refused(
        run("run", spec, "--out", tmp_path / "out", "--workers", 1), 1, "20 of 20 runs failed", "MemoryError: too large"
    )


def test_a_damaged_shard_is_told_and_computed_again(run, spec, tmp_path):
    run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    path = shards(tmp_path / "out")[0]
    path.write_bytes(path.read_bytes()[:100])
    refused(run("plot", tmp_path / "out"), 1, str(path), "damaged")
    code, _, err = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert code == 0
    assert err == (
        f"banditmesh: {path} is damaged (its bytes do not have the hash in its name): "
        f"set aside as {path.stem}.damaged, and what is missing is computed again\n"
    )


def test_a_folder_that_cannot_be_written_is_one_line(run, spec):
    refused(run("run", spec, "--out", "/proc/study", "--workers", 1), 1, "cannot write to /proc/study")


def test_plot_names_what_it_drew(run, spec, tmp_path):
    run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    code, out, err = run(
        "plot",
        tmp_path / "out",
        "--out",
        tmp_path / "pictures",
        "--x",
        "policy.alpha",
        "--kind",
        "pdf",
        "--size",
        3.3,
        4,
    )
    assert (code, err) == (0, "")
    assert str(tmp_path / "pictures" / "over-policy.alpha.pdf") in out.splitlines()
    assert {path.suffix for path in (tmp_path / "pictures").iterdir()} == {".pdf"}
    refused(run("plot", tmp_path / "nothing"), 1, "must be a study's folder")


def test_compare_takes_a_spec(run, tmp_path):
    path = tmp_path / "case.toml"
    path.write_text(
        'horizon = 5\nreplicates = 3\nnetwork = {name = "ring", n = 5}\narms = {n_arms = 4, per_agent = 2}\n'
        'sweep.protocol.name = ["none", "irs"]\n'
    )
    code, out, err = run("compare", path)
    assert (code, err) == (0, "")
    assert "Problem(5 agents, 5 links, 4 arms, 2 per agent)" in out
    assert "Paired differences from irs" in out
    code, out, _ = run("compare", path, "--json", "--against", "none")
    told = json.loads(out)
    assert told["ring"]["irs"]["messages"]["mean"] == 50
    assert told["differences"]["irs"]["messages_low"] == 50
    refused(run("compare", path, "--horizon", 3), 2, "give a spec file or --horizon, got both")
    refused(run("compare", path, "--ttl", 3), 2, "--ttl has no effect: none of the spec's protocols has one")
    refused(run("compare", path, "--against", "fwa"), 2, "against must be one of none, irs")


def test_protocols_and_ttl_combine_with_a_spec(run, tmp_path):
    path = tmp_path / "case.toml"
    path.write_text(
        'horizon = 5\nreplicates = 2\nnetwork = {name = "ring", n = 6}\narms = {n_arms = 4, per_agent = 2}\n'
        'protocol = {name = "fwa", ttl = 3}\n'
    )
    for options, protocols in (
        (["--ttl", 2], {"fwa": bm.FwA(2)}),
        (["--protocols", "irs,fwa"], {"irs": bm.IRS(), "fwa": bm.FwA(3)}),
        (["--protocols", "flooding,fwa(1)", "--ttl", 2], {"flooding": bm.Flooding(2), "fwa": bm.FwA(1)}),
    ):
        code, out, err = run("compare", path, "--json", *options)
        assert (code, err) == (0, "")
        problem = bm.Problem.random(bm.networks.ring(6), 4, 2)
        told = json.loads(out)["ring"]
        assert {name.partition("(")[0] for name in told} == set(protocols)
        for name, protocol in protocols.items():
            messages = bm.simulate(problem, protocol, horizon=5, replicates=2, seed=0).transmissions[:, -1].mean()
            assert next(told[label] for label in told if label.startswith(name))["messages"]["mean"] == messages


def test_network_by_generator_on_the_command_line(run, tmp_path):
    few = ("--arms", 4, "--per-agent", 2, "--horizon", 2, "--replicates", 1, "--protocols", "irs")
    code, out, err = run("compare", "--network", "grid:3x4", *few)
    assert (code, err) == (0, "")
    assert "Problem(12 agents, 17 links, 4 arms, 2 per agent)" in out
    refused(run("compare", "--network", "ring:a", *few), 2, "must be a number, got 'a'")
    refused(
        run("compare", "--network", "ring:5", "--weights", "ignore", *few), 2, "--weights has no effect: ring:5 is no"
    )
    (tmp_path / "links.csv").write_text("from,to,weight\na,b,0.5\n")
    refused(run("compare", "--network", tmp_path / "links.csv", *few), 2, "line 2", "--weights ignore")
    code, out, _ = run("compare", "--network", tmp_path / "links.csv", "--weights", "ignore", *few)
    assert "Problem(2 agents, 1 links, 4 arms, 2 per agent)" in out


def test_paper_prints_tables_and_writes_the_report(run, tmp_path):
    code, out, err = run("paper", "--figure", 5, "--horizon", 5, "--replicates", 2, "--out", tmp_path)
    assert (code, err) == (0, "")
    assert "published rules, horizon 5, 2 replicates" in out
    assert "Figure 5: group regret on dynamic-er" in out
    assert re.search(r"^fwa +\S+ +2,730 ± 185", out, re.MULTILINE)
    assert {"report.html", "figure5.csv", "figure5.png", "figure5.svg"} <= {path.name for path in tmp_path.iterdir()}


def test_paper_tells_a_program_as_json(run, tmp_path):
    options = ["--horizon", 5, "--replicates", 2, "--rules", "sound", "--seed", 4, "--out", tmp_path, "--json"]
    code, out, err = run("paper", "--figure", 3, *options)
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["rules"], told["seed"]) == ("sound", 4)
    row = told["figure3"]["er"]["irs"]
    assert (row["messages"]["mean"], row["messages"]["published"]) == (1530, 306_000)


@pytest.mark.parametrize("verb", ["paper", "new", "run", "plot", "compare"])
def test_every_verb_helps_with_examples(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "Example" in out
