"""Specs: what they say, what they refuse, and how a grid is laid out."""

import re
import tomllib

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.settings.parts import build_policy, build_protocol, read_faults
from banditmesh.settings.problems import build_problem
from banditmesh.settings.toml_text import line_of
from banditmesh.studies import grid
from banditmesh.studies.case import case_of
from banditmesh.studies.spec import replicate_seed
from banditmesh.studies.template import TEMPLATE

SMALL = """
horizon = 10
replicates = 2
network = {name = "ring", n = 6}
arms = {n_arms = 4, per_agent = 2}
"""


def labels(text, *columns):
    return [tuple(point.labels[column] for column in columns) for point in bm.parse_spec(text).points()]


def test_an_empty_spec_is_the_papers_er_network_under_fwa():
    [point] = bm.parse_spec("").points()
    assert build_protocol(point.settings) == bm.FwA(4)
    assert build_policy(point.settings) == bm.UCB(3.0)
    ours, paper = build_problem(point.settings, {}), bm.Problem.paper("er", seed=0)
    assert np.array_equal(ours.arm_indices, paper.arm_indices)
    assert np.array_equal(ours.means, paper.means)
    assert np.array_equal(ours.network.pairs(), paper.network.pairs())


def test_the_grid_runs_over_all_combinations_the_last_key_fastest():
    text = SMALL + 'sweep.network.n = [5, 6]\nsweep.protocol.name = ["irs", "fwa"]'
    assert labels(text, "network.n", "protocol") == [(5, "irs"), (5, "fwa"), (6, "irs"), (6, "fwa")]


def test_values_without_effect_do_not_multiply_a_point():
    text = SMALL + 'sweep.protocol = {name = ["none", "irs", "fwa", "gossip"], ttl = [2, 3], fanout = [1, 2]}'
    assert labels(text, "protocol", "protocol.ttl", "protocol.fanout") == [
        ("none", None, None),
        ("irs", None, None),
        ("fwa", 2, None),
        ("fwa", 3, None),
        ("gossip", 2, 1),
        ("gossip", 2, 2),
        ("gossip", 3, 1),
        ("gossip", 3, 2),
    ]


def test_emissions_do_not_multiply_a_protocol_that_takes_none():
    text = 'sweep.emission.name = ["every-pull", "growth"]\nsweep.protocol.name = ["centralised", "irs"]'
    assert labels(SMALL + text, "emission", "protocol") == [
        (None, "centralised"),
        ("every-pull", "irs"),
        ("growth", "irs"),
    ]
    spec = bm.parse_spec(
        SMALL + 'emission = {name = "growth", factor = 0.5}\nsweep.protocol.name = ["centralised", "irs"]'
    )
    assert case_of(spec).protocols == (bm.Centralised(), bm.IRS(emission=bm.Growth(0.5)))


@pytest.mark.parametrize("emission", ['{name = "contested"}', '{name = "growth", factor = 0.5}'])
def test_an_emission_that_no_protocol_takes_is_refused(emission):
    with pytest.raises(bm.SpecError, match=r"emission\.\w+ has no effect: the protocol takes no emission; remove it"):
        bm.parse_spec(f'{SMALL}protocol.name = "centralised"\nemission = {emission}')


def test_whole_tables_can_be_swept_and_are_set_before_single_keys():
    text = "horizon = 5\narms = {n_arms = 4, per_agent = 2}\n[sweep]\nnetwork.n = [5, 6]\n"
    text += 'network.name = ["ring", "star"]'
    assert labels(text, "network", "network.n") == [("ring", 5), ("star", 5), ("ring", 6), ("star", 6)]
    text = SMALL + 'sweep.network = [{name = "ring", n = 4}, {name = "grid", rows = 2, columns = 3}]'
    points = list(bm.parse_spec(text).points())
    assert [point.labels["network"] for point in points] == ["ring(n=4)", "grid(rows=2, columns=3)"]
    assert [build_problem(point.settings, {}).n_agents for point in points] == [4, 6]


