"""Clique covers and weighted covers: closed forms, brute force, certificates."""

import math
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh import theory
from banditmesh.errors import InputError
from banditmesh.theory import covers, setcover, weighted
from banditmesh.theory.cliques import maximal_cliques, members, neighbour_masks
from banditmesh.theory.delivery import Flow

METHODS = ("exact", "dsatur", "greedy")


def partitions(items):
    """All partitions of a list into parts."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for parts in partitions(rest):
        yield [[first], *parts]
        for place, part in enumerate(parts):
            yield [*parts[:place], [first, *part], *parts[place + 1 :]]


def clique_partitions(joined):
    return [
        parts
        for parts in partitions(list(range(len(joined))))
        if all(joined[v, w] for part in parts for v in part for w in part if v < w)
    ]


def random_graph(rng, n, density):
    upper = np.triu(rng.random((n, n)) < density, 1)
    return upper | upper.T


def is_clique_partition(cover, joined):
    cliques = [list(clique) for clique in cover.cliques]
    assert sorted(v for clique in cliques for v in clique) == list(range(len(joined)))
    assert all(joined[v, w] for clique in cliques for v in clique for w in clique if v != w)


CLOSED_FORMS = [
    (nx.complete_graph(9), 1),
    (nx.empty_graph(9), 9),
    (nx.path_graph(9), 5),
    (nx.path_graph(8), 4),
    (nx.cycle_graph(7), 4),
    (nx.cycle_graph(8), 4),
    (nx.star_graph(6), 6),
    (nx.disjoint_union_all([nx.complete_graph(k) for k in (1, 2, 3, 4)]), 4),
    (nx.complement(nx.cycle_graph(9)), 3),
    (nx.petersen_graph(), 5),
    (nx.complement(nx.mycielski_graph(4)), 4),  # chromatic number 4 without a triangle: no independent set proves it
]


@pytest.mark.parametrize("graph, theta", CLOSED_FORMS)
def test_clique_covering_numbers_of_known_graphs(graph, theta):
    cover = theory.clique_cover(graph)
    assert (cover.size, cover.lower, cover.is_minimum) == (theta, theta, True)
    is_clique_partition(cover, nx.to_numpy_array(graph) > 0)
    for method in ("dsatur", "greedy"):
        rough = theory.clique_cover(graph, method)
        assert rough.lower <= theta <= rough.size


@pytest.mark.parametrize("most_columns", [100_000, 0])
def test_exact_covers_equal_brute_force_over_all_partitions(monkeypatch, most_columns):
    # With no columns allowed they are all generated.
    monkeypatch.setattr(covers, "MAX_COLUMNS", most_columns)
    rng = np.random.default_rng(5)
    for trial in range(40):
        joined = random_graph(rng, int(rng.integers(1, 9 if trial < 8 else 7)), rng.random())
        gaps = rng.uniform(0.01, 1.0, len(joined))
        if trial % 3 == 0:
            gaps = np.ceil(gaps * 4) / 4  # ties
        allowed = clique_partitions(joined)
        theta = min(map(len, allowed))
        cost = min(sum(theory.clique_cost(gaps[part]) for part in parts) for parts in allowed)
        for method in METHODS:
            cover = theory.clique_cover(joined, method)
            cheap = theory.weighted_cover(joined, gaps, method)
            is_clique_partition(cover, joined)
            is_clique_partition(cheap, joined)
            assert cover.lower <= theta <= cover.size
            assert cheap.lower <= cost * (1 + 1e-9)
            assert cheap.cost >= cost * (1 - 1e-9)
            assert cheap.cost == pytest.approx(sum(theory.clique_cost(gaps[list(part)]) for part in cheap.cliques))
            if method == "exact":
                assert cover.size == cover.lower == theta
                assert cheap.cost == cheap.lower == pytest.approx(cost, rel=1e-9)


def test_generated_columns_give_what_all_columns_give(monkeypatch):
    rng = np.random.default_rng(2)
    for density in (0.3, 0.6):
        joined, gaps = random_graph(rng, 30, density), rng.uniform(0.05, 1.0, 30)
        all_columns = theory.clique_cover(joined), theory.weighted_cover(joined, gaps)
        monkeypatch.setattr(covers, "MAX_COLUMNS", 0)
        generated = theory.clique_cover(joined), theory.weighted_cover(joined, gaps)
        monkeypatch.undo()
        assert generated[0].size == generated[0].lower == all_columns[0].size
        assert generated[1].cost == pytest.approx(all_columns[1].cost)
        assert generated[1].is_minimum


@given(st.integers(2, 12), st.floats(0, 1), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_greedy_cover_is_the_colouring_that_networkx_finds(n, density, seed):
    joined = random_graph(np.random.default_rng(seed), n, density)
    colours = nx.greedy_color(nx.complement(nx.from_numpy_array(joined)), strategy="largest_first")
    classes = {frozenset(v for v in colours if colours[v] == colour) for colour in colours.values()}
    assert {frozenset(clique) for clique in theory.clique_cover(joined, "greedy").cliques} == classes


@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_maximal_cliques_are_those_of_networkx(n, density, seed):
    rng = np.random.default_rng(seed)
    joined = random_graph(rng, n, density)
    graph, everyone = neighbour_masks(joined), (1 << n) - 1
    found = [frozenset(members(clique)) for clique in maximal_cliques(graph, everyone)]
    expected = {frozenset(clique) for clique in nx.find_cliques(nx.from_numpy_array(joined))}
    assert len(found) == len(set(found))
    assert set(found) == expected
    weights, above = rng.random(n), rng.random() * n / 3
    heavy = {frozenset(members(clique)) for clique in maximal_cliques(graph, everyone, weights.tolist(), above)}
    assert heavy == {clique for clique in expected if sum(weights[v] for v in sorted(clique)) > above}


def test_two_agents_may_be_cheaper_apart():
    joined = nx.complete_graph(2)
    apart = theory.weighted_cover(joined, [0.1, 1.0])
    assert apart.cost == pytest.approx(11.0)
    assert apart.cliques == ((0,), (1,))
    assert theory.clique_cost([0.1, 1.0]) == pytest.approx(19.0)
    assert theory.clique_cover(joined).size == 1


@pytest.mark.parametrize("graph, theta", CLOSED_FORMS)
def test_with_equal_gaps_the_weighted_cover_is_theta_by_the_gap(graph, theta):
    cover = theory.weighted_cover(graph, dict.fromkeys(graph, 0.25))
    assert cover.cost == pytest.approx(theta / 0.25)
    assert cover.is_minimum


def test_a_clique_costs_its_extremes_only():
    assert theory.clique_cost([0.2, 0.5, 1.0]) == theory.clique_cost([1.0, 0.2]) == pytest.approx(9.0)
    assert theory.clique_cost([0.5]) == pytest.approx(2.0)


def test_gaps_by_name_belong_to_their_vertices():
    graph = nx.Graph([("x", "y"), ("y", "z")])
    cover = theory.weighted_cover(graph, {"z": 1.0, "y": 1.0, "x": 0.1})
    assert {frozenset(clique) for clique in cover.cliques} == {frozenset("x"), frozenset("yz")}


def test_no_time_gives_a_valid_cover_with_an_honest_bound():
    joined = random_graph(np.random.default_rng(0), 60, 0.5)
    gaps = np.linspace(0.01, 1.0, 60)
    graph = neighbour_masks(joined)
    past = time.monotonic() - 1.0
    cliques, lower = covers.cover_masks(graph, "exact", past)
    found = weighted.cover_masks(graph, gaps.tolist(), "exact", past)
    exact = theory.weighted_cover(joined, gaps)
    assert lower < len(cliques)
    assert found.lower < exact.cost <= found.cost
    assert not found.is_optimal


def test_complete_graphs_of_many_agents_need_no_search():
    assert theory.clique_cover(nx.complete_graph(400)).size == 1
    gaps = np.concatenate([np.linspace(0.01, 0.02, 200), np.linspace(0.9, 1.0, 200)])
    cover = theory.weighted_cover(np.ones((400, 400), dtype=bool), gaps)
    assert cover.is_minimum
    assert [len(clique) for clique in cover.cliques] == [200, 200]


def test_cheapest_cover_of_a_clique_is_the_integer_programs(monkeypatch):
    rng = np.random.default_rng(4)
    for n in (2, 5, 12):
        gaps = rng.uniform(0.02, 1.0, n)
        in_one_pass = theory.weighted_cover(nx.complete_graph(n), gaps)
        monkeypatch.setattr(weighted, "is_clique", lambda graph, within: False)
        searched = theory.weighted_cover(nx.complete_graph(n), gaps)
        monkeypatch.undo()
        assert in_one_pass.cost == pytest.approx(searched.cost, rel=1e-9)


def test_covers_of_the_paper_are_proven_minimum_and_no_larger_than_greedy():
    problem = bm.Problem.paper("er", seed=1)
    for protocol in (bm.Flooding(4), bm.FwA(4)):
        flow = Flow.claimed(problem, protocol)
        for arm in theory.arm_gaps(problem)[:6]:
            joined = flow.joined(arm.index, arm.suboptimal)
            cover, greedy = (theory.clique_cover(joined, method) for method in ("exact", "greedy"))
            cheap, rough = (theory.weighted_cover(joined, arm.gaps, method) for method in ("exact", "greedy"))
            assert cover.is_minimum
            assert cheap.is_minimum
            assert cover.size <= greedy.size
            assert cheap.cost <= rough.cost
            assert rough.lower <= cheap.cost
            assert cheap.cost <= 2 * cover.size / arm.gap_min


def test_set_cover_keeps_the_known_cover_without_time():
    known = setcover.Covering((1, 2), 2.0, 1.0)
    assert setcover.solve(2, {3: 1.0}, known, whole=True, deadline=0.0) is known


def test_prices_that_overcharge_columns_rule_nothing_out(monkeypatch):
    """Within its tolerance a solver may overcharge every column; a bound made of such prices must allow for it."""
    from scipy import optimize

    exactly = optimize.linprog

    def overcharge(*arguments, **options):
        answer = exactly(*arguments, **options)
        answer.ineqlin.marginals = answer.ineqlin.marginals * (1 + 3e-6)
        return answer

    monkeypatch.setattr(optimize, "linprog", overcharge)
    singles = {1 << v: 1.0 for v in range(7)}
    columns = singles | {1 << v | 1 << (v + 1) % 7: 1.0 for v in range(7)} | {0b111: 1.4}
    prices, bound, _ = setcover._relax(7, columns, math.inf)
    assert all(sum(prices[row] for row in members(mask)) <= cost * (1 + 1e-12) for mask, cost in columns.items())
    # Rows 0 to 2 together and the rest in pairs cost 3.4, so no bound may be above that.
    assert bound <= 3.4 * (1 + 1e-12)
    found = setcover.solve(7, columns, setcover.Covering(tuple(singles), 7.0, 0.0), whole=False, deadline=math.inf)
    assert found.cost == pytest.approx(3.4)
    assert found.is_optimal


@pytest.mark.parametrize(
    "graph, gaps, message",
    [
        (np.ones((2, 3), dtype=bool), [1, 1], "symmetric boolean"),
        (np.array([[False, True], [False, False]]), [1, 1], "symmetric boolean"),
        (nx.DiGraph([(0, 1)]), [1, 1], "undirected"),
        (nx.path_graph(2), [1.0], "one positive number"),
        (nx.path_graph(2), [1.0, 0.0], "one positive number"),
    ],
)
def test_what_is_no_graph_or_gap_is_refused(graph, gaps, message):
    with pytest.raises(InputError, match=message):
        theory.weighted_cover(graph, gaps)


def test_unknown_methods_are_refused():
    with pytest.raises(InputError, match="exact, dsatur, greedy"):
        theory.clique_cover(nx.path_graph(2), "best")
