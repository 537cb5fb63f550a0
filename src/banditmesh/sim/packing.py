"""A run as arrays: what all replicates share, packed once for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .. import draws as purposes
from ..arms import BERNOULLI
from ..draws import Draws
from ..networks.csr import Links as StaticLinks
from ..policies.base import Policy
from ..protocols.emission import EveryPull
from .kernels.layout import Agents, Keys, Links, Network, Rule
from .run import Run

MOST_ARMS_PER_AGENT: Final = 2**15 - 1
#: The most memory that the published rules' ids of repeating rewards may take, in bytes.
ID_BUDGET: Final = 2**30


def unsupported(run: Run) -> str | None:
    """Why the compiled engine does not run this, or None if it does."""
    kinds = {type(policy) for policy in run.policies}
    if run.trace:
        return "it keeps no event log (trace)"
    if type(run.protocol.emission) is not EveryPull:
        return f"it does not run the emission {run.protocol.emission!r}"
    if len(kinds) > 1:
        return "it runs one kind of policy at a time, and the agents' policies are of several"
    if next(iter(kinds)).choose is not Policy.choose:
        return f"the policy {run.policies[0].name!r} overrides choose(); it runs policies that give index()"
    if np.diff(run.problem.arm_offsets).max() > MOST_ARMS_PER_AGENT:
        return f"it runs at most {MOST_ARMS_PER_AGENT} arms per agent"
    if run.rules.id_is_reward and needs_walk(run):
        n_agents, n_slots = run.problem.n_agents, len(run.problem.arm_indices)
        n_ids = run.protocol.ttl * n_agents + n_slots * repeating_rewards(run)[1]
        if 8 * n_ids * n_agents > ID_BUDGET:
            return (
                f"the published rules would need {8 * n_ids * n_agents / 2**30:,.1f} GiB for the ids that agents "
                "remember"
            )
        if run.tape is None and any(
            not law.continuous and (law.kernel is None or law.kernel[0] != BERNOULLI) for law in run.problem.laws
        ):
            return "by the published rules it runs Bernoulli and continuous laws only"
    return None


def needs_walk(run: Run) -> bool:
    """Whether every copy must be walked: the published memory may forget, or takes equal rewards for one message.

    On a static network without draws, if holders relay as everybody does, an agent accepts at most one message of each
    origin a round, so that no id is forgotten while a copy can still come.
    """
    if not run.rules.id_is_reward or run.protocol.ttl == 0:
        return False
    if run.problem.is_dynamic or run.protocol.random or run.protocol.n_targets is not None:
        return True
    decision = decision_table(run)
    return bool((decision[0] != decision[1]).any() or repeating_rewards(run)[0].any())


def repeating_rewards(run: Run) -> tuple[NDArray[np.int16], int]:
    """For each arm whether its rewards may be equal, and how many different values they may take."""
    if run.tape is None:
        discrete = np.array([not law.continuous for law in run.problem.laws], dtype=np.int16)
        return discrete, 2 if discrete.any() else 0
    ordered = np.sort(run.tape, axis=1)
    repeats = (ordered[:, 1:] == ordered[:, :-1]).any(axis=(0, 1, 2)) if run.horizon > 1 else np.zeros(1, dtype=bool)
    if not repeats.any():
        return np.zeros(run.problem.n_arms, dtype=np.int16), 0
    return np.ones(run.problem.n_arms, dtype=np.int16), len(np.unique(run.tape[~np.isnan(run.tape)]))


def decision_table(run: Run) -> NDArray[np.int8]:
    """The relay rule of a protocol that does not draw, by has_arm, hops left and degree (1 if it does not matter)."""
    protocol = run.protocol
    if protocol.random or protocol.ttl == 0:
        return np.zeros((2, max(protocol.ttl, 1), 1), dtype=np.int8)
    network = run.problem.network
    degrees = np.unique(network.degrees) if isinstance(network, StaticLinks) else np.arange(run.problem.n_agents)
    table = np.zeros((2, protocol.ttl, int(degrees.max()) + 1), dtype=np.int8)
    for has_arm in (False, True):
        for ttl in range(protocol.ttl):
            for degree in degrees.tolist():
                table[int(has_arm), ttl, degree] = protocol.relay(has_arm, ttl, degree, 0.0, protocol.parameter)
    known = table[:, :, degrees]
    return known[:, :, :1].copy() if (known == known[:, :, :1]).all() else table


@dataclass(frozen=True)
class Packed:
    """What all replicates of a run share.

    `network` and `links` are those of a static network; the slots of arm a's holders are
    `holder_slots[holder_starts[a] : holder_starts[a + 1]]`, ascending.
    """

    run: Run
    agents: Agents
    clock_parameters: tuple[float, ...]
    network: Network | None
    holder_starts: NDArray[np.int64]
    holder_slots: NDArray[np.int32]
    decision: NDArray[np.int8]
    discrete: NDArray[np.int16]
    n_codes: int
    has_tape: bool
    most_arms: int
    most_degree: int

    def rule(self, draws: Draws) -> Rule:
        """Protocol and rule set as numbers, with the replicate's keys."""
        protocol, rules = self.run.protocol, self.run.rules
        return Rule(
            ttl=protocol.ttl,
            horizon=self.run.horizon,
            decision=self.decision,
            is_random=protocol.random,
            parameter=float(protocol.parameter),
            n_targets=protocol.n_targets or 0,
            relay_to_sender=rules.relay_to_sender,
            origin_remembers=rules.origin_remembers,
            stop_before_use=rules.stop_before_use,
            stop_k0=draws.key(purposes.STOP)[0],
            stop_k1=draws.key(purposes.STOP)[1],
            target_k0=draws.key(purposes.TARGET)[0],
            target_k1=draws.key(purposes.TARGET)[1],
        )

    def keys(self, draws: Draws) -> Keys:
        """The keys of the draws that pulls need."""
        return Keys(*draws.key(purposes.REWARD), *draws.key(purposes.INDEX), self.run.policies[0].random)

    @cached_property
    def clocks(self) -> NDArray[np.float64]:
        """What the policies' clocks read in every round: (horizon, clock parameters)."""
        kind, lag = type(self.run.policies[0]), self.run.rules.clock_lag
        # Before round `fewest + 1` every agent makes its first pulls, and no clock is read.
        fewest = int(np.diff(self.agents.offsets).min())
        clocks = np.zeros((self.run.horizon, len(self.clock_parameters)))
        for t in range(fewest + 1, self.run.horizon + 1):
            clocks[t - 1] = [kind.clock(t - lag, parameter) for parameter in self.clock_parameters]
        return clocks


