"""Policies choose arms. `base` is the contract; every other module is one policy."""

from .base import Arms, Chooser, Estimates, Policy, Source
from .epsilon_greedy import EpsilonGreedy
from .klucb import KLUCB
from .moss import MOSS
from .thompson import ThompsonSampling
from .ucb import UCB
from .ucbv import UCBV

__all__ = [
    "KLUCB",
    "MOSS",
    "UCB",
    "UCBV",
    "Arms",
    "Chooser",
    "EpsilonGreedy",
    "Estimates",
    "Policy",
    "Source",
    "ThompsonSampling",
]
