"""The seats of a local mesh: a configuration, keys and a state folder for every agent of a `Problem`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ..arms import BERNOULLI, GAUSSIAN, UNIFORM
from ..errors import InputError
from ..live.config import ApiConfig, NodeConfig
from ..live.names import check_name
from ..live.statistics import ArmSpec
from ..live.transport import keys
from ..live.transport.identity import KeyFiles
from ..networks.csr import Links
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from .worker import Seat

MESH: Final = "local"
#: A port of the system's choice.
ANY_PORT: Final = "127.0.0.1:0"
_LAWS: Final = {GAUSSIAN: "gaussian", BERNOULLI: "bernoulli", UNIFORM: "uniform"}


def make_seats(
    problem: Problem, protocol: AnyProtocol, policy: Policy, folder: Path, sidecars: Path | None = None
) -> list[Seat]:
    """One seat for each agent, in their order; keys and states go into the folder, sockets of sidecars into theirs."""
    network = problem.network
    assert isinstance(network, Links)
    nodes, arms = node_names("agent", problem.agents), node_names("arm", problem.arms)
    authority, issued = folder / "authority", folder / "keys"
    keys.init(authority, MESH)
    seats = []
    for agent, neighbours in enumerate(network.neighbour_lists()):
        keys.issue(authority, nodes[agent], issued)
        held = problem.arm_set(agent).tolist()
        config = NodeConfig(
            mesh=MESH,
            node=nodes[agent],
            arms=[arm_spec(problem, arms[arm], arm) for arm in held],
            listen=ANY_PORT,
            # A neighbour in another process may dial before this one has been told of it.
            accept="members",
            state=folder / "state" / f"{agent}",
            policy=policy,
            protocol=protocol,
            keys=KeyFiles.of(issued, nodes[agent]),
        )
        if sidecars is not None:
            config = msgspec.structs.replace(config, api=ApiConfig(listen=f"unix:{sidecars / str(agent)}"))
        laws = {arms[arm]: problem.laws[arm] for arm in held}
        seats.append(Seat(agent, config, [nodes[other] for other in neighbours], laws, sidecars is not None))
    return seats


def node_names(what: str, given: Sequence[Hashable]) -> list[str]:
    """Agents or arms as a live mesh calls them: by their names, as texts."""
    names = [check_name(what, str(name)) for name in given]
    if len(set(names)) < len(names):
        raise InputError(f"every {what} must have a different name as text, got two that are written alike")
    return names


def arm_spec(problem: Problem, name: str, arm: int) -> ArmSpec:
    """An arm of a problem as a node's configuration describes it."""
    sigma = float(problem.sigmas[arm])
    return ArmSpec(name, _LAWS.get(int(problem.law_codes[arm]), "other"), None if math.isnan(sigma) else sigma)
