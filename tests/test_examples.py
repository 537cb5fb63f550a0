"""The examples run as scripts, as users run them, and print their tables."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ROWS = {
    "own_policy.py": ["ucb", "optimal-ucb", "epsilon-greedy"],
    "own_protocol.py": ["irs", "shy-hubs", "fwa", "flooding"],
}


@functools.cache
def run(name):
    command = [sys.executable, "-W", "error", EXAMPLES / name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_every_example_is_tested_and_described():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == set(ROWS)
    assert all(name in (EXAMPLES / "README.md").read_text() for name in scripts)


@pytest.mark.parametrize("name", ROWS)
def test_example_prints_its_table(name):
    rows = {words[0]: float(words[1]) for words in run(name) if words[0] in ROWS[name]}
    assert list(rows) == ROWS[name]
    assert all(regret > 0 for regret in rows.values())


def test_own_protocol_lies_between_irs_and_fwa_in_traffic():
    messages = {words[0]: float(words[3]) for words in run("own_protocol.py") if words[0] in ROWS["own_protocol.py"]}
    assert messages["irs"] < messages["shy-hubs"] < messages["fwa"] < messages["flooding"]
