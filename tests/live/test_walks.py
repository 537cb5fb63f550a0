"""Changes that concern many rows, done in pieces: sound between any two of them, and the same in the end."""

import asyncio
import math
import random

import msgspec
import pytest
from members import make, observe
from simulated import run
from test_links import Site

import banditmesh as bm
from banditmesh.errors import NodeError
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.certificates import ACCEPTED, REQUIRED, Certificate, Certificates
from banditmesh.live.config import TrustConfig
from banditmesh.live.disk import Life, Stored
from banditmesh.live.member import ArmSpec
from banditmesh.live.statistics import Entry, Statistic

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


# --- what comes meanwhile


@pytest.mark.parametrize("change", [CHANGES["ignored"], CHANGES["retired"]], ids=["ignored", "retired"])
def test_life_of_which_rows_are_still_leaving_gets_no_new_ones(change):
    member = a_member(1)
    change(member)
    member.walks.go_on()
    assert "o14" in {entry.origin for entry in member.entries()}
    member.hear([heard(14, 7)], "p")
    member.walks.finish()
    assert {entry.origin for entry in member.entries()} == {f"o{number}" for number in range(15, 20)}
    member.hear([heard(14, 8)], "p")
    assert "o14" not in {entry.origin for entry in member.entries()}


def test_row_that_is_signed_while_unsigned_ones_leave_stays():
    certificates = Certificates("mesh")
    certificates.add(Certificate(b"c" * 16, b"", "o5", 0, 10**10, None), 0.0)
    member = make("n", ["arm 0"], bm.FwA(4), links=("p", "q"), certificates=certificates, signatures=ACCEPTED)
    member.hear([heard(origin, 0) for origin in range(9)], "p")
    member.settle()
    member.walks.piece = 1
    member.set_signatures(REQUIRED)
    assert len(member.entries()) == 9
    signed = msgspec.structs.replace(
        heard(5, 0), weight=1.0, weighted_total=0.5, certificate=b"c" * 16, signature=b"s" * 64
    )
    member.hear([signed], "q", is_checked=True)
    member.settle()
    member.walks.finish()
    assert [entry.origin for entry in member.entries()] == ["o5"]
    check_sums(member)


def test_rows_of_a_retired_life_that_a_crash_left_on_the_disk_are_taken_from_it():
    member = make(begins=False)
    entries = [Entry(origin, 1, "red", 1, 0.5, 3, passes=True) for origin in ("gone", "here")]
    member.restore(Stored("mesh", "n", Life(1, 1, 0), entries=entries, retired=[("gone", 1)]))
    assert [entry.origin for entry in member.entries()] == ["here"]
    assert member.dirty_entries()[1] == [("gone", 1, "red")]


# --- a whole node


async def a_node_with_many_rows(site, **more):
    """A node whose changes take many pieces."""
    node = site.node("a", **more)
    await node.start()
    member = node._member
    member.hear([Statistic(f"o{number}", 1, "red", 1, 0.5, 3) for number in range(200)], "p")
    member.settle()
    member.walks.piece = 1
    return node


def test_arm_that_a_choice_makes_while_a_change_waits_for_rows_to_leave_is_kept(tmp_path):
    async def main():
        red = [ArmSpec("red", sigma=1.0)]
        node = await a_node_with_many_rows(Site(tmp_path), arms=red, new_arms=True)
        node._member.retire([(f"o{number}", 1) for number in range(100)])
        change = asyncio.create_task(node.set_arms([*red, ArmSpec("blue", sigma=1.0)]))
        await asyncio.sleep(0)
        node.choose(["red", "grey"])
        assert not change.done()
        await change
        assert {arm.name for arm in node.config.arms} == {arm.name for arm in node.state().arms}
        assert {arm.name for arm in node.config.arms} == {"red", "blue", "grey"}
        await node.leave()

    run(main())


def test_node_chooses_while_arms_are_described_for_tests_of_what_others_tell(tmp_path):
    async def main():
        arms = [ArmSpec("red"), ArmSpec("blue")]
        node = await a_node_with_many_rows(Site(tmp_path), arms=arms)
        described = [msgspec.structs.replace(arm, sigma=1.0) for arm in arms]
        for changes in ({"arms": described, "trust": TrustConfig(trim=1)}, {"arms": arms, "trust": TrustConfig()}):
            change = asyncio.create_task(node.reload(msgspec.structs.replace(node.config, **changes)))
            n_between = 0
            while not change.done():
                await asyncio.sleep(0)
                assert node.choose().arm in ("red", "blue")
                n_between += not change.done()
            assert n_between > 0
            await change
        await node.leave()

    run(main())


def test_nothing_begins_on_a_node_that_has_ended_during_a_change(tmp_path):
    async def main():
        site = Site(tmp_path)
        node = await a_node_with_many_rows(site, arms=[ArmSpec("red", sigma=1.0)])
        peers = [bm.live.NeighbourConfig(name="b", address=site.address("b"))]
        config = msgspec.structs.replace(node.config, neighbours=peers, arms=[ArmSpec(arm, sigma=1.0) for arm in ARMS])
        change = asyncio.create_task(node.reload(config))
        while node.config is not config:
            await asyncio.sleep(0)
        assert not change.done()
        await node.abort()
        with pytest.raises(NodeError, match="must be running"):
            await change
        assert len(node._parts.tasks) == 0

    run(main())


def test_change_whose_caller_waits_no_longer_is_made_whole(tmp_path):
    async def main():
        site = Site(tmp_path)
        node = await a_node_with_many_rows(site, arms=[ArmSpec("red", sigma=1.0)])
        peers = [bm.live.NeighbourConfig(name="b", address=site.address("b"))]
        arms = [ArmSpec(arm, sigma=1.0) for arm in ("blue", "grey")]
        ignore = [f"o{number}" for number in range(100)]
        changes = {"protocol": bm.Flooding(3), "trust": TrustConfig(trim=1), "neighbours": peers, "ignore": ignore}
        config = msgspec.structs.replace(node.config, arms=arms, **changes)
        change = asyncio.create_task(node.reload(config))
        while node.config is not config:
            await asyncio.sleep(0)
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
        await node._parts.walked()
        state = node.state()
        assert [arm.name for arm in state.arms] == ["blue", "grey"]
        assert (state.protocol, state.trust.trim, [peer.name for peer in node.peers()]) == ("flooding(3)", 1, ["b"])
        await node.leave()

    run(main())
