import errno
import json
import os
import re
import struct
import sys
import tracemalloc
import zipfile

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import banditmesh as bm
from banditmesh.errors import FileError, InputError, MissingExtraError
from banditmesh.sim import files
from banditmesh.sim.run import TRAFFIC

ARMS = {"a": bm.arms.Gaussian(0.9, 1.0), ("b", 2): bm.arms.Gaussian(0.5, 1.0), 3: bm.arms.Gaussian(0.1, 1.0)}


def make(link_traffic=True, **settings):
    """A run on a 2 x 2 grid, whose agents are tuples, with arms of all kinds of names."""
    problem = bm.Problem(nx.grid_2d_graph(2, 2), [["a", 3], [("b", 2)], ["a"], [3, ("b", 2), "a"]], ARMS)
    defaults = {
        "horizon": 9,
        "replicates": 2,
        "seed": 5,
        "record_every": 2,
        "link_traffic": link_traffic,
        "agents": True,
        "engine": "reference",
    }
    return bm.simulate(problem, bm.FwA(2), **defaults | settings)


@pytest.fixture(scope="module")
def result():
    return make()


def test_fields_and_shapes_are_those_of_the_contract(result):
    assert result.rounds.tolist() == [2, 4, 6, 8, 9]
    assert result.regret.shape == result.transmissions.shape == (2, 5)
    assert result.messages is result.transmissions
    assert result.pulls.shape == (2, 4, 3)
    assert result.agent_regret.shape == (2, 4)
    assert list(result.agents) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(result.arms) == ["a", ("b", 2), 3]
    assert len(result.links) == 8
    assert result.links[0] == ((0, 0), (0, 1))
    assert result.link_traffic.shape == (2, 5, 8)
    assert {name: counts.shape for name, counts in result.traffic.items()} == dict.fromkeys(TRAFFIC, (2,))
    assert result.trace == []


def test_contract_names_every_count_of_the_traffic():
    assert set(TRAFFIC) == {
        *("sent", "delivered", "duplicate", "absorbed", "expired", "stopped"),
        *("relayed", "queued", "lost", "dropped", "control", "learned", "bytes"),
    }


def test_result_tells_what_was_simulated(result):
    assert (result.protocol, result.policy, result.rules) == ("fwa", "ucb", "sound")
    assert (result.seed, result.horizon, result.replicates) == (5, 9, 2)
    assert result.settings["protocol"] == "FloodingWithAbsorption(ttl=2, emission=EveryPull())"
    assert result.settings["policy"] == "UCB(alpha=3.0)"
    assert result.settings["version"] == bm.__version__
    assert result.engine in ("reference", "compiled")


def test_repr_is_one_line_with_the_main_numbers(result):
    assert re.fullmatch(
        r"<Result: FloodingWithAbsorption\(.*\), 2 x 9 rounds, regret [\d.,]+, transmissions \d+>", repr(result)
    )


def test_pulls_are_zero_for_arms_that_an_agent_has_not(result):
    assert (result.pulls[:, 1, [0, 2]] == 0).all()
    assert result.pulls.sum(axis=(1, 2)).tolist() == [36, 36]


def test_arrays_cannot_be_changed(result):
    for array in (result.regret, result.transmissions, result.pulls, result.agent_regret, result.rounds):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_without_link_traffic_there_are_no_links():
    plain = make(link_traffic=False)
    assert plain.link_traffic is None
    assert plain.links == []


def test_trace_is_a_list_of_records_that_pandas_takes():
    traced = make(trace=True)
    table = pd.DataFrame(traced.trace)
    assert table.columns.tolist() == [
        *("replicate", "round", "origin", "sequence", "arm", "reward"),
        *("sender", "receiver", "ttl", "fate", "learned", "arrival", "n_pulls", "message"),
    ]
    assert table.groupby("replicate").size().tolist() == traced.traffic["sent"].tolist()
    assert set(table["origin"]) == set(traced.agents)
    assert set(table["arm"]) == set(traced.arms)


