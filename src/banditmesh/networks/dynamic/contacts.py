"""Recorded contacts: which agents met in which round."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import checks
from ...draws import Draws
from ...errors import NetworkError
from ..csr import Int32s, Links
from .base import DynamicNetwork, iterator


class ContactTrace(DynamicNetwork):
    """Recorded contacts: a link is up in the rounds in which it is listed.

    Parameters
    ----------
    contacts : iterable of (round, agent, agent)
        Rounds from 1, rows in any order. Repeated contacts are merged.
    n_agents : int, optional
        If given, agents are the integers 0 .. n_agents - 1.
    n_rounds : int, optional
        Otherwise the last round listed.
    agents : sequence of hashables, optional
        All agents, in order, including those without contacts. Without it and `n_agents`, the order of first
        appearance.

    Examples
    --------
    >>> network = ContactTrace([(1, "a", "b"), (3, "b", "c")])
    >>> network.names, [links.tolist() for links in network.rounds(Draws(seed=0, replicate=0))]
    (('a', 'b', 'c'), [[[0, 1]], [], [[1, 2]]])
    """

    def __init__(
        self,
        contacts: Iterable[Sequence[Any]] | npt.NDArray[np.integer[Any]],
        n_agents: int | None = None,
        n_rounds: int | None = None,
        *,
        agents: Sequence[Hashable] | None = None,
    ) -> None:
        listed = contacts.tolist() if isinstance(contacts, np.ndarray) else contacts
        rows = list(iterator("contacts must be rows of (round, agent, agent)", listed))
        if n_agents is not None:
            if agents is not None:
                raise NetworkError("give n_agents or agents, got both")
            agents = range(checks.integer("n_agents", n_agents, at_least=1))
        fixed = agents is not None
        names = list(iterator("agents must be a list of names", agents)) if agents is not None else []
        place = {_name(name): v for v, name in enumerate(names)}
        if len(place) < len(names):
            raise NetworkError("agents must be distinct, got a repeated one")
        by_round: dict[int, list[tuple[int, int]]] = {}
        for row in rows:
            t, i, j = _contact(row)
            for name in (i, j):
                if name not in place and fixed:
                    raise NetworkError(
                        f"contacts must be between the given agents, got {checks.shown(name)} in {checks.shown(row)}"
                    )
                place.setdefault(name, len(place))
            by_round.setdefault(t, []).append((place[i], place[j]))
        if not place:
            raise NetworkError("contacts must name at least one agent, got none; give n_agents or agents")
        last = max(by_round, default=1)
        self.n_rounds = last if n_rounds is None else checks.integer("n_rounds", n_rounds, at_least=1)
        if last > self.n_rounds:
            raise NetworkError(f"contacts must end by n_rounds = {self.n_rounds}, got one in round {last}")
        self.names = tuple(place)
        self._rounds = {t: Links.from_pairs(len(place), pairs).pairs() for t, pairs in by_round.items()}

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        no_links = np.empty((0, 2), dtype=np.int32)
        for t in range(1, (self.n_rounds or 0) + 1):
            yield self._rounds.get(t, no_links)


def _name(name: Any) -> Hashable:
    if not checks.is_hashable(name):
        raise NetworkError(f"an agent's name must be hashable, got {checks.shown(name)}; a tuple will do for a list")
    found: Hashable = name
    return found


def _contact(row: Any) -> tuple[int, Hashable, Hashable]:
    """A checked row of a contact trace."""
    entries = row.tolist() if isinstance(row, np.ndarray) else row
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence) or len(entries) != 3:
        raise NetworkError(f"a contact must be (round, agent, agent), got {checks.shown(row)}")
    t, i, j = entries[0], _name(entries[1]), _name(entries[2])
    if i == j:
        raise NetworkError(f"a contact must be between two agents, got {checks.shown(row)}")
    return checks.integer("a contact's round", t, at_least=1), i, j
