"""A member with a good certificate and bad manners: what it says is refused or within range, and costs its own link.

Each test has a node, a good neighbour whose link never ends, and the hostile one.
"""

import asyncio
import math
import random
import struct
from contextlib import asynccontextmanager

import msgspec
import pytest
from embedded import a_node, counters, estimates, is_linked, refusals, report, run, until
from test_codec import random_frames

import banditmesh as bm
from banditmesh.errors import FrameError
from banditmesh.live import links
from banditmesh.live.links import codec, conversation
from banditmesh.live.names import MAX_COUNT, MAX_REWARD, check_name
from banditmesh.live.statistics import Statistic
from banditmesh.live.transport import PlainTransport, TlsTransport, keys
from banditmesh.live.transport.identity import contexts

FAR = bm.Flooding(8)
HELLO = codec.encode_hello(codec.Hello("shop", "x", 7, 2, "fwa(4)", "none"))


@pytest.fixture(autouse=True)
def as_often_as_it_likes(monkeypatch):
    """Whoever says something wrong has to connect again, here more often than a node allows."""
    monkeypatch.setattr(links, "MAX_UPS", 10**9)


class Hostile:
    """The hostile one, who dials the node as often as it likes."""

    def __init__(self, address, transport=None):
        self._address = address
        self._transport = PlainTransport() if transport is None else transport

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._transport.close()

    async def dial(self, *said):
        """Connect, and say all that at once."""
        connection = await self._transport.dial(self._address, "a")
        await connection.write(b"".join(said))
        return connection

    async def link(self):
        """Connect, say hello, and wait for the answer; `splitter` has the beginning of a frame that came with it."""
        connection = await self.dial(HELLO)
        self.splitter = codec.Splitter()
        while not (frames := self.splitter.feed(await connection.read())):
            pass
        assert codec.decode(frames[0]).node == "a"
        return connection

    async def is_sent_away(self, connection, said):
        """Say something, and wait for the end."""
        await connection.write(said)
        try:
            while await connection.read():
                pass
        except ConnectionError:
            pass
        connection.close()


def statistics(*values):
    """A frame of statistics, whatever they are."""
    return framed(msgspec.msgpack.encode((codec.STATISTICS, values)))


def framed(data):
    return len(data).to_bytes(4, "big") + data


@asynccontextmanager
async def a_mesh(folder, files=None):
    """The node a, its good neighbour b, and the hostile x; in the end a works and b has noticed nothing."""

    def secured(name):
        # What it says is unsigned: ranges are what these tests are about.
        return {"keys": files[name], "signatures": "accepted"} if files else {}

    a = a_node(folder, "a", protocol=FAR, **secured("a"))
    async with a, a_node(folder, "b", {"a": a.address}, protocol=FAR, **secured("b")) as b:
        await until(lambda: is_linked(a, "b"))
        async with Hostile(a.address, TlsTransport(contexts(files["x"])) if files else None) as x:
            yield a, b, x
        await report(a, "red", 0.5)
        await report(b, "blue", 0.5)
        await until(lambda: told(a, "red") in entries(b) and told(b, "blue") in entries(a))
        assert counters(b, "links", "failed_tasks", "refused_malformed") == (1, 0, 0)
        assert counters(a, "failed_tasks", "failed_writes") == (0, 0)
        check_entries(a)
        assert a.choose().arm in ("red", "blue")


def counts(node):
    return {arm: count for arm, (count, _) in estimates(node).items()}


def told(node, arm):
    """What others should know of a node's own rewards of an arm."""
    [own] = [one for one in node._member.own() if one.arm == arm]
    return node.config.node, node._member.life.epoch, arm, own.count


def entries(node):
    """Everything that a node keeps of others."""
    return {(entry.origin, entry.epoch, entry.arm, entry.count) for entry in node._member.entries()}


def check_entries(node):
    """Everything that a node keeps of others is within range."""
    for entry in node._member.entries():
        assert check_name("origin", entry.origin) == entry.origin
        assert check_name("arm", entry.arm) == entry.arm
        assert 0 <= entry.epoch < 2**64
        assert 1 <= entry.count <= MAX_COUNT
        assert abs(entry.total) <= MAX_REWARD * entry.count
        assert 0 <= entry.ttl <= FAR.ttl


async def heard_all(node, connection, count):
    """Wait until everything that was said before is heard: the last word is a statistic of so many rewards."""
    await connection.write(statistics(("x", 7, "red", count, 0.0, 2)))
    await until(lambda: ("x", 7, "red", count) in entries(node))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    keys.init(folder / "authority", "shop")
    return {name: keys.issue(folder / "authority", name, folder) for name in "abx"}


