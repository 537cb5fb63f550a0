"""What a policy is: a rule that chooses an arm from an agent's estimates.

A policy is an immutable value without state of its own: what an agent has learned lives in its `Estimates`. The
usual policy is an *index policy*: two pure scalar functions, written as static methods,

    clock(t, parameter) -> float                                            once a round
    index(mean, count, inv_root, clock, sigma, law, u, parameter) -> float  once an arm

and the arm with the highest index is pulled, ties going to the first in arm-set order. Functions that use only
arithmetic and `math` also run compiled, unchanged. A policy that is not of this form overrides `choose` and runs on
the reference engine.

A subclass with fields of its own is a frozen dataclass itself: otherwise equality and repr know nothing of them, and
two policies that differ in them count as the same. Compiled, a division by zero gives inf or nan instead of an
exception; so a rule should be defined for all its inputs.

The first pulls of an agent, one of each arm in arm-set order, come before any policy is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..arms import BERNOULLI
from ..errors import InputError

if TYPE_CHECKING:
    from ..problem import Problem


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
        self.count = [0] * n_arms
        self.total = [0.0] * n_arms
        self.mean = [0.0] * n_arms
        self.inv_root = [0.0] * n_arms
        self._squares = [0.0] * n_arms
        self._n_parts = [0] * n_arms

    def add(self, position: int, count: int, total: float) -> None:
        """Add `count` observations whose rewards sum to `total`."""
        self.count[position] += count
        self.total[position] += total
        self.mean[position] = self.total[position] / self.count[position]
        self.inv_root[position] = 1.0 / math.sqrt(self.count[position])
        self._squares[position] += total * total / count
        self._n_parts[position] += 1

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


@dataclass(frozen=True)
class Policy:
    """The base of all policies.

    A subclass gives `clock` and `index` as static methods, or overrides `choose`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> class Greedy(bm.Policy):
    ...     name = "greedy"
    ...     @staticmethod
    ...     def index(mean, count, inv_root, clock, sigma, law, u, parameter):
    ...         return mean
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> bm.simulate(problem, bm.IRS(), policy=Greedy(), horizon=30, seed=0).policy
    'greedy'
    """

    name: ClassVar[str] = "policy"
    #: Whether `index` uses its random number `u`. If not, none is drawn and `u` is 0.
    random: ClassVar[bool] = False

    @property
    def parameter(self) -> float:
        """The one number that `clock` and `index` are given."""
        return 0.0

    def check(self, problem: Problem) -> None:
        """Refuse, before a run begins, a problem that the policy cannot be used on; unless overridden, none.

        Raises
        ------
        InputError
            What was required, what came and what to do.
        """

    @staticmethod
    def clock(t: int, parameter: float) -> float:
        """What the index needs of the round, computed once; 0 unless a policy says otherwise."""
        return 0.0

    @staticmethod
    def index(
        mean: float, count: int, inv_root: float, clock: float, sigma: float, law: int, u: float, parameter: float
    ) -> float:
        """The arm's index: the highest is pulled.

        Parameters
        ----------
        mean, count : float, int
            Mean and number of the observations that the agent has of the arm, its own and received ones.
        inv_root : float
            `1 / sqrt(count)`.
        clock : float
            The value of `clock` in this round.
        sigma : float
            The sub-Gaussian parameter of the arm's law; nan where it has none.
        law : int
            The kind of the arm's law: `GAUSSIAN`, `BERNOULLI`, `UNIFORM` or `OTHER` of `banditmesh.arms`.
        u : float
            A number in (0, 1) drawn for this agent, round and arm, if `random`; else 0.
        parameter : float
            The policy's `parameter`.
        """
        raise NotImplementedError("a policy gives index() as a static method, or overrides choose()")

    def choose(self, t: int, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The position, in the agent's arm set, of the arm to pull in round `t`.

        Parameters
        ----------
        t : int
            What the clock reads: the round, or one less by the published rules.
        estimates : Estimates
            What the agent knows of its arms; every arm has at least one observation.
        draw : callable
            `draw(position)` is a number in (0, 1) for this agent, round and arm.
        """
        parameter = self.parameter
        clock = self.clock(t, parameter)
        best, best_index = 0, -math.inf
        for position in range(len(estimates)):
            index = self.index(
                estimates.mean[position],
                estimates.count[position],
                estimates.inv_root[position],
                clock,
                estimates.sigma[position],
                estimates.law[position],
                draw(position) if self.random else 0.0,
                parameter,
            )
            if index > best_index:
                best, best_index = position, index
        return best


def first_highest(scores: Sequence[float]) -> int:
    """The position of the highest score, the first of equals."""
    return max(range(len(scores)), key=lambda position: scores[position])


def require_sigmas(policy: Policy, problem: Problem) -> None:
    """Refuse a problem with an arm, other than a coin, whose law has no sigma."""
    lacking = np.flatnonzero(np.isnan(problem.sigmas) & (problem.law_codes != BERNOULLI))
    if lacking.size:
        arm = int(lacking[0])
        raise InputError(
            f"policy {policy.name!r} must know the sigma of every arm, got none for arm {problem.arms[arm]!r} with the "
            f"law {problem.laws[arm]!r}; give it a law with a sigma, or choose another policy"
        )
