import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN, OTHER
from banditmesh.draws import INDEX, Draws
from banditmesh.policies import Estimates
from banditmesh.settings.problems import build_policy, parts

rewards = st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=20)


def no_draw(position):
    raise AssertionError("a policy that is not random must not draw")


def estimates_of(*samples, law=GAUSSIAN):
    estimates = Estimates([1.0] * len(samples), [law] * len(samples))
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


# Where policies take sigma and divergence from


class Blind(bm.arms.Law):
    """A law without a sigma."""

    mean = 0.5

    def quantile(self, u):
        return u


@pytest.mark.parametrize("policy", [bm.KLUCB(), bm.ThompsonSampling(), bm.MOSS()], ids=lambda policy: policy.name)
def test_a_law_without_a_sigma_is_refused_by_policies_that_need_one(policy):
    problem = bm.Problem(bm.networks.path(2), [["a", "b"]] * 2, {"a": bm.arms.Bernoulli(0.5), "b": Blind()})
    with pytest.raises(bm.InputError, match=rf"policy '{policy.name}' must know the sigma .*got none for arm 'b'"):
        bm.simulate(problem, bm.IRS(), policy=[bm.UCB(), policy], horizon=3)


@pytest.mark.parametrize("policy", [bm.UCB(), bm.UCBV(), bm.EpsilonGreedy()], ids=lambda policy: policy.name)
def test_other_policies_need_no_sigma(policy):
    problem = bm.Problem(bm.networks.path(2), [[0, 1]] * 2, [Blind(), Blind()])
    assert bm.simulate(problem, bm.IRS(), policy=policy, horizon=5, seed=0).policy == policy.name


class Picky(bm.Policy):
    name = "picky"

    def check(self, problem):
        if problem.n_arms > 2:
            raise bm.InputError(f"'picky' needs at most 2 arms, got {problem.n_arms}; take some away")

    def choose(self, t, estimates, draw):
        return 0


def test_a_users_policy_may_refuse_a_problem():
    small, large = (bm.Problem.random(bm.networks.path(2), n_arms=n, per_agent=2, seed=0) for n in (2, 3))
    assert bm.simulate(small, bm.IRS(), policy=Picky(), horizon=3, seed=0).policy == "picky"
    with pytest.raises(bm.InputError, match="'picky' needs at most 2 arms, got 3"):
        bm.simulate(large, bm.IRS(), policy=Picky(), horizon=3)


@pytest.mark.parametrize("policy", [bm.KLUCB(), bm.ThompsonSampling(), bm.UCBV(), bm.MOSS()], ids=lambda p: p.name)
def test_coins_heard_as_sums_count_as_if_heard_one_by_one(policy):
    samples = [1.0, 0.0, 1.0, 1.0], [0.0, 1.0], [1.0] * 3
    one_by_one = estimates_of(*samples, law=BERNOULLI)
    in_sums = Estimates([1.0] * 3, [BERNOULLI] * 3)
    for position, sample in enumerate(samples):
        in_sums.add(position, len(sample), sum(sample))
    draws = Draws(0, 0)
    for t in range(9, 60):
        drawn = [draws.uniform(INDEX, 0, t, arm) for arm in range(3)]
        assert len({policy.choose(t, known, drawn.__getitem__) for known in (one_by_one, in_sums)}) == 1


# UCB-V


@given(rewards)
def test_variance_of_single_observations_is_the_usual_one(sample):
    assert estimates_of(sample).variance(0) == pytest.approx(np.var(sample), abs=1e-9)


def test_variance_of_sums_is_estimated_without_bias():
    rng = np.random.default_rng(4)
    estimates = Estimates([3.0], [OTHER])
    for count in rng.integers(1, 50, size=4000):
        estimates.add(0, int(count), float(rng.normal(1.0, 3.0, size=count).sum()))
    # A chi-square with 4000 degrees of freedom: its standard deviation is 2.2 per cent of its mean.
    assert estimates.variance(0) == pytest.approx(9.0, rel=0.08)


