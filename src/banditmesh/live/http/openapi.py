"""What the sidecar's HTTP API takes and gives: one table of operations, from which its OpenAPI description is made.

A body is a `msgspec.Struct`; what it may hold is said there and nowhere else: requests are decoded by it, answers are
encoded from it, and the description's schemas are made of it. `sidecar.py` has a function for each operation.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ...version import __version__
from ..names import OWN_ENTRIES, WARN_FROM
from ..statistics import ArmSpec

#: The most observations of one request.
MAX_OBSERVATIONS: Final = 1_000

Name = Annotated[str, Meta(description="1 to 128 bytes of printable UTF-8.")]
Bandit = Annotated[str, Meta(description="The name of a bandit; the default one if absent.")]
Segment = Annotated[str, Meta(description="A text of the caller's, such as a country; none if absent or empty.")]
Key = Annotated[str, Meta(min_length=1, max_length=128, description="A caller's own key; the same key counts once.")]


#: How many names or arms are named in warnings.
MAX_NAMED: Final = 10
#: How many origins are shown.
MAX_ORIGINS: Final = 100


class ArmView(Struct, frozen=True):
    """What a node knows of one of its arms.

    `own_count` counts its own observations in this life, `heard_count` those of others and of its own earlier lives.
    `n_open` counts choices whose rewards have not come, and `n_silent` those of them that are not waited for any more.
    `weight` is how much all of that still counts, where the bandit forgets. `mean` is None while nothing is known,
    `index` where the policy has none now; `n_origins` counts the other nodes that it has heard of the arm from.
    `n_left_out` says how many of these are left out, since what they tell does not fit (`trust.trim`), and `left_out`
    names the first ten.
    """

    name: str
    own_count: int
    heard_count: int
    mean: float | None
    index: float | None
    n_origins: int
    n_open: int = 0
    n_silent: int = 0
    weight: float | None = None
    n_left_out: int = 0
    left_out: list[str] = []


class AgentView(Struct, frozen=True):
    """What the agent of a bandit knows: in one segment, or without one (None)."""

    bandit: str
    segment: str | None
    policy: str
    n_choices: int
    arms: list[ArmView]
    memory: str = "everything"


class CapView(Struct, frozen=True):
    """How much of a cap is in use; a node warns from 75 per cent on."""

    used: int
    most: int


class OriginView(Struct, frozen=True):
    """What a node has of another one: how many statistics are signed or not, and how it takes them.

    `expired` are those of the signed ones whose certificate has ended, and still counts (`signature_grace`).
    `left_out` is of how many arms what it tells is left out of the estimates, since it does not fit (`trust.trim`).
    """

    name: str
    signed: int
    unsigned: int
    expired: int
    left_out: int


class TrustView(Struct, frozen=True):
    """How far a node trusts others, with the sums over all origins.

    `signatures` is "required", "accepted" or, in a plain mesh, "none". `trim` is how many liars it withstands.
    `origins` has the first hundred, those first of which most is left out, unsigned or expired.
    """

    signatures: str = "none"
    trim: int = 0
    n_origins: int = 0
    signed: int = 0
    unsigned: int = 0
    expired: int = 0
    left_out: int = 0
    origins: list[OriginView] = []


class StateView(Struct, frozen=True):
    """What a node knows, and what it counted since it started, by name.

    `arms` and `policy` are those of the bandit "default" without a segment; `agents` has all others, by bandit and
    segment. `certificate_ends` is when its certificate does, in seconds since 1970; None where links are plain.
    `many_lives` has the members of which it knows nearly as many lives as `caps.epochs` allows, and how many.
    """

    mesh: str
    node: str
    epoch: str
    start: int
    protocol: str
    policy: str
    n_choices: int
    arms: list[ArmView]
    counters: dict[str, int]
    caps: dict[str, CapView]
    certificate_ends: float | None = None
    many_lives: dict[str, int] = {}
    agents: list[AgentView] = []
    warnings: list[str] = []
    trust: TrustView = TrustView()


class PeerView(Struct, frozen=True):
    """How the link with a neighbour is.

    `since` is when it came up or went down, in seconds since 1970. `sent` and `received` count the statistics that
    went to it and came from it since this node started (with one that is not configured, since their last link
    began). `waiting` counts what waits to be sent to it, and `behind` says how many seconds ago nothing was waiting,
    0 if nothing is. The last refusal, with its reason, and when it was; protocol and software as the neighbour's last
    hello said.
    """

    name: str
    address: str | None
    state: Literal["up", "down"]
    since: float
    sent: int
    received: int
    waiting: int
    behind: float
    last_refusal: str | None
    refused_at: float | None
    protocol: str | None
    software: str | None


def warnings_of(caps: dict[str, CapView], many_lives: dict[str, int], outside: dict[str, int]) -> list[str]:
    """One line for each cap that is nearly reached, each name with many lives, and each arm with unused entries."""
    nearly = {name: cap for name, cap in caps.items() if cap.used >= WARN_FROM * cap.most and name != "epochs"}
    lines = [
        f"{cap.used} of {cap.most} {name} are in use (caps.{name})"
        for name, cap in nearly.items()
        if name != OWN_ENTRIES
    ]
    if (share := nearly.get(OWN_ENTRIES)) is not None:
        lines.append(
            f"{share.used} statistics of this node's own lives: others take {share.most} of one node "
            "(caps.entries_per_origin), and at that number it makes no new segments"
        )
    lines += [
        f"{name!r} has {n} lives, and after {caps['epochs'].most} (caps.epochs) a new one is not heard: retire "
        f"those that are over with `banditmesh keys retire`, and give the node a disk that stays"
        for name, n in islice(many_lives.items(), MAX_NAMED)
    ]
    if len(many_lives) > MAX_NAMED:
        lines.append(f"{len(many_lives) - MAX_NAMED} more names have nearly as many lives as caps.epochs allows")
    lines += [
        f"of arm {arm!r}, statistics of others are outside of its reward_range: {n}, unused until it allows them"
        for arm, n in islice(outside.items(), MAX_NAMED)
    ]
    return lines


class ChooseRequest(Struct, forbid_unknown_fields=True):
    """Which arms are available now, all of them if `among` is absent; of which bandit, and in which segment."""

    among: list[Name] | None = None
    bandit: Bandit | None = None
    segment: Segment | None = None


class Chosen(Struct, omit_defaults=True):
    """An arm to pull, the ticket by which its reward is reported, and how probable the arm was.

    `probability` is 1 for first pulls and null for policies that draw. `segment` is there if the request names one, and
    null if the arm was chosen without it, since the bandit does not list it.
    """

    arm: str
    ticket: str
    probability: float | None
    segment: str | UnsetType | None = UNSET


class ObservationRequest(Struct, forbid_unknown_fields=True):
    """A reward: by the ticket of its choice or, without one, by its arm and a key of the caller's own."""

    reward: Annotated[float, Meta(description="Finite, at most 1e12 in size, and inside the arm's reward_range.")]
    ticket: str | None = None
    arm: Name | None = None
    key: Key | None = None
    bandit: Bandit | None = None
    segment: Segment | None = None


