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

How starts and new lives begin is in `Lives`, and what is ahead of the clock in `Clock`.

Rules kept here. *Nothing leaves that could be forgotten:* `plan` says what one transaction must write and asks the
emission once for each arm in it; only `committed` makes that visible, lets the agent learn and puts what is told into
the outboxes. There is one commit at a time.

Everything that is begun (`begin`, `plan`, `new_life`) is a `Commit`: store its `changes` and sign the rows `to_sign`;
then call `committed` with it, or `failed` if that was not possible.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from ...errors import InputError
from ...protocols.base import AnyProtocol
from ..bandits import BanditSpec
from ..certificates import UNSIGNED, Certificates
from ..disk import AgentClock, Changes, Life, OpenTicket, OwnArm, Stored
from ..forgetting import MAX_CLOCK_SKEW, faded
from ..http.openapi import StateView
from ..names import DEFAULT, OPEN_CHOICES, Caps, arm_name, check_name, split_agent, split_arm
from ..statistics import ArmSpec, Entry, Key, Known, Statistic, Values
from . import agents
from .agents import SegmentAgent
from .choosing import NodeChoice
from .clock import Clock
from .ledger import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Answer, Draft, Observation, Own, own_arm
from .lives import Lives, memory_rows
from .parts import Commit, MemberParts
from .snapshot import snapshot
from .tickets import Ticket
from .walks import Walks

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
    trim : int
        How many other origins may lie, at most: what they tell is tested before it enters the estimates. With 0 all is
        believed.
    rng : random.Random
        What it draws from.

    Attributes
    ----------
    counters : Counter
        How often what happened, by name; everything that begins with `refused_` was refused for that reason.
    walks : Walks
        What is still to be done of changes that concern many rows.

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
        trim: int = 0,
        rng: random.Random,
    ) -> None:
        self.mesh = check_name("mesh", mesh)
        self.node = check_name("node", node)
        self.caps = Caps() if caps is None else caps
        self.certificates = Certificates(mesh) if certificates is None else certificates
        parts = self._parts = MemberParts(
            node,
            protocol,
            self.caps,
            self.certificates,
            signatures,
            ticket_lifetime,
            open_choices,
            max_clock_skew,
            trim,
            rng,
            self.check_reward,
        )
        self.counters = parts.counters
        self._outboxes, self._table = parts.outboxes, parts.table
        self._ledger, self._bandits = parts.ledger, parts.bandits
        self._clock = Clock(parts)
        self._lives = Lives(parts, self._clock, rng)
        self._under_way: Commit | None = None
        self.walks = Walks()
        self._table.use_protocol(protocol, max_ttl)
        self.set_ignore(ignore)
        self.set_bandits(bandits)

    # State

    def restore(self, stored: Stored) -> None:
        """Put back all that was stored, before anything else is called; `begin` comes next."""
        if (stored.mesh, stored.node) != (self.mesh, self.node):
            raise InputError(
                f"the state must be that of node {self.node!r} of mesh {self.mesh!r}, "
                f"got that of {stored.node!r} of {stored.mesh!r}"
            )
        self.walks.begin(self._lives.restore(stored))

    def begin(self, epoch: int, now: float) -> Commit:
        """Begin the next start of the life that was restored, or the first one, of this epoch, if nothing was."""
        return self._begin(self._lives.begin(epoch, now))

    def needs_new_life(self) -> str | None:
        """Why the node must begin a new life at once, if so."""
        parts, table = self._parts, self._table
        if parts.is_backup:
            return "the state was restored from a backup, and the life in it may have gone on"
        if table.roster.is_unwanted(self.node, table.epoch):
            return "the present life is retired"
        if parts.is_behind:
            return "the clock has been behind the node's own observations for ten minutes: it had been ahead"
        if (bandit := self._ledger.held_back(self._bandits.memories)) is not None:
            return f"the memory of bandit {bandit!r} is another one, and no count may have two weights"
        for arm, proof in table.proofs.items():
            return (
                f"the state is an older copy: others know of {proof.count} rewards of arm {arm!r} that this life told, "
                f"the state has {table.told_of(arm).count}"
            )
        return None

    def new_life(self, epoch: int, now: float) -> Commit:
        """Begin a new life of this epoch. What the old one observed moves into the table, unless it is retired."""
        return self._begin(self._lives.new(self.life, epoch, now))

    def committed(self, commit: Commit) -> None:
        """The changes of a commit are stored: what it is about happens now."""
        self._end(commit)
        commit.apply()

    def failed(self, commit: Commit) -> None:
        """The changes of a commit could not be stored: nothing happened."""
        self._end(commit)

    def _begin(self, commit: Commit) -> Commit:
        if self._under_way is not None:
            raise InputError(f"node {self.node!r} makes one commit at a time, and one is under way")
        self._under_way = commit
        return commit

    def _end(self, commit: Commit) -> None:
        if commit is not self._under_way:
            raise InputError(f"node {self.node!r} must be told of the commit that is under way, got another one")
        self._under_way = None

    @property
    def has_begun(self) -> bool:
        """Whether this start is stored, and the life under way is no one else's: before that nothing is chosen."""
        return self._parts.life is not None and not self._parts.is_backup

    @property
    def shown_life(self) -> Life:
        """The life under way, or the one that begins as soon as that is stored."""
        return self._parts.life or self._parts.planned or self.life

    @property
    def life(self) -> Life:
        """The life under way, as it was last begun."""
        if self._parts.life is None:
            raise InputError(f"node {self.node!r} must begin its life first, and store that")
        return self._parts.life

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
        parts = self._parts
        arm, probability = agent.choose(among, parts.n_choices, uptime)
        parts.n_choices = number = parts.n_choices + 1
        self._own_of(arm).n_chosen += 1
        parts.chosen[arm] = None
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
            if not self._table.roster.has_room_for_arms([arm]):
                raise InputError(f"there may be at most {self.caps.arms} arms (caps.arms), got one more, {arm!r}")
        return (spec or ArmSpec(arm)).check_reward(reward)

    def plan(
        self, observations: Iterable[Observation], now: float, *, uptime: float | None = None
    ) -> tuple[Commit, list[Answer]]:
        """What one transaction must write to count these observations, and the answer to each once it has."""
        parts = self._parts
        observations = list(observations)
        uptime = now if uptime is None else uptime
        life = self.life
        if self.needs_new_life():
            raise InputError(f"node {parts.node!r} must begin a new life before it counts anything")
        self._tell_time(now, parts.bandits.agents.values())
        memories = parts.ledger.use_new_memories(parts.bandits.memories)
        draft = parts.ledger.draft(observations, life.epoch, parts.n_choices, now)
        told = {arm: values for arm, values in draft.values.items() if self._tells(arm, values)}
        own = []
        for arm in {**draft.values, **parts.chosen}:
            known = parts.ledger.own.get(arm) or Own()
            values = draft.values.get(arm, known.values)
            own.append(own_arm(arm, values, told.get(arm) or parts.table.told_of(arm), known.n_chosen))
        lapses, closed = parts.ledger.lapses, _closed(observations, draft.answers)
        given, settled = lapses.unwritten(closed) if lapses.open else ([], [])
        leaving = {arm: Known.of_own(parts.node, life.epoch, arm, values) for arm, values in told.items()}
        changes = Changes(
            life=Life(life.epoch, life.start, parts.n_choices, max(uptime, 0.0)),
            open_tickets=given,
            settled_tickets=settled,
            own=own,
            forgotten_closed=draft.closing.forgotten,
            closed=draft.closing.closed,
            caller_keys=draft.keys,
            forgotten_caller_keys=draft.forgotten_keys,
            memories=memory_rows(memories) if memories != parts.ledger.stored_memories else [],
            clocks=self._clock_rows(),
        )

        def apply() -> None:
            parts.ledger.stored_memories = memories
            parts.uptime = max(uptime, 0.0)
            if lapses.open:
                lapses.written(given, closed, _closed(observations, draft.answers, lapses_only=True))
            self._count(draft, leaving, own)
            for one, answer in zip(observations, draft.answers, strict=True):
                if one.ticket is not None and one.ticket.start == life.start and answer.outcome != REFUSED:
                    agent = parts.bandits.agents.get(split_arm(one.ticket.arm)[0])
                    if agent is not None:
                        agent.flights.settle(
                            one.ticket.arm, one.ticket.number, uptime, answer.outcome == COUNTED and not one.lapses
                        )
                if one.lapses and answer.outcome == COUNTED:
                    parts.counters["observations_lapsed"] += 1

        signed = [] if parts.table.signatures == UNSIGNED else list(leaving.values())
        return self._begin(Commit(changes, apply, signed)), draft.answers

    def _count(self, draft: Draft, told: dict[str, Known], stored: list[OwnArm]) -> None:
        """What was planned is stored: it counts, it is learned, and it may leave."""
        parts = self._parts
        for outcome, n in Counter([outcome for outcome, _ in draft.answers]).items():
            parts.counters[f"observations_{outcome.replace(' ', '_')}"] += n
        for arm in draft.values:
            self._own_of(arm)
        # An arm may be summed anew, from own and table: what came since it was planned must not be learned after that.
        agents.settle(parts.bandits.holder, parts.table)
        agents.make_ready(parts.bandits.holder, draft.values)
        parts.ledger.apply(draft)
        agents.observe(parts.bandits.holder, draft.counted)
        for arm, row in told.items():
            parts.table.tell(arm, row.values, row.certificate, row.signature)
        for own in stored:
            if parts.ledger.own[own.arm].n_chosen == own.n_chosen:
                parts.chosen.pop(own.arm, None)

    def _own_of(self, arm: str) -> Own:
        """What the node observed of an arm; from the first time on it is one that it knows."""
        ledger = self._parts.ledger
        if arm not in ledger.own:
            self._parts.table.roster.hold_arm(arm)
        return ledger.own_of(arm)

    def _tells(self, arm: str, values: Values) -> bool:
        """Whether the node tells of an arm, now that it has observed this of it."""
        parts = self._parts
        protocol, told = parts.protocol, parts.table.told_of(arm)
        half_life = parts.ledger.half_life_of(arm)
        own: float = values.count
        known: float = told.count
        if half_life is not None:
            # As in the simulator: what was told counts for what it is still worth.
            own, known = values.weight, told.weight * faded(values.stamp - told.stamp, half_life)
        return protocol.sends_messages and protocol.emission.sends(own, known, False, protocol.emission.parameter)

    def _clock_rows(self) -> list[AgentClock]:
        """The clocks of agents that forget and have chosen since that was last stored."""
        holder = self._parts.bandits.holder
        chose = {holder[arm] for arm in self._parts.chosen if arm in holder}
        return [
            AgentClock(*split_agent(agent.name), agent.n_choices, agent.clock.weight, agent.clock.stamp)
            for agent in chose
            if agent.fading is not None
        ]

    def lapsing(self, uptime: float, most: int = 1_000) -> list[Observation]:
        """Tickets that nothing has settled in their time, as observations of what silence is taken for."""
        parts, found = self._parts, []
        life, tickets = self.life, parts.ledger.tickets
        for one in parts.ledger.lapses.due(parts.n_choices, uptime, most):
            reward = parts.bandits.lapse_reward_of(split_agent(split_arm(one.arm)[0])[0])
            seal = tickets.seal(life.epoch, one.start, one.number, one.arm)
            ticket = Ticket(life.epoch, one.start, one.number, one.arm, seal)
            # Of a bandit that takes silence for nothing any more, it is closed uncounted.
            found.append(Observation(reward or 0.0, ticket, withdraws=reward is None, lapses=True))
        return found

    def must_write(self, uptime: float) -> bool:
        """Whether a ticket has lapsed or waits to be written, or the uptime has not been written for a minute."""
        lapses = self._parts.ledger.lapses
        if self._parts.life is None or not lapses.open:
            return False
        return (
            lapses.has_unwritten
            or bool(lapses.due(self._parts.n_choices, uptime, most=1))
            or uptime - self._parts.uptime >= WRITE_UPTIME_EVERY
        )

    # Time

    def clock_was_set(self, now: float) -> None:
        """The clock was set: whatever is ahead is judged by the clock as it is now."""
        self._clock.was_set(now)

    def tick(self, now: float, uptime: float) -> None:
        """To be called every second or so: notice that scales are old, or that the clock is behind the own stamps."""
        self._tell_time(now, self._bandits.agents.values())
        self._clock.look(uptime)

    def _tell_time(self, now: float, agents_: Iterable[SegmentAgent] = ()) -> None:
        """It is that late; of these agents, begin scales anew that are old."""
        time = self._parts.time
        if now + time.max_clock_skew < time.now:
            # Set back since the last tick: until the next one weights would be read as if it were still that late.
            self._clock.was_set(now)
        time.now = now
        if old := [agent for agent in agents_ if agent.fading is not None and agent.fading.is_old(now)]:
            self.settle()
            for agent in old:
                agent.rescale()

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
        agents.settle(self._bandits.holder, self._table, in_order)

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
        self.walks.begin(self._table.leave_with_certificates(self._left))

    def review(self, now: float, then: Callable[[set[str]], None] = lambda names: None) -> None:
        """Look again which certificates count; rows leave with those that do not.

        `then` is called with the origins that they were of, if there are any.
        """
        self.certificates.review(now, self._table.needed_certificates())

        def leave() -> Iterator[int]:
            if names := (yield from self._table.leave_with_certificates(self._left)):
                then(names)

        self.walks.begin(leave())

    def _left(self, arm: str) -> None:
        """Rows of an arm have left."""
        self.settle()
        self._bandits.renew([arm])

    def to_sign(self, certificate: bytes) -> list[Known]:
        """Copies of what the node told or observed itself, as far as it is not signed under this certificate."""
        return self._table.to_sign(certificate)

    def signed(self, rows: Iterable[Known]) -> None:
        """These copies are signed: what still says the same stands under that signature, and goes out once more."""
        self._table.sign(rows)

    # Changes while it runs

    def check_bandits(self, bandits: Sequence[BanditSpec], trim: int | None = None) -> None:
        """Refuse bandits that the node cannot have now, or not if it is to withstand this many liars."""
        self._bandits.check(bandits, trim)

    def set_bandits(self, bandits: Sequence[BanditSpec]) -> None:
        """Have these bandits from now on, as `Bandits.set` says."""
        self.walks.finish()
        self._bandits.check(bandits)
        self.settle()
        self.walks.begin(self._bandits.set(bandits))

    def take_other_range(self) -> bool:
        """Whether something was refused of which the `reward_range` is another one now, since this was last asked.

        Neighbours offer it again on a new link.
        """
        return self._bandits.take_other_range()

    def set_trim(self, trim: int) -> None:
        """Bear this many liars from now on."""
        self.settle()
        self._bandits.set_trim(trim)

    def set_arms(self, arms: Sequence[ArmSpec], bandit: str = DEFAULT) -> bool:
        """Let a bandit have these arms. A new one knows at once what the table has of it; one that goes is relayed.

        Returns what `take_other_range` does.
        """
        self.walks.finish()
        self.settle()
        self.walks.begin(self._bandits.set_arms(arms, bandit))
        return self.take_other_range()

    def set_protocol(self, protocol: AnyProtocol, max_ttl: int | None = None) -> None:
        """Relay and tell by this protocol from now on.

        What was heard has no more hops left than the old protocol gave it. Where the new one allows more, links must
        be made anew, as `Node.reload` does: neighbours then offer what they have, with all its hops.
        """
        self._parts.protocol = protocol
        self._table.use_protocol(protocol, max_ttl)
        self.walks.begin(self._table.decide_anew())

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
        self.walks.begin(self._table.purge(self._left))

    def bandits(self) -> list[tuple[str, str]]:
        """The name and the memory of each bandit, as a hello has them."""
        return list(self._bandits.memories.items())

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
        return snapshot(self.mesh, self._parts, self.shown_life, uptime)


def _closed(
    observations: Sequence[Observation], answers: Sequence[Answer], lapses_only: bool = False
) -> list[tuple[int, int]]:
    """The tickets, start and number, that these observations close, or those that lapse."""
    return [
        (one.ticket.start, one.ticket.number)
        for one, answer in zip(observations, answers, strict=True)
        if one.ticket is not None and answer.outcome in (COUNTED, WITHDRAWN) and (one.lapses or not lapses_only)
    ]
