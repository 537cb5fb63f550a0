"""The decision log: what a node chose among, what it took and what that paid, a line of JSON each, to be read later.

Rules kept here. The log is never in the way: lines wait in a queue of `MAX_WAITING`, and a thread encodes and writes
them. What does not fit, because the disk is slow or fails, is dropped and counted, and the next line that is written
says how many. A file that would grow beyond its size becomes `FILE.1`, `FILE.1` becomes `FILE.2`, and so on, up to the
number of files to keep. Files can be read by their owner alone.

A line has a `kind`: "choice", "reward", "withdrawal" or "dropped". Tickets are written without the arm and the seal, so
that a choice and its reward can be matched, and whoever reads the log can settle nothing.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec

from ... import checks
from ...errors import FileError, InputError, need
from ...files import atomic
from ...files.regular import open_regular
from ..names import epoch_text

MAX_WAITING: Final = 10_000
#: The most lines that are written together, and how long the first of them waits for more, in seconds.
MAX_TOGETHER: Final = 1_000
GATHER_FOR: Final = 0.05
#: The size at which a file is closed, and how many closed ones are kept, unless the configuration says otherwise.
FILE_BYTES: Final = 100_000_000
FILES: Final = 5
#: How long a node that ends waits for the last lines, in seconds.
END_WITHIN: Final = 2.0
#: The columns of a table that joins choices and rewards: the first four are those of a reward log.
COLUMNS: Final = (
    *("agent", "arm", "reward", "time"),
    *("bandit", "segment", "probability", "arms", "ticket", "rewarded_at", "lapsed"),
)

_Line = Mapping[str, Any]


class _Read(TypedDict, total=False):
    """What is read of a line, whatever else it may hold."""

    kind: str
    node: str
    ticket: str | None
    time: float
    bandit: str | None
    segment: str | None
    arm: str
    arms: list[str]
    probability: float | None
    reward: float
    lapsed: bool
    n_lines: int


def shortened(ticket: Any) -> str:
    """A ticket as the log has it: enough to know it again, and not enough to settle it.

    Examples
    --------
    >>> from banditmesh.live import Ticket
    >>> shortened(Ticket(255, 1, 17, "red", "0123456789abcdef01234567"))
    '00000000000000ff-1-17'
    """
    return f"{epoch_text(ticket.epoch)}-{ticket.start}-{ticket.number}"


class DecisionLog:
    """The decision log of one node.

    Parameters
    ----------
    path : path
        The file; its folder exists.
    n_bytes : int
        The size beyond which a file does not grow, but for its last line.
    n_files : int
        How many full files are kept beside the present one.

    Attributes
    ----------
    path : Path
        The file.
    counters : Counter
        How many lines were written and dropped: `decisions_written`, `decisions_dropped`.
    trouble : str
        Why the last attempt to write failed; empty if it did not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = DecisionLog(Path(folder) / "decisions.jsonl")
    ...     log.add({"kind": "choice", "arm": "red"})
    ...     log.close()
    ...     print((Path(folder) / "decisions.jsonl").read_text(), end="")
    {"kind":"choice","arm":"red"}
    """

    def __init__(self, path: str | PathLike[str], n_bytes: int = FILE_BYTES, n_files: int = FILES) -> None:
        self.counters: Counter[str] = Counter()
        self.trouble = ""
        self.path = Path(path)
        self._n_bytes = n_bytes
        self._n_files = n_files
        self._lines: queue.Queue[_Line | None] = queue.Queue(MAX_WAITING)
        #: How many lines did not fit, could not be written, and were said to be dropped. Only the thread that fills the
        #: queue changes the first, and only the one that writes the others.
        self._n_overflowed = self._n_failed = self._n_told = 0
        self._encode = msgspec.json.Encoder().encode
        self._thread = threading.Thread(target=self._run, name="banditmesh decisions", daemon=True)
        self._thread.start()

    def add(self, line: _Line) -> None:
        """Have a line written, or drop it if too many wait."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._n_overflowed += 1
            self.counters["decisions_dropped"] = self._n_overflowed + self._n_failed

    def close(self) -> None:
        """Write what waits, if that does not take long, and end."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=END_WITHIN)
        self._thread.join(END_WITHIN)

    def _run(self) -> None:
        is_open = True
        while is_open:
            lines = [self._lines.get()]
            if lines[0] is not None and self._lines.qsize() < MAX_TOGETHER:
                time.sleep(GATHER_FOR)
            with suppress(queue.Empty):
                while len(lines) < MAX_TOGETHER and lines[-1] is not None:
                    lines.append(self._lines.get_nowait())
            is_open = lines[-1] is not None
            self._write([line for line in lines if line is not None])

    def _write(self, lines: list[_Line]) -> None:
        """Write lines, or count them as dropped."""
        n_dropped = self._n_overflowed + self._n_failed
        if not lines and n_dropped == self._n_told:
            return
        data = [self._encode(line) + b"\n" for line in lines]
        try:
            if n_dropped > self._n_told:
                self._append([self._encode({"kind": "dropped", "n_lines": n_dropped - self._n_told}) + b"\n"])
                self._n_told = n_dropped
            while data:
                data = self._append(data)
            self.trouble = ""
        except OSError as error:
            self.trouble = error.strerror or str(error)
            self._n_failed += len(data)
            self.counters["decisions_dropped"] = self._n_overflowed + self._n_failed
        self.counters["decisions_written"] += len(lines) - len(data)

    def _append(self, data: list[bytes]) -> list[bytes]:
        """Write as many lines as the present file takes, at least one; those that are left."""
        if self.path.exists() and self.path.stat().st_size + len(data[0]) > self._n_bytes:
            self._rotate()
        with open(self.path, "ab", 0, opener=lambda name, flags: os.open(name, flags, atomic.PRIVATE)) as file:
            if os.name == "posix":
                os.fchmod(file.fileno(), atomic.PRIVATE)
            size = before = file.tell()
            # A line that a crash cut off ends here.
            whole = b"" if not size or self._ends_a_line() else b"\n"
            n_taken = 0
            while n_taken < len(data) and (not n_taken or size + len(data[n_taken]) <= self._n_bytes):
                size += len(data[n_taken])
                n_taken += 1
            rest = memoryview(whole + b"".join(data[:n_taken]))
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError:
                file.truncate(before)
                raise
        return data[n_taken:]

    def _ends_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _rotate(self) -> None:
        names = [self.path, *(_older(self.path, n) for n in range(1, self._n_files + 1))]
        names[-1].unlink(missing_ok=True)
        for old, new in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                old.rename(new)


def _older(path: Path, n: int) -> Path:
    return path.with_name(f"{path.name}.{n}")


def _files(path: Path) -> list[Path]:
    """A log with the full files beside it, the oldest first."""
    older: list[Path] = []
    while _older(path, len(older) + 1).exists():
        older.append(_older(path, len(older) + 1))
    return [*reversed(older), path]


def read(path: str | PathLike[str], counts: Counter[str]) -> Iterator[_Read]:
    """All lines of a log and of the full files beside it, the oldest first.

    What is no line of a log, such as one that a full disk cut off, is counted as `unreadable` and left out.
    """
    decode = msgspec.json.Decoder(_Read).decode
    for file in _files(Path(path)):
        try:
            with open_regular(file) as stream:
                for data in stream:
                    try:
                        line = decode(data)
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                        counts["unreadable"] += 1
                        continue
                    yield line
        except OSError as error:
            raise FileError(f"cannot read {file}: {error.strerror or error}") from None


def join(
    paths: Sequence[str | PathLike[str]], bandit: str | None = None, segment: str | None = None
) -> tuple[dict[str, list[Any]], Counter[str]]:
    """The rewards in decision logs, each with the choice that it was for.

    Parameters
    ----------
    paths : sequence of path
        The logs of one or more nodes; full files beside them are read, too.
    bandit, segment : str, optional
        Take lines of this bandit or segment alone.

    Returns
    -------
    columns : dict
        By name, in the order of `COLUMNS`: one entry for each reward, in the order in which they came. `agent` is the
        node's name. What only a choice has is None where that is not in the logs.
    counts : Counter
        How many `choices`, `rewards`, `lapsed` ones and `withdrawals` there are, how many choices are `open`, how many
        lines were `dropped` when they should have been written, and how many are `unreadable`.

    Raises
    ------
    InputError
        No line is of that bandit and segment.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = DecisionLog(Path(folder) / "log")
    ...     log.add({"kind": "choice", "node": "a", "ticket": "00-1-1", "time": 3.0, "arm": "red", "probability": 1.0})
    ...     log.add({"kind": "reward", "node": "a", "ticket": "00-1-1", "time": 5.0, "arm": "red", "reward": 0.5})
    ...     log.close()
    ...     columns, counts = join([Path(folder) / "log"])
    >>> [columns[name] for name in ("agent", "arm", "reward", "time", "rewarded_at")], counts["open"]
    ([['a'], ['red'], [0.5], [3.0], [5.0]], 0)
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    counts: Counter[str] = Counter()
    waiting: dict[tuple[str, str], _Read] = {}
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for line in read(path, counts):
            where = str(line.get("bandit")), str(line.get("segment"))
            if line.get("kind") in ("choice", "reward", "withdrawal"):
                seen.add(where)
                if any(
                    wanted is not None and wanted != got for wanted, got in zip((bandit, segment), where, strict=True)
                ):
                    continue
            kind, key = line.get("kind"), (str(line.get("node")), str(line.get("ticket")))
            if kind == "choice":
                counts["choices"] += 1
                waiting[key] = line
            elif kind == "withdrawal":
                counts["withdrawals"] += 1
                waiting.pop(key, None)
            elif kind == "dropped":
                counts["dropped"] += line.get("n_lines", 0)
            elif kind == "reward":
                counts["rewards"] += 1
                counts["lapsed"] += bool(line.get("lapsed"))
                for name, value in zip(COLUMNS, _row(waiting.pop(key, {}), line), strict=True):
                    columns[name].append(value)
            else:
                counts["unreadable"] += 1
    counts["open"] = len(waiting)
    for what, wanted, known in zip(("bandit", "segment"), (bandit, segment), zip(*seen, strict=True), strict=False):
        if wanted is not None and wanted not in known:
            names = ", ".join(sorted(set(known) - {"None"})) or "none"
            raise InputError(f"the {what} must be one of those in the logs ({names}), got {checks.shown(wanted)}")
    return columns, counts


