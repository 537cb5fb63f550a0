"""The edge: huge numbers and grids, hostile arguments and specs, closed and full streams. Each answer is one line."""

import io
import os
import random
import subprocess
import sys
from concurrent.futures import CancelledError, Executor, Future

import numpy as np
import pytest

import banditmesh as bm
import banditmesh.studies.spec
from banditmesh import cli
from banditmesh.machine.executors import read_name
from studies import COMMAND, SPEC

BIG = 12345678901234567890123456
SMALL = 'horizon = 5\nreplicates = 1\nnetwork = {name = "ring", n = 6}\narms = {n_arms = 4, per_agent = 2}\n'


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit status, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


def refused(text, *words, overrides=(), **limits):
    with pytest.raises(bm.SpecError) as caught:
        bm.parse_spec(SMALL + text, overrides, **limits)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    for word in words:
        assert word in message


# Huge grids


def test_a_huge_grid_is_counted_and_refused_before_anything_is_enumerated():
    thousand = list(range(1, 1001))
    text = f"sweep = {{horizon = {thousand}, every = {thousand}, policy.alpha = {thousand}}}"
    refused(text, "at most 1,000,000 runs, got 1000000000", "1,000 of policy.alpha", "--max-runs")
    spec = bm.parse_spec(SMALL + text, max_runs=10**9)
    assert (spec.n_points, spec.n_runs) == (10**9, 10**9)
    assert next(spec.points()).settings["policy"]["alpha"] == 1


def test_many_replicates_are_refused_and_no_list_of_their_seeds_is_made(tmp_path, run):
    path = tmp_path / "study.toml"
    path.write_text(SMALL)
    many = ["run", path, "--out", tmp_path / "out", "--set", "replicates=1000000000"]
    status, out, err = run(*many)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "--max-runs" in err
    assert not (tmp_path / "out").exists()
    spec = bm.parse_spec(SMALL, ["replicates=1000000000"], max_runs=10**9)
    assert spec.n_runs == 10**9
    from banditmesh.studies.manifest import new_manifest

    assert new_manifest(spec, 1000, {})["seeds"] == [spec.seed_of(replicate) for replicate in range(1000)]


def test_the_limit_is_raised_by_a_flag(tmp_path, run):
    (tmp_path / "study.toml").write_text(SPEC)
    command = ["run", tmp_path / "study.toml", "--out", tmp_path / "out", "--workers", 1, "--max-runs"]
    assert run(*command, 23)[0] == 2
    assert run(*command, 24)[0] == 0


def test_points_are_numbered_as_if_all_combinations_were_tried():
    text = """
    [sweep]
    "protocol.name" = ["none", "fwa", "gossip"]
    "network.n" = [5, 6]
    "protocol.ttl" = [1, 2]
    "faults.loss" = [0.0, 0.5]
    "protocol.fanout" = [1, 2]
    """
    found = [
        tuple(point.labels[key] for key in ("protocol", "network.n", "protocol.ttl", "faults.loss", "protocol.fanout"))
        for point in bm.parse_spec(SMALL + text).points()
    ]
    expected = [
        (name, n, ttl, loss, fanout)
        for name in ("none", "fwa", "gossip")
        for n in (5, 6)
        for ttl in ((None,) if name == "none" else (1, 2))
        for loss in ((None,) if name == "none" else (0.0, 0.5))
        for fanout in ((1, 2) if name == "gossip" else (None,))
    ]
    assert found == expected
    assert bm.parse_spec(SMALL + text).n_points == len(expected)


def test_labels_of_a_column_have_one_type():
    spec = bm.parse_spec(SMALL + "sweep.policy.alpha = [1.5, 1152921504606846976]")
    assert [type(point.labels["policy.alpha"]) for point in spec.points()] == [float, float]


# What would be ignored


def test_tables_of_faults_are_swept():
    spec = bm.parse_spec(SMALL + "sweep.faults.outages = [{down = 0.1, up = 0.5}, {down = 0.2, up = 0.5}]")
    assert [point.settings["faults"]["outages"]["down"] for point in spec.points()] == [0.1, 0.2]
    refused("sweep.faults.outages = [{dawn = 0.1, up = 0.5}]", "faults.outages.dawn is an unknown key")


