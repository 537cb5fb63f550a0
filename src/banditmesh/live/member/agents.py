"""The agent of a bandit in one segment: the core's, with its estimates, its clock and its choices in flight.

Rules kept here. The clock is the number of the agent's choices so far, this one included; it is the sum of what is
stored of its arms, so it survives what they do. *Changes:* arms that stay keep their estimates, and the agent is made
anew when it is next used. *No echo of what has left:* what is heard enters the estimates as a difference; where a sum
has been a million times what it is now, so that rounding may have wiped out what others observed, the arm is summed
anew from own statistics and table. Where others may lie (`Beliefs`), each arm is worked out anew after every change.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from ... import checks
from ...core import Agent, Silent
from ...errors import InputError
from ...policies.base import Estimates
from ..bandits import BanditSpec
from ..forgetting import LEAST_WEIGHT, NO_PART, ChoiceClock, Fading, Part, TimeOfDay, half_life_of
from ..http.openapi import MAX_NAMED, AgentView, ArmView
from ..names import DEFAULT, agent_name, arm_name, split_arm
from ..statistics import ArmSpec, Values, noise_of, policy_arms
from .beliefs import Beliefs
from .choosing import Sight
from .ledger import Ledger, Own
from .outboxes import LiveChances
from .table import StatisticTable
from .tickets import NOT_WAITING, Flights

#: An arm is summed anew once its sum has been this many times what it is now.
MAX_TAKEN_OUT: Final = 1e6


class Bandit:
    """A bandit that runs: what it is told, its arms by name, and its agents by segment ("" without one)."""

    def __init__(self, spec: BanditSpec) -> None:
        self.spec = spec
        self.arms: dict[str, ArmSpec] = {}
        self.agents: dict[str, SegmentAgent] = {}

    def new_arms(self, among: Collection[str] | None) -> list[ArmSpec]:
        """The arms that a choice names and that are to be made first: like its first arm, but without its prior."""
        if not self.spec.new_arms or among is None or isinstance(among, str):
            return []
        like = next(iter(self.arms.values()), None)
        names = [name for name in dict.fromkeys(among) if name not in self.arms]
        return [ArmSpec(name) if like is None else replace(like, name=name, prior=None) for name in names]

    def check_among(self, node: str, among: Collection[str] | None) -> None:
        """Refuse to choose where there is nothing to choose from, or among what it does not have."""
        name = f"node {node!r}" if self.spec.name == DEFAULT else f"bandit {self.spec.name!r}"
        if not self.arms:
            raise InputError(
                f"{name} has no arms to choose from{': it only relays' if name.startswith('node') else ''}"
            )
        if among is not None and (
            isinstance(among, str) or not among or not all(isinstance(arm, str) and arm in self.arms for arm in among)
        ):
            raise InputError(f"among must name some of the arms of {name}, got {checks.shown(among)}")


class SegmentAgent:
    """The agent of a bandit in one segment.

    Parameters
    ----------
    bandit : Bandit
        Whose arms it has.
    segment : str
        Empty for the agent without one.
    node : str
        The node's own name.
    ledger : Ledger
        What the node observed itself.
    table : StatisticTable
        What others observed.
    time : TimeOfDay
        By which what it knows is read.
    flights : Flights
        Its choices in flight.
    chances, rng, counters
        What policies draw from, what exploration draws from, and where choices are counted.

    Attributes
    ----------
    name : str
        What it is called in the names of its arms.
    n_choices : int
        How many choices it has made: its policy's clock, unless it forgets.
    fading : Fading or None
        The scale in which it keeps what it knows, if its bandit forgets.
    clock : ChoiceClock
        The discounted number of its choices: its policy's clock if it forgets.
    beliefs : Beliefs or None
        What it believes of others, where some may lie; else it believes all that it hears.
    """

    def __init__(
        self,
        bandit: Bandit,
        segment: str,
        node: str,
        ledger: Ledger,
        table: StatisticTable,
        time: TimeOfDay,
        flights: Flights,
        chances: LiveChances,
        rng: random.Random,
        counters: Counter[str],
    ) -> None:
        self.name = agent_name(bandit.spec.name, segment)
        self.bandit = bandit
        self.segment = segment
        self.flights = flights
        self.n_choices = 0
        half_life = half_life_of(bandit.spec.memory)
        self.fading = None if half_life is None else Fading(half_life)
        self.clock = ChoiceClock()
        self.beliefs: Beliefs | None = None
        #: By arm of which the node's own stamp was ahead of its clock when it was stored: when it counts as seen.
        self._ahead: dict[str, float] = {}
        self._time = time
        self._node = node
        self._ledger = ledger
        self._table = table
        self._chances = chances
        self._rng = rng
        self._counters = counters
        self._agent: Agent | None = None
        self._position: dict[str, int] = {}
        #: What is known of arms, count and sum, when the agent is made anew; of others it goes on as it was.
        self._fresh: dict[str, tuple[Any, float]] = {}
        #: By arm: the largest that the sum may have been since it was made anew.
        self._largest: list[float] = []
        #: What the policy sees, once it is to be asked.
        self._sight: Sight | None = None
        self._is_stale = True

    # What changes

    def renew(self, arm: str) -> None:
        """Sum an arm anew, from own statistics and table; nothing that was heard may wait to be learned."""
        if self.beliefs is not None:
            self.beliefs.changed(arm)
            self._is_stale |= arm not in self._position
            return
        own = (self._ledger.own.get(arm) or Own()).values
        count, total = self._table.sums_of(arm, self.fading is not None)
        known: tuple[Any, float] = own.count + count, own.total + total
        if self.fading is not None:
            mine = self._own_part(self.fading, arm, own)
            known = mine.weight + count, mine.total + total
        if self._is_stale or arm not in self._position:
            self._fresh[arm] = known
            self._is_stale = True
        else:
            position = self._position[arm]
            self._in_use().estimates.put(position, *known)
            self._largest[position] = abs(known[1])

    def _own_part(self, fading: Fading, arm: str, own: Values) -> Part:
        """What the node's own observations add to what is known of an arm by weight."""
        if not own.stamp:
            return NO_PART
        seen = own.stamp
        if arm in self._ahead or own.stamp > self._time.horizon:
            seen = self._ahead.setdefault(arm, self._time.horizon)
        return fading.part(own.weight, own.weighted_total, min(seen, own.stamp))

    def look_anew(self) -> None:
        """The clock was set: what is ahead of it is judged by it once more."""
        self._ahead.clear()
        self.rescale()

    def rescale(self) -> None:
        """Keep what it knows in the scale of now; nothing that was heard may wait to be learned."""
        assert self.fading is not None
        self.fading.begin(self._time.now)
        for arm in self.bandit.arms:
            self.renew(arm_name(self.name, arm))

    def _read(self) -> Estimates:
        """What is known of its arms now."""
        estimates = self.agent().estimates
        if self.fading is None:
            return estimates
        view, unit = estimates.part(range(len(estimates))), self.fading.unit(self._time.now)
        for position, (weight, total) in enumerate(zip(estimates.count, estimates.total, strict=True)):
            view.put(position, weight / unit, total / unit)
        return view

    def make_anew(self) -> None:
        """What it has chosen and observed, or which arms it has, is something else."""
        self._is_stale = True

    def believe(self, f: int) -> None:
        """Test what others tell from now on, since `f` of them may lie; with 0 believe it. All is to be renewed."""
        self.beliefs = Beliefs(f, self._node, self._table.by_origin) if f else None

    def agent(self) -> Agent:
        """The agent, as it is now, with all that it knows."""
        agent = self.made()
        if self.beliefs is not None:
            half_life = None if self.fading is None else self.fading.half_life
            for name in self.beliefs.due(self._names, self._time.now, half_life):
                agent.estimates.put(self._position[name], *self._believed(self.beliefs, name))
        return agent

    def _believed(self, beliefs: Beliefs, name: str) -> tuple[Any, float]:
        own = (self._ledger.own.get(name) or Own()).values
        sigma = noise_of(self._specs[self._position[name]])
        if self.fading is None:
            return beliefs.known(name, (own.count, own.total), sigma, None)
        mine = self._own_part(self.fading, name, own)
        return beliefs.known(name, mine, sigma, self.fading.unit(self._time.now))

    def made(self) -> Agent:
        """The agent, with the arms that it has now."""
        if self._is_stale:
            self._remake()
        return self._in_use()

    def _in_use(self) -> Agent:
        assert self._agent is not None
        return self._agent

    def _remake(self) -> None:
        old, kept, largest = self._agent, self._position, self._largest
        specs = list(self.bandit.arms.values())
        names = [arm_name(self.name, spec.name) for spec in specs]
        own = [self._ledger.own.get(name) or Own() for name in names]
        agent = Agent(self._node, policy_arms(specs), self.bandit.spec.policy, Silent(), self._chances)
        agent.resume([one.count for one in own], [one.n_chosen for one in own])
        self._largest = [0.0] * len(names)
        for position, name in enumerate(names):
            if name in self._fresh or old is None or name not in kept:
                known = self._fresh.get(name, (0, 0.0))
                self._largest[position] = abs(known[1])
            else:
                before = kept[name]
                known = old.estimates.count[before], old.estimates.total[before]
                self._largest[position] = largest[before]
            agent.estimates.put(position, *known)
        if self.beliefs is not None:
            self.beliefs.drop(kept.keys() - set(names))
        self._agent, self._specs, self._names = agent, specs, names
        self._position = {name: position for position, name in enumerate(names)}
        self._fresh = {}
        self._sight = None
        self._is_stale = False

    # Choosing and learning

    def choose(self, among: Collection[str] | None, n_before: int, uptime: float) -> tuple[str, float | None]:
        """Choose one of its arms, after `n_before` choices of the node: its name in statistics, and its probability."""
        agent = self.agent()
        positions: Sequence[int] = range(len(self._names))
        if among is not None:
            positions = sorted({self._position[arm_name(self.name, arm)] for arm in among})
        sight = self._look_at_flights(n_before, uptime)
        position = agent.first_pull(positions, sight.waiting)
        self.n_choices += 1
        clock: Any = self.n_choices
        if self.fading is not None:
            clock = self.clock.tick(self._time.now, self.fading.half_life)
        if position is not None:
            self._counters["choices_first"] += 1
            probability: float | None = 1.0
        else:
            position, probability = self._ask_policy(agent, clock, positions, sight)
        agent.chose(position)
        return self._names[position], probability

    def _ask_policy(self, agent: Agent, clock: Any, positions: Sequence[int], sight: Sight) -> tuple[int, float | None]:
        explore = self.bandit.spec.explore
        best = position = sight.preferred(lambda view: agent.preferred(clock, positions, view).position, self._read())
        if explore and self._rng.random() < explore:
            self._counters["choices_explored"] += 1
            position = positions[self._rng.randrange(len(positions))]
        if self.bandit.spec.policy.random:
            return position, None
        return position, explore / len(positions) + (1.0 - explore) * (position == best)

    def _look_at_flights(self, n_choices: int, uptime: float) -> Sight:
        """What the policy sees, with what is made of open tickets now."""
        if self._sight is None:
            self._sight = Sight(self._specs, self.bandit.spec.lapse_reward)
            self.flights.tell_all()
        for arm, waiting in self.flights.changes(n_choices, uptime):
            # Also of arms that the node does not have any more: what has lapsed falls out.
            if arm in self._position:
                self._sight.wait(self._position[arm], waiting)
        return self._sight

    def observe(self, rewards: Iterable[tuple[str, float]]) -> None:
        """Learn of the node's own rewards, which are counted."""
        agent = self.made()
        counted = [(self._position[arm], reward) for arm, reward in rewards]
        fading, estimates, ahead = self.fading, agent.estimates, set[str]()
        for position, reward in counted:
            known = estimates.count[position], estimates.total[position]
            agent.observe(position, reward)
            if fading is not None:
                name = self._names[position]
                stamp = self._ledger.own_of(name).values.stamp
                unit = fading.unit(stamp)
                estimates.put(position, known[0] + unit, known[1] + unit * reward)
                if self._ahead.pop(name, None) is not None or stamp > self._time.horizon:
                    ahead.add(name)
        for name in ahead:
            # All of these rewards are in what is summed.
            self.renew(name)
        if self.beliefs is None:
            self._renew_blurred(counted)
        else:
            for position, _ in counted:
                self.beliefs.changed(self._names[position])

    def learn(self, parts: Iterable[tuple[str, Any, float]]) -> None:
        """Learn of others' rewards: the arm, how many more, and what they add to the sum."""
        if self.beliefs is not None:
            for arm, _, _ in parts:
                self.beliefs.changed(arm)
            return
        agent = self.agent()
        known = [(self._position[arm], more, total) for arm, more, total in parts]
        if self.fading is None:
            agent.learn(known)
        else:
            estimates = agent.estimates
            for position, weight, total in known:
                estimates.put(position, estimates.count[position] + weight, estimates.total[position] + total)
            for position in {position for position, _, _ in known}:
                # What rounding leaves of nothing is nothing. All of what was heard is in what is summed.
                if estimates.count[position] < LEAST_WEIGHT:
                    self.renew(self._names[position])
        self._renew_blurred((position, total) for position, _, total in known)

    def _renew_blurred(self, added: Iterable[tuple[int, float]]) -> None:
        """After this was added to the estimates: sum anew where rounding may have left little of what stays."""
        moved: dict[int, float] = {}
        for position, total in added:
            moved[position] = moved.get(position, 0.0) + abs(total)
        totals, largest = self._in_use().estimates.total, self._largest
        for position, size in moved.items():
            now = abs(totals[position])
            largest[position] = max(largest[position], now + size)
            if largest[position] > MAX_TAKEN_OUT * now:
                self.renew(self._names[position])

    # Looking

    def estimates(self) -> Iterator[tuple[str, tuple[Any, float]]]:
        """For each of its arms, by its name in statistics: number and sum of all observations that it knows of.

        Of a bandit that forgets, their weights now.
        """
        estimates = self._read()
        return zip(self._names, zip(estimates.count, estimates.total, strict=True), strict=True)

    def view(self, n_choices: int, uptime: float) -> AgentView:
        """What it knows of each of its arms."""
        estimates, policy = self._read(), self.bandit.spec.policy
        clock: float = self.n_choices + 1
        if self.fading is not None:
            clock = self.clock.read(self._time.now, self.fading.half_life)
        waiting, found = self._look_at_flights(n_choices, uptime).waiting, []
        for position, (spec, name) in enumerate(zip(self._specs, self._names, strict=True)):
            count, own = estimates.count[position], self._ledger.own.get(name) or Own()
            n_heard = count - own.count if self.fading is None else int(self._table.sums_of(name)[0])
            n_young, n_silent, _ = waiting.get(position, NOT_WAITING)
            out = [] if self.beliefs is None else self.beliefs.out.get(name, [])
            found.append(
                ArmView(
                    spec.name,
                    own.count,
                    n_heard,
                    estimates.mean[position] if count else None,
                    policy.index_at(clock, estimates, position) if count else None,
                    self._table.n_origins(name),
                    n_young + n_silent,
                    n_silent,
                    None if self.fading is None else count,
                    len(out),
                    out[:MAX_NAMED],
                )
            )
        name, segment = self.bandit.spec.name, self.segment or None
        return AgentView(name, segment, policy.name, self.n_choices, found, self.bandit.spec.memory)


