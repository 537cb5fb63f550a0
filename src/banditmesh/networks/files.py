"""Networks from files.

Every reader returns a network that can be used as it is, or raises `FileError` with the path and, in text
formats, the line. Lines are counted from 1. Names that are all integers become integers. In text formats
`#` starts a comment, blank lines are skipped, and a link may be listed more than once and in either
direction.

The parsers of networkx and scipy promise no types of exception, so whatever they raise means a malformed
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from ..checks import shown
from ..errors import FileError, InputError
from .csr import as_links
from .dynamic import ContactTrace

if TYPE_CHECKING:
    import networkx as nx

AnyPath = str | PathLike[str]


def read(path: AnyPath) -> Any:
    r"""Read a network, its format told by the suffix or, failing that, by the content.

    `.graphml` and `.gml`; `.adjlist` and `.npz` as adjacency; anything else is an edge list, unless it
    begins like GraphML, GML or .npz.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    networkx.Graph, or a scipy sparse matrix from `.npz`

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "links.txt")
    ...     _ = file.write_text("0 1\n1 2\n")
    ...     read(file).number_of_edges()
    2
    """
    suffix = _suffix(path)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix](path)
    start = _bytes(path)[:4096].lstrip()
    if start.startswith(b"PK\x03\x04"):
        return _read_sparse(path)
    if start.startswith(b"<"):
        return read_graphml(path)
    if re.match(rb"(?:\s|(?:#|Creator|Version).*\n)*graph\s*\[", start):
        return read_gml(path)
    return read_edge_list(path)


def read_edge_list(path: AnyPath) -> nx.Graph:
    r"""Read an edge list: two agents on every line, separated by blanks or a comma.

    A third column is a weight and is refused unless it is 1. Agents are numbered in the order in which they
    appear. An agent without links cannot be listed; use an adjacency list for it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "links.txt")
    ...     _ = file.write_text("# two links\na b\nb c\n")
    ...     list(read_edge_list(file).edges())
    [('a', 'b'), ('b', 'c')]
    """
    pairs = []
    for number, line in _rows(path):
        if len(line) not in (2, 3):
            raise _wrong(path, number, f"an edge list has two agents on a line, got {len(line)} entries")
        if len(line) == 3 and not _is_one(line[2]):
            raise _wrong(path, number, f"network must be unweighted, got the weight {shown(line[2])}")
        pairs.append((line[0], line[1]))
        _refuse_loop(path, number, line[0], line[1:2])
    return _graph(path, (), pairs)


def read_adjacency(path: AnyPath) -> Any:
    r"""Read an adjacency list, or a sparse adjacency matrix saved by scipy as `.npz`.

    A line of an adjacency list is an agent and then its neighbours, as networkx writes it; an agent alone
    has none.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    networkx.Graph, or a scipy sparse matrix from `.npz`

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "links.adjlist")
    ...     _ = file.write_text("0 1 2\n3\n")
    ...     read_adjacency(file).adj
    AdjacencyView({0: {1: {}, 2: {}}, 1: {0: {}}, 2: {0: {}}, 3: {}})
    """
    if _suffix(path) == ".npz":
        return _read_sparse(path)
    names: list[str] = []
    pairs: list[tuple[str, str]] = []
    for number, line in _rows(path):
        _refuse_loop(path, number, line[0], line[1:])
        names.extend(line)
        pairs.extend((line[0], other) for other in line[1:])
    return _graph(path, names, pairs)


def read_graphml(path: AnyPath) -> nx.Graph:
    """Read a GraphML file.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import networkx, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "links.graphml")
    ...     networkx.write_graphml(networkx.path_graph(3), file)
    ...     list(read_graphml(file).edges())
    [(0, 1), (1, 2)]
    """
    import networkx as nx

    text = _text(path)
    try:
        graph = nx.parse_graphml(text)
    except ParseError as error:
        raise _wrong(path, error.position[0], f"not valid GraphML, {error}") from None
    except Exception as error:
        raise FileError(f"{path} must be a GraphML network, got: {_line(error)}") from None
    return _checked(path, _with_integers(graph))


def read_gml(path: AnyPath) -> nx.Graph:
    """Read a GML file. Agents are named by their labels if all have distinct ones, and else by their ids.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import networkx, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "links.gml")
    ...     networkx.write_gml(networkx.path_graph(3), file)
    ...     list(read_gml(file).edges())
    [(0, 1), (1, 2)]
    """
    import networkx as nx

    text = _text(path)
    try:
        graph = nx.parse_gml(text, label=None)
    except Exception as error:
        place = re.search(r" at \((\d+), \d+\)", str(error))
        if place:
            raise _wrong(path, int(place[1]), f"not valid GML, {_line(error)}") from None
        raise FileError(f"{path} must be a GML network, got: {_line(error)}") from None
    labels = dict(graph.nodes(data="label"))
    if None not in labels.values() and len(set(labels.values())) == len(labels):
        graph = nx.relabel_nodes(graph, labels)
    return _checked(path, _with_integers(graph))


def read_contact_trace(path: AnyPath) -> ContactTrace:
    r"""Read a contact trace: a round (from 1) and two agents on every line.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ContactTrace

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "contacts.txt")
    ...     _ = file.write_text("1 a b\n3 b c\n")
    ...     read_contact_trace(file).n_rounds
    3
    """
    rows = []
    for number, line in _rows(path):
        if len(line) != 3:
            raise _wrong(path, number, f"a contact is a round and two agents, got {len(line)} entries")
        if not _is_integer(line[0]) or int(line[0]) < 1:
            raise _wrong(path, number, f"a round must be an integer of at least 1, got {shown(line[0])}")
        _refuse_loop(path, number, line[1], line[2:])
        rows.append((int(line[0]), line[1], line[2]))
    name = _naming(name for _, i, j in rows for name in (i, j))
    return ContactTrace([(t, name(i), name(j)) for t, i, j in rows])


def _read_sparse(path: AnyPath) -> Any:
    from scipy.sparse import load_npz

    content = BytesIO(_bytes(path))
    try:
        matrix = load_npz(content)
    except Exception as error:
        raise FileError(f"{path} must be a sparse matrix saved by scipy, got: {_line(error)}") from None
    return _checked(path, matrix)


_BY_SUFFIX: dict[str, Callable[[AnyPath], Any]] = {
    ".adjlist": read_adjacency,
    ".edgelist": read_edge_list,
    ".gml": read_gml,
    ".graphml": read_graphml,
    ".npz": read_adjacency,
}


def _checked_path(path: AnyPath) -> Path:
    if not isinstance(path, str | PathLike) or not str(path).strip():
        raise FileError(f"path must name a network file, got {shown(path)}")
    return Path(path)


def _suffix(path: AnyPath) -> str:
    return _checked_path(path).suffix.lower()


def _bytes(path: AnyPath) -> bytes:
    """The content of a file, which must not be empty."""
    file = _checked_path(path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path} must be a network file, got no such file") from None
    except IsADirectoryError:
        raise FileError(f"{path} must be a network file, got a folder") from None
    except OSError as error:
        raise FileError(f"{path} must be readable, got: {error.strerror or error}") from None
    except ValueError as error:  # a null character in the path
        raise FileError(f"{path!r} must be a path, got: {error}") from None
    if not content.strip():
        raise FileError(f"{path} must describe a network, got an empty file")
    return content


def _text(path: AnyPath) -> str:
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise FileError(f"{path} must be a text file in UTF-8, got binary data")
    return text


def _rows(path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """The entries of every line that has any, with its number; there is at least one such line."""
    nothing = True
    for number, line in enumerate(_text(path).splitlines(), start=1):
        entries = line.partition("#")[0].replace(",", " ").split()
        if entries:
            nothing = False
            yield number, entries
    if nothing:
        raise FileError(f"{path} must describe a network, got nothing but comments")


def _refuse_loop(path: AnyPath, number: int, agent: str, others: list[str]) -> None:
    if agent in others:
        raise _wrong(path, number, f"network must have no self-loops, got a link from {shown(agent)} to itself")


def _graph(path: AnyPath, names: Iterable[str], pairs: list[tuple[str, str]]) -> nx.Graph:
    import networkx as nx

    names = list(names)
    name = _naming([*names, *(end for pair in pairs for end in pair)])
    graph = nx.Graph()
    graph.add_nodes_from(map(name, names))
    graph.add_edges_from((name(i), name(j)) for i, j in pairs)
    return _checked(path, graph)


def _naming(tokens: Iterable[str]) -> Callable[[str], Hashable]:
    """How a token becomes a name: as an integer if all of them are."""
    return int if all(map(_is_integer, tokens)) else str


def _with_integers(graph: nx.Graph) -> nx.Graph:
    """The graph, its nodes renamed to integers if they all are."""
    import networkx as nx

    if all(isinstance(node, str) and _is_integer(node) for node in graph):
        return nx.relabel_nodes(graph, {node: int(node) for node in graph})
    return graph


def _is_integer(token: str) -> bool:
    # "01" and "1" are different names, so only the usual spelling counts as an integer. Python may be set to read no
    # more than 640 digits; a longer name stays text.
    return re.fullmatch(r"0|-?[1-9][0-9]{0,639}", token) is not None


def _is_one(token: str) -> bool:
    try:
        return float(token) == 1.0
    except ValueError:
        return False


def _checked(path: AnyPath, network: Any) -> Any:
    try:
        as_links(network)
    except InputError as error:
        raise FileError(f"{path}: {error}") from None
    return network


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _wrong(path: AnyPath, number: int, what: str) -> FileError:
    return FileError(f"{path}, line {number}: {what}")