def test_horizon_rules_and_policies_can_be_swept():
    text = SMALL + 'sweep.horizon = [3, 4]\nsweep.rules = ["sound", "published"]\nsweep.policy.alpha = [1, 2.5]'
    spec = bm.parse_spec(text)
    assert spec.n_points == 8
    assert spec.n_runs == 16
    assert spec.columns["policy.alpha"] == "double"
    assert {point.settings["horizon"] for point in spec.points()} == {3, 4}


def test_dynamics_make_a_dynamic_network():
    text = SMALL + 'dynamics = {name = "edge-markovian", p = 0.1, q = 0.2}'
    [point] = bm.parse_spec(text).points()
    network = build_problem(point.settings, {}).network
    assert isinstance(network, bm.networks.EdgeMarkovian)
    assert (network.p, network.q) == (0.1, 0.2)


def test_arms_can_be_bernoulli_with_given_means():
    text = 'network = {name = "ring", n = 6}\narms = {law = "bernoulli", means = [0.2, 0.5, 0.8], per_agent = 2}'
    [point] = bm.parse_spec(text).points()
    problem = build_problem(point.settings, {})
    assert problem.means.tolist() == [0.2, 0.5, 0.8]
    assert isinstance(problem.laws[0], bm.arms.Bernoulli)


def test_replicates_have_their_own_seeds_and_neighbouring_studies_share_none():
    seeds = {seed: bm.parse_spec(f"seed = {seed}\nreplicates = 50").seeds for seed in (0, 1)}
    assert len(set(seeds[0] + seeds[1])) == 100
    assert seeds[0][3] == replicate_seed(0, 3)


def test_overrides_replace_what_the_file_says():
    spec = bm.parse_spec(SMALL, ["horizon=7", "protocol.name=irs", "network.n=8", "sweep.policy.alpha=[1, 2]"])
    assert spec.settings.horizon == 7
    assert spec.settings.network == {"name": "ring", "n": 8}
    assert [point.settings["policy"]["alpha"] for point in spec.points()] == [1, 2]


