"""Edge lists: two agents on every line, perhaps under a header.

Only the first line can be a header, and only if its names appear on no later line: then it is one if both are usual
column names, or if they are not integers while all others are. A DataFrame has a separate header.
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
from ...files.contents import AnyTable
from ..csr import Links
from .files import COLUMN, IGNORE, NetworkFile
from .names import is_integer, naming

if TYPE_CHECKING:
    import networkx as nx

#: The agents' names in the order in which they appear, and the two agents of every line by number.
Ends: TypeAlias = tuple[tuple[Hashable, ...], npt.NDArray[np.int32]]

#: How many links are passed to networkx at a time.
_STEP: Final = 2**16
#: How a third column that is not part of a name begins: with a number, or with what networkx writes about a link.
_THIRD: Final = re.compile(r"[-+.]?\d|\{|(nan|inf|none|true|false)$", re.IGNORECASE)
#: Column names of the two agents, where they say what they are.
_ENDS: Final = frozenset({("source", "target"), ("from", "to"), ("src", "dst"), ("sender", "receiver")})


def read_edge_list(
    path: AnyTable,
    *,
    max_bytes: int | None = None,
    weights: str = "refuse",
    self_loops: str = "refuse",
    header: bool | None = None,
) -> nx.Graph:
    r"""Read an edge list: two agents on every line, separated by blanks, tabs, commas, semicolons, `|` or `::`.

    The first line decides the separator. Agents are numbered in the order in which they appear, and may have any names;
    one that contains a separator goes in double quotes. An agent without links cannot be listed; use an adjacency list
    for it. A link may be listed more than once and in either direction, with a warning; `#` starts a comment.

    Parameters
    ----------
    path : str, path or DataFrame
        The file, perhaps gzipped; or a DataFrame whose first two columns are the agents.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.
    weights : str
        A third column is a weight. "refuse" refuses those other than 1, "ignore" ignores whatever follows the agents.
    self_loops : str
        "refuse" links from an agent to itself, or "drop" them.
    header : bool, optional
        Whether the first line names the columns. If not given, it does if its names appear on no other line, and are
        usual column names such as `from,to`, or are not integers while all others are.

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
    return parse(NetworkFile(path, max_bytes, weights, self_loops), header)


def parse(file: NetworkFile, header: bool | None = None) -> nx.Graph:
    """The network that an edge list describes."""
    import networkx as nx

    names, ends = _ends(file, header)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    for start in range(0, len(ends), _STEP):
        graph.add_edges_from((names[i], names[j]) for i, j in ends[start : start + _STEP].tolist())
    _note(file, len(names), ends, graph.number_of_edges())
    return graph


def parse_links(file: NetworkFile, header: bool | None = None) -> tuple[tuple[Hashable, ...], Links]:
    """The same as names and links, in a third of the time and of the memory."""
    names, ends = _ends(file, header)
    links = Links.from_pairs(len(names), ends)
    _note(file, len(names), ends, links.n_links)
    return names, links


def _note(file: NetworkFile, n_agents: int, ends: npt.NDArray[np.int32], n_links: int) -> None:
    n_directed = n_links
    if len(ends) > n_links:
        n_directed = len(np.unique(ends[:, 0] * np.int64(n_agents) + ends[:, 1]))
    file.note(n_directed - n_links, len(ends) - n_directed)


def _ends(file: NetworkFile, header: bool | None) -> Ends:
    if header is not None and not isinstance(header, bool):
        raise InputError(f"must be True, False or None, got {shown(header)}", key="header")
    if file.frame is not None:
        header = False
    number_of: defaultdict[str, int] = defaultdict()
    number_of.default_factory = number_of.__len__
    rows = file.rows()
    if file.frame is not None:
        _check_order(file, 1, [str(one) for one in file.frame_with_index().columns])
    line, first = next(rows)
    _check_order(file, line, first)
    ends, least = array("i"), 2
    if header is not True:
        for name in first[:2]:
            number_of[name]  # in the order in which they appear
    for number, row in rows:
        if (len(row) == 2 and row[0] != row[1] and row[0] and row[1]) or _is_link(file, number, row):
            ends.append(number_of[row[0]])
            ends.append(number_of[row[1]])
        else:
            least = min(least, number_of[row[0]])  # a dropped self-loop names an agent too
    names, pairs = list(number_of), np.frombuffer(ends, dtype=np.int32).reshape(-1, 2)
    del number_of  # before other large things are made
    if header is None and least == 2 and _is_header(first, names, pairs):
        header, names, pairs = True, names[2:], pairs - np.int32(2)
    if header and not names:
        raise file.wrong("must describe a network, got nothing but a header; if it is a link, say header=False")
    if not header and _is_link(file, line, first):
        pairs = np.concatenate([np.array([[0, 1]], dtype=np.int32), pairs])
    return tuple(map(naming(names, file), names)), pairs


def _check_order(file: NetworkFile, number: int, header: list[str]) -> None:
    """Refuse column names if the first two are not those of the agents."""
    found = [name.lower() for name in header]
    for pair in _ENDS:
        if all(found.count(name) == 1 for name in pair) and {*pair} != {*found[:2]}:
            raise file.wrong_line(
                number, f"the first two columns must be those of the agents, got {shown(header)}; put them first"
            )


def _is_header(first: list[str], names: list[str], pairs: npt.NDArray[np.int32]) -> bool:
    """Whether the first line, whose agents have the numbers 0 and 1, names the columns."""
    if len(set(first[:2])) < 2 or (len(pairs) and pairs.min() < 2):
        return False
    if all(map(COLUMN.fullmatch, first[:2])):
        return True
    return len(pairs) > 0 and not any(map(is_integer, first[:2])) and all(map(is_integer, names[2:]))


def _is_link(file: NetworkFile, number: int, row: list[str]) -> bool:
    """Whether a line is a link, and not a self-loop to be dropped; anything else is refused."""
    if len(row) < 2 or (len(row) > 3 and not file.ignores_weights):
        between = "" if file.between is None else f", separated by {file.between!r}"
        raise file.wrong_line(
            number,
            f"an edge list has two agents on a line, got {len(row)} entries{between}: {shown(row)}"
            + _names_with_blanks(file, row),
        )
    if not (row[0] and row[1]):
        raise file.wrong_line(number, f"an agent must have a name, got an empty entry in {shown(row)}")
    if len(row) > 2 and file.between is None and file.frame is None and not _THIRD.match(row[2]):
        raise file.wrong_line(
            number, f"an edge list has two agents on a line, got {shown(row)}{_names_with_blanks(file, row)}"
        )
    if len(row) == 3 and not file.ignores_weights and not _is_one(row[2]):
        if not _THIRD.match(row[2]):
            quotes = "" if file.frame is not None else f"put names that hold {file.between!r} in double quotes; "
            raise file.wrong_line(
                number,
                f"an edge list has two agents on a line, got {shown(row)}; {quotes}"
                f"to ignore what follows the agents, {IGNORE}",
            )
        raise file.wrong_line(
            number, f"network must be unweighted, got the weight {shown(row[2])}; to ignore weights, {IGNORE}"
        )
    return not file.is_loop(number, row[0], row[1:2])


def _names_with_blanks(file: NetworkFile, row: list[str]) -> str:
    """A remedy if blanks within names seem to have been taken for separators."""
    if file.between is not None or len(row) < 3 or _THIRD.match(row[2]):
        return ""
    return "; if names hold blanks, separate entries by commas or tabs, or put the names in double quotes"


def _is_one(token: str) -> bool:
    try:
        return float(token) == 1.0
    except ValueError:
        return False