# Equality


def test_equal_runs_are_equal_and_the_engine_does_not_matter(result):
    assert result == make()
    assert result == make(engine="auto")


@pytest.mark.parametrize(
    "changes",
    [{"seed": 6}, {"horizon": 8}, {"replicates": 1}, {"rules": "published"}, {"record_every": 1}, {"every": 2}],
    ids=str,
)
def test_other_settings_give_another_result(result, changes):
    assert result != make(**changes)


def test_results_that_know_more_differ(result):
    assert result != make(link_traffic=False)
    assert make(link_traffic=False) != result
    assert result != make(trace=True)
    assert result != "result"


def test_results_cannot_be_hashed(result):
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


# Files


@pytest.mark.parametrize("name", ["result.npz", "result"])
@pytest.mark.parametrize("link_traffic", [False, True])
def test_saved_result_comes_back_exactly(tmp_path, name, link_traffic):
    saved = make(link_traffic=link_traffic, policy=[bm.UCB(1.0), bm.UCB(), bm.UCB(), bm.UCB()])
    saved.save(tmp_path / name)
    loaded = bm.Result.load(tmp_path / name)
    assert loaded == saved
    assert list(loaded.agents) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(loaded.arms) == ["a", ("b", 2), 3]
    assert loaded.links == saved.links
    assert loaded.engine == saved.engine
    assert loaded.settings == saved.settings
    assert loaded.regret.dtype == saved.regret.dtype
    assert loaded.policy == "mixed"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_many_agents_are_saved_by_their_range(tmp_path):
    saved = bm.simulate(
        bm.Problem.random(bm.networks.Links.from_pairs(4, [(0, 1)]), 2, 1),
        bm.IRS(),
        horizon=2,
        seed=0,
        engine="reference",
    )
    saved.save(tmp_path / "r.npz")
    assert bm.Result.load(str(tmp_path / "r.npz")).agents == range(4)
    assert bm.Result.load(tmp_path / "r.npz") == saved


def test_numpy_names_are_saved_as_plain_ones(tmp_path):
    graph = nx.Graph([(np.int64(3), np.str_("x"))])
    saved = bm.simulate(bm.Problem(graph, [[0], [0]], [ARMS["a"]]), bm.IRS(), horizon=2, seed=0, engine="reference")
    saved.save(tmp_path / "r.npz")
    assert bm.Result.load(tmp_path / "r.npz") == saved


@pytest.mark.parametrize("name", [frozenset("x"), b"x", (1, frozenset()), np.datetime64("2020-01-01")], ids=repr)
def test_names_that_a_file_cannot_hold_are_refused(tmp_path, name):
    problem = bm.Problem(nx.Graph([(name, "y")]), [[0], [0]], [ARMS["a"]])
    result = bm.simulate(problem, bm.IRS(), horizon=2, seed=0, engine="reference")
    with pytest.raises(InputError, match="names of agents must be strings, numbers or tuples of them to be saved"):
        result.save(tmp_path / "r.npz")
    assert list(tmp_path.iterdir()) == []


def test_event_log_cannot_be_saved(tmp_path):
    with pytest.raises(InputError, match="a result with an event log cannot be saved"):
        make(trace=True).save(tmp_path / "r.npz")


def test_saving_replaces_an_older_file(tmp_path, result):
    path = tmp_path / "r.npz"
    path.write_text("old")
    result.save(path)
    assert bm.Result.load(path) == result


