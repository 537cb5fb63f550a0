"""Small meshes of real nodes on simulated time, links and disks, to which everything happens that can happen.

    Machine   a name with its disk, its arms and its neighbours; a process runs on it, or none
    World     all machines, the network, the authority and the oracle; `World.run` lives through one seed

Which events happen, when and to whom is drawn from the seed, so a run can be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections import Counter
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oracle import Branch, Oracle, Report, Violation
from simulated import (
    HOSTILE,
    Disk,
    Network,
    SimulatedTransport,
    SimulatedWorkers,
    authority,
    contexts_of,
    identity,
)

import banditmesh as bm
from banditmesh.errors import InputError, NodeError, StoreError
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.certificates import signed_bytes
from banditmesh.live.config import NeighbourConfig, NodeConfig
from banditmesh.live.links import codec, notices
from banditmesh.live.links.notices import Signer, key_id
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, WITHDRAWN, ArmSpec, Observation
from banditmesh.live.names import Caps, agent_name, arm_name
from banditmesh.live.node import Node
from banditmesh.live.statistics import Statistic, certificate_id

MESH = "simulated"
ARMS = ("red", "blue", "green", "grey")
#: The arms of a second bandit, of which some are only made when a choice names them, and its segments.
ADS = ("short", "long", "wide/r")
SEGMENTS = (None, "de", "de/be", "50%")
#: The authority of all simulated meshes.
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
SIGNER = Signer(key_id(PUBLIC), PUBLIC, MESH)
AUTHORITY = authority(KEY, MESH)
#: An authority that nobody trusts.
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
OTHER_AUTHORITY = authority(OTHER_KEY, MESH)
#: How long a mesh may take to come to rest once everything works, in simulated seconds.
PATIENCE = 400.0
#: Where silence counts: as what, which no sum of rewards can be, and after how many seconds.
SILENCE = 33 / 128
LIFETIME = 6.0


class Machine:
    """A name, its disk, and what runs on it."""

    def __init__(self, world, name, arms, folder):
        self.world = world
        self.name = name
        self.arms = arms
        self.address = f"127.0.0.1:{1000 + len(world.machines)}"
        self.neighbours = []
        self.disk = Disk(folder, MESH, name, world.rng)
        self.branch = Branch()
        self.copies = []
        self.not_before = 0
        self.key = None
        self.is_expelled = False
        self.process = None
        #: The arms of its second bandit; None in worlds that have none.
        self.ads = None
        #: What somebody got wrong in its configuration, and will correct.
        self.reward_range = None
        self.ignore = []

    def keys(self):
        """What it signs with, in a world where statistics are signed."""
        if not self.world.is_signed:
            return None
        if self.key is None:
            self.key = Ed25519PrivateKey.from_private_bytes(self.world.rng.randbytes(32))
        return contexts_of(MESH, self.name, self.key, SIGNER, (KEY, AUTHORITY), self.not_before)

    def specs(self):
        return [ArmSpec(arm, sigma=1.0, reward_range=self.reward_range) for arm in self.arms]

    def ad_specs(self):
        return [ArmSpec(arm, sigma=1.0) for arm in self.ads]

    async def reconfigure(self):
        """Let what runs on it go on with its present arms, ranges and ignored names."""
        node = self.process.node
        await node.reload(msgspec.structs.replace(node.config, arms=self.specs(), ignore=self.ignore))

    def config(self, protocol):
        return NodeConfig(
            mesh=MESH,
            node=self.name,
            listen=self.address,
            arms=self.specs(),
            ignore=self.ignore,
            protocol=protocol,
            policy=bm.UCB(),
            memory=self.world.memory,
            lapse_reward=self.world.lapse_reward,
            ticket_lifetime=86400.0 if self.world.lapse_reward is None else LIFETIME,
            bandits=[] if self.ads is None else [BanditSpec(name="ads", arms=self.ad_specs(), new_arms=True)],
            neighbours=[NeighbourConfig(name=one.name, address=one.address) for one in self.neighbours],
            accept="members",
            plain=True,
            caps=self.world.caps,
        )


class Process:
    """A node that runs on a machine, or on a copy of its disk, until it is killed or leaves."""

    def __init__(self, machine, disk, branch, address=None):
        world = machine.world
        self.machine, self.world, self.branch = machine, world, branch
        #: What its table held when it was last looked at.
        self.table = {}
        self.reports = []
        self.calls = {}
        self.choices = []
        #: Names of tickets that are being withdrawn.
        self.withdrawing = []
        keys = machine.keys()
        own = identity(MESH, machine.name, machine.not_before) if keys is None else keys.own
        self.transport = SimulatedTransport(world.network, own)
        self.store = disk.open(self.committed)
        config = machine.config(world.protocol)
        if address is not None:
            config = NodeConfig(**{**{f: getattr(config, f) for f in config.__struct_fields__}, "listen": address})
        self.node = Node(
            config,
            transport=self.transport,
            store=self.store,
            signers=[SIGNER],
            keys=keys,
            workers=SimulatedWorkers(world.rng),
            clock=world.clock,
            rng=random.Random(world.rng.getrandbits(64)),
        )

    async def start(self):
        restored = self.branch.epoch is not None
        await self.node.start()
        self.n_refused_at_start = n_refused(self.node)
        if restored and own_of(self.node):
            self.world.oracle.check_restart(self.machine.name, own_of(self.node), self.branch)

    def committed(self, changes):
        oracle = self.world.oracle
        before = set(self.branch.counted)
        oracle.committed(self.branch, self.machine.name, changes, self.reports, self.world.lapse_reward)
        reported = {report.name for report in self.reports}
        self.world.seen["lapses"] += len(self.branch.counted - before - reported)
        for name in self.withdrawing:
            if any(one.start == name[1] and one.first <= name[2] <= one.last for one in changes.closed):
                self.branch.counted.add(name)  # no reward of it counts any more

    async def kill(self):
        """As kill -9 does it."""
        self.store.is_dead = True
        self.transport.die()
        for call in self.calls:
            call.cancel()
        if self.calls:
            await asyncio.wait(list(self.calls))
        await self.node._parts.tasks.end()
        self.store.abandon()

    async def leave(self):
        await self.node.leave()
        if self.calls:
            await asyncio.wait(list(self.calls))

    # --- choosing and observing

    def choose(self, ads=None, segment=None):
        """Choose an arm, or among ads in a segment."""
        choice = self.node.choose() if ads is None else self.node.choose(ads, bandit="ads", segment=segment)
        self.world.oracle.gave(self.branch, choice.ticket)
        return choice

    def observe(self, observation, name):
        """Report a reward; the oracle hears of it before the node does."""
        arm = observation.arm if observation.ticket is None else observation.ticket.arm
        if observation.bandit is not None:
            arm = arm_name(agent_name(observation.bandit, observation.segment or ""), arm)
        report = Report(arm, observation.reward, name)
        self.reports.append(report)
        self._call(self._observe(observation, report))

    def withdraw(self, ticket, name):
        """Withdraw a ticket."""
        self.withdrawing.append(name)
        self._call(self._withdraw(ticket, name))

    def _call(self, coroutine):
        call = asyncio.get_running_loop().create_task(coroutine)
        self.calls[call] = None
        call.add_done_callback(self._answered)

    def _answered(self, call):
        self.calls.pop(call)
        if not call.cancelled() and call.exception() is not None:
            self.world.failures.append(call.exception())

    async def _observe(self, observation, report):
        try:
            [answer] = await self.node.observe_many([observation])
        except (StoreError, NodeError):
            outcome = "failed"
        else:
            outcome = answer.outcome
        self.world.oracle.answered(report, outcome == COUNTED, outcome == ALREADY_COUNTED, self.branch)
        self.reports.remove(report)
        self.world.seen[f"answer {outcome}"] += 1

    async def _withdraw(self, ticket, name):
        try:
            [answer] = await self.node.observe_many([Observation(0.0, ticket, withdraws=True)])
        except (StoreError, NodeError):
            outcome = "failed"
        else:
            outcome = answer.outcome
        if outcome in (WITHDRAWN, ALREADY_COUNTED) and name not in self.branch.counted:
            raise Violation(f"{name} was called {outcome}, and is still open")
        self.withdrawing.remove(name)
        self.world.seen[f"withdrawal {outcome}"] += 1


def own_of(node):
    """By arm: count, sum, and what was told of them."""
    own = node._member.own()
    return {one.arm: (one.count, one.total, one.told_count, one.told_total) for one in own if one.count}


def table_of(node):
    """By key: count and sum; what is outside of a range, which is kept and not used, is left out."""
    rows = node._member._table._rows.values()
    return {row.key: (row.count, row.total) for row in rows if not row.is_outside}


def outside(node):
    """By key: what is outside of a range."""
    rows = node._member._table._rows.values()
    return {row.key: (row.count, row.total) for row in rows if row.is_outside}


def n_refused(node):
    """How many statistics were refused, for whatever reason; what was stored counts too if it is refused today."""
    counters = Counter(node._member.counters)
    del counters["refused_segments"], counters["refused_new_arms"]  # these are choices
    return sum(n for counter, n in counters.items() if counter.startswith("refused_"))


def epoch_of(node):
    """The present life, or the one that begins as soon as there is room on the disk."""
    return node._member.shown_life.epoch


class World:
    """A mesh, and everything that happens to it.

    Parameters
    ----------
    seed : int
        Decides everything.
    folder : Path
        Where disks are.
    n_events : int
        How much happens.
    is_signed : bool
        Whether nodes have keys, and statistics are signed.
    """

    def __init__(self, seed, folder: Path, n_events=60, is_signed=False):
        self.rng = rng = random.Random(seed)
        self.is_signed = is_signed
        #: What was found to be signed, and who was ever expelled.
        self.found_signed = set()
        self.expelled = set()
        self.folder = folder
        self.n_events = n_events
        self.oracle = Oracle()
        self.failures = []
        self.seen = Counter()
        self.machines = []
        self.clones = []
        self.network = Network(rng, slowest=rng.choice((0.01, 0.2, 2.0)))
        self.clock_offset = 1_800_000_000.0
        #: What products ask for, in some worlds; it is drawn apart, so that the others are as they were.
        self.more = random.Random(f"{seed} products")
        self.memory = self.more.choice(("everything", "discount(half_life = 600)", "discount(half_life = 6000)"))
        self.lapse_reward = self.more.choice((None, SILENCE))
        self.protocol = draw_protocol(rng)
        self.caps = Caps(origins=2, epochs=2, arms=4, entries=5) if rng.random() < 0.1 else Caps()
        #: Counts expulsions and certificates, in the place of a time: certificates from before an expulsion are void.
        self.n_issued = 0
        arms = ARMS[: rng.randint(2, len(ARMS))]
        for place in range(rng.randint(3, 6)):
            held = rng.sample(arms, rng.randint(1, len(arms)))
            self.machines.append(Machine(self, f"node{place}", held, folder / f"node{place}"))
        self.arms = arms
        if self.caps == Caps() and rng.random() < 0.5:
            self.caps = rng.choice((Caps(), Caps(segments=2)))
            for machine in self.machines:
                machine.ads = rng.sample(ADS, rng.randint(0, 2))
        self.draw_links()
        self.n_names = 0
        #: In each world some kinds of events are frequent, and others never happen: so more of them meet each other.
        self.weights = [weight * rng.choice((0, 0, 1, 4)) for weight in WEIGHTS]
        self.weights[EVENTS.index(observe)] = 40
        self.weights[EVENTS.index(restart)] = 8
        if is_signed:
            self.weights[EVENTS.index(be_hostile)] = 8
            self.oracle.liars.add(HOSTILE)
            self.hostile_keys = contexts_of(
                MESH, HOSTILE, Ed25519PrivateKey.from_private_bytes(rng.randbytes(32)), SIGNER, (KEY, AUTHORITY)
            )
        #: Machines, tickets and rewards that come later, or again.
        self.late = []

    def draw_links(self):
        """A random tree, and some more links; one of the two ends may not know the other's address."""
        rng, machines = self.rng, self.machines
        links = {(rng.randrange(place), place) for place in range(1, len(machines))}
        links |= {tuple(sorted(rng.sample(range(len(machines)), 2))) for _ in range(rng.randint(0, len(machines)))}
        self.links = {frozenset((machines[one].name, machines[other].name)) for one, other in links}
        for one, other in sorted(links):
            who = rng.choice("abb2222")
            if who in "a2":
                machines[one].neighbours.append(machines[other])
            if who in "b2":
                machines[other].neighbours.append(machines[one])

    def clock(self):
        return self.clock_offset + asyncio.get_running_loop().time()

    # --- a run

    async def run(self):
        """Live through everything, then through healing; what was promised is checked on the way and at the end."""
        for machine in self.machines:
            if self.rng.random() < 0.9:
                await self.start(machine)
        for _ in range(self.n_events):
            await asyncio.sleep(self.rng.choice((0.0, 0.05, 0.3, 1.0, 4.0)) * self.rng.random())
            event = self.rng.choices(EVENTS, self.weights)[0]
            self.seen[event.__name__] += 1
            await event(self)
            self.check()
        await self.heal()
        await self.come_to_rest()
        self.check()
        self.check_convergence()
        for machine in self.machines:
            await self.leave(machine)
        self.check_failures()
        self.ended_at = asyncio.get_running_loop().time()

    async def start(self, machine):
        if machine.process is None:
            process = Process(machine, machine.disk, machine.branch)
            machine.process = process
            await process.start()

    async def kill(self, machine):
        if machine.process is not None:
            process, machine.process = machine.process, None
            await process.kill()

    async def leave(self, machine):
        if machine.process is not None:
            process, machine.process = machine.process, None
            await process.leave()

    def running(self):
        return [machine for machine in self.machines if machine.process is not None]

    def draw_running(self):
        running = self.running()
        return self.rng.choice(running) if running else None

    # --- what must hold

    def check_failures(self):
        for failure in self.failures:
            raise failure
        for context in asyncio.get_running_loop().failures:
            raise Violation(context["message"]) from context.get("exception")

    def check(self):
        """Promises 1 and 4, at every node, at this moment."""
        self.check_failures()
        for process in [machine.process for machine in self.running()] + self.clones:
            node = process.node
            if node.ready()[1] == "it has not been started":
                continue
            member = node._member
            epoch = epoch_of(node)
            name = process.machine.name
            table = table_of(node)
            gone = {*process.machine.ignore, *self.expelled, *self.oracle.liars}
            before = {key: value for key, value in process.table.items() if key[0] not in gone}
            forgets = self.memory != "everything"
            known = {arm: value for arm, value in member.estimates().items() if not forgets or "/" in arm}
            self.oracle.check_node(name, own_of(node), table, known, epoch)
            self.check_weights(name, member)
            self.oracle.check_memory(name, before, {**table, **outside(node)})
            process.table = table
            n_keys = len(table) + len(outside(node)) + len(own_of(node))
            self.check_bounds(name, node, n_keys, process.n_refused_at_start)
            if self.is_signed:
                self.check_signatures(name, member)
            for neighbour in node._links.neighbours.values():
                if neighbour.conversation is not None and node._parts.board.why_banned(neighbour.identity):
                    raise Violation(f"{name} is linked with {neighbour.name}, and knows that it was expelled")

    def check_signatures(self, name, member):
        """Promise 7: what is known of others was signed under a certificate of theirs that counts here."""
        certificates = member.certificates
        for row in member._table._rows.values():
            if row.is_observed:
                continue
            said = row.key, row.values, row.certificate, row.signature
            if certificates.counting.get(row.certificate) != row.key[0]:
                raise Violation(f"{name} has {row.key} under a certificate that does not count")
            if said not in self.found_signed:
                certificates[row.certificate].key.verify(row.signature, signed_bytes(MESH, row.key, row.values))
                self.found_signed.add(said)

    def check_weights(self, name, member):
        """Promise 1 of weights: each was committed by its origin, with its count; and estimates are their sum."""
        for row in member._table._rows.values():
            self.oracle.check_values(row.key, row.values, f"table of {name}")
        member.settle()
        agent = member._bandits.agents[""]
        if agent.fading is not None:
            known = dict(agent.estimates())
            for arm in known:
                agent.renew(arm)
            for arm, summed in agent.estimates():
                for one, other in zip(known[arm], summed, strict=True):
                    if not math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6):
                        raise Violation(f"{name} estimates {arm} by {known[arm]}, own and table have {summed}")

    def check_bounds(self, name, node, n_keys, n_refused_at_start):
        """Promise 4: nothing grows beyond its bound, and everything that came was used or refused for a reason."""
        member = node._member
        for peer, waiting in member._outboxes.links.items():
            if len(waiting) > n_keys:
                raise Violation(f"{name} has {len(waiting)} keys waiting for {peer}, and {n_keys} in all")
        for cap_name, cap in member.snapshot().caps.items():
            # Rows under its own name are never refused for want of room.
            if cap.used > cap.most + (member._table.roster.n_rows_of(name) if cap_name == "entries" else 0):
                raise Violation(f"{name} has {cap.used} {cap_name}, and may have {cap.most}")
        counters = member.counters
        n_heard = sum(counters[f"heard_{fate}"] for fate in ("news", "stale", "extended", "renewed", "proofs"))
        n_heard += node._parts.exchange.n_checking
        came, refused = node._parts.exchange.counts["heard"], n_refused(node) - n_refused_at_start
        if n_heard + refused != came:
            raise Violation(f"{name} heard {came} statistics, used {n_heard} and refused {refused}")

    async def heal(self):
        """Everything works again, nobody is hostile, every machine runs, and what is silent has lapsed."""
        self.network.sides, self.network.stalled = {}, set()
        self.network.release()
        for clone in self.clones:
            await clone.kill()
        self.clones.clear()
        for machine in self.machines:
            machine.disk.is_full = False
            machine.reward_range, machine.ignore = None, []
            if machine.process is not None:
                await machine.reconfigure()
            if machine.is_expelled:
                await self.kill(machine)
                self.renew(machine)
            await self.start(machine)
        if self.lapse_reward is not None:
            await asyncio.sleep(LIFETIME + 3.0)

    def renew(self, machine):
        """Give a machine a new certificate; a process that runs keeps the old one."""
        self.n_issued += 1
        machine.not_before, machine.is_expelled = self.n_issued, False
        if self.rng.random() < 0.5:
            machine.key = None  # the next one has another key

    async def come_to_rest(self):
        """Wait until all links are up and nothing waits."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        n_quiet = 0
        while n_quiet < 3:
            await asyncio.sleep(2 * self.network.slowest + 1.0)
            n_quiet = n_quiet + 1 if self.is_quiet() else 0
            if loop.time() > until:
                raise Violation(f"after {PATIENCE} s the mesh is not at rest: {self.unrest()}")

    def unrest(self):
        found = []
        for machine in self.machines:
            node = machine.process.node
            linked = set(node._links.linked())
            for link in self.links:
                if machine.name in link:
                    [other] = link - {machine.name}
                    if other not in linked:
                        found.append(f"{machine.name} has no link with {other}")
            waiting = {peer: n for peer in linked if (n := node._parts.exchange.waiting(peer))}
            if waiting:
                found.append(f"{machine.name} has this much waiting: {waiting}")
            if not node.ready()[0]:
                found.append(f"{machine.name} is not ready: {node.ready()[1]}")
            if machine.process.calls or not node._committer.is_idle:
                found.append(f"{machine.name} is still writing")
        return found

    def is_quiet(self):
        return not self.unrest()

    def check_convergence(self):
        """Promises 2 and 3: everybody in reach has what each origin told last, and origins have back what they lost."""
        nodes = {machine.name: machine.process.node for machine in self.machines}
        tables = {name: table_of(node) for name, node in nodes.items()}
        boards = {name: set(node._parts.board.notices) for name, node in nodes.items()}
        everything = set().union(*boards.values())
        retired = {life for notice in everything if isinstance(notice, notices.Retirement) for life in notice.lives}
        for name, table in tables.items():
            if boards[name] != everything:
                raise Violation(f"{name} has {len(boards[name])} of {len(everything)} notices")
            for key in [*table, (name, epoch_of(nodes[name]))]:
                if key[:2] in retired:
                    raise Violation(f"{name} still knows the retired life {key[:2]}")
        if self.protocol.name in ("gossip", "probabilistic") or self.caps.entries != Caps().entries:
            return
        for name, node in nodes.items():
            epoch = epoch_of(node)
            stands_for = {key: value for key, value in tables[name].items() if key[0] == name}
            for arm, (_, _, count, total) in own_of(node).items():
                if count:
                    stands_for[name, epoch, arm] = count, total
            for key, value in stands_for.items():
                if key[:2] in self.oracle.forked:
                    continue
                for other in self.in_reach(name, key[2]):
                    there = tables[other].get(key, (0, 0.0))
                    if there != value and (key[1] == epoch or there < value):
                        raise Violation(f"{other} has {there} of {key}, {name} told {value}")
            for link in self.links:
                if name in link:
                    [other] = link - {name}
                    for key, value in tables[other].items():
                        if key[0] == name and stands_for.get(key, (0, 0.0)) < value:
                            raise Violation(f"{name} has {stands_for.get(key)} of {key}, its neighbour {other} {value}")

    def in_reach(self, name, arm):
        """Who is within reach of a name: so many hops, and for FwA through inner nodes without the arm."""
        held = {machine.name: machine.process.node._member.estimates() for machine in self.machines}
        reached, border = {name}, {name}
        for _ in range(self.protocol.most_hops):
            inner = {one for one in border if one == name or self.protocol.name != "fwa" or arm not in held[one]}
            border = {other for one in inner for link in self.links if one in link for other in link} - reached
            reached |= border
        return reached - {name}


def draw_protocol(rng):
    """Most of the time one of those that promise convergence."""
    emission = rng.choice((bm.EveryPull(), bm.EveryPull(), bm.Growth(0.5)))
    ttl = rng.randint(1, 4)
    [protocol] = rng.choices(
        (
            bm.FwA(ttl, emission=emission),
            bm.Flooding(ttl, emission=emission),
            bm.IRS(emission=emission),
            bm.Gossip(ttl, 1, emission=emission),
            bm.ProbabilisticFlooding(ttl, 0.5, emission=emission),
        ),
        (6, 4, 1, 1, 1),
    )
    return protocol


# --- everything that can happen


async def observe(world):
    """A node chooses, and the reward comes now, later, twice, or never."""
    machine = world.draw_running()
    if machine is None:
        return
    process, rng = machine.process, world.rng
    for _ in range(rng.choice((1, 1, 2, 5))):
        if rng.random() < 0.2:
            world.n_names += 1
            name = f"key{world.n_names}"
            if machine.ads and rng.random() < 0.5:
                arm, segment = rng.choice(machine.ads), rng.choice(SEGMENTS)
                process.observe(Observation(draw_reward(rng), None, arm, name, bandit="ads", segment=segment), name)
                continue
            arm = rng.choice(machine.arms)
            process.observe(Observation(draw_reward(rng), None, arm, name), name)
            continue
        try:
            choice = process.choose(*draw_question(world, machine))
        except (StoreError, NodeError):
            return
        except InputError as refusal:  # there is no room for one more segment
            if world.caps.segments == Caps().segments or "caps.segments" not in str(refusal):
                raise
            world.seen["choice refused"] += 1
            continue
        entry = choice.ticket, draw_reward(rng)
        if rng.random() < 0.1:
            process.withdraw(entry[0], name_of(entry[0]))
        if rng.random() < 0.7:
            process.observe(Observation(entry[1], entry[0]), name_of(entry[0]))
        if rng.random() < 0.5:
            world.late.append((machine, *entry))


async def observe_late(world):
    """Rewards of open tickets come, or come again, before or after a restart."""
    for _ in range(world.rng.randint(1, 3)):
        if world.late:
            machine, ticket, reward = world.rng.choice(world.late)
            if machine.process is not None:
                machine.process.observe(Observation(reward, ticket), name_of(ticket))


async def withdraw(world):
    """A choice came to nothing, perhaps one whose reward is reported, too."""
    if world.late:
        machine, ticket, _ = world.rng.choice(world.late)
        if machine.process is not None:
            machine.process.withdraw(ticket, name_of(ticket))


async def kill(world):
    machine = world.draw_running()
    if machine is not None:
        await world.kill(machine)


async def restart(world):
    for machine in world.machines:
        if machine.process is None and world.rng.random() < 0.7:
            await world.start(machine)


async def leave(world):
    machine = world.draw_running()
    if machine is not None:
        await world.leave(machine)


async def lose_disk(world):
    """A disk is lost."""
    await lose(world, [world.rng.choice(world.machines)])


async def lose_most_disks(world):
    """All disks but one are lost, and the one that has everything is out of reach for a while."""
    [survivor, *others] = world.rng.sample(world.machines, len(world.machines))
    world.network.sides = {survivor.name: 1}
    await lose(world, others)


async def lose(world, machines):
    for machine in machines:
        await world.kill(machine)
        machine.disk.lose()
        machine.branch = Branch()
        machine.copies.clear()
    for machine in machines:
        await world.start(machine)


async def restore_disk(world):
    """An older copy of a disk is put back, and its life goes on from there until it learns better."""
    machine = world.rng.choice([one for one in world.machines if one.copies] or world.machines)
    if not machine.copies or world.rng.random() < 0.4:
        copy_disk(world)
        return
    folder, branch = world.rng.choice(machine.copies)
    await world.kill(machine)
    machine.disk.restore_from(folder)
    machine.branch = branch.copy()
    world.oracle.forked.add((machine.name, branch.epoch))
    await world.start(machine)


def copy_disk(world):
    machine = world.rng.choice(world.machines)
    if machine.branch.epoch is not None:
        folder = world.folder / f"{machine.name}.copy{len(machine.copies)}"
        machine.disk.copy_to(folder)
        machine.copies.append((folder, machine.branch.copy()))


async def clone(world):
    """A copy of a disk runs under the same name, beside the first."""
    machine = world.draw_running()
    if machine is not None and not world.clones and machine.process.branch.epoch is not None:
        folder = world.folder / f"{machine.name}.clone{world.n_names}"
        world.n_names += 1
        disk = Disk(folder, MESH, machine.name, world.rng)
        machine.disk.copy_to(folder)
        branch = machine.branch.copy()
        world.oracle.forked.add((machine.name, branch.epoch))
        process = Process(machine, disk, branch, address=f"127.0.0.1:{5000 + world.n_names}")
        world.clones.append(process)
        await process.start()


async def end_clone(world):
    while world.clones:
        await world.clones.pop().kill()


async def observe_at_clone(world):
    for process in world.clones:
        with contextlib.suppress(StoreError):
            choice = process.choose()
            process.observe(Observation(draw_reward(world.rng), choice.ticket), name_of(choice.ticket))


async def fill_disk(world):
    disk = world.rng.choice(world.machines).disk
    disk.is_full = not disk.is_full


async def partition(world):
    world.network.sides = {machine.name: world.rng.randrange(2) for machine in world.machines}
    world.network.release()


async def heal_partition(world):
    world.network.sides = {}
    world.network.release()


async def stall(world):
    world.network.stalled ^= {world.rng.choice(world.machines).name}
    world.network.release()


async def cut(world):
    if world.network.connections:
        world.rng.choice(list(world.network.connections)).cut()


async def change_arms(world):
    machine, rng = world.draw_running(), world.rng
    if machine is not None and machine.ads is not None and rng.random() < 0.6:
        await change_ads(world, machine)
    elif machine is not None:
        machine.arms = world.rng.sample(world.arms, world.rng.randint(1, len(world.arms)))
        await machine.process.node.set_arms(machine.specs())


async def change_ads(world, machine):
    """Arms of the second bandit come and go, one or all."""
    node, arm = machine.process.node, world.rng.choice(ADS)
    there = [one.name for one in node.config.bandits[0].arms]
    if world.rng.random() < 0.3:
        machine.ads = world.rng.sample(ADS, world.rng.randint(0, 2))
        await node.set_arms(machine.ad_specs(), "ads")
    elif arm in there:
        await node.remove_arm(arm, "ads")
        machine.ads = [one for one in machine.ads if one != arm]
    else:
        await node.add_arm(ArmSpec(arm, sigma=1.0), "ads")


async def mistype(world):
    """Somebody gets a range or the ignored names wrong, or right again."""
    machine, rng = world.draw_running(), world.rng
    if machine is not None:
        if rng.random() < 0.5:
            machine.reward_range = rng.choice((None, (0.0, 1.0), (0.0, 2000.0)))
        else:
            machine.ignore = rng.sample([one.name for one in world.machines if one is not machine], rng.randint(0, 2))
        await machine.reconfigure()


async def retire(world):
    """The authority retires a life, perhaps a present one."""
    machine = world.draw_running()
    if machine is None:
        return
    lives = sorted({key[:2] for key in table_of(machine.process.node)})
    if lives:
        life = world.rng.choice(lives)
        world.oracle.retired.add(life)
        with contextlib.suppress(StoreError):  # in effect, and written later
            await machine.process.node.notice(notices.retire(KEY, MESH, [life], int(world.clock())))


async def expel(world):
    """The authority expels a member, whose links end, until it has a new certificate."""
    machine, other = world.draw_running(), world.rng.choice(world.machines)
    if machine is not None and machine is not other:
        world.n_issued += 1
        other.is_expelled = True
        world.expelled.add(other.name)
        notice = notices.expel(KEY, MESH, other.name, world.n_issued, int(world.clock()))
        with contextlib.suppress(StoreError):  # in effect, and written later
            await machine.process.node.notice(notice)


async def renew(world):
    machine = world.rng.choice(world.machines)
    await world.kill(machine)
    world.renew(machine)
    await world.start(machine)


async def set_clock_back(world):
    world.clock_offset -= world.rng.choice((1.0, 3600.0, 1e6))
    if world.memory != "everything":
        world.clock_offset += world.more.choice((0.0, 7200.0, 2e6))


async def be_hostile(world):
    """A member replays what it recorded, with other ttls, and says what nobody may say."""
    machine, rng = world.draw_running(), world.rng
    if machine is None:
        return
    transport = SimulatedTransport(
        world.network, world.hostile_keys.own if world.is_signed else identity(MESH, HOSTILE)
    )
    malice = MALICE + SIGNED_MALICE if world.is_signed else MALICE
    try:
        connection = await transport.dial(machine.address, machine.name)
        version = rng.choice((1, 2, 2, 2)) if world.is_signed else 1
        await connection.write(codec.encode_hello(codec.Hello(MESH, HOSTILE, 7, version, "fwa(4)", "hostile")))
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


def draw_question(world, machine):
    """Among which arms of which bandit a node is to choose, and in which segment, as its arguments."""
    rng = world.rng
    if machine.ads is None or rng.random() < 0.5:
        return ()
    return rng.sample(ADS, rng.randint(1, 2)), rng.choice(SEGMENTS)


def recorded(world):
    """The statistics and the certificates that honest nodes have sent."""
    messages = [codec.decode(frame) for data in world.network.recorded for frame in codec.Splitter().feed(data)]
    messages = [one for one in messages if isinstance(one, codec.Statistics)]
    statistics = [one for message in messages for one in message.statistics]
    return statistics, [der for message in messages for der in message.certificates]


def sign(world, one):
    """A statistic, signed by the hostile member."""
    keys = world.hostile_keys
    signature = keys.key.sign(signed_bytes(MESH, one.key, one.values))
    filled = dict(zip(("weight", "weighted_total", "stamp"), one.values[2:], strict=True))
    return msgspec.structs.replace(one, **filled, certificate=certificate_id(keys.own.certificate), signature=signature)


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
    return codec.encode_statistics([sign(world, one) for one in lies], [world.hostile_keys.own.certificate])


def speaks_for_others(world, rng):
    """Lies about others: under its own certificate, under theirs, unsigned, of lives that there are or are not."""
    machine = rng.choice(world.machines)
    epoch = machine.branch.epoch if rng.random() < 0.7 and machine.branch.epoch is not None else rng.randrange(9)
    lie = sign(world, Statistic(machine.name, epoch, rng.choice(ARMS), rng.randint(1, 10**6), 1e6, 9))
    theirs = [one.certificate for one in recorded(world)[0] if one.origin == machine.name and one.certificate]
    if theirs and rng.random() < 0.5:
        lie = msgspec.structs.replace(lie, certificate=rng.choice(theirs))
    if rng.random() < 0.2:
        lie = msgspec.structs.replace(lie, signature=b"", certificate=b"")
    return codec.encode_statistics([lie] * rng.choice((1, 20)), [world.hostile_keys.own.certificate])


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
    others = contexts_of(MESH, name, key, SIGNER, (OTHER_KEY, OTHER_AUTHORITY)).own.certificate
    forged = contexts_of(MESH, name, key, SIGNER, (OTHER_KEY, AUTHORITY)).own.certificate
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


SIGNED_MALICE = (
    own_lies,
    own_lies,
    speaks_for_others,
    speaks_for_others,
    tampered,
    tampered,
    strange_certificates,
    asks,
)


def name_of(ticket):
    """What a ticket is known by; two branches of a forked life may give the same one for different arms."""
    return ticket.epoch, ticket.start, ticket.number


def draw_reward(rng):
    return rng.randrange(-(2**20), 2**20) / 64


EVENTS, WEIGHTS = zip(
    (observe, 40),
    (observe_late, 10),
    (withdraw, 4),
    (kill, 4),
    (restart, 8),
    (leave, 2),
    (lose_disk, 2),
    (lose_most_disks, 1),
    (restore_disk, 3),
    (clone, 1),
    (observe_at_clone, 3),
    (end_clone, 2),
    (fill_disk, 2),
    (partition, 3),
    (heal_partition, 4),
    (stall, 2),
    (cut, 5),
    (change_arms, 4),
    (mistype, 4),
    (retire, 1),
    (expel, 1),
    (renew, 1),
    (set_clock_back, 1),
    (be_hostile, 4),
    strict=True,
)
