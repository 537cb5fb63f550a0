"""The HTML report: one file, nothing from outside, and what it says comes from the numbers."""

import json
import re
from html.parser import HTMLParser

import pytest

import banditmesh as bm
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
    assert targets == ["words", "runs", "verdict", "figure5-published", "figure5-sound"]


def test_words_are_explained_before_they_are_used(both):
    text = re.sub(r"<style>.*?</style>", "", (both[0] / "report.html").read_text(), flags=re.DOTALL)
    words = ("group regret", "transmission", "replicate", "fwa", "published rules, sound rules")
    explained = {word: text.index(f"<dt>{word}</dt>") for word in words}
    assert all(text.index('<h2 id="runs">') > place for place in explained.values())
    # Every heading of a table has its sentence, and why values differ is said before each table of them.
    for section in text.split("<h2 ")[4:]:
        before, _, tables = section.partition('<div class="tables">')
        assert "arm instance is not public" in before.replace("\n", " ")
        assert "exact: equal. Where the paper gives no value there is a dash." in before
        for heading in set(re.findall(r"<th>(.*?)</th>", tables)) - {"protocol"}:
            assert f"{heading}: " in before
    assert "under the sound ones" in text.split('<h2 id="figure5-sound">')[1]


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
