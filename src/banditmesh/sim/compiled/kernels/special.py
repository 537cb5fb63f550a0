"""Kernels for rules other than the usual ones: the same loops, with other functions in the places of theirs.

The built-in policies each have kernels of their own, cached on disk; those of a user's rules are compiled in every
process, and again when something changes that the rule reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from ....policies import KLUCB, UCB, Policy, ThompsonSampling
from ....protocols import EveryPull, ProbabilisticFlooding
from . import cache, emissions, faults, merge, planned, pulls, quiet, rounds, sets, spread, walk
from .ahead import draw_for_arms
from .choices import CHOICES, choices_by
from .compiling import block, helper, kernel, own_block, rebind, routine, scalar, uncached
from .forgetting import BY_MEMORY
from .identity import identity
from .replaying import BY_LOG, CHOOSING, UNKNOWN
from .scalars import compile_rule, random_relay

#: A policy's index, a relay rule that draws (None if it does not) and a user's emission, if any.
Rules: TypeAlias = tuple[Callable[..., float], Callable[..., int] | None, Callable[..., bool] | None]


class Kernels(NamedTuple):
    """The kernels that depend on a policy's index, on a relay rule that draws, or on an emission."""

    quiet_rounds: Any
    plan_rounds: Any
    pull_part: Any
    spread_rounds: Any
    walk_rounds: Any
    merge_rounds: Any
    #: Whether they are of built-in rules alone, so that they are cached.
    is_built_in: bool


USUAL: Final = Kernels(
    quiet.quiet_rounds,
    planned.plan_rounds,
    planned.pull_part,
    rounds.spread_rounds,
    walk.walk_rounds,
    merge.merge_rounds,
    is_built_in=True,
)
#: The clocks that kernels of a built-in index work out themselves; any other is read to them by Python.
CLOCKS: Final = {policy.index: policy.clock for policy in (UCB, KLUCB, ThompsonSampling)}
_BUILT_IN: Final = frozenset(CLOCKS)
#: What takes the places of counts in statistics that are sent, by memories that discount.
_EMITTED: Final = {
    "own_count_of": emissions.own_weight_of,
    "sent_count_of": emissions.sent_weight_of,
    "note_sent": emissions.note_sent_weight,
}
_MERGED: Final = {"count_beside": merge.weight_beside, "told_count": merge.told_weight}
#: Built-in rules whose cached kernels were found to be wrong in this process.
_distrusted: set[Rules] = set()


def specialise(rules: Rules, plain: bool = False, memory: str = "", replays: bool = False) -> Kernels:
    """The kernels for a policy's index, a relay rule that draws, a user's emission and a kind of memory.

    Those for `plain` runs, which send every pull to neighbours and meet no fault, have less in them; those for
    rewards that are replayed, more.
    """
    index, relay, sends = rules
    rules = index, None if relay is ProbabilisticFlooding.relay else relay, sends
    if is_built_in(rules):
        is_usual = index is UCB.index and not (plain or memory or replays) and rules not in _distrusted
        return USUAL if is_usual else _bind(rules, plain, memory, replays, "built-in")
    return _bind(rules, plain, memory, replays, " ".join(identity(rule) for rule in rules if rule is not None))


def is_built_in(rules: Rules) -> bool:
    """Whether none of the rules is a user's own."""
    index, relay, sends = rules
    return index in _BUILT_IN and relay in (None, ProbabilisticFlooding.relay) and sends is None


def distrust(rules: Rules) -> None:
    """From now on compile the kernels of these built-in rules in this process; whatever is cached is removed."""
    index, _, sends = rules
    _distrusted.add((index, None, sends))
    _bind.cache_clear()
    cache.remove_all()


def _choices_by(index: Callable[..., float], memory: str, replays: bool) -> tuple[Any, Any]:
    """What writes arms' scores, and what finds the arm with the highest index by them."""
    if index in CHOICES:
        return choices_by(index, memory, replays)
    reading = _of_memory(memory, "count_of", "root_of", "handed")
    choose = CHOOSING["highest_score"] if replays else pulls.highest_score
    return helper(rebind(pulls.write_indices, index_rule=compile_rule(index), **reading)), choose


def _of_memory(memory: str, *names: str) -> dict[str, Any]:
    """Of these functions those that a memory replaces."""
    return {name: function for name, function in BY_MEMORY[memory].items() if name in names}


