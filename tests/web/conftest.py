"""One server for all tests of the page, and tabs that show no error and ask nobody but this machine."""

import contextlib
import re
import sys
from functools import partial
from pathlib import Path

import pytest
from page_server import serving

from browser import open_page, watched

# Nodes in processes of their own are what the tests of the live mesh have.
sys.path.append(str(Path(__file__).parents[1] / "live"))

#: How long a test waits for what must come, in milliseconds; only a failing one ever waits so long.
PATIENCE = 120_000


#: How many nodes the server may ask.
N_NODES = 5


@pytest.fixture(scope="session")
def mesh_folder(tmp_path_factory):
    """Where the nodes that the server may ask have their folders: 0, 1 and so on."""
    return tmp_path_factory.mktemp("mesh")


@pytest.fixture(scope="session")
def server(mesh_folder):
    with serving(*(f"--mesh=unix:{mesh_folder}/{k}/api" for k in range(N_NODES))) as address:
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


@pytest.fixture(scope="module")
def usual(chromium, server):
    """The browser of most tests: what it has loaded once it need not load again."""
    errors = []
    context = open_page(chromium, errors, base_url=server).context
    context.set_default_timeout(PATIENCE)
    yield context, errors
    context.close()


@pytest.fixture
def tab(usual):
    context, errors = usual
    errors.clear()
    page = watched(context.new_page(), errors)
    yield page
    page.close()
    assert not errors, errors


class Line:
    """The line from the server to a tab; what comes while it is held reaches the page when it is let go."""

    def __init__(self, tab):
        self._tab, self._held, self._holds = tab, [], False
        tab.route_web_socket(re.compile("/_nicegui_ws/"), self._connect)

    def _connect(self, page_side):
        def pass_on(message):
            if self._holds:
                self._held.append((str(message), partial(page_side.send, message)))
            else:
                page_side.send(message)

        page_side.connect_to_server().on_message(pass_on)

    def wait(self, text):
        """Wait until a message with a text has come."""
        while not any(text in message for message, _ in self._held):
            self._tab.wait_for_timeout(5)

    def let_go(self, last=None):
        """Let go of what has come: all of it, or up to the message with a text."""
        while self._held:
            message, send = self._held.pop(0)
            send()
            if last is not None and last in message:
                return

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
