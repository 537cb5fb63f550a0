"""Documents of runs and messages: every hop by hand, sizes within bounds, names that mean harm, and the file plays."""

import json
import re

import networkx as nx
import numpy as np
import pytest
from playwright.sync_api import expect

import banditmesh as bm
from banditmesh import animations, plots
from banditmesh.animations import (
    GALLERY,
    Animation,
    Recorder,
    as_html,
    as_json,
    load_document,
    message_document,
    pictures,
    recorder,
    sites,
    trace_document,
)
from banditmesh.animations.hearing import hear
from banditmesh.networks.communities import communities
from banditmesh.protocols.notation import as_protocol
from banditmesh.sim.simulation import Round

ARMS = {"red": bm.arms.Bernoulli(0.7), "blue": bm.arms.Bernoulli(0.4)}
HOSTILE = "</script><img src=x onerror=alert()>&\u2028\ud800"

#: How many colours the first canvas has.
COLOURS = """() => {
    const canvas = document.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
}"""


def held(network, holders):
    """All agents have blue, some also red."""
    return bm.Problem(network, {v: ["red", "blue"] if v in holders else ["blue"] for v in network}, ARMS)


def copies(journey):
    return [(event.sender, event.receiver, event.fate, event.learned) for event in journey.hops]


# Following a message: every hop by hand.


def test_absorbing_agent_ends_the_way_along_a_path():
    problem = held(nx.path_graph(5), {0, 2, 4})
    assert copies(bm.follow(problem, "fwa(4)", 0, "red")) == [(0, 1, "relayed", False), (1, 2, "absorbed", True)]
    assert copies(bm.follow(problem, "flooding(4)", 0, "red")) == [
        (0, 1, "relayed", False),
        (1, 2, "relayed", True),
        (2, 3, "relayed", False),
        (3, 4, "expired", True),
    ]


def test_ring_of_four_ends_in_duplicates():
    journey = bm.follow(held(nx.cycle_graph(4), {0}), "flooding(3)", 0, "red")
    assert copies(journey) == [
        (0, 1, "relayed", False),
        (0, 3, "relayed", False),
        (1, 2, "relayed", False),
        (3, 2, "duplicate", False),
        (2, 3, "duplicate", False),
    ]
    assert journey.words() == [
        "hop 1: agents 1 and 3 relay it; 2 transmissions so far",
        "hop 2: agent 2 relays it; agent 2 drops a duplicate; 4 transmissions so far",
        "hop 3: agent 3 drops a duplicate; 5 transmissions so far",
    ]


def test_published_rules_send_the_message_back():
    journey = bm.follow(held(nx.path_graph(2), {0, 1}), "flooding(2)", 0, "red", rules="published")
    assert [(event.sender, event.receiver) for event in journey.hops] == [(0, 1), (1, 0)]


def test_nothing_is_sent_alone_and_to_nobody():
    for problem, protocol in ((held(nx.path_graph(3), {0}), "none"), (held(nx.empty_graph(1), {0}), "fwa(4)")):
        journey = bm.follow(problem, protocol, 0, "red")
        assert journey.n_sent == 0
        assert journey.words() == ["nothing is sent"]
        assert message_document(journey)["panels"][0]["steps"] == []


def test_lost_and_late_copies_are_followed_to_their_end():
    problem = held(nx.path_graph(4), {0, 3})
    lost = bm.follow(problem, "fwa(4)", 0, "red", faults=bm.Faults(loss=1.0))
    assert copies(lost) == [(0, 1, "lost", False)]
    late = bm.follow(problem, "fwa(4)", 0, "red", faults=bm.Faults(delay=2))
    assert [(event.receiver, event.arrival) for event in late.hops] == [(1, 3), (2, 6), (3, 9)]
    assert late.words()[1].startswith("hop 2: agent 2 relays it")


def test_dynamic_network_is_followed_while_it_lasts():
    graphs = [nx.path_graph(3), nx.Graph(), nx.path_graph(3)]
    graphs[1].add_nodes_from(range(3))
    problem = bm.Problem(bm.networks.GraphSequence(graphs), [["red"]] * 3, {"red": ARMS["red"]})
    journey = bm.follow(problem, "flooding(3)", 0, "red")
    # In the second round agent 1 has nobody to relay to.
    assert copies(journey) == [(0, 1, "relayed", True)]
    short = bm.Problem(bm.networks.GraphSequence(graphs[:1]), [["red"]] * 3, {"red": ARMS["red"]})
    assert copies(bm.follow(short, "flooding(3)", 0, "red")) == [(0, 1, "queued", True)]
    assert message_document(journey)["panels"][0]["steps"][0]["links"] == [0, 1, 1, 2]


