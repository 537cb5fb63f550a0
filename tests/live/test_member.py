"""Choosing, counting, telling, lives and what is shown: the rest of a member's rules by hand."""

import math
import random

import pytest
from members import counted, hear, known, make, observe, taken

import banditmesh as bm
from banditmesh.core import Agent, Silent
from banditmesh.live.disk import CallerKey, Life, OwnArm, Start, Stored
from banditmesh.live.member import COUNTED, REFUSED, ArmSpec, Observation
from banditmesh.live.names import Caps, check_name, epoch_text, parse_epoch, parse_uri, uri
from banditmesh.live.statistics import Entry, policy_arms

# Choosing.


def test_first_choices_are_the_arms_in_their_order():
    member = make(arms=["red", "blue", "grey"])
    observe(member, ("blue", 1.0))
    assert [member.choose(0.0)[0] for _ in range(2)] == ["red", "grey"]


def test_then_arms_of_which_nothing_is_known_the_least_often_chosen_first():
    member = make(arms=["red", "blue", "grey"])
    hear(member, "p", ("o", 1, "blue", 1, 9.0, 1))
    chosen = []
    for _ in range(7):
        arm, ticket = member.choose(0.0)
        observe(member, Observation(0.0, ticket, withdraws=True))
        chosen.append(arm)
    assert chosen == ["red", "blue", "grey", "red", "grey", "red", "grey"]


def test_then_the_policy_is_asked_with_the_number_of_choices_as_its_clock():
    arms = ["red", "blue", "grey"]
    member, rng = make(arms=arms), random.Random(3)
    agent = Agent("a", policy_arms([ArmSpec(arm, sigma=1.0) for arm in arms]), bm.UCB(), Silent(), None)
    for clock in range(1, 200):
        arm, ticket = member.choose(0.0)
        assert (ticket.number, arm) == (clock, arms[agent.choose(clock).position])
        reward = rng.gauss(0.5, 1.0)
        observe(member, Observation(reward, ticket))
        agent.observe(arms.index(arm), reward)


def test_choice_among_some_arms_follows_the_same_rules():
    member = make(arms=["red", "blue", "grey"])
    assert [member.choose(0.0, among=["grey", "blue"])[0] for _ in range(2)] == ["blue", "grey"]
    observe(member, ("red", 9.0), ("blue", 1.0), ("grey", 2.0))
    assert member.choose(0.0, among=["grey", "blue"])[0] == "grey"
    assert member.choose(0.0, among=["blue"])[0] == "blue"
    for wrong in ([], ["pink"], "red", ["red", "pink"], [["red"]], [0]):
        with pytest.raises(bm.InputError, match="among must name some of the arms of node 'n', got"):
            member.choose(0.0, among=wrong)
    # What was refused is no choice.
    assert member.choose(0.0)[1].number == 5


def test_node_without_arms_cannot_choose_and_none_can_before_it_has_begun():
    with pytest.raises(bm.InputError, match="has no arms to choose from"):
        make(arms=()).choose(0.0)
    with pytest.raises(bm.InputError, match="must begin its life first"):
        make(begins=False).choose(0.0)


@pytest.mark.parametrize("policy", [bm.ThompsonSampling(), bm.EpsilonGreedy(), bm.KLUCB(), bm.MOSS()])
def test_policies_that_need_counts_and_sums_alone_choose(policy):
    member = make(policy=policy)
    for reward in (0.1, 0.9) * 20:
        arm, ticket = member.choose(0.0)
        observe(member, Observation(reward if arm == "red" else 0.0, ticket))
    assert sum(one.n_chosen for one in member.own()) == 40


def test_arms_that_a_policy_cannot_use_are_refused():
    with pytest.raises(bm.InputError, match="must know the sigma of every arm, got none for arm 'red'"):
        make(arms=[ArmSpec("red")], policy=bm.ThompsonSampling())


# Rewards.


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1.1e12, -1.1e12, "1", None, True])
def test_reward_that_no_arm_pays_is_refused_in_one_line(reward):
    member = make()
    [answer] = observe(member, ("red", reward))
    assert answer.outcome == REFUSED
    assert answer.reason.startswith("a reward of arm 'red' must be")
    assert counted(member, "observations_refused") == (1,)
    assert known(member)["red"] == (0, None)


