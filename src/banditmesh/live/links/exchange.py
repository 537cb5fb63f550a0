"""What passes between a node's links and the rest of it: statistics to and from the member, notices of the authority to
and from the board. The exchange answers every question that links ask of their host, and runs no tasks.

A notice is known by what it says, not by its bytes: of several signatures under the same words the first is kept. It
goes to every link but the one that it came from, and all of them are offered when a link comes up.

What is signed is heard twice: once to see whether it would change anything, and once more when its signature was found
to be right, off the event loop. Meanwhile nothing more is read from its link, and all others go on.

A certificate that is lacking, and all that is known of an origin whose rows have left, is asked for: each at most
once a second from the same neighbour.
"""

from __future__ import annotations

import logging
import math
from asyncio import Future
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...errors import NoticeError
from ...version import __version__
from ..certificates import Certificate
from ..disk import Changes
from ..forgetting import EVERYTHING
from ..logs import note
from ..member import Member
from ..statistics import Statistic, certificate_id
from . import codec
from .codec import Hello, Wanted
from .notices import Expulsion, Retirement, read

if TYPE_CHECKING:
    from ..signing import Signing
    from ..transport.identity import Identity

#: How many seconds pass before the same neighbour is asked for the same once more.
ASK_EVERY: Final = 1.0


