"""Bounds and brackets: indices lie where they say, and the arm chosen by them is the one that the definition names."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN
from banditmesh.draws import GREATEST_UNIFORM, LEAST_UNIFORM, normal_quantile
from banditmesh.policies.thompson import gamma_attempt
from banditmesh.sim.compiled.kernels import klucb, thompson
from banditmesh.sim.compiled.kernels.choices import CHOICES, first_tangents, needs_tangents, widths_of
from banditmesh.sim.compiled.kernels.compiling import rebind, uncached
from banditmesh.sim.compiled.kernels.forgetting import BY_MEMORY
from banditmesh.sim.compiled.kernels.lanes import LANES, room_for
from banditmesh.sim.compiled.kernels.layout import (
    COIN,
    DRAWS,
    INVERSE,
    N_AGAIN,
    N_SCORES,
    NORMAL,
    OTHER_NORMAL,
    ROOT,
    SCORES,
    UNIT_WEIGHT,
    Agents,
    State,
)

write_planes = klucb.write_planes.py_func
note_tangent = klucb.note_tangent.py_func
bracket_coin = uncached(klucb.bracket_coin.py_func)
is_accepted, passes, is_rejected = (
    one.py_func for one in (thompson.is_accepted, thompson.passes, thompson.is_rejected)
)
quantile_above, far = thompson.quantile_above.py_func, thompson.far.py_func
near, end = (rebind(one, quantile_above=quantile_above) for one in (thompson.near, thompson.end))


def plane(mean, count, clock, sigma, law, tangents):
    """The bound on the index of `KLUCB` that is written for one arm of these observations."""
    scores = np.zeros((N_SCORES, 1))
    widths = widths_of(bm.KLUCB.index, np.array([sigma]), np.array([law]))
    write_planes(0, 1, clock, 1.0, 1.0, widths, np.array([float(count), mean * count]), tangents, scores)
    return scores[SCORES, 0]


def klucb_index(total, count, clock):
    return bm.KLUCB.index(total / count, count, 1.0 / math.sqrt(count), clock, math.nan, BERNOULLI, 0.0, 0.0)


def noted(total, count, clock):
    """Tangents of one coin, after its index was worked out."""
    tangents = first_tangents(bm.KLUCB.index, 1)
    mean, index = max(total / count, 1e-4), klucb_index(total, count, clock)
    if mean < index < 1.0:
        note_tangent(mean, index, 0, tangents)
    return tangents


coins = st.integers(1, 10**6).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))
clocks = st.floats(math.log(2), 40.0)
uniforms = st.floats(LEAST_UNIFORM, GREATEST_UNIFORM)


@given(coins, clocks, coins, clocks)
def test_tangent_noted_anywhere_bounds_the_index_everywhere(there, clock_there, here, clock_here):
    tangents = noted(*there, clock_there)
    for total, count, clock in ((*there, clock_there), (*here, clock_here)):
        assert plane(total / count, count, clock, math.nan, BERNOULLI, tangents) >= klucb_index(total, count, clock)


@given(st.integers(1, 2**31 - 2), clocks, st.floats(0.0, 1.0), st.floats(0.9, 1.1))
def test_tangent_holds_where_the_index_is_close_to_the_mean(count, clock, share, factor):
    total = math.floor(share * count)
    tangents = noted(total, count, clock)
    more = min(2**31 - 1, math.ceil(factor * count))
    fewer = min(total, more)
    assert plane(fewer / more, more, clock, math.nan, BERNOULLI, tangents) >= klucb_index(fewer, more, clock)


def test_tangent_is_close_once_it_is_noted():
    assert plane(0.4, 50, 6.0, math.nan, BERNOULLI, first_tangents(bm.KLUCB.index, 1)) == 1.0
    index = klucb_index(21, 52, 6.1)
    assert plane(21 / 52, 52, 6.1, math.nan, BERNOULLI, noted(20, 50, 6.0)) == pytest.approx(index, abs=1e-4)


@pytest.mark.parametrize("mean", [-3.0, 1.0, 40.0])
def test_a_mean_outside_the_unit_interval_is_bounded_as_its_end(mean):
    index = klucb_index(mean * 9, 9, 5.0)
    assert plane(mean, 9, 5.0, math.nan, BERNOULLI, noted(3, 10, 4.0)) >= index


def test_bound_of_a_law_other_than_a_coin_is_the_index_of_klucb():
    index = bm.KLUCB.index(0.3 * 7 / 7, 7, 1.0 / math.sqrt(7), 5.0, 0.6, GAUSSIAN, 0.0, 0.0)
    assert plane(0.3, 7, 5.0, 0.6, GAUSSIAN, first_tangents(bm.KLUCB.index, 1)) == index


def bracket_of(total, count, clock, tangents):
    """A coin's bracket from the bound by its tangent, and its index."""
    mean = total / count
    bound = plane(mean, count, clock, math.nan, BERNOULLI, tangents)
    low, high = bracket_coin(mean, clock / count, bound, np.uint64(0), tangents)
    return low, klucb_index(total, count, clock), high


