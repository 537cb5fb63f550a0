"""What the sidecars of a running mesh say of their nodes: one row a node, gathered all at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from ..errors import BanditmeshError
from ..live.http.client import Client
from ..text_tables import as_text

#: How long a sidecar may take to answer, in seconds.
TIMEOUT: Final = 2.0
HEADINGS: Final = (
    "node", "state", "links", "choices", "arms", "best arm", "sent", "received", "waiting", "refused", "protocol",
)  # fmt: skip


class Row(NamedTuple):
    """One node, as its sidecar tells of it.

    `state` is "ready", or what is wrong in a few words; then the other fields of a node that does not answer are empty.
    `sent`, `received` and `waiting` count statistics over all of its links; `warnings` are the node's own.
    """

    url: str
    node: str = ""
    state: str = ""
    links_up: int = 0
    links: int = 0
    choices: int = 0
    arms: int = 0
    best_arm: str = ""
    sent: int = 0
    received: int = 0
    waiting: int = 0
    refused: int = 0
    protocol: str = ""
    warnings: tuple[str, ...] = ()


def gather(urls: Sequence[str], token: str | None = None) -> list[Row]:
    """One row for each sidecar, in their order, whether it answers or not."""
    with ThreadPoolExecutor(max_workers=min(32, len(urls))) as pool:
        return list(pool.map(lambda url: _row(url, token), urls))


def _row(url: str, token: str | None) -> Row:
    try:
        with Client(url, token=token, timeout=TIMEOUT, patience=0.0) as client:
            return _as_row(url, client.state(), client.peers(), client.ready())
    except (BanditmeshError, OSError) as error:
        return Row(url, state=str(error))


def _as_row(url: str, state: dict[str, Any], peers: list[dict[str, Any]], trouble: str | None) -> Row:
    arms = state["arms"]
    known = [arm for arm in arms if arm["mean"] is not None]
    return Row(
        url=url,
        node=state["node"],
        state=trouble or "ready",
        links_up=sum(peer["state"] == "up" for peer in peers),
        links=len(peers),
        choices=state["n_choices"],
        arms=len(arms),
        best_arm=max(known, key=lambda arm: arm["mean"])["name"] if known else "",
        sent=sum(peer["sent"] for peer in peers),
        received=sum(peer["received"] for peer in peers),
        waiting=sum(peer["waiting"] for peer in peers),
        refused=sum(count for name, count in state["counters"].items() if name.startswith("refused_")),
        protocol=state["protocol"],
        warnings=tuple(state.get("warnings", ())),
    )


def as_table(rows: Sequence[Row]) -> str:
    """The rows as a table of text, with a line for each warning below it.

    Examples
    --------
    >>> print(as_table([Row("http://127.0.0.1:8100", "ann", "ready", 1, 2, 40, 3, "red", 9, 7, 0, 0, "fwa(4)")]))
    node  state  links  choices  arms  best arm  sent  received  waiting  refused  protocol
    ann   ready    1/2       40     3       red     9         7        0        0    fwa(4)
    """
    table: list[tuple[str, ...]] = [HEADINGS]
    for row in rows:
        if row.node:
            links = f"{row.links_up}/{row.links}"
            # The rest stands in the order of the fields.
            table.append((row.node, row.state, links, *map(str, row[5:-1])))
        else:
            table.append((row.url, row.state, *[""] * (len(HEADINGS) - 2)))
    warnings = [f"{row.node} warns: {warning}" for row in rows for warning in row.warnings]
    return "\n".join([as_text(table, left=(0, 1)), *warnings])
