"""Names of a package that are imported when they are first used, so that importing the package takes no time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def importer(package: str, homes: Mapping[str, str], modules: Collection[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    homes : mapping of str to str
        The module of the package that each name is imported from.
    modules : collection of str
        Modules of the package that are names of it, too.

    Examples
    --------
    >>> importer("banditmesh", {"InputError": "errors"})("InputError").__name__
    'InputError'
    """

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(importlib.import_module(f".{homes[name]}", package), name)
        elif name in modules:
            value = importlib.import_module(f".{name}", package)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get
