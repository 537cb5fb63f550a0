"""Figures from plain arrays. Nothing here knows about engines, or about protocols beyond a name and its colour.

Every protocol keeps its colour and line style in all figures; both differ between protocols, so that a figure can be
read in grey. A band is one standard deviation over replicates on either side of the mean, or a confidence interval, and
the figure says which. What the user passes, or has set in matplotlib's rcParams, takes precedence over our own colours
and sizes. Sizes are those of print: a column is 3.4 inches wide and two are 7, with text of 7 points and more.
"""

from .curves import Curves, by_network, link_load, regret_and_messages
from .frontier import Panel, frontier
from .limits import regret_and_bounds
from .maps import heat_network, trajectory
from .network import Way, draw_network
from .palette import Chosen, style_of
from .places import fitted, places
from .points import against_delta, over_key, tradeoff
from .style import FATE_COLOURS, LEARNED, Look, as_bytes, map_colours, save

__all__ = [
    "FATE_COLOURS",
    "LEARNED",
    "Chosen",
    "Curves",
    "Look",
    "Panel",
    "Way",
    "against_delta",
    "as_bytes",
    "by_network",
    "draw_network",
    "fitted",
    "frontier",
    "heat_network",
    "link_load",
    "map_colours",
    "over_key",
    "places",
    "regret_and_bounds",
    "regret_and_messages",
    "save",
    "style_of",
    "tradeoff",
    "trajectory",
]
