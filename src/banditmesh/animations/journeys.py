"""One message followed hop by hop: which agents relay it, absorb it or already have it, and where it ends.

There are no relaying rules here. This runs the reference engine itself, with a single difference: one agent pulls once,
in the first round, and no other agent pulls at all. So the message travels alone, and its copies are the whole event
log. Under the sound rules other messages would change nothing for it, unless a link's capacity is limited.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..core import Fate, Message, Note
from ..errors import InputError
from ..faults import Faults
from ..networks.csr import Links
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import as_protocol, write
from ..sim.arguments import read_run
from ..sim.books import EventLog, Observer
from ..sim.limits import MAX_ROUNDS
from ..sim.run import Event, Run
from ..sim.stepper import Stepper
from ..sim.transit import Transmission
from .sites import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A jitter of this many times its mean does not happen.
_LONGEST_JITTER: Final = 50
_MAX_NAMES: Final = 4
#: What agents do with a copy, one of them and several, by its fate and whether they learn from it.
_VERBS: Final = {
    ("absorbed", True): ("learns and absorbs it", "learn and absorb it"),
    ("absorbed", False): ("absorbs it", "absorb it"),
    ("relayed", True): ("learns and relays it", "learn and relay it"),
    ("relayed", False): ("relays it", "relay it"),
    ("expired", True): ("learns it, and it expires", "learn it, and it expires"),
    ("expired", False): ("gets it as it expires", "get it as it expires"),
    ("stopped", True): ("learns and stops it", "learn and stop it"),
    ("stopped", False): ("stops it", "stop it"),
    ("queued", True): ("learns it and would relay it", "learn it and would relay it"),
    ("queued", False): ("would relay it", "would relay it"),
    ("duplicate", False): ("drops a duplicate", "drop duplicates"),
    ("lost", False): ("misses a copy that is lost", "miss copies that are lost"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Journey:
    """Every copy of one message.

    Attributes
    ----------
    problem : Problem
    label : str
        The protocol, written out, as in "fwa(4)".
    origin, arm : hashable
        The message's origin and arm.
    hops : tuple of Event
        Every copy that was sent, with its fate, in the order in which they arrived.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = {"a": bm.arms.Bernoulli(0.2), "b": bm.arms.Bernoulli(0.8)}
    >>> problem = bm.Problem(bm.networks.path(4), [["a"], ["b"], ["a"], ["a"]], arms)
    >>> for line in bm.follow(problem, "fwa(3)", origin=0, arm="a").words():
    ...     print(line)
    hop 1: agent 1 relays it; 1 transmission so far
    hop 2: agent 2 learns and absorbs it; 2 transmissions so far
    """

    problem: Problem
    label: str
    origin: Hashable
    arm: Hashable
    hops: tuple[Event, ...]
    #: For each round of a dynamic network its links, by number; for a static one only those of round 1.
    links: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def n_sent(self) -> int:
        """The number of transmissions."""
        return len(self.hops)

    @property
    def fates(self) -> dict[str, int]:
        """How many copies met which fate."""
        return dict(Counter(event.fate for event in self.hops))

    @property
    def learners(self) -> tuple[Hashable, ...]:
        """The agents that learned from it, in order."""
        return tuple(event.receiver for event in self.hops if event.learned)

    def rounds(self) -> list[tuple[int, list[Event]]]:
        """The rounds in which copies arrived, or were lost, each with these copies."""
        return [(number, list(events)) for number, events in groupby(self.hops, attrgetter("arrival"))]

    def words(self) -> list[str]:
        """What happened, one line for each round."""
        lines, n_sent, most = [], 0, max((event.ttl for event in self.hops), default=0)
        for number, events in self.rounds():
            n_sent += len(events)
            hops = {most - event.ttl + 1 for event in events}
            when = f"hop {hops.pop()}" if len(hops) == 1 else f"round {number}"
            lines.append(f"{when}: {'; '.join(_told(events))}; {_counted(n_sent, 'transmission')} so far")
        return lines or ["nothing is sent"]

    def plot(self, *, ax: Any = None, figsize: tuple[float, float] | None = None) -> Figure:
        """The network with the journey of the message, as `Problem.plot` draws it.

        Parameters
        ----------
        ax : axes, optional
            Where to draw instead of in a new figure.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        """
        return self.problem.plot(message=self, ax=ax, figsize=figsize)

    def _repr_html_(self) -> str:
        from .files import animate  # which needs journeys

        return animate(self)._repr_html_()

    def __repr__(self) -> str:
        return (
            f"<Journey: {self.label}, from agent {self.origin!r}, arm {self.arm!r}, "
            f"{_counted(self.n_sent, 'transmission')}, {_counted(len(self.learners), 'agent')} learned>"
        )


def follow(
    problem: Problem,
    protocol: AnyProtocol | str,
    origin: Hashable,
    arm: Hashable,
    *,
    rules: str = "sound",
    faults: Faults | None = None,
    seed: int = 0,
) -> Journey:
    """Follow one message: an agent pulls an arm once, and its message travels through the network alone.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocol : Protocol or str
        One that relays messages hop by hop.
    origin : hashable
        The agent whose message it is.
    arm : hashable
        One of its arms.
    rules : str
        "sound" or "published".
    faults : Faults, optional
        Faults: copies may be lost or late, agents down. How late rewards are plays no part.
    seed : int
        Decides what is random: relays, losses, and a dynamic network's links.

    Returns
    -------
    Journey
        Every copy, with its fate.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.star(5), n_arms=2, per_agent=2, seed=0)
    >>> bm.follow(problem, bm.Flooding(4), origin=1, arm=0).n_sent
    4
    >>> bm.follow(problem, bm.FwA(4), origin=1, arm=0)
    <Journey: fwa(4), from agent 1, arm 0, 1 transmission, 1 agent learned>
    """
    protocol = as_protocol(protocol)
    if (protocol.sends_messages and not protocol.relays_by_rule) or protocol.is_central:
        raise InputError(
            f"a message can be followed with a protocol that relays it hop by hop, got {write(protocol)!r}; "
            "use fwa or flooding, for example"
        )
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    number, position = _found(problem, origin, arm)
    if isinstance(faults, Faults):
        # A message is followed from when it is made.
        faults = replace(faults, reward_delay=0)
    horizon = _longest(problem, protocol, faults)
    run = read_run(problem, protocol, horizon=horizon, seed=seed, rules=rules, faults=faults, record_every=horizon)
    watch = _Watch(run)
    stepper = _OnePull(run, number, watch)
    while stepper.t <= horizon and not watch.is_over:
        stepper.step({number: position})
    hops = sorted(watch.events, key=attrgetter("arrival"))
    return Journey(problem, write(protocol), origin, arm, tuple(hops), watch.links)


class _OnePull(Stepper):
    """The reference engine, in which one agent pulls, in the first round."""

    def __init__(self, run: Run, origin: int, watch: Observer) -> None:
        super().__init__(run, 0, [watch])
        self._origin = origin

    def turn(self) -> list[int]:
        """The agent whose message it is."""
        turn = super().turn()
        return [self._origin] if self.t == 1 and self._origin in turn else []


class _Watch(Observer):
    """Records every copy's fate and the links, and notices when no copy is left."""

    def __init__(self, run: Run) -> None:
        self.events: list[Event] = []
        self.links: dict[int, list[tuple[int, int]]] = {}
        self.is_over = False
        self._log = EventLog(run, 0, self.events.append)
        self._is_dynamic = run.problem.is_dynamic
        self._n_under_way = 0
        self._n_waiting = 0

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        if t == 1 or self._is_dynamic:
            self.links[t] = [(i, j) for i, row in enumerate(neighbours) for j in row if i < j]
        self._n_waiting = 0

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        self._n_under_way += len(receivers)

    def ended(self, transmission: Transmission, arrival: int, fate: Fate, learned: bool) -> None:
        self._n_under_way -= 1
        self._n_waiting += fate is Fate.RELAYED
        self._log.ended(transmission, arrival, fate, learned)

    def over(self, t: int) -> None:
        self.is_over = self._n_under_way == 0 and self._n_waiting == 0


