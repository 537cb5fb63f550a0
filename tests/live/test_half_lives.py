"""Bandits that forget: weights, stamps and clocks, against the simulator and against sums by definition."""

import math
import random

import numpy as np
import pytest
from members import hear, make, observe, taken
from test_lockstep import PROTOCOLS, Lockstep, networks

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.live import ArmSpec, NodeConfig
from banditmesh.live.disk import Stored
from banditmesh.live.forgetting import BEHIND_FOR, faded, read_memory
from banditmesh.live.member import Observation
from banditmesh.live.statistics import Statistic, Values, why_refused

HALF_LIFE = 100.0
MEMORY = f"discount(half_life = {HALF_LIFE:.0f})"
#: The weight of an observation whose stamp is ahead of the clock: of it the allowed skew counts.
AHEAD = 2.0 ** (60.0 / HALF_LIFE)


class Faded(Lockstep):
    """Members that forget, at a second a round."""

    def __init__(self, problem, protocol, policy, gamma, trim=0):
        half_life = math.log(2.0) / -math.log(gamma)
        memory = read_memory("memory", f"discount(half_life={half_life!r})")
        super().__init__(problem, protocol, policy, memory=memory, trim=trim)
        self.now = 0.0

    def estimates(self, number):
        return [
            (weight, total / weight if weight else 0.0) for weight, total in self.members[number].estimates().values()
        ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("network, gamma, factor", [("grid", 0.9, 0.0), ("ring", 0.97, 0.5), ("star", 0.6, 0.25)])
def test_lockstep_equals_the_simulator_that_discounts(network, protocol, gamma, factor):
    discount_in_lockstep(PROTOCOLS[protocol], networks()[network], gamma, factor)


def test_so_it_does_where_both_test_what_they_hear():
    protocol, rewards = PROTOCOLS["flooding"], np.random.default_rng(0).normal(0.0, 1.0, (60, 9, 7))
    rewards[:, 3] += 9.0
    lockstep = discount_in_lockstep(protocol, networks()["grid"], 0.97, 0.25, trim=1, rewards=rewards)
    seen = [arm.left_out for member in lockstep.members for arm in member.snapshot().arms]
    assert any("003" in names for names in seen)
    assert not all("003" in names for names in seen)


def discount_in_lockstep(protocol, network, gamma, factor, horizon=60, trim=0, rewards=None):
    """Members and the reference engine, round by round."""
    problem = bm.Problem.random(network, n_arms=7, per_agent=3, seed=5)
    policy = bm.UCB(0.5, memory=bm.Discount(gamma))
    simulation = bm.Simulation(
        problem,
        protocol.with_emission(bm.Growth(factor)),
        policy=policy,
        horizon=horizon,
        seed=3,
        **({"rewards": rewards, "trim": trim} if trim else {}),
    )
    live = protocol.with_emission(bm.EveryPull() if factor == 0.0 else bm.Growth(factor))
    lockstep = Faded(problem, live, bm.UCB(0.5), gamma, trim)
    for t in range(1, horizon + 1):
        lockstep.now = float(t)
        play = simulation.step()
        lockstep.connect(play.links)
        choices = lockstep.choose()
        assert [arm for arm, _ in choices] == [str(play.choices[agent]) for agent in problem.agents]
        lockstep.hear(lockstep.tell(choices, [play.rewards[agent] for agent in problem.agents]))
        for number, agent in enumerate(problem.agents):
            for (weight, mean), (count, truth) in zip(
                lockstep.estimates(number), play.estimates[agent].values(), strict=True
            ):
                assert weight == pytest.approx(count, rel=1e-9, abs=1e-60)
                assert mean == pytest.approx(truth, rel=1e-9, abs=1e-9)
    return lockstep


def by_definition(rewards, now, half_life=HALF_LIFE):
    """Weight and weighted total at a time, of (time, reward)."""
    weights = [2.0 ** -((now - at) / half_life) for at, _ in rewards]
    return math.fsum(weights), math.fsum(w * reward for w, (_, reward) in zip(weights, rewards, strict=True))


def test_weights_are_those_of_the_definition_whatever_way_they_came():
    rng = random.Random(0)
    origins = {name: make(name, memory=MEMORY, links=("n",), protocol=bm.Flooding(3)) for name in ("a", "b")}
    node = make("n", memory=MEMORY)
    now, truth = 1e9, {"red": [], "blue": []}
    for _ in range(400):
        now += rng.expovariate(0.1)
        node.tick(now, uptime=0.0)
        name, arm, reward = rng.choice(["a", "b", "n"]), rng.choice(["red", "blue"]), rng.uniform(-1, 1)
        observe(node if name == "n" else origins[name], (arm, reward), now=now)
        truth[arm].append((now, reward))
        if name != "n":
            hear(node, name, *taken(origins[name], "n"))
        for arm, (weight, total) in node.estimates().items():
            assert (weight, total) == pytest.approx(by_definition(truth[arm], now), rel=1e-9, abs=1e-9)
    # 64 half-lives later the scale has begun anew twice, and the arms are still known; in the end they are not.
    for later in (40 * HALF_LIFE, 80 * HALF_LIFE):
        node.tick(now + later, uptime=0.0)
        weight, total = node.estimates()["red"]
        assert (weight, total) == pytest.approx(by_definition(truth["red"], now + later), rel=1e-9)
    node.tick(now + 400 * HALF_LIFE, uptime=0.0)
    assert node.estimates() == {"red": (0.0, 0.0), "blue": (0.0, 0.0)}
    assert node.snapshot().arms[0].mean is None
    assert node.snapshot().arms[0].own_count + node.snapshot().arms[0].heard_count == len(truth["red"])


def test_values_that_are_told_are_sound_and_stamps_never_fall():
    rng, member, now, stamp = random.Random(1), make(memory=MEMORY, links=("p",)), 1000.0, 0.0
    for _ in range(300):
        now += rng.choice((-50.0, 0.0, 1.0, 30.0))
        observe(member, *[("red", rng.uniform(0, 1))] * rng.randint(1, 3), now=now)
        [one] = member.take("p", 10**6)
        assert why_refused(one.values, 0.0, 1.0) is None
        assert 1 <= one.weight <= one.count
        assert one.stamp >= max(stamp, now)
        stamp = one.stamp


def test_a_stamp_ahead_counts_as_seen_little_ahead_and_travels_on_as_it_is():
    member = make("n", memory=MEMORY, protocol=bm.Flooding(3), links=("p", "q"), max_clock_skew=6.0, now=1000.0)
    hear(member, "p", ("o", 5, "red", 10, 5.0, 3, 4.0, 2.0, 1e9))
    assert member.estimates()["red"] == pytest.approx([w * 2.0 ** (6.0 / HALF_LIFE) for w in (4.0, 2.0)])
    member.tick(1006.0 + HALF_LIFE, uptime=0.0)
    assert member.estimates()["red"] == pytest.approx((2.0, 1.0))
    [sent] = member.take("q", 10**6)
    assert (sent.stamp, sent.weight) == (1e9, 4.0)
    # The same again, and one more observation of it: now it counts as seen now.
    hear(member, "p", ("o", 5, "red", 10, 5.0, 3, 4.0, 2.0, 1e9))
    assert member.estimates()["red"] == pytest.approx((2.0, 1.0))
    hear(member, "p", ("o", 5, "red", 11, 6.0, 3, 5.0, 3.0, 1e9))
    assert member.estimates()["red"] == pytest.approx([w * 2.0 ** (6.0 / HALF_LIFE) for w in (5.0, 3.0)])


def test_when_the_clock_is_set_what_is_ahead_is_judged_anew():
    member = make("n", memory=MEMORY, now=5000.0, max_clock_skew=6.0)
    hear(member, "p", ("o", 5, "red", 10, 5.0, 3, 4.0, 2.0, 5000.0))
    observe(member, ("blue", 1.0), now=5000.0)
    for now, weight in ((5000.0 + HALF_LIFE, 2.0), (1000.0, 4.0 * 2 ** (6.0 / HALF_LIFE))):
        member.clock_was_set(now)
        assert member.estimates()["red"][0] == pytest.approx(weight)
        assert member.estimates()["blue"][0] == pytest.approx(weight / 4.0)
    observe(member, ("blue", 0.0), now=1001.0)
    [own] = [one for one in member.own() if one.arm == "blue"]
    assert (own.weight, own.stamp) == (2.0, 5000.0)
    assert member.estimates()["blue"][0] == pytest.approx(2.0 * 2 ** (6.0 / HALF_LIFE))


def test_a_clock_behind_its_stamps_for_ten_minutes_begins_a_new_life():
    member = make(memory=MEMORY, now=1e9)
    observe(member, ("red", 1.0), now=1e9)
    member.tick(1e9 - 61.0, uptime=0.0)
    member.tick(1e9 - 61.0, uptime=BEHIND_FOR - 1.0)
    assert member.needs_new_life() is None
    member.tick(1e9 - 59.0, uptime=BEHIND_FOR)  # within the skew: it begins anew
    member.tick(1e9 - 1000.0, uptime=BEHIND_FOR)
    member.tick(1e9 - 1000.0 + BEHIND_FOR, uptime=2 * BEHIND_FOR)
    assert "clock has been behind" in member.needs_new_life()
    with pytest.raises(InputError, match="must begin a new life"):
        member.plan([Observation(1.0, arm="red")], 1e9 - 300.0)
    member.committed(member.new_life(7, 1e9 - 300.0))
    assert member.needs_new_life() is None
    observe(member, ("red", 1.0), now=1e9 - 300.0)
    [own] = [one for one in member.own() if one.count]
    assert (own.count, own.stamp) == (1, 1e9 - 300.0)


def stored(member, changes, **more):
    rows = {name: getattr(changes, name) for name in ("own", "memories", "clocks", "starts", "entries")}
    return Stored(mesh=member.mesh, node=member.node, life=changes.life, **rows | more)


def test_another_memory_begins_a_new_life_and_the_same_goes_on():
    first = make(memory=MEMORY, begins=False)
    begun = first.begin(1, 1000.0)
    first.committed(begun)
    first.choose(1000.0)
    commit, _ = first.plan([Observation(1.0, arm="red")], 1000.0)
    first.committed(commit)
    kept = {"memories": begun.changes.memories, "starts": begun.changes.starts}
    for memory, is_other in ((MEMORY, False), ("everything", True), ("discount(half_life = 50)", True)):
        again = make(memory=memory, begins=False)
        again.restore(stored(first, commit.changes, **kept))
        again.committed(again.begin(2, 1100.0))
        assert (again.needs_new_life() is not None) == is_other
        if is_other:
            assert "memory of bandit 'default'" in again.needs_new_life()
            commit_2 = again.new_life(9, 1100.0)
            assert [one.memory for one in commit_2.changes.memories] == ["" if memory == "everything" else memory]
            again.committed(commit_2)
            assert again.needs_new_life() is None
            # What the old life observed is in the table, with its weight.
            assert again.entries()[0].values == Values(1, 1.0, 1.0, 1.0, 1000.0)
        else:
            agent = again._bandits.agents[""]
            assert (agent.clock.weight, agent.clock.stamp) == (1.0, 1000.0)
            again.choose(1100.0)
            assert agent.clock.weight == pytest.approx(1.5)
            assert again.estimates()["red"] == pytest.approx((0.5, 0.5))


def test_a_bandit_without_observations_takes_another_memory_at_once():
    first = make(begins=False)
    begun = first.begin(1, 0.0)
    assert [(one.bandit, one.memory) for one in begun.changes.memories] == []
    first.committed(begun)
    again = make(memory=MEMORY, begins=False)
    again.restore(stored(first, begun.changes))
    commit = again.begin(2, 0.0)
    again.committed(commit)
    assert again.needs_new_life() is None
    assert [(one.bandit, one.memory) for one in commit.changes.memories] == [("default", MEMORY)]


def test_who_forgets_nothing_reads_counts_and_who_forgets_reads_weights():
    plain, forgetting = make("p"), make("f", memory=MEMORY, now=1000.0)
    for member in (plain, forgetting):
        hear(member, "x", ("o", 5, "red", 10, 5.0, 3, 4.0, 2.0, 1000.0), ("o", 5, "blue", 7, 3.5, 3))
    assert plain.estimates() == {"red": (10, 5.0), "blue": (7, 3.5)}
    assert forgetting.estimates()["red"] == pytest.approx((4.0, 2.0))
    assert forgetting.estimates()["blue"] == (0.0, 0.0)


def test_growth_compares_with_what_the_told_weight_is_still_worth():
    member = make(memory=MEMORY, protocol=bm.Flooding(2, emission=bm.Growth(1.0)), links=("p",))
    observe(member, *[("red", 1.0)] * 8, now=1000.0)
    assert [one[3] for one in taken(member, "p")] == [8]
    observe(member, *[("red", 1.0)] * 2, now=1000.0)
    assert taken(member, "p") == []
    # Two half-lives later what was told is worth 2, and the own weight with two more is 4.5.
    observe(member, *[("red", 1.0)] * 2, now=1000.0 + 2 * HALF_LIFE)
    assert [(one[3], one[6]) for one in taken(member, "p")] == [(12, 4.5)]


def test_memories_are_written_in_one_way_and_others_are_refused_in_one_line():
    assert read_memory("memory", " discount(half_life=3600.5)") == "discount(half_life = 3600.5)"
    for wrong in ("discount(0.99)", "window(100)", "discount(half_life = -1)", "discount(half_life = nan)", 7, None):
        with pytest.raises(InputError) as error:
            read_memory("memory", wrong)
        assert "\n" not in str(error.value)


def test_a_memory_by_rounds_is_refused_with_what_to_write_instead():
    arms, base = [ArmSpec("red", sigma=1.0)], {"mesh": "m", "node": "a", "plain": True}
    for memory in (bm.Discount(0.99), bm.Window(100)):
        with pytest.raises(InputError, match=r'write memory = "discount\(half_life = 86400\)", in seconds, instead'):
            NodeConfig(**base, arms=arms, policy=bm.UCB(memory=memory))
    with pytest.raises(InputError, match="must be at least 10 times max_clock_skew = 60 s, got 599 s"):
        NodeConfig(**base, arms=arms, memory="discount(half_life = 599)")
    assert NodeConfig(**base, arms=arms, memory="discount(half_life = 600)").memory == "discount(half_life = 600)"


def test_faded_is_monotone_and_a_statistic_with_a_memory_keeps_its_values():
    assert faded(10.0, 10.0) == pytest.approx(0.5)
    one = Statistic("o", 1, "red", 3, 1.5, 2, 2.0, 1.0, 99.0)
    assert one.values == Values(3, 1.5, 2.0, 1.0, 99.0)


def test_what_is_heard_while_own_rewards_are_written_counts_once():
    node = make(memory=MEMORY, links=("p",))
    observe(node, ("red", 1.0), now=1e9)
    earlier = 1e9 - 3600.0  # the own stamp is ahead of the clock now, so that the arm is summed anew
    commit, _ = node.plan([Observation(1.0, arm="red")], earlier)
    node.hear([Statistic("a", 1, "red", 2, 8.0, 3, 2.0, 8.0, earlier)], "p")
    node.committed(commit)
    node.settle()
    assert node.estimates()["red"] == pytest.approx((2.0 * AHEAD + 2.0, 2.0 * AHEAD + 8.0))


def test_clock_that_is_set_back_is_noticed_with_the_next_choice():
    node = make(memory=MEMORY)
    observe(node, ("red", 1.0), ("blue", 1.0), now=1e9)
    node.choose(1e9 - 300.0)
    assert node.estimates()["red"][0] == pytest.approx(AHEAD)


def test_clock_is_set_when_an_arm_has_gone_of_a_bandit_that_forgets():
    member = make(memory=MEMORY, now=1e9)
    member.hear([Statistic("o", 1, "red", 1, 0.5, 3, 1.0, 0.5, 1e9)], "p")
    member.settle()
    member.choose(1e9)
    member.set_arms([ArmSpec("blue", sigma=1.0)])
    member.clock_was_set(1e9 + 3600.0)
    member.tick(1e9 + 1e6, 1e6)
    assert list(member.estimates()) == ["blue"]
