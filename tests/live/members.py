"""What tests of members share: making them, moving statistics between them, and counting rewards at once."""

import random

from msgspec.structs import astuple

import banditmesh as bm
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.member import ArmSpec, Member, Observation
from banditmesh.live.statistics import Statistic

ALL = 10**9


def make(node="n", arms=("red", "blue"), protocol=None, *, epoch=1, now=0.0, links=(), begins=True, **settings):
    """A member that has begun its life, with links up to these neighbours."""
    specs = [arm if isinstance(arm, ArmSpec) else ArmSpec(arm, sigma=1.0) for arm in arms]
    settings.setdefault("rng", random.Random(0))
    bandit = {key: settings.pop(key) for key in list(settings) if key in BanditSpec.__struct_fields__}
    bandits = [BanditSpec(name="default", arms=specs, **bandit), *settings.pop("bandits", ())]
    protocol = bm.FwA(4) if protocol is None else protocol
    member = Member("mesh", node, bandits, protocol, **settings)
    if begins:
        member.committed(member.begin(epoch, now))
    for peer in links:
        member.link_up(peer)
    return member


def observe(member, *observations, now=0.0):
    """Count observations at once; each is an `Observation` or (arm, reward). Their answers."""
    ready = [one if isinstance(one, Observation) else Observation(one[1], arm=one[0]) for one in observations]
    commit, answers = member.plan(ready, now)
    member.committed(commit)
    return answers


def taken(member, peer):
    """All that waits for a neighbour, as it comes out at the other end; up to the ttl if nothing follows."""
    return [astuple(one)[: None if one.weight else 6] for one in member.take(peer, ALL)]


def hear(member, peer, *statistics):
    """Let statistics come from a neighbour, and enter the estimates."""
    member.hear([Statistic(*one) for one in statistics], peer)
    member.settle()


def known(member):
    """By arm: number and sum of all observations that the member knows of."""
    arms = member.snapshot().arms
    return {one.name: (one.own_count + one.heard_count, one.mean) for one in arms}


def counted(member, *names):
    """Some counters."""
    return tuple(member.counters[name] for name in names)
