"""What signatures cost beside none: between two nodes, in a join of a large table, in `observe`, and under attack.

CPU time is that of the whole process of the node that is measured, its threads included; a step is what one callback of
its event loop takes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from multiprocessing.connection import Connection

from tables import Row

from banditmesh.live import Node, NodeConfig
from banditmesh.live.certificates import signed_bytes
from banditmesh.live.links import codec
from banditmesh.live.member import Observation
from banditmesh.live.statistics import Statistic, certificate_id
from banditmesh.live.transport import TlsTransport
from banditmesh.live.transport.identity import contexts

from .nodes import ARMS, FOREIGN, MESH, Grounds, grounds, until

KINDS = {"signed": "required", "unsigned": "accepted"}
N_ORIGINS = 50
#: Each node has a name, and so a state, of its own.
NUMBERS = itertools.count()
PATIENCE = 300.0
#: How long one certificate floods, in seconds.
FLOOD = 5.0


def measure(quick: bool) -> list[Row]:
    n_joined, n_sent, n_observed = (200, 200, 40) if quick else (100_000, 20_000, 4_000)
    with grounds() as place:
        # First, since what the others leave behind in this process would be looked through for garbage in a step.
        rows = [asyncio.run(flooded(place, 0.5 if quick else FLOOD))]
        rows += asyncio.run(joins(place, n_joined))
        rows += asyncio.run(news(place, n_sent))
        rows += asyncio.run(observing(place, n_observed))
    return rows


def heard_of(place: Grounds, n: int, is_signed: bool) -> tuple[list[Statistic], list[bytes]]:
    """Statistics of many origins, and their certificates."""
    share, arms = -(-n // N_ORIGINS), [*ARMS, *FOREIGN]
    found: list[Statistic] = []
    certificates = []
    for number in range(N_ORIGINS):
        origin, own = f"origin {number}", contexts(place.keys(f"origin {number}"))
        id_ = certificate_id(own.own.certificate)
        certificates.append(own.own.certificate)
        for place_of in range(min(share, n - len(found))):
            arm = arms[place_of] if place_of < len(arms) else f"another {place_of}"
            one = Statistic(origin, 1 << 63, arm, 1, 0.5, 3)
            signature = own.key.sign(signed_bytes(MESH, one.key, one.values)) if is_signed else b""
            found.append(Statistic(*one.key, 1, 0.5, 3, 0.0, 0.0, 0.0, id_ if is_signed else b"", signature))
    return found, certificates if is_signed else []


class Steps:
    """How long the longest step of the event loop takes, in CPU seconds of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        run = asyncio.Handle._run

        def noting(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.longest = max(self.longest, time.thread_time() - began)

        asyncio.Handle._run = noting  # type: ignore[method-assign]
        try:
            yield
        finally:
            asyncio.Handle._run = run  # type: ignore[method-assign]


@contextlib.asynccontextmanager
async def a_sender(config: NodeConfig, heard: Sequence[Statistic], certificates: Sequence[bytes]) -> AsyncIterator[str]:
    """A node in a process of its own that knows all these statistics; its address."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=be_a_sender, args=(theirs, config, heard, certificates), daemon=True
    )
    process.start()
    theirs.close()
    try:
        yield await asyncio.to_thread(ours.recv)
    finally:
        ours.close()
        await asyncio.to_thread(process.join, 20.0)


def be_a_sender(pipe: Connection, config: NodeConfig, heard: list[Statistic], certificates: list[bytes]) -> None:
    async def main() -> None:
        async with Node(config) as node:
            await node._parts.exchange.certified("somebody", certificates)
            # What it knows has been checked before.
            node._member.hear(heard, "somebody", is_checked=True)
            node._member.settle()
            pipe.send(node.address)
            with contextlib.suppress(EOFError):
                await asyncio.to_thread(pipe.recv)

    asyncio.run(main())


async def received(place: Grounds, n: int, kind: str) -> tuple[float, float]:
    """CPU seconds in which a new node takes the table of a neighbour, and the longest step."""
    heard, certificates = heard_of(place, n, kind == "signed")
    steps, number = Steps(), next(NUMBERS)
    config = place.config(f"sender {number}", arms=(), signatures=KINDS[kind])
    async with (
        Node(place.config(f"receiver {number}", signatures=KINDS[kind])) as node,
        a_sender(config, heard, certificates) as address,
    ):
        with steps.noted():
            began = time.process_time()
            node.add_peer(config.node, address)
            await until(lambda: node._member.counters["heard_news"] >= n, "everything must arrive", PATIENCE)
            seconds = time.process_time() - began
            await asyncio.sleep(1.5)  # it is written meanwhile
    return seconds, steps.longest


async def joins(place: Grounds, n: int) -> list[Row]:
    rows: list[Row] = []
    for kind in KINDS:
        seconds, longest = await received(place, n, kind)
        rows.append({"what": f"join with {n:,} entries, {kind}", "value": seconds, "unit": "CPU s"})
        rows.append({"what": f"its longest step, {kind}", "value": 1000 * longest, "unit": "ms of CPU"})
    return rows


async def news(place: Grounds, n: int) -> list[Row]:
    """How much of a small table a node takes in a CPU second: the better of two."""
    rate = {kind: n / min([(await received(place, n, kind))[0] for _ in range(2)]) for kind in KINDS}
    share = rate["signed"] / rate["unsigned"]
    return [
        {"what": "taking a neighbour's table, unsigned", "value": rate["unsigned"], "unit": "statistics a CPU second"},
        {
            "what": "taking a neighbour's table, signed",
            "value": rate["signed"],
            "unit": "statistics a CPU second",
            "share": share,
            "beside": "unsigned",
        },
    ]


async def observing(place: Grounds, n: int) -> list[Row]:
    """CPU time of an observation, one after the other, by a node with keys and by one without; they take turns."""
    least = dict.fromkeys(("with keys", "without"), float("inf"))
    plain = place.config("plain")
    plain = NodeConfig(mesh=MESH, node="plain", arms=plain.arms, protocol=plain.protocol, state=plain.state, plain=True)
    async with Node(place.config("with keys")) as one, Node(plain) as other:
        for _ in range(4):
            for what, node in (("with keys", one), ("without", other)):
                began = time.process_time()
                for _ in range(n // 4):
                    await node.observe_many([Observation(0.5, arm=ARMS[0])])
                least[what] = min(least[what], (time.process_time() - began) / (n // 4))
    signed, unsigned = 1000 * least["with keys"], 1000 * least["without"]
    return [
        {"what": "observe, without keys", "value": unsigned, "unit": "ms of CPU"},
        {
            "what": "observe, with keys",
            "value": signed,
            "unit": "ms of CPU",
            "share": signed / unsigned,
            "beside": "without keys",
        },
    ]


async def flooded(place: Grounds, seconds: float) -> Row:
    """The longest step of a node while a member sends bad signatures as fast as it can, again and again."""
    origin = contexts(place.keys("origin 0")).own.certificate
    bad = [
        Statistic("origin 0", 1 << 63, f"bad {number}", 1, 0.5, 3, 1.0, 0.5, 0.0, certificate_id(origin), b"x" * 64)
        for number in range(400)
    ]
    hello = codec.encode_hello(codec.Hello(MESH, "hostile", 7, codec.VERSION, "fwa(4)", "none"))
    said = hello + codec.encode_statistics([], [origin]) + 4 * codec.encode_statistics(bad)
    steps, dialler = Steps(), TlsTransport(contexts(place.keys("hostile")))
    async with Node(place.config("flooded")) as node:
        with steps.noted():
            end = time.monotonic() + seconds
            while time.monotonic() < end or not node._member.counters["refused_bad_signature"]:
                connection = await dialler.dial(node.address or "", "flooded")
                with contextlib.suppress(OSError):
                    await connection.write(said)
                    while await connection.read():
                        pass
                connection.close()
        await dialler.close()
    return {"what": "longest step in a flood of bad signatures", "value": 1000 * steps.longest, "unit": "ms of CPU"}
