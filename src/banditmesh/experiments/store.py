"""A study on disk: a folder with a manifest, and one Parquet shard for each finished chunk.

    study/
      manifest.json     spec, seeds, versions and state
      shards/00000.parquet ...
      table.csv         one row per run, written when the study is complete

Rules kept here: a file is written beside its final name, flushed to the disk and then moved there, so that it exists
whole or not at all; one process at a time writes to a folder; a shard that is not whole is never read as if it were.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ..errors import StudyError
from ..version import __version__

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .spec import Spec
    from .worker import Shard

FORMAT: Final = "banditmesh-study"
VERSION: Final = 1
#: The most replicates whose seeds a manifest lists.
MOST_SEEDS: Final = 1000
CURVES: Final = ("rounds", "regret_curve", "messages_curve")


class Study:
    """A finished or unfinished study, read from its folder.

    Parameters
    ----------
    path : str or path
        The folder that `banditmesh run` or `run_study` wrote.

    Attributes
    ----------
    manifest : dict
        Spec, seeds, versions and state.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> spec = bm.parse_spec('''
    ... horizon = 20
    ... replicates = 2
    ... network = {name = "ring", n = 6}
    ... arms = {n_arms = 4, per_agent = 2}
    ... sweep.protocol.name = ["none", "irs"]
    ... ''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = bm.run_study(spec, folder, workers=1)
    ...     study.table()[["protocol", "replicate", "messages"]]
      protocol  replicate  messages
    0     none          0         0
    1     none          1         0
    2      irs          0       240
    3      irs          1       240
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(self.path)

    @property
    def is_complete(self) -> bool:
        """Whether all runs are there."""
        return bool(self.manifest["state"] == "complete")

    def table(self) -> pd.DataFrame:
        """One row per run: swept keys, replicate, seed, regret, messages, traffic, and the error of a failed run."""
        import pandas as pd

        parts = [shard.drop_columns(CURVES).to_pandas() for shard in self.shards()]
        if not parts:
            raise StudyError(f"{self.path} holds no finished runs yet; run the study first")
        table: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return table

    def curves(self) -> pd.DataFrame:
        """One row per run and recorded round, with cumulative regret and messages; empty without `record_every`."""
        import pandas as pd

        parts = []
        for shard in self.shards():
            frame = shard.to_pandas()
            frame = frame[frame["rounds"].notna()].drop(columns=["regret", "messages"])
            frame = frame.rename(columns={"rounds": "round", "regret_curve": "regret", "messages_curve": "messages"})
            parts.append(frame.explode(["round", "regret", "messages"], ignore_index=True))
        if not parts:
            raise StudyError(f"{self.path} holds no finished runs yet; run the study first")
        types = {"round": "int64", "regret": "float64", "messages": "int64"}
        curves: pd.DataFrame = pd.concat(parts, ignore_index=True).astype(types)
        return curves

    def shards(self) -> Iterator[pa.Table]:
        """The finished shards in order, one at a time."""
        for number in range(self.manifest["n_chunks"]):
            path = shard_path(self.path, number)
            if path.exists():
                yield read_shard(path)

    def __repr__(self) -> str:
        return f"<Study {self.manifest['spec']['name']!r}: {self.manifest['n_runs']} runs, {self.manifest['state']}>"


def shard_path(folder: Path, number: int) -> Path:
    """Where the shard of a chunk lies."""
    return folder / "shards" / f"{number:05d}.parquet"


def read_shard(path: Path) -> pa.Table:
    """A whole shard, or `StudyError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise StudyError(f"{path} is damaged ({_first_line(error)}); run the study again to compute it anew") from None


def shard_state(path: Path, digest: str, n_runs: int) -> str:
    """What is known of a shard: "missing", "damaged", "failed" if any of its runs did, or "done"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return "missing"
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return "damaged"
    about = footer.metadata or {}
    if about.get(b"banditmesh.study") != digest.encode() or footer.num_rows != n_runs:
        return "damaged"
    return "done" if about.get(b"banditmesh.failed") == b"0" else "failed"


def new_manifest(spec: Spec, chunk_size: int, networks: dict[str, str]) -> dict[str, Any]:
    """The manifest of a study that begins."""
    n_runs = spec.n_runs
    return {
        "format": FORMAT,
        "version": VERSION,
        "state": "running",
        "spec": spec.to_json(),
        "digest": spec.digest,
        "network_files": networks,
        # Enough to repeat runs by hand; the table has them all, and `replicate_seed` gives any.
        "seeds": [spec.seed_of(replicate) for replicate in range(min(spec.settings.replicates, MOST_SEEDS))],
        "n_points": spec.n_points,
        "n_runs": n_runs,
        "chunk_size": chunk_size,
        "n_chunks": -(-n_runs // chunk_size),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What the numbers may depend on."""
    from importlib.metadata import version

    packages = ("numpy", "numba", "networkx", "scipy", "pyarrow")
    return {
        "banditmesh": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "platform": f"{platform.system()} {platform.machine()}",
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a study's folder, or `StudyError`."""
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT:
            raise KeyError("format")
        version = manifest["version"]
    except FileNotFoundError:
        raise StudyError(f"{folder} must be a study's folder, got no manifest.json in it; run a study first") from None
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"{path} is not a study's manifest, or is damaged; run the study into a new folder") from None
    if version != VERSION:
        raise StudyError(
            f"{folder} has study format {version!r}, this banditmesh reads {VERSION}; "
            "use the banditmesh that began it, or a new folder"
        )
    return dict(manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    write_whole(folder / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())


def write_shard(folder: Path, shard: Shard) -> None:
    """Write a finished chunk, whole or not at all."""
    write_whole(shard_path(folder, shard.number), shard.content)


def write_table(study: Study) -> None:
    """Write `table.csv`, one row per run, shard by shard."""
    import pyarrow.csv as csv

    with writing(study.path / "table.csv") as stream:
        for number, shard in enumerate(study.shards()):
            csv.write_csv(shard.drop_columns(CURVES), stream, csv.WriteOptions(include_header=number == 0))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a file that appears under its name only when it is whole and on the disk."""
    partial = None
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            # Before the move, or a power cut could leave an empty file under the final name. That the move itself may
            # be lost is no harm: the shard is then missing, and computed again.
            os.fsync(stream.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
        partial = None
    except OSError as error:
        raise StudyError(
            f"cannot write {path}: {error.strerror or _first_line(error)}; what was finished before is kept, "
            "make room and run again"
        ) from None
    finally:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Make the folder, and hold it for this process; another that holds it is an error, a dead one is not."""
    try:
        (folder / "shards").mkdir(parents=True, exist_ok=True)
        stream = open(folder / ".lock", "ab")  # noqa: SIM115 (held until the end of the block)
    except OSError as error:
        raise StudyError(
            f"cannot write to {folder}: {error.strerror or error}; choose a folder that can be written"
        ) from None
    with stream:
        try:
            _take(stream)
        except OSError:
            raise StudyError(
                f"{folder} is in use by another run of a study; wait for it to end, or choose another folder"
            ) from None
        _remove_partials(folder)
        yield


def _take(stream: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_partials(folder: Path) -> None:
    """Remove what a killed process left half written; nobody else writes while the lock is held."""
    for partial in [*folder.glob(".*.partial"), *(folder / "shards").glob(".*.partial")]:
        partial.unlink(missing_ok=True)


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
