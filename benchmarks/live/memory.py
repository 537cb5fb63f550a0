"""What an entry, a waiting key, a link and a ticket take, beside the most that they may take.

Each is measured in a process of its own, as what the process holds more of the machine's memory afterwards.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

from tables import Row
from timing import in_new_process

import banditmesh as bm
from banditmesh.live import ArmSpec, Node, Observation
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.links import codec
from banditmesh.live.links.conversation import SLICE
from banditmesh.live.member import Member
from banditmesh.live.names import Caps
from banditmesh.live.transport import TlsTransport
from banditmesh.live.transport.identity import contexts

from . import sizes as formula
from .nodes import ARMS, MESH, grounds, statistics, until

SCRIPT = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from live import memory; memory.one()"
STATM = Path("/proc/self/statm")
#: A process that has done no more than import what a node with its sidecar needs of others, and begun to speak TLS.
OTHERS = """
import asyncio, json, resource, sqlite3, ssl, sys
import httptools, msgspec, uvicorn, uvloop
import cryptography.x509
from cryptography.hazmat.primitives.asymmetric import ed25519
ssl.create_default_context()
print(json.dumps(int(open(sys.argv[1]).read().split()[1]) * resource.getpagesize()))
"""
#: What is measured, how many of them, and the most bytes of one.
WHAT = {
    "an entry of the table": ("entries", 100_000, formula.ENTRY),
    "an entry that waits for a link": ("waiting", 400_000, formula.WAITING),
    "a link": ("links", 100, formula.LINK),
    "an open ticket": ("open_tickets", 100_000, formula.CHOICE),
    "a closed ticket between open ones": ("closed_tickets", 50_000, formula.INTERVAL),
}


def measure(quick: bool) -> list[Row]:
    if not STATM.exists():
        return [{"what": "memory", "unit": "not measured: this system does not show it"}]
    others = in_new_process(OTHERS, STATM)
    what = "memory of a process that has only imported what a node needs of others"
    rows: list[Row] = [{"what": what, "value": others, "unit": "bytes"}]
    for what, (name, n, most) in WHAT.items():
        if quick and name != "links":
            continue
        n = 2 if quick else n
        value = in_new_process(SCRIPT, name, n) / n
        beside = f"the most, {most:,}"
        rows.append(
            {"what": f"memory of {what}", "value": value, "unit": "bytes", "share": value / most, "beside": beside}
        )
    return rows


def one() -> None:
    """What the new process does: make a number of one thing, and print by how many bytes it has grown."""
    name, n = sys.argv[1], int(sys.argv[2])
    grown = asyncio.run(links(n)) if name == "links" else {"entries": entries, "waiting": waiting}.get(name, tickets)(n)
    print(json.dumps(grown))


def held() -> int:
    """Bytes of the machine's memory that this process holds."""
    import gc
    import resource

    gc.collect()
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


def member(n_entries: int = 1_000_000) -> Member:
    arms = [ArmSpec(arm, law="gaussian", sigma=1.0) for arm in ARMS]
    caps = Caps(entries=n_entries, origins=n_entries)
    one = Member(MESH, "me", [BanditSpec(name="default", arms=arms)], bm.FwA(4), caps=caps, rng=random.Random(0))
    one.committed(one.begin(1, 0.0))
    return one


def hear(one: Member, n: int) -> None:
    """Hear of that many keys, as a link brings them."""
    for start in range(0, n, SLICE):
        heard = statistics(min(SLICE, n - start), first=start)
        frame = codec.encode_statistics(heard)
        message = codec.decode(frame[4:])
        assert isinstance(message, codec.Statistics)
        one.hear(message.statistics, "somebody")
        one.settle()


def entries(n: int) -> int:
    one = member()
    before = held()
    hear(one, n)
    return held() - before


def waiting(n: int) -> int:
    one = member()
    hear(one, n // 2)  # half of them are of arms that it has, and absorbs; the others wait for four links
    before = held()
    for peer in "abcd":
        one.link_up(peer)
    assert sum(map(one.waiting, "abcd")) == n
    return held() - before


def tickets(n: int) -> int:
    """Open tickets, or as many closed ones, each between two that stay open."""
    one = member()
    closes = sys.argv[1] == "closed_tickets"
    chosen = [one.choose(0.0)[1] for _ in range(2 * n)] if closes else []
    before = held()
    if not closes:
        for _ in range(n):
            one.choose(0.0)
    for start in range(0, len(chosen), 2_000):
        commit, _ = one.plan([Observation(0.5, ticket) for ticket in chosen[start : start + 2_000 : 2]], 0.0)
        one.committed(commit)
    return held() - before


async def links(n: int) -> int:
    """Idle links over mutual TLS; the other ends, which are here as well, count too."""
    with grounds() as place:
        # Whatever is made once is made for the first link.
        diallers = [TlsTransport(contexts(place.keys(f"other {number}"))) for number in range(n + 1)]
        async with Node(place.config("hub")) as hub:
            connections = []
            for number, dialler in enumerate(diallers):
                connection = await dialler.dial(hub.address or "", "hub")
                hello = codec.Hello(MESH, f"other {number}", number, codec.VERSION, "fwa(4)", "bench")
                await connection.write(codec.encode_hello(hello))
                await connection.read()
                connections.append(connection)
                if number == 0:
                    before = held()
            await until(lambda: len(hub.peers()) == n + 1, "all links must come up")
            after = held()
            for connection in connections:
                connection.close()
            for dialler in diallers:
                await dialler.close()
    return after - before
