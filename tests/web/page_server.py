"""The page in a process of its own, which can reach nobody but this machine."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CUT_OFF = Path(__file__).parent / "cut_off"
PROGRAM = [sys.executable, "-c", "from banditmesh.cli import main; main()"]


def cut_off(outside):
    """The environment of processes that can reach nobody but this machine; what they try is noted in a file."""
    paths = [str(CUT_OFF), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "BANDITMESH_OUTSIDE": str(outside)}


@contextlib.contextmanager
def serving(*options):
    """A server in a process of its own, on a free port: its address. It fails if it tried to reach another machine."""
    with tempfile.TemporaryDirectory() as folder:
        outside = Path(folder) / "outside"
        with _running(options, cut_off(outside)) as address:
            yield address
        assert not outside.exists(), outside.read_text()


@contextlib.contextmanager
def _running(options, environment):
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--no-open", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Both engines give the same numbers; the reference compiles nothing, which would take longer than the tests.
        env={**environment, "PYTHONUNBUFFERED": "1", "NUMBA_DISABLE_JIT": "1"},
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        process.stdout.close()
