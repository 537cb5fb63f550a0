"""What an agent without a simulator does in a second: the part of a live node that is not sockets, codecs or disks."""

from __future__ import annotations

import itertools
import math

from tables import Column, Row, Section
from timing import cpu_time

import banditmesh as bm
from banditmesh.core import Copy, Message, Place
from banditmesh.policies import Arms

WHAT = ("receive, new", "receive, seen before", "settle")
N_ORIGINS = 200
ARMS = [f"arm {number}" for number in range(20)]


def measure(quick: bool) -> list[Row]:
    n_messages, repeats = (1_000, 1) if quick else (100_000, 5)
    copies = statistics(n_messages)
    rows = []
    for protocol in (bm.FwA(4, emission=bm.Growth(0.25)), bm.Flooding(4, emission=bm.Growth(0.25))):
        times = [seconds_of(protocol, copies) for _ in range(repeats)]
        for what, seconds in zip(WHAT, map(min, *times, [math.inf] * 3), strict=True):
            rows.append({"what": what, "protocol": protocol.name, "per_second": n_messages / seconds})
    return rows


def seconds_of(protocol: bm.Protocol, copies: list[Copy]) -> list[float]:
    """CPU seconds in which a new agent hears all, hears all again, and settles."""
    agent = protocol.seat(Place("me", Arms.gaussian(ARMS, 1.0), bm.UCB()))

    def hear() -> None:
        for copy in copies:
            agent.receive(copy, 7, 5)

    return [cpu_time(work, 1)[0] for work in (hear, hear, agent.settle)]


def statistics(n_messages: int) -> list[Copy]:
    """Counts and sums of many origins; of half of the arms the agent has none."""
    foreign = [f"foreign {number}" for number in range(len(ARMS))]
    arms = itertools.cycle([arm for pair in zip(ARMS, foreign, strict=True) for arm in pair])
    return [
        Copy(Message(number % N_ORIGINS, number // N_ORIGINS, next(arms), 1 + number // N_ORIGINS, 0.5 * number), 3)
        for number in range(n_messages)
    ]


SECTION = Section(
    name="agent",
    title="An agent alone",
    note=(
        "Messages per CPU second, least of several repeats: counts and sums from 200 origins come to an agent of 20 "
        "arms by way of one neighbour; it has half of the arms that they are of."
    ),
    columns=(Column("what", "what"), Column("protocol", "protocol"), Column("per_second", "a second", ",.0f")),
    measure=measure,
)
