"""What the bounds require, and whether it holds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..networks.csr import Links
from ..problem import Problem
from ..protocols import AnyProtocol
from . import powers
from .delivery import Flow
from .lower import class_sigma, has_class
from .sharp import SharpBound

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Condition:
    """One requirement.

    Attributes
    ----------
    name : str
        A short name, for programs.
    requires : str
        The requirement, with its numbers.
    holds : bool
        Whether it is met.

    Examples
    --------
    >>> print(Condition("corrected", "alpha > 2", holds=False))
    FAILS: alpha > 2
    """

    name: str
    requires: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS'}: {self.requires}"


def name_theorem(delivery: Flow | None, sharp: SharpBound | None) -> str:
    """What the sharp bound rests on."""
    if delivery is None or sharp is None:
        return "none: an algorithm, or your own protocol or emission"
    if not delivery.promises:
        return "delivery theorem: own pulls alone"
    if delivery.each_hop:
        return "delivery theorem: merged counts along a tree"
    if delivery.held_back < 1.0:
        return "delivery theorem: counts that lag by a factor"
    if not delivery.sure:
        return "delivery theorem: a share arrives by chance"
    return "delivery theorem: every pull arrives"


def state_conditions(
    problem: Problem,
    protocol: AnyProtocol,
    alpha: float,
    sigma: float,
    per_arm: pd.DataFrame,
    unknown: tuple[Hashable, ...],
    lasting: bool,
    claimed: bool,
    theorem: str,
    sharp: SharpBound | None,
    solved: bool,
) -> tuple[Condition, ...]:
    """All requirements of the bounds of a problem under a protocol."""
    requires = (
        "the paper's theorems cover this protocol: every pull is sent and relayed without randomness or faults: "
        f"none, irs, flooding, fwa, centralised (here {protocol.name})"
    )
    stated = [Condition("claimed", requires, claimed)]
    is_large = alpha > 2 * sigma**2
    large = f"alpha > 2 sigma^2 = {2 * sigma**2:g} (here alpha = {alpha:g})"
    if claimed:
        if protocol.most_hops > 0:
            stated += _published(powers.static_links(problem), protocol.most_hops, alpha, sigma)
        stated.append(Condition("corrected", f"corrected upper bound, any ttl: {large}", is_large))
    if theorem.startswith("delivery"):
        stated.append(Condition("sharp", f"sharp constant, by the {theorem}; {large}", is_large))
    else:
        requires = "an upper bound is known for the protocol and the emission; none is for algorithms and your own"
        stated.append(Condition("sharp", requires, False))
    if sharp is not None:
        requires = f"the sharp bound at T = {sharp.horizon} is below the cost of largest gaps; if not, it adds nothing"
        stated.append(Condition("sharp at T", requires, not sharp.is_trivial(sharp.horizon)))
        stated.append(Condition("sets", "independent sets are solved exactly; if not, bounds are larger", solved))
    if claimed:
        proven = all((per_arm[name] == per_arm[f"{name}_lower"]).all() for name in ("theta", "weighted"))
        stated.append(Condition("covers", "clique covers are proven to be minimum; if not, bounds are larger", proven))
    return (*stated, *_lower(problem, alpha, sigma, unknown, lasting))


def _published(links: Links, ttl: int, alpha: float, sigma: float) -> list[Condition]:
    hops = ttl + 1
    theorem = max(0.5, 2 * sigma**2 / hops)
    positive = max(0.5, 4 * sigma**2 / hops - 0.5)
    return [
        Condition(
            "published",
            f"Theorem 1 as printed: alpha > max(1/2, 2 sigma^2 / (ttl + 1)) = {theorem:g} (here alpha = {alpha:g}); "
            "the theorem is not true in general",
            alpha > theorem,
        ),
        Condition(
            "published b",
            f"b(ttl) as printed is positive: alpha > max(1/2, 4 sigma^2 / (ttl + 1) - 1/2) = {positive:g} "
            f"(here alpha = {alpha:g})",
            alpha > positive,
        ),
        Condition(
            "published ttl",
            f"Theorem 1 as printed: ttl at most the diameter (here ttl = {ttl})",
            _within_diameter(links, ttl),
        ),
    ]


def _within_diameter(links: Links, ttl: int) -> bool:
    """Whether some pair of agents is at least `ttl` hops apart; unconnected agents are."""
    if links.components().max() > 0:
        return True
    return any(powers.n_hops(links, sources, ttl) >= ttl for sources in powers.blocks(links.n_agents))


def _lower(
    problem: Problem, alpha: float, sigma: float, unknown: tuple[Hashable, ...], lasting: bool
) -> list[Condition]:
    # A law without a class is alone in its class; it needs its own sigma, or the one that was given for all arms.
    sigmas = [class_sigma(law) if has_class(law) else law.sigma for law in problem.laws]
    needed = 2 * max(sigma if one is None else one for one in sigmas) ** 2
    stated = [
        Condition(
            "consistent",
            "lower bounds are for policies that are consistent on the arms' classes of laws; "
            f"UCB is if alpha > {needed:g} (here alpha = {alpha:g})",
            alpha > needed,
        )
    ]
    if not lasting:
        requires = "lower bounds are for agents that keep pulling: outages with up > 0 (here up = 0)"
        stated.append(Condition("lasting", requires, False))
    if unknown:
        arms = ", ".join(repr(arm) for arm in unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        requires = f"a class of laws is known for every arm (not for {arms}: they add nothing)"
        stated.append(Condition("information", requires, False))
    return stated
