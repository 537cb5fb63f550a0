"""Make the pictures of docs/animations.md again: `python docs/make_animation_images.py`.

It needs Chromium and playwright. Each but one is the screen of a file that `bm.animate` wrote, at one frame of it.
"""

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import banditmesh as bm
from banditmesh import plots
from banditmesh.animations import GALLERY

IMAGES = Path(__file__).parent / "images" / "animations"
WIDE = {"width": 1000, "height": 640}
NARROW = {"width": 390, "height": 760}
SHOW = "frame => document.getElementById('animation').bmView.show(frame)"


def write(folder: Path) -> dict[str, Path]:
    """The files, by name."""
    paths = {name: folder / f"{name}.html" for name in ("message", "run")}
    bm.animate(GALLERY["grid"].journeys(), paths["message"])
    problem = bm.Problem.paper("sbm", seed=0)
    bm.animate(bm.Simulation(problem, "fwa(2)", horizon=40, seed=0), paths["run"])
    return paths


def main() -> None:
    """Write the files and take their pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    plots.save(GALLERY["grid"].journeys()[1].plot(), IMAGES / "journey", kinds=("svg",))
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        paths = write(Path(folder))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, kind, size, scheme, frame in (
            ("message-light", "message", WIDE, "light", 3),
            ("message-narrow-dark", "message", NARROW, "dark", 3),
            ("run-light", "run", WIDE, "light", 40),
            ("run-narrow-dark", "run", NARROW, "dark", 40),
        ):
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(paths[kind].as_uri())
            page.evaluate(SHOW, frame)
            page.screenshot(path=IMAGES / f"{name}.png", full_page=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
