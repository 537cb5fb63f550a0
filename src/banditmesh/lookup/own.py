"""Users' own classes and functions, named by where they are: "my_module:MyProtocol".

Rules kept here: a name is looked up once and becomes an *address*, "my_module:MyProtocol@3f2c8d1e9a7b0c42", whose end
is a hash of the source. An address therefore identifies what was run: another source is another address, and nothing
loaded for one is used for another.

A module is looked for in one folder first, that of a spec or, for text on the command line and in Python, the current
one; then wherever Python looks. A module in the folder is a single file. Its text, and that of the files next to it
that it imports, is read once and loaded from memory: so a process of any executor, on any machine, loads the same text
once it has it (`texts_in`, `add_texts`), and needs neither the folder nor a path to it. An installed module is
imported as usual, and must have the same source everywhere.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import pickle
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import BanditmeshError, InputError

#: How a name is written, with or without the hash of an address.
PATTERN: Final = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*(?:@[0-9a-f]{16})?"
_NAME: Final = re.compile(PATTERN)
_HASH: Final = re.compile(r"(?<=\w)@[0-9a-f]{16}\b")
#: Modules that are never looked for in a folder, whatever files it has: Python's, and ours.
_KNOWN: Final = sys.stdlib_module_names | {__name__.partition(".")[0]}
#: The files of a module: the module's own name first, then those next to it that it imports; each with its text.
Texts: TypeAlias = Mapping[str, str]

#: The known modules from folders, by their hashes; and those of them that are loaded.
_texts: dict[str, Texts] = {}
_loaded: dict[str, ModuleType] = {}
_lock: Final = threading.RLock()
_refused = False
#: The hash of a class whose source cannot be read, such as one that was typed in.
UNKNOWN_SOURCE: Final = "unknown"


def is_name(value: object) -> bool:
    """Whether a value names a user's own class or function.

    Examples
    --------
    >>> is_name("my_module:MyProtocol"), is_name("fwa")
    (True, False)
    """
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def with_colon(value: object) -> str:
    """A hint for an error about an unknown name, if it has a dot where a user's own name has a colon.

    Examples
    --------
    >>> with_colon("my_module.MyProtocol"), with_colon("fwaa")
    ("; your own class is written 'my_module:MyProtocol'", '')
    """
    found = re.fullmatch(r"([A-Za-z_][\w.]*)\.([A-Za-z_]\w*)", value) if isinstance(value, str) else None
    return f"; your own class is written {found[1] + ':' + found[2]!r}" if found else ""


def is_address(value: object) -> bool:
    """Whether a value is a name with the hash of its source."""
    return is_name(value) and "@" in str(value)


def plain(text: str) -> str:
    """A text without the hashes of the addresses in it.

    Examples
    --------
    >>> plain("my_module:Mine@3f2c8d1e9a7b0c42(4)+growth(0.25)")
    'my_module:Mine(4)+growth(0.25)'
    """
    return _HASH.sub("", text)


def source_of(*objects: object) -> str:
    """Hashes of the source of those classes of objects that neither the package nor Python ships.

    Examples
    --------
    >>> import banditmesh as bm
    >>> source_of(bm.FwA(4), 1.5, None)
    ''
    """
    kinds = {kind for one in objects for kind in type(one).__mro__}
    return " ".join(sorted({_hash_of(kind) for kind in kinds if kind.__module__.partition(".")[0] not in _KNOWN}))


@cache
def _hash_of(kind: type) -> str:
    _, at, hashed = kind.__module__.rpartition("@")
    if at:
        return hashed
    try:
        return _hash(inspect.getsource(kind).encode())
    except (OSError, TypeError):
        return UNKNOWN_SOURCE


def refuse() -> None:
    """From now on run no user code in this process: for one that serves untrusted clients."""
    global _refused
    _refused = True


def address(text: str, folder: Path) -> str:
    """A text with the hash of its source after every user's own name that has none yet."""
    return _NAME.sub(lambda found: _addressed(found[0], folder), text)


