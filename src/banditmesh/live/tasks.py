"""Tasks that have an owner: none outlives it, and none fails unseen.

A task that fails is reported at once to the event loop's exception handler, which logs it unless the application asks
for more; the owner goes on. So one broken link costs that link alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """The tasks of one owner.

    Attributes
    ----------
    failures : list of BaseException
        The last few unexpected errors of tasks.

    Examples
    --------
    >>> import asyncio
    >>> async def main():
    ...     tasks = Tasks()
    ...     task = tasks.spawn(asyncio.sleep(1000), "sleeper")
    ...     await tasks.end()
    ...     return task.cancelled(), len(tasks)
    >>> asyncio.run(main())
    (True, 0)
    """

    _MAX_KEPT = 8

    def __init__(self) -> None:
        #: In the order in which they were started, so that they end in that order as well.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.failures: list[BaseException] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a task."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self.failures = [*self.failures[-self._MAX_KEPT + 1 :], error]
            task.get_loop().call_exception_handler(
                {"message": f"task {task.get_name()!r} failed", "exception": error, "task": task}
            )

    async def end(self) -> None:
        """Cancel all of them, but the one that calls, and wait until they have ended."""
        current = asyncio.current_task()
        while rest := [task for task in self._tasks if task is not current]:
            for task in rest:
                task.cancel()
            await asyncio.wait(rest)
            # What has ended is taken out by its callback, which runs in the next turn of the loop.
            await asyncio.sleep(0)
