"""The agent, driven by hand: choosing, observing, sending, receiving and learning, without any simulator."""

import json
import math
import random

import pytest

import banditmesh as bm
from banditmesh.arms import GAUSSIAN
from banditmesh.core import Agent, AllIds, Copy, Fate, Merging, Message, Receipt, Relaying, Silent, fate_of
from banditmesh.draws import STOP, Draws
from banditmesh.errors import InputError, MessageError
from banditmesh.policies import Arms, Chooser, Estimates
from banditmesh.rules import PUBLISHED, SOUND, get_rules
from banditmesh.sim.chances import RoundChances
from banditmesh.sim.seen import RecentIds, RecentRewards

ARM, OTHER_ARM, FOREIGN_ARM = 7, 8, 9


def make_agent(protocol=None, rules=SOUND, number=0, arm_set=(ARM, OTHER_ARM), policy=None, n_agents=5):
    """An agent of the simulator; `agent.chances.now` is the round that its ids and draws are keyed by."""
    protocol = protocol or bm.Flooding(3)
    chances = RoundChances(Draws(0, 0))
    seen = RecentRewards(protocol.most_hops, n_agents) if rules.id_is_reward else RecentIds(protocol.most_hops)
    courier = Relaying(protocol, chances, seen, chances.new_id, rules) if protocol.sends_messages else Silent()
    arms = Arms(arm_set, [1.0] * len(arm_set), [GAUSSIAN] * len(arm_set))
    agent = Agent(number, arms, policy or bm.UCB(), courier, chances)
    agent.chances = chances
    return agent


def message(origin=1, number=1, arm=ARM, total=0.5, n_pulls=1, life=0):
    return Message(origin, number, arm, n_pulls, total, life)


def copy(ttl=3, **fields):
    return Copy(message(**fields), ttl)


def play(agent, t, reward):
    agent.chances.now = t
    choice = agent.choose(t)
    agent.observe(choice.position, reward, choice.was_best)
    return choice.position


def outbox(agent, neighbours=(1, 2, 3)):
    return [parcel.copy for parcel in agent.send(neighbours)]


# Choosing and observing


def test_first_pulls_go_once_through_the_arm_set():
    agent = make_agent(arm_set=(5, 3, 4))
    assert [play(agent, t, 100.0 * (t == 1)) for t in (1, 4, 9)] == [0, 1, 2]
    assert agent.own_count == [1, 1, 1]
    assert agent.choose(10).position == 0


def test_first_pulls_are_not_spared_by_what_was_heard():
    agent = make_agent()
    agent.receive(copy(arm=ARM), 1, 2)
    agent.receive(copy(arm=OTHER_ARM, origin=2), 2, 2)
    agent.settle()
    assert [play(agent, t, 0.0) for t in (2, 3)] == [0, 1]


def test_own_observation_counts_at_once_and_becomes_a_message():
    agent = make_agent(bm.Flooding(3), number=4)
    play(agent, 1, 0.25)
    assert (agent.estimates.count, agent.estimates.total) == ([1, 0], [0.25, 0.0])
    assert outbox(agent) == [Copy(Message(4, 1, ARM, 1, 0.25), 3)]
    assert outbox(agent) == []


def test_agent_that_does_not_cooperate_sends_nothing():
    agent = make_agent(bm.NoCooperation())
    play(agent, 1, 0.25)
    assert outbox(agent) == []


def test_outbox_is_last_in_first_out():
    agent = make_agent()
    for origin in (3, 1, 2):
        agent.receive(copy(origin=origin), sender=origin, degree=2)
    agent.settle()
    play(agent, 2, 0.0)
    assert [each.message.origin for each in outbox(agent)] == [0, 2, 1, 3]


# Sending


@pytest.mark.parametrize("rules, expected", [(SOUND, [2, 3]), (PUBLISHED, [1, 2, 3])])
def test_relays_spare_the_sender_by_the_sound_rules_only(rules, expected):
    agent = make_agent(rules=rules)
    agent.receive(copy(origin=4), sender=1, degree=3)
    [relayed] = agent.send([1, 2, 3])
    assert relayed.copy == copy(origin=4, ttl=2)
    assert list(relayed.targets) == expected


