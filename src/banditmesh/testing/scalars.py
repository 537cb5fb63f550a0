"""Rules as functions: a relay rule, an index, an emission's `sends`, called over their whole domain.

Every rule is called twice for everything, the second time in reverse order, so that one that remembers is found out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import checks
from ..errors import ContractError
from ..lookup.own import in_words

#: Numbers in (0, 1), the smallest and the largest that are drawn among them.
UNIFORMS: Final = (2.0**-53, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0 - 2.0**-53)

Inputs = Sequence[tuple[Any, ...]]


class Rule:
    """One rule of a protocol, policy or emission: a static method of numbers.

    Parameters
    ----------
    subject : str
        What the rule belongs to, for messages.
    value : object
        The protocol, policy or emission.
    name : str
        The rule's name.
    arguments : sequence of str
        Its arguments, in this order.
    """

    def __init__(self, subject: str, value: Any, name: str, arguments: Sequence[str]) -> None:
        self.label = f"{name}() of {subject}"
        self.arguments = tuple(arguments)
        found = inspect.getattr_static(type(value), name)
        wanted = f"{self.label} must be a static method of ({', '.join(arguments)})"
        if not isinstance(found, staticmethod):
            raise ContractError(
                f"{wanted}, got a {type(found).__name__}; write @staticmethod above it and leave out self"
            )
        self._function: Callable[..., Any] = getattr(type(value), name)
        try:
            inspect.signature(self._function).bind(*arguments)
        except TypeError:
            signature = inspect.signature(self._function)
            raise ContractError(f"{wanted}, got {signature}; take these arguments in this order") from None

    def answers(self, inputs: Inputs) -> list[Any]:
        """The rule's answer to each of the inputs, if it accepts all of them and always gives the same answer."""
        first = [self._ask(given) for given in inputs]
        again = [self._ask(given) for given in reversed(inputs)][::-1]
        for given, one, other in zip(inputs, first, again, strict=True):
            if not (repr(one) == repr(other)):
                raise ContractError(
                    f"{self.label} must give the same answer to the same inputs, got {checks.shown(one)} and then "
                    f"{checks.shown(other)} to {self.shown(given)}; use nothing but its arguments"
                )
        return first

    def uses(self, argument: str, inputs: Inputs, answers: Sequence[Any]) -> tuple[Any, ...] | None:
        """Inputs at which the answer changes with that argument alone, or None if it never does."""
        place = self.arguments.index(argument)
        seen: dict[tuple[Any, ...], str] = {}
        for given, answer in zip(inputs, answers, strict=True):
            others = repr(given[:place]), repr(given[place + 1 :])
            if seen.setdefault(others, repr(answer)) != repr(answer):
                return given
        return None

    def shown(self, given: tuple[Any, ...]) -> str:
        """Inputs as messages show them."""
        return ", ".join(f"{name}={value!r}" for name, value in zip(self.arguments, given, strict=True))

    def _ask(self, given: tuple[Any, ...]) -> Any:
        try:
            return self._function(*given)
        except Exception as error:
            raise ContractError(
                f"{self.label} must accept all its inputs, got {in_words(error)} for {self.shown(given)}"
            ) from error


def check_honest(rule: Rule, argument: str, flag: str, declared: bool, inputs: Inputs, answers: Sequence[Any]) -> None:
    """A rule uses an argument if and only if it declares that it does."""
    where = rule.uses(argument, inputs, answers)
    if declared and where is None:
        raise ContractError(
            f"{rule.label} must use {argument}, because {flag} is True, got answers that never depend on it; "
            f"remove {flag} from the class"
        )
    if where is not None and not declared:
        raise ContractError(
            f"{rule.label} must not use {argument}, because {flag} is False and it is not computed, got answers that "
            f"depend on it for {rule.shown(where)}; set {flag} = True in the class"
        )
