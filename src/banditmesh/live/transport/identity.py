"""Who a node is, and how it proves it: certificates, keys and authorities, made here and read as TLS takes them.

- All certificates are X.509 with Ed25519 keys. Who a certificate is of is its one URI (`names.uri`) and nothing else:
  `banditmesh://mesh/node` for a node, and `banditmesh://mesh/`, which no node can have, for the authority. Nodes'
  certificates are for both ends of a connection.
- TLS 1.3 only, both sides with a certificate, no session tickets: each connection proves it anew.
- One authority is trusted, or two while the mesh moves from one to the other; all are of the node's own mesh.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ...errors import FileError, InputError, RefusedError
from ..links.notices import Signer, key_id, need
from ..logs import warn_if_exposed
from ..names import parse_uri, uri

#: How many authorities may be trusted at a time.
MAX_AUTHORITIES: Final = 2
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
    """What TLS needs to take and make connections, who the node itself is, whose notices it believes, and its key."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    own: Identity
    signers: tuple[Signer, ...]
    authorities: tuple[Any, ...]
    key: Any

    def trusts(self, peer: Identity) -> bool:
        """Whether one of the authorities issued a certificate that TLS has accepted, perhaps by earlier ones."""
        certificate = need("cryptography.x509").load_der_x509_certificate(peer.certificate)
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
    authorities = read_certificates(files.authorities, MAX_AUTHORITIES)
    own = identity_in(certificate, files.certificate)
    signers = tuple(signer_in(authority, files.authorities) for authority in authorities)
    for signer in signers:
        if signer.mesh != own.mesh:
            raise FileError(f"{files.authorities} must be for the mesh {own.mesh!r}, got one for {signer.mesh!r}")
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
            # Without a password, OpenSSL would ask the terminal for one.
            context.load_cert_chain(files.certificate, files.key, password="")
            context.load_verify_locations(files.authorities)
        except OSError as error:
            why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise FileError(f"{files.key} must be the key of {files.certificate}, got: {why}") from None
    warn_if_exposed(files.key)
    load_key = need("cryptography.hazmat.primitives.serialization").load_pem_private_key
    return Contexts(server, client, own, signers, tuple(authorities), load_key(files.key.read_bytes(), None))


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
        return f"the certificate expires at {ends} UTC; {remedy}"
    return f"the certificate expired at {ends} UTC, and no neighbour accepts it; {remedy}"


def read_certificates(path: Path, most: int) -> Sequence[Any]:
    """The certificates in a file, at least one and at most `most`."""
    try:
        return certificates_in(path.read_bytes(), path, most)
    except OSError as error:
        raise FileError(f"{path} must be a certificate, got: {error.strerror}") from None


def certificates_in(data: bytes, path: Path, most: int) -> Sequence[Any]:
    """The certificates in what was read from a file, at least one and at most `most`."""
    try:
        found: Sequence[Any] = need("cryptography.x509").load_pem_x509_certificates(data)
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
    der = certificate.public_bytes(need("cryptography.hazmat.primitives.serialization").Encoding.DER)
    return Identity(mesh, node, int(begins.timestamp()), int(ends.timestamp()), der)


def signer_in(certificate: Any, path: Path) -> Signer:
    """The authority that a certificate is of; `path` is where it was read."""
    ed25519 = need("cryptography.hazmat.primitives.asymmetric.ed25519")
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
    exceptions = need("cryptography.exceptions")
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, exceptions.InvalidSignature, exceptions.UnsupportedAlgorithm):
        return False
    return True


def _uri_in(certificate: Any) -> str:
    x509 = need("cryptography.x509")
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ""
    found = names.get_values_for_type(x509.UniformResourceIdentifier)
    return str(found[0]) if len(found) == 1 else ""


_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def new_key() -> Any:
    """A new private key."""
    return need("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()


def certify_authority(key: Any, mesh: str, begin: int, end: int) -> Any:
    """The certificate of an authority, signed by itself.

    Parameters
    ----------
    key : Ed25519PrivateKey
        The authority's key.
    mesh : str
        The name of its mesh.
    begin, end : int
        From when to when it holds, in seconds since 1970.
    """
    x509, public = need("cryptography.x509"), key.public_key()
    identifier = key_id(public.public_bytes_raw()).hex()
    name = _name(f"banditmesh authority {identifier}")
    address = f"banditmesh://{quote(mesh, safe='')}/"
    usages = {"digital_signature", "key_cert_sign", "crl_sign"}
    builder = _builder(name, public, name, public, address, usages, begin, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.sign(key, None)


def certify_node(public: Any, mesh: str, node: str, key: Any, authority: Any, begin: int, end: int) -> Any:
    """The certificate of a node.

    Parameters
    ----------
    public : Ed25519PublicKey
        The node's public key.
    mesh, node : str
        The names of its mesh and of itself.
    key : Ed25519PrivateKey
        The authority's key.
    authority : Certificate
        The authority's certificate.
    begin, end : int
        From when to when it holds, in seconds since 1970.
    """
    x509 = need("cryptography.x509")
    issuer = (authority.subject, key.public_key())
    builder = _builder(_name("banditmesh node"), public, *issuer, uri(mesh, node), {"digital_signature"}, begin, end)
    both_ends = [x509.ExtendedKeyUsageOID.CLIENT_AUTH, x509.ExtendedKeyUsageOID.SERVER_AUTH]
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
    return builder.sign(key, None)


def _builder(
    name: Any, public: Any, issuer: Any, issuer_key: Any, address: str, usages: set[str], begin: int, end: int
) -> Any:
    x509 = need("cryptography.x509")
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(public)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(begin, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(address)]), critical=False)
        .add_extension(x509.KeyUsage(**{usage: usage in usages for usage in _USAGES}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _name(text: str) -> Any:
    x509 = need("cryptography.x509")
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