def pack(run: Run) -> Packed:
    """Pack a run."""
    problem = run.problem
    n_agents, n_arms = problem.n_agents, problem.n_arms
    sizes = np.diff(problem.arm_offsets)
    owner = np.repeat(np.arange(n_agents, dtype=np.int32), sizes)
    position = np.full((n_agents, n_arms), -1, dtype=np.int16)
    position[owner, problem.arm_indices] = np.arange(len(owner)) - np.repeat(problem.arm_offsets[:-1], sizes)
    parameters = np.array([policy.parameter for policy in run.policies], dtype=np.float64)
    clock_parameters, clock = np.unique(parameters, return_inverse=True)
    # Laws without a code are read from a tape that is made chunk by chunk.
    codes = [law.kernel for law in problem.laws]
    coded = [code if code is not None else (0, 0.0, 1.0) for code in codes]
    agents = Agents(
        offsets=np.array(problem.arm_offsets),
        arms=np.array(problem.arm_indices),
        position=position,
        gaps=np.array(problem.arm_gaps),
        sigmas=np.array(problem.sigmas),
        every=np.array(run.every),
        clock=clock.astype(np.int32),
        parameter=parameters,
        law_code=np.array([code for code, _, _ in coded], dtype=np.int64),
        law_a=np.array([a for _, a, _ in coded], dtype=np.float64),
        law_b=np.array([b for _, _, b in coded], dtype=np.float64),
    )
    holder_counts = np.bincount(problem.arm_indices, minlength=n_arms)
    network = problem.network
    walks = needs_walk(run)
    discrete, n_codes = repeating_rewards(run) if walks else (np.zeros(n_arms, dtype=np.int16), 0)
    return Packed(
        run=run,
        agents=agents,
        clock_parameters=tuple(clock_parameters.tolist()),
        network=static_network(network) if isinstance(network, StaticLinks) else None,
        holder_starts=np.concatenate([[0], np.cumsum(holder_counts)]).astype(np.int64),
        holder_slots=np.argsort(problem.arm_indices, kind="stable").astype(np.int32),
        decision=decision_table(run),
        discrete=discrete,
        n_codes=n_codes,
        has_tape=run.tape is not None or any(code is None for code in codes),
        most_arms=int(sizes.max()),
        most_degree=int(network.degrees.max()) if isinstance(network, StaticLinks) else n_agents,
    )


def static_network(links: StaticLinks) -> Network:
    """A static network as kernels read it: the one row 0 stands for all rounds."""
    return Network(True, 1, np.array(links.indptr)[None, :], np.array(links.indices))


def no_links() -> Links:
    """Where nothing is counted by link."""
    return Links(1, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))
