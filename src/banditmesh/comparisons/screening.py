"""From coarse to fine: which of many configurations are worth simulating to the end.

Rules kept here: everything depends on the seed alone, not on time or on where it runs.

First every configuration runs for five rounds, once. Then those that are cheapest to continue run on, four times as
long each time, up to the horizon. A configuration is left out as soon as one of these holds:

- *over the budget*: what it has sent so far alone is more than the budget allows over the whole horizon;
- *not worth it*: one that has run to the end, once, has nearly all that there is to gain, for at most half of what
  this one has sent so far: in transmissions, in bytes and on the busiest link. What there is to gain is the regret of
  agents on their own minus that of a centre which hears everything at once (or of anything that did better), and nearly
  all is 1 minus the tolerance of it. So whatever this one would end with, it has little left to gain;
- *beaten*: when all that is left has run to the end once, one that costs no more in any of the three has less regret
  by a tenth.

Only what is left runs with all replicates. What has sent little so far is never left out by the first two, and no
regret of a short horizon is ever used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ..protocols import AnyProtocol, Centralised, Delivery, NoCooperation
from .configurations import COSTS, Configuration
from .measuring import Bench, Measured, Task

#: Where agents x rounds x replicates x configurations are more than this, screening is the default.
LARGE: Final = 500_000_000
_FIRST: Final = 5
_FACTOR: Final = 4
#: At least so many times the cost, to be not worth it.
_DEARER: Final = 2.0
#: At least so much more regret, to be beaten.
_WORSE: Final = 1.1
_ALONE, _CENTRE = "agents on their own", "a centre"


@dataclass(frozen=True)
class Screened:
    """What screening found.

    Attributes
    ----------
    left : mapping from str to AnyProtocol
        What is worth simulating to the end.
    left_out : mapping from str to str
        Everything else, and why.
    """

    left: Mapping[str, AnyProtocol]
    left_out: Mapping[str, str]


def screen(
    bench: Bench,
    grid: Mapping[str, AnyProtocol],
    horizon: int,
    limits: Mapping[str, float],
    tolerance: float,
    n_agents: int,
    begun: Callable[[Mapping[str, Measured]], None],
) -> Screened:
    """Run configurations from coarse to fine, and leave out what need not run to the end.

    Parameters
    ----------
    bench : Bench
        Where they run.
    grid : mapping from str to AnyProtocol
        The configurations.
    horizon : int
        The last round.
    limits : mapping from cost to float
        The budget.
    tolerance : float
        How much of what there is to gain may be missed.
    n_agents : int
        How many agents there are.
    begun : callable
        Told what the first rounds gave, with the seconds that a round takes.
    """
    first = bench.run([Task(name, one, min(_FIRST, horizon), 1, timed=True) for name, one in grid.items()], False)
    begun(first)
    ends = bench.run([Task(_ALONE, NoCooperation(), horizon, 1), Task(_CENTRE, Centralised(), horizon, 1)], False)
    alone, centre = (ends[name].configuration.mean("regret") for name in (_ALONE, _CENTRE))
    stands = {name: _Standing(one.configuration, min(_FIRST, horizon), horizon) for name, one in first.items()}
    out: dict[str, str] = {}
    while running := [name for name, stand in stands.items() if name not in out and stand.reached < horizon]:
        work = {name: stands[name].work(n_agents) for name in running}
        wave = [name for name in running if work[name] <= _FACTOR * min(work.values())]
        tasks = [Task(name, grid[name], stands[name].next_horizon, 1) for name in wave]
        for name, measured in bench.run(tasks, False).items():
            stands[name] = _Standing(measured.configuration, stands[name].next_horizon, horizon)
        ended = [stand for stand in stands.values() if stand.reached == horizon]
        for name in running:
            if why := _why_not(stands[name], ended, limits, alone, centre, tolerance):
                out[name] = why
    left = [stand for name, stand in stands.items() if name not in out]
    for stand in left:
        if winner := next((one for one in left if one.beats(stand)), None):
            out[stand.one.name] = f"{winner.one.name} has less regret by a tenth and costs no more"
    return Screened({name: one for name, one in grid.items() if name not in out}, out)


@dataclass(frozen=True)
class _Standing:
    """How far a configuration has run, and what it has sent so far, in shares of the whole horizon."""

    one: Configuration
    reached: int
    horizon: int

    @property
    def next_horizon(self) -> int:
        return min(self.horizon, _FACTOR * self.reached)

    def cost(self, cost: str) -> float:
        return self.one.mean(cost) * self.reached / self.horizon

    def work(self, n_agents: int) -> float:
        """About how much there is to do up to the next horizon."""
        return (self.one.mean("messages_per_round") + n_agents) * self.next_horizon

    def beats(self, other: _Standing) -> bool:
        if self.one.protocol.delivery is Delivery.EVERYONE:
            return False
        cheaper = all(self.cost(cost) <= other.cost(cost) for cost in COSTS)
        return cheaper and self.one.mean("regret") * _WORSE <= other.one.mean("regret")


def _why_not(
    stand: _Standing,
    ended: list[_Standing],
    limits: Mapping[str, float],
    alone: float,
    centre: float,
    tolerance: float,
) -> str:
    """Why a configuration need not run on; empty if it should."""
    # By chance something may do better than the centre.
    to_gain = alone - min([centre, *(one.one.mean("regret") for one in ended)])
    real = [one for one in ended if one.one.sends]
    allowed = [one for one in real if all(one.cost(cost) <= limit for cost, limit in limits.items())]
    for cost, limit in limits.items():
        if allowed and stand.cost(cost) > limit:
            return f"over the budget of {limit:,g} {COSTS[cost]} by its first {stand.reached} rounds alone"
    for one in real:
        gain = alone - one.one.mean("regret")
        if (
            one is not stand
            and gain >= (1 - tolerance) * to_gain > 0
            and all(_DEARER * one.cost(cost) <= stand.cost(cost) for cost in COSTS)
        ):
            return f"{one.one.name} has {gain / to_gain:.0%} of what there is to gain for at most half of its cost"
    return ""
