"""Workers: what they answer, what they say when they cannot, and that they end at once."""

import asyncio
import os
import resource
import signal
from functools import partial
from pathlib import Path

import networkx as nx
import pytest

import banditmesh as bm
from banditmesh.errors import InputError, StudyError, UnsupportedError
from banditmesh.machine.cores import count_cores
from banditmesh.sim import engine
from banditmesh.studies import runner
from banditmesh.web import choices, desk, workers
from banditmesh.web import kept as kept_module
from banditmesh.web.choices import DEFAULTS
from banditmesh.web.desk import Desk
from banditmesh.web.kept import Kept, key_of
from banditmesh.web.uploads import Uploads
from banditmesh.web.workers import Latest, StoppedError, Worker, WorkError

ENDLESS = {**DEFAULTS, "network.name": "ring", "network.n": "6", "arms.n_arms": "4", "arms.per_agent": "2"}
ENDLESS |= {"protocols": "fwa(2)", "horizon": "1000000"}
SMALL = {"horizon": "2", "replicates": "1", "protocols": "irs"}


async def begun(worker, *question):
    """A question that will not be answered, once its worker has told something."""
    told = asyncio.Event()
    asking = asyncio.create_task(worker.ask(*question, tell=lambda value: told.set()))
    await told.wait()
    return asking


