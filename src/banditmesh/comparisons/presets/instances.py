"""Several arm instances of the paper's networks, simulated alike: what the presets compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...faults import Faults
from ...problem import Problem
from ...protocols import AnyProtocol
from ...sim.engine import simulate
from ...sim.progress import StepCallback, Steps
from ...text_tables import known
from ..intervals import mean_interval

#: More arm instances than could ever be simulated.
MAX_INSTANCES: Final = 100_000


@dataclass
class Instances:
    """Arm instance i of a network is `Problem.paper(name, seed + i)`, simulated with the seed `seed + i`.

    Parameters
    ----------
    count, replicates : int
        How many instances, and how many seeds of each.
    seed : int
        The first instance's.
    threads : int or None
        As for `simulate`.
    progress : callable or None
        Told before each simulation, and at the end.

    Examples
    --------
    >>> import banditmesh as bm
    >>> regret, messages = Instances(count=3, replicates=2).ends("er", bm.IRS(), [10, 20], "irs")
    >>> regret.shape, messages[0, 0].tolist()
    ((3, 2, 2), [3060.0, 6120.0])
    """

    count: int
    replicates: int
    seed: int = 0
    threads: int | None = None
    progress: StepCallback | None = None
    steps: Steps = field(default_factory=lambda: Steps(0, None), init=False)

    def __post_init__(self) -> None:
        checks.integer("replicates", self.replicates, at_least=1)
        checks.integer("instances", self.count, at_least=1, at_most=MAX_INSTANCES)
        checks.seed(self.seed)

    def expect(self, n_settings: int) -> None:
        """There will be this many calls of `ends`; from now on `progress` is called."""
        self.steps = Steps(n_settings * self.count, self.progress)

    def ends(
        self, name: str, protocol: AnyProtocol, horizons: Sequence[int], label: str, faults: Faults | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Regret and messages of one protocol, as arrays (instances, replicates, horizons)."""
        found = []
        for seed in range(self.seed, self.seed + self.count):
            self.steps.begin(f"{label} on {name}")
            result = simulate(
                _problem(name, seed),
                protocol,
                horizon=max(horizons),
                replicates=self.replicates,
                seed=seed,
                faults=faults,
                # A shorter run is the beginning of a longer one, so one simulation answers for all horizons.
                record_every=int(np.gcd.reduce(list(horizons))),
                threads=self.threads,
                progress=False,
            )
            places = np.searchsorted(result.rounds, horizons)
            found.append((result.regret[:, places], result.transmissions[:, places].astype(np.float64)))
        regret, messages = (np.stack(values) for values in zip(*found, strict=True))
        return regret, messages


def intervals(values: dict[str, NDArray[np.float64]], confidence: float) -> dict[str, float]:
    """The columns of a table: of each name the mean, and the ends of its interval as `name_low` and `name_high`."""
    row = {}
    for name, array in values.items():
        row[name], row[f"{name}_low"], row[f"{name}_high"] = mean_interval(array, confidence)
    return row


def as_json(row: Mapping[Any, Any], name: str) -> dict[str, float | None]:
    """The mean and the ends of one name's interval, from the columns of a table; None for what is not a number."""
    return {"mean": known(row[name]), "low": known(row[f"{name}_low"]), "high": known(row[f"{name}_high"])}


@lru_cache(maxsize=128)
def _problem(name: str, seed: int) -> Problem:
    return Problem.paper(name, seed)
