"""A frontier from coarse to fine: what is left out, kept and found again, here and on executors."""

import json
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.comparisons import measuring
from banditmesh.comparisons.kept import Kept, fingerprint

SETTINGS = {
    "horizon": 40,
    "replicates": 2,
    "seed": 0,
    "engine": "reference",
    "protocols": ["none", "irs", "fwa", "flooding", "tree+growth(0.05)"],
    "ttls": [2, 4],
    "emissions": ["every-pull", "growth(1)"],
}


@pytest.fixture(scope="module")
def problem():
    return bm.Problem.random(bm.networks.complete(8), n_arms=6, per_agent=3, seed=0)


@pytest.fixture(scope="module")
def whole(problem):
    """Everything, run to the end."""
    return bm.frontier(problem, prune=False, **SETTINGS)


@pytest.fixture(scope="module")
def pruned(problem, tmp_path_factory):
    """The same from coarse to fine, with its folder and what it said."""
    folder, said = tmp_path_factory.mktemp("kept"), []
    return bm.frontier(problem, prune=True, keep=folder, notice=said.append, **SETTINGS), folder, said


def test_what_is_left_has_the_same_numbers_and_nothing_is_forgotten(whole, pruned):
    found = pruned[0]
    assert {one.name for one in found.configurations} | set(found.left_out) == {o.name for o in whole.configurations}
    assert not {one.name for one in found.configurations} & set(found.left_out)
    assert found.left_out
    for one in found.configurations:
        assert one.regret.tolist() == whole[one.name].regret.tolist()
        assert one.link_load.tolist() == whole[one.name].link_load.tolist()


def test_whatever_is_left_out_has_a_rival_by_the_stated_rule(problem, whole, pruned):
    """By the whole runs, replicate 0: nearly all there is to gain for half the cost, or less regret for no more."""
    found = pruned[0]
    alone = whole["none"].regret[0]
    centre = bm.simulate(problem, bm.Centralised(), horizon=40, seed=0, engine="reference").regret[0, -1]
    for name, why in found.left_out.items():
        rival, one = whole[why.split(" ")[0]], whole[name]
        costs = [
            (getattr(rival, cost)[0], getattr(one, cost)[0])
            for cost in ("messages_per_round", "link_load", "bytes_per_round")
        ]
        if "what there is to gain" in why:
            assert all(2 * ours <= theirs + 1e-9 for ours, theirs in costs), why
            assert alone - rival.regret[0] >= 0.95 * (alone - centre), why
        else:
            assert "costs no more" in why
            assert all(ours <= theirs for ours, theirs in costs), why
            assert 1.1 * rival.regret[0] <= one.regret[0], why


def test_it_says_how_long_everything_would_take_before_it_begins(pruned):
    [line] = pruned[2]
    assert line.startswith("12 configurations would take about ")


def test_what_was_kept_is_not_computed_again(problem, pruned, monkeypatch):
    found, folder, _ = pruned
    monkeypatch.setattr(measuring, "simulate", lambda *arguments, **settings: pytest.fail("computed again"))
    again = bm.frontier(problem, prune=True, keep=folder, **SETTINGS)
    assert again.table().equals(found.table())
    assert again.left_out == found.left_out


