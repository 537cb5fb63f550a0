"""The page in a browser: its numbers are those of the library, its links come back, and everything can be taken away.

One server and one browser for all of it; nothing is asked of anybody but this machine, or the test fails.
"""

import contextlib
import csv
import dataclasses
import io
import os
import re
import signal
import subprocess
import threading
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import networkx as nx
import pytest
import uvicorn
from page_server import PROGRAM
from playwright.sync_api import expect
from processes import NodeProcess

import banditmesh as bm
from banditmesh.live.template import protocol_lines
from banditmesh.sim import engine
from banditmesh.web.access import Access
from banditmesh.web.server import listening
from banditmesh.web.words import WORDS

CHOICES = {
    "network.name": "ring",
    "network.n": "8",
    "arms.law": "gaussian",
    "arms.n_arms": "5",
    "arms.per_agent": "3",
    "arms.seed": "2",
    "protocols": "irs, fwa(3)",
    "horizon": "40",
    "replicates": "2",
    "seed": "7",
}

#: The last point of each line of a chart.
CURVE_ENDS = """(box) => Object.fromEntries(
    getElement(Number(box.id.slice(1))).chart.getOption().series.map((one) => [one.name, one.data.at(-1)]))"""

#: How many lines a study's chart has.
STUDY_LINES = """getElement(Number(document.querySelector('[data-bm="chart-study"]').id.slice(1)))
    .chart.getOption().legend[0].data.length"""


def open_lab(tab, **choices):
    tab.goto(f"/?{urlencode({**CHOICES, **choices, 'settings': 'open'})}")
    return tab.get_by_role("button", name="Run").click


def expected():
    problem = bm.Problem.random(bm.networks.ring(8), 5, 3, seed=2)
    return {
        name: bm.simulate(problem, name, horizon=40, replicates=2, seed=7, engine="reference")
        for name in ("irs", "fwa(3)")
    }


def finished(tab):
    tab.locator('[data-bm="run-status"]').get_by_text("Done").wait_for()


def taken(tab, mark):
    with tab.expect_download() as download:
        tab.locator(f'[data-bm="{mark}"]').click()
    with open(download.value.path(), "rb") as file:
        return file.read()


def on_reference(code):
    """Lines of Python, without what they print, on the engine that compiles nothing."""
    assert code.count("    seed=7,") == 1
    return re.sub(r"print\(.*\)", "", code).replace("    seed=7,", "    seed=7, engine='reference',")


def cells(tab):
    rows = tab.locator('[data-bm="results"] tbody tr').all()
    return {texts[0]: texts[1:] for texts in (row.locator("td").all_inner_texts() for row in rows)}


def wait_until_it_plays(chromium, path):
    """Open an animation without any network, and press play."""
    context = chromium.new_context(offline=True)
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        page.locator('[data-bm="slider"]').fill("0")
        before = page.locator('[data-bm="round"]').inner_text()
        page.locator('[data-bm="play"]').click()
        page.wait_for_function(
            "(before) => document.querySelector('[data-bm=\"round\"]').innerText !== before", arg=before
        )
    finally:
        context.close()


