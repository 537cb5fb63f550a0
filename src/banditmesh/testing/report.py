"""The report of a check that found nothing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """What was checked.

    Attributes
    ----------
    subject : str
        What was checked: "protocol 'fwa'", say.
    checks : list of str
        What holds, in the order in which it was checked.
    n_pairs : int
        How many runs gave the same result on both engines, bit for bit.
    reference_only : list of str
        Why the compiled engine did not run some of them; empty if it ran all.

    Examples
    --------
    >>> import banditmesh as bm
    >>> report = bm.testing.check_emission(bm.Contested(), compiled=False)
    >>> report.checks[0]
    'is a frozen value'
    """

    subject: str
    checks: list[str] = field(default_factory=list)
    n_pairs: int = 0
    reference_only: list[str] = field(default_factory=list)

    def holds(self, words: str, check: Callable[..., object], *arguments: Any) -> None:
        """Check something, and note in these words that it holds."""
        check(*arguments)
        self.checks.append(words)

    def __str__(self) -> str:
        engines = f"{self.n_pairs} runs equal on both engines"
        if self.reference_only:
            engines += f"; reference only: {'; '.join(self.reference_only)}"
        return f"{self.subject}: {len(self.checks)} checks hold, {engines}"
