"""Small studies for the tests of runner, store and command line. The reference engine needs no compilation."""

import os
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "banditmesh"
#: Worker processes import what lies here, too, and the same banditmesh.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}

SPEC = """
name = "small"
horizon = 12
replicates = 2
engine = "reference"
record_every = 5
network = {name = "ring", n = 5}
arms = {n_arms = 4, per_agent = 2}
sweep.protocol = {name = ["none", "fwa", "gossip"], ttl = [1, 2]}
sweep.policy.alpha = [1.0, 3.0]
"""


def shards(folder):
    return sorted((Path(folder) / "shards").glob("*.parquet"))


def assert_same(one, two):
    """Two studies hold the same table and the same curves, value by value."""
    assert one.table().equals(two.table())
    assert one.curves().equals(two.curves())
