"""From coarse to fine: which of many configurations are worth simulating to the end.

Rules kept here: everything depends on the seed alone, not on time or on where it runs. Regrets and costs are judged by
paired differences over at least three replicates, since all configurations see the same rewards; a difference counts if
it is larger than its *margin*, that of Student's t at 95 per cent.

First every configuration runs for five rounds, three times. Then those that are cheapest to continue run on, up to the
horizon; if there is a budget, or if it takes long, in steps of four times the length each. The remaining ones run with
more replicates, twice as many each time. A configuration is left out as soon as one of these holds:

- *over the budget*: what it has sent so far alone is more than the budget allows over the whole horizon, and another is
  within it;
- *beaten*: one that has run to the end costs no more, in transmissions, in bytes and on the busiest link, than this one
  has sent so far, and has less regret than this one has had so far, by more than a tenth and the margin together. Both
  only grow, so this holds at the end as well;
- *not worth it*, only for what takes long (more than a billion transmissions): one that has run to the end has nearly
  all that there is to gain, for at most half of what this one has sent so far. What there is to gain is the regret
  of agents on their own minus that of a centre which hears everything at once (or of anything that did better), and
  nearly all is 1 minus the tolerance of it.

A configuration that has run with all replicates is not simulated again: its numbers are those of a full frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..policies import Policy
from ..protocols import AnyProtocol, Centralised, NoCooperation
from .configurations import COSTS, MEASURES, Configuration
from .intervals import lead
from .measuring import Bench, Measured, Task

#: If agents x rounds x replicates x configurations exceed this, screening is the default.
LARGE: Final = 500_000_000
#: Fewer replicates say nothing about how much they scatter.
REPLICATES: Final = 3
_FIRST: Final = 5
_FACTOR: Final = 4
#: A configuration expected to send more than this, in all replicates together, takes long.
_LONG: Final = 1e9
#: A configuration that costs at least this many times as much is not worth it.
_DEARER: Final = 2.0
#: A configuration is beaten by more than this share of the winner's regret, beyond the margin.
_WORSE: Final = 0.1
_ALONE, _CENTRE = "agents on their own", "a centre"


@dataclass(frozen=True)
class Screened:
    """What screening found.

    Attributes
    ----------
    left : mapping from str to Measured
        Configurations that ran to the end, with all replicates.
    left_out : mapping from str to str
        All others, and why.
    """

    left: Mapping[str, Measured]
    left_out: Mapping[str, str]


def screen(
    bench: Bench,
    grid: Mapping[str, AnyProtocol],
    horizon: int,
    replicates: int,
    limits: Mapping[str, float],
    tolerance: float,
    n_agents: int,
    begun: Callable[[Mapping[str, Measured]], None],
    policies: Mapping[str, Policy] | None = None,
) -> Screened:
    """Run configurations from coarse to fine, and leave out those that need not run to the end.

    Parameters
    ----------
    bench : Bench
        Where they run.
    grid : mapping from str to AnyProtocol
        The configurations.
    horizon, replicates : int
        The last round, and the replicates of the remaining configurations.
    limits : mapping from cost to float
        The budget.
    tolerance : float
        How much of the possible gain may be missed.
    n_agents : int
        How many agents there are.
    begun : callable
        Called with the results of the first rounds, and the seconds per round.
    policies : mapping from str to Policy, optional
        How configurations choose that do not as the bench's settings say.
    """
    screening = _Screening(bench, grid, horizon, replicates, limits, tolerance, policies or {})
    begun(screening.begin())
    screening.reach_the_horizon(n_agents)
    screening.repeat()
    return Screened(
        {name: _first_of(replicates, screening.stands[name].measured) for name in screening.left()}, screening.out
    )


@dataclass(frozen=True)
class _Standing:
    """How far a configuration has run, and what it has sent so far, in shares of the whole horizon."""

    measured: Measured
    reached: int
    horizon: int

    @property
    def one(self) -> Configuration:
        return self.measured.configuration

    @property
    def n_replicates(self) -> int:
        return len(self.one.regret)

    def cost(self, cost: str) -> NDArray[np.float64]:
        values: NDArray[np.float64] = getattr(self.one, cost) * (self.reached / self.horizon)
        return values

    def expected_sent(self, horizon: int) -> float:
        return self.one.mean("messages_per_round") * horizon


@dataclass
class _Screening:
    """All configurations on their way."""

    bench: Bench
    grid: Mapping[str, AnyProtocol]
    horizon: int
    replicates: int
    limits: Mapping[str, float]
    tolerance: float
    policies: Mapping[str, Policy]
    stands: dict[str, _Standing] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    _ends: tuple[Configuration, Configuration] | None = None

    def left(self) -> list[str]:
        return [name for name in self.grid if name not in self.out]

    def begin(self) -> Mapping[str, Measured]:
        """Run all of them for some rounds."""
        self._advance(self.grid, lambda _: min(_FIRST, self.horizon), timed=True)
        return {name: stand.measured for name, stand in self.stands.items()}

    def reach_the_horizon(self, n_agents: int) -> None:
        """Continue the cheapest configurations, until all that are left have run to the end."""

        def work(name: str) -> float:
            stand = self.stands[name]
            return stand.expected_sent(self._next(stand)) + n_agents * self._next(stand)

        self._judge()
        while running := [name for name in self.left() if self.stands[name].reached < self.horizon]:
            least = min(map(work, running))
            self._advance(
                [name for name in running if work(name) <= _FACTOR * least], lambda name: self._next(self.stands[name])
            )
            self._judge()

    def repeat(self) -> None:
        """Run the remaining configurations with more replicates."""
        done = REPLICATES
        while done < self.replicates:
            more = min(done, self.replicates - done)
            for name, measured in self._run(self.left(), lambda _: self.horizon, done, more).items():
                self.stands[name] = replace(self.stands[name], measured=_joined(self.stands[name].measured, measured))
            done += more
            if done < self.replicates:
                self._judge()

    def _takes_long(self, stand: _Standing) -> bool:
        return stand.expected_sent(self.horizon) * self.replicates > _LONG

    def _next(self, stand: _Standing) -> int:
        by_steps = self.limits or self._takes_long(stand)
        return min(self.horizon, _FACTOR * stand.reached) if by_steps else self.horizon

    def _run(
        self, names: Iterable[str], horizon: Callable[[str], int], first: int, replicates: int, timed: bool = False
    ) -> dict[str, Measured]:
        tasks = [
            Task(
                name,
                self.grid[name],
                horizon(name),
                replicates,
                timed,
                first,
                self.replicates,
                self.policies.get(name),
            )
            for name in names
        ]
        # Rounds count as progress if the full frontier needs them.
        long, short = (
            [task for task in tasks if (task.horizon == self.horizon) == is_long] for is_long in (True, False)
        )
        return self.bench.run(short, False) | self.bench.run(long, first + replicates <= self.replicates)

    def _advance(self, names: Iterable[str], horizon: Callable[[str], int], timed: bool = False) -> None:
        goals = {name: horizon(name) for name in names}
        for name, measured in self._run(goals, goals.__getitem__, 0, REPLICATES, timed).items():
            self.stands[name] = _Standing(measured, goals[name], self.horizon)

    def _judge(self) -> None:
        """Leave out every configuration that there is now a reason to leave out."""
        ended = [self.stands[name] for name in self.left() if self.stands[name].reached == self.horizon]
        rivals = [stand for stand in ended if stand.one.sends]
        for name in self.left():
            stand = self.stands[name]
            if why := self._over(stand, rivals) or self._beaten(stand, rivals) or self._not_worth_it(stand, rivals):
                self.out[name] = why
                done = stand.n_replicates if stand.reached == self.horizon else 0
                self.bench.progress.advance(max(0, self.replicates - done) * self.horizon)

    def _over(self, stand: _Standing, rivals: list[_Standing]) -> str:
        for cost, limit in self.limits.items():
            excess, margin = lead(stand.cost(cost) - limit)
            if excess > margin and any(self._is_within_budget(rival) for rival in rivals):
                when = f"its first {stand.reached} rounds alone" if stand.reached < self.horizon else "what it sends"
                return (
                    f"over the budget of {limit:,g} {COSTS[cost]} by {when} "
                    f"({excess + limit:,.4g}; {_rests_on(stand, margin)})"
                )
        return ""

    def _is_within_budget(self, rival: _Standing) -> bool:
        return all(_surely(limit - rival.cost(cost)) for cost, limit in self.limits.items())

    def _beaten(self, stand: _Standing, rivals: list[_Standing]) -> str:
        for rival in rivals:
            if rival is stand or rival.one.mean("regret") >= stand.one.mean("regret"):
                continue
            n = min(stand.n_replicates, rival.n_replicates)
            difference, margin = lead(stand.one.regret[:n] - rival.one.regret[:n])
            if difference > margin + _WORSE * rival.one.mean("regret") and _costs_no_more(rival, stand):
                so_far = "" if stand.reached == self.horizon else f" than this one after {stand.reached} rounds"
                return (
                    f"{rival.one.name} costs no more and has less regret{so_far}: by {difference:,.4g} "
                    f"({_rests_on(stand, margin)})"
                )
        return ""

    def _not_worth_it(self, stand: _Standing, rivals: list[_Standing]) -> str:
        if not rivals or stand.reached == self.horizon or not self._takes_long(stand):
            return ""
        alone, centre = self._alone_and_centre()
        # By chance a configuration may do better than the centre.
        best = min([centre, *(rival.one for rival in rivals)], key=lambda one: one.mean("regret"))
        to_gain = alone.regret - best.regret
        for rival in rivals:
            gain = alone.regret - rival.one.regret
            enough, margin = lead(gain - (1 - self.tolerance) * to_gain)
            if to_gain.mean() > 0 and enough > margin and _costs_no_more(rival, stand, _DEARER):
                return (
                    f"{rival.one.name} has {gain.mean() / to_gain.mean():.0%} of what there is to gain for at most "
                    f"half of its cost so far ({_rests_on(stand, margin / float(to_gain.mean()), '.2%')})"
                )
        return ""

    def _alone_and_centre(self) -> tuple[Configuration, Configuration]:
        if self._ends is None:
            ends = {_ALONE: NoCooperation(), _CENTRE: Centralised()}
            tasks = [Task(name, one, self.horizon, REPLICATES) for name, one in ends.items()]
            found = self.bench.run(tasks, False)
            self._ends = found[_ALONE].configuration, found[_CENTRE].configuration
        return self._ends


def _rests_on(stand: _Standing, margin: float, form: str = ",.3g") -> str:
    return f"{stand.n_replicates} paired replicates, margin {margin:{form}}"


def _surely(differences: NDArray[np.float64]) -> bool:
    """Whether they are surely not negative: their mean is at least their margin."""
    mean, margin = lead(differences)
    return mean >= margin


def _costs_no_more(rival: _Standing, stand: _Standing, times: float = 1.0) -> bool:
    n = min(stand.n_replicates, rival.n_replicates)
    return all(_surely(stand.cost(cost)[:n] - times * rival.cost(cost)[:n]) for cost in COSTS)


def _joined(one: Measured, more: Measured) -> Measured:
    """Two results as one, the second with the replicates that follow those of the first."""
    return _mapped(one, lambda measure, values: np.concatenate([values, getattr(more.configuration, measure)]))


def _first_of(replicates: int, measured: Measured) -> Measured:
    return _mapped(measured, lambda _, values: values[:replicates])


def _mapped(measured: Measured, function: Callable[[str, NDArray[np.float64]], NDArray[np.float64]]) -> Measured:
    one = measured.configuration
    values: dict[str, Any] = {measure: function(measure, getattr(one, measure)) for measure in MEASURES}
    return replace(measured, configuration=replace(one, **values))
