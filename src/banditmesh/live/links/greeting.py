"""Hello: what two nodes say before anything else, and whom a node does not talk to.

The dialler's hello comes first; the listener answers with its own only if it accepts, else with a bye and the reason.
So a node that is refused knows why, and both sides can count and name it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...errors import RefusedError
from . import codec
from .codec import Hello
from .conversation import Frames, LinkEnded

if TYPE_CHECKING:
    from ..transport.identity import Identity

HELLO_WITHIN: Final = 10.0


def check(mesh: str, node: str, hello: Hello, identity: Identity | None, meant: str | None = None) -> None:
    """Refuse a hello that does not fit: to this node, to the sender's certificate, or to whom it was meant for."""
    if hello.mesh != mesh:
        raise RefusedError("mesh", f"this is a node of mesh {mesh!r}, got a hello of mesh {hello.mesh!r}")
    if hello.version < 1:
        raise RefusedError("version", f"wire versions begin at 1, got {hello.version}")
    if hello.node == node:
        raise RefusedError("own_name", f"this is {node!r} itself, or another node has taken its name")
    if identity is not None and (identity.mesh, identity.node) != (hello.mesh, hello.node):
        raise RefusedError("certificate", f"its certificate is of {identity.node!r} in mesh {identity.mesh!r}")
    if meant is not None and hello.node != meant:
        raise RefusedError("other_name", f"expected {meant!r} at this address, got {hello.node!r}")


async def as_dialler(frames: Frames, mine: Hello, accept: Callable[[Hello], None]) -> Hello:
    """Say hello first; the other's hello."""
    await frames.send(codec.encode_hello(mine))
    return await _hello(frames, accept)


async def as_listener(frames: Frames, mine: Callable[[], Hello], accept: Callable[[Hello], None]) -> Hello:
    """Wait for the other's hello, and answer it."""
    hello = await _hello(frames, accept)
    await frames.send(codec.encode_hello(mine()))
    return hello


async def _hello(frames: Frames, accept: Callable[[Hello], None]) -> Hello:
    try:
        async with asyncio.timeout(HELLO_WITHIN):
            message = await frames.next()
    except TimeoutError:
        raise RefusedError("no_hello", f"no hello came within {HELLO_WITHIN:g} s") from None
    except LinkEnded as end:
        raise RefusedError("no_hello" if end.reason == "silent" else end.reason, end.detail) from None
    if isinstance(message, codec.Bye):
        raise RefusedError("by_peer", f"the other side refused: {message.reason}")
    if not isinstance(message, Hello):
        raise RefusedError("no_hello", "the first frame must be a hello")
    try:
        accept(message)
    except RefusedError as refusal:
        await frames.part(f"{refusal.reason}: {refusal}")
        raise
    return message