def test_worker_answers_fails_in_a_line_and_ends_at_once(tmp_path, monkeypatch):
    async def live_through():
        worker = Worker()
        with pytest.raises(WorkError, match=r"must be a study's folder, got no manifest.json in it"):
            await worker.ask("study", str(tmp_path), {})
        with pytest.raises(WorkError, match="horizon must be an integer"):
            await worker.ask("simulate", {**ENDLESS, "horizon": "x"}, Path())
        (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        for mine in (
            {"protocols": "mine:Mine(4)"},
            {"network.name": "mine:Mine"},
            {"policy.name": "mine:Mine"},
            {"policies": "ucb, mine:Mine(4)"},
            {"policies": "ucb+mine:Mine(4)"},
            {"memory.name": "mine:Mine"},
        ):
            with pytest.raises(WorkError, match="mine:Mine must be a name of the package here"):
                await worker.ask("simulate", {**ENDLESS, **mine}, tmp_path)
        assert not (tmp_path / "ran").exists()
        with pytest.raises(WorkError, match="there are no results to download"):
            await worker.ask("curves_csv")
        # With an arm, `record` steps through rounds on the reference engine, so nothing is compiled for this test.
        asking = await begun(worker, "record", ENDLESS, tmp_path, [], "1")
        with pytest.raises(WorkError, match="something else is still running"):
            await worker.ask("curves_csv")
        process = worker._process
        worker.stop()
        # It can be asked again at once, by a new process, before the end of the earlier question is heard of.
        again = await begun(worker, "record", ENDLESS, tmp_path, [], "1")
        with pytest.raises(StoppedError):
            await asking
        process.join(workers.PATIENCE)
        assert process.exitcode == -signal.SIGKILL
        assert worker.is_busy
        asking = again
        # One that is lost says so.
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(WorkError, match="ended unexpectedly"):
            await asking
        monkeypatch.setattr(workers, "MAX_WORKERS", 0)
        with pytest.raises(WorkError, match="0 workers of all visitors are running, which is the most"):
            await worker.ask("curves_csv")

    workers.prepare()
    asyncio.run(live_through())
    assert not workers._running


def test_visitor_has_a_share_of_the_workers_and_tabs_that_are_gone_make_way(monkeypatch):
    monkeypatch.setattr(workers, "SHARE", 2)
    monkeypatch.setattr(workers, "MAX_WORKERS", 3)
    monkeypatch.setattr(workers, "_running", set())
    gone = []

    def begin(visitor):
        """A worker as `ask` begins one, without its process."""
        worker = Worker(visitor, lambda: worker not in gone)
        worker._make_room()
        workers._running.add(worker)
        return worker

    first, second = begin("ann"), begin("ann")
    with pytest.raises(WorkError, match="2 workers of yours are running, which is the most; close other tabs first"):
        begin("ann")
    third = begin("bob")
    with pytest.raises(WorkError, match="3 workers of all visitors are running, which is the most"):
        begin("cem")
    assert workers._running == {first, second, third}
    gone += [first, second]
    assert workers._running - {begin("ann")} in ({first, third}, {second, third})
    assert workers._running >= {begin("cem"), third}


def test_worker_refuses_what_is_larger_than_its_part_of_the_memory():
    async def ask():
        worker = Worker()
        try:
            for chosen in (
                {"network.name": "complete", "network.n": "12000"},
                {"network.name": "ring", "network.n": "9000000"},
                {"network.name": "sbm", "network.sizes": "9000, 9000", "network.p_in": "0.9", "network.p_out": "0.1"},
                {"arms.n_arms": "9999999", "arms.per_agent": "9999999"},
                {"replicates": "1000000", "horizon": "2000"},
            ):
                with pytest.raises(WorkError, match=r"would need [\d,.]+ GiB of memory, and [\d.]+ GiB are free; "):
                    await worker.ask("simulate", {**SMALL, **chosen}, Path())
            return resource.prlimit(worker._process.pid, resource.RLIMIT_AS)[0]
        finally:
            worker.stop()

    limit = asyncio.run(ask())
    most = workers.memory_limit()
    assert most < limit < most + 2**30 * (2 + count_cores())


def test_what_is_chosen_while_a_question_is_on_its_way_is_asked_right_after_it():
    chosen, shown = ["first"], []

    async def choose_often():
        answers = asyncio.Event()

        async def ask():
            wanted = chosen[-1]
            await answers.wait()
            if not latest.is_outdated:
                shown.append(wanted)

        latest = Latest(ask)
        asking = asyncio.create_task(latest.ask())
        await asyncio.sleep(0)
        for more in ("second", "third"):
            chosen.append(more)
            await latest.ask()
        assert latest.is_asking
        answers.set()
        await asking
        assert not latest.is_asking

    asyncio.run(choose_often())
    assert shown == ["third"]


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("simulate", ()),
        ("record", ([], None)),
        ("frontier", ({},)),
        ("bounds", (["fwa(2)"],)),
        ("follow", ({},)),
    ],
)
def test_no_question_reads_a_file_that_was_not_handed_over(tmp_path, question, more):
    (tmp_path / "links.txt").write_text("0 1\n")
    for named, key in (
        ({"network.name": "file", "network.path": str(tmp_path / "links.txt")}, r"network\.path"),
        ({"network.name": "file", "network.path": "links.txt"}, r"network\.path"),
        ({"network.name": "path", "network.n": "2", "arms.law": "data", "arms.log": "/etc/passwd"}, r"arms\.log"),
    ):
        given = ["own"] if question == "follow" else []
        chosen = {"protocols": "fwa(2)", "horizon": "2", **named}
        with pytest.raises(InputError, match=f"{key} must be a file that was uploaded to this page"):
            getattr(Desk(print), question)(*given, chosen, tmp_path, *more)


def test_error_about_a_file_has_its_users_name_and_a_remedy_of_the_page(monkeypatch):
    monkeypatch.setattr(choices, "MAX_UNPACKED", 3)
    kept = Uploads()
    chosen = {**ENDLESS, "network.name": "file", "network.path": kept.keep("my links.txt", b"0 1\n1 2\n")}
    del chosen["network.n"]
    with pytest.raises(
        InputError, match=r"^network: my_links\.txt must hold at most 3 bytes[^;]*; choose a smaller file$"
    ):
        Desk(print).simulate(chosen, kept.folder)
    kept.close()


def test_message_of_an_agent_with_any_name_can_be_followed():
    """By the name that the drawing shows; the whole one would take long to send, and half characters cannot be."""
    names = ["</script><b>", "\ud800", "x" * 5000, "y"]
    network = nx.path_graph(4)
    problem = bm.Problem(nx.relabel_nodes(network, dict(enumerate(names))), [["a"]] * 4, {"a": bm.arms.Bernoulli(0.5)})
    shown = desk._names(problem.agents)
    assert [len(name) for name in shown] == [12, 1, 40, 1]
    assert "".join(shown).encode().isascii() is False  # the dots of what is cut short
    for name, agent in zip(shown, problem.agents, strict=True):
        assert desk._named(problem.agents, name, "agent") == agent
    with pytest.raises(InputError, match="agent must be one of the problem's, got 'z'"):
        desk._named(problem.agents, "z", "agent")


