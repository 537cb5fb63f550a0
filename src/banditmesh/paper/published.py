"""The values that the paper publishes, to compare ours with: Lee, Schmid and Yun, OPODIS 2023, Section 6.

Most are read off its figures: means at the horizon of 1000 rounds, with the standard deviation over ten runs. The arm
instance behind them is not public, so values that depend on the arms can only be compared with their spread over arm
instances. What Flooding and Instant Reward Sharing send on a static network depends on the network alone: those counts
must match exactly, under the published rules.
"""

from __future__ import annotations

from typing import Final

#: The settings of the published experiments.
HORIZON: Final = 1000
REPLICATES: Final = 10
TTL: Final = 4

STATIC_NETWORKS: Final = ("er", "ba", "sbm")
PROTOCOLS: Final = ("none", "irs", "gossip", "probabilistic", "fwa", "flooding")

#: network -> protocol -> (mean, standard deviation) of the group regret.
REGRET: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "er": {
        "none": (24506, 185),
        "irs": (20988, 228),
        "gossip": (17999, 194),
        "probabilistic": (14126, 409),
        "fwa": (11838, 291),
        "flooding": (6038, 164),
    },
    "ba": {
        "none": (24368, 138),
        "irs": (21064, 241),
        "gossip": (18444, 157),
        "probabilistic": (9283, 420),
        "fwa": (9905, 297),
        "flooding": (2497, 187),
    },
    "sbm": {
        "none": (24482, 119),
        "irs": (18728, 256),
        "gossip": (17866, 177),
        "probabilistic": (9863, 221),
        "fwa": (6340, 370),
        "flooding": (4201, 221),
    },
    "dynamic-er": {
        "none": (24379, 212),
        "irs": (14188, 182),
        "gossip": (17630, 145),
        "probabilistic": (5812, 166),
        "fwa": (2730, 185),
        "flooding": (2516, 198),
    },
}

#: network -> protocol -> (mean, standard deviation) of the transmissions; a deviation of 0 marks an exact count.
MESSAGES: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "er": {
        "none": (0, 0),
        "irs": (306_000, 0),
        "gossip": (363_963, 171),
        "probabilistic": (2_714_748, 4_026),
        "fwa": (2_778_249, 38_298),
        "flooding": (11_006_490, 0),
    },
    "ba": {
        "none": (0, 0),
        "irs": (392_000, 0),
        "gossip": (371_524, 100),
        "probabilistic": (8_639_994, 18_264),
        "fwa": (7_453_135, 193_600),
        "flooding": (31_820_660, 0),
    },
    "sbm": {
        "none": (0, 0),
        "irs": (722_000, 0),
        "gossip": (385_155, 121),
        "probabilistic": (11_674_215, 8_078),
        "fwa": (12_732_178, 174_342),
        "flooding": (32_947_270, 0),
    },
    "dynamic-er": {
        "none": (0, 0),
        "irs": (815_169, 5_044),
        "gossip": (388_122, 118),
        "probabilistic": (32_003_882, 223_126),
        "fwa": (41_399_243, 898_172),
        "flooding": (81_187_007, 492_696),
    },
}

#: network -> protocol -> mean transmissions per round on the watched link in the second half of the run.
WATCHED: Final[dict[str, dict[str, float]]] = {
    "er": {"gossip": 2.2, "probabilistic": 21.4, "fwa": 17.1, "flooding": 88.0},
    "ba": {"gossip": 1.5, "probabilistic": 68.1, "fwa": 41.7, "flooding": 200.0},
    "sbm": {"gossip": 0.9, "probabilistic": 40.2, "fwa": 20.3, "flooding": 121.0},
}

#: How much less, in per cent, the watched link carries under FwA than under Flooding, as stated in the text.
REDUCTION: Final = {"er": 77.0, "ba": 80.0, "sbm": 83.0}

#: Coefficients of determination of regret against delta over twelve densities.
R_SQUARED: Final = {"flooding": 0.9439, "fwa": 0.9813}
#: The densities, as expected numbers of neighbours of the 100 agents.
DEGREES: Final = (0.01, 0.1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
DENSITY_SEED: Final = 2023
