"""Cases that can be done by hand, and whole runs recomputed without any message. Every engine has to pass them."""

import collections
import math

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.draws import REWARD, TARGET, Draws, pick_targets
from cases import common_arms, gaussian_arms, normal_tape, private_arms, totals
from oracles import pulls_without_messages

PROTOCOLS = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(3),
    bm.ProbabilisticFlooding(3, stop=0.3),
    bm.FwA(3),
    bm.Flooding(3),
    bm.Centralised(),
]


def by_name(protocol):
    return protocol.name


def same_numbers(one, two):
    """Whether two runs agree in everything that was pulled, sent and learned."""
    return (
        np.array_equal(one.regret, two.regret)
        and np.array_equal(one.transmissions, two.transmissions)
        and np.array_equal(one.pulls, two.pulls)
    )


# Single networks, Flooding and FwA, sound rules unless said otherwise


def test_one_agent_sends_nothing_and_learns_alone(engine, rules):
    problem = common_arms(nx.empty_graph(1))
    alone = bm.simulate(problem, bm.NoCooperation(), horizon=30, seed=0, rules=rules, engine=engine)
    for protocol in PROTOCOLS:
        result = bm.simulate(problem, protocol, horizon=30, seed=0, rules=rules, engine=engine, link_traffic=True)
        assert set(totals(result).values()) == {0}
        assert same_numbers(result, alone)
        assert result.links == []
        assert result.link_traffic.shape == (1, 30, 0)


def test_agents_without_links_learn_alone(engine, rules):
    problem = common_arms(nx.empty_graph(4))
    alone = bm.simulate(problem, bm.NoCooperation(), horizon=30, seed=0, rules=rules, engine=engine)
    for protocol in PROTOCOLS[:-1]:
        result = bm.simulate(problem, protocol, horizon=30, seed=0, rules=rules, engine=engine)
        assert same_numbers(result, alone)
        assert set(totals(result).values()) == {0}


def test_flooding_a_path_by_hand(engine):
    # 0 - 1 - 2, one private arm each, ttl 2. In every round both ends send 1 message and the middle 2, and from round
    # 2 on the middle relays each end's message of the round before to the other end, where its ttl runs out.
    result = bm.simulate(private_arms(nx.path_graph(3)), bm.Flooding(2), horizon=3, seed=0, engine=engine)
    assert result.transmissions.tolist() == [[4, 10, 16]]
    assert totals(result) == {
        "sent": 16,
        "delivered": 16,
        "duplicate": 0,
        "absorbed": 0,
        "expired": 4,
        # Of the four new copies of a round two reach the middle and are relayed; two reach an end and are relayed to
        # nobody, for an end has only the neighbour that they came from. Those of the last round stay queued.
        "relayed": 8,
        "queued": 4,
        "stopped": 0,
        "lost": 0,
        "dropped": 0,
        "control": 0,
        "learned": 0,
        "bytes": 16 * 24,
    }


def test_flooding_a_path_by_hand_with_the_published_rules(engine):
    # Relays also go back: from round 2 on the middle sends each end's message of the round before to both ends, and
    # each end the middle's back to it. Own messages come back and, their ttl over, are learned again.
    problem = private_arms(nx.path_graph(3))
    result = bm.simulate(problem, bm.Flooding(2), horizon=3, seed=0, rules="published", engine=engine)
    assert result.transmissions.tolist() == [[4, 4 + 10, 4 + 10 + 10]]
    counts = totals(result)
    # In each of two rounds: six relayed copies, of which three are an origin's own and learned, and one, the middle's
    # message coming back from its second neighbour, is a duplicate.
    assert (counts["learned"], counts["duplicate"], counts["expired"]) == (6, 2, 10)