def test_error_is_one_line_that_can_be_sent():
    line = workers._line("half \ud800\n" + "x" * 10_000)
    assert line.startswith("half ? xxx")
    assert len(line) < 600


def test_folder_of_nobody_is_no_study():
    with pytest.raises(StudyError, match=r"~nobody-at-all/x must be a study's folder"):
        Desk(print).study("~nobody-at-all/x", {})


def test_study_of_five_keys_is_shown_at_one_value_of_each_that_is_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_CHUNKS", 2)  # reading a hundred shards takes seconds
    spec = """
        horizon = 3
        replicates = 2
        engine = "reference"
        network = {name = "ring", n = 5}
        arms = {n_arms = 4, per_agent = 2}
        sweep.protocol = {name = ["none", "fwa"], ttl = [1, 2]}
        sweep.policy.alpha = [1.0, 3.0]
        sweep.arms.seed = [0, 1]
        sweep.network.n = [5, 6]
    """
    study = bm.run_study(bm.parse_spec(spec), tmp_path / "study", workers=1)
    table = study.table()

    def ask(where=None, **wanted):
        told = Desk(print).study(str(study.path), wanted, where)
        assert {n for points in told["series"].values() for *_, n in points} == {2}
        return told, {key: one["value"] for key, one in told["where"].items()}

    told, at = ask(x="protocol.ttl", by="protocol")
    assert at == {"policy.alpha": "1", "arms.seed": "0", "network.n": "5"}
    assert told["where"]["network.n"]["options"] == ["5", "6"]
    told, at = ask({"network.n": "6", "arms.seed": "1.0"}, x="protocol.ttl", by="policy.alpha")
    assert at == {"network.n": "6", "arms.seed": "1"}
    runs = table[(table["network.n"] == 6) & (table["arms.seed"] == 1) & (table["protocol"] == "fwa")]
    for (ttl, alpha), group in runs.groupby(["protocol.ttl", "policy.alpha"]):
        point = next(one for one in told["series"][f"alpha {alpha:g}"] if one[0] == ttl)
        assert point[1:3] == pytest.approx([group["regret"].mean(), group["regret"].std()])
    # What has no ttl is shown beside what has this one; and where nothing has one, there is none to choose.
    assert list(ask({"protocol.ttl": "2"}, x="network.n", by="protocol")[0]["series"]) == ["none", "fwa"]
    assert "protocol.ttl" not in ask({"protocol": "none", "protocol.ttl": "2"}, x="network.n", by="arms.seed")[1]
    for where, wanted, line in (
        ({}, {"x": "network.m"}, "x must be one of "),
        ({}, {"column": "regrets"}, "column must be one of "),
        ({"network.m": "1"}, {}, "where must be over one of "),
        ({"network.n": "7"}, {}, r"network\.n must be among 5, 6 in these runs, got '7'"),
        ({"network.n": "5"}, {"x": "network.n"}, "where must be over other keys than x and by"),
    ):
        with pytest.raises(InputError, match=line):
            ask(where, **wanted)


def frames_of(told):
    return [frame for news in told for frame in news.get("frames", ())]


def test_frames_that_are_told_at_a_time_are_bounded(monkeypatch, tmp_path):
    monkeypatch.setattr(desk, "TELL_EVERY", 0.0)
    monkeypatch.setattr(desk, "SHORT", 0)
    told = []
    chosen = {**ENDLESS, "horizon": "60", "protocols": "gossip(2)"}
    answer = Desk(told.append).record(chosen, tmp_path, [], "1")
    frames = frames_of(told)
    assert answer["round"] == 60
    assert [frame["round"] for frame in frames] == list(range(1, 61))
    assert told[-1] == {"kept": answer["kept"], "round": 60, "is_part": False, "is_shown": True}
    [run] = Kept(tmp_path).document(answer["kept"])["runs"]
    assert run["frames"] == frames
    monkeypatch.setattr(desk, "MAX_CHARACTERS", 1)
    small = []
    Desk(small.append).record(chosen, tmp_path / "other", [], "1")
    assert all(len(news["frames"]) == 1 for news in small if "frames" in news)
    assert frames_of(small) == frames


