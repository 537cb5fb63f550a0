import json
import math

import networkx as nx
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from banditmesh import arms
from banditmesh.errors import ArmError, InputError, NetworkError

LAWS = [
    arms.Gaussian(0.3, 2.0),
    arms.Bernoulli(0.0),
    arms.Bernoulli(0.3),
    arms.Bernoulli(1.0),
    arms.Uniform(-1.0, 3.0),
    arms.Beta(0.5, 2.5),
    arms.Empirical([3, 1.5, 1.5, -2]),
    arms.ScipyLaw(scipy.stats.expon(scale=2.0)),
    arms.ScipyLaw(scipy.stats.binom(5, 0.4)),
]
TWINS = [
    (arms.Gaussian(0.3, 2.0), scipy.stats.norm(0.3, 2.0)),
    (arms.Bernoulli(0.3), scipy.stats.bernoulli(0.3)),
    (arms.Uniform(-1.0, 3.0), scipy.stats.uniform(-1.0, 4.0)),
    (arms.Beta(0.5, 2.5), scipy.stats.beta(0.5, 2.5)),
]
UNIFORMS = np.random.default_rng(0).random(2000)

probabilities = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


@pytest.mark.parametrize("law, twin", TWINS)
def test_mean_and_quantiles_agree_with_scipy(law, twin):
    assert law.mean == pytest.approx(twin.mean())
    np.testing.assert_allclose(law.quantiles(UNIFORMS), twin.ppf(UNIFORMS), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_are_the_quantile_of_each_bit_for_bit(law):
    rewards = law.quantiles(UNIFORMS.reshape(40, 50))
    assert rewards.shape == (40, 50)
    assert rewards.ravel().tolist() == [law.quantile(u) for u in UNIFORMS.tolist()]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantile_never_falls(law):
    assert np.all(np.diff(law.quantiles(np.sort(UNIFORMS))) >= 0)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_mean_of_quantiles_is_the_mean(law):
    middles = (np.arange(20_000) + 0.5) / 20_000
    assert law.quantiles(middles).mean() == pytest.approx(law.mean, abs=2e-3)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_described_law_comes_back_from_json(law):
    again = arms.from_description(json.loads(json.dumps(law.describe())))
    assert type(again) is type(law)
    assert again.quantiles(UNIFORMS).tolist() == law.quantiles(UNIFORMS).tolist()


@pytest.mark.parametrize("law", [law for law in LAWS if law.kernel], ids=str)
def test_kernel_describes_the_law(law):
    assert [arms.law_quantile(*law.kernel, u) for u in UNIFORMS.tolist()] == law.quantiles(UNIFORMS).tolist()


def test_known_sigmas():
    assert arms.Gaussian(0.0).sigma == 1.0
    assert arms.Bernoulli(0.5).sigma == 0.5
    assert arms.Bernoulli(0.0).sigma == arms.Bernoulli(1.0).sigma == 0.0
    assert arms.Bernoulli(0.1).sigma == pytest.approx(math.sqrt(0.8 / (2 * math.log(9))))
    assert arms.Uniform(0.0, 1.0).sigma == pytest.approx(scipy.stats.uniform().std())
    assert arms.Beta(1.0, 1.0).sigma == pytest.approx(arms.Uniform(0.0, 1.0).sigma)
    assert arms.Empirical([1, 5]).sigma == 2.0
    assert arms.ScipyLaw(scipy.stats.norm(0, 3)).sigma == 3.0
    assert arms.ScipyLaw(scipy.stats.binom(4, 0.5)).sigma == 2.0
    assert arms.ScipyLaw(scipy.stats.expon()).sigma is None


@given(p=probabilities)
def test_bernoulli_sigma_is_symmetric_and_at_most_a_half(p):
    sigma = arms.Bernoulli(p).sigma
    assert 0.0 < sigma <= 0.5
    if 1.0 - p < 1.0 and 1.0 - (1.0 - p) == p:
        assert sigma == pytest.approx(arms.Bernoulli(1.0 - p).sigma, rel=1e-9)


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.2, 0.4999999, 0.5, 0.7, 0.99])
def test_bernoulli_moment_generating_function_is_below_the_gaussian_one(p):
    sigma = arms.Bernoulli(p).sigma
    slopes = np.linspace(-30, 30, 601)
    log_mgf = np.logaddexp(np.log1p(-p), math.log(p) + slopes) - slopes * p
    assert np.all(log_mgf <= slopes**2 * sigma**2 / 2 + 1e-12)


