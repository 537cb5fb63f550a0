"""A bandit, as a node's configuration describes it: its arms, and how the node chooses among them.

A node may serve several bandits, and each of them in several segments: a *segment* is a text that comes with a choice,
such as a country or a kind of request. Each bandit in each segment has its own agent over the same arms.

Rules kept here. The arms in no `[[bandits]]` are those of the bandit "default", and so are the keys in no table. Names
of a bandit's arms differ, and fit into the name under which they travel (see `names`): so an arm of the default bandit
must not have exactly two `/` in its name, which would be another bandit's. `memory` is "everything".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from .. import checks
from ..errors import InputError
from ..policies import UCB, Policy
from .fields import Check, boolean, list_of
from .forgetting import EVERYTHING, read_memory
from .names import DEFAULT, agent_name, arm_name, check_name, is_name, split_arm
from .statistics import ArmSpec, policy_arms

#: The keys of a bandit whose values are as they are written.
PLAIN_KEYS: Final[dict[str, Check]] = {
    "memory": read_memory,
    "explore": checks.probability,
    "patience": checks.positive,
    "lapse_reward": checks.real,
    "segments": list_of(check_name),
    "new_arms": boolean,
}


class BanditSettings(Struct, frozen=True, kw_only=True):
    """What a node is told of a bandit, its name aside.

    Attributes
    ----------
    arms : list of ArmSpec
        What it chooses among.
    policy : Policy
        How it chooses.
    memory : str
        What it forgets: "everything" remembers all, with "discount(half_life = 86400)" what was observed counts half
        as much after that many seconds.
    explore : float
        The probability with which a choice is uniform among the available arms; first pulls excepted.
    patience : float or None
        After how many seconds without a reward a choice counts as silence when others are made; from the times that
        rewards took unless given.
    lapse_reward : float or None
        What a choice whose reward never comes is taken for.
    segments : list of str or None
        The segments that it has; a choice in any other is made without a segment. Any text is one unless given.
    new_arms : bool
        Whether a choice may name arms that it does not have yet: they are made, like its first arm.
    """

    arms: list[ArmSpec]
    policy: Policy = field(default_factory=UCB)
    memory: str = EVERYTHING
    explore: float = 0.0
    patience: float | None = None
    lapse_reward: float | None = None
    segments: list[str] | None = None
    new_arms: bool = False

    def problems(self, bandit: str) -> Iterator[str]:
        """What is wrong with them, a line each, in a bandit of that name."""
        wrong = [*_wrong_values(PLAIN_KEYS, self)]
        if wrong:
            yield from wrong
            return
        twice = [name for name, n_times in Counter(arm.name for arm in self.arms).items() if n_times > 1]
        yield from (f"[[arms]]: names must differ, got {name!r} more than once" for name in twice)
        agents = [agent_name(bandit, segment) for segment in ["", *(self.segments or ())]]
        for arm in self.arms:
            yield from name_problems(agents, arm.name)
            if self.lapse_reward is not None:
                try:
                    arm.check_reward(self.lapse_reward)
                except InputError as error:
                    yield f"lapse_reward must be a reward that each arm may pay: {error}"
        try:
            self.policy.require(policy_arms(self.arms))
        except InputError as error:
            yield str(error)


class BanditSpec(BanditSettings, frozen=True, kw_only=True):
    """A bandit of a node, for `NodeConfig.bandits`.

    Examples
    --------
    >>> ads = BanditSpec(name="ads", arms=[ArmSpec("red"), ArmSpec("blue")], segments=["de", "fr"])
    >>> ads.explore, list(ads.problems("ads"))
    (0.0, [])
    """

    name: str


def name_problems(agents: Sequence[str], arm: str) -> Iterator[str]:
    """What is wrong with an arm's name, where these agents have it."""
    if agents[0] == "" and split_arm(arm) != ("", arm):
        yield (
            f"an arm of the bandit {DEFAULT!r} must not have exactly two '/' in its name, got {arm!r}: "
            "it would be an arm of another bandit; give it another name"
        )
    for agent in agents:
        if not is_name(arm_name(agent, arm)):
            name = checks.shown(arm_name(agent, arm))
            yield f"bandit, segment and arm must have at most 128 bytes together, got {name}; give them shorter names"
            return


def _wrong_values(keys: Mapping[str, Check], holder: object) -> Iterator[str]:
    """What is wrong with values that may have been given by hand; None stands for no value."""
    for key, check in keys.items():
        value = getattr(holder, key)
        if value is not None:
            try:
                check(key, value)
            except InputError as error:
                yield str(error)
