"""A run as arrays: what all replicates share, packed once for the kernels."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from ... import draws as purposes
from ...arms import BERNOULLI, GAUSSIAN, Law, Replay
from ...arms.changing import Rows
from ...core import check_decision
from ...draws import Draws
from ...faults import Faults
from ...networks.csr import Links
from ...policies.base import Policy
from ...policies.discount import Discount
from ...policies.window import Window
from ...protocols.base import AnyProtocol, has_method
from ...protocols.emission import Contested, EveryPull, Growth
from ...protocols.relaying import RELAY
from ...protocols.tree import TreeAggregation
from ..replay import replays
from ..run import Run
from . import bitsets
from .bitsets import WORD
from .distances import most_accepted, most_hops
from .kernels import layout
from .kernels.choices import CHOICES, widths_of
from .kernels.layout import (
    CONTESTED,
    EVERY_PULL,
    GROWTH,
    NEVER,
    OWN_EMISSION,
    Agents,
    Ahead,
    Holders,
    Keys,
    Known,
    Logged,
    Network,
    OnLinks,
    Rule,
)
from .kernels.single import MAX_HOPS
from .kernels.special import CLOCKS
from .repeats import pays_twice

MAX_ARMS_PER_AGENT: Final = 2**15 - 1
#: The most memory that the published rules' ids of repeating rewards may take, in bytes.
ID_BUDGET: Final = 2**30
#: And that the blocks of windows may take.
BLOCK_BUDGET: Final = 2**31
#: And what agents have used of replayed rewards.
LOG_BUDGET: Final = 2**31
#: How many rounds' clocks are worked out at a time; how many such blocks are kept at least, and in how many bytes more.
CLOCK_BLOCK: Final = 1024
CLOCK_BLOCKS: Final = 16
CLOCK_BUDGET: Final = 2**21
#: How many draws are made ahead where agents are few, in rounds that are a multiple of a vector's length.
AHEAD: Final = 1024
MAX_AHEAD: Final = 64
VECTOR: Final = 4
#: A reach up to this is not worth shortening, nor is one for which more links than this would be looked at.
SHORT_REACH: Final = 8
MAX_DISTANCE_WORK: Final = 2**26
#: By how many powers of two a weight may fall without coming near the floor of `Discount`.
SURE_POWERS: Final = 200.0
#: The most of others' statistics that are kept only because of that floor.
MAX_KNOWN: Final = 2**28
#: What pulls draw for, in the order of `Keys.draws`.
KEYS: Final = (purposes.REWARD, purposes.INDEX, purposes.REPLAY)
BUILT_IN_EMISSIONS: Final = {EveryPull: EVERY_PULL, Growth: GROWTH, Contested: CONTESTED}


def unsupported(run: Run) -> str | None:
    """Why the compiled engine does not run this, or None if it does."""
    if numba.config.DISABLE_JIT:
        return "numba compiles nothing while NUMBA_DISABLE_JIT is set"
    reason = _unknown_delivery(run)
    if reason is not None:
        return reason
    kinds = {type(policy) for policy in run.policies}
    if run.trace:
        return "it keeps no event log (trace)"
    if run.trim:
        return "it does not test what it merges (trim)"
    if run.faults is not None and run.faults != Faults(loss=run.faults.loss, outages=run.faults.outages):
        return "of faults it runs losses and outages"
    if len(kinds) > 1:
        return "it runs one kind of policy at a time, and the agents' policies are of several"
    [kind] = kinds
    for name in ("choose", "chooser"):
        if getattr(kind, name) is not getattr(Policy, name):
            return f"the policy {run.policies[0].name!r} overrides {name}(); it runs policies that give index()"
    if run.memory.forgets and not isinstance(run.memory, Discount | Window):
        return f"of memories that forget it runs Discount and Window, got {run.memory!r}"
    if isinstance(run.memory, Window):
        if run.sends_statistics:
            return "by Window it runs emissions of single observations"
        if 16 * run.memory.n_kept * len(run.problem.arm_indices) > BLOCK_BUDGET:
            return f"the blocks of {run.memory!r} would take more than {BLOCK_BUDGET >> 30} GiB"
    if traits(run).may_lose_weights and traits(run).sends_sums and n_pairs(run) > MAX_KNOWN:
        return (
            f"with {run.memory!r} a weight may be lost within {run.horizon} rounds, and what each of {n_pairs(run):,} "
            "pairs of holders know of each other does not fit"
        )
    if np.diff(run.problem.arm_offsets).max() > MAX_ARMS_PER_AGENT:
        return f"it runs at most {MAX_ARMS_PER_AGENT} arms per agent"
    if traits(run).replays and 16 * log_rows(run) * run.problem.n_agents > LOG_BUDGET:
        return f"what agents have used of the replayed rewards would take more than {LOG_BUDGET >> 30} GiB"
    if getattr(numba.config, "USING_SVML", False):
        return "Intel's SVML rounds logarithms differently; set NUMBA_DISABLE_INTEL_SVML=1"
    if run.rules.id_is_reward and traits(run).sends_sums and run.protocol.emission.n_echoes > 0:
        return "by the published rules ids come twice when sums are echoed"
    if traits(run).walks:
        return _unsupported_walk(run)
    return None


def n_pairs(run: Run) -> int:
    """How many pairs of holders of an arm there are, over all arms: what they may have to keep of each other."""
    return int(np.square(np.bincount(run.problem.arm_indices)).sum())


def log_rows(run: Run) -> int:
    """How many rows each agent's table of replayed rewards has: a power of two, at least twice what it may pull."""
    sizes = np.array([len(law.sample) if isinstance(law, Replay) else 0 for law in run.problem.laws])  # type: ignore[arg-type]
    most = int(np.add.reduceat(sizes[run.problem.arm_indices], run.problem.arm_offsets[:-1]).max())
    return 2 << max(1, min(run.horizon, most)).bit_length()


