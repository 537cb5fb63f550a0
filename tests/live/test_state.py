"""The state of a node on disk: nothing acknowledged is lost, and nothing damaged is believed."""

import asyncio
import gzip
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from banditmesh import FwA
from banditmesh.errors import InputError, StoreError
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.disk import (
    AgentClock,
    BanditMemory,
    CallerKey,
    Changes,
    Closed,
    Life,
    OpenTicket,
    OwnArm,
    Start,
    Stored,
    TicketBook,
    schema,
)
from banditmesh.live.disk.state import BESIDE, FILE, Store, copy_state
from banditmesh.live.member import Member
from banditmesh.live.statistics import ArmSpec, Entry, certificate_id

EPOCH = 2**64 - 3
FULL = Changes(
    life=Life(EPOCH, 2, 40, 3600.5),
    own=[
        OwnArm("red", 7, 0.1 + 0.2, 5, -0.25, 9),
        OwnArm("blue", 0, 0.0, 0, 0.0, 1),
        OwnArm("ads/de/red", 7, 0.5, 5, 0.25, 9, 6.5, 0.4, 1.8e9, 4.25, 0.2, 1.7e9),
    ],
    starts=[Start(1, 12.5), Start(2, 1e9)],
    closed=[Closed(1, 0, 3), Closed(1, 5, 5), Closed(2, 0, 40)],
    caller_keys=[CallerKey(3, "invoice 7"), CallerKey(4, "")],
    entries=[
        Entry("b", 0, "red", 2**53 - 1, 1e12, 0, passes=False),
        Entry("b", 2**64 - 1, "green", 1, -1e12, 4, passes=True),
        Entry("a", 5, "red", 3, 1.5, 4, passes=True),
        Entry("a", 6, "red", 3, 1.5, 4, 3, 1.5, 0.0, certificate_id(b"a"), bytes(64), passes=True, is_observed=True),
        Entry("b", 7, "red", 3, 1.5, 4, 2.5, 1.25, 1.8e9, certificate_id(b"b"), bytes(64), passes=False),
    ],
    notices=[b"\x00signed", b"other"],
    retired=[("c", 2**63)],
    ticket_book=TicketBook(bytes(range(32)), 2, 100_000, 0),
    certificates=[b"a", b"b"],
    open_tickets=[OpenTicket(1, 2, "red", 0.5), OpenTicket(2, 39, "blue", 3600.5)],
    memories=[BanditMemory("default", "discount(half_life = 86400)")],
    clocks=[AgentClock("ads", "de", 30, 20.5, 1.8e9), AgentClock("default", "", 10)],
)


def open_store(folder, **more):
    return Store.open(folder, "shop", "a", **more)


def stored_of(changes, **more):
    """What is read after changes were written to an empty file."""
    found = {name: getattr(changes, name) for name in Stored.__struct_fields__ if name in Changes.__struct_fields__}
    keys = {"own": lambda one: one.arm, "entries": lambda one: one.key, "notices": None, "certificates": certificate_id}
    found |= {name: sorted(found[name], key=key) for name, key in keys.items()}
    return Stored(**{"mesh": "shop", "node": "a", **found, **more})


@pytest.fixture
def folder(tmp_path):
    """The folder of a state that holds something in every table."""
    with open_store(tmp_path / "state") as store:
        store.write(FULL)
    return tmp_path / "state"


def load(folder):
    with open_store(folder) as store:
        return store.load()


# What is written is read


def test_a_new_folder_has_no_life(tmp_path):
    assert load(tmp_path / "deep" / "state") is None
    assert load(tmp_path / "deep" / "state") is None


def test_everything_written_is_read_exactly(folder):
    assert load(folder) == stored_of(FULL)


