"""Connections on real loopback sockets: members get through, everybody else is refused by name on both sides."""

import asyncio
import gc
import random
import socket
import ssl
import struct
from collections import Counter

import pytest
from meshes import DAY, Authority, now

from banditmesh.errors import InputError, RefusedError
from banditmesh.live.addresses import Address
from banditmesh.live.links import codec
from banditmesh.live.transport import PlainTransport, TlsTransport, certificates, door, streams

ANY = "127.0.0.1:0"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("mesh"))


@pytest.fixture(scope="module")
def a(mesh):
    return mesh.issue("a")


@pytest.fixture(scope="module")
def b(mesh):
    return mesh.issue("b")


def run(test, timeout=300):
    """Run a test's coroutine; whatever it leaves open is an error of its own."""

    async def limited():
        async with asyncio.timeout(timeout):
            return await test

    return asyncio.run(limited())


class Side:
    """A transport with what it refused; `accepted` has the connections that came."""

    def __init__(self, contexts=None, **options):
        self.refusals = []
        self.accepted = asyncio.Queue()
        self.transport = TlsTransport(contexts, self.refusals.append, **options) if contexts else PlainTransport()

    async def __aenter__(self):
        self.listener = await self.transport.listen(ANY, self.accepted.put)
        self.address = self.listener.address
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        await self.transport.close()

    @property
    def reasons(self):
        return Counter(refusal.reason for refusal in self.refusals)

    async def refused(self, n=1):
        """Wait for so many refusals."""
        while len(self.refusals) < n:
            await asyncio.sleep(0.005)
        return self.refusals


async def pair(dialler, listener, name="a"):
    connection = await dialler.transport.dial(listener.address, name)
    return connection, await listener.accepted.get()


async def read(connection, n_bytes):
    data = b""
    while len(data) < n_bytes:
        piece = await connection.read()
        assert 0 < len(piece) <= 64 * 1024
        data += piece
    return data


# Members.


@pytest.mark.parametrize("kind", ["tls", "plain"])
def test_last_words_arrive_although_the_transport_is_closed_at_once(kind, a, b):
    async def test():
        secure = kind == "tls"
        async with Side(a if secure else None) as one, Side(b if secure else None) as other:
            dialled, accepted = await pair(other, one)
            n_sent, writing = 0, None
            while writing is None or writing.done():
                writing = asyncio.create_task(dialled.write(bytes(50_000)))
                n_sent += 50_000
                await asyncio.wait({writing}, timeout=0.2)  # until all buffers are full, and it has to wait
            dialled.close()
            closing = asyncio.create_task(other.transport.close())
            await asyncio.sleep(0)
            assert await read(accepted, n_sent) == bytes(n_sent)
            accepted.close()
            await closing
            await asyncio.wait({writing})
            assert isinstance(writing.exception(), ConnectionError)

    run(test())


@pytest.mark.parametrize("kind", ["tls", "plain"])
def test_bytes_go_both_ways_as_they_are(kind, a, b):
    async def test():
        data = random.Random(0).randbytes(1_000_000)
        secure = kind == "tls"
        async with Side(a if secure else None) as one, Side(b if secure else None) as other:
            dialled, accepted = await pair(other, one)
            for source, target in ((dialled, accepted), (accepted, dialled)):
                sending = asyncio.create_task(send(source, data))
                assert await read(target, len(data)) == data
                await sending
            dialled.close()
            assert await accepted.read() == b""
            assert await dialled.read() == b""
            accepted.close()

    async def send(connection, data):
        for start in range(0, len(data), 50_000):
            await connection.write(data[start : start + 50_000])

    run(test())


