"""Nodes on real sockets and disks: what an application that embeds one relies on."""

import asyncio
import random

import msgspec
import pytest
import simulated

import banditmesh as bm
from banditmesh.errors import InputError, NodeError, StoreError
from banditmesh.live import ArmSpec, NeighbourConfig, Node, NodeConfig, Observation
from banditmesh.live.disk.state import copy_state
from banditmesh.live.member import ALREADY_COUNTED, COUNTED
from banditmesh.live.transport import keys

MESH = "shop"


def run(coroutine):
    """Run to the end; no task may fail unseen or be left behind."""
    failures = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        try:
            async with asyncio.timeout(300):
                return await coroutine
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    result = asyncio.run(main())
    assert not failures, failures
    return result


async def until(condition):
    """Wait until something holds; `run` says for how long."""
    while not condition():
        await asyncio.sleep(0.005)


def specs(*names):
    return [ArmSpec(name, sigma=1.0) for name in names]


def plain(folder, name, arms=("red", "blue"), neighbours=(), **more):
    return NodeConfig(
        mesh=MESH,
        node=name,
        listen="127.0.0.1:0",
        arms=specs(*arms),
        state=folder / name,
        neighbours=[NeighbourConfig(name=one, address=address) for one, address in neighbours],
        plain=True,
        accept="members",
        **more,
    )


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    keys.init(folder, MESH)
    return folder


def secured(folder, authority, name, **more):
    files = keys.issue(authority, name, folder / "keys")
    settings = {"arms": specs("red", "blue"), "listen": "127.0.0.1:0", "accept": "members", **more}
    return NodeConfig(mesh=MESH, node=name, state=folder / name, keys=files, **settings)


def counts(node):
    return {arm.name: arm.own_count + arm.heard_count for arm in node.state().arms}


def test_three_nodes_learn_together_over_tls(tmp_path, authority):
    async def main():
        async with Node(secured(tmp_path, authority, "b")) as middle:
            to_middle = [NeighbourConfig(name="b", address=middle.address)]
            left = Node(secured(tmp_path, authority, "a", neighbours=to_middle, protocol=bm.Flooding(2)))
            right = Node(secured(tmp_path, authority, "c", neighbours=to_middle, protocol=bm.Flooding(2)))
            async with left, right:
                await middle.reload(msgspec.structs.replace(middle.config, protocol=bm.Flooding(2)))
                for node in (left, middle, right):
                    for _ in range(3):
                        choice = node.choose()
                        await node.observe(choice, reward=1.0)
                await until(lambda: all(sum(counts(node).values()) == 9 for node in (left, middle, right)))
                assert {peer.name: peer.state for peer in middle.peers()} == {"a": "up", "c": "up"}

    run(main())


# --- choosing and observing


