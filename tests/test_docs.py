"""README and docs stay true: their blocks run, their links lead somewhere, and the citation is that of this version."""

import ast
import doctest
import importlib
import operator
import re
import shlex
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import yaml

import banditmesh as bm
from banditmesh import cli, live, mesh
from banditmesh.cli import main
from banditmesh.sim.arguments import read_run
from banditmesh.sim.books import Books
from banditmesh.sim.run import Event
from banditmesh.sim.stepper import Stepper

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "docs" / "_build", ROOT / "docs" / "api"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if not any(path.is_relative_to(folder) for folder in BUILT)),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Pages whose tables list everything, so that a new name cannot be forgotten there.
PUBLIC = set(bm.__all__) - set(bm._MODULES)


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path, language):
    """The fenced blocks of a page in a language, with the line that each begins on."""
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match[1] == language:
            yield text.count("\n", 0, match.start()) + 1, match[2]


def with_sessions(language, start):
    return [path for path in PAGES if any(start in block for _, block in blocks(path, language))]


def anchors(path):
    """The names that headings can be linked by, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_there_are_pages_with_sessions():
    assert ROOT / "README.md" in with_sessions("python", ">>> ")
    assert ROOT / "README.md" in with_sessions("console", "$ banditmesh")
    assert len(with_sessions("python", ">>> ")) > 4


@pytest.mark.parametrize("path", with_sessions("python", ">>> "), ids=name_of)
def test_python_sessions_print_what_the_page_says(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    parser, found = doctest.DocTestParser(), []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    names = {"__name__": "page"}
    for line, block in blocks(path, "python"):
        if ">>> " not in block:
            continue
        session = parser.get_doctest(block, names, name_of(path), name_of(path), line)
        # One page is one session: names of earlier blocks are known in later ones.
        session.globs = names
        runner.run(session, out=found.append, clear_globs=False)
    for value in names.values():
        if isinstance(value, tempfile.TemporaryDirectory):
            value.cleanup()
    assert not runner.summarize(verbose=False).failed, "".join(found)


@pytest.mark.parametrize("path", with_sessions("console", "$ banditmesh"), ids=name_of)
def test_commands_print_what_the_page_says(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for line, block in blocks(path, "console"):
        command, _, promised = block.replace("\\\n", "").partition("\n")
        if not command.startswith("$ banditmesh"):
            continue
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[2:])
        printed = capsys.readouterr().out
        assert ended.value.code == 0, f"{name_of(path)}, line {line}"
        assert printed.split() == promised.split(), f"{name_of(path)}, line {line}"


def code_lines(language, block):
    """What a reader would copy of a block: of sessions, what is typed."""
    if language == "python" and ">>> " in block:
        return [line for line in block.splitlines() if line.startswith((">>> ", "... "))]
    if language == "console":
        return re.match(r"(?:.*\\\n)*.*", block)[0].splitlines()
    return block.splitlines()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_code_fits_88_columns(path):
    for language in ("python", "console", "sh", "bash", "toml"):
        for line, block in blocks(path, language):
            for code in code_lines(language, block):
                assert len(code) <= 88, f"{name_of(path)}, block at line {line}: {code}"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        assert page.exists(), f"{name_of(path)} links to {target}"
        if anchor:
            assert anchor in anchors(page), f"{name_of(path)} links to {target}"


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.is_relative_to(ROOT / "docs") and path.name != "index.md"], ids=name_of
)
def test_every_page_is_on_the_site(path):
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    entries = {line for _, block in _toctrees(index) for line in block.splitlines()}
    page = str(path.relative_to(ROOT / "docs").with_suffix(""))
    assert page in entries or f"{Path(page).parent}/*" in entries


def test_each_page_has_a_line_two_clicks_from_the_first():
    index, contents = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("index.md", "contents.md"))
    assert "(contents.md)" in index
    pages = [line for _, block in _toctrees(index) for line in block.splitlines() if line and not line.startswith(":")]
    assert len(pages) > 40
    lines = {page: re.search(rf"^\| \[.+\]\({page}\.md\) \| .+ \|$", contents, re.MULTILINE) for page in pages}
    assert [page for page, line in lines.items() if line is None] == ["contents"]


def test_help_and_the_front_page_have_the_same_groups():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    captions = re.findall("^:caption: (.+)$", index, re.MULTILINE)
    assert [caption for caption in captions if caption in cli.GROUPS] == list(cli.GROUPS)


def test_no_heading_has_a_formula():
    # Tables of contents show it as it is written.
    found = [line for path in PAGES for line in re.findall("^#+ .*[$].*", path.read_text("utf-8"), re.MULTILINE)]
    assert not [line for line in found if line.count("$") > 1]


def _toctrees(text):
    return [(match.start(), match[1]) for match in re.finditer(r"^```{toctree}\n(.*?)^```$", text, re.M | re.S)]


def columns():
    """The names of all columns that tables and data frames have, and the rows of bounds."""
    problem = bm.Problem.random(bm.networks.ring(3), n_arms=3, per_agent=2, seed=0)
    settings = {"horizon": 4, "replicates": 2, "seed": 0, "engine": "reference"}
    comparison = bm.compare(problem, ["irs"], agents=True, **settings)
    result, bounds = comparison.results["irs"], bm.bounds(problem, "irs", horizon=4)
    found = bm.frontier(problem, protocols=["irs"], emissions=["every-pull"], **settings)
    frames = [comparison.table(agents=True), comparison.differences("irs"), comparison.to_dataframe()]
    frames += [result.to_dataframe(agents=True), found.table(), found.to_dataframe(), bounds.per_arm, bounds.table()]
    with tempfile.TemporaryDirectory() as folder:
        study = bm.run_study(bm.parse_spec(STUDY), folder, workers=1)
        frames += [study.table(), study.curves()]
    names = {name for frame in frames for name in frame.columns} | {*result.traffic, *Event._fields}
    return names | {name.strip().replace(" = 4", "").removesuffix(", exactly") for name in bounds.table().index}


STUDY = """
horizon = 4
replicates = 1
record_every = 1
engine = "reference"
network = {name = "ring", n = 3}
arms = {n_arms = 3, per_agent = 2}
protocol = {name = "irs"}
"""


def test_terms_explain_every_column():
    page = (ROOT / "docs" / "terms.md").read_text(encoding="utf-8").replace("`", "")
    # The ends of intervals are explained once for all.
    names = {re.sub(r".*(_low|_high)$", r"\1", name) for name in columns()}
    assert not [name for name in sorted(names) if not re.search(rf"(?<!\w){re.escape(name)}\b", page)]


def reference():
    """Module and name of every entry of the reference."""
    module = None
    for line in (ROOT / "docs" / "api.md").read_text(encoding="utf-8").splitlines():
        if stated := re.match(r"\.\. currentmodule:: (\S+)$", line):
            module = stated[1]
        elif entry := re.match(r"   ([A-Za-z][\w.]*)$", line):
            yield module, entry[1]


def test_reference_names_everything_public():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = PUBLIC | {name for name in dir(bm.errors) if name.endswith("Error")}
    for name in set(bm._MODULES) - {"errors"}:
        names |= set(getattr(bm, name).__all__)
    names |= {*live.__all__, *mesh.__all__}
    assert not [name for name in sorted(names) if not re.search(rf"\b{name}\b", page)]


def test_reference_names_nothing_that_is_not_public():
    entries = list(reference())
    assert len(entries) == len(set(entries)) > 150
    for module, name in entries:
        found = importlib.import_module(module)
        public = getattr(found, "__all__", dir(found))
        assert name.partition(".")[0] in public or "." in name, f"{module}.{name} is not public"
        assert operator.attrgetter(name)(found).__doc__, f"{module}.{name} has no docstring"


def exported(base):
    made = [getattr(bm, name) for name in bm.__all__]
    found = {kind for kind in made if isinstance(kind, type) and issubclass(kind, base) and kind is not base}
    assert found
    return sorted(found, key=lambda kind: kind.name)


def test_policies_have_their_sections():
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    for kind in exported(bm.Policy):
        assert re.search(rf"^## .*`{kind.__name__}`", text, re.MULTILINE), f"policies.md has no section on {kind}"


@pytest.mark.parametrize("kind", [*exported(bm.Protocol), *exported(bm.Emission)], ids=lambda kind: kind.name)
def test_every_protocol_and_emission_has_a_page_with_its_own_plot(kind):
    page = ROOT / "docs" / "protocols" / f"{kind.name}.md"
    text = page.read_text(encoding="utf-8")
    assert f"bm.{kind.__name__}(" in text
    for question in ("**What is sent", "**What it costs.**", "**When to "):
        assert question in text
    [picture] = re.findall(r"^!\[.+\]\((\S+)\)$", text, re.MULTILINE)
    assert picture == f"../images/protocols/{kind.name}.svg"
    assert (page.parent / picture).exists()
    overview = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    assert f"[`{kind.__name__}`](protocols/{kind.name}.md)" in overview


def test_english_is_plain():
    stilted = re.compile("so-manyth|has it not|stands? beside|bad luck|told otherwise|bounds beside")
    sources = [*PAGES, *ROOT.glob("src/**/*.py"), *ROOT.glob("examples/**/*.py")]
    found = [(name_of(path), words) for path in sources for words in stilted.findall(path.read_text(encoding="utf-8"))]
    assert not found


def test_citation_is_valid_and_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= set(citation)
    assert citation["version"] == bm.__version__
    assert "preferred-citation" not in citation
    [paper, *sources] = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Lee", "Schmid", "Yun"]
    assert paper["title"].startswith("Flooding with Absorption")
    # Every source of an algorithm is on the page of algorithms too.
    page = " ".join((ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8").split())
    assert [source["title"] for source in sources if source["title"] not in page] == []


def test_changelog_has_this_version_and_its_results():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(r"^## .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[0]
    assert bm.__version__.partition(".dev")[0] in section.splitlines()[0]
    assert "### Results" in section


def module_map(package):
    """What the docstring of a package lists on the left of two spaces, where modules stand there, and its modules."""
    lines = (ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or "").splitlines()
    there = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    left = [re.match(r"\s*(\w+/?(?:, \w+/?)*)  +\S", line) for line in lines]
    listed = [{*re.findall(r"\w+", found[1])} for found in left if found]
    return [names for names in listed if there & names], there - {"__init__"}


def test_module_maps_are_up_to_date():
    mapped = []
    for page in sorted((ROOT / "src" / "banditmesh").rglob("__init__.py")):
        rows, there = module_map(page.parent)
        if len(rows) > 2:
            mapped.append(page.parent.name)
            text = ast.get_docstring(ast.parse(page.read_text(encoding="utf-8")))
            assert not set().union(*rows) - there, f"{page} lists modules that are not there"
            assert not [name for name in sorted(there) if not re.search(rf"\b{name}\b", text)], f"{page} lacks modules"
    assert {"live", "http", "kernels", "studies", "web"} <= {*mapped}


def test_design_page_draws_the_layers_that_are_enforced():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^## Layers$.*?^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = project["tool"]["importlinter"]["contracts"]
    drawn = [re.match(r"(\w+(?: \| \w+)*)(?:  |\n|$)", line) for line in block.splitlines()]
    assert [one[1] for one in drawn if one] == contract["layers"][1:]


def test_walk_of_a_message_is_as_the_page_says():
    coins = [bm.arms.Gaussian(0.5, 1.0)] * 2
    run = read_run(bm.Problem(bm.networks.path(4), [[0], [0], [1], [0]], coins), "flooding(3)", horizon=9, seed=0)
    stepper, passed, folder = Stepper(run, 0, Books(run, 0).observers), set(), Path(bm.__file__).parent
    stepper.step()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(folder):
            passed.add(path.relative_to(folder).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for _ in range(4):
            stepper.step()
    finally:
        sys.setprofile(before)
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^## The walk of a message$.*?^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert passed == set(re.findall(r"^[\w/]+\.py", block, re.MULTILINE))
