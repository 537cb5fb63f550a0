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
from unittest.mock import patch

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from happenings import ADS, EVENTS, SIGNED_EVENTS, WEIGHTS, be_hostile, change_trust, observe, restart
from malice import ARMS
from oracle import Branch, Oracle, Report, Violation, check_belief
from simulated import ENDS, HOSTILE, Disk, Network, SimulatedTransport, SimulatedWorkers, identity
from world_keys import AUTHORITIES, MESH, Credential, SimulatedTls, Version1Tls

import banditmesh as bm
from banditmesh.errors import NodeError, StoreError
from banditmesh.live import changes
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.certificates import signed_bytes
from banditmesh.live.config import NeighbourConfig, NodeConfig, TrustConfig
from banditmesh.live.links import notices
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, WITHDRAWN, ArmSpec, Observation
from banditmesh.live.member.snapshot import caps_of
from banditmesh.live.names import Caps, agent_name, arm_name
from banditmesh.live.node import Node

#: How long a mesh may take to come to rest once everything works, in simulated seconds.
PATIENCE = 400.0
#: Where silence counts: as what, which no sum of rewards can be, and after how many seconds.
SILENCE = 33 / 128
LIFETIME = 6.0
#: Caps by which choices may be refused, and nothing that is heard.
CAPS_THAT_REFUSE_NO_STATISTIC = (Caps(), Caps(segments=2), Caps(arms=7))
#: How late a node may be to see that a certificate does not count any more: it looks every hour, and at once when told.
REVIEW_WITHIN = 3605.0


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
        self.is_expelled = False
        #: How far its clock is off, the authorities that it trusts, and which version it speaks.
        self.skew = 0.0
        self.trusted = (0,)
        self.version = 2
        self.signatures = "required"
        self.credential = None
        #: From when on nothing has happened to its clock and its keys.
        self.calm_since = 0.0
        self.process = None
        #: The arms of its second bandit; None in worlds that have none.
        self.ads = None
        #: How many liars it bears.
        self.trim = world.trim
        #: What somebody got wrong in its configuration, and will correct.
        self.reward_range = None
        self.ignore = []

    def clock(self):
        return self.world.clock() + self.skew

    def disturb(self):
        """Its clock or its keys are others from now on."""
        self.calm_since = asyncio.get_running_loop().time()

    def forget(self):
        """Its disk is lost."""
        self.disk.lose()
        self.branch = Branch()
        self.copies.clear()

    def keys(self):
        """What it signs with, and whom it trusts."""
        return self.credential.contexts(self.trusted)

    def specs(self):
        return [self.spec(arm, self.reward_range) for arm in self.arms]

    def ad_specs(self):
        return [self.spec(arm) for arm in self.ads]

    def spec(self, arm, reward_range=None):
        return ArmSpec(arm, sigma=self.world.sigma, reward_range=reward_range)

    async def reconfigure(self):
        """Let what runs on it go on with its present arms, ranges and ignored names."""
        node = self.process.node
        self.disturb()
        self.process.trusted = self.trusted
        more = {"arms": self.specs(), "ignore": self.ignore, "signatures": self.signatures, "trust": self.trust()}
        await node.reload(msgspec.structs.replace(node.config, **more))

    def trust(self):
        return TrustConfig(trim=self.trim)

    def config(self, protocol):
        return NodeConfig(
            mesh=MESH,
            node=self.name,
            listen=self.address,
            arms=self.specs(),
            ignore=self.ignore,
            protocol=protocol,
            policy=bm.UCB(),
            memory=self.world.memory if self.version > 1 else "everything",
            lapse_reward=self.lapse_reward,
            ticket_lifetime=86400.0 if self.lapse_reward is None else LIFETIME,
            bandits=[] if self.ads is None else [BanditSpec(name="ads", arms=self.ad_specs(), new_arms=True)],
            neighbours=[NeighbourConfig(name=one.name, address=one.address) for one in self.neighbours],
            accept="members",
            plain=True,
            signatures=self.signatures,
            signature_grace=self.world.grace,
            trust=self.trust(),
            caps=self.world.caps,
        )

    @property
    def lapse_reward(self):
        return self.world.lapse_reward if self.version > 1 else None


