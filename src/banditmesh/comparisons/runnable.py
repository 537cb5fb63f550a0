"""The configurations that `frontier` compares for a live mesh: only those that run on one."""

from __future__ import annotations

from collections.abc import Sequence

from ..live.template import refuse_live, runs_live
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol, Emission, NoCooperation
from .frontier import combine


def combine_live(
    problem: Problem,
    protocols: Sequence[AnyProtocol | type[AnyProtocol]] | None = None,
    ttls: Sequence[int] | None = None,
    emissions: Sequence[Emission] | None = None,
    policy: Policy | None = None,
) -> list[AnyProtocol]:
    """The configurations of `frontier` that run live; one that was named and does not is refused.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    >>> [bm.protocols.notation.write(one) for one in combine_live(problem, [bm.FwA], [2])]
    ['fwa(2)', 'fwa(2)+growth(0.1)', 'fwa(2)+growth(0.25)', 'fwa(2)+growth(1)']
    """
    refuse_live(NoCooperation(), policy)
    for emission in emissions or ():
        refuse_live(NoCooperation(emission=emission))
    for kind in protocols or ():
        if isinstance(kind, AnyProtocol):
            refuse_live(kind)
    found = list(combine(problem, protocols, ttls, emissions).values())
    live = [protocol for protocol in found if runs_live(protocol)]
    if not live:
        refuse_live(found[0])
    return live