def memory_kind(run: Run) -> str:
    """Which of the kernels for memories the run needs, see `forgetting`."""
    if run.memory.forgets:
        return run.memory.name
    return "unknown" if any(policy.first_pulls == "unknown" for policy in run.policies) else ""


def _unknown_delivery(run: Run) -> str | None:
    """Why no kernel delivers as the protocol does, or None if one does."""
    protocol = run.protocol
    known = (
        run.relaying is not None
        or (run.tree is not None and has_method(protocol, TreeAggregation.courier))
        or (not protocol.sends_messages and has_method(protocol, AnyProtocol.courier))
    )
    if not known or not has_method(protocol, AnyProtocol.seat):
        return f"the protocol {protocol.name!r} brings its own courier or agent; it runs those that give relay()"
    if not has_method(protocol, AnyProtocol.size):
        return f"messages of the protocol {protocol.name!r} have sizes of their own"
    return None


def _unsupported_walk(run: Run) -> str | None:
    """The same, of a run by the published rules that must be walked."""
    if id_bytes(run) > ID_BUDGET:
        return f"the ids that agents remember by the published rules would take more than {ID_BUDGET >> 30} GiB"
    if traits(run).sends_sums:
        return "by the published rules ids come twice when agents forget their sums" if traits(run).forgets else None
    if run.tape is None and any(
        discrete and not _is_bernoulli(law)
        for law, discrete in zip(run.problem.laws, traits(run).discrete, strict=True)
    ):
        return "by the published rules it runs Bernoulli laws and rewards that never repeat"
    if traits(run).replays and traits(run).has_tape:
        return "by the published rules it replays rewards beside Bernoulli, Gaussian and uniform arms only"
    return None


def id_bytes(run: Run) -> float:
    """How much memory it takes to know which messages agents remember, by the published rules."""
    n_agents, n_recent = run.problem.n_agents, 2 * traits(run).reach * run.problem.n_agents
    rings = (8.0 if traits(run).n_codes else 4.0) * n_recent * n_agents
    return rings + traits(run).n_ids / 8 * n_agents + 16.0 * traits(run).n_messages


def _is_bernoulli(law: Law) -> bool:
    return (law.code if isinstance(law, Replay) else law.kernel and law.kernel[0]) == BERNOULLI


