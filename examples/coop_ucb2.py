"""Running consensus, after coop-UCB2 (Landgren, Srivastava and Leonard, CDC 2016 and Automatica 2021), with arm masks.

Agents send no observations but *averages*. Each holds, of every arm, an estimate of how often and with what sum the
average agent has pulled it. In every round an agent adds its own pull, tells its neighbours all its estimates, and
mixes what it hears: with estimates as the rows of `n` and `s`,

    n <- P (n + pulls),    s <- P (s + rewards),    P = I - L / (1 + the largest degree),

L being the network's Laplacian. It pulls the arm with the highest

    s/n + sigma * sqrt(2 gamma / G * (n + f) / (N n) * log(t - 1) / n),   f = sqrt(log(t - 1)),   G = 1 - eta^2 / 16,

among its own: the mask. Everybody passes on everything, so that news of an arm also crosses agents that do not have it.

The rows meet the same rewards. A transmission is a whole table here, of 50 arms on the paper's networks, so the last
column counts bytes: 24 an observation, 32 a statistic, and 16 an arm of a table beside its header of 16.
"""

import argparse
import math

import numpy as np

import banditmesh as bm


def mixing_matrix(network):
    """What each agent makes of its neighbours' estimates: symmetric, with rows and columns that sum to 1."""
    adjacency = np.zeros((network.n_agents, network.n_agents))
    adjacency[tuple(network.directed().T)] = 1.0
    laplacian = np.diag(network.degrees) - adjacency
    return np.eye(network.n_agents) - laplacian / (1.0 + network.degrees.max())


def coop_ucb2(problem, horizon, seed, replicate, gamma=1.5, eta=0.1):
    """Group regret, and the agents' estimates of the average agent's pulls.

    The package plays the rounds; what agents pull, and what they tell each other, is decided here.
    """
    simulation = bm.Simulation(problem, bm.NoCooperation(), horizon=horizon, seed=seed, replicate=replicate)
    mixing, width = mixing_matrix(problem.network), 2.0 * gamma / (1.0 - eta**2 / 16.0)
    arm_sets = [problem.arm_set(v) for v in range(problem.n_agents)]
    mask = ~np.isnan(problem.gaps)
    counts, sums = np.zeros(mask.shape), np.zeros(mask.shape)
    for t in range(1, horizon + 1):
        best = indices(counts, sums, mask, problem.sigmas, t, width).argmax(axis=1)
        chosen = [arms[t - 1] if t <= len(arms) else best[v] for v, arms in enumerate(arm_sets)]
        actions = {problem.agents[v]: problem.arms[arm] for v, arm in enumerate(chosen)}
        rewards = simulation.step(actions).rewards
        for v, arm in enumerate(chosen):
            counts[v, arm] += 1.0
            sums[v, arm] += rewards[problem.agents[v]]
        counts, sums = mixing @ counts, mixing @ sums
    return simulation.run().regret[0, -1], counts


def indices(counts, sums, mask, sigmas, t, width):
    """The index of every agent's arms: -inf of those that it has not, inf of those that it knows nothing of."""
    log_t = math.log(max(t - 1, 1))
    known = np.where(counts > 0.0, counts, 1.0)
    shares = (known + math.sqrt(log_t)) / (len(counts) * known)
    values = sums / known + sigmas * np.sqrt(width * shares * log_t / known)
    return np.where(mask, np.where(counts > 0.0, values, np.inf), -np.inf)


def table(problem, horizon, seed=0):
    """Print regret and transmissions of coop-UCB2 beside protocols with UCB."""
    print(f"{'':<28}{'regret':>10}{'transmissions':>16}{'megabytes':>12}")
    rows = {
        "fwa(4)": bm.FwA(4),
        "flooding(4)": bm.Flooding(4),
        "flooding(8)+growth(0.25)": bm.Flooding(8, emission=bm.Growth(0.25)),
    }
    for name, protocol in rows.items():
        result = bm.simulate(problem, protocol, horizon=horizon, seed=seed, progress=False)
        megabytes = result.traffic["bytes"][0] / 1e6
        print(f"{name:<28}{result.regret[0, -1]:>10.0f}{result.transmissions[0, -1]:>16d}{megabytes:>12.1f}")
    regret, _ = coop_ucb2(problem, horizon, seed, replicate=0)
    sent = 2 * problem.network.n_links * horizon
    megabytes = sent * (16 + 16 * problem.n_arms) / 1e6
    print(f"{'coop-ucb2':<28}{regret:>10.0f}{sent:>16d}{megabytes:>12.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="coop-UCB2 with arm masks, beside protocols with UCB.")
    parser.add_argument("--full", action="store_true", help="the paper's horizon of 1000 rounds instead of 200")
    horizon = 1000 if parser.parse_args().full else 200
    for network in ("er", "ba", "sbm"):
        print(f"the paper's {network} network, {horizon} rounds")
        table(bm.Problem.paper(network, seed=0), horizon)