def test_own_message_goes_to_all_neighbours(rules):
    agent = make_agent(rules=get_rules(rules))
    for t, neighbours in ((1, [1, 2, 3]), (2, [])):
        play(agent, t, 0.0)
        [own] = agent.send(neighbours)
        assert list(own.targets) == neighbours


@pytest.mark.parametrize("rules, pool", [(SOUND, {2, 3, 4}), (PUBLISHED, {1, 2, 3, 4})])
def test_gossip_draws_its_targets_among_the_eligible_neighbours(rules, pool):
    agent = make_agent(bm.Gossip(3, fanout=2), rules)
    seen = set()
    for number in range(60):
        agent.receive(copy(origin=4, number=number, total=float(number)), sender=1, degree=4)
        [relayed] = agent.send([1, 2, 3, 4])
        targets = relayed.targets
        assert len(targets) == len(set(targets)) == 2
        seen.update(targets)
    assert seen == pool


def test_gossip_with_few_neighbours_sends_to_all_of_them():
    agent = make_agent(bm.Gossip(3, fanout=5))
    play(agent, 1, 0.0)
    [own] = agent.send([1, 2])
    assert sorted(own.targets) == [1, 2]


# Receiving


@pytest.mark.parametrize(
    "protocol, arm, ttl, expected",
    [
        (bm.Flooding(3), ARM, 3, Receipt(Fate.RELAYED, True)),
        (bm.Flooding(3), FOREIGN_ARM, 3, Receipt(Fate.RELAYED, False)),
        (bm.Flooding(3), ARM, 2, Receipt(Fate.RELAYED, True)),
        (bm.Flooding(3), ARM, 1, Receipt(Fate.EXPIRED, True)),
        (bm.Flooding(3), FOREIGN_ARM, 1, Receipt(Fate.EXPIRED, False)),
        (bm.FwA(3), ARM, 3, Receipt(Fate.ABSORBED, True)),
        (bm.FwA(3), ARM, 1, Receipt(Fate.ABSORBED, True)),
        (bm.FwA(3), FOREIGN_ARM, 3, Receipt(Fate.RELAYED, False)),
        (bm.FwA(3), FOREIGN_ARM, 1, Receipt(Fate.EXPIRED, False)),
        (bm.IRS(), ARM, 1, Receipt(Fate.EXPIRED, True)),
        (bm.ProbabilisticFlooding(3, stop=0.0), ARM, 3, Receipt(Fate.RELAYED, True)),
        (bm.ProbabilisticFlooding(3, stop=0.0), ARM, 1, Receipt(Fate.EXPIRED, True)),
    ],
    ids=str,
)
def test_fates_by_hand(protocol, arm, ttl, expected, rules):
    agent = make_agent(protocol, get_rules(rules))
    assert agent.receive(copy(arm=arm, ttl=ttl), 1, 2) == expected
    assert len(outbox(agent)) == (expected.fate is Fate.RELAYED)


@pytest.mark.parametrize("rules, learned", [(SOUND, True), (PUBLISHED, False)])
@pytest.mark.parametrize("ttl", [3, 1])
def test_stopped_message_is_used_by_the_sound_rules_only_and_always_remembered(rules, learned, ttl):
    agent = make_agent(bm.ProbabilisticFlooding(3, stop=1.0), rules)
    assert agent.receive(copy(ttl=ttl), 1, 2) == Receipt(Fate.STOPPED, learned)
    assert agent.receive(copy(ttl=ttl), 2, 2) == Receipt(Fate.DUPLICATE, False)
    agent.settle()
    assert agent.estimates.count == [int(learned), 0]


def test_stops_are_decided_by_the_draw_of_message_agent_and_ttl():
    agent = make_agent(bm.ProbabilisticFlooding(3, stop=0.5), number=2)
    stopped = [agent.receive(copy(number=number), 1, 2).fate is Fate.STOPPED for number in range(50)]
    assert stopped == [Draws(0, 0).uniform(STOP, 1, number, 2, 2) < 0.5 for number in range(50)]
    assert 10 < sum(stopped) < 40


def test_duplicate_is_neither_learned_nor_relayed(rules):
    agent = make_agent(rules=get_rules(rules))
    agent.receive(copy(), 1, 2)
    assert agent.receive(copy(ttl=2), 2, 2) == Receipt(Fate.DUPLICATE, False)
    agent.settle()
    assert agent.estimates.count == [1, 0]
    assert len(outbox(agent)) == 1


