"""What the engines are given and what they give back: a validated run, and the outcome of each replicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arms.world import World
from ..draws import Draws
from ..errors import NetworkError
from ..faults import Faults, Lie
from ..policies.base import Policy
from ..policies.memory import Memory
from ..problem import Problem
from ..protocols.base import AnyProtocol, Protocol
from ..protocols.spanning import CONTROL_BYTES, Tree
from ..rules import Rules

#: What is counted of the traffic, in this order. sent = delivered + duplicate + lost, and each delivered copy is one
#: of absorbed, expired, stopped, relayed and queued. What a full link drops was not sent. Control messages, which some
#: protocols need to set themselves up, are counted apart from what is sent.
TRAFFIC: Final = (
    "sent",
    "delivered",
    "duplicate",
    "absorbed",
    "expired",
    "stopped",
    "relayed",
    "queued",
    "lost",
    "dropped",
    "control",
    "learned",
    "bytes",
)

#: Called with the number of rounds done and the number of rounds in all, over all replicates.
ProgressCallback: TypeAlias = Callable[[int, int], None]


class Event(NamedTuple):
    """The fate of one copy of a message: one transmission over one link in one round.

    `round` is the round in which it was sent, `sequence` that in which the message was made (on a tree, how many the
    link had carried), `ttl` how many hops remained when it was sent, and `fate` one of duplicate, lost, absorbed,
    expired, stopped, relayed and queued. `learned` says whether it changed what the receiver knows. `arrival` is the
    round in which it arrived, or would have if it was lost, and `reward` what it said then: the sum of `n_pulls`
    rewards (by a memory that discounts, of as many as weigh the same in the round of sending). `message` is the same
    text for all copies of a message, and for no others of the replicate. Agents and arms are given by name.
    """

    replicate: int
    round: int
    origin: object
    sequence: int
    arm: object
    reward: float
    sender: object
    receiver: object
    ttl: int
    fate: str
    learned: bool
    arrival: int
    n_pulls: float
    message: str


@dataclass(frozen=True, eq=False)
class Run:
    """A validated simulation: everything an engine needs, and nothing that it must check again.

    Attributes
    ----------
    policies : tuple of Policy
        One for each agent.
    every : int array (agents,)
        Agent v pulls in rounds t with (t - 1) % every[v] == 0.
    tape : float array (1 or replicates, horizon, agents, arms) or None
        What each pull would pay; drawn from the arms' laws if None.
    means : float array (1 or replicates, 1 or horizon, arms) or None
        What arms pay on average, which regret is judged by: for all rounds or for each; by the arms' laws if None.
    records : int array
        The rounds whose cumulative values are kept, ascending; the last is the horizon.
    trace : bool or callable
        Whether every copy's fate is kept, or what it is handed to.
    faults : Faults or None
        What goes wrong; None, never a value of which nothing strikes, if all goes well.
    agents : bool
        Whether each agent's regret is kept over time.
    first : int
        The number of the first replicate, by which it draws.
    liars : mapping from int to Lie
        Who lies among the agents, by number, and how; their regret is left out of sums.
    trim : int
        How many liars agents withstand, see `core/trimming.py`.
    """

    problem: Problem
    protocol: AnyProtocol
    policies: tuple[Policy, ...]
    rules: Rules
    horizon: int
    replicates: int
    seed: int
    every: NDArray[np.int64]
    records: NDArray[np.int64]
    tape: NDArray[np.float64] | None = None
    link_traffic: bool = False
    trace: bool | Callable[[Event], object] = False
    faults: Faults | None = None
    agents: bool = False
    means: NDArray[np.float64] | None = None
    first: int = 0
    liars: Mapping[int, Lie] = field(default_factory=dict)
    trim: int = 0

    @cached_property
    def plan(self) -> Any:
        """What all agents share, as the protocol has planned it."""
        return self.protocol.plan(self.problem)

    @property
    def tree(self) -> Tree | None:
        """The spanning tree that the protocol merges statistics along, if that is its plan."""
        return self.plan if isinstance(self.plan, Tree) else None

    @property
    def relaying(self) -> Protocol | None:
        """The protocol, if its agents relay messages hop by hop, by its rule and nothing else."""
        return self.protocol if isinstance(self.protocol, Protocol) and self.protocol.relays_by_rule else None

    @property
    def memory(self) -> Memory:
        """What agents forget; all have the same memory."""
        return self.policies[0].memory

    @property
    def sends_statistics(self) -> bool:
        """Whether messages hold an agent's count and sum, instead of one observation."""
        return self.protocol.sends_messages and (self.protocol.emission.cumulative or self.tree is not None)

    @property
    def stamp_bytes(self) -> int:
        """What messages have beyond the protocol's size: the round of a statistic that will be forgotten by it."""
        return 8 if self.memory.forgets and self.sends_statistics else 0

    @cached_property
    def n_control(self) -> int:
        """How many control messages the protocol needs, all in the first round."""
        return self.protocol.n_control(self.plan)

    @property
    def control_bytes(self) -> int:
        """Payload of the control messages."""
        return self.n_control * CONTROL_BYTES

    def tape_of(self, replicate: int) -> NDArray[np.float64] | None:
        """The replicate's tape, (horizon, agents, arms)."""
        if self.tape is None:
            return None
        tape: NDArray[np.float64] = self.tape[replicate if len(self.tape) > 1 else 0]
        return tape

    @property
    def means_change(self) -> bool:
        """Whether the means that regret is judged by may differ from round to round."""
        return self.problem.changes if self.means is None else self.means.shape[1] > 1

    @property
    def judged_by_laws(self) -> bool:
        """Whether regret is judged by laws that do not change, so that it is pulls times the problem's gaps."""
        return self.means is None and not self.problem.changes

    def draws(self, replicate: int) -> Draws:
        """The draws of a replicate."""
        return Draws(self.seed, self.first + replicate)

    def world(self, replicate: int) -> World:
        """What arms pay in a replicate, round by round; the latest one is kept."""
        if replicate not in self._worlds:
            self._worlds.clear()
            self._worlds[replicate] = World(self.problem.laws, self.draws(replicate))
        return self._worlds[replicate]

    @cached_property
    def _worlds(self) -> dict[int, World]:
        return {}

    def means_in(self, replicate: int, t: int) -> NDArray[np.float64]:
        """The means that regret is judged by in round `t` of a replicate: (arms,)."""
        if self.judged_by_laws:
            return self.problem.means
        if self.means is None:
            return self.world(replicate).means(t)
        means: NDArray[np.float64] = self.means[replicate if len(self.means) > 1 else 0]
        row: NDArray[np.float64] = means[t - 1 if len(means) > 1 else 0]
        return row

    def best_in(self, replicate: int, t: int) -> NDArray[np.float64]:
        """For each agent the best of these means in its arm set."""
        if self.judged_by_laws:
            return self.problem.best_means
        held = self.means_in(replicate, t)[self.problem.arm_indices]
        best: NDArray[np.float64] = np.maximum.reduceat(held, self.problem.arm_offsets[:-1])
        return best

    def gaps_in(self, replicate: int, t: int) -> NDArray[np.float64]:
        """How much less each agent's arms pay than its best, laid out as the problem's `arm_indices`."""
        if self.judged_by_laws:
            return self.problem.arm_gaps
        best = np.repeat(self.best_in(replicate, t), np.diff(self.problem.arm_offsets))
        gaps: NDArray[np.float64] = best - self.means_in(replicate, t)[self.problem.arm_indices]
        return gaps


