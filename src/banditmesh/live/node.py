"""A node of the live mesh: what an application embeds, and what a sidecar serves.

Everything is restored before a socket opens, and everything that was acknowledged is durable. What a node consists of
is in `parts`, how its configuration changes in `changes`, and what it shows in `views`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

from .. import checks
from ..errors import InputError, NodeError, StoreError
from . import config as configs
from .changes import ConfigChanges, with_arms, with_neighbours, with_others, without
from .config import NodeConfig
from .disk.state import Store
from .fields import address as check_address
from .http.openapi import PeerView, StateView
from .links.notices import Signer
from .logs import note
from .member import REFUSED, Answer, ArmSpec, NodeChoice, Observation, Ticket
from .names import check_name, epoch_text
from .parts import NodeParts
from .signing import Workers
from .transport import Transport
from .transport.identity import Contexts
from .views import carried_by, peers_of, state_of

LOG = logging.getLogger("banditmesh.live.node")

#: How long a node that leaves tries to send what waits, and to say bye, in seconds.
DRAIN_WITHIN: Final = 5.0
BYE_WITHIN: Final = 2.0

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
        self._parts = NodeParts(config, transport, store, signers, keys, workers, clock, rng)
        self._changes = ConfigChanges(self._parts, lambda: self._require_running("choose another configuration"))
        self._new_life = new_life
        self._is_running = self._has_begun = False
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
        config, parts = self.config, self._parts
        try:
            parts.prepare(self._new_life)
            await parts.restore(lambda: self._changes.make(lambda same: same, reads_keys=True))
            self._member, self._committer, self._links = parts.member, parts.committer, parts.links
            await parts.open()
        except BaseException:
            await self._end("it did not start")
            raise
        self._is_running, self._has_begun, self._why_not = True, True, ""
        note(LOG, logging.INFO, "node started", mesh=config.mesh, node=config.node, listen=self.address or "nowhere")

    @property
    def config(self) -> NodeConfig:
        """Its configuration, as it is now."""
        return self._parts.config

    @property
    def address(self) -> str | None:
        """Where neighbours reach it; None if it only dials."""
        return None if self._parts.listener is None else self._parts.listener.address

    async def leave(self, within: float = DRAIN_WITHIN) -> None:
        """End gracefully: choose no more, send what waits if that takes no longer than `within`, and say bye."""
        if not self._is_running:
            return
        self._is_running, self._why_not = False, "it is leaving"
        note(LOG, logging.INFO, "node leaves", waiting=self._parts.n_waiting())
        try:
            await _come_true(lambda: self._committer.is_idle and not self._parts.n_waiting(), within)
            if n_waiting := self._parts.n_waiting():
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

    async def _end(self, why: str) -> None:
        self._is_running, self._why_not = False, why
        await self._parts.end()

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
                self._changes.change_arms_now(with_arms(bandit, lambda arms: with_others(arms, new)))
            except InputError:
                self._member.counters["refused_new_arms"] += 1
                raise
        now, uptime = self._parts.clock(), self._committer.uptime()
        choice = self._member.choose(now, among, bandit=bandit, segment=segment, uptime=uptime)
        if self._parts.decided is not None:
            self._parts.decided.chosen(choice, self._member.arms_of(bandit) if among is None else among)
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
        await self._changes.make(with_arms(bandit, lambda _: list(arms)))

    async def add_arm(self, arm: ArmSpec, bandit: str | None = None) -> None:
        """Choose among one more arm, or describe one anew; what is known of it counts at once."""
        self._require_running("change its arms")
        await self._changes.make(with_arms(bandit, lambda arms: [*(one for one in arms if one.name != arm.name), arm]))

    async def remove_arm(self, name: str, bandit: str | None = None) -> None:
        """Choose an arm no more; what is known of it is kept, and passed on.

        Raises
        ------
        InputError
            There is no such arm.
        """
        self._require_running("change its arms")
        await self._changes.make(with_arms(bandit, lambda arms: without(arms, name)))

    def add_peer(self, name: str, address: str | None = None) -> None:
        """Link with a neighbour; without an address it is waited for."""
        self._require_running("add a neighbour")
        if address is not None:
            check_address("address", address)
        added = configs.NeighbourConfig(name=check_name("a neighbour's name", name), address=address)
        self._changes.change_neighbours(with_neighbours(name, added))
        self._links.add(name, address)

    def remove_peer(self, name: str) -> None:
        """End the link with a neighbour."""
        self._require_running("remove a neighbour")
        if name not in self._links.neighbours:
            raise InputError(f"{name!r} must be a neighbour to be removed, got none of that name")
        self._changes.change_neighbours(with_neighbours(name))
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
        written = self._parts.exchange.post(data)
        if written is not None:
            await written

    async def reload(self, config: NodeConfig) -> None:
        """Go on with another configuration: all but what needs a restart may differ, as the docs say.

        Where the node refuses less than before, or has another protocol, its links are renewed: neighbours offer once
        more what it refused, and see its protocol.

        Raises
        ------
        InputError
            Something differs that cannot change while a node runs; nothing has changed.
        """
        self._require_running("choose another configuration")
        await self._changes.make(lambda _: config, reads_keys=True)

    # --- looking

    def ready(self) -> tuple[bool, str]:
        """Whether it does all of its work, and if not, why."""
        if not self._is_running:
            return False, self._why_not
        if any(task.done() for task in self._parts.vital):
            return False, "an error in this node, see its log; restart it"
        if self._committer.trouble:
            what = "" if self._member.has_begun else "it chooses once its start is stored: "
            return False, f"degraded: {what}{self._committer.trouble}"
        return True, ""

    def state(self) -> StateView:
        """What it knows of each arm, and what it counted since it started."""
        self._require_begun()
        return state_of(self._parts)

    def peers(self) -> list[PeerView]:
        """How each link is."""
        self._require_begun()
        return peers_of(self._parts)

    def carried(self) -> dict[str, tuple[int, int]]:
        """By linked neighbour: how many statistics were sent and heard on the present connection.

        With what the other end says of the same connection, this tells what is on its way.
        """
        self._require_begun()
        return carried_by(self._parts)

    def lives(self, name: str) -> list[str]:
        """The lives of a member that it knows, as 16 hexadecimal digits each."""
        check_name("a member's name", name)
        self._require_begun()
        return [epoch_text(epoch) for node, epoch in self._member.lives() if node == name]

    async def backup(self, path: str | PathLike[str]) -> None:
        """Copy its state into a file while it runs; what is restored from that begins a new life."""
        self._require_running("be copied")
        assert self._parts.store is not None
        await self._committer.save()
        await asyncio.get_running_loop().run_in_executor(None, self._parts.store.backup, path)


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
