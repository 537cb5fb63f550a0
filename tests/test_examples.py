"""The examples run as scripts, as users run them, and print their tables."""

import contextlib
import functools
import io
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import banditmesh as bm

EXAMPLES = Path(__file__).parent.parent / "examples"
ROWS = {
    "outside_choices.py": [],
    "own_entry.py": [],
    "own_data.py": ["none", "tree+growth(0.05)", "irs+growth(0.25)", "irs", "fwa(3)+growth(0.25)"],
    "own_policy.py": ["ucb", "optimal-ucb", "explore-first"],
    "own_protocol.py": ["irs", "shy-hubs", "fwa", "flooding"],
    "student.py": ["irs", "fwa", "flooding"],
    "three_agents.py": [],
}


#: Those that run in a process of their own. The others run in this one, which has imported what they need.
ALONE = ("own_policy.py", "three_agents.py")


@functools.cache
def run(name):
    if name in ALONE:
        command = [sys.executable, "-W", "error", EXAMPLES / name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), io.StringIO() as out:
            warnings.simplefilter("error")
            patch.setattr(sys, "argv", [name])
            with contextlib.redirect_stdout(out):
                runpy.run_path(str(EXAMPLES / name), run_name="__main__")
            printed = out.getvalue()
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_every_example_is_tested_and_described():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == set(ROWS)
    assert all(name in (EXAMPLES / "README.md").read_text() for name in scripts)


@pytest.mark.parametrize("name", ROWS)
def test_example_prints_its_table(name):
    # What a comparison prints has commas, and its differences a minus after the name.
    table = [words for words in run(name) if words[0] in ROWS[name] and words[1] != "-"]
    rows = {words[0]: float(words[1].replace(",", "")) for words in table}
    assert list(rows) == ROWS[name]
    assert all(regret > 0 for regret in rows.values())


def test_own_protocol_lies_between_irs_and_fwa_in_traffic():
    messages = {words[0]: float(words[3]) for words in run("own_protocol.py") if words[0] in ROWS["own_protocol.py"]}
    assert messages["irs"] < messages["shy-hubs"] < messages["fwa"] < messages["flooding"]


def test_own_entry_is_judged_on_each_problem():
    sentences = {words[0]: " ".join(words[1:]) for words in run("own_entry.py")}
    assert list(sentences) == ["communities:", "asynchronous:"]
    assert all("the best of what sends no more bytes: group regret" in one for one in sentences.values())


def test_examples_keep_to_their_contracts():
    policies = runpy.run_path(str(EXAMPLES / "own_policy.py"))
    bm.testing.check_policy(policies["OptimalUCB"](), compiled=False)
    bm.testing.check_policy(policies["ExploreFirst"](), compiled=False)
    bm.testing.check_protocol(runpy.run_path(str(EXAMPLES / "own_protocol.py"))["ShyHubs"](4), compiled=False)


def test_agents_driven_by_hand_learn_from_each_other():
    lines = run("three_agents.py")
    known = {(words[0], words[1]): int(words[7]) for words in lines[1:]}
    own = {(words[0], words[1]): int(words[3]) for words in lines[1:]}
    assert sum(own.values()) == 3 * 1000
    # Nobody counts anything twice, and what is shared is known by all who have the arm.
    totals = {arm: sum(n for (_, of), n in own.items() if of == arm) for arm in ("red", "green", "blue")}
    assert all(own[key] <= known[key] <= totals[key[1]] for key in known)
    assert known["ann", "red"] > 0.8 * totals["red"] > 100 * own["ann", "red"]


def test_outside_program_chooses_for_its_agent():
    lines = [" ".join(words) for words in run("outside_choices.py")]
    assert [line.rsplit(" ", 2)[0] for line in lines[1:3]] == ["an outside program", "UCB, as the others"]
    problem = bm.Problem.random(bm.networks.ring(10), n_arms=8, per_agent=4, seed=1)
    best = problem.arms[problem.arm_set(3)[problem.gaps[3, problem.arm_set(3)].argmin()]]
    assert str(best) in lines[3]


def test_student_reproduces_invents_checks_compares_draws_and_sweeps():
    lines = [" ".join(words) for words in run("student.py")]
    assert lines[0].startswith("Figure 5, group regret: none ")
    assert lines[1].startswith("protocol 'fading': 9 checks hold")
    assert sum(line.startswith("fading, keep") for line in lines) == 4  # two rows, two differences with intervals
    assert any("18 runs, complete" in line for line in lines)
    assert lines[-1].endswith("2 figures")


def test_own_data_is_read_matched_and_replayed():
    lines = [" ".join(words) for words in run("own_data.py")]
    assert lines[0].startswith("Problem(40 agents, 100 links, 12 arms, 4 per agent) from RewardLog(40 agents")
    assert lines[1] == "left out: agents not in the network: 1 ('site-that-closed')"
    assert any(line.startswith("For at most 800 transmissions per round (1,600 a second) take ") for line in lines)
    assert any(line.startswith("Its weakness here: ") for line in lines)
    [figure] = [Path(line.partition(" ")[2]) for line in lines if line.startswith("figure: ")]
    assert figure.stat().st_size > 10_000
    assert lines[-2].startswith("replayed: ")
