"""Bandit agents that learn together over any network.

Every public name is listed here and imported when it is first used, so that `import banditmesh` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import algorithms, arms, errors, networks, policies, protocols, suite, testing, theory
    from .animations import Journey, animate, follow, story
    from .comparisons.compare import Comparison, compare
    from .comparisons.configurations import Frontier
    from .comparisons.frontier import frontier
    from .errors import BanditmeshError, BanditmeshWarning, InputError, SpecError, StudyError
    from .faults import Corruption, Faults, Outages
    from .paper.reproduction import reproduce
    from .policies import (
        KLUCB,
        MOSS,
        UCB,
        UCBV,
        Discount,
        EpsilonGreedy,
        Everything,
        Memory,
        Policy,
        ThompsonSampling,
        Window,
    )
    from .problem import Problem
    from .protocols import (
        ABSORB,
        IRS,
        RELAY,
        STOP,
        Centralised,
        Contested,
        Emission,
        EveryPull,
        Flooding,
        FloodingWithAbsorption,
        FwA,
        Gossip,
        Growth,
        InstantRewardSharing,
        NoCooperation,
        ProbabilisticFlooding,
        Protocol,
        TreeAggregation,
    )
    from .sim.engine import simulate
    from .sim.replay import replayed
    from .sim.result import Result
    from .sim.support import support
    from .studies.reading import parse_spec, read_spec
    from .studies.runner import run_study
    from .studies.spec import Spec
    from .studies.store import Study
    from .theory.bounds import Bounds, bounds

_HOMES = {
    "ABSORB": "protocols",
    "BanditmeshError": "errors",
    "BanditmeshWarning": "errors",
    "Bounds": "theory.bounds",
    "Centralised": "protocols",
    "Comparison": "comparisons.compare",
    "Contested": "protocols",
    "Corruption": "faults",
    "Discount": "policies",
    "Emission": "protocols",
    "EpsilonGreedy": "policies",
    "EveryPull": "protocols",
    "Everything": "policies",
    "Faults": "faults",
    "Flooding": "protocols",
    "FloodingWithAbsorption": "protocols",
    "Frontier": "comparisons.configurations",
    "FwA": "protocols",
    "Gossip": "protocols",
    "Growth": "protocols",
    "IRS": "protocols",
    "InputError": "errors",
    "InstantRewardSharing": "protocols",
    "Journey": "animations",
    "KLUCB": "policies",
    "MOSS": "policies",
    "Memory": "policies",
    "NoCooperation": "protocols",
    "Outages": "faults",
    "Policy": "policies",
    "ProbabilisticFlooding": "protocols",
    "Problem": "problem",
    "Protocol": "protocols",
    "RELAY": "protocols",
    "Result": "sim.result",
    "STOP": "protocols",
    "Simulation": "sim.simulation",
    "Spec": "studies.spec",
    "SpecError": "errors",
    "Study": "studies.store",
    "StudyError": "errors",
    "ThompsonSampling": "policies",
    "TreeAggregation": "protocols",
    "UCB": "policies",
    "UCBV": "policies",
    "Window": "policies",
    "animate": "animations",
    "bounds": "theory.bounds",
    "compare": "comparisons.compare",
    "follow": "animations",
    "frontier": "comparisons.frontier",
    "parse_spec": "studies.reading",
    "read_spec": "studies.reading",
    "read_trace": "sim.tracefile",
    "replayed": "sim.replay",
    "reproduce": "paper.reproduction",
    "run_study": "studies.runner",
    "simulate": "sim.engine",
    "story": "animations",
    "support": "sim.support",
}
_MODULES = ("algorithms", "arms", "errors", "networks", "policies", "protocols", "suite", "testing", "theory")

__all__ = [
    "ABSORB",
    "IRS",
    "KLUCB",
    "MOSS",
    "RELAY",
    "STOP",
    "UCB",
    "UCBV",
    "BanditmeshError",
    "BanditmeshWarning",
    "Bounds",
    "Centralised",
    "Comparison",
    "Contested",
    "Corruption",
    "Discount",
    "Emission",
    "EpsilonGreedy",
    "EveryPull",
    "Everything",
    "Faults",
    "Flooding",
    "FloodingWithAbsorption",
    "Frontier",
    "FwA",
    "Gossip",
    "Growth",
    "InputError",
    "InstantRewardSharing",
    "Journey",
    "Memory",
    "NoCooperation",
    "Outages",
    "Policy",
    "ProbabilisticFlooding",
    "Problem",
    "Protocol",
    "Result",
    "Simulation",
    "Spec",
    "SpecError",
    "Study",
    "StudyError",
    "ThompsonSampling",
    "TreeAggregation",
    "Window",
    "algorithms",
    "animate",
    "arms",
    "bounds",
    "compare",
    "errors",
    "follow",
    "frontier",
    "networks",
    "parse_spec",
    "policies",
    "protocols",
    "read_spec",
    "read_trace",
    "replayed",
    "reproduce",
    "run_study",
    "simulate",
    "story",
    "suite",
    "support",
    "testing",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*sorted(__all__), "__version__"]
