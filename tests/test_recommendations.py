"""GosInE and LCC-UCB-GRAPH: cases worked out by hand, exact counts of messages, and what their papers claim."""

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import LCCUCB, GosInE


def problem_of(network, n_agents, n_arms, best, mean=0.9, others=0.5):
    arms = [bm.arms.Bernoulli(mean if arm == best else others) for arm in range(n_arms)]
    return bm.Problem(network, [range(n_arms)] * n_agents, arms)


def tape(horizon, n_agents, n_arms, best):
    """One arm pays 1, and the others nothing."""
    rewards = np.zeros((horizon, n_agents, n_arms))
    rewards[:, :, best] = 1.0
    return rewards


def stepped(problem, algorithm, best, n_rounds):
    """The agents after some rounds on such a tape, and the arms that they chose in each."""
    rewards = tape(n_rounds, problem.n_agents, problem.n_arms, best)
    means = [float(arm == best) for arm in range(problem.n_arms)]
    simulation = bm.Simulation(problem, algorithm, horizon=n_rounds, seed=0, rewards=rewards, means=means)
    rounds = [simulation.step() for _ in range(n_rounds)]
    return list(simulation.agents.values()), rounds


def test_gosine_has_blocks_and_two_more():
    agents, _ = stepped(problem_of(bm.networks.path(3), 3, 7, 0), GosInE(), 0, 1)
    assert [agent.active for agent in agents] == [[0, 1, 2, 3, 4], [3, 4, 5, 6, 0], [6, 0, 1, 2, 3]]
    # With few arms the same one may be in several places.
    agents, _ = stepped(problem_of(bm.networks.path(3), 3, 2, 0), GosInE(), 0, 1)
    assert [agent.active for agent in agents] == [[0, 1], [1, 0], [0, 1]]


def test_gosine_of_two_agents_by_hand():
    problem, best = problem_of(bm.networks.path(2), 2, 8, 7), 7
    agents, rounds = stepped(problem, GosInE(), best, 10)
    # Agent 0 has arms 0 to 3, with 4 and 5 as U and L; agent 1 has 4 to 7, with 0 and 1. Each is pulled once in turn.
    assert [one.choices[0] for one in rounds[:6]] == [0, 1, 2, 3, 4, 5]
    assert [one.choices[1] for one in rounds[:6]] == [4, 5, 6, 7, 0, 1]
    # All of agent 0's arms have paid 0, so the first of equals comes again; arm 7 has paid agent 1 a reward of 1, and
    # 1 + sqrt(4 log(8) / 2) = 3.04 is above sqrt(4 log(8)) = 2.88.
    assert [one.choices[0] for one in rounds[6:8]] == [0, 1]
    assert [one.choices[1] for one in rounds[6:8]] == [7, 7]
    # Phases end after rounds 1 and 8; an answer comes a round later. The first ones bring nothing new.
    events = [(event.round, event.sender, event.arm, event.learned) for one in rounds for event in one.events]
    assert events == [
        (1, 0, None, False), (1, 1, None, False), (2, 0, 0, False), (2, 1, 4, False),
        (8, 0, None, False), (8, 1, None, False), (9, 0, 1, False), (9, 1, 7, True),
    ]  # fmt: skip
    # Arm 7 has taken the place of L, and agent 0 has not pulled it yet.
    assert agents[0].active == [0, 1, 2, 3, 4, 7]
    assert rounds[9].choices[0] == 7


def test_gosine_keeps_the_better_of_the_two_and_all_counts():
    # Arm 5 is agent 0's L at first, and pays: it becomes U at the end of phase 2.
    agents, _ = stepped(problem_of(bm.networks.path(2), 2, 8, 5), GosInE(), 5, 9)
    assert (agents[0].upper, agents[0].lower) == (5, 4)
    assert sum(agents[0].estimates.count) == 9


@pytest.mark.parametrize(("horizon", "n_phases"), [(7, 1), (8, 2), (9, 2), (63, 3), (64, 4)])
def test_gosine_sends_two_messages_for_each_agent_and_phase(horizon, n_phases):
    problem = problem_of(bm.networks.ring(5), 5, 10, 0)
    result = bm.simulate(problem, "gosine", horizon=horizon, seed=0)
    # Answers to what is asked in the last round do not come any more.
    n_answers = n_phases - (round(horizon ** (1 / 3)) ** 3 == horizon)
    assert result.traffic["sent"][0] == 5 * (n_phases + n_answers)
    assert result.traffic["bytes"][0] == 16 * result.traffic["sent"][0]


def test_gosine_of_agents_in_their_own_time():
    problem = problem_of(bm.networks.ring(6), 6, 12, 3)
    simulation = bm.Simulation(problem, GosInE(spread=0.5), horizon=64, seed=0)
    asked = {agent: [] for agent in problem.agents}
    for t in range(1, 65):
        for event in simulation.step().events:
            if event.arm is None:
                asked[event.sender].append(t)
    # Phase j lasts from j^3 - (j-1)^3 = 1, 7, 19, 37 rounds to 2, 11, 29, 56: half as much again, rounded up.
    for rounds in asked.values():
        lengths = np.diff([0, *rounds])
        assert all(low <= one <= high for one, low, high in zip(lengths, (1, 7, 19, 37), (2, 11, 29, 56), strict=False))
    assert len({tuple(rounds) for rounds in asked.values()}) > 1


