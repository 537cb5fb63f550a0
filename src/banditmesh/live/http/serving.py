"""A node with its sidecar as a process: sockets, signals, and the order of things at the beginning and at the end.

The node comes first and the API's socket after it; at the end the API closes first, so that everything that was
acknowledged is sent to the neighbours before the node leaves. SIGTERM and SIGINT leave gracefully, a second one at
once. SIGHUP reads the configuration again; if anything is wrong with it, the node goes on with the old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import h11
import msgspec
import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import BanditmeshError
from ..config import NodeConfig, load
from ..logs import LOG, note, set_up
from ..node import Node
from .guard import BACKLOG, Guard, bind, read_token
from .metrics import Metrics
from .openapi import OPEN, Error
from .sidecar import RETRY_AFTER, Sidecar

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: How long requests may take to end when the sidecar ends, in seconds.
LAST_REQUESTS_WITHIN: Final = 5
#: How many requests are answered at a time, and how many more connections there may be, for probes.
MAX_CALLERS: Final = 256
FOR_PROBES: Final = 16
#: How long a connection may be without a whole request, and how long an answer may go unread, in seconds.
HEADERS_WITHIN: Final = 10.0
READS_WITHIN: Final = 30.0


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


class CallerConnection(H11Protocol):
    """One connection, as uvicorn serves it, with an end that always comes."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._since = self.loop.time()
        #: By what happens then: what is waited for.
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is a place."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CALLERS + FOR_PROBES and not self._take_place():
            self._refuse(503, _too_many())
        else:
            self._expect(HEADERS_WITHIN, self._give_up)

    def _take_place(self) -> bool:
        """Have the place of the connection that has been without a request for longest; whether there is one."""
        others: list[Any] = [one for one in self.connections if one is not self]
        idle = [one for one in others if not one.is_busy]
        if not idle:
            return False
        oldest = min(idle, key=lambda one: one._since)
        self.connections.discard(oldest)  # it is lost only in the loop's next turn
        oldest.transport.close()
        return True

    def data_received(self, data: bytes) -> None:
        """Take what came; all headers must come in time."""
        super().data_received(data)
        if self.is_busy or self.transport.is_closing():
            self._cancel(self._give_up)
        else:
            self._expect(HEADERS_WITHIN, self._give_up)

    def on_response_complete(self) -> None:
        """The answer is sent."""
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller does not read."""
        super().pause_writing()
        self._expect(READS_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads."""
        self._cancel(self.transport.abort)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        for then in list(self._timers):
            self._cancel(then)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "a request must be HTTP/1.1, got something else")

    def _expect(self, within: float, then: Callable[[], None]) -> None:
        """Unless it is cancelled, call `then` after `within` seconds; a timer that runs already is not put off."""
        if then not in self._timers:
            self._timers[then] = self.loop.call_later(within, then)

    def _cancel(self, then: Callable[[], None]) -> None:
        if then in self._timers:
            self._timers.pop(then).cancel()

    def _give_up(self) -> None:
        has_begun = bool(self.conn.trailing_data[0])
        if has_begun:
            self._refuse(408, f"the headers of a request must come within {HEADERS_WITHIN:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, line: str) -> None:
        """Answer in place of the application, and end."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = msgspec.json.encode(Error(line))
            headers = {"Content-Type": "application/json", "Content-Length": f"{len(body)}", "Connection": "close"}
            if status == 503:
                headers["Retry-After"] = RETRY_AFTER
            answer = h11.Response(status_code=status, headers=list(headers.items()))
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def limited(app: ASGIApp, always: Collection[str] = OPEN) -> ASGIApp:
    """The same application, for `MAX_CALLERS` requests at a time, but for those paths, which are always answered."""
    n_running = 0

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal n_running
        if scope["path"] in always:
            await app(scope, receive, send)
        elif n_running >= MAX_CALLERS:
            answer = JSONResponse({"error": _too_many()}, 503, {"Retry-After": RETRY_AFTER})
            await answer(scope, receive, send)
        else:
            n_running += 1
            try:
                await app(scope, receive, send)
            finally:
                n_running -= 1

    return within


def _too_many() -> str:
    return f"too many callers: {MAX_CALLERS} requests are being answered already; try again"


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: `signals` has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
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
