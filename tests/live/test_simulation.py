"""The real node code on simulated time, links and disks: whatever happens, the promises hold.

One seed is one life of a mesh. A seed that fails prints the command that runs it again.
"""

import logging
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from oracle import Violation
from simulated import run
from worlds import World


def live_through(seed):
    """One run; a failure says how to repeat it."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        world = World(seed, folder)
        run(world.run())
        return world.seen
    except Exception as error:
        raise Violation(f"seed {seed} fails; run it again with: python tests/live/test_simulation.py {seed}") from error
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    logging.disable()
    for one in sys.argv[1:]:
        first, _, last = one.partition("-")
        for number in range(int(first), int(last or first) + 1):
            print(number, dict(live_through(number)))