@pytest.mark.parametrize("rules", ["sound", "published"])
@pytest.mark.parametrize(
    "text", ["fwa(3)", "flooding(3)", "gossip(3)", "probabilistic(3, stop=0.5)", "irs", "fwa(3)+growth(0.5)"]
)
def test_message_travels_as_in_a_run_of_all(text, rules):
    """The journey is that of the event log of a whole run: the first message of its origin."""
    problem = bm.Problem.random(nx.random_regular_graph(3, 10, seed=1), n_arms=4, per_agent=2, seed=0)
    trace = bm.simulate(problem, text, horizon=4, seed=5, trace=True, rules=rules).trace
    for origin in (0, 7):
        arm = problem.arms[problem.arm_set(origin)[0]]
        wanted = [event for event in trace if (event.origin, event.sequence) == (origin, 1)]
        assert sorted(wanted) == sorted(bm.follow(problem, text, origin, arm, seed=5, rules=rules).hops)


def test_gallery_shows_that_absorption_sends_less():
    assert list(GALLERY) == ["path", "star", "ring", "grid", "communities", "er"]
    for case in GALLERY.values():
        flooding, fwa = case.journeys()
        assert 0 < fwa.n_sent < flooding.n_sent
        assert len(as_json(message_document(flooding, fwa))) < 50_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tree", 0, "red"), "hop by hop, got 'tree"),
        (("centralised", 0, "red"), "hop by hop, got 'centralised'"),
        (("fwa(2)", 9, "red"), "origin must be an agent of the problem, got 9"),
        (("fwa(2)", [], "red"), "origin must be an agent"),
        (("fwa(2)", 1, "red"), r"arm must be one of agent 1's arms \['blue'\], got 'red'"),
        (("fwaa(2)", 1, "red"), "did you mean 'fwa'"),
    ],
)
def test_what_cannot_be_followed_is_one_line(arguments, words):
    with pytest.raises(bm.InputError, match=words):
        bm.follow(held(nx.path_graph(2), {0}), *arguments)


def test_settings_that_are_none_are_refused_as_by_a_run():
    problem = held(nx.path_graph(2), {0})
    for settings, words in (({"faults": 3}, "faults must be"), ({"rules": "odd"}, "rules"), ({"seed": -1}, "seed")):
        with pytest.raises(bm.InputError, match=words):
            bm.follow(problem, "irs", 0, "red", **settings)
    with pytest.raises(bm.InputError, match="problem must be a Problem, got int"):
        bm.follow(3, "irs", 0, "red")


# Documents of runs.


def state_of(document):
    """What the last frame shows, from the changes of all."""
    n = len(document["network"]["names"])
    regret, heard, loads = [0.0] * n, [[0] * n for _ in document["arms"]], {}
    links = set(zip(*[iter(document["network"]["links"])] * 2, strict=True))
    for frame in document["frames"]:
        for node, value in zip(*[iter(frame["agents"])] * 2, strict=True):
            regret[node] = value
        for counts, changes in zip(heard, frame["heard"], strict=True):
            for node, value in zip(*[iter(changes)] * 2, strict=True):
                counts[node] = value
        for i, j, sent in zip(*[iter(frame["traffic"])] * 3, strict=True):
            loads[i, j] = sent / frame["rounds"]
        links |= set(zip(*[iter(frame["up"])] * 2, strict=True))
        links -= set(zip(*[iter(frame["down"])] * 2, strict=True))
    return regret, heard, loads, links


def recorded(problem, text, horizon, **settings):
    simulation = bm.Simulation(problem, text, horizon=horizon, seed=3, link_traffic=True, agents=True)
    made = Recorder(problem, horizon=horizon, label=text, **settings)
    while not simulation.is_over:
        made.add(simulation.step())
    return made.document(), simulation.run()


