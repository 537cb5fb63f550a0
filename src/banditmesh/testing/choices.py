"""What is required of choices: an existing arm, from what the agent knows and draws alone.

Choices come from choosers, as for agents; a policy that keeps nothing has one that calls the policy itself. A policy's
own chooser keeps something for its agent: for that one alone, and so that it can be stored and restored.
"""

from __future__ import annotations

import itertools
import json
import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import checks
from ..arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from ..errors import ContractError, InputError
from ..lookup.own import in_words
from ..policies import Arms, Chooser, Estimates, Policy, Source

#: Kinds of laws, each with a sigma.
LAWS: Final = ((GAUSSIAN, 1.0), (BERNOULLI, 0.5), (UNIFORM, 0.25), (OTHER, 2.0))
#: How many rounds of an agent's life a chooser goes through, and after how many its state is stored: a prime number, or
#: a cyclic state might be back where it started.
_ROUNDS: Final = 120
_STORED: Final = 43


class _VarianceAsked(Exception):
    """A policy used more than counts and sums."""


class _WithoutVariance(Estimates):
    """Estimates with counts and sums only."""

    def variance(self, position: int) -> float:
        raise _VarianceAsked


class _Agent:
    """An agent's use of a chooser: it tells it everything, and asks it for arms."""

    def __init__(self, subject: str, policy: Policy, n_arms: int, law: int) -> None:
        self._subject = subject
        sigmas, laws = [dict(LAWS)[law]] * n_arms, [law] * n_arms
        self.n_arms = n_arms
        self.estimates = (_WithoutVariance if policy.counts_and_sums else Estimates)(sigmas, laws)
        self.chooser = self._guarded("chooser()", f"{n_arms} arms", policy.chooser, Arms(range(n_arms), sigmas, laws))
        if not isinstance(self.chooser, Chooser):
            raise ContractError(
                f"chooser() of {subject} must return a Chooser, got {checks.shown(self.chooser)}; "
                "derive its class from banditmesh.policies.Chooser"
            )
        self.chooser.agent = 0

    def observe(self, position: int, reward: float) -> None:
        self.estimates.add(position, 1, reward)
        self._guarded("observe()", f"position {position}", self.chooser.observe, position, reward)

    def hear(self, position: int, count: int, total: float) -> None:
        self.estimates.add(position, count, total)
        source = Source(origin=1, age=count)
        self._guarded("hear()", f"position {position}", self.chooser.hear_from, position, count, total, source)

    def wants_to_send(self) -> list[int]:
        """Which arms others should hear about; checks that they are arms, and that asking changes nothing."""
        before = self.stored()
        answer = self._guarded("wants_to_send()", "any round", lambda: list(self.chooser.wants_to_send()))
        if not all(_is_position(position, self.n_arms) for position in answer):
            raise ContractError(
                f"wants_to_send() of {self._subject} must give positions of arms, 0 to {self.n_arms - 1}, got "
                f"{checks.shown(answer)}"
            )
        self._check_unchanged("wants_to_send()", before)
        return sorted(answer)

    def choose(self, t: int, draws: list[float], where: object) -> tuple[int, int]:
        """Which arm is chosen, and how often it drew; checks that it is an arm, and that estimates are left alone."""
        subject, n_arms = self._subject, self.n_arms
        n_draws = 0

        def draw(position: int) -> float:
            nonlocal n_draws
            n_draws += 1
            if not _is_position(position, n_arms):
                raise ContractError(
                    f"{subject} must draw for the position of an arm, 0 to {n_arms - 1}, got draw({position!r}) with "
                    f"{n_arms} arms"
                )
            return draws[position]

        before = repr(vars(self.estimates))
        chosen = self._guarded("choose()", where, self.chooser.choose, t, self.estimates, draw)
        if not _is_position(chosen, n_arms):
            raise ContractError(
                f"choose() of {subject} must return the position of an arm, 0 to {n_arms - 1}, got "
                f"{checks.shown(chosen)} for {where}"
            )
        if not (repr(vars(self.estimates)) == before):
            raise ContractError(
                f"choose() of {subject} must leave the agent's estimates alone, got others than before for {where}"
            )
        return int(chosen), n_draws

    def is_best(self, position: int) -> bool:
        """What `is_best` says about an arm; checks that it says yes or no, and changes nothing."""
        before = self.stored()
        answer = self._guarded("is_best()", f"position {position}", self.chooser.is_best, position, self.estimates)
        if not isinstance(answer, bool | np.bool_):
            raise ContractError(f"is_best() of {self._subject} must be True or False, got {checks.shown(answer)}")
        self._check_unchanged("is_best()", before)
        return bool(answer)

    def _check_unchanged(self, method: str, before: str) -> None:
        if self.stored() != before:
            raise ContractError(
                f"{method} of {self._subject} must leave the chooser's state alone, got another state: emissions "
                "that do not ask it would lead to other choices"
            )

    def stored(self) -> str:
        """The chooser's state, as it would be stored."""
        try:
            return json.dumps(self.chooser.state)
        except InputError as error:
            raise ContractError(f"the chooser of {self._subject} must offer its state: {error}") from None
        except (TypeError, ValueError) as error:
            raise ContractError(
                f"the state of a chooser of {self._subject} must be lists, texts and numbers, got {error}"
            ) from None

    def take_over(self, other: _Agent) -> None:
        """Continue from another agent's stored state."""
        self.estimates.state = json.loads(json.dumps(other.estimates.state))
        try:
            self.chooser.state = json.loads(other.stored())
        except Exception as error:
            raise ContractError(
                f"a chooser of {self._subject} must take back its state, got {in_words(error)}; give `state` a setter"
            ) from error

    def _guarded(self, method: str, where: object, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ContractError:
            raise
        except _VarianceAsked:
            raise ContractError(
                f"{self._subject} must say that it needs more than counts and sums, got counts_and_sums = True "
                f"although {method} asks for Estimates.variance; set counts_and_sums = False"
            ) from None
        except Exception as error:
            raise ContractError(
                f"{method} of {self._subject} must answer in every round, got {in_words(error)} for {where}"
            ) from error


@dataclass(frozen=True)
class _Question:
    """A round, what an agent knows in it, and what it draws for each arm."""

    t: int
    counts: list[int]
    means: list[float]
    law: int
    draws: list[float]

    def asked_of(self, subject: str, policy: Policy) -> tuple[int, int]:
        """Which arm is chosen, and how often the policy drew."""
        agent = _Agent(subject, policy, len(self.counts), self.law)
        for position, (count, mean) in enumerate(zip(self.counts, self.means, strict=True)):
            # An own observation, and what was received: a sum of several.
            agent.observe(position, mean)
            if count > 1:
                agent.hear(position, count - 1, (count - 1) * mean)
        return agent.choose(self.t, self.draws, self)


def check_choices(subject: str, policy: Policy) -> None:
    """The same arm is chosen whenever the same is known."""
    questions = list(_questions())
    first = [question.asked_of(subject, policy)[0] for question in questions]
    again = [question.asked_of(subject, policy)[0] for question in reversed(questions)][::-1]
    for question, one, other in zip(questions, first, again, strict=True):
        if one != other:
            raise ContractError(
                f"choose() of {subject} must choose the same arm when it is given the same, got {one} and then "
                f"{other} for {question}; use draw() for what is random, and keep no state"
            )


def check_ties(subject: str, policy: Policy) -> None:
    """The first of equal arms is pulled, unless draws or the round itself decide."""
    for n_arms, (law, _) in itertools.product((2, 5), LAWS):
        asked = [
            _Question(t, [4] * n_arms, [0.5] * n_arms, law, [0.5] * n_arms).asked_of(subject, policy)
            for t in (n_arms, n_arms + 1, n_arms + 2, 100, 101)
        ]
        chosen = {position for position, _ in asked}
        if len(chosen) == 1 and chosen != {0} and not any(n_draws for _, n_draws in asked):
            raise ContractError(
                f"choose() of {subject} must take the first of equal arms, got position {chosen.pop()} of {n_arms}; "
                "compare with >, not with >="
            )


def check_chooser(subject: str, policy: Policy) -> None:
    """A chooser's state belongs to its agent alone, and is stored and restored in full."""
    for n_arms, (law, _) in itertools.product((1, 2, 5), LAWS):
        # All are made before any of them is used, so that shared state shows.
        one, other, stranger, later = (_Agent(subject, policy, n_arms, law) for _ in range(4))
        if one.chooser is other.chooser:
            raise ContractError(
                f"chooser() of {subject} must make a chooser for each agent, got the same one twice; "
                "keep none in the policy or its class"
            )
        chosen = [_live(one, t, 0) for t in range(_STORED)]
        later.take_over(one)
        chosen += [_live(one, t, 0) for t in range(_STORED, _ROUNDS)]
        # Alongside an agent that sees other things.
        beside = [(_live(other, t, 0), _live(stranger, t, 1))[0] for t in range(_ROUNDS)]
        if beside != chosen:
            raise ContractError(
                f"two choosers of {subject} must choose the same for agents that observe, hear and draw the same, got "
                "other choices; share nothing between choosers, and use draw() for what is random"
            )
        if [_live(later, t, 0) for t in range(_STORED, _ROUNDS)] != chosen[_STORED:]:
            raise ContractError(
                f"a chooser of {subject} must continue from a restored state as if nothing had happened, got "
                "other choices; let `state` hold all that it keeps, and its setter put all of it back"
            )


def _live(agent: _Agent, t: int, life: int) -> tuple[int, bool, list[int]]:
    """What an agent chooses in a round of its life, whether it takes that to be best, and what it wants to send."""
    n_arms = agent.n_arms
    rng = np.random.default_rng([n_arms, life, t])
    draws, rewards = rng.uniform(0.001, 0.999, n_arms).tolist(), (rng.uniform(size=n_arms) < 0.5).tolist()
    position, is_best = t, False
    if t >= n_arms:
        position, _ = agent.choose(t + 1, draws, f"round {t + 1} of an agent with {n_arms} arms")
        is_best = agent.is_best(position)
    agent.observe(position, float(rewards[position]))
    if t % 3 == 0:
        count = int(rng.integers(1, 4))
        agent.hear(int(rng.integers(n_arms)), count, float(rng.integers(count + 1)))
    return position, is_best, agent.wants_to_send()


def _questions() -> Iterator[_Question]:
    rng = np.random.default_rng(0)
    for n_arms, (law, _), late in itertools.product((1, 2, 3, 7), LAWS, (0, 1, 40, 10**6)):
        for _ in range(3):
            counts = rng.integers(1, 40, n_arms).tolist()
            means = rng.uniform(0.0, 1.0, n_arms).tolist()
            yield _Question(n_arms + late, counts, means, law, rng.uniform(0.001, 0.999, n_arms).tolist())


def _is_position(answer: object, n_arms: int) -> bool:
    return not isinstance(answer, bool) and isinstance(answer, numbers.Integral) and 0 <= int(answer) < n_arms
