"""Bandit agents that learn together over any network.

Every public name is listed here and imported when it is first used, so that `import banditmesh` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import importer
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

#: By module: the names that it gives.
_GIVEN = {
    "animations": "Journey animate follow story",
    "comparisons.compare": "Comparison compare",
    "comparisons.configurations": "Frontier",
    "comparisons.frontier": "frontier",
    "errors": "BanditmeshError BanditmeshWarning InputError SpecError StudyError",
    "faults": "Corruption Faults Outages",
    "paper.reproduction": "reproduce",
    "policies": "Discount EpsilonGreedy Everything KLUCB MOSS Memory Policy ThompsonSampling UCB UCBV Window",
    "problem": "Problem",
    "protocols": (
        "ABSORB Centralised Contested Emission EveryPull Flooding FloodingWithAbsorption FwA Gossip Growth IRS "
        "InstantRewardSharing NoCooperation ProbabilisticFlooding Protocol RELAY STOP TreeAggregation"
    ),
    "sim.engine": "simulate",
    "sim.replay": "replayed",
    "sim.result": "Result",
    "sim.simulation": "Simulation",
    "sim.support": "support",
    "sim.tracefile": "read_trace",
    "studies.reading": "parse_spec read_spec",
    "studies.runner": "run_study",
    "studies.spec": "Spec",
    "studies.store": "Study",
    "theory.bounds": "Bounds bounds",
}
_HOMES = {name: module for module, names in _GIVEN.items() for name in names.split()}
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

__getattr__ = importer(__name__, _HOMES, _MODULES)


def __dir__() -> list[str]:
    return [*sorted(__all__), "__version__"]
