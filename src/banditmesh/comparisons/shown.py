"""How comparisons and frontiers are shown: rows of text, for terminals and notebooks alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .compare import Comparison
    from .configurations import Configuration, Frontier

#: What is said below a table that has no spreads.
ONE_REPLICATE: Final = "one replicate: no standard deviations and no intervals; more replicates give them"
_MARKS: Final = {"messages_per_round": "T", "link_load": "L", "bytes_per_round": "B"}


def comparison_rows(comparison: Comparison, agents: bool = False) -> list[list[str]]:
    """Group regret and transmissions of each protocol, with its agents' regrets if asked for; headings first.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> comparison_rows(bm.compare(problem, "irs", horizon=10, replicates=1, seed=0))[0]
    ['protocol', 'group regret', 'transmissions']
    """
    table = comparison.table(agents=agents)
    shares = [name for name in table.columns if name.startswith("agent_")]
    rows = [["protocol", "group regret", "transmissions", *(name.replace("_", " ") for name in shares)]]
    for name, row in table.iterrows():
        cells = [_with_spread(row[what], row[f"{what}_sd"]) for what in ("regret", "messages")]
        rows.append([str(name), *cells, *(f"{row[share]:,.1f}" for share in shares)])
    return rows


def difference_rows(comparison: Comparison, against: str) -> list[list[str]]:
    """Paired differences from one protocol, with their intervals; the first row is the heading."""
    rows = [["protocol", "group regret", "transmissions"]]
    for name, row in comparison.differences(against).iterrows():
        rows.append([str(name), *(_with_interval(row, what) for what in ("regret", "messages"))])
    return rows


def frontier_rows(found: Frontier, show_all: bool = False) -> list[list[str]]:
    """What is on a front, or everything; the first row is the heading."""
    rows = [
        ["configuration", "front", "group regret", "transmissions/round", "busiest link", "peak", "bytes/round", ""]
    ]
    for name in found.table().index:
        if not show_all and name not in _worth_showing(found):
            continue
        front = "".join(mark for cost, mark in _MARKS.items() if name in found.fronts[cost])
        remark = "<- take" if name == found.recommended else ""
        if found.limits and not found.within_budget(name):
            remark = "<- nearest" if name == found.nearest and found.recommended is None else "over"
        rows.append([name, front, *_cells(found, found[name]), remark])
    return rows


def front_note(found: Frontier) -> str:
    """What the marks and the spreads in the rows mean."""
    note = "front: nothing has less regret for as few transmissions (T), load of the busiest link (L) or bytes (B)"
    return f"{note}; ±: {found.confidence:.0%} confidence" if found.replicates > 1 else note


def _worth_showing(found: Frontier) -> set[str]:
    names = {name for front in found.fronts.values() for name in front}
    plain = {one.name for one in found.configurations if not one.sends}
    return names | plain | {name for name in (found.recommended, found.nearest) if name is not None}


def _cells(found: Frontier, one: Configuration) -> list[str]:
    cells = []
    for measure in ("regret", "messages_per_round", "link_load", "link_peak", "bytes_per_round"):
        mean, _, high = found.interval(one, measure)
        digits = 0 if measure in ("regret", "bytes_per_round") or mean >= 100 else 2
        spread = f" ± {high - mean:,.{digits}f}" if found.replicates > 1 and measure != "link_peak" else ""
        cells.append(f"{mean:,.{digits}f}{spread}")
    return cells


def _with_interval(row: Any, what: str) -> str:
    if math.isnan(row[f"{what}_low"]):
        return f"{row[what]:+,.0f}"
    return f"{row[what]:+,.0f} [{row[f'{what}_low']:+,.0f}, {row[f'{what}_high']:+,.0f}]"


def _with_spread(mean: float, sd: float) -> str:
    return f"{mean:,.0f}" if math.isnan(sd) else f"{mean:,.0f} ± {sd:,.0f}"
