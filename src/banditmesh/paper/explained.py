"""The words and columns of a reproduction, explained in plain sentences for its report.

Words are explained at the end of a report, the columns of a table right above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..plots.words import PARTS, WORDS

#: Words that every report uses, in the order in which they build on each other.
_WORDS: Final = {
    **WORDS,
    "agent, arm": (
        "100 agents sit on the nodes of a network. Each may pull 20 of 50 arms, its arm set; an arm pays a random "
        "reward with the same mean to every agent."
    ),
    "transmission": f"{WORDS['transmission']} The paper calls it communication complexity.",
    "ttl": "how many links in a row a message may cross; here 4.",
    "arm instance": "one draw of the arms' mean rewards and of the arm sets.",
    "replicate": "one repetition with other rewards on the same arm instance.",
    **{name: PARTS[name] for name in ("none", "irs", "gossip", "probabilistic", "fwa", "flooding")},
    "er, ba, sbm, dynamic-er": (
        "the paper's networks: Erdős-Rényi, Barabási-Albert, stochastic block model, and an Erdős-Rényi network whose "
        "links come and go."
    ),
}

#: Words of single figures.
_OF_FIGURES: Final = {
    "figure4": (
        "watched link",
        "the link that the paper examines, one in each network. Its load is its number of transmissions per round, "
        "both directions together.",
    ),
    "figure6": (
        "delta, R²",
        "delta is the paper's measure of how hard a problem is for a protocol; R² is how much of the differences in "
        "regret a straight line in delta explains, where 1 is all.",
    ),
}

_WHY_DIFFERENT: Final = (
    "Why do our values differ from the published ones? The networks are the paper's own, link for link, but its arm "
    "instance is not public. So we draw our own, and regret, and what FwA sends, depend on the draw. What depends "
    "on the network alone can be compared exactly: the transmissions of irs and flooding on static networks, under the "
    "published rules."
)
_SOUND_DIFFERS: Final = "Also, the published values were made under the published rules, these under the sound ones."


def words(values: Mapping[str, Any]) -> dict[str, str]:
    """The words used in several places of a report: word -> meaning.

    Examples
    --------
    >>> "watched link" in words({"figure4": {}}), "watched link" in words({"figure3": {}})
    (True, False)
    """
    return _WORDS | dict(entry for figure, entry in _OF_FIGURES.items() if figure in values)


def _columns(values: Mapping[str, Any]) -> str:
    """What the columns next to published values mean."""
    parts = [
        f"ours: mean ± one standard deviation over {values['sd_over']}",
        "published: the paper's value, ± its standard deviation over ten runs",
        "deviation: how far ours is above (+) or below (-) the published value, in per cent of it; exact: equal",
    ]
    if values["instances"] > 1:
        parts.append(
            "distance: how far the published value is above (+) or below (-) ours, in our standard deviations over arm "
            "instances; within 3 is what chance explains"
        )
    return "Columns. " + "; ".join(parts) + ". Where the paper gives no value there is a dash."


def notes(values: Mapping[str, Any], figure: str) -> list[str]:
    """What to know about a figure's pictures and tables, as sentences; `figure` is "3", "4", "5" or "6"."""
    if figure == "6":
        return [
            "Delta is a sum over all arms: the number of groups, whose members all hear each other, that cover the "
            "agents for which the arm is not the best, divided by the least regret of a pull of it among them. Greedy "
            "covers are groups found by the paper's quick method, exact covers the fewest possible.",
            "Columns. R² over twelve networks of different density, by both kinds of covers; published: the paper's "
            "value; exchanged: with the regrets of Flooding and FwA in each other's place, as the author's script "
            "stores them.",
        ]
    found = [_columns(values), _WHY_DIFFERENT]
    if values["rules"] == "sound":
        found.append(_SOUND_DIFFERS)
    if figure == "4":
        found.insert(
            0,
            "Tables have the load of the watched link as its mean over the second half of the run, and how much lower "
            "it is under FwA than under Flooding, in per cent; there, deviations are in percentage points.",
        )
    return found
