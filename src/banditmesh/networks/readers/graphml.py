"""GraphML.

Entities and default attributes, which a document may declare for itself, can make a small file unfold into gigabytes.
GraphML needs neither, so a file that declares any is refused. (The text is decoded here, not by the XML parser, so that
a declaration cannot hide in another encoding.)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from ...files.contents import AnyPath, one_line
from .files import NetworkFile
from .names import with_integers, with_positions

if TYPE_CHECKING:
    import networkx as nx


def read_graphml(
    path: AnyPath, *, max_bytes: int | None = None, weights: str = "refuse", self_loops: str = "refuse"
) -> nx.Graph:
    """Read a GraphML file. Positions of agents, if all have one, become the node attribute "pos".

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
    ...     file = pathlib.Path(folder, "links.graphml")
    ...     networkx.write_graphml(networkx.path_graph(3), file)
    ...     list(read_graphml(file).edges())
    [(0, 1), (1, 2)]
    """
    return parse(NetworkFile(path, max_bytes, weights, self_loops))


def parse(file: NetworkFile) -> nx.Graph:
    """The network that a GraphML file describes."""
    import networkx as nx

    text = file.text()
    declared = re.search("<!(ENTITY|ATTLIST)", text)
    if declared:
        number = text.count("\n", 0, declared.start()) + 1
        raise file.wrong_line(number, f"GraphML must not declare entities or attributes, got {declared[0]}; remove it")
    if re.search(r"<(?:\w+:)?gexf\b", text[:4096]):
        raise file.wrong("must be a GraphML network, got GEXF; convert it with networkx.read_gexf and write_graphml")
    graphs = list(re.finditer(r"<(?:\w+:)?graph[\s>/]", text))
    if len(graphs) > 1:
        number = text.count("\n", 0, graphs[1].start()) + 1
        raise file.wrong_line(number, "a GraphML file must hold one graph, got another in it or after it; keep one")
    try:
        graph = nx.parse_graphml(text)
    except ParseError as error:
        raise file.wrong_line(error.position[0], f"not valid GraphML, {error}") from None
    except Exception as error:
        # networkx promises no types of exception: whatever it raises means a malformed file.
        raise file.wrong(f"must be a GraphML network, got: {one_line(error)}") from None
    return file.checked(with_positions(with_integers(graph)))
