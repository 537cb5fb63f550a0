"""KL-UCB and Thompson sampling that forget, drawn at random in every respect: both engines agree to the last bit."""

import itertools

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm

CHANGES = [None, "switching(0.1)", "wandering(0.1)", "wandering(0.3, hold=3)", "seasonal(0.2, 17)", "piecewise(7, 15)"]
FAULTS = [
    None,
    bm.Faults(loss=0.2),
    bm.Faults(loss=0.1, outages=bm.Outages(down=0.1, up=0.3, memory=False)),
    bm.Faults(outages=bm.Outages(down=0.05, up=0.2)),
]
PROTOCOLS = {
    "none": lambda ttl, factor: bm.NoCooperation(),
    "plan": lambda ttl, factor: bm.FwA(ttl),
    "spread": lambda ttl, factor: bm.Gossip(ttl),
    "growth": lambda ttl, factor: bm.FwA(ttl, emission=bm.Growth(factor, echoes=ttl % 2)),
    "tree": lambda ttl, factor: bm.TreeAggregation(2 * ttl, emission=bm.Growth(factor, echoes=ttl % 2)),
}
#: Policy, memory, protocol and rules: each has kernels of its own.
KINDS = [
    ("klucb", "discount", "none", "sound"),
    ("thompson", "discount", "none", "sound"),
    ("klucb", "window", "plan", "sound"),
    ("thompson", "window", "spread", "sound"),
    ("thompson", "window", "plan", "published"),
    ("klucb", "discount", "plan", "published"),
    ("thompson", "discount", "growth", "sound"),
    ("klucb", "discount", "tree", "sound"),
    ("thompson", "discount", "tree", "sound"),
]


def random_problem(rng):
    n = int(rng.integers(2, 9))
    graphs = (nx.path_graph(n), nx.star_graph(n - 1), nx.complete_graph(n), nx.gnp_random_graph(n, 0.35, seed=n))
    sets = [sorted(rng.choice(5, int(rng.integers(1, 6)), replace=False).tolist()) for _ in range(n)]
    held = {arm: place for place, arm in enumerate(sorted(set(itertools.chain(*sets))))}
    means = 0.25 + 0.5 * rng.random(len(held))
    gaussian = [bm.arms.Gaussian(mean, float(rng.choice([0.01, 0.5, 3.0]))) for mean in means]
    coins = [bm.arms.Bernoulli(mean) for mean in means]
    uniform = [bm.arms.Uniform(mean - 0.2, mean + 0.2) for mean in means]
    both = [pair[place % 2] for place, pair in enumerate(zip(gaussian, coins, strict=True))]
    laws = (gaussian, coins, uniform, both)[rng.integers(4)]
    problem = bm.Problem(graphs[rng.integers(4)], [[held[arm] for arm in one] for one in sets], laws)
    change = CHANGES[rng.integers(len(CHANGES))]
    # Arms of one kind can all trade places, and arms of equal means say nothing of how far they go.
    return problem if change is None or laws is both or len(held) < 2 else problem.with_change(change)


def random_policy(rng, name, memory):
    rounds = int(rng.choice([1, 2, 7, 20, 50]))
    kept = {
        "discount": bm.Discount(float(rng.choice([0.5, 0.6, 0.9, 0.97, 0.999, 1 - 1e-12]))),
        "window": bm.Window(rounds, blocks=int(rng.choice([1, 4, rounds]))),
    }
    kind = {"klucb": bm.KLUCB, "thompson": bm.ThompsonSampling}[name]
    return kind(memory=kept[memory], first_pulls=str(rng.choice(["each", "unknown"])))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "memory", "protocol", "rules"), KINDS)
def test_engines_agree_on_whatever_forgets(policy, memory, protocol, rules):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        problem, chooses = random_problem(rng), random_policy(rng, policy, memory)
        settings = {
            # Long enough that weights of the smallest discounts end.
            "horizon": 400 if getattr(chooses.memory, "gamma", 1.0) < 0.7 else int(rng.choice([20, 60, 130])),
            "every": None if rng.random() < 0.5 else rng.integers(1, 6, problem.n_agents).tolist(),
            "faults": FAULTS[rng.integers(len(FAULTS))],
        }
        sends = PROTOCOLS[protocol](int(rng.integers(1, 5)), float(rng.choice([0.05, 0.25, 1.0])))
        one, other = (
            bm.simulate(problem, sends, policy=chooses, rules=rules, seed=seed, engine=engine, **settings)
            for engine in ("reference", "compiled")
        )
        for name in ("regret", "transmissions", "pulls", "agent_regret"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (seed, name)
        assert all(np.array_equal(one.traffic[key], other.traffic[key]) for key in one.traffic), seed
