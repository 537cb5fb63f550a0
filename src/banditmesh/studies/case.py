"""A spec that describes one problem: what `compare`, `bounds` and `frontier` take a spec file for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import InputError, SpecError
from ..faults import Faults
from ..lookup import own
from ..policies import UCB, Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..settings.parts import build_policy, build_protocol, read_faults
from ..settings.problems import build_problem, read_files
from .spec import Spec

#: What a spec for one problem may sweep over: how messages travel, and how arms are chosen.
_TRAVEL: Final = ("protocol", "emission")
_CHOOSE: Final = ("policy", "memory")


@dataclass(frozen=True)
class Case:
    """One problem, the protocols and policies to put side by side on it, and how long to simulate.

    Attributes
    ----------
    network : str
        A short name for output.
    policies : tuple of Policy
        Each protocol runs with each of these.
    """

    network: str
    problem: Problem
    protocols: tuple[AnyProtocol, ...]
    policies: tuple[Policy, ...]
    horizon: int
    replicates: int
    seed: int
    rules: str
    faults: Faults | None = None

    @property
    def policy(self) -> Policy | None:
        """The policy, if there is only one."""
        return self.policies[0] if len(self.policies) == 1 else None

    @property
    def settings(self) -> dict[str, Any]:
        """What `compare` and `frontier` are given besides problem and protocols."""
        names = ("policy", "horizon", "replicates", "seed", "rules", "faults")
        several = {} if self.policy else {"policies": self.policies}
        return {name: getattr(self, name) for name in names} | several

    def alpha(self, remedy: str) -> float:
        """UCB's parameter, which bounds are worked out from; they are for agents that forget nothing."""
        policy = self.policy
        if not isinstance(policy, UCB) or policy.memory.forgets:
            got = f"{len(self.policies)} policies" if policy is None else repr(policy)
            raise InputError(f"bounds are for the policy UCB that forgets nothing, got {got}; {remedy}")
        return policy.alpha


def case_of(spec: Spec) -> Case:
    """The case that a spec describes; its sweep may go over protocols, emissions, policies and memories only.

    Examples
    --------
    >>> import banditmesh as bm
    >>> case = case_of(bm.parse_spec('sweep.protocol.name = ["irs", "fwa"]'))
    >>> case.problem, [protocol.name for protocol in case.protocols]
    (Problem(100 agents, 153 links, 50 arms, 20 per agent), ['irs', 'fwa'])
    """
    for key in spec.grid:
        if key.partition(".")[0] not in (*_TRAVEL, *_CHOOSE):
            raise SpecError(
                f"a spec for one problem may sweep over protocol, emission, policy and memory only, got sweep.{key}; "
                "use `banditmesh run` for other sweeps"
            )
    if spec.settings.trim:
        raise SpecError(f"a spec for one problem cannot have trim, got {spec.settings.trim}; use `banditmesh run`")
    points = [point.settings for point in spec.points()]
    first = points[0]
    return Case(
        network=first["network"].get("path", own.plain(first["network"]["name"])),
        problem=build_problem(first, read_files(spec.files())),
        # Every protocol meets every policy.
        protocols=tuple(build_protocol(point) for point in points if _alike(point, first, _CHOOSE)),
        policies=tuple(build_policy(point) for point in points if _alike(point, first, _TRAVEL)),
        horizon=first["horizon"],
        replicates=spec.settings.replicates,
        seed=spec.settings.seed,
        rules=first["rules"],
        # Not the first point's, which lacks what its protocol has no use for.
        faults=read_faults(spec.settings.faults).effective(),
    )


def _alike(point: Mapping[str, Any], other: Mapping[str, Any], tables: tuple[str, ...]) -> bool:
    return all(point.get(table) == other.get(table) for table in tables)
