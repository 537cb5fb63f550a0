"""Signed statistics: what an origin signs, the certificates that travel with it, and which of them count.

    signed_bytes    what a signature is of; whoever encodes the same values has the same bytes
    Certificate     one of a member, as it travels (DER)
    Certificates    all that a node knows, and which of them count here and now

A certificate *counts* if a trusted authority issued it, it names this mesh, it did not begin before the last expulsion
of its member, and it has not been over for longer than the grace. Whether it has begun is not asked: clocks differ, and
what is refused for a reason that passes is not offered again. A statistic counts with it only if the certificate is its
origin's. What counts changes only when `Certificates.review` is called: with notices of the authority, reloads, once an
hour, and when the clock has stepped.

Two things are *bad*, and the neighbour that sends them is at fault: a signature that fails under a certificate that
counts, and a certificate that names a trusted authority as its issuer which did not sign it. A certificate of another
authority is refused, and no more: a neighbour may trust two while this node trusts one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.msgpack import Encoder

from ..errors import InputError
from .links.notices import need
from .names import parse_uri
from .statistics import Key, Values, certificate_id

#: What is signed begins with this.
CONTEXT: Final = b"banditmesh statistic 2\n"
#: Whether statistics must be signed, may be, or are not looked at.
REQUIRED: Final = "required"
ACCEPTED: Final = "accepted"
UNSIGNED: Final = "none"
#: How long a certificate counts after its end unless the configuration says otherwise, in seconds.
GRACE: Final = 365 * 86400.0
#: The most bytes of a certificate: those that `keys issue` makes have about 500.
MAX_CERTIFICATE: Final = 4096
#: How many certificates that do not count are remembered, so that they are not asked for again.
MAX_REFUSED: Final = 10_000

_encode = Encoder().encode


def signed_bytes(mesh: str, key: Key, values: Values) -> bytes:
    r"""What the signature of a statistic is of.

    Examples
    --------
    >>> signed_bytes("shop", ("a", 7, "red"), Values.of(3, 2.5))[:34]
    b'banditmesh statistic 2\n\x99\xa4shop\xa1a\x07\xa3r'
    """
    origin, epoch, arm = key
    count, total, weight, weighted_total, stamp = values
    # Adding 0 to a float takes the sign from a zero.
    reals = float(total) + 0.0, float(weight) + 0.0, float(weighted_total) + 0.0, float(stamp) + 0.0
    return CONTEXT + _encode((mesh, origin, epoch, arm, count, *reals))


class Certificate(NamedTuple):
    """A member's certificate: its id, all of it in DER, its owner, from when to when it holds, and its public key."""

    id: bytes
    der: bytes
    node: str
    not_before: int
    not_after: int
    key: Any


class RefusedCertificate(Exception):
    """A certificate that is no member's of this mesh: `reason` is a word, `is_bad` whether its sender is at fault."""

    def __init__(self, reason: str, is_bad: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_bad = is_bad


def read_certificate(der: bytes, mesh: str, authorities: Iterable[Any]) -> Certificate:
    """A certificate, if one of the authorities issued it to a member of the mesh.

    Raises
    ------
    RefusedCertificate
        It is none, or another's.
    """
    x509, ed25519 = need("cryptography.x509"), need("cryptography.hazmat.primitives.asymmetric.ed25519")
    unfit: tuple[Any, ...] = (ValueError, TypeError, InputError, need("cryptography.exceptions").UnsupportedAlgorithm)
    unfit += (x509.ExtensionNotFound, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType)
    if len(der) > MAX_CERTIFICATE:
        raise RefusedCertificate("bad_certificate", is_bad=True)
    try:
        found = x509.load_der_x509_certificate(der)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        [uri] = names.get_values_for_type(x509.UniformResourceIdentifier)
        constraints = found.extensions.get_extension_for_class(x509.BasicConstraints).value
        named, node = parse_uri(uri)
        key = found.public_key()
        begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
        issuer = found.issuer
    except unfit as error:
        raise RefusedCertificate("bad_certificate", is_bad=True) from error
    if constraints.ca or not isinstance(key, ed25519.Ed25519PublicKey):
        raise RefusedCertificate("bad_certificate", is_bad=True)
    named_as_issuer = [authority for authority in authorities if authority.subject == issuer]
    if not named_as_issuer:
        raise RefusedCertificate("untrusted_certificate")
    if not any(_is_issued_by(found, authority) for authority in named_as_issuer):
        raise RefusedCertificate("bad_certificate", is_bad=True)
    if named != mesh:
        raise RefusedCertificate("untrusted_certificate")
    return Certificate(certificate_id(der), der, node, int(begins.timestamp()), int(ends.timestamp()), key)


def read_certificates(
    ders: Sequence[bytes], mesh: str, authorities: Sequence[Any]
) -> list[Certificate | RefusedCertificate]:
    """What each certificate is, or why it is refused."""
    found: list[Certificate | RefusedCertificate] = []
    for der in ders:
        try:
            found.append(read_certificate(der, mesh, authorities))
        except RefusedCertificate as refusal:
            found.append(refusal)
    return found


def _is_issued_by(certificate: Any, authority: Any) -> bool:
    exceptions = need("cryptography.exceptions")
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, exceptions.InvalidSignature, exceptions.UnsupportedAlgorithm):
        return False
    return True


