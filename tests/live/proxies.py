"""A proxy between two nodes: the network of a test, which may be cut, slow, or partitioned at any moment."""

import asyncio
import random

from banditmesh.live.names import Address


class Proxy:
    """Forwards connections to a target.

    Parameters
    ----------
    target : str, optional
        Where connections go; may be set later, and changed.
    seed : int
        Of delays and cuts.
    delay : float
        Bytes are held back for up to so many seconds, each piece for another time, in their order.

    Attributes
    ----------
    is_open : bool
        Whether connections are forwarded; those that come meanwhile are dropped.
    said : list of bytearray
        For each connection, all that its dialler sent.
    n_cut : int
        How many connections were cut.
    """

    def __init__(self, target=None, *, seed=0, delay=0.0):
        self.target, self.delay = target, delay
        self.is_open = True
        self.said = []
        self.n_cut = 0
        self._rng = random.Random(seed)
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.address = str(Address.of(self._server.sockets[0].getsockname()))
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self.cut()

    async def cut(self, share=1.0):
        """End that share of all connections that there are, drawn at random."""
        tasks = [task for task in self._tasks if self._rng.random() < share]
        for task in tasks:
            task.cancel()
        self.n_cut += len(tasks)
        if tasks:
            await asyncio.wait(tasks)

    async def part(self):
        """Let nothing through until `heal` is called."""
        self.is_open = False
        await self.cut()

    def heal(self):
        """Let connections through again."""
        self.is_open = True

    async def _take(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        ends = [writer]
        try:
            if self.is_open and self.target is not None:
                there, back = await asyncio.open_connection(*Address.parse(self.target))
                ends.append(back)
                self.said.append(bytearray())
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._copy(reader, back, self.said[-1]))
                    both.create_task(self._copy(there, writer, bytearray()))
        except* (OSError, asyncio.CancelledError, EOFError):
            pass
        finally:
            self._tasks.discard(task)
            for end in ends:
                end.close()

    async def _copy(self, reader, writer, seen):
        while data := await reader.read(65536):
            if self.delay:
                await asyncio.sleep(self._rng.uniform(0, self.delay))
            seen += data
            writer.write(data)
            await writer.drain()
        raise EOFError  # a connection in one direction alone is none
