"""What products ask of a node: first pulls, withdrawals, and what becomes of rewards that never come."""

import math
import random
from collections import Counter

import pytest
from members import counted, hear, make, observe
from processes import NodeProcess

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.live import ArmSpec
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Observation
from banditmesh.live.member.choosing import Sight
from banditmesh.live.member.tickets import Flights, Waiting
from banditmesh.live.statistics import Prior
from banditmesh.policies.base import Estimates


def withdraw(member, ticket, now=0.0):
    """What becomes of a withdrawal."""
    [answer] = observe(member, Observation(0.0, ticket, withdraws=True), now=now)
    return answer.outcome


# --- first pulls


def test_arms_that_others_tried_are_not_tried_first_if_the_policy_says_so():
    arms = ("a", "b", "c")
    heard = [("p", 5, arm, 1000, total, 4) for arm, total in (("a", 500.0), ("b", 900.0))]
    each, unknown = (make(arms=arms, policy=bm.UCB(first_pulls=which)) for which in ("each", "unknown"))
    for member in (each, unknown):
        hear(member, "p", *heard)
    assert [each.choose(0.0)[0] for _ in range(3)] == ["a", "b", "c"]
    arm, ticket = unknown.choose(0.0)
    assert arm == "c"
    observe(unknown, Observation(0.0, ticket))
    # All three are known: the policy is asked, which would have tried c, of one observation, next.
    assert unknown.choose(0.0)[0] == "c"
    for _ in range(200):
        observe(unknown, ("c", 0.0))
    assert unknown.choose(0.0)[0] == "b"


# --- withdrawals


def test_a_withdrawal_closes_its_ticket_and_counts_nothing():
    member = make(links=("p",))
    _, ticket = member.choose(0.0)
    commit, answers = member.plan([Observation(0.0, ticket, withdraws=True)] * 2, 0.0)
    assert [one.outcome for one in answers] == [WITHDRAWN, ALREADY_COUNTED]
    assert [(one.first, one.last) for one in commit.changes.closed] == [(1, 1)]
    member.committed(commit)
    assert withdraw(member, ticket) == ALREADY_COUNTED
    assert observe(member, Observation(1.0, ticket))[0].outcome == ALREADY_COUNTED
    assert member.estimates() == {"red": (0, 0.0), "blue": (0, 0.0)}
    assert member.take("p", 10**6) == []
    assert counted(member, "observations_withdrawn", "observations_counted") == (1, 0)


def test_what_was_counted_or_never_given_is_not_withdrawn():
    member = make()
    _, ticket = member.choose(0.0)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED
    assert withdraw(member, ticket) == ALREADY_COUNTED
    assert withdraw(member, ticket._replace(number=7)) == REFUSED
    assert member.estimates()["red"] == (1, 1.0)


def test_a_withdrawal_that_could_not_be_stored_has_not_happened():
    member = make()
    _, ticket = member.choose(0.0)
    commit, _ = member.plan([Observation(0.0, ticket, withdraws=True)], 0.0)
    member.failed(commit)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED


def test_a_withdrawal_outlives_kill(tmp_path):
    node = NodeProcess(tmp_path / "a", "a", more='[policy]\nname = "ucb"\nfirst_pulls = "unknown"\n')
    with node, node.client() as client:
        never_shown, shown = client.choose(), client.choose()
        assert client.withdraw(never_shown) == "withdrawn"
        node.kill()
        node.start()
        assert client.observe(never_shown, 1.0) == "already_counted"
        assert client.withdraw(never_shown) == "already_closed"
        assert client.observe(shown, 1.0) == "counted"
        assert {one["name"]: one["own_count"] for one in client.state()["arms"]} == {"red": 0, "blue": 1}
        node.leave()


# --- choices in flight


def coins(*names, **more):
    return [ArmSpec(name, law="bernoulli", reward_range=(0.0, 1.0), **more) for name in names]


def play(member, n_choices, means, silent=(), start=0.0, every=0.1):
    """Choose again and again; arms answer at once with their mean, silent ones never. How often each was chosen."""
    chosen = Counter()
    for number in range(n_choices):
        now = start + every * number
        arm, ticket = member.choose(now)
        chosen[arm] += 1
        if arm not in silent:
            observe(member, Observation(means[arm], ticket), now=now)
    return chosen


