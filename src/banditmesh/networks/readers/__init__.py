"""Networks from files: one file a format, and `files` and `names` for what they share.

Every reader returns a network that can be used as it is, or raises `FileError`. Every one also reads what gzip has
packed, and none reads more than `max_bytes`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any, Final

from . import adjacency, edge_list, gml, graphml, matrix
from .adjacency import read_adjacency
from .contacts import read_contact_trace
from .edge_list import read_edge_list
from .files import AnyPath, NetworkFile
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
    ".npz": matrix.parse,
}


def read(path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", header: bool | None = None) -> Any:
    r"""Read a network, its format found from the suffix or, failing that, from the content.

    `.graphml` and `.gml`; `.adjlist` and `.npz` as adjacency; anything else is an edge list, unless it
    begins like GraphML, GML or .npz. Each may be packed by gzip, as in `links.graphml.gz`. Places of agents in
    GraphML and GML become the node attribute "pos".

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; if not given, 32 MiB, and 128 MiB in `.npz`.
    weights : str
        "refuse" a network with weights other than 1, or "ignore" the weights.
    header : bool, optional
        Whether the first line of an edge list names its columns; see `read_edge_list`.

    Returns
    -------
    networkx.Graph, or a scipy sparse matrix from `.npz`

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.txt")
    ...     _ = file.write_text("0 1\n1 2\n")
    ...     read(file).number_of_edges()
    2
    """
    file = NetworkFile(path, max_bytes, weights)
    parse = _parser_of(file, header)
    return edge_list.parse(file, header) if parse is None else parse(file)


def read_any(
    path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", header: bool | None = None
) -> Any:
    """What `read` gives or, of an edge list, names and `Links`, which takes a third of the time: for `Problem`.

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
    file = NetworkFile(path, max_bytes, weights)
    parse = _parser_of(file, header)
    return edge_list.parse_links(file, header) if parse is None else parse(file)


def _parser_of(file: NetworkFile, header: bool | None) -> Callable[[NetworkFile], Any] | None:
    """What reads the file's format; None for an edge list, which alone may have a header."""
    parse = None
    if file.suffix != ".edgelist":
        parse = _BY_SUFFIX.get(file.suffix) or _by_content(file.content[:4096].removeprefix(BOM_UTF8).lstrip())
    if parse is not None and header is not None:
        raise file.wrong(f"must be an edge list to have a header, got header={header}; leave it out")
    return parse


def _by_content(start: bytes) -> Callable[[NetworkFile], Any] | None:
    if start.startswith(b"PK\x03\x04"):
        return matrix.parse
    if start.startswith(b"<"):
        return graphml.parse
    if re.match(rb"(?:\s|(?:#|Creator|Version).*\n)*graph\s*\[", start):
        return gml.parse
    return None
