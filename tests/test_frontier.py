"""The frontier: what is combined, what it costs, what nothing beats, and what is recommended."""

import dataclasses
import json
import re

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.comparisons.configurations import COSTS, Configuration, Frontier
from banditmesh.comparisons.frontier import combine, default_ttls
from banditmesh.comparisons.shown import frontier_rows
from banditmesh.live.config import load
from banditmesh.networks.csr import as_links
from banditmesh.networks.distances import diameter
from banditmesh.protocols.notation import write

RING = bm.Problem.random(nx.cycle_graph(8), n_arms=6, per_agent=3, seed=0)
SETTINGS = {"horizon": 60, "replicates": 3, "seed": 1}


@pytest.fixture(scope="module")
def found():
    protocols = [bm.NoCooperation, bm.IRS, bm.FwA, bm.Flooding, bm.Centralised]
    return bm.frontier(
        RING,
        protocols=protocols,
        ttls=[2, 4],
        emissions=[bm.EveryPull(), bm.Growth(1.0)],
        engine="reference",
        **SETTINGS,
    )


def made_up(*rows, **budget):
    """A frontier with these regrets, messages and loads, the same in two replicates."""
    ones = np.ones(2)
    configurations = tuple(
        Configuration(name, bm.Flooding(4), regret * ones, messages * ones, load * ones, load * ones, messages * ones)
        for name, regret, messages, load in rows
    )
    settings = {"max_messages_per_round": None, "max_link_load": None, "tolerance": 0.05, "confidence": 0.95} | budget
    return Frontier(configurations, "made up", horizon=10, replicates=2, seed=0, rules="sound", faults="", **settings)


def test_classes_are_combined_with_ttls_and_emissions_and_protocols_stand_as_they_are(found):
    assert [one.name for one in found.configurations] == [
        "none",
        "irs",
        "irs+growth(1)",
        *("fwa(2)", "fwa(2)+growth(1)", "fwa(4)", "fwa(4)+growth(1)"),
        *("flooding(2)", "flooding(2)+growth(1)", "flooding(4)", "flooding(4)+growth(1)"),
        "centralised",
    ]
    some = [bm.Gossip(3, fanout=2), bm.FwA(2), bm.FwA]
    assert list(combine(RING, some, [2], [bm.EveryPull()])) == ["gossip(3, fanout=2)", "fwa(2)"]


def test_trees_are_left_out_where_the_memory_does_not_work_with_them():
    window = bm.UCB(memory=bm.Window(5))
    for policy in (window, "ucb+window(5)", [window] * RING.n_agents):
        assert not any(name.startswith("tree") for name in combine(RING, policy=policy, loses=True))
    assert list(combine(RING, policy="ucb+discount(0.9)")) == list(combine(RING))
    found = bm.frontier(RING, horizon=3, replicates=1, seed=0, ttls=2, policy="ucb+window(5)", engine="reference")
    assert not any(one.name.startswith("tree") for one in found.configurations)
    with pytest.raises(bm.InputError, match="'tree' merges statistics of all rounds"):
        bm.frontier(RING, horizon=3, replicates=1, seed=0, protocols="tree+growth(0.1)", policy=window)


def test_where_transmissions_are_lost_echoes_are_tried():
    plain, lossy = (set(combine(RING, loses=loses)) for loses in (False, True))
    added = lossy - plain
    assert plain < lossy
    assert all("echoes=" in name for name in added)
    assert {"tree+growth(0.05, echoes=1)", "fwa(4)+growth(0.25, echoes=1)", "irs+growth(0.25, echoes=1)"} <= added


@pytest.mark.parametrize(
    ("faults", "loses"),
    [
        (bm.Faults(), False),
        (bm.Faults(delay=1), False),
        (bm.Faults(loss=0.1), True),
        (bm.Faults(outages=bm.Outages(0.1, 0.1)), True),
        (bm.Faults(outages=bm.Outages(0.0, 0.1)), False),
        (bm.Faults(link_cap=1), True),
    ],
    ids=str,
)
def test_faults_know_whether_they_lose_something(faults, loses):
    assert faults.loses is loses