def mixed_arms(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """The arms of one name that more than one bandit or segment has: in a reward log they would count as one."""
    owners: dict[str, set[tuple[Any, Any]]] = {}
    for arm, bandit, segment in zip(columns["arm"], columns["bandit"], columns["segment"], strict=True):
        owners.setdefault(str(arm), set()).add((bandit, segment))
    return sorted(arm for arm, found in owners.items() if len(found) > 1)


def _row(choice: _Read, reward: _Read) -> Iterable[Any]:
    """A reward with its choice, in the order of `COLUMNS`."""
    either = {**reward, **choice}
    yield reward.get("node")
    yield reward.get("arm")
    yield reward.get("reward")
    yield either.get("time")
    yield either.get("bandit")
    yield either.get("segment")
    yield choice.get("probability")
    yield choice.get("arms")
    yield reward.get("ticket")
    yield reward.get("time")
    yield bool(reward.get("lapsed"))


def save(columns: Mapping[str, Sequence[Any]], path: str | PathLike[str]) -> None:
    """Write what `join` gave into a file: CSV if its name ends so, else Parquet."""
    need("pandas", "tables", "a table")
    import pandas as pd

    path = Path(path)
    frame = pd.DataFrame({name: pd.Series(list(values), dtype=_TYPES.get(name)) for name, values in columns.items()})
    try:
        with atomic.writing(path, mode=atomic.PRIVATE) as stream:
            if path.suffix == ".csv":
                frame["arms"] = [None if one is None else msgspec.json.encode(one).decode() for one in frame["arms"]]
                frame.to_csv(stream, index=False)
            else:
                frame.to_parquet(stream, index=False)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None


_TYPES: Final = {"reward": "float64", "time": "float64", "rewarded_at": "float64", "probability": "float64"}
