"""Small problems with many pitfalls: one agent, no link, copies that meet, links that come and go."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cache
from typing import Any, NamedTuple

from .. import networks
from ..algorithms.base import DYNAMIC, UNEQUAL
from ..arms import Bernoulli, Gaussian, Law
from ..errors import InputError
from ..networks import Churn, DynamicNetwork, EdgeMarkovian, Links
from ..networks.csr import as_links
from ..problem import Problem
from ..protocols import AnyProtocol


class NamedProblem(NamedTuple):
    """A problem and its name in messages."""

    name: str
    problem: Problem


@cache
def cases(deep: bool) -> tuple[NamedProblem, ...]:
    """The problems to run on; more and larger ones if `deep`."""
    made = [
        NamedProblem("one agent", _problem(Links.from_pairs(1, []))),
        NamedProblem("three agents without a link", _problem(Links.from_pairs(3, []))),
        NamedProblem("a path of five agents", _problem(_links(networks.path(5)))),
        # Every copy meets others, and coins pay the same again and again.
        NamedProblem("a complete network with coins", _problem(_links(networks.complete(4)), coins=True)),
        NamedProblem("a ring whose links come and go", _problem(EdgeMarkovian(_links(networks.ring(6)), 0.2, 0.3))),
    ]
    if deep:
        made += [
            NamedProblem("a star", _problem(_links(networks.star(9)))),
            NamedProblem("a ring with coins", _problem(_links(networks.ring(12)), coins=True)),
            NamedProblem("a ring with chords", _problem(_chords(20))),
            NamedProblem("agents that leave and join", _problem(Churn(_chords(12), 0.2, 0.4))),
            NamedProblem("coins on links that come and go", _problem(EdgeMarkovian(_chords(12), 0.1, 0.3), coins=True)),
        ]
    return tuple(made)


@cache
def algorithm_cases() -> tuple[tuple[str, NamedProblem], ...]:
    """Problems with named agents and arms for algorithms, and what is unusual of each: equal arm sets are usual."""

    def alike(network: Links | DynamicNetwork, coins: bool = False) -> Problem:
        means = (0.1, 0.3, 0.5, 0.7, 0.9)
        arms: dict[Hashable, Law] = {f"arm {mean}": Bernoulli(mean) if coins else Gaussian(mean, 1.0) for mean in means}
        named = [f"agent {v}" for v in range(network.n_agents)], network
        return Problem(named if isinstance(network, Links) else network, [list(arms)] * network.n_agents, arms)

    apart = Links.from_pairs(5, [(0, 1), (1, 2), (3, 4)])
    return (
        ("", NamedProblem("one agent", alike(Links.from_pairs(1, [])))),
        ("", NamedProblem("three agents without a link", alike(Links.from_pairs(3, [])))),
        ("", NamedProblem("two components", alike(apart))),
        ("", NamedProblem("a complete network with coins", alike(_links(networks.complete(4)), coins=True))),
        (UNEQUAL, NamedProblem("a path with unequal arm sets", _problem(_links(networks.path(5))))),
        (
            DYNAMIC,
            NamedProblem("a ring whose links come and go", alike(EdgeMarkovian(_links(networks.ring(6)), 0.2, 0.3))),
        ),
        ("", NamedProblem("a path of seven agents", alike(_links(networks.path(7))))),
    )


def cases_for(protocol: AnyProtocol, deep: bool) -> tuple[NamedProblem, ...]:
    """Those on whose networks the protocol works."""

    def works(case: NamedProblem) -> bool:
        try:
            protocol.check_network(not case.problem.is_dynamic)
        except InputError:
            return False
        return True

    return tuple(filter(works, cases(deep)))


def easy() -> Problem:
    """One agent and three arms that are easy to tell apart, with rewards of 0 and 1."""
    return Problem(Links.from_pairs(1, []), [[0, 1, 2]], [Bernoulli(mean) for mean in (0.1, 0.9, 0.2)])


class _Wild(Law):
    """A law without a sub-Gaussian parameter: that of Cauchy, cut off far out so that it has a mean."""

    mean = 0.0
    sigma = None

    def quantile(self, u: float) -> float:
        """The reward for the uniform number `u`."""
        return math.tan(math.pi * (u - 0.5))


def without_sigma() -> Problem:
    """One agent with two arms whose laws have no sigma."""
    return Problem(Links.from_pairs(1, []), [[0, 1]], [_Wild(), _Wild()])


def _problem(network: Links | DynamicNetwork, coins: bool = False) -> Problem:
    """Every agent has two or three of five arms; some arms are common and some are rare."""
    means = (0.1, 0.3, 0.5, 0.7, 0.9)
    sets = [[v % 5, (v + 1) % 5, (v + 3) % 5][: 2 + v % 2] for v in range(network.n_agents)]
    held = sorted({arm for arms in sets for arm in arms})
    laws: dict[Hashable, Law] = {arm: Bernoulli(means[arm]) if coins else Gaussian(means[arm], 1.0) for arm in held}
    return Problem(network, sets, laws)


def _links(graph: Any) -> Links:
    return as_links(graph)[1]


def _chords(n_agents: int) -> Links:
    ring = [(v, (v + 1) % n_agents) for v in range(n_agents)]
    return Links.from_pairs(n_agents, ring + [(v, (v + n_agents // 3) % n_agents) for v in range(0, n_agents, 2)])