def test_measures_are_those_of_a_simulation(found):
    result = bm.simulate(RING, bm.FwA(4), link_traffic=True, engine="reference", **SETTINGS)
    one = found["fwa(4)"]
    assert np.array_equal(one.regret, result.regret[:, -1])
    assert np.array_equal(one.messages_per_round, result.transmissions[:, -1] / 60)
    assert np.array_equal(one.bytes_per_round, 24 * one.messages_per_round)
    per_link = result.link_traffic.sum(axis=1)
    assert np.allclose(one.link_load, per_link.max(axis=1) / 60)
    # Sixty rounds in fifty windows at most: two rounds each.
    windows = result.link_traffic.reshape(3, 30, 2, -1).sum(axis=2) / 2
    assert np.allclose(one.link_peak, windows.max(axis=(1, 2)))
    assert (one.link_peak >= one.link_load).all()


def test_instant_sharing_on_a_ring_loads_every_link_by_one(found):
    assert found["irs"].messages_per_round.tolist() == [16.0] * 3
    assert found["irs"].link_load.tolist() == found["irs"].link_peak.tolist() == [1.0] * 3


def test_results_depend_on_the_seed_alone(found):
    again = bm.frontier(RING, protocols=[bm.FwA(4)], engine="reference", **SETTINGS)
    assert np.array_equal(again["fwa(4)"].regret, found["fwa(4)"].regret)
    drawn = bm.frontier(RING, protocols=[bm.IRS(), bm.FwA(2)], horizon=3, replicates=1, engine="reference")
    assert drawn.seed != 1


def test_front_holds_what_nothing_beats():
    one = made_up(("a", 100, 1, 9), ("b", 50, 2, 8), ("c", 60, 3, 1), ("d", 50, 4, 7), ("e", 10, 5, 6), ("f", 10, 5, 6))
    assert one.front == ("a", "b", "e")
    assert one.fronts["link_load"] == ("c", "e")


def test_front_of_a_simulation_is_that_of_pairwise_comparison(found):
    table = found.table().drop("centralised")
    for cost, front in found.fronts.items():
        for name, row in table.iterrows():
            no_worse = table[(table["regret"] <= row["regret"]) & (table[cost] <= row[cost])]
            beaten = ((no_worse["regret"] < row["regret"]) | (no_worse[cost] < row[cost])).any()
            if beaten:
                assert name not in front
            else:
                assert (no_worse.index == name).any()
                assert name in front or len(no_worse) > 1
    assert "centralised" not in found.front


def test_recommended_has_the_fewest_messages_among_the_best_within_the_budget():
    rows = ("a", 100, 1, 9), ("b", 52, 2, 8), ("c", 50, 30, 1), ("d", 10, 50, 2)
    assert made_up(*rows).recommended == "d"
    assert made_up(*rows, max_messages_per_round=40).recommended == "b"
    assert made_up(*rows, max_messages_per_round=40, tolerance=0.0).recommended == "c"
    assert made_up(*rows, max_messages_per_round=40, max_link_load=3).recommended == "c"
    assert made_up(*rows, max_link_load=2).recommended == "d"


def test_a_budget_is_met_by_the_upper_end_of_the_interval():
    one = made_up(("a", 10, 1, 1))
    spread = np.array([0.9, 1.1])
    wide = Configuration("wide", bm.Flooding(4), 10 + spread, spread, spread, spread, spread)
    both = Frontier(
        (*one.configurations, wide), "made up", 10, 2, 0, "sound", "", 1.0, None, tolerance=0.5, confidence=0.95
    )
    assert both.within_budget("a")
    assert not both.within_budget("wide")


def test_without_a_configuration_in_the_budget_the_nearest_is_named():
    rows = ("a", 100, 8, 9), ("b", 52, 16, 3)
    one = made_up(*rows, max_messages_per_round=4, max_link_load=1)
    assert one.recommended is None
    assert one.nearest == "b"
    assert "No configuration" in one.advice
    assert "nearest is b, beyond it by a factor of 4" in one.advice
    assert one.to_json()["nearest"] == "b"


def test_the_nearest_to_the_budget_is_shown_only_where_nothing_is_recommended():
    spread = np.array([0.5, 1.5])
    wide = Configuration("wide", bm.Flooding(4), 10 * np.ones(2), spread, np.ones(2), np.ones(2), spread)
    both = dataclasses.replace(made_up(("narrow", 20, 1.2, 1)), max_messages_per_round=10.0)
    both = dataclasses.replace(both, configurations=(*both.configurations, wide))
    assert (both.recommended, both.nearest) == ("wide", "narrow")
    assert [row[0] for row in frontier_rows(both)] == ["configuration", "wide"]
    tight = dataclasses.replace(both, max_messages_per_round=1.0)
    assert [row[0] for row in frontier_rows(tight)] == ["configuration", "wide", "narrow"]


