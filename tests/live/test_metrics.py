"""Metrics are what the node says of itself, in a text that Prometheus can read."""

import asyncio
import math
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sidecars import Beside, a_node

from banditmesh.live import Client
from banditmesh.live.http import exposition, metrics
from banditmesh.live.http.exposition import Family, Histogram, Sample, as_text
from banditmesh.live.http.metrics import Metrics
from banditmesh.live.statistics import Statistic


def read(text):
    """Values by name and labels."""
    families = text_string_to_metric_families(text)
    return {
        (one.name, *(f"{key}={value}" for key, value in sorted(one.labels.items()))): one.value
        for family in families
        for one in family.samples
    }


@pytest.fixture
def client(tmp_path):
    with Beside(a_node(tmp_path)) as beside, Client(beside.url) as node:
        yield node


def test_metrics_are_what_the_node_says(client):
    choice = client.choose()
    client.observe(choice, 0.5)
    client.observe(None, 1.0, arm="blue")
    client.add_peer("b")
    values, state = read(client.metrics()), client.state()
    assert values["banditmesh_ready",] == 1
    assert values["banditmesh_choices_total",] == 1
    assert values["banditmesh_arms",] == 2
    assert values["banditmesh_arm_observations", "arm=red", "source=own"] == 1
    assert values["banditmesh_arm_observations", "arm=red", "source=heard"] == 0
    assert values["banditmesh_arm_mean", "arm=blue"] == 1.0
    assert values["banditmesh_link_up", "peer=b"] == 0
    assert values["banditmesh_link_sent_statistics_total", "peer=b"] == 0
    assert values["banditmesh_link_received_statistics_total", "peer=b"] == 0
    assert values["banditmesh_link_waiting_keys", "peer=b"] == 0
    assert values["banditmesh_observe_seconds_count",] == 2
    events = {
        key[1].removeprefix("event="): value for key, value in values.items() if key[0] == "banditmesh_events_total"
    }
    assert events == state["counters"]
    for name, cap in state["caps"].items():
        assert values["banditmesh_cap_used", f"cap={name}"] == cap["used"]
        assert values["banditmesh_cap_most", f"cap={name}"] == cap["most"]
    [info] = [key for key in values if key[0] == "banditmesh_node_info"]
    assert {"mesh=shop", "node=a"} <= set(info)
    assert values["process_resident_memory_bytes",] > 0


def test_members_with_many_lives_are_named_and_not_too_many_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_MEMBERS", 2)
    with Beside(a_node(tmp_path)) as beside, Client(beside.url) as node:
        hear_lives(beside, "b", 47)
        assert not any(key[0] == "banditmesh_member_lives" for key in read(node.metrics()))
        for name, n in (("b", 48), ("c", 50), ("d", 60)):
            hear_lives(beside, name, n)
        values = read(node.metrics())
        assert {key[1:]: n for key, n in values.items() if key[0] == "banditmesh_member_lives"} == {
            ("member=d",): 60,
            ("member=c",): 50,
        }
        state = node.state()
        assert state["many_lives"] == {"d": 60, "c": 50, "b": 48}
        assert len(state["warnings"]) == 3


def hear_lives(beside, name, n):
    """Let a node hear of lives of a member."""
    beside.do(beside.node._member.hear, [Statistic(name, epoch, "red", 1, 0.5, 1) for epoch in range(1, n + 1)], "b")


def test_names_with_any_characters_can_be_read_back(client):
    name = 'a "b" \\ {c}=é'
    client.set_arms([name])
    client.observe(None, 1.0, arm=name)
    assert read(client.metrics())["banditmesh_arm_mean", f"arm={name}"] == 1.0


def test_every_family_is_ours_or_the_processs(client):
    names = {family.name for family in text_string_to_metric_families(client.metrics())}
    assert all(name.startswith(("banditmesh_", "process_")) for name in names)


def test_many_arms_have_no_series_of_their_own(client, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_ARMS", 2)
    assert any("arm=red" in key for key in read(client.metrics()))
    client.set_arms(["red", "green", "blue"])
    values = read(client.metrics())
    assert not any("arm=red" in key for key in values)
    assert values["banditmesh_arms",] == 3


def test_lag_of_the_loop_is_measured(monkeypatch):
    monkeypatch.setattr(metrics, "LAG_EVERY", 0.01)

    async def measured():
        one = Metrics(None)
        task = asyncio.create_task(one.measure_lag())
        await asyncio.sleep(0)
        time.sleep(0.06)  # the loop is held up
        while not (found := lag_of(one))["_count", None]:
            await asyncio.sleep(0)
        task.cancel()
        return found

    found = asyncio.run(measured())
    assert (found["_bucket", "0.02"], found["_count", None]) == (0, 1)


def lag_of(one):
    return {(end, labels.get("le")): value for family in one._lag.families() for value, labels, end in family.samples}


def test_a_histogram_counts_a_value_at_its_bound_and_what_is_beyond_all():
    one = Histogram("wait", "How long.", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 7.0):
        one.observe(value)
    values = read(as_text(one.families()).decode())
    assert [values["wait_bucket", f"le={bound}"] for bound in ("1.0", "2.0", "+Inf")] == [2, 3, 4]
    assert (values["wait_count",], values["wait_sum",]) == (4, 10.0)


def test_numbers_that_are_none_can_be_read_back():
    samples = [Sample(value, {"which": str(value)}) for value in (math.inf, -math.inf, math.nan)]
    text = as_text([Family("gauge", "one", "Odd ones.", samples)]).decode()
    assert [repr(one) for one in read(text).values()] == ["inf", "-inf", "nan"]


def test_where_the_system_does_not_show_a_process_its_metrics_are_left_out(monkeypatch, tmp_path):
    assert [family.name for family in exposition.of_the_process()][:2] == [
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
    ]
    monkeypatch.setattr(exposition, "_PROCESS", tmp_path)
    assert list(exposition.of_the_process()) == []
