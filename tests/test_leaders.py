"""Leaders and those who follow them: follow-your-leader and DPE2."""

import itertools

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import DPE2, FollowYourLeader
from banditmesh.algorithms.leaders import dominating_leaders, group_leaders
from banditmesh.networks import EdgeMarkovian

COINS = [bm.arms.Bernoulli(0.5), bm.arms.Bernoulli(0.8), bm.arms.Bernoulli(0.3)]


def alike(network, arms=COINS):
    n_agents = getattr(network, "n_agents", None) or len(network)
    return bm.Problem(network, [range(len(arms))] * n_agents, arms)


def paid(problem, *means, horizon):
    """A tape on which every arm always pays its mean."""
    return np.broadcast_to(np.array(means, dtype=float), (horizon, problem.n_agents, len(means)))


def steps(problem, protocol, horizon, **settings):
    """Every agent's pulls, round by round, and the events of each round."""
    simulation = bm.Simulation(problem, protocol, horizon=horizon, seed=0, **settings)
    rounds = [simulation.step() for _ in range(horizon)]
    pulls = [[one.choices.get(agent) for one in rounds] for agent in problem.agents]
    return pulls, [one.events for one in rounds], simulation


# Who leads


@pytest.mark.parametrize(
    ("network", "leaders"),
    [
        (bm.networks.path(1), [0]),
        (bm.networks.path(6), [1, 1, 1, 4, 4, 4]),
        (bm.networks.star(5), [0, 0, 0, 0, 0]),
        (bm.networks.complete(4), [0, 0, 0, 0]),
        (nx.empty_graph(3), [0, 1, 2]),
        # After 1 and 4, a follower of neither is left in the middle: it leads itself or 2 or 4 lead it.
        (nx.disjoint_union(nx.path_graph(3), nx.path_graph(2)), [1, 1, 1, 3, 3]),
    ],
)
def test_dominating_leaders_of_small_networks(network, leaders):
    assert dominating_leaders(alike(network)) == leaders


@pytest.mark.parametrize("seed", range(5))
def test_every_agent_has_a_leader_with_its_arms_that_is_its_neighbour(seed):
    network = nx.gnp_random_graph(30, 0.15, seed=seed)
    arm_sets = [[0, 1] if number % 3 else [1, 2] for number in range(30)]
    leaders = dominating_leaders(bm.Problem(network, arm_sets, COINS))
    for number, leader in enumerate(leaders):
        assert leaders[leader] == leader
        assert arm_sets[leader] == arm_sets[number]
        assert leader == number or network.has_edge(leader, number)


def test_groups_have_the_same_arms_and_can_reach_each_other():
    network = nx.disjoint_union(nx.star_graph(3), nx.path_graph(3))
    assert group_leaders(alike(network)) == [0, 0, 0, 0, 5, 5, 5]
    sets = [[0, 1], [1, 2], [1, 2], [0, 1], [0, 1], [0, 1], [1, 2]]
    assert group_leaders(bm.Problem(network, sets, COINS)) == [0, 1, 1, 0, 5, 5, 6]
    moving = EdgeMarkovian(bm.networks.ring(4), 0.2, 0.2)
    assert group_leaders(bm.Problem(moving, [[0], [0, 1], [0], [0, 1]], COINS[:2])) == [0, 1, 0, 1]


# Follow your leader


def test_follower_pulls_what_its_leader_pulled_a_round_before():
    problem = alike(bm.networks.path(6))
    pulls, _, _ = steps(problem, "fyl", 60)
    for leader, followers in ((1, (0, 2)), (4, (3, 5))):
        for follower in followers:
            assert pulls[follower][1:] == pulls[leader][:-1]
    assert all(one[0] == 0 for one in pulls)


