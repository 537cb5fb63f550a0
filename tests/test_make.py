"""`make test` with and without Chromium, on a path of its own and with stubs: nothing is installed or run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from browser import PLACES

ROOT = Path(__file__).parents[1]
TOOLS = ("sh", "timeout", "env", "true")


@pytest.fixture
def make(tmp_path):
    """Runs make with the given stubs on its path; what Python was asked to do is in the output."""
    commands, venv = tmp_path / "commands", tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    commands.mkdir()
    for tool in TOOLS:
        (commands / tool).symlink_to(shutil.which(tool))

    def run(*arguments, **stubs):
        for name, script in {"python": 'echo "python $*"', "id": "echo 0", **stubs}.items():
            path = (venv / "bin" if name == "python" else commands) / name
            assert not path.is_symlink()  # a stub must never be written into the system's own command
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        (venv / ".installed").touch()
        asked = ["make", "-C", str(ROOT), "--no-print-directory", f"VENV={venv}", "WORKERS=1", *arguments]
        # Whatever make was told that runs this test is none of this one's business.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "BROWSER"}
        environment["PATH"] = str(commands)
        program = shutil.which("make")
        return subprocess.run(asked, executable=program, env=environment, capture_output=True, text=True, timeout=600)

    return run


def test_make_test_runs_browser_tests_where_chromium_is(make):
    done = make("test", chromium="true")
    assert done.returncode == 0
    assert "Left out" not in done.stdout
    assert done.stdout.splitlines()[-1].endswith("not slow and browser " + " ".join(PLACES))


def test_make_test_installs_chromium_where_it_can(make, tmp_path):
    target = tmp_path / "commands" / "chromium"
    apt = f'case "$*" in *--no-download*) echo > {target}; {shutil.which("chmod")} +x {target};; esac'
    done = make("test", **{"apt-get": apt})
    assert done.returncode == 0
    assert "Installing Chromium" in done.stdout
    assert "not slow and browser" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "stubs, why",
    [
        ({}, "there is no apt-get"),
        ({"apt-get": "exit 100"}, "could not be fetched"),
        ({"id": "echo 1000", "apt-get": "exit 0"}, "needs root"),
        ({"id": "echo 1000", "apt-get": "exit 100", "sudo": 'shift; exec "$@"'}, "could not be fetched"),
    ],
)
def test_make_test_runs_everything_else_where_it_cannot_and_says_so(make, stubs, why):
    done = make("test", **stubs)
    assert done.returncode == 0
    assert why in done.stderr
    assert "not slow and not browser" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Left out: the tests that drive a browser.")
    assert "make browser test" in done.stdout.splitlines()[-1]


def test_make_test_without_chromium_fails_where_nothing_may_be_left_out(make):
    done = make("test", "BROWSER=yes")
    assert done.returncode != 0
    assert "pytest" not in done.stdout


def test_ci_leaves_no_test_out():
    assert "make test BROWSER=yes" in (ROOT / ".ci" / "run").read_text()
