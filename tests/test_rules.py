import dataclasses

import numpy as np
import pytest

from banditmesh import checks
from banditmesh.errors import InputError
from banditmesh.rules import PUBLISHED, SOUND, get_rules


def test_rule_sets_differ_in_six_points():
    sound, published = dataclasses.asdict(SOUND), dataclasses.asdict(PUBLISHED)
    assert [name for name in sound if sound[name] == published[name]] == []
    assert len(sound) == 1 + 6


def test_rule_sets_are_found_by_name():
    assert get_rules("sound") is SOUND
    assert get_rules("published") is PUBLISHED
    with pytest.raises(InputError, match="rules must be one of sound, published; got 'Sound'"):
        get_rules("Sound")


def test_checks_return_plain_python_values():
    for value, kind in (
        (checks.integer("n", np.int32(3), at_least=1), int),
        (checks.real("x", np.float32(0.5)), float),
        (checks.positive("x", np.int64(2)), float),
        (checks.probability("p", 1), float),
    ):
        assert type(value) is kind


@pytest.mark.parametrize("check", [checks.real, checks.positive, checks.probability], ids=lambda check: check.__name__)
@pytest.mark.parametrize("value", [True, None, "1", float("nan"), float("inf"), -float("inf"), 1j, [1]], ids=repr)
def test_checks_refuse_what_is_no_number(check, value):
    with pytest.raises(InputError, match="x must be a"):
        check("x", value)


def test_ends_of_intervals():
    assert checks.integer("n", 1, at_least=1, at_most=2) == 1
    assert checks.integer("n", 2, at_least=1, at_most=2) == 2
    with pytest.raises(InputError, match="n must be an integer of at least 1 and at most 2, got 3"):
        checks.integer("n", 3, at_least=1, at_most=2)
    assert (checks.probability("p", 0), checks.probability("p", 1.0)) == (0.0, 1.0)
    with pytest.raises(InputError, match="x must be a positive number, got 0"):
        checks.positive("x", 0)
