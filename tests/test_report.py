"""The HTML report: one file, nothing from outside, and what it says comes from the numbers."""

import json
import re
import shlex
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

import banditmesh as bm
from banditmesh.cli import cli
from banditmesh.comparisons.report import verdict_lines
from banditmesh.paper.report import summary_lines, write_paper


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    again = [bm.reproduce("5", horizon=6, replicates=2, rules=rules) for rules in ("published", "sound")]
    return folder, write_paper(again, folder, "banditmesh paper <&>")


class Page(HTMLParser):
    """Collects what a page asks for, and whether its elements are closed."""

    def __init__(self):
        super().__init__()
        self.asked, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.asked += [value for name, value in attributes if name in ("src", "href", "data", "action")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_self_contained_and_well_formed(both):
    text = (both[0] / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    pictures = [value for value in page.asked if not value.startswith("#")]
    assert len(pictures) == 4
    assert all(value.startswith("data:image/svg+xml;base64,") for value in pictures)
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)
    assert "@import" not in text


def test_the_report_states_rules_seeds_versions_and_command(both):
    text = (both[0] / "report.html").read_text()
    for words in ("published and sound rules", "6 rounds", f"banditmesh {bm.__version__}", "cannot be compared"):
        assert words in text
    assert "banditmesh paper &lt;&amp;&gt;" in text
    assert "<td>Seeds</td><td>0;" in text
    assert "highest upper confidence bound (UCB, alpha 3)" in text


def test_contents_lead_to_every_section(both):
    text = (both[0] / "report.html").read_text()
    targets = re.findall(r'href="#([^"]+)"', text)
    assert targets == re.findall(r'<h2 id="([^"]+)">', text)
    assert targets == ["verdict", "figure5-published", "figure5-sound", "claims", "runs", "words"]


def test_words_are_explained_last_and_columns_above_their_tables(both):
    text = re.sub(r"<style>.*?</style>", "", (both[0] / "report.html").read_text(), flags=re.DOTALL)
    words = ("group regret", "transmission", "replicate", "fwa", "published rules, sound rules")
    assert all(text.index(f"<dt>{word}</dt>") > text.index('<h2 id="words">') for word in words)
    # Every heading of a table has its sentence, and why values differ is said before each table of them.
    for section in text.split("<h2 ")[2:4]:
        before, _, tables = section.partition('<div class="tables">')
        assert "arm instance is not public" in before.replace("\n", " ")
        assert "exact: equal. Where the paper gives no value there is a dash." in before
        for heading in set(re.findall(r"<th>(.*?)</th>", tables)) - {"protocol"}:
            assert f"{heading}: " in before
    assert "under the sound ones" in text.split('<h2 id="figure5-sound">')[1].split("<h2 ")[0]


def test_files_of_two_rule_sets_are_told_apart(both):
    names = {path.name for path in both[1]}
    for rules in ("published", "sound"):
        for kind in ("csv", "png", "svg"):
            assert f"figure5-{rules}.{kind}" in names
    assert all(path.stat().st_size > 0 for path in both[1])
    told = json.loads((both[0] / "results.json").read_text())
    assert set(told) == {"rules", "published", "sound"}
    assert told["sound"]["figure5"]["dynamic-er"]["fwa"]["regret"]["mean"] > 0


def test_the_verdict_follows_the_numbers(both):
    told = json.loads((both[0] / "results.json").read_text())["published"]
    text = (both[0] / "report.html").read_text()
    for claim in told["claims"]:
        assert f'<span class="verdict {claim["verdict"]}">' in text
    told["claims"] = [{"verdict": verdict} for verdict in ("holds", "holds", "open")]
    assert summary_lines(told)[0] == "By the published rules, of 3 claims 2 hold, 1 remain open."
    told["exact_counts_agree"] = False
    assert "differ from the published ones" in summary_lines(told)[1]


@pytest.mark.parametrize("own, words", [(0.95, "each protocol's own regret"), (0.5, "exchanged")])
def test_the_nearer_assignment_of_figure_6_is_told(own, words):
    row = {"greedy": {"r_squared": own, "r_squared_exchanged": 0.8}, "published": 0.95}
    told = {"rules": "published", "comparable": True, "exact_counts_agree": None, "claims": []}
    assert words in summary_lines({**told, "figure6": {"flooding": row, "fwa": row}})[1]


def test_the_same_reproduction_gives_the_same_report(tmp_path):
    again = bm.reproduce("5", horizon=3, replicates=1)
    pages = [write_paper([again], tmp_path / name)[0].read_bytes() for name in ("one", "two")]
    assert pages[0] == pages[1]


@pytest.fixture(scope="module")
def ring():
    return bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)


