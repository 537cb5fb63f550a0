"""What must hold on every network, for every protocol, ttl and rule set; read off the event log of every copy."""

import collections
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.draws import Draws
from banditmesh.networks import Links
from banditmesh.rules import get_rules
from cases import dynamic_networks, graphs, problems, protocols, totals
from oracles import has_arm, hops_of

HORIZON = 7
rule_sets = st.sampled_from(["sound", "published"])
all_problems = problems(st.one_of(graphs(), dynamic_networks(HORIZON)))
static_problems = problems(graphs())
FATES = ("absorbed", "expired", "stopped", "relayed", "queued")


def run(problem, protocol, rules="sound", seed=0, **settings):
    settings = {"horizon": HORIZON, "seed": seed, "rules": rules, "link_traffic": True, **settings}
    return bm.simulate(problem, protocol, trace=True, engine="reference", **settings)


def neighbours_of_rounds(problem, rules, seed=0):
    """For every round from 1, every agent's neighbours."""
    if not problem.is_dynamic:
        rounds = itertools.repeat(problem.network.neighbour_lists(), HORIZON)
    else:
        links = problem.network.rounds(Draws(seed, 0), get_rules(rules).births_first)
        rounds = (
            Links.from_pairs(problem.n_agents, pairs).neighbour_lists() for pairs in itertools.islice(links, HORIZON)
        )
    return dict(enumerate(rounds, start=1))


def message_id(event):
    return event.origin, event.sequence


def arm_number(problem, event):
    return problem.arms.index(event.arm)


def is_first_copy(event):
    return event.fate not in ("duplicate", "lost")


# Books


@given(all_problems, protocols(), rule_sets, st.integers(0, 3))
def test_every_copy_has_exactly_one_fate(problem, protocol, rules, seed):
    result = run(problem, protocol, rules, seed)
    counts = totals(result)
    assert counts["sent"] == counts["delivered"] + counts["duplicate"] + counts["lost"]
    assert counts["delivered"] == sum(counts[fate] for fate in FATES)
    assert counts["lost"] == 0
    assert counts["bytes"] == 24 * counts["sent"]
    assert result.transmissions[0, -1] == counts["sent"]


@given(all_problems, protocols(), rule_sets)
def test_event_log_agrees_with_the_totals(problem, protocol, rules):
    result = run(problem, protocol, rules)
    counts = totals(result)
    seen = collections.Counter(event.fate for event in result.trace)
    assert len(result.trace) == counts["sent"]
    assert {fate: seen[fate] for fate in (*FATES, "duplicate", "lost")} == {
        fate: counts[fate] for fate in (*FATES, "duplicate", "lost")
    }
    learned = sum(event.learned for event in result.trace)
    assert learned == counts["learned"] or isinstance(protocol, bm.Centralised)
    per_round = collections.Counter(event.round for event in result.trace)
    assert np.diff(result.transmissions[0], prepend=0).tolist() == [per_round[t] for t in range(1, HORIZON + 1)]


@given(all_problems, protocols(), rule_sets)
def test_link_traffic_adds_up_to_messages(problem, protocol, rules):
    result = run(problem, protocol, rules)
    up = neighbours_of_rounds(problem, rules)
    assert result.links == sorted({(v, w) for rows in up.values() for v, row in enumerate(rows) for w in row})
    np.testing.assert_array_equal(result.link_traffic[0].sum(axis=1).cumsum(), result.transmissions[0])
    on_link = collections.Counter((event.round, event.sender, event.receiver) for event in result.trace)
    for (t, i, j), n_sent in on_link.items():
        assert result.link_traffic[0, t - 1, result.links.index((i, j))] == n_sent


@given(all_problems, protocols(), rule_sets)
def test_regret_agrees_with_pulls(problem, protocol, rules):
    result = run(problem, protocol, rules)
    assert result.pulls.sum() == problem.n_agents * HORIZON
    assert (result.pulls[0][np.isnan(problem.gaps)] == 0).all()
    agent_regret = np.nansum(problem.gaps * result.pulls[0], axis=1)
    np.testing.assert_allclose(result.agent_regret[0], agent_regret, atol=1e-12)
    np.testing.assert_allclose(result.regret[0, -1], agent_regret.sum(), atol=1e-12)
    assert (np.diff(result.regret[0], prepend=0.0) >= 0).all()


# Travelling


@given(all_problems, protocols(), rule_sets)
def test_copies_travel_one_hop_a_round_over_links_that_are_up(problem, protocol, rules):
    up = neighbours_of_rounds(problem, rules)
    for event in run(problem, protocol, rules).trace:
        assert event.receiver in up[event.round][event.sender]
        assert 1 <= event.ttl <= protocol.ttl
        assert event.round == event.sequence + protocol.ttl - event.ttl
        if event.sequence == event.round:
            assert event.sender == event.origin


@given(all_problems, protocols(), rule_sets)
def test_every_relayed_copy_comes_from_one_that_was_taken_in_the_round_before(problem, protocol, rules):
    trace = run(problem, protocol, rules).trace
    taken = {(event.round, event.receiver, message_id(event)) for event in trace if event.fate == "relayed"}
    for event in trace:
        if event.round > event.sequence:
            assert (event.round - 1, event.sender, message_id(event)) in taken
        if event.fate == "queued":
            assert event.round == HORIZON
        if event.fate == "relayed":
            assert event.round < HORIZON
            assert event.ttl >= 2
        if event.fate == "expired":
            assert event.ttl == 1


