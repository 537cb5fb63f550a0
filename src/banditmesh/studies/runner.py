"""Runs a study on any executor, and continues one that was stopped.

Rules kept here: the parent holds a few chunks at a time, whatever the size of the study; what a chunk gives depends on
the spec and its network files alone, so the table is the same on any executor, with any number of workers, and after
any interruption.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import StudyError
from ..regular_files import read_regular
from . import store
from .executors import count_cores, open_executor, read_name
from .manifest import layout_of, new_manifest, read_manifest, versions
from .parts import FileTable, read_files
from .shards import digest, has_failures
from .spec import Spec
from .store import Study
from .worker import Chunk, Shard, Work, run_chunk

#: Called with the number of runs done, the number in all, and how many of them failed.
RunProgress: TypeAlias = Callable[[int, int, int], None]

_CHUNKS: Final = 100  # about how many chunks a study is cut into
_LARGEST_CHUNK: Final = 1000
#: More than any machine has cores.
MOST_WORKERS: Final = 10_000


def run_study(
    spec: Spec,
    out: str | PathLike[str],
    *,
    executor: Executor | str | None = None,
    workers: int | None = None,
    fail_fast: bool = False,
    progress: RunProgress | None = None,
    notice: Callable[[str], None] | None = None,
) -> Study:
    """Run a study, or what is left of it.

    Parameters
    ----------
    spec : Spec
        What to run, from `read_spec`.
    out : str or path
        The study's folder. If it holds the same study, only what is missing or failed is run.
    executor : concurrent.futures.Executor or str, optional
        Where to run: any executor, "dask", "dask:ADDRESS", "ray" or "ray:ADDRESS"; local processes if not given.
    workers : int, optional
        How many local processes, or how many chunks to keep in work on an executor of your own; by default one per
        core.
    fail_fast : bool
        Stop at the first run that fails. Otherwise its error is kept and the rest goes on.
    progress : callable, optional
        Called with the number of runs done, the number in all, and how many of them failed.
    notice : callable, optional
        Called with a line for the user, such as that a damaged shard is computed again, or that runs are computed with
        other versions of numeric libraries than the study began with.

    Returns
    -------
    Study

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> spec = bm.parse_spec('''
    ... horizon = 20
    ... replicates = 2
    ... network = {name = "ring", n = 6}
    ... arms = {n_arms = 4, per_agent = 2}
    ... ''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bm.run_study(spec, folder, workers=1)
    <Study 'study': 2 runs, complete>
    """
    folder = store.checked_folder(out)
    if workers is not None:
        workers = checks.integer("workers", workers, at_least=1, at_most=MOST_WORKERS)
    if not isinstance(executor, Executor):
        read_name(executor, workers)
    with store.lock(folder):
        hashes, networks = _read_files(spec)
        manifest = _begin_or_continue(folder, spec, hashes)
        course = _Course(folder, spec, manifest, networks, fail_fast, progress, notice)
        try:
            if isinstance(executor, Executor):
                course.run(executor, workers or count_cores())
            elif course.missing():
                with open_executor(executor, workers) as (opened, n_workers):
                    course.run(opened, n_workers)
            store.write_table(Study(folder))
        except BaseException as error:
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "stopped"
            course.close(state, quietly=True)
            raise
        course.close("complete")
    return Study(folder)


class _Course:
    """One course of a study: from what the folder holds to what is left."""

    def __init__(
        self,
        folder: Path,
        spec: Spec,
        manifest: dict[str, Any],
        networks: dict[FileTable, Any],
        fail_fast: bool,
        progress: RunProgress | None,
        notice: Callable[[str], None] | None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._manifest = manifest
        self._layout = layout_of(manifest)
        self._networks = networks
        self._fail_fast = fail_fast
        self._progress = progress or (lambda done, total, failed: None)
        self._notice = notice or (lambda line: None)
        self._todo = bytearray(b"\1") * self._layout.n_chunks
        self._with_failures: dict[int, Path] = {}
        self._done = 0
        self._failed = 0
        self._seconds = 0.0
        self._began = time.perf_counter()
        self._look()

    def missing(self) -> bool:
        """Whether anything is left to run."""
        return any(self._todo)

    def run(self, executor: Executor, n_workers: int) -> None:
        """Run what is left, a few chunks at a time."""
        if self.missing():
            self._note_versions(versions())
        self._progress(self._done, self._manifest["n_runs"], self._failed)
        chunks = self._chunks()
        # One chunk in work and one waiting for each worker keeps them busy while the parent writes.
        pending: set[Future[Shard]] = set()
        for chunk in itertools.islice(chunks, 2 * n_workers):
            pending.add(self._submit(executor, chunk))
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                self._keep(self._result(future))
                for chunk in itertools.islice(chunks, 1):
                    pending.add(self._submit(executor, chunk))

    def close(self, state: str, quietly: bool = False) -> None:
        """Write down how the study stands."""
        self._manifest |= {"state": state, "n_done": self._done, "n_failed": self._failed}
        if self._seconds:
            self._manifest["latest_course"] = {
                "work_seconds": round(self._seconds, 3),
                "wall_seconds": round(time.perf_counter() - self._began, 3),
            }
        try:
            store.write_manifest(self._folder, self._manifest)
        except StudyError:
            if not quietly:
                raise

    def _look(self) -> None:
        """See which chunks are there; what is damaged is set aside, and what has failures is run again."""
        for path in store.list_shards(self._folder):
            try:
                number, file = self._layout.open(path)
            except StudyError as error:
                self._set_aside(path, str(error).rpartition(";")[0])
                continue
            if number in self._with_failures or not self._todo[number]:
                self._set_aside(path, f"{path} is one of two shards of a chunk")
            elif has_failures(file):
                self._with_failures[number] = path
            else:
                self._todo[number] = 0
                self._done += self._layout.n_runs_of(number)

    def _set_aside(self, path: Path, why: str) -> None:
        aside = store.set_aside(path)
        self._notice(f"{why}: set aside as {aside.name}, and what is missing is computed again")

    def _note_versions(self, used: Mapping[str, str]) -> None:
        """Say so, and keep it, if runs are computed with other versions than those that the study began with.

        The numbers are very likely the same, and a long study should not be lost because a library was updated; so
        this is no error. But banditmesh itself must be the same.
        """
        began, others = self._manifest["versions"], self._manifest["continued_with"]
        if used == began or used in others:
            return
        _refuse_other_banditmesh(self._folder, began, used)
        changed = [f"{name} {one} instead of {began.get(name)}" for name, one in used.items() if began.get(name) != one]
        self._notice(
            f"the study in {self._folder} continues with {', '.join(changed)}; runs from before and from now may "
            "differ in their last digits"
        )
        others.append(dict(used))
        store.write_manifest(self._folder, self._manifest)

    def _chunks(self) -> Iterator[Chunk]:
        """The chunks that are left, made as they are needed."""
        size = self._layout.chunk_size
        replicates, seed_of = self._spec.settings.replicates, self._spec.seed_of
        work: list[Work] = []
        for point in self._spec.points():
            first = point.number * replicates
            for number in range(first // size, (first + replicates - 1) // size + 1):
                # The replicates of this point that belong to this chunk.
                begin, end = max(first, number * size), min(first + replicates, (number + 1) * size)
                runs = [(run, run - first, seed_of(run - first)) for run in range(begin, end)]
                work.append(Work(point.number, point.settings, point.labels, runs))
                if end == min((number + 1) * size, self._layout.n_runs):
                    if self._todo[number]:
                        yield self._chunk(number, work)
                    work = []

    def _chunk(self, number: int, work: list[Work]) -> Chunk:
        return Chunk(number, work, self._layout, self._networks, self._spec.settings.record_every)

    # An executor of any kind says in its own way that its workers or its scheduler are gone; a chunk itself does not
    # fail, since an error of a run is a row of its shard.

    def _submit(self, executor: Executor, chunk: Chunk) -> Future[Shard]:
        try:
            return executor.submit(run_chunk, chunk)
        except Exception as error:
            raise self._broken(error) from error

    def _result(self, future: Future[Shard]) -> Shard:
        try:
            return future.result()
        except Exception as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> StudyError:
        what = f"a chunk was lost with {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if isinstance(error, BrokenExecutor):
            what = f"a worker died, perhaps for lack of memory ({type(error).__name__})"
        elif isinstance(error, CancelledError):
            what = "the executor gave up a chunk, perhaps because its scheduler is gone (CancelledError)"
        return StudyError(
            f"{what}; {self._done} of {self._manifest['n_runs']} runs are kept, "
            "run again with fewer workers to continue"
        )

    def _keep(self, shard: Shard) -> None:
        self._note_versions(shard.versions)
        if shard.number in self._with_failures:
            self._with_failures.pop(shard.number).unlink(missing_ok=True)
        store.write_shard(self._folder, shard)
        self._todo[shard.number] = 0
        self._done += shard.n_runs
        self._failed += len(shard.errors)
        self._seconds += shard.seconds
        self._progress(self._done, self._manifest["n_runs"], self._failed)
        if shard.errors and self._fail_fast:
            raise StudyError(f"a run failed: {shard.errors[0]}; {self._done} runs are kept, run again to continue")


def _begin_or_continue(folder: Path, spec: Spec, networks: dict[str, str]) -> dict[str, Any]:
    """The manifest of the study in a folder, which is begun if the folder is empty."""
    if not (folder / "manifest.json").exists():
        strangers = [path.name for path in folder.iterdir() if path.name not in (".lock", "shards")]
        if strangers or any((folder / "shards").iterdir()):
            raise StudyError(
                f"{folder} must be empty or hold a study, got {(strangers or ['shards'])[0]}; choose another folder"
            )
        size = max(1, min(spec.n_runs // _CHUNKS, _LARGEST_CHUNK))
        manifest = new_manifest(spec, size, networks)
        store.write_manifest(folder, manifest)
        return manifest
    manifest = read_manifest(folder)
    if manifest["digest"] != spec.digest:
        key = _first_difference(manifest["spec"], spec.to_json())
        raise StudyError(f"{folder} holds another study ({key} differs); choose another folder")
    if manifest["network_files"] != networks:
        raise StudyError(
            f"the files of networks or arms have changed since the study in {folder} began; choose another folder"
        )
    _refuse_other_banditmesh(folder, manifest["versions"], versions())
    expected = new_manifest(spec, manifest["chunk_size"], networks)
    for key in ("seeds", "n_points", "columns"):
        if manifest[key] != expected[key]:
            raise StudyError(f"{folder}/manifest.json is damaged ({key} are not the spec's); choose another folder")
    return manifest


def _refuse_other_banditmesh(folder: Path, began: Mapping[str, str], used: Mapping[str, str]) -> None:
    ours, theirs = used["banditmesh"], began["banditmesh"]
    if ours != theirs:
        raise StudyError(
            f"the study in {folder} was begun with banditmesh {theirs}, this is {ours}; "
            "continue it with that version, or choose another folder"
        )


def _first_difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    return next((key for key in ours if ours[key] != theirs.get(key)), "the spec")


def _read_files(spec: Spec) -> tuple[dict[str, str], dict[FileTable, Any]]:
    """The files' hashes, by their paths in the spec, and what they hold, which is of the same content."""
    files = spec.files()
    hashes = {dict(named)["path"]: _hash(path) for named, path in files.items()}
    networks = read_files(files)
    for named, path in files.items():
        if _hash(path) != hashes[dict(named)["path"]]:
            raise StudyError(f"{path} changed while it was read; run again when it no longer does")
    return hashes, networks


def _hash(path: Path) -> str:
    try:
        return digest(read_regular(path))
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
