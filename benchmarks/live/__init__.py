"""The live mesh: what links carry, what callers get, how quickly news travels, what memory it takes, and how it lags."""

from __future__ import annotations

from tables import Column, Row, Section

from . import links

PARTS = (links,)


def measure(quick: bool) -> list[Row]:
    return [row for part in PARTS for row in part.measure(quick)]


SECTION = Section(
    name="live",
    title="The live mesh",
    note="",
    columns=(
        Column("what", "what"),
        Column("value", "measured", ",.3g"),
        Column("unit", "unit"),
        Column("share", "ratio", ".2f"),
        Column("beside", "to"),
    ),
    measure=measure,
)
