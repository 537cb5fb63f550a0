"""The authority of a mesh: it issues certificates to nodes, and signs notices.

An authority is a folder:

    authority.crt   its certificate, public
    authority.key   its key: anyone who has it can make members, so it stays off the nodes
    notices/        every notice that it has signed

What a node needs goes into its own folder: `NAME.pem`, `NAME.key` and `authorities.crt`. Rules kept here:

- Files are written whole or not at all, keys can be read by their owner alone, from the first byte on, and nothing is
  overwritten unless the caller says so; `renew` replaces a certificate, and keeps the key, so that the two always fit.
- A certificate begins at the second it is issued and an expulsion ends with the second it is written: certificates from
  before are out, and one that is issued next is in. Hence `issue` waits for the second after an expulsion.
- Expulsions are looked up in the folder of each authority that the node shall trust, not of the signing one alone.
- All keys are Ed25519. Lifetimes are limited, and no certificate outlives its authority.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ... import checks
from ...errors import FileError, InputError, NoticeError
from ...files import atomic
from ...files.regular import read_regular
from ..links import notices
from ..links.notices import need
from ..logs import LOG, warn_if_exposed
from ..names import check_name
from .identity import (
    MAX_AUTHORITIES,
    KeyFiles,
    certificates_in,
    certify_authority,
    certify_node,
    file_name,
    identity_in,
    is_issued_by,
    new_key,
    read_certificates,
    signer_in,
)

#: How long certificates hold unless the caller says otherwise.
AUTHORITY_DAYS: Final = 3650
NODE_DAYS: Final = 365
NOTICE_SUFFIX: Final = ".notice"


class _Authority(NamedTuple):
    folder: Path
    certificate: Any
    key: Any
    mesh: str


def init(folder: Path | str, mesh: str, *, days: int = AUTHORITY_DAYS, force: bool = False) -> Path:
    """Make the authority of a mesh.

    Parameters
    ----------
    folder : path
        Where it goes.
    mesh : str
        The name of the mesh.
    days : int
        How long it may issue certificates that hold.
    force : bool
        Replace an authority that is there; its members must all be issued anew.

    Returns
    -------
    Path
        Its certificate.

    Examples
    --------
    >>> import tempfile
    >>> from banditmesh.live.transport.identity import contexts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init(f"{folder}/authority", "shop").name
    ...     files = issue(f"{folder}/authority", "a", f"{folder}/a")
    ...     contexts(files).own.node
    'authority.crt'
    'a'
    """
    folder = Path(folder)
    certificate, key_file = folder / "authority.crt", folder / "authority.key"
    check_name("mesh", mesh)
    _refuse_existing(force, certificate, key_file)
    key, now = new_key(), _now()
    made = certify_authority(key, mesh, now, now + _seconds(days))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_key(key_file, key)
    _write(certificate, _pem(made))
    return certificate


def issue(
    authority: Path | str,
    node: str,
    out: Path | str,
    *,
    days: int = NODE_DAYS,
    trust: Sequence[Path | str] = (),
    force: bool = False,
) -> KeyFiles:
    """Make a key and a certificate for a node.

    Parameters
    ----------
    authority : path
        The authority's folder.
    node : str
        The member's name.
    out : path
        The folder that gets the three files.
    days : int
        How long the certificate holds.
    trust : sequence of path
        The certificate of another authority of the same mesh that the node shall trust, too.
    force : bool
        Replace files that are there.

    Returns
    -------
    KeyFiles
        The files, as `contexts` takes them.
    """
    signer, out = _open(authority), Path(out)
    files = KeyFiles.of(out, check_name("node", node))
    trusted = _trusted(signer, trust)
    _refuse_existing(force, files.certificate, files.key)
    if not force and files.authorities.exists() and files.authorities.read_bytes() != trusted:
        raise FileError(
            f"{files.authorities} must be this authority's, got another one; choose another folder, or use --force"
        )
    key = new_key()
    certificate = _certify(signer, node, key.public_key(), days, _expelled_before(signer, node, trust))
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_key(files.key, key)
    _write(files.certificate, certificate)
    _write(files.authorities, trusted)
    return files


def renew(
    authority: Path | str,
    node: str,
    out: Path | str,
    *,
    days: int = NODE_DAYS,
    trust: Sequence[Path | str] = (),
) -> KeyFiles:
    """Replace a node's certificate by a later one for the same key; the key itself need not be at hand.

    Parameters are those of `issue`; `out` holds the certificate that is replaced. It must have been issued by this
    authority, or by one of `trust`.
    """
    files = KeyFiles.of(out, check_name("node", node))
    [old] = read_certificates(files.certificate, 1)
    certificate = _renewed(authority, node, old, files.certificate, days, trust)
    # The authorities it trusts come first: a certificate without its authority could not be loaded.
    _write(files.authorities, _trusted(_open(authority), trust))
    _write(files.certificate, certificate)
    return files


def renew_pem(
    authority: Path | str, node: str, old: bytes, *, days: int = NODE_DAYS, trust: Sequence[Path | str] = ()
) -> bytes:
    """The certificate that takes the place of an old one, in PEM both; nothing is written.

    The rest is as `renew` says.
    """
    source = Path("standard input")
    return _renewed(authority, check_name("node", node), certificates_in(old, source, 1)[0], source, days, trust)


def _renewed(authority: Path | str, node: str, old: Any, source: Path, days: int, trust: Sequence[Path | str]) -> bytes:
    signer = _open(authority)
    own = identity_in(old, source)
    authorities = [signer.folder / "authority.crt", *map(Path, trust)]
    issuer = next((path for path in authorities if is_issued_by(old, read_certificates(path, 1)[0])), None)
    if (own.mesh, own.node) != (signer.mesh, node) or issuer is None:
        raise FileError(f"{source} must be what this mesh's authority issued to {node!r}, got another's")
    if not any(issuer.with_name(name).exists() for name in ("authority.key", "notices")):
        LOG.warning(
            "whether %r was expelled is not known: %s lies in no authority's folder, name it there", node, issuer
        )
    expelled = _expelled_before(signer, node, trust)
    if own.not_before < expelled:
        raise InputError(f"{node!r} was expelled, and with it this key; issue a new one with 'keys issue --force'")
    return _certify(signer, node, old.public_key(), days, expelled)


def read_names(path: Path | str) -> list[str]:
    """The names of nodes in a file, one a line; empty lines, and those that begin with #, say nothing."""
    path = Path(path)
    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} must be a text file in UTF-8, got binary data") from None
    found: dict[str, int] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        check_name(f"{path}, line {number}: a node's name", line)
        if line in found:
            raise InputError(f"{path}, line {number}: names must differ, got {line!r}, as in line {found[line]}")
        found[line] = number
    if not found:
        raise InputError(f"{path} must name at least one node, got none")
    return list(found)


