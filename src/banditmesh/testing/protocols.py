"""The contract of a protocol."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Final

from .. import checks
from ..errors import ContractError, InputError
from ..policies import UCB
from ..protocols import ABSORB, RELAY, STOP, AnyProtocol, Delivery, Growth, Protocol
from ..protocols.base import MAX_TTL
from ..protocols.notation import read
from .cases import cases_for
from .report import Report
from .runs import Trial, check_books, check_learned_once, check_sameness
from .scalars import UNIFORMS, Rule, check_honest
from .values import Unchanged, check_flags, check_frozen_value, check_kind, check_name, check_parameter, check_pickle

_ARGUMENTS: Final = ("has_arm", "ttl", "degree", "u", "parameter")
_DEGREES: Final = (0, 1, 2, 3, 5, 10, 100, 10_000)


def check_protocol(protocol: AnyProtocol | str, *, deep: bool = False, compiled: bool = True) -> Report:
    """Check that a protocol keeps the contract that engines and results rely on.

    Parameters
    ----------
    protocol : AnyProtocol or str
        An instance or its text, with the parameters that it will be used with.
    deep : bool
        Whether to run it on more and larger networks as well.
    compiled : bool
        Whether to compare the engines as well. Your own relay rule is compiled for that if it draws, which takes about
        ten seconds for each rule set.

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
    >>> print(bm.testing.check_protocol(bm.FwA(ttl=2), compiled=False))
    protocol 'fwa': 9 checks hold, 0 runs equal on both engines
    """
    protocol = read(protocol) if isinstance(protocol, str) else protocol
    subject = check_kind(AnyProtocol, protocol)
    report, unchanged = Report(subject), Unchanged(subject, protocol)
    check_flags(subject, protocol, {"delivery": Delivery})
    report.holds("has its own name", check_name, AnyProtocol, subject, protocol)
    report.holds("is a frozen value", check_frozen_value, AnyProtocol, subject, protocol)
    report.holds("can be pickled", check_pickle, subject, protocol)
    if isinstance(protocol, Protocol):
        check_flags(subject, protocol, {"random": bool})
        check_parameter(subject, protocol)
        _check_ttl(subject, protocol)
    if protocol.has_emission():
        _check_refuses(subject, protocol, "emission", "loud")
    report.checks.append("has parameters within their bounds")
    if protocol.has_emission():
        report.holds("takes an emission", _check_emission_argument, subject, protocol)
    if isinstance(protocol, Protocol):
        report.holds("has a pure relay rule that accepts all inputs", _check_relay, subject, protocol)
    trial = Trial(subject, protocol, UCB())
    works_on = cases_for(protocol, deep)
    for case in works_on:
        check_books(trial, case)
        check_learned_once(trial, case)
    report.checks += ["balances its books", "never counts an observation twice"]
    check_sameness([trial], report, works_on, compiled)
    unchanged.check()
    return report


def _check_ttl(subject: str, protocol: Protocol) -> None:
    try:
        checks.integer(f"ttl of {subject}", protocol.ttl, at_least=1, at_most=MAX_TTL)
        if protocol.n_targets is not None:
            checks.integer(f"n_targets of {subject}", protocol.n_targets, at_least=1)
    except InputError as error:
        raise ContractError(str(error)) from None
    if any(one.name == "ttl" and one.init for one in dataclasses.fields(protocol)):
        _check_refuses(subject, protocol, "ttl", -1)


def _check_refuses(subject: str, protocol: Any, name: str, wrong: object) -> None:
    try:
        dataclasses.replace(protocol, **{name: wrong})
    except InputError:
        return
    except TypeError:
        # No such argument: said by the check of the emission.
        return
    raise ContractError(
        f"{subject} must refuse {name}={wrong!r}, got no error; call super().__post_init__() in its __post_init__"
    )


def _check_emission_argument(subject: str, protocol: AnyProtocol) -> None:
    if protocol.delivery is Delivery.EVERYONE:
        return
    emission = Growth(0.125)
    try:
        other = protocol.with_emission(emission)
    except TypeError as error:
        raise ContractError(
            f"{subject} must take emission=, got {error}; leave __init__ to @dataclass(frozen=True)"
        ) from None
    if not (other.emission == emission):
        raise ContractError(
            f"{subject} must keep the emission that it is given, got {checks.shown(other.emission)} for {emission}"
        )


def _check_relay(subject: str, protocol: Protocol) -> None:
    rule = Rule(subject, protocol, "relay", _ARGUMENTS)
    hops = range(max(protocol.ttl, 4))
    own = [protocol.parameter]
    inputs = list(itertools.product((False, True), hops[:8], _DEGREES, (*UNIFORMS, 0.0), own))
    answers = rule.answers(inputs)
    for given, answer in zip(inputs, answers, strict=True):
        if not (type(answer) is int and answer in (RELAY, ABSORB, STOP)):
            raise ContractError(
                f"{rule.label} must return RELAY, ABSORB or STOP, got {checks.shown(answer)} for {rule.shown(given)}"
            )
    if protocol.random:
        # With a parameter of 0 or 1 even a correct rule may not need its draw.
        more = [(*given[:-1], parameter) for given in inputs for parameter in (0.25, 0.5, 0.75, 2.0)]
        inputs += more
        answers += rule.answers(more)
    check_honest(rule, "u", "random", protocol.random, inputs, answers)
