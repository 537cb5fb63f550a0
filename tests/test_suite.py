"""The suite: fixed problems, results that do not depend on how they were run, and files that can be checked."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.lookup import registry
from banditmesh.machine.executors import InlineExecutor
from banditmesh.protocols import AnyProtocol
from banditmesh.suite import PROBLEMS, SuiteResult, records
from banditmesh.suite.page import describe, write_page
from banditmesh.suite.result import RESULTS
from banditmesh.suite.rows import BUDGETS, SAME, read_row, row_texts, with_numbers

#: What the problems of suite-1 are. They never change: another problem belongs to another suite.
HASHES = {
    "paper-er": "f51a3ccb3a88814b",
    "paper-ba": "02f7a27ea7ad9cad",
    "paper-sbm": "0ca4c2b73b5cf219",
    "paper-dynamic": "6bfc4bcd84c7dafc",
    "equal-complete": "e20f18b2704065d4",
    "equal-ring": "30e314a4dd73318e",
    "equal-grid": "2f946f14b9bc63e8",
    "equal-er": "e0f321ef3a0d78df",
    "many-arms": "4d9e2b9a97d015d4",
    "many-agents": "debdc929c78a500d",
    "rare-coins": "e7ad67e205676898",
    "faults": "80b0547ee8b4e31a",
    "delays": "4fd261f512572004",
    "asynchronous": "ab1b3bcb3b5564d7",
    "communities": "01e673808fd380c6",
    "switching": "c2438959831effab",
    "drifting": "18bc6ff8a03970f2",
    "wandering": "a4d0d4bd5d8eb029",
}

QUICK = {"horizon": 6, "replicates": 2, "engine": "reference", "workers": 1}
REFERENCE = ["--engine", "reference"]
ROWS = ["none", "irs", "fwa(2)+growth(1)", "gossip(2)"]
ASKED = {"problems": ["equal-ring", "communities"], "rows": ROWS[:3], "entries": ["fwa(2)", "gosine"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a quick run with an entry that ran and one that is refused, which no test changes."""
    out = tmp_path_factory.mktemp("suite")
    bm.suite.run(**ASKED, out=out, **QUICK)
    return out


@pytest.fixture
def file(folder, tmp_path):
    path = tmp_path / RESULTS
    path.write_bytes((folder / RESULTS).read_bytes())
    return path


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return stop.value.code, captured.out, captured.err

    return call


# The problems


def test_problems_are_what_they_were_when_the_suite_was_published():
    assert {name: one.hash[:16] for name, one in PROBLEMS.items()} == HASHES


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "ucb(2)"},
        {"faults": bm.Faults(loss=0.2)},
        {"paces": (1, 3)},
        {"make": lambda: bm.Problem.random(bm.networks.ring(4), 3, 2, seed=0)},
        {"make": lambda: bm.Problem.random(bm.networks.ring(5), 3, 2, seed=1)},
        {"make": lambda: bm.Problem.random(bm.networks.EdgeMarkovian(bm.networks.ring(5), 0.1, 0.2), 3, 2, seed=0)},
    ],
)
def test_whatever_a_problem_consists_of_is_in_its_hash(change):
    base = {"name": "a", "question": "?", "make": lambda: bm.Problem.random(bm.networks.ring(5), 3, 2, seed=0)}
    assert bm.suite.SuiteProblem(**base).hash != bm.suite.SuiteProblem(**{**base, **change}).hash


def test_a_problem_asks_something_and_has_a_small_and_a_larger_size():
    for one in PROBLEMS.values():
        assert one.question[-1] in "?."
        (small, few), (full, many) = one.size("small"), one.size("full")
        assert small < full
        assert 2 <= few < many


# The rows


@pytest.mark.parametrize("problem", ["paper-dynamic", "equal-complete", "faults", "wandering"])
def test_every_row_can_be_made_and_has_its_own_name(problem):
    texts = row_texts(PROBLEMS[problem])
    rows = [read_row(text, PROBLEMS[problem]) for text in texts]
    assert [row.name for row in rows] == list(dict.fromkeys(texts))
    assert all(row.source == "" for row in rows)


