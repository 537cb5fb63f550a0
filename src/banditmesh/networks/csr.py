"""Static networks as arrays: compressed sparse rows, the form that engines read.

This is where a network from outside is validated, once. What passes is undirected, unweighted and without
self-loops; it may be disconnected, have a single agent or no links at all. Agents are numbered from 0 in
the order of the network's nodes; their names are kept too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..checks import integer, is_hashable, shown
from ..errors import NetworkError
from .matrices import MAX_AGENTS, entries

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import csr_array

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Links:
    """A static undirected network as read-only arrays.

    Make one with `Links.from_pairs`, `from_networkx` or `from_sparse`, which enforce the rules below.

    Attributes
    ----------
    n_agents : int
    indptr : ndarray of int64, shape (n_agents + 1,)
        Where each agent's neighbours begin in `indices`.
    indices : ndarray of int32, shape (2 * n_links,)
        Every link both ways: the neighbours of agent v, ascending, are `indices[indptr[v]:indptr[v + 1]]`.

    Examples
    --------
    >>> path = Links.from_pairs(3, [(0, 1), (1, 2)])
    >>> path.n_links, path.neighbour_lists()
    (2, [[1], [0, 2], [1]])
    """

    n_agents: int
    indptr: Int64s
    indices: Int32s

    def __post_init__(self) -> None:
        _check_rows(self.n_agents, self.indptr, self.indices)
        self.indptr.flags.writeable = False
        self.indices.flags.writeable = False

    @classmethod
    def from_pairs(cls, n_agents: int, pairs: npt.ArrayLike) -> Links:
        """The network with these links, given as an (m, 2) array of agents; repeated links are merged."""
        array = np.asarray(pairs)
        if array.size == 0:
            array = np.empty((0, 2), dtype=np.int64)
        if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
            raise NetworkError(f"pairs must be an integer array of shape (m, 2), got {array.dtype} {array.shape}")
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < n_agents:
            i, j = array[np.flatnonzero(((array < 0) | (array >= n_agents)).any(axis=1))[0]].tolist()
            raise NetworkError(f"links must join agents 0 to {n_agents - 1}, got ({i}, {j})")
        loops = np.flatnonzero(array[:, 0] == array[:, 1])
        if len(loops):
            raise _self_loop(int(array[loops[0], 0]))
        # Each link once and then both ways, so that repeated ones take no extra space.
        codes = array.min(axis=1).astype(np.int64) * n_agents + array.max(axis=1).astype(np.int64)
        # Sorted here: numpy's `unique` makes a table of them, which takes ten times as long for millions of links.
        codes.sort()
        is_new = np.ones(len(codes), dtype=bool)
        np.not_equal(codes[1:], codes[:-1], out=is_new[1:])
        codes = codes[is_new]
        codes = np.concatenate([codes, codes % n_agents * n_agents + codes // n_agents])
        codes.sort()
        degrees = np.bincount(codes // n_agents, minlength=n_agents)
        return cls(n_agents, _row_starts(degrees), (codes % n_agents).astype(np.int32))

    @property
    def n_links(self) -> int:
        """How many undirected links there are."""
        return len(self.indices) // 2

    @property
    def degrees(self) -> Int64s:
        """Every agent's number of neighbours, shape (n_agents,)."""
        return np.diff(self.indptr)

    def neighbours(self, agent: int) -> Int32s:
        """The neighbours of an agent, ascending."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]

    def neighbour_lists(self) -> list[list[int]]:
        """Every agent's neighbours as plain lists."""
        bounds: list[int] = self.indptr.tolist()
        indices: list[int] = self.indices.tolist()
        return [indices[bounds[v] : bounds[v + 1]] for v in range(self.n_agents)]

    def directed(self) -> Int32s:
        """Every link in both directions, sorted: senders and receivers, shape (2 * n_links, 2)."""
        senders = np.repeat(np.arange(self.n_agents, dtype=np.int32), self.degrees)
        return np.stack([senders, self.indices], axis=1)

    def pairs(self) -> Int32s:
        """Every link once, the lower agent first, sorted: an array of shape (n_links, 2)."""
        both = self.directed()
        return both[both[:, 0] < both[:, 1]]

    def matrix(self) -> csr_array[Any]:
        """The adjacency matrix."""
        # Imported on first use: scipy takes longer than everything else that a warm start imports but numba.
        from scipy.sparse import csr_array

        ones = np.ones(len(self.indices), dtype=np.int8)
        return csr_array((ones, self.indices, self.indptr), shape=(self.n_agents, self.n_agents))

    def components(self) -> Int64s:
        """Every agent's component, numbered from 0 in the order of the components' lowest agents."""
        from scipy.sparse.csgraph import connected_components

        found = connected_components(self.matrix(), directed=False)[1]
        _, lowest, labels = np.unique(found, return_index=True, return_inverse=True)
        number = np.empty(len(lowest), dtype=np.int64)
        number[np.argsort(lowest)] = np.arange(len(lowest))
        return number[labels]


