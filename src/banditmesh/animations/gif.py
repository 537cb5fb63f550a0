"""Documents as animated GIFs, for where no script runs: a README, a slide, a chat.

Drawn by matplotlib as the player draws them: agents by regret, links by load, copies of a message by their fate. At
most as many frames are drawn as a small file holds, evenly spaced; the last one stays longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import plots
from ..plots.style import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_FRAMES: Final = 60
_DPI: Final = 100
_COLOURS: Final = 64
#: Milliseconds that a frame stays, by the kind of document, and the last one.
_STAY: Final = {"message": 1200, "run": 120}
_LAST: Final = 2500


def as_gif(document: Mapping[str, Any], title: str = "") -> bytes:
    """A document as the content of an animated GIF that begins again at its end.

    Parameters
    ----------
    document : mapping
        From a `Recorder`, `message_document` or `trace_document`.
    title : str
        The heading.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> as_gif(bm.animate(bm.follow(problem, "fwa(2)", origin=0, arm=0)).document)[:6]
    b'GIF89a'
    """
    from PIL import Image

    drawn = _messages(document) if document["kind"] == "message" else _rounds(document)
    images = []
    for figure in drawn:
        figure.suptitle(title.replace("$", r"\$"), fontsize=11)
        stream = BytesIO()
        figure.savefig(stream, format="png", dpi=_DPI)
        images.append(Image.open(stream).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE))
    stays = [_STAY[document["kind"]]] * len(images)
    stays[-1] = _LAST
    stream = BytesIO()
    images[0].save(
        stream, format="GIF", save_all=True, append_images=images[1:], duration=stays, loop=0, optimize=False
    )
    return stream.getvalue()


def _messages(document: Mapping[str, Any]) -> Iterator[Figure]:
    """A message before its first hop, and after each."""
    places, links = _network(document)
    panels = document["panels"]
    for n_steps in range(max(len(panel["steps"]) for panel in panels) + 1):
        figure = blank_figure(3.6 * len(panels) + 0.4, 4.0)
        for axes, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
            copies = [tuple(copy[:4]) for step in panel["steps"][:n_steps] for copy in step["copies"]]
            way = plots.Way(panel["label"], document["origin"], copies)
            plots.draw_network(
                document["network"]["names"],
                places,
                links,
                document["holders"],
                document["arm"],
                way=way,
                look=plots.Look(axes),
            )
            axes.get_legend().remove()
        yield figure


def _rounds(document: Mapping[str, Any]) -> Iterator[Figure]:
    """A run before its first round, and after some of its frames."""
    from matplotlib.collections import LineCollection

    places, links = _network(document)
    frames = document["frames"]
    regret = np.zeros(len(places))
    load = {(int(i), int(j)): 0.0 for i, j in links}
    up = set(load)
    most_regret = max((max(frame["agents"][1::2], default=0.0) for frame in frames), default=0.0) or 1.0
    most_load = max((max(frame["traffic"][2::3], default=0) / frame["rounds"] for frame in frames), default=0.0) or 1.0
    shown = set(np.linspace(0, len(frames), min(len(frames) + 1, MAX_FRAMES)).round().astype(int).tolist())
    for number in range(len(frames) + 1):
        frame: dict[str, Any] = frames[number - 1] if number else {"round": 0, "regret": 0.0, "messages": 0}
        if number:
            regret[frame["agents"][::2]] = frame["agents"][1::2]
            up = (up | _pairs(frame["up"])) - _pairs(frame["down"])
            triples = zip(*(frame["traffic"][k::3] for k in range(3)), strict=True)
            load.update({(i, j): n / frame["rounds"] for i, j, n in triples})
        if number not in shown:
            continue
        figure = blank_figure(5.2, 4.4)
        axes = figure.subplots()
        order = sorted(up, key=lambda link: load.get(link, 0.0))
        lines = LineCollection([places[list(link)] for link in order], cmap="inferno_r", linewidths=1.8, zorder=1)
        lines.set_array(np.array([load.get(link, 0.0) for link in order]))
        lines.set_clim(-0.12 * most_load, most_load)
        axes.add_collection(lines)
        look: dict[str, Any] = {"c": regret, "cmap": "viridis_r", "vmin": 0.0, "vmax": most_regret}
        size = 140 if len(places) <= 30 else 50 if len(places) <= 200 else 12
        axes.scatter(places[:, 0], places[:, 1], s=size, edgecolors="#444444", linewidths=0.6, zorder=2, **look)
        told = "" if frame["regret"] is None else f"group regret {frame['regret']:,.0f}, "
        axes.set_title(f"round {frame['round']:,}: {told}{frame['messages']:,} transmissions", fontsize=9)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.08)
        yield figure


def _network(document: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where agents are drawn, with y upwards, and the links of the first round."""
    network = document["network"]
    places = np.column_stack([network["x"], 1.0 - np.array(network["y"])])
    return places, np.array(network["links"], dtype=np.int64).reshape(-1, 2)


def _pairs(flat: list[int]) -> set[tuple[int, int]]:
    return set(zip(flat[::2], flat[1::2], strict=True))
