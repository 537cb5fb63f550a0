"""A node that renews its certificate: it runs a command of its operator's, and checks what that gives.

The authority's key is never on a node, so the node asks for a certificate where that key is. How is up to the operator:
`renew_command` is a program with its arguments. It gets the present certificate on its standard input, in PEM, and the
names of mesh and node as `BANDITMESH_MESH` and `BANDITMESH_NODE`. It must print the new certificate, for the same key,
and exit with 0. `banditmesh keys renew NAME --pipe` does that at the authority's end, behind `ssh`, say.

Rules kept here. The new certificate takes the place of the old one only if a node could start with it: it is of this
node, fits its key, is issued by an authority that the node trusts, is valid now and ends later. It is then written
whole or not at all. A command that fails, prints something else or takes more than `WITHIN` seconds changes nothing;
it is run again after a while.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...errors import BanditmeshError, FileError
from ...files import atomic
from ..logs import note
from .identity import WARN_BEFORE, Identity, KeyFiles, contexts

LOG = logging.getLogger("banditmesh.live.node")

#: In seconds: how often to look whether it is time, how long the command may take, and how long to wait if it fails.
LOOK_EVERY: Final = 60.0
WITHIN: Final = 120.0
FIRST_PAUSE: Final = 60.0
LONGEST_PAUSE: Final = 3600.0
#: How far the authority's clock may be ahead, in seconds.
MAX_AHEAD: Final = 60.0
#: The most that the command may print, in bytes.
MAX_BYTES: Final = 64 * 1024


def renewal_due(own: Identity, before: float | None) -> float:
    """When a certificate is to be renewed: `before` seconds before its end.

    Examples
    --------
    >>> renewal_due(Identity("shop", "a", 0, 86400 * 365), None) / 86400
    335.0
    >>> renewal_due(Identity("shop", "a", 0, 90), None), renewal_due(Identity("shop", "a", 0, 90), 50.0)
    (60.0, 40.0)
    """
    if before is None:
        before = min(WARN_BEFORE, (own.not_after - own.not_before) / 3)
    return own.not_after - before


async def renew(files: KeyFiles, own: Identity, command: Sequence[str], clock: Callable[[], float]) -> Identity:
    """Run the command, and put what it gives in the place of the certificate.

    Raises
    ------
    FileError
        The command failed, or its answer cannot be used; nothing has changed.
    """
    data = await _run(command, own, files.certificate.read_bytes())
    partial = files.certificate.with_name(f".{files.certificate.name}.renewed")
    try:
        with atomic.writing(partial, durable=True, mode=atomic.READABLE) as stream:
            stream.write(data)
        new = contexts(files._replace(certificate=partial)).own
        if (new.mesh, new.node) != (own.mesh, own.node):
            raise FileError(f"a certificate of node {own.node!r} is required, got one of {new.node!r} of {new.mesh!r}")
        if not new.not_before - MAX_AHEAD <= clock() < new.not_after or new.not_after <= own.not_after:
            raise FileError("a certificate that is valid now and ends later is required, got another one")
        os.replace(partial, files.certificate)
    except OSError as error:
        raise FileError(f"cannot write {error.filename or partial}: {error.strerror or error}") from None
    except FileError as error:
        raise FileError(f"what renew_command printed cannot be used: {error}") from None
    finally:
        with suppress(OSError):
            partial.unlink()
    return new


async def _run(command: Sequence[str], own: Identity, given: bytes) -> bytes:
    """What the command prints, given the present certificate."""
    pipe = asyncio.subprocess.PIPE
    names = {"BANDITMESH_MESH": own.mesh, "BANDITMESH_NODE": own.node}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **names}, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise FileError(f"renew_command cannot be run: {error}") from None
    try:
        async with asyncio.timeout(WITHIN):
            printed, said = await process.communicate(given)
    except TimeoutError:
        raise FileError(f"renew_command took more than {WITHIN:g} s") from None
    finally:
        if process.returncode is None:
            # What it started ends with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        last = (said.decode(errors="replace").strip().splitlines() or ["and said nothing"])[-1]
        raise FileError(f"renew_command ended with status {process.returncode}: {last[:300]}")
    if len(printed) > MAX_BYTES:
        raise FileError(f"renew_command must print a certificate, got {len(printed)} bytes")
    return printed


class Renewal:
    """Renews the certificate of a node whenever it is time.

    Parameters
    ----------
    setting : callable
        Gives the node's files, command and `renew_before` as they are now.
    own : callable
        Gives the certificate in use.
    use : callable
        Called with a new certificate in its place: the node reads it.
    clock : callable
        The time of day, in seconds.

    Attributes
    ----------
    counters : Counter
        How often the certificate was renewed, and how often not: `renewals`, `failed_renewals`.
    trouble : str
        Why the last attempt failed; empty if it did not.
    """

    def __init__(
        self,
        setting: Callable[[], tuple[KeyFiles, Sequence[str], float | None]],
        own: Callable[[], Identity],
        use: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.trouble = ""
        self._setting = setting
        self._own = own
        self._use = use
        self._clock = clock

    async def run(self) -> None:
        """Renew whenever it is time, until cancelled."""
        pause = FIRST_PAUSE
        while True:
            if await self.look():
                pause = FIRST_PAUSE
                await asyncio.sleep(LOOK_EVERY)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def look(self) -> bool:
        """Renew if it is time; False if that failed."""
        files, command, before = self._setting()
        if not command or self._clock() < renewal_due(self._own(), before):
            self.trouble = ""
            return True
        try:
            await renew(files, self._own(), command, self._clock)
            await self._use()
        except (BanditmeshError, OSError) as error:
            self.trouble = str(error)
            self.counters["failed_renewals"] += 1
            note(LOG, logging.ERROR, "certificate not renewed", reason=error)
            return False
        self.trouble = ""
        self.counters["renewals"] += 1
        note(LOG, logging.INFO, "certificate renewed", file=Path(files.certificate).name)
        return True
