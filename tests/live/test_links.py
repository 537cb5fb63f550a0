"""Who is linked with whom, for how long and why not: real nodes on simulated time and links."""

import asyncio
import itertools
import logging
import random

import msgspec
import pytest
from simulated import BUFFER, Disk, Network, SimulatedTransport, identity, run
from world_keys import AUTHORITIES, MESH

import banditmesh as bm
from banditmesh.live import ArmSpec, NeighbourConfig, Node, NodeConfig
from banditmesh.live.links import MAX_UPS, PER_SECONDS, codec, notices
from banditmesh.live.links.conversation import SLICE, LinkTurns
from banditmesh.live.names import Caps
from banditmesh.live.statistics import Statistic


class Site:
    """A network, and nodes on it."""

    def __init__(self, folder, seed=0, slowest=0.01):
        self.folder = folder
        self.rng = random.Random(seed)
        self.network = Network(self.rng, slowest)
        self.addresses = {}

    def address(self, name):
        return self.addresses.setdefault(name, f"127.0.0.1:{1000 + len(self.addresses)}")

    def node(self, name, knows=(), waits_for=(), *, mesh=MESH, not_before=0, not_after=2**40, trusts=0, **more):
        """A node that knows some neighbours' addresses, and waits for others."""
        neighbours = [NeighbourConfig(name=one, address=self.address(one)) for one in knows]
        neighbours += [NeighbourConfig(name=one) for one in waits_for]
        settings = {"arms": [ArmSpec("red", sigma=1.0)], "plain": True, "protocol": bm.Flooding(3), **more}
        config = NodeConfig(mesh=mesh, node=name, listen=self.address(name), neighbours=neighbours, **settings)
        return Node(
            config,
            transport=SimulatedTransport(self.network, identity(mesh, name, not_before, not_after)),
            store=Disk(self.folder / name, mesh, name, self.rng).open(),
            signers=[AUTHORITIES[trusts].signer],
            clock=lambda: 1000.0 + asyncio.get_running_loop().time(),
            rng=random.Random(self.rng.random()),
        )

    async def stranger(self, target, name="stranger", mesh=MESH):
        """A connection to a node from something that is none."""
        transport = SimulatedTransport(self.network, identity(mesh, name))
        return await transport.dial(self.address(target), target)


def is_up(node, peer):
    return {one.name: one.state for one in node.peers()}.get(peer) == "up"


def counters(node, *names):
    found = node.state().counters
    return tuple(found.get(name, 0) for name in names)


def greet(name, mesh=MESH, protocol="flooding(3)", version=1):
    return codec.encode_hello(codec.Hello(mesh, name, 7, version, protocol, "test"))


async def said(connection):
    """The next thing that somebody says, or None at the end."""
    splitter = codec.Splitter()
    while data := await connection.read():
        for frame in splitter.feed(data):
            return codec.decode(frame)
    return None


# --- who dials


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_refused_when_nodes_that_know_each_other_start_one_after_the_other(tmp_path, seed):
    async def main():
        site = Site(tmp_path, seed)
        names = "abcd"
        nodes = [site.node(name, knows=[one for one in names if one != name]) for name in names]
        for node in nodes:
            await node.start()
            await asyncio.sleep(site.rng.choice((0.0, 0.01, 3.0)))
        await asyncio.sleep(60)
        found = {name for node in nodes for name, n in node.state().counters.items() if n}
        assert [len(node._links.linked()) for node in nodes] == [3] * 4
        for node in nodes:
            await node.leave()
        assert not {name for name in found if name.startswith("refused_")}

    run(main())


@pytest.mark.parametrize("seed", range(10))
def test_two_that_dial_each_other_at_once_end_up_with_one_connection(tmp_path, seed):
    async def main():
        site = Site(tmp_path, seed, slowest=0.5)
        async with site.node("a", ["b"]) as a, site.node("b", ["a"]) as b:
            await asyncio.sleep(60)
            assert is_up(a, "b")
            assert is_up(b, "a")
            assert len(site.network.connections) == 2  # the two ends of one

    run(main())