def test_the_digest_depends_on_what_is_said_and_not_on_how():
    one = bm.parse_spec('network = {name = "ring", n = 6}\narms.n_arms = 4\narms.per_agent = 2\nhorizon = 5')
    two = bm.parse_spec('horizon = 5\n[network]\nn = 6\nname = "ring"\n[arms]\nper_agent = 2\nn_arms = 4')
    assert one.digest == two.digest
    assert one.digest != bm.parse_spec("horizon = 6").digest


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("nonsense = 1\n", 1, ["nonsense is an unknown key"]),
        ('horizon = 5\n\n[network]\nname = "ring"\nn = 5\nsize = 3\n', 6, ["network.size is an unknown key", "name"]),
        ('horizon = "long"\n', 1, ["horizon must be an integer", "'long'"]),
        ("horizon = 0\n", 1, ["horizon must be an integer of at least 1"]),
        ("replicates = true\n", 1, ["replicates must be an integer", "True"]),
        ("seed = -1\n", 1, ["seed must be an integer of at least 0"]),
        ("network = 3\n", 1, ["network must be a table", "3"]),
        ('\n[network]\nname = "torus"\n', 3, ["network.name must be one of", "'torus'"]),
        ('[network]\nname = "file"\npath = "x"\nprogress = 1\n', 4, ["network.progress is an unknown key"]),
        ('[network]\nname = "er"\nn = 10\n', 1, ["network.p is required"]),
        ('[network]\nname = "ring"\nn = "ten"\n', 3, ["network.n must be an integer", "'ten'"]),
        ('[network]\nname = "ring"\nn = 1\n', 3, ["network.n must be an integer of at least 3"]),
        ('[protocol]\nname = "fwa"\nttl = 0\n', 3, ["protocol.ttl must be an integer of at least 1"]),
        ('[protocol]\nname = "fwa"\nstop = 0.5\n', 3, ["protocol.stop", "ttl"]),
        ('[policy]\nname = "ucb"\nalpha = -1.0\n', 3, ["policy.alpha must be a positive number"]),
        ('rules = "loose"\n', 1, ["rules must be one of"]),
        ('engine = "warp"\n', 1, ["engine must be one of"]),
        ("[sweep]\nhorizon = 5\n", 2, ["sweep.horizon must be a list"]),
        ("[sweep]\nhorizon = []\n", 2, ["sweep.horizon must be a list with at least one value"]),
        ("[sweep]\nhorizon = [5, 5]\n", 2, ["sweep.horizon must hold different values"]),
        ("[sweep]\nseed = [1, 2]\n", 2, ["sweep.seed must be over one of"]),
        ("[sweep]\nprotocol.tll = [1, 2]\n", 2, ["sweep.protocol.tll is an unknown key"]),
        ('[sweep]\nprotocol.ttl = [1, "x"]\n', 2, ["protocol.ttl must be an integer", "'x'"]),
        ("version = 2\n", 1, ["version must be 1", "got 2"]),
        ("horizon = = 5\n", None, ["not valid TOML", "line 1"]),
    ],
)
def test_a_mistake_is_named_with_its_line(text, line, words):
    with pytest.raises(bm.SpecError) as caught:
        bm.parse_spec(text, source="study.toml")
    message = str(caught.value)
    assert "\n" not in message
    found = re.search(r"^study.toml, line (\d+):", message)
    assert (int(found[1]) if found else None) == line, message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "setting, good, bad, message",
    [
        ("horizon", "1", "2147483648", "must be an integer of at least 1 and at most 2147483647, got 2147483648"),
        ("every", "1", "99999999999", "must be an integer of at least 1 and at most"),
        ("arms.n_arms", "4", "-1", "must be an integer of at least 1, got -1"),
        ("arms.n_arms", "4", "1", "per_agent must be at most n_arms = 1, got 2"),
        ("arms.per_agent", "2", "5", "must be at most n_arms = 4, got 5"),
        ("arms.seed", "2", "-5", "must be an integer of at least 0, got -5"),
        ("arms.sigma", "2", "-1.0", "must be a positive number, got -1.0"),
        ("arms.means", "[0.1, 0.2]", "[]", "n_arms must be an integer of at least 1, got 0"),
        ("arms.means", "[0.1, 0.2]", "[0.1, 'x']", "mean must be a finite number, got 'x'"),
        ("dynamics.leave", "0.1", "1.5", "must be a probability between 0 and 1, got 1.5"),
        ("faults.delay", "1", "99999999999", "must be an integer of at least 0 and at most"),
    ],
)
def test_what_no_run_takes_is_refused_before_anything_runs(setting, good, bad, message):
    text = SMALL + ('dynamics = {name = "churn", leave = 0.5, join = 0.5}\n' if "dynamics" in setting else "")
    bm.parse_spec(text, [f"sweep.{setting}=[{good}]"])
    for override in (f"{setting}={bad}", f"sweep.{setting}=[{good}, {bad}]"):
        with pytest.raises(bm.SpecError, match=re.escape(message)):
            bm.parse_spec(text, [override])


RING = 'network = {name = "ring", n = 6}\n'


