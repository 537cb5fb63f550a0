"""Whatever a user names as a file is a regular file, or is refused in a line before it is opened."""

import os
import socket

import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.errors import FileError, StudyError
from banditmesh.files import regular
from studies import SPEC

FILE_SPEC = 'horizon = 3\nreplicates = 1\narms = {n_arms = 2, per_agent = 2}\nnetwork = {name = "file", path = "%s"}\n'
READERS = {
    "network": bm.networks.read,
    "contact trace": bm.networks.read_contact_trace,
    "result": bm.Result.load,
    "spec": bm.read_spec,
    "trace": lambda path: list(bm.read_trace(path)),
    "spec with a network": lambda path: bm.parse_spec(FILE_SPEC % path),
}
KINDS = {"pipe": "a pipe, not a regular file", "socket": "a socket, not a regular file", "folder": "folder|directory"}


@pytest.fixture(params=KINDS)
def special(request, tmp_path, monkeypatch):
    """A path of something that is no file, and what is said of it."""
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        monkeypatch.chdir(tmp_path)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(request.param)
    else:
        path.mkdir()
    # A reader that opens a pipe would wait for ever.
    monkeypatch.setattr(regular, "open", lambda *_: pytest.fail("opened"), raising=False)
    return path, KINDS[request.param]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_by_every_reader(reader, special):
    path, words = special
    with pytest.raises((FileError, bm.SpecError), match=words) as caught:
        READERS[reader](path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_a_device_is_refused_by_every_reader(reader):
    with pytest.raises((FileError, bm.SpecError), match="a device, not a regular file"):
        READERS[reader](os.devnull)


@pytest.mark.parametrize("verb", ["run", "bounds", "compare"])
def test_the_command_line_refuses_a_pipe(verb, tmp_path, capsys):
    os.mkfifo(tmp_path / "spec.toml")
    out = ["--out", str(tmp_path / "out")] if verb == "run" else []
    with pytest.raises(SystemExit) as ended:
        main([verb, str(tmp_path / "spec.toml"), *out])
    assert ended.value.code == 2
    assert "a pipe, not a regular file" in capsys.readouterr().err


def test_a_network_file_that_becomes_a_pipe_is_refused_before_anything_runs(tmp_path):
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("0 1\n1 2\n")
    (tmp_path / "study.toml").write_text(FILE_SPEC % "one.txt" + 'sweep.network.path = ["one.txt", "two.txt"]')
    spec = bm.read_spec(tmp_path / "study.toml")
    (tmp_path / "two.txt").unlink()
    os.mkfifo(tmp_path / "two.txt")
    with pytest.raises(StudyError, match=r"two\.txt: a pipe, not a regular file"):
        bm.run_study(spec, tmp_path / "out", workers=1)


def test_a_study_with_a_pipe_among_its_files_is_refused(tmp_path):
    bm.run_study(bm.parse_spec(SPEC), tmp_path, workers=1)
    (tmp_path / "manifest.json").unlink()
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(StudyError, match="a pipe, not a regular file"):
        bm.Study(tmp_path)


def test_a_link_counts_as_what_it_leads_to(tmp_path):
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n")
    (tmp_path / "link.txt").symlink_to("ring.txt")
    assert regular.read_regular(tmp_path / "link.txt") == b"0 1\n1 2\n"
    (tmp_path / "null.txt").symlink_to(os.devnull)
    with pytest.raises(FileError, match="a device"):
        bm.networks.read(tmp_path / "null.txt")
