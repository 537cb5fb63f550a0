"""Theory: gaps, graph powers, clique covers and the paper's bounds, as published and as they hold."""

from .bounds import Bounds, bounds
from .conditions import Condition
from .covers import CliqueCover, clique_cover
from .delivery import claims_bound
from .delta import delta
from .estimate import Estimate, estimate
from .gaps import ArmGaps, arm_gaps
from .lower import information
from .powers import graph_power, hop_distances, nonblocking_power
from .sharp import SharpBound
from .traffic import Traffic, traffic_bounds
from .upper import UpperBound
from .weighted import WeightedCover, clique_cost, weighted_cover

__all__ = [
    "ArmGaps",
    "Bounds",
    "CliqueCover",
    "Condition",
    "Estimate",
    "SharpBound",
    "Traffic",
    "UpperBound",
    "WeightedCover",
    "arm_gaps",
    "bounds",
    "claims_bound",
    "clique_cost",
    "clique_cover",
    "delta",
    "estimate",
    "graph_power",
    "hop_distances",
    "information",
    "nonblocking_power",
    "traffic_bounds",
    "weighted_cover",
]
