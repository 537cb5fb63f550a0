"""What worker processes need, imported once in the process that they are forked from."""

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
    "problem",
    "reading",
    "simulation",
    "studies",
]
