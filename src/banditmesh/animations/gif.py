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
from ..errors import need
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
    """Runs side by side before their first round, and after some of their frames."""
    runs = document.get("runs", [document])
    frames = [frame for run in runs for frame in run["frames"]]
    ends = (
        max((max(frame["agents"][1::2], default=0.0) for frame in frames), default=0.0) or 1.0,
        max((max(frame["traffic"][2::3], default=0) / frame["rounds"] for frame in frames), default=0.0) or 1.0,
    )
    states = [_State(document, run["frames"]) for run in runs]
    n_frames = max(len(run["frames"]) for run in runs)
    shown = set(np.linspace(0, n_frames, min(n_frames + 1, MAX_FRAMES)).round().astype(int).tolist())
    for number in range(n_frames + 1):
        for state in states if number else ():
            state.go_on()
        if number not in shown:
            continue
        figure = blank_figure(4.4 * len(runs) + 0.4, 4.2)
        for axes, run, state in zip(np.atleast_1d(figure.subplots(1, len(runs))), runs, states, strict=True):
            state.draw(axes, run["label"] if len(runs) > 1 else "", *ends)
        yield figure


class _State:
    """What one run shows in a frame; frames are changes."""

    def __init__(self, document: Mapping[str, Any], frames: list[dict[str, Any]]) -> None:
        self._places, links = _network(document)
        self._frames = iter(frames)
        self._now: dict[str, Any] = {"round": 0, "regret": 0.0 if document["has_regret"] else None, "messages": 0}
        self._regret = np.zeros(len(self._places))
        self._load: dict[tuple[int, int], float] = {}
        self._up = {(int(i), int(j)) for i, j in links}

    def go_on(self) -> None:
        """The next frame, if there is one."""
        frame = next(self._frames, None)
        if frame is None:
            return
        self._now = frame
        self._regret[frame["agents"][::2]] = frame["agents"][1::2]
        self._up = (self._up | _pairs(frame["up"])) - _pairs(frame["down"])
        triples = zip(*(frame["traffic"][k::3] for k in range(3)), strict=True)
        self._load.update({(i, j): n / frame["rounds"] for i, j, n in triples})

    def draw(self, axes: Any, label: str, most_regret: float, most_load: float) -> None:
        """Agents by regret and links by load, on scales that end there."""
        need("matplotlib", "pictures", "a picture")
        from matplotlib.collections import LineCollection

        places, now = self._places, self._now
        order = sorted(self._up, key=lambda link: self._load.get(link, 0.0))
        lines = LineCollection([places[list(link)] for link in order], cmap="inferno_r", linewidths=1.8, zorder=1)
        lines.set_array(np.array([self._load.get(link, 0.0) for link in order]))
        lines.set_clim(-0.12 * most_load, most_load)
        axes.add_collection(lines)
        look: dict[str, Any] = {"c": self._regret, "cmap": "viridis_r", "vmin": 0.0, "vmax": most_regret}
        size = 140 if len(places) <= 30 else 50 if len(places) <= 200 else 12
        axes.scatter(places[:, 0], places[:, 1], s=size, edgecolors="#444444", linewidths=0.6, zorder=2, **look)
        regret = "" if now["regret"] is None else f"group regret {now['regret']:,.0f}, "
        told = f"round {now['round']:,}: {regret}{now['messages']:,} transmissions"
        axes.set_title(f"{label}\n{told}".replace("$", r"\$") if label else told, fontsize=9)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.08)


def _network(document: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where agents are drawn, with y upwards, and the links of the first round."""
    network = document["network"]
    places = np.column_stack([network["x"], 1.0 - np.array(network["y"])])
    return places, np.array(network["links"], dtype=np.int64).reshape(-1, 2)


def _pairs(flat: list[int]) -> set[tuple[int, int]]:
    return set(zip(flat[::2], flat[1::2], strict=True))
