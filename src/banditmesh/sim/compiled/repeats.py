"""Whether a run may pay the same reward twice, which the published rules would take for one message.

A law that counts as continuous repeats a reward seldom, not never: rewards are rounded to floats, and the numbers they
are drawn from have 52 bits. Which numbers will be drawn is known beforehand, so this is looked up rather than assumed:
all that an agent could be paid, in any round in which it pulls, by any of its arms.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...arms import GAUSSIAN, Law, law_quantile
from ...arms.base import rewards_of
from ...arms.changing import Rows
from ...arms.world import World
from ...draws import REWARD
from ..run import Run
from .kernels.tapes import draw_uniforms
from .kernels.worlds import walk_means

#: How many numbers are drawn before anything else is looked at. A run of more rounds than this takes too much memory.
AT_ONCE: Final = 2**20
MAX_ROUNDS: Final = 2**26
#: How many numbers of laws that change are held at a time; for more, rewards are taken to repeat.
MAX_NUMBERS: Final = 2**25


def pays_twice(run: Run) -> bool:
    """Whether an agent could be paid the same twice by an arm whose law counts as continuous."""
    n_agents, laws = run.problem.n_agents, run.problem.laws
    if run.horizon == 1 or not any(law.continuous for law in laws):
        return False
    changing = [arm for arm, law in enumerate(laws) if law.changes and law.continuous]
    if run.horizon > MAX_ROUNDS or (changing and run.horizon * len(laws) > MAX_NUMBERS):
        return True
    distances = np.array([_distance(law) if law.continuous and not law.changes else 0.0 for law in laws])
    farthest = np.maximum.reduceat(distances[run.problem.arm_indices], run.problem.arm_offsets[:-1])
    at_once = max(1, AT_ONCE // run.horizon)
    for replicate in range(run.replicates):
        key = run.draws(replicate).key(REWARD)
        world = World(laws, run.draws(replicate), walk_means).rows(1, run.horizon + 1) if changing else None
        for first in range(0, n_agents, at_once):
            # Rounds in which an agent does not pull stay NaN, which is sorted to the end.
            uniforms = np.full((min(at_once, n_agents - first), run.horizon), np.nan)
            draw_uniforms(*key, first, run.every, uniforms)
            for row, us in enumerate(uniforms if world is not None else ()):
                assert world is not None
                held = [arm for arm in run.problem.arm_set(first + row).tolist() if arm in changing]
                if any(_repeats_over_rounds(laws[arm], arm, world, us, int(run.every[first + row])) for arm in held):
                    return True
            uniforms.sort(axis=1)
            near = np.diff(uniforms, axis=1) <= farthest[first : first + len(uniforms), None]
            for row in np.flatnonzero(near.any(axis=1)).tolist():
                if any(_repeats(laws[arm], uniforms[row]) for arm in run.problem.arm_set(first + row).tolist()):
                    return True
    return False


def _distance(law: Law) -> float:
    """Numbers that lie farther apart than this are different rewards for sure; 1 if that is not known.

    A reward of a law with a code is `a + b * z`, rounded twice, and z grows at least as fast as the number it is drawn
    for. So rewards can only be equal where b times the distance is a few roundings: of the larger of a and b * z.
    """
    if law.kernel is None:
        return 1.0
    code, a, b = law.kernel
    largest, spread = (abs(a), b) if code == GAUSSIAN else (max(abs(a), abs(b)), b - a)
    return 2.0**-45 * (1.0 + largest / spread)


def _repeats(law: Law, ordered: NDArray[np.float64]) -> bool:
    """Whether a law that counts as continuous pays the same for two of these numbers, which ascend."""
    if not law.continuous or law.changes:
        return False
    near = np.diff(ordered) <= _distance(law)
    rewards = rewards_of(law, ordered[np.append(near, False) | np.insert(near, 0, False)])
    return len(np.unique(rewards)) < len(rewards)


def _repeats_over_rounds(law: Law, arm: int, world: Rows, uniforms: NDArray[np.float64], every: int) -> bool:
    """Whether a law that changes pays the same twice: for the number of each round in which an agent pulls, in order.

    Rewards are first worked out to about 15 digits; those that come close to each other, exactly.
    """
    from scipy.special import ndtri

    n_pulls = -(-len(uniforms) // every)
    us, a, b = uniforms[:n_pulls], world.a[::every, arm], world.b[::every, arm]
    about = a + b * ndtri(us) if law.code == GAUSSIAN else a + (b - a) * us
    order = np.argsort(about)
    near = np.diff(about[order]) <= 1e-12 * np.abs(about).max()
    close = order[np.append(near, False) | np.insert(near, 0, False)].tolist()
    rewards = [law_quantile(law.code, float(a[k]), float(b[k]), float(us[k])) for k in close]
    return len(set(rewards)) < len(rewards)