def _longest(problem: Problem, protocol: AnyProtocol, faults: Faults | None) -> int:
    """The most rounds that a message can be under way within the life of the network."""
    ttl = max(protocol.most_hops, 1)
    # Anything but Faults is refused when the run is read.
    slowest = 1 if not isinstance(faults, Faults) else 1 + faults.delay + math.ceil(_LONGEST_JITTER * faults.jitter)
    # No agent relays a message twice, but under the published rules its origin may relay its own.
    rounds = min((min(ttl, problem.n_agents + 1) + 1) * slowest, MAX_ROUNDS)
    n_rounds = None if isinstance(problem.network, Links) else problem.network.n_rounds
    return rounds if n_rounds is None else min(rounds, n_rounds)


def _found(problem: Problem, origin: Hashable, arm: Hashable) -> tuple[int, int]:
    """The number of an agent, and the position of an arm in its arm set."""
    agents = problem.agents
    if not checks.is_hashable(origin) or origin not in agents:
        raise InputError(f"origin must be an agent of the problem, got {checks.shown(origin)}")
    number = agents.index(origin)
    arms = [problem.arms[one] for one in problem.arm_set(number)]
    if arm not in arms:
        raise InputError(f"arm must be one of agent {origin!r}'s arms {checks.shown(arms)}, got {checks.shown(arm)}")
    return number, arms.index(arm)


def _told(events: Iterable[Event]) -> list[str]:
    """What happened to some copies, grouped by fate, in the order of the verbs."""
    by_verb: dict[tuple[str, bool], list[Any]] = {}
    for event in events:
        by_verb.setdefault((event.fate, event.learned), []).append(event.receiver)
    told = []
    for key in sorted(by_verb, key=list(_VERBS).index):
        copies = by_verb[key]
        agents = list(dict.fromkeys(copies))
        verb = _VERBS[key][len(agents) > 1]
        several = "" if len(copies) == len(agents) else f" ({len(copies)} copies)"
        told.append(f"{_listed(agents)} {verb}{several}")
    return told


def _listed(agents: list[Any]) -> str:
    if len(agents) == 1:
        return f"agent {short(agents[0])}"
    if len(agents) > _MAX_NAMES:
        return f"agents {', '.join(map(short, agents[:_MAX_NAMES]))} and {len(agents) - _MAX_NAMES} more"
    return f"agents {', '.join(map(short, agents[:-1]))} and {short(agents[-1])}"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
