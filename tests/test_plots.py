"""Pictures: every protocol keeps its colour, nothing is clipped, and the settings of the process stay as they were."""

import itertools

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh import plots
from banditmesh.plots.style import style_of
from banditmesh.studies.pictures import draw_study
from studies import SPEC

ROUNDS = np.arange(1, 301)
NAMES = ["none", "irs", "gossip", "probabilistic", "fwa", "flooding"]


def curves(names=NAMES, replicates=3):
    grow = np.arange(1, replicates + 1)[:, None] * ROUNDS
    return {name: (ROUNDS, grow * (k + 1.0), grow * 1000 * k) for k, name in enumerate(names)}


def figures():
    grid = nx.grid_2d_graph(3, 3)
    places = np.array(list(grid.nodes), dtype=float)
    links = np.array([[list(grid).index(i), list(grid).index(j)] for i, j in grid.edges])
    loads = {name: np.arange(len(links)) * (k + 1.0) for k, name in enumerate(["probabilistic", "fwa", "flooding"])}
    ends = {name: (np.array([1e5, 2e5]) * k, np.array([9.0, 8.0])) for k, name in enumerate(NAMES)}
    fit = ("fwa", np.arange(5.0), np.arange(5.0) ** 2, (4.0, -2.0), 0.93)
    series = {"fwa, ttl 2": ([1, 2], [[3.0, 4.0]] * 2, [[5, 6]] * 2), "flooding": ([1, 2], [[3.0]] * 2, [[5]] * 2)}
    return {
        "curves": plots.regret_and_messages(curves()),
        "long names": plots.regret_and_messages(curves([f"flooding(8)+growth(0.25, echoes={k})" for k in range(6)])),
        "one curve": plots.regret_and_messages(curves(["fwa"], replicates=1)),
        "networks": plots.by_network({name: curves() for name in ("er", "ba", "sbm")}),
        "load": plots.link_load({"er": {name: (ROUNDS, one[1]) for name, one in curves().items()}}),
        "heat": plots.heat_network(loads, 9, links, places, watched=(0, 1)),
        "tradeoff": plots.tradeoff({"er": ends, "ba": ends}),
        "delta": plots.against_delta({"one": fit, "two": fit, "three": fit}),
        "key": plots.over_key("protocol.ttl", series),
        "trajectory": plots.trajectory([0, 5], [links, links[:2]], places),
    }


@pytest.fixture(scope="module")
def drawn():
    return figures()


def test_nothing_is_cut_off_at_the_edge(drawn):
    for name, figure in drawn.items():
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        width, height = figure.get_size_inches()
        assert box.x0 >= -0.01, name
        assert box.y0 >= -0.01, name
        assert box.x1 <= width + 0.01, name
        assert box.y1 <= height + 0.01, name


def test_labels_of_an_axis_do_not_overlap(drawn):
    for name, figure in drawn.items():
        figure.draw_without_rendering()
        for axes in figure.axes:
            if not axes.axison:
                continue
            low, high = axes.get_xlim()
            ticks = [label for label in axes.get_xticklabels() if label.get_text()]
            boxes = [label.get_window_extent() for label in ticks if low <= label.get_position()[0] <= high]
            for one, two in itertools.pairwise(boxes):
                assert one.x1 <= two.x0, name


def test_text_is_legible_at_a_columns_width(drawn):
    for name, figure in drawn.items():
        assert figure.get_figwidth() <= 7.01, name
        for text in figure.findobj(mpl.text.Text):
            assert not text.get_text() or text.get_fontsize() >= 7 or "times" in text.get_text(), (name, text)


def test_a_protocol_has_the_same_colour_in_every_figure(drawn):
    for name in ("curves", "networks", "load"):
        for axes in drawn[name].axes:
            colours = {line.get_label(): line.get_color() for line in axes.lines}
            assert colours["fwa"] == "#D55E00"
            assert len(set(colours.values())) == len(colours)


def test_variants_share_a_colour_and_differ_in_their_lines():
    names = ["fwa, ttl 2", "fwa, ttl 4", "Mine(3)", "Mine(4)", "flooding"]
    styles = [style_of(name, names) for name in names]
    assert styles[0][0] == styles[1][0] == style_of("fwa", names)[0]
    assert styles[0][1] != styles[1][1]
    assert styles[2][0] != styles[3][0]


def test_bands_are_stated_only_where_there_are_some(drawn):
    assert "one standard deviation" in drawn["curves"].get_supxlabel()
    assert drawn["one curve"].get_supxlabel() == ""


def test_a_long_curve_is_thinned_but_keeps_its_ends():
    rounds = np.arange(1, 100_001)
    figure = plots.regret_and_messages({"fwa": (rounds, rounds[None] * 1.0, rounds[None])})
    x = figure.axes[0].lines[0].get_xdata()
    assert len(x) <= 250
    assert (x[0], x[-1]) == (1, 100_000)


def test_drawing_leaves_the_settings_of_the_process_alone():
    before = dict(mpl.rcParams)
    figures()
    assert dict(mpl.rcParams) == before


def test_the_same_figure_gives_the_same_files(drawn, tmp_path):
    one = plots.save(drawn["heat"], tmp_path / "one")
    two = plots.save(drawn["heat"], tmp_path / "two")
    assert [path.suffix for path in one] == [".png", ".svg"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_a_study_is_drawn_over_time_over_a_key_and_as_tradeoff(tmp_path):
    study = bm.run_study(bm.parse_spec(SPEC), tmp_path / "study", workers=1)
    names = {path.name for path in draw_study(study, tmp_path / "out")}
    assert names == {
        f"{stem}.{kind}" for stem in ("tradeoff", "over-protocol.ttl", "over-time") for kind in ("png", "svg")
    }
    names = {path.name for path in draw_study(study, tmp_path / "out", "policy.alpha")}
    assert "over-policy.alpha.svg" in names
    with pytest.raises(bm.InputError, match="--x must be a swept key"):
        draw_study(study, tmp_path / "out", "network.n")


@pytest.fixture(scope="module")
def comparison():
    problem = bm.Problem.random(bm.networks.path(4), n_arms=4, per_agent=2, seed=0)
    return bm.compare(
        problem, [bm.IRS(), bm.Flooding(3)], horizon=9, replicates=2, seed=0, link_traffic=True, record_every=4
    )


def test_a_comparison_draws_tradeoff_links_and_network(comparison):
    assert comparison.plot("tradeoff").axes[0].get_xscale() == "log"
    links = comparison.plot("links")
    assert links.axes[0].get_title() == "link 1-2"
    assert links.axes[0].lines[0].get_ydata().tolist() == [2.0, 2.0, 2.0]
    heat = comparison.plot_network()
    loads = heat.axes[0].collections[0].get_array()
    assert loads.tolist() == [2.0, 2.0, 2.0]


def test_link_pictures_need_link_traffic():
    problem = bm.Problem.random(bm.networks.path(4), n_arms=4, per_agent=2, seed=0)
    plain = bm.compare(problem, [bm.IRS()], horizon=3, seed=0)
    for draw in (lambda: plain.plot("links"), plain.plot_network):
        with pytest.raises(bm.InputError, match="link_traffic=True"):
            draw()
    with pytest.raises(bm.InputError, match="kind must be one of"):
        plain.plot("pie")
