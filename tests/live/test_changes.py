"""Changes of a running node's configuration: they have an order, the last one stands, and an edit can be undone.

Real nodes on simulated time, links and disks.
"""

import asyncio
import random

import msgspec
import pytest
from simulated import run
from test_links import Site, is_up

import banditmesh as bm
from banditmesh.errors import InputError, NodeError
from banditmesh.live import ArmSpec, NeighbourConfig


def specs(*names, reward_range=None):
    return [ArmSpec(name, sigma=1.0, reward_range=reward_range) for name in names]


def names(node):
    return [arm.name for arm in node.state().arms]


def edited(node, **changes):
    return msgspec.structs.replace(node.config, **changes)


def known(node, arm="red"):
    [found] = [one for one in node.state().arms if one.name == arm]
    return found.own_count + found.heard_count


async def until(holds):
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came about")


async def asked_together(*changes):
    """Ask for changes while the disk is busy: each is asked for before the one before has had its turn."""
    tasks = []
    for change in changes:
        tasks.append(asyncio.create_task(change))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)


# --- their order


def test_last_of_two_arm_sets_stands_also_if_it_is_the_one_before(tmp_path):
    async def main():
        async with Site(tmp_path).node("a") as a:
            async with a._committer.turn:
                changes = asyncio.create_task(
                    asked_together(a.set_arms(specs("blue", "grey")), a.set_arms(specs("red")))
                )
                await asyncio.sleep(1.0)
            await changes
            assert names(a) == [arm.name for arm in a.config.arms] == ["red"]

    run(main())


def test_arm_that_a_choice_makes_may_be_in_a_configuration_that_waits(tmp_path):
    async def main():
        async with Site(tmp_path).node("a", arms=specs("red"), new_arms=True) as a:
            async with a._committer.turn:
                change = asyncio.create_task(a.reload(edited(a, arms=specs("red", "grey"))))
                await asyncio.sleep(1.0)
                assert a.choose(["grey"]).arm == "grey"
            await change
            assert names(a) == [arm.name for arm in a.config.arms] == ["red", "grey"]

    run(main())