@given(coins, clocks, coins, clocks)
def test_index_lies_within_its_bracket_and_the_next_one_is_sharper(there, clock_there, here, clock_here):
    tangents = noted(*there, clock_there)
    low, index, high = bracket_of(*here, clock_here, tangents)
    assert low <= index <= high
    again, index, above = bracket_of(*here, clock_here, tangents)
    assert again <= index <= above <= high + 1e-9


@given(st.integers(2, 2**31 - 1), clocks, st.floats(0.0, 1.0))
def test_bracket_holds_where_the_index_is_close_to_the_mean(count, clock, share):
    total = math.floor(share * count)
    low, index, high = bracket_of(total, count, 1.01 * clock, noted(total, count, clock))
    assert low <= index <= high


#: What a memory that discounts leaves of coins: weights down to the floor, as they are read.
faded = st.tuples(st.floats(0.0, 1.0), st.floats(-288.0, 31.0).map(lambda power: 2.0**power)).map(
    lambda coin: (coin[0] * coin[1], coin[1])
)
ages = st.floats(1.0, 1e12).map(math.log)


@given(faded, st.floats(0.5, 40.0), faded, ages)
def test_tangents_and_brackets_hold_for_weights_below_1(there, clock_there, here, clock_here):
    tangents = noted(*there, clock_there)
    for total, count, clock in ((*there, clock_there), (*here, clock_here), (*there, 0.999 * clock_there)):
        index = klucb_index(total, count, clock)
        assert plane(total / count, count, clock, math.nan, BERNOULLI, tangents) >= index
        low, _, high = bracket_of(total, count, clock, tangents.copy())
        assert low <= index <= high


@given(st.floats(-40.0, 6.0), st.floats(0.0, 1.0), st.floats(0.5, 3.0), st.floats(0.99, 1.01))
def test_tangents_hold_for_a_weight_that_changes_little(power, share, clock, factor):
    count = 2.0**power
    tangents = noted(share * count, count, clock)
    index = klucb_index(share * count, factor * count, clock)
    assert plane(share / factor, factor * count, clock, math.nan, BERNOULLI, tangents) >= index - 1e-15


def test_bracket_is_narrow_when_little_has_changed():
    low, _, high = bracket_of(21, 52, 6.1, noted(20, 50, 6.0))
    assert 0.0 < high - low < 1e-6


@pytest.mark.parametrize(("total", "count"), [(0, 5), (5, 5), (-2, 5), (7, 5)])
def test_no_bracket_is_known_at_the_ends(total, count):
    low, _, high = bracket_of(total, count, 3.0, first_tangents(bm.KLUCB.index, 1))
    assert (low, high) == (-math.inf, math.inf)


@given(uniforms)
def test_no_quantile_is_above_that_of_the_table(u):
    assert -quantile_above(1.0 - u) <= normal_quantile(u) <= quantile_above(u)


