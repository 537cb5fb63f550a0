"""The way of a statistic, from `observe` into a neighbour's table and onto both disks, is as docs/design.md says."""

import asyncio
import json
import re
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from embedded import a_node, is_linked, run, until

import banditmesh
from banditmesh.live.http.sidecar import Sidecar

LIVE = Path(banditmesh.__file__).parent / "live"
MAX_FILES = 18
#: What may run beside it at any time: a task that ends, and a line of the log.
BESIDE = {"tasks.py", "logs.py"}


class Trace:
    """The files of the live node whose functions run while it is on, whichever thread runs them."""

    def __init__(self):
        self.files, self._is_on = set(), False

    def note(self, frame, event, _):
        if self._is_on and event == "call" and frame.f_code.co_filename.startswith(str(LIVE)):
            self.files.add(Path(frame.f_code.co_filename).relative_to(LIVE).as_posix())

    @contextmanager
    def on(self):
        self._is_on = True
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._is_on = False


async def post(sidecar, name, body):
    """Ask as the connection does that has parsed a request: status and answer."""
    reply = sidecar.quick(name, json.dumps(body).encode())
    status, text = reply if isinstance(reply, tuple) else await reply
    return status, json.loads(text)


def stored(node):
    """What a node's file says of a: count and sum by arm."""
    return {(one.arm, one.count, one.total) for one in node._parts.store.load().entries if one.origin == "a"}


def test_walk_of_a_statistic_is_as_the_page_says(tmp_path):
    trace = Trace()

    async def main():
        async with a_node(tmp_path, "b") as b, a_node(tmp_path, "a", {"b": b.address}) as a:
            await until(lambda: is_linked(a, "b") and is_linked(b, "a"))
            sidecar = Sidecar(a, SimpleNamespace(observed=lambda seconds: None))
            _, choice = await post(sidecar, "choose", {})
            with trace.on():
                status, _ = await post(sidecar, "observe", {"ticket": choice["ticket"], "reward": 0.5})
                while not b._member.entries():
                    await asyncio.sleep(0)
                await b._committer.save()
            assert status == 200
            assert stored(b) == {(choice["arm"], 1, 0.5)}
            assert [(one.arm, one.count, one.total) for one in a._parts.store.load().own] == [(choice["arm"], 1, 0.5)]

    threading.setprofile(trace.note)
    try:
        run(main())
    finally:
        threading.setprofile(None)
    page = (Path(__file__).parents[2] / "docs" / "design.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^### The walk of a statistic$.*?^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = set(re.findall(r"^[\w/]+\.py", block, re.MULTILINE))
    assert trace.files - BESIDE <= shown
    assert len(shown) <= MAX_FILES
    assert all((LIVE / name).is_file() for name in shown)
