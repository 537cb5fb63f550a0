"""What would pass between the parts of a network that no single machine holds, if each part were on a machine.

Parts are cut by METIS where pymetis is installed, otherwise by a greedy rule: agents are taken breadth-first, each to
the part that holds most of its neighbours, less the fuller it is. What crosses a cut is counted by the engine itself,
link by link, in steady rounds; which parts need an observation at all is found by a search of its own.
"""

from __future__ import annotations

from collections import deque
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from setting import SEED
from tables import Column, Row, Section

import banditmesh as bm
from banditmesh.networks.csr import Links

Int32s = NDArray[np.int32]

METHOD = "METIS" if find_spec("pymetis") is not None else "greedy"
TTL = 4
#: Agents pull each of their 20 arms once, and then for this many rounds more, of which the last are counted.
N_FIRST, N_STEADY = 20, 10
N_COMMUNITY, N_SAMPLED = 300, 300


def measure(quick: bool = False) -> list[Row]:
    """How much of what is sent in a round goes from part to part, by how the network is cut."""
    large, small = (600, 300) if quick else (30_000, 3_000)
    rows = []
    for protocol, n_agents in ((bm.FwA(TTL), large), (bm.Flooding(TTL), small)):
        networks = {
            "er, mean degree 3": bm.networks.sparse_er(n_agents, 3.0, seed=SEED),
            "ba, two links": bm.networks.sparse_ba(n_agents, 2, SEED),
            "communities": communities(n_agents),
        }
        for name, network in networks.items():
            _, links = bm.networks.as_links(network)
            problem = bm.Problem.random(links, n_arms=50, per_agent=N_FIRST, seed=SEED)
            sent = sent_by_link(problem, protocol)
            senders = np.repeat(np.arange(n_agents), links.degrees)
            for how, n_parts in (("random", 8), (METHOD, 2), (METHOD, 8)):
                part_of = at_random(links, n_parts) if how == "random" else cut(links, n_parts)
                crosses = part_of[senders] != part_of[links.indices]
                crossing = float(sent[crosses].sum() / n_agents)
                row: Row = {"what": f"{protocol.name}, {name}, {n_agents:,}", "by": how, "parts": n_parts}
                row |= {"cut": float(crosses.mean()), "sent": float(sent.sum() / n_agents), "crossing": crossing}
                row |= {"bytes": protocol.n_bytes * crossing, "needed": needed(problem, protocol, part_of)}
                rows.append(row)
    return rows


def communities(n_agents: int) -> Links:
    """A synthetic network with hubs and communities: BA networks of 300, and for each 20 links one between any two."""
    rng = np.random.default_rng(SEED)
    pairs = []
    for begin in range(0, n_agents, N_COMMUNITY):
        _, links = bm.networks.as_links(bm.networks.sparse_ba(N_COMMUNITY, 2, begin))
        senders = np.repeat(np.arange(N_COMMUNITY), links.degrees)
        within = senders < links.indices
        pairs.append(begin + np.stack([senders[within], links.indices[within]], axis=1))
    across = rng.integers(0, n_agents, (sum(map(len, pairs)) // 20, 2))
    return Links.from_pairs(n_agents, np.concatenate([*pairs, across[across[:, 0] != across[:, 1]]]))


def sent_by_link(problem: bm.Problem, protocol: bm.Protocol) -> NDArray[np.float64]:
    """Transmissions a round on each directed link, in steady rounds."""
    horizon = N_FIRST + 2 * N_STEADY
    result = bm.simulate(
        problem,
        protocol,
        horizon=horizon,
        seed=SEED,
        engine="compiled",
        link_traffic=True,
        record_every=N_STEADY,
        progress=False,
    )
    assert result.link_traffic is not None
    return np.asarray(result.link_traffic[0, -1] / N_STEADY)


def needed(problem: bm.Problem, protocol: bm.Protocol, part_of: Int32s) -> float:
    """In how many parts other than its origin's an observation is learned, on average over some slots.

    So often it must cross at the least, if a part needs it once.
    """
    rng = np.random.default_rng(SEED)
    links = problem.network
    assert isinstance(links, Links)
    held = [set(problem.arm_indices[a:b].tolist()) for a, b in pairwise(problem.arm_offsets)]
    absorbs, total = isinstance(protocol, bm.FwA), 0
    for slot in rng.integers(0, len(problem.arm_indices), N_SAMPLED).tolist():
        origin, arm = int(problem.owners[slot]), int(problem.arm_indices[slot])
        seen, senders, parts = {origin}, [origin], set()
        for _ in range(TTL):
            receivers = {w for v in senders for w in links.indices[links.indptr[v] : links.indptr[v + 1]].tolist()}
            receivers -= seen
            seen |= receivers
            parts |= {int(part_of[w]) for w in receivers if arm in held[w]}
            senders = [w for w in receivers if not (absorbs and arm in held[w])]
        total += len(parts - {int(part_of[origin])})
    return total / N_SAMPLED


def at_random(links: Links, n_parts: int) -> Int32s:
    """Equal parts, whatever the links."""
    parts = np.arange(links.n_agents, dtype=np.int32) % n_parts
    return np.random.default_rng(SEED).permutation(parts)


def cut(links: Links, n_parts: int) -> Int32s:
    """Parts of about equal size with few links between them."""
    if METHOD == "METIS":
        import pymetis

        _, parts = pymetis.part_graph(n_parts, xadj=links.indptr.tolist(), adjncy=links.indices.tolist())
        return np.array(parts, dtype=np.int32)
    return greedy(links, n_parts)


def greedy(links: Links, n_parts: int) -> Int32s:
    """Parts by a greedy rule, breadth-first."""
    part_of = np.full(links.n_agents, -1, dtype=np.int32)
    most = 1.05 * links.n_agents / n_parts
    sizes = np.zeros(n_parts)
    waiting: deque[int] = deque()
    for first in range(links.n_agents):
        waiting.append(first)
        while waiting:
            v = waiting.popleft()
            if part_of[v] >= 0:
                continue
            neighbours = links.indices[links.indptr[v] : links.indptr[v + 1]]
            known = part_of[neighbours]
            score = (1.0 + np.bincount(known[known >= 0], minlength=n_parts)) * (1.0 - sizes / most)
            part_of[v] = np.argmax(score)
            sizes[part_of[v]] += 1
            waiting.extend(neighbours[known < 0].tolist())
    return part_of


SECTION = Section(
    name="cuts",
    title="Parts of one network",
    note="",
    columns=(
        Column("what", "protocol, network, agents"),
        Column("by", "cut"),
        Column("parts", "parts"),
        Column("cut", "links that cross", ".1%"),
        Column("sent", "transmissions a pull", ",.1f"),
        Column("crossing", "of them between parts", ",.2f"),
        Column("bytes", "bytes a pull", ",.0f"),
        Column("needed", "other parts that learn it", ".2f"),
    ),
    measure=measure,
)
