"""Tested merging: the rule by hand, then against its definition written out, then in runs with liars."""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.comparisons.weaknesses import weaknesses
from banditmesh.core.trimming import believed
from banditmesh.errors import InputError, UnsupportedError
from banditmesh.studies.case import case_of
from banditmesh.studies.reading import parse_spec
from cases import examples

GROWTH = bm.Growth(0.25)


def expected(own, others, f, sigma):
    """The rule, with means as fractions and the median found by writing every observation out."""
    n_own, own_total = own
    mean = [Fraction(total) / count for count, total in others]
    in_order = sorted((count for count, _ in others), reverse=True)
    candidates = [n_own, *in_order[f : f + 1]]
    cap = max(candidates)
    capped = [cap if count > cap else count for count, _ in others]
    everything = sum(capped) + n_own
    if len(others) <= 2 * f or everything < 4 * f * cap:
        if n_own == 0:
            return [0] * len(others)
        cap, size, centre = n_own, n_own, Fraction(own_total) / n_own
        capped = [n_own if count > n_own else count for count, _ in others]
    else:
        written_out = [one for one, times in zip(mean, capped, strict=True) for _ in range(times)]
        written_out += [Fraction(own_total) / n_own] * n_own if n_own else []
        centre = sorted(written_out)[(len(written_out) - 1) // 2]
        size = max(n_own, everything - 2 * f * cap)
    found = []
    for (count, _), one, part in zip(others, mean, capped, strict=True):
        allowed = 3 * sigma * (1 / math.sqrt(max(1, count)) + 1 / math.sqrt(max(1, size)))
        found.append(part if abs(float(one - centre)) <= allowed else 0)
    return found


def test_nothing_is_heard():
    assert believed((3, 1.0), [], f=1, sigma=1.0) == []
    assert believed((0, 0.0), [], f=1, sigma=1.0) == []


def test_with_few_origins_the_own_mean_decides_and_nobody_counts_more():
    # Two others are at most 2 f: the centre is 0, N = 4, and both are capped at 4.
    assert believed((4, 0.0), [(100, 50.0), (2, 2.0)], f=1, sigma=1.0) == [4, 2]
    # Beyond 3 (1/10 + 1/2) = 1.8 and 3 (1/sqrt(2) + 1/2) = 3.62.
    assert believed((4, 0.0), [(100, 181.0), (2, 7.3)], f=1, sigma=1.0) == [0, 0]
    assert believed((4, 0.0), [(100, 179.0), (2, 7.2)], f=1, sigma=1.0) == [4, 2]


def test_without_own_observations_few_origins_are_not_believed():
    assert believed((0, 0.0), [(9, 9.0), (9, 9.0)], f=1, sigma=1.0) == [0, 0]


def test_with_many_origins_the_median_decides():
    # C = 10, M = 60 >= 40, N = max(10, 60 - 20) = 40; the centre is 1, and so is the mean of all but the liar.
    honest = [(10, 10.0)] * 4
    assert believed((10, 10.0), [*honest, (10**6, 9e6)], f=1, sigma=0.1) == [10, 10, 10, 10, 0]
    # An agent whose own mean is far off believes the others, not itself.
    assert believed((10, 90.0), [*honest, (10, 10.0)], f=1, sigma=0.1) == [10] * 5


def test_counts_are_capped_at_the_second_largest_or_the_own_one():
    many = [(5, 0.0)] * 8
    assert believed((2, 0.0), [*many, (7, 0.0), (50, 0.0)], f=1, sigma=1.0)[-2:] == [7, 7]
    assert believed((20, 0.0), [(20, 0.0)] * 4 + [(50, 0.0)], f=1, sigma=1.0)[-1] == 20


def test_one_origin_with_most_of_the_count_is_not_the_centre():
    # C = 100 of two that say 9, M = 1 + 200 + 4 < 400: liars could be half, so the own mean decides.
    others = [(100, 900.0), (100, 900.0), *[(1, 0.0)] * 4]
    assert believed((1, 0.0), others, f=1, sigma=1.0) == [0, 0, 1, 1, 1, 1]


counts = st.integers(1, 12) | st.sampled_from([100, 5000])
statistics = st.builds(lambda count, tenths: (count, count * tenths / 8), counts, st.integers(-40, 40))


@settings(max_examples=examples(300))
@given(
    own=st.just((0, 0.0)) | statistics,
    others=st.lists(statistics, max_size=14),
    f=st.integers(1, 3),
    sigma=st.sampled_from([0.01, 0.4, 1.0, 3.0]),
)
def test_the_rule_is_its_definition(own, others, f, sigma):
    assert believed(own, others, f, sigma) == expected(own, others, f, sigma)


@settings(max_examples=examples(100))
@given(
    honest=st.lists(st.integers(1, 30), min_size=9, max_size=14),
    claims=st.lists(st.integers(1, 10**9), min_size=2, max_size=2),
    mean=st.floats(-1e6, 1e6),
)
def test_f_liars_shift_a_known_mean_by_no_more_than_the_test_allows(honest, claims, mean):
    others = [(count, 0.0) for count in honest] + [(claim, claim * mean) for claim in claims]
    own, f, sigma = 30, 2, 1.0
    parts = believed((own, 0.0), others, f, sigma)
    assert parts[: len(honest)] == honest
    total = sum(part * mean for part in parts[len(honest) :])
    assert abs(total) <= sum(parts[len(honest) :]) * 3 * sigma * 2


def problem(n=12):
    return bm.Problem(nx.complete_graph(n), [range(4)] * n, [bm.arms.Gaussian(m, 0.5) for m in (0.1, 0.4, 0.6, 0.9)])


def run(protocol, liars=None, **more):
    given = {"horizon": 150, "seed": 0, "engine": "reference", "faults": bm.Faults(liars=liars)} | more
    return bm.simulate(problem(), protocol, **given)


@pytest.mark.parametrize("lie", ["worst-is-best", "worst-is-best(claim=1e6)"])
@pytest.mark.parametrize("protocol", [bm.FwA(3, emission=GROWTH), bm.Flooding(3, emission=GROWTH)], ids=str)
def test_trimming_undoes_most_of_what_two_liars_cost(protocol, lie):
    liars = {3: lie, 7: lie}
    honest, lied_to, trimmed = run(protocol), run(protocol, liars), run(protocol, liars, trim=2)
    costs = [result.honest_regret.mean() for result in (lied_to, trimmed)]
    usual = honest.agent_regret.mean()
    assert costs[1] - usual < 0.25 * (costs[0] - usual)
    assert trimmed.settings["trim"] == 2
    assert "trim" not in honest.settings


@pytest.mark.parametrize("policy", ["ucb(1)", "ucb(1)+discount(0.95)", "klucb", "thompson"])
def test_estimates_are_own_and_believed_statistics(policy):
    simulation = bm.Simulation(
        problem(6),
        bm.Flooding(2, emission=GROWTH),
        policy=policy,
        horizon=40,
        seed=0,
        trim=1,
        faults=bm.Faults(liars={2: "constant(value=50)"}),
    )
    for _ in range(40):
        simulation.step()
    for agent in simulation._stepper.agents:
        unit = agent._policy.memory.unit_in(40)
        for position, arm in enumerate(agent.arms.names):
            known = {origin: value[:2] for (origin, of), value in agent.recall.known.items() if of == arm}
            own = agent.recall.own_weight[position] / unit, agent.recall.own_total[position] / unit
            told = [(known[one][0] / unit, known[one][1] / unit) for one in sorted(known)]
            parts = believed(own, told, 1, 0.5)
            count = own[0] + sum(parts)
            total = own[1] + sum(part * whole / n for part, (n, whole) in zip(parts, told, strict=True))
            assert agent.estimates.count[position] == pytest.approx(count)
            assert agent.estimates.mean[position] == pytest.approx(total / count)
            assert agent.name == 2 or agent.estimates.mean[position] < 5


def test_an_agent_goes_on_from_its_state():
    protocol = bm.Flooding(2, emission=GROWTH)
    simulation = bm.Simulation(problem(6), protocol, horizon=40, seed=0, trim=1)
    for _ in range(20):
        simulation.step()
    agent = simulation._stepper.agents[1]
    before = list(agent.estimates.count), list(agent.estimates.mean)
    agent.state = agent.state
    assert (agent.estimates.count, agent.estimates.mean) == before


def test_without_trim_nothing_changes():
    protocol = bm.Flooding(2, emission=GROWTH)
    assert run(protocol, trim=0) == run(protocol)
    assert run(bm.NoCooperation(), trim=2).regret[0, -1] == run(bm.NoCooperation()).regret[0, -1]


@pytest.mark.parametrize(
    ("words", "protocol", "more"),
    [
        ("'tree' merges what origins tell; choose", "tree", {}),
        ("'centralised' does not send statistics; choose", "centralised", {}),
        ("'gosine' does not send statistics; choose", "gosine", {}),
        ("'fwa' sends single observations; give it a cumulative emission", "fwa(4)", {}),
        ("'flooding' sends single observations", "flooding(4)+contested", {}),
        (r"Window\(.*\) keeps no statistic an origin", "fwa(4)+growth(0.25)", {"policy": "ucb+window(50)"}),
        ("a policy asks for more than counts and sums", "fwa(4)+growth(0.25)", {"policy": "ucb-v"}),
    ],
)
def test_what_cannot_be_tested_is_refused_in_one_line(words, protocol, more):
    with pytest.raises(InputError, match=words) as error:
        run(protocol, trim=1, **more)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("trim cannot be used here: ")


def test_laws_without_sigma_and_wrong_numbers_are_refused():
    class Odd(bm.arms.Law):
        mean = 0.5

        def quantile(self, u):
            return u

    odd = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, [Odd(), Odd()])
    with pytest.raises(InputError, match="arm 0 has a law without a sigma"):
        bm.simulate(odd, bm.FwA(2, emission=GROWTH), policy="epsilon-greedy", horizon=5, trim=1)
    for wrong in (-1, 0.5, "two"):
        with pytest.raises(InputError, match="trim must be an integer"):
            run(bm.FwA(2, emission=GROWTH), trim=wrong)


