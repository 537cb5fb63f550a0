"""Documents: everything the player draws, as plain lists, texts and numbers.

They hold names that users chose. `as_json` writes them so that no name can end the script that they are put into.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from .. import plots
from ..errors import InputError
from ..networks.usual import usual_links
from ..problem import Problem
from .journeys import Journey
from .sites import MAX_AGENTS, MAX_LINKS, Sites, named_links, short

FORMAT: Final = "banditmesh-animation"
VERSION: Final = 1
#: The most copies of a message whose path is drawn.
MAX_COPIES: Final = 100_000
#: Characters that JSON may hold and HTML may not.
_ESCAPES: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def as_json(document: Any) -> str:
    r"""A document, or a part of one, as text that is JSON, a JavaScript expression, and harmless within HTML.

    Examples
    --------
    >>> print(as_json(["</script>"]))
    ["\u003c/script\u003e"]
    """
    return json.dumps(document, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def head(kind: str, sites: Sites, links: Iterable[tuple[int, int]], notes: list[str]) -> dict[str, Any]:
    """The common start of all documents."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "notes": notes,
        "palette": {"fates": plots.FATE_COLOURS, "learned": plots.LEARNED, "maps": plots.map_colours()},
        "network": sites.as_json(links),
    }


def message_document(*journeys: Journey) -> dict[str, Any]:
    """One message under one protocol, or under two side by side, for the player.

    Parameters
    ----------
    *journeys : Journey
        One or two, as `follow` returns them: of the same problem, origin and arm.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import message_document
    >>> problem = bm.Problem.random(bm.networks.star(5), n_arms=2, per_agent=2, seed=0)
    >>> both = [bm.follow(problem, protocol, origin=1, arm=0) for protocol in ("flooding(4)", "fwa(4)")]
    >>> [panel["label"] for panel in message_document(*both)["panels"]]
    ['flooding(4)', 'fwa(4)']
    """
    if not 1 <= len(journeys) <= 2 or not all(isinstance(one, Journey) for one in journeys):
        raise InputError(f"a drawing takes one or two journeys, got {len(journeys)} things; follow() gives them")
    first = journeys[0]
    if any((one.problem, one.origin, one.arm) != (first.problem, first.origin, first.arm) for one in journeys):
        raise InputError("two journeys side by side must be of the same problem, origin and arm; follow them again")
    n_copies = sum(one.n_sent for one in journeys)
    if n_copies > MAX_COPIES:
        raise InputError(f"at most {MAX_COPIES:,} copies of a message can be drawn, got {n_copies:,}; lower the ttl")
    problem = first.problem
    agents, notes = _drawn(problem, journeys)
    sites = _sites(problem, agents)
    number = {name: place for place, name in enumerate(problem.agents)} if problem.is_dynamic else {}
    node_at = {number[name]: node for name, node in sites.node_of.items()} if number else {}
    first_links = _between(first.links.get(1, []), node_at) if number else _static_links(problem, sites)
    labels = [one.label for one in journeys]
    return {
        **head("message", sites, first_links, notes),
        "arm": short(first.arm),
        "origin": sites.node_of[first.origin],
        "holders": [sites.node_of[agent] for agent in problem.holders[first.arm] if agent in sites.node_of],
        "panels": [
            {
                "label": one.label,
                "colour": plots.style_of(one.label, labels)[0],
                "steps": [
                    {
                        "round": t,
                        "text": text,
                        "copies": [
                            [
                                sites.node_of[event.sender],
                                sites.node_of[event.receiver],
                                event.fate,
                                int(event.learned),
                                event.round,
                            ]
                            for event in events
                        ],
                        "links": list(itertools.chain(*_between(one.links.get(t, []), node_at))) if number else None,
                    }
                    for (t, events), text in zip(one.rounds(), one.words(), strict=False)
                ],
            }
            for one in journeys
        ],
    }


def _drawn(problem: Problem, journeys: Iterable[Journey]) -> tuple[list[Any], list[str]]:
    """The agents to draw: all, or in a large network those that the message reaches."""
    if problem.n_agents <= MAX_AGENTS and len(usual_links(problem.network)) <= MAX_LINKS:
        return list(problem.agents), []
    reached = {one.origin for one in journeys} | {event.receiver for one in journeys for event in one.hops}
    if len(reached) > MAX_AGENTS:
        raise InputError(
            f"at most {MAX_AGENTS:,} agents can be drawn, and the message reaches {len(reached):,}; lower the ttl"
        )
    drawn = [agent for agent in problem.agents if agent in reached]
    return drawn, [f"only the {len(drawn):,} of {problem.n_agents:,} agents that the message reaches are drawn"]


def _sites(problem: Problem, agents: list[Any]) -> Sites:
    if len(agents) == problem.n_agents:
        return Sites.of_problem(problem)
    number = {name: place for place, name in enumerate(problem.agents)}
    kept = np.array([number[agent] for agent in agents])
    place_of = np.full(problem.n_agents, -1)
    place_of[kept] = np.arange(len(kept))
    pairs = place_of[usual_links(problem.network)]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    found = plots.fitted(problem.places[kept]) if problem.positions is not None else plots.places(len(agents), pairs)
    return Sites([short(name) for name in agents], found, None, {name: node for node, name in enumerate(agents)})


def _static_links(problem: Problem, sites: Sites) -> set[tuple[int, int]]:
    known = sites.node_of
    return sites.links((one, other) for one, other in named_links(problem) if one in known and other in known)


def _between(links: Iterable[tuple[int, int]], node_at: dict[int, int]) -> list[tuple[int, int]]:
    """Links between agents by number, as links between nodes that are drawn."""
    return [(node_at[i], node_at[j]) for i, j in links if i in node_at and j in node_at]