def test_leader_learns_from_its_whole_star():
    problem = alike(bm.networks.star(4))
    tape = paid(problem, 0.5, 0.9, 0.1, horizon=3)
    pulls, events, simulation = steps(problem, "fyl", 3, rewards=tape, means=[0.5, 0.9, 0.1])
    # Nobody knows anything: all pull arm 0. The leader then knows of it, and tries the others.
    assert pulls == [[0, 1, 2], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    leader = simulation.agents[0]
    assert leader.estimates.count == [4 + 3, 1 + 3, 1]
    assert leader.estimates.mean == pytest.approx([0.5, 0.9, 0.1])
    assert [len(one) for one in events] == [6, 6, 6]
    # Three observations of 24 bytes and three choices of 16.
    result = simulation.run()
    assert result.traffic["bytes"][0] == 3 * (3 * 24 + 3 * 16)


def test_links_between_leaders_and_other_followers():
    # Agents 1 and 4 lead; 2 is a follower of 1 and no neighbour of 4, 3 of 4: their link carries nothing.
    problem = alike(bm.networks.path(6))
    _, events, _ = steps(problem, "fyl", 1)
    assert not {(2, 3), (3, 2)} & {(event.sender, event.receiver) for event in events[0]}
    # Two neighbours that both lead tell each other of arms that both have.
    pair = bm.Problem(bm.networks.path(2), [[0, 1], [1, 2]], COINS)
    pulls, events, _ = steps(pair, "fyl", 3)
    assert pulls[0][:1] == [0]
    assert pulls[1][:1] == [1]
    assert [[(event.sender, event.arm) for event in one] for one in events[:1]] == [[(1, 1)]]


def test_follower_of_a_silent_leader_waits_and_then_chooses_by_itself():
    problem = alike(bm.networks.path(2), COINS[:2])
    tape = paid(problem, 0.2, 0.9, horizon=40)
    # The leader pulls in rounds 1 and 31 only.
    pulls, _, _ = steps(problem, "fyl", 34, rewards=tape[:34], means=[0.2, 0.9], every=[30, 1])
    assert pulls[1][:17] == [0] * 17
    assert 1 in pulls[1][17:]
    assert pulls[1][31:] == [pulls[0][30]] * 3


def test_followers_have_their_leaders_regret():
    problem = alike(bm.networks.star(9))
    result = bm.simulate(problem, FollowYourLeader(), horizon=150, seed=1)
    regret = result.agent_regret[0]
    assert np.abs(regret[1:] - regret[0]).max() <= 0.5  # one pull of the worst arm, at most


def test_follow_your_leader_needs_a_network_that_stays():
    with pytest.raises(bm.InputError, match="'fyl' does not work with a dynamic network: its leaders are planned"):
        bm.simulate(alike(EdgeMarkovian(bm.networks.ring(4), 0.2, 0.2)), "fyl", horizon=5)


# DPE2


def test_leader_goes_through_blocks_and_tells_of_its_best_arm_once():
    problem = alike(bm.networks.path(4), COINS[:2])
    tape = paid(problem, 0.0, 1.0, horizon=12)
    # Agent 1 leads. Its first block is arm 0, then arm 1, which is the best: said in round 2.
    pulls, events, _ = steps(problem, "dpe2", 12, rewards=tape, means=[0.0, 1.0])
    assert pulls[1][:3] == [0, 1, 1]
    assert pulls[0] == [0, 0] + [1] * 10
    assert pulls[2] == [0, 0] + [1] * 10
    assert pulls[3] == [0, 0, 0] + [1] * 9
    sent = [(t, event.sender, event.receiver) for t, one in enumerate(events, 1) for event in one]
    assert sent == [(2, 1, 0), (2, 1, 2), (3, 0, 1), (3, 2, 1), (3, 2, 3), (4, 3, 2)]


def test_leader_explores_arms_whose_index_is_above_its_best_mean():
    problem = alike(bm.networks.path(1))
    simulation = bm.Simulation(problem, DPE2(c=0.0), horizon=4, seed=0, rewards=paid(problem, 0.9, 0.5, 0.0, horizon=4))
    for _ in range(3):
        simulation.step()
    agent = simulation.agents[0]
    # After one pull of each, log(3) = 1.0986 allows q with d(0.9, q), d(0.5, q) and d(0, q) = -log(1 - q) up to that:
    # the last is 1 - 1/3, below 0.9, and d(0.5, 0.9) = 0.51 is allowed.
    assert agent.best == 0
    assert agent.to_explore == [0, 1]
    assert agent.is_first


def test_only_the_leader_explores_and_messages_do_not_grow_with_time():
    problem = alike(bm.networks.ring(6))
    early, late = (bm.simulate(problem, "dpe2", horizon=horizon, seed=2) for horizon in (300, 1200))
    assert early.traffic["sent"][0] == late.traffic["sent"][0] > 0
    # Each change costs two messages a link.
    assert late.traffic["sent"][0] % 12 == 0
    assert late.traffic["bytes"][0] == 32 * late.traffic["sent"][0]
    explored = late.pulls[0] - early.pulls[0]
    assert explored[0, [0, 2]].sum() > 0
    assert explored[1:, [0, 2]].sum() == 0


def test_agents_with_other_arms_pass_on_what_leaders_say():
    # Agents 0 and 2 have the same arms, and only agent 1 between them; nobody follows agent 1.
    problem = bm.Problem(bm.networks.path(3), [[0, 1], [0, 2], [0, 1]], COINS)
    tape = paid(problem, 0.1, 0.9, 0.5, horizon=6)
    pulls, events, _ = steps(problem, "dpe2", 6, rewards=tape, means=[0.1, 0.9, 0.5])
    assert pulls[2] == [0, 0, 0, 1, 1, 1]
    assert {event.origin for one in events for event in one} == {0, 1, 2}
    assert sum(map(len, events)) == 4


@pytest.mark.parametrize(
    ("network", "faults"),
    [
        (bm.networks.path(7), bm.Faults(loss=0.5)),
        (bm.networks.path(7), bm.Faults(delay=2, jitter=2.0)),
        (bm.networks.path(7), bm.Faults(outages=bm.Outages(down=0.05, up=0.3))),
        (bm.networks.path(7), bm.Faults(outages=bm.Outages(down=0.02, up=0.3, memory=False), loss=0.3)),
        (EdgeMarkovian(bm.networks.ring(7), 0.3, 0.6), None),
    ],
)
def test_everybody_hears_in_the_end(network, faults):
    arms = [bm.arms.Gaussian(0.1, 0.1), bm.arms.Gaussian(0.9, 0.1)]
    result = bm.simulate(alike(network, arms), "dpe2", horizon=250, seed=3, faults=faults)
    assert (result.pulls[0, :, 1] > 0.75 * result.pulls[0].sum(axis=1)).all()
    # Whoever is up and has an answer is silent: far fewer messages than rounds and links.
    assert result.traffic["sent"][0] < 0.25 * 250 * 12


def test_dpe2_needs_sigmas():
    class Odd(bm.arms.Law):
        mean = 0.5
        sigma = None
        continuous = True

        def quantile(self, u):
            return u

    with pytest.raises(bm.InputError, match="must know the sigma of every arm"):
        bm.simulate(bm.Problem(bm.networks.path(2), [[0], [0]], [Odd()]), "dpe2", horizon=3)


# What the papers claim


@pytest.mark.slow
def test_star_has_one_agents_regret_per_agent_divided(capsys):
    """The sum over a star grows little with its size, and not with the number of followers as it does alone."""
    regrets = {}
    for n in (4, 8, 16, 32):
        problem = alike(bm.networks.star(n))
        settings = {"horizon": 1000, "replicates": 4, "seed": 0}
        star = bm.simulate(problem, "fyl", **settings).regret[:, -1].mean()
        alone = bm.simulate(problem, "none", policy="ucb(2)", engine="reference", **settings).regret[:, -1].mean()
        regrets[n] = star, alone
    with capsys.disabled():
        print("".join(f"\nstar of {n}: {star:.0f}, alone {alone:.0f}" for n, (star, alone) in regrets.items()), end="")
    stars = [star for star, _ in regrets.values()]
    # Alone it grows eightfold from 4 to 32 agents.
    assert regrets[32][1] > 6 * regrets[4][1]
    assert stars[-1] < 2.5 * stars[0]


@pytest.mark.slow
def test_regret_of_dpe2_grows_as_that_of_one_agent(capsys):
    """Between T and 10 T the regret grows by about sum(gap / d) log(10), whatever the number of agents."""
    problem = alike(bm.networks.ring(8))
    rounds = (1000, 10_000)
    result = bm.simulate(problem, DPE2(c=0.0), horizon=rounds[1], replicates=6, seed=0, engine="reference")
    grown = (result.regret[:, rounds[1] - 1] - result.regret[:, rounds[0] - 1]).mean()

    def divergence(p, q):
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))

    bound = sum((0.8 - p) / divergence(p, 0.8) for p in (0.5, 0.3)) * np.log(10.0)
    with capsys.disabled():
        print(f"\ndpe2 from 1,000 to 10,000 rounds: {grown:.2f}, by the lower bound {bound:.2f}", end="")
    assert 0.4 * bound < grown < 2.5 * bound


def test_pairs_of_numbers_are_named_once():
    # Notes that meet different faults have different names.
    problem = alike(bm.networks.path(4))
    _, events, _ = steps(problem, "fyl", 10)
    for one, other in itertools.combinations([event for round_ in events for event in round_], 2):
        assert (one.message, one.receiver) != (other.message, other.receiver)
