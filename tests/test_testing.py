"""The public checks accept what keeps to the contract, and say what is wrong with everything that does not."""

import dataclasses
import itertools
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.errors import ContractError
from banditmesh.policies import Arms, Chooser
from banditmesh.testing import check_emission, check_policy, check_protocol, runs
from banditmesh.testing.cases import cases


class Sound(bm.Protocol):
    """A rule of the user's own that needs no compiling, because it does not draw."""

    name = "sound-rule"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.ABSORB if has_arm and degree > 1 else bm.RELAY


@dataclass(frozen=True)
class Greedy(bm.Policy):
    """A choice of the user's own."""

    warm: int = 30
    name = "greedy"

    def choose(self, t, estimates, draw):
        if t < self.warm:
            return t % len(estimates)
        return max(range(len(estimates)), key=lambda position: estimates.mean[position])


@dataclass(frozen=True)
class Seldom(bm.Emission):
    """An emission of the user's own."""

    pause: int = 3
    name = "seldom"

    @property
    def parameter(self):
        return float(self.pause)

    @staticmethod
    def sends(own_count, sent_count, is_best, parameter):
        return sent_count == 0 or own_count - sent_count >= parameter


def test_what_keeps_to_the_contract_passes():
    report = check_protocol(Sound(3))
    assert report.checks[-1] == "gives the same result on both engines"
    assert report.n_pairs >= 4 * len(cases(False))
    report = check_policy(Greedy())
    assert report.n_pairs == 0
    assert "overrides choose()" in str(report)
    assert check_emission(Seldom(), compiled=False).checks[0] == "is a frozen value"


@pytest.mark.slow
def test_deeper_checks_look_at_more_problems():
    shallow, deep = (check_protocol(Sound(2), deep=deep) for deep in (False, True))
    assert deep.n_pairs > shallow.n_pairs > 0


def test_an_index_of_the_users_own_runs_without_being_compiled():
    class Own(bm.UCB):
        name = "own-ucb"

    assert check_policy(Own(), compiled=False).n_pairs == 0


def test_checks_need_no_test_framework():
    script = "import banditmesh as bm, sys; bm.testing.check_emission(bm.EveryPull(), compiled=False); "
    script += "assert not {'pytest', 'hypothesis', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# What is no value


class Nameless(bm.Flooding):
    pass


class Unnamed(Sound):
    name = "protocol"


class Spaced(Sound):
    name = "my protocol"


class Flagged(Sound):
    name = "flagged"
    random = 1


class Undeclared(Sound):
    name = "undeclared"
    width: int = 3


class Hidden(Sound):
    name = "hidden"

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "width", 3)


@dataclass(frozen=True)
class Uncompared(Sound):
    width: str = field(default="wide", compare=False)
    name = "uncompared"


@dataclass(frozen=True)
class Listed(Sound):
    widths: Any = field(default_factory=lambda: [1, 2])
    name = "listed"


@dataclass(frozen=True, eq=False)
class Alone(Sound):
    name = "alone"

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


@dataclass(frozen=True, repr=False)
class Mute(Sound):
    width: int = 3
    name = "mute"

    def __repr__(self):
        return f"Mute({self.ttl}, {self.emission})"


@dataclass(frozen=True)
class Function(Sound):
    width: Any = lambda: 3
    name = "function"


@dataclass(frozen=True)
class Reduced(Sound):
    width: int = 3
    name = "reduced"

    def __copy__(self):
        return dataclasses.replace(self)

    def __reduce__(self):
        return Reduced, (7,)


class NotFinite(Sound):
    name = "not-finite"
    parameter = float("nan")


@dataclass(frozen=True)
class Careless(Sound):
    name = "careless"

    def __post_init__(self):
        pass


class ToNobody(Sound):
    name = "to-nobody"
    n_targets = 0


class Undelivered(Sound):
    name = "undelivered"
    delivery = "by hand"


class OwnInit(Sound):
    name = "own-init"

    def __init__(self, ttl):
        object.__setattr__(self, "ttl", ttl)
        object.__setattr__(self, "emission", bm.EveryPull())


@dataclass(frozen=True)
class OneEmission(Sound):
    name = "one-emission"

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "emission", bm.EveryPull())


