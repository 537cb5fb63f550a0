"""A frontier from coarse to fine: what is left out, kept and found again, here and on executors."""

import json
import re
import runpy
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.comparisons import measuring
from banditmesh.comparisons.configurations import Configuration
from banditmesh.comparisons.intervals import lead
from banditmesh.comparisons.kept import Kept, fingerprint
from banditmesh.comparisons.screening import screen

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
    return bm.Problem.random(bm.networks.complete(8), n_arms=6, per_agent=3, seed=1)


#: Long enough that some configurations are surely worse than others.
LONGER = SETTINGS | {"horizon": 200, "replicates": 4, "engine": "auto", "ttls": [2]}


@pytest.fixture(scope="module")
def whole(problem):
    """Everything, run to the end."""
    return bm.frontier(problem, prune=False, **LONGER)


@pytest.fixture(scope="module")
def pruned(problem, tmp_path_factory):
    """The same from coarse to fine, with its folder and what it said."""
    folder, said = tmp_path_factory.mktemp("kept"), []
    return bm.frontier(problem, prune=True, keep=folder, notice=said.append, **LONGER), folder, said


def test_what_is_left_has_the_same_numbers_and_nothing_is_forgotten(whole, pruned):
    found = pruned[0]
    assert {one.name for one in found.configurations} | set(found.left_out) == {o.name for o in whole.configurations}
    assert not {one.name for one in found.configurations} & set(found.left_out)
    assert found.left_out
    for one in found.configurations:
        assert one.regret.tolist() == whole[one.name].regret.tolist()
        assert one.link_load.tolist() == whole[one.name].link_load.tolist()


def test_whatever_is_left_out_is_beaten_by_more_than_the_margin(whole, pruned):
    """By the whole runs: of the replicates that the reason names, at no higher cost."""
    for name, why in pruned[0].left_out.items():
        n = int(re.search(r"\((\d+) paired replicates, margin", why)[1])
        rival, one = whole[why.split(" ")[0]], whole[name]
        difference, margin = lead(one.regret[:n] - rival.regret[:n])
        assert difference > margin + 0.1 * rival.regret[:n].mean(), why
        assert f"by {difference:,.4g} ({n} paired replicates, margin {margin:,.3g})" in why
        for cost in ("messages_per_round", "link_load", "bytes_per_round"):
            assert getattr(rival, cost)[:n].mean() <= getattr(one, cost)[:n].mean(), why


class Scripted:
    """A bench on which everything is known beforehand: regret and transmissions a round of each replicate."""

    def __init__(self, horizon=100, **known):
        self.horizon, self.known, self.ran, self.progress = horizon, known, [], SimpleNamespace(advance=lambda n: None)

    def run(self, tasks, counts=True):
        self.ran += tasks
        return {task.name: self._measured(task) for task in tasks}

    def _measured(self, task):
        regret, sent = (np.array(values[task.first : task.first + task.replicates]) for values in self.known[task.name])
        sent = sent.astype(float)
        one = Configuration(task.name, task.protocol, regret * task.horizon / self.horizon, sent, sent, sent, 24 * sent)
        return measuring.Measured(one, "sound", "ucb", 0.0)

    def screen(self, replicates, **limits):
        grid = {name: bm.IRS() for name in self.known if not name.startswith("a")}
        return screen(self, grid, self.horizon, replicates, limits, 0.05, 10, lambda first: None)


def test_a_difference_counts_only_beyond_its_margin():
    cheap, dear = [1.0] * 3, [2.0] * 3
    few = Scripted(good=([100.0, 110.0, 90.0], cheap), bad=([150.0, 162.0, 141.0], dear)).screen(3)
    assert few.left_out == {"bad": "good costs no more and has less regret: by 51 (3 paired replicates, margin 1.69)"}
    # As much worse on average, but by chance.
    assert not Scripted(good=([100.0, 110.0, 90.0], cheap), bad=([90.0, 262.0, 101.0], dear)).screen(3).left_out
    # Surely worse, but by little.
    assert not Scripted(good=([100.0, 110.0, 90.0], cheap), bad=([105.0, 115.1, 95.0], dear)).screen(3).left_out
    # Worse, and not surely as dear.
    uneven = Scripted(good=([100.0, 110.0, 90.0], [1.0, 3.0, 1.0]), bad=([150.0, 162.0, 141.0], dear))
    assert not uneven.screen(3).left_out


