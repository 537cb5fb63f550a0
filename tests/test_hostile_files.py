"""Files and matrices from someone who means harm: what they describe, or one line; never a crash, never gigabytes."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import coo_array, csr_array

import banditmesh as bm
import hostile
from banditmesh import networks
from banditmesh.cli import main
from banditmesh.errors import FileError, InputError, NetworkError, StudyError
from banditmesh.files.contents import MAX_BYTES, MAX_TEXT
from banditmesh.files.parquet_sizes import unpacked_bytes
from banditmesh.lookup import own
from banditmesh.studies.shards import CURVES, digest, shard_name
from studies import SPEC

RING = nx.to_scipy_sparse_array(nx.cycle_graph(6), dtype=np.int8)
FORMATS = (*hostile.SPARSE_FORMATS, "lil", "dok")


def refused(path, match, reader=networks.read, **limit):
    with pytest.raises(FileError, match=match) as caught:
        reader(path, **limit)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_damaged_files_are_networks_or_one_line(tmp_path, seed):
    # In a process of its own, so that a crash in native code is a failure here and not the end of the tests.
    code = (
        "import sys, pathlib, hostile; "
        f"n_read, n_refused = hostile.read_all({seed}, 300, pathlib.Path(sys.argv[1])); "
        "assert min(n_read, n_refused) >= 20, (n_read, n_refused)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, tmp_path], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", FORMATS)
def test_sparse_matrix_of_any_format_is_read(kind):
    _, links = networks.from_sparse(RING.asformat(kind))
    assert links.pairs().tolist() == [[0, 1], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5]]


@pytest.mark.parametrize("blocks", [(1, 1), (2, 3), (3, 2), (6, 6)])
def test_blocks_of_any_shape_are_read(blocks):
    _, links = networks.from_sparse(RING.tobsr(blocks))
    assert links.n_links == 6
    assert (links.degrees == 2).all()


def test_repeated_entries_are_added_up_without_overflow():
    places = ([0] * 257 + [1] * 257, [1] * 257 + [0] * 257)
    with pytest.raises(NetworkError, match=r"entries 0 and 1, got 257 at \(0, 1\)"):
        networks.from_sparse(coo_array((np.ones(514, dtype=np.int8), places), shape=(2, 2)))
    halves = coo_array((np.full(4, 0.5), ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    assert networks.from_sparse(halves)[1].n_links == 1
    true = coo_array((np.ones(4, dtype=bool), ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    assert networks.from_sparse(true)[1].n_links == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.5])
def test_entry_that_is_not_one_is_refused(value):
    with pytest.raises(NetworkError, match="entries 0 and 1, got"):
        networks.from_sparse(csr_array([[0, value], [value, 0]]))
    with pytest.raises(NetworkError, match="entries 0 and 1, got nan"):
        networks.from_sparse(coo_array(([np.inf, -np.inf], ([0, 0], [1, 1])), shape=(2, 2)))


def broken(kind, **changes):
    """A matrix whose arrays were changed behind scipy's back."""
    matrix = RING.asformat(kind).copy()
    for name, change in changes.items():
        setattr(matrix, name, change(np.array(getattr(matrix, name))))
    return matrix


