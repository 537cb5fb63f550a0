"""Writing down what a node must not forget: one transaction at a time, and each takes all that waits.

Nothing is acknowledged or told before its transaction is durable. If one fails, its observations fail with the reason,
nothing has happened, and the node is *degraded*: it goes on hearing, relaying and choosing, and tries again, with the
next observation or by itself after a while. The table is written once a second at most; it may lag, since neighbours
offer it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from ..errors import StoreError
from .logs import note
from .member import Answer, Member, Observation
from .records import Changes, Entry, Key
from .state import Store

LOG = logging.getLogger("banditmesh.live.node")

#: A transaction takes all calls that wait, but no further one once it has so many observations: planning them is work
#: that nothing else can run beside.
MOST_OBSERVATIONS: Final = 2_000
#: How long the table may lag behind, in seconds.
LAG: Final = 1.0
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0


class Committer:
    """The one who writes.

    Parameters
    ----------
    member : Member
        Whose changes these are.
    store : Store
        Where they go.
    clock : callable
        The time of day, in seconds.
    new_epoch : callable
        Gives the epoch of a new life.
    changed : callable
        Called after a transaction: something may have to be sent.

    Attributes
    ----------
    trouble : str
        Why the last transaction failed; empty if it did not.
    turn : asyncio.Lock
        Held during a transaction; whoever changes arms or protocol holds it meanwhile.
    """

    def __init__(
        self,
        member: Member,
        store: Store,
        *,
        clock: Callable[[], float],
        new_epoch: Callable[[], int],
        changed: Callable[[], None],
    ) -> None:
        self.trouble = ""
        self.turn = asyncio.Lock()
        self.n_commits = 0
        self.n_failures = 0
        self._member = member
        self._store = store
        self._clock = clock
        self._new_epoch = new_epoch
        self._changed = changed
        self._work = asyncio.Event()
        self._calls: list[tuple[Sequence[Observation], asyncio.Future[list[Answer]]]] = []
        self._notices: list[Changes] = []
        self._unsaved: dict[Key, Entry | None] = {}
        self._retry = FIRST_RETRY

    async def observe(self, observations: Sequence[Observation]) -> list[Answer]:
        """Count rewards; returns when they are durable.

        Raises
        ------
        StoreError
            They could not be written; nothing has happened.
        """
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._calls.append((observations, future))
        self._work.set()
        return await future

    def write(self, changes: Changes) -> None:
        """Have something written that is in effect already."""
        self._notices.append(changes)
        self._work.set()

    def look(self) -> None:
        """Begin a new life, if the member needs one."""
        if self._member.needs_new_life() is not None:
            self._work.set()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for a transaction."""
        return not self._calls and not self.turn.locked()

    async def run(self) -> None:
        """Write whenever something waits."""
        while True:
            try:
                async with asyncio.timeout(self._retry if self.trouble else None):
                    await self._work.wait()
            except TimeoutError:
                pass  # time to try again
            self._work.clear()
            async with self.turn:
                try:
                    await self._write_all()
                except StoreError as error:
                    self._failed(error)
                else:
                    self._succeeded()
            self._changed()

    async def _write_all(self) -> None:
        # What waits is looked at anew after each transaction: more may have come.
        if self.trouble:
            await self._commit(Changes(life=self._member.life))
        while True:
            if (reason := self._member.needs_new_life()) is not None:
                await self._begin_life(reason)
            elif self._notices:
                await self._commit(self._notices[0])
                del self._notices[0]
            elif self._calls:
                await self._observe()
            else:
                return

    async def _observe(self) -> None:
        calls, observations = [], []
        while self._calls and len(observations) < MOST_OBSERVATIONS:
            calls.append(self._calls.pop(0))
            observations += calls[-1][0]
        commit, answers = self._member.plan(observations, self._clock())
        try:
            await self._commit(commit.changes)
        except BaseException as error:
            self._member.failed(commit)
            self._refuse(calls, error)
            raise
        self._member.committed(commit)
        start = 0
        for part, future in calls:
            if not future.done():
                future.set_result(answers[start : start + len(part)])
            start += len(part)
        self._changed()

    async def _begin_life(self, reason: str) -> None:
        epoch = self._new_epoch()
        commit = self._member.new_life(epoch)
        try:
            await self._commit(commit.changes)
        except BaseException:
            self._member.failed(commit)
            raise
        self._member.committed(commit)
        note(LOG, logging.ERROR, "new life", epoch=f"{epoch:016x}", reason=reason)
        self._changed()

    async def _commit(self, changes: Changes) -> None:
        await self._store.commit(changes)
        self.n_commits += 1
        for entry in changes.entries:
            self._unsaved.pop(entry.key, None)
        self._succeeded()

    def _succeeded(self) -> None:
        if self.trouble:
            note(LOG, logging.WARNING, "writing again")
        self.trouble, self._retry = "", FIRST_RETRY

    def _failed(self, error: StoreError) -> None:
        self.n_failures += 1
        if not self.trouble:
            note(LOG, logging.ERROR, "degraded: cannot write", reason=error)
        self.trouble, self._retry = str(error), min(2 * self._retry, LAST_RETRY)
        calls, self._calls = self._calls, []
        self._refuse(calls, error)

    @staticmethod
    def _refuse(calls: Sequence[tuple[Sequence[Observation], asyncio.Future[list[Answer]]]], error: BaseException) -> None:
        for _, future in calls:
            if not future.done():
                future.set_exception(StoreError(str(error)))

    # --- the table

    async def keep_saving(self) -> None:
        """Write the table, once in a while."""
        while True:
            await asyncio.sleep(LAG)
            await self.save()

    async def save(self) -> None:
        """Write what is new in the table."""
        async with self.turn:
            entries, removed = self._member.dirty_entries()
            self._unsaved.update((entry.key, entry) for entry in entries)
            self._unsaved.update((key, None) for key in removed)
            if not self._unsaved:
                return
            unsaved, self._unsaved = self._unsaved, {}
            try:
                await self._store.save_entries(
                    [entry for entry in unsaved.values() if entry is not None],
                    [key for key, entry in unsaved.items() if entry is None],
                )
            except StoreError as error:
                self._unsaved = unsaved
                self._failed(error)
                self._work.set()