def test_what_a_few_replicates_leave_open_more_of_them_decide():
    good, bad = [100.0] * 12, [120.0, 180.0, 125.0, 150.0, 140.0, 160.0] * 2
    bench = Scripted(good=(good, [1.0] * 12), bad=(bad, [2.0] * 12))
    found = bench.screen(12)
    assert "(6 paired replicates, margin" in found.left_out["bad"]
    # No replicate is simulated twice, and what is left has all of them.
    whole = [
        (task.first, task.first + task.replicates) for task in bench.ran if task.name == "good" and task.horizon == 100
    ]
    assert whole == [(0, 3), (3, 6), (6, 12)]
    assert found.left["good"].configuration.regret.tolist() == good


def test_two_replicates_are_judged_by_three():
    found = Scripted(good=([100.0, 110.0, 90.0], [1.0] * 3), bad=([150.0, 162.0, 141.0], [2.0] * 3)).screen(2)
    assert list(found.left_out) == ["bad"]
    assert found.left["good"].configuration.regret.tolist() == [100.0, 110.0]


@pytest.mark.parametrize(("sent", "is_left_out"), [(1e8, True), (1e4, False)])
def test_only_what_takes_long_is_not_worth_it(sent, is_left_out):
    """What may have the least regret is given up before its end only where that end is far."""
    known = {
        "agents on their own": ([1000.0, 1010.0, 990.0], [0.0] * 3),
        "a centre": ([100.0, 101.0, 99.0], [0.0] * 3),
        "cheap": ([110.0, 111.0, 110.0], [1.0] * 3),
        "dear": ([105.0, 106.0, 104.0], [sent] * 3),
    }
    found = Scripted(**known).screen(3)
    assert ("dear" in found.left_out) == is_left_out
    if is_left_out:
        why = (
            "cheap has 99% of what there is to gain for at most half of its cost so far (3 paired replicates, margin 0."
        )
        assert found.left_out["dear"].startswith(why)


PRUNING = runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "pruning.py"))


def test_pruning_loses_nothing_of_the_front_of_small_problems():
    protocols = ["none", "irs", "gossip", "fwa", "flooding", "tree(16)+growth(0.25)"]
    some = {"protocols": protocols, "ttls": [3], "emissions": ["every-pull", "growth(1)", "contested"]}
    tally = PRUNING["measure"](3, 6, 10, horizon=150, replicates=6, **some)
    assert tally.n_left_out > 0
    assert tally.clearly_left_out == tally.worse == []
    assert tally.pruned.pulls < tally.full.pulls


@pytest.mark.slow
def test_pruning_loses_nothing_of_the_front_of_many_small_problems():
    tally = PRUNING["measure"](30, 6, 16, horizon=300, replicates=10)
    assert tally.clearly_left_out == tally.worse == []
    assert tally.pruned.pulls < 0.8 * tally.full.pulls


def test_it_says_how_long_everything_would_take_before_it_begins(pruned):
    line = pruned[2][0]
    assert line.startswith("8 configurations would take about ")


def test_what_was_kept_is_not_computed_again(problem, pruned, monkeypatch):
    found, folder, _ = pruned
    monkeypatch.setattr(measuring, "simulate", lambda *arguments, **settings: pytest.fail("computed again"))
    again = bm.frontier(problem, prune=True, keep=folder, **LONGER)
    assert again.table().equals(found.table())
    assert again.left_out == found.left_out