# What is out of range, and the counter that says so.
OUT_OF_RANGE = [
    (("x", 7, "red", 1, 0.5, 0), "ttl"),
    (("x", 7, "red", 1, 0.5, -3), "ttl"),
    (("x", 7, "red", 1, math.nan, 4), "sum"),
    (("x", 7, "red", 1, math.inf, 4), "sum"),
    (("x", 7, "red", 1, -math.inf, 4), "sum"),
    (("x", 7, "red", 1, 1.1e12, 4), "sum"),
    (("x", 7, "red", 0, 0.0, 4), "count"),
    (("x", 7, "red", -1, 0.5, 4), "count"),
    (("x", 7, "red", 2**53, 0.5, 4), "count"),
    (("x", 7, "red", 2**60, 0.5, 4), "count"),
    (("x", 7, "r" * 129, 1, 0.5, 4), "names"),
    (("x" * 100_000, 7, "red", 1, 0.5, 4), "names"),
    (("x", 7, "", 1, 0.5, 4), "names"),
    (("", 7, "red", 1, 0.5, 4), "names"),
    (("x\n", 7, "red", 1, 0.5, 4), "names"),
    (("x", -1, "red", 1, 0.5, 4), "names"),
    (("x", 7, "red", 2**64 - 1, 0.5, 4), "count"),
    ((7, 7, "red", 1, 0.5, 4), "malformed"),
    (("x", 7, "red", 1.5, 0.5, 4), "malformed"),
    (("x", 7, "red", 1, "much", 4), "malformed"),
    (("x", 7, "red", 1, 0.5), "malformed"),
    (("x", 7, "red", 1, 0.5, None), "malformed"),
    ("x", "malformed"),
]


def test_values_out_of_range_are_refused_by_their_reason_and_the_link_goes_on(tmp_path, files):
    async def main():
        async with a_mesh(tmp_path, files) as (a, b, x):
            connection = await x.link()
            expected = {}
            for value, reason in OUT_OF_RANGE:
                await connection.write(statistics(value, ("x", 7, "blue", 1, 0.5, 4)))  # the second one is sound
                expected[f"refused_{reason}"] = expected.get(f"refused_{reason}", 0) + 1
            await connection.write(statistics(("x", 7, "blue", 2, 1.0, 255)))
            await until(lambda: estimates(a)["blue"] == estimates(b)["blue"] == (2, 0.5))
            assert refusals(a) == expected
            assert counts(a) == {"red": 0, "blue": 2}
            assert counters(a, "heard_stale") == (len(OUT_OF_RANGE) - 1,)
            # A ttl of 255 is worth no more than the protocol's: b got it with one hop less, and less one.
            assert [entry.ttl for entry in b._member.entries() if entry.arm == "blue"] == [FAR.ttl - 2]
            assert refusals(b) == {}

    run(main())


def wild_frame(rng):
    """A frame of statistics of right types and random values, some of them of other types."""
    values = []
    for _ in range(rng.randrange(1, 4)):
        value = [
            rng.choice(["a", "b", "x", f"n{rng.randrange(40)}", rng.randbytes(3).decode("latin-1"), "x" * 129]),
            rng.choice([1, 7, rng.getrandbits(4), rng.getrandbits(4) << 60, -1]),
            rng.choice(["red", "blue", f"arm {rng.randrange(20)}", "\ud7ff" * rng.randrange(50)]),
            rng.choice([1, 2, 3, rng.getrandbits(rng.randrange(1, 64)), -rng.getrandbits(60)]),
            rng.choice([0.5, -1.0, rng.gauss(0, 10), *struct.unpack("d", rng.randbytes(8))]),
            rng.choice([0, 1, 4, 255, rng.getrandbits(62), -rng.getrandbits(62)]),
        ]
        if rng.random() < 0.1:
            value[rng.randrange(6)] = rng.choice([None, True, "1", 1.5, [], {}, b"x"])
        values.append(value[: rng.choice([5, 6, 6, 6, 7])] + [0] * rng.randrange(2))
    return statistics(*values)


def ends_a_link(frame):
    try:
        return isinstance(codec.decode(frame), codec.Hello | codec.Bye)
    except FrameError:
        return True


