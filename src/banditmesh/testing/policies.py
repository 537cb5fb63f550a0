"""What a policy must keep to."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import checks
from ..arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from ..errors import ContractError, InputError
from ..policies import Estimates, Policy
from ..protocols import Flooding, FwA, Growth, NoCooperation
from .cases import NamedProblem, cases, easy, without_sigma
from .report import Report
from .runs import Trial, check_books, check_engines, check_repeats
from .scalars import UNIFORMS, Rule, check_honest
from .values import Unchanged, check_flags, check_frozen_value, check_kind, check_name, check_parameter, check_pickle

_CLOCK: Final = ("t", "parameter")
_INDEX: Final = ("mean", "count", "inv_root", "clock", "sigma", "law", "u", "parameter")
#: By the published rules a clock reads one less than the round, so it may read 1.
_ROUNDS: Final = (1, 2, 3, 10, 1000, 10**6)
_COUNTS: Final = (1, 2, 5, 100, 10**6)
#: Of coins too, means may leave [0, 1]: rewards can be changed on their way.
_MEANS: Final = (-3.0, -0.1, 0.0, 0.25, 0.5, 1.0, 1.1, 40.0)
_LAWS: Final = ((GAUSSIAN, 1.0), (BERNOULLI, 0.5), (UNIFORM, 0.25), (OTHER, 2.0))
#: Of the regret of a policy that draws its arms, no more than this may be left where they are easy to tell apart.
_LEARNS: Final = 0.6


def check_policy(policy: Policy, *, deep: bool = False, compiled: bool = True) -> Report:
    """Check that a policy keeps to what engines and results rely on.

    Parameters
    ----------
    policy : Policy
        An instance, with the parameters that it is to be used with.
    deep : bool
        Whether to run it on more and larger networks as well.
    compiled : bool
        Whether to compare the engines as well. An index of your own is compiled for that, which takes about ten
        seconds for each rule set.

    Returns
    -------
    Report
        What was checked.

    Raises
    ------
    ContractError
        At the first thing that does not hold: one line that says what was required, what came and what to do.

    Examples
    --------
    >>> import banditmesh as bm
    >>> print(bm.testing.check_policy(bm.UCB(alpha=3.0), compiled=False))
    policy 'ucb': 8 checks hold, 0 runs equal on both engines
    """
    subject = check_kind(Policy, policy)
    report, unchanged = Report(subject), Unchanged(subject, policy)
    check_frozen_value(Policy, subject, policy)
    report.checks.append("is a frozen value")
    check_flags(subject, policy, {"random": bool, "counts_and_sums": bool})
    check_name(Policy, subject, policy)
    report.checks.append("has a name of its own")
    check_pickle(subject, policy)
    check_parameter(subject, policy)
    report.checks.append("can be pickled")
    if type(policy).choose is Policy.choose:
        _check_index(subject, policy)
        report.checks.append("has a pure index that answers to all inputs")
    _check_choices(subject, policy)
    _check_ties(subject, policy)
    unchanged.check()
    report.checks.append("chooses arms by what it is given alone, and the first of equals")
    _check_learns(subject, policy)
    report.checks.append("learns")
    trials = [Trial(subject, relay, policy) for relay in (FwA(2), Flooding(3, emission=Growth(0.5)))]
    for trial, case in itertools.product(trials, cases(deep)):
        check_books(trial, case)
    report.checks.append("runs with observations and with received sums")
    check_repeats(trials[0], cases(deep)[-1])
    report.checks.append("gives the same result for the same seed")
    if compiled:
        for trial in trials:
            check_engines(trial, report, cases(deep))
        report.checks.append("gives the same result on both engines")
    unchanged.check()
    return report


def _check_index(subject: str, policy: Policy) -> None:
    parameter = policy.parameter
    clock = Rule(subject, policy, "clock", _CLOCK)
    clocks = clock.answers([(t, parameter) for t in _ROUNDS])
    for t, answer in zip(_ROUNDS, clocks, strict=True):
        if not (_is_number(answer) and math.isfinite(answer)):
            raise ContractError(
                f"{clock.label} must be a finite number in every round, got {checks.shown(answer)} for t={t}"
            )
    rule = Rule(subject, policy, "index", _INDEX)
    inputs = [
        (mean, count, 1.0 / math.sqrt(count), now, sigma, law, u, parameter)
        for mean, count, now, (law, sigma), u in itertools.product(_MEANS, _COUNTS, clocks, _LAWS, (*UNIFORMS, 0.0))
        if u > 0.0 or not policy.random
    ]
    answers = rule.answers(inputs)
    for given, answer in zip(inputs, answers, strict=True):
        if not (_is_number(answer) and answer > -math.inf):
            raise ContractError(
                f"{rule.label} must be a number above -inf, or its arm is never pulled, got {checks.shown(answer)} for "
                f"{rule.shown(given)}"
            )
    check_honest(rule, "u", "random", policy.random, inputs, answers)
    _check_needs_sigma(rule, policy, [(*given[:4], math.nan, OTHER, *given[6:]) for given in inputs])


def _check_needs_sigma(rule: Rule, policy: Policy, inputs: list[tuple[Any, ...]]) -> None:
    """An index that needs a sigma refuses arms without one, instead of never pulling them."""
    if all(_is_number(answer) for answer in rule.answers(inputs)):
        return
    try:
        policy.check(without_sigma())
    except InputError:
        return
    raise ContractError(
        f"{rule.label} must be a number, or its arm is never pulled, got nan for an arm whose law has no sigma; "
        "do without sigma, or override check() to refuse such problems"
    )


def _is_number(answer: object) -> bool:
    return not isinstance(answer, bool) and isinstance(answer, numbers.Real) and not math.isnan(answer)


def _is_position(answer: object, n_arms: int) -> bool:
    return not isinstance(answer, bool) and isinstance(answer, numbers.Integral) and 0 <= int(answer) < n_arms


class _VarianceAsked(Exception):
    """A policy asked for more than counts and sums."""


class _WithoutVariance(Estimates):
    """Estimates of which counts and sums alone are known."""

    def variance(self, position: int) -> float:
        raise _VarianceAsked


@dataclass(frozen=True)
class _Question:
    """A round, what an agent knows in it, and what it draws for each arm."""

    t: int
    counts: list[int]
    means: list[float]
    law: int
    draws: list[float]

    def asked_of(self, subject: str, policy: Policy) -> tuple[int, int]:
        """Which arm the policy chooses, and how often it drew; that it is an arm, and estimates are left alone."""
        n_arms = len(self.counts)
        n_draws = 0

        def draw(position: int) -> float:
            nonlocal n_draws
            n_draws += 1
            if not _is_position(position, n_arms):
                raise ContractError(
                    f"{subject} must draw for the position of an arm, 0 to {n_arms - 1}, got draw({position!r}) with "
                    f"{n_arms} arms"
                )
            return self.draws[position]

        estimates = self._estimates(_WithoutVariance if policy.counts_and_sums else Estimates)
        before = repr(vars(estimates))
        try:
            chosen = policy.choose(self.t, estimates, draw)
        except ContractError:
            raise
        except _VarianceAsked:
            raise ContractError(
                f"{subject} must say that it needs more than counts and sums, got counts_and_sums = True although "
                "choose() asks for Estimates.variance; set counts_and_sums = False"
            ) from None
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise ContractError(f"choose() of {subject} must choose in every round, got {what} for {self}") from error
        if not _is_position(chosen, n_arms):
            raise ContractError(
                f"choose() of {subject} must return the position of an arm, 0 to {n_arms - 1}, got "
                f"{checks.shown(chosen)} for {self}"
            )
        if not (repr(vars(estimates)) == before):
            raise ContractError(
                f"choose() of {subject} must leave the agent's estimates alone, got others than before for {self}"
            )
        return int(chosen), n_draws

    def _estimates(self, kind: type[Estimates]) -> Estimates:
        sigma = dict(_LAWS)[self.law]
        estimates = kind([sigma] * len(self.counts), [self.law] * len(self.counts))
        for position, (count, mean) in enumerate(zip(self.counts, self.means, strict=True)):
            # An own observation, and what was received: a sum of several.
            estimates.add(position, 1, mean)
            if count > 1:
                estimates.add(position, count - 1, (count - 1) * mean)
        return estimates


def _questions() -> Iterator[_Question]:
    rng = np.random.default_rng(0)
    for n_arms, (law, _), late in itertools.product((1, 2, 3, 7), _LAWS, (0, 1, 40, 10**6)):
        for _ in range(3):
            counts = rng.integers(1, 40, n_arms).tolist()
            means = rng.uniform(0.0, 1.0, n_arms).tolist()
            yield _Question(n_arms + late, counts, means, law, rng.uniform(0.001, 0.999, n_arms).tolist())


def _check_choices(subject: str, policy: Policy) -> None:
    questions = list(_questions())
    first = [question.asked_of(subject, policy)[0] for question in questions]
    again = [question.asked_of(subject, policy)[0] for question in reversed(questions)][::-1]
    for question, one, other in zip(questions, first, again, strict=True):
        if one != other:
            raise ContractError(
                f"choose() of {subject} must choose the same arm when it is given the same, got {one} and then "
                f"{other} for {question}; use draw() for what is random, and keep no state"
            )


def _check_ties(subject: str, policy: Policy) -> None:
    """Of equal arms the first is pulled, unless draws or the round itself decide."""
    for n_arms, (law, _) in itertools.product((2, 5), _LAWS):
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


def _check_learns(subject: str, policy: Policy) -> None:
    problem, horizon = easy(), 400
    result = Trial(subject, NoCooperation(), policy).run(
        NamedProblem("three coins", problem), horizon=horizon, replicates=5, record_every=horizon
    )
    regret, drawn = float(result.regret[:, -1].mean()), horizon * float(problem.gaps.mean())
    if regret > _LEARNS * drawn:
        raise ContractError(
            f"{subject} must learn: on coins of 0.1, 0.9 and 0.2 its regret must be at most {_LEARNS * drawn:.0f} "
            f"after {horizon} rounds, got {regret:.0f}; drawing arms at random has {drawn:.0f}"
        )
