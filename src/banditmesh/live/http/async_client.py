"""A client of a node's sidecar for asynchronous programs: the calls of `Client`, to be awaited.

Each call runs `Client` on one of a few threads of its own, so that both behave alike, also when the sidecar is slow or
starting again; the event loop never waits. A call whose task is cancelled may still reach the node. That is harmless: a
reward counts once, and a choice that is never used falls out with its ticket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from ... import checks
from .client import Chosen, Client

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncClient:
    """A client of one node's sidecar whose calls are awaited.

    Parameters
    ----------
    url, token
        As of `Client`.
    connections : int
        How many calls run at the same time; more of them wait.
    options
        Further arguments of `Client`.

    Examples
    --------
    ::

        async with AsyncClient("http://127.0.0.1:7780") as node:
            arm, ticket = await node.choose()
            await node.observe(ticket, reward=await pull(arm))

    >>> AsyncClient("ftp://somewhere")
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: url must be http://HOST:PORT or the path of a Unix socket, got 'ftp://somewhere'
    """

    def __init__(self, url: str, token: str | None = None, *, connections: int = 16, **options: Any) -> None:
        checks.integer("connections", connections, at_least=1)
        self._client = Client(url, token, **options)
        self._threads = ThreadPoolExecutor(connections, "banditmesh-client")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for calls that are under way, and close the connections that are kept."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._client.close()

    async def choose(
        self, among: Sequence[str] | None = None, *, bandit: str | None = None, segment: str | None = None
    ) -> Chosen:
        """An arm to pull, and its ticket; see `Client.choose`."""
        return await self._call(self._client.choose, among, bandit=bandit, segment=segment)

    async def observe(
        self,
        ticket: Chosen | str | None,
        reward: float,
        *,
        arm: str | None = None,
        key: str | None = None,
        bandit: str | None = None,
        segment: str | None = None,
    ) -> str:
        """Report a reward; see `Client.observe`."""
        return await self._call(self._client.observe, ticket, reward, arm=arm, key=key, bandit=bandit, segment=segment)

    async def observe_many(
        self, observations: Iterable[tuple[Chosen | str, float] | Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Report many rewards at once; see `Client.observe_many`."""
        return await self._call(self._client.observe_many, observations)

    async def step(
        self,
        ticket: Chosen | str | None = None,
        reward: float | None = None,
        among: Sequence[str] | None = None,
        *,
        bandit: str | None = None,
        segment: str | None = None,
    ) -> Chosen:
        """Report the last reward and choose again; see `Client.step`."""
        return await self._call(self._client.step, ticket, reward, among, bandit=bandit, segment=segment)

    async def withdraw(self, ticket: Chosen | str) -> str:
        """Close a ticket, counting nothing; see `Client.withdraw`."""
        return await self._call(self._client.withdraw, ticket)

    async def state(self) -> dict[str, Any]:
        """What the node knows of each arm, and what it counted."""
        return await self._call(self._client.state)

    async def peers(self) -> list[dict[str, Any]]:
        """How each link is."""
        return await self._call(self._client.peers)

    async def lives(self, node: str) -> list[str]:
        """Which lives the node knows of a member."""
        return await self._call(self._client.lives, node)

    async def ready(self) -> str | None:
        """None if the node is ready, else why it is not."""
        return await self._call(self._client.ready)

    async def metrics(self) -> str:
        """What Prometheus would read."""
        return await self._call(self._client.metrics)

    async def set_arms(self, arms: Iterable[str | Mapping[str, Any]], bandit: str | None = None) -> None:
        """Give a bandit another arm set; see `Client.set_arms`."""
        await self._call(self._client.set_arms, arms, bandit)

    async def add_arm(self, arm: str | Mapping[str, Any], bandit: str | None = None) -> None:
        """Give a bandit one more arm; see `Client.add_arm`."""
        await self._call(self._client.add_arm, arm, bandit)

    async def remove_arm(self, name: str, bandit: str | None = None) -> None:
        """Have a bandit choose an arm no more; see `Client.remove_arm`."""
        await self._call(self._client.remove_arm, name, bandit)

    async def add_peer(self, name: str, address: str | None = None) -> None:
        """Link the node with a neighbour."""
        await self._call(self._client.add_peer, name, address)

    async def remove_peer(self, name: str) -> None:
        """End the link with a neighbour."""
        await self._call(self._client.remove_peer, name)

    async def notice(self, data: bytes) -> None:
        """Hand over a notice that the authority signed."""
        await self._call(self._client.notice, data)

    async def backup(self) -> bytes:
        """A copy of the node's state."""
        return await self._call(self._client.backup)

    async def _call(self, method: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(method, *given, **named))