def test_every_shipped_protocol_and_algorithm_has_a_row_or_is_another_name_of_one():
    drifting = PROBLEMS["drifting"]
    names = {read_row(text, drifting).protocol.name for text in row_texts(drifting)}
    assert names | set(SAME) == set(registry.by_name(AnyProtocol))
    assert not names & set(SAME)


@pytest.mark.parametrize("name", SAME)
def test_another_name_of_a_row_gives_the_same(name):
    found = bm.suite.run(problems="equal-grid", rows=SAME[name], entries=name, **QUICK).record.problems["equal-grid"]
    assert found.rows[name].values == found.rows[SAME[name]].values


def test_rows_forget_where_arms_change_and_echo_where_transmissions_are_lost():
    assert "fwa(4), ucb(0.5)+discount(0.995)" in row_texts(PROBLEMS["drifting"])
    assert "m-ucb(ttl=near)" in row_texts(PROBLEMS["drifting"])
    assert any("echoes" in text for text in row_texts(PROBLEMS["faults"]))
    others = "echoes", "discount", "m-ucb"
    assert not any(word in text for word in others for text in row_texts(PROBLEMS["paper-er"]))


def test_what_would_take_hours_is_left_out_with_that_reason():
    found = bm.suite.run(problems="rare-coins", rows=["none", "co-aae(2)"], **{**QUICK, "horizon": 2})
    assert found.refusals("rare-coins") == {"co-aae(2)": "co-aae would take hours here, and is left out of the suite"}


def test_words_are_numbers_of_the_problem_and_a_ttl_that_is_missing_is_the_diameter():
    ring = PROBLEMS["equal-ring"]
    assert read_row("flooding(diameter)", ring).protocol == bm.Flooding(18)
    assert read_row("flooding", ring).protocol == bm.Flooding(18)
    assert with_numbers("diameter:width(diameter, near, width)", ring) == "diameter:width(18, 18, 0.5)"
    assert with_numbers("fwa(near)", PROBLEMS["paper-er"]) == "fwa(4)"


# Runs


def test_results_do_not_depend_on_workers(folder, tmp_path):
    bm.suite.run(**ASKED, out=tmp_path, **{**QUICK, "workers": 2})
    assert (tmp_path / RESULTS).read_bytes() == (folder / RESULTS).read_bytes()


