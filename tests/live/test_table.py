"""What becomes of a statistic that comes, and what goes out again: each rule of hearing and telling by hand."""

import contextlib
import itertools
import math

import pytest
from members import ALL, counted, hear, known, make, observe, taken

import banditmesh as bm
from banditmesh.core import Copy, Message, Place
from banditmesh.live.certificates import ACCEPTED
from banditmesh.live.disk import Life, Stored, schema
from banditmesh.live.disk.schema import UnusableError
from banditmesh.live.member import ArmSpec
from banditmesh.live.names import MAX_COUNT, Caps
from banditmesh.live.statistics import Entry, Statistic, Values, policy_arms, why_refused

# Flooding relays everything; a node with no arms relays under FwA, too.


def relay(*links, protocol=None, **settings):
    """A node without arms, with these links."""
    return make("n", (), protocol or bm.Flooding(4), links=links, **settings)


# Rule 1: what is out of range is refused, and counted.


@pytest.mark.parametrize(
    "statistic, reason",
    [
        (("o", 1, "red", 0, 0.0, 3), "count"),
        (("o", 1, "red", -1, 0.0, 3), "count"),
        (("o", 1, "red", MAX_COUNT + 1, 0.0, 3), "count"),
        (("o", 1, "red", 2**60, 0.0, 3), "count"),
        (("o", 1, "red", 2, 2.1e12, 3), "sum"),
        (("o", 1, "red", 2, -2.1e12, 3), "sum"),
        (("o", 1, "red", 1, math.nan, 3), "sum"),
        (("o", 1, "red", 1, math.inf, 3), "sum"),
        (("o", 1, "red", 1, 0.5, 0), "ttl"),
        (("o", 1, "red", 1, 0.5, -1), "ttl"),
        (("", 1, "red", 1, 0.5, 3), "names"),
        (("o" * 129, 1, "red", 1, 0.5, 3), "names"),
        (("ö" * 65, 1, "red", 1, 0.5, 3), "names"),
        (("o\n", 1, "red", 1, 0.5, 3), "names"),
        (("\ud800", 1, "red", 1, 0.5, 3), "names"),
        (("o", 1, "", 1, 0.5, 3), "names"),
        (("o", -1, "red", 1, 0.5, 3), "names"),
        (("o", 2**64, "red", 1, 0.5, 3), "names"),
    ],
)
def test_field_out_of_its_range_is_refused_and_counted(statistic, reason):
    member = make(links="pq")
    hear(member, "p", statistic)
    assert counted(member, f"refused_{reason}", "heard_news") == (1, 0)
    assert member.entries() == []
    assert known(member)["red"] == (0, None)
    assert taken(member, "q") == []


@pytest.mark.parametrize("statistic", [("o", 0, "red", 1, -0.0, 1), ("ö" * 64, 2**64 - 1, "x y", MAX_COUNT, 9e27, 4)])
def test_field_at_the_end_of_its_range_is_accepted(statistic):
    member = make(links="pq")
    hear(member, "p", statistic)
    assert counted(member, "heard_news") == (1,)


def test_sum_is_accepted_though_rounding_carries_it_out_of_its_range():
    total = 0.0
    for _ in range(1000):
        total += 0.1
    assert total < 1000 * 0.1
    member = make(arms=[ArmSpec("red", sigma=1.0, reward_range=(0.1, 0.2)), "blue"])
    most = math.nextafter(1000 * 1e12, math.inf)
    hear(member, "p", ("o", 1, "red", 1000, total, 1), ("o", 1, "blue", 1000, most, 1))
    assert counted(member, "heard_news", "refused_reward_range", "refused_sum") == (2, 0, 0)


def test_sum_must_be_within_the_range_of_rewards_of_an_arm_that_the_node_has():
    member = make(arms=[ArmSpec("red", reward_range=(0.0, 1.0)), ArmSpec("blue")])
    for total in (1.5, 2.0, 2.0 + 2**-51, 2.001, -0.001):
        hear(member, "p", ("o", 1, "red", 2, total, 1), ("o", 1, "blue", 2, total, 1), ("o", 1, "far", 2, total, 1))
    assert counted(member, "refused_reward_range") == (2,)
    assert known(member)["red"][0] == 2


def test_one_bad_statistic_does_not_keep_others_out():
    member = make()
    hear(member, "p", ("o", 1, "red", 0, 0.0, 3), ("o", 1, "red", 2, 1.0, 3), ("", 1, "red", 2, 1.0, 3))
    assert known(member)["red"] == (2, 0.5)


# Rule 2: the ttl.


