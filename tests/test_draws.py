import collections
import math
import statistics

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from banditmesh import draws
from banditmesh.draws import Draws, geometric_skip, normal_quantile, philox, pick_targets, uniform
from banditmesh.errors import InputError

words = st.integers(0, 2**32 - 1)
ONES = 0xFFFFFFFF
PURPOSES = (
    draws.REWARD,
    draws.STOP,
    draws.TARGET,
    draws.INDEX,
    draws.BIRTH,
    draws.DEATH,
    draws.LINK,
    draws.AGENT,
)


@pytest.mark.parametrize(
    "key, counter, expected",
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES, ONES), (ONES, ONES, ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(key, counter, expected):
    assert philox(*key, *counter) == expected


@given(words, words, words, words, words, words)
def test_philox_agrees_with_wrapping_integers(k0, k1, c0, c1, c2, c3):
    key = np.array([k0, k1], dtype=np.uint32)
    counter = np.array([c0, c1, c2, c3], dtype=np.uint32)
    for _ in range(10):
        low, high = np.uint64(0xD2511F53) * np.uint64(counter[0]), np.uint64(0xCD9E8D57) * np.uint64(counter[2])
        tops = [int(high) >> 32, int(low) >> 32]
        counter = np.array(
            [
                tops[0] ^ int(counter[1] ^ key[0]),
                int(high) % 2**32,
                tops[1] ^ int(counter[3] ^ key[1]),
                int(low) % 2**32,
            ],
            dtype=np.uint32,
        )
        key = key + np.array([0x9E3779B9, 0xBB67AE85], dtype=np.uint32)
    assert philox(k0, k1, c0, c1, c2, c3) == tuple(counter.tolist())


@given(words, words, words, words, words, words)
def test_uniform_lies_strictly_between_0_and_1(k0, k1, c0, c1, c2, c3):
    u = uniform(k0, k1, c0, c1, c2, c3)
    assert 0.0 < u < 1.0
    assert (u * 2**53).is_integer()


@pytest.mark.parametrize("word, expected", [(0, 2.0**-53), (ONES, 1.0 - 2.0**-53)])
def test_uniform_stays_inside_at_its_ends(monkeypatch, word, expected):
    monkeypatch.setattr(draws, "philox", lambda *_: (word, word, word, word))
    assert draws.uniform(0, 0, 0, 0, 0, 0) == expected


def test_uniform_is_uniform():
    one = Draws(seed=3, replicate=0)
    sample = [one.uniform(draws.REWARD, agent, t) for agent in range(100) for t in range(200)]
    assert scipy.stats.kstest(sample, "uniform").pvalue > 0.01


def test_neighbouring_counters_are_uncorrelated():
    one = Draws(seed=3, replicate=0)
    grid = np.array([[one.uniform(draws.REWARD, agent, t) for t in range(200)] for agent in range(100)]) - 0.5
    for ahead in (grid[:, 1:] * grid[:, :-1], grid[1:] * grid[:-1]):
        assert abs(ahead.mean()) < 4 / 12 / math.sqrt(ahead.size)


def test_every_purpose_seed_and_replicate_has_its_own_numbers():
    first = [
        Draws(seed, replicate).uniform(purpose, 1, 2)
        for seed in (0, 1, 2**70)
        for replicate in (0, 1)
        for purpose in PURPOSES
    ]
    assert len(set(PURPOSES)) == len(PURPOSES)
    assert len(set(first)) == 3 * 2 * len(PURPOSES)


def test_every_place_of_the_counter_matters():
    one = Draws(seed=0, replicate=0)
    counters = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    assert len({one.uniform(draws.STOP, *counter) for counter in counters}) == 5


def test_a_seed_keeps_its_numbers_for_ever():
    # Changing these changes every result that was ever published with a seed.
    one = Draws(seed=0, replicate=0)
    assert one.key(draws.REWARD) == (3572790438, 3401078155)
    assert one.uniform(draws.REWARD, 3, 7) == 0.6755789418676273


@given(st.floats(2.0**-53, 1.0 - 2.0**-53))
def test_normal_quantile_agrees_with_scipy(u):
    assert normal_quantile(u) == pytest.approx(scipy.special.ndtri(u), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("u", [0.075, 0.5 - 0.425, 0.5 + 0.425, 0.3, 0.99, 1e-3, 1e-10, 1.4e-11, 1.3e-11, 2.0**-53])
def test_normal_quantile_agrees_with_the_standard_library(u):
    assert normal_quantile(u) == pytest.approx(statistics.NormalDist().inv_cdf(u), rel=1e-14)


def test_normal_quantile_is_odd():
    for k in range(1, 2**10):
        u = k / 2**10
        assert normal_quantile(1.0 - u) == -normal_quantile(u)


def test_geometric_skip_counts_the_failures_before_a_success():
    p, one = 0.3, Draws(seed=1, replicate=0)
    skips = [geometric_skip(one.uniform(draws.BIRTH, 1, k), math.log1p(-p)) for k in range(20_000)]
    counts = collections.Counter(skips)
    for skip in range(6):
        expected = (1 - p) ** skip * p
        assert counts[skip] / len(skips) == pytest.approx(expected, abs=4 * math.sqrt(expected / len(skips)))


# Targets


@given(st.integers(0, 8), st.integers(1, 10), words)
def test_targets_are_drawn_without_replacement(n_candidates, fanout, sequence):
    candidates = [10 * k for k in range(n_candidates)]
    picked = pick_targets(1, 2, 0, sequence, 0, 3, candidates, fanout)
    assert len(picked) == len(set(picked)) == min(fanout, n_candidates)
    assert set(picked) <= set(candidates)
    assert candidates == [10 * k for k in range(n_candidates)]


def test_every_set_of_targets_is_equally_likely():
    k0, k1 = Draws(seed=0, replicate=0).key(draws.TARGET)
    n_draws = 6000
    picked = collections.Counter(
        frozenset(pick_targets(k0, k1, 0, sequence, 5, 4, [1, 2, 3, 4], 2)) for sequence in range(n_draws)
    )
    assert len(picked) == 6
    assert scipy.stats.chisquare(list(picked.values())).pvalue > 0.01


def test_targets_depend_on_message_agent_and_ttl():
    def picked(**changes):
        named = {"origin": 0, "agent": 0, "ttl": 4, **changes}
        return [
            pick_targets(1, 2, named["origin"], sequence, named["agent"], named["ttl"], list(range(100)), 1)
            for sequence in range(5)
        ]

    others = [picked(), picked(origin=1), picked(agent=1), picked(ttl=3)]
    assert all(one != two for k, one in enumerate(others) for two in others[:k])


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match="seed must be an integer of at least 0"):
        Draws(seed, 0)


def test_fresh_seeds_differ_and_are_valid():
    seeds = {draws.fresh_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**53 for seed in seeds)