class Traits:
    """What decides how a run is delivered, worked out when it is first asked for."""

    def __init__(self, run: Run) -> None:
        # A weak reference, because traits are kept beside runs and must not keep them alive.
        self._run = weakref.ref(run)

    @property
    def run(self) -> Run:
        """The run."""
        run = self._run()
        assert run is not None
        return run

    @cached_property
    def walks(self) -> bool:
        """Whether every copy must be walked: the published memory may forget, or takes equal rewards for one message.

        What is sent over one link alone comes once. On a static network without draws, none is forgotten while a copy
        can still come if an agent accepts at most as many as it remembers in the time that a message lives. So it is if
        holders relay as all others do: then an agent accepts at most one message of each origin a round.
        """
        run = self.run
        if not run.rules.id_is_reward or run.relaying is None:
            return False
        if self.discrete.any():
            return True
        if self._longest_life == 1 and not (self.sends_sums and self.forgets):
            return False
        return not self.is_settled or not (bool((self.decision[0] == self.decision[1]).all()) or self._remembers_enough)

    @property
    def _remembers_enough(self) -> bool:
        """Whether agents remember all that they accept while a message lives; False if that takes long to find out."""
        problem, network = self.run.problem, self.run.problem.network
        assert isinstance(network, Links)
        n_agents, n_words = problem.n_agents, -(-problem.n_arms // WORD)
        if n_agents * network.n_links * n_words * min(self._longest_life, SHORT_REACH) > MAX_DISTANCE_WORK:
            return False
        has_arm = np.zeros((n_agents, problem.n_arms), dtype=np.bool_)
        has_arm[problem.owners, problem.arm_indices] = True
        degrees = network.degrees if self.decision.shape[2] > 1 else np.zeros(n_agents, dtype=np.int64)
        most = most_accepted(network, has_arm, (self.decision == RELAY)[:, :, degrees])
        return most <= self.run.protocol.most_hops * n_agents

    @property
    def is_settled(self) -> bool:
        """Whether all messages of an origin's arm meet the same fate: nothing changes, is drawn or fails."""
        run = self.run
        relaying = run.relaying
        draws = relaying is not None and (relaying.random or relaying.n_targets is not None)
        return not run.problem.is_dynamic and not draws and run.faults is None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing happens to an agent between its pulls: no agent tells anything or forgets."""
        return not (self.run.protocol.sends_messages or self.run.protocol.is_central) and not self.forgets

    @property
    def goes_abreast(self) -> bool:
        """Whether messages under way are sets, which hop together: all go to all neighbours, and no link is counted."""
        run = self.run
        draws = run.relaying is not None and run.relaying.n_targets is not None
        is_sent = run.relaying is not None and self.reach > 0 and not self.walks
        is_plain = run.faults is None and not run.link_traffic and not draws
        return is_sent and is_plain and bitsets.fit(run.problem.n_agents, self.reach)

    @property
    def goes_singly(self) -> bool:
        """Whether there is one copy of a message at a time, its way alone is drawn, and nothing fails or is counted."""
        run = self.run
        is_plain = run.faults is None and not run.link_traffic and not self.walks
        is_single = run.relaying is not None and run.relaying.n_targets == 1 and not run.relaying.random
        return is_plain and is_single and self.reach <= MAX_HOPS

    @property
    def sends_sums(self) -> bool:
        """Whether messages hold an agent's count and sum so far, instead of one observation."""
        return self.run.relaying is not None and self.run.protocol.emission.cumulative

    @property
    def compares_sums(self) -> bool:
        """Whether learners must keep what they know of each origin, because they may miss some of its messages."""
        return self.sends_sums and (not self.is_settled or self.walks or self.may_lose_weights)

    @property
    def may_lose_weights(self) -> bool:
        """Whether a weight may fall below the floor of `Discount`: then all keep what they know, and lose it alike."""
        memory = self.run.memory
        return isinstance(memory, Discount) and memory.rate * self.run.horizon > SURE_POWERS

    @property
    def forgets(self) -> bool:
        """Whether agents may lose their memory."""
        faults = self.run.faults
        return faults is not None and faults.outages is not None and not faults.outages.memory

    @cached_property
    def discrete(self) -> NDArray[np.int16]:
        """For each arm whether two of its messages may be equal, by the tape or the arm's law.

        Those that hold sums never are, because counts only grow.
        """
        run = self.run
        if self.sends_sums:
            return np.zeros(run.problem.n_arms, dtype=np.int16)
        if run.tape is None:
            repeats = pays_twice(run)
            return np.array([repeats or not law.continuous for law in run.problem.laws], dtype=np.int16)
        ordered = np.sort(run.tape, axis=1)
        repeats = run.horizon > 1 and bool((ordered[:, 1:] == ordered[:, :-1]).any())
        return np.full(run.problem.n_arms, repeats, dtype=np.int16)

    @cached_property
    def n_codes(self) -> int:
        """How many different values rewards that may be equal can take."""
        run = self.run
        if not self.discrete.any():
            return 0
        return 2 if run.tape is None else len(np.unique(run.tape[~np.isnan(run.tape)]))

    @property
    def n_messages(self) -> int:
        """How many messages the published memory must tell apart at a time, each round's from a whole word on."""
        return 2 * self.reach * WORD * -(-self.run.problem.n_agents // WORD)

    @property
    def n_ids(self) -> int:
        """How many ids the published memory must tell apart at a time."""
        return self.n_messages + len(self.run.problem.arm_indices) * self.n_codes

    @cached_property
    def decision(self) -> NDArray[np.int8]:
        """The relay rule of a protocol that does not draw, by has_arm, hops so far and degree (1 if it has no part)."""
        protocol, network = self.run.relaying, self.run.problem.network
        if protocol is None or protocol.random:
            return np.zeros((2, max(self._longest_life, 1), 1), dtype=np.int8)
        n_agents = self.run.problem.n_agents
        degrees = np.unique(network.degrees) if isinstance(network, Links) else np.arange(n_agents)
        table = np.zeros((2, self._longest_life, int(degrees.max()) + 1), dtype=np.int8)
        for has_arm in (False, True):
            for hop in range(self._longest_life):
                for degree in degrees.tolist():
                    asked = protocol.relay(has_arm, protocol.ttl - 1 - hop, degree, 0.0, protocol.parameter)
                    table[int(has_arm), hop, degree] = check_decision(protocol, asked)
        known = table[:, :, degrees]
        return known[:, :, :1].copy() if (known == known[:, :, :1]).all() else table

    @property
    def _longest_life(self) -> int:
        """How many hops a message can travel by the ttl and before the horizon."""
        return min(self.run.protocol.most_hops, self.run.horizon)

    @cached_property
    def reach(self) -> int:
        """After at most how many hops every message has ended: how much rings and windows must hold."""
        n_agents = self.run.problem.n_agents
        if self.walks or self.forgets:
            return self._longest_life
        # A message that goes on has reached a new agent, or by the published rules its origin.
        reach = min(self._longest_life, n_agents + 1)
        network, relays = self.run.problem.network, self.decision == RELAY
        is_constant = bool((relays == relays[:, :1]).all())
        if reach <= SHORT_REACH or not self.is_settled or not is_constant or not isinstance(network, Links):
            return reach
        degrees = network.degrees if relays.shape[2] > 1 else np.zeros(n_agents, dtype=np.int64)
        others, holders = relays[:, 0, degrees]
        if (others == holders).all():
            return min(reach, most_hops(network, others))
        if self.run.problem.n_arms * network.n_links > MAX_DISTANCE_WORK:
            return reach
        held = map(self.run.problem.who_has, range(self.run.problem.n_arms))
        return min(reach, max(most_hops(network, np.where(has_arm, holders, others)) for has_arm in held))

    @cached_property
    def has_tape(self) -> bool:
        """Whether rewards are read from a tape: the user's, or one that is made of laws without a code."""
        laws = self.run.problem.laws
        return self.run.tape is not None or any(law.kernel is None and not isinstance(law, Replay) for law in laws)

    @cached_property
    def replays(self) -> bool:
        """Whether rewards of a log are replayed."""
        return self.run.tape is None and replays(self.run.problem)


_traits: weakref.WeakKeyDictionary[Run, Traits] = weakref.WeakKeyDictionary()


def traits(run: Run) -> Traits:
    """The run's traits."""
    return _traits.setdefault(run, Traits(run))


@dataclass(frozen=True)
class Packed:
    """What all replicates of a run share.

    `laws` has a single row, for arms that do not change. `network` is None if it is dynamic; arm a has
    `holder_starts[a + 1] - holder_starts[a]` holders.
    """

    run: Run
    agents: Agents
    laws: Rows
    clock_parameters: tuple[float, ...]
    network: Network | None
    holder_starts: NDArray[np.int64]
    traits: Traits
    most_arms: int
    most_degree: int

    def rule(self, draws: Draws) -> Rule:
        """Protocol and rule set as numbers, with the replicate's keys."""
        protocol, relaying, rules = self.run.protocol, self.run.relaying, self.run.rules
        (stop_k0, stop_k1), (target_k0, target_k1) = draws.key(purposes.STOP), draws.key(purposes.TARGET)
        return Rule(
            ttl=self.run.protocol.most_hops,
            reach=self.traits.reach,
            horizon=self.run.horizon,
            decision=self.traits.decision,
            is_random=relaying is not None and relaying.random,
            parameter=0.0 if relaying is None else float(relaying.parameter),
            n_targets=(0 if relaying is None else relaying.n_targets) or 0,
            relay_to_sender=rules.relay_to_sender,
            origin_remembers=rules.origin_remembers,
            stop_before_use=rules.stop_before_use,
            stop_k0=stop_k0,
            stop_k1=stop_k1,
            target_k0=target_k0,
            target_k1=target_k1,
            emission=BUILT_IN_EMISSIONS.get(type(protocol.emission), OWN_EMISSION),
            emission_parameter=float(protocol.emission.parameter),
            n_echoes=protocol.emission.n_echoes,
            asks_best=protocol.emission.asks_best,
            sends_sums=self.traits.sends_sums,
            sends_changes=self.traits.sends_sums and not self.traits.compares_sums,
            # Going down and coming back takes a round at least, so an agent learns a message every other round at most.
            most_receipts=(self.traits.reach + 1) // 2 if self.traits.forgets else 1,
            tells_everyone=protocol.is_central,
        )

    @cached_property
    def holder_slots(self) -> NDArray[np.int32]:
        """The slots of arm a's holders are those from `holder_starts[a]` to before `holder_starts[a + 1]`."""
        return np.argsort(self.run.problem.arm_indices, kind="stable").astype(np.int32)

    def holders(self, with_slots: bool) -> Holders:
        """Who has which arm, for kernels: how many do, and where that is needed, their slots."""
        return Holders(self.holder_starts, self.holder_slots if with_slots else np.zeros(0, dtype=np.int32))

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Which of its arm's holders, in ascending order, each slot belongs to."""
        rank = np.zeros(len(self.agents.arms), dtype=np.int32)
        rank[self.holder_slots] = np.arange(len(rank)) - np.repeat(self.holder_starts[:-1], np.diff(self.holder_starts))
        return rank

    @property
    def ranks(self) -> NDArray[np.uint16]:
        """The same by agent and arm, where no arm has more than 65,536 holders."""
        problem = self.run.problem
        ranks = np.zeros((problem.n_agents, problem.n_arms), dtype=np.uint16)
        ranks[problem.owners, problem.arm_indices] = self.rank
        return ranks

    @cached_property
    def known_places(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where learners keep others' statistics, as in `Known`: for each arm a square of all its holders."""
        n_holders, arms = np.diff(self.holder_starts), self.agents.arms
        squares = np.cumsum(np.square(n_holders)) - np.square(n_holders)
        return (squares[arms] + self.rank * n_holders[arms]).astype(np.int64), self.rank

    @cached_property
    def n_pairs(self) -> int:
        """How many pairs of holders of an arm there are."""
        return n_pairs(self.run)

    @property
    def n_known(self) -> int:
        """How many of others' statistics learners may have to keep."""
        return self.n_pairs if self.traits.compares_sums else 0

    def known(self) -> Known:
        """Nothing is known yet."""
        rows, rank = self.known_places if self.n_known else (np.zeros(0, np.int64), np.zeros(0, np.int32))
        number = np.float64 if self.run.memory.forgets else np.int32
        return Known(rows, rank, np.zeros(self.n_known, dtype=number), np.zeros(self.n_known))

    def keys(self, draws: Draws) -> Keys:
        """The keys of the draws that pulls need."""
        memory = self.run.memory
        words = [word for purpose in KEYS for word in draws.key(purpose)]
        return Keys(
            draws=np.array(words, dtype=np.int64),
            draws_index=self.run.policies[0].random,
            clock_lag=self.run.rules.clock_lag,
            clock_parameters=np.array(self.clock_parameters),
            gamma=memory.gamma if isinstance(memory, Discount) else 1.0,
            rate=memory.rate if isinstance(memory, Discount) else 0.0,
            window=memory.rounds if isinstance(memory, Window) else 1,
            block_rounds=memory.block_rounds if isinstance(memory, Window) else 1,
            n_blocks=memory.n_kept if isinstance(memory, Window) else 0,
        )

    @cached_property
    def no_network(self) -> Network:
        """Agents without a link."""
        return static_network(Links.from_pairs(len(self.agents.every), []))

    @cached_property
    def n_ahead(self) -> int:
        """How many rounds' rewards are drawn at a time: none if they come from a tape or a log, or some often pause."""
        if self.traits.has_tape or self.traits.replays or self.agents.every.max() > 1:
            return 0
        return min(max(AHEAD // len(self.agents.every) // VECTOR, 1), MAX_AHEAD // VECTOR) * VECTOR

    def ahead(self) -> Ahead:
        """Place for draws, none of them made yet."""
        n_agents, n_ahead = len(self.agents.every), self.n_ahead
        n_normal = n_agents if (self.agents.law_code == GAUSSIAN).any() else 0
        never = np.full(1, NEVER, dtype=np.int64)
        return Ahead(n_ahead, never, np.zeros(n_agents * n_ahead), np.zeros(n_normal * n_ahead))

    @cached_property
    def samples(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rewards that are replayed, arm after arm, and where each arm's begin."""
        kept = [law.sample if isinstance(law, Replay) else () for law in self.run.problem.laws]
        starts = np.concatenate([[0], np.cumsum([len(sample) for sample in kept])]).astype(np.int64)  # type: ignore[arg-type]
        return starts, np.concatenate([np.array(sample, dtype=np.float64) for sample in kept])

    def logged(self) -> Logged:
        """Replayed rewards, none of them used yet."""
        nothing = np.zeros(0, dtype=np.int64)
        if not self.traits.replays:
            return Logged(1, nothing, np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros((0, 2), dtype=np.int64))
        starts, rewards = self.samples
        n_agents, sizes = self.run.problem.n_agents, np.diff(starts)
        left = np.where(sizes > 0, sizes, np.iinfo(np.int32).max)[self.agents.arms].astype(np.int32)
        return Logged(n_agents, starts, rewards, left, np.zeros((n_agents * log_rows(self.run), 2), dtype=np.int64))

    def clocks(self, first: int, last: int) -> NDArray[np.float64]:
        """What the policies' clocks read in the rounds from `first` to before `last`: (rounds, clock parameters).

        Empty if kernels know that. A user's own clock is asked here, in Python, and need not compile.
        Blocks of rounds are kept for the other replicates, the latest of them.
        """
        kind = type(self.run.policies[0])
        if CLOCKS.get(kind.index) is kind.clock:
            return np.zeros((0, 0))
        blocks = range((first - 1) // CLOCK_BLOCK, (last - 2) // CLOCK_BLOCK + 1)
        rows = np.concatenate([self._clock_block(block) for block in blocks])
        begin = blocks[0] * CLOCK_BLOCK + 1
        return rows[first - begin : last - begin]

    @cached_property
    def _clock_block(self) -> Callable[[int], NDArray[np.float64]]:
        most_blocks = max(CLOCK_BLOCKS, CLOCK_BUDGET // (8 * CLOCK_BLOCK * len(self.clock_parameters)))
        return lru_cache(most_blocks)(self._make_clock_block)

    def _make_clock_block(self, block: int) -> NDArray[np.float64]:
        policy, lag = self.run.policies[0], self.run.rules.clock_lag
        # Before round `fewest + 1` every agent makes its first pulls, and no clock is read.
        fewest = int(np.diff(self.agents.offsets).min()) if not self.agents.n_skipped.any() else 1
        clocks = np.zeros((CLOCK_BLOCK, len(self.clock_parameters)))
        for step in range(CLOCK_BLOCK):
            t = block * CLOCK_BLOCK + step + 1
            if fewest < t <= self.run.horizon:
                age = self.run.memory.age(t - lag)
                clocks[step] = [policy.clock(age, parameter) for parameter in self.clock_parameters]
        return clocks


def packed_bytes(run: Run) -> float:
    """About how much memory a packed run takes, besides the problem's own arrays."""
    n_agents, n_slots, policy = run.problem.n_agents, len(run.problem.arm_indices), run.policies[0]
    of_slots = 8.0 + (8.0 if type(policy).index in CHOICES else 0.0) + (4.0 if policy.random else 0.0)
    return n_agents * (2.0 * run.problem.n_arms + 16.0) + of_slots * n_slots


def pack(run: Run) -> Packed:
    """Pack a run."""
    problem = run.problem
    n_agents, n_arms = problem.n_agents, problem.n_arms
    sizes = np.diff(problem.arm_offsets)
    owner = problem.owners.astype(np.int32)
    position = np.full((n_agents, n_arms), -1, dtype=np.int16)
    position[owner, problem.arm_indices] = np.arange(len(owner)) - np.repeat(problem.arm_offsets[:-1], sizes)
    parameters = np.array([policy.parameter for policy in run.policies], dtype=np.float64)
    clock_parameters, clock = np.unique(parameters, return_inverse=True)
    # Laws without a code are read from a tape that is made chunk by chunk.
    coded = [law.kernel if law.kernel is not None else (law.code, 0.0, 1.0) for law in problem.laws]
    arms = problem.arm_indices
    law_codes = problem.law_codes[arms]
    agents = Agents(
        offsets=problem.arm_offsets,
        arms=arms,
        position=position,
        best_means=problem.best_means if run.judged_by_laws else np.zeros(n_agents),
        sigmas=problem.sigmas,
        every=np.ascontiguousarray(run.every),
        clock=clock.astype(np.int32),
        parameter=parameters,
        law_code=np.array([code for code, _, _ in coded], dtype=np.int64),
        n_skipped=np.where([policy.first_pulls == "unknown" for policy in run.policies], sizes, 0).astype(np.int32),
        owners=owner if run.policies[0].random else np.zeros(0, dtype=np.int32),
        widths=widths_of(type(run.policies[0]).index, problem.sigmas[arms], law_codes),
        only_coins=bool((law_codes == BERNOULLI).all()),
    )
    holder_counts = np.bincount(problem.arm_indices, minlength=n_arms)
    network = problem.network
    return Packed(
        run=run,
        agents=agents,
        laws=Rows(
            np.array([problem.means]) if run.judged_by_laws else np.zeros((1, n_arms)),
            np.array([[a for _, a, _ in coded]], dtype=np.float64),
            np.array([[b for _, _, b in coded]], dtype=np.float64),
        ),
        clock_parameters=tuple(clock_parameters.tolist()),
        network=static_network(network) if isinstance(network, Links) else None,
        holder_starts=np.concatenate([[0], np.cumsum(holder_counts)]).astype(np.int64),
        traits=traits(run),
        most_arms=int(sizes.max()),
        most_degree=int(network.degrees.max()) if isinstance(network, Links) else n_agents,
    )


def static_network(links: Links) -> Network:
    """A static network as kernels read it: the one row 0 stands for all rounds."""
    return Network(True, 1, np.ascontiguousarray(links.indptr)[None, :], np.ascontiguousarray(links.indices))


def no_links() -> OnLinks:
    """Where nothing is counted by link."""
    return OnLinks(1, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def no_faults() -> layout.FaultRows:
    """Where nothing goes wrong."""
    return layout.FaultRows(
        loss=0.0,
        loss_k0=0,
        loss_k1=0,
        first_round=1,
        up=np.zeros((1, 0), dtype=np.int8),
        restart_starts=np.zeros(2, dtype=np.int64),
        restarts=np.zeros(0, dtype=np.int32),
    )