def test_changes_are_applied_in_the_stated_order(folder):
    with open_store(folder) as store:
        store.write(
            Changes(
                forgotten_starts=[1],
                forgotten_closed=[(2, 0)],
                forgotten_caller_keys=3,
                removed=[("b", 0, "red"), ("nobody", 1, "red")],
                settled_tickets=[(1, 2), (1, 3)],
                forgotten_certificates=[certificate_id(b"a"), bytes(16)],
                closed=[Closed(2, 7, 8)],
                entries=[Entry("a", 5, "red", 4, 2.5, 1, passes=False)],
            )
        )
        found = store.load()
        assert found.starts == [Start(2, 1e9)]
        assert found.closed == [Closed(2, 7, 8)]
        assert found.caller_keys == [CallerKey(4, "")]
        assert found.open_tickets == FULL.open_tickets[1:]
        assert found.certificates == [b"b"]
        assert found.entries == [
            Entry("a", 5, "red", 4, 2.5, 1, passes=False),
            FULL.entries[3],
            FULL.entries[4],
            Entry("b", 2**64 - 1, "green", 1, -1e12, 4, passes=True),
        ]
        store.write(Changes(life=Life(1, 1, 0), clear_own=True, own=[OwnArm("red", 0, 0.0, n_chosen=3)]))
        found = store.load()
        assert (found.own, found.starts, found.closed) == ([OwnArm("red", 0, 0.0, n_chosen=3)], [], [])
        assert (found.open_tickets, found.memories, found.clocks) == ([], FULL.memories, FULL.clocks)
        assert found.life == Life(1, 1, 0)


@pytest.mark.parametrize("total", [-0.0, 0, 3, 5e-324, 0.1, 1e300 / 1e289])
def test_sums_come_back_as_they_were(folder, total):
    with open_store(folder) as store:
        entry = Entry("b", 1, "x", 3, total, 1, passes=True)
        store.write(Changes(own=[OwnArm("red", 3, total, 3, total)], entries=[entry]))
        found = store.load()
    assert {one.arm: one.total for one in found.own}["red"] == total
    assert entry in found.entries


def test_commits_and_saves_run_one_after_the_other_off_the_loop(tmp_path):
    async def run(store):
        await asyncio.gather(
            store.commit(FULL),
            *(store.save_entries([Entry("d", n, "red", 1, 0.5, 1, passes=True)]) for n in range(20)),
            *(store.commit(Changes(own=[OwnArm(f"arm {n}", 1, 0.5)])) for n in range(20)),
        )
        await store.save_entries([], [("d", 3, "red")])

    with open_store(tmp_path) as store:
        asyncio.run(run(store))
        found = store.load()
    assert len([entry for entry in found.entries if entry.origin == "d"]) == 19
    assert len(found.own) == 20 + len(FULL.own)


def test_a_write_that_was_begun_is_finished_whatever_becomes_of_who_waits(tmp_path):
    async def run(store):
        waiting = [asyncio.create_task(store.commit(Changes(own=[OwnArm(f"arm {n}", 1, 0.5)]))) for n in range(5)]
        await asyncio.sleep(0)
        for task in waiting[:3]:
            task.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    with open_store(tmp_path) as store:
        store.write(FULL)
        done = asyncio.run(run(store))
        asyncio.run(store.commit(Changes(own=[OwnArm("of another loop", 1, 0.5)])))
    with open_store(tmp_path) as store:
        found = store.load()
    assert [type(one) for one in done[:3]] == [asyncio.CancelledError] * 3
    assert done[3:] == [None, None]
    assert {one.arm for one in found.own} >= {*(f"arm {n}" for n in range(5)), "of another loop"}


def test_a_store_ends_after_what_it_was_asked_for_though_its_loop_has_ended(tmp_path):
    n_threads = threading.active_count()
    with open_store(tmp_path) as store:
        store.write(FULL)

        async def leave():
            for n in range(5):
                store._writer.run(lambda n=n: store.write(Changes(own=[OwnArm(f"arm {n}", 1, 0.5)])))

        asyncio.run(leave())
    assert threading.active_count() == n_threads
    with open_store(tmp_path) as store:
        assert {one.arm for one in store.load().own} >= {f"arm {n}" for n in range(5)}


