"""What holders of an arm have heard of each other, taken from the beginning of a run alone.

Where the fate of a message follows from its origin and its arm, all messages of an origin reach the same agents. So
when each holder has sent one of the arm, and it has arrived, every holder has heard of all others that it will ever
hear of. The rounds up to there are stepped through, which keeps track of who learned from whom; the rest of the run can
be had from an engine's books.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.simulation import Simulation
from .recorder import Recorder
from .sites import named_links


def hear(
    problem: Problem, protocol: AnyProtocol, arm: Hashable, *, max_pulls: int, **settings: Any
) -> dict[str, Any] | None:
    """A document of the rounds until every holder of an arm has heard of all others that it will ever hear of.

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
        None if it takes more pulls, or if it is not known when it is over.

    Examples
    --------
    On a path each agent hears of its neighbours by round 2, when all have pulled both arms:

    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> document = hear(problem, bm.FwA(2), 1, max_pulls=100, horizon=50, seed=0)
    >>> [(frame["round"], frame["heard"]) for frame in document["frames"]]
    [(1, [[]]), (2, [[0, 1, 1, 2, 2, 1]]), (3, [[]])]
    """
    facts = protocol.facts
    is_settled = facts is not None and facts.is_settled and protocol.relays_by_rule and not problem.is_dynamic
    # By the sound rules alone, other messages change nothing for a message; what is lost may arrive another time.
    if not is_settled or settings.get("rules", "sound") != "sound" or settings.get("faults") is not None:
        return None
    simulation = Simulation(problem, protocol, **settings)
    recorder = Recorder(problem, horizon=simulation.horizon, arms=[arm])
    has_neighbours = {agent for link in named_links(problem) for agent in link}
    silent = set(problem.holders[arm]) & has_neighbours
    n_left = protocol.most_hops
    while n_left and not simulation.is_over:
        if (simulation.round + 1) * problem.n_agents > max_pulls:
            return None
        one = simulation.step()
        recorder.add(one)
        silent -= {event.origin for event in one.events if event.arm == arm}
        n_left -= not silent
    recorder.finish()
    return recorder.document()
