"""The result of a simulation: arrays with names, and views of them."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, plots
from ..errors import FileError, InputError, need
from ..text_tables import as_html
from . import files
from .run import TRAFFIC, Event, Outcome, Run, agent_regret

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure


class NotLogged(Sequence[Event]):
    """In the place of an event log that was not asked for: looking into it is an error that says how to get one.

    Examples
    --------
    >>> bool(NotLogged())
    False
    """

    def __len__(self) -> int:
        raise InputError("there is no event log: the run was not asked for one; simulate with trace=True")

    def __getitem__(self, place: Any) -> Any:
        return len(self)

    def __iter__(self) -> Iterator[Event]:
        return iter(range(len(self)))  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<no event log>"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a simulation gave.

    Two results are equal if all their numbers are and they come from the same settings; which engine computed them
    does not matter.

    Attributes
    ----------
    settings : mapping
        What was simulated: protocol, policy, rules, faults, seed, horizon, replicates and the package's version; and
        "means", if regret was judged by means that were given with a tape.
    engine : str
        Which engine did it: "reference" or "compiled".
    agents, arms : sequence
        Names, in the order of the axes of `pulls`.
    rounds : int array (records,)
        The rounds that are recorded: every one, or every `record_every`-th and the last.
    regret, transmissions : arrays (replicates, records)
        Cumulative group regret, without that of liars, and cumulative transmissions; `messages` is the same as
        `transmissions`.
    traffic : mapping from str to int array (replicates,)
        Totals: sent, delivered, duplicate, absorbed, expired, stopped, relayed, queued, lost, dropped, control, learned
        and bytes.
    agent_regret : float array (replicates, agents)
        Each agent's regret at the horizon, liars included.
    links : list of (agent, agent)
        The directed links, the last axis of `link_traffic`; of a dynamic network every link that was ever up.
    link_traffic : int array (replicates, records, links) or None
        Transmissions on each link since the record before; None unless it was asked for.
    trace : sequence of Event
        The fate of every copy; without `trace=True` there is none, and looking into it is an error.
    agent_regret_curve : float array (replicates, records, agents) or None
        Each agent's cumulative regret; None unless it was asked for with `agents=True`.
    changes : list of int arrays, one for each replicate
        The rounds in which `Piecewise` and `Switching` arms changed, the first 1,000 of them; empty if none did.

    Examples
    --------
    >>> import banditmesh as bm
    >>> result = bm.simulate(bm.Problem.paper("er", seed=0), bm.FwA(4), horizon=20, replicates=2, seed=0)
    >>> result.regret.shape, result.pulls.shape
    ((2, 20), (2, 100, 50))
    >>> bool((result.traffic["sent"] == result.transmissions[:, -1]).all())
    True
    """

    settings: Mapping[str, Any]
    engine: str
    agents: Sequence[Hashable]
    arms: Sequence[Hashable]
    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]
    transmissions: NDArray[np.int64]
    traffic: Mapping[str, NDArray[np.int64]]
    agent_regret: NDArray[np.float64]
    arm_offsets: NDArray[np.int64]
    arm_indices: NDArray[np.int32]
    arm_pulls: NDArray[np.int32]
    links: list[tuple[Hashable, Hashable]]
    link_traffic: NDArray[np.int64] | None
    trace: Sequence[Event]
    agent_regret_curve: NDArray[np.float64] | None = None
    changes: Sequence[NDArray[np.int64]] = ()

    @property
    def messages(self) -> NDArray[np.int64]:
        """Another name of `transmissions`, the one that tables and files use."""
        return self.transmissions

    @property
    def protocol(self) -> str:
        """The protocol's short name."""
        return str(self.settings["protocol_name"])

    @property
    def label(self) -> str:
        """The protocol written out, as in "fwa(4)+contested"; its short name in a file that does not say more."""
        return str(self.settings.get("protocol_text", self.protocol))

    @property
    def policy(self) -> str:
        """The policy's short name; "mixed" if the agents' policies differ."""
        return str(self.settings["policy_name"])

    @property
    def rules(self) -> str:
        """The rule set: "sound" or "published"."""
        return str(self.settings["rules"])

    @property
    def faults(self) -> str:
        """The faults, as they are written; "None" if there were none."""
        return str(self.settings["faults"])

    @property
    def seed(self) -> int:
        """The seed, also if it was drawn."""
        return int(self.settings["seed"])

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        return int(self.rounds[-1])

    @property
    def replicates(self) -> int:
        """The number of replicates."""
        return len(self.regret)

    @property
    def shared_changes(self) -> NDArray[np.int64]:
        """The rounds in which arms changed in all replicates, which plots mark."""
        shared = set.intersection(*(set(rounds.tolist()) for rounds in self.changes)) if self.changes else set()
        return np.array(sorted(shared), dtype=np.int64)

    @property
    def liars(self) -> list[Hashable]:
        """The agents that lied, see `Faults`; their regret is left out of sums."""
        return [self.agents[number] for number in self._liars]

    @property
    def _liars(self) -> list[int]:
        return [int(number) for number in self.settings.get("liars", ())]

    @property
    def liar_regret(self) -> NDArray[np.float64]:
        """Each liar's regret at the horizon: (replicates, liars), in the order of `liars`."""
        return self.agent_regret[:, self._liars]

    @property
    def honest_regret(self) -> NDArray[np.float64]:
        """Each other agent's regret at the horizon: (replicates, agents that do not lie)."""
        return np.delete(self.agent_regret, self._liars, axis=1)

    @cached_property
    def pulls(self) -> NDArray[np.int32]:
        """How often each agent pulled each arm: (replicates, agents, arms), 0 for arms that an agent has not."""
        pulls = np.zeros((self.replicates, len(self.agents), len(self.arms)), dtype=np.int32)
        owner = np.repeat(np.arange(len(self.agents)), np.diff(self.arm_offsets))
        pulls[:, owner, self.arm_indices] = self.arm_pulls
        pulls.setflags(write=False)
        return pulls

    def to_dataframe(self, agents: bool = False) -> pd.DataFrame:
        """One row for each replicate and recorded round: protocol, replicate, round, regret, messages (transmissions).

        Parameters
        ----------
        agents : bool
            One row for each agent instead, with its own regret: protocol, replicate, round, agent, regret. Without
            `simulate(..., agents=True)` there is the last round only.

        Examples
        --------
        >>> import banditmesh as bm
        >>> result = bm.simulate(bm.Problem.paper("er", seed=0), bm.IRS(), horizon=3, seed=0)
        >>> result.to_dataframe()[["protocol", "replicate", "round", "messages"]]
          protocol  replicate  round  messages
        0      irs          0      1       306
        1      irs          0      2       612
        2      irs          0      3       918
        """
        need("pandas", "tables", "a table")
        import pandas as pd

        if agents:
            return self._agents_dataframe()
        n_records = len(self.rounds)
        return pd.DataFrame(
            {
                "protocol": self.label,
                "replicate": np.repeat(np.arange(self.replicates), n_records),
                "round": np.tile(self.rounds, self.replicates),
                "regret": self.regret.reshape(-1),
                "messages": self.transmissions.reshape(-1),
            }
        )

    def _agents_dataframe(self) -> pd.DataFrame:
        need("pandas", "tables", "a table")
        import pandas as pd

        curve = self.agent_regret_curve
        rounds, regret = (self.rounds[-1:], self.agent_regret[:, None]) if curve is None else (self.rounds, curve)
        n_rounds, n_agents = len(rounds), len(self.agents)
        return pd.DataFrame(
            {
                "protocol": self.label,
                "replicate": np.repeat(np.arange(self.replicates), n_rounds * n_agents),
                "round": np.tile(np.repeat(rounds, n_agents), self.replicates),
                "agent": np.tile(_labels(self.agents), self.replicates * n_rounds),
                "regret": regret.reshape(-1),
            }
        )

    def to_xarray(self) -> xr.Dataset:
        """All arrays with named dimensions: replicate, round, agent, arm and link.

        Names that are not plain strings or numbers, such as the coordinates of a grid, become strings.
        """
        xr = need("xarray", "xarray", "to_xarray")
        variables: dict[str, Any] = {
            "regret": (("replicate", "round"), self.regret),
            "messages": (("replicate", "round"), self.transmissions),
            "pulls": (("replicate", "agent", "arm"), self.pulls),
            "agent_regret": (("replicate", "agent"), self.agent_regret),
        }
        coordinates: dict[str, Any] = {
            "replicate": np.arange(self.replicates),
            "round": self.rounds,
            "agent": _labels(self.agents),
            "arm": _labels(self.arms),
        }
        for name, totals in self.traffic.items():
            variables[f"traffic_{name}"] = (("replicate",), totals)
        if self.link_traffic is not None:
            variables["link_traffic"] = (("replicate", "round", "link"), self.link_traffic)
            coordinates["sender"] = ("link", _labels([sender for sender, _ in self.links]))
            coordinates["receiver"] = ("link", _labels([receiver for _, receiver in self.links]))
        if self.agent_regret_curve is not None:
            variables["agent_regret_curve"] = (("replicate", "round", "agent"), self.agent_regret_curve)
        return xr.Dataset(variables, coordinates, attrs={**self.settings, "engine": self.engine})

    def plot(
        self,
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        log: str = "",
        band: str = "sd",
        colors: plots.Chosen | None = None,
        styles: plots.Chosen | None = None,
    ) -> Figure:
        """Group regret and transmissions over the rounds: mean, and a band.

        Parameters
        ----------
        ax : axes or sequence of axes, optional
            Where to draw instead of in a new figure, two of them: `pyplot.subplots(1, 2)[1]`.
        figsize : (float, float), optional
            Width and height of the new figure in inches; below 5 inches panels are put one below the other.
        log : str
            Which axes are logarithmic: "", "x", "y" or "xy".
        band : str
            What bands and bars are: "sd", one standard deviation; "ci", 95 % confidence intervals; or "none".
        colors, styles : dict, sequence or str, optional
            Colour and line style. If not given, those of the cycle that you set in `rcParams["axes.prop_cycle"]`, or
            else the protocol's own.
        """
        look = plots.Look(ax, figsize, log, band, colors, styles)
        curves = {self.label: (self.rounds, self.regret, self.transmissions)}
        return plots.regret_and_messages(curves, look, self.shared_changes)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a .npz file, whole or not at all; `Result.load` reads it back.

        The event log is not saved: turn it into a table instead, `pandas.DataFrame(result.trace)`.
        """
        if not isinstance(path, str | PathLike):
            raise FileError(f"path must name a .npz file, got {checks.shown(path)}")
        ending = re.search(r"\.[A-Za-z]\w*$", os.fspath(path))
        if ending is not None and ending[0].lower() != ".npz":
            raise FileError(
                f"a result is saved as a .npz file, got {checks.shown(os.fspath(path))}; name it so, or write a table: "
                "result.to_dataframe().to_csv(...)"
            )
        if self.trace:
            raise InputError(
                "a result with an event log cannot be saved; save pandas.DataFrame(result.trace) instead, "
                "or simulate without trace"
            )
        names = {"agents": self.agents, "arms": self.arms, "links": self.links}
        arrays = {_IN_FILES.get(name, name): getattr(self, name) for name in _ARRAYS}
        arrays |= {f"traffic_{name}": totals for name, totals in self.traffic.items()}
        arrays |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        if any(map(len, self.changes)):
            arrays["changes"] = _padded(self.changes)
        files.write(path, arrays, {"settings": dict(self.settings), "engine": self.engine}, names)

    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int = files.MAX_BYTES) -> Result:
        """Read what `save` wrote. The file is checked in full: keys, types, shapes, and what they say of each other.

        Parameters
        ----------
        path : str or path
            The file.
        max_bytes : int
            The most that it may unpack to; a small file can unpack to more than any memory holds.
        """
        arrays, header, names = files.read(path, checks.integer("max_bytes", max_bytes, at_least=1))
        # A file from before there were faults and control messages does not speak of them.
        nothing = np.zeros_like(arrays["traffic_lost"])
        nothing.setflags(write=False)
        return cls(
            settings={"faults": "None", **header.settings},
            engine=header.engine,
            agents=names.agents,
            arms=names.arms,
            links=names.links,
            traffic={name: arrays.get(f"traffic_{name}", nothing) for name in TRAFFIC},
            link_traffic=arrays.get("link_traffic"),
            agent_regret_curve=arrays.get("agent_regret_curve"),
            changes=_unpadded(arrays.get("changes"), len(arrays["regret"])),
            trace=NotLogged(),
            **{name: arrays[_IN_FILES.get(name, name)] for name in _ARRAYS},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in _ARRAYS + _OPTIONAL]
        pairs += [(self.traffic[name], other.traffic[name]) for name in TRAFFIC]
        return (
            self.settings == other.settings
            and list(self.agents) == list(other.agents)
            and list(self.arms) == list(other.arms)
            and self.links == other.links
            and self.trace == other.trace
            and [rounds.tolist() for rounds in self.changes] == [rounds.tolist() for rounds in other.changes]
            # What neither has, None, equals itself and no array.
            and all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in pairs)
        )

    def _repr_html_(self) -> str:
        last = {
            "group regret": self.regret[:, -1],
            "transmissions": self.transmissions[:, -1],
            "regret of the worst agent": self.honest_regret.max(axis=1),
        } | ({"regret of the liars": self.liar_regret.sum(axis=1)} if self.liars else {})
        rows = [["", "mean", "sd"]]
        for name, values in last.items():
            rows.append([name, f"{values.mean():,.1f}", f"{values.std(ddof=1):,.1f}" if len(values) > 1 else "-"])
        about = f"{self.label}, {self.policy}, {self.rules} rules, {self.replicates} x {self.horizon} rounds"
        about += f", seed {self.seed}"
        return as_html(about, rows)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Result: {self.settings['protocol']}, {self.replicates} x {self.horizon} rounds, "
            f"regret {self.regret[:, -1].mean():,.1f}, transmissions {self.transmissions[:, -1].mean():,.0f}>"
        )


_ARRAYS = ("rounds", "regret", "transmissions", "agent_regret", "arm_offsets", "arm_indices", "arm_pulls")
#: Those that there are only if they were asked for.
_OPTIONAL = ("link_traffic", "agent_regret_curve")
#: What a file calls those that have another name in it.
_IN_FILES = {"transmissions": "messages"}


def assemble(run: Run, engine: str, outcomes: list[Outcome], settings: Mapping[str, Any]) -> Result:
    """One result from the outcomes of all replicates."""
    problem = run.problem
    arm_pulls = np.stack([outcome.pulls for outcome in outcomes])
    last = _stack([outcome.last_agent_regret for outcome in outcomes])
    links, link_traffic = _merge_links(run, outcomes)
    traffic = np.stack([outcome.traffic for outcome in outcomes])
    arrays: dict[str, NDArray[Any]] = {
        "rounds": run.records,
        "regret": np.stack([outcome.regret for outcome in outcomes]),
        "transmissions": np.stack([outcome.transmissions for outcome in outcomes]),
        "agent_regret": agent_regret(problem.arm_offsets, problem.arm_gaps, arm_pulls) if last is None else last,
        "arm_offsets": problem.arm_offsets,
        "arm_indices": problem.arm_indices,
        "arm_pulls": arm_pulls,
    }
    for array in arrays.values():
        array.setflags(write=False)
    return Result(
        settings=settings,
        engine=engine,
        agents=problem.agents,
        arms=problem.arms,
        links=[(problem.agents[i], problem.agents[j]) for i, j in links],
        traffic={name: traffic[:, column].copy() for column, name in enumerate(TRAFFIC)},
        link_traffic=link_traffic,
        trace=[event for outcome in outcomes for event in outcome.trace] if run.trace is True else NotLogged(),
        agent_regret_curve=_stack([outcome.agent_regret for outcome in outcomes]),
        changes=[outcome.changes for outcome in outcomes],
        **arrays,
    )


def _padded(changes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The rounds of all replicates in one array, with 0 after the last one of each."""
    padded = np.zeros((len(changes), max(map(len, changes))), dtype=np.int64)
    for row, rounds in zip(padded, changes, strict=True):
        row[: len(rounds)] = rounds
    return padded


