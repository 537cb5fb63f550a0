"""The walk-through does what it says, block by block, in a shell."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "live" / "walkthrough.md"
#: The ports that the page names.
PORTS = ("7701", "7702", "7703", "7781", "7782", "7783")


def free_ports(n):
    """Ports that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def script():
    blocks = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    # The page waits a moment for the last statistics; a busy machine may need longer.
    text = "set -eu\n" + "\n".join(blocks).replace("sleep 1\n", "sleep 5\n").replace("sleep 3\n", "sleep 8\n")
    for named, free in zip(PORTS, free_ports(len(PORTS)), strict=True):
        text = text.replace(named, free)
    return text


def test_walkthrough(tmp_path):
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script()], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr + "".join(path.read_text() for path in tmp_path.glob("*.log"))
    rows = re.findall(r"^([abc]) +ready +(\d/\d) +(\d+)", done.stdout, re.MULTILINE)
    assert rows == [
        *[("a", "1/1", "50"), ("b", "2/2", "0"), ("c", "1/1", "50")],
        *[("a", "1/1", "75"), ("b", "2/2", "0"), ("c", "1/1", "75")],
    ]
    starts = [found.start() for found in re.finditer(r'\{"mesh":', done.stdout)]
    first, last = (json.JSONDecoder().raw_decode(done.stdout, start)[0] for start in starts)
    assert first["warnings"] == last["warnings"] == []
    assert (first["node"], first["n_choices"]) == ("a", 50)
    assert (last["node"], last["n_choices"], last["start"]) == ("c", 75, 1)
    arms = {arm["name"]: arm for arm in last["arms"]}
    # Each end pulled 75 times. All that the other saw of green and blue came through; red was absorbed on the way.
    assert sum(arm["own_count"] for arm in arms.values()) == 75
    assert arms["red"]["heard_count"] == 0
    assert arms["green"]["heard_count"] + arms["blue"]["heard_count"] > 25
    for name in "abc":
        log = (tmp_path / f"{name}.log").read_text()
        assert "node ended" in log
        assert "Traceback" not in log
