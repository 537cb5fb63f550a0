"""The theory desk: gaps, graph powers, clique covers and the paper's bounds, as published and as they hold."""

from .covers import CliqueCover, clique_cover
from .delta import delta
from .gaps import ArmGaps, arm_gaps
from .hearing import claims_bound
from .powers import graph_power, hop_distances, nonblocking_power

__all__ = [
    "ArmGaps",
    "CliqueCover",
    "arm_gaps",
    "claims_bound",
    "clique_cover",
    "delta",
    "graph_power",
    "hop_distances",
    "nonblocking_power",
]
