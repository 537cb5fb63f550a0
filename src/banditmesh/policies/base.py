"""What a policy is: a rule that chooses an arm from an agent's estimates.

A policy is an immutable value: what an agent has learned lives in its `Estimates`. The usual policy is an *index
policy*: two pure scalar functions, written as static methods,

    clock(t, parameter) -> float                                            once a round
    index(mean, count, inv_root, clock, sigma, law, u, parameter) -> float  once an arm

and the arm with the highest index is pulled, ties going to the first in arm-set order. Functions that use only
arithmetic and `math` also run compiled, unchanged. A policy that is not of this form overrides `choose`; one that keeps
something for each agent overrides `chooser`. Both run on the reference engine.

A subclass with fields of its own is a frozen dataclass itself: otherwise equality and repr know nothing of them, and
two policies that differ in them count as the same. Compiled, a division by zero gives inf or nan instead of an
exception; so a rule should be defined for all its inputs.

The first pulls of an agent, one of each arm in arm-set order, come before any policy is asked.

What policies may know of arms is in `Arms`: no network and no problem is needed to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ..arms import BERNOULLI, GAUSSIAN
from ..errors import InputError

if TYPE_CHECKING:
    from ..problem import Problem


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
        self.count = [0] * n_arms
        self.total = [0.0] * n_arms
        self.mean = [0.0] * n_arms
        self.inv_root = [0.0] * n_arms
        self._squares = [0.0] * n_arms
        self._n_parts = [0] * n_arms

    def add(self, position: int, count: int, total: float) -> None:
        """Add `count` observations whose rewards sum to `total`."""
        self.change(position, count, total, total * total / count, 1)

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


class Source(NamedTuple):
    """Where something that an agent hears comes from.

    Attributes
    ----------
    origin : hashable
        The agent that tells of its pulls, or the neighbour that sums up others' along a tree; None if that is unknown.
    age : int or None
        How many rounds ago the message was made, 0 for the round that ends; None if that is unknown, as it is where
        statistics of several agents are summed up.

    Examples
    --------
    >>> Source(origin="ann", age=2).age
    2
    """

    origin: Any
    age: int | None


class Chooser:
    """Chooses for one agent, by a policy that keeps nothing.

    A policy whose algorithm keeps something for each agent derives a class from this one, and returns an instance from
    `Policy.chooser`. It gets every observation of its agent and everything that the agent hears.

    Parameters
    ----------
    policy : Policy
    arms : Arms
        The agent's arms.

    Attributes
    ----------
    agent : hashable
        What its agent is called, as in `Source.origin`; in simulations, the agent's number. None until it has one.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.policies import Arms, Chooser, Estimates
    >>> class Stubborn(Chooser):
    ...     def choose(self, clock, estimates, draw):
    ...         return 0
    >>> Stubborn(bm.UCB(), Arms.gaussian(["red", "blue"], 1.0)).choose(1, Estimates([1.0] * 2, [0] * 2), None)
    0
    """

    agent: Any = None

    def __init__(self, policy: Policy, arms: Arms) -> None:
        self.policy = policy
        self.arms = arms

    def choose(self, clock: int, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The position of the arm to pull, as `Policy.choose`."""
        return self.policy.choose(clock, estimates, draw)

    def is_best(self, position: int, estimates: Estimates) -> bool:
        """Whether the arm just chosen seems the best: unless overridden, if it is the first with the highest mean."""
        return first_highest(estimates.mean) == position

    def observe(self, position: int, reward: float) -> None:
        """The agent observed a reward of its own."""

    def hear(self, position: int, count: int, total: float) -> None:
        """The agent learned of others' pulls of an arm: how many more, and what they add to the sum of rewards."""

    def hear_from(self, position: int, count: int, total: float, source: Source) -> None:
        """The same, and from where it comes; unless overridden, this is `hear`."""
        self.hear(position, count, total)

    def wants_to_send(self) -> Collection[int]:
        """The positions of arms that the agent should tell others of; none unless overridden.

        It is asked after each pull of which the emission tells nothing. The agent then tells of one of these arms, of
        which it has something new to tell: the one that it told of least recently. A count and sum can always be told;
        of single observations only the one just made. Along a tree it is asked whenever statistics are sent.
        """
        return ()

    @property
    def state(self) -> Any:
        """What is kept, as lists, texts and numbers; to be overridden, with its setter, where something is."""
        if type(self) is not Chooser:
            raise InputError(f"{type(self).__name__} must offer its state, to be read and put back, got none")
        return None

    @state.setter
    def state(self, value: Any) -> None:
        pass


@dataclass(frozen=True)
class Policy:
    """The base of all policies.

    A subclass gives `clock` and `index` as static methods, or overrides `choose` or `chooser`.

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
    #: Whether counts and sums are all that it needs; False for a policy that asks for `Estimates.variance`.
    counts_and_sums: ClassVar[bool] = True

    @property
    def parameter(self) -> float:
        """The one number that `clock` and `index` are given."""
        return 0.0

    def require(self, arms: Arms) -> None:
        """Refuse arms that the policy cannot be used on; unless overridden, none.

        Raises
        ------
        InputError
            What was required, what came and what to do.
        """

    def check(self, problem: Problem) -> None:
        """Refuse, before a run begins, a problem that the policy cannot be used on: unless overridden, for its arms."""
        self.require(Arms(problem.arms, problem.sigmas.tolist(), problem.law_codes.tolist()))

    def chooser(self, arms: Arms) -> Chooser:
        """What chooses for one agent that has these arms; one that keeps nothing, unless overridden."""
        return Chooser(self, arms)

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

    def index_at(self, t: int, estimates: Estimates, position: int) -> float | None:
        """The index of an arm of which something is known, in round `t`; None if it is drawn, or there is none."""
        if self.random or type(self).choose is not Policy.choose:
            return None
        parameter = self.parameter
        return self.index(
            estimates.mean[position],
            estimates.count[position],
            estimates.inv_root[position],
            self.clock(t, parameter),
            estimates.sigma[position],
            estimates.law[position],
            0.0,
            parameter,
        )

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


def require_sigmas(policy: Policy, arms: Arms) -> None:
    """Refuse arms, other than coins, whose laws have no sigma."""
    for name, sigma, law in zip(*arms, strict=True):
        if math.isnan(sigma) and law != BERNOULLI:
            raise InputError(
                f"policy {policy.name!r} must know the sigma of every arm, got none for arm {name!r}; "
                "give it a law with a sigma, or choose another policy"
            )