def test_ttl_falls_by_one_and_is_at_most_that_of_the_protocol():
    member = relay("p", "q")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 2), ("o", 1, "blue", 1, 0.5, 255))
    assert taken(member, "q") == [("o", 1, "red", 1, 0.5, 1), ("o", 1, "blue", 1, 0.5, 3)]


def test_max_ttl_may_be_configured():
    member = relay("p", "q", max_ttl=7)
    hear(member, "p", ("o", 1, "red", 1, 0.5, 9))
    assert taken(member, "q") == [("o", 1, "red", 1, 0.5, 6)]


def test_statistic_on_its_last_hop_is_learned_but_not_passed_on():
    member = make(protocol=bm.Flooding(4), links="pq")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 1))
    assert known(member)["red"] == (1, 0.5)
    assert counted(member, "news_expired") == (1,)
    assert taken(member, "q") == []


# Rule 3: news, extended, conflict, stale.


def test_larger_count_is_news_and_only_the_difference_is_learned():
    member = make()
    hear(member, "p", ("o", 1, "red", 2, 1.0, 1))
    hear(member, "q", ("o", 1, "red", 5, 4.0, 1))
    assert known(member)["red"] == (5, 0.8)
    assert counted(member, "heard_news", "learned") == (2, 2)


def test_smaller_or_equal_count_is_stale_whoever_sends_it():
    member = make()
    hear(member, "p", ("o", 1, "red", 5, 4.0, 1))
    hear(member, "q", ("o", 1, "red", 2, 1.0, 4), ("o", 1, "red", 5, 4.0, 1))
    assert known(member)["red"] == (5, 0.8)
    assert counted(member, "heard_stale") == (2,)


def test_lives_and_arms_of_an_origin_are_apart():
    member = make()
    hear(member, "p", ("o", 1, "red", 2, 1.0, 1), ("o", 2, "red", 1, 0.5, 1), ("o", 1, "blue", 1, 3.0, 1))
    assert known(member) == {"red": (3, 0.5), "blue": (1, 3.0)}


def test_same_statistic_with_more_hops_left_is_extended_and_travels_further():
    member = relay("p", "q", "r")
    hear(member, "p", ("o", 1, "red", 2, 1.0, 1))
    assert taken(member, "q") == []
    hear(member, "q", ("o", 1, "red", 2, 1.0, 3))
    assert counted(member, "heard_news", "heard_extended", "learned") == (1, 1, 0)
    assert taken(member, "q") == []
    assert taken(member, "r") == [("o", 1, "red", 2, 1.0, 2)]
    # Nobody had it from this member before: to its neighbours it is news. Sent once more it is not.
    assert counted(member, "sent_news", "sent_extended") == (1, 0)
    hear(member, "p", ("o", 1, "red", 2, 1.0, 4))
    assert taken(member, "r") == [("o", 1, "red", 2, 1.0, 3)]
    assert counted(member, "sent_news", "sent_extended") == (1, 1)


def test_extended_statistic_is_not_learned_again():
    member = make(protocol=bm.Flooding(4), links="pq")
    hear(member, "p", ("o", 1, "red", 2, 1.0, 2))
    hear(member, "p", ("o", 1, "red", 2, 1.0, 4))
    assert known(member)["red"] == (2, 0.5)


def test_news_has_the_hops_of_its_own_count():
    member = relay("p", "q")
    hear(member, "p", ("o", 1, "red", 1, 1.0, 4))
    hear(member, "p", ("o", 1, "red", 2, 1.5, 2))
    assert taken(member, "q") == [("o", 1, "red", 2, 1.5, 1)]


@pytest.mark.parametrize("totals", [(1.0, 3.0), (3.0, 1.0)])
def test_conflict_is_counted_and_the_larger_sum_wins(totals):
    member = make(protocol=bm.Flooding(4), links="pq")
    for total in totals:
        hear(member, "p", ("o", 1, "red", 2, total, 2))
    assert known(member)["red"] == (2, 1.5)
    assert counted(member, "heard_conflicts") == (1,)
    assert taken(member, "q") == [("o", 1, "red", 2, 3.0, 1)]


def test_conflict_before_anything_was_learned():
    member = make()
    member.hear([Statistic("o", 1, "red", 2, 1.0, 2), Statistic("o", 1, "red", 2, 3.0, 2)], "p")
    member.settle()
    assert known(member)["red"] == (2, 1.5)


# Rule 4: what passes.


def test_relay_goes_to_all_links_but_the_one_it_came_from():
    member = relay("p", "q", "r")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4))
    assert [taken(member, peer) for peer in "pqr"] == [[], *[[("o", 1, "red", 1, 0.5, 3)]] * 2]
    assert counted(member, "news_relayed", "sent_news") == (1, 2)