def check_whole(path, sections):
    """A report that is well-formed, asks for nothing, and has these sections in this order."""
    text = path.read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(value.startswith(("#", "data:image/svg+xml;base64,")) for value in page.asked)
    assert re.findall(r'<h2 id="([^"]+)">', text) == sections
    return text


def columns_without_meaning(text):
    """Headings of the first table that are explained nowhere."""
    heads = re.findall(r"<th>(.+?)</th>", text.partition("<table>")[2].partition("</tr>")[0])
    return set(heads) - set(re.findall(r"<dt>(.+?)</dt>", text))


USUAL = ["verdict", "figures", "tables", "runs", "words"]


def test_a_comparison_is_reported_with_its_verdict_first(ring, tmp_path):
    compared = bm.compare(ring, ["none", "flooding(4)"], horizon=200, replicates=5, seed=0, engine="reference")
    compared.report(tmp_path / "one.html", repr(ring), "banditmesh compare <&>")
    text = check_whole(tmp_path / "one.html", USUAL)
    assert text.index("flooding has the least group regret") < text.index("<img")
    assert "More regret than flooding, with 95 % confidence: none." in text
    assert all(words in text for words in ("8 agents, 8 links", "banditmesh compare &lt;&amp;&gt;", "UCB(alpha=3.0)"))
    assert columns_without_meaning(text) == set()
    compared.report(tmp_path / "two.html", repr(ring), "banditmesh compare <&>")
    assert (tmp_path / "two.html").read_text() == text


@pytest.mark.parametrize(("factor", "told"), [(1.04, True), (1.06, False)])
def test_a_verdict_names_what_sends_less_for_little_more_regret(ring, factor, told):
    compared = bm.compare(ring, ["flooding(4)", "none"], horizon=5, replicates=2, seed=0, engine="reference")
    near = replace(compared.results["none"], regret=compared.results["flooding"].regret * factor)
    lines = verdict_lines(bm.Comparison({**compared.results, "none": near}))
    line = "Of those with at most 5% more regret, none sends the fewest: 0 transmissions, 0.0% of what flooding sends."
    assert (line in lines) is told


def test_one_replicate_is_no_evidence(ring):
    compared = bm.compare(ring, ["flooding(4)", "none"], horizon=5, replicates=1, seed=0, engine="reference")
    assert verdict_lines(compared)[1] == "With one replicate nothing can be said about chance; run more."


def test_a_frontier_is_reported_with_its_advice_first(ring, tmp_path):
    found = bm.frontier(ring, protocols=["irs", "fwa(2)"], horizon=20, replicates=3, seed=0, engine="reference")
    found.report(tmp_path / "one.html", "banditmesh frontier", '[protocol]\nname = "irs"\n')
    text = check_whole(tmp_path / "one.html", USUAL)
    assert text.index(found.advice.splitlines()[0][:40]) < text.index("<img")
    assert "name = &quot;irs&quot;" in text
    assert columns_without_meaning(text) == set()


def test_a_study_is_reported_with_the_spec_that_repeats_it(tmp_path):
    spec = bm.parse_spec(
        """
        horizon = 10
        replicates = 2
        network = {name = "ring"}
        arms = {n_arms = 4, per_agent = 2}
        sweep.protocol.name = ["none", "irs"]
        sweep.network.n = [5, 6]
        """
    )
    study = bm.run_study(spec, tmp_path / "study", workers=1)
    study.report(tmp_path / "one.html")
    text = check_whole(tmp_path / "one.html", USUAL)
    assert text.count(": least group regret") == 2  # regrets of two networks are not compared
    assert columns_without_meaning(text) == set()
    assert bm.parse_spec(unescape(text.partition("<pre>")[2].partition("</pre>")[0])).digest == spec.digest


def test_the_command_line_writes_reports_that_say_how_to_repeat_them(tmp_path):
    path = tmp_path / "one.html"
    small = ["--network", "ring:6", "--arms", "4", "--per-agent", "2", "--horizon", "9", "--replicates", "2"]
    asked = ["compare", *small, "--protocols", "irs,fwa(2)", "--outages", "0.1", "0.5", "--report", str(path)]
    done = CliRunner().invoke(cli, asked, prog_name="banditmesh", obj={})
    assert done.exit_code == 0, done.output
    words = shlex.split(unescape(re.search("<td>Command</td><td>(.*?)</td>", path.read_text())[1]))
    assert words[0] == "banditmesh"
    assert sorted(words[1:]) == sorted(asked)
    again = CliRunner().invoke(cli, words[1:], prog_name="banditmesh", obj={})
    assert again.stdout == done.stdout


def test_a_report_is_refused_before_anything_runs(tmp_path):
    for verb in (["compare"], ["frontier"], ["run", "none.toml", "--out", str(tmp_path)]):
        done = CliRunner().invoke(cli, [*verb, "--report", str(tmp_path / "one.pdf")], obj={})
        assert "--report must name a .html file" in str(done.exception)
