"""Links that fail at random, independently in every round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from ... import checks
from ...draws import LINK, Draws
from ..csr import Int32s
from .base import DynamicNetwork, named


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
        self.names, self.start = named(start)
        self.failure = checks.probability("failure", failure)

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        pairs = self.start.pairs()
        ends: list[list[int]] = pairs.tolist()
        for t in count(1):
            up = [draws.uniform(LINK, t, i, j) >= self.failure for i, j in ends]
            yield pairs[np.array(up, dtype=np.bool_)]
