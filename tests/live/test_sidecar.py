"""The sidecar over real sockets: every operation, strangers, and whatever a fuzzer makes of its own description."""

import asyncio
import contextlib
import functools
import http.client
import json
import random
import socket
import sqlite3
import stat
import time
import urllib.parse

import pytest
import schemas
import uvicorn
from sidecars import Beside, Disk, a_node

from banditmesh.errors import InputError, SidecarError
from banditmesh.live.http import connections, openapi, serving, sidecar
from banditmesh.live.http.fast import FastConnection
from banditmesh.live.http.plain import PlainConnection
from banditmesh.live.http.sidecar import Sidecar

DESCRIPTION = openapi.describe()
NAMED = {operation.name: operation for operation in openapi.OPERATIONS}
TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module", autouse=True, params=[PlainConnection, FastConnection])
def parser(request):
    """Everything holds with both parsers of HTTP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "connection_class", lambda: request.param)
        yield request.param


@pytest.fixture(scope="module")
def shared(tmp_path_factory, parser):
    """A sidecar for tests that change nothing, or nothing that another one looks at."""
    with Beside(a_node(tmp_path_factory.mktemp("shared"))) as running:
        yield running


@pytest.fixture
def beside(tmp_path):
    with Beside(a_node(tmp_path)) as running:
        yield running


def do(beside, name, body=None, *, path=None, **headers):
    """Ask for an operation; its answer is as the description says. Gives status and answer."""
    operation = NAMED[name]
    status, found, answer = beside.ask(operation.method, path or operation.path, body, **headers)
    check_described(operation, status, found, answer)
    return status, answer


def check_described(operation, status, headers, answer):
    responses = DESCRIPTION["paths"][operation.path][operation.method.lower()]["responses"]
    assert str(status) in responses, (operation.name, status, answer)
    [(media, content)] = responses[str(status)]["content"].items()
    assert headers["content-type"].partition(";")[0] == media
    if media == "application/json":
        assert schemas.problems(answer, content["schema"], DESCRIPTION) == []
    if status >= 400 and "error" in answer:
        assert answer["error"].isprintable()
    assert not [name for name in headers if name.startswith("access-control-")]
    assert ("retry-after" in headers) == (status == 503)


# Operations.


def test_every_operation_is_served_and_described():
    assert all(callable(getattr(Sidecar, name)) for name in NAMED)
    assert len(NAMED) == len(openapi.OPERATIONS)
    described = {(method.upper(), path) for path, of in DESCRIPTION["paths"].items() for method in of}
    assert described == {(operation.method, operation.path) for operation in openapi.OPERATIONS}


def test_description_is_served(shared):
    status, answer = do(shared, "describe")
    assert (status, answer) == (200, json.loads(json.dumps(DESCRIPTION)))


def test_a_choice_and_its_reward(beside):
    status, choice = do(beside, "choose", {})
    assert (status, choice["arm"]) == (200, "red")
    reported = {"ticket": choice["ticket"], "reward": 0.25}
    assert do(beside, "observe", reported) == (200, {"answer": "counted"})
    assert do(beside, "observe", reported) == (200, {"answer": "already_counted"})
    _, state = do(beside, "state")
    assert [(arm["name"], arm["own_count"], arm["mean"]) for arm in state["arms"]] == [
        ("red", 1, 0.25),
        ("blue", 0, None),
    ]
    assert (state["mesh"], state["node"], state["n_choices"]) == ("shop", "a", 1)


def test_a_choice_among_what_is_available(shared):
    assert do(shared, "choose", {"among": ["blue"]})[1]["arm"] == "blue"
    assert do(shared, "choose", {"among": None})[0] == 200


@pytest.mark.parametrize("among", [[], ["green"], ["red", "\n"]])
def test_a_choice_among_wrong_arms_is_refused(shared, among):
    status, answer = do(shared, "choose", {"among": among})
    assert (status, list(answer)) == (422, ["error"])


def test_a_step_reports_the_last_reward_and_chooses(beside):
    status, first = do(beside, "step", {})
    assert (status, first["answers"]) == (200, [])
    reward = {"ticket": first["ticket"], "reward": 0.5}
    status, second = do(beside, "step", {"observations": [reward, reward, {"reward": 1.0, "arm": "none", "key": "k"}]})
    assert status == 200
    assert [one["answer"] for one in second["answers"]] == ["counted", "already_counted", "refused"]
    assert second["ticket"] != first["ticket"]
    # The reward had a part in the choice: first pulls go on to the next arm.
    assert second["arm"] != first["arm"]
    assert do(beside, "step", {"among": ["nothing"]})[0] == 422
    assert do(beside, "step", {"observations": [reward] * 1001})[0] == 400


def test_a_reward_without_a_ticket_counts_once_by_its_key(beside):
    reported = {"arm": "blue", "reward": 1, "key": "order 17"}
    assert do(beside, "observe", reported)[1] == {"answer": "counted"}
    assert do(beside, "observe", reported)[1] == {"answer": "already_counted"}
    assert do(beside, "state")[1]["arms"][1]["own_count"] == 1


def test_many_rewards_get_an_answer_each(beside):
    tickets = [do(beside, "choose", {})[1]["ticket"] for _ in range(2)]
    rewards = [
        {"ticket": tickets[0], "reward": 1},
        {"ticket": tickets[0], "reward": 1},
        {"ticket": "nonsense", "reward": 1},
        {"arm": "blue", "reward": 2, "key": "outside its range"},
        {"ticket": tickets[1], "reward": 0.5},
    ]
    status, answer = do(beside, "observe", rewards)
    assert status == 200
    assert [one["answer"] for one in answer["answers"]] == [
        "counted",
        "already_counted",
        "refused",
        "refused",
        "counted",
    ]
    assert "reward" in answer["answers"][3]["error"]
    assert do(beside, "observe", []) == (200, {"answers": []})


@pytest.mark.parametrize(
    "reward",
    [
        {"ticket": "nonsense", "reward": 1},
        {"ticket": "0" * 16 + "-1-1-red", "reward": 1},
        {"arm": "green", "reward": 1, "key": "k"},
        {"arm": "red", "reward": 1},
        {"arm": "red", "reward": 1.1e12, "key": "k"},
        {"reward": 1},
        {"reward": 1, "key": "k"},
        {"ticket": "nonsense", "arm": "red", "key": "k", "reward": 1},
    ],
)
def test_refused_rewards_say_why(shared, reward):
    status, answer = do(shared, "observe", reward)
    assert (status, answer["answer"]) == (422, "refused")
    assert answer["error"]
    status, answers = do(shared, "observe", [reward, reward])
    assert (status, answers["answers"]) == (422, [answer, answer])
    assert "all 2" in answers["error"]


def test_a_full_disk_is_a_reason_to_ask_again(tmp_path):
    disk = Disk()
    with Beside(a_node(tmp_path, disk)) as beside:
        ticket = do(beside, "choose", {})[1]["ticket"]
        disk.is_full = True
        status, answer = do(beside, "observe", {"ticket": ticket, "reward": 1})
        assert (status, list(answer)) == (503, ["error"])
        assert "full" in answer["error"]
        status, answer = do(beside, "ready")
        assert (status, answer["ready"]) == (503, False)
        assert "full" in answer["reason"]
        assert do(beside, "healthy")[0] == 200
        assert do(beside, "choose", {})[0] == 200
        disk.is_full = False
        assert do(beside, "observe", {"ticket": ticket, "reward": 1}) == (200, {"answer": "counted"})
        assert do(beside, "ready") == (200, {"ready": True, "reason": None})


def test_neighbours_come_and_go(beside):
    name = "a/b c%"
    assert do(beside, "peers")[1] == {"peers": []}
    assert do(beside, "add_peer", {"name": name})[0] == 200
    [peer] = do(beside, "peers")[1]["peers"]
    assert (peer["name"], peer["address"], peer["state"]) == (name, None, "down")
    path = f"/v1/peers/{urllib.parse.quote(name, safe='')}"
    assert do(beside, "remove_peer", path=path)[0] == 200
    assert do(beside, "remove_peer", path=path)[0] == 404
    assert do(beside, "peers")[1] == {"peers": []}


def test_what_one_node_observes_the_other_shows(tmp_path):
    with Beside(a_node(tmp_path / "b", name="b", listen="127.0.0.1:0", accept="members")) as other:
        address = other.node.address
        with Beside(a_node(tmp_path / "a")) as one:
            do(one, "observe", {"arm": "blue", "reward": 1, "key": "k"})
            do(one, "add_peer", {"name": "b", "address": address})
            while do(other, "state")[1]["arms"][1]["heard_count"] == 0:
                time.sleep(0.02)
            arm = do(other, "state")[1]["arms"][1]
            assert (arm["own_count"], arm["heard_count"], arm["mean"], arm["n_origins"]) == (0, 1, 1.0, 1)
            [peer] = do(one, "peers")[1]["peers"]
            assert (peer["name"], peer["address"], peer["state"]) == ("b", address, "up")
            assert peer["protocol"] == do(other, "state")[1]["protocol"]
            life = do(one, "state")[1]["epoch"]
            assert do(other, "lives", path="/v1/lives/a")[1] == {"lives": [life]}
            assert b'banditmesh_link_up{peer="b"} 1.0' in do(one, "metrics")[1]


@pytest.mark.parametrize(
    "body", [{"name": ""}, {"name": "a"}, {"name": "b", "address": "nowhere"}, {"name": "x" * 129}]
)
def test_a_neighbour_that_cannot_be_is_refused(shared, body):
    assert do(shared, "add_peer", body)[0] == 422


def test_arms_change_while_it_runs(beside):
    arms = [{"name": "green", "law": "bernoulli", "reward_range": [0, 1]}, {"name": "red"}]
    assert do(beside, "set_arms", {"arms": arms})[0] == 200
    assert [arm["name"] for arm in do(beside, "state")[1]["arms"]] == ["green", "red"]
    assert do(beside, "set_arms", {"arms": [{"name": "green"}, {"name": "green"}]})[0] == 422
    assert do(beside, "set_arms", {"arms": [{"name": "red", "colour": 1}]})[0] == 400
    assert [arm["name"] for arm in do(beside, "state")[1]["arms"]] == ["green", "red"]


def test_a_node_without_arms_only_relays(beside):
    assert do(beside, "set_arms", {"arms": []})[0] == 200
    assert do(beside, "state")[1]["arms"] == []
    assert do(beside, "choose", {})[0] == 422


def test_lives_are_listed(shared):
    assert do(shared, "lives", path="/v1/lives/nobody") == (200, {"lives": []})
    assert do(shared, "lives", path="/v1/lives/a") == (200, {"lives": [do(shared, "state")[1]["epoch"]]})


def test_a_notice_that_nobody_signed_is_refused(shared):
    assert do(shared, "notice", {"notice": "bm9ib2R5"})[0] == 422
    assert do(shared, "notice", {"notice": "*"})[0] == 400


def test_a_backup_is_a_whole_state(beside, tmp_path):
    do(beside, "observe", {"arm": "blue", "reward": 1, "key": "k"})
    status, _, data = beside.ask("POST", "/v1/backup", {})
    assert status == 200
    (tmp_path / "copy").write_bytes(data)
    connection = sqlite3.connect(tmp_path / "copy")
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_unknown_paths_and_methods_are_json_errors(shared):
    for method, path, expected in [
        ("GET", "/", 404),
        ("GET", "/v1/state/", 404),
        ("GET", "/v1/choose", 405),
        ("PUT", "/v1/state", 405),
        ("OPTIONS", "/v1/choose", 405),
    ]:
        status, headers, answer = shared.ask(method, path)
        assert (status, list(answer)) == (expected, ["error"])
        assert not [name for name in headers if name.startswith("access-control-")]


# Strangers.


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "127.0.0.2"}, 421),
        ({"host": "localhost:99999999"}, 421),
        ({"host": "user@localhost"}, 421),
        ({"host": ""}, 421),
        ({"host": None}, 400),
        ({"host": ["localhost", "localhost"]}, 400),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ["http://localhost", "http://evil.example"]}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"content_type": None}, 415),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_type": ["application/json", "text/plain"]}, 415),
    ],
)
def test_requests_that_a_web_page_could_make_are_refused(shared, headers, expected):
    before = do(shared, "state")[1]["n_choices"]
    status, _, answer = shared.ask("POST", "/v1/choose", {}, **headers)
    assert status == expected
    assert status == 400 or list(answer) == ["error"]
    assert do(shared, "state")[1]["n_choices"] == before


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "LOCALHOST:1234"},
        {"host": "127.0.0.1:7780"},
        {"host": "[::1]:7780"},
        {"host": "localhost."},
        {"host": "localhost:3000", "origin": "http://localhost:3000"},
        {"sec_fetch_site": "same-origin"},
        {"content_type": "Application/JSON; charset=utf-8"},
    ],
)
def test_requests_of_programs_are_answered(shared, headers):
    assert shared.ask("POST", "/v1/choose", {}, **headers)[0] == 200


def test_configured_names_are_the_sidecars_own(tmp_path):
    with Beside(a_node(tmp_path), hosts=("Bandit.example",)) as beside:
        assert do(beside, "state", host="bandit.EXAMPLE:80")[0] == 200
        assert do(beside, "state", host="evil.example")[0] == 421


def test_an_address_of_all_interfaces_may_be_called_by_any_of_them(tmp_path):
    with Beside(a_node(tmp_path), "0.0.0.0:0", token=TOKEN) as beside:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert do(beside, "state", host="192.0.2.7:7780", **bearer)[0] == 200
        assert do(beside, "state", host="evil.example", **bearer)[0] == 421


def test_a_token_is_asked_for(tmp_path):
    with Beside(a_node(tmp_path), token=TOKEN) as beside:
        for header in (None, TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer", "Bearer é"):
            for name in ("state", "metrics", "describe"):
                assert do(beside, name, authorization=header)[0] == 401
            assert do(beside, "choose", {}, authorization=header)[0] == 401
        assert do(beside, "choose", {}, authorization=f"bearer {TOKEN}")[0] == 200
        assert do(beside, "healthy")[0] == 200
        assert do(beside, "ready")[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_other_addresses_than_loopback_need_a_token(address):
    with pytest.raises(InputError, match=r"token_file"), serving.bind(address):
        pass
    with serving.bind(address, TOKEN) as listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("address", ["", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":80"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match=r"api\.listen must"), serving.bind(address):
        pass


def test_an_address_that_is_taken_is_refused():
    with serving.bind("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SidecarError, match=f"cannot listen on 127.0.0.1:{port}"), serving.bind(f"127.0.0.1:{port}"):
            pass


def test_answers_leave_at_once():
    """Else an answer in two parts waits for the other side's delayed acknowledgement, some 40 ms."""

    async def accepted():
        found = asyncio.get_running_loop().create_future()
        with serving.bind("127.0.0.1:0") as listener:
            async with await asyncio.start_server(lambda _, writer: found.set_result(writer), sock=listener):
                _, ours = await asyncio.open_connection(*listener.getsockname())
                theirs = await found
                option = theirs.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for writer in (ours, theirs):
                    writer.close()
                    await writer.wait_closed()
        return option

    assert asyncio.run(accepted()) == 1


