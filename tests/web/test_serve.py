"""The verb `serve`: what it says when it cannot, and that its end leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from page_server import PROGRAM, cut_off

from banditmesh.cli import cli
from banditmesh.errors import InputError, MissingExtraError
from banditmesh.web.server import serve


def refused(*arguments):
    """What it says instead of starting."""
    return str(CliRunner().invoke(cli, ["serve", "--no-open", *arguments], obj={}).exception)


def test_help_has_examples():
    answer = CliRunner().invoke(cli, ["serve", "--help"], obj={})
    assert answer.exit_code == 0
    assert "banditmesh serve --host 0.0.0.0 --token-file token" in answer.output


def test_without_the_extra_a_line_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "nicegui", None)
    with pytest.raises(MissingExtraError, match=r"the page needs the package nicegui; install it with: pip install"):
        serve()


@pytest.mark.parametrize(("host", "token"), [("127.0.0.1", None), ("0.0.0.0", "correct-horse-battery")])
def test_nodes_may_be_killed_on_loopback_and_with_a_token_only(host, token):
    with pytest.raises(InputError, match="on loopback that asks for a token"):
        serve(host, 0, token=token, local=SimpleNamespace(sidecars={"ann": "unix:/run/ann"}))


def test_mesh_must_be_addresses_of_sidecars():
    said = "--mesh: url must be http://HOST:PORT or the path of a Unix socket, got 'ftp://127.0.0.1'"
    assert refused("--mesh", "ftp://127.0.0.1") == said


def test_other_addresses_need_a_token():
    assert refused("--host", "0.0.0.0") == (
        "--host and --port must be loopback without a token, got 0.0.0.0:8470; give --token-file as well, "
        "or leave --host out"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "banditmesh.example", "127.0.0.1"])
def test_server_of_these_tests_reaches_nobody_but_this_machine(tmp_path, host):
    outside = tmp_path / "outside"
    code = f"import socket; socket.create_connection(({host!r}, 9), timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=cut_off(outside))
    assert (f"cut off from {host}" in done.stderr) is (host != "127.0.0.1")
    assert outside.exists() is (host != "127.0.0.1")


def test_end_of_the_server_leaves_nothing_behind(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    assert tempfile.gettempdir() != str(tmp_path)
    command = [*PROGRAM, "serve", "--no-open", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert "The page is at http://127.0.0.1:" in process.stdout.readline()
        assert any(path.name.startswith("banditmesh-page-") for path in tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == 0
    assert complaints == ""
    assert not any(path.name.startswith("banditmesh-page-") for path in tmp_path.iterdir())
