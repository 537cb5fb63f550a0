"""The article cannot drift from the code: its numbers are those that its script computes."""

import importlib.util
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "theory" / "paper"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_numbers", FOLDER / "make_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numbers_that_take_no_time_are_those_stated(script):
    found, stated = script.hand(), script.read()
    assert {name: stated.get(name) for name in found} == found


def test_article_uses_every_number_and_no_other(script):
    used = set(re.findall(r"\\(n[A-Z]\w*)", (FOLDER / "article.tex").read_text(encoding="utf-8")))
    assert used == set(script.read())


def test_unknown_parts_are_refused(script):
    with pytest.raises(SystemExit, match=r"parts must be of hand, .*, got figures"):
        script.main(["figures"])
