"""Notebooks run from top to bottom, as a class runs them, and are kept without outputs."""

import ast
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def code_of(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run(cells):
    """The last value of every cell, which a notebook shows."""
    names, shown = {"__name__": "notebook"}, []
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        shown.append(None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return shown


def test_there_are_notebooks_and_they_are_described():
    assert [path.name for path in NOTEBOOKS] == ["absorption.ipynb", "changing.ipynb"]
    assert all(path.name in (EXAMPLES / "README.md").read_text(encoding="utf-8") for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_kept_without_outputs_and_in_short_cells(path):
    for cell in code_of(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert len(cell["source"]) <= 16


def test_the_story_of_absorption_runs_and_says_what_happens(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    shown = run(code_of(EXAMPLES / "absorption.ipynb"))
    figures = [value for value in shown if hasattr(value, "axes")]
    counts = [[int(axes.get_title().split()[1]) for axes in figure.axes] for figure in figures]
    # Path, star, ring, grid, two communities, the paper's network: flooding, then with absorption.
    assert counts == [[5, 2], [8, 1], [11, 5], [53, 22], [33, 18], [137, 63]]
    # Who learns from agent 2 on the path, all copies of the flood on the grid, who learns if the bridge has the arm.
    assert [value for value in shown if isinstance(value, tuple)] == [
        (0, 5),
        (53, {"relayed": 23, "duplicate": 30}),
        (2, 4),
    ]
    sent = {name: result.transmissions[:, -1].mean() for name, result in shown[-1].results.items()}
    assert sent["none"] == 0 < sent["fwa"] < sent["flooding"]


def test_the_story_of_a_changing_world_shows_that_forgetting_makes_sharing_pay(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    shown = run(code_of(EXAMPLES / "changing.ipynb"))
    before, after = shown[1]
    assert before != after
    regret = {name: one.regret[:, -1].mean() for name, one in shown[4].results.items()}
    forgets = "ucb+discount(0.98)"
    assert regret[f"flooding, {forgets}"] < 0.6 * min(regret["flooding, ucb"], regret[f"none, {forgets}"])
    assert min(shown[-1], key=shown[-1].get) in (0.97, 0.98, 0.99)
