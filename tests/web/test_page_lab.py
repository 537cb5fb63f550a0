"""The lab: the numbers of the page are those of the library; cancel, links, files, wrong numbers, what is taken away."""

import csv
import io
from urllib.parse import urlencode

import networkx as nx
import pytest

import banditmesh as bm
from banditmesh.live.template import protocol_lines

pytestmark = pytest.mark.browser

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


def open_lab(tab, **choices):
    tab.goto(f"/?{urlencode({**CHOICES, **choices})}")
    return tab.get_by_role("button", name="Run").click


def expected():
    problem = bm.Problem.random(bm.networks.ring(8), 5, 3, seed=2)
    return {name: bm.simulate(problem, name, horizon=40, replicates=2, seed=7) for name in ("irs", "fwa(3)")}


def finished(tab):
    tab.locator('[data-bm="run-status"]').get_by_text("Done").wait_for()


def taken(tab, mark):
    with tab.expect_download() as download:
        tab.locator(f'[data-bm="{mark}"]').click()
    with open(download.value.path(), "rb") as file:
        return file.read()


def cells(tab):
    rows = tab.locator('[data-bm="results"] tbody tr').all()
    return {texts[0]: texts[1:] for texts in (row.locator("td").all_inner_texts() for row in rows)}


def test_numbers_are_those_of_the_library_and_can_be_taken_away(tab, tmp_path):
    open_lab(tab)()
    finished(tab)
    results = expected()
    shown = cells(tab)
    assert list(shown) == ["irs", "fwa"]
    for label, result in zip(shown, results.values(), strict=True):
        for cell, values in zip((0, 2), (result.regret[:, -1], result.messages[:, -1]), strict=True):
            assert float(shown[label][cell].replace(",", "")) == pytest.approx(values.mean(), abs=0.005)
    for measure, mine in (("regret", "regret"), ("messages", "messages")):
        ends = tab.locator(f'[data-bm="chart-{measure}"]').evaluate(CURVE_ENDS)
        for label, result in zip(shown, results.values(), strict=True):
            assert ends[label] == pytest.approx([40, getattr(result, mine)[:, -1].mean()])
    data = list(csv.DictReader(io.StringIO(taken(tab, "take-curves.csv").decode())))
    for label, result in zip(shown, results.values(), strict=True):
        for replicate in range(2):
            rows = [row for row in data if row["protocol"] == label and row["replicate"] == str(replicate)]
            assert [float(row["regret"]) for row in rows] == result.regret[replicate].tolist()
            assert [int(row["messages"]) for row in rows] == result.messages[replicate].tolist()
    assert taken(tab, "take-curves.png").startswith(b"\x89PNG")
    assert b"<svg" in taken(tab, "take-curves.svg")[:1000]
    spec = bm.parse_spec(taken(tab, "take-toml").decode())
    assert spec.settings.horizon == 40
    assert spec.grid == {"protocol": ["irs", "fwa(3)"]}
    code = taken(tab, "take-python").decode()
    scope = {}
    exec(code.replace("print(comparison)", ""), scope)
    assert scope["comparison"].results == dict(zip(shown, results.values(), strict=True))
    tab.locator('[data-bm="take-node"]').click()
    with tab.expect_download() as download:
        tab.locator(".q-menu .q-item", has_text="fwa").click()
    assert download.value.path().read_text() == protocol_lines(bm.FwA(3), bm.UCB())


def test_network_is_recorded_round_by_round_and_plays_where_it_is_taken(tab, chromium, tmp_path):
    open_lab(tab)()
    finished(tab)
    tab.get_by_text("40 rounds recorded.").wait_for()
    state = tab.locator('[data-bm="player"]').evaluate("(box) => box.bmView.state")
    result = bm.simulate(bm.Problem.random(bm.networks.ring(8), 5, 3, seed=2), "irs", horizon=40, seed=7)
    assert state["messages"] == int(result.messages[0, -1])
    assert state["regret"] == pytest.approx(float(result.regret[0, -1]))
    path = tmp_path / "replay.html"
    path.write_bytes(taken(tab, "take-html"))
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


def test_cancel_ends_a_long_run_and_another_can_follow(tab):
    run = open_lab(tab, horizon="500000", replicates="50", protocols="flooding(4)")
    run()
    tab.locator('[data-bm="run-status"]').get_by_text("of all").wait_for()
    tab.keyboard.press("Escape")
    tab.locator('[data-bm="run-status"]').get_by_text("Cancelled").wait_for()
    tab.locator('[data-bm="horizon"]').fill("20")
    tab.locator('[data-bm="replicates"]').fill("1")
    tab.keyboard.press("Control+Enter")
    finished(tab)


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


def test_link_can_name_no_file_but_those_that_were_handed_over(tab):
    open_lab(tab, **{"network.name": "file", "network.path": "/etc/passwd", "network.n": ""})()
    line = tab.locator('[data-bm="notice"]')
    line.wait_for()
    assert line.inner_text() == "network.path must be a file that was handed over on this page; choose the file again"


def test_file_is_read_as_a_network_and_a_wrong_one_is_refused_on_the_page(tab, tmp_path):
    good, bad = tmp_path / "links.txt", tmp_path / "bad.graphml"
    nx.write_edgelist(nx.path_graph(5), good, data=False)
    bad.write_text("<graphml><evil/>")
    choices = {key: text for key, text in CHOICES.items() if key != "network.n"}
    tab.goto(f"/?{urlencode({**choices, 'network.name': 'file'})}")
    tab.locator("input[type=file]").first.set_input_files(bad)
    tab.wait_for_function("location.search.includes('bad.graphml')")
    tab.get_by_role("button", name="Run").click()
    line = tab.locator('[data-bm="notice"]')
    line.wait_for()
    assert "bad.graphml" in line.inner_text()
    tab.goto(f"/?{urlencode({**choices, 'network.name': 'file'})}")
    tab.locator("input[type=file]").first.set_input_files(good)
    tab.wait_for_function("location.search.includes('links.txt')")
    tab.get_by_role("button", name="Run").click()
    finished(tab)
    problem = bm.Problem.random(bm.networks.read(good), 5, 3, seed=2)
    result = bm.simulate(problem, "irs", horizon=40, replicates=2, seed=7)
    assert float(cells(tab)["irs"][2].replace(",", "")) == result.messages[:, -1].mean()
