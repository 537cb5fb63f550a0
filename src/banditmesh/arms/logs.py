"""Logs of rewards: who was paid what by which arm; they become arms and arm sets."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..checks import callback, choice, shown
from ..errors import ArmError, BanditmeshWarning, warn
from ..files.contents import AnyTable, ReadingCallback, name_cell
from .base import MAX_REWARD, Floats, Law
from .bernoulli import Bernoulli
from .catalogue import Catalogue
from .empirical import Empirical
from .replay import Replay
from .table_files import TableFile, places_of, read_columns, typed

_COLUMNS: Final = ("agent", "arm", "reward")
#: What a log's rewards can become.
LAW_KINDS: Final = ("auto", "bernoulli", "empirical", "replay")


@dataclass(frozen=True, eq=False, repr=False)
class RewardLog:
    """Logged rewards, which `Problem` takes as arm sets, as arms, or as both.

    Made by `read_log`. The arms of an agent are those of which the log has a reward of it, in the order in which they
    first appear. The rewards of an arm are pooled over all agents.

    Attributes
    ----------
    agents, arms : tuple
        Names, in the order in which they first appear; integers if all of them are, and else texts.
    agent_codes, arm_codes : int array (rows,)
        Each row's agent and arm, as places in `agents` and `arms`.
    rewards : float array (rows,)
    law : str
        What the pooled rewards of an arm become: "bernoulli" or "empirical", both drawn with replacement; "auto" is
        Bernoulli if all rewards of the log are 0 or 1, and else empirical. "replay" uses each reward once, see
        `Replay`.
    source : str
        What errors call it.

    Examples
    --------
    >>> log = RewardLog(("ann", "bob"), ("red",), np.array([0, 1, 1]), np.array([0, 0, 0]), np.array([0.0, 1.0, 1.0]))
    >>> log.laws, log.with_law("empirical").laws
    ({'red': Bernoulli(p=0.6666666666666666)}, {'red': Empirical(sample=(0.0, 1.0, 1.0))})
    """

    agents: tuple[Hashable, ...]
    arms: tuple[Hashable, ...]
    agent_codes: npt.NDArray[np.int32]
    arm_codes: npt.NDArray[np.int32]
    rewards: Floats
    law: str = "auto"
    source: str = "the log"

    def __post_init__(self) -> None:
        choice("law", self.law, LAW_KINDS)
        if self.law == "bernoulli" and not self.is_binary:
            odd = self.rewards[~np.isin(self.rewards, (0.0, 1.0))][0]
            raise ArmError(
                f"rewards of Bernoulli laws must be 0 or 1, got {odd:g} in {self.source}; use law='empirical' "
                "(--log-rewards empirical on the command line)"
            )

    @cached_property
    def is_binary(self) -> bool:
        """Whether all rewards are 0 or 1."""
        return bool(np.isin(self.rewards, (0.0, 1.0)).all())

    @cached_property
    def catalogue(self) -> Catalogue:
        """Which agent has which arms."""
        n_arms = len(self.arms)
        codes = self.agent_codes.astype(np.int64) * n_arms + self.arm_codes
        pairs = codes[np.sort(np.unique(codes, return_index=True)[1])]
        sets: dict[Hashable, list[Hashable]] = {agent: [] for agent in self.agents}
        for code in pairs.tolist():
            sets[self.agents[code // n_arms]].append(self.arms[code % n_arms])
        return Catalogue(sets, self.source)

    @cached_property
    def laws(self) -> dict[Hashable, Law]:
        """What each arm pays."""
        order = np.argsort(self.arm_codes, kind="stable")
        ends = np.cumsum(np.bincount(self.arm_codes, minlength=len(self.arms)))[:-1]
        return dict(zip(self.arms, map(self._law, np.split(self.rewards[order], ends)), strict=True))

    def with_law(self, law: str) -> RewardLog:
        """The same log, its rewards to become another kind of law."""
        return replace(self, law=law)

    def _law(self, rewards: Floats) -> Law:
        kind = ("bernoulli" if self.is_binary else "empirical") if self.law == "auto" else self.law
        if kind == "bernoulli":
            return Bernoulli(float(rewards.mean()))
        return (Replay if kind == "replay" else Empirical)(rewards.tolist())

    def __repr__(self) -> str:
        return f"RewardLog({len(self.agents):,} agents, {len(self.arms):,} arms, {len(self.rewards):,} rewards)"


class LogFile(TableFile):
    """A file that holds a log of rewards."""

    kind = "reward log"


def read_log(
    path: AnyTable,
    *,
    law: str = "auto",
    columns: dict[str, str] | str | None = None,
    max_bytes: int | None = None,
    progress: ReadingCallback | None = None,
) -> RewardLog:
    r"""Read a log of ratings or clicks: an agent, an arm and a reward on every line.

    Parameters
    ----------
    path : str, path or DataFrame
        A CSV file (separated by commas, semicolons, tabs, `|` or `::`) or a Parquet file, perhaps packed by gzip; or a
        pandas DataFrame. Other columns, such as a time, are ignored, and so are lines that begin with `#`. CSV
        without a header row has agent, arm and reward in this order, as MovieLens' `u.data` does.
    law : str
        What the pooled rewards of an arm become, see `RewardLog`.
    columns : dict or str, optional
        What the columns `agent`, `arm` and `reward` are called in the file, if they are not called so:
        `{"agent": "user"}`, or all in this order, as in `"user,movie,rating"`.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 256 MiB if not given.
    progress : callable, optional
        Called from time to time with how much is done and how much there is: bytes, or rows of Parquet.

    Returns
    -------
    RewardLog

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.csv")
    ...     _ = file.write_text("agent,arm,reward\nann,red,1\nbob,red,0\nann,blue,0\n")
    ...     log = read_log(file)
    >>> log, dict(log.catalogue), log.laws["red"]
    (RewardLog(2 agents, 2 arms, 3 rewards), {'ann': ('red', 'blue'), 'bob': ('red',)}, Bernoulli(p=0.5))
    """
    choice("law", law, LAW_KINDS)
    callback("progress", progress)
    names = read_columns(columns, _COLUMNS)
    file = LogFile(path, max_bytes)
    rows = file.cells(progress)
    number, first = next(rows)
    log = _Rows(file)
    if not names and not file.has_names and len(first) >= 3 and _is_number(first[2]):
        places = [0, 1, 2]
        log.add(number, first, *places)
    else:
        places = places_of(file, number, first, _COLUMNS, names)
    log.add_all(rows, *places)
    if not log.rewards:
        raise file.wrong("must describe a reward log, got nothing but a header")
    if len(log.rewards) > 1 and 0 < log.rewards[0] == min(log.rewards) == max(log.rewards):
        warn(
            f"{file.path} has no reward but {log.rewards[0]:g}, so that all arms pay the same; "
            "if it lists successes alone, add the rows in which there was none",
            BanditmeshWarning,
        )
    return RewardLog(
        agents=tuple(typed(file, list(log.agents))),
        arms=tuple(typed(file, list(log.arms))),
        agent_codes=np.array(log.agent_codes, dtype=np.int32),
        arm_codes=np.array(log.arm_codes, dtype=np.int32),
        rewards=np.array(log.rewards, dtype=np.float64),
        law=law,
        source=str(file.path),
    )


class _Rows:
    """The rows of a log as numbers."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.agents: defaultdict[Any, int] = _numbering()
        self.arms: defaultdict[Any, int] = _numbering()
        self.agent_codes, self.arm_codes, self.rewards = array("i"), array("i"), array("d")

    def add_all(self, rows: Any, agent: int, arm: int, reward: int) -> None:
        known_agents, known_arms = self.agents, self.arms
        add_agent, add_arm, add_reward = self.agent_codes.append, self.arm_codes.append, self.rewards.append
        for number, row in rows:
            try:
                # Names that are known already need no check, and almost all rows are of such.
                i, j, paid = known_agents.get(row[agent]), known_arms.get(row[arm]), float(row[reward])
            except (IndexError, TypeError, ValueError):
                i = j = None
                paid = 0.0
            if i is None or j is None or not -MAX_REWARD <= paid <= MAX_REWARD:
                self.add(number, row, agent, arm, reward)
                continue
            add_agent(i)
            add_arm(j)
            add_reward(paid)

    def add(self, number: int, row: Sequence[Any], agent: int, arm: int, reward: int) -> None:
        """Add a row, or refuse it."""
        file = self._file
        if len(row) <= max(agent, arm, reward):
            raise file.wrong_line(number, f"an agent, an arm and a reward are required, got {shown(list(row))}")
        i = self.agents[name_cell(file, number, "an agent", row[agent])]
        j = self.arms[name_cell(file, number, "an arm", row[arm])]
        if not _is_number(row[reward]) or not abs(float(row[reward])) <= MAX_REWARD:
            raise file.wrong_line(number, f"a reward must be a finite number, got {shown(row[reward])}")
        self.agent_codes.append(i)
        self.arm_codes.append(j)
        self.rewards.append(float(row[reward]))


def _numbering() -> defaultdict[Any, int]:
    numbers: defaultdict[Any, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
