"""How a result lies on disk: one .npz of plain arrays, with everything that is not a number as JSON. No pickles.

A file is written beside its final name and then moved there, so that it exists whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Hashable, Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError, InputError

FORMAT: Final = "banditmesh-result"
VERSION: Final = 1


def write(
    path: str | PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    about: Mapping[str, Any],
    names: Mapping[str, Sequence[Hashable]],
) -> None:
    """Write arrays, a JSON-able description and sequences of names."""
    target = Path(path)
    header = {
        "format": FORMAT,
        "version": VERSION,
        **about,
        "names": {kind: _encode_names(kind, sequence) for kind, sequence in names.items()},
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        stream = partial.open("xb")
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}; choose a folder that can be written") from None
    try:
        with stream:
            np.savez_compressed(stream, header=text, **arrays)  # type: ignore[arg-type]
        os.replace(partial, target)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}; nothing was changed") from None
    finally:
        partial.unlink(missing_ok=True)


def read(
    path: str | PathLike[str], required: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], dict[str, Any]]:
    """Arrays, description and names, as `write` was given them."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    # The parsers of .npz promise no types of exception, so whatever they raise means a damaged file.
    damaged = FileError(f"{path} is not a result saved by banditmesh, or was cut short; save it again")
    try:
        arrays, header = _parse(content)
        known = header["version"] == VERSION
    except Exception:
        raise damaged from None
    if not known:
        raise FileError(
            f"{path} has format version {header['version']}, this banditmesh reads version {VERSION}; "
            "load it with the version that wrote it"
        )
    missing = [name for name in required if name not in arrays]
    if missing:
        raise FileError(f"{path} lacks the array {missing[0]!r}; save the result again")
    for array in arrays.values():
        array.setflags(write=False)
    try:
        names = {kind: _decode_names(encoded) for kind, encoded in header.pop("names").items()}
    except Exception:
        raise damaged from None
    return arrays, header, names


def _parse(content: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header, which is at least known to be one."""
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT:
        raise ValueError(header["format"])
    return arrays, header


def _encode_names(kind: str, names: Sequence[Hashable]) -> Any:
    if isinstance(names, range):
        return {"range": [names.start, names.stop, names.step]}
    return [_encode_name(kind, name) for name in names]


def _encode_name(kind: str, name: Hashable) -> Any:
    if isinstance(name, tuple):
        return [_encode_name(kind, part) for part in name]
    if name is None or isinstance(name, str | bool | int | float):
        return name
    if isinstance(name, np.generic) and not isinstance(name.item(), np.generic):
        return _encode_name(kind, name.item())
    raise InputError(
        f"names of {kind} must be strings, numbers or tuples of them to be saved, got {name!r}; rename them first"
    )


def _decode_names(encoded: Any) -> Any:
    if isinstance(encoded, dict):
        return range(*encoded["range"])
    return [_decode_name(name) for name in encoded]


def _decode_name(encoded: Any) -> Any:
    return tuple(_decode_name(part) for part in encoded) if isinstance(encoded, list) else encoded
