"""Where in a TOML file a key stands, so that an error can name the line."""

from __future__ import annotations

import re


def line_of(text: str, key: str) -> int | None:
    r"""The line, from 1, on which a dotted key is set; None if it cannot be told.

    A reading of headers and keys, not a parser: the file is known to be valid, and a key inside a multi-line value
    that looks like another one is too rare to matter for a message.

    Examples
    --------
    >>> line_of('horizon = 10\n[network]\nname = "er"\n', "network.name")
    3
    """
    table = ""
    header = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if found := re.match(r"\[\s*([^\[\]]+?)\s*\]", stripped):
            table = _plain(found[1]) + "."
            if table == f"{key}.":
                header = number
        elif found := re.match(r"""([A-Za-z0-9_."'\- ]+?)\s*=""", stripped):
            here = table + _plain(found[1])
            if key == here or key.startswith(f"{here}."):
                return number
    return header


def _plain(key: str) -> str:
    """A key without the quotes and blanks that TOML allows around its parts."""
    return re.sub(r"""["'\s]""", "", key)
