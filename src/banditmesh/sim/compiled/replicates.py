"""One replicate of a compiled run: its state in arrays, advanced chunk by chunk.

What all ways of delivery share is here; `quiet`, `spreading`, `walking` and `merging` are the four.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...arms import Replay
from ...arms.base import rewards_of
from ...arms.changing import Rows
from ...arms.world import World
from ...networks.dynamic import DynamicNetwork
from ...policies.window import Window
from ...protocols.emission import EveryPull
from ..expected_links import links_ever_up
from ..run import AgentRegret, Outcome, Run
from ..watching import Curve
from .crew import Stop
from .kernels import fate
from .kernels.choices import first_tangents, looks_again, needs_tangents
from .kernels.lanes import LANES, room_for
from .kernels.layout import EVERY_PULL, N_AGAIN, N_SCORES, Arrays, Chunk, Messages, OnLinks, Plan, Pulls, State, Waiting
from .kernels.special import Kernels
from .kernels.tapes import draw_tape
from .kernels.worlds import walk_means
from .linkcounts import LinkCounts
from .outages import WINDOW_BUDGET as OUTAGE_BUDGET
from .outages import OutageWindow
from .packing import Packed, log_rows, no_links
from .plans import Outline
from .timeline import Timeline, rounds_at_once, row_bytes

#: The most memory that the rewards of a chunk of rounds may take, in bytes.
TAPE_BUDGET: Final = 2**22
#: And that what arms pay in these rounds may take.
WORLD_BUDGET: Final = 2**22
#: And that is noted of the messages made in them, where it is counted which links they take.
MADE_BUDGET: Final = 2**22
#: How many rewards Python draws before anything else is looked at.
SLOTS_AT_ONCE: Final = 2**14
#: The most rounds that are simulated in one go; also how many of a dynamic network are laid out at once.
LONGEST_CHUNK: Final = 4096
LONGEST_WINDOW: Final = 256


def make_messages(n_agents: int, n_rows: int) -> Messages:
    """Room for the messages of `n_rows` rounds."""
    return Messages(
        slots=np.full((n_agents, n_rows), -1, dtype=np.int32),
        amounts=np.zeros((n_agents, n_rows)),
        rewards=np.zeros((n_agents, n_rows)),
    )


def make_waiting(n_places: int) -> Waiting:
    """Room for `n_places` additions."""
    return Waiting(np.zeros(n_places, dtype=np.uint64), np.zeros((n_places, 2)))


def own_workspace(state: State) -> State:
    """The same state for another thread, which has other agents: what is no agent's is its own."""
    return replace(
        state,
        scores=np.zeros_like(state.scores),
        again=state.again.copy(),
        again_pairs=state.again_pairs.copy(),
        clocks=np.zeros_like(state.clocks),
        now=state.now.copy(),
        waiting=make_waiting(len(state.waiting.slots)),
        ahead=replace(state.ahead, first=state.ahead.first.copy()),
    )


