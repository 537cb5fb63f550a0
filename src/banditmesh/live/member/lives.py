"""The lives of a node: how what was stored comes back, how a start begins, and how a new life does.

*A new life:* own statistics, as committed, move into the table under the old epoch, where the larger count wins; own
counts begin at zero, and tickets of the old life are refused. The number of choices of each arm goes on. A life that is
retired moves nothing.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ...errors import InputError
from ..certificates import UNSIGNED
from ..disk import BanditMemory, Changes, Life, OwnArm, Start, Stored
from ..forgetting import ChoiceClock
from ..names import agent_name
from ..statistics import Entry, Known, Values
from .clock import Clock
from .parts import Commit, MemberParts
from .tickets import KEY_BYTES
from .walks import BIT


class Lives:
    """The lives of one node.

    Parameters
    ----------
    parts : MemberParts
    clock : Clock
    rng : random.Random
        What keys of tickets are drawn from.
    """

    def __init__(self, parts: MemberParts, clock: Clock, rng: random.Random) -> None:
        self._parts, self._clock, self._rng = parts, clock, rng
        self._restored: Life | None = None

    def restore(self, stored: Stored) -> Iterator[int]:
        """Put back all that was stored, before anything else is called; `begin` comes next. A walk."""
        parts = self._parts
        if parts.life or self._restored:
            raise InputError(f"node {parts.node!r} must be restored once, before it begins")
        self._restored = stored.life
        parts.is_backup = stored.is_backup
        parts.n_choices = stored.life.n_choices
        parts.ledger.restore(stored)
        for arm in parts.ledger.own:
            parts.table.roster.hold_arm(arm)
        parts.table.roster.retire(stored.retired)
        parts.table.use_life(stored.life.epoch)
        for own in stored.own:
            if own.told_count:
                parts.table.tell(own.arm, own.told)
        for start in range(0, len(stored.entries), BIT):
            for entry in stored.entries[start : start + BIT]:
                parts.table.place(entry)
            yield 2 * BIT
        yield from parts.table.decide_anew()
        parts.bandits.restore()
        for clock in stored.clocks:
            agent = parts.bandits.agents.get(agent_name(clock.bandit, clock.segment))
            if agent is not None:
                agent.clock = ChoiceClock(clock.weight, clock.stamp)

    def begin(self, epoch: int, now: float) -> Commit:
        """Begin the next start of the life that was restored, or the first one, of this epoch, if nothing was."""
        parts = self._parts
        if parts.life is not None:
            raise InputError(f"node {parts.node!r} has begun already")
        old = self._restored
        life = Life(epoch, 1, 0) if old is None else Life(old.epoch, old.start + 1, old.n_choices, old.uptime)
        tickets = parts.ledger.tickets
        forgotten = tickets.lapsed_starts(now)
        new_key = b"" if tickets.book else self._rng.randbytes(KEY_BYTES)
        book = tickets.next_book(new_key, life.start, life.n_choices)
        parts.planned = life
        self._clock.was_set(now)
        memories = parts.ledger.use_new_memories(parts.bandits.memories)

        def apply() -> None:
            parts.life = life
            parts.uptime = life.uptime
            parts.ledger.stored_memories = memories
            tickets.begin(life.start, now, life.n_choices, forgotten, book)
            parts.bandits.begin()
            if old is None:
                parts.table.use_life(epoch)

        starts = [Start(life.start, now)]
        return Commit(
            Changes(
                life=life, ticket_book=book, forgotten_starts=forgotten, starts=starts, memories=memory_rows(memories)
            ),
            apply,
        )

    def new(self, old: Life, epoch: int, now: float) -> Commit:
        """Begin a new life of this epoch after `old`. What that observed moves into the table, unless it is retired."""
        parts = self._parts
        table, ledger = parts.table, parts.ledger
        life = Life(epoch, 1, parts.n_choices, old.uptime)
        entries = list(self._what_moves(old.epoch).values())
        observed = {
            entry.arm: Known.of_own(parts.node, old.epoch, entry.arm, entry.values)
            for entry in entries
            if entry.is_observed
        }
        own = [OwnArm(arm, 0, 0.0, n_chosen=own.n_chosen) for arm, own in ledger.own.items() if own.n_chosen]
        book = ledger.tickets.next_book(b"", 1, parts.n_choices)
        memories = {**ledger.memories, **parts.bandits.memories}
        changes = Changes(
            life=life,
            ticket_book=book,
            clear_own=True,
            own=own,
            starts=[Start(1, now)],
            entries=entries,
            memories=memory_rows(memories),
        )

        def apply() -> None:
            later = dict(table.proofs)
            for arm in ledger.own:
                table.roster.release_arm(arm)
            ledger.new_life()
            for arm in ledger.own:
                table.roster.hold_arm(arm)
            parts.life = life
            parts.is_backup = False
            ledger.memories, ledger.stored_memories = memories, dict(memories)
            self._clock.begin_life()
            # Choices may have been made since it was planned, by tickets of the old life.
            ledger.tickets.begin(1, now, parts.n_choices, book=book)
            parts.bandits.begin()
            table.use_life(epoch)
            for entry in entries:
                row = observed.get(entry.arm)
                if row is not None:
                    entry = replace(entry, certificate=row.certificate, signature=row.signature)
                table.adopt(entry)
            for arm, proof in later.items():
                table.adopt(self._moved(old.epoch, arm, proof.values, proof.certificate, proof.signature))
            # The old life may have been retired in the meantime.
            deque(table.purge(lambda arm: None), maxlen=0)
            table.heard.clear()
            parts.bandits.renew_all()

        return Commit(changes, apply, [] if table.signatures == UNSIGNED else list(observed.values()))

    def _what_moves(self, epoch: int) -> dict[str, Entry]:
        """What moves into the table when this life ends, by arm."""
        table = self._parts.table
        if table.roster.is_unwanted(self._parts.node, epoch):
            return {}
        moved = {
            arm: self._moved(epoch, arm, own.values, is_observed=True)
            for arm, own in self._parts.ledger.own.items()
            if own.count
        }
        room = table.roster.room_for_own() - len(moved)
        for arm, proof in table.proofs.items():
            # What it did not observe on this disk may be invented: it gets no more than the room there is.
            if arm not in moved:
                room -= 1
            if arm not in moved and room < 0:
                continue
            if arm not in moved or proof.values.order > moved[arm].values.order:
                moved[arm] = self._moved(epoch, arm, proof.values, proof.certificate, proof.signature)
        return moved

    def _moved(
        self,
        epoch: int,
        arm: str,
        values: Values,
        certificate: bytes = b"",
        signature: bytes = b"",
        is_observed: bool = False,
    ) -> Entry:
        """What an ended life told of an arm, as an entry of the table."""
        return Entry(
            *(self._parts.node, epoch, arm, values.count, values.total, self._parts.table.full_ttl),
            *values.forgetting,
            certificate,
            signature,
            passes=True,
            is_observed=is_observed,
        )


def memory_rows(memories: Mapping[str, str]) -> list[BanditMemory]:
    """Memories of bandits as they are stored."""
    return [BanditMemory(bandit, memory) for bandit, memory in memories.items()]