def test_flooding_a_star_by_hand(engine):
    # Three leaves round a centre, everybody has the one arm, one message each in one round: ttl 1 gives 3 + 3
    # transmissions; with ttl 2 the centre relays each leaf's message to the two other leaves.
    problem = common_arms(nx.star_graph(3), n_arms=1)
    one = bm.simulate(problem, bm.Flooding(1), horizon=4, seed=0, engine=engine)
    two = bm.simulate(problem, bm.Flooding(2), horizon=4, seed=0, engine=engine)
    assert one.transmissions.tolist() == [[6, 12, 18, 24]]
    assert two.transmissions.tolist() == [[6, 18, 30, 42]]
    assert two.traffic["learned"].tolist() == [42]
    assert two.traffic["duplicate"].tolist() == [0]


def test_flooding_a_complete_graph_by_hand(engine):
    # Everybody hears a message in its first round; each of the three receivers relays it to the two others, who
    # have seen it; nothing travels further, whatever the ttl.
    problem = common_arms(nx.complete_graph(4), n_arms=1)
    for ttl in (2, 5):
        result = bm.simulate(problem, bm.Flooding(ttl), horizon=4, seed=0, engine=engine)
        assert result.transmissions.tolist() == [[12, 12 + 36, 12 + 72, 12 + 108]]
        counts = totals(result)
        assert (counts["learned"], counts["duplicate"]) == (48, 72)
        assert (counts["relayed"], counts["queued"], counts["expired"]) == (36, 12, 0)


def test_components_do_not_hear_each_other(engine, rules):
    both = nx.disjoint_union(nx.path_graph(3), nx.complete_graph(3))
    settings = {"horizon": 25, "rules": rules, "engine": engine, "link_traffic": True}
    problem = common_arms(both)
    tape = normal_tape(problem, 25)
    for protocol in (bm.Flooding(4), bm.FwA(4), bm.IRS()):
        result = bm.simulate(problem, protocol, rewards=tape, seed=0, **settings)
        left = bm.simulate(common_arms(nx.path_graph(3)), protocol, rewards=tape[:, :3], seed=0, **settings)
        right = bm.simulate(common_arms(nx.complete_graph(3)), protocol, rewards=tape[:, 3:], seed=0, **settings)
        np.testing.assert_array_equal(result.transmissions, left.transmissions + right.transmissions)
        np.testing.assert_array_equal(result.pulls, np.concatenate([left.pulls, right.pulls], axis=1))
        assert result.links == [*left.links, *((i + 3, j + 3) for i, j in right.links)]


@pytest.mark.parametrize("protocol", [bm.Flooding(2), bm.Flooding(5), bm.FwA(2), bm.FwA(5)], ids=str)
@pytest.mark.parametrize("rules, counted", [("sound", 20), ("published", 39)])
def test_own_rewards_on_a_path_are_counted_20_times_sound_and_39_published(protocol, rules, counted):
    problem = private_arms(nx.path_graph(3))
    result = bm.simulate(problem, protocol, horizon=20, seed=0, rules=rules, trace=True, engine="reference")
    learned = collections.Counter(event.receiver for event in result.trace if event.learned)
    assert [20 + learned[agent] for agent in range(3)] == [counted] * 3
    assert all(event.origin == event.receiver for event in result.trace if event.learned)


# Protocols that coincide


@pytest.mark.parametrize(
    "graph", [nx.path_graph(5), nx.star_graph(4), nx.complete_graph(4), nx.cycle_graph(5)], ids=str
)
def test_fwa_equals_irs_when_all_agents_have_the_same_arms(graph, engine, rules):
    problem = common_arms(graph, n_arms=3)
    settings = {"horizon": 40, "replicates": 2, "seed": 1, "rules": rules, "engine": engine, "link_traffic": True}
    irs = bm.simulate(problem, bm.IRS(), **settings)
    fwa = bm.simulate(problem, bm.FwA(4), **settings)
    assert same_numbers(fwa, irs)
    np.testing.assert_array_equal(fwa.link_traffic, irs.link_traffic)
    for what in ("sent", "delivered", "duplicate", "learned"):
        np.testing.assert_array_equal(fwa.traffic[what], irs.traffic[what])
    np.testing.assert_array_equal(fwa.traffic["absorbed"], irs.traffic["expired"])


