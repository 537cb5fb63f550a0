"""The table of a running mesh: real sidecars, one that is gone, and one that lets nobody in."""

import json
import socket

from click.testing import CliRunner
from sidecars import Beside, Disk, a_node

from banditmesh.cli import cli
from banditmesh.live.statistics import Statistic
from banditmesh.mesh.status import StatusRow, as_table, gather

TOKEN = "correct-horse-battery"


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_rows_say_what_the_sidecars_say(tmp_path):
    with Beside(a_node(tmp_path)) as node:
        node.do(node.node.observe, node.do(node.node.choose), 0.25)
        [row] = gather([node.url])
    assert row == StatusRow(node.url, "a", "ready", 0, 0, 1, 2, "red", 0, 0, 0, 0, "fwa(4)")


def test_node_that_is_gone_has_a_row_and_does_not_hide_the_others(tmp_path):
    gone = f"http://127.0.0.1:{closed_port()}"
    with Beside(a_node(tmp_path)) as node:
        rows = gather([gone, node.url])
    assert [row.node for row in rows] == ["", "a"]
    assert "refused" in rows[0].state
    assert as_table(rows).splitlines()[1].startswith(gone)


def test_token_is_needed_where_there_is_one(tmp_path):
    with Beside(a_node(tmp_path), token=TOKEN) as node:
        [stranger], [friend] = gather([node.url]), gather([node.url], TOKEN)
    assert not stranger.node
    assert "token" in stranger.state
    assert friend.state == "ready"


def test_degraded_node_says_why(tmp_path):
    disk = Disk()
    with Beside(a_node(tmp_path, disk)) as node:
        disk.is_full = True
        node.ask("POST", "/v1/observe", {"arm": "red", "reward": 1.0, "key": "k"})
        [row] = gather([node.url])
        disk.is_full = False
    assert "the disk is full" in row.state


def test_warnings_of_nodes_stand_below_the_table(tmp_path):
    with Beside(a_node(tmp_path)) as node:
        lives = [Statistic("b", epoch, "red", 1, 0.5, 1) for epoch in range(48)]
        node.do(node.node._member.hear, lives, "b")
        table = CliRunner().invoke(cli, ["mesh", "status", "--once", node.url], obj={}).output
    last = table.splitlines()[-1]
    assert last.startswith("a warns: 'b' has 48 lives, and after 64 (caps.epochs) a new one is not heard")
    assert "banditmesh keys retire" in last


def test_verb_prints_a_table_and_json(tmp_path):
    with Beside(a_node(tmp_path)) as node:
        table = CliRunner().invoke(cli, ["mesh", "status", "--once", node.url], obj={})
        told = CliRunner().invoke(cli, ["mesh", "status", "--json", node.url], obj={})
    assert table.output.split()[:2] == ["node", "state"]
    assert [row["node"] for row in json.loads(told.output)] == ["a"]
