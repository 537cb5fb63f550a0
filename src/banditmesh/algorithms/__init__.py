"""Published algorithms of cooperating bandits, each with agents of its own: one file an algorithm.

    base       what an algorithm and its agents are, what they may refuse, and what a note costs in bytes
    gosine     GosInE: recommendations by gossip

They are named and used wherever protocols are: `bm.simulate(problem, "gosine(alpha=2)")`. docs/algorithms.md has them
side by side, with their sources.
"""

from .base import Actor, Algorithm
from .gosine import GosInE

__all__ = ["Actor", "Algorithm", "GosInE"]
