"""Memories: Discount and Window, and first pulls that listen; by hand, by brute force and on both engines."""

import itertools
import json
import math

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.core import Agent, Copy, Message, Place, Silent
from banditmesh.errors import MessageError
from banditmesh.live.template import refuse_live
from banditmesh.policies import Arms
from banditmesh.policies.discount import FLOOR, scale_of, weight_of

N_ARMS = 5


def problem_on(graph, per_agent=3, seed=0):
    rng = np.random.default_rng(seed)
    sets = [sorted(rng.choice(N_ARMS, per_agent, replace=False).tolist()) for _ in graph]
    return bm.Problem(graph, sets, [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(N_ARMS)])


def tape_for(problem, horizon, seed=0):
    laws = np.random.default_rng(seed).normal(0.0, 1.0, (horizon, problem.n_agents, problem.n_arms))
    return laws + 0.1 * np.arange(N_ARMS)


# The rules once more, written from the papers and from the definition: weights and ages, then D-UCB and SW-UCB.


def weight(memory, made, t):
    if isinstance(memory, bm.Discount):
        return memory.gamma ** (t - made)
    if isinstance(memory, bm.Window):
        n = math.ceil(memory.rounds / memory.blocks)
        return float((t - 1) // n - (made - 1) // n < math.ceil(memory.rounds / n))
    return 1.0


def age(memory, t):
    if isinstance(memory, bm.Discount):
        return max(1.0, sum(memory.gamma**k for k in range(t)))
    return min(t, memory.rounds) if isinstance(memory, bm.Window) else t


def index_choice(t, arms, known, pulled, alpha, memory, first_pulls):
    """Which of its arms an agent pulls that knows of (arm, round, reward) and has pulled arms so often."""
    if first_pulls == "each":
        for arm in arms:
            if not pulled[arm]:
                return arm
    seen = {arm: [(weight(memory, made, t), reward) for a, made, reward in known if a == arm] for arm in arms}
    counts = {arm: sum(w for w, _ in seen[arm]) for arm in arms}
    unknown = [arm for arm in arms if counts[arm] == 0.0]
    if unknown:
        return min(unknown, key=lambda arm: pulled[arm])
    bonus = alpha * math.log(age(memory, t))
    index = {
        arm: sum(w * reward for w, reward in seen[arm]) / counts[arm] + math.sqrt(bonus / counts[arm]) for arm in arms
    }
    return max(arms, key=index.__getitem__)


def choices_of(problem, tape, protocol, policy, **settings):
    """What every agent pulls in every round, on the reference engine."""
    simulation = bm.Simulation(problem, protocol, policy=policy, horizon=len(tape), seed=0, rewards=tape, **settings)
    return [list(simulation.step().choices.values()) for _ in range(len(tape))]


@pytest.mark.filterwarnings("ignore:rewards contradict")
@pytest.mark.parametrize(("gamma", "xi"), [(0.9, 0.6), (0.98, 0.5), (0.6, 1.0)])
def test_a_lone_agent_with_discount_is_d_ucb(gamma, xi):
    horizon, arms = 250, range(4)
    rng = np.random.default_rng(1)
    means = np.where(np.arange(horizon)[:, None] < 120, [0.1, 0.9, 0.4, 0.5], [0.8, 0.2, 0.4, 0.5])
    tape = rng.normal(means, 0.5)
    pulled, expected = [], []
    for t in range(1, horizon + 1):
        # Garivier and Moulines, with N and X of the rounds before, and n of one round more.
        n = [sum(gamma ** (t - 1 - s) for s, arm in pulled if arm == a) for a in arms]
        x = [sum(gamma ** (t - 1 - s) * tape[s - 1, arm] for s, arm in pulled if arm == a) for a in arms]
        total = sum(gamma**k for k in range(t))
        score = [math.inf if not n[a] else x[a] / n[a] + 2.0 * math.sqrt(xi * math.log(total) / n[a]) for a in arms]
        arm = t - 1 if t <= 4 else max(arms, key=score.__getitem__)
        pulled.append((t, arm))
        expected.append([arm])
    problem = bm.Problem(nx.empty_graph(1), [list(arms)], [bm.arms.Gaussian(0.5, 1.0)] * 4)
    policy = bm.UCB(alpha=4 * xi * gamma, memory=bm.Discount(gamma))
    assert choices_of(problem, tape[:, None, :], bm.NoCooperation(), policy) == expected


@pytest.mark.filterwarnings("ignore:rewards contradict")
@pytest.mark.parametrize(("tau", "xi"), [(40, 0.6), (7, 0.5)])
def test_a_lone_agent_with_a_window_of_single_rounds_is_sw_ucb(tau, xi):
    horizon, arms = 250, range(4)
    tape = np.random.default_rng(2).normal([0.1, 0.9, 0.4, 0.5], 0.5, (horizon, 4))
    pulled, expected = [], []
    for t in range(1, horizon + 1):
        last = [(s, arm) for s, arm in pulled if s >= t - tau]
        n = [sum(arm == a for _, arm in last) for a in arms]
        x = [sum(tape[s - 1, arm] for s, arm in last if arm == a) for a in arms]
        unknown = [a for a in arms if not n[a]]
        if unknown:
            arm = min(unknown, key=lambda a: sum(arm == a for _, arm in pulled))
        else:
            arm = max(arms, key=lambda a: x[a] / n[a] + math.sqrt(xi * math.log(min(t, tau + 1)) / n[a]))
        pulled.append((t, arm))
        expected.append([arm])
    problem = bm.Problem(nx.empty_graph(1), [list(arms)], [bm.arms.Gaussian(0.5, 1.0)] * 4)
    policy = bm.UCB(alpha=xi, memory=bm.Window(tau + 1, blocks=tau + 1))
    assert choices_of(problem, tape[:, None, :], bm.NoCooperation(), policy) == expected


class Brute:
    """A whole run in which agents know sets of observations, and messages are sets too."""

    def __init__(self, problem, graph, tape, alpha, memory, first_pulls):
        self.problem, self.graph, self.tape = problem, graph, tape
        self.alpha, self.memory, self.first_pulls = alpha, memory, first_pulls
        self.sets = [problem.arm_set(v).tolist() for v in graph]
        self.known = {v: set() for v in graph}
        self.own = {v: set() for v in graph}
        self.pulled = {v: dict.fromkeys(range(N_ARMS), 0) for v in graph}
        self.n_sent = 0
        self.regret = []

    def pull(self, t):
        regret = 0.0
        for v in self.graph:
            known = {(arm, made, reward) for _, made, arm, reward in self.known[v]}
            seen = [(arm, made, reward) for _, made, arm, reward in sorted(self.known[v])]
            assert len(known) == len(seen)
            arm = index_choice(t, self.sets[v], seen, self.pulled[v], self.alpha, self.memory, self.first_pulls)
            self.pulled[v][arm] += 1
            one = (v, t, arm, float(self.tape[t - 1, v, arm]))
            self.own[v].add(one)
            self.known[v].add(one)
            regret += 0.1 * (max(self.sets[v]) - arm)
            yield v, arm, one
        self.regret.append((self.regret[-1] if self.regret else 0.0) + regret)

    def forward(self, observations, t):
        """What a statistic weighs, in weights that grow with the round."""
        if isinstance(self.memory, bm.Discount):
            return sum(self.memory.gamma ** -(made - t) for _, made, _, _ in observations)
        return len(observations)

    def told_of(self, v, arm, t):
        """The observations that v's own statistic of an arm stands for."""
        own = {one for one in self.own[v] if one[2] == arm}
        if isinstance(self.memory, bm.Window):
            n = math.ceil(self.memory.rounds / self.memory.blocks)
            own = {one for one in own if (one[1] - 1) // n == (t - 1) // n}
        return own

    def run_relayed(self, ttl, absorbs, factor):
        told, under_way = {}, []
        for t in range(1, len(self.tape) + 1):
            for v, arm, one in self.pull(t):
                content = {one}
                if factor is not None:
                    content = self.told_of(v, arm, t)
                    before = told.get((v, arm), set()) & content
                    now, was = self.forward(content, t), self.forward(before, t)
                    if not now - was >= factor * was:
                        continue
                    told[v, arm] = content
                under_way.append((content, arm, {v}, [(v, None)], ttl))
            still = []
            for content, arm, seen, senders, left in under_way:
                got = {}
                for sender, previous in sorted(senders):
                    targets = [w for w in sorted(self.graph[sender]) if w != previous]
                    self.n_sent += len(targets)
                    for w in targets:
                        if w not in seen:
                            got.setdefault(w, sender)
                for w in got:
                    if arm in self.sets[w]:
                        self.known[w] |= content
                relays = [(w, s) for w, s in got.items() if not (absorbs and arm in self.sets[w])]
                if left > 1 and relays:
                    still.append((content, arm, seen | set(got), relays, left - 1))
            under_way = still

    def run_tree(self, factor, pause):
        links = [(v, w) for v in self.graph for w in sorted(self.graph[v])]
        beyond = {}
        for v, w in links:
            rest = self.graph.copy()
            rest.remove_edge(v, w)
            beyond[v, w] = {arm for u in nx.node_connected_component(rest, w) for arm in self.sets[u]}
        heard = {link: {} for link in links}
        told = {}
        for t in range(1, len(self.tape) + 1):
            list(self.pull(t))
            sent = []
            for v, w in links:
                for arm in sorted(beyond[v, w]):
                    content = {one for one in self.own[v] if one[2] == arm}
                    for u in sorted(self.graph[v]):
                        if u != w:
                            content |= heard[u, v].get(arm, set())
                    before, when = told.get((v, w, arm), (set(), t - pause))
                    now, was = self.forward(content, t), self.forward(before, t)
                    if content != before and now - was >= factor * was and t - when >= pause:
                        told[v, w, arm] = content, t
                        sent.append((v, w, arm, content))
            self.n_sent += len(sent)
            for v, w, arm, content in sent:
                heard[v, w][arm] = content
                if arm in self.sets[w]:
                    self.known[w] |= content


MEMORIES = [bm.Discount(0.9), bm.Window(20, blocks=4), bm.Window(9, blocks=9)]
RELAYED = {
    "flooding": (bm.Flooding(3), (3, False, None)),
    "fwa": (bm.FwA(2), (2, True, None)),
    "growth": (bm.Flooding(2, emission=bm.Growth(0.5)), (2, False, 0.5)),
    "fwa, growth": (bm.FwA(3, emission=bm.Growth(0.25)), (3, True, 0.25)),
}


def check_brute(brute, problem, protocol, policy, tape, engine):
    result = bm.simulate(problem, protocol, policy=policy, horizon=len(tape), seed=0, rewards=tape, engine=engine)
    assert np.allclose(result.regret[0], brute.regret, atol=1e-9)
    assert result.traffic["sent"][0] == brute.n_sent


@pytest.mark.filterwarnings("ignore:rewards contradict")
@pytest.mark.parametrize("first_pulls", ["each", "unknown"])
@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
@pytest.mark.parametrize("name", RELAYED)
def test_a_run_of_several_agents_is_what_sets_of_observations_say(name, memory, first_pulls):
    protocol, arguments = RELAYED[name]
    graph = nx.erdos_renyi_graph(7, 0.35, seed=3)
    problem = problem_on(graph)
    tape = tape_for(problem, 45)
    brute = Brute(problem, graph, tape, 1.0, memory, first_pulls)
    brute.run_relayed(*arguments)
    check_brute(brute, problem, protocol, bm.UCB(1.0, memory=memory, first_pulls=first_pulls), tape, "reference")


@pytest.mark.filterwarnings("ignore:rewards contradict")
@pytest.mark.parametrize("graph", [nx.path_graph(5), nx.star_graph(5)], ids=["path", "star"])
# Several agents pull in a round: a factor of 1/2 would be met exactly at times, and roundings would decide.
@pytest.mark.parametrize(("factor", "pause"), [(0.05, 8), (0.37, 1)])
def test_a_run_along_a_tree_is_what_sets_of_observations_say(graph, factor, pause):
    problem = problem_on(graph)
    tape, memory = tape_for(problem, 60), bm.Discount(0.93)
    brute = Brute(problem, graph, tape, 1.0, memory, "each")
    brute.run_tree(factor, pause)
    protocol = bm.TreeAggregation(pause, emission=bm.Growth(factor))
    check_brute(brute, problem, protocol, bm.UCB(1.0, memory=memory), tape, "reference")


# Weights, scales and the floor.


@pytest.mark.parametrize("gamma", [0.5, 0.7, 0.995, 1.0 - 1e-12])
def test_weights_are_powers_of_gamma_whatever_the_scale(gamma):
    rate = -math.log2(gamma)
    for made, later in ((1, 2), (30, 40), (31, 33), (1000, 1100), (5, 900)):
        found = math.ldexp(weight_of(made, rate), scale_of(made, rate) - scale_of(later, rate)) / weight_of(later, rate)
        assert found == pytest.approx(gamma ** (later - made), rel=1e-12)
        assert 1.0 <= weight_of(later, rate) < 2.0**32


def agent_with(memory, name="a", n_arms=2):
    return Agent(name, Arms.gaussian(list(range(n_arms)), 1.0), bm.UCB(memory=memory), Silent(), None)


def test_a_weight_below_the_floor_is_none_and_its_arm_is_unknown():
    agent = agent_with(bm.Discount(0.5))
    agent.begin(1)
    agent.observe(0, 3.0)
    for t in range(2, 300):
        agent.begin(t)
        agent.observe(1, 1.0)
        assert agent.recall.own_weight[0] == 0.0 or agent.recall.own_weight[0] >= FLOOR
    estimates = agent.estimates
    assert (estimates.count[0], estimates.mean[0], estimates.inv_root[0]) == (0, 0.0, 0.0)
    assert estimates.count[1] == pytest.approx(2.0, rel=1e-9)
    agent.choose(299)
    assert agent.choose(299).position == 0  # before the policy is asked


def test_a_window_forgets_block_by_block():
    agent = agent_with(bm.Window(6, blocks=3))
    for t in range(1, 9):
        agent.begin(t)
        agent.observe(0, float(t))
    # Blocks of two rounds, of which three count: rounds 3 to 8.
    assert (agent.estimates.count[0], agent.estimates.mean[0]) == (6, 5.5)
    agent.begin(9)
    assert (agent.estimates.count[0], agent.estimates.mean[0]) == (4, 6.5)


@pytest.mark.parametrize("memory", [bm.Discount(0.9), bm.Discount(0.5), bm.Window(40, blocks=5)], ids=repr)
def test_agents_that_know_the_same_observations_have_the_same_estimates(memory):
    rng = np.random.default_rng(5)
    one, late, told = (agent_with(memory, name) for name in ("one", "late", "told"))
    told._courier.hears_sums = True
    waiting = []
    for t in range(1, 121):
        for agent in (one, late, told):
            agent.begin(t)
        if t <= 100:
            position, reward = int(rng.integers(2)), float(rng.normal())
            one.observe(position, reward)
            arrival = t + int(rng.integers(0, 20))
            waiting.append((arrival, Message("one", t, position, 1, reward, 0, t)))
            statistic = Message("one", t, position, *one.own(position), 0, t)
            # A statistic holds what was in those that were lost; the last of a block comes.
            if rng.random() < 0.3 or t % 8 == 0 or t > 90:
                told.hear(statistic)
            if t % 8 == 0 or t == 100:
                told.hear(Message("one", t + 1000, 1 - position, *one.own(1 - position), 0, t))
        for arrival, message in waiting:
            if arrival == t:
                late.hear(message)
        late.settle()
        told.settle()
    for other in (late, told):
        assert other.estimates.count == pytest.approx(one.estimates.count, rel=1e-12, abs=1e-12)
        assert other.estimates.mean == pytest.approx(one.estimates.mean, rel=1e-9, abs=1e-12)


def test_a_tree_has_no_news_of_nothing():
    # Everybody pulls in the first round alone; scales change many times, and weights end.
    problem = problem_on(nx.random_labeled_tree(12, seed=1))
    protocol, policy = bm.TreeAggregation(2, emission=bm.Growth(0.0, echoes=1)), bm.UCB(memory=bm.Discount(0.7))
    result = bm.simulate(problem, protocol, policy=policy, horizon=1200, every=1200, seed=0, engine="reference")
    assert result.messages[0, 60] == result.messages[0, -1]


# What messages say, what is refused, what is stored.


def test_statistics_say_when_they_were_sent_and_take_40_bytes():
    problem = problem_on(nx.path_graph(3))
    settings = {"horizon": 30, "seed": 0, "engine": "reference"}
    for memory, size in ((bm.Everything(), 32), (bm.Discount(0.9), 40), (bm.Window(10), 40)):
        policy = bm.UCB(memory=memory)
        result = bm.simulate(problem, bm.IRS(emission=bm.Growth(0.5)), policy=policy, trace=True, **settings)
        assert result.traffic["bytes"][0] == size * result.traffic["sent"][0]
        assert bm.simulate(problem, bm.IRS(), policy=policy, **settings).traffic["bytes"][0] == 24 * 4 * 30
    tree = bm.simulate(problem, bm.TreeAggregation(), policy=bm.UCB(memory=bm.Discount(0.9)), **settings)
    assert tree.traffic["bytes"][0] == 40 * tree.traffic["sent"][0] + 16 * tree.traffic["control"][0]


def test_traces_show_what_a_statistic_weighed_when_it_was_sent():
    gamma, problem = 0.8, bm.Problem(nx.path_graph(2), [[0], [0]], [bm.arms.Gaussian(0.0, 1.0)])
    policy, protocol = bm.UCB(memory=bm.Discount(gamma)), bm.IRS(emission=bm.Growth(0.0))
    result = bm.simulate(problem, protocol, policy=policy, horizon=90, seed=0, trace=True)
    for event in result.trace:
        assert event.n_pulls == pytest.approx(sum(gamma**k for k in range(event.round)), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"round": 0}, "round"),
        ({"round": 9}, "round"),
        ({"round": 2.0}, "round"),
        ({"n_pulls": 3}, "count and sum"),
        ({"n_pulls": 0.0}, "count and sum"),
        ({"n_pulls": 2.0**60}, "count and sum"),
        ({"n_pulls": math.nan}, "count and sum"),
        ({"total": 1e200}, "count and sum"),
    ],
)
def test_a_statistic_that_cannot_be_is_refused(change, wrong):
    agent = bm.IRS(emission=bm.Growth()).seat(Place("a", Arms.gaussian([0], 1.0), bm.UCB(memory=bm.Discount(0.9))))
    for t in range(1, 6):
        agent.begin(t)
    sound = Message("b", 1, 0, 1.5, 0.5, 0, 4)
    assert agent.receive(Copy(sound, 1), "b", 1).heard
    with pytest.raises(MessageError, match=wrong):
        agent.receive(Copy(sound._replace(id=2, **change), 1), "b", 1)


