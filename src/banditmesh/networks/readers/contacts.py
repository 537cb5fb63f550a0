"""Contact traces: which agents met in which round."""

from __future__ import annotations

from ...checks import LARGEST, shown
from ...files.contents import AnyTable
from ..dynamic import ContactTrace
from .files import NetworkFile
from .names import is_integer, naming


def read_contact_trace(path: AnyTable, *, max_bytes: int | None = None, self_loops: str = "refuse") -> ContactTrace:
    r"""Read a contact trace: a round (from 1) and two agents on every line.

    Parameters
    ----------
    path : str, path or DataFrame
        The file, perhaps gzipped; or a DataFrame with these three columns first.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 32 MiB if not given.
    self_loops : str
        "refuse" contacts of an agent with itself, or "drop" them.

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
    file = NetworkFile(path, max_bytes, self_loops=self_loops)
    contacts = []
    for number, row in file.rows(n_names=3):
        if len(row) != 3:
            raise file.wrong_line(number, f"a contact is a round and two agents, got {len(row)} entries")
        if not is_integer(row[0]) or not 1 <= int(row[0]) <= LARGEST:
            raise file.wrong_line(number, f"a round must be an integer of at least 1, got {shown(row[0])}")
        if "" in row:
            raise file.wrong_line(number, f"an agent must have a name, got an empty entry in {shown(row)}")
        if not file.is_loop(number, row[1], row[2:]):
            contacts.append((int(row[0]), row[1], row[2]))
    if not contacts:
        raise file.wrong("must describe contacts of two agents, got self-loops alone")
    name = naming([name for _, i, j in contacts for name in (i, j)], file)
    return ContactTrace([(t, name(i), name(j)) for t, i, j in contacts])
