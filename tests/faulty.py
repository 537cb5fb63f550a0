"""Runs with lost messages and agents that are down, recomputed message by message.

By the sound rules on a static network a message's journey does not depend on any other message. So here each message
is followed on its own, from the round it is made in to its last hop, with the draws that the package documents; no
queue, no memory of ids and no round in which everybody acts.
"""

import collections
import math

from banditmesh.draws import LOSS, OUTAGE, Draws
from oracles import has_arm, neighbour_lists


def presence(n_agents, horizon, outages, draws):
    """up[t][v]: whether agent v is up in round t; round 0 is before the first."""
    up = [[True] * n_agents]
    for t in range(1, horizon + 1):
        row = []
        for v in range(n_agents):
            u = draws.uniform(OUTAGE, v, t)
            row.append(outages is None or (u >= outages.down if up[-1][v] else u < outages.up))
        up.append(row)
    return up


class Faulty:
    """One run; after `run`, `pulls` is {(round, agent): arm}, and `sent`, `lost` and `learned` are counted."""

    def __init__(self, problem, protocol, faults, tape, horizon, seed, alpha=3.0):
        self.problem, self.protocol, self.faults, self.tape = problem, protocol, faults, tape
        self.horizon, self.alpha = horizon, alpha
        self.draws = Draws(seed, 0)
        self.neighbours = neighbour_lists(problem)
        self.up = presence(problem.n_agents, horizon, faults.outages, self.draws)
        self.pulls = {}
        self.sent = [0] * (horizon + 1)
        self.lost = 0
        # heard[v]: (round, origin, sequence, arm, count, total), in no order.
        self.heard = collections.defaultdict(list)

    def life(self, v, t):
        """The round in which v last began with nothing."""
        outages = self.faults.outages
        if outages is None or outages.memory:
            return 0
        return max((s for s in range(1, t + 1) if self.up[s][v] and not self.up[s - 1][v]), default=0)

    def run(self):
        for t in range(1, self.horizon + 1):
            for v in range(self.problem.n_agents):
                if self.up[t][v]:
                    self.pulls[t, v] = self.choose(v, t)
            for v in range(self.problem.n_agents):
                if (t, v) in self.pulls:
                    self.emit(v, t)
        return self

    def own(self, v, t, arm):
        """The rewards of v's pulls of an arm up to round t, in this life."""
        rounds = range(max(self.life(v, t), 1), t + 1)
        return [self.tape[s - 1, v, arm] for s in rounds if self.pulls.get((s, v)) == arm]

    def choose(self, v, t):
        arms = self.problem.arm_set(v).tolist()
        n_own = sum(len(self.own(v, t - 1, arm)) for arm in arms) if self.life(v, t) < t else 0
        if n_own < len(arms):
            return arms[n_own]

        def index(arm):
            rewards = self.own(v, t - 1, arm)
            known = self.known(v, t, arm)
            count = len(rewards) + sum(n for n, _ in known)
            mean = math.fsum([*rewards, *(total for _, total in known)]) / count
            return mean + math.sqrt(self.alpha * math.log(t) / count)

        return max(arms, key=index)

    def known(self, v, t, arm):
        """(count, total) of what v has heard of an arm before round t."""
        since = self.life(v, t)
        heard = [one for one in self.heard[v] if since <= one[0] < t and one[3] == arm]
        if not self.protocol.emission.cumulative:
            return [(count, total) for *_, count, total in heard]
        latest = {}
        for _, origin, _, _, count, total in sorted(heard):
            if count > latest.get(origin, (0, 0.0))[0]:
                latest[origin] = count, total
        return list(latest.values())

    @property
    def learned(self):
        """How many messages changed what their hearer knew; of sums, those that counted more than what it knew."""
        n_learned = 0
        latest = {}
        for v, heard in self.heard.items():
            for t, origin, _, arm, count, _ in sorted(heard):
                key = v, self.life(v, t), origin, arm
                if not self.protocol.emission.cumulative or count > latest.get(key, 0):
                    n_learned += 1
                    latest[key] = count
        return n_learned

    def emit(self, v, t):
        """v's message of round t, if it sends one, goes on its journey."""
        arm = self.pulls[t, v]
        rewards = self.own(v, t, arm)
        if not self.protocol.emission.cumulative:
            self.travel(v, t, arm, 1, rewards[-1])
            return
        last_sent = 0
        for n in range(1, len(rewards) + 1):
            sends = n - last_sent >= self.protocol.emission.factor * last_sent
            last_sent = n if sends else last_sent
        if sends:
            self.travel(v, t, arm, len(rewards), math.fsum(rewards))

    def travel(self, origin, sequence, arm, count, total):
        carriers = [(origin, None)]
        seen = {origin: sequence}
        for t in range(sequence, min(sequence + self.protocol.ttl, self.horizon + 1)):
            arrivals = {}
            for v, previous in sorted(carriers, key=lambda carrier: carrier[0]):
                for w in self.neighbours[v] if self.up[t][v] else []:
                    if w == previous:
                        continue
                    self.sent[t] += 1
                    if self.draws.uniform(LOSS, origin, sequence, v, w) < self.faults.loss or not self.up[t][w]:
                        self.lost += 1
                    elif w not in seen or seen[w] < self.life(w, t):
                        arrivals.setdefault(w, v)
            carriers = []
            for w, v in arrivals.items():
                seen[w] = t
                if has_arm(self.problem, w, arm):
                    self.heard[w].append((t, origin, sequence, arm, count, total))
                if self.protocol.name != "fwa" or not has_arm(self.problem, w, arm):
                    carriers.append((w, v))
