"""The page's words are explained, each by the terms of the docs."""

import re
from pathlib import Path

from banditmesh import web
from banditmesh.web.words import WORDS

SOURCES = [path.read_text() for path in Path(web.__file__).parent.glob("*.py") if path.name != "shell.py"]


def test_every_word_that_a_view_explains_is_known_and_every_known_one_is_explained():
    calls = [call for text in SOURCES for call in re.findall(r"shell\.words\(([^)]*)\)", text)]
    asked = [re.findall(r'"([^"]+)"', call) for call in calls]
    assert len(asked) == 5
    assert {name for names in asked for name in names} == set(WORDS)
