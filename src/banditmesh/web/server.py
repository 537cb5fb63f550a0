"""The server of the page: routes to the views, behind `Access`, until it is stopped."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ..errors import InputError, need

if TYPE_CHECKING:
    from ..mesh.local import LocalMesh
    from .polling import Meshes

#: Where the page listens by default.
HOST: Final = "127.0.0.1"
PORT: Final = 8470
#: How long a browser may be gone before its tab and its workers are forgotten, in seconds. Within two fifths of it, a
#: browser must answer whether it is still there, which one on a busy machine may need.
RECONNECT_SECONDS: Final = 20.0
#: How many of its updates are kept until it is back.
MAX_MESSAGES: Final = 200


def serve(
    host: str = HOST,
    port: int = PORT,
    *,
    token: str | None = None,
    hosts: Iterable[str] = (),
    mesh: Iterable[str] = (),
    any_mesh: bool = False,
    local: LocalMesh | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the page until the process is stopped.

    Parameters
    ----------
    host, port : str, int
        Where to listen; port 0 takes any that is free.
    token : str, optional
        What users must know; required unless the address is loopback.
    hosts : iterable of str
        Further names that browsers may call the server by.
    mesh : iterable of str
        The addresses of the sidecars that visitors may have the server ask.
    any_mesh : bool
        Whether visitors may have it ask any other address, too.
    local : LocalMesh, optional
        A mesh whose sidecars it asks, and whose nodes visitors may kill and start; this needs a token and loopback.
    ready : callable, optional
        Called with the address of the page once it answers.
    """
    need("nicegui", "web", "the page")
    from .polling import Meshes

    meshes = Meshes((*mesh, *(local.sidecars.values() if local else ())), any_mesh, local)
    try:
        meshes.check(meshes.addresses)
    except InputError as error:
        raise InputError(f"--mesh: {error}") from None
    with listening(host, port, token) as listener:
        address, number = listener.getsockname()[:2]
        if local is not None and (token is None or not ipaddress.ip_address(address).is_loopback):
            raise InputError("nodes may be killed from a page on loopback that asks for a token, got another one")
        url = f"http://{f'[{address}]' if ':' in address else address}:{number}/"
        import uvicorn

        from ..live.http.process import loop_factory
        from . import workers
        from .uploads import Uploads

        uploads = Uploads()
        try:
            workers.prepare()
            config = uvicorn.Config(
                application(address, uploads, token=token, hosts=hosts, meshes=meshes),
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
                ws_max_size=2**20,
            )
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(_serve(config, listener, lambda: ready(url) if ready is not None else None))
        finally:
            workers.stop_all()
            uploads.close()


def application(
    address: str, uploads: Any, *, token: str | None = None, hosts: Iterable[str] = (), meshes: Meshes | None = None
) -> Any:
    """The application with all views, behind its guard."""
    # Nothing of a user is stored, so no folder is needed; NiceGUI looks for one all the same.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(uploads.folder / "nicegui"))
    from fastapi import FastAPI, Request, Response
    from nicegui import app, ui

    from ..animations import PLAYER, story
    from . import compare, follow, lab, mesh, studies
    from .access import VISITOR, Access
    from .kept import ROUTE, Kept
    from .shell import VIEWS, Shell

    logging.getLogger("nicegui").setLevel(logging.ERROR)
    app.config.socket_io_js_transports = ["websocket"]
    app.add_static_file(local_file=PLAYER, url_path="/banditmesh-player.js")

    def page(path: str, view: Callable[[Shell], object]) -> Callable[..., None]:
        def show(request: Request) -> None:
            ui.add_head_html('<script src="/banditmesh-player.js"></script>')
            came_from = request.headers.get("sec-fetch-site", "none")
            given = request.query_params
            # What is said twice is not said once: both are shown, for the user to choose.
            query = {key: ", ".join(given.getlist(key)) for key in given}
            is_own, visitor = came_from in ("none", "same-origin"), request.scope.get(VISITOR, "")
            view(Shell(path, query, uploads, is_own=is_own, visitor=visitor, mesh=meshes))

        # The framework reads the annotation itself, not its text.
        show.__annotations__ = {"request": Request, "return": None}
        return show

    views = {"/": lab.Lab, "/follow": follow.Follow, "/compare": compare.Compare, "/studies": studies.Studies}
    for path, view in (views | {"/mesh": mesh.Mesh}).items():
        ui.page(path, title=f"{VIEWS[path]} · banditmesh")(page(path, view))
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    kept = Kept(uploads.folder)

    def recording(key: str) -> Response:
        path = kept.path(key)
        if path is None:
            return Response("no such recording", 404)
        headers = {"content-encoding": "gzip", "cache-control": "private, max-age=86400, immutable"}
        return Response(path.read_bytes(), media_type="application/json", headers=headers)

    outer.get(ROUTE + "/{key}", response_model=None)(recording)
    # Not a coroutine: it is made in a thread, and the event loop goes on.
    outer.add_api_route("/story", lambda: Response(story().html, media_type="text/html"))
    ui.run_with(
        outer,
        title="banditmesh",
        favicon="🕸️",
        tailwind=False,
        reconnect_timeout=RECONNECT_SECONDS,
        message_history_length=MAX_MESSAGES,
        show_welcome_message=False,
        binding_refresh_interval=None,
    )
    return Access(address, hosts=hosts, token=token).around(outer)


def listening(host: str, port: int, token: str | None) -> socket.socket:
    """A socket that listens; beyond loopback only with a token."""
    if not 0 <= port < 2**16:
        raise InputError(f"--port must be an integer from 0 to 65535, got {port}")
    from ..live.http.guard import listen_on

    remedy = "give --token-file as well, or leave --host out"
    return listen_on(host, port, token, setting="--host and --port", remedy=remedy)


async def _serve(config: Any, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until a signal ends it, and say when it is ready."""
    from ..live.http.process import Server, ended_by_signals

    class Page(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            started()

    server = Page(config)

    def leave(_: str) -> None:
        server.should_exit = True

    def at_once(_: str) -> None:
        server.force_exit = True

    with ended_by_signals(leave, at_once):
        await server.serve(sockets=[listener])
