"""Twenty node processes under churn, for ten minutes or as long as BANDITMESH_SOAK_SECONDS says.

Nodes are killed, leave and come back, links are cut and parted, arm sets change, and rewards are reported meanwhile.
In the end everybody knows exactly what was acknowledged, nothing was refused without a reason that the churn explains,
and nodes that ran all the time have not grown.
"""

import asyncio
import os
import random
from collections import Counter
from contextlib import AsyncExitStack

import numpy as np
import pytest
from embedded import run
from processes import PATIENCE, NodeProcess, known
from proxies import Proxy

from banditmesh.errors import SidecarError

SECONDS = float(os.environ.get("BANDITMESH_SOAK_SECONDS", "600"))
NAMES = [f"n{number:02}" for number in range(20)]
#: A ring with chords: the smaller name dials.
EDGES = sorted({tuple(sorted((NAMES[i], NAMES[(i + step) % 20]))) for i in range(20) for step in (1, 7)})
#: These run from the beginning to the end, and are measured.
STEADY = NAMES[::7]
ARMS = [f"arm {number}" for number in range(6)]
#: What killed and leaving processes and cut links explain: no answer, or a bye.
EXPLAINED = {"refused_by_peer", "refused_no_hello", "refused_busy"}
#: The most that a node may grow by in the second half, in bytes; an entry or a ticket that leaks a second is more.
MAX_GROWTH = 2_000_000


class Soak:
    """All processes, the proxies between them, and what was acknowledged."""

    def __init__(self, folder, seed):
        self._folder = folder
        self._rng = random.Random(seed)
        self.proxies = {edge: Proxy(seed=str(edge)) for edge in EDGES}
        self.nodes, self.clients = {}, {}
        self.rewards = {arm: [] for arm in ARMS}
        self.memory = {name: [] for name in STEADY}
        self.counters = Counter()
        self.events = Counter()

    async def __aenter__(self):
        self._stack = AsyncExitStack()
        for proxy in self.proxies.values():
            await self._stack.enter_async_context(proxy)
        for name in NAMES:
            neighbours = {b: self.proxies[a, b].address for a, b in EDGES if a == name}
            neighbours |= {a: None for a, b in EDGES if b == name}
            node = NodeProcess(self._folder / name, name, ARMS, neighbours, protocol="flooding(20)")
            self.nodes[name] = self._stack.enter_context(node)
            self.clients[name] = self._stack.enter_context(node.client(patience=PATIENCE))
            self._aim(name)
        return self

    async def __aexit__(self, *_):
        await self._stack.aclose()

    def _aim(self, name):
        """Let the proxies of a node know where it listens now."""
        for (_, b), proxy in self.proxies.items():
            if b == name:
                proxy.target = self.nodes[name].address

    # --- what goes on

    async def report(self, until_when):
        """Choose and report rewards; each is reported until it is acknowledged."""
        loop = asyncio.get_running_loop()
        while loop.time() < until_when:
            client = self.clients[self._rng.choice(NAMES)]
            try:
                choice = await asyncio.to_thread(client.choose)
            except SidecarError:
                await asyncio.sleep(0.05)
                continue
            reward = self._rng.randrange(65) / 64
            assert await asyncio.to_thread(client.observe, choice, reward) in ("counted", "already_counted")
            self.rewards[choice.arm].append(reward)
            await asyncio.sleep(0.02)

    async def churn(self, until_when):
        """One thing after the other goes wrong."""
        loop = asyncio.get_running_loop()
        while loop.time() < until_when:
            event = self._rng.choice([self._kill, self._kill, self._leave, self._cut, self._part, self._change_arms])
            self.events[event.__name__.strip("_")] += 1
            await event()
            await asyncio.sleep(self._rng.uniform(0, 0.5))

    def _one(self):
        return self._rng.choice([name for name in NAMES if name not in STEADY])

    async def _kill(self):
        name = self._one()
        await asyncio.to_thread(self.nodes[name].kill)
        await self._start(name)

    async def _leave(self):
        name = self._one()
        self._count(await asyncio.to_thread(self.clients[name].state))
        await asyncio.to_thread(self.nodes[name].leave)
        await self._start(name)

    async def _start(self, name):
        await asyncio.sleep(self._rng.uniform(0, 1))
        await asyncio.to_thread(self.nodes[name].start)
        self._aim(name)

    async def _cut(self):
        for proxy in self.proxies.values():
            await proxy.cut(0.2)

    async def _part(self):
        parted = self._rng.sample(list(self.proxies.values()), 5)
        for proxy in parted:
            await proxy.part()
        await asyncio.sleep(self._rng.uniform(0, 2))
        for proxy in parted:
            proxy.heal()

    async def _change_arms(self):
        arms = self._rng.sample(ARMS, self._rng.randrange(1, len(ARMS)))
        await self._set_arms(self._rng.choice(NAMES), arms)

    async def _set_arms(self, name, arms):
        await asyncio.to_thread(self.clients[name].set_arms, [{"name": arm, "sigma": 1.0} for arm in arms])

    async def measure(self, until_when):
        """Take the memory of those who run all the time."""
        loop = asyncio.get_running_loop()
        while loop.time() < until_when:
            for name, taken in self.memory.items():
                taken.append((loop.time(), self.nodes[name].memory()))
            await asyncio.sleep(SECONDS / 200)

    # --- the end

    def _count(self, state):
        self.counters.update(state["counters"])

    def truth(self):
        return {arm: (len(all_), sum(all_) / len(all_)) for arm, all_ in self.rewards.items()}

    async def comes_to_rest(self):
        """Everything works again: all links come up, and everybody learns everything."""
        for name in NAMES:
            await self._set_arms(name, ARMS)
        truth = self.truth()
        for name in NAMES:
            client = self.clients[name]
            n_links = sum(name in edge for edge in EDGES)
            await until_true(lambda client=client, n_links=n_links: len(linked(client)) == n_links)
            await until_true(lambda client=client: known(client) == truth)
        for name in NAMES:
            await until_true(lambda name=name: not any(peer["waiting"] for peer in linked(self.clients[name])))
            state = self.clients[name].state()
            assert known(self.clients[name]) == truth
            self._count(state)