def entry(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"indices": entry(3, 6)}, "indices of a matrix must lie between 0 and 5, got 6"),
        ({"indices": entry(3, 2**30)}, "indices of a matrix must lie between 0 and 5, got 1073741824"),
        ({"indices": entry(3, -1)}, "indices of a matrix must lie between 0 and 5, got -1"),
        ({"indptr": entry(3, 10**6)}, "indptr of a matrix must lie between 0 and 12, got 1000000"),
        ({"indptr": entry(3, -5)}, "indptr of a matrix must lie between 0 and 12, got -5"),
        ({"indptr": entry(3, 1)}, "indptr of a matrix must not fall, got a fall after entry 2"),
        ({"indptr": entry(0, 2)}, "must have 7 entries and begin at 0, got 7 that begin at 2"),
        ({"indptr": lambda array: array[:0]}, "must have 7 entries and begin at 0, got 0 that begin at nothing"),
        ({"indptr": lambda array: array[:3]}, "must have 7 entries and begin at 0, got 3"),
        ({"indptr": lambda array: array.astype(float)}, "indptr of a matrix must be a list of integers, got float64"),
        ({"indices": lambda array: array.reshape(2, -1)}, r"must be a list of integers, got int\d\d of shape \(2, 6\)"),
        ({"indices": lambda array: array.astype(object)}, "indices of a matrix must be a list of integers, got object"),
        ({"data": lambda array: array[:4]}, "a value for every entry|data of a matrix must hold its 12 blocks, got 4"),
        ({"data": lambda array: array.astype("U3")}, "entries 0 and 1, got entries of type <U3"),
        ({"data": lambda array: array.astype(object)}, "entries 0 and 1, got entries of type object"),
    ],
)
def test_broken_arrays_of_a_compressed_matrix_are_refused(kind, changes, message):
    with pytest.raises(NetworkError, match=message):
        bm.Problem(broken(kind, **changes), [[0]] * 6, [bm.arms.Bernoulli(0.5)])


@pytest.mark.parametrize(
    "matrix, message",
    [
        (broken("coo", row=entry(0, 99)), "row of a matrix must lie between 0 and 5, got 99"),
        (broken("coo", col=entry(0, -1)), "col of a matrix must lie between 0 and 5, got -1"),
        (broken("coo", data=lambda array: array[:3]), "a row, a column and a value for every entry, got 12, 12 and 3"),
        (broken("dia", offsets=lambda array: array[:1]), "data of a matrix must hold its 1 diagonals"),
        (broken("dia", offsets=lambda array: array.astype(np.int64) * 2**40), "offsets of a matrix must lie between"),
        (broken("bsr", data=lambda array: array.reshape(-1)), "blocks of a matrix must divide its 6 rows"),
        (coo_array((2**31, 2**31)), "network must have at most 2147483647 agents, got 2147483648"),
    ],
)
def test_broken_arrays_of_other_matrices_are_refused(matrix, message):
    with pytest.raises(NetworkError, match=message):
        networks.as_links(matrix)


def test_broken_lists_and_keys_of_matrices_are_refused():
    lists, keys = RING.tolil(), RING.todok()
    lists.rows[2] = [10**9, -7]
    with pytest.raises(NetworkError, match="rows of a matrix must lie between 0 and 5, got -7"):
        networks.as_links(lists)
    lists.rows = lists.rows[:2]
    with pytest.raises(NetworkError, match="a matrix must have a list for each of 6 rows, got 2"):
        networks.as_links(lists)
    keys._dict[(0, 77)] = np.int8(1)
    with pytest.raises(NetworkError, match="keys of a matrix must lie between 0 and 5, got 77"):
        networks.as_links(keys)


PATH = networks.Links.from_pairs(3, [(0, 1), (1, 2)])


@pytest.mark.parametrize(
    "indptr, indices, message",
    [
        ([0, 1, 3, 4], [1, 0, 7, 1], "links must join agents 0 to 2"),
        ([0, 1, 3, 4], [1, 0, -1, 1], "links must join agents 0 to 2"),
        ([0, 1, 3, 9], [1, 0, 2, 1], "indptr must rise from 0 to 4 in 4 entries"),
        ([0, 3, 1, 4], [1, 0, 2, 1], "indptr must rise from 0 to 4 in 4 entries"),
        ([0, 2**63 - 1, -(2**63), 4], [1, 0, 2, 1], "indptr must rise from 0 to 4 in 4 entries"),
        ([0, 4], [1, 0, 2, 1], "indptr must rise from 0 to 4 in 4 entries"),
        ([0, 1, 3, 4], [1, 2, 0, 1], "the neighbours of an agent must ascend"),
        ([0, 0, 2, 2], [0, 2], "every link must be in indices in both directions"),
        ([0, 1, 1, 1], [0], "network must have no self-loops, got a link from 0 to itself"),
    ],
)
def test_links_made_by_hand_are_checked(indptr, indices, message):
    with pytest.raises(NetworkError, match=message):
        networks.as_links(networks.Links(3, np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int32)))