def test_rounds_only_go_on():
    agent = agent_with(bm.Everything())
    agent.begin(3)
    with pytest.raises(bm.InputError, match="is in round 3, got round 3"):
        agent.begin(3)


@pytest.mark.parametrize("memory", [bm.Discount(0.6), bm.Window(12, blocks=4)], ids=repr)
@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Growth(0.3, echoes=1)], ids=repr)
def test_an_agent_goes_on_from_its_state(memory, emission):
    arms, policy = Arms.gaussian([0, 1], 1.0), bm.UCB(memory=memory)
    names = ("a", "b")

    def play(agents, first, last):
        rng = np.random.default_rng(first)
        for t in range(first, last):
            for agent in agents:
                agent.begin(t)
                choice = agent.choose(t)
                agent.observe(choice.position, float(rng.normal()), choice.was_best)
            sent = [agent.send([name for name in names if name != agent.name]) for agent in agents]
            for parcels, receiver in zip(sent, reversed(agents), strict=True):
                for parcel in parcels:
                    receiver.receive(parcel.copy, parcel.copy.message.origin, 1)
            for agent in agents:
                agent.settle()

    agents, others = ([bm.IRS(emission=emission).seat(Place(name, arms, policy)) for name in names] for _ in range(2))
    play(agents, 1, 60)
    for agent, other in zip(agents, others, strict=True):
        other.state = json.loads(json.dumps(agent.state))
        # Ids are given by the driver, which goes on.
        other._courier._new_id = agent._courier._new_id = itertools.count(1000).__next__
    play(agents, 60, 130)
    play(others, 60, 130)
    assert [agent.estimates.state for agent in agents] == [other.estimates.state for other in others]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bm.Discount(0), "gamma must be from 0.5 to 1 - 1e-12, got 0"),
        (lambda: bm.Discount(1.0), "gamma must be from 0.5 to 1 - 1e-12, got 1.0"),
        (lambda: bm.Discount(math.nan), "gamma must be a finite number, got nan"),
        (lambda: bm.Discount(0.49), "gamma must be from 0.5"),
        (lambda: bm.Window(0), "rounds must be an integer of at least 1"),
        (lambda: bm.Window(2**31 + 1), "at most 2147483648, got 2147483649"),
        (lambda: bm.Window(5, blocks=0), "blocks must be an integer of at least 1"),
        (lambda: bm.UCB(memory=0.9), "memory must be a memory such as Discount"),
        (lambda: bm.UCB(first_pulls="some"), "first_pulls must be one of each, unknown; got 'some'"),
        (lambda: bm.UCBV(memory=bm.Discount(0.9)), "'ucb-v' needs the variance of rewards"),
        (lambda: refuse_live(bm.FwA(4), bm.UCB(memory=bm.Discount(0.9))), "it forgets by rounds, and a node has none"),
        (lambda: run_with(bm.TreeAggregation(), bm.UCB(memory=bm.Window(9))), "'tree' merges statistics"),
        (lambda: run_with(bm.IRS(), [bm.UCB(), bm.UCB(memory=bm.Window(9)), bm.UCB()]), "must have the same memory"),
        (lambda: run_with(bm.IRS(), Keeping(memory=bm.Window(9))), "'keeping' keeps what it knows itself"),
        (lambda: run_with(bm.IRS(), "ucb+discount"), "memory.gamma is required, got none"),
        (lambda: run_with(bm.IRS(), "ucb+nothing(3)"), "memory.name must be one of"),
        (lambda: run_with(bm.IRS(), "ucb*discount(3)"), "a policy must be written like"),
        (lambda: bm.parse_spec('policy = "ucb+window(9)"\nmemory = "everything"'), "give the memory with the policy"),
        (lambda: bm.parse_spec('policy = "ucb-v"\nmemory = {name = "window", rounds = 9}'), "needs the variance"),
    ],
)
def test_each_refusal_is_one_line(make, message):
    with pytest.raises(bm.BanditmeshError, match=message.replace("(", r"\(")) as caught:
        make()
    assert "\n" not in str(caught.value)


