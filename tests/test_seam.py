"""What a protocol brings: a courier with a state of its own, a whole agent, and facts that others read."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.core import Agent, Copy, Courier, Fate, Note, Parcel, Receipt, Relaying
from banditmesh.errors import UnsupportedError
from banditmesh.live.template import runs_live
from banditmesh.protocols import AnyProtocol, Facts


class Thrifty(Relaying):
    """Relays at most two messages of each origin."""

    def __init__(self, *given):
        super().__init__(*given)
        self._n_relayed = Counter()

    def receive(self, agent, copy, sender, degree):
        receipt = super().receive(agent, copy, sender, degree)
        if receipt.fate is Fate.RELAYED:
            origin = copy.message.origin
            self._n_relayed[origin] += 1
            if self._n_relayed[origin] > 2:
                self.drop_last()
                return Receipt(Fate.STOPPED, receipt.heard)
        return receipt


@dataclass(frozen=True)
class ThriftyFlooding(bm.Flooding):
    name = "thrifty"

    def courier(self, place):
        return Thrifty(self, place.chances, place.seen(self.ttl), place.new_id, place.rules)


class Telling(Courier):
    """The first agent tells its neighbours which arm it pulled last; the others say nothing."""

    most_hops = 1

    def __init__(self, place):
        self._place = place
        self.restart()

    def restart(self):
        self._pulled = None

    def observed(self, agent, position, reward, was_best):
        if self._place.number == 0:
            self._pulled = agent.arms.names[position]

    def send(self, agent, neighbours):
        if self._pulled is None:
            return []
        note = Note(agent.name, self._place.now(), "pulled", self._pulled)
        return [Parcel(Copy(note, 1), neighbours)]

    @property
    def state(self):
        return self._pulled

    @state.setter
    def state(self, value):
        self._pulled = value

    def receive(self, agent, copy, sender, degree):
        raise AssertionError("its agent receives by itself")


class Follower(Agent):
    """Pulls what it was last told of, if it has that arm."""

    followed = None

    def choose(self, clock, among=None):
        choice = super().choose(clock, among)
        return choice if self.followed is None else choice._replace(position=self.arms.names.index(self.followed))

    def receive(self, copy, sender, degree):
        self.followed = copy.message.arm if self.has(copy.message.arm) else None
        return Receipt(Fate.ABSORBED, False)


@dataclass(frozen=True)
class Follow(AnyProtocol):
    """Everybody follows the first agent."""

    name = "follow"

    def plan(self, problem):
        return {"n": problem.n_agents}

    def seat(self, place):
        assert place.plan == {"n": place.n_agents}
        kind = Agent if place.number == 0 else Follower
        return kind(place.name, place.arms, place.policy, Telling(place), place.chances)

    def size(self, message):
        assert message.kind == "pulled"
        return 4


PROBLEM = bm.Problem(bm.networks.star(5), [[0, 1]] * 5, [bm.arms.Gaussian(0.0, 0.1), bm.arms.Gaussian(1.0, 0.1)])


def test_courier_of_ones_own_is_one_class():
    result = bm.simulate(PROBLEM, ThriftyFlooding(4), horizon=20, seed=0)
    flooded = bm.simulate(PROBLEM, bm.Flooding(4), horizon=20, seed=0)
    # The centre passes two messages of each leaf on, to the three other leaves.
    assert result.traffic["sent"][0] == 20 * 8 + 2 * 4 * 3
    assert flooded.traffic["sent"][0] == 20 * 8 + 19 * 4 * 3
    assert result.engine == "reference"


def test_whole_agent_of_ones_own_is_one_class():
    result = bm.simulate(PROBLEM, Follow(), horizon=20, seed=0, trace=True)
    assert result.traffic["sent"][0] == 20 * 4
    assert result.traffic["bytes"][0] == 20 * 4 * 4
    assert {event.fate for event in result.trace} == {"absorbed"}
    assert not any(event.learned for event in result.trace)
    leader = result.pulls[0, 0]
    # Followers are one pull behind, so they differ from their leader by the first and the last pull at most.
    assert all(np.abs(pulls - leader).max() <= 1 for pulls in result.pulls[0, 1:])


@pytest.mark.parametrize("protocol", [ThriftyFlooding(4), Follow()])
def test_what_is_brought_runs_on_the_reference_and_nowhere_else(protocol):
    with pytest.raises(UnsupportedError, match="brings its own courier or agent"):
        bm.simulate(PROBLEM, protocol, horizon=5, seed=0, engine="compiled")
    assert not runs_live(protocol)
    assert protocol.facts is None
    bounds = bm.bounds(PROBLEM, protocol, horizon=100)
    assert np.isnan(bounds.traffic.within_ttl)
    assert np.isnan(bounds.upper_sharp)


def test_steps_equal_a_whole_run_for_what_is_brought():
    for protocol in (ThriftyFlooding(4), Follow()):
        whole = bm.simulate(PROBLEM, protocol, horizon=12, seed=3)
        steps = bm.Simulation(PROBLEM, protocol, horizon=12, seed=3)
        for _ in range(5):
            steps.step()
        assert np.array_equal(whole.regret, steps.run().regret)


def test_facts_of_shipped_protocols():
    assert bm.NoCooperation().facts == Facts(hops=0)
    assert bm.Centralised().facts == Facts(hops=0, central=True)
    assert bm.IRS().facts == Facts(hops=1)
    assert bm.Flooding(3).facts == Facts(hops=3)
    assert bm.FwA(3).facts == Facts(hops=3, absorbs=True)
    assert bm.ProbabilisticFlooding(3, stop=0.25).facts == Facts(hops=3, passes=0.75)
    assert bm.Gossip(3, fanout=2).facts == Facts(hops=3, fanout=2)
    assert bm.TreeAggregation(4).facts == Facts(hops=1, merges=True, pause=4)


class _Stopping:
    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.STOP


class Mixed(_Stopping, bm.FwA):
    name = "mixed"


class Renamed(bm.FwA):
    name = "renamed"


class Stated(_Stopping, bm.Flooding):
    name = "stated"

    @property
    def facts(self):
        return Facts(hops=1)


def test_facts_hold_only_for_the_class_that_states_them():
    assert Mixed(4).facts is None
    assert Renamed(4).facts == bm.FwA(4).facts
    assert Stated(4).facts == Facts(hops=1)

    class Further(Stated):
        n_targets = 1

    assert Further(4).facts is None


def test_unknown_facts_give_no_bound_and_a_rule_alone_still_bounds_traffic():
    bounds = bm.bounds(PROBLEM, Mixed(4), horizon=100)
    assert np.isnan(bounds.upper_sharp)
    assert bounds.traffic.within_ttl == bm.bounds(PROBLEM, bm.Flooding(4), horizon=100).traffic.within_ttl
    assert not bounds.traffic.exact


def test_algorithm_without_an_emission_says_so():
    with pytest.raises(bm.InputError, match="takes no emission"):
        Follow().with_emission(bm.Growth(0.5))
