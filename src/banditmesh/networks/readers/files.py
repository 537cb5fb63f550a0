"""A network file: its lines, its weights and self-loops, and how what was read is checked and reported."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from typing import Any, Final

import numpy as np

from ...checks import callback, choice, shown
from ...errors import BanditmeshWarning, FileError, InputError, warn
from ...files.contents import STEP, AnyTable, DataFile, ReadingCallback, name_cell, one_line
from ..csr import as_links
from ..matrices import entries
from .formats import recognised

#: Usual column names of an edge list: `from`, `Source`, `node_1`, `ToNodeId`.
COLUMN: Final = re.compile(
    "(from|to|source|target|src|dst|sender|receiver|agent|node|user|id)_?(node|agent|user)?_?(id)?_?[12ab]?",
    re.IGNORECASE,
)
#: How to read a network without its weights.
IGNORE: Final = 'say weights="ignore" (--weights ignore on the command line)'
#: What SNAP and KONECT write above the links of a directed network.
_DIRECTED: Final = re.compile(rb"(?:[#%][^\n]*\n|\s)*?(#[^\n]*\bdirected graph|%\s*asym\b)", re.IGNORECASE)


class NetworkFile(DataFile):
    """A file that describes a network.

    Parameters
    ----------
    path, max_bytes
        As in `DataFile`.
    weights : str
        "refuse" weights other than 1, or "ignore" all of them.
    self_loops : str
        "refuse" links from an agent to itself, or "drop" them.
    progress : callable, optional
        Called while lines are read, with the bytes read and the total.
    """

    kind = "network"

    def __init__(
        self,
        path: AnyTable,
        max_bytes: int | None = None,
        weights: str = "refuse",
        self_loops: str = "refuse",
        progress: ReadingCallback | None = None,
    ) -> None:
        self.ignores_weights = choice("weights", weights, ("refuse", "ignore")) == "ignore"
        self._drops_loops = choice("self_loops", self_loops, ("refuse", "drop")) == "drop"
        callback("progress", progress)
        super().__init__(path, max_bytes)
        self.progress = progress
        self.n_loops = 0
        #: The separator, once `rows` has begun; None for blanks.
        self.between: str | None = None

    def rows(self, n_names: int = 2) -> Iterator[tuple[int, list[str]]]:
        """The entries of every line that has any, with its number; there is at least one such line.

        The first line after any header decides the separator. An entry may be in double quotes. `#` starts a comment,
        and `%`, alone or twice, one at the start of a line. In a DataFrame, the first `n_names` cells of a row are
        integers or texts.
        """
        if self.frame is not None:
            yield from self._frame_rows(n_names)
            return
        self.text()  # refuses anything but text
        if (other := recognised(self.content)) is not None:
            raise self.wrong(f"must be a list of agents, got {other}; read it with networks.read, which says more")
        begun = decided = False
        mixed = any(one in self.content for one in (b",", b";", b"|"))
        stream = TextIOWrapper(BytesIO(self.content), encoding="utf-8-sig")
        for number, line in enumerate(stream, start=1):
            if self.progress is not None and number % STEP == 0:
                self.progress(stream.buffer.tell(), len(self.content))
            if "#" in line:
                line = _uncommented(line)
            if not line or line.isspace() or (line[0] == "%" and re.match(r"%(%|\s|$)", line)):
                continue
            if not decided:
                self.between = self.separator(number, line)
            row = line.split() if self.between is None and not (mixed or '"' in line) else self._entries(number, line)
            # Column names say nothing about how the lines below are separated.
            begun, decided = True, decided or begun or not all(map(COLUMN.fullmatch, row[:2]))
            yield number, row
        if not begun:
            raise self.wrong(f"must describe a {self.kind}, got nothing but comments")
        if self.progress is not None:
            self.progress(len(self.content), len(self.content))

    def _entries(self, number: int, line: str) -> list[str]:
        """The entries of a line, without the empty ones that separators at its end make."""
        between = self.between
        if between is None:
            line = line.replace("\t", " ").strip()
            between = self.separator(number, line)
            if between is not None and re.search(r"[^\s,;|] +[^\s,;|]", line):
                raise self.wrong_line(
                    number,
                    f"entries must be separated by blanks, as above, got {between!r}; separate all lines alike, "
                    "and put names that hold it in quotes",
                )
        if between == "::":
            line, between = line.replace("::", "\t"), "\t"
        if '"' not in line:
            row = line.split(between)
        else:
            try:
                [row] = csv.reader([line.strip()], delimiter=between or " ", skipinitialspace=True, strict=True)
            except (csv.Error, ValueError) as error:
                raise self.wrong_line(number, f"not valid CSV, {one_line(error)}") from None
        row = [entry.strip() for entry in row]
        while len(row) > 1 and not row[-1]:
            row.pop()
        return row

    def _frame_rows(self, n_names: int) -> Iterator[tuple[int, list[str]]]:
        frame = self.frame_with_index()
        # Two links in columns 0 and 1 are labelled as a matrix would be.
        labelled = list(frame.columns) == list(frame.index) and list(frame.index) != [0, 1]
        if labelled and frame.isin([0, 1]).all(axis=None):
            raise self.wrong(
                "must have two agents in a row, got an adjacency matrix; convert it with networkx.from_pandas_adjacency"
            )
        for number, row in self.frame_rows():
            names = [name_cell(self, number, "an agent", cell) for cell in row[:n_names]]
            yield number, names + [str(cell) for cell in row[n_names:]]

    def is_loop(self, number: int, agent: str, others: list[str]) -> bool:
        """Whether a line links an agent to itself; refused unless self-loops are dropped."""
        if agent not in others:
            return False
        if not self._drops_loops:
            raise self.wrong_line(number, _no_loops(agent))
        self.n_loops += others.count(agent)
        return True

    def checked(self, network: Any) -> Any:
        """The network, without anything ignored or dropped, if it is valid."""
        try:
            if self.ignores_weights:
                network = _without_weights(network)
            elif (weight := _weight(network)) is not None:
                raise FileError(
                    f"{self.path}: network must be unweighted, got the weight {weight:g}; to ignore weights, {IGNORE}"
                )
            network, loops = _without_loops(network)
            if loops and not self._drops_loops:
                raise FileError(f"{self.path}: {_no_loops(loops[0])}")
            self.n_loops += len(loops)
            as_links(network)
        except FileError:
            raise
        except InputError as error:
            raise FileError(f"{self.path}: {error}") from None
        self.note()
        return network

    def note(self, n_both: int = 0, n_repeated: int = 0) -> None:
        """Warn of what was not read as it is in the file."""
        notes = [
            f"{words}: {number:,}"
            for number, words in (
                (n_both, "links in both directions, which count once"),
                (n_repeated, "lines that repeat a link"),
                (self.n_loops, "self-loops that were dropped"),
            )
            if number
        ]
        if _DIRECTED.match(self.content[:65536]):
            notes.insert(0, "its comments call it directed")
        if notes:
            warn(f"{self.path} was read as an undirected network: {'; '.join(notes)}", BanditmeshWarning)


def _uncommented(line: str) -> str:
    """A line up to the first `#` outside quotes."""
    if '"' not in line:
        return line.partition("#")[0]
    found = re.match(r'("[^"]*"|[^#"]|"(?=[^"]*$))*', line)
    return found[0] if found else line


def _no_loops(agent: object) -> str:
    return (
        f"network must have no self-loops, got a link from {shown(agent)} to itself; to leave them out, say "
        'self_loops="drop" (--self-loops drop on the command line)'
    )


def _without_loops(network: Any) -> tuple[Any, list[Any]]:
    """A network without links from an agent to itself, and the agents that had one."""
    if hasattr(network, "edges"):
        loops = [u for u, v in network.edges() if u == v]
        network.remove_edges_from([(u, u) for u in loops])
        return network, loops
    n, rows, columns, values = entries(network)
    loop = (rows == columns) & (values != 0)
    if not loop.any():
        return network, []
    from scipy.sparse import coo_array

    kept = ~loop
    matrix = coo_array((values[kept], (rows[kept], columns[kept])), shape=(n, n)).tocsr()
    return matrix, rows[loop].tolist()


def _weight(network: Any) -> float | None:
    """A weight other than 1 in a matrix; non-numbers are refused elsewhere, and so are weights of graphs."""
    values = np.array([]) if hasattr(network, "edges") else entries(network)[3]
    weights = values[np.isfinite(values) & (values != 0) & (values != 1)]
    return float(weights[0]) if len(weights) else None


def _without_weights(network: Any) -> Any:
    """A graph with all its attributes but weights, or a matrix with its non-zero entries replaced by ones."""
    if hasattr(network, "edges"):
        for _, _, attributes in network.edges(data=True):
            attributes.pop("weight", None)
        return network
    from scipy.sparse import coo_array

    n, rows, columns, values = entries(network)
    codes = np.unique((rows * n + columns)[values != 0])
    return coo_array((np.ones(len(codes), dtype=np.int8), (codes // n, codes % n)), shape=(n, n)).tocsr()