class Keeping(bm.Policy):
    """A policy with a chooser of its own."""

    name = "keeping"

    def chooser(self, arms):
        return super().chooser(arms)


def run_with(protocol, policy):
    return bm.simulate(problem_on(nx.path_graph(3)), protocol, policy=policy, horizon=5, seed=0, engine="reference")


def test_policies_are_written_with_their_memories():
    policy = bm.UCB(0.5, memory=bm.Discount(0.995), first_pulls="unknown")
    assert repr(policy) == "UCB(alpha=0.5, memory=Discount(gamma=0.995), first_pulls='unknown')"
    assert repr(bm.UCB()) == "UCB(alpha=3.0)"
    result = run_with(bm.IRS(), "ucb(0.5, first_pulls=unknown)+discount(0.995)")
    assert (result.policy, result.settings["policy"]) == ("ucb+discount(0.995)", repr(policy))
    assert run_with(bm.IRS(), "klucb+window(500)").policy == "klucb+window(500)"
    assert bm.UCB() != bm.UCB(memory=bm.Window(9)) != bm.UCB(memory=bm.Window(9, blocks=2))


def test_specs_name_memories_and_sweep_over_them():
    small = 'horizon = 9\nreplicates = 1\nnetwork = {name = "ring", n = 4}\narms = {n_arms = 6, per_agent = 3}\n'
    spec = bm.parse_spec(small + 'memory.name = "discount"\nsweep.memory.gamma = [0.9, 0.99]')
    assert [point.settings["memory"]["gamma"] for point in spec.points()] == [0.9, 0.99]
    spec = bm.parse_spec(small + 'sweep.policy = ["ucb", "ucb(0.5)+discount(0.9)"]')
    assert [point.settings["memory"]["name"] for point in spec.points()] == ["everything", "discount"]
    spec = bm.parse_spec(small + 'sweep.memory = ["everything", {name = "window", rounds = 5}]')
    assert [point.settings["memory"]["name"] for point in spec.points()] == ["everything", "window"]


