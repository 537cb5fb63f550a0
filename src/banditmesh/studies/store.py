"""A study on disk: a folder with a manifest, and one Parquet shard for each finished chunk.

    study/
      manifest.json     spec, seeds, versions and state
      shards/00000-HASH.parquet ...
      table.csv         one row per run, written when the study is complete

Rules kept here: a file is written under another name, flushed to the disk and then moved there, so that it exists
whole or not at all; one process at a time writes to a folder; a shard that is not whole is never read as if it were,
and a study is complete only if all its shards are there and whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .. import checks, plots
from ..errors import StudyError, need
from ..files import atomic, locks
from ..files.contents import one_line
from ..text_tables import as_html
from .manifest import layouts_of, read_manifest
from .shards import CURVES, FREE, RATIO, digest, shard_name
from .summary import summary_rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure

    from .lines import Where
    from .worker import Shard


class Study:
    """A finished or unfinished study, read from its folder.

    Parameters
    ----------
    path : str or path
        The folder that `banditmesh run` or `run_study` wrote.
    max_bytes : int, optional
        How many bytes of memory its runs may take. If not given, 1 GiB and 250 times what they take on disk, so that a
        small folder from an untrusted source cannot fill the memory.

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

    def __init__(self, path: str | PathLike[str], *, max_bytes: int | None = None) -> None:
        self.path = checked_folder(path)
        self._max_bytes = None if max_bytes is None else checks.integer("max_bytes", max_bytes, at_least=1)
        self.manifest = read_manifest(self.path)
        self._layouts = layouts_of(self.manifest)

    @property
    def n_done(self) -> int:
        """How many runs are done, in whole shards; reads every shard."""
        found: Counter[int] = Counter()
        for path in list_shards(self.path):
            with suppress(StudyError):
                found[self._layouts.open(path).number] += 1
        return sum(self._layouts.n_runs_of(number) for number, n_shards in found.items() if n_shards == 1)

    @property
    def is_complete(self) -> bool:
        """Whether all runs are done; reads every shard."""
        return self.n_done == self._layouts.n_runs

    def table(self, partial: bool = False) -> pd.DataFrame:
        """One row per run: swept keys, replicate, seed, regret, transmissions (`messages`), traffic, and why it failed.

        Parameters
        ----------
        partial : bool
            Of a study that is not complete, give the runs that are there; otherwise it is an error.
        """
        return self.read(partial)[0]

    def curves(self, partial: bool = False) -> pd.DataFrame:
        """One row per run and recorded round, with cumulative regret and transmissions; empty without `record_every`.

        Parameters
        ----------
        partial : bool
            As for `table`.
        """
        _, curves = self.read(partial, curves=True)
        assert curves is not None
        return curves

    def read(self, partial: bool = False, curves: bool = False) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """The table and, if wanted, the curves; every shard is read once for both."""
        need("pandas", "tables", "a table")
        need("pyarrow", "tables", "a table")
        import pyarrow as pa

        # Made into rows once for all shards, of which there may be thousands with few runs each.
        runs = pa.concat_tables(self.shards(partial, curves)).to_pandas()
        table = runs.drop(columns=list(CURVES), errors="ignore")
        if not curves:
            return table, None
        lines = runs[runs["rounds"].notna()].drop(columns=["regret", "messages"])
        lines = lines.rename(columns={"rounds": "round", "regret_curve": "regret", "messages_curve": "messages"})
        lines = lines.explode(["round", "regret", "messages"], ignore_index=True)
        return table, lines.astype({"round": "int64", "regret": "float64", "messages": "int64"})

    def plot(
        self,
        kind: str = "curves",
        x: str | None = None,
        *,
        where: Where | None = None,
        by: str | Sequence[str] | None = None,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        log: str = "",
        band: str = "sd",
        colors: plots.Chosen | None = None,
        styles: plots.Chosen | None = None,
    ) -> Figure:
        """Plot the finished runs; `banditmesh plot` writes all pictures.

        Parameters
        ----------
        kind : str
            "curves", group regret and transmissions over the rounds, for a study with `record_every`; "sweep", both at
            the horizon over a swept key; or "tradeoff", one against the other at the horizon.
        x : str, optional
            The key of "sweep", such as "protocol.ttl"; the first swept one with numbers if not given.
        where : mapping, optional
            Which runs to draw, by the columns of the table: `{"network": "ring(n=5)", "protocol.ttl": [2, 4]}`. Runs
            that have no value of a key, as those of `none` have no ttl, are kept.
        by : str or sequence of str, optional
            The columns that tell lines apart; all that vary, but x, if not given. What a line would mix must be given
            here or in `where`: bands are of replicates alone.
        ax : axes or sequence of axes, optional
            Where to draw instead of in a new figure; two of them but for "tradeoff".
        figsize : (float, float), optional
            Width and height of the new figure in inches; below 5 inches panels are put one below the other.
        log : str
            Which axes are logarithmic: "", "x", "y" or "xy"; the horizontal one of "tradeoff" always is.
        band : str
            What bands and bars are: "sd", one standard deviation; "ci", 95 % confidence intervals; or "none".
        colors, styles : dict, sequence or str, optional
            Colours and line styles: by the names of lines, or one after the other. If not given, the cycle that you
            set in `rcParams["axes.prop_cycle"]`, or else each protocol's own.
        """
        from .pictures import plot_study

        return plot_study(self, kind, x, plots.Look(ax, figsize, log, band, colors, styles), where=where, by=by)

    def report(self, path: str | PathLike[str], command: str = "") -> None:
        """Write one HTML file that opens offline: what came out, figures, a table, and the spec to repeat it.

        Parameters
        ----------
        path : str or path
            The file.
        command : str
            The command line that gives the same, to be repeated.
        """
        from .report import write_study

        write_study(self, Path(path), command)

    def _repr_html_(self) -> str:
        table = self.table(partial=True) if list_shards(self.path) else ()
        about = f"{self.manifest['spec']['name']}: {len(table)} of {self._layouts.n_runs} runs, in {self.path}"
        rows, hidden = summary_rows(table) if len(table) else ([], 0)
        return as_html(about, rows, [f"... and {hidden} more points"] if hidden else [])

    def shards(self, partial: bool = False, curves: bool = True) -> Iterator[pa.Table]:
        """The finished shards in order, one at a time; there is at least one, and all unless `partial` is allowed.

        Parameters
        ----------
        partial : bool
            As for `table`.
        curves : bool
            Whether they have their curves.
        """
        if read_manifest(self.path)["fingerprint"] != self.manifest["fingerprint"]:
            raise StudyError(f"the study in {self.path} has grown since it was read; read it again with Study(path)")
        paths = list_shards(self.path)
        if not paths:
            raise StudyError(f"{self.path} holds no finished runs yet; run the study first")
        if len(paths) < self._layouts.n_chunks and not partial:
            raise StudyError(
                f"{self.path} holds {self.n_done} of {self._layouts.n_runs} runs; run the study again to complete it, "
                "or ask for what is there with partial=True"
            )
        latest = -1
        room = FREE if self._max_bytes is None else self._max_bytes
        for path in paths:
            shard = self._layouts.open(path)
            if shard.number == latest:
                raise StudyError(f"{path} is one of two shards of a chunk; run the study again to keep one of them")
            latest = shard.number
            room += RATIO * len(shard.content) if self._max_bytes is None else 0
            table, n_bytes = self._layouts.read(shard, room, curves)
            room -= n_bytes
            yield table

    def __repr__(self) -> str:
        # As the manifest said when it was read: a repr opens no file.
        name, state = self.manifest["spec"].get("name"), self.manifest["state"]
        done = f"{self.manifest['n_done']} of " if state in ("interrupted", "stopped") else ""
        return f"<Study {name!r}: {done}{self._layouts.n_runs} runs, {state}>"


