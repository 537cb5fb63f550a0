"""The protocols, policies and emissions that the package ships: searched for here, and nowhere else.

Rules kept here: a class is shipped if a module of its base's package defines it and gives it a short name of its own.
So a new file in `protocols/` or `policies/` is known to specs, to the command line, to `support` and to the checks of
`testing` at once. Classes come in the order in which their package exports them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any


def shipped(base: type[Any]) -> list[type[Any]]:
    """All classes of the package that derive from `Protocol`, `Policy` or `Emission`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> [kind.__name__ for kind in shipped(bm.Emission)]
    ['Contested', 'EveryPull', 'Growth']
    """
    package = importlib.import_module(base.__module__.rpartition(".")[0])
    known = _classes(package.__name__, tuple(package.__path__))
    return [kind for kind in known if issubclass(kind, base) and kind is not base]


def by_name(base: type[Any]) -> dict[str, type[Any]]:
    """The same classes by their short names.

    Examples
    --------
    >>> import banditmesh as bm
    >>> by_name(bm.Emission)["growth"] is bm.Growth
    True
    """
    return {kind.name: kind for kind in shipped(base)}


@cache
def _classes(package: str, path: tuple[str, ...]) -> tuple[type[Any], ...]:
    """All classes with a short name of a package's modules: first those that it exports, in that order."""
    exports = importlib.import_module(package)
    order = [getattr(exports, name) for name in exports.__all__]
    found: dict[type[Any], int] = {}
    for info in pkgutil.iter_modules(path, f"{package}."):
        for kind in vars(importlib.import_module(info.name)).values():
            if isinstance(kind, type) and kind.__module__ == info.name and "name" in vars(kind):
                found[kind] = order.index(kind) if kind in order else len(order)
    return tuple(sorted(found, key=lambda kind: found[kind]))
