"""Rewards that are equal as floats: the published rules take them for one message, on both engines."""

from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.arms.base import Law
from banditmesh.draws import REWARD, Draws
from banditmesh.errors import UnsupportedError
from banditmesh.sim.compiled import repeats
from banditmesh.sim.compiled.repeats import pays_twice
from test_limits import a_run

#: Only just continuous: about 2**32 floats lie between the ends.
NARROW = bm.arms.Uniform(1.0, 1.0 + 2**-20 * 1.001)
LAWS = {
    "narrow": NARROW,
    "narrow, far": bm.arms.Uniform(-1e9, -1e9 * (1 - 2**-20 * 1.001)),
    "gaussian, far": bm.arms.Gaussian(1e9, 1e9 * 2**-20),
    "gaussian": bm.arms.Gaussian(0.5, 1.0),
    "uniform": bm.arms.Uniform(0.0, 2.0),
}


class Steps(Law):
    """A law that says it is continuous and is not."""

    mean, sigma, continuous = 0.5, 0.5, True

    def quantile(self, u):
        return round(u, 3)


def pair(law):
    return bm.Problem(nx.path_graph(2), [[0], [0]], [law])


@cache
def uniforms(seed, replicate, agent, horizon):
    draws = Draws(seed, replicate)
    return [draws.uniform(REWARD, agent, t) for t in range(1, horizon + 1)]


def rewards_by_hand(run, replicate=0):
    """Every agent's rewards of its arms, in the rounds in which it pulls."""
    for agent in range(run.problem.n_agents):
        us = uniforms(run.seed, replicate, agent, run.horizon)[:: int(run.every[agent])]
        for arm in run.problem.arm_set(agent):
            yield [run.problem.laws[arm].quantile(u) for u in us]


def test_engines_agree_where_rewards_round_to_the_same_float(monkeypatch):
    # Agent 0 is paid the same twice, and a memory of so many ids forgets nothing.
    arguments = {"horizon": 8000, "seed": 33, "rules": "published", "record_every": 8000}
    right = bm.simulate(pair(NARROW), bm.Flooding(4000), **arguments, engine="reference")
    with pytest.raises(UnsupportedError, match="Bernoulli laws and rewards that never repeat"):
        bm.simulate(pair(NARROW), bm.Flooding(4000), **arguments, engine="compiled")
    # What the compiled engine would give if it took the law at its word.
    monkeypatch.setattr("banditmesh.sim.compiled.packing.pays_twice", lambda run: False)
    assert bm.simulate(pair(NARROW), bm.Flooding(4000), **arguments, engine="compiled") != right


def test_a_run_without_equal_rewards_stays_compiled():
    arguments = {"horizon": 2000, "seed": 33, "rules": "published", "record_every": 2000}
    one, other = (
        bm.simulate(pair(NARROW), bm.Flooding(4000), **arguments, engine=engine) for engine in ("auto", "reference")
    )
    assert one.engine == "compiled"
    assert one == other


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", [33, 292])
def test_repeats_are_those_that_are_found_by_hand(name, seed):
    run = a_run(pair(LAWS[name]), bm.Flooding(2), horizon=8000, rules="published")
    for every in ([1, 1], [1, 3]):
        run = replace(run, seed=seed, every=np.array(every))
        assert pays_twice(run) == any(len(set(paid)) < len(paid) for paid in rewards_by_hand(run))


def test_repeats_are_looked_for_in_every_replicate_agent_and_arm(monkeypatch):
    problem = bm.Problem(nx.path_graph(3), [[0], [0], [1, 2]], [LAWS["gaussian"], LAWS["uniform"], NARROW])
    run = replace(a_run(problem, bm.Flooding(2), horizon=8000, replicates=2, rules="published"), seed=57)
    # The narrow law of agent 2, in the second replicate.
    assert [len(set(paid)) < len(paid) for paid in rewards_by_hand(run, 1)] == [False, False, False, True]
    assert pays_twice(run)
    assert not pays_twice(replace(run, replicates=1))
    # A few agents at a time.
    monkeypatch.setattr(repeats, "AT_ONCE", 1)
    assert pays_twice(run)


def test_a_users_law_that_says_it_is_continuous_is_not_taken_at_its_word():
    arguments = {"seed": 0, "rules": "published"}
    found = bm.simulate(pair(Steps()), bm.Flooding(2), horizon=300, **arguments)
    assert found.engine == "reference"
    assert found == bm.simulate(pair(Steps()), bm.Flooding(2), horizon=300, **arguments, engine="reference")
    assert bm.simulate(pair(Steps()), bm.Flooding(2), horizon=3, **arguments, engine="compiled").engine == "compiled"


def test_too_many_rounds_to_look_at_count_as_repeating(monkeypatch):
    run = a_run(pair(LAWS["gaussian"]), bm.Flooding(2), horizon=100, rules="published")
    assert not pays_twice(run)
    monkeypatch.setattr(repeats, "MAX_ROUNDS", 99)
    assert pays_twice(run)