@pytest.mark.parametrize(
    "text, override",
    [
        ("sweep.faults.loss = [0.0, 0.1]", "faults.loss=0.3"),
        ("sweep.faults = [{loss = 0.1}, {}]", "faults.loss=0.3"),
        ("sweep.horizon = [5, 6]", "horizon=7"),
        ('sweep.network = [{name = "ring", n = 4}]', "network.n=9"),
        ('sweep.protocol.name = ["irs", "fwa"]', "protocol=flooding"),
        ('sweep.protocol = ["irs", "fwa"]', "protocol.name=flooding"),
        ('sweep.protocol = ["fwa(2)", "flooding(3)"]', "protocol.ttl=5"),
        ('sweep.protocol = ["fwa+contested"]', "emission.name=every-pull"),
        ("sweep.protocol.ttl = [2, 3]", 'protocol={name = "fwa", ttl = 4}'),
    ],
)
def test_an_override_of_what_is_swept_is_refused(text, override):
    bm.parse_spec(SMALL + text)
    refused(text, f"--set {override} has no effect: the sweep decides", overrides=[override])


def test_an_override_that_some_points_use_is_taken():
    spec = bm.parse_spec(SMALL + 'sweep.protocol = ["fwa(2)", "flooding"]', ["protocol.ttl=5"])
    assert [point.settings["protocol"]["ttl"] for point in spec.points()] == [2, 5]


def test_loss_is_refused_where_the_spec_sweeps_it(tmp_path, run):
    (tmp_path / "study.toml").write_text(SMALL + "sweep.faults.loss = [0.0, 0.1]")
    status, out, err = run("run", tmp_path / "study.toml", "--out", tmp_path / "out", "--loss", "0.5")
    assert (status, out) == (2, "")
    assert "faults.loss=0.5 has no effect" in err


@pytest.mark.parametrize("overrides", [["horizon=5", "horizon=6"], ["protocol.ttl=3", "protocol=irs"]])
def test_an_override_that_another_replaces_is_refused(overrides):
    refused("", "must not replace", overrides=overrides)


def test_an_override_is_one_value():
    refused("", "horizon must be an integer", overrides=["horizon=5\nseed=3"])


@pytest.mark.parametrize(
    "text",
    [
        '[sweep]\nnetwork = [{name = "ring", n = 4}]\n"network.n" = [5, 6]',
        '[sweep]\nprotocol = ["fwa(4)"]\n"protocol.ttl" = [2, 3]',
        '[sweep]\nprotocol.ttl = [4]\n"protocol.ttl" = [2, 3]',
    ],
)
def test_swept_keys_that_set_the_same_are_refused(text):
    refused(text, "must not set what another swept key sets too")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["compare", "--protocols", "none,irs", "--ttl", "3"], "--ttl has no effect"),
        (["compare", "--protocols", "fwa(2),flooding(3)", "--ttl", "3"], "--ttl has no effect"),
        (["compare", "--protocols", "none", "--loss", "0.1"], "--loss has no effect"),
        (["compare", "--protocols", "none,irs", "--against", "fwa"], "--against must be one of none, irs; got 'fwa'"),
        (["compare", "--protocols", "irs", "--against", "irs"], "--against has no effect"),
        (["bounds", "--replicates", "3"], "--replicates has no effect: without --plot"),
        (["bounds", "--cover", "greedy", "--time-limit", "3"], "--time-limit has no effect"),
        (["compare", "--preset", "beyond", "--horizon", "3"], "--preset decides networks"),
    ],
)
def test_options_that_nothing_uses_are_refused(run, arguments, words):
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize("verb", ["compare", "bounds", "frontier"])
def test_a_spec_goes_with_no_option_that_it_decides(run, tmp_path, verb):
    (tmp_path / "study.toml").write_text(SMALL)
    besides = {"--preset", "--against", "--plot", "--json", "--debug", "--alpha", "--cover", "--time-limit", "--all"}
    besides |= {"--out", "--tolerance", "--max-messages-per-round", "--max-link-load", "--live", "--node-toml"}
    # A spec's problem may be combined with other protocols and policies.
    besides |= {"--protocols", "--policies", "--ttl", "--ttls", "--emissions"}
    # What is shown, at which pace, and how a frontier is worked out, no spec says.
    besides |= {"--agents", "--rounds-per-second", "--max-messages-per-second", "--max-link-load-per-second"}
    besides |= {"--keep", "--workers", "--executor", "--prune"}
    for parameter in cli.cli.get_command(None, verb).params:
        option = parameter.opts[0]
        if option.startswith("--") and option not in besides:
            values = {"--rules": ["sound"], "--outages": ["0.1", "0.1"], "--network": ["er"]}.get(option, ["1"])
            status, out, err = run(verb, tmp_path / "study.toml", option, *values)
            assert (status, out) == (2, ""), option
            assert option in err


