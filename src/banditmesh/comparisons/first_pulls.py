"""How much of the regret is of first pulls: those of each arm, before the policy is asked.

Rules kept here: with `first_pulls="each"` an agent pulls its arms in the order of its arm set, one each, so which arms
were forced follows from how often it pulled in all, and their regret from the gaps; nothing is simulated for it. Where
it does not follow from that, it is not known (nan), never guessed: of policies whose first pulls listen, of agents that
begin anew after an outage, of arms that change while agents are down, of means that were given beside a tape, and of
protocols that bring agents of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arms.world import World
from ..draws import Draws
from ..faults import Faults
from ..policies import UCB, Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.base import has_method
from ..settings.parts import as_policy
from ..sim.result import Result

EACH, UNKNOWN = "each", "unknown"


def first_regret(
    problem: Problem, protocol: AnyProtocol, result: Result, settings: Mapping[str, Any]
) -> NDArray[np.float64]:
    """The regret of forced first pulls in each replicate: (replicates,), nan where it is not known.

    Parameters
    ----------
    problem : Problem
        What was simulated.
    protocol : AnyProtocol
        By which messages travelled.
    result : Result
        What that gave.
    settings : mapping
        What `simulate` was given besides.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, "irs", horizon=20, seed=0)
    >>> bool(np.isclose(first_regret(problem, bm.IRS(), result, {}), result.regret[:, -1]))
    True
    """
    faults = settings.get("faults")
    outages = faults.outages if isinstance(faults, Faults) else None
    is_known = (
        all(policy.first_pulls == EACH for policy in _policies(settings.get("policy")))
        and (outages is None or (outages.memory and not problem.changes))
        and settings.get("means") is None
        and has_method(protocol, AnyProtocol.seat)
    )
    if not is_known:
        return np.full(result.replicates, np.nan)
    offsets = problem.arm_offsets
    sizes = np.diff(offsets)
    agents = problem.owners
    places = np.arange(len(agents)) - np.repeat(offsets[:-1], sizes)
    n_pulls = np.add.reduceat(result.arm_pulls, offsets[:-1], axis=1)
    forced = (places < n_pulls[:, agents]) & ~np.isin(agents, result.settings.get("liars", ()))
    if not problem.changes:
        return np.asarray((forced * problem.arm_gaps).sum(axis=1))
    every = settings.get("every")
    rounds = 1 + places * np.broadcast_to(1 if every is None else every, problem.n_agents)[agents]
    first = int(result.settings.get("first_replicate", 0))
    gaps = [_gaps(problem, rounds, Draws(result.seed, first + k), result.horizon) for k in range(result.replicates)]
    return np.asarray((forced * np.array(gaps)).sum(axis=1))


def listening(policy: Any) -> Policy | None:
    """The same policy with first pulls that listen; None if there is no such one, or its first pulls listen already."""
    policies = _policies(policy)
    if len(policies) != 1 or policies[0].first_pulls == UNKNOWN:
        return None
    return replace(policies[0], first_pulls=UNKNOWN)


def _policies(given: Any) -> list[Policy]:
    policy = UCB() if given is None else as_policy(given)
    return [policy] if isinstance(policy, Policy) else list(policy)


def _gaps(problem: Problem, rounds: NDArray[np.int64], draws: Draws, horizon: int) -> NDArray[np.float64]:
    """The gap of each slot's arm in the round of its first pull, or in the last round if that comes before."""
    rounds = np.minimum(rounds, horizon)
    means = World(problem.laws, draws).rows(1, int(rounds.max()) + 1).means
    gaps = np.empty(len(rounds))
    for t in np.unique(rounds):
        held = means[t - 1][problem.arm_indices]
        best = np.maximum.reduceat(held, problem.arm_offsets[:-1])
        slots = np.flatnonzero(rounds == t)
        gaps[slots] = (np.repeat(best, np.diff(problem.arm_offsets)) - held)[slots]
    return gaps
