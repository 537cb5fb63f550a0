"""Nodes as processes: killed while rewards are reported, and stopped while others go on."""

import random
import threading
from collections import Counter

import pytest
from processes import PATIENCE, NodeProcess, wait_until
from sidecars import Beside, a_node

from banditmesh.errors import SidecarError

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