class Stopping(Executor):
    """Is interrupted after some tasks."""

    def __init__(self, n_tasks):
        self.left = n_tasks

    def submit(self, fn, /, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return InlineExecutor().submit(fn, *args, **kwargs)


def test_an_interrupted_run_continues_and_gives_the_same_file(tmp_path):
    asked = {"problems": ["equal-grid"], "rows": ROWS, **QUICK}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    bm.suite.run(**asked, out=whole)
    with pytest.raises(KeyboardInterrupt):
        bm.suite.run(**asked, out=parts, executor=Stopping(3))
    assert not (parts / RESULTS).exists()
    kept = list((parts / "cells").rglob("*.json"))
    assert 0 < len(kept) < 4
    before = {path: path.stat().st_mtime_ns for path in kept}
    bm.suite.run(**asked, out=parts)
    assert (parts / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()
    assert {path: path.stat().st_mtime_ns for path in kept} == before


KILLED = """
import sys
import banditmesh as bm
bm.suite.run(problems="equal-grid", rows={rows!r}, out=sys.argv[1], **{quick!r})
"""


@pytest.mark.slow
def test_a_killed_run_continues_and_gives_the_same_file(tmp_path):
    rows = ["none", "irs", "fwa(2)", "gossip(2)", "flooding(diameter)"]
    quick = {**QUICK, "horizon": 60}
    script = KILLED.format(rows=rows, quick=quick)
    running = subprocess.Popen([sys.executable, "-c", script, tmp_path / "killed"], env=dict(os.environ))
    cells = tmp_path / "killed" / "cells"
    while running.poll() is None and not list(cells.rglob("[!.]*.json")):
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    bm.suite.run(problems="equal-grid", rows=rows, out=tmp_path / "killed", **quick)
    bm.suite.run(problems="equal-grid", rows=rows, out=tmp_path / "whole", **quick)
    assert (tmp_path / "killed" / RESULTS).read_bytes() == (tmp_path / "whole" / RESULTS).read_bytes()


def test_replicates_beyond_those_of_one_cell_are_those_of_simulate():
    found = bm.suite.run(problems="equal-ring", rows="irs", **{**QUICK, "replicates": 7})
    problem = PROBLEMS["equal-ring"]
    result = bm.simulate(problem.problem, "irs", horizon=6, replicates=7, engine="reference", **problem.settings)
    values = found.record.problems["equal-ring"].rows["irs"].values
    assert values["regret"] == result.regret[:, -1].tolist()
    assert values["agent_worst"] == result.agent_regret.max(axis=1).tolist()
    assert values["bytes_per_round"] == (result.traffic["bytes"] / 6).tolist()
    assert values["messages_per_round"] == (result.transmissions[:, -1] / 6).tolist()


def test_progress_counts_the_pulls_of_all_agents_also_of_what_was_stored(tmp_path):
    for _ in range(2):
        seen = []
        counting = {"progress": lambda *one, seen=seen: seen.append(one)}
        bm.suite.run(problems="equal-ring", rows=ROWS[:2], out=tmp_path, **counting, **QUICK)
        assert seen[-1] == (36 * 6 * 2 * 2,) * 2


def test_a_row_that_refuses_a_problem_is_in_the_table_with_its_reason():
    found = bm.suite.run(problems=["paper-dynamic"], rows=["none", "tree(4)", "gosine"], **QUICK)
    reasons = found.refusals("paper-dynamic")
    assert set(reasons) == {"tree(4)", "gosine"}
    assert "static network" in reasons["tree(4)"]
    assert "unequal arm sets" in reasons["gosine"]
    assert [row[0] for row in found.table("paper-dynamic")] == ["row", "none"]
    assert "unequal arm sets" in str(found)
    everything = bm.suite.run(problems=["paper-dynamic"], rows=["tree(4)"], **QUICK)
    assert everything.best("paper-dynamic") is None
    assert "tree(4)" in str(everything)


MINE = """
from dataclasses import dataclass
import banditmesh as bm

@dataclass(frozen=True)
class Mine(bm.Protocol):
    name = "mine"
    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return {rule}
"""


def test_an_own_class_is_entered_by_its_address_and_its_source_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"problems": ["equal-ring"], "rows": ["none"], "entries": "mine_module:Mine", "out": tmp_path, **QUICK}
    records_of, names = [], ("bm.STOP", "bm.RELAY")
    for rule in names:
        (tmp_path / "mine_module.py").write_text(MINE.format(rule=rule))
        found = bm.suite.run(**asked)
        records_of.append(found.record.problems["equal-ring"].rows["mine_module:Mine"])
    one, other = records_of
    assert one.protocol == other.protocol == "Mine(ttl=18, emission=EveryPull())"
    assert one.source != other.source
    assert one.decided_by != other.decided_by
    assert one.values["messages_per_round"] < other.values["messages_per_round"]


class Broken(bm.Protocol):
    name = "broken"

    def courier(self, place):
        raise ZeroDivisionError("nothing\nto see")


def test_an_entry_that_fails_is_told_and_tried_again(tmp_path):
    asked = {"problems": "equal-ring", "rows": "none", "entries": {"mine": Broken(2)}, "out": tmp_path, **QUICK}
    found = bm.suite.run(**asked)
    assert found.verdicts["mine"]["equal-ring"] == "failed with ZeroDivisionError: nothing to see"
    n_cells = len(list((tmp_path / "cells").rglob("*.json")))
    assert n_cells == 1
    assert SuiteResult.load(tmp_path / RESULTS).refusals("equal-ring") == found.refusals("equal-ring")


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: {"key": stored["key"]},
        lambda stored: {**stored, "result": {}},
        lambda stored: {**stored, "result": [1]},
        lambda stored: {**stored, "result": {**stored["result"], "regret": [1.0]}},
        lambda stored: {**stored, "result": {**stored["result"], "regret": [float("nan"), 1.0]}},
        lambda stored: {**stored, "result": {**stored["result"], "regret": ["1", "2"]}},
    ],
)
def test_a_damaged_cell_is_computed_again(folder, tmp_path, change):
    shutil.copytree(folder / "cells", tmp_path / "cells")
    for path in (tmp_path / "cells").rglob("*.json"):
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
    path.write_text("[" * 100_000)
    bm.suite.run(**ASKED, out=tmp_path, **QUICK)
    assert (tmp_path / RESULTS).read_bytes() == (folder / RESULTS).read_bytes()


