"""Policies choose arms, and memories forget: `base` and `memory` are the contracts, and other modules one of each."""

from .base import Arms, Chooser, Estimates, Policy, Source
from .discount import Discount
from .epsilon_greedy import EpsilonGreedy
from .klucb import KLUCB
from .memory import Everything, Memory
from .moss import MOSS
from .thompson import ThompsonSampling
from .ucb import UCB
from .ucbv import UCBV
from .window import Window

__all__ = [
    "KLUCB",
    "MOSS",
    "UCB",
    "UCBV",
    "Arms",
    "Chooser",
    "Discount",
    "EpsilonGreedy",
    "Estimates",
    "Everything",
    "Memory",
    "Policy",
    "Source",
    "ThompsonSampling",
    "Window",
]