# Unix sockets.


def test_a_unix_socket_is_for_its_user_and_goes_with_the_sidecar(tmp_path):
    path = tmp_path / "api.sock"
    with Beside(a_node(tmp_path), f"unix:{path}") as beside:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert do(beside, "choose", {})[0] == 200
        assert do(beside, "choose", {}, host="evil.example")[0] == 421
        with pytest.raises(SidecarError, match="another process answers"), serving.bind(f"unix:{path}"):
            pass
    assert not path.exists()


def test_the_socket_of_a_killed_sidecar_is_replaced(tmp_path):
    path = tmp_path / "api.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with Beside(a_node(tmp_path), f"unix:{path}") as beside:
        assert do(beside, "healthy")[0] == 200


def test_what_is_no_socket_is_not_replaced(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(InputError, match="not a socket"), serving.bind(f"unix:{path}"):
        pass
    assert path.read_text() == "data"
    with pytest.raises(SidecarError, match="cannot listen"), serving.bind(f"unix:{tmp_path / 'none' / 'api.sock'}"):
        pass


def test_a_socket_of_somebody_else_is_left_where_it_is(tmp_path):
    path = tmp_path / "api.sock"
    with serving.bind(f"unix:{path}"):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()


# Bodies.


DEEP = b"[" * 10_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"red"',
        b"{}{}",
        b'{"ticket": "t", "reward": NaN}',
        b'{"ticket": "t", "reward": Infinity}',
        b'{"ticket": "t", "reward": 1e400}',
        b'{"ticket": "t", "reward": 1' + b"0" * 5000 + b"}",
        b'{"ticket": "t", "reward": "1"}',
        b'{"ticket": "t", "reward": true}',
        b'{"ticket": "t", "reward": null}',
        b'{"ticket": 7, "reward": 1}',
        b'{"ticket": "\\ud800", "reward": 1}',
        b'{"ticket": "t", "reward": 1, "further": 1}',
        b'{"arm": "red", "reward": 1, "key": ""}',
        b'{"arm": "red", "reward": 1, "key": "' + b"k" * 129 + b'"}',
        DEEP,
        b'{"among":' + DEEP,
        b'{"among":' + DEEP + b"]" * 10_000 + b"}",
        b'{"reward":' * 10_000,
        b'[{"ticket": "t", "reward": 1}, 7]',
        b"[" + b'{"reward":1},' * openapi.MAX_OBSERVATIONS + b'{"reward":1}]',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_not_as_described_is_refused_whole(shared, body):
    before = do(shared, "state")[1]
    names = ("choose", "observe", "add_peer", "set_arms", "notice")
    if body == b"[]":
        names = ("choose", "add_peer", "set_arms", "notice")  # no rewards at all are fine
    for name in names:
        status, answer = do(shared, name, body)
        assert (status, list(answer)) == (400, ["error"])
        assert len(answer["error"]) < 400
    assert do(shared, "state")[1] == before


def test_nesting_that_no_type_stops_is_refused(shared, monkeypatch):
    import msgspec

    monkeypatch.setitem(sidecar._DECODERS, "choose", msgspec.json.Decoder())
    assert do(shared, "choose", DEEP)[0] == 400


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(shared, chunked):
    size = sidecar.MAX_BYTES + 1
    with shared.connect() as connection:
        head = "POST /v1/observe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n" if chunked else f"Content-Length: {size}\r\n\r\n"
        connection.sendall(head.encode())
        if chunked:
            connection.sendall(f"{size:x}\r\n".encode() + b" " * size)
        answer = connection.recv(1000)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_never_ends_is_given_up(shared, monkeypatch):
    monkeypatch.setattr(sidecar, "MAX_SECONDS", 0.05)
    with shared.connect() as connection:
        head = b"POST /v1/observe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: 10\r\n\r\n{")
        answer = connection.recv(1000)
    assert answer.startswith(b"HTTP/1.1 408 ")


