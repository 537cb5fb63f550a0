"""Who may use the page, by requests and websockets: nobody through another site, and afar by token only."""

import asyncio
from urllib.parse import urlencode, urlsplit

import pytest

from banditmesh.errors import InputError
from banditmesh.web import access
from banditmesh.web.access import COOKIE, VISITOR, Access, sign_in_link
from banditmesh.web.server import listening

TOKEN = "correct-horse-battery"
OWN = {"host": "127.0.0.1:8470"}


def ask(guard, headers, *, kind="http", method="GET", path="/", query="", body=b"", seen=None):
    """The status of an answer (of a websocket: 101, or its code), its headers and its body."""
    sent = []

    async def app(scope, receive, send):
        if seen is not None:
            seen.append(scope[VISITOR])
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            pass
        status = 200 if message["type"] == "http.request" else 499
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"the page"})

    parts = [body[start : start + 2**20] for start in range(0, len(body), 2**20)] or [b""]
    messages = [
        {"type": "http.request", "body": part, "more_body": place < len(parts) - 1} for place, part in enumerate(parts)
    ]

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "client": ("192.0.2.7", 1234),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(guard.around(app)(scope, receive, send))
    if kind == "websocket":
        return 101 if sent[0]["type"] == "websocket.accept" else sent[0]["code"]
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        (OWN, True),
        ({"host": "localhost:8470", "origin": "http://localhost:8470"}, True),
        ({**OWN, "origin": "http://evil.example"}, False),
        ({**OWN, "origin": "null"}, False),
        ({**OWN, "origin": "http://127.0.0.1:9999"}, False),
        ({"host": "evil.example"}, False),
        ({"host": "evil.example", "origin": "http://evil.example"}, False),
        ({**OWN, "sec-fetch-site": "cross-site"}, False),
        ({**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, False),
        ({**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, False),
        ({}, False),
    ],
)
def test_only_the_pages_own_requests_and_websockets_get_in(kind, headers, allowed):
    answer = ask(Access("127.0.0.1"), headers, kind=kind)
    got_in = answer == 101 if kind == "websocket" else answer[0] == 200
    assert got_in is allowed