SMALL = 'horizon = 9\nreplicates = 1\nnetwork = {name = "ring", n = 4}\narms = {n_arms = 6, per_agent = 3}\n'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('protocol = "tree"\nmemory = {name = "window", rounds = 5}', "spec, line 6: memory.name: 'tree' merges"),
        ('protocol = "tree"\npolicy = "ucb+window(5)"', "spec: memory.name: 'tree' merges"),
        (
            'sweep.protocol = ["fwa", "tree"]\nmemory = {name = "window", rounds = 5}',
            "spec, line 6: memory.name: 'tree'",
        ),
        ('protocol = "tree"\nsweep.policy = ["ucb", "ucb+window(5)"]', "spec, line 6: sweep.policy: "),
        ('protocol = "tree"\nsweep.memory.name = ["everything", "window"]\nmemory.rounds = 5', "sweep.memory.name: "),
    ],
)
def test_spec_in_which_a_tree_meets_a_window_is_refused_when_it_is_read(lines, said):
    with pytest.raises(bm.BanditmeshError) as caught:
        bm.parse_spec(SMALL + lines)
    line = str(caught.value)
    assert said in line
    assert line.endswith("cannot take apart; use Discount(0.995), or another protocol")
    assert "\n" not in line


@pytest.mark.parametrize(
    "lines", ['sweep.policy = ["ucb", "ucb+discount(2)"]', 'sweep.protocol = ["irs", "fwa(2)+growth(-1)"]']
)
def test_error_in_a_swept_text_is_about_the_sweep(lines):
    with pytest.raises(bm.SpecError, match=r"^spec, line 5: sweep\.(policy|protocol): .*(gamma|factor) must be"):
        bm.parse_spec(SMALL + lines)


