"""Relays of version 1 strip weights and stamps: what is left says less of the same rewards, and beats nothing."""

import itertools
import random

import msgspec
import pytest
from members import make, observe

import banditmesh as bm
from banditmesh.live.statistics import Statistic, Values

MEMORY = "discount(half_life=1000)"


def stripped(one):
    """A statistic as a relay of version 1 passes it on."""
    return Statistic(*one.key, one.count, one.total, one.ttl)


def copies(seed):
    """Some copies of what an origin told of an arm, one after the other, with and without its memory."""
    rng = random.Random(seed)
    told = [Statistic("o", 1, "red", n, n / 2, 9, 1.0 + n / 4, n / 3, 100.0 + n) for n in (1, 2, 3)]
    found = [msgspec.structs.replace(rng.choice(told), ttl=rng.randrange(1, 6)) for _ in range(5)]
    return [stripped(one) if rng.random() < 0.5 else one for one in found]


@pytest.mark.parametrize("arms", [["red"], ["blue"]], ids=["with the arm", "without"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_order_the_same_stands_and_travels_as_far(seed, arms):
    heard = copies(seed)
    most = max(one.count for one in heard)
    last = [one for one in heard if one.count == most]
    best = next((one for one in last if one.stamp), last[0])
    for order in itertools.permutations(heard):
        node = make(arms=arms, memory=MEMORY, protocol=bm.FwA(5), now=200.0, links=["p", "q"])
        sent = {}
        for one in order:
            assert node.hear([one], "p") == []
            node.settle()
            for copy in node.take("q", 10**9):
                sent[copy.values.order] = max(sent.get(copy.values.order, 0), copy.ttl)
        [row] = node.entries()
        assert (row.values, row.ttl) == (best.values, max(one.ttl for one in last) - 1)
        assert row.passes == (arms == ["blue"] and row.ttl > 0)
        # A neighbour has what stands, with all the hops that are left.
        assert not row.passes or sent[best.values.order] == row.ttl
        faded = 2.0 ** -((200.0 - best.stamp) / 1000.0) if best.stamp and arms == ["red"] else 0.0
        assert node.estimates()[arms[0]] == pytest.approx((best.weight * faded, best.weighted_total * faded))
        assert node.counters["heard_conflicts"] == 0


def test_order_is_total_and_the_larger_of_two_does_not_depend_on_who_asks():
    values = [
        Values(n, s, *rest)
        for n in (1, 2)
        for s in (0.5, 1.0)
        for rest in ((n, s, 0.0), (1.0, 0.3, 5.0), (1.5, 0.2, 5.0))
    ]
    orders = {one.order for one in values}
    assert len(orders) == len(set(values))
    assert all((a.order < b.order) + (b.order < a.order) == (a != b) for a in values for b in values)


@pytest.mark.parametrize("seed", range(15))
def test_mesh_with_relays_of_version_1_agrees_and_nobody_begins_a_new_life(seed):
    rng = random.Random(seed)
    names, old = "abcdef", set("ef")
    links = {frozenset(pair) for pair in zip(names, names[1:] + names[0], strict=True)}
    links |= {frozenset(rng.sample(names, 2)) for _ in range(3)}
    nodes = {
        name: make(name, memory="everything" if name in old else MEMORY, protocol=bm.Flooding(9), now=100.0)
        for name in names
    }
    under_way = []

    def carry(a, b):
        some = nodes[a].take(b, 10**9)
        if some:
            under_way.append((a, b, [stripped(one) for one in some] if {a, b} & old else some))

    def deliver():
        a, b, some = under_way.pop(rng.randrange(len(under_way)))
        nodes[b].hear(some, a)
        nodes[b].settle()
        for peer in names:
            carry(b, peer)

    for a, b in map(sorted, links):
        nodes[a].link_up(b)
        nodes[b].link_up(a)
    now = 100.0
    for _ in range(40):
        now += rng.choice([0.0, 5.0])
        name = rng.choice(sorted(set(names) - old))
        observe(nodes[name], (rng.choice(["red", "blue"]), rng.uniform(0, 1)), now=now)
        for peer in names:
            carry(name, peer)
        while under_way and rng.random() < 0.7:
            deliver()
        if rng.random() < 0.2:
            a, b = sorted(rng.choice(sorted(map(sorted, links))))
            for one, other in ((a, b), (b, a)):
                nodes[one].link_down(other)
                nodes[one].link_up(other)
            under_way[:] = [one for one in under_way if {one[0], one[1]} != {a, b}]
            carry(a, b)
            carry(b, a)
    while under_way:
        deliver()
    # All that forget are joined without those of version 1, so each has what each told, with its memory.
    told = {(name, arm): values for name in names for arm, values in ((row.arm, row.told) for row in nodes[name].own())}
    for name in sorted(set(names) - old):
        assert nodes[name].needs_new_life() is None
        assert nodes[name].counters["heard_conflicts"] == 0
        rows = {(row.origin, row.arm): row.values for row in nodes[name].entries()}
        assert rows == {key: values for key, values in told.items() if key[0] != name}