def send_random_frames(folder, files, n, n_ending, seed):
    """Wild ones on one link over TLS, and those that end a link on one of their own each."""
    rng = random.Random(seed)
    frames = list(random_frames(rng, 2 * n_ending))
    ending = [frame for frame in frames if ends_a_link(frame)][:n_ending]
    others = [frame for frame in frames if not ends_a_link(frame)]

    async def wild():
        async with a_mesh(folder / "wild", files) as (a, _, x):
            connection = await x.link()
            for start in range(0, n, 500):
                await connection.write(b"".join(wild_frame(rng) for _ in range(min(500, n - start))))
            await connection.write(b"".join(map(framed, others)))
            await heard_all(a, connection, MAX_COUNT)
            assert counters(a, "links", "ended_malformed") == (2, 0)
            assert set(refusals(a)) >= {f"refused_{why}" for why in ("count", "sum", "ttl", "names", "malformed")}
            assert counters(a, "heard_news") > (n // 20,)

    async def ended():
        async with a_mesh(folder / "ending") as (a, _, x):
            for frame in ending:
                await x.is_sent_away(await x.link(), framed(frame))
            assert sum(counters(a, "ended_malformed", "ended_bye")) == len(ending) == n_ending
            assert refusals(a) == {}

    run(wild(), patience=550)
    run(ended(), patience=550)


def test_random_frames_are_refused_or_within_range(tmp_path, files):
    send_random_frames(tmp_path, files, 5_000, n_ending=200, seed=1)


@pytest.mark.slow
def test_many_random_frames_are_refused_or_within_range(tmp_path, files):
    send_random_frames(tmp_path, files, 200_000, n_ending=20_000, seed=2)


def test_every_single_bit_flip_of_a_frame_is_refused_or_within_range(tmp_path):
    frame = codec.encode_statistics([Statistic("x", 7, "red", 3, 1.5, 4)])

    async def main():
        async with a_mesh(tmp_path) as (a, _, x):
            for bit in range(8 * len(frame)):
                flipped = bytearray(frame)
                flipped[bit // 8] ^= 1 << bit % 8
                connection = await x.link()
                await connection.write(bytes(flipped))
                connection.close()
            await heard_all(a, await x.link(), 1000)
            assert counters(a, "ended_malformed") > (50,)
            assert len(entries(a)) > 20  # other names, epochs and counts: forged, and sound

    run(main())


LONGEST = (2**32 - 1).to_bytes(4, "big")


@pytest.mark.parametrize(
    "said", [LONGEST, LONGEST + bytes(60_000), b"\x00\x04\x00\x01"], ids=["4 GB", "begun", "256 KiB"]
)
def test_length_above_the_limit_ends_the_link_at_once(tmp_path, said):
    async def main():
        async with a_mesh(tmp_path) as (a, _, x):
            await x.is_sent_away(await x.link(), said)
            await x.is_sent_away(await x.dial(), said)
            assert counters(a, "ended_malformed", "refused_malformed") == (1, 1)

    run(main())


def test_truncated_frames_are_not_heard(tmp_path):
    frame = codec.encode_statistics([Statistic("x", 7, "red", 3, 1.5, 4)])

    async def main():
        async with a_mesh(tmp_path) as (a, _, x):
            for end in range(len(frame)):
                connection = await x.dial(HELLO, frame[:end])
                connection.close()
            await until(lambda: counters(a, "links") == (1 + len(frame),))
            await until(lambda: not is_linked(a, "x"))
            assert counts(a) == {"red": 0, "blue": 0}

    run(main())


def test_slow_loris_is_sent_away_before_its_hello_and_holds_up_nobody_after_it(tmp_path, monkeypatch):
    frame = codec.encode_statistics([Statistic("x", 7, "red", 3, 1.5, 4)])
    patience = conversation.HELLO_WITHIN

    async def dribble(connection, data, pause=0.01):
        for byte in data:
            await connection.write(bytes([byte]))
            await asyncio.sleep(pause)

    async def main():
        async with a_mesh(tmp_path) as (a, b, x):
            monkeypatch.setattr(conversation, "HELLO_WITHIN", 0.3)
            silent = [await x.dial(HELLO[:4]) for _ in range(10)]
            slow = await x.dial()
            with pytest.raises(ConnectionError):
                await dribble(slow, HELLO * 100, pause=0.1)  # a hello alone takes longer than it may
            for connection in silent:
                assert await connection.read() == b""
            assert counters(a, "refused_no_hello") == (11,)
            monkeypatch.setattr(conversation, "HELLO_WITHIN", patience)
            patient = await x.link()
            await dribble(patient, frame[:-1])
            await report(b, "blue", 1.0)
            await until(lambda: counts(a) == {"red": 0, "blue": 1})  # while the frame is under way
            await dribble(patient, frame[-1:])
            await until(lambda: counts(a) == {"red": 3, "blue": 1})

    run(main())