def test_absorbing_node_learns_and_does_not_relay():
    member = make(protocol=bm.FwA(4), links="pq")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4), ("o", 1, "far", 1, 0.5, 4))
    assert taken(member, "q") == [("o", 1, "far", 1, 0.5, 3)]
    assert counted(member, "news_absorbed", "news_relayed", "learned") == (1, 1, 1)


def test_statistic_that_is_stopped_is_learned_and_no_longer_passes():
    member = make(protocol=bm.ProbabilisticFlooding(4, stop=0.0), links="pqr")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4))
    member.set_protocol(bm.ProbabilisticFlooding(4, stop=1.0))
    hear(member, "p", ("o", 1, "red", 2, 0.5, 4))
    assert known(member)["red"] == (2, 0.25)
    # It waited from before, but leaves unsent now that it does not pass.
    assert taken(member, "q") == []
    assert counted(member, "news_stopped", "left_unsent") == (1, 1)


def test_gossip_relays_to_as_many_drawn_links_as_it_says():
    member = relay(*"pqrst", protocol=bm.Gossip(4, fanout=2))
    for number in range(20):
        hear(member, "p", ("o", 1, f"arm {number}", 1, 0.5, 4))
    sent = [len(taken(member, peer)) for peer in "pqrst"]
    assert sent[0] == 0
    assert sum(sent) == 40
    assert min(sent[1:]) > 2


def test_silent_node_refuses_what_it_is_sent():
    member = make(protocol=bm.NoCooperation(), links="pq")
    observe(member, ("red", 0.5))
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4))
    assert counted(member, "refused_ttl") == (1,)
    assert taken(member, "p") == []


# Rule 5: the memory of a neighbour.


def test_news_of_a_neighbour_goes_to_that_neighbour_too():
    member = make(protocol=bm.FwA(4), links="poq")
    hear(member, "p", ("o", 1, "red", 3, 0.5, 1))
    assert taken(member, "o") == [("o", 1, "red", 3, 0.5, 1)]
    assert taken(member, "q") == []
    assert counted(member, "sent_memory") == (1,)


def test_news_from_its_origin_does_not_go_back():
    member = relay("o", "q")
    hear(member, "o", ("o", 1, "red", 3, 0.5, 4))
    assert taken(member, "o") == []


# Rule 6: hearing of oneself.


def test_earlier_life_comes_back_with_the_full_ttl_to_all_links():
    member = make("n", epoch=2, links="pq")
    hear(member, "p", ("n", 1, "red", 3, 1.5, 1))
    assert known(member)["red"] == (3, 0.5)
    assert taken(member, "p") == taken(member, "q") == [("n", 1, "red", 3, 1.5, 4)]
    hear(member, "p", ("n", 1, "red", 3, 1.5, 4), ("n", 1, "red", 2, 1.0, 4))
    assert counted(member, "heard_news", "heard_stale", "heard_extended") == (1, 2, 0)
    assert taken(member, "q") == []


def test_where_there_are_keys_it_believes_of_itself_only_what_is_signed_though_unsigned_ones_are_accepted():
    member = make(epoch=2, links="p", signatures=ACCEPTED)
    hear(member, "p", ("n", 1, "red", 1, 0.5, 4), ("n", 2, "red", 1, 0.5, 4), ("o", 1, "red", 1, 0.5, 4))
    assert counted(member, "refused_unsigned", "heard_unsigned", "heard_proofs") == (2, 1, 0)
    assert [entry.key for entry in member.entries()] == [("o", 1, "red")]


def test_what_it_told_itself_is_stale():
    member = make("n", epoch=2, links="p")
    observe(member, ("red", 0.5), ("red", 1.0))
    hear(member, "p", ("n", 2, "red", 2, 1.5, 3), ("n", 2, "red", 1, 0.5, 3))
    assert counted(member, "heard_stale") == (2,)
    assert member.needs_new_life() is None


@pytest.mark.parametrize("count, total", [(3, 2.0), (2, 1.25)])
def test_more_than_it_told_proves_that_the_state_is_an_older_copy(count, total):
    member = make("n", epoch=2, links="p")
    observe(member, ("red", 0.5), ("red", 1.0))
    hear(member, "p", ("n", 2, "red", count, total, 3))
    assert "older copy" in member.needs_new_life()
    assert known(member)["red"] == (2, 0.75)


def test_what_was_observed_but_not_told_proves_it_too():
    member = make("n", protocol=bm.FwA(4, emission=bm.Growth(9.0)), epoch=2)
    for _ in range(3):
        observe(member, ("red", 0.5))
    assert member.own()[0].told_count == 1
    hear(member, "p", ("n", 2, "red", 2, 1.0, 3))
    assert "older copy" in member.needs_new_life()


