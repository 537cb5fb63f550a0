"""Networks that change from round to round.

A dynamic network is a recipe: it has agents, and `rounds` tells the links of round 1, 2, ... one after the
other. It keeps no state, and what is random in it depends on the draws alone, so that every protocol and
engine meets the same links. The links of a round are an int32 array of shape (m, 2), i < j in every row,
the rows sorted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import checks
from ..draws import AGENT, BIRTH, DEATH, LINK, Draws, geometric_skip, uniform
from ..errors import NetworkError
from .csr import Int32s, Int64s, Links, as_links

# Skips beyond this many pairs end the round: no network has more pairs, and the number still fits 64 bits.
_FARTHEST: Final = 4.0e18


class DynamicNetwork(ABC):
    """What every dynamic network offers.

    Attributes
    ----------
    names : tuple of hashables
        The agents, in order.
    n_rounds : int or None
        How many rounds it lasts; None if it is endless.

    Examples
    --------
    >>> import networkx
    >>> network = LinkFailures(networkx.path_graph(3), failure=0.0)
    >>> isinstance(network, DynamicNetwork), network.n_agents, network.n_rounds
    (True, 3, None)
    """

    names: tuple[Hashable, ...]
    n_rounds: int | None = None

    @property
    def n_agents(self) -> int:
        """How many agents there are."""
        return len(self.names)

    @abstractmethod
    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:
        """The links of round 1, 2, ...; it ends after `n_rounds`.

        Parameters
        ----------
        draws : Draws
            What is random depends on these alone.
        births_first : bool
            For edge-Markovian networks: see there.

        Yields
        ------
        ndarray of int32, shape (m, 2)
            The links, the lower agent first, sorted.
        """


class EdgeMarkovian(DynamicNetwork):
    """Links are born and die at random, each on its own (Section 6 of the paper).

    In every round, an absent link is born with probability `p` and a present one dies with probability `q`.
    Round 1 is already one step away from the start. Births and deaths are both judged on the links of the
    round before, and the density tends to p / (p + q). With `births_first`, as in the published code,
    births come first and may die at once.

    Parameters
    ----------
    start : networkx.Graph, scipy sparse matrix or Links
        The links before round 1.
    p, q : float
        The probabilities of birth and of death.

    Examples
    --------
    >>> import networkx
    >>> network = EdgeMarkovian(networkx.path_graph(3), p=1.0, q=0.0)
    >>> next(network.rounds(Draws(seed=0, replicate=0))).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    def __init__(self, start: Any, p: float, q: float) -> None:
        self.names, self.start = _named(start)
        self.p = checks.probability("p", p)
        self.q = checks.probability("q", q)

    def start_codes(self) -> Int64s:
        """The links before round 1 as sorted codes i * n_agents + j, the form of `edge_markovian_step`."""
        pairs = self.start.pairs().astype(np.int64)
        return pairs[:, 0] * self.n_agents + pairs[:, 1]

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        n = self.n_agents
        keys = *draws.key(BIRTH), *draws.key(DEATH)
        codes = self.start_codes()
        out = np.empty(2 * len(codes) + 16, dtype=np.int64)
        for t in count(1):
            step = n, self.p, self.q, births_first, *keys, t, codes, len(codes)
            n_out = edge_markovian_step(*step, out)
            if n_out < 0:
                out = np.empty(-2 * n_out, dtype=np.int64)
                n_out = edge_markovian_step(*step, out)
            codes = out[:n_out].copy()
            yield np.stack([codes // n, codes % n], axis=1).astype(np.int32)


def edge_markovian_step(
    n: int,
    p: float,
    q: float,
    births_first: bool,
    bk0: int,
    bk1: int,
    dk0: int,
    dk1: int,
    t: int,
    codes: Int64s,
    n_codes: int,
    out: Int64s,
) -> int:
    """One step of an edge-Markovian network, in plain Python and compiled alike.

    Births are found by geometric skips over all pairs in lexicographic order, so that the work grows with
    the links and not with the pairs; a birth that hits a present link does nothing. Both lists are sorted,
    and are merged.

    Parameters
    ----------
    n : int
        Agents.
    p, q : float
        The probabilities of birth and of death.
    births_first : bool
        Whether links born in this step may die in it.
    bk0, bk1, dk0, dk1 : int
        The key words of the purposes BIRTH and DEATH.
    t : int
        The round.
    codes : ndarray of int64
        The links of the round before, the first `n_codes` entries: sorted codes i * n + j, i < j.
    n_codes : int
        How many links there were.
    out : ndarray of int64
        Receives the new links.

    Returns
    -------
    int
        How many links there are now; or, if `out` is too small, minus the size that it needs.

    Examples
    --------
    >>> out = np.empty(3, dtype=np.int64)
    >>> edge_markovian_step(3, 1.0, 0.0, False, 0, 0, 0, 0, 1, np.array([1]), 1, out), out.tolist()
    (3, [1, 2, 5])
    """
    n_pairs = n * (n - 1) // 2
    beyond = n * n
    log_absent = math.log1p(-p) if 0.0 < p < 1.0 else 0.0
    n_skips = 0
    position = -1  # of the last birth, among all pairs
    row = 0  # the pairs of this row end before position `row_end`
    row_end = n - 1
    born = -1  # the code of the next birth: -1 if still to be found, `beyond` if there is none
    n_read = 0
    n_out = 0
    while True:
        if born < 0:
            if p >= 1.0:
                position += 1
            elif p <= 0.0:
                position = n_pairs
            else:
                u = uniform(bk0, bk1, t, n_skips, 0, 0)
                n_skips += 1
                if math.log(u) <= log_absent * _FARTHEST:
                    position = n_pairs
                else:
                    position += 1 + geometric_skip(u, log_absent)
            if position >= n_pairs:
                born = beyond
            else:
                while position >= row_end:
                    row += 1
                    row_end += n - 1 - row
                born = row * n + n - (row_end - position)
        old = int(codes[n_read]) if n_read < n_codes else beyond
        code = min(old, born)
        if code == beyond:
            break
        if born == code:
            born = -1
        if old == code:
            n_read += 1
        dies = False
        if old == code or births_first:
            dies = uniform(dk0, dk1, t, code // n, code % n, 0) < q
        if not dies:
            # Beyond its end, `out` is not written but the links are still counted.
            if n_out < len(out):
                out[n_out] = code
            n_out += 1
    return n_out if n_out <= len(out) else -n_out


class GraphSequence(DynamicNetwork):
    """One given graph a round.

    Parameters
    ----------
    graphs : iterable of networkx.Graph, scipy sparse matrices or Links
        The links of round 1, 2, ...; all have the same nodes, and agents follow the node order of the first. Each is
        read as it comes, so a generator may change one graph from round to round.

    Examples
    --------
    >>> import networkx
    >>> network = GraphSequence([networkx.path_graph(3), networkx.empty_graph(3)])
    >>> [links.tolist() for links in network.rounds(Draws(seed=0, replicate=0))]
    [[[0, 1], [1, 2]], []]
    """

    def __init__(self, graphs: Iterable[Any]) -> None:
        # In a list, a graph that stands in many rounds is read once: the list keeps it alive, and nothing can change
        # it meanwhile. A generator may do both.
        listed = isinstance(graphs, list | tuple)
        seen: dict[int, Int32s] = {}
        self._rounds: list[Int32s] = []
        for t, graph in enumerate(_iterator("graphs must be a sequence of graphs", graphs), start=1):
            if not listed or id(graph) not in seen:
                seen[id(graph)] = self._read(t, graph)
            self._rounds.append(seen[id(graph)])
        self.n_rounds = len(self._rounds)
        if not self._rounds:
            raise NetworkError("graphs must hold at least one graph, got none")

    def _read(self, t: int, graph: Any) -> Int32s:
        try:
            names, links = _named(graph)
        except NetworkError as error:
            raise NetworkError(f"round {t} of the sequence: {error}") from None
        if t == 1:
            self.names = names
        if names == self.names:
            return links.pairs()
        if set(names) != set(self.names):
            raise NetworkError(f"every graph of a sequence must have the agents of the first, got others in round {t}")
        place = {name: v for v, name in enumerate(self.names)}
        order = np.array([place[name] for name in names], dtype=np.int32)
        return Links.from_pairs(len(names), order[links.pairs()]).pairs()

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        yield from self._rounds


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
        All agents, in order, also those without contacts. Without it and `n_agents`, the order of first
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
        rows = list(_iterator("contacts must be rows of (round, agent, agent)", listed))
        if n_agents is not None:
            if agents is not None:
                raise NetworkError("give n_agents or agents, got both")
            agents = range(checks.integer("n_agents", n_agents, at_least=1))
        fixed = agents is not None
        names = list(_iterator("agents must be a list of names", agents)) if agents is not None else []
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
        nobody = np.empty((0, 2), dtype=np.int32)
        for t in range(1, (self.n_rounds or 0) + 1):
            yield self._rounds.get(t, nobody)


class LinkFailures(DynamicNetwork):
    """A static network whose links fail at random: each is down in each round with the same probability.

    Parameters
    ----------
    start : networkx.Graph, scipy sparse matrix or Links
        The network when nothing fails.
    failure : float
        The probability that a link is down in a round.

    Examples
    --------
    >>> import networkx
    >>> network = LinkFailures(networkx.path_graph(3), failure=1.0)
    >>> len(next(network.rounds(Draws(seed=0, replicate=0))))
    0
    """

    def __init__(self, start: Any, failure: float) -> None:
        self.names, self.start = _named(start)
        self.failure = checks.probability("failure", failure)

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        pairs = self.start.pairs()
        ends: list[list[int]] = pairs.tolist()
        for t in count(1):
            up = [draws.uniform(LINK, t, i, j) >= self.failure for i, j in ends]
            yield pairs[np.array(up, dtype=np.bool_)]


class Churn(DynamicNetwork):
    """A static network whose agents come and go.

    All agents are present before round 1. In every round a present agent leaves with probability `leave`
    and an absent one joins again with probability `join`. The links are those of the static network between
    present agents. An absent agent is merely cut off: it still pulls its own arms and keeps what it knows.

    Parameters
    ----------
    start : networkx.Graph, scipy sparse matrix or Links
        The network when everybody is present.
    leave, join : float
        Probabilities.

    Examples
    --------
    >>> import networkx
    >>> network = Churn(networkx.path_graph(3), leave=1.0, join=1.0)
    >>> rounds = network.rounds(Draws(seed=0, replicate=0))
    >>> [len(next(rounds)) for _ in range(4)]
    [0, 2, 0, 2]
    """

    def __init__(self, start: Any, leave: float, join: float) -> None:
        self.names, self.start = _named(start)
        self.leave = checks.probability("leave", leave)
        self.join = checks.probability("join", join)

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        pairs = self.start.pairs()
        present = np.ones(self.n_agents, dtype=np.bool_)
        for t in count(1):
            u = np.array([draws.uniform(AGENT, t, v) for v in range(self.n_agents)])
            present = np.where(present, u >= self.leave, u < self.join)
            yield pairs[present[pairs[:, 0]] & present[pairs[:, 1]]]


def _named(network: Any) -> tuple[tuple[Hashable, ...], Links]:
    names, links = as_links(network)
    return tuple(names), links


def _iterator(wanted: str, values: Iterable[Any]) -> Iterator[Any]:
    """An iterator over `values`, which may be anything at all."""
    try:
        return iter(values)
    except TypeError:
        raise NetworkError(f"{wanted}, got {checks.shown(values)}") from None


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
