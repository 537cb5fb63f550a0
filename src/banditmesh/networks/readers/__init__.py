"""Networks from files: one module per format, and `files` and `names` for what they share.

Every reader returns a network that can be used as it is, or raises `FileError`. Every one also reads gzip files, and
none reads more than `max_bytes`. The beginning of the content decides the format, then the suffix; anything else is an
edge list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...files.contents import AnyTable, ReadingCallback
from . import adjacency, edge_list, formats, gml, graphml, matrix, matrix_market, node_link, text_matrix
from .adjacency import read_adjacency
from .contacts import read_contact_trace
from .edge_list import read_edge_list
from .files import NetworkFile
from .gml import read_gml
from .graphml import read_graphml

__all__ = [
    "read",
    "read_adjacency",
    "read_any",
    "read_contact_trace",
    "read_edge_list",
    "read_gml",
    "read_graphml",
]

_BY_SUFFIX: Final[dict[str, Callable[[NetworkFile], Any]]] = {
    ".adjlist": adjacency.parse,
    ".gml": gml.parse,
    ".graphml": graphml.parse,
    ".json": node_link.parse,
    ".mtx": matrix_market.parse,
    ".npz": matrix.parse,
}
BY_FORMAT: Final[dict[str, Callable[[NetworkFile], Any]]] = {
    formats.GML: gml.parse,
    formats.GRAPHML: graphml.parse,
    formats.JSON: node_link.parse,
    formats.MATRIX_MARKET: matrix_market.parse,
    formats.NPZ: matrix.parse,
}


def read(
    path: AnyTable,
    *,
    max_bytes: int | None = None,
    weights: str = "refuse",
    self_loops: str = "refuse",
    header: bool | None = None,
    progress: ReadingCallback | None = None,
) -> Any:
    r"""Read a network, its format found from the content or, failing that, from the suffix.

    GraphML, GML, node-link JSON, Matrix Market and sparse matrices of scipy (`.npz`) are known by how they begin, a
    text of zeros and ones in a square is an adjacency matrix, `.adjlist` is an adjacency list, and anything else an
    edge list. Each may be gzipped, as in `links.graphml.gz`. Other formats are refused by name. Positions of agents in
    GraphML, GML and JSON become the node attribute "pos". A warning reports what was not read as it is in the file:
    directed links, repeated ones, and dropped self-loops.

    Parameters
    ----------
    path : str, path or DataFrame
        The file; or a DataFrame whose first two columns are the agents of links.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; if not given, 32 MiB, and 128 MiB in `.npz`.
    weights : str
        "refuse" a network with weights other than 1, or "ignore" the weights.
    self_loops : str
        "refuse" a network with links from an agent to itself, or "drop" these links.
    header : bool, optional
        Whether the first line of an edge list names its columns; see `read_edge_list`.
    progress : callable, optional
        Called from time to time, for edge and adjacency lists, with the bytes read and the total.

    Returns
    -------
    networkx.Graph, or a scipy sparse matrix from a file that holds a matrix

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.txt")
    ...     _ = file.write_text("0 1\n1 2\n")
    ...     read(file).number_of_edges()
    2
    """
    file = NetworkFile(path, max_bytes, weights, self_loops, progress)
    parse = _parser_of(file, header)
    return edge_list.parse(file, header) if parse is None else parse(file)


def read_any(
    path: AnyTable,
    *,
    max_bytes: int | None = None,
    weights: str = "refuse",
    self_loops: str = "refuse",
    header: bool | None = None,
    progress: ReadingCallback | None = None,
) -> Any:
    """What `read` gives or, for an edge list, names and `Links`, which takes a third of the time: for `Problem`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.txt")
    ...     _ = file.write_text("a b")
    ...     names, links = read_any(file)
    >>> names, links.n_links
    (('a', 'b'), 1)
    """
    file = NetworkFile(path, max_bytes, weights, self_loops, progress)
    parse = _parser_of(file, header)
    return edge_list.parse_links(file, header) if parse is None else parse(file)


def _parser_of(file: NetworkFile, header: bool | None) -> Callable[[NetworkFile], Any] | None:
    """The parser for the file's format; None for an edge list, which alone may have a header."""
    if file.frame is not None:
        parse = None
    elif (name := formats.recognised(file.content)) is not None:
        if name not in BY_FORMAT:
            raise file.wrong(f"must be in a format that is read here, got {name}; {formats.REMEDY}")
        parse = BY_FORMAT[name]
    else:
        parse = _BY_SUFFIX.get(file.suffix) or (text_matrix.parse if text_matrix.is_matrix(file) else None)
    if parse is not None and header is not None:
        raise file.wrong(f"must be an edge list to have a header, got header={header}; leave it out")
    return parse