def test_links_of_the_wrong_type_are_refused():
    with pytest.raises(NetworkError, match="indices must be a one-dimensional array of int32, got array"):
        networks.Links(3, PATH.indptr, PATH.indices.astype(np.int64))
    with pytest.raises(NetworkError, match=r"indptr must be a one-dimensional array of int64, got \[0, 0\]"):
        networks.Links(1, [0, 0], PATH.indices)


CSR = {"format": "csr", "shape": [6, 6], "data": RING.data, "indices": RING.indices, "indptr": RING.indptr}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"indices": np.full(12, 10**8)}, "indices of a matrix must lie between 0 and 5, got 100000000"),
        ({"indptr": np.array([0, 2, 4, 10**7, 8, 10, 12])}, "indptr of a matrix must lie between 0 and 12"),
        ({"data": np.array(["1"] * 12)}, "got: data.npy must hold numbers, got <U1"),
        ({"data": np.ones(12, dtype=complex)}, "got: data.npy must hold numbers, got complex128"),
        ({"data": np.full(12, np.nan)}, r"entries 0 and 1, got nan at \(0, 1\)"),
        ({"indptr": np.array(["0"] * 7)}, "got: indptr.npy must hold whole numbers, got <U1"),
        ({"indices": RING.indices + 0.7}, "got: indices.npy must hold whole numbers, got float64"),
        ({"shape": [6.0, 6.0]}, "got: shape.npy must hold whole numbers, got float64"),
        ({"format": "xyz"}, "a sparse matrix saved by scipy, got: "),
        ({"format": 5}, "a sparse matrix saved by scipy, got: "),
        ({"shape": [-6, -6]}, "a sparse matrix saved by scipy, got: "),
        ({"shape": [6]}, "a sparse matrix saved by scipy, got: |must be square"),
    ],
)
def test_hostile_arrays_in_a_file_are_refused(tmp_path, changes, message):
    path = tmp_path / "a.npz"
    path.write_bytes(hostile.archive(**{**CSR, **changes}))
    refused(path, message)


def test_objects_in_a_file_are_refused_and_never_unpickled(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(hostile.archive(**{**CSR, "data": np.array([{}] * 12, dtype=object)}))
    refused(path, "data.npy must hold numbers, got object")


def test_matrix_file_that_was_cut_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    whole = hostile.saved(RING)
    for length in range(4, len(whole), 50):
        path.write_bytes(whole[:length])
        refused(path, "must be a sparse matrix saved by scipy")


def test_array_that_claims_more_than_is_stored_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(hostile.archive(**CSR).replace(b"'shape': (7,), }  ", b"'shape': (7" + b"0" * 2 + b",), }"))
    refused(path, "indptr.npy is cut short|Bad CRC")


def bomb(name):
    """A small file that holds 4 MiB."""
    if name == "zip.npz":
        return hostile.deflated("data.npy", 2**22)
    if name.startswith("coo"):
        empty = np.zeros(0, dtype=np.int64)
        return hostile.archive(format="coo", shape=[2**19] * 2, row=empty, col=empty, data=empty)
    return gzip.compress(b"0 1\n" * 2**20)


@pytest.mark.parametrize("name", ["coo.npz", "links.txt.gz", "links.adjlist.gz", "links.gml.gz", "links.graphml.gz"])
def test_file_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bomb(name))
    assert path.stat().st_size < 2**16
    tracemalloc.start()
    refused(path, "must hold at most 1,048,576 bytes when unpacked, got more; .*raise max_bytes", max_bytes=2**20)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_matrix_that_unpacks_to_more_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(hostile.saved(csr_array((2**18, 2**18), dtype=np.int8)))
    refused(path, "must hold at most 1,048,576 bytes when unpacked", max_bytes=2**20)
    assert networks.read(path, max_bytes=2**22).shape == (2**18, 2**18)


