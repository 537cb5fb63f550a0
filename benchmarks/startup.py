"""What a user waits for: imports, help, the first simulation on a machine and every later one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tables import Column, Row, Section
from timing import wall_time

ONE = "import banditmesh as bm; bm.simulate(bm.Problem.paper('er'), bm.FwA(4), seed=0, engine='compiled')"
ALL = """
import banditmesh as bm
for name in ("er", "dynamic-er"):
    problem = bm.Problem.paper(name)
    draws = bm.Gossip(4), bm.ProbabilisticFlooding(4, 0.5)
    for protocol in (bm.NoCooperation(), bm.IRS(), *draws, bm.FwA(4), bm.Flooding(4)):
        for rules in ("sound", "published"):
            bm.simulate(problem, protocol, horizon=50, seed=0, rules=rules, engine="compiled")
"""
#: One value of a setting for each point: the time is that of reading and checking, not of the grid.
PARSE = """
import banditmesh as bm
bm.parse_spec("replicates = 1\\nsweep.{key} = " + str([{value} for i in range({n})])).n_points
"""


def measure(quick: bool) -> list[Row]:
    repeats, few = (1, 0) if quick else (10, 2)
    bare = run_python("pass", repeats)
    rows = [
        {"what": "python -c pass", "seconds": bare},
        {"what": "import banditmesh, over bare Python", "seconds": run_python("import banditmesh", repeats) - bare},
        {"what": "banditmesh --help", "seconds": run([command("banditmesh"), "--help"], repeats)},
    ]
    if few:
        rows.append({"what": "first simulation ever, empty cache: FwA on ER", "seconds": run_cold(ONE, few)})
        rows.append({"what": "six protocols, ER and dynamic ER, both rules, empty cache", "seconds": run_cold(ALL, 1)})
    run_python(ONE, 1)
    rows.append({"what": "script: import and FwA on ER, T = 1000, warm cache", "seconds": run_python(ONE, repeats)})
    n = 1000 if quick else 100_000
    for key, value in {"horizon": "1 + i", "policy.alpha": f"1 + i / {n}", "faults.loss": f"i / {n}"}.items():
        seconds = run_python(PARSE.format(key=key, value=value, n=n), repeats)
        rows.append({"what": f"script: import and parse a spec with {n:,} values of {key}", "seconds": seconds})
    return rows


def run_python(script: str, repeats: int) -> float:
    return run([sys.executable, "-c", script], repeats)


def run_cold(script: str, repeats: int) -> float:
    """With a new and empty cache folder each time."""

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            once([sys.executable, "-c", script], {"NUMBA_CACHE_DIR": folder})

    return wall_time(work, repeats)[0]


def run(words: list[str], repeats: int) -> float:
    return wall_time(lambda: once(words, {}), repeats)[0]


def once(words: list[str], environment: dict[str, str]) -> None:
    # As after an installation: Python keeps what it has compiled.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(words, env={**kept, **environment}, check=True, capture_output=True)


def command(name: str) -> str:
    """The command that was installed beside this interpreter."""
    return str(Path(sys.executable).with_name(name))


SECTION = Section(
    name="startup",
    title="Start-up",
    note="Wall time of whole processes, least of several repeats, files in the system's cache.",
    columns=(Column("what", "what"), Column("seconds", "seconds", ".3f")),
    measure=measure,
)