@lru_cache(maxsize=32)
def _bind(rules: Rules, plain: bool, memory: str, replays: bool, _identities: str) -> Kernels:
    index, relay, sends = rules
    trusted = is_built_in(rules) and rules not in _distrusted
    compiling, compiling_part, compiling_block = (kernel, routine, block) if trusted else (uncached, scalar, own_block)
    if rules in _distrusted:
        # Under another name, or the code that was read would be called again.
        index = rebind(index, distrusted=index)
    # What a rule has no part in is shared with the usual kernels: a process compiles it once.
    pull_rounds, emit, decide = pulls.pull_rounds, emissions.emit, merge.decide
    quiet_rounds = quiet.quiet_rounds
    relays, spreads, decide_each = random_relay, spread.spread, sets.decide_each
    restart, tell_everyone = faults.restart, rounds.tell_everyone
    if index is not UCB.index or memory or replays:
        clock_rule = compile_rule(CLOCKS.get(rules[0], Policy.clock))
        read_clocks = helper(rebind(pulls.read_clocks, clock_rule=clock_rule, **_of_memory(memory, "age_of")))
        write_scores, choose = _choices_by(index, memory, replays)
        own = {"write_scores": write_scores, "choose": choose, "read_clocks": read_clocks}
        own |= _of_memory(memory, "begin_round", "count_pull", "first_unknown")
        if replays:
            own = {name: UNKNOWN.get(part, part) for name, part in own.items()} | BY_LOG
        draws = pulls.draw_for_index if index is UCB.index else draw_for_arms
        pull_rounds = compiling_part(rebind(pull_rounds, draw_for_index=draws, **own))
        quiet_rounds = compiling(rebind(quiet_rounds, pull_rounds=pull_rounds))
    weighing = _of_memory(memory, "add_own")
    if sends is not None or weighing:
        sends_now = helper(rebind(emissions.sends_now, own_sends=compile_rule(sends or EveryPull.sends)))
        emit = compiling_part(rebind(emit, sends_now=sends_now, **weighing, **(_EMITTED if weighing else {})))
        decide = compiling_part(rebind(decide, sends_now=sends_now, **(_MERGED if weighing else {})))
    if plain:
        emit, restart, tell_everyone = emissions.emit_nothing, faults.restart_none, rounds.tell_none
    if relay is not None:
        relays = compile_rule(relay)
        decide_each = helper(rebind(sets.decide_each, random_relay=relays))
        spreads = compiling_block(rebind(spreads, random_relay=relays))
    heard, entering = _of_memory(memory, "begin_heard"), _of_memory(memory, "block_of", "enter")
    deliver, learn_in_order, hop_abreast = rounds.deliver, sets.learn_in_order, sets.hop_abreast
    if entering:
        deliver = compiling_part(rebind(deliver, **entering))
        learn_in_order = helper(rebind(learn_in_order, **entering))
    if entering or relay is not None:
        hop_abreast = compiling_part(rebind(hop_abreast, decide_each=decide_each, learn_in_order=learn_in_order))
        tell_everyone = tell_everyone if plain else compiling_part(rebind(tell_everyone, **entering))
    begin = helper(
        rebind(rounds.begin, restart=restart, pull_rounds=pull_rounds, tell_everyone=tell_everyone, emit=emit, **heard)
    )
    plan_rounds = rebind(planned.plan_rounds, begin=begin, pull_rounds=pull_rounds)
    pull_part = rebind(planned.pull_part, pull_rounds=pull_rounds, emit=emit)
    spreading = {"spread": spreads, "hop_abreast": hop_abreast}
    spread_rounds = rebind(rounds.spread_rounds, begin=begin, deliver=deliver, **spreading)
    begin_walk = compiling_part(rebind(walk.begin_walk, restart=restart, pull_rounds=pull_rounds, emit=emit, **heard))
    settle_all = walk.settle_all
    if entering or relay is not None:
        settle = helper(rebind(walk.settle, random_relay=relays))
        settle_all = compiling_part(rebind(settle_all, settle=settle, learn_in_order=learn_in_order))
    walk_rounds = rebind(walk.walk_rounds, begin_walk=begin_walk, settle_all=settle_all)
    merging = _of_memory(memory, "begin_merged", "add_own")
    merge_rounds = rebind(merge.merge_rounds, pull_rounds=pull_rounds, decide=decide, **merging)
    return Kernels(
        quiet_rounds,
        compiling(plan_rounds),
        compiling(pull_part),
        compiling(spread_rounds),
        compiling(walk_rounds),
        compiling(merge_rounds),
        is_built_in(rules),
    )
