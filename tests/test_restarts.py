"""Agents that start arms anew, together: GLR-klUCB, CUSUM-UCB and M-UCB."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import CUSUMUCB, GLRKLUCB, MUCB
from banditmesh.arms import BERNOULLI, Bernoulli, Piecewise
from banditmesh.core import Copy, Fate, Message, Place, Receipt
from banditmesh.policies import Arms

COIN = Bernoulli(0.5)
#: Two rewards that differ by more than a half are a change.
JUMPY = MUCB(ttl=1, explore=0.0, width=2, threshold=0.5)


def played(problem, algorithm, tape, n_rounds=None, **settings):
    """A simulation with these rewards, by round and agent, whatever the arm, after some rounds."""
    tape = np.repeat(np.array(tape, dtype=float)[:, :, None], problem.n_arms, axis=2)
    means = [0.5] * problem.n_arms
    simulation = bm.Simulation(
        problem, algorithm, horizon=len(tape), seed=0, rewards=tape, means=means, link_traffic=True, **settings
    )
    rounds = [simulation.step() for _ in range(len(tape) if n_rounds is None else n_rounds)]
    return simulation, rounds


def versions(simulation):
    return [agent.versions.get(0, 0) for agent in simulation.agents.values()]


def counts(simulation):
    return [agent.estimates.count[0] for agent in simulation.agents.values()]


def test_restart_spreads_and_older_observations_are_ignored():
    problem = bm.Problem(bm.networks.path(3), [[0]] * 3, [COIN])
    tape = [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    # Round 1: everybody hears its neighbours.
    simulation, _ = played(problem, JUMPY, tape, 1)
    assert counts(simulation) == [2, 3, 2]
    # Round 2: agent 0 sees a change, says so to agent 1, and tells of no observation. What agent 1 has sent in this
    # round is of the old version: agent 0 ignores it, and agent 2, which has not heard of the new one, does not; nor
    # does agent 1 use what agent 2 says.
    simulation, rounds = played(problem, JUMPY, tape, 2)
    assert versions(simulation) == [1, 1, 0]
    assert counts(simulation) == [0, 0, 4]
    fates = [(event.sender, event.receiver, event.fate, event.learned) for event in rounds[1].events]
    assert fates == [
        (0, 1, "absorbed", True),
        (1, 0, "stopped", False),
        (1, 2, "expired", True),
        (2, 1, "stopped", False),
    ]
    # Round 3: agent 1 passes the restart on to agent 2, before its own observation of the new version.
    simulation, rounds = played(problem, JUMPY, tape, 3)
    assert versions(simulation) == [1, 1, 1]
    assert counts(simulation) == [2, 2, 1]
    assert [len(one.events) for one in rounds] == [4, 4, 5]
    # Eleven observations of 32 bytes and two restarts of 24.
    assert simulation.run().traffic["bytes"][0] == 11 * 32 + 2 * 24


def test_change_that_two_agents_see_at_once_is_one_version():
    problem = bm.Problem(bm.networks.path(5), [[0]] * 5, [COIN])
    simulation, _ = played(problem, JUMPY, [[0] * 5, [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1]])
    assert versions(simulation) == [1] * 5


def test_later_change_is_another_version_and_the_highest_wins():
    problem = bm.Problem(bm.networks.path(2), [[0]] * 2, [COIN])
    simulation, _ = played(problem, JUMPY, [[0, 0], [1, 0], [1, 0], [0, 0]])
    assert versions(simulation) == [2, 2]


def test_agent_without_the_arm_passes_a_restart_on():
    problem = bm.Problem(bm.networks.path(3), [[0], [1], [0]], [COIN, COIN])
    simulation, _ = played(problem, JUMPY, [[0, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert versions(simulation) == [1, 1, 1]
    assert simulation.agents[1].versions == {0: 1}


def test_observation_of_a_newer_version_restarts_the_arm_and_both_are_passed_on():
    agent = MUCB(ttl=2).seat(Place("ann", Arms(["x", "y"], [0.5, 0.5], [BERNOULLI] * 2), bm.UCB()))
    for reward in (0.0, 1.0):
        agent.observe(0, reward)
    agent.send(["bob", "cy"])
    newer = Message("bob", 7, "x", 1, 1.0, life=3, round=7)
    assert agent.receive(Copy(newer, 2), "bob", 2) == Receipt(Fate.RELAYED, True)
    assert agent.receive(Copy(newer, 1), "cy", 2).fate is Fate.DUPLICATE
    # What it knew of the arm is gone, and the newer observation counts.
    assert agent.versions == {"x": 3}
    assert agent.estimates.count == [1, 0]
    assert agent.receive(Copy(newer._replace(id=6, life=2), 2), "cy", 2) == Receipt(Fate.STOPPED, False)
    restart, observation = agent.send(["bob", "cy"])
    assert restart.copy.message[2:] == ("restart", "x", (3,))
    assert observation.copy == Copy(newer, 1)
    assert list(restart.targets) == list(observation.targets) == ["cy"]


def test_monitored_agents_restart_all_their_arms_and_others_one():
    problem = bm.Problem(bm.networks.path(2), [[0, 1], [0, 1, 2]], [COIN] * 3)
    # Unknown arms come first, then both agents pull arm 0 again (equal means, the first of equals).
    tape = [[0, 0], [0, 0], [0, 0], [1, 0]]
    monitored, _ = played(problem, MUCB(0, explore=0.5, width=2, threshold=0.5), tape)
    assert monitored.agents[0].versions == monitored.agents[1].versions == {0: 1, 1: 1}
    assert monitored.agents[0].estimates.count == [0, 0]
    assert monitored.agents[1].estimates.count[2] == 1
    walking, _ = played(problem, CUSUMUCB(0, explore=0.0, first=1, drift=0.1, threshold=0.5), tape)
    assert len(walking.agents[0].versions) == 1


def test_detector_sees_only_own_pulls():
    problem = bm.Problem(bm.networks.path(2), [[0]] * 2, [COIN])
    # The two agents are paid differently, but each always the same.
    simulation, _ = played(problem, JUMPY, [[0, 1]] * 6)
    assert versions(simulation) == [0, 0]
    assert counts(simulation) == [12, 12]


@pytest.mark.parametrize(
    ("algorithm", "turns"),
    [
        # Four arms, a quarter of all pulls: four forced ones in sixteen.
        (GLRKLUCB(explore=0.25), [0, 1, 2, 3, *[None] * 12, 0, 1]),
        (GLRKLUCB(explore=0.5), [0, 1, 2, 3, *[None] * 4, 0, 1]),
        (GLRKLUCB(explore=1.0), [0, 1, 2, 3, 0, 1, 2, 3]),
        (GLRKLUCB(explore=0.0), [None] * 5),
    ],
)
def test_forced_pulls_take_turns(algorithm, turns):
    problem = bm.Problem(nx.empty_graph(1), [range(4)], [COIN] * 4)
    simulation, found = bm.Simulation(problem, algorithm, horizon=30, seed=0), []
    for _ in turns:
        agent = simulation.agents[0]
        found.append(algorithm.forced(agent))
        pulled = simulation.step().choices[0]
        assert found[-1] in (None, pulled)
    assert found == turns


def test_random_forced_pulls_are_as_frequent_as_they_should_be():
    algorithm = CUSUMUCB(explore=0.2, threshold=100.0)
    problem = bm.Problem(nx.empty_graph(1), [range(4)], [Bernoulli(0.9), *[Bernoulli(0.0)] * 3])
    simulation = bm.Simulation(problem, algorithm, horizon=400, seed=0)
    forced = []
    for _ in range(400):
        assert simulation.turn() == [0]  # the round has begun
        forced.append(algorithm.forced(simulation.agents[0]))
        pulled = simulation.step().choices[0]
        assert forced[-1] in (None, pulled)
    counts = [forced.count(arm) for arm in range(4)]
    assert 60 <= sum(counts) <= 100
    assert min(counts) >= 5


def test_indices_by_hand():
    problem = bm.Problem(nx.empty_graph(1), [[0, 1]], [COIN, COIN])
    simulation, _ = played(problem, GLRKLUCB(explore=0.0), [[1], [0], [1], [1]])
    agent = simulation.agents[0]
    agent.estimates.put(0, 8, 4.0)
    agent.began[0] = 3
    # log(t - r) / n = log(e^2) / 8 with t = 3 + e^2: the q with d(0.5, q) = 0.25 is (1 + sqrt(1 - exp(-0.5))) / 2.
    clock = 3 + np.exp(2.0)
    assert GLRKLUCB().index(agent, 0, clock) == pytest.approx((1 + np.sqrt(1 - np.exp(-0.5))) / 2)
    agent.estimates.put(1, 2, 1.5)
    assert CUSUMUCB(xi=0.5).index(agent, 1, clock) == pytest.approx(0.75 + np.sqrt(0.5 * np.log(10) / 2))
    assert MUCB().index(agent, 1, clock) == pytest.approx(0.75 + np.sqrt(2 * 2.0 / 2))


def test_forced_pulls_reach_all_arms_of_an_agent_that_pulls_every_other_round():
    problem = bm.Problem(bm.networks.path(2), [[0, 1]] * 2, [Bernoulli(0.9), Bernoulli(0.1)])
    result = bm.simulate(problem, GLRKLUCB(0, explore=0.1), horizon=400, seed=0, every=[2, 1])
    assert (result.pulls[0] >= [[10, 10], [20, 20]]).all()


def test_detectors_need_sigmas_and_even_windows():
    class Odd(bm.arms.Law):
        mean = 0.5
        sigma = None
        continuous = True

        def quantile(self, u):
            return u

    problem = bm.Problem(bm.networks.path(2), [[0], [0]], [Odd()])
    for name in ("glr-klucb", "cusum-ucb", "m-ucb"):
        with pytest.raises(bm.InputError, match=f"'{name}' must know the sigma of every arm, got none for arm 0"):
            bm.simulate(problem, name, horizon=3)
    with pytest.raises(bm.InputError, match="width must be even, got 51"):
        MUCB(width=51)
    with pytest.raises(bm.InputError, match="explore must be"):
        GLRKLUCB(explore=1.5)
    with pytest.raises(bm.InputError, match="ttl must be"):
        CUSUMUCB(ttl=-1)


@pytest.fixture(scope="module")
def hidden_change():
    """The worst arm becomes the best one, which an agent that pulls good arms does not notice; and what that costs."""
    arms = [Bernoulli(0.5), Bernoulli(0.3), Piecewise({1: Bernoulli(0.1), 301: Bernoulli(0.9)})]
    problem = bm.Problem(bm.networks.ring(4), [range(3)] * 4, arms)
    plain = bm.simulate(problem, "flooding(2)", policy="klucb", horizon=700, seed=0, engine="reference")
    return problem, plain.regret[0]


@pytest.mark.parametrize(
    "text",
    [
        "glr-klucb(2, explore=0.2)",
        "cusum-ucb(2, explore=0.2, first=10, threshold=4)",
        "m-ucb(2, explore=0.2, width=20, threshold=7)",
    ],
)
def test_change_that_nobody_looks_at_is_found(hidden_change, text):
    problem, plain = hidden_change
    simulation = bm.Simulation(problem, text, horizon=700, seed=0)
    regret = simulation.run().regret[0]
    assert len({agent.versions[2] for agent in simulation.agents.values()}) == 1
    assert regret[-1] - regret[300] < 0.75 * (plain[-1] - plain[300])


@pytest.mark.slow
def test_detectors_beat_sharing_alone_in_a_world_that_switches(capsys):
    arms = [bm.arms.Switching(Bernoulli(0.1 + 0.1 * arm), 0.004, 0.0, 1.0) for arm in range(8)]
    problem = bm.Problem(bm.networks.ring(12), bm.arms.uniform_sets(12, 8, 4, seed=0), arms)
    settings = {"horizon": 1500, "replicates": 3, "seed": 0, "progress": False, "engine": "reference"}
    plain = {
        policy: bm.simulate(problem, "flooding(3)", policy=policy, **settings).regret[:, -1]
        for policy in ("ucb(2)", "klucb")
    }
    found = {
        name: bm.simulate(problem, f"{name}(3)", **settings).regret[:, -1]
        for name in ("glr-klucb", "cusum-ucb", "m-ucb")
    }
    with capsys.disabled():
        for name, regret in (plain | found).items():
            print(f"\n{name}: {regret.mean():.0f} ± {regret.std(ddof=1) / 3**0.5:.0f}", end="")
    least = min(regret.mean() for regret in plain.values())
    assert all(regret.mean() < 0.85 * least for regret in found.values())
