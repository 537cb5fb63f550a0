"""The manifest of a study: what is run, with which versions, and how far it is.

Rules kept here: a manifest is read against a schema, and what can be worked out from the rest of it must agree with
the rest; whatever is wrong is one line.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from ..errors import StudyError
from ..files.regular import read_regular
from ..version import __version__
from .shards import Layout, Layouts, digest
from .spec import Settings, Spec, drop_unset

FORMAT: Final = "banditmesh-study"
VERSION: Final = 3
#: The versions that are read, and what each lacks: a study of version 2 never grew and uses no users' own parts.
_READ: Final[dict[int, dict[str, Any]]] = {2: {"own_modules": {}, "grown_from": []}, VERSION: {}}
#: The most replicates whose seeds a manifest lists.
MAX_SEEDS: Final = 1000


class Stage(msgspec.Struct):
    """What was asked for at one stage of a study; points, runs and chunks are counted together with earlier ones."""

    spec: Settings
    digest: str
    network_files: dict[str, str]
    fingerprint: str
    columns: dict[str, Literal["string", "bool", "int64", "double"]]
    n_points: Annotated[int, msgspec.Meta(ge=1)]
    n_runs: Annotated[int, msgspec.Meta(ge=1)]
    chunk_size: Annotated[int, msgspec.Meta(ge=1)]
    n_chunks: Annotated[int, msgspec.Meta(ge=1)]


class Manifest(Stage):
    """The keys of a manifest and their types: those of the latest stage, and what is common to all."""

    format: str
    version: int
    state: Literal["running", "interrupted", "stopped", "complete"]
    seeds: list[int]
    versions: dict[str, str]
    continued_with: list[dict[str, str]]
    own_modules: dict[str, dict[str, str]]
    grown_from: list[Stage]
    n_done: int = 0
    n_failed: int = 0
    latest_course: dict[str, float] = {}


def new_manifest(
    spec: Spec, chunk_size: int, network_files: dict[str, str], earlier: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The manifest of a study that begins, or that grows from earlier stages; of its files it has the hashes."""
    fingerprint = _fingerprint(spec.digest, network_files)
    n_before, n_chunks_before = (earlier[-1]["n_runs"], earlier[-1]["n_chunks"]) if earlier else (0, 0)
    return {
        "format": FORMAT,
        "version": VERSION,
        "state": "running",
        "spec": spec.to_json(),
        "digest": spec.digest,
        "network_files": network_files,
        "fingerprint": fingerprint,
        "columns": spec.columns,
        # Enough to repeat runs by hand; the table has them all, and `replicate_seed` gives any.
        "seeds": [spec.seed_of(replicate) for replicate in range(min(spec.settings.replicates, MAX_SEEDS))],
        "n_points": spec.n_points,
        "n_runs": spec.n_runs,
        "chunk_size": chunk_size,
        "n_chunks": n_chunks_before - (n_before - spec.n_runs) // chunk_size,
        "versions": versions(),
        # Other versions that parts of the study were computed with.
        "continued_with": [],
        # The source of users' own modules, by the hashes in the spec.
        "own_modules": spec.own_texts(),
        "grown_from": list(earlier),
    }


def stages_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The stages of a study, each as the keys of `Stage`; the last one is the latest."""
    latest = {key: manifest[key] for key in Stage.__struct_fields__}
    return [*manifest["grown_from"], latest]


def layouts_of(manifest: dict[str, Any]) -> Layouts:
    """How the shards of a study are laid out."""
    layouts: list[Layout] = []
    n_runs = n_chunks = 0
    for stage in stages_of(manifest):
        more = stage["n_runs"] - n_runs
        layouts.append(Layout(stage["fingerprint"], stage["columns"], more, stage["chunk_size"], n_chunks))
        n_runs, n_chunks = stage["n_runs"], n_chunks + layouts[-1].n_chunks
    return Layouts(layouts)


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    packages = ("numpy", "numba", "networkx", "scipy", "pyarrow")
    return {
        "banditmesh": __version__,
        "python": platform.python_version(),
        **{name: _version_of(name) for name in packages},
        "platform": f"{platform.system()} {platform.machine()}",
    }


@cache
def _version_of(package: str) -> str:
    """The version of a package; a process keeps what it has imported, whatever is installed later."""
    from importlib.metadata import version

    return version(package)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a study's folder, or `StudyError`."""
    path = folder / "manifest.json"
    try:
        raw = json.loads(read_regular(path))
        version = raw["version"] if raw["format"] == FORMAT else None
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(f"{folder} must be a study's folder, got no manifest.json in it; run a study first") from None
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        version = None
    if version is None:
        raise _damaged(path, "not a study's manifest")
    if not isinstance(version, int) or version not in _READ:
        raise StudyError(
            f"{folder} has study format {version!r}, this banditmesh reads {' and '.join(map(str, _READ))}; "
            "use the banditmesh that began it, or a new folder"
        )
    try:
        manifest: dict[str, Any] = msgspec.to_builtins(msgspec.convert(_READ[version] | raw, Manifest))
    except msgspec.ValidationError as error:
        raise _damaged(path, str(error)) from None
    for stage in (manifest, *manifest["grown_from"]):
        drop_unset(stage["spec"])
    wrong = _first_wrong(manifest)
    if wrong:
        raise _damaged(path, f"{wrong} does not agree with the rest")
    return manifest


def _first_wrong(manifest: dict[str, Any]) -> str | None:
    """The first key that contradicts the others."""
    if "banditmesh" not in manifest["versions"]:
        return "versions"
    n_runs = n_chunks = 0
    for stage in stages_of(manifest):
        n_chunks -= (n_runs - stage["n_runs"]) // stage["chunk_size"]
        expected = {
            "digest": digest(json.dumps(stage["spec"], sort_keys=True).encode()),
            "fingerprint": _fingerprint(stage["digest"], stage["network_files"]),
            "n_runs": stage["n_points"] * stage["spec"]["replicates"],
            "n_chunks": n_chunks,
        }
        wrong = next((key for key, value in expected.items() if stage[key] != value), None)
        if wrong or stage["n_runs"] <= n_runs:
            return wrong or "grown_from"
        n_runs = stage["n_runs"]
    return None


def _fingerprint(spec_digest: str, network_files: dict[str, str]) -> str:
    return digest(json.dumps([spec_digest, network_files], sort_keys=True).encode())


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(f"{path} is damaged ({' '.join(why.split())}); run the study into a new folder")