def test_bernoulli_sigma_is_the_least_possible():
    p, sigma = 0.1, arms.Bernoulli(0.1).sigma
    slope = 2 * math.log((1 - p) / p)  # the bound is met with equality here
    log_mgf = math.log(1 - p + p * math.exp(slope)) - slope * p
    assert log_mgf == pytest.approx(slope**2 * sigma**2 / 2)


@pytest.mark.parametrize("a, b", [(0.3, 0.3), (1.0, 1.0), (0.5, 2.5), (8.0, 2.0)])
def test_beta_moment_generating_function_is_below_the_gaussian_one(a, b):
    from scipy.special import hyp1f1

    law = arms.Beta(a, b)
    slopes = np.linspace(-20, 20, 401)
    log_mgf = np.log(hyp1f1(a, a + b, slopes)) - slopes * law.mean
    assert np.all(log_mgf <= slopes**2 * law.sigma**2 / 2 + 1e-12)


def test_empirical_law_draws_each_entry_of_its_sample_equally():
    law = arms.Empirical([4.0, 1.0, 1.0, 2.0])
    assert law.quantiles([0.1, 0.3, 0.6, 0.9]).tolist() == [1.0, 1.0, 2.0, 4.0]
    assert law.quantile(1.0 - 2.0**-53) == 4.0
    assert law == arms.Empirical((1.0, 1.0, 2.0, 4.0))


@pytest.mark.parametrize(
    "continuous, law",
    [
        (False, arms.Law()),
        (True, arms.Gaussian(0.3, 2.0)),
        (True, arms.Gaussian(-(2.0**20), 1.0)),
        (False, arms.Gaussian(-(2.0**20), 0.999)),
        (False, arms.Gaussian(0.0, 1e-320)),
        (False, arms.Bernoulli(0.3)),
        (True, arms.Uniform(-1.0, 3.0)),
        (True, arms.Uniform(2.0**20 - 1.0, 2.0**20)),
        (False, arms.Uniform(-(2.0**20), 0.999 - 2.0**20)),
        (False, arms.Uniform(0.0, 1e-320)),
        (True, arms.Beta(1.0, 1.0)),
        (True, arms.Beta(1.0, 1e9)),
        (False, arms.Beta(1e9, 1.0)),
        (False, arms.Beta(0.99, 2.0)),
        (False, arms.Beta(2.0, 0.99)),
        (False, arms.Empirical([1.0, 2.0])),
        (False, arms.ScipyLaw(scipy.stats.expon())),
        (False, arms.ScipyLaw(scipy.stats.binom(5, 0.4))),
    ],
)
def test_laws_know_whether_they_are_continuous(continuous, law):
    assert law.continuous is continuous


@pytest.mark.parametrize(
    "law", [arms.Gaussian(1e12, 1e-3), arms.Uniform(1e12, 1e12 + 1e-3), arms.Beta(1e13, 1.0), arms.Beta(0.01, 0.01)]
)
def test_laws_that_are_not_continuous_do_repeat_a_reward(law):
    assert not law.continuous
    assert len(np.unique(law.quantiles(UNIFORMS))) < len(UNIFORMS)


@pytest.mark.parametrize(
    "law",
    [
        arms.Gaussian(2.0**20, 1.0),
        arms.Uniform(2.0**20 - 1.0, 2.0**20),
        arms.Beta(1.0, 1e9),
        arms.Beta(1e5, 1.0),
        arms.Beta(1e9, 1e9),
    ],
)
def test_laws_that_are_only_just_continuous_repeat_no_reward(law):
    assert law.continuous
    assert len(np.unique(law.quantiles(UNIFORMS))) == len(UNIFORMS)


