"""Runs a study on any executor, continues one that was stopped, and extends one.

Rules kept here: the parent holds a few chunks at a time, whatever the size of the study; what a chunk gives depends on
the spec and its network files alone, so the table is the same on any executor, with any number of workers, and after
any interruption. How a study grows is in `stages`: nothing that is stored is computed again, nor given another number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import InputError, StudyError, need
from ..files.regular import read_regular
from ..machine.executors import MAX_WORKERS, in_turn, open_executor, read_name
from ..policies import choice
from ..settings.problems import FileTable, read_files
from . import store
from .manifest import layouts_of, new_manifest, read_manifest, stages_of, versions
from .shards import Layout, digest, has_failures
from .spec import Spec
from .stages import Asked, compare, stored_spec, work_of
from .store import Study
from .worker import Chunk, Shard, Work, run_chunk

#: Called with the number of runs done, the number in all, and how many of them failed.
RunProgress: TypeAlias = Callable[[int, int, int], None]

_CHUNKS: Final = 100  # about how many chunks a study is cut into
_LARGEST_CHUNK: Final = 1000


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
        The study's folder. If it holds the same study, or one with fewer replicates or swept values, only what is
        missing or failed is run.
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
        Called with a line for the user, such as that the study grows, that a damaged shard is computed again, or that
        runs are computed with other versions of numeric libraries than the study began with. That another policy
        would fit the arms better is a warning if there is no `notice`.

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
    if not isinstance(spec, Spec):
        raise InputError(
            f"spec must be a Spec, got {checks.shown(spec)}; read a file with read_spec, text with parse_spec"
        )
    need("pyarrow", "tables", "a study")
    checks.callback("progress", progress)
    checks.callback("notice", notice)
    folder = store.checked_folder(out)
    if workers is not None:
        workers = checks.integer("workers", workers, at_least=1, at_most=MAX_WORKERS)
    if not isinstance(executor, Executor):
        read_name(executor, workers)
    chosen = spec.chooses_policy  # which a stored spec does not say
    warns, notice = notice is None, notice or (lambda line: None)
    with store.lock(folder):
        stored = _stored(folder)
        asked = Asked.MORE if stored is None else _compared(folder, stored, spec)
        if stored is not None and asked is not Asked.MORE:
            spec = stored_spec(stored, spec.folder)  # in the order in which it was begun
        hashes, networks = _read_files(spec)
        if not chosen and _pays_rates(spec, networks):
            advice = f"{choice.ADVICE}: [policy] in the spec"
            choice.warn_once(advice) if warns else notice(advice)
        if stored is None:
            manifest = new_manifest(spec, _chunk_size(spec.n_runs), hashes)
            store.write_manifest(folder, manifest)
        elif asked is Asked.MORE:
            manifest = _grow(folder, stored, spec, hashes)
            notice(f"the study in {folder} grows from {stored['n_runs']} to {manifest['n_runs']} runs")
        else:
            manifest = stored
            _check_continued(folder, stored, spec, hashes)
            if asked is Asked.LESS:
                notice(f"the study in {folder} has {stored['n_runs']} runs, more than the spec asks for; all are kept")
        course = _Course(folder, spec.folder, manifest, networks, fail_fast, progress, notice)
        try:
            if course.missing():
                with open_executor(executor, workers) as opened:
                    course.run(*opened)
            store.write_table(Study(folder))
        except BaseException as error:
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "stopped"
            course.close(state, quietly=True)
            raise
        course.close("complete")
    return Study(folder)


class _Course:
    """One run of a study, from what its folder holds to the end."""

    def __init__(
        self,
        folder: Path,
        files: Path,
        manifest: dict[str, Any],
        networks: dict[FileTable, Any],
        fail_fast: bool,
        progress: RunProgress | None,
        notice: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._stages = [stored_spec(stage, files) for stage in stages_of(manifest)]
        self._own_texts = self._stages[-1].own_texts()
        self._manifest = manifest
        self._layouts = layouts_of(manifest)
        self._networks = networks
        self._fail_fast = fail_fast
        self._progress = progress or (lambda done, total, failed: None)
        self._notice = notice
        self._todo = bytearray(b"\1") * self._layouts.n_chunks
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
        self._note_versions(versions())
        self._progress(self._done, self._manifest["n_runs"], self._failed)
        for _, shard in in_turn(executor, run_chunk, enumerate(self._chunks()), n_workers, self._remedy):
            self._keep(shard)

    def _remedy(self) -> str:
        kept = f"{self._done} of {self._manifest['n_runs']} runs are kept"
        return f"{kept}, run again with fewer workers to continue"

    def close(self, state: str, quietly: bool = False) -> None:
        """Write the state of the study to its manifest."""
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
        """Find the chunks that are done; damaged shards are set aside, and those with failures are run again."""
        for path in store.list_shards(self._folder):
            try:
                number, file, *_ = self._layouts.open(path)
            except StudyError as error:
                self._set_aside(path, error.what)
                continue
            if number in self._with_failures or not self._todo[number]:
                self._set_aside(path, f"{path} is one of two shards of a chunk")
            elif has_failures(file):
                self._with_failures[number] = path
            else:
                self._todo[number] = 0
                self._done += self._layouts.n_runs_of(number)

    def _set_aside(self, path: Path, why: str) -> None:
        aside = store.set_aside(path)
        self._notice(f"{why}: set aside as {aside.name}, and what is missing is computed again")

    def _note_versions(self, used: Mapping[str, str]) -> None:
        """Note it if runs are computed with other versions than those that the study began with.

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
        first_run = 0
        for stage, layout in enumerate(self._layouts.stages):
            if any(self._todo[layout.first_chunk : layout.first_chunk + layout.n_chunks]):
                yield from self._chunks_of(stage, layout, first_run)
            first_run += layout.n_runs

    def _chunks_of(self, stage: int, layout: Layout, first_run: int) -> Iterator[Chunk]:
        """The chunks of a stage that are left."""
        size, seed_of = layout.chunk_size, self._stages[stage].seed_of
        work: list[Work] = []
        done = 0  # runs of this stage that are in chunks already
        for point, replicates in work_of(self._stages, stage):
            while replicates:
                number, room = done // size, size - done % size
                taken, replicates = replicates[:room], replicates[room:]
                runs = [(first_run + done + k, one, seed_of(one)) for k, one in enumerate(taken)]
                work.append(Work(point.number, point.settings, point.labels, runs))
                done += len(taken)
                if done % size == 0 or done == layout.n_runs:
                    if self._todo[layout.first_chunk + number]:
                        yield self._chunk(layout.first_chunk + number, work, layout)
                    work = []

    def _chunk(self, number: int, work: list[Work], layout: Layout) -> Chunk:
        record_every = self._stages[-1].settings.record_every
        return Chunk(number, work, layout, self._networks, record_every, self._own_texts)

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


