"""The page while a simulation runs: how soon it answers, how soon a run is cancelled, how much is sent at a time."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tables import Column, Row, Section

#: From a key press to what the server makes of it: the field's text in the address bar.
ANSWER = """async ([mark, text]) => {
    const field = document.querySelector(`[data-bm="${mark}"]`);
    const began = performance.now();
    field.value = text;
    field.dispatchEvent(new Event("input"));
    while (!location.search.includes(`${mark}=${text}`)) await new Promise((done) => setTimeout(done, 1));
    return performance.now() - began;
}"""
CASES = {
    "1,000 agents, 3,000 links": {"network.n": "1000", "network.m": "3"},
    "10,000 agents, 30,000 links": {"network.n": "10000", "network.m": "3"},
}
#: Large enough that the run is not over before it is cancelled.
QUICK = {"500 agents": {"network.n": "500", "network.m": "2"}}


def measure(quick: bool) -> list[Row]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return [{"missing": "Playwright is not installed"}]
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        return [{"missing": "Chromium is not installed; `make browser` installs it"}]
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        rows = [watch(browser, address, name, case, quick) for name, case in (QUICK if quick else CASES).items()]
        browser.close()
    return rows


def watch(browser: Any, address: str, name: str, case: dict[str, str], quick: bool) -> Row:
    """One run that is looked at, typed into and cancelled."""
    page = browser.new_page(base_url=address)
    page.set_default_timeout(600_000)
    frames: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: frames.append(len(data))))
    chosen = {
        "network.name": "ba",
        "network.seed": "0",
        "arms.law": "gaussian",
        "arms.n_arms": "50",
        "arms.per_agent": "10",
    }
    page.goto(f"/?{urlencode({**chosen, **case, 'protocols': 'fwa(4)', 'horizon': '100000', 'replicates': '4'})}")
    began = time.perf_counter()
    page.locator('[data-bm="run"]').click()
    page.locator('[data-bm="run-status"]', has_text="of all").wait_for()
    first = time.perf_counter() - began
    page.locator('[data-bm="player"] [data-bm="play"]').wait_for()
    drawn = time.perf_counter() - began
    page.wait_for_timeout(1000)
    before = len(frames)
    seconds = 1.0 if quick else 10.0
    answers, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        answers.append(page.evaluate(ANSWER, ["seed", str(len(answers) + 1)]))
        page.wait_for_timeout(50)
    updates = [size for size in frames[before:] if size > 1000]
    notes = page.locator('[data-bm="player"] [data-bm="notes"]').inner_text()
    page.locator('[data-bm="cancel"]').click()
    clicked = time.perf_counter()
    page.locator('[data-bm="run-status"]', has_text="Cancelled").wait_for()
    cancelled = time.perf_counter() - clicked
    page.close()
    answers.sort()
    return {
        "case": name,
        "first_curve": first,
        "drawn": drawn,
        "answer_median": statistics.median(answers) / 1000,
        "answer_95": answers[int(0.95 * (len(answers) - 1))] / 1000,
        "answer_most": answers[-1] / 1000,
        "cancelled": cancelled,
        "update_most": max(updates, default=0) / 1000,
        "sent": sum(frames[before:]) / 1000 / seconds,
        "groups": "groups" if "group" in notes else "agents",
    }


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The page in a process of its own: its address."""
    command = [sys.executable, "-c", "from banditmesh.cli import main; main()", "serve", "--no-open", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found is not None
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        process.wait(20)


SECTION = Section(
    name="page",
    title="The page",
    note=(
        "FwA(4) runs in the lab, curves and network shown, while a user types into a field. Answers are from the key "
        "press to what the server made of it; the network's drawing and its rounds come from a second process. Large "
        "networks are drawn as groups of agents."
    ),
    columns=(
        Column("case", "network"),
        Column("groups", "drawn as"),
        Column("first_curve", "first curve after (s)", ".2f"),
        Column("drawn", "network drawn after (s)", ".2f"),
        Column("answer_median", "answers in (s, median)", ".3f"),
        Column("answer_95", "95 % within (s)", ".3f"),
        Column("answer_most", "slowest (s)", ".3f"),
        Column("cancelled", "cancelled within (s)", ".3f"),
        Column("update_most", "largest update (kB)", ".0f"),
        Column("sent", "sent (kB/s)", ".0f"),
    ),
    measure=measure,
)
