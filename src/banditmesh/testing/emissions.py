"""The contract of an emission."""

from __future__ import annotations

import itertools
from typing import Final

from .. import checks
from ..errors import ContractError
from ..policies import UCB
from ..protocols import Emission, Flooding, FwA, Gossip
from .cases import cases
from .report import Report
from .runs import Trial, check_books, check_learned_once, check_sameness
from .scalars import Rule, check_honest
from .values import Unchanged, check_flags, check_frozen_value, check_kind, check_name, check_parameter, check_pickle

_ARGUMENTS: Final = ("own_count", "sent_count", "is_best", "parameter")
_COUNTS: Final = (*range(1, 25), 99, 100, 101, 1000, 1001, 10**6)


def check_emission(emission: Emission, *, deep: bool = False, compiled: bool = True) -> Report:
    """Check that an emission keeps the contract that engines and results rely on.

    Parameters
    ----------
    emission : Emission
        An instance, with the parameters that it will be used with.
    deep : bool
        Whether to run it on more and larger networks as well.
    compiled : bool
        Whether to compare the engines as well. Your own emission is compiled for that, which takes about ten seconds
        for each rule set.

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
    >>> print(bm.testing.check_emission(bm.Growth(0.25), compiled=False))
    emission 'growth': 7 checks hold, 0 runs equal on both engines
    """
    subject = check_kind(Emission, emission)
    report, unchanged = Report(subject), Unchanged(subject, emission)
    report.holds("is a frozen value", check_frozen_value, Emission, subject, emission)
    check_flags(subject, emission, {"cumulative": bool, "asks_best": bool, "n_bytes": int})
    if not (emission.n_bytes >= 1):
        raise ContractError(f"n_bytes of {subject} must be at least 1, got {emission.n_bytes}")
    report.holds("has its own name", check_name, Emission, subject, emission)
    report.holds("can be pickled", check_pickle, subject, emission)
    check_parameter(subject, emission)
    report.holds("has a pure rule that accepts all inputs", _check_sends, subject, emission)
    trials = [
        Trial(subject, relay, UCB())
        for relay in (Flooding(3, emission=emission), FwA(2, emission=emission), Gossip(3, emission=emission))
    ]
    for trial, case in itertools.product(trials, cases(deep)):
        check_books(trial, case)
        check_learned_once(trial, case)
    report.checks += ["balances its books", "never counts an observation twice"]
    check_sameness(trials, report, cases(deep), compiled)
    unchanged.check()
    return report


def _check_sends(subject: str, emission: Emission) -> None:
    rule = Rule(subject, emission, "sends", _ARGUMENTS)
    # An agent is asked after a pull, so it has always pulled more often than it had when it last sent.
    pairs = [(own, sent) for own in _COUNTS for sent in (0, *_COUNTS) if sent < own]
    inputs = [(own, sent, best, emission.parameter) for own, sent in pairs for best in (False, True)]
    answers = rule.answers(inputs)
    for given, answer in zip(inputs, answers, strict=True):
        if type(answer) is not bool:
            raise ContractError(
                f"{rule.label} must return True or False, got {checks.shown(answer)} for {rule.shown(given)}"
            )
    check_honest(rule, "is_best", "asks_best", emission.asks_best, inputs, answers)
    if not any(answers):
        raise ContractError(
            f"{rule.label} must be True for some pull, got False for all; use NoCooperation() for silence"
        )
