"""What a link carries for a second of CPU time: encoding alone, TLS alone, both, hearing alone, and two whole nodes.

CPU time is that of one thread, which has both ends. The same statistics go over in every case.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence

from tables import Row

import banditmesh as bm
from banditmesh.live import ArmSpec, Node
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.disk.state import Store
from banditmesh.live.links import codec
from banditmesh.live.links.conversation import BATCH, SLICE
from banditmesh.live.member import Member
from banditmesh.live.statistics import Entry, Statistic
from banditmesh.live.transport import Connection, TlsTransport
from banditmesh.live.transport.identity import contexts

from .nodes import ARMS, MESH, Grounds, grounds, statistics, until

UNIT = "statistics a CPU second"


def measure(quick: bool) -> list[Row]:
    n_keys, repeats = (500, 2) if quick else (20_000, 20)
    with grounds() as place:
        batches = in_batches(statistics(n_keys, 1))
        per_second = {
            "encoding and decoding alone": n_keys / least(repeats, lambda: encode_and_decode(batches)),
            "hearing alone": n_keys / hearing(n_keys, repeats),
        }
        both, tls = asyncio.run(over_tls(place, batches, repeats))
        per_second |= {"TLS alone, both ends": n_keys / tls, "encoding and TLS": n_keys / both}
        pair = n_keys / asyncio.run(two_nodes(place, n_keys, repeats))
        writing = n_keys / saving(place, n_keys, min(repeats, 4))
    rows: list[Row] = [{"what": what, "value": value, "unit": UNIT} for what, value in per_second.items()]
    share = pair / per_second["encoding and TLS"]
    beside = "encoding and TLS"
    return [
        *rows,
        {"what": "two nodes over mutual TLS", "value": pair, "unit": UNIT, "share": share, "beside": beside},
        {"what": "writing the table to disk", "value": writing, "unit": UNIT},
    ]


def least(repeats: int, work: Callable[[], object]) -> float:
    """The least CPU seconds of some repeats."""
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def in_batches(heard: Sequence[Statistic]) -> list[list[Statistic]]:
    """Statistics as a node sends them: in batches of at most 64 KiB."""
    sender = member("sender", [])
    sender.link_up("receiver")
    sender.hear(heard, "somebody")
    batches = []
    while batch := sender.take("receiver", BATCH):
        batches.append(batch)
    return batches


def member(name: str, arms: Sequence[str]) -> Member:
    specs = [ArmSpec(arm, law="gaussian", sigma=1.0) for arm in arms]
    protocol = bm.FwA(4, emission=bm.Growth(0.25))
    one = Member(MESH, name, [BanditSpec(name="default", arms=specs)], protocol, rng=random.Random(0))
    one.committed(one.begin(1, 0.0))
    return one


def encode_and_decode(batches: list[list[Statistic]]) -> None:
    splitter = codec.Splitter()
    for batch in batches:
        for frame in splitter.feed(codec.encode_statistics(batch)):
            codec.decode(frame)


def hearing(n_keys: int, repeats: int) -> float:
    """A member hears of known keys with larger counts, in the slices in which a node does."""
    one = member("receiver", ARMS)
    one.link_up("sender")
    rounds = [statistics(n_keys, count) for count in range(1, repeats + 2)]

    def hear() -> None:
        heard = rounds.pop(0)
        for start in range(0, n_keys, SLICE):
            one.hear(heard[start : start + SLICE], "sender")
            one.settle()

    hear()
    return least(repeats, hear)


def saving(place: Grounds, n_keys: int, repeats: int) -> float:
    """A store writes all keys, which it has already, with larger counts."""
    with Store.open(place.folder / "state" / "saving", MESH, "saving") as store:
        rounds = [
            [Entry(*one.key, count, 0.5 * count, 3, passes=True) for one in statistics(n_keys)]
            for count in range(1, repeats + 2)
        ]
        store.write_entries(rounds.pop(0))
        return least(repeats, lambda: store.write_entries(rounds.pop(0)))


async def over_tls(place: Grounds, batches: list[list[Statistic]], repeats: int) -> tuple[float, float]:
    """CPU seconds of sending the batches over mutual TLS: encoded and decoded, and as bytes alone."""
    came: asyncio.Queue[Connection] = asyncio.Queue()
    listener, dialler = (TlsTransport(contexts(place.keys(name))) for name in ("listener", "dialler"))
    door = await listener.listen("127.0.0.1:0", came.put)
    near = await dialler.dial(door.address, "listener")
    far = await came.get()
    encoded = [codec.encode_statistics(batch) for batch in batches]
    n_statistics, n_bytes = sum(map(len, batches)), sum(map(len, encoded))

    async def send(with_codec: bool) -> None:
        for batch, frame in zip(batches, encoded, strict=True):
            await near.write(codec.encode_statistics(batch) if with_codec else frame)

    async def receive(with_codec: bool) -> None:
        splitter, left = codec.Splitter(), n_statistics if with_codec else n_bytes
        while left:
            data = await far.read()
            if not with_codec:
                left -= len(data)
                continue
            for frame in splitter.feed(data):
                left -= len(codec.decode(frame).statistics)  # type: ignore[union-attr]

    async def seconds(with_codec: bool) -> float:
        began = time.thread_time()
        await asyncio.gather(send(with_codec), receive(with_codec))
        return time.thread_time() - began

    both = min([await seconds(True) for _ in range(repeats)])
    tls = min([await seconds(False) for _ in range(repeats)])
    near.close()
    far.close()
    door.close()
    await asyncio.gather(listener.close(), dialler.close())
    return both, tls


async def two_nodes(place: Grounds, n_keys: int, repeats: int) -> float:
    """CPU seconds in which one node sends another larger counts of all keys.

    The sender has no arms: it only relays. It is handed what it relays from inside, so that how it came to know it
    costs nothing here. Both nodes share this thread; the threads that write their tables are not counted. Each time a
    quarter of the keys is sent, so that on a busy machine, too, some times fall between two such writings.
    """
    sender, receiver = (
        Node(place.config(name, arms, signatures="accepted")) for name, arms in (("sender", ()), ("receiver", ARMS))
    )
    quarter, times = n_keys // 4, []
    async with sender, receiver:
        receiver.add_peer("sender", sender.address)
        await until(lambda: all(peer.state == "up" for peer in receiver.peers()), "the link must come up")
        for repeat in range(4 * (repeats + 1)):
            heard = statistics(quarter, 1 + repeat // 4, first=repeat % 4 * quarter)
            wanted = quarter * (repeat + 1)
            sender._member.hear(heard, "somebody")
            began = time.thread_time()
            sender._parts.something_changed()
            await until(lambda: receiver._member.counters["heard_news"] >= wanted, "everything must arrive")  # noqa: B023
            times.append(time.thread_time() - began)
    # The first four times every key is new.
    return 4 * min(times[4:])
