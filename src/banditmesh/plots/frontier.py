"""Regret against the cost of sending: one point for each configuration, and the front of those that nothing beats."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import need
from ..text_tables import decimals
from .palette import Palette, base_of
from .style import Look, blank_figure, chosen_size, fold, for_print, logarithmic, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 7.2
_NARROW: Final = 5.0  # inches
_ROOM: Final = 0.14  # inches of height for each line of the list below
_WORDS: Final = 0.5  # of the height that the user chose, the part that words may take


@dataclass(frozen=True)
class Panel:
    """One cost along the horizontal axis.

    Attributes
    ----------
    label : str
        What the cost is.
    points : mapping from name to (x, x_low, x_high, y, y_low, y_high)
        Means and the ends of their intervals, nan where there are none; x is 0 for configurations that send nothing.
    front : sequence of str
        The names on the front, by rising cost.
    limit : float or None
        The budget.
    """

    label: str
    points: Mapping[str, tuple[float, float, float, float, float, float]]
    front: Sequence[str]
    limit: float | None = None


@for_print
def frontier(
    panels: Sequence[Panel], recommended: str | None, title: str, note: str, look: Look | None = None
) -> Figure:
    """Group regret against each cost: a large panel for the first, small ones for the others.

    The front of the first panel is numbered, and the list below says what the numbers are; a circle is drawn around the
    recommended configuration, and those over the budget are grey. On the user's own axes, one or one for each cost, the
    list is the legend of the first, and the title is left to the user. A figure of less than 5 inches has only the
    first panel. In a size that the user chose, text takes at most half of the height: the title, and the end of the
    list, are left to the caption if they do not fit.

    Examples
    --------
    >>> one = {"irs": (2.0, 2.0, 2.0, 9.0, 8.0, 10.0), "fwa": (5.0, 4.0, 6.0, 7.0, 6.0, 8.0)}
    >>> panels = [Panel("transmissions", one, ["irs", "fwa"]), Panel("bytes", one, ["irs", "fwa"])]
    >>> figure = frontier(panels, "fwa", "regret against traffic", "")
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['transmissions', 'bytes']
    """
    look = look or Look(log="x")
    numbered = [name for name in panels[0].front if panels[0].points[name][0] > 0]
    numbers = {name: str(place) for place, name in enumerate(numbered, start=1)}
    palette = look.palette(dict.fromkeys(map(base_of, panels[0].points)))
    if look.ax is not None:
        given = own_axes(look.ax, len(panels) if np.size(look.ax) > 1 else 1)
        for axes, panel in zip(given, panels, strict=False):
            _draw(axes, panel, numbers, recommended, palette, True, look)
            axes.set_ylabel("group regret")
        given[0].legend(handles=_numbered(numbers, palette), frameon=False, fontsize="small")
        own: Figure = given[0].figure
        return own
    rows = -(-len(numbered) // 2)
    figure = blank_figure(*(chosen_size(look) or (_WIDTH, 3.9 + _ROOM * rows)))
    if figure.get_figwidth() < _NARROW:
        _draw(figure.subplots(), panels[0], numbers, recommended, palette, True, look)
    else:
        grid = figure.add_gridspec(max(1, len(panels) - 1), 2, width_ratios=(1.9, 1.0))
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(grid[:, 0] if place == 0 else grid[place - 1, 1])
            _draw(axes, panel, numbers, recommended, palette, place == 0, look, figure.get_figwidth())
    figure.axes[0].set_ylabel("group regret")
    room = None if chosen_size(look) is None else _WORDS * figure.get_figheight()
    above = _kinds(figure, panels[0].points, palette, [title, note], room)
    _list(figure, numbers, panels[0], recommended, None if room is None else room - above)
    return figure


def _draw(
    axes: Axes,
    panel: Panel,
    labels: Mapping[str, str],
    recommended: str | None,
    palette: Palette,
    large: bool,
    look: Look,
    width: float = _WIDTH,
) -> None:
    sending = {name: point for name, point in panel.points.items() if point[0] > 0}
    line = [panel.points[name] for name in panel.front if panel.points[name][0] > 0]
    axes.plot([p[0] for p in line], [p[3] for p in line], color="#999999", linewidth=0.8, drawstyle="steps-post")
    for name, (x, x_low, x_high, y, y_low, y_high) in panel.points.items():
        colour, style = palette.style(base_of(name))
        if name not in sending:
            axes.axhline(y, color=colour, linestyle=style, linewidth=0.9)
            continue
        on_front = name in panel.front
        bars: dict[str, Any] = {"xerr": [[x - x_low], [x_high - x]]} if x_low == x_low else {}
        bars |= {"yerr": [[y - y_low], [y_high - y]]} if y_low == y_low else {}
        axes.errorbar(
            x,
            y,
            **bars,
            color=colour,
            marker=palette.marker(name),
            fillstyle="none" if _is_quiet(name) else "full",
            markersize=(5 if on_front else 3.5) if large else 3,
            alpha=1.0 if on_front else 0.45,
            elinewidth=0.6,
            linestyle="none",
            zorder=3 if on_front else 2,
        )
        if large and name in labels:
            axes.annotate(labels[name], (x, y), xytext=(5, 5), textcoords="offset points", fontsize="small")
        if name == recommended:
            axes.plot(x, y, marker="o", markersize=13, fillstyle="none", color="#000000", markeredgewidth=1.1, zorder=4)
    is_log = bool(sending) and "x" in look.log
    if is_log:
        axes.set_xscale("log")
    look.scale_height(axes)
    if panel.limit is not None:
        left, right = axes.get_xlim()[0], max(axes.get_xlim()[1], panel.limit * 1.2)
        axes.axvspan(panel.limit, right, color="#BBBBBB", alpha=0.3, linewidth=0)
        axes.set_xlim(min(left, panel.limit / 1.2), right)
        axes.axvline(panel.limit, color="#555555", linewidth=0.8, linestyle="--")
    if is_log:
        # After the budget: the numbers that fit along the axis depend on its ends.
        logarithmic(axes, "x")
    axes.set_xlabel(panel.label if large else fold(panel.label, int(4.8 * width)))


def _is_quiet(name: str) -> bool:
    """Whether not every pull is sent."""
    return "+" in name and not name.endswith("+every-pull")


def _kinds(
    figure: Figure,
    points: Mapping[str, tuple[float, ...]],
    palette: Palette,
    lines: Sequence[str],
    room: float | None,
) -> float:
    """The title, and below it a legend of colours and markers; returns the inches of height that they take.

    Where there is not room for all, the first lines of the title are left out.
    """
    handles = []
    for name in palette.names:
        colour, style = palette.style(name)
        silent = all(point[0] == 0 for other, point in points.items() if base_of(other) == name)
        look: dict[str, Any] = (
            {"linestyle": style} if silent else {"linestyle": "none", "marker": palette.marker(name), "markersize": 4}
        )
        handles.append(_handle(name, color=colour, **look))
    if any(_is_quiet(name) for name in points):
        grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "color": "#555555"}
        handles.append(_handle("every pull is sent", **grey))
        handles.append(_handle("another emission", fillstyle="none", **grey))
    width = figure.get_figwidth()
    written = [[fold(line, int(14 * width)) for line in lines[k:] if line] for k in range(len(lines) + 1)]
    for title, columns in itertools.product(map("\n".join, written), (5, 4, 3, 2)):
        legend = figure.legend(
            handles=handles, title=title or None, frameon=False, loc="outside upper center", ncols=columns
        )
        extent = legend.get_window_extent()
        wide, high = extent.width / figure.dpi, extent.height / figure.dpi
        if (columns == 2 or wide <= width) and (not title or room is None or high <= 0.6 * room):
            break
        legend.remove()
    return high


def _numbered(numbers: Mapping[str, str], palette: Palette) -> list[Any]:
    """The front's markers with their numbers and names, for a legend."""
    return [
        _handle(
            f"{number}  {name}",
            color=palette.style(base_of(name))[0],
            marker=palette.marker(name),
            fillstyle="none" if _is_quiet(name) else "full",
            markersize=4,
            linestyle="none",
        )
        for name, number in numbers.items()
    ]


