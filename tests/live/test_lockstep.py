"""In lockstep over in-memory links members equal the reference engine: exactly where nothing is drawn."""

import random
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from members import hear, observe, taken

import banditmesh as bm
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.member import ArmSpec, Member, Observation
from banditmesh.live.statistics import Statistic

FATES = {"news_absorbed": "absorbed", "news_expired": "expired", "news_stopped": "stopped", "news_relayed": "relayed"}


class Lockstep:
    """Members that play the rounds of a simulation: they choose, tell, hear and settle all at the same time."""

    def __init__(self, problem, protocol, policy, seed=0, bandit="default", segment=None, trim=0, **settings):
        self.now = 0.0
        self.where = {"bandit": bandit, "segment": segment}
        self.names = [f"{number:03d}" for number in range(problem.n_agents)]
        self.members = []
        for number, name in enumerate(self.names):
            arms = [
                ArmSpec(str(problem.arms[arm]), sigma=float(problem.sigmas[arm])) for arm in problem.arm_set(number)
            ]
            member = Member(
                "mesh",
                name,
                [BanditSpec(name=bandit, arms=arms, policy=policy, **settings)],
                protocol,
                trim=trim,
                rng=random.Random(f"{seed} {number}"),
            )
            member.committed(member.begin(number, 0.0))
            member.arm_of(bandit, segment, "any")  # makes the segment
            self.members.append(member)
        self.links = set()
        self.fates = Counter()

    def connect(self, links):
        """Let these links be up, both ways, and no others. What new ones are offered is no part of the simulator."""
        links = {(i, j) for link in links for i, j in (link, link[::-1])}
        for i, j in sorted(self.links - links):
            self.members[i].link_down(self.names[j])
        for i, j in sorted(links - self.links):
            self.members[i].link_up(self.names[j])
            taken(self.members[i], self.names[j])
        self.links = links

    def choose(self):
        """Everybody's choice."""
        return [member.choose(now=self.now, **self.where) for member in self.members]

    def tell(self, choices, rewards):
        """Everybody counts its reward; then all outboxes are taken before anything is heard. Who sent what to whom."""
        for member, (_, ticket), reward in zip(self.members, choices, rewards, strict=True):
            [answer] = observe(member, Observation(reward, ticket), now=self.now)
            assert answer.outcome == "counted"
        return [(i, j, taken(self.members[i], self.names[j])) for i, j in sorted(self.links)]

    def hear(self, sent):
        """What was sent is heard, senders ascending, and enters the estimates. Who learned how many, and all fates."""
        before = [Counter(member.counters) for member in self.members]
        for i, j, statistics in sent:
            self.members[j].hear([Statistic(*one) for one in statistics], self.names[i])
        for member in self.members:
            member.settle(in_order=True)
        fates, learned = Counter(), []
        for number, member in enumerate(self.members):
            new = member.counters - before[number]
            fates[number, "duplicate"] = new["heard_stale"]
            for name, fate in FATES.items():
                fates[number, fate] = new[name]
            learned.append(new["learned"])
        return learned, +fates

    def estimates(self, number):
        """What a member knows: counts and means, to the last bit."""
        state = self.members[number].snapshot()
        arms = [one.arms for one in state.agents if {"bandit": one.bandit, "segment": one.segment} == self.where]
        return [(one.own_count + one.heard_count, one.mean or 0.0) for one in (arms or [state.arms])[0]]


def networks():
    return {
        "path": bm.networks.path(5),
        "ring": bm.networks.ring(6),
        "star": bm.networks.star(6),
        "complete": bm.networks.complete(4),
        "grid": bm.networks.grid(3, 3),
    }


PROTOCOLS = {
    "none": bm.NoCooperation(),
    "irs": bm.IRS(),
    "flooding": bm.Flooding(3),
    "fwa": bm.FwA(4),
}


CASES = [(network, protocol) for protocol in ("irs", "flooding", "fwa") for network in networks()]


@pytest.mark.parametrize("network, protocol", [("grid", "none"), *CASES])
@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_lockstep_equals_the_reference_engine_exactly(network, protocol, factor):
    play_in_lockstep(networks()[network], PROTOCOLS[protocol], factor)