def test_a_closed_store_refuses_politely(tmp_path):
    store = open_store(tmp_path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.write(FULL)
    with pytest.raises(StoreError, match="is closed"):
        asyncio.run(store.commit(FULL))


def test_a_name_that_no_node_may_have_is_refused(tmp_path):
    with pytest.raises(InputError, match="node must be"):
        Store.open(tmp_path, "shop", "")


# Who may have it


def test_a_second_store_on_the_folder_is_refused(folder):
    with open_store(folder), pytest.raises(StoreError, match=f"in use by process {os.getpid()}; stop it") as caught:
        open_store(folder)
    assert "\n" not in str(caught.value)
    with open_store(folder):
        pass


def test_a_second_process_on_the_folder_is_refused_until_the_first_is_killed(folder):
    script = f"""
    import sys, time
    from banditmesh.live.disk.state import Store
    store = Store.open({str(folder)!r}, "shop", "a")
    print("open", flush=True)
    time.sleep(600)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match=f"in use by process {process.pid}"):
            open_store(folder)
    finally:
        process.kill()
        process.communicate()
    assert load(folder) == stored_of(FULL)


@pytest.mark.parametrize(("mesh", "node"), [("other", "a"), ("shop", "b")])
@pytest.mark.parametrize("began", [True, False])
def test_the_state_of_another_node_is_refused(tmp_path, mesh, node, began):
    with open_store(tmp_path) as store:
        if began:
            store.write(FULL)
    with pytest.raises(
        StoreError, match=r"belongs to node 'a' of mesh 'shop', not to .*; name another state folder, or .*"
    ):
        Store.open(tmp_path, mesh, node)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StoreError, match=r"cannot be used: (File exists|Not a directory); make it a folder"):
            open_store(folder)


# What is damaged


def change(folder, *statements):
    with closing(sqlite3.connect(folder / FILE)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


#: How rows end in which there is no memory and no signature.
PLAIN = {"entries": (0, 0.0, 0.0, 0.0, b"", b""), "own": (0.0,) * 6, "life": (0.0,)}


def resealed(table, row):
    """Statements cannot seal rows; this can, as an enemy would."""
    table_of = {one.name: one for one in schema.TABLES}[table]
    row += PLAIN[table][len(row) - len(table_of.columns) :] if len(row) < len(table_of.columns) else ()

    def put(folder):
        with closing(sqlite3.connect(folder / FILE)) as db:
            table_of.put(db, [row])
            db.commit()

    return put


HOSTILE = {
    "a count of 0": ("entries", ("b", 1, "red", 0, 0.5, 1, 1)),
    "a count of 2^53": ("entries", ("b", 1, "red", 2**53, 0.5, 1, 1)),
    "an infinite sum": ("entries", ("b", 1, "red", 1, float("inf"), 1, 1)),
    "a sum too large": ("entries", ("b", 1, "red", 1, 1.1e12, 1, 1)),
    "a negative ttl": ("entries", ("b", 1, "red", 1, 0.5, -1, 1)),
    "a flag of 2": ("entries", ("b", 1, "red", 1, 0.5, 1, 2)),
    "a text for a count": ("entries", ("b", 1, "red", "many", 0.5, 1, 1)),
    "a blob for a name": ("entries", (b"b", 1, "red", 1, 0.5, 1, 1)),
    "a name too long": ("entries", ("b" * 129, 1, "red", 1, 0.5, 1, 1)),
    "a name with a line break": ("entries", ("b\n", 1, "red", 1, 0.5, 1, 1)),
    "an entry of the present life": ("entries", ("a", EPOCH - 2**63, "red", 1, 0.5, 1, 1)),
    "more told than seen": ("own", ("red", 1, 0.5, 2, 0.5, 1)),
    "an own sum too large": ("own", ("red", 1, 2e12, 1, 0.5, 1)),
    "a told sum of nothing": ("own", ("red", 1, 0.5, 0, 0.5, 1)),
    "an own arm without a name": ("own", ("", 1, 0.5, 1, 0.5, 1)),
    "a told weight of nothing": ("own", ("red", 1, 0.5, 0, 0.0, 1, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)),
    "a weight above the count": ("own", ("red", 1, 0.5, 0, 0.0, 1, 1.5, 0.5, 1.8e9, 0.0, 0.0, 0.0)),
    "a weight below 1": ("entries", ("b", 1, "red", 1, 0.5, 1, 1, 0, 0.5, 0.25, 1.8e9, b"", b"")),
    "a weighted sum too large": ("entries", ("b", 1, "red", 2, 0.5, 1, 1, 0, 1.5, 2e12, 1.8e9, b"", b"")),
    "a stamp before 1970": ("entries", ("b", 1, "red", 1, 0.5, 1, 1, 0, 1.0, 0.5, -1.0, b"", b"")),
    "a short signature": ("entries", ("b", 1, "red", 1, 0.5, 1, 1, 0, 0.0, 0.0, 0.0, bytes(16), bytes(63))),
    "a signature by no certificate": ("entries", ("b", 1, "red", 1, 0.5, 1, 1, 0, 0.0, 0.0, 0.0, b"", bytes(64))),
    "a text for a certificate": ("certificates", (bytes(16), "text")),
    "an open ticket of a start to come": ("open_tickets", (9, 1, "red", 0.0)),
    "a negative uptime": ("life", (EPOCH - 2**63, 2, 40, -1.0)),
    "a second life": ("life", (1, 1, 1)),
    "a second key": ("ticket_book", (bytes(32), 1, 1, 0)),
    "a start to come": ("starts", (9, 1.0)),
    "a ticket of a start to come": ("closed", (9, 0, 1)),
    "an interval that ends before it begins": ("closed", (1, 9, 8)),
    "intervals that overlap": ("closed", (1, 2, 9)),
    "a negative number": ("caller_keys", (-1, "k")),
    "a text for a notice": ("notices", ("text",)),
    "a retired life without a name": ("retired", ("", 1)),
    "a second node": ("about", ("shop", "b", "state")),
    "a strange kind": ("about", ("shop", "a", "trap")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_row_that_cannot_be_is_refused_even_with_a_right_checksum(folder, what):
    resealed(*HOSTILE[what])(folder)
    with pytest.raises(StoreError, match=r"state\.db is damaged: .*; restore a backup .*--new-life") as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE own SET total = total + 1 WHERE arm = 'red'",
        "UPDATE entries SET passes = 1 - passes",
        "UPDATE life SET start = start + 1",
        "UPDATE notices SET notice = x'00' WHERE notice = CAST('other' AS BLOB)",
        "UPDATE about SET checksum = 0",
        "DELETE FROM life",
        "DELETE FROM about",
        "DROP TABLE own",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER own_trap AFTER INSERT ON own BEGIN DELETE FROM closed; END",
        "CREATE INDEX by_count ON entries (count)",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
    ],
)
def test_a_file_that_somebody_changed_is_refused(folder, statement):
    change(folder, statement)
    with pytest.raises(StoreError, match=r"state\.db is damaged: .*; restore a backup .*--new-life"):
        load(folder)


#: What the file of format 1 holds, which the code of that time wrote.
FULL_1 = Changes(
    life=Life(EPOCH, 2, 40),
    own=FULL.own[:2],
    starts=FULL.starts,
    closed=FULL.closed,
    caller_keys=FULL.caller_keys,
    entries=FULL.entries[:3],
    notices=FULL.notices,
    retired=FULL.retired,
)


@pytest.fixture
def folder_1(tmp_path):
    """A folder with a file of format 1."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / FILE).write_bytes(gzip.decompress((Path(__file__).parent / "format_1.db.gz").read_bytes()))
    return folder


@pytest.mark.parametrize("first", [Changes(own=[OwnArm("red", 8, 0.5)]), Changes(ticket_book=FULL.ticket_book)])
def test_a_file_of_format_1_is_read_as_it_is_and_brought_up_to_date_by_the_first_write(folder_1, first):
    copy_state(folder_1, folder_1.parent / "backup")
    with open_store(folder_1) as store:
        assert store.load() == stored_of(FULL_1)
        store.write(first)
        found = store.load()
        assert (found.own[1], found.ticket_book) == ((first.own or FULL_1.own)[0], first.ticket_book)
        assert (found.life, found.entries, found.closed) == (FULL_1.life, stored_of(FULL_1).entries, FULL_1.closed)
        store.write(FULL)
        assert store.load() == stored_of(FULL)
    # So is an older backup.
    folder_1.joinpath(FILE).unlink()
    (folder_1.parent / "backup").rename(folder_1 / FILE)
    with open_store(folder_1) as store:
        assert store.load() == stored_of(FULL_1, is_backup=True)
        store.write_entries(FULL.entries)
        assert store.load().entries == stored_of(FULL).entries


def test_a_failed_upgrade_leaves_a_file_of_format_1_as_it_was(folder_1):
    with open_store(folder_1) as store, pytest.raises(OverflowError):
        store.write(Changes(own=[OwnArm("red", 2**63, 0.5)]))
    assert load(folder_1) == stored_of(FULL_1)
    with closing(sqlite3.connect(folder_1 / FILE)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_refused(tmp_path, key):
    with open_store(tmp_path) as store:
        store.write(msgspec.structs.replace(FULL, ticket_book=TicketBook(key, 1, 1, 0)))
        with pytest.raises(StoreError, match="a key in it cannot be"):
            store.load()


def test_a_later_format_is_refused(folder):
    change(folder, "PRAGMA user_version = 3")
    with pytest.raises(StoreError, match=r"has format 3, of a later banditmesh than this one, which reads up to 2; .*"):
        load(folder)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 5000, b"SQLite format 3\0" + b"\0" * 5000])
