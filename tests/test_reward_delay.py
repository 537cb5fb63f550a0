"""Rewards that come late or never: by hand, by brute force, and with every protocol, memory and rule set."""

import itertools
import json
import math

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.core import Place
from banditmesh.delays import as_delay
from banditmesh.draws import LATE, Draws
from banditmesh.errors import InputError
from banditmesh.policies import Arms
from cases import gaussian_arms, normal_tape, totals

LAWS = [4, "geometric(3)", "uniform(1, 6)", {0: "never(6)", 2: "geometric(2)"}]
NETWORK = nx.path_graph(5)
PROBLEM = bm.Problem(NETWORK, [[0, 1, 2], [1, 2], [0, 2], [2, 1, 0], [0, 1]], gaussian_arms(3))
PAIR = bm.Problem(
    nx.path_graph(2), [["a", "b"]] * 2, {"a": bm.arms.Gaussian(0.0, 1.0), "b": bm.arms.Gaussian(1.0, 1.0)}
)


def run(problem, protocol, delay, **more):
    settings = {"horizon": 40, "seed": 7, "engine": "reference"} | more
    return bm.simulate(problem, protocol, faults=bm.Faults(reward_delay=delay), **settings)


# By hand


def test_a_reward_counts_and_is_sent_as_many_rounds_after_its_pull():
    simulation = bm.Simulation(PAIR, bm.IRS(), horizon=9, seed=0, faults=bm.Faults(reward_delay=2))
    rounds = [simulation.step() for _ in range(5)]
    # Arms are taken in turn until something is known of all; both agents pull the same ones, and tell each other.
    assert [one.choices[0] for one in rounds[:4]] == ["a", "b", "a", "b"]
    assert [one.estimates[0]["a"][0] for one in rounds] == [0, 0, 2, 2, 4]
    assert [one.estimates[0]["b"][0] for one in rounds] == [0, 0, 0, 2, 2]
    assert [[event.sequence for event in one.events] for one in rounds] == [[], [], [1, 1], [2, 2], [3, 3]]
    paid = [one.rewards[0] for one in rounds]
    assert rounds[2].events[0].reward == paid[0]
    assert all(event.round == event.arrival == 3 for event in rounds[2].events)


def test_regret_is_judged_at_the_pull_and_what_is_under_way_at_the_horizon_is_never_observed():
    late = run(PAIR, bm.IRS(), 40)
    assert late.pulls.tolist() == [[[20, 20]] * 2]
    np.testing.assert_array_equal(late.regret[0], np.repeat(np.arange(20), 2) * 2.0 + 2.0)
    assert totals(late)["sent"] == 0 == totals(run(PAIR, bm.IRS(), "never"))["sent"]
    assert totals(run(PAIR, bm.IRS(), 39))["sent"] == 2


def test_an_arm_that_never_answers_is_chosen_for_ever():
    assert run(PAIR, bm.IRS(), {"a": "never"}).pulls.tolist() == [[[39, 1]] * 2]


def test_rewards_that_come_at_once_change_nothing():
    plain = bm.simulate(PROBLEM, bm.FwA(3), horizon=40, seed=7)
    for nothing in (0, "0", "geometric(0)", "uniform(0, 0)", {}, {1: 0}):
        assert run(PROBLEM, bm.FwA(3), nothing) == plain
    # One that never strikes within the horizon goes the way of those that do.
    late = run(PROBLEM, bm.FwA(3), "never(41)")
    np.testing.assert_array_equal(late.regret, plain.regret)
    np.testing.assert_array_equal(late.transmissions, plain.transmissions)


def test_several_rewards_that_come_in_one_round_are_several_messages():
    def delays(t):
        return 4 - t if t < 4 else 0

    law = as_delay("never")
    object.__setattr__(law, "rounds", lambda t, u: delays(t))
    simulation = bm.Simulation(PAIR, bm.Flooding(2), horizon=9, seed=0, faults=bm.Faults(reward_delay=1))
    simulation._stepper._late._laws = [[law] * 2] * 2
    rounds = [simulation.step() for _ in range(4)]
    assert [len(one.events) for one in rounds] == [0, 0, 0, 8]
    # The last that was made is sent first, and each has the round of its pull.
    assert [event.sequence for event in rounds[3].events if event.sender == 0] == [4, 3, 2, 1]
    assert sum(count for count, _ in rounds[3].estimates[1].values()) == 8