def retire(authority: Path | str, node: str, epochs: Sequence[int]) -> Path:
    """Sign that lives of a member count no more.

    Parameters
    ----------
    authority : path
        The authority's folder.
    node : str
        The member's name.
    epochs : sequence of int
        The lives.

    Returns
    -------
    Path
        The notice, for `banditmesh node notice`.
    """
    return retire_lives(authority, [(node, epoch) for epoch in epochs])


def retire_lives(authority: Path | str, lives: Sequence[tuple[str, int]]) -> Path:
    """Sign that these lives, each (name, epoch), count no more, in one notice; returns it."""
    signer = _open(authority)
    data = notices.retire(signer.key, signer.mesh, lives, _now())
    first, *others = dict.fromkeys(name for name, _ in lives)
    more = f"-and-{len(others)}-more" if others else ""
    return _keep(signer, f"retire-{file_name(first)}{more}", data)


def expel(authority: Path | str, node: str) -> Path:
    """Sign that a member's certificates, up to this second, are not accepted any more; returns the notice."""
    signer = _open(authority)
    now = _now()
    data = notices.expel(signer.key, signer.mesh, node, now + 1, now)
    return _keep(signer, f"expel-{file_name(node)}", data)


def _open(folder: Path | str) -> _Authority:
    serialization = need("cryptography.hazmat.primitives.serialization")
    folder = Path(folder)
    path = folder / "authority.key"
    if not path.exists():
        raise FileError(f"{folder} must be an authority's folder, got none; make one with 'banditmesh keys init'")
    [certificate] = read_certificates(folder / "authority.crt", 1)
    signer = signer_in(certificate, folder / "authority.crt")
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError):
        key = None
    if key is None or key.public_key() != certificate.public_key():
        raise FileError(f"{path} must be the key of {folder / 'authority.crt'}, got something else")
    warn_if_exposed(path)
    return _Authority(folder, certificate, key, signer.mesh)