@pytest.mark.parametrize(
    "text, message",
    [
        # The arms' own mistakes, though they show on the network.
        (RING + "[arms]\nn_arms = 4\nper_agent = 5", "line 4: arms.per_agent must be at most n_arms = 4, got 5"),
        (RING + "[arms]\nn_arms = 4", "line 2: arms: per_agent must be at most n_arms = 4, got 20"),
        (RING + "arms.seed = -1", "line 2: arms.seed must be an integer of at least 0, got -1"),
        (RING + "arms.sigma = 0", "line 2: arms.sigma must be a positive number, got 0"),
        (RING + 'arms = {law = "bernoulli", means = [2.0], per_agent = 1}', "line 2: arms: p must be a probability"),
        ("sweep.arms.n_arms = [0]", "line 1: sweep.arms.n_arms must be an integer of at least 1, got 0"),
        # Those of dynamics and emissions, which are made with other parts.
        ('[dynamics]\nname = "churn"\nleave = 2\njoin = 1', "line 3: dynamics.leave must be a probability"),
        ('dynamics = {name = "churn", leave = 0.1}', "line 1: dynamics.join is required, got none; add it"),
        ('[emission]\nname = "growth"\nfactor = -1', "line 3: emission.factor must be"),
        ('[sweep]\nemission.name = ["growth"]\nemission.factor = [1, -1]', "line 3: sweep.emission.factor must be"),
        # Where the sweep gives the value, it is to blame, also if the table is there.
        ("[protocol]\nttl = 2\n[sweep]\nprotocol.ttl = [1, 0]", "line 4: sweep.protocol.ttl must be an integer of at"),
        ("[policy]\nalpha = 2\n[sweep]\npolicy.alpha = [1, 'x']", "line 4: sweep.policy.alpha must be a number"),
        ("network.n = 5\nsweep.network.name = ['ring', 'torus']", "line 2: sweep.network.name must be one of er,"),
        (
            "[network]\nname = 'er'\n[sweep]\nnetwork = ['er', 'torus']",
            "line 4: sweep.network: network.name must be one",
        ),
        ("[sweep]\nprotocol = ['fwa(1)', {name = 'fwa', ttl = 0}]", "line 2: sweep.protocol: protocol.ttl must be an"),
        ("protocol = 'fwa'\nsweep.protocol = ['fwa(0)']", "line 2: sweep.protocol: protocol.ttl must be an integer"),
        ("protocol = 'fwa'\nsweep.protocol = ['fwa(1']", "line 2: sweep.protocol: "),
        (
            "network.name = 'er'\nsweep.network = [{name = 'ring'}]",
            "line 2: sweep.network: network.n is required, got none",
        ),
        ("network.name = 'er'\nsweep.network = [{n = 3}]", "line 2: sweep.network: network.name is required"),
        ("horizon = 5\nsweep.horizon = [1, 0]", "line 2: sweep.horizon must be an integer of at least 1"),
        ("rules = 'sound'\nsweep.rules = ['sound', 'loose']", "line 2: sweep.rules must be one of"),
        ("engine = 'auto'\nsweep.engine = ['warp']", "line 2: sweep.engine must be one of"),
        ("faults.loss = 0\nsweep.faults = [{loss = 2}]", "line 2: sweep.faults: faults.loss must be a probability"),
        ("sweep.faults.outages = [{down = 2, up = 1}]", "line 1: sweep.faults.outages: faults.outages.down must be a"),
        ("protocol = 'none'\nsweep.faults.loss = [0.1]", "line 2: sweep.faults.loss has no effect"),
        # And where it does not, the table is.
        (
            "[protocol]\nttl = 0\n[sweep]\nprotocol.name = ['fwa', 'flooding']",
            "line 2: protocol.ttl must be an integer",
        ),
        ("[network]\nname = 'random_regular'\nn = 5\ndegree = 3", "line 1: network: n * degree must be even"),
        ("[network]\nname = 'file'\npath = 'missing.txt'", "line 1: network: missing.txt must be a network file"),
    ],
)
def test_the_table_and_the_key_that_are_wrong_are_named(text, message):
    with pytest.raises(bm.SpecError) as caught:
        bm.parse_spec(text)
    assert str(caught.value).startswith(f"spec, {message}")


@pytest.mark.parametrize(
    "swept, message",
    [
        ("[sweep]\nhorizon = {}", "line 7: sweep.horizon must be a list with at least one value, got {}"),
        ("[sweep.protocol]", "line 6: sweep.protocol must be a list with at least one value, got {}"),
        ("[sweep]\nprotocol.ttl = {}", "line 7: sweep.protocol.ttl must be a list with at least one value, got {}"),
        ("sweep.faults.outages = {}", "line 6: sweep.faults.outages must be a list with at least one value, got {}"),
        ("sweep.nonsense = {}", "line 6: sweep.nonsense must be over one of"),
        ("sweep.seed = {}", "line 6: sweep.seed must be over one of"),
        ("sweep.protocol.ttl = []", "line 6: sweep.protocol.ttl must be a list with at least one value, got []"),
        ("sweep.network = [{}]", "network.name is required, got {}"),
        ("sweep.faults = [{outages = {}}]", "faults.outages.down is required, got none"),
        ("sweep.faults = [[]]", "faults must be a table, got []"),
    ],
)
def test_nothing_to_sweep_over_is_refused_wherever_it_is(swept, message):
    with pytest.raises(bm.SpecError, match=re.escape(message)):
        bm.parse_spec(SMALL + swept)


