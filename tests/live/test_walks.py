"""Changes that concern many rows, done in pieces: sound between any two of them, and the same in the end."""

import math
import random

import pytest
from members import make, observe

import banditmesh as bm
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.member import ArmSpec
from banditmesh.live.statistics import Statistic

ARMS = [f"arm {number}" for number in range(6)]


def a_member(piece):
    """One that knows 120 rows of six arms, of which it has two, in pieces of so many rows."""
    member = make("n", ARMS[:2], bm.FwA(4), links=("p", "q"))
    member.hear([heard(origin, arm) for origin in range(20) for arm in range(6)], "p")
    member.settle()
    observe(member, ("arm 0", 0.25), ("arm 1", 0.75))
    member.walks.piece = piece
    return member


def heard(origin, arm, count=1):
    return Statistic(f"o{origin}", 1 + origin % 2, f"arm {arm}", count, 0.5 * count, 3)


def others(member):
    """What there is of everything, except that the order in which rows wait may differ."""
    seen = member.snapshot()
    sent = {one.key: one for one in member.take("q", 10**9)}
    return sorted(member.entries(), key=lambda one: one.key), seen.arms, member.estimates(), sent, seen.caps


def check_sums(member):
    """What the estimates contain is what own statistics and table say, of each arm that there is to choose."""
    known = {}
    for one in [*member.entries(), *member.own()]:
        count, total = known.get(one.arm, (0, 0.0))
        known[one.arm] = count + one.count, total + one.total
    for arm, (count, total) in member.estimates().items():
        assert count == known.get(arm, (0, 0.0))[0], arm
        assert math.isclose(total, known.get(arm, (0, 0.0))[1], abs_tol=1e-9), arm


def other_arms(member):
    member.set_bandits([BanditSpec(name="default", arms=[ArmSpec(arm, sigma=1.0) for arm in ARMS[1:]])])


CHANGES = {
    "arms": other_arms,
    "a protocol": lambda member: member.set_protocol(bm.Flooding(4)),
    "ignored": lambda member: member.set_ignore([f"o{number}" for number in range(15)]),
    "retired": lambda member: member.retire([(f"o{number}", 1 + number % 2) for number in range(15)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change_in_pieces_is_sound_in_between_and_ends_as_at_once(change):
    whole, bits = a_member(None), a_member(1)
    news = [heard(19, arm, count) for count in range(2, 9) for arm in range(6)]
    change(whole)
    change(bits)
    assert not whole.walks.are_left
    assert bits.walks.are_left
    rng = random.Random(0)
    while bits.walks.are_left:
        check_sums(bits)
        assert bits.choose(rng.random()).arm in ARMS
        if news:
            one = news.pop(0)
            for member in (bits, whole):
                member.hear([one], "p")
                member.settle()
        bits.walks.go_on()
    check_sums(bits)
    assert sum(one.n_chosen for one in bits.own()) > sum(one.n_chosen for one in whole.own())
    bits_, whole_ = others(bits), others(whole)
    assert bits_[0] == whole_[0]
    assert [(one.name, one.own_count, one.heard_count, one.mean) for one in bits_[1]] == [
        (one.name, one.own_count, one.heard_count, one.mean) for one in whole_[1]
    ]
    assert bits_[2:] == whole_[2:]


def test_later_change_comes_after_what_is_left_of_an_earlier_one():
    member = a_member(1)
    member.retire([("o0", 1)])
    other_arms(member)  # arms need what came before to be done
    member.retire([("o1", 2)])
    while member.walks.go_on():
        check_sums(member)
    assert {entry.origin for entry in member.entries()} == {f"o{number}" for number in range(2, 20)}
    assert [arm.name for arm in member.snapshot().arms] == ARMS[1:]
