"""Elimination, CO-AAE over flooding, and Coop-SE with its notices."""

import math

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import CoAAE, CoopSE, Elimination
from banditmesh.core import Copy, Fate, Note, Place
from banditmesh.errors import MessageError
from banditmesh.policies import Arms, Estimates


def easy_problem():
    arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 1.0, 0.5)]
    return bm.Problem(nx.path_graph(4), [[0, 1], [1, 2], [0, 2], [0, 1, 2]], arms)


def run(problem, protocol, horizon, **settings):
    """The result, and the candidates of each agent at the end."""
    simulation = bm.Simulation(problem, protocol, horizon=horizon, seed=0, record_every=horizon, **settings)
    result = simulation.run(progress=False)
    return result, [agent.chooser.candidates for agent in simulation.agents.values()]


def known(*statistics):
    """What an agent knows of arms: count and mean of each."""
    estimates = Estimates([1.0] * len(statistics), [0] * len(statistics))
    for position, (count, mean) in enumerate(statistics):
        estimates.put(position, count, count * mean)
    return estimates


# The policy


def test_candidate_with_the_fewest_observations_is_pulled():
    chooser = Elimination(alpha=1.0).chooser(Arms.gaussian("abc", 1.0))
    assert chooser.choose(10, known((5, 0.5), (3, 0.5), (3, 0.5)), None) == 1
    assert chooser.candidates == [0, 1, 2]


def test_arm_below_another_ones_lower_bound_is_eliminated_for_good():
    chooser = Elimination(alpha=1.0).chooser(Arms.gaussian("abc", 1.0))
    # In round e the width is 1: bounds are 0.2 +- 0.5, 1.5 +- 0.5 and 0.6 +- 0.5 with four observations each.
    assert chooser.choose(math.e, known((4, 0.2), (4, 1.5), (4, 0.6)), None) == 1
    assert chooser.candidates == [1, 2]
    assert chooser.beaten == [[0, 1]]
    assert chooser.choose(math.e, known((4, 9.0), (4, 1.5), (4, 0.6)), None) == 1
    assert chooser.candidates == [1, 2]
    assert not chooser.is_best(1, known((4, 9.0), (4, 1.5), (4, 0.6)))
    chooser.eliminate(2)
    chooser.eliminate(1)
    assert chooser.candidates == [1]
    assert chooser.is_best(1, known((4, 9.0), (4, 1.5), (4, 0.6)))


def test_known_horizon_takes_the_place_of_the_round():
    policies = Elimination(), Elimination(3.0, 100)
    early, known_beforehand = (policy.chooser(Arms.gaussian("ab", 1.0)) for policy in policies)
    for chooser in (early, known_beforehand):
        chooser.choose(1, known((1, 0.0), (1, 1.0)), None)
    assert (early.candidates, known_beforehand.candidates) == ([1], [0, 1])


def test_arms_that_cannot_be_pulled_now_stay_candidates():
    chooser = Elimination(alpha=1.0).chooser(Arms.gaussian("abc", 1.0))
    # Two arms are left to pull, of which the second is the better: nothing is remembered of that.
    assert chooser.choose(math.e, known((40, 0.2), (41, 1.5)), None) == 1
    assert chooser.candidates == [0, 1, 2]
    assert not chooser.is_best(1, known((40, 0.2), (41, 1.5)))


@pytest.mark.slow
def test_elimination_keeps_to_the_contract_of_policies():
    report = bm.testing.check_policy(Elimination(), compiled=False)
    assert "keeps each agent's knowledge separate, and continues from its state" in report.checks
    # Neither holds for it: it has no index, and may take any of equal arms.
    assert not any("index" in line or "first of equals" in line for line in report.checks)


@pytest.mark.parametrize("given", [{"alpha": 0.0}, {"horizon": 1}, {"horizon": 2.5}])
def test_wrong_parameters_are_refused(given):
    with pytest.raises(bm.InputError, match=next(iter(given))):
        Elimination(**given)
    with pytest.raises(bm.InputError, match=next(iter(given))):
        CoopSE(4, **given)


# CO-AAE


def test_co_aae_falls_silent_and_keeps_the_best_arm():
    result, candidates = run(easy_problem(), "co-aae(3, alpha=0.1)", 200)
    assert candidates == [[1], [0], [1], [1]]
    # All that is ever sent is sent before agents have made up their minds.
    later, _ = run(easy_problem(), "co-aae(3, alpha=0.1)", 400)
    assert later.transmissions[0, -1] == result.transmissions[0, -1]
    assert later.regret[0, -1] == result.regret[0, -1]


