"""Bounds on indices: none is below its index, and the arm chosen by them is the one that the definition says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN
from banditmesh.draws import GREATEST_UNIFORM, LEAST_UNIFORM
from banditmesh.sim.compiled.kernels.bounds import (
    BOUNDS,
    COIN,
    first_tangents,
    klucb_bounds,
    needs_tangents,
    note_klucb,
    thompson_bounds,
    widths_of,
)
from banditmesh.sim.compiled.kernels.compiling import uncached
from banditmesh.sim.compiled.kernels.layout import DRAWS, N_SCORES, SCORES


def bound(write_bounds, mean, count, clock, sigma, law, tangents, u=0.0):
    """What is written for one arm of these observations."""
    scores = np.zeros((N_SCORES, 1))
    scores[DRAWS, 0] = u
    widths = widths_of(bm.KLUCB.index, np.array([sigma]), np.array([law]))
    write_bounds(0, 1, clock, widths, np.array([float(count), mean * count]), tangents, scores)
    return scores[SCORES, 0]


def klucb_index(total, count, clock):
    return bm.KLUCB.index(total / count, count, 1.0 / math.sqrt(count), clock, math.nan, BERNOULLI, 0.0, 0.0)


coins = st.integers(1, 10**6).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))
clocks = st.floats(math.log(2), 40.0)


@given(coins, clocks, coins, clocks)
def test_tangent_noted_anywhere_bounds_the_index_everywhere(there, clock_there, here, clock_here):
    tangents = first_tangents(bm.KLUCB.index, 1)
    for total, count, clock in ((*there, clock_there), (*here, clock_here), (*there, clock_there)):
        index = klucb_index(total, count, clock)
        assert bound(klucb_bounds, total / count, count, clock, math.nan, BERNOULLI, tangents) >= index
        note_klucb(total / count, BERNOULLI, index, 0, tangents)
        assert bound(klucb_bounds, total / count, count, clock, math.nan, BERNOULLI, tangents) >= index


@given(st.integers(1, 2**31 - 2), clocks, st.floats(0.0, 1.0), st.floats(0.9, 1.1))
def test_tangent_holds_where_the_index_is_close_to_the_mean(count, clock, share, factor):
    total = math.floor(share * count)
    tangents = first_tangents(bm.KLUCB.index, 1)
    note_klucb(total / count, BERNOULLI, klucb_index(total, count, clock), 0, tangents)
    more = min(2**31 - 1, math.ceil(factor * count))
    fewer = min(total, more)
    index = klucb_index(fewer, more, clock)
    assert bound(klucb_bounds, fewer / more, more, clock, math.nan, BERNOULLI, tangents) >= index


def test_tangent_is_close_once_it_is_noted():
    tangents = first_tangents(bm.KLUCB.index, 1)
    assert bound(klucb_bounds, 0.4, 50, 6.0, math.nan, BERNOULLI, tangents) == 1.0
    note_klucb(0.4, BERNOULLI, klucb_index(20, 50, 6.0), 0, tangents)
    index = klucb_index(21, 52, 6.1)
    assert bound(klucb_bounds, 21 / 52, 52, 6.1, math.nan, BERNOULLI, tangents) == pytest.approx(index, abs=1e-4)


@pytest.mark.parametrize("mean", [-3.0, 1.0, 40.0])
def test_a_mean_outside_the_unit_interval_is_bounded_as_its_end(mean):
    index = klucb_index(mean * 9, 9, 5.0)
    tangents = first_tangents(bm.KLUCB.index, 1)
    note_klucb(0.3, BERNOULLI, klucb_index(3, 10, 4.0), 0, tangents)
    assert bound(klucb_bounds, mean, 9, 5.0, math.nan, BERNOULLI, tangents) >= index


def test_bound_of_a_law_other_than_a_coin_is_the_index_of_klucb():
    tangents = first_tangents(bm.KLUCB.index, 1)
    index = bm.KLUCB.index(0.3 * 7 / 7, 7, 1.0 / math.sqrt(7), 5.0, 0.6, GAUSSIAN, 0.0, 0.0)
    assert bound(klucb_bounds, 0.3, 7, 5.0, 0.6, GAUSSIAN, tangents) == index


@given(st.floats(LEAST_UNIFORM, GREATEST_UNIFORM), st.floats(-5.0, 5.0), st.integers(1, 10**6), st.floats(0.0, 3.0))
def test_quantile_of_the_table_bounds_thompsons_index(u, mean, count, sigma):
    mean = mean * count / count
    index = bm.ThompsonSampling.index(mean, count, 1.0 / math.sqrt(count), 0.0, sigma, GAUSSIAN, u, 0.0)
    above = bound(thompson_bounds, mean, count, 0.0, sigma, GAUSSIAN, np.zeros((3, 0)), u)
    assert above >= index
    if 0.05 < u < 0.95:
        assert above <= index + 0.02 * sigma


@pytest.mark.parametrize("u", [LEAST_UNIFORM, 0.075, 0.5, 0.925, GREATEST_UNIFORM])
def test_every_draw_has_a_place_in_the_table(u):
    index = bm.ThompsonSampling.index(0.0, 1, 1.0, 0.0, 1.0, GAUSSIAN, u, 0.0)
    assert bound(thompson_bounds, 0.0, 1, 0.0, 1.0, GAUSSIAN, np.zeros((3, 0)), u) >= index


def test_bounds_of_coins_hold_for_thompsons_index_and_most_are_close():
    rng = np.random.default_rng(4)
    n = 4000
    counts = np.floor(10.0 ** rng.uniform(0.0, 6.0, n))
    totals = np.floor(counts * rng.random(n))
    totals[:200], totals[200:400], totals[400:450] = 0.0, counts[200:400], 1.5 * counts[400:450]
    scores = np.zeros((N_SCORES, n))
    scores[DRAWS] = (rng.integers(2**52, size=n) + 0.5) / 2**52
    write_bounds = uncached(thompson_bounds)
    write_bounds(
        np.uint64(0),
        np.uint64(n),
        0.0,
        np.full(n, COIN),
        np.stack([counts, totals], axis=1).reshape(-1),
        np.zeros((3, 0)),
        scores,
    )
    index = [
        bm.ThompsonSampling.index(total / count, int(count), 1.0 / math.sqrt(count), 0.0, math.nan, BERNOULLI, u, 0.0)
        for total, count, u in zip(totals, counts, scores[DRAWS], strict=True)
    ]
    above = scores[SCORES] - index
    assert (above >= 0.0).all()
    assert np.mean(above < 0.01) > 0.9


class Cautious(bm.KLUCB):
    """Another index under the same base class."""

    name = "cautious"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + 1.0


def test_bounds_belong_to_an_index_and_not_to_a_class():
    assert bm.KLUCB.index in BOUNDS
    assert Cautious.index not in BOUNDS
    assert needs_tangents(bm.KLUCB.index)
    assert not needs_tangents(Cautious.index)


@pytest.mark.parametrize("policy", [bm.KLUCB(), bm.KLUCB(c=3.0), bm.ThompsonSampling()], ids=str)
def test_the_arm_chosen_by_bounds_is_that_of_the_definition(policy):
    # Sure gains, sure losses and equal arms, so that indices are often equal; Gaussian arms among coins.
    laws = [*map(bm.arms.Bernoulli, (1.0, 0.0, 0.5, 0.5, 1.0)), bm.arms.Gaussian(0.6, 1e-9), bm.arms.Gaussian(0.5, 1.0)]
    problem = bm.Problem(bm.networks.ring(3), [[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 6], [1, 3]], laws)
    one, other = (
        bm.simulate(problem, bm.NoCooperation(), policy=policy, horizon=120, replicates=3, seed=2, engine=engine)
        for engine in ("compiled", "reference")
    )
    assert one == other