def test_an_agent_that_is_down_or_has_lost_its_memory_never_observes_what_was_under_way():
    always = bm.Outages(down=0.5, up=0.5)
    for outages in (always, bm.Outages(down=0.5, up=0.5, memory=False)):
        faults = bm.Faults(reward_delay=2, outages=outages)
        simulation = bm.Simulation(PAIR, "none", horizon=40, seed=3, faults=faults)
        known = {0: 0, 1: 0}
        history = []
        for t in range(1, 41):
            one = simulation.step()
            history.append(one.choices)
            for agent in known:
                # Nobody pulls while down: who pulls in a round is up in it.
                is_up, was_up = agent in one.choices, t > 1 and agent in history[t - 2]
                between = t > 2 and was_up
                if not outages.memory and is_up and t > 1 and not was_up:
                    known[agent] = 0
                if is_up and t > 2 and agent in history[t - 3] and (outages.memory or between):
                    known[agent] += 1
                assert sum(count for count, _ in one.estimates[agent].values()) == known[agent]


# By brute force: a run recomputed from the definition, observation by observation


def rounds_late(law, t, u):
    """The laws once more, from the documentation."""
    if isinstance(law, int):
        return law
    name, _, given = law.rstrip(")").partition("(")
    numbers = [float(one) for one in given.split(",") if one]
    if name == "geometric":
        [mean] = numbers
        return math.floor(math.log(u) / math.log(mean / (1 + mean)))
    if name == "uniform":
        least, most = numbers
        return next(int(least + k) for k in itertools.count() if u < (k + 1) / (most - least + 1))
    first = numbers[0] if numbers else 1
    return math.inf if t >= first else 0


def weight(memory, made, t):
    if isinstance(memory, bm.Discount):
        return memory.gamma ** (t - made)
    if isinstance(memory, bm.Window):
        size = math.ceil(memory.rounds / memory.blocks)
        return float((t - 1) // size - (made - 1) // size < math.ceil(memory.rounds / size))
    return 1.0


def recomputed(graph, problem, reach, memory, delay, tape, horizon, seed):
    """Pulls by agent and arm, and how many observations were heard, if each reaches all within so many hops."""
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    draws, sets = Draws(seed, 0), [problem.arm_set(v).tolist() for v in range(problem.n_agents)]
    pulls, n_heard, made = np.zeros((problem.n_agents, problem.n_arms), dtype=int), 0, []
    for t in range(1, horizon + 1):
        chosen = []
        for v, arms in enumerate(sets):
            # An observation is usable in the round after it was observed, and a round later with each further hop.
            known = [
                (arm, s, paid)
                for s, w, arm, paid, seen in made
                if hops[v][w] <= reach and t >= seen + max(1, hops[v][w])
            ]
            seen = {arm: [(weight(memory, s, t), paid) for a, s, paid in known if a == arm] for arm in arms}
            count = {arm: sum(one for one, _ in seen[arm]) for arm in arms}
            untried = [arm for arm in arms if not pulls[v, arm]]
            unknown = [arm for arm in arms if count[arm] == 0]
            age = t
            if isinstance(memory, bm.Discount):
                age = sum(memory.gamma**k for k in range(t))
            elif isinstance(memory, bm.Window):
                age = min(t, memory.rounds)
            if untried or unknown:
                arm = untried[0] if untried else min(unknown, key=lambda arm: pulls[v, arm])
            else:
                mean = {arm: sum(one * paid for one, paid in seen[arm]) / count[arm] for arm in arms}
                arm = max(arms, key=lambda arm: mean[arm] + math.sqrt(3 * math.log(age) / count[arm]))
            chosen.append((t, v, arm, tape[t - 1, v, arm]))
        for s, v, arm, paid in chosen:
            pulls[v, arm] += 1
            law = delay.get(arm, 0) if isinstance(delay, dict) else delay
            made.append((s, v, arm, paid, s + rounds_late(law, s, draws.uniform(LATE, v, s))))
    for _, w, arm, _, seen in made:
        n_heard += sum(
            arm in sets[v] and 0 < hops[v][w] <= reach and seen + hops[v][w] - 1 <= horizon for v in range(len(sets))
        )
    return pulls, n_heard


@pytest.mark.parametrize("delay", LAWS, ids=str)
@pytest.mark.parametrize(
    "memory", [bm.Everything(), bm.Discount(0.9), bm.Window(9, blocks=3)], ids=lambda one: one.name
)
@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.IRS(), bm.Flooding(3), bm.Centralised()], ids=str)
def test_a_run_equals_one_that_is_recomputed_observation_by_observation(protocol, memory, delay):
    horizon, tape = 60, normal_tape(PROBLEM, 60, seed=3)
    policy = bm.UCB(memory=memory)
    result = run(PROBLEM, protocol, delay, horizon=horizon, rewards=tape, policy=policy)
    if isinstance(protocol, bm.Centralised):
        # Whatever is observed is known to all in the next round: all are neighbours.
        complete = nx.complete_graph(5)
        pulls, n_heard = recomputed(complete, PROBLEM, 1, memory, delay, tape, horizon, 7)
    else:
        reach = {"none": 0, "irs": 1}.get(protocol.name, 3)
        pulls, n_heard = recomputed(NETWORK, PROBLEM, reach, memory, delay, tape, horizon, 7)
    np.testing.assert_array_equal(result.pulls[0], pulls)
    if not memory.forgets:
        assert totals(result)["learned"] == n_heard
    assert result.engine == "reference"


