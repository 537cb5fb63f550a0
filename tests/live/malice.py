"""What hostile members do in simulated worlds: all that can be built without others' keys, and with stolen ones."""

from __future__ import annotations

import asyncio

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from simulated import HOSTILE, SimulatedTransport, contexts_of, identity
from world_keys import AUTHORITIES, MESH, STRANGER, SimulatedTls

from banditmesh.live.certificates import signed_bytes
from banditmesh.live.links import codec
from banditmesh.live.statistics import Statistic, certificate_id

ARMS = ("red", "blue", "green", "grey")


async def be_hostile(world):
    """A member replays what it recorded, with other ttls, and says what nobody may say, perhaps as somebody else."""
    machine, rng = world.draw_running(), world.rng
    if machine is None:
        return
    name, malice = HOSTILE, MALICE
    if world.is_signed:
        credential = rng.choice(world.hostile + world.stolen)
        name = credential.name if machine.name != credential.name else HOSTILE
        transport = SimulatedTls(world.network, credential.contexts(rng.choice(((0,), (0, 1)))), world.clock)
        malice = MALICE + (MIXED_MALICE if world.is_mixed else SIGNED_MALICE)
    else:
        transport = SimulatedTransport(world.network, identity(MESH, HOSTILE))
    try:
        connection = await transport.dial(machine.address, machine.name)
        connection.is_recorded = False
        version = rng.choice((1, 2, 2, 2)) if world.is_signed else 1
        await connection.write(codec.encode_hello(codec.Hello(MESH, name, 7, version, "fwa(4)", "hostile")))
        for _ in range(rng.randint(1, 5)):
            await connection.write(rng.choice(malice)(world, rng))
            await asyncio.sleep(rng.random())
    except OSError:
        pass
    transport.die()


def replayed(world, rng):
    return rng.choice(world.network.recorded) if world.network.recorded else b""


def replayed_further(world, rng):
    """Statistics that were true when they were recorded, with any ttl."""
    found = []
    for data in world.network.recorded:
        for frame in codec.Splitter().feed(data):
            message = codec.decode(frame)
            if isinstance(message, codec.Statistics):
                found += message.statistics
    some = rng.sample(found, min(len(found), 20))
    return codec.encode_statistics([msgspec.structs.replace(one, ttl=rng.choice((0, 1, 3, 255))) for one in some])


def impossible(world, rng):
    """Statistics that no node may send."""
    bad = [
        ("x", 1, "red", 0, 0.0, 3),
        ("x", 1, "red", 2**60, 0.0, 3),
        ("x", 1, "red", 1, float("nan"), 3),
        ("x", 1, "red", 1, float("inf"), 3),
        ("x", 1, "red", 1, 1e13, 3),
        ("x" * 200, 1, "red", 1, 1.0, 3),
        ("x", 1, "", 1, 1.0, 3),
        ("x", 1, "red", 1, 1.0, 0),
    ]
    return codec.encode_statistics([Statistic(*one) for one in rng.sample(bad, rng.randint(1, len(bad)))])


def nonsense(world, rng):
    notice = codec.encode_notices([rng.randbytes(90)])
    return rng.choice((rng.randbytes(rng.randint(1, 50)), b"\xff\xff\xff\xff", notice))


MALICE = (replayed, replayed_further, impossible, nonsense)


def recorded(world):
    """The statistics and the certificates that honest nodes have sent."""
    messages = [codec.decode(frame) for data in world.network.recorded for frame in codec.Splitter().feed(data)]
    messages = [one for one in messages if isinstance(one, codec.Statistics)]
    statistics = [one for message in messages for one in message.statistics]
    return statistics, [der for message in messages for der in message.certificates]


def sign(credential, one):
    """A statistic, signed by this key."""
    signature = credential.key.sign(signed_bytes(MESH, one.key, one.values))
    filled = dict(zip(("weight", "weighted_total", "stamp"), one.values[2:], strict=True))
    return msgspec.structs.replace(one, **filled, certificate=credential.id, signature=signature)


def own_lies(world, rng):
    """What it says of itself is its own affair: any values, many lives and arms, stamps of another century."""
    n, kind = rng.choice((1, 5, 80)), rng.randrange(4)
    lies = [
        Statistic(
            HOSTILE, rng.randrange(3) if kind else life, rng.choice((*ARMS, f"arm {life}")), rng.randint(1, 9), 4.0, 9
        )
        for life in range(n)
    ]
    if kind == 1:
        lies = [
            msgspec.structs.replace(one, weight=1.0, weighted_total=2.0, stamp=rng.choice((1.0, 1e15))) for one in lies
        ]
    credential = rng.choice(world.hostile)
    return codec.encode_statistics([sign(credential, one) for one in lies], [credential.der])


