"""JSON as networkx and D3 write it: `{"nodes": [{"id": ...}, ...], "links": [{"source": ..., "target": ...}]}`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...checks import shown
from ...files.contents import one_line
from .files import NetworkFile
from .names import with_integers, with_positions

if TYPE_CHECKING:
    import networkx as nx

_WANTED = (
    'must be a network in JSON, as in {"nodes": [{"id": "a"}, ...], "links": [{"source": "a", "target": "b"}, ...]}'
)


def parse(file: NetworkFile) -> nx.Graph:
    """The network that a file describes in node-link form."""
    import networkx as nx

    try:
        told = json.loads(file.text())
    except (ValueError, RecursionError) as error:
        raise file.wrong(f"must be valid JSON, got: {one_line(error)}") from None
    links = told.get("links", told.get("edges")) if isinstance(told, dict) else None
    if not isinstance(links, list) or not isinstance(told.get("nodes"), list):
        got = f"the keys {shown(list(told))}" if isinstance(told, dict) else f"a {type(told).__name__}"
        raise file.wrong(f"{_WANTED}, got {got}")
    kinds = {(False, False): nx.Graph, (True, False): nx.DiGraph, (False, True): nx.MultiGraph}
    graph = kinds.get((bool(told.get("directed")), bool(told.get("multigraph"))), nx.MultiDiGraph)()
    for node in told["nodes"]:
        [name] = _names(file, node, "id")
        graph.add_node(name, **{str(key): value for key, value in node.items() if key != "id"})
    for link in links:
        ends = _names(file, link, "source", "target")
        missing = [name for name in ends if name not in graph]
        if missing:
            raise file.wrong(
                f"must link agents that are in nodes by their id, got {shown(missing[0])} in {shown(link)}"
            )
        graph.add_edge(*ends, **({"weight": link["weight"]} if "weight" in link else {}))
    return file.checked(with_positions(with_integers(graph)))


def _names(file: NetworkFile, table: Any, *keys: str) -> list[Any]:
    """The names that a node or a link gives under these keys."""
    names = [table.get(key) for key in keys] if isinstance(table, dict) else []
    if not names or not all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
        raise file.wrong(f"{_WANTED}, got {shown(table)}")
    return names