@pytest.mark.parametrize("policy", [bm.UCB(), bm.KLUCB(), bm.UCB(first_pulls="unknown")], ids=repr)
def test_a_new_arm_that_never_answers_is_left_after_a_few_choices(policy):
    member = make(arms=coins("a", "b", "new"), policy=policy)
    chosen = play(member, 1000, {"a": 0.9, "b": 0.5}, silent=["new"])
    # It is explored as an arm that pays nothing: as often as the same policy pulls one that does.
    told = play(make(arms=coins("a", "b", "new"), policy=policy), 1000, {"a": 0.9, "b": 0.5, "new": 0.0})
    assert chosen == told
    assert chosen["new"] < 100
    assert member.estimates()["new"] == (0, 0.0)


def test_the_best_arm_is_left_soon_after_it_stops_answering():
    member = make(arms=coins("best", "other"), policy=bm.KLUCB())
    means = {"best": 0.9, "other": 0.5}
    play(member, 300, means)
    before = play(member, 100, means, start=30.0)
    assert before["best"] > 90
    silent = play(member, 1000, means, silent=["best"], start=40.0)
    # 10 choices a second, and a patience of 1 s.
    assert silent["other"] > 300
    # Nothing of it is counted or told.
    assert member.estimates()["best"][1] == pytest.approx(0.9 * member.estimates()["best"][0])


@pytest.mark.parametrize("n_before", [300, 10_000])
def test_the_best_arm_is_left_within_a_few_choices_however_long_it_did_well(n_before):
    member = make(arms=coins("best", "other"), policy=bm.KLUCB(), patience=5.0)
    observe(member, *[("best", 1.0)] * n_before, *[("other", 0.5)] * 100)
    for _ in range(2):
        observe(member, Observation(1.0, member.choose(0.0).ticket))
    silent = play(member, 300, {"other": 0.5}, silent=["best"], start=10.0)
    # 50 choices within the patience, and log(t) / log(2), about 14, until silence is less likely than 1 in t.
    assert 45 < silent["best"] < 85
    # An answer ends the run: all that is known of it counts again.
    ticket = member.choose(50.0, among=["best"]).ticket
    observe(member, Observation(1.0, ticket), now=50.0)
    assert member.choose(50.0).arm == "best"


def test_a_reward_that_is_lost_now_and_then_is_no_run_of_silence():
    rng = random.Random(0)
    member = make(arms=coins("best", "other"), policy=bm.KLUCB(), patience=1.0)
    observe(member, *[("best", 0.9)] * 200, *[("other", 0.3)] * 200)
    chosen = Counter()
    for number in range(600):
        choice = member.choose(0.1 * number)
        chosen[choice.arm] += 1
        if rng.random() < 0.8:
            observe(member, Observation(0.9 if choice.arm == "best" else 0.3, choice.ticket), now=0.1 * number)
    assert chosen["best"] > 580


def test_rewards_that_are_on_their_way_count_as_the_mean():
    preferred = []
    for n_open in range(0, 60, 3):
        waiting, answered = (make(arms=coins("a", "b")) for _ in range(2))
        for member in (waiting, answered):
            observe(member, *[("a", 0.75), ("b", 0.5)] * 4)
        for _ in range(n_open):
            waiting.choose(0.0, among=["a"])
            observe(answered, Observation(0.75, answered.choose(0.0, among=["a"]).ticket))
        preferred.append(waiting.choose(0.5).arm)
        assert preferred[-1] == answered.choose(0.5).arm
    assert set(preferred) == {"a", "b"}


def test_patience_is_three_times_the_longest_of_the_last_hundred_rewards():
    flights = Flights(1000.0, 1000)
    flights.give("a", 1, 0.0)
    flights.settle("a", 1, 10.0, is_reward=True)
    flights.give("a", 2, 10.0)
    assert flights.waiting("a", 2, 40.0)[:2] == (1, 0)
    assert flights.waiting("a", 2, 40.5)[:2] == (0, 1)
    flights.settle("a", 2, 41.0, is_reward=False)  # a withdrawal says nothing of how long rewards take
    for number in range(3, 103):
        flights.give("a", number, 50.0)
        flights.settle("a", number, 50.0, is_reward=True)
    flights.give("a", 103, 60.0)
    assert flights.waiting("a", 103, 60.9)[:2] == (1, 0)
    assert flights.waiting("a", 103, 61.1)[:2] == (0, 1)
    assert Flights(1000.0, 1000, patience=5.0).waiting("a", 0, 0.0)[:2] == (0, 0)