#: By the name of an arm in statistics: the agent that has it.
Holders: TypeAlias = Mapping[str, SegmentAgent]


def spec_of(holders: Holders, arm: str) -> ArmSpec | None:
    """What the configuration says of an arm; None if the node does not have it."""
    agent = holders.get(arm)
    return None if agent is None else agent.bandit.arms[split_arm(arm)[1]]


def make_ready(holders: Holders, arms: Iterable[str]) -> None:
    """Have the agents of these arms as they are before rewards of them are counted."""
    for agent in {holders[arm] for arm in arms if arm in holders}:
        agent.made()


def observe(holders: Holders, counted: Iterable[tuple[str, float]]) -> None:
    """Learn of the node's own rewards, which are counted."""
    rewards: dict[SegmentAgent, list[tuple[str, float]]] = {}
    for arm, reward in counted:
        if arm in holders:
            rewards.setdefault(holders[arm], []).append((arm, reward))
    for agent, some in rewards.items():
        agent.observe(some)


def learn(holders: Holders, heard: Iterable[tuple[str, int, str, Any, float]]) -> None:
    """Learn of what was heard, in this order: origin, epoch, arm, how many more, and what they add to the sum."""
    parts: defaultdict[SegmentAgent, list[tuple[str, Any, float]]] = defaultdict(list)
    for _, _, arm, more, total in heard:
        parts[holders[arm]].append((arm, more, total))
    for agent, some in parts.items():
        agent.learn(some)


def settle(holders: Holders, table: StatisticTable, in_order: bool = False) -> None:
    """Let what was heard enter the estimates; with `in_order` in ascending order of origins.

    It must before an arm is summed anew, or it would count twice.
    """
    heard = table.heard
    if heard:
        if in_order:
            heard.sort()
        learn(holders, heard)
        heard.clear()
    for arm in table.fell:
        if arm in holders:
            holders[arm].renew(arm)
    table.fell.clear()
