"""The two lemmas of the corrected proof, on pulls that no policy would make."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditmesh import theory
from cases import examples


@given(st.integers(0, 100_000), st.integers(1, 6), st.integers(1, 4), st.floats(0.05, 1.0))
@settings(max_examples=examples(150))
def test_members_of_a_clique_pull_no_more_than_the_lemma_allows(seed, n, ttl, laziness):
    """Lemma A of docs/theory/upper-bound.md, for any pulls at all: it is about counting, not about policies."""
    rng = np.random.default_rng(seed)
    horizon = 60
    pulls = rng.random((n, horizon + 1)) < laziness  # column t is round t; column 0 is before the first round
    pulls[:, 0] = False
    counts = np.cumsum(pulls, axis=1)
    delay = np.triu(rng.integers(1, ttl + 1, (n, n)), 1)
    delay = delay + delay.T + np.eye(n, dtype=int)
    needed = np.sort(rng.uniform(0.1, 25.0, n))  # by falling gap, so by growing need

    def seen(k, t):
        return sum(counts[j, max(t - delay[k, j], 0)] for j in range(n))

    spent = []
    for k in range(n):
        rounds = [t for t in range(1, horizon + 1) if seen(k, t) < needed[k]]
        last = max(rounds)
        assert rounds == list(range(1, last + 1))
        spent.append(counts[k, last])
    for k in range(n):
        overshoot = 1 + sum(min(2 * ttl - 1, needed[j] + 1) for j in range(k))
        assert sum(spent[: k + 1]) < needed[k] + overshoot


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(0.1, 50.0))
@settings(max_examples=examples(200))
def test_summing_by_parts_costs_no_more_than_the_extreme_gaps(gaps, scale):
    gaps = np.sort(gaps)[::-1]
    needed = scale / gaps**2
    worst = gaps[0] * needed[0] + sum(gaps[k] * (needed[k] - needed[k - 1]) for k in range(1, len(gaps)))
    assert worst <= scale * theory.clique_cost(gaps) * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [2.5, 6.0])
def test_estimates_leave_their_interval_as_seldom_as_lemma_b_says(alpha):
    """A walk that may stop its sum of N observations a round whenever it likes: the worst count counts."""
    rng = np.random.default_rng(0)
    n_agents, t, trials, beta = 3, 20, 20_000, 0.9
    steps = rng.standard_normal((trials, n_agents * t))
    counts = np.arange(1, n_agents * t + 1)
    out = (steps.cumsum(axis=1) <= -np.sqrt(counts * alpha * math.log(t))).any(axis=1)
    bound = (1 + math.log(n_agents * t) / math.log(1 / beta)) * t ** (-alpha * beta / 2)
    assert 0 < out.mean() < bound


def test_published_union_step_does_not_hold():
    """A sum over g + 1 distances may fall short by the square root of its count although no part falls short by more.

    The paper's last step needs one of the parts to be below -sqrt((g + 1) s_i alpha log t). Two parts of one
    observation each, both at -1.1 sqrt(alpha log t / 2), are below -sqrt(2 alpha log t) together, and neither is
    below -sqrt(2 alpha log t) alone.
    """
    alpha_log = 3.0
    parts = [-1.1 * math.sqrt(alpha_log / 2)] * 2
    assert sum(parts) <= -math.sqrt(2 * alpha_log)
    assert not any(part <= -math.sqrt(2 * 1 * alpha_log) for part in parts)
    # With the factor in the denominator the step is right: some part is at or below -sqrt(s_i alpha log t / (g + 1)).
    assert any(part <= -math.sqrt(1 * alpha_log / 2) for part in parts)