def _unpadded(padded: NDArray[np.int64] | None, replicates: int) -> list[NDArray[np.int64]]:
    if padded is None:
        return [np.empty(0, dtype=np.int64)] * replicates
    return [row[row > 0] for row in padded]


def _stack(curves: list[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """All replicates' arrays in one; None if they were not kept."""
    kept = [curve for curve in curves if curve is not None]
    if not kept:
        return None
    stacked = np.stack(kept)
    stacked.setflags(write=False)
    return stacked


def _merge_links(run: Run, outcomes: list[Outcome]) -> tuple[list[tuple[int, int]], NDArray[np.int64] | None]:
    """All links that were up in any replicate, sorted, and the traffic of every replicate on them."""
    if not run.link_traffic:
        return [], None
    n_agents = run.problem.n_agents
    codes = [outcome.links[:, 0].astype(np.int64) * n_agents + outcome.links[:, 1] for outcome in outcomes]
    union = np.unique(np.concatenate(codes))
    traffic = np.zeros((len(outcomes), len(run.records), len(union)), dtype=np.int64)
    for row, (outcome, code) in enumerate(zip(outcomes, codes, strict=True)):
        traffic[row][:, np.searchsorted(union, code)] = outcome.link_traffic
    return list(zip((union // n_agents).tolist(), (union % n_agents).tolist(), strict=True)), traffic


def _labels(names: Sequence[Hashable]) -> NDArray[Any]:
    if all(isinstance(name, str) for name in names) or all(isinstance(name, int | float | np.number) for name in names):
        return np.asarray(names)
    return np.array([str(name) for name in names])
