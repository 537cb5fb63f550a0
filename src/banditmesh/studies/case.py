"""A spec that describes one problem: what `compare`, `bounds` and `frontier` take a spec file for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import SpecError
from ..faults import Faults
from ..lookup import own
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..settings.fault_tables import build_faults
from ..settings.problems import build_policy, build_problem, build_protocol, read_files
from .spec import Spec


@dataclass(frozen=True)
class Case:
    """One problem, the protocols to put side by side on it, and how long to simulate.

    Attributes
    ----------
    network : str
        A short name for output.
    """

    network: str
    problem: Problem
    protocols: tuple[AnyProtocol, ...]
    policy: Policy
    horizon: int
    replicates: int
    seed: int
    rules: str
    faults: Faults | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What `simulate` is given besides problem and protocol."""
        names = ("policy", "horizon", "replicates", "seed", "rules", "faults")
        return {name: getattr(self, name) for name in names}


def case_of(spec: Spec) -> Case:
    """The case that a spec describes; its sweep may go over protocols and emissions only.

    Examples
    --------
    >>> import banditmesh as bm
    >>> case = case_of(bm.parse_spec('sweep.protocol.name = ["irs", "fwa"]'))
    >>> case.problem, [protocol.name for protocol in case.protocols]
    (Problem(100 agents, 153 links, 50 arms, 20 per agent), ['irs', 'fwa'])
    """
    for key in spec.grid:
        if key.partition(".")[0] not in ("protocol", "emission"):
            raise SpecError(
                f"a spec for one problem may sweep over protocol and emission only, got sweep.{key}; "
                "use `banditmesh run` for other sweeps"
            )
    points = [point.settings for point in spec.points()]
    first = points[0]
    return Case(
        network=first["network"].get("path", own.plain(first["network"]["name"])),
        problem=build_problem(first, read_files(spec.files())),
        protocols=tuple(build_protocol(point) for point in points),
        policy=build_policy(first),
        horizon=first["horizon"],
        replicates=spec.settings.replicates,
        seed=spec.settings.seed,
        rules=first["rules"],
        # Not the first point's, which lacks what its protocol has no use for.
        faults=build_faults(spec.settings.faults),
    )
