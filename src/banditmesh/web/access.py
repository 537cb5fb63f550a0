"""Who may use the page: on loopback everyone who can reach it, elsewhere those with the token.

Host, Origin and Sec-Fetch-Site are checked as a sidecar checks them, of websockets too, so that no page of another site
can control this one. A browser cannot send a token by itself, so it signs in once: the token is exchanged for a cookie
that is worth nothing to another run of the server, that no script can read and that no other site's request carries.
A visitor who came by a direct link is then sent on to it; a link from another site leads to the first view. Programs
may send `Authorization: Bearer TOKEN`.

Every browser has a cookie with a name that this server gave and signed, so that visitors can be told apart: with a
token it is the one of the sign-in, without one it opens nothing. A visitor without one is known by address.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode

from ..live.http.guard import Guard, Refusal, brings_token

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "banditmesh_page"
#: Where no token is asked for: another name, since browsers send the cookies of one server to all on the same host.
NAME_COOKIE: Final = "banditmesh_visitor"
#: Where a request's scope says whose it is.
VISITOR: Final = "banditmesh.visitor"
SIGN_IN: Final = "/sign-in"
#: The most bytes of a request: the largest upload, and what a form adds to it.
MAX_BYTES: Final = 9 * 2**20
#: The most bytes of a sign-in.
_MAX_FORM: Final = 16384
#: What every answer says: no other site may frame the page, and the page itself contacts no other server. Without
#: any referrer, browsers would not say either that a sign-in comes from here.
HEADERS: Final = (
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'none'; form-action 'self'",
    ),
)
#: An address of this server, and not of another one: what follows the first slash is no slash.
_OWN_LINK: Final = re.compile(r"/(?![/\\])[\x21-\x7e]{0,4000}")
_FORM: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>banditmesh: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:26rem;margin:12vh auto;padding:0 1rem}}
input,button{{font:inherit;padding:.4rem .6rem;width:100%;box-sizing:border-box;margin:.3rem 0}}</style>
<h1>banditmesh</h1><p>{line}</p><form method="post" action="{action}">
<input type="hidden" name="to" value="{to}"><label>Token
<input type="password" name="token" autocomplete="current-password" autofocus required></label>
<button>Sign in</button></form></html>"""
_ASK: Final = (
    "This page is served beyond this machine and asks for its token, the one that the server was started with."
)


