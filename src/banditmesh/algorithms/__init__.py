"""Published algorithms of cooperating bandits, each with agents of its own: one file an algorithm.

    base       what an algorithm and its agents are, what they may refuse, and what a note costs in bytes
    gosine     GosInE: recommendations by gossip
    leaders    who leads whom
    fyl, dpe2  leaders explore, and others follow
    detectors  tests for a change of the mean
    restarts   what the next three share: agents that start arms anew, together
    glr_klucb, cusum_ucb, m_ucb    for arms that change
    hearing    agents that hear observations

They are named and used wherever protocols are: `bm.simulate(problem, "gosine(alpha=2)")`. docs/algorithms.md has them
side by side, with their sources.
"""

from .base import Actor, Algorithm
from .cusum_ucb import CUSUMUCB
from .dpe2 import DPE2
from .fyl import FollowYourLeader
from .glr_klucb import GLRKLUCB
from .gosine import GosInE
from .m_ucb import MUCB

__all__ = ["CUSUMUCB", "DPE2", "GLRKLUCB", "MUCB", "Actor", "Algorithm", "FollowYourLeader", "GosInE"]
