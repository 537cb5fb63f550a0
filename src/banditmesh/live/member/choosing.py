"""What a node sees when it chooses: its estimates, priors, and its choices in flight.

An open ticket is not nothing: a choice whose reward has not come yet counts, for choosing alone and never for what is
told, as one more pull of its arm. Rules kept here. While a ticket is younger than the patience with its arm, the pull
paid the arm's present mean; after that it paid what silence is taken for: the bandit's `lapse_reward` or, without one,
the lowest of the arm's `reward_range` or, without that, the lowest present mean of all arms, or 0 if nothing is
known of any. Of an unknown arm a ticket always counts as silence. Which tickets are open, and for how long one waits,
`tickets` knows.

*A run of silence*: the silent choices of an arm that were made after the last one that it answered. An arm with such a
run is chosen only if that is right by either: by all that is known of it, and by the run alone, as if nothing else were
known. Without this, ten thousand good rewards outweigh any silence for hours. A policy that chooses within a confidence
of 1/t leaves an arm by chance, for a run that only happened so, as seldom as that.

So the best arm, should it stop answering, is left after the patience and about ten choices, however long it did well,
and a new one that never answers after a few.

A prior counts as that many rewards more of its arm. It spares no first pull, and is neither counted nor told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...policies.base import Estimates
from ..statistics import ArmSpec
from .tickets import NOT_WAITING, Ticket, Waiting


class _Pair(NamedTuple):
    arm: str
    ticket: Ticket


class NodeChoice(_Pair):
    """An arm to pull, and the ticket by which its reward is reported; it unpacks into these two.

    Attributes
    ----------
    probability : float or None
        How probable the arm was, of those that were available; 1 for first pulls, None where the policy draws.
    segment : str or None
        The segment in which it was chosen; None if in none, also where the bandit lists its segments and not this one.
    """

    probability: float | None
    segment: str | None

    def __new__(  # noqa: D102
        cls, arm: str, ticket: Ticket, probability: float | None = None, segment: str | None = None
    ) -> NodeChoice:
        self = super().__new__(cls, arm, ticket)
        self.probability = probability
        self.segment = segment
        return self


class Sight:
    """What a bandit sees of its arms, by position: their estimates with priors and with choices in flight.

    It keeps what it saw last, and works out anew only what is different since.

    Parameters
    ----------
    specs : sequence of ArmSpec
        The arms.
    lapse_reward : float, optional
        What silence is taken for.

    Attributes
    ----------
    waiting : dict
        By position, for arms with choices in flight: what is made of them.

    Examples
    --------
    >>> estimates = Estimates([1.0, 1.0], [0, 0])
    >>> estimates.add(0, count=3, total=3.0)
    >>> sight = Sight([ArmSpec("red"), ArmSpec("blue", reward_range=(-1.0, 1.0))])
    >>> sight.wait(0, Waiting(n_young=2))
    >>> sight.wait(1, Waiting(n_young=1))
    >>> view = sight.look(estimates)
    >>> view.count, view.mean
    ([5, 1], [1.0, -1.0])

    A thousand good rewards, and then thirty choices without an answer:

    >>> import banditmesh as bm
    >>> estimates = Estimates([0.5, 0.5], [1, 1])
    >>> estimates.add(0, count=1000, total=900.0)
    >>> estimates.add(1, count=100, total=50.0)
    >>> sight = Sight([ArmSpec(name, "bernoulli", reward_range=(0.0, 1.0)) for name in ("red", "blue")])
    >>> choose = lambda view: bm.KLUCB().choose(1130, view, None)
    >>> sight.wait(0, Waiting(n_silent=30, n_run=30))
    >>> choose(sight.look(estimates)), sight.preferred(choose, estimates)
    (0, 1)
    """

    __slots__ = (
        "_asks_lowest", "_counts", "_has_priors", "_lapse_reward", "_lowest", "_means", "_other", "_specs", "_totals",
        "_view", "waiting",
    )  # fmt: skip

    def __init__(self, specs: Sequence[ArmSpec], lapse_reward: float | None = None) -> None:
        self._specs = specs
        self._lapse_reward = lapse_reward
        self._has_priors = any(spec.prior is not None for spec in specs)
        self._asks_lowest = lapse_reward is None and any(spec.reward_range is None for spec in specs)
        self.waiting: dict[int, Waiting] = {}
        self._view = Estimates([], [])
        #: What the view was made of: counts, sums, and means with priors, infinite where nothing is known.
        self._counts: list[Any] = []
        self._totals: list[float] = []
        self._means: list[float] = []
        self._lowest = 0.0
        #: Positions with other choices in flight than the view shows, or of which it shows a run of silence alone.
        self._other: set[int] = set()

    def wait(self, position: int, waiting: Waiting) -> None:
        """Something else is made of the choices in flight of an arm."""
        self._other.add(position)
        if waiting == NOT_WAITING:
            self.waiting.pop(position, None)
        else:
            self.waiting[position] = waiting

    def look(self, estimates: Estimates) -> Estimates:
        """These estimates as the policy is to see them: good until the next look, and left as they are themselves."""
        if not self._has_priors and not self.waiting:
            return estimates
        self._compare(estimates)
        view = self._view
        view.share_scatter(estimates)
        for position in self._other:
            count, total = self._with_prior(estimates, position)
            if position in self.waiting:
                n_young, n_silent, _ = self.waiting[position]
                silence = self._silence(position, self._lowest)
                total += n_young * (self._means[position] if count else silence) + n_silent * silence
                count += n_young + n_silent
            view.put(position, count, total)
        self._other.clear()
        return view

    def _compare(self, estimates: Estimates) -> None:
        """Find where the view is not what it should be by now."""
        n_arms = len(estimates)
        if len(self._counts) != n_arms:
            self._view = Estimates(estimates.sigma, estimates.law)
            self._counts, self._totals, self._means = [None] * n_arms, [0.0] * n_arms, [math.inf] * n_arms
        if self._counts != estimates.count or self._totals != estimates.total:
            before = zip(self._counts, self._totals, strict=True)
            now = zip(estimates.count, estimates.total, strict=True)
            for position, (old, new) in enumerate(zip(before, now, strict=True)):
                if old != new:
                    self._other.add(position)
                    count, total = self._with_prior(estimates, position)
                    self._means[position] = total / count if count else math.inf
            self._counts, self._totals = [*estimates.count], [*estimates.total]
        if self._asks_lowest:
            lowest = min(self._means)
            lowest = 0.0 if lowest == math.inf else lowest
            if lowest != self._lowest:
                self._lowest = lowest
                self._other.update(self.waiting)

    def preferred(self, choose: Callable[[Estimates], int], estimates: Estimates) -> int:
        """The position that a policy chooses by some estimates, by what it sees and by runs of silence."""
        view = self.look(estimates)
        lowest: float | None = None
        while True:
            position = choose(view)
            n_run = self.waiting[position].n_run if position in self.waiting else 0
            if not n_run or position in self._other:
                return position
            if lowest is None:
                lowest = min((mean for mean, count in zip(view.mean, view.count, strict=True) if count), default=0.0)
            # It is chosen if that is right by either: by all that is known of it, and by the run of silence alone.
            self._other.add(position)
            view.put(position, n_run, n_run * self._silence(position, lowest))

    def _with_prior(self, estimates: Estimates, position: int) -> tuple[Any, float]:
        """Count and sum of an arm, with its prior."""
        count, total, prior = estimates.count[position], estimates.total[position], self._specs[position].prior
        return (count, total) if prior is None else (count + prior.count, total + prior.count * prior.mean)

    def _silence(self, position: int, lowest: float) -> float:
        """What silence of an arm is taken for."""
        if self._lapse_reward is not None:
            return self._lapse_reward
        reward_range = self._specs[position].reward_range
        return lowest if reward_range is None else reward_range[0]
