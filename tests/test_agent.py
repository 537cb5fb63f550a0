import pytest

import banditmesh as bm
from banditmesh.agent import Agent, Fate, Message, Receipt, RewardMemory, SequenceMemory
from banditmesh.arms import GAUSSIAN
from banditmesh.draws import STOP, Draws
from banditmesh.rules import PUBLISHED, SOUND, get_rules

ARM, OTHER_ARM, FOREIGN_ARM = 7, 8, 9


def make_agent(protocol=None, rules=SOUND, number=0, arm_set=(ARM, OTHER_ARM), policy=None, n_agents=5):
    return Agent(
        number,
        arm_set,
        [1.0] * len(arm_set),
        [GAUSSIAN] * len(arm_set),
        policy or bm.UCB(),
        protocol or bm.Flooding(3),
        rules,
        Draws(0, 0),
        n_agents,
    )


def message(origin=1, sequence=1, arm=ARM, reward=0.5, previous=None, ttl=3, n_pulls=1):
    return Message(origin, sequence, arm, n_pulls, reward, origin if previous is None else previous, ttl)


def play(agent, t, reward):
    position = agent.choose(t)
    agent.observe(t, position, reward)
    return position


# Choosing and observing


def test_first_pulls_go_once_through_the_arm_set():
    agent = make_agent(arm_set=(5, 3, 4))
    assert [play(agent, t, 100.0 * (t == 1)) for t in (1, 4, 9)] == [0, 1, 2]
    assert agent.pulls == [1, 1, 1]
    assert agent.choose(10) == 0


def test_first_pulls_are_not_spared_by_what_was_heard():
    agent = make_agent()
    agent.receive(message(arm=ARM), 1, 2)
    agent.receive(message(arm=OTHER_ARM, origin=2), 2, 2)
    agent.settle(1)
    assert [play(agent, t, 0.0) for t in (2, 3)] == [0, 1]


@pytest.mark.parametrize("rules, clock", [(SOUND, 5), (PUBLISHED, 4)])
def test_published_clock_is_one_round_late(rules, clock):
    class Asked(bm.Policy):
        def choose(self, t, estimates, draw):
            raise LookupError(t)

    agent = make_agent(rules=rules, policy=Asked(), arm_set=(ARM,))
    play(agent, 1, 0.0)
    with pytest.raises(LookupError) as caught:
        agent.choose(5)
    assert caught.value.args == (clock,)


def test_own_observation_counts_at_once_and_becomes_a_message():
    agent = make_agent(bm.Flooding(3), number=4)
    play(agent, 1, 0.25)
    assert (agent.estimates.count, agent.estimates.total) == ([1, 0], [0.25, 0.0])
    assert agent.take_outbox() == [Message(4, 1, ARM, 1, 0.25, previous=4, ttl=3)]
    assert agent.take_outbox() == []


def test_agent_that_does_not_cooperate_sends_nothing():
    agent = make_agent(bm.NoCooperation())
    play(agent, 1, 0.25)
    assert agent.take_outbox() == []


def test_outbox_is_last_in_first_out():
    agent = make_agent()
    for origin in (3, 1, 2):
        agent.receive(message(origin), sender=origin, degree=2)
    agent.settle(1)
    play(agent, 2, 0.0)
    assert [each.origin for each in agent.take_outbox()] == [0, 2, 1, 3]


# Sending


@pytest.mark.parametrize("rules, expected", [(SOUND, [2, 3]), (PUBLISHED, [1, 2, 3])])
def test_relays_spare_the_sender_by_the_sound_rules_only(rules, expected):
    agent = make_agent(rules=rules)
    agent.receive(message(origin=4, previous=4), sender=1, degree=3)
    [relayed] = agent.take_outbox()
    assert (relayed.previous, relayed.ttl) == (1, 2)
    assert list(agent.targets(relayed, [1, 2, 3])) == expected


def test_own_message_goes_to_all_neighbours(rules):
    agent = make_agent(rules=get_rules(rules))
    play(agent, 1, 0.0)
    [own] = agent.take_outbox()
    assert list(agent.targets(own, [1, 2, 3])) == [1, 2, 3]
    assert list(agent.targets(own, [])) == []


