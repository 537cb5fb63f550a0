"""How large rewards may be: beyond the bound all is refused, and up to it both engines agree and no sum overflows."""

import math

import networkx as nx
import numpy as np
import pytest
import scipy.stats

import banditmesh as bm
from banditmesh.arms.base import ENDS, MAX_REWARD
from banditmesh.draws import GREATEST_UNIFORM, LEAST_UNIFORM, normal_quantile
from banditmesh.errors import ArmError, InputError

WIDEST = MAX_REWARD / normal_quantile(GREATEST_UNIFORM)
RING = nx.cycle_graph(5)
SETS = [[v % 4, (v + 1) % 4, (v + 2) % 4] for v in range(5)]


class Mine(bm.arms.Law):
    """A law that pays what it is given, but at the ends of the range of uniform numbers pays 0."""

    mean, sigma = 0.0, 1.0

    def __init__(self, pays):
        self.pays = pays

    def quantile(self, u):
        return 0.0 if u in ENDS else self.pays


def test_uniform_numbers_end_where_the_draws_say():
    every_bit = (((0xFFFFFFFF >> 6) << 26) + (0xFFFFFFFF >> 6) + 0.5) * 2.0**-52
    assert (0.5 * 2.0**-52, every_bit) == (LEAST_UNIFORM, GREATEST_UNIFORM)


def test_sums_of_the_largest_rewards_are_numbers():
    most = 2.0**63
    total = most * MAX_REWARD
    assert math.isfinite(total)
    # What UCB-V adds up: as many squares of sums as there can be.
    assert math.isfinite(most * total * total)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bm.arms.Gaussian(0.0, 1e308),
        lambda: bm.arms.Gaussian(0.0, WIDEST * 1.001),
        lambda: bm.arms.Gaussian(1.001 * MAX_REWARD, 1.0),
        lambda: bm.arms.Gaussian(-1e308, 1e308),
        lambda: bm.arms.Uniform(-1e308, 0.0),
        lambda: bm.arms.Uniform(0.0, 1.001 * MAX_REWARD),
        lambda: bm.arms.Empirical([0.0, -1e101]),
        lambda: bm.arms.Empirical([1e308] * 3),
        lambda: bm.arms.ScipyLaw(scipy.stats.norm(0.0, 1e308)),
        lambda: bm.arms.ScipyLaw(scipy.stats.expon(scale=1e101)),
        lambda: bm.arms.as_law(scipy.stats.uniform(0.0, 1e200)),
        lambda: bm.arms.from_description({"law": "gaussian", "mean": 0.0, "sigma": 1e300}),
        lambda: bm.arms.from_description({"law": "scipy", "name": "laplace", "args": [0.0, 1e300], "kwds": {}}),
    ],
)
def test_law_that_pays_beyond_the_bound_is_refused_when_it_is_made(make):
    with pytest.raises(ArmError, match=r"rewards must be numbers between -1e\+100 and 1e\+100, got \S+ from the law"):
        make()


@pytest.mark.parametrize("pays", [math.nan, math.inf, -math.inf, 1e101, 10**400, None, "much", [1.0, 2.0]])
def test_own_law_that_pays_no_number_at_an_end_is_refused_with_the_problem(pays):
    law = type("Bad", (bm.arms.Law,), {"mean": 0.0, "quantile": lambda self, u: pays if u < 0.25 else 0.0})()
    with pytest.raises(ArmError, match=r"rewards must be numbers .* from the law Bad for u = 1.1102230246251565e-16"):
        bm.Problem(RING, [[0]] * 5, [law])


@pytest.mark.parametrize("attributes", [{"mean": 1e101}, {"mean": 0.0, "sigma": 1e101}])
def test_own_law_with_a_mean_or_sigma_beyond_the_bound_is_refused(attributes):
    law = type("Bad", (bm.arms.Law,), {"quantile": lambda self, u: u, **attributes})()
    with pytest.raises(ArmError, match=r"the law Bad cannot be used: (mean|sigma) must"):
        bm.arms.as_law(law)


@pytest.mark.parametrize("kernel", [(0, 0.0, 1e308), (0, 0.0, 1.0), (2, 0.0, math.nan)])
def test_own_law_whose_kernel_is_not_its_quantile_is_refused(kernel):
    law = type("Bad", (bm.arms.Law,), {"mean": 0.5, "quantile": lambda self, u: u, "kernel": kernel})()
    with pytest.raises(ArmError, match="kernel and quantile of the law Bad must give the same"):
        bm.arms.as_law(law)


def test_own_law_without_quantile_is_refused_when_it_is_drawn_from(engine):
    law = type("Taped", (bm.arms.Law,), {"mean": 0.5})()
    problem = bm.Problem(RING, [[0]] * 5, [law])
    result = bm.simulate(problem, bm.IRS(), horizon=2, rewards=np.ones((2, 5, 1)), engine=engine, seed=0)
    assert result.pulls.sum() == 10
    with pytest.raises(ArmError, match=r"must define quantile\(u\), got Taped without it"):
        bm.simulate(problem, bm.IRS(), horizon=2, engine=engine, seed=0)


