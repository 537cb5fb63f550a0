"""A member takes no more memory than the formula says, and not much less."""

import gc
import random
import re
import runpy
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from members import make, observe

import banditmesh as bm
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.certificates import MAX_CERTIFICATE, Certificate, Certificates
from banditmesh.live.links import codec
from banditmesh.live.member import ArmSpec, Observation
from banditmesh.live.names import Caps
from banditmesh.live.statistics import Statistic, certificate_id

#: The formula: it is the benchmarks', which show what things take beside it.
memory = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "live" / "sizes.py")))

# A name of 128 bytes that takes four bytes a character in memory, and a short one.
WIDE = "🙂" + "x" * 118
SHORT = "node"


def grown(act):
    """By how many bytes an act lets the memory grow."""
    # What earlier tests left is not looked at in each collection.
    gc.freeze()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = act()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before, kept
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [WIDE, pytest.param(SHORT, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_origins, n_epochs, n_arms", [(1, 1, 700), (700, 1, 1), (2, 350, 1), (10, 2, 35)])
def test_entries_take_what_the_formula_says_at_most(name, n_origins, n_epochs, n_arms):
    def act(mark):
        member = make(arms=(), protocol=bm.Flooding(4), caps=Caps(epochs=500))
        for origin in range(n_origins):
            for epoch in range(n_epochs):
                life = f"{name}{mark}{origin:05d}", 2**63 + origin * 1000 + epoch
                arms = [f"{name}{mark}{arm:05d}" for arm in range(n_arms)]
                member.hear([Statistic(*life, arm, 2**40 + n, 0.5 + n, 4) for n, arm in enumerate(arms)], "p")
        return member

    # The interpreter's own table of names may happen to grow; not twice so soon.
    taken = min(grown(lambda: act(mark))[0] for mark in "ab")  # noqa: B023
    n_lives = n_origins * n_epochs
    most = memory.most_bytes(entries=n_lives * n_arms, lives=n_lives, origins=n_origins, arms=n_arms) - memory.REST
    assert 0.12 * most < taken < most


def test_links_take_what_waits_for_them_and_nothing_once_it_is_sent():
    member = make(arms=(), protocol=bm.Flooding(4))
    member.hear([Statistic("o", 1, f"arm {number}", 1, 0.5, 4) for number in range(700)], "p")
    taken, _ = grown(lambda: [member.link_up(peer) for peer in "qr"])
    assert 0.12 * memory.WAITING * 1400 < taken < memory.WAITING * 1400
    given, _ = grown(lambda: member.take("q", 10**9) and None)
    assert given < 2000


@pytest.mark.parametrize("statistic", [("a", 1, "b", 1, 0, 1), ("ä", 300, "é", 300, 0.5, 1)])
def test_a_frame_as_dense_as_can_be_takes_less_than_a_link_at_most(statistic):
    n = (codec.MAX_FRAME - 10) // len(msgspec.msgpack.encode(statistic))
    frame = msgspec.msgpack.encode((codec.STATISTICS, [statistic] * n))
    stream = len(frame).to_bytes(4, "big") + frame
    taken, _ = grown(lambda: [codec.decode(whole) for whole in codec.Splitter().feed(stream)])
    assert 0.12 * memory.LINK < taken < memory.LINK - 4 * len(frame)


@pytest.mark.parametrize("name", [SHORT, WIDE])
def test_own_arms_take_what_the_formula_says_at_most(name):
    def act():
        member = make(arms=[ArmSpec(f"{name}{number:05d}", sigma=1.0) for number in range(700)])
        observe(member, *[(f"{name}{number:05d}", 0.5 + number) for number in range(700)])
        return member

    taken, _ = grown(act)
    assert 0.12 * memory.ARM * 700 < taken < memory.ARM * 700 + memory.REST


@pytest.mark.parametrize("n_arms", [1, 10])
def test_segments_take_what_the_formula_says_at_most(n_arms):
    bandit = BanditSpec(name="ads", arms=[ArmSpec(f"{n:03d}", sigma=1.0) for n in range(n_arms)])
    member = make(bandits=[bandit])

    def act():
        for segment in range(30):
            where = {"bandit": "ads", "segment": f"{WIDE[:100]}{segment:05d}"}
            observe(member, *[Observation(0.5, member.choose(0.0, **where).ticket) for _ in range(3 * n_arms)])

    taken, _ = grown(act)
    most = 30 * (memory.SEGMENT + n_arms * (memory.ARM + 3 * memory.CHOICE))
    assert 0.12 * most < taken < most


def test_tickets_and_keys_take_what_the_formula_says_at_most():
    member = make()
    taken, _ = grown(lambda: [member.choose(0.0) and None for _ in range(3000)] and None)
    assert taken < memory.CHOICE * 3000 + 5000
    odd = [Observation(0.5, member.choose(0.0)[1]) for _ in range(3000)][::2]
    taken, _ = grown(lambda: observe(member, *odd) and None)
    assert 0.12 * memory.INTERVAL * 1500 < taken < memory.INTERVAL * 1500
    taken, _ = grown(
        lambda: observe(member, *[Observation(0.5, arm="red", key=f"{WIDE}{n:05d}") for n in range(700)]) and None
    )
    assert 0.12 * memory.KEY * 700 < taken < memory.KEY * 700
    taken, _ = grown(lambda: member.retire([(f"{WIDE}{n:05d}", 2**63 + n) for n in range(700)]))
    assert 0.12 * memory.RETIRED * 700 < taken < memory.RETIRED * 700


@pytest.mark.parametrize("name", [SHORT, WIDE])
def test_signatures_take_what_the_formula_says_at_most(name):
    rng, rows = random.Random(0), [(f"{name}{n % 7}", 1, f"{name}{n:05d}") for n in range(700)]

    def act(is_signed):
        origins = [f"{name}{n}" for n in range(7)]
        known = Certificates("mesh")
        for n, origin in enumerate(origins):
            known.add(Certificate(bytes([n]) * 16, b"", origin, 0, 10**10, None), 0.0)
        member = make(arms=(), protocol=bm.Flooding(4), certificates=known, signatures="accepted")
        for row in rows:
            signed = {"certificate": bytes([origins.index(row[0])]) * 16, "signature": rng.randbytes(64)}
            member.hear([Statistic(*row, 2**40, 0.5, 4, **(signed if is_signed else {}))], "p", is_checked=True)
        return member

    act(False)
    plain, signed = (min(grown(lambda: act(is_signed))[0] for _ in "ab") for is_signed in (False, True))  # noqa: B023
    assert 0.5 * memory.SIGNATURE * 700 < signed - plain < memory.SIGNATURE * 700


def test_largest_certificate_takes_what_the_formula_says_at_most():
    known, rng = Certificates("mesh"), random.Random(0)

    def act():
        for n in range(300):
            der = rng.randbytes(MAX_CERTIFICATE)
            known.add(Certificate(certificate_id(der), der, f"{WIDE}{n:05d}", 2**31 + n, 2**32 + n, None), 0.0)

    taken, _ = grown(act)
    # The key, which is no object of Python's, takes 1,100 bytes of what the process holds.
    assert 0.5 * memory.CERTIFICATE * 300 < taken + 1_100 * 300 < memory.CERTIFICATE * 300


def test_open_tickets_take_what_the_formula_says_at_most():
    member = make(arms=[ArmSpec("red", reward_range=(0.0, 1.0))], lapse_reward=0.0)
    taken, _ = grown(lambda: [member.choose(0.0) and None for _ in range(3000)] and None)
    most = (memory.OPEN_TICKET + memory.CHOICE) * 3000
    assert 0.12 * most < taken < most


def test_formula_adds_up_and_caps_bound_it():
    seen = {"entries": 99 * 50, "lives": 99, "origins": 99, "arms": 50, "waiting": 5_000, "choices": 100_000}
    assert round(memory.most_bytes(**seen) / 1e6, 1) == 7.8
    assert round(memory.most_bytes_within(Caps(), links=4) / 1e6) == 666
    more = {"signed": 5_000, "certificates": 99, "open_tickets": 50_000}
    assert round(memory.most_bytes(**seen, **more) / 1e6, 1) == 34.1
    assert round(memory.most_bytes_within(Caps(), links=4, certificates=100, lapses=True) / 1e6) == 770


def test_page_for_operators_has_the_formula():
    page = (Path(__file__).parents[2] / "docs" / "live" / "operators.md").read_text(encoding="utf-8")
    shown = [int(one.replace(",", "")) for one in re.findall(r"^\| ([\d,]+) \|", page, re.MULTILINE)]
    assert shown == [
        *(memory.ENTRY, memory.LIFE, memory.ORIGIN, memory.ARM, memory.SEGMENT, memory.WAITING),
        *(memory.CHOICE, memory.INTERVAL, memory.KEY, memory.RETIRED),
        *(memory.SIGNATURE, memory.CERTIFICATE, memory.OPEN_TICKET, memory.LINK),
    ]
