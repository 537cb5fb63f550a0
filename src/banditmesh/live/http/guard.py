"""Who may ask a server of this machine: programs and, of web pages, its own alone.

A sidecar that listens on loopback or on a Unix socket lets in anything that can reach it. A web page must not: the
browser that shows it runs on the same machine and would carry its requests here. So, in this order,

- Host must name the sidecar: localhost, the address that it listens on, or one of the configured names. A page of
  another site whose name suddenly means 127.0.0.1 (DNS rebinding) has its own name there.
- Origin and Sec-Fetch-Site, which browsers set and pages cannot, must not speak of another origin.
- Where there is a token, it must be there (`Authorization: Bearer ...`), but for the two probes.
- A body must be application/json, which no HTML form can send; POST and PUT must say so even without one.

The page of `banditmesh serve` is guarded here too. Its own uploads are other bodies, and a link on another page may
lead to it: opening it does nothing.

There are no CORS headers, so no page of another origin can read an answer either.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from ...errors import FileError, InputError, SidecarError
from ..logs import warn_if_exposed
from ..names import Address
from .asgi import ASGIApp, Receive, Scope, Send, answer_error

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:\[\]@/?#]+)(?::[0-9]{1,5})?", re.ASCII)
#: How many letters a token has at least.
LEAST_LENGTH: Final = 16
BACKLOG: Final = 128
_ALWAYS_MINE: Final = ("localhost", "127.0.0.1", "[::1]")


class Refusal(NamedTuple):
    """An answer that says no."""

    status: int
    error: str


class Guard:
    """Refuses what may not be asked, before anything else looks at it.

    Parameters
    ----------
    address : str or None
        The IP address that the sidecar listens on; None on a Unix socket.
    hosts : iterable of str
        Further names that clients and proxies may call it by.
    token : str, optional
        What every request must bring.
    open_paths : collection of str
        Paths that need no token.
    service : str
        What is guarded, in a word.
    option : str
        How its further names are set.
    json_only : bool
        Whether a body must be JSON.
    may_be_linked : bool
        Whether a link on a page of another site may lead here.

    Examples
    --------
    >>> guard = Guard("127.0.0.1")
    >>> guard.refusal("GET", "/v1/state", [(b"host", b"127.0.0.1:7780")]) is None
    True
    >>> guard.refusal("GET", "/v1/state", [(b"host", b"evil.example")]).status
    421
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        hosts: Iterable[str] = (),
        token: str | None = None,
        open_paths: Collection[str] = (),
        service: str = "sidecar",
        option: str = "api.hosts",
        json_only: bool = True,
        may_be_linked: bool = False,
    ) -> None:
        self._hosts = {*_ALWAYS_MINE, *(host.lower() for host in hosts)}
        self._any_address = False
        if address is not None:
            parsed = ipaddress.ip_address(address)
            self._any_address = parsed.is_unspecified
            self._hosts.add(f"[{parsed}]" if parsed.version == 6 else str(parsed))
        self._token = None if token is None else token.encode()
        self._open_paths = open_paths
        self._service, self._option = service, option
        self._json_only, self._may_be_linked = json_only, may_be_linked

    def refusal(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """Why a request is refused, or None."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name.lower(), []).append(value)
        return (
            self._refuse_host(found)
            or self._refuse_pages(method, found)
            or (None if path in self._open_paths else self._refuse_stranger(found))
            or (_refuse_content(method, found) if self._json_only else None)
        )

    def _refuse_host(self, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        values = headers.get(b"host", [])
        if len(values) != 1:
            return Refusal(400, f"a request must have one Host header, got {len(values)}")
        host = values[0].decode("latin-1").lower()
        parts = _HOST.fullmatch(host)
        name = parts[1].removesuffix(".") if parts else ""
        if name in self._hosts or (self._any_address and _is_address(name)):
            return None
        return Refusal(
            421, f"Host must be this {self._service}'s, got {host[:100]!r}; other names are set with {self._option}"
        )

    def _refuse_pages(self, method: str, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        """Origin, where there is one, must be the server's own: the Host that was just found to be."""
        host = headers[b"host"][0].lower()
        own = {b"http://" + host, b"https://" + host}
        origins = {one.lower() for one in headers.get(b"origin", [])}
        sites = set(headers.get(b"sec-fetch-site", []))
        if origins <= own and (sites <= {b"same-origin", b"none"} or (self._may_be_linked and _opens(method, headers))):
            return None
        return Refusal(403, f"a web page of another origin may not ask this {self._service}")

    def _refuse_stranger(self, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        if self._token is None:
            return None
        given = b" ".join(headers.get(b"authorization", []))
        if brings_token(given, self._token):
            return None
        is_there = bool(given.partition(b" ")[2])
        line = "the token is wrong" if is_there else "a token is required here: send 'Authorization: Bearer TOKEN'"
        return Refusal(401, line)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The same application, behind this guard."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            refusal = self.refusal(scope["method"], scope["path"], scope["headers"])
            if refusal is None:
                await app(scope, receive, send)
            else:
                headers = ((b"www-authenticate", b"Bearer"),) if refusal.status == 401 else ()
                await answer_error(send, refusal.status, refusal.error, headers)

        return guarded


def brings_token(authorization: bytes, token: bytes) -> bool:
    """Whether a request's Authorization header has the token."""
    scheme, _, given = authorization.partition(b" ")
    # The comparison takes as long for a token that begins well as for any other.
    return hmac.compare_digest(given.strip(), token) and scheme.lower() == b"bearer"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _opens(method: str, headers: dict[bytes, list[bytes]]) -> bool:
    """Whether a browser opens this as a page, and not within another one."""
    asked = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    return method == "GET" and asked == ([b"navigate"], [b"document"])


def _refuse_content(method: str, headers: dict[bytes, list[bytes]]) -> Refusal | None:
    has_body = headers.get(b"content-length", [b"0"]) != [b"0"] or b"transfer-encoding" in headers
    if method not in ("POST", "PUT", "PATCH") and not has_body:
        return None
    kinds = [value.partition(b";")[0].strip().lower() for value in headers.get(b"content-type", [])]
    if kinds == [b"application/json"]:
        return None
    got = repr(b", ".join(kinds).decode("latin-1")[:100]) if kinds else "none"
    return Refusal(415, f"Content-Type must be application/json, got {got}")


def read_token(path: str | PathLike[str]) -> str:
    """The token in a file: one word of at least 16 printable characters."""
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise FileError(f"the token's file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if len(token) < LEAST_LENGTH or not token.isprintable() or " " in token:
        raise FileError(
            f"the token's file {path} must hold one word of at least {LEAST_LENGTH} ASCII characters; "
            "`openssl rand -hex 32` makes one"
        )
    warn_if_exposed(path)
    return token


@contextmanager
def bind(address: str, token: str | None = None) -> Iterator[socket.socket]:
    """A socket that listens on `HOST:PORT` or `unix:PATH`; callers are answered once it is served.

    A sidecar answers everything that reaches it. So an address other than loopback is refused unless there is a token,
    and a Unix socket is for its user alone.

    Examples
    --------
    >>> with bind("127.0.0.1:0") as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    >>> with bind("0.0.0.0:7780"):
    ...     pass
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: api.listen must be loopback without a token, got 0.0.0.0:7780; set api.token_file,
    or listen on 127.0.0.1
    """
    if address.startswith("unix:"):
        with _bind_unix(Path(address.removeprefix("unix:"))) as listener:
            yield listener
        return
    remedy = "set api.token_file, or listen on 127.0.0.1"
    with listen_on(*Address.parse(address, "api.listen"), token, setting="api.listen", remedy=remedy) as listener:
        yield listener


def listen_on(host: str, port: int, token: str | None, *, setting: str, remedy: str) -> socket.socket:
    """A TCP socket that listens; beyond loopback only with a token.

    `setting` is what an error calls the place where host and port were given, `remedy` what to do without a token.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InputError(f"{setting}: {host} has no address here: {error.strerror}") from None
    family, _, _, _, where = found[0]
    address = Address.of(where)
    if token is None and not ipaddress.ip_address(address.host).is_loopback:
        raise InputError(f"{setting} must be loopback without a token, got {Address(host, port)}; {remedy}")
    # With the protocol named, the event loop sends what there is at once, instead of waiting for more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SidecarError(
            f"{setting}: cannot listen on {Address(host, port)}: {error.strerror}; choose another port"
        ) from None
    return listener


@contextmanager
def _bind_unix(path: Path) -> Iterator[socket.socket]:
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # Between bind and chmod others could connect; so the mask does it. It is the whole process's, for an instant.
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
            with suppress(FileNotFoundError):
                if path.stat().st_ino == bound:
                    path.unlink()


def _clear(path: Path) -> None:
    """Remove the socket of a sidecar that has ended; anything else stays."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise InputError(f"api.listen: {path} exists and is not a socket; remove it, or choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SidecarError(f"api.listen: another process answers on unix:{path}; stop it, or choose another path")