class Board:
    """The notices of a node.

    Parameters
    ----------
    verify : callable
        What signed bytes say; a `NoticeError` if no trusted authority signed them.
    most : int
        How many are kept; more are refused.

    Attributes
    ----------
    notices : dict
        By what they say: their bytes, as they were signed.
    expelled : dict
        By member: its certificates from before this time are not accepted any more.
    """

    def __init__(self, verify: Callable[[bytes], Retirement | Expulsion], most: int) -> None:
        self.expelled: dict[str, int] = {}
        self._verify = verify
        self._most = most
        self.notices: dict[Retirement | Expulsion, bytes] = {}
        self._bytes: set[bytes] = set()
        self._waiting: dict[str, dict[bytes, None]] = {}

    def __len__(self) -> int:
        return len(self.notices)

    def knows(self, data: bytes) -> bool:
        """Whether these very bytes are kept."""
        return data in self._bytes

    def post(self, data: bytes, sender: str | None = None) -> Retirement | Expulsion | None:
        """Keep a notice, and let it wait for all links but the sender's; what it says, or None if that was known.

        Raises
        ------
        NoticeError
            No trusted authority signed it, or there are too many already.
        """
        notice = self._verify(data)
        if notice in self.notices:
            return None
        if len(self.notices) >= self._most:
            raise NoticeError(f"at most {self._most} notices are kept (caps.notices), got one more")
        self.notices[notice] = data
        self._bytes.add(data)
        self._expel(notice)
        for peer, waiting in self._waiting.items():
            if peer != sender:
                waiting[data] = None
        return notice

    def remember(self, data: bytes) -> None:
        """Let a stored notice stay in effect whose authority is not trusted any more; it is not passed on.

        Raises
        ------
        NoticeError
            It is no notice.
        """
        self._expel(read(data))

    def _expel(self, notice: Retirement | Expulsion) -> None:
        if isinstance(notice, Expulsion):
            self.expelled[notice.node] = max(notice.before, self.expelled.get(notice.node, 0))

    def why_banned(self, identity: Identity) -> str | None:
        """Why a certificate is not accepted any more, if so."""
        before = self.expelled.get(identity.node)
        if before is None or identity.not_before >= before:
            return None
        return f"the authority has expelled {identity.node!r}: certificates issued before that do not count"

    def link_up(self, peer: str) -> None:
        """Let all notices wait for a new link."""
        self._waiting[peer] = dict.fromkeys(self.notices.values())

    def link_down(self, peer: str) -> None:
        """Discard what waited for a link."""
        del self._waiting[peer]

    def waiting(self, peer: str) -> int:
        """How many notices wait for a link."""
        return len(self._waiting.get(peer, ()))

    def take(self, peer: str, n_bytes: int) -> list[bytes]:
        """The next notices for a link, of at most `n_bytes`."""
        taken: list[bytes] = []
        waiting: Iterable[bytes] = self._waiting.get(peer, {})
        for data in waiting:
            n_bytes -= len(data) + 5
            if n_bytes < 0 and taken:
                break
            taken.append(data)
        for data in taken:
            del self._waiting[peer][data]
        return taken


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
    look : callable
        Called when something was heard: a new life may be needed.
    member_expelled : callable
        Called when the authority has expelled a member.
    clock : callable
        The time of day, in seconds.

    Attributes
    ----------
    protocol : str
        The node's protocol, as it is written.
    bandits : list of (str, str)
        The name and the memory, as it is written, of each bandit; empty for no memory.
    counts : Counter
        How many statistics came, and what was refused, by a name such as `refused_notice`.
    n_checking : int
        How many statistics wait for their signatures to be checked.
    signing : Signing or None
        Checks signatures; None where there are no keys.
    """

    def __init__(
        self,
        member: Member,
        board: Board,
        protocol: str,
        *,
        write: Callable[[Changes], Future[None]],
        look: Callable[[], None],
        member_expelled: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.protocol = protocol
        self.bandits = [("default", "")]
        self.counts: Counter[str] = Counter()
        self._member = member
        self._board = board
        self._write = write
        self._look = look
        self._member_expelled = member_expelled
        self.n_checking = 0
        self.signing: Signing | None = None
        self._clock = clock
        #: By linked neighbour: what wakes its link.
        self._wakes: dict[str, Callable[[], None]] = {}
        #: Linked neighbours of whose notices one was refused, and logged.
        self._noted: set[str] = set()
        #: By linked neighbour: what is lacking, certificates by id and origins by name, and when it was last asked for.
        self._wanted: dict[str, dict[bytes | str, None]] = {}
        self._asked_at: dict[str, dict[bytes | str, float]] = {}

    def hello(self) -> Hello:
        """What this node says first."""
        member = self._member
        return Hello(
            member.mesh,
            member.node,
            member.shown_life.epoch,
            codec.VERSION,
            self.protocol,
            f"banditmesh {__version__}",
            self.bandits,
        )

    def other_memories(self, hello: Hello) -> list[str]:
        """A line for each bandit that a neighbour forgets by another memory; one of version 1 says nothing of them."""
        ours = dict(self.bandits)
        return [
            f"bandit {name!r}: theirs is {theirs or EVERYTHING!r}, ours {ours[name] or EVERYTHING!r}"
            for name, theirs in hello.bandits
            if name in ours and ours[name] != theirs
        ]

    @property
    def has_keys(self) -> bool:
        """Whether signatures are checked."""
        return self.signing is not None

    async def heard(self, peer: str, statistics: Sequence[Statistic]) -> int:
        """Take statistics that came from a neighbour; how many signatures were wrong."""
        self.counts["heard"] += len(statistics)
        unchecked = self._hear(peer, statistics)
        if not unchecked or self.signing is None:
            return 0
        self.n_checking += len(unchecked)
        try:
            right = await self.signing.check(unchecked)
        except BaseException:
            self._member.counters["refused_unchecked"] += len(unchecked)  # the link has ended
            raise
        finally:
            self.n_checking -= len(unchecked)
        if right:
            self._hear(peer, right, is_checked=True)
        n_bad = len(unchecked) - len(right)
        self._member.counters["refused_bad_signature"] += n_bad
        return n_bad

    def _hear(self, peer: str, statistics: Sequence[Statistic], is_checked: bool = False) -> list[Statistic]:
        unchecked = self._member.hear(statistics, peer, is_checked)
        self._member.settle()
        self._want(peer, self._member.take_unknown())
        self._look()
        self.wake()
        return unchecked

    async def certified(self, peer: str, ders: Sequence[bytes]) -> int:
        """Take certificates that came from a neighbour; how many were bad."""
        certificates = self._member.certificates
        new = [der for der in ders if not certificates.knows(certificate_id(der))]
        if not new or self.signing is None:
            return 0
        n_bad = 0
        for der, found in zip(new, await self.signing.read(new), strict=True):
            reason: str | None
            if isinstance(found, Certificate):
                reason = certificates.add(found, self._clock())
            else:
                reason = found.reason
                n_bad += found.is_bad
                if not found.is_bad:
                    certificates.refuse(certificate_id(der), found.reason)
            if reason is not None:
                self.counts[f"came_{reason}"] += 1
        return n_bad

    def certificates(self, ids: Iterable[bytes]) -> list[bytes]:
        """Certificates as they travel, as far as they are at hand."""
        found = map(self._member.certificates.der_of, ids)
        return [der for der in found if der is not None]

    def want(self, names: Iterable[str]) -> None:
        """Ask all neighbours for what they have of these origins."""
        names = list(names)
        for peer in self._wanted:
            self._want(peer, names)
        self._look()
        self.wake()

    def _want(self, peer: str, things: Iterable[bytes | str]) -> None:
        if peer not in self._wanted:
            return
        now, asked, wanted = self._clock(), self._asked_at[peer], self._wanted[peer]
        for thing in things:
            if abs(now - asked.get(thing, -math.inf)) >= ASK_EVERY and len(wanted) < codec.MAX_WANTED:
                wanted[thing] = None

    def wanted_for(self, peer: str) -> Wanted | None:
        """What a neighbour is to be asked for, if anything."""
        if not (wanted := self._wanted.get(peer)):
            return None
        now, asked = self._clock(), self._asked_at[peer]
        for thing in [one for one, when in asked.items() if abs(now - when) >= ASK_EVERY]:
            del asked[thing]
        asked.update(dict.fromkeys(wanted, now))
        self._wanted[peer] = {}
        names = [one for one in wanted if isinstance(one, str)]
        return Wanted([one for one in wanted if isinstance(one, bytes)], names)

    def asked_for(self, peer: str, certificates: Collection[bytes], names: Collection[str]) -> None:
        """Offer a neighbour once more what it lacks."""
        self._member.offer_again(peer, certificates, names)

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
            self._member_expelled()
        note(LOG, logging.WARNING, "notice of the authority", says=notice, peer=sender or "local")
        written = self._write(Changes(notices=[data], retired=lives))
        self._look()
        self.wake()
        return written

    def statistics_for(self, peer: str, n_bytes: int) -> list[Statistic]:
        """The next statistics for a neighbour, of at most `n_bytes`."""
        return self._member.take(peer, n_bytes)

    def notices_for(self, peer: str, n_bytes: int) -> list[bytes]:
        """The next notices for a neighbour, of at most `n_bytes`."""
        return self._board.take(peer, n_bytes)

    def waiting(self, peer: str) -> int:
        """How many statistics and notices wait for a neighbour."""
        return self._member.waiting(peer) + self._board.waiting(peer) + len(self._wanted.get(peer, ()))

    def wake(self) -> None:
        """Wake the links for which something waits."""
        for peer, wake in self._wakes.items():
            if self.waiting(peer):
                wake()

    def link_up(self, peer: str, version: int, wake: Callable[[], None]) -> None:
        """Let everything that is offered wait for a new link, which speaks that version and is woken by `wake`."""
        self._wakes[peer] = wake
        if version > 1:
            self._wanted[peer], self._asked_at[peer] = {}, {}
        self._member.link_up(peer)
        self._board.link_up(peer)

    def link_down(self, peer: str) -> None:
        """Discard what waited for a link."""
        self._wakes.pop(peer, None)
        self._member.link_down(peer)
        self._board.link_down(peer)
        self._wanted.pop(peer, None)
        self._asked_at.pop(peer, None)
        self._noted.discard(peer)

    def banned(self, identity: Identity) -> str | None:
        """Why a member's certificate is not accepted any more, if so."""
        return self._board.why_banned(identity)