def test_workers_that_are_gone_are_told_in_one_line():
    class Gone(Executor):
        def submit(self, fn, /, *args, **kwargs):
            raise BrokenProcessPool("not usable any more")

    with pytest.raises(bm.StudyError, match=r"^a worker died, .*; run the same again with fewer workers") as error:
        bm.suite.run(problems="equal-ring", rows="none", **{**QUICK, "executor": Gone()})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"size": "huge"}, "size must be one of small, full"),
        ({"problems": "equal-rings"}, "equal-ring"),
        ({"problems": ["equal-ring", "faults", "equal-ring"]}, "problems must differ"),
        ({"problems": []}, "problems must name at least one, got []"),
        ({"problems": 3}, "problems must name at least one, got 3"),
        ({"problems": "equal-ring", "rows": "gosine, klucb"}, "'gosine' chooses by its own rules and takes no policy"),
        ({"problems": "equal-ring", "entries": [("dpe2", "klucb")]}, "'dpe2' chooses by its own rules and takes no"),
        ({"problems": "equal-ring", "rows": []}, "rows must name at least one, got []"),
        ({"problems": "equal-ring", "rows": "fwaa"}, "fwaa"),
        ({"problems": "equal-ring", "rows": "irs, ucb, klucb"}, "a row must be written like"),
        ({"problems": "equal-ring", "rows": ["irs", "irs"]}, "must differ"),
        ({"problems": "equal-ring", "rows": "irs", "entries": ["irs"]}, "must differ"),
        ({"problems": "equal-ring", "entries": [3]}, "entries must be such as"),
        ({"problems": "equal-ring", "entries": "no_such_module:Mine"}, "no_such_module"),
        ({"problems": "equal-ring", "horizon": 0}, "horizon must be"),
        (
            {"problems": "equal-ring", "horizon": 10**12},
            "horizon must be an integer of at least 1 and at most 2147",
        ),
        ({"problems": "equal-ring", "workers": 0}, "workers must be"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(asked, words):
    with pytest.raises(bm.InputError, match=re.escape(words)) as refused:
        bm.suite.run(**{"size": "small", **asked})
    assert "\n" not in str(refused.value)


# What results say


def made(rows, entries=(), problem="equal-ring"):
    """Results with these regrets and bytes, by row."""
    kinds = {"none": "alone", "centralised": "central"}
    n = len(next(iter(rows.values()))[0])
    suite = records.SuiteRecord(
        records.FORMAT, records.VERSION, "suite-1", "custom", {"banditmesh": "0"}, list(entries), {}
    )
    record = records.ProblemRecord(PROBLEMS[problem].hash, 10, n, 1, {})
    suite.problems[problem] = record
    for name, (regret, sent) in rows.items():
        values = {measure: [float(sent)] * n for measure in records.MEASURES} | {"regret": [float(r) for r in regret]}
        record.rows[name] = records.RowRecord(name, "", "", kinds.get(name, "sends"), "", values)
        record.rows[name].decided_by = records.decided_by(suite, problem, record.rows[name])
    suite.hash = records.content_hash(suite)
    return SuiteResult(suite)


STANDING = {
    "none": ([100, 102, 104], 0),
    "a": ([50, 60, 70], 10),
    "flooding(diameter)": ([30, 40, 50], 10_000),
    "centralised": ([10, 11, 12], 0),
}


@pytest.mark.parametrize(
    ("regret", "sent", "sentence"),
    [
        (
            [40, 50, 60],
            20,
            "better than a, {}: group regret 50.0 instead of 60.0, a difference of -10.0 [-10.0, -10.0] (-16.7%)",
        ),
        (
            [61, 70, 80],
            10,
            "worse than a, {}: group regret 70.3 instead of 60.0, a difference of +10.3 [+8.9, +11.8] (+17.2%)",
        ),
        (
            [49, 62, 68],
            30,
            "not told apart from a, {}: group regret 59.7 instead of 60.0, a difference of -0.3 [-5.5, +4.8] (-0.6%)",
        ),
        (
            [90, 92, 94],
            5,
            "better than none, {}: group regret 92 instead of 102, a difference of -10 [-10, -10] (-9.8%)",
        ),
    ],
)
def test_a_sentence_says_whether_an_entry_is_better_than_what_costs_no_more(regret, sent, sentence):
    found = made({**STANDING, "mine": (regret, sent)}, ["mine"])
    sentence = sentence.format("the best of what sends no more bytes")
    surely = ", with 95% confidence over 3 paired replicates"
    assert found.verdicts == {"mine": {"equal-ring": sentence + surely}}


def test_sentences_of_one_replicate_and_of_an_entry_without_rivals():
    one = made({"none": ([3.0], 0), "mine": ([2.0], 5)}, ["mine"]).verdicts["mine"]["equal-ring"]
    assert one.endswith("one replicate says nothing of how surely")
    alone = made({"a": ([3, 4], 9), "mine": ([2, 3], 5)}, ["mine"]).verdicts["mine"]["equal-ring"]
    assert alone == "nothing else sends as few bytes: group regret 2.5"


def test_budgets_are_shares_of_flooding_and_name_the_best_within():
    found = made({**STANDING, "b": ([80, 85, 90], 9.9)})
    assert (
        found.budgets("equal-ring") == {share: share * 10_000 for share in BUDGETS} == {0.001: 10, 0.01: 100, 0.1: 1000}
    )
    assert [row[1:] for row in found.budget_table()[1:]] == [
        ["0.1%", "10", "a", "60.0", "46%"],
        ["1.0%", "100", "a", "60.0", "46%"],
        ["10.0%", "1,000", "a", "60.0", "46%"],
        ["no limit", "", "flooding(diameter)", "40.0", "68%"],
    ]
    fronts = {row[0]: row[1:] for row in found.front_table()[1:]}
    assert fronts["a"] == ["1", "1", "1", "1", "1", "1", "1"]
    assert fronts["centralised"] == ["1", "0", "0", "0", "0", "0", "0"]


def test_tables_have_paired_differences_from_the_best_row():
    rows = {row[0]: row for row in made(STANDING).table("equal-ring")[1:]}
    assert list(rows) == ["centralised", "flooding(diameter)", "a", "none"]
    assert rows["flooding(diameter)"][3] == ""
    assert rows["a"][1:4] == ["TLB", "60 ± 25", "+20 [+20, +20]"]


# Files


def test_a_file_is_read_as_it_was_written(file, tmp_path):
    SuiteResult.load(file).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def edited(file, change):
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


def _row(content):
    return content["problems"]["equal-ring"]["rows"]["irs"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: _row(one)["values"]["regret"].__setitem__(0, 1.0), "its hash does not agree with its content"),
        (lambda one: one.update(hash="0" * 64), "its hash does not agree"),
        (lambda one: one.update(size="full"), "its hash does not agree"),
        (lambda one: _row(one).update(protocol="Flooding(ttl=9)"), "the hash of irs on equal-ring"),
        (lambda one: one["problems"]["equal-ring"].update(horizon=13), "the hash of"),
        (lambda one: one["problems"]["equal-ring"].update(hash="0"), "the hash of"),
        (lambda one: one["versions"].update(banditmesh="9"), "the hash of"),
        (lambda one: one["versions"].pop("banditmesh"), "which banditmesh"),
        (lambda one: _row(one)["values"]["regret"].append(1.0), "must have 2 numbers"),
        (lambda one: _row(one)["values"].pop("regret"), "other measures"),
        (lambda one: _row(one).update(values={}), "needs values or a reason"),
        (lambda one: _row(one).update(refused="no"), "needs values or a reason"),
        (lambda one: _row(one)["values"].update(regret=["a", "b"]), "float"),
        (lambda one: _row(one).pop("protocol"), "protocol"),
        (lambda one: _row(one).update(more=1), "more"),
        (lambda one: one.update(problems=[]), "problems"),
        (lambda one: one.update(version=2), "reads 1; use the banditmesh that wrote it"),
        (lambda one: one.update(version={"a": ["b"] * 9}), "reads 1"),
        (lambda one: one.update(format="other"), "must be results of a suite"),
    ],
)
def test_an_edited_file_is_refused_in_one_line(file, change, words):
    edited(file, change)
    with pytest.raises(bm.errors.FileError, match=re.escape(words)) as refused:
        SuiteResult.load(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"null", b"[]", b"[" * 100_000, b'{"format": NaN}', b'{"format": 1e999}']
)
def test_what_is_no_file_of_results_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "results.json"
    path.write_bytes(content)
    with pytest.raises(bm.errors.FileError, match="must be results of a suite") as refused:
        SuiteResult.load(path)
    assert "\n" not in str(refused.value)


