"""One server for all tests of the page, and tabs that show no error and ask nobody but this machine."""

import sys
from pathlib import Path

import pytest
from page_server import serving

from browser import open_page

# Nodes in processes of their own are what the tests of the live mesh have.
sys.path.append(str(Path(__file__).parents[1] / "live"))

#: How long a test waits for what must come, in milliseconds; only a failing one ever waits so long.
PATIENCE = 120_000


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
