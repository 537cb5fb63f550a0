"""Nodes to be measured: their keys, their configuration, and statistics for them to hear."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import banditmesh as bm
from banditmesh.live import ArmSpec, NodeConfig
from banditmesh.live.statistics import Statistic
from banditmesh.live.transport import keys
from banditmesh.live.transport.identity import KeyFiles

MESH = "bench"
ARMS = tuple(f"arm {number}" for number in range(20))
FOREIGN = tuple(f"foreign {number}" for number in range(20))


class Grounds:
    """A folder with an authority, and configurations of nodes in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys.init(folder / "authority", MESH)

    def keys(self, name: str) -> KeyFiles:
        """A new certificate for that node."""
        return keys.issue(self.folder / "authority", name, self.folder / "keys", force=True)

    def config(self, name: str, arms: Sequence[str] = ARMS, **settings: Any) -> NodeConfig:
        """A node with keys that listens on a port of the system's choice."""
        return NodeConfig(
            mesh=MESH,
            node=name,
            arms=[ArmSpec(arm, law="gaussian", sigma=1.0) for arm in arms],
            protocol=bm.FwA(4, emission=bm.Growth(0.25)),
            listen="127.0.0.1:0",
            accept="members",
            state=self.folder / "state" / name,
            keys=self.keys(name),
            **settings,
        )


@contextmanager
def grounds() -> Iterator[Grounds]:
    """Grounds in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="banditmesh-bench-") as folder:
        yield Grounds(Path(folder))


def statistics(n_keys: int, count: int = 1, first: int = 0) -> list[Statistic]:
    """Counts and sums of `n_keys` keys from a first one on, from many origins; half of the arms are `ARMS`."""
    arms = [arm for pair in zip(ARMS, FOREIGN, strict=True) for arm in pair]
    return [
        Statistic(f"node {number // len(arms)}", 1 << 63, arms[number % len(arms)], count, 0.5 * count, 3)
        for number in range(first, first + n_keys)
    ]


async def until(is_so: Callable[[], bool], what: str, within: float = 60.0) -> None:
    """Wait for something that must come about."""
    try:
        async with asyncio.timeout(within):
            while not is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise RuntimeError(f"{what} within {within:g} s, but that did not happen") from None


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
