"""Liars: agents that tell other rewards than they got.

Rules kept here, and nowhere else: a liar puts a lie in the place of each reward as it gets it, and plays along: it
pulls what its story recommends, so that its counts are true, whatever the protocol sends of them. Only a `claim`
changes what it sends: the count of a statistic of its own becomes at least that, at the same mean. What it relays of
others, and what it merges of theirs along a tree, it passes on as it came. It knows the arms' true means. The most that
it may claim of a Gaussian arm is the best mean of all arms plus 3 sigma, the least the worst mean minus 3 sigma; of
other laws these are the ends of what they pay.

A plausible liar keeps, within these ends, the mean that it tells of an arm at the edge of what tested merging believes:
away from the centre by as much as its count and N allow. Centre and N it works out as others do, from the statistics
that it has heard and its own true one, for as many liars as agents are to withstand or, if they withstand none, as
there are. Where these are too few, since others go by their own means then, they are the arm's mean and the largest
count that it has heard or, where single observations are sent, the number of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import checks
from ..arms import GAUSSIAN
from ..arms.base import ENDS, reward_of
from ..core import Agent, Copy, Message, Parcel
from ..core.trimming import WIDTH, centre_of
from ..draws import LIE, Draws
from ..errors import InputError
from ..faults import PLAUSIBLE, WORST, Faults, Lie
from ..problem import Problem
from .run import Run


def read_liars(problem: Problem, faults: Faults | None) -> dict[int, Lie]:
    """The liars among a problem's agents, by number, ascending.

    An agent is given by its name or, as in a file, by the text of its name.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    >>> read_liars(problem, Faults(liars={"3": "noise"}))
    {3: Lie(kind='noise', claim=None, value=None)}
    """
    if faults is None or not faults.liars:
        return {}
    numbers = {name: number for number, name in enumerate(problem.agents)}
    texts: dict[str, list[int]] = {}
    for name, place in numbers.items():
        texts.setdefault(str(name), []).append(place)
    found: dict[int, Lie] = {}
    for name, lie in faults.liars:
        by_text = texts.get(name, []) if isinstance(name, str) else []
        number: int | None = numbers.get(name) if checks.is_hashable(name) else None
        if number is None and len(by_text) == 1:
            number = by_text[0]
        if number is None or number in found:
            wanted = "must name agents of the problem, each once"
            raise InputError(f"{wanted}, got {checks.shown(name)}", key="liars", remedy="see problem.agents")
        found[number] = lie
    if len(found) == problem.n_agents:
        raise InputError(f"must leave at least one agent that does not lie, got all {len(found)}", key="liars")
    return dict(sorted(found.items()))


class Liars:
    """What the liars of one replicate tell.

    Parameters
    ----------
    run : Run
    replicate : int
        Which one.
    draws : Draws
        The replicate's randomness.
    """

    def __init__(self, run: Run, replicate: int, draws: Draws) -> None:
        self._run = run
        self._replicate = replicate
        self._draws = draws

    def reward(self, t: int, agent: Agent, position: int, reward: float) -> float:
        """What an agent says that a pull of round `t` paid."""
        arm: Any = agent.arms.names[position]
        lie = self._run.liars.get(agent.name)
        if lie is None or not self._is_told(t, lie, agent.name, arm):
            return reward
        least, most = self._ends(t, arm)
        if lie.kind == WORST:
            return most
        if lie.kind == PLAUSIBLE:
            return min(max(self._at_the_edge(t, agent, position, (most - least) / 2), least), most)
        if lie.kind == "constant":
            return least + (most - least) / 2 if lie.value is None else lie.value
        return least + (most - least) * self._draws.uniform(LIE, agent.name, t)

    def parcels(self, t: int, agent: Agent, parcels: list[Parcel]) -> list[Parcel]:
        """What an agent sends in round `t`, with the counts that it claims."""
        lie = self._run.liars.get(agent.name)
        if lie is None or lie.claim is None or not self._run.sends_statistics:
            return parcels
        return [
            Parcel(Copy(self._claimed(agent, copy.message, lie.claim), copy.ttl), targets)
            if copy.message.origin == agent.name and self._is_told(t, lie, agent.name, copy.message.arm)
            else Parcel(copy, targets)
            for copy, targets in parcels
        ]

    def _claimed(self, agent: Agent, message: Message, claim: float) -> Message:
        """An agent's statistic with a larger count; of one that merges others' only its own part is larger."""
        merges = self._run.tree is not None
        own, total = agent.own(message.arm) if merges else (message.n_pulls, message.total)
        least = claim * self._run.memory.unit(message) if type(own) is float else claim
        if not own or own >= least:
            return message
        n_more = least - own
        return message._replace(n_pulls=message.n_pulls + n_more, total=message.total + n_more * (total / own))

    def _at_the_edge(self, t: int, agent: Agent, position: int, half_range: float) -> float:
        """The reward after which the mean that a plausible liar tells of an arm is just believed."""
        arm: Any = agent.arms.names[position]
        recall, unit = agent.recall, self._run.memory.unit_in(t)
        mean, sigma = float(self._run.means_in(self._replicate, t)[arm]), float(self._run.problem.sigmas[arm])
        own, total = recall.own_weight[position] / unit, recall.own_total[position] / unit
        heard = [
            (known[0] / unit, known[1] / unit)
            for (name, one), known in recall.known.items()
            if one == arm and name != agent.name and known[0]
        ]
        n, f = own + 1, self._run.trim or len(self._run.liars)
        _, n_centre, centre = centre_of((0, 0.0), [*heard, (n, n * mean)], f)
        if not n_centre:
            pooled = recall.estimates.count[position] - own
            n_centre, centre = max((count for count, _ in heard), default=pooled), mean
        width = 1.0 / math.sqrt(max(n, 1)) + 1.0 / math.sqrt(max(n_centre, 1))
        shift = WIDTH * (half_range if math.isnan(sigma) else sigma) * width
        edge = centre + (shift if self._is_worse(t, agent.name, arm) else -shift)
        return float(edge * n - total)

    def _is_told(self, t: int, lie: Lie, number: int, arm: Any) -> bool:
        """Whether a liar lies about an arm at all."""
        return lie.kind != WORST or self._is_worse(t, number, arm)

    def _is_worse(self, t: int, number: int, arm: Any) -> bool:
        """Whether an arm is of the worse half of an agent's arms."""
        held = self._run.problem.arm_set(number)
        means = self._run.means_in(self._replicate, t)[held]
        return bool(arm in held[np.argsort(means, kind="stable")][: max(1, len(held) // 2)])

    def _ends(self, t: int, arm: int) -> tuple[float, float]:
        """The least and the most that may be claimed of an arm."""
        run, law = self._run, self._run.problem.laws[arm]
        if law.code == GAUSSIAN:
            means, sigma = run.means_in(self._replicate, t), float(run.problem.sigmas[arm])
            return float(means.min()) - 3.0 * sigma, float(means.max()) + 3.0 * sigma
        pay: Callable[[float], float] = lambda u: reward_of(law, u)  # noqa: E731
        if run.problem.changes:
            world = run.world(self._replicate)
            pay = lambda u: world.pay(t, arm, u)  # noqa: E731
        return pay(ENDS[0]), pay(ENDS[1])
