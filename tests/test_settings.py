"""One reader of tables of parts, for specs, node.toml, the page and the command line; what is wrong is a value."""

import pickle
import re
import tomllib
from pathlib import Path

import pytest

import banditmesh as bm
from banditmesh.errors import ConfigError, InputError, SpecError, StudyError
from banditmesh.live import config
from banditmesh.settings import toml_text
from banditmesh.settings.parts import GOES_INTO, NAME_KEYS, build, parts, tables_of
from banditmesh.studies.reading import spec_from_tables
from banditmesh.verbs.cases import read_policy
from banditmesh.web.desk import Desk

SMALL = {"network": {"name": "ring", "n": 5}, "arms": {"n_arms": 4, "per_agent": 2}, "horizon": 5}
NODE = 'mesh = "m"\nnode = "a"\nplain = true\n{table}\n[[arms]]\nname = "red"\n'
SOURCES = Path(bm.__file__).parent


def error_of(call):
    with pytest.raises(InputError) as caught:
        call()
    return caught.value


def test_error_has_key_line_and_remedy():
    error = error_of(lambda: bm.parse_spec("horizon = 5\n\n[protocol]\nname = 'fwa'\nttl = 0\n", source="my.toml"))
    assert isinstance(error, SpecError)
    assert (error.key, error.line, error.source) == ("protocol.ttl", 5, "my.toml")
    assert str(error) == f"my.toml, line 5: protocol.ttl {error.what}"
    error = error_of(lambda: bm.parse_spec("replicates = 10", max_runs=2))
    assert (error.key, error.line) == ("replicates", 1)
    assert error.remedy.startswith("use fewer, or raise the limit")
    assert str(error).endswith(error.remedy)


@pytest.mark.parametrize(
    "error",
    [
        InputError("must be at least 1, got 0", key="ttl", remedy="take more"),
        InputError("must be at least 1, got 0", key="ttl").below("protocol"),
        InputError("must be at least 1, got 0", key="ttl").found_in("sweep.protocol"),
        SpecError("must be 1", key="version", source="a.toml", line=3),
        ConfigError("one", "two"),
        StudyError("it is damaged", remedy="run it again"),
    ],
)
def test_errors_cross_processes_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


@pytest.mark.parametrize(
    "table",
    [
        {"name": "ucb", "alpha": 0},
        {"name": "ucb", "alpha": "high"},
        {"name": "ucb", "alhpa": 1.0},
        {"name": "UCB"},
        {"alpha": 1.0},
    ],
    ids=str,
)
def test_a_wrong_policy_is_one_mistake_worded_at_each_edge(table, tmp_path):
    error = error_of(lambda: build("policy", {"policy": table}))
    top, _, key = error.key.partition(".")
    assert top == "policy"
    path = tmp_path / "node.toml"
    path.write_text(NODE.format(table=toml_text.write({"policy": table})))
    assert error_of(lambda: config.load(path)).problems == (f"{path}: [policy]: {key} {error.what}",)
    if "name" in table:  # a spec has a default
        assert error_of(lambda: spec_from_tables({**SMALL, "policy": table})).key == error.key
    if table.get("name") == "UCB":
        assert str(error_of(lambda: spec_from_tables({**SMALL, "policy": table}))) == str(error)
        assert str(error_of(lambda: read_policy("UCB"))) == f"--policy {error.what}"


def test_settings_as_values_and_as_text_are_the_same_study():
    tables = {**SMALL, "policy": "klucb", "protocol": "fwa(2)+growth(0.5)", "sweep": {"network": {"n": [5, 6]}}}
    before = repr(tables)
    by_value = spec_from_tables(tables, ["horizon=7"])
    assert by_value == bm.parse_spec(toml_text.write({**tables, "horizon": 7}))
    assert by_value.digest == bm.parse_spec(toml_text.write({**tables, "horizon": 7})).digest
    assert repr(tables) == before
    with pytest.raises(SpecError, match="has no effect: the sweep decides"):
        spec_from_tables(tables, ["network.n=8"])
    assert repr(tables) == before


def test_error_of_values_has_no_line_and_no_source():
    error = error_of(lambda: spec_from_tables({**SMALL, "horizon": 0}))
    assert (error.key, error.line, error.source) == ("horizon", None, "")
    assert str(error).startswith("horizon must be an integer of at least 1")


def test_the_page_says_it_in_its_own_words(tmp_path):
    chosen = {"horizon": "5", "network.name": "ring", "network.n": "5", "arms.n_arms": "4", "arms.per_agent": "2"}
    wrong = {"protocols": "fwa(0)", "network.n": "2", "arms.per_agent": "9"}
    words = {}
    for key, text in wrong.items():
        given = {**chosen, "protocols": "fwa(2)", key: text}
        words[key] = str(error_of(lambda given=given: Desk(print).simulate(given, tmp_path)))
    assert words["protocols"].startswith("protocols: protocol.ttl must be an integer of at least 1")
    assert words["network.n"].startswith("network.n must be an integer of at least 3")
    assert words["arms.per_agent"] == "arms.per_agent must be at most n_arms = 4, got 9"


@pytest.mark.parametrize("table", NAME_KEYS)
def test_every_table_names_parts(table):
    assert parts(table)
    with pytest.raises(InputError, match="must be one of") as caught:
        build(table, tables_of(table, "no-such-part"))
    assert caught.value.key == f"{table}.{NAME_KEYS[table]}"


def test_a_part_that_goes_into_another_is_no_parameter_of_it():
    for inner, outer in GOES_INTO.items():
        assert not any(inner in part.parameters for part in parts(outer).values())


@pytest.mark.parametrize(
    "value",
    [0, -7, 2**62, 1.5, 1e16, float("inf"), True, "", 'a"b\\c', "line\nbreak", "\x7f\x00", "🙂", [1, 2.5], ["a", "b"]],
)
def test_values_are_written_as_they_are_read(value):
    tables = {"a": value, "b": {"c": value, "d": {"e": value}}, "f": {}}
    assert tomllib.loads(toml_text.write(tables)) == tables


def test_no_message_is_taken_apart():
    """But by the adapters of parsers whose errors have no fields."""
    adapters = {"settings/toml_text.py", "networks/readers/gml.py", "sim/compiled/kernels/identity.py"}
    parsing = re.compile(
        r"str\((?:error|broken)\)\.(?:partition|rpartition|removeprefix|removesuffix|split\([^)])"
        r"|re\.\w+\([^\n]*\bstr\(error\)|\bin str\(error\)|message\.partition"
    )
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if parsing.search(path.read_text("utf-8"))
    }
    assert found <= adapters
