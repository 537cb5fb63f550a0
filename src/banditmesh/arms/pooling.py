"""Whether the rewards of a log may be pooled: do arms pay agents differently, more than chance would have it?

For each arm, the sum over agents of (rewards) x (their mean less the arm's mean)^2 / (the arm's variance) is about
chi-square with one degree of freedom less than there are agents, if all are paid alike. For rewards of 0 and 1 it is
Pearson's statistic. An agent with fewer than `LEAST` rewards of an arm is left out of that arm's test, since a few
rewards say little and are far from normal. P values are corrected for the number of arms, by Holm's method.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import InputError, need

if TYPE_CHECKING:
    import pandas as pd

    from .logs import RewardLog

#: The fewest rewards of an arm with which an agent, or a group, is tested.
LEAST: Final = 5
#: Below this corrected p value, agents are said to differ.
LEVEL: Final = 0.05


@dataclass(frozen=True, eq=False)
class Pooling:
    """What `check_pooling` finds.

    Attributes
    ----------
    per_arm : DataFrame
        For each arm that can be tested: arm, n_groups, n_rewards, chi_square, df, ratio (chi-square per degree of
        freedom: about 1 if all are paid alike), p, and p_holm, corrected for the number of arms.
    what : str
        What was compared: "agents" or "groups".
    """

    per_arm: pd.DataFrame
    what: str = "agents"

    @property
    def ratio(self) -> float:
        """Chi-square per degree of freedom over all arms; NaN if no arm could be tested."""
        total = int(self.per_arm["df"].sum())
        return float(self.per_arm["chi_square"].sum()) / total if total else float("nan")

    @property
    def p(self) -> float:
        """The p value over all arms."""
        return _p_value(self.per_arm["chi_square"].sum(), self.per_arm["df"].sum())

    @property
    def differing(self) -> list[Hashable]:
        """The arms whose rewards differ between agents more than chance would have it."""
        return self.per_arm["arm"][self.per_arm["p_holm"] < LEVEL].tolist()

    @property
    def advice(self) -> str:
        """What to say of it in a line; empty if nothing speaks against pooling."""
        if not self.differing and not self.p < LEVEL:
            return ""
        where = f"of {len(self.differing)} of {len(self.per_arm)} arms" if self.differing else "over all arms"
        return (
            f"the log's {self.what} differ in the rewards {where} more than chance would have it (chi-square per "
            f"degree of freedom {self.ratio:.2f}): what one learns need not hold for another, see check_pooling()"
        )

    def __repr__(self) -> str:
        return (
            f"<Pooling: {len(self.per_arm)} arms, {len(self.differing)} with {self.what} that differ, "
            f"chi-square per degree of freedom {self.ratio:.2f}, p = {self.p:.2g}>"
        )


def check_pooling(log: RewardLog, groups: Mapping[Hashable, Any] | None = None) -> Pooling:
    """Test whether agents, or groups of them, are paid alike by each arm of a log.

    Parameters
    ----------
    log : RewardLog
        The log.
    groups : mapping from agent to group, optional
        For every agent of the log the group it belongs to; each is by itself if not given.

    Examples
    --------
    >>> import banditmesh as bm
    >>> agents, rewards = np.repeat([0, 1], 20).astype(np.int32), np.array([0, 1] * 10 + [1] * 20, dtype=float)
    >>> log = bm.arms.RewardLog(("ann", "bob"), ("red",), agents, np.zeros(40, dtype=np.int32), rewards)
    >>> check_pooling(log)
    <Pooling: 1 arms, 1 with agents that differ, chi-square per degree of freedom 13.33, p = 0.00026>
    """
    need("pandas", "tables", "a table")
    import pandas as pd

    codes, n_groups = _groups(log, groups)
    n_arms = len(log.arms)
    cells = log.arm_codes.astype(np.int64) * n_groups + codes
    counts = np.bincount(cells, minlength=n_arms * n_groups).reshape(n_arms, n_groups)
    sums = np.bincount(cells, log.rewards, minlength=n_arms * n_groups).reshape(n_arms, n_groups)
    squares = np.bincount(cells, log.rewards**2, minlength=n_arms * n_groups).reshape(n_arms, n_groups)
    rows = []
    for arm, name in enumerate(log.arms):
        kept = counts[arm] >= LEAST
        n, total = counts[arm, kept], sums[arm, kept]
        if kept.sum() < 2:
            continue
        mean = total.sum() / n.sum()
        variance = squares[arm, kept].sum() / n.sum() - mean**2
        if not variance > 1e-12 * max(1.0, mean**2):
            continue  # all rewards are the same
        chi_square = float((n * (total / n - mean) ** 2).sum() / variance)
        df = int(kept.sum()) - 1
        rows.append((name, int(kept.sum()), int(n.sum()), chi_square, df, chi_square / df, _p_value(chi_square, df)))
    columns = ["arm", "n_groups", "n_rewards", "chi_square", "df", "ratio", "p"]
    table = pd.DataFrame(rows, columns=columns)
    table["p_holm"] = _holm(table["p"].to_numpy(dtype=np.float64))
    return Pooling(table, "agents" if groups is None else "groups")


def _groups(log: RewardLog, groups: Mapping[Hashable, Any] | None) -> tuple[npt.NDArray[np.int64], int]:
    """The group of each row of a log, as a number, and how many there are."""
    if groups is None:
        return log.agent_codes.astype(np.int64), len(log.agents)
    if not isinstance(groups, Mapping):
        raise InputError(f"groups must be a mapping from agents to groups, got {checks.shown(groups)}")
    missing = next((agent for agent in log.agents if agent not in groups), None)
    if missing is not None:
        raise InputError(f"groups must name the group of every agent of the log, got none for {checks.shown(missing)}")
    names = [groups[agent] for agent in log.agents]
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)[log.agent_codes], len(number)


def _p_value(chi_square: float, df: float) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(df, chi_square)) if df > 0 else float("nan")


def _holm(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """P values corrected for their number.

    Examples
    --------
    >>> _holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    raised = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(raised, 1.0)
    return corrected
