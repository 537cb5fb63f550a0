"""Protocols say how messages travel. `base` is the contract; every other module is one family of protocols."""

from .absorption import FloodingWithAbsorption
from .base import AnyProtocol, Delivery, Facts, Protocol
from .emission import Contested, Emission, EveryPull, Growth
from .extremes import Centralised, NoCooperation
from .flooding import Flooding, InstantRewardSharing, ProbabilisticFlooding
from .gossip import Gossip
from .relaying import ABSORB, RELAY, STOP
from .tree import TreeAggregation

FwA = FloodingWithAbsorption
IRS = InstantRewardSharing

__all__ = [
    "ABSORB",
    "IRS",
    "RELAY",
    "STOP",
    "AnyProtocol",
    "Centralised",
    "Contested",
    "Delivery",
    "Emission",
    "EveryPull",
    "Facts",
    "Flooding",
    "FloodingWithAbsorption",
    "FwA",
    "Gossip",
    "Growth",
    "InstantRewardSharing",
    "NoCooperation",
    "ProbabilisticFlooding",
    "Protocol",
    "TreeAggregation",
]