def test_fwa_equals_flooding_when_nobody_in_reach_shares_an_arm(engine):
    # On a ring of 10, agents v and v + 5 share their arms and are 5 hops apart.
    problem = bm.Problem(nx.cycle_graph(10), [[2 * (v % 5), 2 * (v % 5) + 1] for v in range(10)], gaussian_arms(10))
    settings = {"horizon": 30, "seed": 1, "engine": engine, "link_traffic": True}
    for ttl in (1, 3, 4):
        flooding = bm.simulate(problem, bm.Flooding(ttl), **settings)
        fwa = bm.simulate(problem, bm.FwA(ttl), **settings)
        assert same_numbers(fwa, flooding)
        assert totals(fwa) == totals(flooding)
        np.testing.assert_array_equal(fwa.link_traffic, flooding.link_traffic)
    one_hop_further = bm.simulate(problem, bm.FwA(5), **settings)
    assert one_hop_further.traffic["absorbed"] > 0


def test_probabilistic_flooding_that_never_stops_is_flooding(engine, rules):
    problem = bm.Problem.random(nx.cycle_graph(7), n_arms=5, per_agent=3, seed=0)
    settings = {"horizon": 30, "seed": 1, "rules": rules, "engine": engine, "link_traffic": True}
    flooding = bm.simulate(problem, bm.Flooding(3), **settings)
    never = bm.simulate(problem, bm.ProbabilisticFlooding(3, stop=0.0), **settings)
    assert same_numbers(never, flooding)
    assert totals(never) == totals(flooding)


def test_probabilistic_flooding_that_always_stops_sends_as_irs_and_learns_nothing_if_published(engine, rules):
    problem = bm.Problem.random(nx.cycle_graph(7), n_arms=5, per_agent=3, seed=0)
    settings = {"horizon": 30, "seed": 1, "rules": rules, "engine": engine, "link_traffic": True}
    irs = bm.simulate(problem, bm.IRS(), **settings)
    always = bm.simulate(problem, bm.ProbabilisticFlooding(3, stop=1.0), **settings)
    np.testing.assert_array_equal(always.link_traffic, irs.link_traffic)
    np.testing.assert_array_equal(always.traffic["stopped"], irs.traffic["expired"])
    if rules == "sound":
        assert same_numbers(always, irs)
    else:
        alone = bm.simulate(problem, bm.NoCooperation(), **settings)
        np.testing.assert_array_equal(always.pulls, alone.pulls)
        assert always.traffic["learned"] == 0


def test_gossip_to_all_neighbours_is_flooding(engine, rules):
    problem = bm.Problem.random(nx.wheel_graph(7), n_arms=5, per_agent=3, seed=0)
    settings = {"horizon": 30, "seed": 1, "rules": rules, "engine": engine, "link_traffic": True}
    flooding = bm.simulate(problem, bm.Flooding(3), **settings)
    gossip = bm.simulate(problem, bm.Gossip(3, fanout=6), **settings)
    np.testing.assert_array_equal(gossip.link_traffic, flooding.link_traffic)
    if rules == "sound":
        # The order of sending has no effect on what is learned.
        assert same_numbers(gossip, flooding)
        assert totals(gossip) == totals(flooding)


def test_one_hop_on_a_complete_graph_is_centralised(engine):
    problem = common_arms(nx.complete_graph(5), n_arms=3)
    settings = {"horizon": 40, "seed": 3, "engine": engine}
    centralised = bm.simulate(problem, bm.Centralised(), **settings)
    flooding = bm.simulate(problem, bm.Flooding(1), **settings)
    np.testing.assert_array_equal(centralised.pulls, flooding.pulls)
    np.testing.assert_array_equal(centralised.regret, flooding.regret)
    np.testing.assert_array_equal(centralised.traffic["learned"], flooding.traffic["learned"])


def test_centralised_ignores_the_network_and_sends_nothing(engine):
    settings = {"horizon": 40, "seed": 3, "engine": engine}
    linked = bm.simulate(common_arms(nx.complete_graph(5)), bm.Centralised(), **settings)
    apart = bm.simulate(common_arms(nx.empty_graph(5)), bm.Centralised(), **settings)
    assert same_numbers(linked, apart)
    assert linked.transmissions.tolist() == [[0] * 40]
    # Each of five agents hears the four others in every round.
    assert linked.traffic["learned"].tolist() == [5 * 4 * 40]
    assert sum(totals(linked).values()) == 5 * 4 * 40


