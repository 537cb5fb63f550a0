"""Pictures from plain arrays. Nothing here knows of engines or protocols beyond a name and its colour.

Every protocol keeps its colour and line style in all figures; both differ between protocols, so that a figure can be
read in grey. A band is one standard deviation over replicates on either side of the mean, and the figure says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, legible to readers with any colour vision.
_STYLES: dict[str, tuple[str, Any]] = {
    "none": ("#000000", ":"),
    "irs": ("#E69F00", "-."),
    "gossip": ("#56B4E9", "--"),
    "probabilistic": ("#009E73", (0, (5, 1, 1, 1))),
    "fwa": ("#D55E00", "-"),
    "flooding": ("#0072B2", "-"),
    "centralised": ("#CC79A7", "--"),
}
_OTHERS = ("#8C564B", "#7F7F7F", "#BCBD22", "#9467BD")

Curves = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]


def regret_and_messages(curves: Mapping[str, Curves]) -> Figure:
    """Two panels: group regret and transmissions over the rounds.

    Parameters
    ----------
    curves : mapping from name to (rounds, regret, messages)
        The recorded rounds, and arrays (replicates, records) of cumulative values.
    """
    figure, (left, right) = _figure(1, 2)
    several = any(len(regret) > 1 for _, regret, _ in curves.values())
    others = itertools.cycle(_OTHERS)
    for name, (rounds, regret, messages) in curves.items():
        colour, style = _STYLES[name] if name in _STYLES else (next(others), "-")
        _curve(left, rounds, regret, name, colour, style)
        _curve(right, rounds, messages, name, colour, style)
    left.set_ylabel("group regret")
    right.set_ylabel("transmissions")
    for axes in (left, right):
        axes.set_xlabel("round")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    if len(curves) > 1:
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(curves), 6), frameon=False)
    if several:
        figure.supxlabel("mean over replicates; bands: one standard deviation", fontsize=8)
    return figure


def _figure(rows: int, columns: int) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # A figure of its own: importing pyplot would pick a backend for the whole process.
    figure = Figure(figsize=(3.6 * columns, 2.9 * rows), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    return figure, axes


def _curve(axes: Axes, x: NDArray[Any], values: NDArray[Any], label: str, colour: str, style: Any) -> None:
    mean = values.mean(axis=0)
    axes.plot(x, mean, color=colour, linestyle=style, linewidth=1.4, label=label)
    if len(values) > 1:
        sd = values.std(axis=0, ddof=1)
        axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
