"""The format of a network file, by how its content begins; None is a list of links, or what its suffix says."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Final

#: Formats that are read.
NPZ, GRAPHML, GML, MATRIX_MARKET, JSON = "a numpy archive", "GraphML", "GML", "Matrix Market", "JSON"
#: What to do with a file in another one.
REMEDY: Final = "convert it to GraphML, for instance with networkx"
_KNOWN: Final = (
    (rb"PK\x03\x04.{22}(..)..?.{0,60}\.npy", NPZ),
    (rb"<(?!(!doctype )?html)", GRAPHML),
    (rb"%%MatrixMarket", MATRIX_MARKET),
    (rb"(?:\s|(?:#|Creator|Version)[^\n]*\n)*graph\s*\[", GML),
    (rb"\{\s*[\"}]|\[\s*([\[{\"\]]|-?\d+\s*[,\]])", JSON),
    # Those below are refused by name.
    (rb"(%[^\n]*\n|\s)*\*(vertices|network)", "Pajek"),
    (rb"(strict\s+)?(di)?graph\s+?(\w+|\"[^\"]*\")?\s*\{", "DOT"),
    (rb">>(graph6|sparse6|digraph6)<<", "graph6"),
    (rb"LEDA\.GRAPH", "LEDA"),
    (rb"nodedef>", "GDF"),
    (rb"dl\s+n\s*=", "UCINET's DL"),
)


def recognised(content: bytes) -> str | None:
    r"""The name of the format that a content seems to be in, by its beginning.

    Examples
    --------
    >>> recognised(b'{"nodes": [], "links": []}'), recognised(b"*Vertices 2\n1 2\n"), recognised(b"0 1\n1 2\n")
    ('JSON', 'Pajek', None)
    """
    start = content[:4096].removeprefix(BOM_UTF8).lstrip()
    return next((name for pattern, name in _KNOWN if re.match(pattern, start, re.DOTALL | re.IGNORECASE)), None)
