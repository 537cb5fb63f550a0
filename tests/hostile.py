"""Damaged network files: small valid ones of every format, and a seeded mutator; and studies that hold too much."""

from __future__ import annotations

import gzip
import json
import random
import warnings
import zipfile
from io import BytesIO

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from banditmesh import networks, parse_spec
from banditmesh.errors import BanditmeshWarning, FileError
from banditmesh.networks import as_links
from banditmesh.studies.manifest import layouts_of, new_manifest, read_manifest
from banditmesh.studies.shards import digest, shard_name

GRAPH = nx.relabel_nodes(nx.cycle_graph(6), {v: f"agent {v}" for v in range(6)})
SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia")


def archive(**arrays):
    """The content of an .npz file that holds these arrays, which need not fit together."""
    stream = BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def saved(matrix, compressed=True):
    """The content of the .npz file as which scipy saves a matrix."""
    stream = BytesIO()
    scipy.sparse.save_npz(stream, matrix, compressed=compressed)
    return stream.getvalue()


def valid_files():
    """For every format a name and the content of a file."""
    files = {
        "links.txt": b"# six agents\na b\nb c\nc,d\nd e 1\ne f\nf a\n",
        "numbers.edgelist": b"0 1\n1 2\n2 3\n3 0\n",
        "links.adjlist": b"0 1 2\n1 2\n2 3\n4\n",
        "contacts.trace": b"1 a b\n2 b c\n2 c a\n4 a b\n",
        "quoted.csv": b'from;to;weight\n"Lee; Ann";bob;1\nbob;"Carl ""C"" #1"\n',
        "links.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n% a path\n3 3 2\n2 1\n3 2\n",
        "dense.mtx": b"%%MatrixMarket matrix array integer general\n2 2\n0\n1\n1\n0\n",
        "square.txt": b"0 1 1\n1 0 0\n1 0 0\n",
        "links.json": b'{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2, "weight": 1}]}',
        "links.graphml": "\n".join(nx.generate_graphml(GRAPH)).encode(),
        "links.gml": "\n".join(nx.generate_gml(GRAPH)).encode(),
    }
    ring = nx.to_scipy_sparse_array(nx.cycle_graph(6), dtype=np.int8)
    for kind in SPARSE_FORMATS:
        files[f"{kind}.npz"] = saved(ring.asformat(kind), compressed=False)
    files["packed.npz"] = saved(ring)
    for name in ("links.txt", "links.gml", "csr.npz"):
        files[f"{name}.gz"] = gzip.compress(files[name], mtime=0)
    return files


