"""The means of arms that change at random, compiled: the Python function that the reference engine calls."""

from __future__ import annotations

import numpy as np

from ....arms import switching, wandering, world
from .ahead import write_normals
from .compiling import helper, kernel, rebind, scalar
from .layout import ZERO, Floats
from .scalars import inlined_uniform, uniform


@helper
def draw_steps(
    k0: int, k1: int, arm: int, begin: int, hold: int, n_steps: int, is_normal: bool, uniforms: Floats, drawn: Floats
) -> None:
    """In the place of `arms.world.draw_steps`, the same numbers: written so, the loops become vector instructions."""
    target = uniforms if is_normal else drawn
    for i in range(np.uint64(n_steps)):
        target[i] = inlined_uniform(k0, k1, arm, begin + np.int64(i) * hold, ZERO, ZERO)
    if is_normal:
        write_normals(np.uint64(0), np.uint64(n_steps), uniforms, drawn)


walk_means = kernel(
    rebind(
        world.walk_means,
        uniform=uniform,
        draw_steps=draw_steps,
        switched=scalar(switching.switched),
        wandered=scalar(wandering.wandered),
    )
)
