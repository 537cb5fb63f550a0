"""A network file: what it may say of weights, and how what was read from it is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...checks import callback, choice
from ...data_files import MAX_BYTES, MAX_TEXT, AnyPath, DataFile, ReadingCallback, one_line
from ...errors import FileError, InputError
from ..csr import as_links
from ..matrices import entries

__all__ = ["MAX_BYTES", "MAX_TEXT", "AnyPath", "NetworkFile", "ReadingCallback", "one_line"]


class NetworkFile(DataFile):
    """A file that describes a network.

    Parameters
    ----------
    path, max_bytes
        As in `DataFile`.
    weights : str
        "refuse" weights other than 1, or "ignore" all of them.
    progress : callable, optional
        Called while lines are read, with how many bytes are done and how many there are.
    """

    kind = "network"

    def __init__(
        self,
        path: AnyPath,
        max_bytes: int | None = None,
        weights: str = "refuse",
        progress: ReadingCallback | None = None,
    ) -> None:
        self.ignores_weights = choice("weights", weights, ("refuse", "ignore")) == "ignore"
        callback("progress", progress)
        super().__init__(path, max_bytes)
        self.progress = progress

    def checked(self, network: Any) -> Any:
        """A network that was read, without its weights if they are ignored, if agents can use it."""
        try:
            if self.ignores_weights:
                network = _without_weights(network)
            as_links(network)
        except InputError as error:
            raise FileError(f"{self.path}: {error}") from None
        return network


def _without_weights(network: Any) -> Any:
    """A graph with all its attributes but weights, or a matrix with a one wherever it has another entry than zero."""
    if hasattr(network, "edges"):
        for _, _, attributes in network.edges(data=True):
            attributes.pop("weight", None)
        return network
    from scipy.sparse import coo_array

    n, rows, columns, values = entries(network)
    codes = np.unique((rows * n + columns)[values != 0])
    return coo_array((np.ones(len(codes), dtype=np.int8), (codes // n, codes % n)), shape=(n, n)).tocsr()