def test_limit_holds_for_plain_files_and_every_reader(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("1 2 3\n" * 4)
    for reader in (
        networks.read,
        networks.read_edge_list,
        networks.read_adjacency,
        networks.read_graphml,
        networks.read_gml,
        networks.read_contact_trace,
    ):
        refused(path, "must hold at most 23 bytes", reader, max_bytes=23)
    assert networks.read_contact_trace(path, max_bytes=24).names == (2, 3)
    with pytest.raises(InputError, match="max_bytes must be an integer of at least 1, got 0"):
        networks.read(path, max_bytes=0)


def test_limits_are_what_the_documents_say(tmp_path):
    path = tmp_path / "links.txt.gz"
    path.write_bytes(gzip.compress(bytes(MAX_TEXT + 1)))
    refused(path, "must hold at most 33,554,432 bytes when unpacked")
    assert (MAX_TEXT, MAX_BYTES) == (32 * 2**20, 128 * 2**20)


def test_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "links.txt.gz"
    whole = gzip.compress(b"0 1\n1 2\n")
    for content in (whole[:-3], whole[:12], whole[:-8] + bytes(8), whole + b"garbage"):
        path.write_bytes(content)
        refused(path, "must be a whole gzip file, got: ")


@pytest.mark.parametrize(
    "n_runs, columns, ask",
    [
        (50_000, {}, bm.Study.table),
        (1000, {"error": "x" * 100_000}, bm.Study.table),
        (20, {name: [1] * 10_000 for name in CURVES}, bm.Study.curves),
    ],
    ids=["runs", "texts", "curves"],
)
def test_a_small_study_that_unpacks_to_much_is_refused(tmp_path, monkeypatch, n_runs, columns, ask):
    path = hostile.make_study(tmp_path, n_runs, **columns)
    assert path.stat().st_size < 2**17
    monkeypatch.setattr("banditmesh.studies.store.FREE", 2**22)
    assert bm.Study(tmp_path).is_complete
    # Texts are read to be counted, each once.
    if "error" not in columns:
        monkeypatch.setattr(pq.ParquetFile, "read", None)
    with pytest.raises(
        StudyError, match=r"must unpack to at most [\d,]+ bytes, got [\d,]+ from [\d,]+; if you trust"
    ) as caught:
        ask(bm.Study(tmp_path))
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert len(ask(bm.Study(tmp_path, max_bytes=2**30))) >= n_runs
    with pytest.raises(StudyError, match="must unpack to at most 1,000 bytes"):
        ask(bm.Study(tmp_path, max_bytes=1000))


def test_a_study_of_many_small_shards_has_one_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("banditmesh.studies.store.RATIO", 0)
    spec = bm.parse_spec(SPEC)
    study = bm.run_study(spec, tmp_path, workers=1)
    [first, *_] = study.shards()
    n_bytes = first.nbytes * len(list(study.shards()))
    assert n_bytes > 4 * first.nbytes
    with pytest.raises(StudyError, match="must unpack to at most"):
        bm.Study(tmp_path, max_bytes=n_bytes // 2).curves()


def test_what_a_page_unpacks_to_counts_however_few_values_are_announced():
    stream = BytesIO()
    pq.write_table(pa.table({"a": np.zeros(10**6)}), stream, compression="zstd", use_dictionary=False)
    content = stream.getvalue()
    column = pq.ParquetFile(BytesIO(content)).metadata.row_group(0).column(0)
    few = SimpleNamespace(
        num_values=1,
        path_in_schema="a",
        data_page_offset=column.data_page_offset,
        has_dictionary_page=False,
        dictionary_page_offset=None,
    )
    group = SimpleNamespace(num_rows=1, num_columns=1, column=lambda _: few)
    metadata = SimpleNamespace(num_row_groups=1, row_group=lambda _: group)
    assert len(content) < 10_000
    assert unpacked_bytes(content, metadata) > 10**5
    for damaged in (content[:20], b"PAR1" + b"\xff" * 500, b"PAR1" + b"\x1c" * 500, content[:4] + bytes(100)):
        with pytest.raises(ValueError, match="damaged pages"):
            unpacked_bytes(damaged, metadata)


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}, {"row_group_size": 700}, {"use_dictionary": False}]
)
def test_what_a_parquet_file_unpacks_to_is_what_its_pages_say(options):
    table = pa.table({"a": range(5000), "b": [f"text {k % 7}" for k in range(5000)], "c": [[1, 2], None] * 2500})
    stream = BytesIO()
    pq.write_table(table, stream, **options)
    metadata = pq.ParquetFile(BytesIO(stream.getvalue())).metadata
    assert table.nbytes / 2 < unpacked_bytes(stream.getvalue(), metadata) < 4 * table.nbytes
    assert unpacked_bytes(stream.getvalue(), metadata, ["c"]) < unpacked_bytes(stream.getvalue(), metadata)


