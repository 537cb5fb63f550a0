"""Networks drawn as maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import need
from .style import Look, chosen_size, fold, for_print, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_COLUMNS: Final = 3
_LEAST_WIDTH: Final = 1.4  # inches of a panel


@for_print
def heat_network(
    panels: Mapping[str, NDArray[Any]],
    n_agents: int,
    links: NDArray[np.integer[Any]],
    positions: NDArray[np.float64],
    watched: tuple[int, int] | None = None,
    look: Look | None = None,
) -> Figure:
    """The network with every link coloured by its load, a panel for each protocol, one scale for all.

    Parameters
    ----------
    panels : mapping from name to array (links,)
        Mean transmissions per round on each link, both directions together.
    n_agents : int
        How many agents there are.
    links : int array (links, 2)
        Which two agents each link joins.
    positions : float array (agents, 2)
        Where the agents are drawn.
    watched : (int, int), optional
        A link to point out.
    look : Look, optional
        Axes, one for each panel, or size.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.5]])
    >>> figure = heat_network({"irs": np.array([2.0, 4.0])}, 3, np.array([[0, 1], [1, 2]]), places)
    >>> figure.axes[0].get_title()
    'irs'
    """
    need("matplotlib", "pictures", "a picture")
    from matplotlib.collections import LineCollection

    columns = min(len(panels), _MAX_COLUMNS)
    size = chosen_size(look)
    if look is not None and look.ax is not None:
        columns = len(panels)
    elif size is not None:
        columns = max(1, min(columns, int(size[0] / _LEAST_WIDTH)))
    figure, grid = new_figure(-(-len(panels) // columns), columns, height=2.0, look=look)
    highest = max((float(load.max()) for load in panels.values() if load.size), default=1.0)
    drawn = None
    for axes, (name, load) in zip(grid.flat, panels.items(), strict=False):
        order = np.argsort(load, kind="stable")  # the busiest on top
        drawn = LineCollection(list(positions[links[order]]), cmap="inferno_r", linewidths=1.3, zorder=1)
        drawn.set_array(np.asarray(load, dtype=float)[order])
        drawn.set_clim(0.0, highest or 1.0)
        axes.add_collection(drawn)
        axes.scatter(*positions.T, s=7 if n_agents <= 200 else 2, color="#444444", zorder=2, linewidths=0)
        if watched is not None:
            _point_out(axes, positions[list(watched)])
        axes.set_title(fold(name, max(12, int(15 * axes.get_position().width * figure.get_figwidth()))))
        axes.set_axis_off()
        axes.margins(0.04)
        axes.set_aspect("equal")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    if drawn is not None:
        figure.colorbar(drawn, ax=list(grid.flat), shrink=0.8, aspect=25, label="transmissions per round")
    return figure


@for_print
def trajectory(
    rounds: Sequence[int], snapshots: Sequence[NDArray[np.integer[Any]]], positions: NDArray[np.float64]
) -> Figure:
    """A dynamic network in a few of its rounds.

    Parameters
    ----------
    rounds : sequence of int
        Which rounds.
    snapshots : sequence of int arrays (links, 2)
        The links of each.
    positions : float array (agents, 2)
        Where the agents are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> trajectory([0, 9], [np.array([[0, 1]]), np.empty((0, 2), dtype=int)], places).axes[1].get_title()
    'round 9, 0 links'
    """
    need("matplotlib", "pictures", "a picture")
    from matplotlib.collections import LineCollection

    figure, grid = new_figure(1, len(rounds), height=1.9)
    for axes, t, links in zip(grid[0], rounds, snapshots, strict=True):
        axes.add_collection(LineCollection(list(positions[links]), colors="#7F7F7F", linewidths=0.5, zorder=1))
        axes.scatter(*positions.T, s=6, color="#0072B2", zorder=2, linewidths=0)
        axes.set_title(f"round {t}, {len(links)} links")
        axes.set_axis_off()
        axes.set_aspect("equal")
    return figure


def _point_out(axes: Axes, ends: NDArray[np.float64]) -> None:
    """Rings around the ends of a link, and a broken line along it that leaves its colour readable."""
    axes.plot(*ends.T, color="#0072B2", linewidth=2.6, linestyle=(0, (1.2, 1.2)), zorder=1.5)
    axes.scatter(ends[:, 0], ends[:, 1], s=34, facecolors="none", edgecolors="#0072B2", linewidths=1.3, zorder=3)
