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


def live_through(seed, n_events=60, is_signed=False):
    """One run: what happened how often, and how long it took. A failure says how to repeat it."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        world = World(seed, folder, n_events, is_signed)
        run(world.run())
        return world.seen, world.ended_at
    except Exception as error:
        command = f"python tests/live/test_worlds.py {seed}:{n_events}{':signed' * is_signed}"
        raise Violation(f"seed {seed} fails; run it again with: {command}") from error
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_promises_hold_whatever_happens(first):
    for seed in range(first, first + 25):
        live_through(seed, n_events=40)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 100))
def test_promises_hold_whatever_happens_many_times(first):
    for seed in range(first, first + 100):
        live_through(seed)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_promises_hold_whatever_members_do_where_statistics_are_signed(first):
    for seed in range(first, first + 25):
        live_through(seed, n_events=25, is_signed=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 100))
def test_promises_hold_whatever_members_do_where_statistics_are_signed_many_times(first):
    for seed in range(first, first + 100):
        live_through(seed, is_signed=True)


def test_a_seed_decides_everything():
    assert live_through(5) == live_through(5)
    assert live_through(6, is_signed=True) == live_through(6, is_signed=True)


if __name__ == "__main__":
    logging.disable()
    # Each argument is a seed, or several, how much happens, and whether it is signed: 7, 7:40, 7-99:40:signed.
    for one in sys.argv[1:]:
        seeds, events, signed = (*one.split(":"), "", "")[:3]
        first, _, last = seeds.partition("-")
        for number in range(int(first), int(last or first) + 1):
            print(number, *live_through(number, int(events or 60), signed == "signed"))