def said(connection, end):
    """What comes on a connection until a mark."""
    data = b""
    while end not in data:
        data += connection.recv(1000)
    return data.decode()


def test_silent_connections_keep_nobody_out(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CALLERS", 4)
    monkeypatch.setattr(connections, "FOR_PROBES", 2)
    with Beside(a_node(tmp_path), token=TOKEN) as beside, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(beside.connect()) for _ in range(12)]
        silent[-1].sendall(b"GET /healthz HTTP/1.1\r\n")
        assert do(beside, "healthy")[0] == 200
        assert do(beside, "choose", {}, authorization=f"Bearer {TOKEN}")[0] == 200
        # Those that have been silent for longest had to go.
        assert silent[0].recv(1) == b""
        silent[-1].sendall(b"Host: localhost\r\n\r\n")
        assert silent[-1].recv(1000).startswith(b"HTTP/1.1 200 ")


def test_requests_under_way_are_not_cut_off_and_probes_have_places(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CALLERS", 2)
    monkeypatch.setattr(connections, "FOR_PROBES", 1)
    with Beside(a_node(tmp_path)) as beside, beside.begun() as first, beside.begun():
        assert do(beside, "healthy")[0] == do(beside, "ready")[0] == 200
        status, answer = do(beside, "state")
        assert status == 503
        assert answer == {"error": "too many callers: 2 requests are being answered already; try again"}
        assert do(beside, "choose", {})[0] == do(beside, "step", {})[0] == 503
        # A further connection takes the place of one without a request, and none that has one.
        for _ in range(3):
            assert do(beside, "healthy")[0] == 200
        first.sendall(b"[]        ")
        assert "answers" in said(first, b"}")
        assert do(beside, "state")[0] == 200


def test_connection_beyond_all_places_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CALLERS", 1)
    monkeypatch.setattr(connections, "FOR_PROBES", 0)
    with Beside(a_node(tmp_path)) as beside, beside.begun(), beside.connect() as other:
        response = http.client.HTTPResponse(other)
        response.begin()
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert json.load(response)["error"].startswith("too many callers: 1 ")


def test_headers_that_never_end_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 0.05)
    with Beside(a_node(tmp_path)) as beside:
        with beside.connect() as silent:
            assert silent.recv(1) == b""
        with beside.connect() as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            response = http.client.HTTPResponse(slow)
            response.begin()
            assert response.status == 408
            assert json.load(response) == {"error": "the headers of a request must come within 0.05 s"}
        with beside.connect() as kept:
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert "healthy" in said(kept, b"}")
            # A byte ends the time for keeping a connection, and begins that for headers.
            kept.sendall(b"G")
            assert said(kept, b"}").startswith("HTTP/1.1 408 ")


