"""The reference engine: synchronous rounds in plain Python. It defines what is right; anything faster equals it.

One round, in this order: the network of the round is fixed; every agent that pulls in it chooses, pulls and makes
its message; all queues are emptied and everything in them is sent at the same time, senders in ascending order; what
was learned enters the estimates. Faults come in at two places: agents that are down (`presence`) take no part in a
round, and what is sent passes through `transit` before it arrives.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import draws as purposes
from ..agent import Agent, Fate, Message
from ..arms.base import reward_of
from ..draws import Draws
from ..merging import MergingAgent
from ..networks.csr import Links
from .presence import Presence
from .run import TRAFFIC, Event, Outcome, Run, ended_early
from .transit import Copy, Transit

#: How long the pilot of an estimate may take, in seconds.
PILOT_SECONDS: Final = 1.0


def run_replicate(run: Run, replicate: int, advance: Callable[[], None]) -> Outcome:
    """Simulate one replicate; `advance` is called after every round."""
    horizon = run.horizon
    draws = Draws(run.seed, replicate)
    agents = _make_agents(run, draws)
    pay = _rewards(run, replicate, draws)
    book = _Book(run, replicate)
    presence = Presence(run.faults, draws, agents)
    transit = None if run.faults is None else Transit(run.faults, horizon, draws, presence.up, book.lost)
    for t, neighbours in _networks(run, draws):
        presence.begin(t)
        book.begin(t, neighbours)
        pulled: list[tuple[Agent, int, float]] = []
        for agent in agents:
            if (t - 1) % run.every[agent.number] == 0 and presence.up[agent.number]:
                position = agent.choose(t)
                reward = pay(t, agent, position)
                agent.observe(t, position, reward)
                book.pulled(agent, position)
                pulled.append((agent, position, reward))
        if run.protocol.central:
            book.n_learned += _tell_everyone(t, agents, pulled, presence.up)
        senders = [agent for agent in agents if presence.up[agent.number]]
        copies = _send(t, senders, neighbours, run.faults.link_cap if run.faults else None, book)
        for copy in copies if transit is None else transit.carry(t, copies):
            message, sender, receiver, _ = copy
            fate, learned = agents[receiver].receive(message, sender, len(neighbours[receiver]))
            if fate is Fate.RELAYED and t == horizon:
                fate = Fate.QUEUED
            book.ended(copy, t, fate, learned)
        for agent in agents:
            agent.settle(t)
        book.end(t)
        advance()
    return book.close()


def estimated_seconds(run: Run) -> float:
    """About how long the run will take, from its first rounds, or from the first second if that ends before.

    Traffic grows until messages are ttl hops old; then as many rounds as the slowest agent's pause are timed.
    """
    n_timed = int(run.every.max())
    rounds_a_hop = 1 if run.faults is None else 1 + run.faults.delay + math.ceil(run.faults.jitter)
    pilot = min(run.horizon, run.protocol.ttl * rounds_a_hop + n_timed)
    short = replace(run, horizon=pilot, records=np.array([pilot]), link_traffic=False, trace=False)
    times = [time.perf_counter()]

    def note() -> None:
        times.append(time.perf_counter())
        if times[-1] - times[0] > PILOT_SECONDS:
            raise _Enough

    with suppress(_Enough):
        run_replicate(short, 0, note)
    timed = times[-min(n_timed, len(times) - 1) - 1 :]
    return (timed[-1] - timed[0]) / (len(timed) - 1) * run.horizon * run.replicates


class _Enough(Exception):
    """The pilot has run for long enough."""


def _make_agents(run: Run, draws: Draws) -> list[Agent]:
    agents = []
    tree = run.tree
    for number in range(run.problem.n_agents):
        arm_set = run.problem.arm_set(number)
        others: dict[str, Any] = {
            "number": number,
            "arm_set": arm_set.tolist(),
            "sigmas": run.problem.sigmas[arm_set].tolist(),
            "laws": run.problem.law_codes[arm_set].tolist(),
            "policy": run.policies[number],
            "protocol": run.protocol,
            "rules": run.rules,
            "draws": draws,
            "n_agents": run.problem.n_agents,
            "longest_delay": 0 if run.faults is None else run.faults.longest_delay,
        }
        if tree is None:
            agents.append(Agent(**others))
        else:
            first, last = tree.links.indptr[number], tree.links.indptr[number + 1]
            wants = [set(np.flatnonzero(wanted).tolist()) for wanted in tree.wants[first:last]]
            agents.append(MergingAgent(tree.links.indices[first:last].tolist(), wants, **others))
    return agents


def _networks(run: Run, draws: Draws) -> Iterator[tuple[int, list[list[int]]]]:
    """For each round its number and every agent's neighbours, ascending."""
    network = run.problem.network
    if isinstance(network, Links):
        neighbours = network.neighbour_lists()
        for t in range(1, run.horizon + 1):
            yield t, neighbours
        return
    t = 0
    for t, pairs in enumerate(itertools.islice(network.rounds(draws, run.rules.births_first), run.horizon), start=1):
        yield t, Links.from_pairs(run.problem.n_agents, pairs).neighbour_lists()
    if t < run.horizon:
        raise ended_early(run.horizon, t)


def _rewards(run: Run, replicate: int, draws: Draws) -> Callable[[int, Agent, int], float]:
    """What a pull pays: from the tape, or the drawn quantile of the arm's law."""
    tape = run.tape_of(replicate)
    if tape is not None:
        return lambda t, agent, position: float(tape[t - 1, agent.number, agent.arm_set[position]])
    laws = run.problem.laws
    return lambda t, agent, position: reward_of(
        laws[agent.arm_set[position]], draws.uniform(purposes.REWARD, agent.number, t)
    )


