"""What all figures share: sizes, colours, legends, and how they are saved."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import InputError, need
from ..files import atomic
from .palette import Chosen, Palette, check_chosen
from .sweeps import Sweep, find_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The fates of a message's copies, in the same palette; each also has a shape, so that none relies on colour alone.
FATE_COLOURS: Final = {
    "relayed": "#0072B2",
    "absorbed": "#D55E00",
    "expired": "#E69F00",
    "stopped": "#CC79A7",
    "queued": "#56B4E9",
    "duplicate": "#7F7F7F",
    "lost": "#7F7F7F",
}
#: The colour of agents that have an arm and learn about it.
LEARNED: Final = "#009E73"
#: The colour maps of loads and of agents, from high to low.
_MAPS: Final = ("inferno", "viridis")
_COLUMN: Final = 3.4
MAX_POINTS: Final = 250  # of a drawn curve: more cannot be seen, and an SVG would grow with them
#: What bands and bars can be, and the words for each.
BANDS: Final = {"sd": "one standard deviation", "ci": "95 % confidence intervals", "none": ""}
_NARROW: Final = 5.0  # inches: below, two panels are put one below the other
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
#: The salt for identifiers in an SVG: the same figure gives the same file.
_SVG: Final = {"svg.hashsalt": "banditmesh", "svg.fonttype": "path"}
#: Fonts that journals accept: outlines, not bitmaps.
_FONTS: Final = {"pdf.fonttype": 42, "ps.fonttype": 42}

#: Prefixes of the backends that show windows; a notebook displays a figure by itself, and once is enough.
_WINDOWS: Final = ("gtk", "macosx", "qt", "tk", "wx", "webagg")

P = ParamSpec("P")


def for_print(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with the sizes of print, except for the user's settings; the settings of the process stay as they were."""

    @functools.wraps(draw)
    def drawn(*arguments: P.args, **settings: P.kwargs) -> Figure:
        need("matplotlib", "pictures", "a picture")
        import matplotlib as mpl

        with mpl.rc_context(_unless_changed(_PRINT)):
            return draw(*arguments, **settings)

    return drawn


@dataclass(frozen=True)
class Look:
    """How a user wants a figure to look.

    Attributes
    ----------
    ax : axes, sequence of axes or None
        Where to draw; a new figure if None.
    figsize : (float, float) or None
        Width and height of a new figure in inches.
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    band : str
        What bands and bars are: "sd", "ci" or "none".
    colors, styles : mapping from name, sequence, str or None
        Colours and lines, for each name or one after the other.
    protocols : mapping from name to str
        The protocols of names that do not say theirs: they keep its colour.
    """

    ax: Any = None
    figsize: tuple[float, float] | None = None
    log: str = ""
    band: str = "sd"
    colors: Chosen | None = None
    styles: Chosen | None = None
    protocols: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_chosen(self.colors, self.styles)
        if self.log not in ("", "x", "y", "xy"):
            raise InputError(f'log must be "x", "y", "xy" or "" for none, got {checks.shown(self.log)}')
        checks.choice("band", self.band, BANDS)
        if self.figsize is not None:
            if self.ax is not None:
                raise InputError("ax and figsize exclude each other, got both; the size is that of the axes' figure")
            if not isinstance(self.figsize, tuple | list) or len(self.figsize) != 2:
                raise InputError(f"figsize must be width and height in inches, got {checks.shown(self.figsize)}")
            for side in self.figsize:
                checks.positive("figsize", side)

    def palette(self, names: Iterable[str]) -> Palette:
        """The colours, lines and markers of the names in a figure."""
        return Palette(tuple(names), self.protocols, self.colors, self.styles)

    def sweep(self, names: Collection[str]) -> Sweep | None:
        """The sweep that many names belong to, unless the user chose axes, colours or lines."""
        return find_sweep(names) if self.ax is self.colors is self.styles is None else None

    def half_width(self, values: NDArray[Any]) -> Any:
        """Half the width of a band or bar over the first axis of values; 0 for one value or without bands."""
        n = len(values)
        if n < 2 or self.band == "none":
            return np.zeros(values.shape[1:])
        sd = values.std(axis=0, ddof=1)
        if self.band == "sd":
            return sd
        from scipy.special import stdtrit

        return float(stdtrit(n - 1, 0.975)) * sd / n**0.5

    def scale(self, axes: Axes) -> None:
        """Set the axes' scales: logarithmic, or from 0."""
        if "x" in self.log:
            logarithmic(axes, "x")
        else:
            axes.set_xlim(left=0)
        self.scale_height(axes)

    def scale_height(self, axes: Axes) -> None:
        """Set only the vertical axis' scale."""
        if "y" in self.log:
            logarithmic(axes, "y")
        else:
            axes.set_ylim(bottom=0)
            thousands(axes)


