"""Delta, the number that the paper's Section 6.4 plots measured regret against."""

from __future__ import annotations

import math
import time

from .. import checks
from ..errors import warn
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import as_protocol
from . import covers
from .cliques import neighbour_masks
from .delivery import Flow
from .gaps import arm_gaps


def delta(problem: Problem, protocol: AnyProtocol | str, cover: str = "greedy", *, time_limit: float = 300.0) -> float:
    """`delta`, the sum over arms of clique covering number / smallest gap (Section 6.4).

    Parameters
    ----------
    problem : Problem
        With a static network, connected or not.
    protocol : AnyProtocol or str
        Flooding, FwA, IRS, NoCooperation or Centralised.
    cover : str
        "greedy" as in the paper, "dsatur" or "exact".
    time_limit : float
        Seconds for all exact covers together; beyond that the best covers found count, and a warning names the gap.

    Returns
    -------
    float
        Arms that are best for all their holders add nothing.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> bm.theory.delta(problem, bm.Flooding(4)) < bm.theory.delta(problem, bm.FwA(4))
    True
    """
    checks.choice("cover", cover, covers.METHODS)
    flow = Flow.claimed(problem, as_protocol(protocol))
    deadline = time.monotonic() + checks.positive("time_limit", time_limit)
    terms, lower = [], []
    for arm in arm_gaps(problem):
        if arm.suboptimal.size:
            graph = neighbour_masks(flow.joined(arm.index, arm.suboptimal))
            cliques, fewest = covers.cover_masks(graph, cover, deadline)
            terms.append(len(cliques) / arm.gap_min)
            lower.append(fewest / arm.gap_min)
    found, least = math.fsum(terms), math.fsum(lower)
    if cover == "exact" and least < found:
        warn(
            f"exact covers were not finished in {time_limit:g} s: delta is between {least:.6g} and {found:.6g}, "
            "the larger one is used; a longer time_limit may lower it"
        )
    return found