class Certificates:
    """The certificates that a node knows, by their ids.

    Parameters
    ----------
    mesh : str
        The node's mesh.
    authorities : iterable of x509.Certificate
        Those that are trusted.
    expelled : mapping
        By member: its certificates from before this time do not count; the board's, which changes.
    grace : float
        How long a certificate counts after its end, in seconds.
    most : int
        How many are kept.

    Attributes
    ----------
    counting : dict
        Of those that count: whose they are.
    """

    def __init__(
        self,
        mesh: str,
        authorities: Iterable[Any] = (),
        expelled: Mapping[str, int] | None = None,
        grace: float = GRACE,
        most: int = 300_000,
    ) -> None:
        self.mesh = mesh
        self.authorities = tuple(authorities)
        self.grace = grace
        self.counting: dict[bytes, str] = {}
        self._expelled: Mapping[str, int] = {} if expelled is None else expelled
        self._most = most
        self._known: dict[bytes, Certificate] = {}
        #: Why others do not count, the oldest first.
        self._refused: dict[bytes, str] = {}
        #: The node's own, which is at hand whether it counts or not.
        self._own: Certificate | None = None
        #: What is to be stored, and what is to be removed from the disk.
        self._unstored: dict[bytes, None] = {}
        self._forgotten: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, id_: bytes) -> Certificate:
        return self._known[id_]

    def use(self, own: Certificate, now: float) -> None:
        """The node signs under this certificate from now on."""
        self._own = own
        self.add(own, now)

    def der_of(self, id_: bytes) -> bytes | None:
        """A certificate as it travels, if it is at hand."""
        found = self._own if self._own is not None and self._own.id == id_ else self._known.get(id_)
        return None if found is None else found.der

    def ended(self, now: float) -> set[bytes]:
        """The ids of those that count and have ended."""
        return {id_ for id_ in self.counting if self[id_].not_after < now}

    def knows(self, id_: bytes) -> bool:
        """Whether there is nothing to be learned from a certificate: it counts, or it is known not to."""
        return id_ in self.counting or id_ in self._refused

    def why_refused(self, id_: bytes, origin: str) -> str | None:
        """Why what this certificate signs does not count for an origin, in a word; None if it does."""
        node = self.counting.get(id_)
        if node is None:
            return self._refused.get(id_, "unknown_certificate")
        return None if node == origin else "others_certificate"

    def is_later(self, one: bytes, other: bytes) -> bool:
        """Whether a certificate that counts began later than another one; in the same second the larger id decides."""
        if other not in self._known:
            return True
        mine, its = self._known[one], self._known[other]
        return (mine.not_before, mine.id) > (its.not_before, its.id)

    def add(self, certificate: Certificate, now: float) -> str | None:
        """Know a certificate; why it does not count, if so."""
        reason = self._reason(certificate, now)
        if reason is None and certificate.id not in self._known and len(self._known) >= self._most:
            reason = "certificates"
        if reason is not None:
            self.refuse(certificate.id, reason)
            return reason
        self._known[certificate.id] = certificate
        self.counting[certificate.id] = certificate.node
        self._refused.pop(certificate.id, None)
        self._forgotten.pop(certificate.id, None)
        self._unstored[certificate.id] = None
        return None

    def refuse(self, id_: bytes, reason: str) -> None:
        """Remember that a certificate does not count, so that it is not asked for again."""
        self._refused[id_] = reason
        while len(self._refused) > MAX_REFUSED:
            del self._refused[next(iter(self._refused))]

    def forget_refusals(self) -> None:
        """What was refused may count now: an authority came, the grace is longer, or the clock was set."""
        self._refused.clear()

    def _reason(self, certificate: Certificate, now: float) -> str | None:
        if certificate.not_before < self._expelled.get(certificate.node, 0):
            return "expelled_certificate"
        if now > certificate.not_after + self.grace:
            return "expired_certificate"
        return None

    def review(self, now: float, needed: Collection[bytes]) -> None:
        """Look again which certificates count, and forget those that nothing needs."""
        for certificate in list(self._known.values()):
            reason = self._reason(certificate, now)
            if reason is not None:
                self.refuse(certificate.id, reason)
            if reason is not None or (certificate.id not in needed and certificate is not self._own):
                self.drop(certificate.id)

    def drop(self, id_: bytes) -> None:
        """Forget a certificate."""
        del self._known[id_]
        self.counting.pop(id_, None)
        self._unstored.pop(id_, None)
        self._forgotten[id_] = None

    def refuse_known(self, der: bytes, reason: str) -> None:
        """A certificate that was known is refused from now on."""
        id_ = certificate_id(der)
        if id_ in self._known:
            self.drop(id_)
            self.refuse(id_, reason)

    def stored(self) -> None:
        """What is known now is on the disk."""
        self._unstored.clear()

    def all(self) -> list[bytes]:
        """All of them, in DER."""
        return [certificate.der for certificate in self._known.values()]

    def take_unstored(self) -> tuple[list[bytes], list[bytes]]:
        """Certificates (DER) to be stored, and ids to be removed, since they were last asked for."""
        new = [self._known[id_].der for id_ in self._unstored]
        gone = list(self._forgotten)
        self._unstored.clear()
        self._forgotten.clear()
        return new, gone

    def give_back(self, new: Iterable[bytes], gone: Iterable[bytes]) -> None:
        """What was taken could not be stored: it is to be taken again."""
        for id_ in map(certificate_id, new):
            if id_ in self._known:
                self._unstored[id_] = None
        for id_ in gone:
            if id_ not in self._known:
                self._forgotten[id_] = None
