"""Beyond the paper: what beats Flooding with Absorption, by how much, and on which network.

Two things are asked, and answered by computing them. *Short*, 1,000 rounds: is there less regret than FwA has, with
fewer messages? *Long*, 10,000 rounds: is there less regret than Flooding with ttl 4 has, with at most a tenth of FwA's
messages? All protocols meet the same rewards and networks, so that differences are taken pair by pair; a question is
answered with yes or no only if the confidence intervals of these differences lie on one side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...errors import need
from ...protocols import AnyProtocol, Flooding, FwA, Gossip, Growth, ProbabilisticFlooding, TreeAggregation
from ...protocols.notation import labels
from ...sim.progress import StepCallback
from ..intervals import mean_interval
from .instances import Instances, as_json, intervals

if TYPE_CHECKING:
    import pandas as pd

TTL: Final = 4
SHORT: Final = 1_000
LONG: Final = 10_000
#: What is asked: network -> horizons.
HORIZONS: Final[dict[str, tuple[int, ...]]] = {
    "er": (SHORT, LONG),
    "ba": (SHORT, LONG),
    "sbm": (SHORT, LONG),
    "dynamic-er": (SHORT,),
}
#: How much of FwA's traffic is allowed in the long run.
SHARE: Final = 0.1
QUESTIONS: Final = {
    SHORT: "less regret than fwa(4), and fewer transmissions",
    LONG: "less regret than flooding(4), and at most a tenth of fwa(4)'s transmissions",
}


def contenders(network: str) -> list[AnyProtocol]:
    """What is compared with FwA and Flooding with ttl 4 on one of the paper's networks.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Flooding(4, emission=bm.Growth(0.1)) in contenders("er")
    True
    """
    if network == "dynamic-er":
        return [
            FwA(4, emission=Growth(0.02)),
            Flooding(4, emission=Growth(0.1)),
            Flooding(4, emission=Growth(0.05)),
            Flooding(3, emission=Growth(0.05)),
            Gossip(4, fanout=5, emission=Growth(0.05)),
        ]
    return [
        FwA(8, emission=Growth(0.1)),
        Flooding(4, emission=Growth(0.1)),
        Flooding(5, emission=Growth(0.25)),
        Flooding(8, emission=Growth(0.25)),
        Flooding(8, emission=Growth(0.5)),
        ProbabilisticFlooding(8, stop=0.25, emission=Growth(0.25)),
        TreeAggregation(),
        TreeAggregation(16, emission=Growth(0.1)),
    ]


@dataclass(frozen=True)
class Answer:
    """One protocol on one network at one horizon.

    Attributes
    ----------
    regret, messages : arrays (instances, replicates)
        At the horizon.
    meets : str
        "yes", "no", or "unclear" where a confidence interval holds both; "" for FwA and Flooding themselves.
    """

    network: str
    horizon: int
    protocol: str
    regret: NDArray[np.float64]
    messages: NDArray[np.float64]
    regret_vs_fwa: float
    regret_vs_flooding: float
    messages_vs_fwa: float
    meets: str

    def to_json(self, confidence: float = 0.95) -> dict[str, Any]:
        """As plain values; the ends of intervals are None for one replicate."""
        row = intervals({"regret": self.regret, "messages": self.messages}, confidence)
        values: dict[str, Any] = {what: as_json(row, what) for what in ("regret", "messages")}
        names = ("regret_vs_fwa", "regret_vs_flooding", "messages_vs_fwa", "meets")
        return values | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Beyond:
    """The answers for all networks, horizons and protocols; made by `beyond`.

    Attributes
    ----------
    answers : tuple of Answer
        By network, horizon and protocol.
    """

    answers: tuple[Answer, ...]
    replicates: int
    instances: int
    seed: int
    confidence: float

    def table(self) -> pd.DataFrame:
        """One row per answer: means with the ends of their intervals, ratios, and whether the condition is met."""
        need("pandas", "tables", "a table")
        import pandas as pd

        rows = []
        for one in self.answers:
            row: dict[str, Any] = {"network": one.network, "horizon": one.horizon, "protocol": one.protocol}
            row |= intervals({"regret": one.regret, "messages": one.messages}, self.confidence)
            names = ("regret_vs_fwa", "regret_vs_flooding", "messages_vs_fwa", "meets")
            rows.append(row | {name: getattr(one, name) for name in names})
        return pd.DataFrame(rows)

    def met(self, network: str, horizon: int) -> list[str]:
        """The protocols that answer a question with yes."""
        return [
            one.protocol for one in self.answers if (one.network, one.horizon, one.meets) == (network, horizon, "yes")
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values: network -> horizon -> protocol -> regret, messages and so on."""
        values: dict[str, Any] = {
            name: getattr(self, name) for name in ("replicates", "instances", "seed", "confidence")
        }
        values |= {"rules": "sound", "questions": {str(horizon): words for horizon, words in QUESTIONS.items()}}
        for one in self.answers:
            values.setdefault(one.network, {}).setdefault(str(one.horizon), {})[one.protocol] = one.to_json(
                self.confidence
            )
        return values