def test_the_table_is_close_to_the_quantile_and_far_is_beyond_it():
    n = len(thompson.QUANTILES_ABOVE)
    for part in range(1, n - 1):
        for u in (part / n + 2.0**-52, (part + 0.5) / n, (part + 1) / n - 2.0**-52):
            q, above = normal_quantile(u), quantile_above(u)
            assert 0.0 <= above - q < (0.005 if 0.05 < u < 0.95 else 0.21)
            assert abs(far(above)) >= abs(q) or abs(q) < 0.03
            assert far(above) * q > 0.0 or abs(q) < 0.03
    assert quantile_above(0.5 / n) == quantile_above(1.0 - 0.5 / n) == math.inf


@given(uniforms)
def test_a_quantile_lies_between_near_and_end(u):
    q = normal_quantile(u)
    assert 0.0 <= near(u) * math.copysign(1.0, q) <= abs(q) + 1e-9
    assert abs(end(u)) >= abs(q) or abs(q) < 0.03
    assert end(u) * q > 0.0 or abs(q) < 0.03 or end(u) == math.inf


#: Small shapes, where attempts often fail, and those of many observations.
shapes = st.one_of(st.floats(1.0, 10.0), st.floats(0.0, 9.3).map(lambda digits: 10.0**digits))
#: Numbers that decide about an attempt: also those that are close to what they are compared with.
chances = st.one_of(uniforms, st.floats(-30.0, -1e-9).map(math.exp))


@given(shapes, uniforms, chances, st.booleans())
def test_an_attempt_is_accepted_where_that_is_said_to_be_sure(shape, u, w, is_other):
    d = shape - 1.0 / 3.0
    q = -far(quantile_above(1.0 - u)) if is_other else far(quantile_above(u))
    if is_accepted(d, math.sqrt(d), q, w) or passes(d, math.sqrt(d), end(u), w):
        assert gamma_attempt(shape, u, w) > 0.0


@given(shapes, uniforms, chances)
def test_an_attempt_fails_where_that_is_said_to_be_sure(shape, u, w):
    d = shape - 1.0 / 3.0
    if is_rejected(d, math.sqrt(d), near(u), w):
        assert gamma_attempt(shape, u, w) == 0.0


@given(shapes, uniforms, st.floats(-1e-3, 1e-3))
def test_what_is_sure_of_an_attempt_holds_where_it_is_close(shape, u, off):
    d, q = shape - 1.0 / 3.0, normal_quantile(u)
    root, v = math.sqrt(d), (1.0 + q / (3.0 * math.sqrt(d))) ** 3 if q > -3.0 * math.sqrt(d) else 0.0
    if v == 0.0:
        return
    h = 0.5 * q * q + d * (1.0 - v + math.log(v))
    w = min(max(math.exp(h * (1.0 + off)), LEAST_UNIFORM), GREATEST_UNIFORM)
    if is_accepted(d, root, q, w) or passes(d, root, q, w):
        assert gamma_attempt(shape, u, w) > 0.0
    if is_rejected(d, root, q, w):
        assert gamma_attempt(shape, u, w) == 0.0


@pytest.mark.parametrize("d", [1e9, 1e300, math.inf, math.nan])
@pytest.mark.parametrize("q", [-math.inf, -3.0, 3.0, math.inf])
def test_nothing_is_said_of_shapes_or_quantiles_without_end(d, q):
    for w in (LEAST_UNIFORM, 0.5, GREATEST_UNIFORM):
        assert not is_accepted(d, math.sqrt(d), q, w)
        assert not passes(d, math.sqrt(d), q, w)
        assert not is_rejected(d, math.sqrt(d), float(near(0.01)), w)
        assert not is_accepted(2.0, math.sqrt(2.0), math.copysign(math.inf, q), w)


def test_nothing_is_said_of_sums_that_are_too_large_for_it():
    # Found by chance: this attempt fails, by the rounding of a logarithm.
    shape, u, w = 7.320048984540707e22, 0.7673694132832304, 0.9999536192018273
    assert gamma_attempt(shape, u, w) == 0.0
    assert not is_accepted(shape, math.sqrt(shape), -far(quantile_above(1.0 - u)), w)


