"""One replicate, round by round, in plain Python: it defines what is right; anything faster equals it.

One round, in this order: the network of the round is fixed, and all agents hear which round begins; every agent that
pulls in it chooses, pulls and makes its message; all queues are emptied and everything in them is sent at the same
time, senders in ascending order; what was heard enters the estimates. Faults come in at four places: agents that are
down (`presence`) take no part in a round, liars (`lying`) change what they got and what they send, what is sent passes
through `transit` before it arrives, and rewards that are `late` are observed, and become messages, in a later round
than that of their pull.

Who wants to know what happens is an observer, see `books`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from .. import draws as purposes
from ..arms.base import reward_of
from ..core import Agent, Copy, Fate, Message, Place, Receipt
from ..draws import Draws
from ..faults import Faults
from ..networks.csr import Links
from ..policies.base import Arms
from ..protocols.messages import DUPLICATE
from .books import Observer
from .chances import RoundChances
from .late import LateRewards, Pull
from .lying import Liars
from .presence import Presence
from .replay import Walks, replays
from .run import Run, ended_early
from .seen import RecentIds, RecentRewards
from .transit import Transit, Transmission

#: A copy, its sender, those that it reaches, and the round in which it was sent.
Broadcast: TypeAlias = tuple[Copy, int, Sequence[int], int]
#: About how many rewards are drawn at once, for all agents in some rounds.
DRAWN_AT_ONCE: Final = 2**12


class Stepper:
    """One replicate of a run.

    Parameters
    ----------
    run : Run
    replicate : int
        Which one.
    observers : sequence of Observer
        Those who hear what happens, in this order.

    Attributes
    ----------
    t : int
        The round that comes next, from 1.
    agents : list of Agent
        By number.
    """

    def __init__(self, run: Run, replicate: int, observers: Sequence[Observer]) -> None:
        self.t = 1
        self._run = run
        draws = run.draws(replicate)
        self._chances = RoundChances(draws)
        self._memories: list[RecentIds | RecentRewards] = []
        self.agents = self._seat_agents()
        self._networks = _networks(run, draws)
        self._neighbours: list[list[int]] | None = None
        self._walks = Walks(run.problem, draws) if run.tape is None and replays(run.problem) else None
        self._pay = _rewards(run, replicate, draws, self._walks)
        self._presence = Presence(run.faults, draws, self.agents)
        self._liars = Liars(run, replicate, draws) if run.liars else None
        self._late = _late_rewards(run, draws, self._presence.up)
        self._ended = _listeners(observers, "ended")
        #: Of this round: how many copies were sent, how many met each fate, how many each agent will learn from, and
        #: all of them, if an observer wants to hear of each.
        self._n_sent = 0
        self._n_fates = [0] * len(Fate)
        self._n_heard = [0] * len(self.agents)
        self._ends: list[tuple[Transmission, int, Fate, bool]] = []
        self._every = run.every.tolist()
        self._transit = None
        if run.faults is not None:
            self._transit = Transit(run.faults, run.horizon, draws, self._presence.up, self._lose, run.memory.unit)
        self._began = _listeners(observers, "began")
        self._pulled = _listeners(observers, "pulled")
        self._heard = _listeners(observers, "heard")
        self._sent = _listeners(observers, "sent")
        self._dropped = _listeners(observers, "dropped")
        self._counted = _listeners(observers, "counted")
        self._over = _listeners(observers, "over")

    @property
    def neighbours(self) -> list[list[int]]:
        """Every agent's neighbours in the round that comes next, ascending: it begins."""
        if self._neighbours is None:
            self._chances.now = self.t
            self._neighbours = next(self._networks)
            for agent in self.agents:
                agent.begin(self.t)
            self._presence.begin(self.t)
        return self._neighbours

    def turn(self) -> list[int]:
        """The agents that pull in the round that comes next, by number: those that are up and whose turn it is.

        Of those, an agent that has used up all its replayed arms pulls no more.
        """
        assert self.neighbours is not None
        up, before = self._presence.up, self.t - 1
        turn = [number for number, pause in enumerate(self._every) if before % pause == 0 and up[number]]
        return turn if self._walks is None else [number for number in turn if self._walks.open(number) != []]

    def open(self, number: int) -> list[int] | None:
        """The positions of the arms that an agent can pull; None if those are all that it has."""
        return None if self._walks is None else self._walks.open(number)

    def step(self, actions: Mapping[int, int] | None = None) -> None:
        """Play the next round; `actions` are positions of arms that the caller chose, by agent."""
        t, neighbours = self.t, self.neighbours
        for began in self._began:
            began(t, neighbours)
        observed = self._pull(actions or {})
        if self._run.protocol.is_central:
            self._tell_everyone(observed)
        self._deliver(neighbours)
        self._settle()
        for over in self._over:
            over(t)
        self.t += 1
        self._neighbours = None

    def _pull(self, actions: Mapping[int, int]) -> list[Pull]:
        """Everybody whose turn it is pulls an arm; gives the pulls whose rewards are observed in this round."""
        t, lag, late = self.t, self._run.rules.clock_lag, self._late
        pulls = []
        for number in self.turn():
            agent = self.agents[number]
            if number in actions:
                position, was_best = actions[number], agent.seems_best(actions[number])
            else:
                position, was_best = agent.choose(t - lag, self.open(number))
            reward = self._pay(t, number, position)
            told = reward if self._liars is None else self._liars.reward(t, agent, position, reward)
            pull = Pull(agent, position, told, was_best, t, agent.life)
            if late is None:
                agent.observe(position, told, was_best)
                pulls.append(pull)
            else:
                late.add(pull)
            for pulled in self._pulled:
                pulled(number, position, reward)
        return pulls if late is None else self._observe(late)

    def _observe(self, late: LateRewards) -> list[Pull]:
        """Let the rewards that are due be observed, and give their pulls."""
        pulls = list(late.due(self.t))
        for pull in pulls:
            self._chances.pulled_in = pull.round
            pull.agent.observe(pull.position, pull.reward, pull.was_best, pull.round)
        self._chances.pulled_in = None
        return pulls

    def _tell_everyone(self, pulls: list[Pull]) -> None:
        """Every agent that is up and has the arm hears every observation: no courier could do that within a round."""
        n_heard = 0
        for origin, position, reward, _, made, _ in pulls:
            arm = origin.arms.names[position]
            message = Message(origin.name, made, arm, 1, reward, round=made)
            for agent in self.agents:
                if agent is not origin and agent.has(arm) and self._presence.up[agent.name]:
                    agent.hear(message)
                    n_heard += 1
        for heard in self._heard:
            heard(n_heard)

    def _deliver(self, neighbours: list[list[int]]) -> None:
        """Send everything that waits, and let what arrives be received."""
        t, is_last = self.t, self.t == self._run.horizon
        checks, receive = self._receivers()
        degrees = [len(row) for row in neighbours]
        n_fates, n_heard, keeps = self._n_fates, self._n_heard, bool(self._ended)
        n_duplicates, checked = 0, None
        for copy, sender, receivers, sent_in in self._arriving(neighbours):
            if checks and receivers and copy is not checked:
                checks[receivers[0]](copy)
                checked = copy
            for receiver in receivers:
                receipt = receive[receiver](copy, sender, degrees[receiver])
                # What was seen before is most of what comes.
                if receipt is DUPLICATE and not keeps:
                    n_duplicates += 1
                    continue
                fate, heard = receipt
                if is_last and fate is Fate.RELAYED:
                    fate = Fate.QUEUED
                n_fates[fate] += 1
                if heard:
                    n_heard[receiver] += 1
                if keeps:
                    self._ends.append((Transmission(copy, sender, receiver, sent_in), t, fate, heard))
        n_fates[Fate.DUPLICATE] += n_duplicates

    def _receivers(self) -> tuple[list[Callable[[Copy], None]], list[Callable[..., Receipt]]]:
        """How copies are checked and received: by the first of its receivers for all of them, or by each for itself.

        All have the same protocol and round. But agents of a protocol's own may take other copies.
        """
        if all(type(agent).receive is Agent.receive for agent in self.agents):
            return [agent.check for agent in self.agents], [agent.receive_checked for agent in self.agents]
        return [], [agent.receive for agent in self.agents]

    def _arriving(self, neighbours: list[list[int]]) -> Iterator[Broadcast]:
        """All that arrives in this round: what is sent in it, unless faults come in between."""
        sent = self._send(neighbours)
        if self._transit is None:
            return sent
        one_by_one = (Transmission(copy, sender, one, t) for copy, sender, receivers, t in sent for one in receivers)
        carried = self._transit.carry(self.t, one_by_one)
        return ((copy, sender, (receiver,), sent_in) for copy, sender, receiver, sent_in in carried)

    def _send(self, neighbours: list[list[int]]) -> Iterator[Broadcast]:
        """All that is sent in this round, senders in ascending order, each sender's newest message first."""
        up = self._presence.up
        # Every queue is emptied before anything is received.
        parcels = [(agent.name, agent.send(neighbours[agent.name])) for agent in self.agents if up[agent.name]]
        if self._liars is not None:
            parcels = [(sender, self._liars.parcels(self.t, self.agents[sender], outbox)) for sender, outbox in parcels]
        link_cap = self._run.faults.link_cap if self._run.faults else None
        for sender, outbox in parcels:
            n_on_link: Counter[int] = Counter()
            for copy, receivers in outbox:
                if link_cap is not None:
                    n_wanted = len(receivers)
                    receivers = [receiver for receiver in receivers if n_on_link[receiver] < link_cap]
                    n_on_link.update(receivers)
                    for dropped in self._dropped:
                        dropped(n_wanted - len(receivers))
                self._n_sent += len(receivers)
                for sent in self._sent:
                    sent(copy.message, sender, receivers)
                yield copy, sender, receivers, self.t

    def _lose(self, one: Transmission, arrival: int) -> None:
        self._n_fates[Fate.LOST] += 1
        if self._ended:
            self._ends.append((one, arrival, Fate.LOST, False))

    def _settle(self) -> None:
        """What was heard enters the estimates; only now is it known which copies changed anything."""
        learned = [agent.settle() for agent in self.agents]
        for memory in self._memories:
            memory.forget(self.t)
        if self._ended:
            changes = [iter(flags) for flags in learned]
            for one, arrival, fate, heard in self._ends:
                changed = heard and next(changes[one.receiver])
                for ended in self._ended:
                    ended(one, arrival, fate, changed)
            self._ends.clear()
        # What agents hear without a copy, they hear first or by themselves; it is not counted here.
        n_learned = sum([sum(flags[:n]) for flags, n in zip(learned, self._n_heard, strict=True) if n])
        for counted in self._counted:
            counted(self._n_sent, self._n_fates, n_learned)
        self._n_sent, self._n_fates, self._n_heard = 0, [0] * len(Fate), [0] * len(self.agents)

    def _seat_agents(self) -> list[Agent]:
        run, problem, agents = self._run, self._run.problem, []
        for number in range(problem.n_agents):
            arm_set = problem.arm_set(number)
            place = Place(
                name=number,
                arms=Arms(arm_set.tolist(), problem.sigmas[arm_set].tolist(), problem.law_codes[arm_set].tolist()),
                policy=run.policies[number],
                chances=self._chances,
                rules=run.rules,
                number=number,
                n_agents=problem.n_agents,
                plan=run.plan,
                now=self._chances.this_round,
                new_id=self._chances.new_id,
                seen=self._memory,
                age_of=self._chances.age_of,
                trim=run.trim,
            )
            agents.append(run.protocol.seat(place))
        return agents

    def _memory(self, ttl: int) -> RecentIds | RecentRewards:
        """A memory of messages by the run's rules, which forgets at the end of every round."""
        run = self._run
        memory: RecentIds | RecentRewards
        if run.rules.id_is_reward:
            memory = RecentRewards(ttl, run.problem.n_agents, run.memory.stamp if run.sends_statistics else None)
        else:
            faults = run.faults or Faults()
            memory = RecentIds(ttl, faults.longest_delay, faults.longest_reward_delay)
        self._memories.append(memory)
        return memory


