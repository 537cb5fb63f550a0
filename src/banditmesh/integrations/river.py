"""river's bandit policies for agents, and agents' policies for river.

    FromRiver(bandit.UCB(delta=1.0))    a policy for `simulate`: each agent has a copy of river's to itself
    ToRiver(UCB(alpha=2.0))             a policy of river's that chooses as an agent by itself would

Rules kept here: results depend on the seed of the simulation alone, so copies for agents are seeded by it; and what
river's policies learn, they learn one reward at a time, also from a count and sum that an agent hears.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import checks
from ..arms import Gaussian, Law
from ..core import Agent, Place
from ..draws import Draws, fresh_seed
from ..errors import InputError, MissingExtraError
from ..policies import Arms, Chooser, Estimates, Policy
from ..protocols import NoCooperation
from ..sim.chances import RoundChances

try:
    from river import bandit
except ImportError:
    raise MissingExtraError(
        "policies of river need the package river; install it with: pip install 'banditmesh[river]'"
    ) from None


class _Recipe:
    """A policy of river's before it has learned anything; equal if class and parameters are."""

    def __init__(self, policy: bandit.base.Policy) -> None:
        self._policy = policy.clone()
        self.kind = type(policy).__name__
        given = ", ".join(f"{key}={value!r}" for key, value in self._policy._get_params().items() if key != "seed")
        self._text = f"bandit.{self.kind}({given})"

    def make(self, seed: int) -> bandit.base.Policy:
        """A copy of its own, with this seed if it draws."""
        return self._policy.clone({"seed": seed} if hasattr(self._policy, "seed") else None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Recipe) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text


@dataclass(frozen=True)
class FromRiver(Policy):
    """A bandit policy of river's as the policy of agents; it runs on the reference engine.

    Each agent has a copy of its own, which learns from the agent's rewards and from what the agent hears, a reward at a
    time: of a count and sum, that many times the mean. Copies are seeded by the simulation, whatever seed is given.

    Parameters
    ----------
    policy : river.bandit.base.Policy
        Any that learns from pulls that it did not choose itself: not `Exp3`, and none with a context.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.integrations.river import FromRiver
    >>> from river import bandit
    >>> problem = bm.Problem.random(bm.networks.ring(4), n_arms=6, per_agent=3, seed=0)
    >>> policy = FromRiver(bandit.EpsilonGreedy(epsilon=0.1))
    >>> bm.simulate(problem, "fwa(2)", policy=policy, horizon=50, seed=0).policy
    'river-EpsilonGreedy'
    """

    policy: Any
    name: ClassVar[str] = "river"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.policy, _Recipe):
            return
        if not isinstance(self.policy, bandit.base.Policy):
            raise InputError(f"must be one of river's bandit policies, got {checks.shown(self.policy)}", key="policy")
        object.__setattr__(self, "policy", _Recipe(self.policy))
        try:
            self.policy.make(0).update(0, 0.5)
        except Exception as error:
            raise InputError(
                f"must learn from pulls that it did not choose, which {self.policy!r} does not "
                f"({type(error).__name__}); use another, such as bandit.UCB(delta=1)",
                key="policy",
            ) from None

    @property
    def label(self) -> str:
        """With the name of river's class."""
        return f"{self.name}-{self.policy.kind}"

    def chooser(self, arms: Arms) -> Chooser:
        """A copy of river's policy."""
        return _RiverChooser(self, arms)