@pytest.mark.parametrize("text", ["fwa(3)", "tree+growth(0.5)"])
def test_frames_add_up_to_the_result(text):
    problem = bm.Problem.random(nx.random_regular_graph(3, 10, seed=1), n_arms=4, per_agent=2, seed=0)
    document, result = recorded(problem, text, 20, arms=[2, 0])
    regret, heard, loads, links = state_of(document)
    assert [frame["round"] for frame in document["frames"]] == list(range(1, 21))
    assert [frame["regret"] for frame in document["frames"]] == result.regret[0].tolist()
    assert [frame["messages"] for frame in document["frames"]] == result.transmissions[0].tolist()
    np.testing.assert_allclose(regret, result.agent_regret[0], rtol=1e-4)
    last = dict(zip(result.links, result.link_traffic[0, -1].tolist(), strict=True))
    assert {(i, j): n for (i, j), n in loads.items() if n} == {
        (i, j): n + last[j, i] for (i, j), n in last.items() if i < j and n + last[j, i]
    }
    assert links == {tuple(pair) for pair in problem.network.pairs().tolist()}
    assert document["holders"] == [list(problem.holders[2]), list(problem.holders[0])]
    if text == "fwa(3)":
        trace = bm.simulate(problem, text, horizon=20, seed=3, trace=True).trace
        pairs = {(event.receiver, event.origin) for event in trace if event.learned and event.arm == 2}
        assert heard[0] == [sum(receiver == v for receiver, _ in pairs) for v in range(10)]


def heard_of(frames, horizon, n_agents):
    """Of how many holders each agent has learned, round by round."""
    changes = {frame["round"]: frame["heard"] for frame in frames}
    now, found = [0] * n_agents, []
    for t in range(1, horizon + 1):
        [pairs] = changes.get(t, [[]])
        for agent, number in zip(pairs[::2], pairs[1::2], strict=True):
            now[agent] = number
        found.append(list(now))
    return found


@pytest.mark.parametrize("text", ["irs", "fwa(3)", "flooding(4)", "fwa(4)+growth(0.5)", "flooding(3)+contested"])
@pytest.mark.parametrize("policy", ["ucb(1)", "ucb(1)+discount(0.8)"])
def test_a_plan_says_who_has_heard_of_whom_as_stepping_does(text, policy):
    rng = np.random.default_rng(0)
    for seed in range(5):
        # Some of these fall into components, and have agents without any link.
        n_agents, n_arms, horizon = int(rng.integers(2, 9)), int(rng.integers(1, 4)), 25
        network = nx.gnp_random_graph(n_agents, 0.4, seed=seed)
        problem = bm.Problem.random(network, n_arms=n_arms, per_agent=int(rng.integers(1, n_arms + 1)), seed=seed)
        settings = {"policy": policy, "horizon": horizon, "seed": seed, "every": rng.integers(1, 4, n_agents).tolist()}
        for arm in [one for one in problem.arms if problem.holders[one]]:
            recorder, simulation = (
                Recorder(problem, horizon=horizon, arms=[arm]),
                bm.Simulation(problem, text, **settings),
            )
            while not simulation.is_over:
                recorder.add(simulation.step())
            # No pull may be stepped through.
            found = hear(problem, as_protocol(text), arm, max_pulls=0, **settings)
            theirs = recorder.document()
            assert [found[key] for key in ("arms", "holders")] == [theirs[key] for key in ("arms", "holders")]
            assert heard_of(found["frames"], horizon, n_agents) == heard_of(theirs["frames"], horizon, n_agents)


def test_what_is_not_planned_is_stepped_through_or_left():
    problem = bm.Problem.random(bm.networks.ring(4), n_arms=2, per_agent=2, seed=0)
    settings = {"horizon": 20, "seed": 0}
    window = {**settings, "policy": "ucb(1)+window(5)"}
    assert hear(problem, bm.FwA(2), 0, max_pulls=0, **window) is None
    found = hear(problem, bm.FwA(2), 0, max_pulls=80, **window)
    assert heard_of(found["frames"], 20, 4)[-1] == [2, 2, 2, 2]
    dynamic = bm.Problem.random(bm.networks.EdgeMarkovian(bm.networks.ring(4), 0.5, 0.5), n_arms=2, per_agent=2, seed=0)
    lossy = {**settings, "faults": bm.Faults(loss=0.5)}
    assert hear(dynamic, bm.FwA(2), 0, max_pulls=80, **settings) is None
    assert hear(problem, bm.FwA(2), 0, max_pulls=80, **lossy) is None
    assert hear(problem, bm.FwA(2), 0, max_pulls=80, rules="published", **settings) is None
    assert hear(problem, bm.Gossip(2), 0, max_pulls=80, **settings) is None


def test_links_of_a_dynamic_network_appear_and_vanish():
    problem = bm.Problem.random(bm.networks.EdgeMarkovian(nx.cycle_graph(8), 0.05, 0.2), n_arms=2, per_agent=1)
    simulation = bm.Simulation(problem, "irs", horizon=12, seed=3)
    made = Recorder(problem, horizon=12)
    while not simulation.is_over:
        last = simulation.step()
        made.add(last)
        assert state_of(made.document())[3] == set(last.links)


