"""A study's folder: whole files or none, one writer at a time, and one clear line for whatever is wrong."""

import errno
import fcntl
import json
import os
import shutil
import subprocess

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.files import atomic
from banditmesh.studies import manifest as manifest_module
from banditmesh.studies import shards as shards_module
from banditmesh.studies.manifest import layouts_of
from banditmesh.studies.pictures import draw_study
from banditmesh.studies.shards import digest, shard_name
from studies import COMMAND, ENVIRONMENT, SPEC, assert_same, shards


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return bm.run_study(bm.parse_spec(SPEC), tmp_path_factory.mktemp("whole"), workers=1)


@pytest.fixture
def study(tmp_path, whole):
    """A copy of the whole study, to be harmed."""
    shutil.copytree(whole.path, tmp_path / "study")
    return bm.Study(tmp_path / "study")


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


def test_every_flipped_bit_is_found(study):
    """In pages, in the footer and in the name: nothing but the very bytes that were written is taken."""
    path, layout = shards(study.path)[3], layouts_of(study.manifest)
    content = path.read_bytes()
    assert layout.open(path)[0] == 3
    with path.open("r+b", buffering=0) as stream:
        for place in range(len(content)):
            stream.seek(place)
            stream.write(bytes([content[place] ^ 1 << place % 8]))
            with pytest.raises(bm.StudyError, match="damaged"):
                layout.open(path)
            stream.seek(place)
            stream.write(content[place : place + 1])
    assert layout.open(path)[0] == 3


def test_flipped_bits_are_computed_again(study, whole):
    """In as many places of a shard as there are shards: pages first, then the footer with names and statistics."""
    harmed = shards(study.path)
    for number, path in enumerate(harmed):
        content = bytearray(path.read_bytes())
        content[number * len(content) // len(harmed)] ^= 1 << number % 8
        path.write_bytes(content)
    assert study.n_done == 0
    notices = []
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append), whole)
    assert len(notices) == len(harmed) == 20
    assert all(str(path) in notice for path, notice in zip(harmed, notices, strict=True))


def test_a_shard_of_another_chunk_is_not_taken(study, whole):
    """Neither under this chunk's name nor under a name that would be its own."""
    third, fifth = shards(study.path)[3], shards(study.path)[5]
    third.write_bytes(fifth.read_bytes())
    with pytest.raises(bm.StudyError, match="its bytes do not have the hash in its name"):
        study.table()
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1), whole)
    assert [path.name for path in shards(study.path)] == [path.name for path in shards(whole.path)]
    renamed = third.with_name(shard_name(3, digest(fifth.read_bytes())))
    third.unlink()
    renamed.write_bytes(fifth.read_bytes())
    with pytest.raises(bm.StudyError, match="of another chunk"):
        study.table()
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1), whole)


@pytest.mark.parametrize("change", ["column", "type", "rows", "bytes"])
def test_a_shard_of_another_schema_is_not_taken(study, whole, change):
    path = shards(study.path)[3]
    table = pq.ParquetFile(path).read()
    sink = pa.BufferOutputStream()
    if change == "column":
        table = table.drop_columns(["sent"])
    elif change == "type":
        table = table.set_column(table.schema.get_field_index("sent"), "sent", table["sent"].cast(pa.float64()))
    elif change == "rows":
        table = pa.concat_tables([table, table])
    pq.write_table(table, sink)
    content = b"no parquet" if change == "bytes" else sink.getvalue().to_pybytes()
    path.unlink()
    path.with_name(shard_name(3, digest(content))).write_bytes(content)
    with pytest.raises(bm.StudyError, match="is damaged"):
        study.table()
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1), whole)


def test_strange_files_among_the_shards_are_set_aside(study, whole):
    strangers = ["00003.parquet", "mine.parquet", shards(study.path)[3].name.replace("00003", "00099")]
    for name in strangers:
        (study.path / "shards" / name).write_bytes(shards(study.path)[3].read_bytes())
    assert study.is_complete
    with pytest.raises(bm.StudyError, match="not the name of one of the study's shards"):
        study.table()
    notices = []
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append), whole)
    assert len(notices) == 3


def test_a_shard_whose_process_was_killed_at_once_is_kept_and_checked(study, whole):
    """The hash comes with the shard, so there is no moment in which a shard lacks one."""
    change_manifest(study, state="running", n_done=0)
    kept = {path: path.stat().st_mtime_ns for path in shards(study.path)}
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1), whole)
    assert {path: path.stat().st_mtime_ns for path in shards(study.path)} == kept


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
    refused(error, "study format 99", "reads 2")