def test_saved_file_has_the_usual_permissions(tmp_path, result):
    (tmp_path / "other").write_text("")
    result.save(tmp_path / "r.npz")
    assert (tmp_path / "r.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_file_holds_no_pickle(tmp_path, result):
    result.save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.npz: No such file"):
        bm.Result.load(tmp_path / "none.npz")


def test_folder_is_refused(tmp_path, result):
    with pytest.raises(FileError, match="cannot read"):
        bm.Result.load(tmp_path)
    with pytest.raises(FileError, match="cannot write"):
        result.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_missing_and_unwritable_folders_are_refused(tmp_path, result):
    with pytest.raises(FileError, match=r"cannot write .*choose a folder that can be written"):
        result.save(tmp_path / "none" / "r.npz")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        result.save(tmp_path / "file" / "r.npz")


def test_full_disk_leaves_the_older_file_as_it_was(tmp_path, result, monkeypatch):
    def write_some(stream, **arrays):
        stream.write(b"some")
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "r.npz"
    result.save(path)
    monkeypatch.setattr(np, "savez_compressed", write_some)
    with pytest.raises(FileError, match="No space left on device; nothing was changed"):
        make(seed=6).save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]
    assert bm.Result.load(path) == result


def wrong_files(tmp_path):
    """Files that are no saved result, of all kinds."""
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    header = np.frombuffer(b'{"format": "banditmesh-result", "version": 1}', dtype=np.uint8)
    np.savez(tmp_path / "headless.npz", header=header)
    np.savez(tmp_path / "versionless.npz", header=np.frombuffer(b'{"format": "banditmesh-result"}', dtype=np.uint8))
    np.savez(tmp_path / "list.npz", header=np.frombuffer(b"[]", dtype=np.uint8))
    (tmp_path / "text.npz").write_text("no result")
    (tmp_path / "empty.npz").write_bytes(b"")
    return sorted(tmp_path.iterdir())


def test_wrong_files_are_refused(tmp_path):
    paths = wrong_files(tmp_path)
    assert len(paths) == 7
    for path in paths:
        with pytest.raises(FileError, match=re.escape(str(path))):
            bm.Result.load(path)


def test_file_of_another_version_is_refused(tmp_path):
    header = b'{"format": "banditmesh-result", "version": 99}'
    np.savez(tmp_path / "r.npz", header=np.frombuffer(header, dtype=np.uint8))
    with pytest.raises(FileError, match="has format version 99, this banditmesh reads version 1"):
        bm.Result.load(tmp_path / "r.npz")


def test_file_without_an_array_is_refused(tmp_path, result):
    result.save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as archive:
        arrays = {name: archive[name] for name in archive.files if name != "messages"}
    np.savez(tmp_path / "r.npz", **arrays)
    with pytest.raises(FileError, match="lacks the array 'messages'"):
        bm.Result.load(tmp_path / "r.npz")


