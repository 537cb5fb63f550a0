"""Several protocols on one problem, with the same rewards and the same networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import plots
from ..errors import InputError
from ..problem import Problem
from ..protocols import Protocol
from ..sim.engine import simulate
from ..sim.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """The results of several protocols on one problem, by name.

    Attributes
    ----------
    results : mapping from str to Result
        In the order in which the protocols were given.
    """

    results: Mapping[str, Result]

    def table(self) -> pd.DataFrame:
        """One row per protocol: mean and standard deviation of regret and messages at the horizon.

        The standard deviations, over replicates, are NaN if there is only one.
        """
        import numpy as np
        import pandas as pd

        rows = {}
        for name, result in self.results.items():
            regret, messages = result.regret[:, -1], result.messages[:, -1]
            spread = result.replicates > 1
            rows[name] = {
                "regret": regret.mean(),
                "regret_sd": regret.std(ddof=1) if spread else np.nan,
                "messages": messages.mean(),
                "messages_sd": messages.std(ddof=1) if spread else np.nan,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("protocol")

    def to_json(self) -> dict[str, Any]:
        """The table as plain values: protocol -> regret and messages -> mean and sd (None for one replicate)."""
        values: dict[str, Any] = {}
        for name, row in self.table().iterrows():
            values[str(name)] = {
                what: {
                    "mean": row[what],
                    "sd": None if row[f"{what}_sd"] != row[f"{what}_sd"] else row[f"{what}_sd"],
                }
                for what in ("regret", "messages")
            }
        return values

    def plot(self) -> Figure:
        """Group regret and transmissions of all protocols over the rounds."""
        return plots.regret_and_messages(
            {name: (result.rounds, result.regret, result.messages) for name, result in self.results.items()}
        )


def compare(problem: Problem, protocols: Sequence[Protocol], **settings: Any) -> Comparison:
    """Simulate several protocols on one problem, with the same rewards and the same networks.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocols : sequence of Protocol
        What to compare. Protocols of the same name are told apart by their settings.
    **settings
        As for `simulate`: horizon, replicates, seed, policy, rules and so on. A seed that is not given is drawn once.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> comparison = bm.compare(problem, [bm.NoCooperation(), bm.IRS()], horizon=10, replicates=2, seed=0)
    >>> comparison.table()["messages"].to_dict()
    {'none': 0.0, 'irs': 3060.0}
    """
    if not protocols:
        raise InputError("protocols must hold at least one protocol, got none")
    results: dict[str, Result] = {}
    for name, protocol in _names(protocols).items():
        results[name] = simulate(problem, protocol, **settings)
        settings["seed"] = results[name].seed
    return Comparison(results)


def _names(protocols: Sequence[Protocol]) -> dict[str, Protocol]:
    """Short names, or the protocol written out where several share one."""
    short = [protocol.name for protocol in protocols]
    named = {protocol.name if short.count(protocol.name) == 1 else repr(protocol): protocol for protocol in protocols}
    if len(named) < len(protocols):
        raise InputError("protocols must differ from each other, got the same one twice")
    return named
