"""Compiled kernels on disk: whoever wrote them, in whatever order, a process that reads them gives right numbers."""

import enum
import functools
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import caching, event

import banditmesh as bm
from banditmesh.arms import BERNOULLI, GAUSSIAN
from banditmesh.errors import BanditmeshWarning, UnsupportedError
from banditmesh.sim.compiled import warmup
from banditmesh.sim.compiled.kernels import cache, special, trust, turns
from banditmesh.sim.compiled.kernels.cache import KernelFiles
from banditmesh.sim.compiled.kernels.compiling import kernel, rebind
from banditmesh.sim.compiled.kernels.identity import Undescribed, identity
from banditmesh.sim.compiled.kernels.planning import plan_slots
from banditmesh.sim.compiled.kernels.special import USUAL, specialise

POLICIES = ("ucb", "klucb", "thompson")

# Runs the named policies in this order, one after the other in one process, and compares each with the reference. "own"
# is a policy that is compiled here and never cached.
SCRIPT = """
import sys
import banditmesh as bm
from banditmesh.protocols.notation import read

class Own(bm.Policy):
    name = "own"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return -mean

policies = {"ucb": bm.UCB(), "klucb": bm.KLUCB(), "thompson": bm.ThompsonSampling(), "own": Own()}
# Beta laws need a kernel of their own, a small one.
arms = [bm.arms.Beta(1 + arm, 5 - arm) for arm in range(5)]
problem = bm.Problem(bm.networks.er(8, 0.4, seed=1), bm.arms.uniform_sets(8, 5, 3, seed=0), arms)
for name in sys.argv[1].split(","):
    for protocol in sys.argv[2].split(";"):
        one, two = (
            bm.simulate(problem, read(protocol), policy=policies[name], horizon=40, seed=4, engine=engine)
            for engine in ("compiled", "reference")
        )
        print(name, protocol, "equal" if one == two else "WRONG")
"""


def run_policies(folder, policies, protocols="fwa(3)"):
    """The lines on standard output and standard error of a process that runs these policies."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ",".join(policies), protocols],
        env=environment,
        check=True,
        timeout=600,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines(), done.stderr


def assert_right(lines, n_lines):
    assert len(lines) == n_lines
    assert not [line for line in lines if not line.endswith("equal")]


@pytest.mark.slow
def test_kernels_cached_by_separate_processes_do_not_replace_each_other(tmp_path):
    # In each process numba counts functions from one.
    for policy in POLICIES:
        lines, notices = run_policies(tmp_path, [policy])
        assert_right(lines, 1)
        assert "compiling the engine" in notices
    # Every policy is read before every other.
    for order in (POLICIES, POLICIES[::-1]):
        lines, notices = run_policies(tmp_path, order)
        assert_right(lines, len(POLICIES))
        assert notices == ""
    damage(tmp_path, len(POLICIES))
    lines, notices = run_policies(tmp_path, ["klucb"])
    assert_right(lines, 1)
    assert notices.count("gave wrong numbers; they are removed and compiled again") == 1


# The same of a kernel as small as can be. Processes are forked from one that has imported what they need.
SCORING = """
import os, sys
import banditmesh as bm
from banditmesh.sim.compiled.kernels.compiling import kernel, rebind
from banditmesh.sim.compiled.kernels.scalars import compile_rule
import numba.core.compiler

sys.path.insert(0, sys.argv[1])
from scoring import score

GIVEN = 0.4, 7, 7**-0.5, 3.0, 0.5, 0, 0.3, 2.0

def run(names):
    compiled = []
    compile_extra = numba.core.compiler.compile_extra
    numba.core.compiler.compile_extra = lambda *parts, **more: compiled.append(1) or compile_extra(*parts, **more)
    for name in names:
        index = getattr(bm, name).index
        print(name, kernel(rebind(score, index=compile_rule(index)))(*GIVEN) == index(*GIVEN), bool(compiled))

for names in sys.argv[2:]:
    process = os.fork()
    if not process:
        run(names.split(","))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(process, 0)
