"""Leaders, messages, and both ends of UCB's bracket: what is proven of them, on small cases."""

import itertools
import math
import runpy
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "leaders.py"))
Leaders, PATH, STAR = (SCRIPT[name] for name in ("Leaders", "PATH", "STAR"))


def settled(leaders):
    return sum(leaders.means[a] == best for a, best in zip(leaders.champions, leaders.best, strict=True))


def test_each_stage_settles_at_least_one_more_agent():
    arms = [bm.arms.Gaussian(mean, 1e-6) for mean in (0.0, 1.0, 2.0, 3.0)]
    pairs = list(itertools.combinations(range(4), 2))
    held = [sets for sets in itertools.product(pairs, repeat=3) if len(set().union(*sets)) == 4]
    for seed, sets in enumerate(held):
        leaders = Leaders(bm.Problem(nx.path_graph(3), sets, arms), seed=seed).run(500)
        leaders.champions = [min(arms) for arms in leaders.holds]  # the worst
        leaders.announced, before = {}, 0
        for _ in range(3):
            leaders.stage(400)
            after = settled(leaders)
            assert after > before or after == 3
            before = after
        assert before == 3


@pytest.mark.parametrize("problem", [STAR, PATH], ids=["star", "path"])
def test_leaders_pay_what_the_theorem_says_and_announce_once_a_phase(problem):
    runs = [Leaders(problem, seed=seed).run(3 * 10**10) for seed in range(20)]
    assert all(settled(run) == problem.n_agents for run in runs)
    assert [t for t, _ in runs[0].regret] == [400, 160_000, 25_600_000_000]
    paid = np.mean([run.regret[-1][1] - run.regret[-2][1] for run in runs])
    optimal = bm.bounds(problem, "centralised", alpha=1.0).constant_sharp
    assert 0.6 < paid / (optimal * math.log(160_000)) < 1.2
    announced = np.array([run.announcements for run in runs])
    assert announced.min() == 3 * problem.n_agents
    assert announced.mean() < 4 * problem.n_agents


def test_followers_that_copy_beat_the_independent_set():
    paid = np.mean([SCRIPT["follow"](STAR, 0, 1.0, 4000, seed) for seed in range(5)])
    shared = bm.simulate(STAR, "irs", policy=bm.UCB(1.0), horizon=4000, replicates=5, seed=0, record_every=4000)
    assert paid < 3 * math.log(4000) < shared.regret[:, -1].mean()


def test_ucb_attains_both_ends_of_its_bracket():
    horizon = 20_000
    problem = bm.Problem(nx.cycle_graph(6), [[0, 1]] * 6, [bm.arms.Bernoulli(1.0), bm.arms.Bernoulli(0.0)])
    settings = {"policy": bm.UCB(1.0), "horizon": horizon, "record_every": horizon, "seed": 0, "agents": True}
    need = math.log(horizon)
    lockstep = bm.simulate(problem, "irs", **settings).agent_regret[0]
    assert len(set(lockstep)) == 1
    assert need / 3 - 1 < lockstep[0] <= need / 3 + 1
    apart = bm.simulate(problem, "irs", every=[1, 500] * 3, **settings).agent_regret[0]
    assert apart[1::2].tolist() == [1.0, 1.0, 1.0]
    assert all(0.75 * need - 3 <= paid <= need + 1 for paid in apart[::2])
    bounds = bm.bounds(problem, "irs", alpha=1.0)
    assert (bounds.constant_least, bounds.constant_sharp) == pytest.approx((2.0, 3.0))


@pytest.mark.parametrize(("factor", "echoes"), [(0.25, 0), (1.0, 1), (1e-300, 0)])
def test_a_tree_under_growth_sends_as_often_as_merged_counts_grow(factor, echoes):
    problem = bm.Problem(nx.path_graph(4), [[0, 1], [1], [0], [0, 1]], [bm.arms.Gaussian(1.0), bm.arms.Gaussian(0.5)])
    protocol = bm.TreeAggregation(1, emission=bm.Growth(factor, echoes=echoes))
    traffic = bm.theory.traffic_bounds(problem, protocol, 300)
    sent = bm.simulate(problem, protocol, horizon=300, replicates=3, seed=0).transmissions[:, -1]
    assert (sent <= traffic.within_ttl).all()
    assert traffic.within_ttl <= traffic.corrected
    if factor >= 0.25:
        by_hand = 3 * 2 * (1 + echoes) * 2 * (1 + math.log(3 * 300 / 2) / math.log1p(factor))
        assert traffic.within_ttl <= by_hand + 20


def test_a_tree_of_one_agent_sends_nothing():
    alone = bm.Problem(nx.empty_graph(1), [[0, 1]], [bm.arms.Gaussian(1.0), bm.arms.Gaussian(0.5)])
    assert bm.theory.traffic_bounds(alone, bm.TreeAggregation(), 100).within_ttl == 0