# Traffic


def connected_graphs():
    return [nx.path_graph(6), nx.star_graph(5), nx.complete_graph(5), nx.cycle_graph(6), nx.petersen_graph()]


@pytest.mark.parametrize("graph", connected_graphs(), ids=str)
def test_a_flood_costs_at_most_twice_the_links_less_a_tree(graph, engine):
    n_agents, n_links = len(graph), graph.number_of_edges()
    bound = 2 * n_links - n_agents + 1
    enough = nx.diameter(graph) + 1
    for ttl in (1, 2, enough, enough + 3):
        result = bm.simulate(private_arms(graph), bm.Flooding(ttl), horizon=12, seed=0, engine=engine)
        steady = np.diff(result.transmissions[0])[ttl:]
        assert (steady <= n_agents * bound).all()
        if ttl >= enough:
            # Every agent relays to all but one neighbour, the origin sends to all: the bound is met.
            assert set(steady.tolist()) == {n_agents * bound}


@pytest.mark.parametrize("graph", connected_graphs(), ids=str)
def test_irs_costs_every_link_twice_a_round(graph, engine, rules):
    result = bm.simulate(common_arms(graph), bm.IRS(), horizon=5, seed=0, rules=rules, engine=engine, link_traffic=True)
    assert result.transmissions[0].tolist() == [2 * graph.number_of_edges() * t for t in range(1, 6)]
    assert set(result.link_traffic.ravel().tolist()) == {1}
    assert result.traffic["bytes"].tolist() == [24 * 2 * graph.number_of_edges() * 5]


@pytest.mark.parametrize("fanout", [1, 2])
def test_gossip_sends_to_the_drawn_neighbours(fanout, engine):
    # With ttl 1 only origins send, each to `fanout` neighbours, which the draws name.
    graph = nx.petersen_graph()
    settings = {"horizon": 6, "seed": 4, "engine": engine, "link_traffic": True}
    result = bm.simulate(private_arms(graph), bm.Gossip(1, fanout=fanout), **settings)
    assert result.transmissions[0].tolist() == [10 * fanout * t for t in range(1, 7)]
    key = Draws(4, 0).key(TARGET)
    for t in range(1, 7):
        sent = {link for link, n_sent in zip(result.links, result.link_traffic[0, t - 1], strict=True) if n_sent}
        expected = {(v, w) for v in graph for w in pick_targets(*key, v, t, v, 1, sorted(graph[v]), fanout)}
        assert sent == expected


def test_stops_come_with_their_probability(engine, rules):
    problem = private_arms(nx.petersen_graph())
    protocol = bm.ProbabilisticFlooding(3, stop=0.3)
    counts = totals(bm.simulate(problem, protocol, horizon=100, seed=0, rules=rules, engine=engine))
    n = counts["delivered"]
    assert counts["stopped"] == pytest.approx(0.3 * n, abs=4 * math.sqrt(0.21 * n))


# Learning, recomputed without messages


