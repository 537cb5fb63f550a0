"""One HTML file that plays by itself: it contains the document and the player, and fetches nothing.

Its content policy forbids every request, and lets only the two scripts in it run. What follows a ? in its address says
how it plays within another page: autoplay, loop, and compact for the drawing with one row of controls.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, overload

from .. import checks
from ..errors import FileError, InputError
from ..files import atomic
from ..problem import Problem
from ..sim.result import Result
from ..sim.simulation import Simulation
from .documents import FORMAT, as_json, message_document
from .journeys import Journey
from .pictures import as_gif, as_svg
from .recorder import Recorder
from .traces import result_document, trace_document

#: What can be animated.
Animated: TypeAlias = Simulation | Result | Recorder | Journey | Sequence[Journey] | Iterable[Any]
#: The player: plain JavaScript, for any page; see its first lines.
PLAYER: Final = Path(__file__).with_name("player.js")
_START: Final = """
const asked = new URLSearchParams(location.search);
const [autoplay, loop, compact] = ["autoplay", "loop", "compact"].map((name) => asked.has(name));
if (compact) document.body.className = "compact";
BanditmeshPlayer.mount(document.getElementById("animation"),
  JSON.parse(document.getElementById("document").textContent), {fill: true, curves: !compact, autoplay, loop, compact});
"""
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; background: #ffffff; color: #1b1b1b; font: 16px/1.4 system-ui, sans-serif; }}
main {{ max-width: 80rem; margin: 0 auto; padding: 0.75rem 1rem; }}
h1 {{ font-size: 1.25rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; }}
.compact h1 {{ display: none; }} .compact main {{ padding: 0.25rem; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #121212; color: #e8e8e8; }} }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<div id="animation"></div>
<noscript>This animation needs JavaScript.</noscript>
</main>
<script type="application/json" id="document">{document}</script>
<script>{player}</script>
<script>{start}</script>
</body>
</html>
"""


