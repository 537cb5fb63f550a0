"""Generators of static networks.

They return networkx graphs on the agents 0 .. n - 1, and pass the seed to networkx, so that a published
`networkx.erdos_renyi_graph(100, 0.03, seed=2138)` is `er(100, 0.03, 2138)`, link for link. networkx is imported on
first use, because it is slow to import. Networks too large for it come from `sparse`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from .. import checks
from ..errors import NetworkError
from ..machine import memory

if TYPE_CHECKING:
    import networkx as nx

#: Far beyond what networkx makes in minutes, and what fits in the memory of most machines.
MAX_AGENTS: Final = 10_000_000
MAX_LINKS: Final = 100_000_000
MAX_PAIRS: Final = 2_000_000_000
#: Bytes for an agent and for a link while networkx makes them and a problem reads them.
_AGENT_BYTES: Final = 600.0
_LINK_BYTES: Final = 250.0


def er(n: int, p: float, seed: int) -> nx.Graph:
    """An Erdős-Rényi network: every pair of `n` agents is linked with probability `p`.

    Examples
    --------
    >>> er(100, 0.03, seed=2138).number_of_edges()
    153
    """
    import networkx as nx

    n, p = _agents("n", n, 1), checks.probability("p", p)
    _check_size(n, p * n * (n - 1) / 2, pairs=n * (n - 1) // 2)
    return nx.erdos_renyi_graph(n, p, seed=checks.seed(seed))


def ba(n: int, m: int, seed: int) -> nx.Graph:
    """A Barabási-Albert network: `n` agents, each newcomer linked to `m` others by preferential attachment.

    Examples
    --------
    >>> ba(100, 2, seed=2023).number_of_edges()
    196
    """
    import networkx as nx

    n = _agents("n", n, 2)
    m = checks.integer("m", m, at_least=1, at_most=n - 1)
    _check_size(n, n * m)
    return nx.barabasi_albert_graph(n, m, seed=checks.seed(seed))


def sbm(sizes: Sequence[int], p_in: float, p_out: float, seed: int) -> nx.Graph:
    """A stochastic block model: links with probability `p_in` inside and `p_out` between blocks of `sizes`.

    Examples
    --------
    >>> sbm([25] * 4, 0.3, 0.003, seed=2023).number_of_edges()
    361
    """
    import networkx as nx

    if not isinstance(sizes, Iterable):
        raise NetworkError(f"must be a list of block sizes, got {checks.shown(sizes)}", key="sizes")
    blocks = [_agents("every block size", size, 1) for size in sizes]
    if not blocks:
        raise NetworkError("must name at least one block, got none", key="sizes")
    p_in, p_out = checks.probability("p_in", p_in), checks.probability("p_out", p_out)
    n, inside = sum(blocks), sum(size * (size - 1) // 2 for size in blocks)
    pairs = n * (n - 1) // 2
    _check_size(n, p_in * inside + p_out * (pairs - inside))
    return nx.random_partition_graph(blocks, p_in, p_out, seed=checks.seed(seed))


def watts_strogatz(n: int, k: int, p: float, seed: int) -> nx.Graph:
    """A small world: a ring of `n` agents with `k` near neighbours each, links rewired with probability `p`.

    An odd `k` counts as k - 1, as in networkx.

    Examples
    --------
    >>> watts_strogatz(10, 4, 0.1, seed=0).number_of_edges()
    20
    """
    import networkx as nx

    n = _agents("n", n, 3)
    k = checks.integer("k", k, at_least=0, at_most=n - 1)
    _check_size(n, n * k // 2)
    return nx.watts_strogatz_graph(n, k, checks.probability("p", p), seed=checks.seed(seed))


def grid(rows: int, columns: int) -> nx.Graph:
    """A rectangular grid, its agents numbered row by row.

    Examples
    --------
    >>> sorted(grid(2, 3).edges())
    [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]
    """
    import networkx as nx

    rows, columns = _agents("rows", rows, 1), _agents("columns", columns, 1)
    _check_size(rows * columns, 2 * rows * columns)
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))


def path(n: int) -> nx.Graph:
    """A path of `n` agents.

    Examples
    --------
    >>> list(path(3).edges())
    [(0, 1), (1, 2)]
    """
    import networkx as nx

    n = _agents("n", n, 1)
    _check_size(n, n - 1)
    return nx.path_graph(n)


def ring(n: int) -> nx.Graph:
    """A ring of `n` agents, at least three.

    Examples
    --------
    >>> ring(5).number_of_edges()
    5
    """
    import networkx as nx

    n = _agents("n", n, 3)
    _check_size(n, n)
    return nx.cycle_graph(n)


def star(n: int) -> nx.Graph:
    """A star of `n` agents in total, agent 0 in the centre.

    Examples
    --------
    >>> list(star(3).edges())
    [(0, 1), (0, 2)]
    """
    import networkx as nx

    n = _agents("n", n, 1)
    _check_size(n, n - 1)
    return nx.star_graph(n - 1)


def complete(n: int) -> nx.Graph:
    """A network of `n` agents with a link between every two.

    Examples
    --------
    >>> complete(4).number_of_edges()
    6
    """
    import networkx as nx

    n = _agents("n", n, 1)
    _check_size(n, n * (n - 1) // 2)
    return nx.complete_graph(n)


def random_regular(n: int, degree: int, seed: int) -> nx.Graph:
    """A random network in which each of `n` agents has `degree` neighbours; n * degree must be even.

    Examples
    --------
    >>> random_regular(10, 3, seed=0).number_of_edges()
    15
    """
    import networkx as nx

    n = _agents("n", n, 1)
    degree = checks.integer("degree", degree, at_least=0, at_most=n - 1)
    _check_size(n, n * degree // 2)
    if n * degree % 2:
        raise NetworkError(f"n * degree must be even, got {n} * {degree}")
    graph = nx.empty_graph(n)
    graph.add_edges_from(nx.random_regular_graph(degree, n, seed=checks.seed(seed)).edges())
    return graph


def random_geometric(n: int, radius: float, seed: int) -> nx.Graph:
    """Points in the unit square: `n` agents at random places, linked within the distance `radius`.

    The node attribute "pos" keeps the places.

    Examples
    --------
    >>> network = random_geometric(50, 0.2, seed=0)
    >>> len(network.nodes[0]["pos"])
    2
    """
    import networkx as nx

    n, radius = _agents("n", n, 1), checks.positive("radius", radius)
    _check_size(n, n * (n - 1) / 2 * min(1.0, math.pi * radius * radius))
    return nx.random_geometric_graph(n, radius, seed=checks.seed(seed))


def first_connected(generator: Callable[[int], nx.Graph], start: int = 0, tries: int = 1000) -> tuple[nx.Graph, int]:
    """The first connected network that a generator makes, with its seed.

    Parameters
    ----------
    generator : callable
        Takes a seed and returns a networkx graph.
    start : int
        The first seed; then come start + 1, start + 2 and so on.
    tries : int
        How many seeds to try before giving up with `NetworkError`.

    Returns
    -------
    graph : networkx.Graph
    seed : int

    Examples
    --------
    >>> first_connected(lambda seed: er(100, 0.03, seed), start=2130)[1]
    2138
    """
    import networkx as nx

    if not callable(generator):
        raise NetworkError(f"generator must be a function of a seed, got {checks.shown(generator)}")
    start = checks.seed(start, "start")
    tries = checks.integer("tries", tries, at_least=1)
    for seed in range(start, start + tries):
        graph = generator(seed)
        if not isinstance(graph, nx.Graph) or graph.is_directed() or len(graph) == 0:
            raise NetworkError(
                f"generator must make undirected networkx graphs with agents, got {checks.shown(graph)} for seed {seed}"
            )
        if nx.is_connected(graph):
            return graph, seed
    raise NetworkError(
        f"none of the {tries} networks with seeds {start} to {start + tries - 1} is connected; "
        "raise tries, or ask for more links"
    )


def unweighted(graph: nx.Graph) -> nx.Graph:
    """A copy of the nodes and links of a graph, without weights or any other attributes.

    Examples
    --------
    >>> import networkx
    >>> weighted = networkx.Graph()
    >>> weighted.add_edge("a", "b", weight=2.5)
    >>> unweighted(weighted).edges(data=True)
    EdgeDataView([('a', 'b', {})])
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise NetworkError(f"graph must be a networkx.Graph, got {checks.shown(graph)}")
    copy = graph.__class__()
    copy.add_nodes_from(graph)
    copy.add_edges_from(graph.edges())
    return copy


def _agents(name: str, value: object, at_least: int) -> int:
    n = checks.integer(name, value, at_least=at_least)
    _check_size(n, 0)
    return n


def _check_size(n_agents: int, n_links: float, pairs: int = 0) -> None:
    """Refuse a network that networkx cannot make in reasonable time, or that does not fit in this machine's memory."""
    for what, number, most in (
        ("agents", n_agents, MAX_AGENTS),
        ("links", n_links, MAX_LINKS),
        ("pairs of agents to draw", pairs, MAX_PAIRS),
    ):
        if number > most:
            raise NetworkError(
                f"a network that networkx makes must have at most {most:,} {what}, got about {number:.3g}; "
                "make it smaller, or see sparse_er and sparse_ba"
            )
    n_bytes = _AGENT_BYTES * n_agents + _LINK_BYTES * n_links
    memory.check(n_bytes, f"a network of {n_agents:,} agents and about {n_links:,.0f} links", "make it smaller")