def test_a_shard_with_damaged_pages_and_the_right_hash_is_one_line(tmp_path):
    path = hostile.make_study(tmp_path, 100)
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.unlink()
    (path.parent / shard_name(0, digest(bytes(content)))).write_bytes(content)
    with pytest.raises(StudyError, match=r"is damaged \(its pages cannot be read\)"):
        bm.Study(tmp_path).table()


def test_opening_a_study_runs_nothing_of_it(tmp_path, monkeypatch):
    hostile.make_study(tmp_path, 3)
    path = tmp_path / "manifest.json"
    text = "raise SystemExit('it ran')"
    named = {"name": "evil:Boom@0123456789abcdef"}
    raw = json.loads(path.read_text())
    raw["spec"] |= {"protocol": named, "policy": named}
    raw["own_modules"] = {"0123456789abcdef": {"evil": text}}
    raw["digest"] = digest(json.dumps(raw["spec"], sort_keys=True).encode())
    raw["fingerprint"] = digest(json.dumps([raw["digest"], raw["network_files"]], sort_keys=True).encode())
    path.write_text(json.dumps(raw))
    [shard] = (tmp_path / "shards").iterdir()
    table = pq.read_table(shard)
    metadata = {**table.schema.metadata, b"banditmesh.study": raw["fingerprint"].encode()}
    stream = BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), stream)
    shard.unlink()
    (tmp_path / "shards" / shard_name(0, digest(stream.getvalue()))).write_bytes(stream.getvalue())
    for name in ("evil.py", "sitecustomize.py", "shards/evil.py"):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("load", "address", "add_texts", "_load_text", "_hash_installed"):
        monkeypatch.setattr(own, name, None)
    study = bm.Study(tmp_path)
    assert study.is_complete
    assert "3 runs, complete" in repr(study)
    assert "3 of 3 runs" in study._repr_html_()
    assert (len(study.table()), len(study.curves())) == (3, 0)
    study.plot("tradeoff")
    assert "evil" not in sys.modules


def test_lists_in_a_log_count_in_full(tmp_path):
    path = tmp_path / "log.parquet"
    columns = {"agent": ["a"] * 50, "arm": ["b"] * 50, "reward": [1.0] * 50, "more": [[0] * 50_000] * 50}
    pq.write_table(pa.table(columns), path)
    assert path.stat().st_size < 2**16
    refused(path, "must hold at most 1,048,576 bytes when unpacked", bm.arms.read_log, max_bytes=2**20)


def test_a_trace_whose_line_does_not_end_is_refused(tmp_path):
    path = tmp_path / "events.jsonl.gz"
    bm.simulate(bm.Problem.paper("er", seed=0), bm.IRS(), horizon=1, seed=0, engine="reference", trace=path)
    path.write_bytes(path.read_bytes() + gzip.compress(b" " * 2**25))
    tracemalloc.start()
    with pytest.raises(
        FileError, match=r"line \d+: not an event of banditmesh \(a line of 1,048,576 characters or more\)"
    ):
        list(bm.read_trace(path))
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


ENTITIES = '<?xml version="1.0"?>\n<!DOCTYPE graphml [\n<!ENTITY a "0123456789">\n{}]>\n'
LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">\n' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">{}</graph></graphml>'