def test_the_compiled_engine_says_that_it_does_not_test():
    with pytest.raises(UnsupportedError, match="it does not test what it merges"):
        run(bm.FwA(2, emission=GROWTH), trim=1, engine="compiled")


def test_specs_take_trim_and_old_ones_keep_their_fingerprint():
    text = 'horizon = 9\nprotocol = "fwa(4)+growth(0.25)"\n'
    plain, off, on = (parse_spec(text + more) for more in ("", "trim = 0\n", "trim = 2\n"))
    assert plain.digest == off.digest != on.digest
    assert "trim" not in plain.to_json()
    assert [point.settings["trim"] for point in parse_spec(text + "sweep.trim = [0, 2]\n").points()] == [0, 2]


def test_specs_refuse_trim_where_it_cannot_be_used():
    with pytest.raises(InputError, match="trim cannot be used here: 'fwa' sends single observations"):
        parse_spec('horizon = 9\nprotocol = "fwa(4)"\ntrim = 1\n')
    with pytest.raises(InputError, match="cannot have trim, got 1"):
        case_of(parse_spec('horizon = 9\nprotocol = "fwa(4)+growth(0.25)"\ntrim = 1\n'))


def test_the_frontier_names_who_handles_liars_poorly():
    faults = bm.Faults(liars={0: "noise"})
    assert "a lie reaches everybody" in weaknesses(bm.TreeAggregation(), faults)[0]
    assert "with trim" in weaknesses(bm.FwA(4, emission=GROWTH), faults)[0]
    assert "cannot be tested" in weaknesses(bm.FwA(4), faults)[0]
    assert weaknesses(bm.NoCooperation(), faults) == []
    protocols, liars = ["none", "irs", "tree"], bm.Faults(liars={3: "worst-is-best(claim=1e6)"})
    settings = {"horizon": 60, "replicates": 2, "seed": 0, "protocols": protocols, "progress": False}
    found = bm.frontier(problem(6), faults=liars, **settings)
    regret = {one.name: one.mean("regret") for one in found.configurations}
    n_worse = sum(one > regret["none"] for one in regret.values())
    assert min(one for name, one in regret.items() if name.startswith("tree")) > regret["none"]
    line = f"With these liars {n_worse} of {len(regret) - 1} configurations do worse than no cooperation"
    assert found.advice.splitlines()[-1] == f"{line}; tree whatever it sends."


def test_entries_of_a_comparison_may_differ_in_trim():
    entries = {f"trim {f}": {"protocol": "flooding(2)+growth(0.25)", "trim": f} for f in (0, 1)}
    faults = bm.Faults(liars={0: "worst-is-best(claim=1000)"})
    found = bm.compare(problem(), entries, horizon=60, replicates=1, seed=0, faults=faults, engine="reference")
    assert np.diff(found.table()["regret"])[0] < 0