def texts_in(text: str) -> dict[str, Texts]:
    """What another process needs to load the addresses in a text."""
    hashes = {found.rpartition("@")[2] for found in _NAME.findall(text) if "@" in found}
    return {one: _texts[one] for one in sorted(hashes) if one in _texts}


def add_texts(texts: Mapping[str, Texts]) -> None:
    """Make modules known to this process that another one has read."""
    _texts.update(texts)


class Packed:
    """A value that any process can unpack, whichever modules of users' own, scripts and notebooks its classes are from.

    What scripts and notebooks define goes along: no process can import it, and none should run a script again for it.

    Examples
    --------
    >>> import banditmesh as bm
    >>> pickle.loads(pickle.dumps(Packed(bm.FwA(4)))).unpack()
    FloodingWithAbsorption(ttl=4, emission=EveryPull())
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._content: bytes | None = None
        self._texts: Mapping[str, Texts] = {}

    def pack(self) -> None:
        """Pack it now; what cannot be sent to another process is an `InputError`."""
        if self._content is None:
            self._content = _as_bytes(self._value)
            self._texts = {hashed: files for hashed, files in _texts.items() if hashed.encode() in self._content}

    def unpack(self) -> Any:
        """The value."""
        if self._content is None:
            return self._value
        add_texts(self._texts)
        for hashed, files in self._texts.items():
            _load_text(next(iter(files)), hashed)
        return pickle.loads(self._content)

    def __getstate__(self) -> dict[str, Any]:
        self.pack()
        return {**vars(self), "_value": None}


def _as_bytes(value: Any) -> bytes:
    try:
        content = pickle.dumps(value)
    except Exception:  # a class that is defined in a function, say
        content = b"__main__"
    if b"__main__" not in content:
        return content
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:  # a user's own object may raise anything
        raise InputError(
            f"what is sent to another process must be picklable, got {in_words(error)}; "
            "keep locks, open files and generators out of your objects"
        ) from error


def load(name: str) -> Any:
    """What a name or an address refers to; a name without a hash is looked up from the current folder.

    Examples
    --------
    >>> load("banditmesh.protocols.absorption:FloodingWithAbsorption").__name__
    'FloodingWithAbsorption'
    """
    located = address(name, Path())
    module_name, _, rest = located.partition(":")
    what, _, hashed = rest.partition("@")
    if hashed in _texts:
        module = _load_text(module_name, hashed)
    else:
        if _hash_installed(module_name) != hashed:
            raise InputError(
                f"{module_name} must have the source that it had when {plain(name)} was looked up, got another one; "
                "install the same version everywhere, or start again"
            )
        with _guarded(f"cannot import {module_name}:"):
            module = importlib.import_module(module_name)
    if not hasattr(module, what):
        near = checks.meant(what, [key for key in vars(module) if not key.startswith("_")])
        raise InputError(f"{plain(name)} must be in {module_name}, got nothing of that name there{near}")
    return getattr(module, what)


def load_class(name: str, base: type[Any]) -> type[Any]:
    """The class of that name, which derives from `base` and whose parameters are all fields.

    Then equal objects have equal parameters, and a written record of one has all of them.
    """
    kind = load(name)
    if not isinstance(kind, type) or not issubclass(kind, base):
        got = plain(checks.shown(kind))
        raise InputError(f"{plain(name)} must be a class that derives from {base.__name__}, got {got}")
    known = {one.name for one in fields(kind)}
    hidden = [key for key in parameters_of(kind, name) if key not in known]
    if hidden:
        raise InputError(
            f"{plain(name)} must have its parameters as fields, got {hidden[0]}, which is not one; write "
            f"`@dataclass(frozen=True)` above the class and `{hidden[0]}: float` in it, instead of __init__"
        )
    return kind


def parameters_of(make: Any, name: str) -> dict[str, Any]:
    """The parameters of a user's own class or function, by name."""
    import inspect

    try:
        found = dict(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        raise InputError(f"{plain(name)} must be a class or a function, got {plain(checks.shown(make))}") from None
    for one in found.values():
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise InputError(f"{plain(name)} must take its parameters by name, got {one}; name each of them")
    return found


def blamed(name: object) -> AbstractContextManager[None]:
    """Turn any error in user code into one line that names it; leave errors in other code as they are."""
    return _guarded(f"{plain(str(name))} failed with") if is_name(name) else nullcontext()


@contextmanager
def _guarded(line: str) -> Iterator[None]:
    """Any error of the block, which may run user code, becomes one line that begins like this."""
    try:
        yield
    except BanditmeshError:
        raise
    except Exception as error:  # user code may raise anything
        raise InputError(f"{line} {in_words(error)}") from error


def _addressed(name: str, folder: Path) -> str:
    if _refused:
        raise InputError(
            f"{plain(name)} must be a name of the package here, since no other code is run; use a spec file"
        )
    if "@" in name:
        return name
    module, _, _ = name.partition(":")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise InputError(f"{name} must be in your own module, got {module}, which is part of Python; rename your file")
    texts = _read(module, folder)
    if texts is None:
        return f"{name}@{_hash_installed(module, folder)}"
    hashed = _hash(json.dumps(list(texts.items())).encode())
    _texts[hashed] = texts
    return f"{name}@{hashed}"


def _read(module: str, folder: Path) -> dict[str, str] | None:
    """The text of a module in the folder, and of those next to it that it imports; None if there is no such file."""
    texts: dict[str, str] = {}
    waiting = sorted({module} - _KNOWN)
    while waiting:
        name = waiting.pop(0)
        path = folder / f"{name}.py"
        if name in texts or not path.is_file():
            continue
        try:
            texts[name] = path.read_text("utf-8")
            tree = ast.parse(texts[name], str(path))
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"cannot read {path}: {in_words(error)}") from None
        waiting += sorted(_imports(tree))
    return texts if module in texts else None


