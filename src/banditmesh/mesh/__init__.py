"""A whole mesh of real nodes on one machine, and how it compares with the simulator.

local      a mesh of real nodes over mutual TLS on loopback, in a few processes, playing the arms of a `Problem`
worker     what one of those processes does
verify     regret and traffic of such a mesh compared with those of the simulator
status     what the sidecars of a running mesh say, as a table
"""

from .local import MeshError, MeshRun, run_mesh
from .verify import Verdict, verify_mesh

__all__ = ["MeshError", "MeshRun", "Verdict", "run_mesh", "verify_mesh"]
