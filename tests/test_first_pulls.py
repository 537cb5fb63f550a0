"""How much of the regret forced first pulls are, and policies and memories put side by side."""

import dataclasses
import json
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.comparisons.shown import MANY_FIRST, comparison_rows, frontier_rows

RING = bm.Problem.random(nx.cycle_graph(6), n_arms=8, per_agent=4, seed=0)
SETTINGS = {"replicates": 3, "seed": 1, "engine": "reference"}


def first_of(problem, protocol="irs", horizon=30, **settings):
    return bm.compare(problem, [protocol], horizon=horizon, **{**SETTINGS, **settings}).first_regret[protocol]


def by_hand(problem, horizon, every=1, seed=1):
    """The regret of the first pull of each arm, pull by pull."""
    first = np.zeros(3)
    for replicate in range(3):
        for agent, (low, high) in enumerate(pairwise(problem.arm_offsets)):
            arms = problem.arm_indices[low:high]
            for place, arm in enumerate(arms):
                t = 1 + place * np.broadcast_to(every, problem.n_agents)[agent]
                if t > horizon:
                    continue
                means = problem.means_at(int(t), seed=seed, replicate=replicate)
                first[replicate] += means[arms].max() - means[arm]
    return first


@pytest.mark.parametrize("change", [None, "switching(0.3)"])
@pytest.mark.parametrize(("horizon", "every"), [(30, 1), (3, 1), (7, [1, 2, 3, 1, 2, 3])])
def test_regret_of_first_pulls_is_that_of_each_arm_once(change, horizon, every):
    problem = RING if change is None else RING.with_change(change)
    found = first_of(problem, horizon=horizon, every=every)
    np.testing.assert_allclose(found, by_hand(problem, horizon, every))


@pytest.mark.parametrize("change", [None, "switching(0.3)"])
def test_first_pulls_are_all_of_the_regret_as_long_as_nothing_else_was_pulled(change):
    problem = RING if change is None else RING.with_change(change)
    comparison = bm.compare(problem, ["irs"], horizon=4, **SETTINGS)
    np.testing.assert_allclose(comparison.first_regret["irs"], comparison.results["irs"].regret[:, -1])


def test_agents_that_were_down_have_fewer_first_pulls():
    faults = bm.Faults(outages=bm.Outages(0.5, 0.1))
    found = bm.compare(RING, ["irs"], horizon=4, faults=faults, **SETTINGS)
    np.testing.assert_allclose(found.first_regret["irs"], found.results["irs"].regret[:, -1])


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": bm.UCB(first_pulls="unknown")},
        {"faults": bm.Faults(outages=bm.Outages(0.1, 0.1, memory=False))},
        {"rewards": np.zeros((30, 6, 8)), "means": np.zeros(8)},
    ],
)
def test_what_does_not_follow_from_the_result_is_not_guessed(settings):
    comparison = bm.compare(RING, ["irs"], horizon=30, **SETTINGS, **settings)
    assert np.isnan(comparison.first_regret["irs"]).all()
    assert comparison.to_json()["irs"]["first_regret"] is None
    assert comparison_rows(comparison)[1][3] == "-"


def test_table_and_json_hold_the_share_and_say_where_it_is_large():
    short, long = (bm.compare(RING, ["none", "irs"], horizon=n, **SETTINGS) for n in (6, 200))
    mean = short.first_regret["irs"].mean()
    assert short.to_json()["irs"]["first_regret"] == mean
    assert comparison_rows(short)[2][3] == f"{mean / short.table().loc['irs', 'regret']:.0%}"
    assert MANY_FIRST in short.notes
    assert MANY_FIRST not in long.notes


def test_every_protocol_runs_with_each_policy_that_has_none_of_its_own():
    policies = ["ucb(0.5)", "ucb(0.5)+discount(0.9)"]
    given = ["none", ("irs", "thompson")]
    found = bm.compare(RING, given, policies=policies, horizon=20, **SETTINGS)
    assert list(found.results) == ["none, ucb", "none, ucb+discount(0.9)", "irs, thompson"]
    alone = bm.simulate(RING, "none", policy=policies[1], horizon=20, **SETTINGS)
    assert found.results["none, ucb+discount(0.9)"] == alone
    named = bm.compare(RING, {"ours": "irs"}, policies=policies, horizon=2, **SETTINGS)
    assert list(named.results) == ["ours, ucb", "ours, ucb+discount(0.9)"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy": "ucb", "policies": ["ucb"]}, "give policy or policies, got both"),
        ({"policies": []}, "policies must be a list"),
        ({"policies": [3]}, "policies must be such as"),
        ({"policies": ["ucb", bm.UCB()]}, "policies must differ"),
    ],
)
def test_wrong_policies_are_refused_by_both(settings, words):
    for function in (lambda **more: bm.compare(RING, "irs", **more), lambda **more: bm.frontier(RING, **more)):
        with pytest.raises(bm.InputError, match=words):
            function(horizon=2, **settings)


