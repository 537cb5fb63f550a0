"""A problem as a PettingZoo environment: agents pull arms, and the protocol delivers what they tell each other.

Rules kept here: episodes are replicates. After `reset(seed=s)` the environment plays replicate 0 of
`simulate(..., seed=s)`, and each `reset()` without a seed begins the next replicate. An observation holds what its
agent may know, and nothing else: its own pulls, and estimates from these and from what it heard.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..draws import fresh_seed
from ..errors import InputError, MissingExtraError
from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.simulation import Simulation

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError:
    raise MissingExtraError(
        "the environment needs the package pettingzoo; install it with: pip install 'banditmesh[pettingzoo]'"
    ) from None

#: What an agent observes: an array of each kind, an entry for each of its arms.
Observation: TypeAlias = dict[str, NDArray[Any]]


def parallel_env(problem: Problem, protocol: AnyProtocol | str, *, horizon: int = 1000, **settings: Any) -> MeshEnv:
    """A problem as a PettingZoo environment in which all agents act at the same time.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocol : AnyProtocol or str
        How messages travel, as for `simulate`.
    horizon : int
        The number of rounds of an episode, after which it is truncated.
    **settings
        Other arguments of `Simulation`: rules, every, faults and so on. A policy has an effect only on emissions that
        ask which arm seems the best: whoever uses the environment chooses.

    Returns
    -------
    MeshEnv

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.integrations.pettingzoo import parallel_env
    >>> problem = bm.Problem.random(bm.networks.ring(3), n_arms=4, per_agent=2, seed=0)
    >>> env = parallel_env(problem, "fwa(2)", horizon=10)
    >>> observations, infos = env.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = env.step({agent: 0 for agent in env.agents})
    >>> observations[0]["own_count"].tolist()
    [1.0, 0.0]
    """
    return MeshEnv(problem, protocol, horizon=horizon, **settings)


class MeshEnv(ParallelEnv):  # type: ignore[misc]
    """The environment of `parallel_env`.

    An action is the position of an arm in its agent's arm set. Of agents that do not pull in a round, because they are
    down or it is not their turn, any action is ignored. A reward is what the arm paid, 0 if none was pulled. An
    observation is a dictionary of arrays with an entry for each of the agent's arms: `count` and `mean` of all that the
    agent knows, `own_count`, how often it pulled the arm itself, and `action_mask`, whether it can pull the arm in the
    round that comes. `infos` are not for agents: `arm`, what was pulled, and `gap`, how much less that pays on average
    than the agent's best arm.

    Attributes
    ----------
    simulation : Simulation
        The episode under way, to be looked at.
    """

    metadata: dict[str, Any] = {"name": "banditmesh", "render_modes": []}  # noqa: RUF012 (as PettingZoo has it)
    render_mode = None

    def __init__(self, problem: Problem, protocol: AnyProtocol | str, **settings: Any) -> None:
        if given := {"seed", "replicate"} & set(settings):
            raise InputError(f"{min(given)} is said by reset(), got {checks.shown(settings[min(given)])}; leave it out")
        self._made_of = (problem, protocol)
        self._settings = settings
        self.simulation = self._make(0, 0)  # what is wrong with the arguments shows at once
        self._seed: int | None = None
        self._replicate = 0
        self.possible_agents: list[Hashable] = list(problem.agents)
        self.agents: list[Hashable] = []
        self._arms: dict[Hashable, list[Hashable]] = {
            agent: [problem.arms[arm] for arm in problem.arm_set(number)] for number, agent in enumerate(problem.agents)
        }
        self.action_spaces = {agent: spaces.Discrete(len(arms)) for agent, arms in self._arms.items()}
        self.observation_spaces = {agent: _observed(len(arms)) for agent, arms in self._arms.items()}

    def _make(self, seed: int, replicate: int) -> Simulation:
        return Simulation(*self._made_of, seed=seed, replicate=replicate, **self._settings)

    def observation_space(self, agent: Hashable) -> spaces.Dict:
        """What an agent may observe; the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: Hashable) -> spaces.Discrete:
        """What an agent may do; the same object every time."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[Hashable, Observation], dict[Hashable, dict[str, Any]]]:
        """Begin an episode.

        Parameters
        ----------
        seed : int, optional
            The seed of `simulate`, of which this becomes replicate 0. If not given, the next replicate begins; the
            first time of a seed that is drawn.
        options : mapping, optional
            Ignored.

        Returns
        -------
        observations, infos : dict
            By agent.
        """
        if seed is not None or self._seed is None:
            self._seed, self._replicate = fresh_seed() if seed is None else checks.seed(seed), 0
        else:
            self._replicate += 1
        self.simulation = self._make(self._seed, self._replicate)
        self.agents = list(self.possible_agents)
        return self._observe(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[Hashable, Any]
    ) -> tuple[
        dict[Hashable, Observation],
        dict[Hashable, float],
        dict[Hashable, bool],
        dict[Hashable, bool],
        dict[Hashable, dict[str, Any]],
    ]:
        """Play a round.

        Parameters
        ----------
        actions : mapping
            The position of an arm for each agent.

        Returns
        -------
        observations, rewards, terminations, truncations, infos : dict
            By agent. All agents are truncated by the last round, and none ever terminates.
        """
        if not self.agents:
            raise InputError("the episode is over or has not begun; call reset() first")
        if not isinstance(actions, Mapping):
            raise InputError(f"actions must be a mapping from agents to positions, got {checks.shown(actions)}")
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise InputError(f"actions must name all {len(self.agents)} agents, got none for {missing[0]!r}")
        played = self.simulation.step({agent: self._arm(agent, actions[agent]) for agent in self.simulation.turn()})
        everybody = self.agents
        is_over = self.simulation.is_over
        if is_over:
            self.agents = []
        return (
            self._observe(),
            {agent: played.rewards.get(agent, 0.0) for agent in everybody},
            dict.fromkeys(everybody, False),
            dict.fromkeys(everybody, is_over),
            {
                agent: {"arm": played.choices[agent], "gap": played.gaps[agent]} if agent in played.choices else {}
                for agent in everybody
            },
        )

    def render(self) -> None:
        """Nothing: see `banditmesh.animate`."""

    def _arm(self, agent: Hashable, action: Any) -> Hashable:
        arms = self._arms[agent]
        if not self.action_spaces[agent].contains(action):
            raise InputError(
                f"the action of agent {agent!r} must be a position from 0 to {len(arms) - 1}, "
                f"got {checks.shown(action)}"
            )
        return arms[int(action)]

    def _observe(self) -> dict[Hashable, Observation]:
        """What each agent knows now."""
        can_pull = {} if self.simulation.is_over else self.simulation.can_pull()
        found: dict[Hashable, Observation] = {}
        for agent, one in self.simulation.agents.items():
            open_arms = set(can_pull.get(agent, ()))
            found[agent] = {
                "count": np.array(one.estimates.count, dtype=np.float64),
                "mean": np.array(one.estimates.mean, dtype=np.float64),
                "own_count": np.array(one.own_count, dtype=np.float64),
                "action_mask": np.array([arm in open_arms for arm in self._arms[agent]], dtype=np.int8),
            }
        return found


def _observed(n_arms: int) -> spaces.Dict:
    counted = spaces.Box(0.0, np.inf, (n_arms,), np.float64)
    return spaces.Dict(
        {
            "count": counted,
            "mean": spaces.Box(-np.inf, np.inf, (n_arms,), np.float64),
            "own_count": counted,
            "action_mask": spaces.Box(0, 1, (n_arms,), np.int8),
        }
    )
