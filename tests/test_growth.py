"""A study that grows: nothing that is stored is lost, computed again or given another number."""

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import banditmesh as bm
from studies import COMMAND, ENVIRONMENT, shards

#: 4 runs of 2 points, and how they become 18 of 6.
SPEC = """
horizon = 12
replicates = 2
engine = "reference"
record_every = 5
network = {name = "ring", n = 5}
arms = {n_arms = 4, per_agent = 2}
sweep.protocol = {name = ["none", "fwa"], ttl = [1]}
sweep.policy.alpha = [1.0]
"""
MORE = ["replicates=3", "sweep.protocol.ttl=[2, 1]", "sweep.policy.alpha=[4.0, 1.0]"]
KEYS = ["protocol", "protocol.ttl", "policy.alpha", "replicate"]


class Counting(ThreadPoolExecutor):
    """One thread that notes which runs it was given."""

    def __init__(self):
        super().__init__(1)
        self.runs = []

    def submit(self, fn, /, chunk):
        self.runs += [run for work in chunk.work for run, *_ in work.runs]
        return super().submit(fn, chunk)


def run(folder, *overrides, **settings):
    with Counting() as pool:
        study = bm.run_study(bm.parse_spec(SPEC, overrides), folder, executor=pool, workers=1, **settings)
    return study, pool.runs


def contents(study):
    """All runs and curves by what they are of, whatever their numbers."""
    frames = (study.table(), study.curves())
    ordered = [one.sort_values([*KEYS, *{"round"} & set(one)]) for one in frames]
    return [one.drop(columns=["run", "point"]).values.tolist() for one in ordered]


@pytest.fixture(scope="module")
def at_once(tmp_path_factory):
    """The large study, run from beginning to end."""
    return run(tmp_path_factory.mktemp("at-once"), *MORE)[0]


def test_a_study_that_grows_is_the_larger_study_and_computes_only_what_is_new(at_once, tmp_path):
    small, first = run(tmp_path)
    table = small.table()
    kept = {path: path.read_bytes() for path in shards(tmp_path)}
    notices = []
    large, second = run(tmp_path, *MORE, notice=notices.append)
    assert notices == [f"the study in {tmp_path} grows from 4 to 18 runs"]
    assert first + second == list(range(18))
    assert {path: path.read_bytes() for path in kept} == kept
    assert large.is_complete
    assert str(contents(large)) == str(contents(at_once))
    assert large.table()[:4].equals(table)
    assert (tmp_path / "table.csv").read_text().count("\n") == 19
    # A point that was there keeps its number, and new ones come after it.
    labels = large.table().groupby("point")[KEYS[:3]].nunique(dropna=False)
    assert (labels == 1).all().all()
    assert large.table()["point"].max() == 5


def test_a_study_grows_step_by_step_and_then_has_nothing_left_to_run(at_once, tmp_path):
    steps = [MORE[:0], MORE[:1], MORE[:2], MORE]
    counts = [len(run(tmp_path, *step)[1]) for step in steps]
    assert sum(counts) == 18
    assert all(counts)
    assert str(contents(bm.Study(tmp_path))) == str(contents(at_once))
    again, runs = run(tmp_path, *MORE)
    assert runs == []
    # What was asked for at first is there, and more.
    notices = []
    again, runs = run(tmp_path, notice=notices.append)
    assert runs == []
    assert "has 18 runs, more than the spec asks for" in notices[0]
    assert again.is_complete


