"""What passes between a node's links and the rest of it: statistics to and from the member, notices to and from the
board. It answers every question that links ask of their host, and has no tasks of its own.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import NoticeError
from ...version import __version__
from ..disk import Changes
from ..logs import note
from ..member import Member
from ..member.outboxes import Statistic
from . import codec
from .board import Board
from .codec import Hello
from .notices import Retirement

if TYPE_CHECKING:
    from ..transport.identity import Identity

LOG = logging.getLogger("banditmesh.live.node")


class Exchange:
    """The host of a node's links.

    Parameters
    ----------
    member : Member
        What hears and tells.
    board : Board
        The authority's notices.
    write : callable
        Has changes written.
    heard_something : callable
        Called when something may have to be sent, or a new life is needed.

    Attributes
    ----------
    protocol : str
        The node's protocol, as it is written.
    counts : Counter
        How many statistics came, and what was refused, by a name such as `refused_notice`.
    """

    def __init__(
        self,
        member: Member,
        board: Board,
        protocol: str,
        *,
        write: Callable[[Changes], Future[None]],
        heard_something: Callable[[], None],
        expelled_somebody: Callable[[], None],
    ) -> None:
        self.protocol = protocol
        self.counts: Counter[str] = Counter()
        self._member = member
        self._board = board
        self._write = write
        self._heard_something = heard_something
        self._expelled_somebody = expelled_somebody
        #: Linked neighbours of whose notices one was refused, and logged.
        self._noted: set[str] = set()

    def hello(self) -> Hello:
        """What this node says first."""
        member = self._member
        return Hello(
            member.mesh, member.node, member.shown_life.epoch, codec.VERSION, self.protocol, f"banditmesh {__version__}"
        )

    def heard(self, peer: str, statistics: Sequence[Any]) -> None:
        """Take statistics that came from a neighbour."""
        self.counts["heard"] += len(statistics)
        self._member.hear(statistics, peer)
        self._member.settle()
        self._heard_something()

    def malformed(self, peer: str, n: int) -> None:
        """Count what came in place of a statistic and was none."""
        self.counts["refused_malformed"] += n

    def noticed(self, peer: str, notices: Sequence[bytes]) -> None:
        """Take notices that came from a neighbour."""
        for data in notices:
            if self._board.knows(data):
                continue
            try:
                self.post(data, peer)
            except NoticeError as error:
                self.counts["refused_notice"] += 1
                # Once a link: a hostile member may send as many as it likes.
                level = logging.DEBUG if peer in self._noted else logging.WARNING
                self._noted.add(peer)
                note(LOG, level, "notice refused", peer=peer, reason=error)

    def post(self, data: bytes, sender: str | None = None) -> Future[None] | None:
        """Let a notice take effect, and spread.

        Returns
        -------
        asyncio.Future or None
            Done when it is durable; None if it was known.

        Raises
        ------
        NoticeError
            No trusted authority signed it, or there are too many already.
        """
        notice = self._board.post(data, sender)
        if notice is None:
            return None
        lives: list[tuple[str, int]] = []
        if isinstance(notice, Retirement):
            lives = list(notice.lives)
            self._member.retire(lives)
        else:
            self._expelled_somebody()
        note(LOG, logging.WARNING, "notice of the authority", says=notice, peer=sender or "local")
        written = self._write(Changes(notices=[data], retired=lives))
        self._heard_something()
        return written

    def statistics_for(self, peer: str, n_bytes: int) -> list[Statistic]:
        """The next statistics for a neighbour, of so many bytes at most."""
        return self._member.take(peer, n_bytes)

    def notices_for(self, peer: str, n_bytes: int) -> list[bytes]:
        """The next notices for a neighbour, of so many bytes at most."""
        return self._board.take(peer, n_bytes)

    def waiting(self, peer: str) -> int:
        """How many statistics and notices wait for a neighbour."""
        return self._member.waiting(peer) + self._board.waiting(peer)

    def link_up(self, peer: str) -> None:
        """Let everything that is offered wait for a new link."""
        self._member.link_up(peer)
        self._board.link_up(peer)

    def link_down(self, peer: str) -> None:
        """Discard what waited for a link."""
        self._member.link_down(peer)
        self._board.link_down(peer)
        self._noted.discard(peer)

    def banned(self, identity: Identity) -> str | None:
        """Why a member's certificate is not accepted any more, if so."""
        return self._board.why_banned(identity)
