"""GML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...checks import shown
from ...files.contents import AnyPath, one_line
from .files import NetworkFile
from .names import with_integers, with_positions

if TYPE_CHECKING:
    import networkx as nx


def read_gml(
    path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", self_loops: str = "refuse"
) -> nx.Graph:
    """Read a GML file. Agents are named by their labels if all have distinct ones, and otherwise by their ids.

    Positions of agents, if all have one, become the node attribute "pos".

    Parameters
    ----------
    path : str or path
        The file, perhaps gzipped.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.
    weights : str
        "refuse" weights other than 1, or "ignore" them.
    self_loops : str
        "refuse" links from an agent to itself, or "drop" them.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import networkx, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.gml")
    ...     networkx.write_gml(networkx.path_graph(3), file)
    ...     list(read_gml(file).edges())
    [(0, 1), (1, 2)]
    """
    return parse(NetworkFile(path, max_bytes, weights, self_loops))


def parse(file: NetworkFile) -> nx.Graph:
    """The network that a GML file describes."""
    import networkx as nx

    text = file.text()
    try:
        graph = nx.parse_gml(text, label=None)
    except Exception as error:
        # networkx promises no types of exception: whatever it raises means a malformed file, and may name the line.
        raise file.wrong(f"must be a GML network, got: {one_line(error)}") from None
    labels = dict(graph.nodes(data="label"))
    for label in labels.values():
        if not (label is None or _is_name(label)):
            raise file.wrong(f"must have labels that are text or numbers, got {shown(label)}")
    if None not in labels.values() and len(set(labels.values())) == len(labels):
        graph = nx.relabel_nodes(graph, labels)
    return file.checked(with_positions(with_integers(graph)))


def _is_name(label: object) -> bool:
    """Whether a label, which may be a table or any character code, can be read, compared and written."""
    if isinstance(label, str):
        return not any("\ud800" <= character <= "\udfff" for character in label)
    return isinstance(label, int | float)
