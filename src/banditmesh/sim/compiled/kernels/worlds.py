"""The means of arms that change at random, compiled: the Python function that the reference engine calls."""

from __future__ import annotations

from ....arms import switching, wandering, world
from .compiling import kernel, rebind, scalar
from .scalars import normal_quantile, uniform

walk_means = kernel(
    rebind(
        world.walk_means,
        uniform=uniform,
        switched=scalar(switching.switched),
        wandered=scalar(rebind(wandering.wandered, normal_quantile=normal_quantile)),
    )
)
