"""Nodes on real sockets and disks: what an application that embeds one relies on."""

import asyncio

import pytest

import banditmesh as bm
from banditmesh.live import ArmSpec, NeighbourConfig, Node, NodeConfig, keys

MESH = "shop"


def run(coroutine):
    """Run to the end; no task may fail unseen or be left behind."""
    failures = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        try:
            async with asyncio.timeout(60):
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
                await middle.reload(replaced(middle.config, protocol=bm.Flooding(2)))
                for node in (left, middle, right):
                    for _ in range(3):
                        choice = node.choose()
                        await node.observe(choice, reward=1.0)
                await until(lambda: all(sum(counts(node).values()) == 9 for node in (left, middle, right)))
                assert {peer.name: peer.state for peer in middle.peers()} == {"a": "up", "c": "up"}

    run(main())


def replaced(config, **changes):
    import msgspec

    return msgspec.structs.replace(config, **changes)
