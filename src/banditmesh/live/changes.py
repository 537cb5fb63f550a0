"""Changes of a running node's configuration.

They have their turns in the order in which they were asked for, between two transactions: no two of them mix, and the
last one stands. A turn waits for the event loop alone, which goes on while many rows of the table are gone through.
Changes of neighbours, and arms that a choice names first, need no turn; what waits for its own meanwhile takes them
over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from msgspec.structs import replace

from .. import checks
from ..errors import InputError, NodeError
from ..protocols import notation
from .certificates import ACCEPTED
from .config import NeighbourConfig, NodeConfig
from .names import DEFAULT
from .parts import NodeParts, credentials, read_keys
from .statistics import ArmSpec
from .transport import TlsTransport
from .transport.identity import Contexts

#: What makes another configuration of one.
Edit: TypeAlias = Callable[[NodeConfig], NodeConfig]
#: What a running node cannot change, and neither can its bandits.
FIXED: Final = (
    *("mesh", "node", "state", "listen", "plain"),
    *("caps", "max_ttl", "ticket_lifetime", "open_choices"),
    *("decisions", "decisions_bytes", "decisions_files", "max_clock_skew"),
)
FIXED_OF_BANDITS: Final = ("policy", "memory", "explore", "patience", "lapse_reward")


class ConfigChanges:
    """The changes of one node.

    Parameters
    ----------
    parts : NodeParts
        The node's parts, which a change is for.
    require_running : callable
        Called when a change has its turn; it raises an error if the node has ended.
    """

    def __init__(self, parts: NodeParts, require_running: Callable[[], None]) -> None:
        self._parts = parts
        self._require_running = require_running
        #: For each change that waits for its turn: the changes without one that were asked for after it.
        self._waiting: dict[Edit, list[Edit]] = {}

    async def make(self, edit: Edit, reads_keys: bool = False) -> None:
        """Change the configuration, as it is when the turn comes; with `reads_keys`, files of keys are read again."""
        later = self._waiting[edit] = list[Edit]()
        try:
            async with self._parts.committer.turn:
                # What came before is done first: nothing is waited for from here to where the new configuration stands.
                await self._parts.walked()
                self._require_running()
                config = edit(self._parts.config)
                for edit_later in later:
                    config = edit_later(config)
                steps = self._apply(config, reads_keys)
                try:
                    for _ in steps:
                        await self._parts.walked()
                except asyncio.CancelledError:
                    # The caller waits no longer; but what stands in the configuration must hold.
                    with suppress(NodeError):
                        deque(steps, maxlen=0)
                    raise
        finally:
            del self._waiting[edit]

    def change_neighbours(self, edit: Edit) -> None:
        """Change who the neighbours are; links follow by themselves."""
        self._parts.config = edit(self._parts.config)
        self._edit_later(edit)

    def change_arms_now(self, edit: Edit) -> None:
        """Change arms between two turns: a choice that names new ones does not wait."""
        config = edit(self._parts.config)
        self._parts.member.set_bandits(config.bandit_specs())
        self._parts.member.walks.finish()
        self._parts.config = config
        self._edit_later(edit)
        self._parts.something_changed()

    def _edit_later(self, edit: Edit) -> None:
        for later in self._waiting.values():
            later.append(edit)

    def _apply(self, config: NodeConfig, reads_keys: bool) -> Iterator[None]:
        """Let a configuration hold; between two steps the table is walked."""
        parts, old, member = self._parts, self._parts.config, self._parts.member
        _check_fixed(old, config)
        member.check_bandits(config.bandit_specs(), config.trust.trim)
        keys = read_keys(config) if reads_keys and isinstance(parts.transport, TlsTransport) else None
        member.set_ignore(config.ignore)
        # From here on it stands, whatever else is asked for while the table is walked.
        parts.config = config
        # Why neighbours are to offer everything once more.
        reasons = ["ignore is shorter"] if set(old.ignore) - set(config.ignore) else []
        if keys is not None:
            reasons += self._use_keys(keys)
        if reads_keys:
            reasons += self._trust(old, config)
        if config.protocol != old.protocol:
            # A neighbour is told of it in a hello. What was heard has the hops that the old protocol left it; on a new
            # link it is offered with all of them.
            member.set_protocol(config.protocol, config.max_ttl)
            parts.exchange.protocol = notation.write(config.protocol)
            reasons.append("another protocol")
        yield
        if config.trust.trim < old.trust.trim:
            member.set_trim(config.trust.trim)
        if config.bandit_specs() != old.bandit_specs():
            member.set_bandits(parts.config.bandit_specs())
            yield
        if config.trust.trim > old.trust.trim:
            # Not before all arms are those that can be tested.
            member.set_trim(config.trust.trim)
        # The node may have ended meanwhile, and nothing may begin after that.
        self._require_running()
        if member.take_other_range():
            reasons.append("another reward_range")
        parts.exchange.bandits = member.bandits()
        parts.use_certificate()
        self._link(old, reasons)
        parts.something_changed()

    def _use_keys(self, keys: Contexts) -> list[str]:
        parts = self._parts
        assert isinstance(parts.transport, TlsTransport)
        reasons = ["another authority"] if set(keys.signers) - set(parts.signers) else []
        parts.transport.contexts, parts.signers, parts.keys = keys, keys.signers, keys
        return reasons

    def _trust(self, old: NodeConfig, config: NodeConfig) -> list[str]:
        """Sign and check as the configuration and the keys of now say."""
        parts, reasons = self._parts, list[str]()
        if parts.signing is None or parts.keys is None:
            return reasons
        if parts.signing.use(credentials(parts.keys), parts.keys.authorities, config.signature_grace):
            reasons.append("certificates count that did not")
        if config.signatures != old.signatures:
            if config.signatures == ACCEPTED:
                reasons.append("signatures are not required any more")
            parts.member.set_signatures(config.signatures)
        parts.tasks.spawn(parts.trust_anew(), "looking at certificates again")
        return reasons

    def _link(self, old: NodeConfig, reasons: Sequence[str]) -> None:
        """Have the neighbours of now; for these reasons all links are made anew."""
        links, config = self._parts.links, self._parts.config
        links.accepts_members = config.accept == "members"
        links.part_from_unwelcome()
        if reasons:
            links.renew(", ".join(reasons))
        for name in {one.name for one in old.neighbours} - {one.name for one in config.neighbours}:
            if name in links.neighbours:
                links.remove(name, "not a neighbour any more")
        for neighbour in config.neighbours:
            links.add(neighbour.name, neighbour.address)


def _check_fixed(old: NodeConfig, new: NodeConfig) -> None:
    """Refuse another configuration where it differs in what cannot change."""
    bandits = {bandit.name: bandit for bandit in old.bandit_specs()}
    same: list[tuple[object, object, tuple[str, ...]]] = [(new, old, FIXED)]
    same += [(one, bandits[one.name], FIXED_OF_BANDITS) for one in new.bandit_specs() if one.name in bandits]
    for now, before, fields in same:
        for field in fields:
            if getattr(now, field) != getattr(before, field):
                raise InputError(f"{field} cannot change while a node runs: restart it, or put the old one back")


def with_neighbours(name: str, *new: NeighbourConfig) -> Edit:
    """What gives a configuration something new for the neighbour of a name."""

    def edited(config: NodeConfig) -> NodeConfig:
        others = [one for one in config.neighbours if one.name != name]
        return replace(config, neighbours=[*others, *new])

    return edited


def with_arms(bandit: str | None, edit: Callable[[Sequence[ArmSpec]], list[ArmSpec]]) -> Edit:
    """What gives a bandit other arms."""

    def edited(config: NodeConfig) -> NodeConfig:
        if bandit is None or bandit == DEFAULT:
            return replace(config, arms=edit(config.arms))
        if bandit not in [one.name for one in config.bandits]:
            raise InputError(f"bandit must be one of node {config.node!r}, got {checks.shown(bandit)}")
        bandits = [replace(one, arms=edit(one.arms)) if one.name == bandit else one for one in config.bandits]
        return replace(config, bandits=bandits)

    return edited


def with_others(arms: Sequence[ArmSpec], new: Sequence[ArmSpec]) -> list[ArmSpec]:
    """These arms, and of the new ones those of other names: a configuration that waits may have them already."""
    names = {arm.name for arm in arms}
    return [*arms, *(arm for arm in new if arm.name not in names)]


def without(arms: Sequence[ArmSpec], name: str) -> list[ArmSpec]:
    """All arms but the one of that name, which must be there."""
    left = [one for one in arms if one.name != name]
    if len(left) == len(arms):
        raise InputError(f"an arm that is removed must be there, got {checks.shown(name)}")
    return left