def as_links(network: Any) -> tuple[Sequence[Hashable], Links]:
    """The agents' names and the links of any static network.

    Parameters
    ----------
    network : networkx.Graph, scipy sparse matrix, Links or edge list
        Agents in node order; matrices and `Links` name them 0 .. n - 1. An edge list is a sequence of tuples of two
        names, and its agents come in the order in which they appear. A pair of names and `Links`, as this function
        returns it, is accepted too.

    Returns
    -------
    names : sequence of hashables
    links : Links

    Examples
    --------
    >>> import networkx
    >>> names, links = as_links(networkx.Graph([("a", "b")]))
    >>> names, links.neighbour_lists()
    (('a', 'b'), [[1], [0]])
    """
    if isinstance(network, Links):
        return range(network.n_agents), _checked_both_ways(network)
    if hasattr(network, "tocsr"):
        return from_sparse(network)
    if isinstance(network, tuple) and len(network) == 2 and isinstance(network[1], Links):
        return _checked_names(network[0], network[1].n_agents), _checked_both_ways(network[1])
    if isinstance(network, Sequence) and not isinstance(network, str):
        return _from_edge_list(network)
    return from_networkx(network)


def from_networkx(graph: nx.Graph) -> tuple[tuple[Hashable, ...], Links]:
    """The nodes of a networkx graph in their order, and its links.

    Parameters
    ----------
    graph : networkx.Graph
        Undirected, without parallel edges, self-loops or weights other than 1.

    Returns
    -------
    names : tuple of hashables
    links : Links

    Examples
    --------
    >>> import networkx
    >>> names, links = from_networkx(networkx.star_graph(3))
    >>> names, links.degrees
    ((0, 1, 2, 3), array([3, 1, 1, 1]))
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise NetworkError(
            f"must be a networkx.Graph, a scipy sparse matrix or an edge list, got {type(graph).__name__}; "
            "dynamic networks come from banditmesh.networks",
            key="network",
        )
    kind = type(graph).__name__
    if graph.is_directed():
        raise NetworkError(f"must be undirected, got a {kind}; convert it with graph.to_undirected()", key="network")
    if graph.is_multigraph():
        raise NetworkError(
            f"must have single links, got a {kind}; convert it with networkx.Graph(graph)", key="network"
        )
    names = tuple(graph)
    if not names:
        raise NetworkError("must have at least one agent, got a graph without nodes", key="network")
    for u, v, weight in graph.edges(data="weight", default=1):
        if u == v:
            raise _self_loop(u)
        if not isinstance(weight, Real) or weight != 1:
            raise NetworkError(
                f"must be unweighted, got weight {shown(weight)} on the edge ({shown(u)}, {shown(v)}); "
                "drop the weights with banditmesh.networks.unweighted(graph)",
                key="network",
            )
    place = {name: number for number, name in enumerate(names)}
    ends = np.fromiter((place[end] for edge in graph.edges() for end in edge), dtype=np.int64)
    return names, Links.from_pairs(len(names), ends.reshape(-1, 2))


def from_sparse(matrix: Any) -> tuple[range, Links]:
    """The agents 0 .. n - 1 of a sparse adjacency matrix, and its links.

    Parameters
    ----------
    matrix : scipy sparse matrix or array, shape (n, n)
        Symmetric, with entries 0 and 1 and a zero diagonal.

    Returns
    -------
    names : range
    links : Links

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> names, links = from_sparse(csr_array([[0, 1], [1, 0]]))
    >>> names, links.n_links
    (range(0, 2), 1)
    """
    n_agents, rows, columns, values = entries(matrix)
    codes, sums = _merged(rows * n_agents + columns, values)
    other = np.flatnonzero(sums != 1)
    if len(other):
        i, j = divmod(int(codes[other[0]]), n_agents)
        raise NetworkError(f"an adjacency matrix must have entries 0 and 1, got {sums[other[0]]:g} at ({i}, {j})")
    rows, columns = codes // n_agents, codes % n_agents
    loops = np.flatnonzero(rows == columns)
    if len(loops):
        raise _self_loop(int(rows[loops[0]]))
    if not np.array_equal(codes, np.sort(columns * n_agents + rows)):
        raise NetworkError(
            "an adjacency matrix must be symmetric, got one with links in one direction only; "
            "make it undirected with matrix.maximum(matrix.T)"
        )
    starts = _row_starts(np.bincount(rows, minlength=n_agents))
    return range(n_agents), Links(n_agents, starts, columns.astype(np.int32))


def _from_edge_list(pairs: Sequence[Any]) -> tuple[tuple[Hashable, ...], Links]:
    """The agents of a sequence of tuples, in the order in which they appear, and its links.

    Lists instead of tuples are refused: they may be the rows of a matrix.
    """
    number_of: dict[Hashable, int] = {}
    ends: list[int] = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise NetworkError(f"network as an edge list must hold tuples of two agents, got {shown(pair)}")
        for name in pair:
            if not is_hashable(name):
                raise NetworkError(f"an agent's name must be hashable, got {shown(name)}")
            ends.append(number_of.setdefault(name, len(number_of)))
        if pair[0] == pair[1]:
            raise _self_loop(pair[0])
    if not number_of:
        raise NetworkError("must have at least one agent, got an edge list without links", key="network")
    return tuple(number_of), Links.from_pairs(len(number_of), np.array(ends, dtype=np.int64).reshape(-1, 2))


def _checked_names(names: Sequence[Hashable], n_agents: int) -> Sequence[Hashable]:
    if not (isinstance(names, Sequence) and len(names) == n_agents and all(map(is_hashable, names))):
        raise NetworkError(f"there must be a name for each of the {n_agents} agents, got {shown(names)}")
    if len(set(names)) < n_agents:
        raise NetworkError(f"the names of agents must differ, got {shown(names)}")
    return names


def _merged(codes: Int64s, values: npt.NDArray[Any]) -> tuple[Int64s, npt.NDArray[Any]]:
    """The codes of a matrix's entries, ascending, and their values: repeated ones added up, zeros left out."""
    if not (codes[1:] > codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes, starts = np.unique(codes[order], return_index=True)
        with np.errstate(all="ignore"):  # a sum that is not a number is not a valid entry either
            values = np.add.reduceat(values[order], starts, dtype=values.dtype)
    return codes[values != 0], values[values != 0]


def _check_rows(n_agents: int, indptr: npt.NDArray[Any], indices: npt.NDArray[Any]) -> None:
    """Make sure that code that follows these arrays, compiled or not, stays within them."""
    integer("n_agents", n_agents, at_least=1, at_most=MAX_AGENTS)
    for name, array, kind in (("indptr", indptr, np.int64), ("indices", indices, np.int32)):
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
            raise NetworkError(f"{name} must be a one-dimensional array of {kind.__name__}, got {shown(array)}")
    ends = len(indptr) == n_agents + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if not ends or (indptr[1:] < indptr[:-1]).any():
        raise NetworkError(f"indptr must rise from 0 to {len(indices)} in {n_agents + 1} entries, got {shown(indptr)}")
    if len(indices) and not 0 <= indices.min() <= indices.max() < n_agents:
        raise NetworkError(f"links must join agents 0 to {n_agents - 1}, got one to another in indices")
    rises = np.diff(indices) > 0
    # From the last neighbour of an agent to the first one of the next, indices may fall.
    inner = indptr[1:-1]
    rises[inner[(inner > 0) & (inner < len(indices))] - 1] = True
    if not rises.all():
        raise NetworkError("the neighbours of an agent must ascend in indices, got others")


def _checked_both_ways(links: Links) -> Links:
    """Links that may have been made by hand, if each is present in both directions and none is a self-loop."""
    senders, receivers = links.directed().astype(np.int64).T
    loops = np.flatnonzero(senders == receivers)
    if len(loops):
        raise _self_loop(int(senders[loops[0]]))
    if not np.array_equal(senders * links.n_agents + receivers, np.sort(receivers * links.n_agents + senders)):
        raise NetworkError("every link must be in indices in both directions, got one in one direction only")
    return links


def _self_loop(name: object) -> NetworkError:
    return NetworkError(f"must have no self-loops, got a link from {shown(name)} to itself", key="network")


def _row_starts(degrees: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
