"""A node with its sidecar as a process: sockets, signals, and the order of things at the beginning and at the end.

The node comes first and the API's socket after it; at the end the API closes first, so that everything that was
acknowledged is sent to the neighbours before the node leaves. SIGTERM and SIGINT leave gracefully, a second one at
once. SIGHUP reads the configuration again; if anything is wrong with it, the node goes on with the old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final

import uvicorn

from ...errors import BanditmeshError
from ..config import NodeConfig, load
from ..logs import LOG, note, set_up
from ..node import Node
from . import connections
from .asgi import Receive, Scope, Send, answer_error
from .guard import BACKLOG, Guard, bind, read_token
from .metrics import Metrics
from .openapi import OPEN, OPERATIONS
from .process import Server, ended_by_signals, loop_factory
from .sidecar import MAX_BYTES, QUICK, Reply, Sidecar

#: How long requests may take to end when the sidecar ends, in seconds.
LAST_REQUESTS_WITHIN: Final = 5


async def serve(
    node: Node,
    listener: socket.socket,
    *,
    hosts: tuple[str, ...] = (),
    token: str | None = None,
    until: asyncio.Event,
) -> None:
    """Answer on a socket until an event is set; the requests that have come by then are answered.

    Parameters
    ----------
    node : Node
        A node that runs on this event loop.
    listener : socket.socket
        A socket that listens, see `bind`.
    hosts : tuple of str
        Further names that the sidecar may be called by.
    token : str, optional
        What every request must bring.
    until : asyncio.Event
        When to end.
    """
    address = None if listener.family == socket.AF_UNIX else listener.getsockname()[0]
    metrics = Metrics(node)
    guard = Guard(address, hosts=hosts, token=token, open_paths=OPEN)
    config = uvicorn.Config(
        Entrance(guard, Sidecar(node, metrics)),
        http=connections.connection_class(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=LAST_REQUESTS_WITHIN,
    )
    server = Server(config)
    measuring = asyncio.create_task(metrics.measure_lag())
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    waiting = asyncio.create_task(until.wait())
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        for task in (measuring, serving, waiting):
            task.cancel()


class Entrance:
    """An ASGI application: a sidecar behind its guard, for `MAX_CALLERS` requests at a time.

    Parameters
    ----------
    guard : Guard
        Who may ask.
    sidecar : Sidecar
        What is asked.
    always : collection of str
        Paths that are always answered.
    """

    def __init__(self, guard: Guard, sidecar: Sidecar, always: Collection[str] = OPEN) -> None:
        self._guard, self._sidecar, self._always = guard, sidecar, always
        self._app = sidecar.app
        self._guarded = guard.around(self._limited)
        self._quick = {one.path.encode(): one for one in OPERATIONS if one.name in QUICK}
        self._n_running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guarded(scope, receive, send)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in self._always:
            await self._app(scope, receive, send)
        elif self._n_running >= connections.MAX_CALLERS:
            await answer_error(send, 503, connections.too_many(), [(b"retry-after", connections.RETRY_AFTER.encode())])
        else:
            self._n_running += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._n_running -= 1

    def is_quick(self, method: bytes, path: bytes) -> bool:
        """Whether `quick` may answer such a request."""
        return method == b"POST" and path in self._quick

    def quick(self, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Reply | Awaitable[Reply] | None:
        """The answer to a request that has come whole, perhaps to be awaited; None if it is to be like any other."""
        operation = self._quick[path]
        if (
            len(body) > MAX_BYTES
            or self._n_running >= connections.MAX_CALLERS
            or self._guard.refusal(operation.method, operation.path, headers) is not None
        ):
            return None
        reply = self._sidecar.quick(operation.name, body)
        if isinstance(reply, tuple):
            return reply
        self._n_running += 1
        return self._awaited(reply)

    async def _awaited(self, reply: Awaitable[Reply]) -> Reply:
        try:
            return await reply
        finally:
            self._n_running -= 1


@contextlib.contextmanager
def signals(
    leave: Callable[[], object], at_once: Callable[[], object], reload: Callable[[], Awaitable[None]]
) -> Iterator[None]:
    """Within it, SIGTERM and SIGINT call `leave`, or `at_once` if it was called before; SIGHUP awaits `reload`."""
    loop = asyncio.get_running_loop()
    reloading: set[asyncio.Task[None]] = set()

    def noted(what: str, end: Callable[[], object]) -> Callable[[str], None]:
        def call(name: str) -> None:
            note(LOG, logging.INFO, what, signal=name)
            end()

        return call

    async def again() -> None:
        try:
            await reload()
            note(LOG, logging.INFO, "configuration read again")
        except (BanditmeshError, OSError) as error:
            note(LOG, logging.ERROR, "configuration not read again, the old one holds", error=error)

    def hang_up() -> None:
        task = asyncio.create_task(again())
        reloading.add(task)
        task.add_done_callback(reloading.discard)

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        with ended_by_signals(noted("leaving", leave), noted("leaving at once", at_once)):
            yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def run(path: str | os.PathLike[str], *, new_life: bool = False) -> None:
    """Run the node of a node.toml with its sidecar, until a signal ends it."""
    config = load(path)
    set_up(config.log, level=logging.getLevelNamesMapping()[config.log_level.upper()])
    token = None if config.api.token_file is None else read_token(config.api.token_file)
    # Ended at once, by a second signal: as if it had crashed, which loses nothing.
    with contextlib.suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(path, config, token, new_life))


async def _run(path: str | os.PathLike[str], config: NodeConfig, token: str | None, new_life: bool) -> None:
    until = asyncio.Event()
    main = asyncio.current_task()
    assert main is not None
    async with Node(config, new_life=new_life) as node:

        async def reload() -> None:
            await node.reload(load(path))

        with signals(until.set, main.cancel, reload), bind(config.api.listen, token) as listener:
            # What was imported and restored stays until the end: to look through it again and again for garbage would
            # hold up the event loop for tens of milliseconds.
            gc.collect()
            gc.freeze()
            note(LOG, logging.INFO, "listening", api=config.api.listen)
            await serve(node, listener, hosts=tuple(config.api.hosts), token=token, until=until)
            await node.leave()
    note(LOG, logging.INFO, "left")