def test_document_is_there_before_the_first_round_and_grows_by_changes_only():
    problem = held(nx.path_graph(4), {0, 3})
    made = Recorder(problem, horizon=100)
    before = made.document()
    assert before["frames"] == []
    assert before["network"]["links"] == [0, 1, 1, 2, 2, 3]
    simulation = bm.Simulation(problem, "flooding(3)", horizon=100, seed=0)
    for _ in range(100):
        made.add(simulation.step())
    assert made.frames_since(90) == made.document()["frames"][90:]
    # From some round on every link carries the same in each round.
    assert all(frame["traffic"] == [] for frame in made.frames_since(5))


def test_rounds_are_thinned_so_that_the_document_is_bounded(monkeypatch):
    monkeypatch.setattr(recorder, "MAX_NUMBERS", 1500)
    problem = bm.Problem.random(nx.random_regular_graph(4, 20, seed=1), n_arms=4, per_agent=2, seed=0)
    document, result = recorded(problem, "gossip(3)", 200)
    frames = document["frames"]
    size = sum(len(frame[key]) for frame in frames for key in ("agents", "traffic", "up", "down"))
    assert size < 1500 + 200  # all that one frame can change
    assert sum(frame["rounds"] for frame in frames) == 200
    assert frames[-1]["messages"] == result.transmissions[0, -1]
    assert "some frames cover several rounds" in " ".join(document["notes"])
    np.testing.assert_allclose(state_of(document)[0], result.agent_regret[0], rtol=1e-4)
    monkeypatch.setattr(recorder, "MAX_FRAMES", 30)
    assert len(recorded(problem, "none", 200)[0]["frames"]) <= 30


def test_rounds_after_a_cancelled_run_are_closed_by_finish():
    problem = held(nx.path_graph(2), {0})
    made = Recorder(problem, horizon=5000)
    made.add(bm.Simulation(problem, "irs", horizon=5000, seed=0).step())
    assert made.n_frames == 0
    made.finish()
    made.finish()
    assert [frame["rounds"] for frame in made.frames_since(0)] == [1]


def test_large_network_is_drawn_as_its_communities(monkeypatch):
    monkeypatch.setattr(sites, "MAX_AGENTS", 20)
    network = nx.connected_caveman_graph(5, 8)
    network.add_nodes_from(["alone", "too"])
    problem = bm.Problem.random(network, n_arms=4, per_agent=2, seed=0)
    document, result = recorded(problem, "fwa(2)", 5)
    assert document["network"]["sizes"] == [8] * 5 + [2]
    # Caves lie on a ring, each linked with the next one.
    assert sorted(zip(*[iter(document["network"]["links"])] * 2, strict=True)) == [
        (0, 1),
        (0, 4),
        (1, 2),
        (2, 3),
        (3, 4),
    ]
    load = document["frames"][-1]["traffic"]
    sent = dict(zip(result.links, result.link_traffic[0, -1].tolist(), strict=True))
    for i, j, n in zip(*[iter(load)] * 3, strict=True):
        assert n == sum(k for (one, other), k in sent.items() if {cave(one), cave(other)} == {i, j})


def cave(agent):
    return agent // 8 if isinstance(agent, int) else 5


def test_grid_falls_into_communities_that_are_found_again():
    pairs = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20)).edges())
    found = communities(400, pairs)
    assert 5 <= found.max() + 1 <= 20
    assert (found == communities(400, pairs)).all()
    within = (found[pairs[:, 0]] == found[pairs[:, 1]]).mean()
    assert within > 0.8
    assert communities(3, np.empty((0, 2), int)).tolist() == [0, 1, 2]


