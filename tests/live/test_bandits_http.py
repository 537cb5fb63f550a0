"""Several bandits, segments and arms that come and go, as programs beside a node see them."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace
from sidecars import Beside, a_node
from test_metrics import read

from banditmesh.errors import ConfigError, InputError
from banditmesh.live import ArmSpec, AsyncClient, Client, config
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.names import Caps
from banditmesh.mesh.status import as_table, gather
from banditmesh.web.polling import Poller

ADS = BanditSpec(
    name="ads",
    arms=[ArmSpec("short", law="bernoulli", reward_range=(0.0, 1.0)), ArmSpec("long", law="bernoulli")],
    segments=["de", "fr"],
)
NEWS = BanditSpec(name="news", arms=[], new_arms=True)
TOML = """
mesh = "shop"
node = "a"
plain = true
{top}
[[bandits]]
name = "ads"
policy = "klucb"
segments = ["de", "fr"]
explore = 0.1
lapse_reward = 0.0

[[bandits.arms]]
name = "short"
law = "bernoulli"
reward_range = [0, 1]
prior = {{ count = 20, mean = 0.1 }}

[[bandits]]
name = "news"
new_arms = true
arms = []
{more}
"""


@pytest.fixture
def beside(tmp_path):
    with Beside(a_node(tmp_path, bandits=[ADS, NEWS], caps=Caps(arms=20, segments=3))) as beside:
        yield beside


@pytest.fixture
def client(beside):
    with Client(beside.url) as node:
        yield node


def arms(client, bandit, segment=None):
    """Arms of a bandit, and how many own observations they have."""
    [found] = [one for one in client.state()["agents"] if (one["bandit"], one["segment"]) == (bandit, segment)]
    return {arm["name"]: arm["own_count"] for arm in found["arms"]}


# Choosing and observing


def test_a_choice_names_its_bandit_and_its_segment(beside, client):
    choice = client.choose(bandit="ads", segment="de")
    assert (choice.arm, choice.segment) == ("short", "de")
    assert client.observe(choice, 1.0) == "counted"
    assert (client.choose(bandit="ads", segment="us").segment, client.choose(bandit="ads").segment) == (None, None)
    assert client.choose(segment="de").segment == "de"  # of the default bandit, which lists none
    assert arms(client, "ads", "de") == {"short": 1, "long": 0}
    _, _, plain = beside.ask("POST", "/v1/choose", {"bandit": "ads"})
    _, _, unlisted = beside.ask("POST", "/v1/choose", {"bandit": "ads", "segment": "us"})
    assert ("segment" in plain, unlisted["segment"]) == (False, None)


def test_an_asynchronous_program_can_do_the_same(beside):
    async def main():
        async with AsyncClient(beside.url) as node:
            choice = await node.choose(["short"], bandit="ads", segment="fr")
            assert await node.observe(choice, 1.0) == "counted"
            assert await node.observe(None, 1.0, arm="long", key="k", bandit="ads", segment="fr") == "counted"
            await node.add_arm("wide", bandit="ads")
            await node.remove_arm("short", bandit="ads")
            return await node.state()

    [_, _, agent] = asyncio.run(main())["agents"]
    assert {arm["name"]: arm["own_count"] for arm in agent["arms"]} == {"long": 1, "wide": 0}


def test_rewards_without_a_ticket_name_bandit_and_segment(client):
    assert client.observe(None, 1.0, arm="short", key="k", bandit="ads", segment="de") == "counted"
    assert client.observe(None, 1.0, arm="short", key="k", bandit="ads", segment="de") == "already_counted"
    [one, two] = client.observe_many(
        [
            {"reward": 0.5, "arm": "short", "key": "l", "bandit": "ads"},
            {"reward": 2.0, "arm": "short", "key": "m", "bandit": "ads", "segment": "de"},
        ]
    )
    assert (one["answer"], two["answer"]) == ("counted", "refused")
    assert (arms(client, "ads"), arms(client, "ads", "de")) == ({"short": 1, "long": 0},) * 2
    choice = client.choose()
    with pytest.raises(InputError, match="must have neither bandit nor segment"):
        client.observe(choice, 1.0, bandit="ads")


def test_refusals_say_what_there_is_and_are_counted(client):
    for ask, line in (
        (partial(client.choose, bandit="adds"), "bandit must be one of node 'a'"),
        (partial(client.choose, ["red"], bandit="ads"), "among must name some of the arms of bandit 'ads'"),
        (partial(client.choose, bandit="news"), "bandit 'news' has no arms to choose from"),
        (partial(client.observe, None, 1.0, arm="green", bandit="ads"), "a reward must be of an arm"),
        (partial(client.add_arm, "x", bandit="adds"), "bandit must be one of node 'a'"),
        (partial(client.remove_arm, "x", bandit="ads"), "there is no arm 'x'"),
        (partial(client.remove_arm, "x", bandit="adds"), "bandit must be one of node 'a'"),
        (partial(client.choose, [f"{n}" for n in range(30)], bandit="news"), "at most caps.arms = 20 are allowed"),
    ):
        with pytest.raises(InputError) as refused:
            ask()
        assert line in str(refused.value)
        assert "\n" not in str(refused.value)
    for segment in "xyz":
        client.choose(segment=segment)
    with pytest.raises(InputError, match="at most 3 segments"):
        client.choose(segment="w")
    counters = client.state()["counters"]
    assert (counters["refused_segments"], counters["refused_new_arms"]) == (1, 1)


# Arms that come and go


def test_a_choice_may_name_arms_that_are_not_there_yet(client):
    choice = client.choose(["one", "two"], bandit="news")
    client.observe(choice, 1.0)
    assert client.choose(["two", "three"], bandit="news", segment="de").arm == "two"
    assert arms(client, "news") == {"one": 1, "two": 0, "three": 0}
    assert list(arms(client, "news", "de")) == ["one", "two", "three"]
    assert client.choose(["one"], bandit="news").arm == "one"


def test_new_arms_are_like_the_first_one(client):
    client.add_arm({"name": "zero", "law": "bernoulli", "reward_range": [0, 1]}, bandit="news")
    choice = client.choose(["one"], bandit="news")
    with pytest.raises(InputError, match="must be from 0 to 1, got 2"):
        client.observe(choice, 2.0)


def test_single_arms_come_and_go_and_are_known_when_they_are_back(client):
    client.add_arm("green")
    client.observe(None, 1.0, arm="green", key="k")
    client.remove_arm("green")
    assert [arm["name"] for arm in client.state()["arms"]] == ["red", "blue"]
    client.add_arm({"name": "green", "reward_range": [0, 1]})
    assert [(arm["name"], arm["own_count"]) for arm in client.state()["arms"]][-1] == ("green", 1)
    client.add_arm({"name": "green", "reward_range": [0, 9]})  # describes it anew
    assert len(client.state()["arms"]) == 3
    client.set_arms(["wide"], bandit="ads")
    assert list(arms(client, "ads")) == ["wide"]


def test_arms_that_a_choice_made_outlive_other_changes_but_not_a_reload(beside, client):
    client.choose(["one"], bandit="news")
    client.add_arm("green")
    assert list(arms(client, "news")) == ["one"]
    read_again = replace(beside.node.config, bandits=[ADS, NEWS])
    beside.do(beside.node.reload, read_again)
    assert list(arms(client, "news")) == []


def test_a_reload_may_change_arms_and_segments_of_bandits_and_not_how_they_choose(beside, client):
    old = beside.node.config
    more = replace(ADS, arms=[*ADS.arms, ArmSpec("wide", law="bernoulli")], segments=None)
    beside.do(beside.node.reload, replace(old, bandits=[more]))
    assert client.choose(bandit="ads", segment="us").segment == "us"
    assert list(arms(client, "ads")) == ["short", "long", "wide"]
    with pytest.raises(InputError, match="explore cannot change while a node runs"):
        beside.do(beside.node.reload, replace(old, bandits=[replace(more, explore=0.5)]))
    with pytest.raises(InputError, match="bandit must be one of"):
        client.choose(bandit="news")


# Looking


def test_metrics_are_by_bandit_alone(client):
    for segment in ("de", "fr"):
        client.observe(client.choose(bandit="ads", segment=segment), 1.0)
    client.choose(bandit="ads")
    values = read(client.metrics())
    assert values["banditmesh_bandit_segments", "bandit=ads"] == 2
    assert values["banditmesh_bandit_observations", "bandit=ads", "source=own"] == 2
    assert values["banditmesh_bandit_open_choices", "bandit=ads"] == 1
    assert values["banditmesh_bandit_observations", "bandit=default", "source=own"] == 0
    assert values["banditmesh_arms",] == 2 + 3 * 2
    assert not any(label.endswith(("=de", "/de")) or "segment=" in label for key in values for label in key[1:])


def test_status_and_page_have_bandits_and_segments(beside, client):
    client.observe(client.choose(bandit="ads", segment="de"), 1.0)
    [row] = gather([beside.url])
    assert [tuple(one) for one in row.agents] == [
        ("ads", "", 0, 2, ""), ("news", "", 0, 0, ""), ("ads", "de", 1, 2, "short"),
    ]  # fmt: skip
    lines = as_table([row]).splitlines()
    assert [line.split()[:4] for line in lines[2:3]] == [["ads", "de", "1", "2"]]
    poller = Poller({beside.url: None})
    poller.poll()
    poller.close()
    assert poller.arms == ["ads, de: short"]


# The file


def load(tmp_path, top="", more=""):
    path = tmp_path / "node.toml"
    path.write_text(TOML.format(top=top, more=more))
    return config.load(path)


def test_a_file_describes_bandits(tmp_path):
    found = load(tmp_path)
    [default, ads, news] = found.bandit_specs()
    assert (default.name, default.arms, ads.name, ads.policy.name, ads.segments) == (
        "default", [], "ads", "klucb", ["de", "fr"],
    )  # fmt: skip
    assert (ads.explore, ads.lapse_reward, ads.arms[0].prior.count, news.new_arms) == (0.1, 0.0, 20, True)


@pytest.mark.parametrize(
    "top, more, line",
    [
        ('policy = "klucb"', "", "policy is of the bandit 'default', which has no arms; put it into [[bandits]]"),
        ("", '[[bandits]]\nname = "ads"\narms = []', "[[bandits]]: names must differ, got 'ads' more than once"),
        ("", '[[bandits]]\nname = "default"\narms = []', "'default' more than once; its keys are those in no table"),
        ("", "[[bandits]]\narms = []", "[[bandits]] 3: name is required, got none"),
        ("", '[[bandits]]\nname = "x"\narms = []\ncolour = 1', "[[bandits]] 3: colour is an unknown key"),
        ("", '[[bandits]]\nname = "x"\narms = []\nmemory = "some"', 'memory must be "everything" or like'),
        ("", '[[bandits]]\nname = "x"\npolicy = "ucb-v"\narms = []', "[[bandits]] x: policy 'ucb-v' cannot run live"),
        ("", '[[bandits]]\nname = "x"\narms = [{name = "y", sgima = 1}]', "sgima is an unknown key"),
        ("", f'[[bandits]]\nname = "{"x" * 100}"\narms = [{{name = "{"y" * 40}"}}]', "at most 128 bytes together"),
        ("", f'[[bandits]]\nname = "x"\nsegments = ["{"y" * 120}"]\narms = [{{name = "abcdefg"}}]', "at most 128"),
        ("", '[[bandits]]\nname = "x"\nlapse_reward = 2\narms = [{name = "y", reward_range = [0, 1]}]',
         "lapse_reward must be a reward that each arm may pay"),
        ('arms = [{name = "a/b/c"}]', "", "must not have exactly two '/' in its name, got 'a/b/c'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_bandits_is_a_line(tmp_path, top, more, line):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, top, more)
    assert any(line in problem for problem in refused.value.problems), refused.value.problems
