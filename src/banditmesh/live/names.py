"""Names: of meshes, nodes, arms and lives.

Rules kept here: a name is 1 to 128 bytes of UTF-8, all of it printable. An epoch is 64 random bits; as text it is 16
hexadecimal digits. A member's address in certificates is `banditmesh://mesh/node`, both names percent-encoded.
"""

from __future__ import annotations

import random
import re
from typing import Final
from urllib.parse import quote, unquote

from .. import checks
from ..errors import InputError

MOST_BYTES: Final = 128
MOST_EPOCH: Final = 2**64 - 1
_EPOCH: Final = re.compile(r"[0-9a-f]{16}")
_URI: Final = re.compile(r"banditmesh://([^/?#]+)/([^/?#]+)")


def is_name(value: object) -> bool:
    """Whether a value can be a name."""
    # No character is shorter than a byte, so a long text is not encoded only to be refused.
    return (
        isinstance(value, str)
        and 0 < len(value) <= MOST_BYTES
        and value.isprintable()
        and len(value.encode()) <= MOST_BYTES
    )


def check_name(what: str, value: object) -> str:
    """`value` if it can be a name.

    Examples
    --------
    >>> check_name("node", "berlin 3")
    'berlin 3'
    """
    if isinstance(value, str) and is_name(value):
        return value
    raise InputError(f"{what} must be 1 to {MOST_BYTES} bytes of printable text, got {checks.shown(value)}")


def new_epoch(rng: random.Random) -> int:
    """An epoch that no other life has."""
    return rng.getrandbits(64)


def is_epoch(value: object) -> bool:
    """Whether a value can be an epoch."""
    return type(value) is int and 0 <= value <= MOST_EPOCH


def epoch_text(epoch: int) -> str:
    """An epoch as text.

    Examples
    --------
    >>> epoch_text(255), parse_epoch("00000000000000ff")
    ('00000000000000ff', 255)
    """
    return f"{epoch:016x}"


def parse_epoch(text: object) -> int:
    """The epoch that a text stands for."""
    if isinstance(text, str) and _EPOCH.fullmatch(text):
        return int(text, 16)
    raise InputError(f"an epoch must be 16 hexadecimal digits in lower case, got {checks.shown(text)}")


def uri(mesh: str, node: str) -> str:
    """A member's address in certificates.

    Examples
    --------
    >>> uri("shop", "berlin 3"), parse_uri("banditmesh://shop/berlin%203")
    ('banditmesh://shop/berlin%203', ('shop', 'berlin 3'))
    """
    return f"banditmesh://{quote(mesh, safe='')}/{quote(node, safe='')}"


def parse_uri(text: str) -> tuple[str, str]:
    """The mesh and the node that an address names; only the one way to write it is accepted."""
    match = _URI.fullmatch(text)
    if match:
        mesh, node = (unquote(part, errors="replace") for part in match.groups())
        if is_name(mesh) and is_name(node) and uri(mesh, node) == text:
            return mesh, node
    raise InputError(f"a member's address must be like banditmesh://mesh/node, got {checks.shown(text)}")
