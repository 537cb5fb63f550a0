"""Certificates of simulated worlds: two authorities, what they issue, links that look at it, and nodes of version 1.

A certificate begins at a small number in the place of a time, which counts what was issued: so what was issued before
an expulsion is void, whatever clocks say. It ends at a time.
"""

from __future__ import annotations

from functools import cache, cached_property

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from simulated import ENDS, SimulatedTransport, authority, contexts_of

from banditmesh.errors import RefusedError
from banditmesh.live.links import codec
from banditmesh.live.links.notices import Signer, key_id
from banditmesh.live.statistics import certificate_id
from banditmesh.live.transport import TlsTransport
from banditmesh.live.transport.identity import is_issued_by

MESH = "simulated"


class Authority:
    """One that issues certificates and signs notices."""

    def __init__(self, seed):
        self.key = Ed25519PrivateKey.from_private_bytes(bytes(range(seed, seed + 32)))
        public = self.key.public_key().public_bytes_raw()
        self.signer = Signer(key_id(public), public, MESH)
        self.certificate = authority(self.key, MESH)


#: Those that nodes may trust, and one that nobody does.
AUTHORITIES = Authority(0), Authority(2)
STRANGER = Authority(1)


class Credential:
    """A certificate and its key: whose, from and until when, and by which authority."""

    def __init__(self, name, key, not_before=0, not_after=ENDS, issuer=0):
        self.name, self.key, self.not_before, self.not_after, self.issuer = name, key, not_before, not_after, issuer

    def contexts(self, trusted=(0,)):
        """What a node needs that has this certificate and trusts these authorities."""
        by = AUTHORITIES[self.issuer]
        made = contexts_of(
            MESH, self.name, self.key, by.signer, (by.key, by.certificate), self.not_before, self.not_after
        )
        return made._replace(
            signers=tuple(AUTHORITIES[one].signer for one in trusted),
            authorities=tuple(AUTHORITIES[one].certificate for one in trusted),
        )

    @cached_property
    def der(self):
        return self.contexts().own.certificate

    @property
    def id(self):
        return certificate_id(self.der)


@cache
def _is_issued(der, place):
    return is_issued_by(x509.load_der_x509_certificate(der), AUTHORITIES[place].certificate)


class SimulatedTls(SimulatedTransport, TlsTransport):
    """Links whose ends look at each other's certificates, as TLS does: by their own clocks and authorities."""

    def __init__(self, network, contexts, clock):
        SimulatedTransport.__init__(self, network, contexts.own)
        self.contexts = contexts
        self.clock = clock

    @property
    def identity(self):
        return self.contexts.own

    @identity.setter
    def identity(self, own):
        pass  # that of the contexts, which may be replaced

    async def dial(self, address, name):
        if address in self.network.listeners:
            other = self.network.listeners[address][0]
            self.look_at(other.identity)
            other.look_at(self.identity)
        return await super().dial(address, name)

    def look_at(self, peer):
        """Refuse who has no certificate that is valid by this end."""
        trusted = [place for place, one in enumerate(AUTHORITIES) if one.certificate in self.contexts.authorities]
        if not any(_is_issued(peer.certificate, place) for place in trusted):
            raise RefusedError("wrong_authority", f"no trusted authority issued the certificate of {peer.node!r}")
        if self.clock() > peer.not_after:
            raise RefusedError("expired", f"the certificate of {peer.node!r} has expired")


class Version1Connection:
    """A connection whose end speaks version 1: what it says has no fields and no frames of version 2."""

    def __init__(self, connection):
        self.connection = connection
        self.peer = connection.peer
        self.read, self.close = connection.read, connection.close

    async def write(self, data):
        said = b"".join(map(in_version_1, codec.Splitter().feed(data)))
        if said:
            await self.connection.write(said)


def in_version_1(frame):
    """What a node of version 1 says in the place of a frame."""
    message = codec.decode(frame)
    if isinstance(message, codec.Hello):
        said = message.mesh, message.node, message.epoch, 1, message.protocol, "banditmesh 1"
        return codec._frame(codec.HELLO, said)
    if isinstance(message, codec.Statistics):
        return codec.encode_statistics(message.statistics, version=1)
    if isinstance(message, codec.Wanted):
        return b""
    return len(frame).to_bytes(4, "big") + frame


class Version1Tls(SimulatedTls):
    """Links of a node of version 1."""

    async def dial(self, address, name):
        return Version1Connection(await super().dial(address, name))

    async def listen(self, address, accept):
        return await super().listen(address, lambda connection: accept(Version1Connection(connection)))
