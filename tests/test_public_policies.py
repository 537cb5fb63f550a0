"""Policies against independent public implementations, whose figures are in `public_policies.json` with their origin.

Alone, one agent and one arm set. Policies without draws meet the very rewards that the public ones met, and the same
clock (the published rules', which reads the pulls made so far), so that every pull must be the same. Policies that draw
are compared by their means.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import banditmesh as bm
from banditmesh.arms import BERNOULLI
from banditmesh.policies import Estimates

PUBLIC = json.loads(Path(__file__).with_name("public_policies.json").read_text(encoding="utf-8"))
INSTANCES = PUBLIC["instances"]
WITHOUT_DRAWS = {"klucb": bm.KLUCB(), "ucb-v": bm.UCBV(zeta=1.0), "moss": bm.MOSS(), "ucb": bm.UCB(alpha=2.0)}


def one_agent(instance):
    means = INSTANCES[instance]
    return bm.Problem(bm.networks.path(1), [range(len(means))], [bm.arms.Bernoulli(mean) for mean in means])


def tape(instance, replicate, horizon):
    """The rewards that the public policies met; those of a shorter horizon are the beginning of a longer one's."""
    means = np.array(INSTANCES[instance])
    drawn = np.random.default_rng([len(means), replicate]).random((horizon, len(means)))
    return (drawn < means).astype(float)[:, None, :]


def figures(policy, instance, horizon):
    """Mean, standard error and number of replicates of the public implementation."""
    [row] = [
        row
        for row in PUBLIC["regret"]
        if (row["policy"], row["instance"], row["horizon"]) == (policy, instance, horizon)
    ]
    return row["mean"], row["standard_error"], row["replicates"]


def regrets(policy, instance, horizon, replicates, **settings):
    """The last regrets of that many replicates."""
    # Asked for by name, because "auto" warns that the reference takes long.
    engine = "compiled" if type(policy).choose is bm.Policy.choose else "reference"
    settings |= {"policy": policy, "horizon": horizon, "replicates": replicates, "record_every": horizon, "seed": 0}
    return bm.simulate(one_agent(instance), bm.NoCooperation(), engine=engine, **settings).regret[:, -1]


def check_pull_for_pull(name, instance, horizon):
    mean, _, replicates = figures(name, instance, horizon)
    ours = [
        regrets(WITHOUT_DRAWS[name], instance, horizon, 1, rules="published", rewards=tape(instance, one, horizon))[0]
        for one in range(replicates)
    ]
    assert np.mean(ours) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", WITHOUT_DRAWS)
def test_policies_without_draws_pull_what_public_ones_pull(name, instance):
    check_pull_for_pull(name, instance, 10**3)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [10**4, 10**5])
@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", WITHOUT_DRAWS)
def test_policies_without_draws_pull_what_public_ones_pull_for_long(name, instance, horizon):
    check_pull_for_pull(name, instance, horizon)


def sample(name, instance, horizon, replicates):
    """Regrets of a policy that draws."""
    if name == "thompson":
        return regrets(bm.ThompsonSampling(), instance, horizon, replicates)
    return np.array([play(bm.EpsilonGreedy(0.1), instance, replicate, horizon) for replicate in range(replicates)])


def play(policy, instance, replicate, horizon):
    """The regret of a policy that is asked directly: quicker than the reference engine, and with the public rewards."""
    means = np.array(INSTANCES[instance])
    n_arms = len(means)
    uniforms = iter(np.random.default_rng([7, replicate]).random(horizon).tolist())
    estimates, pulls = Estimates([0.5] * n_arms, [BERNOULLI] * n_arms), np.zeros(n_arms)
    for t, rewards in enumerate(tape(instance, replicate, horizon)[:, 0].tolist(), start=1):
        position = t - 1 if t <= n_arms else policy.choose(t, estimates, lambda _: next(uniforms))
        estimates.add(position, 1, rewards[position])
        pulls[position] += 1
    return pulls @ (means.max() - means)


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", ["thompson", "epsilon-greedy"])
def test_policies_that_draw_have_the_mean_regret_of_public_ones(name, instance):
    mean, error, _ = figures(name, instance, 10**3)
    ours = sample(name, instance, 10**3, 250)
    assert abs(ours.mean() - mean) < 3.0 * np.hypot(error, ours.std() / len(ours) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [10**3, 10**4, 10**5])
@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", ["thompson", "epsilon-greedy"])
def test_mean_regret_is_within_five_per_cent_of_that_of_public_ones(name, instance, horizon):
    mean, _, replicates = figures(name, instance, horizon)
    # Compiled replicates cost little: with many, the public implementation's error is nearly all that is left.
    ours = sample(name, instance, horizon, replicates * (3 if name == "thompson" else 1))
    assert ours.mean() == pytest.approx(mean, rel=0.05)


def test_thompson_sampling_and_kl_ucb_beat_ucb():
    policies = (bm.ThompsonSampling(), bm.KLUCB(), bm.UCB(alpha=0.5), bm.UCB(alpha=2.0))
    means = [regrets(policy, "ten", 10**4, 40).mean() for policy in policies]
    assert means == sorted(means)


def test_moss_and_ucb_v_lie_between_kl_ucb_and_ucb():
    for policy in (bm.MOSS(), bm.UCBV(zeta=1.0)):
        kl, between, ucb = (regrets(one, "ten", 5000, 5).mean() for one in (bm.KLUCB(), policy, bm.UCB(alpha=2.0)))
        assert kl < between < ucb