def _certify(signer: _Authority, node: str, public: Any, days: int, expelled: int) -> bytes:
    now = _now()
    if expelled > now + 1:
        raise InputError(f"{node!r} was expelled at a time in the future; correct this machine's clock")
    while now < expelled:  # a certificate of that very second would be taken for an earlier one
        time.sleep(0.05)
        now = _now()
    end = min(now + _seconds(days), int(signer.certificate.not_valid_after_utc.timestamp()))
    if end <= now:
        raise InputError(f"an authority must be valid, got {signer.folder}, which has expired; make a new one")
    return _pem(certify_node(public, signer.mesh, node, signer.key, signer.certificate, now, end))


def _trusted(signer: _Authority, trust: Sequence[Path | str]) -> bytes:
    """The certificates of the authorities that a node shall trust, as one file."""
    if len(trust) >= MAX_AUTHORITIES:
        raise InputError(f"at most {MAX_AUTHORITIES} authorities are trusted at a time, got {1 + len(trust)}")
    found = [signer.certificate]
    for path in map(Path, trust):
        [other] = read_certificates(path, 1)
        if (mesh := signer_in(other, path).mesh) != signer.mesh:
            raise FileError(f"{path} must be for the mesh {signer.mesh!r}, got one for {mesh!r}")
        found.append(other)
    return b"".join(map(_pem, found))


def _expelled_before(signer: _Authority, node: str, trust: Sequence[Path | str]) -> int:
    """The time before which a member's certificates are out, by notices in the authorities' folders; 0 if none says so.

    A trusted authority's folder is where its certificate lies; of one that was copied away, expulsions are not known.
    """
    found = [0]
    for certificate in (signer.folder / "authority.crt", *map(Path, trust)):
        believed = [signer_in(read_certificates(certificate, 1)[0], certificate)]
        for path in certificate.with_name("notices").glob(f"expel-*{NOTICE_SUFFIX}"):
            try:
                notice = notices.verify(path.read_bytes(), believed)
            except NoticeError as error:
                raise FileError(f"{path} cannot be used: {error}; move it away") from None
            if isinstance(notice, notices.Expulsion) and notice.node == node:
                found.append(notice.before)
    return max(found)


def _keep(signer: _Authority, name: str, data: bytes) -> Path:
    folder = signer.folder / "notices"
    folder.mkdir(exist_ok=True)
    # Named by what it says, so that no notice ever replaces another one.
    path = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}{NOTICE_SUFFIX}"
    _write(path, data)
    return path


def _refuse_existing(force: bool, *paths: Path) -> None:
    for path in paths:
        if not force and path.exists():
            raise FileError(f"{path} must not exist yet, got a file; --force replaces it")


def _now() -> int:
    return int(time.time())


def _seconds(days: int) -> int:
    return 86400 * checks.integer("days", days, at_least=1, at_most=100 * 365)


def _pem(certificate: Any) -> bytes:
    encoding = need("cryptography.hazmat.primitives.serialization").Encoding
    return bytes(certificate.public_bytes(encoding.PEM))


def _write_key(path: Path, key: Any) -> None:
    forms = need("cryptography.hazmat.primitives.serialization")
    data = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    _write(path, data, atomic.PRIVATE)


def _write(path: Path, data: bytes, mode: int = atomic.USUAL) -> None:
    with atomic.writing(path, durable=True, mode=mode) as stream:
        stream.write(data)