def test_numbers_are_those_of_the_library_and_can_be_taken_away(tab, chromium, tmp_path):
    open_lab(tab)()
    finished(tab)
    results = expected()
    shown = cells(tab)
    assert list(shown) == ["irs", "fwa"]
    for label, result in zip(shown, results.values(), strict=True):
        for cell, values in zip((0, 2), (result.regret[:, -1], result.transmissions[:, -1]), strict=True):
            assert float(shown[label][cell].replace(",", "")) == pytest.approx(values.mean(), rel=0.005)
    for measure, mine in (("regret", "regret"), ("messages", "messages")):
        ends = tab.locator(f'[data-bm="chart-{measure}"]').evaluate(CURVE_ENDS)
        for label, result in zip(shown, results.values(), strict=True):
            assert ends[label] == pytest.approx([40, getattr(result, mine)[:, -1].mean()])
    # The table is sorted with the keyboard, too.
    tab.locator('[data-bm="results"] th', has_text="group regret").focus()
    for key, names in (("Enter", ["fwa", "irs"]), ("Space", ["irs", "fwa"])):
        tab.keyboard.press(key)
        expect(tab.locator('[data-bm="results"] tbody td:first-child')).to_have_text(names)
    data = list(csv.DictReader(io.StringIO(taken(tab, "take-csv").decode())))
    for label, result in zip(shown, results.values(), strict=True):
        for replicate in range(2):
            rows = [row for row in data if row["protocol"] == label and row["replicate"] == str(replicate)]
            assert [float(row["regret"]) for row in rows] == result.regret[replicate].tolist()
            assert [int(row["messages"]) for row in rows] == result.transmissions[replicate].tolist()
    assert taken(tab, "take-png").startswith(b"\x89PNG")
    spec = bm.parse_spec(taken(tab, "take-toml").decode())
    assert spec.settings.horizon == 40
    assert spec.grid == {"protocol": ["irs", "fwa(3)"]}
    code = taken(tab, "take-python").decode()
    scope = {}
    exec(on_reference(code), scope)
    assert scope["comparison"].results == dict(zip(shown, results.values(), strict=True))
    tab.locator('[data-bm="take-node"]').click()
    with tab.expect_download() as download:
        tab.locator(".q-menu .q-item", has_text="fwa").click()
    assert download.value.path().read_text() == protocol_lines(bm.FwA(3), bm.UCB())
    # The network was recorded round by round, and plays where it is taken to.
    tab.get_by_text("40 rounds recorded: ").wait_for()
    check_shown(tab, results, 40)
    path = tmp_path / "replay.html"
    path.write_bytes(taken(tab, "take-html"))
    wait_until_it_plays(chromium, path)


# --- the network as it learns


def state(tab, script="box.bmView.state"):
    return tab.locator('[data-bm="player"]').evaluate(f"(box) => {script}")


def wait_until(tab, condition, given=None):
    """Wait for something that holds of the state of the drawing, called `now`."""
    tab.wait_for_function(
        f"""(given) => {{
            const now = document.querySelector('[data-bm="player"]').bmView?.state;
            return now && ({condition});
        }}""",
        arg=given,
    )


def check_shown(tab, results, round_=None):
    """The drawing shows the numbers that the library has of that round, or of the one that it shows now."""
    shown = state(tab) if round_ is None else state(tab, f"(box.bmView.show({round_}), box.bmView.state)")
    assert len(shown["runs"]) == len(results)
    for run, result in zip(shown["runs"], results.values(), strict=True):
        assert run["messages"] == int(result.transmissions[0, shown["round"] - 1])
        assert run["regret"] == pytest.approx(float(result.regret[0, shown["round"] - 1]))
    return shown["round"]


def opening(ttl=4, faults=None):
    """What the lab opens on, by the library."""
    problem = bm.Problem.random(bm.networks.grid(3, 4), 6, 3, seed=0)
    settings = {"horizon": 60, "seed": 0, "engine": "reference", "faults": faults}
    return {name: bm.simulate(problem, f"{name}({ttl})", **settings) for name in ("fwa", "flooding")}