def _handle(label: str, **look: Any) -> Any:
    """An entry of a legend."""
    need("matplotlib", "pictures", "a picture")
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def _list(
    figure: Figure, numbers: Mapping[str, str], panel: Panel, recommended: str | None, room: float | None
) -> None:
    """The list of numbers below the panels, in as many inches of height as there is room for."""
    digits = decimals(panel.points[name][3] for name in numbers)
    words = {}
    for name, number in numbers.items():
        x, y = panel.points[name][0], panel.points[name][3]
        cost = f"{x:,.0f}" if x >= 100 else f"{x:.3g}"
        words[name] = f"{number}  {name}: {y:,.{digits}f}, {cost}"
    columns = 2 if figure.get_figwidth() > 5 else 1
    # The title and the line for the rest take a line each.
    most = len(words) if room is None else max(1, int(room / _ROOM) - 2) * columns
    shown = list(words)[:most]
    if recommended in words and recommended not in shown:
        shown[-1] = recommended
    if not shown:
        return
    labels = [words[name] for name in shown]
    if len(shown) < len(words):
        labels.append(f"and {len(words) - len(shown)} more")
    legend = figure.legend(
        handles=[_handle(label, linestyle="none") for label in labels],
        title=f"On the front: group regret, {panel.label}",
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=0,
    )
    for text in legend.get_texts():
        if recommended in words and text.get_text() == words[recommended]:
            text.set_fontweight("bold")
