"""ASGI, as far as a sidecar speaks it: its types, and how an answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

JSON: Final = "application/json"
#: How many bytes of a file are read and sent at a time.
_PIECE: Final = 2**16


async def answer(send: Send, status: int, body: bytes, headers: Headers = (), media: str = JSON) -> None:
    """Send an answer."""
    await _begin(send, status, len(body), headers, media)
    await send({"type": "http.response.body", "body": body})


async def answer_error(send: Send, status: int, line: str, headers: Headers = ()) -> None:
    """Send the one line of an error."""
    await answer(send, status, msgspec.json.encode({"error": line}), headers)


async def answer_file(send: Send, path: Path, media: str) -> None:
    """Send a file; the event loop does not wait for the disk."""
    with await asyncio.to_thread(path.open, "rb") as file:
        n_left = path.stat().st_size
        await _begin(send, 200, n_left, (), media)
        while n_left > 0:
            piece = await asyncio.to_thread(file.read, min(_PIECE, n_left))
            if not piece:
                raise EOFError(f"{path} ended too early")
            n_left -= len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": n_left > 0})


async def _begin(send: Send, status: int, n_bytes: int, headers: Headers, media: str) -> None:
    usual = [(b"content-length", b"%d" % n_bytes), (b"content-type", media.encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*usual, *headers]})
