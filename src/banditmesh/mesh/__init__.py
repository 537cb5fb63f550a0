"""A whole mesh of real nodes on one machine, and how it compares with the simulator.

local      a mesh of real nodes over mutual TLS on loopback, in a few processes, playing the arms of a `Problem`
seats      configuration, keys and state folder of each of its nodes
worker     what one of those processes does
verify     regret and traffic of such a mesh compared with those of the simulator
deployment   node files for every agent, and the mesh that they describe
status     what the sidecars of a running mesh say, as a table

Every public name is imported when it is first used: a process of a mesh, and `mesh status`, need no simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import importer

if TYPE_CHECKING:
    from .deployment import read_hosts, read_nodes, write_nodes
    from .local import MeshError, MeshRun, run_mesh
    from .verify import Verdict, verify_mesh

_HOMES = {
    "MeshError": "local",
    "MeshRun": "local",
    "Verdict": "verify",
    "read_hosts": "deployment",
    "read_nodes": "deployment",
    "run_mesh": "local",
    "verify_mesh": "verify",
    "write_nodes": "deployment",
}

__all__ = ["MeshError", "MeshRun", "Verdict", "read_hosts", "read_nodes", "run_mesh", "verify_mesh", "write_nodes"]

__getattr__ = importer(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
