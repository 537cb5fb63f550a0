"""Where no policy was chosen and all rewards are rates, the better ones are named: once."""

import warnings

import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.policies import choice

CLICKS = ["compare", "--network", "ring:5", "--catalogue", "who.csv", "--laws", "what.csv", "--protocols", "none"]
CLICKS += ["--horizon", "4", "--replicates", "2"]
STUDY = 'horizon = 3\nreplicates = 1\nengine = "reference"\nnetwork = {name = "ring", n = 4}\n'


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(choice, "_said", False)


def problem(*laws):
    return bm.Problem(bm.networks.ring(3), [range(len(laws))] * 3, laws)


RATES = [bm.arms.Bernoulli(0.01), bm.arms.Empirical([0.0, 0.25, 1.0])]


def said(*arguments, **settings):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        bm.simulate(*arguments, horizon=2, seed=0, engine="reference", **settings)
        bm.simulate(*arguments, horizon=2, seed=0, engine="reference", **settings)
    return [str(one.message) for one in found if one.category is bm.BanditmeshWarning]


def test_rates_without_a_policy_are_said_once(unsaid):
    [line] = said(problem(*RATES), "none")
    assert "KLUCB() or policy=ThompsonSampling()" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("laws", "settings"),
    [
        (RATES, {"policy": bm.UCB()}),
        ([*RATES, bm.arms.Gaussian(0.5, 1.0)], {}),
        ([*RATES, bm.arms.Empirical([-1.0, 1.0])], {}),
    ],
)
def test_a_chosen_policy_or_other_rewards_are_not(unsaid, laws, settings):
    assert said(problem(*laws), "none", **settings) == []


@pytest.mark.parametrize(("more", "notes"), [([], 1), (["--policy", "ucb"], 0), (["--protocols", "a2c-ucb"], 0)])
def test_the_command_line_says_it_on_standard_error(tmp_path, monkeypatch, capsys, more, notes):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "who.csv").write_text("agent,arm\n" + "".join(f"{v},ad{k}\n" for v in range(5) for k in range(2)))
    (tmp_path / "what.csv").write_text("arm,successes,trials\nad0,1,100\nad1,2,100\n")
    with pytest.raises(SystemExit) as ended:
        main([*CLICKS, *more])
    out, err = capsys.readouterr()
    assert ended.value.code == 0
    assert err.count("--policy klucb or --policy thompson") == notes
    assert "klucb" not in out


@pytest.mark.parametrize("verb", ["compare", "frontier"])
def test_a_spec_is_told_where_it_names_one(tmp_path, capsys, verb):
    (tmp_path / "spec.toml").write_text(STUDY + 'arms = {law = "bernoulli", n_arms = 3, per_agent = 2}')
    with pytest.raises(SystemExit) as ended:
        main([verb, str(tmp_path / "spec.toml"), "--protocols", "none"])
    err = capsys.readouterr().err
    assert ended.value.code == 0
    assert "fits such arms better: [policy] in the spec" in err
    assert "--policy" not in err  # which does not go with a spec


def test_a_spec_that_names_a_policy_has_chosen():
    assert not bm.parse_spec("horizon = 3").chooses_policy
    for line in ('policy = "ucb"', "policy = {alpha = 2.0}", 'sweep.policy.name = ["ucb", "moss"]'):
        assert bm.parse_spec(line).chooses_policy


@pytest.mark.parametrize(
    ("arms", "notes"),
    [
        ('arms = {law = "bernoulli", n_arms = 3, per_agent = 2}', 1),
        ('arms = {law = "gaussian", n_arms = 3, per_agent = 2}', 0),
        ('arms = {law = "data", log = "clicks.csv"}', 1),
        ('arms = {law = "data", log = "stars.csv"}', 0),
        ('arms = {law = "data", log = "clicks.csv"}\npolicy = "ucb"', 0),
    ],
)
def test_a_study_of_rates_says_it_before_it_runs(tmp_path, capsys, arms, notes):
    for name, best in {"clicks.csv": 1, "stars.csv": 5}.items():
        rows = [f"{v},ad{k},{best * (v == k)}" for v in range(4) for k in range(2)]
        (tmp_path / name).write_text("\n".join(["agent,arm,reward", *rows]))
    (tmp_path / "spec.toml").write_text(STUDY + arms)
    run = ["run", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    for _ in range(2):  # also when it continues
        with pytest.raises(SystemExit) as ended:
            main(run)
        assert ended.value.code == 0
        assert capsys.readouterr().err.count("KL-UCB or Thompson") == notes


def test_a_study_in_python_warns_of_it(unsaid, tmp_path):
    spec = bm.parse_spec(STUDY + 'arms = {law = "bernoulli", n_arms = 3, per_agent = 2}')
    with pytest.warns(bm.BanditmeshWarning, match=r"KL-UCB or Thompson sampling fits .* \[policy\] in the spec"):
        bm.run_study(spec, tmp_path, workers=1)


def test_a_law_of_ones_own_is_asked_nothing_beforehand(unsaid):
    taped = type("Taped", (bm.arms.Law,), {"mean": 0.5})()
    assert not choice.suits_rates(bm.Problem(bm.networks.ring(3), [[0]] * 3, [taped]))
