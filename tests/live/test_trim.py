"""Tested merging in a live node: against the rule written out from its text, in lockstep, and where it is refused."""

import asyncio
import random

import msgspec
import pytest
from members import hear, make, observe
from oracle import by_the_text
from sidecars import Beside, a_node

import banditmesh as bm
from banditmesh.errors import ConfigError, InputError
from banditmesh.live import Client, Node
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.certificates import Certificate, Certificates
from banditmesh.live.config import NodeConfig, TrustConfig, notes
from banditmesh.live.member import ArmSpec, Observation
from banditmesh.live.names import Caps
from banditmesh.live.statistics import Statistic
from banditmesh.live.transport.identity import KeyFiles
from banditmesh.mesh.status import as_table, gather

COIN = ArmSpec("coin", reward_range=(0.0, 1.0))


def pooled(member, arm, half_life=None, now=0.0):
    """Own and others' statistics of an arm, all lives of a name together, from what would be stored."""
    own, others = [0.0, 0.0], {}
    for one in [*member.own(), *member.entries()]:
        if one.arm != arm:
            continue
        values = one.values
        if half_life is None:
            part = values.count, values.total
        else:
            factor = 2.0 ** -((now - values.stamp) / half_life)
            part = values.weight * factor, values.weighted_total * factor
        mine = getattr(one, "origin", member.node) == member.node
        sums = own if mine else others.setdefault(one.origin, [0.0, 0.0])
        sums[0] += part[0]
        sums[1] += part[1]
    return own, others


@pytest.mark.parametrize("memory", ["everything", "discount(half_life=700)"])
@pytest.mark.parametrize("seed", range(12))
def test_estimates_are_what_the_text_says_whatever_is_heard_and_observed(seed, memory):
    rng = random.Random(f"{seed} {memory}")
    f, half_life = rng.choice([1, 1, 2, 3]), None if memory == "everything" else 700.0
    arms = [ArmSpec("red", sigma=rng.choice([0.3, 1.0])), ArmSpec("blue", reward_range=(-9.0, 10.0))]
    sigma = {"red": arms[0].sigma, "blue": 9.5}
    member = make(arms=arms, protocol=bm.Flooding(3), links=["p"], trim=f, memory=memory, now=1000.0)
    origins = [f"o{n}" for n in range(rng.choice([2, 4, 9]))]
    liars = set(origins[:f])
    told, now, n_out, n_in = {}, 1000.0, 0, 0
    for _ in range(60):
        now += rng.choice([0.0, 1.0, 40.0])
        member.tick(now, now)
        what = rng.random()
        if what < 0.2:
            observe(member, (rng.choice(["red", "blue"]), rng.uniform(-1, 1)), now=now)
        elif what < 0.23:
            member.committed(member.new_life(rng.getrandbits(60), now))
        elif what < 0.26:
            member.set_trim(f := rng.choice([1, 2, 3]))
        else:
            origin, arm = rng.choice(origins), rng.choice(["red", "blue"])
            key = origin, rng.choice([5, 6]), arm
            count, mean = told.get(key, (0, 0.0))[0] + rng.randrange(1, 30), rng.gauss(0, 0.2)
            if origin in liars:
                count, mean = count + rng.choice([0, 10**6]), rng.choice([9.0, 1.0])
            told[key] = count, mean
            values = (count, count * mean)
            if half_life is not None:
                weight = rng.uniform(1.0, count)
                values = *values, 3, weight, weight * mean, now
            else:
                values = *values, 3
            hear(member, "p", (*key, *values))
        known = member.estimates()
        for arm in ("red", "blue"):
            own, others = pooled(member, arm, half_life, now)
            inside, expected = by_the_text(own, others, f, sigma[arm])
            assert known[arm] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            [view] = [one for one in member.snapshot().arms if one.name == arm]
            assert set(view.left_out) == others.keys() - inside
            assert view.n_left_out == len(view.left_out)
            n_out, n_in = n_out + view.n_left_out, n_in + len(inside)
    assert n_out > 0 < n_in


def test_liar_is_out_of_the_arm_that_it_lies_about_until_its_claim_fits():
    member = make(arms=[COIN, "blue"], links=["p"], trim=1)
    observe(member, *[("coin", n % 2) for n in range(10)])
    honest = [(name, 1, "coin", 10, 5.0, 3) for name in "abcd"]
    hear(member, "p", *honest, ("liar", 1, "coin", 10**6, 10.0**6, 3), ("liar", 1, "blue", 4, 2.0, 3))
    coin, blue = member.snapshot().arms
    assert (coin.own_count, coin.heard_count, coin.mean, coin.left_out) == (10, 40, 0.5, ["liar"])
    # Of an arm of which the node has seen nothing, one other is no majority.
    assert (blue.heard_count, blue.mean, blue.left_out) == (0, None, ["liar"])
    hear(member, "p", ("liar", 2, "coin", 10**7, 0.0, 3), ("liar", 1, "coin", 10**6 + 1, 10.0**6, 3))
    assert member.snapshot().arms[0].left_out == ["liar"]
    member.set_trim(0)
    coin, _ = member.snapshot().arms
    assert (coin.heard_count, coin.left_out) == (40 + 11 * 10**6 + 1, [])
    member.set_trim(1)
    assert member.snapshot().arms[0].left_out == ["liar"]