def test_differences_are_shown_of_one_replicate(run, tmp_path):
    small = ["--arms", 4, "--per-agent", 2, "--horizon", 3, "--replicates", 1, "--protocols", "none,irs"]
    status, out, _ = run("compare", *small, "--against", "none")
    assert status == 0
    assert out.splitlines()[-1].split()[-1] == "+918"


# Tracebacks


@pytest.mark.parametrize(
    "text, words",
    [
        ("sweep.horizon.x.y = [1]", "sweep.horizon.x.y must be over a key of a table"),
        ("sweep.network.p.q.r = [1]", "sweep.network.p.q.r is an unknown key"),
        ("sweep.network.n.q.r = [1]", "network.n must be a table to sweep over network.n.q.r, got 6"),
        ('policy = {name = "ucb", alpha = 1.0}\nsweep.policy.name.x = [1]', "policy.name must be a table"),
        (f"seed = {BIG}", "integers must be at most"),
        (f"sweep.network.n = [5, {BIG}]", "integers must be at most"),
        (f"faults.link_cap = -{BIG}", "integers must be at most"),
        (f"seed = {'9' * 5000}", "not valid TOML"),
        (f"x = {'[' * 3000}{']' * 3000}", "deep"),
        (f"{'.'.join(['a'] * 3000)} = 1", "deep"),
        (f"x = {'[' * 100}{']' * 100}", "deep"),
        ('"a\\nb" = 1', "a b is an unknown key"),
        ("record_every = 1979-05-27", "record_every must be an integer"),
        ("sweep.horizon = [1979-05-27]", "horizon must be an integer"),
        ("policy.name = [1]", "policy.name must be one of"),
        ("version = [1]", "version must be 1"),
    ],
    ids=lambda text: text[:40],
)
def test_hostile_specs_are_refused_in_one_line(text, words):
    refused(text, words)


@pytest.mark.parametrize("override", [f"horizon={BIG}", "a" + ".a" * 3000 + "=1", f"x={'[' * 3000}", "network.path="])
def test_hostile_overrides_are_refused_in_one_line(override):
    with pytest.raises(bm.SpecError) as caught:
        bm.parse_spec(SMALL, [override])
    assert "\n" not in str(caught.value)


def test_an_empty_path_is_refused(tmp_path):
    text = 'network = {name = "file", path = ""}'
    with pytest.raises(bm.SpecError, match="got a folder"):
        bm.parse_spec(text, folder=tmp_path)


PATH = bm.networks.path(3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bm.networks.er(BIG, 0.1, seed=0),
        lambda: bm.networks.er(10**6, 1e-9, seed=0),
        lambda: bm.networks.ba(10**9, 2, seed=0),
        lambda: bm.networks.ba(10**7, 10**6, seed=0),
        lambda: bm.networks.sbm([10**6] * 2, 0.1, 0.1, seed=0),
        lambda: bm.networks.watts_strogatz(10**9, 2, 0.1, seed=0),
        lambda: bm.networks.grid(10**6, 10**6),
        lambda: bm.networks.path(10**9),
        lambda: bm.networks.ring(BIG),
        lambda: bm.networks.star(BIG),
        lambda: bm.networks.complete(10**6),
        lambda: bm.networks.random_regular(10**7, 10**6, seed=0),
        lambda: bm.networks.random_geometric(10**6, 2.0, seed=0),
        lambda: bm.networks.sparse_er(BIG, 3.0, seed=0),
        lambda: bm.networks.sparse_ba(BIG, 2, seed=0),
        lambda: bm.Problem.random(PATH, BIG, 1, seed=0),
        lambda: bm.Problem.random(PATH, 10**9, 10**9, seed=0),
        lambda: bm.Problem.random(PATH, 3, BIG, seed=0),
        lambda: bm.reproduce("3", instances=10**9),
        *(
            lambda name=name: bm.simulate(bm.Problem.random(PATH, 2, 1, seed=0), bm.FwA(2), **{name: BIG})
            for name in ("horizon", "replicates", "record_every", "every", "threads")
        ),
    ],
)
def test_huge_numbers_are_refused_in_one_line(call):
    with pytest.raises(bm.BanditmeshError) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_seeds_may_be_of_any_size():
    problems = [bm.Problem.random(PATH, 2, 1, seed=seed) for seed in (BIG, BIG % 2**64)]
    assert not np.array_equal(problems[0].means, problems[1].means)


