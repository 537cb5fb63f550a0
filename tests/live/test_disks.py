"""A disk that fails under a running node: nothing is acknowledged that is not written, everything else goes on.

Whatever goes wrong, `observe` answers 503 with the reason, `/readyz` says degraded, and choosing and hearing go on.
"""

import resource
import shutil
from contextlib import suppress

import pytest
from embedded import a_node, estimates, is_linked, report, run, until
from processes import NodeProcess, can_mount, wait_until
from sidecars import Beside
from sidecars import a_node as an_api_node

from banditmesh.errors import SidecarError, StoreError
from banditmesh.live import Client


@pytest.fixture
def neighbour(tmp_path):
    with Beside(an_api_node(tmp_path / "b", name="b", listen="127.0.0.1:0", accept="members")) as b:
        yield b


def observe(beside, arm, reward, key):
    return beside.ask("POST", "/v1/observe", {"arm": arm, "reward": reward, "key": key})


def counts(client):
    return {arm["name"]: (arm["own_count"], arm["heard_count"]) for arm in client.state()["arms"]}


def check_degraded(client, neighbour, key, reason):
    """A node that cannot write says so, and goes on choosing and hearing."""
    before = counts(client)
    for _ in range(2):
        with pytest.raises(SidecarError, match=reason):
            client.observe(None, 0.5, arm="red", key=f"{key} fails")
    assert client.ready().startswith("degraded: ")
    assert client.choose().arm in before
    observe(neighbour, "blue", 1.0, key)
    own, heard = before["blue"]
    wait_until(lambda: counts(client)["blue"] == (own, heard + 1))
    assert counts(client)["red"] == before["red"]


def check_works_again(client, patient, key):
    """What could not be written is counted once, when it is asked for again."""
    [own, _] = counts(client)["red"]
    assert patient.observe(None, 0.5, arm="red", key=f"{key} fails") == "counted"
    assert client.observe(None, 0.5, arm="red", key=f"{key} fails") == "already_counted"
    assert client.ready() is None
    assert counts(client)["red"][0] == own + 1