def test_window_and_tree_are_refused_before_anything_else_is_simulated(monkeypatch):
    monkeypatch.setattr("banditmesh.comparisons.compare.simulate", None)
    monkeypatch.setattr("banditmesh.comparisons.measuring.simulate", None)
    problem = problem_on(nx.path_graph(3))
    for settings in ({"policy": "ucb+window(9)"}, {"policies": ["ucb", "ucb+window(9)"]}):
        for run in (lambda **given: bm.compare(problem, ["none", "tree"], **given), frontier_of(problem)):
            with pytest.raises(bm.InputError, match="'tree' merges statistics"):
                run(horizon=5, **settings)
    with pytest.raises(bm.InputError, match="'tree' merges statistics"):
        bm.compare(problem, ["none", ("tree", bm.KLUCB(memory=bm.Window(9)))], horizon=5)


def frontier_of(problem):
    return lambda **given: bm.frontier(problem, protocols=["none", "tree"], **given)


def test_an_arm_of_which_something_was_heard_is_not_forced():
    # On a complete network everybody hears of arm 0 in the first round, of arm 1 in the second.
    problem = bm.Problem(nx.complete_graph(3), [[0, 1], [1, 0], [2, 1]], [bm.arms.Gaussian(k, 0.1) for k in (0, 9, 0)])
    simulation = bm.Simulation(problem, bm.IRS(), policy=bm.UCB(0.1, first_pulls="unknown"), horizon=3, seed=0)
    assert list(simulation.step().choices.values()) == [0, 1, 2]
    assert list(simulation.step().choices.values()) == [1, 1, 1]


