"""Draws of several rounds ahead: many numbers at a time take a third of the time that one by one they would."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....draws import CENTRAL
from .compiling import helper, routine
from .lanes import padded
from .layout import ZERO, Ahead, Floats, Int32s
from .scalars import inlined_quantile, inlined_uniform, tail_quantile


@helper
def write_normals(begin: Any, end: Any, uniforms: Floats, normals: Floats) -> None:
    """Write the normal quantiles: first as if all were central, without a branch; then those that are not."""
    for i in range(begin, end):
        normals[i] = inlined_quantile(uniforms[i] - 0.5)
    for i in range(begin, end):
        if abs(uniforms[i] - 0.5) > CENTRAL:
            normals[i] = tail_quantile(uniforms[i])


@routine
def draw_ahead(t: int, k0: int, k1: int, first: int, last: int, ahead: Ahead) -> None:
    """Draw what decides the rewards of agents `first` to `last` - 1 from round `t` on, with its normal quantiles."""
    uniforms, normals, n_rounds = ahead.uniforms, ahead.normals, np.uint64(ahead.n_rounds)
    ahead.first[0] = t
    for v in range(np.uint64(first), np.uint64(last)):
        for step in range(n_rounds):
            uniforms[v * n_rounds + step] = inlined_uniform(k0, k1, np.int64(v), t + np.int64(step), ZERO, ZERO)
    if len(normals) == 0:
        return
    write_normals(np.uint64(first) * n_rounds, np.uint64(last) * n_rounds, uniforms, normals)


@routine
def draw_for_arms(
    k0: int, k1: int, t: int, first: np.uint64, n_slots: np.uint64, arms: Int32s, owners: Int32s, draws: Floats
) -> None:
    """Draw the numbers of round `t` for `n_slots` slots, and for some beyond, see `lanes`."""
    for j in range(padded(first, n_slots, len(arms))):
        draws[j] = inlined_uniform(k0, k1, np.int64(owners[first + j]), t, np.int64(arms[first + j]), ZERO)
