"""A run as a document of changes: what each round, or every few of them, changed in the picture of a network.

The size is limited. A frame covers one round as long as there is room, and then as many as it takes for the rest of the
run to fit in the remaining room; the document's notes say so. A frame has changes only: which agents regret more, which
links carry another load, which agents have heard one more holder of an arm, which links appeared and vanished. Of a
small network it also says what was sent in which direction, so that messages can be seen on their way. A document of a
whole run says how large its numbers become, so that colours mean the same in all of its frames.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .. import checks
from ..errors import InputError
from ..plots.palette import style_of
from ..problem import Problem
from ..sim.run import Event
from ..sim.simulation import Round
from .documents import head
from .sites import Sites, named_links, short

#: About how many numbers all frames of a document have together, and the most frames.
MAX_NUMBERS: Final = 2_000_000
MAX_FRAMES: Final = 1_000
#: The most agents of a network whose messages are recorded by direction.
MAX_DIRECTED: Final = 120
_MAX_ARMS: Final = 8
SEVERAL_ROUNDS: Final = "some frames cover several rounds, so that the file stays small"


class Recorder:
    """Makes a document of a run, round by round.

    Parameters
    ----------
    problem : Problem
    horizon : int
        How many rounds there will be.
    label : str
        What the run is called, such as its protocol.
    arms : sequence, optional
        The arms for which to record how many of their holders each agent has heard; at most 8. By default the (first)
        one that most agents have.

    Attributes
    ----------
    n_frames : int
        How many frames there are.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import Recorder
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> simulation = bm.Simulation(problem, bm.FwA(2), horizon=3, seed=0)
    >>> recorder = Recorder(problem, horizon=3, label="fwa(2)")
    >>> while not simulation.is_over:
    ...     recorder.add(simulation.step())
    >>> [(frame["round"], frame["messages"]) for frame in recorder.frames_since(0)]
    [(1, 10), (2, 20), (3, 30)]
    """

    def __init__(
        self,
        problem: Problem,
        *,
        horizon: int,
        label: str = "",
        arms: Sequence[Hashable] | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
        sites = Sites.of_problem(problem)
        chosen = chosen_arms(problem, arms)
        holders = [problem.holders[arm] for arm in chosen]
        links = named_links(problem)
        self._film = Film(sites, horizon, label, chosen, holders, has_regret=True, links=links)

    def add(self, one: Round) -> None:
        """Take the next round, as `Simulation.step` gives it."""
        self._film.add(one.round, one.links, one.gaps, one.regret, one.transmissions, one.messages, one.events)

    @property
    def n_frames(self) -> int:
        """How many frames there are."""
        return len(self._film.frames)

    def finish(self) -> None:
        """Close the last frame, whose rounds may not be complete; later rounds start another one."""
        self._film.close()

    def frames_since(self, number: int) -> list[dict[str, Any]]:
        """The frames from that number on, counted from 0."""
        return self._film.frames[checks.integer("the number of a frame", number, at_least=0) :]

    def document(self) -> dict[str, Any]:
        """The document so far."""
        return self._film.document()


class Film:
    """Frames of a run from any source; see `Recorder` and `traces`.

    Parameters
    ----------
    sites : Sites
        What is drawn.
    horizon : int
        The last round.
    label : str
        What the run is called.
    arms : sequence
        The arms whose heard holders are counted.
    holders : sequence of sequences
        The agents that have each of them.
    has_regret : bool
        Whether each agent's regret is known.
    links : iterable of (agent, agent)
        The links drawn before the first round.
    """

    def __init__(
        self,
        sites: Sites,
        horizon: int,
        label: str,
        arms: Sequence[Hashable],
        holders: Sequence[Iterable[Hashable]],
        has_regret: bool,
        links: Iterable[tuple[Hashable, Hashable]],
    ) -> None:
        self.frames: list[dict[str, Any]] = []
        self._sites = sites
        self._horizon = checks.integer("horizon", horizon, at_least=1)
        self._label = label
        self._arms = list(arms)
        self._holders = [sorted({sites.node_of[agent] for agent in one}) for one in holders]
        self._has_regret = has_regret
        self._room = MAX_NUMBERS
        self._stride = 1 + (self._horizon - 1) // MAX_FRAMES
        self._sizes = sites.sizes or [1] * len(sites.names)
        self._regret = np.zeros(len(sites.names))
        self._total = 0.0
        self._messages = 0
        self._round = 0
        self._before = 0
        #: The load of each link in the last frame, per round.
        self._loads: dict[tuple[int, int], float] = {}
        self._given_links: Sequence[Any] | None = None
        self._first_links = self._links = self._drawn_links = sites.links(links)
        self._heard_of: list[dict[Hashable, set[Hashable]]] = [{} for _ in self._arms]
        self._heard = [np.zeros(len(sites.names), dtype=np.int64) for _ in self._arms]
        self._has_directions = len(sites.names) <= MAX_DIRECTED
        self._scale: dict[str, Any] = {"regret": 0, "load": 0.0, "heard": [0] * len(self._arms)}
        self._clear()

    def _clear(self) -> None:
        """Begin a frame."""
        self._sent: Counter[tuple[int, int]] = Counter()
        self._directed: Counter[tuple[int, int]] = Counter()
        self._regretting: set[int] = set()
        self._hearing: list[set[int]] = [set() for _ in self._arms]

    def add(
        self,
        number: int,
        links: Sequence[tuple[Hashable, Hashable]],
        gaps: Mapping[Hashable, float],
        regret: float,
        transmissions: Mapping[tuple[Hashable, Hashable], int],
        messages: int,
        events: Iterable[Event],
    ) -> None:
        """Take a round: its links, each agent's and all agents' regret in it, what was sent, and what arrived."""
        if number != self._round + 1:
            raise InputError(f"rounds must be added one after the other, got round {number} after round {self._round}")
        node_of = self._sites.node_of
        self._round, self._messages = number, messages
        self._total += regret
        # A static network's links are the same list again and again; comparing is quicker than drawing them again.
        if links != self._given_links:
            self._given_links, self._links = links, self._sites.links(links)
        for agent, gap in gaps.items():
            if gap:
                self._regret[node_of[agent]] += gap
                self._regretting.add(node_of[agent])
        for (sender, receiver), n in transmissions.items():
            i, j = node_of[sender], node_of[receiver]
            if i != j:
                self._sent[(i, j) if i < j else (j, i)] += n
                if self._has_directions:
                    self._directed[i, j] += n
        for event in events:
            if event.learned and event.arm in self._arms:
                self._hear(self._arms.index(event.arm), event)
        if number >= self._before + self._stride or number == self._horizon:
            self.close()

    def _hear(self, arm: int, event: Event) -> None:
        known = self._heard_of[arm].setdefault(event.receiver, set())
        if event.origin not in known:
            known.add(event.origin)
            node = self._sites.node_of[event.receiver]
            self._heard[arm][node] += 1
            self._hearing[arm].add(node)

    def close(self) -> None:
        """End the frame under way, if it has any round."""
        n_rounds = self._round - self._before
        if n_rounds == 0:
            return
        loads = {link: n / n_rounds for link, n in self._sent.items()}
        changed = [link for link in loads if loads[link] != self._loads.get(link)]
        changed += [link for link in self._loads if link not in loads]
        frame: dict[str, Any] = {
            "round": self._round,
            "rounds": n_rounds,
            "regret": self._total if self._has_regret else None,
            "messages": self._messages,
            "agents": [
                value for node in sorted(self._regretting) for value in (node, rounded(self._mean(self._regret, node)))
            ],
            "traffic": [value for link in sorted(changed) for value in (*link, self._sent.get(link, 0))],
            "heard": [
                [value for node in sorted(nodes) for value in (node, rounded(self._mean(heard, node)))]
                for nodes, heard in zip(self._hearing, self._heard, strict=True)
            ],
            "up": list(itertools.chain(*sorted(self._links - self._drawn_links))),
            "down": list(itertools.chain(*sorted(self._drawn_links - self._links))),
        }
        if self._has_directions:
            frame["sent"] = [value for link, n in sorted(self._directed.items()) for value in (*link, n)]
        self._scale["regret"] = max([self._scale["regret"], *frame["agents"][1::2]])
        self._scale["load"] = max([self._scale["load"], *loads.values()])
        self._scale["heard"] = [
            max([most, *changes[1::2]]) for most, changes in zip(self._scale["heard"], frame["heard"], strict=True)
        ]
        self.frames.append(frame)
        self._loads, self._drawn_links, self._before = loads, self._links, self._round
        self._clear()
        self._pace(frame)

    def _pace(self, frame: Mapping[str, Any]) -> None:
        """How many rounds the next frame covers: as many as fit if all later ones are like this one."""
        cost = 4 + sum(len(frame.get(key, ())) for key in ("agents", "traffic", "sent", "up", "down"))
        cost += sum(map(len, frame["heard"]))
        self._room -= cost
        n_left = self._horizon - self._round
        n_frames = min(self._room // cost, MAX_FRAMES - len(self.frames))
        self._stride = n_left if n_frames < 1 else -(-n_left // n_frames)

    def _mean(self, values: Any, node: int) -> float:
        return float(values[node]) / self._sizes[node]

    def document(self) -> dict[str, Any]:
        """The document so far."""
        notes = list(self._sites.notes)
        if any(frame["rounds"] > 1 for frame in self.frames):
            notes.append(SEVERAL_ROUNDS)
        if not self._has_regret:
            notes.append("an event log does not contain agents' regret: only traffic and what is heard are shown")
        return {
            **head("run", self._sites, self._first_links, notes),
            "label": self._label,
            "horizon": self._horizon,
            "has_regret": self._has_regret,
            "arms": [short(arm) for arm in self._arms],
            "holders": self._holders,
            "frames": list(self.frames),
            **({"scale": self._scale} if self._before == self._horizon else {}),
        }


def side_by_side(*documents: dict[str, Any]) -> dict[str, Any]:
    """One document of several runs on the same network, for the player to show beside each other.

    Parameters
    ----------
    *documents : dict
        Of single runs, with the same agents, horizon and arms.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import Recorder, side_by_side
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> both = [Recorder(problem, horizon=3, label=label).document() for label in ("fwa(2)", "flooding(2)")]
    >>> [run["label"] for run in side_by_side(*both)["runs"]]
    ['fwa(2)', 'flooding(2)']
    """
    first, *others = documents
    for other in others:
        for key in ("horizon", "arms", "has_regret"):
            if other[key] != first[key]:
                raise InputError(f"runs side by side must have the same {key}, got {first[key]!r} and {other[key]!r}")
        if other["network"]["names"] != first["network"]["names"]:
            raise InputError("runs side by side must be on the same network, got other agents")
    labels = [one["label"] for one in documents]
    shared = {key: value for key, value in first.items() if key not in ("label", "frames", "scale", "notes")}
    shared["notes"] = list(dict.fromkeys(note for one in documents for note in one["notes"]))
    if all("scale" in one for one in documents):
        scales = [one["scale"] for one in documents]
        shared["scale"] = {key: max(scale[key] for scale in scales) for key in ("regret", "load")}
        shared["scale"]["heard"] = [max(heard) for heard in zip(*(scale["heard"] for scale in scales), strict=True)]
    runs = [
        {"label": one["label"], "colour": style_of(one["label"], labels)[0], "frames": one["frames"]}
        for one in documents
    ]
    return {**shared, "runs": runs}


def chosen_arms(problem: Problem, arms: Sequence[Hashable] | None) -> list[Hashable]:
    """The arms requested, or the (first) one that most agents have."""
    if arms is None:
        return [max(problem.arms, key=lambda arm: len(problem.holders[arm]))]
    if isinstance(arms, str) or not isinstance(arms, Sequence) or len(arms) > _MAX_ARMS:
        raise InputError(f"arms must be a list of at most {_MAX_ARMS} arms, got {checks.shown(arms)}")
    for arm in arms:
        if not checks.is_hashable(arm) or arm not in problem.holders:
            raise InputError(f"arms must name arms of the problem, got {checks.shown(arm)}")
    return list(arms)


def rounded(value: float) -> float:
    """Five digits: more cannot be seen."""
    number = float(f"{value:.5g}")
    return int(number) if number.is_integer() else number
