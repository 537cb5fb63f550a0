"""One replicate of a compiled run: its state in arrays, advanced chunk by chunk.

What both ways of delivery share is here; `spreading` and `walking` are the two.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..arms.base import rewards_of
from ..draws import Draws
from ..networks.csr import Links as StaticLinks
from ..networks.dynamic import DynamicNetwork
from .kernels import layout
from .kernels.layout import EVERY_PULL, N_COUNTS, Chunk, Links, Messages, Pulls, State
from .kernels.special import Kernels
from .kernels.tapes import draw_tape
from .packing import Packed, no_links, static_network
from .run import Outcome
from .timeline import Row, Timeline, rounds_at_once
from .troubles import Troubles

#: The most memory that the rewards of a chunk of rounds may take, in bytes.
TAPE_BUDGET: Final = 2**26
#: The most rounds that are simulated in one go; also how many of a dynamic network are laid out at once.
LONGEST_CHUNK: Final = 4096
LONGEST_WINDOW: Final = 256


class Replicate:
    """What both ways of delivery share: pulls, rewards, records and links.

    Parameters
    ----------
    packed : Packed
        What all replicates share.
    kernels : Kernels
    replicate : int
        Which one.
    lookahead : int
        How many rounds beyond the current one the network must be known for.
    """

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, lookahead: int) -> None:
        run = packed.run
        self.packed = packed
        self.kernels = kernels
        self.t = 1
        draws = Draws(run.seed, replicate)
        self.rule = packed.rule(draws)
        self.keys = packed.keys(draws)
        self.tape = run.tape_of(replicate)
        n_agents, n_slots, width = run.problem.n_agents, len(packed.agents.arms), max(run.protocol.ttl, 1)
        n_sending = n_slots if self.rule.emission != EVERY_PULL else 0
        n_echoing = n_slots if self.rule.n_echoes > 0 else 0
        n_summed = n_slots if packed.traits.sends_sums or run.protocol.merges else 0
        self.state = State(
            counts=np.zeros(n_slots),
            totals=np.zeros(n_slots),
            pulls=np.zeros(n_slots, dtype=np.int32),
            n_pulls=np.zeros(n_agents, dtype=np.int32),
            next_round=np.ones(n_agents, dtype=np.int64),
            n_messages=np.zeros(n_sending, dtype=np.int32),
            sent_counts=np.zeros(n_sending, dtype=np.int32),
            sent_totals=np.zeros(n_summed),
            sent_rounds=np.zeros(n_echoing, dtype=np.int32),
            echoes_left=np.zeros(n_echoing, dtype=np.int8),
            own_totals=np.zeros(n_summed),
            forgotten_pulls=np.zeros(n_slots if packed.traits.forgets else 0, dtype=np.int32),
            scores=np.zeros(packed.most_arms),
        )
        self.known = packed.known()
        self.pulls = Pulls(
            slots=np.zeros(n_agents, dtype=np.int32),
            amounts=np.ones(n_agents),
            rewards=np.zeros(n_agents),
            is_best=np.zeros(n_agents, dtype=np.int8),
        )
        self.messages = Messages(
            slots=np.full((n_agents, width), -1, dtype=np.int32),
            amounts=np.zeros((n_agents, width)),
            rewards=np.zeros((n_agents, width)),
        )
        self.counts = np.zeros(N_COUNTS, dtype=np.int64)
        self._total_regret = 0.0
        self._total_sent = run.n_control
        self._n_records = 0
        self._regret = np.zeros(len(run.records))
        self._messages = np.zeros(len(run.records), dtype=np.int64)
        self._lookahead = lookahead
        self._troubles = Troubles(run, draws)
        self._timeline: Timeline | None = None
        self._finished: list[tuple[int, Row]] = []
        self._links = no_links()
        network = run.problem.network
        self._static = packed.network
        if run.protocol.ttl == 0 and not run.link_traffic:
            # Nothing travels, so the links do not matter.
            self._static = static_network(StaticLinks.from_pairs(n_agents, []))
        elif isinstance(network, DynamicNetwork):
            self._timeline = Timeline(
                network,
                draws,
                run.rules.births_first,
                run.horizon,
                counts_links=run.link_traffic,
                with_sets=packed.traits.sends_to_all and run.protocol.ttl > 1,
            )
        elif run.link_traffic:
            n_links = len(packed.network.indices) if packed.network else 0
            record_of = np.searchsorted(run.records, np.arange(1, run.horizon + 1))
            on_link = np.zeros(len(run.records) * n_links, dtype=np.int64)
            self._links = Links(1, record_of * n_links, on_link)
        self.longest_chunk = min(LONGEST_CHUNK, self._troubles.longest_chunk)
        if self._timeline is not None and isinstance(network, DynamicNetwork):
            self.longest_chunk = min(self.longest_chunk, rounds_at_once(network, LONGEST_WINDOW))
        if packed.traits.has_tape:
            self.longest_chunk = max(1, min(self.longest_chunk, TAPE_BUDGET // (8 * n_slots)))

    @staticmethod
    def shared_bytes(packed: Packed) -> float:
        """About how much memory the arrays of this class take."""
        n_agents, ttl = packed.run.problem.n_agents, packed.run.protocol.ttl
        each = 20.0 + (33.0 if packed.traits.sends_sums else 0.0)
        return each * len(packed.agents.arms) + n_agents * (33.0 + 20.0 * max(ttl, 1)) + 12.0 * packed.n_known

    def advance(self, last: int) -> None:
        """Simulate the rounds up to before `last`."""
        first = self.t
        if self._timeline is None:
            network, links = self._static, self._links
        else:
            network, links = self._timeline.window(last - 1 + self._lookahead)
        assert network is not None
        tape = self._tape_of(first, last) if self.packed.traits.has_tape else np.zeros((1, 0))
        chunk = Chunk(
            first=first,
            network=network,
            links=links,
            faults=self._troubles.window(first, last - 1 + self._lookahead),
            clocks=self.packed.clocks(first, last),
            has_tape=self.packed.traits.has_tape,
            tape=tape,
            codes=self._codes(tape),
            regret=np.zeros(last - first),
            sent=np.zeros(last - first, dtype=np.int64),
        )
        self._simulate(chunk, last)
        self._record(first, last, chunk.regret, chunk.sent)
        if self._timeline is not None:
            over = self._timeline.finish(last, links)
            self._finished += [item for item in over if self.packed.run.link_traffic]
        self.t = last

    def _simulate(self, chunk: Chunk, last: int) -> None:
        """Run the kernel from the chunk's first round to before `last`."""
        raise NotImplementedError

    def _codes(self, tape: NDArray[np.float64]) -> NDArray[np.int32]:
        """Which of its values each reward of a tape is, where that matters."""
        return np.zeros((1, 0), dtype=np.int32)

    def _tape_of(self, first: int, last: int) -> NDArray[np.float64]:
        """What each slot would pay in the rounds from `first` to before `last`."""
        packed, problem = self.packed, self.packed.run.problem
        owner = np.repeat(np.arange(problem.n_agents), np.diff(problem.arm_offsets))
        if self.tape is not None:
            return np.ascontiguousarray(self.tape[first - 1 : last - 1][:, owner, problem.arm_indices])
        uniforms = np.zeros((last - first, problem.n_agents))
        tape = np.zeros((last - first, len(owner)))
        draw_tape(first, packed.agents, self.keys, uniforms, tape)
        for arm, law in enumerate(problem.laws):
            if law.kernel is None:
                slots = packed.holder_slots[packed.holder_starts[arm] : packed.holder_starts[arm + 1]]
                tape[:, slots] = rewards_of(law, uniforms[:, owner[slots]])
        return tape

    def _record(self, first: int, last: int, regret: NDArray[np.float64], sent: NDArray[np.int64]) -> None:
        # Sums are accumulated one round after the other, as the reference engine does.
        total_regret = np.add.accumulate(np.concatenate([[self._total_regret], regret]))
        total_sent = self._total_sent + np.cumsum(sent)
        begin = self._n_records
        end = int(np.searchsorted(self.packed.run.records, last))
        recorded = self.packed.run.records[begin:end] - first
        self._regret[begin:end] = total_regret[recorded + 1]
        self._messages[begin:end] = total_sent[recorded]
        self._n_records = end
        self._total_regret, self._total_sent = float(total_regret[-1]), int(total_sent[-1])

    def close(self) -> Outcome:
        """What the replicate gave."""
        run, counts = self.packed.run, self.counts
        sent, delivered, lost = (int(counts[fate]) for fate in (layout.SENT, layout.DELIVERED, layout.LOST))
        traffic = [
            sent,
            delivered,
            sent - delivered - lost,
            *(int(counts[fate]) for fate in (layout.ABSORBED, layout.EXPIRED, layout.STOPPED)),
            *(int(counts[fate]) for fate in (layout.RELAYED, layout.QUEUED)),
            lost,
            0,
            run.n_control,
            int(counts[layout.LEARNED]),
            run.n_bytes(sent),
        ]
        pulls = self.state.pulls
        if len(self.state.forgotten_pulls):
            pulls = pulls + self.state.forgotten_pulls
        outcome = Outcome(self._regret, self._messages, np.array(traffic, dtype=np.int64), pulls)
        if run.link_traffic:
            outcome.links, outcome.link_traffic = self._link_arrays()
        return outcome

    def _link_arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        run = self.packed.run
        if self._timeline is None:
            assert self.packed.network is not None
            starts, receivers = self.packed.network.starts[0], self.packed.network.indices
            senders = np.repeat(np.arange(run.problem.n_agents, dtype=np.int32), np.diff(starts))
            return np.stack([senders, receivers], axis=1), self._links.on_link.reshape(len(run.records), -1)
        n_agents = run.problem.n_agents
        codes = [
            np.repeat(np.arange(n_agents, dtype=np.int64), np.diff(row.starts)) * n_agents + row.indices
            for _, row in self._finished
        ]
        union = np.unique(np.concatenate(codes))
        traffic = np.zeros((len(run.records), len(union)), dtype=np.int64)
        for (t, row), code in zip(self._finished, codes, strict=True):
            traffic[np.searchsorted(run.records, t), np.searchsorted(union, code)] += row.on_link
        return np.stack([union // n_agents, union % n_agents], axis=1).astype(np.int32), traffic
