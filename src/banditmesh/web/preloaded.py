"""What worker processes need, imported once in the process that they are forked from.

The packages among it would otherwise be imported by each worker when it first needs them, which takes longer than many
a run.
"""

import networkx
import pandas
import scipy.sparse.csgraph
import scipy.sparse.linalg

from .. import animations, comparisons, problem, studies
from ..comparisons import compare, frontier
from ..sim import engine, simulation
from ..sim.compiled import engine as compiled
from ..studies import case, reading

__all__ = [
    "animations",
    "case",
    "compare",
    "comparisons",
    "compiled",
    "engine",
    "frontier",
    "networkx",
    "pandas",
    "problem",
    "reading",
    "scipy",
    "simulation",
    "studies",
]
