"""Certificates that a node renews by itself, with a command of its operator's."""

import asyncio
import sys
import time

import pytest

from banditmesh.cli import main
from banditmesh.errors import FileError, InputError
from banditmesh.live import ArmSpec, Node, NodeConfig
from banditmesh.live.transport import keys, renewing
from banditmesh.live.transport.identity import KeyFiles, contexts
from banditmesh.live.transport.renewing import Renewal, renew

MAIN = [sys.executable, "-c", "from banditmesh.cli import main; main()"]


@pytest.fixture
def files(tmp_path):
    """The files of node a, whose certificate holds for two days more."""
    keys.init(tmp_path / "authority", "shop")
    return keys.issue(tmp_path / "authority", "a", tmp_path / "keys", days=2)


def by_the_authority(tmp_path, *more):
    return [*MAIN, "keys", "renew", "a", "--pipe", "--authority", str(tmp_path / "authority"), *more]


def python(code):
    return [sys.executable, "-c", code]


def test_a_running_node_renews_and_uses_its_certificate(files, tmp_path):
    config = NodeConfig(
        mesh="shop",
        node="a",
        arms=[ArmSpec("red", sigma=1.0)],
        keys=files,
        state=tmp_path / "state",
        renew_command=by_the_authority(tmp_path),
        renew_before=3 * 86400.0,
    )

    async def life():
        async with Node(config) as node:
            old = node.state().certificate_ends
            while node.state().certificate_ends == old and not node.state().counters.get("failed_renewals"):
                await asyncio.sleep(0.02)
            return old, node.state()

    old, state = asyncio.run(life())
    assert state.certificate_ends > old + 300 * 86400
    assert (state.counters["renewals"], state.warnings) == (1, [])
    assert contexts(files).own.not_after == state.certificate_ends
    assert sorted(path.name for path in files.key.parent.iterdir()) == ["a.key", "a.pem", "authorities.crt"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "cannot be run"),
        (python("import sys; sys.exit('no luck')"), "status 1: no luck"),
        (python("print('hello')"), "must be a certificate in PEM"),
        (python("print('x' * 100_000)"), "got 100001 bytes"),
        (python("import sys; print(sys.stdin.read())"), "ends later is required"),
    ],
)
def test_what_cannot_be_used_changes_nothing(files, command, why):
    before = files.certificate.read_bytes()
    with pytest.raises(FileError, match=why) as error:
        asyncio.run(renew(files, contexts(files).own, command, time.time))
    assert "\n" not in str(error.value)
    assert files.certificate.read_bytes() == before
    assert sorted(path.name for path in files.key.parent.iterdir()) == ["a.key", "a.pem", "authorities.crt"]


def test_a_certificate_of_another_node_or_key_is_not_used(files, tmp_path):
    other = keys.issue(tmp_path / "authority", "b", tmp_path / "b")
    again = keys.issue(tmp_path / "authority", "a", tmp_path / "again")
    for certificate in (other.certificate, again.certificate):
        with pytest.raises(FileError, match="cannot be used"):
            asyncio.run(renew(files, contexts(files).own, ["cat", str(certificate)], time.time))


def test_a_command_that_hangs_is_ended_with_what_it_started(files, monkeypatch):
    monkeypatch.setattr(renewing, "WITHIN", 0.3)
    with pytest.raises(FileError, match="took more than"):
        asyncio.run(renew(files, contexts(files).own, ["sh", "-c", "sleep 1000 & wait"], time.time))


def test_a_command_that_fails_is_counted_shown_and_run_again(files):
    own = contexts(files).own
    commands = iter([python("raise SystemExit('not today')"), []])
    used = []

    async def use():
        used.append(1)

    clock = lambda: float(own.not_after - 60)  # noqa: E731
    renewal = Renewal(lambda: (files, next(commands), None), lambda: own, use, clock)
    assert asyncio.run(renewal.look()) is False
    assert "not today" in renewal.trouble
    assert asyncio.run(renewal.look()) is True
    assert (renewal.trouble, used, renewal.counters) == ("", [], {"failed_renewals": 1})


def test_an_expelled_member_is_not_renewed(files, tmp_path):
    keys.expel(tmp_path / "authority", "a")
    with pytest.raises(InputError, match="was expelled"):
        keys.renew_pem(tmp_path / "authority", "a", files.certificate.read_bytes())


def test_settings_that_do_not_fit_together_are_refused(files):
    plain = {"mesh": "m", "node": "a", "arms": [], "plain": True}
    with pytest.raises(InputError, match=r"renew_command needs \[keys\]"):
        NodeConfig(**plain, renew_command=["x"])
    with pytest.raises(InputError, match="renew_before needs a renew_command"):
        NodeConfig(mesh="m", node="a", arms=[], keys=files, renew_before=5.0)


# --- certificates for a list of nodes


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


def test_certificates_for_a_file_of_names(tmp_path, capsys):
    keys.init(tmp_path / "authority", "shop")
    names = tmp_path / "nodes.txt"
    names.write_text("# all of them\na\n\nberlin 3\n")
    command = ["keys", "issue", "--all", names, "--authority", tmp_path / "authority", "--out", tmp_path / "keys"]
    assert run(*command) == 0
    assert contexts(KeyFiles.of(tmp_path / "keys", "berlin 3")).own.node == "berlin 3"
    before = (tmp_path / "keys" / "a.pem").read_bytes()
    with names.open("a") as file:
        file.write("c\n")
    capsys.readouterr()
    assert run(*command) == 0
    assert "a.pem: already there" in capsys.readouterr().out
    assert (tmp_path / "keys" / "a.pem").read_bytes() == before
    assert contexts(KeyFiles.of(tmp_path / "keys", "c")).own.node == "c"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\na\n", "line 2: names must differ, got 'a', as in line 1"),
        ("a\n" + "x" * 200, "line 2: a node's name must be 1 to 128 bytes"),
        ("# none\n", "must name at least one node, got none"),
    ],
)
def test_a_file_of_names_that_is_wrong_is_one_line(tmp_path, capsys, text, line):
    keys.init(tmp_path / "authority", "shop")
    (tmp_path / "nodes.txt").write_text(text)
    assert run("keys", "issue", "--all", tmp_path / "nodes.txt", "--authority", tmp_path / "authority") == 2
    assert line in capsys.readouterr().err


def test_names_and_a_file_of_names_are_not_given_together(tmp_path, capsys):
    for given in ([], ["a", "--all", "nodes.txt"]):
        assert run("keys", "issue", *given) == 2
        assert "as NAME... or by --all FILE, got both or neither" in capsys.readouterr().err
    assert run("keys", "renew", "a", "b", "--pipe") == 2
    assert "one NAME is required, got 2" in capsys.readouterr().err
