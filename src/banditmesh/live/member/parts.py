"""The parts of a member, which its lives and its clock share with it, and what one transaction writes.

What agents know is derived from own statistics (ledger) and table.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ...protocols.base import AnyProtocol
from ..certificates import Certificates
from ..disk import Changes, Life
from ..forgetting import TimeOfDay
from ..names import Caps
from ..statistics import Known
from .bandits import Bandits
from .ledger import Ledger
from .outboxes import LiveChances, Outboxes
from .table import StatisticTable
from .tickets import Flights


class Commit(NamedTuple):
    """Something that happens as soon as its changes are stored, and rows are signed that leave the node with it."""

    changes: Changes
    apply: Callable[[], None]
    to_sign: Sequence[Known] = ()


class MemberParts:
    """The parts of one member; parameters are those of `Member`.

    Attributes
    ----------
    protocol : AnyProtocol
        How it relays, and when it tells what it observed.
    caps : Caps
    counters : Counter
    outboxes : Outboxes
    time : TimeOfDay
    table : StatisticTable
    ledger : Ledger
    bandits : Bandits
    life, planned : Life or None
        The life under way, once it has begun, and the one that begins as soon as that is stored.
    is_backup : bool
        Whether the state was restored from a backup, so that its life may have gone on without it.
    is_behind : bool
        Whether the clock has been behind the node's own observations for too long.
    uptime : float
        The uptime as it was last stored.
    n_choices : int
        How many choices the node has made, over all lives.
    chosen : dict
        Arms that were chosen since that was last stored.
    """

    def __init__(
        self,
        node: str,
        protocol: AnyProtocol,
        caps: Caps,
        certificates: Certificates,
        signatures: str,
        ticket_lifetime: float,
        open_choices: int,
        max_clock_skew: float,
        trim: int,
        rng: random.Random,
        check_reward: Callable[[str, object, bool], float],
    ) -> None:
        self.node = node
        self.protocol = protocol
        self.caps = caps
        self.counters: Counter[str] = Counter()
        self.life: Life | None = None
        self.planned: Life | None = None
        self.is_backup = self.is_behind = False
        self.uptime = 0.0
        self.n_choices = 0
        self.chosen: dict[str, None] = {}
        chances = LiveChances(rng)
        self.outboxes = Outboxes(chances, caps.links, self.counters)
        self.time = TimeOfDay(max_clock_skew)
        self.table = StatisticTable(
            node, self.outboxes, chances, caps, self.counters, certificates, signatures, self.time
        )
        self.ledger = Ledger(ticket_lifetime, open_choices, check_reward)
        new_flights = partial(Flights, ticket_lifetime, open_choices)
        self.bandits = Bandits(
            node, self.ledger, self.table, caps, self.time, new_flights, chances, rng, self.counters, trim
        )
