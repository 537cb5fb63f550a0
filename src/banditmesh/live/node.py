"""A node of the live mesh: what an application embeds, and what a sidecar serves.

Everything is restored before a socket opens, and everything that was acknowledged is durable. A node's parts each have
one thing to do: the member decides, the committer writes, links talk, and the board keeps the authority's notices. Here
they are put together, started and ended; every task belongs to the node and none outlives it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from .. import checks
from ..errors import InputError, NodeError, NoticeError, RefusedError, StoreError
from ..protocols import notation
from . import config as configs
from .certificates import ACCEPTED, UNSIGNED, Certificate, Certificates
from .config import NodeConfig
from .disk.committing import Committer
from .disk.decisions import DecisionLog, shortened
from .disk.state import Store
from .fields import address as check_address
from .http.openapi import CapView, PeerView, StateView
from .links import Neighbour, NodeLinks, notices
from .links.exchange import Board, Exchange
from .links.notices import Signer
from .logs import note
from .member import COUNTED, REFUSED, WITHDRAWN, Answer, ArmSpec, Member, NodeChoice, Observation, Ticket
from .names import DEFAULT, check_name, epoch_text, new_epoch, split_agent, split_arm
from .signing import Credentials, Signing, Workers
from .statistics import certificate_id
from .tasks import Tasks
from .transport import Listener, PlainTransport, Refusal, TlsTransport, Transport
from .transport.identity import Contexts, Identity, KeyFiles, contexts, expiry_warning
from .transport.renewing import Renewal

LOG = logging.getLogger("banditmesh.live.node")

#: How long a node that leaves tries to send what waits, and to say bye, in seconds.
DRAIN_WITHIN: Final = 5.0
BYE_WITHIN: Final = 2.0
#: How often to look at the clock, in seconds.
TICK_EVERY: Final = 1.0
#: What makes another configuration of one.
_Edit: TypeAlias = Callable[[NodeConfig], NodeConfig]
#: What a running node cannot change, and neither can its bandits.
_FIXED: Final = (
    *("mesh", "node", "state", "listen", "plain"),
    *("caps", "max_ttl", "ticket_lifetime", "open_choices"),
    *("decisions", "decisions_bytes", "decisions_files", "max_clock_skew"),
)
_FIXED_OF_BANDITS: Final = ("policy", "memory", "explore", "patience", "lapse_reward")


#: The name under which `banditmesh.live` exports it.
Choice = NodeChoice


class Node:
    """One node of a mesh.

    Parameters
    ----------
    config : NodeConfig
        Who it is, what it chooses among, and which nodes it talks to.
    transport : Transport, optional
        Makes connections; TLS, or plain TCP, as the configuration says, unless given.
    store : Store, optional
        Where its state lies; the configuration's folder unless given. The node closes it.
    signers : sequence of Signer, optional
        Whose notices it believes; the configuration's authorities unless given.
    keys : Contexts, optional
        What it signs with, and whose certificates count; the configuration's keys unless given.
    workers : Workers, optional
        Where signatures are made and checked; its own threads unless given.
    clock : callable
        The time of day, in seconds since 1970.
    rng : random.Random, optional
        What it draws from; the system's own randomness unless given.
    new_life : bool
        Whether to move the state that is there aside, also a damaged one, and begin anew.

    Examples
    --------
    >>> import asyncio, tempfile
    >>> from banditmesh.live import ArmSpec, Node, NodeConfig
    >>> async def main(folder):
    ...     config = NodeConfig(mesh="shop", node="a", arms=[ArmSpec("red", sigma=1.0)], state=folder, plain=True)
    ...     async with Node(config) as node:
    ...         choice = node.choose()
    ...         await node.observe(choice, reward=0.5)
    ...         return choice.arm, node.state().arms[0].own_count
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(main(folder))
    ('red', 1)
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        transport: Transport | None = None,
        store: Store | None = None,
        signers: Sequence[Signer] | None = None,
        keys: Contexts | None = None,
        workers: Workers | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        new_life: bool = False,
    ) -> None:
        self.config = config
        self._clock = clock
        self._rng = random.SystemRandom() if rng is None else rng
        self._transport = transport
        self._store = store
        self._signers = tuple(signers or ())
        self._keys = keys
        self._workers = Workers() if workers is None else workers
        self._signing: Signing | None = None
        self._new_life = new_life
        self._listener: Listener | None = None
        self._decisions: DecisionLog | None = None
        self._renewal: Renewal | None = None
        self._tasks = Tasks()
        self._is_running = self._has_begun = False
        #: For each change that waits for its turn: the changes of neighbours that were asked for after it.
        self._waiting: dict[_Edit, list[_Edit]] = {}
        self._why_not = "it has not been started"

    @classmethod
    def from_config(cls, path: str | PathLike[str], **parts: Any) -> Self:
        """A node as a node.toml describes it."""
        return cls(configs.load(path), **parts)

    # --- beginning and end

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.leave()

    async def start(self) -> None:
        """Restore everything, then open sockets."""
        config = self.config
        if self._store is None:
            self._store = Store.open(config.state, config.mesh, config.node, new_life=self._new_life)
        if config.decisions is not None:
            self._decisions = DecisionLog(config.decisions, config.decisions_bytes, config.decisions_files)
        try:
            await self._restore(self._store)
            await self._open()
        except BaseException:
            await self._end("it did not start")
            raise
        self._is_running, self._has_begun, self._why_not = True, True, ""
        note(LOG, logging.INFO, "node started", mesh=config.mesh, node=config.node, listen=self.address or "nowhere")

    async def _restore(self, store: Store) -> None:
        config = self.config
        if self._transport is None:
            self._transport = self._make_transport()
        self._board = Board(lambda data: notices.verify(data, self._signers), config.caps.notices)
        keys = self._keys
        self._member = Member(
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
                self._board.expelled,
                config.signature_grace,
                config.caps.entries + config.caps.origins,
            ),
            signatures=UNSIGNED if keys is None else config.signatures,
            rng=self._rng,
        )
        self._committer = Committer(
            self._member,
            store,
            clock=self._clock,
            uptime=self._uptime,
            new_epoch=lambda: new_epoch(self._rng),
            changed=self._something_changed,
            observed=self._log_observed,
        )
        self._exchange = Exchange(
            self._member,
            self._board,
            notation.write(config.protocol),
            write=self._committer.write,
            heard_something=self._something_changed,
            member_expelled=self._member_expelled,
            clock=self._clock,
        )
        if keys is not None:
            self._signing = self._exchange.signing = Signing(
                self._member,
                self._credentials(keys),
                self._workers,
                clock=self._clock,
                max_clock_skew=config.max_clock_skew,
                left=self._exchange.want,
                refuses_less=lambda reason: self._links.renew(reason),
            )
            self._committer.sign = self._signing.sign
        self._links = NodeLinks(
            config.mesh,
            config.node,
            self._exchange,
            self._transport,
            self._tasks,
            clock=self._clock,
            rng=self._rng,
            accepts_members=config.accept == "members",
            most=config.caps.links,
            trusts=self._trusts,
        )
        if config.keys is not None and self._certificates is not None:
            self._renewal = Renewal(self._renewing, self._own, partial(self._change, lambda same: same), self._clock)
        self._use_certificate()
        stored = store.load()
        self._up_before = -asyncio.get_running_loop().time()
        if stored is not None:
            self._up_before += stored.life.uptime
            self._restore_notices(stored.notices)
            if self._signing is not None:
                await self._signing.restore(stored.certificates)
            self._member.restore(stored)
            if self._signing is not None:
                self._signing.review()
                await self._signing.sign_anew()
        self._exchange.bandits = self._member.bandits()
        await self._committer.begin()

    def _restore_notices(self, stored: Sequence[bytes]) -> None:
        for data in stored:
            try:
                self._board.post(data)
            except NoticeError as error:
                # Its authority is not trusted any more. What it retired stays retired: that is stored apart.
                note(LOG, logging.WARNING, "stored notice dropped", reason=error)

    def _make_transport(self) -> Transport:
        config = self.config
        if config.keys is None:
            return PlainTransport()
        self._keys = self._read_keys(config)
        self._signers = self._keys.signers
        return TlsTransport(self._keys, self._refused)

    def _credentials(self, keys: Contexts) -> Credentials:
        """What the node signs with."""
        own = keys.own
        certificate = Certificate(
            certificate_id(own.certificate),
            own.certificate,
            own.node,
            own.not_before,
            own.not_after,
            keys.key.public_key(),
        )
        return Credentials(certificate, keys.key)

    def _member_expelled(self) -> None:
        """A member was expelled: its links end, and its statistics leave with its certificates."""
        self._links.part_from_unwelcome()
        if self._signing is not None:
            self._signing.review()

    @staticmethod
    def _read_keys(config: NodeConfig) -> Contexts:
        assert config.keys is not None
        keys = contexts(config.keys)
        if (keys.own.mesh, keys.own.node) != (config.mesh, config.node):
            raise InputError(
                f"keys.certificate must be that of node {config.node!r} of mesh {config.mesh!r}, "
                f"got that of node {keys.own.node!r} of mesh {keys.own.mesh!r}"
            )
        return keys

    async def _open(self) -> None:
        assert self._transport is not None
        self._vital = [
            self._tasks.spawn(self._committer.run(), "committer"),
            self._tasks.spawn(self._committer.keep_saving(), "saver of the table"),
            self._tasks.spawn(self._links.watch(), "watcher of certificates"),
            self._tasks.spawn(self._keep_time(), "watcher of the clock"),
        ]
        if self._signing is not None:
            self._vital.append(self._tasks.spawn(self._signing.watch(), "watcher of certificates that count"))
        if self._renewal is not None:
            self._tasks.spawn(self._renewal.run(), "renewal of the certificate")
        if self.config.listen is not None:
            self._listener = await self._transport.listen(self.config.listen, self._links.accept)
        for neighbour in self.config.neighbours:
            self._links.add(neighbour.name, neighbour.address)

    @property
    def address(self) -> str | None:
        """Where neighbours reach it; None if it only dials."""
        return None if self._listener is None else self._listener.address

    async def leave(self, within: float = DRAIN_WITHIN) -> None:
        """End gracefully: choose no more, send what waits if that takes no longer than `within`, and say bye."""
        if not self._is_running:
            return
        self._is_running, self._why_not = False, "it is leaving"
        note(LOG, logging.INFO, "node leaves", waiting=self._n_waiting())
        try:
            await _come_true(lambda: self._committer.is_idle and not self._n_waiting(), within)
            if n_waiting := self._n_waiting():
                note(LOG, logging.WARNING, "node leaves before everything was sent", waiting=n_waiting)
            self._links.part("leaving")
            # A neighbour that does not take a bye sees the end of the connection.
            await _come_true(lambda: not self._links.linked(), BYE_WITHIN)
            await self._committer.save()
        finally:
            await self._end("it has left")
        note(LOG, logging.INFO, "node ended", node=self.config.node)

    async def abort(self) -> None:
        """End at once, as a crash does: what waits is not sent, and no neighbour is told."""
        await self._end("it was aborted")

    def _n_waiting(self) -> int:
        return sum(self._member.waiting(peer) + self._board.waiting(peer) for peer in self._links.linked())

    async def _end(self, why: str) -> None:
        self._is_running, self._why_not = False, why
        if self._listener is not None:
            self._listener.close()
        await self._tasks.end()
        if self._transport is not None:
            await self._transport.close()
        if self._store is not None:
            self._store.close()
        self._workers.close()
        if self._decisions is not None:
            await asyncio.to_thread(self._decisions.close)

    # --- choosing and observing

    def choose(
        self, among: Sequence[str] | None = None, *, bandit: str | None = None, segment: str | None = None
    ) -> NodeChoice:
        """Choose an arm; of those in `among`, if given.

        Parameters
        ----------
        among : sequence of str, optional
            The arms that are available now. Where the bandit has `new_arms`, those that it does not know yet are made.
        bandit : str, optional
            Which bandit chooses; the default one unless given.
        segment : str, optional
            The segment in which it chooses, such as a country; it is made when it is first named.

        Returns
        -------
        NodeChoice
            The arm, and the ticket by which its reward is reported: late, in any order, and after a restart. Its
            `probability` is that of the arm among those available; None for policies that draw. Its `segment` is None
            also where the bandit lists its segments, and not this one.

        Raises
        ------
        InputError
            There is no such bandit or arm, or no room for one more segment or arm.
        StoreError
            The node started on a disk that it could not write to, and has not been able to since.
        """
        self._require_running("choose")
        if not self._member.has_begun:
            raise StoreError(f"node {self.config.node!r} chooses once its start is stored: {self._committer.trouble}")
        if new := self._member.new_arms(bandit, among):
            try:
                self._change_now(_with_arms(bandit, lambda arms: [*arms, *new]))
            except InputError:
                self._member.counters["refused_new_arms"] += 1
                raise
        now, uptime = self._clock(), self._uptime()
        choice = self._member.choose(now, among, bandit=bandit, segment=segment, uptime=uptime)
        if self._decisions is not None:
            arms = self._member.arms_of(bandit) if among is None else list(among)
            self._log("choice", choice.ticket, choice.ticket.arm, arms=arms, probability=choice.probability)
        return choice

    async def observe(
        self,
        choice: NodeChoice | Ticket | str | None,
        reward: float,
        *,
        arm: str | None = None,
        key: str | None = None,
        bandit: str | None = None,
        segment: str | None = None,
    ) -> Answer:
        """Report a reward; it is durable when this returns, and the same again changes nothing.

        Parameters
        ----------
        choice : NodeChoice, Ticket, str or None
            What `choose` gave, or its ticket, or that as text; None for a reward that nothing here chose.
        reward : float
            Finite, at most 1e12 in size, and inside the arm's `reward_range`.
        arm, key : str, optional
            Without a choice: the arm, and a key of the caller's own by which it counts once.
        bandit, segment : str, optional
            Without a choice: whose arm it is; the default bandit's without a segment unless given.

        Raises
        ------
        InputError
            It is refused, and why.
        StoreError
            It could not be written; nothing has happened.
        """
        ticket: Any = choice.ticket if isinstance(choice, NodeChoice) else choice
        [answer] = await self.observe_many([Observation(reward, ticket, arm, key, bandit=bandit, segment=segment)])
        if answer.outcome == REFUSED:
            raise InputError(answer.reason)
        return answer

    async def withdraw(self, choice: NodeChoice | Ticket | str) -> Answer:
        """Close the ticket of a choice that came to nothing, such as an offer that was never shown; nothing is counted.

        Returns
        -------
        Answer
            WITHDRAWN, or ALREADY_COUNTED if the ticket was closed before, by a reward or by a withdrawal.

        Raises
        ------
        InputError
            It is refused, and why.
        StoreError
            It could not be written; nothing has happened.
        """
        ticket: Any = choice.ticket if isinstance(choice, NodeChoice) else choice
        [answer] = await self.observe_many([Observation(0.0, ticket, withdraws=True)])
        if answer.outcome == REFUSED:
            raise InputError(answer.reason)
        return answer

    def _log(self, kind: str, ticket: Ticket | None, name: str, **more: object) -> None:
        """Add a line to the decision log, of an arm by its name in statistics."""
        if self._decisions is not None:
            agent, arm = split_arm(name)
            bandit, segment = split_agent(agent)
            line = {"kind": kind, "time": self._clock(), "node": self.config.node, "arm": arm, **more}
            line |= {"bandit": bandit, "segment": segment or None}
            self._decisions.add(line | {"ticket": None if ticket is None else shortened(ticket)})

    def _log_observed(self, observations: Sequence[Observation], answers: Sequence[Answer]) -> None:
        """Add what was just stored to the decision log."""
        for one, answer in zip(observations, answers, strict=True):
            arm = one.arm or "" if one.ticket is None else one.ticket.arm
            if answer.outcome == COUNTED:
                self._log("reward", one.ticket, arm, reward=float(one.reward), lapsed=one.lapses)
            elif answer.outcome == WITHDRAWN:
                self._log("withdrawal", one.ticket, arm)

    async def observe_many(self, observations: Sequence[Observation], *, needs_key: bool = False) -> list[Answer]:
        """Report rewards together; what became of each, refusals included. Tickets may be text.

        With `needs_key`, a reward without a ticket must have a key: callers that may ask twice need one.

        Raises
        ------
        StoreError
            They could not be written; nothing has happened.
        """
        self._require_running("observe")
        sound: list[Observation] = []
        answers: list[Answer | None] = []
        for one in observations:
            try:
                checked = _checked(one, needs_key)
                if checked.arm is not None and (one.bandit, one.segment) != (None, None):
                    checked = checked._replace(arm=self._member.arm_of(one.bandit, one.segment, checked.arm))
                sound.append(checked)
                answers.append(None)
            except InputError as error:
                answers.append(Answer(REFUSED, str(error)))
        told = iter(await self._committer.observe(sound) if sound else ())
        return [next(told) if answer is None else answer for answer in answers]

    def _require_running(self, what: str) -> None:
        if not self._is_running:
            raise NodeError(f"node {self.config.node!r} must be running to {what}: {self._why_not}")

    def _require_begun(self) -> None:
        if not self._has_begun:
            raise NodeError(f"node {self.config.node!r} must have been started before its state can be read")

    # --- changes while running

    async def set_arms(self, arms: Sequence[ArmSpec], bandit: str | None = None) -> None:
        """Choose among other arms; what is known of them counts at once."""
        self._require_running("change its arms")
        await self._change(_with_arms(bandit, lambda _: list(arms)))

    async def add_arm(self, arm: ArmSpec, bandit: str | None = None) -> None:
        """Choose among one more arm, or describe one anew; what is known of it counts at once."""
        self._require_running("change its arms")
        await self._change(_with_arms(bandit, lambda arms: [*(one for one in arms if one.name != arm.name), arm]))

    async def remove_arm(self, name: str, bandit: str | None = None) -> None:
        """Choose an arm no more; what is known of it is kept, and passed on.

        Raises
        ------
        InputError
            There is no such arm.
        """
        self._require_running("change its arms")
        await self._change(_with_arms(bandit, lambda arms: _without(arms, name)))

    def add_peer(self, name: str, address: str | None = None) -> None:
        """Link with a neighbour; without an address it is waited for."""
        self._require_running("add a neighbour")
        if address is not None:
            check_address("address", address)
        added = configs.NeighbourConfig(name=check_name("a neighbour's name", name), address=address)
        self._change_neighbours(lambda config: _with_neighbours(config, name, added))
        self._links.add(name, address)

    def remove_peer(self, name: str) -> None:
        """End the link with a neighbour."""
        self._require_running("remove a neighbour")
        if name not in self._links.neighbours:
            raise InputError(f"{name!r} must be a neighbour to be removed, got none of that name")
        self._change_neighbours(lambda config: _with_neighbours(config, name))
        self._links.remove(name, "not a neighbour any more")

    async def notice(self, data: bytes) -> None:
        """Hand over a notice of the authority; it takes effect here at once, and spreads to all members.

        Raises
        ------
        NoticeError
            No trusted authority signed it.
        StoreError
            It is in effect, but could not be written yet; that is tried again.
        """
        self._require_running("take a notice")
        written = self._exchange.post(data)
        if written is not None:
            await written

    async def reload(self, config: NodeConfig) -> None:
        """Go on with another configuration: arms, protocol, neighbours, `accept`, `ignore` and keys may differ.

        Where the node refuses less than before, or has another protocol, its links are renewed: neighbours offer once
        more what it refused, and see its protocol.

        Raises
        ------
        InputError
            Something differs that cannot change while a node runs; nothing has changed.
        """
        self._require_running("choose another configuration")
        await self._change(lambda _: config)

    async def _change(self, edit: _Edit) -> None:
        """Change the configuration, as it is when the turn comes.

        Changes have their turns in the order in which they were asked for, and within its turn none waits for
        anything: so no two of them mix, and the last one stands. Those of neighbours need no turn; what waits for its
        own meanwhile takes them over.
        """
        later = self._waiting[edit] = list[_Edit]()
        try:
            async with self._committer.turn:
                self._require_running("choose another configuration")
                config = edit(self.config)
                for edit_later in later:
                    config = edit_later(config)
                self._apply(config)
        finally:
            del self._waiting[edit]

    def _change_neighbours(self, edit: _Edit) -> None:
        self.config = edit(self.config)
        self._edit_later(edit)

    def _change_now(self, edit: _Edit) -> None:
        """Change arms between two turns: a choice that names new ones does not wait."""
        config = edit(self.config)
        self._member.set_bandits(config.bandit_specs())
        self.config = config
        self._edit_later(edit)
        self._something_changed()

    def _edit_later(self, edit: _Edit) -> None:
        for later in self._waiting.values():
            later.append(edit)

    def _apply(self, config: NodeConfig) -> None:
        old = self.config
        bandits = {bandit.name: bandit for bandit in old.bandit_specs()}
        same: list[tuple[object, object, tuple[str, ...]]] = [(config, old, _FIXED)]
        same += [(one, bandits[one.name], _FIXED_OF_BANDITS) for one in config.bandit_specs() if one.name in bandits]
        for new, before, fields in same:
            for field in fields:
                if getattr(new, field) != getattr(before, field):
                    raise InputError(f"{field} cannot change while a node runs: restart it, or put the old one back")
        self._member.check_bandits(config.bandit_specs())
        keys = self._read_keys(config) if isinstance(self._transport, TlsTransport) else None
        self._member.set_ignore(config.ignore)
        reasons = ["ignore is shorter"] if set(old.ignore) - set(config.ignore) else []
        if keys is not None:
            assert isinstance(self._transport, TlsTransport)
            if set(keys.signers) - set(self._signers):
                reasons.append("another authority")
            self._transport.contexts, self._signers, self._keys = keys, keys.signers, keys
        if self._signing is not None and self._keys is not None:
            if self._signing.use(self._credentials(self._keys), self._keys.authorities, config.signature_grace):
                reasons.append("certificates count that did not")
            if config.signatures == ACCEPTED != old.signatures:
                reasons.append("signatures are not required any more")
            if config.signatures != old.signatures:
                self._member.set_signatures(config.signatures)
            self._tasks.spawn(self._trust_anew(self._signing), "looking at certificates again")
        if config.protocol != old.protocol:
            # A neighbour is told of it in a hello. What was heard has the hops that the old protocol left it; on a new
            # link it is offered with all of them.
            self._member.set_protocol(config.protocol, config.max_ttl)
            self._exchange.protocol = notation.write(config.protocol)
            reasons.append("another protocol")
        if config.bandit_specs() != [*bandits.values()] and self._member.set_bandits(config.bandit_specs()):
            reasons.append("another reward_range")
        self._exchange.bandits = self._member.bandits()
        self.config = config
        self._use_certificate()
        self._links.accepts_members = config.accept == "members"
        self._links.part_from_unwelcome()
        if reasons:
            self._links.renew(", ".join(reasons))
        for name in {one.name for one in old.neighbours} - {one.name for one in config.neighbours}:
            if name in self._links.neighbours:
                self._links.remove(name, "not a neighbour any more")
        for neighbour in config.neighbours:
            self._links.add(neighbour.name, neighbour.address)
        self._something_changed()

    async def _trust_anew(self, signing: Signing) -> None:
        """After keys or authorities have changed: let go what does not count, and sign what is the node's own."""
        await signing.trust_anew()
        await signing.sign_anew()
        self._something_changed()

    # --- looking

    def ready(self) -> tuple[bool, str]:
        """Whether it does all of its work, and if not, why."""
        if not self._is_running:
            return False, self._why_not
        if any(task.done() for task in self._vital):
            return False, "an error in this node, see its log; restart it"
        if self._committer.trouble:
            what = "" if self._member.has_begun else "it chooses once its start is stored: "
            return False, f"degraded: {what}{self._committer.trouble}"
        return True, ""

    def state(self) -> StateView:
        """What it knows of each arm, and what it counted since it started."""
        self._require_begun()
        seen = self._member.snapshot(self._uptime())
        counters = Counter(seen.counters) + self._exchange.counts + self._links.counts
        counters["failed_writes"] = self._committer.n_failures
        counters["failed_tasks"] = len(self._tasks.failures)
        warnings = [*seen.warnings, *self._expiry()]
        if self._renewal is not None:
            counters.update(self._renewal.counters)
            warnings += [f"the certificate is not renewed: {self._renewal.trouble}"] if self._renewal.trouble else []
        if self._decisions is not None:
            counters.update(self._decisions.counters)
            if self._decisions.trouble:
                warnings.append(f"decisions cannot be written to {self.config.decisions}: {self._decisions.trouble}")
        return msgspec.structs.replace(
            seen,
            counters=dict(counters),
            caps={**seen.caps, "notices": CapView(len(self._board), self.config.caps.notices)},
            warnings=warnings,
            certificate_ends=None if self._certificates is None else self._certificates.own.not_after,
        )

    def peers(self) -> list[PeerView]:
        """How each link is."""
        self._require_begun()
        return [self._peer(neighbour) for _, neighbour in sorted(self._links.neighbours.items())]

    def _peer(self, neighbour: Neighbour) -> PeerView:
        hello, refusal = neighbour.hello, neighbour.refusal
        waiting = self._exchange.waiting(neighbour.name)
        behind = 0.0
        if neighbour.conversation is not None and waiting:
            behind = asyncio.get_running_loop().time() - neighbour.conversation.empty_at
        return PeerView(
            name=neighbour.name,
            address=neighbour.address,
            state="down" if neighbour.conversation is None else "up",
            since=neighbour.since,
            sent=neighbour.n_sent,
            received=neighbour.n_received,
            waiting=waiting,
            behind=behind,
            last_refusal=None if refusal is None else f"{refusal.reason}: {refusal}",
            refused_at=None if refusal is None else neighbour.refused_at,
            protocol=None if hello is None else hello.protocol,
            software=None if hello is None else hello.software,
        )

    def carried(self) -> dict[str, tuple[int, int]]:
        """By linked neighbour: how many statistics were sent and heard on the present connection.

        With what the other end says of the same connection, this tells what is on its way.
        """
        self._require_begun()
        talks = {name: neighbour.conversation for name, neighbour in self._links.neighbours.items()}
        return {name: (talk.n_sent, talk.n_received) for name, talk in talks.items() if talk is not None}

    def lives(self, name: str) -> list[str]:
        """The lives of a member that it knows, as 16 hexadecimal digits each."""
        check_name("a member's name", name)
        self._require_begun()
        return [epoch_text(epoch) for node, epoch in self._member.lives() if node == name]

    async def backup(self, path: str | PathLike[str]) -> None:
        """Copy its state into a file while it runs; what is restored from that begins a new life."""
        self._require_running("be copied")
        assert self._store is not None
        await self._committer.save()
        await asyncio.get_running_loop().run_in_executor(None, self._store.backup, path)

    # --- inside

    def _uptime(self) -> float:
        """How long processes have run on this state, in seconds, as far as that was stored."""
        return self._up_before + asyncio.get_running_loop().time()

    async def _keep_time(self) -> None:
        """Until cancelled, tell the member how late it is, and whether the clock was set."""
        before = self._clock() - self._uptime()
        while True:
            await asyncio.sleep(TICK_EVERY)
            now, uptime = self._clock(), self._uptime()
            if abs(now - uptime - before) > self.config.max_clock_skew:
                note(LOG, logging.WARNING, "the clock was set", by=round(now - uptime - before, 3))
                self._member.clock_was_set(now)
            before = now - uptime
            self._member.tick(now, uptime)
            self._committer.look()

    def _something_changed(self) -> None:
        self._committer.look()
        self._exchange.wake()

    @property
    def _certificates(self) -> Contexts | None:
        """The node's own certificate and those of its authorities; None where links are plain."""
        return self._transport.contexts if isinstance(self._transport, TlsTransport) else None

    def _own(self) -> Identity:
        """The node's own certificate."""
        assert self._certificates is not None
        return self._certificates.own

    def _renewing(self) -> tuple[KeyFiles, Sequence[str], float | None]:
        """What the renewal of the certificate needs to know."""
        assert self.config.keys is not None
        return self.config.keys, self.config.renew_command, self.config.renew_before

    def _use_certificate(self) -> None:
        """Links end with the certificate that there is now."""
        if self._certificates is not None:
            self._links.own_ends = self._certificates.own.not_after
        for warning in self._expiry():
            note(LOG, logging.WARNING, "certificate", warning=warning)

    def _expiry(self) -> list[str]:
        """A warning, if the node's certificate has ended or soon will."""
        own = None if self._certificates is None else self._certificates.own
        warning = None if own is None else expiry_warning(own, self._clock())
        return [] if warning is None else [warning]

    def _trusts(self, peer: Identity) -> bool:
        return self._certificates is None or self._certificates.trusts(peer)

    def _refused(self, refusal: Refusal) -> None:
        # What this node dialled is counted where it dialled.
        if not refusal.dialled:
            self._links.refused(RefusedError(refusal.reason, refusal.message), refusal.node)


