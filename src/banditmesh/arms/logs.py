"""Logs of rewards: who was paid what by which arm; they become arms and arm sets."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..checks import callback, choice, integer, shown
from ..errors import ArmError, BanditmeshWarning, warn
from ..files.contents import AnyTable, ReadingCallback, name_cell
from .base import MAX_REWARD, Floats, Law
from .bernoulli import Bernoulli
from .catalogue import Catalogue
from .empirical import Empirical
from .piecewise import Piecewise
from .pooling import Pooling, check_pooling
from .replay import Replay
from .table_files import TableFile, places_of, read_columns, typed

_COLUMNS: Final = ("agent", "arm", "reward")
_TIMED: Final = (*_COLUMNS, "time")
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
    times : float array (rows,) or None
        When each reward was paid, if it was read.
    periods, horizon : int or None
        Into how many equal spans of time the log is cut, and over how many rounds these are laid out: then arms change,
        and pay in each span's rounds by the span's rewards. A span without a reward of an arm is as the one before it,
        or, at the beginning, as the first one that has some.

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
    times: Floats | None = None
    periods: int | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        choice("law", self.law, LAW_KINDS)
        if self.periods is not None:
            self._check_periods(integer("periods", self.periods, at_least=1))
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
        rewards = np.split(self.rewards[order], ends)
        if self.periods is None:
            return dict(zip(self.arms, map(self._law, rewards), strict=True))
        spans = np.split(self._spans()[order], ends)
        return {arm: self._changing(*one) for arm, one in zip(self.arms, zip(rewards, spans, strict=True), strict=True)}

    @property
    def pooled(self) -> RewardLog:
        """The same log without periods, so that arms do not change."""
        return replace(self, periods=None, horizon=None)

    def with_periods(self, periods: int, horizon: int) -> RewardLog:
        """The same log, which must have times, cut into equal spans of time that cover the horizon.

        Parameters
        ----------
        periods : int
            How many spans.
        horizon : int
            Over how many rounds.
        """
        return replace(self, periods=periods, horizon=horizon)

    def check_pooling(self, groups: Mapping[Hashable, Any] | None = None) -> Pooling:
        """Test whether agents, or groups of them, are paid alike by each arm; see `Problem.check_pooling`."""
        return check_pooling(self, groups)

    def _check_periods(self, periods: int) -> None:
        if self.law == "replay":
            raise ArmError("replayed rewards cannot change, got periods; use law='bernoulli' or 'empirical'")
        if self.times is None:
            raise ArmError(f"periods need the time of each reward, got none in {self.source}; name its column time")
        if not float(np.ptp(self.times)) > 0.0 and periods > 1:
            raise ArmError(f"periods need rewards of different times, got only one time in {self.source}")
        if self.horizon is not None:
            integer("horizon", self.horizon, at_least=periods)

    def _spans(self) -> npt.NDArray[np.int64]:
        """Which span of time each reward lies in, from 0."""
        assert self.times is not None
        assert self.periods is not None
        width = float(np.ptp(self.times)) or 1.0
        spans: npt.NDArray[np.int64] = ((self.times - self.times.min()) / width * self.periods).astype(np.int64)
        return np.minimum(spans, self.periods - 1)

    def _changing(self, rewards: Floats, spans: npt.NDArray[np.int64]) -> Law:
        assert self.periods is not None
        if self.horizon is None:
            raise ArmError("periods need the horizon that they are laid out over, got none; give horizon=")
        found = np.unique(spans).tolist()
        rounds = [1, *(1 + span * self.horizon // self.periods for span in found[1:])]
        return Piecewise({t: self._law(rewards[spans == span]) for t, span in zip(rounds, found, strict=True)})

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
    periods: int | None = None,
    horizon: int | None = None,
    max_bytes: int | None = None,
    progress: ReadingCallback | None = None,
) -> RewardLog:
    r"""Read a log of ratings or clicks: an agent, an arm and a reward on every line.

    Parameters
    ----------
    path : str, path or DataFrame
        A CSV file (separated by commas, semicolons, tabs, `|` or `::`) or a Parquet file, perhaps packed by gzip; or a
        pandas DataFrame. Other columns are ignored, also a time unless `periods` are given, and so are lines that
        begin with `#`. CSV without a header row has agent, arm, reward and perhaps time in this order, as MovieLens'
        `u.data` does.
    law : str
        What the pooled rewards of an arm become, see `RewardLog`.
    columns : dict or str, optional
        What the columns `agent`, `arm`, `reward` and `time` are called in the file, if they are not called so:
        `{"agent": "user"}`, or all in this order, as in `"user,movie,rating"`.
    periods : int, optional
        Cut the log into this many equal spans of time, so that arms change from one to the next: then there must be a
        column `time`, of numbers or of dates as ISO 8601 writes them.
    horizon : int, optional
        The rounds that the spans are laid out over, the same number for each: those of the simulation.
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
    names = read_columns(columns, _TIMED)
    wanted = _COLUMNS if periods is None else _TIMED
    file = LogFile(path, max_bytes)
    rows = file.cells(progress)
    number, first = next(rows)
    log = _Rows(file)
    if not names and not file.has_names and len(first) >= len(wanted) and _is_number(first[2]):
        places = list(range(len(wanted)))
        log.add(number, first, *places)
    else:
        places = places_of(file, number, first, wanted, names)
    log.add_all(rows, *places)
    if not log.rewards:
        raise file.wrong("must describe a reward log, got nothing but a header")
    if len(log.rewards) > 1 and 0 < log.rewards[0] == min(log.rewards) == max(log.rewards):
        warn(
            f"{file.path} has no reward but {log.rewards[0]:g}, so that all arms pay the same; "
            "if it lists only successes, add the rows without one",
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
        times=None if periods is None else np.array(log.times, dtype=np.float64),
        periods=periods,
        horizon=horizon,
    )


class _Rows:
    """The rows of a log as numbers."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.agents: defaultdict[Any, int] = _numbering()
        self.arms: defaultdict[Any, int] = _numbering()
        self.agent_codes, self.arm_codes, self.rewards = array("i"), array("i"), array("d")
        self.times = array("d")

    def add_all(self, rows: Any, agent: int, arm: int, reward: int, time: int | None = None) -> None:
        if time is not None:
            for number, row in rows:
                self.add(number, row, agent, arm, reward, time)
            return
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

    def add(self, number: int, row: Sequence[Any], agent: int, arm: int, reward: int, time: int | None = None) -> None:
        """Add a row, or refuse it."""
        file = self._file
        if len(row) <= max(agent, arm, reward, time or 0):
            wanted = "an agent, an arm and a reward" if time is None else "an agent, an arm, a reward and a time"
            raise file.wrong_line(number, f"{wanted} are required, got {shown(list(row))}")
        if time is not None:
            when = _as_time(row[time])
            if when is None:
                raise file.wrong_line(number, f"a time must be a number or a date (ISO 8601), got {shown(row[time])}")
            self.times.append(when)
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


def _as_time(cell: Any) -> float | None:
    """A time as a number, in seconds if it is a date; None if it is neither."""
    try:
        when = float(cell) if _is_number(cell) else None
        if when is None:
            date = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell).strip())
            when = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return when if abs(when) <= MAX_REWARD else None


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
