"""Which engine runs what: asked of the engines themselves, not written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..arms import Bernoulli, Empirical, Gaussian, Law, Piecewise, Replay, Switching
from ..errors import InputError
from ..faults import Corruption, Faults, Outages
from ..lookup import registry
from ..networks.csr import Links
from ..networks.dynamic import EdgeMarkovian
from ..policies import UCB, Discount, Everything, Policy, Window
from ..problem import Problem
from ..protocols import AnyProtocol, Delivery, Emission, Growth
from ..protocols.notation import needs_ttl
from ..rules import RULE_SETS, Rules
from ..text_tables import as_text
from .run import Run

#: The order of columns and rows; what is not named comes after.
_ORDER: Final = (
    "none",
    "irs",
    "gossip",
    "probabilistic",
    "fwa",
    "flooding",
    "tree",
    "centralised",
    "every-pull",
    "ucb",
)
_FAULTS: Final = {
    "loss": Faults(loss=0.1),
    "outages": Faults(outages=Outages(down=0.1, up=0.5)),
    "outages, no memory": Faults(outages=Outages(down=0.1, up=0.5, memory=False)),
    "delay": Faults(delay=1),
    "jitter": Faults(jitter=1.0),
    "corruption": Faults(corruption=Corruption("zero", 0.1)),
    "link_cap": Faults(link_cap=1),
    "liars": Faults(liars={0: "noise"}),
    "reward_delay": Faults(reward_delay=1),
}


_MEMORIES: Final = (Everything(), Discount(0.9), Window(2))


def support() -> None:
    """Print which engine runs which combination of protocol, rules, network and rewards, and what goes with them.

    What "compiled" is printed for runs on both engines, with the same results; the rest runs on the reference alone,
    and "-" stands for a protocol that does not work on such a network.
    The first table is for UCB, every pull sent and no faults. The second has every emission, policy, memory and fault,
    with continuous rewards: "compiled" if that holds with all protocols, and "partly" if with some. Memories are shown
    with UCB; it is the same with every policy that is compiled. "sums" are counts and sums, as `Growth` and trees send.

    Rewards that are *replayed* are those of a log, see `arms.Replay`. Those of *changing* arms follow another law in
    some rounds than in others, see `arms.ChangingLaw`: of Gaussian laws (and Uniform ones), of coins, and of others.

    Besides: an event log (`trace=True`), a policy that overrides `choose`, agents whose policies are of several kinds
    and, by the published rules, cumulative messages of agents that lose their memory need the reference. A user's own
    relay rule, index or emission runs compiled if it is a pure function that numba compiles.

    The third table has the algorithms (see `algorithms`), which all run on the reference: with what they work, and "-"
    where they refuse to run.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.support()  # doctest: +ELLIPSIS
    rules      network  rewards     none      irs       gossip    ...
    sound      static   continuous  compiled  compiled  compiled  ...
    """
    _print(support_table())
    print()
    _print(parts_table())
    print()
    _print(algorithms_table())


def support_table() -> list[dict[str, str]]:
    """The first table of `support`: rows of rules, network and rewards, with the engine that runs each protocol."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for key, run in _runs():
        row = rows.setdefault(key, dict(zip(("rules", "network", "rewards"), key, strict=True)))
        row[run.protocol.name] = _engine([run]) if _works(run.protocol, run.problem) else "-"
    return list(rows.values())


