"""What losing transmissions costs: the rise of regret under loss, with every pull and with growth emission.

Runs with and without loss meet the same rewards and networks, so the rise is taken pair by pair; its interval is that
of the mean difference, divided by the mean regret without loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...errors import need
from ...faults import Faults
from ...protocols import AnyProtocol, Flooding, FwA, Gossip, Growth, TreeAggregation
from ...protocols.notation import write
from ...sim.progress import StepCallback
from ..intervals import mean_interval
from .instances import Instances, as_json, intervals

if TYPE_CHECKING:
    import pandas as pd

HORIZON: Final = 1_000
LOSSES: Final = (0.1, 0.3)
_STATIC: Final = [
    FwA(4),
    Flooding(4),
    Flooding(4, emission=Growth(0.25)),
    Flooding(4, emission=Growth(0.25, echoes=1)),
    Flooding(8, emission=Growth(0.25)),
    Flooding(8, emission=Growth(0.25, echoes=1)),
    Flooding(16, emission=Growth(0.25)),
    TreeAggregation(),
    TreeAggregation(emission=Growth(0.05, echoes=1)),
    TreeAggregation(4, emission=Growth(0.05, echoes=3)),
]
#: What is simulated with and without loss: network -> protocols.
PROTOCOLS: Final[dict[str, Sequence[AnyProtocol]]] = {
    "er": _STATIC,
    "ba": _STATIC,
    "sbm": _STATIC,
    "dynamic-er": [
        Flooding(4),
        Flooding(4, emission=Growth(0.05)),
        Gossip(4, fanout=5, emission=Growth(0.05)),
        Gossip(4, fanout=5, emission=Growth(0.05, echoes=1)),
    ],
}


@dataclass(frozen=True)
class Loss:
    """One protocol on one network with one probability of loss.

    Attributes
    ----------
    regret, messages : arrays (instances, replicates)
        At the horizon.
    rise, rise_low, rise_high : float
        By how much of itself regret is above that without loss, and the ends of the interval.
    """

    network: str
    protocol: str
    loss: float
    regret: NDArray[np.float64]
    messages: NDArray[np.float64]
    rise: float
    rise_low: float
    rise_high: float


@dataclass(frozen=True)
class Losses:
    """What loss does on all networks; made by `losses`."""

    rows: tuple[Loss, ...]
    horizon: int
    replicates: int
    instances: int
    seed: int
    confidence: float

    def table(self) -> pd.DataFrame:
        """One row per network, protocol and loss: means with the ends of their intervals, and the rise of regret."""
        need("pandas", "tables", "a table")
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for one in self.rows:
            row: dict[str, Any] = {"network": one.network, "protocol": one.protocol, "loss": one.loss}
            row |= intervals({"regret": one.regret, "messages": one.messages}, self.confidence)
            rows.append(row | {name: getattr(one, name) for name in ("rise", "rise_low", "rise_high")})
        return pd.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values: network -> protocol -> loss -> regret, messages and rise."""
        names = ("horizon", "replicates", "instances", "seed", "confidence")
        values: dict[str, Any] = {**{name: getattr(self, name) for name in names}, "rules": "sound"}
        for row in self.table().to_dict("records"):
            cells = {what: as_json(row, what) for what in ("regret", "messages", "rise")}
            values.setdefault(row["network"], {}).setdefault(row["protocol"], {})[f"{row['loss']:g}"] = cells
        return values


def losses(
    *,
    protocols: Mapping[str, Sequence[AnyProtocol]] = PROTOCOLS,
    horizon: int = HORIZON,
    replicates: int = 5,
    instances: int = 3,
    seed: int = 0,
    confidence: float = 0.95,
    progress: StepCallback | None = None,
    threads: int | None = None,
) -> Losses:
    """Simulate protocols on the paper's networks without loss, with 10 and with 30 per cent of it, by the sound rules.

    Parameters
    ----------
    protocols : mapping from network to sequence of AnyProtocol
        Which networks, and what on each.
    horizon, replicates : int
        Rounds, and seeds of each arm instance.
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
    >>> import banditmesh as bm
    >>> found = losses(protocols={"er": [bm.IRS()]}, horizon=60, replicates=2, instances=1)
    >>> [row.loss for row in found.rows], found.rows[0].rise
    ([0.0, 0.1, 0.3], 0.0)
    """
    checks.probability("confidence", confidence)
    chances = (0.0, *LOSSES)
    series = Instances(instances, replicates, seed, threads, progress)
    series.expect(len(chances) * sum(len(some) for some in protocols.values()))
    rows: list[Loss] = []
    for name, some in protocols.items():
        for protocol in some:
            without: NDArray[np.float64] | None = None
            for loss in chances:
                label = f"{write(protocol)}, loss {loss:g},"
                regret, messages = series.ends(name, protocol, [horizon], label, Faults(loss=loss))
                without = regret if without is None else without
                rise = [
                    value / float(without.mean()) for value in mean_interval((regret - without)[..., 0], confidence)
                ]
                rows.append(Loss(name, write(protocol), loss, regret[..., 0], messages[..., 0], *rise))
    series.steps.end()
    return Losses(tuple(rows), horizon, replicates, instances, seed, confidence)
