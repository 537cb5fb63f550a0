"""What an agent knows of its arms, and what policies may know of them beforehand."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

from ..arms import GAUSSIAN


class Arms(NamedTuple):
    """What a policy may know of an agent's arms, by position in its arm set.

    Attributes
    ----------
    names : sequence of hashables
        The arms.
    sigmas : sequence of float
        The sub-Gaussian parameter of each arm's law; nan where it has none.
    laws : sequence of int
        The kind of each arm's law: `GAUSSIAN`, `BERNOULLI`, `UNIFORM` or `OTHER` of `banditmesh.arms`.

    Examples
    --------
    >>> Arms.gaussian(["red", "blue"], sigma=0.5)
    Arms(names=['red', 'blue'], sigmas=[0.5, 0.5], laws=[0, 0])
    """

    names: Sequence[Hashable]
    sigmas: Sequence[float]
    laws: Sequence[int]

    @classmethod
    def gaussian(cls, names: Sequence[Hashable], sigma: float) -> Arms:
        """Arms whose rewards are Gaussian, of one sigma."""
        return cls(names, [sigma] * len(names), [GAUSSIAN] * len(names))


class Estimates:
    """What an agent knows of its arms, by position in its arm set.

    Sums are kept, not running means; the mean and `1 / sqrt(count)` are recomputed when an arm's sum changes, so that
    an index needs no division and no root of its own.

    Parameters
    ----------
    sigmas : list of float
        The sub-Gaussian parameter of each arm's law; nan where it has none.
    laws : list of int
        The kind of each arm's law: `GAUSSIAN`, `BERNOULLI`, `UNIFORM` or `OTHER` of `banditmesh.arms`.

    Examples
    --------
    >>> from banditmesh.arms import GAUSSIAN
    >>> estimates = Estimates([1.0, 1.0], [GAUSSIAN, GAUSSIAN])
    >>> estimates.add(1, count=4, total=2.0)
    >>> estimates.count, estimates.mean, estimates.inv_root
    ([0, 4], [0.0, 0.5], [0.0, 0.5])
    """

    def __init__(self, sigmas: list[float], laws: list[int]) -> None:
        n_arms = len(sigmas)
        self.sigma = sigmas
        self.law = laws
        self.count: list[Any] = [0] * n_arms
        self.total = [0.0] * n_arms
        self.mean = [0.0] * n_arms
        self.inv_root = [0.0] * n_arms
        self._squares = [0.0] * n_arms
        self._n_parts = [0] * n_arms

    def add(self, position: int, count: int, total: float) -> None:
        """Add `count` observations whose rewards sum to `total`."""
        self.count[position] = n = self.count[position] + count
        self.total[position] = whole = self.total[position] + total
        self.mean[position] = whole / n
        self.inv_root[position] = 1.0 / math.sqrt(n)
        self._squares[position] += total * total / count
        self._n_parts[position] += 1

    def change(self, position: int, count: int, total: float, squares: float, n_parts: int) -> None:
        """Add to count and sum, to the sum over parts of `total**2 / count`, and to the number of parts."""
        self.count[position] += count
        self.total[position] += total
        self.mean[position] = self.total[position] / self.count[position]
        self.inv_root[position] = 1.0 / math.sqrt(self.count[position])
        self._squares[position] += squares
        self._n_parts[position] += n_parts

    def add_all(self, parts: Collection[tuple[int, int, float]]) -> None:
        """Add many parts (position, count, total), in this order: the same as `add` of each, and quicker.

        A part with a count of 0 corrects the sum of what is known already.
        """
        counts, totals, squares, n_parts = self.count, self.total, self._squares, self._n_parts
        for position, count, total in parts:
            totals[position] += total
            if count:
                counts[position] += count
                squares[position] += total * total / count
                n_parts[position] += 1
        for position in {part[0] for part in parts}:
            self.mean[position] = totals[position] / counts[position]
            self.inv_root[position] = 1.0 / math.sqrt(counts[position])

    def part(self, positions: Sequence[int]) -> Estimates:
        """What is known of some of the arms, in this order."""
        part = Estimates([self.sigma[one] for one in positions], [self.law[one] for one in positions])
        part.state = {name: [values[one] for one in positions] for name, values in self.state.items()}
        return part

    def put(self, position: int, count: int, total: float) -> None:
        """Set how many observations of an arm are known, and their sum; 0 for none."""
        self.count[position], self.total[position] = count, total
        self.mean[position] = total / count if count else 0.0
        self.inv_root[position] = 1.0 / math.sqrt(count) if count else 0.0

    def share_scatter(self, other: Estimates) -> None:
        """Estimate variances from the same parts as another does, from now on."""
        self._squares, self._n_parts = other._squares, other._n_parts

    @property
    def state(self) -> dict[str, list[Any]]:
        """All that changes, as lists of numbers."""
        return {"count": self.count, "total": self.total, "squares": self._squares, "n_parts": self._n_parts}

    @state.setter
    def state(self, value: dict[str, list[Any]]) -> None:
        self.count, self.total, self._squares, self._n_parts = (
            value[name] for name in ("count", "total", "squares", "n_parts")
        )
        known = list(zip(self.total, self.count, strict=True))
        self.mean = [total / count if count else 0.0 for total, count in known]
        self.inv_root = [1.0 / math.sqrt(count) if count else 0.0 for _, count in known]

    def variance(self, position: int) -> float:
        """The variance of the rewards, estimated from the parts in which they came.

        Of single observations it is their mean square less their squared mean. A part of n observations, received as
        a sum, weighs as much as one: n times the squared distance of its mean from the true mean is, on average, the
        variance.
        """
        scatter = self._squares[position] - self.total[position] * self.mean[position]
        return max(0.0, scatter / self._n_parts[position])

    def __len__(self) -> int:
        return len(self.count)
