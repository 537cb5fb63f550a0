"""A node with its sidecar as a process: sockets, signals, and the order of things at the beginning and at the end.

The node comes first and the API's socket after it; at the end the API closes first, so that everything that was
acknowledged is sent to the neighbours before the node leaves. SIGTERM and SIGINT leave gracefully, a second one at
once. SIGHUP reads the configuration again; if anything is wrong with it, the node goes on with the old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import uvicorn

from ...errors import BanditmeshError, InputError, SidecarError
from ..addresses import Address
from ..config import NodeConfig, load
from ..logs import LOG, note, set_up
from ..node import Node
from .callers import CallerConnection, limited
from .guard import Guard
from .metrics import Metrics
from .openapi import OPEN
from .sidecar import Sidecar
from .tokens import read_token

#: How long requests may take to end when the sidecar ends, in seconds.
LAST_REQUESTS_WITHIN: Final = 5
BACKLOG: Final = 128


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
        guard.around(limited(Sidecar(node, metrics).app())),
        http=CallerConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=LAST_REQUESTS_WITHIN,
    )
    server = _Server(config)
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


class _Server(uvicorn.Server):
    """uvicorn, whose signals are somebody else's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def bind(address: str, token: str | None = None) -> Iterator[socket.socket]:
    """A socket that listens on `HOST:PORT` or `unix:PATH`; who connects is answered once it is served.

    Anybody can ask a sidecar who reaches it. So an address other than loopback is refused unless there is a token, and
    a Unix socket is for its user alone.

    Examples
    --------
    >>> with bind("127.0.0.1:0") as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    >>> with bind("0.0.0.0:7780"):
    ...     pass
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: api.listen is not loopback, got '0.0.0.0:7780': set api.token_file, or listen on \
127.0.0.1
    """
    if address.startswith("unix:"):
        with _bind_unix(Path(address.removeprefix("unix:"))) as listener:
            yield listener
        return
    family, ip, port = _resolve(address)
    if not ipaddress.ip_address(ip).is_loopback and token is None:
        raise InputError(f"api.listen is not loopback, got {address!r}: set api.token_file, or listen on 127.0.0.1")
    # With the protocol named, the event loop sends what there is at once, instead of waiting for more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ip, port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise SidecarError(f"api.listen: cannot listen on {address}: {error.strerror}") from None
        yield listener


def _resolve(address: str) -> tuple[socket.AddressFamily, str, int]:
    host, port = Address.parse(address, "api.listen")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InputError(f"api.listen: {host} has no address here: {error.strerror}") from None
    family, _, _, _, where = found[0]
    return family, str(where[0]), int(where[1])


@contextlib.contextmanager
def _bind_unix(path: Path) -> Iterator[socket.socket]:
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # Between bind and chmod anybody could connect; so the mask does it. It is the whole process's, for an instant.
        mask = os.umask(0o177)
        try:
            listener.bind(str(path))
            listener.listen(BACKLOG)
        except OSError as error:
            raise SidecarError(f"api.listen: cannot listen on unix:{path}: {error.strerror or error}") from None
        finally:
            os.umask(mask)
        bound = path.stat().st_ino
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == bound:
                    path.unlink()


def _clear(path: Path) -> None:
    """Remove the socket of a sidecar that has ended; anything else is somebody's."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise InputError(f"api.listen: {path} is there and is no socket; remove it, or take another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SidecarError(f"api.listen: somebody answers on unix:{path} already; end that process, or take another path")


@contextlib.contextmanager
def signals(
    leave: Callable[[], object], at_once: Callable[[], object], reload: Callable[[], Awaitable[None]]
) -> Iterator[None]:
    """Within it, SIGTERM and SIGINT call `leave`, or `at_once` if it was called before; SIGHUP awaits `reload`."""
    loop = asyncio.get_running_loop()
    n_asked = 0
    reloading: set[asyncio.Task[None]] = set()

    def end(number: signal.Signals) -> None:
        nonlocal n_asked
        n_asked += 1
        note(LOG, logging.INFO, "leaving" if n_asked == 1 else "leaving at once", signal=number.name)
        (leave if n_asked == 1 else at_once)()

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

    handlers: list[tuple[signal.Signals, Callable[[], None]]] = [
        (signal.SIGTERM, lambda: end(signal.SIGTERM)),
        (signal.SIGINT, lambda: end(signal.SIGINT)),
        (signal.SIGHUP, hang_up),
    ]
    for number, handler in handlers:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, _ in handlers:
            loop.remove_signal_handler(number)


def run(path: str | os.PathLike[str], *, new_life: bool = False) -> None:
    """Run the node of a node.toml with its sidecar, until a signal ends it."""
    config = load(path)
    set_up(config.log, level=logging.getLevelNamesMapping()[config.log_level.upper()])
    token = None if config.api.token_file is None else read_token(config.api.token_file)
    # Ended at once, by a second signal: as if it had crashed, which loses nothing.
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(path, config, token, new_life))


async def _run(path: str | os.PathLike[str], config: NodeConfig, token: str | None, new_life: bool) -> None:
    until = asyncio.Event()
    main = asyncio.current_task()
    assert main is not None
    async with Node(config, new_life=new_life) as node:

        async def reload() -> None:
            await node.reload(load(path))

        with signals(until.set, main.cancel, reload), bind(config.api.listen, token) as listener:
            note(LOG, logging.INFO, "listening", api=config.api.listen)
            await serve(node, listener, hosts=tuple(config.api.hosts), token=token, until=until)
            await node.leave()
    note(LOG, logging.INFO, "left")