class Animation:
    """A moving picture: a notebook shows it, and `save` writes it to a file.

    Attributes
    ----------
    document : dict
        What the player draws.
    title : str
        The heading.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.grid(3, 3), n_arms=4, per_agent=2, seed=0)
    >>> bm.animate(bm.Simulation(problem, bm.FwA(4), horizon=20, seed=0))
    <Animation: fwa(4): 20 rounds>
    """

    def __init__(self, document: Mapping[str, Any], title: str | None = None) -> None:
        self._html = as_html(document, title)
        self.document = document
        self.title = title or _title(document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as an HTML file that plays in any browser or, named .gif or .svg, as an animated picture."""
        target = checked_target(path)
        draw = {".gif": as_gif, ".svg": as_svg}.get(target.suffix.lower())
        atomic.write(target, draw(self.document, self.title) if draw else self._html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        return inline(self._html)

    def __repr__(self) -> str:
        return f"<Animation: {self.title}>"


@overload
def animate(
    what: Animated, path: None = None, *, problem: Problem | None = None, replicate: int = 0, title: str | None = None
) -> Animation: ...


@overload
def animate(
    what: Animated,
    path: str | PathLike[str],
    *,
    problem: Problem | None = None,
    replicate: int = 0,
    title: str | None = None,
) -> None: ...


def animate(
    what: Animated,
    path: str | PathLike[str] | None = None,
    *,
    problem: Problem | None = None,
    replicate: int = 0,
    title: str | None = None,
) -> Animation | None:
    """Show an animation in a notebook, or write it as one file that plays anywhere, offline: for a talk or an email.

    Parameters
    ----------
    what : Simulation, Result, event log, Recorder, Journey or two Journeys
        What to show. A simulation that has not started is run to its end. A result needs the event log of
        `trace=True`; a log may also come from `read_trace`. Journeys come from `follow`; two are shown side by side.
    path : str or path, optional
        The file; it is written whole or not at all. If its name ends in .gif or .svg it is an animated picture, for
        where no script runs; otherwise it is a page for any browser.
    problem : Problem, optional
        For a result or a log: the problem that was simulated, with the agents' places and all links.
    replicate : int
        For a result or a log: which replicate.
    title : str, optional
        The heading.

    Returns
    -------
    Animation or None
        Without a path, what a notebook shows.

    Examples
    --------
    >>> import tempfile, pathlib, banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.grid(3, 3), n_arms=4, per_agent=2, seed=0)
    >>> simulation = bm.Simulation(problem, bm.FwA(4), horizon=20, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "learning.html"
    ...     bm.animate(simulation, path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    if path is not None:
        checked_target(path)
    made = Animation(_document(what, problem, replicate), title)
    if path is None:
        return made
    made.save(path)
    return None


def as_html(document: Mapping[str, Any], title: str | None = None) -> str:
    """A document as a complete page, the text of an HTML file.

    Parameters
    ----------
    document : mapping
        From a `Recorder`, `message_document` or `trace_document`.
    title : str, optional
        The heading.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise InputError(f"document must be one that a Recorder or message_document made, got {checks.shown(document)}")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title must be a text, got {checks.shown(title)}")
    player = PLAYER.read_text(encoding="utf-8")
    return _PAGE.format(
        policy=policy_for(player, _START),
        title=html.escape(title or _title(document)),
        document=as_json(document),
        player=player,
        start=_START,
    )


def inline(page: str) -> str:
    """A whole page within a notebook: it sees nothing of the notebook, and fetches nothing."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" loading="lazy" '
        'style="width: 100%; height: 720px; border: 0"></iframe>'
    )


def policy_for(*scripts: str) -> str:
    """A content policy that forbids every request, and lets only these scripts run."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; base-uri 'none'; form-action 'none'"


def _document(what: Any, problem: Problem | None, replicate: int) -> dict[str, Any]:
    if problem is not None and not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    replicate = checks.integer("replicate", replicate, at_least=0)
    if isinstance(what, Simulation):
        return played(what)
    if isinstance(what, Recorder):
        what.finish()
        return what.document()
    if isinstance(what, Journey):
        return message_document(what)
    if isinstance(what, Result):
        checks.integer("replicate", replicate, at_least=0, at_most=what.replicates - 1)
        return result_document(what, problem, replicate)
    if isinstance(what, Sequence) and not isinstance(what, str) and what and isinstance(what[0], Journey):
        return message_document(*what)
    if isinstance(what, Iterable) and not isinstance(what, str | bytes | Mapping):
        return trace_document(what, problem, replicate)
    raise InputError(
        "animate takes a Simulation, a Result with trace=True, an event log, a Recorder or journeys of follow(), "
        f"got {checks.shown(what)}"
    )


def played(simulation: Simulation) -> dict[str, Any]:
    """The document of a simulation that has not begun; it is run to its end."""
    if simulation.round:
        raise InputError(
            f"animate needs a simulation that has not begun, got one after round {simulation.round}; "
            "make another one with the same seed"
        )
    recorder = Recorder(simulation.problem, horizon=simulation.horizon, label=simulation.label)
    while not simulation.is_over:
        recorder.add(simulation.step())
    return recorder.document()


def checked_target(path: str | PathLike[str]) -> Path:
    """The file to write, checked before any work is done."""
    try:
        target = Path(os.fspath(path))
        folder_is_there = target.parent.is_dir()
        is_folder = target.is_dir()
    except (TypeError, ValueError) as error:
        raise FileError(f"path must name a file to write, got {checks.shown(path)} ({error})") from None
    if not folder_is_there:
        raise FileError(f"cannot write {target}: there is no folder {target.parent}; make it first")
    if is_folder:
        raise FileError(f"cannot write {target}: it is a folder; name a file in it")
    return target


def _title(document: Mapping[str, Any]) -> str:
    if document["kind"] == "run":
        rounds = f"{document['horizon']:,} round{'' if document['horizon'] == 1 else 's'}"
        label = " and ".join(run["label"] for run in document.get("runs", [document]))
        return f"{label}: {rounds}" if label else rounds
    names = " and ".join(panel["label"] for panel in document["panels"])
    return f"One message by {names}"
