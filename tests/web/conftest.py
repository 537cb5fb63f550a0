"""One server for all tests of the page, and tabs that show no error and ask nobody but this machine."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import open_page

# Nodes in processes of their own are what the tests of the live mesh have.
sys.path.append(str(Path(__file__).parents[1] / "live"))

#: How long a test waits for what must come, in milliseconds; only a failing one ever waits so long.
PATIENCE = 120_000
PROGRAM = [sys.executable, "-c", "from banditmesh.cli import main; main()"]


@contextlib.contextmanager
def serving(*options):
    """A server in a process of its own, on a free port: its address."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--no-open", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Both engines give the same numbers; the reference compiles nothing, which would take longer than the tests.
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NUMBA_DISABLE_JIT": "1"},
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def server():
    with serving() as address:
        yield address


@pytest.fixture
def tabs(chromium, server):
    """Opens tabs, each of a browser of its own."""
    errors, opened = [], []

    def open_tab(**settings):
        opened.append(open_page(chromium, errors, base_url=server, **settings))
        opened[-1].context.set_default_timeout(PATIENCE)
        return opened[-1]

    yield open_tab
    for page in opened:
        page.context.close()
    assert not errors, errors


@pytest.fixture
def tab(tabs):
    return tabs()
