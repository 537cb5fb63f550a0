"""ODC: what is told to each neighbour, and when."""

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import ODC, Elimination
from banditmesh.core import Copy, Fate, Message, Note, Place
from banditmesh.policies import Arms

COINS = [bm.arms.Bernoulli(mean) for mean in (0.2, 0.5, 0.8)]


def pair(every, protocol, horizon, **settings):
    problem = bm.Problem(bm.networks.complete(2), [range(3)] * 2, COINS)
    return bm.simulate(problem, protocol, horizon=horizon, seed=0, every=every, engine="reference", **settings)


def test_exchanges_by_hand():
    """Ann pulls in every round, Bob in every third; both tell each other after two pulls."""
    simulation = bm.Simulation(
        bm.Problem(bm.networks.complete(2), [range(3)] * 2, COINS),
        ODC(2, factor=0.0),
        policy=bm.UCB(),
        horizon=11,
        seed=0,
        every=[1, 3],
    )
    rounds = [simulation.step() for _ in range(11)]
    demands = [[(one.sender, one.fate) for one in played.events if one.arm is None] for played in rounds]
    statistics = [[one.sender for one in played.events if one.arm is not None] for played in rounds]
    # Ann has two pulls to tell in round 2, and asks again when they have doubled. Bob has two in round 4, and tells at
    # once, since she has asked; she then has his demand, and tells in round 5: a count and a sum of each arm pulled.
    assert demands[:6] == [[], [(0, "absorbed")], [], [(0, "duplicate"), (1, "absorbed")], [], []]
    assert statistics[:6] == [[], [], [], [1, 1], [0, 0, 0], []]
    # The second time: Ann asks in rounds 7 and 9, Bob pulls in rounds 7 and 10.
    assert demands[6:] == [[(0, "absorbed")], [], [(0, "duplicate")], [(1, "absorbed")], []]
    assert set(statistics[9]) == {1}
    assert set(statistics[10]) == {0}
    result = simulation.run(progress=False)
    n_demands = sum(map(len, demands))
    n_statistics = sum(map(len, statistics))
    assert result.traffic["bytes"][0] == 24 * n_demands + 32 * n_statistics


def test_what_is_told_is_the_own_count_and_sum_of_what_was_pulled_since():
    place = Place("ann", Arms.gaussian(["red", "blue"], 1.0), bm.UCB())
    agent = ODC(2, factor=0.5).seat(place)
    assert agent.receive(Copy(Note("bob", 1, "demand", None, (1,)), 1), "bob", 1).fate is Fate.ABSORBED
    agent.observe(0, 0.5)
    assert agent.send(["bob"]) == []
    agent.observe(0, 0.25)
    demand, told = [parcel.copy.message for parcel in agent.send(["bob"])]
    assert (demand.kind, demand.values) == ("demand", (1,))
    assert (told.arm, told.n_pulls, told.total) == ("red", 2, 0.75)
    # The next exchange takes three pulls, and Bob's second demand.
    for _ in range(3):
        agent.observe(1, 1.0)
    [demand] = [parcel.copy.message for parcel in agent.send(["bob", "carol"]) if parcel.targets == ["bob"]]
    assert demand.values == (2,)
    agent.receive(Copy(Note("bob", 2, "demand", None, (2,)), 1), "bob", 1)
    [told] = [parcel.copy.message for parcel in agent.send(["bob"])]
    assert (told.arm, told.n_pulls, told.total) == ("blue", 3, 3.0)
    # Carol is told everything at once.
    agent.receive(Copy(Note("carol", 1, "demand", None, (1,)), 1), "carol", 1)
    assert [(parcel.copy.message.arm, parcel.copy.message.n_pulls) for parcel in agent.send(["carol"])] == [
        ("red", 2),
        ("blue", 3),
    ]


def test_statistic_of_an_arm_that_the_receiver_lacks_is_not_learned():
    agent = ODC().seat(Place("ann", Arms.gaussian(["red"], 1.0), bm.UCB()))
    receipts = [
        agent.receive(Copy(Message("bob", n, arm, 2, 1.0), 1), "bob", 1) for n, arm in enumerate(["red", "blue"])
    ]
    assert [receipt.heard for receipt in receipts] == [True, False]
    agent.settle()
    assert agent.estimates.count == [2]


