"""Make the pictures of the page again: `python docs/make_screenshots.py`.

Serves the page, runs a small study and a live mesh of five nodes, and takes each view from a wide window, from a narrow
one and in dark mode. It needs Chromium (`make browser`), and what the tests need.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

import banditmesh as bm

IMAGES = Path(__file__).parent / "images" / "page"
sys.path.append(str(Path(__file__).parents[1] / "tests" / "live"))
#: Name -> width of the window, and whether it is dark.
LOOKS = {"wide": (1280, False), "narrow": (400, False), "dark": (1280, True)}
#: Few colours make small files, and what is far below is much like what is above it.
COLOURS = 256
HEIGHT = 1600
SMALL = {"network.name": "er", "network.n": "40", "network.p": "0.08", "network.seed": "3"}
SMALL |= {"arms.law": "gaussian", "arms.n_arms": "20", "arms.per_agent": "6", "arms.seed": "0"}
LAB = {**SMALL, "protocols": "fwa(4), flooding(4), irs, none", "horizon": "300", "replicates": "5"}
COMPARE = {**SMALL, "protocols": "irs, gossip, fwa, flooding", "horizon": "200", "replicates": "3", "ttls": "2, 4"}
COMPARE |= {"emissions": "every-pull, growth(0.25)", "max_messages_per_round": "60"}
STUDY = """
name = "hops"
horizon = 100
replicates = 3
network = {name = "er", n = 30, p = 0.1, seed = 3}
arms = {n_arms = 12, per_agent = 4}
sweep.protocol = {name = ["irs", "fwa", "flooding"], ttl = [1, 2, 3, 4]}
"""


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="page-")))
        study = bm.run_study(bm.parse_spec(STUDY), folder / "study", workers=2).path
        nodes = stack.enter_context(mesh(folder))
        address = stack.enter_context(serving(nodes))
        playwright = stack.enter_context(sync_playwright())
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for look, (width, is_dark) in LOOKS.items():
            scheme = "dark" if is_dark else "light"
            page = browser.new_context(
                base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme
            ).new_page()
            page.set_default_timeout(180_000)
            for name, take in VIEWS.items():
                take(page, study, nodes)
                page.mouse.move(0, 0)
                page.wait_for_timeout(700)
                save(page.screenshot(full_page=True), IMAGES / f"{name}-{look}.png")
            page.context.close()
        browser.close()


def lab(page, study, nodes) -> None:  # noqa: D103
    page.goto(f"/?{urlencode(LAB)}")
    page.locator('[data-bm="run"]').click()
    page.locator('[data-bm="run-status"]', has_text="Done").wait_for()
    page.locator('[data-bm="recorded"]', has_text="300 rounds recorded").wait_for()


def follow(page, study, nodes) -> None:  # noqa: D103
    page.goto("/follow?case=grid")
    page.locator('[data-bm="sent-words-1"]').wait_for()
    page.locator('[data-bm="player"]').evaluate("(box) => box.bmView.show(3)")


def compare(page, study, nodes) -> None:  # noqa: D103
    page.goto(f"/compare?{urlencode(COMPARE)}")
    page.locator('[data-bm="run"]').click()
    page.locator('[data-bm="advice"]').wait_for()


def studies(page, study, nodes) -> None:  # noqa: D103
    page.goto(f"/studies?{urlencode({'folder': 'results'})}")
    page.locator('[data-bm="folder"]').fill(str(study))
    page.locator('[data-bm="open"]').click()
    page.locator('[data-bm="study"]', has_text="27 of 27 runs done").wait_for()
    # The folder of this machine is not for readers.
    page.locator('[data-bm="folder"]').fill("results")
    page.locator('[data-bm="folder"]').blur()


def mesh_view(page, study, nodes) -> None:  # noqa: D103
    nodes[4].start()
    page.goto(f"/mesh?{urlencode({'nodes': ','.join(f'unix:{node.folder}/api' for node in nodes)})}")
    page.locator('[data-bm="mesh"]', has_text="5 of 5 nodes answer").wait_for()
    nodes[4].kill()
    page.locator('[data-bm="mesh"]', has_text="4 of 5 nodes answer").wait_for()
    page.wait_for_timeout(8000)
    named = "\n".join(f"unix:/run/banditmesh/{name}.sock" for name in ("ann", "bob", "cid", "dot", "eve"))
    page.locator('[data-bm="nodes"]').fill(named)
    page.locator('[data-bm="nodes"]').blur()


VIEWS = {"lab": lab, "follow": follow, "compare": compare, "studies": studies, "mesh": mesh_view}


@contextlib.contextmanager
def serving(nodes):
    """The page, on a free port, which may ask some nodes: its address."""
    command = [sys.executable, "-c", "from banditmesh.cli import main; main()", "serve", "--no-open", "--port", "0"]
    command += [part for node in nodes for part in ("--mesh", f"unix:{node.folder}/api")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield re.search(r"http://\S+/", process.stdout.readline())[0].rstrip("/")
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def mesh(folder):
    """Five live nodes in a ring; the last one is dead at first."""
    from processes import NodeProcess

    ends = threading.Event()
    with contextlib.ExitStack() as stack:
        nodes = []
        for name in ("ann", "bob", "cid", "dot", "eve"):
            neighbours = {nodes[-1].name: nodes[-1].address} if nodes else {}
            neighbours |= {"ann": nodes[0].address} if name == "eve" else {}
            nodes.append(stack.enter_context(NodeProcess(folder / name, name, neighbours=neighbours)))
        pays = {"red": 0.7, "blue": 0.3}

        def play(node):
            with node.client() as client:
                while not ends.wait(0.2):
                    choice = client.choose()
                    client.observe(choice, pays[choice.arm] + (time.monotonic() * 1000 % 7 - 3) / 10)

        players = [threading.Thread(target=play, args=(node,)) for node in nodes[:4]]
        for player in players:
            player.start()
        nodes[4].kill()
        try:
            yield nodes
        finally:
            ends.set()
            for player in players:
                player.join()


def save(picture: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    with Image.open(io.BytesIO(picture)) as image:
        top = image.crop((0, 0, image.width, min(image.height, HEIGHT)))
        few = top.convert("RGB").quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
