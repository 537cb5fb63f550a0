"""One point for each protocol, density or value of a swept key. The figure says what bars are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import Look, for_print, legend, logarithmic, new_figure, state_band, thousands

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_TICKS = 8


@for_print
def tradeoff(
    networks: Mapping[str, Mapping[str, tuple[NDArray[Any], NDArray[Any]]]], look: Look | None = None
) -> Figure:
    """Group regret against transmissions at the horizon, a panel for each network.

    Parameters
    ----------
    networks : mapping from title to mapping from name to (messages, regret)
        Values of each replicate. A protocol that sends nothing is drawn as a line.
    look : Look, optional
        Axes, size, scales and bars; the horizontal axis is logarithmic.

    Examples
    --------
    >>> import numpy as np
    >>> figure = tradeoff({"er": {"irs": (np.array([300.0, 310.0]), np.array([20.0, 22.0]))}})
    >>> figure.axes[0].get_xscale()
    'log'
    """
    look = look or Look()
    figure, grid = new_figure(1, len(networks), height=2.0, look=look)
    names = list(dict.fromkeys(name for points in networks.values() for name in points))
    palette, sweep = look.palette(names), look.sweep(names)
    shown = set()
    for axes, (title, points) in zip(grid[0], networks.items(), strict=True):
        for name, (messages, regret) in points.items():
            colour, style = palette.style(name)
            label, fill = name, palette.fill(name)
            if sweep is not None and name in sweep.values:
                # Markers distinguish the protocols, and the legend has each once, in no value's colour.
                colour, label, fill, panel = sweep.colour(name), "_", "full", sweep.panels[name]
                if panel not in shown:
                    marks = {"marker": palette.marker(name), "markersize": 5, "linestyle": "none"}
                    axes.plot([], [], color="#555555", label=panel, **marks)
                shown.add(panel)
            if not np.any(messages):
                axes.axhline(regret.mean(), color=colour, linestyle=style, label=name)
                continue
            axes.errorbar(
                messages.mean(),
                regret.mean(),
                xerr=float(look.half_width(messages)),
                yerr=float(look.half_width(regret)),
                color=colour,
                marker=palette.marker(name),
                fillstyle=fill,
                markersize=5,
                elinewidth=0.8,
                capsize=2,
                linestyle="none",
                label=label,
            )
        logarithmic(axes, "x")
        axes.set_title(title)
        axes.set_xlabel("transmissions")
        look.scale_height(axes)
    grid[0, 0].set_ylabel("group regret")
    if sweep is not None:
        sweep.bar(figure, list(grid.flat))
    legend(figure, grid[0, 0], len(names), look)
    several = any(len(regret) > 1 for points in networks.values() for _, regret in points.values())
    state_band(figure, several, look, "bars")
    return figure


@for_print
def against_delta(panels: Mapping[str, tuple[str, NDArray[Any], NDArray[Any], tuple[float, float], float]]) -> Figure:
    """Group regret against the theory's delta, with the best line and its R².

    Parameters
    ----------
    panels : mapping from title to (name, delta, regret, (slope, intercept), r_squared)
        Two rows of panels at most; the name of a protocol gives the colour.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> figure = against_delta({"FwA": ("fwa", x, 2 * x, (2.0, 0.0), 1.0)})
    >>> figure.axes[0].get_title()
    'FwA, R² = 1.0000'
    """
    columns = min(2, len(panels))
    figure, grid = new_figure(-(-len(panels) // columns), columns, height=2.1)
    for axes, (title, (name, delta, regret, (slope, intercept), r_squared)) in zip(
        grid.flat, panels.items(), strict=False
    ):
        palette = Look().palette([name])
        colour, _ = palette.style(name)
        ends = np.array([delta.min(), delta.max()])
        axes.plot(ends, slope * ends + intercept, color="#888888", linewidth=1)
        axes.scatter(delta, regret, s=14, color=colour, marker=palette.marker(name), linewidths=0, zorder=3)
        axes.set_title(f"{title}, R² = {r_squared:.4f}")
        axes.set_xlabel("delta")
        axes.set_ylabel("group regret")
        thousands(axes)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    return figure


@for_print
def over_key(
    key: str, series: Mapping[str, tuple[Sequence[float], Sequence[Any], Sequence[Any]]], look: Look | None = None
) -> Figure:
    """Group regret and transmissions at the horizon over a swept key.

    Parameters
    ----------
    key : str
        The key along the horizontal axis.
    series : mapping from name to (values, regrets, messages)
        The key's values and, for each, the values of all runs there.
    look : Look, optional
        Axes (two), size, scales and bars.

    Examples
    --------
    >>> figure = over_key("protocol.ttl", {"fwa": ([1, 2], [[9.0, 8.0], [7.0, 6.0]], [[10, 10], [30, 31]])})
    >>> figure.axes[1].get_xlabel()
    'protocol.ttl'
    """
    look = look or Look()
    figure, grid = new_figure(1, 2, look=look)
    several, palette = False, look.palette(series)
    for name, (values, regrets, messages) in series.items():
        colour, style = palette.style(name)
        for axes, runs in zip(grid[0], (regrets, messages), strict=True):
            means = [float(np.mean(one)) for one in runs]
            bars = [float(look.half_width(np.asarray(one))) for one in runs]
            several = several or any(bars)
            marker = palette.marker(name)
            axes.errorbar(
                values,
                means,
                bars,
                color=colour,
                linestyle=style,
                marker=marker,
                markersize=4,
                capsize=2,
                label=name,
            )
    places = sorted({value for values, _, _ in series.values() for value in values})
    for axes, label in zip(grid[0], ("group regret", "transmissions"), strict=True):
        if "x" in look.log:
            axes.set_xscale("log")
            axes.minorticks_off()
        if len(places) <= _MAX_TICKS:
            axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.set_xlabel(key)
        axes.set_ylabel(label)
        look.scale_height(axes)
    legend(figure, grid[0, 0], len(series), look)
    state_band(figure, several, look, "bars")
    return figure
