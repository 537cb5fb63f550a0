"""The fields of wire version 2 and state format 2, and the authority's certificates and notices, with random things in
their places: whatever comes is refused in one line, or is within every range.

Values are drawn from the edges of what a field may have and from beyond them. The slow tests draw more.
"""

import random
import sqlite3
from contextlib import closing

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from members import make
from test_state import FULL, load, open_store
from world_keys import AUTHORITIES, MESH, Credential

from banditmesh.errors import FrameError, NoticeError, StoreError
from banditmesh.live.certificates import (
    Certificate,
    Certificates,
    RefusedCertificate,
    read_certificate,
    signed_bytes,
)
from banditmesh.live.disk import schema
from banditmesh.live.disk.state import FILE
from banditmesh.live.links import codec, notices
from banditmesh.live.signing import check_signatures
from banditmesh.live.statistics import Known, Statistic, why_refused

KEYS = {name: Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place, name in enumerate("abx")}
CREDENTIALS = {name: Credential(name, key) for name, key in KEYS.items()}
CERTIFICATES = {
    name: read_certificate(one.der, MESH, [AUTHORITIES[0].certificate]) for name, one in CREDENTIALS.items()
}

#: How certificates name the algorithm of keys and signatures, and a name that none has.
ED25519, UNKNOWN = b"\x06\x03\x2b\x65\x70", b"\x06\x03\x2b\x65\x78"