class Changing(Sound):
    name = "changing"

    @property
    def n_targets(self):
        object.__setattr__(self, "asked", True)


VALUES = {
    Nameless: "must be its own, got 'flooding', which is that of Flooding; set `name`",
    Unnamed: "must be its own, got 'protocol'",
    Spaced: "must be letters, digits and hyphens .* got 'my protocol'",
    Flagged: "random of protocol 'flagged' must be True or False in its class, got 1",
    Undeclared: "all state of protocol 'undeclared' must be fields, got 'width', which is not one; write @dataclass",
    Hidden: "must be fields, got 'width'",
    Uncompared: "must cover the field 'width', got one that is left out",
    Listed: "must be hashable, got unhashable type: 'list'; use tuples",
    Alone: "a copy of protocol 'alone' must equal it",
    Mute: "with another width must differ in == and repr",
    Function: "must be picklable",
    Reduced: "must come back equal from a pickle, got Reduced",
    NotFinite: "the parameter of protocol 'not-finite' must be a finite number, got nan; override",
    Careless: r"must refuse ttl=-1, got no error; call super\(\).__post_init__",
    ToNobody: "n_targets of protocol 'to-nobody' must be an integer of at least 1, got 0",
    Undelivered: "delivery of protocol 'undelivered' must be a Delivery in its class, got 'by hand'",
    OwnInit: "must take emission=",
    OneEmission: "must keep the emission that it is given, got EveryPull",
    Changing: "must not change while it is used, got another 'asked'",
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_protocols_that_are_no_values_are_refused(kind):
    with pytest.raises(ContractError, match=VALUES[kind]) as raised:
        check_protocol(kind(3), compiled=False)
    assert "\n" not in str(raised.value)


def test_an_error_of_a_check_is_a_failed_assertion_and_a_wrong_input():
    with pytest.raises(AssertionError):
        check_protocol(Nameless(3))
    with pytest.raises(bm.InputError):
        check_protocol(Nameless(3))


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (check_protocol, bm.FwA, "an instance of FloodingWithAbsorption is required, got the class; call it"),
        (check_protocol, bm.UCB(), r"a protocol is required, got UCB\(alpha=3.0\)"),
        (check_policy, bm.FwA(2), "a policy is required, got Flooding"),
        (check_emission, "growth", "an emission is required, got 'growth'"),
    ],
)
def test_what_is_something_else_is_refused(check, given, message):
    with pytest.raises(bm.InputError, match=message):
        check(given)


# Rules that are no functions of their arguments

calls = itertools.count()


@pytest.fixture(autouse=True)
def _count_from_zero():
    """What remembers its calls answers the same in every test, whatever ran before."""
    global calls
    calls = itertools.count()


def protocol_of(relay, **flags):
    return type("Broken", (bm.Protocol,), {"name": "broken", "relay": relay, **flags})(3)


