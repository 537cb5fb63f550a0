import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.sim import progress, watching
from banditmesh.sim.progress import Progress
from cases import common_arms

SETTINGS = {"horizon": 6, "replicates": 2, "seed": 0}


def test_callable_is_told_the_rounds_of_all_replicates(engine):
    calls = []
    settings = {**SETTINGS, "engine": engine}
    bm.simulate(common_arms(nx.path_graph(3)), bm.IRS(), progress=lambda *call: calls.append(call), **settings)
    assert calls[-1] == (12, 12)
    assert {total for _, total in calls} == {12}
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_reference_engine_tells_of_every_round():
    calls = []
    settings = {**SETTINGS, "engine": "reference"}
    bm.simulate(common_arms(nx.path_graph(3)), bm.IRS(), progress=lambda *call: calls.append(call), **settings)
    assert calls == [(done, 12) for done in range(1, 13)]


def test_callable_may_stop_a_run(engine):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bm.simulate(common_arms(nx.path_graph(3)), bm.IRS(), progress=stop, engine=engine, **SETTINGS)


def test_who_watches_sees_the_curves_grow_up_to_the_result(engine, monkeypatch):
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    seen = []
    problem = common_arms(nx.path_graph(3))
    settings = {**SETTINGS, "engine": engine, "record_every": 2}
    watched = bm.simulate(problem, bm.IRS(), watch=lambda *call: seen.append(call), **settings)
    assert watched == bm.simulate(problem, bm.IRS(), **settings)
    for rounds, regret, messages in seen:
        known = ~np.isnan(regret)
        assert rounds.tolist() == [2, 4, 6]
        assert (known[:, :-1] >= known[:, 1:]).all()
        assert np.array_equal(regret[known], watched.regret[known])
        assert np.array_equal(messages[known], watched.transmissions[known])
    assert not np.isnan(seen[-1][1]).any()


@pytest.mark.parametrize("wish", [None, False, True])
def test_progress_changes_no_number_and_says_nothing_on_standard_output(wish, engine, capsys):
    problem = common_arms(nx.path_graph(3))
    plain = bm.simulate(problem, bm.IRS(), engine=engine, **SETTINGS)
    assert bm.simulate(problem, bm.IRS(), progress=wish, engine=engine, **SETTINGS) == plain
    captured = capsys.readouterr()
    assert captured.out == ""
    assert wish or captured.err == ""


def test_bar_shows_label_and_rounds(capsys):
    with Progress(True, 5, "fwa, some engine") as bar:
        for _ in range(5):
            bar.advance()
    error = capsys.readouterr().err
    assert "fwa, some engine" in error
    assert "5/5" in error


def test_bar_appears_in_a_terminal_only_when_a_run_takes_long(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress(None, 2, "quick") as bar:
        bar.advance(2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(None, 2, "slow") as bar:
        bar.advance(2)
    assert "slow" in capsys.readouterr().err


def test_bar_shows_a_remark(capsys):
    bar = progress.Bar("study", "runs", elapsed=True)
    bar.show(3, 7, "2 failed")
    bar.stop()
    error = capsys.readouterr().err
    assert "3/7" in error
    assert "2 failed" in error


def test_a_bar_for_terminals_is_shown_nowhere_else(capsys, monkeypatch):
    with progress.terminal_bar("paper", "simulations") as show:
        assert show is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.terminal_bar("paper", "simulations") as show:
        show(1, 2, "fwa on er")
    assert "fwa on er" in capsys.readouterr().err


def test_a_patient_bar_appears_in_a_terminal_only_when_it_takes_long(capsys, monkeypatch):
    with progress.patient_bar("reading", "bytes") as show:
        assert show is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.patient_bar("quick", "bytes") as show:
        show(1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.patient_bar("reading links.txt", "bytes") as show:
        show(1, 2)
    assert "reading links.txt" in capsys.readouterr().err


def test_runs_that_are_counted_together_advance_by_what_each_has_done():
    calls = []
    whole = Progress(lambda *call: calls.append(call), 10, "two runs")
    for _ in range(2):
        part = whole.part()
        part(2, 5)
        part(5, 5)
    assert calls == [(2, 10), (5, 10), (7, 10), (10, 10)]


def test_steps_are_told_before_each_simulation_and_at_the_end():
    calls = []
    steps = progress.Steps(2, lambda *call: calls.append(call))
    steps.begin("one")
    steps.begin("two")
    steps.end()
    assert calls == [(0, 2, "one"), (1, 2, "two"), (2, 2, "done")]
    progress.Steps(1, None).begin("nobody watches")


def test_without_a_terminal_a_line_comes_once_a_minute_to_whoever_asked_for_lines(monkeypatch):
    lines, now = [], [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress(None, 200, "frontier", notice=lines.append) as bar:
        for now[0] in (30.0, 59.0, 60.0, 90.0, 119.0, 130.0):
            bar.advance(20)
    assert lines == [
        "frontier: 30% of 200 rounds done after 60 seconds, about 2 minutes left",
        "frontier: 60% of 200 rounds done after 2 minutes, about 87 seconds left",
    ]
    for wish in (False, True, print):
        with Progress(wish, 2, "frontier", notice=lines.append) as bar:
            now[0] += 100.0
            bar.advance(2)
    assert len(lines) == 2