def test_reward_must_be_in_the_range_of_its_arm():
    member = make(arms=[ArmSpec("red", reward_range=(0.0, 1.0), sigma=0.5), "blue"])
    answers = observe(member, ("red", 1.0), ("red", 1.5), ("blue", 1.5), ("pink", 1.0))
    assert [one.outcome for one in answers] == [COUNTED, REFUSED, COUNTED, REFUSED]
    assert answers[1].reason == "a reward of arm 'red' must be from 0 to 1, got 1.5"
    assert answers[3].reason == "a reward must be of an arm of node 'n', got one of 'pink'"


def test_late_reward_of_an_arm_that_was_removed_counts_and_is_told():
    member = make(arms=["red", "blue"], links="p")
    _, ticket = member.choose(0.0)
    member.set_arms([ArmSpec("blue", sigma=1.0)])
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED
    assert taken(member, "p") == [("n", 1, "red", 1, 1.0, 4)]
    member.set_arms([ArmSpec("red", sigma=1.0)])
    assert known(member) == {"red": (1, 1.0)}


def test_arm_specs_are_checked():
    for wrong in (
        {"name": ""},
        {"name": "red", "law": "pareto"},
        {"name": "red", "sigma": 0.0},
        {"name": "red", "reward_range": (1.0, 0.0)},
        {"name": "red", "reward_range": (0.0, 1e13)},
        {"name": "red", "reward_range": (0.0, math.nan)},
    ):
        with pytest.raises(bm.InputError):
            ArmSpec(**wrong)
    with pytest.raises(bm.InputError, match="arms must have at most 10000 different names"):
        make(arms=["red", "red"])
    with pytest.raises(bm.InputError, match="arms must have at most 1 different names"):
        make(arms=["red", "blue"], caps=Caps(arms=1))


# Telling.


def test_nothing_is_visible_or_leaves_before_it_is_stored():
    member = make(links="p")
    commit, _ = member.plan([Observation(0.5, arm="red")], 0.0)
    assert taken(member, "p") == []
    assert known(member)["red"] == (0, None)
    member.failed(commit)
    assert taken(member, "p") == []
    observe(member, ("red", 0.75))
    assert taken(member, "p") == [("n", 1, "red", 1, 0.75, 4)]
    assert known(member)["red"] == (1, 0.75)


def test_there_is_one_commit_at_a_time():
    member = make()
    commit, _ = member.plan([], 0.0)
    for begins in (lambda: member.plan([], 0.0), lambda: member.new_life(2, 0.0)):
        with pytest.raises(bm.InputError, match="one commit at a time"):
            begins()
    member.committed(commit)
    with pytest.raises(bm.InputError, match="the commit that is under way"):
        member.committed(commit)


def test_emission_is_asked_once_for_each_arm_of_a_transaction():
    member = make(protocol=bm.FwA(4, emission=bm.Growth(1.0)), links="p")
    told = []
    for n in (1, 1, 1, 3, 10):
        observe(member, *[("red", 1.0)] * n)
        told += [one[3] for one in taken(member, "p")]
    # Own counts are 1, 2, 3, 6 and 16: told when they have doubled since the last time.
    assert told == [1, 2, 6, 16]
    own = member.own()[0]
    assert (own.count, own.told_count) == (16, 16)


def test_every_pull_tells_all_so_far_after_each_transaction():
    member = make(links="p")
    observe(member, ("red", 1.0), ("blue", 2.0), ("red", 3.0))
    observe(member, ("red", 1.0))
    assert taken(member, "p") == [("n", 1, "red", 3, 5.0, 4), ("n", 1, "blue", 1, 2.0, 4)]


def test_gossip_tells_as_many_drawn_links_as_it_says():
    member = make(protocol=bm.Gossip(4, fanout=2), links="pqrst")
    observe(member, ("red", 1.0))
    assert sum(len(taken(member, peer)) for peer in "pqrst") == 2


def test_node_sends_of_its_own_only_what_is_told():
    member = make(protocol=bm.FwA(4, emission=bm.Growth(1.0)))
    for reward in (1.0, 2.0, 4.0):
        observe(member, ("red", reward))
    member.link_up("p")
    assert taken(member, "p") == [("n", 1, "red", 2, 3.0, 4)]


