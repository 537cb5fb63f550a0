"""Tested merging: which of the statistics that others tell of an arm are believed, when up to f of them may be lies.

`believed` is the rule, and `merged` adds up what it leaves: pure functions of counts and sums, for simulator and
live node alike. They take one statistic an origin, all lives of a name pooled, and by a memory that discounts weights
in place of counts.

What the agent observed itself always counts in full. Others' counts are capped at C, the larger of its own count and
the (f+1)-th largest of the others', so that f liars gain nothing by claiming more than an honest origin has. The centre
is the weighted median of all means, and N = max(own count, M - 2 f C) with M the sum of the capped counts and its own.
With 2 f other origins or fewer, or M < 4 f C, liars could be half of what is known: then the own mean is the centre, N
is the own count, and so is the cap. An origin is believed, capped, if its mean is within 3 sigma (1 / sqrt(n) +
1 / sqrt(N)) of the centre, where n is the count that it tells; n and N are at least 1.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import Any, Final

from ..policies.estimates import Estimates
from ..policies.memory import Recall

#: How many standard errors an origin may be away from the centre.
WIDTH: Final = 3.0


def believed(own: tuple[Any, float], others: Sequence[tuple[Any, float]], f: int, sigma: float) -> list[Any]:
    """How much of each other origin's count is believed: the count, what it is capped at, or 0.

    Parameters
    ----------
    own : (count, sum)
        What the agent observed itself.
    others : sequence of (count, sum)
        What each other origin tells, with counts above 0.
    f : int
        How many liars there may be, at least 1.
    sigma : float
        The sub-Gaussian parameter of the rewards, or half the width of their range.

    Examples
    --------
    Five honest origins and one that claims a million rewards of 9:

    >>> believed((10, 5.0), [(10, 4.0), (12, 6.0), (9, 5.0), (11, 5.0), (10, 6.0), (10**6, 9e6)], f=1, sigma=0.5)
    [10, 12, 9, 11, 10, 0]
    """
    cap, n, centre = centre_of(own, others, f)
    if not cap:
        return [0] * len(others)
    width = 1.0 / math.sqrt(max(n, 1))
    return [
        min(count, cap)
        if abs(total / count - centre) <= WIDTH * sigma * (1.0 / math.sqrt(max(count, 1)) + width)
        else 0
        for count, total in others
    ]


def centre_of(own: tuple[Any, float], others: Sequence[tuple[Any, float]], f: int) -> tuple[Any, Any, float]:
    """What others are tested against: C, which caps their counts, N and the centre.

    Examples
    --------
    >>> centre_of((10, 5.0), [(10, 4.0), (12, 6.0), (9, 5.0), (11, 5.0), (10, 6.0), (10**6, 9e6)], f=1)
    (12, 50, 0.5)
    """
    n_own, own_total = own
    counts = sorted((count for count, _ in others), reverse=True)
    cap = max(n_own, counts[f]) if len(counts) > f else n_own
    whole = n_own + sum(min(count, cap) for count in counts)
    if len(others) <= 2 * f or whole < 4 * f * cap:
        return n_own, n_own, own_total / n_own if n_own else 0.0
    means = [(total / count, min(count, cap)) for count, total in others]
    centre = _median([*means, (own_total / n_own, n_own)] if n_own else means, whole)
    return cap, max(n_own, whole - 2 * f * cap), centre


def merged(
    own: tuple[Any, float], others: Sequence[tuple[Any, float]], f: int, sigma: float
) -> tuple[Any, float, list[Any]]:
    """Count and sum of what is known with what is believed of others, added in their order; and how much of each.

    Examples
    --------
    >>> merged((4, 2.0), [(100, 50.0), (2, 40.0)], f=1, sigma=0.5)
    (8, 4.0, [4, 0])
    """
    parts = believed(own, others, f, sigma)
    count, total = own
    for (told, its_total), part in zip(others, parts, strict=True):
        if part:
            count += part
            total += its_total if part == told else its_total / told * part
    return count, total, parts


def _median(means: list[tuple[float, Any]], whole: Any) -> float:
    """The smallest mean with at least half of all weight at or below it."""
    weight = 0
    for mean, count in sorted(means):
        weight += count
        if 2 * weight >= whole:
            return mean
    return max(means)[0]


class Trimmed:
    """What one agent believes of its arms: `estimates`, kept up to date from all that it recalls.

    Parameters
    ----------
    recall : Recall
        What the agent keeps of its own and of others' statistics.
    name : hashable
        The agent: what it hears under its own name is its own.
    arms : sequence
        Its arms, by position.
    f : int
        How many liars there may be.
    unit : callable
        What an observation of the round under way weighs in the recall.
    """

    def __init__(self, recall: Recall, name: Any, arms: Sequence[Any], f: int, unit: Any) -> None:
        self._recall, self._name, self._arms, self._f, self._unit = recall, name, arms, f, unit
        self.estimates = Estimates(list(recall.estimates.sigma), list(recall.estimates.law))
        #: By position, the origins that were heard of, ascending, so that sums do not depend on who came first.
        self._origins: list[list[Any]] = [[] for _ in arms]

    def heard(self, position: int, origin: Any) -> None:
        """An origin has told more of an arm."""
        origins = self._origins[position]
        if origin != self._name and origin not in origins:
            insort(origins, origin)
        self.update(position)

    def update(self, position: int) -> None:
        """Work out anew what is believed of an arm."""
        recall, arm = self._recall, self._arms[position]
        unit = self._unit()
        own, own_total = recall.own_weight[position], recall.own_total[position]
        earlier = recall.known.get((self._name, arm))
        if earlier is not None:
            own, own_total = own + earlier[0], own_total + earlier[1]
        known = [recall.known[one, arm][:2] for one in self._origins[position] if (one, arm) in recall.known]
        if unit != 1:
            own, own_total = own / unit, own_total / unit
            known = [(count / unit, total / unit) for count, total in known]
        count, total, _ = merged((own, own_total), known, self._f, self.estimates.sigma[position])
        self.estimates.put(position, count, total)

    def update_all(self) -> None:
        """The same of all arms."""
        for position in range(len(self._arms)):
            self.update(position)

    def restore(self) -> None:
        """All that is recalled was put back."""
        places = {arm: position for position, arm in enumerate(self._arms)}
        self._origins = [[] for _ in self._arms]
        for origin, arm in self._recall.known:
            if arm in places and origin != self._name:
                insort(self._origins[places[arm]], origin)
        self.update_all()