def test_what_is_no_state_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match=r"state\.db is damaged"):
        open_store(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_a_log_without_its_file_is_refused(folder):
    (folder / FILE).rename(folder / "elsewhere")
    (folder / f"{FILE}-wal").write_bytes(b"log")
    with pytest.raises(StoreError, match=r"is damaged: it is gone, and its log state\.db-wal is there"):
        open_store(folder)


def test_a_file_cut_short_anywhere_is_refused(folder):
    whole = (folder / FILE).read_bytes()
    rng = random.Random(1)
    for size in {0, 1, 16, 100, 4096, len(whole) - 4096, len(whole) - 1, *rng.sample(range(len(whole)), 20)}:
        (folder / FILE).write_bytes(whole[:size])
        with pytest.raises(StoreError):
            load(folder)


def corrupted(folder, n_times, seed):
    """Bytes that fell over anywhere: what is read is the truth, or it is refused in one line."""
    whole, truth, rng = (folder / FILE).read_bytes(), stored_of(FULL), random.Random(seed)
    used = [place for place, byte in enumerate(whole) if byte]
    refusals = []
    for _ in range(n_times):
        content = bytearray(whole)
        place = rng.choice(used) if rng.random() < 0.8 else rng.randrange(len(whole))
        for offset in range(rng.choice([1, 1, 1, 8])):
            content[(place + offset) % len(whole)] ^= 1 << rng.randrange(8)
        (folder / FILE).write_bytes(content)
        for end in BESIDE:
            (folder / f"{FILE}{end}").unlink(missing_ok=True)
        try:
            found = load(folder)
        except StoreError as error:
            refusals.append(str(error))
        else:
            assert found == truth, place
    assert not [line for line in refusals if "\n" in line]
    return len(refusals) / n_times


def test_bytes_that_fell_over_are_noticed_or_do_no_harm(folder):
    assert corrupted(folder, 300, seed=0) > 0.5


@pytest.mark.slow
def test_bytes_that_fell_over_are_noticed_or_do_no_harm_many_times(folder):
    assert corrupted(folder, 10_000, seed=1) > 0.5


def test_a_new_life_moves_what_is_there_aside_and_never_over_anything(folder):
    (folder / FILE).write_bytes(b"broken")
    for n_aside in (1, 2):
        with open_store(folder, new_life=True) as store:
            assert store.load() is None
        assert len(list(folder.glob("aside-*/state.db"))) == n_aside
    assert b"broken" in [path.read_bytes() for path in folder.glob("aside-*/state.db")]


def test_a_state_moved_aside_keeps_what_is_only_in_its_log(folder):
    copy = folder.parent / "copy"
    with open_store(folder) as store:
        store.write(Changes(own=[OwnArm("green", 1, 0.5)]))
        # As after kill -9: the log was not brought into the file.
        copy.mkdir()
        for end in ("", "-wal"):
            (copy / f"{FILE}{end}").write_bytes((folder / f"{FILE}{end}").read_bytes())
    with open_store(copy, new_life=True):
        pass
    [aside] = copy.glob("aside-*")
    assert "green" in [one.arm for one in load(aside).own]


# What goes wrong while writing


@contextmanager
def refused(match):
    with pytest.raises(StoreError, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


def test_a_full_disk_undoes_the_whole_transaction_and_the_next_try_works(folder):
    with open_store(folder) as store:
        before = store.load()
        [[pages]] = store._db.execute("PRAGMA page_count")
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        many = [OwnArm(f"arm {n}", 1, 0.5) for n in range(2000)]
        for write in (
            lambda: store.write(Changes(life=Life(EPOCH, 2, 41), clear_own=True, own=many)),
            lambda: store.write_entries([Entry("d", n, "red", 1, 0.5, 1, passes=True) for n in range(2000)]),
            lambda: asyncio.run(store.commit(Changes(life=Life(EPOCH, 2, 41), own=many))),
        ):
            with refused(r"cannot write .*state\.db: database or disk is full"):
                write()
            assert store.load() == before
        store._db.execute("PRAGMA max_page_count = 1000000")
        store.write(Changes(own=many))
        assert len(store.load().own) == 2000 + len(FULL.own)


LIMITED = """
import json, os, resource, signal, sys
from banditmesh.errors import StoreError
from banditmesh.live.member import Member
from banditmesh.live.disk import Changes, Life, OwnArm
from banditmesh.live.disk.state import Store

folder, way = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store.open(folder, "shop", "a")
store.write(Changes(life=Life(1, 1, 0)))
written, refusals = [], []
if way == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
else:
    filler = open(f"{folder}/filler", "wb", buffering=0)
    while True:
        try:
            filler.write(bytes(4096))
        except OSError:
            break
for n in range(100):
    try:
        store.write(Changes(own=[OwnArm(f"arm {n}", 1, 0.5)]))
        written.append(f"arm {n}")
    except StoreError as error:
        refusals.append(str(error))
if way == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
else:
    filler.truncate(0)
store.write(Changes(own=[OwnArm("after", 1, 0.5)]))
seen = [one.arm for one in store.load().own]
store.close()
again = [one.arm for one in Store.open(folder, "shop", "a").load().own]
print(json.dumps([written, refusals, seen, again]))
"""
IN_MOUNTS_OF_ITS_OWN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=400k small "$0" && exec "$@"')


def can_mount():
    with tempfile.TemporaryDirectory() as folder, suppress(OSError):
        return not subprocess.run([*IN_MOUNTS_OF_ITS_OWN, folder, "true"], capture_output=True).returncode
    return False


@pytest.mark.parametrize("way", ["limit", *["disk"] * can_mount()])
def test_a_disk_that_takes_no_more_is_an_error_that_passes(tmp_path, way):
    """The system itself lets no file grow, as with a quota, or a small disk is full; and then no more."""
    command = [sys.executable, "-c", LIMITED, str(tmp_path), way]
    if way == "disk":
        command = [*IN_MOUNTS_OF_ITS_OWN, str(tmp_path), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    written, refusals, seen, again = json.loads(done.stdout)
    assert refusals
    assert all(line.startswith("cannot write ") and "\n" not in line for line in refusals)
    assert sorted(seen) == sorted(again) == sorted([*written, "after"])


def test_a_state_folder_that_is_deleted_is_noticed_by_the_next_commit(folder):
    with open_store(folder) as store:
        store.write(Changes(own=[OwnArm("green", 1, 0.5)]))
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        with refused(r"cannot write .*state\.db: No such file or directory"):
            store.write(Changes(own=[OwnArm("green", 2, 0.5)]))


def test_a_file_put_in_its_place_is_noticed_by_the_next_commit(folder):
    content = (folder / FILE).read_bytes()
    with open_store(folder) as store:
        (folder / "copy").write_bytes(content)
        (folder / "copy").rename(folder / FILE)
        with refused("another file has replaced it"):
            store.write(Changes(own=[OwnArm("green", 2, 0.5)]))


def test_a_value_that_no_row_can_hold_undoes_the_whole_transaction(folder):
    with open_store(folder) as store:
        before = store.load()
        with pytest.raises(OverflowError):
            store.write(Changes(clear_own=True, own=[OwnArm("green", 2**63, 0.5)]))
        assert store.load() == before
        store.write(Changes(own=[OwnArm("green", 2, 0.5)]))


READ_ONLY = """
import os, sys
from banditmesh.errors import StoreError
from banditmesh.live.disk.state import Store
os.chdir(sys.argv[1])
if os.geteuid() == 0:  # who may do everything
    os.setgid(65534)
    os.setuid(65534)
try:
    Store.open(".", "shop", "a")
except StoreError as error:
    print(error)
"""


def test_a_read_only_folder_is_refused(folder):
    (folder / "lock").chmod(0o444)
    folder.chmod(0o555)
    done = subprocess.run([sys.executable, "-c", READ_ONLY, folder], capture_output=True, text=True, timeout=300)
    folder.chmod(0o755)
    (folder / "lock").chmod(0o644)
    assert done.stdout == (
        "the state folder . cannot be used: Permission denied; make it a folder that can be written to, or name "
        "another one as state\n"
    ), done.stderr
    assert load(folder) == stored_of(FULL)


# Backups


def test_a_backup_is_the_whole_state_and_says_what_it_is(folder, tmp_path):
    with open_store(folder) as store:
        store.write(Changes(own=[OwnArm("green", 1, 0.5)]))
        store.backup(tmp_path / "backup")
        truth = store.load()
        store.write(Changes(own=[OwnArm("green", 2, 0.5)]))
    restored = tmp_path / "restored"
    restored.mkdir()
    (tmp_path / "backup").rename(restored / FILE)
    found = load(restored)
    assert found.is_backup
    assert found == Stored(**{name: getattr(truth, name) for name in truth.__struct_fields__} | {"is_backup": True})


def test_a_backup_is_marked_until_a_new_life_begins(folder, tmp_path):
    restored = tmp_path / "restored"
    restored.mkdir()
    copy_state(folder, restored / FILE)
    with open_store(restored) as store:
        assert store.load().is_backup
        store.write(Changes(life=Life(EPOCH, 3, 40)))
    with open_store(restored) as store:
        assert store.load().is_backup
        store.write(Changes(life=Life(EPOCH - 1, 1, 40), clear_own=True))
    assert not load(restored).is_backup


def test_a_commit_that_fails_leaves_the_mark_of_a_backup(folder, tmp_path):
    restored = tmp_path / "restored"
    restored.mkdir()
    copy_state(folder, restored / FILE)
    with open_store(restored) as store:
        store.load()
        with pytest.raises(OverflowError):
            store.write(Changes(life=Life(EPOCH - 1, 1, 40), own=[OwnArm("green", 2**63, 0.5)]))
        store.write(Changes(life=Life(EPOCH, 3, 40)))
    assert load(restored).is_backup


def test_a_backup_can_be_made_from_another_process_while_the_node_writes(folder, tmp_path):
    with open_store(folder) as store:
        is_over = threading.Event()

        def write():
            for n in range(1, 10_000):
                # Both arms in one transaction: no copy may have one without the other.
                store.write(Changes(own=[OwnArm("left", n, 0.5), OwnArm("right", n, 0.5)]))
                if is_over.is_set():
                    break

        writer = threading.Thread(target=write)
        writer.start()
        script = "import sys; from banditmesh.live.disk.state import copy_state; copy_state(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", script, folder, tmp_path / "one"], check=True, timeout=300)
        for name in ("two", "three"):
            store.backup(tmp_path / name)
        is_over.set()
        writer.join()
    for name in ("one", "two", "three"):
        restored = tmp_path / f"restored {name}"
        restored.mkdir()
        (tmp_path / name).rename(restored / FILE)
        counts = {one.arm: one.count for one in load(restored).own}
        assert counts.get("left") == counts.get("right")


def test_a_backup_goes_into_a_new_file_only(folder, tmp_path):
    (tmp_path / "there").write_text("precious")
    for path in (tmp_path / "there", folder / FILE):
        with refused("a backup must be a new file"):
            copy_state(folder, path)
    with refused("there is no state in"):
        copy_state(tmp_path, tmp_path / "new")
    with refused("cannot use .*missing"):
        copy_state(folder, tmp_path / "missing" / "new")
    assert (tmp_path / "there").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "there"]


