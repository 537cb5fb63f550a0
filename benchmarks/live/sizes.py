"""How much memory a member takes at most: the formula that its caps make a bound.

Each term is what one thing costs at its worst: names of 128 bytes that take four bytes a character in memory, and
dictionaries that have just grown. Typical names and sizes take about half of it. Links are not in it: `LINK` is what
one takes whose other side sends as much as it may; an idle one takes a fiftieth of that.
"""

from __future__ import annotations

from typing import Final

from banditmesh.live.names import LAST_KEYS, OPEN_CHOICES, Caps

#: Bytes at most, for each ...
ENTRY: Final = 460  # statistic of another life, and of its own earlier lives
LIFE: Final = 330  # life of which there are entries
ORIGIN: Final = 900  # name that these lives have
ARM: Final = 3_000  # arm that is known, in each segment: 900 where it is not the node's own
SEGMENT: Final = 8_000  # segment of a bandit, its arms aside
WAITING: Final = 110  # statistic that waits for a link
CHOICE: Final = 45  # of the last choices, 100,000 unless configured
INTERVAL: Final = 90  # interval of closed tickets: at most every second of these choices
KEY: Final = 900  # of the last 100,000 callers' keys
RETIRED: Final = 1_000  # life that is retired
SIGNATURE: Final = 130  # statistic, told ones too, that is signed
CERTIFICATE: Final = 6_500  # certificate by which some are: the largest; those of `keys issue` take 1,700
OPEN_TICKET: Final = 500  # of the last choices, if open, of bandits with a lapse_reward
REST: Final = 200_000  # node
LINK: Final = 6_500_000  # link: its buffers, and the densest frame while it is heard


def most_bytes(
    *,
    entries: int,
    lives: int,
    origins: int,
    arms: int,
    segments: int = 0,
    waiting: int = 0,
    choices: int = 0,
    intervals: int = 0,
    keys: int = 0,
    retired: int = 0,
    signed: int = 0,
    certificates: int = 0,
    open_tickets: int = 0,
) -> int:
    """The most bytes that a member with these numbers of things takes.

    Parameters
    ----------
    entries, lives, origins, arms : int
        What its table has ever had at a time, its own earlier lives included.
    segments : int
        Segments of all its bandits; `arms` counts each arm in each of them.
    waiting : int
        Statistics that wait, all links together.
    choices, intervals, keys : int
        Choices, intervals of closed tickets and callers' keys that it remembers.
    retired : int
        Lives that are retired.
    signed, certificates : int
        Statistics that are signed, and certificates by which they are.
    open_tickets : int
        Open tickets that may lapse.
    """
    return (
        REST
        + ENTRY * entries
        + LIFE * lives
        + ORIGIN * origins
        + ARM * arms
        + SEGMENT * segments
        + WAITING * waiting
        + CHOICE * choices
        + INTERVAL * intervals
        + KEY * keys
        + RETIRED * retired
        + SIGNATURE * signed
        + CERTIFICATE * certificates
        + OPEN_TICKET * open_tickets
    )


def most_bytes_within(
    caps: Caps,
    links: int,
    retired: int = 0,
    open_choices: int = OPEN_CHOICES,
    bandits: int = 1,
    certificates: int | None = None,
    lapses: bool = False,
) -> int:
    """An upper bound on a member's memory in bytes, whatever it receives and with all its links stalled.

    `certificates` is how many the authority has issued, if statistics are signed; `lapses` whether open tickets lapse.
    """
    # As many entries again may be of the node's own earlier lives, each of them of another life and arm.
    entries = 2 * caps.entries
    return most_bytes(
        entries=entries,
        lives=entries,
        origins=caps.origins,
        arms=2 * caps.arms,
        segments=min(caps.segments * bandits, caps.arms),
        waiting=links * (entries + caps.arms),
        choices=open_choices,
        intervals=open_choices // 2,
        keys=LAST_KEYS,
        retired=retired,
        signed=0 if certificates is None else entries + caps.arms,
        certificates=min(certificates or 0, caps.entries + caps.origins),
        open_tickets=open_choices if lapses else 0,
    )