def test_missing_files_folders_devices_and_other_suites_are_refused(tmp_path, monkeypatch):
    for path in (tmp_path / "none.json", tmp_path, os.devnull):
        with pytest.raises(bm.errors.FileError, match="cannot read"):
            SuiteResult.load(path)
    monkeypatch.setattr(records, "MAX_BYTES", 100)
    path = tmp_path / "large.json"
    path.write_bytes(b" " * 101)
    with pytest.raises(bm.errors.FileError, match="at most 100 bytes"):
        SuiteResult.load(path)


def with_right_hashes(file, change):
    """An edited file whose hashes were made to agree."""
    suite = records.read_record(file)
    change(suite)
    for name, problem in suite.problems.items():
        for row in problem.rows.values():
            row.decided_by = records.decided_by(suite, name, row)
    suite.hash = records.content_hash(suite)
    file.write_bytes(msgspec.json.encode(suite))


@pytest.mark.parametrize(
    "change",
    [
        lambda suite: setattr(suite, "suite", "suite-9"),
        lambda suite: suite.problems.update(new=suite.problems["equal-ring"]),
    ],
)
def test_a_file_of_another_suite_is_refused(file, change):
    with_right_hashes(file, change)
    with pytest.raises(bm.errors.FileError, match="must be results of suite-1"):
        SuiteResult.load(file)


