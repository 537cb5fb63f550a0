"""What the package ships is searched for in one place."""

import pytest

import banditmesh as bm
from banditmesh.lookup import registry
from banditmesh.protocols.notation import get_class
from banditmesh.settings.problems import parts

TABLES = {"protocol": bm.protocols.AnyProtocol, "policy": bm.Policy, "emission": bm.Emission}


@pytest.mark.parametrize("table", TABLES)
def test_specs_and_checks_know_the_same_classes(table):
    base = TABLES[table]
    found = registry.by_name(base)
    assert {name: part.make for name, part in parts(table).items() if name != "default"} == found
    assert bm.testing.shipped(base) == list(found.values())


@pytest.mark.parametrize(("what", "base"), [("protocols", bm.protocols.AnyProtocol), ("emissions", bm.Emission)])
def test_notation_knows_the_same_classes(what, base):
    assert all(get_class(what, name) is kind for name, kind in registry.by_name(base).items())


def test_classes_come_in_the_order_of_exports():
    order = [getattr(bm.policies, name) for name in bm.policies.__all__]
    places = [order.index(kind) for kind in registry.shipped(bm.Policy)]
    assert places == sorted(places)


def test_bases_are_not_shipped():
    assert bm.Protocol not in registry.shipped(bm.protocols.AnyProtocol)
    assert {bm.NoCooperation, bm.FwA, bm.TreeAggregation} <= {*registry.shipped(bm.protocols.AnyProtocol)}


def test_a_class_without_a_short_name_of_its_own_is_not_shipped(monkeypatch, tmp_path):
    code = """
import banditmesh as bm

class Helper(bm.Policy):
    pass

class Named(Helper):
    name = "named"
"""
    (tmp_path / "policies_of_a_test.py").write_text(code)
    monkeypatch.setattr(bm.policies, "__path__", [*bm.policies.__path__, str(tmp_path)])
    new = registry.by_name(bm.Policy)
    monkeypatch.undo()
    assert {*new} - {*registry.by_name(bm.Policy)} == {"named"}