def test_own_present_life_is_heard_of_when_there_is_no_room_for_earlier_ones():
    member = make("n", epoch=9, caps=Caps(entries_per_origin=1))
    hear(member, "p", ("n", 1, "red", 1, 0.5, 1), ("n", 2, "red", 1, 0.5, 1), ("n", 9, "red", 1, 0.5, 1))
    assert counted(member, "refused_own_entries") == (1,)
    assert member.needs_new_life()


# Rule 8: what changes while it runs.


def test_added_arm_knows_at_once_what_was_heard_of_it():
    member = make(arms=["red"], links="pq")
    hear(member, "p", ("o", 1, "blue", 4, 2.0, 4))
    assert taken(member, "q") == [("o", 1, "blue", 4, 2.0, 3)]
    member.set_arms([ArmSpec("blue", sigma=1.0)])
    assert known(member) == {"blue": (4, 0.5)}
    member.link_up("q")
    assert taken(member, "q") == []


def test_removed_arm_is_relayed_and_comes_back_with_all_that_was_known():
    member = make(arms=["red", "blue"], links="pq")
    observe(member, ("blue", 1.0))
    hear(member, "p", ("o", 1, "blue", 4, 2.0, 4))
    assert taken(member, "q") == [("n", 1, "blue", 1, 1.0, 4)]
    member.set_arms([ArmSpec("red", sigma=1.0)])
    assert {member.choose(0.0)[0] for _ in range(9)} == {"red"}
    assert taken(member, "p") == [("n", 1, "blue", 1, 1.0, 4), ("o", 1, "blue", 4, 2.0, 3)]
    assert taken(member, "q") == [("o", 1, "blue", 4, 2.0, 3)]
    member.set_arms([ArmSpec("blue", sigma=1.0)])
    assert known(member) == {"blue": (5, 0.6)}


def test_change_of_protocol_decides_anew_what_passes():
    member = make(protocol=bm.FwA(4), links="pq")
    hear(member, "p", ("o", 1, "red", 4, 2.0, 4))
    assert taken(member, "q") == []
    member.set_protocol(bm.Flooding(4))
    assert taken(member, "q") == [("o", 1, "red", 4, 2.0, 3)]
    assert taken(member, "p") == [("o", 1, "red", 4, 2.0, 3)]


def test_what_it_told_goes_out_again_when_it_may_travel_further():
    member = make(protocol=bm.FwA(1), links="p")
    observe(member, ("red", 1.0))
    hear(member, "p", ("n", 7, "red", 2, 2.0, 1))
    assert len(taken(member, "p")) == 2
    member.set_protocol(bm.FwA(3))
    assert taken(member, "p") == [("n", 1, "red", 1, 1.0, 3), ("n", 7, "red", 2, 2.0, 3)]
    member.set_protocol(bm.FwA(2))
    assert taken(member, "p") == []


def ranged(low, high):
    return [ArmSpec("red", sigma=1.0, reward_range=(low, high))]


def test_what_a_new_range_does_not_allow_is_kept_unused_and_not_relayed_until_the_range_is_right_again():
    member = make(arms=["red"], protocol=bm.Flooding(4), links="p")
    hear(member, "q", ("o", 1, "red", 2, 5.0, 4), ("r", 1, "red", 2, 1.0, 4), ("n", 7, "red", 1, 3.0, 4))
    assert known(member)["red"] == (5, 9.0 / 5)
    assert not member.set_arms(ranged(0.0, 1.0))
    # What the node saw itself is used, whatever the range is now.
    assert known(member)["red"] == (3, 4.0 / 3)
    assert {one[:2] for one in taken(member, "p")} == {("r", 1), ("n", 7)}
    assert member.dirty_entries()[1] == []
    member.link_up("s")
    assert {one[:2] for one in taken(member, "s")} == {("r", 1), ("n", 7)}
    member.set_arms(ranged(0.0, 10.0))
    assert known(member)["red"] == (5, 9.0 / 5)
    assert taken(member, "p") == taken(member, "s") == [("o", 1, "red", 2, 5.0, 3)]


def test_what_comes_inside_the_range_takes_the_place_of_what_is_outside():
    member = make(arms=["red"], protocol=bm.Flooding(4), links="p")
    hear(member, "q", ("o", 1, "red", 2, 5.0, 4), ("r", 1, "red", 2, -5.0, 4))
    taken(member, "p")
    member.set_arms(ranged(0.0, 1.0))
    hear(member, "q", ("o", 1, "red", 1, 1.0, 4), ("o", 1, "red", 2, 1.0, 4), ("o", 1, "red", 9, 5.5, 4))
    assert known(member)["red"] == (9, 5.5 / 9)
    hear(member, "q", ("o", 1, "red", 10, 6.5, 4), ("r", 1, "red", 2, 1.5, 4))
    assert known(member)["red"] == (12, 8.0 / 12)
    assert {one[:5] for one in taken(member, "p")} == {("o", 1, "red", 10, 6.5), ("r", 1, "red", 2, 1.5)}


