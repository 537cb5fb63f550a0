"""Protocols as texts wherever one is taken, and what notebooks and terminals show of each object."""

import networkx as nx
import pytest

import banditmesh as bm
from banditmesh.protocols.notation import write
from cases import common_arms
from studies import SPEC

PROBLEM = common_arms(nx.cycle_graph(5))
SETTINGS = {"horizon": 8, "seed": 1, "engine": "reference"}
TEXT = "fwa(2)+growth(0.25)"
PROTOCOL = bm.FwA(2, emission=bm.Growth(0.25))


def test_a_protocol_may_be_given_as_its_text_everywhere():
    assert bm.simulate(PROBLEM, TEXT, **SETTINGS) == bm.simulate(PROBLEM, PROTOCOL, **SETTINGS)
    assert bm.Simulation(PROBLEM, TEXT, horizon=8, seed=1).run() == bm.simulate(PROBLEM, PROTOCOL, **SETTINGS)
    assert bm.bounds(PROBLEM, TEXT).upper_sharp == bm.bounds(PROBLEM, PROTOCOL).upper_sharp
    assert bm.theory.delta(PROBLEM, "fwa(2)") == bm.theory.delta(PROBLEM, bm.FwA(2))
    assert bm.theory.traffic_bounds(PROBLEM, TEXT, 9) == bm.theory.traffic_bounds(PROBLEM, PROTOCOL, 9)
    assert str(bm.testing.check_protocol("none", compiled=False)).startswith("protocol 'none'")
    found = bm.frontier(PROBLEM, protocols=["irs", TEXT], emissions=["contested"], replicates=2, **SETTINGS)
    assert [one.name for one in found.configurations] == ["irs+contested", TEXT]


@pytest.mark.parametrize(
    "take",
    [
        lambda text: bm.simulate(PROBLEM, text),
        lambda text: bm.Simulation(PROBLEM, text),
        lambda text: bm.bounds(PROBLEM, text),
        lambda text: bm.compare(PROBLEM, [text]),
        lambda text: bm.frontier(PROBLEM, protocols=[text]),
        lambda text: bm.theory.delta(PROBLEM, text),
    ],
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fwaa(4)", "did you mean 'fwa'"),
        ("fwa(4)+growht(0.25)", "did you mean 'growth'"),
        ("gossip(4, fan_out=2)", "did you mean 'fanout'"),
        (4, "must be"),
    ],
)
def test_a_wrong_text_is_one_line_with_the_nearest_name(take, text, words):
    with pytest.raises(bm.InputError, match=words) as caught:
        take(text)
    assert "\n" not in str(caught.value)


def test_unknown_words_are_answered_with_the_nearest_one():
    with pytest.raises(bm.InputError, match="did you mean 'published'"):
        bm.simulate(PROBLEM, "irs", rules="publishd")
    with pytest.raises(bm.InputError, match=r"got 'zzz'$"):
        bm.simulate(PROBLEM, "irs", engine="zzz")


def test_every_label_tells_protocols_with_other_parameters_apart():
    results = [bm.simulate(PROBLEM, bm.FwA(ttl), **SETTINGS) for ttl in (2, 4)]
    assert [result.to_dataframe()["protocol"].unique().tolist() for result in results] == [["fwa(2)"], ["fwa(4)"]]
    frames = [bm.bounds(PROBLEM, bm.FwA(ttl)).to_dataframe() for ttl in (2, 4)]
    assert [frame["protocol"].unique().tolist() for frame in frames] == [["fwa(2)"], ["fwa(4)"]]
    assert bm.simulate(PROBLEM, PROTOCOL, **SETTINGS).label == write(PROTOCOL) == TEXT


def test_a_file_without_the_text_of_its_protocol_has_the_short_name_as_label():
    result = bm.simulate(PROBLEM, bm.FwA(2), **SETTINGS)
    del result.settings["protocol_text"]
    assert result.label == "fwa"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    spec = bm.parse_spec(SPEC)
    comparison = bm.compare(PROBLEM, ["none", "fwa(2)"], replicates=2, **SETTINGS)
    return {
        "problem": PROBLEM,
        "dynamic": bm.Problem.paper("dynamic-er"),
        "result": comparison.results["fwa"],
        "comparison": comparison,
        "frontier": bm.frontier(PROBLEM, protocols=["irs", "fwa(2)"], replicates=2, **SETTINGS),
        "bounds": bm.bounds(PROBLEM, "fwa(2)"),
        "study": bm.run_study(spec, tmp_path_factory.mktemp("study"), workers=1),
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("problem", ["<td>agents</td><td>5</td>", "Gaussian"]),
        ("dynamic", ["EdgeMarkovian", "50 Gaussian"]),
        ("result", ["fwa(2)", "worst agent"]),
        ("comparison", ["<td>none</td>", "<td>fwa</td>", "±"]),
        ("frontier", ["take", "&lt;- take", "busiest link"]),
        ("bounds", ["fwa(2)", "delta", "sharp"]),
        ("study", ["group regret", "<td>"]),
    ],
)
def test_notebooks_show_a_table(shown, name, words):
    html = shown[name]._repr_html_()
    for word in words:
        assert word in html
    assert html.count("<table ") == html.count("</table>") == 1


def test_names_cannot_break_what_a_notebook_shows():
    comparison = bm.compare(PROBLEM, {"<script>": "irs"}, replicates=2, **SETTINGS)
    assert "<script>" not in comparison._repr_html_()
    assert "&lt;script&gt;" in comparison._repr_html_()


def test_a_printed_comparison_is_its_table(shown):
    lines = str(shown["comparison"]).splitlines()
    assert lines[0].split() == ["protocol", "group", "regret", "transmissions", "first", "pulls"]
    assert [line.split()[0] for line in lines[1:]] == ["none", "fwa"]
    assert repr(shown["comparison"]) == "<Comparison: none, fwa; 2 x 8 rounds, seed 1>"


def test_a_comparison_of_one_replicate_says_why_it_has_no_spread():
    comparison = bm.compare(PROBLEM, "irs", replicates=1, **SETTINGS)
    assert str(comparison).splitlines()[-1].startswith("one replicate: no standard deviations")
    assert "one replicate" in comparison._repr_html_()


def test_dir_shows_public_names_only():
    assert set(dir(bm)) == {*bm.__all__, "__version__"}
