"""Checks of single values, used at the public edge and nowhere deeper.

Each check returns the value in its plain Python type, or raises `InputError` with what was required and what
came. Numpy scalars count as numbers; booleans never do.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection

from .errors import InputError


def integer(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as an int of at least `at_least` (and at most `at_most`)."""
    wanted = f"{name} must be an integer of at least {at_least}"
    if at_most is not None:
        wanted += f" and at most {at_most}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{wanted}, got {value!r}")
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        raise InputError(f"{wanted}, got {number}")
    return number


def real(name: str, value: object) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(float(value)):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise InputError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def probability(name: str, value: object) -> float:
    """`value` as a float between 0 and 1, both included."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise InputError(f"{name} must be a probability between 0 and 1, got {value!r}")
    return float(value)


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """`value` if it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
    return value
