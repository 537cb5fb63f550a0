"""The agent: choosing, observing, hearing, relaying and emitting, as one state machine for every driver.

    messages   what travels, and what becomes of it
    agent      chooses, observes and learns; the calls that a driver makes
    courier    what an agent sends, and what it does with what it receives: the part that depends on the protocol
    relaying   the courier that relays messages hop by hop
    merging    the courier that sums up along a tree
    telling    when an agent tells of an arm, and when it repeats itself

Nothing here knows of rounds, opens a socket, sleeps, logs or draws. What an agent cannot decide by itself is handed in:
its chances, its memory of the messages that it has seen, and the ids of the messages that it makes.
"""

from .agent import Agent, Choice
from .courier import Courier, Silent
from .merging import Merging
from .messages import Copy, Fate, Message, Parcel, Receipt
from .relaying import Chances, Everything, Relaying, Seen, check_decision, fate_of

__all__ = [
    "Agent",
    "Chances",
    "Choice",
    "Copy",
    "Courier",
    "Everything",
    "Fate",
    "Merging",
    "Message",
    "Parcel",
    "Receipt",
    "Relaying",
    "Seen",
    "Silent",
    "check_decision",
    "fate_of",
]
