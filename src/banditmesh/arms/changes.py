"""Changes as specs, the command line and `Problem.paper` name them: one recipe for all arms of a problem.

A change is written like `switching(0.002)` or `wandering(0.01, hold=10)`, or as a table, `{"name": "switching", "rate":
0.002}`. Low and high are the problem's least and greatest mean unless they are given.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from .. import checks
from ..errors import ArmError, InputError
from .base import Law
from .changing import shifted
from .drifting import Drifting
from .piecewise import Piecewise
from .seasonal import Seasonal
from .switching import Switching
from .wandering import Wandering

#: What makes the laws of all arms change.
Change: TypeAlias = Callable[[Sequence[Law]], list[Law]]
_WRITTEN: Final = re.compile(r"\s*([a-z]+)\s*\((.*)\)\s*", re.DOTALL)


def _switching(laws: Sequence[Law], rate: float, low: float | None = None, high: float | None = None) -> list[Law]:
    least, greatest = _ends(laws, low, high)
    return [Switching(law, rate, least, greatest) for law in laws]


def _wandering(
    laws: Sequence[Law], step: float, low: float | None = None, high: float | None = None, hold: int = 1
) -> list[Law]:
    least, greatest = _ends(laws, low, high)
    return [Wandering(law, step, least, greatest, hold) for law in laws]


def _seasonal(laws: Sequence[Law], amplitude: float, period: float) -> list[Law]:
    """Phases are spread evenly over the arms: if all swung together, no arm would overtake another."""
    return [Seasonal(law, amplitude, period, period * arm / len(laws)) for arm, law in enumerate(laws)]


def _drifting(laws: Sequence[Law], first: int, last: int) -> list[Law]:
    """The arm with the k-th highest mean drifts to the k-th lowest."""
    order = sorted(range(len(laws)), key=lambda arm: laws[arm].mean)
    to = dict(zip(order, (laws[arm].mean for arm in reversed(order)), strict=True))
    return [Drifting(law, shifted(law, to[arm]), first, last) for arm, law in enumerate(laws)]


def _piecewise(laws: Sequence[Law], *rounds: int) -> list[Law]:
    """From each of these rounds on, every arm has the law that the next one had before."""
    starts = [1, *(checks.integer("a round of piecewise", t, at_least=1) for t in rounds)]
    if any(later <= earlier for earlier, later in pairwise(starts)):
        raise ArmError(f"the rounds of piecewise must ascend from 2, got {checks.shown(list(rounds))}")
    return [Piecewise({t: laws[(arm + k) % len(laws)] for k, t in enumerate(starts)}) for arm in range(len(laws))]


_RECIPES: Final[dict[str, Callable[..., list[Law]]]] = {
    "drifting": _drifting,
    "piecewise": _piecewise,
    "seasonal": _seasonal,
    "switching": _switching,
    "wandering": _wandering,
}


def read_change(value: object) -> Change:
    """The change that a text or a table describes, or a function from a law to a changing one.

    Examples
    --------
    >>> import banditmesh as bm
    >>> laws = [bm.arms.Gaussian(0.25), bm.arms.Gaussian(0.75)]
    >>> read_change("switching(0.002)")(laws)[0]
    Switching(law=Gaussian(mean=0.25, sigma=1.0), rate=0.002, low=0.25, high=0.75)
    >>> read_change({"name": "piecewise", "rounds": [501]})(laws)[0].at(501)
    Gaussian(mean=0.75, sigma=1.0)
    """
    if callable(value):
        return lambda laws: [value(law) for law in laws]
    name, given, named = _parsed(value)
    recipe = _RECIPES[checks.choice("change", name, _RECIPES)]
    takes = [key for key in inspect.signature(recipe).parameters if key != "laws"]
    unknown = next((key for key in named if key not in takes), None)
    if unknown is not None or (takes != ["rounds"] and len(given) > len(takes)):
        got = unknown or f"{len(given)} numbers"
        raise InputError(f"change {name} takes {', '.join(takes)}, got {got}")
    if takes == ["rounds"]:
        given = [*given, *_listed(named.pop("rounds", []))]
        if not given:
            raise InputError("change piecewise needs the rounds in which arms change, got an empty schedule")
    try:
        inspect.signature(recipe).bind((), *given, **named)
    except TypeError as error:
        raise InputError(f"change {name} takes {', '.join(takes)}, got others: {error}") from None

    def change(laws: Sequence[Law]) -> list[Law]:
        if any(law.changes for law in laws):
            raise ArmError("change is for arms that do not change yet, got some that do; leave it out")
        return recipe(laws, *given, **named)

    return change


def _parsed(value: object) -> tuple[str, list[Any], dict[str, Any]]:
    """Name, numbers by place, and numbers by name."""
    if isinstance(value, Mapping):
        named = {str(key): one for key, one in value.items() if key != "name"}
        return str(value.get("name", "")), [], named
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InputError(f"a change must be written like switching(0.002), got {checks.shown(value)}")
    given: list[Any] = []
    named = {}
    for word in match[2].split(",") if match[2].strip() else []:
        key, equals, text = word.rpartition("=")
        if equals:
            named[key.strip()] = checks.number_in("each value of a change", text)
        elif named:
            raise InputError(f"in a change, names come after numbers without, got {checks.shown(value)}")
        else:
            given.append(checks.number_in("each value of a change", text))
    return match[1], given, named


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | range | np.ndarray) else [value]


def _ends(laws: Sequence[Law], low: float | None, high: float | None) -> tuple[float, float]:
    """The least and the greatest mean: as given, or those of the laws."""
    means = [law.mean for law in laws]
    least, greatest = min(means) if low is None else low, max(means) if high is None else high
    if (low is None or high is None) and least == greatest:
        raise ArmError(
            f"arms with equal means do not say between which means they change, got {least:g}; give low, high"
        )
    return least, greatest
