"""The faults that a protocol handles poorly; the figures are in docs/faults.md and docs/beyond.md."""

from __future__ import annotations

from ..faults import Faults
from ..protocols import AnyProtocol


def weaknesses(protocol: AnyProtocol, faults: Faults | None) -> list[str]:
    """Which of these faults a protocol handles poorly, in words; empty if nothing is known.

    Examples
    --------
    >>> import banditmesh as bm
    >>> for weakness in weaknesses(bm.TreeAggregation(), bm.Faults(loss=0.1)):
    ...     print(weakness)
    a tree has one path between two agents, so a loss is missed until the next statistic; echoes help
    >>> weaknesses(bm.FwA(4), bm.Faults(loss=0.1))
    []
    """
    real = None if faults is None else faults.effective()
    if real is None or not protocol.sends_messages:
        return []
    is_tree = protocol.facts is not None and protocol.facts.merges
    emission = protocol.emission
    found = []
    if real.liars:
        if is_tree:
            found.append("a tree merges what origins tell, so nothing can be tested, and a lie reaches everybody")
        elif emission.cumulative:
            found.append("a liar may claim any count, and outweigh all others; simulate with trim to test statistics")
        else:
            found.append("single observations cannot be tested; use growth with trim")
    if (real.loss > 0 or real.link_cap is not None) and emission.cumulative and not emission.n_echoes:
        if is_tree:
            found.append(
                "a tree has one path between two agents, so a loss is missed until the next statistic; echoes help"
            )
        else:
            found.append(
                "statistics are sent less and less often, so a lost one is missed for a long time; echoes or a larger "
                "ttl help"
            )
    if real.outages is not None:
        if is_tree:
            found.append(
                "an agent that is down cuts off its side of the tree, and echoes do not help; flooding with growth "
                "finds a way around"
            )
        if not real.outages.memory and emission.cumulative:
            found.append(
                "an agent that forgets counts from zero again, and others learn nothing from it until it counts more "
                "than before; every pull does not have this"
            )
    return found