@pytest.mark.parametrize("rules, pool", [(SOUND, {2, 3, 4}), (PUBLISHED, {1, 2, 3, 4})])
def test_gossip_draws_its_targets_among_the_eligible_neighbours(rules, pool):
    agent = make_agent(bm.Gossip(3, fanout=2), rules)
    seen = set()
    for sequence in range(60):
        agent.receive(message(4, sequence, reward=float(sequence), previous=1), sender=1, degree=4)
        [relayed] = agent.take_outbox()
        targets = agent.targets(relayed, [1, 2, 3, 4])
        assert len(targets) == len(set(targets)) == 2
        seen.update(targets)
    assert seen == pool


def test_gossip_with_few_neighbours_sends_to_all_of_them():
    agent = make_agent(bm.Gossip(3, fanout=5))
    play(agent, 1, 0.0)
    [own] = agent.take_outbox()
    assert sorted(agent.targets(own, [1, 2])) == [1, 2]


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
    assert agent.receive(message(arm=arm, ttl=ttl), 1, 2) == expected
    assert len(agent.take_outbox()) == (expected.fate is Fate.RELAYED)


@pytest.mark.parametrize("rules, learned", [(SOUND, True), (PUBLISHED, False)])
@pytest.mark.parametrize("ttl", [3, 1])
def test_stopped_message_is_used_by_the_sound_rules_only_and_always_remembered(rules, learned, ttl):
    agent = make_agent(bm.ProbabilisticFlooding(3, stop=1.0), rules)
    assert agent.receive(message(ttl=ttl), 1, 2) == Receipt(Fate.STOPPED, learned)
    assert agent.receive(message(ttl=ttl), 2, 2) == Receipt(Fate.DUPLICATE, False)
    agent.settle(1)
    assert agent.estimates.count == [int(learned), 0]


def test_stops_are_decided_by_the_draw_of_message_agent_and_ttl():
    agent = make_agent(bm.ProbabilisticFlooding(3, stop=0.5), number=2)
    stopped = [agent.receive(message(1, sequence), 1, 2).fate is Fate.STOPPED for sequence in range(50)]
    assert stopped == [Draws(0, 0).uniform(STOP, 1, sequence, 2, 2) < 0.5 for sequence in range(50)]
    assert 10 < sum(stopped) < 40


def test_duplicate_is_neither_learned_nor_relayed(rules):
    agent = make_agent(rules=get_rules(rules))
    agent.receive(message(), 1, 2)
    assert agent.receive(message(ttl=2), 2, 2) == Receipt(Fate.DUPLICATE, False)
    agent.settle(1)
    assert agent.estimates.count == [1, 0]
    assert len(agent.take_outbox()) == 1


@pytest.mark.parametrize(
    "protocol, fate", [(bm.Flooding(3), Fate.RELAYED), (bm.FwA(3), Fate.ABSORBED)], ids=["flooding", "fwa"]
)
def test_own_message_coming_back_is_counted_twice_by_the_published_rules_only(protocol, fate):
    expected = {SOUND: (Receipt(Fate.DUPLICATE, False), 1), PUBLISHED: (Receipt(fate, True), 2)}
    for rules, (receipt, count) in expected.items():
        agent = make_agent(protocol, rules)
        play(agent, 1, 0.5)
        [own] = agent.take_outbox()
        assert agent.receive(own._replace(previous=1, ttl=2), 1, 2) == receipt
        agent.settle(2)
        assert agent.estimates.count == [count, 0]
        assert agent.estimates.total == [0.5 * count, 0.0]


def test_what_was_learned_waits_for_the_end_of_the_round():
    agent = make_agent()
    agent.receive(message(), 1, 2)
    assert agent.estimates.count == [0, 0]
    agent.settle(1)
    assert agent.estimates.count == [1, 0]


def test_own_reward_is_added_first_then_what_was_learned_by_origin_and_sequence():
    # Near 2**53 only even numbers are floats, so every order of these additions gives another sum: by origin and
    # sequence ((1 + 2) + big) - big = 4, by arrival ((1 - big) + big) + 2 = 3, with the own reward last 3.
    big = 2.0**53
    agent = make_agent(number=3)
    play(agent, 5, 1.0)
    for origin, sequence, reward in ((2, 5, -big), (2, 4, big), (1, 5, 2.0)):
        agent.receive(message(origin, sequence, reward=reward), origin, 4)
    agent.settle(5)
    assert agent.estimates.total == [4.0, 0.0]
    assert agent.estimates.count == [4, 0]


