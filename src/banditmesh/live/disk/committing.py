"""Writing down what a node must not forget: one transaction at a time, and each takes all that waits.

Nothing is acknowledged or told before its transaction is durable. If one fails, its observations fail with the reason,
nothing has happened, and the node is *degraded*: it goes on hearing, relaying and choosing, and tries again, with the
next observation or by itself after a while. The table is written once a second at most; it may lag, since neighbours
offer it again. A start that cannot be written leaves the node degraded, too: it hears and relays, and chooses once its
start is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from ...errors import StoreError
from ..logs import note
from ..member import Answer, Commit, Member, Observation
from ..names import epoch_text
from ..statistics import Known
from . import Changes
from .state import Store

LOG = logging.getLogger("banditmesh.live.node")

#: A transaction takes all calls that wait, but no further one once it has this many observations: planning them is work
#: that nothing else can run beside.
MAX_OBSERVATIONS: Final = 2_000
#: How long the table may lag behind, in seconds.
LAG: Final = 1.0
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0

#: Observations that were reported together, and what their caller waits for.
_Call = tuple[Sequence[Observation], asyncio.Future[list[Answer]]]


class Committer:
    """Writes what a node must not forget.

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

    Attributes
    ----------
    wake : callable
        Called after a transaction: something may have to be sent.
    observed : callable
        Called with observations and the answers to them once they are durable.
    up_before : float
        The uptime that was stored, less the event loop's time then.
    trouble : str
        Why the last transaction failed; empty if it did not.
    n_failures : int
        How many transactions have failed.
    turn : asyncio.Lock
        Held during a transaction; changes of arms or protocol hold it, too.
    sign : callable
        Signs rows that a transaction lets leave the node; None if that is done, else it is awaited.
    """

    def __init__(
        self,
        member: Member,
        store: Store,
        *,
        clock: Callable[[], float],
        new_epoch: Callable[[], int],
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.observed: Callable[[Sequence[Observation], Sequence[Answer]], None] = lambda observations, answers: None
        self.up_before = 0.0
        self.trouble = ""
        self.turn = asyncio.Lock()
        self.n_failures = 0
        self.sign: Callable[[Sequence[Known]], asyncio.Future[None] | None] = _sign_nothing
        self._member = member
        self._store = store
        self._clock = clock
        self._new_epoch = new_epoch
        self._work = asyncio.Event()
        self._calls: deque[_Call] = deque()
        self._changes: list[tuple[Changes, asyncio.Future[None]]] = []
        self._retry = FIRST_RETRY
        #: Whether open tickets, or lapses, are to be written.
        self._is_due = False
        #: The epoch of a first life, as long as this start has not been written.
        self._first_epoch: int | None = None

    async def begin(self) -> None:
        """Write that the node starts, and begin a new life if it needs one; if that fails, it is tried again."""
        self._first_epoch = self._new_epoch()
        async with self.turn:
            try:
                await self._write_all()
            except StoreError as error:
                self._failed(error)

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

    def write(self, changes: Changes) -> asyncio.Future[None]:
        """Have something written that is in effect already; it is tried again until it is durable.

        Returns
        -------
        asyncio.Future
            Done after the first attempt; a `StoreError` if that one failed.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # the caller may not be waiting
        self._changes.append((changes, future))
        self._work.set()
        return future

    def look(self) -> None:
        """Begin a new life, if the member needs one."""
        if self._member.needs_new_life() is not None:
            self._work.set()

    def uptime(self) -> float:
        """How long processes have run on this state, in seconds, as far as that was stored."""
        return self.up_before + asyncio.get_running_loop().time()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for a transaction."""
        return not self._calls and not self._changes and not self.turn.locked()

    async def run(self) -> None:
        """Write whenever something waits, until it is cancelled; then everything that waits fails."""
        try:
            await self._run()
        except BaseException as error:
            self.trouble = f"nothing is written any more: {error!r}"
            _refuse([*self._calls, *self._changes], error)
            raise

    async def _run(self) -> None:
        while True:
            if self.trouble:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._retry):
                        await self._work.wait()
            else:
                await self._work.wait()
            self._work.clear()
            async with self.turn:
                try:
                    await self._write_all()
                except StoreError as error:
                    self._failed(error)

    async def _write_all(self) -> None:
        # What waits is looked at anew after each transaction: more may have come.
        while True:
            if self._first_epoch is not None:
                await self.commit(self._member.begin(self._first_epoch, self._clock()))
                self._first_epoch = None
            elif self._changes:
                changes, future = self._changes[0]
                await self._store.commit(changes)
                self._changes.pop(0)
                if not future.done():
                    future.set_result(None)
            elif (reason := self._member.needs_new_life()) is not None:
                await self._begin_life(reason)
            elif self._calls or self.trouble or self._is_due:
                await self._observe()
            else:
                return
            self._succeeded()
            self.wake()

    async def _observe(self) -> None:
        """Count all that waits; with nothing it only tries whether writing works."""
        calls: list[_Call] = []
        observations: list[Observation] = []
        while self._calls and len(observations) < MAX_OBSERVATIONS:
            calls.append(self._calls.popleft())
            observations += calls[-1][0]
        try:
            uptime = self.uptime()
            if not self.trouble and self._is_due:
                # While the disk fails, lapses wait.
                observations += self._member.lapsing(uptime, MAX_OBSERVATIONS)
            self._is_due = False
            commit, answers = self._member.plan(observations, self._clock(), uptime=uptime)
            await self.commit(commit)
        except BaseException as error:
            _refuse(calls, error)
            raise
        self.observed(observations, answers)
        start = 0
        for part, future in calls:
            if not future.done():
                future.set_result(answers[start : start + len(part)])
            start += len(part)

    async def _begin_life(self, reason: str) -> None:
        """Begin a new life, because of that."""
        epoch = self._new_epoch()
        await self.commit(self._member.new_life(epoch, self._clock()))
        note(LOG, logging.ERROR, "new life", epoch=epoch_text(epoch), reason=reason)

    async def commit(self, commit: Commit) -> None:
        """Let something happen as soon as it is durable, and signed."""
        signing = None
        try:
            signing = self.sign(commit.to_sign)
            await self._store.commit(commit.changes)
            if signing is not None:
                await signing
        except BaseException:
            if signing is not None:
                signing.cancel()
            self._member.failed(commit)
            raise
        self._member.committed(commit)

    def _succeeded(self) -> None:
        if self.trouble:
            note(LOG, logging.WARNING, "writing works again")
        self.trouble, self._retry = "", FIRST_RETRY

    def _failed(self, error: StoreError) -> None:
        self.n_failures += 1
        if not self.trouble:
            note(LOG, logging.ERROR, "degraded: writing failed", reason=error)
        self.trouble, self._retry = str(error), min(2 * self._retry, LAST_RETRY)
        _refuse([*self._calls, *self._changes], error)
        self._calls.clear()

    # --- the table

    async def keep_saving(self) -> None:
        """Write the table once in a while, as long as writing works."""
        while True:
            await asyncio.sleep(LAG)
            if not self.trouble and self._member.must_write(self.uptime()):
                self._is_due = True
                self._work.set()
            if not self.trouble:
                await self.save()

    async def save(self) -> None:
        """Write what is new in the table; if that fails, it is tried again the next time."""
        while await self._save_some():
            pass  # observations that have come meanwhile have their turn in between

    async def _save_some(self) -> bool:
        """Write a part of what is new in the table; whether there may be more."""
        async with self.turn:
            if self._first_epoch is not None:
                return False  # without a life there is nothing to write it to
            entries, removed = self._member.dirty_entries()
            has_keys = self.sign is not _sign_nothing
            new, gone = self._member.certificates.take_unstored() if has_keys else ([], [])
            if not entries and not removed and not new and not gone:
                return False
            try:
                await self._store.save_entries(entries, removed, new, gone)
            except BaseException as error:
                self._member.not_stored(entries, removed)
                if has_keys:
                    self._member.certificates.give_back(new, gone)
                if not isinstance(error, StoreError):
                    raise
                self._failed(error)
                self._work.set()  # from now on it is tried again
                return False
            return True


def _sign_nothing(rows: Sequence[Known]) -> None:
    """What a node without keys signs."""


def _refuse(calls: Iterable[tuple[Any, asyncio.Future[Any]]], error: BaseException) -> None:
    """Tell all waiting callers why it failed."""
    for _, future in calls:
        if not future.done():
            future.set_exception(
                error if isinstance(error, StoreError) else StoreError(f"the node has ended: {error!r}")
            )
