"""The stepper: a simulation round by round, looked at and steered from outside."""

import collections
import errno
import io
import os
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.files import atomic
from cases import gaussian_arms

PROBLEM = bm.Problem(
    nx.path_graph(["ann", "bob", "cy", "dan"]),
    [["x", "y"], ["y", "z"], ["x", "z"], ["x", "y", "z"]],
    {"x": bm.arms.Gaussian(0.1, 1.0), "y": bm.arms.Gaussian(0.5, 1.0), "z": bm.arms.Gaussian(0.9, 1.0)},
)
DYNAMIC = bm.Problem(
    bm.networks.EdgeMarkovian(nx.cycle_graph(6), 0.2, 0.3), [[v % 3, 3] for v in range(6)], gaussian_arms(4)
)
PROTOCOLS = [
    bm.NoCooperation(),
    bm.FwA(2),
    bm.Gossip(3),
    bm.ProbabilisticFlooding(3),
    bm.Centralised(),
    bm.Flooding(2, emission=bm.Growth(0.25, echoes=1)),
]


@pytest.mark.parametrize("problem", [PROBLEM, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_stepping_and_running_give_what_simulating_in_one_go_does(problem, protocol, rules):
    settings = {"horizon": 30, "seed": 3, "rules": rules, "link_traffic": True, "every": 2, "trace": True}
    settings["faults"] = bm.Faults(loss=0.2, outages=bm.Outages(0.1, 0.5, memory=False))
    whole = bm.simulate(problem, protocol, replicates=2, engine="reference", **settings)
    for replicate in (0, 1):
        simulation = bm.Simulation(problem, protocol, replicate=replicate, **settings)
        rounds = [simulation.step() for _ in range(12)]
        result = simulation.run()
        assert simulation.is_over
        for name in ("regret", "messages", "pulls", "agent_regret"):
            np.testing.assert_array_equal(getattr(result, name)[0], getattr(whole, name)[replicate])
        assert {name: totals[0] for name, totals in result.traffic.items()} == {
            name: totals[replicate] for name, totals in whole.traffic.items()
        }
        events = [event for event in whole.trace if event.replicate == replicate]
        assert result.trace == events
        assert [event for one in rounds for event in one.events] == events[: sum(len(one.events) for one in rounds)]
        np.testing.assert_allclose(np.cumsum([one.regret for one in rounds]), whole.regret[replicate, :12])


def test_round_tells_what_happened():
    simulation = bm.Simulation(PROBLEM, bm.FwA(2), horizon=10, seed=1)
    first = simulation.step()
    assert (first.round, simulation.round) == (1, 1)
    assert first.links == [("ann", "bob"), ("bob", "cy"), ("cy", "dan")]
    assert first.choices == {"ann": "x", "bob": "y", "cy": "x", "dan": "x"}
    fates = {(event.sender, event.receiver): (event.fate, event.learned) for event in first.events}
    assert fates == {
        ("ann", "bob"): ("relayed", False),
        ("bob", "ann"): ("absorbed", True),
        ("bob", "cy"): ("relayed", False),
        ("cy", "bob"): ("relayed", False),
        ("cy", "dan"): ("absorbed", True),
        ("dan", "cy"): ("absorbed", True),
    }
    assert first.estimates["ann"] == {"x": (1, first.rewards["ann"]), "y": (1, first.rewards["bob"])}
    second = simulation.step()
    assert second.choices == {"ann": "y", "bob": "z", "cy": "z", "dan": "y"}
    relayed = [event for event in second.events if event.sender != event.origin]
    assert {(event.message, event.sender, event.receiver) for event in relayed} == {
        ("0.1", "bob", "cy"),
        ("1.1", "cy", "dan"),
        ("2.1", "bob", "ann"),
    }
    assert [event.round for event in second.events] == [2] * len(second.events)


def test_links_of_a_round_are_those_of_the_network():
    simulation = bm.Simulation(
        bm.Problem(bm.networks.GraphSequence([nx.path_graph(3), nx.star_graph(2)]), [[0]] * 3, gaussian_arms(1)),
        bm.IRS(),
        horizon=2,
        seed=0,
    )
    assert [simulation.step().links for _ in range(2)] == [[(0, 1), (1, 2)], [(0, 1), (0, 2)]]


def test_others_may_choose():
    simulation = bm.Simulation(PROBLEM, bm.FwA(2), horizon=20, seed=1)
    for _ in range(20):
        assert simulation.step(actions={"dan": "x", "bob": "y"}).choices["dan"] == "x"
    pulls = simulation.run().pulls[0]
    assert pulls[3].tolist() == [20, 0, 0]
    assert pulls[1].tolist() == [0, 20, 0]
    assert (pulls[[0, 2]] > 0).sum() == 4
    # What was pulled for an agent needs no first pull any more.
    simulation = bm.Simulation(PROBLEM, bm.NoCooperation(), horizon=5, seed=1)
    simulation.step(actions={"dan": "y"})
    assert [simulation.step().choices["dan"] for _ in range(2)] == ["x", "z"]


@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Contested(), bm.Growth(0.25)], ids=str)
def test_actions_that_say_what_would_be_chosen_change_nothing(emission):
    plain = bm.Simulation(PROBLEM, bm.FwA(2, emission=emission), horizon=30, seed=2)
    told = bm.Simulation(PROBLEM, bm.FwA(2, emission=emission), horizon=30, seed=2)
    for _ in range(30):
        expected = plain.step()
        assert told.step(expected.choices) == expected
    assert told.run() == plain.run()


