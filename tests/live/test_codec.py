"""Frames: what is encoded comes back, and no bytes of a stranger do more than a FrameError."""

import random
import re
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from banditmesh.errors import BanditmeshError, FrameError, InputError
from banditmesh.live.certificates import signed_bytes
from banditmesh.live.links import codec
from banditmesh.live.links.codec import Bye, Hello, Notices, Ping, Pong, Splitter, Statistics, Wanted
from banditmesh.live.statistics import Statistic, Values

HELLO = Hello("shop", "node-a", 2**64 - 1, 2, "fwa(4)+growth(0.25)", "banditmesh 1.0", [("default", "")])
SENT = [Statistic("node-a", 2**64 - 1, "red", 3, -1.5, 4), Statistic("b/ü", 0, "blau", 2**53 - 1, 1e12, 255)]
SIGNED = [Statistic("a", 1, "red", 3, 1.5, 4, 2.5, 1.25, 1.8e9, bytes(16), bytes(64)), SENT[0]]
WANTED = Wanted([bytes(16), b"other"], ["node-a"])
FRAMES = {
    "hello": (codec.encode_hello(HELLO), HELLO),
    "statistics": (codec.encode_statistics(SENT), Statistics(SENT)),
    "signed": (codec.encode_statistics(SIGNED, [b"one"]), Statistics(SIGNED, 0, (b"one",))),
    "wanted": (codec.encode_wanted(WANTED.certificates, WANTED.names), WANTED),
    "notices": (codec.encode_notices([b"one", b""]), Notices([b"one", b""])),
    "ping": (codec.encode_ping(), Ping(0)),
    "pong": (codec.encode_pong(2**63), Pong(2**63)),
    "bye": (codec.encode_bye("leaving"), Bye("leaving")),
}
KINDS = (Hello, Statistics, Notices, Ping, Pong, Bye, Wanted)
TYPES = (str, int, str, int, float, int, float, float, float, bytes, bytes)


def pack(*values):
    return msgspec.msgpack.encode(values)


def check(frame):
    """A frame is refused, unknown, or a message of the right types; nothing else may happen."""
    try:
        message = codec.decode(frame)
    except FrameError:
        return "refused"
    if message is None:
        return "unknown"
    assert isinstance(message, KINDS)
    if isinstance(message, Statistics):
        for one in message.statistics:
            assert tuple(map(type, astuple(one))) == TYPES
    return "read"


@pytest.mark.parametrize("name", FRAMES)
def test_what_is_encoded_comes_back(name):
    frame, message = FRAMES[name]
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    found = codec.decode(frame[4:])
    assert found == message
    assert type(found) is type(message)


names = st.text(min_size=1, max_size=128)
wholes = st.integers(0, 2**64 - 1)


@given(st.lists(st.builds(Statistic, names, wholes, names, wholes, st.floats(allow_nan=False), st.integers(0, 255))))
def test_any_statistics_come_back(statistics):
    assert codec.decode(codec.encode_statistics(statistics)[4:]) == Statistics(statistics)


@pytest.mark.parametrize("name", FRAMES)
def test_every_single_bit_flip_is_refused_or_of_right_types(name):
    frame = FRAMES[name][0]
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            complete = Splitter().feed(bytes(flipped))
        except FrameError:
            continue
        for one in complete:
            check(one)


@pytest.mark.parametrize("name", FRAMES)
def test_every_truncation_is_refused(name):
    frame = FRAMES[name][0]
    for end in range(len(frame) - 4):
        assert check(frame[4 : 4 + end]) == "refused"


