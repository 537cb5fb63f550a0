"""The examples run as scripts, as users run them, and print their tables."""

import functools
import runpy
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm

EXAMPLES = Path(__file__).parent.parent / "examples"
BESIDE = ["fwa(4)", "flooding(4)", "flooding(8)+growth(0.25)"]
ROWS = {
    "co_aae.py": [*BESIDE, "co-aae"],
    "coop_ucb2.py": [*BESIDE, "coop-ucb2"],
    "own_policy.py": ["ucb", "optimal-ucb", "explore-first"],
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


def test_examples_keep_to_their_contracts():
    policies = runpy.run_path(str(EXAMPLES / "own_policy.py"))
    bm.testing.check_policy(policies["OptimalUCB"](), compiled=False)
    bm.testing.check_policy(policies["ExploreFirst"](), compiled=False)
    bm.testing.check_protocol(runpy.run_path(str(EXAMPLES / "own_protocol.py"))["ShyHubs"](4), compiled=False)


def easy_problem():
    arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 1.0, 0.5)]
    return bm.Problem(nx.path_graph(4), [[0, 1], [1, 2], [0, 2], [0, 1, 2]], arms)


def test_elimination_falls_silent_and_keeps_the_best_arm():
    names = runpy.run_path(str(EXAMPLES / "co_aae.py"))
    problem = easy_problem()
    regret, sent, n_silent = names["co_aae"](problem, bm.Flooding(3), 0.1, 200, seed=0, replicate=0)
    assert n_silent == 4
    # All that is ever sent is sent before agents have made up their minds.
    assert sent == names["co_aae"](problem, bm.Flooding(3), 0.1, 400, seed=0, replicate=0)[1]
    assert regret == names["co_aae"](problem, bm.Flooding(3), 0.1, 400, seed=0, replicate=0)[0]


def test_elimination_floods_while_nobody_is_silent():
    names = runpy.run_path(str(EXAMPLES / "co_aae.py"))
    problem = bm.Problem.paper("er", seed=0)
    _, sent, n_silent = names["co_aae"](problem, bm.Flooding(4), 1e6, 25, seed=0, replicate=0)
    assert n_silent == 0
    assert sent == bm.simulate(problem, bm.Flooding(4), horizon=25, seed=0).messages[0, -1]


def test_consensus_keeps_sums_and_reaches_everybody():
    names = runpy.run_path(str(EXAMPLES / "coop_ucb2.py"))
    problem = easy_problem()
    mixing = names["mixing_matrix"](problem.network)
    np.testing.assert_allclose(mixing.sum(axis=0), 1.0)
    np.testing.assert_array_equal(mixing, mixing.T)
    regret, counts = names["coop_ucb2"](problem, 300, seed=0, replicate=0)
    assert counts.sum() == pytest.approx(4 * 300)
    # Agent 0 does not have arm 2, and hears of it all the same.
    assert counts[0, 2] > 10
    assert regret < 0.1 * bm.simulate(problem, bm.NoCooperation(), horizon=300, seed=0, policy=bm.UCB()).regret[0, -1]