"""


def test_small_kernels_cached_by_separate_processes_do_not_replace_each_other(tmp_path):
    names = "mean, count, inv_root, clock, sigma, law, u, parameter"
    (tmp_path / "scoring.py").write_text(f"def score({names}):\n    return index({names})\n")
    # Each compiles its own; every one is read before every other.
    runs = [["UCB"], ["KLUCB"], ["UCB", "KLUCB"], ["KLUCB", "UCB"]]
    done = subprocess.run(
        [sys.executable, "-c", SCORING, str(tmp_path), *map(",".join, runs)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        check=True,
        capture_output=True,
        text=True,
    )
    compiled = [f"{name} True {len(names) == 1}" for names in runs for name in names]
    assert done.stdout.splitlines() == compiled


def damage(folder, n_policies):
    """Replace other policies' kernels by that of the usual one, whole but wrong, and what draws rewards by noise."""
    usual_name = specialise((bm.UCB.index, None, None), plain=True).plan_rounds.py_func.__name__
    paths = [path for path in folder.rglob("*.kernel") if ".plan_rounds" in path.name]
    [usual] = (path for path in paths if path.name.partition(".")[2].startswith(f"{usual_name}-"))
    assert len(paths) == n_policies
    code = usual.read_bytes()[cache._DIGEST_SIZE :]
    for path in paths:
        path.write_bytes(cache._checksum(path, code) + code)
    [drawing] = folder.rglob("tapes.draw_tape*.kernel")
    drawing.write_bytes(np.random.default_rng(1).bytes(10_000))


def test_file_with_any_byte_changed_is_not_there(tmp_path):
    files = KernelFiles(tmp_path, "kernel")
    files.save("key", {"code": b"\x01\x02"})
    assert files.load("key") == {"code": b"\x01\x02"}
    assert files.load("another key") is None
    [path] = tmp_path.iterdir()
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert files.load("key") is None
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert files.load("key") is None


def test_file_of_another_kernel_is_not_there(tmp_path):
    ours, theirs = KernelFiles(tmp_path, "ours"), KernelFiles(tmp_path, "theirs")
    ours.save("key", 1)
    [path] = tmp_path.iterdir()
    shutil.copy(path, tmp_path / path.name.replace("ours", "theirs"))
    assert (ours.load("key"), theirs.load("key")) == (1, None)


def test_files_of_other_sources_are_neither_read_nor_kept(tmp_path, monkeypatch):
    files, neighbour = KernelFiles(tmp_path, "kernel"), KernelFiles(tmp_path, "kernel_of_another_name")
    neighbour.save("key", 0)
    files.save("key", 1)
    monkeypatch.setattr(cache, "stamp", lambda: "other")
    assert files.load("key") is None
    files.save("key", 2)
    assert files.load("key") == 2
    assert len(list(tmp_path.iterdir())) == 2
    files.flush()
    assert [path.name.split(".")[0] for path in tmp_path.iterdir()] == ["kernel_of_another_name"]


def test_what_cannot_be_written_is_not_kept(tmp_path):
    files = KernelFiles(tmp_path / "missing", "kernel")
    files.save("key", 1)
    assert files.load("key") is None


def test_settings_of_numba_are_part_of_the_name(tmp_path, monkeypatch):
    files = KernelFiles(tmp_path, "kernel")
    files.save("key", 1)
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert files.load("key") is None


def test_stamp_covers_every_file_that_has_a_part_in_a_kernel():
    covered = {path for path, _ in cache._sources()}
    parts = {
        os.path.relpath(function.__code__.co_filename, cache._PACKAGE)
        for rules in ((policy.index, None, None) for policy in (bm.UCB, bm.KLUCB, bm.ThompsonSampling))
        for kernel in specialise(rules)[:4]
        for function in functions_of(kernel.py_func, set())
    }
    assert parts <= covered
    assert {
        "draws.py",
        "faults.py",
        "policies/klucb.py",
        "sim/compiled/bitsets.py",
        "sim/compiled/kernels/rounds.py",
    } <= covered


def test_stamp_leaves_out_all_layers_above_and_beside_the_simulator_and_the_pictures():
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = [{name.strip() for name in layer.split("|")} for layer in layers]
    [simulator] = [place for place, room in enumerate(rooms) if "sim" in room]
    above = set().union(*rooms[: simulator + 1], {"plots"}) - {"sim"}
    assert {Path(name).stem for name in cache.ABOVE} == above
    assert all((cache._PACKAGE / name).exists() for name in cache.ABOVE)