@pytest.mark.parametrize("every", [None, [1, 2, 3, 1, 5, 2]], ids=["every round", "now and then"])
@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.IRS(), bm.Flooding(2), bm.Flooding(4), bm.FwA(3)], ids=str)
def test_pulls_equal_those_of_a_simulation_without_messages(protocol, every, engine):
    graph = nx.empty_graph(6)
    graph.add_edges_from([(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 4)])
    problem = bm.Problem(graph, [[2, 0], [0, 1], [3, 2, 1], [1], [0, 3], [1, 2]], gaussian_arms(4))
    horizon = 40
    tape = normal_tape(problem, horizon, seed=2)
    result = bm.simulate(problem, protocol, horizon=horizon, rewards=tape, every=every, seed=0, engine=engine)
    pulls = pulls_without_messages(problem, protocol.name, protocol.most_hops, tape, horizon, every=every)
    expected = np.zeros((6, 4), dtype=int)
    regret = np.zeros(horizon)
    for (t, agent), arm in pulls.items():
        expected[agent, arm] += 1
        regret[t - 1] += problem.gaps[agent, arm]
    np.testing.assert_array_equal(result.pulls[0], expected)
    np.testing.assert_allclose(result.regret[0], regret.cumsum(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.agent_regret[0], np.nansum(problem.gaps * expected, axis=1), atol=1e-12)


@pytest.mark.parametrize("policy", [bm.UCB(0.5), bm.UCB(8.0)], ids=str)
def test_alpha_widens_the_bonus(policy, engine):
    problem = common_arms(nx.path_graph(3), n_arms=3)
    tape = normal_tape(problem, 60)
    result = bm.simulate(problem, bm.Flooding(2), policy=policy, horizon=60, rewards=tape, seed=0, engine=engine)
    pulls = pulls_without_messages(problem, "flooding", 2, tape, 60, alpha=policy.alpha)
    expected = np.zeros((3, 3), dtype=int)
    for (_, agent), arm in pulls.items():
        expected[agent, arm] += 1
    np.testing.assert_array_equal(result.pulls[0], expected)


def test_published_rules_recomputed_for_one_link(engine):
    # Two agents, one common arm and one private arm each, ttl 2, published rules, distinct rewards: whatever an
    # agent sends comes back one round later, and all is counted.
    problem = bm.Problem(nx.path_graph(2), [[0, 1], [0, 2]], gaussian_arms(3))
    horizon = 50
    tape = normal_tape(problem, horizon, seed=3)
    result = bm.simulate(
        problem, bm.Flooding(2), horizon=horizon, rewards=tape, seed=0, rules="published", engine=engine
    )
    arm_sets, seen, pulls, returning = [[0, 1], [0, 2]], [[], []], np.zeros((2, 3), dtype=int), []
    for t in range(1, horizon + 1):
        chosen = []
        for agent, arms in enumerate(arm_sets):
            if t <= 2:
                arm = arms[t - 1]
            else:
                samples = {arm: [reward for known, reward in seen[agent] if known == arm] for arm in arms}
                arm = max(
                    arms,
                    key=lambda arm: (
                        sum(samples[arm]) / len(samples[arm]) + math.sqrt(3.0 * math.log(t - 1) / len(samples[arm]))
                    ),
                )
            pulls[agent, arm] += 1
            chosen.append((agent, arm, tape[t - 1, agent, arm]))
        for agent, arm, reward in chosen:
            seen[agent].append((arm, reward))
            seen[1 - agent].append((arm, reward))
        for agent, arm, reward in returning:
            seen[agent].append((arm, reward))
        returning = chosen
    np.testing.assert_array_equal(result.pulls[0], pulls)


def test_equal_rewards_are_lost_by_the_published_rules_only(engine):
    # Constant rewards: of all messages of an origin and arm only the first is news.
    problem = common_arms(nx.path_graph(2), n_arms=1)
    tape = np.ones((10, 2, 1))
    settings = {"horizon": 10, "rewards": tape, "seed": 0, "engine": engine}
    sound = totals(bm.simulate(problem, bm.IRS(), **settings))
    published = totals(bm.simulate(problem, bm.IRS(), rules="published", **settings))
    assert (sound["learned"], sound["duplicate"]) == (20, 0)
    assert (published["learned"], published["duplicate"]) == (2, 18)


def test_forgotten_ids_are_counted_again_by_the_published_rules(engine):
    # Memory 1 * 2 ids. Agent 1 hears rewards 0, 1, 2, 0, 1, 2, ...: each was forgotten when it comes again. Rewards
    # of 0, 1, 0, 1, ... stay known.
    problem = common_arms(nx.path_graph(2), n_arms=1)
    settings = {"horizon": 12, "seed": 0, "rules": "published", "engine": engine}
    for period, learned in ((3, 12), (2, 2)):
        tape = np.zeros((12, 2, 1))
        tape[:, 0, 0] = np.arange(12) % period
        counts = totals(bm.simulate(problem, bm.IRS(), rewards=tape, **settings))
        # Agent 1 pays the same in every round, of which agent 0 learns the first.
        assert counts["learned"] == learned + 1


# Rewards and tapes


def test_rewards_are_the_drawn_quantiles_of_the_pulled_arm():
    problem = bm.Problem(nx.path_graph(2), [[0, 1], [1, 0]], [bm.arms.Gaussian(0.3, 2.0), bm.arms.Uniform(0.0, 3.0)])
    settings = {"horizon": 20, "seed": 6, "replicates": 2, "engine": "reference"}
    result = bm.simulate(problem, bm.IRS(), trace=True, **settings)
    assert len(result.trace) == 80
    for event in result.trace:
        u = Draws(6, event.replicate).uniform(REWARD, event.origin, event.sequence)
        assert event.reward == problem.laws[event.arm].quantile(u)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=by_name)
