"""Several bandits in one node, and segments: agents of their own, on one table, one ledger and one kind of ticket."""

import random

import pytest
from members import counted, hear, make, observe, taken

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.disk import Stored
from banditmesh.live.member import ArmSpec, Observation
from banditmesh.live.names import Caps, agent_name, arm_name, split_agent, split_arm

MEANS = {"short": 0.2, "long": 0.8}


def spec(name="ads", arms=("short", "long"), **settings):
    return BanditSpec(name=name, arms=[ArmSpec(arm, sigma=1.0) for arm in arms], **settings)


def with_ads(**settings):
    """A member with the arms red and blue, and a bandit of its own for ads."""
    member = {key: settings.pop(key) for key in list(settings) if key not in BanditSpec.__struct_fields__}
    return make(bandits=[spec(**settings)], **member)


def play(member, bandit, segment, reward, n=1):
    """Choose and observe."""
    for _ in range(n):
        choice = member.choose(0.0, bandit=bandit, segment=segment)
        paid = reward[choice.arm] if isinstance(reward, dict) else reward
        observe(member, Observation(paid, choice.ticket))
    return choice


def restarted(member, **settings):
    """The same member after a restart, from what it has stored."""
    own = [one for one in member.own() if one.count or one.n_chosen]
    stored = Stored("mesh", "n", member.life, own=own, entries=member.entries())
    other = with_ads(begins=False, **settings)
    other.restore(stored)
    other.committed(other.begin(1, 1.0))
    return other


def groups(member):
    """By bandit and segment: by arm, what is known."""
    state = member.snapshot()
    found = {("default", None): state.arms} | {(one.bandit, one.segment): one.arms for one in state.agents}
    return {key: {arm.name: (arm.own_count, arm.heard_count) for arm in arms} for key, arms in found.items()}


@pytest.mark.parametrize("bandit", ["default", "ads", "a/b", "100%", "%2F"])
@pytest.mark.parametrize("segment", ["", "de", "de/be", "50%/x", "%25"])
@pytest.mark.parametrize("arm", ["short", "a/b", "a%2Fb", "a/b/c/d"])
def test_a_name_on_the_wire_says_bandit_segment_and_arm(bandit, segment, arm):
    name = arm_name(agent_name(bandit, segment), arm)
    agent, found = split_arm(name)
    assert (*split_agent(agent), found) == (bandit, segment, arm)
    assert name == arm if (bandit, segment) == ("default", "") else name.count("/") == 2


def test_bandits_learn_apart_and_only_in_their_segment():
    member = with_ads()
    play(member, None, None, 1.0, n=2)
    play(member, "ads", None, 1.0, n=2)
    play(member, "ads", "de", 1.0, n=3)
    assert groups(member) == {
        ("default", None): {"red": (1, 0), "blue": (1, 0)},
        ("ads", None): {"short": (1, 0), "long": (1, 0)},
        ("ads", "de"): {"short": (2, 0), "long": (1, 0)},
    }
    assert [one.arm for one in member.own()] == [
        "red",
        "blue",
        "ads//short",
        "ads//long",
        "ads/de/short",
        "ads/de/long",
    ]


def test_an_agent_in_a_segment_chooses_as_a_node_of_its_own_would():
    mixed, alone, rng = with_ads(policy=bm.KLUCB()), make(arms=MEANS, policy=bm.KLUCB()), random.Random(4)
    for number in range(60):
        play(mixed, *rng.choice([(None, None), ("ads", None), ("ads", "fr")]), rng.random())
        reward = {arm: mean * (number % 3) for arm, mean in MEANS.items()}
        assert play(mixed, "ads", "de", reward).arm == play(alone, None, None, reward).arm
    assert [one.n_choices for one in mixed.snapshot().agents if one.segment == "de"] == [60]


