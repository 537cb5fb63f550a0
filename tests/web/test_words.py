"""The page's words are explained, each by the terms of the docs."""

import re
from pathlib import Path

import pytest

from banditmesh import web
from banditmesh.settings.parts import parts
from banditmesh.web import choices, form
from banditmesh.web.choices import FILES
from banditmesh.web.words import WORDS

TABLES = choices.TABLES
SOURCES = [path.read_text() for path in Path(web.__file__).parent.glob("*.py") if path.name != "shell.py"]


def test_every_word_that_a_view_explains_is_known_and_every_known_one_is_explained():
    calls = [call for text in SOURCES for call in re.findall(r"shell\.words\(([^)]*)\)", text)]
    asked = [re.findall(r'"([^"]+)"', call) for call in calls]
    assert len(asked) == 5
    assert {name for names in asked for name in names} == set(WORDS)


@pytest.mark.parametrize("table", TABLES)
def test_every_field_of_every_part_says_below_it_what_it_is(table):
    keys = {
        f"{table}.{name}" for part in parts(table).values() for name in part.parameters if name not in choices._NO_FIELD
    }
    assert keys <= {*form.HINTS, *FILES}
    assert set(form._HELD) == set(FILES)
