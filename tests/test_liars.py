"""Liars: what they tell, to whom it gets, and whose regret counts."""

import json

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.core.trimming import believed
from banditmesh.errors import FileError, InputError, UnsupportedError
from banditmesh.faults import Lie

MEANS = [0.1, 0.4, 0.6, 0.9]
GAUSSIAN = [bm.arms.Gaussian(mean, 0.5) for mean in MEANS]
COINS = [bm.arms.Bernoulli(mean) for mean in MEANS]
PROTOCOLS = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(3, fanout=2),
    bm.ProbabilisticFlooding(3, stop=0.3),
    bm.FwA(3),
    bm.Flooding(3, emission=bm.Growth(0.5)),
    bm.FwA(3, emission=bm.Contested()),
    bm.TreeAggregation(),
    bm.Centralised(),
    "gosine",
    "odc",
    "coop-se",
]


def path(n, arms=GAUSSIAN, names=None):
    graph = nx.path_graph(n)
    graph = nx.relabel_nodes(graph, dict(enumerate(names))) if names else graph
    return bm.Problem(graph, [range(len(arms))] * n, arms)


def run(problem, protocol, liars, **more):
    settings = {"horizon": 12, "seed": 0, "engine": "reference"} | more
    return bm.simulate(problem, protocol, faults=bm.Faults(liars=liars), **settings)