names = st.sampled_from(["a", "b", "x", "ads/de/red", "red", "", "\n", "a" * 129, "ü" * 64, "%/%"])
wholes = st.sampled_from([0, 1, 2, 3, 2**31, 2**53 - 1, 2**53, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
reals = st.sampled_from([0.0, -0.0, 0.5, 1.0, 3.0, 1e12, 1.1e12, 1.8e9, 2.0**53, 2.0**54, 5e-324]) | st.floats()
ids = st.sampled_from([b"", bytes(16), bytes(15), *(one.id for one in CREDENTIALS.values())])
signatures = st.sampled_from([b"", bytes(64), bytes(63)])
statistics = st.builds(
    Statistic, names, wholes, names, wholes, reals, st.integers(-2, 300), reals, reals, reals, ids, signatures
)
anything = st.recursive(
    st.none() | st.booleans() | wholes | reals | names | st.binary(max_size=70),
    lambda more: st.lists(more, max_size=4) | st.dictionaries(names, more, max_size=2),
    max_leaves=8,
)
#: Fields of a statistic, right or not, and too few or too many of them.
fields = st.tuples(names, wholes, names, wholes, reals, wholes, reals, reals, reals, ids, signatures)
mixed = st.tuples(fields, st.integers(0, 13), st.integers(0, 10), anything, st.booleans())


def malformed(draw):
    """The fields of a statistic, cut to a length, perhaps with something else in one place."""
    values, length, place, other, is_other = draw
    found = [*values, "later", 1][:length]
    if is_other and place < length:
        found[place] = other
    return found


def check_line(error):
    assert len(str(error).splitlines()) == 1


def known(one):
    """A statistic as a node that has heard it passes it on."""
    row = Known(one.key, has_arm=False, is_own=False)
    row.put(one.values, one.certificate, one.signature)
    return row.statistic(one.ttl)


def check_frame(frame):
    """A frame is refused in one line, or says something of the right types, which says the same again."""
    try:
        message = codec.decode(frame)
    except FrameError as error:
        return check_line(error)
    if isinstance(message, codec.Statistics):
        said = [one for one in message.statistics if why_refused(one.values) is None]
        assert all(signed_bytes(MESH, one.key, one.values) for one in said)
        # What stands says the same again.
        said = [known(one) for one in said]
        again = codec.decode(codec.encode_statistics(said, list(message.certificates))[4:])
        assert (again.statistics, list(again.certificates)) == (said, list(message.certificates))
    elif isinstance(message, codec.Wanted):
        assert len(message.certificates) <= codec.MAX_WANTED
        assert len(message.names) <= codec.MAX_WANTED
    elif isinstance(message, codec.Hello):
        assert len(message.bandits) <= codec.MAX_BANDITS


kinds = st.integers(0, 9)
bodies = st.lists(mixed.map(malformed), max_size=4) | anything | st.lists(anything, max_size=8)


def fuzz_frames(n):
    @settings(max_examples=n)
    @given(kinds, bodies, anything)
    def fuzz(kind, body, more):
        check_frame(msgspec.msgpack.encode((kind, body, more)))

    fuzz()


def test_any_frame_is_refused_or_of_right_types():
    fuzz_frames(100)


@pytest.mark.slow
def test_any_frame_is_refused_or_of_right_types_many_times():
    fuzz_frames(30_000)


def say(one, name):
    """A statistic, signed by a member's key as it is."""
    signature = KEYS[name].sign(signed_bytes(MESH, one.key, one.values))
    weight, weighted_total, stamp = one.values[2:]
    more = {"weight": weight, "weighted_total": weighted_total, "stamp": stamp}
    return msgspec.structs.replace(one, **more, certificate=CREDENTIALS[name].id, signature=signature)


def fuzz_table(n):
    @settings(max_examples=n)
    @given(
        st.lists(st.tuples(statistics, st.sampled_from([None, "a", "b", "x"])), max_size=12),
        st.sampled_from(["required", "accepted"]),
        st.sampled_from(["everything", "discount(half_life = 600)"]),
    )
    def fuzz(said, signatures, memory):
        certificates = Certificates(MESH, [AUTHORITIES[0].certificate])
        for one in CERTIFICATES.values():
            assert certificates.add(one, 1.8e9) is None
        member = make("n", ("red",), links=("a", "b"), certificates=certificates, signatures=signatures, memory=memory)
        member.tick(1.8e9, 0.0)
        n_wrong = 0
        for one, signer in said:
            spoken = one if signer is None else say(one, signer)
            unchecked = member.hear([spoken], "a")
            keys = [certificates[each.certificate].key for each in unchecked]
            right = [
                each
                for each, is_right in zip(unchecked, check_signatures(MESH, unchecked, keys), strict=True)
                if is_right
            ]
            n_wrong += len(unchecked) - len(right)
            assert member.hear(right, "a", is_checked=True) == []
            member.settle()
        for entry in member.entries():
            assert why_refused(entry.values) is None
            assert 0 <= entry.ttl <= 4
            assert not entry.signature or certificates.counting[entry.certificate] == entry.origin
            assert entry.signature or signatures == "accepted"
        kept = sum(member.counters[f"heard_{fate}"] for fate in ("news", "stale", "extended", "renewed", "proofs"))
        refused = sum(n for name, n in member.counters.items() if name.startswith("refused_"))
        # Those whose signatures are wrong are counted by who has them checked.
        assert kept + refused + n_wrong == len(said)
        [arm] = member.snapshot().arms
        assert arm.mean is None or abs(arm.mean) <= 1e12
        for peer in ("a", "b"):
            for one in member.take(peer, 10**6):
                assert why_refused(one.values) is None
                codec.encode_statistics([one])

    fuzz()


def test_any_statistics_are_refused_or_within_every_range():
    fuzz_table(60)


@pytest.mark.slow
def test_any_statistics_are_refused_or_within_every_range_many_times():
    fuzz_table(2_000)


def changed(data, rng):
    """Bytes with some of them changed, left out or put in."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place : place + rng.randint(1, 8)]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randint(1, 8))
        else:
            data[place] = rng.choice((0, 1, 0x30, 0x80, 0xFF))
        data = data or bytearray(b"0")
    return bytes(data)


def fuzz_certificates(n, seed):
    rng, der = random.Random(seed), CREDENTIALS["a"].der
    authorities = [one.certificate for one in AUTHORITIES]
    assert isinstance(read_certificate(der, MESH, authorities), Certificate)
    for _ in range(n):
        other = changed(der, rng)
        if other != der:
            with pytest.raises(RefusedCertificate):
                read_certificate(other, MESH, authorities)


@pytest.mark.parametrize("place", range(3))
def test_certificate_with_an_algorithm_that_nobody_knows_is_refused(place):
    """By name: of its signature, of its key, and of its signature once more."""
    parts = CREDENTIALS["a"].der.split(ED25519)
    assert len(parts) == 4
    other = b"".join(part + (UNKNOWN if at == place else ED25519) for at, part in enumerate(parts[:-1])) + parts[-1]
    with pytest.raises(RefusedCertificate) as caught:
        read_certificate(other, MESH, [one.certificate for one in AUTHORITIES])
    assert caught.value.is_bad


def test_changed_certificates_are_refused():
    fuzz_certificates(400, seed=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_changed_certificates_are_refused_many_times():
    fuzz_certificates(100_000, seed=2)


def fuzz_notices(n, seed):
    rng, by = random.Random(seed), AUTHORITIES[0]
    said = [
        notices.retire(by.key, MESH, [("a", 2**64 - 1), ("b", 0)], 5),
        notices.expel(by.key, MESH, "a", 2**40, 5),
    ]
    for _ in range(n):
        data = rng.choice(said)
        other = changed(data, rng)
        if other != data:
            with pytest.raises(NoticeError) as caught:
                notices.verify(other, [by.signer])
            check_line(caught.value)


def test_changed_notices_are_refused():
    fuzz_notices(400, seed=1)


@pytest.mark.slow
def test_changed_notices_are_refused_many_times():
    fuzz_notices(100_000, seed=2)


#: What a column may be given: of its own type and of others.
cells = st.one_of(
    st.sampled_from([-(2**63), -1, 0, 1, 2, 2**53 - 1, 2**53, 2**63 - 1]),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.8e9, 1e12, 1.1e12, 1.7e308, float("inf")]),
    st.sampled_from(["", "a", "red", "ads/de/red", "x" * 129, "\n", "discount(half_life = 600)"]),
    st.sampled_from([b"", bytes(16), bytes(32), bytes(64), CREDENTIALS["a"].der]),
)


def fuzz_rows(n, folder):
    """Rows of format 2 under right checksums: a file is refused in one line, or a node can be restored from it."""
    with open_store(folder) as store:
        store.write(FULL)
    whole = (folder / FILE).read_bytes()

    @settings(max_examples=n)
    @given(st.data())
    def fuzz(data):
        for path in folder.glob(f"{FILE}*"):
            path.unlink()
        (folder / FILE).write_bytes(whole)
        with closing(sqlite3.connect(folder / FILE)) as db:
            for _ in range(data.draw(st.integers(1, 3))):
                table = data.draw(st.sampled_from(schema.TABLES))
                there = db.execute(f"SELECT * FROM {table.name}").fetchall()
                row = list(data.draw(st.sampled_from(there))[:-1]) if there else [0] * len(table.columns)
                for place in data.draw(st.sets(st.integers(0, len(row) - 1), min_size=1, max_size=3)):
                    row[place] = data.draw(cells)
                table.put(db, [tuple(row)])
            db.commit()
        try:
            stored = load(folder)
        except StoreError as error:
            return check_line(error)
        member = make("a", ("red",), begins=False)
        member.mesh = stored.mesh
        member.restore(stored)
        member.committed(member.begin(7, 1.8e9))
        assert all(why_refused(entry.values) is None for entry in member.entries())

    fuzz()


def test_any_rows_are_refused_or_restored(tmp_path):
    fuzz_rows(40, tmp_path)


@pytest.mark.slow
def test_any_rows_are_refused_or_restored_many_times(tmp_path):
    fuzz_rows(5_000, tmp_path)
