"""The protocols, policies and emissions that the package ships: looked up here, and nowhere else.

Rules kept here: a class is shipped if a module of its base's package defines it and gives it its own short name; of
protocols, also if a module of `algorithms` does. So specs, the command line, `support` and the checks in `testing` know
a new file in `protocols/`, `algorithms/` or `policies/` at once. Classes come in the order in which their package
exports them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any, Final

#: The package of classes that derive from a base of another package, by that package's name.
_BESIDE: Final = {"protocols": "algorithms"}


def shipped(base: type[Any]) -> list[type[Any]]:
    """All classes of the package that derive from `Protocol`, `Policy` or `Emission`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> [kind.__name__ for kind in shipped(bm.Emission)]
    ['Contested', 'EveryPull', 'Growth']
    """
    home = base.__module__.rpartition(".")[0]
    root, _, name = home.rpartition(".")
    packages = [home, f"{root}.{_BESIDE[name]}"] if name in _BESIDE else [home]
    known = [kind for package in map(importlib.import_module, packages) for kind in _classes(*_place(package))]
    return [kind for kind in known if issubclass(kind, base) and kind is not base]


def _place(package: ModuleType) -> tuple[str, tuple[str, ...]]:
    return package.__name__, tuple(package.__path__)


def is_algorithm(kind: type[Any]) -> bool:
    """Whether a shipped class is one of `algorithms`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> is_algorithm(bm.algorithms.GosInE), is_algorithm(bm.Flooding)
    (True, False)
    """
    return ".algorithms." in kind.__module__


def by_name(base: type[Any]) -> dict[str, type[Any]]:
    """The same classes by their short names.

    Examples
    --------
    >>> import banditmesh as bm
    >>> by_name(bm.Emission)["growth"] is bm.Growth
    True
    """
    return {kind.name: kind for kind in shipped(base)}


def exported(base: type[Any], name: str) -> type[Any] | None:
    """The class of that short name, if the package exports it; nothing else is imported to find it.

    Examples
    --------
    >>> import banditmesh as bm
    >>> exported(bm.Policy, "ucb") is bm.UCB, exported(bm.protocols.AnyProtocol, "gosine")
    (True, None)
    """
    package = importlib.import_module(base.__module__.rpartition(".")[0])
    kinds = [getattr(package, one) for one in package.__all__]
    return next(
        (one for one in kinds if isinstance(one, type) and issubclass(one, base) and vars(one).get("name") == name),
        None,
    )


@cache
def _classes(package: str, path: tuple[str, ...]) -> tuple[type[Any], ...]:
    """All classes with a short name in a package's modules: first those that it exports, in that order."""
    exports = importlib.import_module(package)
    order = [getattr(exports, name) for name in exports.__all__]
    found: dict[type[Any], int] = {}
    for info in pkgutil.iter_modules(path, f"{package}."):
        for kind in vars(importlib.import_module(info.name)).values():
            if isinstance(kind, type) and kind.__module__ == info.name and "name" in vars(kind):
                found[kind] = order.index(kind) if kind in order else len(order)
    return tuple(sorted(found, key=lambda kind: found[kind]))
