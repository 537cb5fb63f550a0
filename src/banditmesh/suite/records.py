"""The file that a run of the suite leaves: every number, and a hash of everything that decided it.

Rules kept here: equal runs give equal bytes, whatever executor ran them and however often they were interrupted. A file
is read against a schema, and its own hash must agree with its content; so a number that was changed by accident is
found out. A hash that was changed along with it is not: `checking` runs a sample of the rows again for that.
"""

from __future__ import annotations

import hashlib
import json
import math
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from ..errors import FileError
from ..files.regular import open_regular
from ..studies.store import write_whole

FORMAT: Final = "banditmesh-suite"
VERSION: Final = 1
#: What is kept of every replicate; the names are those of `comparisons.Configuration`.
MEASURES: Final = ("regret", "agent_worst", "messages_per_round", "bytes_per_round", "link_load")
#: A larger file is no file of a suite.
MAX_BYTES: Final = 2**26

Kind: TypeAlias = Literal["alone", "sends", "central"]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


class RowRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A row on a problem.

    Attributes
    ----------
    protocol, policy : str
        Both written out in full.
    source : str
        Hashes of the source of the author's own classes; empty if there are none.
    kind : str
        Whether it sends, leaves every agent alone, or is central, which no network could be.
    decided_by : str
        A hash of everything that decides the values: problem, protocol, policy, source, rounds, replicates, seed and
        version.
    values : mapping from measure to list
        What each replicate gave; empty if there is a reason instead.
    refused : str
        Why the row does not run on this problem.
    failed : str
        The error that ended it.
    """

    protocol: str
    policy: str
    source: str
    kind: Kind
    decided_by: str
    values: dict[str, list[float]]
    refused: str = ""
    failed: str = ""


class ProblemRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A problem, and what its rows gave."""

    hash: str
    horizon: _AtLeast1
    replicates: _AtLeast1
    seed: int
    rows: dict[str, RowRecord]


class SuiteRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A whole file."""

    format: str
    version: int
    suite: str
    size: str
    versions: dict[str, str]
    entries: list[str]
    problems: dict[str, ProblemRecord]
    hash: str = ""


def digest(*values: Any) -> str:
    """A hash of plain values.

    Examples
    --------
    >>> digest(1, "a")[:8]
    '20109453'
    """
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def decided_by(suite: SuiteRecord, name: str, row: RowRecord) -> str:
    """The hash of everything that decides a row's values."""
    problem = suite.problems[name]
    how_long = [problem.horizon, problem.replicates, problem.seed]
    made_of = [row.protocol, row.policy, row.source]
    return digest(suite.suite, problem.hash, how_long, made_of, suite.versions["banditmesh"])


def content_hash(suite: SuiteRecord) -> str:
    """The hash of a file's content, without the hash that it holds itself."""
    content = msgspec.to_builtins(suite)
    del content["hash"]
    return digest(content)


def write_record(suite: SuiteRecord, path: str | PathLike[str]) -> None:
    """Write a file, whole or not at all."""
    content = json.dumps(msgspec.to_builtins(suite), indent=1, allow_nan=False) + "\n"
    write_whole(Path(path), content.encode())


def read_record(path: str | PathLike[str]) -> SuiteRecord:
    """The content of a file, or `FileError`: it is damaged, of another version, or was edited."""
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise FileError(f"{path} must be results of a suite of at most {MAX_BYTES:,} bytes, got more")
    try:
        raw = msgspec.json.decode(data)
        is_ours = isinstance(raw, dict) and raw.get("format") == FORMAT
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        is_ours = False
    if not is_ours:
        raise FileError(f"{path} must be results of a suite, got something else or a damaged file; run `suite` again")
    if raw.get("version") != VERSION:
        raise FileError(
            f"{path} has version {str(raw.get('version'))[:20]!r} of the format, this banditmesh reads {VERSION}; "
            "use the banditmesh that wrote it"
        )
    try:
        suite = msgspec.convert(raw, SuiteRecord)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _damaged(path, " ".join(str(error).split())) from None
    if wrong := _first_wrong(suite):
        raise _damaged(path, wrong)
    return suite


def _damaged(path: str | PathLike[str], why: str) -> FileError:
    return FileError(f"{path} is damaged or was edited ({why}); ask for the original, or run the suite again")


def _first_wrong(suite: SuiteRecord) -> str:
    """What contradicts the rest of a file, in words."""
    if "banditmesh" not in suite.versions:
        return "it does not say which banditmesh wrote it"
    for name, problem in suite.problems.items():
        for row_name, row in problem.rows.items():
            where = f"{row_name} on {name}"
            if bool(row.values) == bool(row.refused or row.failed):
                return f"{where} needs values or a reason why there are none"
            if row.values and set(row.values) != set(MEASURES):
                return f"{where} has other measures than {', '.join(MEASURES)}"
            for measure, values in row.values.items():
                if len(values) != problem.replicates or not all(map(math.isfinite, values)):
                    return f"{measure} of {where} must have {problem.replicates} numbers"
            if row.decided_by != decided_by(suite, name, row):
                return f"the hash of {where} does not agree with what it names"
    return "" if suite.hash == content_hash(suite) else "its hash does not agree with its content"
