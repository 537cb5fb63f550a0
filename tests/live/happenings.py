"""Everything that can happen to a simulated world; which of it does, when and to which machine, its seed decides."""

from __future__ import annotations

import contextlib

from malice import be_hostile
from simulated import HOSTILE, Disk
from world_keys import AUTHORITIES, MESH

from banditmesh.errors import InputError, NodeError, StoreError
from banditmesh.live.links import notices
from banditmesh.live.member import Observation
from banditmesh.live.names import Caps

#: The arms of a second bandit, of which some are only made when a choice names them, and its segments.
ADS = ("short", "long", "wide/r")
SEGMENTS = (None, "de", "de/be", "50%")


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
        except InputError as refusal:  # there is no room for one more segment or arm, or no arm that a new one is like
            is_first = machine.trim and not machine.process.node.config.bandits[0].arms and "trust.trim" in str(refusal)
            if not is_first and (world.caps == Caps() or "caps." not in str(refusal)):
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
        machine.forget()
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
        await world.start_clone(machine, disk, branch)


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
        old, machine.arms = machine.arms, world.rng.sample(world.arms, world.rng.randint(1, len(world.arms)))
        if not await is_done(world, machine.process.node.set_arms(machine.specs())):
            machine.arms = old


async def is_done(world, change):
    """Whether arms could be changed; there may be no room for them."""
    try:
        await change
    except InputError as refusal:
        if "caps.arms" not in str(refusal) or world.caps == Caps():
            raise
        world.seen["arms refused"] += 1
        return False
    return True


async def change_ads(world, machine):
    """Arms of the second bandit come and go, one or all."""
    node, arm = machine.process.node, world.rng.choice(ADS)
    there = [one.name for one in node.config.bandits[0].arms]
    if world.rng.random() < 0.3:
        old, machine.ads = machine.ads, world.rng.sample(ADS, world.rng.randint(0, 2))
        if not await is_done(world, node.set_arms(machine.ad_specs(), "ads")):
            machine.ads = old
    elif arm in there:
        await node.remove_arm(arm, "ads")
        machine.ads = [one for one in machine.ads if one != arm]
    else:
        await is_done(world, node.add_arm(machine.spec(arm), "ads"))


async def mistype(world):
    """Somebody gets a range or the ignored names wrong, or right again."""
    machine, rng = world.draw_running(), world.rng
    if machine is not None:
        if rng.random() < 0.5:
            machine.reward_range = rng.choice((None, (0.0, 1.0), (0.0, 2000.0)))
        else:
            machine.ignore = rng.sample([one.name for one in world.machines if one is not machine], rng.randint(0, 2))
        await machine.reconfigure()


async def change_trust(world):
    """A node's `trim` changes, perhaps to 0."""
    machine = world.draw_running()
    if machine is not None:
        old, machine.trim = machine.trim, world.more.choice((0, 1, 1, 2))
        try:
            await machine.reconfigure()
        except InputError as refusal:  # it has an arm that a choice made, like none
            if "trust.trim" not in str(refusal):
                raise
            machine.trim = old


async def retire(world):
    """The authority retires a life, perhaps a present one."""
    machine = world.draw_running()
    if machine is None:
        return
    lives = sorted({key[:2] for key in machine.process.node._member._table._rows})
    if lives:
        life = world.rng.choice(lives)
        world.oracle.retired.add(life)
        with contextlib.suppress(StoreError):  # in effect, and written later
            key = AUTHORITIES[world.rng.choice(machine.trusted)].key
            await machine.process.node.notice(notices.retire(key, MESH, [life], int(world.clock())))


async def expel(world):
    """The authority expels a member, whose links end, until it has a new certificate."""
    machine, other = world.draw_running(), world.rng.choice(world.machines)
    if machine is not None and machine is not other:
        await world.expel(machine, other.name)


async def expel_hostile(world):
    machine = world.draw_running()
    if machine is not None:
        await world.expel(machine, HOSTILE)


async def renew(world):
    machine = world.rng.choice(world.machines)
    await world.kill(machine)
    world.renew(machine)
    await world.start(machine)


async def set_clock_back(world):
    world.clock_offset -= world.rng.choice((1.0, 3600.0, 1e6))
    if world.memory != "everything":
        world.clock_offset += world.more.choice((0.0, 7200.0, 2e6))
    world.disturb()


async def leap(world):
    """Much time passes at once, and certificates end."""
    world.clock_offset += world.rng.choice((100.0, 1e4, 1e6, 3e7))
    world.disturb()


async def skew_clock(world):
    """One clock is set wrong, or right again."""
    machine = world.rng.choice(world.machines)
    machine.skew = world.rng.choice((0.0, -5000.0, -100.0, 100.0, 5000.0, 3e7))
    machine.disturb()


async def let_end(world):
    """A machine gets a certificate that ends, while it runs."""
    machine = world.rng.choice(world.machines)
    world.renew(machine, ends_in=world.rng.choice((3.0, 30.0, 1000.0, 1e6)))
    if machine.process is not None:
        await machine.reconfigure()


async def rotate(world):
    """A machine trusts other authorities from now on, perhaps with a certificate of another one."""
    machine, rng = world.rng.choice(world.machines), world.rng
    machine.trusted = rng.choice(((0,), (0, 1), (0, 1), (1,)))
    if machine.credential.issuer not in machine.trusted or rng.random() < 0.3:
        world.renew(machine, issuer=rng.choice(machine.trusted))
    if machine.process is not None:
        await machine.reconfigure()


async def steal(world):
    """The key of a machine is copied."""
    world.steal(world.rng.choice(world.machines))


async def upgrade(world):
    """A node of version 1 becomes one of this version."""
    machine = world.rng.choice(world.machines)
    if machine.version == 1:
        await world.upgrade(machine)


def draw_question(world, machine):
    """Among which arms of which bandit a node is to choose, and in which segment, as its arguments."""
    rng = world.rng
    if machine.ads is None or rng.random() < 0.5:
        return ()
    return rng.sample(ADS, rng.randint(1, 2)), rng.choice(SEGMENTS)


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

#: What happens where statistics are signed, by what the world has: the events, and how frequent they are.
SIGNED_EVENTS = {
    "ends": ((let_end, 6), (leap, 3)),
    "rotation": ((rotate, 8),),
    "skews": ((skew_clock, 5),),
    "theft": ((steal, 3), (expel_hostile, 1)),
    "mix": ((upgrade, 2),),
}
