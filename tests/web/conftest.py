"""One server for all tests of the page, and tabs that show no error and ask nobody but this machine."""

import contextlib
import re
import sys
from functools import partial
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


class Line:
    """The line from the server to a tab; what comes while it is held reaches the page when it is let go."""

    def __init__(self, tab):
        self._tab, self._held, self._holds = tab, [], False
        tab.route_web_socket(re.compile("/_nicegui_ws/"), self._connect)

    def _connect(self, page_side):
        def pass_on(message):
            # What is no event, such as asking whether anybody is there, is none of the page.
            if self._holds and isinstance(message, str) and message.startswith("42"):
                self._held.append(partial(page_side.send, message))
            else:
                page_side.send(message)

        page_side.connect_to_server().on_message(pass_on)

    def wait(self):
        """Wait until something has come."""
        while not self._held:
            self._tab.wait_for_timeout(5)

    def let_go(self):
        """Let go of what has come."""
        while self._held:
            self._held.pop(0)()

    @contextlib.contextmanager
    def held(self):
        """Hold the line."""
        self._holds = True
        yield
        self._holds = False
        self.let_go()


@pytest.fixture
def line(tab):
    return Line(tab)
