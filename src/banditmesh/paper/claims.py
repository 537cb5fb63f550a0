"""Which of the paper's claims hold, judged from the numbers of a reproduction.

A claim about an order holds if the paired difference is on its side with 95 per cent confidence, fails if it is on the
other, and is open otherwise. The pairs are replicates (or arm instances, if there are several): every protocol sees the
same rewards and the same networks. Words such as "about" and "at par" are given numbers here, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..comparisons.intervals import paired_interval
from . import published
from .reproduction import Reproduction, Runs, fit_line

#: "At par", "matches": within this fraction.
PAR: Final = 0.10
#: "Similar" numbers of transmissions: within this fraction.
SIMILAR: Final = 0.25
#: "About 77 per cent": within this many percentage points.
ABOUT: Final = 5.0
#: "High" R²: at least this.
HIGH: Final = 0.9

HOLDS: Final = "holds"
FAILS: Final = "fails"
OPEN: Final = "open"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, where it was judged, how, and from which numbers."""

    figure: str
    claim: str
    where: str
    verdict: str
    evidence: str

    def to_json(self) -> dict[str, str]:
        """The claim as plain values."""
        return asdict(self)


def judge(reproduction: Reproduction) -> list[Claim]:
    """The claims of the figures that were reproduced."""
    claims: list[Claim] = []
    for name in published.STATIC_NETWORKS:
        if "3" in reproduction.figures:
            claims += _figure3(name, reproduction.runs[name])
        if "4" in reproduction.figures:
            claims += _figure4(name, reproduction.runs[name])
    if "5" in reproduction.figures:
        claims += _figure5(reproduction.runs["dynamic-er"])
    if reproduction.densities is not None:
        claims += [_figure6(reproduction, short) for short in ("flooding", "fwa")]
    return claims


def _figure3(name: str, runs: Mapping[str, Runs]) -> list[Claim]:
    rest = [short for short in runs if short != "flooding"]
    fwa, flooding = runs["fwa"], runs["flooding"]
    saved = 100 * (1 - fwa.messages.mean() / flooding.messages.mean())
    return [
        _least("3", "Flooding has the least regret", name, runs, "flooding", rest),
        _least("3", "FwA has the second least regret", name, runs, "fwa", [s for s in rest if s != "fwa"]),
        Claim(
            "3",
            "FwA sends significantly less than Flooding",
            name,
            _side(fwa.messages, flooding.messages),
            f"{saved:.0f} % fewer transmissions",
        ),
        _against_probabilistic(name, fwa, runs["probabilistic"]),
    ]


def _least(figure: str, claim: str, name: str, runs: Mapping[str, Runs], best: str, others: Sequence[str]) -> Claim:
    """Whether one protocol has less regret than each of the others; its closest rival is the evidence."""
    verdicts = {other: _side(runs[best].regret, runs[other].regret) for other in others}
    rival = min(others, key=lambda other: float(runs[other].regret.mean()))
    verdict = FAILS if FAILS in verdicts.values() else OPEN if OPEN in verdicts.values() else HOLDS
    evidence = f"{best} {runs[best].regret.mean():,.0f}, {rival} {runs[rival].regret.mean():,.0f}"
    return Claim(figure, claim, name, verdict, evidence)


def _against_probabilistic(name: str, fwa: Runs, other: Runs) -> Claim:
    regret = fwa.regret.mean() / other.regret.mean() - 1
    messages = fwa.messages.mean() / other.messages.mean() - 1
    verdict = HOLDS if regret <= PAR and abs(messages) <= SIMILAR else FAILS
    return Claim(
        "3",
        "With similar transmissions, FwA's regret is below that of Probabilistic Flooding, or at par",
        name,
        verdict,
        f"regret {100 * regret:+.1f} %, transmissions {100 * messages:+.1f} %",
    )


def _figure4(name: str, runs: Mapping[str, Runs]) -> list[Claim]:
    fwa, flooding, other = runs["fwa"], runs["flooding"], runs["probabilistic"]
    assert fwa.watched is not None
    assert flooding.watched is not None
    assert other.watched is not None
    assert fwa.watched_curve is not None
    stated = published.REDUCTION[name]
    reduction = 100 * (1 - fwa.watched.mean() / flooding.watched.mean()) if flooding.watched.any() else float("nan")
    curve = fwa.watched_curve.mean(axis=0)
    peak, steady = curve[: max(1, len(curve) // 10)].max(), curve[len(curve) // 2 :].mean()
    return [
        Claim(
            "4",
            "FwA lowers the load of the watched link by about as much as stated",
            name,
            HOLDS if abs(reduction - stated) <= ABOUT else FAILS,
            f"{reduction:.1f} % below Flooding, {stated:.0f} % stated",
        ),
        Claim(
            "4",
            "The watched link carries less under FwA than under Probabilistic Flooding",
            name,
            _side(fwa.watched, other.watched),
            f"{fwa.watched.mean():.1f} against {other.watched.mean():.1f} a round",
        ),
        Claim(
            "4",
            "Under FwA the link's load has a spike in the early phase",
            name,
            HOLDS if peak > 1.5 * steady else FAILS,
            f"{peak:.0f} a round at its early peak, {steady:.0f} later",
        ),
    ]


def _figure5(runs: Mapping[str, Runs]) -> list[Claim]:
    fwa, flooding = runs["fwa"], runs["flooding"]
    ratio = fwa.regret.mean() / flooding.regret.mean() - 1
    saved = 100 * (1 - fwa.messages.mean() / flooding.messages.mean())
    return [
        Claim(
            "5",
            "On a dynamic network FwA matches the regret of Flooding",
            "dynamic-er",
            HOLDS if ratio <= PAR else FAILS,
            f"regret {100 * ratio:+.1f} %",
        ),
        Claim(
            "5",
            "On a dynamic network FwA has strictly fewer transmissions than Flooding",
            "dynamic-er",
            _side(fwa.messages, flooding.messages),
            f"{saved:.0f} % fewer transmissions",
        ),
    ]


def _figure6(reproduction: Reproduction, short: str) -> Claim:
    assert reproduction.densities is not None
    densities = reproduction.densities
    fits = {cover: fit_line(densities.delta[short, cover], densities.regret[short])[1] for cover in ("greedy", "exact")}
    return Claim(
        "6",
        "Regret is almost linear in delta, with high R²",
        short,
        HOLDS if min(fits.values()) >= HIGH else FAILS,
        ", ".join(f"R² {value:.4f} by {cover} covers" for cover, value in fits.items()),
    )


def _side(less: NDArray[Any], more: NDArray[Any]) -> str:
    """Whether the first is less than the second, by their paired differences."""
    difference = (more - less).mean(axis=1) if len(less) > 1 else (more - less)[0]
    low, high = paired_interval(difference)
    if np.isnan(low):  # a single run: nothing to judge the spread by
        return OPEN
    return HOLDS if low > 0 else FAILS if high < 0 else OPEN
