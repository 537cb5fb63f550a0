"""Leaders for unequal arm sets: one agent explores each arm, and all agents trust what is announced.

The protocol of docs/theory/leaders-and-messages.md, with a proven constant. Time is cut into phases that end in rounds
t, t^(1 + growth), ...; a phase into stages. When a stage begins, agents announce their champions, the arms that they
pull, with their means. An unannounced arm is explored by one agent only: the holder whose best announced mean
is the least, in every second round, until its interval lies below that mean. No other statistic ever travels.

Arms are Gaussian here: what an agent earns while it only pulls its champion is drawn as one sum.
"""

import argparse
import math
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

import banditmesh as bm


@dataclass
class Leaders:
    """One run of the protocol on a problem whose network is connected."""

    problem: bm.Problem
    alpha: float = 1.0
    growth: float = 1.0
    first: int = 20  # rounds before the first phase, at least as many as an agent has arms
    seed: int = 0
    announcements: int = 0
    regret: list = field(default_factory=list)  # (round, group regret), at the end of every phase

    def run(self, horizon):
        """Play all phases that end by `horizon`."""
        problem, n = self.problem, self.problem.n_agents
        self.rng = np.random.default_rng(self.seed)
        self.means, self.sigmas = problem.means, problem.sigmas
        self.holds = [list(problem.arm_set(v)) for v in range(n)]
        self.best = [max(self.means[arms]) for arms in self.holds]
        self.count, self.sum, self.paid = [dict.fromkeys(s, 0) for s in self.holds], [{} for _ in range(n)], 0.0
        self.flood = nx.diameter(nx.Graph(list(problem.network.pairs())))
        for v, arms in enumerate(self.holds):
            for a in arms:
                self.pull(v, a, 1)
        self.champions = [max(arms, key=lambda a, v=v: self.mean(v, a)) for v, arms in enumerate(self.holds)]
        for v, arms in enumerate(self.holds):
            self.pull(v, self.champions[v], self.first - len(arms))
        t = self.first
        while (end := math.ceil(t ** (1 + self.growth))) <= horizon:
            self.level = self.alpha * math.log(end)
            lengths = [t] * n + [end - t - n * t] if end > 2 * (n + 1) * t else [end - t]
            self.announced = {}
            for length in lengths:
                self.stage(length)
            t = end
            self.regret.append((t, self.paid))
        return self

    def mean(self, v, a):
        return self.sum[v][a] / self.count[v][a]

    def radius(self, v, a):
        return math.sqrt(self.level / self.count[v][a])

    def pull(self, v, a, times):
        reward = times * self.means[a] + self.sigmas[a] * math.sqrt(times) * self.rng.standard_normal()
        self.sum[v][a] = self.sum[v].get(a, 0.0) + reward
        self.count[v][a] += times
        self.paid += times * (self.best[v] - self.means[a])

    def stage(self, length):
        """Announce, choose champions and leaders, pull, and see who found a better champion."""
        agents = range(self.problem.n_agents)
        for v in agents:
            if self.announced.get(v, (None,))[0] != self.champions[v]:
                self.announced[v] = self.champions[v], self.mean(v, self.champions[v])
                self.announcements += 1
        values = {}
        for v in agents:
            values.setdefault(*self.announced[v])  # of an arm that several announce, the lowest number's mean
        known = [max((values[a], -a) for a in arms if a in values) for arms in self.holds]
        leads = [[] for _ in agents]
        for a in sorted(set().union(*self.holds) - set(values)):
            leads[min((v for v in agents if a in self.holds[v]), key=lambda v: known[v][0])].append(a)
        for v in agents:
            value, champion = known[v][0], -known[v][1]
            self.pull(v, self.champions[v], self.flood)
            left = length - self.flood
            open_, used = self.explore(v, leads[v], value, left // 2)
            self.pull(v, champion, left - used)
            above = any(self.mean(v, a) - self.radius(v, a) >= value for a in open_)
            self.champions[v] = max(open_, key=lambda a, v=v: self.mean(v, a)) if above else champion

    def explore(self, v, candidates, value, most):
        """Pull the least pulled candidate that is open; what is closed stays so until the stage is over."""
        open_, used = list(candidates), 0
        while True:
            lower = {a: self.mean(v, a) - self.radius(v, a) for a in candidates}
            open_ = [
                a
                for a in open_
                if self.mean(v, a) + self.radius(v, a) > max([value] + [lower[b] for b in candidates if b != a])
            ]
            if not open_ or used == most:
                return open_, used
            self.pull(v, min(open_, key=lambda a: self.count[v][a]), 1)
            used += 1


def follow(problem, centre, alpha, horizon, seed):
    """Regret of a star whose leaves pull what the centre last pulled; the centre runs UCB on all that it hears."""
    rng = np.random.default_rng(seed)
    leaves, means = problem.n_agents - 1, problem.means
    sigma, best = float(problem.sigmas[0]), max(means)
    arms = list(problem.arm_set(centre))
    count, total, paid, last, told = [0] * len(arms), [0.0] * len(arms), 0.0, 0, None
    for t in range(1, horizon + 1):
        if told is not None:  # what the leaves pulled a round ago
            count[told] += leaves
            total[told] += leaves * means[arms[told]] + sigma * math.sqrt(leaves) * rng.standard_normal()
        root = math.sqrt(alpha * math.log(t))
        if t <= len(arms):
            choice = t - 1
        else:
            choice = max(range(len(arms)), key=lambda i: total[i] / count[i] + root / math.sqrt(count[i]))
        count[choice] += 1
        total[choice] += means[arms[choice]] + sigma * rng.standard_normal()
        paid += best - means[arms[choice]] + leaves * (best - means[arms[last]])
        told, last = last, choice
    return paid


STAR = bm.Problem(nx.star_graph(5), [[0, 1]] * 6, [bm.arms.Gaussian(mean, 0.5) for mean in (1.0, 0.0)])
SETS = [[0, 3, 4], [1, 3, 5], [2, 4, 5], [1, 2, 4], [0, 1, 3], [2, 3, 5], [3, 4, 5], [0, 4, 5]]
PATH = bm.Problem(nx.path_graph(8), SETS, [bm.arms.Gaussian(mean, 0.5) for mean in (2.0, 1.6, 1.2, 0.8, 0.4, 0.0)])
PROTOCOLS = ("irs", "fwa(7)", "flooding(7)", "flooding(7)+growth(0.25)", "tree+growth(0.05)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=160_000)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--part", choices=("table", "phases"), default=None)
    options = parser.parse_args()
    for name, problem in (("star of 5 leaves, equal arms", STAR), ("path of 8, unequal arms", PATH)):
        if options.part != "phases":
            table(name, problem, options.horizon, options.replicates)
        if options.part != "table":
            phases(name, problem, 10 * options.replicates)


def phases(name, problem, replicates):
    """Print what leaders pay in each phase. Long ones cost little here: exploration is short."""
    runs = [Leaders(problem, seed=seed).run(10**21) for seed in range(replicates)]
    optimal = bm.bounds(problem, "centralised", alpha=1.0).constant_sharp
    ends = [t for t, _ in runs[0].regret]
    paid = np.array([[paid for _, paid in run.regret] for run in runs])
    print(
        f"{name}: leaders, {replicates} replicates\n\n| phase ends at | regret in it | by the theorem |\n|---|---|---|"
    )
    for phase, end in enumerate(ends):
        more = paid[:, phase] - paid[:, phase - 1] if phase else paid[:, 0]
        proven = f"{optimal * math.log(end / ends[phase - 1]):.1f}" if phase else ""
        print(f"| {end:.3g} | {more.mean():.1f} ± {more.std(ddof=1) / math.sqrt(replicates):.1f} | {proven} |")
    print(flush=True)


def table(name, problem, horizon, replicates):
    """Print regret, proven constants and transmissions, alpha = 1."""
    log = math.log(horizon)
    print(f"{name}, T = {horizon:,}\n")
    print("| protocol | regret | regret / log T | proven constant | transmissions |\n|---|---|---|---|---|")
    for protocol in PROTOCOLS:
        settings = {"policy": bm.UCB(1.0), "horizon": horizon, "record_every": horizon, "seed": 0, "progress": False}
        result = bm.simulate(problem, protocol, replicates=replicates, threads=1, **settings)
        proven = bm.bounds(problem, protocol, alpha=1.0)
        show(protocol, result.regret[:, -1], log, f"{proven.constant_sharp:.2f}", result.transmissions[:, -1].mean())
    optimal = f"{bm.bounds(problem, 'centralised', alpha=1.0).constant_sharp:.2f}"  # of both rows that follow
    if len({frozenset(problem.arm_set(v)) for v in range(problem.n_agents)}) == 1:
        paid = [follow(problem, 0, 1.0, horizon, seed) for seed in range(replicates)]
        sent = 2 * (problem.n_agents - 1) * horizon
        show("leaves copy the centre", paid, log, optimal, sent)
    runs = [Leaders(problem, seed=seed).run(horizon) for seed in range(replicates)]
    sent = np.mean([run.announcements for run in runs]) * (problem.n_agents - 1)
    show("leaders", [run.regret[-1][1] for run in runs], log, optimal, sent)
    print()


def show(name, paid, log, proven, sent):
    error = np.std(paid, ddof=1) / math.sqrt(len(paid))
    print(
        f"| {name} | {np.mean(paid):.1f} ± {error:.1f} | {np.mean(paid) / log:.2f} | {proven} | {sent:,.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
