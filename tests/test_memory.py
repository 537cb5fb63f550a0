"""Memory: how much there is by every limit, and what is estimated beside what is used."""

import json
import os
import subprocess
import sys
import textwrap
import tracemalloc

import pytest

import banditmesh as bm
from banditmesh.machine import memory
from banditmesh.sim.compiled import plans

GIB = 2**30


def files(root, **texts):
    """Write files of a made-up system; two underscores stand for a slash."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_free_memory_is_what_the_system_says(tmp_path):
    files(tmp_path, proc__meminfo=f"MemTotal: 9 kB\nMemAvailable: {3 * GIB // 1024} kB\n")
    assert memory.available(tmp_path) == 3 * GIB


def test_limits_of_a_control_group_of_version_2_and_of_its_parents_count(tmp_path):
    files(
        tmp_path,
        proc__meminfo=f"MemAvailable: {9 * GIB // 1024} kB\n",
        proc__self__cgroup="0::/outer/inner\n",
        sys__fs__cgroup__outer__inner__memory_DOT_max="max\n",
        sys__fs__cgroup__outer__inner__memory_DOT_current="17\n",
        sys__fs__cgroup__outer__memory_DOT_max=f"{4 * GIB}\n",
        sys__fs__cgroup__outer__memory_DOT_current=f"{3 * GIB}\n",
        sys__fs__cgroup__outer__memory_DOT_stat=f"anon {2 * GIB}\ninactive_file {GIB}\n",
    )
    # What files take is given up when it is needed.
    assert memory.available(tmp_path) == 2 * GIB


def test_limits_of_a_control_group_of_version_1_count(tmp_path):
    files(
        tmp_path,
        proc__meminfo=f"MemAvailable: {9 * GIB // 1024} kB\n",
        proc__self__cgroup="5:cpu,cpuacct:/job\n4:memory:/job\n",
        sys__fs__cgroup__memory__job__memory_DOT_limit_in_bytes=f"{2 * GIB}\n",
        sys__fs__cgroup__memory__job__memory_DOT_usage_in_bytes=f"{GIB}\n",
    )
    assert memory.available(tmp_path) == GIB


def test_in_a_container_the_root_is_the_group(tmp_path):
    files(
        tmp_path,
        proc__meminfo=f"MemAvailable: {9 * GIB // 1024} kB\n",
        proc__self__cgroup="0::/docker/0123\n",
        sys__fs__cgroup__memory_DOT_max=f"{GIB}\n",
        sys__fs__cgroup__memory_DOT_current="0\n",
    )
    assert memory.available(tmp_path) == GIB


def test_more_used_than_allowed_is_nothing_left(tmp_path):
    files(
        tmp_path,
        proc__self__cgroup="0::/\n",
        sys__fs__cgroup__memory_DOT_max="5\n",
        sys__fs__cgroup__memory_DOT_current="7\n",
    )
    assert memory.available(tmp_path) == 0.0


def test_a_small_run_does_not_ask_how_much_there_is(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: pytest.fail("asked"))
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    for settings in ({}, {"link_traffic": True}, {"engine": "reference"}):
        bm.simulate(problem, bm.FwA(2), horizon=20, seed=0, **settings)


def test_what_is_more_than_little_is_refused_where_there_is_less(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2.0**25)
    memory.check(2.0**25, "it", "take less")
    assert memory.suffices(2.0**25)
    assert not memory.suffices(2.0**25 + 1)
    with pytest.raises(bm.errors.InsufficientMemoryError, match=r"it would need 0.0 GiB .*; take less"):
        memory.check(2.0**25 + 1, "it", "take less")


@pytest.mark.parametrize(
    "make",
    [
        lambda: bm.networks.complete(12_000),
        lambda: bm.networks.er(12_000, 0.5, seed=0),
        lambda: bm.networks.ba(500_000, 3, seed=0),
        lambda: bm.networks.sbm([6000, 6000], 0.5, 0.1, seed=0),
        lambda: bm.networks.watts_strogatz(500_000, 4, 0.1, seed=0),
        lambda: bm.networks.random_regular(500_000, 4, seed=0),
        lambda: bm.networks.random_geometric(12_000, 0.5, seed=0),
        lambda: bm.networks.grid(1000, 1000),
        lambda: bm.networks.path(500_000),
        lambda: bm.networks.ring(500_000),
        lambda: bm.networks.star(500_000),
        lambda: bm.arms.uniform_sets(100, 10**6, 10**6, seed=0),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch, make):
    monkeypatch.setattr(memory, "available", lambda: 2.0**27)
    with pytest.raises(
        bm.errors.InsufficientMemoryError, match=r"would need [\d.]+ GiB of memory, and 0.1 GiB are free"
    ):
        make()


@pytest.mark.parametrize("make", [lambda: bm.networks.path(4000), lambda: bm.networks.complete(150)])
def test_no_network_takes_more_than_is_estimated(monkeypatch, make):
    bm.Problem.random(make(), 4, 2)  # imports what it needs
    estimates = []
    monkeypatch.setattr(memory, "check", lambda n_bytes, what, remedy: estimates.append(n_bytes))
    tracemalloc.start()
    try:
        bm.Problem.random(make(), 4, 2)
        _, used = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used <= max(estimates) + 2**20


def test_no_more_messages_are_sampled_than_there_are(monkeypatch):
    # So large that a sample of that size does not fit into any memory.
    monkeypatch.setattr(plans, "_SAMPLE_WORK", 2**60)
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    assert bm.simulate(problem, bm.FwA(2), horizon=20, seed=0, engine="compiled").engine == "compiled"


def test_what_is_a_trifle_is_not_refused_and_anything_more_is(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 0.0)
    memory.check(memory.TRIFLE, "it", "take less")
    with pytest.raises(bm.errors.InsufficientMemoryError, match=r"it would need .* take less"):
        memory.check(memory.TRIFLE + 1, "it", "take less")


@pytest.mark.parametrize("rules", ["sound", "published"])
@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.FwA(4), bm.Flooding(4), bm.Gossip(4)], ids=repr)
def test_a_small_run_does_not_ask_the_system(monkeypatch, protocol, rules):
    asked = []
    monkeypatch.setattr(memory, "available", lambda: asked.append(protocol) or float("inf"))
    bm.simulate(bm.Problem.paper("er", seed=0), protocol, horizon=30, seed=0, rules=rules, engine="compiled")
    assert asked == []


def run_script(text, *arguments, prefix=""):
    # Freed memory is handed back, so that what is used can be told from what was used before.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    command = ["sh", "-c", f'{prefix} exec "$@"', "sh", sys.executable, "-c", textwrap.dedent(text), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_limit_of_address_space_counts():
    mebibytes = run_script(
        "from banditmesh.machine import memory; print(int(memory.available() / 2**20))", prefix="ulimit -v 3000000;"
    )
    assert 0 < int(mebibytes) < 3000


MEASURE = """
    import json, sys
    import networkx as nx
    import banditmesh as bm
    from banditmesh.machine import memory

    def kibibytes(name):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

    def run(size, network, law, protocol, settings):
        names = {"bm": bm, "nx": nx, "size": size, "graph": nx.random_regular_graph(6, size, seed=0)}
        laws = [eval(law, {**names, "arm": arm}) for arm in range(10)]
        problem = bm.Problem(eval(network, names), bm.arms.uniform_sets(size, 10, 5, seed=0), laws)
        arguments = eval(f"dict({settings})", names)
        estimates.clear()
        before = kibibytes("VmRSS")
        open("/proc/self/clear_refs", "w").write("5")
        bm.simulate(problem, eval(protocol, names), seed=0, threads=1, engine="compiled", **arguments)
        return kibibytes("VmHWM") - before

    def noted(n_bytes, what, remedy):
        # The tiny run that makes kernels ready is estimated too.
        estimates[what] = max(n_bytes, estimates.get(what, 0.0))

    estimates = {}
    memory.check = noted
    measured = {}
    for name, case in json.loads(sys.argv[1]).items():
        run(**{**case, "size": 20})
        used = run(**case) * 1024
        measured[name] = used, sum(estimates.values())
    print(json.dumps(measured))
