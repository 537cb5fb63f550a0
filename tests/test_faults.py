"""Faults: nothing at zero, the obvious at one, and exact counts in between."""

import collections
import dataclasses
import itertools
import json
import math
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.core import Agent
from banditmesh.draws import CORRUPT, DELAY, LOSS, NOISE, Draws, normal_quantile
from banditmesh.errors import InputError
from banditmesh.faults import is_up
from cases import (
    common_arms,
    dynamic_networks,
    examples,
    gaussian_arms,
    graphs,
    normal_tape,
    private_arms,
    problems,
    totals,
)
from faulty import Faulty, presence

HORIZON = 12
PROTOCOLS = [
    bm.IRS(),
    bm.Gossip(3, fanout=2),
    bm.ProbabilisticFlooding(3, stop=0.3),
    bm.FwA(3),
    bm.Flooding(3),
    bm.Flooding(3, emission=bm.Growth(0.5)),
    bm.Centralised(),
]
NETWORK = nx.empty_graph(6)
NETWORK.add_edges_from([(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 4)])
PROBLEM = bm.Problem(NETWORK, [[2, 0], [0, 1], [3, 2, 1], [1], [0, 3], [1, 2]], gaussian_arms(4))
FATES = ("absorbed", "expired", "stopped", "relayed", "queued")


def run(problem, protocol, faults=None, **more):
    return bm.simulate(
        problem, protocol, faults=faults, **{"horizon": HORIZON, "seed": 0, "engine": "reference"} | more
    )


def same_numbers(one, two):
    return (
        np.array_equal(one.regret, two.regret)
        and np.array_equal(one.transmissions, two.transmissions)
        and np.array_equal(one.pulls, two.pulls)
    )


@st.composite
def faults(draw, corrupted=True):
    """Any combination of faults, each of them often absent."""
    chance = st.sampled_from([0.0, 0.0, 0.2, 0.6, 1.0])
    outages = st.builds(bm.Outages, chance, st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
    corruption = st.builds(bm.Corruption, st.sampled_from(["gaussian", "zero", "heavy"]), chance)
    return bm.Faults(
        loss=draw(chance),
        delay=draw(st.integers(0, 2)),
        jitter=draw(st.sampled_from([0.0, 0.0, 0.5, 2.0])),
        corruption=draw(st.none() | corruption) if corrupted else None,
        outages=draw(st.none() | outages),
        link_cap=draw(st.none() | st.integers(1, 3)),
    )


# At zero


@pytest.mark.parametrize(
    "nothing",
    [
        bm.Faults(),
        bm.Faults(loss=0),
        bm.Faults(corruption=bm.Corruption("heavy", 0.0)),
        bm.Faults(outages=bm.Outages(down=0.0, up=0.5, memory=False)),
        bm.Faults(loss=0.0, delay=0, jitter=0.0, corruption=bm.Corruption("zero", 0), outages=bm.Outages(0, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_faults_that_never_strike_change_nothing(nothing, protocol, rules):
    more = {"rules": rules, "link_traffic": True, "trace": True, "replicates": 2}
    assert run(PROBLEM, protocol, nothing, **more) == run(PROBLEM, protocol, **more)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_faults_that_hardly_ever_strike_change_nothing(protocol, rules):
    # Unlike faults of probability zero these are simulated, but within this run nothing comes of them.
    more = {"rules": rules, "link_traffic": True, "trace": True}
    plain = run(PROBLEM, protocol, **more)
    rare = (
        bm.Faults(loss=1e-12),
        bm.Faults(jitter=1e-12),
        bm.Faults(outages=bm.Outages(1e-12, 0.5)),
        bm.Faults(corruption=bm.Corruption("zero", 1e-12)),
        bm.Faults(link_cap=10**9),
        bm.Faults(1e-12, 0, 1e-12, bm.Corruption("heavy", 1e-12), bm.Outages(1e-12, 0.5, memory=False), 10**9),
    )
    for few in rare:
        faulty = run(PROBLEM, protocol, few, **more)
        assert faulty.settings["faults"] == repr(few)
        assert dataclasses.replace(faulty, settings=plain.settings) == plain


# At one


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.FwA(3), bm.Flooding(4)], ids=str)
def test_when_all_is_lost_agents_are_alone_and_only_origins_send(protocol, rules, engine):
    alone = run(PROBLEM, bm.NoCooperation(), rules=rules, engine=engine)
    lossy = run(PROBLEM, protocol, bm.Faults(loss=1), rules=rules, link_traffic=True, engine=engine)
    counts = totals(lossy)
    np.testing.assert_array_equal(lossy.regret, alone.regret)
    np.testing.assert_array_equal(lossy.pulls, alone.pulls)
    np.testing.assert_array_equal(lossy.transmissions, run(PROBLEM, bm.IRS(), rules=rules).transmissions)
    assert (lossy.link_traffic[0] == 1).all()
    assert counts["lost"] == counts["sent"] > 0
    assert counts["delivered"] == counts["duplicate"] == counts["learned"] == counts["dropped"] == 0
    assert counts["bytes"] == 24 * counts["sent"]


@pytest.mark.parametrize("protocol", [*PROTOCOLS, bm.NoCooperation()], ids=str)
def test_agents_that_never_come_back_do_nothing(protocol, rules, engine):
    result = run(PROBLEM, protocol, bm.Faults(outages=bm.Outages(down=1, up=0)), rules=rules, engine=engine)
    assert result.pulls.sum() == result.regret.sum() == 0
    assert set(totals(result).values()) == {0}


@pytest.mark.parametrize("memory", [True, False])
def test_agents_that_go_down_and_up_in_turn_pull_in_every_second_round(memory, rules, engine):
    faults = bm.Faults(outages=bm.Outages(1, 1, memory))
    result = run(PROBLEM, bm.NoCooperation(), faults, rules=rules, engine=engine)
    assert result.pulls.sum(axis=2).tolist() == [[HORIZON // 2] * 6]
    # Without memory every round is the first one, in which the first arm is pulled.
    first = [PROBLEM.arm_set(v)[0] for v in range(6)]
    assert (result.pulls[0, range(6), first] == HORIZON // 2).all() == (not memory)


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.Flooding(3), bm.Flooding(3, emission=bm.Growth(0.5))], ids=str)
def test_when_all_is_zeroed_every_copy_says_zero(protocol, rules):
    result = run(PROBLEM, protocol, bm.Faults(corruption=bm.Corruption("zero", 1)), rules=rules, trace=True)
    assert {event.reward for event in result.trace} == {0.0}
    assert result.traffic["learned"][0] > 0


def test_a_link_that_carries_one_message_carries_the_newest(rules):
    # That is the sender's own of this round, so that no relayed one ever passes: Flooding becomes IRS.
    capped = run(PROBLEM, bm.Flooding(4), bm.Faults(link_cap=1), rules=rules, link_traffic=True)
    near = run(PROBLEM, bm.IRS(), rules=rules, link_traffic=True)
    assert same_numbers(capped, near)
    np.testing.assert_array_equal(capped.link_traffic, near.link_traffic)
    assert capped.traffic["dropped"][0] > 0


# Loss


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.Gossip(3), bm.FwA(3), bm.Flooding(3)], ids=str)
def test_copies_are_lost_as_often_as_they_should(protocol, rules):
    counts = totals(run(PROBLEM, protocol, bm.Faults(loss=0.3), rules=rules, horizon=150))
    n = counts["sent"]
    # By the published rules a message may pass a link twice, and is then lost both times or never.
    n_draws = n if rules == "sound" else n / 2
    assert counts["lost"] / n == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / n_draws))


