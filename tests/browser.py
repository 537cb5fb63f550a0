"""The system's Chromium for tests, driven by Playwright, with the network cut off apart from this machine."""

import os
import shutil
from urllib.parse import urlsplit

import pytest

#: What keeps the browser from asking anybody anything: all that is not on this machine goes over a proxy that is not
#: there. To look at every request before it is made would do the same, but nothing would be kept for the next page.
FLAGS = [
    "--proxy-server=127.0.0.1:9",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # Pages that follow each other are read by one process, which has compiled their scripts.
    "--process-per-site",
]
#: Where tests drive a browser: `make test` looks for them nowhere else, since to collect all tests takes seconds.
PLACES = ("tests/web", "tests/test_animations.py", "tests/test_story.py")
#: Waiting longer than this for a page means that it is broken.
PATIENCE = 20_000  # milliseconds


def pytest_configure(config):
    config.addinivalue_line("markers", "browser: drives Chromium; `make test BROWSER=no` leaves it out")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Whatever takes a browser is marked so, before markers select what is run."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            if not item.nodeid.startswith(PLACES):
                raise pytest.UsageError(f"{item.nodeid} drives a browser; move it to {PLACES}, or name its file there")


# For a module, not for longer: while it is there an event loop runs, and tests of other modules need their own.
@pytest.fixture(scope="module")
def chromium():
    """A browser for all tests of a module."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("browser tests need Chromium: run `make browser`, or leave them out with -m 'not browser'")
    # As root, Chromium does not start in its sandbox.
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def _is_here(address):
    parts = urlsplit(address)
    return parts.scheme in ("file", "data", "blob") or parts.hostname in ("127.0.0.1", "localhost", "::1")


def open_page(chromium, errors, **settings):
    """A watched page in a context of its own."""
    context = chromium.new_context(**settings)
    context.set_default_timeout(PATIENCE)
    return watched(context.new_page(), errors)


def watched(page, errors):
    """The same page; what goes wrong in it, and every request that leaves this machine, is noted."""

    def note(asked):
        if not _is_here(asked.url):
            errors.append(f"asked for {asked.url}")

    page.on("request", note)
    page.on("websocket", note)
    page.on("pageerror", lambda error: errors.append(f"error on the page: {error}"))
    return page


@pytest.fixture
def page(chromium):
    """A page; the test fails if a script on it does, or if it asks for anything that is not on this machine."""
    errors = []
    page = open_page(chromium, errors)
    yield page
    page.context.close()
    assert not errors, errors