def _unless_changed(settings: dict[str, Any]) -> dict[str, Any]:
    """Our settings, except where the user has chosen one."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl

    return {name: value for name, value in settings.items() if mpl.rcParams[name] == mpl.rcParamsDefault[name]}


def save(figure: Figure, stem: str | PathLike[str], kinds: Iterable[str] = ("png", "svg")) -> list[Path]:
    """Write a figure as STEM.png, STEM.svg and so on; the same figure gives the same files."""
    contents = {Path(f"{stem}.{kind}"): as_bytes(figure, kind) for kind in kinds}
    for path, content in contents.items():
        atomic.write(path, content)
    return list(contents)


def as_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the content of a file: "png", "svg" or "pdf"; the same figure gives the same bytes."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl

    stream = BytesIO()
    settle(figure)
    with mpl.rc_context(_SVG):
        date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(stream, format=kind, dpi=200, metadata=date)
    return stream.getvalue()


def settle(figure: Figure) -> None:
    """Lay a figure out once and for all: otherwise it would move a little every time it is drawn."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def blank_figure(width: float, height: float) -> Figure:
    """An empty figure that notebooks display and that embeds its fonts; the user's settings take precedence."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class PrintFigure(Figure):
        def savefig(self, *arguments: Any, **settings: Any) -> None:
            with mpl.rc_context(_unless_changed(_FONTS)):
                super().savefig(*arguments, **settings)

        def _repr_png_(self) -> bytes:
            stream = BytesIO()
            self.savefig(stream, format="png")
            return stream.getvalue()

    default = mpl.rcParamsDefault
    dpi = 150 if mpl.rcParams["figure.dpi"] == default["figure.dpi"] else mpl.rcParams["figure.dpi"]
    settings: dict[str, Any] = {"figsize": (width, height), "layout": "constrained", "dpi": dpi}
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and mpl.get_backend().lower().startswith(_WINDOWS):
        figure: Figure = pyplot.figure(FigureClass=PrintFigure, **settings)  # which pyplot.show() shows
        return figure
    # Not from pyplot: importing it would pick a backend for the whole process.
    figure = PrintFigure(**settings)
    FigureCanvasAgg(figure)
    return figure


def chosen_size(look: Look | None = None) -> tuple[float, float] | None:
    """The size that the user wants a new figure to have, by `look` or by rcParams; None if there is none."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl

    if look is not None and look.figsize is not None:
        return look.figsize
    mine, default = mpl.rcParams["figure.figsize"], mpl.rcParamsDefault["figure.figsize"]
    return None if list(mine) == list(default) else (float(mine[0]), float(mine[1]))


def own_axes(ax: Any, n: int) -> list[Any]:
    """The user's axes, of which there must be `n`."""
    given = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    if len(given) != n or not all(hasattr(one, "plot") for one in given):
        wanted = "axes" if n == 1 else f"{n} axes"
        raise InputError(f"ax must be {wanted}, got {checks.shown(ax)}; pyplot.subplots(...)[1] gives some")
    return given


