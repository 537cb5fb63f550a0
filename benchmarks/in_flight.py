"""What a node should make of choices whose rewards have not come: rules for delayed feedback, side by side.

The table of docs/live/configuration.md, as Markdown. A cell is the mean regret of one agent at the horizon over the
seeds, with the standard error of that mean; all rules meet the same rewards and delays. A choice of an arm that does
not pay any more costs the mean of the best arm that does.

Of what is published, the first three are as their papers have them, with this policy's index in the place of UCB1's and
of that of a linear model; the fourth is made after a paper whose setting is another one (the law of delays is known,
and only successes are ever reported). The docstrings say what differs. They were compared with public code and notes:

P. Joulani, A. Gyorgy, C. Szepesvari, Online Learning under Delayed Feedback, ICML 2013, arXiv:1306.0686
    QPM-D with two implementations, models/qpmd.py of github.com/ej0cl6/cbpr and delayed_bandit/simulation.py of
    github.com/djo/delayed-bandit; Delayed-UCB1 (mean and number of what was observed, log of all rounds) with one.
C. Vernade, O. Cappe, V. Perchet, Stochastic Bandit Models for Delayed Conversions, UAI 2017, arXiv:1706.09186
    Equation 5 (the estimate), proposition 6 (UCB) and lemma 7 (KL-UCB) as notes on the paper have them, and one
    implementation.
C. Vernade and others, Linear Bandits with Stochastic Delayed Feedback, ICML 2020, arXiv:1807.02089
    Theorem 1 and the index as notes on the paper have them, and the authors' code as others have published it; it
    squares the norms that the paper adds up.

python benchmarks/in_flight.py [--quick] [--policy klucb] [--seeds 20]
"""

from __future__ import annotations

import argparse
import math
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import banditmesh as bm
from banditmesh.live.member.choosing import Sight
from banditmesh.live.member.tickets import Flights
from banditmesh.live.statistics import ArmSpec, policy_arms
from banditmesh.policies.base import Estimates, Policy

HORIZON = 10_000
POLICIES = {"klucb": bm.KLUCB(), "ucb": bm.UCB(), "thompson": bm.ThompsonSampling()}
#: Choices a second, and the patience of all rules that have one, in seconds.
RATE = 10.0
PATIENCE = 10.0
NEVER = math.inf


class World(NamedTuple):
    """What arms pay with which probability, and after how many seconds, for the choice of a number."""

    name: str
    means: Sequence[float]
    delay: Callable[[int, int, random.Random], float]
    #: From which choice on an arm does not pay any more.
    stops: Mapping[int, int] = MappingProxyType({})
    #: Whether what pays nothing is not reported at all: a click that was not made.
    only_successes: bool = False


def _geometric(mean: float) -> Callable[[int, int, random.Random], float]:
    return lambda number, arm, rng: rng.expovariate(1 / mean)


def _slow_best(number: int, arm: int, rng: random.Random) -> float:
    return rng.expovariate(1 / (5.0 if arm == 0 else 0.1))