def _with_neighbours(config: NodeConfig, name: str, *new: configs.NeighbourConfig) -> NodeConfig:
    """A configuration with something new for the neighbour of a name."""
    others = [one for one in config.neighbours if one.name != name]
    return msgspec.structs.replace(config, neighbours=[*others, *new])


def _with_arms(bandit: str | None, edit: Callable[[Sequence[ArmSpec]], list[ArmSpec]]) -> _Edit:
    """What gives a bandit other arms."""

    def edited(config: NodeConfig) -> NodeConfig:
        if bandit is None or bandit == DEFAULT:
            return msgspec.structs.replace(config, arms=edit(config.arms))
        if bandit not in [one.name for one in config.bandits]:
            raise InputError(f"bandit must be one of node {config.node!r}, got {checks.shown(bandit)}")
        replace = msgspec.structs.replace
        bandits = [replace(one, arms=edit(one.arms)) if one.name == bandit else one for one in config.bandits]
        return replace(config, bandits=bandits)

    return edited


def _without(arms: Sequence[ArmSpec], name: str) -> list[ArmSpec]:
    left = [one for one in arms if one.name != name]
    if len(left) == len(arms):
        raise InputError(f"an arm that is removed must be there, got {checks.shown(name)}")
    return left


async def _come_true(condition: Callable[[], bool], within: float) -> None:
    """Wait until something holds, but no longer than `within` seconds."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while not condition() and loop.time() < until:
        await asyncio.sleep(0.01)


def _checked(observation: Observation, needs_key: bool) -> Observation:
    """An observation with a ticket, or with an arm and perhaps a key; the rest is for the member to check."""
    ticket: Any
    reward, ticket, arm, key, withdraws, bandit, segment, lapses = observation
    if lapses:
        raise InputError("a ticket lapses by itself, got an observation that says so")
    given = [name for name, value in (("ticket", ticket), ("arm", arm), ("key", key)) if value is not None]
    if withdraws and ticket is None:
        raise InputError("a withdrawal must name the ticket of a choice, got none")
    if given not in (["ticket"], ["arm", "key"]) and (needs_key or given != ["arm"]):
        got = " and ".join(given) or "neither"
        raise InputError(f"an observation must have a ticket, or an arm and a key, got {got}")
    if ticket is not None and (bandit, segment) != (None, None):
        raise InputError("an observation with a ticket must have neither bandit nor segment: its ticket says them")
    if isinstance(ticket, str):
        ticket = Ticket.parse(ticket)
    if ticket is not None and not isinstance(ticket, Ticket):
        raise InputError(f"a ticket must be one that choose() gave, got {checks.shown(ticket)}")
    return Observation(reward, ticket, arm, key, withdraws)
