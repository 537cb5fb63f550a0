"""The page of promises names tests that exist, for each of its promises."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "live" / "promises.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"^## (\d\. .+?)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)


def named(text):
    return re.findall(r"`(test_\w+\.py)::(\w+)`", text)


def test_there_are_seven_promises_with_what_is_not_promised():
    assert [title[0] for title, _ in PROMISES] == list("1234567")
    for _, text in PROMISES:
        assert "*For you:*" in text
        assert "*Not promised:*" in text


@pytest.mark.parametrize("text", [PAGE, *(text for _, text in PROMISES)], ids=["all", *(t for t, _ in PROMISES)])
def test_every_promise_names_tests_that_exist(text):
    tests = named(text)
    assert len(tests) >= 3
    for file, name in tests:
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"