RELAYS = {
    "no static method": (lambda self, has_arm, ttl, degree, u, parameter: bm.RELAY, "must be a static method of"),
    "too few arguments": (staticmethod(lambda has_arm, ttl: bm.RELAY), r"got \(has_arm, ttl\); take these"),
    "not defined for all degrees": (
        staticmethod(lambda has_arm, ttl, degree, u, parameter: bm.RELAY if 3 / degree > 1 else bm.STOP),
        "must accept all its inputs, got ZeroDivisionError: .* degree=0",
    ),
    "no answer": (staticmethod(lambda has_arm, ttl, degree, u, parameter: None), "RELAY, ABSORB or STOP, got None"),
    "a truth value": (staticmethod(lambda has_arm, ttl, degree, u, parameter: has_arm), "or STOP, got False"),
    "another number": (staticmethod(lambda has_arm, ttl, degree, u, parameter: 3), "or STOP, got 3"),
    "remembers": (
        staticmethod(lambda has_arm, ttl, degree, u, parameter: next(calls) // 7 % 2),
        "must give the same answer to the same inputs",
    ),
    "uses u secretly": (
        staticmethod(lambda has_arm, ttl, degree, u, parameter: bm.STOP if 0 < u < 0.5 else bm.RELAY),
        "must not use u, because random is False .* set random = True",
    ),
}


@pytest.mark.parametrize("what", RELAYS)
def test_broken_relay_rules_are_refused(what):
    relay, message = RELAYS[what]
    with pytest.raises(ContractError, match=message):
        check_protocol(protocol_of(relay), compiled=False)


def test_a_relay_rule_that_does_not_use_its_draw_is_refused():
    with pytest.raises(ContractError, match=r"must use u, because random is True.* remove random"):
        check_protocol(protocol_of(staticmethod(lambda *_: bm.RELAY), random=True), compiled=False)
    # It does not use it at this stopping probability, but it would at another.
    check_protocol(bm.ProbabilisticFlooding(2, stop=0.0), compiled=False)


def policy_of(**parts):
    return type("Broken", (bm.Policy,), {"name": "broken", **parts})()


def index_of(function):
    """An index of the mean, the count and u."""
    return staticmethod(lambda mean, count, inv_root, clock, sigma, law, u, parameter: function(mean, count, u))


INDICES = {
    "no index": ({}, "must accept all its inputs, got NotImplementedError"),
    "nan": ({"index": index_of(lambda mean, count, u: mean * float("nan"))}, "must be a number above -inf.*got nan"),
    "-inf": ({"index": index_of(lambda mean, count, u: -float("inf"))}, "or its arm is never pulled, got -inf"),
    "text": ({"index": index_of(lambda mean, count, u: "high")}, "must be a number above -inf.*got 'high'"),
    "not defined for a mean": ({"index": index_of(lambda mean, count, u: 1 / mean)}, "ZeroDivisionError.*mean=0.0"),
    "remembers": (
        {"index": index_of(lambda mean, count, u: next(calls))},
        "must give the same answer to the same inputs",
    ),
    "uses u secretly": (
        {"index": index_of(lambda mean, count, u: mean + u)},
        "must not use u, because random is False",
    ),
    "does not draw": ({"index": index_of(lambda mean, count, u: mean), "random": True}, "must use u, because random"),
    "nan of an arm without sigma": (
        {"index": staticmethod(lambda mean, count, inv_root, clock, sigma, law, u, parameter: mean + sigma * inv_root)},
        r"got nan for an arm whose law has no sigma; do without sigma, or set needs_sigmas = True",
    ),
    "an old signature": (
        {"index": staticmethod(lambda mean, count, inv_root, clock, sigma, u, parameter: mean)},
        r"must be a static method of \(mean, count, inv_root, clock, sigma, law, u, parameter\)",
    ),
    "a clock that is not defined at first": (
        {"clock": staticmethod(lambda t, parameter: 1 / (t - 1)), "index": index_of(lambda mean, count, u: mean)},
        r"clock\(\) of policy 'broken' must accept all its inputs, got ZeroDivisionError: .* for t=1",
    ),
    "a clock without end": (
        {"clock": staticmethod(lambda t, parameter: float("inf")), "index": index_of(lambda mean, count, u: mean)},
        "must be a finite number in every round, got inf for t=1",
    ),
}


@pytest.mark.parametrize("what", INDICES)
def test_broken_indices_are_refused(what):
    parts, message = INDICES[what]
    with pytest.raises(ContractError, match=message):
        check_policy(policy_of(**parts), compiled=False)


def meddle(self, t, estimates, draw):
    estimates.add(0, 1, 0.0)
    return 0


def last_of_equals(self, t, estimates, draw):
    return max(range(len(estimates)), key=lambda position: (estimates.mean[position], position))


def keep_state(self, t, estimates, draw):
    object.__setattr__(self, "last", t)
    return 0


def by_variance(self, t, estimates, draw):
    return max(range(len(estimates)), key=lambda position: (estimates.variance(position), -position))


CHOICES = {
    "asks for variances": (by_variance, "although choose.. asks for Estimates.variance; set counts_and_sums = False"),
    "beyond the last arm": (lambda self, t, estimates, draw: len(estimates), "the position of an arm, 0 to 0, got 1"),
    "nothing": (lambda self, t, estimates, draw: None, "must return the position of an arm, 0 to 0, got None"),
    "an error": (lambda self, t, estimates, draw: estimates.mean[t], "must answer in every round, got IndexError"),
    "draws for no arm": (lambda self, t, estimates, draw: int(draw(1)), r"got draw\(1\) with 1 arms"),
    "meddles with estimates": (meddle, "must leave the agent's estimates alone"),
    "remembers": (
        lambda self, t, estimates, draw: next(calls) % len(estimates),
        "must choose the same arm when it is given the same",
    ),
    "keeps state": (keep_state, "must not change while it is used, got another 'last'"),
    "the last of equals": (last_of_equals, "must take the first of equal arms, got position 1 of 2"),
    "does not learn": (lambda self, t, estimates, draw: 0, "must learn: .* got 319; drawing arms at random has 200"),
}


@pytest.mark.parametrize("what", CHOICES)
def test_broken_choices_are_refused(what):
    choose, message = CHOICES[what]
    with pytest.raises(ContractError, match=message):
        check_policy(policy_of(choose=choose), compiled=False)


class Recent(Chooser):
    """Takes the arm whose latest rewards were the best: what it keeps decides."""

    def __init__(self, policy, arms):
        super().__init__(policy, arms)
        self.recent = [0.0] * len(arms.names)

    def observe(self, position, reward):
        self.recent[position] += 0.1 * (reward - self.recent[position])

    def choose(self, clock, estimates, draw):
        least = min(estimates.count)
        return estimates.count.index(least) if least < 5 else self.recent.index(max(self.recent))

    @property
    def state(self):
        return self.recent

    @state.setter
    def state(self, value):
        self.recent = value


def choosing_by(made):
    return policy_of(chooser=lambda self, arms: made(self, arms))


def chooser_of(**parts):
    return choosing_by(type("Own", (Recent,), parts))


class Failing(Recent):
    def __init__(self, policy, arms):
        raise RuntimeError("no arms")


class Common(Recent):
    """All choosers keep the same list."""

    kept: ClassVar = [0.0] * 7

    def choose(self, clock, estimates, draw):
        return self.kept.index(max(self.kept[: len(estimates)]))

    def observe(self, position, reward):
        self.kept[position] = reward if position else 0.0


class Forgetting(Recent):
    """What it keeps of the arm that it left is not in its state."""

    last = 0

    def choose(self, clock, estimates, draw):
        self.last = (self.last + 1) % len(estimates)
        return self.last


def counting_is_best(self, position, estimates):
    self.recent[0] += 1.0
    return True


CHOOSERS = {
    "none": (choosing_by(lambda policy, arms: None), "must return a Chooser, got None"),
    "none can be made": (choosing_by(Failing), "chooser.. of .* must answer in every round, got RuntimeError: no arms"),
    "one for all": (
        choosing_by(lambda policy, arms: ONLY),
        "must make a chooser for each agent, got the same one twice",
    ),
    "shared lists": (choosing_by(Common), "two choosers of .* must choose the same for agents that observe"),
    "draws of its own": (
        chooser_of(choose=lambda self, clock, estimates, draw: next(calls) % len(estimates)),
        "two choosers of .* must choose the same for agents that observe",
    ),
    "no state": (
        choosing_by(type("Stateless", (Chooser,), {"choose": lambda *_: 0})),
        "must offer its state: Stateless must offer its state, to be read and put back, got none",
    ),
    "a state that cannot be stored": (
        chooser_of(state=property(lambda self: {1, 2})),
        "must be lists, texts and numbers, got Object of type set",
    ),
    "a state that cannot be put back": (
        chooser_of(state=property(lambda self: self.recent)),
        "must take back its state, got AttributeError.*give `state` a setter",
    ),
    "half a state": (choosing_by(Forgetting), "must continue from a restored state"),
    "no answer to what is best": (chooser_of(is_best=lambda *_: None), "is_best.. of .* must be True or False"),
    "a question that changes it": (chooser_of(is_best=counting_is_best), "must leave the chooser's state alone"),
    "beyond the last arm": (
        chooser_of(choose=lambda self, clock, estimates, draw: len(estimates)),
        "must return the position of an arm, 0 to 0, got 1",
    ),
    "an error later on": (
        chooser_of(choose=lambda self, clock, estimates, draw: [0][clock > 100 and len(estimates) == 5]),
        "choose.. of .* must answer in every round, got IndexError",
    ),
    "an error when it hears": (chooser_of(hear=lambda *_: 1 // 0), "hear.. of .* got ZeroDivisionError"),
    "meddles with estimates": (
        chooser_of(choose=lambda self, clock, estimates, draw: estimates.count.sort() or 0),
        "must leave the agent's estimates alone",
    ),
    "asks for variances": (
        chooser_of(choose=lambda self, clock, estimates, draw: int(estimates.variance(0) > 2.0)),
        "although choose.. asks for Estimates.variance",
    ),
    "does not learn": (chooser_of(choose=lambda *_: 0), "must learn: .* after 1000 rounds"),
}
#: The chooser of a policy that has but one.
ONLY = Recent(None, Arms.gaussian(range(7), 1.0))


@pytest.mark.parametrize("what", CHOOSERS)
def test_broken_choosers_are_refused(what):
    policy, message = CHOOSERS[what]
    with pytest.raises(ContractError, match=message) as error:
        check_policy(policy, compiled=False)
    assert "\n" not in str(error.value)


def emission_of(sends, **flags):
    return type("Broken", (bm.Emission,), {"name": "broken", "sends": staticmethod(sends), **flags})()


EMISSIONS = {
    "a number": (lambda own, sent, best, parameter: 1, {}, "must return True or False, got 1"),
    "never": (lambda own, sent, best, parameter: False, {}, "must be True for some pull, got False for all"),
    "not defined before the first": (
        lambda own, sent, best, parameter: own / sent > 2,
        {},
        "must accept all its inputs, got ZeroDivisionError: .* sent_count=0",
    ),
    "remembers": (lambda own, sent, best, parameter: next(calls) % 7 < 3, {}, "must give the same answer"),
    "asks secretly": (
        lambda own, sent, best, parameter: not best,
        {},
        "must not use is_best, because asks_best is False .* set asks_best = True",
    ),
    "asks in vain": (lambda *_: True, {"asks_best": True}, "must use is_best, because asks_best is True"),
    "no bytes": (lambda *_: True, {"n_bytes": 0}, "n_bytes of emission 'broken' must be at least 1, got 0"),
    "broken bytes": (lambda *_: True, {"n_bytes": 24.0}, "must be an integer in its class, got 24.0"),
    "no flag": (lambda *_: True, {"cumulative": "yes"}, "cumulative of .* must be True or False in its class"),
    "no parameter": (lambda *_: True, {"parameter": None}, "must be a finite number, got None"),
}


@pytest.mark.parametrize("what", EMISSIONS)
def test_broken_emissions_are_refused(what):
    sends, flags, message = EMISSIONS[what]
    with pytest.raises(ContractError, match=message):
        check_emission(emission_of(sends, **flags), compiled=False)


# Rules that go wrong only in a simulation


def patient(then, n_calls=1100):
    """A relay rule that behaves for as long as it is asked by itself, and then does something else."""
    asked = itertools.count()
    return staticmethod(lambda *_: bm.RELAY if (n := next(asked)) < n_calls else then(n))


def test_a_rule_that_fails_in_a_simulation_is_refused():
    with pytest.raises(ContractError, match=r"must run on .*, got RuntimeError: enough"):
        check_protocol(protocol_of(patient(lambda n: (_ for _ in ()).throw(RuntimeError("enough")))), compiled=False)


def test_a_rule_that_gives_another_result_for_the_same_seed_is_refused():
    with pytest.raises(ContractError, match="must give the same result for the same seed, got another"):
        check_protocol(protocol_of(patient(lambda n: bm.STOP if n % 7 < 3 else bm.RELAY)), compiled=False)


# What only an engine could get wrong is shown to be noticed by results that were tampered with

CASE = cases(False)[2]
TRIAL = runs.Trial("protocol 'flooding'", bm.Flooding(3), bm.UCB())


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("duplicate", "sent = delivered"),
        ("lost", "sent = delivered"),
        ("queued", "delivered = absorbed"),
        ("bytes", "bytes = sent"),
    ],
)
def test_books_that_do_not_balance_are_noticed(name, identity):
    result = TRIAL.run(CASE, link_traffic=True, trace=True)
    runs.check_balance(TRIAL, "a path", CASE, result)
    traffic = {**result.traffic, name: result.traffic[name] + 1}
    with pytest.raises(ContractError, match=f"must balance, got .* in {identity}"):
        runs.check_balance(TRIAL, "a path", CASE, dataclasses.replace(result, traffic=traffic))


@pytest.mark.parametrize(
    ("part", "identity"),
    [("transmissions", "= transmissions"), ("trace", "sent = events"), ("link_traffic", "sent = link")],
)
def test_counts_that_do_not_agree_with_the_books_are_noticed(part, identity):
    result = TRIAL.run(CASE, link_traffic=True, trace=True)
    other = {
        "transmissions": result.transmissions + 1,
        "trace": result.trace[1:],
        "link_traffic": result.link_traffic * 2,
    }[part]
    with pytest.raises(ContractError, match=identity):
        runs.check_balance(TRIAL, "a path", CASE, dataclasses.replace(result, **{part: other}))


def test_regret_that_is_not_that_of_the_pulls_is_noticed():
    result = TRIAL.run(CASE, link_traffic=True, trace=True)
    with pytest.raises(ContractError, match=r"regret of .* must be that of its pulls"):
        runs.check_balance(TRIAL, "a path", CASE, dataclasses.replace(result, regret=result.regret + 1))


@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Growth(0.5)], ids=lambda emission: emission.name)
def test_an_observation_that_counts_twice_is_noticed(emission):
    trial = runs.Trial("it", bm.Flooding(3, emission=emission), bm.UCB())
    n_agents, n_arms = CASE.problem.n_agents, CASE.problem.n_arms
    watchers = [runs.Watcher() for _ in range(n_agents)]
    tape = np.ones((runs.HORIZON, n_agents, n_arms))
    result = trial.run(CASE, policy=watchers, rewards=tape, trace=True)
    runs.check_counts(trial, "a path", CASE, result, 1, watchers[1])
    t, counts, totals = watchers[1].log[-1]
    for more_counts, more_totals in ((1, 1.0), (0, 1.0)):
        log = [(t, [counts[0] + more_counts, *counts[1:]], [totals[0] + more_totals, *totals[1:]])]
        with pytest.raises(ContractError, match=r"must know each observation once, got \d+ where it pulled or heard"):
            runs.check_counts(trial, "a path", CASE, result, 1, runs.Watcher(log))


