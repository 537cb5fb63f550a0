"""The client against a real sidecar, and against servers that behave badly."""

import asyncio
import http.server
import json
import threading
from contextlib import contextmanager

import pytest
from sidecars import Beside, a_node

from banditmesh.errors import InputError, SidecarError
from banditmesh.live import AsyncClient, Client
from banditmesh.live.http import connections

TOKEN = "correct-horse-battery"


@pytest.fixture(params=["tcp", "unix"])
def beside(request, tmp_path):
    listen = "127.0.0.1:0" if request.param == "tcp" else f"unix:{tmp_path / 'api.sock'}"
    with Beside(a_node(tmp_path), listen) as running:
        yield running


@pytest.fixture
def client(beside):
    with Client(beside.url) as node:
        yield node


def test_choices_rewards_and_what_is_known(client):
    arm, ticket = choice = client.choose()
    assert arm == "red"
    assert client.choose(among=["blue"]).arm == "blue"
    assert client.observe(choice, 0.5) == "counted"
    assert client.observe(ticket, 0.5) == "already_counted"
    assert client.observe(None, 1.0, arm="blue") == "counted"
    assert client.observe(None, 1.0, arm="blue") == "counted"
    assert client.observe(None, 1.0, arm="blue", key="k") == "counted"
    assert client.observe(None, 1.0, arm="blue", key="k") == "already_counted"
    known = {one["name"]: one["own_count"] for one in client.state()["arms"]}
    assert known == {"red": 1, "blue": 3}


def test_many_rewards_at_once(client):
    choices = [client.choose() for _ in range(3)]
    rewards = [(choices[0], 0.5), (choices[1].ticket, 0.5), {"arm": "blue", "reward": 0, "key": "k"}, ("no", 1.0)]
    answers = client.observe_many(rewards)
    assert [one["answer"] for one in answers] == ["counted", "counted", "counted", "refused"]
    assert [one["answer"] for one in client.observe_many(rewards[3:])] == ["refused"]
    assert client.observe_many([]) == []


def test_a_step_is_a_reward_and_a_choice(client):
    first = client.step()
    second = client.step(first, 1.0)
    assert isinstance(second, type(client.choose()))
    assert second.ticket != first.ticket
    assert client.observe(first, 1.0) == "already_counted"
    with pytest.raises(InputError, match="a step needs a ticket and its reward, or neither"):
        client.step(second)
    with pytest.raises(InputError, match="ticket"):
        client.step("nonsense", 1.0)


def test_a_withdrawn_choice_counts_nothing(client):
    shown, never_shown = client.choose(), client.choose()
    assert client.withdraw(never_shown) == "withdrawn"
    assert client.withdraw(never_shown.ticket) == "already_closed"
    assert client.observe(never_shown, 0.5) == "already_counted"
    assert client.observe(shown, 0.5) == "counted"
    assert client.withdraw(shown) == "already_closed"
    assert sum(one["own_count"] for one in client.state()["arms"]) == 1
    assert 'banditmesh_events_total{event="observations_withdrawn"} 1.0' in client.metrics()
    with pytest.raises(InputError, match="a ticket must be one that choose"):
        client.withdraw("no")


def test_an_asynchronous_program_has_the_same_calls(beside):
    async def main():
        async with AsyncClient(beside.url, connections=4) as node:
            choices = await asyncio.gather(*(node.choose() for _ in range(20)))
            assert len({one.ticket for one in choices}) == 20
            assert await node.observe(choices[0], 0.5) == "counted"
            assert await node.withdraw(choices[1]) == "withdrawn"
            answers = await node.observe_many([(one, 0.5) for one in choices[1:4]])
            assert [one["answer"] for one in answers] == ["already_counted", "counted", "counted"]
            assert await node.ready() is None
            await node.add_peer("d")
            assert [one["name"] for one in await node.peers()] == ["d"]
            await node.remove_peer("d")
            await node.set_arms(["green"])
            assert [one["name"] for one in (await node.state())["arms"]] == ["green"]
            assert len(await node.lives("a")) == 1
            assert (await node.backup()).startswith(b"SQLite format 3\0")
            assert "banditmesh_ready 1.0" in await node.metrics()
            with pytest.raises(InputError, match="among must name some"):
                await node.choose(among=["red"])

    asyncio.run(main())


def test_every_call_of_the_client_can_be_awaited():
    calls = {name for name in vars(Client) if not name.startswith("_")} - {"address"}
    assert calls <= set(vars(AsyncClient))


def test_everything_else(client, beside):
    assert client.ready() is None
    client.add_peer("b/c")
    client.add_peer("d", "127.0.0.1:1")
    assert [(one["name"], one["address"]) for one in client.peers()] == [("b/c", None), ("d", "127.0.0.1:1")]
    client.remove_peer("b/c")
    assert [one["name"] for one in client.peers()] == ["d"]
    client.set_arms(["green", {"name": "red", "reward_range": [0, 1]}])
    assert [one["name"] for one in client.state()["arms"]] == ["green", "red"]
    assert client.lives("a") == [client.state()["epoch"]]
    assert client.backup().startswith(b"SQLite format 3\0")
    assert "banditmesh_ready 1.0" in client.metrics()


