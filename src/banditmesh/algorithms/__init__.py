"""Published algorithms of cooperating bandits, each with agents of its own: one file an algorithm.

    base       what an algorithm and its agents are, what they may refuse, and what a note costs in bytes
    gosine     GosInE: recommendations by gossip
    lcc_ucb    LCC-UCB-GRAPH: recommendations after epochs of doubling length
    dducb      DDUCB: averages of all agents' sums and counts, by accelerated or plain gossip
    a2c_ucb    after A2C-UCB: mass-preserving averages, for agents with access to different arms

They are named and used wherever protocols are: `bm.simulate(problem, "gosine(alpha=2)")`. docs/algorithms.md has them
side by side, with their sources.
"""

from .a2c_ucb import A2CUCB
from .base import Actor, Algorithm
from .dducb import DDUCB
from .gosine import GosInE
from .lcc_ucb import LCCUCB

__all__ = ["A2CUCB", "DDUCB", "LCCUCB", "Actor", "Algorithm", "GosInE"]