@pytest.mark.parametrize("protocol", ["irs", "flooding", "fwa"])
def test_so_does_a_bandit_in_a_segment(protocol):
    play_in_lockstep(networks()["grid"], PROTOCOLS[protocol], 0.5, bandit="ads", segment="de/be")


@pytest.mark.parametrize("trim", [1, 2])
@pytest.mark.parametrize("network, protocol", [("complete", "irs"), ("grid", "flooding"), ("grid", "fwa")])
def test_members_that_test_what_they_hear_equal_the_simulator_s(network, protocol, trim):
    network = bm.networks.complete(12) if network == "complete" else networks()[network]
    rewards = np.random.default_rng(trim).normal(0.0, 1.0, (40, network.number_of_nodes(), 7))
    rewards[:, 3] += 9.0
    rewards[:, 5, ::2] -= 4.0
    lockstep = play_in_lockstep(network, PROTOCOLS[protocol], 0.25, horizon=40, rewards=rewards, trim=trim)
    seen = [arm.left_out for member in lockstep.members for arm in member.snapshot().arms]
    assert any("003" in names for names in seen)
    assert not all("003" in names for names in seen)


def play_in_lockstep(network, protocol, factor, horizon=16, rewards=None, trim=0, **where):
    """Members and the reference engine, round by round."""
    problem = bm.Problem.random(network, n_arms=7, per_agent=3, seed=5)
    emission = bm.Growth(factor)
    more = {"rewards": rewards, "trim": trim} if trim else {}
    simulation = bm.Simulation(problem, protocol.with_emission(emission), horizon=horizon, seed=3, **more)
    # Live, telling of every pull is a statistic of all pulls so far: what the simulator calls growth by nothing.
    live = protocol.with_emission(bm.EveryPull() if factor == 0.0 else emission)
    lockstep = Lockstep(problem, live, bm.UCB(), trim=trim, **where)
    for _ in range(horizon):
        play = simulation.step()
        lockstep.connect(play.links)
        choices = lockstep.choose()
        assert [arm for arm, _ in choices] == [str(play.choices[agent]) for agent in problem.agents]
        sent = lockstep.tell(choices, [play.rewards[agent] for agent in problem.agents])
        copies = Counter((event.sender, event.receiver) for event in play.events)
        assert copies == +Counter({(i, j): len(statistics) for i, j, statistics in sent})
        learned, fates = lockstep.hear(sent)
        assert fates == Counter((event.receiver, event.fate.replace("queued", "relayed")) for event in play.events)
        assert learned == [
            sum(event.learned for event in play.events if event.receiver == agent) for agent in problem.agents
        ]
        for number, agent in enumerate(problem.agents):
            assert lockstep.estimates(number) == list(play.estimates[agent].values())
    assert all(member.counters["heard_extended"] == 0 for member in lockstep.members)
    return lockstep


def test_lockstep_on_two_components_and_a_single_agent():
    network = nx.Graph([(0, 1), (1, 2), (3, 4)])
    network.add_node(5)
    problem = bm.Problem(
        network, [[0, 1], [1], [0, 1], [0, 1], [1, 0], [1]], [bm.arms.Gaussian(0.2), bm.arms.Gaussian(0.5)]
    )
    simulation = bm.Simulation(problem, bm.FwA(4, emission=bm.Growth(0.0)), horizon=30, seed=1)
    lockstep = Lockstep(problem, bm.FwA(4), bm.UCB())
    for _ in range(30):
        play = simulation.step()
        lockstep.connect(play.links)
        choices = lockstep.choose()
        lockstep.hear(lockstep.tell(choices, [play.rewards[agent] for agent in problem.agents]))
        assert [arm for arm, _ in choices] == [str(play.choices[agent]) for agent in problem.agents]
        for number, agent in enumerate(problem.agents):
            assert lockstep.estimates(number) == list(play.estimates[agent].values())