def test_agents_are_grouped_by_their_places_where_communities_are_too_many(monkeypatch):
    monkeypatch.setattr(sites, "MAX_AGENTS", 40)
    monkeypatch.setattr(sites, "MAX_GROUPS", 4)
    problem = bm.Problem.random(bm.networks.grid(7, 9), n_arms=4, per_agent=2, seed=0)
    document, result = recorded(problem, "fwa(2)", 5)
    sizes = document["network"]["sizes"]
    assert len(sizes) == 4
    assert sum(sizes) == 63
    assert max(sizes) - min(sizes) <= 1
    assert "63 agents are drawn as 4 groups" in document["notes"][0]
    regret = state_of(document)[0]
    assert np.dot(regret, sizes) == pytest.approx(result.regret[0, -1], rel=1e-3)
    assert document["frames"][-1]["messages"] == result.transmissions[0, -1]
    # Of one message only those whom it reaches are drawn, each by itself.
    monkeypatch.setattr(animations.documents, "MAX_AGENTS", 40)
    journey = bm.follow(problem, "fwa(2)", 0, problem.arms[problem.arm_set(0)[0]])
    message = message_document(journey)
    assert len(message["network"]["names"]) == 1 + len({event.receiver for event in journey.hops})
    assert "that the message reaches are drawn" in message["notes"][0]


def test_event_log_alone_makes_a_document(tmp_path):
    problem = bm.Problem.random(nx.random_regular_graph(3, 10, seed=1), n_arms=4, per_agent=2, seed=0)
    result = bm.simulate(problem, "fwa(3)", horizon=12, seed=3, trace=tmp_path / "log.gz", replicates=2)
    for given in (None, problem):
        document = trace_document(bm.read_trace(tmp_path / "log.gz"), given, replicate=1)
        assert [frame["messages"] for frame in document["frames"]] == result.transmissions[1].tolist()
        assert document["has_regret"] is False
    dynamic = bm.Problem.random(bm.networks.EdgeMarkovian(nx.cycle_graph(8), 0.05, 0.2), n_arms=2, per_agent=1)
    log = bm.simulate(dynamic, "irs", horizon=6, seed=3, trace=True).trace
    ends = {(event.sender, event.receiver) for event in log if event.round == 6}
    assert state_of(trace_document(log, dynamic))[3] == {pair for pair in ends if pair[0] < pair[1]}
    traced = bm.simulate(problem, "fwa(3)", horizon=12, seed=3, trace=True)
    document = animations.result_document(traced, problem)
    assert [frame["regret"] for frame in document["frames"]] == traced.regret[0].tolist()
    assert document["label"] == "fwa(3)"


def test_places_given_by_the_network_are_kept():
    network = nx.path_graph(3)
    nx.set_node_attributes(network, {0: (10, 0), 1: (20, 5), 2: (30, 0)}, "pos")
    drawn = Recorder(held(network, {0}), horizon=1).document()["network"]
    assert drawn["x"] == [0.0, 0.5, 1.0]
    # The middle one is above the others: on a screen y grows downwards.
    assert drawn["y"][0] == drawn["y"][2] > drawn["y"][1]


@pytest.mark.parametrize(
    "network",
    [
        *(nx.path_graph(7), nx.star_graph(6), nx.cycle_graph(9), nx.complete_graph(5), nx.empty_graph(4)),
        *(nx.path_graph(1), nx.gnp_random_graph(40, 0.08, seed=3)),
    ],
)
def test_agents_are_drawn_apart_and_always_in_the_same_places(network):
    pairs = np.array(network.edges(), dtype=int).reshape(-1, 2)
    found = plots.places(len(network), pairs)
    assert np.array_equal(found, plots.places(len(network), pairs))
    assert found.min() >= -1e-12
    assert found.max() <= 1 + 1e-12
    nearest = (np.hypot(*(found[:, None] - found).T) + np.eye(len(network))).min(axis=1)
    assert nearest.min() > 0.03
    # As large as they are drawn, they do not overlap.
    assert nearest.min() >= 0.79 * np.quantile(nearest, 0.25)


def test_large_networks_are_placed_too():
    found = plots.places(3000, bm.networks.as_links(bm.networks.grid(50, 60))[1].pairs())
    assert found.shape == (3000, 2)
    assert np.isfinite(found).all()


def test_colours_are_those_of_the_plots():
    import matplotlib as mpl

    for name, colours in plots.map_colours().items():
        assert [mpl.colors.to_hex(mpl.colormaps[name](place / 9)) for place in range(10)] == colours
    document = message_document(*GALLERY["path"].journeys())
    assert document["palette"]["fates"] == plots.FATE_COLOURS
    assert [panel["colour"] for panel in document["panels"]] == ["#0072B2", "#D55E00"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda problem: Recorder(None, horizon=2), "problem must be a Problem"),
        (lambda problem: Recorder(problem, horizon=0), "horizon must be"),
        (lambda problem: Recorder(problem, horizon=2, arms=["green"]), "arms must name arms"),
        (lambda problem: Recorder(problem, horizon=2, arms="red"), "arms must be a list of at most 8"),
        (lambda problem: message_document(), "one or two journeys, got 0"),
        (
            lambda problem: message_document(bm.follow(problem, "irs", 0, "red"), bm.follow(problem, "irs", 0, "blue")),
            "same problem, origin and arm",
        ),
        (lambda problem: trace_document([]), "must have events of replicate 0"),
        (lambda problem: trace_document([1]), "must hold events, got int"),
        (lambda problem: as_html({}), "document must be one that"),
    ],
)
def test_wrong_use_is_one_line(make, words):
    with pytest.raises(bm.InputError, match=words):
        make(held(nx.path_graph(3), {0}))


