"""A node with its sidecar on a thread of its own, and HTTP as a stranger would speak it."""

import asyncio
import http.client
import json
import random
import socket
import threading

from banditmesh.errors import StoreError
from banditmesh.live import Node, NodeConfig
from banditmesh.live.disk.state import Store
from banditmesh.live.http import serving
from banditmesh.live.member.arms import ArmSpec


class Beside:
    """A node and its sidecar, from `with` to its end.

    Parameters
    ----------
    make : callable
        Gives the node, an asynchronous context manager.
    listen : str
        Where the sidecar listens.
    options : dict
        Of `serving.serve`.
    """

    def __init__(self, make, listen="127.0.0.1:0", **options):
        self._make, self._listen, self._options = make, listen, options
        self._begun = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._error = error
        finally:
            self._begun.set()

    async def _main(self):
        self.loop, self._until = asyncio.get_running_loop(), asyncio.Event()
        async with self._make() as self.node:
            with serving.bind(self._listen, self._options.get("token")) as listener:
                self.address = listener.getsockname()
                self._begun.set()
                await serving.serve(self.node, listener, until=self._until, **self._options)

    def __enter__(self):
        self._thread.start()
        self._begun.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self

    def __exit__(self, *_):
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._until.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    @property
    def url(self):
        """What a client is given."""
        if isinstance(self.address, str):
            return f"unix:{self.address}"
        return f"http://127.0.0.1:{self.address[1]}"

    def do(self, function, *arguments):
        """Call something of the node on its own loop; what it returns may be awaitable."""

        async def call():
            value = function(*arguments)
            return await value if asyncio.iscoroutine(value) else value

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(timeout=300)

    def connect(self):
        """A plain connection."""
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(300)
        connection.connect(self.address)
        return connection

    def begun(self):
        """A connection with a request that is being answered: the sidecar waits for its body."""
        connection = self.connect()
        head = b"POST /v1/observe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        # The answer to Expect shows that the body is waited for.
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        connection.recv(1000, socket.MSG_PEEK)
        return connection

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body of an answer; `body` is sent as it is or as JSON, a header of None is left out."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"host": "localhost", **({} if data is None else {"content_length": str(len(data))})}
        if method in ("POST", "PUT"):
            given["content_type"] = "application/json"
        lines = [f"{method} {path} HTTP/1.1", "connection: close"]
        for name, value in (given | headers).items():
            values = [value] if isinstance(value, str) else value or []
            lines += [f"{name.replace('_', '-')}: {one}" for one in values]
        with self.connect() as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + (data or b""))
            response = http.client.HTTPResponse(connection, method=method)
            response.begin()
            answer = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        if found.get("content-type") == "application/json":
            answer = json.loads(answer)
        return response.status, found, answer


class Disk:
    """A disk that may be full."""

    is_full = False


def a_node(folder, disk=None, name="a", **options):
    """What makes a node of the mesh shop, with arms red and blue; blue pays from 0 to 1."""

    def make():
        arms = [ArmSpec("red"), ArmSpec("blue", law="bernoulli", reward_range=(0.0, 1.0))]
        config = NodeConfig(mesh="shop", node=name, arms=arms, state=folder / "state", plain=True, **options)
        store = Store.open(config.state, config.mesh, config.node)
        if disk is not None:
            commit = store.commit

            async def commit_if_possible(changes):
                if disk.is_full:
                    raise StoreError("the disk is full")
                await commit(changes)

            store.commit = commit_if_possible
        return Node(config, store=store, rng=random.Random(0))

    return make
