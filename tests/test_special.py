"""Rules other than the usual ones, compiled: the same bits as in Python, and cached if they are built in."""

import itertools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from banditmesh.draws import normal_quantile, uniform
from banditmesh.sim.compiled.kernels.compiling import rebind, scalar, uncached
from banditmesh.sim.compiled.kernels.scalars import compile_rule
from banditmesh.sim.compiled.kernels.special import specialise

LAWS = ((GAUSSIAN, 1.0), (BERNOULLI, 0.4), (UNIFORM, 0.3), (OTHER, 0.0))


def inputs():
    """Arguments of an index: usual ones, drawn, and everything at the ends of its range."""
    rng = np.random.default_rng(3)
    edges = itertools.product(
        (-2.0, -1e-17, 0.0, 5e-324, 1e-9, 0.5, 1.0 - 2**-53, 1.0, 7.0), (1, 3, 10**9), (0.0, 1e-300, 40.0)
    )
    drawn = zip(rng.random(2000), rng.integers(1, 5000, 2000), 12.0 * rng.random(2000), strict=True)
    for mean, count, clock in itertools.chain(edges, drawn):
        for law, sigma in LAWS:
            u = (int(rng.integers(2**52)) + 0.5) / 2**52
            yield float(mean), int(count), 1.0 / math.sqrt(count), float(clock), sigma, law, u, 0.0


def spread_out(x):
    return 0.1 * normal_quantile(x)


def jitter(k0, u):
    return spread_out(uniform(k0, int(u * 1000.0), 0, 0, 0, 0))


class Jittery(bm.Policy):
    """An index that calls a function of its module, which calls another, and draws of its own."""

    name = "jittery"
    random = True

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + jitter(count, u) if law == GAUSSIAN else mean + spread_out(u)


def from_python(rule):
    """Kernels call compiled rules; Python needs a way in."""
    return numba.njit(lambda *given: rule(*given))


@pytest.mark.parametrize("policy", [bm.KLUCB, bm.ThompsonSampling, Jittery], ids=lambda policy: policy.name)
def test_compiled_index_has_the_bits_of_the_python_one(policy):
    compiled = from_python(compile_rule(policy.index))
    for given in inputs():
        assert compiled(*given) == policy.index(*given), given


def middle(mean, u):
    return np.sort(np.array([mean, u, 0.5]))[1]


def test_a_rule_may_make_arrays():
    assert from_python(compile_rule(middle))(0.7, 0.6) == middle(0.7, 0.6) == 0.6


class Pair(NamedTuple):
    """Two arrays in one argument."""

    one: Any
    other: Any


def add_pairs(pairs, n):
    total = 0.0
    for i in range(n):
        total += pairs.one[i] + last_of(pairs)
    return total


@scalar
def last_of(pairs):
    return pairs.other[len(pairs.other) - 1]


def test_kernels_count_no_references():
    adding = uncached(add_pairs)
    assert adding(Pair(np.ones(3), np.arange(3.0)), 2) == 6.0
    [code] = adding.inspect_llvm().values()
    assert "NRT_incref" not in code
    assert "NRT_decref" not in code


def mixed_problem(network):
    law = bm.arms
    laws = [law.Bernoulli(0.9), law.Gaussian(0.5, 1.0), law.Uniform(0.0, 1.0), law.Bernoulli(0.0), law.Bernoulli(1.0)]
    laws += [law.Beta(2.0, 2.0), law.Empirical([0.0, 1.0, 3.0])]
    return bm.Problem(network, [[v % 7, (v + 1) % 7, (v + 3) % 7, (v + 5) % 7] for v in range(10)], laws)


def assert_engines_agree(problem, protocol, policy, **settings):
    reference, compiled = (
        bm.simulate(problem, protocol, policy=policy, engine=engine, horizon=60, seed=5, **settings)
        for engine in ("reference", "compiled")
    )
    np.testing.assert_array_equal(reference.pulls, compiled.pulls)
    np.testing.assert_array_equal(reference.regret, compiled.regret)
    np.testing.assert_array_equal(reference.transmissions, compiled.transmissions)


@pytest.mark.parametrize(
    ("policy", "emission"),
    [
        (bm.KLUCB(c=1.0), bm.EveryPull()),
        (bm.KLUCB(c=1.0), bm.Growth(0.3)),
        (bm.ThompsonSampling(), bm.EveryPull()),
        # Kernels that no other quick test needs.
        pytest.param(bm.ThompsonSampling(), bm.Growth(0.3), marks=pytest.mark.slow),
    ],
    ids=lambda one: one.name,
)
def test_engines_agree_on_arms_of_several_laws(policy, emission):
    network = bm.networks.ba(10, 2, seed=1)
    assert_engines_agree(mixed_problem(network), bm.FwA(3, emission=emission), policy)


def test_a_rule_that_calls_itself_does_not_compile():
    with pytest.raises(NumbaError):
        from_python(compile_rule(countdown))(3)


def countdown(n):
    return 0 if n <= 0 else countdown(n - 1)


def test_kernels_of_built_in_rules_are_cached_and_those_of_others_are_not():
    stop = bm.ProbabilisticFlooding.relay
    for policy in (bm.UCB, bm.KLUCB, bm.ThompsonSampling):
        assert specialise((policy.index, None, None)).is_built_in
        assert specialise((policy.index, stop, None)) is specialise((policy.index, None, None))
    assert not specialise((Jittery.index, None, None)).is_built_in


def weighted(x, by):
    return x * by


def both(x):
    return weighted(x, 2) + weighted(x, 3)


def test_function_that_kernels_call_is_compiled_once_for_all_constants():
    called = scalar(weighted)
    assert uncached(rebind(both, weighted=called))(4) == 20
    assert len(called.signatures) == 1
