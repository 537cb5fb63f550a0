"""Thompson sampling: what it draws has the posterior's law."""

import math

import numpy as np
import pytest
import scipy.stats

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from banditmesh.draws import INDEX, Draws, normal_quantile
from banditmesh.policies.thompson import beta_variate, gamma_variate

DRAWS = Draws(seed=11, replicate=0)


def uniforms(n):
    return [DRAWS.uniform(INDEX, agent, 1) for agent in range(n)]


@pytest.mark.parametrize("shape", [1.0, 2.0, 30.0, 1e5])
def test_gamma_variates_have_their_law(shape):
    sample = [gamma_variate(shape, key, 5, 0, 0) for key in range(2000)]
    assert scipy.stats.kstest(sample, scipy.stats.gamma(shape).cdf).pvalue > 0.01


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 40.0), (3.0, 2.0), (500.0, 20.0), (3e4, 7e4)])
def test_beta_variates_have_their_law(a, b):
    sample = [beta_variate(a, b, u) for u in uniforms(2000)]
    assert scipy.stats.kstest(sample, scipy.stats.beta(a, b).cdf).pvalue > 0.01


def test_arms_that_draw_different_numbers_draw_independent_means():
    first = [beta_variate(3.0, 4.0, u) for u in uniforms(2000)]
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.06
    assert abs(scipy.stats.spearmanr(uniforms(2000), first).statistic) < 0.06


def index(mean, count, sigma, law, u):
    return bm.ThompsonSampling.index(mean, count, 1.0 / math.sqrt(count), 0.0, sigma, law, u, 0.0)


@pytest.mark.parametrize("law", [GAUSSIAN, UNIFORM, OTHER])
def test_posterior_is_normal_with_the_arms_sigma(law):
    assert index(0.3, 16, 0.8, law, 0.9) == pytest.approx(0.3 + 0.8 / 4 * normal_quantile(0.9))
    assert index(0.3, 16, 0.0, law, 0.9) == 0.3


def test_posterior_of_a_coin_counts_ones_and_zeros():
    assert index(0.25, 8, math.nan, BERNOULLI, 0.9) == beta_variate(3.0, 7.0, 0.9)


@pytest.mark.parametrize(("mean", "a", "b"), [(-0.5, 1.0, 7.0), (1.5, 7.0, 1.0)])
def test_sums_of_no_coin_leave_neither_count_below_none(mean, a, b):
    assert index(mean, 4, math.nan, BERNOULLI, 0.9) == beta_variate(a, b, 0.9)


def test_defaults_and_names():
    assert bm.ThompsonSampling() == bm.ThompsonSampling()
    assert (bm.ThompsonSampling.name, bm.ThompsonSampling.random) == ("thompson", True)
