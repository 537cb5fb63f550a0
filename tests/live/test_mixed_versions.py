"""Nodes of this version, as processes under keys, beside one of version 1, from a file of version 1 on.

The node of version 1 is played: it has a certificate and speaks frames of version 1, and nothing else.
"""

import gzip
import signal
from pathlib import Path

import msgspec
import pytest
from embedded import run
from processes import NodeProcess, known, wait_until

from banditmesh.live.disk.state import FILE
from banditmesh.live.links import codec
from banditmesh.live.transport import TlsTransport, keys
from banditmesh.live.transport.identity import contexts

MESH = "shop"
ACCEPTED = 'signatures = "accepted"\n'
BIG = 2**53 - 1


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    keys.init(folder / "authority", MESH)
    return {name: keys.issue(folder / "authority", name, folder) for name in ("a", "b", "old")}


def framed(kind, body):
    data = msgspec.msgpack.encode((kind, body))
    return len(data).to_bytes(4, "big") + data


async def as_version_1(address, files, said, n_expected):
    """Say statistics as a node of version 1; all frames that come until so many statistics have."""
    transport = TlsTransport(contexts(files["old"]))
    connection = await transport.dial(address, "a")
    await connection.write(framed(codec.HELLO, (MESH, "old", 7, 1, "flooding(8)", "banditmesh 1")))
    await connection.write(framed(codec.STATISTICS, said))
    splitter, frames = codec.Splitter(), []
    while sum(len(body) for kind, body in frames if kind == codec.STATISTICS) < n_expected:
        data = await connection.read()
        assert data, frames
        frames += [msgspec.msgpack.decode(frame) for frame in splitter.feed(data)]
    await transport.close()
    return frames


def reload(node, old, new):
    """Change a line of a node's configuration, and let it read that."""
    path = node.folder / "node.toml"
    path.write_text(path.read_text().replace(old, new))
    node.signal(signal.SIGHUP)


def test_state_of_version_1_goes_on_under_keys_beside_a_node_of_version_1(tmp_path, files):
    state = tmp_path / "a" / "state"
    state.mkdir(parents=True)
    (state / FILE).write_bytes(gzip.decompress((Path(__file__).parent / "format_1.db.gz").read_bytes()))
    arms, protocol = ("red", "blue", "green"), "flooding(8)"
    a = NodeProcess(tmp_path / "a", "a", arms, protocol=protocol, more=ACCEPTED, keys=files["a"])
    with a, a.client() as at_a:
        # What was in the file: 7 rewards of its own, 3 of an earlier life, and what it heard of b.
        assert known(at_a)["red"][0] == 7 + 3 + BIG
        b = NodeProcess(tmp_path / "b", "b", arms, {"a": a.address}, protocol, more=ACCEPTED, keys=files["b"])
        with b, b.client() as at_b:
            wait_until(lambda: known(at_b)["red"][0] >= 5)
            at_b.observe(None, 1.0, arm="blue")
            wait_until(lambda: known(at_a)["blue"][0] == 1)
            said = [("old", 7, "red", 4, 2.0, 8), ("gone", 3, "blue", 2, 1.0, 8)]
            frames = run(as_version_1(a.address, files, said, n_expected=4))
            # It is told in its own version: statistics of six fields, and neither certificates nor questions.
            assert {kind for kind, _ in frames} <= {codec.HELLO, codec.STATISTICS, codec.PING}
            heard = [tuple(one) for kind, body in frames if kind == codec.STATISTICS for one in body]
            assert {len(one) for one in heard} == {6}
            assert {(one[0], one[2], one[3]) for one in heard} >= {("a", "red", 5), ("b", "blue", 1)}
            # What it says is used, and relayed.
            wait_until(lambda: known(at_b)["blue"][0] == 3)
            assert at_a.state()["counters"]["heard_unsigned"] >= 2
            assert "refused_unsigned" not in at_a.state()["counters"]
            # Once all are of this version, what is not signed leaves.
            for node in (a, b):
                reload(node, ACCEPTED, "")
            wait_until(lambda: known(at_a)["red"][0] == 7 and known(at_b)["red"][0] == 5)
            wait_until(lambda: known(at_a)["blue"][0] == known(at_b)["blue"][0] == 1)
            assert at_a.state()["arms"][2]["heard_count"] == 0
            run(as_version_1(a.address, files, said, n_expected=2))
            wait_until(lambda: at_a.state()["counters"].get("refused_unsigned") == 2)
            at_a.observe(None, 0.5, arm="red")
            wait_until(lambda: known(at_b)["red"][0] == 8)
            a.leave()
            b.leave()