def test_what_is_heard_of_a_segment_counts_there_and_is_known_when_it_is_made():
    member = with_ads(links="p", protocol=bm.FwA(4))
    hear(member, "p", ("o", 1, "ads/de/short", 3, 1.5, 4), ("o", 1, "ads//short", 2, 2.0, 4))
    assert groups(member)["ads", None]["short"] == (0, 2)
    member.choose(0.0, bandit="ads", segment="de")
    assert groups(member)["ads", "de"] == {"short": (0, 3), "long": (0, 0)}
    hear(member, "p", ("o", 1, "ads/de/short", 5, 2.5, 4))
    assert groups(member)["ads", "de"]["short"] == (0, 5)
    assert member.estimates()["ads/de/short"] == (5, 2.5)


def test_a_segment_that_is_made_absorbs_what_passed_before():
    member = with_ads(links="pq", protocol=bm.FwA(4))
    hear(member, "p", ("o", 1, "ads/de/short", 3, 1.5, 4), ("o", 1, "ads/fr/short", 1, 1.0, 4))
    assert [one[2] for one in taken(member, "q")] == ["ads/de/short", "ads/fr/short"]
    member.choose(0.0, bandit="ads", segment="de")
    hear(member, "p", ("o", 1, "ads/de/short", 4, 2.0, 4), ("o", 1, "ads/fr/short", 2, 2.0, 4))
    assert [one[2] for one in taken(member, "q")] == ["ads/fr/short"]
    assert counted(member, "news_absorbed", "news_relayed") == (1, 3)


def test_segments_that_were_in_use_are_there_after_a_restart_and_go_on_counting():
    member = with_ads()
    play(member, "ads", "de", MEANS, n=5)
    hear(member, "p", ("o", 1, "ads/de/short", 3, 1.5, 4))
    other = restarted(member)
    assert groups(other) == groups(member)
    assert [one.n_choices for one in other.snapshot().agents] == [0, 5]
    for _ in range(20):
        assert play(other, "ads", "de", MEANS).arm == play(member, "ads", "de", MEANS).arm


def test_tickets_of_all_bandits_are_settled_alike():
    member = with_ads()
    choices = [member.choose(0.0), member.choose(0.0, bandit="ads"), member.choose(0.0, bandit="ads", segment="de")]
    assert [(one.arm, one.ticket.number, one.segment) for one in choices] == [
        ("red", 1, None), ("short", 2, None), ("short", 3, "de"),
    ]  # fmt: skip
    assert [arm.n_open for agent in member.snapshot().agents for arm in agent.arms] == [1, 0, 1, 0]
    answers = observe(member, *[Observation(1.0, one.ticket) for one in choices])
    assert {one.outcome for one in answers} == {"counted"}
    assert [arm.n_open for agent in member.snapshot().agents for arm in agent.arms] == [0, 0, 0, 0]
    assert {one.outcome for one in observe(member, *[Observation(1.0, one.ticket) for one in choices])} == {
        "already counted"
    }


def test_a_segment_beyond_the_cap_is_refused_and_counted():
    member = with_ads(caps=Caps(segments=2))
    for segment in ("de", "fr", "de"):
        member.choose(0.0, bandit="ads", segment=segment)
    with pytest.raises(InputError, match=r"at most 2 segments \(caps.segments\), got 'us' more"):
        member.choose(0.0, bandit="ads", segment="us")
    assert member.choose(0.0, segment="us").segment == "us"  # of another bandit
    assert counted(member, "refused_segments") == (1,)
    assert member.snapshot().caps["segments"].used == 2


def test_segments_count_towards_the_cap_of_arms():
    member = with_ads(caps=Caps(arms=7))
    member.choose(0.0, bandit="ads", segment="de")
    with pytest.raises(InputError, match=r"at most 7 arms in all segments \(caps.arms\), got segment 'fr' more"):
        member.choose(0.0, bandit="ads", segment="fr")


