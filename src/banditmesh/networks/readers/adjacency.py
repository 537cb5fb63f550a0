"""Adjacency: lists of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...checks import shown
from ...files.contents import AnyPath
from . import matrix
from .files import NetworkFile
from .names import graph_of

if TYPE_CHECKING:
    import networkx as nx


def read_adjacency(
    path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", self_loops: str = "refuse"
) -> Any:
    r"""Read an adjacency list, or a sparse adjacency matrix saved by scipy as `.npz`.

    A line of an adjacency list is an agent and then its neighbours, as networkx writes it; an agent alone
    has none. `#` starts a comment.

    Parameters
    ----------
    path : str or path
        The file, perhaps gzipped.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; if not given, 32 MiB, and 128 MiB for a matrix. At eight bytes for every
        agent, a matrix must stay below it too.
    weights : str
        "refuse" entries of a matrix other than 0 and 1, or "ignore" their size.
    self_loops : str
        "refuse" links from an agent to itself, or "drop" them.

    Returns
    -------
    networkx.Graph, or a scipy sparse matrix from `.npz`

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.adjlist")
    ...     _ = file.write_text("0 1 2\n3\n")
    ...     read_adjacency(file).adj
    AdjacencyView({0: {1: {}, 2: {}}, 1: {0: {}}, 2: {0: {}}, 3: {}})
    """
    file = NetworkFile(path, max_bytes, weights, self_loops)
    return matrix.parse(file) if file.suffix == ".npz" else parse(file)


def parse(file: NetworkFile) -> nx.Graph:
    """The network that an adjacency list describes."""
    file.text()  # refuses anything but text, including DataFrames
    agents: dict[str, None] = {}
    links: dict[tuple[str, str], None] = {}
    for number, row in file.rows():
        if "" in row:
            raise file.wrong_line(number, f"an agent must have a name, got an empty entry in {shown(row)}")
        others = [other for other in row[1:] if other != row[0]] if file.is_loop(number, row[0], row[1:]) else row[1:]
        agents.update(dict.fromkeys(row))
        links.update(((row[0], other), None) for other in others)
    return graph_of(file, agents, links)
