"""The compiled engine: drives the kernels in chunks of rounds, replicates side by side.

Equal to the reference engine, bit for bit. By the sound rules, and under static Flooding by either, a message's fate is
known when it is made: it is looked up in a *plan* that all replicates share, or worked out at once where no plan is
possible (draws, dynamic networks, link traffic) or worth its memory. For other protocols the published rules, whose
memory forgets, need every copy to be *walked*. Statistics that are *merged* along a tree have rounds of their own.

Kernels run for about 50 ms at a time, with their state in arrays, so that interrupts, progress and threads work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final

from ..draws import Draws
from . import memory, plans
from .kernels.special import Kernels, Rules, specialise
from .merging import Merge
from .packing import BUILT_IN_EMISSIONS, pack, packed_bytes
from .run import Outcome, Run
from .spreading import Spread
from .walking import Walk

#: How long a kernel may run before Python gets a look in, in seconds.
CHUNK_SECONDS: Final = 0.05
#: More threads than this only get in each other's way.
MOST_THREADS: Final = 64


def run_all(run: Run, threads: int, advance: Callable[[int], None]) -> list[Outcome]:
    """Simulate all replicates, `threads` at a time; `advance` is called, in this thread, as rounds are done."""
    memory.check(packed_bytes(run), "the network and its arm sets", "take fewer agents or arms")
    packed = pack(run)
    kernels = kernels_of(run)
    rule = packed.rule(Draws(run.seed, 0))
    threads = min(threads, MOST_THREADS)
    delivery: type[Merge | Walk | Spread] = Merge if run.protocol.merges else Walk if packed.traits.walks else Spread
    plan_bytes = plans.worthwhile_bytes(packed, rule) if delivery is Spread else 0.0
    each = delivery.needed_bytes(packed, plan_bytes > 0)
    memory.check(
        plan_bytes + min(threads, run.replicates) * each,
        "the simulation",
        "take fewer agents or arms, or threads=1 for one replicate at a time",
    )
    plan = plans.build(packed, rule, threads) if plan_bytes else None
    stop = threading.Event()
    done = [0] * run.replicates

    def work(replicate: int) -> Outcome:
        one = delivery(packed, kernels, replicate, plan)
        n_rounds = 1
        while one.t <= run.horizon and not stop.is_set():
            began = time.perf_counter()
            one.advance(min(one.t + min(n_rounds, one.longest_chunk), run.horizon + 1))
            seconds = time.perf_counter() - began
            done[replicate] = one.t - 1
            n_rounds = max(1, min(4 * n_rounds, int(n_rounds * CHUNK_SECONDS / max(seconds, 1e-6))))
        return one.close()

    pool = ThreadPoolExecutor(min(threads, run.replicates))
    try:
        futures = [pool.submit(work, replicate) for replicate in range(run.replicates)]
        shown, pending = 0, set(futures)
        while pending:
            finished, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
            now = sum(done)
            advance(now - shown)
            shown = now
            if any(future.exception() for future in finished):
                break
        return [future.result() for future in futures]
    finally:
        # Also on an error or Ctrl-C: every replicate stops at the end of its chunk.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def kernels_of(run: Run) -> Kernels:
    """The kernels for the run's policy, relay rule and emission."""
    return specialise(rules_of(run))


def rules_of(run: Run) -> Rules:
    """What the run's kernels are made for."""
    policy, protocol, emission = type(run.policies[0]), type(run.protocol), type(run.protocol.emission)
    relay = protocol.relay if protocol.random else None
    return policy.index, relay, None if emission in BUILT_IN_EMISSIONS else emission.sends
