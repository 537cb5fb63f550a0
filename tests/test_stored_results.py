"""What the code gives is what it gave when `stored_results.json` was written; see `stored_results.py`."""

import dataclasses

import numpy as np
import pytest

import banditmesh as bm
import stored_results
from stored_results import COMPILED, EXPLAINED, FACTORS, Explained, covered, differences, name, pairs, run, run_compiled

CASES = stored_results.read()
with_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["seed"]))


@with_cases
def test_reference_gives_what_is_stored(case):
    assert differences(case, run(case, "reference")) == []


#: Policies that have kernels of their own, one for each kind of delivery, which take long to compile.
FURTHER = ("klucb", "klucb(c=3)", "thompson")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] * (case["policy"] in FURTHER), id=str(case["seed"]))
        for case in CASES
    ],
)
def test_compiled_gives_what_is_stored_wherever_it_did(case):
    result = run_compiled(case)
    assert (result is not None) >= case["compiled"], f"{name(case)}: no longer runs compiled"
    assert result is None or differences(case, result) == []


def test_any_two_levels_meet_in_a_stored_case():
    assert {*pairs(FACTORS), *pairs(COMPILED)} <= {pair for case in CASES for pair in covered(case)}


def test_nearly_any_two_levels_that_run_compiled_meet_in_a_case_that_does():
    compiled = {pair for case in CASES if case["compiled"] for pair in covered(case)}
    wanted = set(pairs(COMPILED))
    # The rest met in cases that a third level keeps from running compiled.
    assert len(wanted & compiled) > 0.95 * len(wanted)


def test_every_explanation_is_needed():
    for one in EXPLAINED:
        others = [other for other in EXPLAINED if other is not one]
        explained = [case for case in CASES if one.applies(case)]
        assert any(differences(case, run(case, "reference"), others) for case in explained), one.reason


# The net itself: it must catch what differs, and name it.


def traced_case():
    as_stored = [case for case in CASES if not any(one.applies(case) for one in EXPLAINED)]
    return next(case for case in as_stored if case["trace"] and "trace" in case["stored"] and case["link_traffic"])


def fields_that_differ(case, result, explained=()):
    lines = differences(case, result, explained)
    assert all(line.startswith(name(case) + ": ") for line in lines)
    return {line.removeprefix(name(case) + ": ").split(" ")[0] for line in lines}


def changed(array):
    other = np.array(array)
    other.flat[-1] += 1
    return other


@pytest.mark.parametrize(
    ("attribute", "fields"),
    [
        ("regret", {"regret", "mean_regret"}),
        ("transmissions", {"messages", "all_messages"}),
        ("agent_regret", {"agent_regret"}),
        ("arm_pulls", {"pulls"}),
        ("link_traffic", {"link_traffic"}),
    ],
)
def test_a_changed_number_is_named(attribute, fields):
    case = traced_case()
    result = run(case, "reference")
    other = dataclasses.replace(result, **{attribute: changed(getattr(result, attribute))})
    assert fields_that_differ(case, result) == set()
    assert fields_that_differ(case, other) == fields


def test_changed_traffic_is_named():
    case = traced_case()
    result = run(case, "reference")
    other = dataclasses.replace(result, traffic={**result.traffic, "learned": result.traffic["learned"] + 1})
    assert fields_that_differ(case, other) == {"traffic.learned"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("origin", "?"), ("sequence", -1), ("reward", 99.0), ("fate", "?"), ("learned", "?"), ("arrival", -1)],
)
def test_a_changed_field_of_the_event_log_is_the_only_one_named(field, value):
    case = traced_case()
    result = run(case, "reference")
    other = dataclasses.replace(result, trace=[*result.trace[:-1], result.trace[-1]._replace(**{field: value})])
    assert fields_that_differ(case, other) == {f"trace.{field}"}


def test_an_event_log_in_another_order_differs_in_its_order_alone():
    case = traced_case()
    result = run(case, "reference")
    assert fields_that_differ(case, dataclasses.replace(result, trace=result.trace[::-1])) == {"trace.order"}


def test_a_lost_event_log_is_named():
    case = traced_case()
    assert "trace.events" in fields_that_differ(case, run(case | {"trace": False}, "reference"))


def test_floats_may_differ_by_rounding_alone():
    case = traced_case()
    result = run(case, "reference")
    assert fields_that_differ(case, dataclasses.replace(result, regret=result.regret * (1 + 1e-13))) == set()
    more = dataclasses.replace(result, regret=result.regret * (1 + 1e-11))
    assert fields_that_differ(case, more) == {"regret", "mean_regret"}


def test_an_explanation_exempts_its_fields_in_its_cases():
    case = traced_case()
    result = run(case, "reference")
    other = dataclasses.replace(result, regret=result.regret + 1, arm_pulls=changed(result.arm_pulls))
    here = Explained("*regret", lambda one: one["seed"] == case["seed"], "a test")
    elsewhere = Explained("*", lambda one: one["seed"] != case["seed"], "a test")
    assert fields_that_differ(case, other, (here, elsewhere)) == {"pulls"}


def test_every_kind_of_traffic_is_stored():
    result = bm.simulate(bm.Problem.paper("er", seed=0), bm.IRS(), horizon=1, seed=0)
    assert all(set(case["stored"]["traffic"]) == set(result.traffic) for case in CASES)