@pytest.mark.parametrize(
    "protocol, fate", [(bm.Flooding(3), Fate.RELAYED), (bm.FwA(3), Fate.ABSORBED)], ids=["flooding", "fwa"]
)
def test_own_message_coming_back_is_counted_twice_by_the_published_rules_only(protocol, fate):
    expected = {SOUND: (Receipt(Fate.DUPLICATE, False), 1), PUBLISHED: (Receipt(fate, True), 2)}
    for rules, (receipt, count) in expected.items():
        agent = make_agent(protocol, rules)
        play(agent, 1, 0.5)
        [own] = outbox(agent)
        assert agent.receive(own._replace(ttl=2), 1, 2) == receipt
        agent.settle()
        assert agent.estimates.count == [count, 0]
        assert agent.estimates.total == [0.5 * count, 0.0]


def test_what_was_learned_waits_for_the_end_of_the_round():
    agent = make_agent()
    agent.receive(copy(), 1, 2)
    assert agent.estimates.count == [0, 0]
    agent.settle()
    assert agent.estimates.count == [1, 0]


def test_own_reward_is_added_first_then_what_was_learned_by_origin_and_sequence():
    # Near 2**53 only even numbers are floats, so every order of these additions gives another sum: by origin and
    # sequence ((1 + 2) + big) - big = 4, by arrival ((1 - big) + big) + 2 = 3, with the own reward last 3.
    big = 2.0**53
    agent = make_agent(number=3)
    play(agent, 5, 1.0)
    for origin, number, reward in ((2, 5, -big), (2, 4, big), (1, 5, 2.0)):
        agent.receive(copy(origin=origin, number=number, total=reward), origin, 4)
    agent.settle()
    assert agent.estimates.total == [4.0, 0.0]
    assert agent.estimates.count == [4, 0]


# Memories


def test_sound_memory_tells_equal_rewards_apart_and_published_does_not():
    sound, published = RecentIds(ttl=3), RecentRewards(ttl=3, n_agents=5)
    first, second = message(number=1), message(number=2)
    assert (sound.accept(first), sound.accept(second), sound.accept(first)) == (True, True, False)
    assert (published.accept(first), published.accept(second)) == (True, False)
    assert published.accept(message(total=0.6))
    assert published.accept(message(arm=OTHER_ARM))
    assert published.accept(message(origin=2))


def test_sound_memory_remembers_while_a_copy_can_come():
    memory = RecentIds(ttl=3)
    memory.accept(message(number=5))
    for t in (5, 6):
        memory.forget(t)
        assert not memory.accept(message(number=5))
    memory.forget(7)
    assert memory.accept(message(number=5))


def test_published_memory_forgets_the_oldest_beyond_its_size():
    memory = RecentRewards(ttl=2, n_agents=2)
    messages = [message(total=float(k)) for k in range(5)]
    assert all(memory.accept(each) for each in messages[:4])
    # A refused message does not become younger.
    assert not memory.accept(messages[0])
    assert memory.accept(messages[4])
    assert not memory.accept(messages[1])
    assert memory.accept(messages[0])
    assert memory.accept(messages[1])


# Emissions


def test_cumulative_messages_hold_count_and_sum():
    agent = make_agent(bm.Flooding(3, emission=bm.Growth(1.0)), arm_set=(ARM,))
    outboxes = []
    for t in range(1, 9):
        play(agent, t, float(t))
        outboxes.append([(sent.message.n_pulls, sent.message.total) for sent in outbox(agent)])
    assert outboxes == [[(1, 1.0)], [(2, 3.0)], [], [(4, 10.0)], [], [], [], [(8, 36.0)]]


def test_what_was_sent_least_recently_is_echoed_when_there_is_nothing_else_to_send():
    class Repeating(bm.Policy):
        def choose(self, t, estimates, draw):
            return 0

    agent = make_agent(bm.Flooding(3, emission=bm.Growth(1.0, echoes=1)), policy=Repeating())
    outboxes = {}
    for t in range(1, 10):
        play(agent, t, float(t))
        outboxes[t] = [(sent.message.arm, sent.message.id, *sent.message[3:5]) for sent in outbox(agent)]
    # The first arm is pulled in all rounds but the second, and sent when its count has doubled. In between, each arm is
    # echoed once, as it stands.
    assert outboxes == {
        1: [(ARM, 1, 1, 1.0)],
        2: [(OTHER_ARM, 2, 1, 2.0)],
        3: [(ARM, 3, 2, 4.0)],
        4: [(OTHER_ARM, 4, 1, 2.0)],
        5: [(ARM, 5, 4, 13.0)],
        6: [(ARM, 6, 5, 19.0)],
        7: [],
        8: [],
        9: [],
    }


