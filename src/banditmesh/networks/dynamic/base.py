"""The contract of dynamic networks, called recipes, and how recipes read their arguments.

A recipe has agents, and `rounds` yields the links of round 1, 2, ... in turn. It keeps no state, and its randomness
depends on the draws alone, so that every protocol and engine sees the same links. The links of a round are an int32
array of shape (m, 2), i < j in every row, the rows sorted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from ... import checks
from ...draws import Draws
from ...errors import NetworkError
from ..csr import Int32s, Links, as_links


class DynamicNetwork(ABC):
    """The base of every dynamic network.

    Attributes
    ----------
    names : tuple of hashables
        The agents, in order.
    n_rounds : int or None
        How many rounds it lasts; None if it is endless.

    Examples
    --------
    >>> import networkx
    >>> from banditmesh.networks import LinkFailures
    >>> network = LinkFailures(networkx.path_graph(3), failure=0.0)
    >>> isinstance(network, DynamicNetwork), network.n_agents, network.n_rounds
    (True, 3, None)
    """

    names: tuple[Hashable, ...]
    n_rounds: int | None = None

    @property
    def n_agents(self) -> int:
        """How many agents there are."""
        return len(self.names)

    @abstractmethod
    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:
        """The links of round 1, 2, ...; it ends after `n_rounds`.

        Parameters
        ----------
        draws : Draws
            All randomness depends on these alone.
        births_first : bool
            For edge-Markovian networks: see there.

        Yields
        ------
        ndarray of int32, shape (m, 2)
            The links, the lower agent first, sorted.
        """


def named(network: Any) -> tuple[tuple[Hashable, ...], Links]:
    """The agents and the links of a static network from which a recipe starts."""
    names, links = as_links(network)
    return tuple(names), links


def iterator(wanted: str, values: Iterable[Any]) -> Iterator[Any]:
    """An iterator over `values`, which may be anything at all."""
    try:
        return iter(values)
    except TypeError:
        raise NetworkError(f"{wanted}, got {checks.shown(values)}") from None