def test_choices_fall_out_when_closed_lapsed_or_older_than_the_last_ones():
    flights = Flights(10.0, 4, patience=2.0)
    for number in range(1, 7):
        flights.give("a", number, float(number))
    assert flights.waiting("a", 6, 6.0)[:2] == (3, 1)  # 3 to 6 are left; of them 3 is silent
    flights.settle("a", 5, 6.0, is_reward=True)
    flights.settle("a", 5, 6.0, is_reward=True)
    flights.settle("a", 1, 6.0, is_reward=True)
    flights.settle("b", 1, 6.0, is_reward=True)
    assert flights.waiting("a", 6, 6.0)[:2] == (2, 1)
    assert flights.waiting("a", 6, 5.0)[:2] == (2, 1)  # a clock that goes back changes nothing
    assert flights.waiting("a", 6, 13.5)[:2] == (0, 2)
    assert flights.waiting("a", 6, 17.0)[:2] == (0, 0)
    flights.give("a", 7, 17.0)
    flights.begin()
    assert flights.waiting("a", 7, 17.0)[:2] == (0, 0)
    assert flights.changes(7, 17.0) == [("a", (0, 0, 0))]


@pytest.mark.parametrize("patience", [7.0, None])
def test_changes_of_flights_are_all_that_changes(patience):
    rng = random.Random(1)
    flights, asked = (Flights(50.0, 40, patience) for _ in range(2))
    plain, told, now = {}, {}, 0.0
    for number in range(1, 2000):
        now += rng.choice((0.0, 0.1, 3.0, 60.0 * (rng.random() < 0.02)))
        arm = rng.choice("abc") if number % 400 < 200 else "a"
        for one in (flights, asked):
            one.give(arm, number, now)
        plain[number] = arm
        for settled in rng.sample(sorted(plain), min(len(plain), rng.randrange(3))):
            is_reward = rng.random() < 0.8
            for one in (flights, asked):
                one.settle(plain[settled], settled, now, is_reward)
            del plain[settled]
        if rng.random() < 0.01:
            flights.begin()
            asked.begin()
        if rng.random() < 0.6:
            changes = dict(flights.changes(number, now))
            told |= changes
            assert told == {name: asked.waiting(name, number, now) for name in told}
    assert len(told) == 3


def test_flights_are_a_plain_list_that_is_searched_quickly():
    rng = random.Random(0)
    flights, plain, now = Flights(50.0, 300, patience=7.0), {}, 0.0
    for number in range(1, 3000):
        now += rng.random()
        arm = rng.choice("ab")
        flights.give(arm, number, now)
        plain[number] = arm, now
        if rng.random() < 0.7:
            settled = rng.choice(list(plain)[-60:])
            flights.settle(plain[settled][0], settled, now, is_reward=True)
            del plain[settled]
        plain = {one: (arm, at) for one, (arm, at) in plain.items() if one > number - 300 and at >= now - 50.0}
        for arm in "ab":
            ages = [now - at for name, at in plain.values() if name == arm]
            n_silent = sum(age > 7.0 for age in ages)
            assert flights.waiting(arm, number, now)[:2] == (len(ages) - n_silent, n_silent)


@pytest.mark.parametrize("lapse_reward", [None, -1.0])
def test_a_kept_sight_is_what_a_fresh_one_sees(lapse_reward):
    rng = random.Random(2)
    priors, ranges = [None, Prior(mean=0.5, count=3.0)], [None, (-2.0, 5.0)]
    for _ in range(20):
        specs = [ArmSpec(name, sigma=1.0, prior=rng.choice(priors), reward_range=rng.choice(ranges)) for name in "abcd"]
        estimates = Estimates([1.0] * 4, [0] * 4)
        kept, waiting = Sight(specs, lapse_reward), {}
        for _ in range(60):
            for position in range(4):
                if rng.random() < 0.3:
                    estimates.add(position, rng.randrange(1, 5), rng.gauss(0, 3))
                if rng.random() < 0.4:
                    n_silent = rng.randrange(5)
                    waiting[position] = Waiting(rng.randrange(3), n_silent, rng.randint(0, n_silent))
                    kept.wait(position, waiting[position])
            fresh, asked = Sight(specs, lapse_reward), []
            for position, one in waiting.items():
                fresh.wait(position, one)
            for sight in (kept, fresh):
                seen = []

                def choose(view, seen=seen, known=estimates.count):
                    mean = [value if n else 9.0 for value, n in zip(view.mean, view.count, strict=True)]
                    variance = [view.variance(one) if n else 0.0 for one, n in enumerate(known)]
                    seen.append((list(view.count), list(view.total), mean, list(view.inv_root), variance))
                    return mean.index(max(mean))

                seen.append(sight.preferred(choose, estimates))
                asked.append(seen)
            assert asked[0] == asked[1]


