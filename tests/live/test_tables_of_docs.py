"""The scripts that make the tables of the live pages run from end to end."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(("script", "says"), [("in_flight", "the best stops answering"), ("estimates", "Exploration")])
def test_tables_are_made(monkeypatch, capsys, script, says):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, script, raising=False)
    __import__(script)
    sys.modules[script].main(["--quick"])
    assert f"| {says}" in capsys.readouterr().out
