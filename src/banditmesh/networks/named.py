"""Generators by name in one short text, as on the command line: `ring:12`, `grid:5x5`, `powerlaw:3000,3`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..errors import NetworkError
from . import static

if TYPE_CHECKING:
    import networkx as nx

#: By name; each takes numbers and, if it draws, a seed.
GENERATORS: Final[dict[str, Callable[..., Any]]] = {
    "er": static.er,
    "ba": static.ba,
    "powerlaw": static.ba,
    "watts_strogatz": static.watts_strogatz,
    "grid": static.grid,
    "path": static.path,
    "ring": static.ring,
    "star": static.star,
    "complete": static.complete,
    "random_regular": static.random_regular,
    "random_geometric": static.random_geometric,
}


def names_generator(text: str) -> bool:
    """Whether a text names a generator: `ring:12`, but not `links.txt` or a path with a colon in it."""
    return text.partition(":")[0] in GENERATORS and ":" in text


def from_text(text: str, seed: int = 0) -> nx.Graph:
    """The network that a generator makes, named by a text.

    Parameters
    ----------
    text : str
        The generator and its numbers, in the order of its parameters: `ring:12`, `grid:5x5`, `er:100,0.03`. `powerlaw`
        is `ba`.
    seed : int
        What the network depends on, if the generator draws.

    Examples
    --------
    >>> from_text("grid:2x3").number_of_edges()
    7
    >>> from_text("powerlaw:100,2", seed=2023).number_of_edges()
    196
    """
    if not isinstance(text, str):
        raise NetworkError(f"a network by generator must be a text as in 'ring:12', got {checks.shown(text)}")
    name, _, given = text.partition(":")
    generator = GENERATORS[checks.choice("the network's generator", name, GENERATORS)]
    wanted = [one for one in inspect.signature(generator).parameters.values() if one.name != "seed"]
    numbers = re.split("[,x]", given)
    if len(numbers) != len(wanted) or not all(map(str.strip, numbers)):
        words = ",".join(one.name.upper() for one in wanted)
        raise NetworkError(f"a network by generator must be written {name}:{words}, got {checks.shown(text)}")
    draws = {"seed": seed} if "seed" in inspect.signature(generator).parameters else {}
    return generator(*(checks.number_in("each value of a network by generator", one) for one in numbers), **draws)
