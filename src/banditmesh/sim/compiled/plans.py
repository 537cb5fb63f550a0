"""Plans: where every possible message of a static network goes, worked out once for all replicates."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...draws import Draws
from ...machine import memory
from ...networks.dynamic import DynamicNetwork
from ...policies.window import Window
from ...protocols.relaying import ABSORB, RELAY, STOP
from ..expected_links import links_at_a_time
from ..run import Run
from . import crew
from .bitsets import WORD, as_sets, n_words, shift_of
from .crew import Stop
from .kernels import fate
from .kernels.lanes import LANES
from .kernels.layout import UNIT, Abreast, Fates, Plan, Ranked, Rule, Scratch, Search, Single, Ways
from .kernels.planning import DEGREE_AND_FIRST, HALF, HELD, N_COLUMNS, N_TALLIES, plan_slots
from .kernels.single import TOGETHER
from .kernels.spread import spread_slots
from .kernels.ways import find_ways
from .packing import Packed, no_faults, no_links, traits

#: The most memory that a plan may take, in bytes; beyond it messages are spread one by one.
PLAN_BUDGET: Final = 4 * 2**30
#: Learners that would take more than this, in bytes, are kept as 16-bit ranks where no arm has too many holders.
WIDE_BUDGET: Final = 2**30
MAX_RANKS: Final = 2**16
#: Networks of at least this many agents are shared by threads that would otherwise have nothing to do.
SHARED_FROM: Final = 10_000
#: How many rounds' messages there is room for at first where messages hop together.
ABREAST: Final = 8
# How many transmissions a sample of messages may have; what part of all messages, and how many it has at least.
_SAMPLE_WORK: Final = 2**25
_SAMPLE_PART: Final = 8
_SMALLEST_SAMPLE: Final = 16
# How much longer than estimated the place for a plan's learners is.
_GENEROUS: Final = 2.0
# Networks up to this size are planned in one go; others in this many shares a thread, each in about this many rooms.
_SMALL: Final = 1000
_SHARES: Final = 32
_ROOMS: Final = 8
# What is summed up of each hop, and of how many slots at once.
_SENT, _DELIVERED, _LEARNED, _ABSORBED, _STOPPED = range(5)
_SLOTS_AT_ONCE: Final = 2**14
# Of how many agents what they have is noted at once.
_AGENTS_AT_ONCE: Final = 2**13


def make_scratch(packed: Packed) -> Scratch:
    """Workspace for spreading one message after the other."""
    n_agents = len(packed.agents.every)
    return Scratch(
        seen=np.zeros((n_agents, 2), dtype=np.int64),
        senders=np.zeros(n_agents + 1, dtype=np.int32),
        receivers=np.zeros(n_agents + LANES, dtype=np.int32),
        picks=np.zeros(packed.most_degree + 1, dtype=np.int32),
        drawn=np.zeros(packed.most_degree + 1, dtype=np.int32),
        chances=np.zeros(packed.most_degree + LANES),
        next_mark=np.ones(1, dtype=np.int64),
        cursor=np.array([-1, 0], dtype=np.int64),
        abreast=make_abreast(packed, ABREAST),
        single=make_single(packed.traits.reach if packed.traits.goes_singly else 0),
    )


def make_abreast(packed: Packed, n_rounds: int) -> Abreast:
    """Workspace for a run of `n_rounds` whose messages hop together; empty for any other run."""
    traits, problem, is_used = packed.traits, packed.run.problem, packed.traits.goes_abreast
    reach = min(n_rounds, traits.reach)
    n_agents, shift = (problem.n_agents if is_used else 0), shift_of(reach)
    later, width = np.arange(n_agents << shift) & ((1 << shift) - 1), n_words(n_agents << shift)
    hop = np.maximum(reach - later, 1)
    table = np.zeros((2, 3, 1), dtype=np.int8) if not is_used or traits.decision.shape[2] > 1 else traits.decision
    said = table[:, np.minimum(hop, table.shape[1]) - 1, 0]
    decisions = [as_sets((said == decision) & (later < reach)) for decision in (RELAY, ABSORB, STOP)]

    return Abreast(
        n_rounds=reach,
        shift=np.uint64(shift),
        seen=np.zeros(n_agents * (width + 1), dtype=np.uint64),
        sending=np.zeros((2, n_agents * (width + 1)), dtype=np.uint64),
        held=np.zeros(n_agents * (width + 1), dtype=np.uint64),
        holder_starts=packed.holder_starts,
        holders=(problem.owners[packed.holder_slots] * (width + 1) if is_used else np.zeros(0)).astype(np.int32),
        kept=np.tile(np.append(as_sets(later[None] < reach - 1)[0], np.uint64(0)), n_agents),
        goes_on=as_sets((hop < packed.run.protocol.most_hops)[None])[0],
        oldest=as_sets((later == 0)[None])[0],
        lives_on=np.zeros(1, dtype=np.int64),
        decisions=np.array(decisions),
        n_back=np.zeros(1, dtype=np.int64),
        marks=np.zeros(n_agents, dtype=np.int64),
        stays=np.zeros(n_agents, dtype=np.uint64),
        fresh=np.zeros(width, dtype=np.uint64),
        linked_back=np.zeros(width, dtype=np.uint64),
        decided=np.zeros((3, width), dtype=np.uint64),
        learning=np.zeros(width, dtype=np.uint64),
        ranks=np.zeros(n_agents * reach + LANES, dtype=np.uint64),
        chances=np.zeros(n_agents * reach + LANES),
        ranked=make_ranked(n_agents << shift),
    )


def with_more_rounds(packed: Packed, abreast: Abreast) -> Abreast:
    """The same messages under way, with room for twice as many rounds."""
    longer = make_abreast(packed, 2 * abreast.n_rounds)
    n_agents, more = len(abreast.marks), longer.n_rounds - abreast.n_rounds
    of_agent, of_agent_then = 1 << int(abreast.shift), 1 << int(longer.shift)

    def moved(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
        bits = np.unpackbits(rows.reshape(n_agents, -1).view(np.uint8), axis=1, bitorder="little")
        wider = np.zeros((n_agents, n_agents, of_agent_then), dtype=np.bool_)
        each = bits[:, : n_agents * of_agent].reshape(n_agents, n_agents, of_agent)
        wider[:, :, more : longer.n_rounds] = each[:, :, : abreast.n_rounds]
        sets = as_sets(wider.reshape(n_agents, -1))
        return np.append(sets, np.zeros((n_agents, 1), dtype=np.uint64), axis=1).reshape(-1)

    for before, after in ((abreast.seen, longer.seen), (abreast.held, longer.held)):
        after[:] = moved(before)
    for before, after in zip(abreast.sending, longer.sending, strict=True):
        after[:] = moved(before)
    longer.n_back[:], longer.marks[:] = abreast.n_back, abreast.marks
    return longer


def make_ranked(n_ranks: int) -> Ranked:
    """Room for what is learned of messages."""
    return Ranked(np.zeros(n_ranks, dtype=np.int32), np.zeros(n_ranks), np.zeros(n_ranks))


def make_single(reach: int) -> Single:
    """Workspace for messages of which there is one copy at a time, or none if they do not travel."""
    n_messages = TOGETHER if reach else 0
    each, of_hops = np.zeros((5, n_messages), dtype=np.int32), np.zeros((2, n_messages, reach), dtype=np.int32)
    return Single(
        origins=each[0],
        arms=each[1],
        met=np.zeros((n_messages, reach + 1), dtype=np.int32),
        learned=of_hops[0],
        n_sent=of_hops[1],
        at=each[2],
        senders=each[3],
        previous=each[4],
        chances=np.zeros(n_messages),
        tallies=np.zeros(len((RELAY, ABSORB, STOP)), dtype=np.int64),
    )


def make_fates(n_keys: int, reach: int, learners: NDArray[np.int32]) -> Fates:
    """Room for the fates of `n_keys` messages."""
    return Fates(
        base=np.zeros(n_keys, dtype=np.int64),
        end=np.zeros((n_keys, reach), dtype=np.int32),
        sent=np.zeros((n_keys, reach), dtype=np.int32),
        learners=learners,
        sent_ahead=np.zeros(2 * reach, dtype=np.int64),
    )


class Outline(NamedTuple):
    """What is known of a plan before it is made: about how many learners it has, and how they are kept."""

    n_learners: float
    n_parts: int
    by_rank: bool
    #: Whether the number is no estimate but a bound that holds for sure.
    is_bound: bool
    n_bytes: float


def pays(run: Run) -> bool:
    """Whether a plan is possible and would save work."""
    if run.relaying is None or not traits(run).is_settled or traits(run).compares_sums:
        return False
    if isinstance(run.memory, Window):
        # What is heard goes to the block of its round, which is not looked up in plans.
        return False
    # A plan spreads a message for each arm of each agent; without one, every pull spreads one.
    return run.horizon * run.replicates >= int(np.diff(run.problem.arm_offsets).max())


def parts_for(run: Run, threads: int) -> int:
    """How many threads share a replicate: those that other replicates leave, if it is large."""
    if run.memory.forgets or run.problem.n_agents < SHARED_FROM:
        # Messages under way are weighed anew in a round that others may not have come to.
        return 1
    return max(1, threads // run.replicates)


def part_bounds(n_agents: int, n_parts: int) -> list[int]:
    """Part p of the agents are those from bounds[p] to before bounds[p + 1].

    Examples
    --------
    >>> part_bounds(10, 3)
    [0, 4, 7, 10]
    """
    return [-(-part * n_agents // n_parts) for part in range(n_parts + 1)]


def outline(packed: Packed, rule: Rule, n_parts: int, stop: Stop) -> Outline | None:
    """What a plan for `n_parts` parts would be; None if it does not pay or does not fit its budget."""
    if not pays(packed.run):
        return None
    assert packed.network is not None
    # A plan cannot have more learners than this: of every slot, all holders of its arm. Nor can a message be sent more
    # often than each agent tells all its neighbours once, and by the published rules its origin twice.
    most_sent = len(packed.network.indices) + packed.most_degree
    bound = _outlined(packed, rule, n_parts, packed.n_pairs, most_sent, is_bound=True)
    if bound.n_bytes <= min(PLAN_BUDGET, memory.TRIFLE):
        return bound
    if not _is_affordable(_outlined(packed, rule, n_parts, 0.0, 0.0).n_bytes):
        return None
    sampled = sampled_fates(packed, rule, stop)
    n_learners = float(sampled[fate.HEARD]) * len(packed.agents.arms)
    estimated = _outlined(packed, rule, n_parts, n_learners, float(sampled[fate.SENT]))
    return estimated if _is_affordable(estimated.n_bytes) else None


def _outlined(
    packed: Packed, rule: Rule, n_parts: int, n_learners: float, n_sent: float, is_bound: bool = False
) -> Outline:
    """A plan with this many learners, whose messages are each sent this often."""
    n_slots, n_holders = len(packed.agents.arms), int(np.diff(packed.holder_starts).max())
    by_rank = 4.0 * n_learners > WIDE_BUDGET and n_holders <= MAX_RANKS
    of_slots = 4.0 + (4.0 * n_parts + (16.0 if _counts_ended(rule) else 8.0)) * rule.reach
    # Learners of a slot fill whole units, half of one in vain.
    n_bytes = of_slots * n_slots + (2.0 if by_rank else 4.0) * (n_learners + UNIT / 2 * n_slots)
    if packed.run.link_traffic:
        n_ways = packed.run.problem.n_agents if _are_of_agents(rule) else n_slots
        n_bytes += n_ways * (8.0 * (rule.reach + 1) + 4.0 * n_sent)
    return Outline(n_learners, n_parts, by_rank, is_bound, n_bytes)


def _is_affordable(n_bytes: float) -> bool:
    """Whether a plan may take so much memory."""
    return n_bytes <= PLAN_BUDGET and memory.suffices(2.0 * n_bytes)


def _counts_ended(rule: Rule) -> bool:
    """Whether a plan must keep how copies end: agents that learn, or those that do not, meet several decisions."""
    return rule.decision.shape[2] > 1 or (rule.stop_before_use and bool((rule.decision == STOP).any()))


def _are_of_agents(rule: Rule) -> bool:
    """Whether all messages of an agent take the same ways: whether holders relay just as others do."""
    return rule.reach == 1 or bool((rule.decision[0] == rule.decision[1]).all())


def sampled_fates(packed: Packed, rule: Rule, stop: Stop) -> NDArray[np.float64]:
    """What becomes of a message of a static network, on average over some of the slots: in the order of counts."""
    assert packed.network is not None
    n_slots = len(packed.agents.arms)
    n_sampled = min(_SAMPLE_WORK // max(len(packed.network.indices), 1), n_slots // _SAMPLE_PART)
    sample = np.unique(np.linspace(0, n_slots - 1, max(n_sampled, _SMALLEST_SAMPLE)).astype(np.int64))
    counts = np.zeros(fate.N_COUNTS, dtype=np.int64)
    one = make_fates(1, rule.reach, np.zeros((1, 0), dtype=np.int32))
    spread_slots(
        packed.network,
        packed.agents,
        rule,
        sample,
        make_scratch(packed),
        one,
        counts,
        no_links(),
        no_faults(),
        stop.flag,
    )
    stop.check()
    return counts / len(sample)


def relayed_and_learned(packed: Packed, stop: Stop) -> tuple[float, float]:
    """About how many agents relay a message, and how many learn it."""
    network, rule = packed.run.problem.network, packed.rule(Draws(packed.run.seed, 0))
    if packed.network is not None:
        counts = sampled_fates(packed, rule, stop)
        return float(counts[fate.RELAYED]), float(counts[fate.HEARD])
    assert isinstance(network, DynamicNetwork)
    # A dynamic network is taken to spread a message as a tree does, until all agents have it.
    n_agents, n_reached = network.n_agents, 0.0
    newest, degree = 1.0, links_at_a_time(network) / network.n_agents
    for _ in range(rule.reach):
        newest = min(newest * (min(degree, rule.n_targets) if rule.n_targets else degree), n_agents - 1 - n_reached)
        n_reached += newest
    # Of the agents, how many have the arm, on average over slots.
    holding = packed.n_pairs / len(packed.agents.arms) / n_agents
    absorbing = holding if not rule.is_random and (rule.decision[1] == ABSORB).all() else 0.0
    return n_reached * (1.0 - absorbing), n_reached * holding


def count_fates(
    rule: Rule, plan: Plan, n_messages: NDArray[np.int32], late_slots: NDArray[np.int32], stop: Stop
) -> NDArray[np.int64]:
    """The fates of a whole run with a plan, from how many messages each slot made and what was sent last.

    Row t (modulo their number) of v's `late_slots` is what v sent in round t of the last `reach`. These messages have
    fewer hops before the horizon; what is relayed in the last of them is still queued.
    """
    [all_hops] = _by_hop(plan, None, n_messages[None], stop)
    last_hops = np.zeros_like(all_hops)
    late_hops = _by_hop(plan, late_slots.T, None, stop)
    for t in range(max(1, rule.horizon - rule.reach + 1), rule.horizon + 1):
        last_hop, late = rule.horizon - t, late_hops[t % len(late_hops)]
        all_hops[last_hop + 1 :] -= late[last_hop + 1 :]
        last_hops[last_hop] += late[last_hop]
    absorbed, stopped, expired, relayed = _endings(rule, plan, all_hops)
    *_, queued = _endings(rule, plan, last_hops)
    counts = np.zeros(fate.N_COUNTS, dtype=np.int64)
    counts[[fate.SENT, fate.DELIVERED, fate.HEARD]] = all_hops[:, [_SENT, _DELIVERED, _LEARNED]].sum(axis=0)
    counts[[fate.ABSORBED, fate.STOPPED, fate.EXPIRED]] = absorbed, stopped, expired
    counts[[fate.RELAYED, fate.QUEUED]] = relayed - queued, queued
    return counts


def _by_hop(
    plan: Plan, slots: NDArray[np.int32] | None, times: NDArray[np.int32] | None, stop: Stop
) -> NDArray[np.int64]:
    """What the plan says of rows of messages, with how often each occurs, summed up hop by hop: (rows, reach, numbers).

    They are those of `slots`, each once, -1 being none; or one of every slot, each this many `times`.
    """
    rows = slots if times is None else times
    assert rows is not None
    (n_rows, n_all), reach, n_columns = rows.shape, plan.delivered.shape[1], plan.records.shape[1]
    n_parts = (n_columns - 1) // reach - 1
    records, ended = np.zeros((n_rows, n_columns), dtype=np.int64), np.zeros((n_rows, reach, 2), dtype=np.int64)
    delivered = np.zeros((n_rows, reach), dtype=np.int64)
    for begin in range(0, n_all, _SLOTS_AT_ONCE):
        stop.check()
        here = slice(begin, begin + _SLOTS_AT_ONCE)
        some = here if slots is None else slots[:, here]
        weights = (rows[:, here] >= 0 if times is None else rows[:, here]).astype(np.int64)[:, None]
        records += (weights @ plan.records[some])[:, 0]
        delivered += (weights @ plan.delivered[some])[:, 0]
        if len(plan.ended):
            ended += (weights @ plan.ended[some].reshape(n_rows, -1, 2 * reach)).reshape(ended.shape)
    # Of a hop's learners, those of the last part end where the hop does.
    learned = np.diff(records[:, n_parts : 1 + reach * n_parts : n_parts], prepend=0)
    return np.concatenate([np.stack([records[:, 1 + reach * n_parts :], delivered, learned], axis=2), ended], axis=2)


def _endings(rule: Rule, plan: Plan, numbers: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """How many copies are absorbed, stopped, expired and relayed, from what was summed up by hop."""
    absorbed, stopped = numbers[:, _ABSORBED], numbers[:, _STOPPED]
    if not len(plan.ended):
        learned = numbers[:, _LEARNED]
        others = numbers[:, _DELIVERED] - learned
        of_others, of_learners = rule.decision[:, : rule.reach, 0]
        absorbed = others * (of_others == ABSORB) + learned * (of_learners == ABSORB)
        stopped = others * (of_others == STOP) + learned * (of_learners == STOP)
    going_on = numbers[:, _DELIVERED] - absorbed - stopped
    has_ttl = np.arange(1, rule.reach + 1) < rule.ttl
    return absorbed.sum(), stopped.sum(), going_on[~has_ttl].sum(), going_on[has_ttl].sum()


def make_plan(n_slots: int, reach: int, n_parts: int = 1, n_learners: int = 0, n_ranks: int = 0) -> Plan:
    """Room for a plan whose learners belong to `n_parts` parts; none is ended, see `Plan`."""
    return Plan(
        records=np.zeros((n_slots, 1 + reach * n_parts + reach), dtype=np.int32),
        delivered=np.zeros((n_slots, reach), dtype=np.int32),
        ended=np.zeros((0, reach, 2), dtype=np.int32),
        learners=np.empty(n_learners, dtype=np.int32),
        ranks=np.empty(n_ranks, dtype=np.uint16),
        ways=Ways(False, np.zeros((0, reach + 1), dtype=np.int64), np.zeros(0, dtype=np.int32)),
    )


def build(packed: Packed, rule: Rule, outlined: Outline, threads: int, stop: Stop) -> Plan:
    """The plan, made for some agents after the others, side by side.

    Its place for learners is larger than needed; what is not written to takes no memory.
    """
    n_slots = len(packed.agents.arms)
    n_learners = int((1.0 if outlined.is_bound else _GENEROUS) * outlined.n_learners) + UNIT * n_slots
    while True:
        of_learners, of_ranks = (0, n_learners) if outlined.by_rank else (n_learners, 0)
        plan = make_plan(n_slots, rule.reach, outlined.n_parts, of_learners, of_ranks)
        if _counts_ended(rule):
            plan = replace(plan, ended=np.zeros((n_slots, rule.reach, 2), dtype=np.int32))
        if _plan_shares(packed, rule, outlined.n_parts, threads, Rooms(n_learners), plan, stop):
            return replace(plan, ways=_ways(packed, rule, plan, stop)) if packed.run.link_traffic else plan
        # As far as 32 bits count units: several times what a plan may take.
        n_learners = min(2 * n_learners, UNIT * np.iinfo(np.int32).max)


def _ways(packed: Packed, rule: Rule, plan: Plan, stop: Stop) -> Ways:
    """Which links the messages of a plan take; the plan says how often each is sent."""
    assert packed.network is not None
    of_agents, reach = _are_of_agents(rule), rule.reach
    n_sent = plan.records[packed.agents.offsets[:-1] if of_agents else slice(None), -reach:]
    ends = np.zeros((len(n_sent), reach + 1), dtype=np.int64)
    ends[:, 1:] = np.cumsum(n_sent, dtype=np.int64).reshape(n_sent.shape)
    ends[1:, 0] = ends[:-1, -1]
    ways = Ways(of_agents, ends, np.empty(ends[-1, -1], dtype=np.int32))
    find_ways(packed.network, packed.agents, rule, make_scratch(packed), ways, stop.flag)
    stop.check()
    return ways


class Rooms:
    """Hands out a plan's place for learners, piece by piece, to whoever needs some."""

    def __init__(self, n_places: int) -> None:
        self._n_places = n_places
        self._n_taken = 0
        self._lock = threading.Lock()

    def take(self, n_places: int) -> NDArray[np.int64]:
        """The next `n_places` places, or what is left: where they begin and end."""
        with self._lock:
            begin = self._n_taken
            self._n_taken = min(begin + -(-n_places // UNIT) * UNIT, self._n_places)
            return np.array([begin, self._n_taken], dtype=np.int64)


def _plan_shares(packed: Packed, rule: Rule, n_parts: int, threads: int, rooms: Rooms, plan: Plan, stop: Stop) -> bool:
    """Write the plan; whether there was place for all of it."""
    n_agents, n_arms = packed.run.problem.n_agents, packed.run.problem.n_arms
    n_shares = _SHARES * threads if n_agents > _SMALL else 1
    bounds = np.linspace(0, n_agents, n_shares + 1).astype(np.int64).tolist()
    at_once = (len(plan.learners) + len(plan.ranks)) // (_ROOMS * n_shares if n_shares > 1 else 1)
    by_rank = len(plan.ranks) > 0
    entries = packed.ranks if by_rank else packed.agents.position.view(np.uint16)
    part_of = np.arange(n_agents if n_parts > 1 else 0) * n_parts // n_agents
    room_of = [rooms.take(at_once) for _ in range(n_shares)]

    def plan_share(share: int, arm: int, marks: NDArray[np.uint64]) -> bool:
        search = _make_search(packed, n_parts, part_of.astype(np.int32), len(plan.ended) > 0, marks)
        assert packed.network is not None
        v, last, n_places = bounds[share], bounds[share + 1], at_once
        while True:
            before, room = v, room_of[share]
            v = plan_slots(v, last, arm, packed.network, packed.agents, rule, entries, search, room, plan, stop.flag)
            stop.check()
            if v == last:
                return True
            room_of[share] = room = rooms.take(n_places)
            if room[0] == room[1]:
                return False
            # An agent whose learners did not fit into a whole room needs a larger one.
            n_places *= 2 if v == before else 1

    for arm in range(0, n_arms, WORD):
        marks = _fresh_marks(packed, arm, by_rank)
        if not all(crew.work([partial(plan_share, share, arm, marks) for share in range(n_shares)], threads, stop)):
            return False
    return True


def _fresh_marks(packed: Packed, arm: int, by_rank: bool) -> NDArray[np.uint64]:
    """What a search about the 64 arms from `arm` on needs of each agent, before any agent has heard of anything."""
    assert packed.network is not None
    agents, degrees = packed.agents, np.diff(packed.network.starts[0])
    marks = np.zeros((len(degrees), N_COLUMNS), dtype=np.uint64)
    firsts = np.zeros_like(degrees) if by_rank else agents.offsets[:-1]
    marks[:, DEGREE_AND_FIRST] = (degrees.astype(np.uint64) << HALF) | firsts.astype(np.uint64)
    for begin in range(0, len(degrees), _AGENTS_AT_ONCE):
        offsets = agents.offsets[begin : begin + _AGENTS_AT_ONCE + 1]
        bits = agents.arms[offsets[0] : offsets[-1]].astype(np.int64) - arm
        is_here = (bits >= 0) & (bits < WORD)
        masks = np.where(is_here, np.uint64(1) << np.where(is_here, bits, 0).astype(np.uint64), np.uint64(0))
        # No arm set is empty.
        marks[begin : begin + _AGENTS_AT_ONCE, HELD] = np.bitwise_or.reduceat(masks, offsets[:-1] - offsets[0])
    return marks


def _make_search(
    packed: Packed, n_parts: int, part_of: NDArray[np.int32], counts_ended: bool, marks: NDArray[np.uint64]
) -> Search:
    """Workspace for one search after the other, with its own copy of the marks."""
    n_agents, n_holders = packed.run.problem.n_agents, int(np.diff(packed.holder_starts).max())
    return Search(
        marks=marks.copy(),
        senders=np.zeros(n_agents + 1, dtype=np.int32),
        masks=np.zeros(n_agents + 1, dtype=np.uint64),
        receivers=np.zeros(n_agents + 1, dtype=np.int32),
        grouped=np.zeros(len(part_of), dtype=np.int32),
        part_of=part_of,
        part_ends=np.zeros(n_parts, dtype=np.int64),
        touched=np.zeros(n_agents + 1, dtype=np.int32),
        n_touched=np.zeros(1, dtype=np.int64),
        # What is not written to takes no memory.
        learned=np.empty((WORD, n_holders), dtype=np.int32),
        tallies=np.zeros((WORD, N_TALLIES), dtype=np.int64),
        counts_ended=counts_ended,
    )
