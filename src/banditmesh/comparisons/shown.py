"""How comparisons and frontiers are shown: rows of text, for terminals and notebooks alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..text_tables import decimals, spread

if TYPE_CHECKING:
    from .compare import Comparison
    from .configurations import Configuration, Frontier

#: The note below a table that has no spreads.
ONE_REPLICATE: Final = "one replicate: no standard deviations and no intervals; more replicates give them"
#: What is said below one in which first pulls are most of the regret.
MANY_FIRST: Final = (
    "more than half of the regret of some is of forced first pulls; to see whether first_pulls=unknown pays, put "
    "policies side by side: 'ucb,ucb(first_pulls=unknown)'"
)
#: The letters of the fronts.
MARKS: Final = {"messages_per_round": "T", "link_load": "L", "bytes_per_round": "B"}
#: What they mean, said below every table that has them.
FRONT: Final = "front: nothing has less regret for as few transmissions (T), load of the busiest link (L) or bytes (B)"


def comparison_rows(
    comparison: Comparison, agents: bool = False, rounds_per_second: float | None = None
) -> list[list[str]]:
    """Group regret and transmissions of each protocol; on request its agents' regrets and the cost per second.

    The first row has the headings. First pulls are shown as their share of the regret, "-" where that is not known.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> comparison_rows(bm.compare(problem, "irs", horizon=10, replicates=1, seed=0))[0]
    ['protocol', 'group regret', 'transmissions', 'first pulls']
    """
    table = comparison.rows(agents)
    shares = [name for name in next(iter(table.values())) if name.startswith("agent_")]
    paced = [] if rounds_per_second is None else ["transmissions per second"]
    first = ["first pulls"] if comparison.first_regret else []
    rows = [["protocol", "group regret", "transmissions", *first, *paced, *(one.replace("_", " ") for one in shares)]]
    digits = {"regret": decimals(row["regret"] for row in table.values()), "messages": 0}
    of_agents = {share: decimals(row[share] for row in table.values()) for share in shares}
    for name, row in table.items():
        cells = [spread(row[what], row[f"{what}_sd"], digits[what]) for what in digits]
        if first:
            cells.append(first_share(float(comparison.first_regret[name].mean()), row["regret"]))
        if rounds_per_second is not None:
            horizon = comparison.results[name].horizon
            cells.append(f"{row['messages'] / horizon * rounds_per_second:,.1f}")
        rows.append([name, *cells, *(f"{row[share]:,.{few}f}" for share, few in of_agents.items())])
    return rows


def least_cells(rows: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
    """Row and column of the least number in each column of costs: regret, and what is sent by those that send.

    Examples
    --------
    >>> least_cells([["protocol", "group regret", "transmissions"], ["none", "9 ± 1", "0"], ["irs", "7 ± 1", "30"]])
    {(2, 1), (2, 2)}
    """
    found = set()
    for column, head in enumerate(rows[0]):
        if head in ("", "protocol", "configuration", "front", "first pulls"):
            continue
        values = {k: float(row[column].split(" ")[0].replace(",", "")) for k, row in enumerate(rows[1:], start=1)}
        found |= {(k, column) for k in _least(values, may_be_nothing=head == "group regret")}
    return found


def _least(values: Mapping[int, float], may_be_nothing: bool) -> list[int]:
    counted = {k: value for k, value in values.items() if may_be_nothing or value > 0}
    return [k for k, value in counted.items() if value == min(counted.values())] if len(values) > 1 else []


def share(first: float, regret: float) -> float | None:
    """The regret of first pulls as a share of all; None where it is not known, or there is no regret."""
    return first / regret if regret > 0 and not math.isnan(first) else None


def first_share(first: float, regret: float) -> str:
    """The same in words."""
    part = share(first, regret)
    return "-" if part is None else f"{part:.0%}"


def mostly_first(comparison: Comparison) -> bool:
    """Whether first pulls are more than half of the regret of anything that sends."""
    return any(
        2 * first.mean() > result.regret[:, -1].mean() and result.messages[:, -1].any()
        for result, first in ((comparison.results[name], first) for name, first in comparison.first_regret.items())
    )


def difference_rows(comparison: Comparison, against: str) -> list[list[str]]:
    """Paired differences from one protocol, with their intervals; the first row is the heading."""
    rows = [["protocol", "group regret", "transmissions"]]
    digits = {"regret": decimals(row["regret"] for row in comparison.rows().values()), "messages": 0}
    for name, row in comparison.difference_rows(against).items():
        rows.append([name, *(_with_interval(row, what, digits[what]) for what in digits)])
    return rows


def frontier_rows(found: Frontier, show_all: bool = False) -> list[list[str]]:
    """The configurations on a front, or all of them; the first row is the heading."""
    rows = [
        [
            "configuration",
            "front",
            "group regret",
            "first pulls",
            "transmissions/round",
            "busiest link",
            "peak",
            "bytes/round",
            "",
        ]
    ]
    regret_digits = decimals(one.mean("regret") for one in found.configurations)
    for name in found.table().index:
        if not show_all and name not in _worth_showing(found):
            continue
        front = "".join(mark for cost, mark in MARKS.items() if name in found.fronts[cost])
        remark = "<- take" if name == found.recommended else ""
        if found.limits and not found.within_budget(name):
            remark = "<- nearest" if name == found.nearest and found.recommended is None else "over"
        rows.append([name, front, *_cells(found, found[name], regret_digits), remark])
    return rows


def front_note(found: Frontier) -> str:
    """What the marks and the spreads in the rows mean."""
    note = FRONT
    if found.replicates > 1:
        note += f"; ±: {found.confidence:.0%} confidence"
    note += "\nfirst pulls: how much of the regret comes from pulling each arm once before the policy chooses"
    if found.left_out:
        note += (
            f"\n{len(found.left_out)} configurations were left out early, by paired differences of at least three "
            "replicates beyond their margin: over the budget, beaten (another costs no more and has less regret by "
            f"more than a tenth) or not worth it (another has {1 - found.tolerance:.0%} of what there is to gain for "
            "at most half of their cost)"
        )
    return note


def _worth_showing(found: Frontier) -> set[str]:
    names = {name for front in found.fronts.values() for name in front}
    plain = {one.name for one in found.configurations if not one.sends}
    advised = found.nearest if found.recommended is None else found.recommended
    return names | plain | ({advised} if advised is not None else set())


def _cells(found: Frontier, one: Configuration, regret_digits: int) -> list[str]:
    cells = []
    for measure in ("regret", "messages_per_round", "link_load", "link_peak", "bytes_per_round"):
        mean, _, high = found.interval(one, measure)
        digits = 0 if measure == "bytes_per_round" or mean >= 100 else 2
        digits = regret_digits if measure == "regret" else digits
        has_spread = found.replicates > 1 and measure != "link_peak"
        cells.append(spread(mean, high - mean if has_spread else None, digits))
    return [cells[0], first_share(one.mean("first_regret"), one.mean("regret")), *cells[1:]]


def _with_interval(row: Any, what: str, digits: int) -> str:
    # Plus 0.0, so that nothing is shown as -0.00.
    mean, low, high = (f"{round(row[what + end], digits) + 0.0:+,.{digits}f}" for end in ("", "_low", "_high"))
    return mean if math.isnan(row[f"{what}_low"]) else f"{mean} [{low}, {high}]"