def _stored(folder: Path) -> dict[str, Any] | None:
    """The manifest of the study in a folder; None if the folder is empty."""
    if (folder / "manifest.json").exists():
        return read_manifest(folder)
    others = [path.name for path in folder.iterdir() if path.name not in (".lock", "shards")]
    if others or any((folder / "shards").iterdir()):
        raise StudyError(
            f"{folder} must be empty or hold a study, got {(others or ['shards'])[0]}; choose another folder"
        )
    return None


def _compared(folder: Path, stored: dict[str, Any], spec: Spec) -> Asked:
    """Whether the spec asks for the study in the folder, for more or for less of it."""
    try:
        asked = compare(stored_spec(stored, spec.folder), spec)
    except StudyError as error:
        raise StudyError(f"{folder} holds another study ({error}); choose another folder") from None
    _refuse_other_banditmesh(folder, stored["versions"], versions())
    return asked


def _check_continued(folder: Path, stored: dict[str, Any], spec: Spec, hashes: dict[str, str]) -> None:
    """Refuse to continue with other files, or with a manifest that its own spec contradicts."""
    if stored["network_files"] != hashes:
        raise _changed_files(folder)
    expected = new_manifest(spec, stored["chunk_size"], hashes)
    for key in ("seeds", "n_points", "columns"):
        if stored[key] != expected[key]:
            raise StudyError(f"{folder}/manifest.json is damaged ({key} are not the spec's); choose another folder")


def _grow(folder: Path, stored: dict[str, Any], spec: Spec, hashes: dict[str, str]) -> dict[str, Any]:
    """Write the manifest of a study that grows; what was left to do still is."""
    if not stored["network_files"].items() <= hashes.items():
        raise _changed_files(folder)
    earlier = stages_of(stored)
    _check_continued(folder, stored, stored_spec(stored, spec.folder), stored["network_files"])
    size = _chunk_size(spec.n_runs - stored["n_runs"])
    manifest = stored | new_manifest(spec, size, hashes, earlier)
    manifest |= {key: stored[key] for key in ("versions", "continued_with")}
    # It is written when the study is complete, which it no longer is.
    (folder / "table.csv").unlink(missing_ok=True)
    store.write_manifest(folder, manifest)
    return manifest


def _changed_files(folder: Path) -> StudyError:
    return StudyError(
        f"the files of networks or arms have changed since the study in {folder} began; choose another folder"
    )


def _chunk_size(n_runs: int) -> int:
    return max(1, min(n_runs // _CHUNKS, _LARGEST_CHUNK))


def _refuse_other_banditmesh(folder: Path, began: Mapping[str, str], used: Mapping[str, str]) -> None:
    ours, theirs = used["banditmesh"], began["banditmesh"]
    if ours != theirs:
        raise StudyError(
            f"the study in {folder} was begun with banditmesh {theirs}, this is {ours}; "
            "continue it with that version, or choose another folder"
        )


def _read_files(spec: Spec) -> tuple[dict[str, str], dict[FileTable, Any]]:
    """The hashes of the files, by their paths in the spec, and their contents, which have these hashes."""
    files = spec.files()
    hashes = {dict(named)["path"]: _hash(path) for named, path in files.items()}
    networks = read_files(files)
    for named, path in files.items():
        if _hash(path) != hashes[dict(named)["path"]]:
            raise StudyError(f"{path} changed while it was read; run again when it no longer does")
    return hashes, networks


def _pays_rates(spec: Spec, files: Mapping[FileTable, Any]) -> bool:
    """Whether every reward of the study is known to lie between 0 and 1."""
    if not all(family.settings["arms"]["law"] in ("bernoulli", "data") for family in spec.families("arms")):
        return False
    laws = [held for named, held in files.items() if dict(named).get("arms") == "laws"]
    laws += [held.pooled.laws for named, held in files.items() if dict(named).get("arms") == "log"]
    return all(choice.are_rates(some.values()) for some in laws)


def _hash(path: Path) -> str:
    try:
        return digest(read_regular(path))
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
