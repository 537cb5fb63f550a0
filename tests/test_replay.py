"""Logged rewards without replacement: walks of their own, arms that are used up, agents that stop."""

import json
from collections import Counter

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.arms import Bernoulli, Replay, read_log
from banditmesh.cli import main
from banditmesh.errors import UnsupportedError
from banditmesh.sim.compiled import packing

LINKS = [("ann", "bob"), ("bob", "carl")]
ARMS = {"red": Replay([1.0, 2.0, 3.0, 4.0]), "blue": Replay([5.0, 6.0, 7.0])}


def rewards_by_pull(problem, protocol, horizon, **settings):
    """What each agent's pulls of each arm paid, in their order."""
    simulation = bm.Simulation(problem, protocol, horizon=horizon, seed=3, **settings)
    paid = {}
    while not simulation.is_over:
        seen = simulation.step()
        for agent, arm in seen.choices.items():
            paid.setdefault((agent, arm), []).append(seen.rewards[agent])
    return paid


@pytest.mark.parametrize("rules", ["sound", "published"])
def test_each_agent_walks_a_permutation_that_no_protocol_changes(rules):
    problem = bm.Problem(LINKS, [["red", "blue"]] * 3, ARMS)
    walks = [
        rewards_by_pull(problem, protocol, 10, rules=rules, policy=policy)
        for protocol, policy in ((bm.NoCooperation(), bm.UCB()), (bm.Flooding(2), bm.UCB(0.1)), (bm.FwA(2), bm.KLUCB()))
    ]
    assert walks[0] == walks[1] == walks[2]
    for agent in "ann", "bob", "carl":
        assert sorted(walks[0][agent, "red"]) == [1, 2, 3, 4]
        assert sorted(walks[0][agent, "blue"]) == [5, 6, 7]
    assert len({tuple(walks[0][agent, "red"]) for agent in ("ann", "bob", "carl")}) > 1


def test_all_permutations_are_equally_likely():
    problem = bm.Problem(nx.empty_graph(1200), [[0]] * 1200, [Replay([1.0, 2.0, 3.0])])
    walks = rewards_by_pull(problem, bm.NoCooperation(), 3)
    seen = Counter(map(tuple, walks.values()))
    assert len(seen) == 6
    # 200 of each, give or take five standard deviations.
    assert all(135 < n < 265 for n in seen.values())


def test_used_up_arm_is_not_chosen_again_and_an_agent_without_arms_stops():
    problem = bm.Problem(LINKS, [["red", "blue"], ["blue"], ["red"]], ARMS)
    simulation = bm.Simulation(problem, bm.FwA(2), horizon=9, seed=0)
    choices = [simulation.step().choices for _ in range(9)]
    assert [list(one) for one in choices] == [["ann", "bob", "carl"]] * 3 + [["ann", "carl"]] + [["ann"]] * 3 + [[]] * 2
    assert Counter(one["ann"] for one in choices if one) == {"red": 4, "blue": 3}
    result = bm.simulate(problem, bm.FwA(2), horizon=9, replicates=2, seed=0)
    assert result.pulls.tolist() == [[[4, 3], [0, 3], [4, 0]]] * 2
    report = bm.replayed(problem, result)
    assert report.used_up == ({"ann": ("red", "blue"), "bob": ("blue",), "carl": ("red",)},) * 2
    assert report.stopped == (("ann", "bob", "carl"),) * 2
    short = bm.replayed(problem, bm.simulate(problem, bm.FwA(2), horizon=3, seed=0))
    assert (short.used_up, short.stopped) == (({"bob": ("blue",)},), (("bob",),))
    assert str(short) == "1 arms of agents used up, 1 agents stopped"


def test_who_stopped_still_relays_and_learns():
    problem = bm.Problem(LINKS, [["red"], ["blue", "red"], ["red"]], {"red": Replay(range(9)), "blue": Replay([1.0])})
    simulation = bm.Simulation(problem, bm.Flooding(2), horizon=12, seed=0)
    last = [simulation.step() for _ in range(12)][-1]
    assert last.choices == {}
    assert last.estimates["ann"]["red"][0] == 27


def test_agent_pulls_what_never_runs_out_when_a_log_has():
    problem = bm.Problem([("a", "b")], [["log", "coin"]] * 2, {"log": Replay([1.0, 1.0]), "coin": Bernoulli(0.1)})
    result = bm.simulate(problem, bm.IRS(), horizon=20, seed=0)
    assert result.pulls[0].tolist() == [[2, 18], [2, 18]]
    report = bm.replayed(problem, result)
    assert report.used_up == ({"a": ("log",), "b": ("log",)},)
    assert report.stopped == ((),)


