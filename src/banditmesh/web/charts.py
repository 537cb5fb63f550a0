"""Options of charts: curves with bands, points with a front, and what they share with the pictures of `plots`.

Colours and markers are those of `plots/style.py`. Black is no colour on a dark page, so it turns white there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ..plots.style import base_of, style_of

#: Colours of what is no protocol: Okabe and Ito's, legible to readers with any colour vision.
OTHERS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#8C564B", "#7F7F7F")
_SYMBOLS: Final = {
    "none": "path://M0,0 L10,10 M10,0 L0,10",
    "irs": "rect",
    "gossip": "arrow",
    "probabilistic": "diamond",
    "fwa": "circle",
    "flooding": "triangle",
    "tree": "pin",
}
_BAND: Final = 0.18


def colour_of(name: str, names: Collection[str], is_dark: bool) -> str:
    """The colour of a protocol among others, as in the pictures."""
    colour: str = style_of(name, names)[0]
    return "#FFFFFF" if is_dark and colour == "#000000" else colour


def symbol_of(name: str) -> str:
    """The marker of a protocol."""
    return _SYMBOLS.get(base_of(name), "circle")


def dash_of(name: str, names: Collection[str]) -> str | list[float]:
    """How the line of a protocol is broken, as in the pictures."""
    line = style_of(name, names)[1]
    plain: dict[str, str | list[float]] = {"-": "solid", "--": "dashed", ":": "dotted", "-.": [8, 3, 2, 3]}
    return plain[line] if isinstance(line, str) else [2 * length for length in line[1]]


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
        "tooltip": {"trigger": "axis", "confine": True},
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


def curve(name: str, places: Sequence[Any], values: Mapping[str, Sequence[float]], colour: str, dash: Any) -> list[Any]:
    """The series of a line with its band: what lies below the band, the band, and the line."""
    low, high = values["low"], values["high"]
    band = [[x, top - bottom] for x, bottom, top in zip(places, low, high, strict=True)]
    shared = {"type": "line", "symbol": "none", "silent": True, "tooltip": {"show": False}, "stack": f"{name} band"}
    shared |= {"stackStrategy": "all", "lineStyle": {"opacity": 0}}
    floor = [[x, bottom] for x, bottom in zip(places, low, strict=True)]
    line = [[x, y] for x, y in zip(places, values["mean"], strict=True)]
    return [
        {**shared, "id": f"{name} below", "name": f"{name} below", "data": floor},
        {
            **shared,
            "id": f"{name} band",
            "name": f"{name} band",
            "data": band,
            "areaStyle": {"color": colour, "opacity": _BAND},
        },
        {
            "id": name,
            "name": name,
            "type": "line",
            "symbol": "none",
            "data": line,
            "lineStyle": {"color": colour, "type": dash, "width": 2},
            "itemStyle": {"color": colour},
        },
    ]


def with_curves(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """A chart that will hold these curves, empty at first, so that each can be changed by itself."""
    names = list(names)
    empty: dict[str, list[float]] = {"mean": [], "low": [], "high": []}
    options["legend"]["data"] = names
    options["series"] = [one for name in names for one in curve(name, [], empty, "#888888", "solid")]
    return options