def test_a_frontier_that_was_stopped_continues(problem, whole, tmp_path, monkeypatch):
    true, calls = measuring.simulate, []

    def interrupted(*arguments, **settings):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(arguments)
        return true(*arguments, **settings)

    monkeypatch.setattr(measuring, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bm.frontier(problem, prune=False, keep=tmp_path, **SETTINGS)
    [folder] = tmp_path.iterdir()
    kept = list(folder.iterdir())
    assert len(kept) == 5
    kept[0].write_text('{"key":')  # as if it were damaged
    monkeypatch.setattr(measuring, "simulate", lambda *a, **s: calls.append(a) or true(*a, **s))
    found = bm.frontier(problem, prune=False, keep=tmp_path, **SETTINGS)
    assert len(calls) == len(whole.configurations) + 1
    assert found.table().equals(whole.table())


def test_another_seed_or_problem_finds_nothing_of_it(problem, tmp_path):
    other = bm.Problem.random(bm.networks.complete(8), n_arms=6, per_agent=3, seed=1)
    settings = SETTINGS | {"protocols": ["irs+growth(1)"], "horizon": 5}
    tables = [
        bm.frontier(one, keep=tmp_path, **settings | {"seed": seed}).table()["regret"].iloc[0]
        for one, seed in ((problem, 0), (problem, 1), (other, 0))
    ]
    assert len(set(tables)) == 3
    assert len(list(tmp_path.iterdir())) == 3
    assert bm.frontier(problem, keep=tmp_path, **settings).table()["regret"].iloc[0] == tables[0]


def test_results_do_not_depend_on_the_executor(problem, pruned):
    with ThreadPoolExecutor(2) as pool:
        found = bm.frontier(problem, prune=True, executor=pool, **SETTINGS)
    assert found.table().equals(pruned[0].table())
    assert found.left_out == pruned[0].left_out


def test_a_protocol_of_ones_own_reaches_other_processes(problem, tmp_path, monkeypatch):
    (tmp_path / "shy.py").write_text(
        "import banditmesh as bm\n\n\nclass Shy(bm.Protocol):\n    name = 'shy'\n\n    @staticmethod\n"
        "    def relay(has_arm, ttl, degree, u, parameter):\n        return bm.RELAY if ttl > 1 else bm.STOP\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | {"protocols": ["shy:Shy"], "emissions": ["every-pull"], "horizon": 5}
    here = bm.frontier(problem, **settings)
    assert list(here.table().index) == ["shy(2)", "shy(4)"]
    there = bm.frontier(problem, workers=2, **settings)
    assert there.table().equals(here.table())


def test_what_is_over_the_budget_by_its_first_rounds_alone_is_left_out(problem):
    settings = SETTINGS | {"protocols": ["irs+growth(1)", "flooding(4)"], "tolerance": 0.0}
    found = bm.frontier(problem, prune=True, max_messages_per_round=30.0, **settings)
    assert "over the budget of 30 transmissions per round by its first" in found.left_out["flooding(4)"]
    assert found.recommended == "irs+growth(1)"
    # If nothing is within the budget, nothing is left out for it, and the nearest can be named.
    found = bm.frontier(problem, prune=True, max_messages_per_round=0.001, **settings)
    assert (found.recommended, found.nearest) == (None, "irs+growth(1)")


def test_a_pace_gives_budgets_and_loads_per_second(problem):
    settings = SETTINGS | {"protocols": ["irs"], "emissions": ["every-pull"], "horizon": 5}
    found = bm.frontier(problem, rounds_per_second=4.0, max_messages_per_second=1000.0, **settings)
    assert found.limits == {"messages_per_round": 250.0}
    row = found.table().loc["irs"]
    assert row["messages_per_second"] == 4 * row["messages_per_round"] == 4 * 56
    assert row["link_load_per_second"] == 4 * row["link_load"]
    assert "at most 250 transmissions per round (1,000 a second)" in found.advice
    assert "at 4 rounds a second that is 224 transmissions" in found.advice
    assert found.to_json()["configurations"]["irs"]["messages_per_second"] == 224.0
    with pytest.raises(bm.InputError, match="max_link_load_per_second needs rounds_per_second"):
        bm.frontier(problem, max_link_load_per_second=1.0, **settings)
    with pytest.raises(bm.InputError, match="give max_messages_per_round or max_messages_per_second, got both"):
        bm.frontier(problem, rounds_per_second=1.0, max_messages_per_second=1.0, max_messages_per_round=1.0, **settings)


@pytest.mark.parametrize(
    ("protocol", "faults", "word"),
    [
        ("tree+growth(0.05)", bm.Faults(loss=0.1), "a tree has one way between two agents"),
        ("tree+growth(0.05, echoes=1)", bm.Faults(loss=0.1), None),
        ("flooding(2)+growth(0.25)", bm.Faults(loss=0.1), "seldom"),
        ("flooding(2)", bm.Faults(loss=0.1), None),
        ("tree+growth(0.05, echoes=1)", bm.Faults(outages=bm.Outages(0.1, 0.5)), "cuts its side of the tree off"),
        ("irs+growth(0.25)", bm.Faults(outages=bm.Outages(0.1, 0.5, memory=False)), "counts from zero again"),
        ("tree+growth(0.05)", None, None),
    ],
)
def test_the_advice_names_a_weakness_for_the_faults_at_hand(problem, protocol, faults, word):
    found = bm.frontier(problem, faults=faults, **SETTINGS | {"horizon": 4, "protocols": [protocol]})
    assert found.recommended == protocol
    assert ("Its weakness here: " in found.advice) == (word is not None)
    assert word is None or word in found.advice


def test_what_is_kept_needs_a_seed(problem, tmp_path):
    with pytest.raises(bm.InputError, match="keep needs a seed"):
        bm.frontier(problem, keep=tmp_path, **SETTINGS | {"seed": None})


def test_a_folder_that_cannot_be_written_is_one_line(problem, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(bm.InputError, match="keep must be a folder"):
        bm.frontier(problem, keep=tmp_path / "file", **SETTINGS)


def test_what_is_kept_is_found_by_what_it_holds(tmp_path):
    kept = Kept(tmp_path, {"a": 1})
    kept.keep({"x": 0.1}, "key", 2)
    assert Kept(tmp_path, {"a": 1}).find("key", 2) == {"x": 0.1}
    assert Kept(tmp_path, {"a": 2}).find("key", 2) is None
    assert kept.find("key", 3) is None
    [path] = [one for one in tmp_path.glob("*/*.json") if json.loads(one.read_text())["key"] == ["key", 2]]
    path.write_text(json.dumps({"key": ["other"], "result": {}}))
    assert kept.find("key", 2) is None
    with pytest.raises(bm.InputError, match="leave out keep"):
        fingerprint(iter([]))


def test_a_worker_that_dies_is_one_clear_line(problem):
    class Dying(ThreadPoolExecutor):
        def submit(self, *arguments):
            future = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

    with Dying(1) as pool, pytest.raises(bm.StudyError, match="a worker died") as error:
        bm.frontier(problem, executor=pool, **SETTINGS)
    assert "\n" not in str(error.value)


def test_a_tape_of_rewards_is_for_its_own_horizon_alone(problem):
    settings = SETTINGS | {"protocols": ["irs"], "emissions": ["every-pull"], "horizon": 4, "replicates": 1}
    tape = np.zeros((4, 8, 6))
    assert bm.frontier(problem, rewards=tape, **settings).left_out == {}
    with pytest.raises(bm.InputError, match="prune must be False with rewards"):
        bm.frontier(problem, rewards=tape, prune=True, **settings)
