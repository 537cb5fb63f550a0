"""The contract of a policy."""

from __future__ import annotations

import itertools
import math
import numbers
from typing import Any, Final

from .. import checks
from ..arms import OTHER
from ..errors import ContractError, InputError
from ..policies import Policy
from ..protocols import Contested, Flooding, FwA, Growth, NoCooperation
from .cases import NamedProblem, cases, easy, without_sigma
from .choices import LAWS, check_choices, check_chooser, check_ties
from .report import Report
from .runs import Trial, check_books, check_sameness
from .scalars import UNIFORMS, Rule, check_honest
from .values import Unchanged, check_flags, check_frozen_value, check_kind, check_name, check_parameter, check_pickle

_CLOCK: Final = ("t", "parameter")
_INDEX: Final = ("mean", "count", "inv_root", "clock", "sigma", "law", "u", "parameter")
#: Under the published rules a clock reads one less than the round, so it may read 1.
_ROUNDS: Final = (1, 2, 3, 10, 1000, 10**6)
_COUNTS: Final = (1, 2, 5, 100, 10**6)
#: Means may leave [0, 1] even for coins: rewards can be changed on their way.
_MEANS: Final = (-3.0, -0.1, 0.0, 0.25, 0.5, 1.0, 1.1, 40.0)
#: The most regret, as a share of that of random choices, where arms are easy to tell apart.
_LEARNS: Final = 0.6
#: After how many rounds; with a chooser later, since those that eliminate arms pull all of them equally at first.
_LEARNED: Final = 400
_LEARNED_WITH_CHOOSER: Final = 1000


def check_policy(policy: Policy, *, deep: bool = False, compiled: bool = True) -> Report:
    """Check that a policy keeps the contract that engines and results rely on.

    Parameters
    ----------
    policy : Policy
        An instance, with the parameters that it will be used with.
    deep : bool
        Whether to run it on more and larger networks as well.
    compiled : bool
        Whether to compare the engines as well. Your own index is compiled for that, which takes about ten seconds for
        each rule set.

    Returns
    -------
    Report
        What was checked.

    Raises
    ------
    ContractError
        At the first failure: one line that says what was required, what came and what to do.

    Examples
    --------
    >>> import banditmesh as bm
    >>> print(bm.testing.check_policy(bm.UCB(alpha=3.0), compiled=False))
    policy 'ucb': 8 checks hold, 0 runs equal on both engines
    """
    subject = check_kind(Policy, policy)
    report, unchanged = Report(subject), Unchanged(subject, policy)
    report.holds("is a frozen value", check_frozen_value, Policy, subject, policy)
    check_flags(subject, policy, {"random": bool, "counts_and_sums": bool, "needs_sigmas": bool})
    report.holds("has its own name", check_name, Policy, subject, policy)
    report.holds("can be pickled", check_pickle, subject, policy)
    check_parameter(subject, policy)
    has_chooser = type(policy).chooser is not Policy.chooser
    # A policy with its own chooser need not have an index.
    if type(policy).choose is Policy.choose and not (has_chooser and type(policy).index is Policy.index):
        report.holds("has a pure index that accepts all inputs", _check_index, subject, policy)
    if has_chooser:
        report.holds(
            "keeps each agent's knowledge separate, and continues from its state", check_chooser, subject, policy
        )
    check_choices(subject, policy)
    if not has_chooser:
        # A chooser may depend on what came last, and so take any of equal arms.
        check_ties(subject, policy)
    unchanged.check()
    report.checks.append("chooses arms from its arguments alone" + (", and the first of equals" * (not has_chooser)))
    report.holds("learns", _check_learns, subject, policy, _LEARNED_WITH_CHOOSER if has_chooser else _LEARNED)
    relays = [FwA(2), Flooding(3, emission=Growth(0.5))]
    if has_chooser:
        # An emission that asks which arm is the best.
        relays.append(Flooding(2, emission=Contested()))
    trials = [Trial(subject, relay, policy) for relay in relays]
    for trial, case in itertools.product(trials, cases(deep)):
        check_books(trial, case)
    report.checks.append("runs with observations and with received sums")
    check_sameness(trials, report, cases(deep), compiled)
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
        for mean, count, now, (law, sigma), u in itertools.product(_MEANS, _COUNTS, clocks, LAWS, (*UNIFORMS, 0.0))
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
        "do without sigma, or set needs_sigmas = True"
    )


def _is_number(answer: object) -> bool:
    return not isinstance(answer, bool) and isinstance(answer, numbers.Real) and not math.isnan(answer)


def _check_learns(subject: str, policy: Policy, horizon: int) -> None:
    problem = easy()
    result = Trial(subject, NoCooperation(), policy).run(
        NamedProblem("three coins", problem), horizon=horizon, replicates=5, record_every=horizon
    )
    regret, drawn = float(result.regret[:, -1].mean()), horizon * float(problem.gaps.mean())
    if regret > _LEARNS * drawn:
        raise ContractError(
            f"{subject} must learn: on coins of 0.1, 0.9 and 0.2 its regret must be at most {_LEARNS * drawn:.0f} "
            f"after {horizon} rounds, got {regret:.0f}; drawing arms at random has {drawn:.0f}"
        )
