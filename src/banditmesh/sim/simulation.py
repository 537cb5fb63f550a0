"""A simulation that can be taken round by round, looked at, and steered from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from .. import checks
from ..core import Agent, Fate, Message, Note
from ..errors import InputError
from ..faults import Faults
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import write
from .arguments import read_run
from .books import Books, EventLog, Observer
from .engine import settings_of
from .progress import Progress
from .result import Result, assemble
from .run import Event, ProgressCallback, Run
from .stepper import Stepper
from .transit import Transmission


@dataclass(frozen=True)
class Round:
    """What happened in one round. Agents and arms are given by name.

    Attributes
    ----------
    round : int
        Which one, from 1.
    links : list of (agent, agent)
        The links that were up, each once.
    choices : dict
        The arm that each agent pulled; agents that did not pull are not in it.
    rewards : dict
        What that paid.
    regret : float
        The group regret of this round.
    events : list of Event
        Every copy that arrived or was lost in this round, with its fate.
    estimates : dict
        For each agent and each of its arms the number of observations and their mean, at the end of the round.
    transmissions : dict
        How many copies were sent in this round, by (sender, receiver); links without any are not in it.
    messages : int
        How many transmissions there have been up to now, counted as in `Result.transmissions`.
    gaps : dict
        How much less the arm that each agent pulled pays on average than its best one, by agent.
    """

    round: int
    links: list[tuple[Hashable, Hashable]]
    choices: dict[Hashable, Hashable]
    rewards: dict[Hashable, float]
    regret: float
    events: list[Event]
    estimates: dict[Hashable, dict[Hashable, tuple[int, float]]]
    transmissions: dict[tuple[Hashable, Hashable], int]
    messages: int
    gaps: dict[Hashable, float]


class Simulation:
    """One replicate of `simulate`, round by round.

    Parameters
    ----------
    problem, protocol, policy, horizon, seed, rules, link_traffic, agents, rewards, means, every, faults, record_every
        As in `simulate`.
    replicate : int
        Which replicate of `simulate` with the same seed it is.
    trace : bool or callable
        As in `simulate`; it takes no file.

    Attributes
    ----------
    problem : Problem
    round : int
        How many rounds have been played.
    horizon : int
        How many there are in all.

    Notes
    -----
    It runs on the reference engine. With the same seed, stepping through a simulation and simulating it in one go give
    the same numbers, to the last bit, as long as no actions are given.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = {"a": bm.arms.Bernoulli(0.2), "b": bm.arms.Bernoulli(0.8)}
    >>> problem = bm.Problem(bm.networks.path(3), [["a", "b"]] * 3, arms)
    >>> simulation = bm.Simulation(problem, bm.FwA(2), horizon=50, seed=1)
    >>> first = simulation.step()
    >>> first.choices
    {0: 'a', 1: 'a', 2: 'a'}
    >>> [(event.sender, event.receiver, event.fate) for event in first.events]
    [(0, 1, 'absorbed'), (1, 0, 'absorbed'), (1, 2, 'absorbed'), (2, 1, 'absorbed')]
    >>> first.estimates[1]["a"][0]
    3
    >>> simulation.step(actions={1: "a"}).choices
    {0: 'b', 1: 'a', 2: 'b'}
    >>> result = simulation.run()
    >>> result.regret.shape
    (1, 50)
    """

    def __init__(
        self,
        problem: Problem,
        protocol: AnyProtocol | str,
        *,
        policy: Policy | str | Sequence[Policy] | None = None,
        horizon: int = 1000,
        seed: int | None = None,
        replicate: int = 0,
        rules: str = "sound",
        link_traffic: bool = False,
        agents: bool = False,
        rewards: ArrayLike | None = None,
        means: ArrayLike | None = None,
        every: int | Sequence[int] | None = None,
        faults: Faults | None = None,
        record_every: int = 1,
        trace: bool | Callable[[Event], object] = False,
        trim: int = 0,
    ) -> None:
        self._run: Run = read_run(
            problem,
            protocol,
            policy=policy,
            horizon=horizon,
            replicates=1,
            seed=seed,
            rules=rules,
            link_traffic=link_traffic,
            agents=agents,
            rewards=rewards,
            means=means,
            every=every,
            faults=faults,
            record_every=record_every,
            trace=trace,
            trim=trim,
        )
        replicate = checks.integer("replicate", replicate, at_least=0)
        self.problem = problem
        self._numbers = {name: number for number, name in enumerate(problem.agents)}
        self._books = Books(self._run, replicate)
        self._watch = _Watch(self._run, replicate)
        self._stepper = Stepper(self._run, replicate, [*self._books.observers, self._watch])
        self._result: Result | None = None

    @property
    def round(self) -> int:
        """How many rounds have been played."""
        return self._stepper.t - 1

    @property
    def horizon(self) -> int:
        """How many rounds there are in all."""
        return self._run.horizon

    @property
    def label(self) -> str:
        """The protocol written out, as in "fwa(4)+contested"."""
        return write(self._run.protocol)

    @property
    def is_over(self) -> bool:
        """Whether all rounds have been played."""
        return self.round == self.horizon

    @property
    def agents(self) -> dict[Hashable, Agent]:
        """The agents as they are now, by name. They are to be looked at: whoever drives them changes the simulation."""
        return dict(zip(self.problem.agents, self._stepper.agents, strict=True))

    def turn(self) -> list[Hashable]:
        """The agents that pull in the round that comes next: those that are up and whose turn it is."""
        self._check_not_over()
        return [self.problem.agents[number] for number in self._stepper.turn()]

    def can_pull(self) -> dict[Hashable, list[Hashable]]:
        """The arms that each agent of `turn` can pull in the round that comes next: those that are not used up."""
        self._check_not_over()
        arms, names, found = self.problem.arms, self.problem.agents, {}
        for number in self._stepper.turn():
            held, places = self.problem.arm_set(number), self._stepper.open(number)
            found[names[number]] = [arms[arm] for arm in (held if places is None else held[places])]
        return found

    def step(self, actions: Mapping[Hashable, Hashable] | None = None) -> Round:
        """Play one round.

        Parameters
        ----------
        actions : mapping, optional
            For some agents the arm that they pull; the others choose by their policies. Only agents whose turn it is,
            see `turn`, can be made to pull.

        Returns
        -------
        Round
            What happened.
        """
        self._check_not_over()
        positions = self._positions(actions or {})
        self._watch.listens = True
        try:
            self._stepper.step(positions)
        finally:
            self._watch.listens = False
        return self._watch.seen(self.round, self._stepper.agents)

    def run(self, progress: bool | ProgressCallback | None = None) -> Result:
        """Play the rounds that are left, and give the result of all.

        Parameters
        ----------
        progress : bool or callable, optional
            As in `simulate`.
        """
        if self._result is None:
            with Progress(progress, self.horizon, self._run.protocol.name) as bar:
                bar.advance(self.round)
                while not self.is_over:
                    self._stepper.step()
                    bar.advance(1)
            self._result = assemble(self._run, "reference", [self._books.close()], settings_of(self._run))
        return self._result

    def _check_not_over(self) -> None:
        if self.is_over:
            raise InputError(f"the simulation is over after its {self.horizon} rounds; make another one to go on")

    def _positions(self, actions: Mapping[Hashable, Hashable]) -> dict[int, int]:
        if not isinstance(actions, Mapping):
            raise InputError(f"actions must be a mapping from agents to arms, got {checks.shown(actions)}")
        turn = set(self._stepper.turn()) if actions else set()
        positions = {}
        for name, arm in actions.items():
            number = self._numbers.get(name) if checks.is_hashable(name) else None
            if number is None:
                raise InputError(f"actions must name agents of the problem, got {checks.shown(name)}")
            if number not in turn:
                raise InputError(
                    f"agent {name!r} does not pull in round {self.round + 1}; see turn() for those that do"
                )
            arms = [self.problem.arms[one] for one in self.problem.arm_set(number)]
            if arm not in arms:
                raise InputError(f"agent {name!r} must pull one of its arms {checks.shown(arms)}, got {arm!r}")
            position, can_pull = arms.index(arm), self._stepper.open(number)
            if can_pull is not None and position not in can_pull:
                raise InputError(f"agent {name!r} must pull an arm that is not used up, got {arm!r}")
            positions[number] = position
        return positions

    def __repr__(self) -> str:
        return f"<Simulation: {self._run.protocol!r}, round {self.round} of {self.horizon}>"


class _Watch(Observer):
    """Remembers one round, while it listens."""

    def __init__(self, run: Run, replicate: int) -> None:
        self._run = run
        self._replicate = replicate
        self._problem = run.problem
        self.listens = False
        self._neighbours: list[list[int]] = []
        self._pulls: list[tuple[int, int, float]] = []
        self._events: list[Event] = []
        self._on_links: Counter[tuple[int, int]] = Counter()
        self._n_sent = run.n_control
        self._log = EventLog(run, replicate, self._events.append)

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        self._neighbours = neighbours
        self._pulls.clear()
        self._events.clear()
        self._on_links.clear()

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        self._n_sent += len(receivers)
        if self.listens:
            for receiver in receivers:
                self._on_links[sender, receiver] += 1

    def pulled(self, agent: int, position: int, reward: float) -> None:
        if self.listens:
            self._pulls.append((agent, position, reward))

    def ended(self, transmission: Transmission, arrival: int, fate: Fate, learned: bool) -> None:
        if self.listens:
            self._log.ended(transmission, arrival, fate, learned)

    def seen(self, t: int, agents: Sequence[Agent]) -> Round:
        """What was remembered."""
        problem = self._problem
        names, arms, offsets = problem.agents, problem.arms, problem.arm_offsets
        every_gap = self._run.gaps_in(self._replicate, t)
        liars = {names[v] for v in self._run.liars}
        gaps = {names[v]: float(every_gap[offsets[v] + position]) for v, position, _ in self._pulls}
        return Round(
            round=t,
            links=[(names[i], names[j]) for i, row in enumerate(self._neighbours) for j in row if i < j],
            choices={names[v]: arms[problem.arm_set(v)[position]] for v, position, _ in self._pulls},
            rewards={names[v]: reward for v, _, reward in self._pulls},
            regret=float(sum(gap for name, gap in gaps.items() if name not in liars)),
            events=list(self._events),
            estimates={
                names[v]: {
                    arms[arm]: (count, mean)
                    for arm, count, mean in zip(
                        problem.arm_set(v), agent.estimates.count, agent.estimates.mean, strict=True
                    )
                }
                for v, agent in enumerate(agents)
            },
            transmissions={(names[i], names[j]): n for (i, j), n in self._on_links.items()},
            messages=self._n_sent,
            gaps=gaps,
        )