@pytest.mark.parametrize("protocol", [bm.Flooding(4), bm.FwA(4)], ids=["flooding", "fwa"])
def test_whichever_path_is_quicker_every_relay_is_counted_once(protocol):
    """On links of any delay as many copies are counted as in the simulator, where the shortest path always wins."""
    protocol = protocol.with_emission(bm.Growth(0.25))
    # One arm each: choices do not depend on what is heard. Round 15 is the last in which anything is told.
    problem = bm.Problem.random(nx.barabasi_albert_graph(20, 2, seed=1), n_arms=4, per_agent=1, seed=3)
    simulated = bm.simulate(problem, protocol, horizon=18, seed=0, engine="reference").transmissions[0, -1]
    rng, mesh = random.Random(0), Lockstep(problem, protocol, bm.UCB())
    neighbours = [[int(j) for j in others] for others in problem.network.neighbour_lists()]
    mesh.connect([(i, j) for i, others in enumerate(neighbours) for j in others])
    for _ in range(18):
        under_way = [one for one in mesh.tell(mesh.choose(), [0.5] * problem.n_agents) if one[2]]
        while under_way:
            i, j, statistics = under_way.pop(rng.randrange(len(under_way)))
            hear(mesh.members[j], mesh.names[i], *statistics)
            sent = [(j, k, taken(mesh.members[j], mesh.names[k])) for k in neighbours[j]]
            under_way += [one for one in sent if one[2]]
    counts = sum((member.counters for member in mesh.members), Counter())
    assert counts["heard_extended"] > 0
    assert counts["sent_news"] == simulated


def free_run(problem, protocol, horizon, seed):
    """Regret and news sent of members that draw for themselves, on the network and with the laws of a problem."""
    rng = random.Random(seed)
    lockstep = Lockstep(problem, protocol, bm.UCB(), seed)
    simulation = bm.Simulation(problem, bm.NoCooperation(), horizon=horizon, seed=seed)
    means = {str(arm): float(mean) for arm, mean in zip(problem.arms, problem.means, strict=True)}
    best = [max(means[str(problem.arms[arm])] for arm in problem.arm_set(v)) for v in range(problem.n_agents)]
    regret = 0.0
    for _ in range(horizon):
        lockstep.connect(simulation.step().links)
        choices = lockstep.choose()
        regret += sum(top - means[arm] for top, (arm, _) in zip(best, choices, strict=True))
        lockstep.hear(lockstep.tell(choices, [rng.gauss(means[arm], 1.0) for arm, _ in choices]))
    return regret, sum(member.counters["sent_news"] for member in lockstep.members)


GRID = bm.networks.grid(3, 3)
CHANGING = bm.networks.EdgeMarkovian(GRID, p=0.1, q=0.3)


@pytest.mark.parametrize(
    "protocol, network",
    [
        (bm.Gossip(4), GRID),
        (bm.ProbabilisticFlooding(4, stop=0.5), GRID),
        (bm.FwA(3), CHANGING),
        (bm.Gossip(3, fanout=2), CHANGING),
    ],
    ids=["gossip", "probabilistic", "fwa on a dynamic network", "gossip on a dynamic network"],
)
def test_where_it_draws_lockstep_agrees_with_the_simulator_on_average(protocol, network):
    horizon, n_runs = 30, 5
    problem = bm.Problem.random(network, n_arms=5, per_agent=3, seed=2)
    simulated = protocol.with_emission(bm.Growth(0.0))
    result = bm.simulate(problem, simulated, horizon=horizon, replicates=8, seed=1, engine="reference")
    runs = [free_run(problem, protocol, horizon, seed) for seed in range(n_runs)]
    regret, messages = (
        (np.mean(ours), np.mean(theirs), 3 * np.sqrt(np.var(ours) / n_runs + np.var(theirs) / len(theirs)))
        for ours, theirs in zip(
            zip(*runs, strict=True), (result.regret[:, -1], result.transmissions[:, -1]), strict=True
        )
    )
    assert regret[0] == pytest.approx(regret[1], rel=0.05, abs=regret[2])
    # A node never passes on what it knows to be old, as the simulator does.
    assert 0.6 * messages[1] < messages[0] < messages[1] + messages[2]
