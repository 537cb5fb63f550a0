"""How a study grows: by replicates, and by values of what it sweeps.

Rules kept here: each time that a study grows, a *stage* is added, and the runs of a stage are those that no earlier one
has. Points and runs are numbered stage by stage, so that whatever was computed keeps its numbers; within a stage the
order is that of the points, and then of replicates. A spec with more of one thing and less of another is another study,
as is one that differs in anything else, or sweeps something that was not swept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import StudyError
from ..lookup import own
from .grid import Point, value_as_text
from .spec import Settings, Spec

#: The only changes of a column's type with which a study can grow.
_WIDER: Final = {("int64", "double")}


class Asked(Enum):
    """What a spec asks for, compared with the study that a folder holds."""

    SAME = "same"
    MORE = "more"
    LESS = "less"


def compare(stored: Spec, asked: Spec) -> Asked:
    """Whether a spec asks for what a study has, for more or for less of it; `StudyError` if it is another study.

    Examples
    --------
    >>> from banditmesh import parse_spec
    >>> two, three = (parse_spec(f"replicates = {n}") for n in (2, 3))
    >>> compare(two, three), compare(three, two)
    (<Asked.MORE: 'more'>, <Asked.LESS: 'less'>)
    """
    theirs, ours = stored.to_json(), asked.to_json()
    for key, value in ours.items():
        if key not in ("replicates", "sweep") and value != theirs[key]:
            raise _another(key, theirs[key], value)
    for key in [*ours["sweep"], *theirs["sweep"]]:
        if (key in ours["sweep"]) != (key in theirs["sweep"]):
            raise StudyError(
                f"sweep.{key} differs; a study grows by replicates and by values of what it sweeps already"
            )
    more, less = _differences(theirs, ours)
    if more and less:
        what = f"more of {more[0]} but less of {less[0]}"
        raise StudyError(f"{less[0]} differs; it has {what}, keep what is there to make it grow")
    for name, kind in asked.columns.items():
        if name not in stored.columns:
            raise StudyError("arms.rewards differs; a study whose logs are not replayed cannot grow by one that is")
        if kind != stored.columns[name] and (stored.columns[name], kind) not in _WIDER and more:
            raise StudyError(f"sweep.{name} differs; its values are no longer of one type")
    return Asked.MORE if more else Asked.LESS if less else Asked.SAME


def points(stages: Sequence[Spec]) -> Iterator[tuple[int, Point]]:
    """Every point of a study that has grown, each with the stage in which it came."""
    number = 0
    for stage, spec in enumerate(stages):
        earlier = _values(stages[stage - 1]) if stage else {}
        for point in spec.points():
            if stage and all(value_as_text(value) in earlier[key] for key, value in point.chosen.items()):
                continue
            yield stage, replace(point, number=number)
            number += 1


def work_of(stages: Sequence[Spec], stage: int) -> Iterator[tuple[Point, range]]:
    """The runs of a stage: points, each with its replicates that no earlier stage has."""
    upto = stages[stage].settings.replicates
    before = stages[stage - 1].settings.replicates if stage else 0
    for came, point in points(stages[: stage + 1]):
        replicates = range(0 if came == stage else before, upto)
        if replicates:
            yield point, replicates


def stored_spec(stage: Mapping[str, Any], folder: Path) -> Spec:
    """The spec of a stage as its manifest keeps it; files lie where the folder says."""
    settings = msgspec.convert({**stage["spec"], "sweep": {}}, Settings)
    return Spec(settings, stage["spec"]["sweep"], folder)


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Of what there is more in our spec than in theirs, and of what less."""
    n_theirs, n_ours = theirs["replicates"], ours["replicates"]
    more, less = ["replicates"] * (n_ours > n_theirs), ["replicates"] * (n_ours < n_theirs)
    for key, values in ours["sweep"].items():
        has, had = ({value_as_text(value) for value in some} for some in (values, theirs["sweep"][key]))
        more += [f"sweep.{key}"] * bool(has - had)
        less += [f"sweep.{key}"] * bool(had - has)
        if own.plain(" ".join(sorted(has - had))) == own.plain(" ".join(sorted(had - has))) and has != had:
            raise _another(f"sweep.{key}", values, theirs["sweep"][key])
    return more, less


def _another(key: str, theirs: Any, ours: Any) -> StudyError:
    if own.plain(str(theirs)) == own.plain(str(ours)) and theirs != ours:
        return StudyError(f"the source of {key} has changed since it began")
    return StudyError(f"{key} differs")


def _values(spec: Spec) -> dict[str, set[str]]:
    return {key: {value_as_text(value) for value in values} for key, values in spec.grid.items()}
