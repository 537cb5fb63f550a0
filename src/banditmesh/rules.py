"""The two rule sets, point by point.

The paper's text and theory ("sound") and its author's code and figures ("published") differ in six points. Each
point is one field here, read in one place; nothing else in the package asks which rule set is in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from . import checks


@dataclass(frozen=True)
class Rules:
    """A rule set: the six points where text and published code differ.

    Attributes
    ----------
    name : str
        "sound" or "published".
    relay_to_sender : bool
        Whether a relay also goes back to the agent that the message came from.
    origin_remembers : bool
        Whether an origin has seen its own message. If not, the message comes back at hop 2 and its origin counts
        its own reward twice.
    id_is_reward : bool
        Whether a message is known by (origin, arm, reward) in a memory of ttl * n_agents ids, the oldest forgotten
        first, instead of by (origin, sequence number), never forgotten.
    clock_lag : int
        The policy's clock reads `t - clock_lag` in round t.
    stop_before_use : bool
        Whether a randomly stopped message is dropped before its observation is used.
    births_first : bool
        Whether deaths in an edge-Markovian step may hit links born in the same step.
    """

    name: str
    relay_to_sender: bool
    origin_remembers: bool
    id_is_reward: bool
    clock_lag: int
    stop_before_use: bool
    births_first: bool


SOUND: Final = Rules(
    name="sound",
    relay_to_sender=False,
    origin_remembers=True,
    id_is_reward=False,
    clock_lag=0,
    stop_before_use=False,
    births_first=False,
)
PUBLISHED: Final = Rules(
    name="published",
    relay_to_sender=True,
    origin_remembers=False,
    id_is_reward=True,
    clock_lag=1,
    stop_before_use=True,
    births_first=True,
)
RULE_SETS: Final = {rules.name: rules for rules in (SOUND, PUBLISHED)}


def get_rules(name: object) -> Rules:
    """The rule set of that name."""
    return RULE_SETS[checks.choice("rules", name, RULE_SETS)]
