"""Nodes as processes: killed while rewards are reported, and stopped while others go on."""

import random
import re
import signal
import threading
import time
from collections import Counter

import pytest
from embedded import a_node as an_embedded_node
from embedded import estimates, is_linked, run, until
from processes import FORKS, PATIENCE, NodeProcess, known, wait_until
from sidecars import Beside, a_node

from banditmesh.errors import SidecarError
from banditmesh.live import Observation

ARMS = ("red", "blue")


class Caller(threading.Thread):
    """Chooses and reports rewards until it is ended; a reward is reported until it is acknowledged.

    Rewards are multiples of 1/64, so their sums are exact in any order.
    """

    def __init__(self, node, seed):
        super().__init__()
        self.told = []
        self.ends = False
        self.error = None
        self._node, self._rng = node, random.Random(seed)

    def run(self):
        try:
            with self._node.client(patience=PATIENCE) as client:
                while not self.ends:
                    self._report(client)
        except BaseException as error:
            self.error = error

    def _report(self, client):
        try:
            choice = client.choose()
        except SidecarError:
            return  # it is being started again
        reward = self._rng.randrange(65) / 64
        self.told.append((choice.arm, reward, client.observe(choice, reward)))


class Callers:
    """Several callers of one node at once, and what they know together."""

    def __init__(self, node, n):
        self._all = [Caller(node, seed) for seed in range(n)]

    def __enter__(self):
        for caller in self._all:
            caller.start()
        return self

    def __exit__(self, *_):
        for caller in self._all:
            caller.ends = True
        for caller in self._all:
            caller.join()

    @property
    def told(self):
        assert not any(caller.error for caller in self._all), [caller.error for caller in self._all]
        return [one for caller in self._all for one in list(caller.told)]

    def counts(self):
        return Counter(arm for arm, *_ in self.told)

    def sums(self):
        return {arm: sum(reward for one, reward, _ in self.told if one == arm) for arm in ARMS}


def kill_while_observing(folder, n_times, seed):
    """Kill a node with SIGKILL again and again, while callers report to it and a neighbour hears of it."""
    rng = random.Random(seed)
    other = a_node(folder / "b", name="b", listen="127.0.0.1:0", accept="members")
    with Beside(other) as b, NodeProcess(folder / "a", "a", ARMS, {"b": b.node.address}) as a:

        def heard():
            return {arm.name: arm.heard_count for arm in b.do(b.node.state).arms}

        with Callers(a, 4) as callers:
            for _ in range(n_times):
                goal = len(callers.told) + rng.randrange(1, 40)
                wait_until(lambda goal=goal: len(callers.told) >= goal)
                a.kill()
                acknowledged, told = callers.counts(), heard()
                a.start()
                with a.client() as client:
                    found = {arm["name"]: arm["own_count"] for arm in client.state()["arms"]}
                for arm in ARMS:
                    assert found[arm] >= acknowledged[arm]  # nothing acknowledged is lost,
                    assert found[arm] >= told[arm]  # and nothing was told that is forgotten
        counts, sums = callers.counts(), callers.sums()
        with a.client() as client:
            state = client.state()
        assert state["start"] == n_times + 1
        assert {arm["name"]: (arm["own_count"], arm["mean"]) for arm in state["arms"]} == {
            arm: (counts[arm], sums[arm] / counts[arm]) for arm in ARMS
        }
        wait_until(lambda: heard() == dict(counts))
        assert {arm.name: arm.mean for arm in b.do(b.node.state).arms} == {arm: sums[arm] / counts[arm] for arm in ARMS}
        # Some were written and not answered any more: asked again, the node knew them.
        return Counter(answer for *_, answer in callers.told)


def test_nothing_acknowledged_is_lost_by_kill(tmp_path):
    answers = kill_while_observing(tmp_path, 5, seed=1)
    assert set(answers) <= {"counted", "already_counted"}


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_a_hundred_kills(tmp_path):
    answers = kill_while_observing(tmp_path, 100, seed=2)
    assert set(answers) == {"counted", "already_counted"}


# Stopped

#: Names so long that a few thousand statistics fill every buffer between two processes.
LONG = tuple(f"arm {number:03} {'x' * 110}" for number in range(100))


