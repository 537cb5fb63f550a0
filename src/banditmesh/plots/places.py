"""Where agents are drawn when no positions are given: the same places every time, computed quickly.

Agents a few hops apart are drawn near each other. First, some agents far apart from each other are *pivots*, and all
agents are placed by the hops to them (pivot MDS, Brandes and Pich 2007). That is quick for any network, and all that a
large one gets. Up to `MAX_REFINED` agents, places are then improved until distances on paper are like hops (stress
majorisation, Gansner, Koren and North 2005), and those that would overlap are moved apart. Nothing is drawn at random.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Up to this many agents places are refined: distances between all of them are kept.
MAX_REFINED: Final = 1500
_PIVOTS: Final = 50
_MAX_STEPS: Final = 60
_FEWEST_STEPS: Final = 12
_STEP_PAIRS: Final = 15_000_000  # of agents, in all steps: a few tenths of a second
_GOOD_ENOUGH: Final = 1e-4
#: Places are moved apart until they are this far from each other, as a share of the distance to the nearest one that a
#: quarter of all fall short of; the player and the figures draw agents as large as that.
_APART: Final = 0.8
_MOVES: Final = 20
_STRAIGHT: Final = 1e-3
_GOLDEN_ANGLE: Final = np.pi * (3.0 - 5.0**0.5)


def places(n_agents: int, pairs: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Places of agents, (agents, 2), each coordinate between 0 and 1; the longer side is the whole width.

    Parameters
    ----------
    n_agents : int
        How many agents there are.
    pairs : int array (links, 2)
        Which agents are linked.

    Examples
    --------
    >>> import numpy as np
    >>> places(3, np.array([[0, 1], [1, 2]]))[:, 0].round(2)
    array([0. , 0.5, 1. ])
    """
    from scipy.sparse import csr_matrix

    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    links = csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_agents, n_agents))
    found = _by_pivots(links, n_agents)
    if 2 < n_agents <= MAX_REFINED:
        found = _apart(_refined(found, _hops(links)))
    return fitted(_turned(found))


def fitted(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places moved and scaled into the unit square, centred along the shorter side; shapes are kept."""
    low, high = found.min(axis=0), found.max(axis=0)
    side = float((high - low).max())
    if side == 0.0:
        return np.full_like(found, 0.5)
    scaled: NDArray[np.float64] = 0.5 + (found - (low + high) / 2) / side
    return scaled


def _hops(links: Any, start: list[int] | None = None) -> NDArray[np.float64]:
    """Hops from some agents or from all; agents that cannot reach each other are put a little apart."""
    from scipy.sparse.csgraph import shortest_path

    hops: NDArray[np.float64] = shortest_path(links, method="D", directed=False, unweighted=True, indices=start)
    reached = hops[np.isfinite(hops)]
    # With the largest distance components would be too far apart, and with none on top of each other.
    hops[~np.isfinite(hops)] = max(2.0, 0.6 * float(reached.max(initial=0.0)) + 1.0)
    return hops


def _by_pivots(links: Any, n_agents: int) -> NDArray[np.float64]:
    """Two coordinates of every agent by the hops to pivots, each pivot the agent farthest from the earlier ones."""
    hops = [_hops(links, [0])[0]]
    nearest = hops[0]
    while len(hops) < min(_PIVOTS, n_agents) and nearest.max() > 0:
        hops.append(_hops(links, [int(np.argmax(nearest))])[0])
        nearest = np.minimum(nearest, hops[-1])
    squares = np.stack(hops, axis=1) ** 2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    values, vectors = np.linalg.eigh(centred.T @ centred)
    found = np.zeros((n_agents, 2))
    for column in range(min(2, len(values))):
        spread = float(np.sqrt(max(values[-1 - column], 0.0)))
        if spread > 0.0:
            found[:, column] = _with_sign(centred @ vectors[:, -1 - column]) / np.sqrt(spread)
    # Agents with the same hops to all pivots, such as the leaves of a star, must not overlap.
    number = np.arange(n_agents)
    radius = 0.01 * np.sqrt((number + 0.5) / n_agents) * (1.0 if n_agents > 2 else 0.0)
    found[:, 0] += radius * np.cos(number * _GOLDEN_ANGLE)
    found[:, 1] += radius * np.sin(number * _GOLDEN_ANGLE)
    return found


def _refined(found: NDArray[np.float64], hops: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places whose distances are like hops, near pairs first: each step solves for the best given the last one."""
    from scipy.linalg import cho_factor, cho_solve

    n_agents = len(found)
    np.fill_diagonal(hops, 1.0)
    weights = hops**-2.0
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    # The first agent stays where it is: otherwise there would be no single solution.
    factor = cho_factor(laplacian[1:, 1:])
    before = np.inf
    for _ in range(max(_FEWEST_STEPS, min(_MAX_STEPS, _STEP_PAIRS // n_agents**2))):
        x, y = found[:, 0], found[:, 1]
        far = np.hypot(x[:, None] - x, y[:, None] - y)
        stress = float((weights * (far - hops) ** 2).sum())
        if before - stress < _GOOD_ENOUGH * stress:
            break
        before = stress
        pull = -weights * hops / np.maximum(far, 1e-9)
        pull[np.arange(n_agents), np.arange(n_agents)] = 0.0
        pull[np.arange(n_agents), np.arange(n_agents)] = -pull.sum(axis=1)
        found = np.vstack([np.zeros(2), cho_solve(factor, (pull @ found)[1:])])
    return found


def _apart(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places of which no two are so near that agents would overlap, each moved as little as that takes."""
    least = 0.0
    for _ in range(_MOVES):
        aside = found[:, None] - found
        far = np.hypot(aside[..., 0], aside[..., 1])
        np.fill_diagonal(far, np.inf)
        least = least or _APART * float(np.quantile(far.min(axis=1), 0.25))
        short = np.maximum(least - far, 0.0)
        if short.max() <= 1e-3 * least:
            break
        found = found + (aside * (0.5 * short / np.maximum(far, 1e-9))[..., None]).sum(axis=1)
    return found


def _turned(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same places, rotated so that they are wider than high."""
    centred = found - found.mean(axis=0)
    spreads, axes = np.linalg.eigh(centred.T @ centred)
    # A path is a line: what little it is bent by keeps apart what has one place, and is over.
    low = 0.0 if spreads[0] < _STRAIGHT * spreads[1] else 1.0
    return np.stack([_with_sign(centred @ axes[:, 1]), low * _with_sign(centred @ axes[:, 0])], axis=1)


def _with_sign(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """An eigenvector's sign is arbitrary: the first agent lies left."""
    return -column if column[0] > 0 else column
