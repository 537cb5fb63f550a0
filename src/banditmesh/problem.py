"""A problem: which agents are linked, which arms they have, and what the arms pay. Validated once, then frozen.

Names are used only here and at the edges. Inside, agents are numbered in the network's node order and arms in the order
in which their laws were given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import arms as reward_laws
from . import checks, networks, plots
from .arms.armsets import uniform_set_array
from .arms.changes import read_change
from .arms.given import match_given, read_arm_sets, read_arms
from .arms.pooling import Pooling
from .arms.world import World
from .draws import MAX_COUNTER, Draws
from .errors import ArmError, InputError, NetworkError
from .files.contents import as_frame
from .networks.csr import Links, as_links
from .networks.dynamic import DynamicNetwork
from .networks.named import names_generator
from .networks.usual import usual_links
from .text_tables import as_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .animations.journeys import Journey
    from .sim.result import Result


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem:
    """A network of agents, the arms that each may pull, and the arms' reward laws.

    Parameters
    ----------
    network : networkx.Graph, scipy sparse matrix, edge list, path, DataFrame or dynamic network
        Undirected, unweighted, without self-loops. It may be disconnected, and have a single agent or no links. An edge
        list is a list of tuples of two agents; a path names a file, which is read with `networks.read`, as is a pandas
        DataFrame of links.
    arm_sets : sequence or mapping
        For each agent its arms, in the order of its first pulls: a sequence in the network's node order, or a mapping
        from node to arms. A set is taken in the order of `arms`. With arms 0..K-1, an integer array (agents, k) is also
        accepted, which is fast for very large networks. A catalogue or a log (`arms.read_catalogue`, `arms.read_log`)
        is matched with the network by name.
    arms : sequence, mapping or RewardLog
        The reward laws: a sequence (arm ids 0..K-1), or a mapping from arm id, any hashable, to law. Any frozen
        `scipy.stats` law will do. A log gives its laws; with a log as `arm_sets`, they are its own unless others are
        given.
    unmatched : str
        What to do with agents and arms of a catalogue or a log that have no counterpart by name: "refuse" them all, or
        "drop" them, on both sides; the attribute `unmatched` then lists them.

    Attributes
    ----------
    agents : sequence
        The agents' names, in node order.
    arms : tuple
        The arm ids, in the order of their laws; the columns of reward tapes and pull counts.
    laws : tuple of Law
        The reward laws.
    network : Links or DynamicNetwork
        The links as arrays, or the dynamic network.
    positions : mapping or None
        For each agent its position (x, y), if the network has one for all of them, as node attribute "pos".
    unmatched : Unmatched
        What was left out because names of the network and of the data did not match.
    log : RewardLog or None
        The log that laws or arm sets come from, if any.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> problem = bm.Problem(
    ...     nx.path_graph(3),
    ...     [["a", "b"], ["b"], ["a", "b"]],
    ...     {"a": bm.arms.Bernoulli(0.9), "b": bm.arms.Bernoulli(0.5)},
    ... )
    >>> problem
    Problem(3 agents, 2 links, 2 arms, 1 to 2 per agent)
    >>> problem.gaps
    array([[0. , 0.4],
           [nan, 0. ],
           [0. , 0.4]])
    >>> problem.best_arms
    ('a', 'b', 'a')
    >>> problem.holders["a"]
    (0, 2)
    """

    agents: Sequence[Hashable]
    arms: tuple[Hashable, ...]
    laws: tuple[reward_laws.Law, ...]
    network: Links | DynamicNetwork
    positions: Mapping[Hashable, tuple[float, float]] | None
    unmatched: reward_laws.Unmatched
    log: reward_laws.RewardLog | None
    #: Agent v's arms are `arm_indices[arm_offsets[v] : arm_offsets[v + 1]]`, as numbers.
    arm_offsets: NDArray[np.int64]
    arm_indices: NDArray[np.int32]

    def __init__(
        self,
        network: Any,
        arm_sets: Sequence[Iterable[Hashable]]
        | Mapping[Hashable, Iterable[Hashable]]
        | NDArray[np.integer[Any]]
        | reward_laws.RewardLog,
        arms: Sequence[Any] | Mapping[Hashable, Any] | reward_laws.RewardLog | None = None,
        *,
        unmatched: str = "refuse",
    ) -> None:
        agents, links, positions = _read_network(network)
        left_out = reward_laws.Unmatched()
        log = next((one for one in (arms, arm_sets) if isinstance(one, reward_laws.RewardLog)), None)
        if isinstance(arm_sets, reward_laws.Catalogue | reward_laws.RewardLog):
            kept, arm_sets, arms, left_out = match_given(agents, arm_sets, arms, unmatched)
            agents, links = _part(agents, links, kept)
        elif unmatched != "refuse":
            raise ArmError("unmatched is for a catalogue or a log as arm_sets, got other arm sets; leave it out")
        if isinstance(arms, reward_laws.RewardLog):
            arms = arms.laws
        self._set(agents, links, positions, arm_sets, arms)
        object.__setattr__(self, "unmatched", left_out)
        object.__setattr__(self, "log", log)

    def _set(
        self, agents: Sequence[Hashable], links: Links | DynamicNetwork, positions: Any, arm_sets: Any, arms: Any
    ) -> None:
        """Set the fields of a problem whose network has been read."""
        ids, laws = read_arms(arms)
        offsets, indices = read_arm_sets(arm_sets, agents, ids)
        unheld = np.flatnonzero(np.bincount(indices, minlength=len(ids)) == 0)
        if unheld.size:
            raise ArmError(
                f"every arm needs an agent that has it, got none for arm {ids[unheld[0]]!r}; "
                "remove the arm or give it to an agent"
            )
        for array in (offsets, indices):
            array.setflags(write=False)
        fields = {
            "agents": agents,
            "arms": ids,
            "laws": laws,
            "network": links,
            "positions": None if positions is None else {name: positions[name] for name in agents},
            "unmatched": reward_laws.Unmatched(),
            "log": None,
            "arm_offsets": offsets,
            "arm_indices": indices,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def paper(cls, name: str, seed: int = 0, change: Any = None) -> Problem:
        """One of the paper's instances: 100 agents, 50 Gaussian arms with sigma 1, 20 per agent.

        Parameters
        ----------
        name : str
            "er", "ba" or "sbm", the static networks of Section 6, or "dynamic-er".
        seed : int
            Draws the means, uniform on [0, 1], and the arm sets. The networks are always the paper's.
        change : str, mapping or callable, optional
            How the arms change, as for `with_change`; they do not, if not given.

        Examples
        --------
        >>> import banditmesh as bm
        >>> bm.Problem.paper("ba", seed=0)
        Problem(100 agents, 196 links, 50 arms, 20 per agent)
        """
        checks.choice("the paper's network", name, networks.PAPER_NETWORKS)
        return cls.random(networks.paper(name), n_arms=50, per_agent=20, seed=seed, change=change)

    @classmethod
    def random(cls, network: Any, n_arms: int, per_agent: int, seed: int = 0, change: Any = None) -> Problem:
        """Arms as in the paper's experiments, on any network.

        Parameters
        ----------
        network : networkx.Graph, scipy sparse matrix, edge list, path, DataFrame or dynamic network
            Which agents are linked.
        n_arms, per_agent : int
            How many arms there are, Gaussian with sigma 1, and how many of them each agent has.
        seed : int
            Draws the means, uniform on [0, 1], and the arm sets.
        change : str, mapping or callable, optional
            As for `paper`.

        Examples
        --------
        >>> import banditmesh as bm
        >>> bm.Problem.random(bm.networks.ring(10), n_arms=5, per_agent=2, seed=0)
        Problem(10 agents, 10 links, 5 arms, 2 per agent)
        """
        n_arms = checks.integer("n_arms", n_arms, at_least=1)
        seed = checks.seed(seed)
        agents, links, positions = _read_network(network)
        sets = uniform_set_array(len(agents), n_arms, per_agent=per_agent, seed=seed)
        means = np.random.default_rng([seed, 1]).uniform(0.0, 1.0, size=n_arms)
        problem = cls.__new__(cls)
        problem._set(agents, links, positions, sets, [reward_laws.Gaussian(mean, 1.0) for mean in means])
        return problem if change is None else problem.with_change(change)

    def with_change(self, change: Any) -> Problem:
        """The same problem with arms that change.

        Parameters
        ----------
        change : str, mapping or callable
            A text such as "switching(0.002)", "wandering(0.01, hold=10)", "seasonal(0.2, 500)", "drifting(100, 900)" or
            "piecewise(250, 500)", see the page on changing worlds; the same as a mapping, `{"name": "switching",
            "rate": 0.002}`; or a function from an arm's law to a changing law. Means move between the problem's least
            and greatest mean, unless low and high are given.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.paper("er", seed=0).with_change("switching(0.01, low=0, high=1)")
        >>> problem.laws[0]
        Switching(law=Gaussian(mean=0.8897387912781343, sigma=1.0), rate=0.01, low=0.0, high=1.0)
        """
        laws = tuple(map(reward_laws.as_law, read_change(change)(self.laws)))
        problem = object.__new__(type(self))
        for one in fields(self):
            object.__setattr__(problem, one.name, laws if one.name == "laws" else getattr(self, one.name))
        return problem

    def check_pooling(self, groups: Mapping[Hashable, Any] | None = None) -> Pooling:
        """Test whether the agents of the log that the arms come from are paid alike, so that pooling is justified.

        Parameters
        ----------
        groups : mapping from agent of the log to group, optional
            Compare groups of agents, such as regions, instead of single agents, which often have few rewards.

        Returns
        -------
        Pooling
            Per arm chi-square, its degrees of freedom and p values; see `Pooling`.
        """
        if self.log is None:
            raise ArmError("pooling is checked for arms that come from a log of rewards, got none; see arms.read_log")
        return self.log.check_pooling(groups)

    @property
    def n_agents(self) -> int:
        """How many agents there are."""
        return len(self.agents)

    @property
    def n_arms(self) -> int:
        """How many arms all agents have together."""
        return len(self.arms)

    @property
    def is_dynamic(self) -> bool:
        """Whether the network changes from round to round."""
        return isinstance(self.network, DynamicNetwork)

    def arm_set(self, agent: int) -> NDArray[np.int32]:
        """The arms of the agent with that number, as numbers, in the order of its first pulls.

        Parameters
        ----------
        agent : int
            Its place in `agents`.
        """
        agent = checks.integer("the number of an agent", agent, at_least=0, at_most=self.n_agents - 1)
        return self.arm_indices[self.arm_offsets[agent] : self.arm_offsets[agent + 1]]

    @property
    def owners(self) -> NDArray[np.int64]:
        """For each entry of `arm_indices` the number of the agent that has the arm."""
        return np.repeat(np.arange(self.n_agents), np.diff(self.arm_offsets))

    def who_has(self, arm: int) -> NDArray[np.bool_]:
        """Which agents have the arm with that number: (agents,).

        Parameters
        ----------
        arm : int
            Its place in `arms`.
        """
        has_arm = np.zeros(self.n_agents, dtype=np.bool_)
        has_arm[self.owners[self.arm_indices == arm]] = True
        return has_arm

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Where figures draw the agents, (agents, 2), in the unit square: by `positions`, or by distance in hops."""
        if self.positions is not None:
            return _frozen(plots.fitted(np.array([self.positions[agent] for agent in self.agents])))
        return _frozen(plots.places(self.n_agents, usual_links(self.network)))

    @cached_property
    def changes(self) -> bool:
        """Whether any arm pays by another law in some rounds than in others."""
        return any(law.changes for law in self.laws)

    @cached_property
    def is_random(self) -> bool:
        """Whether any arm changes at random, so that means depend on seed and replicate."""
        return any(isinstance(law, reward_laws.RandomLaw) for law in self.laws)

    def check_fixed(self, what: str) -> None:
        """Refuse arms that change, for something that holds of fixed ones alone.

        Parameters
        ----------
        what : str
            What it is, in the plural.
        """
        if self.changes:
            changing = next(arm for arm, law in zip(self.arms, self.laws, strict=True) if law.changes)
            raise ArmError(
                f"{what} are for arms that do not change, got arm {changing!r}, which does; "
                "ask means_at(t) for the means of a round"
            )

    def means_at(self, t: int, seed: int | None = None, replicate: int = 0) -> NDArray[np.float64]:
        """The arms' mean rewards in a round, in the order of `arms`.

        Parameters
        ----------
        t : int
            The round, from 1.
        seed, replicate : int
            Those of the simulation, for arms that change at random; without such arms they have no effect.

        Examples
        --------
        >>> import banditmesh as bm
        >>> jump = bm.arms.Piecewise({1: bm.arms.Bernoulli(0.1), 11: bm.arms.Bernoulli(0.9)})
        >>> problem = bm.Problem(bm.networks.ring(3), [[0, 1]] * 3, [bm.arms.Bernoulli(0.5), jump])
        >>> problem.means_at(10), problem.means_at(11)
        (array([0.5, 0.1]), array([0.5, 0.9]))
        """
        t = checks.integer("t", t, at_least=1, at_most=MAX_COUNTER)
        if not self.changes:
            return self.means
        if seed is None and self.is_random:
            raise InputError("arms that change at random have means by seed and replicate, got no seed; give seed=...")
        key = (checks.seed(seed or 0), checks.integer("replicate", replicate, at_least=0))
        # The latest world is kept, since rounds are often asked for one after the other.
        if key not in self._worlds:
            self._worlds.clear()
            self._worlds[key] = World(self.laws, Draws(*key))
        return _frozen(self._worlds[key].means(t).copy())

    @cached_property
    def _worlds(self) -> dict[tuple[int, int], World]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """All but the world that is kept: walks under way cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_worlds"}

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The arms' mean rewards, in the order of `arms`; of arms that change see `means_at`."""
        self.check_fixed("means, best arms and gaps")
        return _frozen(np.array([law.mean for law in self.laws]))

    @cached_property
    def sigmas(self) -> NDArray[np.float64]:
        """The arms' sub-Gaussian parameters; nan where a law has none."""
        return _frozen(np.array([np.nan if law.sigma is None else law.sigma for law in self.laws]))

    @cached_property
    def law_codes(self) -> NDArray[np.int64]:
        """The kind of each arm's law: `GAUSSIAN`, `BERNOULLI`, `UNIFORM` or `OTHER` of `banditmesh.arms`."""
        return _frozen(np.array([law.code for law in self.laws], dtype=np.int64))

    @cached_property
    def best_means(self) -> NDArray[np.float64]:
        """For each agent the best mean in its arm set."""
        return _frozen(np.maximum.reduceat(self.means[self.arm_indices], self.arm_offsets[:-1]))

    @cached_property
    def arm_gaps(self) -> NDArray[np.float64]:
        """The gaps of all agents' arms, laid out as `arm_indices`."""
        best = np.repeat(self.best_means, np.diff(self.arm_offsets))
        return _frozen(best - self.means[self.arm_indices])

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """`gaps[v, a]`: how much less arm a pays than agent v's best arm; nan where v does not have a."""
        gaps = np.full((self.n_agents, self.n_arms), np.nan)
        gaps[self.owners, self.arm_indices] = self.arm_gaps
        return _frozen(gaps)

    @cached_property
    def best_arms(self) -> tuple[Hashable, ...]:
        """For each agent its (first) best arm."""
        return tuple(self.arms[self.arm_set(v)[np.argmax(self.means[self.arm_set(v)])]] for v in range(self.n_agents))

    @cached_property
    def holders(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """For each arm the agents that have it, in node order."""
        order = np.argsort(self.arm_indices, kind="stable")
        groups = np.split(self.owners[order], np.cumsum(np.bincount(self.arm_indices, minlength=self.n_arms))[:-1])
        return {arm: tuple(self.agents[v] for v in group) for arm, group in zip(self.arms, groups, strict=True)}

    @cached_property
    def components(self) -> tuple[tuple[Hashable, ...], ...]:
        """The connected components of a static network, each in node order."""
        if isinstance(self.network, DynamicNetwork):
            raise NetworkError(
                "components need a static network, got a dynamic one; ask for the components of a single round"
            )
        labels = self.network.components()
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        return tuple(tuple(self.agents[v] for v in group) for group in groups)

    def plot(
        self,
        arm: Hashable | None = None,
        *,
        traffic: Result | None = None,
        message: Journey | None = None,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
    ) -> Figure:
        """Draw the network with the agents' names; for a dynamic one, the links of its first rounds.

        Parameters
        ----------
        arm : hashable, optional
            Mark the agents that have this arm.
        traffic : Result, optional
            Colour links by what they carried: a result of this problem, simulated with `link_traffic=True`.
        message : Journey, optional
            Draw the journey of one message, as `follow` returns it, and mark the agents that have its arm.
        ax : axes, optional
            Where to draw instead of in a new figure.
        figsize : (float, float), optional
            Width and height of the new figure in inches.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.random(bm.networks.grid(3, 4), n_arms=4, per_agent=2, seed=0)
        >>> figure = problem.plot(message=bm.follow(problem, "fwa(4)", origin=5, arm=0))
        >>> figure.axes[0].get_title()
        'fwa(4): 9 transmissions'
        """
        look = plots.Look(ax, figsize)
        pairs = usual_links(self.network)
        loads = None if traffic is None else _loads(self, traffic, pairs)
        way = None if message is None else _way(self, message)
        arm = message.arm if message is not None and arm is None else arm
        if arm is not None and (not checks.is_hashable(arm) or arm not in self.holders):
            raise ArmError(f"arm must be one of the problem's arms, got {checks.shown(arm)}")
        number = {name: place for place, name in enumerate(self.agents)}
        holders = [] if arm is None else [number[agent] for agent in self.holders[arm]]
        return plots.draw_network(self.agents, self.places, pairs, holders, str(arm), loads, way, look)

    def _repr_html_(self) -> str:
        kinds = Counter(type(law).__name__ for law in self.laws)
        means = [law.start.mean if isinstance(law, reward_laws.ChangingLaw) else law.mean for law in self.laws]
        low, high = min(means), max(means)
        rows = [
            ["", ""],
            ["agents", f"{self.n_agents:,}"],
            ["links", f"{self.network.n_links:,}" if isinstance(self.network, Links) else type(self.network).__name__],
            ["arms", ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())],
            ["mean rewards", f"{low:.3g} to {high:.3g}{' in round 1' if self.changes else ''}"],
            ["arms per agent", self._per_agent()],
        ]
        return as_html("Problem", rows)

    def _per_agent(self) -> str:
        sizes = np.diff(self.arm_offsets)
        return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"

    def __repr__(self) -> str:
        links = "dynamic" if isinstance(self.network, DynamicNetwork) else f"{self.network.n_links}"
        return f"Problem({self.n_agents} agents, {links} links, {self.n_arms} arms, {self._per_agent()} per agent)"


