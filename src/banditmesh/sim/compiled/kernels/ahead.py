"""Draws of several rounds ahead: many numbers at a time take a third of the time that one by one they would."""

from __future__ import annotations

import numpy as np

from ....draws import CENTRAL
from .compiling import routine
from .layout import ZERO, Ahead, Floats, Int32s
from .scalars import inlined_quantile, inlined_uniform, tail_quantile


@routine
def draw_ahead(t: int, k0: int, k1: int, ahead: Ahead) -> None:
    """Draw the numbers that decide all agents' rewards in the rounds from `t` on, and their normal quantiles."""
    uniforms, normals, n_rounds = ahead.uniforms, ahead.normals, np.uint64(ahead.n_rounds)
    ahead.first[0] = t
    for v in range(np.uint64(len(uniforms)) // n_rounds):
        for step in range(n_rounds):
            uniforms[v * n_rounds + step] = inlined_uniform(k0, k1, np.int64(v), t + np.int64(step), ZERO, ZERO)
    # First as if all were central, without a branch; then those that are not.
    n_normals = np.uint64(len(normals))
    for i in range(n_normals):
        normals[i] = inlined_quantile(uniforms[i] - 0.5)
    for i in range(n_normals):
        if abs(uniforms[i] - 0.5) > CENTRAL:
            normals[i] = tail_quantile(uniforms[i])


@routine
def draw_for_arms(
    k0: int, k1: int, v: int, t: int, first: np.uint64, n_arms: np.uint64, arms: Int32s, draws: Floats
) -> None:
    """Draw agent v's number of round `t` for each of its arms."""
    for j in range(n_arms):
        draws[j] = inlined_uniform(k0, k1, v, t, np.int64(arms[first + j]), ZERO)