def test_member_says_whether_something_was_refused_of_which_the_range_is_another_one_now():
    member = make(arms=ranged(0.0, 1.0))
    assert not member.set_arms(ranged(0.0, 2.0))
    hear(member, "p", ("o", 1, "red", 2, 5.0, 4))
    assert not member.set_arms([*ranged(0.0, 2.0), ArmSpec("blue", sigma=1.0)])
    assert member.set_arms(ranged(0.0, 3.0))
    assert not member.set_arms(ranged(0.0, 4.0))


# Telling and outboxes.


def test_offer_of_a_new_link_is_all_that_passes_and_its_own_memory():
    member = make(protocol=bm.FwA(4))
    observe(member, ("red", 1.0))
    hear(
        member,
        "p",
        ("o", 1, "far", 1, 0.5, 4),
        ("o", 1, "red", 1, 0.5, 4),
        ("o", 1, "end", 1, 0.5, 1),
        ("q", 1, "red", 1, 0.5, 1),
        ("n", 7, "red", 1, 0.5, 1),
    )
    told = {("n", 1, "red", 1, 1.0, 4), ("o", 1, "far", 1, 0.5, 3), ("n", 7, "red", 1, 0.5, 4)}
    for peer, memory in (("x", set()), ("q", {("q", 1, "red", 1, 0.5, 1)})):
        member.link_up(peer)
        assert set(taken(member, peer)) == told | memory
    # Nothing is remembered of a link that was there before.
    member.link_down("x")
    assert member.waiting("x") == 0
    member.link_up("x")
    assert set(taken(member, "x")) == told
    assert counted(member, "sent_offers") == (10,)


def test_offers_start_at_a_random_place_and_go_on_in_turn():
    member = make(protocol=bm.Flooding(4))
    hear(member, "p", *[("o", 1, f"{number:02d}", 1, 0.5, 4) for number in range(50)])
    firsts = set()
    for _ in range(10):
        member.link_up("x")
        arms = [int(one[2]) for one in taken(member, "x")]
        assert arms == [(arms[0] + place) % 50 for place in range(50)]
        firsts.add(arms[0])
    assert len(firsts) > 5


def test_key_that_waits_stays_where_it_is_and_is_sent_as_it_is_then():
    member = relay("p", "q")
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4), ("o", 1, "blue", 1, 0.5, 4), ("o", 1, "red", 7, 3.5, 4))
    assert member.waiting("q") == 2
    assert taken(member, "q") == [("o", 1, "red", 7, 3.5, 3), ("o", 1, "blue", 1, 0.5, 3)]
    assert counted(member, "waited_already", "sent_news") == (1, 2)


def test_batch_has_so_many_bytes_at_most_and_one_statistic_at_least():
    member = relay("p", "q")
    hear(member, "p", *[("o", 1, f"arm {number}", 1, 0.5, 4) for number in range(10)])
    sizes = []
    while batch := member.take("q", 150):
        sizes.append(len(batch))
    assert sum(sizes) == 10
    assert max(sizes) == 3
    hear(member, "p", ("o", 1, "arm 1", 2, 0.5, 4))
    assert len(member.take("q", 1)) == 1
    assert member.take("nobody", ALL) == []


def test_what_no_longer_passes_leaves_unsent_but_not_the_memory_of_its_origin():
    member = make(arms=["red"], protocol=bm.FwA(4), links="poq")
    hear(member, "p", ("o", 1, "blue", 1, 0.5, 4))
    member.set_arms([ArmSpec("blue", sigma=1.0)])
    assert taken(member, "q") == []
    assert taken(member, "o") == [("o", 1, "blue", 1, 0.5, 1)]
    assert counted(member, "left_unsent") == (1,)


# Caps, retirement and ignoring.


