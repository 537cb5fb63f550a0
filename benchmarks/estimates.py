"""What silence, delays, priors and exploration do to what a live node thinks of its arms, and to what it chooses.

The tables of docs/live/click-log.md, as Markdown. One node (`Member`, without disk and links) with four headlines, of
which one is clicked by 10 per cent of its readers and the others by 5; KL-UCB, a choice a second, 3,000 choices. Each
row is a mean over the seeds, with the standard error of that mean; all rows meet the same readers.

python benchmarks/estimates.py [--quick] [--seeds 20]
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import banditmesh as bm
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.member import Member, Observation, Ticket
from banditmesh.live.statistics import ArmSpec, Prior

RATES = MappingProxyType({"a": 0.10, "b": 0.05, "c": 0.05, "d": 0.05})
CHOICES = 3_000
LIFETIME = 300.0


class Case(NamedTuple):
    """What is done, by name: settings of the bandit, priors by arm, the mean delay, and whether zeros are reported."""

    name: str
    settings: Mapping[str, Any] = MappingProxyType({})
    priors: Mapping[str, tuple[float, float]] = MappingProxyType({})
    delay: float = 10.0
    tells_zeros: bool = True


TRUE_PRIORS, FALSE_PRIORS = dict(RATES), {"a": 0.05, "b": 0.10, "c": 0.05, "d": 0.05}
TABLES = {
    "Silence": (
        Case("a 0 is reported where nobody clicked"),
        Case("silence counts as 0 (`lapse_reward = 0.0`)", {"lapse_reward": 0.0}, tells_zeros=False),
        Case("only clicks are reported", tells_zeros=False),
    ),
    "Delays": tuple(Case(f"rewards {delay:g} s late on average", delay=delay) for delay in (0.0, 10.0, 60.0, 240.0)),
    "Priors": (
        Case("none"),
        *(Case(f"right, worth {n}", priors={arm: (n, mean) for arm, mean in TRUE_PRIORS.items()}) for n in (20, 200)),
        *(
            Case(f"a and b mixed up, worth {n}", priors={arm: (n, mean) for arm, mean in FALSE_PRIORS.items()})
            for n in (20, 200, 2000)
        ),
    ),
    "Exploration": tuple(Case(f"explore = {share:g}", {"explore": share}) for share in (0.0, 0.05, 0.2)),
}


class Outcome(NamedTuple):
    """Of one run: how many clicks were missed, what the node thinks of a and b, and what its log says of b and d."""

    regret: float
    mean_a: float
    mean_b: float
    weighted_b: float


def live(case: Case, seed: int, n_choices: int) -> Outcome:
    """One run."""
    pays = random.Random(seed)
    arms = [
        ArmSpec(
            name, "bernoulli", reward_range=(0.0, 1.0), prior=Prior(*case.priors[name]) if name in case.priors else None
        )
        for name in RATES
    ]
    bandit = BanditSpec(name="default", arms=arms, policy=bm.KLUCB(), **case.settings)
    member = Member("shop", "n", [bandit], bm.Flooding(2), ticket_lifetime=LIFETIME, rng=random.Random(seed))
    member.committed(member.begin(1, 0.0))
    coming: list[tuple[float, int, Ticket, float]] = []
    regret, weighted = 0.0, 0.0
    for second in range(n_choices + int(LIFETIME) + 1):
        now = float(second)
        due = []
        while coming and coming[0][0] <= now:
            _, _, ticket, reward = heapq.heappop(coming)
            due.append(Observation(reward, ticket))
        due += member.lapsing(now)
        if due:
            member.committed(member.plan(due, now)[0])
        if second >= n_choices:
            continue
        u, wait = pays.random(), pays.expovariate(1.0)
        choice = member.choose(now)
        clicked = float(u < RATES[choice.arm])
        regret += max(RATES.values()) - RATES[choice.arm]
        if choice.arm == "b" and choice.probability:
            weighted += clicked / choice.probability
        if (clicked or case.tells_zeros) and (came := now + wait * case.delay) < now + LIFETIME:
            heapq.heappush(coming, (came, second, choice.ticket, clicked))
    means = {arm.name: arm.mean or 0.0 for arm in member.snapshot().arms}
    return Outcome(regret, means["a"], means["b"], weighted / n_choices)


def cell(values: Sequence[float], digits: int) -> str:
    """Mean and standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="for tests")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args(arguments)
    n_choices, n_seeds = (60, 2) if given.quick else (CHOICES, given.seeds)
    for title, cases in TABLES.items():
        more = ["from the log: b"] * (title == "Exploration")
        heads = [title, "clicks missed", "thinks a has (0.1)", "thinks b has (0.05)", *more]
        print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
        for case in cases:
            found = [live(case, seed, n_choices) for seed in range(n_seeds)]
            cells = [
                cell([one.regret for one in found], 0),
                cell([one.mean_a for one in found], 3),
                cell([one.mean_b for one in found], 3),
            ]
            cells += [cell([one.weighted_b for one in found], 3)] * bool(more)
            print(f"| {case.name} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()
