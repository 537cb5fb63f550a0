"""Contact traces: who met whom in which round."""

from __future__ import annotations

from ...checks import shown
from ..dynamic import ContactTrace
from .files import AnyPath, NetworkFile
from .names import is_integer, naming, refuse_loop


def read_contact_trace(path: AnyPath, *, max_bytes: int | None = None) -> ContactTrace:
    r"""Read a contact trace: a round (from 1) and two agents on every line.

    Parameters
    ----------
    path : str or path
        The file, perhaps packed by gzip.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.

    Returns
    -------
    ContactTrace

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "contacts.txt")
    ...     _ = file.write_text("1 a b\n3 b c\n")
    ...     read_contact_trace(file).n_rounds
    3
    """
    file = NetworkFile(path, max_bytes)
    contacts = []
    for number, row in file.rows():
        if len(row) != 3:
            raise file.wrong_line(number, f"a contact is a round and two agents, got {len(row)} entries")
        if not is_integer(row[0]) or int(row[0]) < 1:
            raise file.wrong_line(number, f"a round must be an integer of at least 1, got {shown(row[0])}")
        refuse_loop(file, number, row[1], row[2:])
        contacts.append((int(row[0]), row[1], row[2]))
    name = naming(name for _, i, j in contacts for name in (i, j))
    return ContactTrace([(t, name(i), name(j)) for t, i, j in contacts])