def test_lab_opens_on_a_network_that_learns_and_sliders_play_it_again(tab):
    tab.goto("/")
    wait_until(tab, "now.playing && now.round >= 2")
    tab.locator('[data-bm="speed"]').fill("5")
    wait_until(tab, "now.playing && now.round >= 6")
    tab.locator('[data-bm="player"] [data-bm="play"]').click()
    wait_until(tab, "!now.playing")
    round_ = check_shown(tab, opening())
    assert [run["label"] for run in state(tab)["runs"]] == ["fwa", "flooding"]
    # Messages are seen on their way, and as many as were sent.
    sent = state(tab, "[0, 1].map((run) => box.bmView.model.sent(1, run).reduce((sum, [, , n]) => sum + n, 0))")
    assert sent == [int(result.transmissions[0, 0]) for result in opening().values()]
    for mark, step in (("step", 1), ("back", -1)):
        tab.locator(f'[data-bm="player"] [data-bm="{mark}"]').click()
        round_ += step
        wait_until(tab, "now.round === given", round_)
    scale = tab.locator('[data-bm="legend"]').inner_text()
    # A slider plays the run again, by the same rewards, up to the round that is shown.
    slider = tab.locator('[data-bm="ttl"] [tabindex="0"]')
    slider.focus()
    slider.press("ArrowLeft")
    tab.wait_for_function("decodeURIComponent(location.search).includes('fwa(3)')")
    other = opening(3)
    wait_until(tab, "!now.playing && now.round === given[0] && now.runs[1].messages === given[1]",
               [round_, int(other["flooding"].transmissions[0, round_ - 1])])  # fmt: skip
    check_shown(tab, other)
    assert tab.locator('[data-bm="legend"]').inner_text() != scale
    slider = tab.locator('[data-bm="loss"] [tabindex="0"]')
    slider.focus()
    slider.press("ArrowRight")
    tab.wait_for_function("location.search.includes('faults.loss=0.05')")
    lossy = opening(3, bm.Faults(loss=0.05))
    wait_until(tab, "!now.playing && now.round === given[0] && now.runs[1].messages === given[1]",
               [round_, int(lossy["flooding"].transmissions[0, round_ - 1])])  # fmt: skip
    check_shown(tab, lossy)
    # The picture comes back by its link.
    tab.wait_for_function("(part) => location.search.endsWith(part)", arg=f"round={round_}")
    tab.goto(tab.url)
    wait_until(tab, "now.round === given", round_)
    check_shown(tab, lossy)
    assert not state(tab)["playing"]
    # What is chosen goes along to other views, and shows in their fields.
    tab.get_by_role("link", name="Mesh").click()
    tab.get_by_role("link", name="Compare").click()
    for key, text in (("network.rows", "3"), ("faults.loss", "0.05"), ("protocols", "fwa(3), flooding(3)")):
        expect(tab.locator(f'[data-bm="{key}"]')).to_have_value(text)
    expect(tab.locator('[data-bm="policy.alpha"]')).to_have_attribute("placeholder", "3.0")


def test_recordings_and_results_are_kept(tab):
    run = open_lab(tab, horizon="30")
    wait_until(tab, "now.round >= 1")
    tab.locator('[data-bm="recorded"]', has_text="30 rounds recorded").wait_for()
    run()
    finished(tab)
    shown = cells(tab)
    tab.locator('[data-bm="horizon"]').fill("20")
    tab.wait_for_function("location.search.includes('horizon=20')")
    tab.goto("/mesh")
    tab.go_back()
    # Of 20 rounds there is a recording, and no result.
    tab.locator('[data-bm="recorded"]', has_text="20 rounds recorded").wait_for()
    assert not tab.locator('[data-bm="results"]').is_visible()
    tab.locator('[data-bm="horizon"]').fill("30")
    tab.wait_for_function("location.search.includes('horizon=30')")
    tab.reload()
    tab.locator('[data-bm="run-status"]', has_text="Kept from an earlier run").wait_for()
    assert cells(tab) == shown
    assert taken(tab, "take-csv").count(b"\n") == 121
    tab.locator('[data-bm="recorded"]', has_text="30 rounds recorded").wait_for()
    # One protocol alone.
    tab.locator('[data-bm="right"]').click()
    tab.locator(".q-menu .q-item", has_text="(none)").click()
    wait_until(tab, "now.runs.length === 1")
    tab.wait_for_function("location.search.includes('left=irs')")


def test_cancel_ends_a_long_run_and_disturbs_no_other_browser(tab, tabs):
    other = tabs()
    run = open_lab(other, protocols="irs")
    open_lab(tab, horizon="500000", replicates="50", protocols="fwa(2)")()
    tab.locator('[data-bm="run-status"]').get_by_text("of all").wait_for()
    # A line that breaks takes nothing with it.
    tab.evaluate("() => { window.stays = true; window.socket.io.engine.close(); }")
    run()
    finished(other)
    tab.wait_for_function("window.socket.connected && window.stays")
    assert "of all" in tab.locator('[data-bm="run-status"]').inner_text()
    tab.keyboard.press("Escape")
    tab.locator('[data-bm="run-status"]').get_by_text("Cancelled").wait_for()
    assert list(cells(other)) == ["irs"]
    # Another run can follow.
    tab.locator('[data-bm="horizon"]').fill("20")
    tab.locator('[data-bm="replicates"]').fill("1")
    tab.keyboard.press("Control+Enter")
    finished(tab)
    assert list(cells(tab)) == ["fwa"]
    # What is shown stays, and is what is taken away, until a run has something else to show.
    tab.locator('[data-bm="horizon"]').fill("many")
    tab.wait_for_function("location.search.includes('horizon=many')")
    tab.locator('[data-bm="run"]').click()
    tab.locator('[data-bm="notice"]', has_text="horizon must be an integer").wait_for()
    assert list(cells(tab)) == ["fwa"]
    assert "    horizon=20,\n" in taken(tab, "take-python").decode()