def test_caller_that_reads_nothing_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "READS_WITHIN", 0.05)
    asks = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000
    with Beside(a_node(tmp_path)) as beside, beside.connect() as connection, pytest.raises(ConnectionError):
        connection.sendall(asks)


def test_a_caller_that_goes_away_costs_nothing(shared):
    head = b"POST /v1/observe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with shared.connect() as connection:
        connection.sendall(head + b"Content-Length: 10\r\n\r\n{")
    assert do(shared, "healthy")[0] == 200


@pytest.mark.parametrize("lines", [b"X: " + b"x" * 300_000, b"X: y\r\n" * 50_000])
def test_headers_are_of_limited_size(shared, lines):
    with shared.connect() as connection:
        # What was not read when the connection ended may take the answer with it.
        data = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + lines)
            while piece := connection.recv(1000):
                data += piece
    assert data[:13] in (b"HTTP/1.1 400 ", b"")
    assert do(shared, "healthy")[0] == 200


def test_trailers_are_of_limited_size(shared):
    head = b"POST /v1/choose HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with shared.connect() as connection, pytest.raises(ConnectionError):
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 4_000_000)


def test_requests_that_come_together_are_answered_in_order(shared):
    paths = ["healthz", "readyz", "v1/peers"] * 200
    asks = [f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n" for path in paths]
    with shared.connect() as connection:
        connection.sendall(("\r\n".join(asks) + "Connection: close\r\n\r\n").encode())
        data = b""
        while piece := connection.recv(65536):
            data += piece
    bodies = [part.partition(b"\r\n\r\n")[2][:8] for part in data.split(b"HTTP/1.1 ")[1:]]
    assert bodies == [b'{"health', b'{"ready"', b'{"peers"'] * 200


def asking(path, body, *headers):
    """A request with a body, as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


@pytest.mark.parametrize("length", [1, 7, 100, 10_000])
def test_requests_in_pieces_of_any_length_are_answered_in_order(shared, length):
    reward = '{"arm": "red", "reward": 0.5, "key": "%d in pieces of %d"}'
    asks = [asking("/v1/choose", "{}"), b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    asks += [asking("/v1/observe", reward % (key, length)) for key in range(3)] + [asking("/v1/choose", "[]")]
    asks += [asking("/v1/step", "{}"), asking("/v1/choose", '{"among": ["blue"]}', "Connection: close")]
    data, answer = b"".join(asks), b""
    with shared.connect() as connection:
        for start in range(0, len(data), length):
            connection.sendall(data[start : start + length])
        while piece := connection.recv(65536):
            answer += piece
    parts = [part.partition(b"\r\n\r\n") for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert [int(head[:3]) for head, _, _ in parts] == [200, 200, 200, 200, 200, 400, 200, 200]
    first = ["arm", "healthy", "answer", "answer", "answer", "error", "arm", "arm"]
    assert [next(iter(json.loads(body))) for _, _, body in parts] == first
    assert json.loads(parts[-1][2])["arm"] == "blue"
    assert [b"connection: close" in head.lower() for head, _, _ in parts] == [False] * 7 + [True]
    assert all(b"\r\ndate: " in head.lower() for head, _, _ in parts)


def test_time_for_headers_is_not_that_of_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 0.05)
    with Beside(a_node(tmp_path)) as beside, beside.connect() as kept:
        for _ in range(4):
            kept.sendall(asking("/v1/choose", "{}"))
            assert "arm" in said(kept, b"}")
            time.sleep(0.03)


def test_connection_is_not_idle_while_a_request_behind_another_is_answered(tmp_path, monkeypatch):
    config = functools.partial(uvicorn.Config, timeout_keep_alive=0)
    monkeypatch.setattr(uvicorn, "Config", config)
    reward = asking("/v1/observe", '{"arm": "red", "reward": 0.5, "key": "behind"}')
    with Beside(a_node(tmp_path)) as beside, beside.connect() as connection:
        beside.do(beside.node._committer.turn.acquire)
        connection.sendall(asking("/v1/choose", "{}") + reward)
        while beside.do(lambda: not beside.node._committer._calls):
            time.sleep(0.01)
        beside.do(beside.node._committer.turn.release)
        with connection.makefile("rb") as answers:
            assert answers.read().endswith(b'{"answer":"counted"}')


def test_requests_before_what_is_no_http_are_answered(shared):
    reward = asking("/v1/observe", '{"arm": "red", "reward": 0.5, "key": "before nonsense"}')
    with shared.connect() as connection, connection.makefile("rb") as answers:
        connection.sendall(reward * 2 + b"nonsense\r\n\r\n")
        assert answers.read().count(b"HTTP/1.1 200 ") == 2


def test_request_under_way_is_answered_when_sidecar_ends(tmp_path):
    with Beside(a_node(tmp_path)) as beside, beside.connect() as connection:
        beside.do(beside.node._committer.turn.acquire)
        connection.sendall(asking("/v1/observe", '{"arm": "red", "reward": 0.5, "key": "last"}'))
        while beside.do(lambda: not beside.node._committer._calls):
            time.sleep(0.01)
        beside.do(beside._until.set)
        with contextlib.suppress(ConnectionError):
            while True:  # until it has begun to end
                socket.create_connection(beside.address).close()
                time.sleep(0.01)
        beside.do(beside.node._committer.turn.release)
        assert said(connection, b"}").endswith('{"answer":"counted"}')
        assert connection.recv(1) == b""


def test_another_protocol_is_not_offered(shared):
    with shared.connect() as connection:
        connection.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        assert said(connection, b"}").startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 100, b"G" * 100_000])
def test_what_is_no_http_is_refused(shared, data):
    with shared.connect() as connection:
        connection.sendall(data + b"\r\n\r\n")
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 400
        assert json.load(response)["error"].startswith("a request must ")
    assert do(shared, "healthy")[0] == 200


def test_a_defect_is_one_line_and_not_told(tmp_path, caplog):
    with Beside(a_node(tmp_path)) as beside:
        beside.node.state = beside.node.choose = lambda *_, **__: 1 / 0
        for method, path, body in (("GET", "/v1/state", None), ("POST", "/v1/choose", {}), ("POST", "/v1/step", {})):
            status, _, answer = beside.ask(method, path, body)
            assert status == 500
            assert answer == {"error": "unexpected ZeroDivisionError; the log shows where, please report it"}
    assert caplog.text.count("\nZeroDivisionError: ") == 3


# Fuzzing from the description.


def paths(rng, operation, names):
    return operation.path.replace("{name}", urllib.parse.quote(rng.choice([one for one in names if one]), safe=""))


@pytest.mark.parametrize(
    "operation", [one for one in openapi.OPERATIONS if one.takes or "{" in one.path], ids=lambda one: one.name
)
@pytest.mark.parametrize("n_requests", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_fuzzed_requests_are_answered_as_described(shared, operation, n_requests):
    rng = random.Random(f"fuzz {operation.name}")
    described = DESCRIPTION["paths"][operation.path][operation.method.lower()]
    seen = set()
    for number in range(n_requests):
        tickets = [do(shared, "choose", {})[1]["ticket"]] if operation.name in ("observe", "step", "withdraw") else []
        strings = [*schemas.STRINGS, *tickets * 5]
        body = None
        if operation.takes is not None:
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            value = schemas.draw(rng, schema, DESCRIPTION, strings)
            if number % 2:
                value = schemas.spoil(rng, value)
            body = json.dumps(value).encode()
            if number % 10 == 9:
                body = body[: rng.randrange(len(body) + 1)]
        status, answer = do(shared, operation.name, body, path=paths(rng, operation, strings))
        assert status < 500, answer
        seen.add(status)
    # Both ways are taken: a fuzzer that is always refused, or never, tests nothing.
    assert operation.name == "notice" or 200 in seen
    assert seen != {200}


def test_random_bytes_are_refused(shared):
    rng = random.Random("bytes")
    for _ in range(100):
        operation = rng.choice([one for one in openapi.OPERATIONS if one.takes])
        assert do(shared, operation.name, rng.randbytes(rng.randrange(1, 60)))[0] == 400