def test_arms_that_were_observed_and_went_count_towards_the_cap_of_arms():
    member = make(arms=["red", "blue"], caps=Caps(arms=3))
    observe(member, ("red", 1.0), ("blue", 1.0))
    member.set_arms([ArmSpec("green", sigma=1.0)])
    with pytest.raises(InputError, match=r"at most 3 arms \(caps.arms\), with those .* observed, got 4"):
        member.set_arms([ArmSpec("grey", sigma=1.0), ArmSpec("green", sigma=1.0)])
    with pytest.raises(InputError, match=r"at most 3 arms in all segments \(caps.arms\), got segment 'de' more"):
        member.choose(0.0, segment="de")
    # What was never observed makes room when it goes, and what was observed may come back.
    member.set_arms([ArmSpec("grey", sigma=1.0), ArmSpec("red", sigma=1.0)])
    assert member.snapshot().caps["arms"].used == 3


def test_where_segments_are_listed_any_other_is_answered_without_one():
    member = with_ads(segments=["de", "fr"])
    assert [member.choose(0.0, bandit="ads", segment=one).segment for one in ("de", "us", "fr", "x" * 500)] == [
        "de", None, "fr", None,
    ]  # fmt: skip
    assert {agent.segment: agent.n_choices for agent in member.snapshot().agents} == {None: 2, "de": 1, "fr": 1}
    assert counted(member, "refused_segments") == (0,)


@pytest.mark.parametrize(
    "asked, line",
    [
        ({"bandit": "adds"}, r"bandit must be one of node 'n' \('default', 'ads'\), got 'adds'"),
        ({"bandit": ["ads"]}, r"bandit must be one of node 'n'"),
        ({"segment": 7}, "segment must be a text, got 7"),
        ({"segment": "a\nb"}, "segment must be 1 to 128 bytes"),
        ({"bandit": "ads", "segment": "x" * 125}, "at most 128 bytes together"),
        (
            {"bandit": "ads", "segment": "de", "among": ["red"]},
            r"among must name some of the arms of bandit 'ads', got \['red'\]",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line_and_makes_nothing(asked, line):
    member = with_ads()
    with pytest.raises(InputError, match=line):
        member.choose(0.0, **asked)
    assert (member.snapshot().n_choices, len(member.snapshot().agents)) == (0, 1)


def test_bandits_come_and_go_and_keep_what_was_observed():
    member = with_ads()
    choice = play(member, "ads", "de", 1.0)
    late = member.choose(0.0, bandit="ads", segment="de")
    member.set_bandits([spec("default", ("red",)), spec("prices", ("low",))])
    assert list(groups(member)) == [("default", None), ("prices", None)]
    assert observe(member, Observation(1.0, late.ticket))[0].outcome == "counted"
    with pytest.raises(InputError, match="bandit must be one of"):
        member.choose(0.0, bandit="ads")
    member.set_bandits([spec("default", ("red",)), spec()])
    again = member.choose(0.0, bandit="ads", segment="de")
    assert (choice.arm, late.arm, again.arm) == ("short", "long", "short")
    assert groups(member)["ads", "de"] == {"short": (1, 0), "long": (1, 0)}
    assert [one.n_choices for one in member.snapshot().agents] == [0, 3]


def test_a_new_arm_of_a_bandit_is_there_in_all_its_segments():
    member = with_ads()
    play(member, "ads", "de", MEANS, n=4)
    before = groups(member)["ads", "de"]
    hear(member, "p", ("o", 1, "ads/de/new", 3, 1.5, 4))
    member.set_arms([ArmSpec(arm, sigma=1.0) for arm in ("new", "short", "long")], "ads")
    assert groups(member)["ads", "de"] == {"new": (0, 3), **before}
    assert member.choose(0.0, bandit="ads", segment="de").arm == "new"
    member.set_arms([ArmSpec("long", sigma=1.0)], "ads")
    assert groups(member)["ads", "de"] == {"long": before["long"]}
    assert member.choose(0.0, bandit="ads", segment="de").arm == "long"


def test_an_arm_whose_name_is_too_long_in_a_segment_is_refused_and_nothing_changes():
    member = with_ads()
    member.choose(0.0, bandit="ads", segment="x" * 100)
    with pytest.raises(InputError, match="at most 128 bytes together"):
        member.set_arms([ArmSpec("y" * 50, sigma=1.0)], "ads")
    assert list(groups(member)["ads", None]) == ["short", "long"]
