"""A client of a node's sidecar, for programs in Python; it needs nothing but the standard library.

A connection is kept and used again, and threads may share a client: each uses its own connection while it asks.

Asking again is always safe, so the client does it: a reward counts once by its ticket or its key, however often it is
sent. If a connection is lost or the sidecar is starting again, `observe`, `observe_many`, `step` and `withdraw` go
on trying for `patience` seconds; all other calls try once more, on a new connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import quote, urlsplit

from ...errors import InputError, SidecarError

#: Pauses between tries, in seconds; the last one is repeated.
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
#: Answers that may be other ones in a moment: too many at a time, and a disk that is full or busy.
_NOT_NOW = (429, 503)
_Body: TypeAlias = dict[str, object]


class _Pair(NamedTuple):
    arm: str
    ticket: str


class Chosen(_Pair):
    """An arm to pull, and the ticket by which its reward is reported; it unpacks into these two.

    Attributes
    ----------
    probability : float or None
        How probable the arm was, of those that were available; 1 for first pulls, None where the policy draws.
    segment : str or None
        The segment in which it was chosen; None if in none, also where the bandit lists its segments and not this one.
    """

    probability: float | None
    segment: str | None

    def __new__(  # noqa: D102
        cls, arm: str, ticket: str, probability: float | None = None, segment: str | None = None
    ) -> Chosen:
        self = super().__new__(cls, arm, ticket)
        self.probability = probability
        self.segment = segment
        return self


class Client:
    """A client of one node's sidecar.

    Parameters
    ----------
    url : str
        Where the sidecar listens: `http://127.0.0.1:7780`, or the path of its Unix socket, also as `unix:/path`.
    token : str, optional
        What a sidecar asks for that does not only listen on loopback.
    timeout : float
        How long a call may take, in seconds, however little of its answer comes at a time.
    patience : float
        How long `observe`, `observe_many`, `step` and `withdraw` go on trying while the sidecar is out of reach, in
        seconds.
    most_bytes : int, optional
        The most bytes of an answer; without it, whatever comes in time.

    Examples
    --------
    ::

        with Client("http://127.0.0.1:7780") as node:
            arm, ticket = node.choose()
            node.observe(ticket, reward=pull(arm))

    An address that cannot be one is refused before anything is asked:

    >>> Client("ftp://somewhere")
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: url must be http://HOST:PORT or the path of a Unix socket, got 'ftp://somewhere'
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        patience: float = 10.0,
        most_bytes: int | None = None,
    ) -> None:
        self._timeout = timeout
        self._patience = patience
        self._most_bytes = most_bytes
        self._idle: list[_Connection] = []
        self._headers = {"Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._path: str | None = None
        self._host, self._port = "localhost", 80
        if url.startswith("unix:") or url.startswith(("/", "./", "../")):
            self._path = url.removeprefix("unix:").removeprefix("//")
            return
        try:
            parts = urlsplit(url)
            known = parts.scheme == "http" and parts.hostname and parts.path in ("", "/") and not parts.query
            self._port = parts.port or 80
        except ValueError:
            known = None
        if not known:
            raise InputError(f"url must be http://HOST:PORT or the path of a Unix socket, got {url!r}")
        self._host = cast(str, parts.hostname)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            self._idle.pop().close()

    # Choosing and observing.

    def choose(
        self, among: Sequence[str] | None = None, *, bandit: str | None = None, segment: str | None = None
    ) -> Chosen:
        """An arm to pull, of all or of those that are available now, and its ticket; see `Node.choose`."""
        arms = None if among is None else list(among)
        answer = self._ask("POST", "/v1/choose", _given(among=arms, bandit=bandit, segment=segment))
        return Chosen(answer["arm"], answer["ticket"], answer.get("probability"), answer.get("segment"))

    def observe(
        self,
        ticket: Chosen | str | None,
        reward: float,
        *,
        arm: str | None = None,
        key: str | None = None,
        bandit: str | None = None,
        segment: str | None = None,
    ) -> str:
        """Report a reward, by the ticket of its choice or, without one, by its arm.

        Parameters
        ----------
        ticket : Chosen, str or None
            What `choose` gave.
        reward : float
            What the arm paid.
        arm : str, optional
            The arm, if there is no ticket.
        key : str, optional
            What makes a reward without a ticket count once; a random one unless given.
        bandit, segment : str, optional
            Whose arm it is, if there is no ticket; the default bandit's without a segment unless given.

        Returns
        -------
        str
            "counted", or "already_counted" if the same was reported before.

        Raises
        ------
        InputError
            If the node refuses it; the line says why.
        SidecarError
            If the node is out of reach or cannot store it now.
        """
        body = _observation(ticket, reward, arm, key, bandit=bandit, segment=segment)
        answer: str = self._ask("POST", "/v1/observe", body, patience=self._patience)["answer"]
        return answer

    def observe_many(
        self, observations: Iterable[tuple[Chosen | str, float] | Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Report many rewards at once, in one transaction.

        Parameters
        ----------
        observations : iterable
            Of (ticket, reward), or of mappings as the HTTP API takes them.

        Returns
        -------
        list of dict
            For each one `{"answer": "counted"}`, `{"answer": "already_counted"}`, or `{"answer": "refused",
            "error": ...}`.
        """
        body = [
            _observation(**{"ticket": None, "reward": None, **one})
            if isinstance(one, Mapping)
            else _observation(one[0], one[1])
            for one in observations
        ]
        answer = self._ask("POST", "/v1/observe", body, patience=self._patience, most_status=422)
        if "answers" not in answer:
            raise InputError(answer["error"])
        answers: list[dict[str, Any]] = answer["answers"]
        return answers

    def step(
        self,
        ticket: Chosen | str | None = None,
        reward: float | None = None,
        among: Sequence[str] | None = None,
        *,
        bandit: str | None = None,
        segment: str | None = None,
    ) -> Chosen:
        """Report the reward of the last choice, if there is one, and choose again: `observe` and `choose` in one call.

        Parameters
        ----------
        ticket : Chosen, str or None
            What `choose` or `step` gave; None to choose only.
        reward : float or None
            What the arm paid.
        among, bandit, segment : optional
            Of the next choice, as of `choose`.

        Returns
        -------
        Chosen
            The next arm to pull, and its ticket. The reward counts by then, and had a part in the choice.

        Raises
        ------
        InputError
            If the node refuses the reward; the line says why. The choice that came with it falls out with its ticket.
        SidecarError
            If the node is out of reach or cannot store the reward now.
        """
        if (ticket is None) != (reward is None):
            raise InputError("a step needs a ticket and its reward, or neither, got one of them")
        body = _given(among=None if among is None else list(among), bandit=bandit, segment=segment)
        if ticket is not None:
            body["observations"] = [_observation(ticket, reward, None, None)]
        answer = self._ask("POST", "/v1/step", body, patience=self._patience)
        for one in answer["answers"]:
            if one["answer"] == "refused":
                raise InputError(one["error"])
        return Chosen(answer["arm"], answer["ticket"], answer.get("probability"), answer.get("segment"))

    def withdraw(self, ticket: Chosen | str) -> str:
        """Close the ticket of a choice that came to nothing, such as an offer that was never shown: nothing is counted.

        Returns
        -------
        str
            "withdrawn", or "already_closed" if a reward or a withdrawal had closed it before.
        """
        body = {"ticket": ticket[1] if isinstance(ticket, tuple) else ticket}
        answer: str = self._ask("POST", "/v1/withdraw", body, patience=self._patience)["answer"]
        return answer

    # Looking.

    def state(self) -> dict[str, Any]:
        """What the node knows of each arm, and what it counted."""
        return self._ask("GET", "/v1/state")

    def peers(self) -> list[dict[str, Any]]:
        """How each link is."""
        peers: list[dict[str, Any]] = self._ask("GET", "/v1/peers")["peers"]
        return peers

    def lives(self, node: str) -> list[str]:
        """Which lives the node knows of a member, as 16 hexadecimal digits each."""
        lives: list[str] = self._ask("GET", f"/v1/lives/{quote(node, safe='')}")["lives"]
        return lives

    def ready(self) -> str | None:
        """None if the node is ready, else why it is not."""
        reason: str | None = self._ask("GET", "/readyz", most_status=503)["reason"]
        return reason

    def metrics(self) -> str:
        """What Prometheus would read."""
        return self._request("GET", "/metrics", None, 0.0, 299)[1].decode()

    # Changing.

    def set_arms(self, arms: Iterable[str | Mapping[str, Any]], bandit: str | None = None) -> None:
        """Give a bandit another arm set, until the node reads its configuration again: names, or tables as there."""
        self._ask("PUT", "/v1/arms", _given(arms=[*map(_arm, arms)], bandit=bandit))

    def add_arm(self, arm: str | Mapping[str, Any], bandit: str | None = None) -> None:
        """Give a bandit one more arm, until the node reads its configuration again: a name, or a table as there."""
        self._ask("POST", "/v1/arms", _given(arm=_arm(arm), bandit=bandit))

    def remove_arm(self, name: str, bandit: str | None = None) -> None:
        """Have a bandit choose an arm no more, until the node reads its configuration again."""
        query = "" if bandit is None else f"?bandit={quote(bandit, safe='')}"
        self._ask("DELETE", f"/v1/arms/{quote(name, safe='')}{query}")

    def add_peer(self, name: str, address: str | None = None) -> None:
        """Link the node with a neighbour; without an address it waits for the neighbour to dial."""
        self._ask("POST", "/v1/peers", _given(name=name, address=address))

    def remove_peer(self, name: str) -> None:
        """End the link with a neighbour."""
        self._ask("DELETE", f"/v1/peers/{quote(name, safe='')}")

    def notice(self, data: bytes) -> None:
        """Hand over a notice that the authority signed; the node passes it to all others."""
        self._ask("POST", "/v1/notices", {"notice": base64.b64encode(data).decode()})

    def backup(self) -> bytes:
        """A copy of the node's state, as the bytes of a file."""
        return self._request("POST", "/v1/backup", {}, 0.0, 299)[1]

    # Asking.

    def _ask(
        self, method: str, path: str, body: object = None, *, patience: float = 0.0, most_status: int = 299
    ) -> dict[str, Any]:
        _, data = self._request(method, path, body, patience, most_status)
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise SidecarError(f"{self._where} does not answer like a sidecar; is it one?")
        return answer

    def _request(self, method: str, path: str, body: object, patience: float, most_status: int) -> tuple[int, bytes]:
        """Ask until there is an answer, or patience ends; an answer above `most_status` is an error."""
        try:
            # What is not a number is an error here, and not an answer's.
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"what is sent must be JSON with finite numbers: {error}") from None
        end = time.monotonic() + patience
        for n_tries in range(1_000_000):
            last = time.monotonic() >= end
            try:
                status, answer = self._exchange(method, path, data)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                # A connection that was kept may have ended meanwhile, which says nothing of the sidecar.
                if last and (n_tries > 0 or isinstance(error, TimeoutError)):
                    raise SidecarError(
                        f"no answer from {self._where}: {_words(error)}; is the sidecar running?"
                    ) from None
            else:
                if status not in _NOT_NOW or last or status <= most_status:
                    return status, self._checked(status, answer, most_status)
            if patience:
                time.sleep(min(_PAUSES[min(n_tries, len(_PAUSES) - 1)], max(0.0, end - time.monotonic())))
        raise AssertionError("patience ends before tries do")

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        """One request and its answer, on a connection that is kept if both went well."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connection()
        headers = self._headers if data is None else self._headers | {"Content-Type": "application/json"}
        try:
            connection.end_in(self._timeout)
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            answer = response.read(None if self._most_bytes is None else self._most_bytes + 1)
            if self._most_bytes is not None and len(answer) > self._most_bytes:
                raise SidecarError(f"{self._where} answers with more than {self._most_bytes:,} bytes; is it a sidecar?")
        except BaseException:
            # Whatever else is kept is as old, and the other end has ended it as well.
            connection.close()
            self.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, answer

    def _connection(self) -> _Connection:
        if self._path is not None:
            return _UnixConnection(self._path, self._timeout)
        return _Connection(self._host, self._port, timeout=self._timeout)

    def _checked(self, status: int, answer: bytes, most_status: int) -> bytes:
        if status <= most_status:
            return answer
        try:
            line = str(json.loads(answer)["error"])
        except (ValueError, KeyError, TypeError):
            raise SidecarError(f"{self._where} does not answer like a sidecar; is it one? (status {status})") from None
        if status in (401, 403, 421) or status >= 429:
            raise SidecarError(line)
        raise InputError(line)

    @property
    def address(self) -> str:
        """Where it asks, written in one way."""
        return self._where

    @property
    def _where(self) -> str:
        if self._path is not None:
            return f"unix:{self._path}"
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"


class _Socket(socket.socket):
    """A socket that is read until a given time: a socket's timeout would begin anew with every byte that comes."""

    end = 0.0

    def recv_into(self, *given: Any) -> int:
        left = self.end - time.monotonic()
        if left <= 0.0:
            raise TimeoutError("timed out")
        self.settimeout(left)
        return super().recv_into(*given)


class _Connection(http.client.HTTPConnection):
    """HTTP whose answers come in time or not at all."""

    _end = 0.0

    def end_in(self, seconds: float) -> None:
        """Have the next answer come within `seconds`."""
        self._end = time.monotonic() + seconds
        if self.sock is not None:
            self.sock.settimeout(seconds)
            self.sock.end = self._end

    def connect(self) -> None:
        super().connect()
        self._take(_Socket(fileno=self.sock.detach()))

    def _take(self, sock: _Socket) -> None:
        sock.settimeout(self.timeout)
        sock.end = self._end
        self.sock: Any = sock


class _UnixConnection(_Connection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self._take(_Socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self.sock.connect(self._path)


def _observation(ticket: object, reward: object, arm: object = None, key: object = None, **where: object) -> _Body:
    """An observation as the API takes it; one without ticket and key gets a key, so that it can be sent again."""
    if isinstance(ticket, tuple):
        ticket = ticket[1]
    if ticket is None and key is None:
        key = uuid.uuid4().hex
    return _given(ticket=ticket, arm=arm, key=key, **where) | {"reward": reward}


def _given(**values: object) -> _Body:
    """What is not None."""
    return {name: value for name, value in values.items() if value is not None}


def _arm(arm: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"name": arm} if isinstance(arm, str) else dict(arm)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
