"""The compiled engine: drives the kernels in chunks of rounds, replicates side by side.

Equal to the reference engine, bit for bit. By the sound rules, and under static Flooding by either, a message's fate is
known when it is made: it is looked up in a *plan* that all replicates share, or worked out at once where no plan is
possible (draws, dynamic networks) or worth its memory. For other protocols the published rules, whose
memory forgets, need every copy to be *walked*. Statistics that are *merged* along a tree have rounds of their own, and
so has a *quiet* run, in which nothing is sent.

Kernels run for about 50 ms at a time, with their state in arrays, so that progress and threads work; but a round of a
large network takes longer. So all of them look, agent by agent, whether to stop, and no kernel runs in the thread that
hears Ctrl-C: see `crew`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Final, TypeAlias

from ...draws import Draws
from ...machine import memory
from ...protocols.emission import EveryPull
from .. import limits
from ..run import Outcome, Run
from ..watching import Curve, Watch
from . import crew, plans
from .crew import Stop
from .kernels.layout import Plan
from .kernels.special import Kernels, Rules, specialise
from .merging import Merge
from .packing import BUILT_IN_EMISSIONS, Packed, memory_kind, pack, packed_bytes, traits
from .quiet import Quiet, n_together
from .spreading import Spread
from .walking import Walk

#: How long a kernel may run before Python gets a look in, in seconds.
CHUNK_SECONDS: Final = 0.05
#: About how many pulls come before the first look; they may take a hundred times as long in one run as in another.
FIRST_PULLS: Final = 10_000
#: More threads than this only get in each other's way.
MAX_THREADS: Final = 64

Delivering: TypeAlias = type[Merge] | type[Walk] | type[Quiet] | type[Spread]


def run_all(
    run: Run,
    threads: int,
    advance: Callable[[int], None],
    watch: Watch | None = None,
    threads_each: int | None = None,
) -> list[Outcome]:
    """Simulate all replicates, `threads` at a time; `advance` and `watch` are called in this thread meanwhile.

    `threads_each` is how many threads share a replicate whose messages are planned; if it is None, as many as there are
    to spare, if it is large.
    """
    watching = watch or Watch(run.records, run.replicates, None)
    memory.check(packed_bytes(run), "the network and its arm sets", "use fewer agents or arms")
    packed = pack(run)
    n_links = len(packed.network.indices) if packed.network is not None else 0
    limits.check_sizes(run.problem.n_agents, len(packed.agents.arms), n_links, packed.traits.reach)
    stop = Stop()
    threads = min(threads, MAX_THREADS)
    n_parts = plans.parts_for(run, threads) if threads_each is None else threads_each
    delivery, plan = crew.alone(partial(_prepare, packed, threads, n_parts, stop), stop)
    kernels = kernels_of(run)
    done = [0] * run.replicates

    def simulate(replicates: range) -> list[Outcome]:
        one = delivery(packed, kernels, replicates[0], plan, stop)
        if isinstance(one, Quiet) and len(replicates) > 1:
            outcomes = one.together(replicates)
            for replicate, outcome in zip(replicates, outcomes, strict=True):
                watching.begin(replicate, Curve.whole(outcome.regret, outcome.transmissions))
                done[replicate] = run.horizon
            return outcomes
        [replicate] = replicates
        watching.begin(replicate, one.curve)
        n_rounds = max(1, FIRST_PULLS // run.problem.n_agents)
        while one.t <= run.horizon:
            stop.check()
            first, began = one.t, time.perf_counter()
            one.advance(one.end_of_chunk(n_rounds))
            done[replicate] = one.t - 1
            n_rounds = next_chunk(n_rounds, one.t - first, time.perf_counter() - began, one.longest_chunk)
        return [one.close()]

    shown = 0

    def look() -> None:
        nonlocal shown
        now = sum(done)
        advance(now - shown)
        shown = now
        watching.look()

    each = n_together(packed, threads)
    some = [range(first, min(first + each, run.replicates)) for first in range(0, run.replicates, each)]
    outcomes = crew.work([partial(simulate, replicates) for replicates in some], threads, stop, look)
    return list(chain.from_iterable(outcomes))


def next_chunk(n_rounds: int, n_done: int, seconds: float, longest: int) -> int:
    """How many rounds the next chunk should have, after one of `n_rounds` of which `n_done` took `seconds`.

    At most four times as many, and never more than `longest`: what ends chunks early says nothing of how long they are.

    Examples
    --------
    >>> next_chunk(100, 100, 0.1, 4096), next_chunk(100, 100, 0.0, 4096), next_chunk(4096, 1, 0.0, 4096)
    (50, 400, 4096)
    """
    return max(1, min(4 * n_rounds, longest, int(n_done * CHUNK_SECONDS / max(seconds, 1e-6))))


def delivery_of(run: Run) -> Delivering:
    """How the run's messages are delivered."""
    if run.tree is not None:
        return Merge
    return Walk if traits(run).walks else Quiet if traits(run).is_quiet else Spread


def _prepare(packed: Packed, threads: int, n_parts: int, stop: Stop) -> tuple[Delivering, Plan | None]:
    """How messages are delivered, and the plan if there is one; refused if memory does not suffice."""
    run, rule, delivery = packed.run, packed.rule(Draws(packed.run.seed, 0)), delivery_of(packed.run)
    outline = plans.outline(packed, rule, n_parts, stop) if delivery is Spread else None
    each = delivery.needed_bytes(packed, outline, stop)
    memory.check(
        (0.0 if outline is None else outline.n_bytes) + min(threads, run.replicates) * each,
        "the simulation",
        "use fewer agents or arms, or threads=1 for one replicate at a time",
    )
    if outline is None:
        return delivery, None
    plan = plans.build(packed, rule, outline, threads, stop)
    limits.check_traffic(run, plan)
    return delivery, plan


def kernels_of(run: Run) -> Kernels:
    """The kernels for the run's policy, relay rule and emission."""
    is_merged = run.tree is not None
    tells_neighbours = not run.protocol.is_central and type(run.protocol.emission) is EveryPull
    is_plain = tells_neighbours and run.faults is None and not is_merged
    return specialise(rules_of(run), plain=is_plain, memory=memory_kind(run), replays=traits(run).replays)


def rules_of(run: Run) -> Rules:
    """What the run's kernels are made for."""
    policy, relaying, emission = type(run.policies[0]), run.relaying, type(run.protocol.emission)
    relay = type(relaying).relay if relaying is not None and relaying.random else None
    return policy.index, relay, None if emission in BUILT_IN_EMISSIONS else emission.sends
