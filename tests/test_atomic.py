"""Files are there whole or not at all."""

import os

import pytest

from banditmesh.files import atomic


@pytest.mark.parametrize("durable", [False, True])
def test_file_appears_when_it_is_whole(tmp_path, durable):
    path = tmp_path / "file"
    with atomic.writing(path, durable) as stream:
        stream.write(b"new")
        assert not path.exists()
        [partial] = tmp_path.iterdir()
        assert partial.name.startswith(".")
        assert partial.name.endswith(atomic.PARTIAL)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_whatever_goes_wrong_leaves_the_older_file_alone(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_some():
        with atomic.writing(path) as stream:
            stream.write(b"ne")
            raise error

    with pytest.raises(error):
        write_some()
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_file_has_the_mode_of_any_other_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic.writing(tmp_path / "file"):
            pass
        (tmp_path / "other").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_secret_is_for_its_owner_alone_from_the_first_byte_on(tmp_path):
    before = os.umask(0)
    try:
        with atomic.writing(tmp_path / "file", mode=atomic.PRIVATE) as stream:
            stream.write(b"secret")
            assert [one.stat().st_mode & 0o777 for one in tmp_path.iterdir()] == [0o600]
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_a_new_file_never_takes_the_place_of_another_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        atomic.create(tmp_path / "link", atomic.PRIVATE)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError), atomic.writing(tmp_path / "none" / "file"):
        pass