class Answer(Struct, omit_defaults=True):
    """What became of an observation, and why it was refused."""

    answer: Literal["counted", "already_counted", "refused"]
    error: str | UnsetType = UNSET


class Answers(Struct, omit_defaults=True):
    """What became of each observation, in order; an error if all were refused."""

    answers: list[Answer]
    error: str | UnsetType = UNSET


class StepRequest(ChooseRequest, forbid_unknown_fields=True, kw_only=True):
    """Rewards to report, and what the next choice is to be, as in `ChooseRequest`."""

    observations: Annotated[list[ObservationRequest], Meta(max_length=MAX_OBSERVATIONS)] = []


class Step(Chosen, omit_defaults=True, kw_only=True):
    """What became of each observation, in order, and the next choice, as in `Chosen`."""

    answers: list[Answer]


class WithdrawRequest(Struct, forbid_unknown_fields=True):
    """The ticket of a choice that came to nothing."""

    ticket: str


class Withdrawn(Struct):
    """Whether the ticket is closed by this request, or was closed before, by a reward or by a withdrawal."""

    answer: Literal["withdrawn", "already_closed"]


class Peers(Struct):
    """How each link is."""

    peers: list[PeerView]


class ArmsRequest(Struct, forbid_unknown_fields=True):
    """The whole new arm set of a bandit, in the order of first choices."""

    arms: list[ArmSpec]
    bandit: Bandit | None = None


