"""Options of charts: curves with bands, points with a front, and what they share with the pictures of `plots`.

Colours and markers are those of `plots/palette.py`. Black is no colour on a dark page, so it turns white there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ..plots.palette import base_of, style_of

#: Colours of what is no protocol: Okabe and Ito's, legible to readers with any colour vision.
OTHERS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#8C564B", "#7F7F7F")
#: A triangle that points down.
DOWN: Final = "path://M0,0 L10,0 L5,9 Z"
_SYMBOLS: Final = {
    "none": "path://M0,0 L10,10 M10,0 L0,10",
    "irs": "rect",
    "gossip": DOWN,
    "probabilistic": "diamond",
    "fwa": "circle",
    "flooding": "triangle",
    "tree": "path://M3,0 L7,0 L7,3 L10,3 L10,7 L7,7 L7,10 L3,10 L3,7 L0,7 L0,3 L3,3 Z",
}
_BAND: Final = 0.18
#: Numbers as people read them: five digits, with thousands apart.
_ROUNDED: Final = """(value) => [value].flat().map(
  (one) => typeof one === "number" ? one.toLocaleString("en-GB", { maximumSignificantDigits: 5 }) : one).join(", ")"""
#: Narrow charts: up to how many pixels wide they are, and at least; and what lines and letters of legends take up.
_WIDTHS: Final = {500: 420, 420: 340, 340: 270}
_LINE: Final = 22
_LETTER: Final = 7.0
_MAX_LINES: Final = 6


def colour_of(name: str, names: Collection[str], is_dark: bool) -> str:
    """The colour of a protocol among others, as in the pictures."""
    colour: str = style_of(name, names)[0]
    return "#FFFFFF" if is_dark and colour == "#000000" else colour


def symbol_of(name: str) -> str:
    """The marker of a protocol."""
    return _SYMBOLS.get(base_of(name), "circle")


def dash_of(name: str, names: Collection[str]) -> str | list[float]:
    """The dash pattern of a protocol, as in the pictures."""
    line = style_of(name, names)[1]
    plain: dict[str, str | list[float]] = {"-": "solid", "--": "dashed", ":": "dotted", "-.": [8, 3, 2, 3]}
    return plain[line] if isinstance(line, str) else [2 * length for length in line[1]]


def other(place: int) -> tuple[str, str | list[float]]:
    """Colour and dash of a series that is no protocol, by its position; the dash changes when colours repeat."""
    return OTHERS[place % len(OTHERS)], ("solid", "dashed", "dotted")[place // len(OTHERS) % 3]


def symbol(place: int) -> str:
    """The marker of a group that is no protocol, by its position."""
    markers = list(_SYMBOLS.values())[1:]
    return markers[place % len(markers)]


def frame(x: str, y: str, is_dark: bool, *, log_y: bool = False, **more: Any) -> dict[str, Any]:
    """An empty chart with named axes; a name says the unit."""
    text, line = ("#E0E0E0", "#555555") if is_dark else ("#333333", "#CCCCCC")
    label = {"color": text, "hideOverlap": True}
    axis = {"nameTextStyle": {"color": text}, "axisLabel": label}
    axis |= {"splitLine": {"lineStyle": {"color": line, "opacity": 0.5}}, "axisLine": {"lineStyle": {"color": text}}}
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": "Roboto, system-ui, sans-serif"},
        "grid": {"left": 12, "right": 24, "top": 58, "bottom": 34, "containLabel": True},
        "legend": {"type": "scroll", "top": 0, "itemWidth": 22, "textStyle": {"color": text}, "data": []},
        "tooltip": {"trigger": "axis", "confine": True, ":valueFormatter": _ROUNDED},
        "xAxis": {
            **axis,
            "axisLabel": {**label, "margin": 11},
            "type": "value",
            "name": x,
            "nameLocation": "middle",
            "nameGap": 30,
        },
        "yAxis": {
            **axis,
            "type": "log" if log_y else "value",
            "name": y,
            "nameTextStyle": {"color": text, "align": "left"},
            "nameGap": 12,
            "scale": log_y,
        },
        "series": [],
        **more,
    }


def rounded(value: float) -> str:
    """A number as people read it.

    Examples
    --------
    >>> rounded(183628.4), rounded(2.46123), rounded(0.0)
    ('183,628', '2.461', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def draw(chart: Any, options: Mapping[str, Any]) -> None:
    """Show other options in a chart that is there."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def with_legend(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The same chart with a legend of these names: one line with pages or, in a narrow chart, as many lines as needed.

    Examples
    --------
    >>> chart = with_legend(frame("x", "y", False), ["fwa", "flooding", "recommended", "upper bound", "lower bound"])
    >>> [one["option"]["grid"]["top"] for one in chart["media"]]
    [58, 80, 80, 80]
    """
    names = list(names)
    legend, top = options["legend"], options["grid"]["top"]
    legend["data"] = names
    lines = {width: _lines(names, legend["itemWidth"], least) for width, least in _WIDTHS.items()}
    if 1 < max(lines.values()) <= _MAX_LINES:
        # Of those that apply, the last one counts. A legend of another type knows nothing of the one that it replaces.
        options["media"] = [
            {"option": {"legend": dict(legend), "grid": {"top": top}}},
            *(
                {
                    "query": {"maxWidth": width},
                    "option": {"legend": {**legend, "type": "plain"}, "grid": {"top": top + _LINE * (n - 1)}},
                }
                for width, n in lines.items()
            ),
        ]
    return options


def _lines(names: Iterable[str], mark: int, width: int) -> int:
    """How many rows a legend takes in a chart of that width."""
    n, place = 1, 0.0
    for name in names:
        item = mark + 15 + _LETTER * len(name)
        n, place = (n + 1, item) if place and place + item > width else (n, place + item)
    return n


def curve(name: str, places: Sequence[Any], values: Mapping[str, Sequence[float]], colour: str, dash: Any) -> list[Any]:
    """The series of a line with its band: what lies below the band, the band, and the line."""
    low, high = values["low"], values["high"]
    band = [[x, top - bottom] for x, bottom, top in zip(places, low, high, strict=True)]
    shared = {"type": "line", "symbol": "none", "silent": True, "tooltip": {"show": False}, "stack": f"{name} band"}
    shared |= {"stackStrategy": "all", "lineStyle": {"opacity": 0}}
    floor = [[x, bottom] for x, bottom in zip(places, low, strict=True)]
    return [
        {**shared, "id": f"{name} below", "name": f"{name} below", "data": floor},
        {
            **shared,
            "id": f"{name} band",
            "name": f"{name} band",
            "data": band,
            "areaStyle": {"color": colour, "opacity": _BAND},
        },
        line(name, list(zip(places, values["mean"], strict=True)), colour, dash),
    ]


def line(name: str, data: Sequence[Any], colour: str, dash: Any = "solid", **more: Any) -> dict[str, Any]:
    """A line through points (x, y)."""
    style = {"color": colour, "type": dash, "width": 2}
    look = {"type": "line", "symbol": "none", "lineStyle": style, "itemStyle": {"color": colour}}
    return {"id": name, "name": name, **look, "data": data, **more}


def scatter(
    name: str, data: Sequence[Any], symbol: str, size: int, style: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Markers at points (x, y)."""
    look = {"type": "scatter", "symbol": symbol, "symbolSize": size, "itemStyle": style}
    return {"id": name, "name": name, **look, "data": data, **more}


def with_curves(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """A chart that will hold these curves, empty at first, so that each can be changed by itself."""
    names = list(names)
    empty: dict[str, list[float]] = {"mean": [], "low": [], "high": []}
    with_legend(options, names)
    options["series"] = [one for name in names for one in curve(name, [], empty, "#888888", "solid")]
    return options