class _RiverChooser(Chooser):
    """One agent's copy of river's policy. It is made when the agent first chooses, since only then can it be seeded."""

    policy: FromRiver

    def __init__(self, policy: FromRiver, arms: Arms) -> None:
        super().__init__(policy, arms)
        self._made: bandit.base.Policy | None = None
        #: Positions and rewards that it has yet to learn of.
        self._waiting: list[list[float]] = []

    def choose(self, clock: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """What river's policy pulls."""
        if len(estimates) != len(self.arms.names):
            raise InputError(
                f"policy {self.policy.label!r} must be able to pull all of its agent's arms, got some of which "
                "all logged rewards are used up; use a shorter horizon, or another policy"
            )
        if self._made is None:
            self._made = self.policy.policy.make(int(draw(0) * 2**32))
        for position, reward in self._waiting:
            self._made.update(position, reward)
        self._waiting.clear()
        return int(self._made.pull(list(range(len(estimates)))))

    def observe(self, position: int, reward: float) -> None:
        """Learn a reward."""
        self._waiting.append([position, reward])

    def hear(self, position: int, count: int, total: float) -> None:
        """Learn others' rewards."""
        self._waiting += [[position, total / count]] * count

    @property
    def state(self) -> Any:
        """What it waits to learn, and river's policy as a pickle: put back only what you stored yourself."""
        made = None if self._made is None else base64.b64encode(pickle.dumps(self._made)).decode()
        return {"waiting": self._waiting, "made": made}

    @state.setter
    def state(self, value: Any) -> None:
        self._waiting = list(value["waiting"])
        self._made = None if value["made"] is None else pickle.loads(base64.b64decode(value["made"]))


class ToRiver(bandit.base.Policy):  # type: ignore[misc]
    """A policy of banditmesh as one of river's: it chooses as an agent by itself would, first pulls included.

    Parameters
    ----------
    policy : Policy
        Any, with any memory; each pull is a round.
    law : Law, optional
        A law of the kind that the arms have, such as `Bernoulli(0.5)`, for policies that ask; by default `Gaussian`
        with a sigma of 1.
    arms : sequence, optional
        All arms, in the order of first pulls; by default those of the first pull.
    burn_in : int
        As for all of river's policies.
    seed : int, optional
        Decides what policies draw: the same numbers as those of a single agent in `simulate` with this seed.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.integrations.river import ToRiver
    >>> policy = ToRiver(bm.UCB(alpha=2.0))
    >>> for reward in (0.0, 1.0, 1.0):
    ...     arm = policy.pull(["red", "blue"])
    ...     policy.update(arm, reward)
    >>> arm, policy.ranking
    ('blue', ['blue', 'red'])
    """

    def __init__(
        self,
        policy: Policy,
        law: Law | None = None,
        arms: Sequence[Hashable] | None = None,
        burn_in: int = 0,
        seed: int | None = None,
    ) -> None:
        super().__init__(burn_in=burn_in)
        if not isinstance(policy, Policy):
            raise InputError(f"must be a policy such as UCB(), got {checks.shown(policy)}", key="policy")
        self.policy, self.law, self.arms, self.seed = policy, law, arms, seed
        self._round = 0
        self._chances = RoundChances(Draws(fresh_seed() if seed is None else seed, 0))
        self._agent: Agent | None = None
        self._number: dict[Hashable, int] = {}
        if arms is not None:
            self._seat(arms)

    def _seat(self, arms: Sequence[Hashable]) -> Agent:
        """The agent that chooses; arms have numbers, as in a simulation, so that the same is drawn for them."""
        if not arms or len(set(arms)) < len(arms):
            raise InputError(f"arms must be different ones, at least one, got {checks.shown(arms)}")
        self._number = {arm: number for number, arm in enumerate(arms)}
        law = Gaussian(0.0, 1.0) if self.law is None else self.law
        sigma, n_arms = float("nan") if law.sigma is None else law.sigma, len(self._number)
        known = Arms(range(n_arms), [sigma] * n_arms, [law.code] * n_arms)
        self.policy.require(known)
        self._agent = NoCooperation().seat(Place(0, known, self.policy, self._chances))
        return self._agent

    def _position(self, arm: Hashable) -> int:
        if arm not in self._number:
            raise InputError(
                f"an arm must be one of {checks.shown(list(self._number))}, got {checks.shown(arm)}; "
                "give all arms as arms="
            )
        return self._number[arm]

    def _pull(self, arm_ids: Sequence[Hashable]) -> Hashable:
        agent = self._agent or self._seat(arm_ids)
        positions = [self._position(arm) for arm in arm_ids]
        self._round += 1
        self._chances.now = self._round
        agent.begin(self._round)
        choice = agent.choose(self._round, None if len(positions) == len(self._number) else positions)
        return list(self._number)[choice.position]

    def update(self, arm_id: Hashable, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn what an arm paid."""
        if self._agent is None:
            raise InputError("the arms must be known before a reward comes, got none; pull first, or give arms=")
        position = self._position(arm_id)
        if len(reward_args) != 1:
            raise InputError(f"a reward must be one number, got {checks.shown(reward_args)}")
        # First, since it refuses what is no reward.
        self._agent.observe(position, checks.real("reward", reward_args[0]))
        super().update(arm_id, *reward_args, **reward_kwargs)
