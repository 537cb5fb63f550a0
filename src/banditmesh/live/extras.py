"""What the extra `live` installs, imported when it is first needed."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingExtraError


def need(module: str) -> Any:
    """A module of the extra.

    Raises
    ------
    MissingExtraError
        It is not installed.

    Examples
    --------
    >>> need("cryptography.x509").__name__
    'cryptography.x509'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise MissingExtraError(
            f"the live mesh needs the package {package}; install it with: pip install 'banditmesh[live]'"
        ) from None
