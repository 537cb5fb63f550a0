"""Edge lists: two agents on every line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...checks import shown
from .files import AnyPath, NetworkFile
from .names import graph_of, refuse_loop

if TYPE_CHECKING:
    import networkx as nx


def read_edge_list(path: AnyPath, *, max_bytes: int | None = None) -> nx.Graph:
    r"""Read an edge list: two agents on every line, separated by blanks or a comma.

    A third column is a weight and is refused unless it is 1. Agents are numbered in the order in which they
    appear. An agent without links cannot be listed; use an adjacency list for it. A link may be listed more than once
    and in either direction; `#` starts a comment.

    Parameters
    ----------
    path : str or path
        The file, perhaps packed by gzip.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.txt")
    ...     _ = file.write_text("# two links\na b\nb c\n")
    ...     list(read_edge_list(file).edges())
    [('a', 'b'), ('b', 'c')]
    """
    return parse(NetworkFile(path, max_bytes))


def parse(file: NetworkFile) -> nx.Graph:
    """The network that an edge list describes."""
    return graph_of(file, (), _links(file))


def _links(file: NetworkFile) -> Iterator[tuple[str, str]]:
    for number, row in file.rows():
        if len(row) not in (2, 3):
            raise file.wrong_line(number, f"an edge list has two agents on a line, got {len(row)} entries")
        if len(row) == 3 and not _is_one(row[2]):
            raise file.wrong_line(number, f"network must be unweighted, got the weight {shown(row[2])}")
        refuse_loop(file, number, row[0], row[1:2])
        yield row[0], row[1]


def _is_one(token: str) -> bool:
    try:
        return float(token) == 1.0
    except ValueError:
        return False
