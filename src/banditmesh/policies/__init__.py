"""Policies choose arms. `base` is the contract; every other module is one policy."""

from .base import Estimates, Policy
from .ucb import UCB

__all__ = ["UCB", "Estimates", "Policy"]
