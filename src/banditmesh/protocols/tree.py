"""Aggregation along a spanning tree: merged statistics instead of all agents' messages."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .. import checks
from ..errors import InputError
from .base import AnyProtocol, Delivery, Facts
from .emission import Emission, Growth
from .merging import Merging

if TYPE_CHECKING:
    from ..core import Place
    from ..problem import Problem
    from .spanning import Tree


@dataclass(frozen=True)
class TreeAggregation(AnyProtocol):
    """Agents sum up what they know of an arm along a spanning tree, and tell a neighbour what lies on their own side.

    Over each link of the tree an agent sends, for an arm that an agent beyond has, one count and one sum: its own
    pulls and the latest that it had from all its other neighbours in the tree. No pull is in two of the statistics that
    an agent has, so nothing is counted twice, and a lost one is contained in the next. The number of messages depends
    on links and arms, not on how many agents have something to tell.

    Parameters
    ----------
    pause : int
        The fewest rounds between two statistics of an arm on a link: what came in between goes along with the second.
    emission : Emission
        When a statistic is sent again; by default `Growth(0.05)`. Each hop holds back what has not yet
        grown enough, so the factor should be small compared with one over the depth of the tree. What is sent is a
        count and a sum whatever the emission.

    Notes
    -----
    It needs a static network. The tree goes breadth-first from the agent with the most neighbours (the first of
    equals) in each component; an agent's parent is its lowest-numbered neighbour that is one hop closer. Making it, and
    telling who has which arms, is charged as control messages in the first round: two a link, and one for each agent
    but the roots.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> tree, fwa = (
    ...     bm.simulate(problem, protocol, horizon=200, seed=0) for protocol in (bm.TreeAggregation(), bm.FwA(4))
    ... )
    >>> bool(tree.regret[0, -1] < fwa.regret[0, -1]), bool(tree.transmissions[0, -1] < fwa.transmissions[0, -1] / 8)
    (True, True)
    """

    pause: int = 8
    _: KW_ONLY
    emission: Emission = field(default_factory=lambda: Growth(0.05))

    name: ClassVar[str] = "tree"
    delivery: ClassVar[Delivery] = Delivery.TREE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pause", checks.integer("pause", self.pause, at_least=1))

    @property
    def facts(self) -> Facts:
        """Statistics are merged at every hop."""
        return Facts(hops=1, merges=True, pause=self.pause)

    def plan(self, problem: Problem) -> Tree:
        """The spanning tree, and who has what beyond each of its links."""
        from .spanning import spanning_tree

        return spanning_tree(problem)

    def courier(self, place: Place) -> Merging:
        """The courier that sums up along the tree."""
        return Merging(self, place.plan.wanted_of(place.number), place.new_link_id)

    def n_control(self, plan: Any) -> int:
        """What it takes to make the tree."""
        n_control: int = plan.n_control
        return n_control

    @property
    def n_bytes(self) -> int:
        """A count and a sum."""
        return 32

    def check_network(self, is_static: bool) -> None:
        """Refuse a network that changes."""
        if not is_static:
            raise InputError(
                "TreeAggregation needs a static network, got a dynamic one; use Flooding or FwA with emission=Growth()"
            )
