"""Pictures: every protocol keeps its colour, nothing is clipped, and the settings of the process stay as they were."""

import itertools

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import banditmesh as bm
from banditmesh import plots
from banditmesh.cli import cli
from banditmesh.plots import style
from banditmesh.plots.palette import style_of
from banditmesh.plots.sweeps import find_sweep
from banditmesh.studies import runner
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
    way = plots.Way("fwa(2)", 0, [(0, 1, "relayed", False), (0, 3, "lost", False), (1, 4, "absorbed", True)])
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
        "message": plots.draw_network(range(9), places, links, [0, 4, 8], "red", way=way),
        "flat network": plots.draw_network(
            ["a long name", "b"], places[[0, 3]], np.array([[0, 1]]), loads=np.array([2.0])
        ),
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
    names = {path.name for path in draw_study(study, tmp_path / "out", "policy.alpha", kinds=["svg"])}
    assert "over-policy.alpha.svg" in names
    with pytest.raises(bm.InputError, match=r"x \(--x\) must be a swept key"):
        draw_study(study, tmp_path / "out", "network.n")
    figure = study.plot("sweep", "protocol.ttl", figsize=(3.3, 4.0), log="xy", band="ci")
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in figure.axes} == {("log", "log")}
    assert "95 % confidence intervals" in figure.get_supxlabel()
    assert_fits(figure, (3.3, 4.0))
    assert study.plot().axes[0].get_xlabel() == "round"
    assert study.plot("tradeoff").axes[0].get_xlabel() == "transmissions"
    bare = bm.run_study(bm.parse_spec(SPEC.replace("record_every", "# ")), tmp_path / "bare", workers=1)
    with pytest.raises(bm.InputError, match="curves need a study with record_every"):
        bare.plot()


