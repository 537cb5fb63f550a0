"""The story: its numbers are those of runs, its claims hold on average, and it can be told with the keyboard."""

import re

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

import banditmesh as bm
from banditmesh.animations import stories
from banditmesh.cli import cli

#: Waits until one of some frames is shown. Not `wait_for_function`: the page lets no text be evaluated.
UNTIL_FRAME = """([first, last]) => new Promise((done) => {
    const look = () => {
        const { frame } = document.getElementById("stage").bmView.state;
        if (first <= frame && frame <= last) done(); else requestAnimationFrame(look);
    };
    look();
})"""


@pytest.fixture(scope="module")
def told():
    return bm.story()


def test_five_steps_of_two_sentences(told):
    assert [step.title for step in told.steps] == [
        "Four agents on a path",
        "An agent that can use it keeps it",
        "Together they learn faster",
        "A tree beats Flooding",
        "An arm changes",
    ]
    for step in told.steps:
        assert len(re.findall(r"[.](?= [A-Z]|$)", step.text)) == 2, step.text


def test_numbers_are_those_of_the_run_that_is_shown(told):
    learning, tree, changing = told.steps[2:]
    for step in (learning, tree, changing):
        for run in step.document["runs"]:
            assert f"{run['frames'][-1]['regret']:,.0f}" in step.text
    grid = bm.Problem.random(bm.networks.grid(4, 5), n_arms=12, per_agent=4, seed=0)
    result = bm.simulate(grid, "tree(pause=4)", horizon=200, seed=0, engine="reference")
    assert f"{result.regret[0, -1]:,.0f} instead of" in tree.text


@pytest.mark.parametrize("better, worse", [("flooding(4)", "none"), ("tree(pause=4)+growth(0.05)", "flooding(4)")])
def test_claims_hold_beyond_the_run_that_is_shown(better, worse):
    grid = bm.Problem.random(bm.networks.grid(4, 5), n_arms=12, per_agent=4, seed=0)
    rows = {"better": better, "worse": worse}
    found = bm.compare(grid, rows, horizon=200, replicates=5, seed=100).differences("worse")
    assert found["regret_high"]["better"] < 0


def test_verb_writes_the_file(tmp_path):
    answer = CliRunner().invoke(cli, ["story", str(tmp_path / "talk.html"), "--no-open"])
    assert answer.output == f"{tmp_path / 'talk.html'}\n"
    text = (tmp_path / "talk.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=.https?:", text)


def test_path_is_looked_at_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(stories, "_steps", lambda: pytest.fail("ran"))
    with pytest.raises(bm.BanditmeshError, match="there is no folder"):
        bm.story(tmp_path / "missing" / "story.html")


def test_story_is_told_with_the_keyboard(page, told, tmp_path):
    told.save(tmp_path / "story.html")
    page.goto((tmp_path / "story.html").as_uri())
    title = page.locator("#title")
    expect(title).to_have_text("Four agents on a path")
    for key, step in (("ArrowRight", 2), ("PageDown", 3), ("5", 5), ("ArrowLeft", 4), ("Home", 1), ("End", 5)):
        page.keyboard.press(key)
        expect(title).to_have_text(told.steps[step - 1].title)
        expect(page.locator("[aria-current=step]")).to_have_text(str(step))
    page.go_back()
    expect(title).to_have_text("Four agents on a path")


def test_step_plays_by_itself_and_shows_the_numbers_it_speaks_of(page, told, tmp_path):
    told.save(tmp_path / "story.html")
    page.goto((tmp_path / "story.html").as_uri() + "#4")
    # It goes on by itself; then it is taken to its end.
    page.evaluate(UNTIL_FRAME, [4, 200])
    page.evaluate("document.getElementById('stage').bmView.pause()")
    page.evaluate("document.getElementById('stage').bmView.show(200)")
    for number, run in enumerate(told.steps[3].document["runs"]):
        last = run["frames"][-1]
        expect(page.locator(f"[data-bm=sent-{number}]")).to_have_text(
            re.compile(f"{last['regret']:,.0f}.* {last['messages']:,} transmissions")
        )
    page.keyboard.press(" ")
    page.evaluate(UNTIL_FRAME, [0, 199])
