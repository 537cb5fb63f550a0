"""Agents that hear single observations of others, next to the notes of their algorithm.

An observation travels as a `Message`, as it does in protocols, so that faults and event logs know it for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core import Copy, Message, Receipt
from ..errors import InputError
from .base import Actor


class Hearer(Actor):
    """An actor that also hears observations.

    Attributes
    ----------
    estimates : Estimates
        What the agent itself has observed and what it has heard, by position in its arm set.
    """

    #: How many hops an observation may have left when it comes.
    most_hops = 1

    def observation(self, position: int, reward: float, life: int = 0) -> Message:
        """The message of a pull in this round."""
        now = self.place.new_id()
        return Message(self.name, now, self.arms.names[position], 1, reward, life, self.recall.round)

    def hear_pull(self, message: Message, ttl: int, sender: Any) -> Receipt:
        """What becomes of an observation that came."""
        raise InputError(f"{type(self).__name__} must override hear_pull(), got the one of Hearer, which hears nothing")

    def receive(self, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Take a note, or an observation that some agent may have made."""
        message, ttl = copy if isinstance(copy, tuple) and len(copy) == 2 else (None, None)
        is_sound = isinstance(message, Message) and message.n_pulls == 1 and math.isfinite(message.total)
        if not (is_sound and type(ttl) is int and 1 <= ttl <= self.most_hops):
            return super().receive(copy, sender, degree)
        receipt = self.hear_pull(message, ttl, sender)
        self._n_learned += receipt.heard
        return receipt

    def highest(self, positions: Sequence[int], index: Callable[[int], float]) -> int:
        """The position with the highest index, or one of which nothing is known; the first of equals."""
        count = self.estimates.count
        return max(positions, key=lambda position: index(position) if count[position] else math.inf)
