"""Tickets: each choice counts once, late, twice or after a restart; and what is stored of that."""

import itertools
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from members import make, observe

import banditmesh as bm
from banditmesh.live import limits
from banditmesh.live.disk import Stored
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, REFUSED, Observation, Ticket, ledger, tickets
from banditmesh.live.member.tickets import Intervals, Tickets

DAY = 86400.0


def restarted(member, changes, now, **settings):
    """The same node, started again with what these changes stored."""
    rows = {name: {} for name in ("own", "starts", "closed", "caller_keys")}
    book = None
    keys = {
        "own": lambda one: one.arm,
        "starts": lambda one: one.start,
        "closed": lambda one: (one.start, one.first),
        "caller_keys": lambda one: one.number,
    }
    for change in changes:
        for start in change.forgotten_starts:
            del rows["starts"][start]
            rows["closed"] = {key: one for key, one in rows["closed"].items() if key[0] != start}
        for key in change.forgotten_closed:
            del rows["closed"][key]
        for name, of in keys.items():
            rows[name].update((of(one), one) for one in getattr(change, name))
        life, book = change.life, change.ticket_book or book
    stored = Stored(
        "mesh", member.node, life, ticket_book=book, **{name: list(values.values()) for name, values in rows.items()}
    )
    other = make(member.node, begins=False, **settings)
    other.restore(stored)
    commit = other.begin(99, now)
    changes.append(commit.changes)
    other.committed(commit)
    return other


class Node:
    """A member that remembers what it stored, and can be started again."""

    def __init__(self, **settings):
        self.settings = settings
        self.member = make(begins=False, **settings)
        self.changes = []
        self.commit(self.member.begin(1, 0.0))

    def commit(self, commit):
        self.changes.append(commit.changes)
        self.member.committed(commit)

    def restart(self, now):
        self.member = restarted(self.member, self.changes, now, **self.settings)

    def choose(self, now=0.0):
        return self.member.choose(now)[1]

    def report(self, *tickets, now=0.0):
        commit, answers = self.member.plan([Observation(0.5, ticket) for ticket in tickets], now)
        self.commit(commit)
        return [outcome for outcome, _ in answers]

    @property
    def count(self):
        return sum(one.count for one in self.member.own())


def test_ticket_as_text_and_back():
    for arm in ("red", "a-b/c d%", "Grün 🙂", "-"):
        for seal in ("", "0123456789abcdef01234567"):
            ticket = Ticket(2**64 - 1, 3, 17, arm, seal)
            assert Ticket.parse(str(ticket)) == ticket
            assert str(ticket).isascii()


@pytest.mark.parametrize(
    "text",
    ["", "red", "1-1-1-red", "E-1-1-", "E-0-1-red", "E-1-0-red", "E-1--1-red", "E-1-1-r d", "E-1-01-red", "E- 1-1-red",
     "E-1-1-red:", "E-1-1-red:0123456789ABCDEF01234567", "E-1-1-red:01234567", "E-1-1-r:0123456789abcdef01234567:",
     "E-1-1-%ff", "E-1-1-%0a", "E-1-1-%", None, 7],
)  # fmt: skip
def test_text_that_is_no_ticket_is_refused(text):
    text = text.replace("E", "00000000000000aa") if isinstance(text, str) else text
    with pytest.raises(bm.InputError, match=r"a ticket must be one that choose\(\) gave, got"):
        Ticket.parse(text)


def test_reward_counts_once_however_often_it_is_reported():
    node = Node()
    first, second = node.choose(), node.choose()
    assert (first[:4], second[:4]) == ((1, 1, 1, "red"), (1, 1, 2, "blue"))
    assert node.report(second) == [COUNTED]
    assert node.report(second, first, first) == [ALREADY_COUNTED, COUNTED, ALREADY_COUNTED]
    assert node.report(first, second) == [ALREADY_COUNTED, ALREADY_COUNTED]
    assert node.count == 2


def test_what_could_not_be_stored_can_be_reported_again():
    node = Node()
    ticket = node.choose()
    commit, _ = node.member.plan([Observation(0.5, ticket)], 0.0)
    node.member.failed(commit)
    assert node.count == 0
    assert node.report(ticket) == [COUNTED]


def test_rewards_come_late_in_any_order_and_after_restarts():
    node = Node()
    given = [node.choose() for _ in range(6)]
    assert node.report(given[3], given[1]) == [COUNTED, COUNTED]
    node.restart(now=10.0)
    assert node.report(given[5], given[3], given[0], now=20.0) == [COUNTED, ALREADY_COUNTED, COUNTED]
    node.restart(now=30.0)
    assert node.report(*given, now=40.0) == [ALREADY_COUNTED, ALREADY_COUNTED, COUNTED, ALREADY_COUNTED, COUNTED,
                                              ALREADY_COUNTED]  # fmt: skip
    assert node.count == 6


