"""Which agents hear each other: graph powers, and the powers in which holders of an arm block its messages.

`G^g` joins two agents at most g hops apart: what Flooding reaches. `G^g_(a,c)` joins two agents with a path of at most
g hops whose inner agents do not have arm a: what Flooding with Absorption reaches. Both come from one breadth-first
search for all sources at once: every agent keeps one bit per source, and a hop is a bitwise or over neighbours. So
thousands of agents take a moment, and no path is ever listed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import ArmError, NetworkError
from ..networks.csr import Links, as_links
from ..networks.dynamic import DynamicNetwork
from ..problem import Problem

if TYPE_CHECKING:
    import networkx as nx

#: Sources searched from at once; limits the memory, 8 bytes per directed link for every 64 of them.
_BLOCK = 2048


def graph_power(network: Any, ttl: int) -> nx.Graph:
    """The graph power `G^g`: agents at most `ttl` hops apart are joined.

    Parameters
    ----------
    network : Problem, networkx.Graph, scipy sparse matrix or Links
        A static network.
    ttl : int
        The largest distance; 0 joins none.

    Returns
    -------
    networkx.Graph
        On the same agents, in the same order.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> bm.theory.graph_power(nx.path_graph(4), 2).number_of_edges()
    5
    """
    return _joined(*_read_network(network), None, checks.integer("ttl", ttl, at_least=0))


def nonblocking_power(problem: Problem, arm: Hashable, ttl: int) -> nx.Graph:
    """The non-blocking power `G^g_(a,c)` of Definition 2: joined by a path of at most `ttl` hops that is free of `arm`.

    Parameters
    ----------
    problem : Problem
        With a static network.
    arm : hashable
        Its holders may be at the two ends of a path, not inside it.
    ttl : int
        The largest length of a path.

    Returns
    -------
    networkx.Graph
        On the same agents, in the same order.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> arms = {"a": bm.arms.Bernoulli(0.5), "b": bm.arms.Bernoulli(0.4)}
    >>> problem = bm.Problem(nx.path_graph(4), [["a"], ["b"], ["a"], ["a"]], arms)
    >>> sorted(bm.theory.nonblocking_power(problem, "a", 3).edges)
    [(0, 1), (0, 2), (1, 2), (2, 3)]
    """
    relays = _relays(problem, arm)
    return _joined(*_read_network(problem), relays, checks.integer("ttl", ttl, at_least=0))


def hop_distances(network: Any, ttl: int, *, arm: Hashable = None) -> NDArray[np.int16]:
    """How many hops apart agents are, up to `ttl` hops.

    Parameters
    ----------
    network : Problem, networkx.Graph, scipy sparse matrix or Links
        A static network.
    ttl : int
        The largest distance considered.
    arm : hashable, optional
        If given, only paths without inner holders of this arm count; needs a Problem.

    Returns
    -------
    int array (agents, agents)
        0 on the diagonal, -1 where there is no such path.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> bm.theory.hop_distances(nx.path_graph(4), 2)[0]
    array([ 0,  1,  2, -1], dtype=int16)
    """
    names, links = _read_network(network)
    relays = None if arm is None else _relays(network, arm)
    ttl = checks.integer("ttl", ttl, at_least=0, at_most=np.iinfo(np.int16).max)
    distances = np.full((len(names), len(names)), -1, dtype=np.int16)
    np.fill_diagonal(distances, 0)
    for sources in blocks(len(names)):
        for hop, reached in enumerate(spread(links, sources, relays, ttl), start=1):
            distances[:, sources[0] : sources[-1] + 1][reached] = hop
    return distances


def spread(
    links: Links, sources: NDArray[np.int64], relays: NDArray[np.bool_] | None, ttl: int
) -> Iterator[NDArray[np.bool_]]:
    """Hop by hop, the agents that the sources' messages reach for the first time: arrays (agents, sources).

    Every source sends; of the others only those with `relays` pass a message on (all, if it is None). It ends after
    `ttl` hops, or earlier if nothing more is reached.
    """
    for reached, _ in _spread_bits(links, sources, relays, ttl):
        yield _unpack(reached, len(sources))


def adjacency(links: Links, agents: NDArray[np.int64], relays: NDArray[np.bool_] | None, ttl: int) -> NDArray[np.bool_]:
    """Which of the given agents hear each other: a symmetric array (agents, agents), False on the diagonal."""
    last = np.zeros((links.n_agents, 0), dtype=np.uint64)
    for _, seen in _spread_bits(links, agents, relays, ttl):
        last = seen
    if not last.size:
        return np.zeros((len(agents), len(agents)), dtype=np.bool_)
    joined = _unpack(last[agents], len(agents))
    np.fill_diagonal(joined, False)
    return joined


def n_hops(links: Links, sources: NDArray[np.int64], ttl: int) -> int:
    """The number of hops, at most `ttl`, after which the sources reach no further agents."""
    return sum(1 for _ in _spread_bits(links, sources, None, ttl))


def blocks(n_agents: int) -> Iterator[NDArray[np.int64]]:
    """All agents, in groups small enough for a search from them to fit in memory."""
    for start in range(0, n_agents, _BLOCK):
        yield np.arange(start, min(start + _BLOCK, n_agents), dtype=np.int64)


def static_links(problem: Problem) -> Links:
    """The problem's links; dynamic networks are refused."""
    if isinstance(problem.network, DynamicNetwork):
        raise NetworkError("bounds and powers need a static network, got a dynamic one; give one round's network")
    return problem.network


