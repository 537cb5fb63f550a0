"""Short explanations of the words on the page, as docs/terms.md has them."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, str]] = {
    "agent": "A node of the network that pulls arms and learns. Its neighbours are the agents that it has a link to.",
    "link": "A connection of two agents, used in both directions.",
    "arm, arm set": "Something that can be pulled, with one reward law for all agents; the arms that an agent may "
    "pull. The holders of an arm are the agents that have it in their arm set.",
    "pull, reward": "An agent's choice of an arm in a round, and the number that it pays.",
    "observation": "The pulled arm together with its reward.",
    "regret": "With every pull it grows by the difference between the best mean reward in the agent's own arm set and "
    "the mean reward of the pulled arm. Group regret is the sum of all agents' regrets.",
    "round, horizon": "A time step, in which every agent pulls once; the number of rounds.",
    "replicate": "One repetition of a run with other rewards, on the same network and the same arms.",
    "policy": "How an agent chooses an arm: UCB, KL-UCB, Thompson sampling and so on.",
    "protocol": "How messages travel: what becomes of a message at an agent that has not seen it.",
    "emission": "When an agent sends something of its own, and what.",
    "message": "What an agent sends about its pulls. A relayed message is still the same message.",
    "copy": "What one transmission brings to its receiver.",
    "transmission": "One message over one link in one direction; a message that five links carry is five of them.",
    "traffic": "Transmissions and bytes, by whatever became of them.",
    "ttl, hop": "How many links one after another a message may cross; one such crossing, which takes one round.",
    "relay, absorb, expire": "An agent relays a message to its other neighbours. One that absorbs it learns from it "
    "and sends it no further: under FwA because it has the arm. A message expires when its ttl has run out.",
    "duplicate": "A copy of a message that its receiver has seen before; it is dropped.",
    "fault, lost": "What goes wrong on purpose: copies are lost or late, links are full, agents are down.",
    "seed": "A number that decides all that is random: the same seed gives the same numbers.",
    "engine": "What computes a run. The compiled one is quick, the reference is written to be read; their numbers are "
    "the same.",
    "rules": "Sound: the simulation as the paper's text and theory have it. Published: as its author's code does it.",
    "configuration": "A protocol with its ttl and its emission.",
    "front": "The configurations that no other one beats in both regret and cost (the Pareto front).",
    "busiest link": "The direction of a link that carries the most; its peak is that of the busiest fiftieth of the "
    "horizon.",
    "budget": "The most that a configuration may cost to be recommended.",
    "bound": "What theory says that expected regret is at most (upper bound) or at least (lower bound).",
    "study": "The runs of one spec, as banditmesh run makes them and keeps them in a folder.",
    "swept key, point": "A setting that a study runs with several values, such as protocol.ttl; a combination of them.",
    "node": "An agent that is live: a process with a name.",
    "sidecar": "The HTTP server of a live node, by which programs and this page ask it.",
    "statistic": "Count and sum of the rewards of one arm that a node saw itself: what live nodes send each other.",
    "estimate": "What a node believes that an arm pays: the mean of all its rewards that the node saw or heard of.",
    "waiting, behind": "Statistics that wait to be sent, by key: whose it is, and of which arm; the newest of a key "
    "takes the place of others. Behind is how many seconds ago nothing waited the last time.",
    "refused, refusal": "What a node did not let in, and why: a link that may not be, or a statistic that cannot be.",
}