@pytest.mark.parametrize("pays", [math.nan, math.inf, -math.inf, 1e101, 10**400, None, "much"])
def test_own_law_that_pays_no_number_in_a_run_is_one_line(engine, pays):
    problem = bm.Problem(RING, [[0]] * 5, [Mine(pays)])
    with pytest.raises(ArmError, match=r"rewards must be numbers .* from the law Mine for u = 0\.\d+$") as caught:
        bm.simulate(problem, bm.FwA(2), horizon=3, engine=engine, seed=0)
    assert "\n" not in str(caught.value)


def test_own_law_with_quantiles_of_the_wrong_shape_or_no_numbers_is_one_line():
    shapes = type("Flat", (Mine,), {"quantiles": lambda self, u: np.zeros(3)})(0.0)
    with pytest.raises(ArmError, match=r"quantiles of the law Flat must have shape \(5,\), got \(3,\)"):
        bm.simulate(bm.Problem(RING, [[0]] * 5, [shapes]), bm.IRS(), horizon=3, engine="compiled", seed=0)
    numbers = type("Nan", (Mine,), {"quantiles": lambda self, u: np.full(u.shape, np.nan)})(0.0)
    with pytest.raises(ArmError, match="got nan from the law Nan for u = "):
        bm.simulate(bm.Problem(RING, [[0]] * 5, [numbers]), bm.IRS(), horizon=3, engine="compiled", seed=0)


@pytest.mark.parametrize("entry", [math.nan, math.inf, 1.001 * MAX_REWARD, -1.001 * MAX_REWARD])
def test_tape_beyond_the_bound_is_refused(entry):
    problem = bm.Problem(RING, [[0]] * 5, [bm.arms.Bernoulli(0.5)])
    tape = np.zeros((3, 5, 1))
    tape[1, 2, 0] = entry
    with pytest.raises(InputError, match=r"between -1e\+100 and 1e\+100 wherever .* in round 2 for agent 2 and arm 0"):
        bm.simulate(problem, bm.IRS(), horizon=3, rewards=tape, seed=0)


def widest_problems():
    """Problems with the widest laws that are permitted."""
    extreme = bm.arms.Empirical([-MAX_REWARD, MAX_REWARD])
    return {
        "gaussian": bm.Problem(RING, SETS, [bm.arms.Gaussian(0.0, WIDEST)] * 4),
        "far": bm.Problem(RING, SETS, [bm.arms.Gaussian(s * 0.9 * MAX_REWARD, 1.0) for s in (1, -1, 1, -1)]),
        "uniform": bm.Problem(RING, SETS, [bm.arms.Uniform(-MAX_REWARD, MAX_REWARD)] * 4),
        "mixed": bm.Problem(RING, SETS, [extreme, bm.arms.Gaussian(0.0, WIDEST), extreme, bm.arms.Bernoulli(0.5)]),
    }


@pytest.mark.parametrize("name, problem", widest_problems().items(), ids=widest_problems())
@pytest.mark.parametrize(
    "policy",
    [bm.UCB(), *(pytest.param(policy, marks=pytest.mark.slow) for policy in (bm.KLUCB(c=1.0), bm.ThompsonSampling()))],
    ids=lambda policy: policy.name,
)
@pytest.mark.parametrize(
    "protocol", [bm.FwA(3), bm.Flooding(3, emission=bm.Growth(0.25)), bm.FwA(3, emission=bm.Contested())]
)
def test_engines_agree_on_the_widest_laws(name, problem, policy, protocol):
    settings = {"policy": policy, "horizon": 40, "seed": 3}
    one, two = (bm.simulate(problem, protocol, engine=engine, **settings) for engine in ("reference", "compiled"))
    assert np.isfinite(one.regret).all()
    for key in ("regret", "messages", "pulls"):
        np.testing.assert_array_equal(getattr(one, key), getattr(two, key))


@pytest.mark.parametrize("rules", ["sound", "published"])
def test_engines_agree_on_a_tape_of_the_largest_rewards(rules):
    tape = np.random.default_rng(0).choice([-MAX_REWARD, MAX_REWARD], size=(40, 5, 4))
    problem = bm.Problem(RING, SETS, [bm.arms.Gaussian(0.0, 1.0)] * 4)
    settings = {"horizon": 40, "seed": 3, "rewards": tape, "rules": rules}
    one, two = (bm.simulate(problem, bm.FwA(3), engine=engine, **settings) for engine in ("reference", "compiled"))
    np.testing.assert_array_equal(one.pulls, two.pulls)
    assert one.traffic == two.traffic


@pytest.mark.parametrize("policy", [bm.UCBV(), bm.MOSS(), bm.EpsilonGreedy()], ids=lambda policy: policy.name)
def test_other_policies_reckon_with_the_widest_laws(policy):
    result = bm.simulate(widest_problems()["gaussian"], bm.FwA(3), policy=policy, horizon=40, seed=3)
    assert np.isfinite(result.regret).all()