def _imports(tree: ast.Module) -> set[str]:
    """The modules that a source imports, by the first part of their names, except Python's and ours."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - _KNOWN


def _hash_installed(module: str, folder: Path | None = None) -> str:
    with _guarded(f"cannot import {module}:"):
        spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        where = "" if folder is None else f" in {folder.absolute()} nor"
        raise InputError(
            f"a module named {module} must be a file or installed, got none{where} where Python looks; "
            f"write {module}.py, or install it"
        )
    return _hash(Path(spec.origin).read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _load_text(name: str, hashed: str) -> ModuleType:
    """The module with that hash, loaded once; anything else imported under its name is left alone."""
    with _lock:
        if hashed not in _loaded:
            finder = _FromTexts(_texts[hashed], hashed)
            hidden = {one: sys.modules.pop(one) for one in _texts[hashed] if one in sys.modules}
            sys.meta_path.insert(0, finder)
            try:
                with _guarded(f"cannot import {name}:"):
                    _loaded[hashed] = importlib.import_module(name)
            finally:
                sys.meta_path.remove(finder)
                for one in _texts[hashed]:
                    sys.modules.pop(one, None)
                sys.modules.update(hidden)
        return _loaded[hashed]


class _FromTexts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds some modules in their texts; they stay in `sys.modules` under unique names."""

    def __init__(self, texts: Texts, hashed: str) -> None:
        self._texts = texts
        self._hashed = hashed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._texts:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=f"{fullname}.py")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """As Python does."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        # Its functions and classes name this module as theirs, and looking it up finds it.
        module.__name__ = f"{name}@{self._hashed}"
        sys.modules[module.__name__] = module
        exec(compile(self._texts[name], f"{name}.py", "exec"), vars(module))


def in_words(error: Exception) -> str:
    """An error of a user's own code, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