def test_rounds_must_come_in_order():
    problem = held(nx.path_graph(2), {0})
    simulation = bm.Simulation(problem, "irs", horizon=9, seed=0)
    assert isinstance(simulation.step(), Round)
    with pytest.raises(bm.InputError, match="one after the other, got round 2 after round 0"):
        Recorder(problem, horizon=9).add(simulation.step())


# Pictures of a problem.


def test_problem_is_drawn_with_names_holders_traffic_and_a_message():
    problem = held(nx.path_graph(4), {0, 2})
    figure = problem.plot()
    assert [text.get_text() for text in figure.axes[0].texts] == ["0", "1", "2", "3"]
    assert not figure.legends
    figure = problem.plot("red")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["has arm red"]
    figure = bm.follow(problem, "fwa(3)", 0, "red").plot(figsize=(4, 3))
    assert tuple(figure.get_size_inches()) == (4, 3)
    assert figure.axes[0].get_title() == "fwa(3): 2 transmissions"
    words = {text.get_text() for text in figure.legends[0].get_texts()}
    assert words == {"has arm red", "learns from it", "origin", "relays", "absorbs"}
    result = bm.simulate(problem, "irs", horizon=2, seed=0, link_traffic=True, engine="reference")
    figure = problem.plot(traffic=result)
    [links] = figure.axes[0].collections[:1]
    assert links.get_array().tolist() == [2.0, 2.0, 2.0]
    assert figure.axes[1].get_ylabel() == "transmissions per round"


