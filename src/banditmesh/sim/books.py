"""Books: what is kept of a replicate, each by an observer of its stepper.

An observer overrides the calls that it wants to hear. They come in this order, round by round:

    began(t, neighbours)        the network of the round is fixed
    pulled(agent, position, reward)   an agent pulled
    heard(n)                    n observations were heard without a message
    sent(message, sender, receivers)   a copy of a message went to each of these receivers
    dropped(n)                  n copies did not fit on their links
    ended(transmission, arrival, fate, learned)   a copy met its fate, and changed what its receiver knows or not
    counted(n_sent, n_fates, n_learned)   how many copies were sent in this round, met each fate, and changed what
                                their receiver knows
    over(t)                     the round is over
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core import Fate, LinkId, Message, Note
from ..protocols.base import AnyProtocol, has_method
from .chances import sequence_of
from .run import TRAFFIC, AgentRegret, Event, Outcome, Run
from .transit import Transmission
from .watching import Curve


class Observer:
    """The base of all observers: it hears nothing."""

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        """Round `t` begins on this network."""

    def pulled(self, agent: int, position: int, reward: float) -> None:
        """An agent pulled the arm at that position of its arm set."""

    def heard(self, n: int) -> None:
        """`n` observations were heard without a message."""

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        """A message went over the links to these receivers."""

    def dropped(self, n: int) -> None:
        """`n` copies did not fit on their links."""

    def ended(self, transmission: Transmission, arrival: int, fate: Fate, learned: bool) -> None:
        """A copy met its fate in round `arrival`."""

    def counted(self, n_sent: int, n_fates: Sequence[int], n_learned: int) -> None:
        """How many copies were sent in this round, met each `Fate`, and changed what their receiver knows."""

    def over(self, t: int) -> None:
        """Round `t` is over."""


class Records(Observer):
    """Cumulative regret and transmissions in the recorded rounds, and pulls."""

    def __init__(self, run: Run, replicate: int) -> None:
        self._run = run
        self._replicate = replicate
        self._rounds = run.records.tolist()
        self._means_change = run.means_change
        self._liars = run.liars
        self._gaps = self._gaps_in(1)
        self._pulls = [[0] * len(gaps) for gaps in self._gaps]
        self._round_regret = 0.0
        self._total_regret = 0.0
        self._n_sent = run.n_control
        self.curve = Curve(len(self._rounds))
        self._of_agents = AgentRegret(run, replicate)
        self.agent_regret = np.zeros((len(self._rounds), run.problem.n_agents)) if run.agents else None

    def _gaps_in(self, t: int) -> list[list[float]]:
        """Each agent's gaps in a round."""
        gaps = self._run.gaps_in(self._replicate, t).tolist()
        return [gaps[start:stop] for start, stop in itertools.pairwise(self._run.problem.arm_offsets.tolist())]

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        """A round's regret is added up by itself, then to the rest."""
        self._round_regret = 0.0
        if self._means_change:
            self._gaps = self._gaps_in(t)

    def pulled(self, agent: int, position: int, reward: float) -> None:
        """Count the pull and, unless it is a liar's, its regret."""
        if agent not in self._liars:
            self._round_regret += self._gaps[agent][position]
        if self._means_change:
            self._of_agents.added[agent] += self._gaps[agent][position]
        self._pulls[agent][position] += 1

    def counted(self, n_sent: int, n_fates: Sequence[int], n_learned: int) -> None:
        """Count the transmissions."""
        self._n_sent += n_sent

    def over(self, t: int) -> None:
        """Write the round down if it is recorded."""
        self._total_regret += self._round_regret
        record = self.curve.n_known
        if t == self._rounds[record]:
            self.curve.regret[record] = self._total_regret
            self.curve.transmissions[record] = self._n_sent
            if self.agent_regret is not None:
                self.agent_regret[record] = self._of_agents.after(self.pulls)
            self.curve.n_known += 1

    @property
    def pulls(self) -> NDArray[np.int32]:
        """Pull counts, laid out as the problem's `arm_indices`."""
        return np.array(list(itertools.chain(*self._pulls)), dtype=np.int32)

    @property
    def last_agent_regret(self) -> NDArray[np.float64] | None:
        """Each agent's regret up to now, if it is not judged by laws that do not change."""
        return None if self._run.judged_by_laws else self._of_agents.after(self.pulls)

    @property
    def changes(self) -> NDArray[np.int64]:
        """The rounds in which arms jumped."""
        if not self._run.problem.changes:
            return np.empty(0, dtype=np.int64)
        return self._run.world(self._replicate).changes(self._run.horizon)