def test_a_tape_of_the_same_rewards_gives_the_same_result(protocol, engine, rules):
    problem = bm.Problem.random(nx.cycle_graph(6), n_arms=4, per_agent=2, seed=0)
    settings = {"horizon": 25, "replicates": 2, "seed": 3, "rules": rules, "engine": engine, "link_traffic": True}
    tape = np.array(
        [
            [
                [
                    [law.quantile(Draws(3, replicate).uniform(REWARD, agent, t)) for law in problem.laws]
                    for agent in range(6)
                ]
                for t in range(1, 26)
            ]
            for replicate in range(2)
        ]
    )
    assert bm.simulate(problem, protocol, rewards=tape, **settings) == bm.simulate(problem, protocol, **settings)


def test_one_tape_is_shared_by_all_replicates(engine):
    problem = common_arms(nx.cycle_graph(4))
    tape = normal_tape(problem, 30)
    result = bm.simulate(problem, bm.Flooding(2), horizon=30, replicates=3, rewards=tape, seed=0, engine=engine)
    assert result.pulls[0].tolist() == result.pulls[1].tolist() == result.pulls[2].tolist()
    several = np.stack([normal_tape(problem, 30, seed) for seed in range(3)])
    result = bm.simulate(problem, bm.Flooding(2), horizon=30, replicates=3, rewards=several, seed=0, engine=engine)
    for replicate in range(3):
        single = bm.simulate(problem, bm.Flooding(2), horizon=30, rewards=several[replicate], seed=0, engine=engine)
        np.testing.assert_array_equal(result.pulls[replicate], single.pulls[0])


def test_entries_of_arms_that_an_agent_has_not_are_ignored(engine):
    problem = bm.Problem(nx.path_graph(2), [[0], [0, 1]], gaussian_arms(2))
    tape = normal_tape(problem, 20)
    plain = bm.simulate(problem, bm.FwA(2), horizon=20, rewards=tape, seed=0, engine=engine)
    tape[:, 0, 1] = np.nan
    assert bm.simulate(problem, bm.FwA(2), horizon=20, rewards=tape, seed=0, engine=engine) == plain


def test_tape_columns_follow_the_order_of_the_arms(engine):
    arms = {"low": bm.arms.Bernoulli(0.1), "high": bm.arms.Bernoulli(0.9)}
    problem = bm.Problem(nx.empty_graph(1), [["high", "low"]], arms)
    tape = np.zeros((50, 1, 2))
    tape[:, :, 1] = 10.0
    result = bm.simulate(problem, bm.NoCooperation(), horizon=50, rewards=tape, seed=0, engine=engine)
    assert result.arms == ("low", "high")
    assert result.pulls[0, 0, 1] == 49


def test_ties_go_round_in_arm_set_order(engine):
    problem = bm.Problem(nx.empty_graph(1), [[2, 0, 1]], gaussian_arms(3))
    for horizon in range(1, 9):
        tape = np.full((horizon, 1, 3), 0.5)
        result = bm.simulate(problem, bm.NoCooperation(), horizon=horizon, rewards=tape, seed=0, engine=engine)
        # Equal means: the arm seen least is pulled, the first of those in arm-set order.
        expected = collections.Counter([2, 0, 1][k % 3] for k in range(horizon))
        assert result.pulls[0, 0].tolist() == [expected[arm] for arm in range(3)]


