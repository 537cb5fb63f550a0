"""One server and one browser for all tests of the page; a tab is cut off from everything but loopback."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Nodes in processes of their own are what the tests of the live mesh have.
sys.path.append(str(Path(__file__).parents[1] / "live"))

FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"


@contextlib.contextmanager
def serving(*options):
    """A server of its own process on a free port: its address."""
    command = [
        sys.executable,
        "-c",
        "from banditmesh.cli import main; main()",
        "serve",
        "--no-open",
        "--port",
        "0",
        *options,
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + (process.stdout.read() if process.poll() is not None else "")
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.stdout.close()


@pytest.fixture(scope="session")
def server():
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.fail("Chromium is not installed; run 'make browser', or leave these tests out: make test BROWSER=no")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, server):
    """A tab of its own context that asks nobody but loopback, and shows no error."""
    with open_tab(chromium, server) as page:
        yield page


@contextlib.contextmanager
def open_tab(chromium, server, **settings):
    outside, errors = [], []
    context = chromium.new_context(base_url=server, accept_downloads=True, **settings)
    context.set_default_timeout(20_000)
    page = context.new_page()

    def watch(route):
        if route.request.url.startswith(server):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route(lambda url: not url.startswith(("data:", "blob:")), watch)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert outside == []
    assert errors == []