def test_gosine_ignores_what_is_lost_and_works_with_slow_agents():
    problem = problem_of(bm.networks.complete(6), 6, 12, 3)
    lost = bm.simulate(problem, "gosine", horizon=64, seed=0, faults=bm.Faults(loss=1.0))
    assert lost.traffic["learned"][0] == 0
    slow = bm.simulate(problem, "gosine", horizon=64, seed=0, every=[1, 2, 3, 1, 2, 3])
    assert slow.pulls[0].sum(axis=1).tolist() == [64, 32, 22, 64, 32, 22]
    assert slow.traffic["learned"][0] > 0


def test_lcc_has_epochs_by_diameter_and_degree():
    # Of a path of three agents: blocks of ceil(7/3) = 3 arms and at most 2 neighbours, so 5 * 6 rounds, twice.
    schedules = LCCUCB().plan(problem_of(bm.networks.path(3), 3, 7, 0))
    assert [tuple(one) for one in schedules] == [([0, 1, 2], 2, 30), ([3, 4, 5], 2, 30), ([6, 0, 1], 2, 30)]
    # On a complete network it is LCC-UCB: one part an epoch.
    assert LCCUCB().plan(problem_of(bm.networks.complete(5), 5, 10, 0))[4] == ([8, 9], 1, 42)
    # Components count by themselves: a pair, and an agent that is alone and plays all arms.
    apart = bm.networks.Links.from_pairs(3, [(0, 1)])
    assert [one.n_rounds for one in LCCUCB().plan(problem_of(apart, 3, 4, 0))] == [12, 12, 20]


def test_lcc_of_two_agents_by_hand():
    problem, best = problem_of(bm.networks.path(2), 2, 4, 3), 3
    agents, rounds = stepped(problem, LCCUCB(), best, 37)
    # Blocks of two arms and one neighbour: 3 * 4 rounds. Both arms of agent 0 pay nothing and are played by turns.
    assert [one.choices[0] for one in rounds[:12]] == [0, 1] * 6
    assert [one.choices[1] for one in rounds[:2]] == [2, 3]
    assert sum(one.choices[1] == 3 for one in rounds[:12]) > 6
    # Each tells the other the arm that it played most, the first of equals; then all counts begin at zero.
    events = [(event.round, event.sender, event.arm, event.learned) for one in rounds for event in one.events]
    assert events[:2] == [(12, 0, 0, True), (12, 1, 3, True)]
    assert [one.choices[0] for one in rounds[12:15]] == [0, 1, 3]
    assert [one.choices[1] for one in rounds[12:15]] == [2, 3, 0]
    # The second epoch has 24 rounds. Then both recommend arm 3; arm 0 is dropped.
    assert events[2:] == [(36, 0, 3, True), (36, 1, 3, True)]
    assert [agent.active for agent in agents] == [[0, 1, 3], [2, 3]]
    assert agents[0].count == [1, 0, 0, 0]


def test_lcc_sends_an_id_over_each_link_after_each_part():
    problem = problem_of(bm.networks.ring(6), 6, 12, 3)
    result = bm.simulate(problem, "lcc-ucb-graph", horizon=99, seed=0)
    # Parts of 20 rounds three times, then of 40.
    assert result.traffic["sent"][0] == 3 * 2 * 6
    assert result.traffic["bytes"][0] == 16 * 3 * 2 * 6


def test_recommendations_beat_being_alone():
    problem = problem_of(bm.networks.complete(8), 8, 24, 13)
    settings = {"horizon": 600, "seed": 1, "engine": "reference", "replicates": 2}
    alone = bm.simulate(problem, "none", policy=bm.UCB(4), **settings).regret[:, -1].mean()
    gosine = bm.simulate(problem, "gosine", **settings).regret[:, -1].mean()
    assert gosine < 0.6 * alone


@pytest.mark.slow
def test_gosine_regret_falls_with_the_number_of_agents(capsys):
    """The paper: about log T / gap for each of ceil(K/N) + 2 arms, a factor of order N below being alone."""
    n_arms, horizon = 40, 20_000
    settings = {"seed": 0, "replicates": 2, "engine": "reference"}
    alone = ratio = None
    with capsys.disabled():
        for n_agents in (1, 5, 20):
            problem = problem_of(bm.networks.complete(n_agents), n_agents, n_arms, 17, others=0.4)
            result = bm.simulate(problem, "gosine", horizon=horizon, record_every=horizon, **settings)
            each = result.regret[:, -1].mean() / n_agents
            alone = alone or each
            ratio = (each / alone) / ((-(-n_arms // n_agents) + 2) / n_arms)
            n_ids = n_agents * int(np.floor(horizon ** (1 / 3) + 1e-9))
            print(f"gosine, N = {n_agents}: regret per agent {each:.0f}, {ratio:.2f} times the order of the paper")
            sent = result.traffic["sent"].mean()
            assert n_agents == 1 or sent == 2 * n_ids
            assert each <= alone
    assert ratio < 2.0


@pytest.mark.slow
def test_lcc_regret_grows_like_the_root_of_the_horizon_at_most(capsys):
    """The paper: O~(D sqrt(D K' T)) for each agent, so doubling T adds a factor of about sqrt(2) at most."""
    problem = problem_of(bm.networks.ring(8), 8, 40, 17, others=0.4)
    settings = {"horizon": 16_000, "seed": 0, "replicates": 2, "record_every": 4000, "engine": "reference"}
    result = bm.simulate(problem, "lcc-ucb-graph", **settings)
    early, late = result.regret[:, 0].mean(), result.regret[:, -1].mean()
    slope = np.log(late / early) / np.log(4)
    with capsys.disabled():
        print(f"lcc-ucb-graph: regret grows like T ** {slope:.2f} from 4,000 to 16,000 rounds")
    assert slope < 0.6