class Replicate:
    """What all ways of delivery share: pulls, rewards, records and links.

    Parameters
    ----------
    packed : Packed
        What all replicates share.
    kernels : Kernels
    replicate : int
        Which one.
    plan : Plan or None
        Where messages go, if that was planned.
    stop : Stop
        Whether to give up, by raising `Stopped`.
    lookahead : int
        How many rounds beyond the current one the network must be known for.
    """

    def __init__(
        self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop, lookahead: int = 0
    ) -> None:
        run = packed.run
        self._replicate = replicate
        if not run.judged_by_laws and not run.means_change:
            agents = replace(packed.agents, best_means=run.best_in(replicate, 1))
            packed = replace(packed, agents=agents, laws=packed.laws._replace(means=run.means_in(replicate, 1)[None]))
        self.packed = packed
        self.kernels = kernels
        self.stop = stop
        self.t = 1
        draws = run.draws(replicate)
        self._world = World(run.problem.laws, draws, walk_means) if run.problem.changes else None
        self._of_agents = AgentRegret(run, replicate)
        self.rule = packed.rule(draws)
        self.keys = packed.keys(draws)
        self.holders = packed.holders(with_slots=False)
        self.tape = run.tape_of(replicate)
        n_agents, n_slots, width = run.problem.n_agents, len(packed.agents.arms), max(packed.traits.reach, 1)
        n_sending = n_slots if self.rule.emission != EVERY_PULL else 0
        n_echoing = n_slots if self.rule.n_echoes > 0 else 0
        n_summed = n_slots if packed.traits.sends_sums or run.tree is not None else 0
        n_weighed = n_summed if run.memory.forgets else 0
        index = type(run.policies[0]).index
        sums, room = np.zeros((n_slots, 2)), min(room_for(packed.most_arms), -(-n_slots // LANES) * LANES)
        n_again = room if looks_again(index) else 0
        self.state = State(
            sums=sums,
            pairs=sums.reshape(-1),
            pulls=np.zeros(n_slots, dtype=np.int32),
            n_pulls=packed.agents.n_skipped.copy(),
            next_round=np.ones(n_agents, dtype=np.int64),
            n_messages=np.zeros(n_sending, dtype=np.int32),
            sent_counts=np.zeros(n_sending, dtype=np.int32),
            sent_totals=np.zeros(n_summed),
            sent_rounds=np.zeros(n_echoing, dtype=np.int32),
            echoes_left=np.zeros(n_echoing, dtype=np.int8),
            own_totals=np.zeros(n_summed),
            own_weights=np.zeros(n_weighed),
            sent_weights=np.zeros(n_weighed),
            blocks=np.zeros((n_slots if self.keys.n_blocks else 0, self.keys.n_blocks, 2)),
            forgotten_pulls=np.zeros(n_slots if packed.traits.forgets else 0, dtype=np.int32),
            agent_regret=self._of_agents.added,
            scores=np.zeros((N_SCORES, room)),
            again=np.full((N_AGAIN, n_again), 0.5),
            again_pairs=np.ones(2 * n_again),
            tangents=first_tangents(index, n_slots),
            clocks=np.zeros(len(packed.clock_parameters)),
            now=np.ones(4),
            waiting=make_waiting(0),
            ahead=packed.ahead(),
            logged=packed.logged(),
        )
        self.known = packed.known()
        self.pulls = Pulls(
            first=0,
            last=n_agents,
            slots=np.zeros(n_agents, dtype=np.int32),
            amounts=np.ones(n_agents),
            rewards=np.zeros(n_agents),
            is_best=np.zeros(n_agents, dtype=np.int8),
            gaps=np.zeros(n_agents),
        )
        self.messages = make_messages(n_agents, width)
        self.counts = np.zeros(fate.N_COUNTS, dtype=np.int64)
        self._total_regret = 0.0
        self._total_sent = run.n_control
        self.curve = Curve(len(run.records))
        self._agent_regret = np.zeros((len(run.records), n_agents)) if run.agents else None
        self._lookahead = lookahead
        self._outages = OutageWindow(run, draws, stop)
        self._timeline: Timeline | None = None
        self._link_counts = LinkCounts(n_agents, run.records)
        self._on_link = np.zeros(0, dtype=np.int64)
        #: Whether it is noted which messages are made, so that it can be counted which links they take.
        self._notes_made = plan is not None and len(plan.ways.ends) > 0
        network = run.problem.network
        self._static = packed.network
        if run.protocol.most_hops == 0 and not run.link_traffic:
            # Nothing travels, so the links do not matter.
            self._static = packed.no_network
        elif isinstance(network, DynamicNetwork):
            self._timeline = Timeline(
                network,
                draws,
                run.rules.births_first,
                run.horizon,
                counts_links=run.link_traffic,
                stop=stop,
            )
        elif run.link_traffic:
            assert packed.network is not None
            self._on_link = np.zeros(len(run.records) * len(packed.network.indices), dtype=np.int64)
        self.longest_chunk = min(_longest_chunk(run), self._outages.longest_chunk)
        if self._timeline is not None:
            self.longest_chunk = min(self.longest_chunk, rounds_at_once(_row_bytes(packed), LONGEST_WINDOW))
        if self._notes_made:
            self.longest_chunk = max(1, min(self.longest_chunk, MADE_BUDGET // (4 * n_agents)))
        if packed.traits.has_tape:
            self.longest_chunk = max(1, min(self.longest_chunk, TAPE_BUDGET // (8 * n_slots)))

    @property
    def arrays(self) -> Arrays:
        """What kernels that simulate rounds are given."""
        run = (self.packed.agents, self.holders, self.rule, self.keys)
        return Arrays(*run, self.state, self.known, self.pulls, self.messages, self.counts)

    @staticmethod
    def needed_bytes(packed: Packed, outlined: Outline | None, stop: Stop) -> float:
        """About how much memory one replicate takes: here, the arrays of this class."""
        run, traits = packed.run, packed.traits
        n_agents, n_slots = run.problem.n_agents, len(packed.agents.arms)
        emission = run.protocol.emission
        of_slots = 20.0 + (8.0 if type(emission) is not EveryPull else 0.0) + (5.0 if emission.n_echoes else 0.0)
        of_slots += (16.0 if traits.sends_sums or run.tree is not None else 0.0) + (4.0 if traits.forgets else 0.0)
        of_slots += 16.0 if run.memory.forgets and (traits.sends_sums or run.tree is not None) else 0.0
        of_slots += 16.0 * run.memory.n_kept if isinstance(run.memory, Window) else 0.0
        of_slots += 24.0 if needs_tangents(type(run.policies[0]).index) else 0.0
        n_bytes = of_slots * n_slots + n_agents * (53.0 + 20.0 * traits.reach) + 12.0 * packed.n_known
        n_bytes += 16.0 * n_agents * packed.n_ahead
        if traits.replays:
            n_bytes += 4.0 * n_slots + 16.0 * n_agents * log_rows(run)
        if run.means_change:
            # What arms pay in a chunk, twice while it is put together, and each agent's regret.
            n_bytes += 48.0 * run.problem.n_arms * _longest_chunk(run) + 8.0 * n_agents
        if traits.has_tape:
            # Rewards of a chunk, what values they are where that matters, and the numbers they are drawn from.
            n_rounds = max(1, min(LONGEST_CHUNK, run.horizon, TAPE_BUDGET // (8 * n_slots)))
            n_bytes += n_rounds * ((12.0 if traits.walks else 8.0) * n_slots + 8.0 * n_agents)
        return n_bytes + _window_bytes(packed)

    def advance(self, last: int) -> None:
        """Simulate the rounds up to before `last`."""
        first, chunk = self.t, self._chunk(self.t, last)
        self._simulate(chunk, last)
        self._record(first, last, chunk.regret, chunk.sent)
        if self._timeline is not None:
            for t, row in self._timeline.finish(last, chunk.links):
                if self.packed.run.link_traffic:
                    self._link_counts.add(t, row.starts[0], row.indices, row.on_link)
        self.t = last

    def _laws(self, first: int, last: int) -> Rows:
        """By arm and round, the means that regret is judged by, and the numbers of the laws; a single row if fixed."""
        run = self.packed.run
        laws = self.packed.laws if self._world is None else self._world.rows(first, last)
        if run.means is None or not run.means_change:
            return laws
        given = run.means[self._replicate if len(run.means) > 1 else 0]
        return laws._replace(means=np.ascontiguousarray(given[first - 1 : last - 1]))

    def _chunk(self, first: int, last: int) -> Chunk:
        """What the rounds from `first` to before `last` are given."""
        if self._timeline is None:
            network, links = self._static, self._static_links(first, last - 1 + self._lookahead)
        else:
            network, links = self._timeline.window(last - 1 + self._lookahead)
        assert network is not None
        laws = self._laws(first, last)
        tape = self._tape_of(first, last, laws) if self.packed.traits.has_tape else np.zeros((1, 0))
        n_made = last - first if self._notes_made else 0
        return Chunk(
            first=first,
            network=network,
            links=links,
            faults=self._outages.window(first, last - 1 + self._lookahead),
            means_change=self.packed.run.means_change,
            means=laws.means,
            law_a=laws.a,
            law_b=laws.b,
            clocks=self.packed.clocks(first, last),
            has_tape=self.packed.traits.has_tape,
            tape=tape,
            codes=self._codes(tape),
            stop=self.stop.flag,
            regret=np.zeros(last - first),
            sent=np.zeros(last - first, dtype=np.int64),
            made=np.empty((n_made, self.packed.run.problem.n_agents), dtype=np.int32),
        )

    def _static_links(self, first: int, last: int) -> OnLinks:
        """Where transmissions of the rounds from `first` to `last` are counted, on a static network."""
        if not len(self._on_link):
            return no_links()
        records, rounds = self.packed.run.records, np.arange(first, min(last, self.packed.run.horizon) + 1)
        return OnLinks(first, np.searchsorted(records, rounds) * (len(self._on_link) // len(records)), self._on_link)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        """Run the kernel from the chunk's first round to before `last`."""
        raise NotImplementedError

    def _codes(self, tape: NDArray[np.float64]) -> NDArray[np.int32]:
        """Which of its values each reward of a tape is, where that matters."""
        return np.zeros((1, 0), dtype=np.int32)

    def _tape_of(self, first: int, last: int, laws: Rows) -> NDArray[np.float64]:
        """What each slot would pay in the rounds from `first` to before `last`."""
        packed, problem = self.packed, self.packed.run.problem
        owner = problem.owners
        if self.tape is not None:
            return np.ascontiguousarray(self.tape[first - 1 : last - 1][:, owner, problem.arm_indices])
        uniforms = np.zeros((last - first, problem.n_agents))
        tape = np.zeros((last - first, len(owner)))
        draw_tape(first, packed.agents, laws.a, laws.b, self.keys, self.stop.flag, uniforms, tape)
        for arm, law in enumerate(problem.laws):
            if law.kernel is None and not isinstance(law, Replay):
                slots = packed.holder_slots[packed.holder_starts[arm] : packed.holder_starts[arm + 1]]
                for t, row, us in zip(range(first, last), tape, uniforms, strict=True):
                    for some in np.array_split(slots, -(-len(slots) // SLOTS_AT_ONCE)):
                        self.stop.check()
                        row[some] = rewards_of(law.at(t), us[owner[some]])
        return tape

    def _record(self, first: int, last: int, regret: NDArray[np.float64], sent: NDArray[np.int64]) -> None:
        # Sums are accumulated one round after the other, as the reference engine does.
        total_regret = np.add.accumulate(np.concatenate([[self._total_regret], regret]))
        total_sent = self._total_sent + np.cumsum(sent)
        begin = self.curve.n_known
        end = int(np.searchsorted(self.packed.run.records, last))
        recorded = self.packed.run.records[begin:end] - first
        self.curve.regret[begin:end] = total_regret[recorded + 1]
        self.curve.transmissions[begin:end] = total_sent[recorded]
        if self._agent_regret is not None and end > begin:
            # Each record ends a chunk, see `end_of_chunk`.
            self._agent_regret[begin] = self._of_agents.after(self._all_pulls())
        self.curve.n_known = end
        self._total_regret, self._total_sent = float(total_regret[-1]), int(total_sent[-1])

    def end_of_chunk(self, n_rounds: int) -> int:
        """The round before which a chunk of about `n_rounds` ends: at the next record, if agents are recorded."""
        run = self.packed.run
        last = min(self.t + min(n_rounds, self.longest_chunk), run.horizon + 1)
        if self._world is not None:
            last = min(last, self._world.end_of_block(self.t))
        return min(last, int(run.records[self.curve.n_known]) + 1) if run.agents else last

    def _all_pulls(self) -> NDArray[np.int32]:
        """Pull counts so far, also those that agents have forgotten."""
        forgotten = self.state.forgotten_pulls
        return self.state.pulls + forgotten if len(forgotten) else self.state.pulls

    def close(self) -> Outcome:
        """What the replicate gave."""
        run, counts = self.packed.run, self.counts
        sent, delivered, lost = counts[[fate.SENT, fate.DELIVERED, fate.LOST]].tolist()
        traffic = [
            sent,
            delivered,
            sent - delivered - lost,
            *counts[[fate.ABSORBED, fate.EXPIRED, fate.STOPPED, fate.RELAYED, fate.QUEUED]].tolist(),
            lost,
            0,
            run.n_control,
            int(counts[fate.HEARD] - counts[fate.STALE]),
            sent * (run.protocol.n_bytes + run.stamp_bytes) + run.control_bytes,
        ]
        outcome = Outcome(
            self.curve.regret, self.curve.transmissions, np.array(traffic, dtype=np.int64), self._all_pulls()
        )
        outcome.agent_regret = self._agent_regret
        if not run.judged_by_laws:
            outcome.last_agent_regret = self._of_agents.after(outcome.pulls)
        if self._world is not None:
            outcome.changes = self._world.changes(run.horizon)
        if run.link_traffic:
            outcome.links, outcome.link_traffic = self._link_arrays()
        return outcome

    def _link_arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        run = self.packed.run
        if self._timeline is None:
            assert self.packed.network is not None
            starts, receivers = self.packed.network.starts[0], self.packed.network.indices
            senders = np.repeat(np.arange(run.problem.n_agents, dtype=np.int32), np.diff(starts))
            return np.stack([senders, receivers], axis=1), self._on_link.reshape(len(run.records), -1)
        return self._link_counts.arrays()


def _longest_chunk(run: Run) -> int:
    """The most rounds of a chunk: fewer if what arms pay in them takes much room."""
    return min(LONGEST_CHUNK, max(1, WORLD_BUDGET // (24 * run.problem.n_arms))) if run.means_change else LONGEST_CHUNK


def _row_bytes(packed: Packed) -> float:
    """About how much memory a round of the run's dynamic network takes."""
    network = packed.run.problem.network
    assert isinstance(network, DynamicNetwork)
    return row_bytes(network, packed.run.link_traffic)


def _window_bytes(packed: Packed) -> float:
    """About how much memory the rounds that are laid out at once take, of outages and of a dynamic network."""
    run, reach, n_bytes = packed.run, packed.traits.reach, 0.0
    if run.faults is not None and run.faults.outages is not None:
        n_rounds = min(LONGEST_CHUNK, run.horizon, OUTAGE_BUDGET // run.problem.n_agents) + reach
        n_bytes += 3.0 * n_rounds * run.problem.n_agents
    if run.problem.is_dynamic and (run.protocol.most_hops > 0 or run.link_traffic):
        row = _row_bytes(packed)
        n_bytes += 2.0 * row * (min(rounds_at_once(row, LONGEST_WINDOW), run.horizon) + reach)
        if run.link_traffic:
            assert isinstance(run.problem.network, DynamicNetwork)
            # Each record's links and counts, and as much again while all links are found; one record is being summed.
            each = links_ever_up(run.problem.network, -(-run.horizon // len(run.records)))
            n_bytes += 32.0 * len(run.records) * each + 96.0 * each
    return n_bytes