def test_agent_that_forgets_does_not_get_its_rewards_again():
    problem = bm.Problem([("a", "b")], [["red"]] * 2, {"red": Replay(range(5))})
    faults = bm.Faults(outages=bm.Outages(down=0.3, up=0.9, memory=False))
    walks = rewards_by_pull(problem, bm.IRS(), 40, faults=faults)
    assert {agent: sorted(paid) for agent, paid in walks.items()} == {
        ("a", "red"): [*range(5)],
        ("b", "red"): [*range(5)],
    }


def test_nobody_can_be_told_to_pull_what_is_used_up():
    problem = bm.Problem([("a", "b")], [["red", "blue"]] * 2, {"red": Replay([1.0]), "blue": Replay([1.0, 2.0])})
    simulation = bm.Simulation(problem, bm.IRS(), horizon=9, seed=0)
    simulation.step({"a": "red"})
    with pytest.raises(bm.InputError, match="agent 'a' must pull an arm that is not used up, got 'red'"):
        simulation.step({"a": "red"})
    simulation.step({"a": "blue"})
    simulation.step({"a": "blue"})
    assert simulation.turn() == []
    with pytest.raises(bm.InputError, match="agent 'a' does not pull in round 4"):
        simulation.step({"a": "blue"})


def test_tape_takes_the_place_of_a_log():
    problem = bm.Problem([("a", "b")], [["red"]] * 2, {"red": Replay([1.0])})
    result = bm.simulate(problem, bm.IRS(), horizon=4, seed=0, rewards=np.ones((4, 2, 1)), engine="reference")
    assert result.pulls.tolist() == [[[4], [4]]]


LOGS = [Replay([0.0, 1.0, 1.0]), Replay([0.0, 1.0] * 4), Bernoulli(0.4), Replay([0.0] * 10 + [1.0] * 5)]
NO_MEMORY = bm.Faults(outages=bm.Outages(down=0.1, up=0.5, memory=False))


