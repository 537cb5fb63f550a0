"""What holders of an arm have heard of each other, taken from the beginning of a run alone.

Where the fate of a message follows from its origin and its arm, all messages of an origin reach the same agents. So
when each holder has sent one of the arm, and it has arrived, every holder has heard of all others that it will ever
hear of. The compiled engine's plan says who learns each message; where it has none, the rounds up to there are stepped
through. The rest of the run can be had from an engine's books.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.arguments import read_run
from ..sim.simulation import Simulation
from .recorder import Recorder, rounded
from .sites import Sites, named_links, short

#: How many rounds the compiled engine may take until all is heard.
MAX_PLANNED: Final = 10_000


def hear(
    problem: Problem, protocol: AnyProtocol, arm: Hashable, *, max_pulls: int, **settings: Any
) -> dict[str, Any] | None:
    """Who hears of holders of an arm, until every holder has heard of all others that it will ever hear of.

    Parameters
    ----------
    problem, protocol
        What is simulated.
    arm : hashable
        The arm.
    max_pulls : int
        How many pulls this may take where rounds are stepped through.
    **settings
        Those of `Simulation`.

    Returns
    -------
    dict or None
        The arm, its holders and frames, as in the document of a recorder. None if it takes more pulls, or if it is not
        known when it is over.

    Examples
    --------
    On a path each agent hears of its neighbours by round 2, when all have pulled both arms:

    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> found = hear(problem, bm.FwA(2), 1, max_pulls=100, horizon=50, seed=0)
    >>> [(frame["round"], frame["heard"]) for frame in found["frames"]]
    [(2, [[0, 1, 1, 2, 2, 1]])]
    """
    facts = protocol.facts
    is_settled = facts is not None and facts.is_settled and protocol.relays_by_rule and not problem.is_dynamic
    # By the sound rules alone, other messages change nothing for a message; what is lost may arrive another time.
    if not is_settled or settings.get("rules", "sound") != "sound" or settings.get("faults") is not None:
        return None
    # Imported here because numba is heavy.
    from ..sim.compiled.hearing import first_heard

    found = first_heard(read_run(problem, protocol, **settings), problem.arms.index(arm), MAX_PLANNED)
    if found is None:
        return _stepped(problem, protocol, arm, max_pulls, settings)
    sites = Sites.of_problem(problem)
    holders = sorted({sites.node_of[agent] for agent in problem.holders[arm]})
    return {"arms": [short(arm)], "holders": [holders], "frames": _frames(problem, sites, found)}


def _frames(problem: Problem, sites: Sites, found: NDArray[np.int64]) -> list[dict[str, Any]]:
    """What changes in each round, as a recorder says it."""
    nodes = np.array([sites.node_of[agent] for agent in problem.agents])[found[:, 1]]
    sizes = np.array(sites.sizes or [1] * len(sites.names))
    heard, frames = np.zeros(len(sizes), dtype=np.int64), []
    for t in np.unique(found[:, 0]):
        heard += np.bincount(nodes[found[:, 0] == t], minlength=len(sizes))
        changed = np.unique(nodes[found[:, 0] == t]).tolist()
        changes = [value for node in changed for value in (node, rounded(heard[node] / sizes[node]))]
        frames.append({"round": int(t), "heard": [changes]})
    return frames


def _stepped(
    problem: Problem, protocol: AnyProtocol, arm: Hashable, max_pulls: int, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The same by the reference engine."""
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