def _tell_everyone(t: int, agents: list[Agent], pulled: list[tuple[Agent, int, float]], up: Sequence[bool]) -> int:
    """Every agent that is up and has the arm hears every observation; how many were heard."""
    n_heard = 0
    for origin, position, reward in pulled:
        arm = origin.arm_set[position]
        message = Message(origin.number, t, arm, 1, reward, origin.number, 0)
        for agent in agents:
            if agent is not origin and agent.has(arm) and up[agent.number]:
                agent.hear(message)
                n_heard += 1
    return n_heard


def _send(
    t: int, senders: list[Agent], neighbours: list[list[int]], link_cap: int | None, book: _Book
) -> Iterator[Copy]:
    """All copies that are sent in round `t`, senders in ascending order, each sender's newest message first."""
    # Every queue is emptied before anything is received.
    outboxes = [agent.take_outbox() for agent in senders]
    for sender, outbox in zip(senders, outboxes, strict=True):
        number, row = sender.number, neighbours[sender.number]
        n_on_link: Counter[int] = Counter()
        for message in outbox:
            receivers = sender.targets(message, row)
            if link_cap is not None:
                n_wanted = len(receivers)
                receivers = [receiver for receiver in receivers if n_on_link[receiver] < link_cap]
                n_on_link.update(receivers)
                book.n_dropped += n_wanted - len(receivers)
            book.sent(number, receivers)
            for receiver in receivers:
                yield message, number, receiver, t


class _Book:
    """Keeps the books of one replicate: regret, traffic by fate, links and the event log."""

    def __init__(self, run: Run, replicate: int) -> None:
        self._run = run
        self._replicate = replicate
        self.n_sent = 0
        self.n_learned = 0
        self.n_dropped = 0
        self._n_fates = [0] * len(Fate)
        self._gaps = [
            run.problem.arm_gaps[start:stop].tolist()
            for start, stop in itertools.pairwise(run.problem.arm_offsets.tolist())
        ]
        self._pulls = [[0] * len(gaps) for gaps in self._gaps]
        self._round_regret = 0.0
        self._total_regret = 0.0
        self._record = 0
        self._regret = np.zeros(len(run.records))
        self._messages = np.zeros(len(run.records), dtype=np.int64)
        self._links: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self._trace: list[Event] = []

    def begin(self, t: int, neighbours: list[list[int]]) -> None:
        """Round `t` begins on this network."""
        self._round_regret = 0.0
        if self._run.link_traffic and (self._run.problem.is_dynamic or t == 1):
            for sender, row in enumerate(neighbours):
                for receiver in row:
                    self._links[sender, receiver].setdefault(self._record, 0)

    def pulled(self, agent: Agent, position: int) -> None:
        """An agent pulled the arm at that position of its arm set."""
        self._round_regret += self._gaps[agent.number][position]
        self._pulls[agent.number][position] += 1

    def sent(self, sender: int, receivers: Sequence[int]) -> None:
        """A message went over the links to these receivers."""
        self.n_sent += len(receivers)
        if self._run.link_traffic:
            for receiver in receivers:
                on_link = self._links[sender, receiver]
                on_link[self._record] = on_link.get(self._record, 0) + 1

    def ended(self, copy: Copy, t: int, fate: Fate, learned: bool) -> None:
        """A copy that arrived in round `t` met its fate."""
        self._n_fates[fate] += 1
        self.n_learned += learned
        if self._run.trace:
            self._trace.append(self._event(copy, t, fate, learned))

    def lost(self, copy: Copy, t: int) -> None:
        """A copy that was to arrive in round `t` was lost."""
        self.ended(copy, t, Fate.LOST, False)

    def _event(self, copy: Copy, t: int, fate: Fate, learned: bool) -> Event:
        agents, arms = self._run.problem.agents, self._run.problem.arms
        message, sender, receiver, sent_in = copy
        return Event(
            replicate=self._replicate,
            round=sent_in,
            origin=agents[message.origin],
            sequence=message.sequence,
            arm=arms[message.arm],
            reward=message.total,
            sender=agents[sender],
            receiver=agents[receiver],
            ttl=message.ttl,
            fate=fate.name.lower(),
            learned=learned,
            arrival=t,
        )

    def end(self, t: int) -> None:
        """Round `t` ended."""
        self._total_regret += self._round_regret
        if t == self._run.records[self._record]:
            self._regret[self._record] = self._total_regret
            self._messages[self._record] = self.n_sent + self._run.n_control
            self._record += 1

    def close(self) -> Outcome:
        """The replicate ended."""
        traffic = {fate.name.lower(): self._n_fates[fate] for fate in Fate} | {
            "sent": self.n_sent,
            "delivered": self.n_sent - self._n_fates[Fate.DUPLICATE] - self._n_fates[Fate.LOST],
            "dropped": self.n_dropped,
            "control": self._run.n_control,
            "learned": self.n_learned,
            "bytes": self._run.n_bytes(self.n_sent),
        }
        outcome = Outcome(
            regret=self._regret,
            messages=self._messages,
            traffic=np.array([traffic[name] for name in TRAFFIC], dtype=np.int64),
            pulls=np.array(list(itertools.chain(*self._pulls)), dtype=np.int32),
            trace=self._trace,
        )
        if self._run.link_traffic:
            outcome.links, outcome.link_traffic = self._link_arrays()
        return outcome

    def _link_arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        links = sorted(self._links)
        traffic = np.zeros((len(self._run.records), len(links)), dtype=np.int64)
        for column, link in enumerate(links):
            for record, n_sent in self._links[link].items():
                traffic[record, column] = n_sent
        return np.array(links, dtype=np.int32).reshape(-1, 2), traffic
