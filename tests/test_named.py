"""Protocols of the package under the names of published algorithms."""

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import MPUCB, ComEx, CoUCB, UCBNetwork
from banditmesh.live.template import protocol_lines, runs_live
from banditmesh.protocols.notation import labels, read, write
from banditmesh.settings.parts import build_protocol

NAMED = {
    "comex(3)": "flooding(3)+contested",
    "comex(1)": "irs+contested",
    "ucb-network": "irs",
    "mp-ucb(3)": "flooding(3)",
    "co-ucb(4)": "flooding(4)",
}
PROBLEM = bm.Problem.random(bm.networks.ring(8), n_arms=4, per_agent=2, seed=0)


@pytest.mark.parametrize("text", NAMED)
def test_name_is_the_protocol_that_it_says(text):
    settings = {"horizon": 30, "seed": 0, "engine": "reference", "faults": bm.Faults(loss=0.1)}
    named, plain = (bm.simulate(PROBLEM, one, **settings) for one in (text, NAMED[text]))
    assert np.array_equal(named.regret, plain.regret)
    assert {name: totals.tolist() for name, totals in named.traffic.items()} == {
        name: totals.tolist() for name, totals in plain.traffic.items()
    }
    assert (named.protocol, named.policy) == (text.partition("(")[0], "ucb")
    assert read(text).facts == read(NAMED[text]).facts


@pytest.mark.parametrize("text", NAMED)
def test_name_is_written_and_read_everywhere(text):
    protocol = read(text)
    assert write(protocol) == text
    assert list(labels([protocol, bm.FwA(2)])) == [protocol.name, "fwa"]
    table = {"name": protocol.name} | ({} if text == "ucb-network" else {"ttl": protocol.ttl})
    assert build_protocol({"protocol": table}) == protocol
    assert protocol.relays_by_rule


def test_name_keeps_to_the_contract_of_protocols():
    report = bm.testing.check_protocol("comex(2)", compiled=False)
    assert "balances its books" in report.checks
    assert "takes an emission" not in report.checks


def test_names_stand_in_tables_of_comparisons():
    settings = {"horizon": 8, "seed": 0, "replicates": 2, "engine": "reference"}
    found = bm.compare(PROBLEM, ["comex(2)", "comex(3)", "ucb-network"], **settings)
    assert list(found.results) == ["comex(2)", "comex(3)", "ucb-network"]
    front = bm.frontier(PROBLEM, protocols=["mp-ucb", UCBNetwork], ttls=[2, 3], emissions=["growth(0.5)"], **settings)
    assert {one.name for one in front.configurations} == {"mp-ucb(2)", "mp-ucb(3)", "ucb-network"}


@pytest.mark.parametrize("text", NAMED)
def test_name_takes_no_other_emission(text):
    with pytest.raises(bm.InputError, match="takes no emission, got growth"):
        read(f"{text}+growth(0.5)")
    with pytest.raises(bm.InputError, match="takes no emission"):
        read(text).with_emission(bm.Growth(0.5))


def test_node_is_written_without_an_emission():
    assert "[emission]" not in protocol_lines(MPUCB(3))
    assert runs_live(CoUCB(4))
    assert not runs_live(ComEx(3))