def test_few_attempts_are_not_sure_that_are_accepted():
    rng = np.random.default_rng(7)
    for shape, share in ((1.0, 0.025), (3.0, 0.005), (200.0, 0.005)):
        d = shape - 1.0 / 3.0
        draws = rng.random((4000, 2))
        accepted = np.array([gamma_attempt(shape, u, w) > 0.0 for u, w in draws])
        sure = np.array([is_accepted(d, math.sqrt(d), far(quantile_above(u)), w) for u, w in draws])
        assert not (sure & ~accepted).any()
        assert np.mean(accepted & ~sure) < share
        passed = np.array([passes(d, math.sqrt(d), end(u), w) for u, w in draws])
        rejected = np.array([is_rejected(d, math.sqrt(d), near(u), w) for u, w in draws])
        assert not (passed & ~accepted).any()
        assert not (rejected & accepted).any()
        assert np.mean(~passed & ~rejected) < 0.005


def agent_of(counts, totals, sigmas, laws, draws):
    """One agent with these observations of its arms, as kernels see it, and its draws of a round."""
    n, empty = len(counts), np.zeros(0)
    scores = np.zeros((N_SCORES, room_for(n)))
    scores[DRAWS, :n] = draws
    sums = np.stack([counts, totals], axis=1)
    agents = dict.fromkeys(Agents.__dataclass_fields__, empty) | {
        "arms": np.arange(n, dtype=np.int32),
        "sigmas": np.asarray(sigmas),
        "law_code": np.asarray(laws),
        "widths": widths_of(bm.ThompsonSampling.index, np.asarray(sigmas), np.asarray(laws)),
        "only_coins": bool(np.all(laws == BERNOULLI)),
    }
    state = dict.fromkeys(State.__dataclass_fields__, empty) | {
        "sums": sums,
        "pairs": sums.reshape(-1),
        "scores": scores,
        "again": np.full((N_AGAIN, room_for(n)), 0.5),
        "again_pairs": np.ones(2 * room_for(n)),
    }
    state["now"] = np.ones(4)
    return Agents(**agents), State(**state)


@uncached
def brackets_of(agents, state, limits, lows, highs, indices):
    """Bounds, brackets and indices of `ThompsonSampling`, for all arms."""
    write_bounds(np.uint64(0), np.uint64(len(lows)), 0.0, 0.0, agents, state)
    for j in range(np.uint64(len(lows))):
        limits[j] = state.scores[SCORES, j]
        lows[j], highs[j] = bracket(np.uint64(j), np.uint64(j), 0.0, 0.0, agents, state)
        indices[j] = index_of(np.uint64(j), np.uint64(j), 0.0, 0.0, agents, state)


write_bounds, bracket, index_of = thompson.write_bounds, thompson.bracket, thompson.index_of


@pytest.mark.parametrize("kind", ["coins", "others", "both"])
def test_thompsons_index_lies_within_its_bracket_and_below_its_limit(kind):
    rng = np.random.default_rng(4)
    n = 4001
    counts = np.floor(10.0 ** rng.uniform(0.0, 6.0, n))
    totals = np.floor(counts * rng.random(n))
    totals[:200], totals[200:400], totals[400:450], totals[450:500] = 0.0, counts[200:400], 1.5 * counts[400:450], -3.0
    laws = np.full(n, GAUSSIAN if kind == "others" else BERNOULLI)
    laws[::2] = BERNOULLI if kind == "coins" else GAUSSIAN
    sigmas = rng.choice([0.0, 0.1, 2.0], n)
    draws = (rng.integers(2**52, size=n) + 0.5) / 2**52
    draws[:4] = LEAST_UNIFORM, 0.075, 0.5, GREATEST_UNIFORM
    agents, state = agent_of(counts, totals, sigmas, laws, draws)
    limits, lows, highs, indices = np.zeros((4, n))
    brackets_of(agents, state, limits, lows, highs, indices)
    expected = [
        bm.ThompsonSampling.index(total / count, int(count), 1.0 / math.sqrt(count), 0.0, sigma, law, u, 0.0)
        for total, count, sigma, law, u in zip(totals, counts, sigmas, laws, draws, strict=True)
    ]
    assert (indices == expected).all()
    assert ((lows <= indices) & (indices <= highs)).all()
    assert not (limits < indices).any()
    assert np.mean(highs - lows < 0.01 * (1.0 if kind == "coins" else 2.0)) > 0.9
    assert np.mean(limits - indices < 0.02) > 0.9
    assert kind == "others" or (state.scores[[NORMAL, OTHER_NORMAL], :n] > 0.0).all()


