"""Rewards that never come: each ticket counts once, as a reward or as silence, whatever happens to clocks and disks."""

import json
import random
import sqlite3

import pytest
from members import hear, make, observe, taken
from processes import NodeProcess, wait_until

import banditmesh as bm
from banditmesh.live import ArmSpec
from banditmesh.live.disk import Stored
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Observation

LIFETIME = 60.0


def coins(*names):
    return [ArmSpec(name, law="bernoulli", reward_range=(0.0, 1.0)) for name in names]


def make_lapsing(**settings):
    return make(arms=coins("red", "blue"), lapse_reward=0.0, ticket_lifetime=LIFETIME, **settings)


def lapse(member, uptime, now=0.0):
    """Let what is due lapse; how many tickets did."""
    due = member.lapsing(uptime)
    commit, answers = member.plan(due, now, uptime=uptime)
    member.committed(commit)
    return [one.outcome for one in answers]


def test_what_is_not_settled_in_its_time_counts_once_as_silence():
    member = make_lapsing(links=("p",))
    tickets = [member.choose(0.0, uptime=float(n)).ticket for n in range(4)]
    observe(member, Observation(1.0, tickets[1]), Observation(0.0, tickets[2], withdraws=True))
    assert lapse(member, uptime=60.0) == []
    assert lapse(member, uptime=61.0) == [COUNTED]
    assert lapse(member, uptime=62.0) == []
    assert lapse(member, uptime=64.0) == [COUNTED]
    assert sum(one.count for one in member.own()) == 3
    assert sum(one.total for one in member.own()) == 1.0
    assert member.counters["observations_lapsed"] == 2
    [answer] = observe(member, Observation(1.0, tickets[0]))
    assert (answer.outcome, answer.reason.split(" has ")[1]) == (REFUSED, "lapsed or was already counted")
    assert observe(member, Observation(1.0, tickets[1]))[0].outcome == ALREADY_COUNTED
    # It is told as any reward.
    assert sum(one[3] for one in taken(member, "p")) == 3


def test_ages_are_by_uptime_and_no_clock_that_is_set_makes_silence():
    member = make_lapsing()
    ticket = member.choose(1e9, uptime=0.0).ticket
    member.tick(2e9, uptime=1.0)
    assert lapse(member, uptime=1.0, now=2e9) == []
    # Long after its lifetime by the clock, its reward still counts: by the uptime it is young.
    assert observe(member, Observation(1.0, ticket), now=2e9)[0].outcome == COUNTED


def test_a_ticket_older_than_the_last_choices_lapses():
    member = make_lapsing(open_choices=3)
    for _ in range(5):
        member.choose(0.0, uptime=0.0)
    assert lapse(member, uptime=0.0) == [COUNTED] * 2


def test_a_reward_in_the_same_transaction_is_first():
    member = make_lapsing()
    ticket = member.choose(0.0, uptime=0.0).ticket
    both = [Observation(1.0, ticket), *member.lapsing(uptime=100.0)]
    commit, answers = member.plan(both, 0.0, uptime=100.0)
    assert [one.outcome for one in answers] == [COUNTED, ALREADY_COUNTED]
    member.committed(commit)
    assert member.estimates()[ticket.arm] == (1, 1.0)
    assert observe(member, Observation(1.0, ticket))[0].outcome == ALREADY_COUNTED


def test_a_lapse_that_could_not_be_stored_has_not_happened():
    member = make_lapsing()
    ticket = member.choose(0.0, uptime=0.0).ticket
    commit, _ = member.plan(member.lapsing(100.0), 0.0, uptime=100.0)
    member.failed(commit)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED
    assert lapse(member, uptime=100.0) == []


class Rows:
    """What a disk would hold of a member."""

    def __init__(self, member, commit):
        self.member, self.open, self.own, self.starts, self.closed = member, {}, {}, {}, {}
        self.put(commit)

    def put(self, commit):
        changes = commit.changes
        if changes.clear_own:
            for rows in (self.open, self.own, self.starts, self.closed):
                rows.clear()
        for key in changes.settled_tickets:
            del self.open[key]
        self.open |= {(one.start, one.number): one for one in changes.open_tickets}
        self.own |= {one.arm: one for one in changes.own}
        self.starts |= {one.start: one for one in changes.starts}
        for key in changes.forgotten_closed:
            self.closed.pop(key, None)
        self.closed |= {(one.start, one.first): one for one in changes.closed}
        self.life = changes.life or self.life
        self.book = changes.ticket_book or getattr(self, "book", None)
        self.member.committed(commit)

    def restart(self, now=0.0, **settings):
        again = make_lapsing(begins=False, **settings)
        rows = {"own": self.own, "starts": self.starts, "closed": self.closed, "open_tickets": self.open}
        lists = {name: list(values.values()) for name, values in rows.items()}
        again.restore(Stored("mesh", "n", self.life, ticket_book=self.book, **lists))
        self.member = again
        self.put(again.begin(99, now))
        return again


def begun(**settings):
    member = make_lapsing(begins=False, **settings)
    return Rows(member, member.begin(1, 0.0))


