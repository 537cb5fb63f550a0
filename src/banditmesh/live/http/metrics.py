"""What Prometheus reads of a node: values are taken from the node when it is asked, and none is kept twice.

Only the lag of the event loop is measured here: a task sleeps for a while and looks how late it wakes up.

A scrape runs on the node's own event loop and must not hold it up, so series by arm are left out where there are more
than `MAX_ARMS` arms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from ...version import __version__
from ..certificates import UNSIGNED
from ..names import DEFAULT
from .exposition import MEDIA_TYPE, Family, Histogram, Sample, as_text, counter, gauge, of_the_process

if TYPE_CHECKING:
    from ..node import Node
    from .openapi import PeerView, StateView, TrustView

#: The most arms that have their own series.
MAX_ARMS: Final = 200
#: The most members with many lives that are named.
MAX_MEMBERS: Final = 20
#: How often the loop's lag is measured, in seconds.
LAG_EVERY: Final = 0.25
LAG_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
COMMIT_BUCKETS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


#: What is shown of each link: the end of its name, what it is, whether it only grows, and its value.
_OF_LINKS: Final[tuple[tuple[str, str, bool, Callable[[PeerView], float]], ...]] = (
    ("up", "1 if the link is up.", False, lambda one: one.state == "up"),
    ("since_seconds", "When it came up or went down, since 1970.", False, lambda one: one.since),
    ("sent_statistics", "Statistics sent over the link.", True, lambda one: one.sent),
    ("received_statistics", "Statistics that came over the link.", True, lambda one: one.received),
    ("waiting_keys", "Statistics that wait to be sent.", False, lambda one: one.waiting),
    ("behind_seconds", "Time since nothing was waiting; 0 if nothing is.", False, lambda one: one.behind),
)


class Metrics:
    """The metrics of a node.

    Parameters
    ----------
    node : Node
        The node to ask.
    """

    media_type: Final = MEDIA_TYPE

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lag = Histogram("banditmesh_loop_lag_seconds", "Event-loop lag.", LAG_BUCKETS)
        self._observing = Histogram(
            "banditmesh_observe_seconds",
            "From the arrival of observations to their acknowledgement: waiting for the disk, and writing.",
            COMMIT_BUCKETS,
        )

    def text(self) -> bytes:
        """All of it, in Prometheus's text format."""
        histograms = (*self._lag.families(), *self._observing.families())
        return as_text([*self._of_the_node(), *of_the_process(), *histograms])

    async def measure_lag(self) -> None:
        """Measure the event-loop lag until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_EVERY
            await asyncio.sleep(LAG_EVERY)
            self._lag.observe(max(0.0, loop.time() - due))

    def observed(self, seconds: float) -> None:
        """Note how long it took to acknowledge observations."""
        self._observing.observe(seconds)

    def _of_the_node(self) -> Iterator[Family]:
        state = self._node.state()
        is_ready, _ = self._node.ready()
        names = {"mesh": state.mesh, "node": state.node, "policy": state.policy, "protocol": state.protocol}
        yield Family(
            "gauge", "banditmesh_node_info", "Which node this is.", [Sample(1, {**names, "version": __version__})]
        )
        yield gauge("banditmesh_ready", "1 if the node does all of its work, as /readyz says.", is_ready)
        yield counter("banditmesh_choices", "Choices in this life.", state.n_choices)
        yield gauge("banditmesh_start", "How often this life has started.", state.start)
        yield _by("banditmesh_events", "What happened, by the names of /v1/state.", "event", state.counters, True)
        used = {name: cap.used for name, cap in state.caps.items()}
        most = {name: cap.most for name, cap in state.caps.items()}
        yield _by("banditmesh_cap_used", "How much of a cap is in use.", "cap", used)
        yield _by("banditmesh_cap_most", "How much a cap allows.", "cap", most)
        yield from self._trust(state.trust)
        many = dict(islice(state.many_lives.items(), MAX_MEMBERS))
        yield _by("banditmesh_member_lives", "Lives of members that come near caps.epochs.", "member", many)
        if state.certificate_ends is not None:
            yield gauge(
                "banditmesh_certificate_ends_seconds",
                "When the certificate of the node ends, since 1970.",
                state.certificate_ends,
            )
        yield from self._links()
        yield from self._arms(state)
        yield from self._bandits(state)

    def _links(self) -> Iterator[Family]:
        peers = self._node.peers()
        for name, text, only_grows, value in _OF_LINKS:
            yield _by(f"banditmesh_link_{name}", text, "peer", {one.name: value(one) for one in peers}, only_grows)

    @staticmethod
    def _trust(trust: TrustView) -> Iterator[Family]:
        signatures = {"signed": trust.signed - trust.expired, "expired": trust.expired, "unsigned": trust.unsigned}
        text = "Statistics of others that the node has, by their signatures."
        yield _by("banditmesh_signatures", text, "signature", signatures)
        origins = trust.origins[:MAX_MEMBERS]
        samples = [
            Sample(n, {"origin": one.name, "signature": signature})
            for one in origins
            for signature, n in (("unsigned", one.unsigned), ("expired", one.expired))
            if n and trust.signatures != UNSIGNED
        ]
        text = "Of origins with statistics that are unsigned or expired: how many."
        yield Family("gauge", "banditmesh_origin_signatures", text, samples)
        out = {one.name: one.left_out for one in origins if one.left_out}
        yield _by("banditmesh_origin_left_out", "Of how many arms what an origin tells is left out.", "origin", out)

    @staticmethod
    def _arms(state: StateView) -> Iterator[Family]:
        n_arms = len(state.arms) + sum(len(agent.arms) for agent in state.agents)
        yield gauge("banditmesh_arms", "How many arms the node chooses among, in all segments.", n_arms)
        if len(state.arms) > MAX_ARMS:
            return
        samples = [
            Sample(n, {"arm": arm.name, "source": source})
            for arm in state.arms
            for source, n in (("own", arm.own_count), ("heard", arm.heard_count))
        ]
        yield Family("gauge", "banditmesh_arm_observations", "Observations that the estimates contain.", samples)
        means = {arm.name: arm.mean for arm in state.arms if arm.mean is not None}
        yield _by(
            "banditmesh_arm_open_choices",
            "Choices without a reward.",
            "arm",
            {arm.name: arm.n_open for arm in state.arms},
        )
        silent = {arm.name: arm.n_silent for arm in state.arms}
        left_out = {arm.name: arm.n_left_out for arm in state.arms}
        yield _by("banditmesh_arm_left_out", "Origins that are left out of the estimate.", "arm", left_out)
        yield _by("banditmesh_arm_silent_choices", "Open choices that count as silence.", "arm", silent)
        yield _by("banditmesh_arm_mean", "The mean reward, as the node estimates it.", "arm", means)

    @staticmethod
    def _bandits(state: StateView) -> Iterator[Family]:
        """By bandit, all its segments together: labels must stay few."""
        arms = {DEFAULT: [*state.arms]}
        n_segments = {DEFAULT: 0}
        for agent in state.agents:
            arms.setdefault(agent.bandit, []).extend(agent.arms)
            n_segments[agent.bandit] = n_segments.get(agent.bandit, 0) + (agent.segment is not None)
        yield _by("banditmesh_bandit_segments", "Segments of a bandit.", "bandit", n_segments)
        samples = [
            Sample(n, {"bandit": bandit, "source": source})
            for bandit, some in arms.items()
            for source, n in (
                ("own", sum(arm.own_count for arm in some)),
                ("heard", sum(arm.heard_count for arm in some)),
            )
        ]
        text = "Observations that the estimates of a bandit contain."
        yield Family("gauge", "banditmesh_bandit_observations", text, samples)
        n_open = {bandit: sum(arm.n_open for arm in some) for bandit, some in arms.items()}
        yield _by("banditmesh_bandit_open_choices", "Choices without a reward.", "bandit", n_open)


def _by(name: str, text: str, label: str, values: Mapping[str, float], only_grows: bool = False) -> Family:
    """A family with one label."""
    samples = [Sample(value, {label: key}) for key, value in values.items()]
    return Family("counter", f"{name}_total", text, samples) if only_grows else Family("gauge", name, text, samples)