@given(all_problems, protocols().filter(lambda protocol: not isinstance(protocol, bm.Gossip)), rule_sets)
def test_every_taken_copy_is_sent_to_all_eligible_neighbours(problem, protocol, rules):
    trace = run(problem, protocol, rules).trace
    up = neighbours_of_rounds(problem, rules)
    sent = collections.defaultdict(set)
    for event in trace:
        sent[event.round, event.sender, message_id(event)].add(event.receiver)
    for event in trace:
        if event.fate == "relayed":
            expected = set(up[event.round + 1][event.receiver])
            if rules == "sound":
                expected.discard(event.sender)
            assert sent[event.round + 1, event.receiver, message_id(event)] == expected
    if protocol.sends_messages:
        for t, rows in up.items():
            for agent, row in enumerate(rows):
                assert sent[t, agent, (agent, t)] == set(row)


@given(all_problems, st.integers(1, 4), st.integers(1, 3), rule_sets)
def test_gossip_sends_to_as_many_neighbours_as_it_may(problem, ttl, fanout, rules):
    trace = run(problem, bm.Gossip(ttl, fanout=fanout), rules).trace
    up = neighbours_of_rounds(problem, rules)
    sent = collections.defaultdict(list)
    for event in trace:
        sent[event.round, event.sender, event.ttl, message_id(event)].append(event.receiver)
    for receivers in sent.values():
        assert len(receivers) == len(set(receivers)) <= fanout
    for t, rows in up.items():
        for agent, row in enumerate(rows):
            assert len(sent[t, agent, ttl, (agent, t)]) == min(fanout, len(row))
    for event in trace:
        if event.fate == "relayed":
            eligible = set(up[event.round + 1][event.receiver])
            if rules == "sound":
                eligible.discard(event.sender)
            receivers = sent[event.round + 1, event.receiver, event.ttl - 1, message_id(event)]
            assert len(receivers) == min(fanout, len(eligible))
            assert set(receivers) <= eligible


# Learning and relaying


@given(all_problems, protocols())
def test_an_agent_learns_an_observation_at_most_once(problem, protocol):
    trace = run(problem, protocol).trace
    learned = collections.Counter((event.receiver, message_id(event)) for event in trace if event.learned)
    assert set(learned.values()) <= {1}
    assert all(event.origin != event.receiver for event in trace if is_first_copy(event))


@given(all_problems, protocols())
def test_the_first_copy_is_the_earliest_from_the_lowest_sender(problem, protocol):
    copies = collections.defaultdict(list)
    for event in run(problem, protocol).trace:
        if event.receiver != event.origin:
            copies[event.receiver, message_id(event)].append(event)
    for events in copies.values():
        earliest = min(events, key=lambda event: (event.round, event.sender))
        assert [event for event in events if is_first_copy(event)] == [earliest]


@given(all_problems, protocols(), rule_sets)
def test_fates_follow_the_protocol(problem, protocol, rules):
    for event in run(problem, protocol, rules).trace:
        holder = has_arm(problem, event.receiver, arm_number(problem, event))
        if not is_first_copy(event):
            assert not event.learned
        elif event.fate == "stopped":
            assert protocol.name == "probabilistic"
            assert event.learned == (holder and rules == "sound")
        else:
            assert event.learned == holder
            assert (event.fate == "absorbed") == (protocol.name == "fwa" and holder)


@given(static_problems, st.sampled_from([bm.Flooding, bm.FwA]), st.integers(1, 4))
def test_an_observation_is_learned_within_reach_and_in_time(problem, kind, ttl):
    trace = run(problem, kind(ttl), every=[1 + v % 2 for v in range(problem.n_agents)]).trace
    received = {(event.receiver, message_id(event)): event for event in trace if is_first_copy(event)}
    made = {message_id(event): arm_number(problem, event) for event in trace}
    expected = {}
    for (origin, sequence), arm in made.items():
        for agent, hops in hops_of(problem, kind.name, origin, arm).items():
            if 1 <= hops <= ttl and sequence + hops - 1 <= HORIZON:
                expected[agent, (origin, sequence)] = sequence + hops - 1
    assert {key: event.round for key, event in received.items()} == expected
    for (agent, message), event in received.items():
        assert event.learned == has_arm(problem, agent, made[message])


@given(static_problems, protocols())
def test_no_message_costs_more_than_twice_the_links_less_a_tree(problem, protocol):
    # By the sound rules, in a component of n agents and m links.
    cost = collections.Counter(message_id(event) for event in run(problem, protocol).trace)
    labels = problem.network.components()
    for (origin, _), n_sent in cost.items():
        members = labels == labels[origin]
        n_links = problem.network.degrees[members].sum() // 2
        assert n_sent <= 2 * n_links - members.sum() + 1


# Many agents at once


@given(all_problems, protocols(), rule_sets)
def test_every_replicate_keeps_its_own_books(problem, protocol, rules):
    result = run(problem, protocol, rules, replicates=2)
    first = run(problem, protocol, rules)
    assert [event for event in result.trace if event.replicate == 0] == first.trace
    assert len(result.trace) == result.traffic["sent"].sum()