def test_open_tickets_outlive_a_restart_on_the_uptime_that_was_stored():
    disk = begun()
    member = disk.member
    written, lost = member.choose(0.0, uptime=10.0).ticket, None
    assert member.must_write(10.0)
    disk.put(member.plan([], 0.0, uptime=12.0)[0])
    assert not member.must_write(12.5)
    lost = member.choose(0.0, uptime=13.0).ticket
    member = disk.restart(now=1e9)
    assert member.life.uptime == 12.0
    assert len(member.lapsing(70.0)) == 0
    assert not member.must_write(69.0)
    assert member.must_write(72.1)  # a minute after it was stored, too
    [due] = member.lapsing(70.5)
    assert due.ticket == written
    disk.put(member.plan([due], 1e9, uptime=70.5)[0])
    assert disk.open == {}
    # The one that was given just before the crash never lapses, and its reward still counts.
    assert lapse(member, uptime=1e6) == []
    assert observe(member, Observation(1.0, lost), now=1e9)[0].outcome == COUNTED


def test_a_new_life_drops_open_tickets():
    disk = begun()
    disk.member.choose(0.0, uptime=0.0)
    disk.put(disk.member.plan([], 0.0, uptime=1.0)[0])
    assert len(disk.open) == 1
    disk.put(disk.member.new_life(8, 0.0))
    assert disk.open == {}
    assert lapse(disk.member, uptime=1e6) == []


def test_who_takes_silence_for_nothing_any_more_closes_open_tickets_uncounted():
    disk = begun()
    ticket = disk.member.choose(0.0, uptime=0.0).ticket
    disk.put(disk.member.plan([], 0.0, uptime=1.0)[0])
    disk.member = again = make(arms=coins("red", "blue"), ticket_lifetime=LIFETIME, begins=False)
    again.restore(Stored("mesh", "n", disk.life, open_tickets=list(disk.open.values()), ticket_book=disk.book))
    disk.put(again.begin(9, 0.0))
    assert lapse(again, uptime=100.0) == [WITHDRAWN]
    assert again.estimates()[ticket.arm] == (0, 0.0)


def test_silence_weighs_as_much_as_the_reward_that_it_is_held_against():
    member = make_lapsing(memory="discount(half_life = 100)")
    member.choose(1000.0, uptime=0.0)
    due = member.lapsing(61.0)
    commit, _ = member.plan(due, 1100.0, uptime=61.0)
    member.committed(commit)
    [own] = [one for one in member.own() if one.count]
    assert (own.weight, own.stamp) == (1.0, 1100.0)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_each_ticket_counts_at_most_once(seed):
    rng = random.Random(seed)
    disk, uptime, now = begun(), 0.0, 1e9
    given, fates = [], {}
    for _ in range(400):
        uptime, now = uptime + rng.expovariate(0.2), now + rng.choice((-1e5, 1.0, 1e5))
        member, what = disk.member, rng.random()
        if what < 0.4:
            given.append(member.choose(now, uptime=uptime).ticket)
        elif what < 0.9:
            batch = [Observation(1.0, rng.choice(given)) for _ in range(rng.randint(0, 2)) if given]
            batch += member.lapsing(uptime)
            commit, answers = member.plan(batch, now, uptime=uptime)
            if rng.random() < 0.2:
                member.failed(commit)
                continue
            for one, answer in zip(batch, answers, strict=True):
                if answer.outcome == COUNTED:
                    assert one.ticket not in fates
                    fates[one.ticket] = one.reward
            disk.put(commit)
        elif what < 0.97:
            disk.restart(now)
            uptime = disk.life.uptime
        else:
            given.clear()
            fates.clear()
            disk.put(member.new_life(rng.getrandbits(60), now))
        assert sum(one.count for one in disk.own.values()) == len(fates)
        assert sum(one.total for one in disk.own.values()) == sum(fates.values())


def test_a_process_counts_silence_and_goes_on_after_kill(tmp_path):
    more = 'lapse_reward = 0.0\nticket_lifetime = 3.0\ndecisions = "log"\n'
    node = NodeProcess(tmp_path / "a", "a", more=more)
    with node, node.client() as client:
        choices = [client.choose() for _ in range(3)]
        assert client.observe(choices[0], 1.0) == "counted"
        db = sqlite3.connect(f"file:{tmp_path / 'a' / 'state' / 'state.db'}?mode=ro", uri=True)
        wait_until(lambda: db.execute("SELECT count(*) FROM open_tickets").fetchone() == (2,))
        db.close()
        node.kill()
        node.start()
        wait_until(lambda: client.state()["counters"].get("observations_lapsed") == 2)
        assert sum(one["own_count"] for one in client.state()["arms"]) == 3
        node.leave()
    lapsed = [one for one in map(json.loads, (tmp_path / "a" / "log").read_text().splitlines()) if one.get("lapsed")]
    assert [one["reward"] for one in lapsed] == [0.0, 0.0]


def test_silence_that_others_count_is_heard_as_any_reward():
    origin, node = make_lapsing(node="o", links=("n",), protocol=bm.Flooding(2)), make(arms=coins("red", "blue"))
    arm = origin.choose(0.0, uptime=0.0).arm
    lapse(origin, uptime=100.0)
    hear(node, "o", *taken(origin, "n"))
    assert node.estimates()[arm] == (1, 0.0)
