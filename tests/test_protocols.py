import dataclasses
from dataclasses import dataclass

import networkx as nx
import pytest

import banditmesh as bm
from banditmesh.draws import TARGET_STRIDE
from banditmesh.live.template import refuse_live
from banditmesh.protocols.base import MAX_TTL, AnyProtocol, Delivery
from banditmesh.settings import parts
from cases import common_arms

ALL = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(4),
    bm.ProbabilisticFlooding(4),
    bm.FwA(4),
    bm.Flooding(4),
    bm.Centralised(),
]


def ids(protocol):
    return protocol.name


def test_short_names_are_those_of_the_contract():
    names = ["none", "irs", "gossip", "probabilistic", "fwa", "flooding", "centralised"]
    assert [protocol.name for protocol in ALL] == names


def test_abbreviations_are_the_same_classes():
    assert bm.FwA is bm.FloodingWithAbsorption
    assert bm.IRS is bm.InstantRewardSharing


@pytest.mark.parametrize("protocol", ALL, ids=ids)
def test_protocols_are_frozen_values(protocol):
    assert protocol == dataclasses.replace(protocol)
    assert hash(protocol) == hash(dataclasses.replace(protocol))
    assert protocol.emission == bm.EveryPull()
    with pytest.raises(dataclasses.FrozenInstanceError):
        protocol.ttl = 7


@pytest.mark.parametrize("protocol", ALL, ids=ids)
def test_written_out_protocol_makes_it_again(protocol):
    assert eval(repr(protocol), vars(bm) | {name: getattr(bm, name) for name in bm.__all__}) == protocol


def test_protocols_with_other_settings_differ():
    assert bm.Flooding(3) != bm.Flooding(4) != bm.FwA(4)
    assert bm.ProbabilisticFlooding(4) == bm.ProbabilisticFlooding(4, stop=0.5) != bm.ProbabilisticFlooding(4, stop=0.6)
    assert bm.Gossip(4) == bm.Gossip(4, fanout=1) != bm.Gossip(4, fanout=2)


@pytest.mark.parametrize("has_arm", [False, True])
@pytest.mark.parametrize("ttl", [0, 3])
def test_relay_rules(has_arm, ttl):
    assert bm.Flooding.relay(has_arm, ttl, 2, 0.0, 0.0) == bm.RELAY
    assert bm.Gossip.relay(has_arm, ttl, 2, 0.0, 0.0) == bm.RELAY
    assert bm.IRS.relay(has_arm, ttl, 2, 0.0, 0.0) == bm.RELAY
    assert bm.FwA.relay(has_arm, ttl, 2, 0.0, 0.0) == (bm.ABSORB if has_arm else bm.RELAY)
    assert bm.ProbabilisticFlooding.relay(has_arm, ttl, 2, 0.49, 0.5) == bm.STOP
    assert bm.ProbabilisticFlooding.relay(has_arm, ttl, 2, 0.5, 0.5) == bm.RELAY


def test_parameters_and_targets():
    assert bm.ProbabilisticFlooding(4, stop=0.25).parameter == 0.25
    assert bm.Gossip(4, fanout=3).n_targets == 3
    relaying = [protocol for protocol in ALL if protocol.delivery is Delivery.HOPS]
    assert [protocol.n_targets for protocol in relaying if protocol.name != "gossip"] == [None] * 4
    assert [protocol.name for protocol in relaying if protocol.random] == ["probabilistic"]
    assert [protocol.most_hops for protocol in ALL] == [0, 1, 4, 4, 4, 4, 0]
    assert [protocol.name for protocol in ALL if protocol.delivery is Delivery.EVERYONE] == ["centralised"]


def test_ttl_may_be_as_large_as_the_draws_allow():
    assert bm.Flooding(MAX_TTL).ttl == MAX_TTL
    with pytest.raises(bm.InputError, match=f"at most {MAX_TTL}, got {MAX_TTL + 1}"):
        bm.Flooding(MAX_TTL + 1)


def test_fanout_may_be_as_large_as_the_draws_allow():
    assert bm.Gossip(1, fanout=TARGET_STRIDE - 1).fanout == TARGET_STRIDE - 1
    with pytest.raises(bm.InputError, match=f"at most {TARGET_STRIDE - 1}, got {TARGET_STRIDE}"):
        bm.Gossip(1, fanout=TARGET_STRIDE)