def functions_of(function, found):
    """A function and all of the package's functions that it calls by name, plain or compiled."""
    found.add(function)
    for value in (function.__globals__.get(name) for name in function.__code__.co_names):
        plain = getattr(value, "py_func", value)
        if isinstance(plain, FunctionType) and plain.__module__.startswith("banditmesh") and plain not in found:
            functions_of(plain, found)
    return found


def outer(x):
    return inner(x)


def inner(x):
    return x


def other(x):
    return x + 1


def test_function_bound_to_something_else_has_another_name():
    usual, changed = rebind(outer, inner=inner), rebind(outer, inner=other)
    assert (usual(1), changed(1)) == (1, 2)
    assert usual.__qualname__ != changed.__qualname__
    assert rebind(outer, inner=other).__qualname__ == changed.__qualname__
    # One step further away, and compiled.
    assert rebind(outer, inner=numba.njit(changed)).__qualname__ != rebind(outer, inner=usual).__qualname__


def test_every_kernel_of_every_policy_has_a_name_of_its_own():
    policies = (bm.UCB, bm.KLUCB, bm.ThompsonSampling)
    kernels = [specialise((policy.index, None, None), plain) for plain in (False, True) for policy in policies]
    names = [[kernel.py_func.__qualname__ for kernel in each[:5]] for each in kernels]
    assert len({name for _, *others in names for name in others}) == 24
    # Where nothing is sent, there is one kernel for each policy.
    quiet = [first for first, *_ in names]
    assert quiet[:3] == quiet[3:]
    assert len(set(quiet)) == 3
    assert kernels[0] is USUAL


def test_identity_is_the_same_in_every_process():
    script = (
        "from banditmesh.sim.compiled.kernels import identity, planned; print(identity.identity(planned.plan_rounds))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {identity(USUAL.plan_rounds)}


FACTOR = 1.0


class Scaled(bm.Policy):
    name = "scaled"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return FACTOR * mean


def test_rule_of_ones_own_is_compiled_again_when_what_it_reads_changes(monkeypatch):
    before = specialise((Scaled.index, None, None))
    assert specialise((Scaled.index, None, None)) is before
    monkeypatch.setitem(globals(), "FACTOR", -1.0)
    assert specialise((Scaled.index, None, None)) is not before


def scaled_by(value):
    """A rule that reads a global name of this value."""
    names = {"SCALE": value}
    exec("def rule(x):\n    return SCALE.one.value if x else SCALE(x)", names)
    return names["rule"]


def outer_module(value):
    inner, found = ModuleType("inner"), ModuleType("outer")
    inner.value, found.one = value, inner
    return found


@pytest.mark.parametrize(
    "one, other",
    [
        (outer_module(1.0), outer_module(2.0)),
        (math.sqrt, math.cos),
        (np.sqrt, np.cos),
        (enum.Enum("E", {"one": 1.0}), enum.Enum("E", {"one": 2.0})),
        (numba.vectorize(inner), numba.vectorize(other)),
        (numba.njit(inner), numba.njit(other)),
        (np.array([1.0]), np.array([2.0])),
        ({1, 2}, {1, 3}),
    ],
    ids=["module in a module", "builtin", "ufunc", "enum", "vectorised", "compiled", "array", "set"],
)
def test_identity_notices_what_a_rule_reads(one, other):
    assert identity(scaled_by(one)) == identity(scaled_by(one))
    assert identity(scaled_by(one)) != identity(scaled_by(other))


@pytest.mark.parametrize("value", [{"a": 1}, functools.partial(inner), object(), type("Settings", (), {"a": 1})])
def test_what_cannot_be_described_has_no_identity(value):
    with pytest.raises(Undescribed, match="SCALE"):
        identity(scaled_by(value))


def test_defaults_and_empty_closures_are_part_of_an_identity():
    def make(default):
        def rule(x, *, by=default):
            return missing if x else by

        if default is None:
            missing = 1.0
        return rule

    assert identity(make(1.0)) == identity(make(1.0))
    assert identity(make(1.0)) != identity(make(2.0))


SETTINGS = {"factor": 2.0}


class Secretive(bm.Policy):
    name = "secretive"

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return SETTINGS["factor"] * mean


def test_rule_whose_changes_would_go_unnoticed_stays_with_the_reference():
    problem = bm.Problem.random(bm.networks.ring(4), n_arms=3, per_agent=2, seed=0)
    with pytest.raises(UnsupportedError, match="a rule reads SETTINGS"):
        bm.simulate(problem, bm.IRS(), policy=Secretive(), horizon=5, engine="compiled")
    assert bm.simulate(problem, bm.IRS(), policy=Secretive(), horizon=5).engine == "reference"


@pytest.mark.slow
def test_random_pairs_agree_on_a_cache_filled_in_random_order(tmp_path):
    protocols = [
        "none",
        "irs",
        "fwa(3)",
        "gossip(3)",
        "probabilistic(3)",
        "tree(2)+growth(0.25)",
        "flooding(2)+growth(0.5)",
    ]
    rng = random.Random(5)
    for _ in range(6):
        policies = rng.sample(("ucb", "klucb", "thompson", "own"), 2)
        chosen = rng.sample(protocols, 3)
        assert_right(run_policies(tmp_path, policies, ";".join(chosen))[0], 6)
    for _ in range(8):
        policies = rng.sample(("ucb", "klucb", "thompson", "own"), 3)
        assert_right(run_policies(tmp_path, policies, ";".join(rng.sample(protocols, 4)))[0], 12)


def test_that_the_engine_is_compiled_is_said_once_in_a_process(capsys, monkeypatch):
    monkeypatch.setattr(warmup, "_said", set())

    class Compiled:
        _cache = None

    rule, stranger = Compiled(), Compiled()
    own = special.USUAL._replace(spread_rounds=rule, is_built_in=False)
    # What is compiled for another run's rule, or by the application itself, is none of ours.
    for dispatcher, kernels in (
        (stranger, special.USUAL),
        (rule, special.USUAL),
        (stranger, own),
        (special.USUAL.spread_rounds, special.USUAL),
        (plan_slots, own),
        (rule, own),
        (rule, own),
    ):
        for is_start in (True, False):
            happened = SimpleNamespace(kind="numba:compile", is_start=is_start, data={"dispatcher": dispatcher})
            warmup._Notice(kernels).notify(happened)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "banditmesh: compiling the engine for this kind of run",
        "banditmesh: compiling your rule",
    ]