def _spread_bits(
    links: Links, sources: NDArray[np.int64], relays: NDArray[np.bool_] | None, ttl: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """What `spread` yields, as bits, with all that was reached so far (including the sources themselves)."""
    n_agents, n_sources = links.n_agents, len(sources)
    if ttl == 0 or n_sources == 0 or links.n_links == 0:
        return
    linked = np.flatnonzero(links.degrees)
    starts = links.indptr[linked]
    places = np.arange(n_sources)
    frontier = np.zeros((n_agents, -(-n_sources // 64)), dtype=np.uint64)
    np.bitwise_or.at(frontier, (sources, places // 64), np.uint64(1) << (places % 64).astype(np.uint64))
    seen = frontier.copy()
    for _ in range(ttl):
        reached = np.zeros_like(frontier)
        reached[linked] = np.bitwise_or.reduceat(frontier[links.indices], starts, axis=0)
        reached &= ~seen
        if not reached.any():
            return
        seen |= reached
        yield reached, seen
        frontier = reached if relays is None else np.where(relays[:, None], reached, np.uint64(0))


def _unpack(bits: NDArray[np.uint64], n_sources: int) -> NDArray[np.bool_]:
    # Bytes of a little-endian word hold the bits in ascending order, on any machine.
    little = np.ascontiguousarray(bits.astype("<u8")).view(np.uint8)
    return np.unpackbits(little, axis=1, count=n_sources, bitorder="little").view(np.bool_)


def _joined(names: Any, links: Links, relays: NDArray[np.bool_] | None, ttl: int) -> nx.Graph:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(names)
    for sources in blocks(len(names)):
        for reached in spread(links, sources, relays, ttl):
            receivers, columns = np.nonzero(reached)
            senders = sources[columns]
            once = senders < receivers
            graph.add_edges_from(
                (names[v], names[w]) for v, w in zip(senders[once].tolist(), receivers[once].tolist(), strict=True)
            )
    return graph


def _relays(problem: object, arm: Hashable) -> NDArray[np.bool_]:
    """Which agents pass on messages about an arm: those that do not have it."""
    if not isinstance(problem, Problem) or arm not in problem.arms:
        raise ArmError(f"arm must be one of a Problem's, got {arm!r}")
    return ~problem.who_has(problem.arms.index(arm))


def _read_network(network: Any) -> tuple[Any, Links]:
    if isinstance(network, Problem):
        return network.agents, static_links(network)
    return as_links(network)
