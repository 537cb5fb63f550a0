"""Every exception that banditmesh raises on purpose.

BanditmeshError                 anything below; catch this one to catch them all
├── InputError (ValueError)     the caller's mistake: a wrong value, shape or combination
│   ├── NetworkError            the network cannot be used
│   ├── ArmError                the arms or the arm sets cannot be used
│   ├── FileError               a file cannot be read, or does not say what it should
│   ├── SpecError               a study's spec cannot be used
│   ├── ConfigError             a node's configuration cannot be used
│   └── ContractError (AssertionError)  a protocol, policy or emission breaks its contract
├── MessageError                a peer's mistake: a message that no agent may send
│   ├── FrameError              bytes on a link that are not a frame of the wire format
│   └── NoticeError             a notice that the mesh's authority did not sign, or that cannot be read
├── RefusedError (ConnectionError)  two nodes cannot talk: one does not accept the other's certificate or name
├── NodeError                   a node of a live mesh is not running
├── StoreError                  the state of a node cannot be read or written; nothing was half done
├── StudyError                  a study cannot continue: its folder is in use, full or damaged, or a run failed
├── SidecarError                a node's sidecar is out of reach, or cannot answer now
├── UnsupportedError            a valid request that the chosen engine does not run
├── InsufficientMemoryError     a run that would not fit in memory, refused before it starts
└── MissingExtraError           an optional dependency is needed and missing

A message is one line: what was required, what came, and what to do about it.

BanditmeshWarning (UserWarning) is advice: nothing is wrong, but something else may serve better.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any


class BanditmeshError(Exception):
    """The root of all errors that banditmesh raises on purpose."""


class BanditmeshWarning(UserWarning):
    """Advice: nothing is wrong, but something else may serve better."""


class InputError(BanditmeshError, ValueError):
    """The caller's mistake: a wrong value, shape or combination of arguments.

    Whoever shows it to a reader may word it otherwise, from its fields.

    Attributes
    ----------
    key : str
        The argument or setting that it is about, such as "ttl" or "protocol.ttl"; empty if that is not known.
    what : str
        What was required and what came: the rest of the sentence that the key begins, or one that says it all.
    is_sentence : bool
        Whether `what` says it all, and the key is only where it was found.
    remedy : str
        What to do about it, if `what` does not say so.
    text : str
        The message without the remedy.

    Examples
    --------
    >>> error = InputError("must be at least 1, got 0", key="ttl", remedy="take a larger one")
    >>> print(error)
    ttl must be at least 1, got 0; take a larger one
    >>> print(error.below("protocol"))
    protocol.ttl must be at least 1, got 0; take a larger one
    """

    def __init__(self, what: str = "", *, key: str = "", remedy: str = "", is_sentence: bool = False) -> None:
        self.text = f"{key}{':' if is_sentence else ''} {what}" if key else what
        super().__init__(f"{self.text}; {remedy}" if remedy else self.text)
        self.key = key
        self.what = what
        self.remedy = remedy
        self.is_sentence = is_sentence or not key

    def below(self, table: str) -> InputError:
        """The same mistake, with its key as one of a table."""
        return type(self)(self.what, key=f"{table}.{self.key}", remedy=self.remedy, is_sentence=self.is_sentence)

    def found_in(self, key: str) -> InputError:
        """The same mistake as one of another setting, after which it is said as it is."""
        return type(self)(self.text, key=key, remedy=self.remedy, is_sentence=True)


class NetworkError(InputError):
    """The network cannot be used: directed, weighted, with self-loops, or ended too early."""


class ArmError(InputError):
    """The arms or the arm sets cannot be used: unknown, repeated, empty or unheld."""


class FileError(InputError):
    """A file cannot be read, or does not say what it should."""


class SpecError(InputError):
    """A study's spec cannot be used: an unknown key, a wrong type, or nothing to run.

    `source` is where it came from, and `line` where in it the key is set, if that is known.
    """

    def __init__(self, what: str = "", *, source: str = "", line: int | None = None, **fields: Any) -> None:
        super().__init__(what, **fields)
        self.source, self.line = source, line
        if source:
            self.args = (f"{source}{f', line {line}' if line else ''}: {self}",)


class ConfigError(InputError):
    """A node's configuration cannot be used: an unknown key, a wrong value, or something that cannot run live.

    `problems` lists everything wrong with it, a line each; the message is the first of them.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(problems[0])
        self.args = self.problems = problems

    def __str__(self) -> str:
        return self.problems[0]


class ContractError(InputError, AssertionError):
    """A protocol, policy or emission breaks a contract that engines and results rely on; see `banditmesh.testing`."""


class MessageError(BanditmeshError):
    """A peer's mistake: a message that no agent may send. It changed nothing."""


class FrameError(MessageError):
    """Bytes on a link that are not a frame of the wire format."""


class NoticeError(MessageError):
    """A notice that the mesh's authority did not sign, or that cannot be read."""


class RefusedError(BanditmeshError, ConnectionError):
    """Two nodes cannot talk: one does not accept the other's certificate or name; `reason` is one short word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, str]]:
        return type(self), (self.reason, str(self))


class NodeError(BanditmeshError):
    """A node of a live mesh is not running: it has not been started, is leaving, or has ended."""


class StoreError(BanditmeshError):
    """The state of a node cannot be read or written: in use, damaged, another node's, or the disk is full."""


class StudyError(BanditmeshError):
    """A study cannot continue: its folder is in use, full or damaged, or a run failed.

    `what` is the message without its remedy, if the remedy is known.
    """

    def __init__(self, what: str = "", *, remedy: str = "") -> None:
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what


class SidecarError(BanditmeshError):
    """A node's sidecar is out of reach, wants a token, or cannot answer now; trying again may help."""


class UnsupportedError(BanditmeshError):
    """A valid request that the chosen engine does not run; `reason` says why, if one reason is known."""

    def __init__(self, message: str = "", *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class InsufficientMemoryError(BanditmeshError, MemoryError):
    """A run that would not fit in memory, refused before it starts."""


class MissingExtraError(BanditmeshError, ImportError):
    """An optional dependency is needed and missing."""


def need(module: str, extra: str, what: str) -> Any:
    """A module of an optional dependency, or `MissingExtraError`: which package `what` needs, and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise MissingExtraError(
            f"{what} needs the package {package}; install it with: pip install 'banditmesh[{extra}]'"
        ) from None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here: the user's own, whatever was called in between."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