def test_refusals_are_errors_in_the_nodes_words(client):
    for ask in (
        lambda: client.choose(among=["green"]),
        lambda: client.observe("nonsense", 1.0),
        lambda: client.observe(None, 2.0, arm="blue"),
        lambda: client.observe(None, 1.0, arm="green"),
        lambda: client.observe_many([{"reward": "1"}]),
        lambda: client.remove_peer("nobody"),
        lambda: client.set_arms(["red", "red"]),
        lambda: client.notice(b"nobody signed this"),
    ):
        with pytest.raises(InputError) as refused:
            ask()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), {1}])
def test_what_is_no_number_is_not_sent(client, reward):
    with pytest.raises(InputError, match="finite numbers"):
        client.observe("ticket", reward)


def test_a_token_opens(tmp_path):
    with Beside(a_node(tmp_path), token=TOKEN) as beside:
        with Client(beside.url, TOKEN) as node:
            assert node.choose().arm == "red"
        with Client(beside.url) as node, pytest.raises(SidecarError, match="a token is required"):
            node.choose()
        with Client(beside.url, "wrong") as node, pytest.raises(SidecarError, match="token is wrong"):
            node.choose()


def test_a_connection_is_kept(client, beside):
    for _ in range(5):
        client.choose()
    assert len(client._idle) == 1


def test_threads_share_a_client(client):
    tickets = []

    def work():
        for _ in range(20):
            choice = client.choose()
            assert client.observe(choice, 0.5) == "counted"
            tickets.append(choice.ticket)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tickets)) == 80
    assert sum(arm["own_count"] for arm in client.state()["arms"]) == 80
    assert 1 <= len(client._idle) <= 4


@pytest.mark.parametrize(
    "url", ["", "localhost", "https://localhost", "http://", "http://localhost:x", "http://localhost/v1", "tcp://a:1"]
)
def test_wrong_addresses_are_refused(url):
    with pytest.raises(InputError, match="url must be"):
        Client(url)


def test_nobody_there(tmp_path):
    for url in (f"unix:{tmp_path / 'none.sock'}", "http://127.0.0.1:1"):
        with pytest.raises(SidecarError, match=r"no answer from .*is the sidecar running"):
            Client(url).choose()
        with pytest.raises(SidecarError, match="no answer from"):
            Client(url, patience=0.1).observe("ticket", 1.0)


def test_a_sidecar_that_starts_again_meanwhile(tmp_path):
    """Connections end and tickets stay: a reward is reported to the next start of the same node."""
    path = f"unix:{tmp_path / 'api.sock'}"
    with Client(path, patience=60) as node:
        with Beside(a_node(tmp_path), path):
            first, second = node.choose(), node.choose()
            assert node.observe(first, 0.5) == "counted"
        answers = []
        late = threading.Thread(target=lambda: answers.append(node.observe(second, 0.5)))
        late.start()
        with Beside(a_node(tmp_path), path):
            late.join()
            assert answers == ["counted"]
            assert node.observe(first, 0.5) == "already_counted"
            assert sum(arm["own_count"] for arm in node.state()["arms"]) == 2


@contextmanager
def answering(*answers):
    """A server that gives these answers in turn, None for none at all, and the bodies that it got."""
    left, bodies = list(answers), []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = left.pop(0)
            if answer is None:
                self.close_connection = True
                return
            status, data = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", bodies
        finally:
            server.shutdown()
            thread.join()


COUNTED = 200, b'{"answer":"counted"}'
FULL = 503, b'{"error":"disk full"}'


def test_a_lost_answer_is_asked_for_again_with_the_same_key():
    with answering(None, FULL, None, COUNTED) as (url, bodies), Client(url, patience=60) as node:
        assert node.observe(None, 1.0, arm="red") == "counted"
    assert len(bodies) == 4
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["key"]


def test_patience_ends():
    with (
        answering(FULL) as (url, bodies),
        Client(url, patience=0) as node,
        pytest.raises(SidecarError, match="disk full"),
    ):
        node.observe("ticket", 1.0)
    assert len(bodies) == 1


def test_a_lost_choice_is_tried_once_more():
    chosen = 200, b'{"arm":"red","ticket":"t"}'
    with answering(None, chosen, None, None) as (url, bodies), Client(url) as node:
        assert node.choose() == ("red", "t")
        with pytest.raises(SidecarError, match="no answer from"):
            node.choose()
    assert len(bodies) == 4


@pytest.mark.parametrize("answer", [(500, b"<html>"), (404, b"[]"), (418, b'{"message": 1}')])
def test_somebody_else_answers(answer):
    with answering(answer) as (url, _), Client(url) as node, pytest.raises(SidecarError, match="is it one"):
        node.choose()


def test_too_many_callers(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CALLERS", 2)
    monkeypatch.setattr(connections, "FOR_PROBES", 1)
    with Beside(a_node(tmp_path)) as beside, Client(beside.url, patience=60) as node:
        ticket = node.choose().ticket
        with beside.begun(), beside.begun():
            with pytest.raises(SidecarError, match="too many callers: 2 requests are being answered"):
                node.choose()
            # One place is kept for probes: on the same connection, and where all others are taken.
            assert node.ready() is None
            with beside.begun() as third:
                assert third.recv(1000).startswith(b"HTTP/1.1 503 ")
                assert node.ready() is None
        assert node.observe(ticket, 0.5) == "counted"
