"""One network with names: which agents have an arm, what links carry, and the journey of one message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import need
from .style import FATE_COLOURS, LEARNED, Look, for_print, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Up to this many agents are drawn with their names.
MAX_NAMES: Final = 60
_LONGEST: Final = 12
_MARKERS: Final = {"relayed": "o", "absorbed": "s", "expired": "v", "stopped": "D", "queued": "o"}
_WORDS: Final = {
    "relayed": "relays",
    "absorbed": "absorbs",
    "expired": "ttl used up",
    "stopped": "stops",
    "queued": "at the end of the run",
    "duplicate": "duplicate",
    "lost": "lost",
}
_FREE: Final = "#B8B8B8"


class Way(NamedTuple):
    """The journey of a message: its origin, and every copy as (sender, receiver, fate, learned), by number."""

    label: str
    origin: int
    copies: Sequence[tuple[int, int, str, bool]]


@for_print
def draw_network(
    names: Sequence[object],
    places: NDArray[np.float64],
    links: NDArray[np.integer[Any]],
    holders: Collection[int] = (),
    arm: str = "",
    loads: NDArray[np.float64] | None = None,
    way: Way | None = None,
    look: Look | None = None,
) -> Figure:
    """A network: agents with their names, rings around those that have an arm, links by load, a message's journey.

    Parameters
    ----------
    names : sequence
        What agents are called.
    places : float array (agents, 2)
        Where they are drawn.
    links : int array (links, 2)
        Which two agents each link joins.
    holders : collection of int
        The agents that have the arm.
    arm : str
        What the arm is called.
    loads : float array (links,), optional
        Mean transmissions per round on each link, both directions together.
    way : Way, optional
        The journey of a message.
    look : Look, optional
        Axes or size.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.5]])
    >>> way = Way("fwa(2)", 0, [(0, 1, "relayed", False), (1, 2, "absorbed", True)])
    >>> figure = draw_network("abc", places, np.array([[0, 1], [1, 2]]), holders=[0, 2], arm="red", way=way)
    >>> figure.axes[0].get_title()
    'fwa(2): 2 transmissions'
    """
    need("matplotlib", "pictures", "a picture")
    from matplotlib.collections import LineCollection

    figure, grid = new_figure(1, 1, height=2.8, look=look)
    axes = grid[0, 0]
    n_agents = len(places)
    size = 120.0 if n_agents <= 30 else 90.0 if n_agents <= MAX_NAMES else 14.0
    if loads is None:
        axes.add_collection(LineCollection(list(places[links]), colors=_FREE, linewidths=0.8, zorder=1))
    else:
        order = np.argsort(loads, kind="stable")  # the busiest on top
        drawn = LineCollection(list(places[links[order]]), cmap="inferno_r", linewidths=1.6, zorder=1)
        drawn.set_array(np.asarray(loads, dtype=float)[order])
        drawn.set_clim(0.0, float(np.max(loads, initial=0.0)) or 1.0)
        axes.add_collection(drawn)
        figure.colorbar(drawn, ax=axes, shrink=0.8, aspect=25, label="transmissions per round")
    if way is not None:
        n_sent = len(way.copies)
        axes.set_title(f"{way.label}: {n_sent:,} transmission{'' if n_sent == 1 else 's'}")
        _arrows(axes, places, way, size)
    _agents(axes, places, set(holders), arm, way, size)
    if n_agents <= MAX_NAMES:
        _names(axes, names, places, way, size)
    axes.set_axis_off()
    _frame(axes, places)
    n_labels = len(axes.get_legend_handles_labels()[1])
    if n_labels and look is not None and look.ax is not None:
        # Anywhere else it would cover agents.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False)
    elif n_labels:
        legend(figure, axes, max(2, n_labels), look)
    return figure


def _frame(axes: Axes, places: NDArray[np.float64]) -> None:
    """Room for all agents, even in a network as flat as a path."""
    low, high = places.min(axis=0), places.max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12) + 0.08 * max(float((high - low).max()), 0.1)
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    axes.set_aspect("equal")


def _arrows(axes: Axes, places: NDArray[np.float64], way: Way, size: float) -> None:
    """Every copy as an arrow; copies that end on their way are dotted."""
    for sender, receiver, fate, _ in way.copies:
        ends = fate in ("duplicate", "lost")
        axes.annotate(
            "",
            xy=places[receiver],
            xytext=places[sender],
            zorder=2,
            arrowprops={
                "arrowstyle": "-|>" if not ends else "->",
                "color": FATE_COLOURS[fate if fate != "lost" else "duplicate"],
                "linestyle": ":" if ends else "-",
                "linewidth": 0.8 if ends else 1.3,
                "shrinkA": size**0.5 * 0.6,
                "shrinkB": size**0.5 * 0.6,
                "mutation_scale": 7,
            },
        )
    for fate in dict.fromkeys(fate for _, _, fate, _ in way.copies if fate in ("duplicate", "lost")):
        axes.plot([], [], color=FATE_COLOURS["duplicate"], linestyle=":", linewidth=0.8, label=f"{_WORDS[fate]} copy")


def _agents(axes: Axes, places: NDArray[np.float64], holders: set[int], arm: str, way: Way | None, size: float) -> None:
    """Every agent by what it did, and a ring around those that have the arm."""
    fates = {} if way is None else {receiver: fate for _, receiver, fate, _ in way.copies if fate in _MARKERS}
    learned = set() if way is None else {receiver for _, receiver, _, learned in way.copies if learned}
    rings = {f"has arm {arm}": (sorted(holders - learned), "#444444"), "learns from it": (sorted(learned), LEARNED)}
    for label, (agents, colour) in rings.items():
        if agents:
            _marks(axes, places[agents], label, size * 2.1, "o", "white", colour, 3)
    groups: dict[str, list[int]] = {}
    for agent in range(len(places)):
        is_origin = way is not None and agent == way.origin
        groups.setdefault("origin" if is_origin else fates.get(agent, ""), []).append(agent)
    for group, agents in groups.items():
        fill = {"origin": "black", "": "white"}.get(group) or FATE_COLOURS[group]
        edge = fill if group else "#444444"
        _marks(axes, places[agents], _WORDS.get(group, group), size, _MARKERS.get(group, "o"), fill, edge, 4)


def _marks(
    axes: Axes, places: NDArray[np.float64], label: str, size: float, marker: str, fill: str, edge: str, order: int
) -> None:
    """Marks of one kind, and their entry in the legend if they have a label."""
    look: dict[str, Any] = {"facecolors": fill, "edgecolors": edge, "linewidths": 1.2 if order == 3 else 0.7}
    axes.scatter(places[:, 0], places[:, 1], s=size, marker=marker, zorder=order, clip_on=False, **look)
    if label:
        # A dollar would begin a formula.
        text = label.replace("$", r"\$")
        axes.plot([], [], linestyle="none", marker=marker, markersize=5, color=fill, markeredgecolor=edge, label=text)


def _names(axes: Axes, names: Sequence[object], places: NDArray[np.float64], way: Way | None, size: float) -> None:
    """Names within their agents if all are short, otherwise below them."""
    texts = [str(name) if len(str(name)) <= _LONGEST else f"{str(name)[: _LONGEST - 1]}…" for name in names]
    within = all(len(text) <= 2 for text in texts) and size > 50
    dark = (
        set() if way is None else {way.origin} | {copy[1] for copy in way.copies if copy[2] in ("relayed", "absorbed")}
    )
    for agent, text in enumerate(texts):
        axes.annotate(
            text,
            places[agent],
            xytext=(0, 0) if within else (0, -(size**0.5) * 0.75 - 1),
            textcoords="offset points",
            ha="center",
            va="center_baseline" if within else "top",
            fontsize=7,
            color="white" if within and agent in dark else "black",
            zorder=5,
            parse_math=False,
        )