def random_frames(rng, n):
    """Half of them noise, half of them sound frames in which some bytes are noise or missing."""
    sound = [frame[4:] for frame, _ in FRAMES.values()]
    for number in range(n):
        if number % 2:
            yield rng.randbytes(rng.randrange(60))
        else:
            frame = bytearray(rng.choice(sound))
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(frame) + 1)
                frame[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
            yield bytes(frame)


def test_random_frames_do_nothing_else():
    outcomes = [check(frame) for frame in random_frames(random.Random(1), 20_000)]
    assert {"refused", "unknown", "read"} == set(outcomes)


@pytest.mark.slow
def test_many_random_frames_do_nothing_else():
    outcomes = [check(frame) for frame in random_frames(random.Random(2), 200_000)]
    assert {"refused", "unknown", "read"} == set(outcomes)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"GET / HTTP/1.1\r\n\r\n",
        pack(),
        pack("hello", []),
        pack(None, []),
        pack(codec.HELLO),
        pack(codec.HELLO, [1, 2, 3]),
        pack(codec.HELLO, ["m", "n", -1, 1, "p", "s"]),
        pack(codec.HELLO, ["m", "n", 1, 0, "p", "s"]),
        pack(codec.HELLO, ["m", "n" * 257, 1, 1, "p", "s"]),
        pack(codec.STATISTICS, 5),
        pack(codec.STATISTICS, {}),
        pack(codec.NOTICES, ["text"]),
        pack(codec.BYE, [7]),
        pack(codec.HELLO, ["m", "n", 1, 2, "p", "s", [["default"]]]),
        pack(codec.HELLO, ["m", "n", 1, 2, "p", "s", [["default", ""]] * (codec.MAX_BANDITS + 1)]),
        pack(codec.STATISTICS, [], [7]),
        pack(codec.STATISTICS, [], {}),
        pack(codec.WANTED, [["text"], []]),
        pack(codec.WANTED, [[], ["a"] * (codec.MAX_WANTED + 1)]),
        pack(codec.BYE, ["x" * 257]),
        pack(codec.PING, []) + b"\x00",
        b"\x92\x02" + b"\x91" * 200_000,
        b"\x91" * 200_000,
        b"\x92\x63" + b"\x81" * 200_000,
        b"\x92\x02\xdd\xff\xff\xff\xff",
        b"\x92\x03\xdd\xff\xff\xff\xff",
        b"\x92\x02\xdf\xff\xff\xff\xff",
        b"\x92\x06\x91\xdb\xff\xff\xff\xff",
        b"\x92\x06\x91\xa1\xff",
    ],
    ids=lambda frame: frame[:12].hex(),
)
def test_hostile_frame_is_refused(frame):
    with pytest.raises(FrameError) as caught:
        codec.decode(frame)
    assert len(str(caught.value).splitlines()) == 1


def test_unknown_kinds_are_skipped():
    for kind in (0, 8, 2**63, -1):
        assert codec.decode(pack(kind, {"anything": [1, 2]})) is None
        assert codec.decode(pack(kind)) is None


def test_later_versions_may_lengthen_every_array():
    later = {"later": [1]}
    fields = msgspec.structs.astuple(HELLO)
    assert codec.decode(pack(codec.HELLO, [*fields, later], later)) == HELLO
    longer = [[*astuple(one), later] for one in SENT]
    assert codec.decode(pack(codec.STATISTICS, longer, [b"one"], later)) == Statistics(SENT, 0, (b"one",))
    assert codec.decode(pack(codec.WANTED, [[], ["a"], later], later)) == Wanted([], ["a"])
    assert codec.decode(pack(codec.STATISTICS, [longer[0], SENT[1]])) == Statistics(SENT)
    assert codec.decode(pack(codec.NOTICES, [b"one"], later)) == Notices([b"one"])
    assert codec.decode(pack(codec.PING, [3, later])) == Ping(3)
    assert codec.decode(pack(codec.BYE, ["leaving", later])) == Bye("leaving")


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        7,
        [],
        ["a", 1, "red", 1, 1.0],
        [b"a", 1, "red", 1, 1.0, 1],
        ["a", "1", "red", 1, 1.0, 1],
        ["a", 1.0, "red", 1, 1.0, 1],
        ["a", 1, "red", True, 1.0, 1],
        ["a", 1, "red", 1, "1.0", 1],
        ["a", 1, "red", 1, None, 1],
        ["a", 1, "red", 1, 1.0, 1, "1.0"],
        ["a", 1, "red", 1, 1.0, 1, 1.0, 1.0, None],
        ["a", 1, "red", 1, 1.0, 1, 1.0, 1.0, 0.0, "id", b""],
        ["a", 1, "red", 1, 1.0, 1, 1.0, 1.0, 0.0, b"", 7],
        {"a": 1},
    ],
    ids=repr,
)
def test_malformed_statistic_costs_neither_the_link_nor_the_others(malformed):
    assert codec.decode(pack(codec.STATISTICS, [SENT[0], malformed, SENT[1]])) == Statistics(SENT, 1)


def test_frame_of_malformed_statistics_alone_is_refused_before_each_was_looked_at():
    some = pack(codec.STATISTICS, [None] * codec.MAX_MALFORMED + SENT)
    assert codec.decode(some) == Statistics(SENT, codec.MAX_MALFORMED)
    with pytest.raises(FrameError, match="1000 malformed statistics"):
        codec.decode(pack(codec.STATISTICS, [None] * 200_000))


def test_statistic_with_text_that_is_not_utf8_is_malformed():
    frame = pack(codec.STATISTICS, [SENT[0], ("?", 1, "red", 1, 1.0, 1)]).replace(b"\xa1?", b"\xa1\xff")
    assert codec.decode(frame) == Statistics(SENT[:1], 1)