@pytest.mark.parametrize(
    "cap, fits, refused",
    [
        ({"origins": 1}, ("o", 2, "red"), ("q", 1, "red")),
        ({"epochs": 1}, ("q", 1, "red"), ("o", 2, "red")),
        ({"entries_per_origin": 2}, ("o", 2, "blue"), ("o", 1, "blue")),
        ({"entries": 2}, ("o", 1, "blue"), ("o", 1, "grey")),
    ],
)
def test_new_thing_beyond_a_cap_is_refused_and_nothing_is_evicted(cap, fits, refused):
    member = make(caps=Caps(**cap))
    name = next(iter(cap))
    known_before = ("o", 1, "red")
    hear(member, "p", (*known_before, 1, 0.5, 4), (*fits, 1, 0.5, 4), (*refused, 1, 0.5, 4))
    assert {one.key for one in member.entries()} == {known_before, fits}
    assert counted(member, f"refused_{name}") == (1,)
    # What is known may still grow, and own earlier lives are not refused.
    hear(member, "p", (*known_before, 2, 0.5, 4), ("n", 7, "new", 1, 0.5, 4))
    assert counted(member, "heard_news") == (4,)


def test_arms_of_others_do_not_use_up_those_of_the_node():
    member = make(arms=["red"], caps=Caps(arms=2))
    hear(member, "p", *(("o", 1, f"arm {number}", 1, 0.5, 4) for number in range(9)))
    assert len(member.entries()) == 9
    member.set_arms([ArmSpec("red", sigma=1.0), ArmSpec("arm 8", sigma=1.0)])
    assert known(member)["arm 8"] == (1, 0.5)


def test_node_warns_from_three_quarters_of_a_cap_on():
    member = make(arms=["red"], caps=Caps(entries=4, links=1))
    hear(member, "p", ("o", 1, "red", 1, 0.5, 4), ("o", 2, "red", 1, 0.5, 4))
    assert member.snapshot().warnings == []
    hear(member, "p", ("o", 3, "red", 1, 0.5, 4))
    assert member.snapshot().warnings == ["3 of 4 entries are in use (caps.entries)"]
    member.link_up("p")
    with pytest.raises(bm.InputError, match=r"at most 1 links \(caps.links\), got one more with 'q'"):
        member.link_up("q")
    assert counted(member, "refused_links") == (1,)
    member.link_up("p")


def test_retired_life_leaves_table_estimates_and_outboxes_and_is_refused_from_then_on():
    member = make(arms=["red"], protocol=bm.Flooding(4), links="pq")
    hear(member, "p", ("o", 1, "red", 2, 1.0, 4), ("o", 2, "red", 3, 3.0, 4), ("r", 1, "red", 1, 0.5, 4))
    member.retire([("o", 1), ("o", 5)])
    assert known(member)["red"] == (4, 0.875)
    assert [one[:2] for one in taken(member, "q")] == [("o", 2), ("r", 1)]
    hear(member, "p", ("o", 1, "red", 9, 1.0, 4), ("o", 5, "red", 9, 1.0, 4))
    assert counted(member, "refused_retired") == (2,)
    assert member.dirty_entries()[1] == [("o", 1, "red")]


def test_node_warns_from_three_quarters_of_the_lives_of_a_name_on():
    member = make("n", arms=["red"])
    hear(member, "p", *[("o", epoch, "red", 1, 1.0, 4) for epoch in range(1, 48)])
    assert (member.snapshot().warnings, member.snapshot().many_lives) == ([], {})
    hear(member, "p", ("o", 48, "red", 1, 1.0, 4), *[("r", epoch, "red", 1, 1.0, 4) for epoch in range(1, 99)])
    assert member.snapshot().many_lives == {"r": 64, "o": 48}
    assert counted(member, "refused_epochs") == (34,)
    assert [line[:60] for line in member.snapshot().warnings] == [
        "'r' has 64 lives, and after 64 (caps.epochs) a new one is no",
        "'o' has 48 lives, and after 64 (caps.epochs) a new one is no",
    ]
    assert all("`banditmesh keys retire`" in line for line in member.snapshot().warnings)
    member.retire([("r", epoch) for epoch in range(1, 99)])
    member.retire([("o", 1)])
    assert member.snapshot().warnings == []


def test_node_warns_of_many_lives_of_its_own():
    member = make("n", arms=["red"], epoch=100)
    hear(member, "p", *[("n", epoch, "red", 1, 1.0, 4) for epoch in range(1, 47)])
    assert member.snapshot().many_lives == {}
    hear(member, "p", ("n", 47, "red", 1, 1.0, 4))
    assert member.snapshot().many_lives == {"n": 48}


def test_warnings_of_many_names_are_few_lines():
    member = make("n", arms=["red"], caps=Caps(epochs=2))
    hear(member, "p", *[(f"o{number}", epoch, "red", 1, 1.0, 4) for number in range(30) for epoch in (1, 2)])
    assert len(member.snapshot().many_lives) == 30
    assert len(member.snapshot().warnings) == 11
    assert member.snapshot().warnings[-1] == "20 more names have nearly as many lives as caps.epochs allows"


