"""Window: what was observed in the last rounds counts, and nothing before.

Rounds are put together in blocks, so that an agent keeps a count and a sum for each arm and block instead of every
observation. When a block begins, the one that falls out is cleared and the estimates are summed anew from those that
remain, oldest first; in between, what enters is added to its block and to the estimates.

A statistic is of one block: when a block begins, an agent's own counts begin at zero, and so does what it told. Of each
origin and arm a receiver keeps the latest of the newest block that it has heard of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import checks
from .estimates import Arms
from .memory import Memory, Recall

if TYPE_CHECKING:
    from ..protocols.messages import Message

LONGEST: Final = 2**31


class Recent(Recall):
    """What one agent keeps by `Window`; see `Recall`."""

    def __init__(self, arms: Arms, memory: Window) -> None:
        self._memory = memory
        super().__init__(arms)
        #: By position, and in it by block, oldest first: count and sum.
        self._blocks: list[dict[int, list[Any]]] = [{} for _ in arms.names]

    def begin(self, t: int) -> float:
        """Forget what falls out, if a block begins."""
        block, before, self.round = self._memory.block(t), self._memory.block(self.round), t
        if block == before:
            return 1
        oldest = block - self._memory.n_kept + 1
        for position, blocks in enumerate(self._blocks):
            self._blocks[position] = {one: blocks[one] for one in sorted(blocks) if one >= oldest}
            count, total = 0, 0.0
            for more, sum_of_more in self._blocks[position].values():
                count += more
                total += sum_of_more
            self.estimates.put(position, count, total)
            self.own_weight[position], self.own_total[position] = 0, 0.0
        self.known = {key: value for key, value in self.known.items() if value[2] >= oldest}
        return 0

    def _enter(self, position: int, block: int, count: int, total: float) -> None:
        kept = self._blocks[position].setdefault(block, [0, 0.0])
        kept[0] += count
        kept[1] += total
        self.estimates.add(position, count, total)

    def _counts(self, block: int) -> bool:
        return block > self._memory.block(self.round) - self._memory.n_kept

    def observe(self, position: int, reward: float, made: int) -> None:
        """Count a reward in the block of its pull, if that still counts; in statistics only in the block under way."""
        block = self._memory.block(made)
        if block == self._memory.block(self.round):
            self.own_weight[position] += 1
            self.own_total[position] += reward
        if self._counts(block):
            self._enter(position, block, 1, reward)

    def is_sound(self, count: Any, total: Any, made: Any, is_statistic: bool) -> bool:
        """Whether the round is one, and count and sum are possible."""
        return type(made) is int and 1 <= made <= self.round and super().is_sound(count, total, made, is_statistic)

    def hear(self, position: int, message: Message) -> tuple[int, float] | None:
        """Count an observation in the block of its round, if that still counts."""
        block = self._memory.block(message.round)
        if not self._counts(block):
            return None
        self._enter(position, block, message.n_pulls, message.total)
        return message.n_pulls, message.total

    def hear_sum(self, position: int, message: Message) -> tuple[int, float] | None:
        """Count what is new in a statistic of the newest block that was heard of, if that still counts."""
        count, total, block = message.n_pulls, message.total, self._memory.block(message.round)
        known, known_total, known_block = self.known.get((message.origin, message.arm), (0, 0.0, block))
        if block > known_block:
            known, known_total = 0, 0.0
        if block < known_block or count <= known or not self._counts(block):
            return None
        self.known[message.origin, message.arm] = count, total, block
        self._enter(position, block, count - known, total - known_total)
        return count - known, total - known_total

    @property
    def state(self) -> dict[str, Any]:
        """As of `Recall`, with all blocks."""
        blocks = [[[block, *kept] for block, kept in blocks.items()] for blocks in self._blocks]
        return {**super().state, "blocks": blocks}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        Recall.state.fset(self, value)  # type: ignore[attr-defined]
        self._blocks = [{block: [*kept] for block, *kept in blocks} for blocks in value["blocks"]]


@dataclass(frozen=True)
class Window(Memory):
    """What was observed in about the last `rounds` rounds counts, and nothing before.

    Parameters
    ----------
    rounds : int
        How many rounds count, the one under way among them.
    blocks : int
        About how many blocks they are divided into. More follow the window more closely, and take more memory; an
        emission of counts and sums, such as `Growth`, wants few, because it begins anew with each of them.

    Notes
    -----
    A block has `ceil(rounds / blocks)` rounds, and as many blocks count as it takes to hold `rounds`. A lone agent with
    `UCB(alpha=xi)` and `Window(tau + 1, blocks=tau + 1)` is SW-UCB of Garivier and Moulines, but for a clock that is
    one round ahead.

    Examples
    --------
    >>> import banditmesh as bm
    >>> policy = bm.KLUCB(memory=bm.Window(200))
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    >>> bm.simulate(problem, bm.FwA(4), policy=policy, horizon=50, seed=0, engine="reference").policy
    'klucb+window(200)'
    """

    rounds: int
    blocks: int = 16
    name: ClassVar[str] = "window"
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("rounds", "blocks"):
            given = checks.integer(name, getattr(self, name), at_least=1, at_most=LONGEST)
            object.__setattr__(self, name, given)

    @property
    def block_rounds(self) -> int:
        """How many rounds a block has."""
        return -(-self.rounds // self.blocks)

    @property
    def n_kept(self) -> int:
        """How many blocks count, that of the round under way among them."""
        return -(-self.rounds // self.block_rounds)

    def block(self, t: int) -> int:
        """Which block round `t` is in."""
        return (t - 1) // self.block_rounds

    def age(self, t: int) -> float:
        """How many rounds count."""
        return max(1, min(t, self.rounds))

    def stamp(self, message: Message) -> int:
        """The block."""
        return self.block(message.round)

    def recall(self, arms: Arms) -> Recent:
        """Counts and sums by block."""
        return Recent(arms, self)