class Process:
    """A node that runs on a machine, or on a copy of its disk, until it is killed or leaves."""

    def __init__(self, machine, disk, branch, address=None):
        world = machine.world
        self.machine, self.world, self.branch = machine, world, branch
        #: What its table held when it was last looked at.
        self.rows = {}
        self.reports = []
        self.calls = {}
        self.choices = []
        #: Names of tickets that are being withdrawn.
        self.withdrawing = []
        #: The authorities that it trusts, and certificates that it has stopped counting.
        self.trusted = machine.trusted
        self.dropped = set()
        self.store = disk.open(self.committed)
        config = machine.config(world.protocol)
        if address is not None:
            config = msgspec.structs.replace(config, listen=address)
        keys = machine.keys() if world.is_signed else None
        if keys is None:
            self.transport = SimulatedTransport(
                world.network, identity(MESH, machine.name, machine.credential.not_before)
            )
        else:
            self.transport = (SimulatedTls if machine.version > 1 else Version1Tls)(world.network, keys, machine.clock)
        self.is_signed = world.is_signed and machine.version > 1
        self.node = Node(
            config,
            transport=self.transport,
            store=self.store,
            signers=[AUTHORITIES[0].signer] if keys is None else keys.signers,
            keys=keys if self.is_signed else None,
            workers=SimulatedWorkers(world.rng),
            clock=machine.clock,
            rng=random.Random(world.rng.getrandbits(64)),
        )

    async def start(self):
        restored = self.branch.epoch is not None
        self.machine.disturb()
        await self.node.start()
        self.n_refused_at_start = n_refused(self.node)
        certificates = self.node._member.certificates
        drop = certificates.drop
        certificates.drop = lambda id_: (self.dropped.add(id_), drop(id_))
        if restored and own_of(self.node):
            self.world.oracle.check_restart(self.machine.name, own_of(self.node), self.branch)

    def committed(self, changes):
        oracle = self.world.oracle
        before = set(self.branch.counted)
        oracle.committed(self.branch, self.machine.name, changes, self.reports, self.machine.lapse_reward)
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


