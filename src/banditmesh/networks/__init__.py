"""Networks of agents: generators, files, arrays for engines, and networks that change from round to round."""

from .csr import Links, as_links, from_networkx, from_sparse
from .sparse import sparse_ba, sparse_er
from .static import (
    ba,
    complete,
    er,
    first_connected,
    grid,
    path,
    random_geometric,
    random_regular,
    ring,
    sbm,
    star,
    unweighted,
    watts_strogatz,
)

__all__ = [
    "Links",
    "as_links",
    "ba",
    "complete",
    "er",
    "first_connected",
    "from_networkx",
    "from_sparse",
    "grid",
    "path",
    "random_geometric",
    "random_regular",
    "ring",
    "sbm",
    "sparse_ba",
    "sparse_er",
    "star",
    "unweighted",
    "watts_strogatz",
]