# Both engines.


FAULTS = bm.Faults(loss=0.2, outages=bm.Outages(down=0.1, up=0.3, memory=False))
GROWTH = bm.Growth(0.25, echoes=1)
RUNS = {
    "none": (bm.NoCooperation(), {}),
    "centralised": (bm.Centralised(), {}),
    "plan": (bm.FwA(3), {}),
    "changes": (bm.Flooding(3, emission=bm.Growth(0.3)), {}),
    "spread": (bm.Gossip(3), {}),
    "compared": (bm.FwA(3, emission=GROWTH), {"faults": FAULTS}),
    "contested": (bm.Flooding(2, emission=bm.Contested()), {"faults": FAULTS}),
    "tree": (bm.TreeAggregation(), {}),
    "tree, faults": (bm.TreeAggregation(2, emission=GROWTH), {"faults": FAULTS}),
    "walk": (bm.FwA(3), {"rules": "published"}),
    "walk, sums": (bm.FwA(3, emission=bm.Growth(0.3)), {"rules": "published"}),
}


def check_engines(name, policy, horizon):
    protocol, settings = RUNS[name]
    graph = nx.erdos_renyi_graph(8, 0.35, seed=1)
    laws = [bm.arms.Bernoulli(0.1 + 0.1 * k) if k % 2 else bm.arms.Gaussian(0.1 * k, 0.5) for k in range(N_ARMS)]
    if settings.get("rules"):
        laws = [bm.arms.Gaussian(0.1 * k, 0.5) for k in range(N_ARMS)]
    problem = bm.Problem(graph, [problem_on(graph).arm_set(v).tolist() for v in graph], laws)
    one, other = (
        bm.simulate(problem, protocol, policy=policy, horizon=horizon, seed=3, engine=engine, **settings)
        for engine in ("reference", "compiled")
    )
    assert np.array_equal(one.regret, other.regret)
    assert np.array_equal(one.messages, other.messages)
    assert np.array_equal(one.pulls, other.pulls)
    assert all(np.array_equal(one.traffic[key], other.traffic[key]) for key in one.traffic)