# Memories


def test_sound_memory_tells_equal_rewards_apart_and_published_does_not():
    sound, published = SequenceMemory(ttl=3), RewardMemory(ttl=3, n_agents=5)
    first, second = message(sequence=1), message(sequence=2)
    assert (sound.accept(first), sound.accept(second), sound.accept(first)) == (True, True, False)
    assert (published.accept(first), published.accept(second)) == (True, False)
    assert published.accept(message(reward=0.6))
    assert published.accept(message(arm=OTHER_ARM))
    assert published.accept(message(origin=2))


def test_sound_memory_remembers_while_a_copy_can_come():
    memory = SequenceMemory(ttl=3)
    memory.accept(message(sequence=5))
    for t in (5, 6):
        memory.forget(t)
        assert not memory.accept(message(sequence=5))
    memory.forget(7)
    assert memory.accept(message(sequence=5))


def test_published_memory_forgets_the_oldest_beyond_its_size():
    memory = RewardMemory(ttl=2, n_agents=2)
    messages = [message(reward=float(k)) for k in range(5)]
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
        outboxes.append([(sent.n_pulls, sent.total) for sent in agent.take_outbox()])
    assert outboxes == [[(1, 1.0)], [(2, 3.0)], [], [(4, 10.0)], [], [], [], [(8, 36.0)]]


def test_what_was_sent_least_recently_is_echoed_when_there_is_nothing_else_to_send():
    class Repeating(bm.Policy):
        def choose(self, t, estimates, draw):
            return 0

    agent = make_agent(bm.Flooding(3, emission=bm.Growth(1.0, echoes=1)), policy=Repeating())
    outboxes = {}
    for t in range(1, 10):
        play(agent, t, float(t))
        outboxes[t] = [(sent.arm, sent.sequence, sent.n_pulls, sent.total) for sent in agent.take_outbox()]
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
    counts = []
    for sequence, n_pulls, total in ((1, 1, 1.0), (4, 4, 10.0), (2, 2, 3.0), (5, 4, 10.0), (6, 6, 20.0)):
        agent.receive(message(1, sequence, reward=total, n_pulls=n_pulls), 1, 2)
        agent.settle(sequence)
        counts.append((agent.estimates.count[0], agent.estimates.total[0]))
    assert counts == [(1, 1.0), (4, 10.0), (4, 10.0), (4, 10.0), (6, 20.0)]
    agent.receive(message(2, 6, reward=1.0), 2, 2)
    agent.settle(6)
    assert (agent.estimates.count, agent.estimates.total) == ([7, 0], [21.0, 0.0])


def test_best_arm_is_judged_when_it_is_chosen():
    class Alternating(bm.Policy):
        def choose(self, t, estimates, draw):
            return t % 2

    agent = make_agent(bm.Flooding(3, emission=bm.Contested()), policy=Alternating())
    sent = {}
    for t, reward in enumerate([1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0], start=1):
        position = play(agent, t, reward)
        sent[t] = (position, len(agent.take_outbox()))
    # The initial pulls are always sent. Round 5 makes arm 1 the best, but was chosen when arm 0 was.
    assert sent == {1: (0, 1), 2: (1, 1), 3: (1, 1), 4: (0, 0), 5: (1, 1), 6: (0, 1), 7: (1, 0)}


def test_centralised_agent_hears_every_observation_whatever_the_emission():
    problem = bm.Problem(bm.networks.path(2), [[0, 1], [0, 1]], [bm.arms.Bernoulli(0.2), bm.arms.Bernoulli(0.8)])
    settings = {"horizon": 50, "seed": 0, "engine": "reference"}
    plain = bm.simulate(problem, bm.Centralised(), **settings)
    other = bm.simulate(problem, bm.Centralised(emission=bm.Growth(1.0)), **settings)
    assert other.pulls.tolist() == plain.pulls.tolist()
    assert other.traffic["learned"].tolist() == plain.traffic["learned"].tolist() == [100]