def _loads(problem: Problem, traffic: Result, pairs: NDArray[Any]) -> NDArray[np.float64]:
    """Mean transmissions per round on each link, both directions together."""
    if getattr(traffic, "link_traffic", None) is None or list(traffic.agents) != list(problem.agents):
        raise InputError(
            f"traffic must be a result of this problem, simulated with link_traffic=True, got {checks.shown(traffic)}"
        )
    assert traffic.link_traffic is not None
    per_round = traffic.link_traffic.sum(axis=1).mean(axis=0) / traffic.horizon
    on_link = dict(zip(traffic.links, per_round.tolist(), strict=True))
    names = [(problem.agents[i], problem.agents[j]) for i, j in pairs.tolist()]
    return np.array([on_link.get((i, j), 0.0) + on_link.get((j, i), 0.0) for i, j in names])


def _way(problem: Problem, message: Journey) -> plots.Way:
    """The journey of a message as figures take it."""
    if getattr(message, "problem", None) is not problem:
        raise InputError(f"message must be what follow() gave for this problem, got {checks.shown(message)}")
    number = {name: place for place, name in enumerate(problem.agents)}
    copies = [(number[one.sender], number[one.receiver], one.fate, one.learned) for one in message.hops]
    return plots.Way(message.label, number[message.origin], copies)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _read_network(
    network: Any,
) -> tuple[Sequence[Hashable], Links | DynamicNetwork, Mapping[Hashable, tuple[float, float]] | None]:
    """The agents' names, the checked network, and the agents' positions."""
    if isinstance(network, str) and names_generator(network) and not Path(network).exists():
        raise NetworkError(
            f"network must be a graph or the path of a file, got {network!r}, and there is no such file; "
            f"make it with networks.from_text({network!r})"
        )
    if isinstance(network, str | PathLike) or as_frame(network) is not None:
        network = networks.read_any(network)
    if isinstance(network, DynamicNetwork):
        return network.names, network, None
    return *as_links(network), _positions(network)


def _part(
    agents: Sequence[Hashable], links: Links | DynamicNetwork, kept: list[int]
) -> tuple[Sequence[Hashable], Links | DynamicNetwork]:
    """The agents kept, and the links between them."""
    if len(kept) == len(agents):
        return agents, links
    if isinstance(links, DynamicNetwork):
        raise NetworkError(
            f"a dynamic network cannot lose the {len(agents) - len(kept)} agents that have no arms; give them some"
        )
    number = np.full(len(agents), -1)
    number[kept] = np.arange(len(kept))
    pairs = number[links.pairs()]
    return tuple(agents[v] for v in kept), Links.from_pairs(len(kept), pairs[(pairs >= 0).all(axis=1)])


def _positions(network: Any) -> Mapping[Hashable, tuple[float, float]] | None:
    """The positions of a graph's nodes, if every node has one of two numbers."""
    if not hasattr(network, "nodes"):
        return None
    places = dict(network.nodes(data="pos"))
    is_place = all(
        isinstance(place, Sequence | np.ndarray) and len(place) == 2 and all(map(_is_finite, place))
        for place in places.values()
    )
    return {name: (float(x), float(y)) for name, (x, y) in places.items()} if is_place else None


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