def test_changes_of_a_commit_are_what_must_be_stored():
    member = make()
    _, ticket = member.choose(0.0)
    member.choose(0.0)
    commit, _ = member.plan([Observation(0.5, ticket), Observation(1.0, arm="red", key="a")], 0.0)
    assert commit.changes.life == Life(1, 1, 2)
    assert commit.changes.own == [OwnArm("red", 2, 1.5, 2, 1.5, 1), OwnArm("blue", 0, 0.0, 0, 0.0, 1)]
    assert [(one.start, one.first, one.last) for one in commit.changes.closed] == [(1, 1, 1)]
    assert commit.changes.caller_keys == [CallerKey(1, "a")]
    assert (commit.changes.entries, commit.changes.clear_own) == ([], False)
    member.committed(commit)
    # How often arms were chosen is stored once.
    commit, _ = member.plan([], 0.0)
    assert commit.changes.own == []


# Lives.


def stored(**more):
    settings = {"life": Life(1, 3, 10), "own": [OwnArm("red", 4, 2.0, 3, 1.5, 4)], "starts": [Start(3, 0.0)]}
    return Stored("mesh", "n", **{**settings, **more})


def restored(value, **settings):
    member = make(begins=False, **settings)
    member.restore(value)
    member.committed(member.begin(99, 1.0))
    return member


def test_everything_comes_back_after_a_restart():
    entries = [Entry("o", 5, "red", 2, 4.0, 3, passes=False), Entry("o", 5, "far", 2, 4.0, 3, passes=True)]
    member = restored(stored(entries=[*entries, Entry("n", 7, "blue", 1, 1.0, 2, passes=True)]))
    assert member.life == Life(1, 4, 10)
    assert known(member) == {"red": (6, 1.0), "blue": (1, 1.0)}
    assert member.own() == [OwnArm("red", 4, 2.0, 3, 1.5, 4)]
    arm, ticket = member.choose(2.0)
    # Blue was never chosen or observed here in this life.
    assert (arm, ticket.start, ticket.number) == ("blue", 4, 11)
    member.link_up("p")
    told = {("n", 1, "red", 3, 1.5, 4), ("o", 5, "far", 2, 4.0, 3), ("n", 7, "blue", 1, 1.0, 4)}
    assert set(taken(member, "p")) == told


def test_what_passes_is_decided_anew_at_the_start():
    entries = [Entry("o", 5, "red", 2, 4.0, 3, passes=False), Entry("o", 5, "far", 2, 4.0, 3, passes=True)]
    member = restored(stored(entries=entries), arms=["far"], links="p")
    assert {one.key: one.passes for one in member.entries()} == {("o", 5, "red"): True, ("o", 5, "far"): False}
    assert ("o", 5, "red", 2, 4.0, 3) in taken(member, "p")


def test_stored_entries_are_refused_as_heard_ones_would_be():
    entries = [Entry(origin, epoch, "red", 1, 9.0, 3, passes=True) for origin, epoch in
               [("a", 1), ("b", 1), ("c", 1), ("n", 1), ("n", 2), ("n", 3)]]  # fmt: skip
    member = restored(stored(entries=entries, retired=[("a", 1), ("n", 2)]), ignore=["b"], caps=Caps(entries=1))
    assert [one.key for one in member.entries()] == [("c", 1, "red"), ("n", 3, "red")]


def test_stored_entries_outside_of_a_range_are_kept_and_unused():
    entries = [Entry("o", 1, "red", 1, 9.0, 3, passes=True), Entry("n", 2, "red", 1, 7.0, 3, passes=True)]
    arms = [ArmSpec("red", sigma=1.0, reward_range=(0.0, 1.0))]
    member = restored(stored(entries=entries), arms=arms, protocol=bm.Flooding(4), links="p")
    assert [(*one.key, one.count, one.passes) for one in member.entries()] == [
        ("o", 1, "red", 1, False),
        ("n", 2, "red", 1, True),
    ]
    assert known(member)["red"] == (5, 9.0 / 5)
    assert "o" not in {one[0] for one in taken(member, "p")}
    member.set_arms([ArmSpec("red", sigma=1.0, reward_range=(0.0, 10.0))])
    assert known(member)["red"] == (6, 18.0 / 6)
    assert ("o", 1, "red", 1, 9.0, 3) in taken(member, "p")


def test_state_of_another_node_is_refused():
    with pytest.raises(bm.InputError, match="must be that of node 'm' of mesh 'mesh', got that of 'n' of 'mesh'"):
        make("m", begins=False).restore(stored())
    with pytest.raises(bm.InputError, match="must be restored once, before it begins"):
        make().restore(stored())
    with pytest.raises(bm.InputError, match="has begun already"):
        make().begin(3, 0.0)


