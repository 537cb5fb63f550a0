"""What the agent of a bandit and segment believes of its arms, where up to f origins may lie (`[trust] trim = f`).

The rule is the core's, the same as in the simulator. For each arm, all lives of a name are pooled, and the node's own
earlier ones with what it observed in this one. Where the bandit forgets, weights as of now take the place of counts.

Rules kept here. An arm is worked out anew when it is asked for after something of it has changed; where the bandit
forgets, also when a thousandth of the half-life has passed, but at most once a second, since what little is left proves
less and less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ...core.trimming import merged

#: How long what was worked out holds where the bandit forgets: this part of the half-life, but at least these seconds.
PART_OF_HALF_LIFE: Final = 1e-3
LEAST_SECONDS: Final = 1.0


class Beliefs:
    """What one agent believes.

    Parameters
    ----------
    f : int
        How many liars there may be, at least 1.
    node : str
        The node's own name.
    by_origin : callable
        `by_origin(arm, by_weight)` is what the table has of an arm: by origin, count and sum of all its lives.

    Attributes
    ----------
    out : dict
        By arm: the origins that are left out, ascending; only of arms where there are some.
    """

    def __init__(self, f: int, node: str, by_origin: Callable[[str, bool], Mapping[str, tuple[Any, float]]]) -> None:
        self.out: dict[str, list[str]] = {}
        self._f, self._node, self._by_origin = f, node, by_origin
        self._changed: dict[str, None] = {}
        self._worked_out_at = -float("inf")

    def changed(self, arm: str) -> None:
        """Something of an arm has changed."""
        self._changed[arm] = None

    def due(self, arms: Iterable[str], now: float, half_life: float | None) -> list[str]:
        """Those of these arms that are to be worked out anew."""
        if half_life is not None and not (
            0 <= now - self._worked_out_at < max(LEAST_SECONDS, PART_OF_HALF_LIFE * half_life)
        ):
            self._worked_out_at = now
            self._changed = dict.fromkeys(arms)
        if not self._changed:
            return []
        found, self._changed = [arm for arm in arms if arm in self._changed], {}
        return found

    def known(self, arm: str, own: tuple[Any, float], sigma: float, unit: float | None) -> tuple[Any, float]:
        """What is known of an arm with what is believed of others: count and sum, own ones included.

        Parameters
        ----------
        arm : str
            Its name in statistics.
        own : (count, sum)
            What the node observed in its present life.
        sigma : float
            By how much the arm's rewards vary.
        unit : float or None
            What one observation of now weighs, where counts and sums are weights in a scale.
        """
        others = dict(self._by_origin(arm, unit is not None))
        earlier = others.pop(self._node, None)
        if earlier is not None:
            own = own[0] + earlier[0], own[1] + earlier[1]
        names = sorted(name for name, (count, _) in others.items() if count > 0)
        told = [others[name] for name in names]
        scale = 1 if unit is None else unit
        if unit is not None:
            own, told = (own[0] / unit, own[1] / unit), [(count / unit, total / unit) for count, total in told]
        count, total, parts = merged(own, told, self._f, sigma)
        self.out.pop(arm, None)
        if out := [name for name, part in zip(names, parts, strict=True) if not part]:
            self.out[arm] = out
        return count * scale, total * scale

    def drop(self, arms: Iterable[str]) -> None:
        """The agent has these arms no more."""
        for arm in arms:
            self.out.pop(arm, None)
            self._changed.pop(arm, None)
