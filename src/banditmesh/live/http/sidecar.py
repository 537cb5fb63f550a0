"""The HTTP API of a node: for each operation of `openapi.OPERATIONS` a method of the same name.

A method takes the decoded body or, where the operation has none, what the path and the query name; it gives an answer
and its status, perhaps to be awaited. A body is decoded straight into its struct, so that nothing of another shape gets
any further. An error is one line of JSON, `{"error": ...}`: 4xx if asking again cannot help, 503 with Retry-After if it
can.

What callers ask for at every pull, `QUICK`, can also be asked for without ASGI, which would take longer than the node.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Coroutine
from http import HTTPStatus
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl

import msgspec

from ...errors import BanditmeshError, InputError, MessageError
from ..logs import LOG
from ..member.ledger import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Observation
from ..names import DEFAULT
from . import asgi, openapi
from .connections import RETRY_AFTER

if TYPE_CHECKING:
    from ..node import Node
    from .metrics import Metrics

#: The most bytes of a body, and the most seconds that it may take to come.
MAX_BYTES: Final = 2**20
MAX_SECONDS: Final = 10.0
#: Operations that `Sidecar.quick` answers.
QUICK: Final = ("choose", "observe", "step")

_DECODERS = {
    operation.name: msgspec.json.Decoder(operation.takes)
    for operation in openapi.OPERATIONS
    if operation.takes is not None
}
_ANSWERS = {COUNTED: openapi.Answer("counted"), ALREADY_COUNTED: openapi.Answer("already_counted")}
_ENCODE = msgspec.json.Encoder().encode
_OF_FILES: Final = "application/vnd.sqlite3"
#: By path, without the name that it may end with.
_BY_PATH: dict[str, list[openapi.Operation]] = {}
for _one in openapi.OPERATIONS:
    _BY_PATH.setdefault(_one.path.removesuffix("{name}"), []).append(_one)


class HttpError(Exception):
    """A request that HTTP itself has an answer for."""

    def __init__(self, status: int, line: str, headers: asgi.Headers = ()) -> None:
        super().__init__(line)
        self.status, self.headers = status, headers


class Disconnected(Exception):
    """The caller is gone before all of its request has come."""


class Asked(NamedTuple):
    """What a request without a body asks for: the name at the end of its path, and its query."""

    name: str
    query: dict[str, str]


class _Text(NamedTuple):
    """An answer that is no struct."""

    body: bytes
    media: str = asgi.JSON


class _File(NamedTuple):
    """An answer that is a file; its folder goes when it was sent."""

    path: Path
    folder: tempfile.TemporaryDirectory[str]


#: What an operation gives, and what is sent of a quick one.
_Given: TypeAlias = tuple[msgspec.Struct | _Text | _File, int]
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

    async def app(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """The application, to be run behind a `Guard`."""
        headers: asgi.Headers = ()
        try:
            operation, asked = _find(scope)
            body = asked if operation.takes is None else _decoded(operation.name, await _body(scope, receive))
            given = getattr(self, operation.name)(body)
            value, status = given if isinstance(given, tuple) else await given
        except Exception as error:
            value, status = _failure(error)
            headers = error.headers if isinstance(error, HttpError) else ()
        if isinstance(value, _File):
            try:
                await asgi.answer_file(send, value.path, _OF_FILES)
            finally:
                await asyncio.to_thread(value.folder.cleanup)
            return
        if status == 503:
            headers = ((b"retry-after", RETRY_AFTER.encode()),)
        text = value if isinstance(value, _Text) else _Text(_ENCODE(value))
        await asgi.answer(send, status, text.body, headers, text.media)

    def quick(self, name: str, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        """What one of the `QUICK` operations answers to a body, perhaps to be awaited."""
        try:
            given = getattr(self, name)(_decoded(name, body))
        except Exception as error:
            return _reply(_failure(error))
        return _reply(given) if isinstance(given, tuple) else _later(given)

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

    async def withdraw(self, asked: openapi.WithdrawRequest) -> _Given:  # noqa: D102
        answer = await self._node.withdraw(asked.ticket)
        return openapi.Withdrawn("withdrawn" if answer.outcome == WITHDRAWN else "already_closed"), 200

    def state(self, _: Asked) -> _Given:  # noqa: D102
        return self._node.state(), 200

    def peers(self, _: Asked) -> _Given:  # noqa: D102
        return openapi.Peers(self._node.peers()), 200

    def add_peer(self, asked: openapi.PeerRequest) -> _Given:  # noqa: D102
        self._node.add_peer(asked.name, asked.address)
        return openapi.Done(), 200

    def remove_peer(self, asked: Asked) -> _Given:  # noqa: D102
        if asked.name not in {peer.name for peer in self._node.peers()}:
            raise HttpError(404, f"there is no neighbour {asked.name!r}")
        self._node.remove_peer(asked.name)
        return openapi.Done(), 200

    async def set_arms(self, asked: openapi.ArmsRequest) -> _Given:  # noqa: D102
        await self._node.set_arms(asked.arms, asked.bandit)
        return openapi.Done(), 200

    async def add_arm(self, asked: openapi.ArmRequest) -> _Given:  # noqa: D102
        await self._node.add_arm(asked.arm, asked.bandit)
        return openapi.Done(), 200

    async def remove_arm(self, asked: Asked) -> _Given:  # noqa: D102
        bandit = asked.query.get("bandit", DEFAULT)
        specs = [one for one in self._node.config.bandit_specs() if one.name == bandit]
        if specs and asked.name not in {arm.name for arm in specs[0].arms}:
            raise HttpError(404, f"there is no arm {asked.name!r}")
        await self._node.remove_arm(asked.name, bandit)
        return openapi.Done(), 200

    async def notice(self, asked: openapi.NoticeRequest) -> _Given:  # noqa: D102
        await self._node.notice(asked.notice)
        return openapi.Done(), 200

    def lives(self, asked: Asked) -> _Given:  # noqa: D102
        return openapi.Lives(self._node.lives(asked.name)), 200

    async def backup(self, _: openapi.BackupRequest) -> _Given:  # noqa: D102
        folder = tempfile.TemporaryDirectory(prefix="banditmesh-backup-")
        path = Path(folder.name) / "state.sqlite3"
        try:
            await self._node.backup(path)
        except BaseException:
            folder.cleanup()
            raise
        return _File(path, folder), 200

    def healthy(self, _: Asked) -> _Given:  # noqa: D102
        return openapi.Health(), 200

    def ready(self, _: Asked) -> _Given:  # noqa: D102
        is_ready, reason = self._node.ready()
        return openapi.Readiness(is_ready, reason or None), 200 if is_ready else 503

    def metrics(self, _: Asked) -> _Given:  # noqa: D102
        return _Text(self._metrics.text(), self._metrics.media_type), 200

    def describe(self, _: Asked) -> _Given:  # noqa: D102
        return _Text(self._description), 200


def _find(scope: asgi.Scope) -> tuple[openapi.Operation, Asked]:
    """Which operation a request is for, and what it names."""
    path, method = scope["path"], scope["method"]
    ends = (one for one in _BY_PATH if one.endswith("/") and path.startswith(one))
    place = path if path in _BY_PATH and not path.endswith("/") else next(ends, None)
    if place is None:
        raise HttpError(404, HTTPStatus.NOT_FOUND.phrase)
    methods = {one.method: one for one in _BY_PATH[place]}
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]
    if method not in methods:
        raise HttpError(405, HTTPStatus.METHOD_NOT_ALLOWED.phrase, [(b"allow", ", ".join(methods).encode())])
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return methods[method], Asked(path[len(place) :], query)


def _reply(given: _Given) -> Reply:
    return given[1], _ENCODE(given[0])


async def _later(given: Awaitable[_Given]) -> Reply:
    try:
        return _reply(await given)
    except Exception as error:
        return _reply(_failure(error))


async def _body(scope: asgi.Scope, receive: asgi.Receive) -> bytes:
    """The body of a request, of limited size and within limited time."""
    data = b""
    n_more = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
    try:
        async with asyncio.timeout(MAX_SECONDS):
            while n_more <= MAX_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Disconnected
                data += message["body"]
                if not message["more_body"]:
                    break
                n_more = len(data)
    except TimeoutError:
        raise HttpError(408, f"a body must come within {MAX_SECONDS:g} s") from None
    if max(n_more, len(data)) > MAX_BYTES:
        raise HttpError(413, f"a body must be of at most {MAX_BYTES} bytes; send it in parts")
    return data


def _decoded(operation: str, data: bytes) -> Any:
    try:
        return _DECODERS[operation].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"the body must be JSON as in /openapi.json: {error}") from None


def _failure(error: Exception) -> _Given:
    """What a caller is told of an error."""
    if isinstance(error, HttpError):
        return openapi.Error(str(error)), error.status
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            return openapi.Error(" ".join(str(error).split())), status
    LOG.error("unexpected error in an answer", exc_info=error)
    return openapi.Error(f"unexpected {type(error).__name__}; the log shows where, please report it"), 500


#: Errors that tell the caller why in their own words, and their status; the first that fits counts.
_STATUSES: Final = {
    InputError: 422,
    MessageError: 422,
    Disconnected: 400,
    # What a node cannot do now: its disk is full, or it is leaving.
    BanditmeshError: 503,
}