def test_the_larger_name_dials_where_its_own_address_is_not_known(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", waits_for=["b"]) as a, site.node("b", ["a"]):
            await asyncio.sleep(1)
            assert is_up(a, "b")
            site.network.connections.copy().popitem()[0].cut()
            await asyncio.sleep(10)
            assert is_up(a, "b")

    run(main())


def test_pauses_between_attempts_grow_and_stay_within_their_bounds(tmp_path):
    times = []

    async def main():
        site = Site(tmp_path)
        node = site.node("a", ["b"])

        async def dial(address, name):
            times.append(asyncio.get_running_loop().time())
            raise ConnectionRefusedError("connection refused")

        node._parts.transport.dial = dial
        async with node:
            await asyncio.sleep(300)
            [peer] = node.peers()
            assert (peer.state, peer.last_refusal) == ("down", "unreachable: connection refused")
            assert counters(node, "no_link_unreachable") == (len(times),)

    run(main())
    pauses = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert times[0] < 0.1
    assert 0.05 <= pauses[0] <= 0.2
    assert 15 <= pauses[-1] <= 30
    assert max(pauses) <= 30


def test_an_idle_link_stays_up(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", ["b"]) as a, site.node("b", waits_for=["a"]):
            await asyncio.sleep(1000)
            assert counters(a, "links", "ended_silent") == (1, 0)

    run(main())


def test_a_link_ends_after_15_s_without_a_byte_and_comes_back(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", ["b"]) as a, site.node("b", ["a"]) as b:
            await asyncio.sleep(10)
            site.network.stalled = {"b"}
            await asyncio.sleep(9)  # the last ping came up to 5 s before
            assert is_up(a, "b")
            await asyncio.sleep(7)
            assert not is_up(a, "b")
            # The one that notices first closes the connection, and the other one sees that.
            assert counters(a, "ended_silent")[0] + counters(b, "ended_silent")[0] >= 1
            site.network.stalled = set()
            site.network.release()
            await asyncio.sleep(60)
            assert is_up(a, "b")

    run(main())


# --- who is let in


async def refused_on_both_sides(site, listener, dialler, reason):
    async with listener, dialler:
        await asyncio.sleep(1)
        assert counters(listener, f"refused_{reason}")[0] >= 1
        assert counters(dialler, "refused_by_peer")[0] >= 1
        [peer] = dialler.peers()
        assert peer.last_refusal.startswith(f"by_peer: the other side refused: {reason}")
        assert peer.state == "down"


def test_another_mesh_is_refused_and_both_sides_say_so(tmp_path):
    site = Site(tmp_path)

    async def main():
        listener = site.node("a", accept="members")
        await refused_on_both_sides(site, listener, site.node("b", ["a"], mesh="other"), "mesh")

    run(main())


def test_who_is_no_neighbour_is_refused_unless_members_are_accepted(tmp_path):
    async def main():
        site = Site(tmp_path)
        await refused_on_both_sides(site, site.node("a"), site.node("b", ["a"]), "not_a_neighbour")
        async with site.node("c", accept="members") as c, site.node("d", ["c"]) as d:
            await asyncio.sleep(1)
            assert is_up(c, "d")
            await d.leave()
            await asyncio.sleep(1)
            assert c.peers() == []

    run(main())


def test_there_are_no_more_links_than_the_cap_says(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members", caps=Caps(links=1)) as a, site.node("b", ["a"]):
            await asyncio.sleep(1)
            await refused_on_both_sides(site, _entered(a), site.node("c", ["a"]), "too_many_links")

    run(main())


def _entered(node):
    """A node that is entered already, and left by somebody else."""

    class Entered:
        async def __aenter__(self):
            return node

        async def __aexit__(self, *_):
            pass

        def __getattr__(self, name):
            return getattr(node, name)

    return Entered()


@pytest.mark.parametrize(
    "first, reason",
    [
        (greet("a"), "own_name"),
        (greet("b"), "certificate"),
        (codec.encode_ping(), "no_hello"),
        (b"\x00\x00\x00\x02hi", "malformed"),
        (b"GET / HTTP/1.1\r\n\r\n", "malformed"),
    ],
)
def test_a_wrong_first_frame_is_refused(tmp_path, first, reason):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            connection = await site.stranger("a")
            await connection.write(first)
            answer = await said(connection)
            assert answer is None or answer.reason.startswith(f"{reason}: ")
            assert counters(a, f"refused_{reason}") == (1,)

    run(main())


def test_who_says_nothing_is_refused_after_10_s_and_only_64_may_be_silent_at_a_time(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            silent = [await site.stranger("a", f"s{one}") for one in range(70)]
            await asyncio.sleep(5)
            assert counters(a, "refused_busy", "refused_no_hello") == (6, 0)
            assert await said(silent[-1]) is None
            await asyncio.sleep(6)
            assert counters(a, "refused_no_hello") == (64,)
            async with site.node("b", ["a"]):
                await asyncio.sleep(1)
                assert is_up(a, "b")

    run(main())


def test_a_member_that_says_nothing_has_one_place_however_often_it_connects(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            silent = [await site.stranger("a") for _ in range(100)]
            assert counters(a, "refused_superseded", "refused_busy") == (99, 0)
            assert await said(silent[0]) is None
            await silent[-1].write(greet("stranger"))
            assert isinstance(await said(silent[-1]), codec.Hello)

    run(main())


def test_a_link_that_comes_up_again_and_again_has_to_wait(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            answers = []
            for _ in range(MAX_UPS + 2):
                connection = await site.stranger("a")
                await connection.write(greet("stranger"))
                answers.append(await said(connection))
            assert [type(answer) for answer in answers] == [codec.Hello] * MAX_UPS + [codec.Bye] * 2
            assert answers[-1].reason.startswith("too_often: ")
            assert counters(a, "links", "refused_too_often") == (MAX_UPS, 2)
            await asyncio.sleep(PER_SECONDS)
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            assert isinstance(await said(connection), codec.Hello)

    run(main())


def test_another_protocol_is_allowed_and_warned_about(tmp_path, caplog):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", ["b"]) as a, site.node("b", ["a"], protocol=bm.FwA(2)):
            await asyncio.sleep(1)
            [peer] = a.peers()
            assert (peer.state, peer.protocol) == ("up", "fwa(2)")

    with caplog.at_level(logging.WARNING, "banditmesh.live"):
        run(main())
    assert "another protocol" in {record.getMessage() for record in caplog.records}


def test_a_new_connection_replaces_the_one_before_which_is_closed_unread(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            old = await site.stranger("a")
            await old.write(greet("stranger"))
            assert isinstance(await said(old), codec.Hello)
            site.network.slowest = 5.0  # it is still on its way when the new one has said hello
            await old.write(codec.encode_statistics([Statistic("o", 1, "red", 5, 5.0, 3)]))
            site.network.slowest = 0.001
            new = await site.stranger("a")
            await new.write(greet("stranger"))
            assert isinstance(await said(new), codec.Hello)
            await new.write(codec.encode_statistics([Statistic("o", 1, "red", 2, 2.0, 3)]))
            await asyncio.sleep(1)
            assert await said(old) is None
            assert counters(a, "links", "ended_replaced", "heard") == (2, 1, 1)
            assert a.state().arms[0].heard_count == 2

    run(main())


@pytest.mark.parametrize("frame", [b"\xff\xff\xff\xff", greet("stranger"), b"\x00\x00\x00\x01\xc1"])
def test_a_frame_that_no_node_sends_ends_the_link(tmp_path, frame):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            await asyncio.sleep(1)
            assert is_up(a, "stranger")
            await connection.write(frame)
            await asyncio.sleep(1)
            assert counters(a, "ended_malformed") == (1,)

    run(main())


def test_malformed_statistics_are_counted_and_the_others_used(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            good, bad = ("o", 1, "red", 2, 1.0, 3), ("o", 1, "red", "two", 1.0, 3)
            await connection.write(codec._frame(codec.STATISTICS, [bad, good]))
            await asyncio.sleep(1)
            assert counters(a, "refused_malformed", "heard_news") == (1, 1)

    run(main())


# --- what goes over a link


def test_a_neighbour_that_does_not_read_costs_keys_and_delays_nobody(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a, site.node("b", ["a"]) as b:
            source, stalled = await site.stranger("a", "source"), await site.stranger("a", "stalled")
            for connection, name in ((source, "source"), (stalled, "stalled")):
                await connection.write(greet(name))
            await asyncio.sleep(1)
            site.network.stalled = {"stalled"}
            n = 3000
            for count in (1, 2, 3):
                for first in range(0, n, 500):
                    keys = [("o", 1, f"arm {one} {'x' * 60}") for one in range(first, first + 500)]
                    await source.write(codec.encode_statistics([Statistic(*key, count, 1.0, 3) for key in keys]))
                await asyncio.sleep(1)
            waiting = {peer.name: peer for peer in a.peers()}
            assert waiting["b"].waiting == 0
            assert n * 0.7 < waiting["stalled"].waiting <= n
            assert waiting["stalled"].behind > 1.0
            assert stalled.incoming.n_flying <= 2 * BUFFER
            assert len(b._member.entries()) == n
            assert {entry.count for entry in b._member.entries()} == {3}

    run(main())


def test_what_a_link_carries_is_counted_in_either_direction_and_over_all_connections(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", ["b"]) as a, site.node("b", ["a"]) as b:
            await asyncio.sleep(5)
            await a.observe(a.choose(), 1.0)
            await asyncio.sleep(1)
            [to_b], [to_a] = a.peers(), b.peers()
            assert (to_b.sent, to_b.received) == (to_a.received, to_a.sent) == (1, 0)
            # A new connection, on which each side offers all that it has.
            a._links.renew("again")
            await asyncio.sleep(5)
            [again] = a.peers()
            assert (again.sent, again.since > to_b.since) == (2, True)
            assert (b.peers()[0].received, b.peers()[0].sent) == (again.sent, again.received)

    run(main())


def test_who_leaves_sends_what_waits_and_says_bye(tmp_path):
    async def main():
        site = Site(tmp_path, slowest=0.3)
        async with site.node("a", ["b"]) as a, site.node("b", ["a"]) as b:
            await asyncio.sleep(5)
            for _ in range(10):
                await a.observe(a.choose(), 1.0)
            await a.leave()
            await asyncio.sleep(1)
            assert b.state().arms[0].heard_count == 10
            assert counters(b, "ended_bye") == (1,)
            assert a.ready() == (False, "it has left")

    run(main())


def test_turns_let_everything_else_run_in_between():
    async def main():
        turns, log = LinkTurns(), []

        async def work(name):
            for _ in range(4):
                await turns.wait(SLICE)
                log.append(name)

        async def tick():
            for _ in range(20):
                log.append(".")
                await asyncio.sleep(0)

        await asyncio.gather(work("a"), work("b"), work("c"), tick())
        # Everything else runs between two turns, and once all have begun each has its turn after the others.
        turns = "".join(log).split(".")
        assert max(map(len, turns)) == 1
        assert "abc" * 3 in "".join(turns)

    asyncio.run(main())


# --- notices


def test_a_notice_spreads_to_all_and_stays(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", ["b"]) as a, site.node("b", ["a", "c"]) as b:
            async with site.node("c", ["b"]) as c:
                await c.observe(c.choose(), 1.0)
                await asyncio.sleep(1)
                [life] = a.lives("c")
                await a.notice(notices.retire(AUTHORITIES[0].key, MESH, [("c", int(life, 16))], 1))
                await asyncio.sleep(1)
                assert [node.state().arms[0].heard_count for node in (a, b)] == [0, 0]
                assert c.lives("c") != [life]
                assert c.state().arms[0].own_count == 0
            async with site.node("c", ["b"]) as c:
                await asyncio.sleep(1)
                assert c.state().caps["notices"].used == 1
                await c.observe(c.choose(), 1.0)
                await asyncio.sleep(1)
                assert a.state().arms[0].heard_count == 1

    run(main())


def test_an_expelled_member_is_out_until_it_has_a_new_certificate(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", waits_for=["b"]) as a:
            async with site.node("b", ["a"], not_before=100) as b:
                await asyncio.sleep(1)
                assert is_up(a, "b")
                await a.notice(notices.expel(AUTHORITIES[0].key, MESH, "b", 200, 1))
                assert not is_up(a, "b")
                await asyncio.sleep(60)
                assert not is_up(a, "b")
                assert counters(a, "ended_expelled") == (1,)
                assert counters(a, "refused_expelled")[0] > 1
                assert "expelled" in b.peers()[0].last_refusal
            async with site.node("b", ["a"], not_before=200):
                await asyncio.sleep(1)
                assert is_up(a, "b")

    run(main())


def test_an_expulsion_outlasts_its_authority_and_a_restart(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", waits_for=["b"]) as a:
            await a.notice(notices.expel(AUTHORITIES[0].key, MESH, "b", 200, 1))
        for _ in range(2):
            # Else a certificate of the new authority from before that would count again.
            async with site.node("a", waits_for=["b"], trusts=1) as a, site.node("b", ["a"], not_before=100, trusts=1):
                await asyncio.sleep(1)
                assert counters(a, "refused_expelled") > (0,)
                assert a.state().caps["notices"].used == 0

    run(main())


def test_notices_that_nobody_trusted_signed_are_refused_and_counted(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            good = notices.retire(AUTHORITIES[0].key, MESH, [("c", 5)], 1)
            await connection.write(codec.encode_notices([good[:-1] + b"x", b"nonsense", good, good]))
            await asyncio.sleep(1)
            assert counters(a, "refused_notice") == (2,)
            assert a.state().caps["notices"].used == 1

    run(main())


def test_a_flood_of_empty_notices_is_one_line(tmp_path, caplog):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members") as a:
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            await connection.write(codec.encode_notices([b""] * 1000))
            await asyncio.sleep(10)
            assert counters(a, "refused_notice") == (1000,)

    with caplog.at_level(logging.INFO, "banditmesh.live"):
        run(main())
    assert [record.getMessage() for record in caplog.records].count("notice refused") == 1


def test_ping_is_answered_with_its_number(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", accept="members"):
            connection = await site.stranger("a")
            await connection.write(greet("stranger"))
            assert isinstance(await said(connection), codec.Hello)
            for number in (7, 0, 2**63):
                await connection.write(codec.encode_ping(number))
                assert await said(connection) == codec.Pong(number)

    run(main())


def test_longer_ttl_lets_what_was_heard_before_travel_further(tmp_path):
    async def main():
        site = Site(tmp_path)
        a, b = site.node("a", ["b"]), site.node("b", waits_for=["a", "c"], protocol=bm.IRS())
        async with a, b, site.node("c", ["b"]) as c:
            await a.observe(a.choose(), 1.0)
            await asyncio.sleep(5)
            assert [node.state().arms[0].heard_count for node in (b, c)] == [1, 0]
            await b.reload(msgspec.structs.replace(b.config, protocol=bm.Flooding(3)))
            await asyncio.sleep(5)
            assert [node.state().arms[0].heard_count for node in (b, c)] == [1, 1]

    run(main())


# --- what a link rests on


def test_a_link_ends_with_the_certificate_it_rests_on_and_comes_back_with_a_new_one(tmp_path):
    async def main():
        site = Site(tmp_path)
        async with site.node("a", waits_for=["b"]) as a, site.node("b", ["a"], not_after=1030) as b:
            await asyncio.sleep(29)
            assert is_up(a, "b")
            await asyncio.sleep(3)
            await b.observe(b.choose(), 0.5)
            await asyncio.sleep(30)
            # Nothing more is believed, and the dialler is told why.
            assert a.state().arms[0].heard_count == 0
            assert counters(a, "ended_expired", "links") == (1, 1)
            assert "expired: the certificate of 'b' has expired" in b.peers()[0].last_refusal
            b._parts.transport.identity = identity(MESH, "b")
            await asyncio.sleep(40)
            assert is_up(a, "b")
            assert a.state().arms[0].heard_count == 1

    run(main())


def test_links_that_a_stricter_accept_does_not_allow_end_at_once(tmp_path):
    async def main():
        site = Site(tmp_path)
        a = site.node("a", waits_for=["b"], accept="members")
        async with a, site.node("b", ["a"]), site.node("c", ["a"]) as c:
            await asyncio.sleep(1)
            assert is_up(a, "b")
            assert is_up(a, "c")
            await a.reload(msgspec.structs.replace(a.config, accept="neighbours"))
            assert [peer.name for peer in a.peers()] == ["b"]
            assert is_up(a, "b")
            await asyncio.sleep(10)
            assert "not_a_neighbour" in c.peers()[0].last_refusal
            assert counters(a, "ended_not_a_neighbour") == (1,)

    run(main())