def tampering(when):
    """`simulate`, with one regret changed in the runs that `when` picks."""

    def simulate(problem, protocol, **settings):
        result = bm.simulate(problem, protocol, **settings)
        return dataclasses.replace(result, regret=result.regret + 1) if when(settings) else result

    return simulate


def test_replicates_that_depend_on_their_number_are_noticed(monkeypatch):
    monkeypatch.setattr(runs, "simulate", tampering(lambda settings: settings.get("replicates") == 3))
    with pytest.raises(ContractError, match="must give the same first replicate whatever their number"):
        check_protocol(bm.Flooding(3), compiled=False)


def test_results_that_do_not_come_back_from_a_file_are_noticed(monkeypatch):
    monkeypatch.setattr(bm.Result, "load", lambda path: TRIAL.run(CASE))
    with pytest.raises(ContractError, match="must come back from a file"):
        check_protocol(bm.Flooding(3), compiled=False)


def test_results_that_depend_on_threads_are_noticed(monkeypatch):
    monkeypatch.setattr(runs, "simulate", tampering(lambda settings: settings.get("threads") == 2))
    with pytest.raises(ContractError, match="must not depend on threads, got another regret"):
        check_protocol(bm.Flooding(3))


class TooLarge(bm.Policy):
    """An index whose integers have no end in Python, and 64 bits compiled."""

    name = "too-large"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + (count + 10) ** 30 % 7


def test_engines_that_disagree_are_noticed():
    with pytest.raises(ContractError, match=r"must give the same result on both engines, got another .* 64 bits"):
        check_policy(TooLarge())
    # A rule that gives other numbers compiled stays with the reference.
    problem = bm.Problem.random(bm.networks.ring(4), n_arms=3, per_agent=2, seed=0)
    settings = {"policy": TooLarge(), "horizon": 5, "seed": 0}
    with pytest.raises(bm.errors.UnsupportedError, match=r"'too-large'.*gives other numbers compiled than in Python"):
        bm.simulate(problem, bm.FwA(2), **settings, engine="compiled")
    assert bm.simulate(problem, bm.FwA(2), **settings).engine == "reference"