def test_echoes_need_sums():
    class Echoing(bm.Emission):
        name = "echoing"
        n_echoes = 1

    with pytest.raises(bm.errors.InputError, match="echoes need an emission of counts and sums"):
        bm.Flooding(4, emission=Echoing())
    Echoing.n_echoes = 101
    with pytest.raises(bm.errors.InputError, match=r"n_echoes must be .* at most 100, got 101"):
        bm.Flooding(4, emission=Echoing())


def test_of_cumulative_messages_the_latest_counts():
    agent = make_agent(bm.Flooding(3, emission=bm.Growth(1.0)))
    counts, learned = [], []
    for number, n_pulls, total in ((1, 1, 1.0), (4, 4, 10.0), (2, 2, 3.0), (5, 4, 10.0), (6, 6, 20.0)):
        agent.receive(copy(number=number, total=total, n_pulls=n_pulls), 1, 2)
        learned.append(agent.settle())
        counts.append((agent.estimates.count[0], agent.estimates.total[0]))
    assert counts == [(1, 1.0), (4, 10.0), (4, 10.0), (4, 10.0), (6, 20.0)]
    assert learned == [[True], [True], [False], [False], [True]]
    agent.receive(copy(origin=2, number=6, total=1.0), 2, 2)
    agent.settle()
    assert (agent.estimates.count, agent.estimates.total) == ([7, 0], [21.0, 0.0])


def test_best_arm_is_judged_when_it_is_chosen():
    class Alternating(bm.Policy):
        def choose(self, t, estimates, draw):
            return t % 2

    agent = make_agent(bm.Flooding(3, emission=bm.Contested()), policy=Alternating())
    sent = {}
    for t, reward in enumerate([1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0], start=1):
        position = play(agent, t, reward)
        sent[t] = (position, len(outbox(agent)))
    # The initial pulls are always sent. Round 5 makes arm 1 the best, but was chosen when arm 0 was.
    assert sent == {1: (0, 1), 2: (1, 1), 3: (1, 1), 4: (0, 0), 5: (1, 1), 6: (0, 1), 7: (1, 0)}


def test_centralised_agent_hears_every_observation():
    problem = bm.Problem(bm.networks.path(2), [[0, 1], [0, 1]], [bm.arms.Bernoulli(0.2), bm.arms.Bernoulli(0.8)])
    settings = {"horizon": 50, "seed": 0, "engine": "reference"}
    assert bm.simulate(problem, bm.Centralised(), **settings).traffic["learned"].tolist() == [100]


# Late, foreign and open rewards


def test_arms_that_were_neither_chosen_nor_observed_come_first():
    agent = make_agent(arm_set=(5, 3, 4))
    agent.observe(1, 0.5)
    assert [agent.choose(1).position, agent.choose(2).position] == [0, 2]
    # Nothing is known of the arms at 0 and 2: the less often chosen comes first, then the first of equals.
    assert [agent.choose(t).position for t in (3, 4, 5)] == [0, 2, 0]
    agent.observe(0, -9.0)
    agent.observe(2, 9.0)
    assert agent.choose(6).position == 2


def test_any_number_of_choices_may_be_open_and_each_knows_whether_its_arm_was_best():
    agent = make_agent(bm.Flooding(3, emission=bm.Contested()))
    for position, reward in ((0, 1.0), (1, 0.0)):
        agent.observe(position, reward)
    outbox(agent)
    good = [agent.choose(2) for _ in range(2)]
    agent.observe(1, 50.0)
    other = agent.choose(3)
    assert ({one.position for one in good}, other.position) == ({0}, 1)
    assert all(one.was_best for one in (*good, other))
    outbox(agent)
    for choice in (*good, other):
        agent.observe(choice.position, 0.0, choice.was_best)
    assert outbox(agent) == []