def test_link_brings_the_choices_back(tab):
    open_lab(tab)
    tab.locator('[data-bm="horizon"]').fill("33")
    tab.locator('[data-bm="faults.loss"]').wait_for(state="attached")
    tab.wait_for_function("location.search.includes('horizon=33')")
    tab.goto(tab.url)
    assert tab.locator('[data-bm="horizon"]').input_value() == "33"
    assert tab.locator('[data-bm="network.n"]').input_value() == "8"
    assert tab.locator('[data-bm="protocols"]').input_value() == "irs, fwa(3)"


def test_wrong_choice_is_a_line_on_the_page(tab):
    run = open_lab(tab)
    line = tab.locator('[data-bm="notice"]')
    for key, text, said in (
        ("horizon", "0", "horizon must be an integer of at least 1 "),
        ("horizon", "many", "horizon must be an integer, got 'many'"),
        ("protocols", "fwb(3)", "fwb"),
        ("network.n", "-3", "n must be"),
    ):
        field = tab.locator(f'[data-bm="{key}"]')
        before = field.input_value()
        field.fill(text)
        tab.wait_for_function(
            "([key, text]) => new URLSearchParams(location.search).get(key) === text", arg=[key, text]
        )
        run()
        line.filter(has_text=said).wait_for()
        assert "\n" not in line.inner_text()
        field.fill(before)


def test_file_that_is_handed_over_is_read_as_a_network_and_no_other_one_is(tab, tmp_path):
    good, bad = tmp_path / "links.txt", tmp_path / "bad.graphml"
    nx.write_edgelist(nx.path_graph(5), good, data=False)
    bad.write_text("<graphml><evil/>")
    line = tab.locator('[data-bm="notice"]')
    run = open_lab(tab, **{"network.name": "file", "network.path": str(good), "network.n": ""})
    run()
    line.filter(has_text="network.path must be a file that was uploaded to this page; choose the file").wait_for()
    tab.locator("input[type=file]").first.set_input_files(bad)
    tab.wait_for_function("location.search.includes('bad.graphml')")
    run()
    line.filter(has_text="bad.graphml").wait_for()
    tab.locator("input[type=file]").first.set_input_files(good)
    tab.wait_for_function("location.search.includes('links.txt')")
    run()
    finished(tab)
    problem = bm.Problem.random(bm.networks.read(good), 5, 3, seed=2)
    result = bm.simulate(problem, "irs", horizon=40, replicates=2, seed=7, engine="reference")
    assert float(cells(tab)["irs"][2].replace(",", "")) == result.transmissions[:, -1].mean()


# --- follow a message


def copies(tab, panel):
    """Sender, receiver and fate of every copy that a panel tells of."""
    rows = tab.locator(f'[data-bm="log-{panel}"] li')
    return rows.evaluate_all("(rows) => rows.map(({dataset}) => [dataset.sender, dataset.receiver, dataset.fate])")


def sent(tab, *counts):
    for panel, n in enumerate(counts):
        tab.locator(f'[data-bm="sent-words-{panel}"]', has_text=f": {n} transmissions").wait_for()


def test_message_is_followed_hop_by_hop_under_two_protocols(tab, line):
    # A path of six: agents 0, 2 and 5 have the arm, so 2 absorbs what 0 sends.
    tab.goto("/follow?case=path")
    sent(tab, 5, 2)
    tab.locator('[data-bm="player"]').evaluate("(box) => box.bmView.show(1000)")
    flood = [[str(k), str(k + 1), "relayed" if k < 4 else "expired"] for k in range(5)]
    assert copies(tab, 0) == flood
    assert copies(tab, 1) == [["0", "1", "relayed"], ["1", "2", "absorbed"]]
    # Other agents, chosen in the drawing with the keyboard, also while an answer is on its way.
    tab.locator('[data-bm="player"] .bm').focus()
    for _ in range(3):
        tab.keyboard.press("n")
    with line.held():
        tab.keyboard.press("Enter")
        line.wait("5 transmissions")
        for _ in range(3):
            tab.keyboard.press("n")
    sent(tab, 5, 5)
    tab.keyboard.press("Enter")
    sent(tab, 5, 3)
    # Another protocol.
    tab.locator('[data-bm="right"]').fill("irs")
    tab.locator('[data-bm="right"]').press("Enter")
    sent(tab, 5, 1)
    tab.wait_for_function("location.search.includes('right=irs')")
    tab.reload()
    sent(tab, 5, 1)
    tab.locator('[data-bm="right"]').fill("fwa(0)")
    tab.locator('[data-bm="right"]').press("Enter")
    tab.locator('[data-bm="notice"]', has_text="ttl must be an integer of at least 1").wait_for()