def test_as_law_keeps_laws_and_converts_scipy():
    law = arms.Bernoulli(0.5)
    assert arms.as_law(law) is law
    assert arms.as_law(scipy.stats.norm(0.1, 0.7)) == arms.Gaussian(0.1, 0.7)
    assert arms.as_law(scipy.stats.uniform(1, 2)) == arms.Uniform(1, 3)
    assert arms.as_law(scipy.stats.expon()).mean == 1.0


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: arms.Gaussian(math.nan), "mean must be a finite number, got nan"),
        (lambda: arms.Gaussian(0.0, 0.0), "sigma must be a positive number, got 0.0"),
        (lambda: arms.Bernoulli(1.5), "p must be a probability between 0 and 1, got 1.5"),
        (lambda: arms.Beta(0, 1), "a must be a positive number, got 0"),
        (lambda: arms.Uniform(1, 1), "high must be above low, got low 1.0 and high 1.0"),
        (lambda: arms.Empirical([]), "sample must have at least one number, got none"),
        (lambda: arms.Empirical([1.0, math.inf]), "every entry of sample must be a finite number, got inf"),
        (lambda: arms.ScipyLaw(scipy.stats.cauchy()), "a law needs a finite mean, got scipy.stats.cauchy"),
        (lambda: arms.ScipyLaw(scipy.stats.norm([0.0, 1.0])), "an arm must be a single law, got a .* arrays of param"),
        (lambda: arms.Empirical(5), "sample must be a list of numbers, got 5"),
        (lambda: arms.Empirical(np.array(5.0)), r"sample must be a list of numbers, got array\(5\.\)"),
        (lambda: arms.Empirical([1.7e308] * 2), r"between -1e\+100 and 1e\+100, got 1.7e\+308 from the law Empirical"),
        (lambda: arms.Beta(1.7e308, 1.7e308), r"a \+ b must be a positive number, got inf"),
        (lambda: arms.Gaussian(10**400), "mean must be a finite number, got an integer of about 400 digits"),
        (lambda: arms.as_law(0.5), "an arm must be a law .* got 0.5 of type float"),
        (lambda: arms.as_law(scipy.stats.norm), "an arm must be a law"),
        (lambda: arms.from_description({"law": "levy"}), "law must be one of .*; got 'levy'"),
        (lambda: arms.from_description({"law": "beta", "a": 1}), "the parameters of the law beta do not fit"),
        (lambda: arms.from_description({"law": "scipy", "name": "no", "args": [], "kwds": {}}), "do not fit"),
    ],
)
def test_bad_laws_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({}, "a law needs a mean, got Mine without one; set it to the expected reward"),
        ({"mean": math.nan}, "the law Mine cannot be used: mean must be a finite number, got nan"),
        ({"mean": math.inf}, "the law Mine cannot be used: mean must be a finite number, got inf"),
        ({"mean": "high"}, "the law Mine cannot be used: mean must be a finite number, got 'high'"),
        ({"mean": 0.0, "sigma": -1.0}, "the law Mine cannot be used: sigma must be None or a number between 0"),
        ({"mean": 0.0, "sigma": math.nan}, "the law Mine cannot be used: sigma must be a finite number, got nan"),
    ],
)
def test_own_law_without_a_usable_mean_or_sigma_is_refused(attributes, message):
    law = type("Mine", (arms.Law,), attributes)()
    with pytest.raises(ArmError, match=message):
        arms.as_law(law)


