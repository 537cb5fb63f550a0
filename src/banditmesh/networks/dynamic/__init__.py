"""Networks that change from round to round: `base` is the contract, and every recipe has its own file."""

from .base import DynamicNetwork
from .churn import Churn
from .contacts import ContactTrace
from .edge_markovian import EdgeMarkovian, edge_markovian_step
from .failures import LinkFailures
from .sequence import GraphSequence

__all__ = [
    "Churn",
    "ContactTrace",
    "DynamicNetwork",
    "EdgeMarkovian",
    "GraphSequence",
    "LinkFailures",
    "edge_markovian_step",
]
