"""Who a node is, and how it proves it: certificate, key and authorities, as TLS takes them.

- Who somebody is stands in the certificate, as its one URI (`names.uri`), and nowhere else.
- TLS 1.3 only, both sides with a certificate, no session tickets: each connection proves it anew.
- One authority is trusted, or two while the mesh moves from one to the other; all are of the node's own mesh.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ...errors import FileError, InputError, RefusedError
from .. import extras
from ..http.tokens import warn_if_exposed
from ..links.notices import Signer, key_id
from ..names import parse_uri

#: How many authorities may be trusted at a time.
MOST_AUTHORITIES: Final = 2
#: The file of authorities in a folder of keys. Files of nodes end in `.pem` and `.key`, so none has this name.
AUTHORITIES: Final = "authorities.crt"


#: How long before its certificate ends a node begins to warn, in seconds.
WARN_BEFORE: Final = 30 * 86400.0


class Identity(NamedTuple):
    """Who the other end of a connection is, by its certificate; times are seconds since 1970.

    `certificate` is all of it, in DER; empty where there is none.
    """

    mesh: str
    node: str
    not_before: int
    not_after: int
    certificate: bytes = b""


class KeyFiles(NamedTuple):
    """The files by which a node proves who it is."""

    certificate: Path
    key: Path
    authorities: Path

    @classmethod
    def of(cls, folder: Path | str, node: str) -> KeyFiles:
        """The files of a node in a folder, as `banditmesh keys issue` names them.

        Examples
        --------
        >>> KeyFiles.of("keys", "berlin/3").certificate.name
        'berlin%2F3.pem'
        """
        folder, name = Path(folder), file_name(node)
        return cls(folder / f"{name}.pem", folder / f"{name}.key", folder / AUTHORITIES)


class Contexts(NamedTuple):
    """What TLS needs to take and to make connections, who the node itself is, and whose notices it believes."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    own: Identity
    signers: tuple[Signer, ...]
    authorities: tuple[Any, ...]

    def trusts(self, peer: Identity) -> bool:
        """Whether one of the authorities issued a certificate that TLS has accepted, perhaps by earlier ones."""
        certificate = extras.need("cryptography.x509").load_der_x509_certificate(peer.certificate)
        return any(is_issued_by(certificate, authority) for authority in self.authorities)


def file_name(node: str) -> str:
    """A node's name as the name of a file: letters and digits as they are, other characters percent-encoded."""
    return re.sub(r"[^\w.~-]", lambda one: quote(one[0], safe=""), node)


def contexts(files: KeyFiles) -> Contexts:
    """Read a node's files.

    Raises
    ------
    FileError
        A file is missing or unusable, or they do not belong together.
    """
    [certificate] = read_certificates(files.certificate, 1)
    authorities = read_certificates(files.authorities, MOST_AUTHORITIES)
    own = identity_in(certificate, files.certificate)
    signers = tuple(signer_in(authority, files.authorities) for authority in authorities)
    for signer in signers:
        if signer.mesh != own.mesh:
            raise FileError(f"{files.authorities} must be of the mesh {own.mesh!r}, got one of {signer.mesh!r}")
    if not any(is_issued_by(certificate, authority) for authority in authorities):
        raise FileError(
            f"{files.certificate} must be issued by an authority in {files.authorities}, got another one's; "
            "issue it again with 'banditmesh keys issue'"
        )
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # the URI is what counts, see `peer_identity`
    server.num_tickets = 0
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        try:
            # Without a password of its own, OpenSSL would ask the terminal for one.
            context.load_cert_chain(files.certificate, files.key, password="")
            context.load_verify_locations(files.authorities)
        except OSError as error:
            why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise FileError(f"{files.key} must be the key of {files.certificate}, got: {why}") from None
    warn_if_exposed(files.key)
    return Contexts(server, client, own, signers, tuple(authorities))


def peer_identity(tls: ssl.SSLObject | ssl.SSLSocket) -> Identity:
    """Who the other end is, after the handshake.

    Raises
    ------
    RefusedError
        The authority issued it for something else; `bad_uri`.
    """
    found: Any = tls.getpeercert() or {}
    names = [value for kind, value in found.get("subjectAltName", ()) if kind == "URI"]
    try:
        [name] = names
        mesh, node = parse_uri(name)
    except ValueError:
        shown = f"{names[0][:300]!r}" if len(names) == 1 else f"{len(names)} of them"
        raise RefusedError("bad_uri", f"a member's certificate must have one banditmesh URI, got {shown}") from None
    begins, ends = (int(ssl.cert_time_to_seconds(found[key])) for key in ("notBefore", "notAfter"))
    return Identity(mesh, node, begins, ends, tls.getpeercert(binary_form=True) or b"")


def expiry_warning(own: Identity, now: float) -> str | None:
    """What to say of a node's certificate that is not valid now, or not for long any more; None if all is well."""
    if own.not_before <= now < own.not_after - WARN_BEFORE:
        return None
    begins, ends = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(when)) for when in (own.not_before, own.not_after))
    if now < own.not_before:
        return f"the certificate is valid from {begins} UTC on, and no neighbour accepts it before; set the clock right"
    remedy = "make a new one with 'banditmesh keys renew', then send SIGHUP"
    if now < own.not_after:
        return f"the certificate ends at {ends} UTC; {remedy}"
    return f"the certificate has ended at {ends} UTC, and no neighbour accepts it; {remedy}"


def read_certificates(path: Path, most: int) -> Sequence[Any]:
    """The certificates in a file, at least one and at most so many."""
    x509 = extras.need("cryptography.x509")
    try:
        found: Sequence[Any] = x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path} must be a certificate, got: {error.strerror}") from None
    except ValueError:
        raise FileError(f"{path} must be a certificate in PEM, got something else") from None
    if len(found) > most:
        raise FileError(f"{path} must hold at most {most} certificates, got {len(found)}")
    return found


def identity_in(certificate: Any, path: Path) -> Identity:
    """Who a certificate is of; `path` is where it was read."""
    try:
        mesh, node = parse_uri(_uri_in(certificate))
    except InputError as error:
        raise FileError(f"{path} must be the certificate of a member: {error}") from None
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    der = certificate.public_bytes(extras.need("cryptography.hazmat.primitives.serialization").Encoding.DER)
    return Identity(mesh, node, int(begins.timestamp()), int(ends.timestamp()), der)


def signer_in(certificate: Any, path: Path) -> Signer:
    """The authority that a certificate is of; `path` is where it was read."""
    ed25519 = extras.need("cryptography.hazmat.primitives.asymmetric.ed25519")
    key, uri = certificate.public_key(), _uri_in(certificate)
    try:
        # An authority has the address of a member without a name, which no member has.
        mesh = parse_uri(f"{uri}authority")[0] if uri.endswith("/") else None
    except InputError:
        mesh = None
    if mesh is None or not isinstance(key, ed25519.Ed25519PublicKey):
        raise FileError(f"{path} must be the certificate of an authority, as 'banditmesh keys init' writes it")
    raw = key.public_bytes_raw()
    return Signer(key_id(raw), raw, mesh)


def is_issued_by(certificate: Any, authority: Any) -> bool:
    """Whether an authority signed a certificate."""
    exceptions = extras.need("cryptography.exceptions")
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, exceptions.InvalidSignature):
        return False
    return True


def _uri_in(certificate: Any) -> str:
    x509 = extras.need("cryptography.x509")
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ""
    found = names.get_values_for_type(x509.UniformResourceIdentifier)
    return str(found[0]) if len(found) == 1 else ""
