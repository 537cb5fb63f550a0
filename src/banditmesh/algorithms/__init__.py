"""Published algorithms of cooperating bandits, each with agents of its own: one file an algorithm.

    base       what an algorithm and its agents are, what they may refuse, and what a note costs in bytes
    gosine     GosInE: recommendations by gossip
    lcc_ucb    LCC-UCB-GRAPH: recommendations after epochs of doubling length
    dducb      DDUCB: averages of all agents' sums and counts, by accelerated or plain gossip
    a2c_ucb    after A2C-UCB: mass-preserving averages, for agents with access to different arms
    leaders    who leads whom
    fyl, dpe2  leaders explore, and others follow
    detectors  tests for a change of the mean
    restarts   what the next three share: agents that start arms anew, together
    glr_klucb, cusum_ucb, m_ucb    for arms that change
    hearing    agents that hear observations

They are named and used wherever protocols are: `bm.simulate(problem, "gosine(alpha=2)")`. docs/algorithms.md has them
side by side, with their sources.
"""

from .a2c_ucb import A2CUCB
from .base import Actor, Algorithm
from .cusum_ucb import CUSUMUCB
from .dducb import DDUCB
from .dpe2 import DPE2
from .fyl import FollowYourLeader
from .glr_klucb import GLRKLUCB
from .gosine import GosInE
from .lcc_ucb import LCCUCB
from .m_ucb import MUCB

__all__ = [
    "A2CUCB",
    "CUSUMUCB",
    "DDUCB",
    "DPE2",
    "GLRKLUCB",
    "LCCUCB",
    "MUCB",
    "Actor",
    "Algorithm",
    "FollowYourLeader",
    "GosInE",
]