def test_arm_is_worked_out_once_after_a_change_and_not_for_each_choice(monkeypatch):
    member = make(arms=[COIN, "blue"], links=["p"], trim=1)
    observe(member, ("coin", 1.0), ("blue", 0.5))
    agent = member._bandits.agents[""]
    asked = []
    known = agent.beliefs.known
    monkeypatch.setattr(agent.beliefs, "known", lambda arm, *rest: asked.append(arm) or known(arm, *rest))
    for _ in range(5):
        member.choose(now=1.0)
    assert sorted(asked) == ["blue", "coin"]
    hear(member, "p", ("o", 1, "coin", 3, 2.0, 3), ("o", 1, "coin", 4, 2.0, 3))
    for _ in range(5):
        member.choose(now=1.0)
    assert asked[2:] == ["coin"]


def test_arms_come_and_go_and_rows_leave():
    member = make(arms=[COIN], links=["p"], trim=1)
    observe(member, *[("coin", n % 2) for n in range(4)])
    hear(member, "p", *[(name, 1, "later", 3, 1.5, 3) for name in "abce"], ("d", 1, "coin", 2, 1.0, 3))
    member.set_arms([ArmSpec("later", sigma=1.0), COIN])
    assert {name: tuple(known) for name, known in member.estimates().items()} == {"later": (12, 6.0), "coin": (6, 3.0)}
    member.set_ignore(["a", "d"])
    assert {name: tuple(known) for name, known in member.estimates().items()} == {"later": (0, 0.0), "coin": (4, 2.0)}
    member.set_arms([COIN])
    assert dict(member.estimates()) == {"coin": (4, 2.0)}


def test_what_cannot_be_tested_is_refused_with_the_remedy():
    line = (
        "arm 'red' must have a sigma or a reward_range where trust.trim is above 0, got neither; "
        "say how much its rewards vary, as with sigma = 1.0 or reward_range = [0, 1]"
    )
    plain = {"mesh": "m", "node": "n", "plain": True, "arms": [COIN, ArmSpec("red")]}
    with pytest.raises(ConfigError) as error:
        NodeConfig(**plain, trust=TrustConfig(trim=1))
    assert error.value.problems == (line,)
    bandits = [BanditSpec(name="ads", arms=[ArmSpec("red")])]
    with pytest.raises(ConfigError) as error:
        NodeConfig(**plain | {"arms": [COIN], "bandits": bandits}, trust=TrustConfig(trim=1))
    assert error.value.problems == (f"[[bandits]] ads: {line}",)
    assert NodeConfig(**plain).trust.trim == 0
    member = make(arms=[COIN], trim=1)
    with pytest.raises(InputError) as error:
        member.set_arms([COIN, ArmSpec("red")])
    assert str(error.value) == line
    for protocol in ("tree", "centralised", "fwa(4)+contested"):
        with pytest.raises(InputError):
            NodeConfig(**plain | {"arms": [COIN]}, trust=TrustConfig(trim=1), protocol=protocol)


def test_what_is_left_out_unsigned_or_expired_is_shown(tmp_path):
    trust = TrustConfig(trim=1)
    config = NodeConfig(mesh="shop", node="a", arms=[COIN], state=tmp_path, plain=True, trust=trust)
    with Beside(lambda: Node(config)) as beside, Client(beside.url) as client:
        beside.do(beside.node._member.hear, [Statistic("liar", 1, "coin", 9, 9.0, 1)], "p")
        beside.do(beside.node._member.settle)
        for n in range(10):
            client.observe(None, 0.0, arm="coin", key=str(n))
        state, metrics = client.state(), client.metrics()
        [row] = gather([beside.url])
        shown = as_table([row]).splitlines()
    assert state["arms"][0]["left_out"] == ["liar"]
    assert (state["trust"]["signatures"], state["trust"]["trim"], state["trust"]["left_out"]) == ("none", 1, 1)
    odd = {"name": "liar", "signed": 0, "unsigned": 1, "expired": 0, "left_out": 1}
    assert state["trust"]["origins"] == [odd]
    assert shown[-1] == "a about 'liar': left out of 1 arm (trust.trim)"
    assert 'banditmesh_origin_left_out{origin="liar"} 1.0' in metrics
    assert 'banditmesh_arm_left_out{arm="coin"} 1.0' in metrics
    assert 'banditmesh_signatures{signature="unsigned"} 1.0' in metrics


