"""What a stopped neighbour does to the others: how late the event loop is, and what another neighbour still gets.

A hub relays news to two neighbours, each in a process of its own. Then one of them is stopped (SIGSTOP): it takes
nothing any more, and its connection stays open.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from tables import Row

from banditmesh.live import Node, NodeConfig

from .nodes import grounds, percentile, statistics, until

PATIENCE = 60.0
#: How often the loop's lag is looked at, in seconds.
LOOK_EVERY = 0.005
#: How many statistics are relayed at a time, and how often, in seconds.
N_KEYS, EVERY = 500, 0.05


def measure(quick: bool) -> list[Row]:
    with grounds() as place:
        lags, rates = asyncio.run(with_a_stopped_one(place, 0.3 if quick else 6.0))
    rows: list[Row] = []
    for which in ("no neighbour", "a neighbour"):
        for what, value in (("99th percentile", percentile(lags[which], 99)), ("the most", max(lags[which]))):
            rows.append({"what": f"event-loop lag, {which} stopped, {what}", "value": 1000 * value, "unit": "ms"})
    share = rates["a neighbour"] / rates["no neighbour"]
    row: Row = {"what": "statistics to the others, a neighbour stopped", "value": rates["a neighbour"]}
    return [*rows, {**row, "unit": "a second", "share": share, "beside": "no neighbour stopped"}]


async def with_a_stopped_one(place: Any, seconds: float) -> tuple[dict[str, list[float]], dict[str, float]]:
    lags: dict[str, list[float]] = {}
    rates: dict[str, float] = {}
    hub = Node(place.config("hub", arms=(), signatures="accepted"))
    async with hub, neighbours(place, hub, ("awake", "asleep")) as pids:
        feeding = asyncio.create_task(feed(hub))
        await asyncio.sleep(min(1.0, seconds))
        for which in ("no neighbour", "a neighbour"):
            if which != "no neighbour":
                os.kill(pids["asleep"], signal.SIGSTOP)
            link = hub._links.neighbours["awake"].conversation
            assert link is not None
            before, began = link.n_sent, time.monotonic()
            lags[which] = await watch(seconds)
            rates[which] = (link.n_sent - before) / (time.monotonic() - began)
        os.kill(pids["asleep"], signal.SIGCONT)
        feeding.cancel()
    return lags, rates


async def watch(seconds: float) -> list[float]:
    """How late the loop was each time."""
    loop, lags = asyncio.get_running_loop(), []
    end = loop.time() + seconds
    while (now := loop.time()) < end:
        await asyncio.sleep(LOOK_EVERY)
        lags.append(max(0.0, loop.time() - now - LOOK_EVERY))
    return lags


async def feed(hub: Node) -> None:
    """Let the hub hear of larger counts at a constant pace, as from one more neighbour."""
    for count in itertools.count(1):
        await hub._parts.exchange.heard("somebody", statistics(N_KEYS, count))
        await asyncio.sleep(EVERY)


@contextlib.asynccontextmanager
async def neighbours(place: Any, hub: Node, names: tuple[str, ...]) -> Any:
    """Linked neighbours, each in a process of its own; their process numbers by name."""
    context = multiprocessing.get_context("spawn")
    processes = {}
    try:
        for name in names:
            ours, theirs = context.Pipe()
            args = theirs, place.config(name, signatures="accepted"), hub.address
            process = context.Process(target=be_a_neighbour, args=args, daemon=True)
            process.start()
            theirs.close()
            processes[name] = process, ours
        await until(lambda: {peer.name for peer in hub.peers()} == set(names), "both must be linked", PATIENCE)
        yield {name: process.pid for name, (process, _) in processes.items()}
    finally:
        for process, pipe in processes.values():
            pipe.close()
            await asyncio.to_thread(process.join, 10.0)
            if process.is_alive():
                process.kill()


def be_a_neighbour(pipe: Connection, config: NodeConfig, address: str) -> None:
    """Hear, until the pipe is closed."""
    logging.disable(logging.WARNING)

    async def run() -> None:
        async with Node(config) as node:
            node.add_peer("hub", address)
            with contextlib.suppress(EOFError):
                await asyncio.to_thread(pipe.recv)

    asyncio.run(run())