def checked_folder(path: str | PathLike[str]) -> Path:
    """A study's folder, which may have any name that a file system takes."""
    folder = Path(path)
    if "\0" in str(folder):
        raise StudyError(f"a study's folder must have no null character in its name, got {str(folder)!r}")
    return folder


def list_shards(folder: Path) -> list[Path]:
    """All shards of a study, by their numbers, and whatever else is called .parquet, but for hidden files."""
    found = [path for path in (folder / "shards").glob("*.parquet") if not path.name.startswith(".")]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def write_shard(folder: Path, shard: Shard) -> None:
    """Write a finished chunk, whole or not at all."""
    write_whole(folder / "shards" / shard_name(shard.number, digest(shard.content)), shard.content)


def set_aside(path: Path) -> Path:
    """Rename a file that is no shard of the study, so that it is not taken for one."""
    aside = path.with_suffix(".damaged")
    try:
        return path.replace(aside)
    except OSError as error:
        raise StudyError(f"cannot set {path} aside: {error.strerror or error}; move it away and run again") from None


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    write_whole(folder / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())


def write_table(study: Study) -> None:
    """Write `table.csv`, one row per run, shard by shard."""
    need("pyarrow", "tables", "a file of a table")
    import pyarrow.csv as csv

    with writing(study.path / "table.csv") as stream:
        for number, shard in enumerate(study.shards(curves=False)):
            csv.write_csv(shard, stream, csv.WriteOptions(include_header=number == 0))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a file that appears under its name only when it is whole and on the disk."""
    try:
        with atomic.writing(path, durable=True) as stream:
            yield stream
    except OSError as error:
        raise StudyError(
            f"cannot write {path}: {error.strerror or one_line(error)}; what was finished before is kept, "
            "make room and run again"
        ) from None


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
            locks.take(stream.fileno())
        except OSError:
            raise StudyError(
                f"{folder} is in use by another run of a study; wait for it to end, or choose another folder"
            ) from None
        _remove_partials(folder)
        yield


def _remove_partials(folder: Path) -> None:
    """Remove what a killed process left half written; no other process writes while the lock is held."""
    for partial in [*folder.glob(f".*{atomic.PARTIAL}"), *(folder / "shards").glob(f".*{atomic.PARTIAL}")]:
        partial.unlink(missing_ok=True)
