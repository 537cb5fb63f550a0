"""The attacks that a member can make with 40 bytes, 1,245 bytes and 4.5 MB, on nodes that are processes of their own.

The liar has a certificate and signs with it whatever it says. Each attack changes what is known of the liar itself, and
nothing else: neither what honest nodes know of each other, nor their lives, nor the room that they have.
"""

import msgspec
import pytest
from embedded import run
from processes import NodeProcess, known, wait_until
from test_speaking_for_others import Liar, said

from banditmesh.live.links import codec
from banditmesh.live.statistics import Statistic
from banditmesh.live.transport import keys

SHARE = 500
CAPS = f"caps = {{ entries = 2000, entries_per_origin = {SHARE} }}\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mesh")
    keys.init(folder / "authority", "shop")
    return {name: keys.issue(folder / "authority", name, folder) for name in "abcx"}


def attack(address, files, make):
    """Let the liar say what `make` makes of it, in frames, and wait until that has been read."""

    async def main():
        async with Liar(address, files) as x:
            connection = await x.link()
            for frame in make(x):
                await connection.write(frame)
            await connection.write(codec.encode_ping(1))
            frames = []
            while not any(isinstance(codec.decode(frame), codec.Pong) for frame in frames):
                frames = x.splitter.feed(await connection.read())

    run(main())


def forged_origin(x):
    """One statistic of a node that does not exist, inside every range: signed by the liar, and not at all."""
    lie = Statistic("nobody", 7, "red", 10**6, 1e6, 9)
    return [said([x.signed(lie), lie], x.certificate)]


def invented_lives(epochs):
    """Of each honest node as many lives as it may have, so that its own is refused, and a count that ends its life."""

    def make(x):
        for name, epoch in epochs.items():
            lies = [Statistic(name, life, "red", 5, 5.0, 9) for life in range(63)]
            lies.append(Statistic(name, epoch, "red", 10**9, 5.0, 9))
            yield said(lies)
            yield said([*map(x.signed, lies)], x.certificate)

    return make


def full_table(x):
    """4.5 MB: more of its own than its share, and of invented origins and arms as much as goes into the rest."""
    yield said([x.signed(Statistic("x", n % 7, f"arm {n}", 1, 1.0, 9)) for n in range(2 * SHARE)], x.certificate)
    n_bytes = n = 0
    while n_bytes < 4_400_000:
        frame = msgspec.msgpack.encode((2, [(f"origin {n} {k}", k, f"arm {n} {k}", 1, 1.0, 9) for k in range(5000)]))
        n_bytes, n = n_bytes + len(frame), n + 1
        yield len(frame).to_bytes(4, "big") + frame


def test_attacks_change_nothing_beyond_the_liars_own_statistics(tmp_path, files):
    a = NodeProcess(tmp_path / "a", "a", protocol="flooding(8)", more=CAPS, keys=files["a"])
    with a, a.client() as at_a:
        b = NodeProcess(tmp_path / "b", "b", ("red", "blue"), {"a": a.address}, "flooding(8)", None, CAPS, files["b"])
        with b, b.client() as at_b:
            clients = {"a": at_a, "b": at_b}
            for client in clients.values():
                client.observe(None, 1.0, arm="red")
                client.observe(None, 0.0, arm="red")
            wait_until(lambda: all(known(client)["red"] == (4, 0.5) for client in clients.values()))
            epochs = {name: client.state()["epoch"] for name, client in clients.items()}
            numbers = {name: int(epoch, 16) for name, epoch in epochs.items()}
            for make in (forged_origin, invented_lives(numbers), full_table):
                attack(a.address, files, make)
                for name, client in clients.items():
                    state = client.state()
                    assert (state["epoch"], known(client)["red"], known(client)["blue"]) == (
                        epochs[name],
                        (4, 0.5),
                        (0, None),
                    )
            # What the liar filled is its share, here and behind the first honest node.
            for client in clients.values():
                wait_until(lambda: client.state()["caps"]["entries"]["used"] == 1 + SHARE)  # noqa: B023
                assert client.state()["caps"]["origins"]["used"] == 2
            refused = at_a.state()["counters"]
            assert refused["refused_entries_per_origin"] == SHARE
            assert refused["refused_unsigned"] > 50_000
            assert refused["refused_others_certificate"] == 1 + 2 * 64
            # Honest nodes have room: one that comes now knows all, and is known.
            c = NodeProcess(
                tmp_path / "c", "c", ("red", "blue"), {"b": b.address}, "flooding(8)", None, CAPS, files["c"]
            )
            with c, c.client() as at_c:
                wait_until(lambda: known(at_c)["red"] == (4, 0.5))
                at_c.observe(None, 1.0, arm="blue")
                wait_until(lambda: known(at_a)["blue"] == (1, 1.0))
            # And what it says of itself counts: it can lie about that.
            lie = Statistic("x", 6, "blue", 3, 0.0, 9)
            attack(a.address, files, lambda x: [said([x.signed(lie)], x.certificate)])
            assert known(at_a)["blue"] == (1, 1.0)  # its share is used up, by itself
