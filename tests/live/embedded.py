"""Nodes in the test's own process, on real sockets and disks: for whatever needs no process of its own."""

import asyncio
import random

from banditmesh.live import ArmSpec, NeighbourConfig, Node, NodeConfig
from banditmesh.live.member import Observation

MESH = "shop"
ANY = "127.0.0.1:0"


def run(coroutine, patience=300):
    """Run to the end; no task may fail unseen or be left behind."""
    failures = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        try:
            async with asyncio.timeout(patience):
                return await coroutine
        finally:
            for _ in range(20):  # what has been closed takes a few turns to end
                await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    result = asyncio.run(main())
    assert not failures, failures
    return result


async def until(holds):
    """Wait until something holds; `run` says for how long."""
    while not (held := holds()):
        await asyncio.sleep(0.005)
    return held


def config(folder, name, neighbours=None, arms=("red", "blue"), **more):
    """Plain unless there are keys; any member may link."""
    settings = {"listen": ANY, "accept": "members", "plain": "keys" not in more, **more}
    return NodeConfig(
        mesh=MESH,
        node=name,
        arms=[arm if isinstance(arm, ArmSpec) else ArmSpec(arm, sigma=1.0) for arm in arms],
        state=folder / name,
        neighbours=[NeighbourConfig(name=one, address=address) for one, address in (neighbours or {}).items()],
        **settings,
    )


def a_node(folder, name, neighbours=None, **more):
    """A node whose chances depend on its name alone."""
    parts = {key: more.pop(key) for key in ("transport", "clock", "signers", "new_life") if key in more}
    return Node(config(folder, name, neighbours, **more), rng=random.Random(name), **parts)


async def report(node, arm, *rewards):
    """Report rewards that nothing chose, together."""
    answers = await node.observe_many([Observation(reward, arm=arm, key=None) for reward in rewards])
    assert all(answer.outcome == "counted" for answer in answers), answers


def estimates(node):
    """By arm: how many rewards a node knows of, and their mean."""
    return {arm.name: (arm.own_count + arm.heard_count, arm.mean) for arm in node.state().arms}


def counters(node, *names):
    """Some counters."""
    found = node.state().counters
    return tuple(found.get(name, 0) for name in names)


def refusals(node):
    """All counters of refusals."""
    return {name: n for name, n in node.state().counters.items() if name.startswith("refused_") and n}


def is_linked(node, peer):
    return any(one.name == peer and one.state == "up" for one in node.peers())