def test_every_protocol_loses_the_same_transmissions():
    lost = {}
    for protocol in (bm.IRS(), bm.FwA(3), bm.Flooding(4), bm.ProbabilisticFlooding(3)):
        for event in run(PROBLEM, protocol, bm.Faults(loss=0.4), trace=True).trace:
            copy = event.origin, event.sequence, event.sender, event.receiver
            assert lost.setdefault(copy, event.fate == "lost") == (event.fate == "lost")
    draws = Draws(0, 0)
    assert lost == {copy: draws.uniform(LOSS, *copy) < 0.4 for copy in lost}
    assert {True, False} == set(lost.values())


def test_faults_shift_no_other_draw():
    # Rewards of the initial pulls, which no message changes, and the links of a dynamic network stay as they are.
    network = bm.networks.EdgeMarkovian(nx.path_graph(6), 0.2, 0.3)
    problem = bm.Problem(network, [[0, 1, 2]] * 6, gaussian_arms(3))
    plain, faulty = (
        run(problem, bm.Flooding(3), one, trace=True, link_traffic=True)
        for one in (None, bm.Faults(loss=0.5, delay=1, jitter=1.0, link_cap=2))
    )
    rewards = [
        {(event.origin, event.sequence): event.reward for event in result.trace if event.sequence <= 3}
        for result in (plain, faulty)
    ]
    shared = rewards[0].keys() & rewards[1].keys()
    assert len(shared) > 5
    assert all(rewards[0][key] == rewards[1][key] for key in shared)
    assert plain.links == faulty.links


# Loss and outages, recomputed message by message