def test_new_life_moves_own_statistics_as_committed_into_the_table():
    member = make(protocol=bm.FwA(4, emission=bm.Growth(1.0)), links="p")
    for reward in (1.0, 2.0, 4.0):
        observe(member, ("red", reward))
    _, ticket = member.choose(0.0)
    commit = member.new_life(2, 5.0)
    assert commit.changes.clear_own
    assert commit.changes.life == Life(2, 1, 1)
    assert commit.changes.starts == [Start(1, 5.0)]
    assert commit.changes.entries == [Entry("n", 1, "red", 3, 7.0, 4, passes=True, is_observed=True)]
    assert commit.changes.own == [OwnArm("blue", 0, 0.0, n_chosen=1)]
    before = known(member)
    member.committed(commit)
    assert known(member) == before == {"red": (3, 7.0 / 3), "blue": (0, None)}
    assert taken(member, "p") == [("n", 1, "red", 3, 7.0, 4)]
    assert observe(member, Observation(1.0, ticket))[0].outcome == REFUSED
    observe(member, ("red", 1.0))
    assert taken(member, "p") == [("n", 2, "red", 1, 1.0, 4)]
    assert member.lives() == [("n", 2), ("n", 1)]


def test_proof_of_an_older_copy_leads_to_a_new_life_that_knows_it():
    member = make("n", epoch=1, links="pq")
    observe(member, ("red", 1.0), ("blue", 1.0))
    taken(member, "q")
    hear(member, "p", ("n", 1, "red", 5, 3.0, 2), ("n", 1, "red", 4, 2.0, 4), ("n", 1, "far", 1, 1.0, 4))
    with pytest.raises(bm.InputError, match="must begin a new life before it counts anything"):
        member.plan([], 0.0)
    commit = member.new_life(2, 0.0)
    # While that is being stored more may come.
    hear(member, "p", ("n", 1, "red", 6, 4.0, 2))
    member.committed(commit)
    assert member.needs_new_life() is None
    assert {one.key[1:]: (one.count, one.total) for one in member.entries()} == {
        (1, "red"): (6, 4.0),
        (1, "blue"): (1, 1.0),
        (1, "far"): (1, 1.0),
    }
    assert known(member) == {"red": (6, 4.0 / 6), "blue": (1, 1.0)}
    assert set(taken(member, "q")) == {
        ("n", 1, "red", 6, 4.0, 4),
        ("n", 1, "blue", 1, 1.0, 4),
        ("n", 1, "far", 1, 1.0, 4),
    }


def test_invented_rows_of_the_present_life_fill_no_more_than_the_cap():
    member = make("n", epoch=1, caps=Caps(entries_per_origin=5, arms=4), links="p")
    for epoch in range(1, 6):
        observe(member, (arm := "red" if epoch % 2 else "blue", 1.0))
        hear(member, "p", *(("n", epoch, f"invented {number}", 1, 1.0, 4) for number in range(6)))
        commit = member.new_life(epoch + 1, 0.0)
        # While that is being stored more may come.
        hear(member, "p", *(("n", 0, f"{epoch}/{number}", 1, 1.0, 4) for number in range(6)))
        member.committed(commit)
        # What it observed itself always has a place.
        assert ("n", epoch, arm) in {one.key for one in member.entries()}
        assert len(member.entries()) <= 5 + epoch
        _, removed = member.dirty_entries()
        assert {one.key for one in commit.changes.entries} <= {one.key for one in member.entries()} | set(removed)
    assert member.counters["proofs_without_room"] > 0


def test_new_life_that_could_not_be_stored_has_not_begun():
    member = make()
    observe(member, ("red", 1.0))
    member.failed(member.new_life(2, 0.0))
    assert member.life.epoch == 1
    assert member.own()[0].count == 1