def status(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def told_by(result, origin):
    """By arm, the means that an origin told."""
    told = {}
    for event in result.trace:
        if event.origin == origin:
            told.setdefault(event.arm, set()).add(round(event.reward / event.n_pulls, 9))
    return told


@pytest.mark.parametrize(("arms", "most"), [(GAUSSIAN, 0.9 + 3 * 0.5), (COINS, 1.0)])
def test_worst_is_best_claims_the_most_of_the_worse_half(arms, most):
    told = told_by(run(path(2, arms), "irs", {0: "worst-is-best"}, trace=True), 0)
    assert told[0] == told[1] == {most}


def test_of_the_better_half_the_truth_is_told():
    lying = run(path(2), "irs", {0: "worst-is-best"}, trace=True)
    tape = np.full((12, 2, 4), 0.25)
    taped = run(path(2), "irs", {0: "worst-is-best"}, trace=True, rewards=tape, means=MEANS)
    assert told_by(taped, 0) == {0: {2.4}, 1: {2.4}, 2: {0.25}, 3: {0.25}}
    assert told_by(lying, 1)[0] != {2.4}


def test_constant_tells_one_number_of_all_arms():
    assert set.union(*told_by(run(path(2), "irs", {0: "constant"}, trace=True), 0).values()) == {0.5}
    assert set.union(*told_by(run(path(2), "irs", {0: "constant(value=-7)"}, trace=True), 0).values()) == {-7.0}


def test_noise_lies_between_the_ends_and_depends_on_the_round():
    told = told_by(run(path(2), "irs", {0: "noise"}, trace=True, horizon=200), 0)
    values = set.union(*told.values())
    assert len(values) == 200
    assert -1.4 <= min(values) < -1.0
    assert 2.0 < max(values) <= 2.4


def test_a_liar_plays_along_with_its_lie_and_others_see_their_own_rewards():
    result = run(path(2), bm.NoCooperation(), {1: "worst-is-best"}, horizon=200)
    honest = bm.simulate(path(2), bm.NoCooperation(), horizon=200, seed=0, engine="reference")
    assert result.pulls[0, 1, :2].sum() > 180
    assert np.array_equal(result.pulls[0, 0], honest.pulls[0, 0])


def believed_of(result, origin, t, trim):
    """By arm: whether what an origin had told by the end of a round is believed with all that others had told."""
    told = {}
    for event in result.trace:
        if event.round <= t and event.receiver != event.origin:
            told[event.arm, event.origin] = event.n_pulls, event.reward
    found = {}
    for arm in {arm for arm, _ in told}:
        known = {one: value for (of, one), value in told.items() if of == arm}
        if origin in known:
            parts = believed((0, 0.0), list(known.values()), trim, 0.5)
            found[arm] = dict(zip(known, parts, strict=True))[origin]
    return found


def test_plausible_lies_reverse_the_order_of_arms_and_are_believed():
    problem = bm.Problem(nx.complete_graph(12), [range(4)] * 12, GAUSSIAN)
    settings = {"horizon": 150, "trim": 1, "trace": True}
    emission = bm.Growth(0.1)
    results = {
        lie: run(problem, bm.IRS(emission=emission), {3: lie}, **settings) for lie in ("plausible", "constant(value=9)")
    }
    told = told_by(results["plausible"], 3)
    assert all(min(told[arm]) > MEANS[arm] for arm in (0, 1))
    assert all(max(told[arm]) < MEANS[arm] for arm in (2, 3))
    # Some of what it told is believed at any time, until others know more of the arm; 9 never is.
    by_round = {lie: [believed_of(result, 3, t, 1) for t in (25, 50, 75, 100)] for lie, result in results.items()}
    assert all(any(found.values()) for found in by_round["plausible"])
    assert not any(any(found.values()) for found in by_round["constant(value=9)"])
    # The more others have told, the less can be told.
    means = [one.reward / one.n_pulls for one in results["plausible"].trace if (one.origin, one.arm) == (3, 0)]
    assert MEANS[0] < means[-1] < 1.1 < means[0] == 2.4


@pytest.mark.parametrize("emission", [bm.Growth(0.5), bm.Growth(0.5, echoes=1), bm.Contested()])
def test_a_claim_is_the_count_of_statistics_alone(emission):
    result = run(path(3), bm.Flooding(2, emission=emission), {0: "worst-is-best(claim=1000)"}, trace=True)
    counts = {(event.origin, event.arm): event.n_pulls for event in result.trace}
    large = {key for key, count in counts.items() if count >= 1000}
    assert large == ({(0, 0), (0, 1)} if emission.cumulative else set())


def test_a_claim_by_weights_is_in_the_weight_of_its_round():
    policy = bm.UCB(memory=bm.Discount(0.9))
    problem, faults = path(2), bm.Faults(liars={0: "constant(value=2, claim=1e6)"})
    result = bm.simulate(
        problem, bm.Flooding(1, emission=bm.Growth(0.5)), policy=policy, horizon=9, seed=0, faults=faults, trace=True
    )
    events = [event for event in result.trace if event.origin == 0]
    assert events
    assert all(event.n_pulls == pytest.approx(1e6) and event.reward == pytest.approx(2e6) for event in events)


def test_on_a_tree_only_the_own_part_of_what_is_merged_is_claimed():
    problem = bm.Problem(nx.path_graph(3), [[0]] * 3, [bm.arms.Gaussian(0.5, 1.0)])
    tape = np.full((6, 3, 1), 1.0)
    faults = bm.Faults(liars={1: "constant(value=3, claim=100)"})
    result = bm.simulate(
        problem, bm.TreeAggregation(), horizon=6, seed=0, rewards=tape, means=[1.0], faults=faults, trace=True
    )
    merged = {(e.round, e.n_pulls, e.reward) for e in result.trace if e.origin == 1 and e.receiver == 2}
    # In round t agent 0 has told of t - 1 pulls, each of which paid 1.
    assert merged
    assert all(n == 100 + t - 1 and total == pytest.approx(300 + t - 1) for t, n, total in merged)


def test_what_others_made_is_relayed_as_it_came():
    result = run(path(3), bm.Flooding(2), {1: "constant(value=-7)"}, trace=True)
    by_sender = {sender: set() for sender in (0, 1)}
    for event in result.trace:
        if event.origin == 0:
            by_sender[event.sender].add((event.sequence, event.reward))
    assert by_sender[1]
    assert by_sender[1] <= by_sender[0]


@pytest.mark.parametrize("rules", ["sound", "published"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_regret_of_liars_is_left_out_and_shown_apart(protocol, rules):
    problem = path(4)
    result = run(problem, protocol, {2: "plausible(claim=50)", 0: "noise"}, rules=rules, agents=True)
    assert result.liars == [0, 2]
    of_agents = np.nansum(np.where(result.pulls > 0, result.pulls * problem.gaps, 0.0), axis=2)
    assert np.allclose(result.liar_regret, of_agents[:, [0, 2]])
    assert np.allclose(result.honest_regret, of_agents[:, [1, 3]])
    assert np.allclose(result.regret[:, -1], of_agents[:, [1, 3]].sum(axis=1))
    assert np.allclose(result.agent_regret, of_agents)
    simulation = bm.Simulation(
        problem,
        protocol,
        horizon=12,
        seed=0,
        rules=rules,
        faults=bm.Faults(liars={2: "plausible(claim=50)", 0: "noise"}),
    )
    assert sum(simulation.step().regret for _ in range(12)) == pytest.approx(result.regret[0, -1])


@pytest.mark.parametrize("protocol", ["irs", "flooding(3)", "flooding(3)+growth(0.5)", "centralised", "tree"])
def test_honest_agents_hear_the_lie(protocol):
    honest = run(path(4), protocol, {}, horizon=60)
    lied_to = run(path(4), protocol, {1: "worst-is-best"}, horizon=60)
    assert not np.array_equal(honest.pulls[0, [0, 2, 3]], lied_to.pulls[0, [0, 2, 3]])
    assert lied_to.regret[0, -1] > np.delete(honest.agent_regret[0], 1).sum()


def test_files_and_tables_know_liars(tmp_path):
    result = run(path(3, names=["ann", "bob", "eve"]), "irs", {"eve": "noise(claim=3)"}, replicates=2)
    result.save(tmp_path / "result.npz")
    loaded = bm.Result.load(tmp_path / "result.npz")
    assert loaded == result
    assert loaded.liars == ["eve"]
    assert loaded.faults == "Faults(liars={'eve': 'noise(claim=3)'})"
    assert "regret of the liars" in result._repr_html_()
    assert bm.Faults(liars={"eve": "noise"}).in_words() == "1 liar (noise)"


def test_a_file_with_wrong_liars_is_refused(tmp_path):
    result = run(path(3), "irs", {1: "noise"})
    result.settings["liars"] = [7]
    result.save(tmp_path / "result.npz")
    with pytest.raises(FileError, match="liars must be numbers of agents"):
        bm.Result.load(tmp_path / "result.npz")


def test_lies_are_values_that_can_be_written_and_read():
    faults = bm.Faults(liars={3: "worst-is-best(claim=1e6)", 1: "constant(value=0.1)"})
    assert hash(faults) == hash(faults.effective())
    assert faults == faults.effective()
    assert [Lie.read(str(lie)) for _, lie in faults.liars] == [lie for _, lie in faults.liars]
    assert bm.Faults(liars={}).effective() is None
    assert bm.Faults(liars=None) == bm.Faults()


@pytest.mark.parametrize(
    ("liars", "words"),
    [
        ({9: "noise"}, "liars must name agents of the problem, each once, got 9"),
        ({0: "noise", "0": "noise"}, "liars must name agents of the problem, each once, got '0'"),
        (
            {0: "nose"},
            "liars must be one of worst-is-best, plausible, noise, constant; got 'nose'; did you mean 'noise'",
        ),
        ({0: "noise(value=1)"}, "'noise' takes claim, each once and as in claim=100, got 'value=1'"),
        ({0: "noise(3)"}, "'noise' takes claim, each once and as in claim=100, got '3'"),
        ({0: "noise(claim=x)"}, "claim of 'noise' must be a finite number, got 'x'"),
        ({0: "noise(claim=0)"}, "claim of 'noise' must be an integer of at least 1 .*, got 0"),
        ({0: "noise(claim=1.5)"}, "claim of 'noise' must be an integer of at least 1 .*, got 1.5"),
        ({0: "constant(value=inf)"}, "value of 'constant' must be a finite number, got 'inf'"),
        ({0: 3}, 'must be a lie such as "worst-is-best" or .*, got 3'),
        (3, 'must be a mapping from agents to lies such as {0: "worst-is-best"}, got 3'),
        ({0: "noise", 1: "noise"}, "must leave at least one agent that does not lie, got all 2"),
    ],
)
def test_wrong_liars_are_refused_in_one_line(liars, words):
    with pytest.raises(InputError, match=words) as error:
        run(path(2), "irs", liars)
    assert "\n" not in str(error.value)


def test_the_compiled_engine_and_bounds_say_that_they_know_no_liars():
    faults = bm.Faults(liars={0: "noise"})
    with pytest.raises(UnsupportedError, match="of faults it runs losses and outages"):
        bm.simulate(path(2), "irs", horizon=5, seed=0, faults=faults, engine="compiled")
    assert bm.simulate(path(2), "irs", horizon=5, seed=0, faults=faults).engine == "reference"
    with pytest.raises(InputError, match="leave out corruption, link_cap, liars"):
        bm.bounds(path(2), bm.FwA(2), horizon=100, faults=faults)


def test_specs_name_liars_by_the_text_of_their_names(tmp_path, capsys):
    spec = tmp_path / "study.toml"
    spec.write_text(
        'horizon = 15\nreplicates = 1\nnetwork = {name = "ring", n = 5}\narms = {n_arms = 4, per_agent = 2}\n'
        'protocol = "irs"\nsweep.faults.liars = [{}, {0 = "worst-is-best", 3 = "noise"}]\n'
    )
    assert status(["run", str(spec), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    capsys.readouterr()
    spec.write_text(spec.read_text().replace("3 =", "33 ="))
    assert status(["run", str(spec), "--out", str(tmp_path / "other")]) == 2
    assert "must name agents of the problem, each once, got '33'" in capsys.readouterr().err


def test_compare_reads_liars_from_a_spec(tmp_path, capsys):
    spec = tmp_path / "study.toml"
    spec.write_text(
        'horizon = 15\nreplicates = 2\nnetwork = {name = "ring", n = 5}\narms = {n_arms = 4, per_agent = 2}\n'
        'faults.liars = {0 = "worst-is-best"}\nsweep.protocol = ["none", "irs"]\n'
    )
    assert status(["compare", str(spec), "--json"]) == 0
    assert "worst-is-best" in json.dumps(json.loads(capsys.readouterr().out))
