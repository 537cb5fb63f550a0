"""The networks of the paper's experiments (Section 6): Lee, Schmid and Yun, OPODIS 2023."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..errors import NetworkError
from .dynamic import EdgeMarkovian
from .static import ba, er, first_connected, sbm

if TYPE_CHECKING:
    import networkx as nx

PAPER_NETWORKS: Final = ("er", "ba", "sbm", "dynamic-er")

# 2138 is the first seed from 2023 on that gives a connected network.
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "er": {"n": 100, "p": 0.03, "seed": 2138},
    "ba": {"n": 100, "m": 2, "seed": 2023},
    "sbm": {"sizes": [25] * 4, "p_in": 0.3, "p_out": 0.003, "seed": 2023},
}
# The links whose traffic the paper shows round by round, both directions together.
PAPER_WATCHED_LINKS: Final = {"er": (0, 12), "ba": (0, 1), "sbm": (11, 53)}


def paper(name: str) -> nx.Graph | EdgeMarkovian:
    """One of the paper's networks of 100 agents, link for link.

    Parameters
    ----------
    name : str
        "er", "ba", "sbm", or "dynamic-er", which starts from "er" and has birth probability 0.01 and death
        probability 0.1.

    Returns
    -------
    networkx.Graph or EdgeMarkovian

    Examples
    --------
    >>> [paper(name).number_of_edges() for name in ("er", "ba", "sbm")]
    [153, 196, 361]
    """
    name = checks.choice("name", name, PAPER_NETWORKS)
    if name == "dynamic-er":
        return EdgeMarkovian(paper("er"), p=0.01, q=0.1)
    generators: dict[str, Callable[..., nx.Graph]] = {"er": er, "ba": ba, "sbm": sbm}
    return generators[name](**_PARAMETERS[name])


def paper_parameters(name: str) -> dict[str, str]:
    """The parameters of one of the paper's static networks, as texts; none of any other network.

    Examples
    --------
    >>> paper_parameters("er"), paper_parameters("ring")
    ({'n': '100', 'p': '0.03', 'seed': '2138'}, {})
    """
    return {key: str(value).strip("[]") for key, value in _PARAMETERS.get(name, {}).items()}


def like_paper(name: str, n_agents: int) -> nx.Graph:
    """A network of the same kind and mean degree as one of the paper's static ones, with another number of agents.

    Of 1,000 seeds from 2023 on, the first that gives a connected network. With 100 agents it is the paper's network;
    "er" with more has a mean degree of log(n), since with less it would hardly ever be connected.

    Parameters
    ----------
    name : str
        "er", "ba" or "sbm".
    n_agents : int
        At least 8; a multiple of 4 for "sbm", which has four blocks.

    Examples
    --------
    >>> like_paper("ba", 50).number_of_edges()
    96
    """
    name = checks.choice("name", name, ("er", "ba", "sbm"))
    n = checks.integer("n_agents", n_agents, at_least=8)
    if n == 100:
        return paper(name)
    if name == "sbm" and n % 4:
        raise NetworkError(f"sbm has four blocks of one size: n_agents must be a multiple of 4, got {n}")
    degree = 0.03 * 99 if n < 100 else math.log(n)

    def make(seed: int) -> nx.Graph:
        if name == "ba":
            return ba(n, 2, seed)
        if name == "sbm":
            return sbm([n // 4] * 4, min(1.0, 0.3 * 24 / (n // 4 - 1)), min(1.0, 0.003 * 75 / (n - n // 4)), seed)
        return er(n, min(1.0, degree / (n - 1)), seed)

    return first_connected(make, start=2023)[0]