# Who pulls when, by which policy, and what is recorded


def test_agents_pull_in_their_rounds(engine, rules):
    problem = common_arms(nx.path_graph(3), n_arms=2)
    result = bm.simulate(problem, bm.IRS(), horizon=10, every=[1, 3, 4], seed=0, rules=rules, engine=engine)
    # Rounds 1 to 10; 1, 4, 7, 10; 1, 5, 9. Agent 1 has two neighbours, the others one.
    assert result.pulls.sum(axis=2).tolist() == [[10, 4, 3]]
    assert result.transmissions[0, -1] == 10 + 2 * 4 + 3
    assert np.diff(result.transmissions[0], prepend=0).tolist() == [4, 1, 1, 3, 2, 1, 3, 1, 2, 3]


def test_one_number_serves_all_agents(engine):
    problem = common_arms(nx.path_graph(3))
    one = bm.simulate(problem, bm.Flooding(2), horizon=12, every=2, seed=0, engine=engine)
    assert one == bm.simulate(problem, bm.Flooding(2), horizon=12, every=[2, 2, 2], seed=0, engine=engine)
    assert one == bm.simulate(problem, bm.Flooding(2), horizon=12, every=np.array([2, 2, 2]), seed=0, engine=engine)
    assert one.pulls.sum() == 3 * 6


def test_every_agent_may_have_its_own_policy(engine):
    problem = common_arms(nx.path_graph(3), n_arms=3)
    settings = {"horizon": 80, "seed": 2, "engine": engine}
    mixed = bm.simulate(problem, bm.NoCooperation(), policy=[bm.UCB(0.1), bm.UCB(3.0), bm.UCB(0.1)], **settings)
    timid = bm.simulate(problem, bm.NoCooperation(), policy=bm.UCB(3.0), **settings)
    bold = bm.simulate(problem, bm.NoCooperation(), policy=bm.UCB(0.1), **settings)
    assert mixed.pulls[0].tolist() == [bold.pulls[0, 0].tolist(), timid.pulls[0, 1].tolist(), bold.pulls[0, 2].tolist()]
    assert mixed.pulls[0].tolist() != bold.pulls[0].tolist()
    assert (mixed.policy, timid.policy) == ("mixed", "ucb")
    same = bm.simulate(problem, bm.NoCooperation(), policy=(bm.UCB(3.0),) * 3, **settings)
    assert same == timid


@pytest.mark.parametrize(
    "record_every, rounds", [(1, list(range(1, 11))), (3, [3, 6, 9, 10]), (5, [5, 10]), (99, [10])]
)
def test_records_are_those_of_the_kept_rounds(record_every, rounds, engine, rules):
    problem = bm.Problem.random(nx.cycle_graph(6), n_arms=4, per_agent=2, seed=0)
    settings = {"horizon": 10, "replicates": 2, "seed": 0, "rules": rules, "engine": engine, "link_traffic": True}
    full = bm.simulate(problem, bm.Gossip(3), **settings)
    kept = bm.simulate(problem, bm.Gossip(3), record_every=record_every, **settings)
    places = np.array(rounds) - 1
    assert kept.rounds.tolist() == rounds
    assert kept.horizon == 10
    np.testing.assert_array_equal(kept.regret, full.regret[:, places])
    np.testing.assert_array_equal(kept.transmissions, full.transmissions[:, places])
    sums = np.add.reduceat(full.link_traffic, [0, *(places[:-1] + 1)], axis=1)
    np.testing.assert_array_equal(kept.link_traffic, sums)
    assert kept.links == full.links
    assert totals(kept, 1) == totals(full, 1)
    np.testing.assert_array_equal(kept.pulls, full.pulls)


# Dynamic networks