# Checks of published results


def verdicts(file, **settings):
    found = bm.suite.check(file, sample=100, engine="reference", **settings)
    return {(one.problem, one.row, one.replicate): (one.verdict, one.why) for one in found}


def test_rows_that_are_right_hold(file):
    found = verdicts(file)
    # Ten rows less one that is refused, with two replicates each.
    assert len(found) == 18
    assert set(found.values()) == {("holds", "")}
    assert len(bm.suite.check(file, sample=3, seed=1, rows="fwa(2)", engine="reference")) == 3


def test_a_check_of_no_row_is_refused(file):
    with pytest.raises(bm.InputError, match="must have a row that ran and whose name contains 'nothing', got none"):
        bm.suite.check(file, rows="nothing", engine="reference")
    with pytest.raises(bm.InputError, match="got none"):
        bm.suite.check(file, rows="gosine, never", engine="reference")


def test_numbers_that_were_made_up_do_not_hold(file, run):
    def flatter(suite):
        suite.problems["equal-ring"].rows["fwa(2)"].values["regret"][1] -= 1.0

    with_right_hashes(file, flatter)
    differing = {key: why for key, (verdict, why) in verdicts(file).items() if verdict == "differs"}
    assert list(differing) == [("equal-ring", "fwa(2)", 1)]
    assert differing["equal-ring", "fwa(2)", 1].startswith("regret is ")
    code, out, err = run("suite", "check", file, "--sample", 100, "--rows", "fwa(2)", *REFERENCE)
    assert code == 1
    assert "7 of 8 hold, 1 differ, 0 are open" in out
    assert err.count("\n") == 1
    assert "does not hold: fwa(2) on equal-ring, replicate 1: regret is" in err