def ended_early(horizon: int, n_rounds: int) -> NetworkError:
    """The error for a dynamic network that does not last for the whole run."""
    return NetworkError(
        f"the network must last for all {horizon} rounds, got {n_rounds}; give more rounds or shorten the horizon"
    )


@dataclass
class Outcome:
    """What one replicate gave.

    Attributes
    ----------
    regret, transmissions : arrays (records,)
        Cumulative group regret, without that of liars, and cumulative transmissions.
    traffic : int array
        Totals in the order of `TRAFFIC`.
    pulls : int array
        Pull counts, laid out as the problem's `arm_indices`.
    links : int array (links, 2)
        The directed links that were ever up, sorted; empty unless link traffic was asked for.
    link_traffic : int array (records, links) or None
        Transmissions on each link since the record before.
    agent_regret : float array (records, agents) or None
        Each agent's regret up to each recorded round.
    last_agent_regret : float array (agents,) or None
        Each agent's regret at the horizon, of runs whose regret is not judged by laws that do not change.
    changes : int array
        The rounds in which arms jumped, the first 1,000 of them; empty if none did.
    """

    regret: NDArray[np.float64]
    transmissions: NDArray[np.int64]
    traffic: NDArray[np.int64]
    pulls: NDArray[np.int32]
    links: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    link_traffic: NDArray[np.int64] | None = None
    trace: list[Event] = field(default_factory=list)
    agent_regret: NDArray[np.float64] | None = None
    last_agent_regret: NDArray[np.float64] | None = None
    changes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class AgentRegret:
    """Each agent's regret, the same sum for every engine and any round.

    It is pulls times gaps; where means change from round to round, it is added up pull by pull.

    Parameters
    ----------
    run : Run
    replicate : int
        Which one.

    Attributes
    ----------
    added : float array (agents,) or (0,)
        What is added up pull by pull, by whoever pulls; empty where means do not change.
    """

    def __init__(self, run: Run, replicate: int) -> None:
        self._run, self._replicate = run, replicate
        self.added = np.zeros(run.problem.n_agents if run.means_change else 0)

    @cached_property
    def _gaps(self) -> NDArray[np.float64]:
        # Not before they are needed: of large networks they take much memory.
        return self._run.gaps_in(self._replicate, 1)

    def after(self, pulls: NDArray[Any]) -> NDArray[np.float64]:
        """Each agent's regret after these pulls, by slot."""
        return self.added.copy() if len(self.added) else agent_regret(self._run.problem.arm_offsets, self._gaps, pulls)


def agent_regret(offsets: NDArray[np.int64], gaps: NDArray[np.float64], pulls: NDArray[Any]) -> NDArray[np.float64]:
    """Each agent's regret, (..., agents), after these pulls, (..., slots), of arms with these gaps."""
    regret: NDArray[np.float64] = np.add.reduceat(pulls * gaps, offsets[:-1], axis=-1)
    return regret