@pytest.mark.parametrize("how", ["retire", "ignore"])
def test_node_whose_present_life_is_retired_begins_a_new_one_and_moves_nothing(how):
    member = make(links="p")
    observe(member, ("red", 1.0))
    hear(member, "p", ("o", 1, "red", 1, 3.0, 4))
    if how == "retire":
        member.retire([("n", 1)])
    else:
        member.set_ignore([("n", 1)])
    assert member.needs_new_life() == "the present life is retired"
    commit = member.new_life(2, 0.0)
    assert commit.changes.entries == []
    member.committed(commit)
    assert member.needs_new_life() is None
    assert known(member)["red"] == (1, 3.0)
    assert taken(member, "p") == []
    hear(member, "p", ("n", 1, "red", 1, 1.0, 4))
    assert known(member)["red"] == (1, 3.0)


@pytest.mark.parametrize("when", ["before", "while it is stored"])
def test_life_that_is_retired_when_another_begins_moves_nothing(when):
    member = make(links="p")
    observe(member, ("red", 1.0))
    hear(member, "p", ("n", 1, "red", 5, 3.0, 2))
    if when == "before":
        member.retire([("n", 1)])
    commit = member.new_life(2, 0.0)
    member.retire([("n", 1)])
    member.committed(commit)
    assert member.entries() == []
    assert known(member)["red"] == (0, None)
    assert taken(member, "p") == []
    # What was stored with the new life goes, too.
    assert {one.key for one in commit.changes.entries} <= set(member.dirty_entries()[1])


def test_own_lives_always_have_a_place_whatever_the_caps_are():
    member = make(caps=Caps(epochs=1, entries=1, origins=1))
    for epoch in range(2, 6):
        observe(member, ("red", 1.0), ("blue", 1.0))
        member.committed(member.new_life(epoch, 0.0))
    assert len(member.entries()) == 8
    again = make(begins=False, caps=Caps(epochs=1, entries=1, origins=1))
    again.restore(Stored("mesh", "n", member.life, entries=member.entries()))
    assert len(again.entries()) == 8


# Estimates are those of hearing, whatever happened.


def test_estimates_made_anew_are_those_of_hearing():
    rng = random.Random(1)
    arms = ["red", "blue", "grey"]
    statistics = [
        (f"o{rng.randrange(5)}", rng.randrange(2), rng.choice([*arms, "far"]), rng.randint(1, 9), rng.gauss(0, 3), 4)
        for _ in range(200)
    ]
    member, other = make(arms=arms), make(arms=["far"])
    for place in range(0, 200, 10):
        for one in (member, other):
            hear(one, "p", *statistics[place : place + 10])
            observe(one, *[(arm, 0.1 * place) for arm in arms if one is member])
    assert [own.count for own in member.own()] == [20] * 3
    other.set_arms([ArmSpec(arm, sigma=1.0) for arm in arms])
    for arm, (count, total) in other.estimates().items():
        own_count, own_total = next((own.count, own.total) for own in member.own() if own.arm == arm)
        assert count + own_count == member.estimates()[arm][0]
        assert math.isclose(total + own_total, member.estimates()[arm][1], abs_tol=1e-9)


@pytest.mark.parametrize("steps", [[1.0], [9e21, 9e16, 9e11, 9e6, 1.0]])
def test_enormous_sum_that_has_left_leaves_nothing_behind(steps):
    member = make(arms=["red", "blue"])
    observe(member, ("red", 3.0), ("blue", 2.0))
    hear(member, "p", ("o", 1, "red", 1, 4.0, 4), ("liar", 1, "red", 2**50, 9e26, 4))
    for more, total in enumerate(steps, start=1):
        hear(member, "p", ("liar", 1, "red", 2**50 + more, total, 4))
    count = 2 + 2**50 + len(steps)
    assert member.estimates() == {"red": (count, 8.0), "blue": (1, 2.0)}


def test_enormous_sums_that_cancel_leave_the_others_visible():
    member = make(arms=["red"])
    observe(member, ("red", 3.0))
    for _ in range(2):
        hear(member, "p", ("liar", 1, "red", 2**50, 9e26, 4), ("liar", 2, "red", 2**50, -9e26, 4))
        assert member.estimates()["red"] == (1 + 2**51, 3.0)
    hear(member, "p", ("liar", 1, "red", 2**50 + 1, 1.0, 4), ("liar", 2, "red", 2**50 + 1, -2.0, 4))
    assert member.estimates()["red"] == (3 + 2**51, 2.0)


def test_sums_that_retired_lives_had_are_gone():
    member = make(arms=["red"])
    observe(member, ("red", 7.0))
    hear(member, "p", ("liar", 1, "red", 2**50, 9e26, 4))
    member.retire([("liar", 1)])
    assert member.estimates()["red"] == (1, 7.0)