@cache
def brackets_by(memory):
    """`brackets_of`, as it is for a memory."""
    reading = {name: BY_MEMORY[memory][name] for name in ("count_of", "root_of")}
    for name, compiling in thompson.READING.items():
        reading[name] = compiling(rebind(getattr(thompson, name), **reading))
    own = {name: reading[name] for name in ("write_bounds", "bracket", "index_of")}
    return uncached(rebind(brackets_of, **own))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 3.7, 2.0**31.9])
def test_thompsons_index_lies_within_its_bracket_for_weights_below_1(unit):
    rng = np.random.default_rng(5)
    n = 4001
    weights = 2.0 ** rng.uniform(-256.0, 20.0, n) * unit
    weights[::3] = 2.0 ** rng.uniform(-8.0, 3.0, len(weights[::3])) * unit
    totals = weights * rng.random(n)
    totals[:200], totals[200:400] = 0.0, weights[200:400]
    laws = np.where(np.arange(n) % 2, BERNOULLI, GAUSSIAN)
    sigmas, draws = rng.choice([0.0, 0.1, 2.0], n), (rng.integers(2**52, size=n) + 0.5) / 2**52
    agents, state = agent_of(weights, totals, sigmas, laws, draws)
    state.now[UNIT_WEIGHT], state.now[INVERSE], state.now[ROOT] = unit, 1.0 / unit, math.sqrt(unit)
    limits, lows, highs, indices = np.zeros((4, n))
    brackets_by("discount")(agents, state, limits, lows, highs, indices)
    expected = [
        bm.ThompsonSampling.index(
            total / weight, weight * (1.0 / unit), (1.0 / math.sqrt(weight)) * math.sqrt(unit), 0.0, sigma, law, u, 0.0
        )
        for total, weight, sigma, law, u in zip(totals, weights, sigmas, laws, draws, strict=True)
    ]
    assert (indices == expected).all()
    assert ((lows <= indices) & (indices <= highs)).all()
    assert not (limits < indices).any()


class Cautious(bm.KLUCB):
    """Another index under the same base class."""

    name = "cautious"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + 1.0


def test_bounds_belong_to_an_index_and_not_to_a_class():
    assert bm.KLUCB.index in CHOICES
    assert Cautious.index not in CHOICES
    assert needs_tangents(bm.KLUCB.index)
    assert not needs_tangents(Cautious.index)
    assert (widths_of(bm.KLUCB.index, np.array([0.3, 0.5]), np.array([GAUSSIAN, BERNOULLI])) == [0.3, COIN]).all()
    assert len(widths_of(Cautious.index, np.array([0.3]), np.array([GAUSSIAN]))) == 0


def equal_on_both_engines(problem, protocol, **settings):
    one, other = (
        bm.simulate(problem, protocol, seed=2, engine=engine, **settings) for engine in ("compiled", "reference")
    )
    return one == other


