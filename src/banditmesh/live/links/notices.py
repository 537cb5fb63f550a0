"""Notices of the authority: which lives are retired, and who is expelled.

A notice is 64 bytes of signature (Ed25519), then what is signed: a msgpack array

    [version, kind, mesh, body, time, authority]

    retirement   kind 1, body [[name, epoch], ...]: these lives leave tables and estimates everywhere
    expulsion    kind 2, body [name, before]: certificates of that member from before that time are not accepted

Times are whole seconds since 1970. `authority` is the key's id: the first 16 bytes of SHA-256 of the 32 bytes of the
public key. The signature is of `CONTEXT` and then the array's bytes, so nothing else that the key signs is a notice.

A notice travels as the very bytes that were signed, and there is only one way to write it: a node needs to keep the
bytes and nothing else. Whatever is wrong with one is a `NoticeError`. This module holds no key and no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

from msgspec import DecodeError, Meta, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from ... import checks
from ...errors import InputError, NoticeError
from ...errors import need as need_extra
from ..names import check_name, is_epoch, is_name

#: A module of the extra.
need = partial(need_extra, extra="live", what="the live mesh")

VERSION: Final = 1
RETIREMENT: Final = 1
EXPULSION: Final = 2
#: What is signed begins with this.
CONTEXT: Final = b"banditmesh notice\n"
#: The most bytes of a notice.
MAX_NOTICE: Final = 64 * 1024
SIGNATURE_BYTES: Final = 64
ID_BYTES: Final = 16

_Time = Annotated[int, Meta(ge=0, le=2**53)]


class Signer(NamedTuple):
    """An authority whose notices are believed: its key's id, the public key's 32 bytes, and its mesh."""

    id: bytes
    key: bytes
    mesh: str


class Retirement(Struct, frozen=True):
    """Lives, each (name, epoch), that count no more."""

    mesh: str
    lives: tuple[tuple[str, int], ...]
    time: int


class Expulsion(Struct, frozen=True):
    """A member whose certificates from before a time are not accepted any more."""

    mesh: str
    node: str
    before: int
    time: int


class _Signed(Struct, array_like=True):
    version: int
    kind: int
    mesh: str
    body: Raw
    time: _Time
    authority: bytes


_decode_signed = Decoder(_Signed).decode
_decode_lives = Decoder(list[tuple[str, int]]).decode
_decode_expulsion = Decoder(tuple[str, _Time]).decode
_UNFIT = (DecodeError, UnicodeDecodeError, RecursionError)


def key_id(key: bytes) -> bytes:
    """The id of a public key.

    Examples
    --------
    >>> key_id(bytes(32)).hex()
    '66687aadf862bd776c8fc18b8e9f8e20'
    """
    return hashlib.sha256(key).digest()[:ID_BYTES]


def retire(key: Any, mesh: str, lives: Iterable[tuple[str, int]], time: int) -> bytes:
    """A retirement, signed.

    Parameters
    ----------
    key : Ed25519PrivateKey
        The authority's key.
    mesh : str
        The authority's mesh.
    lives : iterable of (str, int)
        The lives: name and epoch.
    time : int
        Seconds since 1970.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> key = Ed25519PrivateKey.generate()
    >>> public = key.public_key().public_bytes_raw()
    >>> data = retire(key, "shop", [("a", 7)], time=1_800_000_000)
    >>> verify(data, [Signer(key_id(public), public, "shop")]).lives
    (('a', 7),)
    """
    listed = set(lives)
    for name, epoch in listed:
        check_name("a retired member", name)
        if not is_epoch(epoch):
            raise InputError(f"an epoch must be a whole number of 64 bits, got {checks.shown(epoch)}")
    if not listed:
        raise InputError("a retirement must name at least one life, got none")
    return _sign(key, RETIREMENT, mesh, sorted(listed), time)


def expel(key: Any, mesh: str, node: str, before: int, time: int) -> bytes:
    """An expulsion, signed; parameters as in `retire`, and the member and the time that it names."""
    return _sign(key, EXPULSION, mesh, (check_name("an expelled member", node), before), time)


def verify(data: bytes, signers: Iterable[Signer]) -> Retirement | Expulsion:
    """What a notice says, if an authority that is trusted signed it.

    Raises
    ------
    NoticeError
        It is no notice, or no trusted authority signed it.

    Examples
    --------
    >>> verify(b"retire them all", [])
    Traceback (most recent call last):
        ...
    banditmesh.errors.NoticeError: a notice must have 65 to 65536 bytes, got 15
    """
    signature, signed, notice = _split(data)
    signer = next((one for one in signers if one.id == notice.authority), None)
    if signer is None:
        authority = notice.authority[:ID_BYTES].hex()
        raise NoticeError(f"a notice must be from a trusted authority, got one from {authority or 'none'}")
    if not _is_signed(signature, CONTEXT + signed, signer.key):
        raise NoticeError("a notice must have the authority's signature, got another one; it was changed or forged")
    if notice.mesh != signer.mesh:
        raise NoticeError(f"a notice must be for the mesh {signer.mesh!r}, got one for {notice.mesh[:128]!r}")
    return _read(notice)


def read(data: bytes) -> Retirement | Expulsion:
    """What a notice says, whoever signed it: for those that were verified before they were stored.

    Raises
    ------
    NoticeError
        It is no notice.
    """
    return _read(_split(data)[2])


def _split(data: bytes) -> tuple[bytes, bytes, _Signed]:
    """The signature of a notice, what is signed, and that decoded."""
    if not SIGNATURE_BYTES < len(data) <= MAX_NOTICE:
        raise NoticeError(f"a notice must have {SIGNATURE_BYTES + 1} to {MAX_NOTICE} bytes, got {len(data)}")
    signature, signed = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    try:
        notice = _decode_signed(signed)
    except _UNFIT:
        raise NoticeError("a notice must be a signature and a msgpack array, got other bytes") from None
    return signature, signed, notice


def _read(notice: _Signed) -> Retirement | Expulsion:
    known = {RETIREMENT: _decode_lives, EXPULSION: _decode_expulsion}
    if notice.version != VERSION or notice.kind not in known:
        said = f"version {notice.version} and kind {notice.kind}"
        raise NoticeError(f"a notice must be of version {VERSION} and a known kind, got {said}; upgrade this node")
    try:
        body: Any = known[notice.kind](notice.body)
    except _UNFIT:
        raise NoticeError(f"a notice of kind {notice.kind} must have the fields of its kind, got others") from None
    if notice.kind == RETIREMENT:
        if not all(is_name(name) and is_epoch(epoch) for name, epoch in body):
            raise NoticeError("a retirement must list names and epochs, got something else")
        return Retirement(notice.mesh, tuple(body), notice.time)
    name, before = body
    if not is_name(name):
        raise NoticeError("an expulsion must name a member, got something else")
    return Expulsion(notice.mesh, name, before, notice.time)


def _sign(key: Any, kind: int, mesh: str, body: Any, time: int) -> bytes:
    authority = key_id(key.public_key().public_bytes_raw())
    signed = Encoder().encode((VERSION, kind, mesh, body, time, authority))
    if SIGNATURE_BYTES + len(signed) > MAX_NOTICE:
        raise InputError(f"a notice must be at most {MAX_NOTICE} bytes, got {len(signed)}; write several smaller ones")
    return bytes(key.sign(CONTEXT + signed)) + signed


def _is_signed(signature: bytes, data: bytes, key: bytes) -> bool:
    ed25519 = need("cryptography.hazmat.primitives.asymmetric.ed25519")
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except need("cryptography.exceptions").InvalidSignature:
        return False
    return True
