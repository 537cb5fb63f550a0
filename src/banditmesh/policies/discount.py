"""Discount: an observation counts gamma times as much with every round that passes.

With r = -log2(gamma), an observation of round s has the weight 2^(r s) for good. That would soon be too large a number
to write down, so it is written in the *scale* of a round: E(s) = 32 floor(r s / 32), and w(s) = 2^(r s - E(s)) lies
between 1 and about 2^32. Stored weights and sums are in the scale of the round under way. Where E changes, all of them
are multiplied by a power of two, which is exact; a weight that is then below `FLOOR` becomes 0, and its sum too. So a
weight is 0 or at least `FLOOR`, nothing is divided by 0, no weight is subnormal, and a weight of 0 alone means that
nothing is known.

`exp`, `expm1`, `log`, `floor` and `ldexp` have equal bits in Python and compiled; `pow` and `**` do not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import checks
from ..errors import InputError
from .estimates import Arms, Estimates
from .memory import MAX_PULLS, MAX_TOLD, Memory, Recall

if TYPE_CHECKING:
    from ..protocols.messages import Message

#: Weights below this, in the scale of the round under way, are none.
FLOOR: Final = math.ldexp(1.0, -256)
#: Scales are this many powers of two apart.
STEP: Final = 32
LEAST_GAMMA: Final = 0.5
MAX_GAMMA: Final = 1.0 - 1e-12


def scale_of(t: int, rate: float) -> int:
    """E(t): the power of two that weights of round `t` are written in."""
    return STEP * math.floor(rate * t / STEP)


def weight_of(t: int, rate: float) -> float:
    """w(t): the weight of an observation of round `t`, in its own scale."""
    return math.exp(math.log(2.0) * (rate * t - STEP * math.floor(rate * t / STEP)))


def discounted_age(t: int, gamma: float) -> float:
    """1 + gamma + gamma^2 + ..., `t` terms; at least 1."""
    age = math.expm1(t * math.log(gamma)) / (gamma - 1.0)
    return age if age > 1.0 else 1.0


def faded(weight: float, total: float, factor: float) -> tuple[float, float]:
    """A weight and its sum in a later scale."""
    weight *= factor
    return (weight, total * factor) if weight >= FLOOR else (0.0, 0.0)


class FadingEstimates(Estimates):
    """Estimates whose counts are sums of weights: `weight` and `total` are in the scale of the round under way.

    Parameters
    ----------
    sigmas, laws : list
        As of `Estimates`.
    unit : float
        What an observation of the round under way weighs.
    """

    def __init__(self, sigmas: list[float], laws: list[int], unit: float = 1.0) -> None:
        super().__init__(sigmas, laws)
        self.weight = [0.0] * len(sigmas)
        self._unit = unit

    def fade(self, factor: float) -> None:
        """Weights and sums go over to a later scale."""
        for position, weight in enumerate(self.weight):
            self.weight[position], self.total[position] = faded(weight, self.total[position], factor)

    def read(self, unit: float) -> None:
        """From now on an observation of the round under way weighs this."""
        self._unit = unit
        inverse, root = 1.0 / unit, math.sqrt(unit)
        for position, weight in enumerate(self.weight):
            self._read(position, weight, inverse, root)

    def _read(self, position: int, weight: float, inverse: float, root: float) -> None:
        self.count[position] = weight * inverse if weight else 0
        self.mean[position] = self.total[position] / weight if weight else 0.0
        self.inv_root[position] = (1.0 / math.sqrt(weight)) * root if weight else 0.0

    def enter(self, position: int, weight: float, total: float) -> None:
        """Add to an arm's weight and sum."""
        self.weight[position] += weight
        self.total[position] += total
        self._read(position, self.weight[position], 1.0 / self._unit, math.sqrt(self._unit))

    def add_all(self, parts: Collection[tuple[int, int, float]]) -> None:
        """Not for weights: a driver that keeps counts and sums by itself keeps everything."""
        raise InputError("a driver that keeps counts by itself needs the memory Everything(), got Discount")

    def part(self, positions: Sequence[int]) -> FadingEstimates:
        """What is known of some of the arms, in this order."""
        part = FadingEstimates([self.sigma[one] for one in positions], [self.law[one] for one in positions], self._unit)
        part.state = {name: [values[one] for one in positions] for name, values in self.state.items()}
        return part

    @property
    def state(self) -> dict[str, list[Any]]:
        """All that changes but for the unit, which the round decides."""
        return {"weight": self.weight, "total": self.total}

    @state.setter
    def state(self, value: dict[str, list[Any]]) -> None:
        self.weight, self.total = value["weight"], value["total"]
        self.read(self._unit)