def test_frontier_is_drawn_as_in_the_documents():
    problem = bm.Problem.random(bm.networks.ring(5), 4, 2)
    settings = {"horizon": 5, "replicates": 2, "seed": 0, "engine": "reference"}
    found = bm.frontier(problem, protocols=["irs", "fwa(2)"], **settings)
    asked = Desk(print)
    assert asked.frontier_picture(found, "png").startswith(b"\x89PNG")
    assert b"<svg" in asked.frontier_picture(found, "svg")[:1000]


def test_comparison_without_protocols_takes_all_that_the_library_does(monkeypatch):
    asked = []
    monkeypatch.setattr("banditmesh.comparisons.frontier.frontier", lambda problem, **given: asked.append(given))
    for protocols in ("", " , ", "fwa, tree(1)"):
        Desk(print).frontier({**ENDLESS, "protocols": protocols, "faults.loss": "0.1"}, Path(), {})
    assert [given["protocols"] for given in asked] == [None, None, [bm.FwA, bm.TreeAggregation(1)]]


def test_default_policy_on_coins_is_hinted_at(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "simulate", partial(engine.simulate, engine="reference"))
    monkeypatch.setattr("banditmesh.comparisons.frontier.frontier", lambda problem, **given: None)
    small = {**ENDLESS, "horizon": "3", "replicates": "1"}
    coins = {**small, "arms.law": "bernoulli"}
    for chosen, is_hinted in ((small, False), (coins, True), ({**coins, "policy.name": "klucb"}, False)):
        told = []
        Desk(told.append).simulate(chosen, tmp_path)
        assert told[0]["hint"].startswith("all rewards lie between 0 and 1: UCB(alpha=3.0) explores") is is_hinted
        compared = []
        Desk(compared.append).frontier(chosen, Path(), {})
        assert compared == ([told[0]["hint"]] if is_hinted else [])


POLICIES = {**ENDLESS, "horizon": "20", "replicates": "2", "protocols": "none, fwa(2)"}
POLICIES |= {"policies": "ucb(0.5), ucb(0.5)+discount(0.9)"}


def test_policies_side_by_side_and_first_pulls_are_as_in_a_comparison(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "simulate", partial(engine.simulate, engine="reference"))
    told = []
    rows = Desk(told.append).simulate(POLICIES, tmp_path)["rows"]
    problem = bm.Problem.random(bm.networks.ring(6), 4, 2)
    settings = {"policies": ["ucb(0.5)", "ucb(0.5)+discount(0.9)"], "horizon": 20, "replicates": 2, "seed": 0}
    expected = bm.compare(problem, ["none", "fwa(2)"], engine="reference", **settings)
    assert [row["protocol"] for row in rows] == told[0]["labels"] == list(expected.results)
    for row, (name, result) in zip(rows, expected.results.items(), strict=True):
        assert row["regret"] == result.regret[:, -1].mean()
        assert row["first_share"] == expected.first_regret[name].mean() / row["regret"]
    [unknown] = Desk(print).simulate(
        {**POLICIES, "protocols": "none", "policies": "ucb(first_pulls=unknown)"}, tmp_path
    )["rows"]
    assert unknown["first_share"] is None
    played = []
    Desk(played.append).record(POLICIES, tmp_path, ["fwa, ucb+discount(0.9)"], None)
    assert played[0]["shown"] == ["fwa, ucb+discount(0.9)"]
    assert played[0]["labels"] == list(expected.results)