@pytest.fixture(scope="module")
def found():
    """Memories side by side, where little time is left after first pulls."""
    problem = bm.Problem.random(nx.complete_graph(12), n_arms=60, per_agent=20, seed=0)
    policies = ["ucb(0.5)", "ucb(0.5)+discount(0.9)"]
    return bm.frontier(
        problem, protocols=["none", "irs"], emissions="every-pull", policies=policies, horizon=40, **SETTINGS
    )


def test_frontier_takes_memories_as_a_dimension(found):
    names = ["none, ucb", "none, ucb+discount(0.9)", "irs, ucb", "irs, ucb+discount(0.9)"]
    assert [one.name for one in found.configurations] == names
    assert found["irs, ucb+discount(0.9)"].policy == bm.UCB(0.5, memory=bm.Discount(0.9))
    told = json.loads(json.dumps(found.to_json()))["configurations"]["irs, ucb"]
    assert told["policy"] == "UCB(alpha=0.5)"
    assert told["first_regret"]["mean"] == found["irs, ucb"].mean("first_regret") > 0
    assert frontier_rows(found)[0][3] == "first pulls"


def test_advice_names_first_pulls_that_listen_where_running_them_paid(found):
    listening = found.listening
    assert listening.policy.first_pulls == "unknown"
    assert listening.mean("regret") < found[found.recommended].mean("regret")
    assert "\nGive its policy first_pulls=unknown: " in found.advice
    assert found.to_json()["listening"]["regret"] == listening.mean("regret")
    # It is no advice on another configuration, which may be the one to choose with another budget.
    others = tuple(one for one in found.configurations if one.name != found.recommended)
    assert "first_pulls" not in dataclasses.replace(found, configurations=others).advice


def test_advice_is_silent_where_first_pulls_are_little_of_the_regret():
    settings = {"protocols": ["irs"], "emissions": "every-pull", "horizon": 300, **SETTINGS}
    long = bm.frontier(bm.Problem.random(nx.cycle_graph(4), n_arms=2, per_agent=2, seed=0), **settings)
    assert long.listening is None
    assert "first_pulls" not in long.advice


def test_command_line_puts_policies_side_by_side(capsys):
    options = ["--network", "ring:6", "--arms", "6", "--per-agent", "3", "--horizon", "12", "--replicates", "1"]
    options.append("--policies")
    with pytest.raises(SystemExit) as ended:
        main(["compare", *options, "ucb(0.5),ucb(0.5)+discount(0.9)", "--protocols", "none", "--json"])
    assert ended.value.code == 0
    assert list(json.loads(capsys.readouterr().out)["ring:6"]) == ["none, ucb", "none, ucb+discount(0.9)"]
    with pytest.raises(SystemExit) as ended:
        main(["compare", *options, "ucb", "--policy", "klucb"])
    assert ended.value.code == 2
    assert "give --policy or --policies, got both" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["compare", "frontier"])
def test_specs_that_sweep_over_policies_put_them_side_by_side(verb, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("banditmesh.sim.engine._pick", lambda *given: "reference")
    (tmp_path / "study.toml").write_text(
        'horizon = 12\nreplicates = 1\nnetwork = {name = "ring", n = 6}\n'
        'arms = {n_arms = 6, per_agent = 3}\nsweep.policy = ["ucb(0.5)", "ucb(0.5)+discount(0.9)"]\n'
        'sweep.protocol = ["none", "irs"]\n'
    )

    def told(*more):
        with pytest.raises(SystemExit) as ended:
            main([verb, str(tmp_path / "study.toml"), "--json", *more])
        assert ended.value.code == 0
        found = json.loads(capsys.readouterr().out)["ring"]
        return list(found if verb == "compare" else found["configurations"])

    policies = ["ucb", "ucb+discount(0.9)"]
    assert sorted(told()) == sorted(f"{name}, {policy}" for name in ("none", "irs") for policy in policies)
    assert sorted(told("--policies", "klucb")) == ["irs", "none"]


@pytest.mark.parametrize("verb", ["compare", "frontier"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ucb+discount", "--policies: memory.gamma is required, got none"),
        ("ucb,ucb+discount(1)", "--policies: gamma must be from 0.5 to 1 - 1e-12, got 1"),
        ("ucb,ucb+forget(3)", "memory.name must be one of"),
        ("ucb,", "--policies must be one of klucb, "),
        ("ucb,ucb", "policies must differ from each other"),
    ],
)
def test_wrong_policies_on_the_command_line_are_one_line(verb, text, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main([verb, "--network", "ring:6", "--arms", "6", "--per-agent", "3", "--horizon", "5", "--policies", text])
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out, captured.err.count("\n")) == (2, "", 1)
    assert said in captured.err