def test_message_without_a_neighbour_ends_there(engine, rules):
    # 0 - 1 - 2 - 3 is cut in round 2: what agents 1 and 2 were to relay then is lost, not kept for round 3.
    path, cut = nx.path_graph(4), nx.empty_graph(4)
    network = bm.networks.GraphSequence([path, cut, path])
    problem = bm.Problem(network, [[v] for v in range(4)], gaussian_arms(4))
    result = bm.simulate(problem, bm.Flooding(4), horizon=3, seed=0, rules=rules, engine=engine)
    assert result.transmissions.tolist() == [[6, 6, 12]]
    counts = totals(result)
    assert (counts["relayed"], counts["queued"], counts["expired"]) == (6, 6, 0)


def test_message_travels_over_the_links_of_each_round(engine):
    # 0 - 1 in round 1, 1 - 2 in round 2, 2 - 3 in round 3, which is as far as ttl 3 goes.
    network = bm.networks.ContactTrace([(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4)])
    problem = bm.Problem(network, [[0]] * 5, gaussian_arms(1))
    result = bm.simulate(problem, bm.Flooding(3), horizon=4, seed=0, every=[1, 9, 9, 9, 9], engine=engine)
    # All pull in round 1, where 0 and 1 send to each other and the others have nobody to send to; later agent 0 pulls
    # alone and has nobody. What 1 got from 0 goes on to 2 in round 2 and to 3 in round 3.
    assert result.transmissions.tolist() == [[2, 3, 4, 4]]
    assert result.traffic["learned"].tolist() == [4]


def test_links_of_a_dynamic_run_are_all_that_were_ever_up(engine):
    network = bm.networks.ContactTrace([(1, 0, 1), (2, 2, 1)], n_agents=3, n_rounds=3)
    problem = bm.Problem(network, [[0]] * 3, gaussian_arms(1))
    result = bm.simulate(problem, bm.IRS(), horizon=3, seed=0, engine=engine, link_traffic=True)
    assert result.links == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert result.link_traffic[0].tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]
    silent = bm.simulate(problem, bm.NoCooperation(), horizon=3, seed=0, engine=engine, link_traffic=True)
    assert silent.links == result.links
    assert not silent.link_traffic.any()


def test_replicates_of_a_dynamic_network_share_one_list_of_links(engine, rules):
    problem = bm.Problem(bm.networks.EdgeMarkovian(nx.path_graph(5), 0.2, 0.5), [[0]] * 5, gaussian_arms(1))
    settings = {"horizon": 6, "seed": 0, "rules": rules, "engine": engine, "link_traffic": True}
    both = bm.simulate(problem, bm.Flooding(2), replicates=2, **settings)
    assert both.links == sorted(both.links)
    assert both.link_traffic.shape == (2, 6, len(both.links))
    np.testing.assert_array_equal(both.link_traffic.sum(axis=2).cumsum(axis=1), both.transmissions)
    one = bm.simulate(problem, bm.Flooding(2), **settings)
    assert set(one.links) <= set(both.links)
    columns = [both.links.index(link) for link in one.links]
    np.testing.assert_array_equal(both.link_traffic[0][:, columns], one.link_traffic[0])


# A user's own protocol


def test_relay_rule_is_told_the_truth():
    asked = []

    class Asking(bm.Protocol):
        name = "asking"

        @staticmethod
        def relay(has_arm, ttl, degree, u, parameter):
            asked.append((has_arm, ttl, degree, u, parameter))
            return bm.RELAY

    problem = bm.Problem(nx.path_graph(3), [[0], [1], [0, 1]], gaussian_arms(2))
    bm.simulate(problem, Asking(ttl=2), horizon=1, seed=0, engine="reference")
    # 0 -> 1 (degree 2, has not arm 0), 1 -> 0 and 2 (degree 1; only 2 has arm 1), 2 -> 1 (2 pulls arm 0 first).
    assert asked == [(False, 1, 2, 0.0, 0.0), (False, 1, 1, 0.0, 0.0), (True, 1, 1, 0.0, 0.0), (False, 1, 2, 0.0, 0.0)]