class ArmRequest(Struct, forbid_unknown_fields=True):
    """One arm more of a bandit; one of the same name is described anew."""

    arm: ArmSpec
    bandit: Bandit | None = None


class PeerRequest(Struct, forbid_unknown_fields=True):
    """A neighbour; without an address the node waits for it to dial."""

    name: Name
    address: str | None = None


class NoticeRequest(Struct, forbid_unknown_fields=True):
    """A notice as the authority signed it, in base64."""

    notice: bytes


class BackupRequest(Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class Lives(Struct):
    """The lives that the node knows of a member, as 16 hexadecimal digits each."""

    lives: list[Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]]


class Done(Struct):
    """It is done."""

    done: bool = True


class Health(Struct):
    """The process answers."""

    healthy: bool = True


class Readiness(Struct):
    """Whether the node does all of its work, and if not, why."""

    ready: bool
    reason: str | None


class Error(Struct):
    """What went wrong, in one line."""

    error: str


class Operation(Struct, frozen=True):
    """A method of a path: its name, what it takes, and by status what it gives: a type, several, or a media type.

    `query` is a parameter that may stand behind the path.
    """

    method: str
    path: str
    name: str
    summary: str
    takes: Any = None
    gives: dict[int, Any] = {}
    query: str | None = None


_LATER = {503: Error}

OPERATIONS: Final = (
    Operation("POST", "/v1/choose", "choose", "Choose an arm", ChooseRequest, {200: Chosen, 422: Error, **_LATER}),
    Operation(
        "POST",
        "/v1/observe",
        "observe",
        "Report one reward or a list of them; the same again changes nothing",
        ObservationRequest | Annotated[list[ObservationRequest], Meta(max_length=MAX_OBSERVATIONS)],
        {200: (Answer, Answers), 422: (Answer, Answers), **_LATER},
    ),
    Operation(
        "POST",
        "/v1/step",
        "step",
        "Report rewards, and choose the next arm once they count; a refused one does not keep the choice back",
        StepRequest,
        {200: Step, 422: Error, **_LATER},
    ),
    Operation(
        "POST",
        "/v1/withdraw",
        "withdraw",
        "Close the ticket of a choice that came to nothing; it counts nothing",
        WithdrawRequest,
        {200: Withdrawn, 422: Error, **_LATER},
    ),
    Operation(
        "GET", "/v1/state", "state", "What the node knows of each arm, and what it counted", None, {200: StateView}
    ),
    Operation("GET", "/v1/peers", "peers", "How each link is", None, {200: Peers}),
    Operation("POST", "/v1/peers", "add_peer", "Link with a neighbour", PeerRequest, {200: Done, 422: Error, **_LATER}),
    Operation(
        "DELETE", "/v1/peers/{name}", "remove_peer", "End a link", None, {200: Done, 404: Error, 422: Error, **_LATER}
    ),
    Operation("PUT", "/v1/arms", "set_arms", "Replace the arm set", ArmsRequest, {200: Done, 422: Error, **_LATER}),
    Operation("POST", "/v1/arms", "add_arm", "Add an arm", ArmRequest, {200: Done, 422: Error, **_LATER}),
    Operation(
        "DELETE",
        "/v1/arms/{name}",
        "remove_arm",
        "Remove an arm of the bandit that the query names",
        None,
        {200: Done, 404: Error, 422: Error, **_LATER},
        query="bandit",
    ),
    Operation("POST", "/v1/notices", "notice", "Hand over a notice", NoticeRequest, {200: Done, 422: Error, **_LATER}),
    Operation("GET", "/v1/lives/{name}", "lives", "Known lives of a member", None, {200: Lives, 422: Error}),
    Operation(
        "POST",
        "/v1/backup",
        "backup",
        "A copy of the node's state, while it runs",
        BackupRequest,
        {200: "application/vnd.sqlite3", **_LATER},
    ),
    Operation("GET", "/healthz", "healthy", "Whether the process answers; needs no token", None, {200: Health}),
    Operation(
        "GET", "/readyz", "ready", "Whether the node is ready; needs no token", None, {200: Readiness, 503: Readiness}
    ),
    Operation("GET", "/metrics", "metrics", "Metrics for Prometheus", None, {200: "text/plain"}),
    Operation("GET", "/openapi.json", "describe", "This description", None, {200: dict[str, Any]}),
)