def test_changes_beside_others_lose_none_of_them(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a, site.node("b"):
            async with a._committer.turn:
                to_b = [NeighbourConfig(name="b", address=site.address("b"))]
                changes = asyncio.create_task(
                    asked_together(a.reload(edited(a, protocol=bm.FwA(2), neighbours=to_b)), a.set_arms(specs("blue")))
                )
                await asyncio.sleep(1.0)
                a.add_peer("c")
            await changes
            # The configuration does not name c, which was asked for later.
            assert (names(a), list(a._links.neighbours), a.state().protocol) == (["blue"], ["c", "b"], "fwa(2)")
            assert [one.name for one in a.config.neighbours] == ["b", "c"]
            a.remove_peer("c")
            async with a._committer.turn:
                changes = asyncio.create_task(a.set_arms(specs("red")))
                await asyncio.sleep(1.0)
                a.add_peer("c")
                a.remove_peer("b")
            await changes
            assert [one.name for one in a.config.neighbours] == list(a._links.neighbours) == ["c"]
            assert names(a) == ["red"]

    run(main())


def test_many_changes_under_load_end_with_the_last(tmp_path):
    async def main():
        rng = random.Random(3)
        async with Site(tmp_path).node("a") as a:
            for _ in range(30):
                observing = [asyncio.create_task(a.observe(a.choose(), 1.0)) for _ in range(3)]
                asked = [specs(*rng.sample(["red", "blue", "grey"], rng.randint(1, 3))) for _ in range(4)]
                changes = []
                for arms in asked:
                    changes.append(asyncio.create_task(a.set_arms(arms)))
                    await asyncio.sleep(0.004)
                await asyncio.gather(*observing, *changes)
                assert names(a) == [arm.name for arm in asked[-1]]

    run(main())


def test_change_that_is_refused_changes_nothing_and_the_next_one_stands(tmp_path):
    async def main():
        async with Site(tmp_path).node("a", policy=bm.KLUCB()) as a:
            before = a.config
            for wrong in (
                {"arms": [ArmSpec("blue")], "ignore": ["b"]},
                {"ignore": ["a"], "arms": specs("blue"), "protocol": bm.FwA(1)},
                {"policy": bm.UCB(), "ignore": ["b"], "arms": specs("blue")},
            ):
                with pytest.raises(InputError):
                    await a.reload(edited(a, **wrong))
                assert (a.config, names(a), a.state().protocol) == (before, ["red"], "flooding(3)")
                assert not a._member._table.roster.is_unwanted("b", 1)
            await a.set_arms(specs("blue"))
            assert names(a) == ["blue"]

    run(main())


def test_change_whose_turn_comes_when_the_node_has_left_is_refused(tmp_path):
    async def main():
        async with Site(tmp_path).node("a") as a:
            async with a._committer.turn:
                change = asyncio.create_task(a.set_arms(specs("blue")))
                await asyncio.sleep(1.0)
                leaving = asyncio.create_task(a.leave())
                await asyncio.sleep(1.0)
            with pytest.raises(NodeError, match="must be running"):
                await change
            await leaving

    run(main())


# --- an edit can be undone


async def three(site, **more):
    """a and c, linked by b, after a and c have observed twice each."""
    nodes = [site.node("a", waits_for="b"), site.node("b", knows="ac", **more), site.node("c", waits_for="b")]
    for node in nodes:
        await node.start()
    a, b, c = nodes
    await until(lambda: is_up(b, "a") and is_up(b, "c"))
    for node in (a, c):
        await node.observe(None, 5.0, arm="red")
        await node.observe(None, 7.0, arm="red")
    return nodes


def test_shorter_ignore_lets_neighbours_offer_once_more(tmp_path):
    async def main():
        a, b, c = await three(Site(tmp_path))
        await until(lambda: known(a) == known(b) == known(c) == 4)
        await b.reload(edited(b, ignore=["a"]))
        assert known(b) == 2
        await asyncio.sleep(20.0)
        n_links = b.state().counters["links"]
        await b.reload(edited(b, ignore=[]))
        await until(lambda: known(b) == 4)
        assert b.state().counters["links"] > n_links
        for node in (a, b, c):
            await node.leave()

    run(main())


def test_longer_ignore_leaves_links_alone(tmp_path):
    async def main():
        a, b, c = await three(Site(tmp_path), ignore=["x"])
        await b.reload(edited(b, ignore=["x", "a"]))
        await asyncio.sleep(20.0)
        assert b.state().counters["links"] == 2
        for node in (a, b, c):
            await node.leave()

    run(main())


@pytest.mark.parametrize("when", ["at the start", "later"])
def test_reward_range_that_was_a_typo_costs_nothing_once_it_is_right(tmp_path, when):
    async def main():
        site = Site(tmp_path)
        wrong, right = specs("red", reward_range=(0.0, 1.0)), specs("red", reward_range=(0.0, 10.0))
        a, b, c = await three(site, arms=wrong if when == "at the start" else right)
        if when == "later":
            await until(lambda: known(b) == 4)
            await b.set_arms(wrong)
            await a.observe(None, 6.0, arm="red")
            await until(lambda: b.state().counters.get("refused_reward_range"))
        else:
            await until(lambda: b.state().counters.get("refused_reward_range", 0) >= 4)
        assert known(b) == 0
        n = known(a) - 2
        await b.set_arms(right)
        await until(lambda: known(b) == known(c) == known(a) == 2 + n)
        for node in (a, b, c):
            await node.leave()

    run(main())


def test_reward_range_that_is_corrected_at_a_restart_costs_nothing(tmp_path):
    async def main():
        site = Site(tmp_path)
        a, b, c = await three(site)
        await until(lambda: known(b) == 4)
        for node in (a, b, c):
            await node.leave()
        async with site.node("b", arms=specs("red", reward_range=(0.0, 1.0))) as b:
            assert known(b) == 0
        async with site.node("b", arms=specs("red", reward_range=(0.0, 10.0))) as b:
            assert known(b) == 4

    run(main())


def test_changed_protocol_is_shown_by_the_neighbours(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", knows="b", protocol=bm.FwA(4)) as a, site.node("b", waits_for="a") as b:
            for protocol, written in ((bm.FwA(2), "fwa(2)"), (bm.Flooding(1), "flooding(1)")):
                await until(lambda: is_up(b, "a"))
                await a.reload(edited(a, protocol=protocol))
                await until(lambda written=written: is_up(b, "a") and b.peers()[0].protocol == written)

    run(main())


def test_protocol_that_changes_while_a_link_begins_is_shown(tmp_path):
    async def main():
        for pause in range(12):
            site = Site(tmp_path / str(pause), slowest=0.2)
            async with site.node("a", knows="b") as a, site.node("b", waits_for="a") as b:
                await asyncio.sleep(0.05 * pause)
                await a.reload(edited(a, protocol=bm.FwA(2)))
                await until(lambda b=b: is_up(b, "a") and b.peers()[0].protocol == "fwa(2)")

    run(main())
