"""Every protocol, policy and emission that the package ships keeps to its contract, alone and with every other.

Nothing is listed here: a new file in `policies/` or `protocols/` is found and checked as it is.
"""

import inspect
import itertools

import pytest

import banditmesh as bm
from banditmesh.testing import Report, check_emission, check_policy, check_protocol, shipped
from banditmesh.testing.cases import cases
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


PROTOCOLS = [make(kind) for kind in shipped(bm.Protocol)]
POLICIES = [make(kind) for kind in shipped(bm.Policy)]
EMISSIONS = [make(kind) for kind in shipped(bm.Emission)]


def by_name(value):
    return value.name


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=by_name)
def test_protocol_keeps_to_its_contract(protocol):
    assert check_protocol(protocol).n_pairs > 0


@pytest.mark.parametrize("policy", POLICIES, ids=by_name)
def test_policy_keeps_to_its_contract(policy):
    report = check_policy(policy)
    assert report.n_pairs > 0 or type(policy).choose is not bm.Policy.choose


@pytest.mark.parametrize("emission", EMISSIONS, ids=by_name)
def test_emission_keeps_to_its_contract(emission):
    report = check_emission(emission)
    assert report.n_pairs > 0 or report.reference_only


@pytest.mark.parametrize("emission", EMISSIONS, ids=by_name)
@pytest.mark.parametrize("kind", shipped(bm.Protocol), ids=lambda kind: kind.name)
def test_engines_agree_on_every_relay_with_every_emission(kind, emission):
    plain = make(kind)
    arguments = {name: getattr(plain, name) for name in inspect.signature(kind).parameters if name != "emission"}
    report = Report(f"{plain.name} with {emission.name}")
    check_engines(Trial(report.subject, kind(**arguments, emission=emission), bm.UCB()), report, cases(False))
    assert report.n_pairs > 0 or report.reference_only


@pytest.mark.parametrize("emission", EMISSIONS, ids=by_name)
@pytest.mark.parametrize("policy", POLICIES, ids=by_name)
def test_engines_agree_on_every_policy_with_every_emission(policy, emission):
    report = Report(f"{policy.name} with {emission.name}")
    check_engines(Trial(report.subject, bm.FwA(2, emission=emission), policy), report, cases(False))
    assert report.n_pairs > 0 or report.reference_only


# Finding them


@pytest.mark.parametrize("base", [bm.Protocol, bm.Policy, bm.Emission])
def test_everything_public_is_found(base):
    public = [getattr(bm, name) for name in bm.__all__]
    public = {kind for kind in public if isinstance(kind, type) and issubclass(kind, base) and kind is not base}
    assert public == set(shipped(base))


@pytest.mark.parametrize("folder", ["policies", "protocols"])
def test_a_new_file_is_found(folder, monkeypatch, tmp_path):
    base = {"policies": bm.Policy, "protocols": bm.Protocol}[folder]
    module, kind = f"brand_new_{folder}", f"BrandNew{base.__name__}"
    code = f"import banditmesh as bm\n\n\nclass {kind}(bm.{base.__name__}):\n    name = 'brand-new'\n"
    (tmp_path / f"{module}.py").write_text(code)
    package = getattr(bm, folder)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    assert kind in {found.__name__ for found in shipped(base)}
    monkeypatch.undo()
    assert kind not in {found.__name__ for found in shipped(base)}


def test_names_are_different_everywhere():
    for values in (PROTOCOLS, POLICIES, EMISSIONS):
        assert all(one.name != other.name for one, other in itertools.combinations(values, 2))
