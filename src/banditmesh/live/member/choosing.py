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

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...policies.base import Estimates
from ..statistics import ArmSpec
from .tickets import Ticket, Waiting


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


def seen(
    estimates: Estimates,
    specs: Sequence[ArmSpec],
    waiting: Mapping[int, Waiting],
    lapse_reward: float | None = None,
) -> Estimates:
    """The estimates with priors and with choices in flight, by position: how many are waited for, and are silent.

    Examples
    --------
    >>> estimates = Estimates([1.0, 1.0], [0, 0])
    >>> estimates.add(0, count=3, total=3.0)
    >>> arms = [ArmSpec("red"), ArmSpec("blue", reward_range=(-1.0, 1.0))]
    >>> view = seen(estimates, arms, {0: Waiting(n_young=2), 1: Waiting(n_young=1)})
    >>> view.count, view.mean
    ([5, 1], [1.0, -1.0])
    """
    priors = [(position, spec.prior) for position, spec in enumerate(specs) if spec.prior is not None]
    if not priors and not waiting:
        return estimates
    view = estimates.part(range(len(estimates)))
    for position, prior in priors:
        view.put(position, view.count[position] + prior.count, view.total[position] + prior.count * prior.mean)
    lowest = _lowest(view)
    for position, (n_young, n_silent, _) in waiting.items():
        silence = _silence(specs[position], lowest, lapse_reward)
        count, total = view.count[position], view.total[position]
        total += n_young * (view.mean[position] if count else silence) + n_silent * silence
        view.put(position, count + n_young + n_silent, total)
    return view


def preferred(
    choose: Callable[[Estimates], int],
    estimates: Estimates,
    specs: Sequence[ArmSpec],
    waiting: Mapping[int, Waiting],
    lapse_reward: float | None = None,
) -> int:
    """The position that a policy chooses, by `seen` and by runs of silence.

    Parameters
    ----------
    choose : callable
        What the policy chooses by some estimates.
    estimates, specs, waiting, lapse_reward
        As `seen` takes them.

    Examples
    --------
    A thousand good rewards, and then thirty choices without an answer:

    >>> import banditmesh as bm
    >>> estimates = Estimates([0.5, 0.5], [1, 1])
    >>> estimates.add(0, count=1000, total=900.0)
    >>> estimates.add(1, count=100, total=50.0)
    >>> coins = [ArmSpec(name, "bernoulli", reward_range=(0.0, 1.0)) for name in ("red", "blue")]
    >>> choose = lambda view: bm.KLUCB().choose(1130, view, None)
    >>> silent = {0: Waiting(n_silent=30, n_run=30)}
    >>> choose(seen(estimates, coins, silent)), preferred(choose, estimates, coins, silent)
    (0, 1)
    """
    view = seen(estimates, specs, waiting, lapse_reward)
    runs = {position: one.n_run for position, one in waiting.items() if one.n_run}
    lowest = _lowest(view)
    while True:
        position = choose(view)
        n_run = runs.pop(position, 0)
        if not n_run:
            return position
        # It is chosen if that is right by either: by all that is known of it, and by the run of silence alone.
        view.put(position, n_run, n_run * _silence(specs[position], lowest, lapse_reward))


def _lowest(view: Estimates) -> float:
    return min((mean for mean, count in zip(view.mean, view.count, strict=True) if count), default=0.0)


def _silence(spec: ArmSpec, lowest: float, lapse_reward: float | None) -> float:
    """What silence of an arm is taken for."""
    if lapse_reward is not None:
        return lapse_reward
    return lowest if spec.reward_range is None else spec.reward_range[0]