@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Growth(0.5)], ids=str)
@pytest.mark.parametrize("kind", [bm.FwA, bm.Flooding], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "faults",
    [
        bm.Faults(loss=0.3),
        bm.Faults(outages=bm.Outages(0.2, 0.5)),
        bm.Faults(outages=bm.Outages(0.1, 0.6, memory=False)),
        bm.Faults(loss=0.2, outages=bm.Outages(0.15, 0.4, memory=False)),
    ],
    ids=str,
)
def test_a_run_equals_one_that_follows_each_message_on_its_own(faults, kind, emission, engine):
    horizon, protocol = 50, kind(3, emission=emission)
    tape = normal_tape(PROBLEM, horizon, seed=3)
    result = run(PROBLEM, protocol, faults, horizon=horizon, rewards=tape, seed=7, engine=engine)
    other = Faulty(PROBLEM, protocol, faults, tape, horizon, seed=7).run()
    expected = np.zeros((6, 4), dtype=int)
    regret = np.zeros(horizon)
    for (t, agent), arm in other.pulls.items():
        expected[agent, arm] += 1
        regret[t - 1] += PROBLEM.gaps[agent, arm]
    np.testing.assert_array_equal(result.pulls[0], expected)
    np.testing.assert_allclose(result.regret[0], regret.cumsum(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.diff(result.transmissions[0], prepend=0), other.sent[1:])
    counts = totals(result)
    assert (counts["lost"], counts["learned"]) == (other.lost, other.learned)


# Outages


def test_is_up_is_the_chain_that_the_docs_describe():
    for down, up, u in itertools.product((0.0, 0.3, 1.0), (0.0, 0.3, 1.0), (0.1, 0.3, 0.9)):
        assert is_up(True, u, down, up) == (not u < down)
        assert is_up(False, u, down, up) == (u < up)


@given(problems(st.one_of(graphs(), dynamic_networks(HORIZON))), st.sampled_from(PROTOCOLS), faults(), st.booleans())
def test_agents_that_are_down_neither_pull_nor_send_nor_hear(problem, protocol, faults, published):
    rules = "published" if published else "sound"
    result = run(problem, protocol, faults, rules=rules, trace=True)
    up = presence(problem.n_agents, HORIZON, faults.outages, Draws(0, 0))
    assert result.pulls.sum() == sum(map(sum, up[1:]))
    for event in result.trace:
        assert up[event.round][event.sender]
        if event.fate != "lost":
            assert up[event.arrival][event.receiver]
        elif not faults.loss and event.arrival <= HORIZON:
            assert not up[event.arrival][event.receiver]


def test_what_an_agent_was_about_to_relay_is_gone_when_it_goes_down():
    # 0 - 1 - 2: the middle takes the ends' messages of every round in which it is up, and relays them in the next one
    # if it is up then too.
    problem = private_arms(nx.path_graph(3))
    result = run(problem, bm.Flooding(2), bm.Faults(outages=bm.Outages(0.3, 0.5)), horizon=40, trace=True)
    up = presence(3, 40, bm.Outages(0.3, 0.5), Draws(0, 0))
    relayed = {(event.origin, event.sequence) for event in result.trace if event.sender == 1 and event.origin != 1}
    rounds = range(1, 40)
    expected = {(end, t) for t in rounds for end in (0, 2) if up[t][end] and up[t][1] and up[t + 1][1]}
    assert relayed == expected
    gone = {(end, t) for t in rounds for end in (0, 2) if up[t][end] and up[t][1] and not up[t + 1][1]}
    taken = {
        (event.origin, event.sequence) for event in result.trace if event.receiver == 1 and event.fate == "relayed"
    }
    assert gone
    assert taken == expected | gone


def test_centralised_agents_that_are_down_hear_nothing(engine):
    problem = common_arms(nx.path_graph(4))
    result = run(problem, bm.Centralised(), bm.Faults(outages=bm.Outages(0.4, 0.4)), engine=engine)
    up = presence(4, HORIZON, bm.Outages(0.4, 0.4), Draws(0, 0))
    assert result.traffic["learned"][0] == sum(sum(row) * (sum(row) - 1) for row in up[1:])


def test_an_agent_without_memory_counts_its_pulls_from_zero_but_the_result_counts_all():
    outages = bm.Outages(0.3, 0.6, memory=False)
    watched = Watched(PROBLEM, bm.Flooding(3), bm.Faults(outages=outages), horizon=60)
    up = presence(6, 60, outages, Draws(0, 0))
    for agent in watched.agents:
        v = agent.name
        assert watched.result.pulls[0, v].sum() == sum(row[v] for row in up[1:])
        since = max((t for t in range(1, 61) if up[t][v] and not up[t - 1][v]), default=1)
        assert sum(agent.own_count) == sum(row[v] for row in up[since:])
    assert any(sum(agent.own_count) < watched.result.pulls[0, agent.name].sum() for agent in watched.agents)


# Delay


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_an_observation_is_usable_as_many_hops_and_delays_later(delay):
    n_agents = 5
    problem = common_arms(nx.path_graph(n_agents))
    trace = run(problem, bm.Flooding(4), bm.Faults(delay=delay), horizon=40, trace=True).trace
    learned = {(event.origin, event.sequence, event.receiver): event.arrival for event in trace if event.learned}
    expected = {}
    for origin, sequence, agent in itertools.product(range(n_agents), range(1, 41), range(n_agents)):
        usable = sequence + abs(origin - agent) * (1 + delay)
        if origin != agent and usable - 1 <= 40:
            expected[origin, sequence, agent] = usable - 1
    assert learned == expected


def test_a_delayed_statistic_is_used_in_the_round_after_it_came():
    # Two agents with one arm: after round t with delay d, agent 0 has its own t pulls and the first t - d of the other.
    counts = []
    watched = Watched(common_arms(nx.path_graph(2), 1), bm.IRS(), bm.Faults(delay=3), horizon=9, each_round=counts)
    assert [count[0] for count in counts] == [[t + max(0, t - 3)] for t in range(1, 10)]
    assert watched.result.traffic["lost"][0] == 2 * 3


def test_what_is_under_way_at_the_horizon_is_lost(rules):
    result = run(PROBLEM, bm.IRS(), bm.Faults(delay=4), rules=rules, trace=True)
    n_links = 2 * 6
    assert result.transmissions[0].tolist() == [n_links * t for t in range(1, HORIZON + 1)]
    assert result.traffic["lost"][0] == 4 * n_links
    assert all((event.fate == "lost") == (event.arrival > HORIZON) for event in result.trace)
    never = run(PROBLEM, bm.IRS(), bm.Faults(delay=HORIZON), rules=rules)
    assert same_numbers(never, run(PROBLEM, bm.IRS(), bm.Faults(loss=1), rules=rules))


def test_copies_are_received_by_sender_and_then_in_the_order_of_sending(rules):
    trace = run(PROBLEM, bm.Flooding(4), bm.Faults(delay=1, jitter=2.0), rules=rules, horizon=40, trace=True).trace
    arrived = collections.defaultdict(list)
    for event in trace:
        if event.fate != "lost":
            arrived[event.arrival].append((event.sender, event.round, -event.sequence))
    assert any(len({sent_in for _, sent_in, _ in events}) > 1 for events in arrived.values())
    for events in arrived.values():
        assert [event[:2] for event in events] == sorted(event[:2] for event in events)


def test_jitter_is_geometric_with_its_mean():
    trace = run(PROBLEM, bm.Flooding(3), bm.Faults(delay=2, jitter=1.5), horizon=200, trace=True).trace
    late = collections.Counter(event.arrival - event.round - 2 for event in trace)
    n = sum(late.values())
    for k in range(5):
        share = 0.4 * 0.6**k
        assert late[k] == pytest.approx(n * share, abs=4 * math.sqrt(n * share * (1 - share)))
    draws = Draws(0, 0)
    for event in trace[:50]:
        u = draws.uniform(DELAY, event.origin, event.sequence, event.sender, event.receiver)
        assert event.arrival == event.round + 2 + math.floor(math.log(u) / math.log(0.6))


def test_copies_arrive_though_their_link_has_gone():
    graphs = [nx.path_graph(2), *[nx.empty_graph(2)] * 5]
    problem = bm.Problem(bm.networks.GraphSequence(graphs), [[0], [0]], gaussian_arms(1))
    result = run(problem, bm.IRS(), bm.Faults(delay=3), horizon=6, trace=True)
    assert [(event.round, event.arrival, event.learned) for event in result.trace] == [(1, 4, True), (1, 4, True)]


# Corruption


@pytest.mark.parametrize("kind, quartile", [("gaussian", 0.6745), ("heavy", 1.0)])
def test_noise_has_the_law_and_the_scale_that_were_asked_for(kind, quartile):
    faults = bm.Faults(corruption=bm.Corruption(kind, 0.5, scale=3.0))
    plain, noisy = (
        run(PROBLEM, bm.IRS(), one, rewards=np.zeros((500, 6, 4)), horizon=500, trace=True) for one in (None, faults)
    )
    noise = np.array([event.reward for event in noisy.trace])
    changed = noise[noise != 0]
    assert {event.reward for event in plain.trace} == {0.0}
    assert len(changed) == pytest.approx(len(noise) / 2, abs=4 * math.sqrt(len(noise) / 4))
    for q, expected in ((0.25, -3.0 * quartile), (0.5, 0.0), (0.75, 3.0 * quartile)):
        assert np.quantile(changed, q) == pytest.approx(expected, abs=0.3)


def test_a_changed_reward_is_relayed_as_it_arrived():
    faults = bm.Faults(corruption=bm.Corruption("gaussian", 0.5, scale=2.0))
    problem = private_arms(nx.path_graph(4))
    tape = normal_tape(problem, HORIZON)
    draws = Draws(0, 0)
    said = {}
    for event in run(problem, bm.Flooding(3), faults, rewards=tape, trace=True).trace:
        copy = event.origin, event.sequence, event.sender, event.receiver
        before = said.get(
            (event.origin, event.sequence, event.sender), tape[event.sequence - 1, event.origin, event.origin]
        )
        if draws.uniform(CORRUPT, *copy) < 0.5:
            before += 2.0 * normal_quantile(draws.uniform(NOISE, *copy))
        assert event.reward == before
        said[event.origin, event.sequence, event.receiver] = event.reward


def test_by_the_published_rules_a_changed_copy_is_another_message():
    # In a triangle each message comes to each agent from both others; by the sound rules the second is a duplicate.
    problem = private_arms(nx.cycle_graph(3))
    noisy = bm.Faults(corruption=bm.Corruption("gaussian", 1.0))
    duplicates = {
        (rules, one): totals(run(problem, bm.Flooding(2), one, rules=rules))["duplicate"]
        for rules in ("sound", "published")
        for one in (None, noisy)
    }
    assert duplicates["sound", noisy] == duplicates["sound", None] > 0
    assert duplicates["published", noisy] == 0 < duplicates["published", None]


@pytest.mark.parametrize("rules", ["sound", "published"])
def test_of_changed_copies_of_a_statistic_the_first_counts_or_by_the_published_rules_the_smallest_sum(rules):
    # What agent 0 tells reaches agent 2 by way of 1 and 3 in the same round, changed on each link by itself.
    problem = bm.Problem(nx.cycle_graph(4), [[0]] * 4, [bm.arms.Gaussian(0.0, 1.0)])
    faults = bm.Faults(corruption=bm.Corruption("gaussian", 1.0, 5.0))
    protocol = bm.Flooding(2, emission=bm.Growth(0.0))
    result = bm.simulate(problem, protocol, horizon=40, seed=0, rules=rules, faults=faults, trace=True)
    copies = collections.defaultdict(list)
    for event in result.trace:
        if (event.origin, event.receiver) == (0, 2):
            copies[event.sequence].append(event)
    winners = []
    for one, other in copies.values():
        assert (one.sender, other.sender, one.arrival, one.n_pulls) == (1, 3, other.arrival, other.n_pulls)
        assert one.reward != other.reward
        [winner] = [event for event in (one, other) if event.learned]
        assert (other.fate == "duplicate") == (rules == "sound")
        assert winner.reward == (one.reward if rules == "sound" else min(one.reward, other.reward))
        winners.append(winner.sender)
    assert len(winners) == 39
    assert set(winners) == ({1} if rules == "sound" else {1, 3})


def test_a_cumulative_message_heals_what_was_changed_before():
    # The last statistic that an agent heard of an origin is all that it keeps of it, so the noise of earlier ones goes.
    problem = common_arms(nx.path_graph(2), 1)
    changed = bm.Faults(corruption=bm.Corruption("gaussian", 0.5, scale=100.0))
    was_changed = [Draws(0, 0).uniform(CORRUPT, 0, t, 0, 1) < 0.5 for t in range(1, 61)]
    last = max(t for t in range(1, 61) if was_changed[t - 2] and not was_changed[t - 1])
    watched = Watched(problem, bm.IRS(emission=bm.Growth(0.0)), changed, horizon=last)
    total = watched.agents[0].recall.own_total[0] + watched.agents[1].recall.own_total[0]
    assert watched.agents[1].estimates.total[0] == pytest.approx(total, abs=1e-9)


# Full links


def test_a_link_never_carries_more_than_its_cap(rules):
    problem = common_arms(nx.complete_graph(5))
    full = run(problem, bm.Flooding(3), rules=rules, link_traffic=True)
    most = int(full.link_traffic.max())
    for cap in range(1, most + 2):
        result = run(problem, bm.Flooding(3), bm.Faults(link_cap=cap), rules=rules, link_traffic=True)
        assert result.link_traffic.max() == min(cap, most)
        assert (result.traffic["dropped"][0] > 0) == (cap < most)
    assert same_numbers(result, full)


def test_a_full_link_takes_the_newest_of_what_was_to_be_relayed():
    # A star with ends 1 to 4: from round 2 on the middle has its own message and one of each end to send. In its
    # outbox the latest arrival, from the highest sender, comes after its own.
    problem = private_arms(nx.star_graph(4))
    trace = run(problem, bm.Flooding(2), bm.Faults(link_cap=2), trace=True).trace
    to_first = [(event.round, event.origin) for event in trace if (event.sender, event.receiver) == (0, 1)]
    assert to_first == [(1, 0), *((t, origin) for t in range(2, HORIZON + 1) for origin in (0, 4))]
    to_last = [(event.round, event.origin) for event in trace if (event.sender, event.receiver) == (0, 4)]
    assert to_last == [(1, 0), *((t, origin) for t in range(2, HORIZON + 1) for origin in (0, 3))]


# Books and exact counts under everything at once


all_problems = problems(st.one_of(graphs(), dynamic_networks(HORIZON)))


@given(all_problems, st.sampled_from(PROTOCOLS), faults(), st.sampled_from(["sound", "published"]))
def test_every_copy_has_exactly_one_fate(problem, protocol, faults, rules):
    result = run(problem, protocol, faults, rules=rules, trace=True, link_traffic=True)
    counts = totals(result)
    assert counts["sent"] == counts["delivered"] + counts["duplicate"] + counts["lost"] == result.transmissions[0, -1]
    assert counts["delivered"] == sum(counts[fate] for fate in FATES)
    assert counts["bytes"] == protocol.emission.n_bytes * counts["sent"]
    assert (counts["dropped"] == 0) or faults.link_cap is not None
    seen = collections.Counter(event.fate for event in result.trace)
    assert {fate: counts[fate] for fate in (*FATES, "duplicate", "lost")} == {
        fate: seen[fate] for fate in (*FATES, "duplicate", "lost")
    }
    per_round = collections.Counter(event.round for event in result.trace)
    assert np.diff(result.transmissions[0], prepend=0).tolist() == [per_round[t] for t in range(1, HORIZON + 1)]
    np.testing.assert_array_equal(result.link_traffic[0].sum(axis=1).cumsum(), result.transmissions[0])
    np.testing.assert_allclose(result.regret[0, -1], np.nansum(problem.gaps * result.pulls[0]), atol=1e-12)


class Watched:
    """A run whose agents can be looked at: what each has sent, and what it has learned since it last began afresh."""

    def __init__(self, problem, protocol, faults, each_round=None, **more):
        self.agents = agents = []
        #: (origin, sequence) -> (arm, count, total), of every message that was ever made.
        self.made = made = {}
        #: agent -> the ids that it learned in this life.
        self.learned = learned = collections.defaultdict(list)

        class Open(Agent):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                agents.append(self)

            def restart(self):
                super().restart()
                learned[self.name].clear()

            def send(self, neighbours):
                parcels = super().send(neighbours)
                for message, _ in (parcel.copy for parcel in parcels):
                    if message.origin == self.name:
                        made.setdefault((self.name, message.id), (message.arm, message.n_pulls, message.total))
                return parcels

            def settle(self):
                learned[self.name] += [(one.origin, one.id) for one in self._heard]
                flags = super().settle()
                if each_round is not None and self is agents[-1]:
                    each_round.append([list(agent.estimates.count) for agent in agents])
                return flags

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("banditmesh.core.place.Agent", Open)
            self.result = run(problem, protocol, faults, **more)

    def most_made(self, origin, arm):
        """The most observations that an origin ever counted in one message."""
        return max((n for (maker, _), (of, n, _) in self.made.items() if (maker, of) == (origin, arm)), default=0)


relaying = st.sampled_from([bm.IRS(), bm.Flooding(3), bm.FwA(2), bm.Gossip(3), bm.ProbabilisticFlooding(3)])


@settings(max_examples=examples(150))
@given(all_problems, relaying, faults(corrupted=False))
def test_an_agent_has_an_observation_at_most_once_whatever_goes_wrong(problem, protocol, faults):
    watched = Watched(problem, protocol, faults)
    for agent in watched.agents:
        ids = watched.learned[agent.name]
        assert len(set(ids)) == len(ids)
        assert set(ids) <= watched.made.keys()
        for position, arm in enumerate(agent.arms.names):
            heard = [one for one in ids if watched.made[one][0] == arm]
            total = agent.recall.own_total[position] + sum(watched.made[one][2] for one in heard)
            assert agent.estimates.count[position] == agent.own_count[position] + len(heard)
            assert agent.estimates.total[position] == pytest.approx(total, abs=1e-9)
            per_origin = collections.Counter(origin for origin, _ in heard)
            assert all(n <= watched.result.pulls[0, origin, arm] for origin, n in per_origin.items())


@settings(max_examples=examples(150))
@given(all_problems, relaying, st.sampled_from([0.0, 0.5, 2.0]), faults(corrupted=False))
def test_an_agent_knows_no_more_of_an_origin_than_it_ever_sent(problem, protocol, factor, faults):
    protocol = dataclasses.replace(protocol, emission=bm.Growth(factor))
    watched = Watched(problem, protocol, faults)
    sent = {(origin, arm, n, total) for (origin, _), (arm, n, total) in watched.made.items()}
    for agent in watched.agents:
        for (origin, arm), (n, total, *_) in agent.recall.known.items():
            assert (origin, arm, n, total) in sent
            assert n <= watched.most_made(origin, arm) <= watched.result.pulls[0, origin, arm]
        for position, arm in enumerate(agent.arms.names):
            heard = [(n, total) for (_, of), (n, total, *_) in agent.recall.known.items() if of == arm]
            total = agent.recall.own_total[position] + sum(total for _, total in heard)
            assert agent.estimates.count[position] == agent.own_count[position] + sum(n for n, _ in heard)
            assert agent.estimates.total[position] == pytest.approx(total, abs=1e-9)


def test_growth_catches_up_on_what_was_lost():
    # Of single observations an agent has as many as arrived; of statistics, all that the latest to arrive counted.
    problem = common_arms(nx.path_graph(2), 1)
    draws = Draws(0, 0)
    arrived = [t for t in range(1, 101) if draws.uniform(LOSS, 1, t, 1, 0) >= 0.5]
    single = Watched(problem, bm.IRS(), bm.Faults(loss=0.5), horizon=100)
    assert single.agents[0].estimates.count == [100 + len(arrived)]
    for factor in (0.0, 0.25):
        sums = Watched(problem, bm.IRS(emission=bm.Growth(factor)), bm.Faults(loss=0.5), horizon=100)
        sent = [t for origin, t in sums.made if origin == 1]
        assert sums.agents[0].estimates.count == [100 + max(t for t in sent if t in arrived)]
        assert factor or sums.agents[0].estimates.count > single.agents[0].estimates.count


def test_a_restarted_origin_says_nothing_new_until_it_counts_more_than_before():
    problem = common_arms(nx.path_graph(2), 1)
    outages = bm.Outages(0.1, 0.8, memory=False)
    counts = []
    Watched(problem, bm.IRS(emission=bm.Growth(0.0)), bm.Faults(outages=outages), horizon=80, each_round=counts)
    up = presence(2, 80, outages, Draws(0, 0))
    own = [0, 0]
    known = [0, 0]  # what each knows of the other
    for t in range(1, 81):
        for v in (0, 1):
            if up[t][v]:
                own[v], known[v] = (1, 0) if not up[t - 1][v] else (own[v] + 1, known[v])
        for v in (0, 1):
            if up[t][v] and up[t][1 - v]:
                known[v] = max(known[v], own[1 - v])
        assert counts[t - 1] == [[own[0] + known[0]], [own[1] + known[1]]]


# What is recorded


FAULTS = bm.Faults(loss=0.1, outages=bm.Outages(0.1, 0.5))


def test_result_tells_of_its_faults_and_keeps_them_in_a_file(tmp_path):
    result = run(PROBLEM, bm.FwA(3), FAULTS)
    assert result.faults == "Faults(loss=0.1, outages=Outages(down=0.1, up=0.5, memory=True))"
    result.save(tmp_path / "result.npz")
    assert bm.Result.load(tmp_path / "result.npz") == result != run(PROBLEM, bm.FwA(3))
    assert run(PROBLEM, bm.FwA(3)).faults == "None"
    assert eval(result.faults, vars(bm) | {"Faults": bm.Faults, "Outages": bm.Outages}) == FAULTS


def test_a_file_from_before_there_were_faults_still_loads(tmp_path):
    result = run(PROBLEM, bm.FwA(3))
    del result.settings["faults"]
    del result.traffic["dropped"]
    result.save(tmp_path / "old.npz")
    assert bm.Result.load(tmp_path / "old.npz") == run(PROBLEM, bm.FwA(3))


def test_compare_hands_faults_on():
    comparison = bm.compare(PROBLEM, [bm.IRS(), bm.FwA(3)], horizon=20, replicates=1, seed=0, faults=bm.Faults(loss=1))
    assert np.array_equal(comparison.results["irs"].regret, comparison.results["fwa"].regret)


def test_a_study_over_loss_has_a_column_for_it_and_for_what_was_lost(tmp_path):
    text = """
    horizon = 20
    replicates = 2
    network = {name = "ring", n = 6}
    arms = {n_arms = 4, per_agent = 2}
    protocol = "irs"
    sweep.faults.loss = [0.0, 0.5, 1.0]
    """
    table = bm.run_study(bm.parse_spec(text), tmp_path / "study", workers=1).table()
    assert table["error"].isna().all()
    assert table["messages"].tolist() == [240] * 6
    lost = table.groupby("faults.loss")["lost"].sum()
    assert lost[0.0] == 0 < lost[0.5] < lost[1.0] == 480
    assert table["dropped"].tolist() == [0] * 6


def test_compare_takes_faults_from_options_and_from_a_spec(capsys, tmp_path):
    options = ["--network", "er", "--horizon", "9", "--replicates", "1", "--protocols", "irs"]
    written = "Faults(loss=1.0, outages=Outages(down=0.5, up=0.5, memory=True))"
    assert written in command(capsys, "compare", *options, "--loss", "1", "--outages", "0.5", "0.5")
    assert "Faults" not in command(capsys, "compare", *options, "--loss", "0")
    told = json.loads(command(capsys, "compare", *options, "--loss", "0.25", "--json"))
    assert told["faults"] == "Faults(loss=0.25)"
    spec = tmp_path / "study.toml"
    spec.write_text("horizon = 9\nreplicates = 1\nfaults.delay = 3\nprotocol = 'irs'\nengine = 'reference'")
    assert "Faults(delay=3)" in command(capsys, "compare", str(spec))
    assert "give a spec file or --loss, got both" in command(capsys, "compare", str(spec), "--loss", "0.1", status=2)
    assert "FAILS: the paper's theorems cover this protocol" in command(capsys, "bounds", str(spec))
    spec.write_text("horizon = 9\nreplicates = 1\nfaults.link_cap = 3\nprotocol = 'irs'\nengine = 'reference'")
    assert "bounds allow for losses, delays" in command(capsys, "bounds", str(spec), status=2)


def test_run_takes_a_loss(capsys, tmp_path):
    spec, out = tmp_path / "study.toml", tmp_path / "out"
    spec.write_text("horizon = 9\nreplicates = 1\nprotocol = 'irs'\nengine = 'reference'")
    command(capsys, "run", str(spec), "--out", str(out), "--loss", "1", "--workers", "1")
    table = bm.Study(out).table()
    assert table["lost"].tolist() == table["messages"].tolist() == [9 * 306]


def command(capsys, *arguments, status=0):
    """What the command line prints, or its error."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert ended.value.code == status, err
    return err if status else out


# Wrong use


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: bm.Faults(loss=1.5), "loss must be a probability between 0 and 1, got 1.5"),
        (lambda: bm.Faults(loss="much"), "loss must be a probability between 0 and 1, got 'much'"),
        (lambda: bm.Faults(loss=math.nan), "loss must be a probability between 0 and 1, got nan"),
        (lambda: bm.Faults(delay=-1), "delay must be an integer of at least 0"),
        (lambda: bm.Faults(delay=0.5), "delay must be an integer of at least 0"),
        (lambda: bm.Faults(delay=2**32), "delay must be an integer of at least 0 and at most 4294967295"),
        (lambda: bm.Faults(jitter=-0.1), "jitter must be a number of at least 0, got -0.1"),
        (lambda: bm.Faults(jitter=1e300), "jitter must be at most 4294967295 rounds, got 1e+300"),
        (lambda: bm.Faults(link_cap=0), "link_cap must be an integer of at least 1, got 0"),
        (lambda: bm.Faults(corruption=0.1), "corruption must be a Corruption or None, got 0.1"),
        (lambda: bm.Faults(outages=0.1), "outages must be an Outages or None, got 0.1"),
        (lambda: bm.Corruption("red", 0.1), "corruption.kind must be one of gaussian, zero, heavy; got 'red'"),
        (lambda: bm.Corruption("zero", 2), "corruption.probability must be a probability between 0 and 1, got 2"),
        (lambda: bm.Corruption("heavy", 1, -1.0), "corruption.scale must be a number of at least 0, got -1.0"),
        (lambda: bm.Corruption("heavy", 1, 1e200), "corruption.scale must be at most 1e+100, got 1e+200"),
        (lambda: bm.Outages(-1, 0), "outages.down must be a probability between 0 and 1, got -1"),
        (lambda: bm.Outages(0, 7), "outages.up must be a probability between 0 and 1, got 7"),
        (lambda: bm.Outages(0, 1, memory="no"), "outages.memory must be True or False, got 'no'"),
        (lambda: run(PROBLEM, bm.IRS(), 0.1), "faults must be a Faults such as Faults(loss=0.1), or None, got 0.1"),
    ],
)
def test_wrong_faults_are_refused_in_one_line(make, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_extreme_faults_stay_finite():
    heavy = bm.Corruption("heavy", 1.0, scale=1e100)
    for kind in ("gaussian", "heavy"):
        for u in (2.0**-53, 0.5, 1 - 2.0**-53):
            assert math.isfinite(dataclasses.replace(heavy, kind=kind).changed(1.0, u))
    for jitter in (1e-320, 1e-9, 2.0**32 - 1):
        assert bm.Faults(jitter=jitter).lateness(2.0**-53) >= 0
    assert bm.Faults(jitter=1e-320).lateness(0.9) == 0
