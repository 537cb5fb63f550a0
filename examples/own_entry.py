"""Your own algorithm in fifty lines, entered into the suite: is it better than the existing rows?

Each agent plays UCB. Whenever it has pulled its favourite arm half as often again as when it last reported it, it sends
its neighbours the count and the sum. They use the latest from each sender; nothing is relayed, and no other arm sent.

On the command line, in this folder: `banditmesh suite --entry 'own_entry:Favourites(alpha=width)' --out mine`, where
width is that of the confidence bounds of the other rows.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import banditmesh as bm
from banditmesh.algorithms import Actor, Algorithm


@dataclass(frozen=True)
class Favourites(Algorithm):
    """Agents tell their neighbours of their favourite arm alone, when its count has grown."""

    growth: float = 0.5
    alpha: float = 3.0
    name: ClassVar[str] = "favourites"

    def seat(self, place):
        return Fan(self, place)


class Fan(Actor):
    kinds = ("favourite",)
    kept = ("told", "heard")

    def __init__(self, algorithm, place):
        self._algorithm = algorithm
        super().__init__(place)

    def start(self):
        self.told = [0.0] * len(self.arms.names)
        self.heard = [{} for _ in self.arms.names]

    def known(self, position):
        """Count and sum of an arm: the agent's own, and the latest of each neighbour."""
        own = self.estimates.count[position]
        told = [(own, own * self.estimates.mean[position]), *self.heard[position].values()]
        return sum(n for n, _ in told), sum(total for _, total in told)

    def pick(self, clock, positions):
        def index(position):
            n, total = self.known(position)
            return total / n + math.sqrt(self._algorithm.alpha * math.log(clock) / n) if n else math.inf

        return max(positions, key=index)

    def send(self, neighbours):
        count, mean = self.estimates.count, self.estimates.mean
        best = max(range(len(count)), key=lambda position: count[position])
        if count[best] <= self.told[best] * (1 + self._algorithm.growth):
            return []
        self.told[best] = count[best]
        return self.notes(neighbours, "favourite", self.arms.names[best], (count[best], count[best] * mean[best]))

    def take(self, note, sender):
        position = self.position_of(note.arm)
        if position is None or self.heard[position].get(sender, (0, 0))[0] >= note.values[0]:
            return False
        self.heard[position][sender] = note.values
        return True


def main():
    found = bm.suite.run(
        problems=["communities", "asynchronous"],
        rows=["none", "irs", "irs+growth(0.25)"],
        entries=Favourites(),
        horizon=40,
        replicates=3,
        engine="reference",  # for so few rounds it is quicker than compiling
        workers=1,
    )
    for problem, sentence in found.verdicts["favourites"].items():
        print(f"{problem}: {sentence}")


if __name__ == "__main__":
    main()