@pytest.mark.parametrize(
    ("protocol", "policy", "rules", "faults"),
    [
        ("none", "klucb+discount(0.6)", "sound", NO_MEMORY),
        ("fwa(3)", "ucb(1)", "sound", None),
        ("fwa(3)+contested", "ucb(1)", "sound", NO_MEMORY),
        ("gossip(2)", "ucb(1)", "published", None),
        # Kernels that no other quick test needs, and that take long to compile.
        *(
            pytest.param(protocol, policy, "sound", NO_MEMORY, marks=pytest.mark.slow)
            for protocol, policy in (
                ("none", "ucb(1)+discount(0.6)"),
                ("none", "thompson"),
                ("fwa(3)+contested", "thompson"),
            )
        ),
    ],
)
def test_compiled_engine_replays_as_the_reference_does(protocol, policy, rules, faults):
    sets = [[0, 1, 2], [1, 2, 3], [0], [0, 3], [2, 1], [3, 0, 1], [0, 1], [2]]
    problem = bm.Problem(bm.networks.ring(8), sets, LOGS)
    settings = {"policy": policy, "rules": rules, "faults": faults, "horizon": 60, "replicates": 3, "seed": 5}
    settings["every"] = [1, 1, 2, 1, 1, 3, 1, 1]
    ours, theirs = (bm.simulate(problem, protocol, engine=name, **settings) for name in ("compiled", "reference"))
    for name in ("regret", "transmissions", "arm_pulls"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert all(np.array_equal(ours.traffic[kind], theirs.traffic[kind]) for kind in theirs.traffic)
    # Some have used up an arm and chosen among the others, and some have stopped.
    assert bm.replayed(problem, ours) == bm.replayed(problem, theirs)
    assert bm.replayed(problem, ours).n_used_up > bm.replayed(problem, ours).n_stopped > 0.0


def test_compiled_engine_says_which_logs_it_does_not_replay(monkeypatch):
    numbers = bm.Problem([("a", "b")], [["red"]] * 2, {"red": Replay([1.0, 2.0])})
    with pytest.raises(UnsupportedError, match="by the published rules it runs Bernoulli laws"):
        bm.simulate(numbers, bm.IRS(), horizon=4, seed=0, engine="compiled", rules="published")
    beside = bm.Problem([("a", "b")], [["red", "blue"]] * 2, {"red": Replay([1.0]), "blue": bm.arms.Beta(2.0, 2.0)})
    with pytest.raises(UnsupportedError, match="it replays rewards beside Bernoulli, Gaussian and uniform arms only"):
        bm.simulate(beside, bm.IRS(), horizon=4, seed=0, engine="compiled", rules="published")
    monkeypatch.setattr(packing, "LOG_BUDGET", 200)
    with pytest.raises(UnsupportedError, match="what agents have used of the replayed rewards would take more than"):
        bm.simulate(numbers, bm.IRS(), horizon=4, seed=0, engine="compiled")


def test_law_of_a_log_is_described_and_has_its_moments():
    law = Replay([0, 1, 1, 0])
    assert bm.arms.from_description(law.describe()) == law
    assert law != bm.arms.Empirical([0, 1, 1, 0])
    assert (law.mean, law.sigma, law.code) == (0.5, 0.5, Bernoulli(0.5).code)
    assert Replay([0, 2]).code != law.code


def test_bounds_are_not_for_arms_that_run_out():
    problem = bm.Problem([("a", "b")], [["red"]] * 2, {"red": Replay([1.0, 0.0])})
    with pytest.raises(
        bm.InputError, match=r"bounds need arms that never run out, got replayed ones; .*--log-rewards emp"
    ):
        bm.bounds(problem, bm.FwA(2))


def test_report_is_for_the_same_problem():
    problem = bm.Problem([("a", "b")], [["red"]] * 2, {"red": Replay([1.0, 0.0])})
    other = bm.Problem([("a", "c")], [["red"]] * 2, {"red": Replay([1.0, 0.0])})
    with pytest.raises(bm.InputError, match="result must be one of this problem"):
        bm.replayed(problem, bm.simulate(other, bm.IRS(), horizon=1, seed=0))
    with pytest.raises(bm.InputError, match="needs a Problem and a Result of it, got Problem and str"):
        bm.replayed(problem, "result")


def test_large_log_needs_no_table_of_agents_and_arms(tmp_path):
    rng = np.random.default_rng(0)
    agents, arms, stars = np.arange(20_000) % 943, rng.integers(1682, size=20_000), rng.integers(1, 6, size=20_000)
    rows = zip(agents.tolist(), arms.tolist(), stars.tolist(), strict=True)
    (tmp_path / "u.data").write_text("".join("\t".join(map(str, row)) + "\t0\n" for row in rows))
    log = read_log(tmp_path / "u.data", law="replay")
    problem = bm.Problem(bm.networks.ring(943), log)
    result = bm.simulate(problem, bm.IRS(), horizon=3, seed=0)
    assert (result.pulls.sum(axis=2) == 3).all()
    assert sum(len(law.sample) for law in problem.laws) == 20_000


def test_command_line_and_specs_replay(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.csv").write_text("from,to\nann,bob\n")
    (tmp_path / "log.csv").write_text("agent,arm,reward\nann,red,1\nbob,red,0\nann,blue,0\n")
    few = ["compare", "--network", "links.csv", "--log", "log.csv", "--log-rewards", "replay", "--protocols", "irs,fwa"]
    few += ["--horizon", "4", "--replicates", "2"]
    with pytest.raises(SystemExit) as left:
        main(few)
    out = capsys.readouterr().out
    assert left.value.code == 0
    assert "fwa: 3 arms of agents used up, 2 agents stopped, mean of the replicates" in out
    with pytest.raises(SystemExit):
        main([*few, "--json"])
    assert json.loads(capsys.readouterr().out)["replay"]["irs"] == {"used_up": 3.0, "stopped": 2.0}
    (tmp_path / "spec.toml").write_text(
        'horizon = 4\nreplicates = 2\nprotocol = "irs"\nnetwork = {name = "file", path = "links.csv"}\n'
        'arms = {law = "data", log = "log.csv", rewards = "replay"}'
    )
    with pytest.raises(SystemExit):
        main(["run", "spec.toml", "--out", "out", "--workers", "1"])
    assert "\n3 arms of agents used up, 2 agents stopped, mean of the replayed runs\n" in capsys.readouterr().out
    table = bm.Study("out").table()
    assert (table["messages"] > 0).all()
    assert table[["arms_used_up", "agents_stopped"]].to_numpy().tolist() == [[3, 2]] * 2


def test_a_sweep_over_what_a_log_becomes_says_what_was_used_up_where_it_was_replayed(tmp_path):
    (tmp_path / "log.csv").write_text("agent,arm,reward\n0,red,1\n1,red,0\n2,blue,0\n")
    text = (
        'horizon = 4\nreplicates = 1\nprotocol = "irs"\nnetwork = {name = "ring", n = 3}\nengine = "reference"\n'
        'arms = {law = "data", log = "log.csv"}\nsweep.arms.rewards = '
    )
    small, large = (bm.parse_spec(text + values, folder=tmp_path) for values in ('["auto"]', '["auto", "replay"]'))
    table = bm.run_study(large, tmp_path / "out", workers=1).table().set_index("arms.rewards")
    assert table["agents_stopped"].isna().to_dict() == {"auto": True, "replay": False}
    assert table["agents_stopped"]["replay"] == 3
    assert "agents_stopped" not in bm.run_study(small, tmp_path / "small", workers=1).table()
    with pytest.raises(bm.StudyError, match=r"arms\.rewards differs; a study whose logs are not replayed cannot grow"):
        bm.run_study(large, tmp_path / "small", workers=1)