def test_link_on_another_site_may_lead_to_the_page_but_a_form_may_not():
    link = {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert ask(Access("127.0.0.1"), link)[0] == 200
    assert ask(Access("127.0.0.1"), link, method="POST")[0] == 403


def test_answers_forbid_framing_and_requests_to_others():
    for headers in (OWN, {"host": "evil.example"}):
        _, found, _ = ask(Access("127.0.0.1"), headers)
        assert found["x-frame-options"] == "DENY"
        assert found["content-security-policy"].startswith("default-src 'self' ")
        assert "frame-ancestors 'none'" in found["content-security-policy"]


def test_large_request_is_refused_whatever_its_header_says(monkeypatch):
    monkeypatch.setattr(access, "MAX_BYTES", 2**20)
    guard = Access("127.0.0.1")
    assert ask(guard, {**OWN, "content-length": str(2**20 + 1)}, method="POST")[0] == 413
    assert ask(guard, OWN, method="POST", body=bytes(3 * 2**20))[0] == 499
    assert ask(guard, OWN, method="POST", body=bytes(2**20))[0] == 200


def test_beyond_loopback_a_token_opens_the_page_and_its_websocket():
    guard = Access("0.0.0.0", hosts=["lab.example"], token=TOKEN)
    host = {"host": "lab.example:8470"}
    status, _, form = ask(guard, host)
    assert status == 401
    assert b'type="password"' in form
    assert ask(guard, host, path="/compare")[0] == 401
    assert ask(guard, host, kind="websocket") == 1008
    assert ask(guard, {**host, "authorization": f"Bearer {TOKEN}"})[0] == 200
    wrong = ask(guard, host, method="POST", path="/sign-in", body=b"token=wrong")
    assert wrong[0] == 401
    assert "set-cookie" not in wrong[1]
    status, found, _ = ask(guard, host, method="POST", path="/sign-in", body=f"token={TOKEN}".encode())
    assert status == 303
    assert "HttpOnly" in found["set-cookie"]
    assert "SameSite=strict" in found["set-cookie"]
    assert TOKEN not in found["set-cookie"]
    cookie = {"cookie": found["set-cookie"].partition(";")[0]}
    assert ask(guard, {**host, **cookie})[0] == 200
    assert ask(guard, {**host, **cookie}, kind="websocket") == 101
    # Of another run of the server, it is worth nothing.
    assert ask(Access("0.0.0.0", hosts=["lab.example"], token=TOKEN), {**host, **cookie})[0] == 401
    assert ask(guard, {**host, "cookie": f"{COOKIE}=guess"})[0] == 401
    assert ask(guard, {**host, **cookie, "origin": "http://evil.example"}, kind="websocket") == 1008


def test_link_with_the_token_signs_in_and_leads_to_this_server_only():
    guard = Access("127.0.0.1", token=TOKEN)
    for to, leads_to in (("/mesh", "/mesh"), ("//evil.example", "/")):
        parts = urlsplit(sign_in_link("http://127.0.0.1:8470/", TOKEN, to))
        status, found, _ = ask(guard, OWN, path=parts.path, query=parts.query)
        assert (status, found["location"]) == (303, leads_to)
        assert ask(guard, {**OWN, "cookie": found["set-cookie"].partition(";")[0]})[0] == 200
    for query in ("token=wrong", "token=", "to=/mesh"):
        status, found, form = ask(guard, OWN, path="/sign-in", query=query)
        assert (status, "set-cookie" in found) == (401, False)
        assert b'type="password"' in form


@pytest.mark.parametrize("token", [None, TOKEN])
def test_browsers_are_told_apart_by_names_that_the_server_signed(token):
    guard = Access("127.0.0.1", token=token)
    seen = []

    def visit(cookie="", **more):
        """Whose request it is, and the cookie that comes back."""
        _, found, _ = ask(guard, {**OWN, **({"cookie": cookie} if cookie else {})}, seen=seen, **more)
        return seen.pop() if seen else None, found.get("set-cookie", "").partition(";")[0]

    sign_in = {"method": "POST", "path": "/sign-in", "body": f"token={TOKEN}".encode()} if token else {}
    (_, ann), (_, bob) = visit(**sign_in), visit(**sign_in)
    assert ann
    assert ann != bob
    for cookie in (ann, bob):
        name, again = visit(cookie)
        assert name == cookie.partition("=")[2].partition(".")[0]
        assert again == ""
    # One that it did not sign names nobody, and without a token such a visitor goes by the address.
    forged = f"{ann}0"
    assert visit(forged)[0] == (None if token else "from 192.0.2.7")


@pytest.mark.parametrize(
    ("site", "leads_to"), [("none", "/compare?seed=3&amp;ttls=%222%22"), ("cross-site", "/"), ("", "/")]
)
def test_link_is_gone_on_to_after_the_sign_in_unless_another_site_led_to_it(site, leads_to):
    guard = Access("0.0.0.0", hosts=["lab.example"], token=TOKEN)
    asked = {"host": "lab.example", "accept": "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    asked |= {"sec-fetch-site": site} if site else {}
    status, _, form = ask(guard, asked, path="/compare", query="seed=3&ttls=%222%22")
    assert status == 401
    assert f'name="to" value="{leads_to}"' in form.decode()


@pytest.mark.parametrize(
    ("to", "leads_to"),
    [
        ("/compare?seed=3", "/compare?seed=3"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/x\r\nSet-Cookie: a=b", "/"),
        ("", "/"),
    ],
)
def test_sign_in_leads_to_this_server_only(to, leads_to):
    guard = Access("0.0.0.0", hosts=["lab.example"], token=TOKEN)
    body = urlencode({"token": TOKEN, "to": to}).encode()
    status, found, _ = ask(guard, {"host": "lab.example"}, method="POST", path="/sign-in", body=body)
    assert (status, found["location"]) == (303, leads_to)
    wrong = ask(guard, {"host": "lab.example"}, method="POST", path="/sign-in", body=b"token=x&to=%22%3E%3Cscript%3E")
    assert b"<script>" not in wrong[2]


def test_server_listens_beyond_loopback_only_with_a_token():
    with pytest.raises(
        InputError,
        match=r"--host and --port must be loopback without a token, got 0\.0\.0\.0:\d+; give --token-file as well",
    ):
        listening("0.0.0.0", 0, None)
    for host, token in (("127.0.0.1", None), ("0.0.0.0", TOKEN)):
        with listening(host, 0, token) as listener:
            assert listener.getsockname()[0] == host
