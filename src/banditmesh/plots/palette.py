"""Which colour, line and marker a name has in figures: that of its protocol, unless the user chose another.

Rules kept here: every built-in protocol keeps its colour, line and marker in all figures, and what is called otherwise
keeps those of its protocol; variants of a protocol share its colour and differ in lines and fills. What the user passes
comes first, then a cycle of colours that the user set in matplotlib's rcParams, then these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import InputError, need

# Okabe and Ito's palette, legible to readers with any colour vision.
_STYLES: Final[dict[str, tuple[str, Any]]] = {
    "none": ("#000000", ":"),
    "irs": ("#E69F00", "-."),
    "gossip": ("#56B4E9", "--"),
    "probabilistic": ("#009E73", (0, (5, 1, 1, 1))),
    "fwa": ("#D55E00", "-"),
    "flooding": ("#0072B2", (0, (7, 1))),
    "centralised": ("#CC79A7", "--"),
    "tree": ("#8C564B", (0, (3, 1))),
}
_MARKERS: Final = {
    "none": "x",
    "irs": "s",
    "gossip": "v",
    "probabilistic": "D",
    "fwa": "o",
    "flooding": "^",
    "tree": "P",
}
_OTHERS: Final = ("#7F7F7F", "#BCBD22", "#9467BD", "#17BECF")
_LINES: Final[tuple[Any, ...]] = ("-", "--", ":", "-.", (0, (1, 3)), (0, (7, 1, 1, 1, 1, 1)))
_FILLS: Final = ("full", "none", "left", "right", "bottom", "top")
#: Colours or lines as the user gives them: by name, or one after the other.
Chosen: TypeAlias = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class Palette:
    """The looks of all names in a figure.

    Attributes
    ----------
    names : tuple of str
        The names, in the order in which they are drawn.
    protocols : mapping from name to str
        The protocols of names that do not say theirs.
    colors, styles : mapping from name, sequence, str or None
        What the user chose: for each name or one after the other, starting again at the end.
    """

    names: tuple[str, ...]
    protocols: Mapping[str, str] = field(default_factory=dict)
    colors: Chosen | None = None
    styles: Chosen | None = None

    def __post_init__(self) -> None:
        for what, given in (("colors", self.colors), ("styles", self.styles)):
            unknown = [one for one in given if one not in self.names] if isinstance(given, Mapping) else []
            if unknown:
                near = checks.meant(unknown[0], self.names)
                raise InputError(
                    f"{what} must be for {', '.join(self.names)}; got one for {checks.shown(unknown[0])}{near}"
                )

    def style(self, name: str) -> tuple[Any, Any]:
        """Colour and line style.

        Examples
        --------
        >>> Palette(("fwa", "ours"), {"ours": "fwa(8)"}, styles={"ours": ":"}).style("ours")
        ('#D55E00', ':')
        """
        colour, line = self._own(name)
        place = self.names.index(name)
        cycle = _users_cycle()
        return (
            _picked(self.colors, name, place, _picked(cycle.get("color"), name, place, colour)),
            _picked(self.styles, name, place, _picked(cycle.get("linestyle"), name, place, line)),
        )

    def marker(self, name: str) -> str:
        """The marker of its protocol."""
        return _MARKERS.get(self._base(name), "o")

    def fill(self, name: str) -> str:
        """How its marker is filled, so that variants of a protocol can be distinguished."""
        return _FILLS[self._variants(name).index(name) % len(_FILLS)]

    def _own(self, name: str) -> tuple[str, Any]:
        base = self._base(name)
        if name in _STYLES and name == base:
            return _STYLES[name]
        if base in _STYLES:
            return _STYLES[base][0], _LINES[self._variants(name).index(name) % len(_LINES)]
        place = [other for other in self.names if self._base(other) not in _STYLES].index(name)
        return _OTHERS[place % len(_OTHERS)], _LINES[place // len(_OTHERS) % len(_LINES)]

    def _base(self, name: str) -> str:
        return base_of(self.protocols.get(name, name))

    def _variants(self, name: str) -> list[str]:
        return [other for other in self.names if self._base(other) == self._base(name)]


def style_of(name: str, names: Collection[str]) -> tuple[str, Any]:
    """Colour and line style of a name among all names of a figure, whatever the user chose for others.

    Those of the built-in protocols are fixed. A variant, "fwa, ttl 2" or "fwa(2)+contested", has its protocol's colour
    and its own line style.
    """
    return Palette(tuple(names))._own(name)


def base_of(name: str) -> str:
    """The protocol that a name is a variant of."""
    return re.split(r"[,(+]", name, maxsplit=1)[0]


def check_chosen(colors: Chosen | None, styles: Chosen | None) -> None:
    """Refuse colours and lines that matplotlib does not know."""
    need("matplotlib", "pictures", "a picture")
    from matplotlib.colors import is_color_like
    from matplotlib.lines import Line2D

    for colour in _values("colors", colors):
        if not is_color_like(colour):
            raise InputError(f'colors must be such as "#D55E00" or "tab:blue", got {checks.shown(colour)}')
    for line in _values("styles", styles):
        try:
            Line2D([], [], linestyle=line)
        except (ValueError, TypeError):
            raise InputError(f'styles must be such as "-", "--" or ":", got {checks.shown(line)}') from None


def _values(what: str, given: Chosen | None) -> list[Any]:
    if isinstance(given, str | None):
        return [given] if given else []
    if not isinstance(given, Mapping | Sequence) or not given:
        raise InputError(f"{what} must be a list, or a dict from names, got {checks.shown(given)}")
    return list(given.values() if isinstance(given, Mapping) else given)


def _picked(given: Chosen | None, name: str, place: int, default: Any) -> Any:
    if not given:
        return default
    if isinstance(given, Mapping):
        return given.get(name, default)
    return given if isinstance(given, str) else given[place % len(given)]


def _users_cycle() -> dict[str, list[Any]]:
    """The cycle of colours and lines in rcParams, if the user set one."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl

    cycle = mpl.rcParams["axes.prop_cycle"]
    values: dict[str, list[Any]] = {} if cycle == mpl.rcParamsDefault["axes.prop_cycle"] else cycle.by_key()
    return values
