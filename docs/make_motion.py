"""Make the moving pictures of the README again: `python docs/make_motion.py`, or one of them by its name.

It needs Chromium and playwright. One is what the page's Story shows in its fourth step, in every twentieth round. The
other is a live mesh as `banditmesh mesh up --serve` shows it: a node is killed by a click, and started again.
"""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import banditmesh as bm

IMAGES = Path(__file__).parent / "images" / "page"
SIZE = {"width": 820, "height": 720}
STEP = 4
ROUNDS = range(0, 201, 20)
#: Milliseconds that a frame stays, and the last one.
STAY, LAST = 400, 2500
#: The mesh: at which of its frames, one a second, the node is killed and started.
MESH = ("--agents", "8", "--arms", "6", "--per-agent", "3", "--seed", "2", "--horizon", "100000", "--pace", "4")
NODE, KILLED, STARTED, N_FRAMES = "3", 3, 11, 20
#: Where a node is drawn, in the window.
NODE_AT = """(box, name) => {
    const chart = getElement(Number(box.id.slice(1))).chart, corner = box.getBoundingClientRect();
    const node = chart.getOption().series.find((one) => one.id === "nodes").data.find((one) => one.name === name);
    const [x, y] = chart.convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, node.value);
    return [corner.left + x, corner.top + y];
}"""


def main() -> None:
    """Play the story and a mesh, and take a picture of each frame."""
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for make in (story, mesh):
            if make.__name__ in (sys.argv[1:] or ["story", "mesh"]):
                save(make(browser), IMAGES / f"{make.__name__}.gif")
        browser.close()


def story(browser):
    """The fourth step of the story, round by round."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "story.html"
        bm.story(path)
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(f"{path.as_uri()}#{STEP}")
        for number in ROUNDS:
            page.evaluate("frame => document.getElementById('stage').bmView.show(frame)", number)
            yield page.screenshot()
        page.close()


def mesh(browser):
    """A live mesh, second by second, of which a node dies and comes back."""
    with mesh_up() as link:
        page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme="light")
        page.goto(link)
        page.locator('[data-bm="mesh"]', has_text="8 of 8 nodes answer").wait_for()
        # An arm that the node and others have.
        page.wait_for_timeout(4000)
        graph, shown = page.locator('[data-bm="graph"]'), page.locator(".bm-pair").first
        for number in range(N_FRAMES):
            if number in (KILLED, STARTED):
                page.mouse.click(*graph.evaluate(NODE_AT, NODE))
                page.mouse.move(0, 0)
            page.wait_for_timeout(1000)
            yield shown.screenshot()
        page.close()


@contextlib.contextmanager
def mesh_up():
    """A mesh with its page, in a process of its own: the link to it."""
    command = [sys.executable, "-m", "banditmesh", "mesh", "up", "--serve", "--no-open", *MESH]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def save(pictures, path) -> None:
    """Write frames as a GIF of few colours that begins again at its end."""
    whole = [Image.open(io.BytesIO(one)).convert("RGB") for one in pictures]
    images = [one.quantize(96, kmeans=1, dither=Image.Dither.NONE) for one in whole]
    stays = [STAY] * (len(images) - 1) + [LAST]
    images[0].save(path, save_all=True, append_images=images[1:], duration=stays, loop=0)
    print(f"{path.name}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