def test_agents_on_their_own_are_never_recommended(found):
    tight = bm.frontier(
        RING, protocols=[bm.NoCooperation, bm.IRS()], max_messages_per_round=1, engine="reference", **SETTINGS
    )
    assert tight.within_budget("none")
    assert tight.recommended is None
    assert tight.nearest == "irs"
    alone = bm.frontier(RING, protocols=[bm.NoCooperation], engine="reference", **SETTINGS)
    assert alone.recommended is alone.nearest is None
    assert "no configuration sends" in alone.advice


def test_tables_agree_with_each_other(found):
    table, long, told = found.table(), found.to_dataframe(), json.loads(json.dumps(found.to_json()))
    assert len(long) == 3 * len(table)
    for measure in ("regret", *COSTS, "link_peak"):
        means = long.groupby("configuration")[measure].mean()
        assert np.allclose(means[table.index], table[measure])
        for name in table.index:
            cell = told["configurations"][name][measure]
            assert [cell["mean"], cell["low"], cell["high"]] == [
                table.loc[name, f"{measure}{end}"] for end in ("", "_low", "_high")
            ]
    assert table["messages_per_round"].is_monotonic_increasing
    assert (table["regret_low"] <= table["regret"]).all()
    assert set(table.index[table["front"]]) == set(found.front) == set(told["fronts"]["messages_per_round"])
    assert told["configurations"]["fwa(2)+growth(1)"]["emission"] == "growth(1)"


def test_one_replicate_has_no_intervals():
    one = bm.frontier(RING, protocols=[bm.IRS], horizon=10, replicates=1, seed=0, engine="reference")
    assert one.table()[["regret_low", "messages_per_round_high"]].isna().all(axis=None)
    assert one.to_json()["configurations"]["irs"]["regret"]["low"] is None
    assert one.recommended is not None


def test_plot_shows_three_costs_and_the_budget(found, tmp_path):
    figure = found.plot()
    assert [axes.get_xlabel().replace("\n", " ") for axes in figure.axes] == list(COSTS.values())
    figure.savefig(tmp_path / "x.svg")
    bm.frontier(
        RING, protocols=[bm.NoCooperation], max_link_load=1, horizon=5, seed=0, engine="reference"
    ).plot().savefig(tmp_path / "y.png")
    listed = [text.get_text() for text in figure.legends[-1].get_texts()]
    assert [line.split("  ")[1].partition(":")[0] for line in listed] == [
        name for name in found.front if name != "none"
    ]


def test_progress_is_told_over_all_configurations():
    seen = []
    bm.frontier(
        RING,
        protocols=[bm.IRS(), bm.FwA(2)],
        horizon=20,
        replicates=2,
        seed=0,
        engine="reference",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (80, 80)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"max_link_load": 0}, "max_link_load must be a positive number"),
        ({"max_messages_per_round": "many"}, "max_messages_per_round must be a positive number"),
        ({"tolerance": -1}, "tolerance"),
        ({"confidence": 2}, "confidence"),
        ({"ttls": [0]}, "ttl must be an integer of at least 1"),
        ({"ttls": [], "protocols": [bm.IRS, bm.FwA]}, "ttls must hold at least one, got none; leave it out"),
        ({"emissions": []}, "emissions must hold at least one"),
        ({"protocols": []}, "protocols must hold at least one"),
        ({"workers": "two"}, "workers must be an integer of at least 1"),
        ({"prune": "yes"}, "prune must be True, False or None, got 'yes'"),
        ({"record_every": 2}, "frontier chooses record_every itself, got 2; leave it out"),
        ({"notice": 3}, "notice must be a callable or None, got 3"),
        ({"protocols": [4]}, "protocols must be protocols"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(bm.InputError, match=words):
        bm.frontier(RING, **{"protocols": [bm.FwA], **settings})


@pytest.mark.parametrize(
    "graph, longest",
    [
        (nx.path_graph(9), 8),
        (nx.complete_graph(5), 1),
        (nx.empty_graph(3), 0),
        (nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(10)), 5),
        (nx.path_graph(2500), 2499),
        (nx.star_graph(2500), 2),
    ],
)
def test_diameter(graph, longest):
    assert diameter(as_links(graph)[1]) == longest


