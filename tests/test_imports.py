"""Importing costs little and changes nothing; every public name can be reached."""

import json
import subprocess
import sys

import pytest

import banditmesh as bm

HEAVY = ("numba", "networkx", "scipy", "pandas", "matplotlib", "xarray", "rich")
LIVE = ("starlette", "uvicorn", "prometheus_client", "cryptography")
WEB = ("nicegui", "fastapi", "socketio", "uvicorn")


def modules_after(statement):
    """The top-level modules that a fresh interpreter has after a statement."""
    script = f"import json, sys; {statement}; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import banditmesh",
        "import banditmesh.cli",
        "import banditmesh as bm; bm.UCB(), bm.FwA(4), bm.arms.Bernoulli(0.5)",
        "import banditmesh as bm; bm.Problem, bm.simulate, bm.compare, bm.Result",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement):
    assert modules_after(statement).isdisjoint(HEAVY)


def test_importing_the_package_imports_not_even_numpy():
    assert "numpy" not in modules_after("import banditmesh")


def test_commands_import_nothing_of_the_live_mesh_and_the_page_before_it_is_needed():
    assert modules_after("import banditmesh.cli").isdisjoint({*LIVE, *WEB})


def test_a_client_needs_the_standard_library_alone():
    modules = modules_after("from banditmesh.live import Client; Client('http://127.0.0.1:7780')")
    assert modules - {"banditmesh", "__main__"} <= sys.stdlib_module_names | modules_after("pass")


def test_a_node_runs_without_numpy_and_without_networks_and_algorithms(tmp_path):
    (tmp_path / "node.toml").write_text(
        'mesh = "shop"\nnode = "a"\nplain = true\nlisten = "127.0.0.1:0"\npolicy = "thompson"\n'
        'protocol = "flooding(4)+growth(0.25)"\n[[arms]]\nname = "red"\nlaw = "bernoulli"\nreward_range = [0.0, 1.0]\n'
    )
    script = """
import asyncio, json, sys
from banditmesh.live import Node
import banditmesh.live.http.serving
async def main():
    async with Node.from_config(sys.argv[1]) as node:
        await node.observe(node.choose(), 1.0)
        node.state()
asyncio.run(main())
print(json.dumps(list(sys.modules)))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "node.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    modules = set(json.loads(done.stdout))
    assert modules.isdisjoint({*HEAVY, "numpy", "cryptography", "starlette", "prometheus_client"})
    assert not [name for name in modules if name.startswith(("banditmesh.networks", "banditmesh.algorithms"))]
    assert "banditmesh.problem" not in modules


def test_a_large_simulation_needs_no_networkx():
    problem = "bm.Problem.random(bm.networks.sparse_er(20, 3.0, seed=0), 4, 2)"
    modules = modules_after(
        f"import banditmesh as bm; bm.simulate({problem}, bm.FwA(2), horizon=3, engine='reference')"
    )
    assert modules.isdisjoint({"networkx", "pandas", "matplotlib", "xarray", "numba"})


def test_every_public_name_can_be_reached():
    for name in bm.__all__:
        assert getattr(bm, name) is not None
    assert set(bm.__all__) <= set(dir(bm))


def test_public_modules_are_those_that_documents_name():
    assert {"arms", "errors", "networks", "policies", "protocols", "testing", "theory"} <= set(bm._MODULES)


def test_public_names_are_listed_once_in_every_place():
    assert len(set(bm.__all__)) == len(bm.__all__)
    assert set(bm._HOMES) | set(bm._MODULES) == set(bm.__all__)


REACHED = """
import os
import numpy
import banditmesh as bm
for name in bm._MODULES:
    process = os.fork()
    if not process:
        print(getattr(bm, name).__name__, flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""


def test_public_modules_can_be_reached_before_anything_imports_them():
    done = subprocess.run([sys.executable, "-c", REACHED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [f"banditmesh.{name}" for name in bm._MODULES], done.stderr


def test_every_public_name_has_a_docstring():
    for name in bm.__all__:
        value = getattr(bm, name)
        if not isinstance(value, int):
            assert value.__doc__, name


@pytest.mark.parametrize("module", ["arms", "networks", "policies", "protocols", "testing"])
def test_every_public_class_and_function_has_an_example(module):
    home = getattr(bm, module)
    names = {name: getattr(home, name) for name in home.__all__}
    lacking = [name for name, value in names.items() if callable(value) and ">>>" not in (value.__doc__ or "")]
    assert not lacking


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'banditmesh' has no attribute 'floodin'"):
        _ = bm.floodin


LIGHT = """
import sys
for name in ("matplotlib", "pandas", "pyarrow"):
    sys.modules[name] = None
import banditmesh as bm
from banditmesh.cli import main
result = bm.simulate(bm.Problem.paper("er", seed=0), bm.FwA(2), horizon=3, seed=0, engine="reference")
for call in (result.to_dataframe, result.plot, lambda: bm.run_study(bm.read_spec("no.toml"), "out", workers=1)):
    try:
        call()
    except bm.BanditmeshError as error:
        print(error)
main(["compare", "--network", "ring:4", "--arms", "3", "--per-agent", "2", "--horizon", "4", "--protocols", "none,irs"])
"""


def test_without_pictures_and_tables_it_simulates_and_says_what_is_missing(tmp_path):
    (tmp_path / "no.toml").write_text('horizon = 4\nprotocol = "irs"\nnetwork = {name = "ring", n = 3}\n')
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "a table needs the package pandas; install it with: pip install 'banditmesh[tables]'"
    assert lines[1] == "a picture needs the package matplotlib; install it with: pip install 'banditmesh[pictures]'"
    assert lines[2].endswith("needs the package pyarrow; install it with: pip install 'banditmesh[tables]'")
    assert any(line.strip().startswith("irs") for line in lines[3:])
