"""Algorithms as such: they are found by name everywhere, keep to their contract, and checks catch those that do not."""

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.algorithms import Actor, Algorithm
from banditmesh.algorithms.base import ASYNCHRONOUS, DYNAMIC, LOSS, TRAITS, UNEQUAL, traits
from banditmesh.core import Copy, Note, Parcel, Place
from banditmesh.errors import ContractError, InputError, MessageError
from banditmesh.protocols.notation import read, write
from banditmesh.settings.parts import build
from banditmesh.sim.support import algorithms_table
from banditmesh.testing import check_algorithm, shipped

ALGORITHMS = [kind() for kind in shipped(Algorithm)]


def equal_arms(network, means=(0.2, 0.8, 0.4), sigma=0.3):
    arms = [bm.arms.Gaussian(mean, sigma) for mean in means]
    n_agents = getattr(network, "n_agents", None) or len(network)
    return bm.Problem(network, [range(len(means))] * n_agents, arms)


RING = equal_arms(bm.networks.ring(6))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_algorithm_keeps_to_its_contract(algorithm):
    assert len(check_algorithm(algorithm).checks) == 13


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_algorithm_is_found_by_its_name(algorithm):
    name = algorithm.name
    assert read(name) == read(write(algorithm)) == algorithm
    assert build("protocol", {"protocol": {"name": name}}) == algorithm
    assert [row for row in algorithms_table() if row["algorithm"] == name]
    assert getattr(bm.algorithms, type(algorithm).__name__) is type(algorithm)


def test_parameters_are_written_and_read():
    assert read("gosine(2, beta=2.5)") == bm.algorithms.GosInE(alpha=2, beta=2.5)
    assert write(bm.algorithms.GosInE(spread=0.5)) == "gosine(spread=0.5)"


def test_comparisons_take_algorithms_once_whatever_the_policies():
    settings = {"horizon": 9, "seed": 0, "replicates": 2, "engine": "reference"}
    found = bm.compare(RING, ["irs", "gosine"], policies=["ucb", "klucb"], **settings)
    assert list(found.results) == ["irs, ucb", "irs, klucb", "gosine"]
    result = bm.simulate(RING, "gosine", horizon=5, seed=0)
    assert result.policy == result.settings["policy"] == "own"
    assert result.engine == "reference"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('protocol = "gosine"', "'gosine' does not work with unequal arm sets"),
        ('sweep.protocol = ["irs", "dducb"]\nfaults = {loss = 0.1}', "'dducb' does not work with losses"),
        ('protocol = "dducb"\nsweep.every = [1, 2]', "'dducb' does not work with agents that do not pull in every"),
    ],
)
def test_spec_of_an_algorithm_that_refuses_its_problem_is_refused_when_it_is_read(lines, words):
    arms = "network = {name = 'ring', n = 4}\narms = {n_arms = 4, per_agent = 2}"
    with pytest.raises(bm.InputError, match=words) as refused:
        bm.parse_spec(f"horizon = 5\nreplicates = 1\n{arms}\n{lines}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("entry", [("gosine", bm.UCB()), {"protocol": "gosine", "policy": "klucb"}])
def test_algorithm_that_chooses_is_not_compared_under_the_name_of_a_policy(entry):
    with pytest.raises(
        bm.InputError, match=r"^'gosine' chooses by its own rules and takes no policy, got .*; leave it"
    ):
        bm.compare(RING, [entry, "none"], horizon=5, replicates=1, seed=0, engine="reference")


def test_there_is_no_estimate_of_an_algorithm_that_chooses():
    with pytest.raises(bm.InputError, match=r"'gosine', which chooses by its own rules; simulate it$"):
        bm.theory.estimate(RING, "gosine", horizon=10)
    assert bm.theory.estimate(RING, "odc", horizon=10).at(10) > 0


@pytest.mark.parametrize("text", ["gosine(beta=1e6)", "gosine(spread=1e300)", "dducb(eps=1e-320)"])
def test_parameters_beyond_what_can_be_computed_are_refused(text):
    with pytest.raises(bm.InputError, match=r"^(beta|spread|eps) must be .*, got "):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "gosine(1e300, beta=100, spread=1e6)",
        "dducb(1e300, eps=1e-100)",
        "odc(1, factor=1e300)",
        "coop-se(2, factor=1e300)",
        "dpe2(1e300)",
        "cusum-ucb(2, drift=1e300)",
        "glr-klucb(2, delta=1e-320)",
        "glr-klucb(2, delta=1e300)",
        "co-aae(2, alpha=1e300)",
    ],
)
def test_extreme_parameters_run(text):
    assert np.isfinite(bm.simulate(RING, text, horizon=40, seed=0, engine="reference").regret).all()


def test_frontier_takes_algorithms_by_class_and_with_several_policies():
    found = bm.frontier(
        RING,
        protocols=[bm.algorithms.GosInE, "irs"],
        emissions=["every-pull"],
        horizon=9,
        seed=0,
        replicates=2,
        policies=["ucb", "klucb"],
        prune=False,
        engine="reference",
    )
    assert [one.name for one in found.configurations] == ["gosine", "irs, ucb", "irs, klucb"]