def test_a_cut_file_is_refused_wherever_it_is_cut(tmp_path, result):
    result.save(tmp_path / "r.npz")
    content = (tmp_path / "r.npz").read_bytes()
    for size in range(0, len(content), max(1, len(content) // 40)):
        (tmp_path / "r.npz").write_bytes(content[:size])
        with pytest.raises(FileError, match="is not a result saved by banditmesh, or was cut short; save it again"):
            bm.Result.load(tmp_path / "r.npz")


def test_a_damaged_file_is_refused_or_read_unharmed(tmp_path, result):
    result.save(tmp_path / "r.npz")
    content = (tmp_path / "r.npz").read_bytes()
    n_refused = 0
    for place in range(0, len(content), 17):
        for mask in (0x01, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= mask
            (tmp_path / "r.npz").write_bytes(damaged)
            try:
                assert bm.Result.load(tmp_path / "r.npz") == result
            except FileError:
                n_refused += 1
    assert n_refused > len(content) / 17


def saved(result, path):
    """The arrays of a saved result, and its header."""
    result.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, json.loads(arrays.pop("header").tobytes())


def write(path, arrays, header):
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


def refused(path, *words):
    with pytest.raises(FileError) as error:
        bm.Result.load(path)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in (str(path), "save", *words):
        assert word in message


ARRAYS = [name for name in files.ARRAYS if name not in files.OPTIONAL]
#: Those that the result of fixed arms has; tests of changing arms save the rounds of their changes.
SAVED = [name for name in files.ARRAYS if name != "changes"]


@pytest.mark.parametrize("name", ARRAYS)
def test_a_file_without_any_of_its_arrays_is_refused(tmp_path, result, name):
    arrays, header = saved(result, tmp_path / "r.npz")
    del arrays[name]
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", f"lacks the array '{name}'")


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("change", ["longer", "shorter", "flat", "deep", "empty"])
def test_arrays_of_another_shape_are_refused(tmp_path, result, name, change):
    arrays, header = saved(result, tmp_path / "r.npz")
    changes = {
        "longer": lambda a: np.concatenate([a, a]),
        "shorter": lambda a: a[:-1],
        "flat": lambda a: a.sum(),
        "deep": lambda a: a[None],
        "empty": lambda a: a[:0],
    }
    arrays[name] = changes[change](arrays[name])
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", "is not a complete result")


WRONG_TYPES = {
    "i": ["float64", "bool", "complex128", "U8", "S8", "uint64", "M8[s]"],
    "f": ["float32", "int64", "bool", "complex128", "U8", "S8", "longdouble", "M8[s]"],
}


@pytest.mark.parametrize("name", SAVED)
def test_arrays_of_another_type_are_refused(tmp_path, result, name):
    arrays, header = saved(result, tmp_path / "r.npz")
    for kind in WRONG_TYPES[files.ARRAYS[name][0]]:
        write(tmp_path / "r.npz", arrays | {name: np.zeros(arrays[name].shape, dtype=kind)}, header)
        refused(tmp_path / "r.npz", f"{name} of type")


def test_pickled_arrays_are_refused_and_not_opened(tmp_path, result):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    arrays, header = saved(result, tmp_path / "r.npz")
    arrays["regret"] = np.array([[Trap()]], dtype=object)
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", "is not a result saved by banditmesh")


def test_an_unknown_array_is_refused(tmp_path, result):
    arrays, header = saved(result, tmp_path / "r.npz")
    write(tmp_path / "r.npz", arrays | {"surprise": np.zeros(3)}, header)
    refused(tmp_path / "r.npz", "the unknown array 'surprise'")


@pytest.mark.parametrize(
    "name, values",
    [
        ("rounds", [0, 4, 6, 8, 9]),
        ("rounds", [2, 4, 4, 8, 9]),
        ("rounds", [9, 8, 6, 4, 2]),
        ("arm_offsets", [1, 2, 3, 4, 7]),
        ("arm_offsets", [0, 3, 2, 4, 7]),
        ("arm_offsets", [0, 2, 3, 4, 8]),
        ("arm_indices", [0, 2, 1, 0, 2, 1, 3]),
        ("arm_indices", [0, 2, 1, 0, 2, 1, -1]),
    ],
)
def test_values_that_cannot_be_are_refused(tmp_path, result, name, values):
    arrays, header = saved(result, tmp_path / "r.npz")
    assert len(arrays[name]) == len(values)
    arrays[name] = np.array(values, dtype=arrays[name].dtype)
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", name)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("place", [0, -1])
def test_numbers_that_no_run_gives_are_refused(tmp_path, result, name, place):
    arrays, header = saved(result, tmp_path / "r.npz")
    least = [-np.inf, np.nan, np.inf, -1e-9] if files.ARRAYS[name][0] == "f" else [-1, np.iinfo(np.int32).min]
    for value in least:
        array = arrays[name].copy()
        array.flat[place] = value
        write(tmp_path / "r.npz", arrays | {name: array}, header)
        refused(tmp_path / "r.npz", f"{name} that are negative or not finite")


@pytest.mark.parametrize("name", files.CUMULATIVE)
def test_sums_that_fall_are_refused(tmp_path, result, name):
    arrays, header = saved(result, tmp_path / "r.npz")
    array = arrays[name]
    array[-1, -2] = array[-1, -1] + 1
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", f"{name} that fall")


def test_more_pulls_or_rounds_than_a_run_can_have_are_refused(tmp_path, result):
    arrays, header = saved(result, tmp_path / "r.npz")
    horizon = arrays["rounds"][-1]
    pulls, rounds = arrays["arm_pulls"].astype(np.int64), arrays["rounds"].copy()
    pulls.flat[-1] = horizon
    write(tmp_path / "r.npz", arrays | {"arm_pulls": pulls}, header)
    bm.Result.load(tmp_path / "r.npz")
    pulls.flat[-1] = horizon + 1
    write(tmp_path / "r.npz", arrays | {"arm_pulls": pulls}, header)
    refused(tmp_path / "r.npz", "arm_pulls that are more than the rounds")
    rounds[-1] = 2**31
    write(tmp_path / "r.npz", arrays | {"rounds": rounds}, header)
    refused(tmp_path / "r.npz", "rounds that do not ascend from 1 to at most 2147483647")


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": None},
        {"settings": []},
        {"settings": {}},
        {"engine": 3},
        {"names": {}},
        {"names": []},
        {"version": [1]},
        {"version": None},
    ],
    ids=str,
)
def test_a_header_of_another_kind_is_refused(tmp_path, result, changes):
    arrays, header = saved(result, tmp_path / "r.npz")
    write(tmp_path / "r.npz", arrays, header | changes)
    with pytest.raises(FileError, match=re.escape(str(tmp_path / "r.npz"))):
        bm.Result.load(tmp_path / "r.npz")


@pytest.mark.parametrize("key", ["protocol", "protocol_name", "policy_name", "rules", "seed"])
def test_a_header_without_a_setting_is_refused(tmp_path, result, key):
    arrays, header = saved(result, tmp_path / "r.npz")
    del header["settings"][key]
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", "a header of another kind", key)


@pytest.mark.parametrize(
    "kind, names",
    [
        ("agents", {"range": [0, 10**30, 1]}),
        ("agents", {"range": [0, 4, 0]}),
        ("agents", {"range": [0, 4]}),
        ("agents", {"range": [0, 3, 1]}),
        ("agents", [{}, 1, 2, 3]),
        ("agents", [1, 2, 3]),
        ("agents", "abcd"),
        ("arms", ["a"]),
        ("arms", [[{}], 1, 2]),
        ("links", [1]),
        ("links", [[1, 2, 3]] * 8),
        ("links", {"range": [0, 8, 1]}),
    ],
    ids=str,
)
def test_names_of_another_kind_are_refused(tmp_path, result, kind, names):
    arrays, header = saved(result, tmp_path / "r.npz")
    header["names"][kind] = names
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", "is not a complete result")


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path, result):
    path = tmp_path / "r.npz"
    result.save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", bytes(2**25))
    assert path.stat().st_size < 2**17
    tracemalloc.start()
    with pytest.raises(FileError, match=r"unpacks to 33,\d{3},\d{3} bytes, more than .*raise max_bytes"):
        bm.Result.load(path, max_bytes=2**24)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    # The same file, as if it unpacked to gigabytes.
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 2**25), struct.pack("<I", 2**31)))
    with pytest.raises(FileError, match=r"unpacks to 2,\d{3},\d{3},\d{3} bytes, more than .*raise max_bytes"):
        bm.Result.load(path)


