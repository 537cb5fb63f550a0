from types import SimpleNamespace

import pytest

import banditmesh as bm
from banditmesh.comparisons.shown import comparison_rows, difference_rows, frontier_rows
from banditmesh.studies.summary import summary_rows
from banditmesh.text_tables import as_html, as_text, decimals

ROWS = [["name", "a", "remark"], ["x", "100", ""], ["longer", "1", "here"]]


def test_columns_are_as_wide_as_their_widest_cell():
    assert as_text(ROWS).splitlines() == ["name      a  remark", "x       100", "longer    1    here"]


def test_any_column_can_be_aligned_to_the_left():
    assert as_text(ROWS, left=(0, 2)).splitlines() == ["name      a  remark", "x       100", "longer    1  here"]
    assert as_text(ROWS, left=None).splitlines() == ["name    a    remark", "x       100", "longer  1    here"]


def test_columns_have_at_least_the_width_that_is_asked_for():
    assert as_text([["a", "b"]], widths=(3, 4)) == "a       b"


def test_numbers_have_three_digits_of_the_largest_in_their_column():
    assert [decimals([value, 0.0]) for value in (123_456.0, 100.0, 99.0, -9.9, 0.5, 0.0)] == [0, 0, 1, 2, 3, 0]
    assert decimals([float("nan"), 5.0]) == 2
    assert decimals([]) == 0


def test_small_regrets_are_not_rounded_away():
    rates = [bm.arms.Bernoulli(p) for p in (0.001, 0.004)]
    problem = bm.Problem([(0, 1), (1, 2)], [[0, 1]] * 3, rates)
    settings = {"horizon": 12, "replicates": 2, "seed": 0, "engine": "reference", "policy": bm.KLUCB()}
    comparison = bm.compare(problem, ["none", "irs"], **settings)
    regret = comparison.table()["regret"]["irs"]
    assert regret < 0.1
    found = bm.frontier(problem, protocols=["none", "irs"], emissions=["every-pull"], **settings)
    study = comparison.table().reset_index().assign(point=[0, 1])
    assert float(comparison_rows(comparison)[2][1].split()[0]) == pytest.approx(regret, rel=0.01)
    shares = comparison.table(agents=True).loc["irs", ["agent_median", "agent_worst"]]
    shown = comparison_rows(comparison, agents=True)[2]
    assert [float(shown[-3]), float(shown[-1])] == pytest.approx(list(shares), rel=0.01)
    assert float(difference_rows(comparison, "none")[1][1].split()[0]) == pytest.approx(
        comparison.differences("none")["regret"]["irs"], rel=0.01
    )
    assert float(frontier_rows(found)[2][2].split()[0]) == pytest.approx(regret, rel=0.01)
    assert f"group regret {regret:.4f} [" in found.advice
    assert float(summary_rows(study)[0][2][1]) == pytest.approx(regret, rel=0.01)


def test_nothing_has_no_sign_of_its_own():
    row = {f"{what}{end}": -1e-14 for what in ("regret", "messages") for end in ("", "_low", "_high")}
    found = SimpleNamespace(rows=lambda: {"irs": {"regret": 3.0}}, difference_rows=lambda against: {"irs": row})
    assert difference_rows(found, "fwa")[1] == ["irs", "+0.00 [+0.00, +0.00]", "+0 [+0, +0]"]


def test_indented_rows_stay_indented_in_notebooks():
    assert "<td>&nbsp;&nbsp;log T &amp; more</td>" in as_html("bounds", [["row"], ["  log T & more"]])
