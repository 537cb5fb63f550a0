"""All randomness: numbers that depend on what they decide, never on when or where they are drawn.

A draw is a pure function of a *key* (from seed, replicate and purpose) and a *counter* of four numbers that name the
decision (agent and round, say). So every engine, worker and order of work gets the same numbers, and every protocol
sees the same rewards and the same networks.

The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011). It is written in 64-bit integer
arithmetic that gives the same bits in plain Python, where integers do not overflow, and compiled, where they wrap:
every product is masked before its bits are used. Counters must lie in [0, 2**32).

Purposes and their counters:

    REWARD  (agent, round, 0, 0)              which quantile of the pulled arm's law is paid
    REPLAY  (agent, arm, k, 0)                which of an arm's logged rewards the k-th pull of an agent pays
    CHANGE  (arm, round, 0, 0)                whether the mean of an arm changes in this round
    MEAN    (arm, round, 0, 0)                what it changes to, or by
    STOP    (origin, sequence, agent, ttl)    random input of a relay rule
    TARGET  (origin, sequence, agent, ttl, k) the k-th random neighbour of a fan-out
    INDEX   (agent, round, arm, 0)            random input of a policy's index
    BIRTH   (round, k, 0, 0)                  the k-th geometric skip over a round's absent links
    DEATH   (round, i, j, 0)                  whether the link between i and j dies
    LINK    (round, i, j, 0)                  whether the link between i and j fails in this round
    AGENT   (round, agent, 0, 0)              whether an agent leaves or joins
    OUTAGE  (agent, round, 0, 0)              whether an agent goes down or comes back up
    LOSS    (origin, sequence, sender, receiver)  whether a transmission is lost
    DELAY   (origin, sequence, sender, receiver)  how late it is
    CORRUPT (origin, sequence, sender, receiver)  whether its reward is changed
    NOISE   (origin, sequence, sender, receiver)  by how much
    LIE     (agent, round, 0, 0)              what a liar says that a pull paid, if it makes noise
    LATE    (agent, round, 0, 0)              how many rounds after its pull a reward is observed
    PHASE   (agent, 0, 0, 0)                  when, within its interval, a player of a local mesh pulls

`sequence` is the round of the pull that a message was made after or, on a tree, how many its link has carried. A
message that crosses a link more than once, as it may under the published rules, meets the same faults each time.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from typing import Any, Final, cast

from . import checks

REWARD: Final = "reward"
REPLAY: Final = "replay"
CHANGE: Final = "change"
MEAN: Final = "mean"
STOP: Final = "stop"
TARGET: Final = "target"
INDEX: Final = "index"
BIRTH: Final = "birth"
DEATH: Final = "death"
LINK: Final = "link"
AGENT: Final = "agent"
OUTAGE: Final = "outage"
LOSS: Final = "loss"
DELAY: Final = "delay"
CORRUPT: Final = "corrupt"
NOISE: Final = "noise"
LIE: Final = "lie"
LATE: Final = "late"
PHASE: Final = "phase"

MAX_COUNTER: Final = 2**32 - 1
# TARGET has five numbers for four places: ttl and k share the last one.
TARGET_STRIDE: Final = 2**16

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER_0: Final = 0xD2511F53
_MULTIPLIER_1: Final = 0xCD9E8D57
_WEYL_0: Final = 0x9E3779B9
_WEYL_1: Final = 0xBB67AE85
_TWO_POW_MINUS_52: Final = 1.0 / 4503599627370496.0
#: The least and the greatest number that `uniform` gives.
LEAST_UNIFORM: Final = 2.0**-53
GREATEST_UNIFORM: Final = 1.0 - 2.0**-53
#: How far from a half a quantile is found without a logarithm.
CENTRAL: Final = 0.425


def philox(k0: int, k1: int, c0: int, c1: int, c2: int, c3: int) -> tuple[int, int, int, int]:
    """Philox4x32-10: four 32-bit words from a key of two words and a counter of four.

    Examples
    --------
    >>> [hex(word) for word in philox(0, 0, 0, 0, 0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    for _ in range(10):
        p0 = _MULTIPLIER_0 * c0
        p1 = _MULTIPLIER_1 * c2
        c0 = ((p1 >> 32) & _MASK) ^ c1 ^ k0
        c1 = p1 & _MASK
        c2 = ((p0 >> 32) & _MASK) ^ c3 ^ k1
        c3 = p0 & _MASK
        k0 = (k0 + _WEYL_0) & _MASK
        k1 = (k1 + _WEYL_1) & _MASK
    return c0, c1, c2, c3


def uniform(k0: int, k1: int, c0: int, c1: int, c2: int, c3: int) -> float:
    """A number in the open interval (0, 1), a multiple of 2**-53, from the first two words of `philox`."""
    w0, w1, _, _ = philox(k0, k1, c0, c1, c2, c3)
    # 52 random bits, centred: neither 0 nor 1 can occur, and u and 1 - u are equally likely.
    return (((w0 >> 6) << 26) + (w1 >> 6) + 0.5) * _TWO_POW_MINUS_52


def normal_quantile(u: float) -> float:
    """The standard normal quantile of `u` in (0, 1), to about 1e-16 relative.

    Wichura's algorithm AS 241 (PPND16): arithmetic, one logarithm and one square root, so that it gives the same
    bits compiled and in plain Python.

    Examples
    --------
    >>> normal_quantile(0.5)
    0.0
    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    q = u - 0.5
    return central_quantile(q) if abs(q) <= CENTRAL else tail_quantile(u)


def central_quantile(q: float) -> float:
    """The standard normal quantile of 0.5 + q, for q between -`CENTRAL` and `CENTRAL`; no branch, no logarithm."""
    r = 0.180625 - q * q
    num = 2.5090809287301226727e3
    num = num * r + 3.3430575583588128105e4
    num = num * r + 6.7265770927008700853e4
    num = num * r + 4.5921953931549871457e4
    num = num * r + 1.3731693765509461125e4
    num = num * r + 1.9715909503065514427e3
    num = num * r + 1.3314166789178437745e2
    num = num * r + 3.3871328727963666080e0
    den = 5.2264952788528545610e3
    den = den * r + 2.8729085735721942674e4
    den = den * r + 3.9307895800092710610e4
    den = den * r + 2.1213794301586595867e4
    den = den * r + 5.3941960214247511077e3
    den = den * r + 6.8718700749205790830e2
    den = den * r + 4.2313330701600911252e1
    den = den * r + 1.0
    return q * num / den


def tail_quantile(u: float) -> float:
    """The standard normal quantile of a `u` that is farther than `CENTRAL` from a half."""
    q = u - 0.5
    r = math.sqrt(-math.log(u if q < 0.0 else 1.0 - u))
    if r <= 5.0:
        r -= 1.6
        num = 7.74545014278341407640e-4
        num = num * r + 2.27238449892691845833e-2
        num = num * r + 2.41780725177450611770e-1
        num = num * r + 1.27045825245236838258e0
        num = num * r + 3.64784832476320460504e0
        num = num * r + 5.76949722146069140550e0
        num = num * r + 4.63033784615654529590e0
        num = num * r + 1.42343711074968357734e0
        den = 1.05075007164441684324e-9
        den = den * r + 5.47593808499534494600e-4
        den = den * r + 1.51986665636164571966e-2
        den = den * r + 1.48103976427480074590e-1
        den = den * r + 6.89767334985100004550e-1
        den = den * r + 1.67638483018380384940e0
        den = den * r + 2.05319162663775882187e0
        den = den * r + 1.0
    else:
        r -= 5.0
        num = 2.01033439929228813265e-7
        num = num * r + 2.71155556874348757815e-5
        num = num * r + 1.24266094738807843860e-3
        num = num * r + 2.65321895265761230930e-2
        num = num * r + 2.96560571828504891230e-1
        num = num * r + 1.78482653991729133580e0
        num = num * r + 5.46378491116411436990e0
        num = num * r + 6.65790464350110377720e0
        den = 2.04426310338993978564e-15
        den = den * r + 1.42151175831644588870e-7
        den = den * r + 1.84631831751005468180e-5
        den = den * r + 7.86869131145613259100e-4
        den = den * r + 1.48753612908506148525e-2
        den = den * r + 1.36929880922735805310e-1
        den = den * r + 5.99832206555887937690e-1
        den = den * r + 1.0
    return -num / den if q < 0.0 else num / den


def geometric_skip(u: float, log_absent: float) -> int:
    """How many trials of success probability p fail before the next success; `log_absent` is log(1 - p) < 0."""
    return int(math.log(u) / log_absent)


class Draws:
    """The draws of one replicate: a key per purpose, and no state.

    Parameters
    ----------
    seed : int
        Any non-negative integer.
    replicate : int
        Which replicate, from 0.

    Examples
    --------
    >>> draws = Draws(seed=1, replicate=0)
    >>> draws.uniform(REWARD, 3, 7) == Draws(seed=1, replicate=0).uniform(REWARD, 3, 7)
    True
    >>> draws.uniform(REWARD, 3, 7) == draws.uniform(REWARD, 3, 8)
    False
    """

    def __init__(self, seed: int, replicate: int) -> None:
        self.seed = checks.seed(seed)
        self.replicate = checks.integer("replicate", replicate, at_least=0)
        self._keys: dict[str, tuple[int, int]] = {}

    def key(self, purpose: str) -> tuple[int, int]:
        """The two 32-bit key words of a purpose."""
        key = self._keys.get(purpose)
        if key is None:
            label = f"banditmesh {purpose} {self.seed} {self.replicate}".encode()
            digest = hashlib.blake2b(label, digest_size=8).digest()
            key = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
            self._keys[purpose] = key
        return key

    def uniform(self, purpose: str, c0: int, c1: int, c2: int = 0, c3: int = 0) -> float:
        """The number in (0, 1) for the decision that purpose and counter name."""
        k0, k1 = self.key(purpose)
        return uniform(k0, k1, c0, c1, c2, c3)

    def uniforms(self, purpose: str, n: int, first: int, last: int) -> list[list[float]]:
        """`uniform(purpose, c0, c1)` for each c0 below `n`, in a row for each c1 from `first` to before `last`.

        They are the same numbers, drawn at once, which is far quicker.

        Examples
        --------
        >>> draws = Draws(seed=1, replicate=0)
        >>> draws.uniforms(REWARD, 2, first=7, last=8) == [[draws.uniform(REWARD, agent, 7) for agent in range(2)]]
        True
        """
        import numpy as np

        k0, k1 = self.key(purpose)
        c0, c1 = np.arange(n, dtype=np.uint64), np.arange(first, last, dtype=np.uint64)[:, None]
        numbers: Any = uniform
        return cast("list[list[float]]", numbers(k0, k1, c0, c1, 0, 0).tolist())

    def uniform_of_each(self, purpose: str, counters: Sequence[tuple[int, int, int, int]]) -> list[float]:
        """`uniform(purpose, *counter)` of each counter, drawn at once.

        Examples
        --------
        >>> draws = Draws(seed=1, replicate=0)
        >>> draws.uniform_of_each(LOSS, [(0, 7, 0, 1)]) == [draws.uniform(LOSS, 0, 7, 0, 1)]
        True
        """
        import numpy as np

        k0, k1 = self.key(purpose)
        columns = np.array(counters, dtype=np.uint64).reshape(-1, 4).T
        numbers: Any = uniform
        return cast("list[float]", numbers(k0, k1, *columns).tolist())


def pick_targets(
    k0: int, k1: int, origin: int, sequence: int, agent: int, ttl: int, candidates: Sequence[int], fanout: int
) -> list[int]:
    """`fanout` of the candidates drawn without replacement (all, if there are no more), in drawn order."""
    pool = list(candidates)
    for k in range(min(fanout, len(pool))):
        u = uniform(k0, k1, origin, sequence, agent, ttl * TARGET_STRIDE + k)
        j = k + int(u * (len(pool) - k))
        pool[k], pool[j] = pool[j], pool[k]
    return pool[:fanout]


def fresh_seed() -> int:
    """A seed from the operating system, for runs that were given none; the result records it."""
    return secrets.randbits(53)