def test_an_override_with_nothing_to_sweep_over_is_refused():
    with pytest.raises(bm.SpecError, match=r"sweep\.horizon must be a list with at least one value"):
        bm.parse_spec(SMALL, ["sweep.horizon={}"])


@pytest.mark.parametrize("override", ["horizon", "=5", "horizon.deep=5"])
def test_a_wrong_override_is_refused(override):
    with pytest.raises(bm.SpecError, match="--set"):
        bm.parse_spec("horizon = 5", [override])


@pytest.mark.parametrize("override", ["name=caf\udce9", "sweep.network.path=['caf\udce9.txt', 'x']", "\udce9=1"])
def test_what_is_no_text_is_refused(override):
    with pytest.raises(bm.SpecError, match="must be text in UTF-8"):
        bm.parse_spec("horizon = 5", [override])
    with pytest.raises(bm.SpecError, match="must be text in UTF-8"):
        bm.parse_spec(f"# {override}")


def test_files_are_found_beside_the_spec_and_read_in_the_parent(tmp_path):
    nx.write_edgelist(nx.cycle_graph(7), tmp_path / "ring.txt", data=False)
    path = tmp_path / "study.toml"
    path.write_text('network = {name = "file", path = "ring.txt"}\narms = {n_arms = 4, per_agent = 2}\n')
    spec = bm.read_spec(path)
    assert spec.files() == {(("name", "file"), ("path", "ring.txt")): tmp_path / "ring.txt"}
    assert case_of(spec).problem.n_agents == 7


@pytest.mark.parametrize("name", ["missing.toml", "folder"])
def test_a_spec_that_cannot_be_read_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(bm.errors.FileError, match=name):
        bm.read_spec(tmp_path / name)