def rows_of(node):
    """By key: count and sum, and by which certificate that is signed."""
    rows = node._member._table._rows.values()
    return {row.key: ((row.count, row.total), row.certificate if row.signature else b"") for row in rows}


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
        #: What was found to be signed; all certificates by their ids; and those whose keys were stolen.
        self.found_signed = set()
        self.issued = {}
        self.stolen = []
        #: What the hostile member has.
        self.hostile = []
        self.grace = 365 * 86400.0
        self.is_mixed = self.rotates = False
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
        #: How many liars nodes bear, and by how much they take rewards to vary: about as much as they do, so that some
        #: of what others tell is believed, and some is not. Drawn apart, too.
        trust = random.Random(f"{seed} trust")
        self.trim = trust.choice((0, 0, 0, 1, 2))
        self.sigma = trust.choice((700.01, 3000.01, 9000.01)) if self.trim else 1.0
        self.protocol = draw_protocol(rng)
        self.caps = Caps(origins=2, epochs=2, arms=4, entries=5) if rng.random() < 0.1 else Caps()
        #: Counts expulsions and certificates, in the place of a time: certificates from before an expulsion are void.
        self.n_issued = 0
        arms = ARMS[: rng.randint(2, len(ARMS))]
        for place in range(rng.randint(3, 6)):
            held = rng.sample(arms, rng.randint(1, len(arms)))
            self.machines.append(Machine(self, f"node{place}", held, folder / f"node{place}"))
        if self.trim:
            # So many that know an arm that there may be an honest majority.
            for place in range(len(self.machines), trust.randint(6, 9)):
                self.machines.append(Machine(self, f"node{place}", arms, folder / f"node{place}"))
        self.arms = arms
        if self.caps == Caps() and rng.random() < 0.5:
            self.caps = rng.choice((Caps(), Caps(segments=2)))
            for machine in self.machines:
                machine.ads = rng.sample(ADS, rng.randint(0, 2))
        self.draw_links()
        self.n_names = 0
        for machine in self.machines:
            self.issue(machine, Ed25519PrivateKey.from_private_bytes(rng.randbytes(32)) if is_signed else None)
        #: In each world some kinds of events are frequent, and others never happen: so more of them meet each other.
        self.weights = [weight * rng.choice((0, 0, 1, 4)) for weight in WEIGHTS]
        self.weights[EVENTS.index(observe)] = 40
        self.weights[EVENTS.index(restart)] = 8
        self.events = list(EVENTS)
        if self.trim:
            self.events.append(change_trust)
            self.weights.append(4)
        if is_signed:
            self.weights[EVENTS.index(be_hostile)] = 8
            self.oracle.liars.add(HOSTILE)
            self.draw_keys(random.Random(f"{seed} keys"))
        #: Machines, tickets and rewards that come later, or again.
        self.late = []

    def draw_keys(self, rng):
        """What becomes of keys and certificates in this world."""
        key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        self.is_mixed = rng.random() < 0.2
        more = {"ends": 0.5, "rotation": 0.5, "skews": 0.4, "theft": 0 if self.is_mixed else 0.5, "mix": self.is_mixed}
        more = [trait for trait, share in more.items() if rng.random() < share]
        self.rotates = "rotation" in more
        self.hostile = [Credential(HOSTILE, key)]
        if "ends" in more:
            self.grace = rng.choice((5.0, 300.0, 1e7))
            self.hostile.append(Credential(HOSTILE, key, 1, int(self.clock_offset) - 10))
        if "rotation" in more:
            self.hostile.append(Credential(HOSTILE, key, rng.randint(0, 3), issuer=1))
        for one in self.hostile:
            self.issued[one.id] = one
        if self.caps == Caps() and rng.random() < 0.2:
            self.caps = rng.choice((Caps(entries_per_origin=3), Caps(arms=7)))
        for machine in self.machines:
            if self.is_mixed:
                machine.signatures = "accepted"
                machine.version = rng.choice((1, 2))
                machine.ads = machine.ads if machine.version > 1 else None
        for trait in more:
            for event, weight in SIGNED_EVENTS[trait]:
                self.events.append(event)
                self.weights.append(weight)

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

    def disturb(self):
        """All clocks were set."""
        for machine in self.machines:
            machine.disturb()

    # --- certificates

    def issue(self, machine, key, ends=ENDS, issuer=0):
        """Give a machine a certificate; a process that runs keeps the one it has until it is reconfigured."""
        machine.credential = Credential(machine.name, key, self.n_issued, ends, issuer)
        if self.is_signed:
            self.issued[machine.credential.id] = machine.credential

    def renew(self, machine, ends_in=None, issuer=None, new_key=False):
        """Give a machine another certificate, perhaps with another key."""
        self.n_issued += 1
        machine.is_expelled = False
        key, old = machine.credential.key, machine.credential
        if self.is_signed and (new_key or self.rng.random() < 0.5):
            key = Ed25519PrivateKey.from_private_bytes(self.rng.randbytes(32))
        ends = ENDS if ends_in is None else int(self.clock() + ends_in)
        self.issue(machine, key, ends, old.issuer if issuer is None else issuer)

    async def expel(self, machine, name, issuer=None):
        """Hand an expulsion to a machine."""
        self.n_issued += 1
        for one in self.machines:
            one.is_expelled |= one.name == name
        issuer = self.rng.choice(machine.trusted) if issuer is None else issuer
        notice = notices.expel(AUTHORITIES[issuer].key, MESH, name, self.n_issued, int(self.clock()))
        with contextlib.suppress(StoreError):  # in effect, and written later
            await machine.process.node.notice(notice)

    def steal(self, machine):
        """Let the hostile member have a key."""
        self.stolen.append(machine.credential)

    def is_stolen(self, certificate):
        """Whether a thief can sign under a certificate: its key was copied, then or later."""
        return bool(self.stolen) and self.issued[certificate].key in [one.key for one in self.stolen]

    async def upgrade(self, machine):
        """Let a node of version 1 be one of this version from now on."""
        was_running = machine.process is not None
        await (self.leave if self.rng.random() < 0.5 else self.kill)(machine)
        machine.version = 2
        if was_running:
            await self.start(machine)

    async def start_clone(self, machine, disk, branch):
        """Start a second process of a name, on another disk."""
        process = Process(machine, disk, branch, address=f"127.0.0.1:{5000 + self.n_names}")
        self.clones.append(process)
        await process.start()

    # --- a run

    async def run(self):
        """Live through everything, then through healing; what was promised is checked on the way and at the end."""
        machines = {machine.name: machine for machine in self.machines}
        # Where a node would read its files, it has what its machine has.
        with patch.object(changes, "read_keys", lambda config: machines[config.node].keys()):
            await self._run()

    async def _run(self):
        for machine in self.machines:
            if self.rng.random() < 0.9:
                await self.start(machine)
        for _ in range(self.n_events):
            await asyncio.sleep(self.rng.choice((0.0, 0.05, 0.3, 1.0, 4.0)) * self.rng.random())
            event = self.rng.choices(self.events, self.weights)[0]
            self.seen[event.__name__] += 1
            await event(self)
            self.check()
        await self.heal()
        if self.is_mixed:
            await self.rest()
            await self.heal_mix()
        await self.rest()
        for machine in self.machines:
            await self.leave(machine)
        self.check_failures()
        self.ended_at = asyncio.get_running_loop().time()

    async def rest(self):
        await self.come_to_rest()
        self.check()
        for machine in self.running():
            machine.process.node._member.snapshot()
        self.check_convergence()

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
            name = process.machine.name
            rows = rows_of(node)
            lies = {key for key, (_, certificate) in rows.items() if certificate and self.is_stolen(certificate)}
            forgets = self.memory != "everything"
            known = {arm: value for arm, value in member.estimates().items() if not forgets or "/" in arm}
            f, trust = node.config.trust.trim, None
            if f:
                agents = member._bandits.agents.values()
                trust = f, self.sigma, {arm: out for agent in agents for arm, out in agent.beliefs.out.items()}
            self.oracle.check_node(name, own_of(node), table_of(node), known, epoch_of(node), lies, trust)
            self.check_weights(name, member, lies)
            self.check_memory(process, rows)
            process.rows = rows
            self.check_bounds(name, node, len(rows) + len(own_of(node)), process.n_refused_at_start)
            if process.is_signed:
                self.check_signatures(process)
            for neighbour in node._links.neighbours.values():
                if neighbour.conversation is not None and node._parts.board.why_banned(neighbour.identity):
                    raise Violation(f"{name} is linked with {neighbour.name}, and knows that it was expelled")

    def check_memory(self, process, now):
        """What a node knows only grows, but for lives that are not wanted, and with certificates that stop to count."""
        is_required = process.is_signed and process.node._member.signatures == "required"
        for key, (value, certificate) in process.rows.items():
            there, by = now.get(key, ((0, 0.0), b""))
            is_gone = key[:2] in self.oracle.retired or key[0] in process.machine.ignore
            is_unsigned = process.is_signed and not certificate and (is_required or by)
            if there < value and not (is_gone or is_unsigned or certificate in process.dropped):
                raise Violation(f"{process.machine.name} knew {value} of {key}, and knows {now.get(key)} now")

    def check_signatures(self, process):
        """Promise 7, judged by what was issued: what is known of others was signed by certificates that count here."""
        machine, node, branch = process.machine, process.node, process.branch
        if node._committer.is_idle:
            for name, before in node._parts.board.expelled.items():
                branch.expelled[name] = max(before, branch.expelled.get(name, 0))
        is_calm = asyncio.get_running_loop().time() - machine.calm_since > 4.0
        for row in node._member._table._rows.values():
            if row.is_observed:
                continue
            if not row.signature and (node._member.signatures == "accepted" or not is_calm):
                continue
            by = self.issued.get(row.certificate)
            if by is None or by.name != row.key[0]:
                raise Violation(f"{machine.name} has {row.key} under {by and by.name}, which is no certificate of its")
            if by.not_before < branch.expelled.get(by.name, 0):
                raise Violation(f"{machine.name} has {row.key} under a certificate that it knows to be expelled")
            if is_calm and by.issuer not in process.trusted:
                raise Violation(f"{machine.name} has {row.key} under an authority that it does not trust")
            if is_calm and machine.clock() > by.not_after + self.grace + REVIEW_WITHIN:
                raise Violation(f"{machine.name} has {row.key} under a certificate that has been over for too long")
            said = row.key, row.values, row.certificate, row.signature
            if said not in self.found_signed:
                by.key.public_key().verify(row.signature, signed_bytes(MESH, row.key, row.values))
                self.found_signed.add(said)

    def check_weights(self, name, member, lies):
        """Promise 1 of weights: each was committed by its origin, with its count; and estimates are their sum."""
        for row in member._table._rows.values():
            if row.key not in lies:
                self.oracle.check_values(row.key, row.values, f"table of {name}")
        member.settle()
        agent = member._bandits.agents[""]
        if agent.fading is not None and agent.beliefs is not None:
            self.check_fading_beliefs(name, agent)
        elif agent.fading is not None:
            known = dict(agent.estimates())
            for arm in known:
                agent.renew(arm)
            for arm, summed in agent.estimates():
                for one, other in zip(known[arm], summed, strict=True):
                    if not math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6):
                        raise Violation(f"{name} estimates {arm} by {known[arm]}, own and table have {summed}")

    def check_fading_beliefs(self, name, agent):
        """What a node that forgets believes is what the text says of the weights of now."""
        for arm in dict(agent.estimates()):
            agent.renew(arm)  # or it may be a second old
        unit, mine = agent.fading.unit(agent._time.now), agent._ledger.own
        for arm, estimate in agent.estimates():
            told = {one: [part / unit for part in parts] for one, parts in agent._table.by_origin(arm, True).items()}
            own = agent._own_part(agent.fading, arm, mine[arm].values) if arm in mine else (0.0, 0.0)
            own = [one / unit + other for one, other in zip(own, told.pop(name, (0.0, 0.0)), strict=True)]
            told = {one: parts for one, parts in told.items() if parts[0] > 0}
            check_belief(name, arm, own, told, agent.beliefs._f, self.sigma, estimate, agent.beliefs.out.get(arm, ()))

    def check_bounds(self, name, node, n_keys, n_refused_at_start):
        """Promise 4: nothing grows beyond its bound, and everything that came was used or refused for a reason."""
        member = node._member
        for peer, waiting in member._outboxes.links.items():
            if len(waiting) > n_keys:
                raise Violation(f"{name} has {len(waiting)} keys waiting for {peer}, and {n_keys} in all")
        for cap_name, cap in caps_of(member._parts).items():
            # Rows under its own name are never refused for want of room.
            more = member._table.roster.n_rows_of(name) if cap_name == "entries" else 0
            if cap.used > cap.most + more and cap_name != "own_entries":
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
        if self.is_signed:
            self.set_clocks_right()
        if self.rotates:
            trusted = self.rng.choice(((0,), (0, 1), (1,)))
            for machine in self.machines:
                machine.trusted = trusted
        for machine in self.machines:
            machine.disk.is_full = False
            machine.reward_range, machine.ignore = None, []
            if self.must_renew(machine):
                if machine.is_expelled or self.rng.random() < 0.5:
                    await self.kill(machine)
                self.renew(machine, issuer=machine.trusted[-1], new_key=machine.credential in self.stolen)
            if machine.process is not None:
                await machine.reconfigure()
            await self.start(machine)
        await self.void_expelled()
        if self.lapse_reward is not None:
            await asyncio.sleep(LIFETIME + 3.0)

    def set_clocks_right(self):
        """Let clocks agree, at a time when no certificate ends for a while."""
        ends = [one.not_after + late for one in self.issued.values() for late in (0.0, self.grace)]
        if any(machine.skew for machine in self.machines) or any(end < ENDS for end in ends):
            self.clock_offset += 100.0
            for end in sorted(ends):
                if self.clock() < end < self.clock() + 5000.0:
                    self.clock_offset += end + 1.0 - self.clock()
            for machine in self.machines:
                machine.skew = 0.0
            self.disturb()

    def must_renew(self, machine):
        """Whether a machine needs another certificate."""
        is_over = machine.credential.not_after < self.clock() + 5000.0
        return machine.is_expelled or is_over or machine.credential.issuer not in machine.trusted

    async def void_expelled(self):
        """Expel those whose keys were stolen, and once more, by an authority that all trust, those who were expelled.

        Both have new certificates then.
        """
        names = {one.name for one in self.stolen}
        boards = [machine.process.node._parts.board for machine in self.machines]
        if self.rotates:
            names.update(*(board.expelled for board in boards))
        for name in sorted(names):
            machine, victim = self.machines[0], next((one for one in self.machines if one.name == name), None)
            await self.expel(machine, name, machine.trusted[-1])
            if victim is not None:
                is_stolen = victim.credential.key in [one.key for one in self.stolen]
                self.renew(victim, new_key=is_stolen)
                await victim.reconfigure()

    async def heal_mix(self):
        """All nodes are of this version, and signatures are required."""
        for machine in self.machines:
            if machine.version == 1:
                await self.upgrade(machine)
        for machine in self.machines:
            machine.signatures = "required"
            await machine.reconfigure()

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
        processes = {machine.name: machine.process for machine in self.machines}
        nodes = {name: process.node for name, process in processes.items()}
        tables = {name: table_of(node) for name, node in nodes.items()}
        signers = self.machines[0].keys().signers if self.is_signed else [AUTHORITIES[0].signer]
        known = [one.id for one in signers]
        boards = {
            name: {one for one, data in node._parts.board.notices.items() if any(id_ in data for id_ in known)}
            for name, node in nodes.items()
        }
        everything = set().union(*boards.values())
        retired = {life for notice in everything if isinstance(notice, notices.Retirement) for life in notice.lives}
        for name, table in tables.items():
            if boards[name] != everything:
                raise Violation(f"{name} has {len(boards[name])} of {len(everything)} notices")
            for key in [*table, (name, epoch_of(nodes[name]))]:
                if key[:2] in retired:
                    raise Violation(f"{name} still knows the retired life {key[:2]}")
        if self.protocol.name in ("gossip", "probabilistic") or self.caps not in CAPS_THAT_REFUSE_NO_STATISTIC:
            return
        for name, node in nodes.items():
            epoch = epoch_of(node)
            stands_for = {key: value for key, value in tables[name].items() if key[0] == name}
            for arm, (_, _, count, total) in own_of(node).items():
                if count:
                    stands_for[name, epoch, arm] = count, total
            for key, value in stands_for.items():
                if key[:2] in self.oracle.forked or (self.rotates and key[:2] in self.oracle.retired):
                    continue
                for other in self.in_reach(name, key[2]):
                    there = tables[other].get(key, (0, 0.0))
                    if there != value and (key[1] == epoch or there < value):
                        raise Violation(f"{other} has {there} of {key}, {name} told {value}")
            for link in self.links:
                if name in link:
                    [other] = link - {name}
                    rows = rows_of(nodes[other])
                    for key, value in tables[other].items():
                        is_gone = self.rotates and key[:2] in self.oracle.retired
                        # Of itself a node with keys believes only what is signed. What it told before it had any, and
                        # lost, or what a relay of version 1 has stripped, stays with others and does not come back.
                        is_gone |= processes[name].is_signed and not rows[key][1]
                        if key[0] == name and stands_for.get(key, (0, 0.0)) < value and not is_gone:
                            raise Violation(f"{name} has {stands_for.get(key)} of {key}, its neighbour {other} {value}")

    def in_reach(self, name, arm):
        """Who is within reach of a name: so many hops, and for FwA through inner nodes without the arm.

        What a node has signed is stripped of that by relays of version 1, and does not replace what is signed.
        """
        held = {machine.name: machine.process.node._member.estimates() for machine in self.machines}
        old = {machine.name for machine in self.machines if machine.version == 1}
        reached, border = {name}, {name}
        for _ in range(self.protocol.most_hops):
            inner = {one for one in border if one == name or self.protocol.name != "fwa" or arm not in held[one]}
            inner = {one for one in inner if one == name or name in old or one not in old}
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
