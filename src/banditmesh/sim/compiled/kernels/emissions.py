"""What agents send of their pulls, and what receivers make of an origin's count and sum."""

from __future__ import annotations

from ....protocols.emission import Contested, EveryPull, Growth
from .compiling import helper, routine, scalar
from .forgetting import add_own
from .layout import CONTESTED, COUNT, GROWTH, OWN_EMISSION, TOTAL, Agents, Floats, Int8s, Int32s, Pulls, Rule, State

growth_sends = scalar(Growth.sends)
contested_sends = scalar(Contested.sends)
#: A user's own emission takes this place, see `specialise`.
own_sends = scalar(EveryPull.sends)


@helper
def sends_now(rule: Rule, own_count: int, sent_count: int, is_best: bool) -> bool:
    """What the run's emission says."""
    sends = True
    if rule.emission == GROWTH:
        sends = growth_sends(own_count, sent_count, is_best, rule.emission_parameter)
    elif rule.emission == CONTESTED:
        sends = contested_sends(own_count, sent_count, is_best, rule.emission_parameter)
    elif rule.emission == OWN_EMISSION:
        sends = bool(own_sends(own_count, sent_count, is_best, rule.emission_parameter))
    return sends


@helper
def slot_to_echo(first: int, last: int, sent_rounds: Int32s, echoes_left: Int8s) -> int:
    """Of the slots from `first` to before `last` that have echoes left the one sent least recently; -1 if none has."""
    found = -1
    for slot in range(first, last):
        if echoes_left[slot] > 0 and (found < 0 or sent_rounds[slot] < sent_rounds[found]):
            found = slot
    return found


@helper
def own_count_of(slot: int, state: State) -> int:
    """How often a slot was pulled."""
    return int(state.pulls[slot])


@helper
def sent_count_of(slot: int, state: State) -> int:
    """How often it had been pulled when it was last sent."""
    return int(state.sent_counts[slot])


@helper
def note_sent(slot: int, count: int, state: State) -> None:
    """It is sent with this count."""
    state.sent_counts[slot] = count


@helper
def own_weight_of(slot: int, state: State) -> float:
    """In the place of `own_count_of` by memories that discount: what the pulls weigh, if that is sent."""
    return state.own_weights[slot] if len(state.own_weights) > 0 else float(state.pulls[slot])


@helper
def sent_weight_of(slot: int, state: State) -> float:
    """In the place of `sent_count_of`."""
    return state.sent_weights[slot] if len(state.own_weights) > 0 else float(state.sent_counts[slot])


@helper
def note_sent_weight(slot: int, count: float, state: State) -> None:
    """In the place of `note_sent`."""
    if len(state.own_weights) > 0:
        state.sent_weights[slot] = count
    else:
        state.sent_counts[slot] = int(count)


@routine
def emit(t: int, agents: Agents, rule: Rule, pulls: Pulls, state: State) -> None:
    """Make this round's messages of its pulls."""
    slots, amounts, rewards, is_best = pulls.slots, pulls.amounts, pulls.rewards, pulls.is_best
    own_totals, n_messages = state.own_totals, state.n_messages
    sent_totals, sent_rounds = state.sent_totals, state.sent_rounds
    echoes_left, echoes = state.echoes_left, rule.n_echoes > 0
    for v in range(pulls.first, pulls.last):
        slot = slots[v]
        if slot < 0:
            continue
        if rule.sends_sums:
            own_totals[slot] += rewards[v]
            add_own(slot, amounts[v], state)
        own_count, sent_count = own_count_of(slot, state), sent_count_of(slot, state)
        if sends_now(rule, own_count, sent_count, is_best[v] == 1):
            if echoes:
                echoes_left[slot] = rule.n_echoes
        else:
            slot = -1
            if echoes:
                slot = slot_to_echo(agents.offsets[v], agents.offsets[v + 1], sent_rounds, echoes_left)
            slots[v] = slot
            if slot < 0:
                continue
            own_count, sent_count = own_count_of(slot, state), sent_count_of(slot, state)
            echoes_left[slot] -= 1
        if echoes:
            sent_rounds[slot] = t
        n_messages[slot] += 1
        note_sent(slot, own_count, state)
        if rule.sends_changes:
            amounts[v], rewards[v] = own_count - sent_count, own_totals[slot] - sent_totals[slot]
            sent_totals[slot] = own_totals[slot]
        elif rule.sends_sums:
            amounts[v], rewards[v] = own_count, own_totals[slot]


@helper
def emit_nothing(t: int, agents: Agents, rule: Rule, pulls: Pulls, state: State) -> None:
    """In the place of `emit` where every pull is sent: a shorter kernel compiles sooner."""


@helper
def learn_sum(
    learner: int,
    amount: float,
    total: float,
    place: int,
    known_counts: Int32s,
    known_totals: Floats,
    sums: Floats,
) -> int:
    """A learner hears an origin's count and sum: what it did not know of them counts, if the count is higher.

    Returns 0 if it is, and 1 if the statistic is stale.
    """
    before = known_counts[place]
    stale = 1
    if amount > before:
        stale = 0
        sums[learner, COUNT] += amount - before
        sums[learner, TOTAL] += total - known_totals[place]
        known_counts[place] = amount
        known_totals[place] = total
    return stale
