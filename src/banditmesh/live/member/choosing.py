"""What a node sees when it chooses: its estimates, priors, and its choices in flight.

An open ticket is not nothing: a choice whose reward has not come yet counts, for choosing alone and never for what is
told, as one more pull of its arm. Rules kept here. While a ticket is younger than the patience with its arm, the pull
paid the arm's present mean; after that it paid what silence is taken for: the bandit's `lapse_reward` or, without one,
the lowest of the arm's `reward_range` or, without that, the lowest present mean of all arms, or 0 if nothing is
known of any. Of an unknown arm a ticket always counts as silence. Which tickets are open, and for how long one waits,
`tickets` knows.

So the best arm, should it stop answering, is left after the patience and a few choices, and a new one that never
answers at once.

A prior counts as that many rewards more of its arm. It spares no first pull, and is neither counted nor told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...policies.base import Estimates
from ..statistics import ArmSpec
from .tickets import Ticket


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
    waiting: Mapping[int, tuple[int, int]],
    lapse_reward: float | None = None,
) -> Estimates:
    """The estimates with priors and with choices in flight, by position: how many are waited for, and are silent.

    Examples
    --------
    >>> estimates = Estimates([1.0, 1.0], [0, 0])
    >>> estimates.add(0, count=3, total=3.0)
    >>> view = seen(estimates, [ArmSpec("red"), ArmSpec("blue", reward_range=(-1.0, 1.0))], {0: (2, 0), 1: (1, 0)})
    >>> view.count, view.mean
    ([5, 1], [1.0, -1.0])
    """
    priors = [(position, spec.prior) for position, spec in enumerate(specs) if spec.prior is not None]
    if not priors and not waiting:
        return estimates
    view = estimates.part(range(len(estimates)))
    for position, prior in priors:
        view.put(position, view.count[position] + prior.count, view.total[position] + prior.count * prior.mean)
    known = [mean for mean, count in zip(view.mean, view.count, strict=True) if count]
    lowest = min(known, default=0.0) if lapse_reward is None else lapse_reward
    for position, (n_young, n_silent) in waiting.items():
        reward_range = specs[position].reward_range
        silence = lowest if reward_range is None or lapse_reward is not None else reward_range[0]
        count, total = view.count[position], view.total[position]
        total += n_young * (view.mean[position] if count else silence) + n_silent * silence
        view.put(position, count + n_young + n_silent, total)
    return view