@pytest.mark.parametrize("name", ["garbage", "dask:", "ray:", ":", "", "dask;x", 3])
def test_a_wrong_executor_is_refused_before_the_study_begins(tmp_path, name):
    with pytest.raises(bm.errors.InputError, match="executor must be dask"):
        bm.run_study(bm.parse_spec(SMALL), tmp_path / "out", executor=name)
    assert not (tmp_path / "out").exists()


def test_workers_of_a_cluster_are_its_own():
    with pytest.raises(bm.errors.InputError, match="workers are for processes on this machine"):
        read_name("dask:tcp://127.0.0.1:9", 3)


class Losing(Executor):
    """Loses whatever it is given, in the way of some cluster."""

    def __init__(self, error):
        self.error = error

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    "error, words",
    [
        (CancelledError(), "perhaps because its scheduler is gone"),
        (RuntimeError("Attempted to run task on 4\ndifferent workers"), "lost with RuntimeError: Attempted to run"),
    ],
)
def test_lost_workers_and_schedulers_are_one_line(tmp_path, error, words):
    with pytest.raises(bm.StudyError, match=words) as caught:
        bm.run_study(bm.parse_spec(SMALL), tmp_path, executor=Losing(error))
    assert "0 of 1 runs are kept" in str(caught.value)
    assert "\n" not in str(caught.value)


# The handler