def mutated(content, others, rng):
    """A content with one to four injuries: flipped bits, cuts, repeats, splices and numbers made extreme."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(data) + 1)
        j = min(len(data), i + rng.choice((1, 2, 4, 8, 32)))
        injury = rng.randrange(7)
        if injury == 0 and i < len(data):
            data[i] ^= 1 << rng.randrange(8)
        elif injury == 1:
            del data[i:]
        elif injury == 2:
            del data[i:j]
        elif injury == 3:
            data[i:j] = rng.choice((b"\xff", b"\x7f", b"\x00", b"9", b"-", b"\x80")) * (j - i)
        elif injury == 4:
            data[i:i] = data[i:j] * rng.choice((1, 2, 50))
        elif injury == 5:
            other = rng.choice(others)
            k = rng.randrange(len(other))
            data[i:j] = other[k : k + rng.choice((1, 4, 16, 64))]
        else:
            words = (b" nan ", b"[ a 1 ]", b"]", b'"', b"&#0;", b"1e999", b"label", b"<node/>", b"9" * 30)
            data[i:i] = rng.choice(words)
        if not data:
            data = bytearray(b"0")
    return bytes(data)


def remade(content, rng):
    """An .npz with wrong numbers but right checksums, which is what gets past the archive."""
    with np.load(BytesIO(content)) as loaded:
        arrays = dict(loaded)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([key for key in arrays if key not in ("format", "_is_array")])
        array = np.array(arrays[name])
        kinds = (np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, "U3", "S2", "M8[s]", bool, complex)
        injury = rng.randrange(6)
        if injury == 0 and array.size and array.dtype.kind in "iufb":
            extremes = (-1, 2**31 - 1, -(2**31), 2**62, 6, 7, 1000, 0, 3)
            array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice(extremes)
        elif injury == 1:
            array = array[: rng.randrange(len(array) + 1)] if array.ndim else array
        elif injury == 2 and array.dtype.kind in "iufb":
            with np.errstate(all="ignore"):
                array = array.astype(rng.choice(kinds))
        elif injury == 3:
            array = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1))))
        elif injury == 4 and array.ndim:
            array = np.concatenate([array, array])
        elif injury == 5 and array.dtype.kind == "f" and array.size:
            array.reshape(-1)[0] = rng.choice((np.nan, np.inf, -np.inf))
        arrays[name] = array
    if rng.random() < 0.1:
        arrays.pop(rng.choice(list(arrays)))
    if rng.random() < 0.1:
        arrays["format"] = np.array(rng.choice(SPARSE_FORMATS))
    return archive(**arrays)


def injured_files(seed, count):
    """Names and contents of damaged files."""
    rng = random.Random(seed)
    files = valid_files()
    contents = list(files.values())
    for _ in range(count):
        name = rng.choice(list(files))
        if name.endswith(".npz") and rng.random() < 0.7:
            content = remade(files[name], rng)
        else:
            content = mutated(files[name], contents, rng)
        # What was packed is also packed again after the injury, so that the injury gets through.
        if name.endswith(".gz") and rng.random() < 0.5:
            content = gzip.compress(mutated(files[name.removesuffix(".gz")], contents, rng))
        yield name, content


def deflated(name, size):
    """An archive with one member of that many zeros."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target, target.open(name, "w") as member:
        for _ in range(size // 2**20):
            member.write(bytes(2**20))
    return stream.getvalue()


def read_all(seed, count, folder):
    """Read damaged files; each is a network or refused in one line. Returns how many were read and how many refused."""
    n_read = n_refused = 0
    warnings.simplefilter("ignore", BanditmeshWarning)  # notes of what was read, such as repeated links
    for name, content in injured_files(seed, count):
        path = folder / name
        path.write_bytes(content)
        (folder / "last").write_bytes(name.encode() + b"\n" + content)
        reader = networks.read_contact_trace if name.endswith(".trace") else networks.read
        try:
            network, message = reader(path, max_bytes=2**20), None
        except FileError as error:
            network, message = None, str(error)
        if message is not None:
            assert "\n" not in message, message
            assert len(message) < 1000, message
            n_refused += 1
            continue
        n_read += 1
        if reader is networks.read:
            names, links = as_links(network)
            assert len(names) == links.n_agents
            links.components()
    return n_read, n_refused


def make_study(folder, n_runs, **columns):
    """A study whose runs are all the same, so that its file is small; some columns may be given. Returns its shard."""
    text = (
        f"replicates = {n_runs}\nhorizon = 5\nnetwork = {{name = 'ring', n = 4}}\narms = {{n_arms = 3, per_agent = 2}}"
    )
    manifest = new_manifest(parse_spec(text, max_runs=10**9), n_runs, {})
    (folder / "shards").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"state": "complete"}))
    [layout] = layouts_of(read_manifest(folder)).stages
    about = {"failed": "0", "study": layout.fingerprint, "chunk": "0"}
    schema = layout.schema.with_metadata({f"banditmesh.{key}": value for key, value in about.items()})
    numbers = pa.types.is_int64, pa.types.is_float64
    usual = [1 if any(is_one(field.type) for is_one in numbers) else None for field in schema]
    values = [pa.scalar(columns.get(field.name, one), field.type) for field, one in zip(schema, usual, strict=True)]
    stream = BytesIO()
    pq.write_table(pa.table([pa.repeat(one, n_runs) for one in values], schema=schema), stream, compression="zstd")
    path = folder / "shards" / shard_name(0, digest(stream.getvalue()))
    path.write_bytes(stream.getvalue())
    return path