@pytest.mark.parametrize(
    "actions, message",
    [
        ({"eve": "x"}, "actions must name agents of the problem, got 'eve'"),
        ({"ann": "z"}, r"agent 'ann' must pull one of its arms \['x', 'y'\], got 'z'"),
        ({"bob": "y"}, r"agent 'bob' does not pull in round 2; see turn\(\) for those that do"),
        ([1], r"actions must be a mapping from agents to arms, got \[1\]"),
    ],
)
def test_actions_that_cannot_be_are_refused_and_change_nothing(actions, message):
    simulation = bm.Simulation(PROBLEM, bm.FwA(2), horizon=9, seed=0, every=[1, 2, 1, 1])
    simulation.step()
    with pytest.raises(InputError, match=message):
        simulation.step(actions)
    assert simulation.round == 1
    assert simulation.run() == bm.Simulation(PROBLEM, bm.FwA(2), horizon=9, seed=0, every=[1, 2, 1, 1]).run()


def test_turn_names_those_who_pull():
    simulation = bm.Simulation(
        PROBLEM, bm.FwA(2), horizon=200, seed=0, every=[1, 2, 1, 1], faults=bm.Faults(outages=bm.Outages(0.2, 0.5))
    )
    absent = collections.Counter()
    for t in range(1, 201):
        turn = simulation.turn()
        assert list(simulation.step().choices) == turn
        absent.update({"ann", "bob", "cy", "dan"} - set(turn))
        assert "bob" not in turn or t % 2 == 1
    assert absent["bob"] > 100
    assert 0 < absent["ann"] < 100


def test_simulation_that_is_over_cannot_go_on():
    simulation = bm.Simulation(PROBLEM, bm.FwA(2), horizon=2, seed=0)
    result = simulation.run()
    assert simulation.run() is result
    for call in (simulation.step, simulation.turn):
        with pytest.raises(InputError, match="the simulation is over after its 2 rounds"):
            call()


def test_events_can_be_handed_on_instead_of_kept():
    events = []
    result = bm.simulate(PROBLEM, bm.FwA(2), horizon=20, replicates=2, seed=0, trace=events.append)
    assert result.trace == []
    assert events == bm.simulate(PROBLEM, bm.FwA(2), horizon=20, replicates=2, seed=0, trace=True).trace


