import os
import random
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from cases import gaussian_arms

PROTOCOLS = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(3),
    bm.ProbabilisticFlooding(3),
    bm.FwA(3),
    bm.Flooding(3),
    bm.Centralised(),
]
SETTINGS = {"horizon": 15, "replicates": 2, "seed": 11, "link_traffic": True}

# Run in a process of its own: other imports before ours, another order of building, a hash seed of its own.
SCRIPT = """
{imports}
import banditmesh as bm
start = networkx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
network = bm.networks.EdgeMarkovian(start, 0.2, 0.3)
arms = {{name: bm.arms.Gaussian(0.2 * k, 1.0) for k, name in enumerate(["x", "y", "z"])}}
problem = bm.Problem(network, [{{"x", "y"}}, {{"z", "y"}}, {{"x", "z", "y"}}, {{"x"}}, {{"z"}}], arms)
for protocol in (bm.Gossip(3), bm.ProbabilisticFlooding(3), bm.FwA(3)):
    for engine in ("reference", "compiled"):
        bm.simulate(problem, protocol, horizon=30, replicates=2, seed=4, engine=engine, link_traffic=True).save(
            r"{folder}/" + protocol.name + "-" + engine + ".npz"
        )
"""


def run_script(folder, imports, hash_seed):
    folder.mkdir()
    script = SCRIPT.format(imports=imports, folder=folder)
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=600)
    return {path.name: bm.Result.load(path) for path in sorted(folder.iterdir())}


def test_same_seed_gives_the_same_result_in_any_process_after_any_imports(tmp_path):
    one = run_script(tmp_path / "one", "import networkx", "1")
    other_imports = "import banditmesh.cli, scipy.stats, random, numpy, networkx; random.seed(5); numpy.random.seed(6)"
    two = run_script(tmp_path / "two", other_imports, "2")
    names, engines = ("fwa", "gossip", "probabilistic"), ("compiled", "reference")
    kinds = [f"{name}-{engine}.npz" for name in names for engine in engines]
    assert sorted(one) == sorted(kinds)
    assert one == two


def small_problem(dynamic):
    graph = bm.networks.er(12, 0.3, seed=1)
    network = bm.networks.EdgeMarkovian(graph, 0.1, 0.2) if dynamic else graph
    return bm.Problem.random(network, n_arms=6, per_agent=3, seed=0)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_same_seed_gives_the_same_result_and_another_one_another(dynamic, protocol, engine, rules):
    settings = {"horizon": 40, "rules": rules, "engine": engine, "link_traffic": True}
    one = bm.simulate(small_problem(dynamic), protocol, seed=7, **settings)
    assert one == bm.simulate(small_problem(dynamic), protocol, seed=7, **settings)
    other = bm.simulate(small_problem(dynamic), protocol, seed=8, **settings)
    assert one.regret.tolist() != other.regret.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_replicate_is_the_same_whatever_the_number_of_replicates(protocol, engine, rules):
    network = bm.networks.EdgeMarkovian(nx.path_graph(6), 0.2, 0.3)
    problem = bm.Problem(network, [[v % 3, 3] for v in range(6)], gaussian_arms(4))
    few = bm.simulate(problem, protocol, horizon=12, replicates=2, seed=9, rules=rules, engine=engine)
    many = bm.simulate(problem, protocol, horizon=12, replicates=5, seed=9, rules=rules, engine=engine)
    np.testing.assert_array_equal(many.regret[:2], few.regret)
    np.testing.assert_array_equal(many.transmissions[:2], few.transmissions)
    np.testing.assert_array_equal(many.pulls[:2], few.pulls)
    for name in few.traffic:
        np.testing.assert_array_equal(many.traffic[name][:2], few.traffic[name])


@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.FwA(2), bm.TreeAggregation()])
def test_a_range_gives_some_of_the_replicates(engine, protocol):
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    whole, some = (
        bm.simulate(problem, protocol, engine=engine, horizon=20, replicates=replicates, seed=3)
        for replicates in (4, range(1, 4))
    )
    assert np.array_equal(some.regret, whole.regret[1:])
    assert np.array_equal(some.pulls, whole.pulls[1:])
    assert (some.replicates, some.settings["first_replicate"]) == (3, 1)


@pytest.mark.parametrize("replicates", [range(0), range(-1, 2), range(0, 6, 2)])
def test_a_range_of_replicates_without_sense_is_refused(replicates):
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    with pytest.raises(bm.InputError, match="replicates must be a number, or a range such as"):
        bm.simulate(problem, bm.FwA(2), replicates=replicates)


def test_replicates_differ(engine):
    result = bm.simulate(small_problem(dynamic=False), bm.IRS(), horizon=40, replicates=3, seed=0, engine=engine)
    assert len({tuple(pulls.ravel()) for pulls in result.pulls}) == 3


def test_every_protocol_meets_the_same_rewards_and_networks(rules):
    network = bm.networks.EdgeMarkovian(nx.cycle_graph(6), 0.2, 0.3)
    problem = bm.Problem(network, [[0, 1]] * 6, gaussian_arms(2))
    paid, links = {}, set()
    for protocol in PROTOCOLS[1:-1]:
        result = bm.simulate(problem, protocol, rules=rules, trace=True, engine="reference", **SETTINGS)
        links.add(tuple(result.links))
        for event in result.trace:
            pull = event.replicate, event.origin, event.sequence, event.arm
            assert paid.setdefault(pull, event.reward) == event.reward
    assert len(links) == 1
    assert len(paid) > 6 * 15 * 2


def test_every_protocol_meets_the_same_links_in_every_round(engine, rules):
    # IRS uses every link once in each direction in every round, so its traffic shows the network.
    problem = bm.Problem(bm.networks.EdgeMarkovian(nx.cycle_graph(6), 0.2, 0.3), [[0]] * 6, gaussian_arms(1))
    irs = bm.simulate(problem, bm.IRS(), rules=rules, engine=engine, **SETTINGS)
    for protocol in (bm.Flooding(3), bm.FwA(3), bm.ProbabilisticFlooding(3)):
        other = bm.simulate(problem, protocol, rules=rules, engine=engine, **SETTINGS)
        assert other.links == irs.links
        np.testing.assert_array_equal(other.link_traffic > 0, irs.link_traffic > 0)


def test_drawn_seed_is_recorded_and_repeats_the_run(engine):
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian_arms(2))
    one = bm.simulate(problem, bm.Gossip(2), horizon=20, engine=engine)
    two = bm.simulate(problem, bm.Gossip(2), horizon=20, engine=engine)
    assert one.seed != two.seed
    assert bm.simulate(problem, bm.Gossip(2), horizon=20, seed=one.seed, engine=engine) == one


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_global_generators_are_neither_read_nor_changed(protocol, engine):
    def simulate():
        problem = bm.Problem.random(bm.networks.er(8, 0.4, seed=1), n_arms=5, per_agent=2, seed=0)
        return bm.simulate(problem, protocol, engine=engine, **SETTINGS)

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    one = simulate()
    assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    assert simulate() == one