def test_a_binary_spec_is_refused(tmp_path):
    (tmp_path / "study.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(bm.errors.FileError, match="UTF-8"):
        bm.read_spec(tmp_path / "study.toml")


def test_the_template_is_valid_and_uncommenting_its_tables_is_too():
    assert bm.parse_spec(TEMPLATE).n_runs == 24
    opened = re.sub(r"(?m)^# (?=\[|[a-z_.]+ = )", "", TEMPLATE)
    opened = re.sub(r"(?m)^(stop|fanout|network|protocol) .*\n", "", opened)
    assert "dynamics" in tomllib.loads(opened)
    assert bm.parse_spec(opened).n_points > 6


def test_protocols_may_be_written_out():
    spec = bm.parse_spec(SMALL + 'protocol = "flooding(8)+growth(0.5)"')
    assert case_of(spec).protocols == (bm.Flooding(8, emission=bm.Growth(0.5)),)
    text = 'sweep.protocol = ["irs", "fwa(3)+contested", "flooding+growth(0.5)"]'
    spec = bm.parse_spec(SMALL + text)
    assert [point.labels["protocol"] for point in spec.points()] == ["irs", "fwa(3)+contested", "flooding+growth(0.5)"]
    assert case_of(spec).protocols == (
        bm.IRS(),
        bm.FwA(3, emission=bm.Contested()),
        bm.Flooding(4, emission=bm.Growth(0.5)),
    )


@pytest.mark.parametrize("text", ['protocol = "tree"', 'protocol.name = "tree"', 'sweep.protocol = ["tree"]'])
def test_a_protocol_keeps_its_own_emission_unless_told_otherwise(text):
    assert case_of(bm.parse_spec(SMALL + text)).protocols == (bm.TreeAggregation(),)
    told = 'emission.name = "every-pull"\n' + text
    assert case_of(bm.parse_spec(SMALL + told)).protocols == (bm.TreeAggregation(emission=bm.EveryPull()),)


@pytest.mark.parametrize(
    "text, words",
    [
        ('protocol = "flooding(8"', "must be written like"),
        ('protocol = "flooding(0)"', "ttl must be an integer of at least 1"),
        ('protocol = "fwa(2)+growth(1)"\nemission.name = "contested"', "got both"),
        ('sweep.protocol = ["fwa(2)+growth(1)"]\nsweep.emission.name = ["contested"]', "got both"),
        ('sweep.protocol = ["fwa(2)+grow(1)"]', "emissions must be among"),
        ('sweep.protocol = ["fwa(2)+growth(-1)"]', "factor must be"),
        ('protocol = "centralised+growth(1)"', "takes no emission, since all agents hear every observation at once"),
        ('sweep.protocol = ["irs", "centralised+growth(1)"]', "takes no emission"),
    ],
)
def test_protocols_that_are_wrongly_written_out_are_refused_with_their_line(text, words):
    with pytest.raises(bm.SpecError, match="line 1: ") as error:
        bm.parse_spec(text)
    assert words in str(error.value)


def test_a_case_has_one_problem():
    case = case_of(bm.parse_spec(SMALL + 'sweep.protocol.name = ["irs", "fwa"]'))
    assert [protocol.name for protocol in case.protocols] == ["irs", "fwa"]
    with pytest.raises(bm.SpecError, match=r"sweep\.network\.n"):
        case_of(bm.parse_spec(SMALL + "sweep.network.n = [5, 6]"))


@pytest.mark.parametrize("key, line", [("a", 1), ("b.c", 3), ("b", 2), ("b.d.e", 4), ("z", None), ("q.r", 6)])
def test_lines_are_told(key, line):
    assert line_of('a = 1\n[b]\nc = 2\n"d".e = 3\n[ q ]\nr = 1\n', key) == line


@pytest.mark.parametrize("key", ['"protocol.ttl"', "'protocol.ttl'", "protocol.ttl"])
def test_swept_keys_may_be_quoted_and_are_told_with_their_own_line(key):
    with pytest.raises(bm.SpecError, match=r"line 4: sweep\.protocol\.ttl must be an integer") as error:
        bm.parse_spec(f"horizon = 5\n[sweep]\nhorizon = [5, 6]\n{key} = [0]\n")
    assert (error.value.key, error.value.line) == ("sweep.protocol.ttl", 4)


def test_tables_deeper_than_python_recurses_are_refused_in_one_line():
    with pytest.raises(bm.SpecError, match=r"^spec: tables and lists must be at most 20 deep, got more$"):
        bm.parse_spec("a." * 2000 + "b = 1")


def test_what_a_spec_says_of_itself_is_never_out_of_date():
    spec = bm.parse_spec(SMALL + 'sweep.protocol = {name = ["none", "fwa"], ttl = [1, 2]}')
    with pytest.raises(AttributeError):
        spec.settings.horizon = 3
    before = spec.digest, spec.n_points, len(spec.columns), next(spec.points()).settings["arms"]["per_agent"]
    assert before[1:] == (3, 5, 2)
    # Nobody should, but tables are tables.
    spec.settings.arms["per_agent"] = 3
    spec.grid["protocol.ttl"].append(3)
    spec.grid["horizon"] = [4, 5]
    assert spec.digest != before[0]
    assert (spec.n_points, len(spec.columns)) == (8, 6)
    points = list(spec.points())
    assert len(points) == spec.n_points
    assert {point.settings["arms"]["per_agent"] for point in points} == {3}


# Faults


def faults_of(text, overrides=()):
    return [
        read_faults(point.settings["faults"]).effective() for point in bm.parse_spec(SMALL + text, overrides).points()
    ]


def test_a_spec_names_faults():
    text = "[faults]\nloss = 0.1\ndelay = 2\noutages = {down = 0.1, up = 0.5, memory = false}\n"
    text += 'corruption = {kind = "zero", probability = 0.2}'
    expected = bm.Faults(0.1, 2, corruption=bm.Corruption("zero", 0.2), outages=bm.Outages(0.1, 0.5, memory=False))
    assert faults_of(text) == [expected]
    assert faults_of("") == faults_of("faults.loss = 0") == [None]
    assert faults_of("", ["faults.loss=0.2", "faults.link_cap=3"]) == [bm.Faults(loss=0.2, link_cap=3)]


def test_faults_are_swept_by_key_and_by_table():
    text = "faults.outages.up = 0.5\nsweep.faults = {loss = [0.0, 0.1], outages.down = [0.2, 0.3]}"
    assert labels(SMALL + text, "faults.loss", "faults.outages.down") == [
        (loss, down) for loss in (0.0, 0.1) for down in (0.2, 0.3)
    ]
    assert faults_of(text)[1] == bm.Faults(outages=bm.Outages(0.3, 0.5))
    text = "sweep.faults = [{}, {loss = 0.1, outages = {down = 0.1, up = 0.2}}]"
    assert labels(SMALL + text, "faults") == [("none",), ("loss=0.1, outages(down=0.1, up=0.2)",)]
    assert faults_of(text) == [None, bm.Faults(loss=0.1, outages=bm.Outages(0.1, 0.2))]


def test_faults_of_messages_do_not_multiply_a_protocol_that_sends_none():
    text = (
        'faults.outages = {down = 0.1, up = 0.2}\nsweep.faults.loss = [0.0, 0.1]\nsweep.protocol.name = ["none", "irs"]'
    )
    assert labels(SMALL + text, "protocol", "faults.loss") == [("none", None), ("irs", 0.0), ("irs", 0.1)]
    assert faults_of(text)[0] == bm.Faults(outages=bm.Outages(0.1, 0.2))


def test_a_case_has_the_faults_of_its_spec():
    text = 'faults.loss = 0.1\nsweep.protocol.name = ["none", "irs"]'
    assert case_of(bm.parse_spec(SMALL + text)).settings["faults"] == bm.Faults(loss=0.1)


@pytest.mark.parametrize(
    "text, message",
    [
        ("faults = 0.1", "spec, line 6: faults must be a table, got 0.1"),
        ("sweep.faults = [0.1]", "spec, line 6: sweep.faults must be a table, got 0.1"),
        ("faults.los = 0.1", "spec, line 6: faults.los is an unknown key; did you mean 'loss'"),
        ("[faults]\nloss = 2", "spec, line 7: faults.loss must be a probability between 0 and 1, got 2"),
        ("sweep.faults.loss = [0, 7]", "spec, line 6: sweep.faults.loss must be a probability between 0 and 1, got 7"),
        ("[faults]\noutages = 0.1", "spec, line 7: faults.outages must be a table, got 0.1"),
        (
            "faults.outages = 3\nsweep.faults.outages.down = [1]",
            "spec, line 6: faults.outages must be a table to sweep",
        ),
        ("[faults.outages]\ndown = 0.1", "faults.outages.up is required, got none; add it"),
        ('faults.corruption = {kind = "red", probability = 1}', "faults.corruption.kind must be one of gaussian, zero"),
        ('protocol = "none"\nfaults.loss = 0.1', "spec, line 7: faults.loss has no effect: no message is sent"),
    ],
)
def test_wrong_faults_are_refused_with_their_line(text, message):
    with pytest.raises(bm.SpecError, match=re.escape(message)) as error:
        bm.parse_spec(SMALL + text)
    assert "\n" not in str(error.value)


# Large sweeps

MANY = 3000
TTL_AND_LOSS = f"sweep.protocol.ttl = {list(range(1, 31))}\nsweep.faults.loss = {[i / 100 for i in range(100)]}"


@pytest.mark.parametrize(
    "swept, kind, n_values",
    [
        (f"sweep.faults.loss = {[i / MANY for i in range(MANY)]}", bm.Faults, MANY),
        (f"sweep.policy.alpha = {[1 + i / MANY for i in range(MANY)]}", bm.UCB, MANY),
        (f"sweep.horizon = {list(range(1, MANY + 1))}", bm.UCB, 1),
        (TTL_AND_LOSS, bm.FwA, 30),
        (TTL_AND_LOSS, bm.Faults, 100),
    ],
)
def test_a_part_is_built_once_for_each_of_its_own_values(swept, kind, n_values, monkeypatch):
    made = []
    original = kind.__post_init__
    monkeypatch.setattr(kind, "__post_init__", lambda self: made.append(original(self)))
    assert bm.parse_spec(SMALL + swept).n_points == MANY
    # And once more, to see that it goes with the others.
    assert n_values <= len(made) <= n_values + 1


def test_what_does_not_depend_on_values_is_asked_once(monkeypatch):
    asked = []
    original = grid.has_key
    monkeypatch.setattr(grid, "has_key", lambda settings, key: asked.append(key) or original(settings, key))
    assert bm.parse_spec(SMALL + TTL_AND_LOSS).n_points == MANY
    assert len(asked) < 100


@pytest.mark.parametrize(
    "key, good, bad, message",
    [
        ("horizon", range(1, MANY), "0", "horizon must be an integer of at least 1"),
        ("every", range(1, MANY), "'2'", "every must be an integer of at least 1 and at most 4294967295, got '2'"),
        ("policy.alpha", range(1, MANY), "-3", "alpha must be a positive number, got -3"),
        ("policy.alpha", range(1, MANY), "'x'", "policy.alpha must be a number, got 'x'"),
        ("faults.loss", [i / MANY for i in range(MANY)], "1.5", "loss must be a probability between 0 and 1, got 1.5"),
        ("arms.seed", range(MANY), "true", "arms.seed must be an integer, got True"),
    ],
)
def test_one_wrong_value_among_many_is_named(key, good, bad, message):
    values = [str(value) for value in good]
    values.insert(MANY * 2 // 3, bad)
    with pytest.raises(bm.SpecError, match=re.escape(message)):
        bm.parse_spec(f"{SMALL}sweep.{key} = [{', '.join(values)}]")


def test_points_are_counted_without_going_through_them():
    swept = [
        "faults.outages = [{down = 0.1, up = 0.2}, {down = 0.2, up = 0.2}]",
        'protocol.name = ["none", "irs", "fwa", "gossip"]',
        "faults.loss = [0.0, 0.1]",
        'policy = ["thompson", {name = "ucb", alpha = 2}]',
        "protocol.fanout = [1, 2, 3]",
        'arms.law = ["gaussian", "bernoulli"]',
        "protocol.ttl = [1, 2]",
        "arms.sigma = [1, 2]",
        "horizon = [3, 4]",
    ]
    spec = bm.parse_spec(SMALL + "[sweep]\n" + "\n".join(swept))
    found = [point.labels.values() for point in spec.points()]
    assert len(set(map(tuple, found))) == len(found) == spec.n_points
    # Outages; no loss for "none", ttl for the last two and fan-out for the last; sigma for Gaussian arms.
    assert spec.n_points == 2 * (1 + 2 + 2 * 2 + 2 * 2 * 3) * 2 * (2 + 1) * 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('network = {name = "ring", n = 6}\nsweep.network.n = [6, 1]', ["line 2", "sweep.network.n must be"]),
        (
            'network = {name = "random_regular", n = 6, degree = 2}\nsweep.network.degree = [2, 7]',
            ["line 2", "sweep.network.degree"],
        ),
        ('sweep.network = [{name = "ring", n = 6}, {name = "ring", n = 1}]', ["line 1", "sweep.network"]),
    ],
)
def test_a_swept_network_that_cannot_be_made_is_refused_before_anything_runs(text, words):
    with pytest.raises(bm.SpecError) as error:
        bm.parse_spec(text)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_large_networks_and_many_seeds_of_a_sweep_are_not_made_to_see_whether_they_can_be(monkeypatch):
    from banditmesh.studies import settings_checks

    made = []
    true = settings_checks.build_network
    monkeypatch.setattr(settings_checks, "build_network", lambda *given: made.append(given) or true(*given))
    bm.parse_spec('network = {name = "ring", n = 6}\nsweep.network.n = [5, 100000]')
    assert [dict(given[0]["network"])["n"] for given in made] == [5, 5]
    made.clear()
    bm.parse_spec('network = {name = "er", n = 9, p = 0.5}\nsweep.network.seed = [1, 2, 3, 4]')
    assert len(made) == 2
