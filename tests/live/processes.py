"""Nodes in processes of their own: what `banditmesh node` runs, from configurations that tests write.

Processes are forked from one that has imported everything, so that the hundredth start costs as little as it can.
"""

import contextlib
import ctypes
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time

from banditmesh.live import Client

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["banditmesh.live.http.serving"])
#: How long a test waits for what must come, in seconds; only a failing one ever waits so long.
PATIENCE = 300.0

CONFIG = """\
mesh = "shop"
node = "{name}"
{security}
listen = "127.0.0.1:0"
accept = "members"
log = "json"
protocol = "{protocol}"
api = {{ listen = "unix:api" }}
arms = [{arms}]
neighbours = [{neighbours}]
"""


def wait_until(holds, patience=PATIENCE):
    """Wait until something holds; what it was then."""
    give_up = time.monotonic() + patience
    while not (held := holds()):
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.005)
    return held


def _run(folder, log, disk, is_full):
    """What a process does: everything that it logs goes into a file of its own."""
    os.chdir(folder)  # the path of a socket must be short
    with open(log, "a") as file:
        os.dup2(file.fileno(), 2)
    if disk is not None:
        mount(f"{folder}/state", disk)
    if is_full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    from banditmesh.live.http import serving

    serving.run("node.toml")


def mount(folder, size):
    """Put a small disk on a folder, for this process and its children alone."""
    os.makedirs(folder, exist_ok=True)
    if ctypes.CDLL(None, use_errno=True).unshare(0x00020000):  # CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "mounts of its own are not allowed")
    for command in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", f"size={size}", "small", folder]):
        subprocess.run(["mount", *command], check=True, capture_output=True)


def _try_to_mount(folder):
    try:
        mount(folder, "100k")
    except (OSError, subprocess.CalledProcessError):
        sys.exit(1)


def can_mount(folder):
    """Whether a process may have a small disk of its own here."""
    process = FORKS.Process(target=_try_to_mount, args=(str(folder),))
    process.start()
    process.join()
    return process.exitcode == 0


class NodeProcess:
    """A node in a folder of its own, which may be started, killed, stopped and started again.

    Parameters
    ----------
    folder : Path
        For its configuration, state, socket and logs.
    neighbours : dict
        Addresses by name; None for one who dials.
    disk : str, optional
        The size of a disk of its own for the state, such as "400k".
    more : str
        Further lines of its configuration.
    keys : KeyFiles, optional
        What it proves by who it is; links are plain without.
    """

    def __init__(
        self, folder, name, arms=("red", "blue"), neighbours=None, protocol="fwa(4)", disk=None, more="", keys=None
    ):
        self.folder, self.name, self._disk = folder, name, disk
        self.n_starts = 0
        self._process = None
        folder.mkdir(parents=True, exist_ok=True)
        tables = [
            f'{{ name = "{one}"{"" if address is None else f""", address = "{address}" """} }}'
            for one, address in (neighbours or {}).items()
        ]
        security = "plain = true"
        if keys is not None:
            files = ", ".join(f'{what} = "{path}"' for what, path in keys._asdict().items())
            security = f"keys = {{ {files} }}"
        text = CONFIG.format(
            name=name,
            security=security,
            protocol=protocol,
            arms=", ".join(f'{{ name = "{arm}", sigma = 1.0 }}' for arm in arms),
            neighbours=", ".join(tables),
        )
        (folder / "node.toml").write_text(text + more)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.is_alive:
            self.kill()

    # --- beginning and end

    @contextlib.contextmanager
    def on_a_full_disk(self):
        """Run where no file may grow beyond a page."""
        try:
            yield self.start(is_full=True)
        finally:
            self.__exit__()

    def start(self, is_full=False):
        """Start, and wait until callers are answered."""
        self.n_starts += 1
        what = str(self.folder), str(self.log), self._disk, is_full
        self._process = FORKS.Process(target=_run, args=what, daemon=True)
        self._process.start()
        wait_until(lambda: not self.is_alive or self.event("listening"))
        assert self.is_alive, self.log.read_text()
        return self

    @property
    def is_alive(self):
        return self._process is not None and self._process.is_alive()

    def ended(self):
        """Wait for the end; its status."""
        self._process.join(PATIENCE)
        return self._process.exitcode

    def kill(self):
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.join()

    def signal(self, number):
        os.kill(self._process.pid, number)

    def leave(self):
        """SIGTERM, and wait until it has left."""
        self.signal(signal.SIGTERM)
        assert self.ended() == 0, self.log.read_text()

    # --- looking

    @property
    def pid(self):
        return self._process.pid

    @property
    def log(self):
        return self.folder / f"log-{self.n_starts}"

    def events(self):
        """All whole lines of this start's log."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def event(self, name):
        """The first line of the log with an event, if there is one."""
        return next((line for line in self.events() if line["event"] == name), None)

    @property
    def address(self):
        """Where neighbours reach it."""
        return self.event("node started")["listen"]

    def client(self, **options):
        """A client of its sidecar."""
        return Client(f"unix:{os.path.relpath(self.folder / 'api')}", timeout=PATIENCE, **options)

    def memory(self):
        """Its resident memory, in bytes."""
        with open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def known(client):
    """By arm: how many rewards a node knows of, and their mean."""
    return {arm["name"]: (arm["own_count"] + arm["heard_count"], arm["mean"]) for arm in client.state()["arms"]}