def test_co_aae_floods_while_nobody_is_silent():
    problem = bm.Problem.random(nx.erdos_renyi_graph(20, 0.2, seed=1), n_arms=8, per_agent=4, seed=0)
    result, candidates = run(problem, "co-aae(4, alpha=1e6)", 15)
    assert all(len(left) == 4 for left in candidates)
    flooded = bm.simulate(problem, bm.Flooding(4), horizon=15, seed=0, engine="reference")
    assert result.transmissions[0, -1] == flooded.transmissions[0, -1]
    assert result.traffic["bytes"][0] == 24 * result.traffic["sent"][0]


def test_co_aae_is_flooding_of_contested_arms_by_elimination():
    settings = {"horizon": 60, "seed": 3, "engine": "reference", "every": [1, 2, 1, 3]}
    whole = bm.simulate(easy_problem(), CoAAE(2, alpha=0.5), **settings)
    parts = bm.simulate(easy_problem(), "flooding(2)+contested", policy=Elimination(0.5), **settings)
    assert np.array_equal(whole.regret, parts.regret)
    assert np.array_equal(whole.transmissions, parts.transmissions)


# Coop-SE


def test_coop_se_by_hand():
    """A path of three agents with two arms that pay 0 and 1; a width of 0.9 / sqrt(count), and a ttl of 1."""
    arms = [bm.arms.Gaussian(0.0, 1.0), bm.arms.Gaussian(1.0, 1.0)]
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, arms)
    tape = np.broadcast_to([0.0, 1.0], (8, 3, 2))
    simulation = bm.Simulation(
        problem, CoopSE(1, factor=0.0, alpha=0.81 / math.log(100), horizon=100), horizon=8, seed=0, rewards=tape
    )
    rounds = [simulation.step() for _ in range(8)]
    # Rounds 1 and 2: the unknown arm. Round 3: both are known equally well, twice at the ends and three times in the
    # middle, where 2 * 0.9 / sqrt(3) > 1 is not enough. Round 4: the middle knows six and three observations, and
    # 0.9 / sqrt(6) + 0.9 / sqrt(3) < 1 eliminates arm 0; the ends, with four and two, pull arm 1, and are told.
    assert [one.choices for one in rounds[:4]] == [dict.fromkeys(range(3), arm) for arm in (0, 1, 0, 1)]
    assert [len(one.events) for one in rounds] == [4, 4, 4, 4, 0, 0, 0, 0]
    notices = [event for event in rounds[3].events if event.n_pulls == 0]
    assert [(one.sender, one.receiver, one.arm, one.fate) for one in notices] == [
        (1, 0, 0, "relayed"),
        (1, 2, 0, "relayed"),
    ]
    assert [agent.chooser.candidates for agent in simulation.agents.values()] == [[1]] * 3
    assert [agent.chooser.beaten for agent in simulation.agents.values()] == [[], [[0, 1]], []]
    result = simulation.run(progress=False)
    assert result.traffic["bytes"][0] == 14 * 32 + 2 * 24
    assert result.regret[0, -1] == 6.0


def seat(arms, name="bob", **given):
    return CoopSE(4, **given).seat(Place(name, Arms.gaussian(arms, 1.0), bm.UCB()))


def notice(arm, better, sender="ann"):
    return Copy(Note(sender, 1, "eliminated", arm, (better,)), 1)


def targets(parcels):
    return [(parcel.copy.message.arm, parcel.copy.message.values[0], *parcel.targets) for parcel in parcels]


def test_notice_counts_for_agents_that_have_both_arms():
    both, other = seat(["red", "blue"]), seat(["red", "green"])
    for agent in (both, other):
        assert agent.receive(notice("red", "blue"), "ann", 2).fate is Fate.RELAYED
        # It goes on, once, to everybody who has not said so; also on links that come up later.
        assert targets(agent.send(["ann", "carol"])) == [("red", "blue", "carol")]
        assert agent.send(["ann", "carol"]) == []
        assert targets(agent.send(["carol", "dave"])) == [("red", "blue", "dave")]
        assert agent.receive(notice("red", "blue"), "dave", 2).fate is Fate.DUPLICATE
    assert both.chooser.candidates == [1]
    assert other.chooser.candidates == [0, 1]


def test_notices_of_one_arm_by_different_ones_are_different():
    agent = seat(["red", "green"])
    agent.receive(notice("red", "blue"), "ann", 1)
    agent.receive(notice("red", "green"), "ann", 1)
    assert agent.chooser.candidates == [1]
    assert targets(agent.send(["carol"])) == [("red", "blue", "carol"), ("red", "green", "carol")]


def test_last_candidate_stays_whatever_others_say():
    agent = seat(["red", "blue"])
    agent.receive(notice("red", "blue"), "ann", 1)
    agent.receive(notice("blue", "red"), "carol", 1)
    assert agent.chooser.candidates == [1]


def test_state_holds_notices_and_candidates():
    agent, other = seat(["red", "blue"]), seat(["red", "blue"])
    agent.receive(notice("red", "blue"), "ann", 1)
    other.state = agent.state
    assert other.chooser.candidates == [1]
    assert targets(other.send(["ann", "carol"])) == [("red", "blue", "carol")]
    agent.restart()
    assert agent.chooser.candidates == [0, 1]
    assert agent.send(["ann", "carol"]) == []


