"""Tests for a change of the mean: each against its definition worked out anew for every reward, and its own bounds."""

import json
import math

import numpy as np
import pytest

from banditmesh.algorithms.detectors import (
    CUSUMTest,
    GLRTest,
    WindowTest,
    bernoulli_ratio,
    gaussian_ratio,
    proved_threshold,
    usual_threshold,
)


def divergence(p, q):
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def brute_ratio(rewards, sigma=None):
    """The largest over all splits, by the definition with divergences."""

    def distance(a, b):
        return divergence(a, b) if sigma is None else (a - b) ** 2 / (2 * sigma**2)

    n, mean = len(rewards), np.mean(rewards)
    splits = range(1, n)
    return max(
        s * distance(np.mean(rewards[:s]), mean) + (n - s) * distance(np.mean(rewards[s:]), mean) for s in splits
    )


def brute_glr(rewards, delta, sigma=None):
    return len(rewards) > 1 and brute_ratio(rewards, sigma) >= math.log(3 * len(rewards) ** 1.5 / delta)


def brute_cusum(rewards, first, drift, threshold):
    mean = sum(rewards[:first]) / first
    up = down = 0.0
    for reward in rewards[first:]:
        up, down = max(0.0, up + reward - mean - drift), max(0.0, down + mean - reward - drift)
    return len(rewards) > first and max(up, down) >= threshold


