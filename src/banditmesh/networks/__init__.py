"""Networks of agents: generators, files, arrays for engines, and networks that change from round to round.

Importing this costs no more than numpy does; networkx and scipy are imported on first use.
"""

from .csr import Links, as_links, from_networkx, from_sparse
from .dynamic import (
    Churn,
    ContactTrace,
    DynamicNetwork,
    EdgeMarkovian,
    GraphSequence,
    LinkFailures,
    edge_markovian_step,
)
from .named import from_text
from .published import PAPER_NETWORKS, PAPER_WATCHED_LINKS, like_paper, paper
from .readers import read, read_adjacency, read_any, read_contact_trace, read_edge_list, read_gml, read_graphml
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
    "PAPER_NETWORKS",
    "PAPER_WATCHED_LINKS",
    "Churn",
    "ContactTrace",
    "DynamicNetwork",
    "EdgeMarkovian",
    "GraphSequence",
    "LinkFailures",
    "Links",
    "as_links",
    "ba",
    "complete",
    "edge_markovian_step",
    "er",
    "first_connected",
    "from_networkx",
    "from_sparse",
    "from_text",
    "grid",
    "like_paper",
    "paper",
    "path",
    "random_geometric",
    "random_regular",
    "read",
    "read_adjacency",
    "read_any",
    "read_contact_trace",
    "read_edge_list",
    "read_gml",
    "read_graphml",
    "ring",
    "sbm",
    "sparse_ba",
    "sparse_er",
    "star",
    "unweighted",
    "watts_strogatz",
]