def test_results_of_another_problem_or_of_another_protocol_do_not_hold(file):
    with_right_hashes(file, lambda suite: setattr(suite.problems["equal-ring"], "hash", "0"))
    found = verdicts(file, rows="none")
    assert found["equal-ring", "none", 0] == ("differs", "the problem of that name is another one here")
    with_right_hashes(file, lambda suite: setattr(suite.problems["equal-ring"].rows["irs"], "policy", "UCB(alpha=9.0)"))
    assert verdicts(file, rows="irs")["equal-ring", "irs", 0] == (
        "open", "its policy is UCB(alpha=9.0) there and UCB(alpha=0.5) here",
    )  # fmt: skip


def test_code_that_a_file_names_is_run_only_if_it_is_entered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "their_module.py").write_text(MINE.format(rule="bm.STOP"))
    entry = "their_module:Mine"
    bm.suite.run(problems="equal-ring", rows="none", entries=entry, out=tmp_path, **QUICK)
    (tmp_path / "their_module.py").write_text("raise SystemExit('was run')")
    found = verdicts(tmp_path / RESULTS, rows="their")
    assert set(found.values()) == {("open", "is of its author's own classes; enter it to run it")}
    assert "<a" not in describe("their_module:Mine", "docs")
    (tmp_path / "their_module.py").write_text(MINE.format(rule="bm.RELAY"))
    assert set(verdicts(tmp_path / RESULTS, rows="their", entries=entry).values()) == {
        ("open", "its source is another one here")
    }
    (tmp_path / "their_module.py").write_text(MINE.format(rule="bm.STOP"))
    assert set(verdicts(tmp_path / RESULTS, rows="their", entries=entry).values()) == {("holds", "")}


