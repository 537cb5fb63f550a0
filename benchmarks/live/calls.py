"""What a caller gets: durable observations beside what the disk can do, and choices in Python and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tables import Row

from banditmesh.live import Client, Node

from .nodes import ARMS, Grounds, grounds

#: How long each of several windows is, in seconds; the best one counts.
WINDOW, WINDOWS = 1.0, 3
MANY = 100
PAIR, STEP = "choose and observe over HTTP", "step over HTTP"
CONNECTIONS = {1: "connection", 8: "connections"}


def measure(quick: bool) -> list[Row]:
    window, windows = (0.05, 1) if quick else (WINDOW, WINDOWS)
    with grounds() as place:
        fsyncs = max(fsyncs_a_second(place.folder, window) for _ in range(windows))
        one, many, choices = asyncio.run(of_a_node(place, window, windows))
        requests, of_the_sidecar, resident, pairs = over_http(place, window, windows)
    beside = "fsync"
    return [
        {"what": "fsync of a file in the same folder", "value": fsyncs, "unit": "a second"},
        {"what": "observe, one caller", "value": one, "unit": "a second", "share": one / fsyncs, "beside": beside},
        {
            "what": f"observe, {MANY} callers",
            "value": many,
            "unit": "a second",
            "share": many / fsyncs,
            "beside": beside,
        },
        {"what": f"choose in Python, {len(ARMS)} arms", "value": choices, "unit": "a CPU second"},
        {"what": "choose over HTTP, one caller", "value": requests, "unit": "a second"},
        {"what": "choose over HTTP, the sidecar alone", "value": of_the_sidecar, "unit": "a CPU second"},
        *({"what": what, "value": 1e3 * seconds, "unit": "ms of CPU"} for what, seconds in pairs.items()),
        {"what": "memory of a process with a node and its sidecar", "value": resident, "unit": "bytes"},
    ]


def fsyncs_a_second(folder: Path, window: float) -> float:
    """How often a page can be written so that it survives a power cut."""
    with (folder / "page").open("wb", buffering=0) as file:
        n, began = 0, time.perf_counter()
        while (seconds := time.perf_counter() - began) < window:
            file.seek(0)
            file.write(os.urandom(4096))
            os.fsync(file.fileno())
            n += 1
    return n / seconds


async def of_a_node(place: Grounds, window: float, windows: int) -> tuple[float, float, float]:
    """Observations a second of one caller and of many, and choices a CPU second."""
    async with Node(place.config("calls")) as node:
        one = max([await observing(node, 1, window) for _ in range(windows)])
        many = max([await observing(node, MANY, window) for _ in range(windows)])
        return one, many, max(choosing(node, window) for _ in range(windows))


async def observing(node: Node, n_callers: int, window: float) -> float:
    """Each caller chooses, and waits until its reward is on disk."""
    n, began = 0, time.perf_counter()

    async def call() -> None:
        nonlocal n
        while time.perf_counter() - began < window:
            await node.observe(node.choose(), 0.5)
            n += 1

    await asyncio.gather(*(call() for _ in range(n_callers)))
    return n / (time.perf_counter() - began)


def choosing(node: Node, window: float) -> float:
    n, began = 0, time.process_time()
    while (seconds := time.process_time() - began) < window:
        for _ in range(100):
            node.choose()
        n += 100
    return n / seconds


def over_http(place: Grounds, window: float, windows: int) -> tuple[float, float, float, dict[str, float]]:
    """Choices a second of one caller who keeps a connection, and a CPU second of the sidecar's process; its bytes.

    And how many CPU seconds of that process a choice and its reward take.
    """
    best, least = 0.0, float("inf")
    with sidecar(place) as client:
        for _ in range(windows):
            n, before, began = 0, metric(client, "cpu_seconds_total"), time.perf_counter()
            while (seconds := time.perf_counter() - began) < window:
                client.choose()
                n += 1
            used = metric(client, "cpu_seconds_total") - before
            best, least = max(best, n / seconds), min(least, used / n)
        resident = metric(client, "resident_memory_bytes")
        works = {f"{PAIR}, {n} {CONNECTIONS[n]}": (pairs_of_calls, n) for n in CONNECTIONS}
        works |= {f"{STEP}, {n} {CONNECTIONS[n]}": (steps, n) for n in CONNECTIONS}
        pairs = dict.fromkeys(works, float("inf"))
        for _ in range(windows):
            for what, (work, n_connections) in works.items():
                pairs[what] = min(pairs[what], work(client, str(place.folder / "api.sock"), n_connections, window))
        return best, 1.0 / least, resident, pairs


class Callers:
    """Callers who ask at the same time, each on a connection that it keeps; of HTTP they speak as little as they can.

    Parameters
    ----------
    path : str
        The sidecar's Unix socket.
    n_callers : int
        How many.
    """

    def __init__(self, path: str, n_callers: int) -> None:
        self._sockets = [socket.socket(socket.AF_UNIX) for _ in range(n_callers)]
        for one in self._sockets:
            one.connect(path)

    def ask(self, path: str, bodies: list[bytes]) -> list[dict[str, object]]:
        """All send a body; what each is answered."""
        for one, body in zip(self._sockets, bodies, strict=True):
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            one.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return [self._answer(one) for one in self._sockets]

    def _answer(self, one: socket.socket) -> dict[str, object]:
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0 or len(data) < end + 4 + self._length(data[:end]):
            data += one.recv(65536)
        answer: dict[str, object] = json.loads(data[end + 4 :])
        return answer

    @staticmethod
    def _length(head: bytes) -> int:
        return next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))

    def close(self) -> None:
        for one in self._sockets:
            one.close()


def pairs_of_calls(client: Client, path: str, n_callers: int, window: float) -> float:
    """CPU seconds of the sidecar for a choice and its reward, each a call."""

    def one(callers: Callers, rewards: list[bytes]) -> list[bytes]:
        if rewards:
            callers.ask("/v1/observe", rewards)
        return rewards_of(callers.ask("/v1/choose", [b"{}"] * n_callers))

    return cpu_a_turn(client, path, n_callers, window, one)


def steps(client: Client, path: str, n_callers: int, window: float) -> float:
    """The same in one call."""

    def one(callers: Callers, rewards: list[bytes]) -> list[bytes]:
        bodies = [b'{"observations": [' + reward + b"]}" for reward in rewards] or [b"{}"] * n_callers
        return rewards_of(callers.ask("/v1/step", bodies))

    return cpu_a_turn(client, path, n_callers, window, one)


def rewards_of(choices: list[dict[str, object]]) -> list[bytes]:
    return [json.dumps({"ticket": choice["ticket"], "reward": 0.5}).encode() for choice in choices]


def cpu_a_turn(
    client: Client, path: str, n_callers: int, window: float, turn: Callable[[Callers, list[bytes]], list[bytes]]
) -> float:
    callers = Callers(path, n_callers)
    try:
        rewards = turn(callers, [])
        n, before, began = 0, metric(client, "cpu_seconds_total"), time.perf_counter()
        while time.perf_counter() - began < window:
            rewards = turn(callers, rewards)
            n += n_callers
        return (metric(client, "cpu_seconds_total") - before) / n
    finally:
        callers.close()


def metric(client: Client, name: str) -> float:
    """What the process shows of itself."""
    found = re.search(rf"^process_{name} (\S+)$", client.metrics(), re.MULTILINE)
    assert found is not None
    return float(found[1])


@contextlib.contextmanager
def sidecar(place: Grounds) -> Iterator[Client]:
    """A node with its sidecar in a process of its own."""
    keys, path_of_socket = place.keys("sidecar"), place.folder / "api.sock"
    path = place.folder / "node.toml"
    arms = "\n".join(f'[[arms]]\nname = "{arm}"\nlaw = "gaussian"\nsigma = 1.0\n' for arm in ARMS)
    path.write_text(
        f'mesh = "bench"\nnode = "sidecar"\nstate = "state/sidecar"\nlog_level = "error"\n'
        f'[keys]\ncertificate = "{keys.certificate}"\nkey = "{keys.key}"\nauthorities = "{keys.authorities}"\n'
        f'[api]\nlisten = "unix:{path_of_socket}"\n{arms}'
    )
    script = "import sys; from banditmesh.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", script, "node", "--config", str(path)])
    try:
        with Client(f"unix:{path_of_socket}", patience=60.0) as client:
            for arm in ARMS:
                client.observe(None, 0.5, arm=arm, key=arm)
            yield client
    finally:
        process.terminate()
        process.wait(20)
