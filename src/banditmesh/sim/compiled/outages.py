"""Faults as the compiled engine reads them: a sliding window of rounds in which agents are up or down.

Which agents are up depends on draws alone, so it can be told ahead of them, as far as their messages live.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ...draws import LOSS, OUTAGE, Draws
from ..run import Run
from .crew import Stop
from .kernels.faults import outage_rows
from .kernels.layout import FaultRows
from .packing import no_faults

#: About how much memory the rounds that are laid out at once may take, in bytes.
WINDOW_BUDGET: Final = 2**22
#: About how many agents' rounds are drawn before anything else is looked at.
_AT_ONCE: Final = 2**20


class OutageWindow:
    """The faults of one replicate.

    Parameters
    ----------
    run : Run
    draws : Draws
    stop : Stop
    """

    def __init__(self, run: Run, draws: Draws, stop: Stop) -> None:
        self._stop = stop
        faults = run.faults
        self._draws = draws
        self._horizon = run.horizon
        self._loss = 0.0 if faults is None else faults.loss
        self._loss_key = draws.key(LOSS)
        self._outages = None if faults is None else faults.outages
        n_agents = 0 if self._outages is None else run.problem.n_agents
        # Row 0 is the round before the window. Before the first round all agents are up.
        self._before = 0
        self._rows = np.ones((1, n_agents), dtype=np.int8)
        self.longest_chunk = max(1, WINDOW_BUDGET // max(n_agents, 1))

    def window(self, first: int, last: int) -> FaultRows:
        """The rounds from `first` to `last`, or to the horizon if that is earlier."""
        if self._outages is None:
            return replace(no_faults(), loss=self._loss, loss_k0=self._loss_key[0], loss_k1=self._loss_key[1])
        self._slide(first - 1, min(last, self._horizon))
        up = self._rows[1:]
        comes_up = (up == 1) & (self._rows[:-1] == 0)
        if self._outages.memory:
            comes_up = np.zeros((len(up), 0), dtype=bool)
        starts = np.concatenate([[0], np.cumsum(comes_up.sum(axis=1))]).astype(np.int64)
        restarts = np.nonzero(comes_up)[1].astype(np.int32)
        return FaultRows(self._loss, *self._loss_key, first, np.ascontiguousarray(up), starts, restarts)

    def _slide(self, before: int, last: int) -> None:
        assert self._outages is not None
        rows = self._rows[before - self._before :]
        next_round = before + len(rows)
        more = np.empty((max(last - next_round + 1, 0), rows.shape[1]), dtype=np.int8)
        key, at_once, latest = self._draws.key(OUTAGE), max(1, _AT_ONCE // rows.shape[1]), rows[-1]
        for begin in range(0, len(more), at_once):
            self._stop.check()
            part = more[begin : begin + at_once]
            outage_rows(next_round + begin, self._outages.down, self._outages.up, *key, latest, part)
            latest = part[-1]
        self._before, self._rows = before, np.concatenate([rows, more])