def test_frontier_takes_policies_side_by_side(monkeypatch):
    asked = []
    monkeypatch.setattr("banditmesh.comparisons.frontier.frontier", lambda problem, **given: asked.append(given))
    Desk(print).frontier(POLICIES, Path(), {})
    Desk(print).frontier({**POLICIES, "policies": "", "memory.name": "window", "memory.rounds": "9"}, Path(), {})
    assert asked[0]["policies"] == (bm.UCB(0.5), bm.UCB(0.5, memory=bm.Discount(0.9)))
    assert (asked[0]["policy"], asked[1]["policy"]) == (None, bm.UCB(memory=bm.Window(9)))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"policies": "ucb*3"}, "policies: policy.name must be one of klucb"),
        ({"policies": "ucb, ucb+discount(2)"}, r"policies: .*gamma must be from 0\.5"),
        ({"policies": "ucb, ucb"}, "policies must hold different values"),
        ({"policies": "ucb+window(9)", "protocols": "tree"}, "policies: .*'tree' merges statistics"),
        ({"policies": "", "memory.name": "discount"}, r"memory\.gamma is required"),
        (
            {"policies": "", "memory.name": "window", "memory.rounds": "9", "protocols": "tree"},
            r"memory\.name: 'tree' me",
        ),
        ({"arms.change": "piecewise(21)"}, r"arms\.change: arm 0 changes in round 21, beyond the horizon of 20 rounds"),
    ],
)
def test_policies_and_changes_that_cannot_be_are_refused_in_the_words_of_the_page(chosen, said):
    with pytest.raises(InputError, match=said) as caught:
        Desk(print).simulate({**POLICIES, **chosen}, Path())
    assert "\n" not in str(caught.value)


def test_seed_that_is_no_number_is_refused_whatever_it_is():
    with pytest.raises(InputError, match=r"^seed must be an integer, got '🙂'$"):
        Desk(print).simulate({**ENDLESS, "seed": "🙂"}, Path())


def test_bounds_are_those_of_the_library_and_none_where_theory_says_nothing():
    chosen = {**ENDLESS, "horizon": "100"}
    told = []
    found = Desk(told.append).bounds(chosen, Path(), ["fwa(2)"])
    problem = bm.Problem.random(bm.networks.ring(6), 4, 2)
    theirs = bm.bounds(problem, bm.FwA(2), alpha=3.0, horizon=100, cover="dsatur")
    assert found["fwa(2)"]["upper"] == theirs.upper_corrected
    assert told == [0.0]
    discount = {"memory.name": "discount", "memory.gamma": "0.9"}
    for other in ({"policy.name": "thompson"}, discount, {"policies": "ucb(0.5), ucb(2)"}):
        with pytest.raises(
            InputError, match=r"bounds are for the policy UCB that forgets nothing, got .*choose ucb and"
        ):
            Desk(print).bounds({**chosen, **other}, Path(), ["fwa(2)"])


