"""The bias of growth emission, and an emission without it: the tables of docs/theory/bias.md.

First, what independent UCB agents have told of a bad arm after T rounds: its pooled z-score. If what is told was chosen
without regard to its rewards, their centred sum has mean 0, and the z-score nearly so (dividing by the random count
leaves about -0.2 / sqrt(agents)), with spread 1. Then the regret of agents who all hear each other, when they send as
the count grows, or in rounds that were fixed beforehand.

python benchmarks/bias.py [--replicates 20]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ALPHA, HORIZON, FACTOR = 3.0, 1000, 0.25

Sends = Callable[[int, NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]


def on_growth(t: int, count: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whenever the count has grown by the factor, as `Growth` does."""
    return (count > sent) & (count - sent >= FACTOR * sent)


def on_schedule(t: int, count: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """In rounds that grow by the factor, whatever was pulled."""
    due = math.floor(math.log(t, 1 + FACTOR)) > math.floor(math.log(max(t - 1, 1), 1 + FACTOR)) or t <= 4
    return np.full(count.shape, due)


def run(
    means: NDArray[np.float64], n_agents: int, replicates: int, sends: Sends, shared: bool, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64], float, float]:
    """Sums and counts told of each arm, arrays (replicates, agents, arms), group regret and messages per replicate."""
    rng = np.random.default_rng(seed)
    shape = (replicates, n_agents, len(means))
    count, sent = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    total, told = np.zeros(shape), np.zeros(shape)
    rows = np.indices(shape[:2])
    messages = 0
    for t in range(1, HORIZON + 1):
        if t <= len(means):
            choice = np.full(shape[:2], t - 1)
        else:
            heard = sent.sum(axis=1, keepdims=True) - sent + count if shared else count
            known = told.sum(axis=1, keepdims=True) - told + total if shared else total
            choice = np.argmax(known / heard + np.sqrt(ALPHA * math.log(t) / heard), axis=2)
        count[rows[0], rows[1], choice] += 1
        total[rows[0], rows[1], choice] += means[choice] + rng.standard_normal(shape[:2])
        now = sends(t, count, sent) & (count > sent)
        messages += int(now.sum())
        sent, told = np.where(now, count, sent), np.where(now, total, told)
    regret = float(((means.max() - means) * count).sum() / replicates)
    return told, sent, regret, messages / replicates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    replicates = parser.parse_args().replicates
    means = np.array([0.3, 0.0])
    print("| emission | agents | mean z | spread |\n|---|---|---|---|")
    for name, sends in (("growth", on_growth), ("schedule", on_schedule)):
        for n_agents in (10, 100, 1000):
            told, sent, _, _ = run(means, n_agents, max(replicates, 2000 // n_agents), sends, shared=False)
            score = told[..., 1].sum(axis=1) / np.sqrt(sent[..., 1].sum(axis=1))
            print(f"| {name} | {n_agents} | {score.mean():.2f} | {score.std(ddof=1):.2f} |", flush=True)
    print("\n| agents, arms | growth: regret | messages | schedule: regret | messages |\n|---|---|---|---|---|")
    for n_agents, n_arms in ((10, 2), (100, 2), (30, 10), (100, 20)):
        spaced = np.linspace(0.0, 1.0, n_arms) * (0.3 if n_arms == 2 else 1.0)
        cells = []
        for sends in (on_growth, on_schedule):
            _, _, regret, messages = run(spaced, n_agents, replicates, sends, shared=True)
            cells.append(f"{regret:,.0f} | {messages:,.0f}")
        print(f"| {n_agents}, {n_arms} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