def test_agents_alone_forget_alike_on_both_engines():
    # Long enough that scales change, and that weights end.
    check_engines("none", bm.UCB(1.0, memory=bm.Discount(0.5)), 400)
    check_engines("none", bm.UCB(1.0, memory=bm.Discount(0.97), first_pulls="unknown"), 200)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.995])
@pytest.mark.parametrize("policy", [bm.UCB, bm.KLUCB, bm.ThompsonSampling])
@pytest.mark.parametrize("name", RUNS)
def test_discount_is_the_same_on_both_engines(name, policy, gamma):
    check_engines(name, policy(memory=bm.Discount(gamma)), 400 if gamma == 0.5 else 120)
    check_engines(name, policy(memory=bm.Discount(gamma), first_pulls="unknown"), 60)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [bm.UCB, bm.KLUCB, bm.ThompsonSampling])
@pytest.mark.parametrize("name", [name for name in RUNS if name not in ("changes", "compared", "walk, sums")])
def test_windows_and_first_pulls_are_the_same_on_both_engines(name, policy):
    check_engines(name, policy(first_pulls="unknown"), 80)
    if not name.startswith("tree"):
        check_engines(name, policy(memory=bm.Window(30, blocks=4)), 120)
        check_engines(name, policy(memory=bm.Window(2, blocks=2), first_pulls="unknown"), 60)


def test_what_no_kernel_does_is_left_to_the_reference():
    problem = problem_on(nx.path_graph(3))
    result = bm.simulate(problem, bm.IRS(emission=bm.Growth()), policy="ucb+window(9)", horizon=9, seed=0)
    assert result.engine == "reference"
