"""The words of reports, explained in plain sentences: those of docs/terms.md in short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

#: Words that every report uses, in the order in which they build on each other.
WORDS: Final = {
    "agent, arm": (
        "agents sit on the nodes of a network. Each may pull the arms of its arm set; an arm pays a random reward, "
        "with the same mean to every agent."
    ),
    "round, horizon": "in each round every agent pulls one arm; the horizon is the number of rounds.",
    "group regret": (
        "with every pull an agent's regret grows by how much less the pulled arm pays on average than the best arm of "
        "its arm set. Group regret is the sum over all agents."
    ),
    "link, message": (
        "agents that are joined by a link are neighbours. After a pull an agent sends a message, which says what was "
        "pulled and what it paid; agents that have that arm learn from it. To relay it is to pass it on to all "
        "neighbours."
    ),
    "transmission": (
        "one message over one link in one direction. A message that five links carry is five transmissions. In CSV and "
        "JSON files their number is named messages."
    ),
    "ttl": "how many links in a row a message may cross; the number in fwa(4).",
    "replicate": "one repetition with other rewards on the same arms.",
    "published rules, sound rules": (
        "what exactly happens to a message: as in the paper's author's code, or as in the paper's text and theory."
    ),
}

#: Protocols and emissions by their names.
PARTS: Final = {
    "none": "no cooperation: nothing is sent.",
    "irs": "Instant Reward Sharing: every message goes to the neighbours, and is not relayed.",
    "gossip": "every message goes to one neighbour, drawn at random, and on from there.",
    "probabilistic": "Probabilistic Flooding: as Flooding, but a receiver stops a message with probability 0.5.",
    "fwa": "Flooding with Absorption: a receiver that has the message's arm keeps it; any other relays it.",
    "flooding": "every receiver relays every message that it has not seen before.",
    "tree": (
        "agents add up counts and sums along a spanning tree, and tell each neighbour in it what lies on their own "
        "side; the pause is the fewest rounds between two messages about an arm on a link."
    ),
    "centralised": "every agent knows every reward at once; no network could do that, it is there to compare with.",
    "every-pull": "an emission: an agent sends after every pull.",
    "growth": (
        "an emission: an agent sends its count and sum of an arm only when the count has grown by this share since it "
        "last did."
    ),
    "contested": "an emission: an agent sends what it observes unless the arm seemed its best one when it was pulled.",
}


def words_of(names: Iterable[str], known: Mapping[str, type]) -> dict[str, str]:
    """The words of a report on these protocols: those of all reports, and what each part of them does.

    Parameters
    ----------
    names : iterable of str
        Protocols as they are written, as in "fwa(4)+growth(0.1)".
    known : mapping from str to class
        Classes by name; the first line of its docstring explains one that is not explained here.

    Examples
    --------
    >>> list(words_of(["fwa(4)+growth(0.1)", "mine"], {"mine": int}))[-3:]
    ['fwa', 'growth', 'mine']
    """
    found = dict(WORDS)
    for part in dict.fromkeys(part for name in names for part in re.findall(r"(?:^|\+)([\w-]+)", name)):
        if part in PARTS:
            found[part] = PARTS[part]
        elif part in known:
            found[part] = (known[part].__doc__ or "").strip().partition("\n")[0]
    return found
