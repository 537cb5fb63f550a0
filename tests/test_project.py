"""What is around the package: workflows, templates, hooks and licences say what the project can do.

Only their form and what they refer to is checked here; no workflow is run.
"""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = [path for path in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) if path.name != "config.yml"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SUPPORTED = ["3.11", "3.12", "3.13"]


class Strict(yaml.SafeLoader):
    """Refuses a key that is given twice, which YAML forbids and the loader lets pass."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is given twice {node.start_mark}"
        return super().construct_mapping(node, deep=deep)


def read(path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader=Strict)


def name_of(path):
    return path.name


def jobs(path):
    return read(path)["jobs"]


def steps(path):
    return [step for job in jobs(path).values() for step in job["steps"]]


def test_a_key_given_twice_is_found():
    with pytest.raises(AssertionError, match="given twice"):
        yaml.load("a: 1\na: 2\n", Loader=Strict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflows_have_what_their_runner_requires(path):
    workflow = read(path)
    assert workflow["name"]
    assert workflow[True]  # YAML 1.1 reads the key "on" as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert job["timeout-minutes"] <= 60
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1")), step


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflows_call_targets_that_there_are(path):
    called = {target for step in steps(path) for target in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))}
    assert {"test", "lint", "dist"} <= called
    assert called <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_expressions_name_what_the_matrix_has(path):
    for job in jobs(path).values():
        axes = set(job.get("strategy", {}).get("matrix", {}))
        assert set(re.findall(r"\$\{\{ matrix\.(\w+) \}\}", yaml.dump(job))) == axes


def test_every_supported_python_is_tested_on_every_system():
    ci = jobs(GITHUB / "workflows" / "ci.yml")
    assert [line for line in PROJECT["classifiers"] if re.search(r":: 3\.", line)] == [
        f"Programming Language :: Python :: {version}" for version in SUPPORTED
    ]
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"
    for job in ("linux", "other-systems"):
        assert ci[job]["strategy"]["matrix"]["python"] == SUPPORTED


def test_systems_that_were_never_seen_to_pass_are_marked_and_not_claimed():
    other = jobs(GITHUB / "workflows" / "ci.yml")["other-systems"]
    assert "not yet seen to pass" in other["name"]
    assert other["continue-on-error"] is True
    assert not any("make " in step.get("run", "") for step in other["steps"])
    assert [line for line in PROJECT["classifiers"] if line.startswith("Operating System")] == [
        "Operating System :: POSIX :: Linux"
    ]


def test_a_release_is_tested_before_it_is_published():
    release = jobs(GITHUB / "workflows" / "release.yml")
    assert release["publish"]["needs"] == "build"
    assert release["release"]["needs"] == "publish"
    version = (ROOT / "src" / "banditmesh" / "version.py").read_text(encoding="utf-8")
    # The line that the workflow's sed looks for.
    assert re.search(r'^__version__ = "(.*)"$', version, re.MULTILINE)


@pytest.mark.parametrize("path", FORMS, ids=name_of)
def test_issue_forms_have_what_they_require(path):
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_bug_reports_ask_for_what_repeats_a_run():
    fields = {field.get("id"): field for field in read(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")["body"]}
    assert "result.settings" in fields["settings"]["attributes"]["label"]
    assert "seed" in fields["reproduce"]["attributes"]["description"]


def test_dependabot_watches_what_the_project_uses():
    settings = read(GITHUB / "dependabot.yml")
    assert settings["version"] == 2
    assert {entry["package-ecosystem"] for entry in settings["updates"]} == {"github-actions", "pip"}
    assert all(entry["schedule"]["interval"] and entry["directory"] == "/" for entry in settings["updates"])


def test_hooks_run_what_make_lint_runs():
    [repository] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" and hook["name"] and hook["id"] for hook in repository["hooks"])
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    tools = re.findall(r"\$\(BIN\)/(\S+)", lint)
    assert [Path(hook["entry"].split()[0]).name for hook in repository["hooks"]] == tools


def test_licences_of_all_that_is_shipped_and_required_are_listed():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("\n## Licences\n")[2]
    package = ROOT / "src" / "banditmesh"
    shipped = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".py", ".nbi", ".nbc"}
    }
    extras = PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *(line for name in set(extras) - {"dev", "docs"} for line in extras[name])]
    names = (shipped | {re.match(r"[\w-]+", line)[0] for line in required}) - {"banditmesh"}
    assert not [name for name in sorted(names) if f"`{name}`" not in page]