def test_a_damaged_state_makes_no_backup(folder, tmp_path):
    (folder / FILE).write_bytes(b"x" * 8192)
    with refused("is damaged"):
        copy_state(folder, tmp_path / "backup")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_backup_beside_the_log_of_another_file_is_refused(folder, tmp_path):
    restored = tmp_path / "restored"
    restored.mkdir()
    copy_state(folder, restored / FILE)
    with open_store(folder) as store:
        store.write(Changes(own=[OwnArm("green", 1, 0.5)]))
        (restored / f"{FILE}-wal").write_bytes((folder / f"{FILE}-wal").read_bytes())
    with refused(r"is damaged: state\.db-wal beside it is the log of another file"):
        open_store(restored)


def test_a_member_begins_a_new_life_with_what_a_backup_holds(folder, tmp_path):
    restored = tmp_path / "restored"
    restored.mkdir()
    copy_state(folder, restored / FILE)
    with open_store(restored) as store:
        arms = [ArmSpec("red"), ArmSpec("blue")]
        member = Member("shop", "a", [BanditSpec(name="default", arms=arms)], FwA(4), rng=random.Random(0))
        member.restore(store.load())
        for begin in (member.begin, member.new_life):
            if begin == member.new_life:
                assert "restored from a backup" in member.needs_new_life()
            commit = begin(epoch=8, now=0.0)
            store.write(commit.changes)
            member.committed(commit)
        assert member.needs_new_life() is None
        found = store.load()
    assert not found.is_backup
    assert found.life.epoch == 8
    assert Entry("a", EPOCH, "red", 7, 0.1 + 0.2, 4, passes=True, is_observed=True) in found.entries