def test_ttls_come_from_the_diameter():
    def ttls(graph):
        return default_ttls(bm.Problem.random(graph, n_arms=2, per_agent=1, seed=0))

    assert ttls(nx.path_graph(100)) == (2, 25, 50, 99)
    assert ttls(nx.complete_graph(4)) == ttls(nx.empty_graph(4)) == (1,)
    assert ttls(nx.star_graph(4)) == (2,)
    assert default_ttls(bm.Problem.paper("dynamic-er")) == (2, 3, 4)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["frontier", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture
def ring(tmp_path):
    path = tmp_path / "ring.txt"
    path.write_text("".join(f"{v} {(v + 1) % 8}\n" for v in range(8)))
    return path


def test_command_prints_the_table_and_the_advice(capsys, ring, tmp_path):
    options = ["--arms", 6, "--per-agent", 3, "--horizon", 40, "--replicates", 2, "--emissions", "every-pull,growth(1)"]
    picture = tmp_path / "frontier.png"
    code, out, _ = run(capsys, "--network", ring, *options, "--max-messages-per-round", 20, "--all", "--out", picture)
    assert code == 0
    lines = out.splitlines()
    assert lines[1] == "horizon 40, 2 replicates, seed 0, sound rules"
    assert len([line for line in lines if line.startswith("flooding(")]) == 4
    assert any(line.endswith("<- take") for line in lines)
    assert any(line.endswith("over") for line in lines)
    assert lines[-1].startswith("For at most 20 transmissions per round take ")
    assert picture.stat().st_size > 10_000


def test_command_and_library_give_the_same(capsys, ring, tmp_path):
    options = ["--arms", 6, "--per-agent", 3, "--horizon", 40, "--replicates", 2, "--max-link-load", 0.01, "--ttl", "2"]
    more = ["--protocols", "irs,fwa,flooding(3)+contested", "--emissions", "growth(0.5)", "--json"]
    code, out, _ = run(capsys, "--network", ring, *options, *more)
    assert code == 0
    library = bm.frontier(
        RING,
        protocols=[bm.IRS, bm.FwA, bm.Flooding(3, emission=bm.Contested())],
        ttls=[2],
        emissions=[bm.Growth(0.5)],
        horizon=40,
        replicates=2,
        seed=0,
        max_link_load=0.01,
    )
    assert json.loads(out) == {"ring": json.loads(json.dumps(library.to_json()))}


def test_faults_are_passed_on_and_told(capsys, ring):
    options = ["--arms", 6, "--per-agent", 3, "--horizon", 20, "--replicates", 2, "--protocols", "irs", "--loss", 1]
    code, out, _ = run(capsys, "--network", ring, *options, "--emissions", "every-pull")
    assert code == 0
    assert "loss=1" in out.splitlines()[2]
    silent = bm.simulate(RING, bm.NoCooperation(), horizon=20, replicates=2, seed=0).regret[:, -1].mean()
    assert f" {silent:,.1f} " in next(line for line in out.splitlines() if line.startswith("irs"))


def test_live_frontier_tries_only_what_runs_live(capsys, ring, tmp_path):
    options = ["--arms", 6, "--per-agent", 3, "--horizon", 20, "--replicates", 2, "--loss", 0.1, "--live"]
    code, out, _ = run(capsys, "--network", ring, *options, "--json")
    assert code == 0
    found = json.loads(out)["ring"]
    names = set(found["configurations"])
    assert {"none", "irs", "fwa(2)+growth(0.25)", "gossip(4)"} <= names
    assert not [name for name in names if "tree" in name or "contested" in name or "echoes" in name]
    (tmp_path / "node.toml").write_text(
        f'mesh = "m"\nnode = "n"\nplain = true\narms = []\n{found["node_toml"]}', encoding="utf-8"
    )
    assert write(load(tmp_path / "node.toml").protocol) == found["recommended"]
    code, out, _ = run(capsys, "--network", ring, *options)
    assert out.endswith(f"\nIn node.toml:\n\n{found['node_toml']}")


@pytest.mark.parametrize(
    "named",
    [
        ["--protocols", "tree"],
        ["--protocols", "fwa(2)+contested"],
        ["--emissions", "contested"],
        ["--policy", "ucb-v"],
    ],
)
def test_live_frontier_refuses_what_was_named_and_does_not_run_live(capsys, ring, named):
    code, _, err = run(capsys, "--network", ring, "--arms", 6, "--per-agent", 3, "--live", *named)
    assert code != 0
    assert "cannot run live" in err


def test_command_takes_a_spec(capsys, tmp_path):
    text = 'horizon = 20\nreplicates = 2\nnetwork = {name = "ring", n = 6}\narms = {n_arms = 4, per_agent = 2}\n'
    spec = tmp_path / "study.toml"
    spec.write_text(text + 'sweep.protocol = ["irs", "fwa(2)+growth(1)"]')
    code, out, _ = run(capsys, spec, "--json")
    assert code == 0
    assert set(json.loads(out)["ring"]["configurations"]) == {"irs", "fwa(2)+growth(1)"}
    spec.write_text(text)
    code, out, _ = run(capsys, spec, "--json")
    assert "flooding(3)+growth(0.25)" in json.loads(out)["ring"]["configurations"]
    _, out, _ = run(capsys, spec, "--json", "--protocols", "irs,fwa", "--ttl", "3", "--emissions", "growth(1)")
    assert set(json.loads(out)["ring"]["configurations"]) == {"irs+growth(1)", "fwa(3)+growth(1)"}
    spec.write_text(text + 'sweep.protocol = ["none", "fwa(2)"]')
    _, out, _ = run(capsys, spec, "--json", "--ttl", "3", "--emissions", "every-pull")
    assert set(json.loads(out)["ring"]["configurations"]) == {"none", "fwa(3)"}
    code, _, err = run(capsys, spec, "--arms", "3")
    assert code == 2
    assert "give a spec file or --arms" in err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--ttl", "2,far"], "--ttl must be integers"),
        (["--emissions", "shouting"], "emissions must be among"),
        (["--protocols", "fwa(0)"], "ttl must be an integer of at least 1"),
        (["--out", "x.gif"], "--out must name a"),
        (["--max-link-load", "-1"], "max_link_load must be a positive number"),
    ],
)
def test_wrong_use_is_one_line(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_one_protocol_ttl_or_emission_needs_no_list():
    assert list(combine(RING, "fwa", 2, "growth(0.25)")) == list(combine(RING, ["fwa"], [2], ["growth(0.25)"]))
    assert list(combine(RING, bm.FwA(3), emissions=bm.EveryPull())) == ["fwa(3)"]


def test_help_has_examples(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "banditmesh frontier --network my-network.graphml" in out


def test_the_picture_says_what_it_shows_and_no_more(found):
    title = found.plot().legends[0].get_title().get_text()
    assert "Problem(" not in title
    assert "UCB(alpha=3.0)" in title
    assert "circle: recommended" in title
    struck = dataclasses.replace(found, struck=bm.Faults(delay=2, outages=bm.Outages(0.01, 0.1, memory=False)))
    title = struck.plot().legends[0].get_title().get_text()
    assert "delay 2, outages (down 0.01, up 0.1, no memory)" in title.replace("\n", " ")
    broke = dataclasses.replace(found, max_link_load=1e-9)
    assert broke.recommended is None
    assert "bars: one standard deviation" in found.plot(band="sd").legends[0].get_title().get_text()
    assert "bars" not in found.plot(band="none", log="").legends[0].get_title().get_text()
    figure = broke.plot(figsize=(6.0, 5.0))
    assert not any("circle" in legend.get_title().get_text() for legend in figure.legends)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert (box.x0 >= -0.01, box.x1 <= 6.01, box.y1 <= 5.01) == (True, True, True)


def test_results_are_kept_pruned_and_paced_on_the_command_line(ring, tmp_path, capsys):
    options = ["--arms", 6, "--per-agent", 3, "--horizon", 40, "--replicates", 2, "--protocols", "none,irs,flooding(4)"]
    more = ["--keep", tmp_path / "kept", "--prune", "--all", "--rounds-per-second", 2, "--max-messages-per-second", 100]
    code, out, err = run(capsys, "--network", ring, *options, *more)
    assert code == 0
    assert "configurations would take about" in err
    assert "(100 a second) take " in out
    assert re.search(r"Left out early:.*\nflooding\(4\) +over the budget of 50 transmissions per round", out, re.DOTALL)
    n_kept = len(list((tmp_path / "kept").glob("*/*.json")))
    assert run(capsys, "--network", ring, *options, *more)[1] == out
    assert len(list((tmp_path / "kept").glob("*/*.json"))) == n_kept
