"""Notices: what the authority signs is read back, and nothing else is ever believed."""

import random
import re
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from banditmesh.errors import InputError, NoticeError
from banditmesh.live.links import notices
from banditmesh.live.links.notices import Expulsion, Retirement, Signer, key_id, verify
from banditmesh.live.transport import identity

TIME = 1_800_000_000
LIVES = (("a", 0), ("a", 2**64 - 1), ("b/ü", 7))


def signer(key, mesh="shop"):
    public = key.public_key().public_bytes_raw()
    return Signer(key_id(public), public, mesh)


KEY, OTHER = identity.new_key(), identity.new_key()
TRUSTED = [signer(KEY)]
RETIREMENT = notices.retire(KEY, "shop", LIVES, TIME)
EXPULSION = notices.expel(KEY, "shop", "a", TIME + 1, TIME)
BOTH = pytest.mark.parametrize("data", [RETIREMENT, EXPULSION], ids=["retirement", "expulsion"])


def sign(*fields, key=KEY):
    """Any fields, with a signature that is right."""
    signed = msgspec.msgpack.encode(fields)
    return key.sign(notices.CONTEXT + signed) + signed


def refused(data, signers=TRUSTED):
    with pytest.raises(NoticeError) as caught:
        verify(data, signers)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_what_is_signed_is_read_back():
    assert verify(RETIREMENT, TRUSTED) == Retirement("shop", LIVES, TIME)
    assert verify(EXPULSION, TRUSTED) == Expulsion("shop", "a", TIME + 1, TIME)


def test_the_same_notice_has_the_same_bytes():
    assert notices.retire(KEY, "shop", [*reversed(LIVES), LIVES[0]], TIME) == RETIREMENT


def test_two_authorities_may_be_trusted():
    both = [signer(OTHER), signer(KEY)]
    assert verify(RETIREMENT, both).lives == LIVES
    assert verify(notices.expel(OTHER, "shop", "b", TIME, TIME), both).node == "b"


@BOTH
def test_every_single_bit_flip_is_refused(data):
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(bytes(flipped))


@BOTH
def test_every_truncation_and_anything_appended_is_refused(data):
    for end in range(len(data)):
        refused(data[:end])
    refused(data + b"\x00")


def test_random_bytes_are_refused():
    rng = random.Random(1)
    for _ in range(2000):
        refused(rng.randbytes(rng.randrange(300)))
    refused(bytes(notices.MAX_NOTICE + 1))
    refused(bytes(64) + b"\x91" * 60_000)
    refused(bytes(64) + b"\xdd\xff\xff\xff\xff")


@BOTH
def test_notice_of_somebody_else_is_refused(data):
    assert "trusted authority" in refused(data, [])
    assert "trusted authority" in refused(data, [signer(OTHER)])
    # Who claims to be the authority must have its key.
    forged = Signer(key_id(KEY.public_key().public_bytes_raw()), OTHER.public_key().public_bytes_raw(), "shop")
    assert "signature" in refused(data, [forged])


@BOTH
def test_notice_of_another_mesh_is_refused(data):
    assert "for the mesh 'other', got one for 'shop'" in refused(data, [signer(KEY, "other")])


def test_what_else_the_authority_signs_is_no_notice():
    certificate = identity.certify_authority(KEY, "shop", TIME, TIME + 1)
    refused(certificate.signature + certificate.tbs_certificate_bytes)
    signed = RETIREMENT[64:]
    refused(KEY.sign(signed) + signed)


@pytest.mark.parametrize(
    "version, kind, body, words",
    [
        (2, 1, [["a", 1]], "upgrade this node"),
        (1, 3, [["a", 1]], "upgrade this node"),
        (1, 1, [["a"]], "fields of its kind"),
        (1, 1, [["a", -1]], "names and epochs"),
        (1, 1, [["", 1]], "names and epochs"),
        (1, 1, [["a\n", 1]], "names and epochs"),
        (1, 1, "a", "fields of its kind"),
        (1, 2, ["a", 1.5], "fields of its kind"),
        (1, 2, ["a", -1], "fields of its kind"),
        (1, 2, ["x" * 129, 1], "name a member"),
    ],
)
def test_signed_nonsense_is_refused(version, kind, body, words):
    assert words in refused(sign(version, kind, "shop", body, TIME, TRUSTED[0].id))


def test_later_versions_may_add_fields():
    assert verify(sign(1, 2, "shop", ["a", 5], TIME, TRUSTED[0].id, {"later": 1}), TRUSTED).before == 5


@pytest.mark.parametrize("lives", [[], [("", 1)], [("a", -1)], [("a", 2**64)], [("a", "00")], [("a", True)]], ids=repr)
def test_only_lives_can_be_retired(lives):
    with pytest.raises(InputError):
        notices.retire(KEY, "shop", lives, TIME)


def test_notice_that_would_be_too_long_is_not_made():
    lives = [("x" * 128, epoch) for epoch in range(2**63, 2**63 + 1000)]
    with pytest.raises(InputError, match="at most 65536 bytes"):
        notices.retire(KEY, "shop", lives, TIME)
    assert len(verify(notices.retire(KEY, "shop", lives[:400], TIME), TRUSTED).lives) == 400


def test_example_of_the_document_is_what_is_signed():
    page = (Path(__file__).parents[2] / "docs" / "live" / "wire.md").read_text(encoding="utf-8")
    block = re.findall(r"^```text\n((?:[0-9a-f]{2} ).*?)^```$", page, re.MULTILINE | re.DOTALL)[-1]
    shown = bytes.fromhex(re.sub(r"#.*", "", block))
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    assert shown == notices.expel(key, "shop", "a", TIME + 1, TIME)
    assert key.public_key().public_bytes_raw().hex() in page
    assert verify(shown, [signer(key)]).node == "a"