# What is shown.


def test_snapshot_shows_what_is_known_of_each_arm():
    member = make(arms=["red", "blue"], epoch=7, links="p")
    _, ticket = member.choose(0.0)
    observe(member, Observation(1.0, ticket))
    hear(member, "p", ("o", 1, "red", 2, 5.0, 4), ("o", 2, "red", 1, 0.0, 4), ("n", 9, "red", 1, 2.0, 4))
    seen = member.snapshot()
    assert (seen.mesh, seen.node, seen.epoch, seen.start, seen.n_choices) == ("mesh", "n", f"{7:016x}", 1, 1)
    red, blue = seen.arms
    assert (red.own_count, red.heard_count, red.mean, red.n_origins) == (1, 4, 1.6, 1)
    assert member.own() == [OwnArm("red", 1, 1.0, told_count=1, told_total=1.0, n_chosen=1)]
    assert red.index == 1.6 + math.sqrt(3 * math.log(2)) * (1 / math.sqrt(5))
    assert (blue.own_count, blue.mean, blue.index, blue.n_origins) == (0, None, None, 0)
    assert member.waiting("p") == 2
    assert seen.counters["heard_news"] == 3
    assert {name: cap.used for name, cap in seen.caps.items()} == {
        "origins": 1, "epochs": 2, "arms": 2, "entries": 3, "entries_per_origin": 2, "own_entries": 2, "segments": 0,
        "links": 1,
    }  # fmt: skip


def test_policy_that_draws_or_compares_something_else_shows_no_index():
    for policy in (bm.ThompsonSampling(), bm.EpsilonGreedy()):
        member = make(policy=policy)
        observe(member, ("red", 1.0))
        assert member.snapshot().arms[0].index is None


def test_node_has_no_link_with_itself():
    with pytest.raises(bm.InputError, match="got a link with itself"):
        make("n").link_up("n")


# Names.


def test_names_are_printable_text_of_128_bytes_at_most():
    for good in ("a", "a b", "ö" * 64, "🙂", "x" * 128):
        assert check_name("node", good) == good
        assert parse_uri(uri(good, "a/b")) == (good, "a/b")
    for wrong in ("", "x" * 129, "ö" * 65, "a\tb", "\x7f", "\ud800", None, b"a", 7):
        with pytest.raises(bm.InputError, match="node must be 1 to 128 bytes of printable text, got"):
            check_name("node", wrong)


@pytest.mark.parametrize(
    "text",
    ["", "banditmesh://a", "banditmesh://a/b/c", "banditmesh:///b", "http://a/b", "banditmesh://a/b?c",
     "banditmesh://a/%ff", "banditmesh://a/b%0a", "banditmesh://%61/b", "banditmesh://a/b ", "banditmesh://a/ö"],
)  # fmt: skip
def test_address_that_is_not_written_the_one_way_is_refused(text):
    with pytest.raises(bm.InputError, match="a member's address must be like banditmesh://mesh/node, got"):
        parse_uri(text)


def test_epochs_are_sixteen_digits():
    for epoch in (0, 255, 2**64 - 1):
        assert parse_epoch(epoch_text(epoch)) == epoch
    for wrong in ("", "ff", "0" * 17, "F" * 16, "g" * 16, " " + "0" * 15, 7, None):
        with pytest.raises(bm.InputError, match="an epoch must be 16 hexadecimal digits in lower case"):
            parse_epoch(wrong)


def test_caps_are_numbers_of_at_least_one():
    with pytest.raises(bm.InputError, match=r"caps.entries must be an integer of at least 1, got 0"):
        Caps(entries=0)


def test_ticket_of_another_life_is_refused_although_one_of_the_same_number_closes_with_it():
    member = make(epoch=2)
    _, old = make(epoch=1).choose(0.0)
    _, new = member.choose(0.0)
    assert new[1:3] == old[1:3]
    first, second = observe(member, Observation(1.0, new), Observation(1.0, old))
    assert (first.outcome, second.outcome) == (COUNTED, REFUSED)


def test_choices_made_while_a_new_life_is_written_leave_its_tickets_alone():
    member = make()
    commit = member.new_life(2, 0.0)
    for _ in range(3):
        member.choose(0.0)
    member.committed(commit)
    _, ticket = member.choose(0.0)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED
