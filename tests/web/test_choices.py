"""What is chosen on the page: the same as a spec, as a link and as lines of Python; and files that were handed over."""

import ast
import contextlib
import re
import tomllib
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.studies.case import case_of
from banditmesh.web import uploads
from banditmesh.web.choices import DEFAULTS, from_query, keys_of, misfit, to_python, to_query, to_toml
from banditmesh.web.downloads import node_toml, spec_of
from banditmesh.web.uploads import Uploads

SMALL = {"horizon": "12", "replicates": "2", "arms.law": "gaussian", "arms.n_arms": "4", "arms.per_agent": "2"}
RING = {"network.name": "ring", "network.n": "6"}
CASES = [
    {},
    {"network.name": "ring", "network.n": "7", "seed": "3", "protocols": "irs, gossip(2, fanout=2), fwa(2)+growth(1)"},
    {"network.name": "er", "network.n": "9", "network.p": ".5", "policy.name": "klucb", "policy.c": "1"},
    {"network.name": "sbm", "network.sizes": "4, 4", "network.p_in": "1.0", "network.p_out": "0.3"},
    {"network.name": "path", "network.n": "5", "arms.law": "bernoulli", "rules": "published"},
    {"network.name": "path", "network.n": "5", "arms.sigma": "0.5", "arms.seed": "4"},
    {"network.name": "path", "network.n": "5", "arms.means": "0.1, 0.5, 0.9", "arms.n_arms": ""},
    {"network.name": "path", "network.n": "005", "horizon": "012", "replicates": "+2", "seed": "007"},
    {**RING, "memory.name": "discount", "memory.gamma": "0.9", "policy.alpha": "0.5", "policy.first_pulls": "unknown"},
    {**RING, "memory.name": "window", "memory.rounds": "9", "policy.name": "thompson", "arms.change": "switching(0.1)"},
    {**RING, "policies": "ucb(0.5), ucb(0.5)+discount(0.9)", "policy.alpha": "2", "memory.name": "default"},
    {**RING, "dynamics.name": "edge-markovian", "dynamics.p": "0.2", "dynamics.q": "0.2"},
    {**RING, "faults.loss": "0.2", "faults.outages.down": "0.1", "faults.outages.up": "0.5"},
]  # fmt: skip


@pytest.mark.parametrize("chosen", CASES)
def test_spec_link_and_python_say_the_same(chosen):
    choices = {**DEFAULTS, **SMALL, **chosen}
    choices = {key: text for key, text in choices.items() if text}
    query = dict(parse_qsl(to_query(choices), keep_blank_values=True))
    assert misfit(query) == ""
    again = from_query(query)
    assert to_toml(again).split() != []
    case, same = (case_of(bm.parse_spec(to_toml(one))) for one in (choices, again))
    assert same.settings == case.settings
    assert same.protocols == case.protocols
    assert repr(same.problem) == repr(case.problem)
    settings = {**case.settings, "engine": "reference"}
    scope = {}
    code = to_python(choices).replace("print(comparison)", "")
    exec(re.sub(r"^\)$", "    engine='reference',\n)", code, flags=re.MULTILINE), scope)
    expected = bm.compare(case.problem, case.protocols, **settings)
    assert scope["comparison"].results == expected.results


@pytest.mark.parametrize("horizon", ["20", "5000"])
def test_lines_of_python_give_a_frontier_only_what_it_takes(monkeypatch, horizon):
    taken = {}
    monkeypatch.setattr(
        bm, "frontier", lambda problem, **settings: taken.update(settings) or SimpleNamespace(advice="")
    )
    exec(to_python({**DEFAULTS, **SMALL, **RING, "horizon": horizon, "protocols": "irs"}, {"ttls": "[2]"}), {})
    assert (taken["protocols"], taken["ttls"], taken["horizon"]) == (["irs"], [2], int(horizon))
    assert "record_every" not in taken


@pytest.mark.parametrize(
    "key", ["horizon", "seed", "rules", "arms.n_arms", "arms.per_agent", "arms.sigma", "arms.means", "network.name"]
)
def test_lines_of_python_run_nothing_that_a_field_says(key, tmp_path):
    text = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    text = f"ring({text})" if key == "network.name" else text
    with contextlib.suppress(Exception):
        exec(to_python({**DEFAULTS, **SMALL, **RING, key: text}), {})
    assert not (tmp_path / "ran").exists()


def test_what_goes_without_saying_is_not_in_the_link():
    assert to_query(DEFAULTS) == ""
    assert from_query({}) == DEFAULTS
    assert to_query({**DEFAULTS, "horizon": "1000", "faults.loss": ""}) == ""


@pytest.mark.parametrize(
    "text",
    [
        "007",
        "1.",
        "-.5",
        "+3",
        "1e400",
        "\x7f",
        'a"\\b\n',
        "9" * 5000,
        "٣",
        "0x10",
        "1_0",
        "[",
        "1,",
        "🙂",
        "\U0010ffff",
    ],
)
def test_whatever_is_typed_makes_a_spec_that_can_be_read(text):
    tables = tomllib.loads(to_toml({**DEFAULTS, "faults.loss": text, "seed": text, "network.name": text}))
    assert tables["network"]["name"] == text.strip()
    assert tomllib.loads(to_toml({**DEFAULTS, "protocols": text}))["sweep"]["protocol"][0] == text.strip().rstrip(",")
    chosen = {**DEFAULTS, "arms.law": "data", "arms.unmatched": text}
    assert repr(text.strip()) in ast.unparse(ast.parse(to_python(chosen)))