# The page


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.asked, self.open, self.ids = [], [], []

    def handle_starttag(self, tag, attributes):
        self.asked += [value for name, value in attributes if name in ("src", "href", "data", "action")]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_self_contained_and_links_to_every_algorithm(folder, tmp_path):
    write_page(SuiteResult.load(folder / RESULTS), tmp_path / "page.html", docs="../site")
    text = (tmp_path / "page.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert {one[1:] for one in page.asked if one.startswith("#")} == set(page.ids)
    links = {one for one in page.asked if not one.startswith(("#", "data:image/svg+xml;base64,"))}
    shipped = {f"../site/protocols/{name}.html" for name in ("none", "irs", "fwa")}
    assert links == {*shipped, "../site/algorithms.html#gosine"}
    assert len([one for one in page.asked if one.startswith("data:")]) == 2
    assert "does not work with unequal arm sets" in text


def test_links_to_algorithms_lead_to_a_place_on_their_page():
    page = (Path(__file__).parent.parent / "docs" / "algorithms.md").read_text()
    headings = {line.removeprefix("## ").strip().lower() for line in page.splitlines() if line.startswith("## ")}
    places = headings | set(re.findall(r'<a id="([^"]+)"></a>', page))
    kinds = registry.by_name(AnyProtocol).items()
    assert {name for name, kind in kinds if registry.is_algorithm(kind)} <= places


def test_a_page_of_a_hostile_file_has_no_markup_of_its_own(file, tmp_path):
    def rename(suite):
        del suite.problems["communities"]
        rows = suite.problems["equal-ring"].rows
        rows["<script>alert(1)</script>"] = rows.pop("irs")
        suite.entries.append("<script>alert(1)</script>")
        suite.versions["<script>"] = "<script>"
        suite.size = "<script>"

    with_right_hashes(file, rename)
    write_page(SuiteResult.load(file), tmp_path / "page.html", docs='"><script>')
    assert "<script>" not in (tmp_path / "page.html").read_text()


# The command line


def test_the_verb_runs_prints_and_leaves_files(run, tmp_path):
    out = tmp_path / "out"
    asked = ["--problems", "equal-ring", "--rows", "none", "--rows", "irs", "--entry", "fwa(2)"]
    short = ["--horizon", 5, "--replicates", 2, "--workers", 1, *REFERENCE]
    code, printed, err = run("suite", *asked, *short, "--out", out)
    assert (code, err) == (0, "")
    assert "equal-ring: The same arms on a ring" in printed
    assert "  equal-ring: not told apart from none" in printed
    assert printed.endswith(f"{out} has results.json and page.html\n")
    assert (out / "page.html").stat().st_size > 10_000
    code, printed, _ = run("suite", *asked, *short, "--out", out, "--json")
    told = json.loads(printed)
    assert code == 0
    assert told == SuiteResult.load(out / RESULTS).to_json()
    assert told["problems"]["equal-ring"]["rows"]["irs"]["messages_per_round"]["mean"] == 72
    assert list(told["verdicts"]["fwa(2)"]) == ["equal-ring"]
    code, printed, _ = run("suite", "show", out / RESULTS, "--json")
    assert json.loads(printed) == told
    code, printed, _ = run("suite", "check", out / RESULTS, "--sample", 2, "--json", *REFERENCE)
    assert [one["verdict"] for one in json.loads(printed)] == ["holds", "holds"]


def test_the_verb_lists_problems_and_estimates(run):
    code, printed, _ = run("suite", "list")
    assert code == 0
    assert [line.split()[0] for line in printed.splitlines()[1:]] == list(PROBLEMS)
    asked = ["--problems", "equal-ring", "--rows", "none", "--rows", "irs", "--replicates", 2, *REFERENCE]
    code, printed, _ = run("suite", *asked, "--estimate", "--json")
    told = json.loads(printed)
    assert code == 0
    assert list(told["seconds"]) == ["equal-ring"]
    assert told["hours"] == pytest.approx(told["seconds"]["equal-ring"] / told["workers"] / 3600)


def test_an_estimate_tries_each_row_once_and_shows_how_far_it_is():
    seen = []
    asked = {"problems": "equal-ring", "rows": ["none", "irs"], "replicates": 12, "engine": "reference"}
    bm.suite.estimate("small", **asked, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize("verb", [["suite"], ["suite", "check"], ["suite", "show"], ["suite", "list"]])
def test_help_has_examples(run, verb):
    code, printed, _ = run(*verb, "--help")
    assert code == 0
    assert "Example" in printed
    assert f"banditmesh {' '.join(verb)}" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["suite", "--problems", "rings", "--out", "o"], "problems must be one of"),
        (["suite", "--problems", "equal-ring", "--entry", "nothing:Here", "--out", "o"], "nothing"),
        (["suite", "check", "no.json"], "cannot read no.json"),
        (["suite", "show", "no.json"], "cannot read no.json"),
        (["suite", "--out", "no.json/a"], "--out must be a folder"),
    ],
)
def test_wrong_use_is_one_line(run, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "no.json/a" in arguments:
        (tmp_path / "no.json").write_text("")
    code, printed, err = run(*arguments)
    assert (code, printed) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_the_published_run_is_the_full_suite_and_its_page_has_its_tables():
    docs = Path(__file__).parent.parent / "docs" / "suite"
    published = SuiteResult.load(docs / "suite-1.json")
    assert published.record.size == "full"
    assert list(published.record.problems) == list(PROBLEMS)
    for name, one in PROBLEMS.items():
        record = published.record.problems[name]
        assert (record.hash, record.horizon, record.replicates) == (one.hash, *one.size("full"))
        assert list(record.rows) == row_texts(one)
        assert not any(row.failed for row in record.rows.values())
    tables = "\n".join(line.rstrip() for line in str(published).splitlines())
    assert f"```text\n{tables}\n```" in (docs / "full.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_small_suite_runs_whole(tmp_path):
    found = bm.suite.run("small", out=tmp_path)
    assert list(found.record.problems) == list(PROBLEMS)
    assert not any(row.failed for one in found.record.problems.values() for row in one.rows.values())
    for name in PROBLEMS:
        assert found.budgets(name)
        values = found.frontier(name)
        assert values["centralised"].mean("regret") < values["none"].mean("regret")
        assert np.isfinite(values["none"].regret).all()
    assert all(one.verdict == "holds" for one in bm.suite.check(tmp_path / RESULTS, sample=20))