# Two processes compile a kernel when told to, and say what it gave and how often they had to.
TAKING_TURNS = """
import os, sys
from banditmesh.sim.compiled.kernels.compiling import kernel
import numba.core.compiler

sys.path.insert(0, sys.argv[1])
from summing import total
total = kernel(total)
compiled = []
compile_extra = numba.core.compiler.compile_extra
numba.core.compiler.compile_extra = lambda *parts, **more: compiled.append(1) or compile_extra(*parts, **more)
told, tell = os.pipe()
processes = []
for _ in range(2):
    processes.append(os.fork())
    if not processes[-1]:
        os.read(told, 1)
        print(total(10), len(compiled), flush=True)
        os._exit(0)
os.write(tell, b"go")
for process in processes:
    os.waitpid(process, 0)
"""


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path):
    (tmp_path / "summing.py").write_text(
        "def total(n):\n    result = 0\n    for i in range(n):\n        result += i\n    return result\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", TAKING_TURNS, str(tmp_path)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.splitlines()) == ["45 0", "45 1"]


def test_waiting_for_another_thread_is_not_called_compiling(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(warmup, "_said", set())
    monkeypatch.setattr(turns, "PATIENCE", 0.0)
    run = SimpleNamespace()
    monkeypatch.setattr(warmup.compiled, "kernels_of", lambda _: special.USUAL)
    # Whoever holds the lock for a moment only reads.
    with warmup.announced(run), turns.turn(tmp_path / "lock"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(turns, "_SILENT", 0.0)
    for _ in range(2):
        with turns.turn(tmp_path / "lock"), warmup.announced(run), turns.turn(tmp_path / "lock"):
            pass
    line = "banditmesh: waiting until another process or thread has the engine ready ...\n"
    assert capsys.readouterr().err == line


def test_a_turn_that_cannot_be_had_is_gone_without(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    monkeypatch.setattr(turns, "_SILENT", 0.1)
    with turns.turn(tmp_path / "lock"), event.install_recorder(turns.WAITING) as heard, turns.turn(tmp_path / "lock"):
        pass
    assert [what.is_start for _, what in heard.buffer] == [True, False]
    (tmp_path / "file").touch()
    with turns.turn(tmp_path / "file" / "lock"):
        pass


@pytest.mark.parametrize(
    ("rules", "law", "kinds"),
    [
        ("sound", bm.arms.Bernoulli(0.5), {BERNOULLI, GAUSSIAN}),
        ("sound", bm.arms.Gaussian(0.5, 1.0), {BERNOULLI, GAUSSIAN}),
        # Coins have kernels of their own there.
        pytest.param("published", bm.arms.Bernoulli(0.5), {BERNOULLI}, marks=pytest.mark.slow),
        ("published", bm.arms.Gaussian(0.5, 1.0), {GAUSSIAN}),
    ],
)
def test_kernels_are_compared_on_coins_and_on_others_wherever_both_use_them(monkeypatch, rules, law, kinds):
    compared, run_replicate = [], warmup.reference.run_replicate

    def noted(run, replicate, progress):
        compared.append(run)
        return run_replicate(run, replicate, progress)

    monkeypatch.setattr(warmup, "_ready", set())
    monkeypatch.setattr(warmup.reference, "run_replicate", noted)
    problem = bm.Problem(bm.networks.ring(3), [[0, 1]] * 3, [law] * 2)
    bm.simulate(problem, bm.Flooding(2), rules=rules, horizon=3, seed=0, engine="compiled")
    assert [set(run.problem.law_codes.tolist()) for run in compared] == [kinds]


# Whoever can put a file into the cache runs code as its reader.


class Payload:
    """What runs something when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "mode, above, why",
    [
        (0o755, 0o755, None),
        (0o700, 0o1777, None),
        (0o777, 0o755, "other users can write to {}/above/cache"),
        (0o1777, 0o755, "other users can write to {}/above/cache"),
        (0o702, 0o755, "other users can write to {}/above/cache"),
        (0o770, 0o755, "other users can write to {}/above/cache"),
        (0o755, 0o777, "other users can write to {}/above"),
        (0o755, 0o775, "other users can write to {}/above"),
    ],
)
@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_that_others_can_write_is_not_trusted(tmp_path, monkeypatch, mode, above, why, linked):
    monkeypatch.setattr(trust, "_is_own_group", lambda *_: False)
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    folder.parent.chmod(above)
    if linked:
        (tmp_path / "link").symlink_to(folder)
    found = trust.doubt(tmp_path / "link" if linked else folder)
    assert found == (why and why.format(tmp_path.resolve()))


def test_a_folder_of_another_user_is_not_trusted_but_for_the_owner_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert 12345 in trust._owners(tmp_path)
    assert trust._owners(trust._PACKAGE / "sim") == {0, 12345, trust._PACKAGE.stat().st_uid}
    monkeypatch.setattr(trust, "_owners", lambda _: {12345})
    assert trust.doubt(tmp_path) == f"{tmp_path.resolve()} belongs to another user"
    assert trust.doubt(tmp_path / "none").endswith("cannot be looked at (No such file or directory)")


@pytest.mark.parametrize(
    "group, members, is_own",
    [("ann", [], True), ("ann", ["ann"], True), ("root", [], True), ("ann", ["bob"], False), ("users", [], False)],
)
def test_a_group_is_the_users_own_if_it_has_the_users_name_and_no_other_members(monkeypatch, group, members, is_own):
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name="ann"))
    monkeypatch.setattr("grp.getgrgid", lambda gid: SimpleNamespace(gr_name=group, gr_mem=members))
    assert trust._is_own_group.__wrapped__(7, 7) == is_own


def test_a_folder_that_the_users_own_group_can_write_is_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_is_own_group", lambda *_: True)
    tmp_path.chmod(0o775)
    assert trust.doubt(tmp_path) is None
    tmp_path.chmod(0o777)
    assert trust.doubt(tmp_path) == f"other users can write to {tmp_path.resolve()}"


def test_a_user_without_a_name_has_no_group(monkeypatch):
    assert not trust._is_own_group.__wrapped__(0, 2**31 - 7)


def test_a_file_that_others_can_write_is_not_read(tmp_path):
    files = KernelFiles(tmp_path, "kernel")
    files.save("key", Payload(tmp_path / "ran"))
    [path] = tmp_path.iterdir()
    path.chmod(0o646)
    assert files.load("key") is None
    path.chmod(0o644)
    moved = path.rename(tmp_path / "elsewhere")
    path.symlink_to(moved)
    assert files.load("key") is None
    assert not (tmp_path / "ran").exists()
    moved.rename(path)
    files.load("key")
    assert (tmp_path / "ran").exists()


def test_others_cannot_write_what_is_kept_whatever_the_mask(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_is_own_group", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    before = os.umask(0)
    try:
        private = trust._private_folder(tmp_path)
        files = KernelFiles(private, "kernel")
        files.save("key", 1)
    finally:
        os.umask(before)
    assert files.load("key") == 1


def three(x):
    return x + 3


@pytest.mark.parametrize("has_home", [True, False])
def test_kernels_of_an_open_folder_are_kept_in_a_private_one_or_not_at_all(tmp_path, monkeypatch, has_home):
    home, opened = tmp_path.resolve() / "home", tmp_path / "open"
    home.mkdir(0o700 if has_home else 0o777)
    home.chmod(0o700 if has_home else 0o777)
    opened.mkdir()
    opened.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "made"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(opened))
    monkeypatch.setattr(trust, "_warned", [])
    with pytest.warns(BanditmeshWarning) as caught:
        compiled = [kernel(three), kernel(inner)]
    kept = f"kept in {home}/made/banditmesh" if has_home else "compiled again in every process"
    [line] = [str(one.message) for one in caught]
    assert line == (
        "compiled kernels must be in a folder that no other user can change, "
        f"but other users can write to {opened.resolve()}; they are {kept}. "
        "Use chmod or chown, or set NUMBA_CACHE_DIR to your own folder"
    )
    assert compiled[0](1) == 4
    assert not list(opened.rglob("*.kernel"))
    assert len(list(home.rglob("*.kernel"))) == has_home
    assert [path.stat().st_mode & 0o777 for path in home.glob("made/banditmesh/*")] == [0o700] * has_home


def test_a_kernel_without_any_place_for_a_cache_is_compiled_all_the_same(monkeypatch):
    for kind in (caching.CompileResultCacheImpl, caching.CacheImpl):
        monkeypatch.setattr(kind, "_locator_classes", [])
    compiled = kernel(three)
    assert not cache.is_kept(compiled)
    assert compiled(1) == 4


def test_workers_do_not_repeat_the_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_warned", [])
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a worker's")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trust._warn_once("it is open", None)


class OwnFwA(bm.FwA):
    """A relay rule that does not draw is asked in Python: its kernels are the built-in ones."""


class OwnUCB(bm.UCB):
    """So are those of a clock."""


class OwnEmission(bm.EveryPull):
    """And of an emission that is the built-in one."""

    sends = bm.EveryPull.sends


@pytest.mark.parametrize(
    ("protocol", "policy", "costs"),
    [
        (bm.FwA(2), bm.UCB(), True),
        (OwnFwA(2), bm.UCB(), False),
        (bm.FwA(2), OwnUCB(), False),
        (bm.FwA(2, emission=OwnEmission()), bm.UCB(), False),
    ],
)
def test_what_a_users_class_does_wrong_never_costs_the_cache(protocol, policy, costs, monkeypatch):
    removed = []
    monkeypatch.setattr(warmup, "_ready", set())
    monkeypatch.setattr(warmup, "equals_reference", lambda run: False)
    monkeypatch.setattr(warmup, "distrust", removed.append)
    problem = bm.Problem(bm.networks.path(3), [[0], [0], [0]], [bm.arms.Gaussian(0.0, 1.0)])
    with pytest.raises(UnsupportedError, match=warmup.DIFFERS):
        bm.simulate(problem, protocol, policy=policy, horizon=5, seed=0, engine="compiled")
    assert bool(removed) == costs