def test_link_cannot_slip_lines_into_the_spec():
    lines = "network]\npath = '/etc/passwd'\n[network.x"
    assert from_query({lines: "1", "faults.loss": "0.5"}) == {**DEFAULTS, "faults.loss": "0.5"}
    assert "is not a field of this page" in misfit({lines: "1"})
    assert "\n" not in misfit({lines: "1"})


@pytest.mark.parametrize(
    "said",
    [
        {"policy.alpha": "1"},
        {"arms.n_arms": "6", "arms.per_agent": "3"},
        {"arms.law": "bernoulli"},
        {"arms.seed": "4"},
        {"dynamics.name": "churn", "dynamics.leave": "0.1", "dynamics.join": "0.2"},
        {"faults.corruption.kind": "zero", "faults.corruption.probability": "0.5"},
    ],
)
def test_link_says_what_differs_from_what_the_fields_show(said):
    assert from_query(said) == {**DEFAULTS, **said}
    assert misfit(said) == ""
    assert dict(parse_qsl(to_query(from_query(said)))) == said


def test_link_that_names_another_part_has_the_defaults_of_that_part_alone():
    assert from_query({"arms.law": "data"}).keys() & set(keys_of("arms", DEFAULTS)) == {"arms.law"}
    assert from_query({"network.name": "ring"})["arms.n_arms"] == "50"


def test_field_that_was_emptied_is_empty_again():
    chosen = {**DEFAULTS, "horizon": "", "arms.n_arms": ""}
    assert to_query(chosen) == "arms.n_arms=&horizon="
    assert from_query(dict(parse_qsl(to_query(chosen), keep_blank_values=True))) == chosen


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            {"policy.name": "klucb", "policy.alpha": "1"},
            "policy.alpha does not fit klucb, which takes c, first_pulls; ",
        ),
        ({"policy.name": "UCB"}, "policy.name must be one of klucb, .* did you mean 'ucb'"),
        ({"arms.law": "data", "arms.n_arms": "6"}, "arms.n_arms does not fit data, which takes catalogue, "),
        ({"network.n": "6", "network.name": "grid"}, "network.n does not fit grid, which takes rows, columns;"),
        (
            {"memory.name": "window", "memory.gamma": "1"},
            "memory.gamma does not fit window, which takes rounds, blocks; ",
        ),
        ({"network.name": "file", "network.max_bytes": "1"}, "network.max_bytes does not fit file, which takes "),
        ({"horizn": "6"}, "'horizn' is not a field of this page; did you mean 'horizon'"),
        ({"sweep.protocol": "6"}, "'sweep.protocol' is not a field of this page"),
        ({"faults.los": "6"}, "'faults.los' is not a field of this page; did you mean 'faults.loss'"),
        ({"rules": "mine"}, "rules must be one of sound, published; got 'mine'"),
        ({"policy.name": "mine:Mine"}, "policy.name must be one of"),
    ],
)
def test_what_has_no_field_is_refused_in_a_line(said, line):
    assert re.match(line, misfit(said))
    assert set(from_query(said)) <= {*DEFAULTS, *said}


def test_spec_to_take_away_names_files_by_their_own_names_and_node_lines_the_protocol():
    chosen = {**DEFAULTS, "network.name": "file", "network.path": "0123456789abcdef/links.txt"}
    assert 'path = "links.txt"' in spec_of(chosen)
    assert node_toml("fwa", {**DEFAULTS, "protocols": "fwa(3)"}) == node_toml("fwa(3)", DEFAULTS)
    assert "ttl = 3" in node_toml("fwa(3)", DEFAULTS)
    several = {**DEFAULTS, "policies": "ucb(0.5), klucb"}
    assert 'name = "klucb"' in node_toml("fwa, klucb", several)
    assert "alpha = 0.5" in node_toml("flooding, ucb", several)
    assert "alpha = 0.5" in node_toml("fwa", {**DEFAULTS, "policies": "ucb(0.5)"})
    with pytest.raises(InputError, match=r"memory 'discount\(0.9\)' cannot run live"):
        node_toml("fwa", {**DEFAULTS, "memory.name": "discount", "memory.gamma": "0.9"})


def test_no_protocol_is_an_error_of_one_line():
    with pytest.raises(InputError, match="protocols must name at least one"):
        to_toml({**DEFAULTS, "protocols": " "})


def test_files_are_bounded_and_named_by_what_they_hold(monkeypatch):
    kept = Uploads()
    first = kept.keep("../../etc/cron.d/evil file", b"0 1")
    assert re.fullmatch(r"[0-9a-f]{16}/evil_file", first)
    assert (kept.folder / first).read_bytes() == b"0 1"
    assert kept.keep("x", b"0 1") != kept.keep("x", b"0 2")
    assert kept.keep("..", b"1").endswith("/file")
    for name in ("/etc/passwd", "../x", first + "/../../..", "", f"{first}\0"):
        assert not uploads.holds(kept.folder, name)
    assert uploads.holds(kept.folder, first)
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="a file may have at most 10 bytes, got 11"):
        kept.keep("large", b"12345678901")
    monkeypatch.setattr(uploads, "MAX_KEPT", 5)
    with pytest.raises(InputError, match="all files may have at most 5 bytes"):
        kept.keep("more", b"123456")
    folder = kept.folder
    kept.close()
    assert not folder.exists()
