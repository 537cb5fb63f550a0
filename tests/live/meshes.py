"""A mesh's keys for tests: made once, in values and in files."""

import time

from cryptography.hazmat.primitives import serialization

from banditmesh.live.transport import identity, keys

DAY = 86400


class Authority:
    """An authority in a folder, and certificates of any kind from it."""

    def __init__(self, folder, mesh="shop"):
        self.folder = folder
        self.mesh = mesh
        self.crt = keys.init(folder / "authority", mesh)

    def issue(self, node, **options):
        """What `keys issue` gives, in a folder of its own."""
        return identity.contexts(keys.issue(self.folder / "authority", node, self.folder / node, **options))

    def forge(self, name, certify, trust=None):
        """The contexts of a node that presents a certificate made by `certify(public, key, certificate)`.

        The authority's files are those that the honest ones have; what is wrong is the certificate alone.
        """
        files = keys.issue(self.folder / "authority", name, self.folder / f"forged-{name}", force=True)
        contexts = identity.contexts(files)
        authority = keys._open(self.folder / "authority")
        node_key = identity.new_key()
        made = certify(node_key, authority.key, authority.certificate)
        files.certificate.write_bytes(keys._pem(made))
        keys._write_key(files.key, node_key)
        for context in (contexts.server, contexts.client):
            context.load_cert_chain(files.certificate, files.key)
            if trust is not None:
                context.load_verify_locations(trust)
        return contexts


def now():
    return int(time.time())


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)
