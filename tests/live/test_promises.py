"""Members under random faults, against an oracle that knows every reward: the promises that members can keep alone.

Nodes observe, retry, crash before and after what they store is stored, lose their disks, get old copies of them back,
change their arms, and hear what others sent late, twice, out of order or never. A run is a function of its seed.
"""

import contextlib
import itertools
import math
import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from members import make

import banditmesh as bm
from banditmesh.errors import InputError
from banditmesh.live.disk import Changes, Stored
from banditmesh.live.member import COUNTED, ArmSpec, Observation
from banditmesh.live.names import Caps

ARMS = ("red", "green", "blue", "grey")


class Disk:
    """What is stored of one node: it applies changes as their docstring says."""

    def __init__(self, node):
        self.node = node
        self.life = None
        self.own, self.starts, self.closed, self.keys, self.entries, self.retired = {}, {}, {}, {}, {}, set()

    def write(self, changes):
        if changes.clear_own:
            self.own, self.starts, self.closed = {}, {}, {}
        for start in changes.forgotten_starts:
            del self.starts[start]
            self.closed = {key: one for key, one in self.closed.items() if key[0] != start}
        for key in changes.forgotten_closed:
            del self.closed[key]
        self.keys = {n: one for n, one in self.keys.items() if n > changes.forgotten_caller_keys}
        for key in changes.removed:
            self.entries.pop(key, None)
        self.life = changes.life or self.life
        self.own.update((one.arm, one) for one in changes.own)
        self.starts.update((one.start, one) for one in changes.starts)
        self.closed.update(((one.start, one.first), one) for one in changes.closed)
        self.keys.update((one.number, one) for one in changes.caller_keys)
        self.entries.update((one.key, one) for one in changes.entries)
        self.retired.update(changes.retired)

    def read(self):
        rows = (list(one.values()) for one in (self.own, self.starts, self.closed, self.keys, self.entries))
        names = ("own", "starts", "closed", "caller_keys", "entries")
        return Stored("mesh", self.node, self.life, retired=sorted(self.retired), **dict(zip(names, rows, strict=True)))

    def copy(self):
        other = Disk(self.node)
        other.life = self.life
        for name in ("own", "starts", "closed", "keys", "entries", "retired"):
            setattr(other, name, getattr(self, name).copy())
        return other


class Oracle:
    """All rewards that were ever stored, by life and arm, in each branch of a life that was forked."""

    def __init__(self):
        #: By life (node, epoch): its branches, each by arm the sums of the first 0, 1, 2, ... rewards.
        self.branches = defaultdict(lambda: [defaultdict(lambda: [0.0])])
        self.forked = set()
        self.counted = set()

    def reward(self, life, arm, reward):
        sums = self.branches[life][-1][arm]
        sums.append(sums[-1] + reward)

    def fork(self, life, own):
        """A life goes on from an older state."""
        branch = defaultdict(lambda: [0.0])
        for one in own:
            branch[one.arm] = self.branches[life][-1][one.arm][: one.count + 1]
        self.branches[life].append(branch)
        self.forked.add(life)

    def count_once(self, life, one):
        """A ticket or a caller's key is counted: once in each branch of a life."""
        mark = life, len(self.branches[life]), one.ticket or one.key
        assert mark not in self.counted
        self.counted.add(mark)
        self.reward(life, one.arm or one.ticket.arm, one.reward)

    def is_true(self, life, arm, count, total):
        """Whether so many rewards of that life sum to that in some branch of it."""
        return any(count < len(branch[arm]) and branch[arm][count] == total for branch in self.branches[life])


