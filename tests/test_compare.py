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
        assert table.loc[name, "messages"] == result.transmissions[:, -1].mean()
    assert table["messages_sd"].tolist() == [0.0, 0.0, 0.0]


def test_one_replicate_has_no_spread():
    one = bm.compare(common_arms(nx.cycle_graph(5)), PROTOCOLS, horizon=5, replicates=1, seed=2, engine="reference")
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


def test_one_protocol_alone_is_compared_too():
    problem = common_arms(nx.cycle_graph(5))
    for one in (bm.FwA(4), "fwa(4)", ["fwa(4)"], {"protocol": "fwa(4)"}):
        assert list(bm.compare(problem, one, horizon=3, replicates=1, seed=0, engine="reference").results) == ["fwa"]


def test_pairs_with_policies_meet_the_same_rewards():
    problem = common_arms(nx.cycle_graph(5))
    settings = {"horizon": 9, "replicates": 2, "seed": 3, "engine": "reference"}
    pairs = [("irs", bm.UCB()), ("irs", bm.UCB(alpha=1.0)), (bm.FwA(2), bm.KLUCB())]
    found = bm.compare(problem, pairs, **settings)
    assert list(found.results) == ["irs, UCB(alpha=3.0)", "irs, UCB(alpha=1.0)", "fwa, klucb"]
    for (protocol, policy), result in zip(pairs, found.results.values(), strict=True):
        assert result == bm.simulate(problem, protocol, policy=policy, **settings)


def test_configurations_differ_in_all_that_pairs_allow():
    problem = common_arms(nx.cycle_graph(5))
    settings = {"horizon": 9, "replicates": 2, "seed": 3, "engine": "reference"}
    lossy = {"protocol": "fwa(2)", "faults": bm.Faults(loss=0.5)}
    found = bm.compare(problem, ["fwa(2)", lossy, {"protocol": "fwa(2)", "rules": "published"}], **settings)
    assert list(found.results) == ["fwa", f"fwa, faults {bm.Faults(loss=0.5)}", "fwa, rules published"]
    named = bm.compare(problem, {"calm": "fwa(2)", "stormy": lossy}, **settings)
    assert list(named.results) == ["calm", "stormy"]
    assert named.results["stormy"] == bm.simulate(problem, "fwa(2)", faults=bm.Faults(loss=0.5), **settings)
    assert named.differences("calm").index.tolist() == ["stormy"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "at least one"),
        ({}, "at least one"),
        (4, "must be a list"),
        ([bm.UCB()], "must be such as"),
        ([{"protocol": "irs", "seed": 1}], "takes protocol, policy, rules, faults, every, trim; got 'seed'"),
        ([{"protocol": "irs", "polcy": bm.UCB()}], "did you mean 'policy'"),
        ([{"policy": bm.UCB()}], "needs a protocol"),
        ({1: "irs"}, "must be words"),
        (["irs", bm.IRS()], "the same one twice"),
        ([("irs", bm.UCB()), ("irs", bm.UCB())], "the same one twice"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, words):
    with pytest.raises(bm.InputError, match=words):
        bm.compare(common_arms(nx.cycle_graph(5)), given)


def test_frames_and_datasets_hold_every_protocol(comparison):
    frame = comparison.to_dataframe()
    assert len(frame) == 3 * 3 * 20
    last = frame[(frame["protocol"] == "irs") & (frame["round"] == 20)]
    assert last["regret"].tolist() == comparison.results["irs"].regret[:, -1].tolist()
    data = comparison.to_xarray()
    assert data["protocol"].values.tolist() == ["none", "irs", "flooding"]
    assert data["regret"].dims == ("protocol", "replicate", "round")
    np.testing.assert_array_equal(data["regret"].sel(protocol="irs"), comparison.results["irs"].regret)
    assert data.attrs["seed"] == 2
    assert "protocol_name" not in data.attrs


def test_ten_replicates_are_the_default_as_on_the_command_line():
    one = bm.compare(common_arms(nx.cycle_graph(5)), "irs", horizon=2, seed=0, engine="reference")
    assert one.results["irs"].replicates == 10


def test_the_worst_agent_and_quantiles_are_in_the_table_on_request(comparison):
    table = comparison.table(agents=True)
    assert table.columns.tolist()[4:] == ["agent_median", "agent_q90", "agent_worst"]
    regrets = comparison.results["none"].agent_regret
    assert table.loc["none", "agent_worst"] == pytest.approx(regrets.max(axis=1).mean())
    assert table.loc["none", "agent_median"] == pytest.approx(np.median(regrets, axis=1).mean())
