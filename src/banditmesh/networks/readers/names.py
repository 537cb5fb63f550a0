"""How the names in a file become agents: as integers if all of them are, and otherwise as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...errors import BanditmeshWarning, warn
from ...files.contents import DataFile
from .files import NetworkFile

if TYPE_CHECKING:
    import networkx as nx


def is_integer(token: str) -> bool:
    """Whether a token is an integer in its usual spelling: "01" and "1" are different names."""
    # Python may be set to read no more than 640 digits; a longer name stays text.
    return re.fullmatch(r"0|-?[1-9][0-9]{0,639}", token) is not None


def naming(tokens: Sequence[str], file: DataFile) -> Callable[[str], Hashable]:
    """How a token becomes a name; a warning reports names that seem to be one number, written in two ways."""
    if all(map(is_integer, tokens)):
        return int
    found: dict[int, str] = {}
    for token in tokens:
        number = as_number(token)
        if number is not None and found.setdefault(number, token) != token:
            warn(
                f"{file.path} has {found[number]!r} and {token!r}, which are two names; write ids in one way if they "
                "are the same",
                BanditmeshWarning,
            )
            break
    return str


def as_number(name: Hashable) -> int | None:
    """The whole number that a name seems to be, however it is written: 1, 01 and 1.0 are alike.

    Examples
    --------
    >>> as_number("01"), as_number("1.0"), as_number("1.5"), as_number("ann")
    (1, 1, None, None)
    """
    found = re.fullmatch(r"\s*([-+]?[0-9]{1,30})(\.0*)?\s*", str(name))
    return int(found[1]) if found else None


def with_integers(graph: nx.Graph) -> nx.Graph:
    """The graph, its nodes renamed to integers if they all are."""
    import networkx as nx

    if all(isinstance(node, str) and is_integer(node) for node in graph):
        return nx.relabel_nodes(graph, {node: int(node) for node in graph})
    return graph


def with_positions(graph: nx.Graph) -> nx.Graph:
    """The graph, with the node attribute "pos" if every node has a position: x and y, or longitude and latitude.

    Examples
    --------
    >>> import networkx
    >>> graph = networkx.Graph()
    >>> graph.add_node("a", Latitude=48.2, Longitude=16.4)
    >>> with_positions(graph).nodes["a"]["pos"]
    (16.4, 48.2)
    """
    places = [_place(attributes) for _, attributes in graph.nodes(data=True)]
    if None not in places:
        for (_, attributes), place in zip(graph.nodes(data=True), places, strict=True):
            attributes["pos"] = place
    return graph


def _place(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    """A node's position, from its attributes or, in GML, from its table `graphics`."""
    inner = attributes.get("graphics")
    found = {
        str(key).lower(): value for key, value in {**(inner if isinstance(inner, dict) else {}), **attributes}.items()
    }
    for across, up in (("x", "y"), ("lon", "lat"), ("longitude", "latitude")):
        place = (found.get(across), found.get(up))
        if all(isinstance(value, int | float) and math.isfinite(value) for value in place):
            return float(place[0]), float(place[1])  # type: ignore[arg-type]
    return None


def graph_of(file: NetworkFile, tokens: Iterable[str], pairs: Iterable[tuple[str, str]]) -> nx.Graph:
    """The network of the agents that a file lists, alone or linked."""
    import networkx as nx

    alone, linked = dict.fromkeys(tokens), dict.fromkeys(pairs)
    name = naming([*chain(alone, chain.from_iterable(linked))], file)
    graph = nx.Graph()
    graph.add_nodes_from(map(name, alone))
    graph.add_edges_from((name(i), name(j)) for i, j in linked)
    return file.checked(graph)
