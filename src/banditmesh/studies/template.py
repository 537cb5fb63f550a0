"""The spec that `banditmesh new` prints: every table with comments, and a study that takes a few seconds as it is."""

from __future__ import annotations

from typing import Final

TEMPLATE: Final = """\
# A study for banditmesh. Run it with:   banditmesh run study.toml --out results
# The same command continues a study that was interrupted, and one with more replicates or more swept values.
# Any key can be overridden: --set horizon=500. Name your own classes as in name = "my_module:MyProtocol".

version = 1            # of this format
name = "first study"
horizon = 200          # rounds
replicates = 4         # repetitions of every point, with the same rewards at every point
seed = 0               # decides the replicates' seeds
rules = "sound"        # or "published": as the paper's author's code does it
record_every = 10      # keep every 10th round for curves; 0 keeps only the last
# every = 1            # every agent pulls in each round; 2: in every second one
# trim = 0             # how many liars agents withstand, by testing the statistics that they merge
# engine = "auto"

[network]              # er, ba, sbm (alone: the paper's), watts_strogatz, grid, path, ring, star, complete,
name = "er"            # random_regular, random_geometric, dynamic-er, or file with a path
n = 20
p = 0.15
seed = 3

# [dynamics]           # edge-markovian (p, q), link-failures (failure) or churn (leave, join)
# name = "edge-markovian"
# p = 0.01
# q = 0.1

[arms]
law = "gaussian"       # or "bernoulli"; means are uniform on [0, 1] unless given as means = [...]; or "data", for
                       # files: catalogue, and laws or a log (then perhaps rewards = "replay"); see the page on data
n_arms = 10
per_agent = 4
sigma = 1.0
seed = 0

[policy]               # ucb, klucb, thompson, ucb-v, moss, epsilon-greedy
name = "ucb"
alpha = 3.0
# first_pulls = "unknown"   # do not force arms that were heard about; "each" by default

# [memory]             # what agents forget: everything (nothing), discount (gamma), window (rounds, blocks)
# name = "discount"
# gamma = 0.995

[protocol]             # none, irs, gossip, probabilistic, fwa, flooding, tree, centralised; or a published algorithm:
name = "fwa"           # gosine, dducb, dpe2, coop-se, odc and so on; see the page on algorithms
ttl = 3
# stop = 0.5           # for probabilistic
# fanout = 1           # for gossip

# [emission]           # when an agent sends, and what: every-pull, growth (factor), contested; or default
# name = "growth"
# factor = 0.25

# [faults]             # what goes wrong; by default nothing
# loss = 0.1           # of the transmissions
# delay = 1            # rounds by which every transmission is late
# jitter = 0.5         # mean of a random delay on top
# link_cap = 10        # most transmissions on a link in one direction and round
# reward_delay = "geometric(10)"    # rounds until a reward is observed: a number, uniform(1, 20), never, never(500)
# outages = {down = 0.01, up = 0.1, memory = true}                    # agents that go down and come back
# corruption = {kind = "gaussian", probability = 0.1, scale = 1.0}    # or "zero", "heavy"

# Every list is an axis of the grid; a value that a point does not use does not multiply it.
[sweep]
protocol.name = ["none", "irs", "fwa", "flooding"]
protocol.ttl = [2, 4]
# network.p = [0.1, 0.2]
# arms.per_agent = [2, 4, 8]
# policy.alpha = [1.0, 3.0]
# faults.loss = [0.0, 0.1, 0.3]
# protocol = ["fwa(4)", "flooding(8)+growth(0.25)"]      # protocols written out, instead of protocol.name and ttl
# network = [{name = "ring", n = 20}, {name = "star", n = 20}]
"""
