"""A story in five steps, from four agents on a path to an arm that changes: for a talk, and for a first look.

Every step is a prepared case with two sentences. Its numbers are those of the very run that is shown, so they are
counted when the story is made and never written by hand. The file holds the player and all that it draws.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, overload

from .. import arms as laws
from .. import networks
from ..files import atomic
from ..problem import Problem
from ..settings.parts import as_policy
from ..sim.simulation import Simulation
from .documents import as_json, message_document
from .files import PLAYER, checked_target, inline, played, policy_for
from .gallery import GALLERY, held
from .journeys import Journey, follow
from .recorder import side_by_side

TITLE: Final = "How agents learn together"
_SCRIPT: Final = Path(__file__).with_name("story.js")
_PAGE: Final = Path(__file__).with_name("story.html")
#: The runs that are shown: their rounds, seed, ttl of Flooding, and when the arm changes.
_HORIZON: Final = 200
_SEED: Final = 0
_TREE: Final = "tree(pause=4)"
_FLOODING: Final = "flooding(4)"
_CHANGE: Final = 100
_MEMORY: Final = "ucb+discount(0.98)"
#: What is shown in more than one step keeps its colour.
_COLOURS: Final = {
    "each_alone": "#000000",
    "Flooding": "#0072B2",
    "sums_along_a_tree": "#D55E00",
    "nothing_is_forgotten": "#D55E00",
    "old_rewards_count_for_less": "#009E73",
}


@dataclass(frozen=True)
class Step:
    """One step of the story.

    Attributes
    ----------
    title, text : str
        What it is about, and two sentences.
    document : dict
        What the player draws: a message or a run, twice, side by side.
    """

    title: str
    text: str
    document: Mapping[str, Any]


class Story:
    """The story: a notebook shows it, and `save` writes it as one HTML file.

    Attributes
    ----------
    steps : sequence of Step
    html : str
        The whole page.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.html = _as_html(steps)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as one HTML file that needs no network."""
        atomic.write(checked_target(path), self.html.encode())

    def _repr_html_(self) -> str:
        return inline(self.html)

    def __repr__(self) -> str:
        return f"<Story: {', '.join(step.title for step in self.steps)}>"


@overload
def story(path: None = None) -> Story: ...


@overload
def story(path: str | PathLike[str]) -> None: ...


def story(path: str | PathLike[str] | None = None) -> Story | None:
    """Tell in five steps how agents learn together: within a notebook, or as one HTML file to take away.

    It goes from a message on a path of four agents, over absorption and a network that learns, to a tree that beats
    Flooding and an arm that changes. Made for a talk: the arrow keys, or those of a clicker, go from step to step,
    space plays, and f fills the screen.

    Parameters
    ----------
    path : str or path, optional
        The file; it is written whole or not at all.

    Returns
    -------
    Story or None
        Without a path, what a notebook shows.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.story().steps[0].title
    'Four agents on a path'
    """
    if path is not None:
        checked_target(path)
    told = Story(_steps())
    if path is None:
        return told
    told.save(path)
    return None


@functools.cache
def _steps() -> tuple[Step, ...]:
    """All steps; they are the same every time."""
    grid = Problem.random(networks.grid(4, 5), n_arms=12, per_agent=4, seed=_SEED)
    flooding = _run(grid, _FLOODING)
    return (_path(), _absorption(), _learning(grid, flooding), _tree(grid, flooding), _changing())


def _path() -> Step:
    problem = held(networks.path(4), {0, 1, 3})
    neighbours, flooded = (follow(problem, protocol, 0, "red") for protocol in ("irs", "flooding(3)"))
    text = (
        f"Agent 0 pulls the red arm and tells its neighbour what it paid: {_outcome(neighbours)}. If every agent "
        f"relays what it hears, which is called Flooding, the news goes further: {_outcome(flooded)}."
    )
    return Step("Four agents on a path", text, _message(to_neighbours=neighbours, Flooding=flooded))


def _absorption() -> Step:
    case = GALLERY["grid"]
    flooded, absorbed = case.journeys()
    text = (
        f"On a grid {flooded.fates['duplicate']} of the {flooded.n_sent} transmissions of a flood reach agents that "
        "have heard it already. With absorption an agent that has the arm keeps the message, learns from it and speaks "
        f"for itself: {absorbed.n_sent} transmissions."
    )
    return Step("An agent that can use it keeps it", text, _message(Flooding=flooded, with_absorption=absorbed))


def _learning(grid: Problem, flooding: Mapping[str, Any]) -> Step:
    alone = _run(grid, "none")
    text = (
        f"{grid.n_agents} agents, each with 4 of {grid.n_arms} arms, pull one in every round; regret is what they miss "
        f"by not pulling their best. After {_HORIZON} rounds of this run it is {_regret(alone)} if each learns alone, "
        f"and {_regret(flooding)} with Flooding, for {_sent(flooding)} transmissions."
    )
    return Step("Together they learn faster", text, _runs(each_alone=alone, Flooding=flooding))


def _tree(grid: Problem, flooding: Mapping[str, Any]) -> Step:
    tree = _run(grid, _TREE)
    share = tree["frames"][-1]["messages"] / flooding["frames"][-1]["messages"]
    text = (
        "Agents that add up what they know along a tree send counts and sums, and not one message for every reward. "
        f"In this run that gives less regret than Flooding, {_regret(tree)} instead of {_regret(flooding)}, for "
        f"{100 * share:.0f} per cent of the transmissions."
    )
    return Step("A tree beats Flooding", text, _runs(Flooding=flooding, sums_along_a_tree=tree))


def _changing() -> Step:
    red = laws.Piecewise({1: laws.Bernoulli(0.9), _CHANGE: laws.Bernoulli(0.1)})
    arms: dict[Any, laws.Law] = {"red": red, "green": laws.Bernoulli(0.6), "blue": laws.Bernoulli(0.5)}
    problem = Problem(networks.grid(4, 5), [list(arms)] * 20, arms)
    usual, forgetting = (_run(problem, _TREE, policy) for policy in ("ucb", _MEMORY))
    text = (
        f"In round {_CHANGE} the best arm becomes the worst, and agents that weigh all of the past alike go on pulling "
        f"it. Agents that let old rewards count for less, by 2 per cent a round, notice: regret {_regret(forgetting)} "
        f"instead of {_regret(usual)} in this run."
    )
    return Step("An arm changes", text, _runs(nothing_is_forgotten=usual, old_rewards_count_for_less=forgetting))


def _message(**journeys: Journey) -> dict[str, Any]:
    """Two journeys side by side, called in words."""
    document = message_document(*journeys.values())
    for panel, name in zip(document["panels"], journeys, strict=True):
        panel["label"] = name.replace("_", " ")
    return document


def _runs(**documents: Mapping[str, Any]) -> dict[str, Any]:
    """Two runs side by side, called in words."""
    both = side_by_side(*map(dict, documents.values()))
    for run, name in zip(both["runs"], documents, strict=True):
        run.update(label=name.replace("_", " "), colour=_COLOURS[name])
    return both


def _run(problem: Problem, protocol: str, policy: str = "ucb") -> dict[str, Any]:
    return played(Simulation(problem, protocol, policy=as_policy(policy), horizon=_HORIZON, seed=_SEED))


def _regret(document: Mapping[str, Any]) -> str:
    return f"{document['frames'][-1]['regret']:,.0f}"


def _sent(document: Mapping[str, Any]) -> str:
    return f"{document['frames'][-1]['messages']:,}"


def _outcome(journey: Journey) -> str:
    sent, learners = journey.n_sent, len(journey.learners)
    heard = f"{learners} agent learns" if learners == 1 else f"{learners} agents learn"
    return f"{sent} transmission{'' if sent == 1 else 's'}, {heard}"


def _as_html(steps: Sequence[Step]) -> str:
    told = [{"title": step.title, "text": step.text, "document": step.document} for step in steps]
    words = "".join(f"<h2>{html.escape(step.title)}</h2><p>{html.escape(step.text)}</p>" for step in steps)
    player, script = (path.read_text(encoding="utf-8") for path in (PLAYER, _SCRIPT))
    parts = {
        "POLICY": policy_for(player, script),
        "TITLE": html.escape(TITLE),
        "WORDS": words,
        "STORY": as_json(told),
        "PLAYER": player,
        "SCRIPT": script,
    }
    page = _PAGE.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page