@pytest.mark.parametrize("policy", [bm.KLUCB(), bm.KLUCB(c=3.0), bm.ThompsonSampling()], ids=str)
def test_the_arm_chosen_by_bounds_is_that_of_the_definition(policy):
    # Sure gains, sure losses and equal arms, so that indices are often equal; Gaussian arms among coins.
    laws = [*map(bm.arms.Bernoulli, (1.0, 0.0, 0.5, 0.5, 1.0)), bm.arms.Gaussian(0.6, 1e-9), bm.arms.Gaussian(0.5, 1.0)]
    problem = bm.Problem(bm.networks.ring(3), [[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 6], [1, 3]], laws)
    assert equal_on_both_engines(problem, bm.NoCooperation(), policy=policy, horizon=120, replicates=3)


@pytest.mark.parametrize("policy", [bm.UCB(), bm.KLUCB(), bm.ThompsonSampling()], ids=str)
@pytest.mark.parametrize("protocol", [bm.NoCooperation(), pytest.param(bm.FwA(2), marks=pytest.mark.slow)], ids=str)
def test_agents_of_few_and_of_many_arms_are_scored_together(policy, protocol):
    # From one arm to more than the usual room, most agents' numbers of arms being no multiple of a step.
    rng = np.random.default_rng(3)
    sizes = [1, 3, 9, 20, 7, 8, room_for(1) + LANES + 1, 2, 50, 40, 30, 5]
    arms = [bm.arms.Bernoulli(mean) for mean in rng.uniform(0.0, 0.2, max(sizes))]
    problem = bm.Problem(bm.networks.ring(len(sizes)), [list(range(size)) for size in sizes], arms)
    assert equal_on_both_engines(problem, protocol, policy=policy, horizon=180)


@pytest.mark.parametrize("kind", [bm.UCB, bm.KLUCB])
def test_agents_of_different_parameters_and_paces_are_not_scored_together(kind):
    problem = bm.Problem.random(bm.networks.er(20, 0.2, seed=1), n_arms=12, per_agent=4, seed=1)
    policies = [kind(1.0 + (v // 3) % 2) for v in range(20)]
    every = [1 + (v // 5) % 3 for v in range(20)]
    faults = bm.Faults(outages=bm.Outages(0.1, 0.4, memory=False))
    assert equal_on_both_engines(problem, bm.IRS(), policy=policies, every=every, faults=faults, horizon=90)


def with_clock(kind):
    """KL-UCB with a clock of its own, which leaves the range of the usual one."""
    kinds = {
        "tiny": lambda t, parameter: 1e-18,
        "negative": lambda t, parameter: 3.0 if t < 30 else -1.0,
        "falling": lambda t, parameter: math.exp(-t / 10),
        "unsteady": lambda t, parameter: 10.0 ** (-20 + t % 26),
    }
    return type("Own", (bm.KLUCB,), {"name": kind, "clock": staticmethod(kinds[kind])})()


@pytest.mark.parametrize("kind", ["tiny", "negative", "falling", "unsteady"])
def test_clocks_of_ones_own_may_read_anything(kind):
    coins = [bm.arms.Bernoulli(mean) for mean in (0.3, 0.31, 0.9)]
    problem = bm.Problem(bm.networks.path(2), [[0, 1], [0, 1, 2]], coins)
    assert equal_on_both_engines(problem, bm.NoCooperation(), policy=with_clock(kind), horizon=400)


class Watchful(bm.Policy):
    """Fails if it is asked about the last agent in a round in which that one is down."""

    name = "watchful"

    @staticmethod
    def clock(t, parameter):
        return float(t)

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        if sigma == 7.25 and clock == 26.0:
            raise ValueError
        return mean


@pytest.mark.slow
def test_agents_that_are_down_are_not_asked():
    laws = [bm.arms.Gaussian(0.5, sigma) for sigma in (1.0, 2.0, 7.25)]
    problem = bm.Problem(bm.networks.ring(3), [[0], [1], [2]], laws)
    faults = bm.Faults(outages=bm.Outages(0.3, 0.3))
    one, other = (
        bm.simulate(problem, bm.IRS(), policy=Watchful(), faults=faults, horizon=60, seed=3, engine=engine)
        for engine in ("compiled", "reference")
    )
    assert one == other
