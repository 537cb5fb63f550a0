"""Checks of single values, used at the public edge and nowhere deeper.

Each check returns the value in its plain Python type, or raises `InputError` with what was required and what
came. Numpy scalars count as numbers; booleans never do. Whatever came is shown on one short line, see `shown`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from .errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Whatever is counted has 64 bits.
LARGEST: Final = 2**63 - 1
_LONGEST: Final = 100


def integer(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as an int of at least `at_least` and at most `at_most`, or the most that 64 bits hold."""
    most = LARGEST if at_most is None else at_most
    number = _integer(value)
    if number is None or not at_least <= number <= most:
        wanted = f"must be an integer of at least {at_least}"
        if at_most is not None or (number is not None and number > most):
            wanted += f" and at most {most}"
        raise InputError(f"{wanted}, got {shown(value if number is None else number)}", key=name)
    return number


def seed(value: object, name: str = "seed") -> int:
    """`value` as a seed: an int of at least zero and of any size."""
    number = _integer(value)
    if number is None or number < 0:
        raise InputError(
            f"must be an integer of at least 0, got {shown(value if number is None else number)}", key=name
        )
    return number


def real(name: str, value: object) -> float:
    """`value` as a finite float."""
    return _number(name, value, "a finite number", math.isfinite)


def as_number(text: str) -> int | float | None:
    """The number that a text is; None if it is none."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def number_in(name: str, text: str) -> int | float:
    """The number that a text is."""
    if (number := as_number(text)) is None:
        raise InputError(f"{name} must be a number, got {shown(text.strip())}")
    return number


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    return _number(name, value, "a positive number", lambda number: 0 < number < math.inf)


def non_negative(name: str, value: object) -> float:
    """`value` as a finite float of at least zero."""
    return _number(name, value, "a number of at least 0", lambda number: 0 <= number < math.inf)


def probability(name: str, value: object) -> float:
    """`value` as a float between 0 and 1, both included."""
    return _number(name, value, "a probability between 0 and 1", lambda number: 0 <= number <= 1)


def floats(name: str, value: object) -> npt.NDArray[np.float64]:
    """`value` as an array of floats. Masked, complex, text and object arrays are refused, not read as numbers.

    Examples
    --------
    >>> floats("means", [1, 2.5])
    array([1. , 2.5])
    >>> floats("means", [1, 2j])
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: means must be an array of real numbers, got complex128; take its real part
    """
    import numpy as np

    unmasked(name, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"must be an array of real numbers, got {shown(value)}", key=name) from None
    if array.dtype.kind not in "biuf":
        remedy = "take its real part" if array.dtype.kind == "c" else "convert it, say array.astype(float)"
        raise InputError(f"must be an array of real numbers, got {array.dtype}; {remedy}", key=name)
    return array.astype(np.float64, copy=False)


def unmasked(name: str, value: object) -> None:
    """Refuse an array with a mask, or a list of such arrays: numpy would read what is under the mask."""
    if _is_masked(value):
        raise InputError("must be an array without a mask, got a masked one; fill it, say array.filled(0)", key=name)


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """`value` if it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"must be one of {', '.join(allowed)}; got {shown(value)}{meant(value, allowed)}", key=name)
    return value


def callback(name: str, value: object) -> None:
    """Refuse a callback that cannot be called; None means no callback."""
    if value is not None and not callable(value):
        raise InputError(f"must be a callable or None, got {shown(value)}", key=name)


def meant(value: object, allowed: Collection[str]) -> str:
    """A suggestion for an error about an unknown word: the nearest known one, if one is near.

    Examples
    --------
    >>> meant("FwA", ["fwa", "flooding"]), meant("xyz", ["fwa", "flooding"])
    ("; did you mean 'fwa'?", '')
    """
    from difflib import get_close_matches

    known = {word.lower(): word for word in allowed}
    near = get_close_matches(value.lower()[:_LONGEST], known, n=1) if isinstance(value, str) else []
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def is_hashable(value: object) -> bool:
    """Whether `value` can be a name; a tuple that holds a list cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def shown(value: object) -> str:
    """`value` as an error shows it: its repr on one line, cut short if it is long.

    Examples
    --------
    >>> shown("er"), shown(10**5000)
    ("'er'", 'an integer of about 5000 digits')
    """
    # Python refuses to write out an integer of more than a few thousand digits.
    if isinstance(value, int) and abs(value) >= 10**_LONGEST:
        return f"an integer of about {round(value.bit_length() * math.log10(2))} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


def _number(name: str, value: object, wanted: str, is_valid: Callable[[float], bool]) -> float:
    """`value` as a float, if it is what is wanted."""
    number = _float(value)
    if not is_valid(number):
        raise InputError(f"must be {wanted}, got {shown(value)}", key=name)
    return number


def _is_masked(value: object) -> bool:
    """Whether an array, or one in a list, has a mask."""
    if isinstance(value, list | tuple):
        return any(map(_is_masked, value))
    return hasattr(value, "mask") and hasattr(value, "filled")


def _integer(value: object) -> int | None:
    """`value` as an int; None if it is not one."""
    if type(value) is int:  # at once, since the question below takes much longer
        return value
    return None if isinstance(value, bool) or not isinstance(value, numbers.Integral) else int(value)


def _float(value: object) -> float:
    """`value` as a float; nan, which every check refuses, if it is not a number or too large for one."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
