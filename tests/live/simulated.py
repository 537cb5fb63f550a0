"""Time, links and disks that nodes cannot tell from real ones, and that a seed decides.

- `SimulatedLoop`: an event loop whose time passes only when nothing else can happen.
- `Network`: streams of bytes that are late, cut in the middle of a frame, held up, or refused.
- `Disk`: a real store on SQLite that can be full, slow, abandoned, lost, copied and put back.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections import deque
from pathlib import Path
from unittest.mock import patch

from cryptography.hazmat.primitives.serialization import Encoding

from banditmesh.errors import StoreError
from banditmesh.live.disk.state import Store
from banditmesh.live.transport.identity import Contexts, Identity, certify_authority, certify_node

#: How many bytes may be on their way before a writer waits.
BUFFER = 64 * 1024
#: How many frames are recorded for replays, of all but this name.
MAX_RECORDED = 200
HOSTILE = "mallory"


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop on simulated time: where another one would sleep, this one moves its clock."""

    def __init__(self):
        super().__init__()
        self._now = 0.0
        self._selector = self
        self._clock_resolution = 1e-9
        self.failures = []
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    def time(self):
        return self._now

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError("nothing will ever happen again: a deadlock")
        self._now += timeout
        return []

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


def run(coroutine):
    """Run on simulated time until done; no task may be left, and none may have failed unseen."""
    loop = SimulatedLoop()
    try:
        result = loop.run_until_complete(coroutine)
        left = asyncio.all_tasks(loop)
        assert not left, f"tasks are left behind: {left}"
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    for context in loop.failures:
        raise AssertionError(context["message"]) from context.get("exception")
    return result


class Pipe:
    """One direction of a connection."""

    def __init__(self, network, source, target):
        self.network = network
        self.ends = source, target
        self.flight = deque()
        self.n_flying = 0
        self.arrived = bytearray()
        self.last = 0.0
        self.timer = None
        self.is_ended = False
        self.error = None
        self.reader = self.writer = None

    def send(self, data):
        """Let bytes travel, in up to three pieces."""
        rng, loop = self.network.rng, asyncio.get_running_loop()
        cuts = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 2))))})
        for start, end in itertools.pairwise(cuts):
            self.last = max(self.last, loop.time() + self.network.delay())
            self.flight.append((self.last, bytes(data[start:end])))
        self.n_flying += len(data)
        self.plan()

    def plan(self):
        if self.timer is None and self.flight and not self.is_ended:
            self.timer = asyncio.get_running_loop().call_at(self.flight[0][0], self.arrive)

    def arrive(self):
        self.timer = None
        if self.network.is_blocked(*self.ends):
            self.network.held[self] = None
            return
        now = asyncio.get_running_loop().time() + 1e-6
        while self.flight and self.flight[0][0] <= now:
            _, piece = self.flight.popleft()
            self.n_flying -= len(piece)
            self.arrived += piece
        self.plan()
        self.wake()

    def end(self, error=None):
        """Nothing arrives any more, but what has arrived can be read."""
        self.is_ended, self.error = True, error
        if self.timer is not None:
            self.timer.cancel()
        self.flight.clear()
        self.wake()

    def wake(self):
        for future in (self.reader, self.writer):
            if future is not None and not future.done():
                future.set_result(None)
        self.reader = self.writer = None


class SimulatedConnection:
    """One end of a connection; `peer` is who the other end is."""

    def __init__(self, network, peer, incoming, outgoing):
        self.network = network
        self.peer = peer
        self.incoming, self.outgoing = incoming, outgoing
        self.is_closed = False
        self.is_recorded = outgoing.ends[0] != HOSTILE

    async def read(self):
        pipe = self.incoming
        while not pipe.arrived:
            if self.is_closed or pipe.is_ended:
                if pipe.error is not None and not self.is_closed:
                    raise pipe.error
                return b""
            pipe.reader = asyncio.get_running_loop().create_future()
            await pipe.reader
        data = bytes(pipe.arrived[:BUFFER])
        del pipe.arrived[:BUFFER]
        return data

    async def write(self, data):
        pipe = self.outgoing
        if self.is_closed or pipe.is_ended:
            raise ConnectionResetError("the connection is closed")
        if self.is_recorded:
            self.network.record(data)
        pipe.send(data)
        while pipe.n_flying >= BUFFER:
            pipe.writer = asyncio.get_running_loop().create_future()
            await pipe.writer
            if pipe.is_ended:
                raise ConnectionResetError("the connection is closed")

    def close(self):
        """Close this end; the other one sees it after what is on its way."""
        if not self.is_closed:
            self.is_closed = True
            self.network.connections.pop(self, None)
            self.incoming.end()
            pipe = self.outgoing
            if pipe.flight:
                asyncio.get_running_loop().call_at(pipe.last + 1e-5, pipe.end)
            else:
                pipe.end()

    def cut(self):
        """Lose the connection and what is on its way."""
        for pipe in (self.incoming, self.outgoing):
            pipe.end(ConnectionResetError("connection reset by peer"))
        self.network.connections.pop(self, None)


class Network:
    """All links there can be.

    Attributes
    ----------
    sides : dict
        While it is partitioned: which side each name is on.
    stalled : set
        Names that nothing reaches and from which nothing comes.
    """

    def __init__(self, rng, slowest=0.2):
        self.rng = rng
        self.slowest = slowest
        self.listeners = {}
        #: These are dictionaries for their order, which must depend on nothing but the seed.
        self.connections = {}
        self.held = {}
        self.sides = {}
        self.stalled = set()
        self.recorded = []

    def delay(self):
        return self.rng.uniform(0.0005, self.slowest)

    def is_blocked(self, one, other):
        sides = self.sides
        return one in self.stalled or other in self.stalled or sides.get(one, 0) != sides.get(other, 0)

    def release(self):
        """Let what was held travel on, after links were unblocked."""
        held, self.held = self.held, {}
        for pipe in held:
            pipe.plan()

    def record(self, data):
        if len(self.recorded) < MAX_RECORDED:
            self.recorded.append(data)
        elif self.rng.random() < 0.1:
            self.recorded[self.rng.randrange(MAX_RECORDED)] = data