# Killed while writing

WRITER = """
import sys
from banditmesh.live.member import Member
from banditmesh.live.disk import Changes, Closed, Life, OwnArm
from banditmesh.live.disk.state import Store
from banditmesh.live.statistics import Entry

store = Store.open(sys.argv[1], "shop", "a")
stored = store.load()
count = 0 if stored is None else {one.arm: one.count for one in stored.own}.get("red", 0)
while True:
    count += 1
    store.write(
        Changes(
            life=Life(1, 1, count),
            own=[OwnArm("red", count, count / 2, count, count / 2), OwnArm("blue", count, -count / 2)],
            closed=[Closed(1, 0, count)],
        )
    )
    print(count, flush=True)
    store.write_entries([Entry("b", n, "red", count, 0.5, 1, passes=True) for n in range(count % 50)])
"""


def kill_while_writing(folder, n_times, seed):
    """What was acknowledged is there after kill -9, whole; and at most one transaction more."""
    rng = random.Random(seed)
    acknowledged = 0
    for _ in range(n_times):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
        for _ in range(rng.randrange(1, 40)):
            acknowledged = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.communicate()[0].splitlines()
        acknowledged = int(rest[-1]) if rest else acknowledged
        found = load(folder)
        counts = {one.arm: one.count for one in found.own}
        assert counts["red"] in (acknowledged, acknowledged + 1)
        assert counts["blue"] == counts["red"] == found.life.n_choices
        assert found.closed == [Closed(1, 0, counts["red"])]
        assert {one.total for one in found.own} == {counts["red"] / 2, -counts["red"] / 2}
        acknowledged = counts["red"]


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path):
    kill_while_writing(tmp_path, 10, seed=0)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_process_is_killed_many_times(tmp_path):
    kill_while_writing(tmp_path, 100, seed=1)