def _stopped(number: int, arm: int, rng: random.Random, at: int = HORIZON // 2) -> float:
    return NEVER if arm == 0 and number >= at else rng.expovariate(10.0)


WORLDS = (
    World("rewards at once", (0.9, 0.8, 0.5), lambda number, arm, rng: 0.0),
    World("2 s late on average", (0.9, 0.8, 0.5), _geometric(2.0)),
    World("the best 5 s late, others 0.1 s", (0.9, 0.8, 0.5), _slow_best),
    World("a new arm never answers", (0.9, 0.8, 0.0), lambda number, arm, rng: NEVER if arm == 2 else 0.1, {2: 0}),
    World("the best stops answering", (0.9, 0.8, 0.5), _stopped, {0: HORIZON // 2}),
    World("one reward in ten is lost", (0.9, 0.8, 0.5), lambda number, arm, rng: NEVER if rng.random() < 0.1 else 0.1),
    World("clicks, no click is no report", (0.05, 0.06, 0.03), _geometric(2.0), only_successes=True),
)


class Rule:
    """Nothing is made of them, as in Delayed-UCB1 of Joulani, Gyorgy and Szepesvari (2013, section 4).

    Means and counts are of what was observed, and the clock counts all choices.
    """

    name = "nothing (as Delayed-UCB1)"

    def __init__(self, policy: Policy, n_arms: int, rng: random.Random) -> None:
        self.policy, self.rng, self.n_arms = policy, rng, n_arms
        self.specs = [ArmSpec(str(arm), "bernoulli", reward_range=(0.0, 1.0)) for arm in range(n_arms)]
        _, sigmas, laws = policy_arms(self.specs)
        self.estimates = Estimates(list(sigmas), list(laws))
        self.n_chosen = [0] * n_arms
        self.open: dict[int, tuple[int, float]] = {}

    def choose(self, number: int, now: float) -> int:
        for arm in range(self.n_arms):
            if not self.n_chosen[arm]:
                return self._given(arm, number, now)
        return self._given(self.pick(number, now), number, now)

    def _given(self, arm: int, number: int, now: float) -> int:
        self.n_chosen[arm] += 1
        self.open[number] = arm, now
        self.gave(arm, number, now)
        return arm

    def pick(self, number: int, now: float) -> int:
        unknown = [arm for arm in range(self.n_arms) if not self.estimates.count[arm]]
        if unknown:
            return min(unknown, key=lambda arm: self.n_chosen[arm])
        return self.by_policy(number, self.estimates)

    def by_policy(self, number: int, estimates: Estimates) -> int:
        return self.policy.choose(number, estimates, lambda arm: self.rng.random())

    def gave(self, arm: int, number: int, now: float) -> None:
        pass

    def observe(self, arm: int, number: int, reward: float, now: float) -> None:
        del self.open[number]
        self.estimates.add(arm, 1, reward)


class Queued(Rule):
    """QPM-D of the same paper: a policy that knows no delays is given rewards of the arm that it wants from a queue.

    As long as there is none, that arm is chosen: at the beginning, too, until its first reward has come.
    """

    name = "queued (QPM-D)"

    def __init__(self, policy: Policy, n_arms: int, rng: random.Random) -> None:
        super().__init__(policy, n_arms, rng)
        self.queues: list[deque[float]] = [deque() for _ in range(n_arms)]
        self.clock = 0

    def choose(self, number: int, now: float) -> int:
        while True:
            unknown = [arm for arm in range(self.n_arms) if not self.estimates.count[arm]]
            arm = unknown[0] if unknown else self.by_policy(self.clock + 1, self.estimates)
            if not self.queues[arm]:
                return self._given(arm, number, now)
            self.clock += 1
            self.estimates.add(arm, 1, self.queues[arm].popleft())

    def observe(self, arm: int, number: int, reward: float, now: float) -> None:
        del self.open[number]
        self.queues[arm].append(reward)


class Censored(Rule):
    """OTFLinUCB of Vernade et al. (2020), with unit vectors for arms, so that they have nothing in common.

    Every choice counts at once, as nothing paid until its reward comes, and for good once a window is over. For what
    the choices within the window may still pay, the index is larger by the sum of 1 / sqrt(count) over the arms of
    these choices, divided by the square root of this arm's count (theorem 1). There, failures are never reported,
    and the sum is over the whole window; here it is over the choices without an answer. A policy without an index has
    the same added to its means.
    """

    name = "zero until it comes, and a bonus (OTFLinUCB)"

    def __init__(self, policy: Policy, n_arms: int, rng: random.Random) -> None:
        super().__init__(policy, n_arms, rng)
        self.n_old = [0] * n_arms

    def pick(self, number: int, now: float) -> int:
        for number_, (arm, given) in list(self.open.items()):
            if now - given > PATIENCE:
                del self.open[number_]
                self.n_old[arm] += 1
        view = self.estimates.part(range(self.n_arms))
        counts = [known + old for known, old in zip(view.count, self.n_old, strict=True)]
        for arm, _ in self.open.values():
            counts[arm] += 1
        if 0 in counts:
            return min((arm for arm in range(self.n_arms) if not counts[arm]), key=lambda arm: self.n_chosen[arm])
        young = sum(1.0 / math.sqrt(counts[arm]) for arm, _ in self.open.values())
        bonus = [young / math.sqrt(count) for count in counts]
        for arm, count in enumerate(counts):
            view.put(arm, count, view.total[arm])
        indices = [self.policy.index_at(number, view, arm) for arm in range(self.n_arms)]
        if None not in indices:
            return int(np.argmax(np.add(indices, bonus)))
        for arm, count in enumerate(counts):
            view.put(arm, count, min(view.total[arm] + bonus[arm] * count, count))
        return self.by_policy(number, view)

    def observe(self, arm: int, number: int, reward: float, now: float) -> None:
        if number in self.open:  # what comes after the window is ignored
            super().observe(arm, number, reward, now)


class Corrected(Rule):
    """After DelayedUCB and DelayedKLUCB of Vernade, Cappe and Perchet (2017, equation 5).

    A choice counts as much as rewards of its age have come by then, one that was answered, too: the sum of what came
    within a window is divided by the sum, over all choices, of the chance that a reward would have come by now, or
    within the window. There, the law of delays is known, and the same for all arms; here it is that of the last hundred
    rewards that came, whenever they did. And there, the index is wider: that of UCB by the square root of choices over
    this sum, that of KL-UCB by the divergence of Poisson laws in the place of coins', made for low rates. With the
    latter, 3 seeds gave 96 in the place of 19 where rewards come at once, and 35 in the place of 45 for clicks.
    """

    name = "by the law of delays (after Vernade 2017)"

    def __init__(self, policy: Policy, n_arms: int, rng: random.Random) -> None:
        super().__init__(policy, n_arms, rng)
        self.waits: deque[float] = deque(maxlen=100)
        self.young: deque[tuple[int, float]] = deque()
        self.n_old = [0] * n_arms
        self.paid = [0.0] * n_arms

    def gave(self, arm: int, number: int, now: float) -> None:
        self.young.append((arm, now))

    def pick(self, number: int, now: float) -> int:
        while self.young and now - self.young[0][1] > PATIENCE:
            self.n_old[self.young.popleft()[0]] += 1
        waits = sorted(self.waits)
        shares = [n * self.share(PATIENCE, waits) for n in self.n_old]
        for arm, given in self.young:
            shares[arm] += self.share(now - given, waits)
        if 0.0 in shares:
            return min((arm for arm in range(self.n_arms) if not shares[arm]), key=lambda arm: self.n_chosen[arm])
        view = self.estimates.part(range(self.n_arms))
        for arm, share in enumerate(shares):
            # Estimated laws may divide by too little: a coin pays at most one.
            view.put(arm, share, min(self.paid[arm], share))
        return self.by_policy(number, view)

    @staticmethod
    def share(age: float, waits: Sequence[float]) -> float:
        return bisect_right(waits, age) / len(waits) if waits else 0.0

    def observe(self, arm: int, number: int, reward: float, now: float) -> None:
        wait = now - self.open[number][1]
        self.waits.append(wait)
        self.paid[arm] += reward * (wait <= PATIENCE)
        super().observe(arm, number, reward, now)


class InFlight(Rule):
    """An open choice counts as one more pull: that paid the mean while it is young, nothing after the patience."""

    name = "mean, then zero (all history)"
    runs = False

    def __init__(self, policy: Policy, n_arms: int, rng: random.Random) -> None:
        super().__init__(policy, n_arms, rng)
        self.flights = Flights(86400.0, 100_000, PATIENCE)
        self.sight = Sight(self.specs)

    def gave(self, arm: int, number: int, now: float) -> None:
        self.flights.give(str(arm), number, now)

    def pick(self, number: int, now: float) -> int:
        for arm, one in self.flights.changes(number, now):
            self.sight.wait(int(arm), one)
        unknown = [arm for arm in range(self.n_arms) if not self.estimates.count[arm] and arm not in self.sight.waiting]
        if unknown:
            return min(unknown, key=lambda arm: self.n_chosen[arm])
        if not self.runs:
            return self.by_policy(number, self.sight.look(self.estimates))
        return self.sight.preferred(lambda view: self.by_policy(number, view), self.estimates)

    def observe(self, arm: int, number: int, reward: float, now: float) -> None:
        super().observe(arm, number, reward, now)
        self.flights.settle(str(arm), number, now, is_reward=True)


class Runs(InFlight):
    """The same and, of an arm that has not answered of late, no more than that run of silence."""

    name = "the same, and runs of silence (shipped)"
    runs = True


RULES: tuple[type[Rule], ...] = (Rule, Queued, Censored, Corrected, InFlight, Runs)


def regret(world: World, kind: type[Rule], policy: Policy, seed: int, horizon: int) -> float:
    """The regret of one run."""
    rng, pays = random.Random(f"{world.name} {seed}"), random.Random(f"{world.name} pays {seed}")
    rule = kind(policy, len(world.means), rng)
    coming: list[list[tuple[int, int, float]]] = [[] for _ in range(horizon + 1)]
    lost = 0.0
    for number in range(1, horizon + 1):
        now = number / RATE
        for arm, of, reward in coming[number]:
            rule.observe(arm, of, reward, now)
        u, waits = pays.random(), [world.delay(number, arm, pays) for arm in range(len(world.means))]
        means = [0.0 if number >= world.stops.get(arm, horizon + 1) else mean for arm, mean in enumerate(world.means)]
        arm = rule.choose(number, now)
        lost += max(means) - means[arm]
        reward = float(u < world.means[arm])
        if math.isfinite(waits[arm]) and (reward or not world.only_successes):
            due = number + 1 + int(waits[arm] * RATE)
            if due <= horizon:
                coming[due].append((arm, number, reward))
    return lost


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="for tests")
    parser.add_argument("--policy", default="klucb", choices=POLICIES)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args(arguments)
    policy, horizon, n_seeds = POLICIES[given.policy], HORIZON, given.seeds
    if given.quick:
        horizon, n_seeds = 60, 2
    print(f"| {given.policy}, {horizon} choices | {' | '.join(kind.name for kind in RULES)} |")
    print("|---|" + "---:|" * len(RULES))
    for world in WORLDS:
        cells = []
        for kind in RULES:
            found = np.array([regret(world, kind, policy, seed, horizon) for seed in range(n_seeds)])
            cells.append(f"{found.mean():,.0f} ± {found.std(ddof=1) / math.sqrt(n_seeds):,.0f}")
        print(f"| {world.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
