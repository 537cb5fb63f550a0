"""How much memory a run will need, told before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InsufficientMemoryError
from .run import TRAFFIC, Run


def check_result_fits(run: Run) -> None:
    """Refuse a run whose result alone does not fit into this machine's memory."""
    n_records, n_slots = len(run.records), len(run.problem.arm_indices)
    each = 16 * n_records + 8 * len(TRAFFIC) + 4 * n_slots + 8 * run.problem.n_agents
    if run.link_traffic:
        n_agents = run.problem.n_agents
        network = run.problem.network
        n_links = n_agents * (n_agents - 1) if run.problem.is_dynamic else 2 * getattr(network, "n_links", 0)
        # Of a dynamic network only links that were ever up are kept; a tenth of all is a fair guess.
        each += 4 * n_records * (n_links // 10 if run.problem.is_dynamic else n_links)
    check(2 * each * run.replicates, "the result", "record fewer rounds with record_every, or fewer replicates")


def check(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse something that would need more memory than is free."""
    free = available()
    if n_bytes > free:
        raise InsufficientMemoryError(
            f"{what} would need {n_bytes / 2**30:,.1f} GiB of memory, and {free / 2**30:,.1f} GiB are free; {remedy}"
        )


def available() -> float:
    """Bytes of memory that can be had now; without limit where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024.0
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