@pytest.mark.parametrize(
    "error, status, line",
    [
        (ZeroDivisionError("x\ny"), 1, "unexpected ZeroDivisionError: x y; --debug shows where"),
        (RecursionError(), 1, "unexpected RecursionError;"),
        (MemoryError(), 1, "not enough memory"),
        (BrokenPipeError(), 1, "the output is no longer read"),
        (OSError(28, "No space left on device", "/x\x1b[31m"), 1, "No space left on device: /x\\x1b[31m"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_whatever_is_left_becomes_one_line(run, monkeypatch, error, status, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(cli.cli, "main", fail)
    code, out, err = run("new")
    assert (code, out, err.count("\n")) == (status, "", 1)
    assert line in err


@pytest.mark.parametrize("arguments", [["--debug", "compare"], ["compare", "--debug"]])
def test_debug_shows_where_an_error_comes_from(run, arguments):
    status, out, err = run(*arguments, "--horizon", "0")
    assert (status, out) == (2, "")
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("banditmesh: horizon must be")


def test_debug_may_be_asked_for_by_the_environment(run, monkeypatch):
    monkeypatch.setenv("BANDITMESH_DEBUG", "1")
    assert "Traceback" in run("compare", "--horizon", "0")[2]


@pytest.mark.parametrize(
    "arguments, streams, status, told",
    [
        ("new", ">&-", 0, ""),
        ("new", ">/dev/full", 1, "No space left on device"),
        ("compare --horizon none", "2>&-", 2, ""),
        ("compare --horizon none", "2>/dev/full", 2, ""),
        ("compare --horizon none", ">&- 2>&- <&-", 2, ""),
    ],
)
def test_closed_and_full_streams(arguments, streams, status, told):
    done = subprocess.run(
        ["sh", "-c", f'"$0" {arguments} {streams}', COMMAND], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == status
    assert done.stderr.count("\n") == bool(told)
    assert told in done.stderr


def test_characters_that_the_terminal_lacks_do_not_fail(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    cli._open_streams()
    print("1 ± 2", file=stream, flush=True)
    assert stream.buffer.getvalue() == b"1 \\xb1 2\n"


def test_numba_that_compiles_nothing_leaves_the_reference():
    code = """
import banditmesh as bm
problem = bm.Problem.random(bm.networks.path(3), 2, 1, seed=0)
print(bm.simulate(problem, bm.FwA(2), horizon=3, seed=0).engine)
try:
    bm.simulate(problem, bm.FwA(2), horizon=3, seed=0, engine="compiled")
except bm.errors.UnsupportedError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.stdout.startswith(
        "reference\nthe compiled engine does not run this: numba compiles nothing while NUMBA_"
    )


# Anything


VALUES = ["", "0", "-1", "1e400", "nan", "inf", str(BIG), "9" * 5000, "x" * 300, "a,b", "(", "fwa(", "fwa(1)+"]
VALUES += ["é\udcff", "[]", "{}", "../..", "/dev/null", "/", "fwa(2)+growth(nan)", "tree(0)", "--", "-", "%s", "\n"]


#: What each verb refuses after it has read everything else, so that nothing runs for long.
LAST = {
    "bounds": ["--ttl", "0"],
    "compare": ["--ttl", "0"],
    "frontier": ["--ttl", "0"],
    "new": ["--nonsense"],
    "paper": ["--horizon", "0"],
    "plot": ["nowhere"],
    "run": ["--out", "nowhere/none", "--set", "every=0"],
}


def test_hostile_arguments_are_answered_in_one_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(SMALL)
    draw = random.Random(11)
    for _ in range(300):
        verb = draw.choice(sorted(LAST))
        options = [one.opts[0] for one in cli.cli.get_command(None, verb).params if one.opts[0].startswith("--")]
        arguments = [verb] + ["study.toml"] * (verb == "run" or draw.random() < 0.2)
        for option in draw.sample(options, k=min(len(options), draw.choice([1, 1, 2]))):
            if option not in ("--debug", "--json", "--fail-fast", "--all"):
                arguments += [option, draw.choice(VALUES)]
        status, out, err = run(*arguments, *LAST[verb])
        assert (status in (1, 2), out) == (True, ""), arguments
        assert "--debug" not in err, (arguments, err)
        assert "Traceback" not in err, arguments
        assert err.count("\n") == 1, (arguments, err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.toml"]


KEYS = [*bm.studies.spec.Settings.__struct_fields__, "network.n", "network.path", "network.seed", "dynamics.p"]
KEYS += ["arms.means", "arms.n_arms", "arms.sigma", "policy.alpha", "protocol.ttl", "emission.factor", "faults.loss"]
KEYS += ["faults.outages", "faults.outages.up", "faults.corruption.kind", "nonsense", "network.x.y", "horizon.x"]
TOML = ["0", "-1", "1e400", "nan", "-inf", str(2**63 - 1), str(BIG), "true", '""', '"x\\ny"', "[]", "[[]]", "[1, 1.5]"]
TOML += ["{}", "{name = 3}", '{name = "file", path = ""}', '{name = "ring"}', "07:32:00", '["fwa", {name = "irs"}]']
TOML += ['"fwa(2)+growth(nan)"', '"tree(0)"', '"edge-markovian"', "[{}, {down = 2}]", "[true, 1]", "[nan, 0.5]"]


def test_hostile_specs_are_taken_or_refused_in_one_line(tmp_path):
    draw = random.Random(12)
    told = []
    for _ in range(600):
        overrides = [
            f"{draw.choice(['', '', 'sweep.'])}{draw.choice(KEYS)}={draw.choice(TOML)}"
            for _ in range(draw.choice([1, 1, 2]))
        ]
        try:
            spec = bm.parse_spec(SMALL, overrides, folder=tmp_path)
        except Exception as error:
            told.append((overrides, error))
        else:
            assert len(list(spec.points())) == spec.n_points
            assert spec.digest
    for overrides, error in told:
        assert isinstance(error, bm.SpecError), overrides
        assert "\n" not in str(error), overrides
    assert 0 < len(told) < 600
