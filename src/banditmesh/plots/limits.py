"""Measured regret and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import MAX_POINTS, Look, for_print, legend, new_figure, state_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Dashes of the grey lines, to be distinguished without colour.
_LINES: tuple[Any, ...] = ("--", "-.", ":", (0, (8, 2, 1, 2, 1, 2)), (0, (1, 4)))


@for_print
def regret_and_bounds(
    name: str,
    rounds: NDArray[np.int64],
    regret: NDArray[np.float64],
    bounds: Mapping[str, NDArray[Any]],
    look: Look | None = None,
    bands: Mapping[str, tuple[NDArray[Any], NDArray[Any]]] | None = None,
) -> Figure:
    """Group regret over the rounds, with bounds drawn as grey lines.

    Parameters
    ----------
    name : str
        The protocol's.
    rounds : int array (records,)
        The recorded rounds.
    regret : float array (replicates, records)
        Cumulative group regret.
    bounds : mapping from label to array (records,)
        The value of each bound in every recorded round; values that are not positive are left out.
    look : Look, optional
        Axes, size, scales and bands; both axes are logarithmic if not given.
    bands : mapping from label to two arrays (records,), optional
        What lies between a lower and an upper value in every recorded round, drawn as a grey area.

    Examples
    --------
    >>> import numpy as np
    >>> rounds = np.arange(1, 11)
    >>> figure = regret_and_bounds("irs", rounds, rounds[None] * 0.5, {"upper bound": rounds * 9.0})
    >>> figure.axes[0].get_yscale()
    'log'
    """
    look = look or Look(log="xy")
    figure, grid = new_figure(1, 1, height=2.6, look=look)
    axes = grid[0, 0]
    keep = np.unique(np.geomspace(1, len(rounds), min(len(rounds), MAX_POINTS)).round().astype(int)) - 1
    x, mean = rounds[keep], regret[:, keep].mean(axis=0)
    colour, style = look.palette([name]).style(name)
    axes.plot(x, np.where(mean > 0, mean, np.nan), color=colour, linestyle=style, label=f"measured, {name}")
    half = look.half_width(regret[:, keep])
    if half.any():
        axes.fill_between(x, np.maximum(mean - half, 1e-300), mean + half, color=colour, alpha=0.2, linewidth=0)
    for line, (label, values) in zip(_LINES * len(bounds), bounds.items(), strict=False):
        drawn = np.asarray(values, dtype=float)[keep]
        axes.plot(x, np.where(drawn > 0, drawn, np.nan), color="#555555", linestyle=line, label=label)
    for label, (lower, upper) in (bands or {}).items():
        low, high = np.asarray(lower, dtype=float)[keep], np.asarray(upper, dtype=float)[keep]
        axes.fill_between(x, np.maximum(low, 1e-300), high, where=high > 0, color="#555555", alpha=0.15, label=label)
    look.scale(axes)
    shown = mean[mean > 0]
    if shown.size and "y" in look.log:
        axes.set_ylim(bottom=float(shown.min()) / 2)
    axes.set_xlabel("round")
    axes.set_ylabel("group regret")
    legend(figure, axes, 2, look)
    state_band(figure, len(regret) > 1, look)
    return figure