def test_a_study_killed_before_and_after_it_grew_is_the_same(at_once, tmp_path):
    """Across processes: killed while it is small, grown, killed again, and continued."""
    (tmp_path / "spec.toml").write_text(SPEC)
    command = [COMMAND, "run", "spec.toml", "--out", "out"]
    large = [argument for override in MORE for argument in ("--set", override)]
    for arguments in (["--workers", "1"], ["--workers", "2", *large]):
        n_before = len(shards(tmp_path / "out"))
        process = subprocess.Popen(
            [*command, *arguments], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while len(shards(tmp_path / "out")) < n_before + 1 and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    kept = shards(tmp_path / "out")
    assert len(kept) >= 2
    study, _ = run(tmp_path / "out", *MORE)
    assert set(kept) <= set(shards(tmp_path / "out"))
    assert str(contents(study)) == str(contents(at_once))


def test_whole_numbers_may_be_joined_by_others(tmp_path):
    study, _ = run(tmp_path, "sweep.policy.alpha=[1, 3]", "sweep.protocol.ttl=[1]")
    assert study.table()["policy.alpha"].dtype == "int64"
    study, runs = run(tmp_path, "sweep.policy.alpha=[1, 3, 2.5]", "sweep.protocol.ttl=[1]")
    assert len(runs) == 4
    assert sorted(study.table()["policy.alpha"].unique()) == [1.0, 2.5, 3.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["replicates=3", "sweep.protocol.ttl=[2]"], ["sweep.protocol.ttl", "more of replicates but less of"]),
        (["replicates=3", "horizon=13"], ["horizon differs"]),
        (["sweep.arms.per_agent=[2, 3]"], ["sweep.arms.per_agent differs", "grows by replicates and by values"]),
        (["sweep.policy.alpha=[4.0]"], ["more of sweep.policy.alpha but less of sweep.policy.alpha"]),
    ],
)
def test_what_is_no_growth_is_another_study(tmp_path, change, words):
    run(tmp_path)
    with pytest.raises(bm.StudyError) as error:
        run(tmp_path, *change)
    assert "holds another study" in str(error.value)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)
    assert bm.Study(tmp_path).is_complete


def test_swept_keys_in_another_order_continue_with_the_order_that_was_begun(tmp_path):
    """The order of a file's keys decides the numbers of runs, but not what is run."""
    text = SPEC.replace("alpha = [1.0]", "alpha = [1.0, 3.0]").replace("ttl = [1]", "ttl = [1, 2]")
    whole = bm.run_study(bm.parse_spec(text), tmp_path, workers=1).table()
    for path in shards(tmp_path)[1:]:
        path.unlink()
    lines = text.strip().splitlines()
    turned = bm.parse_spec("\n".join([*lines[:-2], lines[-1], lines[-2]]))
    assert list(turned.grid) != list(bm.parse_spec(text).grid)
    assert bm.run_study(turned, tmp_path, workers=1).table().equals(whole)


def test_a_file_that_changed_is_no_growth(tmp_path):
    (tmp_path / "net.txt").write_text("0 1\n1 2\n")
    spec = SPEC.replace('{name = "ring", n = 5}', '{name = "file", path = "net.txt"}')
    bm.run_study(bm.parse_spec(spec, folder=tmp_path), tmp_path / "out", workers=1)
    (tmp_path / "net.txt").write_text("0 1\n0 2\n")
    with pytest.raises(bm.StudyError, match="files of networks or arms have changed"):
        bm.run_study(bm.parse_spec(spec, ["replicates=3"], folder=tmp_path), tmp_path / "out", workers=1)


def test_a_manifest_that_lies_about_its_growth_is_damaged(tmp_path):
    run(tmp_path)
    run(tmp_path, "replicates=3")
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    for changes in ({"n_chunks": 3}, {"n_runs": 6, "n_points": 3}, {"digest": "0"}):
        changed = manifest | {"grown_from": [manifest["grown_from"][0] | changes]}
        path.write_text(json.dumps(changed))
        with pytest.raises(bm.StudyError, match="damaged"):
            bm.Study(tmp_path)


def test_a_study_of_the_format_before_growth_is_read_and_grows(tmp_path):
    run(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    old = {key: value for key, value in manifest.items() if key not in ("grown_from", "own_modules")}
    path.write_text(json.dumps(old | {"version": 2}))
    assert bm.Study(tmp_path).is_complete
    study, runs = run(tmp_path, "replicates=3")
    assert (len(runs), study.is_complete, study.manifest["version"]) == (2, True, 3)


def test_what_was_read_before_it_grew_says_so(tmp_path):
    small, _ = run(tmp_path)
    run(tmp_path, "replicates=3")
    with pytest.raises(bm.StudyError, match="has grown since it was read; read it again"):
        small.table()
