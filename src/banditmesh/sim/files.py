"""How a result lies on disk: one .npz of plain arrays, with everything that is not a number as JSON. No pickles."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .. import checks
from ..errors import FileError, InputError
from ..files import atomic
from ..files.regular import open_regular
from .limits import MAX_ROUNDS
from .run import TRAFFIC

T = TypeVar("T")

FORMAT: Final = "banditmesh-result"
VERSION: Final = 1
#: The most that a file may unpack to, unless the reader says otherwise.
MAX_BYTES: Final = 2**30
#: How much more memory the header takes as objects than as text, at most.
_AS_OBJECTS: Final = 40
#: Every array: whether it holds integers or floats, and what its axes go over.
ARRAYS: Final[dict[str, tuple[str, ...]]] = {
    "rounds": ("i", "records"),
    "regret": ("f", "replicates", "records"),
    "messages": ("i", "replicates", "records"),
    "agent_regret": ("f", "replicates", "agents"),
    "arm_offsets": ("i", "starts"),
    "arm_indices": ("i", "slots"),
    "arm_pulls": ("i", "replicates", "slots"),
    "link_traffic": ("i", "replicates", "records", "links"),
    "agent_regret_curve": ("f", "replicates", "records", "agents"),
    "changes": ("i", "replicates", "changes"),
    **{f"traffic_{name}": ("i", "replicates") for name in TRAFFIC},
}
#: What grows, or stays as it is, from one recorded round to the next.
CUMULATIVE: Final = ("regret", "messages", "agent_regret_curve")
#: What a file need not have: it was not asked for, or did not exist when the file was written.
OPTIONAL: Final = ("link_traffic", "agent_regret_curve", "changes", "traffic_dropped", "traffic_control")


class Names(NamedTuple):
    """What agents, arms and links are called."""

    agents: Sequence[Hashable]
    arms: Sequence[Hashable]
    links: list[tuple[Hashable, Hashable]]


class _Range(msgspec.Struct):
    range: tuple[int, int, int]


class _Names(msgspec.Struct):
    """Names as they are written: one after the other, or as a range of integers."""

    agents: list[Any] | _Range
    arms: list[Any] | _Range
    links: list[tuple[Any, Any]]

    def decode(self) -> Names:
        links = [(decode_name(sender), decode_name(receiver)) for sender, receiver in self.links]
        return Names(_decode_names(self.agents), _decode_names(self.arms), links)


class _Settings(msgspec.Struct):
    """What the settings of a result must at least say."""

    protocol: str
    protocol_name: str
    policy_name: str
    rules: str
    seed: int
    liars: list[int] = []


class Header(msgspec.Struct):
    """What is said of the arrays."""

    settings: dict[str, Any]
    engine: str
    names: _Names

    def __post_init__(self) -> None:
        msgspec.convert(self.settings, _Settings)


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
    try:
        with atomic.writing(target) as stream:
            np.savez_compressed(stream, header=text, **arrays)  # type: ignore[arg-type]
    except (OSError, ValueError) as error:  # such as a null character in the path
        why = getattr(error, "strerror", None) or error
        raise FileError(
            f"cannot write {target}: {why}; nothing was changed, choose a folder that can be written"
        ) from None


def read(path: str | PathLike[str], max_bytes: int) -> tuple[dict[str, NDArray[Any]], Header, Names]:
    """Arrays, description and names, as `write` was given them and as the schema wants them."""
    try:
        with open_regular(path) as stream:
            return _read(path, stream, max_bytes)
    except (OSError, ValueError) as error:
        # Such as a null character in the path; a FileError is a ValueError too, and says all there is to say.
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _read(
    path: str | PathLike[str], stream: IO[bytes], max_bytes: int
) -> tuple[dict[str, NDArray[Any]], Header, Names]:
    members = _guard(path, _members, stream)
    n_bytes = sum(_AS_OBJECTS ** (name == "header") * member.file_size for name, member in members.items())
    if n_bytes > max_bytes:
        raise FileError(
            f"{path} unpacks to {n_bytes:,} bytes, more than the {max_bytes:,} that are allowed; "
            "raise max_bytes if you trust the file"
        )
    with ZipFile(stream) as archive:
        raw = _guard(path, _read_header, archive, members)
        if raw["version"] != VERSION:
            raise FileError(
                f"{path} has format version {checks.shown(raw['version'])}, this banditmesh reads version {VERSION}; "
                "load it with the version that wrote it"
            )
        try:
            header = msgspec.convert(raw, Header)
            names = header.names.decode()
            if 8 * max(len(names.agents), len(names.arms)) > max_bytes:
                raise OverflowError("too many agents or arms")
            liars = header.settings.get("liars", [])
            if liars != sorted({*liars} & {*range(len(names.agents))}):
                raise ValueError("liars must be numbers of agents, ascending")
        except (msgspec.ValidationError, ValueError, OverflowError, RecursionError) as error:
            raise _wrong(path, f"a header of another kind ({error})") from None
        missing = [name for name in ARRAYS if name not in members and name not in OPTIONAL]
        if missing:
            raise FileError(f"{path} lacks the array {missing[0]!r}; save the result again")
        unknown = [name for name in members if name not in ARRAYS and name != "header"]
        if unknown:
            raise _wrong(path, f"the unknown array {checks.shown(unknown[0])}")
        found = {name: _guard(path, _read_array, archive, members[name]) for name in ARRAYS if name in members}
    _check_shapes(path, found, names)
    _check_values(path, found, names)
    for array in found.values():
        array.setflags(write=False)
    return found, header, names


def _guard(path: str | PathLike[str], parse: Callable[..., T], *arguments: Any) -> T:
    """What a parser finds; those of zip and .npy promise no types of exception, so any means a damaged file."""
    try:
        return parse(*arguments)
    except Exception:
        raise FileError(f"{path} is not a result saved by banditmesh, or was cut short; save it again") from None


def _members(stream: IO[bytes]) -> dict[str, ZipInfo]:
    """The arrays of an archive, by their names; compressed as numpy does, or not at all."""
    with ZipFile(stream) as archive:
        members = archive.infolist()
    found = {member.filename.removesuffix(".npy"): member for member in members}
    # A damaged length in the directory makes the entries after it a comment or an extra field; numpy writes neither,
    # but for the 32 bytes that tell of an array beyond 4 GiB.
    if any(member.comment or len(member.extra) > 32 for member in members):
        raise ValueError
    if len(found) < len(members) or not {member.compress_type for member in members} <= {ZIP_STORED, ZIP_DEFLATED}:
        raise ValueError
    return found


def _read_header(archive: ZipFile, members: Mapping[str, ZipInfo]) -> dict[str, Any]:
    """The description, which is at least known to be one."""
    header = json.loads(_read_array(archive, members["header"]).tobytes())
    if header["format"] != FORMAT or "version" not in header:
        raise ValueError(header["format"])
    return dict(header)


def _read_array(archive: ZipFile, member: ZipInfo) -> NDArray[Any]:
    """An array, laid over what was read: nothing is allocated because a header asks for it, and nothing unpickled."""
    with archive.open(member) as packed:
        # Never more than the archive says that it is, however much it unpacks to.
        content = packed.read(member.file_size + 1)
    stream = BytesIO(content)
    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, by_columns, dtype = headers[npy.read_magic(stream)](stream)
    array = np.frombuffer(content, dtype, offset=stream.tell())
    array = array.reshape(shape, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), order="C", copy=False)


def _check_shapes(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]], names: Names) -> None:
    sizes = {"agents": len(names.agents), "starts": len(names.agents) + 1, "links": len(names.links)}
    for name, array in arrays.items():
        kind, *axes = ARRAYS[name]
        # Any width of integers will do, but no width of floats holds what another one does.
        if not (array.dtype == np.float64 if kind == "f" else array.dtype.kind == "i"):
            raise _wrong(path, f"{name} of type {array.dtype}")
        wanted = [sizes.setdefault(axis, size) for axis, size in zip(axes, array.shape, strict=False)]
        if array.ndim != len(axes) or list(array.shape) != wanted:
            raise _wrong(path, f"{name} of shape {array.shape} for ({', '.join(axes)})")


def _check_values(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]], names: Names) -> None:
    """What the arrays must hold to be counts and sums of a run, numbers of rounds, and places in each other."""
    for name, array in arrays.items():
        if not ((array >= 0) & np.isfinite(array)).all():
            raise _wrong(path, f"{name} that are negative or not finite")
    rounds, starts, arms = arrays["rounds"], arrays["arm_offsets"], arrays["arm_indices"]
    if not arrays["regret"].size or rounds[0] < 1 or (np.diff(rounds) < 1).any() or rounds[-1] > MAX_ROUNDS:
        raise _wrong(path, f"rounds that do not ascend from 1 to at most {MAX_ROUNDS}, or no replicates")
    for name in CUMULATIVE:
        if name in arrays and (np.diff(arrays[name], axis=1) < 0).any():
            raise _wrong(path, f"{name} that fall from one round to a later one")
    if "changes" in arrays and not _are_changes(arrays["changes"], int(rounds[-1])):
        raise _wrong(path, "changes that are no rounds of the run, ascending")
    if (arrays["arm_pulls"] > rounds[-1]).any():
        raise _wrong(path, "arm_pulls that are more than the rounds")
    if starts[0] != 0 or starts[-1] != len(arms) or (np.diff(starts) < 0).any():
        raise _wrong(path, "arm_offsets that are no places in arm_indices")
    if (arms >= len(names.arms)).any():
        raise _wrong(path, "arm_indices that are no numbers of arms")


def _are_changes(changes: NDArray[np.int64], horizon: int) -> bool:
    """Whether the rounds of each replicate ascend and lie within the run; there are zeros behind the last one."""
    earlier, later = changes[:, :-1], changes[:, 1:]
    return bool(((later > earlier) | (later == 0)).all() and (changes <= horizon).all())


def _wrong(path: str | PathLike[str], what: str) -> FileError:
    return FileError(f"{path} is not a complete result: it has {' '.join(what.split())}; save the result again")


def _encode_names(kind: str, names: Sequence[Hashable]) -> Any:
    if isinstance(names, range):
        return {"range": [names.start, names.stop, names.step]}
    return [encode_name(kind, name) for name in names]


def encode_name(kind: str, name: Hashable) -> Any:
    """The name of an agent or an arm as JSON can hold it."""
    if isinstance(name, tuple):
        return [encode_name(kind, part) for part in name]
    if name is None or isinstance(name, str | bool | int | float):
        return name
    if isinstance(name, np.generic) and not isinstance(name.item(), np.generic):
        return encode_name(kind, name.item())
    raise InputError(
        f"names of {kind} must be strings, numbers or tuples of them to be saved, got {name!r}; rename them first"
    )


def _decode_names(encoded: list[Any] | _Range) -> Sequence[Hashable]:
    if isinstance(encoded, _Range):
        names = range(*encoded.range)
        len(names)  # an error if it is beyond what a sequence can be
        return names
    return [decode_name(name) for name in encoded]


def decode_name(encoded: Any) -> Hashable:
    """The name that `encode_name` was given."""
    if isinstance(encoded, dict):
        raise ValueError("a name must not be a table")
    return tuple(map(decode_name, encoded)) if isinstance(encoded, list) else encoded