def test_stopped_neighbour_costs_a_set_of_keys_and_gets_what_is_fresh_when_it_goes_on(tmp_path):
    rng = random.Random(0)

    async def main(a, client):
        b = an_embedded_node(tmp_path, "b", {"a": a.address}, arms=LONG)
        async with b, an_embedded_node(tmp_path, "c", {"b": b.address}, arms=LONG) as c:

            async def a_round():
                """Rewards of all arms, of which c hears at once."""
                await b.observe_many([Observation(rng.randrange(65) / 64, arm=arm) for arm in LONG])
                await until(lambda: estimates(c) == estimates(b))
                assert b.ready() == (True, "")

            def waiting():
                return next(peer.waiting for peer in b.peers() if peer.name == "a")

            await until(lambda: is_linked(b, "a") and is_linked(b, "c"))
            await a_round()
            await until(lambda: known(client) == estimates(b))
            a.signal(signal.SIGSTOP)
            n_rounds = n_stuck = 0
            while n_stuck < 10 and is_linked(b, "a"):  # until all buffers between them are full
                await a_round()
                n_rounds += 1
                n_stuck = n_stuck + 1 if waiting() else 0
                assert waiting() <= len(LONG)
                assert n_rounds < 500
            a.signal(signal.SIGCONT)
            await until(lambda: known(client) == estimates(b))
            assert client.state()["counters"]["heard_news"] < (n_rounds - 5) * len(LONG)
            assert b.state().counters["waited_already"] > 0

    with NodeProcess(tmp_path / "a", "a", LONG) as a, a.client() as client:
        run(main(a, client))


def late_wakes(client):
    """How often a node's event loop was late by more than 100 ms, and how often it was asked."""
    text = client.metrics()
    in_time = float(re.search(r'^banditmesh_loop_lag_seconds_bucket{le="0.1"} (.*)$', text, re.M)[1])
    n_asked = float(re.search(r"^banditmesh_loop_lag_seconds_count (.*)$", text, re.M)[1])
    return n_asked - in_time, n_asked


def count_late_wakes(seconds, n_late):
    """How often this machine itself lets somebody sleep for too long who does nothing else."""
    end = time.monotonic() + seconds
    while (due := time.monotonic() + 0.01) < end:
        time.sleep(0.01)
        n_late.value += time.monotonic() - due > 0.03


@pytest.mark.slow
@pytest.mark.alone
def test_stopped_neighbour_delays_nobody_and_costs_no_memory(tmp_path):
    n_late = FORKS.Value("i", 0)
    seconds = 20.0

    def rate(callers):
        """Rewards a second that are acknowledged, for so long."""
        before = len(callers.told)
        time.sleep(seconds)
        return (len(callers.told) - before) / seconds

    with (
        NodeProcess(tmp_path / "a", "a", LONG) as a,
        NodeProcess(tmp_path / "b", "b", LONG, {"a": a.address}) as b,
        NodeProcess(tmp_path / "c", "c", LONG, {"b": b.address}) as c,
        b.client() as client,
        c.client() as other,
    ):
        wait_until(lambda: [peer["state"] for peer in client.peers()] == ["up", "up"])
        with Callers(b, 2) as callers:
            before = rate(callers)
            late, asked = late_wakes(client)
            a.signal(signal.SIGSTOP)
            control = FORKS.Process(target=count_late_wakes, args=(2 * seconds, n_late), daemon=True)
            control.start()
            rate(callers)  # all buffers between them are full now
            memory = b.memory()
            during = rate(callers)
            control.join()
            grown = b.memory() - memory
        late, asked = (after - earlier for after, earlier in zip(late_wakes(client), (late, asked), strict=True))
        print(f"{before:.0f} rewards a second, {during:.0f} with a stopped neighbour; memory grew by {grown} bytes;")
        print(f"{late:.0f} of {asked:.0f} wakes were late, {n_late.value} of a process that does nothing")
        assert asked > 100
        assert late <= n_late.value
        assert during > before / 2
        assert grown < 1_000_000
        wait_until(lambda: known(other) == known(client))
        a.signal(signal.SIGCONT)
        with a.client() as woken:
            wait_until(lambda: known(woken) == known(client))
