"""Prometheus's text format: families of samples, as they are written.

The package for it would bring an HTTP server, an HTTP client and a mail parser into every node's memory.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

MEDIA_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
_PROCESS: Final = Path("/proc/self")


class Sample(NamedTuple):
    """A value with its labels; `end` is what its name has beyond its family's."""

    value: float
    labels: Mapping[str, str] = {}
    end: str = ""


class Family(NamedTuple):
    """Samples of one name: `kind` is "gauge", "counter" or "histogram"."""

    kind: str
    name: str
    text: str
    samples: Iterable[Sample]


def gauge(name: str, text: str, value: float) -> Family:
    """What may rise and fall."""
    return Family("gauge", name, text, [Sample(value)])


def counter(name: str, text: str, value: float) -> Family:
    """What only grows; its name ends in `_total`."""
    return Family("counter", f"{name}_total", text, [Sample(value)])


class Histogram:
    """How often values were at most this or that.

    Parameters
    ----------
    name, text : str
        Its name, and what it is of.
    bounds : tuple of float
        The bounds, rising.
    """

    def __init__(self, name: str, text: str, bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._bounds = name, text, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._created = time.time()

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def families(self) -> Iterator[Family]:
        """What was counted, and since when."""
        counts = list(accumulate(self._counts))
        ends = [*map(_number, self._bounds), "+Inf"]
        samples = [Sample(n, {"le": end}, "_bucket") for n, end in zip(counts, ends, strict=True)]
        samples += [Sample(counts[-1], end="_count"), Sample(self._sum, end="_sum")]
        yield Family("histogram", self._name, self._text, samples)
        yield gauge(f"{self._name}_created", self._text, self._created)


def of_the_process() -> Iterator[Family]:
    """What /proc says of this process, where there is one, under the names that Prometheus's own packages use."""
    try:
        # What follows the name of the program, which may hold anything.
        fields = (_PROCESS / "stat").read_text().rpartition(")")[2].split()
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        limits = (_PROCESS / "limits").read_text().splitlines()
        n_open = len(os.listdir(_PROCESS / "fd"))
    except (OSError, StopIteration):
        return
    user, system, begun, virtual, resident = (int(fields[place]) for place in (11, 12, 19, 20, 21))
    a_second = os.sysconf("SC_CLK_TCK")
    most = next(line.split()[3] for line in limits if line.startswith("Max open files"))
    yield gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", virtual)
    yield gauge(
        "process_resident_memory_bytes", "Resident memory size in bytes.", resident * os.sysconf("SC_PAGE_SIZE")
    )
    yield gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        int(booted.split()[1]) + begun / a_second,
    )
    yield counter("process_cpu_seconds", "Total user and system CPU time spent in seconds.", (user + system) / a_second)
    yield gauge("process_open_fds", "Number of open file descriptors.", n_open)
    yield gauge("process_max_fds", "Maximum number of open file descriptors.", float(most.replace("unlimited", "inf")))


def as_text(families: Iterable[Family]) -> bytes:
    r"""Families as they are written.

    Examples
    --------
    >>> print(as_text([Family("gauge", "heat", "How hot it is.", [Sample(21.5, {"room": 'the "den"'})])]).decode())
    # HELP heat How hot it is.
    # TYPE heat gauge
    heat{room="the \"den\""} 21.5
    <BLANKLINE>
    """
    lines = []
    for kind, name, text, samples in families:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for value, labels, end in samples:
            written = ",".join([f'{label}="{_escaped(one)}"' for label, one in labels.items()])
            lines.append(f"{name}{end}{{{written}}} {_number(value)}" if labels else f"{name}{end} {_number(value)}")
    return "".join([f"{line}\n" for line in lines]).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    """A number as Go reads it, too."""
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(written := repr(float(value)), written)