def steals(world, rng):
    """Lies about one whose key it has: of lives that there are or are not, as large as they may be or smaller."""
    if not world.stolen:
        return own_lies(world, rng)
    credential = rng.choice(world.stolen)
    [victim] = [one for one in world.machines if one.name == credential.name]
    epochs = [
        victim.branch.epoch,
        rng.randrange(3),
        *(one.epoch for one in recorded(world)[0] if one.origin == victim.name),
    ]
    lies = [
        Statistic(victim.name, epoch, rng.choice(ARMS), rng.choice((1, 3, 2**40)), rng.choice((0.5, 1.0)), 9)
        for epoch in rng.choices([one for one in epochs if one is not None], k=rng.choice((1, 5)))
    ]
    if rng.random() < 0.3:
        lies = [
            msgspec.structs.replace(one, weight=1.0, weighted_total=0.5, stamp=rng.choice((1.0, 2e9))) for one in lies
        ]
    return codec.encode_statistics([sign(credential, one) for one in lies], [credential.der])


def bad_signatures(world, rng):
    """Its own statistics under signatures that are wrong, as many as go into a frame."""
    credential = rng.choice(world.hostile)
    lies = [
        Statistic(HOSTILE, rng.randrange(3), f"arm {place}", 1, 1.0, 9, 1.0, 1.0)
        for place in range(rng.choice((5, 300)))
    ]
    lies = [msgspec.structs.replace(one, certificate=credential.id, signature=rng.randbytes(64)) for one in lies]
    return codec.encode_statistics(lies, [credential.der])


def speaks_for_others(world, rng):
    """Lies about others: under its own certificate, under theirs, unsigned, of lives that there are or are not."""
    machine = rng.choice(world.machines)
    epoch = machine.branch.epoch if rng.random() < 0.7 and machine.branch.epoch is not None else rng.randrange(9)
    credential = rng.choice(world.hostile)
    lie = sign(credential, Statistic(machine.name, epoch, rng.choice(ARMS), rng.randint(1, 10**6), 1e6, 9))
    theirs = [one.certificate for one in recorded(world)[0] if one.origin == machine.name and one.certificate]
    if theirs and rng.random() < 0.5:
        lie = msgspec.structs.replace(lie, certificate=rng.choice(theirs))
    if rng.random() < 0.2:
        lie = msgspec.structs.replace(lie, signature=b"", certificate=b"")
    return codec.encode_statistics([lie] * rng.choice((1, 20)), [credential.der])


def tampered(world, rng):
    """What others have signed, with something else in it; or whose signature or certificate is another."""
    statistics, ders = recorded(world)
    some = []
    for one in rng.sample(statistics, min(len(statistics), 12)):
        other = rng.choice(statistics)
        change = rng.choice(
            (
                {"count": one.count + 1},
                {"total": one.total + 1.0},
                {"stamp": 1e9, "weight": 1.0, "weighted_total": one.total},
                {"epoch": rng.randrange(9)},
                {"arm": rng.choice(ARMS)},
                {"origin": rng.choice(world.machines).name},
                {"signature": other.signature, "certificate": other.certificate},
                {"certificate": rng.randbytes(16)},
                {"signature": rng.randbytes(rng.choice((1, 64, 65)))},
                {"signature": b""},
                {"certificate": b""},
                {"signature": b"", "certificate": b""},
                {},
            )
        )
        some.append(msgspec.structs.replace(one, ttl=rng.choice((1, 3, 255)), **change))
    return codec.encode_statistics(some, rng.sample(ders, min(len(ders), 5)))


def strange_certificates(world, rng):
    """Certificates of another authority, of no authority, cut short, and no certificates at all."""
    name = rng.choice([HOSTILE, *(one.name for one in world.machines)])
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    trusted = AUTHORITIES[0]
    others = contexts_of(MESH, name, key, trusted.signer, (STRANGER.key, STRANGER.certificate)).own.certificate
    forged = contexts_of(MESH, name, key, trusted.signer, (STRANGER.key, trusted.certificate)).own.certificate
    ders = [others, forged, forged[:-1], rng.randbytes(40), b""]
    one = Statistic(name, 1, "red", 3, 1.0, 9, 3.0, 1.0)
    signature = key.sign(signed_bytes(MESH, one.key, one.values))
    lies = [
        msgspec.structs.replace(one, certificate=certificate_id(der), signature=signature) for der in (others, forged)
    ]
    return codec.encode_statistics(lies, rng.sample(ders, rng.randint(1, len(ders))))


def asks(world, rng):
    """Asks for everything there is, and for what there is not."""
    ids = [certificate_id(der) for der in recorded(world)[1]] + [rng.randbytes(16), b""]
    return codec.encode_wanted(ids[:100], [*(one.name for one in world.machines), "nobody", HOSTILE])


#: In a mesh that accepts what is not signed, a member can say anything of others: it does not, there.
MIXED_MALICE = (own_lies, own_lies, bad_signatures, asks)
SIGNED_MALICE = (
    own_lies,
    bad_signatures,
    steals,
    steals,
    speaks_for_others,
    speaks_for_others,
    tampered,
    tampered,
    strange_certificates,
    asks,
)