FIVE = """
horizon = 4
replicates = 2
engine = "reference"
record_every = 2
arms = {n_arms = 4, per_agent = 2}
[sweep]
network = [{name = "ring", n = 5}, {name = "path", n = 5}]
policy.alpha = [1.0, 3.0000001, 3.0000002]
protocol = {name = ["none", "fwa"], ttl = [1, 2]}
faults = [{}, {loss = 0.2}]
arms.seed = [0, 1]
"""
AT = {"network": "ring(n=5)", "faults": "none", "arms.seed": 0}


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """A study with five swept keys, in a few shards: reading a hundred takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_CHUNKS", 2)
        return bm.run_study(bm.parse_spec(FIVE), tmp_path_factory.mktemp("five"), workers=1)


def drawn_names(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_runs_of_a_study_are_chosen_and_told_apart(five):
    figure = five.plot("sweep", "protocol.ttl", where={**AT, "policy.alpha": "1"}, by="protocol")
    assert drawn_names(figure) == ["none", "fwa"]
    table = five.table()
    here = (table["network"] == "ring(n=5)") & (table["faults"] == "none") & (table["arms.seed"] == 0)
    here &= table["policy.alpha"] == 1.0
    means = [table[here & (table["protocol.ttl"] == ttl)]["regret"].mean() for ttl in (1, 2)]
    assert figure.axes[0].lines[-3].get_ydata().tolist() == pytest.approx(means)
    figure = five.plot("curves", where={**AT, "protocol": "fwa", "protocol.ttl": 2, "policy.alpha": [1, 3.0000001]})
    assert drawn_names(figure) == ["fwa, alpha 1", "fwa, alpha 3"]
    # What a few words do not tell apart is told in full, and never put into one band.
    figure = five.plot("tradeoff", where={**AT, "protocol": "fwa", "protocol.ttl": 2}, by="policy.alpha")
    assert drawn_names(figure) == ["policy.alpha 1.0", "policy.alpha 3.0000001", "policy.alpha 3.0000002"]


@pytest.mark.parametrize("kind", ["curves", "sweep", "tradeoff"])
def test_no_band_mixes_swept_values(five, kind):
    with pytest.raises(bm.InputError, match=r"a line must not mix swept values, got several of .*network.*arms\.seed"):
        five.plot(kind, by="protocol")
    with pytest.raises(
        bm.InputError, match=r"got several of arms\.seed in one; add them to by \(--by\), or choose one"
    ):
        five.plot(
            kind,
            "protocol.ttl",
            where={**AT, "arms.seed": [0, 1], "policy.alpha": 1},
            by=["protocol", *([] if kind == "sweep" else ["protocol.ttl"])],
        )


def test_choice_of_runs_that_is_no_dict_is_refused(five):
    with pytest.raises(bm.InputError, match=r"where must be a dict such as .*, got 'protocol=fwa'"):
        five.plot(where="protocol=fwa")


def test_more_lines_than_can_be_read_are_refused_with_what_to_choose(five):
    with pytest.raises(bm.InputError, match=r"can show 30 lines, and these would be 72; .* network \(2 values\), "):
        five.plot("tradeoff")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"where": {"netwrk": "ring(n=5)"}}, "where .* must be over keys of the study .*did you mean 'network'"),
        ({"where": {"network": "ring"}}, r"where .* network must be among ring\(n=5\), path\(n=5\) in these runs, got"),
        ({"where": {"policy.alpha": []}}, r"where .* policy\.alpha must be among 1, 3\.0000001, 3\.0000002 in these"),
        ({"where": {"protocol": "none", "protocol.ttl": 1}}, r"where .* protocol\.ttl must be among no value in these"),
        ({"by": "alpha"}, r"by \(--by\) must be over other keys of the study"),
        ({"kind": "sweep", "x": "protocol.ttl", "by": "protocol.ttl"}, r"by \(--by\) must be over other keys"),
    ],
)
def test_what_a_study_does_not_have_cannot_be_chosen(five, settings, line):
    with pytest.raises(bm.InputError, match=line):
        five.plot(**settings)


def test_command_line_chooses_runs_of_a_study(five, tmp_path):
    def plot(*options):
        command = ["plot", str(five.path), "--out", str(tmp_path), "--kind", "svg", *options]
        return CliRunner().invoke(cli, command, obj={})

    at = [option for key, value in AT.items() for option in ("--where", f"{key}={value}")]
    values = ("--where", "policy.alpha=1", "--where", "policy.alpha=3.0000001")
    done = plot(*at, *values, "--x", "protocol.ttl", "--by", "protocol", "--by", "policy.alpha")
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"tradeoff.svg", "over-protocol.ttl.svg", "over-time.svg"}
    assert isinstance(plot("--where", "network").exception, bm.InputError)
    assert "must not mix" in str(plot("--by", "protocol").exception)


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


# As users want them


def test_curves_are_drawn_on_the_users_axes(comparison):
    from matplotlib.figure import Figure

    figure = Figure()
    pair = figure.subplots(1, 2)
    assert comparison.plot(ax=pair) is figure
    assert [line.get_label() for line in pair[1].lines] == ["irs", "flooding"]
    one = Figure().subplots()
    assert comparison.plot("tradeoff", ax=one) is one.figure
    assert comparison.results["irs"].plot(ax=pair) is figure
    pair = Figure().subplots(1, 2)
    assert comparison.plot_network(ax=pair) is pair[0].figure
    assert [axes.get_title() for axes in pair] == ["irs", "flooding"]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"ax": "here"}, "ax must be 2 axes"),
        ({"figsize": 3}, "figsize must be width and height"),
        ({"figsize": (3, -1)}, "figsize must be a positive number"),
        ({"figsize": (3, 2), "ax": [1, 2]}, "ax and figsize exclude each other"),
        ({"log": "z"}, 'log must be "x", "y", "xy" or "" for none, got \'z\''),
        ({"band": "iqr"}, "band must be one of sd, ci, none"),
        ({"colors": ["redd"]}, "colors must be such as .*, got 'redd'"),
        ({"colors": 3}, "colors must be a list, or a dict from names, got 3"),
        ({"styles": {"irs": "~"}}, "styles must be such as .*, got '~'"),
    ],
)
def test_looks_that_cannot_be_are_refused(comparison, settings, words):
    with pytest.raises(bm.InputError, match=words):
        comparison.plot(**settings)


def test_bands_are_standard_deviations_or_confidence_intervals():
    values = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]])
    np.testing.assert_allclose(plots.Look().half_width(values), values.std(axis=0, ddof=1))
    wide = 4.302652729911275  # Student's t, 97.5 %, two degrees of freedom
    np.testing.assert_allclose(
        plots.Look(band="ci").half_width(values), wide * values.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-9
    )
    assert not plots.Look(band="none").half_width(values).any()
    figure = plots.regret_and_messages(curves(["fwa"]), plots.Look(band="ci"))
    assert "95 % confidence intervals" in figure.get_supxlabel()
    assert not plots.regret_and_messages(curves(["fwa"]), plots.Look(band="none")).axes[0].collections


def test_axes_are_logarithmic_on_request():
    figure = plots.regret_and_messages(curves(), plots.Look(log="xy"))
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in figure.axes} == {("log", "log")}
    figure.draw_without_rendering()


@pytest.mark.parametrize("size", [(3.3, 4.0), (7.0, 2.0)])
def test_a_size_is_kept_and_nothing_is_cut_off(comparison, size):
    assert_fits(plots.regret_and_messages(curves(), plots.Look(figsize=size)), size)
    assert_fits(comparison.plot_network(figsize=size), size)


def assert_fits(figure, size):
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert tuple(figure.get_size_inches()) == size
    assert box.x0 >= -0.01
    assert box.x1 <= size[0] + 0.01
    assert box.y1 <= size[1] + 0.01


POINTS = {"irs": (2.0, 1.0, 3.0, 9.0, 8.0, 10.0), "fwa(4)": (5.0, 4.0, 6.0, 7.0, 6.0, 8.0)}
PANELS = [plots.Panel(cost, POINTS, ["irs", "fwa(4)"]) for cost in ("transmissions", "load", "bytes")]


def test_the_frontier_is_drawn_on_the_users_axes():
    from matplotlib.figure import Figure

    one, three = Figure().subplots(), Figure().subplots(1, 3)
    for ax, axes in ((one, [one]), (three, three)):
        figure = plots.frontier(PANELS, "fwa(4)", "title", "note", plots.Look(ax, log="y"))
        assert figure is axes[0].figure
        assert [each.get_xlabel() for each in axes] == ["transmissions", "load", "bytes"][: len(axes)]
        assert {text.get_text() for text in axes[0].texts} == {"1", "2"}
        assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["1  irs", "2  fwa(4)"]
        assert (axes[0].get_xscale(), axes[0].get_yscale()) == ("linear", "log")
        assert not figure.legends
    with pytest.raises(bm.InputError, match="ax must be 3 axes"):
        plots.frontier(PANELS, None, "", "", plots.Look(Figure().subplots(1, 2)))


@pytest.mark.parametrize("values", [[0.02, 0.09], [30.0, 700.0], [1e3, 5e6]])
def test_logarithmic_labels_are_few_and_plain(values):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.plot([1, 2], values)
    style.logarithmic(axes, "y")
    axes.figure.draw_without_rendering()
    labels = [text.get_text() for text in axes.get_yticklabels(which="both") if text.get_text()]
    assert 2 <= len(labels) <= 12
    assert not [label for label in labels if label.endswith(("m", "µ")) or "times" in label]


def test_titles_of_a_narrow_network_do_not_overprint():
    names = ["flooding(8)+growth(0.25)", "tree+growth(0.05)", "flooding(4)"]
    places, links = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]), np.array([[0, 1], [1, 2]])
    loads = {name: np.array([1.0, 2.0]) for name in names}
    figure = plots.heat_network(loads, 3, links, places, look=plots.Look(figsize=(3.3, 4.0)))
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes[:3]]
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[k + 1 :])


def test_the_frontier_takes_any_size():
    assert_fits(plots.frontier(PANELS, "fwa(4)", "a title", "", plots.Look(figsize=(3.3, 4.0), log="x")), (3.3, 4.0))
    with mpl.rc_context({"figure.figsize": (6.0, 5.0)}):
        figure = plots.frontier(PANELS, "fwa(4)", "a title", "")
    assert_fits(figure, (6.0, 5.0))
    assert len(figure.axes) == 3


def test_words_leave_room_for_the_frontier_at_the_size_of_a_column():
    points = {f"flooding({k})+growth(0.25)": (2.0 + k, 1.0 + k, 3.0 + k, 50.0 - k, 30.0, 60.0) for k in range(1, 13)}
    points |= dict.fromkeys(("irs", "gossip", "fwa", "tree", "probabilistic"), (20.0, 19.0, 21.0, 70.0, 60.0, 80.0))
    panels = [plots.Panel("transmissions per round", points, [name for name in points if "+" in name])]
    title, note = "3000 agents, 8991 links, 500 arms, 40 per agent, 1000 rounds, sound rules", "mean of 3 replicates"
    look = plots.Look(figsize=(3.3, 4.0), log="x")
    figure = plots.frontier(panels, "flooding(12)+growth(0.25)", title, note, look)
    assert_fits(figure, (3.3, 4.0))
    assert figure.axes[0].get_position().height > 0.3
    listed = [text.get_text() for text in figure.legends[1].get_texts()]
    assert listed[-2].startswith("12  flooding(12)")
    assert listed[-1] == f"and {12 - len(listed) + 1} more"
    assert note in figure.legends[0].get_title().get_text()
    tall = plots.frontier(panels, None, title, note, plots.Look(figsize=(3.3, 9.0), log="x"))
    assert len(tall.legends[1].get_texts()) == 12
    assert "sound rules" in tall.legends[0].get_title().get_text().replace("\n", " ")


def test_bounds_are_drawn_on_linear_axes_on_request():
    rounds = np.arange(1, 11)
    bounds = {"upper bound": rounds * 9.0}
    [axes] = plots.regret_and_bounds("irs", rounds, rounds[None] * 0.5, bounds, plots.Look(log="")).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")


@pytest.mark.parametrize("backend, shown", [("TkAgg", True), ("agg", False), ("module://matplotlib_inline", False)])
def test_pyplot_shows_a_figure_where_there_are_windows(monkeypatch, backend, shown):
    from matplotlib import pyplot

    monkeypatch.setattr(mpl, "get_backend", lambda: backend)
    before = pyplot.get_fignums()
    plots.regret_and_messages(curves(["fwa"]))
    after = pyplot.get_fignums()
    for number in set(after) - set(before):
        pyplot.close(number)
    assert (len(after) > len(before)) == shown


def test_what_the_user_has_set_goes_first():
    with mpl.rc_context({"font.size": 14, "axes.labelsize": 15, "figure.figsize": (6.0, 5.0), "figure.dpi": 90}):
        figure = plots.regret_and_messages(curves(["fwa"]))
    assert figure.axes[0].yaxis.label.get_fontsize() == 15
    assert tuple(figure.get_size_inches()) == (6.0, 5.0)
    assert figure.dpi == 90


def test_fonts_are_embedded_as_outlines(tmp_path):
    figure = plots.regret_and_messages(curves(["fwa"]))
    figure.savefig(tmp_path / "x.pdf", metadata={"CreationDate": None})
    content = (tmp_path / "x.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/CIDFontType2" in content
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_many_values_of_a_sweep_are_coloured_by_value_in_a_panel_for_each_protocol():
    names = ["none", *(f"{name}, ttl {ttl}" for name in ("fwa", "flooding") for ttl in range(1, 11))]
    figure = plots.regret_and_messages(curves(names))
    panels = [axes for axes in figure.axes if axes.get_ylabel() != "ttl"]
    assert [axes.get_title() for axes in panels] == ["fwa", "flooding", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes].count("ttl") == 1
    assert all(len({str(line.get_color()) for line in axes.lines}) == 11 for axes in panels)
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["none"]


def test_points_of_a_sweep_are_coloured_by_value_too():
    names = [f"{name}, ttl {ttl}" for name in ("fwa", "flooding") for ttl in range(1, 11)]
    ends = {name: (np.array([1e5, 2e5]) * (k + 1), np.array([9.0, 8.0])) for k, name in enumerate(names)}
    figure = plots.tradeoff({"er": ends})
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["fwa", "flooding"]
    figure.draw_without_rendering()
    bar = figure.axes[1]
    assert bar.get_ylabel() == "ttl"
    assert all(tick.is_integer() for tick in bar.get_yticks())


@pytest.mark.parametrize(
    "names, key, panels",
    [
        ([f"fwa({ttl})+growth(0.25)" for ttl in range(1, 12)], "ttl", {"fwa+growth(0.25)"}),
        ([f"shy-hubs({k})" for k in range(1, 12)], "", {"shy-hubs"}),
        ([f"probabilistic(4, stop=0.{k})" for k in range(1, 10)], "stop", {"probabilistic(4)"}),
        ([f"user {name}" for name in "abcdefghij"], None, None),
        (["fwa, ttl 1", "fwa, ttl 2", "fwa, ttl 3"], None, None),
    ],
)
def test_sweeps_are_found_in_names(names, key, panels):
    sweep = find_sweep(names)
    assert (sweep is None) == (key is None)
    if sweep is not None:
        assert (sweep.key, set(sweep.panels.values())) == (key, panels)


def test_a_long_legend_leaves_the_panels_their_height():
    few, many = (plots.regret_and_messages(curves([f"mine-{k}x" for k in range(n)])) for n in (2, 20))
    for figure in (few, many):
        figure.draw_without_rendering()
    heights = [figure.axes[0].get_window_extent().height for figure in (few, many)]
    assert heights[1] > 0.8 * heights[0]


def test_titles_of_networks_do_not_overprint():
    names = ["flooding(4)+growth(0.25, echoes=1)", "probabilistic(4, stop=0.3)+contested", "gossip(4, fanout=2)", "irs"]
    places, links = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0, 1]])
    figure = plots.heat_network({name: np.array([1.0]) for name in names}, 2, links, places)
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes if axes.get_title()]
    assert len(boxes) == 4
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes, 2))


def test_colours_and_lines_are_the_users_if_there_are_some():
    lines = plots.regret_and_messages(curves(["fwa", "irs"]), plots.Look(colors=["red", "blue"])).axes[0].lines
    assert [line.get_color() for line in lines] == ["red", "blue"]
    assert [line.get_linestyle() for line in lines] == ["-", "-."]  # each protocol's own, as it was
    look = plots.Look(colors={"irs": "green"}, styles=":")
    lines = plots.regret_and_messages(curves(["fwa", "irs"]), look).axes[0].lines
    assert [line.get_color() for line in lines] == [style_of("fwa", ["fwa"])[0], "green"]
    assert [line.get_linestyle() for line in lines] == [":", ":"]


def test_cycle_of_the_users_settings_is_honoured():
    with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=["r", "g"], linestyle=["-", "--"])}):
        lines = plots.regret_and_messages(curves(["fwa", "irs", "none"])).axes[0].lines
        assert [(line.get_color(), line.get_linestyle()) for line in lines] == [("r", "-"), ("g", "--"), ("r", "-")]
        mine = plots.regret_and_messages(curves(["fwa"]), plots.Look(colors="k")).axes[0].lines[0]
        assert (mine.get_color(), mine.get_linestyle()) == ("k", "-")
    assert plots.regret_and_messages(curves(["fwa"])).axes[0].lines[0].get_color() == style_of("fwa", ["fwa"])[0]


def test_renamed_row_keeps_its_protocols_colour_and_marker():
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=0)
    rows = {"ours": "fwa(2)", "theirs": {"protocol": "fwa(2)", "rules": "published"}, "baseline": "none"}
    comparison = bm.compare(problem, rows, horizon=5, replicates=2, seed=0)
    ours, theirs, baseline = comparison.plot().axes[0].lines
    assert ours.get_color() == theirs.get_color() == style_of("fwa", ["fwa"])[0]
    assert ours.get_linestyle() != theirs.get_linestyle()
    assert baseline.get_color() == style_of("none", ["none"])[0]
    points = [line for line in comparison.plot("tradeoff").axes[0].lines if line.get_marker() == "o"]
    assert {line.get_color() for line in points} == {ours.get_color()}
    with pytest.raises(bm.InputError, match=r"colors must be for ours, theirs, baseline; got one for 'our'"):
        comparison.plot(colors={"our": "red"})


def test_bands_on_the_users_axes_are_explained_too():
    figure = mpl.figure.Figure()
    axes = figure.subplots(1, 2)
    plots.regret_and_messages(curves(["fwa"]), plots.Look(ax=axes, band="ci"))
    assert axes[0].get_legend().get_title().get_text() == "bands: 95 % confidence intervals"
    other = mpl.figure.Figure().subplots(1, 2)
    plots.regret_and_messages(curves(["fwa", "irs"]), plots.Look(ax=other))
    assert other[0].get_legend().get_title().get_text() == "bands: one standard deviation"
    assert [text.get_text() for text in other[0].get_legend().get_texts()] == ["fwa", "irs"]
