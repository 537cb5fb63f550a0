"""The authority's notices that a node knows: what they say, and which of them still wait for whom.

A notice is known by what it says, not by its bytes: of several signatures under the same words the first is kept. It
goes to every link but the one that it came from, and all of them are offered when a link comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...errors import NoticeError
from .notices import Expulsion, Retirement

if TYPE_CHECKING:
    from ..transport.identity import Identity


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
        if isinstance(notice, Expulsion):
            self.expelled[notice.node] = max(notice.before, self.expelled.get(notice.node, 0))
        for peer, waiting in self._waiting.items():
            if peer != sender:
                waiting[data] = None
        return notice

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
        """The next notices for a link, of so many bytes at most."""
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
