"""The bandits of a node: for each bandit and segment an agent over the same arms.

Table, ledger, outboxes and tickets are one for all, and know arms by the names under which they travel (see `names`).

Rules kept here. *Segments* are made when a choice first names them, and once more at a start if something was chosen or
observed in them; there are at most `caps.segments` of a bandit, and where it lists its segments, a choice in any other
is made without one. *Arms:* each agent has all arms of its bandit. One that comes knows at once what the table has of
it, and one that goes is relayed. A change costs what it changes, and not the table.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ... import checks
from ...errors import InputError
from ..bandits import BanditSpec, name_problems
from ..forgetting import TimeOfDay, told_memory
from ..http.openapi import AgentView
from ..names import DEFAULT, Caps, agent_name, arm_name, check_name, split_agent, split_arm
from ..statistics import ArmSpec, noise_of, policy_arms
from .agents import Bandit, SegmentAgent
from .ledger import Ledger, Own
from .outboxes import LiveChances
from .table import StatisticTable
from .tickets import Flights


class Bandits:
    """All bandits of a node.

    Parameters
    ----------
    node : str
        The node's own name.
    ledger : Ledger
    table : StatisticTable
    caps : Caps
    time : TimeOfDay
    new_flights : callable
        `new_flights(patience)` makes the choices in flight of one agent.
    trim : int
        How many others may lie, at most; with 0 all is believed.
    chances, rng, counters
        What policies draw from, what exploration draws from, and where choices and refusals are counted.

    Attributes
    ----------
    agents : dict
        By what they are called in the names of arms.
    memories : dict
        By bandit: its memory, as hellos and the state have it.
    holder : dict
        By the name of an arm in statistics: the agent that has it.
    """

    def __init__(
        self,
        node: str,
        ledger: Ledger,
        table: StatisticTable,
        caps: Caps,
        time: TimeOfDay,
        new_flights: Callable[[float | None], Flights],
        chances: LiveChances,
        rng: random.Random,
        counters: Counter[str],
        trim: int = 0,
    ) -> None:
        self.trim = trim
        self.agents: dict[str, SegmentAgent] = {}
        self.holder: dict[str, SegmentAgent] = {}
        self.memories: dict[str, str] = {}
        self._is_other_range = False
        self._bandits: dict[str, Bandit] = {}
        self._node = node
        self._ledger = ledger
        self._table = table
        self._caps = caps
        self._time = time
        self._new_flights = new_flights
        self._chances = chances
        self._rng = rng
        self._counters = counters

    # Which there are

    def set(self, specs: Sequence[BanditSpec]) -> Iterator[int]:
        """Have these bandits from now on, which were checked; the default one is always there. A walk.

        Of a bandit that is there already, arms, segments and `new_arms` may be others; its agents stay.
        """
        wanted = {spec.name: spec for spec in [BanditSpec(name=DEFAULT, arms=[]), *specs]}
        for name in [name for name in self._bandits if name not in wanted]:
            yield from self._change(self._bandits[name], [])
            for agent in self._bandits.pop(name).agents.values():
                del self.agents[agent.name]
        self.memories = {name: told_memory(spec.memory) for name, spec in wanted.items()}
        for name, spec in wanted.items():
            bandit = self._bandits.get(name)
            if bandit is None:
                bandit = self._bandits[name] = Bandit(spec)
                self._add_agent(bandit, "", self._ledger.own.items())
            bandit.spec = spec
            yield from self._change(bandit, spec.arms)

    def set_arms(self, arms: Sequence[ArmSpec], name: str = DEFAULT) -> Iterator[int]:
        """Let a bandit have these arms from now on. A walk."""
        bandit = self._named(name)
        spec = replace(bandit.spec, arms=list(arms))
        self.check([spec if one is bandit else one.spec for one in self._bandits.values()])
        bandit.spec = spec
        return self._change(bandit, arms)

    def take_other_range(self) -> bool:
        """Whether, since this was last asked, an arm got another range of which something was refused.

        Then links should be made anew: neighbours offer it once more.
        """
        is_other, self._is_other_range = self._is_other_range, False
        return is_other

    def check(self, specs: Sequence[BanditSpec], trim: int | None = None) -> None:
        """Refuse bandits that there cannot be, in the segments that there are; with `trim` if it is to change."""
        n_arms, agents_of = 0, dict[str, list[str]]()
        for spec in specs:
            bandit = self._bandits.get(spec.name) or Bandit(spec)
            agents = agents_of[spec.name] = self._names(bandit, bandit.agents or [""])
            n_arms += len(spec.arms) * len(agents)
            if len({one.name for one in spec.arms}) < len(spec.arms) or n_arms > self._caps.arms:
                names = checks.shown([one.name for one in spec.arms])
                raise InputError(f"arms must have at most {self._caps.arms} different names (caps.arms), got {names}")
            for arm in spec.arms:
                if bandit.arms.get(arm.name) != arm:
                    for problem in name_problems(agents, arm.name):
                        raise InputError(problem)
                if self.trim if trim is None else trim:
                    noise_of(arm)
            spec.policy.require(policy_arms(spec.arms))
        own, most = self._ledger.own, self._caps.arms
        if n_arms + len(own) > most:
            # What this life has observed stays, whether or not the node still has the arm.
            wanted = {arm_name(one, arm.name) for spec in specs for one in agents_of[spec.name] for arm in spec.arms}
            n_arms = len(wanted | own.keys())
            if n_arms > most and not wanted <= own.keys() | self.holder.keys():
                with_own = "with those that this life has observed"
                raise InputError(f"there may be at most {most} arms (caps.arms), {with_own}, got {n_arms}")

    def _change(self, bandit: Bandit, arms: Sequence[ArmSpec]) -> Iterator[int]:
        """Give a bandit other arms: first those that come, so that there is always one to choose, then none that went.

        A walk; in between it has the arms that have come by then, and those that have not gone yet.
        """
        old, wanted = dict(bandit.arms), {spec.name: spec for spec in arms}
        if list(old) == list(wanted) and old == wanted:
            return
        agents = bandit.agents.values()
        for spec in arms:
            if old.get(spec.name) != spec:
                bandit.arms[spec.name] = spec
                yield sum([self._use(agent, spec) for agent in agents])
        for name in [name for name in old if name not in wanted]:
            del bandit.arms[name]
            yield sum([self._drop(agent, name) for agent in agents])
        bandit.arms = wanted
        for agent in agents:
            agent.make_anew()

    @staticmethod
    def _names(bandit: Bandit, segments: Iterable[str]) -> list[str]:
        return [agent_name(bandit.spec.name, segment) for segment in segments]

    def _use(self, agent: SegmentAgent, spec: ArmSpec) -> int:
        """Let an agent have an arm as it is now; how many rows that changes."""
        name = arm_name(agent.name, spec.name)
        agent.make_anew()
        self.holder[name] = agent
        if agent.fading is not None:
            self._table.fadings[name] = agent.fading
        self._is_other_range |= self._table.have_arm(name, spec.reward_range)
        agent.renew(name)
        return 1 + self._table.n_rows_of(name)

    def _drop(self, agent: SegmentAgent, arm: str) -> int:
        """Let an agent have an arm no more; how many rows that changes."""
        name = arm_name(agent.name, arm)
        agent.make_anew()
        del self.holder[name]
        self._table.fadings.pop(name, None)
        self._is_other_range |= self._table.drop_arm(name)
        return 1 + self._table.n_rows_of(name)

    def _add_agent(self, bandit: Bandit, segment: str, mine: Iterable[tuple[str, Own]] = ()) -> SegmentAgent:
        """Make an agent, which goes on counting the choices of its arms in what is the node's own."""
        flights = self._new_flights(bandit.spec.patience)
        agent = SegmentAgent(
            bandit, segment, self._node, self._ledger, self._table, self._time, flights, self._chances,
            self._rng, self._counters,
        )  # fmt: skip
        bandit.agents[segment] = self.agents[agent.name] = agent
        agent.believe(self.trim)
        agent.n_choices = sum(own.n_chosen for name, own in mine if split_arm(name)[0] == agent.name)
        for spec in bandit.arms.values():
            self._use(agent, spec)
        return agent

    def set_trim(self, trim: int) -> None:
        """Bear this many liars from now on. Arms that cannot be tested must have been refused."""
        self.trim = trim
        for agent in self.agents.values():
            agent.believe(trim)
            agent.make_anew()
        self.renew(self.holder)

    def restore(self) -> None:
        """Own statistics and table are back: make the segments that were in use, and sum everything anew."""
        n_choices: Counter[str] = Counter()
        for name, own in self._ledger.own.items():
            n_choices[split_arm(name)[0]] += own.n_chosen
        for name in n_choices:
            bandit, segment = split_agent(name)
            if segment and bandit in self._bandits:
                self._segment(self._bandits[bandit], segment, is_asked=False)
        for agent in self.agents.values():
            agent.n_choices = n_choices[agent.name]
        self.renew_all()

    def renew(self, arms: Iterable[str]) -> None:
        """Sum these arms anew, by their names in statistics, as far as the node has them."""
        for arm in arms:
            if arm in self.holder:
                self.holder[arm].renew(arm)

    def renew_all(self) -> None:
        """What was observed and chosen, and all that is known, is something else."""
        for agent in self.agents.values():
            agent.make_anew()
        self.renew(self.holder)

    # Who is asked

    def arms_of(self, name: str | None) -> list[str]:
        """The names of a bandit's arms."""
        return list(self._named(name).arms)

    def lapse_reward_of(self, name: str) -> float | None:
        """What a bandit takes silence for, if for anything; None of one that is gone, too."""
        return self._bandits[name].spec.lapse_reward if name in self._bandits else None

    def new_arms(self, name: str | None, among: Collection[str] | None) -> list[ArmSpec]:
        """The arms that a choice names and that its bandit is to have first."""
        return self._named(name).new_arms(among)

    def chooser(self, name: str | None, segment: str | None, among: Collection[str] | None) -> SegmentAgent:
        """The agent that chooses for a bandit in a segment among these arms."""
        self._named(name).check_among(self._node, among)
        return self.agent(name, segment)

    def agent(self, name: str | None = None, segment: str | None = None) -> SegmentAgent:
        """The agent of a bandit in a segment, made if it is asked for the first time."""
        bandit = self._named(name)
        if not segment:
            return bandit.agents[""]
        if not isinstance(segment, str):
            raise InputError(f"segment must be a text, got {checks.shown(segment)}")
        return self._segment(bandit, segment) or bandit.agents[""]

    def _named(self, name: str | None) -> Bandit:
        name = DEFAULT if name is None else name
        if not isinstance(name, str) or name not in self._bandits:
            known = ", ".join(map(repr, self._bandits))
            raise InputError(f"bandit must be one of node {self._node!r} ({known}), got {checks.shown(name)}")
        return self._bandits[name]

    def _segment(self, bandit: Bandit, segment: str, is_asked: bool = True) -> SegmentAgent | None:
        """The agent of a segment; None where the bandit does not have it, and also if that is refused at a start."""
        if segment in bandit.agents:
            return bandit.agents[segment]
        if bandit.spec.segments is not None and segment not in bandit.spec.segments:
            return None
        check_name("segment", segment)
        refusal = self._against_segment(bandit, segment)
        share = self._caps.entries_per_origin
        if is_asked and refusal is None and self._table.n_of_its_own() >= share:
            refusal = (
                f"segment {segment!r} would not be heard of: others take at most {share} statistics of one node "
                "(caps.entries_per_origin), and this one has as many; raise the cap on all nodes"
            )
        if refusal is None:
            return self._add_agent(bandit, segment, self._ledger.own.items() if is_asked else ())
        self._counters["refused_segments"] += 1
        if is_asked:
            raise InputError(refusal)
        return None

    def _against_segment(self, bandit: Bandit, segment: str) -> str | None:
        """Why a bandit cannot have one more segment, if so."""
        most = self._caps.segments
        if len(bandit.agents) > most:
            return f"bandit {bandit.spec.name!r} may have at most {most} segments (caps.segments), got {segment!r} more"
        agent = agent_name(bandit.spec.name, segment)
        if not self._table.roster.has_room_for_arms(arm_name(agent, arm) for arm in bandit.arms):
            return (
                f"there may be at most {self._caps.arms} arms in all segments (caps.arms), got segment {segment!r} more"
            )
        for arm in bandit.arms:
            for problem in name_problems([agent], arm):
                return problem
        return None

    def left_out(self) -> Counter[str]:
        """By origin: of how many arms what it tells is left out."""
        outs = (agent.beliefs.out.values() for agent in self.agents.values() if agent.beliefs is not None)
        return Counter(name for out in outs for names in out for name in names)

    def begin(self) -> None:
        """A start or a life begins: nothing is in flight."""
        for agent in self.agents.values():
            agent.flights.begin()

    def views(self, n_choices: int, uptime: float) -> list[AgentView]:
        """What each agent knows, after `n_choices` of the node; that of the default bandit without a segment first."""
        return [agent.view(n_choices, uptime) for agent in self.agents.values()]

    def n_segments(self) -> int:
        """How many segments there are of the bandit that has the most."""
        return max(len(bandit.agents) - 1 for bandit in self._bandits.values())
