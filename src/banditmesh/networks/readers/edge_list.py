"""Edge lists: two agents on every line, perhaps under a header.

A header is the first line, and only if its names come on no later line: then it is one if both are usual column names,
or if they are no integers while all others are. Nothing else is ever taken for one.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...checks import shown
from ...errors import InputError
from ..csr import Links
from .files import AnyPath, NetworkFile
from .names import is_integer, naming, refuse_loop

if TYPE_CHECKING:
    import networkx as nx

#: The agents' names in the order in which they appear, and the two agents of every line by number.
Ends: TypeAlias = tuple[tuple[Hashable, ...], npt.NDArray[np.int64]]

#: What the columns of an edge list are usually called: `from`, `Source`, `node_1`, `ToNodeId`.
_COLUMN: Final = re.compile(
    "(from|to|source|target|src|dst|sender|receiver|agent|node|user|id)_?(node|agent|user)?_?(id)?_?[12ab]?",
    re.IGNORECASE,
)


def read_edge_list(
    path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", header: bool | None = None
) -> nx.Graph:
    r"""Read an edge list: two agents on every line, separated by blanks, tabs or a comma.

    Agents are numbered in the order in which they appear, and may have any names. An agent without links cannot be
    listed; use an adjacency list for it. A link may be listed more than once and in either direction; `#` starts a
    comment.

    Parameters
    ----------
    path : str or path
        The file, perhaps packed by gzip.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.
    weights : str
        A third column is a weight. "refuse" refuses those other than 1, "ignore" ignores whatever follows the agents.
    header : bool, optional
        Whether the first line names the columns. If not given, it does if its names come on no other line, and are
        usual column names such as `from,to`, or no integers while all others are.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.csv")
    ...     _ = file.write_text("from,to\na,b\nb,c\n")
    ...     list(read_edge_list(file).edges())
    [('a', 'b'), ('b', 'c')]
    """
    return parse(NetworkFile(path, max_bytes, weights), header)


def parse(file: NetworkFile, header: bool | None = None) -> nx.Graph:
    """The network that an edge list describes."""
    import networkx as nx

    names, ends = _ends(file, header)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i, j in ends.tolist())
    return graph


def parse_links(file: NetworkFile, header: bool | None = None) -> tuple[tuple[Hashable, ...], Links]:
    """The same as names and links, in a third of the time."""
    names, ends = _ends(file, header)
    return names, Links.from_pairs(len(names), ends)


def _ends(file: NetworkFile, header: bool | None) -> Ends:
    if header is not None and not isinstance(header, bool):
        raise InputError(f"header must be True, False or None, got {shown(header)}")
    number_of: defaultdict[str, int] = defaultdict()
    number_of.default_factory = number_of.__len__
    rows = file.rows()
    line, first = next(rows)
    if header is not True:
        for name in first[:2]:
            number_of[name]  # in the order in which they appear
    ends = array("q")
    for number, row in rows:
        if len(row) != 2 or row[0] == row[1]:
            _check(file, number, row)
        ends.append(number_of[row[0]])
        ends.append(number_of[row[1]])
    names, pairs = list(number_of), np.frombuffer(ends, dtype=np.int64).reshape(-1, 2)
    if header is None and _is_header(first, names, pairs):
        header, names, pairs = True, names[2:], pairs - 2
    if not header:
        _check(file, line, first)
        pairs = np.concatenate([[[0, 1]], pairs])
    elif not len(pairs):
        raise file.wrong("must describe a network, got nothing but a header; if it is a link, say header=False")
    return tuple(map(naming(names), names)), pairs


def _is_header(first: list[str], names: list[str], pairs: npt.NDArray[np.int64]) -> bool:
    """Whether the first line, whose agents have the numbers 0 and 1, names the columns."""
    if len(set(first[:2])) < 2 or (len(pairs) and pairs.min() < 2):
        return False
    if all(map(_COLUMN.fullmatch, first[:2])):
        return True
    return len(pairs) > 0 and not any(map(is_integer, first[:2])) and all(map(is_integer, names[2:]))


def _check(file: NetworkFile, number: int, row: list[str]) -> None:
    """Refuse a line that is no link."""
    if len(row) < 2 or (len(row) > 3 and not file.ignores_weights):
        raise file.wrong_line(number, f"an edge list has two agents on a line, got {len(row)} entries")
    if len(row) == 3 and not file.ignores_weights and not _is_one(row[2]):
        raise file.wrong_line(
            number,
            f"network must be unweighted, got the weight {shown(row[2])}; "
            'to ignore weights, say weights="ignore" (--weights ignore on the command line)',
        )
    refuse_loop(file, number, row[0], row[1:2])


def _is_one(token: str) -> bool:
    try:
        return float(token) == 1.0
    except ValueError:
        return False