def test_node_warns_of_what_is_outside_of_a_range():
    member = make(arms=["red"])
    hear(member, "q", ("o", 1, "red", 2, 5.0, 4), ("r", 1, "red", 2, 1.0, 4))
    member.set_arms(ranged(0.0, 1.0))
    [line] = member.snapshot().warnings
    assert line == "of arm 'red', statistics of others are outside of its reward_range: 1, unused until it allows them"


def test_ignored_names_and_lives_are_refused_as_long_as_they_are_ignored():
    member = make(arms=["red"], ignore=["r", ("o", 1)])
    statistics = [("o", 1, "red", 2, 1.0, 4), ("o", 2, "red", 3, 3.0, 4), ("r", 1, "red", 1, 0.5, 4)]
    hear(member, "p", *statistics)
    assert [one.key for one in member.entries()] == [("o", 2, "red")]
    assert counted(member, "refused_ignored") == (2,)
    member.set_ignore([("o", 2)])
    assert member.entries() == []
    assert member.dirty_entries()[1] == [("o", 2, "red")]
    hear(member, "p", *statistics)
    assert known(member)["red"] == (3, 0.5)
    member.set_ignore([])
    hear(member, "p", *statistics)
    # A key that came back is not to be removed from what is stored.
    entries, removed = member.dirty_entries()
    assert ({one.key for one in entries}, removed) == ({one[:3] for one in statistics}, [])


def test_node_cannot_ignore_itself():
    with pytest.raises(bm.InputError, match="ignore must not name the node itself, got 'n'"):
        make("n", ignore=["n"])


# What is stored later.


def test_entries_that_changed_are_given_once_and_again_if_they_could_not_be_stored():
    member = make(arms=["red"])
    hear(member, "p", ("o", 1, "red", 2, 1.0, 4), ("r", 1, "far", 1, 0.5, 4))
    first, removed = member.dirty_entries(most=1)
    assert ([one.key for one in first], removed) == ([("o", 1, "red")], [])
    second, _ = member.dirty_entries()
    assert [(*one.key, one.count, one.total, one.ttl, one.passes) for one in second] == [
        ("r", 1, "far", 1, 0.5, 3, True)
    ]
    assert member.dirty_entries() == ([], [])
    member.not_stored(first, [])
    assert member.dirty_entries() == (first, [])
    member.retire([("o", 1)])
    member.not_stored(*member.dirty_entries())
    assert member.dirty_entries() == ([], [("o", 1, "red")])


# What is decided elsewhere, too.


class Scripted:
    """Chances that always draw the same."""

    def __init__(self, u):
        self.u = u

    def relay(self, *decided):
        return self.u

    index = relay

    def targets(self, message, agent, ttl, candidates, n):
        return candidates[:n]


PROTOCOLS = [bm.Flooding(4), bm.FwA(4), bm.IRS(), bm.ProbabilisticFlooding(4, 0.5), bm.Gossip(4, 2)]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
@pytest.mark.parametrize("ttl", [1, 2, 4])
@pytest.mark.parametrize("arm", ["red", "far"])
@pytest.mark.parametrize("u", [0.25, 0.75])
def test_table_relays_what_the_courier_of_the_simulator_relays_and_to_as_many(protocol, ttl, arm, u):
    ttl = min(ttl, protocol.ttl)
    member = make(arms=["red"], protocol=protocol, links="pqrs")
    member._chances = member._table._chances = member._outboxes._chances = Scripted(u)
    hear(member, "p", ("o", 1, arm, 1, 0.5, ttl))
    place = Place("n", policy_arms([ArmSpec("red", sigma=1.0)]), bm.UCB(), Scripted(u))
    agent = protocol.seat(place)
    receipt = agent.receive(Copy(Message("o", 0, arm, 1, 0.5), ttl), "p", degree=4)
    assert counted(member, f"news_{receipt.fate.name.lower()}") == (1,)
    targets = [name for parcel in agent.send(list("pqrs")) for name in parcel.targets]
    assert [peer for peer in "pqrs" if taken(member, peer)] == targets


REFUSED = [(0, 0.0), (MAX_COUNT + 1, 0.0), (1, 1.1e12), (2, -2.1e12), (1, math.nan), (3, math.inf)]