async def until_true(holds):
    while not await asyncio.to_thread(holds):
        await asyncio.sleep(0.1)


def linked(client):
    return [peer for peer in client.peers() if peer["state"] == "up"]


def growth(taken):
    """By how much memory grew in the second half, in bytes, by a straight line."""
    times, sizes = np.array(taken[len(taken) // 2 :], dtype=float).T
    slope, _ = np.polyfit(times - times[0], sizes, 1)
    return slope * (times[-1] - times[0])


@pytest.mark.slow
@pytest.mark.alone
def test_mesh_under_churn_stays_flat_and_agrees_in_the_end(tmp_path):
    soak = Soak(tmp_path, seed=1)

    async def main():
        async with soak:
            end = asyncio.get_running_loop().time() + SECONDS
            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(soak.report(end))
                group.create_task(soak.churn(end))
                group.create_task(soak.measure(end))
            await soak.comes_to_rest()

    run(main(), patience=2 * SECONDS + 300)
    grown = {name: growth(taken) for name, taken in soak.memory.items()}
    refused = {name: n for name, n in soak.counters.items() if name.startswith("refused_") and n}
    print(f"events {dict(soak.events)}; rewards {sum(map(len, soak.rewards.values()))}; refusals {refused}")
    print(f"growth in the second half, in bytes: { {name: round(size) for name, size in grown.items()} }")
    print(dict(soak.counters))
    assert set(refused) <= EXPLAINED
    assert not any(soak.counters[name] for name in ("heard_conflicts", "heard_proofs", "failed_tasks", "failed_writes"))
    assert max(grown.values()) < MAX_GROWTH
    for log in tmp_path.glob("*/log-*"):
        assert "Traceback" not in log.read_text()
