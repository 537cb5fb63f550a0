"""Nodes over a network that fails: partitions, cuts, delays and replays, and what everybody knows when it works again.

Nodes run in this process, over TLS, and every link passes through a proxy.
"""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from embedded import a_node, counters, estimates, is_linked, report, run, until
from proxies import Proxy

import banditmesh as bm
from banditmesh.live.addresses import Address
from banditmesh.live.transport import keys

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
FAR = bm.Flooding(8)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Keys for everybody."""
    folder = tmp_path_factory.mktemp("keys")
    keys.init(folder / "authority", "shop")
    return {name: keys.issue(folder / "authority", name, folder) for name in "abcd"}


class Ring:
    """Four nodes in a ring, each link through a proxy, and all rewards that were acknowledged."""

    def __init__(self, folder, files, seed=0, delay=0.0):
        self._folder, self._files = folder, files
        self._rng = random.Random(seed)
        self.proxies = {edge: Proxy(seed=f"{seed} {edge}", delay=delay) for edge in RING}
        self.nodes = {}
        self.rewards = {"red": [], "blue": []}

    async def __aenter__(self):
        self._stack = AsyncExitStack()
        for proxy in self.proxies.values():
            await self._stack.enter_async_context(proxy)
        for name in "dcba":  # whoever is dialled comes first
            dialled = {b: self.proxies[a, b].address for a, b in RING if a == name}
            waited = {a: None for a, b in RING if b == name}
            node = a_node(self._folder, name, dialled | waited, keys=self._files[name], protocol=FAR)
            self.nodes[name] = await self._stack.enter_async_context(node)
            for (_, b), proxy in self.proxies.items():
                if b == name:
                    proxy.target = node.address
        return self

    async def __aexit__(self, *_):
        for proxy in self.proxies.values():  # so that nobody waits for somebody who is out of reach
            proxy.heal()
        await self._stack.aclose()

    async def observe(self, names="abcd", n=1):
        """Somebody reports some rewards."""
        name, arm = self._rng.choice(names), self._rng.choice(("red", "blue"))
        rewards = [self._rng.randrange(65) / 64 for _ in range(n)]
        await report(self.nodes[name], arm, *rewards)
        self.rewards[arm] += rewards

    def truth(self):
        return {arm: (len(all_), sum(all_) / len(all_) if all_ else None) for arm, all_ in self.rewards.items()}

    def agrees(self, names="abcd"):
        """Whether these know everything."""
        return all(estimates(self.nodes[name]) == self.truth() for name in names)

    def check_bounds(self):
        """Nobody ever knows more than there is."""
        for node in self.nodes.values():
            for arm, (count, _) in estimates(node).items():
                assert count <= len(self.rewards[arm])

    async def at_rest(self):
        """All links are up, everybody knows everything, and nothing waits."""
        nodes = self.nodes
        await until(lambda: all(is_linked(nodes[a], b) and is_linked(nodes[b], a) for a, b in RING))
        await until(self.agrees)
        await until(lambda: not any(peer.waiting for node in nodes.values() for peer in node.peers()))
        for node in nodes.values():
            assert counters(node, "heard_conflicts", "heard_proofs", "failed_tasks", "failed_writes") == (0, 0, 0, 0)


def test_two_sides_of_a_partition_work_on_and_agree_when_it_heals(tmp_path, files, eager):
    async def main():
        async with Ring(tmp_path, files) as ring:
            await ring.observe(n=5)
            await ring.at_rest()
            between = [ring.proxies["b", "c"], ring.proxies["a", "d"]]
            for proxy in between:
                await proxy.part()
            before = ring.truth()
            for _ in range(10):
                await ring.observe("ab", n=2)
            await until(lambda: ring.agrees("ab"))
            assert [estimates(ring.nodes[name]) for name in "cd"] == [before] * 2
            for _ in range(10):
                await ring.observe("cd", n=2)
            await until(lambda: estimates(ring.nodes["c"]) == estimates(ring.nodes["d"]) != before)
            await until(lambda: not is_linked(ring.nodes["b"], "c"))
            assert not ring.agrees("a")
            for proxy in between:
                proxy.heal()
            await ring.at_rest()

    run(main())


def live_through(folder, files, share, n_rounds, delay, seed):
    """Rewards come while connections are cut at random and bytes are held back; how many connections were cut."""

    async def main():
        async with Ring(folder, files, seed, delay) as ring:
            for _ in range(n_rounds):
                await ring.observe(n=3)
                for proxy in ring.proxies.values():
                    await proxy.cut(share)
                await asyncio.sleep(0.03)
                ring.check_bounds()
            await ring.at_rest()
            return sum(proxy.n_cut for proxy in ring.proxies.values())

    return run(main(), patience=500)


def test_everybody_agrees_after_connections_were_cut_and_slow(tmp_path, files, eager):
    assert live_through(tmp_path, files, 0.3, n_rounds=25, delay=0.01, seed=3) > 3


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.1, 0.3])
def test_everybody_agrees_after_many_connections_were_cut_and_slow(tmp_path, files, eager, share):
    assert live_through(tmp_path, files, share, n_rounds=500, delay=0.05, seed=round(100 * share)) > 10


async def say_again(address, data):
    """Send what somebody said once, on a connection of one's own, until the other side hangs up."""
    reader, writer = await asyncio.open_connection(*Address.parse(address))
    writer.write(data)
    try:
        async with asyncio.timeout(0.5):
            while await reader.read(65536):
                pass
    except (TimeoutError, ConnectionError):
        pass
    writer.close()


@pytest.mark.parametrize("secure", [True, False], ids=["tls", "plain"])
def test_replayed_bytes_count_nothing_again(tmp_path, files, eager, secure):
    async def main():
        def more(name):
            return {"protocol": FAR, **({"keys": files[name]} if secure else {})}

        b = a_node(tmp_path, "b", **more("b"))
        async with b, Proxy(b.address) as proxy, a_node(tmp_path, "a", {"b": proxy.address}, **more("a")) as a:
            for reward in (1.0, 0.5, 0.25):
                await report(a, "red", reward)
                await until(lambda: estimates(a) == estimates(b))
            old = bytes(proxy.said[0])
            await report(a, "red", 0.0)
            await until(lambda: estimates(a) == estimates(b))
            known, [heard] = estimates(b), counters(b, "heard_stale")
            for _ in range(3):
                await say_again(b.address, old)
                assert estimates(b) == known == {"red": (4, 1.75 / 4), "blue": (0, None)}
            if secure:
                assert counters(b, "refused_other") == (3,)  # a key of this connection was not used
                assert counters(b, "heard_stale", "links") == (heard, 1)
            else:
                # Plain links prove nothing: what was said is heard again, and is no news.
                assert counters(b, "heard_stale") > (heard,)
                await until(lambda: is_linked(b, "a"))
            await report(a, "red", 1.0)
            await until(lambda: estimates(a) == estimates(b) == {"red": (5, 2.75 / 5), "blue": (0, None)})

    run(main())