def test_study_of_algorithms_leaves_the_emission_to_protocols(tmp_path):
    text = """
name = "algorithms"
horizon = 8
replicates = 2
[network]
name = "ring"
n = 5
[arms]
n_arms = 3
per_agent = 3
[sweep]
protocol = ["gosine(2)", "gosine(3)"]
"""
    study = bm.run_study(bm.parse_spec(text), tmp_path / "study", workers=1)
    assert study.is_complete
    emission = "[emission]\nname = 'growth'\n[sweep]"
    bm.parse_spec(text.replace("[sweep]", emission).replace("gosine(3)", "irs"))
    with pytest.raises(bm.InputError, match="has no effect: the protocol takes no emission"):
        bm.parse_spec(text.replace("[sweep]", emission))


@pytest.mark.parametrize("text", ["gosine+growth(0.5)", "gosine+every-pull"])
def test_algorithm_refuses_an_emission(text):
    with pytest.raises(bm.InputError, match="'gosine' sends by its own rules and takes no emission, got"):
        read(text)
    name = text.partition("+")[2].partition("(")[0]
    with pytest.raises(bm.InputError, match="takes no emission"):
        build("protocol", {"protocol": {"name": "gosine"}, "emission": {"name": name}})


def test_algorithm_refuses_a_memory_that_forgets():
    with pytest.raises(bm.InputError, match="'gosine' chooses by its own rules and has no memory that forgets"):
        bm.simulate(RING, "gosine", policy="ucb+discount(0.9)", horizon=5)


def test_animation_and_steps_show_notes(tmp_path):
    bm.animate(bm.Simulation(RING, "gosine", horizon=9, seed=0), tmp_path / "film.html")
    assert (tmp_path / "film.html").stat().st_size > 10_000
    simulation = bm.Simulation(RING, "gosine", horizon=9, seed=0)
    events = [event for _ in range(9) for event in simulation.step().events]
    assert {event.fate for event in events} == {"absorbed"}
    assert len({(event.message, event.sender) for event in events}) == len(events)


def test_traits_of_a_run():
    assert list(traits(RING, [1] * 6, None)) == []
    outages, corruption = bm.Outages(0.1, 0.1, memory=False), bm.Corruption("zero", 0.1)
    faults = bm.Faults(loss=0.1, jitter=1.0, link_cap=1, corruption=corruption, outages=outages)
    unequal = bm.Problem(bm.networks.EdgeMarkovian(bm.networks.ring(3), 0.5, 0.5), [[0], [0], [0, 1]], RING.laws[:2])
    assert list(traits(unequal, [1, 2, 1], faults)) == list(TRAITS)


def test_actor_refuses_what_is_no_note_of_its_kinds():
    agent = bm.algorithms.GosInE().seat(Place("ann", bm.policies.Arms.gaussian(["a"], 1.0), bm.UCB()))
    for wrong in (
        Copy(Note("bob", 1, "gossip"), 1),
        Copy(None, 1),
        "hello",
        Copy(bm.core.Message("b", 1, "a", 1, 1.0), 1),
    ):
        with pytest.raises(MessageError, match=r"takes notes of request, recommendation, got"):
            agent.receive(wrong, "bob", 1)


# Broken algorithms: each is the sound one with one mistake.


class Teller(Actor):
    """Pulls by turns; tells all neighbours its last arm, and prefers what it was told."""

    kinds = ("last",)
    kept = ("last", "told")

    def __init__(self, algorithm, place):
        self.algorithm = algorithm
        super().__init__(place)

    def start(self):
        self.last, self.told = None, None

    def pick(self, clock, positions):
        return positions[clock % len(positions)] if self.told is None or clock % 2 else self.told

    def took(self, position, reward):
        self.last = position

    def send(self, neighbours):
        return [] if self.last is None else self.notes(neighbours, "last", self.arms.names[self.last], [1.0])

    def take(self, note, sender):
        position = self.position_of(note.arm)
        changed = position is not None and position != self.told
        if changed:
            self.told = position
        return changed


@dataclass(frozen=True)
class Tell(Algorithm):
    name = "tell"
    actor = Teller

    def seat(self, place):
        return self.actor(self, place)


def with_mistake(**methods):
    """The algorithm whose actors have other methods."""
    kind = type("Mistaken", (Teller,), methods)
    return dataclass(frozen=True)(type("Broken", (Tell,), {"name": "broken", "actor": kind}))()


def test_sound_algorithm_passes():
    assert len(check_algorithm(Tell()).checks) == 13


def _pick_of_module(self, clock, positions):
    return positions[int(random.random() * len(positions))]


def _pick_of_numpy(self, clock, positions):
    return positions[np.random.randint(len(positions))]  # noqa: NPY002


def _count_in_class(self, position, reward):
    type(self).n = getattr(type(self), "n", 0) + 1
    self.last = (position + type(self).n) % len(self.arms.names)


def _unkept(self, position, reward):
    self.secret = getattr(self, "secret", 0) + 1
    self.last = (position + self.secret) % len(self.arms.names)


def _start_half(self):
    self.last, self.told = getattr(self, "last", None), None