class SimulatedTransport:
    """What one process sees of the network."""

    def __init__(self, network, identity):
        self.network = network
        self.identity = identity
        self.is_dead = False
        self._own = {}
        self._addresses = []

    async def listen(self, address, accept):
        assert address not in self.network.listeners, f"{address} is taken"
        self.network.listeners[address] = self, accept
        self._addresses.append(address)
        return SimulatedListener(self, address)

    async def dial(self, address, name):
        network = self.network
        await asyncio.sleep(network.delay())
        while network.is_blocked(self.identity.node, name):
            if network.rng.random() < 0.3:
                raise ConnectionRefusedError("connection refused")
            await asyncio.sleep(3.0)
        if address not in network.listeners:
            raise ConnectionRefusedError("connection refused")
        other, accept = network.listeners[address]
        if other.identity.node != name:
            raise ConnectionRefusedError("another name than meant")
        there, here = Pipe(network, self.identity.node, name), Pipe(network, name, self.identity.node)
        mine = SimulatedConnection(network, other.identity, here, there)
        theirs = SimulatedConnection(network, self.identity, there, here)
        for transport, connection in ((self, mine), (other, theirs)):
            transport._own[connection] = None
            network.connections[connection] = None
        await accept(theirs)
        return mine

    async def close(self):
        for connection in list(self._own):
            connection.close()

    def close_listener(self, address):
        if self.network.listeners.get(address, (None,))[0] is self:
            del self.network.listeners[address]

    def die(self):
        """What happens to connections when their process is killed."""
        self.is_dead = True
        for address in self._addresses:
            self.close_listener(address)
        for connection in self._own:
            connection.cut()
            connection.is_closed = True
        self._own.clear()


class SimulatedListener:
    def __init__(self, transport, address):
        self.transport = transport
        self.address = address

    def close(self):
        self.transport.close_listener(self.address)


class Disk:
    """The disk of one machine: a folder with a store in it."""

    def __init__(self, folder: Path, mesh: str, node: str, rng: random.Random):
        self.folder = folder
        self.mesh, self.node = mesh, node
        self.rng = rng
        self.is_full = False
        self.slowest = 0.05

    def open(self, committed=None):
        """Open the store in it; `committed` is called with changes at the moment when they are durable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return DiskStore(self, Store.open(self.folder, self.mesh, self.node), committed)

    def lose(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def copy_to(self, folder):
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(self.folder, folder)

    def restore_from(self, folder):
        self.lose()
        shutil.copytree(folder, self.folder)


class DiskStore:
    """A store that takes its time, and fails when its disk is full; a dead one never answers."""

    def __init__(self, disk, store, committed):
        self.disk = disk
        self.store = store
        self.committed = committed or (lambda changes: None)
        self.is_dead = False

    async def loaded(self):
        return self.store.load()

    async def commit(self, changes):
        await self._slowly(self.store.write, changes)

    async def save_entries(self, *what):
        await self._slowly(self.store.write_entries, *what)

    async def _slowly(self, write, *what):
        disk = self.disk
        await asyncio.sleep(disk.rng.uniform(0, disk.slowest))
        await self._answer_if_alive()
        if disk.is_full:
            raise StoreError("no space left on the simulated disk")
        write(*what)
        if write == self.store.write:
            self.committed(*what)  # in the same instant: a kill comes before both or after both
        await asyncio.sleep(disk.rng.uniform(0, disk.slowest))
        await self._answer_if_alive()

    async def _answer_if_alive(self):
        if self.is_dead:
            await asyncio.get_running_loop().create_future()

    def close(self):
        if not self.is_dead:
            self.store.close()

    def abandon(self):
        """End as a killed process does: the file is left as it is, and the lock goes."""
        self.store.close()


def identity(mesh, node, not_before=0, not_after=2**40, certificate=b""):
    return Identity(mesh, node, not_before, not_after, certificate)


class SimulatedWorkers:
    """Threads that are none: work takes a while, in which other things happen."""

    def __init__(self, rng, slowest=0.02):
        self.rng = rng
        self.slowest = slowest

    async def run(self, function, *arguments):
        await asyncio.sleep(self.rng.uniform(0.0, self.slowest))
        return function(*arguments)

    def close(self):
        pass


#: Certificates made in simulated worlds hold until then, in seconds since 1970.
ENDS = 2**32


def authority(key, mesh):
    """The certificate of an authority, always the same."""
    with patch("cryptography.x509.random_serial_number", lambda: 2**150 + 1):
        return certify_authority(key, mesh, 0, ENDS)


def contexts_of(mesh, node, key, signer, signed_by, not_before=0, not_after=ENDS, serial=1):
    """The keys of a node whose certificate an authority (key and certificate) issues; a function of its arguments."""
    with patch("cryptography.x509.random_serial_number", lambda: 2**150 + serial):
        made = certify_node(key.public_key(), mesh, node, *signed_by, not_before, not_after)
    der = made.public_bytes(Encoding.DER)
    own = identity(mesh, node, not_before, not_after, der)
    return Contexts(None, None, own, (signer,), (signed_by[1],), key)