@pytest.mark.parametrize(
    "protocol",
    [
        bm.Flooding(3),
        bm.FwA(3),
        bm.Gossip(3),
        bm.FwA(3, emission=bm.Growth(0.25, echoes=2)),
        bm.TreeAggregation(1),
        bm.TreeAggregation(2, emission=bm.Growth(0.0, echoes=2)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "faults", [None, bm.Faults(loss=0.1, outages=bm.Outages(0.1, 0.5, memory=False))], ids=["none", "faults"]
)
def test_message_can_be_followed_by_its_name(protocol, faults):
    problem = bm.Problem.random(bm.networks.er(10, 0.3, seed=2), n_arms=5, per_agent=2, seed=0)
    trace = bm.simulate(problem, protocol, horizon=40, seed=0, faults=faults, trace=True).trace
    contents = collections.defaultdict(set)
    holders = collections.defaultdict(set)
    for event in trace:
        contents[event.message].add((event.origin, event.arm, event.n_pulls, event.reward))
        # Whoever sends it made it, or received it before and relayed it.
        assert event.sender == event.origin or event.sender in holders[event.message]
        if event.fate == "relayed":
            holders[event.message].add(event.receiver)
    assert all(len(content) == 1 for content in contents.values())
    assert len(contents) > 20


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_events_can_be_written_to_a_file(tmp_path, name):
    held = bm.simulate(PROBLEM, bm.FwA(2), horizon=20, replicates=2, seed=0, trace=True)
    result = bm.simulate(PROBLEM, bm.FwA(2), horizon=20, replicates=2, seed=0, trace=tmp_path / name)
    assert result.trace == []
    assert list(bm.read_trace(tmp_path / name)) == held.trace
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_names_of_any_kind_come_back_from_a_file(tmp_path):
    grid = nx.grid_2d_graph(2, 2)
    problem = bm.Problem(grid, [[("a", 1)]] * 4, {("a", 1): bm.arms.Bernoulli(0.5)})
    bm.simulate(problem, bm.IRS(), horizon=2, seed=0, trace=tmp_path / "events.jsonl")
    events = list(bm.read_trace(tmp_path / "events.jsonl"))
    assert {event.sender for event in events} == set(grid)
    assert {event.arm for event in events} == {("a", 1)}


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is not an event log of banditmesh"),
        (b"[1, 2]\n", "is not an event log of banditmesh"),
        (b"not json\n", "line 1: not an event of banditmesh"),
        (b'{"format": "banditmesh-trace", "version": 2}\n', "of another banditmesh"),
        (b"\xff\xfe\n", "line 1: not an event of banditmesh"),
        (b"\x1f\x8bcut", "cannot read"),
    ],
)
def test_file_that_is_no_event_log_is_refused_in_a_line(tmp_path, content, message):
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    with pytest.raises(bm.errors.FileError, match=message):
        list(bm.read_trace(path))


@pytest.mark.parametrize("row", ["[1, 2]", "{}", "7", "[", '["a", {}]'])
def test_damaged_row_is_named_by_its_line(tmp_path, row):
    path = tmp_path / "events.jsonl"
    bm.simulate(PROBLEM, bm.IRS(), horizon=1, seed=0, trace=path)
    path.write_text("\n".join([*path.read_text().splitlines()[:3], row]))
    with pytest.raises(bm.errors.FileError, match="line 4: not an event of banditmesh"):
        list(bm.read_trace(path))


def test_file_that_cannot_be_read_or_written_is_named(tmp_path):
    with pytest.raises(bm.errors.FileError, match="cannot read"):
        list(bm.read_trace(tmp_path / "missing.jsonl"))
    with pytest.raises(bm.errors.FileError, match="cannot write"):
        bm.simulate(PROBLEM, bm.IRS(), horizon=1, seed=0, trace=tmp_path / "no" / "events.jsonl")


class Disconnected(bm.UCB):
    """Raises what any code of a user's own may raise."""

    name = "disconnected"

    def choose(self, t, estimates, draw):
        raise ConnectionResetError("the line is dead")


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_error_of_the_run_is_not_taken_for_one_of_its_file(tmp_path, name):
    with pytest.raises(ConnectionResetError, match="the line is dead"):
        bm.simulate(
            PROBLEM, bm.IRS(), policy=Disconnected(), horizon=9, seed=0, engine="reference", trace=tmp_path / name
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_full_disk_is_an_error_of_the_file(tmp_path, name, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def writing(path):
        yield Full()

    monkeypatch.setattr(atomic, "writing", writing)
    # A long log fails on the way, a short one when it is closed.
    for horizon in (1, 200):
        with pytest.raises(bm.errors.FileError, match=f"cannot write .*{name}: No space left"):
            bm.simulate(PROBLEM, bm.IRS(), horizon=horizon, seed=0, trace=tmp_path / name)


def test_run_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(InputError):
        bm.simulate(PROBLEM, bm.IRS(), horizon=0, trace=tmp_path / "events.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trace", [1, [], {"a": 1}])
def test_trace_is_yes_no_a_callable_or_a_file(trace):
    with pytest.raises(InputError, match="trace must be True, False or a callable that takes events"):
        bm.simulate(PROBLEM, bm.IRS(), horizon=1, trace=trace)


def test_log_that_does_not_fit_is_refused_with_the_remedy(monkeypatch):
    settings = {"horizon": 10_000, "replicates": 10, "seed": 0}
    monkeypatch.setattr("banditmesh.machine.memory.available", lambda: 2.0**26)
    with pytest.raises(bm.errors.InsufficientMemoryError, match=r"the event log would need .* write it to a file"):
        bm.simulate(PROBLEM, bm.Flooding(2), trace=True, record_every=10_000, **settings)
    # Where nothing is sent, no log is too long.
    bm.simulate(PROBLEM, bm.NoCooperation(), trace=True, record_every=10_000, **{**settings, "horizon": 500})
