import json

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from cases import common_arms

PROTOCOLS = [bm.NoCooperation(), bm.IRS(), bm.Flooding(3)]


@pytest.fixture(scope="module")
def comparison():
    return bm.compare(common_arms(nx.cycle_graph(5)), PROTOCOLS, horizon=20, replicates=3, seed=2, engine="reference")


def test_results_are_those_of_single_simulations(comparison):
    assert list(comparison.results) == ["none", "irs", "flooding"]
    for protocol in PROTOCOLS:
        single = bm.simulate(
            common_arms(nx.cycle_graph(5)), protocol, horizon=20, replicates=3, seed=2, engine="reference"
        )
        assert comparison.results[protocol.name] == single


def test_table_has_means_and_standard_deviations_at_the_horizon(comparison):
    table = comparison.table()
    assert table.index.tolist() == ["none", "irs", "flooding"]
    assert table.columns.tolist() == ["regret", "regret_sd", "messages", "messages_sd"]
    for name, result in comparison.results.items():
        last = result.regret[:, -1]
        assert table.loc[name, "regret"] == pytest.approx(sum(last) / 3)
        assert table.loc[name, "regret_sd"] == pytest.approx(np.sqrt(((last - last.mean()) ** 2).sum() / 2))
        assert table.loc[name, "messages"] == result.messages[:, -1].mean()
    assert table["messages_sd"].tolist() == [0.0, 0.0, 0.0]


def test_one_replicate_has_no_spread():
    one = bm.compare(common_arms(nx.cycle_graph(5)), PROTOCOLS, horizon=5, seed=2, engine="reference")
    assert one.table()[["regret_sd", "messages_sd"]].isna().all(axis=None)
    assert one.to_json()["irs"]["regret"]["sd"] is None


def test_json_holds_the_table(comparison):
    values = json.loads(json.dumps(comparison.to_json()))
    table = comparison.table()
    for name in ("none", "irs", "flooding"):
        for what in ("regret", "messages"):
            assert values[name][what] == {"mean": table.loc[name, what], "sd": table.loc[name, f"{what}_sd"]}


def test_protocols_of_one_name_are_written_out():
    problem = common_arms(nx.cycle_graph(5))
    one = bm.compare(problem, [bm.FwA(2), bm.IRS(), bm.FwA(3)], horizon=3, seed=0, engine="reference")
    assert list(one.results) == ["fwa(2)", "irs", "fwa(3)"]


def test_a_seed_is_drawn_once_for_all_protocols():
    settings = {"horizon": 3, "engine": "reference"}
    one = bm.compare(common_arms(nx.cycle_graph(5)), PROTOCOLS, **settings)
    two = bm.compare(common_arms(nx.cycle_graph(5)), PROTOCOLS, **settings)
    assert len({result.seed for result in one.results.values()}) == 1
    assert one.results["irs"].seed != two.results["irs"].seed
    assert settings == {"horizon": 3, "engine": "reference"}


def test_settings_reach_the_simulations():
    one = bm.compare(
        common_arms(nx.cycle_graph(5)),
        PROTOCOLS,
        horizon=6,
        seed=0,
        rules="published",
        record_every=3,
        engine="reference",
    )
    assert {result.rules for result in one.results.values()} == {"published"}
    assert {tuple(result.rounds) for result in one.results.values()} == {(3, 6)}


def test_plot_has_a_line_for_each_protocol(comparison, tmp_path):
    figure = comparison.plot()
    assert [line.get_label() for line in figure.axes[0].lines] == ["none", "irs", "flooding"]
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 3
    figure.savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")
