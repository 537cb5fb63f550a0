"""The benchmark runs from end to end at tiny sizes, and its figures reach the document."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
SECTIONS = (
    "engines",
    "stepper",
    "c",
    "choice",
    "scale",
    "growth",
    "threads",
    "agent",
    "animations",
)


def run(*arguments):
    command = [sys.executable, FOLDER / "run.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def quick_results(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "results.json"
    done = run("--quick", "--only", ",".join(SECTIONS), "--out", out)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


# Memories and changing arms have kernels of their own.
@pytest.mark.slow
def test_sections_on_changing_worlds_give_rows(tmp_path):
    done = run("--quick", "--only", "worlds,memories", "--out", tmp_path / "results.json")
    assert done.returncode == 0, done.stderr
    assert {"worlds", "memories"} <= set(json.loads((tmp_path / "results.json").read_text())["sections"])


def test_every_section_gives_rows(quick_results):
    assert tuple(quick_results["sections"]) == SECTIONS
    assert all(quick_results["sections"].values())


@pytest.mark.slow
@pytest.mark.parametrize("section", ["live", "page", "memories", "startup"])
def test_what_takes_longer_is_measured(section, tmp_path):
    done = run("--quick", "--only", section, "--out", tmp_path / "results.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "results.json").read_text())["sections"][section]


@pytest.mark.slow
def test_tables_of_changing_worlds_are_printed():
    command = [sys.executable, FOLDER / "changing.py", "--quick", "--replicates", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("| --- |") for line in lines) == 7
    assert sum(line.endswith("2 replicates") for line in lines) == 7


def test_results_name_the_machine_and_no_date(quick_results):
    assert set(quick_results["machine"]) == {"cpu", "cores", "memory_gib", "system", "python", "numpy", "numba"}
    assert set(quick_results) == {"machine", "sections"}


def test_c_loop_agrees_with_the_engine_to_the_last_bit_or_says_that_there_is_no_compiler(quick_results):
    rows = quick_results["sections"]["c"]
    if any(map(shutil.which, ("cc", "gcc", "clang"))):
        assert [row["protocol"] for row in rows] == ["none", "irs", "fwa", "flooding"]
        assert all(row["equal"] for row in rows)
    else:
        assert rows == [{"missing": "there is no C compiler on this machine"}]


def test_unknown_section_or_what_is_no_checkout_is_wrong_use():
    wrong = [["--only", "engine"], ["--only", "", "--before", str(FOLDER)]]
    # In one process, since its imports take longer than the rest; and in none of ours, where their names are others'.
    script = f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import run
for arguments in {wrong}:
    try:
        run.main(arguments)
    except SystemExit as end:
        print(end.code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["2", "2"], done.stderr
    said = done.stderr.replace("'", "")
    assert "got engine\n" in said
    assert f"got {FOLDER}\n" in said


def against(*arguments):
    command = [sys.executable, str(FOLDER / "against.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [(FOLDER,), (FOLDER.parent / "src", "--only", "fwa,nine")])
def test_comparing_with_what_is_no_checkout_or_no_case_is_wrong_use(arguments):
    done = against(*arguments)
    assert done.returncode == 2
    assert "got" in done.stderr


@pytest.mark.slow
def test_comparing_with_itself_gives_a_line_of_two_figures_each():
    done = against(FOLDER.parent / "src", "--only", "none", "--turns", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("none, ns/pull")
    assert done.stdout.splitlines()[-1].count("(1.000 1.000)") == 1


def test_figures_in_the_document_are_those_of_the_results(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import document
    import tables

    section = tables.Section("one", "One", "What is measured.", (tables.Column("ns", "ns/pull", ".1f"),), list)
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- figures: one -->\nold\n<!-- end -->\nafter\n")
    for value in (2.0, 3.0):
        document.render({"machine": {}, "sections": {"one": [{"ns": value}]}}, {"one": section}, path)
    text = path.read_text()
    assert "old" not in text
    assert "| 2.0 |" not in text
    assert "What is measured.\n\n| ns/pull |\n| --: |\n| 3.0 |\n" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
