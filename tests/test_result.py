import errno
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import banditmesh as bm
from banditmesh.errors import FileError, InputError
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
        "engine": "reference",
    }
    return bm.simulate(problem, bm.FwA(2), **defaults | settings)


@pytest.fixture(scope="module")
def result():
    return make()


def test_fields_and_shapes_are_those_of_the_contract(result):
    assert result.rounds.tolist() == [2, 4, 6, 8, 9]
    assert result.regret.shape == result.messages.shape == (2, 5)
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
        r"<Result: FloodingWithAbsorption\(.*\), 2 x 9 rounds, regret [\d.,]+, messages \d+>", repr(result)
    )


def test_pulls_are_zero_for_arms_that_an_agent_has_not(result):
    assert (result.pulls[:, 1, [0, 2]] == 0).all()
    assert result.pulls.sum(axis=(1, 2)).tolist() == [36, 36]


def test_arrays_cannot_be_changed(result):
    for array in (result.regret, result.messages, result.pulls, result.agent_regret, result.rounds):
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
        *("sender", "receiver", "ttl", "fate", "learned", "arrival"),
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


# Views


def test_dataframe_has_a_row_for_each_replicate_and_record(result):
    table = result.to_dataframe()
    assert table.columns.tolist() == ["protocol", "replicate", "round", "regret", "messages"]
    assert table["replicate"].tolist() == [0] * 5 + [1] * 5
    assert table["round"].tolist() == [2, 4, 6, 8, 9] * 2
    assert table["regret"].tolist() == result.regret.ravel().tolist()
    assert table["messages"].tolist() == result.messages.ravel().tolist()
    assert set(table["protocol"]) == {"fwa"}


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
    np.testing.assert_allclose(right.lines[0].get_ydata(), result.messages.mean(axis=0))
    assert left.lines[0].get_xdata().tolist() == [2, 4, 6, 8, 9]
    assert len(left.collections) == 1
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_plot_of_one_replicate_has_no_band():
    assert len(make(replicates=1).plot().axes[0].collections) == 0
