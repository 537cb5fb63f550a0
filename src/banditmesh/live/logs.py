"""Logs of a node: one line an event, plain or JSON, by Python's own `logging`.

An event is a short sentence that never changes, and fields that do: `note(log, logging.INFO, "link up", peer="b")`. So
a line can be searched by its sentence and taken apart by its fields. Whatever a field holds, also a name with a line
break in it, a line stays a line; a traceback becomes one field.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from os import PathLike
from typing import IO, Any, Final

import msgspec

from ..errors import InputError

#: The logger above all others of a node.
LOG: Final = logging.getLogger("banditmesh.live")
STYLES: Final = ("plain", "json")


def note(log: logging.Logger, level: int, event: str, /, **fields: object) -> None:
    """Log an event with its fields.

    Examples
    --------
    >>> import io, logging
    >>> stream, log = io.StringIO(), logging.getLogger("banditmesh.live.example")
    >>> set_up("plain", stream=stream)
    >>> note(log, logging.WARNING, "link refused", peer="b", reason="another mesh")
    >>> print(stream.getvalue().split(" ", 1)[1], end="")
    WARNING link refused peer=b reason="another mesh"
    """
    if log.isEnabledFor(level):
        log.log(level, "%s", event, extra={"fields": fields}, stacklevel=2)


def set_up(style: str = "plain", *, level: int = logging.INFO, stream: IO[str] | None = None) -> None:
    """Write the events of a node, and warnings of everything else, to standard error.

    Parameters
    ----------
    style : {"plain", "json"}
        How a line looks.
    level : int
        The least level of a node's own events.
    stream : file, optional
        Where lines go instead of standard error.
    """
    if style not in STYLES:
        raise InputError(f"log must be one of {', '.join(STYLES)}, got {style!r}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Json() if style == "json" else Plain())
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler.formatter, Plain | Json)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    LOG.setLevel(level)


def warn_if_exposed(path: str | PathLike[str]) -> None:
    """Say, in the log or on standard error, that all users of the machine can read a file that should be secret."""
    if os.name == "posix" and os.stat(path).st_mode & stat.S_IROTH:
        LOG.warning("%s must be secret, and all users of this machine can read it; run: chmod o= %s", path, path)


class Plain(logging.Formatter):
    """`2026-11-16T12:00:00.123Z INFO link up peer=b`."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        words = [_time(record), record.levelname, _printable(record.getMessage())]
        words += [f"{key}={_quoted(value)}" for key, value in _fields(self, record).items()]
        return " ".join(words)


class Json(logging.Formatter):
    """`{"time":"2026-11-16T12:00:00.123Z","level":"INFO","event":"link up","peer":"b"}`."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        line = {"time": _time(record), "level": record.levelname, "event": record.getMessage()}
        for key, value in _fields(self, record).items():
            line.setdefault(key, value)
        return msgspec.json.encode(line, enc_hook=str).decode()


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    fields = dict(getattr(record, "fields", {}))
    if not record.name.startswith(LOG.name):
        fields["logger"] = record.name
    if record.exc_info:
        fields["traceback"] = formatter.formatException(record.exc_info)
    return fields


def _quoted(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not any(one in ' "=\\' for one in text):
        return text
    return '"' + _printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