def beyond(
    *,
    horizons: Mapping[str, Sequence[int]] = HORIZONS,
    replicates: int = 20,
    instances: int = 3,
    seed: int = 0,
    confidence: float = 0.95,
    progress: StepCallback | None = None,
    threads: int | None = None,
) -> Beyond:
    """Put FwA, Flooding and what beats them side by side on the paper's networks, by the sound rules.

    Parameters
    ----------
    horizons : mapping from network to sequence of int
        Which networks, and after how many rounds; the last horizon of a network asks the long question if it has two.
    replicates : int
        Seeds of each arm instance.
    instances : int
        Arm instance i is `Problem.paper(name, seed + i)`, simulated with the seed `seed + i`.
    seed : int
        The first instance's.
    confidence : float
        Of the intervals, which are for these arm instances, over seeds.
    progress : callable, optional
        Called with the number of simulations done, the number in all, and what comes next.
    threads : int, optional
        As for `simulate`.

    Examples
    --------
    >>> found = beyond(horizons={"er": (20,)}, replicates=2, instances=1)
    >>> found.answers[0].protocol, int(found.answers[1].messages[0, 0])
    ('fwa(4)', 137944)
    """
    checks.probability("confidence", confidence)
    lists = {name: labels([FwA(TTL), Flooding(TTL), *contenders(name)]) for name in horizons}
    series = Instances(instances, replicates, seed, threads, progress)
    series.expect(sum(len(protocols) for protocols in lists.values()))
    answers: list[Answer] = []
    for name, protocols in lists.items():
        ends = {label: series.ends(name, protocol, horizons[name], label) for label, protocol in protocols.items()}
        answers += _judge(name, horizons[name], ends, confidence)
    series.steps.end()
    return Beyond(tuple(answers), replicates, instances, seed, confidence)


def _judge(
    name: str,
    horizons: Sequence[int],
    ends: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    confidence: float,
) -> list[Answer]:
    """Each protocol compared with the first two, FwA and Flooding."""
    fwa, flooding = list(ends.values())[:2]
    answers = []
    for place, horizon in enumerate(horizons):
        share = SHARE if len(horizons) > 1 and place == len(horizons) - 1 else 1.0
        rival = flooding if share < 1 else fwa
        for label, (regret, messages) in ends.items():
            less = [regret[..., place] - rival[0][..., place], messages[..., place] - share * fwa[1][..., place]]
            itself = label in list(ends)[:2]
            answers.append(
                Answer(
                    network=name,
                    horizon=horizon,
                    protocol=label,
                    regret=regret[..., place],
                    messages=messages[..., place],
                    regret_vs_fwa=float(regret[..., place].mean() / fwa[0][..., place].mean()),
                    regret_vs_flooding=float(regret[..., place].mean() / flooding[0][..., place].mean()),
                    messages_vs_fwa=float(messages[..., place].mean() / fwa[1][..., place].mean()),
                    meets="" if itself else _both_below_zero(less, confidence),
                )
            )
    return answers


def _both_below_zero(differences: Sequence[NDArray[np.float64]], confidence: float) -> str:
    """Whether all mean differences are below zero: "yes" or "no" if their intervals say so, else "unclear"."""
    intervals = [mean_interval(values, confidence) for values in differences]
    if all(high < 0 for _, _, high in intervals):
        return "yes"
    if any(low > 0 for _, low, _ in intervals):
        return "no"
    return "unclear"
