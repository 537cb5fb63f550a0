"""Many curves that differ in a number: panels by everything else, colours by the number, and a colour bar.

Rules kept here: names differ only in their numbers, or there is no sweep; of several numbers the one with the most
values gives the colours.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..errors import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A legend holds this many names; with more, colours go by value.
MAX_NAMES: Final = 8
#: And this many panels are drawn side by side.
MAX_PANELS: Final = 4
#: How names say what a number is, in its place a #: ", ttl #", "stop=#" or "(#)".
_SAID: Final = re.compile(r"(?:, )?([\w-]+)[ =]#|\(#\)")
#: The meaning of a number in parentheses, by the name before it.
_FIRST: Final = dict.fromkeys(("gossip", "probabilistic", "fwa", "flooding"), "ttl")
_FIRST.update(tree="pause", growth="growth")
_BEFORE: Final = re.compile(r"([\w-]+)\(#")
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Sweep:
    """Names as points of a sweep.

    Attributes
    ----------
    key : str
        What the number is; empty if names do not say.
    panels : dict from name to str
        A name without its number: the panel that it is drawn in; names without a number are in none.
    values : dict from name to float
        The number.
    """

    key: str
    panels: dict[str, str]
    values: dict[str, float]

    def colour(self, name: str) -> Any:
        """The colour of a name: dark for small values, light for large ones."""
        need("matplotlib", "pictures", "a picture")
        import matplotlib as mpl

        return mpl.colormaps["viridis"](0.9 * self._norm()(self.values[name]))

    def _norm(self) -> Any:
        need("matplotlib", "pictures", "a picture")
        from matplotlib.colors import LogNorm, Normalize

        low, high = min(self.values.values()), max(self.values.values())
        return LogNorm(low, high) if low > 0 and high > 20 * low else Normalize(low, high)

    def bar(self, figure: Figure, axes: list[Any]) -> None:
        """The colour bar next to the panels."""
        need("matplotlib", "pictures", "a picture")
        import matplotlib as mpl
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, LogNorm
        from matplotlib.ticker import MaxNLocator

        colours = ListedColormap(mpl.colormaps["viridis"]([0.9 * k / 255 for k in range(256)]))
        norm = self._norm()
        whole = all(value.is_integer() for value in self.values.values()) and not isinstance(norm, LogNorm)
        ticks = MaxNLocator(integer=True) if whole else None
        figure.colorbar(ScalarMappable(norm, colours), ax=axes, label=self.key, aspect=30, ticks=ticks)


def find_sweep(names: Collection[str]) -> Sweep | None:
    """The sweep that many names belong to; None if there are few of them, or they differ in more than numbers.

    Examples
    --------
    >>> sweep = find_sweep([f"{name}, ttl {ttl}" for name in ("fwa", "flooding") for ttl in range(1, 11)])
    >>> sweep.key, sorted(set(sweep.panels.values())), sweep.values["fwa, ttl 7"]
    ('ttl', ['flooding', 'fwa'], 7.0)
    >>> find_sweep([f"flooding(4)+growth({k / 10})" for k in range(1, 11)]).key
    'growth'
    >>> find_sweep(["fwa, ttl 1", "fwa, ttl 2"]) is None
    True
    """
    if len(names) <= MAX_NAMES:
        return None
    numbers = {name: list(_NUMBER.finditer(name)) for name in names}
    numbers = {name: found for name, found in numbers.items() if found}
    places = range(min(map(len, numbers.values()), default=0))
    counts = [len({found[place][0] for found in numbers.values()}) for place in places]
    if max(counts, default=0) < 3:
        return None
    place = counts.index(max(counts))
    panels, keys = {}, set()
    for name, found in numbers.items():
        without = f"{name[: found[place].start()]}#{name[found[place].end() :]}"
        said = _SAID.search(without)
        panels[name] = without.replace(said[0], "") if said else without
        before = _BEFORE.search(without)
        keys.add((said and said[1]) or (_FIRST.get(before[1], "") if before else ""))
    if len(set(panels.values())) > MAX_PANELS:
        return None
    values = {name: float(found[place][0]) for name, found in numbers.items()}
    return Sweep(keys.pop() if len(keys) == 1 else "", panels, values)