def test_a_state_and_its_backups_are_for_their_owner_alone_from_the_first_byte_on(tmp_path, monkeypatch):
    # A mode that is set later would leave a moment in which others can read.
    monkeypatch.setattr(os, "chmod", lambda *_, **__: None)
    before, folder = os.umask(0), tmp_path / "state"
    try:
        with open_store(folder) as store:
            store.write(FULL)
            store.backup(tmp_path / "copy")
            paths = [folder, tmp_path / "copy", *folder.iterdir()]
            modes = {path.name: path.stat().st_mode & 0o777 for path in paths}
        with open_store(folder, new_life=True):
            [aside] = folder.glob("aside-*")
            modes["aside"] = aside.stat().st_mode & 0o777
    finally:
        os.umask(before)
    names = {FILE, *(f"{FILE}{end}" for end in BESIDE), "lock", "copy"}
    assert modes == {"state": 0o700, "aside": 0o700, **dict.fromkeys(names, 0o600)}


def test_a_state_that_others_can_read_is_closed_to_them_at_start(tmp_path):
    with open_store(tmp_path) as store:
        store.write(FULL)
    (tmp_path / FILE).chmod(0o644)
    with open_store(tmp_path) as store:
        store.write(FULL)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.glob(f"{FILE}*")} == {0o600}