def test_no_ticket_is_given_twice_though_choices_were_forgotten():
    node = Node()
    before = {node.choose() for _ in range(5)}
    node.restart(now=1.0)
    after = {node.choose() for _ in range(5)}
    # The clock went back to what was stored, and only the start tells these tickets apart.
    assert {one.number for one in before} == {one.number for one in after}
    assert node.report(*before, *after, now=2.0) == [COUNTED] * 10


def test_clock_goes_on_from_what_was_stored():
    node = Node()
    given = [node.choose() for _ in range(5)]
    node.report(given[0])
    node.choose()
    node.restart(now=1.0)
    assert node.choose().number == 6


def test_ticket_lapses_after_its_lifetime():
    node = Node(ticket_lifetime=100.0)
    early, late = node.choose(now=0.0), node.choose(now=50.0)
    assert node.report(early, late, now=100.1) == [REFUSED, COUNTED]
    _, [answer] = node.member.plan([Observation(0.5, early)], 100.1)
    assert answer.reason == f"ticket {early} has lapsed or was already counted"


def test_ticket_of_an_earlier_start_lapses_a_lifetime_after_the_first_restart():
    node = Node(ticket_lifetime=100.0)
    early, other = node.choose(now=0.0), node.choose(now=0.0)
    node.restart(now=90.0)
    node.restart(now=180.0)
    assert node.report(early, now=189.0) == [COUNTED]
    assert node.report(other, now=191.0) == [REFUSED]
    node.restart(now=191.0)
    # All of the first start is forgotten now, and stays refused when the clock is set back.
    assert {one.start for change in node.changes[-1:] for one in change.starts} == {4}
    assert node.changes[-1].forgotten_starts == [1]
    assert node.report(early, other, now=0.0) == [REFUSED, REFUSED]


def test_clock_that_is_set_back_counts_nothing_twice():
    node = Node(ticket_lifetime=100.0)
    given = [node.choose(now=1000.0) for _ in range(3)]
    assert node.report(given[0], now=500.0) == [COUNTED]
    node.restart(now=400.0)
    assert node.report(given[0], given[1], now=300.0) == [ALREADY_COUNTED, COUNTED]


def test_ticket_older_than_the_last_choices_lapses_and_is_forgotten():
    node = Node(open_choices=10)
    given = [node.choose() for _ in range(13)]
    assert node.report(*given[:4]) == [REFUSED, REFUSED, REFUSED, COUNTED]
    given += [node.choose() for _ in range(10)]
    assert node.report(given[3], given[12], given[13], given[22]) == [ALREADY_COUNTED, REFUSED, COUNTED, COUNTED]
    # What has lapsed is not stored any longer, and is refused all the same.
    assert (1, 4) in node.changes[-1].forgotten_closed
    assert node.report(given[3]) == [REFUSED]
    node.restart(now=1.0)
    assert node.report(given[3], given[22], now=1.0) == [REFUSED, ALREADY_COUNTED]


def test_only_the_last_starts_are_remembered(monkeypatch):
    monkeypatch.setattr(tickets, "LAST_STARTS", 3)
    node = Node()
    given = []
    for start in range(5):
        given.append(node.choose())
        node.restart(now=float(start))
    assert node.report(*given, now=5.0) == [REFUSED] * 3 + [COUNTED] * 2


def test_ticket_of_another_life_is_refused():
    node = Node()
    ticket = node.choose()
    _, answers = node.member.plan([Observation(0.5, ticket._replace(epoch=2))], 0.0)
    assert answers[0].outcome == REFUSED
    assert "present life" in answers[0].reason


@pytest.mark.parametrize("change", [{"number": 2}, {"number": 0}, {"start": 2}, {"start": 0}, {"start": -1}])
def test_ticket_that_was_never_given_is_refused(change):
    node = Node()
    assert node.report(node.choose()._replace(**change)) == [REFUSED]


def test_ticket_that_was_edited_to_another_arm_is_refused():
    node = Node()
    ticket = node.choose()
    assert ticket.arm == "red"
    assert node.report(ticket._replace(arm="blue")) == [REFUSED]
    assert node.report(ticket, ticket._replace(arm="blue")) == [COUNTED, REFUSED]
    assert [one.arm for one in node.member.own() if one.count] == ["red"]


def test_invented_tickets_of_an_earlier_start_are_refused():
    node = Node()
    ticket = node.choose()
    node.restart(now=1.0)
    invented = [ticket._replace(number=number) for number in (2, 3, 2**53, 2**63, 2**64, -1)]
    invented += [ticket._replace(seal=seal) for seal in ("", "0" * 24, "ä", None)]
    assert set(node.report(*invented, now=1.0)) == {REFUSED}
    assert node.report(ticket, now=1.0) == [COUNTED]
    # Another node, or the same one after a new life, has no use for them.
    assert Node(rng=random.Random(1)).report(ticket) == [REFUSED]