JSON: Final = "application/json"
#: Paths that a probe may ask for without the token: they tell nothing of what the node knows.
OPEN: Final = ("/healthz", "/readyz")
#: What every operation may answer, whatever it is asked; bodies have two more reasons.
_ALWAYS = {
    400: "no HTTP/1.1, or no Host",
    401: "no token, or a wrong one",
    403: "from a web page",
    408: "the headers took too long",
    421: "another Host",
    503: "too many callers; Retry-After says when to ask again",
}
_WITH_BODY = {
    400: "no valid JSON, or not what is described",
    408: "the headers or the body took too long",
    413: "the body is too large",
    415: "the content type is not application/json",
}


def describe() -> dict[str, Any]:
    """The OpenAPI 3.1 description of the sidecar.

    Examples
    --------
    >>> sorted(describe()["paths"]["/v1/peers"])
    ['get', 'post']
    """
    types = {one for operation in OPERATIONS for gives in operation.gives.values() for one in _types(gives)}
    types |= {operation.takes for operation in OPERATIONS if operation.takes is not None} | {Error}
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "banditmesh sidecar",
            "version": __version__,
            "description": "A node of a live mesh, for programs in any language on the same machine.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(gives: Any) -> tuple[Any, ...]:
    if isinstance(gives, str):
        return ()
    return gives if isinstance(gives, tuple) else (gives,)


def _describe(operation: Operation, schema_of: dict[Any, Any]) -> dict[str, Any]:
    errors = _ALWAYS | (_WITH_BODY if operation.takes is not None else {})
    responses = {str(status): _response(text, JSON, schema_of[Error]) for status, text in errors.items()}
    for status, gives in operation.gives.items():
        if isinstance(gives, str):
            responses[str(status)] = _response(_TEXTS[status], gives, {"type": "string"})
        else:
            found = [schema_of[one] for one in _types(gives)]
            schema = found[0] if len(found) == 1 else {"anyOf": found}
            responses[str(status)] = _response(_TEXTS[status], JSON, schema)
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": dict(sorted(responses.items())),
        "security": [{}] if operation.path in OPEN else [{}, {"token": []}],
    }
    if operation.takes is not None:
        content = {JSON: {"schema": schema_of[operation.takes]}}
        described["requestBody"] = {"required": True, "content": content}
    if "{name}" in operation.path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        described["parameters"] = [name]
    if operation.query is not None:
        query = {"name": operation.query, "in": "query", "required": False, "schema": {"type": "string"}}
        described.setdefault("parameters", []).append(query)
    return described


_TEXTS = {
    200: "done",
    404: "there is none of that name",
    422: "refused, with the reason",
    503: "not now: too many callers, a full or busy disk, or a node that leaves; Retry-After says when to ask again",
}


def _response(text: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": text, "content": {media: {"schema": schema}}}
