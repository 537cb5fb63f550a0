"""Those who are no members, or not the member they should be: whole nodes refuse them by name, and nothing changes."""

import asyncio
import time

import msgspec
import pytest
from embedded import a_node, counters, estimates, is_linked, refusals, report, run, until
from meshes import DAY, Authority, now

from banditmesh.live import links
from banditmesh.live.http.metrics import Metrics
from banditmesh.live.names import Address
from banditmesh.live.transport import PlainTransport, TlsTransport, identity, keys

NOTHING = {"red": (0, None), "blue": (0, None)}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("mesh"))


def files(mesh, name):
    return keys.issue(mesh.folder / "authority", name, mesh.folder / name, force=True)


def strange(mesh, kind):
    """How a stranger connects, who calls itself x."""
    own_key = identity.new_key()
    own = identity.certify_authority(own_key, "shop", now(), now() + DAY)

    def signed(begin, end, by=None):
        def certify(key, authority_key, authority):
            signer = (authority_key, authority) if by is None else by
            return identity.certify_node(key.public_key(), "shop", "x", *signer, begin, end)

        return TlsTransport(mesh.forge(f"x-{kind}", certify))

    if kind == "expired":
        return signed(now() - 9 * DAY, now() - DAY)
    if kind == "wrong_authority":
        return signed(now(), now() + DAY, by=(own_key, own))
    if kind == "self_signed":
        return TlsTransport(
            mesh.forge("x-self", lambda key, *_: identity.certify_authority(key, "shop", now(), now() + DAY))
        )
    return PlainTransport()


# What the stranger is, and what it is told of that.
STRANGERS = {
    "expired": "expired",
    "wrong_authority": "wrong_authority",
    "self_signed": "wrong_authority",
    "plaintext": "closed",
}


def test_strangers_change_nothing_and_are_refused_by_name(tmp_path, mesh, eager):
    async def main():
        a = a_node(tmp_path, "a", keys=files(mesh, "a"))
        async with a, a_node(tmp_path, "b", {"a": a.address}, keys=files(mesh, "b")) as b:
            await until(lambda: is_linked(a, "b"))
            for kind, heard in STRANGERS.items():
                x = a_node(tmp_path / kind, "x", {"a": a.address}, transport=strange(mesh, kind))
                async with x:
                    await report(x, "red", 1.0)
                    await until(lambda kind=kind: counters(a, f"refused_{kind}") > (1,))  # it tries again
                    [peer] = await until(lambda x=x: [one for one in x.peers() if one.last_refusal])
                    assert peer.last_refusal.split(":")[0] == heard
                    assert estimates(a) == estimates(b) == NOTHING
                    assert [one.name for one in a.peers()] == ["b"]
                    assert x.lives("a") == a.lives("x") == []
            await report(b, "red", 0.5)
            await until(lambda: estimates(a)["red"] == (1, 0.5))
            assert set(refusals(a)) == {f"refused_{kind}" for kind in STRANGERS}
            assert counters(a, "links") == (1,)

    run(main())


def test_expelled_member_loses_its_links_everywhere_and_comes_back_with_a_new_certificate(tmp_path, mesh, eager):
    async def main():
        a = a_node(tmp_path, "a", keys=files(mesh, "a"))
        async with a, a_node(tmp_path, "b", {"a": a.address}, keys=files(mesh, "b")) as b:
            old = {"a": a.address, "b": b.address}
            async with a_node(tmp_path, "x", old, keys=files(mesh, "x")) as x:
                await report(x, "red", 1.0)
                await until(lambda: estimates(a)["red"] == estimates(b)["red"] == (1, 1.0))
                # The notice is handed to b alone, and a hears of it.
                await b.notice(keys.expel(mesh.folder / "authority", "x").read_bytes())
                await until(lambda: not is_linked(a, "x") and not is_linked(b, "x") and is_linked(a, "b"))
                await until(lambda: all("expelled" in (peer.last_refusal or "") for peer in x.peers()))
                assert counters(a, "refused_expelled") > (0,)
                await report(x, "red", 1.0)
            # What it told before has left with its certificate, and counts again under a new one.
            assert estimates(a)["red"] == estimates(b)["red"] == (0, None)
            async with a_node(tmp_path, "x", old, keys=files(mesh, "x")):
                await until(lambda: estimates(a)["red"] == estimates(b)["red"] == (2, 1.0))
                assert is_linked(a, "x")

    run(main())


def test_links_end_where_their_authority_is_not_trusted_any_more(tmp_path, mesh, eager):
    new = Authority(tmp_path / "new")

    async def main():
        a = a_node(tmp_path, "a", keys=files(mesh, "a"))
        async with a, a_node(tmp_path, "b", {"a": a.address}, keys=files(mesh, "b")) as b:
            await until(lambda: is_linked(a, "b"))
            await a.reload(msgspec.structs.replace(a.config, keys=files(new, "a")))
            assert counters(a, "ended_wrong_authority") == (1,)
            assert not is_linked(a, "b")
            await report(b, "red", 0.5)
            await until(lambda: "wrong_authority" in (b.peers()[0].last_refusal or ""))
            assert estimates(a) == NOTHING
            # The dialler dials again with what it has then.
            await b.reload(msgspec.structs.replace(b.config, keys=files(new, "b")))
            await until(lambda: estimates(a)["red"] == (1, 0.5))

    run(main())


def test_own_certificate_that_ends_is_warned_of_and_ends_all_links(tmp_path, mesh, eager, monkeypatch):
    monkeypatch.setattr(links, "LOOK_EVERY", 0.01)
    passed = 0.0

    async def main():
        nonlocal passed
        a = a_node(tmp_path, "a", keys=files(mesh, "a"), clock=lambda: time.time() + passed)
        async with a, a_node(tmp_path, "b", {"a": a.address}, keys=files(mesh, "b")):
            await until(lambda: is_linked(a, "b"))
            ends = a.state().certificate_ends
            assert 364 * DAY < ends - now() <= 365 * DAY
            assert a.state().warnings == []
            passed = 340.0 * DAY
            [warning] = a.state().warnings
            assert warning.startswith("the certificate expires at 20")
            assert f"\nbanditmesh_certificate_ends_seconds {float(ends)}\n" in Metrics(a).text().decode()
            assert is_linked(a, "b")
            passed = 366.0 * DAY
            await until(lambda: counters(a, "ended_expired") == (1,))
            [warning] = a.state().warnings
            assert "expired at" in warning
            # It can still choose.
            assert a.ready() == (True, "")
            assert a.choose().arm == "red"

    run(main())


def test_member_joins_a_node_while_300_connections_are_half_open(tmp_path, mesh):
    async def main():
        async with a_node(tmp_path, "a", keys=files(mesh, "a")) as a:
            writers = []
            for number in range(300):
                _, writer = await asyncio.open_connection(*Address.parse(a.address))
                writer.write((b"", b"\x16\x03")[number % 2])
                writers.append(writer)
            async with a_node(tmp_path, "b", {"a": a.address}, keys=files(mesh, "b")) as b:
                await report(b, "red", 0.5)
                await until(lambda: estimates(a)["red"] == (1, 0.5))
                assert counters(b, "links") == (1,)
                assert counters(a, "refused_too_many") >= (300 - 68,)
            for writer in writers:
                writer.close()

    run(main())
