"""Classes of the user's own in specs and in text: the same everywhere, and part of what a study is."""

import sys

import pytest

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.lookup import own
from banditmesh.protocols import notation
from banditmesh.settings.problems import build_problem

MODULE = """
import itertools
from dataclasses import dataclass

import numpy as np

import banditmesh as bm
from helper import few


@dataclass(frozen=True)
class ShyHubs(bm.Protocol):
    shyness: float = 3.0
    name = "shy-hubs"

    @property
    def parameter(self):
        return self.shyness

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.RELAY if few(degree, parameter) else bm.STOP


class Hidden(bm.Policy):
    name = "hidden"

    def __init__(self, secret):
        object.__setattr__(self, "secret", secret)


@dataclass(frozen=True)
class EveryOther(bm.Emission):
    step: int
    name = "every-other"

    @property
    def parameter(self):
        return self.step

    @staticmethod
    def sends(own_count, sent_count, is_best, parameter):
        return own_count % parameter == 1


@dataclass(frozen=True)
class Greedy(bm.Policy):
    bonus: float = 0.5
    name = "greedy"

    @property
    def parameter(self):
        return self.bonus

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + parameter * inv_root


@dataclass(frozen=True)
class Coin(bm.arms.Law):
    mean: float
    stake: float = 1.0

    def quantile(self, u):
        return self.mean + (self.stake if u > 0.5 else -self.stake)


class Forgetful(Coin):
    def __init__(self, mean, stake):
        object.__setattr__(self, "mean", mean)


def wheel(n):
    return bm.networks.star(n)


class Flicker(bm.networks.DynamicNetwork):
    def __init__(self, start, pause):
        self.names = tuple(start)
        self.hub = max(start, key=start.degree)
        self.pause = pause

    def rounds(self, draws, births_first=False):
        others = [v for v in range(self.n_agents) if v != self.hub]
        for t in itertools.count(1):
            links = [sorted((self.hub, v)) for v in others] if t % self.pause else []
            yield np.array(links, dtype=np.int32).reshape(-1, 2)


def broken(n):
    raise KeyError(n)


def many(*parts):
    return None
"""
SPEC = """
horizon = 10
replicates = 1
engine = "reference"
network = {name = "mine:wheel", n = 6}
arms = {law = "mine:Coin", n_arms = 4, per_agent = 2, stake = 0.5}
policy = {name = "mine:Greedy", bonus = 1.0}
emission = {name = "mine:EveryOther", step = 2}
sweep.protocol.name = ["mine:ShyHubs", "fwa"]
sweep.protocol.shyness = [1.0, 9.0]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "helper.py").write_text("def few(degree, most):\n    return degree < most\n")
    (tmp_path / "study.toml").write_text(SPEC)
    return tmp_path


def test_a_study_of_own_classes_is_the_same_in_this_process_and_in_others(folder, tmp_path_factory):
    spec = bm.read_spec(folder / "study.toml")
    here = bm.run_study(spec, folder / "here", workers=1)
    table = here.table()
    assert table["protocol"].tolist() == ["mine:ShyHubs", "mine:ShyHubs", "fwa"]
    assert table["protocol.shyness"].tolist()[:2] == [1.0, 9.0]
    assert table["messages"][0] < table["messages"][1]
    assert table["error"].isna().all()
    # Workers need nothing of the folder: neither a path to it nor the files.
    for name in ("mine.py", "helper.py"):
        (folder / name).unlink()
    assert bm.run_study(spec, folder / "there", workers=2).table().equals(table)
    [texts] = here.manifest["own_modules"].values()
    assert texts["mine"] == MODULE
    assert list(texts) == ["mine", "helper"]


def test_own_dynamics_start_from_the_network_of_the_spec(folder):
    # What it is made from is a graph of some size each time, also when the spec is only checked.
    text = 'network = {name = "star", n = 5}\ndynamics = {name = "mine:Flicker", pause = 2}'
    [point] = bm.parse_spec(text, folder=folder).points()
    problem = build_problem(point.settings, {})
    assert problem.is_dynamic
    assert (problem.n_agents, problem.network.hub, problem.network.pause) == (5, 0, 2)


def test_what_a_spec_builds_has_its_parameters(folder):
    point = next(iter(bm.read_spec(folder / "study.toml").points())).settings
    problem = build_problem(point, {})
    assert (problem.n_agents, problem.laws[0].stake, type(problem.laws[0]).__name__) == (6, 0.5, "Coin")


@pytest.mark.parametrize("changed", ["mine", "helper"])
def test_a_study_does_not_continue_with_another_source(folder, changed):
    bm.run_study(bm.read_spec(folder / "study.toml"), folder / "out", workers=1)
    with (folder / f"{changed}.py").open("a") as stream:
        stream.write("\n# The same, with a remark.\n")
    for overrides in ([], ["replicates=2"]):
        with pytest.raises(bm.StudyError) as error:
            bm.run_study(bm.read_spec(folder / "study.toml", overrides), folder / "out", workers=1)
        assert "has changed since it began" in str(error.value)
        assert "@" not in str(error.value)


def test_each_spec_has_the_module_of_its_own_folder(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "mine.py").write_text("import banditmesh as bm\n\n\ndef wheel(n):\n    return bm.networks.ring(n)\n")
    text = 'network = {name = "mine:wheel", n = 5}'
    specs = [bm.parse_spec(text, folder=one) for one in (folder, other)]
    problems = [build_problem(next(iter(spec.points())).settings, {}) for spec in specs]
    assert [problem.network.n_links for problem in problems] == [4, 5]
    assert specs[0].digest != specs[1].digest
    assert "mine" not in sys.modules
    assert "helper" not in sys.modules


def test_a_module_that_changed_is_read_again_in_the_same_process(folder):
    text = 'network = {name = "mine:wheel", n = 5}'
    before = bm.parse_spec(text, folder=folder)
    (folder / "mine.py").write_text(MODULE.replace("networks.star", "networks.ring"))
    after = bm.parse_spec(text, folder=folder)
    links = [build_problem(next(iter(one.points())).settings, {}).network.n_links for one in (before, after)]
    assert links == [4, 5]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('policy = "mine:Hidden"', ["line 1", "mine:Hidden", "got secret", "@dataclass(frozen=True)"]),
        ('policy = "mine:Gredy"', ["line 1", "nothing of that name", "did you mean 'Greedy'?"]),
        ('policy = "mine.Greedy"', ["policy.name must be one of", "your own class is written 'mine:Greedy'"]),
        ('policy = "mine:ShyHubs"', ["must be a class that derives from Policy"]),
        ('protocol = "nowhere:Mine"', ["line 1", "a module named nowhere", "write nowhere.py"]),
        ('protocol = {name = "mine:ShyHubs", shines = 3.0}', ["protocol.shines is an unknown key", "shyness"]),
        ('protocol = {name = "mine:ShyHubs", shyness = "much"}', ["protocol.shyness must be a number"]),
        ('protocol = {name = "mine:ShyHubs", ttl = 0}', ["protocol.ttl must be an integer of at least 1"]),
        ('emission = "mine:EveryOther"', ["emission.step is required"]),
        ('arms = {law = "mine:Forgetful", stake = 2.0}', ["parameters as attributes", "set self.stake"]),
        ('arms = {law = "mine:wheel"}', ["must be a class that derives from arms.Law"]),
        ('network = {name = "mine:broken", n = 3}', ["mine:broken failed with KeyError: 3"]),
        ('network = "mine:many"', ["must take its parameters by name, got *parts"]),
        ('dynamics = "mine:wheel"', ["must take start"]),
        ('sweep.protocol = ["fwa(4)", "mine:ShyHubs(4, 5, 6)"]', ["sweep.protocol", "got more"]),
        ('sweep.policy.name = ["ucb", "mine:Hidden"]', ["sweep.policy.name", "got secret"]),
        ('protocol = "wrong:Mine"', ["cannot read", "wrong.py", "SyntaxError"]),
        ('protocol = "failing:Mine"', ["cannot import failing: ZeroDivisionError"]),
    ],
)
def test_mistakes_are_one_line_before_anything_runs(folder, line, words):
    (folder / "wrong.py").write_text("class Mine(:\n")
    (folder / "failing.py").write_text("1 / 0\n")
    with pytest.raises(bm.SpecError) as error:
        bm.parse_spec(line, folder=folder)
    message = str(error.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert "@" not in message.replace("@dataclass", "")


def test_protocols_and_emissions_of_ones_own_are_written_like_any_other(folder, monkeypatch):
    monkeypatch.chdir(folder)
    protocol = notation.read("mine:ShyHubs(4, shyness=2)+mine:EveryOther(3)")
    assert notation.write(protocol) == "shy-hubs(4, shyness=2)+every-other(3)"
    assert notation.protocol_or_class("mine:ShyHubs").__name__ == "ShyHubs"
    assert bm.parse_spec('protocol = "mine:ShyHubs(4, shyness=2)"').settings.protocol["shyness"] == 2
    with pytest.raises(bm.InputError, match=r"got 'mine\.ShyHubs\(4\)'; your own class is written 'mine:ShyHubs'"):
        notation.read("mine.ShyHubs(4)")
    with pytest.raises(bm.InputError, match="got secret"):
        own.load_class("mine:Hidden", bm.Policy)


def test_the_command_line_takes_them_from_the_current_folder(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    problem = "compare --network ring:5 --arms 4 --per-agent 2 --horizon 5 --replicates 2 --policy mine:Greedy"
    with pytest.raises(SystemExit) as ended:
        main([*problem.split(), "--protocols", "none,mine:ShyHubs(2)"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "shy-hubs" in out
    assert "Greedy(bonus=0.5)" in out


def test_a_file_named_like_a_module_of_python_is_not_taken_for_it(folder):
    (folder / "json.py").write_text("raise SystemError\n")
    (folder / "mine.py").write_text(
        "import json\n\n\ndef wheel(n):\n    return [tuple(pair) for pair in json.loads('[[0, 1], [1, 2]]')]\n"
    )
    spec = bm.parse_spec('network = {name = "mine:wheel", n = 3}', folder=folder)
    assert build_problem(next(iter(spec.points())).settings, {}).n_agents == 3
    with pytest.raises(bm.SpecError, match="must be in your own module, got json, which is part of Python; rename"):
        bm.parse_spec('network = "json:wheel"', folder=folder)


def test_an_installed_module_must_be_the_same_everywhere():
    address = own.address("banditmesh.protocols.absorption:FloodingWithAbsorption", own.Path())
    assert own.load(address) is bm.FwA
    assert own.texts_in(address) == {}
    with pytest.raises(bm.InputError, match="must have the source"):
        own.load(f"{own.plain(address)}@{'0' * 16}")
