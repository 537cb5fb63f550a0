"""Loops over agents' arms, in steps of as many as a vector instruction takes.

What is left over takes as long, one by one, as several such steps. So a loop that only fills a workspace goes on to the
next full step: over arms of the next agent, whose numbers are then not read (another thread may be changing them). The
workspace has room for that.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .compiling import helper
from .layout import ONE

#: The most 64-bit numbers that processors take at a time.
LANES: Final = 8
#: How many slots a workspace has room for, unless an agent has more: few enough to stay in the fastest memory. No power
#: of two, by which all rows of a workspace would take the same places there.
_USUAL_ROOM: Final = 60 * LANES
_STEP: Any = np.uint64(LANES)


def room_for(n_arms: int) -> int:
    """How many slots a workspace has room for, if no agent has more arms than this."""
    return max(_USUAL_ROOM, -(-n_arms // LANES) * LANES)


@helper
def padded(first: np.uint64, n_slots: np.uint64, n_all: int) -> np.uint64:
    """How many slots from `first` on make full steps of `n_slots`; less if there are no more."""
    return min((n_slots + _STEP - ONE) // _STEP * _STEP, np.uint64(n_all) - first)
