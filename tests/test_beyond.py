"""What is asked beyond the paper, and that the answers are computed."""

import json

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.comparisons.intervals import mean_interval, paired_interval
from banditmesh.comparisons.presets import beyond as module
from banditmesh.comparisons.presets.beyond import beyond, contenders
from banditmesh.comparisons.presets.losses import losses

TINY = {"er": (10, 60), "dynamic-er": (30,)}


@pytest.fixture(scope="module")
def found():
    return beyond(horizons=TINY, replicates=3, instances=2, seed=4)


def test_a_short_run_is_the_beginning_of_a_long_one(found):
    for horizon in TINY["er"]:
        result = bm.simulate(bm.Problem.paper("er", 5), bm.FwA(4), horizon=horizon, replicates=3, seed=5)
        [one] = [one for one in found.answers if (one.network, one.horizon, one.protocol) == ("er", horizon, "fwa(4)")]
        assert np.array_equal(one.regret[1], result.regret[:, -1])
        assert np.array_equal(one.messages[1], result.transmissions[:, -1])


def test_every_network_has_fwa_flooding_and_the_contenders(found):
    table = found.table()
    for network, horizons in TINY.items():
        for horizon in horizons:
            rows = table[(table["network"] == network) & (table["horizon"] == horizon)].set_index("protocol")
            assert list(rows.index[:2]) == ["fwa(4)", "flooding(4)"]
            assert len(rows) == 2 + len(contenders(network))
            assert rows.loc["fwa(4)", ["regret_vs_fwa", "messages_vs_fwa"]].tolist() == [1.0, 1.0]
            assert (rows["meets"].iloc[:2] == "").all()
            assert set(rows["meets"].iloc[2:]) <= {"yes", "no", "unclear"}
            assert (rows["regret_low"] <= rows["regret"]).all()


def judged(regret, messages, horizons):
    """How a protocol is judged whose ends differ from (100, 1000) for FwA and (60, 3000) for Flooding."""
    noise = np.array([[-1.0, 0.0, 1.0]])

    def ends(regret, messages):
        return np.stack([regret + noise] * len(horizons), axis=2), np.full((1, 3, len(horizons)), messages)

    runs = {"fwa(4)": ends(100.0, 1000.0), "flooding(4)": ends(60.0, 3000.0), "new": ends(regret, messages)}
    return [one.meets for one in module._judge("er", horizons, runs, 0.95) if one.protocol == "new"]


def test_the_short_question_asks_for_less_of_both_than_fwa():
    assert judged(99.0, 999.0, (10,)) == ["yes"]
    assert judged(101.0, 999.0, (10,)) == ["no"]
    assert judged(99.0, 1001.0, (10,)) == ["no"]
    assert judged(100.0, 10.0, (10,)) == ["unclear"]


def test_the_long_question_asks_for_a_tenth_of_the_messages_and_less_regret_than_flooding():
    assert judged(59.0, 99.0, (10, 20)) == ["yes", "yes"]
    assert judged(61.0, 99.0, (10, 20)) == ["yes", "no"]
    assert judged(59.0, 101.0, (10, 20)) == ["yes", "no"]


def test_intervals_are_students_for_one_instance_and_pool_variances_for_several():
    values = np.random.default_rng(0).normal(size=(1, 9))
    assert np.allclose(mean_interval(values)[1:], paired_interval(values[0]))
    one = mean_interval(np.array([[0.0, 2.0], [100.0, 102.0]]))
    # Variances of 2 in both, four values, two degrees of freedom: 4.3027 * sqrt(2 / 4).
    assert one == pytest.approx((51.0, 51.0 - 3.0425, 51.0 + 3.0425), abs=1e-3)
    assert np.isnan(mean_interval(np.array([[1.0], [2.0]]))[1:]).all()


def test_command_prints_the_tables_and_the_verdicts(capsys, monkeypatch):
    monkeypatch.setattr(module, "HORIZONS", TINY)
    monkeypatch.setattr(beyond, "__kwdefaults__", {**beyond.__kwdefaults__, "horizons": TINY, "instances": 1})
    for as_json in (False, True):
        with pytest.raises(SystemExit) as stop:
            main(["compare", "--preset", "beyond", "--replicates", "2", *(["--json"] if as_json else [])])
        assert stop.value.code == 0
        out = capsys.readouterr().out
        if as_json:
            told = json.loads(out)
            assert told["rules"] == "sound"
            assert set(told["er"]) == {"10", "60"}
            assert {"mean", "low", "high"} == set(told["er"]["60"]["fwa(4)"]["regret"])
        else:
            assert "1 arm instances from seed 0, 2 seeds each" in out
            assert "dynamic-er, 30 rounds: met by" in out
            assert out.count("fwa(4) ") >= 3


def test_rises_are_paired_with_the_run_without_loss():
    some = {"er": [bm.NoCooperation(), bm.Flooding(4, emission=bm.Growth(0.5))]}
    found = losses(protocols=some, horizon=80, replicates=3, instances=2, seed=1)
    assert [(one.protocol, one.loss) for one in found.rows] == [
        (name, loss) for name in ("none", "flooding(4)+growth(0.5)") for loss in (0.0, 0.1, 0.3)
    ]
    assert all(one.rise == one.rise_low == one.rise_high == 0.0 for one in found.rows[:4])
    without, _, most = found.rows[3:]
    assert most.rise == pytest.approx(most.regret.mean() / without.regret.mean() - 1)
    assert most.rise_low < most.rise < most.rise_high
    assert most.messages.mean() < without.messages.mean()
    lossy = bm.simulate(
        bm.Problem.paper("er", 2), some["er"][1], horizon=80, replicates=3, seed=2, faults=bm.Faults(loss=0.3)
    )
    assert np.array_equal(most.regret[1], lossy.regret[:, -1])


def test_command_prints_what_loss_costs(capsys, monkeypatch):
    tiny = {"protocols": {"ba": [bm.IRS()]}, "horizon": 40, "instances": 1}
    monkeypatch.setattr(losses, "__kwdefaults__", {**losses.__kwdefaults__, **tiny})
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as stop:
            main(["compare", "--preset", "loss", "--replicates", "2", *options])
        assert stop.value.code == 0
        out = capsys.readouterr().out
        if options:
            assert set(json.loads(out)["ba"]["irs"]) == {"0", "0.1", "0.3"}
        else:
            assert "40 rounds, 1 arm instances" in out
            assert len([line for line in out.splitlines() if line.startswith("irs")]) == 3


@pytest.mark.parametrize("preset", [beyond, losses])
@pytest.mark.parametrize("wrong", [{"instances": None}, {"instances": 0}, {"replicates": 1.5}, {"seed": -1}])
def test_presets_refuse_wrong_numbers(preset, wrong):
    with pytest.raises(bm.errors.InputError, match=next(iter(wrong))):
        preset(**wrong)


def test_a_preset_refuses_other_settings(capsys):
    for option in (["--network", "ba"], ["--horizon", "9"], ["--loss", "0.1"], ["--against", "fwa"]):
        with pytest.raises(SystemExit) as stop:
            main(["compare", "--preset", "beyond", *option])
        captured = capsys.readouterr()
        assert stop.value.code == 2
        assert "--preset decides" in captured.err
        assert option[0] in captured.err