def test_the_same_reward_counts_once_however_it_is_reported(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as node:
            choice = node.choose()
            assert (await node.observe(choice, 1.0)).outcome == COUNTED
            assert (await node.observe(choice.ticket, 1.0)).outcome == ALREADY_COUNTED
            assert (await node.observe(str(choice.ticket), 1.0)).outcome == ALREADY_COUNTED
            assert (await node.observe(None, 1.0, arm="blue", key="order 7")).outcome == COUNTED
            assert (await node.observe(None, 1.0, arm="blue", key="order 7")).outcome == ALREADY_COUNTED
            assert counts(node) == {"red": 1, "blue": 1}
        async with Node(plain(tmp_path, "a")) as node:
            assert (await node.observe(choice, 1.0)).outcome == ALREADY_COUNTED
            assert counts(node) == {"red": 1, "blue": 1}

    run(main())


@pytest.mark.parametrize(
    "ticket, reward, arm, key, problem",
    [
        ("nonsense", 1.0, None, None, "a ticket must be one that choose"),
        (7, 1.0, None, None, "a ticket must be one that choose"),
        ("0000000000000007-1-1-red", 1.0, None, None, "a ticket must be from the node's present life"),
        (None, float("nan"), "red", None, "a reward of arm 'red' must be a finite number"),
        (None, "1", "red", None, "a reward of arm 'red' must be a finite number"),
        (None, 1.0, "", None, "arm must be 1 to 128 bytes"),
        (None, 1.0, "red", "", "key must be 1 to 128 bytes"),
        (None, 1.0, None, None, "a ticket, or an arm and a key, got neither"),
        ("0000000000000007-1-1-red", 1.0, "red", None, "got ticket and arm"),
        ("0000000000000007-1-1-red", 1.0, None, "k", "got ticket and key"),
    ],
)
def test_wrong_observations_are_refused_in_a_line_and_others_counted(tmp_path, ticket, reward, arm, key, problem):
    async def main():
        async with Node(plain(tmp_path, "a")) as node:
            with pytest.raises(InputError) as caught:
                await node.observe(ticket, reward, arm=arm, key=key)
            assert "\n" not in str(caught.value)
            assert problem in str(caught.value)
            good = Observation(1.0, None, "red", None)
            refused, counted = await node.observe_many([Observation(reward, ticket, arm, key), good])
            assert (refused.reason, counted.outcome) == (str(caught.value), COUNTED)

    run(main())


def test_many_callers_share_few_transactions(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as node:
            n_commits = 0
            commit = node._parts.store.commit

            async def counting(changes):
                nonlocal n_commits
                n_commits += 1
                await commit(changes)

            node._parts.store.commit = counting
            await asyncio.gather(*(node.observe(node.choose(), 1.0) for _ in range(500)))
            assert sum(counts(node).values()) == 500
            assert n_commits <= 3

    run(main())


def test_a_node_that_does_not_run_says_so(tmp_path):
    async def main():
        node = Node(plain(tmp_path, "a"))
        with pytest.raises(NodeError, match="node 'a' must be running to choose: it has not been started"):
            node.choose()
        with pytest.raises(NodeError, match="must have been started before its state can be read"):
            node.state()
        assert node.ready() == (False, "it has not been started")
        async with node:
            assert node.ready() == (True, "")
        with pytest.raises(NodeError, match="it has left"):
            await node.observe(None, 1.0, arm="red")
        await node.leave()

    run(main())


def test_a_second_node_on_the_same_folder_is_refused_and_the_first_goes_on(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as node:
            with pytest.raises(StoreError):
                await Node(plain(tmp_path, "a")).start()
            await node.observe(node.choose(), 1.0)

    run(main())


# --- changes while running


def test_an_added_arm_knows_at_once_what_was_heard_of_it(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a", ["red"])) as a, Node(plain(tmp_path, "b", ["red", "blue"])) as b:
            b.add_peer("a", a.address)
            for _ in range(4):
                await b.observe(b.choose(), 1.0)
            await until(lambda: sum(entry.count for entry in a._member.entries()) == 4)
            assert "blue" not in counts(a)
            await a.set_arms(specs("blue", "grey"))
            assert counts(a) == {"blue": b.state().arms[1].own_count, "grey": 0}
            assert a.choose().arm == "blue"

    run(main())


def test_neighbours_come_and_go_while_it_runs(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as a, Node(plain(tmp_path, "b")) as b:
            a.add_peer("b", b.address)
            await until(lambda: [peer.state for peer in b.peers()] == ["up"])
            a.remove_peer("b")
            await until(lambda: a.peers() == b.peers() == [])
            with pytest.raises(InputError, match="'b' must be a neighbour to be removed"):
                a.remove_peer("b")
            with pytest.raises(InputError, match="address must be host:port"):
                a.add_peer("b", "nowhere")
            with pytest.raises(InputError, match="must be on loopback"):
                a.add_peer("b", "10.0.0.1:7700")
            with pytest.raises(InputError, match="no neighbour of itself"):
                a.add_peer("a")
            assert a.peers() == []

    run(main())


def test_reloading_changes_what_may_change_and_refuses_the_rest(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as a, Node(plain(tmp_path, "b")) as b:
            changes = {"arms": specs("grey"), "ignore": ["c"], "protocol": bm.FwA(2), "accept": "neighbours"}
            neighbours = [NeighbourConfig(name="b", address=b.address)]
            await a.reload(msgspec.structs.replace(a.config, neighbours=neighbours, **changes))
            await until(lambda: [peer.state for peer in b.peers()] == ["up"])
            assert b.peers()[0].protocol == "fwa(2)"
            assert list(counts(a)) == ["grey"]
            for field, other in (("node", "c"), ("policy", bm.MOSS()), ("state", tmp_path)):
                with pytest.raises(InputError, match=f"{field} cannot change while a node runs"):
                    await a.reload(msgspec.structs.replace(a.config, **{field: other}))
            await a.reload(msgspec.structs.replace(a.config, neighbours=[]))
            await until(lambda: b.peers() == [])

    run(main())


def test_certificates_are_read_again(tmp_path, authority):
    async def main():
        async with Node(secured(tmp_path, authority, "a")) as a:
            old = a._parts.transport.contexts
            keys.issue(authority, "a", tmp_path / "keys", force=True)
            await a.reload(a.config)
            assert a._parts.transport.contexts is not old
            other = keys.issue(authority, "b", tmp_path / "keys")
            with pytest.raises(InputError, match="must be that of node 'a' of mesh"):
                await a.reload(msgspec.structs.replace(a.config, keys=other))

    run(main())


# --- state


def test_what_is_restored_from_a_backup_begins_a_new_life(tmp_path):
    async def main():
        async with Node(plain(tmp_path, "a")) as node:
            await node.observe(node.choose(), 1.0)
            await node.backup(tmp_path / "copy")
            [first] = node.lives("a")
            await node.observe(node.choose(), 1.0)
        (tmp_path / "restored").mkdir()
        (tmp_path / "copy").rename(tmp_path / "restored" / "state.db")
        config = msgspec.structs.replace(plain(tmp_path, "a"), state=tmp_path / "restored")
        async with Node(config) as node:
            assert node.lives("a")[1:] == [first]
            assert node.lives("a")[0] != first
            assert sum(counts(node).values()) == 1
            assert node.state().arms[0].own_count == 0

    run(main())


def test_a_full_disk_degrades_the_node_until_there_is_room_again(tmp_path):
    async def main():
        disk = simulated.Disk(tmp_path / "a", MESH, "a", random.Random(0))
        network = simulated.Network(random.Random(0))
        transport = simulated.SimulatedTransport(network, simulated.identity(MESH, "a"))
        config = msgspec.structs.replace(plain(tmp_path, "a"), listen="127.0.0.1:1")
        async with Node(config, transport=transport, store=disk.open(), rng=random.Random(0)) as node:
            disk.is_full = True
            choice = node.choose()
            with pytest.raises(StoreError, match="no space left"):
                await node.observe(choice, 1.0)
            assert node.ready() == (False, "degraded: no space left on the simulated disk")
            assert node.state().arms[0].own_count == 0
            node.choose()
            await asyncio.sleep(100)
            assert node.ready()[0] is False
            disk.is_full = False
            await asyncio.sleep(31)
            assert node.ready() == (True, "")
            assert (await node.observe(choice, 1.0)).outcome == COUNTED

    simulated.run(main())


@pytest.mark.parametrize("is_first", [True, False])
def test_a_node_that_starts_on_a_full_disk_hears_and_relays_and_chooses_once_its_start_is_stored(tmp_path, is_first):
    async def main():
        network = simulated.Network(random.Random(0))
        disks = {name: simulated.Disk(tmp_path / name, MESH, name, random.Random(0)) for name in "abc"}

        def a_node(name, neighbours):
            transport = simulated.SimulatedTransport(network, simulated.identity(MESH, name))
            config = plain(tmp_path, name, neighbours=neighbours, protocol=bm.Flooding(2))
            config = msgspec.structs.replace(config, listen=f"127.0.0.1:{ord(name)}")
            return Node(config, transport=transport, store=disks[name].open(), rng=random.Random(name))

        if not is_first:
            async with a_node("b", []) as b:
                await b.observe(b.choose(), 3.0)
        disks["b"].is_full = True
        to_b = [("b", f"127.0.0.1:{ord('b')}")]
        async with a_node("b", []) as b, a_node("a", to_b) as a, a_node("c", to_b) as c:
            await asyncio.sleep(5)
            await a.observe(None, 1.0, arm="blue")
            await asyncio.sleep(100)
            assert [counts(node)["blue"] for node in (a, b, c)] == [1, 1, 1]
            assert counts(b)["red"] == counts(c)["red"] == (0 if is_first else 1)
            with pytest.raises(StoreError, match="node 'b' chooses once its start is stored: no space left"):
                b.choose()
            with pytest.raises(StoreError, match="no space left"):
                await b.observe(None, 1.0, arm="blue")
            assert b.ready() == (
                False, "degraded: it chooses once its start is stored: no space left on the simulated disk",
            )  # fmt: skip
            life = b.lives("b")[0]
            disks["b"].is_full = False
            await asyncio.sleep(31)
            assert b.ready() == (True, "")
            choice = b.choose()
            assert choice.ticket.start == (1 if is_first else 2)
            await b.observe(choice, 1.0)
            assert b.lives("b") == [life]
        async with a_node("b", []) as b:
            assert b.lives("b") == [life]
            assert sum(counts(b).values()) == (2 if is_first else 3)

    simulated.run(main())


def test_a_backup_on_a_full_disk_does_not_choose_before_its_new_life_is_stored(tmp_path):
    async def main():
        disk = simulated.Disk(tmp_path / "a", MESH, "a", random.Random(0))
        network = simulated.Network(random.Random(0))

        def a_node():
            transport = simulated.SimulatedTransport(network, simulated.identity(MESH, "a"))
            config = msgspec.structs.replace(plain(tmp_path, "a"), listen="127.0.0.1:1")
            return Node(config, transport=transport, store=disk.open(), rng=random.Random(0))

        async with a_node() as node:
            await node.observe(node.choose(), 1.0)
            copy_state(tmp_path / "a", tmp_path / "copy")
        (tmp_path / "a" / "state.db").unlink()
        (tmp_path / "copy").rename(tmp_path / "a" / "state.db")
        disk.is_full = True
        async with a_node() as node:
            with pytest.raises(StoreError, match="once its start is stored"):
                node.choose()
            disk.is_full = False
            await asyncio.sleep(31)
            [new, old] = node.lives("a")
            assert node.choose().ticket.epoch == int(new, 16) != int(old, 16)

    simulated.run(main())


def test_a_neighbour_with_another_name_than_meant_is_refused(tmp_path, authority):
    async def main():
        async with Node(secured(tmp_path, authority, "b")) as b:
            neighbours = [NeighbourConfig(name="c", address=b.address)]
            async with Node(secured(tmp_path, authority, "a", neighbours=neighbours)) as a:
                await until(lambda: a.peers()[0].last_refusal is not None)
                assert a.peers()[0].last_refusal.startswith("wrong_name: ")
                assert a.state().counters["refused_wrong_name"] >= 1

    run(main())
