"""Arms and arm sets as a caller gives them, checked, and brought into the numbers that a problem holds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import ArmError
from .base import Law
from .logs import RewardLog
from .matching import match
from .reading import as_law


def read_arms(
    arms: Sequence[Any] | Mapping[Hashable, Any],
) -> tuple[tuple[Hashable, ...], tuple[Law, ...]]:
    """The arms' ids and laws."""
    if isinstance(arms, Mapping):
        ids = tuple(arms)
        laws = tuple(as_law(law) for law in arms.values())
    elif isinstance(arms, Sequence) and not isinstance(arms, str):
        laws = tuple(as_law(law) for law in arms)
        ids = tuple(range(len(laws)))
    else:
        got = "none" if arms is None else type(arms).__name__
        remedy = "; read a file with arms.read_laws" if arms is None or isinstance(arms, str | PathLike) else ""
        raise ArmError(f"arms must be a sequence of laws or a mapping from arm to law, got {got}{remedy}")
    if not ids:
        raise ArmError("arms must hold at least one law, got none")
    return ids, laws


def match_given(agents: Sequence[Hashable], arm_sets: Any, arms: Any, unmatched: str) -> tuple[Any, ...]:
    """The user's data, matched with the agents: the agents kept, their arms, the laws, and what was left out."""
    if arms is None and isinstance(arm_sets, RewardLog):
        arms = arm_sets
    laws = arms.laws if isinstance(arms, RewardLog) else dict(zip(*read_arms(arms), strict=True))
    catalogue = arm_sets.catalogue if isinstance(arm_sets, RewardLog) else arm_sets
    return match(agents, catalogue, laws, unmatched)


def read_arm_sets(
    arm_sets: Any, agents: Sequence[Hashable], ids: tuple[Hashable, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which arms each agent has, as the arrays `arm_offsets` and `arm_indices` of a problem."""
    if isinstance(arm_sets, np.ndarray):
        return _read_arm_array(arm_sets, len(agents), ids)
    if isinstance(arm_sets, Mapping):
        known = set(agents)
        unknown = [name for name in arm_sets if name not in known]
        if unknown:
            raise ArmError(f"arm_sets must name agents of the network, got {unknown[0]!r}, which is not in it")
        missing = [name for name in agents if name not in arm_sets]
        if missing:
            raise ArmError(f"arm_sets must give every agent its arms, got none for agent {missing[0]!r}")
        arm_sets = [arm_sets[name] for name in agents]
    elif not isinstance(arm_sets, Sequence) or isinstance(arm_sets, str):
        remedy = "; read a file with arms.read_catalogue" if isinstance(arm_sets, str | PathLike) else ""
        raise ArmError(f"arm_sets must be a sequence or a mapping, got {type(arm_sets).__name__}{remedy}")
    if len(arm_sets) != len(agents):
        raise ArmError(
            f"arm_sets must have one entry for each of the {len(agents)} agents, got {len(arm_sets)} entries"
        )
    number = {arm: k for k, arm in enumerate(ids)}
    indices: list[int] = []
    offsets = [0]
    for agent, arm_set in zip(agents, arm_sets, strict=True):
        indices += _read_arm_set(arm_set, agent, number)
        offsets.append(len(indices))
    return np.array(offsets, dtype=np.int64), np.array(indices, dtype=np.int32)


def _read_arm_set(arm_set: Any, agent: Hashable, number: dict[Hashable, int]) -> list[int]:
    if isinstance(arm_set, str) or not isinstance(arm_set, Iterable):
        raise ArmError(f"the arm set of agent {agent!r} must be a list of arms, got {checks.shown(arm_set)}")
    given = list(arm_set)
    found: list[int] = []
    for arm in given:
        if not checks.is_hashable(arm) or arm not in number:
            raise ArmError(
                f"the arm set of agent {agent!r} must hold known arms, got {checks.shown(arm)}; give its law in arms"
            )
        found.append(number[arm])
    if not found:
        raise ArmError(f"the arm set of agent {agent!r} must hold at least one arm, got an empty one")
    if len(set(found)) < len(found):
        twice = next(arm for arm in given if found.count(number[arm]) > 1)
        raise ArmError(f"the arm set of agent {agent!r} must hold an arm once, got {twice!r} more than once")
    return sorted(found) if isinstance(arm_set, Set) else found


def _read_arm_array(
    arm_sets: NDArray[Any], n_agents: int, ids: tuple[Hashable, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    checks.unmasked("arm_sets", arm_sets)
    if arm_sets.ndim != 2 or arm_sets.shape[0] != n_agents or not np.issubdtype(arm_sets.dtype, np.integer):
        raise ArmError(
            f"an arm_sets array must be of integers with shape ({n_agents}, arms per agent), "
            f"got {arm_sets.dtype} with shape {arm_sets.shape}"
        )
    n_arms, per_agent = len(ids), arm_sets.shape[1]
    if ids != tuple(range(n_arms)):
        raise ArmError("an arm_sets array needs arms 0 to K-1, got named arms; give the arm sets as lists")
    if per_agent == 0:
        raise ArmError("the arm set of every agent must hold at least one arm, got empty ones")
    outside = np.argwhere((arm_sets < 0) | (arm_sets >= n_arms))
    if outside.size:
        agent, column = outside[0]
        raise ArmError(
            f"the arm set of agent {agent} must hold known arms, got {arm_sets[agent, column]}; give its law in arms"
        )
    ordered = np.sort(arm_sets, axis=1)
    repeated = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if repeated.size:
        agent, column = repeated[0]
        raise ArmError(
            f"the arm set of agent {agent} must hold an arm once, got {ordered[agent, column]} more than once"
        )
    offsets = np.arange(n_agents + 1, dtype=np.int64) * per_agent
    return offsets, np.ascontiguousarray(arm_sets, dtype=np.int32).reshape(-1).copy()
