"""How time is taken: after a warm-up, the least of several repeats, since everything that disturbs only adds."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")
#: Repeats of one measurement stop after this many seconds, but not before the second.
PATIENCE = 5.0


def cpu_time(work: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The least CPU seconds that `work` takes, and what it gives."""
    return _least(work, repeats, time.process_time)


def cpu_times(works: Mapping[K, Callable[[], object]], repeats: int) -> dict[K, float]:
    """The least CPU seconds of each of these, which take turns: what slows one down slows the others as well."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for key, work in works.items():
            began = time.process_time()
            work()
            least[key] = min(least[key], time.process_time() - began)
    return least


def wall_time(work: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The least seconds by the clock on the wall, and what `work` gives."""
    return _least(work, repeats, time.perf_counter)


def _least(work: Callable[[], T], repeats: int, clock: Callable[[], float]) -> tuple[float, T]:
    least = float("inf")
    started = time.perf_counter()
    for repeat in range(repeats):
        began = clock()
        gave = work()
        least = min(least, clock() - began)
        if repeat > 0 and time.perf_counter() - started > PATIENCE:
            break
    return least, gave


def in_new_process(script: str, *arguments: object, environment: dict[str, str] | None = None) -> Any:
    """Run a script in a fresh interpreter; what it prints last is JSON."""
    command = [sys.executable, "-c", script, *(str(argument) for argument in arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode != 0:
        raise RuntimeError(f"a part of the benchmark failed: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import numba
    import numpy as np

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