def test_ucb_v_prefers_what_varies_at_equal_means():
    assert bm.UCBV().choose(100, estimates_of([0.5] * 10, [0.0, 1.0] * 5), no_draw) == 1


@given(st.lists(rewards, min_size=1, max_size=4), st.integers(2, 10_000), st.floats(0.1, 3.0), st.floats(0.1, 5.0))
def test_ucb_v_chooses_by_the_formula(samples, t, zeta, width):
    def formula(sample):
        e = zeta * math.log(t) / len(sample)
        return np.mean(sample) + math.sqrt(2.0 * np.var(sample) * e) + 3.0 * width * e

    indices = [formula(sample) for sample in samples]
    chosen = bm.UCBV(width, zeta).choose(t, estimates_of(*samples), no_draw)
    assert indices[chosen] == pytest.approx(max(indices), rel=1e-9, abs=1e-6)


def test_ucb_v_takes_a_coins_variance_from_its_mean():
    tails, mixed = [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0]
    assert bm.UCBV(width=0.01).choose(10**6, estimates_of(tails, mixed, law=BERNOULLI), no_draw) == 1


# MOSS


def test_moss_has_no_bonus_beyond_an_arms_share():
    # Of 12 observations an arm's share is 6: the second arm has more, and the first one's bonus decides.
    little, much = [0.4] * 2, [0.5] * 10
    assert bm.MOSS().choose(13, estimates_of(little, much), no_draw) == 0
    assert bm.MOSS(n_observations=4).choose(13, estimates_of(little, much), no_draw) == 1


def test_moss_bonus_is_that_of_its_authors_for_coins():
    count, n = 3, 40
    bonus = math.sqrt(math.log(n / (2 * count)) / count)
    other = [0.0] * 20
    for margin, chosen in ((0.01, 0), (-0.01, 1)):
        estimates = estimates_of([0.2 * count] + [0.0] * (count - 1), other, law=BERNOULLI)
        estimates.mean[1] = 0.2 + bonus - margin
        assert bm.MOSS(n_observations=n).choose(99, estimates, no_draw) == chosen


# Epsilon-greedy


def test_epsilon_greedy_explores_as_often_as_it_says_and_every_arm_alike():
    estimates, n = estimates_of([0.0], [0.0], [1.0], [0.0]), 20_000
    us = (np.arange(n) + 0.5) / n
    chosen = [bm.EpsilonGreedy(0.2).choose(9, estimates, lambda _, u=u: u) for u in us.tolist()]
    assert np.bincount(chosen).tolist() == [1000, 1000, 17_000, 1000]


def test_epsilon_greedy_explores_less_as_time_goes_by():
    estimates = estimates_of([0.0], [1.0])
    policy = bm.EpsilonGreedy(epsilon=1.0, decay=5.0)
    assert policy.choose(10, estimates, lambda _: 0.49) == 0
    assert policy.choose(100, estimates, lambda _: 0.049) == 0
    assert policy.choose(100, estimates, lambda _: 0.11) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bm.EpsilonGreedy(1.5), "epsilon must be a probability"),
        (lambda: bm.EpsilonGreedy(0.1, 0.0), "decay must be a positive number"),
        (lambda: bm.MOSS(0), "n_observations must be an integer of at least 1"),
        (lambda: bm.UCBV(width=0.0), "width must be a positive number"),
        (lambda: bm.UCBV(zeta=-1.0), "zeta must be a positive number"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(bm.InputError, match=message):
        make()


def test_specs_know_every_policy_by_its_name():
    names = {"klucb", "thompson", "ucb-v", "moss", "epsilon-greedy", "ucb"}
    assert names <= set(parts("policy"))
    point = {"policy": {"name": "epsilon-greedy", "epsilon": 1.0, "decay": 5.0}}
    assert build_policy(point) == bm.EpsilonGreedy(1.0, 5.0)