def _send_far(self, neighbours):
    target = (self.name + self.place.n_agents // 2) % self.place.n_agents
    return [Parcel(Copy(Note(self.name, self.place.now(), "last", self.arms.names[0]), 1), [target])]


def _send_twice(self, neighbours):
    note = Note(self.name, self.place.now(), "last", self.arms.names[0])
    return [Parcel(Copy(note, 1), [*neighbours, *neighbours])]


def _send_nan(self, neighbours):
    return self.notes(neighbours, "last", self.arms.names[0], [float("nan")])


def _learn_of_nothing(self, note, sender):
    self.told = 99
    return True


def _pick_of_several(self, clock, positions):
    return clock // (self.place.n_agents - 1) % len(positions)


def _remember_set(self, position, reward):
    self.last, self.more = position, {position}


def _draw_and_forget(self, position, reward):
    self.last = position
    random.random()


MISTAKES = {
    "must leave the generators": {"took": _draw_and_forget},
    "must give the same result step by step": {"pick": _pick_of_module},
    "must give the same result": {"pick": _pick_of_numpy},
    "same result|depend on each other": {"took": _count_in_class},
    "go on from their state, got another": {"took": _unkept},
    "begin a new life with nothing, got last": {"start": _start_half},
    "send to neighbours of the round only, got a copy from": {"send": _send_far},
    "send a copy to a neighbour once": {"send": _send_twice},
    "send finite numbers": {"send": _send_nan},
    "must run on .* must pick one of": {"take": _learn_of_nothing},
    "must send something within 8 rounds": {"send": lambda self, neighbours: []},
    "must run on one agent, got ZeroDivisionError": {"pick": _pick_of_several},
    "must run on .*, got agent .* takes notes of": {"kinds": ()},
    "lists, texts and numbers, got Object of type set": {"took": _remember_set, "kept": ("last", "told", "more")},
}


@pytest.mark.parametrize("said", MISTAKES)
def test_mistaken_actor_is_caught(said):
    generators = random.getstate(), np.random.get_state()  # noqa: NPY002
    with pytest.raises(ContractError, match=said):
        check_algorithm(with_mistake(**MISTAKES[said]), horizon=8)
    random.setstate(generators[0])
    np.random.set_state(generators[1])  # noqa: NPY002


def _broken(**attributes):
    return dataclass(frozen=True)(type("Broken", (Tell,), {"name": "broken", **attributes}))()


class Spoiled(Teller):
    def took(self, position, reward):
        self.place.plan["n"] += 1
        self.last = self.place.plan["n"] % 3 % len(self.arms.names)


@pytest.mark.parametrize(
    ("said", "algorithm"),
    [
        ("must refuse some of .*; got 'rain'", _broken(refuses={"rain": "it is wet"})),
        ("must say in one line why it refuses losses, got ''", _broken(refuses={LOSS: ""})),
        (
            "must refuse losses, as it says, got a run",
            _broken(refuses={LOSS: "it counts on each"}, check_run=lambda *given: None),
        ),
        (
            "must refuse agents that do not pull in every round, as it says",
            _broken(refuses={ASYNCHRONOUS: "it counts rounds"}, check_run=lambda *given: None),
        ),
        ("a positive whole number of bytes, got 12.5", _broken(size=lambda self, message: 12.5)),
        ("a positive whole number of bytes, got 0", _broken(size=lambda self, message: 0)),
        ("the name of .* must be its own", _broken(name="irs")),
        ("depend on each other|same", _broken(plan=lambda self, problem: {"n": 0}, actor=Spoiled)),
    ],
)
def test_mistaken_algorithm_is_caught(said, algorithm):
    with pytest.raises(ContractError, match=said):
        check_algorithm(algorithm, horizon=8)


@dataclass(frozen=True)
class Forgotten(Tell):
    """Works with equal arms on static networks only, and says so."""

    name = "forgotten"
    refuses: ClassVar = {UNEQUAL: "it compares positions", DYNAMIC: "it counts on its links"}


def test_refusals_are_one_line_and_the_rest_is_still_checked():
    assert len(check_algorithm(Forgotten()).checks) == 13
    dynamic = equal_arms(bm.networks.EdgeMarkovian(bm.networks.ring(4), 0.5, 0.5))
    with pytest.raises(
        bm.InputError, match=r"^'forgotten' does not work with a dynamic network: it counts on its links; "
    ):
        bm.simulate(dynamic, Forgotten(), horizon=3)


def test_only_algorithms_are_checked():
    with pytest.raises(bm.InputError, match="an algorithm is required, got"):
        check_algorithm(bm.IRS())
    with pytest.raises(bm.InputError, match="an instance of GosInE is required"):
        check_algorithm(bm.algorithms.GosInE)


def test_actor_without_a_choice_is_one_line():
    @dataclass(frozen=True)
    class Undecided(Algorithm):
        name = "undecided"

        def seat(self, place):
            return Actor(place)

    problem = bm.Problem(bm.networks.ring(3), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    with pytest.raises(InputError, match=r"Actor must override pick\(\)"):
        bm.simulate(problem, Undecided(), horizon=2)