def test_choice_among_some_arms_asks_the_policy_about_these_alone():
    agent = make_agent(arm_set=(5, 3, 4))
    for position, reward in enumerate((3.0, 2.0, 1.0)):
        agent.observe(position, reward)
    assert [agent.choose(2, among=among).position for among in ([0, 1, 2], [2, 1], {2})] == [0, 1, 2]
    with pytest.raises(InputError, match=r"among must name some of the positions 0 to 2 of agent 0, got \[\]"):
        agent.choose(2, among=[])
    with pytest.raises(InputError, match=r"among must name .*, got \[3\]"):
        agent.choose(2, among=[3])


def test_draws_of_a_choice_among_some_arms_are_those_of_the_arms():
    drawn = []

    class Asking(bm.Policy):
        def choose(self, t, estimates, draw):
            drawn.append([draw(place) for place in range(len(estimates))])
            return 0

    agent = make_agent(arm_set=(5, 3, 4), policy=Asking())
    for position in range(3):
        agent.observe(position, 0.0)
    agent.choose(2)
    assert agent.choose(2, among=[1, 2]).position == 1
    assert drawn[1] == drawn[0][1:]


@pytest.mark.parametrize("position", [-1, 2])
def test_reward_of_an_arm_that_the_agent_does_not_have_is_refused(position):
    agent = make_agent()
    with pytest.raises(InputError, match=f"agent 0 has arms at positions 0 to 1, got a reward of {position}"):
        agent.observe(position, 1.0)
    assert agent.estimates.count == [0, 0]


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_reward_that_is_no_number_is_refused(reward):
    agent = make_agent()
    with pytest.raises(InputError, match="a reward must be a finite number"):
        agent.observe(0, reward)
    assert agent.estimates.count == [0, 0]


# Hostile messages


@pytest.mark.parametrize(
    "hostile, wrong",
    [
        (copy(n_pulls=0), "its count must be an integer from 1 to 9007199254740991, got 0"),
        (copy(n_pulls=-3), "its count must be .*, got -3"),
        (copy(n_pulls=10**400), "its count must be .*, got an integer of about 400 digits"),
        (copy(n_pulls=1.5), "its count must be .*, got 1.5"),
        (copy(n_pulls=None), "its count must be .*, got None"),
        (copy(total=math.nan), r"its sum must be a number of at most 1e\+120 a pull, got nan"),
        (copy(total=-math.inf), "its sum must be .*, got -inf"),
        (copy(total=1e308), r"its sum must be .*, got 1e\+308"),
        (copy(total=10**400), "its sum must be .*, got an integer"),
        (copy(total="1"), "its sum must be .*, got '1'"),
        (copy(ttl=0), "its ttl must be between 1 and 3, got 0"),
        (copy(ttl=4), "its ttl must be between 1 and 3, got 4"),
        (copy(ttl="2"), "its ttl must be between 1 and 3, got '2'"),
        (copy(ttl=2.0), "its ttl must be between 1 and 3, got 2.0"),
        (copy(arm=["red"]), "its origin, id and arm must be names"),
        (copy(number={}), "its origin, id and arm must be names"),
        (copy(life="x"), "its origin, id and arm must be names and its life a number"),
    ],
)
def test_hostile_message_is_refused_by_name_and_changes_nothing(hostile, wrong):
    agent = make_agent()
    before = agent.state
    with pytest.raises(MessageError, match=f"agent 0 refuses a message of 1: {wrong}"):
        agent.receive(hostile, 1, 2)
    assert agent.state == before
    assert agent.receive(copy(), 1, 2).fate is Fate.RELAYED


@pytest.mark.parametrize("hostile", [None, 7, (), (1, 2, 3), ("text", 2), ((1, 2, 3), 2), [message(), 2, 3]])
def test_what_is_no_copy_is_refused(hostile):
    agent = make_agent()
    before = agent.state
    with pytest.raises(MessageError, match=r"agent 0 refuses .*: it is not a copy of a message"):
        agent.receive(hostile, 1, 2)
    assert agent.state == before


def test_names_that_cannot_be_ordered_do_no_harm_to_others():
    agent = make_agent()
    for origin in (1, "zed", (2, 3), 4):
        assert agent.receive(copy(origin=origin), 1, 2).heard
    assert agent.settle() == [True] * 4
    assert agent.estimates.count == [4, 0]
    assert agent.settle() == []
    assert agent.estimates.count == [4, 0]


