"""The parts of a node: put together from its configuration, restored, started and ended.

The member decides, the committer writes, links talk, and the board keeps the authority's notices. Everything is
restored before a socket opens. Every task belongs to the node and none outlives it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from ..errors import InputError, NoticeError, RefusedError
from ..protocols import notation
from .certificates import UNSIGNED, Certificate, Certificates
from .config import NodeConfig
from .decided import Decided
from .disk.committing import Committer
from .disk.state import Store
from .links import NodeLinks, notices
from .links.exchange import Board, Exchange
from .links.notices import Signer
from .logs import note
from .member import Member
from .member.walks import PIECE
from .names import new_epoch
from .signing import Credentials, Signing, Workers
from .statistics import certificate_id
from .tasks import Tasks
from .transport import Listener, PlainTransport, RefusedConnection, TlsTransport, Transport
from .transport.identity import Contexts, Identity, KeyFiles, contexts, expiry_warning
from .transport.renewing import Renewal

LOG = logging.getLogger("banditmesh.live.node")

#: How often to look at the clock, in seconds.
TICK_EVERY: Final = 1.0


class NodeParts:
    """The parts of one node. What is not given is made as the configuration says; `Node` says what is what.

    `prepare`, `restore` and `open` are called in this order, and `end` whatever became of them.

    Attributes
    ----------
    config : NodeConfig
        As it is now.
    vital : list of asyncio.Task
        Those that do not end before the node does.
    """

    member: Member
    board: Board
    committer: Committer
    exchange: Exchange
    links: NodeLinks

    def __init__(
        self,
        config: NodeConfig,
        transport: Transport | None,
        store: Store | None,
        signers: Sequence[Signer] | None,
        keys: Contexts | None,
        workers: Workers | None,
        clock: Callable[[], float],
        rng: random.Random | None,
    ) -> None:
        self.config = config
        self.transport = transport
        self.store = store
        self.signers = tuple(signers or ())
        self.keys = keys
        self.clock = clock
        self.tasks = Tasks()
        self.vital: list[asyncio.Task[None]] = []
        self.signing: Signing | None = None
        self.decided: Decided | None = None
        self.renewal: Renewal | None = None
        self.listener: Listener | None = None
        self._workers = Workers() if workers is None else workers
        self._rng = random.SystemRandom() if rng is None else rng

    def prepare(self, new_life: bool) -> None:
        """Open the files; with `new_life`, move the state that is there aside."""
        config = self.config
        if self.store is None:
            self.store = Store.open(config.state, config.mesh, config.node, new_life=new_life)
        if config.decisions is not None:
            self.decided = Decided(config, self.clock)

    async def restore(self, read_again: Callable[[], Awaitable[None]]) -> None:
        """Put everything together and back; `read_again` is called when there is a new certificate."""
        assert self.store is not None
        self._make_transport()
        self._make_member()
        self._make_links(read_again)
        self.use_certificate()
        stored = await self.store.loaded()
        self.committer.up_before = -asyncio.get_running_loop().time()
        if stored is not None:
            self.committer.up_before += stored.life.uptime
            self._restore_notices(stored.notices)
            if self.signing is not None:
                await self.signing.restore(stored.certificates)
            self.member.restore(stored)
            await self.walked()
            if self.signing is not None:
                self.signing.review()
                await self.walked()
                await self.signing.sign_anew()
        self.exchange.bandits = self.member.bandits()
        await self.committer.begin()

    def _make_transport(self) -> None:
        if self.transport is not None:
            return
        if self.config.keys is None:
            self.transport = PlainTransport()
        else:
            self.keys = read_keys(self.config)
            self.signers = self.keys.signers
            self.transport = TlsTransport(self.keys, self._refused)

    def _make_member(self) -> None:
        """The member, what writes for it, and what passes between it and links."""
        config, keys = self.config, self.keys
        assert self.store is not None
        self.board = Board(lambda data: notices.verify(data, self.signers), config.caps.notices)
        self.member = Member(
            config.mesh,
            config.node,
            config.bandit_specs(),
            config.protocol,
            caps=config.caps,
            max_ttl=config.max_ttl,
            ignore=config.ignore,
            ticket_lifetime=config.ticket_lifetime,
            open_choices=config.open_choices,
            max_clock_skew=config.max_clock_skew,
            certificates=Certificates(
                config.mesh,
                () if keys is None else keys.authorities,
                self.board.expelled,
                config.signature_grace,
                config.caps.entries + config.caps.origins,
            ),
            signatures=UNSIGNED if keys is None else config.signatures,
            trim=config.trust.trim,
            rng=self._rng,
        )
        self.member.walks.piece = PIECE
        self.committer = Committer(self.member, self.store, clock=self.clock, new_epoch=lambda: new_epoch(self._rng))
        if self.decided is not None:
            self.committer.observed = self.decided.observed
        self.exchange = Exchange(
            self.member,
            self.board,
            notation.write(config.protocol),
            write=self.committer.write,
            look=self.committer.look,
            member_expelled=self._member_expelled,
            clock=self.clock,
        )
        self.committer.wake = self.exchange.wake

    def _make_links(self, read_again: Callable[[], Awaitable[None]]) -> None:
        """Links, and what goes with keys."""
        config, keys = self.config, self.keys
        assert self.transport is not None
        self.links = NodeLinks(
            config.mesh,
            config.node,
            self.exchange,
            self.transport,
            self.tasks,
            clock=self.clock,
            rng=self._rng,
            accepts_members=config.accept == "members",
            most=config.caps.links,
            trusts=self._trusts,
        )
        if keys is not None:
            self.signing = self.exchange.signing = Signing(
                self.member,
                credentials(keys),
                self._workers,
                clock=self.clock,
                max_clock_skew=config.max_clock_skew,
                left=self.exchange.want,
                refuses_less=self.links.renew,
            )
            self.committer.sign = self.signing.sign
        if config.keys is not None and self.certificates is not None:
            self.renewal = Renewal(self._renewing, self._own, read_again, self.clock)

    def _restore_notices(self, stored: Sequence[bytes]) -> None:
        for data in stored:
            try:
                self.board.post(data)
            except NoticeError as error:
                # Its authority is not trusted any more. Members that it expelled stay expelled, and what it retired,
                # which is stored apart, stays retired.
                note(LOG, logging.WARNING, "stored notice is not passed on any more", reason=error)
                with suppress(NoticeError):
                    self.board.remember(data)

    async def open(self) -> None:
        """Start all tasks, and open sockets."""
        assert self.transport is not None
        self.vital = [
            self.tasks.spawn(self.committer.run(), "committer"),
            self.tasks.spawn(self.committer.keep_saving(), "saver of the table"),
            self.tasks.spawn(self.links.watch(), "watcher of certificates"),
            self.tasks.spawn(self._keep_time(), "watcher of the clock"),
        ]
        if self.signing is not None:
            self.vital.append(self.tasks.spawn(self.signing.watch(), "watcher of certificates that count"))
        if self.renewal is not None:
            self.tasks.spawn(self.renewal.run(), "renewal of the certificate")
        if self.config.listen is not None:
            self.listener = await self.transport.listen(self.config.listen, self.links.accept)
        for neighbour in self.config.neighbours:
            self.links.add(neighbour.name, neighbour.address)

    async def end(self) -> None:
        """End all tasks, and close sockets and files."""
        if self.listener is not None:
            self.listener.close()
        await self.tasks.end()
        if self.transport is not None:
            await self.transport.close()
        if self.store is not None:
            self.store.close()
        self._workers.close()
        if self.decided is not None:
            await asyncio.to_thread(self.decided.close)

    def n_waiting(self) -> int:
        """How much waits to be sent to those that are linked."""
        return sum(self.member.waiting(peer) + self.board.waiting(peer) for peer in self.links.linked())

    def something_changed(self) -> None:
        """Something may have to be written, or sent."""
        self.committer.look()
        self.exchange.wake()

    async def walked(self) -> None:
        """Go on with what concerns many rows, a piece in each turn of the event loop, until it is done."""
        while self.member.walks.are_left:
            await asyncio.sleep(0)
            self.member.walks.go_on()

    async def _keep_time(self) -> None:
        """Until cancelled, tell the member how late it is, and whether the clock was set."""
        before = self.clock() - self.committer.uptime()
        while True:
            await asyncio.sleep(TICK_EVERY)
            now, uptime = self.clock(), self.committer.uptime()
            if abs(now - uptime - before) > self.config.max_clock_skew:
                note(LOG, logging.WARNING, "the clock was set", by=round(now - uptime - before, 3))
                self.member.clock_was_set(now)
            before = now - uptime
            self.member.tick(now, uptime)
            self.committer.look()
            await self.walked()

    # --- the node's own certificate, and those of others

    @property
    def certificates(self) -> Contexts | None:
        """The node's own certificate and those of its authorities; None where links are plain."""
        return self.transport.contexts if isinstance(self.transport, TlsTransport) else None

    def use_certificate(self) -> None:
        """Links end with the certificate that there is now."""
        if self.certificates is not None:
            self.links.own_ends = self.certificates.own.not_after
        for warning in self.expiry():
            note(LOG, logging.WARNING, "certificate", warning=warning)

    def expiry(self) -> list[str]:
        """A warning, if the node's certificate has ended or soon will."""
        own = None if self.certificates is None else self.certificates.own
        warning = None if own is None else expiry_warning(own, self.clock())
        return [] if warning is None else [warning]

    async def trust_anew(self) -> None:
        """After keys or authorities have changed: let go what does not count, and sign what is the node's own."""
        assert self.signing is not None
        await self.signing.trust_anew()
        await self.signing.sign_anew()
        self.something_changed()

    def _own(self) -> Identity:
        """The node's own certificate."""
        assert self.certificates is not None
        return self.certificates.own

    def _renewing(self) -> tuple[KeyFiles, Sequence[str], float | None]:
        """What the renewal of the certificate needs to know."""
        assert self.config.keys is not None
        return self.config.keys, self.config.renew_command, self.config.renew_before

    def _member_expelled(self) -> None:
        """A member was expelled: its links end, and its statistics leave with its certificates."""
        self.links.part_from_unwelcome()
        if self.signing is not None:
            self.signing.review()

    def _trusts(self, peer: Identity) -> bool:
        return self.certificates is None or self.certificates.trusts(peer)

    def _refused(self, refusal: RefusedConnection) -> None:
        # What this node dialled is counted where it dialled.
        if not refusal.dialled:
            self.links.refused(RefusedError(refusal.reason, refusal.message), refusal.node)


def read_keys(config: NodeConfig) -> Contexts:
    """The keys of a node, which must be its own."""
    assert config.keys is not None
    keys = contexts(config.keys)
    if (keys.own.mesh, keys.own.node) != (config.mesh, config.node):
        raise InputError(
            f"keys.certificate must be that of node {config.node!r} of mesh {config.mesh!r}, "
            f"got that of node {keys.own.node!r} of mesh {keys.own.mesh!r}"
        )
    return keys


def credentials(keys: Contexts) -> Credentials:
    """What a node with these keys signs with."""
    own = keys.own
    certificate = Certificate(
        certificate_id(own.certificate), own.certificate, own.node, own.not_before, own.not_after, keys.key.public_key()
    )
    return Credentials(certificate, keys.key)
