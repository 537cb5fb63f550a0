"""The state of a node on disk: one SQLite file, which outlives kill -9 and power loss.

Rules kept here:

- What a commit wrote is on the disk when it returns (WAL, `synchronous=FULL`); what failed left nothing behind. The
  table of others' statistics may lag, since neighbours offer it again, and is written without waiting for the disk.
- One process at a time: a lock in the folder, which ends with the process that holds it.
- The file names its format, its mesh and its node, and is refused under any other. What it holds is checked before
  anything is believed. A file that is damaged is refused in one line and never replaced: a new life moves it aside.
- Its owner alone can read it, from the first byte on, and backups likewise.
- A disk without room is no reason not to open: what is there is read, and to write is tried again each time.
- A backup is marked as one. What is restored from it must begin a new life, since its own may have gone on.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Self, TypeVar

from ...errors import StoreError
from ...files import atomic, locks
from ...files.atomic import PRIVATE
from ..names import check_name
from ..statistics import Entry, Key
from . import Changes, Stored, schema
from .schema import UnusableError

FILE: Final = "state.db"
#: What SQLite puts beside its file; the first may hold what is not in the file yet.
BESIDE: Final = ("-wal", "-shm")
_LOCK: Final = "lock"
#: The name of the thread that writes.
_WRITER: Final = "banditmesh-state"

_Result = TypeVar("_Result")
_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Lock:
    """Holds a folder against every other process, and against a second node in this one.

    Raises
    ------
    StoreError
        Another process has it, or it cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(Path(folder))
    ...     lock.release()
    """

    def __init__(self, folder: Path) -> None:
        path = folder / _LOCK
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Any process that can open it could lock it.
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise StoreError(
                f"the state folder {folder} cannot be used: {error.strerror or error}; make it a folder that can be "
                "written to, or name another one as state"
            ) from None
        try:
            locks.take(self._descriptor)
        except OSError:
            with suppress(OSError, ValueError):
                holder = int(os.pread(self._descriptor, 20, 0))
            os.close(self._descriptor)
            by = f"process {holder}" if "holder" in locals() else "another process"
            raise StoreError(
                f"the state folder {folder} is in use by {by}; stop it, or give each node its own folder"
            ) from None
        # To show which process has it; the lock itself does not depend on it, and a full disk has no room for it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where a folder can be opened for that."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_private(folder: Path) -> None:
    """Let the owner alone read a state that is there; earlier versions made it readable."""
    for end in ("", *BESIDE):
        path = folder / f"{FILE}{end}"
        # On files of others, and where a file system has no modes, there is nothing to be done.
        with suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)


def move_aside(folder: Path) -> Path | None:
    """Give the state in a folder another name, with the date; the new name, or None if there was no state."""
    old = [folder / f"{FILE}{end}" for end in ("", *BESIDE)]
    if not any(path.exists() for path in old):
        return None
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        aside = folder / f"aside-{stamp}{f'-{number}' if number else ''}"
        with suppress(FileExistsError):
            aside.mkdir(mode=0o700)
            break
        number += 1
    for path in old:
        with suppress(FileNotFoundError):
            path.rename(aside / path.name)
    sync_folder(folder)
    return aside / FILE


_WAY_OUT: Final = "restore a backup into an empty folder, or start with --new-life, which moves it aside"
#: Seconds that a write waits for another process, which can only be one that reads.
_PATIENCE: Final = 5.0
#: Where the header of an SQLite file says whether it is in WAL mode, and how it says that it is not.
_MODE_AT: Final = 18
_NO_WAL: Final = b"\x01\x01"


class Store:
    """The state of one node, open; made by `Store.open`.

    One writer at a time: commits and saves run one after the other in its own thread. A call that was begun runs to its
    end even if the task that awaits it is cancelled.

    Attributes
    ----------
    folder : Path
        Where it lies.

    Examples
    --------
    >>> import tempfile
    >>> from banditmesh.live.disk import Life, OwnArm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(folder, "shop", "berlin") as store:
    ...         store.write(Changes(life=Life(epoch=7, start=1, n_choices=0), own=[OwnArm("red", 2, 1.5)]))
    ...     with Store.open(folder, "shop", "berlin") as store:
    ...         store.load().own[0].total
    1.5
    """

    def __init__(self, folder: Path, mesh: str, node: str, lock: Lock) -> None:
        self.folder = folder
        self._path = folder / FILE
        self._mesh, self._node = mesh, node
        self._lock = lock
        #: None once it is closed, and as long as there has been no room on the disk to open it for writing.
        self._db: sqlite3.Connection | None = None
        self._is_closed = False
        self._mutex = threading.Lock()
        self._inode = 0
        self._is_suspect = False
        #: What the connection was last told to wait for.
        self._synchronous = ""
        self._writer = Writer()
        self._backup_of: int | None = None

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        mesh: str,
        node: str,
        *,
        new_life: bool = False,
    ) -> Store:
        """Open the state in a folder, which is made if it is not there.

        Parameters
        ----------
        folder : str or path
            One for each node.
        mesh, node : str
            Whose state it must be.
        new_life : bool
            Whether to move what is there aside and begin anew.

        Raises
        ------
        StoreError
            The folder is in use or cannot be written to, or its state is damaged, of another node or of a later format.
        """
        check_name("mesh", mesh)
        check_name("node", node)
        folder = Path(folder)
        path = folder / FILE
        lock = Lock(folder)
        try:
            with _plainly(path):
                if new_life:
                    move_aside(folder)
                _refuse_strange_files(path)
                store = cls(folder, mesh, node, lock)
                try:
                    store._connect()
                except (sqlite3.Error, OSError) as error:
                    if not _is_no_room(error):
                        raise
                return store
        except BaseException:
            lock.release()
            raise

    def _connect(self) -> sqlite3.Connection:
        """Open the file for writing, and make it if it is not there."""
        path = self._path
        if not path.exists():
            _make(path, self._mesh, self._node)
        make_private(self.folder)
        db = _connect(path)
        with _closing_on_error(db):
            self._check_owner(db)
            _begin_wal(db, path)
        self._inode, self._synchronous = path.stat().st_ino, ""
        self._db = db
        return db

    def _check_owner(self, db: sqlite3.Connection) -> None:
        mesh, node, _ = schema.identify(db)
        if (mesh, node) != (self._mesh, self._node):
            raise StoreError(
                f"{self._path} belongs to node {node!r} of mesh {mesh!r}, not to node {self._node!r} of mesh "
                f"{self._mesh!r}; name another state folder, or start with --new-life, which moves it aside"
            )

    def load(self) -> Stored | None:
        """Everything that was stored; None if no life has begun here."""
        path = self._path
        with self._mutex, _plainly(path):
            self._require_open()
            if self._db is not None:
                stored = schema.read(self._db)
            elif not path.exists():
                stored = None
            else:
                # To read takes no room: a file without a log is read as it is, and one that has a log by a connection
                # that needs no shared memory, since it lets no other in.
                with closing(_connect(path, "rw" if _has_log(path) else "ro&immutable=1")) as db:
                    db.execute("PRAGMA locking_mode = EXCLUSIVE")
                    self._check_owner(db)
                    stored = schema.read(db)
        self._backup_of = stored.life.epoch if stored is not None and stored.is_backup else None
        return stored

    async def loaded(self) -> Stored | None:
        """What `load` gives, read where it holds up no event loop."""
        self._require_open()
        return await self._writer.run(self.load)

    async def commit(self, changes: Changes) -> None:
        """Write changes, whole and on the disk, or raise `StoreError`, and nothing has changed."""
        await self._run(lambda: self.write(changes))

    async def save_entries(
        self,
        entries: Sequence[Entry],
        removed: Sequence[Key] = (),
        certificates: Sequence[bytes] = (),
        forgotten: Sequence[bytes] = (),
    ) -> None:
        """Write rows of the table and remove others, whole or not at all; a power loss may undo it.

        So with certificates, and the ids of those to be removed.
        """
        await self._run(lambda: self.write_entries(entries, removed, certificates, forgotten))

    def write(self, changes: Changes) -> None:
        """What `commit` does, here and now."""
        with self._transaction("FULL") as db:
            schema.write(db, changes)
            is_begun = changes.life is not None and self._backup_of not in (None, changes.life.epoch)
            if is_begun:
                schema.mark(db, schema.STATE)
        if is_begun:
            self._backup_of = None

    def write_entries(
        self,
        entries: Sequence[Entry],
        removed: Sequence[Key] = (),
        certificates: Sequence[bytes] = (),
        forgotten: Sequence[bytes] = (),
    ) -> None:
        """What `save_entries` does, here and now."""
        with self._transaction("NORMAL") as db:
            schema.write_entries(db, entries, removed)
            schema.write_certificates(db, certificates, forgotten)

    def backup(self, path: str | PathLike[str]) -> None:
        """Copy the state into a new file, as `copy_state`; writing goes on meanwhile."""
        copy_state(self.folder, path)

    def close(self) -> None:
        """Finish what is being written, and let others have the folder."""
        self._writer.close()
        with self._mutex:
            if not self._is_closed:
                self._is_closed = True
                if self._db is not None:
                    with suppress(sqlite3.Error):
                        self._db.close()
                    self._db = None
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _run(self, write: Callable[[], None]) -> None:
        self._require_open()
        await self._writer.run(write)

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the state in {self.folder} is closed; open it again")

    @contextmanager
    def _transaction(self, synchronous: str) -> Iterator[sqlite3.Connection]:
        """A transaction that is undone by whatever goes wrong; an error of the disk becomes a `StoreError`."""
        with self._mutex:
            self._require_open()
            db = self._db
            try:
                if db is None:
                    db = self._connect()
                self._recover(db)
                self._synchronize(db, synchronous)
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if db is not None and db.in_transaction:
                        db.execute("ROLLBACK")
                if isinstance(error, UnusableError):
                    raise StoreError(f"{self._path} {error}; {_WAY_OUT}") from None
                if isinstance(error, sqlite3.Error | OSError):
                    self._is_suspect = True
                    raise StoreError(f"cannot write {self._path}: {_reason(error)}") from None
                raise

    def _synchronize(self, db: sqlite3.Connection, synchronous: str) -> None:
        if synchronous != self._synchronous:
            db.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous

    def _recover(self, db: sqlite3.Connection) -> None:
        """Before writing again: the file is still there and, after an error, all that was written is on the disk.

        An error while syncing may have lost what an earlier save wrote to the log without syncing, and what stands
        behind a gap in the log is lost with it. So after an error the log is brought into the file first.
        """
        if os.stat(self._path).st_ino != self._inode:
            raise OSError(None, "another file has replaced it; stop the node, and start it again")
        if self._is_suspect:
            if db.in_transaction:
                db.execute("ROLLBACK")
            self._synchronize(db, "FULL")
            [[is_busy, *_]] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if is_busy:
                raise OSError(None, "another process is reading it")
            self._is_suspect = False


def copy_state(folder: str | PathLike[str], path: str | PathLike[str]) -> None:
    """Copy the state in a folder into a new file, also while a node is running, and mark it as a backup.

    To restore it, put it into an empty folder as `state.db`.

    Raises
    ------
    StoreError
        There is no whole state in the folder, or the file is there already or cannot be written.
    """
    source, path = Path(folder) / FILE, Path(path)
    if not source.exists():
        raise StoreError(f"there is no state in {folder} to copy; name the state folder of a node")
    if path.exists():
        raise StoreError(f"a backup must be a new file, got {path}, which already exists")
    partial = path.with_name(f".{path.name}.partial")
    try:
        with _plainly(source), closing(_connect(source, "ro")) as db:
            with _plainly(path):
                copy = _connect_new(partial)
            with closing(copy):
                db.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                schema.identify(copy)
                copy.execute("PRAGMA synchronous = FULL")
                schema.mark(copy, schema.BACKUP)
        with _plainly(path):
            partial.rename(path)
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _connect(path: Path, mode: str = "rwc") -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, schema.LONGEST)
    db.execute("PRAGMA trusted_schema = OFF")
    # Where a disk has to be asked for it (macOS), what is synced is on the disk and not in its cache.
    db.execute("PRAGMA fullfsync = ON")
    db.execute("PRAGMA checkpoint_fullfsync = ON")
    return db


def _connect_new(path: Path) -> sqlite3.Connection:
    """A connection to an empty file that its owner alone can read, as what SQLite puts beside it."""
    path.unlink(missing_ok=True)
    atomic.create(path, atomic.PRIVATE).close()
    return _connect(path)


def _make(path: Path, mesh: str, node: str) -> None:
    """A file without a life, there whole or not at all: so an empty file is always a damaged one."""
    partial = path.with_name(f".{FILE}.partial")
    with closing(_connect_new(partial)) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN")
        schema.create(db, mesh, node)
        db.execute("COMMIT")
    partial.rename(path)
    sync_folder(path.parent)


def _begin_wal(db: sqlite3.Connection, path: Path) -> None:
    [[mode]] = db.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise StoreError(f"{path} must be on a file system with shared memory, got mode {mode}; use a local disk")


def _log_of(path: Path) -> Path:
    return path.with_name(f"{FILE}{BESIDE[0]}")


def _has_log(path: Path) -> bool:
    """Whether there may be something in the log that is not in the file."""
    return _log_of(path).exists() and _log_of(path).stat().st_size > 0


def _refuse_strange_files(path: Path) -> None:
    """Refuse what SQLite would take for a new file, or for the log of one that has none."""
    log = _log_of(path)
    if log.exists() and not path.exists():
        raise UnusableError.damaged(f"it is gone, and its log {log.name} is there")
    if path.exists():
        with path.open("rb") as stream:
            head = stream.read(_MODE_AT + 2)
        if len(head) < _MODE_AT + 2:
            raise UnusableError.damaged("it is empty")
        if head[_MODE_AT:] == _NO_WAL and _has_log(path):
            raise UnusableError.damaged(f"{log.name} beside it is the log of another file")


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """Errors in one line: what is damaged, and what cannot be read or written."""
    try:
        yield
    except UnusableError as error:
        raise StoreError(f"{path} {error}; {_WAY_OUT}") from None
    except sqlite3.Error as error:
        if _is_damage(error):
            raise StoreError(f"{path} is damaged: {_reason(error)}; {_WAY_OUT}") from None
        raise StoreError(f"cannot use {path}: {_reason(error)}") from None
    except OSError as error:
        raise StoreError(f"cannot use {path}: {_reason(error)}") from None
    except UnicodeDecodeError:
        # Of SQLite's own messages, where they name what is damaged.
        raise StoreError(f"{path} is damaged: a text in it is not UTF-8; {_WAY_OUT}") from None


@contextmanager
def _closing_on_error(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the content is at fault: the file is none of SQLite's or is malformed, or a value cannot be read."""
    code = getattr(error, "sqlite_errorcode", None)
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_ERROR)
    return code is None or code & 0xFF in damage


def _is_no_room(error: sqlite3.Error | OSError) -> bool:
    """Whether the disk has no room for what must be there before anything is written, the shared memory of the log."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    code = getattr(error, "sqlite_errorcode", 0)
    no_room = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
    return code in no_room


def _reason(error: sqlite3.Error | OSError) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())


class Writer:
    """A thread that does one thing after the other; it begins with the first.

    An executor of one thread would do, but a small transaction takes hardly more time than an executor needs to hand it
    over and back: a future with a lock of its own, which is chained to the event loop's.

    Examples
    --------
    >>> async def main(writer):
    ...     return await writer.run(lambda: threading.current_thread().name)
    >>> writer = Writer()
    >>> asyncio.run(main(writer))
    'banditmesh-state'
    >>> writer.close()
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """What a function returns, or raises; once it is asked for it is called, whatever becomes of who waits."""
        if self._thread is None:
            # What it writes is whole or not there, so a program that ends without closing need not wait for it.
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=_WRITER, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        self._jobs.put((function, loop, future))
        return future

    def close(self) -> None:
        """Finish what was asked for, and end."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        function, loop, future = job
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the event loop is closed, so nothing waits
            loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