def test_largest_permitted_sums_stay_finite():
    agent = make_agent(bm.Flooding(3, emission=bm.Growth(0.5)), policy=bm.UCBV())
    for origin in range(50):
        agent.receive(copy(origin=origin, n_pulls=2**53 - 1, total=1e120 * (2**53 - 1)), 1, 2)
    agent.settle()
    assert math.isfinite(agent.estimates.mean[0])
    assert math.isfinite(agent.estimates.variance(0))


def test_agent_that_is_sent_nothing_refuses_what_comes():
    with pytest.raises(MessageError, match="agent 0 refuses a message of 1: it is not sent any"):
        make_agent(bm.NoCooperation()).receive(copy(), 1, 2)


# State


class Counting(Chooser):
    """Pulls the arm of which it was told least."""

    def __init__(self, policy, arms):
        super().__init__(policy, arms)
        self.told = [0] * len(arms.names)

    def choose(self, clock, estimates, draw):
        return self.told.index(min(self.told))

    def observe(self, position, reward):
        self.told[position] += 1

    def hear(self, position, count, total):
        self.told[position] += count

    @property
    def state(self):
        return self.told

    @state.setter
    def state(self, value):
        self.told = value


class CountingPolicy(bm.Policy):
    name = "counting"

    def chooser(self, arms):
        return Counting(self, arms)


def test_policy_may_keep_something_for_each_agent():
    alice, bob = (make_agent(policy=CountingPolicy(), number=number) for number in (0, 1))
    for agent in (alice, bob):
        agent.observe(0, 1.0)
        agent.observe(1, 1.0)
    alice.receive(copy(arm=ARM, origin=3, n_pulls=5), 3, 2)
    alice.settle()
    assert (alice.choose(3).position, bob.choose(3).position) == (1, 0)
    alice.restart()
    assert alice.chooser.told == [0, 0]


def test_chooser_that_keeps_something_must_offer_it():
    class Forgetful(Chooser):
        pass

    class ForgetfulPolicy(bm.Policy):
        def chooser(self, arms):
            return Forgetful(self, arms)

    with pytest.raises(InputError, match="Forgetful must offer its state"):
        _ = make_agent(policy=ForgetfulPolicy()).state


def relaying(emission, policy):
    return make_agent(bm.Flooding(3, emission=emission), policy=policy)


def merging():
    protocol = bm.TreeAggregation(pause=2, emission=bm.Growth(0.5, echoes=1))
    numbers = iter(range(100))
    courier = Merging(protocol, {1: {ARM, FOREIGN_ARM}, 2: {ARM, OTHER_ARM}}, lambda neighbour: next(numbers))
    agent = Agent(0, Arms.gaussian([ARM, OTHER_ARM], 1.0), bm.UCB(), courier, None)
    agent.chances = RoundChances(Draws(0, 0))
    return agent


AGENTS = {
    "every pull": lambda: relaying(bm.EveryPull(), bm.ThompsonSampling()),
    "growth": lambda: relaying(bm.Growth(0.5, echoes=2), bm.UCBV()),
    "chooser": lambda: relaying(bm.Contested(), CountingPolicy()),
    "tree": merging,
}


def drive(agent, rounds):
    """What an agent chose and sent, when it hears something in every round and does not settle in the last."""
    log = []
    ttl = 1 if isinstance(agent._courier, Merging) else 3
    for t in rounds:
        log.append(play(agent, t, math.sin(t)))
        log.append(agent.send([1, 2]))
        arm = (ARM, FOREIGN_ARM, OTHER_ARM)[t % 3]
        log.append(agent.receive(copy(ttl, origin=1, number=t, arm=arm, n_pulls=1 + t, total=math.cos(t)), 1, 2))
        if t != rounds[-1]:
            log.append(agent.settle())
    return log


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_agent_goes_on_from_its_stored_state(make):
    agent = make()
    drive(agent, range(1, 8))
    if make is merging:
        # The ids of its messages are handed in, so they go on by themselves.
        agent._courier._new_id = lambda neighbour: 0
    stored = json.loads(json.dumps(agent.state))
    other = make()
    if make is merging:
        other._courier._new_id = lambda neighbour: 0
    other.state = stored
    assert other.state == agent.state
    assert drive(other, range(8, 30)) == drive(agent, range(8, 30))
    assert other.state == agent.state


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_restarted_agent_is_a_new_one_in_another_life(make):
    agent = make()
    drive(agent, range(1, 8))
    agent.restart()
    assert agent.state == {**make().state, "life": 1}


