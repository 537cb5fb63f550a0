"""The certificates of a mesh: one for its authority, one for each node. Values only; `keys` has the files.

All are X.509 with Ed25519 keys. Who a certificate is of is its one URI: `banditmesh://mesh/node` for a node, and
`banditmesh://mesh/`, which no node can have, for the authority. Nodes' certificates are for both ends of a connection.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from .. import extras
from ..links.notices import key_id
from ..names import uri

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
    return extras.need("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()


def for_authority(key: Any, mesh: str, begin: int, end: int) -> Any:
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
    x509, public = extras.need("cryptography.x509"), key.public_key()
    identifier = key_id(public.public_bytes_raw()).hex()
    name = _name(f"banditmesh authority {identifier}")
    address = f"banditmesh://{quote(mesh, safe='')}/"
    usages = {"digital_signature", "key_cert_sign", "crl_sign"}
    builder = _builder(name, public, name, public, address, usages, begin, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.sign(key, None)


def for_node(public: Any, mesh: str, node: str, key: Any, authority: Any, begin: int, end: int) -> Any:
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
    x509 = extras.need("cryptography.x509")
    issuer = (authority.subject, key.public_key())
    builder = _builder(_name("banditmesh node"), public, *issuer, uri(mesh, node), {"digital_signature"}, begin, end)
    both_ends = [x509.ExtendedKeyUsageOID.CLIENT_AUTH, x509.ExtendedKeyUsageOID.SERVER_AUTH]
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
    return builder.sign(key, None)


def _builder(
    name: Any, public: Any, issuer: Any, issuer_key: Any, address: str, usages: set[str], begin: int, end: int
) -> Any:
    x509 = extras.need("cryptography.x509")
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
    x509 = extras.need("cryptography.x509")
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
