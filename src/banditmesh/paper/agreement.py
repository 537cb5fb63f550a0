"""Our values compared with the published ones, as plain values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from . import published
from .claims import judge
from .reproduction import Densities, Reproduction, Runs, fit_line, mean_and_sd

#: What the keys of `to_json` are called in sentences.
_WORDS: Final = {"regret": "regret", "messages": "transmissions"}


def entry(values: Any, theirs: float | None, their_sd: float | None = None) -> dict[str, Any]:
    """One value compared with a published one.

    `deviation` is relative; `z` is in standard deviations over arm instances, and present only if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> round(entry(np.array([[90.0], [110.0]]), 110.0)["deviation"], 3)
    -0.091
    """
    mean, sd = mean_and_sd(values)
    row: dict[str, Any] = {"mean": mean, "sd": sd, "published": theirs, "published_sd": their_sd}
    row["deviation"] = mean / theirs - 1 if theirs else None
    if len(values) > 1 and theirs is not None and sd:
        row["z"] = (theirs - mean) / sd
    return row


def to_json(reproduction: Reproduction) -> dict[str, Any]:
    """A reproduction as plain values: figure -> network -> protocol -> regret and messages -> mean, sd, published."""
    names = ("rules", "horizon", "replicates", "instances", "seed")
    values: dict[str, Any] = {name: getattr(reproduction, name) for name in names}
    values |= {
        "sd_over": "arm instances" if reproduction.instances > 1 else "replicates",
        "comparable": reproduction.comparable,
        "engine": "+".join(sorted(reproduction.engines)),
        "versions": reproduction.versions,
    }
    if "3" in reproduction.figures:
        values["figure3"] = {name: _ends(name, reproduction.runs[name]) for name in published.STATIC_NETWORKS}
    if "4" in reproduction.figures:
        values["figure4"] = {name: _watched(name, reproduction.runs[name]) for name in published.STATIC_NETWORKS}
    if "5" in reproduction.figures:
        values["figure5"] = {"dynamic-er": _ends("dynamic-er", reproduction.runs["dynamic-er"])}
    if reproduction.densities is not None:
        values["figure6"] = _fits(reproduction.densities)
    values["exact_counts_agree"] = exact_counts_agree(reproduction)
    if reproduction.instances > 1 and reproduction.comparable and reproduction.rules == "published":
        values["within_three_sd"], values["order_agrees"] = within_three_sd(values), order_agrees(reproduction)
    values["claims"] = [claim.to_json() for claim in judge(reproduction)]
    return values


def exact_counts_agree(reproduction: Reproduction) -> bool | None:
    """Whether the counts that depend on the network alone equal the published ones; None if they cannot be compared."""
    static = [name for name in reproduction.runs if name in published.STATIC_NETWORKS]
    if not static or not reproduction.comparable or reproduction.rules != "published":
        return None
    for name in static:
        for short in ("irs", "flooding"):
            if not np.all(reproduction.runs[name][short].messages == published.MESSAGES[name][short][0]):
                return False
        load = reproduction.runs[name]["flooding"].watched
        if load is not None and not np.all(load == published.WATCHED[name]["flooding"]):
            return False
    return True


def within_three_sd(values: Mapping[str, Any]) -> dict[str, Any]:
    """How many published values lie within three standard deviations over arm instances, and which do not.

    The stated reductions of Figure 4 are left out: they follow from the loads.
    """
    inside, outside = 0, []
    for figure in ("figure3", "figure4", "figure5"):
        for name, protocols in values.get(figure, {}).items():
            for short, row in protocols.items():
                for what, cell in row.items():
                    if "z" not in cell or what == "reduction":
                        continue
                    if abs(cell["z"]) <= 3:
                        inside += 1
                    else:
                        words = "load of the watched link" if figure == "figure4" else _WORDS[what]
                        outside.append(f"{words} under {short} on {name} ({cell['z']:+.1f} sd)")
    return {"inside": inside, "outside": outside}


def order_agrees(reproduction: Reproduction) -> dict[str, Any]:
    """Whether regrets are in the published order, wherever published values differ by more than the spread."""
    pairs, against = 0, []
    for name, protocols in reproduction.runs.items():
        rows = {short: row["regret"] for short, row in _ends(name, protocols).items()}
        for first, second in itertools.permutations(rows, 2):
            theirs = rows[second]["published"] - rows[first]["published"]
            if theirs > max(rows[first]["sd"] or 0.0, rows[second]["sd"] or 0.0):
                pairs += 1
                if rows[second]["mean"] <= rows[first]["mean"]:
                    against.append(f"{first} before {second} on {name}")
    return {"pairs": pairs, "against": against}


def _ends(name: str, protocols: Mapping[str, Runs]) -> dict[str, Any]:
    return {
        short: {
            "regret": entry(runs.regret, *published.REGRET[name][short]),
            "messages": entry(runs.messages, *published.MESSAGES[name][short]),
        }
        for short, runs in protocols.items()
    }


def _watched(name: str, protocols: Mapping[str, Runs]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    flooding = protocols["flooding"].watched
    for short, runs in protocols.items():
        assert runs.watched is not None
        assert flooding is not None
        values[short] = {"messages": entry(runs.watched, published.WATCHED[name].get(short))}
        if flooding.all():
            reduction = 100 * (1 - runs.watched / flooding)
            values[short]["reduction"] = entry(reduction, published.REDUCTION[name] if short == "fwa" else None)
    return values


def _fits(densities: Densities) -> dict[str, Any]:
    """R² of regret against delta by cover, and with the two protocols' regrets exchanged."""
    values: dict[str, Any] = {"degrees": densities.degrees.tolist()}
    for short, other in (("flooding", "fwa"), ("fwa", "flooding")):
        row: dict[str, Any] = {"regret": densities.regret[short].tolist(), "published": published.R_SQUARED[short]}
        for cover in ("greedy", "exact"):
            delta = densities.delta[short, cover]
            (slope, intercept), r_squared = fit_line(delta, densities.regret[short])
            row[cover] = {
                "delta": delta.tolist(),
                "slope": slope,
                "intercept": intercept,
                "r_squared": r_squared,
                "r_squared_exchanged": fit_line(delta, densities.regret[other])[1],
            }
        values[short] = row
    return values
