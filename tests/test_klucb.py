"""KL-UCB: its root finder against bisection in 40 digits, and where its divergence comes from."""

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from banditmesh.policies.klucb import bernoulli_bound


def divergence(p, q):
    """Of two Bernoulli laws, in as many digits as the context has."""
    terms = [x * (x / y).ln() for x, y in ((p, q), (1 - p, 1 - q)) if x > 0]
    return sum(terms, Decimal(0))


def bisected(p, budget):
    """The root by bisection, to 30 digits."""
    with localcontext() as context:
        context.prec = 40
        p, budget = Decimal(p), Decimal(budget)
        low, high = p, Decimal(1)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(p, middle) <= budget else (low, middle)
        return float(low)


MEANS = (0.0, 1e-9, 0.01, 0.3, 0.5, 0.77, 0.99, 1.0 - 1e-9)
BUDGETS = (1e-6, 1e-3, 0.05, 0.7, 4.0, 25.0)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("mean", MEANS)
def test_bernoulli_bound_is_the_root(mean, budget):
    assert bernoulli_bound(mean, budget) == pytest.approx(bisected(mean, budget), rel=0.0, abs=2e-13)


@given(st.floats(-0.5, 1.5), st.floats(0.0, 50.0), st.floats(1.0, 3.0))
def test_bernoulli_bound_lies_above_the_mean_and_grows_with_the_budget(mean, budget, factor):
    bound = bernoulli_bound(mean, budget)
    assert min(max(mean, 0.0), 1.0) <= bound <= 1.0
    assert bernoulli_bound(mean, factor * budget) >= bound - 1e-12


@pytest.mark.parametrize(("outside", "end"), [(-1e-9, 0.0), (-3.0, 0.0), (1.0 + 1e-9, 1.0), (40.0, 1.0)])
def test_a_mean_outside_the_unit_interval_counts_as_its_end(outside, end):
    assert bernoulli_bound(outside, 0.3) == bernoulli_bound(end, 0.3)


def test_bernoulli_bound_knows_the_ends():
    assert bernoulli_bound(0.0, 0.3) == 1.0 - math.exp(-0.3)
    assert bernoulli_bound(1.0, 0.3) == 1.0
    assert bernoulli_bound(0.4, 0.0) == 0.4
    assert bernoulli_bound(0.4, math.inf) == 1.0
    assert math.isnan(bernoulli_bound(math.nan, 0.3))


def index(mean, count, clock, sigma, law):
    return bm.KLUCB.index(mean, count, 1.0 / math.sqrt(count), clock, sigma, law, 0.0, 0.0)


@pytest.mark.parametrize("law", [GAUSSIAN, UNIFORM, OTHER])
def test_index_is_gaussian_with_the_arms_sigma(law):
    # d(m, q) = (q - m)^2 / (2 sigma^2) at the index is the budget.
    bound = index(0.2, 7, 5.0, 0.6, law)
    assert (bound - 0.2) ** 2 / (2 * 0.6**2) == pytest.approx(5.0 / 7)


def test_index_of_a_coin_does_not_look_at_sigma():
    assert index(0.2, 7, 5.0, 0.6, BERNOULLI) == index(0.2, 7, 5.0, math.nan, BERNOULLI) == bernoulli_bound(0.2, 5 / 7)


def test_gaussian_index_is_that_of_ucb_with_alpha_twice_the_variance():
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=6, per_agent=4, seed=0)
    settings = {"horizon": 60, "seed": 0, "engine": "reference"}
    kl, ucb = (bm.simulate(problem, bm.FwA(2), policy=p, **settings) for p in (bm.KLUCB(), bm.UCB(alpha=2.0)))
    assert (kl.pulls == ucb.pulls).all()


def test_clock_adds_the_iterated_logarithm_once_it_is_positive():
    assert bm.KLUCB.clock(1, 3.0) == 0.0
    assert bm.KLUCB.clock(2, 3.0) == math.log(2)
    assert bm.KLUCB.clock(1000, 0.0) == math.log(1000)
    assert bm.KLUCB.clock(1000, 3.0) == math.log(1000) + 3.0 * math.log(math.log(1000))


def test_defaults_and_names():
    assert bm.KLUCB() == bm.KLUCB(c=0) != bm.KLUCB(3)
    assert (bm.KLUCB.name, bm.KLUCB(3).parameter) == ("klucb", 3.0)
    with pytest.raises(bm.InputError, match="c must be a number of at least 0, got -1"):
        bm.KLUCB(-1)
