import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.arms import GAUSSIAN
from banditmesh.draws import INDEX, Draws
from banditmesh.policies import Estimates

rewards = st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=20)


def no_draw(position):
    raise AssertionError("a policy that is not random must not draw")


def estimates_of(*samples):
    estimates = Estimates([1.0] * len(samples), [GAUSSIAN] * len(samples))
    for position, sample in enumerate(samples):
        for reward in sample:
            estimates.add(position, 1, reward)
    return estimates


@given(rewards)
def test_estimates_keep_sums_and_derive_the_rest(sample):
    estimates = estimates_of(sample)
    total = 0.0
    for reward in sample:
        total += reward
    assert estimates.count == [len(sample)]
    assert estimates.total == [total]
    assert estimates.mean == [total / len(sample)]
    assert estimates.inv_root == [1.0 / math.sqrt(len(sample))]


def test_a_statistic_counts_as_often_as_its_count():
    estimates = Estimates([1.0], [GAUSSIAN])
    estimates.add(0, 1, 1.0)
    estimates.add(0, 4, 2.0)
    assert (estimates.count, estimates.mean) == ([5], [0.6])
    assert len(estimates) == 1


@given(st.lists(rewards, min_size=1, max_size=5), st.integers(2, 10_000), st.floats(0.1, 10.0))
def test_ucb_chooses_by_the_formula(samples, t, alpha):
    estimates = estimates_of(*samples)
    bonuses = [math.sqrt(alpha * math.log(t) / len(sample)) for sample in samples]
    indices = [sum(sample) / len(sample) + bonus for sample, bonus in zip(samples, bonuses, strict=True)]
    chosen = bm.UCB(alpha).choose(t, estimates, no_draw)
    assert indices[chosen] == pytest.approx(max(indices), rel=1e-12, abs=1e-12)


def test_ucb_index_is_computed_as_written():
    clock = bm.UCB.clock(17, 3.0)
    assert clock == math.sqrt(3.0 * math.log(17))
    inv_root = 1.0 / math.sqrt(7)
    assert bm.UCB.index(0.25, 7, inv_root, clock, 1.0, GAUSSIAN, 0.0, 3.0) == 0.25 + clock * inv_root


def test_ucb_has_no_bonus_when_the_clock_reads_one():
    assert bm.UCB.clock(1, 3.0) == 0.0
    assert bm.UCB().choose(1, estimates_of([0.0, 0.0], [0.1] * 9), no_draw) == 1


@pytest.mark.parametrize("n_arms", [1, 2, 5])
def test_ties_go_to_the_first_arm(n_arms):
    assert bm.UCB().choose(9, estimates_of(*[[0.5]] * n_arms), no_draw) == 0
    assert bm.UCB().choose(9, estimates_of([0.0], *[[0.5]] * n_arms), no_draw) == 1


def test_defaults_and_names():
    assert bm.UCB() == bm.UCB(alpha=3.0) == bm.UCB(3)
    assert bm.UCB(2) != bm.UCB(3)
    assert (bm.UCB.name, bm.UCB(2).parameter) == ("ucb", 2.0)
    assert isinstance(bm.UCB(np.int64(2)).alpha, float)


class Noisy(bm.Policy):
    """The arm with the highest random number."""

    name = "noisy"
    random: ClassVar[bool] = True

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return u


def test_random_policy_meets_one_number_per_agent_round_and_arm():
    arm_sets = [[2, 0, 1], [1, 2]]
    problem = bm.Problem(bm.networks.path(2), arm_sets, [bm.arms.Bernoulli(0.5)] * 3)
    result = bm.simulate(problem, bm.NoCooperation(), policy=Noisy(), horizon=40, seed=5, engine="reference")
    draws = Draws(5, 0)
    expected = np.array([[1, 1, 1], [0, 1, 1]])
    for agent, arms in enumerate(arm_sets):
        for t in range(len(arms) + 1, 41):
            expected[agent, max(arms, key=lambda arm: draws.uniform(INDEX, agent, t, arm))] += 1
    np.testing.assert_array_equal(result.pulls[0], expected)


def test_policy_without_an_index_says_what_is_missing():
    class Empty(bm.Policy):
        pass

    with pytest.raises(NotImplementedError, match="index"):
        Empty().choose(2, estimates_of([1.0]), no_draw)


def test_policy_may_choose_in_its_own_way():
    class Last(bm.Policy):
        name = "last"

        def choose(self, t, estimates, draw):
            return len(estimates) - 1

    problem = bm.Problem.random(bm.networks.path(2), n_arms=3, per_agent=3, seed=0)
    result = bm.simulate(problem, bm.IRS(), policy=Last(), horizon=10, seed=0)
    assert result.pulls.tolist() == [[[1, 1, 8], [1, 1, 8]]]
    assert result.policy == "last"
