"""Faults: messages that are lost, late or changed on their way, links that are full, agents that are down or lie, and
rewards that come late or never.

Faults are immutable values, and each is a number that at zero changes nothing, or a table that may be empty. The draw
for a fault is keyed by what it strikes (see `draws`), so that faults shift no other draw: with the same seed a run with
faults and one without see the same rewards and the same networks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from . import checks
from .delays import Delay, as_delay
from .draws import MAX_COUNTER, geometric_skip, normal_quantile
from .errors import InputError

KINDS: Final = ("gaussian", "zero", "heavy")
WORST: Final = "worst-is-best"
PLAUSIBLE: Final = "plausible"
LIES: Final = (WORST, PLAUSIBLE, "noise", "constant")
#: The most rewards that a liar may claim to have of an arm.
MAX_CLAIM: Final = 10**15
#: Sums of noise on a larger scale might not be finite.
MAX_SCALE: Final = 1e100


def is_up(was_up: bool, u: float, down: float, up: float) -> bool:
    """Whether an agent is up in a round, from whether it was in the round before and a number in (0, 1).

    Examples
    --------
    >>> is_up(True, 0.3, down=0.5, up=0.1), is_up(False, 0.3, down=0.5, up=0.1)
    (False, False)
    """
    return u >= down if was_up else u < up


@dataclass(frozen=True)
class Corruption:
    """Rewards changed on their way, one transmission at a time.

    A changed message is relayed as it arrived. In a cumulative message the sum changes, not the count.

    Parameters
    ----------
    kind : str
        "gaussian" adds normal noise, "heavy" adds Cauchy noise, which has no mean, and "zero" makes the reward 0.
    probability : float
        How likely a transmission is changed.
    scale : float
        The standard deviation of the normal noise, or the scale of the Cauchy noise.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> faults = bm.Faults(corruption=bm.Corruption("zero", probability=1.0))
    >>> result = bm.simulate(problem, bm.IRS(), horizon=2, seed=0, faults=faults, trace=True)
    >>> {event.reward for event in result.trace}
    {0.0}
    """

    kind: str
    probability: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        checks.choice("corruption.kind", self.kind, KINDS)
        object.__setattr__(self, "probability", checks.probability("corruption.probability", self.probability))
        scale = checks.non_negative("corruption.scale", self.scale)
        if scale > MAX_SCALE:
            raise InputError(f"must be at most {MAX_SCALE:g}, got {scale:g}", key="corruption.scale")
        object.__setattr__(self, "scale", scale)

    def changed(self, total: float, u: float, unit: float = 1.0) -> float:
        """A reward, or a sum of rewards, after noise from a number `u` drawn in (0, 1).

        `unit` is what a reward of 1 adds to the sum.
        """
        if self.kind == "zero":
            return 0.0
        noise = normal_quantile(u) if self.kind == "gaussian" else math.tan(math.pi * (u - 0.5))
        return total + unit * (self.scale * noise)


@dataclass(frozen=True)
class Outages:
    """Agents that go down and come back, each on its own.

    All agents are up before the first round. At the start of every round an agent that was up goes down with
    probability `down`, and one that was down comes back with probability `up`. So outages last 1 / up rounds on
    average, and in the long run an agent is down for a share down / (down + up) of the rounds.

    An agent that is down does not pull, send or hear; what it was about to relay is gone. Its neighbours do not know:
    what they send to it is lost.

    Parameters
    ----------
    down : float
        How likely an agent goes down, each round.
    up : float
        How likely it comes back, each round.
    memory : bool
        Whether it comes back with what it knew. If not, it starts afresh, and pulls each of its arms once.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> faults = bm.Faults(outages=bm.Outages(down=0.1, up=0.1))
    >>> result = bm.simulate(problem, bm.IRS(), horizon=100, seed=0, faults=faults)
    >>> bool(result.pulls.sum() < 100 * 100)
    True
    """

    down: float
    up: float
    memory: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "down", checks.probability("outages.down", self.down))
        object.__setattr__(self, "up", checks.probability("outages.up", self.up))
        if not isinstance(self.memory, bool):
            raise InputError(f"must be True or False, got {checks.shown(self.memory)}", key="outages.memory")


@dataclass(frozen=True)
class Lie:
    """What a liar puts in the place of each reward that it gets; written as text, see `Lie.read`.

    Attributes
    ----------
    kind : str
        "worst-is-best": the worse half of its arms pays the most that it may claim, and of the others it tells the
        truth. "plausible": the worse half of its arms pays as much, and the better half as little, as tested merging
        would still believe, by what the liar has heard. "noise": every pull pays something drawn uniformly between the
        least and the most that it may claim. "constant": all arms pay the same.
    claim : int or None
        The least number of pulls that it claims of an arm that it lies about, where counts are sent; None for the
        true number.
    value : float or None
        What "constant" says that arms pay; None for the middle of what it may claim.
    """

    kind: str
    claim: int | None = None
    value: float | None = None

    @classmethod
    def read(cls, text: object) -> Lie:
        """The lie that a text names, such as "worst-is-best(claim=1e6)" or "constant(value=0.5)".

        Examples
        --------
        >>> Lie.read("constant(value=0.5, claim=100)")
        Lie(kind='constant', claim=100, value=0.5)
        """
        found = re.fullmatch(r"\s*([\w-]+)\s*(?:\(([^()]*)\))?\s*", text) if isinstance(text, str) else None
        if found is None:
            raise InputError(
                f'must be a lie such as "worst-is-best" or "noise(claim=100)", got {checks.shown(text)}', key="liars"
            )
        kind = checks.choice("liars", found[1], LIES)
        known = ("claim", "value") if kind == "constant" else ("claim",)
        given: dict[str, Any] = {}
        for part in filter(None, map(str.strip, (found[2] or "").split(","))):
            name, _, value = (one.strip() for one in part.partition("="))
            if name not in known or name in given:
                wanted = f"{kind!r} takes {' and '.join(known)}, each once and as in claim=100"
                raise InputError(f"{wanted}, got {checks.shown(part)}", key="liars", is_sentence=True)
            given[name] = _number_in(f"liars: {name} of {kind!r}", value)
        if "claim" in given:
            claim = given["claim"]
            whole = int(claim) if claim == math.floor(claim) else claim
            given["claim"] = checks.integer(f"liars: claim of {kind!r}", whole, at_least=1, at_most=MAX_CLAIM)
        if abs(given.get("value", 0.0)) > MAX_SCALE:
            raise InputError(f"must be at most {MAX_SCALE:g} in size, got {given['value']:g}", key="liars: value")
        return cls(kind, **given)

    def __str__(self) -> str:
        given = [f"{name}={value!r}" for name in ("claim", "value") if (value := getattr(self, name)) is not None]
        return f"{self.kind}({', '.join(given)})" if given else self.kind


def _number_in(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return checks.real(name, number if math.isfinite(number) else text)


@dataclass(frozen=True, repr=False)
class Faults:
    """What goes wrong in a simulation; by default nothing.

    Parameters
    ----------
    loss : float
        How likely a transmission is lost. It still counts as sent.
    delay : int
        How many rounds later than without a fault every transmission arrives.
    jitter : float
        The mean of an additional random delay, in rounds: geometric, drawn for each transmission.
    corruption : Corruption, optional
        Rewards that are changed on their way.
    outages : Outages, optional
        Agents that go down and come back.
    link_cap : int, optional
        The most messages that a link carries in one direction and round. A sender sends its newest message first;
        messages beyond the cap are dropped, and do not count as sent.
    liars : mapping from agent to str
        Agents that tell other rewards than they got, and how: "worst-is-best", "plausible", "noise" or "constant", with
        parameters as in "worst-is-best(claim=1e6)". Kept as pairs of an agent and a `Lie`. They play along with their
        lies, and their regret is left out of sums, see `Result.liar_regret`.
    reward_delay : int, str or mapping
        How many rounds after its pull a reward is observed, and may be sent: a number, or a law such as
        "geometric(10)", "uniform(1, 20)", "never", or "never(500)" for pulls in round 500 or later. A mapping from arms
        to such laws is for these arms alone. Regret is judged at the pull, as always.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, bm.IRS(), horizon=100, seed=0, faults=bm.Faults(loss=0.1))
    >>> int(result.traffic["sent"][0]), round(float(result.traffic["lost"][0] / result.traffic["sent"][0]), 2)
    (30600, 0.1)
    >>> bm.Faults(delay=2, outages=bm.Outages(down=0.01, up=0.1, memory=False))
    Faults(delay=2, outages=Outages(down=0.01, up=0.1, memory=False))
    >>> bm.Faults(reward_delay={"b": "geometric(10)", "a": 3})
    Faults(reward_delay={'a': 3, 'b': 'geometric(10)'})
    """

    loss: float = 0.0
    delay: int = 0
    jitter: float = 0.0
    corruption: Corruption | None = None
    outages: Outages | None = None
    link_cap: int | None = None
    liars: Any = ()
    #: As it is written; of several arms, pairs of arm and law.
    reward_delay: Any = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", checks.probability("loss", self.loss))
        object.__setattr__(self, "delay", checks.integer("delay", self.delay, at_least=0, at_most=MAX_COUNTER))
        jitter = checks.non_negative("jitter", self.jitter)
        if jitter > MAX_COUNTER:
            raise InputError(f"must be at most {MAX_COUNTER} rounds, got {jitter:g}", key="jitter")
        object.__setattr__(self, "jitter", jitter)
        if self.corruption is not None and not isinstance(self.corruption, Corruption):
            raise InputError(f"must be a Corruption or None, got {checks.shown(self.corruption)}", key="corruption")
        if self.outages is not None and not isinstance(self.outages, Outages):
            raise InputError(f"must be an Outages or None, got {checks.shown(self.outages)}", key="outages")
        if self.link_cap is not None:
            object.__setattr__(self, "link_cap", checks.integer("link_cap", self.link_cap, at_least=1))
        object.__setattr__(self, "liars", _read_liars(self.liars))
        object.__setattr__(self, "reward_delay", _written(self.reward_delay))

    def __repr__(self) -> str:
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        if self.liars:
            given["liars"] = {agent: str(lie) for agent, lie in self.liars}
        if isinstance(self.reward_delay, tuple):
            given["reward_delay"] = dict(self.reward_delay)
        return f"Faults({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def in_words(self) -> str:
        """The faults, as words for a title.

        Examples
        --------
        >>> Faults(loss=0.02, link_cap=5, outages=Outages(down=0.002, up=0.1)).in_words()
        'loss 0.02, at most 5 messages a link, outages (down 0.002, up 0.1)'
        """
        words = [f"{name} {value:g}" for name in ("loss", "delay", "jitter") if (value := getattr(self, name))]
        if self.link_cap is not None:
            words.append(f"at most {self.link_cap} messages a link")
        if self.outages is not None:
            forgets = "" if self.outages.memory else ", no memory"
            words.append(f"outages (down {self.outages.down:g}, up {self.outages.up:g}{forgets})")
        if self.corruption is not None:
            words.append(f"{self.corruption.kind} corruption {self.corruption.probability:g}")
        if self.liars:
            kinds = ", ".join(dict.fromkeys(str(lie) for _, lie in self.liars))
            words.append(f"{len(self.liars)} {'liar' if len(self.liars) == 1 else 'liars'} ({kinds})")
        if isinstance(self.reward_delay, tuple):
            words += [f"reward delay of {arm} {law}" for arm, law in self.reward_delay]
        elif self.reward_delay:
            words.append(f"reward delay {self.reward_delay}")
        return ", ".join(words)

    def effective(self) -> Faults | None:
        """The same faults without those that never strike; None if nothing is left.

        Examples
        --------
        >>> print(Faults(outages=Outages(down=0.0, up=0.5)).effective())
        None
        """
        kept: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.corruption is not None and self.corruption.probability == 0.0:
            kept["corruption"] = None
        if self.outages is not None and self.outages.down == 0.0:
            kept["outages"] = None
        if isinstance(self.reward_delay, tuple) and not any(law for _, law in self.reward_delay):
            kept["reward_delay"] = 0
        faults = Faults(**kept)
        return None if faults == Faults() else faults

    @property
    def loses(self) -> bool:
        """Whether transmissions may not arrive: they are lost, dropped, or their receivers are down."""
        real = self.effective()
        return real is not None and (real.loss > 0.0 or real.outages is not None or real.link_cap is not None)

    @property
    def longest_delay(self) -> int | None:
        """The most rounds that a transmission can be late; None if there is no limit."""
        return None if self.jitter else self.delay

    def lateness(self, u: float) -> int:
        """How many rounds late a transmission is, when a number `u` in (0, 1) is drawn for its jitter."""
        if self.jitter == 0.0:
            return self.delay
        # A geometric number with mean j succeeds with probability 1 / (1 + j), and fails with 1 / (1 + 1 / j).
        return self.delay + geometric_skip(u, -math.log1p(1.0 / self.jitter))

    def reward_delays(self, arms: Sequence[Hashable]) -> list[Delay]:
        """The law of each of a problem's arms. In a mapping, the text of an arm's name stands for it too.

        Examples
        --------
        >>> [law.written for law in Faults(reward_delay={"2": "never"}).reward_delays([1, 2])]
        [0, 'never']
        """
        if not isinstance(self.reward_delay, tuple):
            return [as_delay(self.reward_delay)] * len(arms)
        laws = [Delay()] * len(arms)
        places: dict[Hashable, int] = {str(arm): place for place, arm in enumerate(arms)}
        places |= {arm: place for place, arm in enumerate(arms)}
        for arm, law in self.reward_delay:
            if arm not in places:
                raise InputError(
                    f"must name arms of the problem, {checks.shown(list(arms))}, got {checks.shown(arm)}",
                    key="reward_delay",
                )
            laws[places[arm]] = as_delay(law)
        return laws

    @property
    def longest_reward_delay(self) -> int | None:
        """The most rounds after which a reward is observed, if it ever is; None if there is no limit."""
        longest = [law.longest for law in self._reward_laws()]
        return None if None in longest else max(one for one in longest if one is not None)

    @property
    def mean_reward_delay(self) -> float:
        """The mean number of rounds after which a reward is observed, if it ever is; of several laws the largest."""
        return max(law.mean for law in self._reward_laws())

    def _reward_laws(self) -> list[Delay]:
        by_arm = self.reward_delay
        return [as_delay(law) for _, law in by_arm] if isinstance(by_arm, tuple) else [as_delay(by_arm)]


def _written(given: object) -> Any:
    """A law of rewards' delays as it is written; of several arms, pairs of arm and law, sorted."""
    if isinstance(given, tuple):  # as it is kept
        given = dict(given)
    if not isinstance(given, Mapping):
        return as_delay(given).written
    pairs = ((arm, as_delay(law).written) for arm, law in given.items())
    return tuple(sorted(pairs, key=lambda pair: str(pair[0]))) or 0


def _read_liars(given: object) -> tuple[tuple[Hashable, Lie], ...]:
    """Pairs of an agent and its lie, from a mapping to texts or from such pairs."""
    if given is None:
        return ()
    if not isinstance(given, Mapping | tuple):
        raise InputError(
            f'must be a mapping from agents to lies such as {{0: "worst-is-best"}}, got {checks.shown(given)}',
            key="liars",
        )
    pairs: Collection[Any] = given.items() if isinstance(given, Mapping) else given
    return tuple((agent, lie if isinstance(lie, Lie) else Lie.read(lie)) for agent, lie in pairs)