def test_state_holds_what_each_neighbour_was_told():
    one, other = (ODC(1).seat(Place("ann", Arms.gaussian(["red"], 1.0), bm.UCB())) for _ in range(2))
    one.receive(Copy(Note("bob", 1, "demand", None, (1,)), 1), "bob", 1)
    one.observe(0, 1.0)
    assert len(one.send(["bob"])) == 2
    other.state = one.state
    assert other.send(["bob"]) == one.send(["bob"]) == []
    one.observe(0, 1.0)
    one.observe(0, 1.0)
    other.state = one.state
    assert [parcel.copy.message.values for parcel in other.send(["bob"])] == [(2,)]


def test_messages_follow_the_slower_of_a_pair():
    sent = {}
    for every in (5, 20):
        result = pair([1, every], "odc(5, factor=0)", 600, trace=True)
        sent[every] = int(result.traffic["sent"][0])
        # The slower one pulls 600 / every times, and demands an exchange after each five pulls.
        assert sum(event.sender == 1 and event.arm is None for event in result.trace) == 600 // every // 5
    assert 0.15 < sent[20] / sent[5] < 0.4
    assert sent[20] <= 2 * int(pair([20, 20], "odc(5, factor=0)", 600).traffic["sent"][0])
    assert sent[20] < 0.15 * int(pair([1, 20], "irs", 600).traffic["sent"][0])


@pytest.mark.slow
def test_order_of_regret_is_kept_with_logarithmic_traffic():
    problem = bm.Problem(bm.networks.complete(4), [range(3)] * 4, COINS)
    horizons = (500, 1000, 2000, 4000)
    settings = {"replicates": 8, "seed": 0, "every": [1, 1, 5, 20], "policy": bm.UCB(0.5), "engine": "reference"}
    odc, irs = (
        [bm.simulate(problem, protocol, horizon=horizon, **settings) for horizon in horizons]
        for protocol in ("odc", "irs")
    )
    last = [[one.regret[:, -1].mean() for one in runs] for runs in (odc, irs)]
    ratios = np.divide(*last)
    more = np.diff([one.traffic["sent"].mean() for one in odc])
    print(f"regret of ODC by that of IRS after {horizons} rounds: {ratios.round(2)}; more messages: {more}")
    assert ratios.max() < 2.0
    # Twice the rounds add about the same number of exchanges to each pair: log(2) / log(1.25), of 2 + 2 * 3 messages.
    assert more.max() < 1.5 * more.min()
    assert more.max() < 6 * 8 * (np.log(2) / np.log(1.25) + 1)


def test_growing_threshold_makes_exchanges_logarithmic():
    sent = [int(pair([1, 1], "odc(8, factor=0.5)", horizon).traffic["sent"][0]) for horizon in (200, 400, 800, 1600)]
    grown = np.diff(sent)
    # Each doubling adds the same, up to rounding: log(2) / log(1.5) exchanges of at most 2 + 2 * 3 messages.
    assert grown.max() <= 2 * 8
    assert grown.min() >= 4


@pytest.mark.parametrize(
    "settings",
    [{"faults": bm.Faults(loss=0.3)}, {"faults": bm.Faults(outages=bm.Outages(0.05, 0.2, memory=False))}],
    ids=["loss", "forgetful"],
)
def test_exchanges_go_on_after_losses(settings):
    early, late = (int(pair([1, 2], "odc(5, factor=0)", T, **settings).traffic["learned"][0]) for T in (300, 600))
    assert late > 1.6 * early > 0


@pytest.mark.parametrize("policy", [bm.UCB(memory=bm.Discount(0.9)), bm.UCB(memory=bm.Window(50)), Elimination(0.5)])
def test_policy_is_the_runs_own(policy):
    result = pair([1, 3], ODC(4), 60, policy=policy)
    assert result.policy == policy.label
    assert result.traffic["learned"][0] > 0
    alone = pair([1, 3], "none", 60, policy=policy)
    assert not np.array_equal(result.pulls, alone.pulls)