# Memories: an observation has the round of its pull


@pytest.mark.parametrize("late", [0, 1, 7, 40, 200])
def test_a_late_reward_weighs_what_it_would_have_weighed_had_it_come_at_once(late):
    arms = Arms.gaussian(["a"], 1.0)
    for memory in (bm.Discount(0.5), bm.Discount(0.97), bm.Window(50, blocks=5)):
        prompt, tardy = (bm.IRS().seat(Place("ann", arms, bm.UCB(memory=memory))) for _ in range(2))
        for t in range(1, 250):
            for agent in (prompt, tardy):
                agent.begin(t)
            if t == 20:
                prompt.observe(0, 0.75)
            if t == 20 + late:
                tardy.observe(0, 0.75, pulled_in=20)
            if t >= 20 + late:
                assert tardy.estimates.count == prompt.estimates.count
                assert tardy.estimates.mean == prompt.estimates.mean


def test_a_reward_too_late_for_the_memory_is_counted_as_a_pull_and_makes_no_statistic():
    for memory in (bm.Discount(0.5), bm.Window(8)):
        place = Place("ann", Arms.gaussian(["a"], 1.0), bm.UCB(memory=memory))
        agent = bm.Flooding(2, emission=bm.Growth(0.5)).seat(place)
        agent.begin(1)
        agent.begin(600)
        agent.observe(0, 1.0, pulled_in=1)
        assert (agent.own_count, agent.estimates.count, agent.send(["bob"])) == ([1], [0], [])
        single = bm.Flooding(2).seat(place)
        single.begin(600)
        single.observe(0, 1.0, pulled_in=1)
        [parcel] = single.send(["bob"])
        assert parcel.copy.message.round == 1


@pytest.mark.parametrize("round_", [0, 6, -1, 2.0, True])
def test_a_pull_in_no_round_is_refused(round_):
    agent = bm.IRS().seat(Place("ann", Arms.gaussian(["a"], 1.0), bm.UCB()))
    agent.begin(5)
    with pytest.raises(InputError, match="pulled_in must be a round from 1 to 5, got"):
        agent.observe(0, 1.0, pulled_in=round_)
    assert agent.own_count == [0]


# With everything else


@pytest.mark.parametrize("rules", ["sound", "published"])
@pytest.mark.parametrize("memory", [bm.Everything(), bm.Discount(0.9), bm.Window(9)], ids=lambda one: one.name)
@pytest.mark.parametrize("written", ["gossip(3)", "fwa(3)+contested", "flooding(3)+growth(0.5, echoes=1)", "tree"])
def test_every_delivery_runs_with_late_rewards_and_other_faults(written, memory, rules):
    if written == "tree" and (rules == "published" or isinstance(memory, bm.Window)):
        return
    settings = {"policy": bm.UCB(memory=memory), "rules": rules, "horizon": 40, "seed": 7, "every": [1, 2, 1, 3, 1]}
    outages = bm.Outages(down=0.1, up=0.5, memory=False)
    faults = bm.Faults(reward_delay="geometric(4)", loss=0.1, delay=1, outages=outages)
    one, two = (bm.simulate(PROBLEM, written, faults=faults, **settings) for _ in range(2))
    assert one == two
    counts = totals(one)
    assert counts["sent"] == counts["delivered"] + counts["duplicate"] + counts["lost"] > 0


