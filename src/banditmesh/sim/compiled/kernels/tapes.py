"""Rewards of a chunk of rounds in advance, for laws that only Python can draw from."""

from __future__ import annotations

from .compiling import kernel
from .layout import FIRST_ROUND, ZERO, Agents, Floats, Int64s, Keys
from .scalars import law_quantile, uniform
from .stopping import is_set


@kernel
def draw_tape(
    first: int,
    agents: Agents,
    law_a: Floats,
    law_b: Floats,
    keys: Keys,
    stop: Int64s,
    uniforms: Floats,
    tape: Floats,
) -> None:
    """Draw every agent's uniform number of every round, and what each of its arms would pay if its law has a code.

    Laws are by round, or have a single row for all.
    """
    for step in range(len(uniforms)):
        row = step if len(law_a) > 1 else 0
        for v in range(len(agents.every)):
            if is_set(stop):
                return
            u = uniform(keys.draws[0], keys.draws[1], v, first + step, ZERO, ZERO)
            uniforms[step, v] = u
            for slot in range(agents.offsets[v], agents.offsets[v + 1]):
                arm = agents.arms[slot]
                tape[step, slot] = law_quantile(agents.law_code[arm], law_a[row, arm], law_b[row, arm], u)


@kernel
def draw_uniforms(k0: int, k1: int, first: int, every: Int64s, uniforms: Floats) -> None:
    """Draw the numbers of the rounds in which each agent pulls, one agent a row; `first` is that of the first row."""
    for row in range(len(uniforms)):
        t = FIRST_ROUND
        for place in range(-(-uniforms.shape[1] // every[first + row])):
            uniforms[row, place] = uniform(k0, k1, first + row, t, ZERO, ZERO)
            t += every[first + row]