def brute_window(rewards, width, threshold):
    latest = rewards[-width:]
    return len(latest) == width and abs(sum(latest[width // 2 :]) - sum(latest[: width // 2])) > threshold


def coins(seed, *parts):
    rng = np.random.default_rng(seed)
    return np.concatenate([(rng.random(n) < p).astype(float) for n, p in parts]).tolist()


def first_alarm(detector, rewards):
    return next((n for n, reward in enumerate(rewards, 1) if detector.add(reward)), None)


def brute_alarm(test, rewards, *given):
    return next((n for n in range(1, len(rewards) + 1) if test(rewards[:n], *given)), None)


def test_ratio_of_a_hand_made_sequence():
    # Six coins, three of each: the split in the middle has means 0 and 1, so 6 log 2, and it is the largest.
    assert bernoulli_ratio(np.cumsum([0.0, 0, 0, 1, 1, 1])) == pytest.approx(6 * math.log(2))
    # One split of two equal coins: nothing speaks for a change.
    assert bernoulli_ratio(np.cumsum([1.0, 1.0])) == 0.0
    # Means 0 and 4 of two rewards each, sigma 2: 2 * 2 / 4 * 16 / 8.
    assert gaussian_ratio(np.cumsum([0.0, 0, 4, 4]), 2.0) == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(4))
def test_ratios_equal_the_definition(seed):
    rng = np.random.default_rng(seed)
    rewards = coins(seed, (20, 0.2), (15, 0.7))
    for n in (2, 7, 35):
        assert bernoulli_ratio(np.cumsum(rewards[:n])) == pytest.approx(brute_ratio(rewards[:n]), abs=1e-12)
    noise = rng.normal(3.0, 2.0, 30)
    assert gaussian_ratio(np.cumsum(noise), 2.0) == pytest.approx(brute_ratio(noise, 2.0), rel=1e-9)
    shares = rng.random(30)
    assert bernoulli_ratio(np.cumsum(shares)) == pytest.approx(brute_ratio(shares), rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_detectors_alarm_when_their_definition_does(seed):
    rewards = coins(seed, (60, 0.1), (60, 0.8))
    glr = first_alarm(GLRTest(0.05), rewards)
    assert glr == brute_alarm(brute_glr, rewards, 0.05)
    assert 60 < glr < 90
    cusum = first_alarm(CUSUMTest(20, 0.1, 6.0), rewards)
    assert cusum == brute_alarm(brute_cusum, rewards, 20, 0.1, 6.0)
    assert 60 < cusum < 90
    window = first_alarm(WindowTest(30, 7.0), rewards)
    assert window == brute_alarm(brute_window, rewards, 30, 7.0)
    assert 60 < window < 90
    noise = (np.random.default_rng(seed).normal(0.0, 2.0, 120) + np.repeat([0.0, 4.0], 60)).tolist()
    assert first_alarm(GLRTest(0.05, 2.0), noise) == brute_alarm(brute_glr, noise, 0.05, 2.0)


def test_rewards_in_other_units_alarm_at_the_same_time():
    rewards = coins(5, (60, 0.1), (60, 0.8))
    scaled = [40.0 + 8.0 * reward for reward in rewards]
    assert first_alarm(CUSUMTest(20, 0.1, 6.0), rewards) == first_alarm(CUSUMTest(20, 0.1, 6.0, 8.0), scaled)
    assert first_alarm(WindowTest(30, 7.0), rewards) == first_alarm(WindowTest(30, 7.0, 8.0), scaled)


def test_test_for_every_few_rewards_is_the_same_test_later():
    rewards = coins(1, (60, 0.1), (60, 0.8))
    each, every = first_alarm(GLRTest(0.05), rewards), first_alarm(GLRTest(0.05, every=8), rewards)
    assert each <= every < each + 8
    assert every % 8 == 0


def test_thresholds():
    assert usual_threshold(4, 0.5) == pytest.approx(math.log(48))
    # T(x) is close to x + 4 log(1 + x + sqrt(2 x)) from x = 5 on (Kaufmann and Koolen).
    for n, delta in ((10**3, 1e-3), (10**6, 1e-6)):
        x = usual_threshold(n, delta) / 2
        close = 2 * (x + 4 * math.log(1 + x + math.sqrt(2 * x))) + 6 * math.log(1 + math.log(n))
        assert proved_threshold(n, delta) == pytest.approx(close, rel=0.05)
    # Without a change the proved threshold is not passed, where the usual one just is.
    rewards = [0.0] * 20 + [1.0] * 20
    assert first_alarm(GLRTest(0.05), rewards) < first_alarm(GLRTest(0.05, proved=True), [0.0] * 20 + [1.0] * 60)


@pytest.mark.parametrize(
    "make", [lambda: GLRTest(0.05, every=3), lambda: CUSUMTest(10, 0.1, 4.0), lambda: WindowTest(20, 6.0)]
)
def test_detector_goes_on_from_its_state(make):
    rewards = coins(2, (40, 0.1), (40, 0.9))
    whole, resumed = make(), make()
    first = [whole.add(reward) for reward in rewards[:42]]
    assert not any(first)
    resumed.state = json.loads(json.dumps(whole.state))
    assert [whole.add(reward) for reward in rewards[42:]] == [resumed.add(reward) for reward in rewards[42:]]
    whole.restart()
    assert whole.state == make().state


def false_alarms(make, n_sequences, length, p, seed):
    rng = np.random.default_rng(seed)
    return sum(
        first_alarm(make(), (rng.random(length) < p).astype(float).tolist()) is not None for _ in range(n_sequences)
    )


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_false_alarms_are_within_their_bounds(p, capsys):
    n_sequences, length = 300, 600
    found = {}
    # At most delta, whatever the length (the recommended threshold, which is below the proved one).
    found["glr"] = false_alarms(lambda: GLRTest(0.1, every=3), n_sequences, length, p, 0), 0.1
    # Hoeffding for each window: 2 exp(-2 b^2 / w).
    found["window"] = (
        false_alarms(lambda: WindowTest(50, 16.0), n_sequences, length, p, 1),
        2 * length * math.exp(-2 * 16.0**2 / 50),
    )
    # A walk with drift -e/2 reaches h within n steps with a chance of at most n exp(-4 e h), as exp(4 e walk) is a
    # supermartingale by Hoeffding's lemma; the mean of the first m is off by more than e/2 with 2 exp(-m e^2 / 2).
    drift, first, height = 0.2, 200, 12.0
    found["cusum"] = (
        false_alarms(lambda: CUSUMTest(first, drift, height), n_sequences, length, p, 2),
        2 * length * math.exp(-4 * drift * height) + 2 * math.exp(-first * drift**2 / 2),
    )
    with capsys.disabled():
        for name, (n_alarms, bound) in found.items():
            print(f"\nfalse alarms of {name}, coins of {p}: {n_alarms / n_sequences:.4f}, bound {bound:.4f}", end="")
    for n_alarms, bound in found.values():
        assert n_alarms <= n_sequences * bound


@pytest.mark.slow
def test_delays_are_within_their_bounds(capsys):
    n_sequences, before, low, high = 100, 200, 0.2, 0.8
    gap, delta, rng = high - low, 0.05, np.random.default_rng(3)
    tests = {
        "glr": lambda: GLRTest(delta, proved=True),
        "cusum": lambda: CUSUMTest(100, 0.1, 10.0),
        "window": lambda: WindowTest(100, 20.0),
    }
    delays = {name: [] for name in tests}
    for _ in range(n_sequences):
        rewards = [*(rng.random(before) < low).astype(float), *(rng.random(300) < high).astype(float)]
        for name, make in tests.items():
            n = first_alarm(make(), rewards)
            delays[name].append(math.inf if n is None else max(0, n - before))
    # The paper's lemma on the delay u of the likelihood ratio test.
    for u in (150, 200, 250, 300):
        reach = math.sqrt((before + u) / (2 * before * u) * proved_threshold(before + u, delta))
        bound = math.exp(-2 * before * u / (before + u) * max(0.0, gap - reach) ** 2)
        assert bound < 1.0
        assert np.mean(np.array(delays["glr"]) >= u) <= bound
    # Wald: a walk with a step of gap - drift, which passes its threshold by at most one; the mean is off by little.
    wald = (10.0 + 1.0) / (gap - 0.1)
    # The second half of the window has seen the change: the sums differ by 0.6 * 50 = 30, and 20 are enough.
    missed = np.mean(np.array(delays["window"]) > 50)
    with capsys.disabled():
        print(f"\nmean delays: glr {np.mean(delays['glr']):.1f}", end="")
        print(
            f", cusum {np.mean(delays['cusum']):.1f} (Wald {wald:.1f}), window {np.mean(delays['window']):.1f}", end=""
        )
    assert np.mean(delays["cusum"]) <= 1.1 * wald
    assert missed <= math.exp(-2 * 10.0**2 / 100)