@pytest.mark.parametrize("workers", [None, 1])
def test_a_frontier_that_was_stopped_continues(workers, problem, whole, tmp_path, monkeypatch):
    true, calls = measuring.simulate, []

    def interrupted(*arguments, **settings):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(arguments)
        return true(*arguments, **settings)

    monkeypatch.setattr(measuring, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bm.frontier(problem, prune=False, keep=tmp_path, workers=workers, **LONGER)
    [folder] = tmp_path.iterdir()
    kept = list(folder.iterdir())
    assert len(kept) == 5
    kept[0].write_text('{"key":')  # as if it were damaged
    monkeypatch.setattr(measuring, "simulate", lambda *a, **s: calls.append(a) or true(*a, **s))
    found = bm.frontier(problem, prune=False, keep=tmp_path, **LONGER)
    # The damaged one again, and the recommended one with first pulls that listen.
    assert len(calls) == len(whole.configurations) + 2
    assert found.table().equals(whole.table())


def test_another_seed_or_problem_finds_nothing_of_it(problem, tmp_path):
    other = bm.Problem.random(bm.networks.complete(8), n_arms=6, per_agent=3, seed=2)
    settings = SETTINGS | {"protocols": ["irs+growth(1)"], "horizon": 5}
    tables = [
        bm.frontier(one, keep=tmp_path, **settings | {"seed": seed}).table()["regret"].iloc[0]
        for one, seed in ((problem, 0), (problem, 1), (other, 0))
    ]
    assert len(set(tables)) == 3
    assert len(list(tmp_path.iterdir())) == 3
    assert bm.frontier(problem, keep=tmp_path, **settings).table()["regret"].iloc[0] == tables[0]


GREEDY = """
import banditmesh as bm

class Greedy(bm.Policy):
    name = "greedy"

    def choose(self, t, estimates, draw):
        return WHICH(range(len(estimates)), key=lambda one: estimates.mean[one])
"""


def test_another_source_of_a_policy_given_as_text_finds_nothing_of_the_former(problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | {"protocols": ["irs"], "emissions": ["every-pull"], "horizon": 20}
    regrets = []
    for which in ("max", "min", "max"):
        Path("my_own.py").write_text(GREEDY.replace("WHICH", which))
        found = bm.frontier(problem, keep="kept", **settings, policy="my_own:Greedy")
        regrets.append(found.table()["regret"].iloc[0])
    assert regrets[0] == regrets[2] < regrets[1]


@pytest.mark.parametrize("result", [{}, {"measures": {}}, [], {"measures": {"regret": "x"}}])
def test_a_stored_result_that_is_not_whole_is_computed_again(problem, tmp_path, result):
    settings = SETTINGS | {"protocols": ["irs+growth(1)"], "horizon": 5}
    before = bm.frontier(problem, keep=tmp_path, **settings).table()
    for path in tmp_path.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"result": result}))
    assert bm.frontier(problem, keep=tmp_path, **settings).table().equals(before)


def test_results_do_not_depend_on_the_executor(problem, pruned):
    with ThreadPoolExecutor(2) as pool:
        found = bm.frontier(problem, prune=True, executor=pool, **LONGER)
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
        ("tree+growth(0.05)", bm.Faults(loss=0.1), "a tree has one path between two agents"),
        ("tree+growth(0.05, echoes=1)", bm.Faults(loss=0.1), None),
        ("flooding(2)+growth(0.25)", bm.Faults(loss=0.1), "less and less often"),
        ("flooding(2)", bm.Faults(loss=0.1), None),
        ("tree+growth(0.05, echoes=1)", bm.Faults(outages=bm.Outages(0.1, 0.5)), "cuts off its side of the tree"),
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


OWN = """
import banditmesh as bm


class Mine(bm.FwA):
    name = "mine"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.RELAY
"""


@pytest.mark.parametrize("form", ["a protocol", "an emission"])
def test_what_was_kept_of_a_class_that_was_edited_is_computed_again(form, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "edited:Mine(2)" if form == "a protocol" else "fwa(2)+edited:Often"
    given = {"horizon": 20, "replicates": 2, "seed": 0, "keep": tmp_path / "kept", "engine": "reference"}
    often = OWN + "\n\nclass Often(bm.Contested):\n    name = 'often'\n\n    @staticmethod\n"
    often += "    def sends(*given):\n        return True\n"
    (tmp_path / "edited.py").write_text(often)
    bm.frontier(problem, protocols=[text], **given)
    n_kept = len(list((tmp_path / "kept").glob("*/*.json")))
    (tmp_path / "edited.py").write_text(often.replace("bm.RELAY", "bm.STOP").replace("return True", "return False"))
    edited = bm.frontier(problem, protocols=[text], **given)
    assert len(list((tmp_path / "kept").glob("*/*.json"))) == 2 * n_kept
    fresh = bm.frontier(problem, protocols=[text], **{**given, "keep": None})
    assert edited.table().equals(fresh.table())
