"""Make the moving picture of the README again: `python docs/make_motion.py`.

It needs Chromium and playwright. It is what the page's Story shows in its fourth step, in every twentieth round.
"""

import io
import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import banditmesh as bm

TARGET = Path(__file__).parent / "images" / "page" / "story.gif"
SIZE = {"width": 820, "height": 720}
STEP = 4
ROUNDS = range(0, 201, 20)
#: Milliseconds that a frame stays, and the last one.
STAY, LAST = 400, 2500


def main() -> None:
    """Play the story, and take a picture of each frame."""
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    images = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "story.html"
        bm.story(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(f"{path.as_uri()}#{STEP}")
        for number in ROUNDS:
            page.evaluate("frame => document.getElementById('stage').bmView.show(frame)", number)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            images.append(picture.quantize(48, dither=Image.Dither.NONE))
        browser.close()
    stays = [STAY] * (len(images) - 1) + [LAST]
    images[0].save(TARGET, save_all=True, append_images=images[1:], duration=stays, loop=0)


if __name__ == "__main__":
    main()
