"""What a mesh is shown to be: sidecars that answer nonsense, too much, a byte at a time or never disturb no other."""

import contextlib
import json
import socketserver
import threading
import time

import pytest

from banditmesh.errors import InputError
from banditmesh.mesh import status
from banditmesh.web import polling
from banditmesh.web.polling import Meshes, Poller

ARM = {"name": "red", "own_count": 1, "heard_count": 2, "mean": 0.5, "index": None, "n_origins": 1}
STATE = {"node": "ann", "n_choices": 3, "arms": [ARM], "counters": {"heard": 2, "refused_forged": 1, "refused_x": 0}}
PEER = {"name": "bob", "state": "up", "waiting": 2, "behind": 0.5, "sent": 7, "received": 3, "last_refusal": None}
GOOD = {"/v1/state": STATE, "/v1/peers": {"peers": [PEER]}}


def answering(answers):
    """Answers for every path, as bodies."""
    return {path: json.dumps(answer).encode() for path, answer in answers.items()}


@contextlib.contextmanager
def sidecar(bodies, *, pause=0.0, endless=False):
    """A server that answers as it is told, with a pause before every byte if it has one: its address."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError):
                while line := self.rfile.readline():
                    while self.rfile.readline().strip():
                        pass
                    body = bodies.get(line.split()[1].decode(), b"")
                    length = b"" if endless else b"Content-Length: %d\r\n" % len(body)
                    self.say(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + body)
                    while endless:
                        self.say(body)

        def say(self, data):
            for part in [bytes([one]) for one in data] if pause else [data]:
                if ends.wait(pause):
                    raise OSError
                self.wfile.write(part)

    ends = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            ends.set()
            server.shutdown()


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:7781",
        "http://127.0.0.1",
        "http://localhost:7780",
        "unix:/run/other",
        "unix:/run/node.sock/../other",
        "http://[::1]:7780",
    ],
)
def test_no_address_is_asked_but_those_that_the_server_was_started_with(address):
    known = Meshes(("http://127.0.0.1:7780/", "unix:/run/node.sock"))
    known.check(["http://127.0.0.1:7780", "/run/node.sock"])
    Meshes(is_any=True).check([address])
    for meshes in (known, Meshes()):
        with pytest.raises(InputError, match=r"may not be asked from this page; start it with banditmesh serve --mesh"):
            meshes.check(["http://127.0.0.1:7780", address] if meshes is known else [address])


@pytest.fixture
def poll(monkeypatch):
    """Asks sidecars once: what is known of them then."""
    # However busy the machine is, who answers does so in time.
    monkeypatch.setattr(polling, "TIMEOUT", 30.0)
    with contextlib.ExitStack() as stack:

        def ask(*urls):
            poller = Poller(dict.fromkeys(urls))
            stack.callback(poller.close)
            poller.poll()
            return poller

        yield ask


NONSENSE = {
    "no JSON": {"/v1/state": b"<html>", "/v1/peers": b"{}"},
    "deep JSON": {"/v1/state": b"[" * 100_000, "/v1/peers": b"{}"},
    "a list": answering({"/v1/state": [], "/v1/peers": []}),
    "nothing in it": answering({"/v1/state": {}, "/v1/peers": {}}),
    "no peers": answering({**GOOD, "/v1/peers": {}}),
    "peers that are none": answering({**GOOD, "/v1/peers": {"peers": [3]}}),
    "a name that is none": answering({**GOOD, "/v1/state": {**STATE, "node": 3}}),
    "half a character": answering({**GOOD, "/v1/state": {**STATE, "node": "\ud800"}}),
    "a long name": answering({**GOOD, "/v1/state": {**STATE, "node": "x" * 100_000}}),
    "a count that no browser can": answering({**GOOD, "/v1/state": {**STATE, "n_choices": 2**70}}),
    "arms that are none": answering({**GOOD, "/v1/state": {**STATE, "arms": [{"name": "red"}]}}),
}


@pytest.mark.parametrize("bodies", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_no_answer_and_disturbs_no_other_node(poll, bodies):
    with sidecar(bodies) as wrong, sidecar(answering(GOOD)) as good:
        found = poll(wrong, good)
    assert [one.error for one in found.seen] == ["does not answer like a sidecar; is it one?", ""]
    assert found.seen[1].refusals == {"forged": 1}
    assert [link["link"] for link in found.links] == ["ann – bob"]
    assert [moment[1:] for moment in found.history["ann"]["red"]] == [(0.5, 3)]


def test_link_that_is_down_has_no_rate_and_one_that_is_up_no_old_refusal(poll):
    refused = "expired: the certificate is over"
    bodies = answering(GOOD)
    with sidecar(bodies) as url:
        found = poll(url)
        for state, sent in (("up", 1007), ("down", 2007), ("down", 3007), ("up", 0), ("up", 500)):
            peer = {**PEER, "state": state, "sent": sent, "last_refusal": refused}
            bodies.update(answering({"/v1/peers": {"peers": [peer]}}))
            time.sleep(0.11)  # moments are told apart by tenths of a second
            found.poll()
            [link] = found.links
            assert link["refusal"] == ("" if state == "up" else refused)
            # Of the moments before it went down, nothing is left when it is up again.
            assert (link["rate"] > 0) is (sent in (1007, 500)), state
    found.poll()
    assert found.seen[0].error
    assert found.history["ann"]["red"][-1][1:] == (None, None)
    assert [link["rate"] for link in found.links] == [0.0]


def test_endless_answer_is_given_up(poll, monkeypatch):
    monkeypatch.setattr(status, "MAX_BYTES", 10_000)
    with sidecar({"/v1/state": b" " * 5000}, endless=True) as wrong:
        [one] = poll(wrong).seen
    assert one.error == "answers with more than 10,000 bytes; is it a sidecar?"


def test_answer_that_comes_a_byte_at_a_time_is_not_waited_for(poll, monkeypatch):
    monkeypatch.setattr(polling, "TIMEOUT", 1.5)
    with sidecar(answering(GOOD), pause=0.05) as slow, sidecar(answering(GOOD)) as good:
        found = poll(slow, good)
        assert [one.error for one in found.seen] == ["no answer: timed out", ""]
        # The thread that asked it is done, too.
        while not all(future.done() for future in found._asked.values()):
            time.sleep(0.01)


def test_error_of_a_sidecar_is_shown_in_short(poll):
    class Refusing(socketserver.StreamRequestHandler):
        def handle(self):
            body = json.dumps({"error": "no\ud800 " * 1000}).encode()
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        [one] = poll(f"http://127.0.0.1:{server.server_address[1]}").seen
        server.shutdown()
    assert one.error.startswith("no? no? ")
    assert len(one.error) == status.MAX_LETTERS