@pytest.mark.parametrize("count, total", [*REFUSED, (1, 1e12), (2, -2e12), (MAX_COUNT, 0.0)])
def test_wire_disk_and_callers_refuse_the_same(count, total):
    is_refused = why_refused(Values.of(count, total)) is not None
    assert is_refused == ((count, total) in REFUSED or math.isnan(total))
    member = make()
    hear(member, "p", ("o", 1, "red", count, total, 3))
    assert counted(member, "heard_news") == (not is_refused,)
    stored = Stored("mesh", "n", Life(1, 1, 0), entries=[Entry("o", 1, "red", count, total, 3, passes=True)])
    with pytest.raises(UnusableError) if is_refused else contextlib.nullcontext():
        schema._check(stored)
    if count == 1:
        with pytest.raises(bm.InputError) if is_refused else contextlib.nullcontext():
            ArmSpec("red").check_reward(total)


# Forgetting values, and the one order


def with_memory(count, total, weight, weighted_total, stamp, ttl=3):
    return ("o", 1, "red", count, total, ttl, weight, weighted_total, stamp)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ((3, 2.0, 4.0, 2.0, 1e9), "weight"),
        ((3, 2.0, 0.5, 0.25, 1e9), "weight"),
        ((3, 2.0, math.nan, 2.0, 1e9), "weight"),
        ((3, 2.0, 2.0, 2.0, 0.0), "weight"),
        ((3, 2.0, 0.0, 0.0, 1e9), "weight"),
        ((3, 2.0, 3.0, 1.0, 0.0), "weight"),
        ((3, 2.0, 2.0, 3e12, 1e9), "weighted_sum"),
        ((3, 2.0, 2.0, math.inf, 1e9), "weighted_sum"),
        ((3, 2.0, 2.0, math.nan, 1e9), "weighted_sum"),
        ((3, 2.0, 2.0, 1.5, -1.0), "stamp"),
        ((3, 2.0, 2.0, 1.5, math.inf), "stamp"),
        ((3, 2.0, 2.0, 1.5, math.nan), "stamp"),
    ],
)
def test_forgetting_value_out_of_its_range_is_refused_and_counted(value, reason):
    member = relay("p", "q")
    hear(member, "p", with_memory(*value))
    assert counted(member, f"refused_{reason}", "heard_news") == (1, 0)
    assert not member.entries()


def test_weighted_sum_must_be_in_the_range_of_the_arm_too():
    member = make(arms=[ArmSpec("red", sigma=1.0, reward_range=(0.0, 1.0))])
    hear(member, "p", with_memory(3, 2.0, 1.5, 1.75, 1e9))
    hear(member, "p", with_memory(3, 2.0, 1.5, 1.25, 1e9))
    assert counted(member, "refused_reward_range", "heard_news") == (1, 1)


def test_forgetting_values_travel_as_they_came_and_written_out_or_not_they_are_the_same():
    member = relay("p", "q")
    hear(member, "p", with_memory(3, 2.0, 2.5, 1.5, 1e9), ("o", 1, "blue", 2, 1.0, 3, 2.0, 1.0, 0.0))
    assert taken(member, "q") == [
        ("o", 1, "red", 3, 2.0, 2, 2.5, 1.5, 1e9, b"", b""),
        ("o", 1, "blue", 2, 1.0, 2),
    ]
    hear(member, "p", ("o", 1, "blue", 2, 1.0, 3))
    assert counted(member, "heard_news", "heard_stale", "heard_conflicts") == (2, 1, 0)


def test_of_two_statistics_of_a_key_the_larger_values_win_in_turn_whatever_comes_first():
    ranked = [
        (2, 1.0, 2.0, 1.0, 0.0),
        (3, 1.0, 2.0, 1.0, 1e9),
        (3, 2.0, 3.0, 2.0, 0.0),  # as a relay of version 1 leaves those that follow
        (3, 2.0, 2.0, 1.0, 1e9),
        (3, 2.0, 2.5, 1.0, 1e9),
        (3, 2.0, 2.5, 1.5, 1e9),
        (3, 2.0, 2.5, 1.5, 2e9),
    ]
    for lower, higher in itertools.combinations(ranked, 2):
        for order in ((lower, higher), (higher, lower)):
            member = relay("p", "q")
            for value in order:
                hear(member, "p", with_memory(*value))
            [entry] = member.entries()
            assert entry.values == Values(*higher)
            n_conflicts = int(lower[0] == higher[0] and (lower[:2] != higher[:2] or lower[4] > 0))
            assert counted(member, "heard_conflicts", "heard_news") == (n_conflicts, 1 + (order[0] == lower))


def test_what_the_present_life_told_is_compared_by_all_five_values():
    member = make(links="p")
    observe(member, ("red", 0.5))
    hear(member, "p", ("n", 1, "red", 1, 0.5, 3))
    assert member.needs_new_life() is None
    hear(member, "p", ("n", 1, "red", 1, 0.5, 3, 1.0, 0.5, 1e9))
    assert "older copy" in member.needs_new_life()
