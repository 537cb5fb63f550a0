"""What holders of an arm have heard of each other, taken from the beginning of a run alone.

An agent pulls all of its arms early, so that soon every holder has heard of all others that it can ever hear of. Where
messages go is settled by the protocol, so which these are is known from one message of each. The rounds up to there are
stepped through, which keeps track of who learned from whom; the rest of the run can be had from an engine's books.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.simulation import Simulation
from .journeys import follow
from .recorder import Recorder


def hear(
    problem: Problem, protocol: AnyProtocol, arm: Hashable, *, max_pulls: int, **settings: Any
) -> dict[str, Any] | None:
    """A document of the rounds until every holder of an arm has heard of all others that it can ever hear of.

    Parameters
    ----------
    problem, protocol
        What is simulated.
    arm : hashable
        The arm.
    max_pulls : int
        How many pulls this may take.
    **settings
        Those of `Simulation`.

    Returns
    -------
    dict or None
        None if it takes more pulls, or if nobody can say when it is over.

    Examples
    --------
    On a path each agent hears of its neighbours by round 2, when all have pulled both arms:

    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> document = hear(problem, bm.FwA(2), 1, max_pulls=100, horizon=50, seed=0)
    >>> [(frame["round"], frame["heard"]) for frame in document["frames"]]
    [(1, [[]]), (2, [[0, 1, 1, 2, 2, 1]])]
    """
    wanted = _ever_heard(problem, protocol, arm, settings.get("rules", "sound"))
    if wanted is None:
        return None
    simulation = Simulation(problem, protocol, **settings)
    recorder = Recorder(problem, horizon=simulation.horizon, arms=[arm])
    heard: set[tuple[Hashable, Hashable]] = set()
    while not (heard >= wanted or simulation.is_over):
        if (simulation.round + 1) * problem.n_agents > max_pulls:
            return None
        one = simulation.step()
        recorder.add(one)
        heard |= {(event.receiver, event.origin) for event in one.events if event.learned and event.arm == arm}
    recorder.finish()
    return recorder.document()


def _ever_heard(
    problem: Problem, protocol: AnyProtocol, arm: Hashable, rules: str
) -> set[tuple[Hashable, Hashable]] | None:
    """The pairs of a holder and another one of which it may hear: no other one ever comes. None if that is not known.

    By the sound rules what other messages do changes nothing for a message, and faults only take copies away.
    """
    facts = protocol.facts
    if facts is None or not (facts.is_settled and protocol.relays_by_rule) or problem.is_dynamic or rules != "sound":
        return None
    return {
        (receiver, origin)
        for origin in problem.holders[arm]
        for receiver in follow(problem, protocol, origin, arm).learners
    }
