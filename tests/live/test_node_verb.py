"""`banditmesh node` as users run it: a process, its signals, and the verbs around it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from sidecars import Beside, a_node

from banditmesh.cli import main
from banditmesh.live import Client, config
from banditmesh.live.http import serving
from banditmesh.live.http.guard import read_token
from banditmesh.live.template import template
from banditmesh.live.transport import keys

CONFIG = """\
mesh = "shop"
node = "a"
plain = true
listen = "127.0.0.1:0"
log = "json"
protocol = "fwa(4)"
api = {{ listen = "unix:{folder}/api.sock" }}
arms = [{arms}]
"""


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit status, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


def write(folder, *arms):
    path = folder / "node.toml"
    tables = ", ".join(f'{{ name = "{arm}" }}' for arm in arms)
    path.write_text(CONFIG.format(folder=folder, arms=tables))
    return path


START = [sys.executable, "-W", "error", "-c", "from banditmesh.cli import main; main()", "node"]


class Process:
    """A node's process, from `with` to its end."""

    def __init__(self, folder, *options):
        self.url = f"unix:{folder}/api.sock"
        command = [*START, "--config", str(folder / "node.toml"), *options]
        self._running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        self.wait_for("listening")
        return self

    def __exit__(self, *_):
        self._running.kill()
        self._running.communicate()

    def wait_for(self, event):
        """The next line of the log with an event."""
        seen = []
        for line in self._running.stderr:
            seen.append(line)
            if json.loads(line)["event"] == event:
                return json.loads(line)
        raise AssertionError("".join(seen))

    def signal(self, number):
        self._running.send_signal(number)

    def end(self):
        """Exit status, and the events that were logged since anybody looked."""
        _, log = self._running.communicate(timeout=300)
        return self._running.returncode, [json.loads(line)["event"] for line in log.splitlines()]


def test_a_node_leaves_gracefully_and_goes_on_where_it_was(tmp_path):
    write(tmp_path, "red", "blue")
    with Process(tmp_path) as process, Client(process.url) as node:
        first, second = node.choose(), node.choose()
        assert node.observe(first, 0.5) == "counted"
        life = node.state()["epoch"]
        process.signal(signal.SIGTERM)
        status, events = process.end()
        assert (status, events[0], events[-1]) == (0, "leaving", "left")
    assert not (tmp_path / "api.sock").exists()
    with Process(tmp_path) as process, Client(process.url) as node:
        assert node.observe(first, 0.5) == "already_counted"
        assert node.observe(second, 0.25) == "counted"
        state = node.state()
        assert (state["epoch"], state["start"]) == (life, 2)
        assert [(arm["own_count"], arm["mean"]) for arm in state["arms"]] == [(1, 0.5), (1, 0.25)]
        process.signal(signal.SIGKILL)
        assert process.end()[0] == -signal.SIGKILL
    with Process(tmp_path, "--new-life") as process, Client(process.url) as node:
        assert node.state()["epoch"] != life
        process.signal(signal.SIGINT)
        assert process.end()[0] == 0


def test_a_node_reads_its_configuration_again(tmp_path):
    write(tmp_path, "red", "blue")
    with Process(tmp_path) as process, Client(process.url) as node:
        path = write(tmp_path, "green")
        process.signal(signal.SIGHUP)
        process.wait_for("configuration read again")
        assert [arm["name"] for arm in node.state()["arms"]] == ["green"]
        path.write_text("mesh = 7")
        process.signal(signal.SIGHUP)
        line = process.wait_for("configuration not read again, the old one holds")
        assert "mesh" in line["error"]
        assert node.choose().arm == "green"
        second = subprocess.run([*START, "--config", path], capture_output=True, text=True, timeout=300)
        assert (second.returncode, second.stderr.count("\n")) == (2, 1)
        write(tmp_path, "green")
        second = subprocess.run([*START, "--config", path], capture_output=True, text=True, timeout=300)
        assert (second.returncode, second.stderr.count("\n")) == (1, 1)
        assert "in use" in second.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(number):
    asked = []

    async def run():
        loop = asyncio.get_running_loop()
        with serving.signals(lambda: asked.append("leave"), lambda: asked.append("at once"), None):
            for _ in range(2):
                os.kill(os.getpid(), number)
                n_asked = len(asked)
                while len(asked) == n_asked:
                    await asyncio.sleep(0)
        assert loop.remove_signal_handler(number) is False

    asyncio.run(run())
    assert asked == ["leave", "at once"]


def test_a_new_configuration_is_right_but_for_its_keys(run, tmp_path):
    status, text, _ = run("node", "new", "--mesh", "shop", "--node", "berlin")
    assert status == 0
    path = tmp_path / "node.toml"
    path.write_text(text)
    assert 'mesh = "shop"' in text
    assert 'node = "berlin"' in text
    status, out, lines = run("node", "check", path)
    assert (status, out) == (2, "")
    assert all("keys" in line for line in lines.splitlines())