def test_own_law_with_a_mean_is_taken():
    law = type("Mine", (arms.Law,), {"mean": np.float64(0.25)})()
    assert arms.as_law(law) is law


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5), st.data())
def test_uniform_sets_have_their_size_and_cover_every_arm(n_agents, per_agent, seed, data):
    n_arms = data.draw(st.integers(per_agent, n_agents * per_agent))
    sets = arms.uniform_sets(n_agents, n_arms, per_agent, seed)
    assert len(sets) == n_agents
    assert all(len(set(row)) == per_agent and row == sorted(row) for row in sets)
    assert set().union(*sets) == set(range(n_arms))
    assert sets == arms.uniform_sets(n_agents, n_arms, per_agent, seed)


def test_uniform_sets_hold_every_arm_equally_often():
    sets = arms.uniform_sets(20_000, 10, 3, seed=1)
    n_holders = np.bincount(np.concatenate(sets))
    # Binomial with standard deviation 65; five of them are ample room.
    assert np.all(np.abs(n_holders - 6000) < 325)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((2, 5, 2, 0), r"n_agents \* per_agent must be at least n_arms = 5 .* got 2 \* 2"),
        ((9, 5, 6, 0), "per_agent must be at most n_arms = 5, got 6"),
        ((0, 5, 6, 0), "n_agents must be an integer of at least 1, got 0"),
        ((2, 5, 5, -1), "seed must be an integer of at least 0, got -1"),
    ],
)
def test_impossible_uniform_sets_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        arms.uniform_sets(*arguments)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.integers(0, 5))
def test_random_sets_leave_no_agent_and_no_arm_out(n_agents, n_arms, probability, seed):
    sets = arms.random_sets(n_agents, n_arms, probability, seed)
    assert all(row and row == sorted(set(row)) for row in sets)
    assert set().union(*sets) == set(range(n_arms))


def test_random_sets_have_the_expected_size():
    sizes = [len(row) for row in arms.random_sets(2000, 50, 0.4, seed=0)]
    assert np.mean(sizes) == pytest.approx(20.0, abs=0.4)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_far_apart_sets_are_maximal_independent_sets_of_the_power(seed, distance):
    graph = nx.gnp_random_graph(12, 0.2, seed=seed)
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    # An agent with a single arm may owe it to the repair, which does not look at distances.
    sets = arms.far_apart_sets(graph, 6, distance, seed)
    repaired = {v for v, row in enumerate(sets) if len(row) == 1}
    for arm in range(6):
        holders = [v for v, row in enumerate(sets) if arm in row]
        kept = [v for v in holders if v not in repaired]
        assert all(hops[u].get(v, 99) > distance for u in kept for v in kept if u != v)
        assert all(any(hops[v].get(u, 99) <= distance for u in holders) for v in graph)


def test_far_apart_sets_take_every_form_of_network():
    from banditmesh.networks import from_networkx

    graph = nx.path_graph(9)
    named = nx.relabel_nodes(graph, {v: f"agent {v}" for v in graph})
    sets = arms.far_apart_sets(graph, 4, 2, seed=3)
    assert sets == arms.far_apart_sets(named, 4, 2, seed=3)
    assert sets == arms.far_apart_sets(csr_array(nx.to_scipy_sparse_array(graph)), 4, 2, seed=3)
    assert sets == arms.far_apart_sets(from_networkx(graph)[1], 4, 2, seed=3)


def test_far_apart_sets_take_stored_zeros_for_no_links():
    zeros = csr_array((np.zeros(6), ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1])), shape=(3, 3))
    assert zeros.nnz == 6
    assert arms.far_apart_sets(zeros, 2, 1, seed=0) == [[0, 1]] * 3


@pytest.mark.parametrize(
    "network, message",
    [
        ([1, 2], "network as an edge list must hold tuples of two agents, got 1"),
        (nx.Graph(), "network must have at least one agent"),
        (nx.DiGraph([(0, 1)]), "network must be undirected, got a DiGraph"),
        (csr_array([[0, 1], [0, 0]]), "an adjacency matrix must be symmetric"),
    ],
)
def test_far_apart_sets_refuse_what_is_no_network(network, message):
    with pytest.raises(NetworkError, match=message):
        arms.far_apart_sets(network, 2, 1, seed=0)