def test_arms_are_eliminated_only_where_a_better_one_is():
    arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 0.5, 1.0, 1.5)]
    problem = bm.Problem(nx.path_graph(4), [[0, 1], [2], [0, 3], [0]], arms)
    result, candidates = run(problem, "coop-se(2, alpha=0.02)", 60)
    # Agents 0 and 2 find their arm 0 beaten by arms 1 and 3, tell everybody, and agent 3 keeps it.
    assert candidates == [[1], [0], [1], [0]]
    # Both notices cross all three links once, and go back from nowhere.
    assert result.traffic["bytes"][0] == 32 * (result.traffic["sent"][0] - 6) + 24 * 6


def test_dynamic_network_and_losses_keep_the_best_arms():
    arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 0.5, 1.0)]
    flickering = bm.networks.EdgeMarkovian(nx.cycle_graph(6), 0.3, 0.3)
    for network in (nx.cycle_graph(6), flickering):
        problem = bm.Problem(network, [range(3)] * 6, arms)
        _, candidates = run(problem, "coop-se(3, alpha=0.02)", 60, faults=bm.Faults(loss=0.3, delay=1))
        assert candidates == [[2]] * 6


@pytest.mark.parametrize(
    "note",
    [
        Note("ann", 1, "demand", "red", (1,)),
        Note("ann", 1, "eliminated", "red"),
        Note("ann", 1, "eliminated", [], (1,)),
    ],
)
def test_notes_of_another_kind_are_refused(note):
    with pytest.raises(MessageError, match="takes notes of 'eliminated' with one number"):
        seat(["red", "blue"]).receive(Copy(note, 1), "ann", 1)


# What the papers claim

COINS = [bm.arms.Bernoulli(mean) for mean in (0.2, 0.5, 0.8)]


def coins(network):
    return bm.Problem(network, [range(3)] * len(network), COINS)


def sent_until_all_agree(n_agents, horizon, rounds):
    """How much is sent on a ring, until all agents have the best arm left."""
    text = f"coop-se(5, alpha=0.5, horizon={horizon})"
    result, candidates = run(coins(nx.cycle_graph(n_agents)), text, rounds)
    assert candidates == [[2]] * n_agents
    return int(result.traffic["sent"][0])


def more_sent(plan):
    """What each squaring of the horizon adds to what ten agents send, as a part of what log log T predicts, less 1.

    log log T grows by log 2, and so does the log of the pulls that elimination takes: each arm of each agent is told
    log(2) / log(1.25) = 3.1 times more. A statistic crosses the ring by two transmissions of its origin and four relays
    on either side.
    """
    sent = [sent_until_all_agree(10, horizon, rounds) for horizon, rounds in plan]
    return np.diff(sent) / (10 * 3 * math.log(2) / math.log(1.25) * 10) - 1


def test_coop_se_sends_a_constant_more_each_time_that_the_horizon_is_squared():
    assert abs(more_sent([(10**2, 150), (10**4, 300), (10**8, 500)])).max() < 0.2
    # Nothing is sent after all agree.
    assert sent_until_all_agree(10, 10**2, 150) == sent_until_all_agree(10, 10**2, 200)


@pytest.mark.slow
def test_coop_se_messages_grow_like_log_log_of_the_horizon():
    deviations = more_sent([(10**2, 400), (10**4, 800), (10**8, 1600), (10**16, 3200)])
    print(f"messages that a squared horizon adds, beyond what log log T predicts: {deviations.round(3)}")
    assert abs(deviations).max() < 0.3


def worst_agent(n_agents, replicates):
    """The regret of the worst agent of a path, on average over replicates."""
    found = bm.simulate(
        coins(nx.path_graph(n_agents)),
        "coop-se(2, alpha=0.5, horizon=1000)",
        horizon=150,
        replicates=replicates,
        seed=0,
    )
    return float(found.agent_regret.max(axis=1).mean())


def test_regret_of_the_worst_agent_does_not_grow_with_the_diameter():
    # Diameters of 7 and 31.
    assert worst_agent(32, 2) < 1.5 * worst_agent(8, 2)


@pytest.mark.slow
def test_regret_of_the_worst_agent_is_independent_of_the_diameter():
    worst = [worst_agent(n_agents, 8) for n_agents in (8, 16, 32, 64)]
    deviations = np.array(worst) / worst[0] - 1
    print(f"worst agent's regret for diameters of 7, 15, 31 and 63: {worst}, beyond the first: {deviations.round(3)}")
    # The worst of eight times as many agents is a little worse by chance; the diameter is nine times as long.
    assert worst[-1] < 1.7 * worst[0]