def test_neighbour_of_version_1_gets_what_it_knows():
    frame = codec.encode_statistics(SIGNED, [b"one"], version=1)
    assert frame == codec.encode_statistics([Statistic(*astuple(one)[:6]) for one in SIGNED])
    assert codec.encode_statistics(SENT) == codec._frame(codec.STATISTICS, [astuple(one)[:6] for one in SENT])


def test_whole_sums_become_floats():
    [one] = codec.decode(pack(codec.STATISTICS, [["a", 1, "red", 2, 3, 1]])).statistics
    assert type(one.total) is float
    assert one.total == 3


def test_what_is_out_of_range_is_for_the_member_to_refuse():
    odd = [Statistic("", -1, "", 2**60, float("inf"), -(2**63))]
    assert codec.decode(pack(codec.STATISTICS, odd)) == Statistics(odd)


def test_frame_that_would_be_too_long_is_not_made():
    with pytest.raises(InputError, match="at most 262144 bytes, got 3000"):
        codec.encode_notices([b"x" * 100_000] * 3)


def test_long_reasons_are_cut():
    assert codec.decode(codec.encode_bye("x" * 1000)[4:]) == Bye("x" * 256)


def test_splitter_gives_the_same_frames_however_the_stream_is_cut():
    frames = [frame for frame, _ in FRAMES.values()] * 3
    stream = b"".join(frames)
    rng = random.Random(3)
    for _ in range(200):
        cuts = sorted(rng.randrange(len(stream)) for _ in range(rng.randrange(20)))
        splitter = Splitter()
        found = []
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found += splitter.feed(stream[start:end])
        assert found == [frame[4:] for frame in frames]


def test_length_above_the_limit_is_refused_before_anything_follows():
    for header in (b"\xff\xff\xff\xff", (codec.MAX_FRAME + 1).to_bytes(4, "big")):
        splitter = Splitter()
        for byte in header[:3]:
            assert splitter.feed(bytes([byte])) == []
        with pytest.raises(FrameError, match="at most 262144 bytes, got a length of"):
            splitter.feed(header[3:])


def test_longest_frame_passes_in_single_pieces():
    frame = b"x" * codec.MAX_FRAME
    splitter = Splitter()
    stream = len(frame).to_bytes(4, "big") + frame
    found = [one for start in range(0, len(stream), 1000) for one in splitter.feed(stream[start : start + 1000])]
    assert found == [frame]


def test_errors_of_peers_are_errors_of_banditmesh():
    assert issubclass(FrameError, BanditmeshError)


def test_example_of_the_document_is_what_is_sent():
    page = (Path(__file__).parents[2] / "docs" / "live" / "wire.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n((?:[0-9a-f]{2} ).*?)^```$", page, re.MULTILINE | re.DOTALL)
    *shown, _ = (bytes.fromhex(re.sub(r"#.*", "", block)) for block in blocks)  # the last one is a notice
    hello = Hello("shop", "a", 0x0123456789ABCDEF, 2, "fwa(4)", "banditmesh 1.0", [("default", "")])
    statistics = [Statistic("a", 0x0123456789ABCDEF, "red", 3, 2.5, 4)]
    assert shown == [
        codec.encode_hello(hello),
        codec.encode_statistics(statistics),
        codec.encode_ping(1),
        codec.encode_bye("leaving"),
    ]


LIVE_DOCS = Path(__file__).parents[2] / "docs" / "live"


def test_vectors_are_what_is_signed():
    vectors = msgspec.json.decode((LIVE_DOCS / "vectors.json").read_bytes())
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vectors["private_key"]))
    assert key.public_key().public_bytes_raw().hex() == vectors["public_key"]
    for one in vectors["statistics"]:
        values = Values(*(one[name] for name in ("count", "sum", "weight", "weighted_sum", "stamp")))
        signed = signed_bytes(one["mesh"], (one["origin"], int(one["epoch"], 16), one["arm"]), values)
        assert (signed.hex(), key.sign(signed).hex()) == (one["signed"], one["signature"])
    page = (LIVE_DOCS / "wire.md").read_text(encoding="utf-8").replace(" ", "").replace("\n", "")
    assert vectors["statistics"][0]["signed"] in page
    assert vectors["statistics"][0]["signature"] in page


@given(st.builds(Values.of, st.integers(1, 2**53 - 1), st.floats(-1e12, 1e12)), wholes, names)
def test_what_is_signed_is_the_same_whoever_encodes_it(values, epoch, name):
    [one] = codec.decode(codec.encode_statistics([Statistic(name, epoch, "red", *values[:2], 4)])[4:]).statistics
    written_out = Statistic(
        name, epoch, "red", values.count, -0.0 if not values.total else values.total, 4, *values[2:]
    )
    [other] = codec.decode(codec.encode_statistics([written_out])[4:]).statistics
    assert signed_bytes("shop", one.key, one.values) == signed_bytes("shop", other.key, other.values)