def new_figure(rows: int, columns: int, height: float = 2.4, look: Look | None = None) -> tuple[Figure, Any]:
    """A figure of one column's width for one panel, and of two columns' for more, with its grid of axes.

    The user's axes or size take precedence; in a narrow figure two panels are put one below the other.
    """
    look = look or Look()
    if look.ax is not None:
        given = own_axes(look.ax, rows * columns)
        return given[0].figure, np.array(given, dtype=object).reshape(rows, columns)
    size = chosen_size(look) or (_COLUMN if columns == 1 else 2 * _COLUMN + 0.2, height * rows + 0.35)
    figure = blank_figure(*size)
    if (rows, columns) == (1, 2) and size[0] < _NARROW:
        return figure, figure.subplots(2, 1, squeeze=False).reshape(1, 2)
    return figure, figure.subplots(rows, columns, squeeze=False)


@functools.cache
def map_colours(n: int = 10) -> dict[str, list[str]]:
    """Some colours of each colour map, for drawings made elsewhere."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return {name: [to_hex(colour) for colour in mpl.colormaps[name](np.linspace(0, 1, n))] for name in _MAPS}


def logarithmic(axes: Axes, which: str) -> None:
    """Make the axis "x" or "y" logarithmic, with few labels: 1, 2 and 5 of each decade, or powers of ten if many."""
    need("matplotlib", "pictures", "a picture")
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    axis = axes.xaxis if which == "x" else axes.yaxis
    thousand = EngFormatter(sep="")
    span = 30 if which == "x" else 100  # more labels fit one above another than side by side
    # One label alone says nothing about the scale.
    is_finer = high < span * low or math.floor(math.log10(high)) <= math.ceil(math.log10(low))
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_finer else (1.0,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousand(value) if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def thousands(axes: Axes) -> None:
    """Write large numbers along the vertical axis in powers of ten."""
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)


def legend(figure: Figure, axes: Axes, n_names: int, look: Look | None = None) -> None:
    """One legend for the whole figure, above it, in as many columns as fit; the figure grows by its height.

    A size that the user chose is kept, and on the user's own axes the legend is theirs.
    """
    if n_names < 2:
        return
    handles, labels = axes.get_legend_handles_labels()
    # Of points with bars, the mark alone: bars would cover it.
    handles = [getattr(handle, "lines", (handle,))[0] for handle in handles]
    if look is not None and look.ax is not None:
        axes.legend(handles, labels, frameon=False)
        return
    for columns in range(min(n_names, 6), 0, -1):
        drawn = figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
        if columns == 1 or drawn.get_window_extent().width <= figure.bbox.width:
            break
        drawn.remove()
    if look is None or look.figsize is None:
        more = drawn.get_window_extent().height / figure.dpi - 0.35
        figure.set_figheight(figure.get_figheight() + max(0.0, more))


def state_band(figure: Figure, several: bool, look: Look | None = None, what: str = "bands") -> None:
    """Say what the bands are, if there are any: below the figure, or in the legend of the user's own axes."""
    look = look or Look()
    if not several or look.band == "none":
        return
    if look.ax is None:
        note(figure, f"mean over replicates; {what}: {BANDS[look.band]}")
        return
    first = own_axes(look.ax, int(np.size(look.ax)))[0]
    drawn = first.get_legend() or first.legend([], [], frameon=False)
    drawn.set_title(f"{what}: {BANDS[look.band]}")


def note(figure: Figure, text: str) -> None:
    """A line below the figure."""
    need("matplotlib", "pictures", "a picture")
    import matplotlib as mpl

    figure.supxlabel(text, fontsize=mpl.rcParams["legend.fontsize"])


def fold(title: str, width: int) -> str:
    """A title on lines of about that many characters, broken where its parts meet.

    Examples
    --------
    >>> fold("flooding(8)+growth(0.25, echoes=1)", 20).splitlines()
    ['flooding(8)', '+growth(0.25,', 'echoes=1)']
    """
    lines = [""]
    for part in re.findall(r"[+]?[^+,\s]+,?\s*", title):
        if lines[-1] and len((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)
