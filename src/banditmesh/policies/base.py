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

The first pulls of an agent, one of each arm in arm-set order, come before any policy is asked; with
`first_pulls="unknown"` only pulls of arms of which nothing is known do. What an agent forgets of what it has seen and
heard is said by the policy's *memory*, see `memory`.

What policies may know of arms is in `Arms`: no network and no problem is needed to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from .. import checks
from ..arms import BERNOULLI
from ..errors import InputError
from .estimates import Arms, Estimates
from .memory import Everything, Memory

if TYPE_CHECKING:
    from ..problem import Problem

__all__ = ["Arms", "Chooser", "Estimates", "Policy", "first_highest"]

#: Which arms are pulled before the policy is asked: each once, or those of which nothing is known.
FIRST_PULLS: Final = ("each", "unknown")
EVERYTHING: Final = Everything()


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

    def choose(self, clock: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
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

    Parameters
    ----------
    memory : Memory
        What agents forget: `Everything()`, that is nothing, `Discount(gamma)` or `Window(rounds)`.
    first_pulls : str
        "each": an agent pulls each of its arms once before the policy is asked, as in the paper. "unknown": it does so
        only with arms of which it has heard nothing by then.

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

    _: KW_ONLY
    memory: Memory = EVERYTHING
    first_pulls: str = "each"

    name: ClassVar[str] = "policy"
    #: Whether `index` uses its random number `u`. If not, none is drawn and `u` is 0.
    random: ClassVar[bool] = False
    #: Whether counts and sums are all that it needs; False for a policy that asks for `Estimates.variance`.
    counts_and_sums: ClassVar[bool] = True
    #: Whether it must know the sigma of every arm but coins.
    needs_sigmas: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__repr__" not in vars(cls):
            # A dataclass keeps a repr that is there; its own would begin with what is seldom given.
            own: Any = cls
            own.__repr__ = Policy.__repr__

    def __post_init__(self) -> None:
        self.check_memory()

    def __repr__(self) -> str:
        """Its own fields first; memory and first pulls only where they are not the usual ones."""
        usual = {one.name: one.default for one in fields(Policy)}
        shown = [one for one in fields(self) if one.repr and one.name not in usual]
        shown += [one for one in fields(Policy) if getattr(self, one.name) != one.default]
        return f"{type(self).__qualname__}({', '.join(f'{one.name}={getattr(self, one.name)!r}' for one in shown)})"

    def check_memory(self) -> None:
        """Refuse a memory that it cannot have, and first pulls that there are not."""
        checks.choice("first_pulls", self.first_pulls, FIRST_PULLS)
        if not isinstance(self.memory, Memory):
            raise InputError(f"memory must be a memory such as Discount(0.995), got {checks.shown(self.memory)}")
        if not self.memory.forgets:
            return
        if not self.counts_and_sums:
            raise InputError(
                f"policy {self.name!r} needs the variance of rewards, which {self.memory!r} does not keep; "
                "use Everything(), or another policy such as UCB()"
            )
        if type(self).chooser is not Policy.chooser:
            raise InputError(
                f"policy {self.name!r} keeps what it knows itself, so that {self.memory!r} has no effect on it; "
                "use Everything(), or another policy such as UCB()"
            )

    @property
    def label(self) -> str:
        """Its name, and that of its memory with its parameters unless it forgets nothing: "ucb+discount(0.995)"."""
        return f"{self.name}+{self.memory.label}" if self.memory.forgets else self.name

    @property
    def parameter(self) -> float:
        """The one number that `clock` and `index` are given."""
        return 0.0

    def require(self, arms: Arms) -> None:
        """Refuse arms that the policy cannot be used on: if it needs sigmas, those without one, unless they are coins.

        Raises
        ------
        InputError
            What was required, what came and what to do.
        """
        for name, sigma, law in zip(*arms, strict=True):
            if self.needs_sigmas and math.isnan(sigma) and law != BERNOULLI:
                raise InputError(
                    f"policy {self.name!r} must know the sigma of every arm, got none for arm {name!r}; "
                    "give it a law with a sigma, or choose another policy"
                )

    def check(self, problem: Problem) -> None:
        """Refuse, before a run begins, a problem that the policy cannot be used on: unless overridden, for its arms."""
        self.require(Arms(problem.arms, problem.sigmas.tolist(), problem.law_codes.tolist()))

    def chooser(self, arms: Arms) -> Chooser:
        """What chooses for one agent that has these arms; one that keeps nothing, unless overridden."""
        return Chooser(self, arms)

    @staticmethod
    def clock(t: float, parameter: float) -> float:
        """What the index needs of the round, computed once; 0 unless a policy says otherwise.

        With a memory that forgets, `t` is how many rounds still count, which need not be an integer.
        """
        return 0.0

    @staticmethod
    def index(
        mean: float, count: float, inv_root: float, clock: float, sigma: float, law: int, u: float, parameter: float
    ) -> float:
        """The arm's index: the highest is pulled.

        Parameters
        ----------
        mean, count : float
            Mean and number of the observations that the agent has of the arm, its own and received ones. With a memory
            that forgets, the number is the sum of their weights, and may be below 1.
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

    def index_at(self, t: float, estimates: Estimates, position: int) -> float | None:
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

    def choose(self, t: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The position, in the agent's arm set, of the arm to pull in round `t`.

        Parameters
        ----------
        t : float
            What the clock reads: the round, or one less by the published rules; of that, what the memory counts.
        estimates : Estimates
            What the agent knows of its arms; every arm has at least one observation.
        draw : callable
            `draw(position)` is a number in (0, 1) for this agent, round and arm.
        """
        parameter = self.parameter
        clock, index_of, random, u = self.clock(t, parameter), self.index, self.random, 0.0
        known = zip(estimates.mean, estimates.count, estimates.inv_root, estimates.sigma, estimates.law, strict=True)
        best, best_index = 0, -math.inf
        for position, (mean, count, inv_root, sigma, law) in enumerate(known):
            if random:
                u = draw(position)
            index = index_of(mean, count, inv_root, clock, sigma, law, u, parameter)
            if index > best_index:
                best, best_index = position, index
        return best


def first_highest(scores: Sequence[float]) -> int:
    """The position of the highest score, the first of equals."""
    return max(range(len(scores)), key=lambda position: scores[position])