def test_state_that_was_read_does_not_change():
    agent = make_agent()
    play(agent, 1, 0.5)
    before = agent.state
    stored = json.dumps(before)
    drive(agent, range(2, 6))
    assert json.dumps(before) == stored


def test_everything_is_remembered_without_a_limit():
    seen = AllIds()
    assert all(seen.accept(message(number=number)) for number in range(100))
    other = AllIds()
    other.state = seen.state
    assert not any(other.accept(message(number=number)) for number in range(100))


def test_variance_of_an_origin_that_lost_its_memory_is_that_of_its_last_life():
    agent = make_agent(bm.Flooding(3, emission=bm.Growth(0.5)), arm_set=(ARM,))
    agent.observe(0, 0.0)
    for number, n_pulls, total, life in ((1, 100, 50.0, 0), (2, 60, 10.0, 1), (3, 101, 80.0, 1)):
        agent.receive(copy(number=number, n_pulls=n_pulls, total=total, life=life), 1, 2)
        agent.settle()
    # What the new life counts takes the place of what the old one did, as one part.
    assert (agent.estimates.count, agent.estimates.total) == ([102], [80.0])
    assert agent.estimates.variance(0) == pytest.approx((80.0**2 / 101 - 80.0**2 / 102) / 2)


# What a driver that keeps others' counts and sums itself may ask for.


def test_parts_that_are_learned_together_are_those_that_are_heard_one_by_one():
    rng = random.Random(3)
    parts = [(rng.randrange(3), rng.randint(1, 5), rng.gauss(0.0, 2.0)) for _ in range(50)]
    arms = Arms.gaussian(["red", "blue", "grey"], sigma=1.0)
    one, other = (Agent("a", arms, bm.UCB(), Silent(), None) for _ in range(2))
    one.learn(parts)
    for number, (position, count, total) in enumerate(parts):
        other.hear(Message("o", number, arms.names[position], count, total))
        other.settle()
    assert one.estimates.state == other.estimates.state
    assert (one.estimates.mean, one.estimates.inv_root) == (other.estimates.mean, other.estimates.inv_root)


def test_part_without_pulls_corrects_a_sum():
    agent = Agent("a", Arms.gaussian(["red", "blue"], sigma=1.0), bm.UCB(), Silent(), None)
    agent.learn([(0, 0, 1.0), (0, 4, 1.0)])
    assert (agent.estimates.count, agent.estimates.mean) == ([4, 0], [0.5, 0.0])


def test_chooser_of_its_own_hears_what_is_learned():
    heard = []

    class Listening(Chooser):
        def hear(self, position, count, total):
            heard.append((position, count, total))

    class Policy(bm.UCB):
        def chooser(self, arms):
            return Listening(self, arms)

    agent = Agent("a", Arms.gaussian(["red", "blue"], sigma=1.0), Policy(), Silent(), None)
    agent.learn([(1, 2, 3.0)])
    assert heard == [(1, 2, 3.0)]


class Asking(Counting):
    """Notes from where it hears, and wants to send what it is told to want."""

    def __init__(self, policy, arms):
        super().__init__(policy, arms)
        self.sources, self.wanted = [], []

    def hear_from(self, position, count, total, source):
        self.sources.append((self.agent, position, count, *source))

    def wants_to_send(self):
        return self.wanted


class AskingPolicy(bm.Policy):
    name = "asking"

    def chooser(self, arms):
        return Asking(self, arms)


class Never(bm.Emission):
    name = "never"

    @staticmethod
    def sends(own_count, sent_count, is_best, parameter):
        return False


class NeverSums(Never):
    cumulative = True


