"""A study's folder: whole files or none, one writer at a time, and one clear line for whatever is wrong."""

import errno
import fcntl
import json
import os

import pandas as pd
import pyarrow.parquet as pq
import pytest

import banditmesh as bm
from banditmesh.experiments import store
from studies import SPEC, assert_same, shards


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return bm.run_study(bm.parse_spec(SPEC), tmp_path_factory.mktemp("whole"), workers=1)


@pytest.fixture
def study(tmp_path):
    return bm.run_study(bm.parse_spec(SPEC), tmp_path / "study", workers=1)


def refused(error, *words):
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_the_manifest_has_spec_seeds_versions_and_state(study):
    manifest = json.loads((study.path / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert manifest["seeds"] == bm.parse_spec(SPEC).seeds
    assert manifest["spec"]["horizon"] == 12
    assert manifest["versions"]["banditmesh"] == bm.__version__
    assert {"python", "numpy", "numba", "networkx", "pyarrow"} <= set(manifest["versions"])
    assert (manifest["n_points"], manifest["n_runs"], manifest["n_done"]) == (10, 20, 20)


def test_table_csv_holds_the_table(study):
    read = pd.read_csv(study.path / "table.csv")
    pd.testing.assert_frame_equal(read, study.table(), check_dtype=False, rtol=1e-15)


def test_the_shards_are_plain_parquet(study):
    assert pd.read_parquet(study.path / "shards")["regret"].tolist() == study.table()["regret"].tolist()


def test_nothing_half_written_is_left(study):
    assert sorted(path.name for path in study.path.iterdir()) == [".lock", "manifest.json", "shards", "table.csv"]


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_shard_cut_short_is_named_when_read_and_computed_again_when_run(study, whole, keep):
    path = shards(study.path)[3]
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(bm.StudyError) as error:
        study.table()
    refused(error, str(path), "damaged", "run the study again")
    notices = []
    again = bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append)
    assert_same(again, whole)
    assert len(notices) == 1
    assert str(path) in notices[0]
    assert path.with_suffix(".damaged").exists()


def test_a_flipped_bit_is_not_read_as_data(study):
    path = shards(study.path)[3]
    content = bytearray(path.read_bytes())
    columns = pq.read_metadata(path).row_group(0)
    regret = next(c for c in map(columns.column, range(columns.num_columns)) if c.path_in_schema == "regret")
    begin = regret.dictionary_page_offset or regret.data_page_offset
    content[begin + regret.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(bm.StudyError, match="damaged"):
        study.table()


def test_a_shard_of_another_study_is_not_taken(study, whole, tmp_path):
    other = bm.run_study(bm.parse_spec(SPEC, ["seed=1"]), tmp_path / "other", workers=1)
    shards(study.path)[3].write_bytes(shards(other.path)[3].read_bytes())
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1), whole)


def test_two_runs_on_one_folder_are_refused(study):
    with open(study.path / ".lock", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(bm.StudyError) as error:
            bm.run_study(bm.parse_spec(SPEC), study.path, workers=1)
    refused(error, str(study.path), "in use by another run")
    assert bm.run_study(bm.parse_spec(SPEC), study.path, workers=1).is_complete


def test_another_study_in_the_folder_is_refused(study):
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC, ["horizon=13"]), study.path, workers=1)
    refused(error, "another study", "horizon differs")


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    refused(error, "must be empty or hold a study", "thesis.tex")


def change_manifest(study, **changes):
    manifest = json.loads((study.path / "manifest.json").read_text())
    (study.path / "manifest.json").write_text(json.dumps(manifest | changes))


def test_a_study_of_another_format_is_refused(study):
    change_manifest(study, version=99)
    with pytest.raises(bm.StudyError) as error:
        bm.Study(study.path)
    refused(error, "study format 99", "reads 1")


def test_a_study_begun_with_another_version_is_refused(study):
    change_manifest(study, versions={"banditmesh": "0.0.1"})
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC), study.path, workers=1)
    refused(error, "begun with banditmesh 0.0.1", bm.__version__)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}'])
def test_a_damaged_manifest_is_named(study, content):
    (study.path / "manifest.json").write_text(content)
    with pytest.raises(bm.StudyError) as error:
        bm.Study(study.path)
    refused(error, "manifest.json", "damaged")


def test_a_folder_without_a_study_is_named(tmp_path):
    with pytest.raises(bm.StudyError) as error:
        bm.Study(tmp_path)
    refused(error, str(tmp_path), "run a study first")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC), tmp_path / "file" / "study", workers=1)
    refused(error, "cannot write to", "choose a folder that can be written")


def test_a_full_disk_is_one_line_and_what_was_finished_is_kept(monkeypatch, tmp_path, whole):
    true, written = os.fsync, []

    def full(handle):
        written.append(handle)
        if len(written) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        true(handle)

    with monkeypatch.context() as patched:
        patched.setattr(store.os, "fsync", full)
        with pytest.raises(bm.StudyError) as error:
            bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    refused(error, "No space left on device", "make room and run again")
    kept = len(shards(tmp_path))
    assert 0 < kept < 20
    assert not list(tmp_path.rglob("*.partial"))
    assert_same(bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1), whole)


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / ".00000.parquet.x.partial").write_bytes(b"half")
    bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    assert not list(tmp_path.rglob("*.partial"))


def test_an_unfinished_study_can_be_read(tmp_path):
    study = bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    for path in shards(tmp_path)[10:]:
        path.unlink()
    assert len(study.table()) == 10
    for path in shards(tmp_path):
        path.unlink()
    for view in (study.table, study.curves):
        with pytest.raises(bm.StudyError, match="no finished runs"):
            view()