def test_statistics_of_late_rewards_are_never_more_than_what_was_observed():
    simulation = bm.Simulation(
        PROBLEM, "flooding(4)+growth(0.25)", horizon=60, seed=1, faults=bm.Faults(reward_delay="geometric(5)")
    )
    while not simulation.is_over:
        one = simulation.step()
        observed = {
            v: dict(zip(PROBLEM.arm_set(v).tolist(), agent.own_count, strict=True))
            for v, agent in simulation.agents.items()
        }
        for event in one.events:
            assert event.n_pulls <= observed[event.origin][event.arm]
    assert sum(sum(row.values()) for row in observed.values()) < 300


def test_every_protocol_meets_the_same_delays():
    tape = np.zeros((40, 5, 3))
    seen = []
    for protocol in (bm.IRS(), bm.Flooding(3)):
        faults = bm.Faults(reward_delay="uniform(0, 9)")
        result = bm.simulate(PROBLEM, protocol, horizon=40, seed=7, faults=faults, rewards=tape, trace=True)
        first = [event for event in result.trace if event.sender == event.origin]
        seen.append({(event.origin, event.sequence): event.round - event.sequence for event in first})
    assert seen[0] == seen[1]
    assert set(seen[0].values()) == set(range(10))


@pytest.mark.parametrize("law, mean, least", [("geometric(3)", 3.0, 0), ("uniform(2, 7)", 4.5, 2), (4, 4.0, 4)])
def test_laws_have_the_mean_and_the_least_value_that_they_say(law, mean, least):
    draws = [as_delay(law).rounds(1, (k + 0.5) / 20_000) for k in range(20_000)]
    assert min(draws) == least
    assert np.mean(draws) == pytest.approx(mean, rel=0.002)
    assert as_delay(law).mean == mean
    assert as_delay(law).longest in (None, max(draws))


def test_ids_are_remembered_while_a_late_message_can_come():
    # On a ring each message comes twice, once from either side; were ids forgotten by their age, it would count twice.
    ring = bm.Problem(nx.cycle_graph(7), [[0]] * 7, gaussian_arms(1))
    result = run(ring, bm.Flooding(6), "uniform(0, 20)", horizon=80)
    observed = totals(result)
    assert observed["learned"] <= 7 * 80 * 6
    simulation = bm.Simulation(
        ring, bm.Flooding(6), horizon=80, seed=7, faults=bm.Faults(reward_delay="uniform(0, 20)")
    )
    while not simulation.is_over:
        one = simulation.step()
        n_observed = sum(agent.own_count[0] for agent in simulation.agents.values())
        assert all(known[0][0] <= n_observed for known in one.estimates.values())


# Engines, algorithms, bounds, journeys


def test_the_compiled_engine_and_algorithms_refuse_late_rewards_and_auto_falls_back():
    with pytest.raises(bm.errors.BanditmeshError, match="of faults it runs losses and outages"):
        run(PAIR, bm.IRS(), 3, engine="compiled")
    assert run(PAIR, bm.IRS(), 3, engine="auto").engine == "reference"
    for name in ("dducb", "coop-se", "odc"):
        with pytest.raises(InputError, match="does not work with late rewards: it counts on a reward in the round"):
            run(PAIR, name, 3)
    with pytest.raises(InputError, match="leave out corruption, link_cap, liars, reward_delay and outages that forget"):
        bm.theory.bounds(PAIR, bm.IRS(), horizon=10, faults=bm.Faults(reward_delay=3))


def test_a_message_is_followed_as_if_its_reward_had_come_at_once():
    late, prompt = (
        bm.follow(PROBLEM, bm.FwA(3), 0, 1, faults=bm.Faults(loss=0.1, reward_delay=delay)) for delay in ("never", 0)
    )
    assert late.hops == prompt.hops


# As text, in specs and on the command line