def test_a_header_counts_as_the_objects_that_it_becomes(tmp_path, result):
    arrays, header = saved(result, tmp_path / "r.npz")
    header["settings"]["more"] = [[]] * 500_000
    write(tmp_path / "r.npz", arrays, header)
    with pytest.raises(FileError, match=r"unpacks to \d\d,\d{3},\d{3} bytes, more than .*raise max_bytes"):
        bm.Result.load(tmp_path / "r.npz", max_bytes=2**25)


def test_more_arms_than_memory_has_room_for_are_refused(tmp_path, result):
    arrays, header = saved(result, tmp_path / "r.npz")
    header["names"]["arms"] = {"range": [0, 10**12, 1]}
    write(tmp_path / "r.npz", arrays, header)
    refused(tmp_path / "r.npz", "is not a complete result: it has a header of another kind (too many agents or arms)")


def test_the_limit_can_be_set(tmp_path, result):
    path = tmp_path / "r.npz"
    result.save(path)
    with pytest.raises(FileError, match="more than the 100 that are allowed"):
        bm.Result.load(path, max_bytes=100)
    assert bm.Result.load(path, max_bytes=10**6) == result
    with pytest.raises(InputError, match="max_bytes must be"):
        bm.Result.load(path, max_bytes=0)


def test_a_file_that_unpacks_to_more_than_it_says_is_refused(tmp_path, result):
    path = tmp_path / "r.npz"
    result.save(path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["rounds.npy"] += bytes(2**26)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    # The size as it is written in the directory of the archive: 2^26 bytes less.
    truth, lie = (len(contents["rounds.npy"]) - less for less in (0, 2**26))
    written = path.read_bytes()
    path.write_bytes(written.replace(struct.pack("<I", truth), struct.pack("<I", lie)))
    tracemalloc.start()
    refused(path, "is not a result saved by banditmesh")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_an_array_that_claims_a_huge_shape_is_refused(tmp_path, result):
    path = tmp_path / "r.npz"
    arrays, header = saved(result, path)
    write(path, arrays, header)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["rounds.npy"] = contents["rounds.npy"].replace(b"(5,), }        ", b"(500000000,), }")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    refused(path, "is not a result saved by banditmesh")


def test_unusual_but_sound_arrays_are_read(tmp_path, result):
    """By columns, in the other byte order, or of another width."""
    arrays, header = saved(result, tmp_path / "r.npz")
    arrays["regret"] = np.asfortranarray(arrays["regret"])
    arrays["messages"] = arrays["messages"].astype(">i8")
    arrays["arm_pulls"] = arrays["arm_pulls"].astype(np.int64)
    write(tmp_path / "r.npz", arrays, header)
    loaded = bm.Result.load(tmp_path / "r.npz")
    assert loaded == result
    assert loaded.transmissions.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        loaded.regret[0] = 0


def test_a_result_without_links_comes_back(tmp_path):
    problem = bm.Problem.random(bm.networks.Links.from_pairs(2, []), 2, 2)
    result = bm.simulate(problem, bm.IRS(), horizon=2, seed=0, engine="reference", link_traffic=True)
    result.save(tmp_path / "r.npz")
    assert bm.Result.load(tmp_path / "r.npz") == result


@pytest.mark.parametrize("name", ["run:1", "file:x", "run-2026-11-16T10:00:00.npz", os.fsdecode(b"caf\xe9.npz")])
def test_names_that_look_like_addresses_are_names(tmp_path, monkeypatch, result, name):
    monkeypatch.chdir(tmp_path)
    result.save(name)
    assert bm.Result.load(name) == result


@pytest.mark.parametrize("name", ["res.csv", "res.CSV", "res.npz.gz", "res.parquet"])
def test_a_name_of_another_format_is_refused(tmp_path, result, name):
    with pytest.raises(FileError, match=r"saved as a \.npz file, got .*to_csv"):
        result.save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_path_that_cannot_be_is_refused(result):
    with pytest.raises(FileError, match="cannot read"):
        bm.Result.load("a\0b")
    with pytest.raises(FileError, match="cannot write"):
        result.save("a\0b")


# Views


def test_dataframe_has_a_row_for_each_replicate_and_record(result):
    table = result.to_dataframe()
    assert table.columns.tolist() == ["protocol", "replicate", "round", "regret", "messages"]
    assert table["replicate"].tolist() == [0] * 5 + [1] * 5
    assert table["round"].tolist() == [2, 4, 6, 8, 9] * 2
    assert table["regret"].tolist() == result.regret.ravel().tolist()
    assert table["messages"].tolist() == result.transmissions.ravel().tolist()
    assert set(table["protocol"]) == {"fwa(2)"}


def test_xarray_has_named_dimensions(result):
    data = result.to_xarray()
    assert dict(data.sizes) == {"replicate": 2, "round": 5, "agent": 4, "arm": 3, "link": 8}
    assert data["round"].values.tolist() == [2, 4, 6, 8, 9]
    assert data["agent"].values.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert data["regret"].sel(round=9, replicate=1) == result.regret[1, -1]
    assert data["pulls"].sel(agent="(1, 1)", arm="a", replicate=0) == result.pulls[0, 3, 0]
    assert data["traffic_sent"].values.tolist() == result.traffic["sent"].tolist()
    assert data["sender"].values[0] == "(0, 0)"
    assert data["link_traffic"].sum() == result.traffic["sent"].sum()
    assert data.attrs["seed"] == 5
    assert "link_traffic" not in make(link_traffic=False).to_xarray()


def test_xarray_keeps_plain_names():
    one = bm.simulate(bm.Problem.random(nx.path_graph(3), 2, 1), bm.IRS(), horizon=2, seed=0, engine="reference")
    assert one.to_xarray()["agent"].values.tolist() == [0, 1, 2]


def test_plot_shows_regret_and_messages(result, tmp_path):
    figure = result.plot()
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("group regret", "transmissions")
    np.testing.assert_allclose(left.lines[0].get_ydata(), result.regret.mean(axis=0))
    np.testing.assert_allclose(right.lines[0].get_ydata(), result.transmissions.mean(axis=0))
    assert left.lines[0].get_xdata().tolist() == [2, 4, 6, 8, 9]
    assert len(left.collections) == 1
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_plot_of_one_replicate_has_no_band():
    assert len(make(replicates=1).plot().axes[0].collections) == 0


def test_without_xarray_the_command_that_installs_it_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'banditmesh\[xarray\]'"):
        result.to_xarray()


# Agents and events


def test_agents_regret_over_time_adds_up_on_either_engine(engine):
    problem = bm.Problem.random(bm.networks.ring(5), n_arms=4, per_agent=2, seed=1)
    settings = {"horizon": 40, "replicates": 2, "seed": 3, "record_every": 7}
    result = bm.simulate(problem, "fwa(2)", engine=engine, agents=True, **settings)
    curve = result.agent_regret_curve
    assert curve.shape == (2, 6, 5)
    np.testing.assert_allclose(curve.sum(axis=2), result.regret)
    np.testing.assert_array_equal(curve[:, -1], result.agent_regret)
    plain = bm.simulate(problem, "fwa(2)", engine=engine, **settings)
    assert plain.agent_regret_curve is None
    np.testing.assert_array_equal(plain.regret, result.regret)
    assert plain != result
    steps = bm.Simulation(problem, "fwa(2)", horizon=40, seed=3, record_every=7, agents=True).run()
    np.testing.assert_array_equal(steps.agent_regret_curve[0], curve[0])


def test_agents_regret_is_saved_and_shown(tmp_path):
    result = make(agents=True)
    result.save(tmp_path / "r.npz")
    assert bm.Result.load(tmp_path / "r.npz") == result
    frame = result.to_dataframe(agents=True)
    assert len(frame) == result.agent_regret_curve.size
    assert frame.columns.tolist() == ["protocol", "replicate", "round", "agent", "regret"]
    last = frame[(frame["round"] == result.horizon) & (frame["replicate"] == 1)]
    assert last["regret"].tolist() == result.agent_regret[1].tolist()
    assert result.to_xarray()["agent_regret_curve"].dims == ("replicate", "round", "agent")
    short = make(agents=False).to_dataframe(agents=True)
    assert short["round"].unique().tolist() == [result.horizon]


def test_a_log_that_nobody_asked_for_is_an_error_that_says_so(result):
    for look in (len, list, lambda log: log[0], lambda log: log[:3], pd.DataFrame):
        with pytest.raises(InputError, match="simulate with trace=True"):
            look(result.trace)
    assert not result.trace
    assert list(make(trace=True).trace)
