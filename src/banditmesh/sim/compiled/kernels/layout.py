"""The arrays that kernels share, by name.

A *slot* is one agent's one arm: slots `offsets[v]` to `offsets[v + 1]` are agent v's arm set in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bitsets import WORD
from .structs import Struct

Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Ranks = NDArray[np.uint16]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

# Numbers that functions are called with: for a plain 0 or -1 they would be compiled once more.
ZERO: Any = np.int64(0)
FIRST_ROUND: Any = np.int64(1)
#: A round before all others, so far that nothing drawn ahead from it on is of any use.
NEVER: Any = np.int64(-(2**20))
NO_AGENT: Any = np.int64(-1)
#: When a neighbour was told something that it never was: before all pauses.
NEVER_TOLD: Any = np.int32(-(2**31) + 1)
ONE: Any = np.uint64(1)
ZERO_SLOT: Any = np.uint64(0)
NO_BITS: Any = np.uint64(0)
#: How many bits a word has, to divide unsigned numbers by.
WORDS: Any = np.uint64(WORD)
# Columns of the sums of observations.
COUNT, TOTAL = 0, 1
PAIR: Any = np.uint64(2)
# Emissions, by code.
EVERY_PULL, GROWTH, CONTESTED, OWN_EMISSION = range(4)
# Rows of an agent's scores: its indices, or bounds on them; its draws, and what is drawn from these for coins;
# bounds for others than coins.
SCORES, DRAWS, NORMAL, CHANCE, OTHER_NORMAL, OTHER_CHANCE, OTHERS = range(7)
N_SCORES = 7
# Rows of what is looked at again: the same of some arms, and where each is.
PLACES = N_SCORES
N_AGAIN = N_SCORES + 1
# Places in `State.now`: what an observation of the round under way weighs, one over that, its root, and the place of
# the block under way.
UNIT_WEIGHT, INVERSE, ROOT, BLOCK = range(4)
# Columns of what `spread` notes of an agent.
MARK, PREVIOUS = 0, 1
# Columns of what a walk keeps of a message, and of an agent's memory.
ACCEPTED, PLACE, FORGETS_FROM, QUEUED_TO, N_QUEUED = range(5)
# What bounds on indices begin with: no coin's index is above 1.
FIRST_TANGENT = 1.0
# What a coin has in the place of a sigma, which is never negative.
COIN = -1.0
# Each slot's learners in a plan begin at a multiple of this, so that 32 bits say where.
UNIT = 2
# What a plan may keep of copies that end, see `Plan`.
ABSORBED_BY_HOP, STOPPED_BY_HOP = 0, 1


class Network(Struct):
    """The links of consecutive rounds.

    Row r of `starts` is the round `first_round + r`; a static network has the one row 0 for all rounds. The neighbours
    of v in a row are `indices[starts[row, v] : starts[row, v + 1]]`, ascending.
    """

    is_static: bool
    first_round: int
    starts: Int64s
    indices: Int32s


class Agents(Struct):
    """Who has which arms and pulls when; never changes."""

    offsets: Int64s
    arms: Int32s
    #: position[v, a]: where in v's arm set arm a is; -1 if v does not have it.
    position: Int16s
    #: By agent the mean of its best arm; not read where means change.
    best_means: Floats
    sigmas: Floats
    every: Int64s
    #: Which column of the clocks is the agent's.
    clock: Int32s
    parameter: Floats
    law_code: Int64s
    #: By agent, how many first pulls it has behind it when it begins: none, or all if it makes none.
    n_skipped: Int32s
    #: By slot whose it is. Empty for policies that draw nothing.
    owners: Int32s
    #: By slot, what bounds on indices need of its arm's law: see `choices`. Empty for policies that have none.
    widths: Floats
    #: Whether every arm is a coin, so that coins need not be counted.
    only_coins: bool


class Holders(Struct):
    """Who has an arm: the slots of arm a are `slots[starts[a] : starts[a + 1]]`, ascending; empty if not needed."""

    starts: Int64s
    slots: Int32s


class Rule(Struct):
    """A protocol and a rule set, as numbers.

    After `reach` hops every message has ended: that is the ttl, or less where it cannot matter. `decision[has_arm, hop,
    degree]` is the relay rule, after hop + 1 hops, of a protocol that does not draw; its last axis has length 1 if the
    degree does not matter. `n_targets` is 0 for all neighbours. If `sends_sums`, a message holds its origin's count
    and sum so far; if `sends_changes`, what is new in them since the last one, because whoever hears one message of an
    origin's arm hears them all, in order.
    """

    ttl: int
    reach: int
    horizon: int
    decision: Int8s
    is_random: bool
    parameter: float
    n_targets: int
    relay_to_sender: bool
    origin_remembers: bool
    stop_before_use: bool
    stop_k0: int
    stop_k1: int
    target_k0: int
    target_k1: int
    emission: int
    emission_parameter: float
    n_echoes: int
    asks_best: bool
    sends_sums: bool
    sends_changes: bool
    #: How often an agent may learn one message: more than once only if it loses its memory.
    most_receipts: int
    #: Whether all agents hear everything, without any message.
    tells_everyone: bool


class FaultRows(Struct):
    """What goes wrong.

    Row t - first_round of `up` says which agents are up in round t; it has no column if all always are. The agents
    that come up in that round without their memory are `restarts[restart_starts[row] : restart_starts[row + 1]]`.
    """

    loss: float
    loss_k0: int
    loss_k1: int
    first_round: int
    up: Int8s
    restart_starts: Int64s
    restarts: Int32s


class Ahead(Struct):
    """Draws that decide rewards: those of agent v and the round `first[0] + i` are at `v * n_rounds + i`.

    `normals` are the normal quantiles of `uniforms`; empty if no law needs them. If `n_rounds` is 0, nothing is drawn
    ahead.
    """

    n_rounds: int
    first: Int64s
    uniforms: Floats
    normals: Floats


class Waiting(Struct):
    """Workspace: what is about to be added to sums, whose place in memory is far away.

    Empty where all sums are near.
    """

    slots: Words
    #: (places, 2), as in `State.sums`
    numbers: Floats


class Logged(Struct):
    """Rewards of a log, which agents use once each: those of arm a are `rewards[starts[a] : starts[a + 1]]`.

    Of arms that are not replayed there are none. All is empty where no arm is.
    """

    n_agents: int
    starts: Int64s
    rewards: Floats
    #: By slot how many are left; of an arm that is not replayed, more than there are rounds.
    left: Int32s
    #: Workspace: by agent a table of what has changed places in the samples of its arms, see `replaying`.
    moved: Int64s


class State(Struct):
    """What one replicate has learned so far, by slot; `n_pulls` and `next_round` by agent.

    `sums` are pairs, side by side since both are needed at a time: of how many observations an agent knows, and the sum
    of their rewards. What is behind `next_round` is empty where it is not needed: by emissions other than every pull
    what each slot has sent, and by outages without memory the pulls before the last one.
    """

    #: (n_slots, 2)
    sums: Floats
    #: The same numbers in one row, slot after slot. Only of these does the compiler know how far apart counts are: it
    #: must, to make vector instructions of a loop over an agent's arms.
    pairs: Floats
    pulls: Int32s
    n_pulls: Int32s
    next_round: Int64s
    n_messages: Int32s
    sent_counts: Int32s
    sent_totals: Floats
    sent_rounds: Int32s
    echoes_left: Int8s
    own_totals: Floats
    #: By memories that discount, what each slot's own pulls weigh, and weighed when they were last sent.
    own_weights: Floats
    sent_weights: Floats
    #: (n_slots, blocks, 2): by memories of windows, the sums of each block. Block b is at place b % blocks.
    blocks: Floats
    forgotten_pulls: Int32s
    #: By agent, its regret up to now; empty where means do not change.
    agent_regret: Floats
    #: Workspace, by position in one agent's arm set.
    scores: Floats
    #: Workspace for arms that are looked at again, and their sums, as `pairs`: see `thompson`. Empty for others.
    again: Floats
    again_pairs: Floats
    #: By slot, what bounds on indices are made of: see `klucb`. Empty for policies that need none.
    tangents: Floats
    #: Workspace: this round's clocks, see `Keys`.
    clocks: Floats
    #: Workspace: how weights are read in this round, see `forgetting`.
    now: Floats
    waiting: Waiting
    ahead: Ahead
    logged: Logged


class Known(Struct):
    """Others' statistics: what learner slot l knows of origin slot s is at `rows[s] + rank[l]`.

    Empty unless a message's learners may miss others of its origin, or hear them in another order.
    """

    rows: Int64s
    rank: Int32s
    counts: Int32s
    totals: Floats


class Pulls(Struct):
    """The round under way, by agent: its pull, then its message; a slot of -1 says that there is none.

    The agents that are looked at are those from `first` to before `last`. A message stands for `amounts` observations
    whose rewards sum to `rewards`.
    """

    first: int
    last: int
    slots: Int32s
    amounts: Floats
    rewards: Floats
    #: Whether the arm had the highest mean when it was chosen.
    is_best: Int8s
    #: How much less the arm pays than the agent's best one.
    gaps: Floats


class Messages(Struct):
    """The messages of the last `reach` rounds, by agent and round modulo reach, as in `Pulls`."""

    slots: Int32s
    amounts: Floats
    rewards: Floats


class Fates(Struct):
    """Where messages go, by key: who learns them after 1, 2, ... hops, and how often they are sent.

    The learners of a key at hop h are the slots `learners[row, base + end[h - 2] : base + end[h - 1]]`. In the ring of
    the last `reach` rounds' messages the row is the round modulo reach, and the key origin * reach + row.
    """

    base: Int64s
    end: Int32s
    sent: Int32s
    learners: Int32s
    #: How often messages are sent in the rounds to come, see `take_sent`.
    sent_ahead: Int64s


class Ways(Struct):
    """Which links the copies of planned messages take, where they are counted; without rows otherwise.

    Hop h of row k's message sends a copy along each of the places `places[ends[k, h - 1] : ends[k, h]]` in the
    network's indices. Rows are slots; or agents, if `of_agents`, where all messages of an agent take the same ways.
    """

    of_agents: bool
    #: (rows, reach + 1)
    ends: Int64s
    places: Int32s


class Plan(Struct):
    """Where every message of a static network goes, by the slot that was pulled.

    A record is `start, ends..., sent...`: the learners are the entries from `UNIT * start` on; those of hop h in part p
    of the agents end at place (h - 1) * n_parts + p of the ends, and begin where the ones before them end; after that
    comes how often the message is sent in each hop. Learners are slots; or in `ranks`, where that is not empty, their
    places among the slots of their arm.

    `delivered` is how many copies are delivered, by slot and hop. `ended` is how many of these are absorbed and how
    many stopped; it is empty where the relay rule tells, because all learners meet one decision, and all others one.
    """

    #: (n_slots, 1 + reach * n_parts + reach)
    records: Int32s
    #: (n_slots, reach)
    delivered: Int32s
    #: (n_slots, reach, 2) or (0, reach, 2)
    ended: Int32s
    learners: Int32s
    ranks: Ranks
    ways: Ways


class Search(Struct):
    """Workspace of `plan_slots`, for 64 arms at a time: bit i of a word is about the i-th of them.

    The marks of an agent are what it has seen of the origin under way, what it hears in this hop, which arms it has,
    its degree and its first slot, all side by side. Those who have seen something are `touched`.
    """

    #: (n_agents, 4)
    marks: Words
    senders: Int32s
    masks: Words
    receivers: Int32s
    grouped: Int32s
    #: Which part of the agents an agent belongs to, and where the receivers of each part end.
    part_of: Int32s
    part_ends: Int64s
    touched: Int32s
    n_touched: Int64s
    #: (64, most holders of an arm): who learns the messages of the origin under way.
    learned: Int32s
    #: (64, N_TALLIES)
    tallies: Int64s
    counts_ended: bool


class OnLinks(Struct):
    """Transmissions by link: that on place i of a round's `indices` counts at `on_link[rows[t - first_round] + i]`.

    Without link traffic both are empty.
    """

    first_round: int
    rows: Int64s
    on_link: Int64s


class Keys(Struct):
    """What pulls need: the keys of their draws, how far clocks lag behind, clocks' parameters, and a memory's."""

    #: The two words of the key for rewards, those of the key for indices, and those of the key for replayed rewards.
    draws: Int64s
    draws_index: bool
    clock_lag: int
    clock_parameters: Floats
    #: Of a memory that discounts: its gamma, and by how many powers of two a weight falls in a round.
    gamma: float
    rate: float
    #: Of a memory by windows: how many rounds count, how many a block has, and how many blocks count.
    window: int
    block_rounds: int
    n_blocks: int


class Single(Struct):
    """Workspace for messages of which there is one copy at a time; empty where that is not used.

    By message, who made it of which arm; who has `met` it, its origin first; which slot learned it in each hop, or -1,
    and how often it was sent. Of those that still travel, in order: which one it is, who sends it next, and who that
    agent has it from. `tallies` counts decisions.
    """

    origins: Int32s
    arms: Int32s
    met: Int32s
    learned: Int32s
    n_sent: Int32s
    at: Int32s
    senders: Int32s
    previous: Int32s
    chances: Floats
    tallies: Int64s


class Ranked(Struct):
    """What is learned of the messages under way, by origin and then by round: see `sets`."""

    arms: Int32s
    amounts: Floats
    rewards: Floats


class Abreast(Struct):
    """Messages under way as sets, see `sets`; without words where that is not used.

    By agent, which messages it has seen, which it sends in even and in odd rounds, and of which it has the arm: one row
    after the other, each with one more word, without bits.
    """

    #: How many rounds there is room for, and by how many bits origins are shifted for that.
    n_rounds: int
    shift: np.uint64
    seen: Words
    sending: Words
    held: Words
    #: Where the rows of the agents that have arm a begin: `holders[holder_starts[a] : holder_starts[a + 1]]`.
    holder_starts: Int64s
    holders: Int32s
    #: Which messages there still are after a hop, for all rows, and in which hops those that are relayed may be.
    kept: Words
    goes_on: Words
    #: Which messages are the oldest, and whether one of them lives on that there will be no room for.
    oldest: Words
    lives_on: Int64s
    #: By decision, and by whether the arm is held, the messages of which a relay rule says so that draws nothing.
    decisions: Words
    #: How many copies of the next round are not sent, because they would go back.
    n_back: Int64s
    #: Workspace, for one agent at a time.
    marks: Int64s
    stays: Words
    fresh: Words
    linked_back: Words
    decided: Words
    learning: Words
    ranks: Words
    chances: Floats
    ranked: Ranked


class Scratch(Struct):
    """Workspace of `spread`.

    `seen[v]` is a mark and the sender of v's first copy. Marks grow from hop to hop and from message to message: an
    agent has seen a message if its mark is at least the message's first.
    """

    seen: Int64s
    senders: Int32s
    receivers: Int32s
    picks: Int32s
    drawn: Int32s
    chances: Floats
    next_mark: Int64s
    #: Where a round that had no place for all its learners goes on, see `spread_rounds`.
    cursor: Int64s
    abreast: Abreast
    single: Single


class Walked(Struct):
    """What is kept of messages that are walked copy by copy.

    Messages are numbered by rounds modulo twice reach, from a whole word on in each round, and by origins; `told` says
    what they are about. The messages of the round under way begin at `first[0]`.
    An arm's rewards have an id for each of their `n_codes` values if it is `discrete`.
    """

    discrete: Int16s
    n_codes: int
    first: Int64s
    #: By message its origin, its round and its arm, which is -1 if the origin sends none.
    origins: Int32s
    rounds: Int32s
    arms: Int32s
    #: By message its id, where that is not the message's own number; empty if it always is.
    ids: Int32s
    #: By agent the set of ids that it remembers.
    remembered: Words
    #: By agent a ring of the messages that it accepted, in order, and one of their ids.
    recent: Int32s
    recent_ids: Int32s
    #: By agent how many messages it has accepted, its place in the ring, and from how many on it forgets what matters;
    #: then where what it accepted in the last round ends in the ring, and how many messages that are.
    memories: Int64s
    #: How many messages each agent had accepted at the end of the last `reach` rounds, by round modulo reach.
    accepted: Int64s
    #: By how many bits origins are shifted to be in order with rounds, and the set of what an agent learns in a round.
    shift: np.uint64
    learning: Words
    ranked: Ranked
    #: Workspace.
    queue: Int32s
    chances: Floats
    picks: Int32s
    drawn: Int32s


class Steps(Struct):
    """How an edge-Markovian network goes from round to round, see `edge_markovian_step`."""

    n_agents: int
    p: float
    q: float
    births_first: bool
    birth_k0: int
    birth_k1: int
    death_k0: int
    death_k1: int


class TreeLinks(Struct):
    """A spanning tree: agent v's links to its neighbours in it are those from `starts[v]` to before `starts[v + 1]`.

    `backward` is the same link in the other direction, `wants[link, arm]` whether an agent beyond has the arm, and
    `places` where the link is in the whole network's indices.
    """

    starts: Int64s
    neighbours: Int32s
    backward: Int64s
    wants: Int8s
    places: Int64s


class Merged(Struct):
    """What agents of a tree know and told, by directed link and arm.

    `told_counts` and `told_totals` at a link of v are what the neighbour last told v; `sent_counts`, `sent_totals` and
    `sent_rounds`, what v last told it, and `echoes_left` how often it tells that again. `n_sent` counts a link's
    messages. `counts[v, arm]` is all that v knows of, `is_open[v, arm]` whether there may be something to tell, and
    `tells[v, arm]` whether v tells it in this round.
    """

    told_counts: Int64s
    told_totals: Floats
    sent_counts: Int64s
    sent_totals: Floats
    sent_rounds: Int32s
    echoes_left: Int8s
    n_sent: Int64s
    counts: Int64s
    is_open: Int8s
    tells: Int8s


class Chunk(Struct):
    """What a chunk of rounds from `first` on is given, and where it leaves each round's regret and transmissions.

    Row t - first of the arrays is round t. By arm, `means` are what regret is judged by, and `law_a` and `law_b` the
    numbers of the laws; either has a single row if it is the same in all rounds. `means_change` says whether means are
    by round: then each agent's best mean is looked up. If `clocks` is empty, kernels work them out. Without a tape,
    `tape` and `codes` are not read; `codes` says which of its values a reward of the tape is. By plans whose ways are
    counted, `made` is left with the slot of each agent's message, -1 if there is none; otherwise it has no rows. A
    kernel that finds `stop` set returns at once.
    """

    first: int
    network: Network
    links: OnLinks
    faults: FaultRows
    means_change: bool
    means: Floats
    law_a: Floats
    law_b: Floats
    clocks: Floats
    has_tape: bool
    tape: Floats
    codes: Int32s
    stop: Int64s
    regret: Floats
    sent: Int64s
    #: (rounds, agents)
    made: Int32s


class Arrays(Struct):
    """One replicate: what kernels that simulate rounds read and write, whichever way messages are delivered.

    `counts` says how many copies met which fate, see `fate`.
    """

    agents: Agents
    holders: Holders
    rule: Rule
    keys: Keys
    state: State
    known: Known
    pulls: Pulls
    messages: Messages
    counts: Int64s