def test_a_study_begun_with_another_version_is_refused(study):
    change_manifest(study, versions={"banditmesh": "0.0.1"})
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC), study.path, workers=1)
    refused(error, "begun with banditmesh 0.0.1", bm.__version__)


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "numba",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("numpy", "networkx", "scipy", "platform")),
    ],
)
def test_continuing_with_other_versions_is_said_and_kept(study, whole, name):
    began = study.manifest["versions"] | {name: "0.0.1"}
    change_manifest(study, versions=began)
    notices = []
    bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append)
    assert notices == []  # nothing was computed
    shards(study.path)[3].unlink()
    again = bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append)
    assert len(notices) == 1
    assert f"{name} {study.manifest['versions'][name]} instead of 0.0.1" in notices[0]
    assert again.manifest["versions"] == began
    assert again.manifest["continued_with"] == [study.manifest["versions"]]
    shards(study.path)[3].unlink()
    assert_same(bm.run_study(bm.parse_spec(SPEC), study.path, workers=1, notice=notices.append), whole)
    assert len(notices) == 1


def test_workers_with_other_versions_are_said_and_kept(tmp_path, monkeypatch):
    others = manifest_module.versions() | {"numpy": "0.0.1"}
    monkeypatch.setattr(manifest_module, "versions", lambda: others)  # what workers call, not the runner
    notices = []
    study = bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1, notice=notices.append)
    assert study.manifest["versions"]["numpy"] == "0.0.1"
    assert len(notices) == 1
    assert "instead of 0.0.1" in notices[0]


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"state": "done"}, "state"),
        ({"spec": []}, "spec"),
        ({"spec": {"horizon": 12}}, "digest"),
        ({"spec": {"horizon": "12"}}, "horizon"),
        ({"spec": {"depth": 12}}, "depth"),
        ({"digest": "0"}, "digest"),
        ({"network_files": {"x": "0"}}, "fingerprint"),
        ({"fingerprint": 3}, "fingerprint"),
        ({"columns": {"protocol": "complex"}}, "columns"),
        ({"seeds": [0.5]}, "seeds"),
        ({"n_points": "ten"}, "n_points"),
        ({"n_points": -10, "n_runs": -20}, "n_points"),
        ({"n_points": 5}, "n_runs"),
        ({"n_runs": True}, "n_runs"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"chunk_size": 3}, "n_chunks"),
        ({"n_chunks": 19}, "n_chunks"),
        ({"versions": {}}, "versions"),
        ({"versions": {"banditmesh": 1}}, "versions"),
        ({"n_failed": None}, "n_failed"),
    ],
)
def test_a_manifest_is_read_against_a_schema(study, changes, word):
    change_manifest(study, **changes)
    with pytest.raises(bm.StudyError) as error:
        bm.Study(study.path)
    refused(error, "manifest.json is damaged", word, "new folder")


def test_a_manifest_without_any_of_its_keys_is_refused(study):
    path = study.path / "manifest.json"
    manifest = json.loads(path.read_text())
    optional = {"n_done", "n_failed", "latest_course"}
    for key in manifest.keys() - optional:
        path.write_text(json.dumps({name: value for name, value in manifest.items() if name != key}))
        with pytest.raises(bm.StudyError) as error:
            bm.Study(study.path)
        refused(error, "manifest.json is damaged", "new folder")


@pytest.mark.parametrize("changes", [{"seeds": [1]}, {"columns": {}}])
def test_a_manifest_that_is_not_the_specs_is_not_continued(study, changes):
    change_manifest(study, **changes)
    with pytest.raises(bm.StudyError) as error:
        bm.run_study(bm.parse_spec(SPEC), study.path, workers=1)
    refused(error, "manifest.json is damaged", *changes)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}', "[" * 100_000, '"\\ud800"', "\0"])
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
        patched.setattr(atomic.os, "fsync", full)
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


def test_what_is_there_of_an_unfinished_study_can_be_read_but_not_by_mistake(study, whole):
    for path in shards(study.path)[10:]:
        path.unlink()
    for view in (study.table, study.curves):
        with pytest.raises(bm.StudyError) as error:
            view()
        refused(error, str(study.path), "10 of 20 runs", "partial=True")
    assert study.table(partial=True).equals(whole.table()[:10])
    assert set(study.curves(partial=True)["run"]) == set(range(10))
    for path in shards(study.path):
        path.unlink()
    for view in (study.table, study.curves):
        with pytest.raises(bm.StudyError, match="no finished runs"):
            view(partial=True)