class Limit:
    """No file of a process may grow beyond a page."""

    def __init__(self, node):
        self._node = node

    def fill(self):
        resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def empty(self):
        resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class SmallDisk:
    """Something else fills the small disk that a process has for its state."""

    def __init__(self, node):
        self._path = f"/proc/{node.pid}/root{node.folder}/state/filler"

    def fill(self):
        with open(self._path, "ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def empty(self):
        open(self._path, "wb").close()


def test_disk_that_takes_nothing_is_a_reason_that_passes(tmp_path, neighbour):
    a = NodeProcess(tmp_path / "a", "a", neighbours={"b": neighbour.node.address})
    with a, a.client(patience=0.0) as client, a.client(patience=60.0) as patient:
        wait_until(lambda: is_up(client))
        disk = Limit(a)
        for key in ("once", "twice"):
            assert client.observe(None, 0.5, arm="red", key=f"before {key}") == "counted"
            disk.fill()
            check_degraded(client, neighbour, key, "cannot write .*state.db: ")
            disk.empty()
            check_works_again(client, patient, key)
        known = counts(client)["red"]
        a.kill()
        a.start()
        assert counts(client)["red"] == known == (4, 0)


def test_disk_that_is_filled_again_and_again_loses_nothing_acknowledged(tmp_path):
    # Each failure frees what the log took, so that some observations find room until that is taken, too.
    mounts = can_mount(tmp_path)
    a = NodeProcess(tmp_path / "a", "a", disk="1M" if mounts else None)
    with a, a.client(patience=0.0) as client:
        disk = SmallDisk(a) if mounts else Limit(a)
        answers, reasons = [], []
        for number in range(40):
            disk.fill()
            try:
                answers.append(client.observe(None, 0.5, arm="red", key=str(number)))
            except SidecarError as error:
                reasons.append(str(error))
                answers.append("failed")
        assert all(reason.startswith("cannot write ") for reason in reasons)
        assert 5 < answers.count("failed") <= client.state()["counters"]["failed_writes"]
        assert counts(client)["red"] == (answers.count("counted"), 0)
        disk.empty()
        with a.client(patience=60.0) as patient:
            again = [patient.observe(None, 0.5, arm="red", key=str(number)) for number in range(40)]
        assert again == ["counted" if answer == "failed" else "already_counted" for answer in answers]
        assert counts(client)["red"] == (40, 0)
        assert client.ready() is None


@pytest.mark.parametrize("way", ["first", "left", "killed"])
def test_node_starts_on_a_disk_that_takes_nothing(tmp_path, neighbour, way):
    a = NodeProcess(tmp_path / "a", "a", neighbours={"b": neighbour.node.address})
    if way != "first":
        with a, a.client() as client:
            assert client.observe(None, 0.5, arm="red", key="before") == "counted"
            getattr(a, "leave" if way == "left" else "kill")()
    own = way != "first"
    with a.on_a_full_disk(), a.client(patience=0.0) as client, a.client(patience=60.0) as patient:
        wait_until(lambda: is_up(client))
        observe(neighbour, "blue", 1.0, "heard")
        wait_until(lambda: counts(client) == {"red": (own, 0), "blue": (0, 1)})
        with pytest.raises(SidecarError, match=r"chooses once its start is stored: cannot write .*state\.db: "):
            client.choose()
        with pytest.raises(SidecarError, match=r"cannot write .*state\.db: "):
            client.observe(None, 0.5, arm="red", key="fails")
        assert client.ready().startswith("degraded: it chooses once its start is stored: cannot write")
        Limit(a).empty()
        assert patient.observe(None, 0.5, arm="red", key="fails") == "counted"
        assert client.ready() is None
        client.choose()
        a.kill()
        a.start()
        assert counts(client)["red"] == (own + 1, 0)


def is_up(client):
    return [peer["state"] for peer in client.peers()] == ["up"]


@pytest.fixture
def node(tmp_path, neighbour):
    """A node with a sidecar in this process, linked with its neighbour."""
    make = an_api_node(tmp_path / "a", listen="127.0.0.1:0", accept="members")
    with Beside(make) as a:
        neighbour.do(neighbour.node.add_peer, "a", a.node.address)
        with Client(a.url, patience=0.0) as client:
            wait_until(lambda: is_up(client))
            assert client.observe(None, 0.5, arm="red", key="first") == "counted"
            yield client


def test_state_folder_that_is_moved_away_is_missed_until_it_is_back(tmp_path, node, neighbour):
    folder = tmp_path / "a" / "state"
    folder.rename(tmp_path / "elsewhere")
    check_degraded(node, neighbour, "moved", "cannot write .*state.db: No such file or directory")
    (tmp_path / "elsewhere").rename(folder)
    with Client(node._where, patience=60.0) as patient:
        check_works_again(node, patient, "moved")


def test_state_of_another_node_in_its_place_is_never_written_to(tmp_path, node, neighbour):
    file = tmp_path / "a" / "state" / "state.db"
    file.rename(tmp_path / "kept")
    neighbour.do(neighbour.node.backup, file)
    other = file.read_bytes()
    check_degraded(node, neighbour, "replaced", "another file has replaced it; stop the node")
    assert file.read_bytes() == other
    file.unlink()
    (tmp_path / "kept").rename(file)
    with Client(node._where, patience=60.0) as patient:
        check_works_again(node, patient, "replaced")


DAMAGES = {
    "deleted": lambda folder: shutil.rmtree(folder),
    "noise": lambda folder: [path.write_bytes(b"\xa5" * path.stat().st_size) for path in folder.glob("state.db*")],
    "half": lambda folder: [
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]) for path in folder.glob("state.db")
    ],
    "empty": lambda folder: (folder / "state.db").write_bytes(b""),
    "another's": lambda folder: shutil.copy(folder.parent / "b" / "state.db", folder / "state.db"),
}


@pytest.mark.parametrize("way", DAMAGES)
def test_lost_disk_is_refused_unless_it_is_gone_and_what_was_told_comes_back(tmp_path, eager, way):
    async def main():
        async with a_node(tmp_path, "b") as b:
            async with a_node(tmp_path, "a", {"b": b.address}) as a:
                await report(a, "red", 1.0, 0.5)
                await report(a, "blue", 0.25)
                [life] = a.lives("a")
                await until(lambda: estimates(b) == estimates(a))
            DAMAGES[way](tmp_path / "a")
            if way != "deleted":
                with pytest.raises(StoreError, match="--new-life") as refusal:
                    await a_node(tmp_path, "a", {"b": b.address}).start()
                assert "\n" not in str(refusal.value)
            async with a_node(tmp_path, "a", {"b": b.address}, new_life=way != "deleted") as a:
                await until(lambda: is_linked(a, "b"))
                await until(lambda: estimates(a) == {"red": (2, 0.75), "blue": (1, 0.25)})
                assert life in a.lives("a")
                assert [arm.own_count for arm in a.state().arms] == [0, 0]
                await report(a, "red", 0.0)
                await until(lambda: estimates(b) == estimates(a) == {"red": (3, 0.5), "blue": (1, 0.25)})
            assert any((tmp_path / "a").glob("aside-*")) == (way != "deleted")  # kept, whatever it was

    run(main())
