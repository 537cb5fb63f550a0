"""A shard: the runs of one finished chunk, as a Parquet file that can be told from any other.

Rules kept here: the hash of a shard's bytes is part of its name, so that both appear in one move and nothing else has
to be kept in step with them. A shard is taken only if its bytes have that hash, and if it says of itself that it
belongs to this study and this chunk, with this study's columns and as many runs as the chunk has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import StudyError
from ..regular_files import read_regular

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Of runs that replay a log: how many arms were used up, added up over agents, and how many agents stopped.
REPLAY_COLUMNS: Final = ("arms_used_up", "agents_stopped")
CURVES: Final = ("rounds", "regret_curve", "messages_curve")
_NAME: Final = re.compile(r"([0-9]{5,})-([0-9a-f]{32})\.parquet")


@dataclass(frozen=True)
class Layout:
    """How the runs of one stage of a study are laid out in shards.

    Attributes
    ----------
    fingerprint : str
        Of all that the study's numbers depend on: its spec, and what its network files hold.
    columns : mapping from str to str
        The label columns and their types.
    n_runs, chunk_size : int
        How many runs there are, and how many of them a chunk has; the last one may have fewer.
    first_chunk : int
        The number of the first of the chunks, which are those of earlier stages before it.
    """

    fingerprint: str
    columns: Mapping[str, str]
    n_runs: int
    chunk_size: int
    first_chunk: int = 0

    @property
    def n_chunks(self) -> int:
        """How many chunks the stage is cut into."""
        return -(-self.n_runs // self.chunk_size)

    def n_runs_of(self, number: int) -> int:
        """How many runs a chunk has."""
        return min(self.chunk_size, self.n_runs - (number - self.first_chunk) * self.chunk_size)

    def encode(self, number: int, rows: list[dict[str, Any]], n_failed: int) -> bytes:
        """The shard of a chunk; equal rows give equal bytes."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {"failed": str(n_failed), **self._identity(number)}
        schema = self.schema.with_metadata({f"banditmesh.{key}": value for key, value in about.items()})
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd", write_page_checksum=True)
        return bytes(sink.getvalue().to_pybytes())

    def parse(self, path: Path, number: int, content: bytes) -> pq.ParquetFile:
        """The shard of a chunk, or `StudyError` if this is none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(pa.BufferReader(content))
        except (pa.ArrowException, OSError):
            raise _damaged(path, "not a Parquet file") from None
        about = file.metadata.metadata or {}
        for key, value in self._identity(number).items():
            if about.get(f"banditmesh.{key}".encode()) != value.encode():
                raise _damaged(path, f"of another {key}")
        if not file.schema_arrow.equals(self.schema, check_metadata=False):
            raise _damaged(path, "other columns than the study's")
        if file.metadata.num_rows != self.n_runs_of(number):
            raise _damaged(path, f"{file.metadata.num_rows} runs instead of {self.n_runs_of(number)}")
        return file

    def _identity(self, number: int) -> dict[str, str]:
        return {"study": self.fingerprint, "chunk": str(number)}

    @property
    def schema(self) -> pa.Schema:
        """The columns of a shard and their types."""
        return _schema(tuple(self.columns.items()))


@dataclass(frozen=True)
class Layouts:
    """How all runs of a study are laid out in shards, stage by stage.

    Attributes
    ----------
    stages : sequence of Layout
        The first stage first; one if the study never grew.
    """

    stages: Sequence[Layout]

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return sum(stage.n_runs for stage in self.stages)

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""
        return sum(stage.n_chunks for stage in self.stages)

    def of(self, number: int) -> Layout:
        """The layout of the stage that a chunk belongs to."""
        return next(stage for stage in reversed(self.stages) if number >= stage.first_chunk)

    def n_runs_of(self, number: int) -> int:
        """How many runs a chunk has."""
        return self.of(number).n_runs_of(number)

    def open(self, path: Path) -> tuple[int, pq.ParquetFile]:
        """The number of a shard's chunk and the shard itself, or `StudyError` for anything but a whole one."""
        name = _NAME.fullmatch(path.name)
        number = int(name[1]) if name else -1
        if name is None or path.name != shard_name(number, name[2]) or number >= self.n_chunks:
            raise _damaged(path, "not the name of one of the study's shards")
        try:
            content = read_regular(path)
        except OSError as error:
            raise _damaged(path, error.strerror or str(error)) from None
        if digest(content) != name[2]:
            raise _damaged(path, "its bytes do not have the hash in its name")
        return number, self.of(number).parse(path, number, content)

    def read(self, file: pq.ParquetFile) -> pa.Table:
        """The runs of a shard, with the column types that the study has now."""
        table = file.read()
        schema = self.stages[-1].schema
        return table if len(self.stages) == 1 else table.cast(schema.with_metadata(table.schema.metadata))


def shard_name(number: int, hashed: str) -> str:
    """The file name of a chunk's shard whose bytes have this hash."""
    return f"{number:05d}-{hashed}.parquet"


def digest(content: bytes) -> str:
    """The hash of some bytes.

    Examples
    --------
    >>> digest(b"") != digest(b"0")
    True
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def has_failures(file: pq.ParquetFile) -> bool:
    """Whether any run of a shard failed."""
    return bool(file.metadata.metadata[b"banditmesh.failed"] != b"0")


@cache
def _schema(columns: tuple[tuple[str, str], ...]) -> pa.Schema:
    import pyarrow as pa

    from ..sim.run import TRAFFIC

    types = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64()}
    fields = [(name, pa.int64()) for name in ("run", "point", "replicate", "seed")]
    fields += [(name, types[kind]) for name, kind in columns]
    fields += [("regret", pa.float64()), ("messages", pa.int64())]
    fields += [(name, pa.int64()) for name in TRAFFIC]
    fields += [("error", pa.string())]
    curves = (pa.int64(), pa.float64(), pa.int64())
    fields += [(name, pa.list_(kind)) for name, kind in zip(CURVES, curves, strict=True)]
    return pa.schema(fields)


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(f"{path} is damaged ({why}); run the study again to compute it anew")