# --- compare and frontier


def test_frontier_is_that_of_the_library_and_a_budget_changes_the_advice(tab, line):
    choices = {**CHOICES, "protocols": "irs, fwa, flooding(3)", "ttls": "2, 3", "emissions": "every-pull, growth(0.5)"}
    choices |= {"horizon": "10"}
    tab.goto(f"/compare?{urlencode(choices)}")
    tab.get_by_role("button", name="Compare", exact=True).click()
    advice = tab.locator('[data-bm="advice"]')
    advice.wait_for()
    problem = bm.Problem.random(bm.networks.ring(8), 5, 3, seed=2)
    settings = {"protocols": ["irs", "fwa", "flooding(3)"], "ttls": [2, 3], "emissions": ["every-pull", "growth(0.5)"]}
    found = bm.frontier(problem, horizon=10, replicates=2, seed=7, engine="reference", **settings)
    assert advice.inner_text() == found.advice
    shown = cells(tab)
    assert list(shown) == [one.name for one in found.configurations]
    for one in found.configurations:
        assert float(shown[one.name][0].replace(",", "")) == pytest.approx(one.mean("regret"), rel=0.01)
    slider = tab.locator('[data-bm="max_messages_per_round"] [tabindex="0"]')
    slider.focus()
    most = max(one.mean("messages_per_round") for one in found.configurations)
    # The slider stays where it is put, however late the answers come; its steps grow as squares.
    with line.held():
        slider.press("PageDown")
        first = f"whole network: {0.9**2 * most:.3g}"
        line.wait(first)
        slider.press("PageDown")
        line.let_go(first)
        tab.get_by_text(first).wait_for()
        slider.press("PageDown")
    slider.press("PageDown")
    limit = float(f"{0.6**2 * most:.3g}")
    tab.wait_for_function("(part) => location.search.includes(part)", arg=f"max_messages_per_round={limit:g}")
    budgeted = dataclasses.replace(found, max_messages_per_round=limit)
    tab.locator('[data-bm="advice"]', has_text=budgeted.advice).wait_for()
    data = list(csv.DictReader(io.StringIO(taken(tab, "take-csv").decode())))
    assert {row["configuration"]: float(row["regret"]) for row in data} == budgeted.table()["regret"].to_dict()
    scope = {}
    exec(on_reference(taken(tab, "take-python").decode()), scope)
    assert scope["found"].advice == budgeted.advice
    assert len(bm.parse_spec(taken(tab, "take-toml").decode()).grid["protocol"]) == len(found.configurations)
    # Some of them alone, coloured by something else: table, advice and CSV are of what is shown, and the link says it.
    for mark, item in (("where.emission", "every-pull"), ("by", "ttl")):
        tab.locator(f'[data-bm="{mark}"]').click()
        tab.locator(".q-menu .q-item", has_text=item).click()
        tab.keyboard.press("Escape")
    tab.locator('[data-bm="run-status"]', has_text="4 of 7 configurations").wait_for()
    some = dataclasses.replace(
        budgeted, configurations=tuple(one for one in found.configurations if one.parts["emission"] == "every-pull")
    )
    assert advice.inner_text() == some.advice
    assert list(cells(tab)) == [one.name for one in some.configurations]
    data = list(csv.DictReader(io.StringIO(taken(tab, "take-csv").decode())))
    assert [row["configuration"] for row in data] == list(some.table().index)
    assert {"ttl 1", "ttl 2", "ttl 3"} < set(tab.locator('[data-bm="chart-frontier"]').evaluate(CURVE_ENDS))
    tab.wait_for_function("location.search.includes('by=ttl') && location.search.includes('where.emission=every-pull')")