def test_faults_write_out_their_laws():
    faults = bm.Faults(reward_delay={"b": " uniform( 1,20 ) ", "a": "7"})
    assert repr(faults) == "Faults(reward_delay={'a': 7, 'b': 'uniform(1, 20)'})"
    assert faults == bm.Faults(reward_delay={"a": 7, "b": "uniform(1, 20)"})
    assert isinstance(hash(faults), int)
    assert faults.effective() == faults
    assert faults.in_words() == "reward delay of a 7, reward delay of b uniform(1, 20)"
    assert bm.Faults(reward_delay="geometric(2.5)").in_words() == "reward delay geometric(2.5)"
    assert (faults.longest_reward_delay, bm.Faults(reward_delay="geometric(1)").longest_reward_delay) == (20, None)


@pytest.mark.parametrize(
    "given, message",
    [
        (-1, "reward_delay must be an integer of at least 0"),
        (1.5, "reward_delay must be an integer of at least 0"),
        (True, "reward_delay must be an integer of at least 0"),
        (None, "reward_delay must be an integer of at least 0"),
        ([3], "reward_delay must be an integer of at least 0"),
        ("soon", "must be a number of rounds, geometric(mean), uniform(least, most), never or never(first round), got"),
        ("", "reward_delay must be a number of rounds, geometric(mean)"),
        ("geometric", "reward_delay must be a number of rounds, geometric(mean)"),
        ("geometric(1, 2)", "reward_delay must be a number of rounds, geometric(mean)"),
        ("geometric(x)", "got 'geometric(x)'"),
        ("geometric(-1)", "reward_delay must be a number of at least 0, got -1"),
        ("geometric(nan)", "reward_delay must be a number of at least 0, got nan"),
        ("geometric(1e300)", "reward_delay must be at most 4294967295 rounds, got 1e+300"),
        ("uniform(3)", "reward_delay must be a number of rounds"),
        ("uniform(5, 3)", "reward_delay must be an integer of at least 5"),
        ("uniform(0.5, 3)", "reward_delay must be an integer of at least 0"),
        ("never(0)", "reward_delay must be an integer of at least 1"),
        ("never(1, 2)", "reward_delay must be a number of rounds"),
        ({"a": "soon"}, "reward_delay must be a number of rounds"),
    ],
)
def test_wrong_laws_are_refused_in_one_line(given, message):
    with pytest.raises(InputError) as caught:
        bm.Faults(reward_delay=given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arms_that_the_problem_does_not_have_are_refused():
    with pytest.raises(InputError, match=r"reward_delay must name arms of the problem, \['a', 'b'\], got 'c'"):
        run(PAIR, bm.IRS(), {"c": 3})


def command(capsys, *arguments, status=0):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert ended.value.code == status, err
    return err if status else out


def test_specs_and_the_command_line_take_laws(capsys, tmp_path):
    options = ["compare", "--network", "er", "--horizon", "9", "--replicates", "1", "--protocols", "irs"]
    told = json.loads(command(capsys, *options, "--reward-delay", "geometric(4)", "--json"))
    assert told["faults"] == "Faults(reward_delay='geometric(4)')"
    wrong = command(capsys, *options, "--reward-delay", "soon", status=2)
    assert wrong.startswith("banditmesh: reward_delay must be a number of rounds, geometric(mean)")
    assert wrong.count("\n") == 1
    spec, out = tmp_path / "study.toml", tmp_path / "out"
    head = "horizon = 9\nreplicates = 1\nengine = 'reference'\nprotocol = 'irs'\n"
    head += "network = {name = 'ring', n = 5}\narms = {law = 'gaussian', n_arms = 3, per_agent = 3}\n"
    spec.write_text(
        f"{head}[sweep]\nfaults.reward_delay = [0, 3, 'never(5)', {{0 = 'never'}}]\nprotocol = ['irs', 'none']\n"
    )
    command(capsys, "run", str(spec), "--out", str(out), "--workers", "1")
    table = bm.Study(out).table()
    sent = table[table["protocol"] == "irs"]["messages"].tolist()
    assert (len(table), sent[:3]) == (8, [90, 60, 40])
    spec.write_text(f"{head}[faults]\nreward_delay = {{9 = 'never'}}\n")
    wrong = command(capsys, "run", str(spec), "--out", str(tmp_path / "no"), status=2)
    assert "faults.reward_delay must name arms of the problem, [0, 1, 2], got '9'" in wrong
    spec.write_text(f"{head}[sweep]\nfaults.reward_delay = [1, 'soon']\n")
    wrong = command(capsys, "run", str(spec), "--out", str(tmp_path / "no"), status=2)
    assert "faults.reward_delay must be a number of rounds" in wrong
