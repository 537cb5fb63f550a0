"""The wheel and the source distribution, built, installed into a new environment and tried there."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import banditmesh

ROOT = Path(__file__).parents[1]
STEM = f"banditmesh-{banditmesh.__version__}"
WHEEL = f"{STEM}-py3-none-any.whl"
#: Runs on the reference engine: a new folder has no compiled kernels, and compiling them says nothing about a wheel.
SMOKE = """
import sys
import banditmesh as bm
assert bm.__file__.startswith(sys.argv[1]), bm.__file__
for name in bm.__all__:
    getattr(bm, name)
problem = bm.Problem(bm.networks.path(4), [[0, 1]] * 4, [bm.arms.Gaussian(0.2, 1), bm.arms.Gaussian(0.8, 1)])
result = bm.simulate(problem, bm.FwA(ttl=2), horizon=30, seed=0, engine="reference")
assert result.transmissions[0, -1] > 0 and len(result.pulls[0]) == 4
from banditmesh.animations.files import PLAYER
assert PLAYER.stat().st_size > 0
print("ok", bm.__version__)
"""


def run(*command):
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source distribution, as `make dist` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, timeout=600)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A new environment with the wheel; what it requires is found where these tests find it, after its own."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, symlinks=os.name != "nt", with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    run(*pip, "install", "--quiet", "--no-deps", str(built / WHEEL))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # A line in such a file adds a folder, and nothing that an editable installation has put there.
    (site / "required.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, site


def sources():
    """The files of the package, without what Python and numba leave beside them."""
    package = ROOT / "src" / "banditmesh"
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".nbi", ".nbc"}
    }


def test_wheel_holds_the_package_and_its_assets_and_nothing_else(built):
    with zipfile.ZipFile(built / WHEEL) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert names == sources()
        assert f"{STEM}.dist-info/licenses/LICENSE" in wheel.namelist()
        for name in names:
            assert wheel.read(name) == (ROOT / "src" / name).read_bytes()


def test_source_distribution_holds_what_tests_and_docs_need(built):
    with tarfile.open(built / f"{STEM}.tar.gz") as archive:
        names = {name.removeprefix(f"{STEM}/") for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} <= names
    assert {path.name for path in ROOT.glob("*.md")} <= names
    assert {"Makefile", "LICENSE", "pyproject.toml", "tests/test_package.py", "docs/conf.py", ".ci/run"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", ".git/", "docs/_build"))]


def test_source_distribution_makes_the_same_wheel(built, tmp_path):
    with tarfile.open(built / f"{STEM}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    subprocess.run(command, cwd=tmp_path / STEM, check=True, timeout=600)
    with zipfile.ZipFile(built / WHEEL) as ours, zipfile.ZipFile(tmp_path / WHEEL) as theirs:
        assert {name: ours.read(name) for name in ours.namelist()} == {n: theirs.read(n) for n in theirs.namelist()}


def test_installed_wheel_simulates(installed):
    python, site = installed
    said = run(python, "-c", SMOKE, str(site))
    assert said == f"ok {banditmesh.__version__}\n"


def test_installed_command_answers(installed):
    python, _ = installed
    [command] = python.parent.glob("banditmesh*")
    assert banditmesh.__version__ in run(str(command), "--version")
