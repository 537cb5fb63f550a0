"""The examples beside a node run as they are."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sidecars import Beside, a_node

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"
#: What runs each example, and what it is given; programs that a machine lacks are left out.
PROGRAMS = {"client.py": [sys.executable, "-W", "error"], "client.mjs": ["node"], "curl.sh": ["sh"]}
NEEDED = {"client.mjs": "node", "curl.sh": "curl"}


@pytest.fixture
def beside(tmp_path):
    with Beside(a_node(tmp_path)) as running:
        yield running


@pytest.mark.parametrize("name", [name for name in PROGRAMS if shutil.which(NEEDED.get(name, sys.executable))])
def test_example_runs(beside, name):
    arguments = [] if name == "curl.sh" else [beside.url, "20"]
    done = subprocess.run(
        [*PROGRAMS[name], EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NODE": beside.url},
    )
    assert done.returncode == 0, done.stderr
    n_counted = sum(arm.own_count for arm in beside.do(beside.node.state).arms)
    if name == "curl.sh":
        choice, first, second, _ = done.stdout.splitlines()
        assert '"arm":"red"' in choice
        assert [first, second] == ['{"answer":"counted"}', '{"answer":"already_counted"}']
        assert n_counted == 1
    else:
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["red", "blue"]
        assert n_counted == 20


def test_every_example_is_described():
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in text for path in EXAMPLES.iterdir() if path.name != "README.md")


def test_the_unit_can_be_read_and_runs_the_verb():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(EXAMPLES / "banditmesh-node.service")
    assert unit["Service"]["ExecStart"].endswith("banditmesh node --config /etc/banditmesh/node.toml")
    assert unit["Service"]["ProtectSystem"] == "strict"
