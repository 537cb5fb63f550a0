"""Curves over the rounds. A band is one standard deviation on either side of the mean, and the figure says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .style import MOST_POINTS, for_print, legend, new_figure, state_band, style_of, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rounds, and arrays (replicates, records) of cumulative regret and messages.
Curves: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]


@for_print
def regret_and_messages(curves: Mapping[str, Curves]) -> Figure:
    """Two panels: group regret and transmissions over the rounds.

    Parameters
    ----------
    curves : mapping from name to (rounds, regret, messages)
        The recorded rounds, and arrays (replicates, records) of cumulative values.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> figure = regret_and_messages({"irs": (rounds, rounds[None] * 0.5, rounds[None] * 6)})
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['group regret', 'transmissions']
    """
    figure, grid = new_figure(1, 2)
    _over_time(grid[0], curves)
    legend(figure, grid[0, 0], len(curves))
    state_band(figure, any(len(regret) > 1 for _, regret, _ in curves.values()))
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
        _over_time(grid[:, column], curves)
        grid[0, column].set_title(name)
        grid[0, column].set_xlabel("")
        if column:
            grid[0, column].set_ylabel("")
            grid[1, column].set_ylabel("")
    names = list(dict.fromkeys(name for curves in networks.values() for name in curves))
    legend(figure, grid[0, 0], len(names))
    state_band(figure, any(len(one[1]) > 1 for curves in networks.values() for one in curves.values()))
    return figure


@for_print
def link_load(networks: Mapping[str, Mapping[str, tuple[NDArray[np.int64], NDArray[Any]]]]) -> Figure:
    """Transmissions per round on one link over time, a panel for each network.

    Parameters
    ----------
    networks : mapping from title to mapping from name to (rounds, loads)
        The rounds, and an array (replicates, rounds) of the link's transmissions in each, both directions together.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> figure = link_load({"er, link 0-12": {"irs": (rounds, np.full((2, 10), 2))}})
    >>> figure.axes[0].get_ylabel()
    'transmissions per round'
    """
    figure, grid = new_figure(1, len(networks), height=2.1)
    for axes, (title, loads) in zip(grid[0], networks.items(), strict=True):
        for name, (rounds, load) in loads.items():
            _curve(axes, rounds, load, name, loads)
        axes.set_title(title)
        axes.set_xlabel("round")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    grid[0, 0].set_ylabel("transmissions per round")
    legend(figure, grid[0, 0], len(next(iter(networks.values()))))
    state_band(figure, any(len(load) > 1 for loads in networks.values() for _, load in loads.values()))
    return figure


def _over_time(pair: Sequence[Axes], curves: Mapping[str, Curves]) -> None:
    for name, (rounds, regret, messages) in curves.items():
        _curve(pair[0], rounds, regret, name, curves)
        _curve(pair[1], rounds, messages, name, curves)
    for axes, label in zip(pair, ("group regret", "transmissions"), strict=True):
        axes.set_ylabel(label)
        axes.set_xlabel("round")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        thousands(axes)


def _curve(axes: Axes, x: NDArray[Any], values: NDArray[Any], label: str, labels: Collection[str]) -> None:
    colour, style = style_of(label, labels)
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).round().astype(int))
    x, values = x[keep], values[:, keep]
    mean = values.mean(axis=0)
    axes.plot(x, mean, color=colour, linestyle=style, label=label)
    if len(values) > 1:
        sd = values.std(axis=0, ddof=1)
        axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
