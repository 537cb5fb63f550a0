"""A result with link traffic as a document: of a whole run at once, by the books that either engine keeps.

Such a result has every link's traffic, in both directions, and every agent's regret in each record, but not which
agents heard each other: that comes from another document, see `hearing`. Frames hold all of these numbers, in the order
of the drawing's nodes and links, since most of them change all the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..networks.usual import usual_links
from ..problem import Problem
from ..sim.result import Result
from .documents import head
from .recorder import MAX_FRAMES, MAX_NUMBERS, SEVERAL_ROUNDS
from .sites import Sites


def load_document(
    problem: Problem,
    result: Result,
    label: str = "",
    *,
    horizon: int | None = None,
    heard: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A document of a result's first replicate.

    Parameters
    ----------
    problem : Problem
        What was simulated.
    result : Result
        Simulated with `link_traffic=True` and `agents=True`; each record, or several of them together, makes a frame.
    label : str
        What the run is called, such as its protocol.
    horizon : int, optional
        How many rounds the run has, if the result is of its beginning.
    heard : mapping, optional
        What is heard in the same run's beginning, from `hearing.hear`; after it nothing new is heard.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import load_document
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> result = bm.simulate(problem, "fwa(2)", horizon=3, seed=0, link_traffic=True, agents=True, engine="reference")
    >>> [(frame["round"], frame["messages"]) for frame in load_document(problem, result, "fwa(2)")["frames"]]
    [(1, 10), (2, 20), (3, 30)]
    """
    if result.link_traffic is None or result.agent_regret_curve is None:
        raise InputError("the result must have link traffic and agents' regret; simulate with both of them")
    sites = Sites.of_problem(problem)
    nodes = np.array([sites.node_of[agent] for agent in problem.agents])
    drawn, forth, back = _loads(problem, result, nodes)
    every = frames_every(len(result.rounds), 2 * len(drawn) + len(sites.names))
    ends = np.append(np.arange(every, len(result.rounds), every), len(result.rounds)) - 1
    starts = np.append(0, ends[:-1] + 1)
    rounds = result.rounds[ends]
    n_rounds = np.diff(rounds, prepend=0)
    forth, back = np.add.reduceat(forth, starts, axis=0), np.add.reduceat(back, starts, axis=0)
    regrets = _means(result.agent_regret_curve[0][ends], nodes, sites.sizes).round(3)
    frames: list[dict[str, Any]] = [
        {
            "round": number,
            "rounds": covered,
            "regret": regret,
            "messages": messages,
            "regrets": of_agents,
            "loads": there,
            "back": here,
        }
        for number, covered, regret, messages, of_agents, there, here in zip(
            rounds.tolist(),
            n_rounds.tolist(),
            result.regret[0][ends].tolist(),
            result.transmissions[0][ends].tolist(),
            regrets.tolist(),
            forth.tolist(),
            back.tolist(),
            strict=True,
        )
    ]
    if problem.is_dynamic:
        _add_changes(frames, drawn, forth + back > 0)
    notes = [*sites.notes, *([SEVERAL_ROUNDS] if (n_rounds > 1).any() else [])]
    if problem.is_dynamic:
        notes.append("of a dynamic network, the links that carried something are drawn")
    loads = (forth + back) / n_rounds[:, None]
    scale = {"regret": float(regrets.max()), "load": float(loads.max(initial=0.0)), "heard": []}
    arms, holders = [], []
    if heard is not None:
        arms, holders, scale["heard"] = heard["arms"], heard["holders"], _add_heard(frames, heard)
    return {
        **head("run", sites, map(tuple, drawn.tolist()), notes),
        "label": label,
        "horizon": horizon or result.horizon,
        "has_regret": True,
        "arms": arms,
        "holders": holders,
        "frames": frames,
        "scale": scale,
    }


def _add_heard(frames: list[dict[str, Any]], heard: Mapping[str, Any]) -> list[float]:
    """Put what is heard into the frames that cover its rounds; the most that any node hears, for each arm."""
    most = [0.0 for _ in heard["arms"]]
    number = 0
    for one in heard["frames"]:
        while number + 1 < len(frames) and frames[number]["round"] < one["round"]:
            number += 1
        into = frames[number].setdefault("heard", [[] for _ in most])
        for arm, changes in enumerate(one["heard"]):
            into[arm] += changes
            most[arm] = max([most[arm], *changes[1::2]])
    return most


def frames_every(n_rounds: int, n_numbers: int) -> int:
    """How many rounds, or records, a frame must cover if each has that many numbers.

    Examples
    --------
    >>> frames_every(1000, 400), frames_every(10_000, 400), frames_every(1000, 10_000)
    (1, 10, 5)
    """
    n_frames = max(1, min(MAX_FRAMES, MAX_NUMBERS // max(1, n_numbers)))
    return -(-n_rounds // n_frames)


def _loads(
    problem: Problem, result: Result, nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The links that are drawn, the lower node first, and what each record has on them in either direction."""
    assert result.link_traffic is not None
    number = {agent: place for place, agent in enumerate(problem.agents)}
    ends = nodes[np.array([(number[one], number[other]) for one, other in result.links], dtype=int).reshape(-1, 2)]
    usual = np.empty((0, 2), int) if problem.is_dynamic else nodes[usual_links(problem.network)]
    pairs = np.sort(np.concatenate([usual.reshape(-1, 2), ends]), axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    drawn = np.unique(pairs, axis=0).astype(np.int64)
    keys = drawn[:, 0] * (nodes.max() + 1) + drawn[:, 1]
    traffic = result.link_traffic[0].T
    found = []
    for low, high in ((0, 1), (1, 0)):
        mine = np.flatnonzero(ends[:, low] < ends[:, high])
        places = np.searchsorted(keys, ends[mine, low] * (nodes.max() + 1) + ends[mine, high])
        loads = np.zeros((len(drawn), traffic.shape[1]), dtype=np.int64)
        np.add.at(loads, places, traffic[mine])
        found.append(loads.T)
    return drawn, found[0], found[1]


def _means(values: NDArray[np.float64], nodes: NDArray[np.int64], sizes: list[int] | None) -> NDArray[np.float64]:
    """What each node's agents have on average, from what each agent has."""
    if sizes is None:
        return values
    sums = np.zeros((len(sizes), len(values)))
    np.add.at(sums, nodes, values.T)
    means: NDArray[np.float64] = sums.T / np.array(sizes)
    return means


def _add_changes(frames: list[dict[str, Any]], drawn: NDArray[np.int64], is_up: NDArray[np.bool_]) -> None:
    """Say in each frame which links begin to carry something, and which no longer do; at first all are drawn."""
    before = np.ones(len(drawn), dtype=bool)
    for frame, now in zip(frames, is_up, strict=True):
        frame["up"], frame["down"] = (drawn[one].ravel().tolist() for one in (now & ~before, before & ~now))
        before = now
