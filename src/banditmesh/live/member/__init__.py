"""A member of the mesh: a node without its links, its disk and its clock. Events in, effects out.

    restore, begin              what was stored comes back; a start begins
    choose                      -> an arm and a ticket
    plan, committed, failed     observations become durable, and only then visible
    hear, settle                statistics come from a neighbour, and enter the estimates; what is signed is given back
                                first, to be checked
    link_up, link_down, take    links, and what goes over them
    set_*, retire, new_life     what may change while it runs
    dirty_entries, snapshot     what is stored later, and what is shown

How it chooses and learns is in `Bandits`, by agents of the core; what becomes of what it hears is in `StatisticTable`,
what waits for links in `Outboxes`, and which rewards were counted in `Ledger`. What agents know is derived from own
statistics and table, and never stored. In all of these an arm has the name under which its statistics travel.

Rules kept here. *Nothing leaves that could be forgotten:* `plan` says what one transaction must write and asks the
emission once for each arm in it; only `committed` makes that visible, lets the agent learn and puts what is told into
the outboxes. There is one commit at a time. *A new life:* own statistics, as committed, move into the table under the
old epoch, where the larger count wins; own counts begin at zero, and tickets of the old life are refused. The number of
choices of each arm goes on. A life that is retired moves nothing.

Everything that is begun (`begin`, `plan`, `new_life`) is a `Commit`: store its `changes` and sign the rows `to_sign`;
then call `committed` with it, or `failed` if that was not possible.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...errors import InputError
from ...protocols import notation
from ...protocols.base import AnyProtocol
from ..bandits import BanditSpec
from ..certificates import UNSIGNED, Certificates
from ..disk import AgentClock, BanditMemory, Changes, Life, OpenTicket, OwnArm, Start, Stored
from ..forgetting import BEHIND_FOR, MAX_CLOCK_SKEW, ChoiceClock, TimeOfDay, faded, half_life_of
from ..http.openapi import CapView, StateView, warnings_of
from ..names import (
    DEFAULT,
    OPEN_CHOICES,
    Caps,
    agent_name,
    arm_name,
    check_name,
    epoch_text,
    split_agent,
    split_arm,
)
from ..statistics import ArmSpec, Entry, Key, Known, Statistic, Values
from . import agents
from .agents import SegmentAgent
from .bandits import Bandits
from .choosing import NodeChoice
from .ledger import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Answer, Draft, Ledger, Observation, Own, own_arm
from .outboxes import LiveChances, Outboxes
from .table import StatisticTable
from .tickets import KEY_BYTES, Flights, Ticket

__all__ = [
    "ALREADY_COUNTED",
    "COUNTED",
    "REFUSED",
    "WITHDRAWN",
    "Answer",
    "ArmSpec",
    "Commit",
    "Member",
    "NodeChoice",
    "Observation",
    "Ticket",
]


#: How often the uptime is stored while tickets are open that may lapse, in seconds.
WRITE_UPTIME_EVERY: Final = 60.0


class Commit(NamedTuple):
    """Something that happens as soon as its changes are stored, and rows are signed that leave the node with it."""

    changes: Changes
    apply: Callable[[], None]
    to_sign: Sequence[Known] = ()


class Member:
    """A member of a mesh.

    Parameters
    ----------
    mesh, node : str
        The mesh, and the member's own name.
    bandits : sequence of BanditSpec
        What it chooses among, and how; none for a node that only relays.
    protocol : AnyProtocol
        How it relays, and when it tells what it observed.
    caps : Caps
        The most that it keeps.
    max_ttl : int, optional
        The most hops that a statistic may have before it when it comes; the protocol's ttl unless given.
    ignore : collection
        Names, and lives (name, epoch), that are treated as retired.
    ticket_lifetime : float
        How long a ticket is good for, in seconds.
    open_choices : int
        How many of the last choices can still be settled.
    max_clock_skew : float
        How far ahead of the node's clock a stamp counts as it is, in seconds.
    certificates : Certificates, optional
        By which statistics are signed.
    signatures : str
        Whether statistics must be signed, may be, or are not looked at; see `certificates`.
    rng : random.Random
        What it draws from.

    Attributes
    ----------
    counters : Counter
        How often what happened, by name; everything that begins with `refused_` was refused for that reason.

    Examples
    --------
    Two members, one link, and a driver that stores nothing:

    >>> import random
    >>> import banditmesh as bm
    >>> def make(name):
    ...     arms = [ArmSpec("red", sigma=1.0), ArmSpec("blue", sigma=1.0)]
    ...     bandits = [BanditSpec(name="default", arms=arms)]
    ...     member = Member("shop", name, bandits, bm.FwA(4), rng=random.Random(0))
    ...     member.committed(member.begin(epoch=7, now=0.0))
    ...     return member
    >>> anna, bert = make("anna"), make("bert")
    >>> anna.link_up("bert")
    >>> arm, ticket = anna.choose(now=1.0)
    >>> commit, answers = anna.plan([Observation(0.5, ticket)], now=2.0)
    >>> anna.committed(commit)
    >>> answers, anna.plan([Observation(0.5, ticket)], now=3.0)[1]
    ([Answer(outcome='counted', reason='')], [Answer(outcome='already counted', reason='')])
    >>> batch = anna.take("bert", n_bytes=65536)
    >>> batch
    [Statistic(origin='anna', epoch=7, arm='red', count=1, total=0.5, ttl=4)]
    >>> bert.hear(batch, peer="anna")
    []
    >>> bert.settle()
    >>> bert.snapshot().arms[0].mean
    0.5
    """

    def __init__(
        self,
        mesh: str,
        node: str,
        bandits: Sequence[BanditSpec],
        protocol: AnyProtocol,
        *,
        caps: Caps | None = None,
        max_ttl: int | None = None,
        ignore: Collection[str | tuple[str, int]] = (),
        ticket_lifetime: float = 86400.0,
        open_choices: int = OPEN_CHOICES,
        max_clock_skew: float = MAX_CLOCK_SKEW,
        certificates: Certificates | None = None,
        signatures: str = UNSIGNED,
        rng: random.Random,
    ) -> None:
        self.mesh = check_name("mesh", mesh)
        self.node = check_name("node", node)
        self.caps = Caps() if caps is None else caps
        self.counters: Counter[str] = Counter()
        self._protocol = protocol
        self._max_ttl = max_ttl
        self._rng = rng
        chances = LiveChances(rng)
        self._outboxes = Outboxes(chances, self.caps.links, self.counters)
        self.certificates = Certificates(mesh) if certificates is None else certificates
        self._time = TimeOfDay(max_clock_skew)
        self._table = StatisticTable(
            node, self._outboxes, chances, self.caps, self.counters, self.certificates, signatures, self._time
        )
        self._ledger = Ledger(ticket_lifetime, open_choices, self.check_reward, self._half_life_of)
        new_flights = partial(Flights, ticket_lifetime, open_choices)
        self._bandits = Bandits(
            node, self._ledger, self._table, self.caps, self._time, new_flights, chances, rng, self.counters
        )
        #: By bandit: the memory by which the present life observes.
        self._memories: dict[str, str] = {}
        self._stored_memories: dict[str, str] = {}
        #: Since which uptime the node's clock has been behind its own stamps.
        self._behind_since: float | None = None
        self._is_behind = False
        #: The uptime as it was last stored.
        self._uptime = 0.0
        #: The life under way, once it has begun, and the one that begins as soon as that is stored; what was restored
        #: waits in `_restored`.
        self._life: Life | None = None
        self._planned: Life | None = None
        self._restored: Life | None = None
        self._is_backup = False
        self._n_choices = 0
        #: Arms that were chosen since that was last stored.
        self._chosen: dict[str, None] = {}
        self._in_flight: Commit | None = None
        self._table.use_protocol(protocol, max_ttl)
        self.set_ignore(ignore)
        self.set_bandits(bandits)

    # State

    def restore(self, stored: Stored) -> None:
        """Put back all that was stored, before anything else is called; `begin` comes next."""
        if self._life or self._restored:
            raise InputError(f"node {self.node!r} must be restored once, before it begins")
        if (stored.mesh, stored.node) != (self.mesh, self.node):
            raise InputError(
                f"the state must be that of node {self.node!r} of mesh {self.mesh!r}, "
                f"got that of {stored.node!r} of {stored.mesh!r}"
            )
        self._restored = stored.life
        self._is_backup = stored.is_backup
        self._n_choices = stored.life.n_choices
        self._ledger.restore(stored)
        for arm in self._ledger.own:
            self._table.roster.hold_arm(arm)
        self._table.roster.retire(stored.retired)
        self._table.use_life(stored.life.epoch)
        for own in stored.own:
            if own.told_count:
                self._table.tell(own.arm, own.told)
        for entry in stored.entries:
            self._table.place(entry)
        self._table.decide_anew()
        self._memories = {one.bandit: one.memory for one in stored.memories}
        self._stored_memories = dict(self._memories)
        self._bandits.restore()
        for clock in stored.clocks:
            agent = self._bandits.agents.get(agent_name(clock.bandit, clock.segment))
            if agent is not None:
                agent.clock = ChoiceClock(clock.weight, clock.stamp)

    def begin(self, epoch: int, now: float) -> Commit:
        """Begin the next start of the life that was restored, or the first one, of this epoch, if nothing was."""
        if self._life is not None:
            raise InputError(f"node {self.node!r} has begun already")
        old = self._restored
        life = Life(epoch, 1, 0) if old is None else Life(old.epoch, old.start + 1, old.n_choices, old.uptime)
        tickets = self._ledger.tickets
        forgotten = tickets.lapsed_starts(now)
        new_key = b"" if tickets.book else self._rng.randbytes(KEY_BYTES)
        book = tickets.next_book(new_key, life.start, life.n_choices)
        self._planned = life
        self.clock_was_set(now)
        memories = self._use_new_memories()

        def apply() -> None:
            self._life = life
            self._uptime = life.uptime
            self._stored_memories = memories
            tickets.begin(life.start, now, life.n_choices, forgotten, book)
            self._bandits.begin()
            if old is None:
                self._table.use_life(epoch)

        starts = [Start(life.start, now)]
        return self._begin_commit(
            Changes(
                life=life, ticket_book=book, forgotten_starts=forgotten, starts=starts, memories=_memory_rows(memories)
            ),
            apply,
        )

    def committed(self, commit: Commit) -> None:
        """The changes of a commit are stored: what it is about happens now."""
        self._end_commit(commit)
        commit.apply()

    def failed(self, commit: Commit) -> None:
        """The changes of a commit could not be stored: nothing happened."""
        self._end_commit(commit)

    def _begin_commit(self, changes: Changes, apply: Callable[[], None], leaving: Iterable[Known] = ()) -> Commit:
        if self._in_flight is not None:
            raise InputError(f"node {self.node!r} makes one commit at a time, and one is under way")
        self._in_flight = Commit(changes, apply, [] if self._table.signatures == UNSIGNED else list(leaving))
        return self._in_flight

    def _end_commit(self, commit: Commit) -> None:
        if commit is not self._in_flight:
            raise InputError(f"node {self.node!r} must be told of the commit that is under way, got another one")
        self._in_flight = None

    @property
    def has_begun(self) -> bool:
        """Whether this start is stored, and the life under way is no one else's: before that nothing is chosen."""
        return self._life is not None and not self._is_backup

    @property
    def shown_life(self) -> Life:
        """The life under way, or the one that begins as soon as that is stored."""
        return self._life or self._planned or self.life

    @property
    def life(self) -> Life:
        """The life under way, as it was last begun."""
        if self._life is None:
            raise InputError(f"node {self.node!r} must begin its life first, and store that")
        return self._life

    # Choosing and observing

    def choose(
        self,
        now: float,
        among: Collection[str] | None = None,
        *,
        bandit: str | None = None,
        segment: str | None = None,
        uptime: float | None = None,
    ) -> NodeChoice:
        """Choose an arm of a bandit in a segment, of all or of those that are available now.

        Ages of choices in flight are by the uptime, in seconds, which is `now` unless given.
        """
        life = self.life
        uptime = now if uptime is None else uptime
        agent = self._bandits.chooser(bandit, segment, among)
        self._tell_time(now, [agent])
        arm, probability = agent.choose(among, self._n_choices, uptime)
        self._n_choices = number = self._n_choices + 1
        self._own_of(arm).n_chosen += 1
        self._chosen[arm] = None
        tickets = self._ledger.tickets
        tickets.give(number, now)
        agent.flights.give(arm, number, uptime)
        if agent.bandit.spec.lapse_reward is not None:
            self._ledger.lapses.give(OpenTicket(life.start, number, arm, max(uptime, 0.0)))
        ticket = Ticket(life.epoch, life.start, number, arm, tickets.seal(life.epoch, life.start, number, arm))
        return NodeChoice(split_arm(arm)[1], ticket, probability, agent.segment or None)

    def arms_of(self, bandit: str | None = None) -> list[str]:
        """The names of a bandit's arms."""
        return self._bandits.arms_of(bandit)

    def new_arms(self, bandit: str | None, among: Collection[str] | None) -> list[ArmSpec]:
        """The arms that a choice names and that its bandit, which allows that, is to have first."""
        return self._bandits.new_arms(bandit, among)

    def arm_of(self, bandit: str | None, segment: str | None, arm: str) -> str:
        """The name under which the statistics of an arm travel that a bandit has in a segment."""
        return arm_name(self._bandits.agent(bandit, segment).name, arm)

    def check_reward(self, arm: str, reward: object, has_ticket: bool = False) -> float:
        """`reward` if it can be counted: of an arm that the node has or had, or of any that a ticket names."""
        spec = agents.spec_of(self._bandits.holder, arm)
        if spec is None and arm not in self._ledger.own:
            if not has_ticket:
                raise InputError(f"a reward must be of an arm of node {self.node!r}, got one of {arm!r}")
            if not self._table.roster.has_room_for_arm(arm):
                raise InputError(f"there may be at most {self.caps.arms} arms (caps.arms), got one more, {arm!r}")
        return (spec or ArmSpec(arm)).check_reward(reward)

    def plan(
        self, observations: Iterable[Observation], now: float, *, uptime: float | None = None
    ) -> tuple[Commit, list[Answer]]:
        """What one transaction must write to count these observations, and the answer to each once it has."""
        observations = list(observations)
        uptime = now if uptime is None else uptime
        life = self.life
        if self.needs_new_life():
            raise InputError(f"node {self.node!r} must begin a new life before it counts anything")
        self._tell_time(now, self._bandits.agents.values())
        memories = self._use_new_memories()
        draft = self._ledger.draft(observations, life.epoch, self._n_choices, now)
        told = {arm: values for arm, values in draft.values.items() if self._tells(arm, values)}
        own = []
        for arm in {**draft.values, **self._chosen}:
            known = self._ledger.own.get(arm) or Own()
            values = draft.values.get(arm, known.values)
            own.append(own_arm(arm, values, told.get(arm) or self._table.told_of(arm), known.n_chosen))
        lapses, closed = self._ledger.lapses, _closed(observations, draft.answers)
        given, settled = lapses.unwritten(closed) if lapses.open else ([], [])
        leaving = {arm: self._row(life.epoch, arm, values) for arm, values in told.items()}
        changes = Changes(
            life=Life(life.epoch, life.start, self._n_choices, max(uptime, 0.0)),
            open_tickets=given,
            settled_tickets=settled,
            own=own,
            forgotten_closed=draft.closing.forgotten,
            closed=draft.closing.closed,
            caller_keys=draft.keys,
            forgotten_caller_keys=draft.forgotten_keys,
            memories=_memory_rows(memories) if memories != self._stored_memories else [],
            clocks=self._clock_rows(),
        )

        def apply() -> None:
            self._stored_memories = memories
            self._uptime = max(uptime, 0.0)
            if lapses.open:
                lapses.written(given, closed, _closed(observations, draft.answers, lapses_only=True))
            self._count(draft, leaving, own)
            for one, answer in zip(observations, draft.answers, strict=True):
                if one.ticket is not None and one.ticket.start == life.start and answer.outcome != REFUSED:
                    agent = self._bandits.agents.get(split_arm(one.ticket.arm)[0])
                    if agent is not None:
                        agent.flights.settle(
                            one.ticket.arm, one.ticket.number, uptime, answer.outcome == COUNTED and not one.lapses
                        )
                self.counters["observations_lapsed"] += one.lapses and answer.outcome == COUNTED

        return self._begin_commit(changes, apply, leaving.values()), draft.answers

    def _row(self, epoch: int, arm: str, values: Values) -> Known:
        """What a life of this node tells of an arm; it is not in the table."""
        row = Known((self.node, epoch, arm), False, True)
        row.put(values)
        return row

    def lapsing(self, uptime: float, most: int = 1_000) -> list[Observation]:
        """Tickets that nothing has settled in their time, as observations of what silence is taken for."""
        life, tickets, found = self.life, self._ledger.tickets, []
        for one in self._ledger.lapses.due(self._n_choices, uptime, most):
            reward = self._bandits.lapse_reward_of(split_agent(split_arm(one.arm)[0])[0])
            seal = tickets.seal(life.epoch, one.start, one.number, one.arm)
            ticket = Ticket(life.epoch, one.start, one.number, one.arm, seal)
            # Of a bandit that takes silence for nothing any more, it is closed uncounted.
            found.append(Observation(reward or 0.0, ticket, withdraws=reward is None, lapses=True))
        return found

    def must_write(self, uptime: float) -> bool:
        """Whether a ticket has lapsed or waits to be written, or the uptime has not been written for a minute."""
        lapses = self._ledger.lapses
        if self._life is None or not lapses.open:
            return False
        return (
            lapses.has_unwritten
            or bool(lapses.due(self._n_choices, uptime, most=1))
            or uptime - self._uptime >= WRITE_UPTIME_EVERY
        )

    def _tells(self, arm: str, values: Values) -> bool:
        """Whether the node tells of an arm, now that it has observed this of it."""
        emission, told = self._protocol.emission, self._table.told_of(arm)
        half_life = self._half_life_of(arm)
        own: float = values.count
        known: float = told.count
        if half_life is not None:
            # As in the simulator: what was told counts for what it is still worth.
            own, known = values.weight, told.weight * faded(values.stamp - told.stamp, half_life)
        return self._protocol.sends_messages and emission.sends(own, known, False, emission.parameter)

    # Forgetting

    def _half_life_of(self, arm: str) -> float | None:
        """The half-life of what the present life observes of an arm; None where nothing is forgotten."""
        bandit, _ = split_agent(split_arm(arm)[0])
        memory = self._memories.get(bandit)
        return half_life_of(memory) if memory else None

    def _new_memories(self) -> dict[str, str]:
        """Memories of bandits of which the present life has observed nothing yet by another one."""
        changed = {name: memory for name, memory in self._bandits.memories.items() if self._is_other(name, memory)}
        if changed:
            used = {split_agent(split_arm(arm)[0])[0] for arm, own in self._ledger.own.items() if own.count}
            changed = {name: memory for name, memory in changed.items() if name not in used}
        return changed

    def _use_new_memories(self) -> dict[str, str]:
        """The memories of the present life, with those that are new."""
        self._memories |= self._new_memories()
        return dict(self._memories)

    def _is_other(self, bandit: str, memory: str) -> bool:
        return self._memories.get(bandit, "") != memory

    def _clock_rows(self) -> list[AgentClock]:
        """The clocks of agents that forget and have chosen since that was last stored."""
        chose = {self._bandits.holder[arm] for arm in self._chosen if arm in self._bandits.holder}
        return [
            AgentClock(*split_agent(agent.name), agent.n_choices, agent.clock.weight, agent.clock.stamp)
            for agent in chose
            if agent.fading is not None
        ]

    def _tell_time(self, now: float, agents_: Iterable[SegmentAgent] = ()) -> None:
        """It is that late; of these agents, begin scales anew that are old."""
        if now + self._time.max_clock_skew < self._time.now:
            # Set back since the last tick: until the next one weights would be read as if it were still that late.
            self.clock_was_set(now)
        self._time.now = now
        if old := [agent for agent in agents_ if agent.fading is not None and agent.fading.is_old(now)]:
            self.settle()
            for agent in old:
                agent.rescale()

    def clock_was_set(self, now: float) -> None:
        """The clock was set, or the node starts: whatever is ahead is judged by the clock as it is now."""
        self._time.now = now
        self.settle()
        self._table.look_anew()
        for agent in self._bandits.agents.values():
            if agent.fading is not None:
                agent.look_anew()

    def tick(self, now: float, uptime: float) -> None:
        """To be called every second or so: notice that scales are old, or that the clock is behind the own stamps.

        A clock that has been behind for ten minutes had been ahead: with its stamps, the node would not forget until
        that day. So it begins a new life.
        """
        self._tell_time(now, self._bandits.agents.values())
        latest = max((own.values.stamp for own in self._ledger.own.values()), default=0.0)
        if latest <= self._time.horizon:
            self._behind_since, self._is_behind = None, False
        elif self._behind_since is None:
            self._behind_since = uptime
        elif uptime - self._behind_since >= BEHIND_FOR:
            self._is_behind = True

    def _count(self, draft: Draft, told: dict[str, Known], stored: list[OwnArm]) -> None:
        """What was planned is stored: it counts, it is learned, and it may leave."""
        for outcome, _ in draft.answers:
            self.counters[f"observations_{outcome.replace(' ', '_')}"] += 1
        for arm in draft.values:
            self._own_of(arm)
        # An arm may be summed anew, from own and table: what came since it was planned must not be learned after that.
        self.settle()
        agents.make_ready(self._bandits.holder, draft.values)
        self._ledger.apply(draft)
        agents.observe(self._bandits.holder, draft.counted)
        for arm, row in told.items():
            self._table.tell(arm, row.values, row.certificate, row.signature)
        for own in stored:
            if self._ledger.own[own.arm].n_chosen == own.n_chosen:
                self._chosen.pop(own.arm, None)

    def _own_of(self, arm: str) -> Own:
        """What the node observed of an arm; from the first time on it is one that it knows."""
        if arm not in self._ledger.own:
            self._table.roster.hold_arm(arm)
        return self._ledger.own_of(arm)

    # Hearing

    def hear(self, statistics: Iterable[Statistic], peer: str, is_checked: bool = False) -> list[Statistic]:
        """Take statistics that came from a neighbour.

        Returns
        -------
        list of Statistic
            Those whose signatures are to be checked. If they are right, they are to be heard again, as checked.
        """
        return self._table.hear(statistics, peer, is_checked)

    def take_unknown(self) -> list[bytes]:
        """The ids of unknown certificates by which something was signed that was heard since this was last asked."""
        unknown = list(self._table.unknown)
        self._table.unknown.clear()
        return unknown

    def settle(self, in_order: bool = False) -> None:
        """Let what was heard enter the estimates.

        Parameters
        ----------
        in_order : bool
            Whether it enters in ascending order of origins, as in the simulator, and not as it came. Only the last
            bits of sums depend on it.
        """
        heard = self._table.heard
        if heard:
            if in_order:
                heard.sort()
            agents.learn(self._bandits.holder, heard)
            heard.clear()
        if self._table.fell:
            self._bandits.renew(self._table.fell)
            self._table.fell.clear()

    # Links

    def link_up(self, peer: str) -> None:
        """A link came up: all that may go there is offered."""
        if peer == self.node:
            raise InputError(f"node {self.node!r} must be linked with others, got a link with itself")
        self._outboxes.up(peer, self._table.rows())
        self._table.forget_fates()

    def link_down(self, peer: str) -> None:
        """A link went down: what waited for it is gone."""
        self._outboxes.down(peer)
        self._table.forget_fates()

    def take(self, peer: str, n_bytes: int) -> list[Statistic]:
        """The next statistics for a neighbour; none if nothing waits."""
        return self._outboxes.take(peer, n_bytes)

    def waiting(self, peer: str) -> int:
        """How many statistics wait for a neighbour."""
        return self._outboxes.waiting(peer)

    def offer_again(self, peer: str, certificates: Collection[bytes], names: Collection[str]) -> None:
        """Offer a neighbour once more what is signed by these certificates, and what is of these origins."""
        self._table.offer_again(peer, certificates, names)

    # Signatures

    @property
    def signatures(self) -> str:
        """Whether statistics must be signed, may be, or are not looked at."""
        return self._table.signatures

    def set_signatures(self, signatures: str) -> None:
        """Require signatures from now on, or accept statistics without; what is required and missing then leaves."""
        self._table.signatures = signatures
        self.settle()
        self._bandits.renew(self._table.leave_with_certificates()[1])

    def review(self, now: float) -> set[str]:
        """Look again which certificates count; rows leave with those that do not. The origins that they were of."""
        self.certificates.review(now, self._table.needed_certificates())
        self.settle()
        names, arms = self._table.leave_with_certificates()
        self._bandits.renew(arms)
        return names

    def to_sign(self, certificate: bytes) -> list[Known]:
        """Copies of what the node told or observed itself, as far as it is not signed under this certificate."""
        return self._table.to_sign(certificate)

    def signed(self, rows: Iterable[Known]) -> None:
        """These copies are signed: what still says the same stands under that signature, and goes out once more."""
        self._table.sign(rows)

    # Changes while it runs

    def check_bandits(self, bandits: Sequence[BanditSpec]) -> None:
        """Refuse bandits that the node cannot have now."""
        self._bandits.check(bandits)

    def set_bandits(self, bandits: Sequence[BanditSpec]) -> bool:
        """Have these bandits from now on, as `Bandits.set` says; returns what `set_arms` does."""
        self.settle()
        return self._bandits.set(bandits)

    def set_arms(self, arms: Sequence[ArmSpec], bandit: str = DEFAULT) -> bool:
        """Let a bandit have these arms. A new one knows at once what the table has of it; one that goes is relayed.

        Returns
        -------
        bool
            Whether something was refused of which the `reward_range` is another one now. Neighbours offer it again
            on a new link.
        """
        self.settle()
        return self._bandits.set_arms(arms, bandit)

    def set_protocol(self, protocol: AnyProtocol, max_ttl: int | None = None) -> None:
        """Relay and tell by this protocol from now on.

        What was heard has no more hops left than the old protocol gave it. Where the new one allows more, links must
        be made anew, as `Node.reload` does: neighbours then offer what they have, with all its hops.
        """
        self._protocol = protocol
        self._table.use_protocol(protocol, max_ttl)
        self._table.decide_anew()

    def set_ignore(self, ignore: Collection[str | tuple[str, int]]) -> None:
        """Treat these names, and lives (name, epoch), as retired from now on, and no others."""
        if self.node in ignore:
            raise InputError(f"ignore must not name the node itself, got {self.node!r}")
        self._table.roster.ignore(ignore)
        self._purge()

    def retire(self, lives: Iterable[tuple[str, int]]) -> None:
        """These lives leave table and estimates, and are refused permanently; that must be stored before."""
        self._table.roster.retire(lives)
        self._purge()

    def _purge(self) -> None:
        """What is not wanted any more leaves table and estimates."""
        self.settle()
        self._bandits.renew(self._table.purge())

    def needs_new_life(self) -> str | None:
        """Why the node must begin a new life at once, if so."""
        if self._is_backup:
            return "the state was restored from a backup, and the life in it may have gone on"
        if self._table.roster.is_unwanted(self.node, self._table.epoch):
            return "the present life is retired"
        if self._is_behind:
            return "the clock has been behind the node's own observations for ten minutes: it had been ahead"
        for name, memory in self._bandits.memories.items():
            if self._is_other(name, memory) and name not in self._new_memories():
                return f"the memory of bandit {name!r} is another one, and no count may have two weights"
        for arm, proof in self._table.proofs.items():
            return (
                f"the state is an older copy: others know of {proof.count} rewards of arm {arm!r} that this life told, "
                f"the state has {self._table.told_of(arm).count}"
            )
        return None

    def new_life(self, epoch: int, now: float) -> Commit:
        """Begin a new life of this epoch. What the old one observed moves into the table, unless it is retired."""
        old, table = self.life, self._table
        life = Life(epoch, 1, self._n_choices, old.uptime)
        moved: dict[str, Entry] = {}
        if not table.roster.is_unwanted(self.node, old.epoch):
            moved = {
                arm: self._moved(old.epoch, arm, own.values, is_observed=True)
                for arm, own in self._ledger.own.items()
                if own.count
            }
            room = table.roster.room_for_own() - len(moved)
            for arm, proof in table.proofs.items():
                # What it did not observe on this disk may be invented: it gets no more than the room there is.
                if arm not in moved:
                    room -= 1
                if arm not in moved and room < 0:
                    continue
                if arm not in moved or proof.values > moved[arm].values:
                    moved[arm] = self._moved(old.epoch, arm, proof.values, proof.certificate, proof.signature)
        entries = list(moved.values())
        observed = {entry.arm: self._row(old.epoch, entry.arm, entry.values) for entry in entries if entry.is_observed}
        own = [OwnArm(arm, 0, 0.0, n_chosen=own.n_chosen) for arm, own in self._ledger.own.items() if own.n_chosen]
        book = self._ledger.tickets.next_book(b"", 1, self._n_choices)
        memories = {**self._memories, **self._bandits.memories}
        changes = Changes(
            life=life,
            ticket_book=book,
            clear_own=True,
            own=own,
            starts=[Start(1, now)],
            entries=entries,
            memories=_memory_rows(memories),
        )

        def apply() -> None:
            later = dict(table.proofs)
            for arm in self._ledger.own:
                table.roster.release_arm(arm)
            self._ledger.new_life()
            for arm in self._ledger.own:
                table.roster.hold_arm(arm)
            self._life = life
            self._is_backup = False
            self._memories, self._stored_memories = memories, dict(memories)
            self._behind_since, self._is_behind = None, False
            # Choices may have been made since it was planned, by tickets of the old life.
            self._ledger.tickets.begin(1, now, self._n_choices, book=book)
            self._bandits.begin()
            table.use_life(epoch)
            for entry in entries:
                row = observed.get(entry.arm)
                if row is not None:
                    entry = replace(entry, certificate=row.certificate, signature=row.signature)
                table.adopt(entry)
            for arm, proof in later.items():
                table.adopt(self._moved(old.epoch, arm, proof.values, proof.certificate, proof.signature))
            # The old life may have been retired in the meantime.
            table.purge()
            table.heard.clear()
            self._bandits.renew_all()

        return self._begin_commit(changes, apply, observed.values())

    def bandits(self) -> list[tuple[str, str]]:
        """The name and the memory of each bandit, as a hello has them."""
        return list(self._bandits.memories.items())

    def _moved(
        self,
        epoch: int,
        arm: str,
        values: Values,
        certificate: bytes = b"",
        signature: bytes = b"",
        is_observed: bool = False,
    ) -> Entry:
        """What an ended life told of an arm, as an entry of the table."""
        return Entry(
            *(self.node, epoch, arm, values.count, values.total, self._table.full_ttl),
            *values.forgetting,
            certificate,
            signature,
            passes=True,
            is_observed=is_observed,
        )

    # Looking, and storing

    def dirty_entries(self, most: int = 10_000) -> tuple[list[Entry], list[Key]]:
        """Some entries that changed, and keys that left, since they were last asked for: they may be stored later."""
        return self._table.take_dirty(most)

    def not_stored(self, entries: Iterable[Entry], removed: Iterable[Key]) -> None:
        """What `dirty_entries` gave could not be stored: it will give it again."""
        self._table.give_back(entries, removed)

    def own(self) -> list[OwnArm]:
        """What this life observed, told and chose."""
        return [
            own_arm(arm, own.values, self._table.told_of(arm), own.n_chosen) for arm, own in self._ledger.own.items()
        ]

    def entries(self) -> list[Entry]:
        """The table."""
        return self._table.entries()

    def estimates(self) -> dict[str, tuple[int, float]]:
        """For each arm of each agent, number and sum of all observations that it has learned of."""
        return {arm: known for agent in self._bandits.agents.values() for arm, known in agent.estimates()}

    def lives(self) -> list[tuple[str, int]]:
        """All lives (name, epoch) that the node knows something of, its own present one first."""
        return [(self.node, self.shown_life.epoch), *self._table.roster.lives()]

    def snapshot(self, uptime: float = 0.0) -> StateView:
        """The node as it is now."""
        [first, *others] = self._bandits.views(self._n_choices, uptime)
        life, many_lives = self.shown_life, self._table.roster.many_lives()
        usage = {
            **self._table.roster.usage(len(self._table.told)),
            "segments": (self._bandits.n_segments(), self.caps.segments),
            "links": (len(self._outboxes.links), self.caps.links),
        }
        caps = {name: CapView(used, most) for name, (used, most) in usage.items()}
        return StateView(
            mesh=self.mesh,
            node=self.node,
            epoch=epoch_text(life.epoch),
            start=life.start,
            protocol=notation.write(self._protocol),
            policy=first.policy,
            n_choices=self._n_choices,
            arms=first.arms,
            agents=others,
            counters=dict(self.counters),
            caps=caps,
            many_lives=many_lives,
            warnings=warnings_of(caps, many_lives, self._table.outside_by_arm()),
        )


def _closed(
    observations: Sequence[Observation], answers: Sequence[Answer], lapses_only: bool = False
) -> list[tuple[int, int]]:
    """The tickets, start and number, that these observations close, or those that lapse."""
    return [
        (one.ticket.start, one.ticket.number)
        for one, answer in zip(observations, answers, strict=True)
        if one.ticket is not None and answer.outcome in (COUNTED, WITHDRAWN) and (one.lapses or not lapses_only)
    ]


def _memory_rows(memories: Mapping[str, str]) -> list[BanditMemory]:
    return [BanditMemory(bandit, memory) for bandit, memory in memories.items()]
