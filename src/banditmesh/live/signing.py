"""What a node signs and checks while it runs: off its event loop, but for a few signatures of its own.

    Workers    threads for signatures
    Signing    signs what the node tells, checks what it hears, and looks after certificates

Rules kept here. What a node tells is signed while it is being stored, and told when both are done. A node with another
certificate signs anew what it observed itself on this disk, and nothing that it only heard under its name: a thief of
its key may have signed that. Signatures of its own are not stored with what it told: they are made anew at a start.

Which certificates count is looked at with every expulsion and reload, at the start, every hour, and when the clock was
set. Rows leave with their certificates, and neighbours are then asked for what they have of those origins: less under a
better certificate was stale until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

from .certificates import Certificate, RefusedCertificate, read_certificates, signed_bytes
from .links.notices import need
from .member import Member
from .statistics import Known, Statistic

#: How many threads check and sign.
THREADS: Final = 2
#: Up to this many rows are signed in the event loop: asking a thread takes more than twice the CPU time of a signature.
FEW: Final = 8
#: How often to look at the clock, and how often which certificates count, in seconds.
LOOK_EVERY: Final = 1.0
REVIEW_EVERY: Final = 3600.0

_Result = TypeVar("_Result")


class Credentials(NamedTuple):
    """What a node signs with: its certificate, and the key that belongs to it."""

    certificate: Certificate
    key: Any


class Workers:
    """Threads for work that the event loop must not wait for: callers have their turns as they come."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """What a function returns, which is called in one of the threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, "banditmesh-signatures")
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    def close(self) -> None:
        """Begin nothing more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def sign_rows(mesh: str, credentials: Credentials, rows: Sequence[Known]) -> list[bytes]:
    """The signatures of what these rows say."""
    sign = credentials.key.sign
    return [sign(signed_bytes(mesh, row.key, row.values)) for row in rows]


def _enter(credentials: Credentials, rows: Sequence[Known], signatures: Sequence[bytes]) -> None:
    for row, signature in zip(rows, signatures, strict=True):
        row.certificate, row.signature = credentials.certificate.id, signature


def check_signatures(mesh: str, statistics: Sequence[Statistic], keys: Sequence[Any]) -> list[bool]:
    """Of each statistic whether this key signed it."""
    invalid = need("cryptography.exceptions").InvalidSignature
    found = []
    for one, key in zip(statistics, keys, strict=True):
        try:
            key.verify(one.signature, signed_bytes(mesh, one.key, one.values))
            found.append(True)
        except invalid:
            found.append(False)
    return found


class Signing:
    """What a node with keys signs and checks.

    Parameters
    ----------
    member : Member
        Who tells and hears.
    credentials : Credentials
        What it signs with.
    workers : Workers
    clock : callable
        The time of day, in seconds.
    max_clock_skew : float
        By how many seconds the clock may be off before it counts as set.
    left : callable
        Called with the names of origins whose rows have left.
    refuses_less : callable
        Called with a reason when certificates may count that did not: neighbours are to offer everything again.
    """

    def __init__(
        self,
        member: Member,
        credentials: Credentials,
        workers: Workers,
        *,
        clock: Callable[[], float],
        max_clock_skew: float,
        left: Callable[[Iterable[str]], None],
        refuses_less: Callable[[str], None],
    ) -> None:
        self.certificates = member.certificates
        self._member = member
        self._credentials = credentials
        self._workers = workers
        self._clock = clock
        self._max_clock_skew = max_clock_skew
        self._left = left
        self._refuses_less = refuses_less
        self.certificates.use(credentials.certificate, clock())

    def sign(self, rows: Sequence[Known]) -> asyncio.Future[None] | None:
        """Sign what rows say, which nothing else changes meanwhile: a few at once, many in a thread, to be awaited."""
        if len(rows) > FEW:
            return asyncio.ensure_future(self._sign_many(rows))
        _enter(self._credentials, rows, sign_rows(self.certificates.mesh, self._credentials, rows))
        return None

    async def _sign_many(self, rows: Sequence[Known]) -> None:
        credentials = self._credentials
        signatures = await self._workers.run(sign_rows, self.certificates.mesh, credentials, rows)
        _enter(credentials, rows, signatures)

    async def sign_anew(self) -> None:
        """Sign what the node told and observed itself under the certificate that it has now."""
        while rows := self._member.to_sign(self._credentials.certificate.id):
            if (signing := self.sign(rows)) is not None:
                await signing
            self._member.signed(rows)

    async def check(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Those of these statistics whose signatures are right; their certificates must be known."""
        keys = [self.certificates[one.certificate].key for one in statistics]
        are_right = await self._workers.run(check_signatures, self.certificates.mesh, statistics, keys)
        return [one for one, is_right in zip(statistics, are_right, strict=True) if is_right]

    async def read(self, ders: Sequence[bytes]) -> list[Certificate | RefusedCertificate]:
        """What certificates are, by the authorities that are trusted now."""
        certificates = self.certificates
        return await self._workers.run(read_certificates, ders, certificates.mesh, certificates.authorities)

    async def restore(self, ders: Sequence[bytes]) -> None:
        """Know again what was stored, as far as it counts."""
        for found in await self.read(ders):
            if isinstance(found, Certificate):
                self.certificates.add(found, self._clock())
        self.certificates.stored()

    def use(self, credentials: Credentials, authorities: Sequence[Any], grace: float) -> bool:
        """Sign and check with these from now on; whether certificates may count that did not before."""
        certificates = self.certificates
        others = {one.fingerprint for one in authorities} - {one.fingerprint for one in certificates.authorities}
        is_less = bool(others) or grace > certificates.grace
        certificates.authorities, certificates.grace = tuple(authorities), grace
        if is_less:
            certificates.forget_refusals()
        self._credentials = credentials
        certificates.use(credentials.certificate, self._clock())
        return is_less

    async def trust_anew(self) -> None:
        """Look again which of the known certificates an authority has issued that is trusted now."""
        ders = self.certificates.all()
        for der, found in zip(ders, await self.read(ders), strict=True):
            if isinstance(found, RefusedCertificate):
                self.certificates.refuse_known(der, found.reason)
        self.review()

    def review(self) -> None:
        """Look again which certificates count; rows leave with those that do not."""
        self._member.review(self._clock(), self._left)

    async def watch(self) -> None:
        """Until cancelled, look every hour which certificates count, and whenever the clock was set."""
        loop = asyncio.get_running_loop()
        reviewed = loop.time()
        offset = self._clock() - loop.time()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            before, offset = offset, self._clock() - loop.time()
            was_set = abs(offset - before) > self._max_clock_skew
            if was_set:
                self.certificates.forget_refusals()
            if was_set or loop.time() - reviewed >= REVIEW_EVERY:
                reviewed = loop.time()
                self.review()
            if was_set:
                self._refuses_less("the clock was set")