@pytest.mark.parametrize(
    "declared, line, got",
    [
        (ENTITIES.format(LAUGHS), 3, "<!ENTITY"),
        (ENTITIES.format(""), 3, "<!ENTITY"),
        ('<!DOCTYPE graphml [<!ATTLIST node x CDATA "0123456789">]>\n', 1, "<!ATTLIST"),
    ],
)
def test_graphml_that_unfolds_is_refused(tmp_path, declared, line, got):
    path = tmp_path / "links.graphml"
    path.write_text(declared + GRAPHML.format('<node id="&i;"/>'))
    refused(path, f"line {line}: GraphML must not declare entities or attributes, got {got}; remove it")


def test_graphml_that_unfolds_cannot_hide_in_another_encoding(tmp_path):
    path = tmp_path / "links.graphml"
    text = (ENTITIES.format(LAUGHS) + GRAPHML.format('<node id="&i;"/>')).replace("1.0", '1.0" encoding="utf-16')
    path.write_bytes(text.encode("utf-16"))
    refused(path, "must be a text file in UTF-8")


def test_graphml_with_a_plain_document_type_is_read(tmp_path):
    path = tmp_path / "links.graphml"
    path.write_text('<!DOCTYPE graphml SYSTEM "graphml.dtd">\n' + GRAPHML.format('<node id="a"/>'))
    assert list(networks.read(path)) == ["a"]


@pytest.mark.parametrize(
    "label, got",
    [
        ("[ a 1 ]", r"{'a': 1}"),
        ("[ a [ b 2 ] ]", "{'a': {'b': 2}}"),
        ("1 label 2", r"\[1, 2\]"),
        ('"&#55296;"', r"'\\ud800'"),
    ],
)
def test_gml_label_that_is_no_name_is_refused(tmp_path, label, got):
    path = tmp_path / "links.gml"
    path.write_text(f"graph [ node [ id 0 label {label} ] node [ id 1 ] edge [ source 0 target 1 ] ]")
    refused(path, f"must have labels that are text or numbers, got {got}")


@pytest.mark.parametrize("weight", ["[ a 1 ]", '"one"', "2"])
def test_gml_weight_that_is_not_one_is_refused(tmp_path, weight):
    path = tmp_path / "links.gml"
    path.write_text(f"graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight {weight} ] ]")
    refused(path, "network must be unweighted, got weight")


def test_limit_is_raised_on_the_command_line_and_in_a_spec(tmp_path, capsys):
    path = tmp_path / "ring.txt"
    path.write_text("".join(f"{v} {(v + 1) % 6}\n" for v in range(6)))
    options = ["--network", str(path), "--arms", "4", "--per-agent", "2", "--horizon", "5"]
    for verb in ("compare", "bounds", "frontier"):
        with pytest.raises(SystemExit, match="2"):
            main([verb, *options, "--protocols", "fwa", "--max-bytes", "23"])
        assert "must hold at most 23 bytes" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["compare", *options, "--protocols", "fwa", "--max-bytes", "24"])
    spec = tmp_path / "study.toml"
    spec.write_text(
        'horizon = 5\nprotocol = {name = "fwa"}\narms = {n_arms = 4, per_agent = 2}\n'
        'network = {name = "file", path = "ring.txt", max_bytes = 23}\n'
    )
    with pytest.raises(InputError, match="must hold at most 23 bytes"):
        bm.read_spec(spec)
    spec.write_text(spec.read_text().replace("= 23", "= 24"))
    assert bm.read_spec(spec).n_points == 1


@pytest.mark.parametrize("second", ["after", "inside"])
def test_graphml_with_a_second_graph_is_refused(tmp_path, second):
    inner = '<graph id="H" edgedefault="undirected"><node id="b"/></graph>'
    node = f'<node id="a">{inner if second == "inside" else ""}</node>'
    after = inner if second == "after" else ""
    path = tmp_path / "two.graphml"
    path.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f'<graph id="G" edgedefault="undirected">\n{node}</graph>\n{after}</graphml>\n'
    )
    with pytest.raises(InputError, match=r"line [34]: a GraphML file must hold one graph"):
        bm.networks.read_graphml(path)
