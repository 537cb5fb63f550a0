"""The live mesh: what links carry, what callers get, how fast news travels, what memory it takes, and how it lags."""

from __future__ import annotations

from tables import Column, Row, Section

from . import calls, lag, links, memory, signed, spread

PARTS = (links, calls, spread, memory, lag, signed)


def measure(quick: bool) -> list[Row]:
    return [{**row, "value": rounded(row["value"])} for part in PARTS for row in part.measure(quick)]


def rounded(value: float) -> float:
    """A figure with three digits that mean something."""
    short = float(f"{value:.3g}")
    return int(short) if short >= 100 else short


SECTION = Section(
    name="live",
    title="The live mesh",
    note=(
        "Real nodes over mutual TLS on loopback. What is given per CPU second is the best of several repeats; "
        "everything else is by the clock, and depends on the disk and on whatever else the machine does. Links: "
        "counts and sums of 20,000 keys, half of them of arms that the receiver has; both ends are in one thread, "
        "whose CPU time counts. Another thread writes the table to disk about once a second; that is measured "
        "apart. Observe: a caller has its answer when the reward is on disk, and then makes the next choice. News "
        "travels through a mesh of 50 nodes (ER, mean degree 3, fwa(4), 8 of 20 arms each) in two processes, which "
        "makes 100 observations a second. Memory is what a process grows by, beside the most that the formula for "
        "sizing allows; the link is idle, with both ends in the process, and the most is that of a link whose "
        "other side sends as much as it may. Lag is how late the event loop of a node is that relays 10,000 "
        "statistics a second to two neighbours, one of which is then stopped (SIGSTOP). Links, news and lag are "
        "measured with statistics that are not signed; the last rows are with and without signatures, in CPU time of "
        "the receiving process with its threads. A step is what one callback of the event loop takes: that long, "
        "everything else waits."
    ),
    columns=(
        Column("what", "what"),
        Column("value", "measured", ","),
        Column("unit", "unit"),
        Column("share", "ratio", ".2f"),
        Column("beside", "to"),
    ),
    measure=measure,
)