@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Growth(0.0)])
def test_chooser_is_told_who_it_is_from_whom_it_hears_and_how_old_that_is(emission):
    problem = bm.Problem(bm.networks.path(3), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    simulation = bm.Simulation(problem, bm.Flooding(2, emission=emission), policy=AskingPolicy(), horizon=2, seed=0)
    simulation.run()
    sources = [agent.chooser.sources for agent in simulation.agents.values()]
    assert [sorted(one) for one in sources] == [
        [(0, 0, 1, 1, 0), (0, 0, 1, 1, 0), (0, 0, 1, 2, 1)],
        [(1, 0, 1, 0, 0), (1, 0, 1, 0, 0), (1, 0, 1, 2, 0), (1, 0, 1, 2, 0)],
        [(2, 0, 1, 0, 1), (2, 0, 1, 1, 0), (2, 0, 1, 1, 0)],
    ]


def test_age_of_what_is_summed_up_along_a_tree_is_unknown():
    problem = bm.Problem(bm.networks.path(2), [[0]] * 2, [bm.arms.Gaussian(0.0, 1.0)])
    simulation = bm.Simulation(problem, bm.TreeAggregation(), policy=AskingPolicy(), horizon=2, seed=0)
    simulation.run()
    assert {source[3:] for source in simulation.agents[0].chooser.sources} == {(1, None)}


def test_arms_that_a_chooser_wants_to_be_told_are_sent_one_a_pull_the_least_recent_first():
    agent = make_agent(bm.Flooding(3, emission=NeverSums()), policy=AskingPolicy())
    for position in (0, 0, 1):
        agent.observe(position, 1.0)
    assert agent.send([1]) == []
    agent.chooser.wanted, sent = [1, 0], []
    for _ in range(3):
        agent.observe(0, 1.0)
        sent += [parcel.copy.message[2:4] for parcel in agent.send([1])]
    # In the end there is nothing new of the other arm.
    assert sent == [(ARM, 3), (OTHER_ARM, 1), (ARM, 5)]


def test_of_single_observations_only_the_one_just_made_can_be_wanted():
    agent = make_agent(bm.Flooding(3, emission=Never()), policy=AskingPolicy())
    agent.chooser.wanted = [1]
    agent.observe(0, 1.0)
    assert agent.send([1]) == []
    agent.observe(1, 0.5)
    [parcel] = agent.send([1])
    assert (parcel.copy.message.arm, parcel.copy.message.total) == (OTHER_ARM, 0.5)


def test_arms_that_a_chooser_wants_to_be_told_go_along_a_tree():
    courier = Merging(bm.TreeAggregation(emission=NeverSums()), {1: {ARM, OTHER_ARM}}, lambda neighbour: neighbour)
    agent = Agent(0, Arms.gaussian([ARM, OTHER_ARM], 1.0), AskingPolicy(), courier, None)
    agent.observe(0, 1.0)
    agent.observe(1, 1.0)
    assert agent.send([1]) == []
    agent.chooser.wanted = [1]
    assert [parcel.copy.message.arm for parcel in agent.send([1])] == [OTHER_ARM]
    assert agent.send([1]) == []


def test_arms_that_are_wanted_must_be_the_agents():
    agent = make_agent(bm.Flooding(3, emission=Never()), policy=AskingPolicy())
    agent.chooser.wanted = [2]
    with pytest.raises(
        InputError, match=r"wants_to_send\(\) of policy 'asking' must name some of the positions 0 to 1"
    ):
        agent.observe(0, 1.0)


def test_index_that_is_shown_is_the_one_that_is_compared():
    estimates = Estimates([1.0, 1.0], [0, 0])
    estimates.add_all([(0, 1, 0.5), (1, 4, 3.0)])
    for policy in (bm.UCB(), bm.KLUCB()):
        indices = [policy.index_at(9, estimates, position) for position in range(2)]
        assert indices.index(max(indices)) == policy.choose(9, estimates, None)
    for policy in (bm.ThompsonSampling(), bm.EpsilonGreedy(), bm.MOSS()):
        assert policy.index_at(9, estimates, 0) is None


def test_relay_rule_that_says_something_else_is_refused():
    for decision, fate in ((bm.RELAY, Fate.RELAYED), (bm.ABSORB, Fate.ABSORBED), (bm.STOP, Fate.STOPPED)):
        assert fate_of(bm.FwA(4), decision, 1) is fate
    with pytest.raises(bm.InputError, match="must return RELAY, ABSORB or STOP, got 7"):
        fate_of(bm.FwA(4), 7, 1)
