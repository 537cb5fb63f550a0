"""Published algorithms of cooperating bandits, each with agents of its own: one file an algorithm.

    base       what an algorithm and its agents are, what they may refuse, and what a note costs in bytes
    gosine     GosInE: recommendations by gossip
    lcc_ucb    LCC-UCB-GRAPH: recommendations after epochs of doubling length
    dducb      DDUCB: averages of all agents' sums and counts, by accelerated or plain gossip
    a2c_ucb    after A2C-UCB: mass-preserving averages, for agents with access to different arms
    leaders    how leaders are found, and their followers
    fyl, dpe2  leaders explore, and others follow
    detectors  tests for a change of the mean
    restarts   what the next three share: agents that start arms anew, together
    glr_klucb, cusum_ucb, m_ucb    for arms that change
    hearing    agents that hear observations
    elimination   a policy: candidates, pulled in turn and eliminated for good
    co_aae     after CO-AAE: elimination over flooding, with silent agents
    coop_se    after Coop-SE: elimination with growing statistics and elimination notices
    odc        after ODC: pairs of neighbours exchange on demand
    noting     an agent of the core that takes notes as well: for the last two
    named      ComEx, UCB-Network, MP-UCB and CO-UCB: protocols of the package by their published names

They are named and used wherever protocols are: `bm.simulate(problem, "gosine(alpha=2)")`. docs/algorithms.md has them
side by side, with their sources.
"""

from .a2c_ucb import A2CUCB
from .base import Actor, Algorithm
from .co_aae import CoAAE
from .coop_se import CoopSE
from .cusum_ucb import CUSUMUCB
from .dducb import DDUCB
from .dpe2 import DPE2
from .elimination import Elimination
from .fyl import FollowYourLeader
from .glr_klucb import GLRKLUCB
from .gosine import GosInE
from .lcc_ucb import LCCUCB
from .m_ucb import MUCB
from .named import MPUCB, ComEx, CoUCB, UCBNetwork
from .odc import ODC

__all__ = [
    "A2CUCB",
    "CUSUMUCB",
    "DDUCB",
    "DPE2",
    "GLRKLUCB",
    "LCCUCB",
    "MPUCB",
    "MUCB",
    "ODC",
    "Actor",
    "Algorithm",
    "CoAAE",
    "CoUCB",
    "ComEx",
    "CoopSE",
    "Elimination",
    "FollowYourLeader",
    "GosInE",
    "UCBNetwork",
]
