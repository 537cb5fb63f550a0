"""File locks between processes, which end with the process that holds them, however it ends.

`flock` on most systems, `msvcrt.locking` on Windows. On a network file system a lock is as good as that system makes
it.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt

    def take(descriptor: int) -> None:
        """Lock an open file until it is closed; `OSError` at once if another holds it, in this process or elsewhere."""
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def take(descriptor: int) -> None:
        """Lock an open file until it is closed; `OSError` at once if another holds it, in this process or elsewhere."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
