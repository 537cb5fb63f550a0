"""An event log as a document: what each link carried, and which agents heard each other, round by round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..problem import Problem
from ..sim.result import Result
from ..sim.run import Event
from .recorder import Film, chosen_arms
from .sites import Sites, named_links


def trace_document(events: Iterable[Event], problem: Problem | None = None, replicate: int = 0) -> dict[str, Any]:
    """A document of one replicate of an event log.

    Parameters
    ----------
    events : iterable of Event
        `result.trace`, or what `read_trace` reads.
    problem : Problem, optional
        The problem that was simulated: without it only the agents and links that carried something are drawn.
    replicate : int
        Which replicate.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import trace_document
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> result = bm.simulate(problem, bm.FwA(2), horizon=3, seed=0, trace=True)
    >>> trace_document(result.trace, problem)["frames"][-1]["messages"]
    30
    """
    log = [_checked(event) for event in events]
    log = [event for event in log if event.replicate == replicate]
    if not log:
        raise InputError(
            f"the event log must have events of replicate {replicate}, got none; "
            "nothing was sent, or you mean another replicate"
        )
    sites, links, arms, holders = _from_problem(problem) if problem is not None else _from_log(log)
    unknown = next((event.receiver for event in log if event.receiver not in sites.node_of), None)
    if unknown is not None:
        raise InputError(f"the event log must be of this problem, got agent {unknown!r}, which is not in it")
    sent: defaultdict[int, Counter[tuple[Hashable, Hashable]]] = defaultdict(Counter)
    arrived: defaultdict[int, list[Event]] = defaultdict(list)
    for event in log:
        sent[event.round][event.sender, event.receiver] += 1
        arrived[event.arrival].append(event)
    horizon = max(max(sent), max(arrived))
    is_dynamic = problem is not None and problem.is_dynamic
    film = Film(sites, horizon, "event log", arms, holders, has_regret=False, links=[] if is_dynamic else links)
    messages = 0
    for t in range(1, horizon + 1):
        carried = sent.pop(t, Counter())
        messages += carried.total()
        film.add(t, list(carried) if is_dynamic else links, {}, 0.0, carried, messages, arrived.pop(t, []))
    document = film.document()
    if is_dynamic:
        document["notes"].append("an event log knows only those links of a dynamic network that carried something")
    return document


def result_document(result: Result, problem: Problem | None = None, replicate: int = 0) -> dict[str, Any]:
    """A document of one replicate of a result with an event log, named by its protocol, with its group regret."""
    document = trace_document(result.trace, problem, replicate)
    document["label"] = result.label
    regret = result.regret[replicate]
    for frame in document["frames"]:
        # The last round that was recorded up to then.
        record = int(np.searchsorted(result.rounds, frame["round"], side="right")) - 1
        frame["regret"] = float(regret[record]) if record >= 0 else 0.0
    return document


def _from_problem(problem: Problem) -> tuple[Sites, list[Any], list[Any], list[Any]]:
    arms = chosen_arms(problem, None)
    return Sites.of_problem(problem), named_links(problem), arms, [problem.holders[arm] for arm in arms]


def _from_log(log: list[Event]) -> tuple[Sites, list[Any], list[Any], list[Any]]:
    agents: list[Any] = list(dict.fromkeys(agent for event in log for agent in (event.sender, event.receiver)))
    number = {agent: place for place, agent in enumerate(agents)}
    pairs = sorted({tuple(sorted((number[event.sender], number[event.receiver]))) for event in log})
    learned = Counter(event.arm for event in log if event.learned)
    arms: list[Any] = [arm for arm, _ in learned.most_common(1)]
    # An agent that learned about an arm, or sent something about it, has it.
    holders = [
        {event.origin for event in log if event.arm == arm}
        | {event.receiver for event in log if event.arm == arm and event.learned}
        for arm in arms
    ]
    links = [(agents[i], agents[j]) for i, j in pairs]
    return Sites.of_agents(agents, np.array(pairs)), links, arms, holders


def _checked(event: object) -> Event:
    if not isinstance(event, Event):
        raise InputError(
            f"an event log must hold events, got {type(event).__name__}; use result.trace or bm.read_trace(path)"
        )
    return event