def test_check_says_everything_that_is_wrong(run, tmp_path):
    path = write(tmp_path, "red", "blue")
    assert run("node", "check", path)[:2] == (0, f"{path}: nothing is wrong\n")
    path.write_text(path.read_text().replace('"json"', '"xml"').replace('"a"', "7"))
    status, out, err = run("node", "check", path)
    assert (status, out) == (2, "")
    assert re.search(r"^.*\blog\b.*xml.*$", err, re.M)
    assert re.search(r"^.*\bnode\b.*7.*$", err, re.M)


def test_check_warns_of_a_certificate_that_has_ended(run, tmp_path, monkeypatch):
    keys.init(tmp_path / "authority", "shop")
    keys.issue(tmp_path / "authority", "a", tmp_path / "keys")
    path = tmp_path / "node.toml"
    path.write_text(template("shop", "a"))
    monkeypatch.setattr(config.time, "time", lambda: 4e9)
    status, out, err = run("node", "check", path)
    assert (status, out) == (0, f"{path}: a node can start with it\n")
    assert err.startswith(f"warning: {path}: [keys]: the certificate expired at 20")


def test_wrong_use_is_one_line(run, tmp_path):
    for arguments, words in [
        (("node",), "--config is required"),
        (("node", "--config", "x.toml", "new"), "without a subcommand"),
        (("node", "--config", tmp_path / "none.toml"), "none.toml"),
        (("node", "backup", tmp_path / "copy", "--url", "ftp://x"), "url must be"),
        (("node", "backup", tmp_path / "copy", "--token-file", tmp_path / "none"), "cannot be read"),
        (("node", "notice", tmp_path / "none"), "No such file"),
    ]:
        status, out, err = run(*arguments)
        assert status != 0
        assert out == ""
        assert err.count("\n") == 1
        assert words in err


@pytest.mark.parametrize("content", ["", "short\n", "two words of enough length", "é" * 20])
def test_weak_tokens_are_refused(run, tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    status, _, err = run("node", "backup", tmp_path / "copy", "--token-file", path)
    assert status == 2
    assert "one word of at least 16" in err


def test_backups_and_notices_go_through_the_sidecar(run, tmp_path):
    token = tmp_path / "token"
    token.write_text("correct-horse-battery\n")
    with Beside(a_node(tmp_path), token=read_token(token)) as beside:
        reach = ("--url", beside.url, "--token-file", token)
        copy = tmp_path / "copy"
        assert run("node", "backup", copy, *reach) == (0, f"{copy}\n", "")
        assert copy.read_bytes().startswith(b"SQLite format 3\0")
        assert copy.stat().st_mode & 0o777 == 0o600
        (tmp_path / "notice").write_bytes(b"nobody signed this")
        status, out, err = run("node", "notice", tmp_path / "notice", *reach)
        assert (status, out, err.count("\n")) == (2, "", 1)
        status, _, err = run("node", "backup", tmp_path / "other", "--url", beside.url)
        assert status == 1
        assert "a token is required" in err
        assert not (tmp_path / "other").exists()


def test_a_missing_extra_is_named_with_the_way_to_get_it(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, _, err = run("node", "--config", write(tmp_path, "red"))
    assert status == 1
    assert "pip install 'banditmesh[live]'" in err


def test_check_notes_where_absorption_keeps_neighbours_from_hearing_each_other(run, tmp_path):
    paths = [tmp_path / f"{name}.toml" for name in "abc"]
    for path, arms in zip(paths, (("red",), ("red",), ("red", "blue")), strict=True):
        folder = tmp_path / path.stem
        folder.mkdir()
        path.write_text(write(folder, *arms).read_text().replace('"a"', f'"{path.stem}"'))
    status, out, err = run("node", "check", paths[0])
    assert (status, out) == (0, f"{paths[0]}: nothing is wrong\n")
    silence, absorption = err.splitlines()
    assert silence.startswith("note: bandit 'default': a choice without a reward counts as nothing")
    assert absorption.startswith("note: protocol: with fwa(4) a node that has an arm does not pass on")
    assert absorption.endswith("take flooding(4) there")
    assert "note: protocol: all of these nodes have the same arms; with fwa(4)" in run("node", "check", *paths[:2])[2]
    status, out, err = run("node", "check", *paths)
    assert (status, out) == (0, "".join(f"{path}: nothing is wrong\n" for path in paths))
    assert "protocol" not in err
    paths[0].write_text(paths[0].read_text().replace("fwa(4)", "flooding(4)+growth(0.25)"))
    assert "protocol" not in run("node", "check", paths[0])[2]


def test_a_new_file_has_the_policy_that_fits_its_arms(run):
    for law, policy in (("bernoulli", "klucb"), ("gaussian", "ucb")):
        status, text, _ = run("node", "new", "--law", law)
        assert status == 0
        assert f'[policy]\nname = "{policy}"' in text
        assert f'law = "{law}"' in text
    assert run("node", "new", "--law", "dice")[0] == 2
