"""The scalar rules, compiled. Nothing is written here: each is the Python function that the reference engine calls."""

from __future__ import annotations

from ... import arms, draws
from ...networks import dynamic
from ...policies.ucb import UCB
from ...protocols.flooding import ProbabilisticFlooding
from .compiling import helper, rebind, scalar

philox = scalar(draws.philox)
uniform = scalar(rebind(draws.uniform, philox=philox))
normal_quantile = scalar(draws.normal_quantile)
law_quantile = scalar(rebind(arms.law_quantile, normal_quantile=normal_quantile))
geometric_skip = scalar(draws.geometric_skip)
edge_markovian_step = helper(rebind(dynamic.edge_markovian_step, uniform=uniform, geometric_skip=geometric_skip))

#: The one built-in policy and the one built-in relay rule that draws. A user's own take their places, see `specialise`.
index_rule = scalar(UCB.index)
random_relay = scalar(ProbabilisticFlooding.relay)
