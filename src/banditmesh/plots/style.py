"""What all pictures share: sizes, colours, legends, and how they are saved."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_COLUMN: Final = 3.4
MOST_POINTS: Final = 250  # of a drawn curve: more cannot be seen, and an SVG would grow with them
_BAND: Final = "mean over {what}; bands: one standard deviation"
_PRINT: Final = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
#: What identifiers in an SVG are hashed with: the same figure gives the same file.
_SVG: Final = {"svg.hashsalt": "banditmesh", "svg.fonttype": "path"}

P = ParamSpec("P")


def for_print(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with the sizes of print; the settings of the process are left as they were."""

    @functools.wraps(draw)
    def drawn(*arguments: P.args, **settings: P.kwargs) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(_PRINT):
            return draw(*arguments, **settings)

    return drawn


def save(figure: Figure, stem: str | PathLike[str], kinds: Iterable[str] = ("png", "svg")) -> list[Path]:
    """Write a figure as STEM.png and STEM.svg; the same figure gives the same files."""
    import matplotlib as mpl

    paths = [Path(f"{stem}.{kind}") for kind in kinds]
    settle(figure)
    with mpl.rc_context(_SVG):
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=200, metadata=metadata)
    return paths


def settle(figure: Figure) -> None:
    """Lay a figure out once and for all: otherwise it would move a little every time it is drawn."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def new_figure(rows: int, columns: int, height: float = 2.4) -> tuple[Figure, Any]:
    """A figure of one column's width for one panel, and of two columns' for more, with its grid of axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # A figure of its own: importing pyplot would pick a backend for the whole process.
    width = _COLUMN if columns == 1 else 2 * _COLUMN + 0.2
    figure = Figure(figsize=(width, height * rows + 0.35), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def style_of(name: str, names: Collection[str]) -> tuple[str, Any]:
    """Colour and line style of a name among all names of a figure.

    Those of the built-in protocols are fixed. A variant, "fwa, ttl 2" or "fwa(2)+contested", has its protocol's colour
    and a line of its own.
    """
    if name in _STYLES:
        return _STYLES[name]
    base = base_of(name)
    if base in _STYLES:
        variants = [other for other in names if base_of(other) == base]
        return _STYLES[base][0], _LINES[variants.index(name) % len(_LINES)]
    place = [other for other in names if base_of(other) not in _STYLES].index(name)
    return _OTHERS[place % len(_OTHERS)], _LINES[place // len(_OTHERS) % len(_LINES)]


def marker_of(name: str) -> str:
    """The marker of a protocol."""
    return _MARKERS.get(base_of(name), "o")


def fill_of(name: str, names: Collection[str]) -> str:
    """How the marker of a name is filled, so that variants of a protocol can be told apart."""
    variants = [other for other in names if base_of(other) == base_of(name)]
    return _FILLS[variants.index(name) % len(_FILLS)]


def base_of(name: str) -> str:
    """The protocol that a name is a variant of."""
    return re.split(r"[,(+]", name, maxsplit=1)[0]


def spread(values: NDArray[Any]) -> float:
    """The standard deviation; 0 of a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def thousands(axes: Axes) -> None:
    """Write large numbers along the vertical axis in powers of ten."""
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)


def legend(figure: Figure, axes: Axes, n_names: int) -> None:
    """One legend for the whole figure, above it, in as many columns as fit."""
    if n_names < 2:
        return
    handles, labels = axes.get_legend_handles_labels()
    for columns in range(min(n_names, 6 if figure.get_figwidth() > _COLUMN else 3), 0, -1):
        drawn = figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
        if columns == 1 or drawn.get_window_extent().width <= figure.bbox.width:
            return
        drawn.remove()


def state_band(figure: Figure, several: bool) -> None:
    """Say what the bands are, if there are any."""
    if several:
        figure.supxlabel(_BAND.format(what="replicates"), fontsize=7)