def test_tickets_that_were_open_before_there_were_seals_are_taken_until_they_lapse():
    node = Node(ticket_lifetime=100.0)
    given = [node.choose()._replace(seal="") for _ in range(3)]
    # What a version without seals has stored.
    node.changes = [msgspec.structs.replace(one, ticket_book=None) for one in node.changes]
    node.restart(now=10.0)
    assert node.report(given[0], given[0], now=20.0) == [COUNTED, ALREADY_COUNTED]
    later = node.choose(20.0)
    assert node.report(later._replace(seal=""), later, now=20.0) == [REFUSED, COUNTED]
    node.restart(now=30.0)
    assert node.report(given[1], later, now=40.0) == [COUNTED, ALREADY_COUNTED]
    assert node.report(node.choose(40.0)._replace(seal=""), now=40.0) == [REFUSED]
    assert node.report(given[2], now=111.0) == [REFUSED]


def test_new_life_takes_no_tickets_without_a_seal():
    node = Node()
    node.changes = [msgspec.structs.replace(one, ticket_book=None) for one in node.changes]
    node.restart(now=1.0)
    node.commit(node.member.new_life(2, 1.0))
    ticket = node.choose(1.0)
    assert node.report(ticket._replace(seal=""), ticket, now=1.0) == [REFUSED, COUNTED]


def test_more_open_choices_open_nothing_that_was_forgotten():
    node = Node(open_choices=5)
    given = [node.choose() for _ in range(5)]
    assert set(node.report(*given)) == {COUNTED}
    given += [node.choose() for _ in range(20)]
    assert node.report(given[-1]) == [COUNTED]
    node.settings["open_choices"] = 1000
    node.restart(now=1.0)
    assert set(node.report(*given[:20], now=1.0)) == {REFUSED}
    assert node.report(*given[20:], now=1.0) == [COUNTED] * 4 + [ALREADY_COUNTED]
    given = [node.choose(1.0) for _ in range(30)]
    assert set(node.report(*given, now=1.0)) == {COUNTED}


# Rewards without a ticket.


def test_reward_without_a_ticket_counts_once_for_each_key():
    node = Node()

    def report(*keys):
        commit, answers = node.member.plan([Observation(0.5, arm="red", key=key) for key in keys], 0.0)
        node.commit(commit)
        return [outcome for outcome, _ in answers]

    assert report("a", "a", "b") == [COUNTED, ALREADY_COUNTED, COUNTED]
    node.restart(now=1.0)
    assert report("a", "b", "c") == [ALREADY_COUNTED, ALREADY_COUNTED, COUNTED]
    assert report(None, None, "") == [COUNTED, COUNTED, REFUSED]
    assert node.count == 5


def test_only_the_last_keys_are_remembered(monkeypatch):
    monkeypatch.setattr(ledger, "LAST_KEYS", 3)
    member = make()
    for key in "abcde":
        commit, _ = member.plan([Observation(0.5, arm="red", key=key)], 0.0)
        member.committed(commit)
    assert commit.changes.forgotten_caller_keys == 2
    answers = observe(member, *[Observation(0.5, arm="red", key=key) for key in "cdeab"])
    assert [outcome for outcome, _ in answers] == [ALREADY_COUNTED] * 3 + [COUNTED] * 2


# What is stored.


def test_choices_in_turn_are_stored_as_one_interval():
    node = Node()
    for _ in range(100):
        node.report(node.choose())
    closed = {}
    for change in node.changes:
        assert not change.forgotten_closed
        closed.update(((one.start, one.first), one.last) for one in change.closed)
    assert closed == {(1, 1): 100}


@given(st.lists(st.lists(st.integers(0, 30), unique=True, max_size=6), max_size=12))
def test_intervals_are_the_numbers_that_were_put_in(batches):
    intervals, stored, numbers = Intervals(), {}, set()
    for batch in batches:
        new = [number for number in batch if number not in intervals]
        assert set(new) == set(batch) - numbers
        gone, grown = intervals.with_more(new)
        intervals.change(gone, grown)
        numbers.update(new)
        for first in gone:
            del stored[first]
        stored.update(grown)
        assert sorted(number for first, last in stored.items() for number in range(first, last + 1)) == sorted(numbers)
        # No two of them touch.
        ends = sorted((first, last) for first, last in stored.items())
        assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ends))
        assert len(intervals) == len(stored)


def test_times_of_choices_take_bounded_memory():
    book = Tickets(lifetime=5.0, open_choices=10)
    book.begin(1, 0.0, n_choices=7)
    for number in range(8, 108):
        book.give(number, now=float(number))
    assert len(book._given_at) == 10
    assert [book.has_lapsed(1, number, 107, now=107.0) for number in (97, 101, 102, 107)] == [True, True, False, False]


def test_random_reports_count_each_choice_once():
    rng = random.Random(5)
    node, given, now = Node(), [], 0.0
    for _ in range(300):
        now += 1.0
        if rng.random() < 0.03:
            node.restart(now)
        given.append(node.choose(now))
        node.report(*rng.choices(given, k=rng.randint(0, 3)), now=now)
    assert set(node.report(*given, now=now)) == {COUNTED, ALREADY_COUNTED}
    assert node.count == len(set(given)) == 300
    assert limits.OPEN_CHOICES == 100_000
