"""Short explanations of the words on the page, the same as in the docs."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, str]] = {
    "agent": "A learner, one at each node of the network. In every round it pulls one arm of its arm set.",
    "arm": "Something that can be tried and pays a random reward: an advert, a channel, a treatment.",
    "arm set": "The arms that an agent may pull. An agent that has an arm is a holder of it.",
    "reward": "What a pull pays; an observation is a reward that an agent knows of, its own or another's.",
    "regret": "How much less an agent earned, in expectation, than with its best arm all the time. Group regret is the "
    "sum over all agents.",
    "policy": "How an agent chooses an arm from what it knows.",
    "protocol": "How messages travel: who relays them, and who does not.",
    "message": "An observation on its way to other agents, hop by hop: one hop, over one link, takes one round.",
    "ttl": "Time to live: how many hops a message may travel.",
    "emission": "When an agent sends of its own, and what: every pull, or only when it knows enough that is new.",
    "transmission": "One message over one link in one direction: what traffic counts. Messages in curves are these.",
    "relay, absorb, expire": "A receiver relays a message to its other neighbours; one that absorbs it uses it and "
    "sends it no further (FwA: because it has the arm); a message expires when its ttl has run out.",
    "duplicate": "A copy of a message that its receiver has seen before; it is dropped.",
    "round, horizon": "All agents pull once in a round; the horizon is how many rounds there are.",
    "replicate": "The whole simulation once more, with other rewards. Bands show one standard deviation over them.",
    "rules": "Sound: as in the paper's text and theory. Published: as in its author's code, which gives its figures.",
    "front": "The configurations that no other beats in both regret and cost (the Pareto front).",
    "sidecar": "The HTTP server beside a live node, by which programs and this page ask it.",
}
