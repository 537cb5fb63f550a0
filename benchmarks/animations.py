"""What moving pictures cost: places, a message that is followed, what a page is sent, and how long a frame is drawn."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tables import Column, Row, Section
from timing import wall_time

import banditmesh as bm
from banditmesh import plots
from banditmesh.animations import Recorder, as_html, as_json, message_document

#: Draws every frame of a file and gives the milliseconds of each.
DRAW = """() => {
    const { bmView: view } = document.getElementById("animation");
    return Array.from({ length: view.model.last + 1 }, (_, index) => {
        const began = performance.now();
        view.show(index);
        return performance.now() - began;
    });
}"""


def measure(quick: bool) -> list[Row]:
    n_agents, n_many, repeats = (60, 2_500, 1) if quick else (1_000, 10_000, 5)
    problem, many = (
        bm.Problem.random(bm.networks.sparse_ba(n, 3, seed=0), n_arms=50, per_agent=20, seed=0)
        for n in (n_agents, n_many)
    )
    pairs = problem.network.pairs()
    rows = [row(problem, "places", wall_time(lambda: plots.places(n_agents, pairs), repeats)[0])]
    seconds, journey = wall_time(lambda: bm.follow(problem, "flooding(8)", 0, _arm(problem)), repeats)
    document = message_document(journey)
    rows.append(row(problem, "follow a flood to its end", seconds, len(as_json(document))))
    run, adding = recorded(problem, n_rounds=10)
    sizes = [len(as_json(frame)) for frame in run.frames_since(1)]
    rows.append(row(problem, "record a round; largest frame", max(adding), max(sizes)))
    if not quick:
        rows += drawn(problem, {"draw a frame of a run": run.document(), "draw a hop of the flood": document})
    seconds, large = wall_time(lambda: Recorder(many, horizon=1_000), 1)
    rows.append(row(many, "begin to record, as groups", seconds, len(as_json(large.document()))))
    return rows


def row(problem: bm.Problem, what: str, seconds: float, n_bytes: int | None = None) -> Row:
    links = problem.network.n_links  # type: ignore[union-attr]
    kib = None if n_bytes is None else n_bytes / 1024
    return {"what": what, "agents": problem.n_agents, "links": links, "milliseconds": 1000 * seconds, "kib": kib}


def recorded(problem: bm.Problem, n_rounds: int) -> tuple[Recorder, list[float]]:
    """A recorded run, and the seconds that each of its rounds took to record."""
    recorder = Recorder(problem, horizon=n_rounds)
    simulation = bm.Simulation(problem, "irs", horizon=n_rounds, seed=0)
    seconds = []
    for _ in range(n_rounds):
        played = simulation.step()
        seconds.append(wall_time(lambda played=played: recorder.add(played), 1)[0])  # type: ignore[misc]
    return recorder, seconds


def drawn(problem: bm.Problem, documents: dict[str, dict[str, Any]]) -> list[Row]:
    """The slowest frame of each document; nothing if there is no browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    rows = []
    flags: Sequence[str] = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for number, (what, document) in enumerate(documents.items()):
            path = Path(folder) / f"{number}.html"
            path.write_text(as_html(document), encoding="utf-8")
            page.goto(path.as_uri())
            rows.append(row(problem, what, max(page.evaluate(DRAW)) / 1000))
        browser.close()
    return rows


def _arm(problem: bm.Problem) -> Any:
    return problem.arms[problem.arm_set(0)[0]]


SECTION = Section(
    name="animations",
    title="Moving pictures",
    note=(
        "Preferential attachment with three links for each newcomer, 20 of 50 arms per agent; seconds by the clock, "
        "the slowest of all rounds, frames and hops, and the least of several repeats of the rest. Sizes are those of "
        "the JSON that a page is sent. Frames are drawn by Chromium without a graphics card, 1,280 pixels wide."
    ),
    columns=(
        Column("what", "what"),
        Column("agents", "agents", ",d"),
        Column("links", "links", ",d"),
        Column("milliseconds", "milliseconds", ",.1f"),
        Column("kib", "KiB", ",.0f"),
    ),
    measure=measure,
)