class World:
    """Nodes on a network, with everything that can go wrong."""

    def __init__(self, seed, n_nodes=4, caps=None):
        self.rng = rng = random.Random(seed)
        self.names = [f"node-{n}" for n in range(n_nodes)]
        self.caps = caps
        self.protocol = rng.choice([bm.FwA(1), bm.FwA(3), bm.Flooding(2), bm.Flooding(4), bm.IRS()]).with_emission(
            rng.choice([bm.EveryPull(), bm.Growth(0.5)])
        )
        pairs = list(itertools.combinations(self.names, 2))
        path = set(itertools.pairwise(self.names))
        self.network = sorted(path | {pair for pair in pairs if rng.random() < 0.3})
        self.arms = {name: rng.sample(ARMS, rng.randint(1, 3)) for name in self.names}
        self.oracle = Oracle()
        self.retired = set()
        self.lost = set()
        self.up = set()
        self.leaky = set()
        self.sent = []
        self.archive = []
        self.open = defaultdict(list)
        self.now = 0.0
        self.disks = {name: Disk(name) for name in self.names}
        self.backups = {}
        self.nodes = {}
        for name in self.names:
            self.start(name)
        for pair in self.network:
            self.connect(pair)

    # What nodes do

    def start(self, name):
        """A process starts on what its disk has."""
        arms = [ArmSpec(arm, sigma=1.0) for arm in self.arms[name]]
        rng = random.Random(self.rng.getrandbits(32))
        member = make(name, arms, self.protocol, begins=False, rng=rng, **({"caps": self.caps} if self.caps else {}))
        disk = self.disks[name]
        if disk.life is not None:
            member.restore(disk.read())
        self.nodes[name] = member
        self.commit(name, member.begin(self.rng.getrandbits(64), self.now))
        self.retire(name, self.retired)

    def retire(self, name, lives):
        """Notices come, before anything else does."""
        self.disks[name].write(Changes(retired=sorted(lives)))
        self.nodes[name].retire(lives)
        self.renew(name)

    def commit(self, name, commit):
        self.disks[name].write(commit.changes)
        self.nodes[name].committed(commit)

    def renew(self, name):
        """A new life begins where one is needed."""
        while self.nodes[name].needs_new_life():
            self.commit(name, self.nodes[name].new_life(self.rng.getrandbits(64), self.now))

    def stop(self, name):
        """A process is gone, with its links."""
        for pair in [pair for pair in self.up if name in pair]:
            self.cut(pair)
        del self.nodes[name]

    def cut(self, pair):
        """A link goes down. What was on its way is not read any more, unless somebody replays it."""
        self.up.discard(pair)
        for a, b in (pair, pair[::-1]):
            self.nodes[a].link_down(b)
        self.forget(pair)

    def connect(self, pair):
        """A link comes up, in the place of the one before."""
        self.forget(pair)
        self.up.add(pair)
        for a, b in (pair, pair[::-1]):
            self.nodes[a].link_up(b)

    def forget(self, pair):
        self.leaky.discard(pair)
        self.archive += [one for one in self.sent if {*one[:2]} == {*pair}]
        self.sent = [one for one in self.sent if {*one[:2]} != {*pair}]

    def deliver(self, sender, receiver, statistics):
        if receiver in self.nodes:
            self.nodes[receiver].hear(statistics, sender)
            if self.rng.random() < 0.7:
                self.nodes[receiver].settle()
            self.renew(receiver)

    # Events

    def event(self):
        self.now += self.rng.random()
        names = "observe observe observe send send deliver deliver deliver replay lose connect connect cut save"
        more = "crash lost_disk backup restore rearm retire"
        kind = self.rng.choice((names + " " + names + " " + more).split())
        getattr(self, f"on_{kind}")(self.rng.choice(self.names))

    def on_observe(self, name):
        """Choose, and report some rewards, some of them again; what is stored may fail, or be the last thing done."""
        member = self.nodes[name]
        life = name, member.life.epoch
        self.open[name].append(member.choose(self.now)[1])
        batch = [
            Observation(round(self.rng.uniform(-1, 1), 3), ticket)
            for ticket in self.rng.choices(self.open[name], k=self.rng.randint(1, 3))
        ]
        if self.rng.random() < 0.3:
            batch.append(Observation(0.25, arm=self.arms[name][0], key=f"key {self.rng.randrange(3)}"))
        commit, answers = member.plan(batch, self.now)
        if self.rng.random() < 0.15:
            member.failed(commit)
            return
        for one, answer in zip(batch, answers, strict=True):
            if answer.outcome == COUNTED:
                self.oracle.count_once(life, one)
        self.disks[name].write(commit.changes)
        if self.rng.random() < 0.1:
            self.stop(name)
            self.start(name)
        else:
            member.committed(commit)

    def on_send(self, name):
        for pair in self.up:
            for a, b in (pair, pair[::-1]):
                if a == name and (statistics := self.nodes[a].take(b, self.rng.choice([60, 10**6]))):
                    self.sent.append((a, b, statistics))

    def on_deliver(self, name):
        """Something that was sent arrives, in any order."""
        if self.sent:
            one = self.sent.pop(self.rng.randrange(len(self.sent)))
            self.archive.append(one)
            self.deliver(*one)

    def on_replay(self, name):
        """Something arrives again, from anybody. Who says that it comes from its origin keeps it from its origin."""
        if self.archive:
            _, _, statistics = self.rng.choice(self.archive)
            sender = self.rng.choice([one for one in self.names if one != name])
            self.leaky.add((min(sender, name), max(sender, name)))
            self.deliver(sender, name, statistics)

    def on_lose(self, name):
        """What is lost ends the link that it was lost on, sooner or later."""
        if self.sent:
            a, b, _ = self.sent.pop(self.rng.randrange(len(self.sent)))
            self.leaky.add((min(a, b), max(a, b)))

    def on_connect(self, name):
        self.connect(self.rng.choice(self.network))

    def on_cut(self, name):
        if self.up:
            self.cut(self.rng.choice(sorted(self.up)))

    def on_save(self, name):
        entries, removed = self.nodes[name].dirty_entries(self.rng.choice([1, 100]))
        if self.rng.random() < 0.2:
            self.nodes[name].not_stored(entries, removed)
        else:
            self.disks[name].write(Changes(entries=entries, removed=removed))

    def on_crash(self, name):
        self.stop(name)
        self.start(name)

    def on_lost_disk(self, name):
        self.stop(name)
        self.disks[name] = Disk(name)
        self.start(name)

    def on_backup(self, name):
        self.backups[name] = self.disks[name].copy()

    def on_restore(self, name):
        """An older copy of the disk comes back, and nobody says so."""
        if name in self.backups:
            self.stop(name)
            self.disks[name] = disk = self.backups[name].copy()
            self.oracle.fork((name, disk.life.epoch), disk.own.values())
            self.start(name)

    def on_rearm(self, name):
        arms = self.rng.sample(ARMS, self.rng.randint(1, 3))
        # With tight caps arms that this life has observed may leave no room for others: then it keeps those it has.
        with contextlib.nullcontext() if self.caps is None else contextlib.suppress(InputError):
            self.nodes[name].set_arms([ArmSpec(arm, sigma=1.0) for arm in arms])
            self.arms[name] = arms

    def on_retire(self, name):
        life = self.rng.choice(self.nodes[name].lives())
        self.retired.add(life)
        for one in self.names:
            self.retire(one, [life])

    # What must hold

    def check(self):
        """Promise 1, at every node: what is known of a key is the sum of its first rewards; estimates are their sum."""
        for name, member in self.nodes.items():
            epoch = member.life.epoch
            known = defaultdict(list)
            for own in member.own():
                assert own.told_count <= own.count
                assert self.oracle.is_true((name, epoch), own.arm, own.count, own.total)
                assert self.oracle.is_true((name, epoch), own.arm, own.told_count, own.told_total)
                known[own.arm].append((own.count, own.total))
            for entry in member.entries():
                life = entry.origin, entry.epoch
                assert life != (name, epoch)
                assert life not in self.retired
                assert self.oracle.is_true(life, entry.arm, entry.count, entry.total)
                known[entry.arm].append((entry.count, entry.total))
            member.settle()
            for arm, (count, total) in member.estimates().items():
                assert count == sum(n for n, _ in known[arm])
                assert math.isclose(total, math.fsum(s for _, s in known[arm]), abs_tol=1e-9)

    def heal(self):
        """All links are up and lose nothing any more, until nothing is left to send."""
        for pair in self.network:
            if pair not in self.up or pair in self.leaky:
                self.connect(pair)
        while self.sent:
            self.on_deliver(None)
        for _ in range(1000):
            sent = [(a, b, self.nodes[a].take(b, 10**9)) for pair in self.network for a, b in (pair, pair[::-1])]
            if not any(statistics for _, _, statistics in sent):
                return
            self.rng.shuffle(sent)
            for one in sent:
                self.deliver(*one)
                self.check()
        raise AssertionError("the outboxes are never empty")

    def reach(self, origin, arm):
        """The nodes that what an origin tells of an arm reaches, by the paper's own definition."""
        seen, border = {origin}, [origin]
        for _ in range(self.protocol.ttl):
            border = [
                b
                for pair in self.network
                for a, b in (pair, pair[::-1])
                if a in border and (a == origin or self.protocol.name != "fwa" or arm not in self.arms[a])
            ]
            border = [b for b in border if b not in seen]
            seen.update(border)
        return seen - {origin}

    def check_convergence(self):
        """Promises 2 and 3: what a node stands for is known wherever it reaches, and to itself if to a neighbour."""
        tables = {name: {one.key: one for one in member.entries()} for name, member in self.nodes.items()}
        for name, member in self.nodes.items():
            epoch = member.life.epoch
            told = {one.arm: (one.told_count, one.told_total) for one in member.own()}
            stands_for = [((name, epoch, arm), *sums) for arm, sums in told.items()]
            stands_for += [(key, one.count, one.total) for key, one in tables[name].items() if key[0] == name]
            for key, count, total in stands_for:
                for other in self.reach(name, key[2]) if count else ():
                    one = tables[other][key]
                    assert one.count >= count
                    if (name, key[1]) not in self.oracle.forked:
                        assert (one.count, one.total) == (count, total)
            for a, b in (two for pair in self.network for two in (pair, pair[::-1]) if two[0] == name):
                for key, one in tables[b].items():
                    if key[:2] == (a, epoch):
                        # Nobody knows more of a life than it does itself: it would have begun another one.
                        assert (one.count, one.total) <= told[key[2]]
                    elif key[0] == a:
                        assert tables[a][key].count >= one.count


def run(seed, n_events, **settings):
    world = World(seed, **settings)
    for _ in range(n_events):
        world.event()
        world.check()
    world.heal()
    return world


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_every_reward_counts_at_most_once_and_what_is_told_arrives(seed):
    run(seed, 60).check_convergence()


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_caps_hold_and_nothing_is_missing_unless_it_was_refused_and_counted(seed):
    caps = Caps(origins=2, epochs=2, arms=3, entries=5, links=3, notices=1)
    world = run(seed, 60, caps=caps)
    for member in world.nodes.values():
        usage = {name: (cap.used, cap.most) for name, cap in member.snapshot().caps.items()}
        assert all(used <= cap for name, (used, cap) in usage.items() if name not in ("own_entries", "entries", "arms"))
        # Its own arms it always knows.
        assert usage["arms"][0] <= 3 + len(ARMS)
    if not any(name.startswith("refused_") for member in world.nodes.values() for name in member.counters):
        world.check_convergence()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 4000, 500))
def test_promises_hold_in_thousands_of_runs(first):
    for seed in range(first, first + 500):
        run(seed, 100, n_nodes=random.Random(seed).randint(2, 6)).check_convergence()