class Traffic(Observer):
    """How many copies met which fate. All messages are of one size; for others there is `SizedTraffic`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.n_sent = 0
        self._n_learned = 0
        self._n_dropped = 0
        self._n_fates = [0] * len(Fate)

    def heard(self, n: int) -> None:
        """What is heard without a message is learned."""
        self._n_learned += n

    def dropped(self, n: int) -> None:
        """Count what was not sent."""
        self._n_dropped += n

    def counted(self, n_sent: int, n_fates: Sequence[int], n_learned: int) -> None:
        """Count transmissions and fates."""
        self.n_sent += n_sent
        self._n_fates = [before + n for before, n in zip(self._n_fates, n_fates, strict=True)]
        self._n_learned += n_learned

    @property
    def n_bytes(self) -> int:
        """Payload of all messages that were sent, but for what was sent for control and stamps."""
        return self.n_sent * self._run.protocol.n_bytes

    @property
    def totals(self) -> NDArray[np.int64]:
        """Totals in the order of `TRAFFIC`."""
        run, n_sent, n_fates = self._run, self.n_sent, self._n_fates
        totals = {fate.name.lower(): n_fates[fate] for fate in Fate} | {
            "sent": n_sent,
            "delivered": n_sent - n_fates[Fate.DUPLICATE] - n_fates[Fate.LOST],
            "dropped": self._n_dropped,
            "control": run.n_control,
            "learned": self._n_learned,
            "bytes": self.n_bytes + n_sent * run.stamp_bytes + run.control_bytes,
        }
        return np.array([totals[name] for name in TRAFFIC], dtype=np.int64)


class SizedTraffic(Traffic):
    """The same for a protocol whose messages are of several sizes."""

    n_bytes = 0

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        """Add up the sizes."""
        self.n_bytes += len(receivers) * self._run.protocol.size(message)


class LinkTraffic(Observer):
    """Transmissions on every link that was ever up, between one recorded round and the next."""

    def __init__(self, run: Run) -> None:
        self._rounds = run.records.tolist()
        self._is_dynamic = run.problem.is_dynamic
        self._record = 0
        #: By record and sender, how many went to each receiver.
        self._sent: list[defaultdict[int, Counter[int]]] = [defaultdict(Counter) for _ in self._rounds]

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        """Links that are up have a column, also if nothing is sent on them."""
        if self._is_dynamic or t == 1:
            for sender, row in enumerate(neighbours):
                on_links = self._sent[self._record][sender]
                for receiver in row:
                    on_links[receiver] += 0

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        """Count the transmissions on their links."""
        on_links = self._sent[self._record][sender]
        for receiver in receivers:
            on_links[receiver] += 1

    def over(self, t: int) -> None:
        """Go on to the next record."""
        self._record += t == self._rounds[self._record]

    def as_arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The links, sorted, and (records, links) transmissions."""
        columns = {link: column for column, link in enumerate(sorted({link for link, _, _ in self._counts()}))}
        traffic = np.zeros((len(self._rounds), len(columns)), dtype=np.int64)
        for link, record, n_sent in self._counts():
            traffic[record, columns[link]] = n_sent
        return np.array(list(columns), dtype=np.int32).reshape(-1, 2), traffic

    def _counts(self) -> Iterator[tuple[tuple[int, int], int, int]]:
        """Links, records and how many were sent."""
        for record, senders in enumerate(self._sent):
            for sender, on_links in senders.items():
                for receiver, n_sent in on_links.items():
                    yield (sender, receiver), record, n_sent


class EventLog(Observer):
    """The fate of every copy, handed on as it is known.

    Parameters
    ----------
    run : Run
    replicate : int
        Which one.
    write : callable
        Called with every event.
    """

    def __init__(self, run: Run, replicate: int, write: Callable[[Event], object]) -> None:
        self._agents, self._arms = run.problem.agents, run.problem.arms
        self._replicate = replicate
        self._unit = run.memory.unit
        self._write = write

    def ended(self, transmission: Transmission, arrival: int, fate: Fate, learned: bool) -> None:
        """Write the event down."""
        (message, ttl), sender, receiver, sent_in = transmission
        # A tree's links number their messages each by itself.
        link = f">{message.id.neighbour}" if isinstance(message.id, LinkId) else ""
        sequence = sequence_of(message)
        arm = None if message.arm is None else self._arms[message.arm]
        n_pulls, total = (message.n_pulls, message.total) if isinstance(message, Message) else (0, math.nan)
        if type(n_pulls) is float:
            n_pulls, total = n_pulls / self._unit(message), total / self._unit(message)
        self._write(
            Event(
                replicate=self._replicate,
                round=sent_in,
                origin=self._agents[message.origin],
                sequence=sequence,
                arm=arm,
                reward=total,
                sender=self._agents[sender],
                receiver=self._agents[receiver],
                ttl=ttl,
                fate=fate.name.lower(),
                learned=learned,
                arrival=arrival,
                n_pulls=n_pulls,
                message=f"{message.origin}{link}.{sequence}",
            )
        )


class Books:
    """All books of one replicate that a run asks for.

    Parameters
    ----------
    run : Run
    replicate : int
        Which one.
    """

    def __init__(self, run: Run, replicate: int) -> None:
        self._records = Records(run, replicate)
        self.curve = self._records.curve
        self._traffic = (Traffic if has_method(run.protocol, AnyProtocol.size) else SizedTraffic)(run)
        self._links = LinkTraffic(run) if run.link_traffic else None
        self._trace: list[Event] = []
        self.observers: list[Observer] = [self._records, self._traffic]
        if self._links is not None:
            self.observers.append(self._links)
        if run.trace:
            self.observers.append(EventLog(run, replicate, run.trace if callable(run.trace) else self._trace.append))

    def close(self) -> Outcome:
        """What the replicate gave."""
        outcome = Outcome(
            regret=self.curve.regret,
            transmissions=self.curve.transmissions,
            traffic=self._traffic.totals,
            pulls=self._records.pulls,
            trace=self._trace,
            agent_regret=self._records.agent_regret,
            last_agent_regret=self._records.last_agent_regret,
            changes=self._records.changes,
        )
        if self._links is not None:
            outcome.links, outcome.link_traffic = self._links.as_arrays()
        return outcome
