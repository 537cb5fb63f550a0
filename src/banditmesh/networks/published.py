"""The networks of the paper's experiments (Section 6): Lee, Schmid and Yun, OPODIS 2023."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import checks
from .dynamic import EdgeMarkovian
from .static import ba, er, sbm

if TYPE_CHECKING:
    import networkx as nx

PAPER_NETWORKS: Final = ("er", "ba", "sbm", "dynamic-er")

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
    if name == "ba":
        return ba(100, 2, seed=2023)
    if name == "sbm":
        return sbm([25] * 4, 0.3, 0.003, seed=2023)
    # 2138 is the first seed from 2023 on that gives a connected network.
    graph = er(100, 0.03, seed=2138)
    return EdgeMarkovian(graph, p=0.01, q=0.1) if name == "dynamic-er" else graph