def test_every_pull_always_sends():
    assert bm.EveryPull.sends(1, 0, False, 0.0)
    assert bm.EveryPull.sends(9, 8, True, 0.0)
    assert (bm.EveryPull.n_bytes, bm.EveryPull.cumulative) == (24, False)


@pytest.mark.parametrize(
    "call", [lambda: bm.Protocol(1).relay(True, 1, 1, 0.0, 0.0), lambda: bm.Emission().sends(1, 0, False, 0.0)]
)
def test_base_classes_say_what_is_missing(call):
    with pytest.raises(NotImplementedError, match="static method"):
        call()


# Ways of delivery


def a_protocol(base, **namespace):
    """A frozen dataclass with an emission, as a user would write it."""
    fields = {"__annotations__": {"emission": bm.Emission}, "emission": bm.EveryPull(), "name": "mine"}
    return dataclass(frozen=True)(type("Mine", (base,), {**fields, **namespace}))


class NoDataclass(AnyProtocol):
    name = "mine"


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (a_protocol(AnyProtocol)(), r"must bring courier\(\) or seat\(\) .* got OWN"),
        (a_protocol(AnyProtocol, delivery=Delivery.HOPS)(), r"must bring courier\(\) or seat\(\) .* got HOPS; derive"),
        (a_protocol(AnyProtocol, delivery=Delivery.TREE)(), r"must bring courier\(\) or seat\(\) .* got TREE; derive"),
        (a_protocol(AnyProtocol, delivery="hops")(), "must be a Delivery such as Delivery.NOTHING, got 'hops'"),
        (a_protocol(bm.Flooding, delivery=Delivery.NOTHING)(2), "and only then, got NOTHING"),
        (a_protocol(bm.Flooding, delivery=Delivery.EVERYONE)(2), "and only then, got EVERYONE"),
        (a_protocol(bm.TreeAggregation, delivery=Delivery.HOPS)(), "got HOPS; derive from Protocol for HOPS"),
        (
            NoDataclass(),
            "'mine' must be a frozen dataclass with the field emission, got <test_protocols",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_way_of_delivery_that_a_class_does_not_have_is_refused(protocol, message, engine):
    problem = common_arms(nx.path_graph(3))
    with pytest.raises(bm.InputError, match=message) as caught:
        bm.simulate(problem, protocol, horizon=5, seed=0, engine=engine)
    assert "\n" not in str(caught.value)
    for call in (
        lambda: bm.compare(problem, [protocol], horizon=5, seed=0),
        lambda: bm.Simulation(problem, protocol, horizon=5, seed=0),
        lambda: bm.theory.bounds(problem, protocol),
        lambda: refuse_live(protocol),
    ):
        with pytest.raises(bm.InputError, match=message):
            call()


@pytest.mark.parametrize("delivery", [Delivery.NOTHING, Delivery.EVERYONE])
def test_a_users_own_end_of_the_scale_is_simulated(delivery, engine):
    problem = common_arms(nx.path_graph(3))
    ours, theirs = (
        bm.simulate(problem, protocol, horizon=10, seed=0, engine=engine)
        for protocol in (
            a_protocol(AnyProtocol, delivery=delivery)(),
            bm.NoCooperation() if delivery is Delivery.NOTHING else bm.Centralised(),
        )
    )
    assert ours.regret.tolist() == theirs.regret.tolist()


def test_an_emission_that_would_have_no_effect_is_refused_however_it_is_given(tmp_path):
    what = "takes no emission, since all agents hear every observation at once, got 'growth'; leave it out"
    for make in (
        lambda: bm.Centralised(emission=bm.Growth(0.25)),
        lambda: bm.Centralised().with_emission(bm.Growth(0.25)),
        lambda: bm.simulate(common_arms(nx.path_graph(3)), "centralised+growth(0.25)", horizon=5),
        lambda: bm.protocols.notation.parse("centralised + growth(0.25)"),
        lambda: parts.build_protocol({"protocol": {"name": "centralised"}, "emission": {"name": "growth"}}),
        lambda: a_protocol(AnyProtocol, delivery=Delivery.EVERYONE)(emission=bm.Growth()),
    ):
        with pytest.raises(bm.InputError, match=what):
            make()
    assert bm.protocols.notation.read("centralised+every-pull") == bm.Centralised()
