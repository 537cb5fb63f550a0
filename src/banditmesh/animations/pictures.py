"""Documents as animated pictures, GIF and SVG, for where no script runs: a README, a slide, a chat.

Drawn by matplotlib as the player draws them: agents by regret, links by load, copies of a message by their fate. At
most as many frames are drawn as a small file holds, evenly spaced; the last one stays longest.
"""

from __future__ import annotations

import re
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
#: The same in an SVG, where each frame takes as much again.
MAX_DRAWN_FRAMES: Final = 30
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

    images = []
    for figure in _figures(document, title, MAX_FRAMES):
        stream = BytesIO()
        figure.savefig(stream, format="png", dpi=_DPI)
        images.append(Image.open(stream).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE))
    stream = BytesIO()
    stays = _stays(document, len(images))
    images[0].save(
        stream, format="GIF", save_all=True, append_images=images[1:], duration=stays, loop=0, optimize=False
    )
    return stream.getvalue()


def as_svg(document: Mapping[str, Any], title: str = "") -> bytes:
    """The same as an animated SVG, which is sharp at every size and needs no script.

    To those who want no motion it shows its last frame.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> as_svg(bm.animate(bm.follow(problem, "fwa(2)", origin=0, arm=0)).document).count(b'class="frame')
    2
    """
    frames = [plots.as_bytes(figure, "svg").decode() for figure in _figures(document, title, MAX_DRAWN_FRAMES)]
    stays = _stays(document, len(frames))
    total = sum(stays)
    box = re.search(r'viewBox="([^"]+)"', frames[0])
    assert box is not None
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box[1]}">',
        "<style>.frame { visibility: hidden; }",
        "@media (prefers-reduced-motion: reduce) { .frame:last-child { visibility: visible; } }",
        "@media not (prefers-reduced-motion: reduce) {",
    ]
    begin = 0
    for number, stay in enumerate(stays):
        first, last = (f"{100 * when / total:.4f}%" for when in (begin, begin + stay))
        steps = [f"0% {{ visibility: {'hidden' if begin else 'visible'}; }}"]
        steps += [f"{first} {{ visibility: visible; }}"] if begin else []
        steps += [f"{last} {{ visibility: hidden; }}"] if number < len(stays) - 1 else []
        parts.append(f"@keyframes k{number} {{ {' '.join(steps)} }}")
        parts.append(f".f{number} {{ animation: k{number} {total}ms step-end infinite; }}")
        begin += stay
    parts.append("}</style>")
    for number, text in enumerate(frames):
        # Each frame is a picture by itself, with names that must not meet those of the others.
        content = re.sub(
            r'(\bid="|url\(#|href="#)', rf"\g<1>f{number}-", text[text.index("<defs>") : text.rindex("</svg>")]
        )
        parts.append(f'<g class="frame f{number}">{content}</g>')
    return "\n".join([*parts, "</svg>", ""]).encode()


def _stays(document: Mapping[str, Any], n_frames: int) -> list[int]:
    """How long frames stay, in milliseconds."""
    return [_STAY[document["kind"]]] * (n_frames - 1) + [_LAST]


def _figures(document: Mapping[str, Any], title: str, most: int) -> Iterator[Figure]:
    for figure in _messages(document) if document["kind"] == "message" else _rounds(document, most):
        figure.suptitle(title.replace("$", r"\$"), fontsize=11)
        yield figure


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


def _rounds(document: Mapping[str, Any], most: int) -> Iterator[Figure]:
    """Runs side by side before their first round, and after some of their frames."""
    runs = document.get("runs", [document])
    states = [_State(document, run["frames"]) for run in runs]
    ends = (max(one.most_regret for one in states) or 1.0, max(one.most_load for one in states) or 1.0)
    n_frames = max(len(run["frames"]) for run in runs)
    shown = set(np.linspace(0, n_frames, min(n_frames + 1, most)).round().astype(int).tolist())
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
    """What one run shows in a frame; frames are changes, or hold all of their numbers."""

    def __init__(self, document: Mapping[str, Any], frames: list[dict[str, Any]]) -> None:
        self._places, links = _network(document)
        self._links = [(int(i), int(j)) for i, j in links]
        self._frames = iter(frames)
        self._now: dict[str, Any] = {"round": 0, "regret": 0.0 if document["has_regret"] else None, "messages": 0}
        self._regret = np.zeros(len(self._places))
        self._load: dict[tuple[int, int], float] = {}
        self._up = set(self._links)
        self.most_regret = max((max(self._regrets(one).values(), default=0.0) for one in frames), default=0.0)
        self.most_load = max((max(self._loads(one).values(), default=0.0) for one in frames), default=0.0)

    @staticmethod
    def _regrets(frame: dict[str, Any]) -> dict[int, float]:
        """The regrets that a frame says, by agent."""
        if "regrets" in frame:
            return dict(enumerate(frame["regrets"]))
        return dict(zip(frame["agents"][::2], frame["agents"][1::2], strict=True))

    def _loads(self, frame: dict[str, Any]) -> dict[tuple[int, int], float]:
        """The loads of links per round that a frame says."""
        if "loads" in frame:
            both = zip(self._links, frame["loads"], frame["back"], strict=True)
            return {link: (there + back) / frame["rounds"] for link, there, back in both}
        triples = zip(*(frame["traffic"][k::3] for k in range(3)), strict=True)
        return {(i, j): n / frame["rounds"] for i, j, n in triples}

    def go_on(self) -> None:
        """The next frame, if there is one."""
        frame = next(self._frames, None)
        if frame is None:
            return
        self._now = frame
        for agent, regret in self._regrets(frame).items():
            self._regret[agent] = regret
        self._up = (self._up | _pairs(frame.get("up", []))) - _pairs(frame.get("down", []))
        self._load.update(self._loads(frame))

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