def parts_table() -> list[dict[str, str]]:
    """The second table: rows of emissions, policies and faults, with the engine that runs each by rules and network."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for key, where, runs in _part_runs():
        row = rows.setdefault(key, dict(zip(("part", "name"), key, strict=True)))
        row[where] = _engine(runs)
    return list(rows.values())


def algorithms_table() -> list[dict[str, str]]:
    """The third table: rows of algorithms, with what each of them works with."""
    [path, flickering], alike, gaussian = _networks().values(), [[0, 1]] * 3, [Gaussian(0.0, 1.0)] * 2
    usual = Problem(path, alike, gaussian)
    settings: dict[str, tuple[Problem, int, Faults | None]] = {
        "unequal arms": (Problem(path, [[0, 1], [0], [1]], gaussian), 1, None),
        "dynamic": (Problem(flickering, alike, gaussian), 1, None),
        "every": (usual, 2, None),
        **{fault: (usual, 1, faults) for fault, faults in _FAULTS.items()},
    }
    return [
        {"algorithm": one.name, **{name: "yes" if _runs_with(one, *given) else "-" for name, given in settings.items()}}
        for one in _instances(AnyProtocol)
        if one.delivery is Delivery.OWN
    ]


def _runs_with(protocol: AnyProtocol, problem: Problem, every: int, faults: Faults | None) -> bool:
    try:
        protocol.check_run(problem, [every] * problem.n_agents, faults)
    except InputError:
        return False
    return True


def _relays() -> list[Any]:
    """All protocols but algorithms, which have a table of their own, and but other names of these protocols."""
    return [one for one in _instances(AnyProtocol) if not registry.is_algorithm(type(one))]


def _print(rows: list[dict[str, str]]) -> None:
    print(as_text([list(rows[0]), *(list(row.values()) for row in rows)], left=None))


def _engine(runs: Sequence[Run]) -> str:
    """The engine that runs all of these."""
    from .compiled.packing import unsupported

    refused = [unsupported(run) is not None for run in runs]
    return "partly" if any(refused) and not all(refused) else "reference" if all(refused) else "compiled"


def _runs() -> Iterator[tuple[tuple[str, str, str], Run]]:
    """One small run of every combination."""
    laws: dict[str, Law] = {
        "continuous": Gaussian(0.0, 1.0),
        "Bernoulli": Bernoulli(0.5),
        "other discrete": Empirical([0.0, 1.0, 3.0]),
    }
    laws |= {
        "changing": Switching(laws["continuous"], 0.1, -1.0, 1.0),
        "changing Bernoulli": Switching(laws["Bernoulli"], 0.1, 0.0, 1.0),
        "changing, other": Piecewise({1: laws["other discrete"], 2: Empirical([1.0, 2.0, 3.0])}),
        "replayed": Replay([0.0, 1.0]),
    }
    for rules in RULE_SETS.values():
        for network_name, network in _networks().items():
            for law_name, law in laws.items():
                problem = Problem(network, [[0]] * 3, [law])
                for protocol in _relays():
                    yield (rules.name, network_name, law_name), _run(problem, rules, protocol)


def _part_runs() -> Iterator[tuple[tuple[str, str], str, list[Run]]]:
    """For every emission, policy and fault, and for every rule set and network, a run with each protocol."""
    problems = {name: Problem(network, [[0]] * 3, [Gaussian(0.0, 1.0)]) for name, network in _networks().items()}
    for rules in RULE_SETS.values():
        for name, problem in problems.items():
            where = f"{rules.name}, {name}"
            relays = [relay for relay in _relays() if _works(relay, problem)]
            for emission in _instances(Emission):
                sending = [replace(relay, emission=emission) for relay in relays if relay.takes_emission()]
                yield ("emission", emission.name), where, [_run(problem, rules, relay) for relay in sending]
            for policy in _instances(Policy):
                yield ("policy", policy.name), where, [_run(problem, rules, relay, policy) for relay in relays]
            for memory in _MEMORIES:
                fitting = [relay for relay in relays if memory.merges or relay.delivery is not Delivery.TREE]
                forgetful = UCB(memory=memory)
                yield ("memory", memory.name), where, [_run(problem, rules, relay, forgetful) for relay in fitting]
                if memory.forgets:
                    sums = [replace(relay, emission=Growth()) for relay in fitting if relay.takes_emission()]
                    key = "memory", f"{memory.name}, sums"
                    yield key, where, [_run(problem, rules, relay, forgetful) for relay in sums if relay.sends_messages]
            listening = UCB(first_pulls="unknown")
            yield ("first pulls", "unknown"), where, [_run(problem, rules, relay, listening) for relay in relays]
            for fault, faults in _FAULTS.items():
                yield ("fault", fault), where, [_run(problem, rules, relay, faults=faults) for relay in relays]


def _works(protocol: AnyProtocol, problem: Problem) -> bool:
    """Whether the protocol works on the problem's network."""
    try:
        protocol.check_network(not problem.is_dynamic)
    except InputError:
        return False
    return True


def _instances(base: type[Any]) -> list[Any]:
    """An instance of every shipped class that derives from a base, with a ttl of 2 where one is needed."""
    made = [kind(**({"ttl": 2} if needs_ttl(kind) else {})) for kind in registry.shipped(base)]
    return sorted(made, key=lambda one: _ORDER.index(one.name) if one.name in _ORDER else len(_ORDER))


def _networks() -> dict[str, Any]:
    path = Links.from_pairs(3, [(0, 1), (1, 2)])
    return {"static": path, "dynamic": EdgeMarkovian(path, 0.5, 0.5)}


def _run(
    problem: Problem, rules: Rules, protocol: AnyProtocol, policy: Policy | None = None, faults: Faults | None = None
) -> Run:
    return Run(
        problem=problem,
        protocol=protocol,
        policies=(policy or UCB(),) * problem.n_agents,
        rules=rules,
        horizon=1,
        replicates=1,
        seed=0,
        every=np.ones(problem.n_agents, dtype=np.int64),
        records=np.array([1]),
        faults=faults,
    )
