"""Bridges to PettingZoo and river, tested with these libraries themselves."""

import sys

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test
from river import bandit, proba

import banditmesh as bm
from banditmesh.integrations.pettingzoo import parallel_env
from banditmesh.integrations.river import FromRiver, ToRiver

RING = bm.Problem.random(bm.networks.ring(4), n_arms=5, per_agent=3, seed=0)
MEANS = (0.2, 0.5, 0.8)
COINS = [bm.arms.Bernoulli(mean) for mean in MEANS]
ALONE = bm.Problem(bm.networks.er(1, 0.0, seed=0), [[0, 1, 2]], COINS)
PAIR = bm.Problem(bm.networks.path(2), [[0, 1, 2]] * 2, COINS)


def play(env, choose, seed):
    """One episode: what agents pulled, and what they were paid."""
    observations, _ = env.reset(seed=seed)
    pulled, paid = [], []
    while env.agents:
        actions = {agent: choose(observations[agent]) for agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        pulled.append([infos[agent].get("arm") for agent in env.possible_agents])
        paid.append([rewards[agent] for agent in env.possible_agents])
    return pulled, paid


def of_best_mean(observation):
    """A rule of somebody else's: unknown arms first, then the best mean."""
    return int(np.argmax(np.where(observation["count"] == 0, np.inf, observation["mean"])))


@pytest.mark.parametrize(
    "settings", [{}, {"every": [1, 2, 1, 3], "faults": bm.Faults(loss=0.2, outages=bm.Outages(0.2, 0.5))}]
)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_pettingzoo_accepts_the_environment(settings):
    parallel_api_test(parallel_env(RING, "fwa(2)", horizon=20, **settings), num_cycles=30)
    parallel_seed_test(lambda: parallel_env(RING, "fwa(2)", horizon=20, **settings), num_cycles=5)


def test_episodes_are_replicates_and_the_protocol_delivers():
    class Rule(bm.Policy):
        name = "best-mean"

        @staticmethod
        def index(mean, count, inv_root, clock, sigma, law, u, parameter):
            return mean

    policy = Rule(first_pulls="unknown")
    env = parallel_env(PAIR, "irs", horizon=30)
    for seed, replicate in ((7, 0), (None, 1)):
        pulled, paid = play(env, of_best_mean, seed)
        simulation = bm.Simulation(PAIR, "irs", policy=policy, horizon=30, seed=7, replicate=replicate)
        rounds = [simulation.step() for _ in range(30)]
        assert pulled == [list(one.choices.values()) for one in rounds]
        assert paid == [list(one.rewards.values()) for one in rounds]


def test_observations_hold_what_an_agent_knows_and_no_more():
    env = parallel_env(PAIR, "irs", horizon=5)
    env.reset(seed=0)
    observations, rewards, *_ = env.step({0: 0, 1: 2})
    assert observations[0]["count"].tolist() == [1, 0, 1]
    assert observations[0]["own_count"].tolist() == [1, 0, 0]
    assert observations[0]["mean"].tolist() == [rewards[0], 0.0, rewards[1]]
    deaf = parallel_env(PAIR, "none", horizon=5)
    deaf.reset(seed=0)
    observations, *_ = deaf.step({0: 0, 1: 2})
    assert observations[0]["count"].tolist() == [1, 0, 0]
    assert all(env.observation_space(agent).contains(one) for agent, one in observations.items())


def test_agents_that_do_not_pull_are_masked_and_paid_nothing():
    env = parallel_env(PAIR, "irs", horizon=4, every=[1, 2])
    env.reset(seed=0)
    observations, *_ = env.step({0: 0, 1: 0})
    assert observations[1]["action_mask"].tolist() == [0, 0, 0]
    assert observations[0]["action_mask"].tolist() == [1, 1, 1]
    _, rewards, _, _, infos = env.step({0: 0, 1: 0})
    assert rewards[1] == 0.0
    assert infos[1] == {}


@pytest.mark.parametrize(
    "actions, words",
    [
        ({0: 0}, "actions must name all 2 agents, got none for 1"),
        ({0: 0, 1: 3}, "the action of agent 1 must be a position from 0 to 2, got 3"),
        (None, "actions must be a mapping from agents to positions, got None"),
        ([0, 0], "actions must be a mapping from agents to positions"),
    ],
)
def test_wrong_actions_are_refused(actions, words):
    env = parallel_env(PAIR, "irs", horizon=2)
    with pytest.raises(bm.InputError, match="call reset"):
        env.step({0: 0, 1: 0})
    env.reset(seed=0)
    with pytest.raises(bm.InputError, match=words):
        env.step(actions)


def rounds_of(problem, policy, horizon, **more):
    simulation = bm.Simulation(problem, "none", policy=policy, horizon=horizon, seed=5, **more)
    return [simulation.step() for _ in range(horizon)]


def test_ucb_of_river_and_ours_pull_the_same_arms():
    """Its delta sqrt(2 log n / count) is our bonus with alpha = 2 delta^2, by the clock of the published rules."""
    # Of arms that are level, river draws one; with such rewards there are none.
    laws = [bm.arms.Gaussian(mean, 0.3) for mean in MEANS]
    problem = bm.Problem(bm.networks.er(1, 0.0, seed=0), [[0, 1, 2]], laws)
    theirs = rounds_of(problem, FromRiver(bandit.UCB(delta=0.5)), 100, rules="published")
    ours = rounds_of(problem, bm.UCB(alpha=0.5), 100, rules="published")
    assert [one.choices for one in theirs] == [one.choices for one in ours]


def test_greedy_of_river_and_ours_pull_the_same_arms():
    theirs = rounds_of(ALONE, FromRiver(bandit.EpsilonGreedy(epsilon=0.0)), 100)
    assert [one.choices for one in theirs] == [one.choices for one in rounds_of(ALONE, bm.EpsilonGreedy(0.0), 100)]


@pytest.mark.parametrize(
    "policy",
    [
        bandit.EpsilonGreedy(epsilon=0.3, decay=0.01),
        bandit.ThompsonSampling(reward_obj=proba.Beta()),
        bandit.BayesUCB(),
        bandit.UCB(delta=1.0),
        bandit.RandomPolicy(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_agents_pull_what_river_itself_would(policy):
    """The same seed and rewards, by way of an agent and in river's own loop."""
    rounds = rounds_of(ALONE, FromRiver(policy), 60)
    again = rounds_of(ALONE, FromRiver(policy), 60)
    assert [one.choices for one in rounds] == [one.choices for one in again]
    from banditmesh.draws import INDEX, Draws

    # The copy is seeded when it first chooses, in round 4, after three first pulls.
    alone = policy.clone({"seed": int(Draws(5, 0).uniform(INDEX, 0, 4, 0) * 2**32)})
    for one in rounds:
        if one.round > 3:
            assert alone.pull([0, 1, 2]) == one.choices[0]
        alone.update(one.choices[0], one.rewards[0])


@pytest.mark.parametrize("protocol", ["none", "irs", "irs+growth(0.5)"])
def test_agents_learn_from_what_they_hear(protocol):
    simulation = bm.Simulation(PAIR, protocol, policy=FromRiver(bandit.UCB(delta=0.7)), horizon=20, seed=0)
    for _ in range(12):
        simulation.step()
    agent = simulation.agents[0]
    agent.choose(13)  # it learns what waits before it chooses
    learned = agent.chooser._made
    assert [learned._counts[arm] for arm in range(3)] == agent.estimates.count
    assert [learned._rewards[arm].get() for arm in range(3)] == pytest.approx(agent.estimates.mean)
    assert (sum(agent.estimates.count) > 12) == (protocol != "none")


def test_thompson_of_river_and_ours_learn_alike():
    given = {"horizon": 150, "replicates": 6, "seed": 0, "engine": "reference"}
    theirs = bm.simulate(ALONE, "none", policy=FromRiver(bandit.ThompsonSampling(reward_obj=proba.Beta())), **given)
    ours = bm.simulate(ALONE, "none", policy=bm.ThompsonSampling(), **given)
    one, other = theirs.regret[:, -1], ours.regret[:, -1]
    spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 6)
    assert abs(one.mean() - other.mean()) < 3 * spread


def test_copy_of_an_agent_continues_from_its_state():
    from banditmesh.policies import Arms, Estimates

    policy = FromRiver(bandit.ThompsonSampling(reward_obj=proba.Beta()))
    arms = Arms([0, 1, 2], [0.5] * 3, [1] * 3)
    one, other = policy.chooser(arms), policy.chooser(arms)
    known = Estimates([0.5] * 3, [1] * 3)
    for k in range(20):
        one.observe(k % 3, k % 2)
        one.choose(k, known, lambda position: 0.25)
    other.state = one.state
    assert [one.choose(k, known, None) for k in range(20)] == [other.choose(k, known, None) for k in range(20)]


def test_values_are_compared_by_class_and_parameters():
    assert FromRiver(bandit.UCB(delta=1.0)) == FromRiver(bandit.UCB(delta=1.0, seed=3))
    assert FromRiver(bandit.UCB(delta=1.0)) != FromRiver(bandit.UCB(delta=2.0))
    assert "bandit.UCB(delta=1.0" in repr(FromRiver(bandit.UCB(delta=1.0)))


@pytest.mark.parametrize("wrong", [bandit.Exp3(gamma=0.5), bandit.LinUCBDisjoint(alpha=1.0), "ucb"])
def test_policies_that_agents_cannot_have_are_refused(wrong):
    with pytest.raises(bm.InputError, match=r"policy must (learn from pulls|be one of river's)"):
        FromRiver(wrong)


@pytest.mark.parametrize(
    "policy",
    [bm.UCB(), bm.ThompsonSampling(), bm.EpsilonGreedy(0.2), bm.UCB(0.5, memory=bm.Discount(0.9)), bm.KLUCB()],
    ids=lambda policy: policy.label,
)
def test_river_pulls_what_an_agent_alone_would(policy):
    theirs = ToRiver(policy, law=COINS[0], seed=5)
    for one in rounds_of(ALONE, policy, 60):
        arm = theirs.pull([0, 1, 2])
        assert arm == one.choices[0]
        theirs.update(arm, one.rewards[0])
    assert theirs.ranking[0] in (0, 1, 2)


def test_river_evaluates_our_policies_and_clones_them():
    import gymnasium

    env = gymnasium.make("river_bandits/KArmedTestbed-v0", max_episode_steps=50)
    policies = [ToRiver(bm.UCB(alpha=2.0), seed=1), bandit.UCB(delta=1.0)]
    rows = list(bandit.evaluate(policies, env, n_episodes=2, seed=1))
    assert len(rows) == 2 * 2 * 50
    assert ToRiver(bm.UCB(alpha=2.0), seed=1).clone().policy == bm.UCB(alpha=2.0)


def test_river_may_leave_arms_out_but_not_bring_others():
    policy = ToRiver(bm.UCB(), seed=0)
    with pytest.raises(bm.InputError, match="pull first, or give arms="):
        policy.update("a", 1.0)
    assert policy.pull(["a", "b", "c"]) == "a"
    assert policy.pull(["c"]) == "c"
    with pytest.raises(bm.InputError, match=r"one of \['a', 'b', 'c'\], got 'd'; give all arms as arms="):
        policy.pull(["d"])
    with pytest.raises(bm.InputError, match="policy must be a policy such as UCB"):
        ToRiver("ucb")
    for arms in ([], ["a", "a"]):
        with pytest.raises(bm.InputError, match="arms must be different ones, at least one, got"):
            ToRiver(bm.UCB()).pull(arms)


@pytest.mark.parametrize("reward", [(float("nan"),), (None,), ("x",), (1e300,), ()])
def test_river_learns_nothing_of_what_is_no_reward(reward):
    policy = ToRiver(bm.UCB(), arms=["a", "b"], seed=0)
    policy.update("a", 0.5)
    with pytest.raises(bm.InputError, match="reward must be"):
        policy.update("a", *reward)
    assert [policy._rewards[arm].get() for arm in ("a", "b")] == [0.5, 0.0]


def test_the_seed_of_an_environment_is_that_of_reset():
    with pytest.raises(bm.InputError, match=r"^seed is said by reset\(\), got 3; leave it out$"):
        parallel_env(PAIR, "irs", seed=3)


@pytest.mark.parametrize("extra", ["pettingzoo", "river"])
def test_missing_extra_is_one_line(extra, monkeypatch):
    import importlib

    monkeypatch.setitem(sys.modules, extra, None)
    monkeypatch.delitem(sys.modules, f"banditmesh.integrations.{extra}", raising=False)
    with pytest.raises(bm.errors.MissingExtraError, match=rf"pip install 'banditmesh\[{extra}\]'"):
        importlib.import_module(f"banditmesh.integrations.{extra}")
