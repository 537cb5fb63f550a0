"""A shard: the runs of one finished chunk, as a Parquet file that says what it is.

Rules kept here: the hash of a shard's bytes is part of its name, so that both appear in one move and nothing else has
to be kept in step with them. A shard is taken only if its bytes have that hash, and if it says of itself that it
belongs to this study and this chunk, with this study's columns and as many runs as the chunk has. How much room its
runs take is known before they are unpacked: a small file from an untrusted source must not fill the memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import StudyError, need
from ..files.parquet_sizes import unpacked_bytes
from ..files.regular import read_regular

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Of runs that replay a log: how many arms were used up, added up over agents, and how many agents stopped.
REPLAY_COLUMNS: Final = ("arms_used_up", "agents_stopped")
#: Of runs whose arms change: the rounds in which some did, as far as results keep them.
CHANGES_COLUMN: Final = "changes"
#: The columns that runs of one point may differ in, so that they tell no points apart.
_OUTCOMES: Final = (*REPLAY_COLUMNS, CHANGES_COLUMN)
CURVES: Final = ("rounds", "regret_curve", "messages_curve")
#: How many bytes all runs of a study may take in memory: this many, and more if there is much on disk. Ordinary curves
#: take about a hundred times what they take on disk, since labels are repeated for each of their points.
FREE: Final = 2**30
RATIO: Final = 250
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
        need("pyarrow", "tables", "a file of a table")
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {"failed": str(n_failed), **self._identity(number)}
        schema = self.schema.with_metadata({f"banditmesh.{key}": value for key, value in about.items()})
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd", write_page_checksum=True)
        return bytes(sink.getvalue().to_pybytes())

    def parse(self, path: Path, number: int, content: bytes) -> pq.ParquetFile:
        """The shard of a chunk, or `StudyError` if this is none."""
        need("pyarrow", "tables", "a file of a table")
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # As dictionaries, so that a long text that is repeated is held once.
            texts = [one.name for one in self.schema if one.type == pa.string()]
            file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        except (pa.ArrowException, OSError):
            raise _damaged(path, "not a Parquet file") from None
        about = file.metadata.metadata or {}
        for key, value in self._identity(number).items():
            if about.get(f"banditmesh.{key}".encode()) != value.encode():
                raise _damaged(path, f"of another {key}")
        if not _plain(file.schema_arrow).equals(self.schema, check_metadata=False):
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

    def open(self, path: Path) -> Opened:
        """Open a shard; `StudyError` if it is not a whole one of this study."""
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
        return Opened(number, self.of(number).parse(path, number, content), path, content)

    def read(self, shard: Opened, room: int, curves: bool = True) -> tuple[pa.Table, int]:
        """The runs of a shard, with the column types that the study has now, and how many bytes of memory they take.

        Parameters
        ----------
        shard : Opened
            The shard.
        room : int
            How many bytes they may take; more is a `StudyError`, before they are unpacked.
        curves : bool
            Whether to read curves, too.
        """
        need("pyarrow", "tables", "a file of a table")
        import pyarrow as pa

        schema = self.stages[-1].schema
        if not curves:
            schema = pa.schema([field for field in schema if field.name not in CURVES])
        try:
            n_bytes = shard.n_bytes(curves)
            if n_bytes <= room:
                table = shard.file.read(schema.names, use_threads=False)
                n_bytes += sum(map(_text_bytes, table.columns))
        except (pa.ArrowException, OSError, ValueError):
            raise _damaged(shard.path, "its pages cannot be read") from None
        if n_bytes > room:
            raise StudyError(
                f"{shard.path} must unpack to at most {room:,} bytes, got {n_bytes:,} from {len(shard.content):,}; "
                "if you trust the study, read it with Study(path, max_bytes=...)"
            )
        return table.cast(schema.with_metadata(table.schema.metadata)), n_bytes


class Opened(NamedTuple):
    """A shard whose runs are not unpacked yet: the number of its chunk, the file, its path and its bytes."""

    number: int
    file: pq.ParquetFile
    path: Path
    content: bytes

    def n_bytes(self, curves: bool) -> int:
        """How many bytes of memory its runs take, before texts are repeated; each point of a curve becomes a row."""
        metadata = self.file.metadata
        found = unpacked_bytes(self.content, metadata, () if curves else CURVES)
        if curves:
            groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
            found += 8 * metadata.num_columns * sum(_n_points(group) for group in groups)
        return found


def point_columns(columns: Sequence[str] | Mapping[str, str]) -> list[str]:
    """Those of a study's columns that tell points apart.

    Examples
    --------
    >>> point_columns(["protocol", "policy.alpha", "changes"])
    ['protocol', 'policy.alpha']
    """
    return [name for name in columns if name not in _OUTCOMES]


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
    need("pyarrow", "tables", "a file of a table")
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


def _n_points(group: Any) -> int:
    columns = (group.column(number) for number in range(group.num_columns))
    return max(int(column.num_values) for column in columns if column.path_in_schema.partition(".")[0] in CURVES)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The same columns with texts for dictionaries of texts."""
    need("pyarrow", "tables", "a file of a table")
    import pyarrow as pa

    def plain(field: pa.Field) -> pa.Field:
        return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field

    return pa.schema([plain(field) for field in schema])


def _text_bytes(column: pa.ChunkedArray) -> int:
    """How many bytes the texts of a column take when repeated in each row."""
    need("pyarrow", "tables", "a file of a table")
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(each).as_py() or 0 for each in lengths)


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(f"{path} is damaged ({why})", remedy="run the study again to compute it again")
