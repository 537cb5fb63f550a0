"""Who may ask a server of this machine: programs and, of web pages, its own alone.

A sidecar that listens on loopback or on a Unix socket lets in whoever can reach it. A web page must not: the browser
that shows it runs on the same machine and would carry its requests here. So, in this order,

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
import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:\[\]@/?#]+)(?::[0-9]{1,5})?", re.ASCII)
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
        scheme, _, given = b" ".join(headers.get(b"authorization", [])).partition(b" ")
        # The comparison takes as long for a token that begins well as for any other.
        if hmac.compare_digest(given.strip(), self._token) and scheme.lower() == b"bearer":
            return None
        line = "a token is required here: send 'Authorization: Bearer TOKEN'" if not given else "the token is wrong"
        return Refusal(401, line)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The same application, behind this guard."""
        from starlette.responses import JSONResponse

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            refusal = self.refusal(scope["method"], scope["path"], scope["headers"])
            if refusal is None:
                await app(scope, receive, send)
            else:
                headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
                answer = JSONResponse({"error": refusal.error}, refusal.status, headers)
                await answer(scope, receive, send)

        return guarded


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _opens(method: str, headers: dict[bytes, list[bytes]]) -> bool:
    """Whether a browser opens a page of its own for this, and not within another one."""
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