def _listeners(observers: Sequence[Observer], name: str) -> list[Callable[..., None]]:
    """The observers' calls of that name, of those that override it."""
    return [getattr(one, name) for one in observers if getattr(type(one), name) is not getattr(Observer, name)]


def _late_rewards(run: Run, draws: Draws, up: Sequence[bool]) -> LateRewards | None:
    """Rewards that are under way; None if each is observed in the round of its pull."""
    if run.faults is None or not run.faults.reward_delay:
        return None
    problem = run.problem
    laws = run.faults.reward_delays(problem.arms)
    return LateRewards([[laws[arm] for arm in problem.arm_set(v)] for v in range(problem.n_agents)], draws, up)


def _networks(run: Run, draws: Draws) -> Iterator[list[list[int]]]:
    """Every agent's neighbours, ascending, round by round."""
    network = run.problem.network
    if isinstance(network, Links):
        yield from itertools.repeat(network.neighbour_lists())
        return
    n_rounds = 0
    for pairs in network.rounds(draws, run.rules.births_first):
        yield Links.from_pairs(run.problem.n_agents, pairs).neighbour_lists()
        n_rounds += 1
    raise ended_early(run.horizon, n_rounds)


def _rewards(run: Run, replicate: int, draws: Draws, walks: Walks | None) -> Callable[[int, int, int], float]:
    """What a pull pays, by round, agent and position: from a tape or a log, or the drawn quantile of the arm's law."""
    problem, tape = run.problem, run.tape_of(replicate)
    arm_sets = [problem.arm_set(number).tolist() for number in range(problem.n_agents)]
    if tape is not None:
        return lambda t, agent, position: float(tape[t - 1, agent, arm_sets[agent][position]])
    laws, world = problem.laws, run.world(replicate) if problem.changes else None
    #: What is drawn for all agents, in some rounds from `first` on.
    first, rows = 1, [[0.5]][1:]

    def drawn(t: int, agent: int, position: int) -> float:
        nonlocal first, rows
        if not first <= t < first + len(rows):
            last = min(t + max(1, DRAWN_AT_ONCE // problem.n_agents), run.horizon + 1)
            first, rows = t, draws.uniforms(purposes.REWARD, problem.n_agents, t, last)
        arm, u = arm_sets[agent][position], rows[t - first][agent]
        return reward_of(laws[arm], u) if world is None else world.pay(t, arm, u)

    if walks is None:
        return drawn
    return lambda t, agent, position: (
        walks.pay(agent, position) if walks.pays(agent, position) else drawn(t, agent, position)
    )
