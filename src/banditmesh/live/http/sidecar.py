"""The HTTP API of a node: for each operation of `openapi.OPERATIONS` a method of the same name.

A body is decoded straight into its struct, so that nothing of another shape gets any further. An error is one line of
JSON, `{"error": ...}`: 4xx if asking again cannot help, 503 with Retry-After if it can.

What callers ask for at every pull, `QUICK`, is answered without Starlette: it would take longer than the node does.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ...errors import BanditmeshError, InputError, MessageError
from ..logs import LOG
from ..member.ledger import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Observation
from ..names import DEFAULT
from . import openapi
from .connections import RETRY_AFTER

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ..node import Node
    from .metrics import Metrics

#: The most bytes of a body, and the most seconds that it may take to come.
MAX_BYTES: Final = 2**20
MAX_SECONDS: Final = 10.0
#: Operations whose methods take a decoded body and give an answer and its status, perhaps to be awaited; others are
#: Starlette's endpoints.
QUICK: Final = ("choose", "observe", "step")

_DECODERS = {
    operation.name: msgspec.json.Decoder(operation.takes)
    for operation in openapi.OPERATIONS
    if operation.takes is not None
}
_ANSWERS = {COUNTED: openapi.Answer("counted"), ALREADY_COUNTED: openapi.Answer("already_counted")}
_ENCODE = msgspec.json.Encoder().encode
#: What a quick operation gives: an answer and its status, and what is sent of them.
_Given: TypeAlias = tuple[msgspec.Struct, int]
Reply: TypeAlias = tuple[int, bytes]


class Sidecar:
    """The HTTP API of a node.

    Parameters
    ----------
    node : Node
        The node; it runs on the same event loop.
    metrics : Metrics
        What `/metrics` gives.
    """

    def __init__(self, node: Node, metrics: Metrics) -> None:
        self._node = node
        self._metrics = metrics
        self._description = _ENCODE(openapi.describe())

    def app(self) -> ASGIApp:
        """The application, to be run behind a `Guard`."""
        routes = [
            Route(
                operation.path.replace("{name}", "{name:path}"),
                getattr(self, operation.name),
                methods=[operation.method],
            )
            for operation in openapi.OPERATIONS
        ]
        app = Starlette(routes=routes, exception_handlers=_HANDLERS)
        app.router.redirect_slashes = False
        # Starlette knows these paths as well, and answers other methods.
        quick = {one.path: one.name for one in openapi.OPERATIONS if one.name in QUICK}

        async def either(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST" and scope["path"] in quick:
                await self._answer_quickly(quick[scope["path"]], scope, receive, send)
            else:
                await app(scope, receive, send)

        return either

    def quick(self, name: str, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        """What one of the `QUICK` operations answers to a body, perhaps to be awaited."""
        try:
            given = getattr(self, name)(_decoded(name, body))
        except Exception as error:
            return _failure(error)
        return (given[1], _ENCODE(given[0])) if isinstance(given, tuple) else _later(given)

    async def _answer_quickly(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = self.quick(name, await _body(scope, receive))
            status, body = reply if isinstance(reply, tuple) else await reply
        except Exception as error:
            status, body = _failure(error)
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
        if status == 503:
            headers.append((b"retry-after", RETRY_AFTER.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def choose(self, asked: openapi.ChooseRequest) -> _Given:  # noqa: D102
        return openapi.Chosen(*self._choose(asked)), 200

    async def step(self, asked: openapi.StepRequest) -> _Given:  # noqa: D102
        answers = await self._observe(asked.observations) if asked.observations else []
        return openapi.Step(*self._choose(asked), answers=answers), 200

    def _choose(self, asked: openapi.ChooseRequest) -> tuple[Any, ...]:
        choice = self._node.choose(asked.among, bandit=asked.bandit, segment=asked.segment)
        segment = choice.segment if asked.segment else msgspec.UNSET
        return choice.arm, str(choice.ticket), choice.probability, segment

    async def observe(self, asked: openapi.ObservationRequest | list[openapi.ObservationRequest]) -> _Given:  # noqa: D102
        observations = asked if isinstance(asked, list) else [asked]
        answers = await self._observe(observations)
        refused = [one.error for one in answers if one.answer == "refused"]
        status = 422 if refused and len(refused) == len(answers) else 200
        if not isinstance(asked, list):
            return answers[0], status
        if status == 200:
            return openapi.Answers(answers), status
        line = f"all {len(answers)} observations are refused, the first: {refused[0]}"
        return openapi.Answers(answers, line), status

    async def _observe(self, asked: list[openapi.ObservationRequest]) -> list[openapi.Answer]:
        """What becomes of each observation; all that can be counted are, in one transaction."""
        began = perf_counter()
        observations = [
            Observation(one.reward, cast(Any, one.ticket), one.arm, one.key, bandit=one.bandit, segment=one.segment)
            for one in asked
        ]
        answers = await self._node.observe_many(observations, needs_key=True)
        self._metrics.observed(perf_counter() - began)
        return [
            openapi.Answer("refused", " ".join(reason.split())) if outcome == REFUSED else _ANSWERS[outcome]
            for outcome, reason in answers
        ]

    async def withdraw(self, request: Request) -> Response:  # noqa: D102
        asked: openapi.WithdrawRequest = await _read(request, "withdraw")
        answer = await self._node.withdraw(asked.ticket)
        return _answer(openapi.Withdrawn("withdrawn" if answer.outcome == WITHDRAWN else "already_closed"))

    async def state(self, request: Request) -> Response:  # noqa: D102
        return _answer(self._node.state())

    async def peers(self, request: Request) -> Response:  # noqa: D102
        return _answer(openapi.Peers(self._node.peers()))

    async def add_peer(self, request: Request) -> Response:  # noqa: D102
        asked: openapi.PeerRequest = await _read(request, "add_peer")
        self._node.add_peer(asked.name, asked.address)
        return _answer(openapi.Done())

    async def remove_peer(self, request: Request) -> Response:  # noqa: D102
        name = request.path_params["name"]
        if name not in {peer.name for peer in self._node.peers()}:
            raise HTTPException(404, f"there is no neighbour {name!r}")
        self._node.remove_peer(name)
        return _answer(openapi.Done())

    async def set_arms(self, request: Request) -> Response:  # noqa: D102
        asked: openapi.ArmsRequest = await _read(request, "set_arms")
        await self._node.set_arms(asked.arms, asked.bandit)
        return _answer(openapi.Done())

    async def add_arm(self, request: Request) -> Response:  # noqa: D102
        asked: openapi.ArmRequest = await _read(request, "add_arm")
        await self._node.add_arm(asked.arm, asked.bandit)
        return _answer(openapi.Done())

    async def remove_arm(self, request: Request) -> Response:  # noqa: D102
        name, bandit = request.path_params["name"], request.query_params.get("bandit", DEFAULT)
        specs = [one for one in self._node.config.bandit_specs() if one.name == bandit]
        if specs and name not in {arm.name for arm in specs[0].arms}:
            raise HTTPException(404, f"there is no arm {name!r}")
        await self._node.remove_arm(name, bandit)
        return _answer(openapi.Done())

    async def notice(self, request: Request) -> Response:  # noqa: D102
        asked: openapi.NoticeRequest = await _read(request, "notice")
        await self._node.notice(asked.notice)
        return _answer(openapi.Done())

    async def lives(self, request: Request) -> Response:  # noqa: D102
        return _answer(openapi.Lives(self._node.lives(request.path_params["name"])))

    async def backup(self, request: Request) -> Response:  # noqa: D102
        await _read(request, "backup")
        folder = tempfile.TemporaryDirectory(prefix="banditmesh-backup-")
        path = Path(folder.name) / "state.sqlite3"
        try:
            await self._node.backup(path)
        except BaseException:
            folder.cleanup()
            raise
        return FileResponse(path, media_type="application/vnd.sqlite3", background=BackgroundTask(folder.cleanup))

    async def healthy(self, request: Request) -> Response:  # noqa: D102
        return _answer(openapi.Health())

    async def ready(self, request: Request) -> Response:  # noqa: D102
        is_ready, reason = self._node.ready()
        return _answer(openapi.Readiness(is_ready, reason or None), 200 if is_ready else 503)

    async def metrics(self, request: Request) -> Response:  # noqa: D102
        return Response(self._metrics.text(), media_type=self._metrics.media_type)

    async def describe(self, request: Request) -> Response:  # noqa: D102
        return Response(self._description, media_type="application/json")


async def _later(given: Awaitable[_Given]) -> Reply:
    try:
        value, status = await given
    except Exception as error:
        return _failure(error)
    return status, _ENCODE(value)


async def _read(request: Request, operation: str) -> Any:
    """The body of a request, as its operation takes it."""
    return _decoded(operation, await _body(request.scope, request.receive))


async def _body(scope: Scope, receive: Receive) -> bytes:
    """The body of a request, of limited size and within limited time."""
    data = b""
    n_more = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
    try:
        async with asyncio.timeout(MAX_SECONDS):
            while n_more <= MAX_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                data += message["body"]
                if not message["more_body"]:
                    break
                n_more = len(data)
    except TimeoutError:
        raise HTTPException(408, f"a body must come within {MAX_SECONDS:g} s") from None
    if max(n_more, len(data)) > MAX_BYTES:
        raise HTTPException(413, f"a body must be of at most {MAX_BYTES} bytes; send it in parts")
    return data


def _decoded(operation: str, data: bytes) -> Any:
    try:
        return _DECODERS[operation].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON as in /openapi.json: {error}") from None


def _answer(value: msgspec.Struct, status: int = 200) -> Response:
    headers = {"Retry-After": RETRY_AFTER} if status == 503 else None
    return Response(_ENCODE(value), status, headers, media_type="application/json")


def _failure(error: Exception) -> Reply:
    """What a quick operation answers that failed."""
    value, status = _told(error)
    if status == 500:
        LOG.error("unexpected error in an answer", exc_info=error)
    return status, _ENCODE(value)


def _told(error: Exception) -> _Given:
    """What a caller is told of an error."""
    if isinstance(error, HTTPException):
        return openapi.Error(error.detail), error.status_code
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            return openapi.Error(" ".join(str(error).split())), status
    return openapi.Error(f"unexpected {type(error).__name__}; the log shows where, please report it"), 500


async def _refused(request: Request, error: Exception) -> Response:
    answer = _answer(*_told(error))
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


#: Errors that tell the caller why in their own words, and their status; the first that fits counts.
_STATUSES: Final = {
    InputError: 422,
    MessageError: 422,
    ClientDisconnect: 400,
    # What a node cannot do now: its disk is full, or it is leaving.
    BanditmeshError: 503,
}
_HANDLERS: Final[dict[Any, Any]] = dict.fromkeys((HTTPException, *_STATUSES, Exception), _refused)
