"""The agent: choosing, observing, hearing, relaying and emitting, as one state machine for every driver.

    agent      chooses, observes and learns; the calls that a driver makes
    place      what a driver hands to a protocol, which seats an agent there
    trimming   what an agent believes of what others tell, when some of them may lie

What an agent sends, and what it does with what it receives, depends on the protocol and is defined next to it:
messages and their fates in `protocols/messages.py`, the contract of couriers in `protocols/courier.py`.

Nothing here knows about rounds, opens a socket, sleeps, logs or draws. What an agent cannot decide by itself is passed
in: its random choices, its memory of the messages that it has seen, and the ids of the messages that it makes.
"""

from ..protocols.courier import Courier, Silent
from ..protocols.merging import Merging
from ..protocols.messages import Copy, Fate, Message, Note, Parcel, Receipt
from ..protocols.relaying import AllIds, Chances, Relaying, Seen, check_decision, fate_of
from .agent import Agent, Choice
from .place import LinkId, Place, link_ids

__all__ = [
    "Agent",
    "AllIds",
    "Chances",
    "Choice",
    "Copy",
    "Courier",
    "Fate",
    "LinkId",
    "Merging",
    "Message",
    "Note",
    "Parcel",
    "Place",
    "Receipt",
    "Relaying",
    "Seen",
    "Silent",
    "check_decision",
    "fate_of",
    "link_ids",
]
