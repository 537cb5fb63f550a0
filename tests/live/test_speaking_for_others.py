"""A member with a valid certificate speaks for others, on real sockets and threads: only its own statistics change."""

import msgspec
import pytest
from embedded import a_node, counters, estimates, is_linked, refusals, report, run, until
from test_hostile_member import Hostile

import banditmesh as bm
from banditmesh.live.certificates import signed_bytes
from banditmesh.live.links import codec
from banditmesh.live.names import Caps
from banditmesh.live.statistics import Statistic, certificate_id
from banditmesh.live.transport import TlsTransport, keys
from banditmesh.live.transport.identity import contexts

FAR = bm.Flooding(8)
MESH = "shop"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mesh")
    keys.init(folder / "authority", MESH)
    return {name: keys.issue(folder / "authority", name, folder / name) for name in "abx"}


def said(statistics, *certificates):
    return codec.encode_statistics(statistics, certificates)


class Liar(Hostile):
    """The member x, which signs whatever it likes with its own key."""

    def __init__(self, address, files):
        self.keys = contexts(files["x"])
        super().__init__(address, TlsTransport(self.keys))
        self.certificate = self.keys.own.certificate

    def signed(self, one):
        return self.with_signature(one, self.keys.key.sign(signed_bytes(MESH, one.key, one.values)))

    def with_signature(self, one, signature):
        weight, weighted_total, stamp = one.values[2:]
        return msgspec.structs.replace(
            one,
            weight=float(weight),
            weighted_total=weighted_total,
            stamp=stamp,
            certificate=certificate_id(self.certificate),
            signature=signature,
        )


def mesh(tmp_path, files, attack, caps=None):
    """The nodes a and b, both linked, while x is linked with a and attacks it."""

    async def main():
        more = {"protocol": FAR, "caps": caps or Caps()}
        a = a_node(tmp_path, "a", keys=files["a"], **more)
        async with a, a_node(tmp_path, "b", {"a": a.address}, keys=files["b"], **more) as b:
            await until(lambda: is_linked(a, "b"))
            await report(b, "red", 1.0, 0.0)
            await until(lambda: estimates(a)["red"] == (2, 0.5))
            async with Liar(a.address, files) as x:
                await attack(a, b, x)
            # Everything goes on: what b observes next arrives, and nothing else has changed.
            await report(b, "blue", 1.0)
            await until(lambda: estimates(a)["blue"][0] >= 1)
            return a.state(), b.state()

    return run(main(), patience=120)


def test_statistic_of_an_invented_node_has_no_effect(tmp_path, files):
    lie = Statistic("nobody", 7, "red", 10**6, 1e6, 9)

    async def attack(a, b, x):
        connection = await x.link()
        await connection.write(said([x.signed(lie), lie], x.certificate))
        await until(lambda: refusals(a) == {"refused_others_certificate": 1, "refused_unsigned": 1})
        assert estimates(a)["red"] == estimates(b)["red"] == (2, 0.5)
        assert is_linked(a, "x")

    mesh(tmp_path, files, attack)


def test_invented_lives_and_counts_silence_nobody(tmp_path, files):
    async def attack(a, b, x):
        connection = await x.link()
        epoch = int(b.state().epoch, 16)
        lies = [Statistic("b", life, "red", 5, 5.0, 9) for life in range(63)]
        lies += [Statistic(name, epoch, "red", 10**9, 5.0, 9) for name in "ab"]
        lies.append(Statistic("a", int(a.state().epoch, 16), "red", 10**9, 5.0, 9))
        await connection.write(said([*map(x.signed, lies), *lies], x.certificate))
        await until(lambda: sum(refusals(a).values()) == 2 * len(lies))
        lives = a.state().epoch, b.state().epoch
        await report(b, "red", 1.0)
        await until(lambda: estimates(a)["red"][0] == 3)
        assert (a.state().epoch, b.state().epoch) == lives
        assert a.lives("b") == [lives[1]]

    mesh(tmp_path, files, attack)


def test_liar_fills_no_more_than_its_share_and_others_have_room(tmp_path, files):
    caps = Caps(entries=60, entries_per_origin=20)

    async def attack(a, b, x):
        connection = await x.link()
        lies = [x.signed(Statistic("x", number % 7, f"arm {number}", 1, 1.0, 9)) for number in range(200)]
        await connection.write(said(lies, x.certificate))
        await until(lambda: counters(a, "refused_entries_per_origin") == (180,))
        assert a.state().caps["entries"].used == 21
        assert a.state().warnings == ["20 of 20 entries_per_origin are in use (caps.entries_per_origin)"]
        await until(lambda: b.state().caps["entries"].used == 20)

    mesh(tmp_path, files, attack, caps)


def test_what_a_member_says_of_itself_counts_and_travels(tmp_path, files):
    async def attack(a, b, x):
        connection = await x.link()
        await connection.write(said([x.signed(Statistic("x", 7, "red", 2, 2.0, 9))], x.certificate))
        await until(lambda: estimates(a)["red"] == estimates(b)["red"] == (4, 0.75))

    mesh(tmp_path, files, attack)


def test_tenth_bad_signature_ends_the_link_with_that_reason(tmp_path, files):
    async def attack(a, b, x):
        connection = await x.link()
        bad = [x.with_signature(Statistic("x", 7, f"arm {n}", 1, 1.0, 9), bytes(64)) for n in range(1000)]
        await connection.write(said(bad[:9], x.certificate))
        await until(lambda: counters(a, "refused_bad_signature") == (9,))
        assert is_linked(a, "x")
        splitter, byes = codec.Splitter(), []
        await connection.write(said(bad[9:]))
        while data := await connection.read():
            byes += [one for one in map(codec.decode, splitter.feed(data)) if isinstance(one, codec.Bye)]
        assert "bad_signatures" in byes[-1].reason
        await until(lambda: counters(a, "ended_bad_signatures") == (1,))
        # It was not checked any further.
        assert counters(a, "refused_bad_signature")[0] < 200

    mesh(tmp_path, files, attack)


def test_certificate_that_is_lacking_is_asked_for_and_then_all_is_told_again(tmp_path, files):
    async def attack(a, b, x):
        connection = await x.link()
        lie = x.signed(Statistic("x", 7, "red", 2, 2.0, 9))
        await connection.write(said([lie]))
        splitter, wanted = codec.Splitter(), []
        while not wanted:
            frames = map(codec.decode, splitter.feed(await connection.read()))
            wanted += [one for one in frames if isinstance(one, codec.Wanted)]
        assert wanted == [codec.Wanted([certificate_id(x.certificate)], [])]
        assert refusals(a) == {"refused_unknown_certificate": 1}
        await connection.write(said([lie], x.certificate))
        await until(lambda: estimates(b)["red"] == (4, 0.75))
        # And a answers such a question, too: with the certificate, and with what it signed.
        ids = [certificate_id(contexts(files["b"]).own.certificate)]
        await connection.write(codec.encode_wanted(ids, []))
        found = []
        while not any(one.certificates and any(s.origin == "b" for s in one.statistics) for one in found):
            frames = map(codec.decode, splitter.feed(await connection.read()))
            found += [one for one in frames if isinstance(one, codec.Statistics)]

    mesh(tmp_path, files, attack)