def test_an_arm_that_went_and_came_back_has_its_choices_in_flight():
    member = make(arms=coins("a", "b"))
    for _ in range(6):
        member.choose(0.0)
    member.set_arms(coins("a"))
    member.walks.finish()
    assert [(one.name, one.n_open) for one in member.snapshot(0.5).arms] == [("a", 3)]
    member.set_arms(coins("a", "b"))
    member.walks.finish()
    assert [(one.name, one.n_open) for one in member.snapshot(0.5).arms] == [("a", 3), ("b", 3)]


def test_open_and_silent_choices_are_shown():
    member = make(arms=coins("a", "b"))
    for now in (0.0, 0.1, 5.0, 5.1):
        member.choose(now)
    arms = member.snapshot().arms
    assert [(one.n_open, one.n_silent) for one in arms] == [(2, 1), (2, 1)]


# --- exploration


def test_explored_choices_are_uniform_and_say_how_probable_they_were():
    member = make(arms=coins("a", "b", "c", "d"), policy=bm.KLUCB(), explore=0.2)
    assert [member.choose(0.0).probability for _ in range(4)] == [1.0] * 4
    for arm, mean in (("a", 1.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)):
        observe(member, *[(arm, mean)] * 300)
    chosen, weights = Counter(), 0.0
    for _ in range(4000):
        choice = member.choose(0.0)
        observe(member, Observation(float(choice.arm == "a"), choice.ticket))
        assert choice.probability == pytest.approx(0.85 if choice.arm == "a" else 0.05)
        chosen[choice.arm] += 1
        weights += 1 / choice.probability
    assert all(abs(chosen[arm] - 200) < 60 for arm in "bcd")
    # By importance weights each arm would have been chosen in every round.
    assert weights / 4000 == pytest.approx(4.0, rel=0.1)
    assert abs(counted(member, "choices_explored")[0] - 800) < 120
    assert counted(member, "choices_first") == (4,)
    assert member.choose(0.0, among=["b"]).probability == pytest.approx(1.0)


def test_without_exploration_a_choice_is_certain_unless_the_policy_draws():
    for policy, probability in ((bm.UCB(), 1.0), (bm.ThompsonSampling(), None), (bm.EpsilonGreedy(), None)):
        member = make(arms=coins("a", "b"), policy=policy)
        observe(member, ("a", 1.0), ("b", 0.0))
        assert member.choose(0.0).probability == probability


# --- priors


def test_a_prior_counts_for_choosing_alone_and_spares_no_first_pull():
    arms = [*coins("a"), *coins("b", prior=Prior(1000, 0.9))]
    member = make(arms=arms, policy=bm.KLUCB(), links=("p",))
    assert [member.choose(0.0)[0] for _ in range(2)] == ["a", "b"]
    observe(member, *[("a", 0.6)] * 500, ("b", 0.0))
    without = make(arms=coins("a", "b"), policy=bm.KLUCB())
    observe(without, *[("a", 0.6)] * 500, *[("b", 0.0)] * 20)
    assert (member.choose(9.0)[0], without.choose(9.0)[0]) == ("b", "a")
    assert member.estimates()["b"] == (1, 0.0)
    assert {one.arm: one.count for one in member.take("p", 10**6)} == {"a": 500, "b": 1}


@pytest.mark.parametrize(
    ("count", "mean"), [(0, 0.5), (-1, 0.5), (math.nan, 0.5), (1e300, 0.5), (3, math.inf), (3, 2.0)]
)
def test_a_prior_that_cannot_be_is_refused_in_one_line(count, mean):
    with pytest.raises(InputError, match="prior") as error:
        coins("a", prior=Prior(count, mean))
    assert "\n" not in str(error.value)


# --- real processes


def test_a_process_leaves_a_silent_arm_and_tells_probabilities(tmp_path):
    more = 'explore = 0.1\npatience = 60\n[policy]\nname = "klucb"\n'
    node = NodeProcess(tmp_path / "a", "a", ("a", "silent"), more=more)
    text = (tmp_path / "a" / "node.toml").read_text()
    coin = 'law = "bernoulli", reward_range = [0, 1], prior = { count = 1, mean = 0.5 }'
    (tmp_path / "a" / "node.toml").write_text(text.replace("sigma = 1.0", coin))
    chosen = Counter()
    with node, node.client() as client:
        for _ in range(150):
            choice = client.choose()
            chosen[choice.arm] += 1
            assert choice.probability in (1.0, pytest.approx(0.95), pytest.approx(0.05))
            if choice.arm != "silent":
                client.observe(choice, 1.0)
        arms = {one["name"]: one for one in client.state()["arms"]}
        assert chosen["silent"] < 50
        assert arms["silent"]["n_open"] == chosen["silent"]
        assert f'banditmesh_arm_open_choices{{arm="silent"}} {float(chosen["silent"])}' in client.metrics()
        node.leave()
