"""What a caller gets: durable observations beside what the disk can do, and choices in Python and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tables import Row

from banditmesh.live import Client, Node

from .nodes import ARMS, Grounds, grounds

#: How long each of several windows is, in seconds; the best one counts.
WINDOW, WINDOWS = 1.0, 3
MANY = 100


def measure(quick: bool) -> list[Row]:
    window, windows = (0.05, 1) if quick else (WINDOW, WINDOWS)
    with grounds() as place:
        fsyncs = max(fsyncs_a_second(place.folder, window) for _ in range(windows))
        one, many, choices = asyncio.run(of_a_node(place, window, windows))
        requests, of_the_sidecar, resident = over_http(place, window, windows)
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


def over_http(place: Grounds, window: float, windows: int) -> tuple[float, float, float]:
    """Choices a second of one caller who keeps a connection, and a CPU second of the sidecar's process; its bytes."""
    best, least = 0.0, float("inf")
    with sidecar(place) as client:
        for _ in range(windows):
            n, before, began = 0, metric(client, "cpu_seconds_total"), time.perf_counter()
            while (seconds := time.perf_counter() - began) < window:
                client.choose()
                n += 1
            used = metric(client, "cpu_seconds_total") - before
            best, least = max(best, n / seconds), min(least, used / n)
        return best, 1.0 / least, metric(client, "resident_memory_bytes")


def metric(client: Client, name: str) -> float:
    """What the process shows of itself."""
    found = re.search(rf"^process_{name} (\S+)$", client.metrics(), re.MULTILINE)
    assert found is not None
    return float(found[1])


@contextlib.contextmanager
def sidecar(place: Grounds) -> Iterator[Client]:
    """A node with its sidecar in a process of its own."""
    keys, socket = place.keys("sidecar"), place.folder / "api.sock"
    path = place.folder / "node.toml"
    arms = "\n".join(f'[[arms]]\nname = "{arm}"\nlaw = "gaussian"\nsigma = 1.0\n' for arm in ARMS)
    path.write_text(
        f'mesh = "bench"\nnode = "sidecar"\nstate = "state/sidecar"\nlog_level = "error"\n'
        f'[keys]\ncertificate = "{keys.certificate}"\nkey = "{keys.key}"\nauthorities = "{keys.authorities}"\n'
        f'[api]\nlisten = "unix:{socket}"\n{arms}'
    )
    script = "import sys; from banditmesh.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", script, "node", "--config", str(path)])
    try:
        with Client(f"unix:{socket}", patience=60.0) as client:
            for arm in ARMS:
                client.observe(None, 0.5, arm=arm, key=arm)
            yield client
    finally:
        process.terminate()
        process.wait(20)