def test_problem_is_drawn_on_the_users_axes():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert held(nx.path_graph(2), {0}).plot("red", ax=axes) is axes.figure


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"arm": "green"}, "arm must be one of the problem's arms, got 'green'"),
        ({"message": 3}, "message must be what follow"),
        ({"traffic": 3}, "simulated with link_traffic=True, got 3"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(settings, words):
    with pytest.raises(bm.InputError, match=words):
        held(nx.path_graph(2), {0}).plot(**settings)


# The file.


def test_names_that_mean_harm_are_harmless():
    network = nx.Graph([(HOSTILE, "b" * 500)])
    problem = bm.Problem(network, [[HOSTILE]] * 2, {HOSTILE: bm.arms.Bernoulli(0.5)})
    document = message_document(bm.follow(problem, "irs", HOSTILE, HOSTILE))
    text = as_html(document, HOSTILE)
    assert text.count("</script>") == 3
    assert "<img" not in text
    embedded = re.search(r'id="document">(.*?)</script>', text, re.S)[1]
    assert json.loads(embedded)["network"]["names"][0] == HOSTILE
    assert len(document["network"]["names"][1]) == sites.MAX_LETTERS


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (3, "animate takes a Simulation"),
        ("fwa", "animate takes a Simulation"),
        (held(nx.path_graph(2), {0}), "animate takes a Simulation"),
        (bm.simulate(held(nx.path_graph(2), {0}), "irs", horizon=2, engine="reference"), "simulate with trace=True"),
    ],
)
def test_what_cannot_be_animated_is_one_line(tmp_path, what, words):
    with pytest.raises(bm.InputError, match=words):
        bm.animate(what, tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_animate_looks_at_the_path_before_it_plays(tmp_path):
    problem = held(nx.path_graph(2), {0})
    simulation = bm.Simulation(problem, "irs", horizon=2, seed=0)
    for path, words in ((tmp_path / "no" / "x.html", "there is no folder"), (tmp_path, "it is a folder"), (3, "path")):
        with pytest.raises(bm.errors.FileError, match=words):
            bm.animate(simulation, path)
    assert simulation.round == 0
    simulation.step()
    with pytest.raises(bm.InputError, match="not begun, got one after round 1"):
        bm.animate(simulation, tmp_path / "x.html")


def test_animation_of_a_run_plays_offline_and_counts_as_the_trace_does(page, tmp_path):
    problem = bm.Problem.random(nx.random_regular_graph(3, 12, seed=1), n_arms=4, per_agent=2, seed=0)
    bm.animate(bm.Simulation(problem, "fwa(3)", horizon=6, seed=0), tmp_path / "run.html")
    trace = bm.simulate(problem, "fwa(3)", horizon=6, seed=0, trace=True).trace
    page.goto((tmp_path / "run.html").as_uri())
    assert page.text_content('[data-bm="round"]') == "0 of 6"
    page.click('[data-bm="play"]')
    expect(page.locator('[data-bm="play"]')).to_have_text("Again")
    assert page.text_content('[data-bm="messages"]') == f"{len(trace):,}"
    page.focus(".bm")
    page.keyboard.press("ArrowLeft")
    until = sum(event.round <= 5 for event in trace)
    assert page.text_content('[data-bm="messages"]') == f"{until:,}"
    assert page.text_content('[data-bm="status"]').endswith(f"{until:,} transmissions so far")
    page.keyboard.press("Home")
    assert page.text_content('[data-bm="messages"]') == "0"
    page.keyboard.press("End")
    assert page.text_content('[data-bm="round"]') == "6 of 6"
    # Something is drawn, and it is not all of one colour.
    assert page.evaluate(COLOURS) > 20


def test_message_is_followed_hop_by_hop_in_the_browser(page, tmp_path):
    both = GALLERY["path"].journeys()
    bm.animate(both, tmp_path / "path.html")
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 700})
    page.goto((tmp_path / "path.html").as_uri())
    page.focus(".bm")
    seen = []
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        seen.append([page.text_content(f'[data-bm="sent-{panel}"]') for panel in (0, 1)])
    assert seen[0] == ["1 transmission", "1 transmission"]
    assert [right for _, right in seen[1:]] == ["2 transmissions"] * 4
    assert seen[4][0] == "5 transmissions"
    for panel, journey in enumerate(both):
        shown = page.eval_on_selector_all(
            f'[data-bm="log-{panel}"] li',
            "items => items.map(one => [one.dataset.sender, one.dataset.receiver, one.dataset.fate])",
        )
        assert shown == [[str(event.sender), str(event.receiver), event.fate] for event in journey.hops]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert "flooding(5): hop 1: agent 1 relays it" in page.text_content('[data-bm="status"]')
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(page.locator('[data-bm="play"]')).to_have_text("Again")
    assert page.text_content('[data-bm="sent-0"]') == "5 transmissions"
    # Nothing is wider than a narrow window.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_picking_an_agent_and_more_frames_reach_the_page_around(page, tmp_path):
    problem = held(nx.path_graph(3), {0, 2})
    made = Recorder(problem, horizon=4)
    (tmp_path / "empty.html").write_text(as_html(made.document()), encoding="utf-8")
    page.goto((tmp_path / "empty.html").as_uri())
    assert page.is_disabled('[data-bm="play"]')
    simulation = bm.Simulation(problem, "fwa(2)", horizon=4, seed=0)
    for _ in range(4):
        made.add(simulation.step())
    append = (
        "frames => { const view = document.querySelector('#animation').bmView; view.append(frames); return view.state }"
    )
    state = page.evaluate(append, made.frames_since(0))
    assert (state["frame"], state["round"], state["messages"]) == (4, 4, made.frames_since(3)[0]["messages"])
    page.evaluate("() => document.body.addEventListener('bm-pick', (event) => { window.picked = event.detail; })")
    page.focus(".bm")
    page.keyboard.press("n")
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    assert page.evaluate("window.picked") == {"agent": 1, "name": "1", "panel": 0}
    assert "regret so far" in page.text_content(".bm-tip")
    # Another document of the same network leaves the keyboard where it was.
    replace = "doc => document.querySelector('#animation').bmView.replace(doc)"
    page.evaluate(replace, made.document())
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    assert page.evaluate("window.picked.agent") == 2
    page.focus('[data-bm="slider"]')
    page.evaluate(replace, made.document())
    assert page.evaluate("document.activeElement.dataset.bm") == "slider"