# --- studies


def test_study_is_shown_while_it_runs_with_what_failed(tab, tmp_path, monkeypatch):
    simulate = engine.simulate

    def fail(problem, protocol, **settings):
        if protocol == bm.Flooding(3):
            raise ValueError("no more of this")
        return simulate(problem, protocol, **settings)

    monkeypatch.setattr(engine, "simulate", fail)
    folder = tmp_path / "study"
    tab.goto(f"/studies?{urlencode({'folder': str(folder)})}")
    tab.locator('[data-bm="notice"]', has_text="must be a study's folder").wait_for()
    spec = bm.parse_spec(
        """
        horizon = 10
        replicates = 2
        engine = "reference"
        network = {name = "ring", n = 6}
        arms = {n_arms = 4, per_agent = 2}
        sweep.protocol = {name = ["fwa", "flooding", "irs"], ttl = [1, 2, 3]}
        """
    )
    seen = []

    def look(done, total, failed):
        # The study runs in this very process: it waits here, half done, until the page has shown it.
        if 0 < done < total and not seen:
            tab.locator('[data-bm="open"]').click()
            tab.locator('[data-bm="study"]', has_text=f"of {total} runs done").wait_for()
            seen.append(tab.locator('[data-bm="study"]').inner_text())

    study = bm.run_study(spec, folder, workers=1, progress=look)
    assert re.fullmatch(r"study: \d+ of 14 runs done, \d failed. The study runs, or was killed while it did.", seen[0])
    tab.locator('[data-bm="study"]', has_text="14 of 14 runs done, 2 failed. The study is complete.").wait_for()
    tab.locator('[data-bm="caption"]', has_text="2 runs have no protocol.ttl and are left out.").wait_for()
    tab.wait_for_function(f"{STUDY_LINES} === 2")
    table = study.table()
    ends = tab.locator('[data-bm="chart-study"]').evaluate(CURVE_ENDS)
    for protocol, ttl in {"fwa": 3, "flooding": 2}.items():
        mine = table[(table["protocol"] == protocol) & (table["protocol.ttl"] == ttl)]["regret"].mean()
        assert ends[protocol] == pytest.approx([ttl, mine])
    shown = list(csv.DictReader(io.StringIO(taken(tab, "take-csv").decode())))
    assert {(row["protocol"], float(row["protocol.ttl"])) for row in shown} >= {("fwa", 3.0), ("flooding", 2.0)}
    assert float(shown[0]["regret"]) == pytest.approx(
        table[(table["protocol"] == shown[0]["protocol"]) & (table["protocol.ttl"] == float(shown[0]["protocol.ttl"]))][
            "regret"
        ].mean()
    )
    failed = tab.locator('[data-bm="failed"] tbody tr')
    assert failed.count() == 2
    assert "ValueError: no more of this" in failed.first.inner_text()


# --- the live mesh


def test_mesh_of_five_shows_a_node_that_dies_and_comes_back(tab, mesh_folder):
    with contextlib.ExitStack() as stack:
        nodes = []
        for k in range(5):
            neighbours = {f"node{k - 1}": nodes[-1].address} if nodes else {}
            nodes.append(stack.enter_context(NodeProcess(mesh_folder / str(k), f"node{k}", neighbours=neighbours)))
        with nodes[0].client() as client:
            client.observe(client.choose(), 0.5)
        tab.goto(f"/mesh?{urlencode({'nodes': ','.join(f'unix:{node.folder}/api' for node in nodes)})}")
        status = tab.locator('[data-bm="mesh"]')
        status.filter(has_text="5 of 5 nodes answer, 4 of 4 links are up").wait_for()
        tab.locator('[data-bm="nodes-table"] tbody tr', has_text="node4").filter(has_text="answers").wait_for()
        # What went along the first link, from its first end to its second and back, and what waits there.
        first = tab.locator('[data-bm="links-table"] tbody tr', has_text="node0 – node1")
        for column, n in ((4, 1), (5, 0), (6, 0)):
            first.locator(f"td:nth-child({column})", has_text=re.compile(f"^{n}$")).wait_for()
        nodes[4].kill()
        status.filter(has_text="4 of 5 nodes answer, 3 of 4 links are up").wait_for()
        tab.locator('[data-bm="links-table"] tbody tr', has_text="node3 – node4").filter(has_text="down").wait_for()
        nodes[4].start()
        status.filter(has_text="5 of 5 nodes answer").wait_for()
    tab.keyboard.press("Escape")
    status.filter(has_text="Polling has stopped").wait_for()
    tab.locator('[data-bm="nodes"]').fill("ftp://nowhere")
    tab.locator('[data-bm="watch"]').click()
    tab.locator('[data-bm="notice"]', has_text="url must be http://HOST:PORT").wait_for()
    # No other address is asked: whoever may use the page may not have its server ask whatever that reaches.
    tab.locator('[data-bm="nodes"]').fill(f"unix:{mesh_folder}/0/api\nhttp://127.0.0.1:9")
    tab.locator('[data-bm="watch"]').click()
    tab.locator('[data-bm="notice"]', has_text="http://127.0.0.1:9 may not be asked from this page").wait_for()


