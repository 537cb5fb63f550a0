"""The reference engine: synchronous rounds in plain Python. It defines what is right; anything faster equals it.

One round, in this order: the network of the round is fixed; every agent that pulls in it chooses, pulls and makes
its message; all queues are emptied and everything in them is sent at the same time, senders in ascending order; what
was learned enters the estimates.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .. import draws as purposes
from ..agent import Agent, Fate, Message
from ..draws import Draws
from ..networks.csr import Links
from .run import TRAFFIC, Event, Outcome, Run, ended_early

#: How long the pilot of an estimate may take, in seconds.
PILOT_SECONDS: Final = 1.0


def run_replicate(run: Run, replicate: int, advance: Callable[[], None]) -> Outcome:
    """Simulate one replicate; `advance` is called after every round."""
    problem, horizon = run.problem, run.horizon
    draws = Draws(run.seed, replicate)
    agents = [_make_agent(run, number, draws) for number in range(problem.n_agents)]
    pay = _rewards(run, replicate, draws)
    book = _Book(run, replicate)
    for t, neighbours in _networks(run, draws):
        book.begin(t, neighbours)
        pulled: list[tuple[Agent, int, float]] = []
        for agent in agents:
            if (t - 1) % run.every[agent.number] == 0:
                position = agent.choose(t)
                reward = pay(t, agent, position)
                agent.observe(t, position, reward)
                book.pulled(agent, position)
                pulled.append((agent, position, reward))
        if run.protocol.central:
            _tell_everyone(t, agents, pulled, book)
        outboxes = [agent.take_outbox() for agent in agents]
        for sender, outbox in zip(agents, outboxes, strict=True):
            for message in outbox:
                for number in sender.targets(message, neighbours[sender.number]):
                    receipt = agents[number].receive(message, sender.number, len(neighbours[number]))
                    fate = receipt.fate
                    if fate is Fate.RELAYED and t == horizon:
                        fate = Fate.QUEUED
                    book.sent(message, sender.number, number, fate, receipt.learned)
        for agent in agents:
            agent.settle(t)
        book.end(t)
        advance()
    return book.close(agents)


def estimated_seconds(run: Run) -> float:
    """About how long the run will take, from its first rounds, or from the first second if that ends before.

    Traffic grows until messages are ttl rounds old; then as many rounds as the slowest agent's pause are timed.
    """
    n_timed = int(run.every.max())
    pilot = min(run.horizon, run.protocol.ttl + n_timed)
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


def _make_agent(run: Run, number: int, draws: Draws) -> Agent:
    arm_set = run.problem.arm_set(number)
    return Agent(
        number,
        arm_set.tolist(),
        run.problem.sigmas[arm_set].tolist(),
        run.problem.law_codes[arm_set].tolist(),
        run.policies[number],
        run.protocol,
        run.rules,
        draws,
        run.problem.n_agents,
    )


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
    return lambda t, agent, position: laws[agent.arm_set[position]].quantile(
        draws.uniform(purposes.REWARD, agent.number, t)
    )


def _tell_everyone(t: int, agents: list[Agent], pulled: list[tuple[Agent, int, float]], book: _Book) -> None:
    for origin, position, reward in pulled:
        arm = origin.arm_set[position]
        message = Message(origin.number, t, arm, 1, reward, origin.number, 0)
        for agent in agents:
            if agent is not origin and agent.has(arm):
                agent.hear(message)
                book.count["learned"] += 1


class _Book:
    """Keeps the books of one replicate: regret, traffic by fate, links and the event log."""

    def __init__(self, run: Run, replicate: int) -> None:
        self._run = run
        self._replicate = replicate
        self.count = dict.fromkeys(TRAFFIC, 0)
        self._gaps = [
            run.problem.arm_gaps[start:stop].tolist()
            for start, stop in itertools.pairwise(run.problem.arm_offsets.tolist())
        ]
        self._round_regret = 0.0
        self._total_regret = 0.0
        self._record = 0
        self._regret = np.zeros(len(run.records))
        self._messages = np.zeros(len(run.records), dtype=np.int64)
        self._links: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self._trace: list[Event] = []
        self._t = 0

    def begin(self, t: int, neighbours: list[list[int]]) -> None:
        """Round `t` begins on this network."""
        self._t = t
        self._round_regret = 0.0
        if self._run.link_traffic and (self._run.problem.is_dynamic or t == 1):
            for sender, row in enumerate(neighbours):
                for receiver in row:
                    self._links[sender, receiver].setdefault(self._record, 0)

    def pulled(self, agent: Agent, position: int) -> None:
        """An agent pulled the arm at that position of its arm set."""
        self._round_regret += self._gaps[agent.number][position]

    def sent(self, message: Message, sender: int, receiver: int, fate: Fate, learned: bool) -> None:
        """A copy went over a link and met its fate."""
        count = self.count
        count["sent"] += 1
        count["bytes"] += self._run.protocol.emission.n_bytes
        count[fate.name.lower()] += 1
        if fate is not Fate.DUPLICATE and fate is not Fate.LOST:
            count["delivered"] += 1
        if learned:
            count["learned"] += 1
        if self._run.link_traffic:
            on_link = self._links[sender, receiver]
            on_link[self._record] = on_link.get(self._record, 0) + 1
        if self._run.trace:
            self._trace.append(self._event(message, sender, receiver, fate, learned))

    def _event(self, message: Message, sender: int, receiver: int, fate: Fate, learned: bool) -> Event:
        agents, arms = self._run.problem.agents, self._run.problem.arms
        return Event(
            replicate=self._replicate,
            round=self._t,
            origin=agents[message.origin],
            sequence=message.sequence,
            arm=arms[message.arm],
            reward=message.total,
            sender=agents[sender],
            receiver=agents[receiver],
            ttl=message.ttl,
            fate=fate.name.lower(),
            learned=learned,
        )

    def end(self, t: int) -> None:
        """Round `t` ended."""
        self._total_regret += self._round_regret
        if t == self._run.records[self._record]:
            self._regret[self._record] = self._total_regret
            self._messages[self._record] = self.count["sent"]
            self._record += 1

    def close(self, agents: list[Agent]) -> Outcome:
        """The replicate ended."""
        outcome = Outcome(
            regret=self._regret,
            messages=self._messages,
            traffic=np.array([self.count[name] for name in TRAFFIC], dtype=np.int64),
            pulls=np.array([pulls for agent in agents for pulls in agent.pulls], dtype=np.int32),
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