class Access:
    """Lets requests and websockets through, or answers them itself.

    Parameters
    ----------
    address : str
        The IP address that the server listens on.
    hosts : iterable of str
        Further names that browsers may call it by.
    token : str, optional
        What users must know.
    """

    def __init__(self, address: str, *, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self._guard = Guard(
            address, hosts=hosts, service="page", option="--allow-host", json_only=False, may_be_linked=True
        )
        self._token = token
        self._cookie = COOKIE if token is not None else NAME_COOKIE
        self._key = secrets.token_bytes(32)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The same application, behind this."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] not in ("http", "websocket"):
                await app(scope, receive, send)
                return
            refusal = self._guard.refusal(scope.get("method", "GET"), scope["path"], scope["headers"])
            visitor = self._visitor(scope)
            if refusal is None and self._token is not None and visitor is None and not self._is_told(scope):
                await self._ask(scope, receive, send)
            elif refusal is not None:
                await _refuse(scope, receive, send, refusal)
            elif _length(scope) > MAX_BYTES:
                await _refuse(scope, receive, send, Refusal(413, f"a request may have {MAX_BYTES:,} bytes at most"))
            else:
                host, _ = scope.get("client") or ("", 0)
                scope = {**scope, VISITOR: visitor or f"from {host}"}
                is_new = self._token is None and visitor is None and scope["type"] == "http" and _wants_a_page(scope)
                named = f"{self._cookie}={self._new_name()}; Path=/; HttpOnly; SameSite=Lax"
                await app(scope, _bounded(receive), _with_headers(send, named if is_new else ""))

        return guarded

    def _is_told(self, scope: Scope) -> bool:
        """Whether a request brings the token itself."""
        assert self._token is not None
        return brings_token(dict(scope["headers"]).get(b"authorization", b""), self._token.encode())

    def _visitor(self, scope: Scope) -> str | None:
        """The name that this server gave a browser, from its cookie; None without a signed one."""
        from starlette.requests import HTTPConnection

        cookie = HTTPConnection(scope).cookies.get(self._cookie, "")
        is_ours = hmac.compare_digest(cookie.encode(), self._signed(cookie).encode())
        return cookie.partition(".")[0] if is_ours else None

    def _new_name(self) -> str:
        return self._signed(secrets.token_hex(16))

    def _signed(self, name: str) -> str:
        """A visitor's name with the signature that it must have, whatever follows it now."""
        name = name.partition(".")[0]
        return f"{name}.{hmac.digest(self._key, name.encode(), 'sha256').hex()}"

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a visitor sign in, and refuse everything else."""
        from starlette.responses import HTMLResponse

        assert self._token is not None
        answer: Response
        if scope["type"] == "http" and scope["path"] == SIGN_IN and scope["method"] == "GET" and scope["query_string"]:
            # The link that the server itself prints; the token does not stay in the address bar.
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if hmac.compare_digest(given.encode(), self._token.encode()):
                answer = self._signed_in(parse_qs(scope["query_string"].decode("latin-1")).get("to", ["/"])[0])
            else:
                answer = HTMLResponse(_form("The token is wrong.", "/"), 401)
        elif scope["type"] == "http" and scope["path"] == SIGN_IN and scope["method"] == "POST":
            form = parse_qs((await _body(receive)).decode("latin-1"))
            given, to = (form.get(name, [""])[0] for name in ("token", "to"))
            if hmac.compare_digest(given.strip().encode(), self._token.encode()):
                answer = self._signed_in(to)
            else:
                answer = HTMLResponse(_form("The token is wrong.", to), 401)
        elif scope["type"] == "http" and scope["method"] == "GET" and _wants_a_page(scope):
            answer = HTMLResponse(_form(_ASK, _link_of(scope)), 401)
        else:
            line = f"a token is required here: sign in at {SIGN_IN}, or send 'Authorization: Bearer TOKEN'"
            await _refuse(scope, receive, send, Refusal(401, line))
            return
        await answer(scope, receive, _with_headers(send))

    def _signed_in(self, to: str) -> Response:
        """Sent on, with a cookie that opens all."""
        from starlette.responses import RedirectResponse

        answer = RedirectResponse(to if _OWN_LINK.fullmatch(to) else "/", 303)
        answer.set_cookie(COOKIE, self._new_name(), httponly=True, samesite="strict")
        return answer


def sign_in_link(url: str, token: str, to: str = "/") -> str:
    """The link that signs in whoever started the server.

    Examples
    --------
    >>> sign_in_link("http://127.0.0.1:8470/", "secret", "/mesh")
    'http://127.0.0.1:8470/sign-in?token=secret&to=/mesh'
    """
    return f"{url.rstrip('/')}{SIGN_IN}?{urlencode({'token': token, 'to': to}, safe='/')}"


def _form(line: str, to: str) -> str:
    return _FORM.format(line=line, action=SIGN_IN, to=escape(to, quote=True))


def _wants_a_page(scope: Scope) -> bool:
    """Whether a browser would display the answer."""
    return scope["path"] in ("/", SIGN_IN) or b"text/html" in dict(scope["headers"]).get(b"accept", b"")


def _link_of(scope: Scope) -> str:
    """Where a visitor wanted to go, if the browser says that no other site sent them."""
    if scope["path"] == SIGN_IN or dict(scope["headers"]).get(b"sec-fetch-site") not in (b"none", b"same-origin"):
        return "/"
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    from starlette.responses import JSONResponse

    if scope["type"] == "websocket":
        # Before it is accepted, closing it is an answer of 403.
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.error})
        return
    await JSONResponse({"error": refusal.error}, refusal.status)(scope, receive, _with_headers(send))


def _length(scope: Scope) -> int:
    text = dict(scope["headers"]).get(b"content-length", b"0").decode("latin-1")
    return int(text) if text.isdecimal() else 0


def _bounded(receive: Receive) -> Receive:
    """The same body, cut off at the maximum length, whatever its header said."""
    n_bytes = 0

    async def bounded() -> Message:
        nonlocal n_bytes
        message = await receive()
        if message["type"] == "http.request":
            n_bytes += len(message.get("body", b""))
            if n_bytes > MAX_BYTES:
                return {"type": "http.disconnect"}
        return message

    return bounded


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while len(body) <= _MAX_FORM:
        message: Any = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)
    return b""


def _with_headers(send: Send, cookie: str = "") -> Send:
    more = [(b"set-cookie", cookie.encode())] if cookie else []

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *HEADERS, *more]}
        await send(message)

    return sent
