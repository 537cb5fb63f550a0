"""Which engine runs what: asked of the engines themselves, not written down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import protocols
from ..arms import Bernoulli, Empirical, Gaussian
from ..networks.csr import Links
from ..networks.dynamic import EdgeMarkovian
from ..policies import UCB
from ..problem import Problem
from ..protocols import Protocol
from ..rules import RULE_SETS
from .run import Run


def support() -> None:
    """Print which engine runs which combination of protocol, rules, network and rewards.

    What "compiled" is printed for runs on both engines, with the same results; the rest runs on the reference alone.
    Besides: an event log (`trace=True`), a policy that overrides `choose` and agents whose policies are of several
    kinds need the reference. A user's own relay rule or index runs compiled if it is a pure function that numba
    compiles.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.support()  # doctest: +ELLIPSIS
    rules      network  rewards     none      irs       gossip    ...
    sound      static   continuous  compiled  compiled  compiled  ...
    """
    rows = support_table()
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(len(line[column]) for line in lines) + 2 for column in range(len(lines[0]))]
    for line in lines:
        print("".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def support_table() -> list[dict[str, str]]:
    """What `support` prints: rows of rules, network and rewards, and the engine that runs each protocol there."""
    from .packing import unsupported

    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for key, run in _runs():
        row = rows.setdefault(key, dict(zip(("rules", "network", "rewards"), key, strict=True)))
        row[run.protocol.name] = "compiled" if unsupported(run) is None else "reference"
    return list(rows.values())


def _runs() -> Iterator[tuple[tuple[str, str, str], Run]]:
    """One small run of every combination."""
    path = Links.from_pairs(3, [(0, 1), (1, 2)])
    networks = {"static": path, "dynamic": EdgeMarkovian(path, 0.5, 0.5)}
    laws = {"continuous": Gaussian(0.0, 1.0), "Bernoulli": Bernoulli(0.5), "other discrete": Empirical([0.0, 1.0, 3.0])}
    for rules in RULE_SETS.values():
        for network_name, network in networks.items():
            for law_name, law in laws.items():
                problem = Problem(network, [[0]] * 3, [law])
                for protocol in _built_in():
                    yield (
                        (rules.name, network_name, law_name),
                        Run(
                            problem=problem,
                            protocol=protocol,
                            policies=(UCB(),) * 3,
                            rules=rules,
                            horizon=1,
                            replicates=1,
                            seed=0,
                            every=np.ones(3, dtype=np.int64),
                            tape=None,
                            records=np.array([1]),
                            link_traffic=False,
                            trace=False,
                        ),
                    )


def _built_in() -> list[Protocol]:
    return [
        protocols.NoCooperation(),
        protocols.IRS(),
        protocols.Gossip(2),
        protocols.ProbabilisticFlooding(2),
        protocols.FwA(2),
        protocols.Flooding(2),
        protocols.Centralised(),
    ]
