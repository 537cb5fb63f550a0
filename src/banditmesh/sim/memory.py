"""How much memory a run will need, told before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InsufficientMemoryError
from ..networks.csr import Links
from ..problem import Problem
from .run import TRAFFIC


def check_result_fits(problem: Problem, n_records: int, replicates: int, link_traffic: bool) -> None:
    """Refuse a run whose result alone does not fit into this machine's memory."""
    n_agents, n_slots = problem.n_agents, len(problem.arm_indices)
    each = 24 * n_records + 8 * len(TRAFFIC) + 4 * n_slots + 8 * n_agents
    if link_traffic:
        # Of a dynamic network only links that were ever up are kept; a tenth of all is a fair guess.
        network = problem.network
        n_links = 2 * network.n_links if isinstance(network, Links) else n_agents * (n_agents - 1) // 10
        each += 8 * n_records * n_links
    check(2.0 * each * replicates, "the result", "record fewer rounds with record_every, or fewer replicates")


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