"""
EDGE_MARKOVIAN = "bm.networks.EdgeMarkovian(graph, 0.2 * 6 / size, 0.2)"
CASES = {
    "plan": {"protocol": "bm.Flooding(9)", "size": 2000},
    "plan of absorption": {"protocol": "bm.FwA(4)", "size": 12000},
    "plan of a high ttl": {"protocol": "bm.Flooding(32768)", "size": 1500, "settings": "horizon=300"},
    "spread": {"protocol": "bm.ProbabilisticFlooding(5, stop=0.1)", "size": 1500},
    "spread, dynamic": {"protocol": "bm.Flooding(5)", "size": 1500, "network": EDGE_MARKOVIAN},
    "spread, losses": {"protocol": "bm.Flooding(5)", "size": 1500, "settings": "horizon=8, faults=bm.Faults(loss=0.1)"},
    "spread, outages without memory": {
        "protocol": "bm.Flooding(5)",
        "size": 1500,
        "settings": "horizon=8, faults=bm.Faults(outages=bm.Outages(0.1, 0.5, memory=False))",
    },
    "known tables": {"protocol": "bm.FwA(3, emission=bm.Growth(1.0))", "size": 1500, "network": EDGE_MARKOVIAN},
    "walk": {"protocol": "bm.FwA(4)", "size": 1200, "settings": "horizon=8, rules='published'"},
    "walk, dense": {
        "protocol": "bm.FwA(4)",
        "size": 600,
        "network": "nx.complete_graph(size)",
        "settings": "horizon=4, rules='published'",
    },
    "walk, dynamic": {
        "protocol": "bm.Flooding(4)",
        "size": 800,
        "network": EDGE_MARKOVIAN,
        "settings": "horizon=6, rules='published'",
    },
    "merge": {"protocol": "bm.TreeAggregation()", "size": 40000},
    "link traffic": {"protocol": "bm.IRS()", "size": 4000, "settings": "horizon=200, link_traffic=True"},
    "link traffic, dynamic": {
        "protocol": "bm.IRS()",
        "size": 400,
        "network": EDGE_MARKOVIAN,
        "settings": "horizon=300, record_every=10, link_traffic=True",
    },
    "link traffic, dynamic, one record": {
        "protocol": "bm.IRS()",
        "size": 3000,
        "network": EDGE_MARKOVIAN,
        "settings": "horizon=150, record_every=150, link_traffic=True",
    },
    "nothing travels": {"protocol": "bm.NoCooperation()", "size": 100_000},
    "laws that Python draws from": {
        "protocol": "bm.NoCooperation()",
        "size": 110_000,
        "law": "bm.arms.Empirical([0.0, 1.0, 3.0 + arm])",
        "settings": "horizon=3",
    },
}


USUAL = {"network": "graph", "law": "bm.arms.Gaussian(arm / 10, 1.0)", "settings": "horizon=10"}


def assert_estimates_fit(names):
    """All in one process that does nothing else: what runs used, and what was estimated, within a factor of two."""
    cases = {name: {**USUAL, **CASES[name]} for name in names}
    measured = json.loads(run_script(MEASURE, json.dumps(cases)))
    assert sorted(measured) == sorted(names)
    wrong = {
        name: f"estimated {estimated / 2**20:.1f} MiB, used {used / 2**20:.1f} MiB"
        for name, (used, estimated) in measured.items()
        if not used / 2 < estimated < 2 * used
    }
    assert wrong == {}


@pytest.mark.slow
def test_what_is_estimated_is_what_is_used_within_a_factor_of_two():
    assert_estimates_fit(list(CASES)[::4])


@pytest.mark.slow
def test_all_that_is_estimated_is_what_is_used_within_a_factor_of_two():
    assert_estimates_fit(list(CASES))