def test_books_of_an_engine_give_the_recording_that_stepping_gives(monkeypatch, tmp_path):
    chosen = {**ENDLESS, "horizon": "5", "protocols": "fwa(2), flooding(3), irs"}
    stepped, loads = [], []
    stepping, quick = Desk(stepped.append), Desk(loads.append)
    steps = stepping.record(chosen, tmp_path / "steps", [], None)
    assert "how many holders of arm" in steps["holds"]
    monkeypatch.setattr(desk, "SHORT", 0)
    # On the engine that compiles nothing for this test.
    simulate = engine.simulate
    asked = []

    def on_reference(*given, **settings):
        asked.append(settings["horizon"])
        return simulate(*given, **{**settings, "engine": "reference"})

    monkeypatch.setattr(engine, "simulate", on_reference)
    monkeypatch.setattr(desk, "PART", 12)
    books = quick.record(chosen, tmp_path / "books", [], None)
    assert books["holds"] == steps["holds"]
    # The first two rounds of both protocols came before the rest.
    assert asked == [2, 2, 5, 5]
    assert [(news["round"], news["is_part"]) for news in loads if "kept" in news] == [(2, True), (5, False)]
    theirs, mine = Kept(tmp_path / "steps").document(steps["kept"]), Kept(tmp_path / "books").document(books["kept"])
    assert [run["label"] for run in mine["runs"]] == [run["label"] for run in theirs["runs"]] == ["fwa", "flooding"]
    assert {key: mine["scale"][key] for key in ("load", "heard")} == {
        key: theirs["scale"][key] for key in ("load", "heard")
    }
    assert [mine[key] for key in ("arms", "holders")] == [theirs[key] for key in ("arms", "holders")]
    pairs = list(zip(*[iter(mine["network"]["links"])] * 2, strict=True))
    for run, reference in zip(mine["runs"], theirs["runs"], strict=True):
        for frame, other in zip(run["frames"], reference["frames"], strict=True):
            assert [frame[key] for key in ("round", "messages")] == [other[key] for key in ("round", "messages")]
            assert frame["regret"] == pytest.approx(other["regret"])
            # When all has been heard, nothing more is said of it.
            assert frame.get("heard", [[]]) == other["heard"]
            directed = {**dict(zip(pairs, frame["loads"], strict=True))}
            directed |= {(j, i): n for (i, j), n in zip(pairs, frame["back"], strict=True)}
            sent = {(i, j): n for i, j, n in zip(*[iter(other["sent"])] * 3, strict=True)}
            assert {link: n for link, n in directed.items() if n} == sent
    assert b"<script" in quick.recorded_html(tmp_path / "books", books["kept"])
    # What is kept is not computed again, whichever of them is shown, by which process, and in whatever company.
    for shown, others in ((["flooding"], "fwa(2), flooding(3), irs"), (["flooding", "fwa"], "flooding(3), fwa(2)")):
        again = Desk(print).record({**chosen, "protocols": others}, tmp_path / "books", shown, None)
        assert [run["label"] for run in Kept(tmp_path / "books").document(again["kept"])["runs"]] == shown
    assert asked == [2, 2, 5, 5]
    Desk(print).record({**chosen, "seed": "1"}, tmp_path / "books", ["fwa"], None)
    assert asked[4:] == [2, 5]
    # Where it would take long to know who learned from whom, and beside such a run, the books do without.
    other = {**chosen, "protocols": "fwa(2), gossip(2)"}
    beside = Desk(print).record(other, tmp_path / "books", [], None)
    assert "not who learned from whom" in beside["holds"]
    assert beside["arm"] is None
    document = Kept(tmp_path / "books").document(beside["kept"])
    assert [document["arms"], document["holders"], document["scale"]["heard"]] == [[], [], []]


def test_what_the_quick_engine_does_not_run_is_stepped_through(monkeypatch, tmp_path):
    monkeypatch.setattr(desk, "SHORT", 0)

    def refuse(*given, **settings):
        raise UnsupportedError("not this", reason="a test")

    monkeypatch.setattr(engine, "simulate", refuse)
    told = []
    found = Desk(told.append).record({**ENDLESS, "horizon": "5"}, tmp_path, [], None)
    assert "how many holders" in found["holds"]
    assert len(frames_of(told)) == 5


def test_results_that_are_kept_are_those_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "simulate", partial(engine.simulate, engine="reference"))
    chosen = {**ENDLESS, **SMALL}
    assert Desk(print).simulated(chosen, tmp_path) is None
    told, again = [], []
    first, second = Desk(told.append), Desk(again.append)
    found = first.simulate(chosen, tmp_path)
    assert second.simulated(chosen, tmp_path) == found
    assert again == [{**told[0], "hint": ""}, told[-1]]
    assert second.curves_csv() == first.curves_csv()
    assert Desk(print).simulated({**chosen, "seed": "1"}, tmp_path) is None


def test_oldest_recordings_make_way_and_no_other_file_is_found(monkeypatch, tmp_path):
    kept = Kept(tmp_path)
    keys = [key_of(number) for number in range(3)]
    for number, key in enumerate(keys):
        kept.keep_document(key, {"number": number})
        os.utime(kept.path(key), (number, number))
    size = kept.path(keys[0]).stat().st_size
    monkeypatch.setattr(kept_module, "MAX_BYTES", 3 * size)
    kept.keep_document(key_of("new"), {"number": 9})
    assert [kept.document(key) for key in keys] == [None, {"number": 1}, {"number": 2}]
    (tmp_path / "secret").write_text("mine")
    assert kept.path("../secret") is None