def test_signatures_are_counted_by_origin():
    begins, now = 1_800_000_000, 1_800_000_000.0
    known = Certificates("mesh", grace=1000.0)
    for id_, node, ends in ((b"a" * 16, "a", begins + 500), (b"b" * 16, "b", begins + 50)):
        known.add(Certificate(id_, b"", node, begins, ends, None), now)
    member = make(certificates=known, signatures="accepted", now=now, links=["p"])
    rows = [("a", 1, "red", 3), ("a", 1, "blue", 4), ("b", 2, "red", 5)]
    signed = [Statistic(*row, 1.0, 2, certificate=row[0].encode() * 16, signature=bytes(64)) for row in rows]
    member.hear(signed, "p", is_checked=True)
    hear(member, "p", ("c", 1, "red", 3, 1.0, 2), ("a", 1, "green", 3, 1.0, 2))
    shown = {one.name: (one.signed, one.unsigned, one.expired) for one in member.snapshot().trust.origins}
    assert shown == {"a": (2, 1, 0), "b": (1, 0, 0), "c": (0, 1, 0)}
    member.tick(now + 100.0, 100.0)
    trust = member.snapshot().trust
    assert (trust.signatures, trust.n_origins, trust.signed, trust.unsigned, trust.expired) == ("accepted", 3, 3, 2, 1)
    # Those of which most is odd come first.
    assert [one.name for one in trust.origins] == ["a", "c", "b"]


def test_node_whose_share_is_full_makes_no_new_segments():
    ads = BanditSpec(name="ads", arms=[ArmSpec("red", sigma=1.0)])
    member = make(arms=["blue"], bandits=[ads], caps=Caps(entries_per_origin=4))
    for segment in ("de", "fr", "it"):
        observe(member, Observation(1.0, member.choose(0.0, bandit="ads", segment=segment).ticket))
    [warning] = member.snapshot().warnings
    assert warning.startswith("3 statistics of this node's own lives: others take 4 of one node")
    observe(member, ("blue", 1.0))
    with pytest.raises(InputError, match="others take at most 4 statistics of one node"):
        member.choose(0.0, bandit="ads", segment="es")
    assert member.counters["refused_segments"] == 1
    # Those that there are go on.
    assert member.choose(0.0, bandit="ads", segment="it").arm == "red"


def test_check_says_for_how_many_members_there_is_room(tmp_path):
    files = KeyFiles.of(tmp_path, "a")
    config = NodeConfig(mesh="m", node="a", arms=[COIN], keys=files, trust=TrustConfig(trim=1))
    assert (
        "caps.entries = 200000 has room for 40 members that fill their share (caps.entries_per_origin = 5000); "
        "with more of them, raise it or lower the share"
    ) in notes([config])
    others = [msgspec.structs.replace(config, node=name) for name in "bc"]
    line = (
        "trust.trim = 1 needs more than 2 other nodes to find an honest majority among; "
        "with 2, each goes by its own mean"
    )
    assert line in notes([config, *others])
    assert line not in notes([config, *others, msgspec.structs.replace(config, node="d")])
    empty = msgspec.structs.replace(config, bandits=[BanditSpec(name="ads", arms=[], new_arms=True)])
    assert any("'ads': new_arms makes arms like the first one" in note for note in notes([empty]))


def test_reload_changes_how_many_liars_are_borne(tmp_path):
    async def main():
        async with a_node(tmp_path)() as node:
            node._member.hear([Statistic("liar", 1, "red", 9, 90.0, 1)], "p")
            node._member.settle()
            assert node.state().arms[0].heard_count == 9
            arms = [ArmSpec("red", sigma=1.0), ArmSpec("blue", sigma=1.0)]
            await node.reload(msgspec.structs.replace(node.config, arms=arms, trust=TrustConfig(trim=1)))
            assert node.state().arms[0].heard_count == 0
            await node.reload(msgspec.structs.replace(node.config, arms=[ArmSpec("red")], trust=TrustConfig()))
            assert node.state().arms[0].heard_count == 9

    asyncio.run(main())


def test_statistics_are_relayed_whether_or_not_they_are_believed():
    member = make(arms=[COIN], protocol=bm.Flooding(4), links=["p", "q"], trim=1)
    observe(member, *[("coin", n % 2) for n in range(9)])
    member.take("q", 10**9)
    lie = ("liar", 1, "coin", 10**6, 10.0**6, 4)
    hear(member, "p", lie)
    assert member.snapshot().arms[0].left_out == ["liar"]
    assert member.take("q", 10**9) == [Statistic(*lie[:5], 3)]
