"""Curves over the rounds. A band is one standard deviation or a confidence interval, and the figure says which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .style import MAX_POINTS, Look, fold, for_print, legend, new_figure, note, state_band
from .sweeps import MAX_NAMES, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Of more rounds than this, none is marked.
MAX_MARKS: Final = 100
#: Rounds, and arrays (replicates, records) of cumulative regret and transmissions.
Curves: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]


@for_print
def regret_and_messages(
    curves: Mapping[str, Curves], look: Look | None = None, marks: Sequence[int] | NDArray[np.int64] = ()
) -> Figure:
    """Two panels: group regret and transmissions over the rounds.

    Parameters
    ----------
    curves : mapping from name to (rounds, regret, messages)
        The recorded rounds, and arrays (replicates, records) of cumulative values. Many curves that differ in a number
        are coloured by that number, with a colour bar, in one panel for each of the other settings.
    look : Look, optional
        Axes (two), size, scales and bands.
    marks : sequence of int
        Rounds in which arms changed: thin vertical lines, unless there are too many to be told apart.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> figure = regret_and_messages({"irs": (rounds, rounds[None] * 0.5, rounds[None] * 6)})
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['group regret', 'transmissions']
    """
    look = look or Look()
    sweep = look.sweep(curves)
    if sweep is not None:
        return _swept(curves, sweep, look, marks)
    if len(curves) > MAX_NAMES:
        look = replace(look, band="none")  # bands of many curves would hide each other
    figure, grid = new_figure(1, 2, look=look)
    _over_time(grid[0], curves, look)
    _mark(grid[0], marks)
    legend(figure, grid[0, 0], len(curves), look)
    state_band(figure, any(len(regret) > 1 for _, regret, _ in curves.values()), look)
    return figure


def _swept(curves: Mapping[str, Curves], sweep: Sweep, look: Look, marks: Sequence[int] | NDArray[np.int64]) -> Figure:
    """Regret above transmissions, a column for each panel of the sweep, coloured by value."""
    panels = list(dict.fromkeys(sweep.panels.values()))
    figure, grid = new_figure(2, len(panels), height=1.9, look=look)
    for column, panel in enumerate(panels):
        # Curves without a number are for comparison, in every panel.
        shown = {name: one for name, one in curves.items() if sweep.panels.get(name, panel) == panel}
        _over_time(grid[:, column], shown, look, sweep)
        _mark(grid[:, column], marks)
        grid[0, column].set_title(fold(panel, 24))
    _label_outer(grid)
    sweep.bar(figure, list(grid.flat))
    plain = len(curves) - len(sweep.values)
    legend(figure, grid[0, 0], 2 if plain else 0, look)
    note(figure, "mean over replicates")
    return figure


@for_print
def by_network(networks: Mapping[str, Mapping[str, Curves]]) -> Figure:
    """Group regret above transmissions, a column for each network; see `regret_and_messages`.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> curves = {"irs": (rounds, rounds[None] * 0.5, rounds[None] * 6)}
    >>> len(by_network({"er": curves, "ba": curves}).axes)
    4
    """
    figure, grid = new_figure(2, len(networks), height=1.9)
    for column, (name, curves) in enumerate(networks.items()):
        _over_time(grid[:, column], curves, Look())
        grid[0, column].set_title(name)
    _label_outer(grid)
    names = list(dict.fromkeys(name for curves in networks.values() for name in curves))
    legend(figure, grid[0, 0], len(names))
    state_band(figure, any(len(one[1]) > 1 for curves in networks.values() for one in curves.values()))
    return figure


@for_print
def link_load(
    networks: Mapping[str, Mapping[str, tuple[NDArray[np.int64], NDArray[Any]]]], look: Look | None = None
) -> Figure:
    """Transmissions per round on one link over time, a panel for each network.

    Parameters
    ----------
    networks : mapping from title to mapping from name to (rounds, loads)
        The rounds, and an array (replicates, rounds) of the link's transmissions in each, both directions together.
    look : Look, optional
        Axes, size, scales and bands.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> figure = link_load({"er, link 0-12": {"irs": (rounds, np.full((2, 10), 2))}})
    >>> figure.axes[0].get_ylabel()
    'transmissions per round'
    """
    look = look or Look()
    figure, grid = new_figure(1, len(networks), height=2.1, look=look)
    for axes, (title, loads) in zip(grid[0], networks.items(), strict=True):
        palette = look.palette(loads)
        for name, (rounds, load) in loads.items():
            _curve(axes, rounds, load, palette.style(name), name, look)
        axes.set_title(title)
        axes.set_xlabel("round")
        look.scale(axes)
    grid[0, 0].set_ylabel("transmissions per round")
    legend(figure, grid[0, 0], len(next(iter(networks.values()))), look)
    state_band(figure, any(len(load) > 1 for loads in networks.values() for _, load in loads.values()), look)
    return figure


def _over_time(pair: Sequence[Axes], curves: Mapping[str, Curves], look: Look, sweep: Sweep | None = None) -> None:
    palette = look.palette(curves)
    for name, (rounds, regret, messages) in curves.items():
        swept = sweep is not None and name in sweep.values
        style = (sweep.colour(name), "-") if sweep is not None and swept else palette.style(name)
        one = look if sweep is None else replace(look, band="none")
        label = "_" if swept else name
        _curve(pair[0], rounds, regret, style, label, one)
        _curve(pair[1], rounds, messages, style, label, one)
    for axes, label in zip(pair, ("group regret", "transmissions"), strict=True):
        axes.set_ylabel(label)
        axes.set_xlabel("round")
        look.scale(axes)


def _label_outer(grid: Any) -> None:
    """Keep the labels of rounds below the last row, and those of values beside the first column."""
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    for axes in grid[:, 1:].flat:
        axes.set_ylabel("")


def _mark(pair: Sequence[Axes], rounds: Sequence[int] | NDArray[np.int64]) -> None:
    """Mark rounds in which arms changed."""
    for axes in pair if len(rounds) <= MAX_MARKS else ():
        for t in rounds:
            axes.axvline(float(t), color="0.6", linewidth=0.6, linestyle=":", zorder=0)


def _curve(axes: Axes, x: NDArray[Any], values: NDArray[Any], style: tuple[Any, Any], label: str, look: Look) -> None:
    colour, line = style
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int))
    x, values = x[keep], values[:, keep]
    mean = values.mean(axis=0)
    axes.plot(x, mean, color=colour, linestyle=line, label=label)
    half = look.half_width(values)
    if half.any():
        axes.fill_between(x, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
