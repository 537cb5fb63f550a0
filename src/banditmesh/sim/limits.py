"""What the engine's integers hold, and what is refused because it would not fit: checked beforehand, all of it here.

Counts of one agent's pulls, and rounds, are 32-bit numbers: the horizon is limited. So are the numbers of slots (an
agent's one arm), of messages under way, of transmissions of one message in one hop, and of places in a queue. Places in
a plan are counted in units of four, in 32 bits: more than its budget has room for. What is summed up over agents is
64-bit: the counts of `TreeAggregation`, fates, traffic, places of links and of known statistics. Transmissions of a
whole run may exceed even that where a plan counts them without making them one by one. The sums that agents keep of
observations are floating-point numbers, exact up to 2**53 observations; nothing can pull that often. Arm sets of more
than 2**15 - 1 arms are left to the reference engine, see `packing.unsupported`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..machine import memory
from ..networks.csr import Links
from ..problem import Problem
from .compiled.kernels.layout import Plan
from .expected_links import links_ever_up
from .run import TRAFFIC, Run

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
#: The most rounds of a run.
MAX_ROUNDS: Final = INT32


def check_sizes(n_agents: int, n_slots: int, n_directed_links: int, reach: int) -> None:
    """Refuse a run whose slots, messages or links are too many for 32-bit numbers."""
    for n, what, remedy in (
        (n_slots, "arms of all agents together", "agents or arms"),
        (n_agents * reach, "messages under way (agents times ttl)", "agents or a shorter ttl"),
        (n_directed_links, "links, counted in both directions", "links"),
    ):
        if n > INT32:
            raise InputError(f"the compiled engine takes at most {INT32} {what}, got {n}; use fewer {remedy}")


def check_result_fits(
    problem: Problem, horizon: int, record_every: int, replicates: int, link_traffic: bool, agents: bool = False
) -> None:
    """Refuse a run whose result alone does not fit into this machine's memory."""
    n_agents, n_slots, n_records = problem.n_agents, len(problem.arm_indices), -(-horizon // record_every)
    each = 24.0 * n_records + 8 * len(TRAFFIC) + 4 * n_slots + 8 * n_agents
    if agents:
        each += 8.0 * n_records * n_agents
    n_links = 0.0
    if link_traffic:
        network = problem.network
        n_links = 2.0 * network.n_links if isinstance(network, Links) else links_ever_up(network, horizon)
        each += 8.0 * n_records * n_links
    # Links are also named.
    names = 80.0 * n_links
    memory.check(
        2.0 * each * replicates + names, "the result", "record fewer rounds with record_every, or fewer replicates"
    )


def check_traffic(run: Run, plan: Plan) -> None:
    """Refuse a run whose transmissions, in bytes, may be more than a 64-bit number holds, by what its plan says.

    Every agent sends at most what its most expensive arm costs, each time that it pulls.
    """
    sent = plan.records[:, -plan.delivered.shape[1] :]
    of_slots: NDArray[np.float64] = sent.sum(axis=1, dtype=np.float64)
    of_agents = np.maximum.reduceat(of_slots, run.problem.arm_offsets[:-1])
    n_bytes = float((of_agents * np.ceil(run.horizon / run.every)).sum()) * run.protocol.n_bytes
    if n_bytes > INT64:
        raise InputError(
            f"a run may send at most {INT64:.1e} bytes, and this one may send {n_bytes:.1e}; use a shorter horizon"
        )