#: Where a node of the mesh is drawn, in the window.
NODE_AT = """(box, name) => {
    box.scrollIntoView({block: "center"});
    const chart = getElement(Number(box.id.slice(1))).chart, corner = box.getBoundingClientRect();
    const node = chart.getOption().series.find((one) => one.id === "nodes").data.find((one) => one.name === name);
    const [x, y] = chart.convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, node.value);
    return [corner.left + x, corner.top + y];
}"""
NODES = """(box) => getElement(Number(box.id.slice(1))).chart.getOption().series
    .find((one) => one.id === "nodes").data.map((one) => one.name)"""
#: How many rewards a node knows of, now and then, as the chart shows it; null while it does not answer.
KNOWN = """(name) => getElement(Number(document.querySelector('[data-bm="chart-known"]').id.slice(1)))
    .chart.getOption().series.find((one) => one.name === name)?.data.map((point) => point[1])"""


@contextlib.contextmanager
def mesh_up(*options):
    """A mesh that is served, in a process of its own: the link to its page."""
    command = [*PROGRAM, "mesh", "up", "--serve", "--no-open", "--processes", "1", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
    finally:
        process.kill()
        process.wait()


def test_node_of_a_served_mesh_is_killed_and_started_and_catches_up(tabs, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("0 1\n1 2\n")
    problem = ("--network", str(links), "--arms", "2", "--per-agent", "2", "--protocol", "flooding(2)")
    tab = tabs()
    with mesh_up(*problem, "--horizon", "100000", "--pace", "5") as link:
        tab.goto(link)
        assert urlsplit(tab.url).path == "/mesh"
        status = tab.locator('[data-bm="mesh"]')
        status.filter(has_text="3 of 3 nodes answer, 2 of 2 links are up").wait_for()
        tab.wait_for_function(f"(({KNOWN})('1') ?? []).length >= 2")
        tab.mouse.click(*tab.locator('[data-bm="graph"]').evaluate(NODE_AT, "1"))
        status.filter(has_text="2 of 3 nodes answer, 0 of 2 links are up").wait_for()
        tab.wait_for_function(f"({KNOWN})('1').at(-1) == null")
        # What it knew, and what the others have come to know without it.
        before = max(filter(None, tab.evaluate(KNOWN, "1")))
        tab.wait_for_function(f"(before) => ({KNOWN})('0').at(-1) > before", arg=before)
        tab.mouse.click(*tab.locator('[data-bm="graph"]').evaluate(NODE_AT, "1"))
        status.filter(has_text="3 of 3 nodes answer, 2 of 2 links are up").wait_for()
        tab.wait_for_function(f"(before) => ({KNOWN})('1').at(-1) > before", arg=before)
        # The same from the table, for those who have no pointer.
        tab.locator('[data-bm="kill-2"]').press("Enter")
        status.filter(has_text="2 of 3 nodes answer").wait_for()
        # Who comes when it is down knows it by its name, and can start it.
        tab.reload()
        status.filter(has_text="2 of 3 nodes answer, 1 of 2 links are up").wait_for()
        drawn = tab.locator('[data-bm="graph"]').evaluate(NODES)
        assert sorted(drawn) == ["0", "1", "2"]
        tab.locator('[data-bm="start-2"]').press("Enter")
        status.filter(has_text="3 of 3 nodes answer").wait_for()


# --- for everybody


def opened(address, **headers):
    """What the server answers to somebody who opens an address."""
    with urlopen(Request(address, headers=headers)) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("path", ["mesh?nodes=http://127.0.0.1:9", "studies?folder=results"])
def test_link_of_another_site_has_nothing_asked_and_nothing_read(server, path):
    led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert "Another site led here" in opened(f"{server}/{path}", **led)
    assert "Another site led here" not in opened(f"{server}/{path}", **{**led, "Sec-Fetch-Site": "none"})


@pytest.mark.parametrize(
    "path",
    [
        "?rules=mine",
        "?network.name=mine",
        "?policy.name=thompson&policy.alpha=1",
        "?horizn=5",
        "?network.name=ring&network.name=path",
        "follow?case=nowhere",
        "follow?case=own&policy.c=1",
        "compare?cost=mine",
        "compare?max_link_load=few",
    ],
)
def test_link_with_a_wrong_choice_opens_and_is_refused(server, path):
    page = opened(f"{server}/{path}")
    assert "Words on this page" in page
    assert "this link cannot be followed as it is: " in page


def test_mesh_view_begins_with_the_addresses_that_the_server_was_started_with(server, mesh_folder):
    assert f"unix:{mesh_folder}/4/api" in opened(f"{server}/mesh")


def explained(tab):
    """The words that a view explains, and what else it says, also where nothing is to be seen of it yet."""
    return tab.evaluate(
        """() => {
            const main = document.querySelector("main").cloneNode(true);
            const terms = [...main.querySelectorAll(".bm-words dt")].map((term) => term.textContent);
            main.querySelectorAll(".bm-words, .q-icon, style").forEach((one) => one.remove());
            return [terms, main.textContent];
        }"""
    )


@contextlib.contextmanager
def asking_for(token):
    """A server that asks for a token and then says where one has come to: its address."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        came = f"came to {scope['path']} with {scope['query_string'].decode()}"
        await send({"type": "http.response.body", "body": came.encode()})

    guarded = Access("127.0.0.1", token=token).around(app)
    server = uvicorn.Server(uvicorn.Config(guarded, log_level="warning", lifespan="off"))
    with listening("127.0.0.1", 0, None) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_browser_signs_in_with_the_token_and_comes_to_its_link(tab):
    with asking_for("correct-horse") as address:
        tab.goto(f"{address}/studies?folder=mine")
        for token, said in (("wrong", "The token is wrong"), ("correct-horse", "came to /studies with folder=mine")):
            tab.get_by_label("Token").fill(token)
            tab.keyboard.press("Enter")
            tab.get_by_text(said).wait_for()


def test_every_view_fits_a_narrow_window_is_as_dark_as_the_system_and_explains_its_words(tabs):
    tab = tabs(viewport={"width": 380, "height": 800}, color_scheme="dark")
    mode = "dark"
    for path in ("/", "/follow", "/compare", "/studies", "/mesh"):
        tab.goto(path)
        tab.locator("main h1").wait_for()
        tab.wait_for_function("(mode) => document.body.classList.contains(`body--${mode}`)", arg=mode)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 380
        assert tab.locator("nav a[aria-current=page]").count() == 1
        if path == "/follow":
            tab.locator('[data-bm="sent-words-1"]').wait_for()
        terms, said = explained(tab)
        used = [term for term in WORDS if any(re.search(rf"\b{word}(s|ed|d)?\b", said) for word in term.split(", "))]
        assert set(used) <= set(terms), path
        if path == "/studies":
            # What the user chose goes before what the system has, also in the next view.
            tab.get_by_role("button", name="Dark mode").click()
            mode = "light"
            tab.wait_for_function("localStorage.getItem('banditmesh-theme') === 'light'")


def test_story_is_a_view_of_the_page(tab):
    tab.goto("/follow")
    tab.get_by_role("link", name="Story").click()
    expect(tab.locator("#title")).to_have_text("Four agents on a path")
    tab.get_by_role("button", name="Next").click()
    expect(tab.locator("#title")).to_have_text("An agent that can use it keeps it")
    expect(tab.get_by_role("link", name="To the page")).to_be_visible()
