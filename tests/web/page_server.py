"""The page in a process of its own."""

import contextlib
import os
import re
import subprocess
import sys

PROGRAM = [sys.executable, "-c", "from banditmesh.cli import main; main()"]


@contextlib.contextmanager
def serving(*options):
    """A server in a process of its own, on a free port: its address."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--no-open", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Both engines give the same numbers; the reference compiles nothing, which would take longer than the tests.
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NUMBA_DISABLE_JIT": "1"},
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
