"""Every protocol, policy and emission that the package ships keeps to its contract, alone and with every other.

Nothing is listed here: a new file in `policies/` or `protocols/` is found and checked as it is. Algorithms are checked
in test_algorithms.py.
"""

import functools
import inspect
import itertools

import pytest

import banditmesh as bm
from banditmesh.lookup import registry
from banditmesh.sim import support
from banditmesh.testing import Report, check_emission, check_policy, check_protocol, shipped
from banditmesh.testing.cases import cases, cases_for
from banditmesh.testing.runs import Trial, check_engines

#: What a parameter without a default is given, by its name or else by how it is annotated.
ARGUMENTS = {"ttl": 3, "int": 2, "float": 0.5, "str": "", "bool": True}


def make(kind):
    """An instance with the defaults, and something sensible where there is none."""
    needed = {
        name: one.annotation
        for name, one in inspect.signature(kind).parameters.items()
        if one.default is inspect.Parameter.empty
    }
    return kind(**{name: ARGUMENTS.get(name, ARGUMENTS.get(str(annotation))) for name, annotation in needed.items()})


def of_protocols(base):
    """The classes of protocols/; names of published ones are tested in test_named.py."""
    return [kind for kind in shipped(base) if not registry.is_algorithm(kind)]


PROTOCOLS = [make(kind) for kind in of_protocols(bm.protocols.AnyProtocol)]
POLICIES = [make(kind) for kind in shipped(bm.Policy)]
EMISSIONS = [make(kind) for kind in shipped(bm.Emission)]
#: What protocols have unless they are given another. With it the contracts of protocols and policies compare engines.
USUAL = bm.EveryPull()
#: Protocols and emissions are also compared on one agent and without links.
LINKED = cases(False)[2:]


def by_name(value):
    return value.name


@functools.cache
def compiled_parts():
    """What the compiled engine runs by both rule sets on any network, with Gaussian and Bernoulli arms."""
    parts = {("protocol", protocol.name) for protocol in PROTOCOLS}
    for row in support.support_table():
        if row["rewards"] in ("continuous", "Bernoulli"):
            parts -= {
                ("protocol", protocol.name) for protocol in PROTOCOLS if row[protocol.name] not in ("compiled", "-")
            }
    for row in support.parts_table():
        if {value for column, value in row.items() if column not in ("part", "name")} == {"compiled"}:
            parts.add((row["part"], row["name"]))
    return parts


def assert_promises_kept(report, protocol, policy, n_problems):
    """None of what `support` promises was refused, and the engines were compared on every problem."""
    used = {("protocol", protocol.name), ("emission", protocol.emission.name), ("policy", policy.name)}
    if used | {("fault", name) for name in ("loss", "outages", "outages, no memory")} <= compiled_parts():
        # By the published rules, agents that forget their own sums send the same id twice: one kind of run of ten.
        known = protocol.emission.cumulative and [reason for reason in report.reference_only if "forget" in reason]
        assert report.reference_only == (known or [])
        assert report.n_pairs >= (9 if known else 10) * n_problems


def compare_engines(protocol, policy, problems):
    report = Report(f"{protocol.name} with {protocol.emission.name} and {policy.name}")
    works_on = tuple(case for case in cases_for(protocol, False) if case in problems)
    check_engines(Trial(report.subject, protocol, policy), report, works_on)
    assert_promises_kept(report, protocol, policy, len(works_on))
    return report


def test_both_engines_run_what_they_must():
    promised = {
        "protocol": ("none", "irs", "gossip", "probabilistic", "fwa", "flooding", "centralised", "tree"),
        "emission": ("every-pull", "growth", "contested"),
        "policy": ("ucb", "klucb", "thompson"),
        "fault": ("loss", "outages", "outages, no memory"),
    }
    assert {(part, name) for part, names in promised.items() for name in names} <= compiled_parts()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=by_name)
def test_protocol_keeps_to_its_contract(protocol):
    report = check_protocol(protocol)
    assert report.n_pairs > 0
    assert_promises_kept(report, protocol, bm.UCB(), len(cases_for(protocol, False)))


# Kernels of further policies take half a minute to compile; test_bounds.py compares both engines on some of them.
@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=[pytest.mark.slow] * isinstance(policy, bm.KLUCB | bm.ThompsonSampling))
        for policy in POLICIES
    ],
    ids=by_name,
)
def test_policy_keeps_to_its_contract(policy):
    # With FwA, and with the sums of Growth. Other emissions follow below.
    report = check_policy(policy)
    assert report.n_pairs > 0 or type(policy).choose is not bm.Policy.choose


@pytest.mark.parametrize(
    "emission",
    # The example of `check_emission` checks the usual one.
    [pytest.param(one, marks=[pytest.mark.slow] * (one == USUAL)) for one in EMISSIONS],
    ids=by_name,
)
def test_emission_keeps_to_its_contract(emission):
    # The engines are compared below, with every relay. One report with them is made in docs/testing.md.
    assert "balances its books" in check_emission(emission, compiled=False).checks


@pytest.mark.parametrize("emission", [one for one in EMISSIONS if one != USUAL], ids=by_name)
@pytest.mark.parametrize("kind", of_protocols(bm.Protocol), ids=lambda kind: kind.name)
def test_engines_agree_on_every_relay_with_every_emission(kind, emission):
    protocol = make(kind).with_emission(emission)
    assert compare_engines(protocol, bm.UCB(), cases(False)).n_pairs > 0


# Contested has kernels of its own for every policy, and so have further policies by the published rules: no other quick
# test needs these.
SLOW = {(one.name, bm.Contested.name) for one in POLICIES}
SLOW |= {(kind.name, bm.Growth.name) for kind in (bm.KLUCB, bm.ThompsonSampling)}


@pytest.mark.parametrize(
    "policy, emission",
    [
        pytest.param(
            policy,
            emission,
            id=f"{policy.name}-{emission.name}",
            marks=[pytest.mark.slow] if (policy.name, emission.name) in SLOW else [],
        )
        for policy in POLICIES
        if policy != bm.UCB()
        for emission in EMISSIONS
        if emission != USUAL
    ],
)
def test_engines_agree_on_every_policy_with_every_emission(policy, emission):
    compare_engines(bm.FwA(2, emission=emission), policy, LINKED)


# Finding them


@pytest.mark.parametrize("base", [bm.Protocol, bm.Policy, bm.Emission])
def test_everything_public_is_found(base):
    public = [getattr(bm, name) for name in bm.__all__]
    public = {kind for kind in public if isinstance(kind, type) and issubclass(kind, base) and kind is not base}
    assert public == set(of_protocols(base))


@pytest.mark.parametrize("folder", ["policies", "protocols", "algorithms"])
def test_a_new_file_is_found(folder, monkeypatch, tmp_path):
    base = {"policies": bm.Policy, "protocols": bm.Protocol, "algorithms": bm.algorithms.Algorithm}[folder]
    module, kind = f"brand_new_{folder}", f"BrandNew{base.__name__}"
    code = f"import {base.__module__}\n\n\nclass {kind}({base.__module__}.{base.__name__}):\n    name = 'brand-new'\n"
    (tmp_path / f"{module}.py").write_text(code)
    package = getattr(bm, folder)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    assert kind in {found.__name__ for found in shipped(base)}
    monkeypatch.undo()
    assert kind not in {found.__name__ for found in shipped(base)}


def test_names_are_different_everywhere():
    for values in (PROTOCOLS, POLICIES, EMISSIONS):
        assert all(one.name != other.name for one, other in itertools.combinations(values, 2))