class Fading(Recall):
    """What one agent keeps by `Discount`; see `Recall`. All weights are in the scale of the round under way."""

    estimates: FadingEstimates

    def __init__(self, arms: Arms, rate: float) -> None:
        self._rate = rate
        super().__init__(arms)
        self.own_weight = [0.0] * len(arms.names)

    def _estimates(self, arms: Arms) -> FadingEstimates:
        return FadingEstimates(list(arms.sigmas), list(arms.laws))

    def begin(self, t: int) -> float:
        """Go over to the scale of round `t`, if it is another."""
        factor = math.ldexp(1.0, scale_of(self.round, self._rate) - scale_of(t, self._rate))
        if factor < 1.0:
            for position, weight in enumerate(self.own_weight):
                self.own_weight[position], self.own_total[position] = faded(weight, self.own_total[position], factor)
            known = ((key, faded(weight, total, factor)) for key, (weight, total) in self.known.items())
            self.known = {key: statistic for key, statistic in known if statistic[0]}
            self.estimates.fade(factor)
        self.round = t
        self.estimates.read(weight_of(t, self._rate))
        return factor

    def observe(self, position: int, reward: float, made: int) -> None:
        """Count a reward with the weight of the round of its pull, unless that is none by now."""
        unit = weight_of(made, self._rate)
        weight, total = self._now(unit, unit * reward, made)
        if weight >= FLOOR:
            self.own_weight[position] += weight
            self.own_total[position] += total
            self.estimates.enter(position, weight, total)

    def is_sound(self, count: Any, total: Any, made: Any, is_statistic: bool) -> bool:
        """Whether the round is one, and weight and sum are possible in it."""
        if type(made) is not int or not 1 <= made <= self.round:
            return False
        if not is_statistic:
            return super().is_sound(count, total, made, is_statistic)
        return (
            type(count) is float
            and 0.0 < count <= MAX_PULLS * weight_of(made, self._rate)
            and -MAX_TOLD * count <= total <= MAX_TOLD * count
        )

    def _now(self, weight: float, total: float, made: int) -> tuple[float, float]:
        """Weight and sum from the scale of round `made`, in that of the round under way."""
        shift = scale_of(made, self._rate) - scale_of(self.round, self._rate)
        return math.ldexp(weight, shift), math.ldexp(total, shift)

    def enters(self, message: Message) -> tuple[float, float]:
        """In the scale of the round under way."""
        return self._now(message.n_pulls, message.total, message.round)

    def faded(self, weight: float, total: float, factor: float) -> tuple[float, float]:
        """The same in a later scale."""
        return faded(weight, total, factor)

    def hear(self, position: int, message: Message) -> tuple[float, float] | None:
        """Count an observation with the weight of its own round."""
        unit = weight_of(message.round, self._rate)
        weight, total = self._now(unit * message.n_pulls, unit * message.total, message.round)
        if weight < FLOOR:
            return None
        self.estimates.enter(position, weight, total)
        return weight, total

    def hear_sum(self, position: int, message: Message) -> tuple[float, float] | None:
        """Count what a statistic weighs more than the one before."""
        weight, total = self.enters(message)
        known, known_total = self.known.get((message.origin, message.arm), (0.0, 0.0))
        if weight < FLOOR or weight <= known:
            return None
        self.known[message.origin, message.arm] = weight, total
        self.estimates.enter(position, weight - known, total - known_total)
        return weight - known, total - known_total

    @property
    def state(self) -> dict[str, Any]:
        """As of `Recall`."""
        return super().state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.estimates.read(weight_of(value["round"], self._rate))
        Recall.state.fset(self, value)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Discount(Memory):
    """An observation of round s counts `gamma ** (t - s)` in round t: the older, the less.

    Parameters
    ----------
    gamma : float
        From 0.5 to 1 - 1e-12. An agent that pulls an arm in every round remembers about `1 / (1 - gamma)` pulls of it.

    Notes
    -----
    A lone agent with `UCB(alpha=4 * xi * gamma)` is D-UCB with the parameter xi, but for a clock that is one round
    ahead: Garivier and Moulines, "On upper-confidence bound policies for switching bandit problems", ALT 2011.

    Examples
    --------
    >>> import banditmesh as bm
    >>> policy = bm.UCB(alpha=0.5, memory=bm.Discount(0.995))
    >>> bm.simulate(bm.Problem.paper("er", seed=0), bm.FwA(4), policy=policy, horizon=50, seed=0).policy
    'ucb+discount(0.995)'
    """

    gamma: float
    name: ClassVar[str] = "discount"

    def __post_init__(self) -> None:
        gamma = checks.real("gamma", self.gamma)
        if not LEAST_GAMMA <= gamma <= MAX_GAMMA:
            raise InputError(
                f"gamma must be from {LEAST_GAMMA} to 1 - 1e-12, got {checks.shown(self.gamma)}; "
                "use Everything() to forget nothing"
            )
        object.__setattr__(self, "gamma", gamma)

    @cached_property
    def rate(self) -> float:
        """r: by how many powers of two a weight falls in a round."""
        return -math.log2(self.gamma)

    def age(self, t: int) -> float:
        """How many observations one in every round would count."""
        return discounted_age(t, self.gamma)

    def unit(self, message: Message) -> float:
        """The weight of the round of sending, of a statistic; an observation says what it paid."""
        return weight_of(message.round, self.rate) if type(message.n_pulls) is float else 1.0

    def unit_in(self, t: int) -> float:
        """The weight of the round."""
        return weight_of(t, self.rate)

    def stamp(self, message: Message) -> int:
        """The round of sending, of a statistic."""
        return message.round if type(message.n_pulls) is float else 0

    def recall(self, arms: Arms) -> Fading:
        """Weights and weighted sums."""
        return Fading(arms, self.rate)
