"""What docs/scaling.md rests on: cuts of networks, what crosses them, and scripts that run from end to end."""

import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def cuts():
    sys.path.insert(0, str(FOLDER))
    try:
        import cuts

        return cuts
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("n_parts", [2, 3])
def test_greedy_parts_hold_everyone_and_are_about_equal(cuts, n_parts):
    _, links = bm.networks.as_links(nx.barabasi_albert_graph(90, 2, seed=0))
    sizes = np.bincount(cuts.greedy(links, n_parts), minlength=n_parts)
    assert sizes.sum() == 90
    assert sizes.max() <= 1.05 * 90 / n_parts + 1


def test_greedy_parts_follow_components(cuts):
    _, links = bm.networks.as_links(nx.disjoint_union(nx.complete_graph(20), nx.complete_graph(20)))
    parts = cuts.greedy(links, 2)
    senders = np.repeat(np.arange(40), links.degrees)
    assert (parts[senders] != parts[links.indices]).mean() < 0.1


def test_what_crosses_a_path_cut_in_the_middle_is_counted_by_hand(cuts):
    # 0 - 1 | 2 - 3, all with all arms: a flood with a ttl of 4 crosses the middle once; absorbed, it stays at hop 1.
    arms = [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(20)]
    problem = bm.Problem(nx.path_graph(4), [list(range(20))] * 4, arms)
    part_of = np.array([0, 0, 1, 1], dtype=np.int32)
    links = problem.network
    crosses = part_of[np.repeat(np.arange(4), links.degrees)] != part_of[links.indices]
    flooded, absorbed = (cuts.sent_by_link(problem, protocol) for protocol in (bm.Flooding(4), bm.FwA(4)))
    assert flooded[crosses].sum() == 4
    assert absorbed[crosses].sum() == 2
    assert cuts.needed(problem, bm.Flooding(4), part_of) == 1.0
    # Of agents 1 and 2 alone.
    assert 0.35 < cuts.needed(problem, bm.FwA(4), part_of) < 0.65


@pytest.mark.slow
def test_every_table_is_printed():
    command = [sys.executable, FOLDER / "scaling.py", "model", "threads", "workers", "cuts", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("load ") == 4
    assert "ns a pull: " in done.stdout