@pytest.mark.parametrize("harm", ["missing", "damaged", "twice"])
def test_a_study_is_complete_only_if_all_its_shards_are_there_and_whole(study, harm):
    assert study.is_complete
    assert repr(study) == "<Study 'small': 20 runs, complete>"
    path = shards(study.path)[7]
    if harm == "missing":
        path.unlink()
    elif harm == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        (study.path / "shards" / twin(study, path)).write_bytes(reencoded(path))
    for one in (study, bm.Study(study.path)):
        assert not one.is_complete
        with pytest.raises(bm.StudyError, match="run the study again"):
            one.table()
    assert bm.run_study(bm.parse_spec(SPEC), study.path, workers=1).is_complete


@pytest.fixture
def opened(monkeypatch):
    """The names of all shards that are opened, one for each time."""
    names = []
    true = shards_module.read_regular
    monkeypatch.setattr(shards_module, "read_regular", lambda path: names.append(path.name) or true(path))
    return names


@pytest.mark.parametrize(
    "call",
    [
        lambda study, out: study.table(),
        lambda study, out: study.curves(),
        lambda study, out: study.plot("tradeoff"),
        lambda study, out: study.plot("sweep"),
        lambda study, out: study.plot("curves"),
        lambda study, out: study._repr_html_(),
        lambda study, out: study.is_complete,
        lambda study, out: draw_study(study, out, kinds=["svg"]),
    ],
    ids=["table", "curves", "tradeoff", "sweep", "over time", "html", "complete", "all pictures"],
)
def test_a_call_opens_every_shard_once(whole, opened, call, tmp_path):
    assert whole.manifest["spec"]["record_every"]
    call(whole, tmp_path)
    assert sorted(opened) == sorted(path.name for path in shards(whole.path))


def test_a_repr_opens_nothing(whole, opened, monkeypatch):
    monkeypatch.setattr("builtins.open", None)
    monkeypatch.setattr(os, "open", None)
    assert repr(whole) == "<Study 'small': 20 runs, complete>"
    assert opened == []


def test_a_study_that_was_stopped_says_how_far_it_came(study):
    path = study.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "interrupted", "n_done": 8}))
    assert repr(bm.Study(study.path)) == "<Study 'small': 8 of 20 runs, interrupted>"


def reencoded(path):
    """The same shard in other bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(pq.ParquetFile(path).read(), sink, compression="none")
    return sink.getvalue().to_pybytes()


def twin(study, path):
    return shard_name(int(path.name[:5]), digest(reencoded(path)))


@pytest.mark.parametrize(
    "name",
    [
        b"run:1 b#c?d%20caf\xe9",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                b"run:1",
                b"a b#c?d%20",
                b"caf\xe9",
                b"file:x",
                b"run-2026-11-16T10:00:00",
                b"s3:bucket",
                "\u8def".encode(),
            )
        ),
    ],
    ids=repr,
)
def test_a_folder_may_have_any_name(tmp_path, monkeypatch, whole, name):
    """Also one that a library would take for an address, or that is no text."""
    monkeypatch.chdir(tmp_path)
    folder = os.fsdecode(name)
    study = bm.run_study(bm.parse_spec(SPEC), folder, workers=1)
    assert_same(study, whole)
    assert study.is_complete
    shards(folder)[3].write_bytes(b"harmed")
    assert_same(bm.run_study(bm.parse_spec(SPEC), folder, workers=1), whole)
    assert [os.fsencode(path.name) for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("verb", ["run", pytest.param("plot", marks=pytest.mark.slow)])
def test_a_folder_whose_name_is_no_text_can_be_printed(tmp_path, whole, verb):
    (tmp_path / "study.toml").write_text(SPEC)
    folder = tmp_path / os.fsdecode(b"file:caf\xe9")
    shutil.copytree(whole.path, folder)
    arguments = [tmp_path / "study.toml", "--out", folder] if verb == "run" else [folder]
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run([COMMAND, verb, *arguments], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "file:caf\ufffd" in done.stdout.decode()
    assert len(list(folder.glob("*.svg"))) == (0 if verb == "run" else 3)


def test_a_null_character_in_a_folders_name_is_refused(tmp_path):
    for call in (bm.Study, lambda folder: bm.run_study(bm.parse_spec(SPEC), folder)):
        with pytest.raises(bm.StudyError) as error:
            call(f"{tmp_path}/a\0b")
        refused(error, "null character")


def test_what_plot_draws_of_an_unfinished_study_is_said(study, capsys):
    shards(study.path)[3].unlink()
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(study.path)])
    said = capsys.readouterr().err
    assert ended.value.code == 0
    assert "19 of 20 runs, and only these are drawn" in said
    assert said.count("\n") == 1