def test_both_ends_know_each_other(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            assert dialled.peer == a.own
            assert accepted.peer == b.own
            assert (accepted.peer.mesh, accepted.peer.node) == ("shop", "b")
            assert abs(accepted.peer.not_before - now()) < 3600
            assert accepted.peer.not_after - accepted.peer.not_before == 365 * DAY
            assert one.refusals == other.refusals == []

    run(test())


def test_plain_connections_prove_nothing():
    async def test():
        async with Side() as one, Side() as other:
            dialled, accepted = await pair(other, one)
            assert dialled.peer is accepted.peer is None

    run(test())


def test_what_was_written_before_the_end_arrives(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            await dialled.write(b"unread")
            await accepted.write(codec.encode_bye("replaced"))
            accepted.close()
            accepted.close()
            assert await dialled.read() == codec.encode_bye("replaced")
            assert await dialled.read() == b""

    run(test())


def test_writing_to_a_connection_that_is_over_is_an_error(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            accepted.close()
            with pytest.raises(ConnectionError):
                await accepted.write(b"late")
            assert await dialled.read() == b""
            with pytest.raises(ConnectionError):
                await dialled.write(b"late")
            dialled.close()

    run(test())


def test_closing_a_connection_that_was_reset_an_instant_before_is_no_error():
    async def test():
        async with Side() as one:
            stranger = socket.create_connection(Address.parse(one.address))
            accepted = await one.accepted.get()
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.close()
            accepted.close()
            assert await accepted.read() == b""
            while one.transport._streams._open:
                await asyncio.sleep(0.005)

    run(test())


def test_writer_waits_for_a_reader_that_does_not_read_and_holds_little(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            sent = 0

            async def write():
                nonlocal sent
                while True:
                    await dialled.write(bytes(60_000))
                    sent += 60_000

            writer = asyncio.create_task(write())
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.2)
            assert dialled._stream._transport.get_write_buffer_size() < 3 * streams.BUFFER
            assert accepted._stream._n_waiting < 6 * streams.BUFFER
            assert sent < 20_000_000
            await read(accepted, sent)  # and goes on when it is read
            writer.cancel()
            dialled.close()  # with a reader that does not read, the end comes all the same
            while other.transport._streams._open:
                await asyncio.sleep(0.05)

    run(test())


def test_read_may_be_cancelled_and_loses_nothing(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            for number in range(5):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await accepted.read()
                await dialled.write(b"%d" % number)
                assert await read(accepted, 1) == b"%d" % number

    run(test())


def test_contexts_may_be_replaced_while_listening(mesh, a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            one.transport.contexts = mesh.issue("a2")
            dialled, _ = await pair(other, one, "a2")
            assert dialled.peer.node == "a2"

    run(test())


def test_two_authorities_are_trusted_while_the_mesh_moves(tmp_path):
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")

    async def test():
        async with Side(old.issue("a", trust=[new.crt])) as one, Side(new.issue("b", trust=[old.crt])) as other:
            dialled, accepted = await pair(other, one)
            assert (dialled.peer.node, accepted.peer.node) == ("a", "b")

    run(test())


def test_members_stay_when_the_listener_closes(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            dialled, accepted = await pair(other, one)
            _, stranger = await asyncio.open_connection(*Address.parse(one.address))
            while len(one.transport._streams._open) < 2:
                await asyncio.sleep(0.005)
            one.listener.close()
            await dialled.write(b"still here")
            assert await accepted.read() == b"still here"
            with pytest.raises(ConnectionRefusedError):
                await other.transport.dial(one.address, "a")
            assert one.refusals == []
            stranger.close()

    run(test())


def test_connection_is_closed_if_nobody_takes_it(a, b):
    async def test():
        async def accept(_):
            raise RuntimeError("a mistake")

        failed = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))
        async with Side(a) as one, Side(b) as other:
            listener = await one.transport.listen(ANY, accept)
            dialled = await other.transport.dial(listener.address, "a")
            assert await dialled.read() == b""
            listener.close()
            gc.collect()
        assert [str(error) for error in failed] == ["a mistake"]

    run(test())


def test_handshakes_take_turns_with_everything_else():
    async def test():
        turns, order = door.Turns(4), []

        async def work():
            await turns.take()
            order.append("s")

        async def others():
            for _ in range(4):
                order.append("o")
                await asyncio.sleep(0)

        await asyncio.gather(*(work() for _ in range(12)), others())
        assert "".join(order) == "ssssossssossssoo"

    run(test())


# Everybody else.


async def say_hello(side, address, name="a"):
    """Dial and read, as a node does; the reason that it gets."""
    try:
        connection = await side.transport.dial(address, name)
        await connection.write(b"hello")
        return await connection.read()
    except RefusedError as error:
        return error.reason


def bad_certificate(kind, mesh):
    """Contexts that trust the mesh's authority, and present something that it did not issue like this."""
    stranger, authority = certificates.new_key(), certificates.new_key()
    begin = now()
    make = {
        "expired": lambda own, key, crt: certificates.for_node(
            own.public_key(), "shop", "x", key, crt, begin - 9 * DAY, begin - DAY
        ),
        "not_yet_valid": lambda own, key, crt: certificates.for_node(
            own.public_key(), "shop", "x", key, crt, begin + DAY, begin + 9 * DAY
        ),
        "self_signed": lambda own, key, crt: certificates.for_authority(own, "shop", begin, begin + DAY),
        "wrong_authority": lambda own, key, crt: certificates.for_node(
            own.public_key(),
            "shop",
            "x",
            authority,
            certificates.for_authority(authority, "shop", begin, begin + DAY),
            begin,
            begin + DAY,
        ),
        "forged": lambda own, key, crt: certificates.for_node(
            own.public_key(), "shop", "x", stranger, crt, begin, begin + DAY
        ),
        "wrong_mesh": lambda own, key, crt: certificates.for_node(
            own.public_key(), "other", "x", key, crt, begin, begin + DAY
        ),
        "bad_uri": lambda own, key, crt: certificates.for_node(
            own.public_key(), "shop", "", key, crt, begin, begin + DAY
        ),
    }
    return mesh.forge(f"x-{kind}", make[kind])


# What a certificate is, what the one who looks at it says, and what the one who has it hears.
BAD = {
    "expired": ("expired", "expired"),
    "not_yet_valid": ("not_yet_valid", "other"),
    "self_signed": ("self_signed", "wrong_authority"),
    "wrong_authority": ("wrong_authority", "wrong_authority"),
    "forged": ("wrong_authority", "wrong_authority"),
    "wrong_mesh": ("wrong_mesh", codec.encode_bye("wrong_mesh")),
    "bad_uri": ("bad_uri", codec.encode_bye("bad_uri")),
}


@pytest.mark.parametrize("kind", BAD)
def test_dialler_with_a_bad_certificate_is_refused_and_both_know_why(kind, mesh, a):
    seen, heard = BAD[kind]
    bad = bad_certificate(kind, mesh)

    async def test():
        async with Side(a) as one, Side(bad) as other:
            assert await say_hello(other, one.address) == heard
            [refusal] = await one.refused()
            assert (refusal.reason, refusal.dialled, refusal.node) == (seen, False, None)
            assert one.accepted.empty()
            if isinstance(heard, str):
                [refusal] = await other.refused()
                assert (refusal.reason, refusal.dialled, refusal.node) == (heard, True, "a")

    run(test())


@pytest.mark.parametrize("kind", BAD)
def test_listener_with_a_bad_certificate_is_refused_and_both_know_why(kind, mesh, a):
    seen, heard = BAD[kind]
    bad = bad_certificate(kind, mesh)

    async def test():
        async with Side(bad) as one, Side(a) as other:
            assert await say_hello(other, one.address, "x") == seen
            [refusal] = await other.refused()
            assert (refusal.reason, refusal.dialled, refusal.node) == (seen, True, "x")
            assert refusal.address == one.address
            if isinstance(heard, str):
                [refusal] = await one.refused()
                assert (refusal.reason, refusal.dialled) == (heard, False)
            else:
                accepted = await one.accepted.get()
                assert await accepted.read() == heard

    run(test())


def test_another_name_than_meant_is_refused(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            assert await say_hello(other, one.address, "c") == "wrong_name"
            [refusal] = other.refusals
            assert refusal.message == "the member must be 'c', got 'a'"
            accepted = await one.accepted.get()
            assert await accepted.read() == codec.encode_bye("wrong_name")

    run(test())


def test_client_without_a_certificate_is_refused(mesh, a):
    async def test():
        async with Side(a) as one:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(mesh.crt)
            reader, writer = await asyncio.open_connection(*Address.parse(one.address), ssl=context)
            with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
                await reader.read()
            writer.close()
            assert (await one.refused())[0].reason == "no_certificate"
            assert one.accepted.empty()

    run(test())


def test_older_tls_is_refused(mesh, a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            client = other.transport.contexts.client
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(mesh.crt)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            assert client.minimum_version == ssl.TLSVersion.TLSv1_3
            with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
                await asyncio.open_connection(*Address.parse(one.address), ssl=context)
            assert (await one.refused())[0].reason == "other"

    run(test())


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", codec.encode_ping(), b"\x00"], ids=["http", "frame", "nul"]
)
def test_plaintext_is_refused_on_both_sides(data, a, b):
    async def test():
        async def answer(reader, writer):
            writer.write(data)
            await reader.read()
            writer.close()

        async with Side(a) as one:
            reader, writer = await asyncio.open_connection(*Address.parse(one.address))
            writer.write(data)
            assert await reader.read() == b""
            writer.close()
            assert (await one.refused())[0].reason == "plaintext"
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            address = str(Address.of(server.sockets[0].getsockname()))
            assert await say_hello(one, address) == "plaintext"
            server.close()
            await one.transport.close()
            await asyncio.sleep(0.01)

    run(test())


def test_tls_and_plain_do_not_mix(a, b):
    async def test():
        async with Side() as plain, Side(b) as other:
            dialling = asyncio.create_task(say_hello(other, plain.address))
            accepted = await plain.accepted.get()
            with pytest.raises(codec.FrameError):
                codec.Splitter().feed(await accepted.read())
            accepted.close()
            assert await dialling == "closed"

    run(test())


@pytest.mark.parametrize("say", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "a byte", "a header"])
def test_slow_loris_is_sent_away_when_its_time_is_over(say, a):
    async def test():
        async with Side(a, within=0.2) as one:
            reader, writer = await asyncio.open_connection(*Address.parse(one.address))
            writer.write(say)
            assert await reader.read() == b""
            writer.close()
            assert [refusal.reason for refusal in one.refusals] == ["timeout"]

    run(test())


def test_listener_that_never_answers_is_given_up(b):
    async def test():
        with socket.create_server(("127.0.0.1", 0)) as server:
            async with Side(b, within=0.2) as other:
                address = str(Address.of(server.getsockname()))
                assert await say_hello(other, address) == "timeout"
                assert [refusal.reason for refusal in other.refusals] == ["timeout"]

    run(test())


def test_member_joins_while_300_connections_are_half_open(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:
            hello = ssl.MemoryBIO()
            client = b.client.wrap_bio(ssl.MemoryBIO(), hello)
            with pytest.raises(ssl.SSLWantReadError):
                client.do_handshake()
            words = (b"", b"\x16\x03", hello.read())
            strangers = []
            for number in range(300):
                _, writer = await asyncio.open_connection(*Address.parse(one.address))
                writer.write(words[number % 3])
                strangers.append(writer)
            dialled, accepted = await pair(other, one)
            await dialled.write(b"here")
            assert await accepted.read() == b"here"
            places = door.AT_A_TIME + door.WAITING
            await one.refused(300 - places)
            assert set(one.reasons) <= {"too_many", "closed"}
            assert one.reasons["too_many"] >= 300 - places
            assert len(one.transport._streams._open) <= places + 1
            for writer in strangers:
                writer.close()

    run(test())


def test_member_joins_while_strangers_keep_coming(a, b):
    async def test():
        async with Side(a) as one, Side(b) as other:

            async def knock():
                while True:
                    try:
                        _, writer = await asyncio.open_connection(*Address.parse(one.address))
                    except ConnectionError:
                        continue
                    writer.write(b"\x16\x03\x01\x02\x00\x01")
                    writers.append(writer)

            writers = []
            knocking = [asyncio.create_task(knock()) for _ in range(3)]
            while len(one.refusals) < 100:
                await asyncio.sleep(0.01)
            dialled, accepted = await pair(other, one)
            await dialled.write(b"here")
            assert await accepted.read() == b"here"
            for task in knocking:
                task.cancel()
            await asyncio.gather(*knocking, return_exceptions=True)
            for writer in writers:
                writer.close()

    run(test())


class Flipper:
    """Forwards bytes between two ends, and flips one bit of the `at`-th byte in one direction."""

    def __init__(self, address, at, from_dialler):
        self.target = Address.parse(address)
        self.at = at
        self.from_dialler = from_dialler
        self.tasks = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.forward, "127.0.0.1", 0)
        self.address = str(Address.of(self.server.sockets[0].getsockname()))
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def forward(self, reader, writer):
        there, back = await asyncio.open_connection(*self.target)
        self.tasks.append(asyncio.create_task(self.copy(reader, back, self.from_dialler)))
        self.tasks.append(asyncio.create_task(self.copy(there, writer, not self.from_dialler)))

    async def copy(self, reader, writer, flips):
        position = 0
        try:
            while data := bytearray(await reader.read(65536)):
                if flips and position <= self.at < position + len(data):
                    data[self.at - position] ^= 1 << self.at % 8
                position += len(data)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def flip(a, b, at, from_dialler):
    """What both ends read of b"hello" and b"world" through a wire that flips a bit."""

    async def take(connection, word):
        try:
            # A record whose length was changed may be waited for; a node ends such a link by its silence.
            async with asyncio.timeout(0.3):
                await connection.write(word)
                return await connection.read()
        except OSError:
            return b""
        finally:
            connection.close()

    async def test():
        async with Side(a) as one, Side(b, within=2) as other, Flipper(one.address, at, from_dialler) as flipper:
            heard = []

            async def accept():
                heard.append(await take(await one.accepted.get(), b"world"))

            accepting = asyncio.create_task(accept())
            try:
                dialled = await other.transport.dial(flipper.address, "a")
                heard.append(await take(dialled, b"hello"))
            except RefusedError:
                pass
            for _ in range(2):
                await asyncio.sleep(0.01)
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            return heard

    return run(test())


def check_flips(a, b, seed, n):
    rng = random.Random(seed)
    n_cut = 0
    for number in range(n):
        heard = flip(a, b, rng.randrange(900), number % 2 == 0)
        assert set(heard) <= {b"", b"hello", b"world"}
        n_cut += sorted(heard) != [b"hello", b"world"]
    return n_cut


def test_flipped_bytes_close_the_link(a, b):
    # Fewer than all are cut: a few bits of a header mean nothing to TLS, and some bytes are never sent.
    assert check_flips(a, b, 1, 20) > 12


@pytest.mark.slow
def test_many_flipped_bytes_close_the_link(a, b):
    assert check_flips(a, b, 2, 400) > 240


# Addresses.


@pytest.mark.parametrize(
    "text, address",
    [
        ("127.0.0.1:7000", Address("127.0.0.1", 7000)),
        ("node-a.example:0", Address("node-a.example", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1)),
    ],
)
def test_addresses_are_read_and_written(text, address):
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "a", ":7000", "::1:7000", "a:b", "a:-1", "a:7000/x", "a b:1", "[a]:1", "http://a:1", 7000, None]
)
def test_other_addresses_are_refused_in_one_line(text):
    with pytest.raises(InputError, match="listen must be host:port, an IPv6 host in brackets"):
        Address.parse(text, "listen")


def test_ports_have_16_bits():
    with pytest.raises(InputError, match="at most 65535, got 70000"):
        Address.parse("a:70000")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "10.0.0.1:7000", "[::]:0", "example.org:80"])
def test_plain_tcp_stays_within_the_machine(address):
    async def test():
        with pytest.raises(InputError, match="plain TCP must stay within this machine"):
            await PlainTransport().listen(address, None)
        with pytest.raises(InputError, match="plain TCP must stay within this machine"):
            await PlainTransport().dial(address, "a")

    run(test())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"])
def test_loopback_addresses_are_known(address):
    assert Address.parse(address).is_loopback


def test_nobody_at_an_address_is_an_error_of_the_system(b):
    async def test():
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = str(Address.of(server.getsockname()))
        async with Side(b) as other:
            with pytest.raises(ConnectionRefusedError):
                await other.transport.dial(address, "a")
            with pytest.raises(OSError, match=r"."):
                await other.transport.listen("192.0.2.1:0", None)

    run(test())