def test_beginning_that_has_been_played_goes_on_when_the_rest_is_there(page, tmp_path):
    problem = held(nx.path_graph(3), {0, 2})
    result = bm.simulate(problem, "fwa(2)", horizon=9, seed=0, link_traffic=True, agents=True, engine="reference")
    whole = load_document(problem, result)
    (tmp_path / "run.html").write_text(as_html({**whole, "frames": whole["frames"][:2]}))
    page.goto((tmp_path / "run.html").as_uri() + "?autoplay")
    page.evaluate(
        """(whole) => new Promise((done) => {
        const view = document.getElementById("animation").bmView;
        const look = () => {
            const {round, playing} = view.state;
            if (round === 2 && !playing && view.doc.frames.length === 2) view.replace(whole, true);
            if (round === 9) done();
            else requestAnimationFrame(look);
        };
        look();
    })""",
        whole,
    )


def test_hostile_names_do_nothing_in_the_browser(page, tmp_path):
    network = nx.Graph([(HOSTILE, "b")])
    problem = bm.Problem(network, [[HOSTILE]] * 2, {HOSTILE: bm.arms.Bernoulli(0.5)})
    bm.animate(bm.follow(problem, "irs", HOSTILE, HOSTILE), tmp_path / "x.html", title=HOSTILE)
    page.goto((tmp_path / "x.html").as_uri())
    page.focus(".bm")
    page.keyboard.press("End")
    assert page.text_content('[data-bm="sent-0"]') == "1 transmission"
    assert page.text_content("h1") == HOSTILE.replace("\ud800", "?")
    assert page.locator("img").count() == 0


def test_animation_without_a_path_is_shown_in_a_notebook_and_can_be_saved(tmp_path):
    problem = held(nx.path_graph(3), {0, 2})
    journey = bm.follow(problem, "fwa(2)", 0, "red")
    shown = bm.animate(journey)
    assert repr(shown) == "<Animation: One message by fwa(2)>"
    for one in (shown, journey):
        text = one._repr_html_()
        assert text.startswith("<iframe srcdoc=")
        assert 'sandbox="allow-scripts"' in text
        assert "<script>" not in text  # it is all within the frame
    shown.save(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == as_html(message_document(journey))


def test_gif_has_a_frame_for_each_hop_and_at_most_as_many_as_fit(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(pictures, "MAX_FRAMES", 6)
    problem = held(nx.path_graph(3), {0, 2})
    bm.animate([bm.follow(problem, p, 0, "red") for p in ("fwa(2)", "flooding(2)")], tmp_path / "message.gif")
    with Image.open(tmp_path / "message.gif") as picture:
        assert (picture.n_frames, picture.info["loop"]) == (3, 0)
    bm.animate(bm.Simulation(problem, "fwa(2)", horizon=70, seed=0), tmp_path / "run.gif")
    with Image.open(tmp_path / "run.gif") as picture:
        # Pillow joins frames that look the same.
        assert 3 < picture.n_frames <= 6


def test_svg_shows_one_frame_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_DRAWN_FRAMES", 5)
    problem = held(nx.path_graph(3), {0, 2})
    result = bm.simulate(problem, "fwa(2)", horizon=40, seed=0, link_traffic=True, agents=True, engine="reference")
    Animation(load_document(problem, result)).save(tmp_path / "run.svg")
    page.goto((tmp_path / "run.svg").as_uri())
    visible = """(ms) => { for (const one of document.getAnimations()) { one.pause(); one.currentTime = ms; }
        const frames = [...document.querySelectorAll(".frame")];
        return frames.map((one) => getComputedStyle(one).visibility === "visible"); }"""
    stays = [120] * 4 + [2500]
    for number in (0, 1, 4):
        assert page.evaluate(visible, sum(stays[:number]) + 1) == [one == number for one in range(5)]
    assert page.evaluate(visible, sum(stays) + 1)[0]
    # Names within frames do not meet.
    names = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(names) == len(set(names)) > 0
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    assert page.evaluate(visible, 0) == [False] * 4 + [True]


def test_file_within_another_page_plays_by_itself_again_and_again(page, tmp_path):
    problem = held(nx.path_graph(3), {0, 2})
    bm.animate(bm.Simulation(problem, "fwa(2)", horizon=3, seed=0), tmp_path / "run.html")
    page.goto((tmp_path / "run.html").as_uri() + "?autoplay&loop&compact")
    # The events of the last frame, and of the first that comes after it.
    page.evaluate("""() => new Promise((done) => {
        let ended = false;
        document.getElementById("animation").addEventListener("bm-frame", (event) => {
            ended = ended || event.detail.frame === 3;
            if (ended && event.detail.frame === 0) done();
        });
    })""")
    expect(page.locator("h1")).to_be_hidden()
    expect(page.locator("[data-bm=legend]")).to_be_hidden()
    expect(page.locator("[data-bm=play]")).to_have_text("Pause")
